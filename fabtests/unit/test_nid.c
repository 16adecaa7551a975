/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NIDs and patterns for them: what is accepted, what they are for, canonical text. */
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
#include "conf/nid.h"

static struct lnx_nets nets;
static struct lnx_pattern pat, again;
static struct lnx_refusal why;

/* The names that LNet knows, as nets of providers. */
static void lnet_names(void)
{
	cr_assert_eq(lnx_nets_parse("o2ib=verbs/IB-1; kfi=cxi", &nets, &why), 0,
		     "%s", why.why);
}

static int parse(const char *text)
{
	memset(&why, 'x', sizeof(why));
	why.text = text;
	return lnx_nid_pattern_parse(&nets, (struct lnx_span){ text, strlen(text) },
				     &pat, &why);
}

static const char *canonical(const struct lnx_pattern *p)
{
	static char buf[LNX_PATTERN_TEXT_MAX];

	cr_assert_lt(lnx_nid_pattern_print(p->part, p->n, buf, sizeof(buf)),
		     sizeof(buf));
	return buf;
}

/* What is true of any text. */
static int check(const char *text)
{
	char once[LNX_PATTERN_TEXT_MAX];
	const char *p;
	int ret = parse(text);

	if (ret) {
		cr_assert_eq(ret, -EINVAL);
		cr_assert_leq(why.at, strlen(text), "%s", text);
		cr_assert_gt(strlen(why.why), 10);
		for (p = why.why; *p; p++)
			cr_assert(isprint((unsigned char)*p), "%s", text);
		return ret;
	}
	cr_assert(pat.n >= 1 && pat.n <= LNX_PATTERN_PARTS);
	strcpy(once, canonical(&pat));
	why.text = once;
	cr_assert_eq(lnx_nid_pattern_parse(&nets,
					   (struct lnx_span){ once, strlen(once) },
					   &again, &why), 0, "%s: %s", once, why.why);
	cr_assert_eq(memcmp(&pat, &again, sizeof(pat)), 0, "%s", once);
	cr_assert_str_eq(canonical(&again), once);
	return 0;
}

/* ---- LNet's own table ---- */

Test(nid, what_lnet_accepts)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "tcp", "tcp" },
		{ "tcp0", "tcp" },
		{ "tcp*", "tcp*" },
		{ "tcp[1-3]", "tcp[1-3]" },
		{ "tcp[1-9/2]", "tcp[1-9/2]" },
		/* parsed, but refused by its kernel: one range only */
		{ "tcp[1,3]", "tcp[1,3]" },
		{ "10.0.0.*@tcp", "10.0.0.*@tcp" },
		{ "*.*.*.*@tcp", "*.*.*.*@tcp" },
		{ "10.0.[1-2].[3-4]@o2ib", "10.0.[1-2].[3-4]@o2ib" },
		/* which it prints as 1.4-6,9] */
		{ "10.0.0.[1,4-6,9]@tcp1", "10.0.0.[1,4-6,9]@tcp1" },
		{ "*@kfi", "*@kfi" },
		/* numbers in hex, blanks in brackets */
		{ "0xa.0.0.[ 0x1 - 5 ]@tcp", "10.0.0.[1-5]@tcp" },
		{ "10.0.0.[1-5/2]@tcp", "10.0.0.[1-5/2]@tcp" },
	};
	size_t i;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(check(cases[i].text), 0, "%s: %s", cases[i].text,
			     why.why);
		cr_assert_str_eq(canonical(&pat), cases[i].want);
	}
}

Test(nid, what_lnet_refuses)
{
	static const struct { const char *text; size_t at; const char *says; }
	cases[] = {
		{ "*@tcp", 0, "*.*.*.*" },
		{ "10.0.0.1-5@tcp", 7, "in brackets" },
		{ "10.0.0.[5-1]@tcp", 8, "write 1-5" },
		{ "10.0.0.[]@tcp", 8, "a number is missing" },
		{ "10.0.0.[1,]@tcp", 10, "a number is missing" },
		{ "10.0.0@tcp", 0, "four numbers" },
		{ "10.0.0.256@tcp", 7, "0 to 255" },
		{ "fe80::1@tcp", 0, "[fe80::1]" },
		{ "foo", 0, "no known net; those are tcp" },
		{ "10@foo", 3, "no known net" },
		{ "10.0.0.1", 0, "must be '@' and a net" },
		/* These two it accepts: the first divides by zero when it matches. */
		{ "10.0.0.[1-5/0]@tcp", 8, "stride of 0" },
		{ "10.0.0.[1-5/2x]@tcp", 12, "the stride" },
	};
	size_t i;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(check(cases[i].text), -EINVAL, "%s", cases[i].text);
		cr_assert_eq(why.at, cases[i].at, "%s: at %zu: %s", cases[i].text,
			     why.at, why.why);
		cr_assert_not_null(strstr(why.why, cases[i].says), "%s: %s",
				   cases[i].text, why.why);
	}
}

/* ---- more than LNet has ---- */

Test(nid, subnets_ipv6_ports_bytes_lists)
{
	static const struct { const char *text, *want; } cases[] = {
		/* subnets of IPv4 are ranges of octets */
		{ "10.0.0.0/24@tcp", "10.0.0.*@tcp" },
		{ "10.0.16.0/20@tcp1", "10.0.[16-31].*@tcp1" },
		{ "10.0.0.7/32@tcp", "10.0.0.7@tcp" },
		{ "0.0.0.0/0@tcp", "*.*.*.*@tcp" },
		{ "10.128.0.0/9@tcp", "10.[128-255].*.*@tcp" },
		{ "[fe80::1]@tcp", "[fe80::1]@tcp" },
		{ "[FE80:0:0:0::1]@tcp", "[fe80::1]@tcp" },
		{ "[fd00::/64]@tcp1", "[fd00::/64]@tcp1" },
		{ "[fd00::]/64@tcp1", "[fd00::/64]@tcp1" },
		{ "[::/0]@tcp", "[::/0]@tcp" },
		{ "[::ffff:10.0.0.1]@tcp", "[::ffff:10.0.0.1]@tcp" },
		{ "10.0.0.1:4711@tcp", "10.0.0.1:4711@tcp" },
		{ "10.0.0.1:*@tcp", "10.0.0.1@tcp" },
		{ "10.0.0.0/24:[1000-2000]@tcp", "10.0.0.*:[1000-2000]@tcp" },
		{ "[fe80::1]:4711@tcp", "[fe80::1]:4711@tcp" },
		{ "[1-2].0.0.1:5@tcp", "[1-2].0.0.1:5@tcp" },
		{ "0xAB01@kfi", "0xab01@kfi" },
		{ "0xab*@cxi", "0xab*@cxi" },
		/* sets of numbers in their one form */
		{ "10.0.0.[3,2,1]@tcp", "10.0.0.[1-3]@tcp" },
		{ "10.0.0.[1,2]@tcp", "10.0.0.[1-2]@tcp" },
		{ "10.0.0.[5]@tcp", "10.0.0.5@tcp" },
		{ "10.0.0.[5-5/3]@tcp", "10.0.0.5@tcp" },
		{ "10.0.0.[0-255]@tcp", "10.0.0.*@tcp" },
		{ "10.0.0.[1-10,5-20]@tcp", "10.0.0.[1-20]@tcp" },
		{ "10.0.0.[1-10,2-8/2]@tcp", "10.0.0.[1-10]@tcp" },
		{ "10.0.0.[0-9/2]@tcp", "10.0.0.[0-8/2]@tcp" },
		{ "10.0.0.[0-8/2,4-6/2]@tcp", "10.0.0.[0-8/2]@tcp" },
		{ "10.0.0.[0-9/3,1-5]@tcp", "10.0.0.[0-6,9]@tcp" },
		/* The same set is the same text, however it was written. */
		{ "10.0.0.[1,3,5,7,9]@tcp", "10.0.0.[1-9/2]@tcp" },
		{ "10.0.0.[9,1-7/2]@tcp", "10.0.0.[1-9/2]@tcp" },
		{ "10.0.0.[1-9/2,2-10/2]@tcp", "10.0.0.[1-10]@tcp" },
		{ "10.0.0.[0-10/10]@tcp", "10.0.0.[0,10]@tcp" },
		{ "10.0.0.[4,0,10]@tcp", "10.0.0.[0,4,10]@tcp" },
		{ "10.0.0.[0-255/2,0-255/3]@tcp", "10.0.0.[0-254/2,0-255/3]@tcp" },
		{ "10.0.0.*:[1-65535/2,65534]@tcp", "10.0.0.*:[1-65533/2,65534-65535]@tcp" },
		{ "tcp[0-65535]", "tcp*" },
		/* nets */
		{ "verbs;ofi_rxm", "verbs" },
		{ "VERBS", "verbs" },
		{ "tcp;ofi_rxm", "tcp;ofi_rxm" },
		{ "tcp;ofi_rxm2", "tcp;ofi_rxm2" },
		{ "psm3", "psm3" },
		{ "psm34", "psm34" },
		{ "tcp:10.77.0.0/16", "tcp:10.77.0.0/16" },
		{ "10.77.0.1@tcp:10.77.0.0/16", "10.77.0.1@tcp:10.77.0.0/16" },
		{ "tcp5", "tcp5" },
		/* several parts */
		{ "tcp1,o2ib", "tcp1,o2ib" },
		{ "tcp1 , tcp1,tcp1", "tcp1" },
		{ "10.0.0.1@tcp,[fd00::1]@tcp1,0xab@cxi",
		  "10.0.0.1@tcp,[fd00::1]@tcp1,0xab@cxi" },
		{ "10.0.0.[1,2]@tcp,10.0.0.9@tcp",
		  "10.0.0.[1-2]@tcp,10.0.0.9@tcp" },
	};
	size_t i;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(check(cases[i].text), 0, "%s: %s", cases[i].text,
			     why.why);
		cr_assert_str_eq(canonical(&pat), cases[i].want);
	}
}

Test(nid, refusals_name_what_is_wrong)
{
	static const struct { const char *text; size_t at; const char *says; }
	cases[] = {
		{ "", 0, "name of a net is missing" },
		{ "10.0.0.1@", 9, "name of a net is missing" },
		{ "@tcp", 0, "an octet" },
		{ "tcp,", 4, "name of a net is missing" },
		{ "tcpx", 0, "no known net" },
		{ "tcp 1", 0, "no known net" },
		{ "tcp1x", 3, "the number of a net" },
		{ "tcp65536", 3, "0 to 65535" },
		{ "tcp[1", 3, "']' is missing" },
		{ "tcp[1]]", 4, "the number of a net" },
		{ "tcp[1-2-3]", 6, "0 to 65535" },
		{ "tcp[5/2]", 4, "follows a range" },
		{ "tcp[1,2,3,5,7,9,11,13,15,17]", 22, "one too many" },
		{ "shm", 0, "chosen before rails" },
		{ "x@shm", 2, "chosen before rails" },
		{ "shm1", 0, "chosen before rails" },
		{ "tcp1:10.0.0.0/8", 3, "the number of a net" },
		{ "o2ib:IB-1", 5, "name of a provider only" },
		{ "tcp:", 4, "fabric name" },
		{ "10.0.0.1.2@tcp", 0, "four numbers" },
		{ "10.0.0.1:@tcp", 9, "a port" },
		{ "10.0.0.1:70000@tcp", 9, "0 to 65535" },
		{ "10.0.0.1:x@tcp", 9, "a port" },
		{ "10.0.0.7/24@tcp", 0, "write 10.0.0.0/24" },
		{ "[fe80::1%eth0]@tcp", 0, "zone" },
		{ "[fe80::1@tcp", 0, "behind an address" },
		{ "0xab@tcp", 0, "four numbers" },
		{ "10.0.0.1@cxi", 0, "0x" },
		{ "0xa@cxi", 0, "pairs of hex digits" },
		{ "0x@cxi", 0, "pairs of hex digits" },
		{ "0xag@cxi", 0, "pairs of hex digits" },
		{ "0xab:5@cxi", 0, "pairs of hex digits" },
		{ "10.0.0.1@tcp,tcp1", 13, "not for both" },
		{ "tcp1,10.0.0.1@tcp", 5, "not for both" },
		{ "10.0.0. 1@tcp", 7, "blanks" },
		{ "10.0.0.1@tcp@tcp", 9, "no known net" },
	};
	char text[600] = "";
	size_t i, n = 0;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(check(cases[i].text), -EINVAL, "%s", cases[i].text);
		cr_assert_eq(why.at, cases[i].at, "%s: at %zu: %s", cases[i].text,
			     why.at, why.why);
		cr_assert_not_null(strstr(why.why, cases[i].says), "%s: %s",
				   cases[i].text, why.why);
	}
	for (i = 1; i <= LNX_PATTERN_PARTS; i++)
		n += (size_t)sprintf(text + n, "%stcp%zu", n ? "," : "", i);
	cr_assert_eq(check(text), 0, "%s", why.why);
	strcpy(text + n, ",tcp99");
	cr_assert_eq(check(text), -EINVAL);
	cr_assert_not_null(strstr(why.why, "one too many"));
	/* too long when it is printed */
	for (i = n = 0; i < 8; i++)
		n += (size_t)sprintf(text + n,
			"%s[1,3,5,7].[11,13,15].[100,102,104].%zu@tcp",
			n ? "," : "", i);
	cr_assert_eq(check(text), -EINVAL);
	cr_assert_not_null(strstr(why.why, "more than"), "%s", why.why);
}

Test(nid, any_byte_anywhere)
{
	static const char *const samples[] = {
		"10.0.[1-2].[3,4]:[1-9/2]@tcp[1,3]", "[fd00::/64]:5@o2ib,0xab*@kfi",
		"tcp:10.77.0.0/16,verbs;ofi_rxm",
	};
	char text[64];
	size_t i, n;
	int c;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(samples); i++) {
		for (n = 0; n < strlen(samples[i]); n++) {
			for (c = 1; c < 256; c++) {
				strcpy(text, samples[i]);
				text[n] = (char)c;
				check(text);
			}
			strcpy(text, samples[i]);
			text[n] = '\0';
			check(text);
		}
	}
}

/* ---- NIDs of rails ---- */

static struct lnx_addr_rail rail4(uint8_t prov, const char *fabric,
				  const char *addr, uint16_t port)
{
	struct lnx_addr_rail r = { .prov = prov, .rawlen = sizeof(struct sockaddr_in),
				   .group = lnx_addr_group(prov, fabric) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	cr_assert_eq(inet_pton(AF_INET, addr, &in.sin_addr), 1);
	memcpy(r.raw, &in, sizeof(in));
	return r;
}

Test(nid, of_rails)
{
	struct lnx_addr_rail r = rail4(LNX_PROV_TCP, "10.78.0.0/16", "10.78.0.1",
				       4711);
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(80) };
	struct lnx_nid nid;
	char text[LNX_NID_TEXT_MAX];

	cr_assert_eq(lnx_nets_parse("tcp7=10.78.0.0/16;ib=verbs", &nets, &why), 0);
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), 0);
	lnx_nid_print(&nid, text, sizeof(text));
	cr_assert_str_eq(text, "10.78.0.1:4711@tcp7");
	r = rail4(LNX_PROV_TCP, "10.79.0.0/16", "10.79.0.1", 0);
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), 0);
	lnx_nid_print(&nid, text, sizeof(text));
	cr_assert_str_eq(text, "10.79.0.1@tcp");

	inet_pton(AF_INET6, "fd00::1", &in6.sin6_addr);
	r = (struct lnx_addr_rail){ .prov = LNX_PROV_VERBS_RXM, .group = 1,
				    .rawlen = sizeof(in6) };
	memcpy(r.raw, &in6, sizeof(in6));
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), 0);
	lnx_nid_print(&nid, text, sizeof(text));
	cr_assert_str_eq(text, "[fd00::1]:80@ib");

	r = (struct lnx_addr_rail){ .prov = LNX_PROV_CXI, .group = 1, .rawlen = 3,
				    .raw = { 1, 0xab, 0 } };
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), 0);
	lnx_nid_print(&nid, text, sizeof(text));
	cr_assert_str_eq(text, "0x01ab00@cxi");

	r.prov = LNX_PROV_SHM;
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), -EINVAL);
	r.prov = LNX_PROV_MAX;
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), -EINVAL);
	r.prov = LNX_PROV_TCP;			/* 3 bytes are no sockaddr */
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), -EINVAL);
	r.prov = LNX_PROV_CXI;
	r.rawlen = LNX_ADDR_RAW + 1;
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), -EINVAL);
	r.rawlen = 0;
	cr_assert_eq(lnx_nid_of(&nets, &r, &nid), -EINVAL);
}

/* Where a NID listens is a rail of that NID. */
Test(nid, where_a_nid_listens)
{
	static const char *const texts[] = { "10.78.0.1:4711@tcp7", "[fd00::1]:80@ib",
					     "0x01ab00@cxi", "10.78.0.9@tcp7" };
	struct lnx_nid nid, back;
	struct lnx_addr_rail r;
	unsigned i;

	cr_assert_eq(lnx_nets_parse("tcp7=10.78.0.0/16;ib=verbs", &nets, &why), 0);
	for (i = 0; i < LNX_ARRAY_SIZE(texts); i++) {
		cr_assert_eq(parse(texts[i]), 0, "%s", why.why);
		cr_assert(lnx_nid_pattern_one(&pat, &nid));
		lnx_nid_where(&nid, lnx_addr_group(LNX_PROV_TCP, "10.78.0.0/16"), 7988, &r);
		cr_assert_eq(lnx_nid_of(&nets, &r, &back), 0);
		cr_expect_eq(back.len, nid.len);
		cr_expect_eq(memcmp(back.addr, nid.addr, nid.len), 0, "%s", texts[i]);
		cr_expect_eq(back.port, nid.port ? nid.port :
			     nid.prov == LNX_PROV_CXI ? 0 : 7988, "%s", texts[i]);
		cr_expect_eq(r.group, lnx_addr_group(LNX_PROV_TCP, "10.78.0.0/16"));
	}
}

/* Is the pattern for the rail? */
static bool has(const char *text, const struct lnx_nid *nid)
{
	unsigned i;

	cr_assert_eq(check(text), 0, "%s: %s", text, why.why);
	for (i = 0; i < pat.n; i++)
		if (lnx_nid_part_has(&pat.part[i], nid))
			return true;
	return false;
}

Test(nid, what_patterns_are_for)
{
	struct lnx_addr_rail r = rail4(LNX_PROV_TCP, "10.77.0.0/16", "10.77.0.5",
				       4711);
	struct lnx_nid a, b;

	lnet_names();
	cr_assert_eq(lnx_nid_of(&nets, &r, &a), 0);
	b = a;
	b.number = 3;
	/* A name without a number is the number 0 only. */
	cr_assert(has("tcp", &a));
	cr_assert(!has("tcp", &b));
	cr_assert(has("tcp*", &a));
	cr_assert(has("tcp*", &b));
	cr_assert(has("tcp[1-5/2]", &b));
	cr_assert(!has("tcp[2-4/2]", &b));
	cr_assert(!has("tcp[1-5/2]", &a));
	cr_assert(!has("tcp;ofi_rxm", &a));
	cr_assert(!has("o2ib", &a));
	/* The fabric is that of the rail, whatever its net is called. */
	cr_assert(has("tcp:10.77.0.0/16", &a));
	cr_assert(has("tcp:10.77.0.0/16", &b));
	cr_assert(!has("tcp:10.78.0.0/16", &a));
	/* another provider, and by chance the same number of a group */
	b = a;
	b.prov = LNX_PROV_TCP_RXM;
	cr_assert(!has("tcp:10.77.0.0/16", &b));
	cr_assert(has("10.77.0.5@tcp", &a));
	cr_assert(!has("10.77.0.5@tcp", &b));
	cr_assert(!has("10.77.0.6@tcp", &a));
	cr_assert(has("10.77.0.[1-5]@tcp", &a));
	cr_assert(!has("10.77.0.[0-6/2]@tcp", &a));
	cr_assert(has("10.77.0.5:4711@tcp", &a));
	cr_assert(!has("10.77.0.5:4712@tcp", &a));
	cr_assert(has("10.64.0.0/10@tcp", &a));
	cr_assert(!has("10.80.0.0/12@tcp", &a));
	cr_assert(!has("[::/0]@tcp", &a));
	cr_assert(has("10.0.0.1@tcp,10.77.0.5@tcp", &a));
	/* an IPv6 address that has the same first bytes */
	b = a;
	b.len = 16;
	cr_assert(!has("10.77.0.5@tcp", &b));
	cr_assert(!has("*.*.*.*@tcp", &b));
	cr_assert(has("[::/0]@tcp", &b));
	cr_assert(has("[a4d:5::/32]@tcp", &b));
	cr_assert(!has("[a4d:6::/32]@tcp", &b));
	/* bytes */
	b = (struct lnx_nid){ .net = "cxi", .prov = LNX_PROV_CXI, .len = 3,
			      .addr = { 1, 2, 3 } };
	cr_assert(has("0x010203@cxi", &b));
	cr_assert(!has("0x0102@cxi", &b));
	cr_assert(has("0x0102*@cxi", &b));
	cr_assert(!has("0x01020304*@cxi", &b));
	cr_assert(has("*@cxi", &b));
	cr_assert(!has("*@kfi", &b));
}

Test(nid, nets_that_are_defined)
{
	static const struct {
		const char *text;
		bool defined;
	} rows[] = {
		{ "tcp", true }, { "tcp1", true }, { "tcp2", false }, { "tcp[2-9]", false },
		{ "tcp[1-9]", true }, { "tcp[0-9]", true }, { "tcp*", true }, { "cxi", true },
		{ "cxi1", false }, { "left", false }, { "left7", true }, { "left*", true },
		{ "*.*.*.*@tcp2", false }, { "10.0.0.1@tcp1", true },
		{ "tcp:10.0.0.0/8", true },
	};
	unsigned i;

	cr_assert_eq(lnx_nets_parse("tcp1=10.0.0.0/8; left7=tcp;ofi_rxm", &nets, &why), 0,
		     "%s", why.why);
	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		cr_assert_eq(parse(rows[i].text), 0, "%s: %s", rows[i].text, why.why);
		cr_expect_eq(lnx_nid_part_defined(&nets, &pat.part[0]), rows[i].defined, "%s",
			     rows[i].text);
	}
}

Test(nid, patterns_for_one_rail)
{
	struct lnx_nid nid;
	char text[LNX_NID_TEXT_MAX];

	static const struct { const char *text, *nid; } cases[] = {
		{ "10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ "10.0.0.1:5@tcp2", "10.0.0.1:5@tcp2" },
		{ "[fd00::1]@tcp", "[fd00::1]@tcp" },
		{ "0xab01@kfi", "0xab01@kfi" },
		{ "10.0.0.*@tcp", NULL }, { "[fd00::/64]@tcp", NULL },
		{ "0xab*@kfi", NULL }, { "*@kfi", NULL }, { "tcp1", NULL },
		{ "10.0.0.1@tcp*", NULL }, { "10.0.0.1:[1-2]@tcp", NULL },
		{ "10.0.0.1@tcp,10.0.0.2@tcp", NULL },
		{ "10.0.0.1@tcp:10.0.0.0/8", NULL },
	};
	size_t i;

	lnet_names();
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(check(cases[i].text), 0);
		cr_assert_eq(lnx_nid_pattern_one(&pat, &nid), cases[i].nid != NULL,
			     "%s", cases[i].text);
		if (!cases[i].nid)
			continue;
		lnx_nid_print(&nid, text, sizeof(text));
		cr_assert_str_eq(text, cases[i].nid);
	}
}

/* ---- against a model: a table of all numbers ---- */

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static int roll(int n)
{
	return (int)(lrand48() % n);
}

/* Write a random set of numbers up to max, and mark them in the table. */
static char *random_expr(char *p, int max, bool *in)
{
	int items = 1 + roll(5), lo, hi, stride, v;

	memset(in, 0, (size_t)max + 1);
	if (!roll(6)) {
		memset(in, 1, (size_t)max + 1);
		return stpcpy(p, "*");
	}
	if (!roll(3)) {
		v = roll(max + 1);
		in[v] = true;
		return p + sprintf(p, roll(4) ? "%d" : "0x%x", v);
	}
	*p++ = '[';
	while (items--) {
		lo = roll(max + 1);
		hi = lo + roll(max + 1 - lo);
		stride = roll(2) ? 1 + roll(7) : 1;
		for (v = lo; v <= hi; v += stride)
			in[v] = true;
		p += sprintf(p, "%d", lo);
		if (hi > lo || roll(2))
			p += sprintf(p, roll(3) ? "-%d" : " - %d", hi);
		else
			stride = 1;
		if (stride > 1 && p[-1] != ']')
			p += sprintf(p, "/%d", stride);
		if (items)
			p = stpcpy(p, roll(2) ? "," : " , ");
	}
	return stpcpy(p, "]");
}

Test(nid, random_patterns_mean_what_they_say)
{
	static bool octet[4][256], number[65536];
	static const int net_max = 40;
	char text[1024], *p;
	unsigned long s = seed();
	int round, i, k, tried;
	struct lnx_nid nid = { .net = "tcp", .prov = LNX_PROV_TCP, .len = 4 };
	bool want;

	lnet_names();
	for (round = 0; round < 2000; round++) {
		p = text;
		for (i = 0; i < 4; i++) {
			if (i)
				*p++ = '.';
			p = random_expr(p, 255, octet[i]);
		}
		p = stpcpy(p, "@tcp");
		memset(number, 0, sizeof(number));
		p = random_expr(p, net_max, number);
		/* '*' of a net is more than the table has */
		if (p[-1] == '*')
			memset(number, 1, sizeof(number));
		if (parse(text)) {
			cr_assert_not_null(strstr(why.why, "more than"),
					   "seed %lu: %s: %s", s, text, why.why);
			continue;
		}
		check(text);
		for (tried = 0; tried < 200; tried++) {
			want = true;
			for (k = 0; k < 4; k++) {
				int v = roll(256), n;

				/* most often one of the set */
				for (n = 0; n < 256 && roll(8) &&
				     !octet[k][v]; n++)
					v = (v + 1) % 256;
				nid.addr[k] = (uint8_t)v;
				want = want && octet[k][v];
			}
			nid.number = (uint16_t)roll(net_max + 5);
			want = want && number[nid.number];
			cr_assert_eq(lnx_nid_part_has(&again.part[0], &nid), want,
				     "seed %lu: %s", s, text);
		}
	}
}
