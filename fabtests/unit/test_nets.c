/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of nets (FI_LNX_NETS): which rails they have, canonical text, refusals. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "conf/nets.h"

static struct lnx_nets nets;
static struct lnx_refusal why;

static int parse(const char *text)
{
	memset(&why, 'x', sizeof(why));
	return lnx_nets_parse(text, &nets, &why);
}

static const char *canonical(const struct lnx_nets *n)
{
	static char buf[LNX_NETS_MAX * LNX_NET_TEXT_MAX];
	size_t len = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < n->n; i++) {
		len += (size_t)sprintf(buf + len, i ? "; " : "");
		len += lnx_net_print(&n->net[i], buf + len, sizeof(buf) - len);
	}
	return buf;
}

static struct lnx_addr_rail rail(uint8_t prov, const char *fabric, const char *addr)
{
	struct lnx_addr_rail r = { .prov = prov };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(4711) };

	r.group = lnx_addr_group(prov, fabric);
	if (inet_pton(AF_INET, addr, &in.sin_addr) == 1) {
		r.rawlen = sizeof(in);
		memcpy(r.raw, &in, sizeof(in));
	} else if (inet_pton(AF_INET6, addr, &in6.sin6_addr) == 1) {
		r.rawlen = sizeof(in6);
		memcpy(r.raw, &in6, sizeof(in6));
	} else {
		r.rawlen = (uint8_t)strlen(addr);
		memcpy(r.raw, addr, r.rawlen);
	}
	return r;
}

Test(nets, text_and_its_canonical_spelling)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "", "" },
		{ " \t\n", "" },
		{ "tcp1=10.78.0.0/16", "tcp1=tcp/10.78.0.0/16" },
		{ " tcp1 = 10.78.0.0/16 ", "tcp1=tcp/10.78.0.0/16" },
		{ "TCP1=10.78.0.0/16", "tcp1=tcp/10.78.0.0/16" },
		{ "tcp01=10.78.0.0/16", "tcp1=tcp/10.78.0.0/16" },
		{ "tcp1=10.78.0.0/16; ib0=verbs;ofi_rxm/10.80.0.0/16",
		  "tcp1=tcp/10.78.0.0/16; ib=verbs;ofi_rxm/10.80.0.0/16" },
		{ "tcp1=10.78.0.0/16;ib=verbs/IB-0xfe80000000000000",
		  "tcp1=tcp/10.78.0.0/16; ib=verbs;ofi_rxm/IB-0xfe80000000000000" },
		{ "tcp1=10.78.0.0/16,10.79.0.0/16 , fd00::/64",
		  "tcp1=tcp/10.78.0.0/16,10.79.0.0/16,fd00::/64" },
		{ "tcp1=fd00::/64,fd01::/64", "tcp1=tcp/fd00::/64,fd01::/64" },
		{ "tcp1=[fd00::]/64,[fd01::/64],[fd02::1]",
		  "tcp1=tcp/fd00::/64,fd01::/64,fd02::1" },
		{ "tcp1=10.78.0.7", "tcp1=tcp/10.78.0.7" },
		{ "tcp1=10.78.0.7/32", "tcp1=tcp/10.78.0.7" },
		{ "tcp1=0.0.0.0/0", "tcp1=tcp/0.0.0.0/0" },
		{ "hs=cxi", "hs=cxi" },
		{ "hs1=cxi/left;hs2=cxi/right", "hs1=cxi/left; hs2=cxi/right" },
		{ "cxi7=cxi", "cxi7=cxi" },
		{ "verbs1=10.80.0.0/16", "verbs1=verbs;ofi_rxm/10.80.0.0/16" },
		{ "verbs;ofi_rxm1=10.80.0.0/16",
		  "verbs1=verbs;ofi_rxm/10.80.0.0/16" },
		{ "udp1=udp;ofi_rxd", "udp1=udp;ofi_rxd" },
		{ "tcp;ofi_rxm3=10.1.0.0/16",
		  "tcp;ofi_rxm3=tcp;ofi_rxm/10.1.0.0/16" },
		{ "rxm=tcp;ofi_rxm/10.1.0.0/16;tcp1=10.1.0.0/16",
		  "rxm=tcp;ofi_rxm/10.1.0.0/16; tcp1=tcp/10.1.0.0/16" },
		/* psm3 ends in a digit, which is no number of a net */
		{ "psm31=psm3", "psm31=psm3" },
		{ "o2ib=verbs/10.80.0.0/16; o2ib4=verbs/10.84.0.0/16",
		  "o2ib=verbs;ofi_rxm/10.80.0.0/16; "
		  "o2ib4=verbs;ofi_rxm/10.84.0.0/16" },
		/* one subnet, two providers: two sets of rails */
		{ "a=tcp/10.1.0.0/16; b=verbs/10.1.0.0/16",
		  "a=tcp/10.1.0.0/16; b=verbs;ofi_rxm/10.1.0.0/16" },
	};
	struct lnx_nets again;
	char once[2048];
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(parse(cases[i].text), 0, "%s: %s", cases[i].text,
			     why.why);
		cr_assert_str_eq(canonical(&nets), cases[i].want);
		snprintf(once, sizeof(once), "%s", canonical(&nets));
		cr_assert_eq(lnx_nets_parse(once, &again, &why), 0, "%s: %s", once,
			     why.why);
		cr_assert_str_eq(canonical(&again), once);
	}
	cr_assert_eq(lnx_nets_parse(NULL, &nets, &why), 0);
	cr_assert_eq(nets.n, 0);
}

Test(nets, refusals_name_what_is_wrong)
{
	static const struct { const char *text; size_t at; const char *says; }
	cases[] = {
		{ "tcp1", 0, "written like" },
		{ "tcp1=10.78.0.0/16;", 18, "written like" },
		{ "=10.78.0.0/16", 0, "name of a net is missing" },
		{ "1tcp=10.78.0.0/16", 0, "cannot name a net" },
		{ "tc p=10.78.0.0/16", 0, "cannot name a net" },
		{ "tcp99999=10.78.0.0/16", 0, "cannot name a net" },
		{ "averyveryverylongname=tcp", 0, "cannot name a net" },
		{ "tcp1=", 5, "fabric name" },
		{ "tcp1=tcp/", 9, "fabric name" },
		{ "tcp1=10.78.0.7/16", 5, "write 10.78.0.0/16" },
		{ "tcp1=10.78.0.0/33", 5, "from 0 to 32" },
		{ "tcp1=10.78.0.0/x", 5, "from 0 to 32" },
		{ "tcp1=10.78.0/16", 5, "no address or subnet" },
		{ "tcp1=10.78.0.0/16,", 18, "no address or subnet" },
		{ "tcp1=fd00::/129", 5, "from 0 to 128" },
		{ "tcp1=fd00::1/64", 5, "write fd00::/64" },
		{ "tcp1=[fd00::/64", 5, "']' is missing" },
		{ "tcp1=[10.0.0.0]/8", 5, "IPv6" },
		{ "ib0=10.78.0.0/16", 4, "does not begin with a provider" },
		{ "ib0=vebs/10.78.0.0/16", 4, "does not begin with a provider" },
		{ "tcp1=verbs/10.80.0.0/16", 5, "choose another name" },
		{ "hs=cxi/a b", 7, "fabric name" },
		/* shared memory, by name and as a provider */
		{ "shm=tcp", 0, "chosen before rails" },
		{ "shm1=tcp", 0, "chosen before rails" },
		{ "a=shm", 2, "chosen before rails" },
		/* the net that all other rails of tcp are in */
		{ "tcp=10.78.0.0/16", 0, "like tcp1" },
		{ "tcp0=10.78.0.0/16", 0, "like tcp1" },
		{ "verbs=verbs", 0, "like verbs1" },
		/* two names for one thing */
		{ "tcp1=10.1.0.0/16;tcp1=10.2.0.0/16", 17, "there already" },
		{ "tcp1=10.1.0.0/16;tcp2=10.1.0.0/16", 17, "two names" },
		{ "tcp1=10.1.0.0/16;tcp2=10.1.2.0/24", 17, "two names" },
		{ "tcp1=10.1.2.0/24;tcp2=10.0.0.0/8", 17, "two names" },
		{ "tcp1=tcp;tcp2=10.0.0.0/8", 9, "two names" },
		{ "hs1=cxi/left;hs2=cxi/left", 13, "two names" },
		{ "hs1=cxi/left;hs2=cxi", 13, "two names" },
		{ "tcp1=fd00::/48;tcp2=fd00:0:0:1::/64", 15, "two names" },
		/* one name, two providers */
		{ "ib0=verbs/a;ib1=tcp/10.1.0.0/16", 12, "differ in more" },
	};
	const char *p;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(parse(cases[i].text), -EINVAL, "%s", cases[i].text);
		cr_assert_eq(why.at, cases[i].at, "%s: at %zu: %s", cases[i].text,
			     why.at, why.why);
		cr_assert_not_null(strstr(why.why, cases[i].says), "%s: %s",
				   cases[i].text, why.why);
		for (p = why.why; *p; p++)
			cr_assert(isprint((unsigned char)*p));
	}
}

Test(nets, limits)
{
	char text[4096] = "";
	size_t n = 0;
	unsigned i;

	for (i = 1; i <= LNX_NETS_MAX; i++)
		n += (size_t)sprintf(text + n, "%stcp%u=10.%u.0.0/16",
				     n ? ";" : "", i, i);
	cr_assert_eq(parse(text), 0, "%s", why.why);
	strcpy(text + n, ";tcp99=10.99.0.0/16");
	cr_assert_eq(parse(text), -EINVAL);
	cr_assert_eq(why.at, n + 1);
	cr_assert_not_null(strstr(why.why, "too many"));

	n = (size_t)sprintf(text, "tcp1=10.0.0.0/16");
	for (i = 1; i < LNX_NET_SUBNETS; i++)
		n += (size_t)sprintf(text + n, ",10.%u.0.0/16", i);
	cr_assert_eq(parse(text), 0, "%s", why.why);
	strcpy(text + n, ",10.99.0.0/16");
	cr_assert_eq(parse(text), -EINVAL);
	cr_assert_not_null(strstr(why.why, "too many"));

	n = (size_t)sprintf(text, "hs=cxi/");
	memset(text + n, 'f', LNX_NET_FABRIC_MAX);
	text[n + LNX_NET_FABRIC_MAX - 1] = '\0';
	cr_assert_eq(parse(text), 0, "%s", why.why);
	cr_assert_lt(strlen(canonical(&nets)), LNX_NET_TEXT_MAX);
	text[n + LNX_NET_FABRIC_MAX - 1] = 'f';
	text[n + LNX_NET_FABRIC_MAX] = '\0';
	cr_assert_eq(parse(text), -EINVAL);
}

Test(nets, rails_of_a_net)
{
	const struct lnx_addr_rail
		in1 = rail(LNX_PROV_TCP, "10.78.0.0/16", "10.78.3.4"),
		in2 = rail(LNX_PROV_TCP, "fd00::/64", "fd00::9"),
		other = rail(LNX_PROV_TCP, "10.79.0.0/16", "10.79.3.4"),
		rxm = rail(LNX_PROV_TCP_RXM, "10.78.0.0/16", "10.78.3.4"),
		left = rail(LNX_PROV_CXI, "left", "abcd"),
		right = rail(LNX_PROV_CXI, "right", "abcd"),
		efa = rail(LNX_PROV_EFA, "x", "abcd");

	cr_assert_eq(parse("tcp1=10.78.0.0/16,fd00::/64; hs=cxi/left; e=efa"), 0,
		     "%s", why.why);
	cr_assert_eq(lnx_nets_find(&nets, &in1), 0);
	cr_assert_eq(lnx_nets_find(&nets, &in2), 0);
	cr_assert_eq(lnx_nets_find(&nets, &other), -1);
	cr_assert_eq(lnx_nets_find(&nets, &rxm), -1);
	cr_assert_eq(lnx_nets_find(&nets, &left), 1);
	cr_assert_eq(lnx_nets_find(&nets, &right), -1);
	cr_assert_eq(lnx_nets_find(&nets, &efa), 2);
}

Test(nets, rails_that_do_not_fit_the_nets)
{
	struct lnx_addr_rail two[] = {
		rail(LNX_PROV_TCP, "10.78.0.0/16", "10.78.1.4"),
		rail(LNX_PROV_TCP, "10.78.0.0/16", "10.78.2.4"),
	};

	memset(&why, 0, sizeof(why));
	/* one group, two names */
	cr_assert_eq(parse("tcp1=10.78.1.0/24;tcp2=10.78.2.0/24"), 0);
	cr_assert_eq(lnx_nets_check(&nets, two, 2, &why), -EINVAL);
	cr_assert_not_null(strstr(why.why, "tcp1"));
	cr_assert_not_null(strstr(why.why, "tcp2"));
	/* one group, a name and none */
	cr_assert_eq(parse("tcp1=10.78.1.0/24"), 0);
	cr_assert_eq(lnx_nets_check(&nets, two, 2, &why), -EINVAL);
	cr_assert_eq(lnx_nets_check(&nets, two, 1, &why), 0);
	/* one rail, two names: by fabric and by address */
	cr_assert_eq(parse("v1=verbs/IB-1;v2=verbs/10.78.0.0/16"), 0, "%s", why.why);
	two[0] = rail(LNX_PROV_VERBS_RXM, "IB-1", "10.78.1.4");
	cr_assert_eq(lnx_nets_check(&nets, two, 1, &why), -EINVAL);
	cr_assert_not_null(strstr(why.why, "v1"), "%s", why.why);
	cr_assert_not_null(strstr(why.why, "v2"), "%s", why.why);
	two[0] = rail(LNX_PROV_VERBS_RXM, "IB-2", "10.78.1.4");
	cr_assert_eq(lnx_nets_check(&nets, two, 1, &why), 0);
	/* two groups in one net are fine */
	cr_assert_eq(parse("tcp1=10.78.0.0/15"), 0);
	two[0] = rail(LNX_PROV_TCP, "10.78.0.0/16", "10.78.1.4");
	two[1] = rail(LNX_PROV_TCP, "10.79.0.0/16", "10.79.1.4");
	cr_assert_eq(lnx_nets_check(&nets, two, 2, &why), 0);
}
