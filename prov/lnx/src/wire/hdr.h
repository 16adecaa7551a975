/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers in the host's byte order, packed and unpacked here.  Data that arrives is not
 * trusted until lnx_hdr_get and lnx_wire_rts_get have returned 0.
 */
#ifndef LNX_HDR_H
#define LNX_HDR_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "lnx_wire.h"

struct lnx_hdr {
	uint8_t kind;
	uint8_t flags;
	uint8_t path;			/* below LNX_WIRE_PATHS */
	uint16_t rail;
	uint32_t seq;
	uint32_t ack;
	uint64_t src;
	uint64_t dst;
	uint64_t tag;
	uint64_t data;
	uint64_t len;
	uint64_t key;
};

struct lnx_rts {
	uint64_t op;
	unsigned nseg;
	unsigned nkey;
	uint32_t flags;			/* LNX_RTS_F_* */
	bool prefers;			/* a key has `from` */
	uint64_t head;			/* bytes that come in frames: the header's key */
	uint64_t seg_len[LNX_RTS_SEGS];
	struct {
		uint16_t rail;
		uint16_t from;		/* as in lnx_wire_key */
		uint64_t key;
		uint64_t addr;
	} key[LNX_RTS_SEGS][LNX_RTS_KEYS];
};

/* How much of a large message went over one rail of the peer. */
struct lnx_moved {
	uint16_t rail;
	uint64_t bytes;
};

/* A piece of a peer's memory. */
struct lnx_rma_target {
	uint64_t addr;			/* in the registration */
	uint64_t key;
	uint64_t len;
};

/* One registration of a peer's memory, as its rails know it. */
struct lnx_keys {
	uint64_t len;
	uint64_t origin;
	uint16_t access;		/* LNX_WIRE_KEYS_* */
	unsigned nkey;
	struct {
		uint16_t rail;
		uint64_t key;
		uint64_t addr;		/* of byte 0 */
	} key[LNX_RTS_KEYS];
};

static inline bool lnx_wire_kind_sequenced(uint8_t kind)
{
	return (uint8_t)(kind - LNX_KIND_ACK) >
	       LNX_KIND_RAIL - LNX_KIND_ACK;
}

/* Bytes at the end of a HELLO's payload, behind the address. */
static inline size_t lnx_wire_proof_size(const struct lnx_hdr *h)
{
	return h->kind == LNX_KIND_HELLO && (h->flags & LNX_WIRE_F_KEYED) ?
	       sizeof(struct lnx_wire_proof) : 0;
}

/* Write all 64 bytes of w. */
LNX_INLINE void lnx_hdr_put(struct lnx_wire_hdr *w, const struct lnx_hdr *h)
{
	/* Magic, version, kind and flags in one word. */
	uint32_t first = htole32(LNX_WIRE_MAGIC | LNX_WIRE_VERSION << 8 |
				 (uint32_t)h->kind << 16 |
				 (uint32_t)h->flags << 24);

	memcpy(w, &first, sizeof(first));
	w->hops = 0;
	w->path = h->path;
	w->rail = htole16(h->rail);
	w->seq = htole32(h->seq);
	w->ack = htole32(h->ack);
	w->src = htole64(h->src);
	w->dst = htole64(h->dst);
	w->tag = htole64(h->tag);
	w->data = htole64(h->data);
	w->len = htole64(h->len);
	w->key = htole64(h->key);
}

/* The fields that are known only when the frame leaves, also when it leaves again. */
LNX_INLINE void lnx_hdr_set_ack(struct lnx_wire_hdr *w, uint32_t ack)
{
	w->ack = htole32(ack);
}

/* Of a frame that got its number only later. */
static inline void lnx_hdr_set_seq(struct lnx_wire_hdr *w, uint32_t seq)
{
	w->seq = htole32(seq);
}

LNX_INLINE void lnx_hdr_set_path(struct lnx_wire_hdr *w, uint16_t rail,
				 uint8_t path)
{
	w->rail = htole16(rail);
	w->path = path;
}

/*
 * Read and check a frame of frame_len bytes: lengths, magic, version, kind, flags,
 * ids, and that the payload has the length its kind demands.  0, -EBADMSG, or
 * -EPROTONOSUPPORT when only the version is unknown.
 */
LNX_INLINE int lnx_hdr_get(struct lnx_hdr *h, const void *frame,
			   size_t frame_len);

/* Slow half of lnx_hdr_get: kinds other than MSG and TAG, and all errors except a frame
 * of a length that none has. */
int lnx_hdr_check(const struct lnx_wire_hdr *w, const struct lnx_hdr *h,
		  size_t frame_len);

/* Bytes of the payload of r; and write it. */
size_t lnx_wire_rts_size(const struct lnx_rts *r);
void lnx_wire_rts_put(void *payload, const struct lnx_rts *r);
/* total is the header's len.  0 or -EBADMSG. */
int lnx_wire_rts_get(struct lnx_rts *r, const void *payload, size_t size,
		     uint64_t total);

/* The payload of a FIN that lnx_hdr_get accepted: n of them, up to LNX_WIRE_PATHS. */
void lnx_wire_moved_put(void *payload, const struct lnx_moved *m, unsigned n);
unsigned lnx_wire_moved_get(struct lnx_moved *m, const void *payload, size_t size);

/* The start of a PUT_RTS: n pieces; get: their sum is total.  0 or -EBADMSG. */
void lnx_wire_targets_put(void *payload, const struct lnx_rma_target *p, unsigned n);
int lnx_wire_targets_get(struct lnx_rma_target *p, unsigned n, const void *payload,
			 uint64_t total);

/* The payload of a RESP to KEYS. */
size_t lnx_wire_keys_size(unsigned nkey);
void lnx_wire_keys_put(void *payload, const struct lnx_keys *k);
/* 0 or -EBADMSG. */
int lnx_wire_keys_get(struct lnx_keys *k, const void *payload, size_t size);

/* Bytes of the payload of an ACK: none, credit, or that and an allowance. */
static inline bool lnx_wire_ack_size_sound(size_t size)
{
	static_assert(sizeof(struct lnx_wire_credit) == sizeof(struct lnx_wire_allowance),
		      "of one size");
	return size % sizeof(struct lnx_wire_credit) == 0 &&
	       size <= 2 * sizeof(struct lnx_wire_credit);
}

/* The payload of an ACK that lnx_hdr_get accepted; 0: it has none. */
static inline uint64_t lnx_wire_credit_get(const void *payload, size_t size)
{
	struct lnx_wire_credit w = { 0 };

	if (size >= sizeof(w))
		memcpy(&w, payload, sizeof(w));
	return le64toh(w.limit);
}

static inline void lnx_wire_credit_put(void *payload, uint64_t limit)
{
	struct lnx_wire_credit w = { .limit = htole64(limit) };

	memcpy(payload, &w, sizeof(w));
}

/* The other part of it; false: there is none. */
static inline bool lnx_wire_allowance_get(const void *payload, size_t size, uint32_t *change,
					  uint32_t *n)
{
	struct lnx_wire_allowance w;

	if (size < sizeof(struct lnx_wire_credit) + sizeof(w))
		return false;
	memcpy(&w, (const char *)payload + sizeof(struct lnx_wire_credit), sizeof(w));
	*change = le32toh(w.change);
	*n = le32toh(w.n);
	return true;
}

static inline void lnx_wire_allowance_put(void *payload, uint32_t change, uint32_t n)
{
	struct lnx_wire_allowance w = { .change = htole32(change), .n = htole32(n) };

	memcpy(payload, &w, sizeof(w));
}

const char *lnx_wire_kind_name(uint8_t kind);

/* Does it carry a message of the application, or announce one? */
static inline bool lnx_wire_kind_message(uint8_t kind)
{
	return (1u << kind & (1u << LNX_KIND_MSG | 1u << LNX_KIND_TAG |
			      1u << LNX_KIND_RTS_MSG | 1u << LNX_KIND_RTS_TAG |
			      1u << LNX_KIND_PART_MSG | 1u << LNX_KIND_PART_TAG |
			      1u << LNX_KIND_MORE)) != 0;
}

/* The same, but for what goes on with one that has begun. */
static inline bool lnx_wire_kind_begins(uint8_t kind)
{
	return lnx_wire_kind_message(kind) && kind != LNX_KIND_MORE;
}

static_assert(offsetof(struct lnx_wire_hdr, magic) == 0 &&
	      offsetof(struct lnx_wire_hdr, version) == 1 &&
	      offsetof(struct lnx_wire_hdr, kind) == 2 &&
	      offsetof(struct lnx_wire_hdr, flags) == 3 &&
	      LNX_KIND_TAG == (LNX_KIND_MSG | 1) && LNX_KIND_MSG != LNX_KIND_TAG,
	      "what lnx_hdr_get compares at once");

LNX_INLINE int lnx_hdr_get(struct lnx_hdr *h, const void *frame,
			   size_t frame_len)
{
	const struct lnx_wire_hdr *w = frame;
	uint32_t first;

	/* One comparison for both limits: too short becomes very long. */
	if (lnx_unlikely(frame_len - sizeof(*w) > LNX_PAYLOAD_LARGE))
		return -EBADMSG;
	h->kind = w->kind;
	h->flags = w->flags;
	h->path = w->path % LNX_WIRE_PATHS;
	h->rail = le16toh(w->rail);
	h->seq = le32toh(w->seq);
	h->ack = le32toh(w->ack);
	h->src = le64toh(w->src);
	h->dst = le64toh(w->dst);
	h->tag = le64toh(w->tag);
	h->data = le64toh(w->data);
	h->len = le64toh(w->len);
	h->key = le64toh(w->key);
	/*
	 * Magic, version, kind and flags in one word: is it a whole message of this
	 * version?
	 */
	memcpy(&first, w, sizeof(first));
	if (lnx_likely((le32toh(first) & ~((LNX_KIND_MSG ^ LNX_KIND_TAG) << 16 |
					   (uint32_t)LNX_WIRE_F_MSG << 24)) ==
		       (LNX_WIRE_MAGIC | LNX_WIRE_VERSION << 8 |
			(LNX_KIND_MSG & LNX_KIND_TAG) << 16) &&
		       h->src && h->dst && h->len == frame_len - sizeof(*w)))
		return 0;
	return lnx_hdr_check(w, h, frame_len);
}

#endif
