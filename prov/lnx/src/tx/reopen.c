/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail's core endpoint is closed, because something hangs in it, and another opened.
 * Called by tx/guard.c and tx/recover.c; calls core/open.c, and tells peers.
 */
#include "comp/comp.h"
#include "comp/faults.h"
#include "core/halfway.h"
#include "core/open.h"
#include "rx/rx.h"
#include "tx/guard.h"
#include "tx/heal.h"
#include "tx/rma.h"
#include "tx/tx.h"

#define HALFWAY_TRIES	8u
#define HALFWAY_POLLS	8u

static LNX_COLD void retry_now(struct lnx_rail *rail)
{
	struct lnx_node *n, *tmp;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = &peer->path[i];

			if (path->rail != rail)
				continue;
			path->retry_ns = 0;
			if (path->state != LNX_PATH_LEFT)
				path->state = LNX_PATH_CONNECTING;
		}
	}
}

/*
 * Nobody is halfway through connecting to the rail, whom closing it would leave behind.
 * False: they do not come to an end.
 */
static LNX_COLD bool at_rest(struct lnx_rail *rail)
{
	unsigned i, k;

	for (i = 0; rail->core_ep && lnx_halfway_end(rail); i++) {
		if (i == HALFWAY_TRIES)
			return false;
		for (k = 0; k < HALFWAY_POLLS; k++)
			lnx_rail_poll(rail);
	}
	return true;
}

/*
 * Has anybody who is there not left it?  If nobody is there either, somebody may come.
 */
static LNX_COLD bool in_use(const struct lnx_rail *rail)
{
	struct lnx_node *n, *tmp;
	bool left = false;
	unsigned i;

	lnx_list_foreach(&rail->ep->peers, n, tmp) {
		const struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		if (peer->gone || peer->bye)
			continue;
		for (i = 0; i < peer->npath; i++) {
			if (peer->path[i].rail != rail)
				continue;
			if (peer->path[i].state != LNX_PATH_LEFT)
				return true;
			left = true;
		}
	}
	return !left && !rail->link_down;
}

LNX_COLD void lnx_guard_reopen(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	unsigned i, port;
	bool cut_off;

	rail->reopened_ns = now;
	if (!at_rest(rail))
		return;
	ep->stats.reopened++;
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: closed\n", rail->name);
	/* Nobody is to believe in a connection of before. */
	cut_off = lnx_told_keep(rail, now, &port);
	if (cut_off)
		lnx_halfway_reset(rail);
	lnx_rail_shut_ep(rail);
	lnx_rail_drain(rail);
	lnx_faults_forget_rail(rail);
	lnx_list_foreach(&ep->peers, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		for (i = 0; i < peer->npath; i++) {
			struct lnx_path *path = &peer->path[i];

			if (path->rail != rail)
				continue;
			path->guard.pinged = false;
			path->guard.unanswered_ns = 0;
			path->guard.refused_ns = 0;
			lnx_tx_cut(path, peer);
			lnx_pull_cut(path);
			lnx_read_cut(path);
		}
	}
	lnx_tx_cut_twins(rail);
	rail->busy = 0;
	rail->shut = true;
	if (in_use(rail) || (cut_off && !rail->link_down))
		lnx_guard_open(rail, now);
}

LNX_COLD void lnx_guard_open(struct lnx_rail *rail, uint64_t now)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_node *n, *tmp;
	uint8_t was[sizeof(rail->addr)];
	size_t was_len = rail->addrlen;
	unsigned port;

	rail->shut = false;
	rail->reopened_ns = now;
	retry_now(rail);
	memcpy(was, rail->addr, sizeof(was));
	rail->blind = lnx_told_keep(rail, now, &port) ?
		      (uint8_t)(rail->blind + 1) : 0;
	/* Somebody else may have got that port meanwhile. */
	if ((!port || lnx_rail_open_ep(rail, port)) && lnx_rail_open_ep(rail, 0))
		return;			/* again later, and meanwhile it takes nothing */
	LNX_INFO(FI_LOG_EP_CTRL, "rail %s: opened anew, port %u\n", rail->name,
		 lnx_rail_port(rail));
	ep->work |= LNX_WORK_BUFS;
	if (rail->addrlen == was_len && !memcmp(was, rail->addr, was_len))
		return;
	if (lnx_ep_address(ep))
		return;
	rail->moved = ep->moves;
	lnx_list_foreach(&ep->peers, n, tmp)
		lnx_tx_hello_again(lnx_list_entry(n, struct lnx_peer,
						  all_link));
}

LNX_COLD bool lnx_guard_end_reads(struct lnx_peer *peer, uint64_t now)
{
	bool more = false;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];
		struct lnx_path_guard *g = &path->guard;

		if ((!path->nread && lnx_list_empty(&path->gets)) ||
		    path->rail->mr_endpoint)
			continue;
		more = true;
		if (!g->still_ns || g->seen != g->moved) {
			g->seen = g->moved;
			g->still_ns = now;
		}
		if (lnx_ns_since(now, g->still_ns) > LNX_REOPEN_READ_NS &&
		    lnx_ns_since(now, path->rail->reopened_ns) >= LNX_REOPEN_REST_NS)
			lnx_guard_reopen(path->rail, now);
	}
	return more;
}

LNX_COLD bool lnx_guard_reopen_closed(struct lnx_ep *ep, uint64_t now)
{
	bool closed = false;
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (lnx_likely(rail->core_ep != NULL))
			continue;
		if (rail->shut ? in_use(rail) : lnx_ns_since(now, rail->reopened_ns) >=
						LNX_REOPEN_REST_NS)
			lnx_guard_open(rail, now);
		closed |= !rail->core_ep;
	}
	return closed;
}
