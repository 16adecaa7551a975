/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cntr(3): what obj/cntr.h counts is read, changed and waited for here.  Reading and
 * waiting make the endpoints progress that are bound to the counter.
 */
#include <stdlib.h>

#include "api/api.h"
#include "comp/rails.h"

static inline struct lnx_cntr *cntr_of(struct fid_cntr *fid)
{
	return lnx_container_of(fid, struct lnx_cntr, fid);
}

static inline uint64_t get(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_ACQUIRE);
}

static inline void set(uint64_t *v, uint64_t to)
{
	__atomic_store_n(v, to, __ATOMIC_RELAXED);
}

/* ---- progress ---- */

static inline bool of_memory(const struct lnx_cntr *cntr)
{
	return __atomic_load_n(&cntr->nmr, __ATOMIC_RELAXED) != 0;
}

void lnx_cntr_progress(struct lnx_cntr *cntr)
{
	if (lnx_unlikely(of_memory(cntr)))
		lnx_domain_progress(cntr->domain);
	else
		lnx_eps_progress(&cntr->eps, cntr->threads);
}

static uint64_t look(struct lnx_cntr *cntr, bool count_shm)
{
	return lnx_unlikely(of_memory(cntr)) ?
	       lnx_domain_look(cntr->domain, count_shm) :
	       lnx_eps_look(&cntr->eps, count_shm);
}

/* The value that was read had not changed since the last read. */
static void nothing_new(struct lnx_cntr *cntr)
{
	bool idle;

	lnx_lock(&cntr->lock);
	idle = !--cntr->idle.left;
	lnx_unlock(&cntr->lock);
	if (lnx_unlikely(idle))
		lnx_idle(&cntr->idle, &cntr->lock, &cntr->eps,
			 (uint32_t)lnx_cntr_ended(cntr));
}

/* ---- values ---- */

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct lnx_cntr *cntr = cntr_of(fid);
	uint64_t ok;

	lnx_cntr_progress(cntr);
	ok = get(&cntr->ok);
	if (ok == get(&cntr->ok_read))
		nothing_new(cntr);
	set(&cntr->ok_read, ok);
	return ok + get(&cntr->ok_base);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct lnx_cntr *cntr = cntr_of(fid);
	uint64_t err;

	lnx_cntr_progress(cntr);
	err = get(&cntr->err);
	set(&cntr->err_read, err);
	return err + get(&cntr->err_base);
}

/* The application changed a value, and so knows it. */
static void changed(struct lnx_cntr *cntr, const uint64_t *events,
		    uint64_t *seen, uint64_t *known)
{
	uint64_t n = get(events);

	set(seen, n);
	set(known, n);
	if (cntr->wait)
		lnx_wait_signal(cntr->wait);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct lnx_cntr *cntr = cntr_of(fid);

	__atomic_add_fetch(&cntr->ok_base, value, __ATOMIC_SEQ_CST);
	changed(cntr, &cntr->ok, &cntr->ok_read, &cntr->ok_set);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct lnx_cntr *cntr = cntr_of(fid);

	__atomic_add_fetch(&cntr->err_base, value, __ATOMIC_SEQ_CST);
	changed(cntr, &cntr->err, &cntr->err_read, &cntr->err_set);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct lnx_cntr *cntr = cntr_of(fid);

	__atomic_store_n(&cntr->ok_base, value - get(&cntr->ok),
			 __ATOMIC_SEQ_CST);
	changed(cntr, &cntr->ok, &cntr->ok_read, &cntr->ok_set);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct lnx_cntr *cntr = cntr_of(fid);

	__atomic_store_n(&cntr->err_base, value - get(&cntr->err),
			 __ATOMIC_SEQ_CST);
	changed(cntr, &cntr->err, &cntr->err_read, &cntr->err_set);
	return 0;
}

/* ---- waiting ---- */

struct goal {
	struct lnx_cntr *cntr;
	uint64_t threshold;
	uint64_t err;			/* error value when the call began */
};

/*
 * 1: go on waiting.  An error ends every wait during which it comes, and at least one
 * wait: an error that was not read is reported to the next wait that finds nothing.
 */
static int reached(const struct goal *g)
{
	struct lnx_cntr *cntr = g->cntr;
	uint64_t err;

	if (get(&cntr->ok) + get(&cntr->ok_base) >= g->threshold)
		return 0;
	err = get(&cntr->err);
	if (err != get(&cntr->err_read) ||
	    err + get(&cntr->err_base) != g->err) {
		set(&cntr->err_read, err);
		return -FI_EAVAIL;
	}
	return 1;
}

static bool wait_look(void *obj, uint64_t *until_ns)
{
	const struct goal *g = obj;
	const struct lnx_cntr *cntr = g->cntr;

	*until_ns = look(g->cntr, true);
	return get(&cntr->ok) + get(&cntr->ok_base) >= g->threshold ||
	       get(&cntr->err) != get(&cntr->err_read) ||
	       get(&cntr->err) + get(&cntr->err_base) != g->err;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct lnx_cntr *cntr = cntr_of(fid);
	struct goal g = {
		.cntr = cntr, .threshold = threshold,
		.err = get(&cntr->err) + get(&cntr->err_base),
	};
	struct lnx_nap nap;
	int ret;

	if (!cntr->wait && !cntr->yield)
		return -FI_EINVAL;
	lnx_comp_nap_init(&nap, timeout);
	for (;;) {
		lnx_cntr_progress(cntr);
		ret = reached(&g);
		if (ret <= 0)
			break;
		if (!lnx_comp_nap(&nap, cntr->wait, wait_look, &g)) {
			ret = -FI_ETIMEDOUT;
			break;
		}
	}
	/* We may have consumed another sleeper's signal. */
	if (nap.slept)
		lnx_wait_wake(cntr->wait);
	return ret;
}

int lnx_cntr_trywait(struct fid *fid)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);
	uint64_t err, until_ns;

	if (!cntr->wait)
		return -FI_EINVAL;
	lnx_wait_arm(cntr->wait);
	until_ns = look(cntr, false);
	if (!until_ns)
		return -FI_EAGAIN;
	/* Report an error once only: not every application reads it. */
	err = get(&cntr->err);
	if (err != get(&cntr->err_read)) {
		set(&cntr->err_read, err);
		return -FI_EAGAIN;
	}
	if (get(&cntr->ok) != get(&cntr->ok_read))
		return -FI_EAGAIN;
	return lnx_wait_until(cntr->wait, until_ns) ? -FI_EAGAIN : 0;
}

/* ---- for poll sets ---- */

bool lnx_cntr_changed(struct lnx_cntr *cntr, uint64_t *ok, uint64_t *err)
{
	uint64_t o = get(&cntr->ok), e = get(&cntr->err);
	bool news = o > LNX_MAX(*ok, get(&cntr->ok_set)) ||
		    e > LNX_MAX(*err, get(&cntr->err_set));

	*ok = o;
	*err = e;
	return news;
}

/* ---- opening, binding, closing ---- */

static const uint64_t kind_flag[LNX_CNTR_KINDS] = {
	[LNX_CNTR_RECV] = FI_RECV,
	[LNX_CNTR_SEND] = FI_SEND,
	[LNX_CNTR_WRITE] = FI_WRITE,
	[LNX_CNTR_READ] = FI_READ,
	[LNX_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
	[LNX_CNTR_REMOTE_READ] = FI_REMOTE_READ,
};

/* Let ep count for it: 0, or an error. */
static int take(struct lnx_ep *ep, struct lnx_cntr *cntr, uint64_t flags)
{
	uint64_t known = 0;
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++)
		known |= kind_flag[i];
	if (!flags || (flags & ~known))
		return -FI_EBADFLAGS;
	if (cntr->domain != ep->domain)
		return -FI_EDOMAIN;
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if ((flags & kind_flag[i]) && ep->cntr[i])
			return -FI_EBUSY;
	for (i = 0; i < LNX_CNTR_KINDS; i++) {
		if (!(flags & kind_flag[i]))
			continue;
		ep->cntr[i] = cntr;
		__atomic_add_fetch(&cntr->refs, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static void take_back(struct lnx_ep *ep, struct lnx_cntr *cntr, uint64_t flags)
{
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++) {
		if (!(flags & kind_flag[i]))
			continue;
		ep->cntr[i] = NULL;
		if (ep->shm)
			ep->shm->cntr[i].cntr = NULL;
		__atomic_sub_fetch(&cntr->refs, 1, __ATOMIC_RELAXED);
	}
}

/* Reading it makes ep progress.  Takes eps->lock: ep->lock is not held. */
static void join(struct lnx_ep *ep, struct lnx_cntr *cntr, uint64_t flags)
{
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (flags & kind_flag[i])
			lnx_eps_add(&cntr->eps, &ep->bound.cntr_link[i], ep);
}

int lnx_cntr_bind(struct lnx_ep *ep, struct fid *fid, uint64_t flags)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);
	int ret = take(ep, cntr, flags);

	if (!ret)
		join(ep, cntr, flags);
	return ret;
}

/* Has anything been counted that a counter would have missed?  What cores do here for
 * peers is not seen. */
static bool had_traffic(const struct lnx_ep *ep)
{
	const struct lnx_stats *s = &ep->stats;

	return s->direct_sends || s->direct_rma || s->send_count ||
	       s->recv_count || s->writes || s->reads || s->atomics ||
	       s->matched || s->unexpected;
}

int lnx_cntr_bind_late(struct lnx_ep *ep, struct fid *fid, uint64_t flags)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);
	int ret;

	lnx_lock(&ep->lock);
	if (had_traffic(ep)) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_ep_bind: a counter cannot be bound any more: the endpoint has communicated\n");
		ret = -FI_EOPBADSTATE;
	} else if (ep->native) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_ep_bind: with FI_LNX_USE_SRQ=0 counters are bound before fi_enable\n");
		ret = -FI_EOPBADSTATE;
	} else {
		/* A helper thread counts too. */
		if (ep->want_wait)
			cntr->threads = true;
		ret = take(ep, cntr, flags);
	}
	if (!ret) {
		ret = lnx_rails_lend(ep);
		if (!ret && cntr->wait)
			ret = lnx_rails_wake(ep, cntr->wait);
		if (ret)
			take_back(ep, cntr, flags);
	}
	lnx_unlock(&ep->lock);
	if (!ret)
		join(ep, cntr, flags);
	return ret;
}

void lnx_cntr_unbind(struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (ep->cntr[i])
			lnx_eps_del(&ep->cntr[i]->eps, &ep->bound.cntr_link[i]);
}

void lnx_cntr_release(struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++) {
		struct lnx_cntr *cntr = ep->cntr[i];

		ep->cntr[i] = NULL;
		if (cntr)
			__atomic_sub_fetch(&cntr->refs, 1, __ATOMIC_RELEASE);
	}
}

static int cntr_close(struct fid *fid)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);

	if (__atomic_load_n(&cntr->refs, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	lnx_wait_close(cntr->wait);
	lnx_eps_fini(&cntr->eps);
	lnx_lock_fini(&cntr->lock);
	__atomic_sub_fetch(&cntr->domain->refs, 1, __ATOMIC_RELEASE);
	free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);

	switch (command) {
	case FI_GETOPSFLAG:
		*(uint64_t *)arg = 0;	/* it has none yet */
		return 0;
	case FI_SETOPSFLAG:
		return *(uint64_t *)arg ? -FI_EBADFLAGS : 0;
	case FI_GETWAITOBJ:
		if (cntr->yield) {
			*(enum fi_wait_obj *)arg = FI_WAIT_YIELD;
			return 0;
		}
		break;
	}
	return lnx_wait_control(cntr->wait, command, arg);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = lnx_nosys_bind,
	.control = cntr_control,
	.ops_open = lnx_nosys_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int lnx_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	enum fi_wait_obj obj = attr ? attr->wait_obj : FI_WAIT_NONE;
	struct lnx_cntr *cntr;
	int ret;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	if (attr && attr->events != FI_CNTR_EVENTS_COMP) {
		LNX_WARN(FI_LOG_CNTR,
			 "fi_cntr_open: events %d are not counted: FI_CNTR_EVENTS_COMP (operations) are, bytes are not\n",
			 (int)attr->events);
		return -FI_ENOSYS;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	if (obj == FI_WAIT_YIELD) {
		cntr->yield = true;
		obj = FI_WAIT_NONE;
	}
	ret = lnx_wait_open(obj, &cntr->wait);
	if (ret) {
		free(cntr);
		return ret;
	}
	cntr->domain = d;
	cntr->threads = d->threads || cntr->wait;
	lnx_lock_init(&cntr->lock, cntr->threads);
	lnx_idle_init(&cntr->idle);
	lnx_eps_init(&cntr->eps);
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fid_ops;
	cntr->fid.ops = &cntr_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &cntr->fid;
	return 0;
}
