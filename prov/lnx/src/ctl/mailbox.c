/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Takes requests from the state segment.  See mailbox.h.  Called by ctl/ctl.c. */
#include "ctl/mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "core/policy.h"
#include "policy/rules_block.h"
#include "rel/rel.h"

#define REPLY_MAX	(256u << 10)	/* more than replies have */

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void put_part(struct lnx_state_mailbox *m, uint32_t number, ssize_t result,
		     const char *reply, size_t len, size_t skip)
{
	size_t part;

	skip = LNX_MIN(skip, len);
	part = LNX_MIN(len - skip, sizeof(m->reply));
	memcpy(m->reply, reply + skip, part);
	m->part_len = (uint32_t)part;
	m->reply_len = (uint32_t)len;
	m->result = result < 0 ? (int32_t)result : 0;
	__atomic_store_n(&m->done, number, __ATOMIC_RELEASE);
}

/* buf is owned by us now. */
static void answer(struct lnx_mailbox_side *side, struct lnx_state_mailbox *m,
		   uint32_t number, ssize_t result, char *buf, size_t len)
{
	free(side->reply);
	side->reply = NULL;
	put_part(m, number, result, buf ? buf : "", len, 0);
	if (len > sizeof(m->reply)) {
		side->reply = buf;
		side->reply_len = len;
	} else {
		free(buf);
	}
}

/* Another part of the last reply. */
static void more(struct lnx_mailbox_side *side, struct lnx_state_mailbox *m,
		 uint32_t number, size_t skip)
{
	if (side->reply)
		put_part(m, number, 0, side->reply, side->reply_len, skip);
	else
		put_part(m, number, -FI_ENODATA, "", 0, 0);
}

static bool cancelled(struct lnx_state_mailbox *m, uint32_t number)
{
	lnx_fence();
	return load(&m->cancel) == number;
}

static size_t finish(char *buf, const struct lnx_out *o)
{
	size_t len = LNX_MIN(o->n, (size_t)REPLY_MAX - 1);

	buf[len] = '\0';
	return len;
}

/* A part of a configuration would be another one. */
static ssize_t too_long(struct lnx_out *o)
{
	size_t n = o->n;

	o->n = 0;
	lnx_out(o, "the reply has %zu bytes, and there is room for %u", n, REPLY_MAX - 1);
	return -FI_EMSGSIZE;
}

/* Blocks of records about rules (lnx_policy.h).  Length of the reply, or -FI_ENOMEM. */
static ssize_t rules(struct lnx_ep *ep, const void *request, size_t len, char *reply,
		     uint64_t now)
{
	struct lnx_rules *r = lnx_policy_rules(ep);
	uint32_t before;
	size_t n;

	if (!r)
		return -FI_ENOMEM;
	before = lnx_rules_generation(r);
	n = lnx_rules_request(r, request, len, reply, REPLY_MAX);
	if (lnx_rules_generation(r) != before)
		lnx_rel_set(ep, LNX_REL_SET_RULES, now);
	return (ssize_t)n;
}

static void begin(struct lnx_mailbox_side *side, struct lnx_ep *ep,
		  struct lnx_state_mailbox *m, uint32_t number, uint64_t now)
{
	size_t len = load(&m->len), skip = load(&m->skip);
	char *text = calloc(1, LNX_STATE_REQUEST + 1);
	char *buf = calloc(1, REPLY_MAX);
	struct lnx_out o = { .buf = buf, .size = buf ? REPLY_MAX : 0 };
	ssize_t ret = -FI_ENOMEM;

	if (text)
		memcpy(text, m->text, LNX_MIN(len, (size_t)LNX_STATE_REQUEST - 1));
	__atomic_store_n(&m->taken, number, __ATOMIC_RELEASE);
	if (cancelled(m, number)) {
		free(buf);
	} else if (!len) {
		more(side, m, number, skip);
		free(buf);
	} else if (!text || !buf) {
		answer(side, m, number, -FI_ENOMEM, buf, 0);
	} else if (lnx_rules_is_request(text, LNX_MIN(len, (size_t)LNX_STATE_REQUEST - 1))) {
		ret = rules(ep, text, LNX_MIN(len, (size_t)LNX_STATE_REQUEST - 1), buf, now);
		answer(side, m, number, ret, buf, ret < 0 ? 0 : (size_t)ret);
	} else {
		ret = lnx_ctl_carry_out(ep, text, &side->job, now, &o);
		if (!ret && o.n >= REPLY_MAX)
			ret = too_long(&o);
		/* A job writes its reply when it is finished. */
		if (ret == -FI_EINPROGRESS) {
			side->number = number;
			side->job_buf = buf;
		} else {
			answer(side, m, number, ret, buf, finish(buf, &o));
		}
	}
	free(text);
}

static void stop(struct lnx_mailbox_side *side, struct lnx_ep *ep)
{
	if (!side->number)
		return;
	lnx_ctl_drop(&side->job, ep);
	side->number = 0;
	free(side->job_buf);
	side->job_buf = NULL;
}

static void go_on(struct lnx_mailbox_side *side, struct lnx_ep *ep,
		  struct lnx_state_mailbox *m, uint64_t now)
{
	struct lnx_out o = { .buf = side->job_buf, .size = REPLY_MAX };
	uint32_t number = side->number;
	char *buf;
	int ret;

	if (cancelled(m, number)) {
		stop(side, ep);
		return;
	}
	ret = side->job.run(&side->job, ep, now, &o);
	if (ret == -FI_EINPROGRESS)
		return;
	buf = side->job_buf;
	side->job_buf = NULL;
	side->number = 0;
	answer(side, m, number, ret, buf, finish(buf, &o));
}

LNX_COLD bool lnx_mailbox_run(struct lnx_mailbox_side *side, struct lnx_ep *ep,
			      struct lnx_state_mailbox *m, uint64_t now)
{
	uint32_t number = load(&m->request);

	if (side->number)
		go_on(side, ep, m, now);
	if (number == side->seen)
		return false;
	side->seen = number;
	if (!number || __atomic_load_n(&m->eid, __ATOMIC_RELAXED) != ep->eid ||
	    load(&m->taken) == number || cancelled(m, number))
		return false;
	/* The reader has given up the last one. */
	stop(side, ep);
	begin(side, ep, m, number, now);
	return true;
}

void lnx_mailbox_fini(struct lnx_mailbox_side *side)
{
	free(side->job_buf);
	side->job_buf = NULL;
	free(side->reply);
	side->reply = NULL;
}
