/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters in the target's memory, to which ones are added; most additions
 * fetch.  If nothing was done twice, each fetched value is unique.  If also
 * nothing was lost, a counter is in the end the number of additions.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#define COUNTERS	16		/* one in four is never fetched */
#define ONE_AT		0
#define RESULTS_AT	64		/* in local memory */

static struct seen fetched[COUNTERS];
static uint64_t ok_of[COUNTERS];
static unsigned *counter_of;		/* by slot */

static bool fetches(unsigned counter)
{
	return counter % 4;
}

static uint64_t *result(unsigned slot)
{
	return (uint64_t *)(local_mem + RESULTS_AT) + slot;
}

static int prepare(struct ft *ft)
{
	uint64_t one = 1;

	msg_bytes = 8;
	memcpy(local_mem + ONE_AT, &one, sizeof(one));
	counter_of = calloc(window, sizeof(*counter_of));
	return counter_of ? 0 : ft_fail(ft, "out of memory");
}

static int start(struct ft *ft, unsigned slot, fi_addr_t to)
{
	unsigned c = (unsigned)(tally.sent % COUNTERS);
	struct ft_atomic a;

	counter_of[slot] = c;
	*result(slot) = UINT64_MAX;
	ft_atomic_set(ft, &a, fetches(c) ? FT_FETCH : FT_ATOMIC, FI_UINT64,
		      FI_SUM, 8, local_mem + ONE_AT, NULL,
		      fetches(c) ? result(slot) : NULL, 1, &local_mr,
		      &target_mr, TARGET, c * 8);
	a.addr = to;
	return (int)ft_try_atomic(ft->o.ep, slot_op[slot], &a);
}

static void done(struct ft *ft, unsigned slot)
{
	unsigned c = counter_of[slot];

	(void)ft;
	delivered(8);
	tally.unique++;
	ok_of[c]++;
	if (!fetches(c))
		return;
	switch (seen_add(&fetched[c], *result(slot))) {
	case 0:
		tally.doubled++;
		wrong("counter %u gave %llu twice", c,
		      (unsigned long long)*result(slot));
		break;
	case -1:
		tally.corrupt++;
		wrong("counter %u gave %llu", c,
		      (unsigned long long)*result(slot));
	}
}

static void finish(struct ft *ft, const struct tally *theirs)
{
	uint64_t *counter = (uint64_t *)target_mem, sum;
	unsigned c;

	if (ft->rank == TARGET) {
		for (c = 0; c < COUNTERS; c++)
			tally.value[c] = counter[c];
		return;
	}
	for (c = 0; c < COUNTERS; c++) {
		sum = theirs->value[c];
		if (sum < ok_of[c]) {
			tally.unique -= ok_of[c] - sum;
			wrong("counter %u is %llu after %llu additions", c,
			      (unsigned long long)sum,
			      (unsigned long long)ok_of[c]);
		}
		/* An addition that failed may have been done, once. */
		if (sum > ok_of[c] + tally.failed) {
			tally.doubled += sum - ok_of[c] - tally.failed;
			wrong("counter %u is %llu after %llu additions", c,
			      (unsigned long long)sum,
			      (unsigned long long)ok_of[c]);
		}
		/* Every fetched value is below the sum. */
		if (fetches(c) && fetched[c].count > sum)
			wrong("counter %u gave more values than it has had",
			      c);
	}
}

const struct traffic atomics_traffic = {
	.name = "atomics", .caps = FT_ATOMIC_CAPS, .size = 8, .window = 64,
	.mem_bytes = 64 << 10, .prepare = prepare, .start = start,
	.done = done, .finish = finish,
};
