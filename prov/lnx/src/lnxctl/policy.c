/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of lnx_policy.h: each makes a block of its arguments, sends it, and reads
 * the reply.  The process at the other end checks what rules say; here only the form of
 * replies is checked, because that process may be another version, or sick.
 */
#include "lnxctl/policy_open.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define REPLY_BYTES	(sizeof(struct lnx_policy_block) + \
			 32 * sizeof(struct lnx_policy_rule))
#define SHOW_TRIES	8		/* rules may change while they are read */
#define RULES_MAX	65536u		/* more than any process has */

struct lnx_policy {
	lnx_policy_call call;
	void *arg;
	void (*release)(void *arg);	/* or NULL */
	char error[512];
	uint8_t reply[REPLY_BYTES];
	struct lnx_policy_block head;	/* of the last reply */
};

struct lnx_policy *lnxctl_policy_make(lnx_policy_call call, void *arg,
				      void (*release)(void *arg))
{
	struct lnx_policy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->call = call;
	p->arg = arg;
	p->release = release;
	return p;
}

struct lnx_policy *lnx_policy_open(lnx_policy_call call, void *arg)
{
	return lnxctl_policy_make(call, arg, NULL);
}

void lnx_policy_close(struct lnx_policy *policy)
{
	if (policy && policy->release)
		policy->release(policy->arg);
	free(policy);
}

const char *lnx_policy_error(const struct lnx_policy *policy)
{
	return policy ? policy->error : "there is no policy: it was not opened";
}

static int LNX_PRINTF(3, 4) fail(struct lnx_policy *p, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error, sizeof(p->error), fmt, ap);
	va_end(ap);
	return err;
}

/* ---- one request and its reply ---- */

static const uint8_t *records(const struct lnx_policy *p)
{
	return p->reply + p->head.head;
}

static int check_reply(struct lnx_policy *p, size_t len)
{
	struct lnx_policy_block *h = &p->head;

	if (len > sizeof(p->reply) || len < sizeof(*h))
		return fail(p, -EPROTO, "the reply has %zu bytes, which cannot be",
			    len);
	memcpy(h, p->reply, sizeof(*h));
	if (h->magic != LNX_POLICY_MAGIC || h->head < sizeof(*h) || h->head > len ||
	    (uint64_t)h->count * h->size != len - h->head || h->status > 0)
		return fail(p, -EPROTO, "the reply is malformed; is the process "
			    "of a version that knows rules?");
	return 0;
}

static int read_sentence(struct lnx_policy *p)
{
	const char *text = (const char *)records(p);

	if (p->head.type != LNX_POLICY_SENTENCE || p->head.count != 1)
		return fail(p, p->head.status, "%s", strerror(-p->head.status));
	return fail(p, p->head.status, "%.*s",
		    (int)strnlen(text, p->head.size), text);
}

/* Send a block of n rules; p->head becomes that of the reply. */
static int request(struct lnx_policy *p, enum lnx_policy_op op,
		   enum lnx_policy_type type, uint32_t skip,
		   const struct lnx_policy_rule *rule, size_t n)
{
	struct lnx_policy_block head = {
		.magic = LNX_POLICY_MAGIC, .head = sizeof(head),
		.op = (uint16_t)op, .type = type, .size = sizeof(*rule),
		.count = (uint32_t)n, .skip = skip, .room = sizeof(p->reply),
	};
	size_t len = sizeof(head) + n * sizeof(*rule);
	uint8_t *block;
	ssize_t ret;

	p->error[0] = '\0';
	if (n > RULES_MAX)
		return fail(p, -EINVAL, "%zu rules are too many for one request", n);
	block = malloc(len);
	if (!block)
		return fail(p, -ENOMEM, "memory is short");
	memcpy(block, &head, sizeof(head));
	if (n)
		memcpy(block + sizeof(head), rule, n * sizeof(*rule));
	ret = p->call(p->arg, block, len, p->reply, sizeof(p->reply));
	free(block);
	if (ret == -E2BIG)
		return fail(p, -E2BIG, "%zu rules are too many for one request; nothing was "
			    "changed: give fewer at a time", n);
	if (ret < 0)
		return fail(p, (int)ret, "the process does not answer: %s",
			    strerror((int)-ret));
	ret = check_reply(p, (size_t)ret);
	if (ret)
		return (int)ret;
	/* A reply that had no room for all is no failure. */
	if (p->head.status && !(op == LNX_POLICY_SHOW &&
				p->head.status == -ENOSPC && p->head.count))
		return read_sentence(p);
	return 0;
}

/* Are the records of the reply of that type, and not too short? */
static int check_records(struct lnx_policy *p, uint32_t type, size_t size)
{
	if (p->head.type == type && (!p->head.count || p->head.size >= size))
		return 0;
	return fail(p, -EPROTO, "the reply has records of the type %u with %u "
		    "bytes, instead of the type %u with %zu", p->head.type,
		    p->head.size, type, size);
}

/* ---- any rules ---- */

static int add_typed(struct lnx_policy *p, enum lnx_policy_type type,
		     const struct lnx_policy_rule *rule, size_t n,
		     struct lnx_policy_id *id)
{
	int ret = request(p, LNX_POLICY_ADD, type, 0, rule, n);
	size_t i;

	if (!ret)
		ret = check_records(p, LNX_POLICY_IDS, sizeof(*id));
	if (!ret && p->head.count != n)
		ret = fail(p, -EPROTO, "the reply has %u ids for %zu rules",
			   p->head.count, n);
	for (i = 0; id && !ret && i < n; i++)
		memcpy(&id[i], records(p) + i * p->head.size, sizeof(*id));
	return ret;
}

int lnx_policy_add(struct lnx_policy *policy, const struct lnx_policy_rule *rule,
		   size_t n, struct lnx_policy_id *id)
{
	return add_typed(policy, LNX_POLICY_ANY, rule, n, id);
}

int lnx_policy_del(struct lnx_policy *policy, const struct lnx_policy_rule *rule,
		   size_t n, uint32_t *deleted)
{
	int ret = request(policy, LNX_POLICY_DEL, LNX_POLICY_ANY, 0, rule, n);

	if (!ret && deleted)
		*deleted = policy->head.total;
	return ret;
}

/* The texts of a record end, whatever the process wrote. */
static void take_record(const struct lnx_policy *p, uint32_t i,
			struct lnx_policy_rule *rule)
{
	memcpy(rule, records(p) + (size_t)i * p->head.size, sizeof(*rule));
	rule->src[LNX_POLICY_TEXT - 1] = '\0';
	rule->dst[LNX_POLICY_TEXT - 1] = '\0';
	rule->rte[LNX_POLICY_TEXT - 1] = '\0';
}

/* Append the rules of a reply to an array. */
static int append(struct lnx_policy *p, struct lnx_policy_rule **rules, size_t *n)
{
	struct lnx_policy_rule *more;
	uint32_t i;

	if (*n + p->head.count > RULES_MAX)
		return fail(p, -EPROTO, "the process does not stop sending rules");
	if (!p->head.count)
		return 0;
	more = realloc(*rules, (*n + p->head.count) * sizeof(*more));
	if (!more)
		return fail(p, -ENOMEM, "memory is short");
	*rules = more;
	for (i = 0; i < p->head.count; i++)
		take_record(p, i, &more[(*n)++]);
	return 0;
}

/* Read all pages.  1: the rules have changed meanwhile. */
static int show_pages(struct lnx_policy *p, enum lnx_policy_type type,
		      const struct lnx_policy_rule *filter,
		      struct lnx_policy_rule **rules, size_t *n)
{
	uint32_t generation = 0;
	int ret;

	do {
		ret = request(p, LNX_POLICY_SHOW, type, (uint32_t)*n, filter,
			      filter != NULL);
		if (!ret)
			ret = check_records(p, type, sizeof(**rules));
		if (!ret && *n && p->head.generation != generation)
			return 1;
		generation = p->head.generation;
		if (!ret)
			ret = append(p, rules, n);
	} while (!ret && p->head.status == -ENOSPC);
	return ret;
}

static int show_typed(struct lnx_policy *p, enum lnx_policy_type type,
		      const struct lnx_policy_rule *filter,
		      struct lnx_policy_rule **rules, size_t *n)
{
	unsigned tries;
	int ret = 1;

	for (tries = 0; tries < SHOW_TRIES && ret == 1; tries++) {
		*rules = NULL;
		*n = 0;
		ret = show_pages(p, type, filter, rules, n);
		if (!ret)
			return 0;
		free(*rules);
		*rules = NULL;
		*n = 0;
	}
	return ret == 1 ? fail(p, -EAGAIN, "the rules change all the time; try "
			       "again") : ret;
}

int lnx_policy_show(struct lnx_policy *policy, const struct lnx_policy_rule *filter,
		    struct lnx_policy_rule **rules, size_t *n)
{
	return show_typed(policy, LNX_POLICY_ANY, filter, rules, n);
}

/* ---- nets, NIDs and pairs ---- */

static int put_text(struct lnx_policy *p, char to[LNX_POLICY_TEXT], const char *from)
{
	size_t len = from ? strlen(from) : 0;

	if (len >= LNX_POLICY_TEXT)
		return fail(p, -EINVAL, "\"%.40s...\": a pattern can have %d "
			    "letters", from, LNX_POLICY_TEXT - 1);
	memcpy(to, from ? from : "", len + 1);
	return 0;
}

/* A record with a pattern for each end; NULL: none. */
static int put_ends(struct lnx_policy *p, struct lnx_policy_rule *rule,
		    const char *src, const char *dst)
{
	int ret;

	*rule = (struct lnx_policy_rule){ .index = LNX_POLICY_UNSET,
					  .priority = LNX_POLICY_UNSET };
	ret = put_text(p, rule->src, src);
	return ret ? ret : put_text(p, rule->dst, dst);
}

static int put_one(struct lnx_policy *p, struct lnx_policy_rule *rule,
		   enum lnx_policy_end end, const char *text)
{
	if (end != LNX_POLICY_SRC && end != LNX_POLICY_DST)
		return fail(p, -EINVAL, "the end must be LNX_POLICY_SRC or "
			    "LNX_POLICY_DST");
	return put_ends(p, rule, end == LNX_POLICY_SRC ? text : NULL,
			end == LNX_POLICY_DST ? text : NULL);
}

static int add_one(struct lnx_policy *p, enum lnx_policy_type type,
		   struct lnx_policy_rule *rule, uint32_t priority, uint32_t *id)
{
	struct lnx_policy_id ids;
	int ret;

	rule->priority = priority;
	ret = add_typed(p, type, rule, 1, &ids);
	if (!ret && id)
		*id = ids.id;
	return ret;
}

static int del_one(struct lnx_policy *p, enum lnx_policy_type type,
		   struct lnx_policy_rule *rule, uint32_t id)
{
	rule->id = id;
	return request(p, LNX_POLICY_DEL, type, 0, rule, 1);
}

static int show_one(struct lnx_policy *p, enum lnx_policy_type type,
		    const struct lnx_policy_rule *filter, int ret,
		    struct lnx_policy_rule **rules, size_t *n)
{
	*rules = NULL;
	*n = 0;
	return ret ? ret : show_typed(p, type, filter, rules, n);
}

int lnx_policy_add_net(struct lnx_policy *policy, enum lnx_policy_end end,
		       const char *net, uint32_t priority, uint32_t *id)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, net);

	return ret ? ret : add_one(policy, LNX_POLICY_NET, &rule, priority, id);
}

int lnx_policy_add_nid(struct lnx_policy *policy, enum lnx_policy_end end,
		       const char *nid, uint32_t priority, uint32_t *id)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, nid);

	return ret ? ret : add_one(policy, LNX_POLICY_NID, &rule, priority, id);
}

int lnx_policy_add_peer(struct lnx_policy *policy, const char *src, const char *dst,
			uint32_t priority, uint32_t *id)
{
	struct lnx_policy_rule rule;
	int ret = put_ends(policy, &rule, src, dst);

	return ret ? ret : add_one(policy, LNX_POLICY_PEER, &rule, priority, id);
}

int lnx_policy_del_net(struct lnx_policy *policy, enum lnx_policy_end end,
		       const char *net, uint32_t id)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, net);

	return ret ? ret : del_one(policy, LNX_POLICY_NET, &rule, id);
}

int lnx_policy_del_nid(struct lnx_policy *policy, enum lnx_policy_end end,
		       const char *nid, uint32_t id)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, nid);

	return ret ? ret : del_one(policy, LNX_POLICY_NID, &rule, id);
}

int lnx_policy_del_peer(struct lnx_policy *policy, const char *src, const char *dst,
			uint32_t id)
{
	struct lnx_policy_rule rule;
	int ret = put_ends(policy, &rule, src, dst);

	return ret ? ret : del_one(policy, LNX_POLICY_PEER, &rule, id);
}

int lnx_policy_show_net(struct lnx_policy *policy, enum lnx_policy_end end,
			const char *net, struct lnx_policy_rule **rules, size_t *n)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, net);

	return show_one(policy, LNX_POLICY_NET, &rule, ret, rules, n);
}

int lnx_policy_show_nid(struct lnx_policy *policy, enum lnx_policy_end end,
			const char *nid, struct lnx_policy_rule **rules, size_t *n)
{
	struct lnx_policy_rule rule;
	int ret = put_one(policy, &rule, end, nid);

	return show_one(policy, LNX_POLICY_NID, &rule, ret, rules, n);
}

int lnx_policy_show_peer(struct lnx_policy *policy, const char *src,
			 const char *dst, struct lnx_policy_rule **rules, size_t *n)
{
	struct lnx_policy_rule rule;
	int ret = put_ends(policy, &rule, src, dst);

	return show_one(policy, LNX_POLICY_PEER, &rule, ret, rules, n);
}
