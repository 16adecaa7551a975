/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Administrative weights of rails and paths, set here or by the peer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/request.h"
#include "fail_world.h"
#include "rel/detect.h"
#include "rel/piece.h"
#include "rel/sched.h"
#include "view.h"

#define BOTH(name)	FAIL_BOTH(admin, name)

static char reply[8192];

static void ask(const char *text)
{
	ssize_t n = lnx_ctl_request(f.lnx, text, reply, sizeof(reply));

	cr_assert_geq(n, 0, "%s: %s", text, reply);
	cr_assert_eq((size_t)n, strlen(reply));
}

static void set_rail(unsigned rail, const char *value)
{
	char text[256];

	snprintf(text, sizeof(text), "health %s %s %s", value ? "set" : "auto",
		 f.lnx->rail[rail]->name, value ? value : "");
	ask(text);
}

static unsigned seen_more(const struct side *s, unsigned rail, unsigned n)
{
	unsigned before = s->nseen[rail], i;

	for (i = 0; i < n; i++) {
		send1(&side[s - side], 200);
		run_ms(3);
	}
	return s->nseen[rail] - before;
}

/* A drained rail carries nothing, announces that repeatedly, and is used again
 * when set back and it answers. */
BOTH(rail_is_set_to_0)
{
	struct side *s = &side[0];
	unsigned announced;

	open_met(kind, 2, 2);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	set_rail(0, "0");
	cr_expect(is_down(s, 0) && is_down(&side[1], 0));
	ask("health list");
	cr_expect(strstr(reply, " health 0 down by-hand\n"), "%s", reply);
	cr_expect(strstr(reply, " to 0 health 1000 drained "), "%s", reply);
	step();
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_DRAIN);
	cr_expect_eq(seen_more(s, 0, 20), 0u);
	announced = s->nrail;
	run_ms(5000);
	cr_expect(is_down(s, 0));
	cr_expect_geq(s->nrail - announced, 10u);
	cr_expect_eq(s->nprobe[0], 0u);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	/* Not before the path answers. */
	black_hole(0);
	set_rail(0, NULL);
	run_ms(50);
	cr_expect(is_down(s, 0));
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_UP);
	heal(0);
	RUN_UNTIL(!is_down(s, 0) && !is_down(&side[1], 0), 10000);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	ask("health list");
	cr_expect(!strstr(reply, "by-hand"), "%s", reply);
	run_ms(1000);
	announced = s->nrail;
	run_ms(2000);
	cr_expect_eq(s->nrail, announced);
	close_clean();
}

/* A drained rail is used while there is no other, and only so long. */
BOTH(rail_is_set_to_0_and_the_other_fails)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "0");
	cr_expect(is_down(s, 0));
	black_hole(1);
	link_is(1, false);
	send1(s, 200);
	RUN_UNTIL(!is_down(s, 0), 5000);
	run_ms(1);
	cr_expect_eq(s->nseen[0], 1u);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	heal(1);
	link_is(1, true);
	RUN_UNTIL(!is_down(s, 1), 20000);
	run_ms(5);
	cr_expect(is_down(s, 0));
	cr_expect_eq(seen_more(s, 0, 5), 0u);
	set_rail(0, NULL);
	RUN_UNTIL(!is_down(s, 0), 10000);
	close_clean();
}

/* The same when only silence shows the failure: the drained path can still be
 * probed. */
BOTH(rail_is_set_to_0_and_the_other_falls_silent)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "0");
	cr_expect(is_down(s, 0));
	black_hole(1);
	send1(s, 200);
	RUN_UNTIL(!is_down(s, 0), 5000);
	run_ms(1);
	cr_expect_eq(s->nseen[0], 1u);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	heal(1);
	set_rail(0, NULL);
	close_clean();
}

/* All rails at 0: as if none was set. */
BOTH(all_rails_are_set_to_0)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	ask("health set * 0");
	run_ms(10);
	cr_expect(!is_down(s, 0) && !is_down(s, 1));
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	ask("health set *@* 1@* 500");
	ask("health auto all");
	ask("health list");
	cr_expect(!strstr(reply, "by-hand"), "%s", reply);
	run_ms(10);
	close_clean();
}

/* The path to one peer, and the rail of one peer. */
BOTH(part_of_a_peer_is_set_to_0)
{
	struct side *s = &side[0];
	char text[256];

	open_met(kind, 2, 2);
	snprintf(text, sizeof(text), "health set %s@%016llx 0",
		 f.lnx->rail[0]->name, (unsigned long long)s->p.eid);
	ask(text);
	cr_expect(is_down(s, 0) && !is_down(&side[1], 0));
	snprintf(text, sizeof(text), "health set 0@%llu 0",
		 (unsigned long long)side[1].p.addr);
	ask(text);
	cr_expect(is_down(s, 0) && is_down(&side[1], 0));
	run_ms(2000);
	cr_expect(is_down(s, 0) && is_down(&side[1], 0));
	cr_expect_eq(s->nrail, 0u);
	ask("health auto *@* 0@*");
	RUN_UNTIL(!is_down(s, 0) && !is_down(&side[1], 0), 10000);
	close_clean();
}

/* Frames use the rails of higher weight; failures do not change a weight. */
BOTH(rails_are_worth_something)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "400");
	cr_expect(!is_down(s, 0));
	cr_expect_eq(seen_more(s, 0, 5), 0u);
	cr_expect_eq(seen_more(s, 1, 5), 5u);
	lnx_lock(&f.lnx->lock);
	lnx_detect_charge(inside(s), path_of(s, 0), LNX_CLASS_LOCAL_ERROR,
			lnx_clock_ns());
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(f.lnx->rail[0]->health.value, 400u);
	set_rail(1, "300");
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	set_rail(1, "0");
	set_rail(0, NULL);
	cr_expect(is_down(s, 1));
	set_rail(1, "1000");
	RUN_UNTIL(!is_down(s, 1), 10000);
	close_clean();
}

/* A peer that is met afterwards does not use the drained rail either. */
BOTH(newcomer_where_a_rail_is_set_to_0)
{
	unsigned i;

	open_n(kind, 2, 1);
	set_rail(0, "0");
	for (i = 0; i < 5; i++)
		send1(&side[0], 200);
	run_ms(20);
	cr_expect_eq(side[0].nseen[0], 0u);
	cr_expect_geq(side[0].nseen[1], 6u);
	cr_expect(is_down(&side[0], 0));
	set_rail(0, NULL);
	RUN_UNTIL(!is_down(&side[0], 0), 10000);
	close_clean();
}

/* The peer drains its own rail: it is not used as long as the peer says so. */
BOTH(peer_does_not_want_a_rail)
{
	struct side *s = &side[0];
	struct lnx_hdr h = {
		.kind = LNX_KIND_RAIL, .tag = 0, .data = LNX_WIRE_RAIL_DRAIN,
	};
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 20; i++) {
		from(s, 1, 0, h, NULL, 0);
		fake_pass(&f);
		cr_expect_eq(seen_more(s, 0, 50), 0u);
		cr_expect(is_down(s, 0));
	}
	ask("health list");
	cr_expect(strstr(reply, " by-peer\n"), "%s", reply);
	RUN_UNTIL(!is_down(s, 0), 10000);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(is_down(s, 0));
	h.data = LNX_WIRE_RAIL_UP;
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	RUN_UNTIL(!is_down(s, 0), 10000);
	close_clean();
}

/* The share that a path has of pieces, in thousandths. */
static unsigned share_of(const struct side *s, unsigned rail)
{
	struct lnx_sched sched;

	lnx_lock(&f.lnx->lock);
	lnx_piece_facts(inside(s), 3, fake_now_ns, &sched);
	lnx_unlock(&f.lnx->lock);
	return sched.path[view_index(path_of(s, rail))].share;
}

/* A rail with a weight: peers are told, since they read what is large. */
BOTH(peers_are_told_of_a_weight)
{
	struct side *s = &side[0];
	unsigned told;

	open_met(kind, 2, 1);
	set_rail(0, "400");
	step();
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_WEIGHT + 400);
	told = s->nrail;
	run_ms(2000);
	cr_expect_geq(s->nrail - told, 4u, "it is repeated");
	set_rail(0, "1000");
	step();
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_UP, "the whole weight is none");
	set_rail(0, "1");
	step();
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_WEIGHT + 1);
	set_rail(0, NULL);
	step();
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_UP);
	run_ms(1000);
	told = s->nrail;
	run_ms(2000);
	cr_expect_eq(s->nrail, told, "it is over");
	close_clean();
}

/* What a peer has set counts here as if it was set here, while it says so. */
BOTH(peer_gives_a_rail_a_weight)
{
	struct side *s = &side[0];
	struct lnx_hdr h = {
		.kind = LNX_KIND_RAIL, .tag = 0, .data = LNX_WIRE_RAIL_WEIGHT + 300,
	};
	static const uint64_t none[] = {
		LNX_WIRE_RAIL_WEIGHT, LNX_WIRE_RAIL_WEIGHT + 1000, LNX_WIRE_RAIL_WEIGHT + 1001,
		LNX_WIRE_RAIL_UP, 3, UINT64_MAX, UINT64_MAX - 1000,
	};
	unsigned i;

	open_met(kind, 2, 1);
	cr_expect_eq(share_of(s, 0), 1000u);
	for (i = 0; i < 5; i++) {
		from(s, 1, 0, h, NULL, 0);
		fake_pass(&f);
		cr_expect_eq(share_of(s, 0), 300u);
		cr_expect_eq(share_of(s, 1), 1000u);
		cr_expect_eq(seen_more(s, 0, 20), 0u, "frames take the other one");
		cr_expect_not(is_down(s, 0));
	}
	ask("health list");
	cr_expect(strstr(reply, " by-peer weight 300\n"), "%s", reply);
	/* The lower one counts. */
	set_rail(0, "200");
	cr_expect_eq(share_of(s, 0), 200u);
	set_rail(0, "500");
	cr_expect_eq(share_of(s, 0), 300u);
	set_rail(0, NULL);
	cr_expect_eq(share_of(s, 0), 300u);
	run_ms(3000);
	cr_expect_eq(share_of(s, 0), 1000u, "it is not repeated");
	for (i = 0; i < LNX_ARRAY_SIZE(none); i++) {
		from(s, 1, 0, h, NULL, 0);
		fake_pass(&f);
		cr_expect_eq(share_of(s, 0), 300u);
		h.data = none[i];
		from(s, 1, 0, h, NULL, 0);
		fake_pass(&f);
		cr_expect_eq(share_of(s, 0), 1000u, "%u", i);
		h.data = LNX_WIRE_RAIL_WEIGHT + 300;
	}
	/* From a weight to none at all, and back. */
	from(s, 1, 0, h, NULL, 0);
	h.data = LNX_WIRE_RAIL_DRAIN;
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(is_down(s, 0));
	h.data = LNX_WIRE_RAIL_WEIGHT + 300;
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	RUN_UNTIL(!is_down(s, 0), 10000);
	close_clean();
}

/* At any time, while frames and reads are under way. */
BOTH(set_under_traffic)
{
	struct side *s = &side[0];
	struct op *o[4];
	unsigned i, k;

	open_met(kind, 2, 1);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < 4; k++)
			o[k] = large_from(s);
		for (k = 0; k < 10; k++)
			send1(s, 200);
		step();
		set_rail(i & 1, i & 2 ? NULL : "0");
		for (k = 0; k < 4; k++)
			RUN_UNTIL(o[k]->ncomp, 20000);
	}
	ask("health auto all");
	RUN_UNTIL(!is_down(s, 0) && !is_down(s, 1), 10000);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	close_clean();
}
