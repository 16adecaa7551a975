/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A memory registration: one key, the application's or ours, over all rails; its bytes
 * are addressed from 0, or by virtual addresses.  We check frames of peers against it.
 * It is registered with a core only when needed: with shm at once, under the same key,
 * because peers pass that key to the core; with a network rail when a peer asks for its
 * keys (to read something large), or at once with FI_LNX_MR_EAGER.
 *
 * Locks: domain->mr_lock guards the index, users, cntr, given and the lists in regs.
 * Core calls are made with the owner lock of the rail's endpoint held (cores are open
 * for one thread at a time).
 */
#ifndef LNX_MR_H
#define LNX_MR_H

#include "base/list.h"
#include "fi.h"
#include "obj/domain.h"

/* The mr_mode of old; using libfabric's own name for it gives a warning. */
#define LNX_MR_BASIC	(1 << 0)

struct lnx_domain;
struct lnx_ep;
struct lnx_rail;

struct lnx_mr {
	struct fid_mr fid;
	struct lnx_domain *domain;
	struct lnx_mr *hash_next;	/* domain->mrs */
	uint8_t *base;
	uint64_t origin;		/* remote address of byte 0 */
	size_t len;
	uint64_t access;		/* FI_REMOTE_READ, ... */
	/* With FI_HMEM, for cores: the kind of the memory. */
	enum fi_hmem_iface iface;
	uint64_t device;		/* all bits of fi_mr_attr.device */
	uint64_t flags;
	uint32_t users;			/* current transfers into or out of it */
	struct lnx_cntr *cntr;		/* counts writes by peers; NULL: none */
	bool given;			/* peers have keys, and do not report writes */
	struct lnx_node regs;		/* lnx_mr_reg.link */
};

/* The registration with one rail. */
struct lnx_mr_reg {
	struct lnx_node link;		/* mr->regs */
	struct lnx_node rail_link;	/* rail->regs */
	struct lnx_mr *mr;
	struct lnx_rail *rail;
	struct fid_mr *core;
	uint64_t key;
	uint64_t addr;			/* of byte 0, for remote access */
};

/* ---- core/mr.c ---- */

/*
 * Memory for a peer's access to len bytes at address addr of registration key, which
 * must allow all of `access`.  0 with *ptr, valid while the caller holds the owner lock
 * of an endpoint in domain->eps.  *user, if not NULL, cannot be closed until
 * lnx_mr_unuse.  -FI_ENOKEY: no such key; -FI_EACCES: not allowed, or outside.  Takes
 * mr_lock.
 */
int lnx_mr_check(struct lnx_domain *d, uint64_t key, uint64_t addr, size_t len,
		 uint64_t access, uint8_t **ptr, struct lnx_mr **user);
/* The registration of that key or NULL; valid as long as *ptr above. */
struct lnx_mr *lnx_mr_find(struct lnx_domain *d, uint64_t key);
void lnx_mr_unuse(struct lnx_mr *mr);

/*
 * Bind a counter of writes into mr by peers.  0; -FI_EBUSY: it has one;
 * -FI_EOPBADSTATE: too late, some peers write already without reporting it; -FI_ENOMEM:
 * peers of this host could not be made to report.  fid: the counter's, which cannot be
 * closed before mr.  domain->eps_lock held.
 */
int lnx_mr_bind_cntr(struct lnx_mr *mr, struct fid *fid);
/* Its keys are given to a peer.  True: the peer must report writes.  Takes mr_lock. */
bool lnx_mr_give(struct lnx_mr *mr);
/* Has any registration a counter? */
LNX_INLINE bool lnx_mrs_counted(const struct lnx_domain *d)
{
	return lnx_unlikely(__atomic_load_n(&d->ncounted, __ATOMIC_RELAXED));
}
/* Add k, unless it is there, to the n keys of one operation, LNX_RMA_TARGETS_MAX at
 * most; returns the new number of keys. */
unsigned lnx_mr_key_add(uint64_t *key, unsigned n, uint64_t k);
/* An operation has changed the memory of these n keys.  Takes mr_lock. */
void lnx_mr_count(struct lnx_domain *d, const uint64_t *key, unsigned n);

/* Set up the empty index of a new domain.  0, -FI_ENOMEM, or -FI_EIO: no random numbers
 * for the keys that we pick.  d->threads and d->mr_basic are set. */
int lnx_mrs_init(struct lnx_domain *d);
void lnx_mrs_fini(struct lnx_domain *d);
/* Add to the index: 0, or -FI_ENOKEY: the key is taken.  Remove from it: 0, or
 * -FI_EBUSY: it is in use.  Takes mr_lock. */
int lnx_mr_add(struct lnx_mr *mr);
int lnx_mr_del(struct lnx_mr *mr);

/*
 * Prepare the choice of a rail's keys: random numbers of the size that its core takes.  So
 * a peer that has a key cannot tell another one; and a key that it kept from a former
 * endpoint opens nothing here, even if we have the port of that endpoint now.  0, or
 * -FI_EIO: the kernel gives no random numbers.
 */
int lnx_rail_keys_init(struct lnx_rail *rail);
/* Register memory with a rail's core, under a key that no other registration there has.
 * 0, -FI_EIO (no random numbers), or the core's error.  Owner lock of the rail's endpoint
 * held. */
int lnx_rail_register(struct lnx_rail *rail, const void *buf, size_t len,
		      uint64_t access, struct fid_mr **mr);
/* Turn our descriptors desc[n] into those of rail's core; NULL stays NULL.  Owner lock
 * of the rail's endpoint held. */
void lnx_mr_descs(const struct lnx_rail *rail, void **desc, size_t n,
		  void **core);
/*
 * Register with rail (a network rail: under a key of the rail's own), unless that is
 * done already.  0; the core's error, after a warning; or -FI_EAGAIN, memory is short.
 * Owner lock of the rail's endpoint held.
 */
int lnx_mr_register(struct lnx_mr *mr, struct lnx_rail *rail,
		    struct lnx_mr_reg **reg);

/* All below: the caller holds domain->eps_lock, so no endpoint or registration is added
 * or removed. */

/* Register mr with the rails of all endpoints of the domain, where they need it; and
 * undo that.  Takes their owner locks. */
int lnx_mr_announce(struct lnx_mr *mr);
void lnx_mr_withdraw(struct lnx_mr *mr);
/* Return when no thread is between a check and the access that it allowed: both happen
 * under one hold of an owner lock. */
void lnx_mr_quiesce(struct lnx_domain *d);
/* An endpoint is enabled: register everything with its rails.  Its rails are about to
 * be closed.  Owner lock held. */
int lnx_mr_join(struct lnx_ep *ep);
void lnx_mr_detach(struct lnx_ep *ep);

#endif
