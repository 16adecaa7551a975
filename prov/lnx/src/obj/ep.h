/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint.  It owns rails, peers, matchers and everything lent to cores.  One
 * owner lock (base/lock.h) guards all of it.
 */
#ifndef LNX_EP_H
#define LNX_EP_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/interval.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/stats.h"
#include "base/timer.h"
#include "conf/conf.h"
#include "obj/link.h"
#include "fi.h"
#include "match/match.h"
#include "obj/av.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/ctl_gate.h"
#include "obj/domain.h"
#include "obj/peer.h"
#include "obj/rail.h"
#include "obj/rma.h"
#include "obj/up.h"
#include "policy/health.h"

#define LNX_IOV_MAX	4
#define LNX_INJECT_MAX	4096
/*
 * Completion levels that depend on the peer.  An inject has those of lnx_ep.tx_flags.
 */
#define LNX_LEVELS	(FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

struct lnx_shm_registry;
struct lnx_faults;
struct lnx_exit_monitor;
struct lnx_gateways;
struct lnx_netwatch;
struct lnx_thread;

/* A frame that belongs to no session of ours.  Its sender is told so (rel/session.h). */
struct lnx_misdirected {
	struct lnx_rail *rail;		/* the frame came over it */
	uint64_t src, dst;		/* of the frame */
	uint64_t why, data;		/* LNX_REFUSED_* */
	uint8_t path;			/* of the frame */
	uint64_t retry_ns;
	unsigned tries;
	struct lnx_addr_rail to;	/* where rail reaches the sender */
};
#define LNX_MISDIRECTED_MAX	32u

/* What is done now and then for an endpoint as a whole. */
enum lnx_due {
	LNX_DUE_REAP,			/* lnx_peers_reap */
	LNX_DUE_KEEPALIVE,		/* of the channels (lnx_rel_open); so are ADMIN,
					 * REFUSALS, RAILS, POLICY and GATEWAYS */
	LNX_DUE_LINKS,			/* lnx_links_look */
	LNX_DUE_ADMIN,			/* peers are told of weights again */
	LNX_DUE_REFUSALS,		/* senders without a session are told so */
	LNX_DUE_RAILS,			/* rails that are closed */
	LNX_DUE_POLICY,			/* peers that do not know new rules yet */
	LNX_DUE_GATEWAYS,		/* hellos to gateways */
	LNX_DUE_LOCAL,			/* lnx_local_exit_run */
	LNX_DUE_BACKLOG,		/* lnx_backlog_run */
	/* Armed nearly always, and late by a few hundred passes without harm: */
	LNX_DUE_QUIET,
	LNX_DUE_BOARD = LNX_DUE_QUIET,	/* lnx_health_board_run */
	LNX_DUE_POSTED,			/* lnx_posted_look */
	LNX_DUE_SWEEP,			/* sockets of cores: comp/timers.c */
	LNX_DUE_N,
};

/* When what is done now and then is due, in ns. */
struct lnx_ep_due {
	struct lnx_timers timers;	/* the set of these, and of the peers' */
	struct lnx_timer own[LNX_DUE_N]; /* see lnx_ep_due */
	/* What lnx_peer.look and lnx_peer.retry run; may call cores (lnx_rel_open). */
	void (*look)(struct lnx_timer *t, uint64_t now);
	void (*retry)(struct lnx_timer *t, uint64_t now);
	uint64_t looked_ns;		/* when they were checked last; */
	uint32_t looked_pass;		/* and in which pass */
	uint64_t away_ns;		/* the end of the last pause of more than
					 * LNX_LATENCY_AWAY_NS in that */
	uint64_t soon_ns;		/* what is due before that is checked often */
	uint64_t sweep_ns;		/* sockets: by then, if anything is due; */
	uint64_t sweep_gap_ns;		/* and the pause before that; */
	uint64_t sweep_soon_ns;		/* not before, whatever is new */
	uint64_t reap_ns;		/* peers whose session has ended: not before */
	uint8_t connects;		/* tries that are left in this pass (rel/pump.c) */
	uint64_t connect_ns;		/* another try to connect, if nothing is reserved; */
	uint64_t connect_gap_ns;	/* and from one to the next (rel/pump.c) */
	uint64_t board_ns;		/* the health board: not before */
	uint64_t unanswered_ns;		/* connections that hang: not before */
};

/* Our address, as peers see it. */
struct lnx_ep_address {
	uint8_t raw[LNX_ADDR_BYTES];
	uint64_t epoch;			/* 1 + number of changes of it */
	bool more;			/* it has not all rails: hellos do */
	bool changed;			/* it differs from what peers may have inserted */
	struct lnx_addr *want;		/* what fi_setname asked for, or NULL */
};

/* All peers. */
struct lnx_ep_peers {
	struct lnx_node all;
	struct lnx_node ended;		/* lnx_peer_session.ended_link: first those that are
					 * DETACHED */
	uint32_t n;
	uint32_t rr_seed;		/* peers that joined so far: spreads them over
					 * equal paths */
	uint32_t n_unsolicited;		/* those that are in no AV, of all, and never were */
	uint32_t n_in_av;		/* so many that the keepalive looked at last, in turn,
					 * need none */
};

/* Frames that belong to no session of ours, and what HELLOs must show (rel/session.h). */
struct lnx_ep_refusals {
	struct lnx_misdirected to_send[LNX_MISDIRECTED_MAX];
	unsigned n;
	uint64_t unproven_ns;		/* until when those without a right hash have used
					 * what they may */
	uint64_t hello_nonce;		/* what HELLOs must have; 0: none is chosen */
	/* Sessions that this end gave up with peers that it has forgotten since; by index
	 * modulo LNX_GIVEN_UP_MAX.  NULL: none.  Their senders may still be in them. */
	uint64_t *given_up;
	uint32_t n_given_up;		/* so far */
	bool key_warned;		/* the job keys differ: warning given */
};
#define LNX_GIVEN_UP_MAX	1024u

/* Sensors of links, and interfaces that may appear (comp/links.h). */
struct lnx_ep_links {
	struct lnx_netwatch *netwatch;	/* NULL: links are not watched */
	uint64_t watch_until_ns;	/* links are checked until then, in any case */
	bool several;			/* a peer has, or had, several paths */
	bool asleep;			/* a thread sleeps, and is woken by events */
	uint64_t hotplug_ns;		/* no search for more rails before */
	bool hotplug;			/* there may be more rails */
};

/* Health and weights that were set by hand (rel/admin.h). */
struct lnx_ep_admin {
	bool any;			/* one was ever set */
	uint32_t told;			/* bits of rails: peers were last told to avoid
					 * them */
};

/* Rules of the user about paths (core/policy.h, rel/order.h). */
struct lnx_ep_policy {
	struct lnx_nets *nets;		/* owned; NULL: those of providers only */
	struct lnx_rules *rules;	/* owned; NULL: there was none yet */
	struct lnx_rules_sweep sweep;	/* renews the tables of peers */
	struct lnx_gateways *gateways;	/* owned; NULL: there are no routes
					 * (obj/gateway.h) */
	uint32_t generation;		/* of all that the order of paths depends on;
					 * never 0 */
	bool sweeping;			/* rules or rails have changed, and not all peers
					 * know */
	bool limited;			/* a rail has, or had, a limit of frames
					 * (rel/tx_credits.h) */
};

/* Large sends and writes that peers read (msg/rndv.c). */
struct lnx_ep_rndv {
	struct lnx_optab ops;		/* lnx_rndv, by their number on the wire */
	struct lnx_node announced;	/* lnx_rndv.link: not yet pulled */
	struct lnx_node revoked;	/* of peers given up: cores may still read them */
	struct lnx_node dead;		/* ended, registrations not yet closed */
};

/* Large frames: what their receiver may have to store, and those whose sends wait for the
 * peer or a copy (rel/keep.c). */
struct lnx_ep_eager {
	struct lnx_credit_pool pool;
	struct lnx_node keep;		/* lnx_txe.f.link */
	uint32_t keep_pass;		/* pass in which the first of them joined */
	struct lnx_pool sends;		/* msg/parts_send.c */
	struct lnx_pool small_bufs;	/* lnx_rxbuf for frames of LNX_FRAME_MAX, to keep
					 * them in */
	uint32_t n_held_bufs;		/* buffers that stored messages are in */
};

/* Messages that no receive matches (msg/unex.h, msg/backlog.h). */
struct lnx_ep_backlog {
	struct lnx_backlog sum;		/* of those that came in frames */
	struct lnx_arena kept;		/* the compact ones */
	struct lnx_node throttled;	/* lnx_peer_throttle.link: peers */
	uint64_t look_gap_ns;		/* from one look at these to the next */
	uint64_t peeked_src;		/* FI_PEEK has found nothing from there since the last
					 * look, */
	bool peeked;			/* if this is set */
};

/* What is bound to the endpoint, beside the queues of the data path. */
struct lnx_ep_bound {
	struct lnx_node domain_link;	/* domain->eps, while enabled */
	struct lnx_node av_link;	/* av->eps */
	struct lnx_eq *eq;
	struct lnx_ep_link tx_link;
	struct lnx_ep_link rx_link;
	struct lnx_ep_link cntr_link[LNX_CNTR_KINDS];
	struct lnx_cq *null_cq;		/* for operations that report to no CQ */
	uint64_t tx_flags;		/* flags of the CQ and counter binds */
	uint64_t rx_flags;
	struct lnx_inject_ops *inject;	/* api/inject.c, owned; or NULL */
};

/* A shared receive context and the endpoints that use it. */
struct lnx_ep_shared {
	struct lnx_ep *owner;		/* ep->srx, still set while that closes */
	struct lnx_node link;		/* owner->shared.users */
	struct lnx_node users;		/* of a shared receive context: its endpoints, */
	uint32_t n_users;		/* and those that are still closing */
};

/* Large transfers: only those that have something to do cost a pass anything. */
struct lnx_ep_pulls {
	struct lnx_node due;		/* lnx_pull_links.due */
	uint64_t runs;			/* how often one was run */
};

/* Messages up to these lengths, in bytes, and numbers of frames. */
struct lnx_ep_limits {
	uint32_t window;
	uint32_t tx_size;		/* frames that may be queued for one peer */
	uint32_t eager;
	uint32_t copy;
	uint32_t short_max;		/* messages up to this size are below every
					 * limit */
	uint32_t rx_frame;		/* longest frame that rxbufs have room for */
	size_t max_msg_size;
};

struct lnx_ep_poll {
	uint32_t pass;
	uint32_t idle_mask;		/* conf->poll_idle, rounded up, less 1 */
	uint64_t ticks;			/* lnx_clock_ticks of the last one that was timed so */
	uint32_t watch_pass;		/* the last one in which, with nothing due, */
	bool watch_idle;		/* LNX_DUE_LOCAL was asked for */
};

/* A region that the shm core knows, of a name whose endpoints take turns (core/open.h).
 * It stays known when another one takes its turn, and has the same number when it is that
 * one's turn again. */
struct lnx_shm_turn {
	struct lnx_shm_turn *next;
	uint64_t eid;
	unsigned turn;
	fi_addr_t core;
};

/* This node: what goes through shared memory, and the processes behind it. */
struct lnx_ep_local {
	struct lnx_node queued_peers;
	struct lnx_node fetches;	/* lnx_rxe.link: local reads to do */
	struct lnx_node copies;		/* lnx_rxe.link: waiting for copies instead */
	struct lnx_node copied;		/* lnx_rndv.copy_link: copies to send */
	struct lnx_node answers;	/* lnx_answer.link: of msg/confirm_answer.c */
	struct lnx_node rma_failed;	/* lnx_confirm.link: to be repeated as copies,
					 * when the core has no others to that peer */
	struct lnx_node to_tell;	/* lnx_confirm.link: of msg/confirm.c: control
					 * messages to send */
	struct lnx_node nameless;	/* lnx_unex.of_peer: as peer->stored, for
					 * senders that the shm core cannot name */
	struct lnx_rndv *spare_rndv;	/* for a push that the core cannot take all of
					 * now; owned, or NULL */
	uint32_t npushed;		/* pushes that come */
	uint32_t nconfirm;		/* operations that wait, of all peers */
	uint32_t ntell_later;		/* one is due when the core is done */
	uint32_t nrma_core;		/* reads and large writes in the shm core, */
	uint32_t rma_seq;		/* and the number of the next one */
	struct lnx_optab copy_ops;	/* lnx_rxe of `copies`, by their number */
	struct lnx_pool confirm_pool;
	struct lnx_shm_registry *registry; /* of the shm rail; NULL: it has none */
	uint32_t slots_taken;		/* of that, after dead peers were last looked for */
	struct lnx_shm_turn *turns;
	struct lnx_ep *next_here;	/* core/kept_region.c */
	struct lnx_exit_monitor *exit_monitor;	/* NULL: exits are not reported */
	uint64_t cookie;		/* eid while shm is open; peers may read it */
	uint64_t watch_ns;		/* local peers are checked no sooner */
	uint64_t probe_ns;		/* and those whose exits are not reported */
	uint32_t user;			/* owner of the shm rail's region */
	uint8_t turn;			/* of that region's name; 0: it has none */
	uint8_t round;			/* number of the last check of all those, less its
					 * high bits */
	int pid;			/* of the process that enabled it */
	bool unknown_source;		/* shm had a message whose sender it does not
					 * know */
	/* It has the operations that the shm core will not complete, in shm.nflight; of a
	 * peer it has nothing else (rma/copy.h). */
	struct lnx_peer lost;
};

/*
 * struct lnx_ep is also a shared receive context: of class FI_CLASS_SRX_CTX and never
 * enabled.  That one has matchers, and entries for the receives posted to it, but no
 * rails, peers or CQs.  Messages that wait for its receives are stored in its matchers,
 * as entries of the endpoint that received them.
 */
/* Hot members come first, one cache line for each direction; 64-byte aligned. */
struct lnx_ep {
	struct fid_ep fid;
	struct lnx_lock lock;

	/* Hot: send. */
	_Alignas(64)
	struct lnx_rail *shm;		/* the direct rail or NULL */
	struct lnx_peer ***peer_tab;	/* [index >> BITS][index], by fi_addr */
	uint32_t npeer_chunk;
	size_t inject_size;
	uint64_t tx_flags;		/* of calls without a flags argument */
	uint64_t tx_msg_flags;		/* added to those of fi_*msg calls */
	struct lnx_cq *tx_cq;
	struct lnx_cq *rx_cq;

	/* Hot: receive. */
	uint64_t rx_flags;
	uint64_t rx_msg_flags;
	struct lnx_pool rxe_pool;
	bool directed;			/* FI_DIRECTED_RECV: receives match a source */
	bool enabled;
	bool closing;
	bool want_wait;			/* network CQs need wait descriptors */
	uint32_t work;			/* deferred lists that are not empty */

	/* Hot: progress. */
	struct lnx_ep_poll poll;
	bool saw;			/* FI_ORDER_SAW: messages after writes */
	uint32_t nread_here;		/* large sends of ours that peers may be
					 * reading */
	uint32_t ack_every;		/* conf->ack_every */
	uint32_t nrail;
	uint32_t nnet;			/* network rails: rail[nrail - nnet ...] */
	uint32_t nreserve;		/* entries of reserve */
	uint32_t nbuf_reserve;		/* entries of buf_reserve */
	uint32_t buf_reserve_min;	/* with fewer, progress stops receiving */
	struct lnx_rail *rail[LNX_RAILS_MAX];

	/* Hot: frames and counted completions. */
	_Alignas(64)
	struct lnx_cntr *cntr[LNX_CNTR_KINDS];	/* NULL: not counted */
	uint64_t eid;
	struct lnx_peer *last_from;	/* sender of the last frame; NULL: none */

	_Alignas(64)
	struct lnx_ep_limits limits;
	struct lnx_node ack_list;	/* a deferred list, as those below */
	struct lnx_faults *fault;	/* NULL except in tests (rail/faults.h) */
	uint32_t poll_credits;		/* conf->poll_credits */
	uint32_t by_eid_mask;

	_Alignas(64)
	struct lnx_peer **by_eid;	/* hash of peers; and one by rx_sid, */
	struct lnx_peer **by_sid;	/* of the same size */
	struct lnx_pool txe_pool[4];	/* by frame size: LNX_TXE_SMALL, … */

	_Alignas(64)
	struct lnx_stats stats;		/* hot ones first */
	struct lnx_match tag;
	struct lnx_match msg;
	struct lnx_ep_backlog backlog;

	/* Deferred work: what must not be done inside a core's callback. */
	struct lnx_node pump_peers;
	struct lnx_node learn_peers;
	struct lnx_ep_pulls pulls;
	struct lnx_node deferred;	/* lnx_rxe.link: large, left in the core */
	struct lnx_ep_due due;
	struct lnx_ep_address address;
	struct lnx_ep_peers peers;
	struct lnx_ep_refusals refusals;
	struct lnx_ep_links links;
	struct lnx_ep_admin admin;
	struct lnx_ep_policy policy;
	struct lnx_ep_rndv rndv;
	struct lnx_ep_eager eager;
	struct lnx_rma_side rma;
	struct lnx_ep_local local;
	size_t ooo_bytes;		/* in peers' chan.rx.ooo */

	struct lnx_pool rxbuf_pool;
	struct lnx_pool chunk_pool;
	struct lnx_node reserve;	/* rxes kept for when memory is short */
	struct lnx_node buf_reserve;	/* the same for frame buffers */
	struct lnx_node owned;		/* rxe.link: own memory, on no other list */
	size_t min_multi_recv;
	const struct lnx_up *up;	/* calls to higher layers */
	const struct lnx_conf *conf;
	struct lnx_health_plan plan;	/* from conf */

	struct lnx_domain *domain;
	struct lnx_av *av;
	struct fi_info *info;
	struct lnx_ep_bound bound;
	bool native;			/* all rails are native (obj/link.h) */
	bool meets_all;			/* cores know peers as soon as they are
					 * inserted */
	bool leaving;			/* out of domain->eps: gets no new core MRs */
	bool look_soon;			/* a thread sleeps, and some rails have no
					 * descriptors */
	struct lnx_ep *srx;		/* whose receives it takes; NULL: its own */
	struct lnx_ep_shared shared;
	struct lnx_thread *thread;
	struct lnx_ctl_gate ctl;
};
static_assert(offsetof(struct lnx_ep, rx_flags) % 64 == 0 &&
	      offsetof(struct lnx_ep, poll) % 64 == 0 &&
	      offsetof(struct lnx_ep, limits) % 64 == 0,
	      "send, receive, progress and frames have lines of their own");

/* Bits of ep->work; each stands for a list that progress handles. */
#define LNX_WORK_ACK	0x01u
#define LNX_WORK_PUMP	0x02u
#define LNX_WORK_PULL	0x04u
#define LNX_WORK_DEFER	0x08u
#define LNX_WORK_BUFS	0x20u
#define LNX_WORK_MR	0x40u
#define LNX_WORK_LEARN	0x80u
#define LNX_WORK_DIRECT	0x100u
#define LNX_WORK_MATCH	0x200u
#define LNX_WORK_RMA	0x400u
#define LNX_WORK_ACK_PENDING	0x800u		/* as ACK, not yet due */
#define LNX_WORK_FETCH	0x1000u
#define LNX_WORK_FAULT	0x4000u
#define LNX_WORK_COPY	0x10000u
#define LNX_WORK_TIMER	0x20000u	/* ep->due.timers, but for the quiet ones */
#define LNX_WORK_CONFIRM 0x40000u
#define LNX_WORK_KEEP	0x80000u
#define LNX_WORK_CREDITS 0x100000u	/* rail->delayed */
/* Those that progress handles only now and then. */
#define LNX_WORK_SLOW	(LNX_WORK_ACK_PENDING | LNX_WORK_TIMER)
#define LNX_SLOW_PASSES	16u

/* Run timer t, of ep or of one of its peers, at at_ns, or before if it is armed already. */
LNX_INLINE void lnx_ep_arm_by(struct lnx_ep *ep, struct lnx_timer *t, uint64_t at_ns)
{
	if (lnx_timer_at(&ep->due.timers, t) <= at_ns)
		return;
	lnx_timer_arm(&ep->due.timers, t, at_ns);
	ep->work |= LNX_WORK_TIMER;
}

/* The same for the endpoint's own.  Without other work the quiet ones are looked at in every
 * LNX_SLOW_PASSES-th pass, and no pass pays for them. */
LNX_INLINE void lnx_ep_due(struct lnx_ep *ep, enum lnx_due which, uint64_t at_ns)
{
	struct lnx_timer *t = &ep->due.own[which];

	if (which < LNX_DUE_QUIET)
		lnx_ep_arm_by(ep, t, at_ns);
	else if (lnx_timer_at(&ep->due.timers, t) > at_ns)
		lnx_timer_arm(&ep->due.timers, t, at_ns);
}

/* Is any timer armed that is not quiet? */
LNX_INLINE bool lnx_ep_has_due(const struct lnx_ep *ep)
{
	uint32_t n = ep->due.timers.n;
	unsigned i;

	for (i = LNX_DUE_QUIET; i < LNX_DUE_N; i++)
		n -= lnx_timer_armed(&ep->due.own[i]);
	return n;
}

/* Defines what the endpoint's timer of `which` runs: `run`, an expression of ep and now, does
 * what is due and is when it is to be done again. */
#define LNX_DUE_RUNS(name, which, run)					\
	static void name(struct lnx_timer *t, uint64_t now)		\
	{								\
		struct lnx_ep *ep = lnx_container_of(t, struct lnx_ep,	\
						     due.own[which]);	\
									\
		lnx_ep_due(ep, which, run);				\
	}

/* Look at the links from now on, while any peer is looked at. */
LNX_INLINE void lnx_ep_watch_links(struct lnx_ep *ep)
{
	if (lnx_unlikely(ep->links.netwatch != NULL) &&
	    !lnx_timer_armed(&ep->due.own[LNX_DUE_LINKS]))
		lnx_ep_due(ep, LNX_DUE_LINKS, ep->due.looked_ns +
			   (ep->links.several ? LNX_LINKS_SEVERAL_NS : LNX_LINKS_ONE_NS));
}

/* Look at peer at that time, or before; 0: as soon as possible. */
LNX_INLINE void lnx_peer_look_by(struct lnx_peer *peer, uint64_t at_ns)
{
	lnx_ep_arm_by(peer->ep, &peer->look, at_ns);
	lnx_ep_watch_links(peer->ep);
}

/* A path may be tried again now: if frames to peer wait for that. */
LNX_INLINE void lnx_peer_retry_now(struct lnx_peer *peer)
{
	if (lnx_timer_armed(&peer->retry))
		lnx_ep_arm_by(peer->ep, &peer->retry, 0);
}

/* Let progress post what waits for peer. */
LNX_INLINE void lnx_peer_pump(struct lnx_peer *peer)
{
	if (!lnx_list_linked(&peer->pump_link))
		lnx_list_add_tail(&peer->ep->pump_peers, &peer->pump_link);
	peer->ep->work |= LNX_WORK_PUMP;
}

/* Something has changed for all large transfers of peer, or time has passed: let progress run
 * them (msg/pull.c).  Those of other peers cost nothing. */
LNX_INLINE void lnx_peer_pull(struct lnx_peer *peer)
{
	struct lnx_pull_links *first;

	if (lnx_list_empty(&peer->pull.all))
		return;
	first = lnx_list_entry(peer->pull.all.next, struct lnx_pull_links, of_peer);
	peer->pull.every = true;
	if (!lnx_list_linked(&first->due))
		lnx_list_add_tail(&peer->ep->pulls.due, &first->due);
	peer->ep->work |= LNX_WORK_PULL;
}

/* An operation waits for peer, or something is due from it: look at it from now on, so that its
 * end is noticed.  To be called if it is not peer->watched. */
void lnx_peer_watch(struct lnx_peer *peer);

/* As many frames of peer came as may wait for an acknowledgement, or the first one: progress
 * is to acknowledge them. */
void lnx_peer_join_ack_list(struct lnx_peer *peer);

/* A frame of peer's sequence came: let progress acknowledge it, soon or with others. */
LNX_INLINE void lnx_peer_ack_later(struct lnx_peer *peer)
{
	if (lnx_unlikely(lnx_chan_owe_ack(&peer->chan)))
		lnx_peer_join_ack_list(peer);
}

LNX_INLINE void lnx_peer_ack_at_once(struct lnx_peer *peer)
{
	lnx_peer_ack_later(peer);
	peer->chan.ack_now = true;
	peer->ep->work |= LNX_WORK_ACK;
}

/* What peer may send has changed, credit for large frames or how many messages may begin: let
 * progress tell it at once, with an acknowledgement. */
LNX_INLINE void lnx_peer_tell(struct lnx_peer *peer)
{
	if (!lnx_peer_dead(peer) && !peer->ep->closing)
		lnx_peer_ack_at_once(peer);
}

/*
 * Deadlines advance only while they are checked.  A process that computes between two
 * calls has not seen a peer fail: no connection was made meanwhile because it did not
 * try.  *since_ns is the start of a deadline; of the time since the last check, at most
 * LNX_LOOK_COUNTS_NS counts.
 */
LNX_INLINE void lnx_ep_later(const struct lnx_ep *ep, uint64_t *since_ns, uint64_t now)
{
	uint64_t seen_ns = LNX_MAX(*since_ns, ep->due.looked_ns);

	if (*since_ns && lnx_ns_since(now, seen_ns) > LNX_LOOK_COUNTS_NS)
		*since_ns += now - seen_ns - LNX_LOOK_COUNTS_NS;
}

/* Something of a local peer is outstanding: does its process live? */
LNX_INLINE void lnx_ep_watch_local(struct lnx_ep *ep)
{
	if (lnx_unlikely(!lnx_timer_armed(&ep->due.own[LNX_DUE_LOCAL])))
		lnx_ep_due(ep, LNX_DUE_LOCAL, ep->local.watch_ns);
}

/* ---- paths ---- */

/* Is a frame posted over it without asking when it may be tried again? */
LNX_INLINE bool lnx_path_usable(const struct lnx_path *path)
{
	return path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE;
}

LNX_INLINE bool lnx_path_link_down(const struct lnx_path *path)
{
	return path->rail->link_down || path->detect.remote_down || path->detect.withdrawn;
}

/* Are the paths of peer checked, so that they may fail over? */
LNX_INLINE bool lnx_peer_detects(const struct lnx_peer *peer)
{
	return peer->npath > 1 && peer->ep->plan.step[LNX_CLASS_OK];
}

/* ---- core/peer*.c: peers of an endpoint.  Owner lock held. ---- */

/* Make (or find) the peer of AV index addr.  NULL with *err: -FI_EINVAL (no such
 * address), -FI_ENOMEM. */
LNX_COLD struct lnx_peer *lnx_peer_make(struct lnx_ep *ep, fi_addr_t addr,
					int *err);
/* A sender that is in no AV, from the address in its hello.  NULL when memory is short,
 * or there are too many. */
LNX_COLD struct lnx_peer *lnx_peer_unsolicited(struct lnx_ep *ep,
					    const struct lnx_addr *a);
/* Peer is the next session after that with before: take over what both ends know about
 * each other's rails.  Calls cores. */
LNX_COLD void lnx_peer_inherit(struct lnx_peer *peer, const struct lnx_peer *before);
/* The peer with that endpoint id: known, or made from the AV; or NULL. */
struct lnx_peer *lnx_peer_by_eid(struct lnx_ep *ep, uint64_t eid);
/* The peer with that session id, or NULL. */
struct lnx_peer *lnx_peer_by_sid(const struct lnx_ep *ep, uint64_t sid);
/* The same for the sender of a frame, which often also sent the last one. */
LNX_INLINE struct lnx_peer *lnx_peer_from(struct lnx_ep *ep, uint64_t sid)
{
	struct lnx_peer *peer = ep->last_from;

	if (lnx_likely(peer && peer->rx_sid == sid))
		return peer;
	peer = lnx_peer_by_sid(ep, sid);
	ep->last_from = peer;
	return peer;
}
/* The peer's session id, of a session that began at stamp.  Once for each peer. */
void lnx_peer_pair(struct lnx_peer *peer, uint64_t sid, uint64_t stamp);
/* Neither id leads to peer any more.  Once for each peer. */
LNX_COLD void lnx_peer_unhash(struct lnx_peer *peer);
/* The session has ended: lnx_peers_reap is to free peer once it is not needed. */
void lnx_peer_ended(struct lnx_peer *peer);
/* May another session with peer, which is DEAD, begin? */
bool lnx_peer_may_begin(const struct lnx_peer *peer, uint64_t now);
/*
 * Another session begins.  From now on neither ids nor the address lead to peer.  What
 * is outstanding ends by progress with FI_ECONNRESET, if it has not ended yet.  Calls no
 * core.
 */
LNX_COLD void lnx_peer_detach(struct lnx_peer *peer);
/* Detach and free the peers whose session ended and that are not needed: LNX_DUE_REAP.
 * Returns when to call it again.  Calls cores. */
LNX_COLD uint64_t lnx_peers_reap(struct lnx_ep *ep, uint64_t now);
/* Is sid one of the last LNX_GIVEN_UP_MAX sessions of peers in no AV that this end gave up? */
LNX_COLD bool lnx_peer_was_given_up(const struct lnx_ep *ep, uint64_t sid);
/* The AV lost (addr), or gained, an address that this endpoint may know already. */
void lnx_peer_av_removed(struct lnx_ep *ep, fi_addr_t addr);
int lnx_peer_av_inserted(struct lnx_ep *ep, fi_addr_t addr,
			 const struct lnx_addr *a);
void lnx_peers_destroy(struct lnx_ep *ep);
/*
 * Insert peer into the shm core, so that it can be answered there.  False: that failed.
 */
bool lnx_peer_meet(struct lnx_peer *peer);
/*
 * The HELLO of an endpoint that has peer's name came over shared memory.  If it is of
 * another process, or life, than peer, peer ends, and another one takes its place; else
 * nothing happens.  Calls no core: it may be called from inside one.
 */
LNX_COLD void lnx_peer_shm_renew(struct lnx_peer *peer);
/* Make the paths to peers whose hello came; greet is called for each such peer. */
void lnx_peers_join(struct lnx_ep *ep, void (*greet)(struct lnx_peer *peer));
/* A rail has been added: make paths to all peers that it leads to. */
void lnx_peers_extend(struct lnx_ep *ep);
/* All rails of peer that we know, from its hello or the AV.  False: none. */
bool lnx_peer_rails(const struct lnx_peer *peer, struct lnx_rails *r);
/* Those in the AV.  False: it is not there. */
bool lnx_peer_av_rails(const struct lnx_peer *peer, struct lnx_rails *r);
/* Take what a hello says about its sender.  0, or -FI_ENOMEM: nothing was taken. */
int lnx_peer_learn(struct lnx_peer *peer, const struct lnx_addr *a,
		   const struct lnx_rails *all);

/* Fast look-up for sends; NULL when it has to be made or addr is bad. */
LNX_INLINE struct lnx_peer *lnx_peer_get(const struct lnx_ep *ep,
					 fi_addr_t addr)
{
	uint64_t chunk = addr >> LNX_AV_CHUNK_BITS;

	if (lnx_unlikely(chunk >= ep->npeer_chunk) || !ep->peer_tab[chunk])
		return NULL;
	return ep->peer_tab[chunk][addr & (LNX_AV_CHUNK - 1)];
}

/* A pass, and one that polls everything, from below comp/. */
LNX_INLINE void lnx_obj_progress(struct lnx_ep *ep)
{
	ep->up->progress(ep);
}

LNX_INLINE void lnx_obj_progress_all(struct lnx_ep *ep)
{
	ep->up->progress_all(ep);
}

/* Operations to peer take the fast path, except while some are queued, or while all of
 * them need more than the core offers (msg/confirm.h). */
LNX_INLINE void lnx_peer_set_direct(struct lnx_peer *peer)
{
	peer->direct = peer->shm.nqueued ||
		       (peer->ep->tx_flags & FI_DELIVERY_COMPLETE) ?
		       FI_ADDR_NOTAVAIL : peer->shm_addr;
	peer->shm.direct_read = peer->shm.reaches && !peer->ep->local.lost.shm.nflight ?
			    peer->direct : FI_ADDR_NOTAVAIL;
	peer->shm.direct_write = peer->shm.nflight ? FI_ADDR_NOTAVAIL : peer->direct;
}

/* Until lnx_peer_set_direct no operation takes the fast path. */
LNX_INLINE void lnx_peer_clear_direct(struct lnx_peer *peer)
{
	peer->direct = FI_ADDR_NOTAVAIL;
	peer->shm.direct_read = peer->shm.direct_write = FI_ADDR_NOTAVAIL;
}

/*
 * An operation of ep has ended, well or in error.  To be called once for each
 * operation, also when its completion is not reported.  Does nothing when no counter is
 * bound.
 */
LNX_INLINE void lnx_cntr_ok(struct lnx_ep *ep, enum lnx_cntr_kind kind)
{
	lnx_cntr_add_ok(ep->cntr[kind]);
}

LNX_INLINE void lnx_cntr_err(struct lnx_ep *ep, enum lnx_cntr_kind kind)
{
	lnx_cntr_add_err(ep->cntr[kind]);
}

/* The counter of an operation with these completion flags. */
static inline enum lnx_cntr_kind lnx_cntr_of_op(uint64_t cq_flags)
{
	return cq_flags & FI_SEND ? LNX_CNTR_SEND :
	       cq_flags & FI_READ ? LNX_CNTR_READ : LNX_CNTR_WRITE;
}

/* An operation of ep that is reported has failed: an error entry, and one more failure on
 * its counter. */
LNX_COLD void lnx_ep_op_failed(struct lnx_ep *ep, void *context, uint64_t cq_flags, int err,
			       int prov_errno);

/* How many sends with these flags may be queued for a peer. */
static inline uint32_t lnx_ep_queue_max(const struct lnx_ep *ep, uint64_t flags)
{
	return flags & (FI_INJECT | FI_COMPLETION) ? ep->limits.tx_size :
						     2 * ep->limits.tx_size;
}

#endif
