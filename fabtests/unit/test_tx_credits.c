/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credits for frames (rel/tx_credits.h), on scripted cores: what waits for them, in which
 * order it goes on, and the numbers that are shown. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/request.h"
#include "fake_core.h"
#include "policy/tx_credits.h"

#define MANY	64u

static struct fake f;
static struct fake_peer p[3];
static char a;				/* context */
/* Tags that a peer got, in the order of their numbers. */
static uint64_t tag[3][MANY];
static unsigned ntag[3];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(tx_credits_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(tx_credits_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static struct lnx_peer *inside(unsigned to)
{
	return lnx_peer_by_eid(f.lnx, p[to].eid);
}

static const struct lnx_rail *rail(unsigned i)
{
	return f.lnx->rail[i];
}

static const struct lnx_path *path(unsigned to, unsigned i)
{
	return view_path(inside(to), i);
}

/* What left arrives, at all peers; how many messages. */
static unsigned arrive(void)
{
	struct fake_sent *s;
	unsigned i, to, n = 0;

	cr_expect(view_credits_agree(f.lnx));
	for (i = 0; i < f.lnx->nrail; i++)
		while ((s = fake_take(f.core[i]))) {
			for (to = 0; p[to].eid != s->h.dst;)
				to++;
			if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == p[to].got) {
				p[to].got++;
				if (s->h.kind == LNX_KIND_TAG) {
					cr_assert_lt(ntag[to], MANY);
					tag[to][ntag[to]++] = s->h.tag;
					n++;
				}
			}
			free(s);
		}
	return n;
}

static unsigned pass(void)
{
	fake_passes(&f, 3);
	return arrive();
}

/* The peer has all before that number. */
static void ack(unsigned to, uint32_t upto)
{
	uint32_t got = p[to].got;

	p[to].got = upto;
	fake_ack(&f, &p[to]);
	p[to].got = got;
}

static void ack_all(unsigned to)
{
	fake_ack(&f, &p[to]);
}

static void send_n(unsigned to, unsigned n, uint64_t first, size_t len)
{
	static uint8_t buf[8192];

	while (n--)
		cr_assert_eq(fi_tsend(f.ep, buf, len, NULL, p[to].addr, first++, &a), 0);
}

static void in_order(unsigned to, unsigned n, uint64_t first)
{
	unsigned i;

	cr_assert_eq(ntag[to], n, "%u messages, not %u", ntag[to], n);
	for (i = 0; i < n; i++)
		cr_expect_eq(tag[to][i], first + i);
}

static void open_n(enum lnx_rail_kind kind, unsigned nrail, unsigned npeer)
{
	struct fake_opt opt = { .nrail = nrail };
	unsigned i;

	for (i = 0; i < nrail; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	for (i = 0; i < npeer; i++) {
		fake_peer_init(&f, &p[i], 0x1111 + i);
		fake_peer_insert(&f, &p[i]);
		send_n(i, 1, 1000, 8);
		pass();
		ack_all(i);
		pass();
		cr_assert(view_all_acked(inside(i)));
		ntag[i] = 0;
	}
}

/* All arrives, and nothing is in use then. */
static void finish(unsigned npeer)
{
	struct fi_cq_tagged_entry e;
	unsigned i, to;

	for (i = 0; i < 20; i++) {
		for (to = 0; to < npeer; to++)
			ack_all(to);
		pass();
	}
	for (to = 0; to < npeer; to++)
		cr_expect(view_all_acked(inside(to)), "peer %u", to);
	for (i = 0; i < f.lnx->nrail; i++)
		cr_expect_eq(rail(i)->credits.used, 0u);
	cr_expect(view_credits_agree(f.lnx));
	while (fi_cq_read(f.cq, &e, 1) == 1)
		;
	fake_close(&f);
}

static void set(const char *text, ssize_t ret, const char *says)
{
	char reply[700];

	cr_expect_eq(lnx_ctl_request(f.lnx, text, reply, sizeof(reply)), ret, "%s", reply);
	if (says)
		cr_expect(strstr(reply, says), "%s", reply);
}

/* ---- the numbers alone ---- */

Test(tx_credits, numbers)
{
	struct lnx_tx_credits c = { 0 };

	cr_expect(lnx_tx_credits_left(&c, 0) && lnx_tx_credits_left(&c, 1));
	lnx_tx_credits_take(&c);
	cr_expect(lnx_tx_credits_left(&c, 0) && !lnx_tx_credits_left(&c, 1));
	lnx_tx_credits_take(&c);
	cr_expect_eq(lnx_tx_credits_most(&c), 2u);
	lnx_tx_credits_wanted(&c, 3);
	lnx_tx_credits_give(&c);
	lnx_tx_credits_give(&c);
	cr_expect_eq(c.used, 0u);
	cr_expect_eq(lnx_tx_credits_most(&c), 5u, "two under way, three waited");
	cr_expect_eq(lnx_tx_credits_rank(8, 3), 5);
	cr_expect_eq(lnx_tx_credits_rank(0, 3), -3, "without a limit the order is the same");
	cr_expect_eq(lnx_tx_credits_rank(0, UINT64_MAX / 4), INT32_MIN);
}

/* ---- limits ---- */

/* Either limit, with one peer. */
static void limited(enum lnx_rail_kind kind, bool of_rail)
{
	*(of_rail ? &fake_conf.credits : &fake_conf.peer_credits) = 4;
	open_n(kind, 1, 1);
	send_n(0, 10, 0, 8);
	cr_expect_eq(pass(), 4u);
	cr_expect_eq(view_queued(inside(0)), 6u);
	cr_expect_eq(rail(0)->credits.used, 4u);
	cr_expect_eq(view_credits(path(0, 0)), 4u);
	cr_expect_eq(view_credits_most(path(0, 0)), 10u, "six waited");
	if (of_rail) {
		cr_expect_eq(rail(0)->n_delayed, 6u);
		cr_expect_eq(lnx_tx_credits_most(&rail(0)->credits), 10u);
	}
	cr_expect_eq(pass(), 0u);
	/* As many as are acknowledged. */
	ack(0, p[0].got - 3);
	cr_expect_eq(pass(), 1u);
	ack(0, p[0].got - 2);
	cr_expect_eq(pass(), 2u);
	ack_all(0);
	cr_expect_eq(pass(), 3u);
	cr_expect_eq(rail(0)->n_delayed, 0u);
	in_order(0, 10, 0);
	finish(1);
}

BOTH(of_a_rail) { limited(kind, true); }
BOTH(of_a_peer) { limited(kind, false); }

/* Without limits all leaves, and is counted. */
BOTH(none_by_default)
{
	cr_assert(!fake_conf.credits && !fake_conf.peer_credits);
	open_n(kind, 1, 1);
	send_n(0, 40, 0, 8);
	cr_expect_eq(pass(), 40u);
	cr_expect_eq(rail(0)->credits.used, 40u);
	cr_expect_eq(lnx_tx_credits_most(&rail(0)->credits), 40u);
	ack(0, p[0].got - 30);
	pass();
	cr_expect_eq(rail(0)->credits.used, 30u);
	cr_expect_eq(lnx_tx_credits_most(&rail(0)->credits), 40u);
	finish(1);
}

/* Frames that the window keeps back count as waiting, too. */
BOTH(window_below_the_limit)
{
	fake_conf.window = 4;
	fake_conf.peer_credits = 100;
	open_n(kind, 1, 1);
	send_n(0, 10, 0, 8);
	cr_expect_eq(pass(), 4u);
	cr_expect_eq(view_credits_most(path(0, 0)), 10u);
	finish(1);
}

/* Longer frames, which the core completes: acknowledged or not, it has them. */
BOTH(the_core_has_it)
{
	fake_conf.credits = 2;
	open_n(kind, 1, 1);
	f.core[0]->hold_sends = true;
	send_n(0, 4, 0, 4000);
	fake_passes(&f, 3);
	cr_expect_eq(fake_held(f.core[0]), 2u);
	arrive();
	ack_all(0);
	fake_passes(&f, 3);
	cr_expect_eq(rail(0)->credits.used, 2u, "acknowledged, but the core has them");
	cr_expect_eq(fake_held(f.core[0]), 2u);
	fake_finish(f.core[0], 0, 0);
	fake_passes(&f, 3);
	cr_expect_eq(fake_held(f.core[0]), 2u, "one left, another took its place");
	f.core[0]->hold_sends = false;
	fake_finish_all(f.core[0]);
	pass();
	pass();
	in_order(0, 4, 0);
	finish(1);
}

/* ---- several peers ---- */

/* One that does not acknowledge has all credits: others go on, one frame at a time. */
BOTH(a_silent_peer_stops_no_other)
{
	fake_conf.credits = 4;
	open_n(kind, 1, 2);
	send_n(0, 8, 0, 8);
	cr_expect_eq(pass(), 4u);
	send_n(1, 5, 100, 8);
	for (unsigned i = 0; i < 5; i++) {
		cr_expect_eq(pass(), 1u, "frame %u", i);
		ack_all(1);
	}
	in_order(1, 5, 100);
	cr_expect_eq(ntag[0], 4u);
	finish(2);
}

/* Peers that wait have their turns in the order in which they came. */
BOTH(one_after_the_other)
{
	fake_conf.credits = 6;
	open_n(kind, 1, 3);
	send_n(0, 10, 0, 8);
	send_n(1, 6, 100, 8);
	send_n(2, 6, 200, 8);
	pass();
	cr_expect_eq(ntag[0], 6u);
	cr_expect_eq(ntag[1], 1u, "one always may");
	cr_expect_eq(ntag[2], 1u);
	cr_expect_eq(rail(0)->n_delayed, 4u + 5 + 5);
	/* Eight are under way: the third that is acknowledged lets another go. */
	ack(0, p[0].got - 3);
	cr_expect_eq(pass(), 1u);
	cr_expect_eq(ntag[0], 7u, "it came first");
	ack(0, p[0].got - 3);
	pass();
	cr_expect_eq(ntag[1], 2u);
	ack(0, p[0].got - 2);
	pass();
	cr_expect_eq(ntag[2], 2u);
	ack(0, p[0].got - 1);
	pass();
	cr_expect_eq(ntag[0], 8u);
	finish(3);
	in_order(0, 10, 0);
	in_order(1, 6, 100);
	in_order(2, 6, 200);
}

/* A peer that is given up while it waits is out of the way. */
BOTH(given_up)
{
	struct lnx_hdr bye = { .kind = LNX_KIND_BYE };

	fake_conf.credits = 2;
	open_n(kind, 1, 2);
	send_n(0, 6, 0, 8);
	pass();
	send_n(1, 6, 100, 8);
	pass();
	cr_expect_eq(rail(0)->n_delayed, 4u + 5);
	bye.seq = p[0].seq;
	fake_frame(&f, &p[0], bye, NULL, 0);
	fake_passes(&f, 4);
	cr_expect_eq(rail(0)->n_delayed + rail(0)->credits.used, 6u, "of the other one");
	for (unsigned i = 0; i < 6; i++) {
		ack_all(1);
		pass();
	}
	in_order(1, 6, 100);
	cr_expect_eq(rail(0)->credits.used, 0u);
	fake_close_quick(&f);
}

/* ---- a peer that throttles us ---- */

/* It has all but the last `missing`. */
static void tell(unsigned from, uint32_t missing, uint32_t change, uint32_t n)
{
	uint32_t got = p[from].got;
	struct {
		struct lnx_wire_credit credit;
		struct lnx_wire_allowance allowance;
	} payload;

	lnx_wire_credit_put(&payload.credit, 0);
	lnx_wire_allowance_put(&payload.allowance, change, n);
	p[from].got -= missing;
	fake_frame(&f, &p[from], (struct lnx_hdr) { .kind = LNX_KIND_ACK }, &payload,
		   sizeof(payload));
	p[from].got = got;
	pass();
}

/* What it may not have waits for no credit; what it may have again does.  Others have their
 * turns all the same. */
BOTH(throttled_while_it_waits)
{
	unsigned i, most = 0;

	fake_conf.credits = 4;
	open_n(kind, 1, 2);
	send_n(0, 10, 0, 8);
	send_n(1, 12, 100, 8);
	pass();
	cr_expect_eq(ntag[0], 4u);
	cr_expect_eq(ntag[1], 1u);
	cr_expect_eq(rail(0)->n_delayed, 6u + 11);
	tell(0, 4, 1, 5);
	cr_expect_eq(rail(0)->n_delayed, 1u + 11, "%u", rail(0)->n_delayed);
	tell(0, 4, 3, 9);
	cr_expect_eq(rail(0)->n_delayed, 5u + 11, "%u", rail(0)->n_delayed);
	tell(0, 4, 5, 4);
	cr_expect_eq(rail(0)->n_delayed, 11u, "%u", rail(0)->n_delayed);
	ack_all(0);
	for (i = 0; i < 8; i++) {
		unsigned before = ntag[1];

		ack_all(1);
		pass();
		most = LNX_MAX(most, ntag[1] - before);
	}
	cr_expect_geq(most, 3u, "the other one has only %u of 4 credits", most);
	tell(0, 0, 6, 0);
	finish(2);
	in_order(0, 10, 0);
	in_order(1, 12, 100);
}

/* ---- changes ---- */

BOTH(changed_while_frames_wait)
{
	fake_conf.credits = 2;
	open_n(kind, 1, 2);
	send_n(0, 12, 0, 8);
	send_n(1, 4, 100, 8);
	cr_expect_eq(pass(), 3u);
	set("set credits 6", 0, NULL);
	cr_expect_eq(pass(), 3u);
	set("set peer_credits 3", 0, NULL);
	set("set credits 0", 0, NULL);
	cr_expect_eq(pass(), 2u, "the first peer has five already");
	cr_expect_eq(rail(0)->n_delayed, 0u);
	ack_all(0);
	cr_expect_eq(pass(), 3u);
	/* Fewer than are in use: then none leaves. */
	set("set peer_credits 1", 0, NULL);
	ack(0, p[0].got - 2);
	cr_expect_eq(pass(), 0u);
	set("set peer_credits 0", 0, NULL);
	pass();
	in_order(0, 12, 0);
	in_order(1, 4, 100);
	finish(2);
}

BOTH(bad_values)
{
	open_n(kind, 1, 1);
	set("set credits -1", -FI_EINVAL,
	    "credits=\"-1\": must be a whole number from 0 to 65535 (frames)");
	set("set peer_credits many", -FI_EINVAL,
	    "peer_credits=\"many\": must be a whole number from 0 to 65535 (frames)");
	set("set credits 65536", -FI_EINVAL, "65536");
	cr_expect_eq(rail(0)->credits_max, 0u);
	finish(1);
}

/* ---- several paths ---- */

/* A path without credits is left for another one. */
BOTH(the_other_path)
{
	fake_conf.peer_credits = 3;
	open_n(kind, 2, 1);
	send_n(0, 10, 0, 8);
	fake_passes(&f, 3);
	arrive();
	cr_expect_eq(view_credits(path(0, 0)), 3u);
	/* It begins with one frame. */
	cr_expect_eq(view_credits(path(0, 1)), 1u);
	cr_expect_eq(view_queued(inside(0)), 6u);
	finish(1);
}

/* What fails is sent again, whatever is in use, and its credit goes with it. */
BOTH(sent_again)
{
	fake_conf.credits = 2;
	open_n(kind, 2, 1);
	force_proven(inside(0));
	f.core[0]->hold_sends = f.core[1]->hold_sends = true;
	send_n(0, 4, 0, 4000);
	fake_passes(&f, 3);
	cr_expect_eq(view_credits(path(0, 0)), 2u);
	cr_expect_eq(view_credits(path(0, 1)), 2u);
	fake_finish(f.core[0], 0, FI_EIO);
	fake_passes(&f, 3);
	cr_expect_eq(view_credits(path(0, 0)), 1u);
	cr_expect_eq(view_credits(path(0, 1)), 3u);
	cr_expect_eq(rail(1)->credits.used, 3u);
	cr_expect(view_credits_agree(f.lnx));
	f.core[0]->hold_sends = f.core[1]->hold_sends = false;
	fake_finish_all(f.core[0]);
	fake_finish_all(f.core[1]);
	finish(1);
}
