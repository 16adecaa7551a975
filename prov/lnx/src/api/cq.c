/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cq(3): reading the ring that obj/cq.h writes, and waiting for entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define RING_MIN	1024u
#define NULL_RING	16u

static inline struct lnx_cq *cq_of(struct fid_cq *fid)
{
	return lnx_container_of(fid, struct lnx_cq, fid);
}

/* ---- reading ---- */

static void get_bare(const struct lnx_cqe *e, struct fi_cq_err_entry *out)
{
	out->op_context = e->context;
	out->flags = e->flags;
	out->len = e->len;
	out->buf = e->buf;
	out->data = e->data;
	out->tag = e->tag;
	out->olen = e->src;
	out->err = out->prov_errno = (int)((uintptr_t)e->err >> 1);
}

static const size_t entry_size[] = {
	[FI_CQ_FORMAT_UNSPEC] = 0,
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* Each format is a prefix of the next, and lnx_cqe begins with all of them. */
static_assert(sizeof(struct fi_cq_tagged_entry) ==
	      offsetof(struct lnx_cqe, src) &&
	      offsetof(struct fi_cq_tagged_entry, tag) ==
	      offsetof(struct lnx_cqe, tag) &&
	      offsetof(struct fi_cq_data_entry, data) ==
	      offsetof(struct lnx_cqe, data) &&
	      offsetof(struct fi_cq_msg_entry, len) ==
	      offsetof(struct lnx_cqe, len), "entries are copied as they are");

/*
 * A program may find an entry in every read, if its operations complete at once, for
 * example on its own endpoint's memory.  Its peers would then wait for ever: so
 * progress is also due after so many entries.  But not with half a ring of them: then
 * the program should catch up, instead of the ring growing.
 */
#define PROGRESS_ENTRIES	16u

/* due: NULL after progress; else set when progress is due. */
LNX_INLINE ssize_t cq_take(struct lnx_cq *cq, char *buf, size_t count,
			   fi_addr_t *src, bool *due)
{
	size_t size = cq->entry_size;
	uint32_t head, tail;
	ssize_t n = 0;

	lnx_lock(&cq->lock);
	head = cq->head;
	tail = cq->tail;
	for (; head != tail && (size_t)n < count; head++) {
		const struct lnx_cqe *e = &cq->ring[head & cq->mask];

		if (lnx_unlikely(e->err != NULL)) {
			if (!n)
				n = -FI_EAVAIL;
			break;
		}
		if (lnx_likely(cq->format == FI_CQ_FORMAT_TAGGED))
			memcpy(buf, e, sizeof(struct fi_cq_tagged_entry));
		else
			memcpy(buf, e, size);
		buf += size;
		if (src)
			src[n] = e->src;
		n++;
	}
	if (due && n > 0) {
		cq->unasked += (uint32_t)n;
		*due = cq->unasked >= PROGRESS_ENTRIES &&
		       tail - head <= cq->mask / 2;
		if (*due)
			cq->unasked = 0;
	}
	if (lnx_unlikely(!n)) {
		bool idle = !due && !--cq->idle.left;

		lnx_unlock(&cq->lock);
		if (lnx_unlikely(idle))
			lnx_idle(&cq->idle, &cq->lock, &cq->eps,
				 lnx_cq_written(cq));
		return -FI_EAGAIN;
	}
	if (lnx_likely(head == tail))
		lnx_cq_restart(cq);
	else
		lnx_cq_move(&cq->head, head);
	lnx_unlock(&cq->lock);
	return n;
}

LNX_HOT
static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	struct lnx_cq *cq = cq_of(fid);
	bool due = false;
	ssize_t n;

	/* Only a hint: cq_take checks again. */
	if (lnx_cq_empty(cq) || !count) {
		lnx_eps_progress(&cq->eps, cq->lock.on);
		return cq_take(cq, buf, count, src, NULL);
	}
	n = cq_take(cq, buf, count, src, &due);
	if (lnx_unlikely(due))
		lnx_eps_progress(&cq->eps, cq->lock.on);
	return n;
}

LNX_HOT
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/*
 * Size of the caller's structure: versions 1.5 and 1.20 made it longer.  Of the members
 * of newer callers only those that we know are written.
 */
static size_t err_entry_size(const struct lnx_cq *cq)
{
	uint32_t api = cq->domain->fabric->fid.api_version;

	if (FI_VERSION_LT(api, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(api, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct lnx_cq *cq = cq_of(fid);
	struct fi_cq_err_entry out = { .src_addr = FI_ADDR_NOTAVAIL };
	size_t size = err_entry_size(cq);
	struct lnx_cqe *e;

	if (lnx_unlikely(flags))
		return -FI_EBADFLAGS;
	lnx_lock(&cq->lock);
	e = &cq->ring[cq->head & cq->mask];
	if (cq->head != cq->tail && e->err) {
		if (lnx_cq_err_bare(e->err)) {
			get_bare(e, &out);
		} else {
			out = *e->err;
			free(e->err);
		}
		/*
		 * Nothing can follow what was lost: the overrun is reported for ever.
		 */
		if (!cq->overrun || out.err != FI_EOVERRUN) {
			e->err = NULL;
			lnx_cq_move(&cq->head, cq->head + 1);
		}
	} else {
		lnx_unlock(&cq->lock);
		return -FI_EAGAIN;
	}
	lnx_unlock(&cq->lock);
	/*
	 * There is no data.  A caller's buffer stays the caller's; without one, as
	 * before 1.5, the pointer would be to a buffer of ours.
	 */
	out.err_data = size > offsetof(struct fi_cq_err_entry, err_data_size) &&
		       buf->err_data_size ? buf->err_data : NULL;
	out.err_data_size = 0;
	memcpy(buf, &out, size);
	return 1;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)err_data;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

/* ---- waiting ---- */

static bool cq_look(void *obj, uint64_t *until_ns)
{
	struct lnx_cq *cq = obj;

	*until_ns = lnx_eps_look(&cq->eps, true);
	return !lnx_cq_empty(cq) || lnx_wait_kicked(cq->wait);
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct lnx_cq *cq = cq_of(fid);
	struct lnx_nap nap;

	(void)cond;
	if (!cq->wait)
		return -FI_EINVAL;
	lnx_comp_nap_init(&nap, timeout);
	for (;;) {
		ssize_t n = cq_readfrom(fid, buf, count, src);

		if (n != -FI_EAGAIN) {
			/* We may have consumed another sleeper's signal. */
			if (!lnx_cq_empty(cq))
				lnx_wait_wake(cq->wait);
			return n;
		}
		if (lnx_wait_signalled(cq->wait))
			return -FI_EAGAIN;	/* fi_cq_signal */
		if (!lnx_comp_nap(&nap, cq->wait, cq_look, cq))
			return -FI_EAGAIN;
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct lnx_cq *cq = cq_of(fid);

	if (!cq->wait)
		return -FI_EINVAL;
	lnx_wait_kick(cq->wait);
	return 0;
}

/* May the application block on the descriptor?  0: yes; -FI_EAGAIN: read first. */
static int cq_trywait(struct lnx_cq *cq)
{
	uint64_t until_ns;

	if (!cq->wait)
		return -FI_EINVAL;
	lnx_wait_arm(cq->wait);
	/* The helper thread polls shm while the application sleeps. */
	until_ns = lnx_eps_look(&cq->eps, false);
	if (!until_ns || !lnx_cq_empty(cq))
		return -FI_EAGAIN;
	return lnx_wait_until(cq->wait, until_ns) ? -FI_EAGAIN : 0;
}

int lnx_cq_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, ret;

	(void)fabric;
	for (i = 0; i < count; i++) {
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			ret = cq_trywait(lnx_container_of(fids[i],
							  struct lnx_cq,
							  fid.fid));
			break;
		case FI_CLASS_EQ:
			ret = lnx_eq_trywait(fids[i]);
			break;
		case FI_CLASS_CNTR:
			ret = lnx_cntr_trywait(fids[i]);
			break;
		default:
			return -FI_EINVAL;
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- opening and closing ---- */

void lnx_cq_attach(struct lnx_cq *cq, struct lnx_ep_link *link,
		   struct lnx_ep *ep)
{
	lnx_eps_add(&cq->eps, link, ep);
	__atomic_add_fetch(&cq->refs, 1, __ATOMIC_RELAXED);
}

void lnx_cq_detach(struct lnx_cq *cq, struct lnx_ep_link *link)
{
	lnx_eps_del(&cq->eps, link);
	__atomic_sub_fetch(&cq->refs, 1, __ATOMIC_RELEASE);
}

static int cq_close(struct fid *fid)
{
	struct lnx_cq *cq = lnx_container_of(fid, struct lnx_cq, fid.fid);

	if (__atomic_load_n(&cq->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	lnx_cq_drop(cq);
	lnx_cq_free_ring(cq);
	lnx_wait_close(cq->wait);
	lnx_eps_fini(&cq->eps);
	lnx_lock_fini(&cq->lock);
	__atomic_sub_fetch(&cq->domain->refs, 1, __ATOMIC_RELEASE);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct lnx_cq *cq = lnx_container_of(fid, struct lnx_cq, fid.fid);

	return lnx_wait_control(cq->wait, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = lnx_nosys_bind,
	.control = cq_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* A CQ with a ring of n entries, a power of two. */
static struct lnx_cq *cq_new(uint32_t n)
{
	struct lnx_cq *cq = aligned_alloc(LNX_LINE, sizeof(*cq) +
						    n * sizeof(*cq->own));

	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	cq->ring = cq->own;
	cq->mask = n - 1;
	return cq;
}

int lnx_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	uint32_t n = RING_MIN;
	struct lnx_cq *cq;
	int ret;

	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	while (n < attr->size && n < LNX_CQ_MAX)
		n *= 2;
	cq = cq_new(n);
	if (!cq)
		return -FI_ENOMEM;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ?
		     FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->entry_size = (uint32_t)entry_size[cq->format];
	ret = lnx_wait_open(attr->wait_obj, &cq->wait);
	if (ret) {
		free(cq);
		return ret;
	}
	attr->format = cq->format;
	cq->domain = d;
	lnx_lock_init(&cq->lock, d->threads || cq->wait != NULL);
	lnx_eps_init(&cq->eps);
	lnx_idle_init(&cq->idle);
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &cq->fid;
	return 0;
}

/* ---- a queue that is never read ---- */

int lnx_cq_null_open(struct lnx_cq **out)
{
	struct lnx_cq *cq = cq_new(NULL_RING);

	if (!cq)
		return -FI_ENOMEM;
	cq->is_null = true;
	lnx_lock_init(&cq->lock, false);
	*out = cq;
	return 0;
}

void lnx_cq_null_close(struct lnx_cq *cq)
{
	if (!cq)
		return;
	lnx_cq_drop(cq);
	lnx_cq_free_ring(cq);
	lnx_lock_fini(&cq->lock);
	free(cq);
}
