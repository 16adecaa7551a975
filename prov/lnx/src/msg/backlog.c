/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers whose messages wait for receives, when there are too many.  See backlog.h.  Called by
 * msg/unex.c and msg/arrive.c, which store messages, by msg/rx_post.c, and by comp/timers.c.
 */
#include "msg/backlog.h"

#include "base/interval.h"
#include "msg/rx.h"
#include "obj/throttle.h"

/* Receives that are looked at; one more counts as one that may match. */
#define SEARCH_MAX	64u
/* Peers that one run looks at; the next one begins behind them. */
#define PEERS_PER_RUN	16u

struct search {
	uint64_t src;
	unsigned n;
};

static bool may_match(struct lnx_mrecv *r, void *arg)
{
	struct search *s = arg;

	return r->src == LNX_ANY_SRC || r->src == s->src || s->n++ >= SEARCH_MAX;
}

static bool posted_for(struct lnx_ep *at, uint64_t src)
{
	struct search s = { .src = src };

	return lnx_match_each_posted(&at->tag, may_match, &s) ||
	       lnx_match_each_posted(&at->msg, may_match, &s);
}

/* May something wait for a message of peer that has not come? */
static bool wanted(const struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	const struct lnx_ep_backlog *b = &ep->backlog;

	return (b->peeked && (b->peeked_src == LNX_ANY_SRC || b->peeked_src == peer->addr)) ||
	       posted_for(ep, peer->addr) || (ep->srx && posted_for(ep->srx, peer->addr));
}

/* Can all its rails carry what it has to be told? */
static bool can_be_told(const struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->rail->inject_size < sizeof(struct lnx_wire_hdr) +
		    sizeof(struct lnx_wire_credit) + sizeof(struct lnx_wire_allowance))
			return false;
	return peer->npath > 0;
}

static bool look(struct lnx_peer *peer, struct lnx_peer_throttle *t, bool is_wanted)
{
	if (!lnx_backlog_look(&peer->ep->backlog.sum, &t->its, &t->use,
			      peer->chan.rx.next, is_wanted))
		return false;
	t->beyond = 0;
	if (!lnx_backlog_allowance_throttles(&t->its))
		lnx_peer_unthrottle(peer);
	lnx_peer_tell(peer);
	return true;
}

/* chan.rx.next is still the frame of this message: after it one less is allowed. */
LNX_COLD void lnx_backlog_judge(struct lnx_peer *peer)
{
	struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	struct lnx_ep *ep = peer->ep;

	if (!lnx_peer_open(peer) || ep->closing || !can_be_told(peer))
		return;
	if (lnx_backlog_allowance_throttles(&t->its)) {
		t->beyond += !lnx_backlog_allowance_left(&t->its, peer->chan.rx.next);
		return;
	}
	if (!look(peer, t, false))
		return;
	lnx_list_add_tail(&ep->backlog.throttled, &t->link);
	ep->stats.throttles++;
	lnx_backlog_moved(ep);
}

LNX_COLD void lnx_backlog_moved(struct lnx_ep *ep)
{
	ep->backlog.look_gap_ns = LNX_BACKLOG_LOOK_NS;
	if (!ep->closing)
		lnx_ep_due(ep, LNX_DUE_BACKLOG, 0);
}

LNX_COLD void lnx_backlog_peeked(struct lnx_ep *ep, uint64_t src)
{
	struct lnx_ep_backlog *b = &ep->backlog;

	b->peeked_src = !b->peeked || b->peeked_src == src ? src : LNX_ANY_SRC;
	b->peeked = true;
	lnx_backlog_moved(ep);
}

/*
 * Often while something changes, so that what is waited for comes; and then less and less.
 * Receives that are posted in vain, FI_PEEK, memory that is free and questions of a peer make
 * the next look due at once.
 */
LNX_COLD uint64_t lnx_backlog_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_ep_backlog *b = &ep->backlog;
	const struct lnx_peer_throttle *first = NULL;
	bool any = false;
	unsigned i;

	for (i = 0; i < PEERS_PER_RUN && !lnx_list_empty(&b->throttled); i++) {
		struct lnx_peer_throttle *t =
			lnx_list_entry(b->throttled.next, struct lnx_peer_throttle, link);
		struct lnx_peer *peer = t->peer;
		bool low = lnx_backlog_allowance_low(&t->its, peer->chan.rx.next);

		if (t == first)
			break;
		if (!first)
			first = t;

		lnx_list_del(&t->link);
		lnx_list_add_tail(&b->throttled, &t->link);
		any |= look(peer, t, low && wanted(peer));
	}
	b->peeked = false;
	if (lnx_list_empty(&b->throttled))
		return LNX_NEVER;
	b->look_gap_ns = any ? LNX_BACKLOG_LOOK_NS :
			 LNX_MIN(2 * b->look_gap_ns, LNX_BACKLOG_LOOK_MAX_NS);
	return now + b->look_gap_ns;
}
