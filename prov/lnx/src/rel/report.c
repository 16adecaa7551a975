/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reports about paths.  See report.h.  Called by rel/control.c, rel/recv.c, rel/detect.c and
 * rel/latency.c. */
#include "rel/report.h"

#include "wire/hdr.h"

#define US_PER_S	1e6
#define INFLIGHT_MIN	4096u

void lnx_report_one(struct lnx_peer *peer, unsigned which, uint64_t total)
{
	struct lnx_path_speed *speed;
	struct lnx_path *path;
	uint64_t more, flight;

	if (which >= peer->npath || peer->npath < 2)
		return;
	path = peer->path[which];
	more = total - path->last_report;
	flight = path->sent - path->delivered;
	/* Nothing is in flight: what is missing was lost, and what is too much was sent
	 * twice. */
	if (!flight && peer->chan.una == peer->chan.posted) {
		path->last_report = total;
		return;
	}
	/* An old report, or a forged one. */
	if (more > INT64_MAX)
		return;
	path->last_report = total;
	if (more) {
		path->fail_backoff_ns = 0;
		path->proven = path->state == LNX_PATH_UP;
		path->speed->doubt_ns = 0;
	}
	path->detect.progress += more;
	more = LNX_MIN(more, flight);
	speed = path->speed;
	/* All that was in flight has arrived meanwhile; it is not known when. */
	if (speed->delivered != path->delivered)
		lnx_rate_forget(&speed->send);
	path->delivered += more;
	speed->delivered = path->delivered;
	lnx_rate_delivered(&speed->send, more, flight - more, lnx_clock_ns());
	path->inflight_limit = (uint64_t)((double)speed->send.rate *
				(double)peer->ep->conf->spill / US_PER_S);
	path->inflight_limit = LNX_MAX(path->inflight_limit, INFLIGHT_MIN);
}

void lnx_report_read(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (peer->npath < 2)
		return;
	if (ack->tag && ack->tag <= LNX_PATHS_MAX)
		lnx_report_one(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len && ack->len <= LNX_PATHS_MAX)
		lnx_report_one(peer, (unsigned)ack->len - 1, ack->key);
}

void lnx_report_put(const struct lnx_peer *peer, struct lnx_hdr *ack)
{
	/* Of a peer that has one path: it ignores what it hears too often. */
	static const uint32_t nothing[LNX_PATHS_MAX];
	const uint32_t *reported = peer->choice ? peer->choice->rx_reported : nothing;
	unsigned i, p = peer->rx.reported_path;

	for (i = 0; i < LNX_PATHS_MAX && !ack->len; i++) {
		p = (p + 1) % LNX_PATHS_MAX;
		if ((uint32_t)peer->rx.bytes[p] == reported[p])
			continue;
		if (ack->tag) {
			ack->len = 1 + p;
			ack->key = peer->rx.bytes[p];
		} else {
			ack->tag = 1 + p;
			ack->data = peer->rx.bytes[p];
		}
	}
}

static void report_sent_one(struct lnx_peer *peer, unsigned which, uint64_t total)
{
	if (peer->choice)
		peer->choice->rx_reported[which] = (uint32_t)total;
	peer->rx.reported_path = (uint8_t)which;
}

void lnx_report_sent(struct lnx_peer *peer, const struct lnx_hdr *ack)
{
	if (ack->tag)
		report_sent_one(peer, (unsigned)ack->tag - 1, ack->data);
	if (ack->len)
		report_sent_one(peer, (unsigned)ack->len - 1, ack->key);
	peer->rx.multipath = false;
}
