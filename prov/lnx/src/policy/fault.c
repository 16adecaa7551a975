/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fault rules: what they match and when they hit. */
#include "policy/fault_rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/glob.h"

int lnx_fault_errno(enum lnx_health_class class)
{
	switch (class) {
	case LNX_CLASS_LOCAL_INTERRUPT:
		return EINTR;
	case LNX_CLASS_LOCAL_DROPPED:
		return ENETDOWN;
	case LNX_CLASS_LOCAL_ABORTED:
		return ECONNABORTED;
	case LNX_CLASS_LOCAL_NO_ROUTE:
		return EHOSTUNREACH;
	case LNX_CLASS_REMOTE_ERROR:
		return EREMOTEIO;
	case LNX_CLASS_REMOTE_DROPPED:
		return ECONNRESET;
	case LNX_CLASS_LOCAL_TIMEOUT:
	case LNX_CLASS_REMOTE_TIMEOUT:
	case LNX_CLASS_NETWORK_TIMEOUT:
		return ETIMEDOUT;
	default:
		return EIO;
	}
}

/* ---- random numbers ---- */

/* xorshift64*: short, and good enough for this. */
static uint64_t draw(struct lnx_fault_rule *r)
{
	uint64_t x = r->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	r->state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* 0..n-1; n is small enough that the remainder prefers none. */
static uint64_t draw_below(struct lnx_fault_rule *r, uint64_t n)
{
	return (draw(r) >> 1) % n;
}

static void seed_rule(struct lnx_fault_rule *r)
{
	/* Similar seeds must give different numbers. */
	r->state = lnx_mix64(r->seed + 0x9e3779b97f4a7c15ULL);
	if (!r->state)
		r->state = 1;
}

/* ---- matching ---- */

static bool matches(const struct lnx_fault_rule *r,
		    const struct lnx_fault_frame *f)
{
	unsigned i;

	if (f->kind > LNX_FAULT_WRITE || !(r->kinds >> f->kind & 1))
		return false;
	for (i = 0; i < r->nrail && !lnx_glob(r->rail[i], f->rail); i++)
		;
	if (r->nrail && i == r->nrail)
		return false;
	for (i = 0; i < r->nremote && r->remote[i] != f->remote_rail; i++)
		;
	if (r->nremote && i == r->nremote)
		return false;
	for (i = 0; i < r->npeer; i++)
		if (r->peer[i].id == (r->peer[i].is_eid ? f->eid : f->addr))
			break;
	return !r->npeer || i < r->npeer;
}

/* ---- when ---- */

static bool begun(struct lnx_fault_rule *r, uint64_t now)
{
	if (r->begun)
		return true;
	if (r->count.matched <= r->after || now - r->start_ns < r->after_ns)
		return false;
	r->begun = true;
	r->begin_ns = r->after ? now : r->start_ns + r->after_ns;
	return true;
}

static bool turn_of_rate(struct lnx_fault_rule *r)
{
	if (!r->place) {
		r->place = r->rate;
		r->victim = r->rate > 2 ? 1 + draw_below(r, r->rate) : r->rate;
	}
	return r->place-- == r->victim;
}

static bool turn_of_interval(struct lnx_fault_rule *r, uint64_t now)
{
	if (!r->paced) {
		r->paced = true;
		r->base_ns = r->begin_ns;
		r->base_ns += (now - r->base_ns) / r->interval_ns *
			      r->interval_ns;
		r->moment_ns = r->base_ns + draw_below(r, r->interval_ns);
	}
	if (now < r->moment_ns)
		return false;
	/* The next interval from now: those without a match are over. */
	r->base_ns += ((now - r->base_ns) / r->interval_ns + 1) *
		      r->interval_ns;
	r->moment_ns = r->base_ns + draw_below(r, r->interval_ns);
	return true;
}

static bool hits(struct lnx_fault_rule *r, uint64_t now)
{
	if (!begun(r, now) ||
	    (r->for_ns && now - r->begin_ns >= r->for_ns) ||
	    (r->max && r->count.hit >= r->max))
		return false;
	switch (r->often) {
	case OFTEN_RATE:
		return turn_of_rate(r);
	case OFTEN_INTERVAL:
		return turn_of_interval(r, now);
	default:
		return draw_below(r, FAULT_MILLION) < r->ppm;
	}
}

static enum lnx_health_class pick_class(struct lnx_fault_rule *r)
{
	unsigned n = (unsigned)__builtin_popcount(r->classes);
	unsigned skip = n > 1 ? (unsigned)draw_below(r, n) : 0;
	uint32_t set = r->classes;

	while (skip--)
		set &= set - 1;
	return (enum lnx_health_class)__builtin_ctz(set);
}

/* ---- the table of rules ---- */

static void begin(struct lnx_fault *t, struct lnx_fault_rule *r, uint64_t seed,
		  uint64_t now)
{
	r->number = ++t->last;
	r->start_ns = now;
	if (!r->has_seed)
		r->seed = lnx_mix64(seed ^ ((uint64_t)r->number << 48)) >> 32;
	seed_rule(r);
}

int lnx_fault_create(const char *text, uint64_t seed, uint64_t now,
		     struct lnx_fault **out, size_t *at, char *why,
		     size_t why_size)
{
	struct lnx_fault *t = calloc(1, sizeof(*t));
	unsigned i;
	int ret;

	if (!t)
		return -ENOMEM;
	ret = lnx_fault_parse(text, t, at, why, why_size);
	if (ret || !out) {
		free(t);
		return ret;
	}
	for (i = 0; i < t->nrule; i++)
		begin(t, &t->rule[i], seed, now);
	*out = t;
	return 0;
}

int lnx_fault_add(struct lnx_fault *t, const char *text, uint64_t seed,
		  uint64_t now, size_t *at, char *why, size_t why_size)
{
	struct lnx_fault *more;
	unsigned i;
	int ret;

	ret = lnx_fault_create(text, seed, now, &more, at, why, why_size);
	if (ret)
		return ret;
	if (t->nrule + more->nrule > LNX_FAULT_RULES)
		ret = -ENOSPC;
	for (i = 0; i < more->nrule && !ret; i++) {
		t->rule[t->nrule] = more->rule[i];
		begin(t, &t->rule[t->nrule++], seed, now);
	}
	free(more);
	return ret;
}

bool lnx_fault_del(struct lnx_fault *t, uint64_t number)
{
	unsigned i;

	for (i = 0; i < t->nrule; i++) {
		if (t->rule[i].number != number)
			continue;
		t->nrule--;
		memmove(&t->rule[i], &t->rule[i + 1],
			(t->nrule - i) * sizeof(t->rule[0]));
		return true;
	}
	return false;
}

void lnx_fault_destroy(struct lnx_fault *t)
{
	free(t);
}

static bool rule_is_for(const struct lnx_fault_rule *r, enum lnx_fault_at at)
{
	return (r->action == LNX_FAULT_FAIL) == (at == LNX_FAULT_AT_SEND);
}

struct lnx_fault_verdict lnx_fault_judge(struct lnx_fault *t,
					 enum lnx_fault_at at,
					 const struct lnx_fault_frame *frame,
					 uint64_t now)
{
	struct lnx_fault_verdict v = { .action = LNX_FAULT_NONE };
	unsigned i;

	for (i = 0; i < t->nrule; i++) {
		struct lnx_fault_rule *r = &t->rule[i];

		if (!rule_is_for(r, at) || !matches(r, frame))
			continue;
		r->count.matched++;
		if (!hits(r, now))
			continue;
		r->count.hit++;
		v.action = r->action;
		v.rule = i;
		v.delay_ns = r->delay_ns;
		if (r->action == LNX_FAULT_FAIL)
			v.class = pick_class(r);
		break;
	}
	return v;
}

void lnx_fault_missed(struct lnx_fault *t, unsigned rule)
{
	t->rule[rule].count.hit--;
	t->rule[rule].count.missed++;
}

unsigned lnx_fault_nrule(const struct lnx_fault *t)
{
	return t->nrule;
}

uint64_t lnx_fault_number(const struct lnx_fault *t, unsigned rule)
{
	return t->rule[rule].number;
}

struct lnx_fault_count lnx_fault_count(const struct lnx_fault *t, unsigned rule)
{
	const struct lnx_fault_rule *r = &t->rule[rule];

	return (struct lnx_fault_count){
		.matched = r->count.matched - r->base.matched,
		.hit = r->count.hit - r->base.hit,
		.missed = r->count.missed - r->base.missed,
	};
}

void lnx_fault_reset(struct lnx_fault *t)
{
	unsigned i;

	for (i = 0; i < t->nrule; i++)
		t->rule[i].base = t->rule[i].count;
}
