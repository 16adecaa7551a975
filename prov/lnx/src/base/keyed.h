/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers that others cannot guess, however many of them they have seen: SipHash-2-4 of one
 * number.  lnx_mix64(), which spreads hash tables, can be undone.
 */
#ifndef LNX_KEYED_H
#define LNX_KEYED_H

#include <stdint.h>

struct lnx_keyed {
	uint64_t a, b, c, d;
};

static inline uint64_t lnx_keyed_turn(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static inline void lnx_keyed_round(struct lnx_keyed *s)
{
	s->a += s->b;
	s->b = lnx_keyed_turn(s->b, 13) ^ s->a;
	s->a = lnx_keyed_turn(s->a, 32);
	s->c += s->d;
	s->d = lnx_keyed_turn(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = lnx_keyed_turn(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = lnx_keyed_turn(s->b, 17) ^ s->c;
	s->c = lnx_keyed_turn(s->c, 32);
}

static inline void lnx_keyed_word(struct lnx_keyed *s, uint64_t v)
{
	s->d ^= v;
	lnx_keyed_round(s);
	lnx_keyed_round(s);
	s->a ^= v;
}

/* Of v, with a secret of our own. */
static inline uint64_t lnx_keyed64(uint64_t secret, uint64_t v)
{
	struct lnx_keyed s = {
		.a = 0x736f6d6570736575ull ^ secret, .b = 0x646f72616e646f6dull ^ ~secret,
		.c = 0x6c7967656e657261ull ^ secret, .d = 0x7465646279746573ull ^ ~secret,
	};
	unsigned i;

	lnx_keyed_word(&s, v);
	lnx_keyed_word(&s, 8ull << 56);
	s.c ^= 0xff;
	for (i = 0; i < 4; i++)
		lnx_keyed_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
