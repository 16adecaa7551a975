/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_poll(3): completion queues and counters that are polled together.  A set keeps its
 * members open; closing it releases them.
 */
#include <stdlib.h>

#include "api/api.h"

struct member {
	struct lnx_node link;		/* lnx_poll.members */
	struct fid *fid;
	uint64_t ok;			/* of a counter, when reported last */
	uint64_t err;
};

struct lnx_poll {
	struct fid_poll fid;
	struct lnx_domain *domain;
	pthread_mutex_t lock;
	struct lnx_node members;	/* those reported last are at the end */
};

static inline struct lnx_poll *poll_of(struct fid_poll *fid)
{
	return lnx_container_of(fid, struct lnx_poll, fid);
}

static inline struct lnx_cq *cq_in(const struct member *m)
{
	return lnx_container_of(m->fid, struct lnx_cq, fid.fid);
}

static inline struct lnx_cntr *cntr_in(const struct member *m)
{
	return lnx_container_of(m->fid, struct lnx_cntr, fid.fid);
}

static bool cq_has(const struct lnx_cq *cq)
{
	return !lnx_cq_empty(cq);
}

static void progress(const struct member *m)
{
	if (m->fid->fclass == FI_CLASS_CNTR)
		lnx_cntr_progress(cntr_in(m));
	else if (!cq_has(cq_in(m)))
		lnx_eps_progress(&cq_in(m)->eps, cq_in(m)->lock.on);
}

static bool has_news(struct member *m)
{
	return m->fid->fclass == FI_CLASS_CNTR ?
	       lnx_cntr_changed(cntr_in(m), &m->ok, &m->err) : cq_has(cq_in(m));
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct lnx_poll *set = poll_of(fid);
	struct lnx_node *n, *tmp, reported;
	int found = 0;

	if (count < 0 || (count && !context))
		return -FI_EINVAL;
	lnx_list_init(&reported);
	pthread_mutex_lock(&set->lock);
	/* All of them first: members may share endpoints. */
	lnx_list_foreach(&set->members, n, tmp)
		progress(lnx_list_entry(n, struct member, link));
	lnx_list_foreach(&set->members, n, tmp) {
		struct member *m = lnx_list_entry(n, struct member, link);

		if (found == count)
			break;
		if (!has_news(m))
			continue;
		context[found++] = m->fid->context;
		lnx_list_del(&m->link);
		lnx_list_add_tail(&reported, &m->link);
	}
	/* If the array is too small, the others come first next time. */
	while ((n = lnx_list_pop(&reported)))
		lnx_list_add_tail(&set->members, n);
	pthread_mutex_unlock(&set->lock);
	return found;
}

/* ---- members ---- */

static struct member *find(struct lnx_poll *set, const struct fid *fid)
{
	struct lnx_node *n, *tmp;

	lnx_list_foreach(&set->members, n, tmp) {
		struct member *m = lnx_list_entry(n, struct member, link);

		if (m->fid == fid)
			return m;
	}
	return NULL;
}

static int *refs_of(const struct member *m)
{
	return m->fid->fclass == FI_CLASS_CNTR ? &cntr_in(m)->refs :
						 &cq_in(m)->refs;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct lnx_poll *set = poll_of(fid);
	struct lnx_domain *domain;
	struct member *m;
	int ret = 0;

	if (flags)
		return -FI_EBADFLAGS;
	switch (event_fid->fclass) {
	case FI_CLASS_CQ:
		domain = lnx_container_of(event_fid, struct lnx_cq,
					  fid.fid)->domain;
		break;
	case FI_CLASS_CNTR:
		domain = lnx_container_of(event_fid, struct lnx_cntr,
					  fid.fid)->domain;
		break;
	default:
		LNX_WARN(FI_LOG_DOMAIN,
			 "fi_poll_add: an object of class %zu cannot be polled; CQs and counters can\n",
			 event_fid->fclass);
		return -FI_EINVAL;
	}
	if (domain != set->domain)
		return -FI_EDOMAIN;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->fid = event_fid;
	pthread_mutex_lock(&set->lock);
	if (find(set, event_fid)) {
		ret = -FI_EALREADY;
	} else {
		__atomic_add_fetch(refs_of(m), 1, __ATOMIC_RELAXED);
		lnx_list_add_tail(&set->members, &m->link);
	}
	pthread_mutex_unlock(&set->lock);
	if (ret)
		free(m);
	return ret;
}

static void let_go(struct member *m)
{
	__atomic_sub_fetch(refs_of(m), 1, __ATOMIC_RELEASE);
	free(m);
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct lnx_poll *set = poll_of(fid);
	struct member *m;

	if (flags)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&set->lock);
	m = find(set, event_fid);
	if (m)
		lnx_list_del(&m->link);
	pthread_mutex_unlock(&set->lock);
	if (!m)
		return -FI_EINVAL;
	let_go(m);
	return 0;
}

/* ---- opening and closing ---- */

static int poll_close(struct fid *fid)
{
	struct lnx_poll *set = lnx_container_of(fid, struct lnx_poll, fid.fid);
	struct lnx_node *n;

	while ((n = lnx_list_pop(&set->members)))
		let_go(lnx_list_entry(n, struct member, link));
	pthread_mutex_destroy(&set->lock);
	__atomic_sub_fetch(&set->domain->refs, 1, __ATOMIC_RELEASE);
	free(set);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = lnx_nosys_bind,
	.control = lnx_nosys_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int lnx_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **out)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	struct lnx_poll *set;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->domain = d;
	pthread_mutex_init(&set->lock, NULL);
	lnx_list_init(&set->members);
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &poll_fid_ops;
	set->fid.ops = &poll_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &set->fid;
	return 0;
}
