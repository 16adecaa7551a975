/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by detect.c, recovery.c, reopen.c, link_notice.c, liveness.c and
 * address_ack.c; rel/detect.h is for all other files, and has the overview.  Owner lock
 * held.
 */
#ifndef LNX_RECOVERY_H
#define LNX_RECOVERY_H

#include "os/ping.h"
#include "obj/ep.h"

/* ---- rel/detect.c ---- */
/* Set path DOWN, unless it is the only one; why is for the log.  Calls no core. */
LNX_COLD void lnx_detect_path_down(struct lnx_peer *peer, struct lnx_path *path,
			      const char *why, uint64_t now);
/* Something came by path: raise its health, and that of its two ends. */
void lnx_detect_good(struct lnx_peer *peer, struct lnx_path *path, uint64_t now);
/* ---- rel/recovery.c ---- */
/* Recovery of a path that is DOWN.  Returns when to do more; LNX_NEVER: not before its link
 * comes up, or it is no longer drained.  Calls cores. */
LNX_COLD uint64_t lnx_recovery_run(struct lnx_peer *peer, struct lnx_path *path,
				   uint64_t now);
/* Is path DOWN for so long that only a sign of life, a link or a hand has it pinged again?
 * wanted: nothing else works, and something is due. */
bool lnx_recovery_given_up(const struct lnx_peer *peer, const struct lnx_path *path,
			   bool wanted, uint64_t now);
/* Ask the kernel at the other end of path; and get its answer. */
void lnx_recovery_ping(struct lnx_peer *peer, struct lnx_path *path);
enum lnx_ping_result lnx_recovery_kernel(const struct lnx_path *path);
/* The peer asks what has arrived here, over a gateway: what we send it may get lost behind a
 * gateway that it does not reach, though nothing of it is missing that we wait for.  Gateways find
 * that out when they are asked about its host. */
LNX_COLD void lnx_recovery_ask_gateways(struct lnx_peer *peer, uint64_t now);
/* Is its answer UNKNOWN only because it could not be asked just now, or no longer listened to? */
LNX_COLD bool lnx_recovery_unasked(const struct lnx_path *path);

/* ---- rel/link_notice.c ---- */
/* Send the link notices that peer->address.tell lists.  What no core takes stays there. */
LNX_COLD void lnx_link_notice_send(struct lnx_peer *peer, uint64_t now);
/* A path that is DOWN has answered, or was DOWN only because the user wanted that: it is used
 * again.  Calls no core. */
LNX_COLD void lnx_recovery_restore(struct lnx_peer *peer, struct lnx_path *path, uint64_t now);
/* No path to peer is known to work: gateways may lead to it.  Calls cores' AVs. */
LNX_COLD void lnx_link_notice_standby(struct lnx_peer *peer);
/* The routes of ep have changed: paths are made for the best ones, left, and tried again.
 * Calls cores. */
LNX_COLD void lnx_link_notice_routes(struct lnx_ep *ep, uint64_t now);
/* When to do so; LNX_NEVER: there is none, or no path but such that are DOWN. */
LNX_COLD uint64_t lnx_link_notice_next(const struct lnx_peer *peer, uint64_t now);
/* The link at the peer's end of path is down or up, as far as we know.  The notice that
 * it is up may be lost, so the path is tried after a while in any case. */
LNX_COLD void lnx_link_notice_trust(struct lnx_peer *peer, struct lnx_path *path,
				bool up, uint64_t now);

/* ---- rel/address_ack.c ---- */
/* Was our last HELLO acknowledged?  To be called while peer->address.hello_epoch is set. */
LNX_COLD void lnx_address_ack_look(struct lnx_peer *peer);
/* The peer knows the addresses that our rails had at that ep->address.epoch. */
LNX_COLD void lnx_address_ack_all(struct lnx_peer *peer, uint64_t moves);
/* The port of path's rail at which the peer looks for us, as far as we know. */
unsigned lnx_address_ack_port(const struct lnx_path *path);
/* Is there a path of another rail, which delivers, to tell a new address over? */
bool lnx_path_alternative(const struct lnx_peer *peer, const struct lnx_path *path,
		     uint64_t now);
/* True: some peer can be told of a new address only by the rail itself.  *port: the
 * port to open it with; 0: any. */
LNX_COLD bool lnx_address_ack_keep(const struct lnx_rail *rail, uint64_t now,
			    unsigned *port);

/* ---- rel/reopen.c: all call cores ---- */
/*
 * Close the rail's core endpoint, and with it all connections.  This is done at once,
 * because what hangs in it keeps others waiting.  Frames in flight are sent again;
 * registrations stay.  A new endpoint is opened at once if the rail is in use, else
 * when a kernel answers over it: with tcp;ofi_rxm opening takes as long as many
 * messages.
 */
LNX_COLD void lnx_reopen_rail(struct lnx_rail *rail, uint64_t now);
/* Open what was closed, and tell peers. */
LNX_COLD void lnx_reopen_open(struct lnx_rail *rail, uint64_t now);
/* A dead peer, and reads of its memory or frames to it that do not end: until they do,
 * they keep buffers of the application busy.  Returns when to look again; LNX_NEVER: there
 * are none, or no more can be done. */
LNX_COLD uint64_t lnx_reopen_end_held(struct lnx_peer *peer, uint64_t now);
/* Check rails that are closed: LNX_DUE_RAILS.  No peer does that for us: the one a rail
 * was closed for may be dead, others may have come, and opening the rail may have failed.
 * Returns when to call it again. */
LNX_COLD uint64_t lnx_reopen_closed(struct lnx_ep *ep, uint64_t now);

#endif
