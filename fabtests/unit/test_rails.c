/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of all rails after the address in a hello: which lists are valid. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/rails.h"

static uint8_t buf[LNX_WIRE_RAILS_BYTES + 1];

static void ip(struct lnx_rails *r, unsigned place, const char *text,
	       unsigned port)
{
	struct lnx_addr_rail *rail = &r->rail[r->n];
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	memset(rail, 0, sizeof(*rail));
	rail->prov = LNX_PROV_TCP;
	rail->group = 7;
	if (strchr(text, ':')) {
		in6.sin6_port = htons((uint16_t)port);
		inet_pton(AF_INET6, text, &in6.sin6_addr);
		memcpy(rail->raw, &in6, rail->rawlen = sizeof(in6));
	} else {
		in.sin_port = htons((uint16_t)port);
		inet_pton(AF_INET, text, &in.sin_addr);
		memcpy(rail->raw, &in, rail->rawlen = sizeof(in));
	}
	r->place[r->n++] = (uint8_t)place;
}

static void raw(struct lnx_rails *r, unsigned place, unsigned len)
{
	struct lnx_addr_rail *rail = &r->rail[r->n];

	memset(rail, 0, sizeof(*rail));
	rail->prov = LNX_PROV_CXI;
	rail->group = 0xffff;
	rail->rawlen = (uint8_t)len;
	memset(rail->raw, 0xab, len);
	r->place[r->n++] = (uint8_t)place;
}

/* 4 bytes for the head; each rail has an index, a head and a body. */
static struct lnx_rails sample(int *len)
{
	struct lnx_rails r = { .n = 0 };
	int n;

	ip(&r, 0, "10.0.0.1", 4000);
	ip(&r, 3, "fd00::1", 4001);
	raw(&r, 15, 32);
	n = lnx_rails_pack(&r, buf);
	cr_assert_eq(n, 4 + (1 + 9) + (1 + 21) + (1 + 36), "%d", n);
	*len = n;
	return r;
}

Test(rails, what_was_packed_is_unpacked)
{
	struct lnx_rails out;
	int len;
	struct lnx_rails in = sample(&len);
	unsigned i;

	memset(&out, 0x5a, sizeof(out));
	cr_assert_eq(lnx_rails_unpack(&out, buf, (size_t)len), 0);
	cr_assert_eq(out.n, in.n);
	for (i = 0; i < in.n; i++) {
		cr_expect_eq(out.place[i], in.place[i]);
		cr_expect(!memcmp(&out.rail[i], &in.rail[i],
				  sizeof(in.rail[i])), "rail %u", i);
	}
	cr_expect_eq(lnx_rails_find(&out, 3), &out.rail[1]);
	cr_expect_null(lnx_rails_find(&out, 1));
	cr_expect_null(lnx_rails_find(&out, 200));
}

Test(rails, sixteen_of_the_longest_fit)
{
	struct lnx_rails in = { .n = 0 }, out;
	unsigned i;
	int n;

	for (i = 0; i < LNX_WIRE_RAILS_MAX; i++)
		raw(&in, i, LNX_ADDR_RAW);
	buf[LNX_WIRE_RAILS_BYTES] = 0x77;
	n = lnx_rails_pack(&in, buf);
	cr_assert(n > 0 && n <= LNX_WIRE_RAILS_BYTES);
	cr_expect_eq(buf[LNX_WIRE_RAILS_BYTES], 0x77);
	cr_assert_eq(lnx_rails_unpack(&out, buf, (size_t)n), 0);
	cr_expect_eq(out.n, LNX_WIRE_RAILS_MAX);
}

Test(rails, what_is_new_replaces_what_was_in_its_place)
{
	struct lnx_rails r = { .n = 0 }, add = { .n = 0 };
	unsigned i;

	ip(&add, 1, "10.0.0.1", 4000);
	ip(&add, 3, "10.0.0.3", 4000);
	lnx_rails_merge(&r, &add);
	cr_assert_eq(r.n, 2);
	add.n = 0;
	ip(&add, 0, "10.0.0.0", 5000);
	ip(&add, 3, "10.0.0.3", 5000);
	ip(&add, 9, "10.0.0.9", 5000);
	lnx_rails_merge(&r, &add);
	cr_assert_eq(r.n, 4);
	for (i = 0; i < 4; i++) {
		struct sockaddr_in in;

		cr_expect_eq(r.place[i], ((uint8_t[]) { 0, 1, 3, 9 })[i]);
		memcpy(&in, r.rail[i].raw, sizeof(in));
		cr_expect_eq(ntohs(in.sin_port), i == 1 ? 4000 : 5000);
	}
}

/* Link-local addresses mean nothing on other hosts. */
Test(rails, link_local_ones_are_left_out)
{
	struct lnx_rails in = { .n = 0 }, out;
	int n;

	ip(&in, 0, "fe80::1", 4000);
	cr_expect_eq(lnx_rails_pack(&in, buf), 0);
	ip(&in, 5, "10.0.0.1", 4000);
	n = lnx_rails_pack(&in, buf);
	cr_assert_eq(lnx_rails_unpack(&out, buf, (size_t)n), 0);
	cr_expect_eq(out.n, 1);
	cr_expect_eq(out.place[0], 5);
}

Test(rails, what_is_malformed_is_not_packed)
{
	struct lnx_rails r = { .n = 0 };

	ip(&r, 1, "10.0.0.1", 4000);
	ip(&r, 1, "10.0.0.2", 4000);
	cr_expect_eq(lnx_rails_pack(&r, buf), -EINVAL, "an index twice");
	r.place[1] = 0;
	cr_expect_eq(lnx_rails_pack(&r, buf), -EINVAL, "indexes descend");
	r.place[1] = LNX_WIRE_RAILS_MAX;
	cr_expect_eq(lnx_rails_pack(&r, buf), -EINVAL, "index out of range");
	r.place[1] = 2;
	r.rail[1].group = 0;
	cr_expect_eq(lnx_rails_pack(&r, buf), -EINVAL, "no group");
	r.n = LNX_WIRE_RAILS_MAX + 1;
	cr_expect_eq(lnx_rails_pack(&r, buf), -EINVAL, "too many");
}

Test(rails, every_wrong_length_is_found)
{
	struct lnx_rails out;
	int len, n;

	sample(&len);
	for (n = 0; n <= len + 1; n++)
		cr_expect_eq(lnx_rails_unpack(&out, buf, (size_t)n),
			     n == len ? 0 : -EINVAL, "%d bytes", n);
}

Test(rails, every_wrong_field_is_found)
{
	static const struct {
		unsigned at;
		uint8_t value;
		const char *what;
	} row[] = {
		{ 0, 0, "no rails" }, { 0, 2, "fewer" }, { 0, 4, "more" },
		{ 0, 17, "too many" }, { 0, 255, "too many" },
		{ 1, 1, "reserved" }, { 2, 1, "reserved" },
		{ 3, 0x80, "reserved" },
		{ 4, 3, "the index of the next one" }, { 4, 16, "no place" },
		{ 14, 0, "an index twice" }, { 14, 15, "the next one's" },
		{ 5, 0, "no provider" }, { 5, LNX_PROV_SHM, "shm" },
		{ 5, LNX_PROV_MAX, "unknown" },
		{ 5, 0x40 | LNX_PROV_TCP, "another form" },
		{ 36, 255, "no such index" },
	};
	struct lnx_rails out;
	unsigned i;
	int len;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		sample(&len);
		buf[row[i].at] = row[i].value;
		cr_expect_eq(lnx_rails_unpack(&out, buf, (size_t)len), -EINVAL,
			     "%s (%u at %u)", row[i].what, row[i].value,
			     row[i].at);
	}
}

/* Whatever is accepted is packed to the same bytes again. */
Test(rails, anything)
{
	const char *env = getenv("LNX_TEST_SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) :
			      (unsigned)time(NULL);
	uint8_t again[LNX_WIRE_RAILS_BYTES];
	unsigned i, k, good = 0;
	struct lnx_rails out;

	printf("LNX_TEST_SEED=%u\n", seed);
	for (i = 0; i < 200000; i++) {
		int len;

		sample(&len);
		for (k = rand_r(&seed) % 3; k < 3; k++)
			buf[(unsigned)rand_r(&seed) % (unsigned)len] =
				(uint8_t)rand_r(&seed);
		if (lnx_rails_unpack(&out, buf, (size_t)len))
			continue;
		good++;
		cr_assert(out.n && out.n <= LNX_WIRE_RAILS_MAX);
		cr_assert_eq(lnx_rails_pack(&out, again), len);
		cr_assert(!memcmp(again, buf, (size_t)len));
	}
	cr_expect(good > 100, "only %u were accepted", good);
}
