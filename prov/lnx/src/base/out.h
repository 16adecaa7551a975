/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Text into memory that may be too small, counted as snprintf does. */
#ifndef LNX_OUT_H
#define LNX_OUT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

struct lnx_out {
	char *buf;			/* size bytes; may be NULL if size is 0 */
	size_t size;
	size_t n;			/* length of the whole text, without NUL */
};

static inline void LNX_PRINTF(2, 3) lnx_out(struct lnx_out *o, const char *fmt,
					    ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vsnprintf(o->n < o->size ? o->buf + o->n : NULL,
		      o->n < o->size ? o->size - o->n : 0, fmt, ap);
	va_end(ap);
	o->n += r > 0 ? (size_t)r : 0;
}

/* The same of n bytes without NUL: much faster, for long texts. */
static inline void lnx_out_bytes(struct lnx_out *o, const char *bytes, size_t n)
{
	if (o->n < o->size) {
		size_t fits = LNX_MIN(n, o->size - o->n - 1);

		memcpy(o->buf + o->n, bytes, fits);
		o->buf[o->n + fits] = '\0';
	}
	o->n += n;
}

#endif
