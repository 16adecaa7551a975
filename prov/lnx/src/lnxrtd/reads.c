/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rails a pass reads.  To read one is a system call.  So while frames come over some, those
 * over which none came are left out for a few passes: what their cores have sent meanwhile can wait.
 * A frame that comes over such a rail waits for these passes only, and not at all once nothing
 * comes over the others.
 */
#include "lnxrtd/reads.h"

#define LEFT_OUT	3u	/* a destination may have more frames than come meanwhile */

static unsigned read_rail(struct rtd_reads *r, unsigned i, rtd_read_fn read, void *arg)
{
	unsigned frames = 0, n = r->ready[i] ? read(arg, i, &frames) : 0;

	r->ready[i] = n >= RTD_READ_BATCH;
	r->left_out[i] = 0;
	r->barren[i] = !frames;
	r->came |= frames != 0;
	return n;
}

unsigned rtd_reads_pass(struct rtd_reads *r, unsigned n, rtd_read_fn read, void *arg)
{
	unsigned i, all = 0, left = 0;
	bool busy = r->came;

	r->came = false;
	for (i = 0; i < n; i++) {
		if (busy && r->barren[i] && r->left_out[i] < LEFT_OUT)
			left |= 1u << i;
		else
			all += read_rail(r, i, read, arg);
	}
	for (i = 0; left >> i; i++) {
		if (!(left >> i & 1))
			continue;
		if (r->came)
			r->left_out[i]++;
		else
			all += read_rail(r, i, read, arg);
	}
	return all;
}
