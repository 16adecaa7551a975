/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Payloads of ATOMIC frames. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "wire/atomic.h"

static uint8_t payload[LNX_PAYLOAD_MAX + 64];

/* Two pieces, 3 + 4 elements of 8 bytes, two operands. */
static struct lnx_atomic sample(void)
{
	return (struct lnx_atomic) {
		.op = 12, .type = 7, .cls = 2, .noperand = 2, .nseg = 2,
		.size = 8, .count = 7,
		.seg = {
			{ 0x1817161514131211ULL, 0x2827262524232221ULL, 3 },
			{ 0x3837363534333231ULL, 0x4847464544434241ULL, 4 },
		},
	};
}

#define GOOD	(8 + 2 * 24 + 2 * 7 * 8)

static int get(size_t size)
{
	struct lnx_atomic a;

	return lnx_atomic_get(&a, payload, size);
}

Test(atomic, every_byte_has_its_place)
{
	static const uint8_t want[] = {
		12, 7, 2, 2, 2, 8, 7, 0,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		3, 0, 0, 0, 0, 0, 0, 0,
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
		4, 0, 0, 0, 0, 0, 0, 0,
	};
	struct lnx_atomic a = sample();

	memset(payload, 0xaa, sizeof(payload));
	lnx_atomic_put(payload, &a);
	cr_expect_eq(lnx_atomic_head(&a), sizeof(want));
	cr_expect_eq(lnx_atomic_size(&a), GOOD);
	cr_expect_arr_eq(payload, want, sizeof(want));
	cr_expect_eq(payload[sizeof(want)], 0xaa, "wrote into the operands");
}

Test(atomic, what_was_put_is_got)
{
	struct lnx_atomic in = sample(), out;
	unsigned i;

	lnx_atomic_put(payload, &in);
	memset(&out, 0x55, sizeof(out));
	cr_assert_eq(lnx_atomic_get(&out, payload, GOOD), 0);
	cr_expect(out.op == in.op && out.type == in.type &&
		  out.cls == in.cls && out.noperand == in.noperand &&
		  out.nseg == in.nseg && out.size == in.size &&
		  out.count == in.count);
	for (i = 0; i < in.nseg; i++)
		cr_expect(out.seg[i].addr == in.seg[i].addr &&
			  out.seg[i].key == in.seg[i].key &&
			  out.seg[i].count == in.seg[i].count, "piece %u", i);
}

Test(atomic, every_wrong_field_is_found)
{
	static const struct {
		unsigned at;
		uint8_t value;
		const char *what;
	} row[] = {
		{ 3, 0, "operands" }, { 3, 1, "operands" },
		{ 3, 3, "operands" }, { 3, 255, "operands" },
		{ 4, 0, "pieces" }, { 4, 1, "pieces" },
		{ 4, 3, "pieces" }, { 4, 5, "pieces" }, { 4, 255, "pieces" },
		{ 5, 0, "size" }, { 5, 7, "size" }, { 5, 33, "size" },
		{ 5, 255, "size" },
		{ 6, 6, "count" }, { 6, 8, "count" }, { 6, 0, "count" },
		{ 7, 1, "count" }, { 7, 255, "count" },
		{ 24, 2, "count of a piece" }, { 24, 4, "count of a piece" },
		{ 25, 1, "count of a piece" }, { 48, 0, "count of a piece" },
		{ 49, 255, "count of a piece" },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct lnx_atomic a = sample();

		lnx_atomic_put(payload, &a);
		cr_expect_eq(get(GOOD), 0);
		payload[row[i].at] = row[i].value;
		cr_expect_eq(get(GOOD), -EBADMSG, "%s %u", row[i].what,
			     row[i].value);
	}
}

/* Numbers of elements whose sum is right only if it wraps around. */
Test(atomic, sums_do_not_wrap)
{
	struct lnx_atomic a = sample();

	a.seg[0].count = 0xffff;
	a.seg[1].count = 8;
	lnx_atomic_put(payload, &a);
	cr_expect_eq(get(GOOD), -EBADMSG);
}

/* A reply must fit into a frame also when the request has no operands. */
Test(atomic, answers_fit_a_frame)
{
	struct lnx_atomic a = {
		.op = 10, .type = 13, .cls = 1, .noperand = 0, .nseg = 1,
		.size = 32, .count = LNX_ATOMIC_BYTES_MAX / 32,
	};

	a.seg[0].count = a.count;
	lnx_atomic_put(payload, &a);
	cr_expect_eq(get(lnx_atomic_size(&a)), 0);
	a.seg[0].count = ++a.count;
	lnx_atomic_put(payload, &a);
	cr_expect_eq(get(lnx_atomic_size(&a)), -EBADMSG);
}

Test(atomic, largest_fit_a_frame)
{
	static const unsigned size[] = { 1, 2, 4, 8, 12, 16, 24, 32 };
	unsigned i, n;

	for (i = 0; i < LNX_ARRAY_SIZE(size); i++) {
		for (n = 1; n <= 2; n++) {
			struct lnx_atomic a = {
				.noperand = (uint8_t)n, .nseg = LNX_ATOMIC_SEGS,
				.size = size[i],
				.count = LNX_ATOMIC_BYTES_MAX / n / size[i],
			};

			a.seg[0].count = a.count;
			cr_expect_leq(lnx_atomic_size(&a), LNX_PAYLOAD_MAX,
				      "%u operands of size %u", n, size[i]);
			lnx_atomic_put(payload, &a);
			cr_expect_eq(get(lnx_atomic_size(&a)), 0);
		}
	}
}

Test(atomic, nothing_is_an_operation_too)
{
	struct lnx_atomic a = { .noperand = 1, .nseg = 1, .size = 8 };

	lnx_atomic_put(payload, &a);
	cr_expect_eq(get(lnx_atomic_size(&a)), 0);
}

/* Every other length.  Nothing beyond is read, as sanitizers and valgrind check. */
Test(atomic, every_wrong_length_is_found)
{
	struct lnx_atomic a = sample();
	size_t len;

	lnx_atomic_put(payload, &a);
	for (len = 0; len < GOOD + 100; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		cr_assert_not_null(copy);
		memcpy(copy, payload, len);
		cr_expect_eq(lnx_atomic_get(&a, copy, len),
			     len == GOOD ? 0 : -EBADMSG, "%zu bytes", len);
		free(copy);
	}
}
