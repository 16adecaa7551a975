/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail: one core domain and endpoint on one NIC (or shm), owned by one lnx endpoint,
 * because cores allow one peer SRX per domain.  The endpoint's owner lock guards all of
 * it.
 */
#ifndef LNX_RAIL_H
#define LNX_RAIL_H

#include "base/lines.h"
#include "base/list.h"
#include "base/pool.h"
#include "obj/cntr.h"
#include "obj/counts.h"
#include "obj/peer_abi.h"
#include "obj/link.h"
#include "policy/tx_credits.h"
#include "policy/health.h"
#include "fi.h"
#include "lnx_wire.h"
#include "wire/addr.h"

struct lnx_ep;
struct lnx_netwatch;
struct lnx_peer;
struct lnx_rail_driver;

/*
 * First member of everything that is passed to a core as a context.  The type routes
 * the completion.  The context of an error may be anything, so that it is looked up in
 * the pools first.
 */
enum lnx_op_type {
	LNX_OP_TXE = 1,			/* a frame being sent */
	LNX_OP_RXBUF,			/* a receive buffer */
	LNX_OP_CHUNK,			/* a piece being pulled by fi_read */
	LNX_OP_READ,			/* a small read (rma/read.c) */
	LNX_OP_LEG,			/* what a leg to a gateway sends (rail/leg.c) */
	LNX_OP_PRIME,			/* the first frame of a standby rail (rail/prime.c) */
	LNX_OP_NTYPE,
};

struct lnx_op {
	uint8_t type;			/* enum lnx_op_type */
};

/* A buffer that takes one frame. */
struct lnx_rxbuf {
	struct lnx_op op;
	struct lnx_rail *rail;
	/* rail->bufs, of plain rails: no list that changes with each frame, which would
	 * touch the neighbours too. */
	struct lnx_node link;
	struct lnx_rxbuf *unposted;		/* the next of rail->unposted */
	uint8_t posted;			/* plain rail: the core has it; rail/posted.c */
	bool in_core;			/* peer rail: the core has the entry */
	bool kept;			/* an unexpected message or the window uses
					 * it */
	bool small;			/* of ep->eager.small_bufs; no core has it */
	void *big;			/* peer rail, a message to be dropped:
					 * scratch memory */
	size_t len;			/* of the frame, while it is kept */
	uint64_t due_ns;		/* held by a fault rule until then; it came over */
	struct lnx_rail *over;		/* that rail or leg */
	struct lnx_peer_entry pe;	/* peer rails */
	struct iovec iov;
	void *desc[4];
	_Alignas(64) uint8_t frame[];	/* ep->limits.rx_frame */
};

/* A rail that is not in our address: peers cannot name it. */
#define LNX_WIRE_INDEX_NONE	UINT16_MAX

/*
 * Direct rail: a counter of the endpoint, lent to the core for one kind.  Native rail:
 * the core has its own, whose growth rail/native.c adds to ours.
 */
struct lnx_rail_cntr {
	struct fid_peer_cntr peer;
	uint64_t ok, err;		/* of the core's own, added to ours so far */
	struct fid_cntr *core;		/* NULL: not lent */
	struct lnx_cntr *cntr;
	const struct lnx_rail *rail;
};

/* While set, during a call of ours, what the direct core counts is not the
 * application's; some of its completions are msg/confirm.c's; some are rma/copy.c's. */
#define LNX_MUTE_NOW	0x01u
#define LNX_MUTE_SOME	0x02u
#define LNX_MUTE_RMA	0x04u

/* The frame that lets a core make its buffers (rail/prime.c). */
struct lnx_rail_prime {
	struct lnx_op op;		/* first: the context */
	uint8_t state;			/* LNX_PRIME_* */
	_Alignas(8) uint8_t frame[128];
};
enum { LNX_PRIME_NOT, LNX_PRIME_IN_CORE, LNX_PRIME_DONE };

/* Connections that a rail has accepted and over which nothing has come (core/half_open.h). */
struct lnx_half_open {
	struct lnx_half_open_fd {
		int fd;
		unsigned ended;		/* looks that have found that it had ended */
		uint64_t cookie;	/* of the socket: SO_COOKIE */
	} *at;
	unsigned n, room;
};

struct lnx_rail {
	/* Used by each pass and each frame. */
	_Alignas(64)
	struct lnx_ep *ep;
	struct fid_ep *core_ep;
	struct fid_cq *core_cq;
	uint32_t poll_credits;			/* passes left in which it is polled
						 * every time */
	uint32_t busy;			/* our frames and reads that the core has */
	const struct lnx_rail_driver *driver;	/* of its kind (rail/rail.h) */
	uint8_t kind;			/* enum lnx_rail_kind */
	uint8_t prov;			/* enum lnx_prov_id */
	uint16_t group;
	uint16_t wire_index;		/* index in our address, never changes;
					 * network rails */
	uint8_t mute;			/* LNX_MUTE_*: completions are ours */
	bool mr_virt;			/* remote addresses are virtual */
	int32_t nposted;			/* without those of held; -1: one of them came */
	uint32_t want_posted;		/* rail/posted.c */
	uint32_t inject_size;
	uint32_t short_frame;		/* lnx_rel_short() injects frames up to this length;
					 * 0: it has no core endpoint now */
	uint32_t idle_polls;			/* polls since the last burst */
	uint32_t frame_max;		/* the longest frame it carries */
	/* Frames that its core has or that are not acknowledged (rel/tx_credits.h). */
	struct lnx_tx_credits credits;
	uint32_t credits_fast;		/* with fewer, one more may leave without asking;
					 * 0: ask */
	uint32_t credits_call;		/* with more in use, one that is given back does more:
					 * credits.most; 0 while frames wait */
	/* Operations of the application, and their payload.  Of a large one each rail
	 * counts the bytes that went over it.  Network rails only.  What the peer's core
	 * reads or writes by itself is not known here. */
	struct lnx_rail_traffic {
		uint64_t sends;		/* messages, writes and atomics */
		uint64_t send_length;
		uint64_t recvs;		/* messages, writes and atomics of peers */
		uint64_t reads;		/* of our own */
		uint64_t recv_length;	/* with what reads and atomics return */
	} traffic;
	uint64_t idle_ns;		/* last idle poll by comp/progress.c */
	uint64_t idle_seen;		/* so much traffic over shm was seen, */
	uint64_t moved_ns;		/* and when there was more than before */

	uint32_t credits_max;		/* limits: of its frames, and of those of one path */
	uint32_t peer_credits_max;	/* over it; 0: none (core/credits.h) */
	uint32_t n_delayed;		/* frames that wait for credits of it */
	struct lnx_node delayed;	/* lnx_path.delayed: whose peers wait for credits of
					 * it, in order */
	struct lnx_rxbuf *unposted;		/* to be posted later; the last one first */
	/* At the last look at those that are posted (lnx_posted_look): */
	uint32_t held;			/* kept by messages that do not end */
	uint32_t connections;		/* when all were kept so last; 0: none are */
	uint32_t seen;			/* others that were not posted since the look
					 * before, */
	uint32_t seen_new;		/* and that were */
	bool mr_prov_key;		/* the core picks keys */
	bool mr_endpoint;		/* registrations belong to an endpoint */
	bool no_cancel;			/* native: cancelling might crash the core
					 * (msg/rx_native.c) */
	struct lnx_node clones;		/* lnx_txe.link: still in the core, else
					 * finished */
	uint64_t reopened_ns;		/* or closed; 0: never (rel/detect.h) */
	bool closed;			/* closed until a peer can be reached by it */
	uint8_t unannounced;			/* opened anew without a way to
						 * announce it */
	uint16_t first_port;		/* its first port; 0: it has none */
	uint64_t moved_epoch;			/* ep->address.epoch since it has its
						 * present port */
	struct lnx_health health;
	/* What other processes said of it, and what they were told (core/health_board.h). */
	struct lnx_rail_board {
		uint64_t came;		/* a number that everything changes that comes */
		uint64_t told_ns;	/* the last time; 0: never */
		uint64_t heard_ns;	/* when what was trusted last was written */
		uint64_t heard_speed;
		uint32_t heard_pid;
		uint16_t heard, told;	/* health */
		bool told_fatal;
	} board;
	bool link_down;			/* comp/links.c */
	uint32_t ifindex;		/* 0: not known */
	struct lnx_netwatch *devwatch;	/* of its RDMA device, or NULL */
	bool devgone;			/* the device is gone: no more events */
	uint64_t key_top;		/* highest bit of our keys (core/mr.c) */
	struct lnx_node regs;		/* lnx_mr_reg.rail_link */
	struct lnx_peer **by_core;	/* core fi_addr -> peer; direct and native */
	size_t nby_core;
	struct lnx_node bufs;		/* plain: rxbufs posted, and free ones */
	struct lnx_rxbuf *drop_buf;		/* peer rail: takes what must be
						 * dropped */
	uint8_t *ctrl_buf;			/* direct rail: receives control
						 * messages and copies */
	uint64_t link_bps;		/* nominal; 0: unknown (core/nic.c) */
	uint32_t numa;			/* distance from the thread that opened it */
	struct lnx_rail *below;		/* the rail itself; of a leg (obj/gateway.h) the one
					 * that it sends over */

	struct fid_peer_cq peer_cq;
	struct fid_peer_srx peer_srx;
	struct lnx_rail_cntr cntr[LNX_CNTR_KINDS];
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_ep *srx;
	struct fi_info *info;
	/* core/open.c: */
	struct fi_ops_msg *enabled_calls; /* of a core endpoint that is enabled */
	struct lnx_rail *next_kept;
	bool unclosable;		/* fi_enable failed: it must stay */
	struct lnx_half_open half_open;
	struct lnx_rail_prime prime;
	int wait_fd;			/* of core_cq; -1 when it has none */
	char name[LNX_NAME_MAX * 2];	/* "tcp:eth0", for logs */
	struct lnx_counts counts;
	/* Credits that were set for this rail while it was open: not what the configuration
	 * file says.  LNX_CONFIG_UNSET: what parameters say (core/credits.h). */
	struct lnx_rail_credits {
		uint32_t credits, peer_credits;
	} own_credits;
	bool has_own_credits;
	_Alignas(uint64_t) uint8_t addr[64]; /* fi_getname; read as a sockaddr where it is one */
	size_t addrlen;
};

/* Is it a leg to a gateway? */
LNX_INLINE bool lnx_rail_is_leg(const struct lnx_rail *rail)
{
	return rail->below != rail;
}

/* The peer of that address of the core; NULL: it is not known. */
LNX_INLINE struct lnx_peer *lnx_rail_peer(const struct lnx_rail *rail, fi_addr_t core_addr)
{
	return lnx_likely(core_addr < rail->nby_core) ? rail->by_core[core_addr] : NULL;
}

static_assert(offsetof(struct lnx_rail, idle_polls) <= 64,
	      "what a pass and a frame look at is in one line");

#endif
