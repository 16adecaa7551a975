/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers of a test, which prints its seed: LNX_SEED repeats it. */
#ifndef LNX_SEED_H
#define LNX_SEED_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t rnd_state;

/* Less than n. */
static inline uint64_t rnd(uint64_t n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (rnd_state >> 33) % n;
}

static inline void rnd_begin(void)
{
	const char *given = getenv("LNX_SEED");

	if (given)
		rnd_state = strtoull(given, NULL, 0);
	else
		cr_assert_eq(getentropy(&rnd_state, sizeof(rnd_state)), 0);
	fprintf(stderr, "seed %" PRIu64 " (repeat with LNX_SEED=%" PRIu64 ")\n",
		rnd_state, rnd_state);
}

#endif
