/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of small numbers as users write them in patterns for NIDs: an octet, the number
 * of a net, a port.
 *
 *	expr ::= number | '*' | '[' item (',' item)* ']'
 *	item ::= number | lo '-' hi | lo '-' hi '/' stride
 *
 * A number is decimal, or hexadecimal behind 0x.  Blanks are allowed inside the
 * brackets.  lo-hi/stride is lo, lo + stride, lo + 2 * stride ... up to hi.
 */
#ifndef LNX_EXPR_H
#define LNX_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "base/refuse.h"
#include "base/span.h"

#define LNX_EXPR_ITEMS	8

struct lnx_expr_item {
	uint16_t lo, hi;		/* hi is in the set */
	uint16_t stride;		/* at least 1; 1 if lo is hi */
};

/* As lnx_expr_parse makes them, equal sets have equal bytes, unless they need more than
 * LNX_EXPR_ITEMS runs of numbers that are as far apart. */
struct lnx_expr {
	uint16_t n;			/* 0: any number */
	struct lnx_expr_item item[LNX_EXPR_ITEMS];
};

/*
 * Read all of w, part of r->text; numbers up to max are allowed.  what is the noun of
 * error messages ("an octet").  The items of the result are sorted, and are runs of
 * numbers that are as far apart.  0, or -EINVAL with r filled.
 */
int lnx_expr_parse(struct lnx_span w, uint16_t max, const char *what,
		   struct lnx_expr *out, struct lnx_refusal *r);

/* The set of lo to hi: any number if that is 0 to max. */
struct lnx_expr lnx_expr_range(uint16_t lo, uint16_t hi, uint16_t max);

/* Canonical text, which parses to the same expr. */
void lnx_expr_print(const struct lnx_expr *e, struct lnx_out *o);

static inline bool lnx_expr_any(const struct lnx_expr *e)
{
	return !e->n;
}

/* Is it one number? */
static inline bool lnx_expr_one(const struct lnx_expr *e)
{
	return e->n == 1 && e->item[0].lo == e->item[0].hi;
}

static inline bool lnx_expr_has(const struct lnx_expr *e, uint16_t v)
{
	unsigned i;

	for (i = 0; i < e->n; i++)
		if (v >= e->item[i].lo && v <= e->item[i].hi &&
		    (e->item[i].stride == 1 ||
		     (v - e->item[i].lo) % e->item[i].stride == 0))
			return true;
	return !e->n;
}

#endif
