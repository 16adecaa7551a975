/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector: blobs by index, index by endpoint id.  It does not use cores: an
 * endpoint makes its core addresses of a peer at first use (of local peers at once,
 * because a shared-memory message can only be attributed to a peer that the core
 * knows).
 *
 * Entries are in chunks that never move.  Readers on the data path take no lock: `n` is
 * published with release after an entry is complete, and an entry's `refs` of 0 means
 * removed.
 */
#ifndef LNX_AV_H
#define LNX_AV_H

#include "base/list.h"
#include "base/lock.h"
#include "fi.h"
#include "wire/addr.h"

struct lnx_domain;
struct lnx_ep;

#define LNX_AV_CHUNK_BITS	10
#define LNX_AV_CHUNK		(1u << LNX_AV_CHUNK_BITS)
#define LNX_AV_CHUNKS		(1u << 14)	/* 16 M addresses */

struct lnx_av_entry {
	uint8_t blob[LNX_ADDR_BYTES];
	uint64_t eid;
	uint32_t refs;			/* inserts minus removes */
	uint32_t next_free;		/* free list, index + 1 */
};

struct lnx_av_slot {
	uint32_t hash;
	uint32_t index1;		/* index + 1; 0: empty */
};

struct lnx_av {
	struct fid_av fid;
	struct lnx_domain *domain;
	struct lnx_lock lock;
	enum fi_av_type type;
	uint32_t n;			/* indexes handed out so far */
	uint32_t used;			/* written under `lock`, read without */
	uint32_t free;			/* list head, index + 1; 0 = none */
	struct lnx_av_entry **chunk;	/* [LNX_AV_CHUNKS] */
	pthread_mutex_t hash_lock;	/* innermost: hash, hash_mask */
	struct lnx_av_slot *hash;	/* by eid, open addressing */
	uint32_t hash_mask;
	struct lnx_node eps;		/* lnx_ep.av_link */
	struct lnx_eq *eq;
	int refs;
};

/* NULL when index names no present entry. */
static inline struct lnx_av_entry *lnx_av_entry(const struct lnx_av *av,
						fi_addr_t index)
{
	struct lnx_av_entry *e;

	if (index >= __atomic_load_n(&av->n, __ATOMIC_ACQUIRE))
		return NULL;
	e = &av->chunk[index >> LNX_AV_CHUNK_BITS][index & (LNX_AV_CHUNK - 1)];
	return __atomic_load_n(&e->refs, __ATOMIC_ACQUIRE) ? e : NULL;
}

/*
 * Index of an endpoint id, or FI_ADDR_NOTAVAIL.  Called with an ep->lock held, so
 * without av->lock, which comes first: the index is read under hash_lock.
 */
fi_addr_t lnx_av_find(struct lnx_av *av, uint64_t eid);

static inline struct lnx_av_entry *lnx_av_entry_at(const struct lnx_av *av,
					    uint32_t i)
{
	return &av->chunk[i >> LNX_AV_CHUNK_BITS][i & (LNX_AV_CHUNK - 1)];
}

/*
 * Slots contain the hash, so that neither a collision nor growing reads entries, which
 * are not in the cache in a large AV.
 */
static inline uint32_t lnx_av_hash(uint64_t eid)
{
	return (uint32_t)lnx_mix64(eid);
}

/* Where eid is in av->hash, or the empty slot where it would be.  hash_lock held. */
uint32_t lnx_av_slot_of(const struct lnx_av *av, uint64_t eid);

#endif
