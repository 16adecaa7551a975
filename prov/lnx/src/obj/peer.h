/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer: one remote lnx endpoint as one of ours sees it, for as long as one session
 * with it lasts (lnx_wire.h).  Made at first use.  A peer outlives its AV entry, and a
 * sender that was never inserted has a peer without an AV entry.
 *
 *	OPEN --BYE, NO_SESSION--> CLOSING --its operations have failed--> CLOSED
 *	OPEN --given up--> DEAD
 *	any --another session begins--> DETACHED --its operations have failed--> GONE
 *
 * The table is in rel/life.c.  A DEAD or CLOSED peer takes and sends nothing.  Frames of
 * its session are refused.  Another session is another object.  A DETACHED or GONE peer
 * is found neither by address nor by id, and exists only for what still refers to it.
 */
#ifndef LNX_PEER_H
#define LNX_PEER_H

#include <stdlib.h>

#include "base/list.h"
#include "base/timer.h"
#include "fi.h"
#include "lnx_wire.h"
#include "obj/counts.h"
#include "os/cma.h"
#include "policy/tx_credits.h"
#include "policy/health.h"
#include "policy/lone.h"
#include "policy/push.h"
#include "policy/rank.h"
#include "policy/rtt.h"
#include "policy/stripe.h"
#include "rel/chan.h"
#include "policy/backlog.h"
#include "policy/credit.h"
#include "rel/hedge.h"
#include "rel/life.h"
#include "rel/loss.h"
#include "rel/path.h"
#include "rel/rate.h"
#include "rel/silence.h"
#include "wire/rails.h"

struct lnx_answer;
struct lnx_shm_registry;
struct lnx_ep;
struct lnx_ping;
struct lnx_rail;
struct lnx_rxe;
struct lnx_txe;

/* One of a peer's rails.  It belongs to the first path to it, which outlives the others. */
struct lnx_remote_rail {
	struct lnx_health health;
	uint16_t index;			/* among the peer's rails (wire/rails.h) */
	uint8_t npath;			/* paths that lead to it */
};

/* Does the path deliver?  And after it failed: when is it tried again (rel/detect.h)? */
struct lnx_path_detect {
	uint64_t progress;			/* grows with everything that is
						 * delivered */
	struct lnx_silence silence;
	struct lnx_rtt rtt;		/* rough round-trip time of the path */
	struct lnx_health health;
	uint64_t charged_ns;		/* last failure that was counted */
	uint32_t nonce;			/* of the last PROBE over or about it */
	/* While the path is DOWN. */
	bool pinged;			/* a PROBE is under way over it */
	bool remote_down;		/* the peer says that its link is down */
	bool moved_away;		/* the peer's address changed since the last
					 * ping */
	bool drained;			/* DOWN because it was set so by hand
					 * (rel/admin.h) */
	bool cut : 1;			/* the peer is dead, and what hung in its
					 * connection was cut */
	/* Of paths over gateways, and between groups (core/path_set.h): */
	bool withdrawn : 1;		/* no route leads over it, or routes replace it: it is
					 * as if its link was down */
	unsigned told_weight : 10;	/* that the peer wants of its end, in thousandths;
					 * while told_ns is not long ago */
	/* Ports at which the two ends try to reach each other (rel/address_ack.c). */
	uint16_t acked_port;		/* port of our rail that the peer knows; 0:
					 * the first */
	uint16_t previous_port;		/* the peer's port before this one; 0: it has
					 * not changed */
	uint16_t further_port;		/* another one, to be tried after that; or 0 */
	/* While the path is DOWN, too. */
	uint64_t down_ns;
	uint64_t told_ns;		/* when the peer last said told_weight; 0: it wants
					 * all */
	uint64_t ping_ns;		/* time of the last */
	uint64_t probe_ns;		/* when the next is due; 0: with the next
					 * ping */
	struct lnx_far far;		/* what is known of its far end */
	uint64_t probe_epoch;		/* ep->address.epoch that the last PROBE
					 * told; 0: none */
	struct lnx_ping *ping;		/* of the peer's kernel; owned, or NULL */
	/* The peer's PROBEs that are to be answered.  One about the path with this index in
	 * the peer's array, which may have come over several paths: */
	uint64_t pong_data;
	uint8_t pong_about;		/* bits of such, of those that came over this path */
	/* Another one that came over this path, about latency or about a path that we do
	 * not have: */
	uint8_t other_tag;		/* 0: none */
	uint64_t other_data;
};

/* How fast a path is, of a peer with several (rel/sched.h). */
struct lnx_path_speed {
	struct lnx_rate send;		/* of frames */
	struct lnx_rate read;		/* of pieces that are read from the other end */
	uint64_t delivered;		/* path->delivered at the last report */
	bool read_failed;		/* the last read did: one at a time */
	struct lnx_tail tail;		/* of pieces: how late they are (msg/hedge.c) */
	uint64_t cut_ns;		/* when its connection was last cut, */
	uint64_t cut_try_ns;		/* and when that was last tried */
	/* Of the first path: of all paths to the peer. */
	struct lnx_hedge hedge;		/* what is read twice */
	uint64_t look_ns;		/* when pieces are to be looked at next */
	/* PROBEs over the path about itself (rel/latency.c). */
	uint32_t probe;			/* number of the last one */
	uint32_t unanswered;		/* and of the first one without an answer */
	uint64_t refused_ns;		/* when the core refused one; 0: it took the last; */
	uint64_t refusing_ns;		/* and when it refused the first of these */
	uint64_t probe_ns;		/* when the last one left; 0: none has */
	/* One PROBE, whose answer tells what is lost of the frames before it: */
	uint32_t mark;			/* its number; */
	uint64_t mark_sent;		/* path->sent, */
	uint64_t mark_report;		/* and path->last_report, when it left; mark_sent 0:
					 * there is none */
	uint64_t unanswered_ns;		/* and when that first one did; 0: all are
					 * answered */
	uint64_t answer_ns;		/* how long the last answer took; 0: none */
	uint64_t answered_ns;		/* when that came */
	uint64_t doubt_ns;		/* something was last late here, and nothing was
					 * delivered since; 0: it was */
	struct lnx_late oldest;		/* the oldest frame, if it left over this path */
	struct lnx_pause away;		/* frames were late here: they come back after
					 * that */
	uint64_t used;			/* stamp of the last message; LNET only */
	/* While it is sick (rel/sched.h): */
	int64_t credit;			/* bytes of pieces that it may take */
	uint32_t turns;			/* of messages, that it has had */
};

/*
 * What rules say of a peer's rails, and the order of its paths (rel/order.h).  Of a peer
 * with several paths, or that a rule with a dst may be for.
 */
struct lnx_peer_choice {
	struct lnx_peer *peer;
	struct lnx_rule_peer *table;	/* owned; by lnx_path.remote_rail; NULL: no rule
					 * has a dst */
	uint32_t generation;		/* ep->policy.generation that `rank` is of; 0: none */
	uint16_t states;		/* enum lnx_rank_state of its paths then, two bits
					 * for each */
	uint8_t held;			/* paths whose route is down, or whose gateway ends
					 * soon, when `rank` was made: bits */
	bool routed;			/* there are paths over gateways in it */
	struct lnx_ranking rank;	/* rank.n: paths that are in it */
	struct lnx_rank_rules rules[LNX_RANK_PATHS]; /* what they said of these */
	struct lnx_lone lone;		/* how large messages go that are alone */
	uint64_t pong_ns;		/* time of its last PONG, but for those about
					 * latency */
	uint32_t rx_reported[LNX_WIRE_PATHS]; /* what we have reported of rx.bytes, less the
					 * higher half */
};
static_assert(2 * LNX_WIRE_PATHS <= 16, "two bits for each path");

/* One path to a peer.  State is per path; rails and peers summarise it. */
struct lnx_path {
	/* Hot: used for each frame. */
	_Alignas(64)
	struct lnx_rail *rail;
	fi_addr_t core_addr;
	uint16_t remote_rail;		/* remote->index */
	uint8_t index;			/* in peer->path */
	uint8_t state;			/* enum lnx_path_state; lnx_path_happens */
	bool reserved;			/* its try to connect at retry_ns (rel/pump.c) */
	bool credit_turn;		/* its peer has waited for credits, and is next */
	bool proven;			/* a frame that left over it has arrived, since it is UP;
					 * only of a peer with several paths */
	bool was_there;			/* its peer has answered in an earlier session */
	uint64_t n_sent;		/* frames sent over it, in the sequence */
	struct lnx_remote_rail *remote;	/* the peer's rail; of this path, or another */
	/* Frames.  What is known of them matters only for a peer with several paths
	 * (rel/report.h). */
	uint64_t sent;			/* bytes sent over it */
	uint64_t delivered;			/* of these, bytes that the peer is
						 * known to have */
	struct lnx_tx_credits credits;	/* frames that its core has or that are not
					 * acknowledged (rel/tx_credits.h) */
	uint64_t inflight_limit;			/* with more than that in
							 * flight it is backed up */

	uint64_t retry_ns;		/* not tried before */
	uint64_t backoff_ns;
	uint64_t fail_backoff_ns;		/* the last backoff after a failed
						 * send */
	uint64_t link_bps;		/* nominal, of our end; 0: unknown */
	struct lnx_path_speed *speed;	/* owned; NULL: it is the only path */
	/* Pieces of large transfers, which are read from the other end. */
	uint64_t read_bytes;		/* outstanding */
	uint32_t nread;
	uint32_t read_refused_ms;	/* since when its core takes none (lnx_stamp_ms); 0:
					 * it takes them */
	uint64_t read_retry_ns;		/* no read before */
	uint64_t read_done_ns;		/* when the last one ended */
	struct lnx_node reads;		/* msg/pull.c: outstanding reads */
	struct lnx_node gets;		/* rma/read.c: the same */
	struct lnx_path_detect detect;
	struct lnx_remote_rail own_remote; /* used by the first path to a remote rail */
	uint64_t since_ns;		/* when CONNECTING began */
	struct lnx_path_counts *counts;	/* owned; NULL: not needed yet (obj/counts.h) */
	uint64_t last_report;		/* bytes that the peer reported last */
	/* Its peer waits for credits of its rail (rel/tx_credits.h): */
	struct lnx_node delayed;	/* rail->delayed */
	struct lnx_peer *delayed_peer;	/* that peer; NULL: it does not wait */
};

/* Is it the one with the object of its remote rail? */
LNX_INLINE bool lnx_path_has_remote(const struct lnx_path *path)
{
	return path->remote == &path->own_remote;
}

/* The only place that changes its state. */
LNX_INLINE void lnx_path_happens(struct lnx_path *path, enum lnx_path_event event)
{
	path->state = lnx_path_table[path->state][event];
	if (path->state != LNX_PATH_UP)
		path->proven = false;
}

#define LNX_PATHS_MAX	LNX_WIRE_PATHS
/* look and retry. */
#define LNX_PEER_TIMERS	2u
/* lnx_path.inflight_limit before the path's speed is known. */
#define LNX_PATH_INFLIGHT_FIRST	32768u

/* Registrations that the current incoming write changed, if any memory has a counter. */
struct lnx_put_keys {
	uint64_t key[LNX_RMA_TARGETS_MAX];
	unsigned n;
};

/* What came from the peer, by its path, and what is due to it for that.  The flags end one
 * cache line, and bytes is the next one. */
struct lnx_peer_arrived {
	bool multipath;			/* its frames come over several paths */
	uint8_t last_path;		/* of its frames */
	uint8_t reported_path;		/* path of our last report to it */
	uint8_t path_back;		/* ours, back to where its last frame came from: for
					 * ACKs */
	uint8_t pong_due;		/* bits of paths over which a PONG is due */
	uint64_t bytes[LNX_PATHS_MAX];	/* of its frames that came */
};

/* The session with it, as far as that is not needed for each frame: its end, too. */
struct lnx_peer_session {
	uint64_t stamp;			/* when it began, by our clock */
	uint64_t rx_stamp;		/* the last of the peer's that we have heard of */
	uint64_t before_sid;		/* rx_sid of the session before that this end has
					 * ended; 0: there was none */
	struct lnx_node ended_link;	/* ep->peers.ended: not OPEN */
	union {
		struct lnx_peer *hash_next; /* ep->by_sid, once rx_sid is known; until then */
		uint64_t named;		/* its session that our HELLO names in doubt
					 * (rel/begin.h); 0: none */
	};
	uint32_t ended_ms;		/* lnx_stamp_ms: since when it is not OPEN; 0: it
					 * is */
	uint32_t refused_ms;		/* and when a frame of it was last refused */
	bool refuse;			/* tell the peer that it has ended */
	uint8_t err;			/* FI_E... that its operations end with, once all
					 * have failed; FI_ETIMEDOUT: nothing came, the peer
					 * may be where it was */
	bool alive : 1;			/* the peer ended it: another may begin */
	bool av_first : 1;		/* the AV's rails are tried, though the session
					 * before had others */
	bool keepalive;			/* a sign of life is due from it, though it is idle
					 * (rel/keepalive.h); */
	uint8_t mute;			/* and so many times in turn none came */
	bool key_refused;		/* the peer has another job key, or none */
	bool unanswered;		/* the session before had sent a HELLO, and got
					 * none: the peer may be in it */
	uint8_t wrong_endpoint;		/* bits of paths whose far end is another
					 * endpoint */
};

/* Where the peer is, and what it knows of where we are. */
struct lnx_peer_address {
	struct lnx_rails *rails;	/* from its hello; owned; NULL: as in the AV */
	uint64_t epoch;			/* of its last hello (lnx_wire.h) */
	uint64_t hello_epoch;		/* of our last one, which it may not have; 0: it
					 * has */
	uint32_t hello_seq;
	uint32_t tell;			/* bits of ep->rail: link notices that are due to
					 * it */
	struct lnx_node learn_link;	/* ep->learn_peers: hello to handle */
};

/* What a peer may send, and what we may send to it, as far as that is not simply all. */
struct lnx_peer_throttle {
	struct lnx_peer *peer;
	struct lnx_backlog_use use;	/* memory of its messages that no receive matches */
	/* It by us (msg/backlog.h): */
	struct lnx_allowance its;
	uint32_t beyond;		/* so many came since that changed and were not
					 * allowed */
	struct lnx_node link;		/* ep->backlog.throttled */
	/* We by it (rel/throttle.h): */
	struct lnx_allowed ours;
	struct lnx_node queue;		/* lnx_frame.link: frames that wait, and have no
					 * number yet */
	uint32_t n;			/* so many */
	bool take_back;			/* it told us something: what is in chan.queue is to
					 * wait there, too */
};

/* Large frames, in both directions, and messages that wait for receives: of a peer that has
 * sent or received a large message, or had such.  Bytes; none of the 32-bit numbers is larger
 * than the credit or FI_LNX_SEND_BUFFER. */
struct lnx_peer_eager {
	struct lnx_credit credit;
	/* Copies that complete sends (rel/keep.c): */
	uint32_t kept;			/* bytes of them */
	uint32_t unasked;		/* sent since a frame asked for its ack */
	bool full;			/* frames wait because there are too many */
	bool none_soon;			/* we have waited for credit in vain */
	bool granted_more;		/* it has granted more since we have sent some of what it
					 * granted first */
	uint64_t waits_ns;		/* since when messages over gateways do; 0: they do not */
	uint32_t waits_len;		/* bytes of the longest of these */
	/* The message that it sends in several frames (msg/parts.c): */
	uint32_t len;			/* in frames; 0: there is no such message now */
	uint32_t got;			/* of that, what came */
	struct lnx_rxe *rxe;		/* where they go; NULL: they are dropped */
	bool pushed;			/* it is a push: no frames, and no credit */
	uint32_t op;			/* of that (lnx_wire_shm.h), or of the last one */
	uint32_t last_push;		/* op of our last push to the peer */
	struct lnx_push_ahead ahead;	/* what we have pushed */
	struct lnx_push_cost push_cost;
	struct lnx_peer_throttle throttle;
};

/* A large transfer from it or to it (msg/pull.h), as far as others know it. */
struct lnx_pull_links {
	struct lnx_node of_peer;	/* peer->pull.all */
	struct lnx_node due;		/* ep->pulls.due, or on no list */
};

/* Large messages of it that we read, and what we write for its large ones. */
struct lnx_peer_pull {
	uint64_t left;			/* bytes to be read that are not yet requested */
	uint32_t n;			/* pulls of its large messages and writes */
	bool waits;			/* one found no path that takes more; */
	bool room;			/* a path may: those in line are to be run, */
	bool every;			/* or all; in both cases one is due */
	bool full;			/* while they are run: no path takes more */
	struct lnx_node all;		/* lnx_pull_links.of_peer: those that have requested
					 * all; then the line for paths, first come, first
					 * served; */
	struct lnx_node *line;		/* its first, or &all */
};

/* Memory: ours that it uses, and its own that we use. */
struct lnx_peer_rma {
	struct lnx_put_keys *put_keys;	/* owned; NULL: never needed */
	struct lnx_rkey *rkeys;		/* keys of its memory (rma/rkey.h) */
	uint32_t n_segments;		/* segments of our operations, not yet ended; among
					 * them */
	uint32_t n_reads;		/* those that the core reads alone (rma/read.c) */
	uint32_t memory_seq;		/* number after the last frame about memory */
	uint32_t n_unknown;		/* reads whose keys were not known */
	uint32_t n_served;		/* its large writes and key requests */
	uint8_t put_refused;		/* why a piece of the current incoming write was
					 * refused (FI_E...); 0: none was */
};

/* Direct operations of ours that wait for its answer (msg/confirm.h), and its own that
 * wait for ours (msg/confirm_answer.h). */
struct lnx_peer_confirm {
	struct lnx_node list;		/* lnx_confirm.link, by number */
	uint64_t last_op;		/* the last number */
	uint32_t n;
	uint32_t n_answers;
	struct lnx_answer *answer;	/* the last one that is to be sent, or NULL */
};

/* A peer on this node: what goes through shared memory, and its process. */
struct lnx_peer_shm {
	fi_addr_t core;			/* peer->shm_addr, also where only the peer may
					 * send */
	bool unusable;			/* no slot for it in shm, or another user's
					 * process */
	bool ctrl;			/* its large messages stay out of the core: they are
					 * announced by shm control messages */
	bool try_reach;			/* find out whether we may read its memory */
	bool reaches;			/* as far as we know its core may read and write
					 * our memory */
	bool repeats;			/* some of ep->local.rma_failed go to it */
	bool miss;			/* the check that it lives failed once */
	bool sure;			/* `where` is certainly the peer's process */
	uint8_t round;			/* ep->local.round when we last checked that it
					 * lives */
	/* Sends that the core was too busy for (msg/direct.c). */
	struct lnx_node queue;
	struct lnx_node queue_link;	/* ep->local.queued_peers */
	uint32_t nqueued;
	/* Large sends (msg/large.c). */
	uint32_t nflight;		/* reads and large writes that the core has
					 * (rma/copy.h); */
	uint32_t nsmall;		/* small writes and atomics begun meanwhile */
	int pidfd;			/* 1 + descriptor of its process; 0: none */
	struct lnx_shm_registry *registry; /* the peer's own; NULL: not seen */
	uint8_t *unsettled;		/* our slot's byte there; NULL: none */
	const uint32_t *counts;		/* value not 0: it counts writes
					 * (core/shm_registry.h) */
	fi_addr_t direct_read;		/* peer->direct while `reaches`: for reads */
	fi_addr_t direct_write;		/* peer->direct while not nflight: for small
					 * writes and atomics */
	uint8_t *reach;			/* our slot's other byte there; NULL: the core
					 * needs none */
	struct lnx_cma_owner where;	/* the peer's process */
};

/*
 * Hot members come first, one cache line for each step of a frame; 64-byte aligned.
 * Between two frames the kernel sends and receives for us and empties much of the
 * caches, so that each line costs time.
 */
struct lnx_peer {
	/* Send path. */
	_Alignas(64)
	fi_addr_t direct;		/* shm_addr while nothing is queued */
	fi_addr_t shm_addr;		/* core address; FI_ADDR_NOTAVAIL: none */
	fi_addr_t addr;			/* ours, FI_ADDR_NOTAVAIL: not in the AV */
	struct lnx_ep *ep;
	uint64_t eid;
	uint8_t npath;
	uint8_t stripe;			/* paths, as bits, that share large messages */
	uint8_t rr;			/* those that messages use round robin; 0: no choice
					 * for each message, */
	uint8_t rr_index;		/* and this was the path of the last frame */
	bool self;			/* it is this endpoint itself */
	bool hello_done;		/* our hello has its number */
	uint8_t life;			/* enum lnx_life; lnx_peer_happens */
	bool watched;			/* it will be looked at soon enough for what is sent
					 * now; else lnx_peer_watch */

	/* The end of this line, the next one, and the beginning of the one after it.  Its
	 * ack_threshold: the first frame puts the peer on ack_list, then as many as may
	 * wait. */
	_Alignas(16) struct lnx_chan chan;
	uint64_t sid;			/* our session id: src of what we send */
	uint64_t rx_sid;		/* the peer's; 0: no HELLO has come */
	struct lnx_path *cur;		/* path of frames while it is not backed up */
	struct lnx_timer look;		/* when to look at it next: rel/run.c */
	struct lnx_peer_arrived rx;

	struct lnx_path first;		/* path[0] */
	struct lnx_path *path[LNX_PATHS_MAX]; /* owned; NULL: never needed */
	struct lnx_peer_choice *choice;	/* owned; NULL: one path at most, and no rules */

	/* Less hot. */
	struct lnx_node ack_link;	/* ep->ack_list */
	struct lnx_liveness liveness;	/* of the peer as a whole */
	struct lnx_loss loss;		/* of frames to it */
	struct lnx_peer_session session;
	struct lnx_peer_address address;
	struct lnx_peer_eager *eager;	/* owned; NULL: never needed */
	struct lnx_peer_pull pull;
	struct lnx_peer_rma rma;
	struct lnx_peer_confirm confirm;
	struct lnx_peer_shm shm;
	uint32_t nheld;			/* receive entries that name it as sender */
	uint32_t n_clones;		/* its frames in rail->clones */
	uint32_t nrndv;			/* announced, not yet ended */
	bool unsolicited;		/* counted in ep->peers.n_unsolicited */
	bool awaited;			/* an acknowledgement or an answer is due from it */
	bool blocked;			/* chan.queue waits for the window, a path or
					 * earlier frames, and not only for the next
					 * pass */
	bool same_host;			/* its frames do not leave this host */
	struct lnx_node stored;		/* lnx_unex.of_peer: its messages that no receive
					 * matches */
	uint64_t failing_ns;		/* since when every send fails; 0: they do not */

	/* Links of lists, each used only when there is something to do. */
	struct lnx_node pump_link;	/* ep->pump_peers: frames to post */
	struct lnx_timer retry;		/* when it has such again: all paths pause */
	struct lnx_node all_link;	/* ep->peers.all */
	struct lnx_peer *hash_next;	/* ep->by_eid */
};
static_assert(sizeof(struct lnx_path) <= 448 && sizeof(struct lnx_peer) <= 1344,
	      "an idle peer with one path costs 1.5 KiB at most, with its table of frames");
static_assert(offsetof(struct lnx_peer, chan.slot) == 64 &&
	      offsetof(struct lnx_peer, chan.rx) == 128 &&
	      offsetof(struct lnx_peer, rx.bytes) == 192,
	      "four lines of a peer for a frame, and one of its path");

/* The only place that changes its life. */
LNX_INLINE void lnx_peer_happens(struct lnx_peer *peer,
				 enum lnx_life_event event)
{
	peer->life = lnx_life_table[peer->life][event];
}

LNX_INLINE bool lnx_peer_open(const struct lnx_peer *peer)
{
	return peer->life == LNX_LIFE_OPEN;
}

/* It ended the session, or another has begun: the next pass fails what is outstanding. */
LNX_INLINE bool lnx_peer_ending(const struct lnx_peer *peer)
{
	return !lnx_peer_open(peer) && !lnx_life_dead(peer->life);
}

/* All that was outstanding to it has failed; sends fail at once. */
LNX_INLINE bool lnx_peer_dead(const struct lnx_peer *peer)
{
	return lnx_life_dead(peer->life);
}

/* NULL: nothing of that kind has happened yet. */
LNX_INLINE struct lnx_peer_throttle *lnx_peer_throttle_of(const struct lnx_peer *peer)
{
	return peer->eager ? &peer->eager->throttle : NULL;
}

/* Frames that wait for their number: it throttles us. */
LNX_INLINE uint32_t lnx_peer_nthrottled(const struct lnx_peer *peer)
{
	return peer->eager ? peer->eager->throttle.n : 0;
}

/* What operations to it end with once its session has ended: FI_E... */
static inline int lnx_peer_error(const struct lnx_peer *peer)
{
	return peer->session.err ? peer->session.err : FI_ECONNRESET;
}

/* Frames of it that were handled so far: their numbers begin with 0, and wrap. */
static inline uint64_t lnx_peer_handled(const struct lnx_peer *peer)
{
	return (uint64_t)peer->chan.rx.wraps << 32 | peer->chan.rx.next;
}

/* Counts for a path of peer that has none yet: kinds are counted from now on.  NULL: memory
 * is short. */
static inline struct lnx_path_counts *lnx_path_counts_new(const struct lnx_peer *peer,
							  const struct lnx_path *path)
{
	struct lnx_path_counts *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kinds_sent = path->n_sent;
	if (path->index == peer->rx.path_back)
		c->kinds_received = lnx_peer_handled(peer);
	return c;
}

/* Does a path lead from that rail of ours to the peer's one with that index? */
static inline bool lnx_peer_has_path(const struct lnx_peer *peer, const struct lnx_rail *rail,
				     unsigned remote)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail == rail && peer->path[i]->remote_rail == remote)
			return true;
	return false;
}

/* Has it acknowledged anything? */
static inline bool lnx_peer_acked(const struct lnx_peer *peer)
{
	return lnx_chan_acked_any(&peer->chan);
}

#endif
