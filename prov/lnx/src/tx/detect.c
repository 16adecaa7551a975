/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The failure detector: which paths deliver nothing, and what then happens to them.
 * See detect.h.
 */
#include "tx/detect.h"

#include "comp/comp.h"
#include "comp/links.h"
#include "rx/rx.h"
#include "tx/admin.h"
#include "tx/latency.h"
#include "tx/recovery.h"
#include "tx/path.h"
#include "tx/session.h"
#include "tx/tx.h"
#include "wire/hdr.h"

#define LOOK_NS		(2 * LNX_NS_PER_MS)	/* between two passes */
#define SILENCE_TIMEOUT_MAX	8u			/* times FI_LNX_RAIL_TIMEOUT_MIN */
#define SLOW_BPS	100000000u	/* of a rail whose speed is unknown */
#define ASK_MAX_NS	(500 * LNX_NS_PER_MS)	/* between two PROBEs */
/* A path whose host answers may be silent for so many times as long: it is congested, or
 * lost a packet that TCP sends again after 200 ms. */
#define ANSWERED_TIMES	4u

LNX_COLD void lnx_detect_watch(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;

	if (peer->npath < 2 || lnx_list_linked(&peer->detect_link) ||
	    !ep->plan.step[LNX_CLASS_OK])
		return;
	lnx_list_add_tail(&ep->detect_list, &peer->detect_link);
	ep->work |= LNX_WORK_DETECT;
}

static bool frames_due(const struct lnx_peer *peer, const struct lnx_path *path)
{
	return peer->chan.una != peer->chan.posted &&
	       lnx_path_in_flight(peer, path);
}

/* ---- a path goes DOWN ---- */

struct lnx_health *lnx_detect_remote_health(struct lnx_peer *peer,
					const struct lnx_path *path)
{
	unsigned i = 0;

	while (peer->path[i]->remote_rail != path->remote_rail)
		i++;
	return &peer->path[i]->detect.remote;
}

static unsigned remote_rails(const struct lnx_peer *peer)
{
	unsigned i, k, n = 0;

	for (i = 0; i < peer->npath; i++) {
		for (k = 0; k < i; k++)
			if (peer->path[k]->remote_rail ==
			    peer->path[i]->remote_rail)
				break;
		n += k == i;
	}
	return n;
}

void lnx_detect_good(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;

	lnx_health_good(&path->detect.health, plan, now);
	lnx_health_good(&path->rail->health, plan, now);
	lnx_health_good(lnx_detect_remote_health(peer, path), plan, now);
}

LNX_COLD void lnx_detect_charge(struct lnx_peer *peer, struct lnx_path *path,
			      unsigned class, uint64_t now)
{
	struct lnx_ep *ep = peer->ep;
	unsigned charge;

	if (class == LNX_CLASS_OK)
		return;
	path->detect.charged_ns = now;
	lnx_class_count(&ep->stats, class);
	charge = lnx_class_charges(class, remote_rails(peer), peer->self);
	lnx_health_fail(&path->detect.health, &ep->plan, class, now);
	if (charge & LNX_CHARGE_LOCAL)
		lnx_health_fail(&path->rail->health, &ep->plan, class, now);
	if (charge & LNX_CHARGE_REMOTE)
		lnx_health_fail(lnx_detect_remote_health(peer, path), &ep->plan, class,
				now);
}

LNX_COLD void lnx_detect_path_down(struct lnx_peer *peer, struct lnx_path *path,
			   const char *why, uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;
	unsigned i;

	if (path->state == LNX_PATH_DOWN || peer->npath < 2 ||
	    lnx_peer_dead(peer))
		return;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: path %u to peer %016llx is down: %s\n",
		       path->rail->name, path->index,
		       (unsigned long long)peer->eid, why);
	lnx_path_happens(path, LNX_PATH_LOST);
	path->since_ns = now;		/* deadline of the peer, if no path works */
	g->down_ns = now;
	g->stale_report = false;
	g->pinged = false;
	g->back = false;
	g->unanswered_ns = 0;
	g->refused_ns = 0;
	g->probe_ns = 0;
	g->timed_ns = 0;
	peer->ep->stats.paths_down++;
	if (peer->cur == path)
		for (i = 0; i < peer->npath; i++)
			if (lnx_path_usable(peer->path[i])) {
				peer->cur = peer->path[i];
				break;
			}
	lnx_tx_fail_over(path, peer);
	lnx_pull_fail_over(path);
	lnx_detect_watch(peer);
}

/* ---- is it silent? ---- */

/* Ask the peer over each of the other paths: one of them may be silent too. */
static LNX_COLD void send_probes(struct lnx_peer *peer, struct lnx_path *about,
			 uint64_t now)
{
	struct lnx_path_detect *g = &about->detect;
	unsigned i;

	/* A report from before this silence is no answer. */
	if (!g->probe_sent_ns)
		g->nonce++;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];
		struct lnx_hdr h = {
			.kind = LNX_KIND_PROBE, .tag = 1u + about->index,
			.data = g->nonce,
		};

		if (path != about &&
		    (lnx_path_usable(path) || path->detect.drained))
			lnx_tx_control_on(peer->ep, peer, path, &h);
	}
	g->probe_sent_ns = now;
}

/* Measure how long frames take to be acknowledged, once for each check. */
static void take_time(const struct lnx_peer *peer, struct lnx_path *path,
		      uint64_t now)
{
	struct lnx_path_detect *g = &path->detect;

	if (!g->timed_ns) {
		g->timed_seq = peer->chan.posted;
		g->timed_ns = now;
	} else if ((int32_t)(peer->chan.una - g->timed_seq) >= 0) {
		lnx_rtt_sample(&g->rtt, lnx_ns_since(now, g->timed_ns));
		g->timed_ns = 0;
	}
}

/*
 * Has nothing come over it since the last check?  Piggybacked acknowledgements do not
 * report paths; but while the oldest frame keeps changing, no path holds it back.
 */
static bool stalled(const struct lnx_peer *peer, const struct lnx_path *path)
{
	const struct lnx_path_detect *g = &path->detect;

	return g->progress_seen == g->progress &&
	       (path->nread || g->seen_seq == peer->chan.una);
}

/*
 * How long may the path be silent?  As long as an answer may take by RFC 6298.  A piece
 * that is being read reports nothing before it ends, and outstanding pieces share the
 * path.
 */
static uint64_t silence_timeout(const struct lnx_path *path,
			 const struct lnx_health_plan *plan)
{
	const struct lnx_path_detect *g = &path->detect;
	uint64_t ns = plan->rail_min_ns, rate = path->speed->read.rate;

	if (g->rtt.srtt_ns)
		ns = lnx_rtt_timeout(&g->rtt, ns, SILENCE_TIMEOUT_MAX * ns);
	if (!rate)
		rate = path->link_bps / 8;
	if (!rate)
		rate = SLOW_BPS / 8;
	if (path->nread && rate)
		ns += 2 * path->read_bytes * 1000 / LNX_MAX(rate / 1000000, 1u);
	return LNX_MIN(ns, LNX_MAX(plan->rail_ns, plan->rail_min_ns));
}

/*
 * A peer that has never answered cannot be asked either: without our hello it does not
 * know us.  Its frames go to the next path in turn, and no path is set DOWN.
 */
static LNX_COLD void elsewhere(struct lnx_peer *peer, struct lnx_path *path)
{
	unsigned i;

	for (i = 1; i < peer->npath; i++) {
		struct lnx_path *next =
			peer->path[(path->index + i) % peer->npath];

		if (next->state == LNX_PATH_DOWN || !next->rail->core_ep)
			continue;
		lnx_tx_redirect(path, peer, next);
		return;
	}
}

static void forget_kernel(struct lnx_path_detect *g)
{
	if (lnx_likely(!g->kernel_asked))
		return;
	g->kernel_asked = false;
	if (g->ping)
		lnx_ping_stop(g->ping);
}

/* Packets go both ways over the path, though what is due does not come. */
static bool kernel_answers(const struct lnx_path *path)
{
	enum lnx_ping_result says = lnx_recovery_kernel(path);

	return says == LNX_PING_ALIVE || says == LNX_PING_REFUSED;
}

/* True: the path must be checked again. */
static bool look(struct lnx_peer *peer, struct lnx_path *path, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_path_detect *g = &path->detect;
	bool frames = frames_due(peer, path), answers;
	uint64_t gap;

	if (!path->nread && !frames) {
		g->stalled_since_ns = 0;
		g->timed_ns = 0;
		g->stale_report = false;
		forget_kernel(g);
		return false;
	}
	if (frames)
		take_time(peer, path, now);
	if (!g->stalled_since_ns || !stalled(peer, path)) {
		if (g->stalled_since_ns)
			lnx_detect_good(peer, path, now);
		g->progress_seen = g->progress;
		g->seen_seq = peer->chan.una;
		/* If the report had to be asked for, it came some time ago. */
		g->stalled_since_ns = now - (g->stale_report ? silence_timeout(path, plan) / 2 : 0);
		g->probe_sent_ns = 0;
		g->pong_seen = false;
		g->stale_report = false;
		forget_kernel(g);
		return true;
	}
	gap = silence_timeout(path, plan);
	if (lnx_ns_since(now, g->stalled_since_ns) < gap / 2)
		return true;
	if (!g->kernel_asked) {
		g->kernel_asked = true;
		lnx_recovery_ping(path);
	}
	answers = kernel_answers(path);
	if (lnx_ns_since(now, g->stalled_since_ns) < gap ||
	    (answers && lnx_ns_since(now, g->stalled_since_ns) <
			ANSWERED_TIMES * gap && g->pong_seen))
		return true;
	if (g->pong_seen) {
		lnx_detect_charge(peer, path, LNX_CLASS_NETWORK_TIMEOUT, now);
		lnx_detect_path_down(peer, path, "it delivers nothing, and others do", now);
		return true;
	}
	if (!lnx_peer_acked(peer) && frames) {
		if (lnx_ns_since(now, g->stalled_since_ns) >= 2 * silence_timeout(path, plan)) {
			elsewhere(peer, path);
			g->stalled_since_ns = 0;
		}
		return true;
	}
	gap = LNX_MIN(lnx_ns_since(now, g->stalled_since_ns) / 2, ASK_MAX_NS);
	if (!g->probe_sent_ns || lnx_ns_since(now, g->probe_sent_ns) >= gap)
		send_probes(peer, path, now);
	return true;
}

LNX_COLD void lnx_detect_pong(struct lnx_peer *peer, const struct lnx_rail *rail,
			     const struct lnx_hdr *pong)
{
	uint64_t which = pong->tag - 1;
	struct lnx_path_detect *g;
	struct lnx_path *path;
	uint64_t now, moved;

	if (which >= peer->npath)
		return;
	path = peer->path[which];
	g = &path->detect;
	now = lnx_clock_ns();
	if (lnx_latency_pong(peer, rail, pong, now))
		return;
	/* Answers about latency come all the time, and were not asked for because something
	 * was missing. */
	peer->pong_ns = now;
	moved = g->progress;
	lnx_path_report_one(peer, (unsigned)which, pong->key);
	if (path->state != LNX_PATH_DOWN) {
		g->stale_report |= g->progress != moved;
		g->pong_seen |= g->probe_sent_ns && pong->data == g->nonce;
		return;
	}
	/* The answer must have come by the path itself. */
	if (path->rail != rail || !g->pinged || pong->data != g->nonce)
		return;
	g->pinged = false;
	g->back = true;
	g->unanswered_ns = 0;
	g->refused_ns = 0;
	lnx_address_ack_all(peer, g->probe_epoch);
	lnx_health_pong(&g->health, &peer->ep->plan, now);
	lnx_detect_good(peer, path, now);
}

/* ---- a frame that was lost ---- */

/*
 * A connection that breaks and is made again loses frames that its core had reported as
 * sent, and delivers the next ones: the path is not silent.  The peer answers, but has
 * lacked the oldest frame for too long: send that frame again.  If it was missing,
 * tx/done.c retransmits what else left over the same path.
 */
static void look_for_gap(struct lnx_peer *peer, uint64_t now)
{
	const struct lnx_health_plan *plan = &peer->ep->plan;
	struct lnx_frame *f;
	struct lnx_path *path;

	if (peer->chan.una == peer->chan.posted || peer->chan.una != peer->gap_seq ||
	    !peer->gap_ns) {
		peer->gap_seq = peer->chan.una;
		peer->gap_ns = now;
		return;
	}
	f = *lnx_chan_slot(&peer->chan, peer->chan.una);
	if (!f || f->path >= peer->npath)
		return;
	path = peer->path[f->path];
	if (lnx_ns_since(now, peer->gap_ns) < silence_timeout(path, plan))
		return;
	if (peer->pong_ns > peer->gap_ns) {
		lnx_chan_probe(&peer->chan);
		peer->gap_ns = now;
		lnx_tx_want_pump(peer);
	} else if (lnx_ns_since(now, path->detect.probe_sent_ns) >
		   plan->rail_min_ns) {
		send_probes(peer, path, now);
	}
}

/* ---- passes ---- */

/* True: check peer again.  It is added here when it is added to retx_list. */
static bool run_peer(struct lnx_peer *peer, uint64_t now)
{
	bool more = lnx_list_linked(&peer->retx_link);
	unsigned i;

	if (lnx_unlikely(!lnx_peer_open(peer)))
		return lnx_reopen_end_reads(peer, now);
	if (lnx_unlikely(peer->ep->admin))
		lnx_admin_peer(peer, now);
	if (lnx_unlikely(peer->hello_epoch))
		lnx_address_ack_look(peer);
	if (lnx_unlikely(peer->tell)) {
		lnx_link_notice_send(peer, now);
		more |= peer->tell != 0;
	}
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (lnx_unlikely(path->state == LNX_PATH_DOWN)) {
			lnx_recovery_run(peer, path, now);
			more = true;
		} else {
			more |= look(peer, path, now);
		}
	}
	if (peer->npath > 1)
		lnx_latency_run(peer, now);
	look_for_gap(peer, now);
	/* Time alone changes which path may take a piece. */
	if (peer->pull_left)
		peer->ep->work |= LNX_WORK_PULL;
	return more;
}

void lnx_detect_run(struct lnx_ep *ep, uint64_t now)
{
	struct lnx_node *n, *tmp;
	bool closed, told;

	if (now < ep->detect_ns)
		return;
	ep->detect_ns = now + LOOK_NS;
	closed = lnx_reopen_closed(ep, now);
	told = lnx_unlikely(ep->admin) && lnx_admin_run(ep, now);
	if (ep->netwatch)
		lnx_links_poll(ep, now);
	if (lnx_unlikely(ep->n_misdirected))
		lnx_session_tell(ep, now);
	lnx_list_foreach(&ep->detect_list, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, detect_link);

		if (!run_peer(peer, now))
			lnx_list_del(&peer->detect_link);
	}
	if (lnx_list_empty(&ep->detect_list) && !closed && !told && !ep->n_misdirected &&
	    now >= ep->links_ns)
		ep->work &= ~LNX_WORK_DETECT;
}
