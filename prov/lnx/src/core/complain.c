/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See complain.h. */
#include "core/complain.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fi.h"

#define SAID_MAX	64	/* beyond that the oldest may be said again */

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said[SAID_MAX];
static unsigned nsaid;

static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
	return lnx_mix64(h);
}

static bool said_before(const char *sentence)
{
	uint64_t h = hash(sentence);
	bool found = false;
	unsigned i;

	pthread_mutex_lock(&said_lock);
	for (i = 0; i < LNX_MIN(nsaid, (unsigned)SAID_MAX); i++)
		found |= said[i] == h;
	if (!found)
		said[nsaid++ % SAID_MAX] = h;
	pthread_mutex_unlock(&said_lock);
	return found;
}

void lnx_complain(const char *fmt, ...)
{
	char sentence[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	if (!said_before(sentence))
		LNX_WARN(FI_LOG_FABRIC, "%s\n", sentence);
}

const char *lnx_printable(const char *text, size_t max, char *buf, size_t size)
{
	static const char dots[] = "...";
	size_t n = strnlen(text, max), i;
	bool cut = n + 1 > size;

	if (cut)
		n = size - sizeof(dots);
	for (i = 0; i < n; i++)
		buf[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	memcpy(buf + n, cut ? dots : "", cut ? sizeof(dots) : 1);
	return buf;
}

void lnx_complain_fini(void)
{
	pthread_mutex_lock(&said_lock);
	nsaid = 0;
	pthread_mutex_unlock(&said_lock);
}
