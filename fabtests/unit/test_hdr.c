/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frame headers and payloads: packing, unpacking, and refusal of every
 * malformed one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lnx_wire_addr.h"
#include "wire/addr.h"
#include "wire/hdr.h"

#define HDR	sizeof(struct lnx_wire_hdr)

/* One byte more than the longest frame, and aligned as receive buffers are. */
static _Alignas(64) uint8_t frame[LNX_FRAME_LARGE + 64];

static struct lnx_hdr sample(uint8_t kind)
{
	return (struct lnx_hdr) {
		.kind = kind, .flags = LNX_WIRE_F_DATA, .rail = 0x0201,
		.seq = 0x14131211, .ack = 0x24232221,
		.src = 0x3837363534333231ULL, .dst = 0x4847464544434241ULL,
		.tag = 0x5857565554535251ULL, .data = 0x6867666564636261ULL,
		.len = 0,
	};
}

/* Builds a valid frame of that kind and returns its length. */
static size_t build(struct lnx_hdr *h, uint8_t kind)
{
	size_t payload = 0;

	*h = sample(kind);
	switch (kind) {
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
		payload = 100;
		h->len = 100;
		break;
	case LNX_KIND_PART_MSG:
	case LNX_KIND_PART_TAG:
		payload = 100;
		h->len = 1000;
		break;
	case LNX_KIND_MORE:
		payload = h->len = 100;
		break;
	case LNX_KIND_HELLO:
		payload = LNX_WIRE_ADDR_BYTES;
		break;
	case LNX_KIND_RTS_MSG:
	case LNX_KIND_RTS_TAG:
		payload = sizeof(struct lnx_wire_rts) + 8 +
			  sizeof(struct lnx_wire_key);
		h->len = 1ULL << 40;
		h->key = LNX_PAYLOAD_LARGE;
		break;
	case LNX_KIND_PUT_RTS:
		payload = sizeof(struct lnx_wire_target) +
			  sizeof(struct lnx_wire_rts) + 8 +
			  sizeof(struct lnx_wire_key);
		h->tag = 1;
		h->len = 1ULL << 40;
		break;
	case LNX_KIND_RESP:
		h->tag = 126;
		/* fall through */
	case LNX_KIND_PUT:
	case LNX_KIND_ATOMIC:
		payload = h->len = 100;
		break;
	case LNX_KIND_GET:
		h->len = LNX_PAYLOAD_MAX;
		break;
	default:
		break;
	}
	memset(frame, 0xaa, sizeof(frame));
	lnx_hdr_put((struct lnx_wire_hdr *)frame, h);
	return HDR + payload;
}

static int get(size_t len)
{
	struct lnx_hdr h;

	return lnx_hdr_get(&h, frame, len);
}

Test(hdr, every_byte_has_its_place)
{
	static const uint8_t want[HDR] = {
		0x4c, 1, LNX_KIND_TAG, LNX_WIRE_F_DATA, 0, 0, 0x01, 0x02,
		0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
		0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
		0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
		100, 0, 0, 0, 0, 0, 0, 0,
	};
	struct lnx_hdr h;

	build(&h, LNX_KIND_TAG);
	cr_expect_arr_eq(frame, want, HDR);
	cr_expect_eq(frame[HDR], 0xaa, "wrote after the header");
	lnx_hdr_set_ack((struct lnx_wire_hdr *)frame, 0xa4a3a2a1);
	cr_expect_arr_eq(frame + 12, ((uint8_t[]) { 0xa1, 0xa2, 0xa3, 0xa4 }),
			 4);
}

Test(hdr, what_was_put_is_got)
{
	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		struct lnx_hdr in, out;
		size_t len = build(&in, (uint8_t)kind);

		memset(&out, 0x55, sizeof(out));
		cr_assert_eq(lnx_hdr_get(&out, frame, len), 0, "kind %u", kind);
		cr_expect_eq(out.kind, in.kind);
		cr_expect_eq(out.flags, in.flags);
		cr_expect_eq(out.rail, in.rail);
		cr_expect_eq(out.seq, in.seq);
		cr_expect_eq(out.ack, in.ack);
		cr_expect_eq(out.src, in.src);
		cr_expect_eq(out.dst, in.dst);
		cr_expect_eq(out.tag, in.tag);
		cr_expect_eq(out.data, in.data);
		cr_expect_eq(out.len, in.len);
		cr_expect_eq(out.key, in.key);
	}
}

/* Each field wrong, once, in an otherwise valid frame of each kind. */
Test(hdr, every_wrong_field_is_found)
{
	static const struct {
		unsigned at, bytes;
		uint8_t value;
		int ret;
		const char *what;
	} row[] = {
		{ 0, 1, 0x4d, -EBADMSG, "magic" },
		{ 0, 1, 0x00, -EBADMSG, "magic" },
		{ 1, 1, 0, -EPROTONOSUPPORT, "version" },
		{ 1, 1, 2, -EPROTONOSUPPORT, "version" },
		{ 1, 1, 255, -EPROTONOSUPPORT, "version" },
		{ 2, 1, 0, -EBADMSG, "kind" },
		{ 2, 1, LNX_KIND_MAX, -EBADMSG, "kind" },
		{ 2, 1, 255, -EBADMSG, "kind" },
		{ 3, 1, 0x20, -EBADMSG, "flags" },
		{ 3, 1, 0x40, -EBADMSG, "flags" },
		{ 3, 1, 0x80, -EBADMSG, "flags" },
		{ 16, 8, 0, -EBADMSG, "src" },
		{ 24, 8, 0, -EBADMSG, "dst" },
	};

	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
			struct lnx_hdr h;
			size_t len = build(&h, (uint8_t)kind);

			memset(frame + row[i].at, row[i].value, row[i].bytes);
			cr_expect_eq(get(len), row[i].ret, "%s, %s %u",
				     lnx_wire_kind_name((uint8_t)kind), row[i].what,
				     row[i].value);
		}
	}
}

/* A frame of another version is recognized, whatever the rest of it contains. */
Test(hdr, other_versions_may_look_different)
{
	struct lnx_hdr h;

	build(&h, LNX_KIND_TAG);
	memset(frame + 1, 9, HDR - 1);
	cr_expect_eq(get(HDR), -EPROTONOSUPPORT);
	cr_expect_eq(get(HDR + 33), -EPROTONOSUPPORT);
	frame[0] = 0;
	cr_expect_eq(get(HDR), -EBADMSG);
}

/* Later versions may use them; receivers of this version ignore them. */
Test(hdr, reserved_fields_are_sent_as_0_and_ignored)
{
	static const uint8_t reserved[] = { 4, 5 };

	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		for (size_t i = 0; i < sizeof(reserved); i++) {
			struct lnx_hdr h;
			size_t len = build(&h, (uint8_t)kind);

			cr_expect_eq(frame[reserved[i]], 0);
			frame[reserved[i]] = 0xff;
			cr_expect_eq(get(len), 0, "kind %u byte %u", kind,
				     reserved[i]);
		}
	}
	for (unsigned flags = 0; flags <= LNX_WIRE_F_MSG; flags++) {
		struct lnx_hdr h;
		size_t len = build(&h, LNX_KIND_MSG);

		frame[3] = (uint8_t)flags;
		cr_expect_eq(get(len), 0, "flags %u", flags);
	}
}

/* Every wrong length of each kind, truncated frames first. */
Test(hdr, every_wrong_length_is_found)
{
	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		struct lnx_hdr h;
		size_t good = build(&h, (uint8_t)kind), len;
		bool rts = kind == LNX_KIND_RTS_MSG || kind == LNX_KIND_RTS_TAG;
		bool part = kind == LNX_KIND_PART_MSG || kind == LNX_KIND_PART_TAG;
		size_t head = 0;

		if (kind == LNX_KIND_PUT_RTS) {
			rts = true;
			head = sizeof(struct lnx_wire_target);
		}

		for (len = 0; len < HDR + 800; len++) {
			/* lnx_wire_rts_get checks the length of an RTS. */
			bool ok = len == good ||
				  /* All but the last bytes of the message. */
				  (part && len > HDR) ||
				  (rts && len >= HDR + head +
				   sizeof(struct lnx_wire_rts)) ||
				  (kind == LNX_KIND_PROBE &&
				   len == HDR + LNX_ADDR_BYTES) ||
				  (kind == LNX_KIND_FIN && len >= HDR &&
				   !((len - HDR) % sizeof(struct lnx_wire_moved)) &&
				   (len - HDR) / sizeof(struct lnx_wire_moved) <=
				   LNX_WIRE_PATHS) ||
				  (kind == LNX_KIND_ACK &&
				   (len == HDR + sizeof(struct lnx_wire_credit) ||
				    len == HDR + sizeof(struct lnx_wire_credit) +
				    sizeof(struct lnx_wire_allowance))) ||
				  /* And lnx_rails_unpack that of a list. */
				  (kind == LNX_KIND_HELLO && len > good +
				   LNX_WIRE_RAILS_HEAD && len <= good +
				   LNX_WIRE_RAILS_BYTES);

			cr_expect_eq(get(len), ok ? 0 : -EBADMSG, "%s of %zu",
				     lnx_wire_kind_name((uint8_t)kind), len);
		}
	}
}

/* A HELLO with a proof is longer by it; no other kind can have one. */
Test(hdr, every_wrong_length_of_a_keyed_hello_is_found)
{
	size_t good, len, proof = sizeof(struct lnx_wire_proof);
	struct lnx_hdr h;

	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		good = build(&h, (uint8_t)kind);
		h.flags |= LNX_WIRE_F_KEYED;
		lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
		for (len = 0; len < HDR + 800; len++) {
			bool ok = kind == LNX_KIND_HELLO &&
				  (len == good + proof ||
				   (len > good + proof + LNX_WIRE_RAILS_HEAD &&
				    len <= good + proof + LNX_WIRE_RAILS_BYTES));

			cr_expect_eq(get(len), ok ? 0 : -EBADMSG, "%s of %zu",
				     lnx_wire_kind_name((uint8_t)kind), len);
		}
	}
}

/* A PROBE with an address epoch also has the address. */
Test(hdr, probe_with_a_key_has_an_address)
{
	struct lnx_hdr h;
	size_t good = build(&h, LNX_KIND_PROBE);

	h.key = 1;
	lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
	cr_expect_eq(get(good), -EBADMSG);
	cr_expect_eq(get(HDR + LNX_ADDR_BYTES), 0);
	h.key = 0;
	lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
	cr_expect_eq(get(good), 0);
	cr_expect_eq(get(HDR + LNX_ADDR_BYTES), 0);
}

/* Longer than any buffer for frames: such a length from a core is not trusted. */
/* Of kinds for which credit is needed, if the payload is as long as that. */
static bool may_be_large(unsigned kind)
{
	return kind == LNX_KIND_MSG || kind == LNX_KIND_TAG || kind == LNX_KIND_MORE ||
	       kind == LNX_KIND_PART_MSG || kind == LNX_KIND_PART_TAG;
}

Test(hdr, no_kind_is_longer_than_its_frames)
{
	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		static const size_t len[] = {
			LNX_FRAME_MAX + 1, LNX_FRAME_MAX + 64, LNX_FRAME_LARGE,
			LNX_FRAME_LARGE + 1, LNX_FRAME_LARGE + 64, SIZE_MAX,
		};
		struct lnx_hdr h;

		build(&h, (uint8_t)kind);
		for (size_t i = 0; i < LNX_ARRAY_SIZE(len); i++) {
			bool part = kind == LNX_KIND_PART_MSG || kind == LNX_KIND_PART_TAG;
			uint64_t payload = htole64(len[i] - HDR + part);

			memcpy(frame + 48, &payload, sizeof(payload));
			cr_expect_eq(get(len[i]), may_be_large(kind) &&
				     len[i] <= LNX_FRAME_LARGE ? 0 : -EBADMSG,
				     "%s of %zu", lnx_wire_kind_name((uint8_t)kind), len[i]);
		}
	}
}

/* The first frame of several is not the last, the others do not wrap, and no more follows
 * an announced message than it is long. */
Test(hdr, lengths_of_parts)
{
	static const struct {
		uint8_t kind;
		uint64_t len, tag, key;
		size_t payload;
		int ret;
	} row[] = {
		{ LNX_KIND_PART_TAG, 101, 0, 0, 100, 0 },
		{ LNX_KIND_PART_TAG, UINT64_MAX, 0, 0, 100, 0 },
		{ LNX_KIND_PART_TAG, 100, 0, 0, 100, -EBADMSG },
		{ LNX_KIND_PART_MSG, 99, 0, 0, 100, -EBADMSG },
		{ LNX_KIND_PART_MSG, 100, 0, 0, 0, -EBADMSG },
		{ LNX_KIND_MORE, 100, 0, 0, 100, 0 },
		{ LNX_KIND_MORE, 100, UINT64_MAX - 100, 0, 100, 0 },
		{ LNX_KIND_MORE, 100, UINT64_MAX - 99, 0, 100, -EBADMSG },
		{ LNX_KIND_MORE, 99, 0, 0, 100, -EBADMSG },
		{ LNX_KIND_MORE, 101, 0, 0, 100, -EBADMSG },
		{ LNX_KIND_MORE, 0, 0, 0, 0, -EBADMSG },
		{ LNX_KIND_RTS_TAG, 1000, 0, 1000, 64, 0 },
		{ LNX_KIND_RTS_TAG, 1000, 0, 1001, 64, -EBADMSG },
		{ LNX_KIND_RTS_MSG, 1000, 0, UINT64_MAX, 64, -EBADMSG },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct lnx_hdr h = sample(row[i].kind);

		h.len = row[i].len;
		h.tag = row[i].tag;
		h.key = row[i].key;
		lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
		cr_expect_eq(get(HDR + row[i].payload), row[i].ret, "row %zu", i);
	}
}

/* Nothing beyond the end is read, as sanitizers and valgrind check. */
Test(hdr, truncated_frames_are_not_read_beyond_their_end)
{
	for (size_t len = 0; len <= HDR + 100; len++) {
		struct lnx_hdr h;
		uint8_t *copy = malloc(len ? len : 1);

		build(&h, LNX_KIND_TAG);
		memcpy(copy, frame, len);
		cr_expect_eq(lnx_hdr_get(&h, copy, len),
			     len == HDR + 100 ? 0 : -EBADMSG);
		free(copy);
	}
}

Test(hdr, message_length_is_the_payload_s)
{
	static const struct { uint64_t len; size_t payload; int ret; } row[] = {
		{ 0, 0, 0 },
		{ 1, 1, 0 },
		{ LNX_PAYLOAD_MAX, LNX_PAYLOAD_MAX, 0 },
		{ LNX_PAYLOAD_LARGE, LNX_PAYLOAD_LARGE, 0 },
		{ LNX_PAYLOAD_LARGE + 1, LNX_PAYLOAD_LARGE + 1, -EBADMSG },
		{ LNX_PAYLOAD_LARGE + 64, LNX_PAYLOAD_LARGE + 64, -EBADMSG },
		{ 1, 0, -EBADMSG },
		{ 0, 1, -EBADMSG },
		{ 99, 100, -EBADMSG },
		{ 101, 100, -EBADMSG },
		{ 100 + (1ULL << 32), 100, -EBADMSG },
		{ UINT64_MAX, 100, -EBADMSG },
		{ UINT64_MAX - 63, 0, -EBADMSG },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		for (uint8_t kind = LNX_KIND_MSG; kind <= LNX_KIND_TAG;
		     kind++) {
			struct lnx_hdr h = sample(kind);

			h.len = row[i].len;
			lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
			cr_expect_eq(get(HDR + row[i].payload), row[i].ret,
				     "row %zu", i);
		}
	}
}

/* In this field FIN has an error, an RTS a length that is never 0. */
Test(hdr, length_of_other_kinds)
{
	struct lnx_hdr h;
	size_t len = build(&h, LNX_KIND_FIN);

	memset(frame + 48, 0xff, 8);
	cr_expect_eq(get(len), 0);
	len = build(&h, LNX_KIND_RTS_TAG);
	memset(frame + 48, 0, 8);
	cr_expect_eq(get(len), -EBADMSG);
}

/* A FIN may list the rails that carried the message. */
Test(hdr, payload_of_a_fin)
{
	const size_t one = sizeof(struct lnx_wire_moved);
	struct lnx_moved in[LNX_WIRE_PATHS], out[LNX_WIRE_PATHS + 1];
	struct lnx_hdr h;
	size_t len = build(&h, LNX_KIND_FIN), n;

	for (n = 0; n < LNX_WIRE_PATHS; n++) {
		in[n].rail = (uint16_t)(0x8000 + n);
		in[n].bytes = UINT64_MAX - n;
	}
	for (n = 0; n <= LNX_WIRE_PATHS; n++) {
		memset(out, 0xee, sizeof(out));
		lnx_wire_moved_put(frame + HDR, in, (unsigned)n);
		cr_assert_eq(get(len + n * one), 0, "%zu", n);
		cr_assert_eq(lnx_wire_moved_get(out, frame + HDR, n * one), n);
		for (size_t i = 0; i < n; i++)
			cr_expect(out[i].rail == in[i].rail &&
				  out[i].bytes == in[i].bytes);
		cr_expect_eq(out[n].rail, 0xeeee);
		cr_expect_eq(get(len + n * one + 1), -EBADMSG);
		cr_expect_eq(get(len + n * one + one / 2), -EBADMSG);
	}
	cr_expect_eq(get(len + n * one), -EBADMSG, "too many");
}

Test(hdr, kinds)
{
	for (unsigned kind = 0; kind < 256; kind++) {
		const char *name = lnx_wire_kind_name((uint8_t)kind);
		bool known = kind >= 1 && kind < LNX_KIND_MAX;

		cr_expect_eq(!strcmp(name, "unknown"), !known, "%u", kind);
		if (known)
			cr_expect_eq(lnx_wire_kind_sequenced((uint8_t)kind),
				     kind <= LNX_KIND_FIN ||
				     kind >= LNX_KIND_PUT, "%s", name);
	}
}

/* ---- RTS ---- */

static struct lnx_rts rts_of(unsigned nseg, unsigned nkey, uint64_t *total)
{
	struct lnx_rts r;

	memset(&r, 0x5a, sizeof(r));
	r.op = 0x1122334455667788ULL;
	r.nseg = nseg;
	r.nkey = nkey;
	*total = 0;
	for (unsigned s = 0; s < nseg && s < LNX_RTS_SEGS; s++) {
		r.seg_len[s] = 1000 + s;
		*total += r.seg_len[s];
		for (unsigned k = 0; k < nkey && k < LNX_RTS_KEYS; k++) {
			r.key[s][k].rail = (uint16_t)(k * 7 + 1);
			/* Of a few the last key alone. */
			r.key[s][k].from = nkey % 3 && k + 1 == nkey ? 1u << s : 0;
			r.key[s][k].key = ~(uint64_t)(s * 100 + k);
			r.key[s][k].addr = 0x7f0000000000ULL + s * 100 + k;
		}
	}
	return r;
}

Test(rts, every_byte_has_its_place)
{
	struct lnx_rts r = {
		.op = 0x0807060504030201ULL, .nseg = 1, .nkey = 1,
		.seg_len[0] = 0x1817161514131211ULL,
		.key[0][0] = { .rail = 0x2221, .from = 0x2423, .key = 0x3837363534333231ULL,
			       .addr = 0x4847464544434241ULL },
	};
	static const uint8_t want[48] = {
		1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 1, 0, 0, 0, 0, 0,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0x21, 0x22, 0x23, 0x24, 0, 0, 0, 0,
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
	};

	memset(frame, 0xaa, sizeof(frame));
	cr_assert_eq(lnx_wire_rts_size(&r), sizeof(want));
	lnx_wire_rts_put(frame, &r);
	cr_expect_arr_eq(frame, want, sizeof(want));
	cr_expect_eq(frame[sizeof(want)], 0xaa);
}

Test(rts, all_sizes_there_and_back)
{
	for (unsigned nseg = 1; nseg <= LNX_RTS_SEGS; nseg++) {
		for (unsigned nkey = 1; nkey <= LNX_RTS_KEYS; nkey++) {
			uint64_t total;
			struct lnx_rts in = rts_of(nseg, nkey, &total), out;
			size_t size = lnx_wire_rts_size(&in);

			cr_assert_eq(size, 16 + nseg * 8 + nseg * nkey * 24);
			cr_assert_leq(size, LNX_PAYLOAD_MAX);
			lnx_wire_rts_put(frame, &in);
			cr_assert_eq(lnx_wire_rts_get(&out, frame, size, total), 0);
			cr_expect_eq(out.op, in.op);
			cr_assert_eq(out.nseg, nseg);
			cr_assert_eq(out.nkey, nkey);
			cr_expect_eq(out.prefers, nkey % 3 != 0);
			for (unsigned s = 0; s < nseg; s++) {
				cr_expect_eq(out.seg_len[s], in.seg_len[s]);
				for (unsigned k = 0; k < nkey; k++) {
					cr_expect_eq(out.key[s][k].rail,
						     in.key[s][k].rail);
					cr_expect_eq(out.key[s][k].from,
						     in.key[s][k].from);
					cr_expect_eq(out.key[s][k].key,
						     in.key[s][k].key);
					cr_expect_eq(out.key[s][k].addr,
						     in.key[s][k].addr);
				}
			}
		}
	}
}

/* From 0 to one byte too many, read from memory that ends there. */
Test(rts, every_wrong_size_is_found)
{
	static const struct { unsigned nseg, nkey; } row[] = {
		{ 1, 1 }, { 2, 3 }, { LNX_RTS_SEGS, 2 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		uint64_t total;
		struct lnx_rts r = rts_of(row[i].nseg, row[i].nkey, &total);
		size_t good = lnx_wire_rts_size(&r);

		memset(frame, 0, sizeof(frame));
		lnx_wire_rts_put(frame, &r);
		for (size_t size = 0; size <= good + 30; size++) {
			uint8_t *copy = malloc(size ? size : 1);
			struct lnx_rts out;

			memcpy(copy, frame, size);
			cr_expect_eq(lnx_wire_rts_get(&out, copy, size, total),
				     size == good ? 0 : -EBADMSG,
				     "row %zu size %zu", i, size);
			free(copy);
		}
	}
}

/* Counts out of range, with as many bytes as they need. */
Test(rts, counts_have_limits)
{
	static const struct { unsigned nseg, nkey; int ret; } row[] = {
		{ 1, 1, 0 },
		{ LNX_RTS_SEGS, LNX_RTS_KEYS, 0 },
		{ 0, 1, -EBADMSG },
		{ 1, 0, -EBADMSG },
		{ 0, 0, -EBADMSG },
		{ LNX_RTS_SEGS + 1, 1, -EBADMSG },
		{ 1, LNX_RTS_KEYS + 1, -EBADMSG },
		{ 65535, 1, -EBADMSG },
		{ 1, 65535, -EBADMSG },
		{ 65535, 65535, -EBADMSG },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		uint64_t total, one = htole64(1000);
		struct lnx_rts r = rts_of(LNX_MIN(row[i].nseg, LNX_RTS_SEGS),
					  LNX_MIN(row[i].nkey, LNX_RTS_KEYS),
					  &total);
		uint16_t nseg = htole16((uint16_t)row[i].nseg);
		uint16_t nkey = htole16((uint16_t)row[i].nkey);
		size_t want = 16 + (size_t)row[i].nseg * 8 +
			      (size_t)row[i].nseg * row[i].nkey * 24;

		memset(frame, 0, sizeof(frame));
		lnx_wire_rts_put(frame, &r);
		memcpy(frame + 8, &nseg, 2);
		memcpy(frame + 10, &nkey, 2);
		if (row[i].nseg > LNX_RTS_SEGS)
			for (unsigned s = 0; s < LNX_RTS_SEGS + 1; s++)
				memcpy(frame + 16 + s * 8, &one, 8);
		cr_expect_eq(lnx_wire_rts_get(&r, frame,
					      LNX_MIN(want, LNX_PAYLOAD_MAX),
					      total), row[i].ret, "row %zu", i);
	}
}

Test(rts, pieces_sum_up_to_the_message)
{
	static const struct {
		uint64_t len[3];
		uint64_t total;
		int ret;
	} row[] = {
		{ { 1, 1, 1 }, 3, 0 },
		{ { 1ULL << 62, 1ULL << 62, 1ULL << 62 }, 3ULL << 62, 0 },
		{ { UINT64_MAX - 2, 1, 1 }, UINT64_MAX, 0 },
		{ { 1, 1, 1 }, 2, -EBADMSG },
		{ { 1, 1, 1 }, 4, -EBADMSG },
		{ { 1, 1, 1 }, 0, -EBADMSG },
		{ { 0, 1, 1 }, 2, -EBADMSG },
		{ { 1, 0, 1 }, 2, -EBADMSG },
		{ { 1, 1, 0 }, 2, -EBADMSG },
		/* Sums that are right only because they overflow. */
		{ { UINT64_MAX, 2, 2 }, 3, -EBADMSG },
		{ { 1, UINT64_MAX, 3 }, 3, -EBADMSG },
		{ { 1ULL << 63, 1ULL << 63, 3 }, 3, -EBADMSG },
		{ { 1, 1, UINT64_MAX }, 1, -EBADMSG },
		{ { UINT64_MAX - 1, UINT64_MAX - 1, 2 }, UINT64_MAX - 1,
		  -EBADMSG },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		uint64_t ignored;
		struct lnx_rts r = rts_of(3, 1, &ignored), out;

		memcpy(r.seg_len, row[i].len, sizeof(row[i].len));
		lnx_wire_rts_put(frame, &r);
		cr_expect_eq(lnx_wire_rts_get(&out, frame, lnx_wire_rts_size(&r),
					      row[i].total), row[i].ret,
			     "row %zu", i);
	}
}

Test(rts, reserved_fields_are_sent_as_0_and_ignored)
{
	static const unsigned at[] = { 28, 29, 31 };
	uint64_t total;
	struct lnx_rts r = rts_of(1, 1, &total), out;

	/* Unknown flags are ignored: later versions may use them. */
	r.flags = 0x80c0a001;
	lnx_wire_rts_put(frame, &r);
	cr_expect_eq(lnx_wire_rts_get(&out, frame, lnx_wire_rts_size(&r), total), 0);
	cr_expect_eq(out.flags, r.flags);

	for (size_t i = 0; i < LNX_ARRAY_SIZE(at); i++) {
		lnx_wire_rts_put(frame, &r);
		cr_expect_eq(frame[at[i]], 0);
		frame[at[i]] = 0xff;
		cr_expect_eq(lnx_wire_rts_get(&out, frame, lnx_wire_rts_size(&r), total),
			     0);
	}
}

/* ---- remote memory ---- */

/* Only a PUT names the operation that it is part of, and only with the bytes for it. */
Test(hdr, flags_of_puts)
{
	static const uint8_t flags[] = {
		LNX_WIRE_F_PUT, LNX_WIRE_F_LAST, LNX_WIRE_F_PUT | LNX_WIRE_F_LAST,
	};

	for (unsigned kind = 1; kind < LNX_KIND_MAX; kind++) {
		for (size_t i = 0; i < sizeof(flags); i++) {
			bool put = (flags[i] & LNX_WIRE_F_PUT) != 0;
			struct lnx_hdr h;
			size_t len = build(&h, (uint8_t)kind);

			if (put && kind == LNX_KIND_PUT) {
				uint64_t n = htole64(100 -
					sizeof(struct lnx_wire_put));

				memcpy(frame + 48, &n, sizeof(n));
			}
			frame[3] |= flags[i];
			cr_expect_eq(get(len), kind == LNX_KIND_PUT ||
				     (kind == LNX_KIND_GET && !put) ? 0 :
				     -EBADMSG, "%s, flags %x",
				     lnx_wire_kind_name((uint8_t)kind), flags[i]);
		}
	}
	for (size_t room = 0; room < 2 * sizeof(struct lnx_wire_put); room++) {
		struct lnx_hdr h = sample(LNX_KIND_PUT);

		h.flags = LNX_WIRE_F_PUT;
		h.len = room - sizeof(struct lnx_wire_put);
		lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
		cr_expect_eq(get(HDR + room),
			     room < sizeof(struct lnx_wire_put) ? -EBADMSG : 0,
			     "%zu", room);
	}
}

Test(hdr, answers_and_requests_have_limits)
{
	struct lnx_hdr h;
	size_t len = build(&h, LNX_KIND_GET);
	uint64_t v = htole64(LNX_PAYLOAD_MAX + 1);

	memcpy(frame + 48, &v, sizeof(v));
	cr_expect_eq(get(len), -EBADMSG, "more than a reply can carry");
	len = build(&h, LNX_KIND_RESP);
	memset(frame + 32, 0xff, 8);
	cr_expect_eq(get(len), -EBADMSG, "no error number");
	len = build(&h, LNX_KIND_PUT_RTS);
	memset(frame + 32, 0, 8);
	cr_expect_eq(get(len), -EBADMSG, "no target");
	frame[32] = LNX_RMA_TARGETS_MAX + 1;
	cr_expect_eq(get(len), -EBADMSG, "too many targets");
}

Test(places, what_was_put_is_got_and_makes_up_the_whole)
{
	struct lnx_rma_target in[LNX_RMA_TARGETS_MAX], out[LNX_RMA_TARGETS_MAX];
	uint8_t wire[sizeof(struct lnx_wire_target) * LNX_RMA_TARGETS_MAX];
	uint64_t total = 0;

	for (unsigned i = 0; i < LNX_RMA_TARGETS_MAX; i++) {
		in[i].addr = 0x1111111111111111ULL * (i + 1);
		in[i].key = ~in[i].addr;
		in[i].len = 1000 + i;
		total += in[i].len;
	}
	lnx_wire_targets_put(wire, in, LNX_RMA_TARGETS_MAX);
	cr_expect_eq(lnx_wire_targets_get(out, LNX_RMA_TARGETS_MAX, wire, total), 0);
	for (unsigned i = 0; i < LNX_RMA_TARGETS_MAX; i++) {
		cr_expect_eq(out[i].addr, in[i].addr);
		cr_expect_eq(out[i].key, in[i].key);
		cr_expect_eq(out[i].len, in[i].len);
	}
	cr_expect_eq(lnx_wire_targets_get(out, LNX_RMA_TARGETS_MAX, wire, total - 1),
		     -EBADMSG);
	cr_expect_eq(lnx_wire_targets_get(out, LNX_RMA_TARGETS_MAX, wire, total + 1),
		     -EBADMSG);
	cr_expect_eq(lnx_wire_targets_get(out, 3, wire, total), -EBADMSG);
	/* Lengths whose sum overflows to the right value. */
	in[0].len = UINT64_MAX;
	in[1].len = 1001;
	lnx_wire_targets_put(wire, in, 2);
	cr_expect_eq(lnx_wire_targets_get(out, 2, wire, 1000), -EBADMSG);
}

Test(keys, what_was_put_is_got)
{
	struct lnx_keys in = { .len = 0x123456789aULL, .nkey = LNX_RTS_KEYS,
			       .origin = 0xfedcba9876543210ULL };
	uint8_t wire[LNX_PAYLOAD_MAX];
	struct lnx_keys out;
	size_t size = lnx_wire_keys_size(in.nkey);

	for (unsigned i = 0; i < in.nkey; i++) {
		in.key[i].rail = (uint16_t)(i * 3);
		in.key[i].key = 0xf0f0f0f000000000ULL + i;
		in.key[i].addr = ~in.key[i].key;
	}
	lnx_wire_keys_put(wire, &in);
	cr_expect_eq(lnx_wire_keys_get(&out, wire, size), 0);
	cr_expect_eq(out.len, in.len);
	cr_expect_eq(out.origin, in.origin);
	cr_expect_eq(out.nkey, in.nkey);
	for (unsigned i = 0; i < in.nkey; i++) {
		cr_expect_eq(out.key[i].rail, in.key[i].rail);
		cr_expect_eq(out.key[i].key, in.key[i].key);
		cr_expect_eq(out.key[i].addr, in.key[i].addr);
	}
	for (size_t n = 0; n < size; n++)
		cr_expect_eq(lnx_wire_keys_get(&out, wire, n), -EBADMSG, "%zu", n);
	cr_expect_eq(lnx_wire_keys_get(&out, wire, size + 1), -EBADMSG);
	wire[8] = wire[9] = 0;
	cr_expect_eq(lnx_wire_keys_get(&out, wire, sizeof(struct lnx_wire_keys)),
		     -EBADMSG, "no key");
	wire[8] = LNX_RTS_KEYS + 1;
	cr_expect_eq(lnx_wire_keys_get(&out, wire, lnx_wire_keys_size(LNX_RTS_KEYS + 1)),
		     -EBADMSG, "too many keys");
}
