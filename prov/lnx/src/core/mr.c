/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registrations, and what is registered with the rails' cores; declared in obj/mr.h. */
#include <stdlib.h>
#include <unistd.h>

#include "core/shm_registry.h"
#include "core/key_pool.h"
#include "core/open.h"
#include "obj/ep.h"
#include "obj/mr.h"

/* ---- checks, on the data path ---- */

static struct lnx_mr *find(const struct lnx_domain *d, uint64_t key)
{
	struct lnx_mr *mr = d->mrs[(uint32_t)lnx_mix64(key) & d->mrs_mask];

	while (mr && mr->fid.key != key)
		mr = mr->hash_next;
	return mr;
}

int lnx_mr_check(struct lnx_domain *d, uint64_t key, uint64_t addr, size_t len,
		 uint64_t access, uint8_t **ptr, struct lnx_mr **user)
{
	struct lnx_mr *mr;
	uint64_t off;
	int ret = 0;

	lnx_lock(&d->mr_lock);
	mr = find(d, key);
	if (lnx_unlikely(!mr)) {
		ret = -FI_ENOKEY;
		goto out;
	}
	off = addr - mr->origin;	/* if below it: very large */
	if (lnx_unlikely((mr->access & access) != access ||
			 off > mr->len || len > mr->len - off)) {
		ret = -FI_EACCES;
	} else {
		*ptr = mr->base + off;
		if (user) {
			mr->users++;
			*user = mr;
		}
	}
out:
	lnx_unlock(&d->mr_lock);
	return ret;
}

struct lnx_mr *lnx_mr_find(struct lnx_domain *d, uint64_t key)
{
	struct lnx_mr *mr;

	lnx_lock(&d->mr_lock);
	mr = find(d, key);
	lnx_unlock(&d->mr_lock);
	return mr;
}

void lnx_mr_unuse(struct lnx_mr *mr)
{
	struct lnx_domain *d = mr->domain;

	lnx_lock(&d->mr_lock);
	mr->users--;
	lnx_unlock(&d->mr_lock);
}

/* ---- counters ---- */

unsigned lnx_mr_key_add(uint64_t *key, unsigned n, uint64_t k)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (key[i] == k)
			return n;
	if (n < LNX_RMA_TARGETS_MAX)
		key[n++] = k;
	return n;
}

void lnx_mr_count(struct lnx_domain *d, const uint64_t *key, unsigned n)
{
	unsigned i;

	lnx_lock(&d->mr_lock);
	for (i = 0; i < n; i++) {
		const struct lnx_mr *mr = find(d, key[i]);

		if (mr)
			lnx_cntr_add_ok(mr->cntr);
	}
	lnx_unlock(&d->mr_lock);
}

bool lnx_mr_give(struct lnx_mr *mr)
{
	struct lnx_domain *d = mr->domain;
	bool counted;

	lnx_lock(&d->mr_lock);
	mr->given = true;
	counted = mr->cntr != NULL;
	lnx_unlock(&d->mr_lock);
	return counted;
}

/*
 * Peers of this host write through their core, which does not report it to us: request
 * that they do.
 */
static int ask_locals(struct lnx_ep *ep)
{
	if (!ep->shm)
		return 0;
	if (!ep->local.registry) {
		LNX_WARN(FI_LOG_MR,
			 "rail %s: writes of peers to memory are not counted: there is no room behind its region in /dev/shm\n",
			 ep->shm->name);
		return -FI_ENOMEM;
	}
	lnx_shm_registry_count(ep->local.registry);
	return 0;
}

int lnx_mr_bind_cntr(struct lnx_mr *mr, struct fid *fid)
{
	struct lnx_domain *d = mr->domain;
	struct lnx_node *n, *tmp;
	int ret = 0;

	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		lnx_lock(&ep->lock);
		ret = ask_locals(ep);
		lnx_unlock(&ep->lock);
		if (ret)
			return ret;
	}
	lnx_lock(&d->mr_lock);
	if (mr->cntr)
		ret = -FI_EBUSY;
	else if (mr->given)
		ret = -FI_EOPBADSTATE;
	else
		mr->cntr = lnx_cntr_ref_mr(fid);
	lnx_unlock(&d->mr_lock);
	if (!ret)
		__atomic_add_fetch(&d->ncounted, 1, __ATOMIC_RELEASE);
	return ret;
}

/* ---- the index ---- */

#define MRS_MIN	64

int lnx_mrs_init(struct lnx_domain *d)
{
	d->mrs_mask = MRS_MIN - 1;
	d->nmr = 0;
	/* Fail now, and not when memory is registered. */
	if (d->mr_basic && !lnx_host_random_id())
		return -FI_EIO;
	d->mrs = calloc(MRS_MIN, sizeof(*d->mrs));
	if (!d->mrs)
		return -FI_ENOMEM;
	lnx_list_init(&d->eps);
	pthread_mutex_init(&d->eps_lock, NULL);
	lnx_lock_init(&d->mr_lock, d->threads);
	return 0;
}

void lnx_mrs_fini(struct lnx_domain *d)
{
	free(d->mrs);
	lnx_lock_fini(&d->mr_lock);
	pthread_mutex_destroy(&d->eps_lock);
}

static void grow(struct lnx_domain *d)
{
	uint32_t mask = d->mrs_mask * 2 + 1, i;
	struct lnx_mr **tab = calloc(mask + 1ul, sizeof(*tab));

	if (!tab)
		return;			/* longer chains, still correct */
	for (i = 0; i <= d->mrs_mask; i++) {
		struct lnx_mr *mr, *next;

		for (mr = d->mrs[i]; mr; mr = next) {
			uint32_t j = (uint32_t)lnx_mix64(mr->fid.key) & mask;

			next = mr->hash_next;
			mr->hash_next = tab[j];
			tab[j] = mr;
		}
	}
	free(d->mrs);
	d->mrs = tab;
	d->mrs_mask = mask;
}

int lnx_mr_add(struct lnx_mr *mr)
{
	struct lnx_domain *d = mr->domain;
	int ret = -FI_ENOKEY;
	uint32_t i;

	lnx_lock(&d->mr_lock);
	if (!find(d, mr->fid.key)) {
		if (d->nmr > d->mrs_mask)
			grow(d);
		i = (uint32_t)lnx_mix64(mr->fid.key) & d->mrs_mask;
		mr->hash_next = d->mrs[i];
		d->mrs[i] = mr;
		d->nmr++;
		ret = 0;
	}
	lnx_unlock(&d->mr_lock);
	return ret;
}

int lnx_mr_del(struct lnx_mr *mr)
{
	struct lnx_domain *d = mr->domain;
	struct lnx_mr **at;
	int ret = -FI_EBUSY;

	lnx_lock(&d->mr_lock);
	if (!mr->users) {
		at = &d->mrs[(uint32_t)lnx_mix64(mr->fid.key) & d->mrs_mask];
		while (*at != mr)
			at = &(*at)->hash_next;
		*at = mr->hash_next;
		d->nmr--;
		ret = 0;
	}
	lnx_unlock(&d->mr_lock);
	return ret;
}

/* ---- rails ---- */

static struct lnx_mr_reg *reg_of(const struct lnx_mr *mr,
				 const struct lnx_rail *rail)
{
	const struct lnx_node *n;

	for (n = mr->regs.next; n != &mr->regs; n = n->next) {
		struct lnx_mr_reg *reg =
			lnx_container_of(n, struct lnx_mr_reg, link);

		if (reg->rail == rail)
			return reg;
	}
	return NULL;
}

/* Some registrations belong to an endpoint. */
static int to_endpoint(struct lnx_rail *rail, struct fid_mr *mr)
{
	int ret;

	if (!rail->mr_endpoint)
		return 0;
	ret = fi_mr_bind(mr, &rail->core_ep->fid, 0);
	if (!ret)
		ret = fi_mr_enable(mr);
	if (ret)
		fi_close(&mr->fid);
	return ret;
}

/* ---- keys ---- */

/* A core with short keys may have so many of those that are chosen. */
#define KEY_TRIES	64

/*
 * Our keys are random numbers, so that a peer that has one does not know the others.
 * They have a high bit that the core's own do not have: those of ofi_rxm are small, or
 * have bit 31.
 */
int lnx_rail_keys_init(struct lnx_rail *rail)
{
	size_t bytes = rail->info->domain_attr->mr_key_size;

	if (!bytes || bytes > sizeof(uint64_t))
		bytes = sizeof(uint64_t);
	rail->key_top = 1ULL << (8 * bytes - 2);
	/* Fail now, and not when memory is registered. */
	return lnx_host_random_id() ? 0 : -FI_EIO;
}

int lnx_rail_register(struct lnx_rail *rail, const void *buf, size_t len,
		      uint64_t access, struct fid_mr **mr)
{
	uint64_t key;
	unsigned i;
	int ret;

	for (i = 0; i < KEY_TRIES; i++) {
		ret = lnx_key_random(&key);
		if (lnx_unlikely(ret))
			break;
		key = rail->key_top | (key & (rail->key_top - 1));
		ret = fi_mr_reg(rail->domain, buf, len, access, 0, key, 0, mr,
				NULL);
		if (lnx_likely(ret != -FI_ENOKEY))
			break;
	}
	return ret ? ret : to_endpoint(rail, *mr);
}

/* Under the key of the application. */
static int register_as(const struct lnx_mr *mr, struct lnx_rail *rail,
		       struct fid_mr **out)
{
	int ret = fi_mr_reg(rail->domain, mr->base, mr->len, mr->access, 0,
			    mr->fid.key, 0, out, NULL);

	return ret ? ret : to_endpoint(rail, *out);
}

/* The same for memory that may be a device's: the core gets all that is known of it. */
static int register_hmem(const struct lnx_mr *mr, struct lnx_rail *rail,
			 struct fid_mr **out)
{
	struct iovec iov = { mr->base, mr->len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = mr->access,
		.requested_key = mr->fid.key, .iface = mr->iface,
		.device.reserved = mr->device,
	};
	int ret;

	ret = fi_mr_regattr(rail->domain, &attr, mr->flags, out);
	return ret ? ret : to_endpoint(rail, *out);
}

/* Where peers look for keys of that core, or NULL. */
static struct lnx_shm_registry *key_list(const struct lnx_rail *rail)
{
	const struct lnx_ep *ep = rail->ep;

	/* After fork() it is the other process's. */
	return rail->prov == LNX_PROV_SHM && ep->local.registry &&
	       ep->local.pid == getpid() ? ep->local.registry : NULL;
}

int lnx_mr_register(struct lnx_mr *mr, struct lnx_rail *rail,
		    struct lnx_mr_reg **out)
{
	struct lnx_domain *d = mr->domain;
	bool direct = rail->kind == LNX_RAIL_DIRECT ||
		      lnx_rail_kind_native(rail->kind);
	struct lnx_shm_registry *registry;
	struct lnx_mr_reg *reg;
	int ret;

	lnx_assert_held(&rail->ep->lock);
	lnx_lock(&d->mr_lock);
	reg = reg_of(mr, rail);
	lnx_unlock(&d->mr_lock);
	if (reg) {
		if (out)
			*out = reg;
		return 0;
	}
	reg = malloc(sizeof(*reg));
	if (!reg)
		return -FI_EAGAIN;
	/* With FI_HMEM all rails are native. */
	ret = lnx_unlikely(d->hmem) ? register_hmem(mr, rail, &reg->core) :
	      direct ? register_as(mr, rail, &reg->core) :
	      lnx_rail_register(rail, mr->base, mr->len, mr->access,
				&reg->core);
	if (ret) {
		LNX_WARN(FI_LOG_MR,
			 "rail %s: memory of %zu bytes (key 0x%llx) cannot be registered: %s\n",
			 rail->name, mr->len, (unsigned long long)mr->fid.key,
			 fi_strerror(-ret));
		free(reg);
		return ret;
	}
	reg->mr = mr;
	reg->rail = rail;
	reg->key = fi_mr_key(reg->core);
	reg->addr = rail->mr_virt ? (uint64_t)(uintptr_t)mr->base : 0;
	registry = key_list(rail);
	if (registry)
		lnx_shm_key_list(registry, mr->fid.key, mr->origin, mr->len,
				 mr->access);
	lnx_list_add_tail(&rail->regs, &reg->rail_link);
	lnx_lock(&d->mr_lock);
	lnx_list_add_tail(&mr->regs, &reg->link);
	lnx_unlock(&d->mr_lock);
	if (out)
		*out = reg;
	return 0;
}

void lnx_mr_descs(const struct lnx_rail *rail, void **desc, size_t n,
		  void **core)
{
	struct lnx_domain *d = rail->ep->domain;
	size_t i;

	lnx_lock(&d->mr_lock);
	for (i = 0; i < n; i++) {
		const struct lnx_mr *mr = desc[i];
		const struct lnx_mr_reg *reg = mr ? reg_of(mr, rail) : NULL;

		core[i] = reg ? fi_mr_desc(reg->core) : NULL;
	}
	lnx_unlock(&d->mr_lock);
}

/* Register mr with one endpoint's rails.  Its owner lock held. */
static int introduce(struct lnx_mr *mr, struct lnx_ep *ep)
{
	uint32_t i;
	int ret;

	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		/* With FI_HMEM messages need its descriptor too. */
		if (lnx_rail_kind_native(rail->kind) &&
		    !(rail->info->caps & (FI_RMA | FI_HMEM)))
			continue;
		if (rail->kind != LNX_RAIL_DIRECT &&
		    !lnx_rail_kind_native(rail->kind) && (!ep->conf->mr_eager ||
		     !(mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE))))
			continue;
		ret = lnx_mr_register(mr, rail, NULL);
		if (ret)
			return ret == -FI_EAGAIN ? -FI_ENOMEM : ret;
	}
	return 0;
}

static void reg_close(struct lnx_mr_reg *reg)
{
	struct lnx_domain *d = reg->mr->domain;
	struct lnx_shm_registry *registry = key_list(reg->rail);

	if (registry)
		lnx_shm_key_unlist(registry, reg->mr->fid.key);
	lnx_lock(&d->mr_lock);
	lnx_list_del(&reg->link);
	lnx_unlock(&d->mr_lock);
	lnx_list_del(&reg->rail_link);
	fi_close(&reg->core->fid);
	free(reg);
}

void lnx_mr_withdraw(struct lnx_mr *mr)
{
	/* eps_lock: no endpoint is added or removed meanwhile. */
	while (!lnx_list_empty(&mr->regs)) {
		struct lnx_mr_reg *reg = lnx_list_entry(mr->regs.next,
							struct lnx_mr_reg, link);
		struct lnx_ep *ep = reg->rail->ep;

		lnx_lock(&ep->lock);
		reg_close(reg);
		lnx_unlock(&ep->lock);
	}
}

void lnx_mr_quiesce(struct lnx_domain *d)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&d->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		lnx_lock(&ep->lock);
		lnx_unlock(&ep->lock);
	}
}

int lnx_mr_announce(struct lnx_mr *mr)
{
	struct lnx_node *n, *tmp;
	int ret = 0;

	lnx_list_foreach(&mr->domain->eps, n, tmp) {
		struct lnx_ep *ep = lnx_list_entry(n, struct lnx_ep,
						   bound.domain_link);

		lnx_lock(&ep->lock);
		ret = introduce(mr, ep);
		lnx_unlock(&ep->lock);
		if (ret)
			break;
	}
	return ret;
}

int lnx_mr_join(struct lnx_ep *ep)
{
	struct lnx_domain *d = ep->domain;
	struct lnx_mr *mr;
	uint32_t i;
	int ret = 0;

	lnx_assert_held(&ep->lock);
	for (i = 0; i <= d->mrs_mask && !ret; i++)
		for (mr = d->mrs[i]; mr && !ret; mr = mr->hash_next)
			ret = introduce(mr, ep);
	if (!ret)
		lnx_list_add_tail(&d->eps, &ep->bound.domain_link);
	if (!ret && lnx_mrs_counted(d))
		(void)ask_locals(ep);	/* a warning was given */
	return ret;
}

void lnx_mr_detach(struct lnx_ep *ep)
{
	struct lnx_node *n;
	uint32_t i;

	lnx_assert_held(&ep->lock);
	lnx_list_del(&ep->bound.domain_link);
	for (i = 0; i < ep->nrail; i++)
		while ((n = ep->rail[i]->regs.next) != &ep->rail[i]->regs)
			reg_close(lnx_list_entry(n, struct lnx_mr_reg,
						 rail_link));
}
