/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules as blocks of records: requests, hostile ones, and the calls of lnx_policy.h. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "lnx_policy.h"
#include "policy/rules_block.h"
#include "rules_view.h"

static struct lnx_nets nets;
static struct lnx_rules *rules;
static struct lnx_refusal why;
static struct lnx_policy *policy;

/* What the process at the other end does. */
static struct {
	unsigned calls;
	size_t room;			/* it has no more for a reply */
	bool blind;			/* it does not know the caller's room */
	ssize_t fails;			/* the call returns that */
	unsigned changes;		/* so often a rule changes behind a reply */
	void (*spoil)(uint8_t *reply, ssize_t *len);
} other;

static ssize_t call(void *arg, const void *request, size_t len, void *reply,
		    size_t size)
{
	static uint8_t large[LNX_RULES_MAX * sizeof(struct lnx_policy_rule)];
	ssize_t ret;

	cr_assert_eq(arg, &other);
	other.calls++;
	if (other.fails)
		return other.fails;
	cr_assert(lnx_rules_is_request(request, len));
	ret = (ssize_t)lnx_rules_request(rules, request, len,
					 other.blind ? large : reply,
					 other.blind ? sizeof(large) :
					 LNX_MIN(size, other.room));
	if (other.blind) {
		cr_assert_leq((size_t)ret, size);
		memcpy(reply, large, (size_t)ret);
	}
	if (other.spoil)
		other.spoil(reply, &ret);
	if (other.changes) {
		char text[40];

		other.changes--;
		sprintf(text, "src: tcp1, priority: %u", 1000 + other.calls);
		cr_assert_eq(lnx_rules_add_text(rules, text, &why), 0);
	}
	return ret;
}

static void setup(void)
{
	other.room = SIZE_MAX;
	cr_assert_eq(lnx_nets_parse("o2ib=verbs", &nets, &why), 0);
	rules = lnx_rules_create(&nets);
	policy = lnx_policy_open(call, &other);
}

static void teardown(void)
{
	lnx_policy_close(policy);
	lnx_rules_destroy(rules);
}

TestSuite(policy_api, .init = setup, .fini = teardown);

#define UNSET	LNX_POLICY_UNSET

static const char *text_of(const struct lnx_policy_rule *r)
{
	static char buf[4 * LNX_POLICY_TEXT];

	sprintf(buf, "%s|%s|%s|%d", r->src, r->dst, r->rte, (int)r->priority);
	return buf;
}

/* ---- the nine calls ---- */

Test(policy_api, nets)
{
	struct lnx_policy_rule *r;
	uint32_t a, b, c;
	size_t n;

	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp1", 3, &a), 0,
		     "%s", lnx_policy_error(policy));
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_DST, "tcp1", UNSET, &b),
		     0);
	cr_assert(a > 0 && b > a);
	/* the same net again: updated, or there already */
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp1", 4, &c), 0);
	cr_assert_eq(c, a);
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp1", 4, &c),
		     -EALREADY);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "there already"));
	cr_assert_eq(lnx_policy_show_net(policy, LNX_POLICY_SRC, NULL, &r, &n), 0);
	cr_assert_eq(n, 2);
	cr_assert_str_eq(text_of(&r[0]), "tcp1|||4");
	cr_assert(r[0].id == a && r[0].index == 0 && r[0].type == LNX_POLICY_NET &&
		  r[0].state == LNX_POLICY_WAITING);
	cr_assert_str_eq(text_of(&r[1]), "|tcp1||0");
	free(r);
	cr_assert_eq(lnx_policy_show_net(policy, LNX_POLICY_DST, "tcp[1]", &r, &n),
		     0);
	cr_assert_eq(n, 1);
	cr_assert_eq(r[0].id, b);
	free(r);
	cr_assert_eq(lnx_policy_del_net(policy, LNX_POLICY_DST, "tcp1", 0), 0);
	cr_assert_eq(lnx_policy_del_net(policy, LNX_POLICY_DST, "tcp1", 0), -ENOENT);
	cr_assert_eq(lnx_policy_del_net(policy, LNX_POLICY_SRC, NULL, a), 0);
	cr_assert_eq(lnx_policy_del_net(policy, LNX_POLICY_SRC, NULL, a), -ENOENT);
	cr_assert_eq(lnx_policy_show_net(policy, LNX_POLICY_SRC, NULL, &r, &n), 0);
	cr_assert(n == 0 && r == NULL);
}

Test(policy_api, nids_and_pairs)
{
	struct lnx_policy_rule *r;
	uint32_t net, nid, pair, id;
	size_t n;

	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp", 1, &net), 0);
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_DST, "10.0.0.*@tcp", 2,
					&nid), 0);
	cr_assert_eq(lnx_policy_add_peer(policy, "10.0.0.[1-2]@tcp", "10.0.0.7@tcp",
					 UNSET, &pair), 0);
	/* each call is for its own kind */
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "10.0.0.1@tcp", 1,
					NULL), -EINVAL);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "rules for NIDs"), "%s",
			   lnx_policy_error(policy));
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_SRC, "tcp", 9, NULL),
		     -EINVAL);
	cr_assert_eq(lnx_policy_add_peer(policy, "tcp", NULL, UNSET, NULL), -EINVAL);
	cr_assert_eq(lnx_policy_add_peer(policy, "tcp", "tcp", 0, NULL), -EINVAL);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "has no priority"));
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_SRC, NULL, 1, NULL),
		     -EINVAL);
	cr_assert_eq(lnx_policy_add_nid(policy, (enum lnx_policy_end)7, "x", 1,
					NULL), -EINVAL);
	cr_assert_eq(rules_count(rules), 3);
	/* deleting by the id of another kind */
	cr_assert_eq(lnx_policy_del_net(policy, LNX_POLICY_SRC, NULL, nid), -ENOENT);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "rules for NIDs"));
	cr_assert_eq(lnx_policy_del_nid(policy, LNX_POLICY_SRC, NULL, pair),
		     -ENOENT);
	cr_assert_eq(lnx_policy_del_peer(policy, NULL, NULL, net), -ENOENT);
	/* a single NID shows what has it */
	cr_assert_eq(lnx_policy_show_nid(policy, LNX_POLICY_DST, "10.0.0.9@tcp", &r,
					 &n), 0);
	cr_assert_eq(n, 1);
	cr_assert_str_eq(text_of(&r[0]), "|10.0.0.*@tcp||2");
	free(r);
	cr_assert_eq(lnx_policy_show_peer(policy, "10.0.0.2@tcp", NULL, &r, &n), 0);
	cr_assert_eq(n, 1);
	cr_assert_str_eq(text_of(&r[0]), "10.0.0.[1-2]@tcp|10.0.0.7@tcp||-1");
	cr_assert_eq(r[0].type, LNX_POLICY_PEER);
	free(r);
	cr_assert_eq(lnx_policy_show_peer(policy, NULL, "10.0.0.8@tcp", &r, &n), 0);
	cr_assert_eq(n, 0);
	cr_assert_eq(lnx_policy_show_peer(policy, "foo", NULL, &r, &n), -EINVAL);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "no known net"));
	cr_assert_eq(lnx_policy_del_nid(policy, LNX_POLICY_DST, "10.0.0.0/24@tcp",
					0), 0);
	cr_assert_eq(lnx_policy_del_peer(policy, "10.0.0.1,2@tcp", "x", 0), -EINVAL);
	cr_assert_eq(lnx_policy_del_peer(policy, "10.0.0.[1,2]@tcp", "10.0.0.7@tcp",
					 0), 0);
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_SRC, "10.0.0.1@tcp", 5,
					&id), 0);
	cr_assert_gt(id, pair);
}

Test(policy_api, any_rules_together)
{
	struct lnx_policy_rule add[3] = {
		{ .index = UNSET, .priority = 9, .src = "tcp1" },
		{ .index = 0, .priority = UNSET, .dst = "o2ib",
		  .rte = "10.0.0.9@tcp" },
		{ .index = UNSET, .priority = UNSET, .src = "tcp", .dst = "tcp" },
	};
	struct lnx_policy_rule del = { .index = 1, .priority = UNSET }, *r;
	struct lnx_policy_id id[3];
	uint32_t deleted;
	size_t n;

	cr_assert_eq(lnx_policy_add(policy, add, 3, id), 0, "%s",
		     lnx_policy_error(policy));
	cr_assert(id[0].index == 1 && id[1].index == 0 && id[2].index == 2);
	cr_assert_eq(lnx_policy_show(policy, NULL, &r, &n), 0);
	cr_assert_eq(n, 3);
	cr_assert(r[0].id == id[1].id && r[0].type == LNX_POLICY_GATEWAY &&
		  r[0].state == LNX_POLICY_NO_ROUTING);
	cr_assert_str_eq(text_of(&r[0]), "|o2ib|10.0.0.9@tcp|-1");
	free(r);
	/* one is wrong: none is added */
	strcpy(add[0].src, "tcp2");
	strcpy(add[1].dst, "foo");
	cr_assert_eq(lnx_policy_add(policy, add, 2, id), -EINVAL);
	cr_assert_eq(rules_count(rules), 3);
	cr_assert_eq(lnx_policy_add(policy, add, 0, id), -EINVAL);
	/* by index, by filter, and all */
	cr_assert_eq(lnx_policy_del(policy, &del, 1, &deleted), 0);
	cr_assert_eq(deleted, 1);
	del.index = UNSET;
	strcpy(del.src, "tcp");
	cr_assert_eq(lnx_policy_show(policy, &del, &r, &n), 0);
	cr_assert_eq(n, 1);
	cr_assert_eq(r[0].id, id[2].id);
	free(r);
	del = (struct lnx_policy_rule){ .index = UNSET, .priority = UNSET,
					.id = id[2].id };
	cr_assert_eq(lnx_policy_show(policy, &del, &r, &n), 0);
	cr_assert(n == 1 && r[0].id == id[2].id);
	free(r);
	/* one that is named and not there is an error; a pattern selects none */
	del.id += 7;
	cr_assert_eq(lnx_policy_show(policy, &del, &r, &n), -ENOENT);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "no rule with id"));
	del.id = 0;
	del.index = 2;
	cr_assert_eq(lnx_policy_show(policy, &del, &r, &n), -ENOENT);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "no rule with idx 2"));
	del.index = UNSET;
	strcpy(del.src, "tcp77");
	cr_assert_eq(lnx_policy_show(policy, &del, &r, &n), 0);
	cr_assert_eq(n, 0);
	cr_assert_eq(lnx_policy_del(policy, NULL, 0, &deleted), 0);
	cr_assert_eq(deleted, 2);
	cr_assert_eq(rules_count(rules), 0);
}

/* ---- paging ---- */

static void many(unsigned n)
{
	char text[40];
	unsigned i;

	for (i = 0; i < n; i++) {
		sprintf(text, "%s: tcp%u", i % 2 ? "src" : "dst", i);
		cr_assert_eq(lnx_rules_add_text(rules, text, &why), 0);
	}
}

static void check_all(unsigned want)
{
	struct lnx_policy_rule *r;
	size_t n, i;

	cr_assert_eq(lnx_policy_show_net(policy, LNX_POLICY_SRC, NULL, &r, &n), 0,
		     "%s", lnx_policy_error(policy));
	cr_assert_eq(n, want);
	for (i = 0; i < n; i++)
		cr_assert_eq(r[i].index, i);
	free(r);
}

Test(policy_api, rules_come_in_pages)
{
	unsigned per;

	many(100);
	check_all(100);
	cr_assert_eq(other.calls, 4);		/* 32 in each reply */
	/* any room for at least one rule is enough */
	for (per = 1; per <= 100; per += 33) {
		other.calls = 0;
		other.room = sizeof(struct lnx_policy_block) +
			     per * sizeof(struct lnx_policy_rule) + 17;
		check_all(100);
		cr_assert_eq(other.calls, per < 32 ? 100 : 4);
	}
}

/* A process with more room for replies than the caller has. */
Test(policy_api, requests_say_how_long_the_reply_may_be)
{
	many(100);
	other.blind = true;
	check_all(100);
	cr_assert_eq(other.calls, 4);
}

Test(policy_api, pages_of_rules_that_change)
{
	struct lnx_policy_rule *r;
	size_t n;

	many(100);
	other.changes = 2;
	check_all(100);
	/* it gives up */
	other.changes = 1000;
	cr_assert_eq(lnx_policy_show(policy, NULL, &r, &n), -EAGAIN);
	cr_assert(!r && !n);
}

Test(policy_api, a_reply_without_room_for_one_rule)
{
	struct lnx_policy_rule *r;
	size_t n;

	many(1);
	other.room = sizeof(struct lnx_policy_block) + 20;
	cr_assert_eq(lnx_policy_show(policy, NULL, &r, &n), -ENOSPC);
	cr_assert(strlen(lnx_policy_error(policy)) > 0);
	/* of a refusal as much as there is room for */
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "foo", 0, NULL),
		     -EINVAL);
	cr_assert_eq(strlen(lnx_policy_error(policy)), 19);
	/* nothing may be added whose id could not be told */
	other.room = sizeof(struct lnx_policy_block);
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp9", 0, NULL),
		     -EINVAL);
	cr_assert_eq(rules_count(rules), 1);
}

/* ---- requests that are malformed ---- */

struct request {
	struct lnx_policy_block head;
	struct lnx_policy_rule rec[3];
};

static union {
	uint8_t bytes[8192];
	struct lnx_policy_block head;
} reply;

static struct request request(enum lnx_policy_op op, enum lnx_policy_type type,
			      uint32_t count)
{
	struct request q = {
		.head = { .magic = LNX_POLICY_MAGIC, .head = sizeof(q.head),
			  .op = (uint16_t)op, .type = type,
			  .size = sizeof(q.rec[0]), .count = count },
	};
	unsigned i;

	for (i = 0; i < 3; i++) {
		q.rec[i].index = q.rec[i].priority = UNSET;
		sprintf(q.rec[i].src, "tcp%u", i + 1);
	}
	return q;
}

/* Send it; returns the status of the reply, whose form is checked. */
static int ask(const void *q, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	size_t n;

	/* so that a sanitizer sees a read beyond the end */
	memcpy(exact, q, len);
	memset(&reply, 0xff, sizeof(reply));
	n = lnx_rules_request(rules, exact, len, reply.bytes, sizeof(reply));
	free(exact);
	cr_assert_geq(n, sizeof(reply.head));
	cr_assert_eq(reply.head.magic, LNX_POLICY_MAGIC);
	cr_assert_eq(reply.head.head, sizeof(reply.head));
	cr_assert_eq(reply.head.head + (size_t)reply.head.count * reply.head.size,
		     n);
	if (reply.head.status == 0 || reply.head.status == -ENOSPC)
		return reply.head.status;
	cr_assert_eq(reply.head.type, LNX_POLICY_SENTENCE);
	cr_assert_eq(reply.bytes[n - 1], '\0');
	cr_assert_gt(reply.head.size, 10);
	return reply.head.status;
}

#define WHOLE(q)	(sizeof((q).head) + (q).head.count * sizeof((q).rec[0]))
#define SENTENCE	((const char *)reply.bytes + sizeof(reply.head))

Test(policy_api, heads_that_are_wrong)
{
	struct request q = request(LNX_POLICY_ADD, LNX_POLICY_ANY, 2), good = q;
	size_t len;

	cr_assert_eq(ask(&q, WHOLE(q)), 0);
	rules_del(rules, &(struct lnx_rules_which){ 0 }, NULL, &why);
	for (len = 0; len < WHOLE(q); len++)
		cr_assert_eq(ask(&q, len), -EINVAL, "%zu bytes", len);
	q.head.magic ^= 1;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	q = good;
	q.head.head = sizeof(q.head) - 1;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	cr_assert_eq(ask(&q, WHOLE(q) - 1), -EINVAL);
	cr_assert_not_null(strstr(SENTENCE, "the head of the request"));
	q.head.head = UINT16_MAX;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	q = good;
	q.head.op = 0;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	q.head.op = 4;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	cr_assert_not_null(strstr(SENTENCE, "operation 4"));
	q = good;
	q.head.type = 5;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	q.head.type = UINT32_MAX;
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	q = good;
	q.head.count = 3;			/* more than come */
	cr_assert_eq(ask(&q, WHOLE(good)), -EINVAL);
	q.head.count = 1;			/* fewer */
	cr_assert_eq(ask(&q, WHOLE(good)), -EINVAL);
	q.head.count = UINT32_MAX;
	cr_assert_eq(ask(&q, WHOLE(good)), -EINVAL);
	q = good;
	q.head.op = LNX_POLICY_SHOW;		/* two filters */
	cr_assert_eq(ask(&q, WHOLE(good)), -EINVAL);
	cr_assert_eq(rules_count(rules), 0);
	cr_assert_eq(lnx_rules_request(rules, &good, WHOLE(good), reply.bytes,
				       sizeof(reply.head) - 1), 0);
	cr_assert_eq(rules_count(rules), 0);
}

/* Records and head of a later version are longer; those of an earlier one shorter. */
Test(policy_api, unknown_tails_are_skipped_and_short_records_refused)
{
	struct request q = request(LNX_POLICY_ADD, LNX_POLICY_NET, 3);
	const size_t head = sizeof(q.head) + 8, size = sizeof(q.rec[0]) + 24;
	uint8_t later[sizeof(q) + 8 + 3 * 24];
	unsigned i;

	memset(later, 0xa5, sizeof(later));
	q.head.head = (uint16_t)head;
	q.head.size = (uint32_t)size;
	memcpy(later, &q.head, sizeof(q.head));
	for (i = 0; i < 3; i++)
		memcpy(later + head + i * size, &q.rec[i], sizeof(q.rec[i]));
	cr_assert_eq(ask(later, sizeof(later)), 0);
	cr_assert_eq(rules_count(rules), 3);
	cr_assert_eq(reply.head.type, LNX_POLICY_IDS);
	cr_assert_eq(reply.head.count, 3);

	q = request(LNX_POLICY_DEL, LNX_POLICY_NET, 2);
	q.head.size = sizeof(q.rec[0]) - 4;
	cr_assert_eq(ask(&q, sizeof(q.head) + 2 * q.head.size), -EINVAL);
	cr_assert_not_null(strstr(SENTENCE, "too short"));
	q.head.size = 0;
	cr_assert_eq(ask(&q, sizeof(q.head)), -EINVAL);
	cr_assert_eq(rules_count(rules), 3);
}

Test(policy_api, records_that_are_wrong)
{
	struct request q = request(LNX_POLICY_ADD, LNX_POLICY_ANY, 3), good = q;

	memset(q.rec[1].src, 't', sizeof(q.rec[1].src));
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	cr_assert_eq(reply.head.skip, 1);
	cr_assert_not_null(strstr(SENTENCE, "does not end"));
	q = good;
	strcpy(q.rec[2].src, "tcp[1]");		/* as the first one */
	cr_assert_eq(ask(&q, WHOLE(q)), -EALREADY);
	cr_assert_eq(reply.head.skip, 2);
	q = good;
	q.rec[2].src[0] = '\0';
	cr_assert_eq(ask(&q, WHOLE(q)), -EINVAL);
	cr_assert_eq(rules_count(rules), 0);
	/* deleted together or not at all */
	cr_assert_eq(ask(&good, WHOLE(good)), 0);
	q = request(LNX_POLICY_DEL, LNX_POLICY_ANY, 3);
	strcpy(q.rec[2].src, "tcp9");
	cr_assert_eq(ask(&q, WHOLE(q)), -ENOENT);
	cr_assert_eq(reply.head.skip, 2);
	cr_assert_eq(rules_count(rules), 3);
	/* all of one type */
	q = request(LNX_POLICY_DEL, LNX_POLICY_NID, 0);
	cr_assert_eq(ask(&q, WHOLE(q)), 0);
	cr_assert_eq(reply.head.total, 0);
	q.head.type = LNX_POLICY_NET;
	cr_assert_eq(ask(&q, WHOLE(q)), 0);
	cr_assert_eq(reply.head.total, 3);
}

Test(policy_api, what_is_no_request)
{
	cr_assert(!lnx_rules_is_request("health list", 11));
	cr_assert(!lnx_rules_is_request("LNX", 3));
	cr_assert(lnx_rules_is_request("LNXP", 4));
}

Test(policy_api, no_policy_has_a_sentence)
{
	cr_assert_gt(strlen(lnx_policy_error(NULL)), 10u);
	lnx_policy_close(NULL);
}

/* ---- replies that are malformed ---- */

static unsigned spoiled;

static void spoil(uint8_t *bytes, ssize_t *len)
{
	struct lnx_policy_block *h = (void *)bytes;

	switch (spoiled) {
	case 0: *len = 3; break;
	case 1: h->magic = 0; break;
	case 2: h->head = 4; break;
	case 3: h->head = UINT16_MAX; break;
	case 4: h->count++; break;
	case 5: h->size--; break;
	case 6: h->status = 7; break;
	case 7:
		*len = INT32_MAX;
		h->count = 1;
		h->size = INT32_MAX - h->head;
		break;
	case 8: h->type = LNX_POLICY_GATEWAY + 3; break;
	case 9: h->count *= h->size; h->size = 1; break;
	case 10: h->status = -ENOSPC; break;	/* for ever */
	case 11: *len -= 1; break;
	}
}

Test(policy_api, replies_that_are_wrong)
{
	struct lnx_policy_rule *r;
	size_t n;

	many(3);
	other.spoil = spoil;
	for (spoiled = 0; spoiled < 12; spoiled++) {
		cr_assert_eq(lnx_policy_show(policy, NULL, &r, &n),
			     spoiled == 10 ? -ENOSPC : -EPROTO, "%u: %s", spoiled,
			     lnx_policy_error(policy));
		cr_assert(!r && !n);
		cr_assert_gt(strlen(lnx_policy_error(policy)), 10);
	}
	spoiled = 8;
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp77", 0, NULL),
		     -EPROTO);
	other.spoil = NULL;
	other.fails = -ETIMEDOUT;
	cr_assert_eq(lnx_policy_add_net(policy, LNX_POLICY_SRC, "tcp78", 0, NULL),
		     -ETIMEDOUT);
	cr_assert_not_null(strstr(lnx_policy_error(policy), "does not answer"));
}

Test(policy_api, texts_that_are_too_long)
{
	char text[LNX_POLICY_TEXT + 1];

	memset(text, 'x', sizeof(text));
	text[LNX_POLICY_TEXT] = '\0';
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_SRC, text, 0, NULL),
		     -EINVAL);
	cr_assert_eq(other.calls, 0);
	text[LNX_POLICY_TEXT - 1] = '\0';
	cr_assert_eq(lnx_policy_add_nid(policy, LNX_POLICY_SRC, text, 0, NULL),
		     -EINVAL);
	cr_assert_eq(other.calls, 1);
}
