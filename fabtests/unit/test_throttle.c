/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_LNX_UNEXPECTED_LIMIT on a scripted core: the test is a peer that sends more than an
 * endpoint may keep, also one that does not keep to what it is told; and then a peer that
 * throttles the endpoint.  What is allowed when is in test_backlog.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fake_core.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[1 << 16], mem[1 << 16];

#define BYTES		1000u
#define FRAME		LNX_FRAME_MAX
#define WINDOW		8u
#define KEPT		(BYTES + 200)	/* at most, of a message of BYTES */

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(throttle_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(throttle_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_met(enum lnx_rail_kind kind, uint64_t limit)
{
	struct fake_opt opt = { .nrail = 1, .kind[0] = kind, .inject_size = 256, .tx_size = 8 };

	fake_conf.window = WINDOW;
	fake_conf.unexpected_limit = limit;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	fake_drop_all(&f, &p);
}

/* ---- it is throttled ---- */

/* What the last acknowledgement said that left; false: none did, or nothing of that. */
static bool told(uint32_t *change, uint32_t *n)
{
	struct fake_sent *s;
	bool any = false;

	while ((s = fake_take(core))) {
		size_t head = sizeof(struct lnx_wire_hdr);

		if (s->h.kind == LNX_KIND_ACK &&
		    lnx_wire_allowance_get(s->bytes + head, s->len - head, change, n))
			any = true;
		free(s);
	}
	return any;
}

static void come(unsigned n, uint64_t tag)
{
	while (n--) {
		fake_tag(&f, &p, tag, mem, BYTES);
		fake_pass(&f);
	}
}

static void want(uint64_t tag, void *context)
{
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, tag, 0, context),
		     0);
}

/* Time enough for each look.  True: there was a change. */
static bool told_soon(uint32_t *change, uint32_t *n)
{
	uint32_t before = *change;
	unsigned i;

	for (i = 0; i < 20; i++) {
		fake_after_ms(&f, 1);
		told(change, n);
		if (*change != before)
			return true;
	}
	return false;
}

BOTH(receiver_tells_and_gives_way)
{
	uint32_t change = 0, n = 99, before;
	unsigned i;

	open_met(kind, 4 * FRAME);
	come(1, 7);
	cr_assert(told_soon(&change, &n), "the limit is near from the beginning");
	cr_expect_eq(change, 1u);
	cr_expect_leq(n, 3u);
	/* It goes on until it may not. */
	for (i = 0; i < 200 && n; i++) {
		come(n, 7);
		if (!told_soon(&change, &n))
			break;
	}
	cr_assert_lt(i, 200u, "it is allowed more and more");
	cr_expect_leq(f.lnx->stats.unexpected_peak, 4u * FRAME);
	cr_expect_geq(f.lnx->stats.unexpected_peak, 2u * FRAME);
	cr_expect_eq(f.lnx->stats.throttles, 1u);
	cr_expect(!told_soon(&change, &n));
	before = change;
	/* A receive waits for a message that is behind others. */
	want(8, &a);
	for (i = 0; i < 50; i++) {
		cr_assert(told_soon(&change, &n), "the limit does not give way");
		cr_expect_eq(change, before += 2);
		cr_expect_leq(n, 4u);
		come(n, 7);
	}
	cr_assert(told_soon(&change, &n));
	come(1, 8);
	fake_comp(&f, &a);
	/* Nothing is wanted any more. */
	come(4, 7);
	cr_expect(!told_soon(&change, &n));
	fake_close(&f);
}

BOTH(receives_allow_more)
{
	uint32_t change = 0, n = 0, more;

	open_met(kind, 4 * FRAME);
	come(4 * FRAME / KEPT, 7);
	while (told_soon(&change, &n))
		;
	for (more = 0; more < 4 * FRAME / KEPT; more++) {
		want(7, &a);
		fake_comp(&f, &a);
	}
	cr_assert(told_soon(&change, &n));
	cr_expect_geq(n, 2u);
	cr_expect_eq(change & 1, 1u);
	fake_close(&f);
}

/* With much room it is not throttled any more. */
BOTH(receives_end_it)
{
	uint32_t change = 0, n = 0, i;

	open_met(kind, 40 * FRAME);
	for (i = 0; i < 40 * FRAME / KEPT && !(change & 1); i++) {
		come(1, 7);
		told(&change, &n);
	}
	cr_assert(change & 1);
	for (; i; i--) {
		want(7, &a);
		fake_comp(&f, &a);
	}
	cr_assert(told_soon(&change, &n));
	cr_expect_eq(change & 1, 0u);
	fake_close(&f);
}

BOTH(peek_waits_for_one_that_is_behind)
{
	struct fi_msg_tagged m = { .addr = FI_ADDR_UNSPEC, .tag = 8, .context = &a };
	uint32_t change = 0, n = 0;
	unsigned i;

	open_met(kind, 4 * FRAME);
	come(60, 7);
	while (told_soon(&change, &n))
		;
	for (i = 0; i < 5; i++) {
		cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_PEEK), 0);
		fake_err(&f, &a, FI_ENOMSG);
		cr_assert(told_soon(&change, &n), "FI_PEEK has no effect");
		cr_expect_leq(n, 4u);
		come(n, 7);
	}
	come(1, 8);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_PEEK), 0);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* It sends without end, whatever it is told: then its frames are not taken. */
BOTH(hostile_sender)
{
	uint64_t kept;

	open_met(kind, 4 * FRAME);
	come(3 * LNX_SEQ_WINDOW / 2, 7);
	fake_drop_all(&f, &p);
	kept = f.lnx->stats.unexpected;
	cr_expect_leq(kept, LNX_SEQ_WINDOW + 200u);
	come(500, 7);
	cr_expect_eq(f.lnx->stats.unexpected, kept);
	fake_close_quick(&f);
}

Test(throttle, no_limit)
{
	uint32_t change = 0, n = 0;

	open_met(LNX_RAIL_PLAIN, 0);
	come(2000, 7);
	cr_expect(!told_soon(&change, &n));
	cr_expect_eq(f.lnx->stats.throttles, 0u);
	cr_expect_eq(f.lnx->stats.unexpected, 2000u);
	fake_close_quick(&f);
}

/* ---- it throttles us ---- */

static void tell(uint32_t change, uint32_t n)
{
	struct {
		struct lnx_wire_credit credit;
		struct lnx_wire_allowance allowance;
	} payload;

	lnx_wire_credit_put(&payload.credit, 0);
	lnx_wire_allowance_put(&payload.allowance, change, n);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_ACK }, &payload,
		   sizeof(payload));
	fake_passes(&f, 2);
}

static ssize_t send1(uint64_t tag, void *context)
{
	return fi_tsend(f.ep, &tag, sizeof(tag), NULL, p.addr, tag, context);
}

/* All messages that left, which were sent with tags from *next on. */
static unsigned left(uint64_t *next)
{
	struct fake_sent *s;
	unsigned n = 0;

	while ((s = fake_take(core))) {
		if (s->h.kind == LNX_KIND_TAG) {
			cr_expect_eq(s->h.tag, *next, "tag %lu, not %lu", s->h.tag, *next);
			cr_expect_eq(s->h.seq, p.got, "number %u, not %u", s->h.seq, p.got);
			p.got++;
			(*next)++;
			n++;
		}
		free(s);
	}
	return n;
}

static unsigned completed(void)
{
	struct fi_cq_tagged_entry e;
	unsigned n = 0;

	fake_pass(&f);
	while (fi_cq_read(f.cq, &e, 1) == 1)
		n++;
	return n;
}

BOTH(sends_wait)
{
	uint64_t next = 1, tag = 1;
	unsigned i;

	open_met(kind, 0);
	cr_assert_eq(send1(tag++, &a), 0);
	cr_expect_eq(left(&next), 1u);
	fake_comp(&f, &a);
	tell(1, 0);
	for (i = 0; i < 5; i++)
		cr_assert_eq(send1(tag++, &a), 0);
	cr_expect_eq(left(&next), 0u);
	fake_quiet(&f);
	tell(3, 2);
	cr_expect_eq(left(&next), 2u);
	cr_expect_eq(completed(), 2u);
	/* The same again, from before, and one of these had not come: no more may leave. */
	p.got--;
	tell(3, 2);
	tell(1, 5);
	tell(5, 1);
	p.got++;
	cr_expect_eq(left(&next), 0u);
	tell(7, 1);
	cr_expect_eq(left(&next), 1u);
	/* What comes now is behind those that wait. */
	cr_assert_eq(send1(tag++, &a), 0);
	tell(8, 0);
	cr_expect_eq(left(&next), 3u);
	cr_expect_eq(completed(), 4u);
	cr_assert_eq(send1(tag++, &a), 0);
	cr_expect_eq(left(&next), 1u);
	cr_expect_eq(next, tag);
	cr_expect_eq(f.lnx->stats.throttled_frames, 6u);
	fake_close(&f);
}

/* What waits for the window has a number; it loses that again. */
BOTH(queued_messages_wait_too)
{
	uint64_t next = 1, tag = 1;
	unsigned i;

	open_met(kind, 0);
	for (i = 0; i < WINDOW + 5; i++)
		cr_assert_eq(send1(tag++, &a), 0);
	cr_expect_eq(left(&next), WINDOW);
	tell(1, 2);
	cr_expect_eq(left(&next), 2u);
	cr_expect_eq(f.lnx->stats.throttled_frames, 5u);
	tell(3, 1);
	cr_expect_eq(left(&next), 1u);
	tell(4, 0);
	cr_expect_eq(left(&next), 2u);
	cr_expect_eq(completed(), WINDOW + 5);
	fake_close(&f);
}

BOTH(queue_is_full_and_peer_ends)
{
	uint64_t tag = 1;
	unsigned i;

	open_met(kind, 0);
	tell(1, 0);
	for (i = 0; i < 8; i++)
		cr_assert_eq(send1(tag++, &a), 0);
	cr_expect_eq(send1(tag, &a), -FI_EAGAIN);
	cr_expect_eq(fi_tinject(f.ep, &tag, sizeof(tag), p.addr, tag), -FI_EAGAIN);
	fake_quiet(&f);
	/* They end with the session. */
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = p.seq }, NULL, 0);
	fake_passes(&f, 2);
	for (i = 0; i < 8; i++)
		fake_err(&f, &a, FI_ECONNRESET);
	fake_quiet(&f);
	fake_close(&f);
}

/* What a message is not goes on: a FIN. */
BOTH(ends_of_large_messages_pass)
{
	uint64_t len = 20000, next = 1;
	struct fake_sent *s;

	open_met(kind, 0);
	tell(1, 0);
	cr_assert_eq(send1(1, &a), 0);
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 9, 0, &b), 0);
	fake_rts(&f, &p, true, 9, 77, mem, &len, 1);
	fake_comp(&f, &b);
	while ((s = fake_take(core)) && s->h.kind != LNX_KIND_FIN)
		free(s);
	cr_assert(s);
	cr_expect_eq(s->h.seq, p.got);
	p.got++;
	free(s);
	tell(2, 0);
	cr_expect_eq(left(&next), 1u);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* The wait charges no path; the peer is asked, so that a lost acknowledgement does no harm. */
BOTH(waiting_is_no_failure)
{
	unsigned asked = 0, i;
	struct fake_sent *s;

	open_met(kind, 0);
	tell(1, 0);
	cr_assert_eq(send1(1, &a), 0);
	for (i = 0; i < 60; i++) {
		fake_after_ms(&f, 100);
		while ((s = fake_take(core))) {
			cr_expect_eq(s->h.kind, LNX_KIND_PROBE, "%s leaves",
				     lnx_wire_kind_name(s->h.kind));
			asked += s->h.kind == LNX_KIND_PROBE;
			free(s);
			tell(1, 0);
		}
	}
	cr_expect_geq(asked, 4u, "asked %u times in 6 s", asked);
	fake_quiet(&f);
	cr_expect_eq(f.lnx->stats.losses, 0u);
	cr_expect_eq(f.lnx->stats.network_timeout_count, 0u);
	cr_expect_eq(f.lnx->stats.response_timeout_count, 0u);
	cr_expect_eq(f.lnx->stats.failed, 0u);
	tell(2, 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_close(&f);
}
