/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints and gateways exchange (lnx_wire_route.h), packed and unpacked.  Only
 * wire/route.c knows the layouts.
 *
 * What arrives is not trusted until one of the get functions has returned 0.  They
 * return:
 *	-EBADMSG	malformed; not a byte of it may be used
 *	-EPROTONOSUPPORT	it is one, of another version
 *	-EMSGSIZE	its length is not what it says, or none that may be
 * and write a sentence to *why (static text; why may be NULL).  They read no byte behind
 * len, whatever the bytes say.  Put functions get what our own code made: they return the
 * number of bytes written, or -EINVAL if the struct is none that get would take.
 *
 * No allocation, no locks.
 */
#ifndef LNX_WIRE_ROUTE_CODE_H
#define LNX_WIRE_ROUTE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lnx_wire_route.h"
#include "wire/addr.h"
#include "wire/hdr.h"
#include "wire/rails.h"

/* The envelope of a frame. */
struct lnx_route_env {
	uint8_t hops_left;
	uint8_t hops_done;
	uint16_t account;		/* 0: none */
	uint64_t via;			/* 0: it comes from its source */
	uint64_t key;
	uint32_t len;			/* of the frame behind it */
	struct lnx_addr_rail rail;	/* the destination */
};

/* The kind of a record of at least 4 bytes that begins with LNX_ROUTE_MAGIC: enum
 * lnx_route_kind or a later one.  0: it is no such record. */
static inline uint8_t lnx_route_kind(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	return len >= 4 && p[0] == LNX_ROUTE_MAGIC ? p[2] : 0;
}

/* Pack e into 64 bytes at buf; the frame goes behind them. */
int lnx_route_put(void *buf, const struct lnx_route_env *e);

/* buf has the envelope and the frame, len bytes together. */
int lnx_route_get(struct lnx_route_env *e, const void *buf, size_t len,
		  const char **why);

/*
 * What a gateway changes in an envelope that lnx_route_get accepted, with hops_left not
 * 0: one hop, its own id, and its account at the next receiver.
 */
void lnx_route_forward(void *buf, uint64_t id, uint16_t account);

/*
 * One rail alone, as in envelopes.  put: 0, or -EINVAL: r is malformed, or useless on
 * another host.  get: 0 or -EBADMSG.  A rail has one form only, so these bytes can be
 * compared, and be a key in a table.
 */
int lnx_route_rail_put(uint8_t p[LNX_ROUTE_RAIL_BYTES],
		       const struct lnx_addr_rail *r);
int lnx_route_rail_get(struct lnx_addr_rail *r,
		       const uint8_t p[LNX_ROUTE_RAIL_BYTES]);

/* The bytes of the destination in an envelope. */
static inline const uint8_t *lnx_route_rail(const void *buf)
{
	return (const uint8_t *)buf + offsetof(struct lnx_wire_route, rail);
}

struct lnx_route_note {
	uint8_t reason;			/* enum lnx_route_reason */
	uint8_t hops_done;
	uint16_t account;
	uint64_t id;			/* of the gateway */
	uint64_t key;
	uint32_t count;
	struct lnx_addr_rail rail;
	uint64_t src, dst;		/* of the frame */
	uint32_t seq;
	uint32_t wait_ms;
};

#define LNX_ROUTE_NOTE_LEN	88
int lnx_route_note_put(void *buf, const struct lnx_route_note *n);
int lnx_route_note_get(struct lnx_route_note *n, const void *buf, size_t len,
		       const char **why);

/* "no_route", "ttl": for counters and logs; "unknown" for other numbers. */
const char *lnx_route_reason_name(unsigned reason);

/* GW_HELLO and GW_INFO. */
struct lnx_gw_hello {
	uint8_t flags;			/* LNX_GW_F_* */
	uint8_t oldest, newest;		/* versions */
	uint16_t account;
	uint64_t id;
	uint64_t key;
	uint32_t nonce;
	uint16_t rail;			/* place of the rail it was sent from */
	uint64_t host;			/* of the blob; 0: not known */
	struct lnx_rails rails;		/* all of the sender's */
};

struct lnx_gw_info {
	struct lnx_gw_hello gw;		/* the gateway */
	uint32_t large, small;		/* grant, buffers */
	uint32_t frame_max;		/* that it takes, and that what is behind it takes: */
	uint32_t behind;		/* 0: not known; put makes it a multiple of
					 * LNX_GW_BEHIND_UNIT with LNX_ROUTE_HEAD */
	uint8_t hops;
	struct {
		bool up;
		uint16_t health;
	} state[LNX_WIRE_RAILS_MAX];	/* of gw.rails, in their order */
	unsigned nnet;
	struct lnx_wire_gw_net net[LNX_GW_NETS_MAX];	/* in the host's byte order */
};

int lnx_wire_gw_hello_put(void *buf, size_t size, const struct lnx_gw_hello *h);
int lnx_wire_gw_hello_get(struct lnx_gw_hello *h, const void *buf, size_t len,
			  const char **why);
int lnx_wire_gw_info_put(void *buf, size_t size, const struct lnx_gw_info *i);
int lnx_wire_gw_info_get(struct lnx_gw_info *i, const void *buf, size_t len,
			 const char **why);

/* GW_ASK, with tell 0, and GW_TELL. */
struct lnx_gw_ask {
	uint8_t tell;			/* enum lnx_route_tell */
	uint8_t hops_done;		/* without tell */
	uint16_t account;
	uint64_t id;
	uint64_t key;
	uint32_t nonce;
	struct lnx_addr_rail rail;
};

int lnx_wire_gw_ask_put(void *buf, const struct lnx_gw_ask *a);
int lnx_wire_gw_ask_get(struct lnx_gw_ask *a, const void *buf, size_t len,
			const char **why);

/* "alive", "refused"; "unknown" for other numbers. */
const char *lnx_route_tell_name(unsigned tell);

/*
 * PULL and PIECE: whole frames between the two ends.  put writes the header, 64 bytes; a
 * piece's payload goes behind it.
 */
struct lnx_route_pull {
	uint64_t src, dst;		/* session and endpoint, as in any frame */
	uint64_t id;			/* number of the pull */
	uint32_t most;			/* PULL only: bytes of the longest PIECE; 0:
					 * LNX_PAYLOAD_MAX */
	uint8_t way;			/* PULL only: over which way the PIECEs shall come */
	uint64_t key;			/* PULL only */
	uint32_t segment;		/* PULL only */
	uint64_t offset;
	uint64_t len;			/* wanted; PIECE: bytes of the payload */
	bool piece;
};

int lnx_route_pull_put(void *buf, const struct lnx_route_pull *p);
int lnx_route_pull_get(struct lnx_route_pull *p, const void *buf, size_t len, const char **why);

#endif
