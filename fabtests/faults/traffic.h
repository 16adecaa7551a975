/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic that continues during faults and accounts for every operation.  Rank
 * 1 is the source: it starts all operations, as fast as they are accepted.
 * Rank 0 is the target.  Each delivery is checked, and recorded on a timeline
 * at the side where it arrives: at the target, or for reads and fetches at the
 * source.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "../common/rma.h"

#define TARGET		0
#define SOURCE		1
#define MAX_ERRORS	16

/* Set of numbers, mostly dense from 0 on. */
struct seen {
	uint64_t *bits, limit, count;
};

/* Adds n.  1: it was not in the set, 0: it was, -1: no memory, or n is absurd. */
int seen_add(struct seen *s, uint64_t n);

/* The results of one side; print_report() has the names. */
struct tally {
	uint64_t sent;			/* operations that were accepted */
	uint64_t ok, failed;		/* completions at the source */
	uint64_t received;		/* deliveries, right or wrong */
	uint64_t unique;		/* those of them that are right */
	uint64_t doubled, reordered, corrupt;
	uint64_t late;			/* memory changed after it was complete */
	uint64_t bytes;
	uint64_t start_ns, stop_ns, end_ns;	/* of traffic; everything has arrived */
	uint64_t first_error_ns, last_error_ns;
	struct { int err; uint64_t count; } error[MAX_ERRORS];
	uint64_t value[16];		/* for use by the kind of traffic */
	int refused;			/* error of a call, other than -FI_EAGAIN */
	char why[160];			/* the first error found */
};

extern struct tally tally;
extern volatile bool stopping;		/* no new operations */

uint64_t now_ns(void);			/* CLOCK_MONOTONIC */

/* Something arrived: record it on the timeline. */
void delivered(size_t bytes);
/* Records an error; the first few are printed. */
void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void note_error(int err);		/* positive FI_E* */

/*
 * A kind of traffic.  Functions return 0, or -FI_E* with ft->why set if the run
 * cannot go on; the failure of an operation by a fault does not count as that.
 */
struct traffic {
	const char *name;
	uint64_t caps;
	size_t size;			/* default of -s */
	unsigned window;		/* default of -N: operations under way; 0: as
					 * many as fit into 4 MiB */
	size_t mem_bytes;		/* registered for the other side; 0: none */
	/* Both sides, before the timeline starts. */
	int (*prepare)(struct ft *ft);
	/* Source: start one in slot, which is free.  -FI_EAGAIN: try later. */
	int (*start)(struct ft *ft, unsigned slot, fi_addr_t to);
	/* Source: the operation in slot has succeeded. */
	void (*done)(struct ft *ft, unsigned slot);
	/* Target, called repeatedly; may be NULL. */
	int (*serve)(struct ft *ft);
	/* Target: has everything arrived?  NULL: nothing is waited for. */
	bool (*complete)(uint64_t sent);
	/* Either side, at the end: compare with the results of the other side. */
	void (*finish)(struct ft *ft, const struct tally *theirs);
};

extern const struct traffic stream_traffic, unexpected_traffic,
			    write_traffic, read_traffic, atomics_traffic;

/* The kind of this run, from the options. */
extern const struct traffic *traffic;
extern size_t msg_bytes;
extern unsigned window;
extern bool acked;			/* ask for FI_DELIVERY_COMPLETE */
extern struct ft_op **slot_op;		/* of the source, [window] */
extern struct ft_mr local_mr, target_mr;
extern unsigned char *local_mem, *target_mem;

#endif
