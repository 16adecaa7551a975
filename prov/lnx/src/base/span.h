/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pieces of a text that is read in place: words of users, which are neither copied nor
 * changed until they have been checked.
 *
 * No locks, nothing is allocated.  Blanks and digits are those of ASCII whatever the
 * locale: a text means the same in every process.
 */
#ifndef LNX_SPAN_H
#define LNX_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

/* Part of the text and valid as long as that; no NUL at its end. */
struct lnx_span {
	const char *s;
	size_t len;			/* bytes; 0: empty, and s is its position */
};

/* At a ';': is it part of a provider's name, as in tcp;ofi_rxm?  Others end a part of a list. */
static inline bool lnx_joins_layers(const char *s)
{
	return !strncasecmp(s, ";ofi_", 5);
}

/* Does c separate words?  The NUL at the end of a text does not. */
static inline bool lnx_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Is c one of 0 to 9? */
static inline bool lnx_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The number of blanks at the start of s; s ends with a NUL. */
static inline size_t lnx_blanks(const char *s)
{
	size_t n;

	for (n = 0; lnx_is_blank(s[n]); n++)
		;
	return n;
}

/* Is w exactly this word, in small or capital letters? */
static inline bool lnx_span_is(struct lnx_span w, const char *word)
{
	return strlen(word) == w.len && !strncasecmp(w.s, word, w.len);
}

/* w without the blanks at both ends. */
static inline struct lnx_span lnx_span_trim(struct lnx_span w)
{
	while (w.len && lnx_is_blank(w.s[0]))
		w.s++, w.len--;
	while (w.len && lnx_is_blank(w.s[w.len - 1]))
		w.len--;
	return w;
}

/* The precision of a "%.*s" that quotes w in a sentence: at most max bytes. */
static inline int lnx_span_quoted(struct lnx_span w, size_t max)
{
	return (int)LNX_MIN(w.len, max);
}

/*
 * Read all of w as a whole decimal number: digits only, below 2 to the 64th.  False
 * otherwise, also if it is empty; then *v is undefined.
 */
static inline bool lnx_span_uint(struct lnx_span w, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < w.len; i++)
		if (!lnx_is_digit(w.s[i]) ||
		    __builtin_mul_overflow(*v, 10, v) ||
		    __builtin_add_overflow(*v, (uint64_t)(w.s[i] - '0'), v))
			return false;
	return w.len > 0;
}

/*
 * Read all of w as 16 hex digits, small or capital ones, the form of an endpoint id.
 * False otherwise; then *v is undefined.
 */
static inline bool lnx_span_hex64(struct lnx_span w, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < w.len; i++) {
		char c = (char)(w.s[i] | 0x20);

		if (lnx_is_digit(w.s[i]))
			*v = *v << 4 | (uint64_t)(w.s[i] - '0');
		else if (c >= 'a' && c <= 'f')
			*v = *v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	return w.len == 16;
}

#endif
