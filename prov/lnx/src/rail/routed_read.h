/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads of a peer's memory over gateways, which no core can do: the reader asks with PULLs,
 * again if nothing comes, and the peer answers with PIECEs (lnx_wire_route.h).  Both are
 * outside the sequence.  What is not wanted, or has come already, is dropped, so that
 * nothing is written into a buffer whose read has ended.  Owner lock held.
 */
#ifndef LNX_ROUTED_READ_H
#define LNX_ROUTED_READ_H

#include "obj/gateway.h"

struct lnx_hdr;

/* Bytes that fit any frame.  Where frames are longer, several of these units come in one. */
#define LNX_ROUTED_UNIT		((size_t)LNX_PAYLOAD_MAX)
#define LNX_ROUTED_LONGEST \
	((LNX_PAYLOAD_LARGE - LNX_ROUTE_HEAD) / LNX_ROUTED_UNIT * LNX_ROUTED_UNIT)
/* Units that a PULL asks for. */
#define LNX_ROUTED_RUN		4u
#define LNX_ROUTED_RUN_LONG	48u
/* PULLs of peers that wait, each for LNX_ROUTED_PULL_NS; and pieces that the core of a leg may
 * have. */
#define LNX_ROUTED_PULLS	1024u
#define LNX_ROUTED_PIECES	16u

/* ep->up->routed_read: 0, -FI_EAGAIN, -FI_ENOMEM; -FI_ENOSYS: not such an operation. */
ssize_t lnx_routed_read(struct lnx_rail *leg, void *buf, size_t len, struct lnx_op *op);

/* A frame of len bytes may be a PULL or a PIECE; it came over rail.  True: it was one.
 * Calls no core. */
LNX_COLD bool lnx_routed_rx(struct lnx_rail *rail, const void *frame, size_t len);

/* Ask for what is wanted, and answer peers.  Returns when to call it again.  Calls cores. */
uint64_t lnx_routed_run(struct lnx_gateways *all, uint64_t now);

/* The path is DOWN, so its reads fail; or their owner has ended them already. */
LNX_COLD void lnx_routed_fail(struct lnx_path *path);
LNX_COLD void lnx_routed_forget(struct lnx_path *path);

#endif
