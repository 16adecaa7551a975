/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer: one remote lnx endpoint as one of ours sees it.  Made at first use.
 * Peers outlive their AV entry while frames are still due to or from them, and
 * exist without one for senders that nobody inserted.
 */
#ifndef LNX_PEER_H
#define LNX_PEER_H

#include "base/list.h"
#include "fi.h"
#include "lnx_wire.h"
#include "policy/health.h"
#include "policy/rtt.h"
#include "policy/stripe.h"
#include "wire/rails.h"
#include "wire/seq.h"

struct lnx_answer;
struct lnx_shm_registry;
struct lnx_ep;
struct lnx_ping;
struct lnx_rail;
struct lnx_txe;

/*
 * One way to reach a peer.  State is per path; rails and peers summarise it.
 *
 *	IDLE --send--> CONNECTING --accepted--> UP --error--> CONNECTING
 *	IDLE --accepted--> UP
 *	CONNECTING --deadline--> DEAD
 *	any --silence, link down--> LEFT --it answers--> UP	(tx/detect.h)
 */
enum lnx_path_state {
	LNX_PATH_IDLE,
	LNX_PATH_CONNECTING,		/* the core says EAGAIN, we wait */
	LNX_PATH_UP,
	LNX_PATH_DEAD,			/* its deadline passed */
	LNX_PATH_DOWN,			/* delivers nothing: not used */
};

/* Does it deliver?  And once it does not, when is it tried again (tx/detect.h). */
struct lnx_path_detect {
	uint64_t progress;			/* grows with all that is delivered */
	uint64_t progress_seen;			/* `moved` at stalled_since_ns */
	uint64_t stalled_since_ns;		/* unchanged since; 0: nothing is due */
	uint64_t probe_sent_ns;		/* the peer, over another path; 0: not */
	bool pong_seen;			/* and nothing more had come */
	bool stale_report;			/* or what had come before the silence */
	struct lnx_rtt rtt;		/* of what goes over it, coarsely */
	uint32_t timed_seq;		/* acknowledged up to here: a sample */
	uint64_t timed_ns;		/* of frames that left by then; 0: none is taken */
	uint32_t seen_seq;		/* peer->tx_una at stalled_since_ns */
	struct lnx_health health;
	struct lnx_health remote;	/* of the peer's rail, in its first path */
	uint64_t charged_ns;		/* last failure that was counted */
	/* Left. */
	uint64_t down_ns;
	bool pinged;			/* a PROBE is on its way over it */
	bool back;			/* it was answered */
	bool remote_down;		/* the peer says that its link is down */
	bool moved_away;		/* the peer has a new address since the last ping */
	bool drained;			/* left because somebody set it so (tx/admin.h) */
	uint64_t drain_ns;		/* the peer said so of its end; 0: it did not */
	uint32_t nonce;			/* of the last PROBE over or about it */
	uint64_t ping_ns;		/* the last */
	uint64_t probe_ns;		/* when another is due; 0: with the next ping */
	uint64_t unanswered_ns;		/* its host answers, and it does not, since */
	uint64_t refused_ns;		/* its host says that it is not there, since */
	/* Where the two ends look for each other (tx/address_ack.c). */
	uint64_t probe_epoch;		/* ep->address_epoch that the last PROBE told; 0: it did not */
	uint16_t acked_port;		/* of our rail, as it knows; 0: the first */
	uint16_t previous_port;		/* where its own was before; 0: where it is */
	struct lnx_ping *ping;		/* of the peer's kernel; owned, or NULL */
};

struct lnx_path {
	/* Hot: what each frame looks at. */
	_Alignas(64)
	struct lnx_rail *rail;
	fi_addr_t core_addr;
	uint16_t remote_rail;		/* its place among the peer's (wire/rails.h) */
	uint8_t index;			/* in peer->path */
	uint8_t state;			/* enum lnx_path_state */
	uint8_t class;			/* 0: as good as any (policy/select.h) */
	uint64_t since_ns;		/* when CONNECTING began */
	/* Frames; what is known of them counts while a peer has several paths
	 * (tx/path.h). */
	uint64_t sent;			/* bytes that left over it */
	uint64_t delivered;			/* of which the peer is known to have */
	uint64_t last_report;			/* what it said last */
	uint64_t inflight_limit;			/* more than that on the way: backed up */

	uint64_t retry_ns;		/* not to be tried before */
	uint64_t backoff_ns;
	uint64_t fail_backoff_ns;		/* the last rest after a failed send */
	uint64_t link_bps;		/* nominal, of our end; 0: unknown */
	struct lnx_bandwidth send;
	/* Pieces of large transfers, which come the other way. */
	uint64_t read_bytes;		/* outstanding */
	uint32_t nread;
	struct lnx_bandwidth read;
	uint64_t read_retry_ns;		/* none to be tried before */
	uint64_t read_done_ns;		/* when the last one ended */
	struct lnx_node reads;		/* of rx/pull.c: what is outstanding */
	struct lnx_node gets;		/* of tx/read.c: the same */
	struct lnx_path_detect detect;
};

#define LNX_PATHS_MAX	LNX_WIRE_PATHS
/* lnx_path.room before the path's speed is known. */
#define LNX_PATH_INFLIGHT_FIRST	32768u

/*
 * What is not as usual with the frames to a peer: then a new one may not just leave, and
 * an acknowledgement is more than one frame done with.
 */
#define LNX_TX_NO_ACK_YET	0x01u	/* it has acknowledged nothing: not our hello */
#define LNX_TX_QUEUED		0x02u	/* some wait to be posted: npend */
#define LNX_TX_RETRANSMIT	0x04u	/* some are to be posted again: retx_next */
#define LNX_TX_PROBE	0x08u	/* the oldest was; its ack tells what is lost */

/* Whose memory: the process, and where in it the id is while it may be read. */
struct lnx_cma_owner {
	int pid;
	uint64_t cookie;
	uint64_t eid;
	uint64_t started;		/* core/pidwatch.h; 0: not known */
};

/*
 * Hot members come first, a cache line for each step of a frame's way; 64-byte
 * aligned.  Between two frames a kernel that sends and receives for us empties much
 * of the caches, so that each line costs.
 */
struct lnx_peer {
	/* Send path. */
	_Alignas(64)
	fi_addr_t direct;		/* shm_addr, while nothing is queued */
	fi_addr_t shm_addr;		/* core address; FI_ADDR_NOTAVAIL: none */
	fi_addr_t addr;			/* ours, FI_ADDR_NOTAVAIL: not in the AV */
	struct lnx_ep *ep;
	uint64_t eid;
	uint32_t tx_next;		/* number of the next new frame */
	uint32_t tx_posted;		/* number of the next one to be posted */
	uint32_t tx_una;		/* oldest not acknowledged */
	uint8_t tx_flags;			/* LNX_TX_ODD_*, 0 nearly always */
	uint8_t npath;
	uint8_t n_stripe;		/* the first that share large messages */
	uint8_t n_rr;			/* the first that messages take in turn */
	uint8_t cur;			/* path of frames while it is not backed up */
	bool self;			/* this very endpoint */
	bool hello_done;		/* our hello is numbered */
	bool dead;			/* unreachable: sends fail at once */
	bool ack_now;			/* what is acks_pending does not wait */

	/* What both ways note of each frame. */
	struct lnx_txe **slot;		/* [ep->window], by number */
	uint64_t una_bytes;		/* of frames not acknowledged; as `sent` */
	struct lnx_node retx_link;	/* ep->retx_list: frames unacknowledged */
	struct lnx_node ack_link;	/* ep->ack_list */
	uint64_t ack_since_ns;		/* 0: the next pass sets it */
	uint32_t acks_pending;			/* sequenced frames not yet acknowledged; at
					 * 0 a pass takes it off ack_list */
	uint32_t ack_threshold;		/* so many, and something is to be done: it is
					 * on no list, or they are as many as wait */

	struct lnx_seq seq;
	uint64_t una_since_ns;		/* tx_una is una_seen since, as the timers saw it */
	uint64_t silent_ns;		/* nothing came of it since; 0: it did */
	uint64_t rto_ns;
	uint32_t una_seen;
	bool tail_probe;			/* send the oldest frame again */
	bool multipath;			/* its frames come over several paths */
	uint8_t last_path;		/* of its frames */
	uint8_t reported_path;		/* what we told of last */
	uint8_t rr_index;			/* path of the last frame, if they take turns */
	uint8_t back;			/* the path its last frame came by, for ACKs */
	uint8_t retx_paths;			/* retx_next: frames of these paths, as bits */
	uint8_t pong_due;		/* bits of paths that owe a PONG */
	bool closing;			/* it said it is closing */
	bool unsolicited;			/* counted in ep->n_unsolicited */
	bool notes;			/* its large messages stay out of the core */
	bool no_shm;			/* for want of a place, or of another user */

	_Alignas(64)
	uint64_t rx_bytes[LNX_PATHS_MAX];	/* bytes of its frames, by its path */
	struct lnx_path path[LNX_PATHS_MAX];

	/* Less hot. */
	uint64_t rx_reported[LNX_PATHS_MAX];	/* what we have said of `got` */
	struct {
		uint64_t tag, data;	/* of the PROBE */
	} pong[LNX_PATHS_MAX];
	fi_addr_t shm_core;		/* shm_addr, also where only it may send */
	uint32_t nrndv;			/* announced, not ended */
	uint32_t n_segments;		/* of our RMA, not ended; of them */
	uint32_t nreads;		/* in the core, alone (tx/read.c) */
	uint32_t memory_seq;		/* one beyond the last frame about memory */
	uint32_t nunknown;		/* reads whose keys were not known */
	uint32_t nserved;		/* its large writes and questions for keys */
	uint32_t retx_next;		/* next to post again: LNX_TX_RETRANSMIT */
	uint32_t npend;			/* frames in [tx_posted, tx_next) */
	bool blocked;			/* and they wait for the window or a path, or in
					 * line; not only for the next pass */
	struct lnx_node pend;		/* txe.link, numbered, not yet posted */

	/* Direct sends that the core was too busy for (tx/direct.c). */
	struct lnx_node dpend;
	uint32_t ndpend;
	struct lnx_node dpend_link;	/* ep->direct_peers */

	/* Large direct sends (tx/large.c). */
	struct lnx_shm_registry *registry;		/* its own; NULL: not seen */
	const uint32_t *counts;		/* not 0: it counts writes (core/shm_registry.h) */
	struct lnx_cma_owner where;	/* its process */
	uint64_t watched_ns;		/* when we last looked whether it lives */
	bool miss;			/* it did not seem so */
	bool sure;			/* `where` is its process, and no other's */
	int pidfd;			/* 1 + descriptor of its process; 0: none */

	/* Direct operations that wait for its word (tx/confirm.h), and its own that
	 * wait for ours (rx/confirm.h). */
	struct lnx_node confirms;	/* lnx_confirm.link, by number */
	uint32_t nconfirm;
	uint64_t confirm_op;		/* the last number */
	struct lnx_answer *answer;	/* the last that is to leave, or NULL */
	uint32_t nanswer;

	/* Receive path. */
	struct lnx_node stored;		/* lnx_rxe.of_peer: its messages without receive */
	uint32_t full_pass;		/* 1 + the pass in which no path took a read */
	uint64_t pull_left;		/* bytes to be read that are not yet asked for */
	bool put_refused;		/* a piece of the write that is coming in */
	uint8_t nput_key;		/* registrations that it has written to, */
	uint64_t put_key[LNX_RMA_TARGETS_MAX]; /* if any memory has a counter */

	/* Lists, each linked only when there is something to do. */
	struct lnx_node pump_link;	/* ep->pump_peers: frames to post */
	struct lnx_node detect_link;	/* ep->detect_list: paths to look after */
	struct lnx_node learn_link;	/* ep->learn_peers: hello to act on */
	struct lnx_rails *rails;	/* as it said; owned; NULL: as in the AV */
	struct lnx_node all_link;	/* ep->peers */
	struct lnx_peer *hash_next;	/* ep->by_eid */
	uint64_t failing_ns;		/* every send fails since; 0: they do not */
	uint64_t pong_ns;		/* its last PONG */
	uint64_t gap_ns;		/* tx_una is gap_seq since; 0: not looked */
	uint32_t gap_seq;
	uint64_t address_epoch;			/* key of its last hello (lnx_wire.h) */
	uint64_t hello_epoch;		/* of our last one, which it may not have; 0: it has */
	uint32_t hello_seq;
	uint32_t tell;			/* ep->rail, bits: it is to hear of their links */
	uint8_t wrong_endpoint;		/* paths, bits, at whose end is another */
	uint8_t lost;			/* paths, bits, of which `probing` is about */
	uint64_t alive_ns;		/* its host was asked last */
	bool asking;			/* about the whole peer (tx/detect.h) */
	uint64_t stalled_ns;		/* so long only its hosts have answered */
	uint32_t npull;			/* of its large messages and writes */
};
static_assert(offsetof(struct lnx_peer, slot) == 64 &&
	      offsetof(struct lnx_peer, seq) == 128 &&
	      offsetof(struct lnx_peer, rx_bytes) == 192,
	      "four lines of a peer for a frame, and one of its path");

/* Has it acknowledged anything? */
static inline bool lnx_peer_acked(const struct lnx_peer *peer)
{
	return !(peer->tx_flags & LNX_TX_NO_ACK_YET);
}

/* Do frames wait to be posted again? */
static inline bool lnx_peer_retransmits(const struct lnx_peer *peer)
{
	return (peer->tx_flags & LNX_TX_RETRANSMIT) != 0;
}

#endif
