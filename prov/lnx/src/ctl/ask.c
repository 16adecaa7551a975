/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pings and discovers peers.  See ask.h.  Called by ctl/request.c. */
#include "ctl/ask.h"

#include <string.h>

#include "base/interval.h"
#include "base/proc.h"
#include "core/open.h"
#include "ctl/nid.h"
#include "rel/rel.h"
#include "rel/rel_view.h"
#include "msg/tx.h"
#include "wire/hdr.h"

static_assert(LNX_PATHS_MAX <= LNX_CTL_PING_PATHS, "a ping has room for each path");

struct lnx_peer *lnx_ctl_find_peer(struct lnx_ep *ep, const char *text,
				   const struct lnx_target *t, bool make,
				   struct lnx_out *o)
{
	struct lnx_peer *peer;
	int err = 0;

	if (t->by_eid)
		peer = lnx_peer_by_eid(ep, t->peer);
	else if (make)
		peer = lnx_peer_make(ep, t->peer, &err);
	else
		peer = lnx_peer_get(ep, t->peer);
	if (!peer)
		lnx_out(o, "\"%.*s\": there is no such peer; \"peer show\" lists "
			"those that this endpoint has met", (int)t->len,
			text + t->at);
	return peer;
}

/* ---- ping ---- */

static const char *why_not(const struct lnx_peer *peer, const struct lnx_path *path,
			   bool sent)
{
	if (path->rail->link_down)
		return "the link of the local rail is down";
	if (path->detect.remote_down)
		return "the peer says that the link of its rail is down";
	if (!path->rail->core_ep)
		return "the local rail is closed until a peer can be reached by it";
	if (!lnx_peer_acked(peer))
		return "the peer has not answered since the session began";
	return sent ? "no answer in time" : "the core provider took nothing in time";
}

/* Send what can be sent and was not yet.  True: there is an answer from all paths. */
static bool ping_some(struct lnx_peer *peer, struct lnx_ctl_ping *p, uint64_t now)
{
	bool all = true;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		all &= p->took_ns[i] != 0;
		/* It knows us by the HELLO only. */
		if (p->sent_ns[i] || !lnx_peer_acked(peer) || lnx_path_link_down(path))
			continue;
		if (!lnx_rel_ping(peer, path, p->number))
			p->sent_ns[i] = now;
	}
	return all;
}

static void put_path(const struct lnx_path *path, struct lnx_out *o)
{
	char nid[LNX_NAME_MAX * 2];

	lnx_nid_remote(path, nid, sizeof(nid));
	lnx_out(o, "path %u rail %s to %u nid %s", path->index, path->rail->name,
		path->remote_rail, nid);
}

/* One sentence, which a reader sees as it is. */
static int no_answer(const struct lnx_peer *peer, const struct lnx_ctl_ping *p,
		     struct lnx_out *o)
{
	unsigned i;

	lnx_out(o, "peer %016llx answers over no path", (unsigned long long)peer->eid);
	for (i = 0; i < peer->npath; i++) {
		char nid[LNX_NAME_MAX * 2];

		lnx_nid_remote(peer->path[i], nid, sizeof(nid));
		lnx_out(o, "%s %s to %s: %s", i ? ";" : ":", peer->path[i]->rail->name, nid,
			why_not(peer, peer->path[i], p->sent_ns[i] != 0));
	}
	return -FI_ETIMEDOUT;
}

static int ping_report(const struct lnx_peer *peer, const struct lnx_ctl_ping *p,
		       struct lnx_out *o)
{
	bool any = false;
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		any |= p->took_ns[i] != 0;
	if (!any)
		return no_answer(peer, p, o);
	lnx_out(o, "peer %016llx\n", (unsigned long long)peer->eid);
	for (i = 0; i < peer->npath; i++) {
		put_path(peer->path[i], o);
		if (p->took_ns[i])
			lnx_out(o, " rtt_us %.1f\n", (double)p->took_ns[i] / 1e3);
		else
			lnx_out(o, " error %s\n",
				why_not(peer, peer->path[i], p->sent_ns[i] != 0));
	}
	return 0;
}

static int ping_run(struct lnx_ctl_job *job, struct lnx_ep *ep, uint64_t now,
		    struct lnx_out *o)
{
	struct lnx_peer *peer = lnx_peer_by_eid(ep, job->eid);
	int ret;

	if (!peer || lnx_peer_dead(peer)) {
		lnx_ctl_drop(job, ep);
		lnx_out(o, "the peer is dead, or has closed its endpoint");
		return -FI_EHOSTUNREACH;
	}
	if (!ping_some(peer, &job->ping, now) && now < job->end_ns)
		return -FI_EINPROGRESS;
	ret = ping_report(peer, &job->ping, o);
	lnx_ctl_drop(job, ep);
	return ret;
}

/* ---- discover ---- */

static void put_rails(const struct lnx_peer *peer, struct lnx_out *o)
{
	unsigned i, k;

	lnx_out(o, "peer %016llx\n", (unsigned long long)peer->eid);
	for (i = 0; i < peer->npath; i++) {
		char nid[LNX_NAME_MAX * 2];

		for (k = 0; k < i; k++)
			if (peer->path[k]->remote_rail == peer->path[i]->remote_rail)
				break;
		if (k < i)
			continue;
		lnx_nid_remote(peer->path[i], nid, sizeof(nid));
		lnx_out(o, "remote %u nid %s\n", peer->path[i]->remote_rail, nid);
	}
}

static bool discovered(const struct lnx_ctl_job *job, const struct lnx_peer *peer)
{
	/* Its HELLO came, and with force it has acknowledged another one of ours, which may
	 * have to wait before it leaves; what is sent behind that does not count. */
	return lnx_peer_acked(peer) && peer->rx_sid &&
	       (!job->forced || (int32_t)(peer->chan.una - job->behind) >= 0);
}

static int discover_run(struct lnx_ctl_job *job, struct lnx_ep *ep, uint64_t now,
			struct lnx_out *o)
{
	struct lnx_peer *peer = lnx_peer_by_eid(ep, job->eid);

	if (!peer || lnx_peer_dead(peer)) {
		lnx_out(o, "the peer is dead, or has closed its endpoint");
		return -FI_EHOSTUNREACH;
	}
	if (discovered(job, peer)) {
		put_rails(peer, o);
		return 0;
	}
	if (now < job->end_ns)
		return -FI_EINPROGRESS;
	lnx_out(o, "the peer did not answer in time");
	return -FI_ETIMEDOUT;
}

/* ---- both ---- */

static int local(const struct lnx_peer *peer, struct lnx_out *o)
{
	pid_t pid = peer->shm.where.pid;
	enum lnx_proc_life life = lnx_proc_life(pid, peer->shm.where.started);

	if (peer->shm.where.started && life == LNX_PROC_ENDED) {
		lnx_out(o, "its process, %d, has ended", (int)pid);
		return -FI_EHOSTUNREACH;
	}
	lnx_out(o, "peer %016llx\nlocal %d\n", (unsigned long long)peer->eid, (int)pid);
	return 0;
}

static int begin(struct lnx_ep *ep, struct lnx_peer *peer,
		 const struct lnx_request *r, struct lnx_ctl_job *job, uint64_t now,
		 struct lnx_out *o)
{
	static uint32_t number;		/* any thread: they need not differ */
	uint64_t ms = r->number ? r->number : LNX_PING_WAIT_MS;

	memset(job, 0, sizeof(*job));
	job->eid = peer->eid;
	job->end_ns = now + ms * LNX_NS_PER_MS;
	if (lnx_rel_hello(peer, false)) {
		lnx_out(o, "no session with the peer can be begun: memory is short");
		return -FI_ENOMEM;
	}
	if (r->kind == LNX_REQUEST_DISCOVER) {
		job->run = discover_run;
		job->forced = r->all;
		if (r->all)
			lnx_rel_hello(peer, true);
		job->behind = peer->chan.next;
	} else {
		job->run = ping_run;
		job->ping.eid = peer->eid;
		job->ping.number = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
		ep->ctl.ping = &job->ping;
	}
	return job->run(job, ep, now, o);
}

int lnx_ctl_ask(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		struct lnx_ctl_job *job, uint64_t now, struct lnx_out *o)
{
	struct lnx_peer *peer;

	if (!job) {
		lnx_out(o, "\"ping\" and \"discover\" wait for a peer, which a "
			"program does itself; lnxctl has them");
		return -FI_EOPNOTSUPP;
	}
	peer = lnx_ctl_find_peer(ep, text, &r->target[0], true, o);
	if (!peer)
		return -FI_EINVAL;
	if (peer->shm_addr != FI_ADDR_NOTAVAIL)
		return local(peer, o);
	if (!peer->npath || ep->native) {
		lnx_out(o, ep->native ? "operations are the core providers' own: "
			"there are no frames to ask with" :
			"no path leads to the peer; \"explain\" says why");
		return ep->native ? -FI_EOPNOTSUPP : -FI_EHOSTUNREACH;
	}
	if (!lnx_peer_open(peer)) {
		lnx_out(o, "the peer is dead, or has closed its endpoint");
		return -FI_EHOSTUNREACH;
	}
	return begin(ep, peer, r, job, now, o);
}

void lnx_ctl_drop(struct lnx_ctl_job *job, struct lnx_ep *ep)
{
	if (ep->ctl.ping == &job->ping)
		ep->ctl.ping = NULL;
}
