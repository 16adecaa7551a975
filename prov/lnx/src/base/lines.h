/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory for objects whose members are laid out by cache lines. */
#ifndef LNX_LINES_H
#define LNX_LINES_H

#include <stdlib.h>
#include <string.h>

#define LNX_LINE	64u

/* Zeroed, aligned to a cache line; for free().  NULL when memory is short. */
static inline void *lnx_lines_get(size_t size)
{
	size_t whole = (size + LNX_LINE - 1) & ~(size_t)(LNX_LINE - 1);
	void *p = aligned_alloc(LNX_LINE, whole);

	return p ? memset(p, 0, whole) : NULL;
}

#endif
