/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packs and checks frame headers and the payloads defined in lnx_wire.h.  See hdr.h. */
#include "wire/hdr.h"

#include <errno.h>

#include "lnx_wire_addr.h"
#include "wire/addr.h"

const char *lnx_wire_kind_name(uint8_t kind)
{
	static const char *const names[LNX_KIND_MAX] = {
		[LNX_KIND_HELLO] = "HELLO", [LNX_KIND_MSG] = "MSG",
		[LNX_KIND_TAG] = "TAG", [LNX_KIND_RTS_MSG] = "RTS_MSG",
		[LNX_KIND_RTS_TAG] = "RTS_TAG", [LNX_KIND_FIN] = "FIN",
		[LNX_KIND_ACK] = "ACK", [LNX_KIND_PROBE] = "PROBE",
		[LNX_KIND_BYE] = "BYE", [LNX_KIND_NO_SESSION] = "NO_SESSION",
		[LNX_KIND_PUT] = "PUT", [LNX_KIND_PUT_RTS] = "PUT_RTS",
		[LNX_KIND_GET] = "GET", [LNX_KIND_KEYS] = "KEYS",
		[LNX_KIND_ATOMIC] = "ATOMIC", [LNX_KIND_RESP] = "RESP",
		[LNX_KIND_PONG] = "PONG", [LNX_KIND_RAIL] = "RAIL",
		[LNX_KIND_PART_MSG] = "PART_MSG",
		[LNX_KIND_PART_TAG] = "PART_TAG", [LNX_KIND_MORE] = "MORE",
	};

	return kind < LNX_KIND_MAX && names[kind] ? names[kind] : "unknown";
}

static bool may_be_large(uint8_t kind)
{
	return kind == LNX_KIND_MSG || kind == LNX_KIND_TAG ||
	       (kind >= LNX_KIND_PART_MSG && kind <= LNX_KIND_MORE);
}

/* The lengths in a frame of a message of the application. */
static bool message_sound(const struct lnx_hdr *h, size_t payload)
{
	switch (h->kind) {
	case LNX_KIND_PART_MSG:
	case LNX_KIND_PART_TAG:
		return payload && h->len > payload;
	case LNX_KIND_MORE:
		return payload && h->len == payload && h->tag <= UINT64_MAX - payload;
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
		return payload >= sizeof(struct lnx_wire_rts) && h->len &&
		       h->key <= h->len;
	default:
		return h->len == payload;
	}
}

static uint8_t flags_of(uint8_t kind)
{
	switch (kind) {
	case LNX_KIND_PUT:
		return LNX_WIRE_F_MSG | LNX_WIRE_F_PUT | LNX_WIRE_F_LAST;
	case LNX_KIND_GET:
		return LNX_WIRE_F_MSG | LNX_WIRE_F_LAST;
	case LNX_KIND_HELLO:
		return LNX_WIRE_F_MSG | LNX_WIRE_F_KEYED;
	default:
		return LNX_WIRE_F_MSG;
	}
}

int lnx_hdr_check(const struct lnx_wire_hdr *w, const struct lnx_hdr *h,
		  size_t frame_len)
{
	size_t payload, put;

	if (w->magic != LNX_WIRE_MAGIC)
		return -EBADMSG;
	if (w->version != LNX_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if ((w->flags & ~flags_of(h->kind)) || !h->src || !h->dst)
		return -EBADMSG;

	payload = frame_len - sizeof(*w);
	if (may_be_large(h->kind))
		return message_sound(h, payload) ? 0 : -EBADMSG;
	if (payload > LNX_PAYLOAD_MAX)
		return -EBADMSG;
	switch (h->kind) {
	case LNX_KIND_HELLO:
		if (payload < lnx_wire_proof_size(h))
			return -EBADMSG;
		payload -= lnx_wire_proof_size(h);
		return payload == LNX_ADDR_BYTES ||
		       (payload > LNX_ADDR_BYTES + LNX_WIRE_RAILS_HEAD &&
			payload <= LNX_ADDR_BYTES + LNX_WIRE_RAILS_BYTES) ?
		       0 : -EBADMSG;
	case LNX_KIND_PUT:
		put = h->flags & LNX_WIRE_F_PUT ? sizeof(struct lnx_wire_put) : 0;
		return payload >= put && h->len == payload - put ? 0 : -EBADMSG;
	case LNX_KIND_PUT_RTS:
		return h->tag && h->tag <= LNX_RMA_TARGETS_MAX && h->len &&
		       payload >= h->tag * sizeof(struct lnx_wire_target) +
				  sizeof(struct lnx_wire_rts) ? 0 : -EBADMSG;
	case LNX_KIND_RESP:
		return h->len == payload && h->tag <= INT32_MAX ? 0 : -EBADMSG;
	case LNX_KIND_GET:
		return payload == 0 && h->len <= LNX_PAYLOAD_MAX ? 0 : -EBADMSG;
	case LNX_KIND_ATOMIC:
		return h->len == payload ? 0 : -EBADMSG;
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
		return message_sound(h, payload) ? 0 : -EBADMSG;
	case LNX_KIND_ACK:
		return lnx_wire_ack_size_sound(payload) ? 0 : -EBADMSG;
	case LNX_KIND_PROBE:
		return payload == LNX_ADDR_BYTES || (payload == 0 && !h->key) ?
		       0 : -EBADMSG;
	case LNX_KIND_FIN:
		return payload % sizeof(struct lnx_wire_moved) == 0 &&
		       payload <= LNX_WIRE_PATHS *
				  sizeof(struct lnx_wire_moved) ?
		       0 : -EBADMSG;
	case LNX_KIND_KEYS:
	case LNX_KIND_PONG:
	case LNX_KIND_RAIL:
	case LNX_KIND_BYE:
	case LNX_KIND_NO_SESSION:
		return payload == 0 ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

size_t lnx_wire_rts_size(const struct lnx_rts *r)
{
	return sizeof(struct lnx_wire_rts) + r->nseg * sizeof(uint64_t) +
	       (size_t)r->nseg * r->nkey * sizeof(struct lnx_wire_key);
}

void lnx_wire_rts_put(void *payload, const struct lnx_rts *r)
{
	struct lnx_wire_rts fixed = {
		.op = htole64(r->op),
		.nseg = htole16((uint16_t)r->nseg),
		.nkey = htole16((uint16_t)r->nkey),
		.flags = htole32(r->flags),
	};
	char *p = payload;
	unsigned s, k;

	memcpy(p, &fixed, sizeof(fixed));
	p += sizeof(fixed);
	for (s = 0; s < r->nseg; s++, p += sizeof(uint64_t)) {
		uint64_t len = htole64(r->seg_len[s]);

		memcpy(p, &len, sizeof(len));
	}
	for (s = 0; s < r->nseg; s++) {
		for (k = 0; k < r->nkey; k++, p += sizeof(struct lnx_wire_key)) {
			struct lnx_wire_key key = {
				.rail = htole16(r->key[s][k].rail),
				.from = htole16(r->key[s][k].from),
				.key = htole64(r->key[s][k].key),
				.addr = htole64(r->key[s][k].addr),
			};

			memcpy(p, &key, sizeof(key));
		}
	}
}

int lnx_wire_rts_get(struct lnx_rts *r, const void *payload, size_t size,
		     uint64_t total)
{
	struct lnx_wire_rts fixed;
	const char *p = payload;
	uint64_t sum = 0;
	unsigned s, k;

	if (size < sizeof(fixed))
		return -EBADMSG;
	memcpy(&fixed, p, sizeof(fixed));
	p += sizeof(fixed);
	r->op = le64toh(fixed.op);
	r->nseg = le16toh(fixed.nseg);
	r->nkey = le16toh(fixed.nkey);
	r->flags = le32toh(fixed.flags);
	r->prefers = false;
	if (!r->nseg || r->nseg > LNX_RTS_SEGS || !r->nkey ||
	    r->nkey > LNX_RTS_KEYS || size != lnx_wire_rts_size(r))
		return -EBADMSG;
	for (s = 0; s < r->nseg; s++, p += sizeof(uint64_t)) {
		memcpy(&r->seg_len[s], p, sizeof(uint64_t));
		r->seg_len[s] = le64toh(r->seg_len[s]);
		if (!r->seg_len[s] || r->seg_len[s] > total - sum)
			return -EBADMSG;
		sum += r->seg_len[s];
	}
	if (sum != total)
		return -EBADMSG;
	for (s = 0; s < r->nseg; s++) {
		for (k = 0; k < r->nkey; k++, p += sizeof(struct lnx_wire_key)) {
			struct lnx_wire_key key;

			memcpy(&key, p, sizeof(key));
			r->key[s][k].rail = le16toh(key.rail);
			r->key[s][k].from = le16toh(key.from);
			r->prefers |= key.from != 0;
			r->key[s][k].key = le64toh(key.key);
			r->key[s][k].addr = le64toh(key.addr);
		}
	}
	return 0;
}

void lnx_wire_moved_put(void *payload, const struct lnx_moved *m, unsigned n)
{
	char *at = payload;
	unsigned i;

	for (i = 0; i < n; i++, at += sizeof(struct lnx_wire_moved)) {
		struct lnx_wire_moved w = {
			.rail = htole16(m[i].rail),
			.bytes = htole64(m[i].bytes),
		};

		memcpy(at, &w, sizeof(w));
	}
}

unsigned lnx_wire_moved_get(struct lnx_moved *m, const void *payload, size_t size)
{
	const char *at = payload;
	unsigned i, n = (unsigned)LNX_MIN(size / sizeof(struct lnx_wire_moved),
					  (size_t)LNX_WIRE_PATHS);

	for (i = 0; i < n; i++, at += sizeof(struct lnx_wire_moved)) {
		struct lnx_wire_moved w;

		memcpy(&w, at, sizeof(w));
		m[i].rail = le16toh(w.rail);
		m[i].bytes = le64toh(w.bytes);
	}
	return n;
}

void lnx_wire_targets_put(void *payload, const struct lnx_rma_target *p, unsigned n)
{
	char *at = payload;
	unsigned i;

	for (i = 0; i < n; i++, at += sizeof(struct lnx_wire_target)) {
		struct lnx_wire_target w = {
			.addr = htole64(p[i].addr),
			.key = htole64(p[i].key),
			.len = htole64(p[i].len),
		};

		memcpy(at, &w, sizeof(w));
	}
}

int lnx_wire_targets_get(struct lnx_rma_target *p, unsigned n, const void *payload,
			 uint64_t total)
{
	const char *at = payload;
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n; i++, at += sizeof(struct lnx_wire_target)) {
		struct lnx_wire_target w;

		memcpy(&w, at, sizeof(w));
		p[i].addr = le64toh(w.addr);
		p[i].key = le64toh(w.key);
		p[i].len = le64toh(w.len);
		if (p[i].len > total - sum)
			return -EBADMSG;
		sum += p[i].len;
	}
	return sum == total ? 0 : -EBADMSG;
}

size_t lnx_wire_keys_size(unsigned nkey)
{
	return sizeof(struct lnx_wire_keys) +
	       nkey * sizeof(struct lnx_wire_key);
}

void lnx_wire_keys_put(void *payload, const struct lnx_keys *k)
{
	struct lnx_wire_keys fixed = {
		.len = htole64(k->len),
		.origin = htole64(k->origin),
		.nkey = htole16((uint16_t)k->nkey),
		.access = htole16(k->access),
	};
	char *p = payload;
	unsigned i;

	memcpy(p, &fixed, sizeof(fixed));
	p += sizeof(fixed);
	for (i = 0; i < k->nkey; i++, p += sizeof(struct lnx_wire_key)) {
		struct lnx_wire_key key = {
			.rail = htole16(k->key[i].rail),
			.key = htole64(k->key[i].key),
			.addr = htole64(k->key[i].addr),
		};

		memcpy(p, &key, sizeof(key));
	}
}

int lnx_wire_keys_get(struct lnx_keys *k, const void *payload, size_t size)
{
	struct lnx_wire_keys fixed;
	const char *p = payload;
	unsigned i;

	if (size < sizeof(fixed))
		return -EBADMSG;
	memcpy(&fixed, p, sizeof(fixed));
	p += sizeof(fixed);
	k->len = le64toh(fixed.len);
	k->origin = le64toh(fixed.origin);
	k->nkey = le16toh(fixed.nkey);
	k->access = le16toh(fixed.access);
	if (!k->nkey || k->nkey > LNX_RTS_KEYS ||
	    size != lnx_wire_keys_size(k->nkey))
		return -EBADMSG;
	for (i = 0; i < k->nkey; i++, p += sizeof(struct lnx_wire_key)) {
		struct lnx_wire_key key;

		memcpy(&key, p, sizeof(key));
		k->key[i].rail = le16toh(key.rail);
		k->key[i].key = le64toh(key.key);
		k->key[i].addr = le64toh(key.addr);
	}
	return 0;
}
