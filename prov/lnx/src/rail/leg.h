/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Legs: rails that lead to a gateway (obj/gateway.h).  Owner lock held.  Those that send
 * call the core of the rail below.
 */
#ifndef LNX_LEG_H
#define LNX_LEG_H

#include "obj/ep.h"
#include "obj/gateway.h"

/* A leg over that rail to gw, whose rail there is `at`.  0; -FI_ENOMEM; -FI_ENOSYS: the rail's
 * frames have no room for an envelope; or the error of the core's AV, which it calls. */
int lnx_leg_open(struct lnx_gw *gw, struct lnx_rail *below, const struct lnx_addr_rail *at,
		 struct lnx_leg **out);
/* No path uses it, and the rail below may be closed. */
void lnx_leg_close(struct lnx_leg *leg);

/* Bytes of one thing that a leg sends, for the pool of these. */
size_t lnx_leg_op_size(bool piece);

/* What gateways grant by default, in frames that are not small. */
#define LNX_LEG_GRANT		32u
/* Pieces of reads that may be asked for at a time over a leg, whatever a gateway grants. */
#define LNX_LEG_ASKED_MAX	64u
/* The gateway grants so many.  The frames of one peer that may be under way over the leg are
 * five eighths of them: most of the rest is for pieces of what is read, as the other end is
 * granted about as many, and the gateway may hear later than we do that a frame has arrived. */
void lnx_leg_granted(struct lnx_leg *leg, uint32_t grant);

/* Something hangs in the connection to the gateway, from which nothing has come since then: cut
 * it, so that its frames fail and leave again over others.  Whether it was cut. */
LNX_COLD bool lnx_leg_cut(struct lnx_leg *leg, uint64_t since_ns);

/* Bytes that a leg copies, of what is not for the application's memory. */
#define LNX_LEG_COPY	960u

/* Send len bytes, at most LNX_LEG_COPY, to the gateway itself.  0, or the core's error. */
ssize_t lnx_leg_tell(struct lnx_leg *leg, const void *record, size_t len);

/* Have the gateway ask whether the host of that end answers: 0, or an error.  A GW_TELL with
 * the nonce of the end follows. */
ssize_t lnx_leg_ask(struct lnx_leg *leg, fi_addr_t end);

/* How long a frame to that end of the leg may be made: no longer than all that it goes over says
 * that it takes.  0: the gateway has said nothing yet, and is asked. */
uint32_t lnx_leg_frame_max(struct lnx_leg *leg, fi_addr_t end);

/* Send a frame outside the sequence to an end of the leg: its header, and len bytes at
 * payload, at most lnx_leg_piece_max(), which are copied.  0, or the core's error. */
size_t lnx_leg_piece_max(struct lnx_leg *leg, fi_addr_t end);
ssize_t lnx_leg_piece(struct lnx_leg *leg, fi_addr_t dest, const void *header,
		      const void *payload, size_t len);

/* The core endpoint of that rail is closed, and what it did not report is over. */
void lnx_legs_cut(const struct lnx_rail *below);

/* ---- ep->up ---- */

void lnx_leg_done(struct lnx_op *op);
LNX_COLD bool lnx_leg_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err);

#endif
