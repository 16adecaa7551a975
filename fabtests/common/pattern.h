/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Message contents that both ends can compute.  Every byte depends on the seed
 * of the run, the sender, the number of the message and the position in it: a
 * message that is late, duplicated, torn or from another sender fails the
 * check.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t pattern_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Reproducible random numbers; *state is any seed. */
static inline uint64_t pattern_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return pattern_mix(*state);
}

void pattern_fill(void *buf, size_t len, uint64_t seed, unsigned sender,
		  uint64_t seq);

/* Offset of the first wrong byte, or -1. */
long long pattern_check(const void *buf, size_t len, uint64_t seed,
			unsigned sender, uint64_t seq);

/* Offset of the first byte that is not value, or -1.  It finds writes where
 * there should be none. */
long long pattern_is_filled(const void *buf, size_t len, uint8_t value);

#endif
