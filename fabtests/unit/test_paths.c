/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The paths of a peer, from its address and our rails. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/paths.h"
#include "view.h"

/* An endpoint that has only rails, and the address of a peer. */
static struct lnx_conf conf;
static struct lnx_ep ep;
static struct lnx_rail shm, rail[LNX_RAILS_MAX];
static struct lnx_rails peer;

/* Rails are written "a1": provider a, group 1. */
static void rails(const char *local, const char *remote)
{
	const char *t;
	unsigned n;

	memset(&ep, 0, sizeof(ep));
	memset(&peer, 0, sizeof(peer));
	memset(rail, 0, sizeof(rail));
	memset(&conf, 0, sizeof(conf));
	conf.max_rails = 8;
	lnx_lock_init(&ep.lock, false);
	lnx_lock(&ep.lock);
	ep.conf = &conf;
	ep.rail[ep.nrail++] = &shm;
	for (t = local; *t; t += t[2] ? 3 : 2) {
		struct lnx_rail *r = &rail[ep.nnet++];

		r->prov = (uint8_t)t[0];
		r->group = (uint16_t)t[1];
		r->numa = 10;
		ep.rail[ep.nrail++] = r;
	}
	for (n = 0, t = remote; *t; t += t[2] ? 3 : 2, n++) {
		peer.rail[n].prov = (uint8_t)t[0];
		peer.rail[n].group = (uint16_t)t[1];
		peer.place[n] = (uint8_t)n;
	}
	peer.n = n;
}

static void expect(unsigned max, const char *want, unsigned n_stripe,
		   unsigned n_rr)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	struct lnx_select_counts s = lnx_paths_choose(&ep, &peer, NULL, NULL, way,
						      max);
	char text[4 * LNX_PATHS_MAX + 1] = "";

	for (unsigned i = 0; i < s.n; i++)
		sprintf(text + strlen(text), "%s%u%u", !i ? "" :
			way[i].class == way[i - 1].class ? " " : "|",
			(unsigned)(way[i].rail - rail), way[i].remote);
	cr_expect_str_eq(text, want, "[%s], not [%s]", text, want);
	cr_expect_eq(s.n_stripe, n_stripe, "n_stripe %u", s.n_stripe);
	cr_expect_eq(s.n_rr, n_rr, "n_rr %u", s.n_rr);
}

Test(paths, none)
{
	rails("", "a1");
	expect(8, "", 0, 0);
	rails("a1", "");
	expect(8, "", 0, 0);
	rails("a1", "b1");
	expect(8, "", 0, 0);
	cr_expect_eq(view_dealt(&ep), 0, "nothing was dealt");
}

Test(paths, modes)
{
	rails("a1 a1", "a1 a1");
	expect(8, "00 11", 2, 1);
	conf.multi_rail_selection = LNX_SELECTION_PER_MSG;
	expect(8, "00 11", 2, 2);
	conf.multi_rail_selection = LNX_SELECTION_LNET;
	expect(8, "00 11", 1, 2);
	conf.multi_rail_selection = LNX_SELECTION_PER_PEER;
	force_dealt(&ep, 0);
	expect(8, "00", 1, 1);
	expect(8, "11", 1, 1);
	expect(1, "00", 1, 1);
}

/* Different numbers: all rails of the side that has more are used. */
Test(paths, uneven)
{
	rails("a1", "a1 a1 a1");
	expect(8, "00 01 02", 3, 1);
	conf.max_rails = 2;
	expect(8, "01 02", 2, 1);
	conf.max_rails = 1;
	expect(8, "02", 1, 1);
}

/* Peers spread over all rails, also when each gets only one path. */
Test(paths, peers_round_robin)
{
	rails("a1 a2 a3", "a3 a2 a1");
	expect(1, "20", 1, 1);
	expect(1, "11", 1, 1);
	expect(1, "02", 1, 1);
	expect(1, "20", 1, 1);
}

/* Routed pairs: only if there is no other path, and then only one. */
Test(paths, groups)
{
	rails("a1 a2", "a1 a2");
	expect(8, "00 11", 2, 1);
	rails("a1 b7", "a2 b7");
	expect(8, "11", 1, 1);
	rails("a1", "a2 a3");
	expect(8, "00", 1, 1);
}

Test(paths, nearest_first)
{
	rails("a1 a2", "a1 a2");
	rail[0].numa = 32;
	expect(2, "11 00", 2, 1);
	expect(2, "11 00", 2, 1);
	conf.numa_range = 32;
	expect(2, "00 11", 2, 1);
	conf.numa_range = 31;
	conf.multi_rail_selection = LNX_SELECTION_PER_PEER;
	expect(2, "11", 1, 1);
	expect(2, "11", 1, 1);
}

Test(paths, faster_first)
{
	rails("a1 a2", "a1 a2");
	rail[0].link_bps = 1000;
	rail[1].link_bps = 4000;
	expect(2, "11 00", 2, 1);
	expect(2, "11 00", 2, 1);
}

/* As many as fit into an endpoint besides shm, and into an address. */
Test(paths, many)
{
	struct lnx_path_choice way[LNX_PATHS_MAX];
	bool used[LNX_RAILS_MAX] = { false };
	struct lnx_select_counts s;
	unsigned i, k;

	rails("a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1 a1",
	      "a1 a1 a1 a1 a1 a1 a1 a1");
	for (k = 0; k < 2; k++) {
		s = lnx_paths_choose(&ep, &peer, NULL, NULL, way,
				     LNX_PATHS_MAX);
		cr_expect_eq(s.n, LNX_PATHS_MAX);
		cr_expect_eq(s.n_stripe, LNX_PATHS_MAX);
		memset(used, 0, sizeof(used));
		for (i = 0; i < s.n; i++) {
			cr_expect_not(used[way[i].rail - rail]);
			used[way[i].rail - rail] = true;
		}
	}
}
