/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One send over a network to a process that was killed, while nothing else is under way to
 * it: the core has no connection for it any more, and the host says that no process listens.
 * It ends as sends of a stream do, long before FI_LNX_CONNECT_TIMEOUT.
 */
#include "hazard.h"
#include "victim.h"

#include <stdlib.h>
#include <string.h>

/* It acknowledges all that has come, so that nothing is under way to it. */
static int acknowledges(struct ft *ft)
{
	ft_linger(ft, 0.5);
	return FT_PASS;
}

static int alone(struct ft *ft, struct victim *v)
{
	struct ft_cfg cfg = { .caps = FT_CAPS | FI_RMA };
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDMSG, .tag = 1, .len = 8,
		.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
	};
	struct ft_op *tx;

	prepare(ft, 0);
	FT_TRY(victim_start(ft, v, &cfg, acknowledges));
	FT_TRY(victim_ready(ft, v, false));
	victim_kill(v);
	/* The connection ends before the send. */
	ft_linger(ft, 0.5);
	ft_ops_drop(ft);
	tx = ft_op_new(ft);
	m.addr = ft->addr[1];
	m.buf = outs[0];
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_CHECK(ft, !missing(ft, &tx, 1, 4 * ft->run->timeout_s), "the send does not end");
	FT_CHECK(ft, tx->err == FI_ECONNREFUSED, "error %d (%s)", tx->err,
		 fi_strerror(tx->err));
	return FT_PASS;
}

static int lone_send(struct ft *ft, const struct ft_case *c)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");
	struct victim v = { .fd = -1 };
	int ret = FT_PASS, all[OOB_MAX_RANKS];

	if (!ft_is_bare(ft, "lnx") || !links || !strstr(links, "tcp"))
		return ft_skip(ft, "no rail of lnx over a network");
	if (!ft->rank) {
		ret = alone(ft, &v);
		victim_kill(&v);
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
	}
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a rank");
	ft->cfg = c->cfg;
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "killed", .fn = lone_send, .cfg = { .alone = true } },
	};

	/* The process that is killed is on this host. */
	setenv("FI_LNX_DISABLE_SHM", "1", 0);
	return ft_main(argc, argv, "one send to a killed process", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
