/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which pairs of rails lead to a peer, best first.  Does no I/O.
 *
 * Rails of one group certainly reach each other (same provider, same subnet or fabric).
 * Pairs of one provider but different groups may reach each other through a router, and
 * are a last resort.  Different providers never do.
 */
#ifndef LNX_PAIRS_H
#define LNX_PAIRS_H

#include <stdint.h>

#define LNX_SELECT_RAILS	64	/* at most, on either side */

struct lnx_pair_rail {
	uint8_t prov;			/* enum lnx_prov_id */
	uint16_t group;
};

struct lnx_pair {
	unsigned local;
	unsigned remote;
};

/*
 * Write at most max pairs; returns how many.  Remote rails that the same local rails
 * reach are paired with these in an order that is rotated by one for each.  So with
 * several equal rails on both sides the first pairs use different ones, whatever other
 * rails are between them.
 */
unsigned lnx_pairs_find(const struct lnx_pair_rail *local, unsigned nlocal,
			  const struct lnx_pair_rail *remote,
			  unsigned nremote, struct lnx_pair *pair,
			  unsigned max);

#endif
