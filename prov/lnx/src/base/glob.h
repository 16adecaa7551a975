/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Patterns that users write for names. */
#ifndef LNX_GLOB_H
#define LNX_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* '*': any letters, '?': one letter.  Backtracks to the last star only. */
static inline bool lnx_glob(const char *p, const char *s)
{
	const char *star = NULL, *from = s;

	while (*s) {
		if (*p == '*') {
			star = ++p;
			from = s;
		} else if (*p == '?' || *p == *s) {
			p++;
			s++;
		} else if (star) {
			p = star;
			s = ++from;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

#endif
