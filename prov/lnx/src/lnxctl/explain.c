/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl explain: which way a message to a peer takes, and why no other one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"
#include "policy/select.h"

/* Words of a line in pairs, up to "because TEXT", which is the last one. */
static void put_pairs(struct lnx_doc *m, char *line)
{
	char *because = strstr(line, " because "), *key, *value, *save = NULL;
	uint64_t v;

	if (because)
		*because = '\0';
	for (key = strtok_r(line, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
		value = strtok_r(NULL, " ", &save);
		if (!value)
			break;
		if (lnxctl_number(value, UINT64_MAX, &v))
			lnx_doc_uint(m, key, v);
		else
			lnx_doc_text(m, key, value);
	}
	if (because)
		lnx_doc_text(m, "because", because + 9);
}

struct lists {
	struct lnx_doc *paths, *pairs;
};

static void put_line(struct lnx_doc *m, struct lists *l, char *line)
{
	if (!strncmp(line, "path ", 5)) {
		if (!l->paths)
			l->paths = lnx_doc_list(m, "paths");
		put_pairs(lnx_doc_map(l->paths, NULL), line);
	} else if (!strncmp(line, "pair ", 5)) {
		if (!l->pairs)
			l->pairs = lnx_doc_list(m, "rejected");
		/* "pair RAIL to N because ..." */
		memcpy(line, "rail", 4);
		put_pairs(lnx_doc_map(l->pairs, NULL), line);
	} else if (!strncmp(line, "because ", 8)) {
		lnx_doc_text(m, "because", line + 8);
	} else if (!strncmp(line, "form ", 5)) {
		lnx_doc_text(m, "form", line + 5);
	} else {
		put_pairs(m, line);
	}
}

/* size: or NULL. */
static void one(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		const char *peer, const uint64_t *size, struct lnx_doc *list)
{
	struct lists l = { 0 };
	char *reply, *line, *save = NULL, words[32] = "";
	struct lnx_doc *m;

	if (size)
		snprintf(words, sizeof(words), " %" PRIu64, *size);
	if (!lnxctl_request(c, p, e, 0, &reply, "explain %s%s", peer,
			    words))
		return;
	m = lnx_doc_map(list, NULL);
	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_line(m, &l, line);
	free(reply);
}

/* ---- from the state segment ---- */

/* Why nothing leaves over it, or NULL. */
static const char *unusable(const struct lnx_snap_ep *e, const struct lnx_state_path *path)
{
	if ((path->flags & LNX_STATE_PATH_LINK_DOWN))
		return "the link of the local rail is down";
	if (path->flags & LNX_STATE_PATH_REMOTE_DOWN)
		return "the peer says that the link of its rail is down";
	if (path->flags & LNX_STATE_PATH_WITHDRAWN)
		return "no route leads over it, or routes replace it";
	if (path->flags & LNX_STATE_PATH_DRAINED)
		return "drained: a health of it was set to 0 by hand, here or at the peer";
	if (path->state == LNX_STATE_PATH_DOWN)
		return "it delivered nothing while others did";
	if (path->state == LNX_STATE_PATH_DEAD)
		return "no path to the peer has taken anything until its deadline";
	if (path->rail < e->nrail && e->rail[path->rail].flags & LNX_STATE_RAIL_CLOSED)
		return "the local rail is closed until a peer can be reached by it";
	return NULL;
}

/* Enough of what the process itself would say. */
static void put_because(const struct lnx_snap_ep *e, const struct lnx_snap_peer *peer,
			const struct lnx_state_path *path, struct lnx_doc *m)
{
	const char *bad = unusable(e, path);

	if (bad)
		lnx_doc_text(m, "because", bad);
	else if (peer->p.npath == 1)
		lnx_doc_text(m, "because", "the only path");
	else if (path->flags & LNX_STATE_PATH_CURRENT)
		lnx_doc_text(m, "because", "frames stay on it");
	else if (peer->p.n_rr > 1 && path->flags & LNX_STATE_PATH_STRIPES)
		lnx_doc_text(m, "because", "messages alternate between equal paths");
	else if (path->why != LNX_STATE_WHY_BEST)
		lnx_doc_printf(m, "because", "behind the best path by: %s",
			       lnx_select_why_text((enum lnx_why)path->why));
	else
		lnx_doc_text(m, "because", "the best one by rank, but frames stay on another");
}

static void put_path(const struct lnx_snap_ep *e, const struct lnx_snap_peer *peer,
		     const struct lnx_state_path *path, struct lnx_doc *m)
{
	const struct lnx_state_rail *rail = path->rail < e->nrail ? &e->rail[path->rail] : NULL;

	lnx_doc_uint(m, "path", path->index);
	lnx_doc_text(m, "rail", rail ? rail->name : "?");
	lnx_doc_uint(m, "to", path->remote_rail);
	lnx_doc_text(m, "nid", path->nid);
	lnx_doc_text(m, "use", unusable(e, path) ? "no" :
		     path->flags & LNX_STATE_PATH_CURRENT ? "frames" :
		     path->flags & LNX_STATE_PATH_STRIPES ?
		     peer->p.n_rr > 1 ? "frames" : "pieces" : "no");
	lnx_doc_text(m, "state", lnxctl_path_state(path));
	lnx_doc_uint(m, "rank", path->rank);
	lnx_doc_uint(m, "health", path->health.value);
	lnx_doc_uint(m, "rail_health", rail ? rail->health.value : 0);
	lnx_doc_uint(m, "remote_health", path->remote.value);
	lnx_doc_uint(m, "share", path->share);
	/* As the process itself says it: what was not measured is left out. */
	if (path->send_rate)
		lnx_doc_uint(m, "send_rate_mbps", LNX_MAX(path->send_rate / 125000, 1u));
	if (path->read_rate)
		lnx_doc_uint(m, "read_rate_mbps", LNX_MAX(path->read_rate / 125000, 1u));
	put_because(e, peer, path, m);
}

static void put_way(const struct lnx_snap_ep *e, const struct lnx_snap_peer *peer,
		    struct lnx_doc *m)
{
	bool native = e->ep.flags & LNX_STATE_EP_NATIVE;
	bool direct = peer->p.flags & LNX_STATE_PEER_LOCAL;

	lnx_doc_text(m, "way", native ? "native" : direct ? "direct" :
		     peer->npath ? "framed" : "none");
	lnx_doc_text(m, "because", native ? "operations are the core providers' own" :
		     direct ? "the peer is on this host; shared memory comes before all networks" :
		     peer->npath ? "the peer is not reached over shared memory" :
		     "no rail of this endpoint reaches one of the peer's");
}

/* What was published, not what a message of some size would do. */
static void published(const struct lnx_snap_ep *e, const struct lnx_snap_peer *peer,
		      struct lnx_doc *m)
{
	struct lnx_doc *list;
	unsigned i;

	lnx_doc_printf(m, "peer", "%016" PRIx64, peer->p.eid);
	if (peer->p.addr != UINT64_MAX)
		lnx_doc_uint(m, "addr", peer->p.addr);
	put_way(e, peer, m);
	if (!peer->npath)
		return;
	list = lnx_doc_list(m, "paths");
	for (i = 0; i < peer->npath; i++)
		put_path(e, peer, peer->path[i], lnx_doc_map(list, NULL));
}

static void from_segment(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
			 struct lnx_doc *list)
{
	unsigned i, n = 0;

	for (i = 0; i < e->npeer; i++)
		if (lnxctl_peer_is(c->arg[0], &e->peer[i])) {
			published(e, &e->peer[i], lnx_doc_map(list, NULL));
			n++;
		}
	if (!n)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it had met no such peer when "
			    "it published its state last", c->arg[0]);
}

/* ---- from the process, or from its segment ---- */

/* "65536", "64k", "1m" */
static bool size_of(const char *text, uint64_t *v)
{
	size_t len = strlen(text);
	unsigned shift = !len ? 0 : strchr("kK", text[len - 1]) ? 10 :
			 strchr("mM", text[len - 1]) ? 20 :
			 strchr("gG", text[len - 1]) ? 30 : 0;
	char digits[24];

	snprintf(digits, sizeof(digits), "%.*s", (int)(len - (shift != 0)), text);
	/* JSON has no larger whole numbers. */
	if (!lnxctl_number(digits, INT64_MAX >> shift, v))
		return false;
	*v <<= shift;
	return true;
}

static void explain(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    struct lnx_doc *map)
{
	const char *text = c->arg[0];
	bool silent = lnxctl_put_silent(c, p, e, map);
	struct lnx_doc *list = lnx_doc_list(map, "explain");
	bool by_nid = strchr(text, '@') || strchr(text, '*');
	const uint64_t *size = NULL;
	unsigned i, n = 0;
	uint64_t bytes;
	char peer[32];

	if (silent) {
		from_segment(c, p, e, list);
		return;
	}
	if (c->narg > 1 && size_of(c->arg[1], &bytes))
		size = &bytes;
	if (!by_nid) {
		one(c, p, e, text, size, list);
		return;
	}
	for (i = 0; i < e->npeer; i++)
		if (lnxctl_peer_is(text, &e->peer[i])) {
			snprintf(peer, sizeof(peer), "%016" PRIx64, e->peer[i].p.eid);
			one(c, p, e, peer, size, list);
			n++;
		}
	if (!n)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no such peer; name "
			    "another one by its number in the address vector", text);
}

static int run(struct lnxctl *c)
{
	uint64_t size;

	if (c->narg > 1 && !size_of(c->arg[1], &size))
		return lnxctl_usage(c, "\"%s\": must be a size in bytes, with k, m or g if "
				    "it is in KiB, MiB or GiB", c->arg[1]);
	/* As long as for an answer. */
	if (!c->wait_ms)
		c->wait_ms = LNXCTL_REQUEST_WAIT_MS;
	return lnxctl_each(c, true, explain);
}

const struct lnxctl_verb lnxctl_explain = {
	.name = "explain", .args = "PEER [SIZE]",
	.help = "which way a message takes, and why no other one",
	.min_args = 1, .max_args = 2, .run = run,
};
