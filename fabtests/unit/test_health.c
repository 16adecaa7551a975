/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * policy/class, errclass, health, plan and rtt: against tables of times and
 * numbers that were computed by hand, and against a model that does not use the
 * code's fields.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/stats.h"
#include "policy/errclass.h"
#include "policy/fault.h"
#include "policy/health.h"
#include "policy/plan.h"
#include "policy/rtt.h"
#include "wire/addr.h"

#define MS		1000000ull
#define S		1000000000ull
#define NEVER		UINT64_MAX
#define T0		(7 * S)			/* any time except 0 */

/* The plan that the tables below were computed for; not the defaults. */
static struct lnx_health_plan plan_of(uint16_t step)
{
	struct lnx_health_plan p = {
		.first_ns = S, .max_ns = 900 * S, .spare_ns = 5 * S,
		.hold_ns = 200 * MS, .hold_max_ns = 1000 * MS,
		.window_ns = 10 * S, .ramp_ns = 500 * MS,
	};
	unsigned i;

	for (i = 0; i < LNX_CLASS_COUNT; i++)
		p.step[i] = step;
	return p;
}

static struct lnx_health fresh(void)
{
	struct lnx_health h;

	memset(&h, 0xa5, sizeof(h));
	lnx_health_init(&h);
	return h;
}

static unsigned fail(struct lnx_health *h, const struct lnx_health_plan *p,
		     uint64_t now)
{
	return lnx_health_fail(h, p, LNX_CLASS_NETWORK_TIMEOUT, now);
}

/* ---- classes ---- */

static const struct {
	unsigned class;
	const char *name;
	unsigned pays;
	bool sure;
} class_table[] = {
	{ LNX_CLASS_OK, "ok", 0, false },
	{ LNX_CLASS_LOCAL_INTERRUPT, "local_interrupt", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_LOCAL_DROPPED, "local_dropped", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_LOCAL_ABORTED, "local_aborted", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_LOCAL_NO_ROUTE, "local_no_route", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_LOCAL_ERROR, "local_error", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_LOCAL_TIMEOUT, "local_timeout", LNX_CHARGE_LOCAL, true },
	{ LNX_CLASS_REMOTE_ERROR, "remote_error", LNX_CHARGE_REMOTE, false },
	{ LNX_CLASS_REMOTE_DROPPED, "remote_dropped", LNX_CHARGE_REMOTE, true },
	{ LNX_CLASS_REMOTE_TIMEOUT, "remote_timeout", LNX_CHARGE_REMOTE, false },
	{ LNX_CLASS_NETWORK_TIMEOUT, "network_timeout", LNX_CHARGE_BOTH, false },
	{ LNX_CLASS_RESPONSE_TIMEOUT, "response_timeout", LNX_CHARGE_REMOTE, false },
};

Test(health, classes)
{
	unsigned i, charged;

	cr_assert_eq(LNX_ARRAY_SIZE(class_table), LNX_CLASS_COUNT);
	for (i = 0; i < LNX_CLASS_COUNT; i++) {
		const char *name = class_table[i].name;
		unsigned pays = class_table[i].pays;

		cr_expect_eq(class_table[i].class, i);
		cr_expect_str_eq(lnx_class_name(i), name);
		cr_expect_eq(lnx_class_find(name, strlen(name)), (int)i);
		cr_expect_eq(lnx_class_find(name, strlen(name) - 1), -1);
		cr_expect_eq(lnx_class_rows[i].pays, pays, "%s", name);
		cr_expect_eq(lnx_class_rows[i].sure, class_table[i].sure,
			     "%s", name);
		cr_expect(strlen(lnx_class_rows[i].help) > 5);
		/* The path is always charged, the only rail of a peer never. */
		charged = lnx_class_charges(i, 2, false);
		cr_expect_eq(charged, i ? pays | LNX_CHARGE_PATH : 0, "%s", name);
		charged = lnx_class_charges(i, 1, false);
		cr_expect_eq(charged, i ? (pays & LNX_CHARGE_LOCAL) | LNX_CHARGE_PATH :
			     0, "%s", name);
		charged = lnx_class_charges(i, 2, true);
		cr_expect_eq(charged, pays & LNX_CHARGE_LOCAL, "%s", name);
	}
	cr_expect_str_eq(lnx_class_name(LNX_CLASS_COUNT), "unknown");
	cr_expect_eq(lnx_class_charges(LNX_CLASS_COUNT, 9, false), 0);
	cr_expect_eq(lnx_class_find("Remote_DROPPED", 14),
		     LNX_CLASS_REMOTE_DROPPED);
	cr_expect_eq(lnx_class_find("", 0), -1);
}

/* Each class has a counter of its name, and changes no other. */
Test(health, classes_are_counted)
{
	const uint64_t *cell;
	struct lnx_stats stats;
	char name[64];
	unsigned c, i, hits;

	for (c = 0; c <= LNX_CLASS_COUNT; c++) {
		memset(&stats, 0, sizeof(stats));
		lnx_class_count(&stats, c);
		lnx_class_count(&stats, c);
		snprintf(name, sizeof(name), "%s_count", lnx_class_name(c));
		for (i = hits = 0; i < lnx_nstats; i++) {
			cell = (void *)((char *)&stats +
					lnx_stat_rows[i].offset);
			cr_expect_eq(*cell, strcmp(lnx_stat_rows[i].name, name)
				     ? 0 : 2, "%s", lnx_stat_rows[i].name);
			hits += *cell != 0;
		}
		cr_expect_eq(hits, c && c < LNX_CLASS_COUNT, "%s", name);
	}
}

/* ---- errors of cores ---- */

#define C	LNX_WHILE_CONNECT
#define P	LNX_WHILE_POST
#define SN	LNX_WHILE_SEND
#define R	LNX_WHILE_READ
#define W	LNX_WHILE_WRITE
#define TCP	LNX_PROV_TCP
#define RXM	LNX_PROV_TCP_RXM
#define VERBS	LNX_PROV_VERBS_RXM
#define SHM	LNX_PROV_SHM
#define CXI	LNX_PROV_CXI

/* Errors seen from these providers, and the class that they must get. */
static const struct {
	unsigned prov, op;
	int err, number;
	unsigned class;
} error_table[] = {
	/* seen: reset, far end silent; first error of a broken connection */
	{ TCP, SN, ENOTCONN, EPIPE, LNX_CLASS_REMOTE_DROPPED },
	{ RXM, SN, ENOTCONN, EPIPE, LNX_CLASS_REMOTE_DROPPED },
	/* seen: an operation after the failed one */
	{ TCP, SN, ECANCELED, ENOTCONN, LNX_CLASS_REMOTE_DROPPED },
	{ RXM, SN, ECANCELED, ENOTCONN, LNX_CLASS_REMOTE_DROPPED },
	{ RXM, SN, ECANCELED, 0, LNX_CLASS_REMOTE_DROPPED },
	/* seen: peer killed while it was read from */
	{ RXM, R, ECONNRESET, ECONNRESET, LNX_CLASS_REMOTE_DROPPED },
	{ RXM, R, ECANCELED, ENOTCONN, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, R, ECANCELED, ENOTCONN, LNX_CLASS_REMOTE_DROPPED },
	/* the peer may have all of a write */
	{ RXM, W, ECANCELED, ENOTCONN, LNX_CLASS_REMOTE_ERROR },
	{ TCP, W, ECONNRESET, ECONNRESET, LNX_CLASS_REMOTE_ERROR },
	{ TCP, W, ENOTCONN, EPIPE, LNX_CLASS_REMOTE_ERROR },
	{ TCP, W, EPIPE, EPIPE, LNX_CLASS_REMOTE_ERROR },
	{ CXI, W, ECONNABORTED, 0, LNX_CLASS_REMOTE_ERROR },
	/* the kernel has given up retransmitting */
	{ TCP, SN, ETIMEDOUT, ETIMEDOUT, LNX_CLASS_REMOTE_TIMEOUT },
	{ TCP, SN, ECANCELED, ETIMEDOUT, LNX_CLASS_REMOTE_TIMEOUT },
	{ RXM, W, ECANCELED, -ETIMEDOUT, LNX_CLASS_REMOTE_TIMEOUT },
	/* seen: no process, no host, SYN dropped: EAGAIN for ever */
	{ TCP, C, EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ RXM, C, -EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ VERBS, C, EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ CXI, C, EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ SHM, C, EAGAIN, 0, LNX_CLASS_REMOTE_DROPPED },
	/* returned by connect() at once */
	{ TCP, C, -ENETUNREACH, 0, LNX_CLASS_LOCAL_NO_ROUTE },
	{ TCP, C, -ENETDOWN, 0, LNX_CLASS_LOCAL_NO_ROUTE },
	{ RXM, C, -EADDRNOTAVAIL, 0, LNX_CLASS_LOCAL_NO_ROUTE },
	{ RXM, C, -ENODEV, 0, LNX_CLASS_LOCAL_ABORTED },
	{ TCP, C, -EPERM, 0, LNX_CLASS_LOCAL_DROPPED },
	{ TCP, C, -EHOSTUNREACH, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, C, -EHOSTDOWN, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, C, -ECONNREFUSED, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, C, -ECONNRESET, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, C, -ETIMEDOUT, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ TCP, C, -EMFILE, 0, LNX_CLASS_LOCAL_DROPPED },
	{ RXM, C, -ENOMEM, 0, LNX_CLASS_LOCAL_DROPPED },
	/* a queue that does not drain */
	{ TCP, P, EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ RXM, P, EAGAIN, 0, LNX_CLASS_NETWORK_TIMEOUT },
	{ VERBS, P, EAGAIN, 0, LNX_CLASS_LOCAL_TIMEOUT },
	{ CXI, P, EAGAIN, 0, LNX_CLASS_LOCAL_TIMEOUT },
	{ SHM, P, EAGAIN, 0, LNX_CLASS_REMOTE_TIMEOUT },
	{ TCP, P, -ENOMEM, 0, LNX_CLASS_LOCAL_ERROR },
	{ TCP, P, -EINVAL, 0, LNX_CLASS_LOCAL_ERROR },
	{ CXI, P, -ENOSYS, 0, LNX_CLASS_LOCAL_ERROR },
	/* the link went down */
	{ TCP, SN, ENETDOWN, ENETDOWN, LNX_CLASS_LOCAL_NO_ROUTE },
	{ RXM, SN, ECANCELED, ENETDOWN, LNX_CLASS_LOCAL_NO_ROUTE },
	{ RXM, SN, ECANCELED, ENETUNREACH, LNX_CLASS_LOCAL_NO_ROUTE },
	{ RXM, R, ECANCELED, ENETUNREACH, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, EHOSTUNREACH, EHOSTUNREACH, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, EHOSTDOWN, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, ECONNREFUSED, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, ECONNRESET, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, ECONNABORTED, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, ESHUTDOWN, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, EPIPE, 0, LNX_CLASS_REMOTE_DROPPED },
	{ TCP, SN, EINTR, 0, LNX_CLASS_LOCAL_INTERRUPT },
	{ TCP, SN, ENOMEM, 0, LNX_CLASS_LOCAL_ERROR },
	{ TCP, R, ENOBUFS, 0, LNX_CLASS_LOCAL_ERROR },
	{ TCP, R, EINVAL, 0, LNX_CLASS_LOCAL_ERROR },
	{ TCP, SN, EMSGSIZE, 0, LNX_CLASS_LOCAL_ERROR },
	{ TCP, W, EFAULT, 0, LNX_CLASS_LOCAL_ERROR },
	/* verbs, by work completion */
	{ VERBS, SN, EIO, 12, LNX_CLASS_NETWORK_TIMEOUT },
	{ VERBS, SN, EIO, 13, LNX_CLASS_REMOTE_TIMEOUT },
	{ VERBS, R, EIO, 20, LNX_CLASS_REMOTE_TIMEOUT },
	{ VERBS, R, EIO, 7, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, SN, EIO, 9, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, W, EIO, 10, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, SN, EIO, 11, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, R, EIO, 15, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, R, EIO, 16, LNX_CLASS_REMOTE_ERROR },
	{ VERBS, SN, EIO, 1, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 2, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 3, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 4, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 6, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 8, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 14, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 19, LNX_CLASS_LOCAL_ABORTED },
	{ VERBS, SN, EIO, 21, LNX_CLASS_LOCAL_ERROR },
	{ VERBS, SN, EIO, 99, LNX_CLASS_NETWORK_TIMEOUT },
	{ VERBS, SN, ECANCELED, 5, LNX_CLASS_REMOTE_ERROR },
	{ CXI, SN, EIO, 12, LNX_CLASS_NETWORK_TIMEOUT },
	{ CXI, SN, ECANCELED, 0, LNX_CLASS_REMOTE_ERROR },
	/* seen: shm, large message of a process that has died */
	{ SHM, R, EIO, -EIO, LNX_CLASS_REMOTE_ERROR },
	{ SHM, R, ESRCH, -ESRCH, LNX_CLASS_REMOTE_DROPPED },
	{ SHM, SN, ENOENT, 0, LNX_CLASS_REMOTE_DROPPED },
	{ SHM, R, EPERM, -EPERM, LNX_CLASS_LOCAL_ERROR },
	/* errors of the message, and unknown ones */
	{ TCP, SN, LNX_ETRUNC, 0, LNX_CLASS_OK },
	{ VERBS, W, -LNX_ENOKEY, 0, LNX_CLASS_OK },
	{ TCP, SN, 0, 0, LNX_CLASS_OK },
	{ TCP, SN, 4711, 0, LNX_CLASS_REMOTE_ERROR },
	{ TCP, SN, INT_MIN, INT_MIN, LNX_CLASS_REMOTE_ERROR },
	{ 12345, SN, ENOTCONN, 0, LNX_CLASS_REMOTE_DROPPED },
	{ LNX_PROV_NONE, 0, ENOTCONN, 0, LNX_CLASS_REMOTE_ERROR },
};

Test(health, errors)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(error_table); i++) {
		unsigned class = lnx_errclass(error_table[i].prov,
					      error_table[i].op,
					      error_table[i].err,
					      error_table[i].number);

		cr_expect_eq(class, error_table[i].class, "row %u: %s, not %s",
			     i, lnx_class_name(class),
			     lnx_class_name(error_table[i].class));
	}
}

/* An error from FI_LNX_FAULT has the class that the rule names, whatever reports it. */
Test(health, errors_made_up)
{
	unsigned c, prov;

	for (c = 1; c < LNX_CLASS_COUNT; c++) {
		int number = LNX_FAULT_ERRNO_BASE + (int)c;

		for (prov = 0; prov <= LNX_PROV_MAX; prov++) {
			cr_expect_eq(lnx_errclass(prov, SN, ETIMEDOUT, number),
				     c);
			cr_expect_eq(lnx_errclass(prov, W, EIO, number), c);
		}
	}
	cr_expect_eq(lnx_errclass(TCP, SN, ETIMEDOUT, LNX_FAULT_ERRNO_BASE),
		     LNX_CLASS_REMOTE_TIMEOUT);
}

/* No row is hidden by earlier ones, and the table above has a case for each. */
Test(health, each_row_of_errors_decides)
{
	static const unsigned provs[] = { TCP, RXM, VERBS, SHM, CXI };
	static const unsigned ops[] = { C, P, SN, R, W };
	const struct lnx_error_row *row, *r;
	unsigned i, j, k, found, tested;

	for (i = 0; i < lnx_nerrors; i++) {
		row = &lnx_error_rows[i];
		for (j = found = 0; j < 25 && !found; j++) {
			unsigned bit = 1u << provs[j % 5], op = ops[j / 5];
			int err = row->err ? row->err : 4711;
			int number = row->number ? row->number : 4711;

			for (r = lnx_error_rows; r < row; r++)
				if ((r->provs & bit) && (r->ops & op) &&
				    (!r->err || r->err == err) &&
				    (!r->number || r->number == number))
					break;
			found = r == row && (row->provs & bit) &&
				(row->ops & op);
		}
		cr_expect(found, "row %u, %s of %s, decides nothing", i,
			  row->err_name, row->from);
		for (k = tested = 0; k < LNX_ARRAY_SIZE(error_table); k++) {
			int err = error_table[k].err == INT_MIN ? INT_MAX :
				  abs(error_table[k].err);
			int number = error_table[k].number == INT_MIN ?
				     INT_MAX : abs(error_table[k].number);

			if (error_table[k].prov > 31)
				continue;
			for (r = lnx_error_rows; r < row; r++)
				if ((r->provs & 1u << error_table[k].prov) &&
				    (r->ops & error_table[k].op) &&
				    (!r->err || r->err == err) &&
				    (!r->number || r->number == number))
					break;
			tested += r == row && err &&
				  (r->provs & 1u << error_table[k].prov) &&
				  (r->ops & error_table[k].op) &&
				  (!r->err || r->err == err) &&
				  (!r->number || r->number == number);
		}
		cr_expect(tested, "row %u, %s of %s while %s, is not tested", i,
			  row->err_name, row->from, row->during);
	}
	row = &lnx_error_rows[lnx_nerrors - 1];
	cr_assert(row->provs == LNX_FROM_ANY && row->ops == LNX_WHILE_ANY &&
		  !row->err && !row->number, "the last row does not fit all");
}

/* ---- value and state ---- */

Test(health, starts_well)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	cr_assert_eq(h.value, 1000);
	cr_assert(!h.down && !h.fatal);
	cr_assert(lnx_health_usable(&h, 0));
	cr_assert_eq(lnx_health_weight(&h, &p, 0), 1000);
	cr_assert_eq(lnx_health_weight(&h, &p, T0), 1000);
	cr_assert_eq(lnx_health_next(&h, &p, true, S), NEVER);
	cr_assert_eq(lnx_health_good(&h, &p, T0), 0);
	cr_assert_eq(h.value, 1000);
}

/* Down only at 0, up only at 1000, and each change is reported once. */
Test(health, hysteresis)
{
	struct lnx_health_plan p = plan_of(300);
	struct lnx_health h = fresh();
	static const struct {
		bool good;
		unsigned value, change;
		bool down;
	} steps[] = {
		{ false, 700, LNX_HEALTH_VALUE | LNX_HEALTH_SICK, false },
		{ false, 400, LNX_HEALTH_VALUE, false },
		{ false, 100, LNX_HEALTH_VALUE, false },
		{ true, 400, LNX_HEALTH_VALUE, false },
		{ true, 700, LNX_HEALTH_VALUE, false },
		{ true, 1000, LNX_HEALTH_VALUE | LNX_HEALTH_WELL, false },
		{ true, 1000, 0, false },
		{ false, 700, LNX_HEALTH_VALUE | LNX_HEALTH_SICK, false },
		{ false, 400, LNX_HEALTH_VALUE, false },
		{ false, 100, LNX_HEALTH_VALUE, false },
		{ false, 0, LNX_HEALTH_VALUE | LNX_HEALTH_DOWN, true },
		{ false, 0, 0, true },
		{ true, 300, LNX_HEALTH_VALUE, true },
		{ true, 600, LNX_HEALTH_VALUE, true },
		{ true, 900, LNX_HEALTH_VALUE, true },
		{ false, 600, LNX_HEALTH_VALUE | LNX_HEALTH_FLAP, true },
		{ true, 900, LNX_HEALTH_VALUE, true },
		{ true, 1000, LNX_HEALTH_VALUE | LNX_HEALTH_WELL |
			      LNX_HEALTH_UP, false },
		{ true, 1000, 0, false },
	};
	unsigned i, change;

	for (i = 0; i < LNX_ARRAY_SIZE(steps); i++) {
		change = steps[i].good ? lnx_health_good(&h, &p, T0 + i * S) :
			 fail(&h, &p, T0 + i * S);
		cr_assert_eq(change, steps[i].change, "step %u: %#x", i, change);
		cr_assert_eq(h.value, steps[i].value, "step %u", i);
		cr_assert_eq(h.down, steps[i].down, "step %u", i);
	}
}

Test(health, steps_by_class)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	unsigned c, change;

	for (c = 1; c < LNX_CLASS_COUNT; c++)
		p.step[c] = (uint16_t)(c * 10);
	p.step[LNX_CLASS_LOCAL_ERROR] = 0;
	p.step[LNX_CLASS_OK] = 7;
	p.retries = 9;			/* not used with these steps */
	for (c = 0; c <= LNX_CLASS_COUNT; c++) {
		lnx_health_init(&h);
		change = lnx_health_fail(&h, &p, c, T0);
		if (!c || c == LNX_CLASS_LOCAL_ERROR || c == LNX_CLASS_COUNT) {
			cr_expect_eq(change, 0);
			cr_expect_eq(h.value, 1000);
			cr_expect_eq(lnx_health_next(&h, &p, false, S), NEVER);
			continue;
		}
		cr_expect_eq(change, LNX_HEALTH_VALUE | LNX_HEALTH_SICK);
		cr_expect_eq(h.value, 1000 - c * 10, "%u", c);
		lnx_health_good(&h, &p, T0 + 1);
		cr_expect_eq(h.value, 1000 - c * 10 + 7);
	}
	/* The largest steps do not leave the range. */
	p = plan_of(1000);
	lnx_health_init(&h);
	cr_expect_eq(fail(&h, &p, T0), LNX_HEALTH_VALUE | LNX_HEALTH_SICK |
		     LNX_HEALTH_DOWN);
	cr_expect_eq(h.value, 0);
	cr_expect_eq(lnx_health_good(&h, &p, T0 + S),
		     LNX_HEALTH_VALUE | LNX_HEALTH_WELL | LNX_HEALTH_UP);
	cr_expect_eq(h.value, 1000);
}

Test(health, off)
{
	struct lnx_health_plan p = plan_of(0);
	struct lnx_health h = fresh();
	unsigned c;

	for (c = 0; c < LNX_CLASS_COUNT; c++)
		cr_assert_eq(lnx_health_fail(&h, &p, c, T0), 0);
	cr_assert_eq(h.value, 1000);
	cr_assert_eq(lnx_health_next(&h, &p, true, S), NEVER);
	/* A value that is set does not change. */
	lnx_health_set(&h, &p, 500, T0);
	cr_assert_eq(lnx_health_good(&h, &p, T0 + 1), 0);
	cr_assert_eq(h.value, 500);
	lnx_health_set(&h, &p, 1000, T0);
	/* But a link that is down makes it down. */
	cr_assert_eq(lnx_health_link(&h, &p, true, T0), LNX_HEALTH_DOWN);
	cr_assert_eq(lnx_health_weight(&h, &p, T0), 0);
	cr_assert_eq(lnx_health_link(&h, &p, false, T0 + S), LNX_HEALTH_UP);
}

/* ---- pings ---- */

/* Run from `from` until `n` pings were sent; at[] gets their times after T0. */
static void pings(struct lnx_health *h, const struct lnx_health_plan *p,
		  bool spare, uint64_t timeout, uint64_t from, unsigned n,
		  uint64_t *at)
{
	uint64_t now = from;
	unsigned i = 0, guard = 0;

	while (i < n) {
		uint64_t next = lnx_health_next(h, p, spare, timeout);

		cr_assert_lt(guard++, 100000u);
		cr_assert_neq(next, NEVER);
		/* Nothing is due earlier. */
		if (next > now) {
			cr_assert_eq(lnx_health_poll(h, p, spare, timeout,
						     next - 1),
				     LNX_HEALTH_NOTHING);
			now = next;
		}
		switch (lnx_health_poll(h, p, spare, timeout, now)) {
		case LNX_HEALTH_PING:
			at[i++] = now - T0;
			cr_assert_eq(lnx_health_poll(h, p, spare, timeout, now),
				     LNX_HEALTH_NOTHING, "two at once");
			break;
		case LNX_HEALTH_LOST:
			break;
		default:
			cr_assert_fail("nothing at the time that it returned");
		}
	}
}

static void expect_pings(const char *what, struct lnx_health *h,
			 const struct lnx_health_plan *p, bool spare,
			 const uint64_t *want, unsigned n, uint64_t unit)
{
	uint64_t at[64];
	unsigned i;

	cr_assert_leq(n, LNX_ARRAY_SIZE(at));
	pings(h, p, spare, 10 * MS, T0, n, at);
	for (i = 0; i < n; i++)
		cr_expect_eq(at[i], want[i] * unit, "%s: ping %u after %llu, "
			     "not %llu", what, i, (unsigned long long)at[i],
			     (unsigned long long)(want[i] * unit));
}

/* LNet's own table, in seconds. */
Test(health, cadence_unanswered)
{
	static const uint64_t lnet[] = { 1, 3, 7, 15, 31, 63, 127, 255, 511,
					 1023, 1923, 2823 };
	static const uint64_t max4[] = { 1, 3, 7, 11, 15 };
	static const uint64_t spare5[] = { 1, 3, 7, 12, 17, 22 };
	static const uint64_t admin[] = { 0, 2, 6, 14, 30 };
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	fail(&h, &p, T0);
	expect_pings("lnet", &h, &p, false, lnet, LNX_ARRAY_SIZE(lnet), S);
	lnx_health_init(&h);
	fail(&h, &p, T0);
	expect_pings("spare", &h, &p, true, spare5, LNX_ARRAY_SIZE(spare5), S);
	lnx_health_init(&h);
	lnx_health_set(&h, &p, 500, T0);
	expect_pings("set", &h, &p, false, admin, LNX_ARRAY_SIZE(admin), S);
	p.max_ns = 4 * S;
	lnx_health_init(&h);
	fail(&h, &p, T0);
	expect_pings("max 4", &h, &p, false, max4, LNX_ARRAY_SIZE(max4), S);
	/* The cap for drained paths is not larger than the cap. */
	lnx_health_init(&h);
	fail(&h, &p, T0);
	expect_pings("max 4", &h, &p, true, max4, LNX_ARRAY_SIZE(max4), S);
	/* The same in our units. */
	p.first_ns = 100 * MS;
	p.max_ns = 900 * S;
	lnx_health_init(&h);
	fail(&h, &p, T0);
	expect_pings("ms", &h, &p, false, lnet, 9, 100 * MS);
}

/* For ever: no number of pings ends it, and the exponent does not wrap. */
Test(health, endless)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t at[600];
	unsigned i;

	fail(&h, &p, T0);
	pings(&h, &p, false, 10 * MS, T0, 600, at);
	for (i = 11; i < 600; i++)
		cr_assert_eq(at[i] - at[i - 1], 900 * S, "ping %u", i);
	cr_assert_eq(h.value, 900);
}

/* More failures make a ping neither later nor earlier. */
Test(health, failures_leave_the_pings_alone)
{
	static const uint64_t want[] = { 1, 3, 7, 15 };
	struct lnx_health_plan p = plan_of(10);
	struct lnx_health h = fresh();
	uint64_t at[1], t;
	unsigned i;

	fail(&h, &p, T0);
	for (i = 0, t = T0; i < LNX_ARRAY_SIZE(want); i++) {
		fail(&h, &p, t + 1);
		fail(&h, &p, t + 2);
		pings(&h, &p, false, 10 * MS, t, 1, at);
		cr_assert_eq(at[0], want[i] * S);
		t = T0 + at[0];
	}
}

/* Answered: a ping every first_ns, each worth one step. */
Test(health, cadence_answered)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	unsigned i, change = 0;
	uint64_t at[1], t;

	for (i = 0; i < 10; i++)
		fail(&h, &p, T0);
	cr_assert(h.down && h.value == 0);
	pings(&h, &p, false, 10 * MS, T0, 5, (uint64_t[5]){ 0 });
	t = h.mark_ns;
	cr_assert_eq(t, T0 + 31 * S);
	for (i = 1; i <= 10; i++) {
		change = lnx_health_pong(&h, &p, t + 3 * MS);
		cr_assert_eq(h.value, i * 100);
		if (i == 10)
			break;
		cr_assert_eq(change, LNX_HEALTH_VALUE);
		pings(&h, &p, false, 10 * MS, t, 1, at);
		cr_assert_eq(T0 + at[0], t + S, "ping %u", i);
		t += S;
	}
	cr_assert_eq(change, LNX_HEALTH_VALUE | LNX_HEALTH_WELL |
		     LNX_HEALTH_UP);
	cr_assert_eq(lnx_health_next(&h, &p, false, 10 * MS), NEVER);
}

/* One at a time: no ping while another may still be answered, whatever the pause is. */
Test(health, one_ping_at_a_time)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t t = T0 + S;

	fail(&h, &p, T0);
	cr_assert_eq(lnx_health_poll(&h, &p, false, 30 * S, t),
		     LNX_HEALTH_PING);
	cr_assert_eq(lnx_health_next(&h, &p, false, 30 * S), t + 30 * S);
	cr_assert_eq(lnx_health_poll(&h, &p, false, 30 * S, t + 30 * S - 1),
		     LNX_HEALTH_NOTHING);
	cr_assert_eq(lnx_health_poll(&h, &p, false, 30 * S, t + 30 * S),
		     LNX_HEALTH_LOST);
	/* Its pause has passed long ago. */
	cr_assert_eq(lnx_health_poll(&h, &p, false, 30 * S, t + 30 * S),
		     LNX_HEALTH_PING);
	/* A late pong proves that the path works, and ends the wait. */
	cr_assert_eq(lnx_health_pong(&h, &p, t + 31 * S), LNX_HEALTH_VALUE |
		     LNX_HEALTH_WELL);
	cr_assert_eq(lnx_health_next(&h, &p, false, 30 * S), NEVER);
	/* A pong that was not waited for does nothing. */
	cr_assert_eq(lnx_health_pong(&h, &p, t + 32 * S), 0);
}

/* Other traffic restarts the pauses and restores the full value. */
Test(health, traffic_resets_the_pauses)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t at[5];

	fail(&h, &p, T0);
	fail(&h, &p, T0);
	pings(&h, &p, false, 10 * MS, T0, 5, at);
	cr_assert_eq(at[4], 31 * S);
	cr_assert_eq(lnx_health_poll(&h, &p, false, 10 * MS, T0 + 40 * S),
		     LNX_HEALTH_LOST);
	cr_assert_eq(lnx_health_next(&h, &p, false, 10 * MS), T0 + 63 * S);
	lnx_health_good(&h, &p, T0 + 40 * S);
	cr_assert_eq(lnx_health_next(&h, &p, false, 10 * MS), T0 + 32 * S);
	cr_assert_eq(lnx_health_good(&h, &p, T0 + 40 * S), LNX_HEALTH_VALUE |
		     LNX_HEALTH_WELL);
	cr_assert_eq(lnx_health_poll(&h, &p, false, 10 * MS, T0 + 99 * S),
		     LNX_HEALTH_NOTHING);
}

/* Each of these ends a series of pauses; the next series starts with the first one. */
Test(health, rows_start_anew)
{
	static const uint64_t failed[] = { 1, 3, 7, 15 };
	static const uint64_t at_once[] = { 0, 2, 6, 14 };
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t at[4];
	unsigned i;

	for (i = 0; i < 4; i++) {
		lnx_health_init(&h);
		fail(&h, &p, T0 - 99 * S);
		pings(&h, &p, false, 10 * MS, T0 - 99 * S, 4, at);
		if (i & 1) {
			lnx_health_link(&h, &p, true, T0 - 10 * S);
			lnx_health_link(&h, &p, false, T0);
		} else {
			lnx_health_set(&h, &p, 900, T0);
		}
		/* Well again before the first ping. */
		if (i & 2) {
			cr_assert(lnx_health_good(&h, &p, T0) &
				  LNX_HEALTH_WELL);
			if (i & 1) {
				lnx_health_link(&h, &p, true, T0);
				lnx_health_link(&h, &p, false, T0);
			}
			fail(&h, &p, T0);
		}
		expect_pings(i & 2 ? "failed" : "at once", &h, &p, false,
			     i & 2 ? failed : at_once, 4, S);
	}
	/* Set to 1000 while a ping was pending. */
	lnx_health_set(&h, &p, 1000, T0);
	fail(&h, &p, T0);
	expect_pings("set to well", &h, &p, false, failed, 4, S);
}

/* ---- set by the administrator ---- */

Test(health, set_by_admin)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	cr_assert_eq(lnx_health_set(&h, &p, 0, T0), LNX_HEALTH_VALUE |
		     LNX_HEALTH_SICK | LNX_HEALTH_DOWN);
	cr_assert_eq(lnx_health_next(&h, &p, false, S), T0, "not at once");
	cr_assert_eq(lnx_health_set(&h, &p, 999, T0 + S), LNX_HEALTH_VALUE);
	cr_assert(h.down, "values between change nothing");
	cr_assert_eq(lnx_health_next(&h, &p, false, S), T0 + S);
	cr_assert_eq(lnx_health_set(&h, &p, 1000, T0 + 2 * S),
		     LNX_HEALTH_VALUE | LNX_HEALTH_WELL | LNX_HEALTH_UP);
	cr_assert_eq(lnx_health_weight(&h, &p, T0 + 2 * S), 1000,
		     "an earlier failure still counts");
	cr_assert_eq(lnx_health_next(&h, &p, false, S), NEVER);
	cr_assert_eq(lnx_health_set(&h, &p, 1, T0 + 3 * S),
		     LNX_HEALTH_VALUE | LNX_HEALTH_SICK);
	cr_assert(!h.down);
	cr_assert_eq(lnx_health_weight(&h, &p, T0 + 3 * S), 1);
	cr_assert_eq(lnx_health_set(&h, &p, 123456, T0 + 3 * S),
		     LNX_HEALTH_VALUE | LNX_HEALTH_WELL);
	cr_assert_eq(h.value, 1000);
	/* A link that is down stays down. */
	lnx_health_link(&h, &p, true, T0 + 4 * S);
	cr_assert_eq(lnx_health_set(&h, &p, 1000, T0 + 5 * S), 0);
	cr_assert(h.down && h.fatal);
	cr_assert(!lnx_health_usable(&h, T0 + 50 * S));
}

/* Setting 1000 clears earlier failures; setting less does not. */
Test(health, set_by_admin_and_holding)
{
	struct lnx_health_plan p = plan_of(1000);
	struct lnx_health h = fresh();
	unsigned i;

	for (i = 0; i < 3; i++) {
		fail(&h, &p, T0);
		lnx_health_good(&h, &p, T0);
		cr_assert_eq(h.ready_ns, T0 + ((200 * MS) << i));
	}
	fail(&h, &p, T0);
	lnx_health_set(&h, &p, 500, T0);
	lnx_health_good(&h, &p, T0);
	cr_assert(!h.down);
	cr_assert_eq(h.ready_ns, T0 + 1000 * MS);
	fail(&h, &p, T0);
	lnx_health_set(&h, &p, 1000, T0);
	cr_assert(lnx_health_usable(&h, T0));
	fail(&h, &p, T0);
	lnx_health_good(&h, &p, T0);
	cr_assert_eq(h.ready_ns, T0 + 200 * MS);
}

/* ---- links ---- */

Test(health, link_leaves_the_number)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	cr_assert_eq(lnx_health_link(&h, &p, true, T0), LNX_HEALTH_DOWN);
	cr_assert_eq(lnx_health_link(&h, &p, true, T0), 0);
	cr_assert_eq(h.value, 1000);
	cr_assert(!lnx_health_usable(&h, T0));
	cr_assert_eq(lnx_health_next(&h, &p, false, S), NEVER);
	cr_assert_eq(lnx_health_link(&h, &p, false, T0 + S), LNX_HEALTH_UP);
	cr_assert_eq(h.value, 1000);
	cr_assert_eq(lnx_health_link(&h, &p, false, T0 + S), 0);
}

Test(health, link_back_with_less_than_all_stays_down)
{
	struct lnx_health_plan p = plan_of(500);
	struct lnx_health h = fresh();

	fail(&h, &p, T0);
	cr_assert_eq(lnx_health_link(&h, &p, true, T0 + 1), LNX_HEALTH_DOWN);
	cr_assert_eq(lnx_health_next(&h, &p, false, S), NEVER,
		     "pings over a link that is down");
	/* A success that was already under way proves nothing. */
	cr_assert_eq(lnx_health_good(&h, &p, T0 + 2), 0);
	cr_assert_eq(h.value, 500);
	cr_assert_eq(lnx_health_link(&h, &p, false, T0 + 9 * S), 0);
	cr_assert(h.down);
	cr_assert_eq(lnx_health_next(&h, &p, false, S), T0 + 9 * S,
		     "not pinged at once");
	cr_assert_eq(lnx_health_poll(&h, &p, false, S, T0 + 9 * S),
		     LNX_HEALTH_PING);
	cr_assert_eq(lnx_health_pong(&h, &p, T0 + 9 * S + MS),
		     LNX_HEALTH_VALUE | LNX_HEALTH_WELL | LNX_HEALTH_UP);
	/* The hold-down runs from the return of the link, not from full health. */
	cr_assert(!lnx_health_usable(&h, T0 + 9 * S + 200 * MS - 1));
	cr_assert(lnx_health_usable(&h, T0 + 9 * S + 200 * MS));
}

/* ---- hold-down ---- */

Test(health, hold_doubles_up_to_a_limit_and_decays)
{
	/* hold-down in ms after the return; how long it was usable before the
	 * link went down */
	static const struct { uint64_t used_ms, hold_ms; } turns[] = {
		{ 0, 200 }, { 1, 400 }, { 9999, 800 }, { 5, 1000 }, { 5, 1000 },
		{ 10000, 1000 },	/* one halved, one doubled */
		{ 20000, 800 },		/* two halved, one doubled */
		{ 10000, 800 }, { 30000, 200 }, { 1000000, 200 }, { 5, 400 },
	};
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t now = T0;
	unsigned i, change;

	for (i = 0; i < LNX_ARRAY_SIZE(turns); i++) {
		now += turns[i].used_ms * MS;
		change = lnx_health_link(&h, &p, true, now);
		cr_assert_eq(!!(change & LNX_HEALTH_FLAP),
			     turns[i].hold_ms > 200, "turn %u", i);
		now += 50 * MS;
		lnx_health_link(&h, &p, false, now);
		now += turns[i].hold_ms * MS;
		cr_assert(!lnx_health_usable(&h, now - 1), "turn %u: early", i);
		cr_assert(lnx_health_usable(&h, now), "turn %u: late", i);
	}
	cr_assert_eq(lnx_health_hold_ns(&p, 0), 0);
	cr_assert_eq(lnx_health_hold_ns(&p, 200), 1000 * MS);
	p.hold_ns = 0;
	cr_assert_eq(lnx_health_hold_ns(&p, 5), 0);
}

/* A link event and timeouts report the same fault: it counts once. */
Test(health, one_fault_is_one_flap)
{
	struct lnx_health_plan p = plan_of(500);
	struct lnx_health h = fresh();

	fail(&h, &p, T0);
	fail(&h, &p, T0);
	cr_assert(h.down);
	cr_assert_eq(lnx_health_link(&h, &p, true, T0 + MS), 0);
	fail(&h, &p, T0 + 2 * MS);
	lnx_health_link(&h, &p, false, T0 + S);
	lnx_health_good(&h, &p, T0 + S);
	lnx_health_good(&h, &p, T0 + S);
	cr_assert(!h.down);
	cr_assert(!lnx_health_usable(&h, T0 + 1200 * MS - 1));
	cr_assert(lnx_health_usable(&h, T0 + 1200 * MS));
}

/* A failure during the hold-down starts a new one. */
Test(health, failure_while_held)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	lnx_health_link(&h, &p, true, T0);
	lnx_health_link(&h, &p, false, T0 + S);
	fail(&h, &p, T0 + 1150 * MS);
	cr_assert(!h.down);
	cr_assert(!lnx_health_usable(&h, T0 + 1350 * MS - 1));
	cr_assert(lnx_health_usable(&h, T0 + 1350 * MS));
	/* Afterwards a failure only lowers the health. */
	fail(&h, &p, T0 + 1400 * MS);
	cr_assert(lnx_health_usable(&h, T0 + 1400 * MS));
}

/* Without link events the hold-down runs from the first answer. */
Test(health, hold_runs_while_pings_are_answered)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	unsigned i;

	p.hold_ns = 5 * S;
	p.hold_max_ns = 60 * S;
	for (i = 0; i < 10; i++)
		fail(&h, &p, T0);
	for (i = 0; i < 10; i++)
		lnx_health_pong(&h, &p, T0 + (10 + i) * S);
	/* Up after 9 s, which is longer than the hold-down. */
	cr_assert(!h.down);
	cr_assert(lnx_health_usable(&h, T0 + 19 * S));
	/* And its share grows from there, not from the end of the hold-down. */
	cr_assert_eq(lnx_health_weight(&h, &p, T0 + 19 * S), 100);
}

/* A link that goes up and down at 5 Hz for a minute carries nothing meanwhile,
 * and is fully used soon afterwards. */
Test(health, flapping_at_5_hz_is_damped)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t t, used = 0, end = T0 + 60 * S, full = 0;
	unsigned ups = 0;

	for (t = T0; t < end; t += MS) {
		bool fatal = (t - T0) / (100 * MS) % 2 == 0;

		ups += !!(lnx_health_link(&h, &p, fatal, t) & LNX_HEALTH_UP);
		used += lnx_health_weight(&h, &p, t) > 0;
	}
	cr_expect_eq(ups, 300);
	cr_expect_eq(used, 0, "used for %llu ms", (unsigned long long)used);
	lnx_health_link(&h, &p, false, end);
	for (t = end; !full && t < end + 60 * S; t += MS)
		if (lnx_health_weight(&h, &p, t) == 1000)
			full = t - end;
	cr_expect_geq(full, 1000 * MS);
	cr_expect_leq(full, 2000 * MS);

	/* Up for half a second in each second: used once or twice, then not any
	 * more. */
	lnx_health_init(&h);
	for (t = T0, used = 0; t < end; t += MS) {
		lnx_health_link(&h, &p, (t - T0) / (500 * MS) % 2 == 0, t);
		used += lnx_health_weight(&h, &p, t) > 0;
	}
	cr_expect_eq(used, 300 + 100, "used for %llu ms",
		     (unsigned long long)used);
}

/* ---- weight ---- */

Test(health, ramp)
{
	/* ms after it became usable; weight in thousandths */
	static const unsigned table[][2] = {
		{ 0, 100 }, { 1, 101 }, { 50, 190 }, { 100, 280 }, { 250, 550 },
		{ 400, 820 }, { 499, 998 }, { 500, 1000 }, { 5000, 1000 },
	};
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	uint64_t at = T0 + 1200 * MS;
	unsigned i, w, last;

	lnx_health_link(&h, &p, true, T0);
	lnx_health_link(&h, &p, false, T0 + S);
	cr_assert_eq(lnx_health_weight(&h, &p, at - 1), 0);
	for (i = 0; i < LNX_ARRAY_SIZE(table); i++)
		cr_expect_eq(lnx_health_weight(&h, &p, at + table[i][0] * MS),
			     table[i][1], "after %u ms", table[i][0]);
	for (i = last = 0; i < 600; i++, last = w) {
		w = lnx_health_weight(&h, &p, at + i * MS);
		cr_assert_geq(w, last);
	}
	/* Weight by health value, too; it is never 0. */
	for (i = last = 1; i <= 1000; i++, last = w) {
		h.value = (uint16_t)i;
		w = lnx_health_weight(&h, &p, at + 250 * MS);
		cr_assert_geq(w, last);
		cr_assert_eq(w, LNX_MAX(i * 550 / 1000, 1u));
	}
	p.ramp_ns = 0;
	cr_assert_eq(lnx_health_weight(&h, &p, at), 1000);
}

Test(health, weight_of_path)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h[3];
	unsigned i, j;

	for (i = 0; i < 3; i++) {
		for (j = 0; j < 3; j++)
			lnx_health_init(&h[j]);
		cr_assert_eq(lnx_health_weight_of_path(&h[0], &h[1], &h[2], &p,
						       T0), 1000);
		fail(&h[i], &p, T0);
		cr_assert_eq(lnx_health_weight_of_path(&h[0], &h[1], &h[2], &p,
						       T0), 900, "%u", i);
		cr_assert_eq(lnx_health_weight_of_path(&h[0], &h[1], NULL, &p,
						       T0), i == 2 ? 1000 : 900);
		lnx_health_set(&h[i], &p, 0, T0);
		cr_assert_eq(lnx_health_weight_of_path(&h[0], &h[1], &h[2], &p,
						       T0), 0);
	}
}

/* A rail that was down may be in its hold time: only paths that were down wait for it. */
Test(health, weight_of_a_path_that_never_failed)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health path, rail;
	uint64_t t = T0;
	unsigned i;

	lnx_health_init(&path);
	lnx_health_init(&rail);
	for (i = 0; i < 10; i++)
		fail(&rail, &p, t);
	for (i = 0; i < 10; i++)
		lnx_health_good(&rail, &p, t);
	cr_assert_eq(lnx_health_weight(&rail, &p, t), 0);
	cr_expect_eq(lnx_health_weight_of_path(&path, &rail, NULL, &p, t), 1000);
	cr_expect_eq(lnx_health_weight_of_path(&path, &path, &rail, &p, t), 1000);
	path.ready_ns = t - p.ramp_ns - 1;
	cr_expect_eq(lnx_health_weight_of_path(&path, &rail, NULL, &p, t), 0);
	lnx_health_init(&path);
	lnx_health_link(&rail, &p, true, t);
	cr_expect_eq(lnx_health_weight_of_path(&path, &rail, NULL, &p, t), 0);
}

/* ---- any order of events ---- */

static uint64_t state;

static uint64_t draw(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 8) % n;
}

/*
 * A second statement of the rules, independent of the code: the value, up or
 * down, and the changes that each call reports; pings never stop, never
 * overlap, and are never sent over a link that is down.
 */
Test(health, model)
{
	const char *text = getenv("LNX_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	unsigned run, i;

	state = seed * 2 + 1;
	fprintf(stderr, "health::model: LNX_TEST_SEED=%llu\n",
		(unsigned long long)seed);
	for (run = 0; run < 200; run++) {
		struct lnx_health_plan p = plan_of((uint16_t)draw(1001));
		struct lnx_health h = fresh();
		int value = 1000, want;
		bool down = false, fatal = false, spare = draw(2);
		uint64_t now = T0, ping = 0, timeout = draw(20 * S) + 1, next;
		unsigned change;

		p.step[LNX_CLASS_OK] = (uint16_t)(1 + draw(1000));
		for (i = 0; i < 500; i++) {
			bool was = down;

			now += draw(draw(10) ? 200 * MS : 100 * S);
			want = value;
			switch (draw(6)) {
			case 0: case 1:
				change = fail(&h, &p, now);
				if (p.step[1])
					want = LNX_MAX(value - p.step[1], 0);
				down |= !want;
				break;
			case 2:
				if (!fatal)
					want = LNX_MIN(value + p.step[0], 1000);
				if (draw(2)) {
					ping = 0;
					change = lnx_health_pong(&h, &p, now);
				} else {
					change = lnx_health_good(&h, &p, now);
				}
				down = down && (fatal || want < 1000);
				break;
			case 3:
				fatal = draw(2);
				change = lnx_health_link(&h, &p, fatal, now);
				down = fatal || (down && value < 1000);
				break;
			case 4:
				if (draw(4))
					continue;
				want = (int)draw(4) * 500;
				change = lnx_health_set(&h, &p, (unsigned)want,
							now);
				ping = 0;
				want = LNX_MIN(want, 1000);
				down = !want || fatal || (down && want < 1000);
				break;
			default:
				next = lnx_health_next(&h, &p, spare, timeout);
				change = 0;
				cr_assert_eq(next == NEVER,
					     fatal || value == 1000);
				switch (lnx_health_poll(&h, &p, spare, timeout,
							now)) {
				case LNX_HEALTH_PING:
					cr_assert_geq(now, next);
					cr_assert(!fatal && value < 1000);
					cr_assert(!ping, "seed %llu: two pings",
						  (unsigned long long)seed);
					ping = now;
					break;
				case LNX_HEALTH_LOST:
					cr_assert(ping && now - ping >= timeout);
					ping = 0;
					break;
				default:
					cr_assert_lt(now, next);
				}
			}
			if (fatal || want == 1000)
				ping = 0;
			cr_assert_eq(!!(change & LNX_HEALTH_VALUE),
				     want != value);
			cr_assert_eq(!!(change & LNX_HEALTH_SICK),
				     value == 1000 && want < 1000);
			cr_assert_eq(!!(change & LNX_HEALTH_WELL),
				     value < 1000 && want == 1000);
			cr_assert_eq(!!(change & LNX_HEALTH_DOWN), down && !was);
			cr_assert_eq(!!(change & LNX_HEALTH_UP), was && !down);
			value = want;
			cr_assert_eq(h.value, value, "seed %llu run %u step %u",
				     (unsigned long long)seed, run, i);
			cr_assert_eq(h.down, down, "seed %llu run %u step %u",
				     (unsigned long long)seed, run, i);
			cr_assert_eq(h.fatal, fatal);
			cr_assert_eq(lnx_health_weight(&h, &p, now) > 0,
				     lnx_health_usable(&h, now));
			cr_assert(!down || !lnx_health_usable(&h, now));
			cr_assert(down || h.ready_ns <= now + p.hold_max_ns);
		}
	}
}

/* ---- response times ---- */

Test(health, rtt)
{
	/* us: sample; smoothed, variation, timeout, computed by RFC 6298 */
	static const struct { uint64_t r, srtt, var, rto; } row[] = {
		{ 1000, 1000000, 500000, 3000000 },
		{ 1000, 1000000, 375000, 2500000 },
		{ 2000, 1125000, 531250, 3250000 },
		{ 500, 1046875, 554687, 3265623 },
		{ 1000, 1041015, 427734, 2751951 },
	};
	struct lnx_rtt rtt = { 0 };
	unsigned i;

	cr_assert_eq(lnx_rtt_timeout(&rtt, 1, 77 * MS), 77 * MS);
	for (i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		lnx_rtt_sample(&rtt, row[i].r * 1000);
		cr_expect_eq(rtt.srtt_ns, row[i].srtt, "row %u: %llu", i,
			     (unsigned long long)rtt.srtt_ns);
		cr_expect_eq(rtt.var_ns, row[i].var, "row %u: %llu", i,
			     (unsigned long long)rtt.var_ns);
		cr_expect_eq(lnx_rtt_timeout(&rtt, 1, S), row[i].rto, "row %u",
			     i);
	}
	/* Minimum and maximum. */
	cr_expect_eq(lnx_rtt_timeout(&rtt, 50 * MS, S), 50 * MS);
	cr_expect_eq(lnx_rtt_timeout(&rtt, 1, 2 * MS), 2 * MS);
	cr_expect_eq(lnx_rtt_timeout(&rtt, 50 * MS, 20 * MS), 20 * MS);
}

Test(health, rtt_extremes)
{
	struct lnx_rtt rtt = { 0 };
	unsigned i;

	lnx_rtt_sample(&rtt, 0);
	for (i = 0; i < 100; i++)
		lnx_rtt_sample(&rtt, 0);
	cr_expect_eq(rtt.srtt_ns, 1);
	cr_expect_eq(rtt.var_ns, 0);
	cr_expect_eq(lnx_rtt_timeout(&rtt, 0, S), 2);
	for (i = 0; i < 1000; i++)
		lnx_rtt_sample(&rtt, UINT64_MAX);
	cr_expect_eq(lnx_rtt_timeout(&rtt, MS, S), S);
	cr_expect_gt(rtt.srtt_ns, 1ull << 55);
	cr_expect_lt(lnx_rtt_timeout(&rtt, MS, UINT64_MAX), UINT64_MAX);
}

/* ---- parameters ---- */

static char last[1024];
static unsigned nwarn;

static void warn(void *arg, const char *sentence)
{
	const char *c;

	(void)arg;
	cr_assert_lt(strlen(sentence), sizeof(last));
	for (c = sentence; *c; c++)
		cr_assert(*c >= ' ' && *c <= '~');
	strcpy(last, sentence);
	nwarn++;
}

static struct lnx_conf conf_of(const char *a, const char *b, const char *c)
{
	char *env[] = { (char *)a, (char *)b, (char *)c, NULL };
	struct lnx_conf conf;
	int n;

	nwarn = 0;
	last[0] = '\0';
	n = lnx_conf_read(&conf, env, warn, NULL);
	cr_assert_eq(n, (int)nwarn);
	return conf;
}

Test(health, plan_of_the_defaults)
{
	struct lnx_conf c = conf_of(NULL, NULL, NULL);
	struct lnx_health_plan p;
	char why[256];
	unsigned i;

	cr_assert_eq(lnx_plan_check(&c, why, sizeof(why)), 0, "%s", why);
	memset(&p, 0xa5, sizeof(p));
	lnx_plan_make(&p, &c);
	for (i = 0; i < LNX_CLASS_COUNT; i++)
		cr_expect_eq(p.step[i], 100);
	cr_expect_eq(p.retries, 2);
	cr_expect_eq(p.transaction_ns, 5 * S);
	cr_expect_eq(p.rail_ns, 1666 * MS);
	cr_expect_eq(p.rail_min_ns, 50 * MS);
	cr_expect_eq(p.first_ns, 100 * MS);
	cr_expect_eq(p.max_ns, 900 * S);
	cr_expect_eq(p.spare_ns, 500 * MS);
	cr_expect_eq(p.hold_ns, 200 * MS);
	cr_expect_eq(p.hold_max_ns, S);
	cr_expect_eq(p.window_ns, 10 * S);
	cr_expect_eq(p.ramp_ns, 500 * MS);
}

Test(health, plan_of_others)
{
	struct lnx_conf c = conf_of("FI_LNX_HEALTH_SENSITIVITY=30",
				    "FI_LNX_HEALTH_SENSITIVITY_CLASSES="
				    " Remote_Timeout = 50 ,local_error=0",
				    "FI_LNX_RETRY_COUNT=0");
	struct lnx_health_plan p;
	unsigned i;

	cr_assert_eq(nwarn, 0, "%s", last);
	lnx_plan_make(&p, &c);
	for (i = 0; i < LNX_CLASS_COUNT; i++)
		cr_expect_eq(p.step[i], i == LNX_CLASS_REMOTE_TIMEOUT ? 50 :
			     i == LNX_CLASS_LOCAL_ERROR ? 0 : 30, "%u", i);
	cr_expect_eq(p.retries, 0);
	cr_expect_eq(p.rail_ns, 4999 * MS);
	/* Of two contradicting pauses the longer one is used. */
	c = conf_of("FI_LNX_RECOVERY_PING_INTERVAL=5000",
		    "FI_LNX_MAX_RECOVERY_PING_INTERVAL=4",
		    "FI_LNX_HOLD_DOWN=3000");
	cr_assert_eq(nwarn, 1, "%s", last);
	lnx_plan_make(&p, &c);
	cr_expect_eq(p.first_ns, 5 * S);
	cr_expect_eq(p.max_ns, 5 * S);
	cr_expect_eq(p.spare_ns, 5 * S);
	cr_expect_eq(p.hold_max_ns, 3 * S);
}

Test(health, rail_timeout)
{
	/* LNet's: 150 s, 2 retries: 49 s; here in ms. */
	static const uint64_t t[][4] = {
		{ 150, 2, 1, 49 }, { 50, 3, 1, 12 }, { 5000, 2, 50, 1666 },
		{ 5000, 0, 50, 4999 }, { 100, 9, 50, 50 }, { 1, 0, 50, 50 },
		{ 0, 0, 50, 0 }, { 3600000, 0, 1, 3599999 },
	};
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(t); i++)
		cr_expect_eq(lnx_plan_rail_ms(t[i][0], t[i][1], t[i][2]),
			     t[i][3], "row %u", i);
}

/* Health off: no retries, and one warning if retries were requested. */
Test(health, retries_need_health)
{
	struct lnx_conf c = conf_of("FI_LNX_HEALTH_SENSITIVITY=0", NULL, NULL);

	cr_expect_eq(nwarn, 0, "%s", last);
	cr_expect_eq(c.retry_count, 0);
	c = conf_of("FI_LNX_HEALTH_SENSITIVITY=0", "FI_LNX_RETRY_COUNT=0",
		    NULL);
	cr_expect_eq(nwarn, 0, "%s", last);
	c = conf_of("FI_LNX_RETRY_COUNT=3", "FI_LNX_HEALTH_SENSITIVITY=0",
		    NULL);
	cr_expect_eq(c.retry_count, 0);
	cr_expect_str_eq(last, "FI_LNX_RETRY_COUNT=3: must be 0 while "
			 "FI_LNX_HEALTH_SENSITIVITY is 0, which switches health "
			 "off; using 0");
	/* An invalid value counts as not given. */
	c = conf_of("FI_LNX_RETRY_COUNT=no", "FI_LNX_HEALTH_SENSITIVITY=0",
		    NULL);
	cr_expect_eq(nwarn, 1);
	cr_expect_eq(c.retry_count, 0);
	c = conf_of("FI_LNX_HEALTH_SENSITIVITY_CLASSES=local_error=5",
		    "FI_LNX_HEALTH_SENSITIVITY=0", NULL);
	cr_expect_null(c.health_sensitivity_classes);
	cr_expect_str_eq(last, "FI_LNX_HEALTH_SENSITIVITY_CLASSES means nothing "
			 "while FI_LNX_HEALTH_SENSITIVITY is 0, which switches "
			 "health off; ignored");
}

Test(health, tries_fit_into_the_transaction)
{
	char why[512];
	struct lnx_conf c = conf_of("FI_LNX_RETRY_COUNT=23",
				    "FI_LNX_RAIL_TIMEOUT_MIN=200", NULL);

	/* (5000 - 1) / 200 = 24 tries. */
	cr_expect_eq(nwarn, 0, "%s", last);
	cr_expect_eq(c.retry_count, 23);
	cr_expect_eq(c.rail_timeout_min, 200);
	/* Whatever does not fit, the same setting is changed. */
	c = conf_of("FI_LNX_RETRY_COUNT=24", "FI_LNX_RAIL_TIMEOUT_MIN=200",
		    NULL);
	cr_expect_eq(c.retry_count, 24);
	cr_expect_eq(c.rail_timeout_min, 199);
	cr_expect_eq(nwarn, 1);
	cr_expect_str_eq(last, "FI_LNX_RAIL_TIMEOUT_MIN=200: must be at most "
			 "199, because the first try and FI_LNX_RETRY_COUNT=24 "
			 "more share 5000 ms (FI_LNX_TRANSACTION_TIMEOUT); "
			 "using 199");
	for (unsigned min = 999; min <= 1000; min++) {
		char text[64], want[256];

		snprintf(text, sizeof(text), "FI_LNX_RAIL_TIMEOUT_MIN=%u", min);
		snprintf(want, sizeof(want), "%s: must be at most 19, because "
			 "the first try and FI_LNX_RETRY_COUNT=50 more share "
			 "1000 ms (FI_LNX_TRANSACTION_TIMEOUT); using 19", text);
		c = conf_of("FI_LNX_TRANSACTION_TIMEOUT=1000", text,
			    "FI_LNX_RETRY_COUNT=50");
		cr_expect_eq(nwarn, 1);
		cr_expect_str_eq(last, want);
		cr_expect_eq(c.retry_count, 50);
		cr_expect_eq(c.rail_timeout_min, 19);
	}
	/* Two mistakes give two warnings, and the values used are consistent. */
	c = conf_of("FI_LNX_HEALTH_SENSITIVITY_CLASSES=x",
		    "FI_LNX_RAIL_TIMEOUT_MIN=1000", "FI_LNX_RETRY_COUNT=50");
	cr_expect_eq(nwarn, 2);
	cr_expect_eq(c.rail_timeout_min, 98);
	cr_expect_eq(lnx_plan_check(&c, why, sizeof(why)), 0, "%s", why);
	c.rail_timeout_min = 99;
	cr_expect_eq(lnx_plan_check(&c, why, sizeof(why)), -EINVAL);
	cr_expect_eq(strncmp(why, "FI_LNX_RAIL_TIMEOUT_MIN=99: ", 28), 0, "%s",
		     why);
}

Test(health, words_of_classes)
{
	static const struct { const char *text, *why; } bad[] = {
		{ "", "\"\" is not of the form class=step" },
		{ ",", "\"\" is not of the form class=step" },
		{ "local_error=5,", "\"\" is not of the form class=step" },
		{ "local_error", "\"local_error\" is not of the form class=step" },
		{ "local_error 5",
		  "\"local_error 5\" is not of the form class=step" },
		{ "local_error=", "local_error=\"\": the step must be a whole "
		  "number from 0 to 1000" },
		{ "local_error=1001", "local_error=\"1001\": the step must be a "
		  "whole number from 0 to 1000" },
		{ "local_error=-1", "local_error=\"-1\": the step must be a "
		  "whole number from 0 to 1000" },
		{ "local_error=1k", "local_error=\"1k\": the step must be a "
		  "whole number from 0 to 1000" },
		{ "local_error=5=5", "local_error=\"5=5\": the step must be a "
		  "whole number from 0 to 1000" },
		{ "local_error=5,Local_Error=6",
		  "local_error is there twice" },
		{ "locl_error=5", "there is no class \"locl_error\"; the "
		  "classes are local_interrupt, local_dropped, local_aborted, "
		  "local_no_route, local_error, local_timeout, remote_error, "
		  "remote_dropped, remote_timeout, network_timeout, "
		  "response_timeout" },
		{ "ok=5", "there is no class \"ok\"" },
		{ "=5", "there is no class \"\"" },
		{ "\x01\xff=5", "there is no class \"\?\?\"" },
	};
	uint16_t step[LNX_CLASS_COUNT], before[LNX_CLASS_COUNT];
	char why[512], name[200];
	unsigned i;

	memset(before, 0x11, sizeof(before));
	memcpy(step, before, sizeof(step));
	for (i = 0; i < LNX_ARRAY_SIZE(bad); i++) {
		cr_expect_eq(lnx_plan_classes(bad[i].text, step, why,
					      sizeof(why)), -EINVAL);
		cr_expect_eq(strncmp(why, bad[i].why, strlen(bad[i].why)), 0,
			     "%s: %s", bad[i].text, why);
		cr_expect_eq(memcmp(step, before, sizeof(step)), 0);
	}
	/* Text of any length is truncated. */
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(lnx_plan_classes(name, step, why, sizeof(why)), -EINVAL);
	cr_expect_lt(strlen(why), 100);
	cr_expect_eq(lnx_plan_classes(name, step, why, 5), -EINVAL);
	cr_expect_eq(strlen(why), 4);
	/* The warning names the variable, and the text is ignored. */
	conf_of("FI_LNX_HEALTH_SENSITIVITY_CLASSES=x", NULL, NULL);
	cr_expect_str_eq(last, "FI_LNX_HEALTH_SENSITIVITY_CLASSES: \"x\" is not "
			 "of the form class=step; ignored");
	cr_expect_eq(lnx_plan_classes("local_error=0,network_timeout=1000,"
				      "remote_error=987", step, why,
				      sizeof(why)), 0);
	cr_expect_eq(step[LNX_CLASS_REMOTE_ERROR], 987);
	cr_expect_eq(step[LNX_CLASS_LOCAL_ERROR], 0);
	cr_expect_eq(step[LNX_CLASS_NETWORK_TIMEOUT], 1000);
	cr_expect_eq(step[LNX_CLASS_OK], before[0]);
	/* None: nothing is said of any. */
	memcpy(step, before, sizeof(step));
	cr_expect_eq(lnx_plan_classes(" None ", step, why, sizeof(why)), 0);
	cr_expect_eq(memcmp(step, before, sizeof(step)), 0);
	cr_expect_eq(lnx_plan_classes("none,", step, why, sizeof(why)), -EINVAL);
	conf_of("FI_LNX_HEALTH_SENSITIVITY_CLASSES=none", "FI_LNX_HEALTH_SENSITIVITY=0", NULL);
	cr_expect_eq(nwarn, 0, "%s", last);
}

/* ---- set by the administrator ---- */

Test(health, pinned_stays)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();
	unsigned i;

	lnx_health_pin(&h, &p, 0, T0);
	cr_expect(h.down && h.pinned);
	for (i = 0; i < 20; i++)
		lnx_health_good(&h, &p, T0 + i * S);
	cr_expect_eq(h.value, 0);
	cr_expect(h.down);
	cr_expect_eq(lnx_health_weight(&h, &p, T0 + 30 * S), 0u);
	cr_expect(lnx_health_pin(&h, &p, 500, T0 + 31 * S) & LNX_HEALTH_UP);
	cr_expect_eq(lnx_health_weight(&h, &p, T0 + 31 * S + p.ramp_ns), 500u,
		     "after its ramp, whatever hold-down applied");
	for (i = 0; i < 20; i++)
		fail(&h, &p, T0 + (32 + i) * S);
	cr_expect_eq(h.value, 500);
	cr_expect(!h.down);
	cr_expect_eq(lnx_health_weight(&h, &p, T0 + 60 * S), 500u);
	/* The link state is separate. */
	cr_expect(lnx_health_link(&h, &p, true, T0 + 61 * S) & LNX_HEALTH_DOWN);
	cr_expect_eq(lnx_health_weight(&h, &p, T0 + 62 * S), 0u);
	lnx_health_pin(&h, &p, 1000, T0 + 63 * S);
	cr_expect(h.down);
	cr_expect(lnx_health_link(&h, &p, false, T0 + 64 * S) & LNX_HEALTH_UP);
	cr_expect_eq(fail(&h, &p, T0 + 65 * S), 0u);
	lnx_health_unpin(&h, &p, T0 + 66 * S);
	cr_expect_eq(h.value, 1000);
	cr_expect_eq(fail(&h, &p, T0 + 67 * S) & LNX_HEALTH_VALUE,
		     (unsigned)LNX_HEALTH_VALUE);
	cr_expect_eq(h.value, 900);
	cr_expect(!h.pinned && !h.down);
}

Test(health, unpinned_is_as_good_as_new)
{
	struct lnx_health_plan p = plan_of(100);
	struct lnx_health h = fresh();

	lnx_health_pin(&h, &p, 0, T0);
	cr_expect(lnx_health_unpin(&h, &p, T0 + S) & LNX_HEALTH_UP);
	cr_expect_eq(lnx_health_weight(&h, &p, T0 + S), 1000u);
	cr_expect_eq(lnx_health_next(&h, &p, false, S), NEVER);
	/* Not while its link is down. */
	lnx_health_pin(&h, &p, 0, T0 + 2 * S);
	lnx_health_link(&h, &p, true, T0 + 2 * S);
	lnx_health_unpin(&h, &p, T0 + 3 * S);
	cr_expect(h.down);
	cr_expect(lnx_health_link(&h, &p, false, T0 + 4 * S) & LNX_HEALTH_UP);
}
