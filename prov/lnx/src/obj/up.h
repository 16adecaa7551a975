/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls from a layer to one above it: the only way up.  One constant table
 * (comp/up.c), given to each endpoint when it is opened.  Owner lock held.
 */
#ifndef LNX_UP_H
#define LNX_UP_H

#include "obj/rail.h"

struct lnx_hdr;
struct lnx_path;
struct lnx_peer;
struct lnx_route_pull;
struct lnx_tx_group;
struct lnx_txe;

/* An operation that a core had, by its type (enum lnx_op_type).  These call no core. */
struct lnx_op_up {
	void (*done)(struct lnx_op *op);
	/* The core failed something, err->op_context, which may be anything, even an
	 * operation that was over long ago.  False: it is none of this type. */
	bool (*failed)(struct lnx_rail *rail, const struct fi_cq_err_entry *err);
};

/* What became of a frame. */
enum lnx_sent {
	LNX_SENT_LEFT,
	LNX_SENT_FAILED,		/* its peer was given up */
	LNX_SENT_CLOSED,		/* the endpoint closes: nothing is reported any more */
};

struct lnx_up {
	/* ---- rail/ ---- */

	/* A frame of len bytes came in over rail.  True: buf is kept.  Calls no core. */
	bool (*frame)(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len);
	struct lnx_op_up op[LNX_OP_NTYPE];

	/* ---- rel/ ---- */

	/*
	 * A frame that is next in order, with its payload of len bytes, other than those
	 * of the channel itself.  1: buf was kept; 0: it is free; negative: not handled,
	 * counts as not received.  Calls no core.
	 */
	int (*deliver)(struct lnx_peer *peer, const struct lnx_hdr *h,
		       struct lnx_rxbuf *buf, size_t len);
	/* A frame with txe->rxe has left for the first time, or never will. */
	void (*sent)(struct lnx_txe *txe, enum lnx_sent how);
	/* No frame of the group needs the application's buffer any more. */
	void (*group_over)(struct lnx_tx_group *group);
	/* The session has ended: everything to and from peer ends with err. */
	void (*peer_failed)(struct lnx_peer *peer, int err);
	/* path is DOWN: what it was to bring is to come over others. */
	void (*path_down)(struct lnx_path *path);
	/* Its core endpoint is closed: operations that it did not report are over. */
	void (*path_cut)(struct lnx_path *path);

	/* ---- routed paths: rail/leg.c and rail/routed_read.c ---- */

	/* As fi_read into buf, for an operation that is op. */
	ssize_t (*routed_read)(struct lnx_rail *leg, void *buf, size_t len,
			       struct lnx_op *op);
	/* What op reads, and over which path.  False: it is to take another way. */
	bool (*routed_what)(struct lnx_op *op, struct lnx_path **path, struct lnx_peer **peer,
			    struct lnx_route_pull *what);
	/* Our memory that peer asks for, or NULL. */
	const void *(*routed_source)(struct lnx_peer *peer, const struct lnx_route_pull *what);

	/* ---- core/ ---- */

	/* The address of a peer became known, changed, or was removed. */
	void (*source_changed)(struct lnx_peer *peer);
	/* Tell peer, which is about to be used over shared memory, that our endpoint may
	 * be the next one of its name.  Calls no core. */
	void (*greet_local)(struct lnx_peer *peer);
	/* Handle what the direct core has, before what it is from is forgotten. */
	void (*poll_direct)(struct lnx_ep *ep);

	/* ---- anything that waits ---- */

	/* A pass (comp/progress.c); and one that polls everything, even if idle. */
	void (*progress)(struct lnx_ep *ep);
	void (*progress_all)(struct lnx_ep *ep);
};

#endif
