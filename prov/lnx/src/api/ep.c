/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_endpoint(3): opening, binding, enabling and closing. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/caps.h"
#include "core/open.h"
#include "prov.h"
#include "rx/rx.h"
#include "tx/tx.h"

#define MIN_MULTI_RECV_DEFAULT	64
#define SLAB_RXE		256
#define SLAB_BUF		64

static inline struct lnx_ep *ep_of_fid(struct fid *fid)
{
	return lnx_container_of(fid, struct lnx_ep, fid.fid);
}

/* ---- options, cancel ---- */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	return lnx_rx_cancel(ep_of_fid(fid), context);
}

static int put_opt(void *val, size_t *len, const void *src, size_t size)
{
	size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(val, src, size);
	return 0;
}

static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct lnx_ep *ep = ep_of_fid(fid);
	size_t none = 0;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		return put_opt(val, len, &ep->min_multi_recv,
			       sizeof(ep->min_multi_recv));
	case FI_OPT_CM_DATA_SIZE:
		return put_opt(val, len, &none, sizeof(none));
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int ep_setopt(fid_t fid, int level, int name, const void *val,
		     size_t len)
{
	struct lnx_ep *ep = ep_of_fid(fid);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		if (len != sizeof(size_t))
			return -FI_EINVAL;
		lnx_lock(&ep->lock);
		memcpy(&ep->min_multi_recv, val, sizeof(size_t));
		lnx_unlock(&ep->lock);
		return 0;
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int ep_no_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

static int ep_no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr,
			struct fid_ep **rx, void *context)
{
	(void)ep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

static ssize_t ep_no_size(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_no_ctx,
	.rx_ctx = ep_no_rx_ctx,
	.rx_size_left = ep_no_size,
	.tx_size_left = ep_no_size,
};

/* ---- names ---- */

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct lnx_ep *ep = ep_of_fid(fid);
	size_t room = *addrlen;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	*addrlen = LNX_ADDR_BYTES;
	if (room < LNX_ADDR_BYTES) {
		if (room && addr)
			memcpy(addr, ep->addr, room);
		return -FI_ETOOSMALL;
	}
	memcpy(addr, ep->addr, LNX_ADDR_BYTES);
	return 0;
}

/* Take over the identity and core addresses of a blob, before enabling. */
static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct lnx_ep *ep = ep_of_fid(fid);
	struct lnx_addr a;
	char why[160];

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (lnx_addr_unpack(&a, addr, addrlen, why, sizeof(why))) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_setname: not an lnx address: %s\n", why);
		return -FI_EINVAL;
	}
	if (!ep->want) {
		ep->want = malloc(sizeof(*ep->want));
		if (!ep->want)
			return -FI_ENOMEM;
	}
	*ep->want = a;
	ep->eid = a.eid;
	return 0;
}

static int ep_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static int ep_connect(struct fid_ep *ep, const void *addr, const void *param,
		      size_t paramlen)
{
	(void)ep, (void)addr, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int ep_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep, (void)param, (void)paramlen;
	return -FI_ENOSYS;
}

static int ep_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int ep_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		   struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.accept = ep_accept,
	.shutdown = ep_shutdown,
	.join = ep_join,
};

/* ---- enable ---- */

/* The core address that fi_setname asked a rail to have, or NULL. */
static const struct lnx_addr_rail *wanted(const struct lnx_ep *ep,
					  const struct lnx_rail_spec *spec)
{
	unsigned i;

	for (i = 0; ep->want && i < ep->want->nrail; i++)
		if (ep->want->rail[i].prov == spec->prov_id &&
		    ep->want->rail[i].group == spec->group)
			return &ep->want->rail[i];
	return NULL;
}

static int open_rails(struct lnx_ep *ep)
{
	const struct lnx_link_rails *lr = ep->domain->rails;
	struct lnx_rail_owner owner = {
		.direct_cq_ops = &lnx_direct_cq_ops,
		.framed_cq_ops = &lnx_framed_cq_ops,
		.direct_srx_ops = &lnx_direct_srx_ops,
		.framed_srx_ops = &lnx_framed_srx_ops,
		.fid_ops = &lnx_peer_fid_ops,
		.wait = ep->want_wait,
	};
	unsigned i;

	for (i = 0; i < lr->nrail; i++) {
		const struct lnx_addr_rail *src = wanted(ep, &lr->rail[i]);
		struct lnx_rail *rail;
		int ret;

		owner.src_addr = src ? src->raw : NULL;
		owner.src_addrlen = src ? src->rawlen : 0;
		ret = lnx_rail_open(ep, &lr->rail[i], &owner, &rail);
		if (ret)
			return ret;
		ep->rail[ep->nrail++] = rail;
		if (rail->kind == LNX_RAIL_DIRECT) {
			ep->shm = rail;
			continue;
		}
		ep->nnet++;
		if (rail->kind == LNX_RAIL_PLAIN) {
			ret = lnx_plain_fill(rail);
			if (ret && ret != -FI_EAGAIN)
				return ret;
		}
	}
	return 0;
}

static void close_rails(struct lnx_ep *ep)
{
	unsigned i;

	/* All endpoints first: then nothing calls back any more. */
	for (i = 0; i < ep->nrail; i++)
		lnx_rail_shut(ep->rail[i]);
	for (i = 0; i < ep->nrail; i++)
		lnx_rail_close(ep->rail[i]);
	ep->nrail = ep->nnet = 0;
	ep->shm = NULL;
}

static int make_address(struct lnx_ep *ep)
{
	struct lnx_addr a = {
		.eid = ep->eid,
		.host = ep->domain->host,
		.has_shm = ep->shm != NULL,
	};
	unsigned i;

	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];
		struct lnx_addr_rail *r = &a.rail[a.nrail];

		if (rail->kind == LNX_RAIL_DIRECT)
			continue;
		if (a.nrail == LNX_ADDR_RAILS ||
		    rail->addrlen > sizeof(r->raw)) {
			a.more = true;
			rail->wire_index = LNX_WIRE_INDEX_NONE;
			continue;
		}
		rail->wire_index = (uint16_t)a.nrail;
		r->prov = rail->prov;
		r->group = rail->group;
		r->rawlen = (uint8_t)rail->addrlen;
		memcpy(r->raw, rail->addr, rail->addrlen);
		a.nrail++;
	}
	return lnx_addr_pack(&a, ep->addr);
}

/* Local peers that were inserted before: shm must know them to name them. */
static void meet_locals(struct lnx_ep *ep)
{
	uint32_t i, n = __atomic_load_n(&ep->av->n, __ATOMIC_ACQUIRE);

	for (i = 0; ep->shm && i < n; i++) {
		struct lnx_av_entry *e = lnx_av_entry(ep->av, i);
		struct lnx_addr a;
		char why[64];

		if (e && !lnx_addr_unpack(&a, e->blob, sizeof(e->blob), why,
					  sizeof(why)))
			lnx_peer_av_inserted(ep, i, &a);
	}
}

static int check_bindings(const struct lnx_ep *ep)
{
	uint64_t caps = ep->info->caps;
	bool tx = !(caps & (FI_SEND | FI_RECV)) || (caps & FI_SEND);
	bool rx = !(caps & (FI_SEND | FI_RECV)) || (caps & FI_RECV);

	if (!ep->av) {
		LNX_WARN(FI_LOG_EP_CTRL, "fi_enable: no AV is bound\n");
		return -FI_ENOAV;
	}
	if ((tx && !ep->tx_cq) || (rx && !ep->rx_cq)) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_enable: no completion queue is bound for %s\n",
			 tx && !ep->tx_cq ? "FI_TRANSMIT" : "FI_RECV");
		return -FI_ENOCQ;
	}
	return 0;
}

/*
 * What calls without flags imply, and what selective completion leaves of those
 * with flags.
 */
static void fix_flags(struct lnx_ep *ep)
{
	uint64_t levels = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
			  FI_DELIVERY_COMPLETE;
	uint64_t tx = ep->info->tx_attr ? ep->info->tx_attr->op_flags : 0;
	uint64_t rx = ep->info->rx_attr ? ep->info->rx_attr->op_flags : 0;

	ep->tx_flags = tx & (levels | FI_COMPLETION | FI_INJECT);
	ep->tx_msg_flags = 0;
	if (!(ep->tx_bind & FI_SELECTIVE_COMPLETION)) {
		ep->tx_flags |= FI_COMPLETION;
		ep->tx_msg_flags |= FI_COMPLETION;
	}
	ep->rx_flags = rx & (FI_COMPLETION | FI_MULTI_RECV);
	ep->rx_msg_flags = 0;
	if (!(ep->rx_bind & FI_SELECTIVE_COMPLETION)) {
		ep->rx_flags |= FI_COMPLETION;
		ep->rx_msg_flags |= FI_COMPLETION;
	}
}

static int add_wait_fds(struct lnx_ep *ep)
{
	struct lnx_cq *cq[2] = { ep->tx_cq, ep->rx_cq };
	unsigned i, j;

	for (j = 0; j < 2; j++) {
		if (!cq[j] || !cq[j]->wait || (j && cq[1] == cq[0]))
			continue;
		for (i = 0; i < ep->nrail; i++) {
			int ret;

			if (ep->rail[i]->wait_fd < 0)
				continue;
			ret = lnx_wait_add_fd(cq[j]->wait,
					      ep->rail[i]->wait_fd);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static void del_wait_fds(struct lnx_ep *ep)
{
	struct lnx_cq *cq[2] = { ep->tx_cq, ep->rx_cq };
	unsigned i, j;

	for (j = 0; j < 2; j++) {
		if (!cq[j] || !cq[j]->wait)
			continue;
		for (i = 0; i < ep->nrail; i++)
			if (ep->rail[i]->wait_fd >= 0)
				lnx_wait_del_fd(cq[j]->wait,
						ep->rail[i]->wait_fd);
	}
}

static int ep_enable(struct lnx_ep *ep)
{
	struct fi_domain_attr *dom = ep->info->domain_attr;
	bool fd = (ep->tx_cq && ep->tx_cq->wait) ||
		  (ep->rx_cq && ep->rx_cq->wait);
	bool thread;
	int ret;

	if (ep->enabled)
		return 0;
	ret = check_bindings(ep);
	if (ret)
		return ret;
	thread = dom && dom->data_progress == FI_PROGRESS_AUTO;
	ep->want_wait = fd || thread;
	/* The helper thread works on all of these. */
	if (ep->want_wait) {
		ep->lock.on = true;
		if (ep->tx_cq)
			ep->tx_cq->lock.on = true;
		if (ep->rx_cq)
			ep->rx_cq->lock.on = true;
	}
	fix_flags(ep);
	/* Caps may allow for one direction only; calls of the other must not
	 * find a hole. */
	if (!ep->tx_cq)
		ep->tx_cq = ep->rx_cq;
	if (!ep->rx_cq)
		ep->rx_cq = ep->tx_cq;

	lnx_lock(&ep->lock);
	ret = lnx_rxe_reserve(ep);
	if (!ret)
		ret = open_rails(ep);
	if (!ret)
		ret = lnx_rxbuf_reserve(ep);
	if (!ret)
		ret = make_address(ep);
	if (!ret)
		ret = add_wait_fds(ep);
	if (ret) {
		del_wait_fds(ep);
		ep->closing = true;
		close_rails(ep);
		ep->closing = false;
		lnx_unlock(&ep->lock);
		return ret;
	}
	ep->enabled = true;
	ep->fid.msg = &lnx_msg_ops;
	ep->fid.tagged = &lnx_tagged_ops;
	meet_locals(ep);
	lnx_unlock(&ep->lock);
	if (ep->want_wait) {
		ret = lnx_thread_start(ep);
		if (ret && thread)
			return ret;
	}
	return 0;
}

/* ---- bind, control ---- */

static int bind_cq(struct lnx_ep *ep, struct fid *bfid, uint64_t flags)
{
	struct lnx_cq *cq = lnx_container_of(bfid, struct lnx_cq, fid.fid);

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if (((flags & FI_TRANSMIT) && ep->tx_cq) ||
	    ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EBUSY;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_bind = flags;
		ep->tx_link.ep = ep;
		lnx_cq_attach(cq, &ep->tx_link);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_bind = flags;
		ep->rx_link.ep = ep;
		lnx_cq_attach(cq, &ep->rx_link);
	}
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct lnx_ep *ep = ep_of_fid(fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, bfid, flags);
	case FI_CLASS_AV: {
		struct lnx_av *av =
			lnx_container_of(bfid, struct lnx_av, fid.fid);

		if (ep->av)
			return -FI_EBUSY;
		if (av->domain != ep->domain)
			return -FI_EDOMAIN;
		ep->av = av;
		return lnx_av_attach(av, ep);
	}
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EBUSY;
		ep->eq = lnx_eq_ref(bfid);
		return 0;
	default:
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_ep_bind: an object of class %zu cannot be bound; CQ, AV and EQ can\n",
			 bfid->fclass);
		return -FI_ENOSYS;
	}
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	(void)arg;
	if (command == FI_ENABLE)
		return ep_enable(ep_of_fid(fid));
	return -FI_ENOSYS;
}

/* ---- close ---- */

static bool all_left(const struct lnx_ep *ep)
{
	const struct lnx_node *n;
	unsigned i;

	for (n = ep->peers.next; n != &ep->peers; n = n->next) {
		const struct lnx_peer *p =
			lnx_container_of(n, struct lnx_peer, all_link);

		if (p->ndpend)
			return false;
		if (!p->gone && !p->bye && (p->npend || p->ack_now ||
					    p->tx_una != p->tx_posted))
			return false;
	}
	for (i = 0; i < ep->nrail; i++)
		if (ep->rail[i]->busy)
			return false;
	return true;
}

/*
 * What the application was told is on its way has to get there: frames queued or
 * unacknowledged are given some time, and peers get their last acknowledgements
 * and a farewell, so that they need not wait for us in turn.
 */
static void linger(struct lnx_ep *ep)
{
	uint64_t end = lnx_clock_ns() + ep->conf->linger * LNX_NS_PER_MS;
	struct lnx_node *n, *tmp;
	unsigned i;

	if (lnx_list_empty(&ep->peers))
		return;
	while (!all_left(ep) && lnx_clock_ns() < end)
		lnx_ep_progress_all(ep);
	lnx_list_foreach(&ep->peers, n, tmp) {
		struct lnx_peer *p = lnx_list_entry(n, struct lnx_peer,
						    all_link);

		if (p->npath && !p->gone &&
		    p->path[p->cur].state == LNX_PATH_UP)
			lnx_tx_control(ep, p, LNX_KIND_BYE);
	}
	for (i = 0; i < 16; i++)
		lnx_ep_progress_all(ep);
}

static void drop_stored(struct lnx_match *m)
{
	struct lnx_munex *u;

	/* Entries that a core holds go back to it in its close. */
	while ((u = lnx_match_first_unex(m))) {
		struct lnx_rxe *rxe = lnx_container_of(u, struct lnx_rxe, unex);

		lnx_match_drop(m, u);
		if (!rxe->starting)
			lnx_list_del(&rxe->link);
		if (!rxe->core_done) {
			rxe->state = LNX_RXE_ACTIVE;
			rxe->discard = true;
			rxe->reported = true;
		} else {
			lnx_rxe_put(rxe);
		}
	}
}

static void dump_stats(const struct lnx_ep *ep)
{
	unsigned i;

	for (i = 0; i < lnx_nstats; i++) {
		const struct lnx_stat_row *row = &lnx_stat_rows[i];
		uint64_t v = *(const uint64_t *)((const char *)&ep->stats +
						 row->offset);

		if (v)
			FI_LOG(&lnx_prov, FI_LOG_WARN, FI_LOG_EP_CTRL,
			       "endpoint %016llx: %s %llu (%s)\n",
			       (unsigned long long)ep->eid, row->name,
			       (unsigned long long)v, row->help);
	}
}

static bool unpost(struct lnx_mrecv *r, void *arg)
{
	lnx_match_unpost(arg, r);
	return false;
}

static void free_posted(struct lnx_match *m)
{
	lnx_match_each_posted(m, unpost, m);
}

static int ep_close(struct fid *fid)
{
	struct lnx_ep *ep = ep_of_fid(fid);
	struct lnx_node *n;
	unsigned i;

	lnx_thread_stop(ep);
	/* From here on nobody else may reach it: it leaves AV and CQs first. */
	if (ep->av)
		lnx_av_detach(ep->av, ep);
	if (ep->tx_link.ep)
		lnx_cq_detach(ep->tx_cq, &ep->tx_link);
	if (ep->rx_link.ep)
		lnx_cq_detach(ep->rx_cq, &ep->rx_link);
	lnx_lock(&ep->lock);
	if (ep->enabled) {
		linger(ep);
		ep->closing = true;
		drop_stored(&ep->tag);
		drop_stored(&ep->msg);
		free_posted(&ep->tag);
		free_posted(&ep->msg);
		del_wait_fds(ep);
		while ((n = lnx_list_pop(&ep->rndvs)))
			lnx_list_add_tail(&ep->dead_rndvs, n);
		for (i = 0; i < ep->nrail; i++)
			lnx_rail_shut(ep->rail[i]);
		lnx_rndv_reap(ep);
		/* Before the rails go: frame buffers belong to one. */
		lnx_tx_drop_pending(ep);
		lnx_rxe_free_owned(ep);
		close_rails(ep);
		lnx_pulls_destroy(ep);
	}
	if (ep->conf->dump_stats)
		dump_stats(ep);
	lnx_peers_destroy(ep);
	lnx_unlock(&ep->lock);

	lnx_match_fini(&ep->tag);
	lnx_match_fini(&ep->msg);
	lnx_rxe_free_owned(ep);
	lnx_pool_fini(&ep->rxe_pool);
	for (i = 0; i < LNX_ARRAY_SIZE(ep->txe_pool); i++)
		lnx_pool_fini(&ep->txe_pool[i]);
	lnx_pool_fini(&ep->rxbuf_pool);
	lnx_pool_fini(&ep->chunk_pool);
	if (ep->eq)
		lnx_eq_unref(ep->eq);
	lnx_lock_fini(&ep->lock);
	fi_freeinfo(ep->info);
	free(ep->want);
	__atomic_sub_fetch(&ep->domain->refs, 1, __ATOMIC_RELEASE);
	free(ep);
	return 0;
}

/* ---- open ---- */

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = lnx_no_ops_open,
};

static uint32_t pow2_up(uint64_t v)
{
	uint32_t p = 2;

	while (p < v)
		p *= 2;
	return p;
}

static void init_lists(struct lnx_ep *ep)
{
	struct lnx_node *heads[] = {
		&ep->ack_peers, &ep->pump_peers, &ep->una_peers,
		&ep->learn_peers, &ep->direct_peers, &ep->pulls, &ep->parked, &ep->peers,
		&ep->reserve, &ep->buf_reserve, &ep->rndvs, &ep->dead_rndvs,
		&ep->av_link, &ep->owned,
	};
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(heads); i++)
		lnx_list_init(heads[i]);
}

static int check_info(const struct fi_info *info)
{
	if (!info || !info->ep_attr || !info->domain_attr || !info->tx_attr ||
	    !info->rx_attr)
		return -FI_EINVAL;
	if (info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC) {
		LNX_WARN(FI_LOG_EP_CTRL,
			 "fi_endpoint: only FI_EP_RDM is supported\n");
		return -FI_EINVAL;
	}
	return 0;
}

int lnx_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **out, void *context)
{
	struct lnx_domain *d = lnx_container_of(domain, struct lnx_domain, fid);
	static const size_t frame[3] = {
		LNX_TXE_SMALL, LNX_TXE_MEDIUM, LNX_TXE_LARGE,
	};
	struct lnx_ep *ep;
	unsigned i;
	int ret = check_info(info);

	if (ret)
		return ret;
	ep = aligned_alloc(64, (sizeof(*ep) + 63) & ~(size_t)63);
	if (!ep)
		return -FI_ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ret = -FI_ENOMEM;
	ep->conf = lnx_config();
	ep->domain = d;
	ep->info = fi_dupinfo(info);
	ep->by_eid_mask = 15;
	ep->by_eid = calloc(ep->by_eid_mask + 1, sizeof(*ep->by_eid));
	if (!ep->info || !ep->by_eid)
		goto err;
	ep->eid = lnx_random_id();
	if (!ep->eid)
		goto err;
	ret = lnx_match_init(&ep->tag);
	if (ret)
		goto err;
	ret = lnx_match_init(&ep->msg);
	if (ret)
		goto err_tag;
	init_lists(ep);
	lnx_pool_init(&ep->rxe_pool, sizeof(struct lnx_rxe), SLAB_RXE);
	for (i = 0; i < 3; i++)
		lnx_pool_init(&ep->txe_pool[i], sizeof(struct lnx_txe) +
			      sizeof(struct lnx_wire_hdr) + frame[i], SLAB_BUF);
	lnx_pool_init(&ep->rxbuf_pool, sizeof(struct lnx_rxbuf), SLAB_BUF);
	lnx_pool_init(&ep->chunk_pool, lnx_chunk_size, SLAB_BUF);
	ep->window = pow2_up(ep->conf->window);
	ep->poll_idle = (uint32_t)ep->conf->poll_idle;
	ep->eager_limit = ep->conf->eager_limit;
	ep->max_msg_size = info->ep_attr->max_msg_size ?
			   LNX_MIN(info->ep_attr->max_msg_size,
				   LNX_MSG_SIZE_MAX) : LNX_MSG_SIZE_MAX;
	ep->copy_limit = LNX_MIN(ep->conf->copy_limit, ep->conf->eager_limit);
	ep->tx_size = info->tx_attr->size ? (uint32_t)info->tx_attr->size : 1024;
	ep->inject_size = info->tx_attr->inject_size ?
			  LNX_MIN(info->tx_attr->inject_size, LNX_INJECT_MAX) :
			  LNX_INJECT_MAX;
	ep->min_multi_recv = MIN_MULTI_RECV_DEFAULT;
	ep->directed = (info->caps & FI_DIRECTED_RECV) != 0;
	ep->rename = lnx_rx_rename;
	lnx_lock_init(&ep->lock, d->threads ||
		      info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &lnx_msg_off_ops;
	ep->fid.tagged = &lnx_tagged_off_ops;
	ep->fid.rma = &lnx_no_rma_ops;
	ep->fid.atomic = &lnx_no_atomic_ops;
	__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	*out = &ep->fid;
	return 0;
err_tag:
	lnx_match_fini(&ep->tag);
err:
	fi_freeinfo(ep->info);
	free(ep->by_eid);
	free(ep);
	return ret;
}
