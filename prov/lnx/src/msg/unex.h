/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A message that no receive matches yet, as the matcher sees it.  It is one of two:
 *
 * - an entry: part of a receive entry (lnx_rxe.unex), for what a core, a frame buffer or
 *   its sender still has, or what has not come completely;
 * - compact: by itself, with the payload behind it, in ep->backlog.kept.  There can be very many
 *   of these: one with a payload of 1 byte takes LNX_UNEX_HEAD + 1 bytes.  What is in
 *   the shm core becomes one, too, when there are many (msg/srx_owner.c).
 *
 * Both are in a matcher, and in a list of the sender.  Owner lock held.
 */
#ifndef LNX_UNEX_H
#define LNX_UNEX_H

#include "match/match.h"
#include "obj/ep.h"

struct lnx_hdr;
struct lnx_rxe;

struct lnx_unex {
	struct lnx_munex m;
	struct lnx_node of_peer;	/* peer->stored, or ep->local.nameless */
	/* Compact only: */
	struct lnx_peer *peer;		/* its sender */
	uint32_t len;			/* bytes of payload */
	bool entry;			/* it is no compact one */
	struct {
		bool tagged : 1;
		bool has_data : 1;	/* 8 bytes of CQ data precede the payload */
		bool direct : 1;	/* it came over shared memory */
	};
};

/* The anonymous structure has one byte. */
#define LNX_UNEX_HEAD	(offsetof(struct lnx_unex, entry) + sizeof(bool) + 1)

/* What there is to know of either. */
struct lnx_unex_about {
	struct lnx_ep *ep;		/* that it came to */
	struct lnx_peer *peer;		/* NULL: unknown */
	size_t len;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;			/* FI_REMOTE_CQ_DATA or 0 */
	bool tagged;
};

static inline struct lnx_unex *lnx_unex_of(struct lnx_munex *m)
{
	return lnx_container_of(m, struct lnx_unex, m);
}

struct lnx_unex_about lnx_unex_about(const struct lnx_unex *u);

/*
 * Keep a copy of a message of peer's, which is at most LNX_PAYLOAD_MAX long: from now on it
 * is stored.  Of h: flags, tag, data, len.  direct: it came over shared memory, and not in a
 * frame.  False: there is no memory.
 */
bool lnx_unex_keep(struct lnx_peer *peer, const struct lnx_hdr *h, const void *payload,
		   bool tagged, bool direct);
/* Either one is no longer stored. */
void lnx_unex_unstore(struct lnx_unex *u);
/* Free a compact one, which is not stored. */
void lnx_unex_free(struct lnx_unex *u);
/* CQ data of a compact one, or 0; and its payload. */
uint64_t lnx_unex_data(const struct lnx_unex *u);
const void *lnx_unex_payload(const struct lnx_unex *u);

#endif
