/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Single steps of the reliable channel (rel/chan.c).  How two ends of it work together is
 * in test_chan_random.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "rel/chan.h"

static struct lnx_chan c;
static struct lnx_frame f[8];

static void open_with(uint32_t window)
{
	unsigned i;

	lnx_chan_init(&c);
	cr_assert_eq(lnx_chan_open(&c, window), 0);
	c.flags = 0;
	for (i = 0; i < LNX_ARRAY_SIZE(f); i++) {
		memset(&f[i], 0, sizeof(f[i]));
		lnx_list_init(&f[i].link);
		f[i].len = 10;
	}
}

static void posted(struct lnx_frame *one, uint8_t path)
{
	lnx_chan_number(&c, one);
	one->path = path;
	lnx_chan_posted(&c, one, one->len);
}

static struct lnx_frame *out(enum lnx_chan_what want)
{
	enum lnx_chan_what what;
	struct lnx_frame *one = lnx_chan_next_out(&c, &what);

	if (one) {
		cr_expect_eq(what, want);
		lnx_chan_out(&c, what, one->seq, one->path);
		if (what == LNX_CHAN_OUT_NEW)
			lnx_chan_posted(&c, one, one->len);
	}
	return one;
}

static void acked(uint32_t ack)
{
	uint32_t n = lnx_chan_ackable(&c, ack);

	while (n--)
		lnx_chan_pop_una(&c);
	lnx_chan_after_ack(&c);
}

/* Only what left over that path goes out again, and what the core has does not. */
Test(chan, retransmits_one_path)
{
	open_with(64);
	posted(&f[0], 0);
	posted(&f[1], 1);
	posted(&f[2], 1);
	posted(&f[3], 0);
	f[2].in_core = true;
	lnx_chan_retransmit(&c, 1u << 1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	cr_expect_eq(c.flags, 0);
	cr_expect(f[1].retransmitted && !f[0].retransmitted);
	lnx_chan_fini(&c);
}

/* A frame that cannot be posted again now is the next one later. */
Test(chan, retransmits_later)
{
	enum lnx_chan_what what;

	open_with(64);
	posted(&f[0], 0);
	posted(&f[1], 0);
	lnx_chan_retransmit(&c, 1u << 0);
	cr_expect_eq(lnx_chan_next_out(&c, &what), &f[0]);
	cr_expect_eq(lnx_chan_next_out(&c, &what), &f[0]);
	/* It is acknowledged meanwhile. */
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	lnx_chan_fini(&c);
}

/* The answer to a probe shows that the rest was lost too. */
Test(chan, probe_first)
{
	open_with(64);
	posted(&f[0], 1);
	posted(&f[1], 1);
	posted(&f[2], 0);
	lnx_chan_probe(&c);
	cr_expect_eq(out(LNX_CHAN_OUT_PROBE), &f[0]);
	cr_expect_null(out(LNX_CHAN_OUT_PROBE));
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_AGAIN), &f[1]);
	cr_expect_null(out(LNX_CHAN_OUT_AGAIN));
	/* Nothing is left to be asked for. */
	acked(3);
	lnx_chan_probe(&c);
	cr_expect_null(out(LNX_CHAN_OUT_PROBE));
	cr_expect_eq(c.flags, 0);
	lnx_chan_fini(&c);
}

/* What waits leaves in order, as far as the window reaches. */
Test(chan, queue_waits_for_the_window)
{
	open_with(2);
	posted(&f[0], 0);
	posted(&f[1], 0);
	cr_expect_not(lnx_chan_window_open(&c));
	lnx_chan_number(&c, &f[2]);
	lnx_chan_queue(&c, &f[2], false);
	lnx_chan_number(&c, &f[3]);
	lnx_chan_queue(&c, &f[3], false);
	cr_expect_null(out(LNX_CHAN_OUT_NEW));
	acked(1);
	cr_expect_eq(out(LNX_CHAN_OUT_NEW), &f[2]);
	cr_expect_null(out(LNX_CHAN_OUT_NEW));
	acked(3);
	cr_expect_eq(out(LNX_CHAN_OUT_NEW), &f[3]);
	cr_expect_eq(c.nqueued, 0);
	cr_expect_eq(c.flags, 0);
	lnx_chan_fini(&c);
}

/* A peer with a few frames in flight costs a few slots, one with many gets them. */
Test(chan, grows_with_the_window)
{
	static struct lnx_frame many[1024];
	unsigned i;

	open_with(1024);
	cr_expect_lt(c.mask, 32);
	c.next = c.posted = c.una = 0u - 500;
	for (i = 0; i < 1024; i++) {
		cr_assert(lnx_chan_window_open(&c));
		lnx_chan_number(&c, &many[i]);
		many[i].len = 1;
		lnx_chan_posted(&c, &many[i], 1);
	}
	cr_expect_not(lnx_chan_window_open(&c));
	for (i = 0; i < 1024; i++)
		cr_assert_eq(lnx_chan_pop_una(&c), &many[i]);
	lnx_chan_fini(&c);
}
