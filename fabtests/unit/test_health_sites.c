/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Health where failures occur: a core refuses or fails a frame or a read, nothing comes, a ping
 * is lost, a deadline passes.  Each charges the path that it happened on, once, and of the rails
 * at its ends those that its class says (policy/classes.def).  test_health_live.c has what
 * follows from the numbers.
 */
#include <string.h>

#include "fail_world.h"
#include "fake_inside.h"
#include "policy/class.h"
#include "rel/detect.h"
#include "view.h"
#include "wire/addr.h"

#define BOTH(name)	FAIL_BOTH(health_sites, name)
#define FULL		LNX_HEALTH_MAX
#define RAILS		2u

/* What a core says, and what that is. */
struct failure {
	int err;
	unsigned class;
};

static const struct failure while_under_way[] = {
	{ FI_EINTR, LNX_CLASS_LOCAL_INTERRUPT },
	{ FI_EPERM, LNX_CLASS_LOCAL_DROPPED },
	{ FI_ENODEV, LNX_CLASS_LOCAL_ABORTED },
	{ FI_ENETDOWN, LNX_CLASS_LOCAL_NO_ROUTE },
	{ FI_ENOMEM, LNX_CLASS_LOCAL_ERROR },
	{ FI_EOTHER, LNX_CLASS_REMOTE_ERROR },
	{ FI_ECONNRESET, LNX_CLASS_REMOTE_DROPPED },
	{ FI_ECANCELED, LNX_CLASS_REMOTE_DROPPED },
	{ FI_ETIMEDOUT, LNX_CLASS_REMOTE_TIMEOUT },
	{ FI_EIO, LNX_CLASS_NETWORK_TIMEOUT },
};

static const struct failure while_posted[] = {
	{ FI_EINTR, LNX_CLASS_LOCAL_INTERRUPT },
	{ FI_EPERM, LNX_CLASS_LOCAL_DROPPED },
	{ FI_ENODEV, LNX_CLASS_LOCAL_ABORTED },
	{ FI_ENETUNREACH, LNX_CLASS_LOCAL_NO_ROUTE },
	{ FI_EIO, LNX_CLASS_LOCAL_ERROR },
	{ FI_EHOSTUNREACH, LNX_CLASS_REMOTE_DROPPED },
	{ FI_ETIMEDOUT, LNX_CLASS_REMOTE_TIMEOUT },
};

/* ---- what is charged ---- */

struct state {
	unsigned path[SIDES][RAILS], remote[SIDES][RAILS], rail[RAILS];
	struct lnx_stats stats;
};

static struct state state(void)
{
	struct state now = { .stats = f.lnx->stats };
	unsigned i, r;

	for (r = 0; r < nrail; r++) {
		now.rail[r] = f.lnx->rail[r]->health.value;
		for (i = 0; i < nside; i++) {
			now.path[i][r] = view_health(path_of(&side[i], r));
			now.remote[i][r] = view_remote_health(path_of(&side[i], r))->value;
		}
	}
	return now;
}

static bool all_well(void)
{
	struct state now = state();
	unsigned i, r;

	for (r = 0; r < nrail; r++)
		for (i = 0; i < nside; i++)
			if (now.rail[r] != FULL || now.path[i][r] != FULL ||
			    now.remote[i][r] != FULL)
				return false;
	return true;
}

static void until_well(void)
{
	unsigned i, n;

	for (n = 0; n < 400 && !all_well(); n++) {
		for (i = 0; i < nside; i++)
			send1(&side[i], 200);
		run_ms(60);
	}
	cr_assert(all_well());
	cr_assert(all_there());
}

/* Since then one failure of that class was charged, for the path from rail to the first side,
 * and nothing else. */
static void expect_charged(const char *site, struct state was, unsigned rail, unsigned class)
{
	unsigned step = f.lnx->plan.step[class];
	unsigned charges = lnx_class_charges(class, nrail, false);
	const char *name = lnx_class_name(class);
	struct state now = state();
	unsigned i, r;

	cr_assert_gt(step, 0u);
	was.path[0][rail] -= step;
	was.remote[0][rail] -= charges & LNX_CHARGE_REMOTE ? step : 0;
	was.rail[rail] -= charges & LNX_CHARGE_LOCAL ? step : 0;
	for (r = 0; r < nrail; r++) {
		cr_expect_eq(now.rail[r], was.rail[r], "%s, %s: rail %u has %u", site, name, r,
			     now.rail[r]);
		for (i = 0; i < nside; i++) {
			cr_expect_eq(now.path[i][r], was.path[i][r], "%s, %s: path %u of side "
				     "%u has %u", site, name, r, i, now.path[i][r]);
			cr_expect_eq(now.remote[i][r], was.remote[i][r], "%s, %s: rail %u of "
				     "side %u has %u", site, name, r, i, now.remote[i][r]);
		}
	}
	lnx_class_count(&was.stats, class);
#define LNX_CLASS(NAME, what, pays, sure, help)						\
	cr_expect_eq(now.stats.what##_count, was.stats.what##_count,			\
		     "%s, %s: " #what " counts %lu", site, name,			\
		     (unsigned long)now.stats.what##_count);
#include "policy/classes.def"
#undef LNX_CLASS
}

/* ---- frames ---- */

/* The rail that the frames to the first side take. */
static unsigned frame_rail(void)
{
	unsigned r = 0;

	while (view_index(path_of(&side[0], r)) != view_frame_path(inside(&side[0])))
		r++;
	return r;
}

/* The core has taken it, and fails it later. */
static void frame_fails(enum lnx_rail_kind kind, unsigned rails)
{
	unsigned i, r;

	open_met(kind, rails, 2);
	for (i = 0; i < LNX_ARRAY_SIZE(while_under_way); i++) {
		struct fake_core *core;
		struct state was;
		struct op *o;

		until_well();
		r = frame_rail();
		core = f.core[r];
		core->hold_sends = true;
		was = state();
		o = send1(&side[0], 4000);
		core->hold_sends = false;
		cr_assert_eq(fake_held(core), 1u);
		fake_finish(core, 0, while_under_way[i].err);
		fake_pass(&f);
		expect_charged("a frame fails", was, r, while_under_way[i].class);
		RUN_UNTIL(o->ncomp && all_there(), 1000);
	}
	until_well();
	close_clean();
}

BOTH(a_frame_fails) { frame_fails(kind, RAILS); }
BOTH(a_frame_fails_on_the_only_rail) { frame_fails(kind, 1); }

/* The core does not take it, and says why. */
static void frame_refused(enum lnx_rail_kind kind, unsigned rails)
{
	unsigned i, r;

	open_met(kind, rails, 2);
	for (i = 0; i < LNX_ARRAY_SIZE(while_posted); i++) {
		struct fake_core *core;
		struct state was;
		struct op *o;

		until_well();
		r = frame_rail();
		core = f.core[r];
		core->refuse_err = -while_posted[i].err;
		core->send_again = core->inject_again = 1;
		was = state();
		o = send1(&side[0], 200);
		core->send_again = core->inject_again = 0;
		core->refuse_err = 0;
		expect_charged("a frame is refused", was, r, while_posted[i].class);
		RUN_UNTIL(o->ncomp && all_there(), 1000);
	}
	until_well();
	close_clean();
}

BOTH(a_frame_is_refused) { frame_refused(kind, RAILS); }
BOTH(a_frame_is_refused_by_the_only_rail) { frame_refused(kind, 1); }

/* ---- reads ---- */

/* By both rails, so that none of them is faster. */
static void hold_reads(bool hold)
{
	unsigned r;

	for (r = 0; r < nrail; r++) {
		f.core[r]->hold_reads = hold;
		if (!hold)
			fake_finish_all(f.core[r]);
	}
}

/*
 * A message of the first side, of which a piece is read over rail 0 as things are: after a
 * failure the next ones may go over the other rail alone.  Held or refused, as set before.
 */
static struct op *announced(struct state *was)
{
	struct fake_core *core = f.core[0];
	bool hold = core->hold_reads;
	unsigned reads, tries, r;
	struct op *o;

	for (tries = 0; tries < 100; tries++) {
		reads = core->nread + core->nrefused_reads;
		for (r = 0; r < nrail; r++)
			force_read_rate(path_of(&side[0], r), 1000000000, false, fake_now_ns);
		*was = state();
		o = large_from(&side[0]);
		fake_passes(&f, 3);
		if (core->nread + core->nrefused_reads > reads)
			return o;
		hold_reads(false);
		RUN_UNTIL(o->ncomp && all_there(), 1000);
		run_ms(100);
		hold_reads(hold);
	}
	cr_assert_fail("nothing is read over rail 0");
	return NULL;
}

BOTH(a_read_fails)
{
	struct fake_core *core;
	unsigned i;

	fake_conf.chunk = 16384;
	open_met(kind, RAILS, 2);
	core = f.core[0];
	for (i = 0; i < LNX_ARRAY_SIZE(while_under_way); i++) {
		struct state was;
		struct op *o;

		until_well();
		hold_reads(true);
		o = announced(&was);
		fake_finish(core, 0, while_under_way[i].err);
		fake_pass(&f);
		expect_charged("a read fails", was, 0, while_under_way[i].class);
		hold_reads(false);
		RUN_UNTIL(o->ncomp && all_there(), 1000);
	}
	until_well();
	close_clean();
}

BOTH(a_read_is_refused)
{
	struct fake_core *core;
	unsigned i;

	fake_conf.chunk = 16384;
	open_met(kind, RAILS, 2);
	core = f.core[0];
	for (i = 0; i < LNX_ARRAY_SIZE(while_posted); i++) {
		struct state was;
		struct op *o;

		until_well();
		core->refuse_err = -while_posted[i].err;
		core->read_again = 1;
		o = announced(&was);
		cr_assert_eq(core->read_again, 0u);
		core->refuse_err = 0;
		expect_charged("a read is refused", was, 0, while_posted[i].class);
		RUN_UNTIL(o->ncomp && all_there(), 1000);
	}
	until_well();
	close_clean();
}

/* ---- nothing comes ---- */

/* What others deliver shows that the peer lives; then its kernel answers no ping either. */
BOTH(silence)
{
	struct state was = { 0 };
	unsigned r, n, i;

	open_met(kind, RAILS, 2);
	until_well();
	r = frame_rail();
	was = state();
	black_hole(r);
	send1(&side[0], 200);
	RUN_UNTIL(is_down(&side[0], r), 5000);
	expect_charged("silence", was, r, LNX_CLASS_NETWORK_TIMEOUT);
	for (n = 0; n < 3; n++) {
		for (i = 0; i < 60000; i++) {
			was = state();
			run_ms(1);
			if (f.lnx->stats.response_timeout_count !=
			    was.stats.response_timeout_count)
				break;
		}
		expect_charged("a ping is lost", was, r, LNX_CLASS_RESPONSE_TIMEOUT);
	}
	heal(r);
	RUN_UNTIL(!is_down(&side[0], r), 60000);
	until_well();
	close_clean();
}

/* ---- a deadline passes ---- */

/* No frame leaves until the peer is given up: what that is depends on the provider. */
static void expires(enum lnx_rail_kind kind, bool met, unsigned prov, unsigned class)
{
	struct state was = { 0 };
	unsigned i;
	struct op *o;

	if (met)
		open_met(kind, 1, 1);
	else
		open_n(kind, 1, 1);
	f.core[0]->inject_again = f.core[0]->send_again = FAKE_ALWAYS;
	o = send1(&side[0], 200);
	if (prov)
		f.lnx->rail[0]->prov = (uint8_t)prov;
	for (i = 0; i < 60000 && !o->nerr; i++) {
		was = state();
		run_ms(1);
	}
	cr_assert(o->nerr);
	expect_charged(met ? "no frame leaves" : "no connection", was, 0, class);
	f.core[0]->inject_again = f.core[0]->send_again = 0;
	close_now();
}

BOTH(no_connection) { expires(kind, false, 0, LNX_CLASS_NETWORK_TIMEOUT); }
BOTH(no_frame_leaves) { expires(kind, true, 0, LNX_CLASS_NETWORK_TIMEOUT); }
BOTH(no_frame_leaves_over_verbs)
{
	expires(kind, true, LNX_PROV_VERBS_RXM, LNX_CLASS_LOCAL_TIMEOUT);
}
