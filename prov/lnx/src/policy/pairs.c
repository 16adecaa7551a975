/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which pairs of rails lead to a peer.  See pairs.h. */
#include "policy/pairs.h"

#include <stdbool.h>

/* Local rails (bits) that reach a remote rail: of its group, or of another one. */
static uint64_t partners(const struct lnx_pair_rail *local, unsigned nlocal,
			 const struct lnx_pair_rail *remote, bool same)
{
	uint64_t set = 0;
	unsigned l;

	for (l = 0; l < nlocal; l++)
		if (local[l].prov == remote->prov &&
		    (local[l].group == remote->group) == same)
			set |= 1ull << l;
	return set;
}

/* The i-th member of a set that has more than i. */
static unsigned member(uint64_t set, unsigned i)
{
	while (i--)
		set &= set - 1;
	return (unsigned)__builtin_ctzll(set);
}

unsigned lnx_pairs_find(const struct lnx_pair_rail *local, unsigned nlocal,
			  const struct lnx_pair_rail *remote,
			  unsigned nremote, struct lnx_pair *pair,
			  unsigned max)
{
	uint64_t set[LNX_SELECT_RAILS];
	unsigned rank[LNX_SELECT_RAILS];
	unsigned same, turn, r, q, n = 0;

	/* Pairs of one group first; in each round every remote rail once. */
	for (same = 2; same-- > 0;) {
		for (r = 0; r < nremote; r++) {
			set[r] = partners(local, nlocal, &remote[r], same == 1);
			/* Remote rails with the same partners take different ones. */
			for (rank[r] = q = 0; q < r; q++)
				rank[r] += set[q] == set[r];
		}
		for (turn = 0; turn < nlocal; turn++) {
			for (r = 0; r < nremote && n < max; r++) {
				unsigned m = (unsigned)
					__builtin_popcountll(set[r]);

				if (turn >= m)
					continue;
				pair[n].local = member(set[r],
						       (rank[r] + turn) % m);
				pair[n].remote = r;
				n++;
			}
		}
	}
	return n;
}
