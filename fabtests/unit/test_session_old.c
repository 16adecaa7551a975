/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions that one end has given up and the other has not: what belongs to the old one
 * must not count in the new one.  On a scripted core; the test is the peer.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "api/ep.h"
#include "comp/comp.h"
#include "fake_core.h"
#include "rel/frame.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[64];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(session_old_plain, name) { name(LNX_RAIL_PLAIN); }	\
	Test(session_old_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_with(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_conf.connect_timeout = 200;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	p.sid = 0x51;
	fake_peer_insert(&f, &p);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static void recv1(void *context)
{
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0,
			      context), 0);
}

/* A send that is complete only when p has it. */
static void send_acked(void *context)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = p.addr,
			    .context = context };

	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
}

/* p's HELLO of that time, sent for the first time or again; it answers session data. */
static void hello(uint64_t stamp, uint64_t data)
{
	p.seq = 0;
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = stamp,
					     .data = data },
		  p.blob, sizeof(p.blob));
	fake_passes(&f, 4);
}

/* No path works until we give p up; what is outstanding fails. */
static void give_up(void *outstanding)
{
	unsigned i;

	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(outstanding);
	for (i = 0; i < 100 && !lnx_peer_dead(inside()); i++)
		fake_after_ms(&f, 10);
	fake_err(&f, outstanding, FI_ETIMEDOUT);
	core->send_again = core->inject_again = 0;
	fake_after_ms(&f, 1100);
	fake_drop_all(&f, &p);
}

/* The same, with two sends. */
static void give_up_both(void)
{
	struct fi_cq_err_entry err;
	unsigned i, n = 0;

	for (i = 0; i < 100 && !lnx_peer_dead(inside()); i++)
		fake_after_ms(&f, 10);
	cr_assert(lnx_peer_dead(inside()));
	while (fi_cq_readerr(f.cq, &err, 0) > 0)
		n++;
	cr_expect_eq(n, 2u);
	core->send_again = core->inject_again = 0;
	fake_after_ms(&f, 1100);
}

/* p has given our session up before its first acknowledgement could reach us. */
BOTH(given_up_by_the_peer_before_any_answer)
{
	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	/* It does not know the session: our HELLO was lost, and goes out again. */
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = view_sid(inside()),
		   .tag = LNX_REFUSED_ENDED }, NULL, 0);
	fake_quiet(&f);
	cr_expect(lnx_peer_open(inside()));
	/* It had it, and has ended it. */
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid, .dst = view_sid(inside()),
		   .tag = LNX_REFUSED_ENDED, .data = 1 }, NULL, 0);
	fake_pass(&f);
	fake_err(&f, &a, FI_ECONNRESET);
	fake_close(&f);
}

/* ... and we tell it the same. */
BOTH(a_peer_is_told_that_its_session_was_known)
{
	struct fake_sent *s;

	open_with(kind);
	hello(100, 0);
	fake_drop_all(&f, &p);
	give_up(&a);
	hello(100, 0);
	fake_after_ms(&f, 3);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION);
	cr_expect_eq(s->h.tag, LNX_REFUSED_ENDED);
	cr_expect_eq(s->h.data, 1u);
	free(s);
	fake_close(&f);
}

/* p sends again what it has no acknowledgement for: we have had it. */
BOTH(messages_of_a_session_that_we_gave_up)
{
	open_with(kind);
	hello(100, 0);
	recv1(&a);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	give_up(&a);
	/* Another session, ours. */
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	recv1(&b);
	hello(100, 0);
	fake_tag(&f, &p, 1, "x", 1);
	fake_quiet(&f);
	cr_expect_neq(view_rx_sid(inside()), 0x51u);
	fake_close(&f);
}

/* p has had messages of a session that we gave up, and acknowledges these. */
BOTH(acknowledgements_of_a_session_that_we_gave_up)
{
	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	fake_after_ms(&f, 10);
	give_up_both();
	/* Another session.  p has nothing of it, and sends its own HELLO again. */
	send_acked(&a);
	fake_passes(&f, 2);
	core->send_again = core->inject_again = 0;
	fake_drop_all(&f, &p);
	p.got = 2;
	hello(100, 0);
	fake_quiet(&f);
	/* It hears of the new one, and answers that. */
	p.sid = 0x52;
	p.got = 0;
	hello(200, view_sid(inside()));
	fake_quiet(&f);
	p.got = 2;
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* The same, and we have nothing to send to it any more. */
BOTH(a_hello_that_acknowledges_a_session_that_we_gave_up)
{
	struct fake_sent *s;

	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	give_up_both();
	p.got = 2;
	hello(100, 0);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	fake_after_ms(&f, 3);
	while (core->sent)
		free(fake_take(core));
	/* It begins another one, and has nothing of us, as far as we know.  So our HELLO
	 * names that, and then its own names ours. */
	p.sid = 0x52;
	p.got = 0;
	hello(200, 0);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_HELLO);
	cr_expect_eq(s->h.data, 0x52u);
	free(s);
	hello(200, view_sid(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	recv1(&b);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &b);
	fake_close(&f);
}

/* Both begin at once, and our HELLO is lost: it goes out again as an answer. */
BOTH(both_begin_at_once)
{
	struct fake_sent *s;
	unsigned i;

	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	p.got = 0;
	hello(100, 0);
	cr_assert_eq(view_rx_sid(inside()), 0x51u);
	for (i = 0; i < 40; i++) {
		fake_after_ms(&f, 50);
		while ((s = fake_take(core)) && s->h.kind != LNX_KIND_HELLO)
			free(s);
		if (s)
			break;
	}
	cr_assert(s);
	cr_expect_eq(s->h.seq, 0u);
	cr_expect_eq(s->h.data, 0x51u);
	free(s);
	fake_drop_all(&f, &p);
	p.got = 2;
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* The network was away, and both gave up and begin again.  Neither knows whether the other
 * one has had its first HELLO; so each names the other. */
BOTH(both_gave_up_and_begin_again)
{
	struct fake_sent *s;

	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	fake_drop_all(&f, &p);
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	give_up_both();
	send_acked(&a);
	fake_passes(&f, 2);
	s = fake_expect(&f, &p, LNX_KIND_HELLO);
	cr_expect_eq(s->h.data, 0u);
	free(s);
	fake_drop_all(&f, &p);
	p.sid = 0x52;
	p.got = 0;
	hello(200, 0);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	s = fake_expect(&f, &p, LNX_KIND_HELLO);
	cr_expect_eq(s->h.data, 0x52u);
	free(s);
	/* Once is enough, until it has been waited for. */
	hello(200, 0);
	fake_expect_none(&f);
	p.got = 2;
	hello(200, view_sid(inside()));
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	fake_comp(&f, &a);
	fake_close(&f);
}

/* p answers what we gave up, and goes on with acknowledgements of that: they do not count in
 * our next session. */
BOTH(an_answer_to_a_session_that_we_gave_up)
{
	struct fake_sent *s;
	uint64_t sid;

	open_with(kind);
	send_acked(&a);
	fake_passes(&f, 2);
	sid = view_sid(inside());
	fake_drop_all(&f, &p);
	core->send_again = core->inject_again = FAKE_ALWAYS;
	send_acked(&b);
	give_up_both();
	p.got = 2;
	hello(100, sid);
	cr_expect_neq(view_sid(inside()), sid);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	s = fake_take(core);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.kind, LNX_KIND_HELLO);
	cr_expect_eq(s->h.data, 0x51u);
	free(s);
	send_acked(&a);
	p.got = 2;
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(view_acked(inside()), 0u);
	/* It hears of ours, and begins another one. */
	p.sid = 0x52;
	p.got = 0;
	hello(200, view_sid(inside()));
	p.got = 2;
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_close(&f);
}
