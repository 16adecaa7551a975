/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes rails: the core objects behind an endpoint.  See open.h. */
#include <stdio.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "core/shm_registry.h"
#include "core/shm_stale.h"
#include "core/warn_once.h"
#include "core/half_open.h"
#include "core/health_board.h"
#include "core/kept_region.h"
#include "core/open.h"
#include "obj/mr.h"

#define SHM_AV_MAX	256		/* shm refuses more than that */

/* Cores call our SRX to cancel and for options; it does nothing. */
static ssize_t srx_cancel(fid_t fid, void *context)
{
	(void)fid, (void)context;
	return -FI_ENOENT;
}

static int srx_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	(void)fid, (void)level, (void)name, (void)val, (void)len;
	return -FI_ENOPROTOOPT;
}

static int srx_setopt(fid_t fid, int level, int name, const void *val,
		      size_t len)
{
	(void)fid, (void)level, (void)name, (void)val, (void)len;
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep srx_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = srx_cancel,
	.getopt = srx_getopt,
	.setopt = srx_setopt,
};

static int failed(const struct lnx_rail *rail, const char *step, int ret)
{
	const struct lnx_ep *ep = rail->ep;

	/*
	 * Later failures are due to the network, which changes, not to the link's text.
	 */
	if (!ep->enabled && ep->conf->prov_links)
		lnx_warn_once(true, "FI_LNX_PROV_LINKS=\"%.300s\": rail %s: %s "
			     "failed: %s", ep->conf->prov_links, rail->name,
			     step, fi_strerror(-ret));
	else
		LNX_WARN(FI_LOG_EP_CTRL, "rail %s: %s failed: %s\n",
			 rail->name, step, fi_strerror(-ret));
	return ret;
}

/* The core's fi_info, adapted to this endpoint. */
static struct fi_info *rail_info(struct lnx_ep *ep, struct lnx_rail *rail,
				 const struct lnx_rail_spec *spec,
				 const struct lnx_rail_owner *owner)
{
	struct fi_info *info = fi_dupinfo(spec->info);
	const void *src = owner->src_addr;
	size_t len = owner->src_addrlen;

	if (!info)
		return NULL;
	if (src) {
		void *copy = malloc(len);

		if (!copy) {
			fi_freeinfo(info);
			return NULL;
		}
		memcpy(copy, src, len);
		free(info->src_addr);
		info->src_addr = copy;
		info->src_addrlen = len;
	}
	info->tx_attr->op_flags = 0;
	info->rx_attr->op_flags = 0;
	/* Its operations are the application's, and so are its defaults; except
	 * FI_INJECT, which shm refuses there: it is added to each call (api/inject.c). */
	if (rail->kind == LNX_RAIL_DIRECT || lnx_rail_kind_native(rail->kind))
		info->tx_attr->op_flags = ep->info->tx_attr->op_flags &
					  ~FI_INJECT;
	/* The core does not support this level for all its operations: msg/confirm.h. */
	if (rail->kind == LNX_RAIL_DIRECT)
		info->tx_attr->op_flags &= ~FI_DELIVERY_COMPLETE;
	if (lnx_rail_kind_native(rail->kind))
		info->rx_attr->op_flags = ep->info->rx_attr->op_flags;
	/* Without FI_DIRECTED_RECV every source matches. */
	if (lnx_rail_kind_native(rail->kind) && !ep->directed) {
		info->caps &= ~FI_DIRECTED_RECV;
		info->rx_attr->caps &= ~FI_DIRECTED_RECV;
	}
	/*
	 * Its peers name remote memory as the application does.  Set here by hand: when
	 * shm is asked for virtual addresses it drops its order, and without order it
	 * writes into its peers' memory itself, whatever the key.
	 */
	if (lnx_rail_kind_local(rail->kind) && ep->domain->mr_basic)
		info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	if (rail->kind == LNX_RAIL_PLAIN)
		info->rx_attr->size = LNX_MAX(info->rx_attr->size,
					      ep->conf->rx_buffers);
	return info;
}

static int open_cq(struct lnx_rail *rail, const struct lnx_rail_owner *owner)
{
	struct fi_peer_cq_context peer_ctx = {
		.size = sizeof(peer_ctx), .cq = &rail->peer_cq,
	};
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG };
	void *context = NULL;
	int ret;

	if (lnx_rail_kind_plain(rail->kind)) {
		/* tcp's CQ grows; a shorter one stays better in the caches.  Other
		 * cores may overrun theirs. */
		attr.size = rail->prov == LNX_PROV_TCP &&
			    !lnx_rail_kind_native(rail->kind) ? 1024 : 4096;
		if (lnx_rail_kind_native(rail->kind))
			attr.format = FI_CQ_FORMAT_TAGGED;
	} else {
		attr.flags = FI_PEER;
		attr.format = FI_CQ_FORMAT_TAGGED;
		context = &peer_ctx;
		rail->peer_cq.fid.fclass = FI_CLASS_PEER_CQ;
		rail->peer_cq.fid.ops = owner->fid_ops;
		rail->peer_cq.owner_ops = rail->kind == LNX_RAIL_DIRECT ?
			owner->direct_cq_ops : owner->framed_cq_ops;
	}
	if (owner->wait && !lnx_rail_kind_local(rail->kind))
		attr.wait_obj = FI_WAIT_FD;
	ret = fi_cq_open(rail->domain, &attr, &rail->core_cq, context);
	if (ret && attr.wait_obj == FI_WAIT_FD) {
		/* It has no wait object: it will be polled. */
		attr.wait_obj = FI_WAIT_NONE;
		ret = fi_cq_open(rail->domain, &attr, &rail->core_cq, context);
	}
	if (ret)
		return failed(rail, "fi_cq_open", ret);
	if (attr.wait_obj == FI_WAIT_FD &&
	    fi_control(&rail->core_cq->fid, FI_GETWAIT, &rail->wait_fd))
		rail->wait_fd = -1;
	return 0;
}

static int open_srx(struct lnx_rail *rail, const struct lnx_rail_owner *owner)
{
	struct fi_peer_srx_context peer_ctx = {
		.size = sizeof(peer_ctx), .srx = &rail->peer_srx,
	};
	struct fi_rx_attr attr = { .op_flags = FI_PEER };
	int ret;

	if (rail->kind == LNX_RAIL_PLAIN || lnx_rail_kind_native(rail->kind))
		return 0;
	rail->peer_srx.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	rail->peer_srx.ep_fid.fid.ops = owner->fid_ops;
	rail->peer_srx.ep_fid.ops = &srx_ep_ops;
	rail->peer_srx.owner_ops = rail->kind == LNX_RAIL_DIRECT ?
		owner->direct_srx_ops : owner->framed_srx_ops;
	ret = fi_srx_context(rail->domain, &attr, &rail->srx, &peer_ctx);
	if (ret)
		return failed(rail, "fi_srx_context", ret);
	ret = fi_ep_bind(rail->core_ep, &rail->srx->fid, 0);
	return ret ? failed(rail, "fi_ep_bind (srx)", ret) : 0;
}

/*
 * A direct or native core counts what ends inside it, also what it does not report.  A
 * direct core does not count receives, which end with us.  A native one gets its own
 * counter, as it gets its own CQ.
 */
int lnx_rail_lend(struct lnx_ep *ep, struct lnx_rail *rail,
		  const struct lnx_rail_owner *owner)
{
	static const uint64_t flag[LNX_CNTR_KINDS] = {
		[LNX_CNTR_RECV] = FI_RECV,
		[LNX_CNTR_SEND] = FI_SEND,
		[LNX_CNTR_WRITE] = FI_WRITE,
		[LNX_CNTR_READ] = FI_READ,
		[LNX_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
		[LNX_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	};
	unsigned i;

	for (i = 0; i < LNX_CNTR_KINDS; i++) {
		bool own = lnx_rail_kind_plain(rail->kind);
		struct fi_cntr_attr attr = { .flags = own ? 0 : FI_PEER };
		struct lnx_rail_cntr *c = &rail->cntr[i];
		struct fi_peer_cntr_context peer_ctx = {
			.size = sizeof(peer_ctx), .cntr = &c->peer,
		};
		bool recv = i == LNX_CNTR_RECV;
		int ret;

		if ((rail->kind != LNX_RAIL_DIRECT || recv) &&
		    !lnx_rail_kind_native(rail->kind))
			continue;
		if (!ep->cntr[i] || c->core)
			continue;
		c->cntr = ep->cntr[i];
		c->rail = rail;
		c->peer.fid.fclass = FI_CLASS_PEER_CNTR;
		c->peer.fid.ops = owner->fid_ops;
		c->peer.owner_ops = owner->direct_cntr_ops;
		ret = fi_cntr_open(rail->domain, &attr, &c->core,
				   own ? NULL : (void *)&peer_ctx);
		if (ret)
			return failed(rail, "fi_cntr_open", ret);
		ret = fi_ep_bind(rail->core_ep, &c->core->fid, flag[i]);
		if (ret)
			return failed(rail, "fi_ep_bind (counter)", ret);
	}
	return 0;
}

/*
 * Has another endpoint the name that the application asks for?  The core must not find
 * that out: when it does it removes the other endpoint's file, and peers cannot find
 * that endpoint any more.
 */
static int check_name(struct lnx_ep *ep, const struct lnx_rail *rail)
{
	char path[LNX_SHM_PATH_BYTES];
	int pid;

	ep->local.turn = 0;
	if (!ep->address.want)
		return 0;
	if (!lnx_shm_registry_in_use(ep->eid, &pid)) {
		/*
		 * The core would cut the file of a process that has ended, and write it
		 * anew: under peers that have mapped it, and read its registry.
		 */
		lnx_host_take_turn(ep);
		return 0;
	}
	lnx_host_shm_path(ep->eid, path);
	if (pid)
		LNX_WARN(FI_LOG_EP_CTRL,
			 "rail %s: the name that was asked for belongs to an endpoint of process %d (%s)\n",
			 rail->name, pid, path);
	else
		LNX_WARN(FI_LOG_EP_CTRL,
			 "rail %s: the name that was asked for belongs to another endpoint, or one left %s behind\n",
			 rail->name, path);
	return -FI_EADDRINUSE;
}

/*
 * What the core writes of a region's file, measured for up to 8192 receives: 8 MiB for
 * up to 1024 of them, half of that while it opens, and less than 6 KiB for each further
 * one.  The file itself is longer.
 */
#define SHM_BYTES	((17ull << 20) / 2)
#define SHM_RECVS	1024u
#define SHM_RECV_BYTES	6144u

/*
 * The core does not ask whether there is room for its file, and without any its first
 * write is a SIGBUS.  What killed processes have left is removed.
 */
static int make_room(const struct lnx_rail *rail)
{
	uint64_t room, need = SHM_BYTES;
	size_t recvs = rail->info->rx_attr->size;
	unsigned pass;

	if (recvs > SHM_RECVS)
		need += (recvs - SHM_RECVS) * SHM_RECV_BYTES;
	for (pass = 0; pass < 2; pass++) {
		lnx_shm_stale_clean(pass > 0);
		if (!lnx_host_shm_free(&room) || room >= need)
			return 0;
	}
	lnx_warn_once(rail->ep->conf->prov_links != NULL,
		      "rail %s: /dev/shm has %llu KiB free, and an endpoint needs %llu KiB",
		      rail->name, (unsigned long long)room >> 10,
		      (unsigned long long)need >> 10);
	return -FI_ENOSPC;
}

/*
 * shm endpoints are named after our endpoint id.  With fi_setname, because shm appends
 * to a name in src_addr something that peers cannot know.
 */
static int name_shm(struct lnx_ep *ep, struct lnx_rail *rail)
{
	char name[LNX_SHM_NAME_BYTES];
	int ret;

	if (rail->prov != LNX_PROV_SHM)
		return 0;
	ret = check_name(ep, rail);
	if (!ret)
		ret = make_room(rail);
	if (ret)
		return ret;
	lnx_addr_shm_name(ep->eid, ep->local.turn, name);
	ret = fi_setname(&rail->core_ep->fid, name, strlen(name) + 1);
	return ret ? failed(rail, "fi_setname", ret) : 0;
}

/*
 * A core endpoint that has our receive context and could not be enabled must not be
 * closed: shm and tcp;ofi_rxm tell by the table of calls, which fi_enable replaces
 * last, whether the context is their own.  Until then they take ours for their own and
 * destroy it, which crashes.  An endpoint that was enabled before has shown that table,
 * and gives it to its successor when a rail is opened anew.  The first endpoint of a
 * rail, and all that it refers to, stays for ever.
 */
static int enable(struct lnx_rail *rail)
{
	int ret = fi_enable(rail->core_ep);

	if (!ret) {
		rail->enabled_calls = rail->core_ep->msg;
		rail->short_frame = lnx_rail_short_frame(rail);
		return 0;
	}
	if (rail->srx && rail->enabled_calls)
		rail->core_ep->msg = rail->enabled_calls;
	else
		rail->unclosable = rail->srx != NULL;
	return failed(rail, "fi_enable", ret);
}

/*
 * The longest frame that the rail carries.  ofi_rxm has buffers of one size, which both ends
 * must have, and which it reports as the smallest multi-receive while it has no receive
 * context; what is longer is not sound there.  Of other providers than tcp it is not known
 * that longer frames are faster.
 */
static uint32_t frame_max(const struct lnx_rail *rail)
{
	size_t room, len = sizeof(room);

	if (rail->prov == LNX_PROV_TCP && rail->kind == LNX_RAIL_PLAIN)
		return LNX_FRAME_LARGE;
	if (rail->prov != LNX_PROV_TCP_RXM ||
	    fi_getopt(&rail->core_ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
		      &room, &len) || len != sizeof(room))
		return LNX_FRAME_MAX;
	return (uint32_t)LNX_MAX(LNX_MIN(room, (size_t)LNX_FRAME_LARGE), LNX_FRAME_MAX);
}

static int open_objects(struct lnx_ep *ep, struct lnx_rail *rail,
			const struct lnx_rail_owner *owner)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	uint64_t tx = FI_TRANSMIT, rx = FI_RECV;
	int ret;

	ret = fi_fabric(rail->info->fabric_attr, &rail->fabric, NULL);
	if (ret)
		return failed(rail, "fi_fabric", ret);
	/*
	 * Only we use a core domain, and we do so under one lock: a network core need
	 * not lock a second time at each poll.  (shm is faster with its lock: it delays
	 * the polls of a cache line that its peer writes.)
	 */
	if (!lnx_rail_kind_local(rail->kind))
		rail->info->domain_attr->control_progress =
			FI_PROGRESS_CONTROL_UNIFIED;
	ret = fi_domain(rail->fabric, rail->info, &rail->domain, NULL);
	if (ret)
		return failed(rail, "fi_domain", ret);
	if (rail->prov == LNX_PROV_SHM)
		av_attr.count = SHM_AV_MAX;
	ret = fi_av_open(rail->domain, &av_attr, &rail->av, NULL);
	if (ret)
		return failed(rail, "fi_av_open", ret);
	ret = open_cq(rail, owner);
	if (ret)
		return ret;
	ret = fi_endpoint(rail->domain, rail->info, &rail->core_ep, NULL);
	if (ret)
		return failed(rail, "fi_endpoint", ret);
	rail->frame_max = frame_max(rail);
	ret = fi_ep_bind(rail->core_ep, &rail->av->fid, 0);
	if (ret)
		return failed(rail, "fi_ep_bind (av)", ret);
	if (rail->kind == LNX_RAIL_DIRECT || lnx_rail_kind_native(rail->kind))
		tx |= ep->bound.tx_flags & FI_SELECTIVE_COMPLETION;
	if (lnx_rail_kind_native(rail->kind))
		rx |= ep->bound.rx_flags & FI_SELECTIVE_COMPLETION;
	ret = fi_ep_bind(rail->core_ep, &rail->core_cq->fid, tx);
	if (!ret)
		ret = fi_ep_bind(rail->core_ep, &rail->core_cq->fid, rx);
	if (ret)
		return failed(rail, "fi_ep_bind (cq)", ret);
	/*
	 * Selective completion is set for all; a core that cannot do it reports that
	 * then.
	 */
	if (lnx_rail_kind_native(rail->kind))
		fi_setopt(&rail->core_ep->fid, FI_OPT_ENDPOINT,
			  FI_OPT_MIN_MULTI_RECV, &ep->min_multi_recv,
			  sizeof(ep->min_multi_recv));
	ret = lnx_rail_lend(ep, rail, owner);
	if (ret)
		return ret;
	ret = name_shm(ep, rail);
	if (ret)
		return ret;
	/* The last call before the endpoint is enabled: see enable(). */
	ret = open_srx(rail, owner);
	if (ret)
		return ret;
	ret = enable(rail);
	if (ret)
		return ret;
	rail->addrlen = sizeof(rail->addr);
	ret = fi_getname(&rail->core_ep->fid, rail->addr, &rail->addrlen);
	return ret ? failed(rail, "fi_getname", ret) : 0;
}

int lnx_rail_open(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
		  const struct lnx_rail_owner *owner, struct lnx_rail **out)
{
	struct lnx_rail *rail = lnx_lines_get(sizeof(*rail));
	int ret;

	if (!rail)
		return -FI_ENOMEM;
	rail->ep = ep;
	rail->kind = (uint8_t)spec->kind;
	rail->prov = spec->prov_id;
	rail->group = spec->group;
	rail->wire_index = LNX_WIRE_INDEX_NONE;
	rail->wait_fd = -1;
	rail->below = rail;
	lnx_list_init(&rail->bufs);
	lnx_list_init(&rail->delayed);
	lnx_list_init(&rail->regs);
	lnx_list_init(&rail->clones);
	lnx_health_init(&rail->health);
	snprintf(rail->name, sizeof(rail->name), "%.*s:%.*s",
		 LNX_NAME_MAX - 2, spec->prov, LNX_NAME_MAX - 2, spec->dom);
	rail->info = rail_info(ep, rail, spec, owner);
	if (!rail->info) {
		free(rail);
		return -FI_ENOMEM;
	}
	rail->inject_size = (uint32_t)LNX_MIN(rail->info->tx_attr->inject_size, UINT32_MAX);
	rail->mr_virt = (rail->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
	rail->mr_prov_key =
		(rail->info->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
	rail->mr_endpoint =
		(rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
	ret = lnx_rail_keys_init(rail);
	if (!ret)
		ret = open_objects(ep, rail, owner);
	if (ret) {
		lnx_rail_stop(rail);
		lnx_rail_close(rail);
		return ret;
	}
	rail->first_port = (uint16_t)lnx_rail_port(rail);
	lnx_half_open_cloexec(rail);
	/* Also before there is a path: strangers may connect. */
	if (lnx_half_open_listens(rail))
		lnx_ep_due(ep, LNX_DUE_SWEEP, 0);
	lnx_health_board_rail(rail, lnx_clock_ns());
	if (rail->prov == LNX_PROV_SHM) {
		ep->local.cookie = ep->eid;
		lnx_host_own_region(ep);
		ep->local.registry = lnx_shm_registry_open(ep);
		if (ep->local.registry)
			lnx_kept_region_opened(ep);
		ret = lnx_host_show_region(ep);
		if (ret) {
			lnx_rail_stop(rail);
			lnx_rail_close(rail);
			return ret;
		}
		lnx_shm_region_disown(ep);
	}
	if (rail->kind == LNX_RAIL_DIRECT) {
		rail->ctrl_buf = malloc(LNX_PUSH_BYTES);
		if (!rail->ctrl_buf) {
			lnx_rail_close(rail);
			return -FI_ENOMEM;
		}
	}
	*out = rail;
	return 0;
}

static void close_fid(const struct lnx_rail *rail, struct fid *fid,
		      const char *what)
{
	int ret = fi_close(fid);

	/* Never try twice: some cores free the object and return busy. */
	if (ret)
		LNX_INFO(FI_LOG_EP_CTRL, "rail %s: closing its %s: %s\n",
			 rail->name, what, fi_strerror(-ret));
}

void lnx_rail_stop(struct lnx_rail *rail)
{
	struct lnx_kept_region *kept = NULL;
	int32_t *pid = NULL;

	if (!rail || !rail->core_ep || rail->unclosable)
		return;
	if (rail->prov == LNX_PROV_SHM) {
		rail->ep->local.cookie = 0;
		/* While the name leads to it. */
		pid = lnx_shm_region_pid(rail->ep);
		lnx_host_hide_region(rail->ep);
		if (rail->ep->local.registry)
			lnx_shm_registry_retire(rail->ep->local.registry);
		kept = lnx_kept_region_before(rail->ep);
	}
	close_fid(rail, &rail->core_ep->fid, "endpoint");
	rail->core_ep = NULL;
	rail->short_frame = 0;
	if (rail->prov == LNX_PROV_SHM)
		lnx_kept_region_after(rail->ep, kept);
	lnx_shm_region_leave(rail->ep, pid);
}

/* The core may still refer to all of it: see enable(). */
static void keep_for_ever(struct lnx_rail *rail)
{
	static struct lnx_rail *kept;

	LNX_WARN(FI_LOG_EP_CTRL,
		 "rail %s: what was opened before fi_enable failed stays open\n",
		 rail->name);
	rail->ep = NULL;
	/* A list, so that leak checkers find it. */
	rail->next_kept = __atomic_load_n(&kept, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&kept, &rail->next_kept, rail,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void lnx_rail_close(struct lnx_rail *rail)
{
	unsigned i;

	if (!rail)
		return;
	if (rail->unclosable) {
		keep_for_ever(rail);
		return;
	}
	lnx_rail_stop(rail);
	if (rail->prov == LNX_PROV_SHM) {
		lnx_shm_registry_close(rail->ep->local.registry);
		rail->ep->local.registry = NULL;
	}
	if (rail->srx)
		close_fid(rail, &rail->srx->fid, "shared receive context");
	for (i = 0; i < LNX_CNTR_KINDS; i++)
		if (rail->cntr[i].core)
			close_fid(rail, &rail->cntr[i].core->fid, "counter");
	if (rail->core_cq)
		close_fid(rail, &rail->core_cq->fid, "completion queue");
	if (rail->av)
		close_fid(rail, &rail->av->fid, "address vector");
	if (rail->domain)
		close_fid(rail, &rail->domain->fid, "domain");
	if (rail->fabric)
		close_fid(rail, &rail->fabric->fid, "fabric");
	fi_freeinfo(rail->info);
	free(rail->by_core);
	free(rail->drop_buf);
	free(rail->ctrl_buf);
	free(rail->half_open.at);
	free(rail);
}

void lnx_rail_close_ep(struct lnx_rail *rail)
{
	if (!rail->core_ep)
		return;
	close_fid(rail, &rail->core_ep->fid, "endpoint");
	rail->core_ep = NULL;
	rail->short_frame = 0;
}

/* 0: let the kernel choose. */
static void set_port(struct fi_info *info, unsigned port)
{
	struct sockaddr *sa = info->src_addr;

	if (!sa)
		return;
	if (info->addr_format == FI_SOCKADDR_IN ||
	    (info->addr_format == FI_SOCKADDR && sa->sa_family == AF_INET))
		((struct sockaddr_in *)(void *)sa)->sin_port =
			htons((uint16_t)port);
	else if (info->addr_format == FI_SOCKADDR_IN6 ||
		 (info->addr_format == FI_SOCKADDR && sa->sa_family == AF_INET6))
		((struct sockaddr_in6 *)(void *)sa)->sin6_port =
			htons((uint16_t)port);
}

static int open_again(struct lnx_rail *rail, unsigned port)
{
	struct fid_ep *core;
	int ret;

	set_port(rail->info, port);
	ret = fi_endpoint(rail->domain, rail->info, &core, NULL);
	if (ret)
		return failed(rail, "fi_endpoint", ret);
	rail->core_ep = core;
	ret = fi_ep_bind(core, &rail->av->fid, 0);
	if (ret)
		return failed(rail, "fi_ep_bind (av)", ret);
	ret = fi_ep_bind(core, &rail->core_cq->fid, FI_TRANSMIT);
	if (!ret)
		ret = fi_ep_bind(core, &rail->core_cq->fid, FI_RECV);
	if (ret)
		return failed(rail, "fi_ep_bind (cq)", ret);
	if (rail->srx) {
		ret = fi_ep_bind(core, &rail->srx->fid, 0);
		if (ret)
			return failed(rail, "fi_ep_bind (srx)", ret);
	}
	ret = enable(rail);
	if (ret)
		return ret;
	rail->addrlen = sizeof(rail->addr);
	ret = fi_getname(&core->fid, rail->addr, &rail->addrlen);
	return ret ? failed(rail, "fi_getname", ret) : 0;
}

int lnx_rail_open_ep(struct lnx_rail *rail, unsigned port)
{
	int ret = open_again(rail, port);

	if (ret)
		lnx_rail_close_ep(rail);
	else
		lnx_half_open_cloexec(rail);
	return ret;
}

unsigned lnx_rail_port(const struct lnx_rail *rail)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (rail->addrlen < sizeof(in))
		return 0;
	memcpy(&in, rail->addr, sizeof(in));
	if (in.sin_family == AF_INET)
		return ntohs(in.sin_port);
	if (in.sin_family != AF_INET6 || rail->addrlen < sizeof(in6))
		return 0;
	memcpy(&in6, rail->addr, sizeof(in6));
	return ntohs(in6.sin6_port);
}

static int insert(struct lnx_rail *rail, const void *addr, const struct lnx_addr_rail *to,
		  fi_addr_t *core_addr)
{
	/* Cores look at the context of asynchronous AVs only. */
	int ret = fi_av_insert(rail->av, addr, 1, core_addr, 0, (void *)to);

	if (ret == 1)
		return 0;
	*core_addr = FI_ADDR_NOTAVAIL;
	return ret < 0 ? ret : -FI_ENOSPC;
}

int lnx_rail_insert(struct lnx_rail *rail, const void *addr,
		    fi_addr_t *core_addr)
{
	return insert(rail, addr, NULL, core_addr);
}

int lnx_rail_meet(struct lnx_rail *rail, const struct lnx_addr_rail *to,
		  fi_addr_t *core_addr)
{
	return insert(rail, to->raw, to, core_addr);
}

void lnx_rail_remove(struct lnx_rail *rail, fi_addr_t core_addr)
{
	fi_av_remove(rail->av, &core_addr, 1, 0);
}
