/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What guard.c, recover.c, reopen.c, notice.c and silent.c share; tx/detect.h is for
 * all others, and says what it is about.  Owner lock held.
 */
#ifndef LNX_RECOVERY_H
#define LNX_RECOVERY_H

#include "core/ping.h"
#include "obj/ep.h"

/* An endpoint is opened anew for reads that hang in it, after that long. */
#define LNX_REOPEN_READ_NS	(20 * LNX_NS_PER_MS)
/* And not again for so long. */
#define LNX_REOPEN_BACKOFF_NS	LNX_NS_PER_S

static inline bool lnx_path_usable(const struct lnx_path *path)
{
	return path->state == LNX_PATH_UP || path->state == LNX_PATH_IDLE;
}

static inline bool lnx_path_link_down(const struct lnx_path *path)
{
	return path->rail->link_down || path->detect.remote_down;
}

/* ---- tx/detect.c ---- */
/* Leave path, unless it is the only one; why is for the log.  Calls no core. */
LNX_COLD void lnx_detect_path_down(struct lnx_peer *peer, struct lnx_path *path,
			      const char *why, uint64_t now);
/* Something came by path: good for its health, and that of its two ends. */
void lnx_detect_good(struct lnx_peer *peer, struct lnx_path *path, uint64_t now);
/* The health of the peer's end of path: kept in the first path to it. */
struct lnx_health *lnx_detect_remote_health(struct lnx_peer *peer,
					   const struct lnx_path *path);

/* ---- tx/recovery.c ---- */
/* Look after a path that was left.  Calls cores. */
LNX_COLD void lnx_recovery_run(struct lnx_peer *peer, struct lnx_path *path,
			    uint64_t now);
/* Ask the kernel at the other end of path; and what it says. */
void lnx_recovery_ping(struct lnx_path *path);
enum lnx_ping_result lnx_recovery_kernel(const struct lnx_path *path);

/* ---- tx/link_notice.c ---- */
/* Tell of links what peer->tell says.  What no core takes is left there. */
LNX_COLD void lnx_link_notice_send(struct lnx_peer *peer, uint64_t now);
/* The link at the peer's end of a path is down or up, as far as we know: that it is up
 * again may be lost on the way, so that a path is tried after a while all the same. */
LNX_COLD void lnx_link_notice_trust(struct lnx_peer *peer, struct lnx_path *path,
				bool up, uint64_t now);

/* ---- tx/address_ack.c ---- */
/* Was our last HELLO acknowledged?  To be asked while peer->hello_epoch is set. */
LNX_COLD void lnx_address_ack_look(struct lnx_peer *peer);
/* The peer knows where our rails were when ep->address_epoch was that. */
LNX_COLD void lnx_address_ack_all(struct lnx_peer *peer, uint64_t moves);
/* At which port of path's rail the peer looks for us, as far as we know. */
unsigned lnx_address_ack_port(const struct lnx_path *path);
/* Is there a path of another rail, which delivers, to tell a new address over? */
bool lnx_path_alternative(const struct lnx_peer *peer, const struct lnx_path *path,
		     uint64_t now);
/* True: somebody can be told of a new address only by the rail itself.  *port: the one
 * that it is to be opened with; 0: any. */
LNX_COLD bool lnx_address_ack_keep(const struct lnx_rail *rail, uint64_t now,
			    unsigned *port);

/* ---- tx/reopen.c: all call cores ---- */
/*
 * Close the rail's core endpoint, and with it all connections: at once, what hangs in
 * it keeps others waiting.  What was on its way goes out again; registrations stay as
 * they are.  Another is opened at once if the rail is in use, and else when a kernel
 * answers over it: that takes tcp;ofi_rxm as long as many messages.
 */
LNX_COLD void lnx_reopen_rail(struct lnx_rail *rail, uint64_t now);
/* Open what was closed, and tell peers. */
LNX_COLD void lnx_reopen_open(struct lnx_rail *rail, uint64_t now);
/* A peer that is no more, and reads of its memory that do not end: until they do, they
 * keep buffers of the application busy.  True: there are some. */
LNX_COLD bool lnx_reopen_end_reads(struct lnx_peer *peer, uint64_t now);
/* A rail that is closed is nobody's but ours: whom it was closed for may have gone,
 * others may have come, and opening it may have failed.  True: there is one. */
LNX_COLD bool lnx_reopen_closed(struct lnx_ep *ep, uint64_t now);

#endif
