/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credits for frames, slow half.  See tx_credits.h.  Called by rel/send.c, rel/pump.c,
 * rel/done.c and rel/failover.c. */
#include "rel/tx_credits.h"

#include "core/credits.h"

static bool of_rail(const struct lnx_path *path)
{
	const struct lnx_rail *rail = path->rail;

	if (!rail->credits_max || !path->credits.used)
		return true;
	/* Those that wait have their turns first: lnx_ep_credits_run. */
	return rail->credits.used < rail->credits_max &&
	       (path->credit_turn || lnx_list_empty(&rail->delayed));
}

LNX_COLD bool lnx_path_credits_ask(const struct lnx_path *path)
{
	return lnx_tx_credits_left(&path->credits, path->rail->peer_credits_max) &&
	       of_rail(path);
}

LNX_COLD void lnx_rail_credits_note(struct lnx_rail *rail)
{
	lnx_tx_credits_wanted(&rail->credits, 0);
	if (rail->n_delayed)
		rail->ep->work |= LNX_WORK_CREDITS;
	else
		rail->credits_call = rail->credits.most;
}

LNX_COLD void lnx_path_credits_move(struct lnx_path *from, struct lnx_path *to)
{
	lnx_path_credits_give(from);
	lnx_path_credits_take(to);
}

/* ---- peers that wait ---- */

static void less(struct lnx_rail *rail, uint32_t n)
{
	rail->n_delayed -= LNX_MIN(rail->n_delayed, n);
	if (lnx_list_empty(&rail->delayed))
		rail->n_delayed = 0;
	rail->credits_call = rail->n_delayed ? 0 : rail->credits.most;
	rail->credits_fast = lnx_credits_fast(rail);
}

static void unlink_path(struct lnx_peer *peer, struct lnx_path *path)
{
	path->delayed_peer = NULL;
	lnx_list_del(&path->delayed);
	less(path->rail, peer->chan.nqueued);
}

LNX_COLD void lnx_peer_credits_leave(struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		peer->path[i]->credit_turn = false;
		if (peer->path[i]->delayed_peer)
			unlink_path(peer, peer->path[i]);
	}
}

LNX_COLD void lnx_peer_credits_wait(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_rail *rail = path->rail;

	path->credit_turn = false;
	/* The peer's own acknowledgements come first. */
	if (!lnx_tx_credits_left(&path->credits, rail->peer_credits_max) ||
	    path->delayed_peer)
		return;
	lnx_peer_credits_leave(peer);
	path->delayed_peer = peer;
	lnx_list_add_tail(&rail->delayed, &path->delayed);
	rail->n_delayed += peer->chan.nqueued;
	lnx_tx_credits_wanted(&rail->credits, rail->n_delayed);
	rail->credits_fast = lnx_credits_fast(rail);
	rail->credits_call = 0;
}

LNX_COLD void lnx_peer_credits_queued(struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_rail *rail = peer->path[i]->rail;

		if (!peer->path[i]->delayed_peer)
			continue;
		rail->n_delayed++;
		lnx_tx_credits_wanted(&rail->credits, rail->n_delayed);
	}
}

LNX_COLD void lnx_peer_credits_unqueued(struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->delayed_peer)
			less(peer->path[i]->rail, 1);
	if (!peer->chan.nqueued)
		lnx_peer_credits_leave(peer);
}

/* The first ones have their turns, as many as there are credits. */
static void wake(struct lnx_rail *rail)
{
	uint32_t left = UINT32_MAX;

	if (rail->credits_max)
		left = rail->credits_max - LNX_MIN(rail->credits_max, rail->credits.used);
	for (; left && !lnx_list_empty(&rail->delayed); left--) {
		struct lnx_path *path = lnx_list_entry(rail->delayed.next, struct lnx_path,
						       delayed);
		struct lnx_peer *peer = path->delayed_peer;

		unlink_path(peer, path);
		path->credit_turn = true;
		lnx_peer_pump(peer);
	}
	/* If one of them does not use its credit, the next pass gives it to another one. */
	if (left == 0 && rail->n_delayed)
		rail->ep->work |= rail->credits.used < rail->credits_max ? LNX_WORK_CREDITS : 0;
}

LNX_COLD void lnx_ep_credits_run(struct lnx_ep *ep)
{
	uint32_t i;

	ep->work &= ~LNX_WORK_CREDITS;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->n_delayed)
			wake(ep->rail[i]);
}
