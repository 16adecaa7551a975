/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What gateways send us, and hellos to them (lnx_wire_route.h).  A frame that came over a
 * gateway is handled as if its leg were the rail that it came over.  Owner lock held.
 */
#ifndef LNX_REL_GATEWAY_H
#define LNX_REL_GATEWAY_H

#include "obj/ep.h"

/* Frames to a peer behind gateways that may be unacknowledged: within what gateways grant by
 * default; and so many that came are acknowledged at once. */
#define LNX_ROUTED_WINDOW	32u
#define LNX_ROUTED_ACKS		8u
/* Fewer wait for so many times FI_LNX_ACK_DELAY. */
#define LNX_ROUTED_ACK_DELAYS	4u

/* Something with the magic number of gateways came over rail: as lnx_rel_rx_frame.  Calls no
 * core. */
LNX_COLD bool lnx_gateway_rx(struct lnx_rail *rail, struct lnx_rxbuf *buf, size_t len);

/* A path over a leg has gone DOWN: does its gateway answer? */
LNX_COLD void lnx_gateway_doubted(const struct lnx_path *path, uint64_t now);

/* The gateway of that path, which is over a leg, has no way to the net that it leads to: its routes
 * there are down for a time.  Calls no core. */
LNX_COLD void lnx_gateway_no_way(const struct lnx_path *path, uint64_t now);

/* Sets what is known of the gateway of that leg, over which a path delivers nothing: gateway,
 * gateway_elsewhere, rail_works. */
struct lnx_leg;
struct lnx_route_evidence;
LNX_COLD void lnx_gateway_evidence(const struct lnx_leg *leg, struct lnx_route_evidence *e,
				   uint64_t now);

/* LNX_DUE_GATEWAYS: hellos.  Returns when to call it again.  Calls cores. */
LNX_COLD uint64_t lnx_gateways_run(struct lnx_ep *ep, uint64_t now);

/* Call fn for each leg over that rail. */
LNX_COLD void lnx_gateways_legs(const struct lnx_rail *below,
				void (*fn)(struct lnx_rail *leg, bool arg, uint64_t now),
				bool arg, uint64_t now);

#endif
