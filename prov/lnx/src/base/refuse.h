/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why a text of a user was refused: where, and a sentence that says what is wrong and
 * what would be right.
 */
#ifndef LNX_REFUSE_H
#define LNX_REFUSE_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/span.h"

#define LNX_REFUSAL_BYTES	512
#define LNX_REFUSAL_QUOTE	48	/* of a word quoted in a sentence */

struct lnx_refusal {
	const char *text;		/* what `at` counts from; set by parsers */
	size_t at;			/* offset of the error in it */
	char why[LNX_REFUSAL_BYTES];	/* printable ASCII, ended by NUL */
};

/* The arguments of a "%.*s" that quotes a span. */
#define LNX_QUOTE(w)	lnx_span_quoted((w), LNX_REFUSAL_QUOTE), (w).s

/*
 * Fill r, which must not be NULL; at: a pointer into r->text, or NULL to keep r->at.
 * Unprintable bytes of what is quoted become '?', and a longer sentence is cut.
 * Returns -EINVAL.
 */
static inline int LNX_PRINTF(3, 4) lnx_refuse(struct lnx_refusal *r,
					      const char *at, const char *fmt, ...)
{
	va_list ap;
	size_t i;

	if (at)
		r->at = (size_t)(at - r->text);
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	for (i = 0; r->why[i]; i++)
		if (r->why[i] < ' ' || r->why[i] > '~')
			r->why[i] = '?';
	return -EINVAL;
}

#endif
