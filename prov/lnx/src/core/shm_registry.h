/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registry of a shm endpoint: which peers are, or may come to be, known to its
 * core.
 *
 * shm knows 256 peers: those that we insert and those that send to us first.  A further
 * one takes the slot of another: its messages are reported as the other's, and sends to
 * the other go to it.  So before two endpoints use shared memory, each has claimed a
 * slot in the other's registry; otherwise they do not use it.  So a message over shm is
 * always from a peer in the registry.
 *
 * The registry is some pages behind the end of the file of the endpoint's shm region.
 * Cores map that file by the size that is written in it, and the pages are removed with
 * the file.  Other processes write into it, and may be hostile: its content is only a
 * list of endpoint ids that the owner may try to find.
 *
 * Locking: any process claims slots, by compare and swap; only the owner frees them,
 * under its owner lock.
 */
#ifndef LNX_SHM_REGISTRY_H
#define LNX_SHM_REGISTRY_H

#include "os/cma.h"
#include "obj/ep.h"

#define LNX_SHM_SLOTS	256		/* size of shm's peer map */

/* Add one behind the region of ep's shm core, which is enabled.  NULL: there is no such
 * file, or no room; then peers see no registry. */
struct lnx_shm_registry *lnx_shm_registry_open(const struct lnx_ep *ep);
void lnx_shm_registry_close(struct lnx_shm_registry *registry);

/* The process that opened it. */
struct lnx_shm_opener {
	pid_t pid;
	uint64_t started;		/* base/proc.h; 0: not known */
	uint64_t pid_ns;
};

/* Of the registry in the file of a region of that size, which may be hostile.  False: there
 * is none. */
LNX_COLD bool lnx_shm_registry_opener(int fd, off_t size, struct lnx_shm_opener *opener);

/*
 * The owner is about to close, and its application to get its buffers back.  Data that
 * was read from them before lnx_shm_registry_is_live returned true is valid.
 */
void lnx_shm_registry_retire(struct lnx_shm_registry *registry);
bool lnx_shm_registry_is_live(const struct lnx_shm_registry *registry);

/*
 * The cores of peers keep the region of a closed endpoint mapped.  When an endpoint of the
 * same name writes to them first, they map its region instead, but only if the process id
 * in the one that they have is another: an endpoint that is opened again in the same
 * process would never be heard, once its turn (core/open.h) has come again.  So the process
 * id in that region becomes 0 then.  Not before there is another one to map: a peer
 * that reads only now what the closed endpoint wrote to it first would find none, and crash.
 *
 * Where that id is, to be found before ep's core endpoint is closed; NULL: it is not where
 * cores of shm up to now have it.  Leave takes it over, once that endpoint is closed; disown
 * is for the next endpoint, when its region is shown.
 */
LNX_COLD int32_t *lnx_shm_region_pid(const struct lnx_ep *ep);
LNX_COLD void lnx_shm_region_leave(const struct lnx_ep *ep, int32_t *pid);
LNX_COLD void lnx_shm_region_disown(const struct lnx_ep *ep);

/*
 * Memory of the owner has counters: peers that write there must report it
 * (msg/confirm.h).  From then on the value that counts points to is not 0; it is valid
 * as long as the registry.
 */
void lnx_shm_registry_count(struct lnx_shm_registry *registry);
const uint32_t *lnx_shm_registry_counts(const struct lnx_shm_registry *registry);
/* For peers without a registry: always 0. */
extern const uint32_t lnx_shm_registry_no_counts;

/*
 * Keys of the owner's registrations, for peers to check an operation before their core
 * gets it: the core of shm 2.1 does not answer one whose key or range is wrong, nor then
 * any later one of its initiator, to any peer.
 *
 * It is no protection of the owner's memory.  Something that is not listed may be right,
 * because a registration was made just now; so it is executed in another way, which
 * checks it.  Where more keys fall together than there is room for, all others that would
 * belong there count as listed.
 */
#define LNX_SHM_KEY_ROW_BITS	7
#define LNX_SHM_KEY_ROWS	(1u << LNX_SHM_KEY_ROW_BITS)
#define LNX_SHM_KEYS_IN_ROW	4u

#define LNX_SHM_KEY_USED	1u	/* none of libfabric's remote rights */

struct lnx_shm_keys {
	struct lnx_shm_key {
		uint64_t key;
		uint64_t addr;		/* remote address of byte 0 */
		uint64_t len;
		uint64_t access;	/* FI_REMOTE_READ, FI_REMOTE_WRITE, USED; 0:
					 * there is no key */
	} at[LNX_SHM_KEY_ROWS][LNX_SHM_KEYS_IN_ROW];
	uint8_t full[LNX_SHM_KEY_ROWS];	/* some are missing here, or were */
};

LNX_INLINE unsigned lnx_shm_key_row(uint64_t key)
{
	return (unsigned)(key * 0x9e3779b97f4a7c15ULL >>
			  (64 - LNX_SHM_KEY_ROW_BITS));
}

LNX_INLINE bool lnx_shm_key_is(const struct lnx_shm_key *k, uint64_t key,
			       uint64_t addr, uint64_t len, uint64_t access)
{
	uint64_t off;

	/* `access` first: it is written last. */
	if ((__atomic_load_n(&k->access, __ATOMIC_ACQUIRE) & access) != access)
		return false;
	off = addr - k->addr;		/* if below it: very large */
	return k->key == key && off <= k->len && len <= k->len - off;
}

/* The same for any key but the first of a row. */
bool lnx_shm_key_found(const struct lnx_shm_keys *keys, uint64_t key, uint64_t addr,
		       uint64_t len, uint64_t access);

/* Does a key that the owner of registry listed allow that?  True if registry is NULL.
 * access: not 0. */
LNX_INLINE bool lnx_shm_key_allows(const struct lnx_shm_registry *registry,
				   uint64_t key, uint64_t addr, uint64_t len,
				   uint64_t access)
{
	/* They come first. */
	const struct lnx_shm_keys *keys = (const void *)registry;

	return lnx_unlikely(!keys) ||
	       lnx_likely(lnx_shm_key_is(&keys->at[lnx_shm_key_row(key)][0], key,
					 addr, len, access)) ||
	       lnx_shm_key_found(keys, key, addr, len, access);
}
/* By the owner, before peers can have the key; and when it is no longer valid.  Owner
 * lock held. */
void lnx_shm_key_list(struct lnx_shm_registry *registry, uint64_t key,
		      uint64_t addr, uint64_t len, uint64_t access);
void lnx_shm_key_unlist(struct lnx_shm_registry *registry, uint64_t key);

/*
 * The byte of eid's slot, or NULL.  It is not 0 while the core has an operation of eid
 * and the control message that belongs to it (msg/confirm.h) is still to be sent.  Valid as
 * long as the registry.
 */
uint8_t *lnx_shm_slot_unsettled(struct lnx_shm_registry *registry, uint64_t eid);
/*
 * Another byte of eid's slot, or NULL.  The owner sets it to 1 when it was able to read
 * the memory of eid's process, which it tries when eid asks for that: from then on eid
 * may let the owner's core read and write its memory.  The end that finds that this has
 * changed sets it to 0.  Valid as long as the registry.
 */
uint8_t *lnx_shm_slot_reach(struct lnx_shm_registry *registry, uint64_t eid);
/* Is any unsettled byte not 0? */
bool lnx_shm_registry_unsettled(const struct lnx_shm_registry *registry);
/*
 * By the owner: set those of endpoints that have ended to 0, or all.  A process that
 * was killed leaves its byte as it was.
 */
LNX_COLD void lnx_shm_registry_settle(struct lnx_shm_registry *registry, bool all);

/* Claim a slot for eid, which may have one already: 0 or -FI_ENOSPC. */
int lnx_shm_slot_claim(struct lnx_shm_registry *registry, uint64_t eid);
/* Is one available for eid in our own registry? */
bool lnx_shm_slot_available(const struct lnx_shm_registry *registry, uint64_t eid);
unsigned lnx_shm_slots_free(const struct lnx_shm_registry *registry);
/* The peer that has slot i; 0: none. */
uint64_t lnx_shm_slot_peer(const struct lnx_shm_registry *registry, unsigned i);
void lnx_shm_slot_release(struct lnx_shm_registry *registry, unsigned i);

/*
 * The registry of another endpoint, to be closed: 0, or -FI_ENOENT when it has none.
 * Claim a slot there with lnx_shm_slot_claim.
 */
int lnx_shm_registry_find(uint64_t eid, struct lnx_shm_registry **registry);
void lnx_shm_registry_owner(const struct lnx_shm_registry *registry, struct lnx_cma_owner *owner);
/* Is the endpoint dead: its process ended or its file removed?  False if unsure. */
bool lnx_shm_registry_dead(uint64_t eid);
/*
 * May another endpoint have that name now?  *pid: its process; 0: not known.  False
 * also if its process died and left the file behind.  True if unsure.
 */
bool lnx_shm_registry_in_use(uint64_t eid, int *pid);

#endif
