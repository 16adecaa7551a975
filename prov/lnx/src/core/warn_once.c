/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Warnings that are given once per process.  See warn_once.h. */
#include "core/warn_once.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "fi.h"

#define SAID_MAX	64	/* beyond that the oldest may be repeated */

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said[SAID_MAX];
static unsigned nsaid;
static bool aloud;			/* constant after loading */

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

void lnx_warn_once(bool set, const char *fmt, ...)
{
	static const char name[] = "lnx: ";
	char line[912], *sentence = line + sizeof(name) - 1;
	size_t len;
	va_list ap;

	memcpy(line, name, sizeof(name));
	va_start(ap, fmt);
	/* Room for the newline. */
	vsnprintf(sentence, sizeof(line) - sizeof(name), fmt, ap);
	va_end(ap);
	if (said_before(sentence))
		return;
	LNX_WARN(FI_LOG_FABRIC, "%s\n", sentence);
	if (!set || !aloud ||
	    fi_log_enabled(&lnx_prov, FI_LOG_WARN, FI_LOG_FABRIC))
		return;
	len = strlen(line);
	line[len++] = '\n';
	lnx_say(line, len);
}

void lnx_warn_aloud(bool on)
{
	aloud = on;
}

const char *lnx_warn_printable(const char *text, size_t max, char *buf, size_t size)
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

void lnx_warn_once_fini(void)
{
	pthread_mutex_lock(&said_lock);
	nsaid = 0;
	aloud = false;
	pthread_mutex_unlock(&said_lock);
}
