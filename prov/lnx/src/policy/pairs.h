/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which pairs of rails lead to a peer, best first.  Pure.
 *
 * Rails of one group reach each other for certain (same provider, same subnet or
 * fabric); pairs of one provider but of different groups may do so through a
 * router and are kept as a last resort.  Different providers never talk.
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
 * reach are paired with these in an order rotated by one for each, so that with
 * several equal rails on both sides the first pairs use different ones, whatever
 * other rails stand between them.
 */
unsigned lnx_pairs_find(const struct lnx_pair_rail *local, unsigned nlocal,
			  const struct lnx_pair_rail *remote,
			  unsigned nremote, struct lnx_pair *pair,
			  unsigned max);

#endif
