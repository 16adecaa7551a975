/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by peer.c, peer_table.c and peer_shm.c; what others call is in obj/ep.h.  Owner
 * lock held.
 */
#ifndef LNX_CORE_PEER_H
#define LNX_CORE_PEER_H

#include "obj/ep.h"

/* ---- peer_table.c ---- */

/* Sends to AV index addr find peer, which may be NULL.  0 or -FI_ENOMEM. */
int lnx_peer_tab_set(struct lnx_ep *ep, fi_addr_t addr, struct lnx_peer *peer);
/* The peer with that endpoint id, or NULL. */
struct lnx_peer *lnx_peer_known(const struct lnx_ep *ep, uint64_t eid);
/* p is new, and in ep->peers.all: it is counted, and found by its id. */
void lnx_peer_hash(struct lnx_peer *p);
/* The core of rail has that address for peer.  0 or -FI_ENOMEM. */
int lnx_peer_by_core_set(struct lnx_rail *rail, fi_addr_t core_addr,
			 struct lnx_peer *peer);

/* ---- peer_shm.c ---- */

/* Does the address say that its endpoint is on this host, with shared memory? */
bool lnx_peer_shm_local(const struct lnx_ep *ep, const struct lnx_addr *a);
/* Make the path over shared memory.  False: there is none.  Calls cores. */
bool lnx_peer_shm_join(struct lnx_peer *peer, const struct lnx_addr *a);
/* Take it away.  False: the core keeps its address, which takes one of its places.  Calls a
 * core. */
bool lnx_peer_shm_forget(struct lnx_peer *peer);
/* A message came over shm from a source that is not inserted: insert it.  Calls cores. */
LNX_COLD void lnx_peer_shm_sources(struct lnx_ep *ep);
/* The same, and look for slots of peers that have ended. */
LNX_COLD void lnx_peer_shm_registered(struct lnx_ep *ep);

#endif
