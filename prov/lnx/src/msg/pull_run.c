/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which large transfers are run: those of ep->pulls.due, as something has happened to them, and
 * with those the ones of the same peer that are in line for its paths.  Whatever else there is
 * costs nothing.  Called by progress; the step of each is in msg/pull.c.
 */
#include "msg/pull.h"
#include "rel/rel.h"

static void run(struct lnx_pull *p, uint64_t now)
{
	struct lnx_ep *ep = p->rxe->ep;

	lnx_list_del(&p->links.due);
	ep->pulls.runs++;
	if (lnx_pull_one(p, now))
		return;
	lnx_pull_change_place(p);
	/* Outstanding reads resume the others. */
	if (!p->again)
		return;
	if (!lnx_list_linked(&p->links.due))
		lnx_list_add_tail(&ep->pulls.due, &p->links.due);
	ep->work |= LNX_WORK_PULL;
}

/* First come, first served: those behind one for which no path has room wait as well. */
static void run_line(struct lnx_peer *peer, uint64_t now)
{
	struct lnx_peer_pull *of = &peer->pull;
	struct lnx_node *n, *next;

	n = of->every ? of->all.next : of->line;
	of->every = of->room = of->waits = of->full = false;
	for (; n != &of->all && !of->full; n = next) {
		next = n->next;
		run(lnx_list_entry(n, struct lnx_pull, links.of_peer), now);
	}
}

/* Pieces that are late have others run, in this pass. */
static void look_for_late(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->pulls.due, n, tmp) {
		struct lnx_pull *p = lnx_list_entry(n, struct lnx_pull, links.due);

		if (lnx_peer_detects(p->peer))
			lnx_hedge_run(p->peer, now);
	}
}

/* While they were run, something has changed for the peer once more: one has to stay due. */
static LNX_COLD void stay_due(struct lnx_peer *peer)
{
	struct lnx_node *first = peer->pull.all.next;
	struct lnx_pull *p = lnx_list_entry(first, struct lnx_pull, links.of_peer);

	if (first == &peer->pull.all)
		return;
	if (!lnx_list_linked(&p->links.due))
		lnx_list_add_tail(&peer->ep->pulls.due, &p->links.due);
	peer->ep->work |= LNX_WORK_PULL;
}

void lnx_pull_run(struct lnx_ep *ep)
{
	uint64_t now = lnx_clock_ns();
	struct lnx_node due, one, *n;

	look_for_late(ep, now);
	/* Before the loop: posting may run callbacks that make some due again. */
	ep->work &= ~LNX_WORK_PULL;
	lnx_list_init(&due);
	lnx_list_init(&one);
	lnx_list_splice(&due, &ep->pulls.due);
	while ((n = lnx_list_pop(&due))) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_pull, links.due)->peer;

		/* It may end among those in line, and then it is gone. */
		lnx_list_add_tail(&one, n);
		if (peer->pull.room || peer->pull.every)
			run_line(peer, now);
		if ((n = lnx_list_pop(&one)))
			run(lnx_list_entry(n, struct lnx_pull, links.due), now);
		if (lnx_unlikely(peer->pull.room || peer->pull.every))
			stay_due(peer);
	}
}

void lnx_pull_fail_peer(struct lnx_peer *peer, int err)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&peer->pull.all, n, tmp) {
		struct lnx_pull *p = lnx_list_entry(n, struct lnx_pull, links.of_peer);

		if (!p->err) {
			p->err = err;
			lnx_pull_due(p);
		}
	}
}

/* The endpoint closes; its cores are closed already. */
void lnx_pulls_destroy(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		while (!lnx_list_empty(&peer->pull.all)) {
			struct lnx_pull *p = lnx_list_entry(peer->pull.all.next,
							    struct lnx_pull, links.of_peer);

			lnx_pull_leave(p);
			lnx_rxe_put(p->rxe);
		}
	}
}
