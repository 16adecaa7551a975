/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many peers that were met once, and are idle: what each of them costs on the heap, beside
 * the core's connection.  What that takes is measured with an endpoint of the core, which
 * connects to the same peers first.  See sessions.c.
 *
 * What else may change the size of the heap: tables grow, and the cache of this thread fills
 * with freed blocks, which count as used.  Both happen while the first peers are met; there is
 * no other thread.  Seldom, on a busy machine, another slab of receive buffers is needed
 * meanwhile: then it is measured again.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_MAX		180u
#define TRIES		3u

static unsigned warm = 100;		/* then tables have grown */
static unsigned all = ALL_MAX;		/* the others are measured */

/* Endpoints of the actor, all on one queue. */
static struct fid_ep *eps[ALL_MAX];

static bool over_rxm(void)
{
	return strstr(getenv("FI_LNX_PROV_LINKS"), "ofi_rxm") != NULL;
}

static int open_all(struct ft *ft, struct actor *me, unsigned from, unsigned to)
{
	unsigned char name[FT_NAME_MAX];
	size_t len;
	unsigned i;

	for (i = from; i < to; i++) {
		memset(name, 0, sizeof(name));
		len = sizeof(name);
		FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &eps[i], NULL));
		FT_CALL(ft, fi_ep_bind(eps[i], &ft->o.av->fid, 0));
		FT_CALL(ft, fi_ep_bind(eps[i], &ft->o.cq->fid, FI_TRANSMIT | FI_RECV));
		FT_CALL(ft, fi_enable(eps[i]));
		FT_CALL(ft, fi_getname(&eps[i]->fid, name, &len));
		FT_TRY(actor_tell(ft, me, name, sizeof(name)));
	}
	return FT_PASS;
}

static int play(struct ft *ft, struct actor *me)
{
	unsigned i;
	char byte;
	int ret;

	FT_TRY(actor_open(ft, NULL, 0));
	ret = open_all(ft, me, 0, all);
	if (ret == FT_PASS)
		ret = actor_hear(ft, me, &byte, 1, false);
	for (i = 0; i < all; i++)
		if (eps[i])
			fi_close(&eps[i]->fid);
	return ret;
}

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

static unsigned char names[ALL_MAX][FT_NAME_MAX];

/*
 * bare: over the core itself; what comes is no frame to them.  All at once: beside programs
 * that compute, each answer may take a tenth of a second.
 */
static int meet(struct ft *ft, bool bare, unsigned from, unsigned to)
{
	static unsigned char word[64];
	struct ft_op *ops[ALL_MAX];
	fi_addr_t at;
	unsigned i;

	for (i = from; i < to; i++) {
		struct sockaddr_in in = sessions_address(names[i]);
		struct ft_msg m = { .buf = word, .len = sizeof(word) };

		FT_CHECK(ft, fi_av_insert(ft->o.av, bare ? (void *)&in : names[i], 1, &at,
					  0, NULL) == 1, "fi_av_insert failed");
		m.addr = at;
		ops[i] = ft_op_new(ft);
		FT_CALL(ft, bare ? ft_send(ft, ops[i], &m) :
			    actor_put(ft, &ops[i], at, true, 1, word, sizeof(word), 0));
	}
	for (i = from; i < to; i++)
		FT_DONE(ft, ops[i]);
	/* Until nothing is due from any of them. */
	ft_linger(ft, 1.5);
	return FT_PASS;
}

/* *each: bytes for a peer that was met */
static int measure(struct ft *ft, bool bare, double *each)
{
	double before;

	FT_TRY(meet(ft, bare, 0, warm));
	before = heap_bytes();
	FT_TRY(meet(ft, bare, warm, all));
	*each = (heap_bytes() - before) / (all - warm);
	return FT_PASS;
}

static int measure_core(struct ft *ft, double *each)
{
	struct sockaddr_in here = sessions_address(names[0]);
	struct ft_cfg cfg = { .caps = FI_MSG };
	struct ft_opts opts = ft->opts;
	int ret;

	ft->opts.prov = over_rxm() ? "tcp;ofi_rxm" : "tcp";
	ft->opts.domain = NULL;
	ft->opts.local = inet_ntoa(here.sin_addr);
	ret = ft_objs_open(ft, &cfg, &ft->o) ? FT_FAIL : FT_PASS;
	if (ret == FT_PASS) {
		ft->cfg = cfg;
		ft->open = true;
		ret = measure(ft, true, each);
		actor_close(ft);
	}
	ft->opts = opts;
	return ret;
}

/* a: bytes that one may cost */
int sessions_idle(struct ft *ft, const struct ft_case *c)
{
	double core, each = 0;
	unsigned i, tries;

	/* A sanitizer's allocator does not count. */
	free(malloc(100));
	if (!mallinfo2().uordblks)
		return ft_skip(ft, "this allocator does not count");
	/* Opening an endpoint of ofi_rxm takes 100 ms.  Tables grow at 32 and at 64. */
	if (over_rxm()) {
		warm = 40;
		all = 60;
	}
	FT_TRY(actor_start(ft, 0, play));
	for (i = 0; i < all; i++)
		FT_TRY(actor_hear(ft, &actors[0], names[i], FT_NAME_MAX, true));
	FT_TRY(measure_core(ft, &core));
	for (tries = 0; tries < TRIES && (!tries || each - core > (double)c->a); tries++) {
		actor_close(ft);
		FT_TRY(actor_open(ft, NULL, 0));
		/* Time is no matter here: on a busy machine one may answer late. */
		FT_TRY(actor_ask(ft, "set connect_timeout 60000"));
		FT_TRY(actor_ask(ft, "set transaction_timeout 60000"));
		FT_TRY(measure(ft, false, &each));
		printf("# %.0f bytes of heap for each of %u idle peers, and %.0f for the "
		       "core's connection\n", each - core, all - warm, core);
	}
	FT_CHECK(ft, each - core <= (double)c->a, "an idle peer takes %.0f bytes of heap",
		 each - core);
	return FT_PASS;
}
