/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's completion queue: its ring, and when reading it polls the
 * cores.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "base/interval.h"
#include "fake_core.h"
#include "api/api.h"
#include "comp/comp.h"
#include "obj/cq.h"
#include "view.h"

static struct fake f;
static struct lnx_cq *cq;

static void open_one(void)
{
	fake_open(&f, NULL);
	cq = lnx_container_of(f.cq, struct lnx_cq, fid);
}

static void put(uintptr_t context)
{
	lnx_cq_write(cq, (void *)context, FI_SEND, 0, NULL, 0, 0, 0);
}

/* A poll may be a system call: a core that was just polled is not polled again. */
Test(cq, a_read_polls_the_cores_once)
{
	struct fi_cq_tagged_entry e[4];
	static struct fake_peer p;
	uint8_t byte = 1, buf;
	unsigned i, before;

	open_one();
	fake_peer_init(&f, &p, 7);
	fake_peer_insert(&f, &p);
	fake_hello(&f, &p);
	fake_pass(&f);
	for (i = 0; i < 100; i++) {
		cr_assert_not(fi_trecv(f.ep, &buf, 1, NULL, FI_ADDR_UNSPEC, i,
				       0, &buf));
		fake_tag(&f, &p, i, &byte, 1);
		before = f.core[0]->npolls;
		cr_assert_eq(fi_cq_read(f.cq, e, 4), 1);
		cr_assert_eq(e[0].tag, i);
		cr_assert_eq(f.core[0]->npolls - before, 1u, "message %u", i);
		fake_drop_all(&f, &p);
	}
	fake_close(&f);
}

/* A program that reads rarely: each of its reads polls an idle rail, and asks for what is
 * due. */
Test(cq, a_read_after_a_pause_does_all)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_tagged_entry e;
	static struct fake_peer p;
	unsigned i, before;

	open_one();
	fake_peer_init(&f, &p, 7);
	fake_peer_insert(&f, &p);
	fake_hello(&f, &p);
	fake_pass(&f);
	m.addr = p.addr;
	cr_assert_eq(fi_tsendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	fake_pass(&f);
	for (i = 0; i < 2 * fake_conf.poll_credits; i++)
		fi_cq_read(f.cq, &e, 1);
	fake_drop_all(&f, &p);
	before = f.core[0]->npolls;
	for (i = 0; i < 10; i++) {
		fake_now_ns += 3 * LNX_NS_PER_S;
		fake_ticks += LNX_PASS_PAUSE_TICKS + 1;
		fi_cq_read(f.cq, &e, 1);
	}
	cr_expect_eq(f.core[0]->npolls - before, 10u);
	cr_expect_not_null(f.core[0]->sent, "it asked for nothing");
	fake_close(&f);
}

/* A thread that reads one of several queues in vain does not wait while the others are told
 * something: it may answer that, and must not sleep. */
Test(cq, what_other_queues_are_told_counts)
{
	struct lnx_cntr cntr = { .ok = 0 };
	struct lnx_ep_link link;
	struct lnx_idle idle;
	struct lnx_lock lock;
	struct lnx_eps eps;
	unsigned i;

	open_one();
	lnx_lock_init(&lock, true);
	lnx_idle_init(&idle);
	lnx_eps_init(&eps);
	lnx_eps_add(&eps, &link, f.lnx);
	view_count_in(f.lnx, LNX_CNTR_RECV, &cntr);
	for (i = 0; i < 4; i++) {
		uint64_t later;

		lnx_idle(&idle, &lock, &eps, 0);
		later = fake_now_ns += 10 * LNX_NS_PER_US;
		if (i == 1)
			put(1);
		else if (i == 2)
			lnx_cntr_ok(f.lnx, LNX_CNTR_RECV);
		lnx_idle(&idle, &lock, &eps, 0);
		if (i == 1 || i == 2)
			cr_expect_geq(idle.yield.idle_ns, later, "%u", i);
		else
			cr_expect_lt(idle.yield.idle_ns, later, "%u", i);
	}
	view_count_in(f.lnx, LNX_CNTR_RECV, NULL);
	lnx_eps_del(&eps, &link);
	lnx_eps_fini(&eps);
	lnx_lock_fini(&lock);
	fake_close(&f);
}

/* A reader that finds an entry in every read still polls the cores now and then. */
Test(cq, entries_do_not_stop_polling)
{
	struct fi_cq_tagged_entry e;
	uintptr_t i, n, asked;

	open_one();
	asked = f.core[0]->npolls;
	for (i = n = 0; i < 1600; i++) {
		unsigned before = f.core[0]->npolls;

		put(i);
		cr_assert_eq(fi_cq_read(f.cq, &e, 1), 1);
		cr_assert_eq(e.op_context, (void *)i);
		n = f.core[0]->npolls == before ? n + 1 : 0;
		cr_assert_leq(n, 16u);
	}
	cr_expect_leq(f.core[0]->npolls - asked, 1600u / 16);
	fake_close(&f);
}

/* Then a program that keeps up always uses the same cache line of the ring. */
Test(cq, the_ring_begins_anew_when_it_is_empty)
{
	struct fi_cq_tagged_entry e[4];
	uintptr_t i;

	open_one();
	for (i = 0; i < 5000; i += 3) {
		put(i);
		put(i + 1);
		cr_assert_eq(cq->ring[0].context, (void *)i);
		cr_assert_eq(fi_cq_read(f.cq, e, 1), 1);
		cr_assert_eq(e[0].op_context, (void *)i);
		put(i + 2);
		cr_assert_eq(fi_cq_read(f.cq, e, 4), 2);
		cr_assert_eq(e[0].op_context, (void *)(i + 1));
		cr_assert_eq(e[1].op_context, (void *)(i + 2));
		cr_assert(lnx_cq_empty(cq));
		cr_assert_eq(lnx_cq_written(cq), i + 3);
	}
	fake_close(&f);
}

/* The queue of an endpoint that reports nothing. */
Test(cq, a_queue_never_read)
{
	struct fi_cq_err_entry err = { .err = FI_EIO };
	unsigned i;

	cr_assert_eq(lnx_cq_null_open(&cq), 0);
	for (i = 0; i < 1000; i++) {
		put(i);
		lnx_cq_write_err(cq, &err);
	}
	lnx_cq_null_close(cq);
	lnx_cq_null_close(NULL);
}

static uint64_t rng;

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % n;
}

/* Every third burst is long enough to make the ring grow. */
static void write_some(uint32_t *written)
{
	uint32_t n = below(3) ? below(40) : below(3000);

	for (; n; n--, ++*written) {
		struct fi_cq_err_entry err = {
			.op_context = (void *)(uintptr_t)*written,
			.err = FI_EIO,
		};

		if (*written % 97 == 13)
			lnx_cq_write_err(cq, &err);
		else
			put(*written);
	}
}

static void read_some(uint32_t *got, uint32_t written)
{
	struct fi_cq_tagged_entry e[64];
	struct fi_cq_err_entry err;
	uint32_t calls = below(2) ? below(8) : 200;

	while (calls--) {
		ssize_t i, n = fi_cq_read(f.cq, e, 1 + below(64));

		if (n == -FI_EAGAIN) {
			cr_assert_eq(*got, written, "entries are missing");
			return;
		}
		for (i = 0; i < n; i++, ++*got) {
			cr_assert_eq(e[i].op_context,
				     (void *)(uintptr_t)*got);
			cr_assert_neq(*got % 97, 13u);
		}
		if (n > 0)
			continue;
		cr_assert_eq(n, -FI_EAVAIL);
		cr_assert_eq(*got % 97, 13u);
		memset(&err, 0, sizeof(err));
		cr_assert_eq(fi_cq_readerr(f.cq, &err, 0), 1);
		cr_assert_eq(err.op_context, (void *)(uintptr_t)(*got)++);
	}
}

/* In any order of writing, reading and growing: each entry once, in order. */
Test(cq, what_is_written_is_read_in_order)
{
	uint32_t written = 0, got = 0, i;
	uint64_t seed = (uint64_t)time(NULL) * 1000003 ^ (uint64_t)clock();

	rng = seed;
	cr_log_info("seed %llu", (unsigned long long)seed);
	open_one();
	for (i = 0; i < 1000; i++) {
		write_some(&written);
		read_some(&got, written);
		cr_assert_leq(got, written);
		cr_assert_eq(lnx_cq_empty(cq), got == written, "seed %llu",
			     (unsigned long long)seed);
		cr_assert_eq(lnx_cq_written(cq), written);
	}
	while (got != written)
		read_some(&got, written);
	cr_expect(lnx_cq_empty(cq));
	fake_close(&f);
}
