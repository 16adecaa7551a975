/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses the text of fault rules into structs.  It is read in place; a word is a span
 * until it has been checked.
 */
#include "policy/fault_rule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/span.h"
#include "wire/hdr.h"

#define QUOTE_MAX	48	/* of a word quoted in a sentence */
#define NUMBER_MAX	1000000000u
#define ADDR_DIGITS	15	/* of an fi_addr_t: with one more it is an id */

struct parser {
	const char *text;
	size_t pos;
	size_t *at;
	char *why;
	size_t why_size;
};

enum key {
	KEY_RAIL, KEY_RRAIL, KEY_PEER, KEY_KIND, KEY_RATE, KEY_INTERVAL,
	KEY_RANDOM, KEY_AFTER, KEY_FOR, KEY_COUNT, KEY_SEED,
	KEYS
};

static const char *const keys[KEYS] = {
	[KEY_RAIL] = "rail", [KEY_RRAIL] = "rrail", [KEY_PEER] = "peer",
	[KEY_KIND] = "kind", [KEY_RATE] = "rate",
	[KEY_INTERVAL] = "interval", [KEY_RANDOM] = "random",
	[KEY_AFTER] = "after", [KEY_FOR] = "for", [KEY_COUNT] = "count",
	[KEY_SEED] = "seed",
};

static int LNX_PRINTF(3, 4) fail(struct parser *p, const char *at,
				 const char *fmt, ...)
{
	va_list ap;
	size_t i;

	if (p->at)
		*p->at = (size_t)(at - p->text);
	if (p->why_size) {
		va_start(ap, fmt);
		vsnprintf(p->why, p->why_size, fmt, ap);
		va_end(ap);
		for (i = 0; p->why[i]; i++)
			if (p->why[i] < ' ' || p->why[i] > '~')
				p->why[i] = '?';
	}
	return -EINVAL;
}

#define QUOTE(w)	lnx_span_quoted((w), QUOTE_MAX), (w).s

/* The next word: up to a blank or the end of the rule; may be empty. */
static struct lnx_span take(struct parser *p)
{
	struct lnx_span w;

	p->pos += lnx_blanks(p->text + p->pos);
	w.s = p->text + p->pos;
	for (w.len = 0; w.s[w.len] && !lnx_is_blank(w.s[w.len]); w.len++)
		if (w.s[w.len] == ';' && !lnx_joins_layers(w.s + w.len))
			break;
	p->pos += w.len;
	return w;
}

/* Cut w at the first c: returns what is before; w is what follows, or empty. */
static struct lnx_span cut(struct lnx_span *w, char c)
{
	const char *end = memchr(w->s, c, w->len);
	struct lnx_span first = *w;

	first.len = end ? (size_t)(end - w->s) : w->len;
	w->s += first.len + (end != NULL);
	w->len -= first.len + (end != NULL);
	return first;
}

/* ---- values ---- */

static int parse_number(struct parser *p, const char *key, struct lnx_span w,
			uint64_t *v)
{
	if (lnx_span_uint(w, v) && *v && *v <= NUMBER_MAX)
		return 0;
	return fail(p, w.s, "%s=%.*s: must be a whole number from 1 to %u",
		    key, QUOTE(w), NUMBER_MAX);
}

static bool has_unit(struct lnx_span w)
{
	return w.len && (w.s[w.len - 1] == 's' || w.s[w.len - 1] == 'S');
}

static int parse_time(struct parser *p, const char *key, struct lnx_span w,
		      uint64_t *ns)
{
	struct lnx_span n = w;
	uint64_t v, unit = 1;

	if (has_unit(n)) {
		n.len--;
		if (n.len && (n.s[n.len - 1] == 'm' || n.s[n.len - 1] == 'M'))
			n.len--;
		else
			unit = 1000;
	}
	if (!lnx_span_uint(n, &v) || !v || v > LNX_FAULT_MS_MAX / unit)
		return fail(p, w.s, "%s=%.*s: must be a time from 1 to %u ms, "
			    "such as 20 or 20ms or 2s", key, QUOTE(w),
			    LNX_FAULT_MS_MAX);
	*ns = v * unit * LNX_NS_PER_MS;
	return 0;
}

static int parse_after(struct parser *p, struct lnx_span w,
		       struct lnx_fault_rule *r)
{
	if (has_unit(w))
		return parse_time(p, "after", w, &r->after_ns);
	if (lnx_span_uint(w, &r->after) && r->after && r->after <= NUMBER_MAX)
		return 0;
	return fail(p, w.s, "after=%.*s: must be a number of frames from 1 to "
		    "%u, such as 10, or a time with its unit, such as 500ms "
		    "or 2s", QUOTE(w), NUMBER_MAX);
}

/* "5", "5%", "0.5%" in millionths. */
static int parse_random(struct parser *p, struct lnx_span w,
			struct lnx_fault_rule *r)
{
	struct lnx_span rest = w, whole;
	uint64_t v, frac = 0;
	bool dot;
	size_t i;

	if (rest.len && rest.s[rest.len - 1] == '%')
		rest.len--;
	dot = memchr(rest.s, '.', rest.len) != NULL;
	whole = cut(&rest, '.');
	if (!lnx_span_uint(whole, &v) || v > 100 || rest.len > 4 ||
	    (dot && !lnx_span_uint(rest, &frac)))
		goto bad;
	for (i = rest.len; i < 4; i++)
		frac *= 10;
	v = v * 10000 + frac;
	if (!v || v > FAULT_MILLION)
		goto bad;
	r->ppm = (uint32_t)v;
	return 0;
bad:
	return fail(p, w.s, "random=%.*s: must be a percentage above 0 and up "
		    "to 100, with at most four decimals, such as 5%% or 0.25%%",
		    QUOTE(w));
}

static int too_many(struct parser *p, const char *key, struct lnx_span w)
{
	return fail(p, w.s, "%s=: \"%.*s\" is one too many, there can be %d; "
		    "write another rule for the others", key, QUOTE(w),
		    LNX_FAULT_LIST);
}

static bool pattern_letter(char c)
{
	return c > ' ' && c <= '~' && !strchr(",|+\"'=", c);
}

static int parse_rail(struct parser *p, struct lnx_span w,
		      struct lnx_fault_rule *r)
{
	size_t i;

	for (i = 0; i < w.len && pattern_letter(w.s[i]); i++)
		;
	if (!w.len || i < w.len || w.len >= LNX_FAULT_NAME_MAX ||
	    (!memchr(w.s, ':', w.len) && !memchr(w.s, '*', w.len)))
		return fail(p, w.s + (i < w.len ? i : 0),
			    "rail=%.*s: must be a rail, or several separated "
			    "by ',', as logs name them: PROVIDER:DOMAIN, such "
			    "as tcp:eth0 or tcp:* for all of tcp", QUOTE(w));
	if (w.len > 4 && !strncmp(w.s, "shm:", 4))
		return fail(p, w.s, "rail=%.*s: shared memory carries no "
			    "frames; name a network rail, such as tcp:eth0",
			    QUOTE(w));
	if (r->nrail == LNX_FAULT_LIST)
		return too_many(p, "rail", w);
	memcpy(r->rail[r->nrail], w.s, w.len);
	r->rail[r->nrail++][w.len] = '\0';
	return 0;
}

static int parse_rrail(struct parser *p, struct lnx_span w,
		       struct lnx_fault_rule *r)
{
	uint64_t v;

	if (!lnx_span_uint(w, &v) || v >= UINT16_MAX)
		return fail(p, w.s, "rrail=%.*s: must be the index of a rail "
			    "in the peer's address, from 0, or several "
			    "separated by ',', or * for any", QUOTE(w));
	if (r->nremote == LNX_FAULT_LIST)
		return too_many(p, "rrail", w);
	r->remote[r->nremote++] = (unsigned)v;
	return 0;
}

static int parse_peer(struct parser *p, struct lnx_span w,
		      struct lnx_fault_rule *r)
{
	struct fault_peer peer = { .is_eid = w.len > ADDR_DIGITS };

	if (!(peer.is_eid ? lnx_span_hex64(w, &peer.id) :
			    lnx_span_uint(w, &peer.id)))
		return fail(p, w.s, "peer=%.*s: must be the 16 hex digits of "
			    "an endpoint id, as logs show it, or the number of "
			    "an fi_addr_t, or several separated by ',', or * "
			    "for any", QUOTE(w));
	if (r->npeer == LNX_FAULT_LIST)
		return too_many(p, "peer", w);
	r->peer[r->npeer++] = peer;
	return 0;
}

/* ---- kinds and classes ---- */

static const char *kind_name(unsigned k, char buf[16])
{
	const char *s;
	size_t i;

	if (k == LNX_FAULT_READ)
		return "read";
	if (k == LNX_FAULT_WRITE)
		return "write";
	s = lnx_wire_kind_name((uint8_t)k);
	if (k >= LNX_KIND_MAX || !strcmp(s, "unknown"))
		return NULL;
	for (i = 0; s[i] && i < 15; i++)
		buf[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 0x20) :
						      s[i];
	buf[i] = '\0';
	return buf;
}

uint64_t lnx_fault_kinds(enum lnx_fault_action action)
{
	uint64_t set = 0;
	char buf[16];
	unsigned k;

	for (k = 1; k < LNX_KIND_MAX; k++)
		/* Other kinds are sent without a completion. */
		if (kind_name(k, buf) && (action != LNX_FAULT_FAIL ||
					  lnx_wire_kind_sequenced((uint8_t)k)))
			set |= 1ULL << k;
	if (action == LNX_FAULT_FAIL)
		set |= 1ULL << LNX_FAULT_READ | 1ULL << LNX_FAULT_WRITE;
	return set;
}

static uint64_t kind_set(struct lnx_span w)
{
	char buf[16];
	unsigned k;

	if (lnx_span_is(w, "rts"))
		return 1ULL << LNX_KIND_RTS_MSG | 1ULL << LNX_KIND_RTS_TAG;
	for (k = 1; k <= LNX_FAULT_WRITE; k++) {
		const char *name = kind_name(k, buf);

		if (name && lnx_span_is(w, name))
			return 1ULL << k;
	}
	return 0;
}

size_t lnx_fault_kind_names(uint64_t set, const char *between, char *buf,
			    size_t size)
{
	size_t n = 0;
	char name[16];
	unsigned k;

	for (k = 1; k <= LNX_FAULT_WRITE; k++) {
		if (!(set >> k & 1))
			continue;
		n += (size_t)snprintf(n < size ? buf + n : NULL,
				      n < size ? size - n : 0, "%s%s",
				      n ? between : "", kind_name(k, name));
	}
	return n;
}

static int parse_kinds(struct parser *p, struct lnx_span list,
		       struct lnx_fault_rule *r)
{
	uint64_t may = lnx_fault_kinds(r->action), set = 0, one;
	bool not = list.len && *list.s == '^';
	struct lnx_span all = list, w;
	char names[256];

	if (not) {
		list.s++;
		list.len--;
	}
	do {
		w = cut(&list, ',');
		one = kind_set(w);
		if (!one) {
			lnx_fault_kind_names(may, ", ", names, sizeof(names));
			return fail(p, w.s, "kind=%.*s: must be a kind of "
				    "frame, or several separated by ',': %s, "
				    "or rts", QUOTE(w), names);
		}
		if (!(one & may) && r->action == LNX_FAULT_FAIL)
			return fail(p, w.s, "kind=%.*s: its send has no "
				    "completion that could fail; drop it "
				    "where it arrives", QUOTE(w));
		if (!(one & may))
			return fail(p, w.s, "kind=%.*s: no frame, but a piece "
				    "of a large transfer, which only can fail "
				    "(fail=CLASS)", QUOTE(w));
		set |= one;
	} while (list.s != all.s + all.len || list.s[-1] == ',');
	r->kinds = not ? may & ~set : set;
	if (!r->kinds)
		return fail(p, all.s, "kind=%.*s: these are all kinds; "
			    "leave one out", QUOTE(all));
	return 0;
}

static int parse_classes(struct parser *p, struct lnx_span list,
			 struct lnx_fault_rule *r)
{
	struct lnx_span all = list, w;
	char names[320];
	size_t n = 0;
	int c;

	do {
		w = cut(&list, ',');
		c = lnx_class_find(w.s, w.len);
		if (c >= 0 && (FAULT_CLASSES >> c & 1)) {
			r->classes |= 1u << c;
			continue;
		}
		if (lnx_span_is(w, "random")) {
			r->classes |= FAULT_CLASSES;
			continue;
		}
		for (c = 0; c < LNX_CLASS_COUNT && n < sizeof(names); c++)
			if (FAULT_CLASSES >> c & 1)
				n += (size_t)snprintf(names + n,
						      sizeof(names) - n, "%s, ",
						      lnx_class_name((unsigned)c));
		return fail(p, w.s, "fail=%.*s: must be %sor random", QUOTE(w),
			    names);
	} while (list.s != all.s + all.len || list.s[-1] == ',');
	return 0;
}

/* ---- words ---- */

static int parse_action(struct parser *p, struct lnx_fault_rule *r)
{
	struct lnx_span all = take(p), value = all;
	struct lnx_span name = cut(&value, '=');
	bool valued = name.len < all.len;
	int ret = 0;

	if (!all.len)
		return fail(p, all.s, "a rule is missing %s; it begins with "
			    "drop, delay=TIME or fail=CLASS",
			    *all.s ? "before ';'" : "at the end");
	if (lnx_span_is(name, "drop")) {
		if (valued)
			return fail(p, all.s, "\"%.*s\": drop has no value",
				    QUOTE(all));
		r->action = LNX_FAULT_DROP;
	} else if (lnx_span_is(name, "delay")) {
		r->action = LNX_FAULT_DELAY;
		ret = parse_time(p, "delay", value, &r->delay_ns);
	} else if (lnx_span_is(name, "fail")) {
		r->action = LNX_FAULT_FAIL;
		ret = parse_classes(p, value, r);
	} else {
		return fail(p, all.s, "\"%.*s\": a rule begins with drop, "
			    "delay=TIME or fail=CLASS", QUOTE(all));
	}
	r->kinds = lnx_fault_kinds(r->action);
	return ret;
}

/* Parse every value of a list; '*' anywhere in it means all. */
static int parse_list(struct parser *p, enum key key, struct lnx_span list,
		      struct lnx_fault_rule *r)
{
	static int (*const one[])(struct parser *p, struct lnx_span w,
				  struct lnx_fault_rule *r) = {
		[KEY_RAIL] = parse_rail, [KEY_RRAIL] = parse_rrail,
		[KEY_PEER] = parse_peer,
	};
	unsigned *const n = key == KEY_RAIL ? &r->nrail :
			    key == KEY_RRAIL ? &r->nremote : &r->npeer;
	const char *end = list.s + list.len;
	bool any = false;
	int ret;

	do {
		struct lnx_span w = cut(&list, ',');

		if (w.len == 1 && *w.s == '*') {
			any = true;
			continue;
		}
		ret = one[key](p, w, r);
		if (ret)
			return ret;
	} while (list.s != end || list.s[-1] == ',');
	if (any)
		*n = 0;
	return 0;
}

static int parse_value(struct parser *p, enum key key, struct lnx_span w,
		       struct lnx_fault_rule *r)
{
	switch (key) {
	case KEY_RAIL:
	case KEY_RRAIL:
	case KEY_PEER:
		return parse_list(p, key, w, r);
	case KEY_KIND:
		return parse_kinds(p, w, r);
	case KEY_RATE:
		return parse_number(p, keys[key], w, &r->rate);
	case KEY_INTERVAL:
		r->often = OFTEN_INTERVAL;
		return parse_time(p, keys[key], w, &r->interval_ns);
	case KEY_RANDOM:
		r->often = OFTEN_RANDOM;
		return parse_random(p, w, r);
	case KEY_AFTER:
		return parse_after(p, w, r);
	case KEY_FOR:
		return parse_time(p, keys[key], w, &r->for_ns);
	case KEY_COUNT:
		return parse_number(p, keys[key], w, &r->max);
	default:
		r->has_seed = true;
		if (lnx_span_uint(w, &r->seed))
			return 0;
		return fail(p, w.s, "seed=%.*s: must be a whole number below "
			    "2 to the 64th", QUOTE(w));
	}
}

#define KEYS_OFTEN	(1u << KEY_RATE | 1u << KEY_INTERVAL | 1u << KEY_RANDOM)

static int parse_word(struct parser *p, struct lnx_span all, unsigned *seen,
		      struct lnx_fault_rule *r)
{
	struct lnx_span value = all;
	struct lnx_span name = cut(&value, '=');
	unsigned k;

	for (k = 0; k < KEYS && !lnx_span_is(name, keys[k]); k++)
		;
	if (k == KEYS)
		return fail(p, all.s, "\"%.*s\": a word of a rule is rail=, "
			    "rrail=, peer=, kind=, rate=, interval=, random=, "
			    "after=, for=, count= or seed=, without blanks in "
			    "it; ';' begins another rule", QUOTE(all));
	if (name.len == all.len)
		return fail(p, all.s, "\"%.*s\": '=' and a value are missing, "
			    "with no blank before them", QUOTE(all));
	if (*seen >> k & 1)
		return fail(p, all.s, "\"%.*s\": %s= stands in this rule "
			    "already; once is enough", QUOTE(all), keys[k]);
	*seen |= 1u << k;
	if ((KEYS_OFTEN >> k & 1) && (*seen & KEYS_OFTEN & ~(1u << k)))
		return fail(p, all.s, "\"%.*s\": a rule has one of rate=, "
			    "interval= and random=", QUOTE(all));
	return parse_value(p, (enum key)k, value, r);
}

static int parse_rule(struct parser *p, struct lnx_fault_rule *r)
{
	unsigned seen = 0;
	int ret;

	r->rate = 1;
	ret = parse_action(p, r);
	while (!ret) {
		struct lnx_span w = take(p);

		if (!w.len)
			break;
		ret = parse_word(p, w, &seen, r);
	}
	return ret;
}

int lnx_fault_parse(const char *text, struct lnx_fault *t, size_t *at,
		    char *why, size_t why_size)
{
	struct parser p = { .text = text ? text : "", .at = at, .why = why,
			    .why_size = why ? why_size : 0 };
	int ret;

	if (strlen(p.text) >= LNX_FAULT_TEXT_MAX)
		return fail(&p, p.text + LNX_FAULT_TEXT_MAX - 1,
			    "the text is longer than %d letters",
			    LNX_FAULT_TEXT_MAX - 1);
	do {
		if (t->nrule == LNX_FAULT_RULES)
			return fail(&p, p.text + p.pos,
				    "there can be at most %d rules",
				    LNX_FAULT_RULES);
		ret = parse_rule(&p, &t->rule[t->nrule]);
		if (ret)
			return ret;
		t->nrule++;
	} while (p.text[p.pos] == ';' && p.text[p.pos++]);
	/* A word ends at a blank, at ';' or at the end. */
	return 0;
}
