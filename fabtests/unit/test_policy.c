/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rules of the user on a live endpoint: which rail carries what, before and after
 * failures and changes.  Rail i of ours and of each peer is in the network 127.0.I.0/24.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/config.h"
#include "core/path_set.h"
#include "core/policy.h"
#include "fail_world.h"
#include "rel/detect.h"
#include "rel/order.h"
#include "rules_view.h"

#define BOTH(name)	FAIL_BOTH(policy, name)

/* Nets of the test; PROV stands for the provider of the rails. */
static const char nets2[] = "lan0=PROV/127.0.0.0/24; lan1=PROV/127.0.1.0/24";
static const char nets3[] = "lan0=PROV/127.0.0.0/24,127.0.1.0/24; lan1=PROV/127.0.2.0/24";
static const char nets1[] = "lan0=PROV/127.0.0.0/16";

static void set_nets(enum lnx_rail_kind kind, const char *nets)
{
	static char text[256];
	char *out = text;

	for (; *nets; nets++) {
		if (strncmp(nets, "PROV", 4)) {
			*out++ = *nets;
			continue;
		}
		out += sprintf(out, "%s", kind == LNX_RAIL_PLAIN ? "tcp" : "tcp;ofi_rxm");
		nets += 3;
	}
	*out = '\0';
	fake_separate = true;
	fake_conf.nets = text;
}

static void open_with(enum lnx_rail_kind kind, unsigned rails, unsigned sides,
		      const char *nets, const char *udsp)
{
	set_nets(kind, nets);
	fake_conf.udsp = udsp;
	open_met(kind, rails, sides);
}

/* Sequenced frames that arrive over rail, of n that are sent. */
static unsigned seen_more(struct side *s, unsigned rail, unsigned n)
{
	unsigned before, i;

	before = s->nseen[rail];
	for (i = 0; i < n; i++) {
		send1(s, 200);
		run_ms(3);
	}
	return s->nseen[rail] - before;
}

static void add_rule(const char *text)
{
	struct lnx_refusal r = { 0 };
	int ret;

	lnx_lock(&f.lnx->lock);
	r.text = text;
	ret = lnx_rules_add_text(lnx_policy_rules(f.lnx), text, &r);
	lnx_order_rules(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(ret, 0, "%s: %s", text, r.why);
}

static void del_rules(void)
{
	struct lnx_rules_which all = { .by = LNX_RULES_ALL };
	struct lnx_refusal r = { 0 };

	lnx_lock(&f.lnx->lock);
	cr_expect_eq(rules_del(lnx_policy_rules(f.lnx), &all, NULL, &r), 0);
	lnx_order_rules(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
}

static void charge(struct side *s, unsigned rail, unsigned times)
{
	lnx_lock(&f.lnx->lock);
	while (times--)
		lnx_detect_charge(inside(s), path_of(s, rail), LNX_CLASS_LOCAL_ERROR,
				  lnx_clock_ns());
	lnx_unlock(&f.lnx->lock);
}

/* A rail that stands by has its core's buffers before reads need them (rail/prime.c). */
BOTH(the_other_net_has_its_buffers_for_reads)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 256;
	open_with(kind, 2, 1, nets2, "src: lan0");
	for (i = 0; i < 20 && !f.core[1]->nsend; i++) {
		struct op *o = receive(s, LARGE);

		say(s, 0, LNX_KIND_RTS_TAG, ++s->next_tag);
		RUN_UNTIL(o->ncomp, 3000);
		run_ms(100);
	}
	cr_expect_eq(f.core[1]->nread, 0u);
	cr_expect_eq(f.core[1]->nsend, 1u);
	close_clean();
}

/* Without the rule, frames are on the first rail. */
BOTH(a_preferred_net_has_all_until_it_is_down)
{
	struct side *s = &side[0];

	open_with(kind, 3, 1, nets3, "src: lan1");
	cr_expect_eq(seen_more(s, 2, 10), 10u);
	/* what is large, too */
	cr_expect_eq(view_stripe(inside(s)), 1u << view_index(path_of(s, 2)));
	/* sick is no reason to leave it */
	charge(s, 2, 5);
	cr_expect_eq(seen_more(s, 2, 10), 10u);
	black_hole(2);
	send1(s, 200);
	RUN_UNTIL(is_down(s, 2), 5000);
	RUN_UNTIL(all_there(), 5000);
	cr_expect_eq(seen_more(s, 2, 10), 0u);
	cr_expect_eq(view_stripe(inside(s)) & 1u << view_index(path_of(s, 2)), 0u);
	heal(2);
	RUN_UNTIL(!is_down(s, 2), 20000);
	run_ms(2000);
	send1(s, 200);
	run_ms(20);
	cr_expect_eq(seen_more(s, 2, 10), 10u);
	close_clean();
}

/* Rules are applied to peers that were met; a change visits no others. */
BOTH(addresses_that_are_not_used_pay_nothing)
{
	static struct fake_peer far;
	uint64_t next;
	unsigned i;

	open_with(kind, 3, 1, nets3, NULL);
	/* More than any few steps could visit. */
	for (i = 0; i < 5 * LNX_RULES_SWEEP; i++) {
		fake_peer_init(&f, &far, 100000 + i);
		fake_peer_insert(&f, &far);
	}
	add_rule("dst: lan1, priority: 3");
	lnx_lock(&f.lnx->lock);
	next = lnx_order_run(f.lnx, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(next, LNX_NEVER);
	cr_expect_eq(seen_more(&side[0], 2, 10), 10u);
	close_clean();
}

/* Of two paths of the net one is enough. */
BOTH(a_preferred_net_with_two_rails)
{
	struct side *s = &side[0];
	unsigned n;

	open_with(kind, 3, 1, nets3, "src: lan0; src: lan1, priority: 1");
	n = s->nseen[2];
	black_hole(0);
	send1(s, 200);
	RUN_UNTIL(is_down(s, 0), 5000);
	run_ms(1);
	cr_expect_eq(seen_more(s, 1, 10), 10u);
	cr_expect_eq(s->nseen[2], n);
	black_hole(1);
	send1(s, 200);
	RUN_UNTIL(is_down(s, 1), 5000);
	run_ms(1);
	cr_expect_eq(seen_more(s, 2, 10), 10u);
	heal(1);
	RUN_UNTIL(!is_down(s, 1), 20000);
	run_ms(2000);
	send1(s, 200);
	run_ms(20);
	cr_expect_eq(seen_more(s, 1, 10), 10u);
	heal(0);
	close_clean();
}

/* With it the least difference of health decides before rules. */
BOTH(health_first)
{
	struct side *s = &side[0];

	fake_conf.health_first = true;
	open_with(kind, 2, 1, nets2, "src: lan1");
	cr_expect_eq(seen_more(s, 1, 10), 10u);
	charge(s, 1, 1);
	send1(s, 200);
	run_ms(1);
	cr_expect_eq(view_stripe(inside(s)), 1u << view_index(path_of(s, 0)));
	cr_expect_eq(view_frame_path(inside(s)), view_index(path_of(s, 0)));
	close_clean();
}

/* A preferred interface, for one of two peers. */
BOTH(rules_for_some_peers)
{
	char rule[128];

	open_with(kind, 2, 2, nets2, NULL);
	snprintf(rule, sizeof(rule), "src: 127.0.1.1@lan1, dst: 127.0.1.1:%u@lan1",
		 5000 + (unsigned)(side[1].p.eid % 50000));
	cr_expect_eq(seen_more(&side[0], 0, 5), 5u);
	add_rule(rule);
	cr_expect_eq(seen_more(&side[0], 0, 5), 5u);
	cr_expect_eq(seen_more(&side[1], 1, 5), 5u);
	close_clean();
}

/* The next frame is on the other rail; and back. */
BOTH(a_change_counts_at_once)
{
	struct side *s = &side[0];

	open_with(kind, 2, 1, nets2, NULL);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	add_rule("dst: lan1");
	cr_expect_eq(seen_more(s, 1, 5), 5u);
	cr_expect_eq(f.lnx->rail[0]->core_ep != NULL, true);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	del_rules();
	run_ms(300);
	cr_expect_eq(view_stripe(inside(s)), 3u);
	add_rule("src: lan0");
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	close_clean();
}

/* Pieces of a message that is being read come over the other rail from then on. */
BOTH(a_change_during_a_rendezvous)
{
	struct side *s = &side[0];
	struct op *o;
	uint64_t read;

	open_with(kind, 2, 1, nets2, "src: lan0");
	o = large_from(s);
	step();
	add_rule("src: lan1, idx: 0; src: lan0, priority: 1");
	read = f.core[0]->nread;
	RUN_UNTIL(o->ncomp, 20000);
	cr_expect_leq(f.core[0]->nread - read, 2u);
	o = large_from(s);
	read = f.core[0]->nread;
	RUN_UNTIL(o->ncomp, 20000);
	cr_expect_eq(f.core[0]->nread, read);
	close_clean();
}

/* The whole time from the death of the only preferred rail to the arrival of what was sent
 * meanwhile, over the other net. */
static void moves_soon(enum lnx_rail_kind kind, bool told)
{
	struct side *s = &side[0];
	uint64_t died_ns;
	uint32_t seq;
	unsigned i;

	open_with(kind, 2, 1, nets2, "src: lan1");
	/* The detector knows how soon answers come. */
	cr_expect_eq(seen_more(s, 1, 40), 40u);
	black_hole(1);
	died_ns = fake_now_ns;
	seq = view_next(inside(s));
	if (told)
		link_is(1, false);
	for (i = 0; i < 20; i++) {
		send1(s, 200);
		run_ms(1);
	}
	RUN_UNTIL(s->seen[seq], 5000);
	cr_expect_leq(fake_now_ns - died_ns, 100 * LNX_NS_PER_MS, "%lu ms",
		      (unsigned long)((fake_now_ns - died_ns) / LNX_NS_PER_MS));
	heal(1);
	if (told)
		link_is(1, true);
	RUN_UNTIL(!is_down(s, 1), 20000);
	run_ms(2000);
	send1(s, 200);
	run_ms(20);
	cr_expect_eq(seen_more(s, 1, 10), 10u, "it comes back");
	close_clean();
}

BOTH(moves_soon_when_the_link_goes_down) { moves_soon(kind, true); }
BOTH(moves_soon_from_a_black_hole) { moves_soon(kind, false); }

/* A rule counts however messages are divided among rails, and without it they are. */
static void in_mode(enum lnx_rail_kind kind, int mode, unsigned least)
{
	struct side *s = &side[0];
	unsigned n;

	fake_conf.multi_rail_selection = mode;
	fake_conf.udsp = "src: lan1";
	set_nets(kind, nets2);
	open_n(kind, 2, 1);
	send1(s, 200);
	run_ms(10);
	cr_expect_eq(seen_more(s, 1, 10), 10u);
	add_rule("src: lan0, idx: 0; src: lan1, priority: 1");
	run_ms(10);
	cr_expect_eq(seen_more(s, 0, 10), 10u, "the other net, from now on");
	del_rules();
	run_ms(10);
	n = seen_more(s, 0, 10);
	n = LNX_MIN(n, 10 - n);
	cr_expect_geq(n, least, "%u of 10 by the other rail", n);
	close_now();
}

BOTH(rules_with_spread) { in_mode(kind, LNX_SELECTION_SPREAD, 0); }
BOTH(rules_with_per_peer) { in_mode(kind, LNX_SELECTION_PER_PEER, 0); }
BOTH(rules_with_per_msg) { in_mode(kind, LNX_SELECTION_PER_MSG, 4); }
BOTH(rules_with_lnet) { in_mode(kind, LNX_SELECTION_LNET, 4); }

/* In one network there are four pairs of two rails, of which two are paths at first:
 * rules that want the other two get them. */
BOTH(pairs_that_were_no_paths)
{
	struct side *s = &side[0];
	uint64_t before[LNX_WIRE_PATHS], sent;
	struct lnx_peer *peer;
	unsigned i, k;

	set_nets(kind, nets1);
	fake_one_group = true;
	open_met(kind, 2, 1);
	peer = inside(s);
	cr_assert_eq(view_npath(peer), 2u);
	lnx_lock(&f.lnx->lock);
	lnx_path_set_wanted(peer);
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(view_npath(peer), 2u, "without rules nothing is added");
	/* N:1 */
	add_rule("src: 127.0.[0-1].1@lan, dst: 127.0.1.1@lan");
	cr_assert_eq(view_npath(peer), 3u);
	for (i = k = 0; i < view_npath(peer); i++) {
		bool wanted = view_remote(view_path(peer, i)) == 1;

		cr_expect_eq(view_stripe(peer) >> i & 1, wanted, "path %u", i);
		cr_expect_eq(view_index(view_path(peer, i)), i);
		k += wanted;
	}
	cr_expect_eq(k, 2u);
	cr_expect_eq(view_remote(view_path(peer, view_frame_path(peer))), 1u);
	/* By counters: frames that the pairs do not name get none. */
	for (i = 0; i < view_npath(peer); i++)
		before[i] = view_sent(view_path(peer, i));
	for (i = 0; i < 20; i++) {
		send1(s, 200);
		run_ms(3);
	}
	for (i = sent = 0; i < view_npath(peer); i++) {
		uint64_t more = view_sent(view_path(peer, i)) - before[i];

		sent += more;
		cr_expect(view_remote(view_path(peer, i)) == 1 || !more, "path %u", i);
	}
	cr_expect_geq(sent, 20 * 200u);
	close_now();
}

/* The same with the rule before the peer. */
BOTH(pairs_of_a_newcomer)
{
	struct lnx_peer *peer;
	unsigned i;

	set_nets(kind, nets1);
	fake_one_group = true;
	fake_conf.udsp = "src: 127.0.0.1@lan, dst: 127.0.1.1@lan";
	open_n(kind, 2, 1);
	send1(&side[0], 200);
	run_ms(10);
	peer = inside(&side[0]);
	cr_assert_geq(view_npath(peer), 1u);
	cr_expect_eq(view_rail(view_path(peer, 0)), f.lnx->rail[0]);
	cr_expect_eq(view_remote(view_path(peer, 0)), 1u);
	cr_expect_eq(view_stripe(peer), 1u);
	for (i = 1; i < view_npath(peer); i++)
		cr_expect_neq(view_remote(view_path(peer, i)), 1u);
	close_now();
}

/* One message after the other, by LNet's tables: by turns while all is equal. */
BOTH(lnet)
{
	struct side *s = &side[0];
	unsigned n;

	fake_conf.multi_rail_selection = LNX_SELECTION_LNET;
	open_with(kind, 2, 1, nets2, NULL);
	run_ms(10);
	n = seen_more(s, 0, 10);
	cr_expect(n >= 4 && n <= 6, "%u of 10", n);
	add_rule("src: lan1");
	cr_expect_eq(seen_more(s, 1, 10), 10u);
	charge(s, 1, 1);
	cr_expect_eq(view_rail(path_of(s, 1))->health.value < LNX_HEALTH_MAX, true);
	send1(s, 200);
	run_ms(5);
	cr_expect_eq(view_frame_path(inside(s)), view_index(path_of(s, 0)),
		     "health comes before rules");
	close_clean();
}

/* ---- what the user wrote ---- */

static const char *load(const char *yaml, struct lnx_config **config)
{
	static char path[] = "/tmp/lnx-test-XXXXXX", why[800];
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
	close(fd);
	why[0] = '\0';
	cr_expect_eq(lnx_config_load(path, config, why, sizeof(why)) != 0, why[0] != 0);
	unlink(path);
	cr_expect(!why[0] || strstr(why, path), "it names the file: %s", why);
	return why;
}

Test(policy_file, errors_name_the_place)
{
	struct lnx_config *config;
	const char *why = load("global:\n  retry_cuont: 3\n", &config);

	cr_expect(strstr(why, ":2:3: "), "%s", why);
	cr_expect(strstr(why, "retry_cuont"), "%s", why);
	cr_expect_null(config);
	fake_config_error = why;
	cr_expect_eq(lnx_policy_check(&fake_conf), -FI_EINVAL);
	fake_config_error = NULL;
	cr_expect_eq(lnx_policy_check(&fake_conf), 0);
}

Test(policy_file, is_used)
{
	struct lnx_config *config;

	cr_expect_str_empty(load("nets:\n  lan1: tcp/127.0.1.0/24\n  lan0: tcp/127.0.0.0/24\n"
				 "udsp:\n  - src: lan1\n", &config));
	cr_assert_not_null(config);
	fake_config = config;
	cr_expect_eq(lnx_policy_check(&fake_conf), 0);
	fake_separate = true;
	open_met(LNX_RAIL_PLAIN, 2, 1);
	cr_expect_eq(seen_more(&side[0], 1, 10), 10u);
	close_clean();
	/* A name that the rules use and the variable does not have. */
	fake_conf.nets = "tcp7=127.0.0.0/16";
	cr_expect_eq(lnx_policy_check(&fake_conf), -FI_EINVAL);
	fake_conf.nets = NULL;
	cr_expect_eq(lnx_policy_check(&fake_conf), 0);
	fake_conf.udsp = "src: lan1, dst: lan1, priority: 7";
	cr_expect_eq(lnx_policy_check(&fake_conf), -FI_EINVAL);
	fake_config = NULL;
	lnx_config_destroy(config);
}

Test(policy_file, a_missing_one)
{
	struct lnx_config *config;
	char why[800];

	cr_expect_eq(lnx_config_load("/nonexistent/lnx.conf", &config, why, sizeof(why)),
		     -ENOENT);
	cr_expect(strstr(why, "/nonexistent/lnx.conf"), "%s", why);
	cr_expect(strstr(why, "FI_LNX_CONFIG"), "%s", why);
}
