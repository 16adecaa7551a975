/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fault rules in canonical form, and what they have hit. */
#include "policy/fault_rule.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/out.h"

static void put_time(struct lnx_out *o, const char *before, uint64_t ns)
{
	uint64_t ms = ns / LNX_NS_PER_MS;

	if (ms % 1000)
		lnx_out(o, "%s%" PRIu64 "ms", before, ms);
	else
		lnx_out(o, "%s%" PRIu64 "s", before, ms / 1000);
}

static void put_action(struct lnx_out *o, const struct lnx_fault_rule *r)
{
	unsigned c, n = 0;

	switch (r->action) {
	case LNX_FAULT_DROP:
		lnx_out(o, "drop");
		break;
	case LNX_FAULT_DELAY:
		put_time(o, "delay=", r->delay_ns);
		break;
	default:
		lnx_out(o, "fail=");
		if (r->classes == FAULT_CLASSES)
			lnx_out(o, "random");
		for (c = 0; c < LNX_CLASS_COUNT; c++)
			if (r->classes != FAULT_CLASSES &&
			    (r->classes >> c & 1))
				lnx_out(o, "%s%s", n++ ? "," : "",
					lnx_class_name(c));
	}
}

static void put_kinds(struct lnx_out *o, const struct lnx_fault_rule *r)
{
	uint64_t may = lnx_fault_kinds(r->action), set = r->kinds;
	char names[256];
	bool not;

	if (set == may)
		return;
	not = __builtin_popcountll(set) > __builtin_popcountll(may) / 2;
	lnx_fault_kind_names(not ? may & ~set : set, ",", names,
			     sizeof(names));
	lnx_out(o, " kind=%s%s", not ? "^" : "", names);
}

static void put_often(struct lnx_out *o, const struct lnx_fault_rule *r)
{
	char frac[8];
	size_t n;

	switch (r->often) {
	case OFTEN_RATE:
		if (r->rate > 1)
			lnx_out(o, " rate=%" PRIu64, r->rate);
		break;
	case OFTEN_INTERVAL:
		put_time(o, " interval=", r->interval_ns);
		break;
	default:
		n = (size_t)snprintf(frac, sizeof(frac), ".%04u",
				     r->ppm % 10000);
		while (n && (frac[n - 1] == '0' || frac[n - 1] == '.'))
			frac[--n] = '\0';
		lnx_out(o, " random=%u%s%%", r->ppm / 10000, frac);
	}
}

static bool draws(const struct lnx_fault_rule *r)
{
	return r->often != OFTEN_RATE || r->rate > 2 ||
	       (r->classes & (r->classes - 1));
}

static void put_rule(struct lnx_out *o, const struct lnx_fault_rule *r)
{
	unsigned i;

	put_action(o, r);
	for (i = 0; i < r->nrail; i++)
		lnx_out(o, "%s%s", i ? "," : " rail=", r->rail[i]);
	for (i = 0; i < r->nremote; i++)
		lnx_out(o, "%s%u", i ? "," : " rrail=", r->remote[i]);
	for (i = 0; i < r->npeer; i++)
		lnx_out(o, r->peer[i].is_eid ? "%s%016" PRIx64 : "%s%" PRIu64,
			i ? "," : " peer=", r->peer[i].id);
	put_kinds(o, r);
	put_often(o, r);
	if (r->after)
		lnx_out(o, " after=%" PRIu64, r->after);
	if (r->after_ns)
		put_time(o, " after=", r->after_ns);
	if (r->for_ns)
		put_time(o, " for=", r->for_ns);
	if (r->max)
		lnx_out(o, " count=%" PRIu64, r->max);
	if (draws(r))
		lnx_out(o, " seed=%" PRIu64, r->seed);
}

size_t lnx_fault_print(const struct lnx_fault *t, unsigned rule, char *buf,
		       size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	put_rule(&o, &t->rule[rule]);
	return o.n;
}
