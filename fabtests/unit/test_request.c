/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* policy/request: what requests mean, and the errors for invalid ones. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/request.h"

static struct lnx_request r;
static char why[600];

static int try(const char *text)
{
	memset(&r, 0xa5, sizeof(r));
	memset(why, 'x', sizeof(why));
	return lnx_request_parse(text, &r, why, sizeof(why));
}

static void good(const char *text, enum lnx_request_kind kind)
{
	cr_assert_eq(try(text), 0, "%s: %.200s", text, why);
	cr_assert_eq(r.kind, kind, "%s", text);
}

static void bad(const char *text, const char *want)
{
	cr_assert_eq(try(text), -EINVAL, "%s", text);
	cr_assert(strstr(why, want), "%s: %s", text, why);
}

Test(request, verbs)
{
	good("stats", LNX_REQUEST_STATS);
	good("  STATS \r\n", LNX_REQUEST_STATS);
	good("fault list", LNX_REQUEST_FAULT_LIST);
	good("fault show", LNX_REQUEST_FAULT_LIST);
	good("health\tlist\n", LNX_REQUEST_HEALTH_LIST);
	bad("", "a request begins with fault, health, stats, set, tune, ping, discover, "
	    "explain, export or route");
	bad(" \n", "\"\": a request begins");
	bad("stat", "\"stat\": a request begins");
	bad("stats now", "\"now\": nothing follows \"stats\"");
	bad("fault", "add, list, del or reset");
	bad("fault lst", "\"lst\": \"fault\" is followed by add, list, del or "
	    "reset");
	bad("health", "list, set, once or auto");
	bad("health \x01\xff", "\"\?\?\"");
}

Test(request, routes)
{
	good("route show", LNX_REQUEST_ROUTE_SHOW);
	good("ROUTE add  tcp2 hop=1 via 10.0.0.1@tcp1 ", LNX_REQUEST_ROUTE_ADD);
	cr_expect_str_eq(r.rules, "tcp2 hop=1 via 10.0.0.1@tcp1 ");
	good("route put tcp2 via 10.0.0.1@tcp1; tcp3 via 10.0.0.1@tcp1",
	     LNX_REQUEST_ROUTE_PUT);
	good("route del tcp2", LNX_REQUEST_ROUTE_DEL);
	cr_expect_str_eq(r.rules, "tcp2");
	cr_expect(!r.all);
	good("route del all", LNX_REQUEST_ROUTE_DEL);
	cr_expect(r.all);
	bad("route", "\"\": \"route\" is followed by show, add, put or del");
	bad("route list", "\"list\": \"route\" is followed by");
	bad("route show all", "\"all\": nothing follows \"route show\"");
	bad("route add ", "\"route add\" is followed by routes, as in");
	bad("route put", "\"route put\" is followed by routes, as in");
	bad("route del", "\"route del\" is followed by a net, as in");
	bad("route del all tcp2", "\"tcp2\": nothing follows \"route del all\"");
}

Test(request, tunables)
{
	good("tune tcp:eth0 credits 40", LNX_REQUEST_TUNE);
	cr_expect_eq(r.tuned, 1u << LNX_TUNE_CREDITS);
	cr_expect_eq(r.tune[LNX_TUNE_CREDITS], 40);
	cr_expect(lnx_request_has_rail(&r.target[0], "tcp:eth0"));
	good("tune tcp:* peer_credits 0 credits default", LNX_REQUEST_TUNE);
	cr_expect_eq(r.tuned, 3);
	cr_expect_eq(r.tune[LNX_TUNE_CREDITS], LNX_TUNE_DEFAULT);
	cr_expect_eq(r.tune[LNX_TUNE_PEER_CREDITS], 0);
	bad("tune", "\"\": must be a rail");
	bad("tune tcp:eth0", "\"tune\" is followed by a rail, and credits");
	bad("tune tcp:eth0 credit 3", "\"credit\": behind the rail");
	bad("tune tcp:eth0 credits", "\"\": credits must be a whole number");
	bad("tune tcp:eth0 credits 65536", "\"65536\": credits must be");
	bad("tune tcp:eth0 peer_credits -1", "\"-1\": peer_credits must be");
	bad("tune shm:shm credits 3", "shared memory has no health");
}

Test(request, faults)
{
	good("fault add  drop rail=tcp:x; delay=5", LNX_REQUEST_FAULT_ADD);
	cr_expect_str_eq(r.rules, "drop rail=tcp:x; delay=5");
	good("fault add drop\n", LNX_REQUEST_FAULT_ADD);
	good("fault del 12", LNX_REQUEST_FAULT_DEL);
	cr_expect_eq(r.number, 12u);
	cr_expect(!r.all);
	good("fault del ALL", LNX_REQUEST_FAULT_DEL);
	cr_expect(r.all);
	/* Counted from where the rules begin, as a user writes them. */
	bad("fault add", "character 1 of the rules: a rule is missing at the end");
	bad("fault add drop rate=x", "character 11 of the rules: rate=x: must be a whole");
	bad("fault add   drop rate=x", "character 13 of the rules: rate=x: must be a whole");
	bad("fault add drop; dorp", "character 7 of the rules: \"dorp\"");
	bad("fault del", "number of a rule");
	bad("fault del -1", "\"-1\"");
	bad("fault del 99999999999999999999", "\"99999999999999999999\"");
	bad("fault del 1 2", "\"2\": nothing follows");
}

Test(request, resets)
{
	good("fault reset", LNX_REQUEST_FAULT_RESET);
	bad("fault reset all", "\"all\": nothing follows \"fault reset\"");
	good("stats reset", LNX_REQUEST_STATS_RESET);
	bad("stats reset 1", "\"1\": nothing follows \"stats reset\"");
	bad("stats rest", "\"rest\": nothing follows \"stats\"");
}

Test(request, once)
{
	good("health once tcp:* 0@* 300", LNX_REQUEST_HEALTH_ONCE);
	cr_expect_eq(r.value, 300u);
	cr_expect_eq(r.ntarget, 2u);
	bad("health once", "\"health once\" is missing");
	bad("health once tcp:x", "the last word of \"health once\"");
	bad("health once 7", "health once RAIL");
}

Test(request, parameters)
{
	const char *text = " set  spill  1k ";

	good(text, LNX_REQUEST_SET);
	cr_expect_eq(r.name_len, 5u);
	cr_expect(!strncmp(text + r.name_at, "spill", 5));
	cr_expect_eq(r.value_len, 2u);
	cr_expect(!strncmp(text + r.value_at, "1k", 2));
	text = "set health_sensitivity_classes a=1, b=2\n";
	good(text, LNX_REQUEST_SET);
	cr_expect_eq(r.value_len, 8u);
	cr_expect(!strncmp(text + r.value_at, "a=1, b=2", 8));
	bad("set", "the name of a parameter and its value");
	bad("set spill", "the name of a parameter and its value");
	bad("set spill \n", "the name of a parameter and its value");
}

Test(request, peers)
{
	good("ping 0123456789abcdef", LNX_REQUEST_PING);
	cr_expect_eq(r.ntarget, 1u);
	cr_expect_eq(r.target[0].kind, LNX_TARGET_PEER);
	cr_expect(lnx_request_has_peer(&r.target[0], 0x0123456789abcdef, 1));
	cr_expect_eq(r.number, 0u);
	good("ping 17 250", LNX_REQUEST_PING);
	cr_expect(lnx_request_has_peer(&r.target[0], 1, 17));
	cr_expect_eq(r.number, 250u);
	bad("ping", "\"ping\" is followed by a peer");
	bad("ping *", "\"*\": \"ping\" is followed by a peer");
	bad("ping tcp:x", "\"tcp:x\": \"ping\" is followed by a peer");
	bad("ping 1 0", "\"0\": behind the peer");
	bad("ping 1 600001", "from 1 to 600000");
	bad("ping 1 5 5", "\"5\": nothing follows \"ping PEER TIMEOUT\"");
	good("discover 3", LNX_REQUEST_DISCOVER);
	cr_expect(!r.all);
	good("discover 3 FORCE", LNX_REQUEST_DISCOVER);
	cr_expect(r.all);
	bad("discover 3 now", "\"now\": behind the peer of \"discover\"");
	bad("discover 3 force 2", "nothing follows \"discover PEER force\"");
	good("explain 3 65536", LNX_REQUEST_EXPLAIN);
	cr_expect_eq(r.number, 65536u);
	cr_expect(r.sized);
	good("explain 3 0", LNX_REQUEST_EXPLAIN);
	cr_expect(r.sized);
	good("explain 3", LNX_REQUEST_EXPLAIN);
	cr_expect(!r.sized);
	bad("explain 3 64k", "\"64k\": behind the peer of \"explain\"");
	bad("explain", "\"explain\" is followed by a peer");
	good("export", LNX_REQUEST_EXPORT);
	cr_expect(!r.all);
	good("export ALL ", LNX_REQUEST_EXPORT);
	cr_expect(r.all);
	bad("export most", "\"most\": \"export\" is followed by all");
	bad("export all 3", "\"3\": nothing follows \"export all\"");
}

Test(request, targets)
{
	const struct lnx_target *t = r.target;

	good("health set tcp:eth0 tcp;ofi_rxm:*@0123456789abcdef 3@7 *@* 250",
	     LNX_REQUEST_HEALTH_SET);
	cr_expect_eq(r.value, 250u);
	cr_assert_eq(r.ntarget, 4u);
	cr_expect_eq(t[0].kind, LNX_TARGET_RAIL);
	cr_expect(lnx_request_has_rail(&t[0], "tcp:eth0"));
	cr_expect(!lnx_request_has_rail(&t[0], "tcp:eth00"));
	cr_expect_eq(t[1].kind, LNX_TARGET_PATH);
	cr_expect(lnx_request_has_rail(&t[1], "tcp;ofi_rxm:eth0"));
	cr_expect(!lnx_request_has_rail(&t[1], "tcp:eth0"));
	cr_expect(lnx_request_has_peer(&t[1], 0x0123456789abcdef, 1));
	cr_expect(!lnx_request_has_peer(&t[1], 1, 0x0123456789abcdef));
	cr_expect_eq(t[2].kind, LNX_TARGET_REMOTE);
	cr_expect_eq(t[2].remote, 3u);
	cr_expect(lnx_request_has_peer(&t[2], 1, 7));
	cr_expect(!lnx_request_has_peer(&t[2], 7, UINT64_MAX));
	cr_expect_eq(t[2].len, 3u);
	cr_expect_eq(t[3].kind, LNX_TARGET_PATH);
	cr_expect(lnx_request_has_peer(&t[3], 5, UINT64_MAX));
	good("health auto all", LNX_REQUEST_HEALTH_AUTO);
	cr_expect(r.all && !r.ntarget);
	good("health auto tcp:* 0@*", LNX_REQUEST_HEALTH_AUTO);
	cr_expect(!r.all);
	cr_expect_eq(r.ntarget, 2u);
}

Test(request, bad_targets)
{
	char text[400];
	unsigned i;

	bad("health set", "is missing what is set");
	bad("health set 0", "name what is set");
	bad("health set tcp:x", "\"tcp:x\": the last word");
	bad("health set tcp:x 1001", "from 0 to 1000");
	bad("health set tcp:x 1e2", "\"1e2\"");
	bad("health set eth0 0", "\"eth0\": must be a rail");
	bad("health set tcp:x,tcp:y 0", "\"tcp:x,tcp:y\"");
	bad("health set shm:x 0", "shared memory has no health");
	bad("health set shm:x@1 0", "shared memory has no health");
	bad("health set tcp:x@ 0", "behind @ there must be");
	bad("health set tcp:x@y 0", "behind @ there must be");
	bad("health set @5 0", "\"@5\"");
	bad("health set tcp:x@1@2 0", "behind @ there must be");
	bad("health set tcp:x@0123456789abcdeg 0", "16 hex digits");
	bad("health set tcp:x@0123456789abcdef0 0", "16 hex digits");
	bad("health set 65535@1 0", "so high a number");
	bad("health auto", "or all");
	bad("health auto all tcp:x", "\"tcp:x\": nothing follows");
	strcpy(text, "health set");
	for (i = 0; i < LNX_REQUEST_TARGETS; i++)
		strcat(text, " tcp:x");
	strcat(text, " 0");
	good(text, LNX_REQUEST_HEALTH_SET);
	text[strlen(text) - 1] = '\0';
	strcat(text, "tcp:y 0");
	bad(text, "\"tcp:y\" is one too many");
}

Test(request, long_ones)
{
	static char text[LNX_REQUEST_MAX + 100];

	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "stats", 5);
	bad(text, "longer than");
	text[LNX_REQUEST_MAX - 1] = '\0';
	good(text, LNX_REQUEST_STATS);
	memset(text, 'x', LNX_REQUEST_MAX - 1);
	bad(text, "\"xxxx");
	memcpy(text, "health set tcp:", 15);
	text[15 + LNX_REQUEST_NAME_MAX] = ' ';
	text[16 + LNX_REQUEST_NAME_MAX] = '0';
	text[17 + LNX_REQUEST_NAME_MAX] = '\0';
	bad(text, "must be a rail");
	/* The text of an error is truncated to the buffer. */
	cr_expect_eq(lnx_request_parse("x", &r, why, 5), -EINVAL);
	cr_expect_eq(strlen(why), 4u);
}

Test(request, random_text)
{
	static const char *const bits[] = {
		"fault ", "health ", "stats", "add ", "list", "del ", "set ",
		"auto ", "all", " ", " ", "@", "*", "?", "tcp:eth0", "0", "7",
		"1000", "0123456789abcdef", "drop", "rate=", ";", ",", "\x80",
		"shm:", "\n",
	};
	unsigned seed = (unsigned)time(NULL);
	unsigned i, n, ngood = 0;
	char text[256];

	printf("seed %u\n", seed);
	srand(seed);
	for (i = 0; i < 200000; i++) {
		text[0] = '\0';
		if (rand() % 2)
			strcpy(text, rand() % 2 ? "health set " :
						  "health auto ");
		for (n = (unsigned)rand() % 9; n; n--)
			strcat(text, bits[(unsigned)rand() %
					  LNX_ARRAY_SIZE(bits)]);
		if (!try(text)) {
			ngood++;
			cr_assert_leq(r.ntarget, LNX_REQUEST_TARGETS);
			continue;
		}
		cr_assert_not_null(memchr(why, '\0', sizeof(why)));
		for (n = 0; why[n]; n++)
			cr_assert(isprint((unsigned char)why[n]));
		cr_assert_gt(n, 10);
	}
	cr_expect_gt(ngood, 100);
}
