/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths: which one is next.  Called by tx/frame.c for frames and by rx/pull.c for
 * pieces; asks policy/stripe.
 */
#include "tx/path.h"

#include "comp/comp.h"
#include "wire/hdr.h"

#define BACKOFF_MIN_NS	(50 * LNX_NS_PER_US)
#define BACKOFF_MAX_NS	(10 * LNX_NS_PER_MS)
#define BUSY_NS		(LNX_NS_PER_MS / 2)	/* pause of a path that takes no read */
#define REDO_NS		(20 * LNX_NS_PER_MS)	/* and of one whose read failed */
/* A path left out because it is slow is tried again after that. */
#define RELEARN_NS	LNX_NS_PER_S

LNX_COLD void lnx_path_blocked(struct lnx_path *path, uint64_t now)
{
	if (path->state != LNX_PATH_CONNECTING || !path->since_ns) {
		path->state = LNX_PATH_CONNECTING;
		path->since_ns = now;
		path->backoff_ns = BACKOFF_MIN_NS;
	} else if (path->backoff_ns < BACKOFF_MAX_NS) {
		path->backoff_ns += path->backoff_ns / 2;
	}
	path->retry_ns = now + path->backoff_ns;
}

struct lnx_path *lnx_path_choose(struct lnx_ep *ep, struct lnx_peer *peer,
				 size_t len)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	struct lnx_path *cur = &peer->path[peer->cur];
	uint64_t now = 0;
	unsigned i;
	int pick;

	if (!peer->npath)
		return NULL;
	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = &peer->path[i];

		view[i].usable = path->state == LNX_PATH_UP ||
				 path->state == LNX_PATH_IDLE;
		if (!view[i].usable) {
			if (!now)
				now = lnx_clock_ns();
			view[i].usable = now >= path->retry_ns;
		}
		view[i].rate = path->send.rate;
		view[i].out_bytes = lnx_path_in_flight(peer, path);
	}
	if (view[peer->cur].usable &&
	    (!peer->heard || view[peer->cur].out_bytes <= ep->conf->spill))
		return cur;
	pick = lnx_stripe_shortest(view, peer->npath, len);
	return pick < 0 ? NULL : &peer->path[pick];
}

struct lnx_path *lnx_path_live(struct lnx_peer *peer)
{
	struct lnx_path *path = &peer->path[peer->cur];
	unsigned i;

	if (lnx_likely(path->state == LNX_PATH_UP || peer->npath == 1))
		return path;
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i].state == LNX_PATH_UP)
			return &peer->path[i];
	return peer->npath ? path : NULL;
}

bool lnx_path_none_for(const struct lnx_peer *peer, uint64_t now,
		       uint64_t limit_ns)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (!peer->path[i].since_ns ||
		    now - peer->path[i].since_ns <= limit_ns)
			return false;
	return true;
}

static void heard_of(struct lnx_peer *peer, unsigned which, uint64_t total)
{
	struct lnx_path *path = &peer->path[which];
	uint64_t more = total - path->said;
	uint64_t flight = path->sent - path->got;

	/* An old report, or an invented one. */
	if (which >= peer->npath || more > INT64_MAX)
		return;
	path->said = total;
	more = LNX_MIN(more, flight);
	path->got += more;
	/* Only a path that is backed up shows what it can do. */
	lnx_meter_moved(&path->send, more,
			flight - more > peer->ep->conf->spill / 2,
			lnx_clock_ns());
}

void lnx_path_heard(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (peer->npath < 2)
		return;
	if (ack->tag && ack->tag <= LNX_PATHS_MAX)
		heard_of(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len && ack->len <= LNX_PATHS_MAX)
		heard_of(peer, (unsigned)ack->len - 1, ack->key);
}

void lnx_path_tell(struct lnx_peer *peer, struct lnx_hdr *ack)
{
	unsigned i, n = 0, p = peer->told_path;

	for (i = 0; i < LNX_PATHS_MAX && n < 2; i++) {
		p = (p + 1) % LNX_PATHS_MAX;
		if (peer->got[p] == peer->told[p])
			continue;
		peer->told[p] = peer->got[p];
		peer->told_path = (uint8_t)p;
		if (n++) {
			ack->len = 1 + p;
			ack->key = peer->got[p];
		} else {
			ack->tag = 1 + p;
			ack->data = peer->got[p];
		}
	}
	peer->spread = false;
}

void lnx_path_all_got(struct lnx_peer *peer)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		peer->path[i].got = peer->path[i].sent;
	peer->una_bytes = 0;
}

/* ---- pieces of large messages ---- */

/* What policy/stripe has to know; the number of paths that are in use. */
static unsigned view_reads(const struct lnx_peer *peer, unsigned able,
			   uint64_t now, struct lnx_stripe_path *view)
{
	uint64_t best = 0;
	unsigned i, busy = 0;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *path = &peer->path[i];

		view[i].rate = path->read.rate;
		view[i].out = path->nread;
		view[i].out_bytes = path->read_bytes;
		view[i].usable = (able >> i & 1) && now >= path->read_retry_ns;
		busy += path->nread != 0;
		best = LNX_MAX(best, view[i].rate);
	}
	/* Slow ones may have become better. */
	for (i = 0; i < peer->npath; i++)
		if (!view[i].out && view[i].rate < best / 2 &&
		    now - peer->path[i].read_done_ns > RELEARN_NS)
			view[i].rate = 0;
	return busy;
}

struct lnx_path *lnx_path_for_read(struct lnx_peer *peer, unsigned able,
				   uint64_t now, bool *line)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	unsigned busy = view_reads(peer, able, now, view);
	int pick = lnx_stripe_pick(view, peer->npath, peer->pull_left);

	*line = pick < 0 && busy;
	return pick < 0 ? NULL : &peer->path[pick];
}

size_t lnx_path_read_len(struct lnx_peer *peer, const struct lnx_path *path,
			 size_t rest)
{
	struct lnx_stripe_path view[LNX_PATHS_MAX];
	const struct lnx_conf *conf = peer->ep->conf;

	if (rest < conf->stripe_threshold && rest <= conf->chunk &&
	    rest == peer->pull_left)
		return rest;
	view_reads(peer, ~0u, 0, view);
	return lnx_stripe_len(view, peer->npath, path->index, peer->pull_left,
			      rest, conf->chunk);
}

void lnx_path_read_posted(struct lnx_path *path, size_t len, uint64_t now)
{
	path->nread++;
	path->read_bytes += len;
	lnx_meter_start(&path->read, now);
}

void lnx_path_read_refused(struct lnx_path *path, size_t len, uint64_t now)
{
	path->nread--;
	path->read_bytes -= len;
	if (!path->nread)
		path->read.mark_ns = 0;
	path->read_retry_ns = now + BUSY_NS;
}

void lnx_path_read_done(struct lnx_path *path, size_t len, bool ok,
			uint64_t now)
{
	path->nread--;
	path->read_bytes -= len;
	path->read_done_ns = now;
	lnx_meter_moved(&path->read, ok ? len : 0, path->nread != 0, now);
	if (!ok)
		path->read_retry_ns = now + REDO_NS;
}
