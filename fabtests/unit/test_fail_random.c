/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random failures under traffic: whatever happens, everything arrives once and
 * in order.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/policy.h"
#include "fail_world.h"
#include "rel/order.h"
#include "rules_view.h"

#define BOTH(name)	FAIL_BOTH(fail_random, name)

static uint64_t rnd_state;

static unsigned rnd(unsigned n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((rnd_state >> 33) % n);
}

static uint64_t take_seed(void)
{
	const char *given = getenv("LNX_SEED");
	uint64_t seed = 0;
	int fd;

	if (given)
		return strtoull(given, NULL, 0);
	fd = open("/dev/urandom", O_RDONLY);
	cr_assert(fd >= 0 && read(fd, &seed, sizeof(seed)) == sizeof(seed));
	close(fd);
	return seed;
}

static void disturb(void)
{
	unsigned rail = rnd(nrail), k;
	struct fake_core *core = f.core[rail];

	switch (rnd(12)) {
	case 0:
		lost_to[rail] = !lost_to[rail];
		break;
	case 1:
		lost_from[rail] = !lost_from[rail];
		break;
	case 2:
		black_hole(rail);
		break;
	case 3:
		heal(rail);
		break;
	case 4:
		core->hold_sends = !core->hold_sends;
		break;
	case 5:
		core->hold_reads = !core->hold_reads;
		break;
	case 6:
		core->send_again = rnd(4);
		core->inject_again = rnd(4);
		core->read_again = rnd(3);
		break;
	case 7:
		core->flush = rnd(2);
		core->ep_fails = rnd(3) ? 0 : rnd(3);
		core->enable_fails = rnd(3) ? 0 : rnd(3);
		break;
	case 8:
		/* A connection breaks. */
		for (k = rnd(8); k && fake_held(core); k--)
			fake_finish(core, 0, FI_EIO);
		break;
	case 9:
		k = rnd(nside);
		side[k].mute = rnd(2);
		break;
	case 10:
		k = rnd(nside);
		move(&side[k], rail, 6000 + rnd(1000));
		say(&side[k], rail, LNX_KIND_HELLO, 0);
		break;
	default:
		for (k = rnd(8); k && fake_held(core); k--)
			fake_finish(core, rnd(fake_held(core)), 0);
	}
}

static void mend(void)
{
	unsigned i;

	for (i = 0; i < nrail; i++) {
		struct fake_core *core = f.core[i];

		heal(i);
		core->hold_sends = core->hold_reads = false;
		core->send_again = core->inject_again = core->read_again = 0;
		core->ep_fails = core->enable_fails = 0;
		fake_finish_all(core);
	}
	for (i = 0; i < nside; i++)
		side[i].mute = false;
}

/* Rules change, too: of the nets of FI_LNX_NETS, one for each rail. */
static void change_rules(void)
{
	static const char *const text[] = {
		"src: lan0", "src: lan1", "dst: lan0, priority: 3", "dst: lan1, priority: 2",
		"src: lan2, idx: 0", "src: 127.0.1.1@lan1, dst: lan1, idx: 0",
		"src: lan0, priority: 9", "src: *.*.*.*@lan1, dst: 127.0.1.1@lan1",
	};
	struct lnx_refusal r = { 0 };
	struct lnx_rules_which all = { .by = LNX_RULES_ALL };

	lnx_lock(&f.lnx->lock);
	if (!rnd(4)) {
		cr_assert_eq(rules_del(lnx_policy_rules(f.lnx), &all, NULL, &r), 0);
	} else {
		int ret;

		r.text = text[rnd(LNX_ARRAY_SIZE(text))];
		ret = lnx_rules_add_text(lnx_policy_rules(f.lnx), r.text, &r);
		cr_assert(!ret || ret == -EALREADY, "%s: %s", r.text, r.why);
	}
	lnx_order_rules(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
}

BOTH(at_random)
{
	struct side *s;
	bool rules;
	unsigned r;

	rnd_state = take_seed();
	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", rnd_state,
		rnd_state);
	fake_conf.connect_timeout = 1000000;
	fake_conf.retry_count = 50;
	fake_conf.window = 64;
	fake_conf.chunk = 65536;
	fake_conf.credits = rnd(2) ? 0 : 1 + rnd(40);
	fake_conf.peer_credits = rnd(2) ? 0 : 1 + rnd(20);
	if (rnd(2))
		fake_conf.copy_limit = 1000;
	credit = rnd(4) ? 1 << (17 + rnd(4)) : 0;
	fake_conf.send_buffer = rnd(3) ? 1 << (14 + rnd(6)) : 0;
	fake_rxm_buffer = rnd(2) ? LNX_FRAME_LARGE : 0;
	rules = rnd(2);
	fake_separate = rules;
	if (rules)
		fake_conf.nets = kind == LNX_RAIL_PLAIN ?
			"lan0=tcp/127.0.0.0/24; lan1=tcp/127.0.1.0/24; lan2=tcp/127.0.2.0/24" :
			"lan0=tcp;ofi_rxm/127.0.0.0/24; lan1=tcp;ofi_rxm/127.0.1.0/24; "
			"lan2=tcp;ofi_rxm/127.0.2.0/24";
	fake_conf.multi_rail_selection = rnd(2) ? LNX_SELECTION_SPREAD :
					 rnd(2) ? LNX_SELECTION_PER_MSG : LNX_SELECTION_LNET;
	open_met(kind, 2 + rnd(2), 1 + rnd(3));
	for (r = 0; r < 1500; r++) {
		s = &side[rnd(nside)];
		if (rnd(3) == 0 && nops < MANY - 100 &&
		    view_next(inside(s)) < MANY - 300)
			send_flags(s, rnd(3) ? rnd(300) : rnd(4) ? rnd(16000) :
				   rnd(SEND_MAX),
				   rnd(3) ? 0 : FI_DELIVERY_COMPLETE);
		if (rnd(3) == 0 && nops < MANY - 100 && s->p.seq < MANY - 300) {
			bool large = !rnd(20), part = !rnd(5) && may_part(s);

			receive(s, large ? LARGE : part ? PARTS : 8);
			say(s, rnd(nrail), large ? LNX_KIND_RTS_TAG :
			    part ? LNX_KIND_PART_TAG : LNX_KIND_TAG, ++s->next_tag);
		}
		if (!rnd(6))
			disturb();
		if (rules && !rnd(12))
			change_rules();
		if (!rnd(60)) {
			mend();
			run_ms(rnd(300));
		}
		run_ms(rnd(4));
		cr_assert(view_credits_agree(f.lnx), "credits, in round %u", r);
	}
	mend();
	RUN_UNTIL(all_there(), 60000);
	close_clean();
}
