/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which rails a pass of the gateway reads.  Pure. */
#ifndef LNX_RTD_READS_H
#define LNX_RTD_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "lnxrtd/relay.h"

/* A read that brings so much may have left something. */
#define RTD_READ_BATCH	32u

/* Of each rail; zeroed: none has anything. */
struct rtd_reads {
	bool ready[RTD_RAILS];		/* it may have something */
	bool barren[RTD_RAILS];		/* its last read brought no frame, */
	uint8_t left_out[RTD_RAILS];	/* and for how many passes it has been left out since */
	bool came;			/* a frame, in the last pass */
};

/* Read a rail: returns what its core had, RTD_READ_BATCH at most.  Adds those to *frames that have
 * come. */
typedef unsigned (*rtd_read_fn)(void *arg, unsigned rail, unsigned *frames);

/* A pass over n rails.  Returns what their cores had.  Afterwards a rail is ready that has been
 * left out, and one whose read was full. */
unsigned rtd_reads_pass(struct rtd_reads *r, unsigned n, rtd_read_fn read, void *arg);

#endif
