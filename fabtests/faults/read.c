/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads of memory that both sides can compute.  After a read its buffer is
 * filled and left alone for a while before it is used again: an abandoned read
 * that arrives late changes it.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#define PLACES	64			/* in the target's memory */
#define MAX_READ (1 << 20)
#define RESTS	4			/* buffers for each slot, used in turn */
#define FILLING	0x5a5a5a5a5a5a5a5aULL

static unsigned *turn;			/* of the RESTS buffers of a slot */
static uint64_t *asked;			/* place that is read into each slot */
static uint64_t rng;

static unsigned char *buffer(unsigned slot)
{
	return local_mem + (slot * RESTS + turn[slot]) * msg_bytes;
}

static void fill(void *buf)
{
	uint64_t w = FILLING, *p = buf;
	size_t i;

	for (i = 0; i < msg_bytes / 8; i++)
		p[i] = w;
}

static bool is_filled(const void *buf)
{
	const uint64_t *p = buf;
	uint64_t bad = 0;
	size_t i;

	__asm__ volatile("" ::: "memory");
	for (i = 0; i < msg_bytes / 8; i++)
		bad |= p[i] ^ FILLING;
	return !bad;
}

static int prepare(struct ft *ft)
{
	unsigned i;

	if (msg_bytes > MAX_READ || msg_bytes % 8 ||
	    msg_bytes * window * RESTS > traffic->mem_bytes)
		return ft_fail(ft, "read: -s up to %d in eights, and no more "
			       "than %zu of all -N", MAX_READ,
			       traffic->mem_bytes / RESTS);
	rng = ft->run->seed;
	if (ft->rank == TARGET) {
		for (i = 0; i < PLACES; i++)
			pattern_fill(target_mem + i * msg_bytes, msg_bytes,
				     ft->run->seed, TARGET, i);
		return 0;
	}
	turn = calloc(window, sizeof(*turn));
	asked = calloc(window, sizeof(*asked));
	if (!turn || !asked)
		return ft_fail(ft, "out of memory");
	for (i = 0; i < window * RESTS; i++)
		fill(local_mem + i * msg_bytes);
	return 0;
}

static int start(struct ft *ft, unsigned slot, fi_addr_t to)
{
	struct ft_rma r;
	int ret;

	asked[slot] = pattern_random(&rng) % PLACES;
	ft_rma_set(ft, &r, FT_READ, buffer(slot), msg_bytes, &local_mr,
		   &target_mr, TARGET, asked[slot] * msg_bytes);
	r.addr = to;
	ret = (int)ft_try_rma(ft->o.ep, slot_op[slot], &r);
	return ret;
}

static void done(struct ft *ft, unsigned slot)
{
	unsigned char *at = buffer(slot);

	delivered(msg_bytes);
	tally.unique++;
	if (pattern_check(at, msg_bytes, ft->run->seed, TARGET,
			  asked[slot]) >= 0) {
		tally.corrupt++;
		wrong("a read of place %llu returned wrong data",
		      (unsigned long long)asked[slot]);
	}
	fill(at);
	/* The next buffer is the one that was left alone for the longest time. */
	turn[slot] = (turn[slot] + 1) % RESTS;
	if (!is_filled(buffer(slot))) {
		tally.late++;
		wrong("a buffer of a completed read has changed");
		fill(buffer(slot));
	}
}

static void finish(struct ft *ft, const struct tally *theirs)
{
	unsigned i;

	(void)theirs;
	if (ft->rank == TARGET) {
		for (i = 0; i < PLACES; i++)
			if (pattern_check(target_mem + i * msg_bytes,
					  msg_bytes, ft->run->seed, TARGET,
					  i) >= 0) {
				tally.corrupt++;
				wrong("reads changed the memory that they read");
			}
		return;
	}
	/* After reads that failed the buffer may contain anything. */
	for (i = 0; i < window * RESTS && !tally.failed; i++) {
		if (is_filled(local_mem + i * msg_bytes))
			continue;
		tally.late++;
		wrong("a buffer of a completed read has changed");
	}
}

const struct traffic read_traffic = {
	.name = "read", .caps = FT_RMA_CAPS, .size = 64 << 10, .window = 32,
	.mem_bytes = PLACES * MAX_READ, .prepare = prepare, .start = start,
	.done = done, .finish = finish,
};
