/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many peers that were met once, and are idle: what each of them costs on the heap, beside
 * the core's connection.  What that takes is measured with an endpoint of the core, which
 * connects to the same peers first.  See sessions.c.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM		100		/* then tables have grown */
#define PEERS		80		/* measured */
#define ALL		(WARM + PEERS)

/* Endpoints of the actor, all on one queue. */
static struct fid_ep *eps[ALL];

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
	int ret, i;
	char byte;

	FT_TRY(actor_open(ft, NULL, 0));
	ret = open_all(ft, me, 0, ALL);
	if (ret == FT_PASS)
		ret = actor_hear(ft, me, &byte, 1, false);
	for (i = 0; i < ALL; i++)
		if (eps[i])
			fi_close(&eps[i]->fid);
	return ret;
}

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

static unsigned char names[ALL][FT_NAME_MAX];

/* bare: over the core itself; what comes is no frame to them. */
static int meet(struct ft *ft, bool bare, unsigned from, unsigned to)
{
	static unsigned char word[64];
	struct ft_op *op;
	fi_addr_t at;
	unsigned i;

	for (i = from; i < to; i++) {
		struct sockaddr_in in = sessions_address(names[i]);
		struct ft_msg m = { .buf = word, .len = sizeof(word) };

		FT_CHECK(ft, fi_av_insert(ft->o.av, bare ? (void *)&in : names[i], 1, &at,
					  0, NULL) == 1, "fi_av_insert failed");
		m.addr = at;
		op = ft_op_new(ft);
		FT_CALL(ft, bare ? ft_send(ft, op, &m) :
			    actor_put(ft, &op, at, true, 1, word, sizeof(word), 0));
		FT_DONE(ft, op);
	}
	/* Until nothing is due from any of them. */
	ft_linger(ft, 1.5);
	return FT_PASS;
}

/* *each: bytes for a peer that was met */
static int measure(struct ft *ft, bool bare, double *each)
{
	double before;

	FT_TRY(meet(ft, bare, 0, WARM));
	before = heap_bytes();
	FT_TRY(meet(ft, bare, WARM, ALL));
	*each = (heap_bytes() - before) / PEERS;
	return FT_PASS;
}

static int measure_core(struct ft *ft, double *each)
{
	struct sockaddr_in here = sessions_address(names[0]);
	struct ft_cfg cfg = { .caps = FI_MSG };
	struct ft_opts opts = ft->opts;
	int ret;

	ft->opts.prov = "tcp";
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
	double core, each;
	unsigned i;

	if (strstr(getenv("FI_LNX_PROV_LINKS"), "ofi_rxm"))
		return ft_skip(ft, "so many endpoints of ofi_rxm take too long to open");
	FT_TRY(actor_start(ft, 0, play));
	for (i = 0; i < ALL; i++)
		FT_TRY(actor_hear(ft, &actors[0], names[i], FT_NAME_MAX, true));
	FT_TRY(measure_core(ft, &core));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_TRY(measure(ft, false, &each));
	printf("# %.0f bytes of heap for each of %d idle peers, and %.0f for the core's "
	       "connection\n", each - core, PEERS, core);
	FT_CHECK(ft, each - core <= (double)c->a, "an idle peer takes %.0f bytes of heap",
		 each - core);
	return FT_PASS;
}
