/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What counters count, on both kinds of framed rail of a scripted core: each
 * operation once, when it ends, whether or not it is reported.  And the values
 * of counters, without a core.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "fake_core.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static struct fid_cntr *tx, *rx;
static char a, b;			/* contexts */
static char big[50000];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(cntr_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(cntr_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static struct fid_cntr *new_cntr(enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	struct fid_cntr *cntr;

	cr_assert_eq(lnx_cntr_open(&f.domain.fid, &attr, &cntr, NULL), 0);
	return cntr;
}

static void open_with(enum lnx_rail_kind kind, struct fake_opt opt)
{
	opt.nrail = 1;
	opt.kind[0] = kind;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	tx = new_cntr(FI_WAIT_NONE);
	rx = new_cntr(FI_WAIT_NONE);
	cr_assert_eq(lnx_cntr_bind(f.lnx, &tx->fid, FI_SEND), 0);
	cr_assert_eq(lnx_cntr_bind(f.lnx, &rx->fid, FI_RECV), 0);
}

static void close_all(void)
{
	cr_expect_eq(fi_close(&tx->fid), -FI_EBUSY);
	/* As fi_close of the endpoint does; afterwards the domain must be empty. */
	lnx_cntr_unbind(f.lnx);
	lnx_cntr_release(f.lnx);
	cr_expect_eq(fi_close(&tx->fid), 0);
	cr_expect_eq(fi_close(&rx->fid), 0);
	fake_close(&f);
}

static void counted_at(int line, uint64_t ok, uint64_t err, uint64_t rok,
		       uint64_t rerr)
{
	uint64_t v[4] = { fi_cntr_read(tx), fi_cntr_readerr(tx),
			  fi_cntr_read(rx), fi_cntr_readerr(rx) };

	cr_assert(v[0] == ok && v[1] == err && v[2] == rok && v[3] == rerr,
		  "line %d: sends %lu/%lu, receives %lu/%lu; not %lu/%lu, %lu/%lu",
		  line, v[0], v[1], v[2], v[3], ok, err, rok, rerr);
}
#define counted(ok, err, rok, rerr) counted_at(__LINE__, ok, err, rok, rerr)

static ssize_t send_with(const void *buf, size_t len, uint64_t flags,
			 void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr, .tag = 1,
		.context = context,
	};

	return fi_tsendmsg(f.ep, &m, flags);
}

static void introduce(void)
{
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_pass(&f);
}

/* ---- sends ---- */

BOTH(sends_that_are_not_reported)
{
	open_with(kind, (struct fake_opt) {
		.tx_bind = FI_SELECTIVE_COMPLETION });
	counted(0, 0, 0, 0);
	introduce();
	counted(1, 0, 0, 0);
	cr_assert_eq(send_with("x", 1, 0, &a), 0);
	counted(2, 0, 0, 0);
	cr_assert_eq(send_with("x", 1, FI_COMPLETION, &a), 0);
	cr_assert_eq(send_with("x", 1, FI_INJECT, &a), 0);
	cr_assert_eq(fi_inject(f.ep, "x", 1, p.addr), 0);
	counted(5, 0, 0, 0);
	fake_comp(&f, &a);
	fake_drop_all(&f, &p);
	/* An acknowledgement counts nothing twice. */
	fake_ack(&f, &p);
	fake_quiet(&f);
	counted(5, 0, 0, 0);
	close_all();
}

BOTH(at_the_level_that_was_asked_for)
{
	open_with(kind, (struct fake_opt) {
		.tx_bind = FI_SELECTIVE_COMPLETION });
	introduce();
	cr_assert_eq(send_with("x", 1, FI_DELIVERY_COMPLETE, &a), 0);
	cr_assert_eq(send_with("x", 1, FI_TRANSMIT_COMPLETE | FI_COMPLETION,
			       &b), 0);
	fake_drop_all(&f, &p);
	fake_quiet(&f);
	counted(1, 0, 0, 0);
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	fake_quiet(&f);
	counted(3, 0, 0, 0);
	close_all();
}

static void large(uint64_t flags, int err, bool reported)
{
	struct fake_sent *s;
	struct lnx_rts r;

	cr_assert_eq(send_with(big, sizeof(big), flags, &b), 0);
	s = fake_expect(&f, &p, LNX_KIND_RTS_TAG);
	lnx_wire_rts_get(&r, s->bytes + 64, s->len - 64, s->h.len);
	free(s);
	fake_ack(&f, &p);
	fake_quiet(&f);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
					     .data = r.op, .len = (uint64_t)err },
		  NULL, 0);
	if (err)
		fake_err(&f, &b, err);
	else if (reported)
		fake_comp(&f, &b);
	fake_quiet(&f);
}

BOTH(large_sends)
{
	open_with(kind, (struct fake_opt) {
		.tx_bind = FI_SELECTIVE_COMPLETION });
	introduce();
	fake_hello(&f, &p);
	large(0, 0, false);
	counted(2, 0, 0, 0);
	large(FI_COMPLETION, 0, true);
	counted(3, 0, 0, 0);
	large(0, FI_EIO, true);
	counted(3, 1, 0, 0);
	close_all();
}

BOTH(sends_that_fail)
{
	fake_conf.connect_timeout = 200;
	open_with(kind, (struct fake_opt) {
		.tx_bind = FI_SELECTIVE_COMPLETION });
	introduce();
	counted(1, 0, 0, 0);
	core->send_fails = FAKE_ALWAYS;
	/* Two that complete when the core accepts them, and three that do not. */
	cr_assert_eq(send_with("x", 1, 0, &a), 0);
	cr_assert_eq(fi_tinject(f.ep, "x", 1, p.addr, 1), 0);
	cr_assert_eq(send_with("x", 1, FI_DELIVERY_COMPLETE, &a), 0);
	cr_assert_eq(send_with("x", 1, FI_DELIVERY_COMPLETE | FI_INJECT, &a), 0);
	cr_assert_eq(send_with("x", 1, FI_DELIVERY_COMPLETE | FI_COMPLETION,
			       &b), 0);
	for (int i = 0; i < 100; i++)
		fake_after_ms(&f, 10);
	/* Also sends whose success was not to be reported. */
	fake_err(&f, &a, FI_ETIMEDOUT);
	fake_err(&f, &a, FI_ETIMEDOUT);
	fake_err(&f, &b, FI_ETIMEDOUT);
	fake_quiet(&f);
	counted(3, 3, 0, 0);
	/* Refused calls never became operations. */
	cr_expect_eq(send_with("x", 1, 0, &a), -FI_EHOSTUNREACH);
	counted(3, 3, 0, 0);
	close_all();
}

BOTH(sends_that_never_left)
{
	fake_conf.connect_timeout = 200;
	open_with(kind, (struct fake_opt) { 0 });
	introduce();
	core->send_again = core->inject_again = FAKE_ALWAYS;
	for (int i = 0; i < 5; i++)
		cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, &a), 0);
	counted(1, 0, 0, 0);
	for (int i = 0; i < 100; i++)
		fake_after_ms(&f, 10);
	for (int i = 0; i < 5; i++)
		fake_err(&f, &a, FI_ETIMEDOUT);
	fake_quiet(&f);
	counted(1, 5, 0, 0);
	close_all();
}

/* ---- receives ---- */

BOTH(receives)
{
	static char buf[100], mem[200];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1,
				   .addr = FI_ADDR_UNSPEC, .tag = 2,
				   .context = &a };

	open_with(kind, (struct fake_opt) {
		.rx_bind = FI_SELECTIVE_COMPLETION });
	fake_hello(&f, &p);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, 0), 0);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_COMPLETION), 0);
	counted(0, 0, 0, 0);
	fake_tag(&f, &p, 2, mem, 8);
	fake_quiet(&f);
	counted(0, 0, 1, 0);
	fake_tag(&f, &p, 2, mem, 8);
	fake_comp(&f, &a);
	counted(0, 0, 2, 0);
	/* Unexpected messages count when they are received. */
	fake_tag(&f, &p, 2, mem, 8);
	fake_quiet(&f);
	counted(0, 0, 2, 0);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, 0), 0);
	counted(0, 0, 3, 0);
	/* Truncated, and cancelled. */
	cr_assert_eq(fi_trecvmsg(f.ep, &m, 0), 0);
	fake_tag(&f, &p, 2, mem, 200);
	fake_err(&f, &a, FI_ETRUNC);
	counted(0, 0, 3, 1);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, 0), 0);
	cr_assert_eq(fi_cancel(&f.ep->fid, &a), 0);
	fake_err(&f, &a, FI_ECANCELED);
	counted(0, 0, 3, 2);
	/* A peek is not a receive. */
	cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_PEEK), 0);
	fake_err(&f, &a, FI_ENOMSG);
	fake_tag(&f, &p, 2, mem, 8);
	fake_pass(&f);
	cr_assert_eq(fi_trecvmsg(f.ep, &m, FI_PEEK | FI_DISCARD), 0);
	fake_comp(&f, &a);
	counted(0, 0, 3, 2);
	close_all();
}

/* Messages are counted, not the buffer that is released. */
BOTH(multi_receives)
{
	static char buf[300], mem[200];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC, .context = &a };

	open_with(kind, (struct fake_opt) { 0 });
	fake_hello(&f, &p);
	cr_assert_eq(fi_recvmsg(f.ep, &m, FI_MULTI_RECV), 0);
	for (unsigned i = 1; i <= 3; i++) {
		fake_msg(&f, &p, mem, 90);
		fake_comp(&f, &a);
		counted(0, 0, i, 0);
	}
	close_all();
}

/* ---- values ---- */

static void open_values(void)
{
	fake_open(&f, NULL);
}

static void close_values(struct fid_cntr *cntr)
{
	cr_expect_eq(fi_close(&cntr->fid), 0);
	fake_close(&f);
}

static struct lnx_cntr *inside(struct fid_cntr *cntr)
{
	return lnx_container_of(cntr, struct lnx_cntr, fid);
}

Test(cntr, arithmetic)
{
	struct fid_cntr *cntr;
	struct lnx_cntr *c;

	open_values();
	cntr = new_cntr(FI_WAIT_NONE);
	c = inside(cntr);
	lnx_cntr_add_ok(c);
	lnx_cntr_add_ok(c);
	lnx_cntr_add_err(c);
	cr_expect_eq(fi_cntr_read(cntr), 2);
	cr_expect_eq(fi_cntr_readerr(cntr), 1);
	fi_cntr_add(cntr, 40);
	fi_cntr_adderr(cntr, 4);
	cr_expect_eq(fi_cntr_read(cntr), 42);
	cr_expect_eq(fi_cntr_readerr(cntr), 5);
	fi_cntr_set(cntr, 0);
	fi_cntr_seterr(cntr, 0);
	lnx_cntr_add_ok(c);
	cr_expect_eq(fi_cntr_read(cntr), 1);
	cr_expect_eq(fi_cntr_readerr(cntr), 0);
	fi_cntr_set(cntr, UINT64_MAX);
	lnx_cntr_add_ok(c);
	cr_expect_eq(fi_cntr_read(cntr), 0);
	/* It has no wait object. */
	cr_expect_eq(fi_cntr_wait(cntr, 0, 0), -FI_EINVAL);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), -FI_EINVAL);
	lnx_cntr_add_ok(NULL);
	lnx_cntr_add_err(NULL);
	close_values(cntr);
}

static void waits(enum fi_wait_obj obj)
{
	struct fid_cntr *cntr;
	struct lnx_cntr *c;

	open_values();
	cntr = new_cntr(obj);
	c = inside(cntr);
	cr_expect_eq(fi_cntr_wait(cntr, 0, -1), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	lnx_cntr_add_ok(c);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), 0);
	/* An error that came before the call is reported, once. */
	lnx_cntr_add_err(c);
	cr_expect_eq(fi_cntr_wait(cntr, 1, -1), 0, "it is reached");
	cr_expect_eq(fi_cntr_wait(cntr, 2, -1), -FI_EAVAIL);
	cr_expect_eq(fi_cntr_wait(cntr, 2, 0), -FI_ETIMEDOUT);
	/* An error that was read is not reported again. */
	lnx_cntr_add_err(c);
	cr_expect_eq(fi_cntr_readerr(cntr), 2);
	cr_expect_eq(fi_cntr_wait(cntr, 2, 0), -FI_ETIMEDOUT);
	fi_cntr_set(cntr, 10);
	cr_expect_eq(fi_cntr_wait(cntr, 10, -1), 0);
	cr_expect_eq(fi_cntr_wait(cntr, 11, 0), -FI_ETIMEDOUT);
	close_values(cntr);
}

Test(cntr, wait_with_descriptor) { waits(FI_WAIT_UNSPEC); }
Test(cntr, wait_with_yield) { waits(FI_WAIT_YIELD); }

Test(cntr, trywait)
{
	struct fid_cntr *cntr;
	struct lnx_cntr *c;

	open_values();
	cntr = new_cntr(FI_WAIT_FD);
	c = inside(cntr);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), 0);
	lnx_cntr_add_ok(c);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), -FI_EAGAIN);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), -FI_EAGAIN, "not read yet");
	fi_cntr_read(cntr);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), 0);
	/* Not every application reads errors. */
	lnx_cntr_add_err(c);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), -FI_EAGAIN);
	cr_expect_eq(lnx_cntr_trywait(&cntr->fid), 0);
	close_values(cntr);
}

/* For poll sets: what changed since the last query, unless the application has
 * set it since. */
Test(cntr, changed)
{
	uint64_t ok = 0, err = 0;
	struct fid_cntr *cntr;
	struct lnx_cntr *c;

	open_values();
	cntr = new_cntr(FI_WAIT_NONE);
	c = inside(cntr);
	cr_expect(!lnx_cntr_changed(c, &ok, &err));
	lnx_cntr_add_ok(c);
	cr_expect(lnx_cntr_changed(c, &ok, &err));
	cr_expect(!lnx_cntr_changed(c, &ok, &err));
	lnx_cntr_add_err(c);
	cr_expect(lnx_cntr_changed(c, &ok, &err));
	lnx_cntr_add_ok(c);
	fi_cntr_read(cntr);
	cr_expect(lnx_cntr_changed(c, &ok, &err), "reading the counter is not a query");
	lnx_cntr_add_ok(c);
	fi_cntr_add(cntr, 1);
	cr_expect(!lnx_cntr_changed(c, &ok, &err));
	lnx_cntr_add_err(c);
	fi_cntr_set(cntr, 1);
	cr_expect(lnx_cntr_changed(c, &ok, &err), "setting errors is separate");
	lnx_cntr_add_err(c);
	fi_cntr_seterr(cntr, 0);
	cr_expect(!lnx_cntr_changed(c, &ok, &err));
	close_values(cntr);
}

Test(cntr, refused)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_BYTES };
	struct fid_cntr *cntr;

	open_values();
	cr_expect_eq(lnx_cntr_open(&f.domain.fid, &attr, &cntr, NULL),
		     -FI_ENOSYS);
	attr = (struct fi_cntr_attr) { .wait_obj = FI_WAIT_MUTEX_COND };
	cr_expect_eq(lnx_cntr_open(&f.domain.fid, &attr, &cntr, NULL),
		     -FI_ENOSYS);
	attr = (struct fi_cntr_attr) { .flags = FI_PEER };
	cr_expect_eq(lnx_cntr_open(&f.domain.fid, &attr, &cntr, NULL),
		     -FI_EBADFLAGS);
	cntr = new_cntr(FI_WAIT_NONE);
	cr_expect_eq(lnx_cntr_bind(f.lnx, &cntr->fid, 0), -FI_EBADFLAGS);
	cr_expect_eq(lnx_cntr_bind(f.lnx, &cntr->fid, FI_SEND | FI_TAGGED),
		     -FI_EBADFLAGS);
	cr_expect_eq(lnx_cntr_bind(f.lnx, &cntr->fid, FI_SEND | FI_RECV), 0);
	cr_expect_eq(lnx_cntr_bind(f.lnx, &cntr->fid, FI_RECV | FI_WRITE),
		     -FI_EBUSY);
	cr_expect_eq(lnx_cntr_bind(f.lnx, &cntr->fid, FI_WRITE | FI_READ |
				   FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
	lnx_cntr_unbind(f.lnx);
	lnx_cntr_release(f.lnx);
	close_values(cntr);
}
