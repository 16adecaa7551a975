/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rules in canonical spelling, and what they have hit. */
#include "policy/fault_rule.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/compiler.h"

#define NS_PER_MS	1000000ULL

struct out {
	char *buf;
	size_t size;
	size_t n;
};

static void LNX_PRINTF(2, 3) put(struct out *o, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(o->n < o->size ? o->buf + o->n : NULL,
		      o->n < o->size ? o->size - o->n : 0, fmt, ap);
	va_end(ap);
	o->n += r > 0 ? (size_t)r : 0;
}

static void put_time(struct out *o, const char *before, uint64_t ns)
{
	uint64_t ms = ns / NS_PER_MS;

	if (ms % 1000)
		put(o, "%s%" PRIu64 "ms", before, ms);
	else
		put(o, "%s%" PRIu64 "s", before, ms / 1000);
}

static void put_action(struct out *o, const struct lnx_fault_rule *r)
{
	unsigned c, n = 0;

	switch (r->action) {
	case LNX_FAULT_DROP:
		put(o, "drop");
		break;
	case LNX_FAULT_DELAY:
		put_time(o, "delay=", r->delay_ns);
		break;
	default:
		put(o, "fail=");
		if (r->classes == FAULT_CLASSES)
			put(o, "random");
		for (c = 0; c < LNX_CLASS_COUNT; c++)
			if (r->classes != FAULT_CLASSES &&
			    (r->classes >> c & 1))
				put(o, "%s%s", n++ ? "," : "",
				    lnx_class_name(c));
	}
}

static void put_kinds(struct out *o, const struct lnx_fault_rule *r)
{
	uint64_t may = lnx_fault_kinds(r->action), set = r->kinds;
	char names[256];
	bool not;

	if (set == may)
		return;
	not = __builtin_popcountll(set) > __builtin_popcountll(may) / 2;
	lnx_fault_kind_names(not ? may & ~set : set, ",", names,
			     sizeof(names));
	put(o, " kind=%s%s", not ? "^" : "", names);
}

static void put_often(struct out *o, const struct lnx_fault_rule *r)
{
	char frac[8];
	size_t n;

	switch (r->often) {
	case OFTEN_RATE:
		if (r->rate > 1)
			put(o, " rate=%" PRIu64, r->rate);
		break;
	case OFTEN_INTERVAL:
		put_time(o, " interval=", r->interval_ns);
		break;
	default:
		n = (size_t)snprintf(frac, sizeof(frac), ".%04u",
				     r->ppm % 10000);
		while (n && (frac[n - 1] == '0' || frac[n - 1] == '.'))
			frac[--n] = '\0';
		put(o, " random=%u%s%%", r->ppm / 10000, frac);
	}
}

static bool draws(const struct lnx_fault_rule *r)
{
	return r->often != OFTEN_RATE || r->rate > 2 ||
	       (r->classes & (r->classes - 1));
}

static void put_rule(struct out *o, const struct lnx_fault_rule *r)
{
	unsigned i;

	put_action(o, r);
	for (i = 0; i < r->nrail; i++)
		put(o, "%s%s", i ? "," : " rail=", r->rail[i]);
	for (i = 0; i < r->nremote; i++)
		put(o, "%s%u", i ? "," : " rrail=", r->remote[i]);
	for (i = 0; i < r->npeer; i++)
		put(o, r->peer[i].is_eid ? "%s%016" PRIx64 : "%s%" PRIu64,
		    i ? "," : " peer=", r->peer[i].id);
	put_kinds(o, r);
	put_often(o, r);
	if (r->after)
		put(o, " after=%" PRIu64, r->after);
	if (r->after_ns)
		put_time(o, " after=", r->after_ns);
	if (r->for_ns)
		put_time(o, " for=", r->for_ns);
	if (r->max)
		put(o, " count=%" PRIu64, r->max);
	if (draws(r))
		put(o, " seed=%" PRIu64, r->seed);
}

size_t lnx_fault_print(const struct lnx_fault *t, unsigned rule, char *buf,
		       size_t size)
{
	struct out o = { .buf = buf, .size = size };

	put_rule(&o, &t->rule[rule]);
	return o.n;
}

size_t lnx_fault_show(const struct lnx_fault *t, char *buf, size_t size)
{
	struct out o = { .buf = buf, .size = size };
	unsigned i;

	for (i = 0; i < t->nrule; i++) {
		const struct lnx_fault_count *c = &t->rule[i].count;

		put_rule(&o, &t->rule[i]);
		put(&o, ": matched %" PRIu64 ", hit %" PRIu64, c->matched,
		    c->hit);
		if (c->missed)
			put(&o, ", missed %" PRIu64, c->missed);
		put(&o, "\n");
	}
	return o.n;
}
