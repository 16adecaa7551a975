/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fault rules (FI_LNX_FAULT): their text and errors, what they match, how often
 * and when. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/fault.h"

#define MS	1000000ULL

static char why[512];
static size_t at;
static uint64_t now = 1000 * MS;

static int try(const char *text)
{
	at = SIZE_MAX;
	memset(why, 'x', sizeof(why));
	return lnx_fault_create(text, 0, now, NULL, &at, why, sizeof(why));
}

static struct lnx_fault *make_seeded(const char *text, uint64_t seed)
{
	struct lnx_fault *t = NULL;
	int ret = lnx_fault_create(text, seed, now, &t, &at, why, sizeof(why));

	cr_assert_eq(ret, 0, "%s: character %zu: %s", text, at, why);
	cr_assert_not_null(t);
	return t;
}

static struct lnx_fault *make(const char *text)
{
	return make_seeded(text, 42);
}

/* All rules in canonical spelling, separated by "; ". */
static const char *canonical(const struct lnx_fault *t)
{
	static char buf[4 * LNX_FAULT_TEXT_MAX];
	size_t n = 0;
	unsigned i;

	for (i = 0; i < lnx_fault_nrule(t); i++) {
		if (i)
			n += (size_t)sprintf(buf + n, "; ");
		n += lnx_fault_print(t, i, buf + n, sizeof(buf) - n);
		cr_assert_lt(n, sizeof(buf));
		cr_assert_eq(n, strlen(buf));
	}
	return buf;
}

static const struct lnx_fault_frame plain = {
	.rail = "tcp:eth0", .remote_rail = 1, .eid = 0x0123456789abcdefULL,
	.addr = 7, .kind = LNX_KIND_TAG,
};

static struct lnx_fault_verdict recv_verdict(struct lnx_fault *t)
{
	return lnx_fault_judge(t, LNX_FAULT_AT_RECV, &plain, now);
}

static bool dropped(struct lnx_fault *t)
{
	return recv_verdict(t).action == LNX_FAULT_DROP;
}

static bool drops(struct lnx_fault *t, struct lnx_fault_frame f)
{
	return lnx_fault_judge(t, LNX_FAULT_AT_RECV, &f, now).action ==
	       LNX_FAULT_DROP;
}

static unsigned drops_of(struct lnx_fault *t, unsigned n)
{
	unsigned hit = 0;

	while (n--)
		hit += dropped(t);
	return hit;
}

/* ---- text ---- */

Test(fault, good_text_and_its_canonical_spelling)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "drop", "drop" },
		{ " \tdrop\r\n", "drop" },
		{ "DROP RAIL=tcp:eth0 Kind=ACK", "drop rail=tcp:eth0 kind=ack" },
		{ "delay=20", "delay=20ms" },
		{ "delay=20ms", "delay=20ms" },
		{ "delay=2s", "delay=2s" },
		{ "delay=2000", "delay=2s" },
		{ "delay=1500MS", "delay=1500ms" },
		{ "fail=local_error", "fail=local_error" },
		{ "fail=Remote_Timeout", "fail=remote_timeout" },
		{ "fail=remote_timeout,local_interrupt seed=1",
		  "fail=local_interrupt,remote_timeout seed=1" },
		{ "fail=random seed=1", "fail=random seed=1" },
		{ "fail=random,local_error seed=1", "fail=random seed=1" },
		/* selectors */
		{ "drop rail=tcp:*", "drop rail=tcp:*" },
		{ "drop rail=*", "drop" },
		{ "drop rail=tcp:eth0,*", "drop" },
		{ "drop rail=tcp:eth?,udp*", "drop rail=tcp:eth?,udp*" },
		{ "drop rail=tcp;ofi_rxm:lo", "drop rail=tcp;ofi_rxm:lo" },
		{ "drop rail=tcp;ofi_rxm:lo;drop rail=verbs;ofi_rxm:*",
		  "drop rail=tcp;ofi_rxm:lo; drop rail=verbs;ofi_rxm:*" },
		{ "drop rrail=0,3", "drop rrail=0,3" },
		{ "drop rrail=*", "drop" },
		{ "drop peer=0123456789ABCDEF", "drop peer=0123456789abcdef" },
		{ "drop peer=0", "drop peer=0" },
		{ "drop peer=007,12", "drop peer=7,12" },
		{ "drop peer=1234567890123456", "drop peer=1234567890123456" },
		{ "drop peer=*", "drop" },
		{ "drop kind=rts,tag,msg", "drop kind=msg,tag,rts_msg,rts_tag" },
		{ "drop kind=rts_tag", "drop kind=rts_tag" },
		{ "drop kind=^hello", "drop kind=^hello" },
		{ "drop kind=^hello,bye", "drop kind=^hello,bye" },
		{ "fail=local_error kind=read,write,rts,fin",
		  "fail=local_error kind=rts_msg,rts_tag,fin,read,write" },
		{ "fail=local_error kind=^put,get",
		  "fail=local_error kind=^put,get" },
		/* how often, and when */
		{ "drop rate=1", "drop" },
		{ "drop rate=2", "drop rate=2" },
		{ "drop rate=10 seed=5", "drop rate=10 seed=5" },
		{ "drop interval=100 seed=5", "drop interval=100ms seed=5" },
		{ "drop random=5% seed=5", "drop random=5% seed=5" },
		{ "drop random=5 seed=5", "drop random=5% seed=5" },
		{ "drop random=0.25% seed=5", "drop random=0.25% seed=5" },
		{ "drop random=12.5000 seed=5", "drop random=12.5% seed=5" },
		{ "drop random=0.0001 seed=5", "drop random=0.0001% seed=5" },
		{ "drop random=100% seed=5", "drop random=100% seed=5" },
		{ "drop random=10% seed=5", "drop random=10% seed=5" },
		{ "drop after=10", "drop after=10" },
		{ "drop after=10ms", "drop after=10ms" },
		{ "drop after=1s for=20s", "drop after=1s for=20s" },
		{ "drop count=3 for=5", "drop for=5ms count=3" },
		{ "drop seed=9", "drop" },
		{ "drop rate=3 seed=18446744073709551615",
		  "drop rate=3 seed=18446744073709551615" },
		/* several */
		{ "drop;delay=5 ;fail=local_error",
		  "drop; delay=5ms; fail=local_error" },
	};
	struct lnx_fault *t;
	char *once;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		t = make(cases[i].text);
		cr_expect_str_eq(canonical(t), cases[i].want);
		once = strdup(canonical(t));
		lnx_fault_destroy(t);
		t = make(once);
		cr_expect_str_eq(canonical(t), once);
		lnx_fault_destroy(t);
		free(once);
	}
}

Test(fault, bad_text_is_refused_where_it_goes_wrong)
{
	static const struct { const char *text; size_t at; const char *says; }
	cases[] = {
		/* rules */
		{ "", 0, "a rule is missing at the end" },
		{ "  ", 2, "a rule is missing at the end" },
		{ ";drop", 0, "a rule is missing before ';'" },
		{ "drop;", 5, "a rule is missing at the end" },
		{ "drop;;drop", 5, "a rule is missing before ';'" },
		{ "dorp", 0, "\"dorp\": a rule begins with drop, delay=" },
		{ "kind=ack drop", 0, "\"kind=ack\": a rule begins with" },
		{ "drop=1", 0, "\"drop=1\": drop has no value" },
		{ "drop drop", 5, "\"drop\": a word of a rule is rail=" },
		{ "drop rial=tcp:*", 5, "\"rial=tcp:*\": a word of a rule" },
		{ "drop kind", 5, "\"kind\": '=' and a value are missing" },
		{ "drop kind = ack", 5, "\"kind\": '=' and a value" },
		{ "drop kind=ack, msg", 14, "kind=: must be a kind" },
		{ "drop count=1 count=2", 13, "count= stands in this rule" },
		/* times */
		{ "delay", 5, "delay=: must be a time" },
		{ "delay=", 6, "delay=: must be a time from 1 to 3600000 ms" },
		{ "delay=0", 6, "delay=0: must be a time" },
		{ "delay=3600001", 6, "delay=3600001: must be a time" },
		{ "delay=3601s", 6, "delay=3601s: must be a time" },
		{ "delay=99999999999999999999999s", 6, "must be a time" },
		{ "delay=1.5s", 6, "delay=1.5s: must be a time" },
		{ "delay=20us", 6, "delay=20us: must be a time" },
		{ "delay=ms", 6, "delay=ms: must be a time" },
		{ "delay=-5", 6, "delay=-5: must be a time" },
		{ "drop interval=0", 14, "interval=0: must be a time" },
		{ "drop for=x", 9, "for=x: must be a time" },
		/* classes */
		{ "fail", 4, "fail=: must be local_interrupt, " },
		{ "fail=", 5, "remote_error, remote_dropped, remote_timeout, "
			      "network_timeout, or random" },
		{ "fail=local_eror", 5, "fail=local_eror: must be" },
		{ "fail=local_error,", 17, "fail=: must be" },
		{ "fail=random,x", 12, "fail=x: must be" },
		/* selectors */
		{ "drop rail=", 10, "rail=: must be a rail" },
		{ "drop rail=tcp", 10, "rail=tcp: must be a rail, or several "
				       "separated by ',', as logs name them: "
				       "PROVIDER:DOMAIN" },
		{ "drop rail=tcp:a,", 16, "rail=: must be a rail" },
		{ "drop rail=tcp:a,,tcp:b", 16, "rail=: must be a rail" },
		{ "drop rail=tcp:a|b", 15, "rail=tcp:a|b: must be a rail" },
		{ "drop rail=tcp:\x01", 14, "rail=tcp:?: must be a rail" },
		{ "drop rail=shm:x", 10, "shared memory carries no frames" },
		{ "drop rrail=", 11, "rrail=: must be the index of a rail" },
		{ "drop rrail=x", 11, "rrail=x: must be the index" },
		{ "drop rrail=65535", 11, "rrail=65535: must be the index" },
		{ "drop rrail=1,", 13, "rrail=: must be the index" },
		{ "drop peer=", 10, "peer=: must be the 16 hex digits" },
		{ "drop peer=abc", 10, "peer=abc: must be the 16 hex digits of "
				       "an endpoint id" },
		{ "drop peer=0123456789abcdeg", 10, "must be the 16 hex" },
		{ "drop peer=0123456789abcdef0", 10, "must be the 16 hex" },
		{ "drop peer=1,-2", 12, "peer=-2: must be the 16 hex" },
		{ "drop kind=", 10, "kind=: must be a kind of frame, or "
				    "several separated by ',': hello, msg, " },
		{ "drop kind=ack,acks", 14, "kind=acks: must be a kind" },
		{ "drop kind=^", 11, "kind=: must be a kind" },
		{ "drop kind=unknown", 10, "kind=unknown: must be a kind" },
		{ "drop kind=read", 10, "kind=read: no frame, but a piece" },
		{ "delay=5 kind=write", 13, "kind=write: no frame" },
		{ "fail=local_error kind=ack", 22, "kind=ack: its send has no "
						   "completion" },
		{ "fail=local_error kind=fin,probe", 26, "kind=probe: its" },
		/* how often */
		{ "drop rate=0", 10, "rate=0: must be a whole number from 1" },
		{ "drop rate=x", 10, "rate=x: must be a whole number" },
		{ "drop rate=1000000001", 10, "must be a whole number" },
		{ "drop rate=2 interval=5", 12, "\"interval=5\": a rule has one "
						"of rate=, interval= and "
						"random=" },
		{ "drop random=5 rate=2", 14, "a rule has one of rate=" },
		{ "drop random=0", 12, "random=0: must be a percentage" },
		{ "drop random=0.0%", 12, "must be a percentage" },
		{ "drop random=101%", 12, "random=101%: must be a percentage" },
		{ "drop random=100.5", 12, "must be a percentage" },
		{ "drop random=%", 12, "must be a percentage" },
		{ "drop random=5%%", 12, "must be a percentage" },
		{ "drop random=5.", 12, "must be a percentage" },
		{ "drop random=.5", 12, "must be a percentage" },
		{ "drop random=0.00001", 12, "must be a percentage" },
		{ "drop after=0", 11, "after=0: must be a number of frames" },
		{ "drop after=", 11, "after=: must be a number of frames" },
		{ "drop after=x", 11, "after=x: must be a number of frames" },
		{ "drop after=0s", 11, "after=0s: must be a time" },
		{ "drop count=0", 11, "count=0: must be a whole number" },
		{ "drop seed=", 10, "seed=: must be a whole number" },
		{ "drop seed=18446744073709551616", 10, "must be a whole" },
		{ "drop seed=-1", 10, "seed=-1: must be a whole number" },
		/* the first one that is wrong, in a later rule */
		{ "drop; delay=5 kind=x rate=0", 19, "kind=x: must be a kind" },
	};
	size_t i, j;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;

		cr_expect_eq(try(text), -EINVAL, "%s", text);
		cr_expect_eq(at, cases[i].at, "%s: %zu", text, at);
		cr_expect_not_null(strstr(why, cases[i].says), "%s: %s", text,
				   why);
		for (j = 0; why[j]; j++)
			cr_assert(isprint((unsigned char)why[j]), "%s", text);
	}
	cr_expect_eq(lnx_fault_create("x", 0, 0, NULL, NULL, NULL, 0), -EINVAL);
	cr_expect_eq(try(NULL), -EINVAL);
	/* truncated, and terminated */
	cr_expect_eq(lnx_fault_create("x", 0, 0, NULL, NULL, why, 5), -EINVAL);
	cr_expect_eq(strlen(why), 4);
}

Test(fault, too_much_of_it)
{
	char text[LNX_FAULT_TEXT_MAX + 8] = "drop";
	struct lnx_fault *t;
	int i;

	for (i = 1; i < LNX_FAULT_RULES; i++)
		strcat(text, ";drop");
	t = make(text);
	cr_expect_eq(lnx_fault_nrule(t), LNX_FAULT_RULES);
	lnx_fault_destroy(t);
	strcat(text, ";drop");
	cr_expect_eq(try(text), -EINVAL);
	cr_expect_not_null(strstr(why, "at most 32 rules"), "%s", why);

	strcpy(text, "drop peer=1");
	for (i = 1; i < LNX_FAULT_LIST; i++)
		strcat(text, ",1");
	cr_expect_eq(try(text), 0);
	strcat(text, ",2");
	cr_expect_eq(try(text), -EINVAL);
	cr_expect_not_null(strstr(why, "\"2\" is one too many"), "%s", why);

	strcpy(text, "drop rail=tcp:");
	while (strlen(text) < strlen("drop rail=") + LNX_FAULT_NAME_MAX - 1)
		strcat(text, "a");
	cr_expect_eq(try(text), 0, "%s", why);
	strcat(text, "a");
	cr_expect_eq(try(text), -EINVAL);

	memset(text, ' ', sizeof(text));
	memcpy(text, "drop", 4);
	text[LNX_FAULT_TEXT_MAX - 1] = '\0';
	cr_expect_eq(strlen(text), LNX_FAULT_TEXT_MAX - 1);
	/* All of it is parsed, so trailing blanks are allowed. */
	cr_expect_eq(try(text), 0, "%s", why);
	text[LNX_FAULT_TEXT_MAX - 1] = ' ';
	text[LNX_FAULT_TEXT_MAX] = '\0';
	cr_expect_eq(try(text), -EINVAL);
	cr_expect_not_null(strstr(why, "longer than"), "%s", why);
}

/* ---- what matches ---- */

#define EXPECT_ONLY(text, member, good, bad)				\
	do {								\
		struct lnx_fault *t_ = make(text);			\
		struct lnx_fault_frame f_ = plain;			\
									\
		f_.member = good;					\
		cr_expect(drops(t_, f_), "%s", text);			\
		f_.member = bad;					\
		cr_expect(!drops(t_, f_), "%s", text);			\
		cr_expect_eq(lnx_fault_count(t_, 0).matched, 1);	\
		lnx_fault_destroy(t_);					\
	} while (0)

Test(fault, selectors)
{
	EXPECT_ONLY("drop rail=tcp:eth0", rail, "tcp:eth0", "tcp:eth1");
	EXPECT_ONLY("drop rail=tcp:eth0", rail, "tcp:eth0", "tcp:eth01");
	EXPECT_ONLY("drop rail=tcp:*", rail, "tcp:eth1", "udp:eth0");
	EXPECT_ONLY("drop rail=tcp:*", rail, "tcp:eth1", "tcp;ofi_rxm:eth1");
	EXPECT_ONLY("drop rail=tcp;ofi_rxm:lo", rail, "tcp;ofi_rxm:lo",
		    "tcp:lo");
	EXPECT_ONLY("drop rail=*:eth?", rail, "udp:eth7", "udp:eth");
	EXPECT_ONLY("drop rail=*h*1", rail, "tcp:eth0h11", "tcp:eth0h12");
	EXPECT_ONLY("drop rail=tcp:a,tcp:b", rail, "tcp:b", "tcp:c");
	EXPECT_ONLY("drop rrail=0,2", remote_rail, 2, 1);
	EXPECT_ONLY("drop peer=0123456789abcdef", eid, 0x0123456789abcdefULL,
		    0x0123456789abcdeeULL);
	EXPECT_ONLY("drop peer=3,7", addr, 7, 8);
	EXPECT_ONLY("drop peer=7", addr, 7, UINT64_MAX);
	EXPECT_ONLY("drop kind=rts", kind, LNX_KIND_RTS_MSG, LNX_KIND_MSG);
	EXPECT_ONLY("drop kind=^tag,msg", kind, LNX_KIND_ACK, LNX_KIND_MSG);
	/* all of them have to match */
	EXPECT_ONLY("drop rail=tcp:* rrail=1 peer=7 kind=tag", rail, "tcp:x",
		    "udp:x");
	EXPECT_ONLY("drop rail=tcp:* rrail=1 peer=7 kind=tag", kind,
		    LNX_KIND_TAG, LNX_KIND_MSG);
	EXPECT_ONLY("drop rail=tcp:* rrail=1 peer=7 kind=tag", addr, 7, 6);
	/* a number that is no kind */
	EXPECT_ONLY("drop", kind, LNX_KIND_ACK, 200);
}

Test(fault, every_kind_has_a_name)
{
	struct lnx_fault *t;
	struct lnx_fault_frame f = plain;
	unsigned k, n = 0;

	t = make("drop");
	for (k = 0; k < 256; k++) {
		f.kind = (uint8_t)k;
		n += drops(t, f);
	}
	cr_expect_eq(n, LNX_KIND_MAX - 1);
	lnx_fault_destroy(t);
}

Test(fault, send_and_receive_have_rules_of_their_own)
{
	struct lnx_fault *t = make("drop; fail=local_error; delay=5");
	struct lnx_fault_verdict v;

	v = lnx_fault_judge(t, LNX_FAULT_AT_SEND, &plain, now);
	cr_expect_eq(v.action, LNX_FAULT_FAIL);
	cr_expect_eq(v.class, LNX_CLASS_LOCAL_ERROR);
	cr_expect_eq(v.rule, 1);
	v = lnx_fault_judge(t, LNX_FAULT_AT_RECV, &plain, now);
	cr_expect_eq(v.action, LNX_FAULT_DROP);
	cr_expect_eq(v.rule, 0);
	cr_expect_eq(lnx_fault_count(t, 0).matched, 1);
	cr_expect_eq(lnx_fault_count(t, 1).matched, 1);
	lnx_fault_destroy(t);
	t = make("drop");
	cr_expect_eq(lnx_fault_judge(t, LNX_FAULT_AT_SEND, &plain, now).action,
		     LNX_FAULT_NONE);
	lnx_fault_destroy(t);
	t = make("fail=random");
	cr_expect_eq(lnx_fault_judge(t, LNX_FAULT_AT_RECV, &plain, now).action,
		     LNX_FAULT_NONE);
	lnx_fault_destroy(t);
}

Test(fault, first_hit_wins)
{
	struct lnx_fault *t = make("delay=3 kind=ack; drop rate=2; delay=5");
	struct lnx_fault_verdict v;

	v = recv_verdict(t);
	cr_expect_eq(v.action, LNX_FAULT_DROP);
	cr_expect_eq(v.rule, 1);
	/* A rule that matches and does not hit leaves the frame to the others. */
	v = recv_verdict(t);
	cr_expect_eq(v.action, LNX_FAULT_DELAY);
	cr_expect_eq(v.rule, 2);
	cr_expect_eq(v.delay_ns, 5 * MS);
	cr_expect_eq(lnx_fault_count(t, 0).matched, 0);
	cr_expect_eq(lnx_fault_count(t, 1).matched, 2);
	cr_expect_eq(lnx_fault_count(t, 1).hit, 1);
	cr_expect_eq(lnx_fault_count(t, 2).matched, 1);
	lnx_fault_destroy(t);
}

/* ---- how often ---- */

Test(fault, rate_hits_one_of_each_group_at_any_place)
{
	static const unsigned rates[] = { 3, 4, 7, 10, 50 };
	unsigned i, g, k, rate;

	for (i = 0; i < LNX_ARRAY_SIZE(rates); i++) {
		unsigned place[50] = { 0 }, places = 0;
		struct lnx_fault *t;
		char text[32];

		rate = rates[i];
		sprintf(text, "drop rate=%u", rate);
		t = make(text);
		for (g = 0; g < 40 * rate; g++) {
			unsigned hit = 0;

			for (k = 0; k < rate; k++) {
				if (!dropped(t))
					continue;
				hit++;
				place[k]++;
			}
			cr_assert_eq(hit, 1, "%s: %u in group %u", text, hit, g);
		}
		for (k = 0; k < rate; k++)
			places += place[k] > 0;
		cr_expect_eq(places, rate, "%s: %u places", text, places);
		lnx_fault_destroy(t);
	}
}

Test(fault, rate_one_is_all_and_two_every_other)
{
	struct lnx_fault *t = make("drop rate=1");
	unsigned i;

	cr_expect_eq(drops_of(t, 100), 100);
	lnx_fault_destroy(t);
	t = make("drop rate=2");
	for (i = 0; i < 100; i++)
		cr_expect_eq(dropped(t), i % 2 == 0);
	lnx_fault_destroy(t);
}

Test(fault, interval_hits_one_in_each)
{
	struct lnx_fault *t = make("drop interval=50");
	unsigned hits[100] = { 0 }, ms[50] = { 0 }, i, k, different = 0;
	uint64_t begin = now;

	for (i = 0; i < 100 * 50; i++) {
		now = begin + i * MS;
		if (!dropped(t))
			continue;
		hits[i / 50]++;
		ms[i % 50]++;
	}
	for (i = 0; i < 100; i++)
		cr_expect_leq(hits[i], 1, "interval %u: %u", i, hits[i]);
	/* Less than a ms before the end counts as after it. */
	cr_expect_geq(lnx_fault_count(t, 0).hit, 95);
	for (k = 0; k < 50; k++)
		different += ms[k] > 0;
	cr_expect_geq(different, 30);

	/* After a long pause hits are not made up for. */
	now += 10000 * MS;
	for (i = 0, k = 0; i < 49; i++, now += MS)
		k += dropped(t);
	cr_expect_leq(k, 2);
	lnx_fault_destroy(t);
	now = begin;
}

Test(fault, random_is_about_that_often)
{
	struct lnx_fault *t = make("drop random=5%");
	unsigned n = drops_of(t, 100000);

	cr_expect(n > 4600 && n < 5400, "%u of 100000", n);
	lnx_fault_destroy(t);
	t = make("drop random=100%");
	cr_expect_eq(drops_of(t, 1000), 1000);
	lnx_fault_destroy(t);
	t = make("drop random=0.0001%");
	cr_expect_leq(drops_of(t, 100000), 4);
	lnx_fault_destroy(t);
}

/* ---- when ---- */

Test(fault, after_some_frames_and_not_more_than_some)
{
	struct lnx_fault *t = make("drop after=10 count=3");
	unsigned i;

	for (i = 0; i < 30; i++)
		cr_expect_eq(dropped(t), i >= 10 && i < 13, "%u", i);
	cr_expect_eq(lnx_fault_count(t, 0).matched, 30);
	cr_expect_eq(lnx_fault_count(t, 0).hit, 3);
	lnx_fault_destroy(t);
	/* Groups of `rate` begin after `after`. */
	t = make("drop after=3 rate=2 count=2");
	for (i = 0; i < 20; i++)
		cr_expect_eq(dropped(t), i == 3 || i == 5, "%u", i);
	lnx_fault_destroy(t);
}

Test(fault, from_a_time_on_for_some_time)
{
	uint64_t begin = now, i;
	struct lnx_fault *t = make("drop after=100ms for=50");

	for (i = 0; i < 300; i++) {
		now = begin + i * MS;
		cr_expect_eq(dropped(t), i >= 100 && i < 150, "%llu",
			     (unsigned long long)i);
	}
	lnx_fault_destroy(t);

	/* A time in `after` counts from the creation of the rules, not from the
	 * first frame. */
	now = begin;
	t = make("drop after=100ms for=50");
	now = begin + 200 * MS;
	cr_expect(!dropped(t));
	lnx_fault_destroy(t);

	/* With `after` as a number of frames it begins with the next frame. */
	now = begin;
	t = make("drop after=2 for=50");
	now = begin + 500 * MS;
	cr_expect_eq(drops_of(t, 3), 1);
	now += 49 * MS;
	cr_expect(dropped(t));
	now += MS;
	cr_expect(!dropped(t));
	lnx_fault_destroy(t);

	now = begin;
	t = make("drop for=1s");
	cr_expect(dropped(t));
	now = begin + 999 * MS;
	cr_expect(dropped(t));
	now = begin + 1000 * MS;
	cr_expect(!dropped(t));
	lnx_fault_destroy(t);
	now = begin;
}

/* ---- random numbers ---- */

static void run_of(struct lnx_fault *t, char *out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct lnx_fault_verdict v =
			lnx_fault_judge(t, i % 3 ? LNX_FAULT_AT_RECV :
						   LNX_FAULT_AT_SEND,
					&plain, now + i * MS);

		out[i] = (char)('0' + (int)v.action * 16 + (int)v.class);
	}
	out[n] = '\0';
}

Test(fault, a_seed_repeats_a_run)
{
	static const char text[] = "drop random=20%; delay=7 rate=5; "
				   "drop interval=30; "
				   "fail=random random=30%";
	uint64_t seed = (uint64_t)time(NULL);
	char a[1001], b[1001], c[1001];
	struct lnx_fault *t, *u;

	printf("seed %llu\n", (unsigned long long)seed);
	t = make_seeded(text, seed);
	run_of(t, a, 1000);
	lnx_fault_destroy(t);
	t = make_seeded(text, seed);
	run_of(t, b, 1000);
	cr_expect_str_eq(a, b);

	/* The printed text is enough, whatever the table's seed is. */
	u = make_seeded(canonical(t), seed + 1);
	run_of(u, c, 1000);
	cr_expect_str_eq(a, c);
	lnx_fault_destroy(u);
	lnx_fault_destroy(t);

	t = make_seeded(text, seed + 1);
	run_of(t, c, 1000);
	cr_expect(strcmp(a, c), "another seed does the same");
	lnx_fault_destroy(t);
}

Test(fault, rules_draw_their_own_numbers)
{
	struct lnx_fault *t = make("delay=1 random=50%; drop random=50%");
	struct lnx_fault *u = make("delay=1 random=50% seed=3; "
				   "drop random=50% seed=3");
	unsigned i, both = 0, n = 0;

	for (i = 0; i < 1000; i++)
		both += recv_verdict(t).action == LNX_FAULT_NONE;
	cr_expect(both > 200 && both < 300, "%u of 1000 went through", both);
	/* The same seed twice means the same numbers. */
	for (i = 0; i < 1000; i++)
		n += recv_verdict(u).action == LNX_FAULT_DELAY;
	cr_expect(n > 400 && n < 600);
	lnx_fault_destroy(t);
	lnx_fault_destroy(u);
}

/* ---- classes ---- */

static unsigned classes_of(const char *text, unsigned n)
{
	struct lnx_fault *t = make(text);
	unsigned seen = 0;

	while (n--) {
		struct lnx_fault_verdict v =
			lnx_fault_judge(t, LNX_FAULT_AT_SEND, &plain, now);

		cr_assert_eq(v.action, LNX_FAULT_FAIL);
		cr_assert_lt((unsigned)v.class, LNX_CLASS_COUNT);
		seen |= 1u << v.class;
	}
	lnx_fault_destroy(t);
	return seen;
}

Test(fault, classes)
{
	unsigned c, all = 0;
	char text[64];

	cr_expect_eq(classes_of("fail=remote_dropped", 100),
		     1u << LNX_CLASS_REMOTE_DROPPED);
	cr_expect_eq(classes_of("fail=local_error,network_timeout", 100),
		     1u << LNX_CLASS_LOCAL_ERROR |
		     1u << LNX_CLASS_NETWORK_TIMEOUT);
	for (c = 0; c < LNX_CLASS_COUNT; c++) {
		snprintf(text, sizeof(text), "fail=%s", lnx_class_name(c));
		/* Classes for a missing response are not errors of a send. */
		if (c == LNX_CLASS_OK || c == LNX_CLASS_RESPONSE_TIMEOUT) {
			cr_expect_eq(try(text), -EINVAL);
			continue;
		}
		all |= 1u << c;
		cr_expect_eq(classes_of(text, 3), 1u << c);
		cr_expect_gt(lnx_fault_errno(c), 0);
		cr_expect_eq(lnx_fault_class_of(LNX_FAULT_ERRNO_BASE + (int)c),
			     c);
	}
	cr_expect_eq(classes_of("fail=random", 1000), all);
	cr_expect_gt(lnx_fault_errno(99), 0);
	cr_expect_eq(lnx_fault_class_of(LNX_FAULT_ERRNO_BASE - 1), 0);
	cr_expect_eq(lnx_fault_class_of(LNX_FAULT_ERRNO_BASE +
					LNX_CLASS_COUNT), 0);
	cr_expect_eq(lnx_fault_class_of(0), 0);
	cr_expect_eq(lnx_fault_class_of(-5), 0);
	cr_expect_eq(lnx_fault_class_of(EIO), 0);
}

/* ---- counters ---- */

static void expect_count(const struct lnx_fault *t, unsigned rule,
			 uint64_t matched, uint64_t hit, uint64_t missed)
{
	struct lnx_fault_count c = lnx_fault_count(t, rule);

	cr_expect_eq(c.matched, matched);
	cr_expect_eq(c.hit, hit);
	cr_expect_eq(c.missed, missed);
}

Test(fault, counters)
{
	struct lnx_fault *t = make("drop rate=2; delay=5 kind=tag; "
				   "fail=local_error");
	static const char want[] = "delay=5ms kind=tag";
	char buf[256], part[10];
	size_t n;

	drops_of(t, 5);
	lnx_fault_missed(t, 1);
	expect_count(t, 0, 5, 3, 0);
	expect_count(t, 1, 2, 1, 1);
	expect_count(t, 2, 0, 0, 0);
	n = lnx_fault_print(t, 1, buf, sizeof(buf));
	cr_expect_str_eq(buf, want);
	cr_expect_eq(n, strlen(want));
	/* Truncated, terminated, and the length of the whole text. */
	memset(part, 'x', sizeof(part));
	n = lnx_fault_print(t, 1, part, sizeof(part) - 1);
	cr_expect_eq(n, strlen(want));
	cr_expect_eq(strlen(part), sizeof(part) - 2);
	cr_expect(!strncmp(part, want, sizeof(part) - 2));
	cr_expect_eq(part[sizeof(part) - 1], 'x');
	cr_expect_eq(lnx_fault_print(t, 1, NULL, 0), strlen(want));
	lnx_fault_destroy(t);
	lnx_fault_destroy(NULL);
}

/* A hit that could not be executed does not use up `count`. */
Test(fault, missed_hits_do_not_count)
{
	struct lnx_fault *t = make("delay=5 count=1");

	cr_expect_eq(recv_verdict(t).action, LNX_FAULT_DELAY);
	lnx_fault_missed(t, 0);
	cr_expect_eq(recv_verdict(t).action, LNX_FAULT_DELAY);
	cr_expect_eq(recv_verdict(t).action, LNX_FAULT_NONE);
	lnx_fault_destroy(t);
}

/* The counts that are shown begin anew, and not what depends on them. */
Test(fault, reset)
{
	struct lnx_fault *t = make("drop after=2 count=2; delay=5");
	struct lnx_fault_count c;

	drops_of(t, 3);
	c = lnx_fault_count(t, 0);
	cr_expect(c.matched == 3 && c.hit == 1);
	lnx_fault_reset(t);
	c = lnx_fault_count(t, 0);
	cr_expect(!c.matched && !c.hit && !c.missed);
	/* One is left of the two. */
	drops_of(t, 3);
	c = lnx_fault_count(t, 0);
	cr_expect_eq(c.matched, 3u);
	cr_expect_eq(c.hit, 1u);
	cr_expect_eq(lnx_fault_count(t, 1).hit, 2u);
	lnx_fault_destroy(t);
}

/* ---- rules that are added and removed ---- */

Test(fault, add_and_del)
{
	struct lnx_fault *t = make("delay=5 count=1; drop after=1s");
	char text[200];

	cr_expect_eq(lnx_fault_number(t, 0), 1u);
	cr_expect_eq(lnx_fault_number(t, 1), 2u);
	cr_expect_eq(lnx_fault_add(t, "drop rate=2;drop kind=ack", 1, 0, NULL,
				   NULL, 0), 0);
	cr_expect_eq(lnx_fault_nrule(t), 4u);
	cr_expect_eq(lnx_fault_number(t, 3), 4u);
	cr_expect_eq(recv_verdict(t).action, LNX_FAULT_DELAY);
	/* A rule keeps its counts and its state. */
	cr_expect(lnx_fault_del(t, 2));
	cr_expect(!lnx_fault_del(t, 2));
	cr_expect(!lnx_fault_del(t, 0));
	cr_expect(!lnx_fault_del(t, 5));
	cr_expect_eq(lnx_fault_nrule(t), 3u);
	cr_expect_eq(lnx_fault_count(t, 0).hit, 1u);
	lnx_fault_print(t, 1, text, sizeof(text));
	cr_expect_str_eq(text, "drop rate=2");
	/* Numbers are not used twice. */
	cr_expect(lnx_fault_del(t, 4));
	cr_expect_eq(lnx_fault_add(t, "drop", 1, 0, NULL, NULL, 0), 0);
	cr_expect_eq(lnx_fault_number(t, 2), 5u);
	lnx_fault_destroy(t);
}

Test(fault, add_too_many_or_wrong)
{
	struct lnx_fault *t = make("drop");
	unsigned i;

	cr_expect_eq(lnx_fault_add(t, "dorp", 1, 0, NULL, why, sizeof(why)),
		     -EINVAL);
	cr_expect(strstr(why, "\"dorp\""));
	for (i = 1; i < LNX_FAULT_RULES - 1; i++)
		cr_expect_eq(lnx_fault_add(t, "drop", 1, 0, NULL, NULL, 0), 0);
	cr_expect_eq(lnx_fault_add(t, "drop;drop", 1, 0, NULL, NULL, 0),
		     -ENOSPC);
	cr_expect_eq(lnx_fault_nrule(t), LNX_FAULT_RULES - 1u);
	cr_expect_eq(lnx_fault_add(t, "drop", 1, 0, NULL, NULL, 0), 0);
	cr_expect_eq(lnx_fault_number(t, LNX_FAULT_RULES - 1), LNX_FAULT_RULES);
	lnx_fault_destroy(t);
}

/* `after` counts from the moment when the rule is added. */
Test(fault, added_later)
{
	struct lnx_fault *t = make("drop kind=ack");
	struct lnx_fault_frame fr = { .rail = "tcp:x", .kind = LNX_KIND_TAG };
	uint64_t s = 1000000000ull;

	cr_expect_eq(lnx_fault_add(t, "drop after=2s", 1, 10 * s, NULL, NULL,
				   0), 0);
	cr_expect_eq(lnx_fault_judge(t, LNX_FAULT_AT_RECV, &fr,
				     11 * s).action, LNX_FAULT_NONE);
	cr_expect_eq(lnx_fault_judge(t, LNX_FAULT_AT_RECV, &fr,
				     12 * s).action, LNX_FAULT_DROP);
	lnx_fault_destroy(t);
}

/* ---- any text at all ---- */

Test(fault, random_text)
{
	static const char *const bits[] = {
		"drop", "delay=", "fail=", "rail=", "rrail=", "peer=", "kind=",
		"rate=", "interval=", "random=", "after=", "for=", "count=",
		"seed=", " ", " ", " ", ";", ",", "=", "*", "?", "^", "%", ".",
		"0", "1", "7", "100", "ms", "s", "tcp:eth0", "tcp;ofi_rxm:*",
		"0123456789abcdef", "ack", "rts", "read", "local_error",
		"random", "\x80", "x",
	};
	unsigned seed = (unsigned)time(NULL);
	unsigned i, good = 0;

	printf("seed %u\n", seed);
	srand(seed);
	for (i = 0; i < 200000; i++) {
		char text[256] = "";
		unsigned n = (unsigned)rand() % 10;
		size_t len;

		/* Most texts would fail at the first word. */
		if (rand() % 2)
			strcpy(text, rand() % 2 ? "drop " : "delay=5 ");
		while (n-- && strlen(text) < sizeof(text) - 20)
			strcat(text, bits[(unsigned)rand() %
					  LNX_ARRAY_SIZE(bits)]);
		len = strlen(text);
		if (try(text)) {
			cr_assert_leq(at, len, "%s", text);
			cr_assert_not_null(memchr(why, '\0', sizeof(why)));
			for (len = 0; why[len]; len++)
				cr_assert(isprint((unsigned char)why[len]));
			continue;
		}
		good++;
	}
	cr_expect_gt(good, 100);
}
