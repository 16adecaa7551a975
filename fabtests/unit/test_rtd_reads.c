/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which rails a pass of the gateway reads. */
#include <criterion/criterion.h>
#include <string.h>

#include "lnxrtd/reads.h"

#define RAILS	3u

static struct {
	struct rtd_reads r;
	unsigned has[RAILS];		/* frames that have come, */
	unsigned sent[RAILS];		/* and others that its core is done with */
	unsigned reads[RAILS];
} w;

static unsigned read_one(void *arg, unsigned rail, unsigned *frames)
{
	unsigned sent, come = w.has[rail] < RTD_READ_BATCH ? w.has[rail] : RTD_READ_BATCH;

	cr_assert_eq(arg, (void *)&w);
	cr_assert_lt(rail, RAILS);
	w.reads[rail]++;
	w.has[rail] -= come;
	sent = w.sent[rail] < RTD_READ_BATCH - come ? w.sent[rail] : RTD_READ_BATCH - come;
	w.sent[rail] -= sent;
	*frames += come;
	return come + sent;
}

/* A pass, before which so many frames come over each rail; all are ready.  Returns the rails that
 * were read, as bits. */
static unsigned pass(unsigned a, unsigned b, unsigned c)
{
	unsigned i, was[RAILS], read = 0;

	memcpy(was, w.reads, sizeof(was));
	w.has[0] += a;
	w.has[1] += b;
	w.has[2] += c;
	for (i = 0; i < RAILS; i++)
		w.r.ready[i] = true;
	rtd_reads_pass(&w.r, RAILS, read_one, &w);
	for (i = 0; i < RAILS; i++)
		read |= (w.reads[i] != was[i]) << i;
	return read;
}

/* While frames come over one rail, the others are read in one of four passes. */
Test(rtd_reads, left_out)
{
	unsigned i;

	cr_expect_eq(pass(1, 0, 0), 7, "the first pass knows nothing");
	for (i = 0; i < 3; i++) {
		cr_expect_eq(pass(1, 0, 0), 1);
		cr_expect_eq(pass(1, 0, 0), 1);
		cr_expect_eq(pass(1, 0, 0), 1);
		cr_expect_eq(pass(1, 0, 0), 7, "it waits for three passes at most");
	}
}

/* What a core has sent does not count: of that there is something for each frame. */
Test(rtd_reads, completions)
{
	cr_expect_eq(pass(1, 0, 0), 7);
	w.sent[1] = 3;
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 7);
	cr_expect_eq(w.sent[1], 0);
	cr_expect_eq(pass(1, 0, 0), 1, "it brought no frame");
}

/* A frame over a rail that is left out comes with its turn; then the rail is read in each pass. */
Test(rtd_reads, frame_of_another)
{
	cr_expect_eq(pass(1, 0, 0), 7);
	cr_expect_eq(pass(1, 1, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect_eq(pass(1, 0, 0), 7);
	cr_expect_eq(w.has[1], 0);
	cr_expect_eq(pass(1, 1, 0), 3);
	cr_expect_eq(pass(1, 1, 0), 3);
	cr_expect_eq(pass(1, 0, 0), 3);
	cr_expect_eq(pass(1, 0, 0), 5, "the third rail has its turn, the second is left out again");
}

/* When nothing comes over the busy one, the others are read in the same pass: before it sleeps. */
Test(rtd_reads, no_wait_when_idle)
{
	cr_expect_eq(pass(1, 0, 0), 7);
	cr_expect_eq(pass(1, 0, 1), 1);
	cr_expect_eq(pass(0, 0, 0), 7);
	cr_expect_eq(w.has[2], 0);
	cr_expect_eq(pass(0, 1, 0), 4 | 1 | 2);
	cr_expect_eq(w.has[1], 0);
}

/* A rail that is left out, and one that has more, are still ready; others are not.  What is not
 * ready is not read. */
Test(rtd_reads, ready)
{
	cr_expect_eq(pass(RTD_READ_BATCH, 0, 0), 7);
	cr_expect(w.r.ready[0] && !w.r.ready[1] && !w.r.ready[2]);
	cr_expect_eq(pass(1, 0, 0), 1);
	cr_expect(!w.r.ready[0] && w.r.ready[1] && w.r.ready[2]);
	memset(&w, 0, sizeof(w));
	w.has[1] = 1;
	w.r.ready[1] = true;
	cr_expect_eq(rtd_reads_pass(&w.r, RAILS, read_one, &w), 1);
	cr_expect_eq(w.reads[0] + w.reads[2], 0);
	/* All that there is, whatever order it comes in. */
	w.has[1] = 3 * RTD_READ_BATCH;
	w.r.ready[1] = true;
	while (w.r.ready[1])
		rtd_reads_pass(&w.r, RAILS, read_one, &w);
	cr_expect_eq(w.has[1], 0);
}
