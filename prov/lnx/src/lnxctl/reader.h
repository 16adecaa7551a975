/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads state segments (lnx_state.h), of processes that live and of dead ones, without
 * their help.  What is in a segment is not trusted: any content gives a snapshot, or an
 * error; texts in a snapshot end with NUL and are printable ASCII.
 *
 * One snapshot at a time per thread; nothing is global.
 */
#ifndef LNXCTL_READER_H
#define LNXCTL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lnx_state.h"

/* As pread(2): bytes read, 0 at the end, negative: error. */
struct lnx_source {
	ssize_t (*read)(void *arg, void *buf, size_t len, uint64_t at);
	void *arg;
	uint64_t size;			/* of the file; more is not read */
	bool live;			/* a process may be writing: wait for it */
};

struct lnx_snap_counters {
	uint64_t when_ns;		/* 0: none */
	uint64_t *value;		/* snap->ncounter; what is missing is 0 */
};

struct lnx_snap_peer {
	struct lnx_state_peer p;
	struct lnx_state_path **path;	/* npath, by index; into ep->path */
	unsigned npath;			/* may be less than p.npath */
};

struct lnx_snap_ep {
	struct lnx_state_ep ep;
	struct lnx_snap_counters now, base;
	struct lnx_state_param *param;
	unsigned nparam;
	struct lnx_state_rail *rail;
	unsigned nrail;
	struct lnx_state_rule *rule;	/* in their order */
	unsigned nrule;
	bool rules;			/* it publishes them: else none are known */
	struct lnx_snap_peer *peer;	/* each eid once, by addr, then by eid */
	unsigned npeer;
	uint64_t npeer_total;		/* there are; more than npeer: the rest is not
					 * published */
	struct lnx_state_path *path;
	unsigned npath;
	uint64_t walk_ns;		/* when the peers were looked at; 0: not yet */
};

struct lnx_snap {
	struct lnx_state_header h;
	struct lnx_state_counter *counter;	/* the schema */
	unsigned ncounter;
	struct lnx_state_counter *class;	/* of failures, in the order of failed[] */
	unsigned nclass;
	struct lnx_snap_ep *ep;
	unsigned nep;
	unsigned torn;			/* records that were being written when the
					 * process died, or all the time */
};

/*
 * Read everything.  0, and *out is to be freed with lnx_snap_free; or -EINVAL (it is no
 * segment), -EPROTONOSUPPORT (of another version), -EIO, -ENOMEM, with a sentence in
 * why, cut at why_size.
 */
int lnx_snap_read(const struct lnx_source *src, struct lnx_snap **out, char *why,
		  size_t why_size);
void lnx_snap_free(struct lnx_snap *snap);

/* The index of a counter in value[]; -1: there is none of that name. */
int lnx_snap_counter(const struct lnx_snap *snap, const char *name);
/* The index of a class in failed[], or -1. */
int lnx_snap_class(const struct lnx_snap *snap, const char *name);
/* Its value since the last reset; 0 if there is none. */
uint64_t lnx_snap_value(const struct lnx_snap *snap, const struct lnx_snap_ep *ep,
			const char *name);
/* Its parameter of that name (lower case), or NULL. */
const struct lnx_state_param *lnx_snap_param(const struct lnx_snap_ep *ep,
					     const char *name);

#endif
