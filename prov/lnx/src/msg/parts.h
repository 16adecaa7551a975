/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that come in several frames: see parts.c.  Owner lock held. */
#ifndef LNX_PARTS_H
#define LNX_PARTS_H

#include "msg/rx.h"

/* Is one under way? */
static inline bool lnx_parts_expected(const struct lnx_peer *peer)
{
	return peer->eager && peer->eager->len;
}

/*
 * len bytes of rxe's message come in frames: all, or the first ones of one that is read.
 * rxe is ACTIVE with its receive filled in, or UNEX and not yet stored.  False: no memory,
 * nothing was done.
 */
bool lnx_parts_begin(struct lnx_peer *peer, struct lnx_rxe *rxe, uint64_t len);
/* The first of them, which came with the header.  May end a receive. */
void lnx_parts_first(struct lnx_peer *peer, const void *data, size_t len);
/* A MORE: as ep->up->deliver. */
int lnx_parts_more(struct lnx_peer *peer, const struct lnx_hdr *h, const void *data);
/* rxe, of which some or all parts are stored, has found its receive. */
void lnx_parts_matched(struct lnx_rxe *rxe);
/* What may still come for rxe is to be dropped. */
void lnx_parts_drop(struct lnx_rxe *rxe);
LNX_COLD void lnx_parts_fail_peer(struct lnx_peer *peer, int err);

#endif
