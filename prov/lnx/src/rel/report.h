/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reports about paths: an acknowledgement and a PONG say how many bytes of frames came over
 * one path or two.  From them the sender knows how much is in flight on each path, and how
 * fast it is (rel/rate.h).  For peers with several paths.
 *
 * All functions: owner lock held.  None calls a core.
 */
#ifndef LNX_REPORT_H
#define LNX_REPORT_H

#include "obj/ep.h"

struct lnx_hdr;

/* The peer has received so many bytes of frames over one of our paths. */
void lnx_report_one(struct lnx_peer *peer, unsigned which, uint64_t total);
/* Read the report in an ACK of the peer; and write one. */
void lnx_report_read(struct lnx_peer *peer, const struct lnx_hdr *ack);
void lnx_report_put(const struct lnx_peer *peer, struct lnx_hdr *ack);
/* The ACK with the report has left. */
void lnx_report_sent(struct lnx_peer *peer, const struct lnx_hdr *ack);

/* The peer has all that was ever sent to it.  Not needed for a single path. */
LNX_INLINE void lnx_report_all(struct lnx_peer *peer)
{
	unsigned i, n = peer->npath;

	for (i = 0; n > 1 && i < n; i++) {
		struct lnx_path *path = peer->path[i];

		/* Its next report includes these, and says nothing new about them. */
		path->last_report += path->sent - path->delivered;
		path->delivered = path->sent;
	}
	peer->chan.una_bytes = 0;
}

#endif
