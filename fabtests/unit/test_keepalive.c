/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients of a server: peers that are in no address vector, from which nothing is due, and
 * that die, compute, or are cut off without a word.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "os/ping.h"
#include "fail_world.h"
#include "view.h"

#define CLIENTS		100u
#define PASS_MS		10u

/* Over both kinds of rail. */
#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(keepalive_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(keepalive_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static struct fake_peer client[CLIENTS];
static struct fake_peer known;
static unsigned nprobes;
static bool answers;

static void open_server(enum lnx_rail_kind kind, unsigned nrails)
{
	struct fake_opt opt = { .nrail = nrails };
	unsigned i;

	for (i = 0; i < nrails; i++)
		opt.kind[i] = kind;
	kernel_says = LNX_PING_UNKNOWN;
	nprobes = 0;
	answers = false;
	fake_conf.transaction_timeout = 5000;
	fake_open(&f, &opt);
	fake_peer_init(&f, &known, 50);
}

/* Hellos are noted; PROBEs are counted, and answered if the clients live. */
static void left(const struct fake_sent *s)
{
	unsigned i;

	for (i = 0; s->h.kind == LNX_KIND_HELLO && i < CLIENTS; i++)
		if (client[i].eid == s->h.dst)
			client[i].theirs = s->h.src;
	if (s->h.kind == LNX_KIND_HELLO && known.eid == s->h.dst)
		known.theirs = s->h.src;
	if (s->h.kind != LNX_KIND_PROBE)
		return;
	nprobes++;
	cr_expect_neq(s->h.src, known.theirs, "it is in the address vector");
	for (i = 0; answers && i < CLIENTS; i++)
		if (client[i].theirs == s->h.src)
			fake_frame(&f, &client[i], (struct lnx_hdr) {
					.kind = LNX_KIND_PONG, .tag = s->h.tag,
					.data = s->h.data }, NULL, 0);
}

static void pass_s(unsigned s)
{
	uint64_t end = fake_now_ns + s * LNX_NS_PER_S;
	unsigned i;

	while (fake_now_ns < end) {
		fake_now_ns += PASS_MS * LNX_NS_PER_MS;
		fake_pass(&f);
		for (i = 0; i < f.rails.nrail; i++) {
			struct fake_sent *m;

			while ((m = fake_take(f.core[i]))) {
				left(m);
				free(m);
			}
		}
	}
}

static void come(unsigned n)
{
	unsigned i;

	fake_peer_insert(&f, &known);
	fake_hello(&f, &known);
	for (i = 0; i < n; i++) {
		fake_peer_init(&f, &client[i], 1000 + i);
		fake_hello(&f, &client[i]);
	}
	pass_s(1);
	cr_assert(known.theirs);
	known.got = 1;
	fake_ack(&f, &known);
	for (i = 0; i < n; i++) {
		cr_assert(client[i].theirs);
		client[i].got = 1;
		fake_ack(&f, &client[i]);
	}
	pass_s(3);
	cr_assert_eq(view_unsolicited(f.lnx), n);
	nprobes = 0;
}

static void expect_gone(void)
{
	cr_expect_eq(view_unsolicited(f.lnx), 0u);
	cr_expect_eq(view_peers(f.lnx), 1u, "that in the address vector");
	cr_expect(view_none_ended(f.lnx));
}

/* Their hosts say that nothing listens there any more. */
BOTH(dead_ones_are_freed)
{
	open_server(kind, 1);
	come(CLIENTS);
	kernel_says = LNX_PING_REFUSED;
	pass_s(120);
	expect_gone();
	fake_close(&f);
}

/* They were inserted, answered and removed, as servers do. */
BOTH(dead_ones_that_were_removed_are_freed)
{
	unsigned i;

	open_server(kind, 1);
	come(CLIENTS);
	for (i = 0; i < CLIENTS; i++)
		fake_peer_insert(&f, &client[i]);
	cr_assert_eq(view_unsolicited(f.lnx), 0u);
	pass_s(300);
	cr_assert_eq(view_peers(f.lnx), CLIENTS + 1);
	for (i = 0; i < CLIENTS; i++)
		cr_assert_eq(fi_av_remove(f.av, &client[i].addr, 1, 0), 0);
	kernel_says = LNX_PING_REFUSED;
	pass_s(120);
	expect_gone();
	fake_close(&f);
}

BOTH(dead_ones_of_two_rails_are_freed)
{
	open_server(kind, 2);
	come(CLIENTS);
	kernel_says = LNX_PING_REFUSED;
	pass_s(120);
	expect_gone();
	fake_close(&f);
}

/* One question a minute, and its answer. */
BOTH(idle_ones_stay)
{
	open_server(kind, 1);
	answers = true;
	kernel_says = LNX_PING_ALIVE;
	come(CLIENTS);
	pass_s(600);
	cr_expect_eq(view_unsolicited(f.lnx), CLIENTS);
	cr_expect_geq(nprobes, 9 * CLIENTS);
	cr_expect_leq(nprobes, 11 * CLIENTS);
	fake_close(&f);
}

/* Their kernels answer and they do not, for longer than FI_LNX_STALL_TIMEOUT. */
BOTH(computing_ones_stay)
{
	fake_conf.stall_timeout = 120;
	open_server(kind, 1);
	kernel_says = LNX_PING_ALIVE;
	come(CLIENTS);
	pass_s(1200);
	cr_expect_eq(view_unsolicited(f.lnx), CLIENTS);
	/* The one of the keepalive, and one about its session. */
	cr_expect_leq(nprobes, 21 * 3 * CLIENTS);
	fake_close(&f);
}

/* A network may be down for minutes; a host that never comes back is given up. */
BOTH(mute_ones_stay_for_minutes)
{
	open_server(kind, 1);
	come(CLIENTS);
	kernel_says = LNX_PING_WAITING;
	pass_s(480);
	cr_expect_eq(view_unsolicited(f.lnx), CLIENTS);
	/* They were only cut off: it begins anew. */
	answers = true;
	kernel_says = LNX_PING_ALIVE;
	pass_s(90);
	answers = false;
	kernel_says = LNX_PING_WAITING;
	pass_s(480);
	cr_expect_eq(view_unsolicited(f.lnx), CLIENTS);
	pass_s(300);
	expect_gone();
	fake_close(&f);
}

/* More than may be served at a time come and die: none is refused for long. */
BOTH(dead_ones_make_room)
{
	struct fake_peer late;

	fake_conf.unsolicited_peers = CLIENTS;
	open_server(kind, 1);
	come(CLIENTS);
	kernel_says = LNX_PING_REFUSED;
	fake_peer_init(&f, &late, 5000);
	fake_hello(&f, &late);
	fake_pass(&f);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 1u);
	pass_s(12);
	cr_expect_eq(view_unsolicited(f.lnx), 0u);
	late.seq = 0;
	fake_next(&f, &late, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 1,
						.data = view_hello_nonce(f.lnx) },
		  late.blob, sizeof(late.blob));
	fake_pass(&f);
	cr_expect_eq(view_unsolicited(f.lnx), 1u);
	cr_expect_eq(f.lnx->stats.unsolicited_drops, 1u);
	fake_close(&f);
}

/* With something due it is what it was: given up after FI_LNX_TRANSACTION_TIMEOUT. */
BOTH(sends_do_not_wait_for_a_mute_one)
{
	struct iovec iov = { (void *)"due", 4 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1 };

	open_server(kind, 1);
	come(2);
	kernel_says = LNX_PING_WAITING;
	pass_s(59);
	fake_peer_insert(&f, &client[0]);
	m.addr = client[0].addr;
	cr_assert_eq(fi_tsendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	pass_s(12);
	cr_expect_eq(f.lnx->stats.failed, 1u);
	cr_expect_eq(view_unsolicited(f.lnx), 1u);
	fake_close(&f);
}
