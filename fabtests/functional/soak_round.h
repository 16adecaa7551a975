/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rounds of random mixed operations between two ranks, for soak.c and
 * ../faults/lives.c.
 *
 * Both ranks make the same plan of a round from the seed and its number, so each
 * knows what the other does to it.  In a round every slot of memory has one use, and
 * all of its operations are under way together; at its end everything is compared.
 *
 * A round may be hit: the other rank dies, or one gives the other up.  What is known of
 * such a round then is checked by soak_settle() and soak_take().
 */
#ifndef SOAK_ROUND_H
#define SOAK_ROUND_H

#include "../common/rma.h"

#define SOAK_SLOTS	256
#define SOAK_SLOT_BYTES	(64 << 10)
#define SOAK_BIG_SLOTS	4		/* of 1 MiB, after the small ones */
#define SOAK_BIG_BYTES	(1 << 20)
#define SOAK_SUMS	64		/* counters, after those */
#define SOAK_SUM_AT	((size_t)SOAK_SLOTS * SOAK_SLOT_BYTES + \
			 (size_t)SOAK_BIG_SLOTS * SOAK_BIG_BYTES)
#define SOAK_BYTES	(SOAK_SUM_AT + 8192)	/* of ft_mem.local and .target */
#define SOAK_ITEMS	(SOAK_SLOTS + SOAK_BIG_SLOTS)
#define SOAK_ONE	3		/* what each atomic adds */

/* A result beside those of enum ft_result: the round was hit. */
#define SOAK_HIT	16

enum soak_use { SOAK_MESSAGE, SOAK_WRITE, SOAK_READ, SOAK_ADD, SOAK_FETCH, SOAK_USES };

struct soak_counts {
	uint64_t rounds, bytes, of[SOAK_USES];
};

/* How an operation of a round that was hit has ended. */
enum { SOAK_NOT_STARTED, SOAK_MAYBE, SOAK_FAILED, SOAK_DELIVERED };

/* What each round of this process needs; filled in by the program. */
struct soak {
	bool rma, atomics;
	bool levels;			/* some ask for FI_DELIVERY_COMPLETE */
	uint64_t round;			/* number of the next round, or of this one */
	struct soak_counts done;
	uint64_t sums[SOAK_SUMS];	/* what the counters have to be */
	unsigned inject_errors;		/* injects that failed; the last error */
	int inject_err;
	/* A barrier: FT_PASS, FT_FAIL or SOAK_HIT. */
	int (*meet)(struct ft *ft);
	/* Called at intervals while something is waited for.  Sets ft->abandoned if
	 * the round is hit.  NULL: rounds are never hit. */
	void (*look)(struct ft *ft);
	/* May an operation end now with this error, a positive FI_E*?  For those with
	 * `look` only. */
	bool (*may_fail)(struct ft *ft, int err);
};

extern struct soak soak;

/* Memory for messages; ft_mem has to be there.  FT_PASS or FT_FAIL. */
int soak_begin(struct ft *ft);
/* FT_PASS, FT_FAIL or SOAK_HIT.  The next round has the next number. */
int soak_round(struct ft *ft);

/* After the last one: what arrived twice, or should not have arrived, would be here now.
 * FT_PASS or FT_FAIL. */
int soak_nothing_left(struct ft *ft);

/*
 * After SOAK_HIT: until all operations of this rank have ended, and with its receives
 * cancelled.  FT_PASS, or FT_FAIL if one does not end, ends with an error that may not
 * be, or has wrong data.  errors: how many ended with an error.
 */
int soak_settle(struct ft *ft, unsigned *errors);
/* A message that is no longer waited for came after that: may it be one of this round
 * that has not come yet?  FT_PASS or FT_FAIL. */
int soak_take(struct ft *ft, const struct ft_op *op, bool tagged, const void *buf);
/* SOAK_NOT_STARTED ... of each of this rank's operations, after soak_settle. */
void soak_results(const struct ft *ft, uint8_t ended[SOAK_ITEMS]);
/* Is all there that the other rank knows to be delivered, and no more than it began? */
int soak_compare(struct ft *ft, const uint8_t theirs[SOAK_ITEMS]);
/* No counter has been added to, and all operations are forgotten. */
void soak_reset(struct ft *ft);

#endif
