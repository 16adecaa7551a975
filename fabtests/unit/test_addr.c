/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address blobs: packing, unpacking, and refusal of every malformed one. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "lnx_wire_addr.h"
#include "wire/addr.h"

static char why[256];

static void add_ip(struct lnx_addr *a, uint8_t prov, uint16_t group,
		   const char *ip, uint16_t port)
{
	struct lnx_addr_rail *r = &a->rail[a->nrail++];
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	memset(r, 0, sizeof(*r));
	r->prov = prov;
	r->group = group;
	if (strchr(ip, ':')) {
		cr_assert_eq(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
		memcpy(r->raw, &in6, sizeof(in6));
		r->rawlen = sizeof(in6);
	} else {
		cr_assert_eq(inet_pton(AF_INET, ip, &in.sin_addr), 1);
		memcpy(r->raw, &in, sizeof(in));
		r->rawlen = sizeof(in);
	}
}

static void add_bytes(struct lnx_addr *a, uint8_t prov, uint16_t group,
		      uint8_t first, uint8_t n)
{
	struct lnx_addr_rail *r = &a->rail[a->nrail++];
	uint8_t i;

	memset(r, 0, sizeof(*r));
	r->prov = prov;
	r->group = group;
	r->rawlen = n;
	for (i = 0; i < n; i++)
		r->raw[i] = (uint8_t)(first + i);
}

static struct lnx_addr plain(void)
{
	return (struct lnx_addr) { .eid = 0x0123456789abcdefULL,
				   .host = 0xfedcba9876543210ULL,
				   .has_shm = true };
}

static void same(const struct lnx_addr *a, const struct lnx_addr *b)
{
	unsigned i;

	cr_assert_eq(a->eid, b->eid);
	cr_assert_eq(a->host, b->host);
	cr_assert_eq(a->has_shm, b->has_shm);
	cr_assert_eq(a->more, b->more);
	cr_assert_eq(a->native, b->native);
	cr_assert_eq(a->nrail, b->nrail);
	for (i = 0; i < a->nrail; i++) {
		cr_assert_eq(a->rail[i].prov, b->rail[i].prov);
		cr_assert_eq(a->rail[i].group, b->rail[i].group);
		cr_assert_eq(a->rail[i].rawlen, b->rail[i].rawlen);
		cr_assert_eq(memcmp(a->rail[i].raw, b->rail[i].raw,
				    LNX_ADDR_RAW), 0);
	}
}

static int unpack(struct lnx_addr *a, const void *buf, size_t len)
{
	memset(why, 'x', sizeof(why));
	return lnx_addr_unpack(a, buf, len, why, sizeof(why));
}

/*
 * What is true of any blob: it is refused with a reason and changes nothing, or
 * it decodes to something that packs to the same bytes.  A copy of the exact
 * size lets sanitizers find a read beyond the end.
 */
static int check(const uint8_t *buf, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1), out[LNX_ADDR_BYTES];
	struct lnx_addr a, before;
	char text[1024];
	size_t i;
	int ret;

	memcpy(copy, buf, len);
	memset(&a, 0x5a, sizeof(a));
	memset(&before, 0x5a, sizeof(before));
	ret = unpack(&a, copy, len);
	if (ret) {
		cr_assert(ret == -EINVAL || ret == -EPROTONOSUPPORT);
		cr_assert_eq(memcmp(&a, &before, sizeof(a)), 0);
		cr_assert_not_null(memchr(why, '\0', sizeof(why)));
		cr_assert_gt(strlen(why), 15);
		for (i = 0; why[i]; i++)
			cr_assert(isprint((unsigned char)why[i]));
	} else {
		cr_assert_eq(len, LNX_ADDR_BYTES);
		cr_assert_neq(a.eid, 0);
		cr_assert_leq(a.nrail, LNX_ADDR_RAILS);
		cr_assert_eq(lnx_addr_pack(&a, out), 0);
		cr_assert_eq(memcmp(out, buf, sizeof(out)), 0);
		cr_assert_lt(lnx_addr_print(&a, text, sizeof(text)),
			     sizeof(text));
	}
	free(copy);
	return ret;
}

/* The layout must not change between releases: here it is byte by byte. */
Test(addr, bytes_on_the_wire)
{
	static const uint8_t want[LNX_ADDR_BYTES] = {
		'L', 'N', 'X', 'A', 1, 0x01, 3, 0,
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
		0x02, 0x2b, 0x1a, 10, 77, 1, 2, 0x67, 0x12,
		0x44, 0x01, 0x00, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff,
		0x85, 0xff, 0xff, 2, 0xa0, 0xa1,
	};
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];

	add_ip(&a, LNX_PROV_TCP, 0x1a2b, "10.77.1.2", 4711);
	add_ip(&a, LNX_PROV_VERBS_RXM, 1, "2001:db8::1", 65535);
	add_bytes(&a, LNX_PROV_CXI, 0xffff, 0xa0, 2);
	memset(buf, 0xff, sizeof(buf));
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(memcmp(buf, want, sizeof(buf)), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);
}

Test(addr, four_ipv4_rails_fit)
{
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];
	char ip[32];
	int i;

	for (i = 0; i < 4; i++) {
		sprintf(ip, "10.77.%d.255", i);
		add_ip(&a, LNX_PROV_TCP, (uint16_t)(i + 1), ip, 1000);
	}
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);
	cr_assert(!b.more);
}

Test(addr, no_rails)
{
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];

	a.has_shm = false;
	a.host = 0;
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);
}

Test(addr, rails_that_do_not_fit_are_left_out_from_the_end)
{
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];

	add_ip(&a, LNX_PROV_TCP, 1, "10.0.0.1", 1);
	add_ip(&a, LNX_PROV_TCP, 2, "2001:db8::1", 2);
	/* 9 + 21 bytes are used: this one does not fit ... */
	add_ip(&a, LNX_PROV_TCP, 3, "2001:db8::2", 3);
	/* ... and this one would, but the order is kept */
	add_ip(&a, LNX_PROV_TCP, 4, "10.0.0.2", 4);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	cr_assert(b.more);
	cr_assert_eq(b.nrail, 2);
	a.nrail = 2;
	a.more = true;
	same(&a, &b);
	check(buf, sizeof(buf));
}

Test(addr, eight_small_rails_fit_and_the_longest_one)
{
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];
	int i;

	for (i = 0; i < LNX_ADDR_RAILS; i++)
		add_bytes(&a, LNX_PROV_OPX, 7, (uint8_t)i, 1);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);

	a = plain();
	add_bytes(&a, LNX_PROV_EFA, 7, 0, LNX_ADDR_RAW);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);
}

/* A link-local address needs a scope id, which is only valid on our own host. */
Test(addr, link_local_is_left_out)
{
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];

	add_ip(&a, LNX_PROV_TCP, 1, "fe80::1", 1);
	add_ip(&a, LNX_PROV_TCP, 2, "febf::1", 1);
	add_ip(&a, LNX_PROV_TCP, 3, "10.0.0.1", 1);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	cr_assert(b.more);
	cr_assert_eq(b.nrail, 1);
	cr_assert_eq(b.rail[0].group, 3);
}

/* The index that lnx_addr_add returns is the one in the blob and for peers. */
Test(addr, places_of_rails)
{
	static const struct {
		const char *ip;
		uint8_t prov;
		int place;
	} row[] = {
		{ "fe80::1", LNX_PROV_TCP, -ENOSPC },
		{ "10.0.0.1", LNX_PROV_TCP, 0 },
		{ "febf::1", LNX_PROV_TCP, -ENOSPC },
		{ "2001:db8::1", LNX_PROV_TCP_RXM, 1 },
		{ "2001:db8::2", LNX_PROV_TCP, -ENOSPC },	/* 9 + 21 + 21 */
		{ "10.0.0.2", LNX_PROV_TCP, 2 },
		{ "10.0.0.3", LNX_PROV_TCP, -ENOSPC },
	};
	struct lnx_addr a = plain(), b;
	uint8_t buf[LNX_ADDR_BYTES];

	for (unsigned i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		struct lnx_addr one = { 0 };
		unsigned before = a.nrail;

		a.more = false;
		add_ip(&one, row[i].prov, (uint16_t)(i + 1), row[i].ip, 1);
		cr_assert_eq(lnx_addr_add(&a, &one.rail[0]), row[i].place,
			     "%s", row[i].ip);
		cr_expect_eq(a.more, row[i].place < 0, "%s", row[i].ip);
		cr_assert_eq(a.nrail, before + (row[i].place >= 0));
	}
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "%s", why);
	same(&a, &b);
	cr_expect_eq(b.rail[1].group, 4);
	cr_expect_eq(b.rail[2].group, 6);
}

Test(addr, a_malformed_rail_is_not_added)
{
	struct lnx_addr a = plain(), bad = { 0 };

	add_ip(&bad, LNX_PROV_TCP, 1, "10.0.0.1", 0);
	cr_expect_eq(lnx_addr_add(&a, &bad.rail[0]), -EINVAL);
	cr_expect_eq(a.nrail, 0);
	cr_expect_not(a.more);
}

Test(addr, at_most_so_many_rails)
{
	struct lnx_addr a = plain();

	for (int i = 0; i < LNX_ADDR_RAILS + 2; i++) {
		struct lnx_addr one = { 0 };

		add_bytes(&one, LNX_PROV_PSM3, 1, (uint8_t)i, 1);
		cr_expect_eq(lnx_addr_add(&a, &one.rail[0]),
			     i < LNX_ADDR_RAILS ? i : -ENOSPC);
	}
	cr_expect_eq(a.nrail, LNX_ADDR_RAILS);
}

Test(addr, only_address_and_port_of_a_sockaddr_travel)
{
	struct lnx_addr a = plain(), b;
	uint8_t one[LNX_ADDR_BYTES], two[LNX_ADDR_BYTES];
	struct sockaddr_in6 in6;

	add_ip(&a, LNX_PROV_TCP, 1, "10.0.0.1", 1);
	add_ip(&a, LNX_PROV_TCP, 2, "2001:db8::1", 2);
	cr_assert_eq(lnx_addr_pack(&a, one), 0);
	memset(a.rail[0].raw + 8, 0xee, LNX_ADDR_RAW - 8);
	memcpy(&in6, a.rail[1].raw, sizeof(in6));
	in6.sin6_flowinfo = 0xeeeeeeee;
	in6.sin6_scope_id = 3;
	memcpy(a.rail[1].raw, &in6, sizeof(in6));
	cr_assert_eq(lnx_addr_pack(&a, two), 0);
	cr_assert_eq(memcmp(one, two, sizeof(one)), 0);
	cr_assert_eq(unpack(&b, two, sizeof(two)), 0, "%s", why);
	memcpy(&in6, b.rail[1].raw, sizeof(in6));
	cr_assert_eq(in6.sin6_scope_id, 0);
	cr_assert_eq(in6.sin6_flowinfo, 0);
}

Test(addr, malformed_structs_are_not_packed)
{
	uint8_t buf[LNX_ADDR_BYTES], untouched[LNX_ADDR_BYTES];
	struct lnx_addr good = plain(), a;
	int i;

	add_ip(&good, LNX_PROV_TCP, 1, "10.0.0.1", 1);
	add_bytes(&good, LNX_PROV_CXI, 1, 1, 4);
	memset(untouched, 0xcc, sizeof(untouched));
	for (i = 0; ; i++) {
		a = good;
		switch (i) {
		case 0: a.eid = 0; break;
		case 1: a.nrail = LNX_ADDR_RAILS + 1; break;
		case 2: a.rail[0].prov = LNX_PROV_NONE; break;
		case 3: a.rail[0].prov = LNX_PROV_SHM; break;
		case 4: a.rail[0].prov = LNX_PROV_MAX; break;
		case 5: a.rail[0].prov = 255; break;
		case 6: a.rail[0].group = 0; break;
		case 7: a.rail[0].rawlen = 0; break;
		case 8: a.rail[0].rawlen = 4; break;
		case 9: a.rail[0].rawlen = sizeof(struct sockaddr_in6); break;
		case 10: a.rail[0].rawlen = LNX_ADDR_RAW + 1; break;
		case 11: a.rail[0].raw[0] = AF_INET6; break;
		case 12: memset(a.rail[0].raw + 2, 0, 2); break;
		case 13: memset(a.rail[0].raw + 4, 0, 4); break;
		case 14: memset(a.rail[0].raw + 4, 0xff, 4); break;
		case 15: a.rail[0].raw[4] = 224; break;
		case 16: a.rail[1].rawlen = 0; break;
		case 17: a.rail[1].rawlen = LNX_ADDR_RAW + 1; break;
		case 18: a.rail[1].prov = LNX_PROV_UDP_RXD; break;
		case 19: a.nrail = 0;
			 add_ip(&a, LNX_PROV_TCP, 1, "::", 1); break;
		case 20: a.nrail = 0;
			 add_ip(&a, LNX_PROV_TCP, 1, "ff02::1", 1); break;
		case 21: a.nrail = 0;
			 add_ip(&a, LNX_PROV_TCP, 1, "fd00::1", 0); break;
		default:
			cr_assert_eq(i, 22);
			cr_assert_eq(lnx_addr_pack(&good, buf), 0);
			return;
		}
		memcpy(buf, untouched, sizeof(buf));
		cr_expect_eq(lnx_addr_pack(&a, buf), -EINVAL, "case %d", i);
		cr_expect_eq(memcmp(buf, untouched, sizeof(buf)), 0);
	}
}

static void sample(uint8_t buf[LNX_ADDR_BYTES])
{
	struct lnx_addr a = plain();

	add_ip(&a, LNX_PROV_TCP, 0x1a2b, "10.77.1.2", 4711);
	add_ip(&a, LNX_PROV_TCP_RXM, 0x1a2c, "10.77.2.2", 4712);
	add_bytes(&a, LNX_PROV_CXI, 0xffff, 0xa0, 4);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
}

/* Rails at 24, 33 and 42; the last one ends at 50. */
Test(addr, bad_blobs_and_why)
{
	static const struct {
		int at;
		uint8_t value;
		int err;
		const char *why;
	} cases[] = {
		{ 0, 'l', -EINVAL, "this is no address of lnx: it begins with "
				   "6c4e5841" },
		{ 4, 0, -EPROTONOSUPPORT, "the address has version 0 and this "
					  "lnx speaks version 1" },
		{ 4, 2, -EPROTONOSUPPORT, "the address has version 2 and this "
					  "lnx speaks version 1" },
		{ 5, 0x08, -EINVAL, "the address has reserved bits set: flags "
				    "08" },
		{ 5, 0x80, -EINVAL, "the address has reserved bits set" },
		{ 7, 1, -EINVAL, "the address has reserved bits set" },
		{ 6, 9, -EINVAL, "the address claims 9 rails; 8 are the most" },
		{ 6, 2, -EINVAL, "the address has something behind its 2" },
		{ 6, 4, -EINVAL, "the address has the provider number 0 on "
				 "rail 3; 2 to 10 are known" },
		{ 24, 0x01, -EINVAL, "the address has the provider number 1" },
		{ 24, 0x0b, -EINVAL, "the address has the provider number 11" },
		{ 24, 0x3f, -EINVAL, "the address has the provider number 63" },
		{ 24, 0x82, -EINVAL, "the address has the form 2 on rail 0, "
				     "which is none of tcp" },
		{ 24, 0xc2, -EINVAL, "the address has the form 3 on rail 0" },
		{ 24, 0x05, -EINVAL, "the address has the form 0 on rail 0, "
				     "which is none of cxi" },
		{ 27, 239, -EINVAL, "the address has 239.77.1.2 on rail 0" },
		{ 45, 0, -EINVAL, "the address has 0 bytes on rail 2; 1 to" },
		{ 45, 255, -EINVAL, "the address ends within its rail 2" },
		{ 45, 19, -EINVAL, "the address ends within its rail 2" },
		{ 45, 3, -EINVAL, "the address has something behind its 3" },
		{ 50, 1, -EINVAL, "the address has something behind its 3" },
		{ 63, 0x80, -EINVAL, "the address has something behind its 3" },
		{ 45, 18, 0, "" },
		{ 5, 0, 0, "" },
		{ 5, 3, 0, "" },
	};
	uint8_t buf[LNX_ADDR_BYTES];
	struct lnx_addr a;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		sample(buf);
		buf[cases[i].at] = cases[i].value;
		cr_expect_eq(check(buf, sizeof(buf)), cases[i].err, "%zu", i);
		if (unpack(&a, buf, sizeof(buf)))
			cr_expect_eq(strncmp(why, cases[i].why,
					     strlen(cases[i].why)), 0, "%s",
				     why);
	}
	sample(buf);
	memset(buf + 8, 0, 8);
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	sample(buf);
	memset(buf + 25, 0, 2);
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	sample(buf);
	memset(buf + 31, 0, 2);
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	sample(buf);
	memset(buf + 27, 0, 4);
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	memset(buf + 27, 255, 4);
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	memset(buf, 0, sizeof(buf));
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
	memset(buf, 255, sizeof(buf));
	cr_expect_eq(check(buf, sizeof(buf)), -EINVAL);
}

/* The longest raw address cannot be longer than its struct. */
Test(addr, raw_length_has_a_bound_of_its_own)
{
	struct lnx_addr a = plain();
	uint8_t buf[LNX_ADDR_BYTES];
	int n;

	add_bytes(&a, LNX_PROV_EFA, 7, 1, LNX_ADDR_RAW);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(buf[27], LNX_ADDR_RAW);
	for (n = 0; n < 256; n++) {
		buf[27] = (uint8_t)n;
		cr_expect_eq(!check(buf, sizeof(buf)), n == LNX_ADDR_RAW,
			     "%d: %s", n, why);
	}
}

/* Rails that leave three bytes: enough for the header of one more, and no more. */
Test(addr, rail_cut_behind_its_head)
{
	struct lnx_addr a = plain();
	uint8_t buf[LNX_ADDR_BYTES];

	add_bytes(&a, LNX_PROV_CXI, 7, 1, 20);
	add_bytes(&a, LNX_PROV_CXI, 7, 1, 9);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(check(buf, sizeof(buf)), 0);
	memcpy(buf + 61, buf + 24, 3);
	buf[6] = 3;
	cr_assert_eq(check(buf, sizeof(buf)), -EINVAL);
	cr_assert_str_eq(why, "the address ends within its rail 2");
}

Test(addr, ipv6_that_is_not_one_host_is_refused)
{
	static const char *const ips[] = {
		"fe80::1", "febf::1", "ff02::1", "::"
	};
	struct lnx_addr a = plain();
	uint8_t buf[LNX_ADDR_BYTES];
	size_t i;

	add_ip(&a, LNX_PROV_TCP, 7, "fec0::1", 1);
	cr_assert_eq(lnx_addr_pack(&a, buf), 0);
	cr_assert_eq(check(buf, sizeof(buf)), 0);
	for (i = 0; i < LNX_ARRAY_SIZE(ips); i++) {
		cr_assert_eq(inet_pton(AF_INET6, ips[i], buf + 27), 1);
		cr_expect_eq(check(buf, sizeof(buf)), -EINVAL, "%s", ips[i]);
	}
}

Test(addr, each_length)
{
	uint8_t buf[4096] = { 0 };
	size_t n;

	sample(buf);
	for (n = 0; n < sizeof(buf); n++)
		cr_assert_eq(!check(buf, n), n == LNX_ADDR_BYTES, "%zu", n);
	/* a later version may be longer or shorter: the error names the version */
	buf[4] = 9;
	cr_expect_eq(check(buf, 200), -EPROTONOSUPPORT);
	cr_expect_eq(check(buf, 5), -EPROTONOSUPPORT);
	cr_expect_eq(check(buf, 4), -EINVAL);
}

/* Every byte of some blobs is set to every value. */
Test(addr, each_byte_replaced)
{
	uint8_t buf[LNX_ADDR_BYTES], keep;
	struct lnx_addr a = plain();
	int kind, i, v, good = 0, bad = 0;

	for (kind = 0; kind < 3; kind++) {
		if (kind == 0)
			sample(buf);
		if (kind == 1) {
			add_ip(&a, LNX_PROV_TCP, 5, "2001:db8::1", 1);
			add_bytes(&a, LNX_PROV_PSM3, 5, 1, 15);
			cr_assert_eq(lnx_addr_pack(&a, buf), 0);
		}
		if (kind == 2) {
			a.nrail = 0;
			cr_assert_eq(lnx_addr_pack(&a, buf), 0);
		}
		for (i = 0; i < LNX_ADDR_BYTES; i++) {
			keep = buf[i];
			for (v = 0; v < 256; v++) {
				buf[i] = (uint8_t)v;
				if (check(buf, sizeof(buf)))
					bad++;
				else
					good++;
			}
			buf[i] = keep;
		}
	}
	cr_assert_gt(good, 1000);
	cr_assert_gt(bad, 1000);
}

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static unsigned roll(unsigned n)
{
	return (unsigned)lrand48() % n;
}

static uint64_t roll64(void)
{
	return (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
}

Test(addr, random_structs_survive_the_trip)
{
	static const uint8_t ip[] = { LNX_PROV_TCP, LNX_PROV_TCP_RXM,
		LNX_PROV_VERBS_RXM, LNX_PROV_UDP_RXD, LNX_PROV_SOCKETS };
	static const uint8_t bytes[] = { LNX_PROV_CXI, LNX_PROV_EFA,
		LNX_PROV_PSM3, LNX_PROV_OPX };
	uint8_t buf[LNX_ADDR_BYTES];
	unsigned long s = seed();
	struct lnx_addr a, b;
	unsigned round, n, used, len;
	char text[64];
	bool full;

	for (round = 0; round < 50000; round++) {
		memset(&a, 0, sizeof(a));
		a.eid = roll64() | 1;
		a.host = roll(4) ? roll64() : 0;
		a.has_shm = roll(2);
		a.more = roll(2);
		a.native = roll(2);
		used = n = 0;
		full = false;
		while (a.nrail < roll(LNX_ADDR_RAILS + 1)) {
			uint16_t group = (uint16_t)(1 + roll(65535));
			uint16_t port = (uint16_t)(1 + roll(65535));

			switch (roll(3)) {
			case 0:
				sprintf(text, "%u.%u.%u.%u", 1 + roll(223),
					roll(256), roll(256), roll(256));
				add_ip(&a, ip[roll(5)], group, text, port);
				len = 9;
				break;
			case 1:
				sprintf(text, "2%03x:%x::%x", roll(4096),
					roll(65536), roll(65536));
				add_ip(&a, ip[roll(5)], group, text, port);
				len = 21;
				break;
			default:
				len = 1 + roll(LNX_ADDR_RAW);
				add_bytes(&a, bytes[roll(4)], group,
					  (uint8_t)roll(256), (uint8_t)len);
				len += 4;
			}
			full |= used + len > LNX_WIRE_ADDR_RAILS_BYTES;
			if (!full) {
				used += len;
				n++;
			}
		}
		cr_assert_eq(lnx_addr_pack(&a, buf), 0, "seed %lu", s);
		cr_assert_eq(unpack(&b, buf, sizeof(buf)), 0, "seed %lu: %s",
			     s, why);
		a.more |= full;
		a.nrail = n;
		same(&a, &b);
	}
}

Test(addr, random_bytes)
{
	uint8_t buf[LNX_ADDR_BYTES];
	unsigned long s = seed();
	unsigned round, i, good = 0;

	for (round = 0; round < 200000; round++) {
		sample(buf);
		for (i = 1 + roll(6); i; i--)
			buf[roll(LNX_ADDR_BYTES)] = (uint8_t)roll(256);
		good += !check(buf, sizeof(buf));
		for (i = 0; i < sizeof(buf); i++)
			buf[i] = (uint8_t)roll(256);
		good += !check(buf, sizeof(buf));
	}
	cr_assert_gt(good, 100, "seed %lu", s);
}

Test(addr, sentence_is_cut_and_not_overrun)
{
	uint8_t buf[LNX_ADDR_BYTES];
	struct lnx_addr a;
	char text[128];
	size_t n;

	sample(buf);
	buf[4] = 7;
	for (n = 0; n < 100; n++) {
		memset(text, 'x', sizeof(text));
		cr_expect_eq(lnx_addr_unpack(&a, buf, sizeof(buf), text, n),
			     -EPROTONOSUPPORT);
		cr_expect_eq(text[n], 'x');
		cr_expect(!n || memchr(text, '\0', n));
	}
	cr_expect_eq(lnx_addr_unpack(&a, buf, sizeof(buf), NULL, 5),
		     -EPROTONOSUPPORT);
}

Test(addr, text)
{
	static const char want[] = "lnx://0123456789abcdef@fedcba9876543210/"
		"shm,tcp=10.77.1.1:4711#1a2b,tcp;ofi_rxm=[2001:db8::1]:1#0001,"
		"cxi=0x0102#ffff,...";
	struct lnx_addr a = plain();
	char buf[256];
	size_t n;

	cr_expect_eq(lnx_addr_print(&a, buf, sizeof(buf)), strlen(buf));
	cr_expect_str_eq(buf, "lnx://0123456789abcdef@fedcba9876543210/shm");
	a.has_shm = false;
	lnx_addr_print(&a, buf, sizeof(buf));
	cr_expect_str_eq(buf, "lnx://0123456789abcdef@fedcba9876543210");
	a.has_shm = a.more = true;
	add_ip(&a, LNX_PROV_TCP, 0x1a2b, "10.77.1.1", 4711);
	add_ip(&a, LNX_PROV_TCP_RXM, 1, "2001:db8::1", 1);
	add_bytes(&a, LNX_PROV_CXI, 0xffff, 1, 2);
	for (n = 0; n < sizeof(want) + 10; n++) {
		memset(buf, 'x', sizeof(buf));
		cr_expect_eq(lnx_addr_print(&a, buf, n), sizeof(want) - 1);
		cr_expect_eq(buf[n], 'x');
		if (n) {
			cr_expect_eq(strlen(buf),
				     LNX_MIN(n, sizeof(want)) - 1);
			cr_expect_eq(strncmp(buf, want, strlen(buf)), 0);
		}
	}
	cr_expect_eq(lnx_addr_print(&a, NULL, 0), sizeof(want) - 1);
	/* garbage that unpack has not checked is printed safely */
	memset(&a, 0xff, sizeof(a));
	a.has_shm = a.more = true;
	cr_expect_gt(lnx_addr_print(&a, buf, sizeof(buf)), 100);
}

Test(addr, groups)
{
	char name[32];
	unsigned i, equal = 0;

	for (i = 0; i < 200000; i++) {
		sprintf(name, "10.%u.%u.0/24", i / 256 % 256, i % 256);
		cr_assert_neq(lnx_addr_group((uint8_t)(i % 7), name), 0);
		equal += lnx_addr_group(2, name) == lnx_addr_group(3, name);
	}
	cr_assert_lt(equal, 100);
	cr_assert_eq(lnx_addr_group(2, "10.0.0.0/8"),
		     lnx_addr_group(2, "10.0.0.0/8"));
	cr_assert_neq(lnx_addr_group(2, "10.0.0.0/8"),
		      lnx_addr_group(2, "10.0.0.0/9"));
	cr_assert_neq(lnx_addr_group(2, NULL), 0);
	/* the hash is sent to peers: this value must never change */
	cr_assert_eq(lnx_addr_group(LNX_PROV_TCP, "10.77.1.0/24"), 0x1cc7);
}

Test(addr, provider_numbers_and_names)
{
	uint8_t i;

	for (i = 1; i < LNX_PROV_MAX; i++) {
		cr_assert_not_null(lnx_addr_prov_name(i));
		cr_assert_eq(lnx_addr_prov_id(lnx_addr_prov_name(i)), i);
	}
	cr_assert_null(lnx_addr_prov_name(LNX_PROV_NONE));
	cr_assert_null(lnx_addr_prov_name(LNX_PROV_MAX));
	cr_assert_null(lnx_addr_prov_name(255));
	cr_assert_eq(lnx_addr_prov_id("tcp;ofi_rxm"), LNX_PROV_TCP_RXM);
	cr_assert_eq(lnx_addr_prov_id("TCP"), LNX_PROV_TCP);
	cr_assert_eq(lnx_addr_prov_id("tcp;"), LNX_PROV_NONE);
	cr_assert_eq(lnx_addr_prov_id("lnx"), LNX_PROV_NONE);
	cr_assert_eq(lnx_addr_prov_id(""), LNX_PROV_NONE);
	cr_assert_eq(lnx_addr_prov_id(NULL), LNX_PROV_NONE);
}

Test(addr, shm_name)
{
	char name[LNX_SHM_NAME_BYTES];

	lnx_addr_shm_name(0x0123456789abcdefULL, 0, name);
	cr_assert_str_eq(name, "fi_shm://lnx-0123456789abcdef");
	lnx_addr_shm_name(1, 0, name);
	cr_assert_str_eq(name, "fi_shm://lnx-0000000000000001");
	lnx_addr_shm_name(UINT64_MAX, 4, name);
	cr_assert_str_eq(name, "fi_shm://lnx-ffffffffffffffff.4");
}
