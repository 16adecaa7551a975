/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "policy/select.h"

#include <stdbool.h>

unsigned lnx_select_pairs(const struct lnx_select_rail *local, unsigned nlocal,
			  const struct lnx_select_rail *remote,
			  unsigned nremote, struct lnx_select_pair *pair,
			  unsigned max)
{
	unsigned same, turn, r, n = 0;

	if (!nlocal)
		return 0;
	/* Pairs of one group first; in each round every remote rail once. */
	for (same = 2; same-- > 0;) {
		for (turn = 0; turn < nlocal; turn++) {
			for (r = 0; r < nremote && n < max; r++) {
				unsigned l = (r + turn) % nlocal;
				bool group = local[l].group == remote[r].group;

				if (local[l].prov != remote[r].prov ||
				    group != (same == 1))
					continue;
				pair[n].local = l;
				pair[n].remote = r;
				n++;
			}
		}
	}
	return n;
}
