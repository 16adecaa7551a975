/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the state segment tells of a rail and of a path, beside the messages of the
 * application.  It is counted where frames without a message are handled anyway, so that
 * a message costs nothing more.  Owner lock held.
 */
#ifndef LNX_COUNTS_H
#define LNX_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "lnx_wire.h"
#include "policy/class.h"

struct lnx_counts {
	/* Frames by their kind, but for messages and their announcements. */
	uint64_t sent[LNX_KIND_MAX];
	uint64_t received[LNX_KIND_MAX];
	/* All frames that the channel drops; [0]: what is no valid frame. */
	uint64_t dropped[LNX_KIND_MAX];
	uint64_t drop_length;		/* bytes, with headers, as far as they came */
	/* Operations of the core: pieces of large transfers, and small reads. */
	uint64_t reads, writes;		/* posted, */
	uint64_t reads_done;		/* and ended without an error */
	uint64_t failed[LNX_CLASS_COUNT]; /* failures charged to it, or to its peer */
};

/* How long answers take. */
#define LNX_LATENCY_BUCKETS	24u
struct lnx_latency_counts {
	uint64_t samples, min_ns, max_ns, sum_ns;
	/* Times below 2^i us, the last one: all others. */
	uint32_t bucket[LNX_LATENCY_BUCKETS];
};

/*
 * Of a path.  Made when there are several to the peer, when something fails, when a
 * reader looks, and by a reset: most peers need none.
 */
struct lnx_path_counts {
	struct lnx_counts c;
	struct lnx_latency_counts ack;	/* from a PROBE to its answer, from a frame that left
					 * once to its acknowledgement */
	struct lnx_latency_counts reply; /* from a read to its end; of pieces
					 * that were read once */
	uint64_t received, received_bytes; /* frames in the sequence, before the last
					 * time that another path took its place */
	/* As of the last reset: */
	uint64_t sent_base, sent_bytes_base;
	uint64_t received_base, received_bytes_base;
	/* Frames before kinds were counted. */
	uint64_t kinds_sent, kinds_received;
	/* The last frame that was timed: when it left, and its number. */
	uint64_t timed_ns;
	uint32_t timed_seq;
};

/* A frame of that kind, 0: not known, was dropped. */
static inline void lnx_counts_drop(struct lnx_counts *c, unsigned kind, size_t len)
{
	c->dropped[kind < LNX_KIND_MAX ? kind : 0]++;
	c->drop_length += len;
}

static inline void lnx_counts_latency(struct lnx_latency_counts *l, uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned i = us ? 64u - (unsigned)__builtin_clzll(us) : 0;

	l->bucket[LNX_MIN(i, LNX_LATENCY_BUCKETS - 1)]++;
	l->min_ns = l->samples && l->min_ns < ns ? l->min_ns : ns;
	l->max_ns = LNX_MAX(l->max_ns, ns);
	l->sum_ns += ns;
	l->samples++;
}

#endif
