/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes into a ring of slots in the target's memory, each with its number as
 * remote cq data.  The target checks a slot when its event comes, and checks
 * each half of the ring again before the source may use it again: a write that
 * is late or done twice changes a slot in between.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#define RING	128			/* slots */
#define HALF	(RING / 2)
#define MAX_SLOT (128 << 10)
#define CREDIT_TAG 0x637265646974ULL
#define CREDITS	4			/* receives for them */

static unsigned cursor;			/* events of ft->events that were handled */
static struct seen seen;
static uint64_t half_at[2];		/* first number in each half */
static unsigned half_in[2];
static uint64_t limit = RING;		/* source: numbers below are allowed */
static uint64_t grant[CREDITS];		/* memory of credits, in both directions */
static struct ft_op *credit_op[CREDITS];
static uint64_t granted;		/* target */

static void *slot_at(unsigned char *mem, uint64_t n)
{
	return mem + n % RING * msg_bytes;
}

/* ---- source ---- */

static void credit(struct ft *ft, struct ft_op *op)
{
	unsigned i = (unsigned)(uintptr_t)op->arg;
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[TARGET], .buf = &grant[i],
		.len = sizeof(grant[i]), .tag = CREDIT_TAG,
	};

	if (op->err) {
		tally.failed++;
		note_error(op->err);
		wrong("a receive gave: %s", fi_strerror(op->err));
		stopping = true;
		return;
	}
	if (op->done) {
		/* Each limit is half a ring larger than the one before, in order. */
		if (op->len != sizeof(grant[i]) || grant[i] != limit + HALF) {
			tally.corrupt++;
			wrong("credit up to %llu after %llu",
			      (unsigned long long)grant[i],
			      (unsigned long long)limit);
		}
		limit = grant[i];
	}
	ft_op_reset(op);
	op->arg = (void *)(uintptr_t)i;
	op->hook = credit;
	if (ft_recv(ft, op, &m))
		wrong("fi_trecv of a credit failed");
}

static int prepare(struct ft *ft)
{
	unsigned i;

	if (msg_bytes > MAX_SLOT || window > HALF)
		return ft_fail(ft, "write: -s up to %d, -N up to %d", MAX_SLOT,
			       HALF);
	half_at[1] = HALF;
	granted = RING;
	for (i = 0; i < CREDITS; i++) {
		credit_op[i] = ft_op_new(ft);
		credit_op[i]->arg = (void *)(uintptr_t)i;
		if (ft->rank == SOURCE)
			credit(ft, credit_op[i]);
	}
	return 0;
}

static int start(struct ft *ft, unsigned slot, fi_addr_t to)
{
	uint64_t n = tally.sent;
	unsigned char *from = local_mem + slot * msg_bytes;
	struct ft_rma r;

	if (n >= limit)
		return -FI_EAGAIN;
	memcpy(from, &n, sizeof(n));
	pattern_fill(from + 8, msg_bytes - 8, ft->run->seed, SOURCE, n);
	ft_rma_set(ft, &r, acked ? FT_WRITEMSG : FT_WRITEDATA, from,
		   msg_bytes, &local_mr, &target_mr, TARGET,
		   n % RING * msg_bytes);
	r.addr = to;
	r.data = n;
	r.flags = FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE;
	return (int)ft_try_rma(ft->o.ep, slot_op[slot], &r);
}

static void done(struct ft *ft, unsigned slot)
{
	(void)ft;
	memset(local_mem + slot * msg_bytes, 0xee, msg_bytes);
}

/* ---- target ---- */

static bool holds(struct ft *ft, uint64_t n)
{
	unsigned char *at = slot_at(target_mem, n);

	/* Another process writes it: read it again each time. */
	__asm__ volatile("" ::: "memory");
	return !memcmp(at, &n, sizeof(n)) &&
	       pattern_check(at + 8, msg_bytes - 8, ft->run->seed, SOURCE,
			     n) < 0;
}

static void event(struct ft *ft, const struct ft_event *ev)
{
	uint64_t n = ev->data;
	int h = (int)(n / HALF % 2);

	delivered(msg_bytes);
	switch (seen_add(&seen, n)) {
	case 0:
		tally.doubled++;
		wrong("the event of write %llu a second time",
		      (unsigned long long)n);
		return;
	case -1:
		tally.corrupt++;
		wrong("an event with data %llu", (unsigned long long)n);
		return;
	}
	if (n < half_at[h] || n >= half_at[h] + HALF || !holds(ft, n)) {
		tally.corrupt++;
		wrong("write %llu has an event and its data is missing",
		      (unsigned long long)n);
	}
	half_in[h]++;
}

/* A half has arrived: check it again, and allow its next use. */
static int turn_over(struct ft *ft, int h)
{
	struct ft_op *op = credit_op[granted / HALF % CREDITS];
	uint64_t *word = &grant[granted / HALF % CREDITS], n;
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[SOURCE], .buf = word,
		.len = sizeof(*word), .tag = CREDIT_TAG,
	};
	int ret;

	if (op->posted && !op->done)
		return 0;
	for (n = half_at[h]; n < half_at[h] + HALF; n++) {
		if (holds(ft, n))
			continue;
		tally.late++;
		wrong("write %llu had arrived, and was changed later",
		      (unsigned long long)n);
	}
	half_at[h] += RING;
	half_in[h] = 0;
	granted += HALF;
	*word = granted;
	ft_op_reset(op);
	ret = ft_send(ft, op, &m);
	if (ret) {
		note_error(-ret);
		wrong("fi_tsend of a credit: %s", fi_strerror(-ret));
		tally.refused = -ret;
	}
	return 0;
}

static int serve(struct ft *ft)
{
	int h = (int)(granted / HALF % 2), i;

	while (cursor != ft->nevents)
		event(ft, &ft->events[cursor++ % FT_MAX_EVENTS]);
	for (i = 0; i < CREDITS; i++) {
		if (!credit_op[i]->err)
			continue;
		tally.failed++;
		note_error(credit_op[i]->err);
		wrong("a send of a credit gave: %s",
		      fi_strerror(credit_op[i]->err));
		credit_op[i]->err = 0;
	}
	if (half_in[h] == HALF && !tally.refused)
		return turn_over(ft, h);
	return 0;
}

static bool complete(uint64_t sent)
{
	return seen.count >= sent;
}

static void finish(struct ft *ft, const struct tally *theirs)
{
	uint64_t n, h;

	if (ft->rank == SOURCE) {
		tally.unique = theirs->unique;
		return;
	}
	tally.unique = seen.count;
	if (seen.count < theirs->sent) {
		wrong("%llu of %llu writes did not arrive",
		      (unsigned long long)(theirs->sent - seen.count),
		      (unsigned long long)theirs->sent);
		return;
	}
	for (h = 0; h < 2; h++) {
		for (n = half_at[h]; n < theirs->sent &&
		     n < half_at[h] + HALF; n++) {
			if (holds(ft, n))
				continue;
			tally.late++;
			wrong("write %llu had arrived, and was changed before the end",
			      (unsigned long long)n);
		}
	}
}

const struct traffic write_traffic = {
	.name = "write", .caps = FT_RMA_CAPS, .size = 64 << 10, .window = 32,
	.mem_bytes = RING * MAX_SLOT, .prepare = prepare, .start = start,
	.done = done, .serve = serve, .complete = complete, .finish = finish,
};
