/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What peers know about the addresses of our rails.  Called by rel/recovery.c and
 * rel/reopen.c.
 *
 * A rail that is opened anew listens on a new port, so that a peer cannot confuse it
 * with a connection it still takes for open; the peers are told the port over another
 * path.  That path may fail before they get the message, for both ends at once.  Then
 * each end would try the other at an address where no rail is, for ever.  So a rail
 * whose peer has no other path is opened at the port where that peer is known to look
 * for it.  So is one of a peer that was given up a short while ago.
 *
 * A peer knows a port when it has acknowledged the HELLO, or answered the PROBE, that
 * told it.  If that answer is lost, the peer knows more than we think; but it remembers
 * our previous port, and tries both in turn (lnx_path_set_elsewhere).
 */
#include "base/interval.h"
#include "core/open.h"
#include "rel/detect.h"
#include "rel/recovery.h"

LNX_COLD void lnx_address_ack_hello(struct lnx_peer *peer)
{
	peer->address.hello_epoch = peer->ep->address.epoch;
	peer->address.hello_seq = peer->chan.next;
}

LNX_COLD void lnx_address_ack_all(struct lnx_peer *peer, uint64_t moves)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		struct lnx_path *path = peer->path[i];

		if (path->rail->moved_epoch <= moves)
			path->detect.acked_port =
				(uint16_t)lnx_rail_port(path->rail);
	}
}

LNX_COLD void lnx_address_ack_look(struct lnx_peer *peer)
{
	if ((int32_t)(peer->chan.una - peer->address.hello_seq) <= 0)
		return;
	lnx_address_ack_all(peer, peer->address.hello_epoch);
	peer->address.hello_epoch = 0;
}

unsigned lnx_address_ack_port(const struct lnx_path *path)
{
	return path->detect.acked_port ? path->detect.acked_port :
				       path->rail->first_port;
}

bool lnx_path_alternative(const struct lnx_peer *peer, const struct lnx_path *path,
		     uint64_t now)
{
	unsigned i;

	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path *other = peer->path[i];

		if (other->state == LNX_PATH_UP && other->rail != path->rail &&
		    (!other->detect.silence.since_ns ||
		     lnx_ns_since(now, LNX_MAX(other->detect.silence.since_ns,
					       peer->choice->pong_ns)) <=
			     LNX_ADDRESS_STALLED_NS))
			return true;
	}
	return false;
}

/* Only this path leads to the peer: nothing can be told over another one. */
static bool cut_off(const struct lnx_peer *peer, const struct lnx_path *path,
		    uint64_t now)
{
	unsigned i;

	if (path->state != LNX_PATH_DOWN || lnx_path_alternative(peer, path, now))
		return false;
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i]->state == LNX_PATH_IDLE &&
		    peer->path[i]->rail != path->rail)
			return false;
	return true;
}

/*
 * Now and then use another port all the same: the peer may be where it was and still
 * use an old connection.  The two ends must not do this at the same time: one does so
 * every second time, the other every third.
 */
static bool try_another(const struct lnx_rail *rail,
			const struct lnx_peer *peer)
{
	unsigned every = rail->ep->eid > peer->eid ? 3 : 2;

	return rail->unannounced % every == every - 1;
}

/*
 * A peer that was given up because it was silent hears of no new port.  When it can be
 * reached again, it looks for us where we were; and it may have moved, too.
 */
static bool ended_keeps(const struct lnx_peer *peer, const struct lnx_rail *rail,
			uint64_t now, unsigned *port)
{
	unsigned i;

	if (peer->session.err != FI_ETIMEDOUT ||
	    lnx_ns_since_stamp(now, peer->session.ended_ms) >= LNX_SESSION_TELL_NS)
		return false;
	for (i = 0; i < peer->npath; i++) {
		if (peer->path[i]->rail != rail)
			continue;
		*port = try_another(rail, peer) ?
			0 : lnx_address_ack_port(peer->path[i]);
		return true;
	}
	return false;
}

LNX_COLD bool lnx_address_ack_keep(const struct lnx_rail *rail, uint64_t now,
			    unsigned *port)
{
	struct lnx_node *n, *tmp;
	bool keep = false;
	unsigned i;

	*port = 0;
	lnx_list_foreach(&rail->ep->peers.all, n, tmp) {
		struct lnx_peer *peer =
			lnx_list_entry(n, struct lnx_peer, all_link);

		if (!lnx_peer_open(peer)) {
			keep |= ended_keeps(peer, rail, now, port);
			continue;
		}
		if (peer->address.hello_epoch)
			lnx_address_ack_look(peer);
		for (i = 0; i < peer->npath; i++) {
			const struct lnx_path *path = peer->path[i];

			if (path->rail != rail || !cut_off(peer, path, now))
				continue;
			/* Several peers look at different ports: try each in turn. */
			if (!keep || lnx_address_ack_port(path) != lnx_rail_port(rail))
				*port = try_another(rail, peer) ?
					0 : lnx_address_ack_port(path);
			keep = true;
		}
	}
	return keep;
}
