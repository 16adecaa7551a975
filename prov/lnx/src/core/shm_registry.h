/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registered registry of a shm endpoint: who is, or may come to be, known to its core.
 *
 * shm knows 256 peers, those that we insert and those that send to us first.  One
 * more takes the place of another: its messages are told to be the other's, and
 * sends to the other go to it.  So before two endpoints use shared memory each has
 * a place in the registry of the other, or they do not use it; a message over shm is
 * always of somebody in the registry.
 *
 * The registry is a page behind the end of the file of the endpoint's shm region,
 * which cores map by the size that it says itself: it comes and goes with that.
 * Other processes write into it, and may be hostile: what is in it is a list of
 * endpoint ids that the owner may try to find, and no more.
 *
 * Locking: places are claimed by any process, by compare and swap, and given free
 * by the owner alone, under its owner lock.
 */
#ifndef LNX_SHM_REGISTRY_H
#define LNX_SHM_REGISTRY_H

#include "core/cma.h"
#include "obj/ep.h"

#define LNX_SHM_SLOTS	256		/* of shm's map of peers */

/* Put one behind the region of ep's shm core, which is enabled.  NULL: there is no
 * such file, or no room; peers then see no registry. */
struct lnx_shm_registry *lnx_shm_registry_open(const struct lnx_ep *ep);
void lnx_shm_registry_close(struct lnx_shm_registry *registry);

/*
 * The owner is about to close, and its application to get its buffers back.  What
 * was read of them before a true answer to lnx_shm_registry_is_live is good.
 */
void lnx_shm_registry_retire(struct lnx_shm_registry *registry);
bool lnx_shm_registry_is_live(const struct lnx_shm_registry *registry);

/*
 * Memory of the owner has counters: whoever writes there tells (tx/confirm.h).  What
 * counts points to is not 0 from then on; it is as long there as the registry.
 */
void lnx_shm_registry_count(struct lnx_shm_registry *registry);
const uint32_t *lnx_shm_registry_counts(const struct lnx_shm_registry *registry);
/* For peers without a registry: always 0. */
extern const uint32_t lnx_shm_registry_no_counts;

/* A place for eid, which it may have: 0 or -FI_ENOSPC. */
int lnx_shm_slot_claim(struct lnx_shm_registry *registry, uint64_t eid);
/* Of our own registry. */
bool lnx_shm_slot_available(const struct lnx_shm_registry *registry, uint64_t eid);
unsigned lnx_shm_slots_free(const struct lnx_shm_registry *registry);
/* Who has place i; 0: nobody. */
uint64_t lnx_shm_slot_peer(const struct lnx_shm_registry *registry, unsigned i);
void lnx_shm_slot_release(struct lnx_shm_registry *registry, unsigned i);

/*
 * The registry of another endpoint, to be closed: 0, or -FI_ENOENT when it has none.  A
 * place there is taken with lnx_shm_slot_claim.
 */
int lnx_shm_registry_find(uint64_t eid, struct lnx_shm_registry **registry);
void lnx_shm_registry_owner(const struct lnx_shm_registry *registry, struct lnx_cma_owner *owner);
/* Is the endpoint gone, its process dead or its file removed?  Says no if unsure. */
bool lnx_shm_registry_dead(uint64_t eid);

#endif
