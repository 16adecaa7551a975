/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Beginning and end of sessions.  rel/begin.c decides which HELLO begins one, what is
 * refused, and what a refusal means to its receiver; here it happens.  See session.h.
 */
#include "rel/session.h"

#include "base/interval.h"
#include "core/job_key.h"
#include "core/open.h"
#include "core/path_set.h"
#include "core/warn_once.h"
#include "rel/begin.h"
#include "rel/frame.h"
#include "rel/peer_path.h"
#include "wire/hdr.h"
#include "wire/rails.h"

#define TRIES_MAX	20u

/* With a job key, of what any process can send: refused at once. */
#define UNPROVEN_MAX	(LNX_MISDIRECTED_MAX / 2)

/* ---- the job key ---- */

static bool proven(const struct lnx_ep *ep, const struct lnx_hdr *h,
		   const void *payload, size_t len)
{
	const struct lnx_job_key *key = ep->domain->job_key;

	if (!key || !(h->flags & LNX_WIRE_F_KEYED))
		return !key && !(h->flags & LNX_WIRE_F_KEYED);
	return lnx_job_key_verify(key, (const uint8_t *)payload -
				  sizeof(struct lnx_wire_hdr),
				  sizeof(struct lnx_wire_hdr) + len);
}

LNX_COLD bool lnx_session_proven(const struct lnx_ep *ep,
				 const struct lnx_hdr *h, const void *payload,
				 size_t len)
{
	return h->kind != LNX_KIND_HELLO || proven(ep, h, payload, len);
}

static struct lnx_wire_proof *proof_of(struct lnx_txe *txe)
{
	return (void *)(txe->frame + txe->f.len - sizeof(struct lnx_wire_proof));
}

LNX_COLD void lnx_session_prove(const struct lnx_peer *peer,
				struct lnx_txe *txe, uint64_t nonce)
{
	nonce = htole64(nonce);
	memcpy(&proof_of(txe)->nonce, &nonce, sizeof(nonce));
	lnx_job_key_sign(peer->ep->domain->job_key, txe->frame, txe->f.len);
}

static LNX_COLD void warn_key(struct lnx_ep *ep)
{
	if (ep->refusals.key_warned)
		return;
	ep->refusals.key_warned = true;
	lnx_warn_once(true, "the job keys differ: a process on another node was refused, or refused us, because %s; sends to it fail with FI_EACCES; give all processes of the job the same FI_LNX_JOB_KEY or FI_LNX_JOB_KEY_FILE",
		      ep->domain->job_key ? "it has another key, or none" :
					    "it has a key, and none is set here");
}

/* ---- frames that belong to no session ---- */

/* May a process without the key make us send a refusal now?  After a pause as many at once
 * as there are paths: a peer asks over all of them together, and has to hear of each. */
static bool refuse_unproven(struct lnx_ep *ep)
{
	const uint64_t burst = LNX_PATHS_MAX * LNX_SESSION_UNPROVEN_NS;
	uint64_t now, *used = &ep->refusals.unproven_ns;

	if (!ep->domain->job_key)
		return true;
	now = lnx_clock_ns();
	if (lnx_ns_since(now, *used) > burst)
		*used = now - burst;
	if (ep->refusals.n >= UNPROVEN_MAX ||
	    lnx_ns_since(now, *used) < LNX_SESSION_UNPROVEN_NS)
		return false;
	*used += LNX_SESSION_UNPROVEN_NS;
	return true;
}

/* Have the sender told.  Only a HELLO or a PROBE says where it can be reached. */
static LNX_COLD void note(struct lnx_rail *rail, const struct lnx_hdr *h,
			  const void *payload, size_t len, uint64_t why,
			  uint64_t data)
{
	const struct lnx_addr_rail *from;
	struct lnx_ep *ep = rail->ep;
	struct lnx_rails all, more;
	struct lnx_misdirected *s;
	struct lnx_addr a;
	unsigned i;
	size_t n;

	if ((h->kind != LNX_KIND_HELLO && h->kind != LNX_KIND_PROBE) ||
	    len < LNX_ADDR_BYTES)
		return;
	n = len - lnx_wire_proof_size(h);
	if (lnx_addr_unpack(&a, payload, LNX_ADDR_BYTES, NULL, 0))
		return;
	lnx_rails_of_addr(&all, &a);
	if (n > LNX_ADDR_BYTES) {
		if (lnx_rails_unpack(&more, (const uint8_t *)payload +
				     LNX_ADDR_BYTES, n - LNX_ADDR_BYTES))
			return;
		lnx_rails_merge(&all, &more);
	}
	from = lnx_rails_find(&all, h->rail);
	if (!from || from->prov != rail->prov)
		return;
	for (i = 0; i < ep->refusals.n; i++)
		if (ep->refusals.to_send[i].rail == rail && ep->refusals.to_send[i].src == h->src &&
		    ep->refusals.to_send[i].dst == h->dst &&
		    ep->refusals.to_send[i].path == h->path)
			return;
	/* More than that at once: they ask again. */
	if (ep->refusals.n == LNX_MISDIRECTED_MAX)
		return;
	if ((h->kind != LNX_KIND_HELLO || why == LNX_REFUSED_KEY ||
	     !proven(ep, h, payload, len)) && !refuse_unproven(ep))
		return;
	s = &ep->refusals.to_send[ep->refusals.n++];
	*s = (struct lnx_misdirected){
		.rail = rail, .src = h->src, .dst = h->dst, .why = why,
		.data = data, .path = h->path, .to = *from,
	};
	lnx_ep_due(ep, LNX_DUE_REFUSALS, 0);
}

LNX_COLD void lnx_session_misdirected(struct lnx_rail *rail,
				      const struct lnx_hdr *h,
				      const void *payload, size_t len)
{
	rail->ep->stats.stale_frames++;
	/* The sender may know of another address before it hears this. */
	note(rail, h, payload, len, LNX_REFUSED_ENDPOINT, lnx_rail_port(rail));
}

/* What a refusal of the frame with these ids says. */
static struct lnx_hdr refusal(uint64_t src, uint64_t dst, uint64_t why,
			      uint64_t data)
{
	return (struct lnx_hdr){
		.kind = LNX_KIND_NO_SESSION, .src = dst, .dst = src,
		.tag = why, .data = data,
	};
}

/* True: told, or given up. */
static bool tell(struct lnx_ep *ep, struct lnx_misdirected *s, uint64_t now)
{
	struct lnx_hdr h = refusal(s->src, s->dst, s->why, s->data);
	struct lnx_rail *rail = s->rail;
	struct lnx_wire_hdr w;
	fi_addr_t to;
	ssize_t ret;

	/* Its HELLO has come since. */
	if (s->why != LNX_REFUSED_ENDPOINT && lnx_peer_by_sid(ep, s->src))
		return true;
	if (!rail->core_ep || lnx_rail_meet(rail, &s->to, &to))
		return true;
	if (s->why == LNX_REFUSED_ENDPOINT)
		h.key = 1u + s->path;
	lnx_hdr_put(&w, &h);
	lnx_hdr_set_path(&w, rail->wire_index, 0);
	ret = lnx_rail_inject(rail, &w, sizeof(w), to);
	lnx_rail_remove(rail, to);
	rail->poll_credits = ep->poll_credits;
	rail->counts.sent[h.kind] += !ret;
	s->retry_ns = now + LNX_SESSION_TRY_NS;
	return ret != -FI_EAGAIN || ++s->tries == TRIES_MAX;
}

LNX_COLD uint64_t lnx_session_tell(struct lnx_ep *ep, uint64_t now)
{
	uint64_t next = LNX_NEVER;
	unsigned i = 0;

	while (i < ep->refusals.n) {
		struct lnx_misdirected *s = &ep->refusals.to_send[i];

		if (now >= s->retry_ns && tell(ep, s, now)) {
			*s = ep->refusals.to_send[--ep->refusals.n];
		} else {
			next = lnx_sooner(next, s->retry_ns);
			i++;
		}
	}
	return next;
}

LNX_COLD void lnx_session_refuse(struct lnx_peer *peer,
				 const struct lnx_rail *rail,
				 const struct lnx_hdr *h)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_path *back;

	ep->stats.stale_frames++;
	if (!peer->npath || h->kind == LNX_KIND_BYE)
		return;
	back = lnx_peer_path_back(peer, rail, h->rail);
	peer->rx.path_back = back->index;
	peer->session.refuse = true;
	if (!lnx_list_linked(&peer->ack_link))
		lnx_list_add_tail(&ep->ack_list, &peer->ack_link);
	ep->work |= LNX_WORK_ACK;
}

LNX_COLD void lnx_session_say_ended(struct lnx_peer *peer)
{
	struct lnx_hdr h = refusal(peer->rx_sid, peer->ep->eid,
				   LNX_REFUSED_ENDED, 1);
	struct lnx_path *path = peer->path[peer->rx.path_back];
	struct lnx_rail *rail = path->rail;
	uint64_t now = lnx_clock_ns();
	struct lnx_wire_hdr w;

	peer->session.refuse = false;
	/* It sends again what is not acknowledged, and is told again. */
	if (!rail->core_ep ||
	    lnx_ns_since_stamp(now, peer->session.refused_ms) < LNX_SESSION_REFUSE_NS)
		return;
	peer->session.refused_ms = lnx_stamp_ms(now);
	lnx_hdr_put(&w, &h);
	lnx_hdr_set_path(&w, rail->wire_index, path->index);
	lnx_rail_inject(rail, &w, sizeof(w), path->core_addr);
	rail->poll_credits = peer->ep->poll_credits;
}

/* ---- beginning ---- */

static LNX_COLD void facts(struct lnx_begin *s, const struct lnx_peer *peer)
{
	*s = (struct lnx_begin){
		.sid = peer->sid,
		.stamp = peer->session.stamp,
		.rx_sid = peer->rx_sid,
		.named = peer->rx_sid ? 0 : peer->session.named,
		.before_sid = peer->session.before_sid,
		.rx_stamp = peer->session.rx_stamp,
		.open = lnx_peer_open(peer),
		.sent = peer->chan.posted != 0,
		.acked = lnx_peer_acked(peer),
		.unanswered = peer->session.unanswered,
		.key_refused = peer->session.key_refused,
	};
}

LNX_COLD void lnx_session_follows(struct lnx_peer *peer, const struct lnx_peer *before)
{
	struct lnx_begin_before b;
	struct lnx_begin s;
	unsigned i;

	if (peer->rx_sid)
		return;
	facts(&s, before);
	b = lnx_begin_follows(&s);
	peer->session.before_sid = b.sid;
	peer->session.stamp = LNX_MAX(peer->session.stamp, b.stamp);
	peer->session.rx_stamp = b.rx_stamp;
	peer->session.unanswered = b.unanswered;
	for (i = 0; i < peer->npath; i++)
		peer->path[i]->was_there = b.sid != 0;
}

/* The HELLO of a session that peer, whose own has another id, takes to be the next. */
static LNX_COLD struct lnx_peer *begin_anew(struct lnx_ep *ep,
					    struct lnx_peer *peer,
					    const struct lnx_addr *a)
{
	fi_addr_t addr = peer->addr;
	bool unsolicited = peer->unsolicited;
	struct lnx_peer *next;

	LNX_INFO(FI_LOG_EP_DATA, "peer %016llx: begins another session\n",
		 (unsigned long long)peer->eid);
	/* What is outstanding in the old one fails. */
	if (!lnx_peer_dead(peer))
		lnx_done_peer_ended(peer);
	lnx_peer_detach(peer);
	next = addr != FI_ADDR_NOTAVAIL && !unsolicited ?
	       lnx_peer_by_eid(ep, a->eid) : lnx_peer_unsolicited(ep, a);
	if (next)
		lnx_session_follows(next, peer);
	return next;
}

/* Is the HELLO, whose hash is right, no older than our nonce? */
static bool has_nonce(struct lnx_ep *ep, const void *payload, size_t len)
{
	struct lnx_wire_proof proof;

	if (!ep->domain->job_key)
		return true;
	if (!ep->refusals.hello_nonce)
		ep->refusals.hello_nonce = lnx_host_random_id();
	memcpy(&proof, (const uint8_t *)payload + len - sizeof(proof),
	       sizeof(proof));
	return ep->refusals.hello_nonce && le64toh(proof.nonce) == ep->refusals.hello_nonce;
}

/* Our HELLO, while it may be changed and sent again; or NULL. */
static struct lnx_txe *first_hello(const struct lnx_peer *peer)
{
	const struct lnx_chan *c = &peer->chan;
	struct lnx_txe *txe = c->slot ? lnx_frame_at(peer, 0) : NULL;

	if (!c->posted && c->nqueued)
		txe = lnx_txe_of(lnx_list_entry(c->queue.next, struct lnx_frame, link));
	return lnx_peer_acked(peer) || !txe || txe->f.seq || txe->f.in_core ?
	       NULL : txe;
}

static void hello_changed(struct lnx_peer *peer)
{
	lnx_chan_probe(&peer->chan);
	lnx_peer_pump(peer);
}

/* False: it does so already, or cannot be changed now. */
static bool name(struct lnx_peer *peer)
{
	uint64_t sid = htole64(peer->rx_sid ? peer->rx_sid : peer->session.named);
	struct lnx_txe *txe = first_hello(peer);

	if (!txe || lnx_txe_hdr(txe)->data == sid)
		return false;
	lnx_txe_hdr(txe)->data = sid;
	if (peer->ep->domain->job_key)
		lnx_session_prove(peer, txe, 0);
	return true;
}

LNX_COLD void lnx_session_answer(struct lnx_peer *peer)
{
	name(peer);
}

/*
 * Another end of the session than ours may be in doubt: our HELLO tells it which one we
 * are ready for.  Its own, which comes again, is taken then.
 *
 * Our HELLO goes to the place that this one tells.  All rails of the peer may have moved since
 * the AV was told, or since a session that was given up: it would be refused elsewhere until
 * the session fails, and the next one is in doubt again.  If that place is an old one, the
 * other is tried in turn (lnx_path_set_elsewhere).
 */
static LNX_COLD void name_in_doubt(struct lnx_peer *peer, const struct lnx_hdr *h,
				   const struct lnx_addr *a, const uint8_t *more,
				   size_t n)
{
	struct lnx_rails all;

	peer->session.named = h->src;
	peer->session.rx_stamp = h->tag;
	if (peer->hello_done && name(peer))
		hello_changed(peer);
	/* If it has not left, it does once there are paths. */
	if (!n)
		lnx_rails_of_addr(&all, a);
	else if (lnx_rails_unpack(&all, more, n))
		return;
	lnx_peer_learn(peer, a, &all);
}

/* The peer of the session that begins: peer, or another one.  NULL: there is no memory. */
static struct lnx_peer *next_of(struct lnx_ep *ep, struct lnx_peer *peer,
				bool next, const struct lnx_addr *a)
{
	if (!peer)
		return lnx_peer_unsolicited(ep, a);
	return next ? begin_anew(ep, peer, a) : peer;
}

/* Does the frame say which endpoint sent it? */
static bool addressed(const struct lnx_hdr *h, const void *payload, size_t len,
		      struct lnx_addr *a)
{
	char why[128];

	return (h->kind == LNX_KIND_HELLO || h->kind == LNX_KIND_PROBE) &&
	       len >= LNX_ADDR_BYTES &&
	       !lnx_addr_unpack(a, payload, LNX_ADDR_BYTES, why, sizeof(why));
}

LNX_COLD struct lnx_peer *lnx_session_open(struct lnx_rail *rail,
					   const struct lnx_hdr *h,
					   const void *payload, size_t len)
{
	struct lnx_begin_frame frame = {
		.begins = h->kind == LNX_KIND_HELLO && !h->seq, .acks = h->ack != 0,
		.src = h->src, .stamp = h->tag, .names = h->data,
	};
	struct lnx_ep *ep = rail->ep;
	struct lnx_begin_verdict v;
	struct lnx_begin known;
	struct lnx_peer *peer;
	struct lnx_addr a;
	bool from;

	if (!lnx_session_proven(ep, h, payload, len)) {
		ep->stats.key_drops++;
		warn_key(ep);
		note(rail, h, payload, len, LNX_REFUSED_KEY, 0);
		return NULL;
	}
	from = addressed(h, payload, len, &a) && a.eid != ep->eid;
	if (frame.begins && !from) {
		ep->stats.bad_frames++;
		return NULL;
	}
	peer = from ? lnx_peer_by_eid(ep, a.eid) : NULL;
	if (peer)
		facts(&known, peer);
	else if (frame.begins)
		frame.given_up = lnx_peer_was_given_up(ep, h->src);
	v = lnx_begin_judge(peer ? &known : NULL, &frame);
	if (v.what == LNX_BEGIN_REFUSE) {
		ep->stats.stale_frames++;
		note(rail, h, payload, len, v.why, v.data);
		return NULL;
	}
	/* One that names the session which it begins is not older than that. */
	if (!(peer && h->data == peer->sid && !v.next) && !has_nonce(ep, payload, len)) {
		note(rail, h, payload, len, LNX_REFUSED_NONCE, ep->refusals.hello_nonce);
		return NULL;
	}
	peer = next_of(ep, peer, v.next, &a);
	if (!peer) {
		ep->stats.unsolicited_drops++;
		note(rail, h, payload, len, LNX_REFUSED_FULL, 0);
		return NULL;
	}
	if (v.what == LNX_BEGIN_NAME) {
		ep->stats.stale_frames++;
		name_in_doubt(peer, h, &a, (const uint8_t *)payload + LNX_ADDR_BYTES,
			      len - LNX_ADDR_BYTES - lnx_wire_proof_size(h));
		return NULL;
	}
	lnx_peer_pair(peer, h->src, h->tag);
	lnx_session_answer(peer);
	return peer;
}

/* ---- end ---- */

/* Another endpoint has the address of the path that a refused frame took, or of any over
 * rail if it is not known which: bits of paths.  Of one that has moved since, only the old
 * address is known to be another's. */
static LNX_COLD uint8_t refused_paths(const struct lnx_peer *peer, const struct lnx_rail *rail,
				      const struct lnx_hdr *h)
{
	uint8_t bits = 0;
	unsigned i, port;

	for (i = 0; i < peer->npath; i++) {
		if (peer->path[i]->rail != rail || (h->key && h->key != 1u + i))
			continue;
		port = h->data ? lnx_path_set_port(peer->path[i]) : 0;
		if (!port || port == h->data)
			bits |= (uint8_t)(1u << i);
	}
	return bits;
}

/* At paths whose address no other endpoint has the peer may still be. */
static LNX_COLD bool nowhere(struct lnx_peer *peer, uint8_t refused)
{
	struct lnx_addr own;
	uint8_t untold = 0;
	unsigned i;

	peer->session.wrong_endpoint |= refused;
	/* A rail for which our address has no room cannot ask: a PROBE has that address
	 * only. */
	if (!lnx_addr_unpack(&own, peer->ep->address.raw, LNX_ADDR_BYTES, NULL, 0))
		for (i = 0; i < peer->npath; i++)
			if (peer->path[i]->rail->wire_index >= own.nrail)
				untold |= (uint8_t)(1u << i);
	return (peer->session.wrong_endpoint | untold) == (1u << peer->npath) - 1;
}

/* Our HELLO is older than one that the peer had before: our clock went back. */
static LNX_COLD void later_stamp(struct lnx_peer *peer, uint64_t stamp)
{
	struct lnx_txe *txe = first_hello(peer);

	stamp = lnx_begin_stamp(peer->session.stamp, stamp);
	if (!txe || !stamp)
		return;
	peer->session.stamp = stamp;
	lnx_txe_hdr(txe)->tag = htole64(peer->session.stamp);
	if (peer->ep->domain->job_key)
		lnx_session_prove(peer, txe, 0);
	hello_changed(peer);
}

/* The peer wants to see that our HELLO is new. */
static LNX_COLD void add_nonce(struct lnx_peer *peer, uint64_t nonce)
{
	struct lnx_txe *txe = first_hello(peer);

	if (!txe || !peer->ep->domain->job_key)
		return;
	lnx_session_prove(peer, txe, nonce);
	hello_changed(peer);
}

/* The peer lives, and has no room for us yet.  Others come all the time: our HELLO must not
 * go out more and more rarely. */
static LNX_COLD void ask_again_soon(struct lnx_peer *peer)
{
	lnx_silence_peer_seen(&peer->liveness);
	lnx_loss_restart(&peer->loss, &peer->chan);
	lnx_peer_look_by(peer, 0);
}

LNX_COLD void lnx_session_refused(struct lnx_rail *rail, const struct lnx_hdr *h)
{
	struct lnx_peer *peer = lnx_peer_by_eid(rail->ep, h->src);
	struct lnx_begin s;

	if (!peer || !peer->npath)
		return;
	facts(&s, peer);
	switch (lnx_begin_refused(&s, h->dst, h->tag, h->data)) {
	case LNX_BEGIN_NOT_THERE:
		if (!nowhere(peer, refused_paths(peer, rail, h)))
			return;
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: another endpoint has its address\n",
			 (unsigned long long)peer->eid);
		break;
	case LNX_BEGIN_ENDED:
		LNX_WARN(FI_LOG_EP_DATA,
			 "peer %016llx: it has ended the session, or was started anew\n",
			 (unsigned long long)peer->eid);
		peer->session.alive = true;
		break;
	case LNX_BEGIN_OTHER_KEY:
		warn_key(rail->ep);
		peer->session.key_refused = true;
		break;
	case LNX_BEGIN_LATER_STAMP:
		later_stamp(peer, h->data);
		return;
	case LNX_BEGIN_ADD_NONCE:
		add_nonce(peer, h->data);
		return;
	case LNX_BEGIN_ASK_AGAIN:
		ask_again_soon(peer);
		return;
	case LNX_BEGIN_GOES_ON:
		return;
	}
	lnx_done_peer_ended(peer);
}

LNX_COLD void lnx_session_ask(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE };

	lnx_control_probe_from(peer, path, &h);
}
