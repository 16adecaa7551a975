/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames outside the sequence (acknowledgements, PROBE, PONG), and looks at frames that
 * stay unacknowledged.  Called by rel/run.c; such frames go straight to the core.
 */
#include "base/interval.h"
#include "rail/rail.h"
#include "obj/counting.h"
#include "rel/backoff.h"
#include "rel/detect.h"
#include "rel/frame.h"
#include "rel/gateway.h"
#include "rel/keepalive.h"
#include "rel/latency.h"
#include "rel/peer_path.h"
#include "rel/recovery.h"
#include "rel/rel_view.h"
#include "rel/report.h"
#include "rel/session.h"

struct ack_frame {
	struct lnx_wire_hdr w;
	struct lnx_wire_credit credit;
	struct lnx_wire_allowance allowance;
};

/* What the peer may send, in an ACK over a rail that copies up to `max` bytes.  Returns the
 * bytes of that. */
static size_t tell_room(struct lnx_peer *peer, size_t max, struct ack_frame *ack)
{
	const struct lnx_peer_throttle *t = lnx_peer_throttle_of(peer);
	/* To a peer that has used some of it, and so knows of credit. */
	bool credit = peer->eager && peer->eager->credit.came;

	if (lnx_unlikely(t && t->its.change) && max >= sizeof(*ack)) {
		lnx_wire_credit_put(&ack->credit, credit ? lnx_eager_grant(peer) : 0);
		lnx_wire_allowance_put(&ack->allowance, t->its.change,
				       lnx_backlog_allowance_left(&t->its, peer->chan.rx.next));
		return sizeof(ack->credit) + sizeof(ack->allowance);
	}
	if (!credit || max < sizeof(ack->w) + sizeof(ack->credit))
		return 0;
	lnx_wire_credit_put(&ack->credit, lnx_eager_grant(peer));
	return sizeof(ack->credit);
}

/* A frame about the path, which nothing waits for. */
static LNX_COLD ssize_t inject_rare(struct lnx_rail *rail, const void *frame, size_t len,
				    fi_addr_t to)
{
	return lnx_rail_prime_due(rail) ? lnx_rail_prime_send(rail, frame, len, to) :
					  lnx_rail_inject(rail, frame, len, to);
}

int lnx_control_send_on(struct lnx_ep *ep, struct lnx_peer *peer,
		      struct lnx_path *path, struct lnx_hdr *h)
{
	uint32_t ack = peer->chan.rx.next;
	struct ack_frame frame;
	size_t len = sizeof(frame.w);
	ssize_t ret;

	if (lnx_unlikely(!path->rail->core_ep)) {
		lnx_ep_due(ep, LNX_DUE_RAILS, 0);
		return -FI_EAGAIN;
	}
	h->src = peer->sid;
	h->dst = peer->eid;
	h->seq = peer->chan.next;
	if (h->kind == LNX_KIND_ACK)
		lnx_report_put(peer, h);
	lnx_hdr_put(&frame.w, h);
	lnx_hdr_set_path(&frame.w, path->rail->wire_index, path->index);
	lnx_hdr_set_ack(&frame.w, ack);
	if (h->kind == LNX_KIND_ACK)
		len += tell_room(peer, path->rail->inject_size, &frame);
	ret = lnx_unlikely(h->kind == LNX_KIND_PROBE || h->kind == LNX_KIND_PONG) ?
	      inject_rare(path->rail, &frame, len, path->core_addr) :
	      lnx_rail_inject(path->rail, &frame, len, path->core_addr);
	if (ret)
		return (int)ret;
	path->rail->poll_credits = ep->poll_credits;
	lnx_count_sent(path, h->kind);
	if (h->kind == LNX_KIND_ACK) {
		lnx_report_sent(peer, h);
		/* Only if no frame came while it left. */
		if (ack == peer->chan.rx.next)
			lnx_frame_ack_piggybacked(peer);
	}
	if (lnx_unlikely(path->state != LNX_PATH_UP)) {
		lnx_backoff_over(peer, path);
		lnx_peer_retry_now(peer);
	}
	return 0;
}

LNX_COLD int lnx_control_probe_from(struct lnx_peer *peer, struct lnx_path *path,
			       struct lnx_hdr *h)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rail *rail = path->rail;
	struct {
		struct lnx_wire_hdr w;
		uint8_t addr[LNX_ADDR_BYTES];
	} frame;
	ssize_t ret;

	if (!rail->core_ep)
		return -FI_EAGAIN;
	if (rail->inject_size < sizeof(frame))
		return -FI_ENOSYS;
	h->src = peer->sid;
	h->dst = peer->eid;
	h->seq = peer->chan.next;
	h->key = ep->address.epoch;
	lnx_hdr_put(&frame.w, h);
	lnx_hdr_set_path(&frame.w, rail->wire_index, path->index);
	lnx_hdr_set_ack(&frame.w, peer->chan.rx.next);
	memcpy(frame.addr, ep->address.raw, sizeof(frame.addr));
	ret = lnx_rail_inject(rail, &frame, sizeof(frame), path->core_addr);
	rail->poll_credits = ep->poll_credits;
	if (!ret)
		lnx_count_sent(path, h->kind);
	return (int)ret;
}

/* Send it back over the path that the last frame came by, which is known to work. */
static struct lnx_path *ack_path(struct lnx_peer *peer)
{
	struct lnx_path *path = peer->path[peer->rx.path_back];

	/* Behind our hello, as long as the peer may not have it. */
	return peer->npath > 1 && path->state == LNX_PATH_UP &&
	       lnx_peer_acked(peer) ? path : lnx_peer_path_live(peer);
}

/* A frame outside the sequence: ACK, PROBE, BYE.  May fail silently. */
static int send_kind(struct lnx_ep *ep, struct lnx_peer *peer, uint8_t kind)
{
	struct lnx_path *path = ack_path(peer);
	struct lnx_hdr h = { .kind = kind };

	return path ? lnx_control_send_on(ep, peer, path, &h) :
		      -FI_EHOSTUNREACH;
}

LNX_COLD void lnx_rel_bye(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		if (peer->npath && !lnx_peer_dead(peer) &&
		    lnx_peer_path_live(peer)->state == LNX_PATH_UP)
			send_kind(ep, peer, LNX_KIND_BYE);
	}
}

LNX_COLD int lnx_rel_ping(struct lnx_peer *peer, struct lnx_path *path, uint32_t number)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + path->index,
		.data = LNX_WIRE_PROBE_LATENCY | LNX_WIRE_PROBE_PING | number,
	};

	return lnx_control_send_on(peer->ep, peer, path, &h);
}

static LNX_COLD void send_pong(struct lnx_peer *peer, struct lnx_path *path,
			       unsigned about, uint64_t data)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_PONG, .tag = 1u + about, .data = data,
		.key = peer->rx.bytes[about],
	};

	lnx_control_send_on(peer->ep, peer, path, &h);
}

/* A PONG goes the way its PROBE came, or not at all: the PROBE asks about that path. */
static LNX_COLD void send_pongs(struct lnx_peer *peer)
{
	bool ask = false;
	unsigned i, k;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path_detect *d = &peer->path[i]->detect;
		uint8_t about = d->pong_about, other = d->other_tag;

		if (!(peer->rx.pong_due >> i & 1))
			continue;
		/* Clear it before: sending may receive another PROBE. */
		peer->rx.pong_due &= (uint8_t)~(1u << i);
		d->pong_about = d->other_tag = 0;
		if (other)
			send_pong(peer, peer->path[i], other - 1u, d->other_data);
		for (k = 0; k < peer->npath; k++)
			if (about >> k & 1)
				send_pong(peer, peer->path[i], k,
					  peer->path[k]->detect.pong_data);
		ask |= about && lnx_rail_is_leg(peer->path[i]->rail);
	}
	if (ask)
		lnx_recovery_ask_gateways(peer, lnx_clock_ns());
}

static void ack_left(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t now)
{
	ep->stats.acks_sent++;
	if (!lnx_peer_ack_pending(peer))
		lnx_peer_ack_clear(peer);
	/* More frames may be about to come over a link that goes down. */
	if (lnx_unlikely(ep->links.netwatch != NULL)) {
		ep->links.watch_until_ns = now + LNX_LINKS_AFTER_ACK_NS;
		lnx_ep_watch_links(ep);
	}
}

static LNX_COLD void ack_refused(struct lnx_ep *ep, struct lnx_peer *peer,
				 struct lnx_path *path, uint64_t now)
{
	ep->work |= LNX_WORK_ACK;
	lnx_backoff_refused(path, now);
	if (peer->chan.nqueued || !lnx_backoff_all_for(peer, now, LNX_ACK_GIVE_UP_NS))
		return;
	/* If it is lost, the peer sends again, which makes another ACK due. */
	lnx_path_happens(path, LNX_PATH_GAVE_UP);
	if (path->state == LNX_PATH_IDLE)
		path->since_ns = 0;
	peer->chan.acks_pending = 0;
	peer->chan.ack_now = false;
	if (!lnx_peer_ack_pending(peer))
		lnx_peer_ack_clear(peer);
}

/* Over gateways an acknowledgement costs as much as a frame: there it may wait for more of them. */
static bool waits_longer(const struct lnx_peer *peer, uint64_t waited_ns, uint64_t delay_ns)
{
	return peer->npath && lnx_unlikely(lnx_rail_is_leg(peer->path[0]->rail)) &&
	       waited_ns < LNX_ROUTED_ACK_DELAYS * delay_ns;
}

void lnx_control_acks(struct lnx_ep *ep, uint64_t now, bool all)
{
	uint64_t delay_ns = ep->conf->ack_delay * LNX_NS_PER_US;
	struct lnx_node *n, *tmp;

	/* Before the loop: sending may receive. */
	ep->work &= ~LNX_WORK_ACK;
	lnx_list_foreach(&ep->ack_list, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, ack_link);
		struct lnx_path *path;
		uint64_t waited_ns;

		if (lnx_unlikely(peer->session.refuse)) {
			lnx_session_say_ended(peer);
			lnx_peer_ack_clear(peer);
			continue;
		}
		if (lnx_unlikely(peer->rx.pong_due))
			send_pongs(peer);
		if (!lnx_peer_ack_pending(peer)) {
			lnx_peer_ack_clear(peer);
			continue;
		}
		if (!peer->chan.ack_since_ns)
			peer->chan.ack_since_ns = now;
		waited_ns = lnx_ns_since(now, peer->chan.ack_since_ns);
		if (!all && !peer->chan.ack_now &&
		    peer->chan.acks_pending < ep->ack_every &&
		    (waited_ns < delay_ns || waits_longer(peer, waited_ns, delay_ns)))
			continue;
		if (!peer->npath) {
			/* We cannot answer this sender: nothing to wait for. */
			lnx_peer_ack_clear(peer);
			continue;
		}
		/* The peer takes nothing of a session that it does not know. */
		if (lnx_unlikely(!peer->hello_done) && lnx_hello_start(peer, false)) {
			ep->work |= LNX_WORK_ACK;
			continue;
		}
		path = ack_path(peer);
		if (path->state == LNX_PATH_CONNECTING &&
		    !lnx_backoff_may_try(ep, path, now)) {
			ep->work |= LNX_WORK_ACK;
			continue;
		}
		if (!send_kind(ep, peer, LNX_KIND_ACK))
			ack_left(ep, peer, now);
		else
			ack_refused(ep, peer, path, now);
	}
	if (lnx_list_empty(&ep->ack_list))
		ep->work &= ~(LNX_WORK_ACK | LNX_WORK_ACK_PENDING);
}

/*
 * All frames are acknowledged, but a large send is not pulled, a read not answered or a
 * message not whole; or nothing is due but a sign of life.  Does its peer still live?
 */
static LNX_COLD void ask_alive(struct lnx_peer *peer, bool nothing, uint64_t now)
{
	struct lnx_path *path = lnx_peer_path_live(peer);
	struct lnx_ep *ep = peer->ep;

	if (!path)
		return;
	if (lnx_backoff_may_try(ep, path, now)) {
		if (!send_kind(ep, peer, LNX_KIND_PROBE))
			return;
		lnx_backoff_refused(path, now);
	}
	lnx_loss_restart(&peer->loss, &peer->chan);
	if (lnx_backoff_all_for(peer, now,
			      ep->conf->connect_timeout * LNX_NS_PER_MS)) {
		lnx_detect_expired(peer, now);
		if (!lnx_keepalive_stays(peer, nothing, FI_ETIMEDOUT))
			lnx_rel_peer_failed(peer, FI_ETIMEDOUT);
	}
}

/* Ask over the path of the oldest frame whether that frame came. */
static LNX_COLD void ask_for_frame(struct lnx_peer *peer, uint64_t now)
{
	int which = lnx_loss_path(&peer->chan);
	struct lnx_hdr h = {
		.kind = LNX_KIND_PROBE, .tag = 1u + (unsigned)which,
		.data = LNX_WIRE_PROBE_LATENCY | (peer->loss.last + 1u),
	};
	struct lnx_path *path;

	/* PROBEs go over each of several paths anyway (rel/latency.c). */
	if (which < 0 || (unsigned)which >= peer->npath || lnx_peer_detects(peer))
		return;
	path = peer->path[which];
	if (!lnx_backoff_may_try(peer->ep, path, now))
		return;
	if (lnx_control_send_on(peer->ep, peer, path, &h)) {
		lnx_backoff_refused(path, now);
		return;
	}
	lnx_loss_asked(&peer->loss, &peer->chan, path->index, (uint32_t)h.data, now);
	if (path->speed)
		lnx_latency_mark(path, (uint32_t)h.data);
}

LNX_COLD void lnx_control_answered(struct lnx_path *path, struct lnx_peer *peer,
			      uint32_t number, uint64_t now)
{
	struct lnx_loss *l = &peer->loss;

	if (peer->npath == 1 && number == l->last && l->probe_sent_ns) {
		lnx_rtt_sample(&path->detect.rtt, lnx_ns_since(now, l->probe_sent_ns));
		l->probe_sent_ns = 0;
	}
	if (!lnx_loss_answered(l, &peer->chan, path->index, number, now))
		return;
	peer->ep->stats.losses++;
	FI_WARN_SPARSE(&lnx_prov, FI_LOG_EP_DATA,
		       "rail %s: frames to peer %016llx are lost; sending again\n",
		       path->rail->name, (unsigned long long)peer->eid);
	lnx_peer_pump(peer);
}

/* The first timeout for what is due from the peer. */
static uint64_t first_rto(const struct lnx_peer *peer, bool idle)
{
	const struct lnx_path *path = peer->cur;

	/* Before its first acknowledgement it may not even run. */
	if (idle || !lnx_peer_acked(peer) || !path)
		return LNX_ALIVE_NS;
	return path->detect.rtt.srtt_ns ?
	       lnx_rtt_timeout(&path->detect.rtt, LNX_RTO_MIN_NS, LNX_ALIVE_NS) :
	       LNX_RTO_FIRST_NS;
}

/* Acknowledgements have come.  Of several paths the failure detector knows by which. */
static void works(struct lnx_peer *peer, uint64_t now)
{
	if (peer->npath == 1 && lnx_peer_acked(peer))
		lnx_detect_good(peer, peer->path[0], now);
}

/* Does an operation, or a message that comes in several frames, wait for the peer? */
static inline bool is_busy(const struct lnx_peer *peer)
{
	return peer->nrndv || peer->rma.n_segments || peer->pull.n ||
	       (peer->eager && peer->eager->len) || lnx_peer_nthrottled(peer);
}

/* Nothing is due.  It may be only just now: while something was acknowledged since the last
 * look, more may be about to leave. */
static uint64_t look_idle(struct lnx_peer *peer, uint64_t now)
{
	bool moved = peer->loss.oldest != peer->chan.una;

	lnx_silence_peer_seen(&peer->liveness);
	works(peer, now);
	lnx_loss_restart(&peer->loss, &peer->chan);
	peer->awaited = moved;
	return moved ? now + lnx_run_look_gap(peer) : LNX_NEVER;
}

/*
 * A frame that stays unacknowledged may be lost in a connection that broke, or its
 * receiver may just be computing (rel/loss.h).
 */
uint64_t lnx_control_look(struct lnx_peer *peer, uint64_t now)
{
	bool idle = lnx_chan_idle(&peer->chan);
	bool nothing = idle && !is_busy(peer);
	enum lnx_loss_todo todo;
	int err;

	if (nothing && lnx_likely(!lnx_keepalive_due(peer)))
		return look_idle(peer, now);
	todo = lnx_loss_look(&peer->loss, &peer->chan, first_rto(peer, idle), now);
	if (todo == LNX_LOSS_MOVED) {
		lnx_silence_peer_seen(&peer->liveness);
		works(peer, now);
	}
	err = lnx_liveness_check(peer, now);
	if (lnx_unlikely(err)) {
		if (lnx_keepalive_stays(peer, nothing, err))
			return look_idle(peer, now);
		lnx_rel_peer_failed(peer, err);
		return LNX_NEVER;
	}
	if (todo == LNX_LOSS_INSIST) {
		/* What we send does not come there, even if we hear the peer over a gateway. */
		lnx_link_notice_standby(peer);
		lnx_session_answer(peer);
		lnx_peer_pump(peer);
	}
	if (todo == LNX_LOSS_ASK && idle) {
		ask_alive(peer, nothing, now);
		/* The ACK that allows more may be lost. */
		if (lnx_peer_nthrottled(peer))
			lnx_loss_restart(&peer->loss, &peer->chan);
	} else if (todo == LNX_LOSS_ASK || todo == LNX_LOSS_INSIST)
		ask_for_frame(peer, now);
	return lnx_sooner(lnx_loss_next(&peer->loss, now),
			  lnx_silence_peer_next(&peer->liveness,
						peer->ep->plan.transaction_ns, now));
}
