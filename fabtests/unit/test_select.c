/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Selection of paths: the tables of criteria and the order of paths, against models. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "policy/select.h"

#define GROUPS	4
#define RAILS	8
#define PATHS	64

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static unsigned pick(unsigned n)
{
	return (unsigned)(lrand48() % n);
}

struct world {
	struct lnx_view_group group[GROUPS];
	struct lnx_view_rail rail[RAILS];
	struct lnx_view_remote remote[RAILS];
	struct lnx_view_path path[PATHS];
	struct lnx_select_view v;
};

/* A world in which everything is equal and healthy. */
static void even(struct world *w)
{
	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < GROUPS; i++)
		w->group[i] = (struct lnx_view_group){
			.peer_health = LNX_HEALTH_MAX,
			.local_health = LNX_HEALTH_MAX,
			.peer_rule = LNX_RULE_NONE,
			.local_rule = LNX_RULE_NONE,
			.peer_used = 10, .local_used = 10,
		};
	for (unsigned i = 0; i < RAILS; i++) {
		w->rail[i] = (struct lnx_view_rail){
			.health = LNX_HEALTH_MAX, .rule = LNX_RULE_NONE,
			.device = 2, .numa = 10, .credits = 8, .used = 10,
			.bps = 1000,
		};
		w->remote[i] = (struct lnx_view_remote){
			.health = LNX_HEALTH_MAX, .rule = LNX_RULE_NONE,
			.credits = 8, .used = 10,
		};
	}
	w->v.group = w->group;
	w->v.rail = w->rail;
	w->v.remote = w->remote;
	w->v.path = w->path;
}

static void add(struct world *w, unsigned g, unsigned l, unsigned r)
{
	w->path[w->v.npath++] = (struct lnx_view_path){
		.group = (uint8_t)g, .rail = (uint8_t)l, .remote = (uint8_t)r,
		.health = LNX_HEALTH_MAX,
	};
}

/* ---- single criteria ---- */

/* The tables, written a second time by hand. */
static const enum lnx_why table[] = {
	LNX_WHY_ROUTED,
	LNX_WHY_PEER_GROUP_HEALTH,	/* A1 */
	LNX_WHY_PEER_GROUP_RULE,
	LNX_WHY_GROUP_HEALTH,
	LNX_WHY_GROUP_RULE,
	LNX_WHY_PEER_GROUP_USED,
	LNX_WHY_GROUP_USED,
	LNX_WHY_LINK_DOWN,		/* B1 */
	LNX_WHY_RAIL_HEALTH,
	LNX_WHY_RAIL_RULE,
	LNX_WHY_DEVICE,
	LNX_WHY_NUMA,
	LNX_WHY_RAIL_CREDITS,
	LNX_WHY_RAIL_USED,
	LNX_WHY_REMOTE_HEALTH,		/* C1 */
	LNX_WHY_REMOTE_RULE,
	LNX_WHY_PAIR_RULE,
	LNX_WHY_REMOTE_CREDITS,
	LNX_WHY_REMOTE_USED,
};
#define A_FIRST	0
#define B_FIRST	7
#define C_FIRST	14
#define TABLE	LNX_ARRAY_SIZE(table)

/* Make path i worse by one criterion: a little, or as much as possible. */
static void spoil(struct world *w, unsigned i, enum lnx_why why, bool much)
{
	struct lnx_view_path *p = &w->path[i];
	struct lnx_view_group *g = &w->group[p->group];
	struct lnx_view_rail *l = &w->rail[p->rail];
	struct lnx_view_remote *r = &w->remote[p->remote];

	switch (why) {
	case LNX_WHY_ROUTED: g->routed = true; break;
	case LNX_WHY_PEER_GROUP_HEALTH:
		g->peer_health = much ? 0 : LNX_HEALTH_MAX - 1;
		break;
	case LNX_WHY_PEER_GROUP_RULE: g->peer_rule = much ? 9 : 1; break;
	case LNX_WHY_GROUP_HEALTH:
		g->local_health = much ? 0 : LNX_HEALTH_MAX - 1;
		break;
	case LNX_WHY_GROUP_RULE: g->local_rule = much ? 9 : 1; break;
	case LNX_WHY_PEER_GROUP_USED:
		g->peer_used = much ? UINT64_MAX : 11;
		break;
	case LNX_WHY_GROUP_USED:
		g->local_used = much ? UINT64_MAX : 11;
		break;
	case LNX_WHY_LINK_DOWN: l->fatal = true; break;
	case LNX_WHY_RAIL_HEALTH:
		l->health = much ? 0 : LNX_HEALTH_MAX - 1;
		break;
	case LNX_WHY_RAIL_RULE: l->rule = much ? 9 : 1; break;
	case LNX_WHY_DEVICE: l->device = much ? UINT32_MAX : 3; break;
	case LNX_WHY_NUMA: l->numa = much ? UINT32_MAX : 11; break;
	case LNX_WHY_RAIL_CREDITS: l->credits = much ? INT32_MIN : 7; break;
	case LNX_WHY_RAIL_USED: l->used = much ? UINT64_MAX : 11; break;
	case LNX_WHY_REMOTE_HEALTH:
		r->health = much ? 0 : LNX_HEALTH_MAX - 1;
		break;
	case LNX_WHY_REMOTE_RULE: r->rule = much ? 9 : 1; break;
	case LNX_WHY_PAIR_RULE: p->preferred = false; break;
	case LNX_WHY_REMOTE_CREDITS: r->credits = much ? INT32_MIN : 7; break;
	case LNX_WHY_REMOTE_USED: r->used = much ? UINT64_MAX : 11; break;
	default: cr_assert_fail("criterion %d", why);
	}
}

/* Two paths that table[i] can tell apart: their groups, rails or remote rails
 * differ. */
static void two(struct world *w, size_t i)
{
	unsigned k;

	even(w);
	w->v.device = true;
	for (k = 0; k < 2; k++)
		add(w, i < B_FIRST ? k : 0, i < C_FIRST ? k : 0, k);
	/* Rules of 0, so that "a little worse" is still better than no rule. */
	for (k = 0; k < GROUPS; k++)
		w->group[k].peer_rule = w->group[k].local_rule = 0;
	for (k = 0; k < RAILS; k++)
		w->rail[k].rule = w->remote[k].rule = 0;
	w->path[0].preferred = w->path[1].preferred = true;
}

Test(select, each_criterion_decides_alone)
{
	for (size_t i = 0; i < TABLE; i++) {
		for (unsigned bad = 0; bad < 2; bad++) {
			struct world w;
			uint8_t why[2];

			two(&w, i);
			spoil(&w, bad, table[i], false);
			cr_expect_eq(lnx_select_choose(&w.v, why),
				     (int)!bad, "%s", lnx_select_why_text(table[i]));
			cr_expect_eq(why[!bad], LNX_WHY_BEST);
			cr_expect_eq(why[bad], table[i], "%s, not %s",
				     lnx_select_why_text(table[i]),
				     lnx_select_why_text(why[bad]));
		}
	}
}

/* A minimal difference in one criterion outweighs any difference in later ones. */
Test(select, earlier_criteria_outweigh_all_later_ones)
{
	for (size_t i = 0; i < TABLE; i++) {
		for (unsigned bad = 0; bad < 2; bad++) {
			struct world w;
			uint8_t why[2];

			two(&w, i);
			spoil(&w, bad, table[i], false);
			for (size_t j = i + 1; j < TABLE; j++)
				/* Criteria of a part that both share cannot decide. */
				if (j < C_FIRST || i >= C_FIRST ||
				    w.path[0].remote != w.path[1].remote)
					spoil(&w, !bad, table[j], true);
			cr_expect_eq(lnx_select_choose(&w.v, why), (int)!bad,
				     "%s", lnx_select_why_text(table[i]));
			cr_expect_eq(why[bad], table[i]);
		}
	}
}

/* Each two neighbours in the tables against each other. */
Test(select, neighbours_in_order)
{
	for (size_t i = 0; i + 1 < TABLE; i++) {
		for (unsigned bad = 0; bad < 2; bad++) {
			struct world w;
			uint8_t why[2];

			two(&w, i);
			spoil(&w, bad, table[i], false);
			spoil(&w, !bad, table[i + 1], true);
			cr_expect_eq(lnx_select_choose(&w.v, why), (int)!bad,
				     "%s before %s", lnx_select_why_text(table[i]),
				     lnx_select_why_text(table[i + 1]));
			cr_expect_eq(why[bad], table[i]);
		}
	}
}

Test(select, equal_ones_first_come)
{
	struct world w;
	uint8_t why[PATHS];

	even(&w);
	cr_expect_eq(lnx_select_choose(&w.v, NULL), -1);
	for (unsigned g = 0; g < 2; g++)
		for (unsigned l = 0; l < 2; l++)
			for (unsigned r = 0; r < 2; r++)
				add(&w, g, 2 * g + l, 2 * g + r);
	cr_expect_eq(lnx_select_choose(&w.v, why), 0);
	cr_expect_eq(why[0], LNX_WHY_BEST);
	for (unsigned i = 1; i < w.v.npath; i++)
		cr_expect_eq(why[i], LNX_WHY_ORDER);
}

Test(select, nothing_is_left_out)
{
	struct world w;
	uint8_t why[2];

	two(&w, 0);
	for (size_t i = 0; i < TABLE; i++)
		spoil(&w, 0, table[i], true);
	w.v.npath = 1;
	cr_expect_eq(lnx_select_choose(&w.v, why), 0);
	cr_expect_eq(why[0], LNX_WHY_BEST);
}

Test(select, numa_range)
{
	static const struct {
		uint32_t range;
		bool device;
		int best;
	} cases[] = {
		{ 0, false, 1 }, { 11, false, 1 }, { 20, false, 1 },
		/* Both below the limit: equal, and the first was used last. */
		{ 21, false, 0 }, { 1000, false, 0 },
		/* Memory of a device: the distance itself is compared. */
		{ 1000, true, 1 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		struct world w;

		even(&w);
		add(&w, 0, 0, 0);
		add(&w, 0, 1, 0);
		w.rail[0].numa = 21;
		w.rail[1].used = 11;
		w.v.numa_range = cases[i].range;
		w.v.device = cases[i].device;
		cr_expect_eq(lnx_select_choose(&w.v, NULL), cases[i].best,
			     "range %u", cases[i].range);
	}
}

/* Device distances only apply to buffers in device memory. */
Test(select, host_memory_has_no_device)
{
	struct world w;
	uint8_t why[2];

	even(&w);
	add(&w, 0, 0, 0);
	add(&w, 0, 1, 0);
	w.rail[0].device = 5;
	cr_expect_eq(lnx_select_choose(&w.v, why), 0);
	cr_expect_eq(why[1], LNX_WHY_ORDER);
	w.v.device = true;
	cr_expect_eq(lnx_select_choose(&w.v, why), 1);
	cr_expect_eq(why[0], LNX_WHY_DEVICE);
}

/* A rule for pairs does not influence the choice of the rail, which comes first. */
Test(select, pairs_count_after_the_rail)
{
	struct world w;

	even(&w);
	add(&w, 0, 0, 0);
	add(&w, 0, 0, 1);
	add(&w, 0, 1, 0);
	add(&w, 0, 1, 1);
	w.path[3].preferred = true;
	cr_expect_eq(lnx_select_choose(&w.v, NULL), 0);
	w.rail[0].credits--;
	cr_expect_eq(lnx_select_choose(&w.v, NULL), 3);
}

/* Stamps of use: equal paths are used in turn, none twice before all others. */
Test(select, round_robin)
{
	unsigned count[PATHS] = { 0 };
	uint64_t stamp = 100;
	struct world w;

	even(&w);
	for (unsigned g = 0; g < 2; g++)
		for (unsigned l = 0; l < 2; l++)
			for (unsigned r = 0; r < 3; r++)
				add(&w, g, 2 * g + l, 3 * g + r);
	for (unsigned i = 0; i < 120; i++) {
		int c = lnx_select_choose(&w.v, NULL);
		const struct lnx_view_path *p = &w.path[c];

		cr_assert(c >= 0);
		cr_expect_eq(p->group, i % 2);
		count[c]++;
		stamp++;
		w.group[p->group].peer_used = stamp;
		w.group[p->group].local_used = stamp;
		w.rail[p->rail].used = stamp;
		w.remote[p->remote].used = stamp;
	}
	for (unsigned i = 0; i < w.v.npath; i++)
		cr_expect_eq(count[i], 10, "path %u: %u", i, count[i]);
}

/* ---- against the tables, taken literally ---- */

/* Few values, so that ties are common and every criterion decides sometimes. */
static void randomize(struct world *w)
{
	unsigned groups = 1 + pick(3);
	unsigned idle_polls = pick(4);	/* criteria that are the same for all */
	unsigned n;

#define SOME(n)	(pick(idle_polls + 1) ? 0 : pick(n))
	even(w);
	for (unsigned i = 0; i < GROUPS; i++)
		w->group[i] = (struct lnx_view_group){
			.routed = SOME(2),
			.peer_health = (uint16_t)(1000 - 500 * SOME(3)),
			.local_health = (uint16_t)(1000 - 500 * SOME(3)),
			.peer_rule = LNX_RULE_NONE - SOME(2),
			.local_rule = LNX_RULE_NONE - SOME(2),
			.peer_used = SOME(3), .local_used = SOME(3),
		};
	for (unsigned i = 0; i < RAILS; i++) {
		w->rail[i] = (struct lnx_view_rail){
			.fatal = SOME(2),
			.health = (uint16_t)(1000 - 500 * SOME(3)),
			.rule = LNX_RULE_NONE - SOME(2), .device = SOME(2),
			.numa = 10 + SOME(3), .credits = 1 - (int)SOME(3),
			.used = SOME(3), .bps = SOME(3),
		};
		w->remote[i] = (struct lnx_view_remote){
			.health = (uint16_t)(1000 - 500 * SOME(3)),
			.rule = LNX_RULE_NONE - SOME(2),
			.credits = 1 - (int)SOME(3), .used = SOME(3),
		};
	}
	for (unsigned l = 0; l < RAILS; l++) {
		for (unsigned r = 0; r < RAILS; r++) {
			if (l % groups != r % groups || pick(4) == 0)
				continue;
			add(w, l % groups, l, r);
			w->path[w->v.npath - 1].health =
				(uint16_t)(1000 - 500 * SOME(3));
			w->path[w->v.npath - 1].preferred = SOME(2);
		}
	}
	/* In any order. */
	for (unsigned i = w->v.npath; i > 1; i--) {
		unsigned j = pick(i);
		struct lnx_view_path tmp = w->path[i - 1];

		w->path[i - 1] = w->path[j];
		w->path[j] = tmp;
	}
	n = pick(PATHS);
	w->v.npath = LNX_MIN(w->v.npath, n);
	w->v.numa_range = pick(2) ? 0 : 12;
	w->v.device = pick(3) == 0;
#undef SOME
}

/* The paths that are left, fewer after each criterion. */
struct race {
	const struct world *w;
	uint8_t out[PATHS];		/* the reason; 0: still a candidate */
};

#define THIN(race, why_, higher, expr) do { \
	const struct world *w = (race)->w; \
	double top = 0; \
	bool any = false; \
	for (unsigned i_ = 0; i_ < w->v.npath; i_++) { \
		const struct lnx_view_path *p = &w->path[i_]; \
		double x = (double)(expr); \
		if ((race)->out[i_]) \
			continue; \
		if (!any || ((higher) ? x > top : x < top)) \
			top = x; \
		any = true; \
	} \
	for (unsigned i_ = 0; i_ < w->v.npath; i_++) { \
		const struct lnx_view_path *p = &w->path[i_]; \
		if (!(race)->out[i_] && (double)(expr) != top) \
			(race)->out[i_] = (why_); \
	} \
} while (0)
#define HIGHEST	true
#define LOWEST	false
#define G	(w->group[p->group])
#define L	(w->rail[p->rail])
#define R	(w->remote[p->remote])

/* Of the remaining paths keep the first and those that share `what` with it. */
#define FIRST(race, what) do { \
	const struct lnx_view_path *first = NULL; \
	for (unsigned i_ = 0; i_ < (race)->w->v.npath; i_++) { \
		const struct lnx_view_path *p = &(race)->w->path[i_]; \
		if ((race)->out[i_]) \
			continue; \
		if (!first) \
			first = p; \
		if (p->what != first->what) \
			(race)->out[i_] = LNX_WHY_ORDER; \
	} \
} while (0)

static void run_race(struct race *race, bool lasting)
{
	uint32_t range = race->w->v.device ? 0 : race->w->v.numa_range;
	bool device = race->w->v.device;

	THIN(race, LNX_WHY_ROUTED, LOWEST, G.routed);
	THIN(race, LNX_WHY_PEER_GROUP_HEALTH, HIGHEST, G.peer_health);
	THIN(race, LNX_WHY_PEER_GROUP_RULE, LOWEST, G.peer_rule);
	THIN(race, LNX_WHY_GROUP_HEALTH, HIGHEST, G.local_health);
	THIN(race, LNX_WHY_GROUP_RULE, LOWEST, G.local_rule);
	if (lasting)
		return;
	THIN(race, LNX_WHY_PEER_GROUP_USED, LOWEST, G.peer_used);
	THIN(race, LNX_WHY_GROUP_USED, LOWEST, G.local_used);
	FIRST(race, group);
	THIN(race, LNX_WHY_LINK_DOWN, LOWEST, L.fatal);
	THIN(race, LNX_WHY_RAIL_HEALTH, HIGHEST, L.health);
	THIN(race, LNX_WHY_RAIL_RULE, LOWEST, L.rule);
	THIN(race, LNX_WHY_DEVICE, LOWEST, device ? L.device : 0);
	THIN(race, LNX_WHY_NUMA, LOWEST, L.numa < range ? range : L.numa);
	THIN(race, LNX_WHY_RAIL_CREDITS, HIGHEST, L.credits);
	THIN(race, LNX_WHY_RAIL_USED, LOWEST, L.used);
	FIRST(race, rail);
	THIN(race, LNX_WHY_REMOTE_HEALTH, HIGHEST, R.health);
	THIN(race, LNX_WHY_REMOTE_RULE, LOWEST, R.rule);
	THIN(race, LNX_WHY_PAIR_RULE, HIGHEST, p->preferred);
	THIN(race, LNX_WHY_REMOTE_CREDITS, HIGHEST, R.credits);
	THIN(race, LNX_WHY_REMOTE_USED, LOWEST, R.used);
	FIRST(race, remote);
}

Test(select, random_against_the_tables)
{
	unsigned long s = seed();
	bool seen[LNX_WHY_COUNT] = { false };

	for (unsigned round = 0; round < 20000; round++) {
		uint8_t why[PATHS];
		struct world w;
		struct race race = { .w = &w };
		int c;

		randomize(&w);
		run_race(&race, false);
		memset(why, 0x77, sizeof(why));
		c = lnx_select_choose(&w.v, why);
		if (!w.v.npath) {
			cr_assert_eq(c, -1);
			continue;
		}
		for (unsigned i = 0; i < w.v.npath; i++) {
			cr_assert_eq(race.out[i] == 0, (int)i == c,
				     "seed %lu round %u: took %d", s, round,
				     c);
			cr_assert_eq(why[i], race.out[i],
				     "seed %lu round %u path %u: %s, not %s",
				     s, round, i, lnx_select_why_text(why[i]),
				     lnx_select_why_text(race.out[i]));
			seen[why[i]] = true;
		}
		cr_assert(w.v.npath == PATHS || why[w.v.npath] == 0x77);
	}
	for (size_t i = 0; i < TABLE; i++)
		cr_expect(seen[table[i]], "seed %lu: never decided: %s", s,
			  lnx_select_why_text(table[i]));
}

/* ---- the order of paths ---- */

static const enum lnx_conf_selection modes[] = {
	LNX_SELECTION_SPREAD, LNX_SELECTION_PER_PEER, LNX_SELECTION_PER_MSG,
	LNX_SELECTION_LNET,
};

/* "lr" of each path in order; '|' between classes; () around paths whose rails
 * are both in use. */
static const char *text_of(const struct world *w, const struct lnx_ranked *at,
			   unsigned n)
{
	static char text[PATHS * 6 + 1];
	char *t = text;

	*t = '\0';
	for (unsigned i = 0; i < n; i++) {
		const struct lnx_view_path *p = &w->path[at[i].path];

		t += sprintf(t, at[i].shared == 2 ? "%s(%u%u)" : "%s%u%u",
			     !i ? "" : at[i].class == at[i - 1].class ? " " :
			     "|", p->rail, p->remote);
	}
	return text;
}

/* All pairs of nl local and nr remote rails, in the standard order of pairs. */
static void full(struct world *w, unsigned nl, unsigned nr)
{
	even(w);
	for (unsigned turn = 0; turn < nl; turn++)
		for (unsigned r = 0; r < nr; r++)
			add(w, 0, (r + turn) % nl, r);
}

struct want {
	const char *text;
	unsigned n_stripe, n_rr;
};

static void expect(const struct world *w, enum lnx_conf_selection mode,
		   unsigned turn, unsigned max, struct want want)
{
	struct lnx_ranked at[PATHS];
	struct lnx_select_counts s = lnx_select_order(&w->v, mode, turn, at, max);

	cr_expect_str_eq(text_of(w, at, s.n), want.text,
			 "mode %d turn %u: \"%s\", not \"%s\"", mode, turn,
			 text_of(w, at, s.n), want.text);
	cr_expect_eq(s.n_stripe, want.n_stripe, "mode %d: n_stripe %u", mode,
		     s.n_stripe);
	cr_expect_eq(s.n_rr, want.n_rr, "mode %d: n_rr %u", mode, s.n_rr);
}
#define SPREAD		LNX_SELECTION_SPREAD
#define PER_PEER	LNX_SELECTION_PER_PEER
#define PER_MSG		LNX_SELECTION_PER_MSG
#define LNET		LNX_SELECTION_LNET
#define WANT(...)	((struct want){ __VA_ARGS__ })

Test(select, order_of_nothing)
{
	struct world w;

	even(&w);
	for (size_t m = 0; m < LNX_ARRAY_SIZE(modes); m++)
		expect(&w, modes[m], 3, 8, WANT("", 0, 0));
	add(&w, 0, 0, 0);
	for (size_t m = 0; m < LNX_ARRAY_SIZE(modes); m++) {
		expect(&w, modes[m], 3, 8, WANT("00", 1, 1));
		expect(&w, modes[m], 3, 0, WANT("", 0, 0));
	}
}

/* The order that each mode gives for equal rails. */
Test(select, modes)
{
	struct world w;

	full(&w, 2, 2);
	expect(&w, SPREAD, 0, 8, WANT("00 11 (10) (01)", 2, 1));
	expect(&w, SPREAD, 1, 8, WANT("11 00 (10) (01)", 2, 1));
	expect(&w, SPREAD, 2, 8, WANT("00 11 (10) (01)", 2, 1));
	expect(&w, PER_PEER, 0, 8, WANT("00 11 (10) (01)", 1, 1));
	expect(&w, PER_PEER, 1, 8, WANT("11 00 (10) (01)", 1, 1));
	expect(&w, PER_MSG, 1, 8, WANT("00 11 (10) (01)", 2, 2));
	expect(&w, LNET, 1, 8, WANT("00 11 (10) (01)", 1, 2));
	/* Fewer rails on one side: all rails of the other side are used. */
	full(&w, 1, 3);
	expect(&w, SPREAD, 0, 8, WANT("00 01 02", 3, 1));
	expect(&w, PER_PEER, 2, 8, WANT("02 00 01", 1, 1));
	full(&w, 3, 2);
	expect(&w, SPREAD, 0, 8, WANT("00 11 21 (10) (20) (01)", 3, 1));
	expect(&w, SPREAD, 1, 8, WANT("11 21 00 (10) (20) (01)", 3, 1));
	expect(&w, SPREAD, 2, 8, WANT("21 00 11 (10) (20) (01)", 3, 1));
	expect(&w, PER_PEER, 2, 8, WANT("21 00 11 (10) (20) (01)", 1, 1));
	/* Only one path: peers are still spread over all rails in turn. */
	full(&w, 3, 3);
	expect(&w, SPREAD, 0, 1, WANT("00", 1, 1));
	expect(&w, SPREAD, 1, 1, WANT("11", 1, 1));
	expect(&w, PER_PEER, 5, 1, WANT("22", 1, 1));
	expect(&w, PER_MSG, 0, 1, WANT("00", 1, 1));
}

Test(select, distance_decides_the_order)
{
	struct world w;

	full(&w, 2, 2);
	w.rail[0].numa = 21;
	/* Both rails are used; small messages stay on the near one. */
	for (unsigned turn = 0; turn < 3; turn++)
		expect(&w, SPREAD, turn, 8, WANT("11 00 (10) (01)", 2, 1));
	expect(&w, PER_MSG, 0, 8, WANT("11 00 (10) (01)", 2, 2));
	/* All peers and all messages use the near one. */
	for (unsigned turn = 0; turn < 3; turn++)
		expect(&w, PER_PEER, turn, 8,
		       WANT(turn % 2 ? "10 11|00 (01)" : "11 10|00 (01)",
			    1, 1));
	expect(&w, LNET, 0, 8, WANT("11 10|00 (01)", 1, 2));
	/* Unless the other one is near enough. */
	w.v.numa_range = 30;
	expect(&w, SPREAD, 1, 8, WANT("11 00 (10) (01)", 2, 1));
	expect(&w, PER_PEER, 0, 8, WANT("00 11 (10) (01)", 1, 1));
	expect(&w, LNET, 0, 8, WANT("00 11 (10) (01)", 1, 2));
}

Test(select, faster_links_first)
{
	struct world w;

	full(&w, 3, 3);
	w.rail[1].bps = 4000;
	w.rail[2].bps = 0;
	for (unsigned turn = 0; turn < 3; turn++)
		expect(&w, SPREAD, turn, 3, WANT("11 00 22", 3, 1));
	/* The user has chosen one rail per peer, in turn. */
	expect(&w, PER_PEER, 2, 3, WANT("22 11 00", 1, 1));
	/* LNET does not use speeds. */
	expect(&w, LNET, 0, 3, WANT("00 11 22", 1, 3));
}

Test(select, health_then_rules)
{
	struct world w;

	full(&w, 2, 2);
	w.rail[0].health = 999;
	w.rail[0].rule = 0;
	expect(&w, SPREAD, 0, 8, WANT("11 10|00 (01)", 2, 1));
	w.rail[0].health = 1000;
	expect(&w, SPREAD, 0, 8, WANT("00 01|11 (10)", 2, 1));
	/* A path is as healthy as its worst part. */
	w.rail[0].rule = LNX_RULE_NONE;
	w.remote[1].health = 500;
	expect(&w, SPREAD, 0, 8, WANT("00 10|11 (01)", 2, 1));
	w.remote[1].health = 1000;
	w.path[0].health = 400;
	expect(&w, SPREAD, 0, 8, WANT("11 10 01|(00)", 3, 1));
	/* LNET has no health of pairs. */
	expect(&w, LNET, 0, 8, WANT("00 11 (10) (01)", 1, 2));
}

/* A rule for pairs connects each rail with the rail of the same number. */
Test(select, clones)
{
	struct world w;

	full(&w, 3, 3);
	for (unsigned i = 0; i < w.v.npath; i++)
		w.path[i].preferred = (w.path[i].rail + 1u) % 3 ==
				      w.path[i].remote;
	for (size_t m = 0; m < LNX_ARRAY_SIZE(modes); m++) {
		struct lnx_ranked at[PATHS];

		lnx_select_order(&w.v, modes[m], 0, at, 8);
		for (unsigned i = 0; i < 3; i++)
			cr_expect(w.path[at[i].path].preferred &&
				  at[i].class == 0, "mode %d", modes[m]);
		cr_expect_eq(at[3].class, 1);
		cr_expect_eq(at[3].why, LNX_WHY_PAIR_RULE);
	}
}

/* A routed path is the last choice, and still better than a dead one. */
Test(select, routed)
{
	struct world w;

	even(&w);
	w.group[1].routed = true;
	add(&w, 1, 1, 1);
	add(&w, 0, 0, 0);
	expect(&w, SPREAD, 0, 8, WANT("00|11", 1, 1));
	w.rail[0].health = 1;
	expect(&w, SPREAD, 0, 8, WANT("00|11", 1, 1));
	w.rail[0].health = 0;
	expect(&w, SPREAD, 0, 8, WANT("11|00", 1, 1));
	w.rail[0].health = 1000;
	w.rail[0].fatal = true;
	expect(&w, SPREAD, 0, 8, WANT("11|00", 1, 1));
	/* LNET would stay in the common group. */
	expect(&w, LNET, 0, 8, WANT("00|11", 1, 1));
}

/* If there are too many, paths that use an additional rail are kept. */
Test(select, cut_keeps_rails)
{
	struct lnx_ranked at[PATHS];
	struct lnx_select_counts s;
	struct world w;

	full(&w, 3, 3);
	for (unsigned i = 0; i < 3; i++)
		add(&w, 1, 3 + i, 3 + i);
	for (unsigned i = 3; i < 6; i++)
		w.rail[i].health = 300;
	s = lnx_select_order(&w.v, SPREAD, 0, at, 8);
	cr_expect_str_eq(text_of(&w, at, s.n),
			 "00 11 22 (10) (21)|33 44 55");
	cr_expect_eq(s.n_stripe, 3);
	s = lnx_select_order(&w.v, SPREAD, 0, at, 4);
	cr_expect_str_eq(text_of(&w, at, s.n), "00 11 22|33");
	s = lnx_select_order(&w.v, SPREAD, 0, at, 2);
	cr_expect_str_eq(text_of(&w, at, s.n), "00 11");
	cr_expect_eq(s.n_stripe, 2);
}

Test(select, reasons)
{
	static const uint8_t want[] = {
		LNX_WHY_BEST, LNX_WHY_ORDER, LNX_WHY_NUMA, LNX_WHY_SPEED,
		LNX_WHY_PATH_HEALTH, LNX_WHY_RAIL_RULE, LNX_WHY_LINK_DOWN,
	};
	/* The index of each local rail. */
	static const uint8_t rail[] = { 2, 6, 4, 0, 1, 3, 5 };
	struct lnx_ranked at[PATHS];
	struct lnx_select_counts s;
	struct world w;

	even(&w);
	for (unsigned i = 0; i < 7; i++)
		add(&w, 0, i, i);
	w.rail[0].bps = 5;
	w.rail[4].numa = 21;
	w.rail[1].health = 900;
	for (unsigned i = 0; i < 7; i++)
		w.rail[i].rule = 7;
	w.rail[3].rule = 8;
	w.rail[5].fatal = true;
	s = lnx_select_order(&w.v, SPREAD, 0, at, 8);
	cr_assert_eq(s.n, 7);
	for (unsigned i = 0; i < 7; i++) {
		bool found = false;

		for (unsigned k = 0; k < 7; k++)
			if (w.path[at[i].path].rail == rail[k]) {
				cr_expect_eq(at[i].why, want[k],
					     "rail %u: %s", rail[k],
					     lnx_select_why_text(at[i].why));
				found = true;
			}
		cr_expect(found);
	}
	full(&w, 2, 2);
	lnx_select_order(&w.v, SPREAD, 0, at, 8);
	cr_expect_eq(at[1].why, LNX_WHY_ORDER);
	cr_expect_eq(at[2].why, LNX_WHY_SHARED);
}

/* The criteria that make a class, as a list of numbers compared from the left. */
#define KEYS	11
static void keys_of(const struct world *w, enum lnx_conf_selection mode,
		    unsigned i, double key[KEYS])
{
	const struct lnx_view_path *p = &w->path[i];
	unsigned health = LNX_MIN(L.health, LNX_MIN(R.health, p->health));
	double numa = L.numa;

	if (!w->v.device && numa < w->v.numa_range)
		numa = w->v.numa_range;
	key[0] = L.fatal;
	key[1] = !health;
	key[2] = G.routed;
	key[3] = -(double)health;
	key[4] = G.peer_rule;
	key[5] = G.local_rule;
	key[6] = L.rule;
	key[7] = R.rule;
	key[8] = !p->preferred;
	key[9] = mode == PER_PEER && w->v.device ? L.device : 0;
	key[10] = mode == PER_PEER ? numa : 0;
}

static int compare_keys(const double *a, const double *b)
{
	for (unsigned k = 0; k < KEYS; k++)
		if (a[k] != b[k])
			return a[k] < b[k] ? -1 : 1;
	return 0;
}

/* Number of distinct classes that are better than that of path i. */
static unsigned class_of(const struct world *w, enum lnx_conf_selection mode,
			 unsigned i)
{
	double mine[KEYS], key[PATHS][KEYS];
	unsigned n = 0;

	keys_of(w, mode, i, mine);
	for (unsigned j = 0; j < w->v.npath; j++) {
		bool first = true;

		keys_of(w, mode, j, key[j]);
		for (unsigned k = 0; k < j; k++)
			first &= compare_keys(key[k], key[j]) != 0;
		n += first && compare_keys(key[j], mine) < 0;
	}
	return n;
}

/* Can credits and use make LNet's tables choose path i? */
static bool may_be_chosen(const struct world *world, unsigned i)
{
	struct world w = *world;
	const struct lnx_view_path *p = &w.path[i];

	for (unsigned g = 0; g < GROUPS; g++)
		w.group[g].peer_used = w.group[g].local_used = g != p->group;
	for (unsigned k = 0; k < RAILS; k++) {
		w.rail[k].credits = w.remote[k].credits = 1;
		w.rail[k].used = k != p->rail;
		w.remote[k].used = k != p->remote;
	}
	w.v.group = w.group;
	w.v.rail = w.rail;
	w.v.remote = w.remote;
	w.v.path = w.path;
	return lnx_select_choose(&w.v, NULL) == (int)i;
}

static void check_order(const struct world *w, enum lnx_conf_selection mode,
			const struct lnx_ranked *at, struct lnx_select_counts s)
{
	bool seen[PATHS] = { false }, rail[RAILS] = { false };
	bool remote[RAILS] = { false };
	unsigned lead = 0;

	cr_assert_eq(s.n, w->v.npath);
	for (unsigned i = 0; i < s.n; i++) {
		const struct lnx_view_path *p = &w->path[at[i].path];

		cr_assert_lt(at[i].path, w->v.npath);
		cr_assert_not(seen[at[i].path]);
		seen[at[i].path] = true;
		if (mode == LNET)
			cr_assert_eq(at[i].class == 0,
				     may_be_chosen(w, at[i].path));
		else
			cr_assert_eq(at[i].class,
				     class_of(w, mode, at[i].path));
		cr_assert_eq(at[i].why == LNX_WHY_BEST, i == 0);
		cr_assert_eq(at[i].shared == 2,
			     rail[p->rail] && remote[p->remote]);
		rail[p->rail] = remote[p->remote] = true;
		lead += !at[i].class && at[i].shared < 2;
		if (!i)
			continue;
		cr_assert_leq(at[i - 1].class, at[i].class);
		if (at[i - 1].class == at[i].class && mode != PER_PEER)
			cr_assert_leq(at[i - 1].shared, at[i].shared);
	}
	cr_assert_eq(s.n_stripe, mode == SPREAD || mode == PER_MSG ? lead :
		     LNX_MIN(lead, 1u));
	cr_assert_eq(s.n_rr, mode == PER_MSG || mode == LNET ? lead :
		     LNX_MIN(lead, 1u));
}

Test(select, random_orders)
{
	unsigned long s = seed();

	for (unsigned round = 0; round < 1000; round++) {
		struct world w;

		randomize(&w);
		for (size_t m = 0; m < LNX_ARRAY_SIZE(modes); m++) {
			struct lnx_ranked at[PATHS + 1];
			struct lnx_select_counts spread;
			bool first[PATHS] = { false };
			unsigned turn, lead;

			memset(at, 0x77, sizeof(at));
			spread = lnx_select_order(&w.v, modes[m], 0, at,
						   PATHS);
			if (at[w.v.npath].path != 0x77)
				cr_assert_fail("seed %lu round %u: written after the end",
					       s, round);
			check_order(&w, modes[m], at, spread);
			if (modes[m] != PER_PEER)
				continue;
			/* Peers are spread evenly. */
			lead = 0;
			while (lead < spread.n && !at[lead].class &&
			       at[lead].shared < 2)
				lead++;
			for (turn = 0; turn < lead; turn++) {
				lnx_select_order(&w.v, PER_PEER, turn + 40 *
						  lead, at, PATHS);
				cr_assert_not(first[at[0].path]);
				first[at[0].path] = true;
			}
		}
	}
}

/* Equal rails, in any number: all are used, and none twice unless necessary. */
Test(select, all_rails_are_used)
{
	for (unsigned nl = 1; nl <= RAILS; nl++) {
		for (unsigned nr = 1; nr <= RAILS; nr++) {
			struct lnx_ranked at[PATHS];
			struct lnx_select_counts s;
			struct world w;
			unsigned rail = 0, remote = 0;

			full(&w, nl, nr);
			/* With a distance, so that the order differs. */
			w.rail[nl - 1].numa = 5;
			s = lnx_select_order(&w.v, SPREAD, 0, at, PATHS);
			cr_assert_eq(s.n_stripe, LNX_MAX(nl, nr), "%u to %u",
				     nl, nr);
			cr_assert_eq(w.path[at[0].path].rail, nl - 1);
			for (unsigned i = 0; i < s.n_stripe; i++) {
				rail |= 1u << w.path[at[i].path].rail;
				remote |= 1u << w.path[at[i].path].remote;
				cr_assert_eq(at[i].shared,
					     i >= LNX_MIN(nl, nr));
			}
			cr_assert_eq(rail, (1u << nl) - 1);
			cr_assert_eq(remote, (1u << nr) - 1);
		}
	}
}

Test(select, every_reason_has_words)
{
	for (unsigned i = 0; i < LNX_WHY_COUNT; i++) {
		cr_expect(lnx_select_why_text((enum lnx_why)i));
		for (unsigned j = 0; j < i; j++)
			cr_expect_str_neq(lnx_select_why_text((enum lnx_why)i),
					  lnx_select_why_text((enum lnx_why)j));
	}
	cr_expect_str_eq(lnx_select_why_text(LNX_WHY_COUNT), "unknown");
}
