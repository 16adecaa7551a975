/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_av(3).  Each endpoint id gets an index: inserting an address twice gives the same
 * index, and it must be removed as often.  FI_AV_MAP gets the indexes as well; to the
 * application they are opaque.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static inline struct lnx_av *av_of(struct fid_av *fid)
{
	return lnx_container_of(fid, struct lnx_av, fid);
}

/* ---- index by endpoint id ---- */

static void hash_put(struct lnx_av *av, struct lnx_av_slot slot)
{
	uint32_t i = slot.hash & av->hash_mask;

	while (av->hash[i].index1)
		i = (i + 1) & av->hash_mask;
	av->hash[i] = slot;
}

/* Make room for one more; three quarters are filled at most. */
static int hash_reserve(struct lnx_av *av)
{
	uint32_t mask, i, old_mask = av->hash_mask;
	struct lnx_av_slot *tab, *old = av->hash;

	if (av->used < old_mask - old_mask / 4)
		return 0;
	mask = old_mask * 2 + 1;
	tab = calloc(mask + 1ul, sizeof(*tab));
	if (!tab)
		return -FI_ENOMEM;
	pthread_mutex_lock(&av->hash_lock);
	av->hash = tab;
	av->hash_mask = mask;
	for (i = 0; i <= old_mask; i++)
		if (old[i].index1)
			hash_put(av, old[i]);
	pthread_mutex_unlock(&av->hash_lock);
	free(old);
	return 0;
}

/* Close the gap that a removed entry leaves in its run. */
static void hash_delete(struct lnx_av *av, uint64_t eid)
{
	uint32_t i;

	pthread_mutex_lock(&av->hash_lock);
	i = lnx_av_slot_of(av, eid);
	av->hash[i].index1 = 0;
	for (i = (i + 1) & av->hash_mask; av->hash[i].index1;
	     i = (i + 1) & av->hash_mask) {
		struct lnx_av_slot slot = av->hash[i];

		av->hash[i].index1 = 0;
		hash_put(av, slot);
	}
	pthread_mutex_unlock(&av->hash_lock);
}

/* ---- entries ---- */

static int entry_new(struct lnx_av *av, const uint8_t *blob, uint64_t eid,
		     fi_addr_t *addr)
{
	struct lnx_av_entry *e;
	uint32_t i;
	int ret = hash_reserve(av);

	if (ret)
		return ret;
	if (av->free) {
		i = av->free - 1;
		e = lnx_av_entry_at(av, i);
		av->free = e->next_free;
	} else {
		uint32_t c;

		i = av->n;
		c = i >> LNX_AV_CHUNK_BITS;
		if (c >= LNX_AV_CHUNKS)
			return -FI_ENOMEM;
		if (!av->chunk[c]) {
			av->chunk[c] = calloc(LNX_AV_CHUNK, sizeof(*e));
			if (!av->chunk[c])
				return -FI_ENOMEM;
		}
		e = lnx_av_entry_at(av, i);
	}
	memcpy(e->blob, blob, LNX_ADDR_BYTES);
	e->eid = eid;
	e->next_free = 0;
	pthread_mutex_lock(&av->hash_lock);
	hash_put(av, (struct lnx_av_slot){ lnx_av_hash(eid), i + 1 });
	pthread_mutex_unlock(&av->hash_lock);
	__atomic_store_n(&e->refs, 1, __ATOMIC_RELEASE);
	if (i == av->n)
		__atomic_store_n(&av->n, i + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&av->used, av->used + 1, __ATOMIC_RELAXED);
	*addr = i;
	return 0;
}

static int insert_one(struct lnx_av *av, const uint8_t *blob, fi_addr_t *addr)
{
	struct lnx_node *n, *tmp;
	struct lnx_addr a;
	char why[160];
	int ret;

	*addr = FI_ADDR_NOTAVAIL;
	ret = lnx_addr_unpack(&a, blob, LNX_ADDR_BYTES, why, sizeof(why));
	if (ret) {
		LNX_WARN(FI_LOG_AV, "fi_av_insert: not an lnx address: %s\n",
			 why);
		return -FI_EINVAL;
	}
	*addr = lnx_av_find(av, a.eid);
	if (*addr != FI_ADDR_NOTAVAIL) {
		struct lnx_av_entry *e = lnx_av_entry_at(av, (uint32_t)*addr);

		__atomic_add_fetch(&e->refs, 1, __ATOMIC_RELEASE);
		return 0;
	}
	ret = entry_new(av, blob, a.eid, addr);
	if (ret)
		return ret;
	lnx_list_foreach(&av->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep, bound.av_link);

		lnx_lock(&ep->lock);
		if (ep->enabled)
			lnx_peer_av_inserted(ep, *addr, &a);
		lnx_unlock(&ep->lock);
	}
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct lnx_av *av = av_of(fid);
	const uint8_t *blob = addr;
	int *errs = (flags & FI_SYNC_ERR) ? context : NULL;
	size_t i, good = 0;

	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_EVENT))
		return -FI_EBADFLAGS;
	if (!addr && count)
		return -FI_EINVAL;
	lnx_lock(&av->lock);
	for (i = 0; i < count; i++, blob += LNX_ADDR_BYTES) {
		fi_addr_t index;
		int ret = insert_one(av, blob, &index);

		if (fi_addr)
			fi_addr[i] = index;
		if (errs)
			errs[i] = -ret;
		if (!ret) {
			good++;
		} else if (av->eq) {
			struct fi_eq_err_entry e = {
				.fid = &av->fid.fid, .context = context,
				.data = i, .err = -ret, .prov_errno = -ret,
			};

			lnx_eq_write_err(av->eq, &e);
		}
	}
	if (av->eq) {
		struct fi_eq_entry e = {
			.fid = &av->fid.fid, .context = context, .data = good,
		};

		lnx_eq_write(av->eq, FI_AV_COMPLETE, &e, sizeof(e));
	}
	lnx_unlock(&av->lock);
	return av->eq ? 0 : (int)good;
}

/* Host names do not identify endpoints: identities are random. */
static int av_insertsvc(struct fid_av *fid, const char *node,
			const char *service, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	(void)fid, (void)fi_addr, (void)flags, (void)context;
	LNX_WARN(FI_LOG_AV,
		 "fi_av_insertsvc(%s, %s): an lnx endpoint is not found by host and service; exchange the addresses of fi_getname and use fi_av_insert\n",
		 node ? node : "NULL", service ? service : "NULL");
	return -FI_ENOSYS;
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			const char *service, size_t svccnt,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	(void)nodecnt, (void)svccnt;
	return av_insertsvc(fid, node, service, fi_addr, flags, context);
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct lnx_av *av = av_of(fid);
	int ret = 0;
	size_t i;

	if (flags)
		return -FI_EBADFLAGS;
	lnx_lock(&av->lock);
	for (i = 0; i < count; i++) {
		struct lnx_av_entry *e = lnx_av_entry(av, fi_addr[i]);
		struct lnx_node *n, *tmp;

		if (!e) {
			ret = -FI_EINVAL;
			continue;
		}
		if (__atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL))
			continue;
		/* First: no endpoint may find it again after forgetting it. */
		hash_delete(av, e->eid);
		lnx_list_foreach(&av->eps, n, tmp) {
			struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
							   bound.av_link);

			lnx_lock(&ep->lock);
			if (ep->enabled)
				lnx_peer_av_removed(ep, fi_addr[i]);
			lnx_unlock(&ep->lock);
		}
		e->next_free = av->free;
		av->free = (uint32_t)fi_addr[i] + 1;
		__atomic_store_n(&av->used, av->used - 1, __ATOMIC_RELAXED);
	}
	lnx_unlock(&av->lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct lnx_av_entry *e = lnx_av_entry(av_of(fid), fi_addr);
	size_t room = *addrlen;

	if (!e)
		return -FI_EINVAL;
	*addrlen = LNX_ADDR_BYTES;
	memcpy(addr, e->blob, LNX_MIN(room, (size_t)LNX_ADDR_BYTES));
	return room < LNX_ADDR_BYTES ? -FI_ETOOSMALL : 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	char text[512], why[160];
	struct lnx_addr a;
	size_t need;

	(void)fid;
	if (lnx_addr_unpack(&a, addr, LNX_ADDR_BYTES, why, sizeof(why)))
		need = (size_t)snprintf(text, sizeof(text),
					"lnx://invalid (%s)", why);
	else
		need = lnx_addr_print(&a, text, sizeof(text));
	if (buf && *len) {
		size_t n = LNX_MIN(LNX_MIN(need, sizeof(text) - 1), *len - 1);

		memcpy(buf, text, n);
		buf[n] = '\0';
	}
	*len = need + 1;
	return buf;
}

static int av_no_set(struct fid_av *fid, struct fi_av_set_attr *attr,
		     struct fid_av_set **set, void *context)
{
	(void)fid, (void)attr, (void)set, (void)context;
	return -FI_ENOSYS;
}

static int av_close(struct fid *fid)
{
	struct lnx_av *av = lnx_container_of(fid, struct lnx_av, fid.fid);
	uint32_t i;

	if (__atomic_load_n(&av->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	for (i = 0; i < LNX_AV_CHUNKS && av->chunk[i]; i++)
		free(av->chunk[i]);
	free(av->chunk);
	free(av->hash);
	pthread_mutex_destroy(&av->hash_lock);
	lnx_lock_fini(&av->lock);
	__atomic_sub_fetch(&av->domain->refs, 1, __ATOMIC_RELEASE);
	if (av->eq)
		lnx_eq_unref(av->eq);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct lnx_av *av = lnx_container_of(fid, struct lnx_av, fid.fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (bfid->fclass != FI_CLASS_EQ || av->eq)
		return -FI_EINVAL;
	av->eq = lnx_eq_ref(bfid);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = lnx_nosys_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_no_set,
};

int lnx_av_attach(struct lnx_av *av, struct lnx_ep *ep)
{
	lnx_lock(&av->lock);
	lnx_list_add_tail(&av->eps, &ep->bound.av_link);
	lnx_unlock(&av->lock);
	__atomic_add_fetch(&av->refs, 1, __ATOMIC_RELAXED);
	return 0;
}

void lnx_av_detach(struct lnx_av *av, struct lnx_ep *ep)
{
	lnx_lock(&av->lock);
	lnx_list_del(&ep->bound.av_link);
	lnx_unlock(&av->lock);
	__atomic_sub_fetch(&av->refs, 1, __ATOMIC_RELEASE);
}

int lnx_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	struct lnx_av *av;

	/* FI_SYMMETRIC tells something about the addresses that we do not need. */
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return -FI_EBADFLAGS;
	if (attr->name)
		return -FI_ENOSYS;
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_TABLE &&
	    attr->type != FI_AV_MAP)
		return -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->chunk = calloc(LNX_AV_CHUNKS, sizeof(*av->chunk));
	av->hash_mask = 63;
	av->hash = calloc(av->hash_mask + 1, sizeof(*av->hash));
	if (!av->chunk || !av->hash) {
		free(av->chunk);
		free(av->hash);
		free(av);
		return -FI_ENOMEM;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->type = attr->type;
	av->domain = d;
	lnx_lock_init(&av->lock, true);
	pthread_mutex_init(&av->hash_lock, NULL);
	lnx_list_init(&av->eps);
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &av->fid;
	return 0;
}
