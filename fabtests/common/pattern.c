/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Computes and checks message contents. */
#include "pattern.h"

#include <string.h>

static uint64_t base(uint64_t seed, unsigned sender, uint64_t seq)
{
	return pattern_mix(seed + 0x9e3779b97f4a7c15ULL * (sender + 1)) ^
	       pattern_mix(seq + 0x1234567ULL);
}

/* One multiplication a word: checking must cost less than what is checked. */
static uint64_t word(uint64_t b, size_t i)
{
	uint64_t x = (b + i) * 0x9e3779b97f4a7c15ULL;

	return x ^ (x >> 29);
}

void pattern_fill(void *buf, size_t len, uint64_t seed, unsigned sender,
		  uint64_t seq)
{
	uint64_t b = base(seed, sender, seq), w;
	size_t i, n = len / 8;
	char *p = buf;

	for (i = 0; i < n; i++) {
		w = word(b, i);
		memcpy(p + i * 8, &w, 8);
	}
	if (len % 8) {
		w = word(b, n);
		memcpy(p + n * 8, &w, len % 8);
	}
}

static long long first_diff(const void *buf, const void *want, size_t len)
{
	const unsigned char *a = buf, *b = want;
	size_t i;

	for (i = 0; i < len; i++)
		if (a[i] != b[i])
			return (long long)i;
	return -1;
}

long long pattern_check(const void *buf, size_t len, uint64_t seed,
			unsigned sender, uint64_t seq)
{
	uint64_t b = base(seed, sender, seq), w;
	size_t i, n = len / 8;
	const char *p = buf;
	long long off;

	for (i = 0; i < n; i++) {
		w = word(b, i);
		if (memcmp(p + i * 8, &w, 8))
			return (long long)(i * 8) +
			       first_diff(p + i * 8, &w, 8);
	}
	w = word(b, n);
	off = first_diff(p + n * 8, &w, len % 8);
	return off < 0 ? -1 : off + (long long)(n * 8);
}

long long pattern_is_filled(const void *buf, size_t len, uint8_t value)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != value)
			return (long long)i;
	return -1;
}
