/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Legs: rails that lead to a gateway.  See leg.h.  Called by rail/post.h, as the core of a
 * rail is, and by rel/gateway.c; calls rail/post.h for the rail below.
 *
 * The core below may read an envelope until it reports the frame, so that each is in a
 * struct lnx_leg_op, which also has a copy of what is injected.  The core below reports
 * that; the owner of the frame hears of its own operation.
 */
#include "rail/leg.h"

#include <stdlib.h>
#include <string.h>

#include "base/keyed.h"
#include "core/half_open.h"
#include "core/open.h"
#include "rail/post.h"

struct lnx_leg_op {
	struct lnx_op op;
	struct lnx_op *frame;		/* the owner's; NULL: it wants to hear nothing */
	struct lnx_rail *below;
	struct lnx_leg *piece;		/* of the other pool, and sent by that leg; or NULL */
	struct lnx_node link;		/* gateways->ops */
	_Alignas(64) uint8_t bytes[LNX_ROUTE_HEAD + LNX_LEG_COPY];
};

static struct lnx_leg *leg_of_ep(struct fid_ep *core)
{
	return lnx_container_of(core, struct lnx_leg, core_ep);
}

static struct lnx_leg *leg_of_av(struct fid_av *av)
{
	return lnx_container_of(av, struct lnx_leg, av);
}

/* ---- what is under way ---- */

static struct lnx_leg_op *op_get(struct lnx_leg *leg, struct lnx_op *frame)
{
	struct lnx_gateways *all = leg->gw->all;
	struct lnx_leg_op *o = lnx_pool_get(&all->op_pool);

	if (!o)
		return NULL;
	o->op.type = LNX_OP_LEG;
	o->frame = frame;
	o->piece = NULL;
	o->below = leg->rail.below;
	lnx_list_init(&o->link);
	lnx_list_add_tail(&all->ops, &o->link);
	return o;
}

static void op_put(struct lnx_leg_op *o)
{
	struct lnx_gateways *all = o->below->ep->policy.gateways;

	lnx_list_del(&o->link);
	if (lnx_unlikely(o->piece)) {
		o->piece->n_pieces--;
		lnx_pool_put(&all->piece_pool, o);
		/* The next one may leave. */
		lnx_ep_due(all->ep, LNX_DUE_GATEWAYS, 0);
	} else {
		lnx_pool_put(&all->op_pool, o);
	}
}

void lnx_leg_done(struct lnx_op *op)
{
	struct lnx_leg_op *o = lnx_container_of(op, struct lnx_leg_op, op);
	const struct lnx_up *up = o->below->ep->up;
	struct lnx_op *frame = o->frame;

	op_put(o);
	if (frame)
		up->op[frame->type].done(frame);
}

LNX_COLD bool lnx_leg_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err)
{
	struct lnx_gateways *all = rail->ep->policy.gateways;
	struct lnx_leg_op *o = err->op_context;
	struct fi_cq_err_entry of_frame = *err;

	if (!all || (!lnx_pool_owns(&all->op_pool, o) && !lnx_pool_owns(&all->piece_pool, o)))
		return false;
	if ((!lnx_pool_lent(&all->op_pool, o) && !lnx_pool_lent(&all->piece_pool, o)) ||
	    o->below != rail)
		return true;
	of_frame.op_context = o->frame;
	op_put(o);
	if (of_frame.op_context)
		return rail->ep->up->op[((struct lnx_op *)of_frame.op_context)->type]
			.failed(rail, &of_frame);
	lnx_rail_op_ended(rail);
	rail->ep->stats.core_errors++;
	return true;
}

/* Their frames belong to peers, which are told by path. */
void lnx_legs_cut(const struct lnx_rail *below)
{
	struct lnx_gateways *all = below->ep->policy.gateways;
	struct lnx_node *n, *tmp;

	if (!all)
		return;
	lnx_list_foreach(&all->ops, n, tmp) {
		struct lnx_leg_op *o = lnx_list_entry(n, struct lnx_leg_op, link);

		if (o->below == below)
			op_put(o);
	}
}

/* ---- sending ---- */

/* The core of the rail below, or NULL: it is being opened anew. */
static bool has_core(struct lnx_rail *below)
{
	if (lnx_likely(below->core_ep != NULL))
		return true;
	lnx_ep_due(below->ep, LNX_DUE_RAILS, 0);
	return false;
}

/* What is copied leaves at once, or with a buffer of ours. */
static ssize_t post_copy(struct lnx_leg *leg, struct lnx_leg_op *o, size_t len)
{
	struct lnx_rail *below = leg->rail.below;
	struct iovec iov = { .iov_base = o->bytes, .iov_len = len };
	ssize_t ret;

	below->poll_credits = below->ep->poll_credits;
	if (len <= below->inject_size) {
		ret = lnx_rail_inject(below, o->bytes, len, leg->gateway);
		op_put(o);
		return ret;
	}
	ret = lnx_rail_send(below, &iov, 1, leg->gateway, &o->op);
	if (ret)
		op_put(o);
	return ret;
}

ssize_t lnx_leg_tell(struct lnx_leg *leg, const void *record, size_t len)
{
	struct lnx_leg_op *o;

	if (!has_core(leg->rail.below))
		return -FI_EAGAIN;
	o = op_get(leg, NULL);
	if (!o)
		return -FI_ENOMEM;
	memcpy(o->bytes, record, len);
	return post_copy(leg, o, len);
}

/* One that is asked again before it has answered may answer either. */
static uint32_t nonce_for(struct lnx_leg *leg, fi_addr_t end)
{
	struct lnx_gateways *all = leg->gw->all;

	if (!leg->end[end].nonce)
		leg->end[end].nonce = (uint32_t)lnx_keyed64(all->secret, ++all->n_asked) | 1u;
	return leg->end[end].nonce;
}

ssize_t lnx_leg_ask(struct lnx_leg *leg, fi_addr_t end)
{
	struct lnx_gw_ask a = {
		.account = leg->gw->process->state.account, .id = leg->rail.ep->eid,
		.key = leg->gw->all->key, .nonce = nonce_for(leg, end),
		.rail = leg->end[end].to,
	};
	struct lnx_wire_gw_ask w;

	return lnx_wire_gw_ask_put(&w, &a) < 0 ? -FI_EINVAL : lnx_leg_tell(leg, &w, sizeof(w));
}

static void want(struct lnx_gw *gw)
{
	if (lnx_likely(gw->wanted))
		return;
	gw->wanted = true;
	lnx_ep_due(gw->all->ep, LNX_DUE_GATEWAYS, 0);
}

/* The envelope of a frame of len bytes to that end.  NULL: not now. */
static struct lnx_leg_op *envelope(struct lnx_leg *leg, fi_addr_t dest, size_t len,
				   struct lnx_op *frame)
{
	const struct lnx_gateways *all = leg->gw->all;
	struct lnx_route_env env = {
		.hops_left = all->hops, .account = leg->gw->process->state.account, .key = all->key,
		.len = (uint32_t)len, .rail = leg->end[dest].to,
	};
	struct lnx_leg_op *o;

	if (lnx_unlikely(leg->end[dest].closed))
		return NULL;
	want(leg->gw);			/* the first hello leaves with it */
	if (!has_core(leg->rail.below))
		return NULL;
	o = op_get(leg, frame);
	if (o)
		lnx_route_put(o->bytes, &env);
	return o;
}

static void sent(struct lnx_leg *leg, size_t len)
{
	leg->sent_frames++;
	leg->sent_bytes += len;
}

static ssize_t leg_inject(struct fid_ep *core, const void *buf, size_t len, fi_addr_t dest)
{
	struct lnx_leg *leg = leg_of_ep(core);
	struct lnx_leg_op *o = envelope(leg, dest, len, NULL);
	ssize_t ret;

	if (!o)
		return -FI_EAGAIN;
	memcpy(o->bytes + LNX_ROUTE_HEAD, buf, len);
	ret = post_copy(leg, o, LNX_ROUTE_HEAD + len);
	if (!ret)
		sent(leg, len);
	return ret;
}

static ssize_t leg_sendv(struct fid_ep *core, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t dest, void *context)
{
	struct lnx_leg *leg = leg_of_ep(core);
	struct lnx_rail *below = leg->rail.below;
	struct iovec all[2 + LNX_IOV_MAX];
	struct lnx_leg_op *o;
	size_t i, len = 0;
	ssize_t ret;

	(void)desc;
	if (count >= LNX_ARRAY_SIZE(all))
		return -FI_EINVAL;
	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	o = envelope(leg, dest, len, context);
	if (!o)
		return -FI_EAGAIN;
	all[0] = (struct iovec){ .iov_base = o->bytes, .iov_len = LNX_ROUTE_HEAD };
	memcpy(&all[1], iov, count * sizeof(*iov));
	below->poll_credits = below->ep->poll_credits;
	/* It may end inside the call. */
	ret = lnx_rail_send(below, all, count + 1, leg->gateway, &o->op);
	if (ret) {
		op_put(o);
		return ret;
	}
	sent(leg, len);
	lnx_rail_op_ended(&leg->rail);	/* the rail below has it */
	return 0;
}

static ssize_t leg_send(struct fid_ep *core, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	(void)desc;
	return leg_sendv(core, &iov, NULL, 1, dest, context);
}

/* ---- how long frames are ---- */

/* Is that rail in a net that the gateway has a rail in? */
static bool on_its_nets(const struct lnx_gw_process *process, const struct lnx_addr_rail *to)
{
	unsigned i;

	for (i = 0; i < process->rails.n; i++)
		if (process->rails.rail[i].prov == to->prov &&
		    process->rails.rail[i].group == to->group)
			return true;
	return false;
}

/* Without the envelope, and of frames that fit so many bytes with it. */
static uint32_t without_envelope(const struct lnx_leg *leg, uint32_t bytes)
{
	bytes = LNX_MIN(bytes, leg->rail.below->frame_max);
	return LNX_MAX(bytes, LNX_ROUTE_HEAD + (uint32_t)LNX_FRAME_MAX) - LNX_ROUTE_HEAD;
}

uint32_t lnx_leg_frame_max(struct lnx_leg *leg, fi_addr_t end)
{
	const struct lnx_gw_process *process = leg->gw->process;

	if (!process->frame_max) {
		want(leg->gw);
		return 0;
	}
	if (!process->says_behind)
		return LNX_FRAME_MAX;
	if (on_its_nets(process, &leg->end[end].to))
		return without_envelope(leg, process->frame_max);
	return without_envelope(leg, LNX_MIN(process->frame_max, process->behind));
}

size_t lnx_leg_piece_max(struct lnx_leg *leg, fi_addr_t end)
{
	const struct lnx_gw_process *process = leg->gw->process;
	uint32_t max = process->says_behind ? lnx_leg_frame_max(leg, end) :
					     without_envelope(leg, process->frame_max);

	return LNX_MAX(max, (uint32_t)LNX_FRAME_MAX) - sizeof(struct lnx_wire_hdr);
}

/* ---- frames outside the sequence ---- */

ssize_t lnx_leg_piece(struct lnx_leg *leg, fi_addr_t dest, const void *header,
		      const void *payload, size_t len)
{
	struct lnx_gateways *all = leg->gw->all;
	struct lnx_rail *below = leg->rail.below;
	struct lnx_route_env env = {
		.hops_left = all->hops, .account = leg->gw->process->state.account, .key = all->key,
		.len = (uint32_t)(sizeof(struct lnx_wire_hdr) + len),
		.rail = leg->end[dest].to,
	};
	struct iovec iov;
	struct lnx_leg_op *o;
	ssize_t ret;

	if (!has_core(below))
		return -FI_EAGAIN;
	o = lnx_pool_get(&all->piece_pool);
	if (!o)
		return -FI_EAGAIN;
	o->op.type = LNX_OP_LEG;
	o->frame = NULL;
	o->piece = leg;
	o->below = below;
	leg->n_pieces++;
	lnx_list_init(&o->link);
	lnx_list_add_tail(&all->ops, &o->link);
	lnx_route_put(o->bytes, &env);
	memcpy(o->bytes + LNX_ROUTE_HEAD, header, sizeof(struct lnx_wire_hdr));
	memcpy(o->bytes + LNX_ROUTE_HEAD + sizeof(struct lnx_wire_hdr), payload, len);
	iov = (struct iovec){ .iov_base = o->bytes, .iov_len = LNX_ROUTE_HEAD + env.len };
	below->poll_credits = below->ep->poll_credits;
	ret = lnx_rail_send(below, &iov, 1, leg->gateway, &o->op);
	if (ret)
		op_put(o);
	else
		sent(leg, env.len);
	return ret;
}

/* ---- remote memory ---- */

static ssize_t leg_read(struct fid_ep *core, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	struct lnx_leg *leg = leg_of_ep(core);

	(void)desc, (void)src, (void)addr, (void)key;
	return leg->rail.ep->up->routed_read(&leg->rail, buf, len, context);
}

static ssize_t leg_writemsg(struct fid_ep *core, const struct fi_msg_rma *msg, uint64_t flags)
{
	(void)core, (void)msg, (void)flags;
	return -FI_ENOSYS;
}

/* ---- the AV: ends ---- */

static int leg_meet(struct fid_av *av, const void *addr, size_t count, fi_addr_t *out,
		    uint64_t flags, void *context)
{
	struct lnx_leg *leg = leg_of_av(av);
	const struct lnx_addr_rail *to = context;
	uint8_t bytes[LNX_ROUTE_RAIL_BYTES];
	struct lnx_leg_end *end;
	unsigned i;

	(void)addr, (void)flags;
	if (count != 1 || !to || lnx_route_rail_put(bytes, to))
		return -FI_EINVAL;
	for (i = 0; i < leg->nend && leg->end[i].used; i++)
		;
	if (i == leg->nend) {
		unsigned n = leg->nend ? 2 * leg->nend : 4;

		end = realloc(leg->end, n * sizeof(*end));
		if (!end)
			return -FI_ENOMEM;
		memset(end + leg->nend, 0, (n - leg->nend) * sizeof(*end));
		leg->end = end;
		leg->nend = n;
	}
	leg->end[i] = (struct lnx_leg_end){ .used = true, .to = *to };
	*out = i;
	return 1;
}

static int leg_forget(struct fid_av *av, fi_addr_t *addr, size_t count, uint64_t flags)
{
	struct lnx_leg *leg = leg_of_av(av);

	(void)flags;
	if (count == 1 && *addr < leg->nend)
		leg->end[*addr].used = false;
	return 0;
}

static int leg_look_up(struct fid_av *av, fi_addr_t addr, void *out, size_t *len)
{
	const struct lnx_leg *leg = leg_of_av(av);
	const struct lnx_leg_end *end;

	if (addr >= leg->nend || !leg->end[addr].used)
		return -FI_EINVAL;
	end = &leg->end[addr];
	memcpy(out, end->to.raw, LNX_MIN(*len, (size_t)end->to.rawlen));
	*len = end->to.rawlen;
	return 0;
}

/* ---- opening and closing ---- */

static struct fi_ops_msg leg_msg = {
	.size = sizeof(struct fi_ops_msg),
	.send = leg_send,
	.sendv = leg_sendv,
	.inject = leg_inject,
};
static struct fi_ops_rma leg_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = leg_read,
	.writemsg = leg_writemsg,
};
static struct fi_ops_av leg_av = {
	.size = sizeof(struct fi_ops_av),
	.insert = leg_meet,
	.remove = leg_forget,
	.lookup = leg_look_up,
};

void lnx_leg_granted(struct lnx_leg *leg, uint32_t grant)
{
	uint64_t rest = (uint64_t)grant * 3 / 8;

	leg->rail.peer_credits_max = (uint32_t)LNX_MAX((uint64_t)grant * 5 / 8, 1u);
	leg->asked_max = rest > 2 ? (uint32_t)LNX_MIN(rest - 2, LNX_LEG_ASKED_MAX) : 1;
}

/* What paths see: the rail below, with less room for a frame. */
static int shape(struct lnx_leg *leg, const struct lnx_rail *below, const char *to)
{
	struct lnx_rail *rail = &leg->rail;
	struct fi_tx_attr *tx;

	rail->info = fi_dupinfo(below->info);
	if (!rail->info)
		return -FI_ENOMEM;
	tx = rail->info->tx_attr;
	tx->iov_limit = LNX_MIN(tx->iov_limit, 1u + LNX_IOV_MAX + 1u);
	if (tx->iov_limit < 2 || below->frame_max < LNX_FRAME_MAX + LNX_ROUTE_HEAD)
		return -FI_ENOSYS;
	tx->iov_limit--;
	rail->ep = below->ep;
	rail->driver = below->driver;
	rail->kind = below->kind;
	rail->prov = below->prov;
	rail->group = below->group;
	rail->wire_index = below->wire_index;
	rail->link_bps = below->link_bps;
	rail->first_port = below->first_port;
	rail->link_down = below->link_down;
	rail->numa = below->numa;
	/* Those that are made for this leg are no longer than lnx_leg_frame_max().  But one that
	 * was made for another way, which is gone, has to leave, and gateways forward what their
	 * rails carry. */
	rail->frame_max = below->frame_max - LNX_ROUTE_HEAD;
	rail->inject_size = LNX_LEG_COPY;
	lnx_leg_granted(lnx_container_of(rail, struct lnx_leg, rail), LNX_LEG_GRANT);
	lnx_list_init(&rail->delayed);
	rail->wait_fd = -1;
	/* It is never opened anew by itself. */
	rail->mr_endpoint = true;
	memcpy(rail->addr, below->addr, sizeof(rail->addr));
	rail->addrlen = below->addrlen;
	lnx_list_init(&rail->bufs);
	lnx_list_init(&rail->regs);
	lnx_list_init(&rail->clones);
	lnx_health_init(&rail->health);
	snprintf(rail->name, sizeof(rail->name), "%.*s>%.*s", LNX_NAME_MAX - 2, below->name,
		 LNX_NAME_MAX - 2, to);
	return 0;
}

int lnx_leg_open(struct lnx_gw *gw, struct lnx_rail *below, const struct lnx_addr_rail *at,
		 struct lnx_leg **out)
{
	struct lnx_leg *leg = lnx_lines_get(sizeof(*leg));
	char to[LNX_NID_TEXT_MAX];
	int ret;

	if (!leg)
		return -FI_ENOMEM;
	leg->gw = gw;
	leg->rail.below = below;
	lnx_nid_print(&gw->nid, to, sizeof(to));
	ret = shape(leg, below, to);
	if (!ret)
		ret = lnx_rail_meet(below, at, &leg->gateway);
	if (ret) {
		lnx_leg_close(leg);
		return ret;
	}
	leg->core_ep.msg = &leg_msg;
	leg->core_ep.rma = &leg_rma;
	leg->av.ops = &leg_av;
	leg->rail.core_ep = &leg->core_ep;
	leg->rail.short_frame = lnx_rail_short_frame(&leg->rail);
	leg->rail.av = &leg->av;
	*out = leg;
	return 0;
}

void lnx_leg_close(struct lnx_leg *leg)
{
	fi_freeinfo(leg->rail.info);
	free(leg->end);
	free(leg);
}

LNX_COLD bool lnx_leg_cut(struct lnx_leg *leg, uint64_t since_ns)
{
	/* One that reads has let go of all that it has read. */
	if (leg->gw->heard_ns > since_ns)
		return false;
	return lnx_half_open_cut(leg->rail.below, leg->gateway);
}

size_t lnx_leg_op_size(bool piece)
{
	return piece ? offsetof(struct lnx_leg_op, bytes) + LNX_FRAME_LARGE :
		       sizeof(struct lnx_leg_op);
}
