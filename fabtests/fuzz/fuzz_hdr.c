/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes as a frame.  An accepted frame has the lengths that it gives, and
 * is the same when written again, except that reserved fields are 0.  The first
 * byte says how the rest is used: as it is, after a valid header so that lengths
 * and kinds are reached quickly, or as an RTS alone.
 *
 * Sources: wire/hdr.c
 * Sources: wire/rails.c
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "hdr"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "lnx_wire_addr.h"
#include "wire/hdr.h"
#include "wire/rails.h"

#define HDR	sizeof(struct lnx_wire_hdr)

/* The list in a hello: what is accepted is written again as it was. */
static void rails(const uint8_t *data, size_t size)
{
	uint8_t out[LNX_WIRE_RAILS_BYTES];
	struct lnx_rails r;

	FUZZ_CHECK(size <= sizeof(out));
	if (lnx_rails_unpack(&r, data, size))
		return;
	FUZZ_CHECK(r.n >= 1 && r.n <= LNX_WIRE_RAILS_MAX);
	FUZZ_CHECK(lnx_rails_pack(&r, out) == (int)size);
	FUZZ_CHECK(!memcmp(out, data, size));
}

static void rts(const uint8_t *data, size_t size, uint64_t total)
{
	struct lnx_wire_rts fixed;
	struct lnx_rts r, again;
	uint8_t out[LNX_PAYLOAD_MAX], *in;
	uint64_t sum = 0;
	unsigned s, k;
	int ret;

	ret = lnx_wire_rts_get(&r, data, size, total);
	if (ret) {
		FUZZ_CHECK(ret == -EBADMSG);
		return;
	}
	FUZZ_CHECK(r.nseg >= 1 && r.nseg <= LNX_RTS_SEGS);
	FUZZ_CHECK(r.nkey >= 1 && r.nkey <= LNX_RTS_KEYS);
	FUZZ_CHECK(lnx_wire_rts_size(&r) == size && size <= sizeof(out));
	for (s = 0; s < r.nseg; s++) {
		FUZZ_CHECK(r.seg_len[s]);
		FUZZ_CHECK(sum + r.seg_len[s] > sum);
		sum += r.seg_len[s];
	}
	FUZZ_CHECK(sum == total);

	memset(out, 0xee, sizeof(out));
	lnx_wire_rts_put(out, &r);
	FUZZ_CHECK(!lnx_wire_rts_get(&again, out, size, total));
	FUZZ_CHECK(again.op == r.op);
	/* The same bytes with reserved fields cleared. */
	in = malloc(size);
	FUZZ_CHECK(in);
	memcpy(in, data, size);
	for (k = 0; k < r.nseg * r.nkey; k++)
		memset(in + sizeof(fixed) + r.nseg * 8 +
		       k * sizeof(struct lnx_wire_key) +
		       offsetof(struct lnx_wire_key, reserved), 0, 4);
	FUZZ_CHECK(!memcmp(in, out, size));
	free(in);
	if (size < sizeof(out))
		FUZZ_CHECK(out[size] == 0xee);
}

static void places(const uint8_t *data, size_t size, const struct lnx_hdr *h)
{
	size_t head = h->tag * sizeof(struct lnx_wire_target);
	struct lnx_rma_target p[LNX_RMA_TARGETS_MAX];
	uint8_t out[LNX_RMA_TARGETS_MAX * sizeof(struct lnx_wire_target)];
	uint64_t sum = 0;
	unsigned i;

	FUZZ_CHECK(size >= head + sizeof(struct lnx_wire_rts));
	if (!lnx_wire_targets_get(p, (unsigned)h->tag, data, h->len)) {
		for (i = 0; i < h->tag; i++) {
			FUZZ_CHECK(sum + p[i].len >= sum);
			sum += p[i].len;
		}
		FUZZ_CHECK(sum == h->len);
		lnx_wire_targets_put(out, p, (unsigned)h->tag);
		FUZZ_CHECK(!memcmp(out, data, head));
	}
	rts(data + head, size - head, h->len);
}

static void moved(const uint8_t *data, size_t size)
{
	uint8_t out[LNX_WIRE_PATHS * sizeof(struct lnx_wire_moved)];
	struct lnx_moved m[LNX_WIRE_PATHS], again[LNX_WIRE_PATHS];
	unsigned i, n = lnx_wire_moved_get(m, data, size);

	FUZZ_CHECK(n <= LNX_WIRE_PATHS);
	FUZZ_CHECK(n * sizeof(struct lnx_wire_moved) == size);
	lnx_wire_moved_put(out, m, n);
	FUZZ_CHECK(lnx_wire_moved_get(again, out, size) == n);
	for (i = 0; i < n; i++)
		FUZZ_CHECK(m[i].rail == again[i].rail &&
			   m[i].bytes == again[i].bytes);
}

static void keys(const uint8_t *data, size_t size)
{
	uint8_t out[LNX_PAYLOAD_MAX];
	struct lnx_keys k, again;

	if (lnx_wire_keys_get(&k, data, size))
		return;
	FUZZ_CHECK(k.nkey >= 1 && k.nkey <= LNX_RTS_KEYS);
	FUZZ_CHECK(lnx_wire_keys_size(k.nkey) == size && size <= sizeof(out));
	lnx_wire_keys_put(out, &k);
	FUZZ_CHECK(!lnx_wire_keys_get(&again, out, size));
	FUZZ_CHECK(again.len == k.len && again.nkey == k.nkey);
}

static void frame(const uint8_t *data, size_t size)
{
	struct lnx_wire_hdr w, out;
	struct lnx_hdr h, again;
	size_t payload;
	int ret;

	ret = lnx_hdr_get(&h, data, size);
	if (ret) {
		FUZZ_CHECK(ret == -EBADMSG || ret == -EPROTONOSUPPORT);
		if (ret == -EPROTONOSUPPORT)
			FUZZ_CHECK(data[0] == LNX_WIRE_MAGIC &&
				   data[1] != LNX_WIRE_VERSION);
		return;
	}
	FUZZ_CHECK(size >= HDR);
	payload = size - HDR;
	FUZZ_CHECK(h.src && h.dst && !(h.flags & ~LNX_WIRE_F_ALL));
	FUZZ_CHECK(h.kind >= 1 && h.kind < LNX_KIND_MAX);
	FUZZ_CHECK(strcmp(lnx_wire_kind_name(h.kind), "unknown"));

	memcpy(&w, data, sizeof(w));
	w.hops = 0;
	w.path %= LNX_WIRE_PATHS;
	memset(&out, 0xee, sizeof(out));
	lnx_hdr_put(&out, &h);
	FUZZ_CHECK(!memcmp(&w, &out, sizeof(w)));
	lnx_hdr_set_ack(&out, ~h.ack);
	FUZZ_CHECK(le32toh(out.ack) == ~h.ack);
	lnx_hdr_set_path(&out, h.rail ^ 1, h.path ^ 1);
	FUZZ_CHECK(le16toh(out.rail) == (h.rail ^ 1) &&
		   out.path == (h.path ^ 1));

	switch (h.kind) {
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
		FUZZ_CHECK(h.len == payload);
		break;
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
		FUZZ_CHECK(h.len && payload >= sizeof(struct lnx_wire_rts));
		FUZZ_CHECK(h.key <= h.len);
		rts(data + HDR, payload, h.len);
		break;
	case LNX_KIND_PART_MSG:
	case LNX_KIND_PART_TAG:
		FUZZ_CHECK(payload && payload < h.len);
		break;
	case LNX_KIND_MORE:
		FUZZ_CHECK(payload && h.len == payload && h.tag + h.len > h.tag);
		break;
	case LNX_KIND_ACK:
		FUZZ_CHECK(payload == 0 || payload == sizeof(struct lnx_wire_credit) ||
			   payload == sizeof(struct lnx_wire_credit) +
				      sizeof(struct lnx_wire_allowance));
		break;
	case LNX_KIND_FIN:
		moved(data + HDR, payload);
		break;
	case LNX_KIND_HELLO:
		FUZZ_CHECK(payload >= LNX_WIRE_ADDR_BYTES + lnx_wire_proof_size(&h));
		payload -= lnx_wire_proof_size(&h);
		if (payload > LNX_WIRE_ADDR_BYTES)
			rails(data + HDR + LNX_WIRE_ADDR_BYTES,
			      payload - LNX_WIRE_ADDR_BYTES);
		break;
	case LNX_KIND_PUT:
		if (h.flags & LNX_WIRE_F_PUT)
			payload -= sizeof(struct lnx_wire_put);
		FUZZ_CHECK(h.len == payload && payload <= LNX_PAYLOAD_MAX);
		break;
	case LNX_KIND_PUT_RTS:
		FUZZ_CHECK(h.tag && h.tag <= LNX_RMA_TARGETS_MAX);
		places(data + HDR, payload, &h);
		break;
	case LNX_KIND_RESP:
		FUZZ_CHECK(h.len == payload && h.tag <= INT32_MAX);
		keys(data + HDR, payload);
		break;
	case LNX_KIND_ATOMIC:
		FUZZ_CHECK(h.len == payload);
		break;
	case LNX_KIND_GET:
		FUZZ_CHECK(!payload && h.len <= LNX_PAYLOAD_MAX);
		break;
	case LNX_KIND_PROBE:
		FUZZ_CHECK(!payload || payload == LNX_WIRE_ADDR_BYTES);
		break;
	default:
		FUZZ_CHECK(!payload);
	}
	/* Both parts of the check agree. */
	again = h;
	FUZZ_CHECK(!lnx_hdr_check((const void *)data, &again, size));
}

static void with_good_head(uint8_t kind, const uint8_t *data, size_t size)
{
	struct lnx_hdr h = {
		.kind = kind, .flags = kind % 8, .src = 1, .dst = 2,
		.seq = 3, .ack = 4, .len = size,
	};
	uint8_t *copy = malloc(HDR + size);

	FUZZ_CHECK(copy);
	if (size >= 8 && kind != LNX_KIND_MSG && kind != LNX_KIND_TAG) {
		memcpy(&h.len, data, 8);
		data += 8;
		size -= 8;
	}
	lnx_hdr_put((struct lnx_wire_hdr *)copy, &h);
	if (size)
		memcpy(copy + HDR, data, size);
	frame(copy, HDR + size);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t total;
	uint8_t how, *copy;

	if (!size || size > LNX_FRAME_MAX)
		return 0;
	how = *data++;
	size--;
	if (how < 16) {
		with_good_head(how, data, size);
		return 0;
	}
	/* Buffers of frames are aligned, so the copy is, too. */
	copy = malloc(size ? size : 1);
	FUZZ_CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	if (how < 128) {
		frame(copy, size);
	} else if (size >= 8) {
		memcpy(&total, copy, 8);
		rts(copy + 8, size - 8, total);
	}
	free(copy);
	return 0;
}
