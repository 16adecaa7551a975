/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists and sets health, for control requests.  See health.h.  Called by ctl/request.c;
 * calls lnx_rel_set.
 */
#include "ctl/health.h"

#include <inttypes.h>
#include <stdio.h>

#include "comp/comp.h"
#include "policy/health.h"
#include "rel/rel.h"
#include "rel/rel_view.h"

#define AUTO		(-1)	/* a health that is not fixed */
#define NAMES_MAX	8u	/* rails that a message lists */

static bool has_health(const struct lnx_ep *ep, const struct lnx_rail *rail)
{
	return !ep->native && !lnx_rail_kind_local(rail->kind);
}

/* ---- list ---- */

static const char *updown(const struct lnx_health *h, bool link_down)
{
	return link_down ? "link-down" : h->down ? "down" : "up";
}

static const char *by(const struct lnx_health *h, bool by_peer)
{
	return h->pinned ? " by-hand" : by_peer ? " by-peer" : "";
}

/* The weight that a peer has set for a rail of its own. */
static const char *weight(unsigned value, char text[16])
{
	text[0] = '\0';
	if (value && value < LNX_HEALTH_MAX)
		snprintf(text, 16, " weight %u", value);
	return text;
}

const char *lnx_ctl_path_state(const struct lnx_path *path)
{
	switch (path->state) {
	case LNX_PATH_IDLE:
		return "idle";
	case LNX_PATH_CONNECTING:
		return "connecting";
	case LNX_PATH_UP:
		return "up";
	case LNX_PATH_DOWN:
		return path->detect.drained ? "drained" : "down";
	default:
		return "dead";
	}
}

static void list_peer(struct lnx_peer *peer, uint64_t now, struct lnx_out *o)
{
	unsigned long long eid = peer->eid;
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];
		const struct lnx_health *h = &path->remote->health;
		struct lnx_path_view view;
		char text[16];

		if (!lnx_path_has_remote(path))
			continue;
		lnx_rel_view(peer, path, now, &view);
		lnx_out(o, "remote %u@%016llx health %u %s%s%s\n",
			path->remote_rail, eid, h->value,
			updown(h, path->detect.remote_down),
			by(h, view.remote_weight < LNX_HEALTH_MAX),
			weight(view.remote_weight, text));
	}
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = peer->path[i];

		lnx_out(o, "path %s@%016llx to %u health %u %s%s sent %" PRIu64
			"\n", path->rail->name, eid, path->remote_rail,
			path->detect.health.value, lnx_ctl_path_state(path),
			by(&path->detect.health, false), path->sent);
	}
}

void lnx_ctl_health_list(struct lnx_ep *ep, struct lnx_out *o)
{
	uint64_t now = lnx_clock_ns();
	struct lnx_node *n, *tmp;
	unsigned i;

	for (i = 0; i < ep->nrail; i++) {
		const struct lnx_rail *rail = ep->rail[i];

		if (has_health(ep, rail))
			lnx_out(o, "rail %s health %u %s%s\n", rail->name,
				rail->health.value,
				updown(&rail->health, rail->link_down),
				by(&rail->health, false));
	}
	if (ep->native)
		return;
	lnx_list_foreach(&ep->peers.all, n, tmp)
		list_peer(lnx_list_entry(n, struct lnx_peer, all_link), now, o);
}

/* ---- set, auto ---- */

struct change {
	struct lnx_ep *ep;
	int value;			/* or AUTO */
	bool once;			/* not fixed: it recovers from there */
	bool dry;			/* only count the targets */
	uint64_t now;
};

static void put(const struct change *c, struct lnx_health *h)
{
	if (c->dry)
		return;
	if (c->once)
		lnx_health_set(h, &c->ep->plan, (unsigned)c->value, c->now);
	else if (c->value != AUTO)
		lnx_health_pin(h, &c->ep->plan, (unsigned)c->value, c->now);
	else if (h->pinned)
		lnx_health_unpin(h, &c->ep->plan, c->now);
}

/* t NULL: all there are.  How many it was. */
static unsigned of_peer(const struct change *c, const struct lnx_target *t,
			struct lnx_peer *peer)
{
	unsigned i, n = 0;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (!t || (t->kind == LNX_TARGET_PATH &&
			   lnx_request_has_rail(t, path->rail->name))) {
			put(c, &path->detect.health);
			n++;
		}
		if (lnx_path_has_remote(path) &&
		    (!t || (t->kind == LNX_TARGET_REMOTE &&
			    t->remote == path->remote_rail))) {
			put(c, &path->remote->health);
			n++;
		}
	}
	return n;
}

static unsigned of_rails(const struct change *c, const struct lnx_target *t)
{
	struct lnx_ep *ep = c->ep;
	unsigned i, count = 0;

	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (!has_health(ep, rail) ||
		    (t && !lnx_request_has_rail(t, rail->name)))
			continue;
		put(c, &rail->health);
		count++;
	}
	return count;
}

static unsigned of_target(const struct change *c, const struct lnx_target *t)
{
	struct lnx_node *n, *tmp;
	unsigned count = 0;

	if (!t || t->kind == LNX_TARGET_RAIL)
		count += of_rails(c, t);
	if (t && t->kind == LNX_TARGET_RAIL)
		return count;
	lnx_list_foreach(&c->ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		if (!t || lnx_request_has_peer(t, peer->eid, peer->addr))
			count += of_peer(c, t, peer);
	}
	return count;
}

static int nothing(struct lnx_ep *ep, const char *text,
		   const struct lnx_target *t, struct lnx_out *o)
{
	unsigned i, n = 0;

	lnx_out(o, "\"%.*s\": ", (int)t->len, text + t->at);
	if (t->kind != LNX_TARGET_RAIL) {
		lnx_out(o, "no such %s, "
			"of peers that have been met",
			t->kind == LNX_TARGET_PATH ? "path" :
						     "rail of a peer");
		return -FI_EINVAL;
	}
	lnx_out(o, "no such rail; there %s", ep->nnet == 1 ? "is" : "are");
	for (i = 0; i < ep->nrail && n < NAMES_MAX; i++)
		if (has_health(ep, ep->rail[i]))
			lnx_out(o, "%s %s", n++ ? "," : "", ep->rail[i]->name);
	return -FI_EINVAL;
}

int lnx_ctl_health_set(struct lnx_ep *ep, const char *text,
		       const struct lnx_request *r, struct lnx_out *o)
{
	struct change c = {
		.ep = ep, .dry = true, .now = lnx_clock_ns(),
		.value = r->kind == LNX_REQUEST_HEALTH_AUTO ? AUTO :
							      (int)r->value,
		.once = r->kind == LNX_REQUEST_HEALTH_ONCE,
	};
	unsigned i;

	if (ep->native || !ep->nnet) {
		lnx_out(o, "no rail of this endpoint has a health: none carries "
			"frames");
		return -FI_EOPNOTSUPP;
	}
	if (!ep->plan.step[LNX_CLASS_OK]) {
		lnx_out(o, "health is switched off, by "
			"FI_LNX_HEALTH_SENSITIVITY=0");
		return -FI_EOPNOTSUPP;
	}
	for (i = 0; i < r->ntarget; i++)
		if (!of_target(&c, &r->target[i]))
			return nothing(ep, text, &r->target[i], o);
	c.dry = false;
	for (i = 0; i < r->ntarget; i++)
		of_target(&c, &r->target[i]);
	if (r->all)
		of_target(&c, NULL);
	lnx_rel_set(ep, c.once ? LNX_REL_SET_HEALTH : LNX_REL_SET_WEIGHT, c.now);
	if (ep->thread)
		lnx_thread_wake(ep->thread, 0);
	return 0;
}
