/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_eq(3): a queue of events of any length, in order.  Errors are in the same queue
 * and stop reading until fi_eq_readerr takes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

struct lnx_eq {
	struct fid_eq fid;
	struct lnx_fabric *fabric;
	struct lnx_lock lock;
	struct lnx_node events;		/* lnx_event.link */
	struct lnx_wait *wait;		/* NULL for FI_WAIT_NONE */
	bool writable;			/* FI_WRITE: the application may write */
	int refs;			/* objects bound; atomic */
};

struct lnx_event {
	struct lnx_node link;
	uint32_t event;
	bool err;
	size_t len;
	char data[];
};

static inline struct lnx_eq *eq_of(struct fid_eq *fid)
{
	return lnx_container_of(fid, struct lnx_eq, fid);
}

struct lnx_eq *lnx_eq_ref(struct fid *fid)
{
	struct lnx_eq *eq = lnx_container_of(fid, struct lnx_eq, fid.fid);

	__atomic_add_fetch(&eq->refs, 1, __ATOMIC_RELAXED);
	return eq;
}

void lnx_eq_unref(struct lnx_eq *eq)
{
	__atomic_sub_fetch(&eq->refs, 1, __ATOMIC_RELEASE);
}

static int eq_push(struct lnx_eq *eq, uint32_t event, bool err,
		   const void *buf, size_t len)
{
	struct lnx_event *e = malloc(sizeof(*e) + len);

	if (!e)
		return -FI_ENOMEM;
	e->event = event;
	e->err = err;
	e->len = len;
	if (len)
		memcpy(e->data, buf, len);
	lnx_lock(&eq->lock);
	lnx_list_add_tail(&eq->events, &e->link);
	lnx_unlock(&eq->lock);
	if (eq->wait)
		lnx_wait_signal(eq->wait);
	return 0;
}

int lnx_eq_write(struct lnx_eq *eq, uint32_t event, const void *buf,
		 size_t len)
{
	return eq_push(eq, event, false, buf, len);
}

int lnx_eq_write_err(struct lnx_eq *eq, const struct fi_eq_err_entry *err)
{
	return eq_push(eq, 0, true, err, sizeof(*err));
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf,
		       size_t len, uint64_t flags)
{
	struct lnx_eq *eq = eq_of(fid);
	struct lnx_event *e;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	lnx_lock(&eq->lock);
	if (lnx_list_empty(&eq->events)) {
		ret = -FI_EAGAIN;
		goto out;
	}
	e = lnx_list_entry(eq->events.next, struct lnx_event, link);
	if (e->err) {
		ret = -FI_EAVAIL;
		goto out;
	}
	if (event)
		*event = e->event;
	if (len < e->len) {
		ret = -FI_ETOOSMALL;
		goto out;
	}
	memcpy(buf, e->data, e->len);
	ret = (ssize_t)e->len;
	if (!(flags & FI_PEEK)) {
		lnx_list_del(&e->link);
		free(e);
	}
out:
	lnx_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			  uint64_t flags)
{
	struct lnx_eq *eq = eq_of(fid);
	/* Version 1.5 made the structure longer. */
	bool old = FI_VERSION_LT(eq->fabric->fid.api_version,
				 FI_VERSION(1, 5));
	size_t size = old ? offsetof(struct fi_eq_err_entry, err_data_size) :
			    sizeof(*buf);
	/* There is no data: a caller's buffer stays the caller's. */
	void *data = !old && buf->err_data_size ? buf->err_data : NULL;
	struct lnx_event *e;
	ssize_t ret = -FI_EAGAIN;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	lnx_lock(&eq->lock);
	if (lnx_list_empty(&eq->events))
		goto out;
	e = lnx_list_entry(eq->events.next, struct lnx_event, link);
	if (!e->err)
		goto out;
	memcpy(buf, e->data, size);
	buf->err_data = data;
	if (!old)
		buf->err_data_size = 0;
	ret = (ssize_t)size;
	if (!(flags & FI_PEEK)) {
		lnx_list_del(&e->link);
		free(e);
	}
out:
	lnx_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	struct lnx_eq *eq = eq_of(fid);
	int ret;

	if (!eq->writable || flags)
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	ret = eq_push(eq, event, false, buf, len);
	return ret ? ret : (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	struct lnx_eq *eq = eq_of(fid);
	uint64_t end;

	if (!eq->wait)
		return -FI_EINVAL;
	end = timeout < 0 ? UINT64_MAX :
	      lnx_clock_ns() + (uint64_t)timeout * LNX_NS_PER_MS;
	for (;;) {
		ssize_t ret;
		uint64_t now;
		int ms = -1;

		lnx_wait_arm(eq->wait);
		ret = eq_read(fid, event, buf, len, flags);
		if (ret != -FI_EAGAIN)
			return ret;
		now = lnx_clock_ns();
		if (now >= end)
			return -FI_EAGAIN;
		if (timeout >= 0)
			ms = (int)lnx_ms_up(end - now);
		lnx_wait_block(eq->wait, ms);
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)err_data;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

int lnx_eq_trywait(struct fid *fid)
{
	struct lnx_eq *eq = lnx_container_of(fid, struct lnx_eq, fid.fid);
	bool empty;

	if (!eq->wait)
		return -FI_EINVAL;
	lnx_wait_arm(eq->wait);
	lnx_lock(&eq->lock);
	empty = lnx_list_empty(&eq->events);
	lnx_unlock(&eq->lock);
	return empty ? 0 : -FI_EAGAIN;
}

static int eq_close(struct fid *fid)
{
	struct lnx_eq *eq = lnx_container_of(fid, struct lnx_eq, fid.fid);
	struct lnx_node *n;

	if (__atomic_load_n(&eq->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	while ((n = lnx_list_pop(&eq->events)))
		free(lnx_list_entry(n, struct lnx_event, link));
	lnx_wait_close(eq->wait);
	lnx_lock_fini(&eq->lock);
	__atomic_sub_fetch(&eq->fabric->refs, 1, __ATOMIC_RELEASE);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct lnx_eq *eq = lnx_container_of(fid, struct lnx_eq, fid.fid);

	return lnx_wait_control(eq->wait, command, arg);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = lnx_nosys_bind,
	.control = eq_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int lnx_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **out, void *context)
{
	struct lnx_eq *eq;
	int ret;

	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	ret = lnx_wait_open(attr->wait_obj, &eq->wait);
	if (ret) {
		free(eq);
		return ret;
	}
	eq->writable = (attr->flags & FI_WRITE) != 0;
	eq->fabric = lnx_container_of(fabric, struct lnx_fabric, fid);
	lnx_lock_init(&eq->lock, true);
	lnx_list_init(&eq->events);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	__atomic_add_fetch(&eq->fabric->refs, 1, __ATOMIC_RELAXED);
	*out = &eq->fid;
	return 0;
}
