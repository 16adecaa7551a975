/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sets of small numbers.  See expr.h. */
#include "conf/expr.h"

#include <string.h>

static bool hex(struct lnx_span w, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 2; i < w.len; i++) {
		char c = (char)(w.s[i] | 0x20);

		if (lnx_is_digit(w.s[i]))
			*v = *v << 4 | (uint64_t)(w.s[i] - '0');
		else if (c >= 'a' && c <= 'f')
			*v = *v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	return w.len > 2 && w.len <= 10;
}

static bool number(struct lnx_span w, uint64_t *v)
{
	if (w.len > 2 && w.s[0] == '0' && (w.s[1] | 0x20) == 'x')
		return hex(w, v);
	return lnx_span_uint(w, v);
}

/* A number of a set: part of what is quoted in `all`. */
static int parse_number(struct lnx_span w, struct lnx_span all, uint16_t max,
			const char *what, uint16_t *out, struct lnx_refusal *r)
{
	uint64_t v;

	w = lnx_span_trim(w);
	if (!w.len)
		return lnx_refuse(r, w.s, "\"%.*s\": a number is missing; %s is "
				  "written like 5, * or [1,4-6,10-20/2]",
				  LNX_QUOTE(all), what);
	if (!number(w, &v) || v > max)
		return lnx_refuse(r, w.s, "\"%.*s\": %s must be a number from 0 "
				  "to %u, * for any, or numbers and ranges in "
				  "brackets, like [1,4-6,10-20/2]", LNX_QUOTE(w),
				  what, max);
	*out = (uint16_t)v;
	return 0;
}

/* Cut w at the first c: returns what is before; w is what follows.  False: no c. */
static bool cut(struct lnx_span *w, char c, struct lnx_span *first)
{
	const char *end = memchr(w->s, c, w->len);

	*first = *w;
	if (!end)
		return false;
	first->len = (size_t)(end - w->s);
	w->s += first->len + 1;
	w->len -= first->len + 1;
	return true;
}

static int parse_item(struct lnx_span w, uint16_t max, const char *what,
		      struct lnx_expr_item *item, struct lnx_refusal *r)
{
	struct lnx_span all = lnx_span_trim(w), rest = w, range, lo;
	bool strided = cut(&rest, '/', &range), ranged;
	struct lnx_span hi = range;
	int ret;

	ranged = cut(&hi, '-', &lo);
	ret = parse_number(lo, all, max, what, &item->lo, r);
	item->hi = item->lo;
	if (!ret && ranged)
		ret = parse_number(hi, all, max, what, &item->hi, r);
	if (ret)
		return ret;
	item->stride = 1;
	if (item->hi < item->lo)
		return lnx_refuse(r, all.s, "\"%.*s\" counts down; write %u-%u",
				  LNX_QUOTE(all), item->hi, item->lo);
	if (!strided)
		return 0;
	if (!ranged)
		return lnx_refuse(r, all.s, "\"%.*s\": a stride follows a range, "
				  "as in 0-20/2", LNX_QUOTE(all));
	ret = parse_number(rest, all, UINT16_MAX, "the stride", &item->stride, r);
	if (!ret && !item->stride)
		ret = lnx_refuse(r, all.s, "\"%.*s\": a stride of 0 leads from "
				 "no number to the next; the least is 1",
				 LNX_QUOTE(all));
	return ret;
}

/* ---- canonical form ---- */

/* Ends at its last number; a single number has the stride 1. */
static void tidy(struct lnx_expr_item *item)
{
	item->hi = (uint16_t)(item->hi - (item->hi - item->lo) % item->stride);
	if (item->hi == item->lo)
		item->stride = 1;
}

static bool before(const struct lnx_expr_item *a, const struct lnx_expr_item *b)
{
	if (a->lo != b->lo)
		return a->lo < b->lo;
	if (a->stride != b->stride)
		return a->stride < b->stride;
	return a->hi > b->hi;
}

static void sort(struct lnx_expr *e)
{
	struct lnx_expr_item tmp;
	unsigned i, j;

	for (i = 1; i < e->n; i++) {
		for (j = i; j && before(&e->item[j], &e->item[j - 1]); j--) {
			tmp = e->item[j];
			e->item[j] = e->item[j - 1];
			e->item[j - 1] = tmp;
		}
	}
}

/* Can b, which sorts behind a, be merged into a without other numbers getting in? */
static bool joins(const struct lnx_expr_item *a, const struct lnx_expr_item *b)
{
	if (a->stride == 1 && b->lo <= a->hi + 1)
		return b->stride == 1 || b->hi <= a->hi;
	return a->stride == b->stride && b->hi <= a->hi &&
	       (b->lo - a->lo) % a->stride == 0;
}

static void merge(struct lnx_expr *e)
{
	unsigned i, n = 0;

	for (i = 1; i < e->n; i++) {
		if (joins(&e->item[n], &e->item[i])) {
			e->item[n].hi = LNX_MAX(e->item[n].hi, e->item[i].hi);
			continue;
		}
		e->item[++n] = e->item[i];
	}
	memset(&e->item[n + 1], 0, (e->n - n - 1) * sizeof(e->item[0]));
	e->n = (uint16_t)(n + 1);
}

/* The least number of the set that is not below `from`; false: there is none. */
static bool next_of(const struct lnx_expr *e, uint32_t from, uint32_t *v)
{
	bool found = false;
	unsigned i;

	for (i = 0; i < e->n; i++) {
		const struct lnx_expr_item *item = &e->item[i];
		uint32_t at = item->lo;

		if (from > at)
			at += (from - at + item->stride - 1u) / item->stride * item->stride;
		if (at <= item->hi && (!found || at < *v)) {
			*v = at;
			found = true;
		}
	}
	return found;
}

/*
 * Runs of numbers that are as far apart, in their order: so the same set is written in one way,
 * [1,3,5] as [1-5/2].  A set that would need too many items stays as it is.
 */
static void unify(struct lnx_expr *e)
{
	struct lnx_expr u = { 0 };
	uint32_t v, w = 0, last, step;
	unsigned n;
	bool more;

	if (e->n == 1 && (e->item[0].stride == 1 ||
			  (e->item[0].hi - e->item[0].lo) / e->item[0].stride >= 2))
		return;
	for (more = next_of(e, 0, &v); more; v = w) {
		if (u.n == LNX_EXPR_ITEMS)
			return;
		last = v;
		more = next_of(e, v + 1, &w);
		step = more ? w - v : 0;
		for (n = 1; more && w - last == step; n++) {
			last = w;
			more = next_of(e, w + 1, &w);
		}
		/* Two are a run only without a gap. */
		if (n < 3 && step != 1) {
			last = v;
			step = 1;
			more = next_of(e, v + 1, &w);
		}
		u.item[u.n++] = (struct lnx_expr_item){
			(uint16_t)v, (uint16_t)last, (uint16_t)(last == v ? 1 : step),
		};
	}
	*e = u;
}

struct lnx_expr lnx_expr_range(uint16_t lo, uint16_t hi, uint16_t max)
{
	struct lnx_expr e = { 0 };

	if (lo || hi != max) {
		e.n = 1;
		e.item[0] = (struct lnx_expr_item){ lo, hi, 1 };
	}
	return e;
}

static int parse_list(struct lnx_span w, uint16_t max, const char *what,
		      struct lnx_expr *out, struct lnx_refusal *r)
{
	struct lnx_span rest = w, one;
	bool more;
	int ret;

	do {
		more = cut(&rest, ',', &one);
		if (out->n == LNX_EXPR_ITEMS)
			return lnx_refuse(r, one.s, "\"%.*s\" is one too many, "
					  "brackets can have %d numbers and "
					  "ranges", LNX_QUOTE(one),
					  LNX_EXPR_ITEMS);
		ret = parse_item(one, max, what, &out->item[out->n], r);
		if (ret)
			return ret;
		tidy(&out->item[out->n++]);
	} while (more);
	sort(out);
	merge(out);
	unify(out);
	if (out->n == 1 && out->item[0].stride == 1 && !out->item[0].lo &&
	    out->item[0].hi == max)
		memset(out, 0, sizeof(*out));
	return 0;
}

int lnx_expr_parse(struct lnx_span w, uint16_t max, const char *what,
		   struct lnx_expr *out, struct lnx_refusal *r)
{
	struct lnx_span in = w;
	uint16_t v;
	int ret;

	memset(out, 0, sizeof(*out));
	if (w.len == 1 && *w.s == '*')
		return 0;
	if (w.len && *w.s == '[') {
		if (w.s[w.len - 1] != ']')
			return lnx_refuse(r, w.s, "\"%.*s\": ']' is missing",
					  LNX_QUOTE(w));
		in.s++;
		in.len -= 2;
		return parse_list(in, max, what, out, r);
	}
	/* parse_number would allow blanks around it. */
	if (lnx_span_trim(w).len != w.len)
		return lnx_refuse(r, w.s, "\"%.*s\": blanks are allowed in "
				  "brackets only", LNX_QUOTE(w));
	ret = parse_number(w, w, max, what, &v, r);
	if (!ret)
		*out = (struct lnx_expr){ .n = 1, .item = { { v, v, 1 } } };
	return ret;
}

void lnx_expr_print(const struct lnx_expr *e, struct lnx_out *o)
{
	bool list = e->n > 1 || (e->n && e->item[0].lo != e->item[0].hi);
	unsigned i;

	if (!e->n)
		lnx_out(o, "*");
	if (list)
		lnx_out(o, "[");
	for (i = 0; i < e->n; i++) {
		const struct lnx_expr_item *item = &e->item[i];

		lnx_out(o, "%s%u", i ? "," : "", item->lo);
		if (item->hi != item->lo)
			lnx_out(o, "-%u", item->hi);
		if (item->stride != 1)
			lnx_out(o, "/%u", item->stride);
	}
	if (list)
		lnx_out(o, "]");
}
