/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Health settings, made from the parameters.  See plan.h. */
#include "policy/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

#define WHY_BYTES	512
#define QUOTE_BYTES	40		/* of a word quoted in a sentence */

#define CLASSES		"FI_LNX_HEALTH_SENSITIVITY_CLASSES"

uint64_t lnx_plan_rail_ms(uint64_t transaction_ms, uint64_t retries,
			  uint64_t min_ms)
{
	if (!transaction_ms)
		return 0;
	return LNX_MAX((transaction_ms - 1) / (retries + 1), min_ms);
}

/* ---- sensitivities by class ---- */

struct word {
	const char *s;
	size_t len;
};

static struct word trimmed(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct word){ s, (size_t)(end - s) };
}

static const char *quoted(char buf[QUOTE_BYTES], struct word w)
{
	size_t i, n = LNX_MIN(w.len, (size_t)QUOTE_BYTES - 4);

	for (i = 0; i < n; i++)
		buf[i] = w.s[i] >= ' ' && w.s[i] <= '~' ? w.s[i] : '?';
	memcpy(buf + n, w.len > n ? "..." : "", w.len > n ? 4 : 1);
	return buf;
}

static void list_classes(char *buf, size_t size)
{
	size_t n = 0;
	int i, r;

	for (i = LNX_CLASS_OK + 1; i < LNX_CLASS_COUNT && n < size; i++) {
		r = snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
			     lnx_class_name((unsigned)i));
		n += r > 0 ? (size_t)r : 0;
	}
}

static bool number(struct word w, unsigned *v)
{
	size_t i;

	if (!w.len || w.len > 4)
		return false;
	for (*v = 0, i = 0; i < w.len; i++) {
		if (w.s[i] < '0' || w.s[i] > '9')
			return false;
		*v = *v * 10 + (unsigned)(w.s[i] - '0');
	}
	return *v <= LNX_HEALTH_MAX;
}

/* The word for what is not set, in files and requests, which have no empty values. */
static bool no_classes(const char *text)
{
	struct word w = trimmed(text, text + strlen(text));

	return w.len == 4 && !strncasecmp(w.s, "none", 4);
}

int lnx_plan_classes(const char *text, uint16_t step[LNX_CLASS_COUNT],
		     char *why, size_t why_size)
{
	uint16_t given[LNX_CLASS_COUNT] = { 0 };
	unsigned seen = 0, v;
	char q[QUOTE_BYTES], list[256];
	const char *s = text, *end, *eq;
	struct word item, name;
	int class, i;

	if (no_classes(text))
		return 0;
	for (;; s = end + 1) {
		end = s + strcspn(s, ",");
		item = trimmed(s, end);
		eq = memchr(item.s, '=', item.len);
		if (!eq) {
			snprintf(why, why_size, "\"%s\" is not of the form "
				 "class=step", quoted(q, item));
			return -EINVAL;
		}
		name = trimmed(item.s, eq);
		class = lnx_class_find(name.s, name.len);
		if (class <= LNX_CLASS_OK) {
			list_classes(list, sizeof(list));
			snprintf(why, why_size, "there is no class \"%s\"; "
				 "the classes are %s", quoted(q, name), list);
			return -EINVAL;
		}
		if (seen & (1u << class)) {
			snprintf(why, why_size, "%s is there twice",
				 lnx_class_name((unsigned)class));
			return -EINVAL;
		}
		item = trimmed(eq + 1, item.s + item.len);
		if (!number(item, &v)) {
			snprintf(why, why_size, "%s=\"%s\": the step must be a "
				 "whole number from 0 to %d",
				 lnx_class_name((unsigned)class),
				 quoted(q, item), LNX_HEALTH_MAX);
			return -EINVAL;
		}
		seen |= 1u << class;
		given[class] = (uint16_t)v;
		if (!*end)
			break;
	}
	for (i = 0; i < LNX_CLASS_COUNT; i++)
		if (seen & (1u << i))
			step[i] = given[i];
	return 0;
}

/* ---- parameters that must fit together ---- */

enum problem {
	NONE,
	BAD_CLASSES,			/* their text */
	USELESS_CLASSES,		/* with health off */
	RETRY_WITHOUT_HEALTH,
	MIN_TOO_LONG,			/* the tries do not fit */
};

/* The longest that a try may take for all to fit into the transaction's timeout. */
static uint64_t longest_try(const struct lnx_conf *c)
{
	return LNX_MAX((LNX_MAX(c->transaction_timeout, 1ull) - 1) /
		       (c->retry_count + 1), 1ull);
}

static enum problem look(const struct lnx_conf *c, char *why, size_t size)
{
	uint16_t step[LNX_CLASS_COUNT];
	char half[WHY_BYTES - 100];

	if (c->health_sensitivity_classes && !no_classes(c->health_sensitivity_classes)) {
		if (lnx_plan_classes(c->health_sensitivity_classes, step, half,
				     sizeof(half))) {
			snprintf(why, size, CLASSES ": %s", half);
			return BAD_CLASSES;
		}
		if (!c->health_sensitivity) {
			snprintf(why, size, CLASSES " means nothing while "
				 "FI_LNX_HEALTH_SENSITIVITY is 0, which "
				 "switches health off");
			return USELESS_CLASSES;
		}
	}
	if (c->retry_count && !c->health_sensitivity) {
		snprintf(why, size, "FI_LNX_RETRY_COUNT=%" PRIu64 ": must be 0 "
			 "while FI_LNX_HEALTH_SENSITIVITY is 0, which switches "
			 "health off", c->retry_count);
		return RETRY_WITHOUT_HEALTH;
	}
	/* Not the count of tries: with a long try no count may be small enough. */
	if (c->rail_timeout_min > longest_try(c)) {
		snprintf(why, size, "FI_LNX_RAIL_TIMEOUT_MIN=%" PRIu64 ": must "
			 "be at most %" PRIu64 ", because the first try and "
			 "FI_LNX_RETRY_COUNT=%" PRIu64 " more share %" PRIu64
			 " ms (FI_LNX_TRANSACTION_TIMEOUT)",
			 c->rail_timeout_min, longest_try(c), c->retry_count,
			 c->transaction_timeout);
		return MIN_TOO_LONG;
	}
	return NONE;
}

int lnx_plan_check(const struct lnx_conf *c, char *why, size_t why_size)
{
	return look(c, why, why_size) == NONE ? 0 : -EINVAL;
}

int lnx_plan_mend(struct lnx_conf *c, bool retry_given,
		  void (*warn)(void *arg, const char *sentence), void *arg)
{
	char why[WHY_BYTES + 64];
	int warnings = 0;
	enum problem p;
	size_t n;

	if (!c->health_sensitivity && !retry_given)
		c->retry_count = 0;
	while ((p = look(c, why, WHY_BYTES)) != NONE) {
		n = strlen(why);
		switch (p) {
		case BAD_CLASSES:
		case USELESS_CLASSES:
			c->health_sensitivity_classes = NULL;
			snprintf(why + n, sizeof(why) - n, "; ignored");
			break;
		case RETRY_WITHOUT_HEALTH:
			c->retry_count = 0;
			snprintf(why + n, sizeof(why) - n, "; using 0");
			break;
		default:
			c->rail_timeout_min = longest_try(c);
			snprintf(why + n, sizeof(why) - n, "; using %" PRIu64,
				 c->rail_timeout_min);
			break;
		}
		warnings++;
		if (warn)
			warn(arg, why);
	}
	return warnings;
}

void lnx_plan_make(struct lnx_health_plan *plan, const struct lnx_conf *c)
{
	char why[WHY_BYTES];
	unsigned i;

	for (i = 0; i < LNX_CLASS_COUNT; i++)
		plan->step[i] = (uint16_t)LNX_MIN(c->health_sensitivity,
						  (uint64_t)LNX_HEALTH_MAX);
	if (c->health_sensitivity && c->health_sensitivity_classes)
		(void)lnx_plan_classes(c->health_sensitivity_classes,
				       plan->step, why, sizeof(why));
	plan->retries = (uint16_t)LNX_MIN(c->retry_count, (uint64_t)UINT16_MAX);
	plan->transaction_ns = c->transaction_timeout * LNX_NS_PER_MS;
	plan->rail_min_ns = c->rail_timeout_min * LNX_NS_PER_MS;
	plan->rail_ns = lnx_plan_rail_ms(c->transaction_timeout, c->retry_count,
					 c->rail_timeout_min) * LNX_NS_PER_MS;
	/* If they contradict each other, the longer pause is used. */
	plan->first_ns = c->recovery_ping_interval * LNX_NS_PER_MS;
	plan->max_ns = LNX_MAX(c->max_recovery_ping_interval * LNX_NS_PER_S,
			       plan->first_ns);
	plan->limit_ns = c->recovery_limit * LNX_NS_PER_S;
	plan->spare_ns = LNX_MAX(c->spare_ping_interval * LNX_NS_PER_MS,
				 plan->first_ns);
	plan->hold_ns = c->hold_down * LNX_NS_PER_MS;
	plan->hold_max_ns = LNX_MAX(c->hold_down_max * LNX_NS_PER_MS,
				    plan->hold_ns);
	plan->window_ns = c->flap_window * LNX_NS_PER_MS;
	plan->ramp_ns = c->ramp_time * LNX_NS_PER_MS;
}
