/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The large transfers of a peer: those that have requested all, and behind them the line for its
 * paths.  Called by msg/pull.c and msg/pull_run.c.
 */
#include "msg/pull.h"

void lnx_pull_join(struct lnx_pull *p)
{
	struct lnx_peer_pull *of = &p->peer->pull;

	lnx_list_init(&p->links.due);
	of->n++;
	p->in_line = p->posted < p->want;
	lnx_list_insert_before(p->in_line ? &of->all : of->line, &p->links.of_peer);
	if (p->in_line && of->line == &of->all)
		of->line = &p->links.of_peer;
}

void lnx_pull_leave(struct lnx_pull *p)
{
	struct lnx_peer_pull *of = &p->peer->pull;

	if (of->line == &p->links.of_peer)
		of->line = of->line->next;
	lnx_list_del(&p->links.of_peer);
	lnx_list_del(&p->links.due);
	of->n--;
}

void lnx_pull_change_place(struct lnx_pull *p)
{
	struct lnx_peer_pull *of = &p->peer->pull;
	bool in_line = p->posted < p->want || !lnx_list_empty(&p->redo);

	if (lnx_likely(p->in_line == in_line))
		return;
	p->in_line = in_line;
	if (of->line == &p->links.of_peer)
		of->line = of->line->next;
	lnx_list_del(&p->links.of_peer);
	lnx_list_insert_before(of->line, &p->links.of_peer);
	if (in_line)
		of->line = &p->links.of_peer;
}
