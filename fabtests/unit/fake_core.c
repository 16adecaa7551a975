/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core half of fake_core.h: the provider calls that lnx makes.  The world
 * around it is in fake_world.c.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "fake_inside.h"

#define CORE_OF(ptr, member) \
	lnx_container_of(ptr, struct fake_core, member)

/* Counts down; true while this call has to do what the script says. */
static bool scripted(uint32_t *n)
{
	if (!*n)
		return false;
	if (*n != FAKE_ALWAYS)
		--*n;
	return true;
}

/* volatile: otherwise a compiler assumes that allocation does not read it. */
volatile bool fake_allocating;

static void *zalloc(size_t size)
{
	void *mem;

	size = (size + 63) & ~(size_t)63;
	fake_allocating = true;
	mem = aligned_alloc(64, size);
	fake_allocating = false;
	FAKE_CHECK(mem);
	return memset(mem, 0, size);
}

/* ---- operations and their completions ---- */

static void append(struct fake_op ***end, struct fake_op *op)
{
	op->next = NULL;
	**end = op;
	*end = &op->next;
}

static struct fake_op *unlink_op(struct fake_op **at, struct fake_op ***end)
{
	struct fake_op *op = *at;

	if (!op)
		return NULL;
	*at = op->next;
	if (*end == &op->next)
		*end = at;
	return op;
}

static struct fake_op *op_new(uint64_t flags, void *context)
{
	struct fake_op *op = zalloc(sizeof(*op));

	op->flags = flags;
	op->context = context;
	return op;
}

/* Done when the operation completes: until then the remote memory may change. */
static void serve_rma(struct fake_core *core, struct fake_op *op)
{
	bool write = op->flags & FI_WRITE;
	unsigned i;

	for (i = 0; i < core->nregion; i++) {
		uint64_t off = op->raddr - core->region[i].base;

		if (core->region[i].key != op->key)
			continue;
		if (off > core->region[i].len ||
		    op->len > core->region[i].len - off ||
		    (write && !core->region[i].rw))
			break;
		if (write)
			memcpy(core->region[i].mem + off, op->buf, op->len);
		else
			memcpy(op->buf, core->region[i].mem + off, op->len);
		return;
	}
	op->err = FI_EACCES;
}

static void complete(struct fake_core *core, struct fake_op *op)
{
	if ((op->flags & FI_RMA) && !op->err)
		serve_rma(core, op);
	append(&core->done_end, op);
}

static void take_op(struct fake_core *core, struct fake_op *op, bool hold)
{
	if (hold)
		append(&core->out_end, op);
	else
		complete(core, op);
}

unsigned fake_held(const struct fake_core *core)
{
	const struct fake_op *op;
	unsigned n = 0;

	for (op = core->out; op; op = op->next)
		n++;
	return n;
}

void fake_finish(struct fake_core *core, unsigned i, int err)
{
	struct fake_op **at = &core->out, *op;

	while (i-- && *at)
		at = &(*at)->next;
	op = unlink_op(at, &core->out_end);
	FAKE_CHECK(op);
	if (err)
		op->err = err;
	complete(core, op);
}

void fake_finish_all(struct fake_core *core)
{
	while (core->out)
		fake_finish(core, 0, 0);
}

void fake_region(struct fake_core *core, uint64_t key, uint64_t base,
		 const void *mem, size_t len)
{
	FAKE_CHECK(core->nregion < LNX_ARRAY_SIZE(core->region));
	core->region[core->nregion].key = key;
	core->region[core->nregion].base = base;
	core->region[core->nregion].mem = (void *)mem;
	core->region[core->nregion].rw = false;
	core->region[core->nregion++].len = len;
}

void fake_region_rw(struct fake_core *core, uint64_t key, uint64_t base,
		    void *mem, size_t len)
{
	fake_region(core, key, base, mem, len);
	core->region[core->nregion - 1].rw = true;
}

/* ---- sending ---- */

uint8_t fake_last_kind;
size_t fake_rxm_buffer;

/* The longest message that the core carries well. */
static size_t longest(const struct fake_core *core)
{
	return core->kind == LNX_RAIL_PLAIN ? LNX_FRAME_LARGE :
	       fake_rxm_buffer ? fake_rxm_buffer : LNX_FRAME_MAX;
}

/* What is for a gateway is noted, and not among what was sent.  Of a frame in an envelope
 * the frame is left. */
static bool routed(struct fake_core *core, struct fake_sent *s)
{
	switch (lnx_route_kind(s->bytes, s->len)) {
	case 0:
		return false;
	case LNX_ROUTE_FRAME:
		FAKE_CHECK(!lnx_route_get(&core->env, s->bytes, s->len, NULL));
		core->nrouted++;
		s->len -= LNX_ROUTE_HEAD;
		memmove(s->bytes, s->bytes + LNX_ROUTE_HEAD, s->len);
		return false;
	case LNX_ROUTE_GW_HELLO:
		FAKE_CHECK(!lnx_wire_gw_hello_get(&core->hello, s->bytes, s->len, NULL));
		core->nhellos++;
		core->nonce[s->dest % FAKE_GATEWAYS] = core->hello.nonce;
		break;
	default:
		FAKE_CHECK(!lnx_wire_gw_ask_get(&core->ask, s->bytes, s->len, NULL));
		core->nasks++;
		break;
	}
	free(s);
	return true;
}

/* A question to a gateway, which the script refuses. */
static bool refuses_ask(struct fake_core *core, const void *bytes, size_t len)
{
	return core->ask_again && lnx_route_kind(bytes, len) == LNX_ROUTE_GW_ASK &&
	       scripted(&core->ask_again);
}

/* PULL and PIECE, which are valid between the ends of routed paths only. */
static bool pulls(struct fake_sent *s)
{
	const struct lnx_wire_hdr *w = (const void *)s->bytes;
	struct lnx_route_pull p;

	if (lnx_route_pull_get(&p, s->bytes, s->len, NULL))
		return false;
	s->h = (struct lnx_hdr){ .kind = w->kind, .src = p.src, .dst = p.dst, .seq = p.segment,
				 .tag = p.offset, .data = p.id, .len = p.len, .key = p.key,
				 .ack = p.most | (uint32_t)p.way << LNX_PULL_WAY_SHIFT };
	return true;
}

static void note_sent(struct fake_core *core, const char *call,
		      const struct iovec *iov, size_t niov, fi_addr_t dest,
		      uint64_t tag, uint64_t data, uint64_t flags, bool inject,
		      void *context)
{
	struct fake_sent *s;
	size_t i, len = 0;

	for (i = 0; i < niov; i++)
		len += iov[i].iov_len;
	s = zalloc(sizeof(*s) + len);
	s->call = call;
	s->dest = dest;
	s->inject = inject;
	s->tag = tag;
	s->data = data;
	s->flags = flags;
	s->context = context;
	s->len = len;
	for (i = 0, len = 0; i < niov; i++) {
		if (iov[i].iov_len)
			memcpy(s->bytes + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	if (core->kind != LNX_RAIL_DIRECT && routed(core, s))
		return;
	/* Every frame that leaves on a framed rail is valid. */
	if (core->kind != LNX_RAIL_DIRECT)
		FAKE_CHECK((pulls(s) || !lnx_hdr_get(&s->h, s->bytes, s->len)) &&
			   s->len <= longest(core));
	fake_last_kind = s->h.kind;
	*core->sent_end = s;
	core->sent_end = &s->next;
}

static void poll_peer(struct fake_core *core);

/* Is the address in the AV? */
static bool known(const struct fake_core *core, fi_addr_t addr)
{
	return addr < core->nav &&
	       (addr >= FAKE_AV_NAMES || !core->av_gone[addr]);
}

/* PROBE and PONG may leave at any time. */
static bool asks(const void *frame)
{
	uint8_t kind = ((const struct lnx_wire_hdr *)frame)->kind;

	return kind == LNX_KIND_PROBE || kind == LNX_KIND_PONG;
}

/* The last one stays in core->latency. */
static bool asks_latency(struct fake_core *core, const void *frame, size_t len)
{
	struct lnx_hdr h;

	if (((const struct lnx_wire_hdr *)frame)->kind != LNX_KIND_PROBE ||
	    lnx_hdr_get(&h, frame, len) || !(h.data & LNX_WIRE_PROBE_LATENCY))
		return false;
	core->latency = h;
	core->latencies[core->nlatency++ % FAKE_LATENCIES] = h;
	return true;
}

/* The same, and what becomes of it in *ret: tests that do not look at these need not know that
 * they leave. */
static bool latency_left(struct fake_core *core, const void *frame, size_t len, ssize_t *ret)
{
	if (core->kind == LNX_RAIL_DIRECT || !asks_latency(core, frame, len))
		return false;
	*ret = 0;
	if (scripted(&core->latency_again)) {
		core->nlatency--;
		core->nrefused_latency++;
		*ret = -FI_EAGAIN;
	}
	return true;
}

static bool deaf_to(const struct fake_core *core, fi_addr_t dest)
{
	return dest < 8 * sizeof(core->deaf) && core->deaf >> dest & 1;
}

static ssize_t post_send(struct fid_ep *fid, const char *call,
			 const struct iovec *iov, size_t niov, fi_addr_t dest,
			 uint64_t tag, uint64_t data, uint64_t flags,
			 void *context)
{
	struct fake_core *core = CORE_OF(fid, ep);
	struct fake_op *op;
	ssize_t ret;

	FAKE_CHECK(core->enabled && known(core, dest));
	if (deaf_to(core, dest))
		return -FI_EAGAIN;
	if (niov == 1 && latency_left(core, iov->iov_base, iov->iov_len, &ret)) {
		if (!ret) {
			core->nsend++;
			take_op(core, op_new(FI_SEND | FI_MSG, context), core->hold_sends);
		}
		return ret;
	}
	if (core->poll_in_send)
		poll_peer(core);
	if (core->in_send)
		core->in_send();
	if (niov == 1 && refuses_ask(core, iov->iov_base, iov->iov_len))
		return -FI_EAGAIN;
	if (scripted(&core->send_again)) {
		core->nrefused++;
		fake_now_ns += core->refuse_ns;
		return core->refuse_err ? core->refuse_err : -FI_EAGAIN;
	}
	core->nsend++;
	note_sent(core, call, iov, niov, dest, tag, data, flags, false,
		  context);
	op = op_new(FI_SEND | (call[3] == 't' ? FI_TAGGED : FI_MSG),
		    context);
	if (scripted(&core->send_fails))
		op->err = FI_EIO;
	take_op(core, op, core->hold_sends);
	return 0;
}

static ssize_t post_inject(struct fid_ep *fid, const char *call,
			   const void *buf, size_t len, fi_addr_t dest,
			   uint64_t tag, uint64_t data)
{
	struct fake_core *core = CORE_OF(fid, ep);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	ssize_t ret;

	FAKE_CHECK(core->enabled && known(core, dest));
	if (deaf_to(core, dest))
		return -FI_EAGAIN;
	if (latency_left(core, buf, len, &ret))
		return ret;
	if (refuses_ask(core, buf, len))
		return -FI_EAGAIN;
	if (core->in_inject && !asks(buf)) {
		core->in_inject();
		poll_peer(core);
	}
	if (scripted(&core->inject_again)) {
		core->nrefused++;
		fake_now_ns += core->refuse_ns;
		return core->refuse_err ? core->refuse_err : -FI_EAGAIN;
	}
	core->ninject++;
	note_sent(core, call, &iov, 1, dest, tag, data, 0, true, NULL);
	return 0;
}

#define ONE(buf, len) \
	&(struct iovec) { .iov_base = (void *)(buf), .iov_len = (len) }, 1

static ssize_t core_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, void *context)
{
	(void)desc;
	return post_send(ep, "fi_send", ONE(buf, len), dest, 0, 0, 0, context);
}

static ssize_t core_sendv(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  void *context)
{
	(void)desc;
	return post_send(ep, "fi_sendv", iov, count, dest, 0, 0, 0, context);
}

static ssize_t core_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	return post_send(ep, "fi_sendmsg", msg->msg_iov, msg->iov_count,
			 msg->addr, 0, msg->data, flags, msg->context);
}

static ssize_t core_inject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t dest)
{
	return post_inject(ep, "fi_inject", buf, len, dest, 0, 0);
}

static ssize_t core_senddata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     void *context)
{
	(void)desc;
	return post_send(ep, "fi_senddata", ONE(buf, len), dest, 0, data, 0,
			 context);
}

static ssize_t core_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			       uint64_t data, fi_addr_t dest)
{
	return post_inject(ep, "fi_injectdata", buf, len, dest, 0, data);
}

static ssize_t core_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			 fi_addr_t src, void *context)
{
	struct fake_core *core = CORE_OF(fid, ep);
	struct fake_op *op;

	(void)desc;
	FAKE_CHECK(core->kind == LNX_RAIL_PLAIN && src == FI_ADDR_UNSPEC &&
		   core->enabled);
	core->nrecv++;
	if (scripted(&core->recv_again))
		return -FI_EAGAIN;
	op = op_new(FI_RECV | FI_MSG, context);
	op->buf = buf;
	op->len = len;
	append(&core->posted_end, op);
	core->nposted++;
	return 0;
}

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = core_recv,
	.send = core_send,
	.sendv = core_sendv,
	.sendmsg = core_sendmsg,
	.inject = core_inject,
	.senddata = core_senddata,
	.injectdata = core_injectdata,
};

static struct fi_ops_msg enabled_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = core_recv,
	.send = core_send,
	.sendv = core_sendv,
	.sendmsg = core_sendmsg,
	.inject = core_inject,
	.senddata = core_senddata,
	.injectdata = core_injectdata,
};

static ssize_t core_tsend(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest, uint64_t tag,
			  void *context)
{
	(void)desc;
	return post_send(ep, "fi_tsend", ONE(buf, len), dest, tag, 0, 0,
			 context);
}

static ssize_t core_tsendv(struct fid_ep *ep, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest,
			   uint64_t tag, void *context)
{
	(void)desc;
	return post_send(ep, "fi_tsendv", iov, count, dest, tag, 0, 0, context);
}

static ssize_t core_tsendmsg(struct fid_ep *ep,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	return post_send(ep, "fi_tsendmsg", msg->msg_iov, msg->iov_count,
			 msg->addr, msg->tag, msg->data, flags, msg->context);
}

static ssize_t core_tinject(struct fid_ep *ep, const void *buf, size_t len,
			    fi_addr_t dest, uint64_t tag)
{
	return post_inject(ep, "fi_tinject", buf, len, dest, tag, 0);
}

static ssize_t core_tsenddata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, uint64_t data, fi_addr_t dest,
			      uint64_t tag, void *context)
{
	(void)desc;
	return post_send(ep, "fi_tsenddata", ONE(buf, len), dest, tag, data, 0,
			 context);
}

static ssize_t core_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
				uint64_t data, fi_addr_t dest, uint64_t tag)
{
	return post_inject(ep, "fi_tinjectdata", buf, len, dest, tag, data);
}

static struct fi_ops_tagged tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.send = core_tsend,
	.sendv = core_tsendv,
	.sendmsg = core_tsendmsg,
	.inject = core_tinject,
	.senddata = core_tsenddata,
	.injectdata = core_tinjectdata,
};

/* ---- remote memory ---- */

static ssize_t post_rma(struct fid_ep *fid, uint64_t flags, void *buf,
			size_t len, fi_addr_t peer, uint64_t addr, uint64_t key,
			void *context)
{
	struct fake_core *core = CORE_OF(fid, ep);
	struct fake_op *op;

	FAKE_CHECK(core->enabled && known(core, peer));
	if (scripted(&core->read_again)) {
		core->nrefused_reads++;
		return core->refuse_err ? core->refuse_err : -FI_EAGAIN;
	}
	*(flags & FI_READ ? &core->nread : &core->nwrite) += 1;
	op = op_new(flags | FI_RMA, context);
	op->buf = buf;
	op->len = len;
	op->raddr = addr;
	op->key = key;
	if (scripted(&core->read_fails))
		op->err = FI_EIO;
	take_op(core, op, core->hold_reads);
	return 0;
}

static ssize_t core_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src, uint64_t addr, uint64_t key,
			 void *context)
{
	(void)desc;
	return post_rma(ep, FI_READ, buf, len, src, addr, key, context);
}

static ssize_t core_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     uint64_t flags)
{
	FAKE_CHECK(msg->iov_count == 1 && msg->rma_iov_count == 1 &&
		   msg->msg_iov->iov_len == msg->rma_iov->len);
	/* With fewer flags a completion says nothing about the target. */
	FAKE_CHECK(flags & FI_DELIVERY_COMPLETE);
	return post_rma(ep, FI_WRITE, msg->msg_iov->iov_base,
			msg->msg_iov->iov_len, msg->addr, msg->rma_iov->addr,
			msg->rma_iov->key, msg->context);
}

static struct fi_ops_rma rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = core_read,
	.writemsg = core_writemsg,
};

/* ---- arrivals ---- */

static struct fake_arrival *arrival_new(struct fake_core *core,
					const void *bytes, size_t len)
{
	struct fake_arrival *a = zalloc(sizeof(*a) + len);

	a->len = len;
	if (len)
		memcpy(a->bytes, bytes, len);
	*core->in_end = a;
	core->in_end = &a->next;
	return a;
}

void fake_arrive(struct fake_core *core, const void *bytes, size_t len)
{
	FAKE_CHECK(core->kind != LNX_RAIL_DIRECT);
	arrival_new(core, bytes, len);
}

void fake_direct(struct fake_core *core, bool tagged, fi_addr_t src,
		 uint64_t tag, const uint64_t *data, const void *buf,
		 size_t len)
{
	struct fake_arrival *a;

	FAKE_CHECK(core->kind == LNX_RAIL_DIRECT);
	a = arrival_new(core, buf, len);
	a->tagged = tagged;
	a->src = src;
	a->tag = tag;
	a->has_data = data != NULL;
	a->data = data ? *data : 0;
}

static struct fake_arrival *pop_arrival(struct fake_core *core)
{
	struct fake_arrival *a = core->in;

	if (a) {
		core->in = a->next;
		if (!core->in)
			core->in_end = &core->in;
	}
	return a;
}

/* Store a message where entry says, and report it, as a peer provider does. */
static void fill_entry(struct fake_core *core, struct fi_peer_rx_entry *entry,
		       struct fake_arrival *a)
{
	size_t i, done = 0;

	for (i = 0; i < entry->count && done < a->len; i++) {
		size_t n = LNX_MIN(entry->iov[i].iov_len, a->len - done);

		core->buffer_max = LNX_MAX(core->buffer_max, entry->iov[i].iov_len);
		if (n)
			memcpy(entry->iov[i].iov_base, a->bytes + done, n);
		done += n;
	}
	/* Cores may crash when they truncate, so they must never have to. */
	FAKE_CHECK(done == a->len || core->may_truncate);
	core->peer_cq->owner_ops->write(core->peer_cq, entry->context,
		entry->flags | (a->has_data ? FI_REMOTE_CQ_DATA : 0), done,
		entry->count ? entry->iov[0].iov_base : NULL, a->data, a->tag,
		a->src);
	core->peer_srx->owner_ops->free_entry(entry);
	free(a);
}

static int start(struct fi_peer_rx_entry *entry)
{
	struct fake_arrival *a = entry->peer_context, **at;
	struct fake_core *core = a->core;

	for (at = &core->kept; *at != a; at = &(*at)->next)
		FAKE_CHECK(*at);
	*at = a->next;
	core->nstart++;
	fill_entry(core, entry, a);
	return 0;
}

static int discard(struct fi_peer_rx_entry *entry)
{
	(void)entry;
	FAKE_CHECK(!"lnx never calls discard");
	return -FI_ENOSYS;
}

static struct fi_ops_srx_peer srx_peer_ops = {
	.size = sizeof(struct fi_ops_srx_peer),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

/*
 * False when the pass has to end.  As in shm: a message that it cannot keep is
 * lost; an entry that cannot be queued is freed, but its message stays.
 */
static bool peer_arrival(struct fake_core *core, struct fake_arrival *a)
{
	struct fi_ops_srx_owner *ops = core->peer_srx->owner_ops;
	struct fi_peer_match_attr attr = {
		.addr = a->src, .msg_size = a->len, .tag = a->tag,
	};
	struct fi_peer_rx_entry *entry = NULL;
	int ret;

	ret = a->tagged ? ops->get_tag(core->peer_srx, &attr, &entry) :
			  ops->get_msg(core->peer_srx, &attr, &entry);
	FAKE_CHECK(entry && (!ret || ret == -FI_ENOENT));
	if (!ret) {
		fill_entry(core, entry, a);
		return true;
	}
	if (scripted(&core->keep_fails)) {
		ops->free_entry(entry);
		free(a);
		return false;
	}
	entry->peer_context = a;
	if (a->has_data) {
		entry->flags |= FI_REMOTE_CQ_DATA;
		entry->cq_data = a->data;
	}
	a->core = core;
	a->entry = entry;
	a->next = core->kept;
	core->kept = a;
	ret = a->tagged ? ops->queue_tag(entry) : ops->queue_msg(entry);
	if (!ret)
		return true;
	FAKE_CHECK(core->kind == LNX_RAIL_DIRECT && ret == -FI_EAGAIN);
	ops->free_entry(entry);
	return false;
}

/* ---- completion queue ---- */

static void poll_peer(struct fake_core *core)
{
	struct fake_arrival *a;
	struct fake_op *op;

	while ((op = unlink_op(&core->done, &core->done_end))) {
		if (op->err) {
			struct fi_cq_err_entry err = {
				.op_context = op->context, .flags = op->flags,
				.err = op->err, .prov_errno = op->err,
			};

			core->peer_cq->owner_ops->writeerr(core->peer_cq, &err);
		} else {
			core->peer_cq->owner_ops->write(core->peer_cq,
				op->context, op->flags, 0, NULL, 0, 0,
				FI_ADDR_NOTAVAIL);
		}
		free(op);
	}
	while ((a = pop_arrival(core)) && peer_arrival(core, a))
		;
}

static struct fake_op *take_posted(struct fake_core *core)
{
	core->nposted--;
	return unlink_op(&core->posted, &core->posted_end);
}

static void received(struct fake_core *core, struct fake_op *op, const void *bytes,
		     size_t len)
{
	if (len > op->len)
		op->err = FI_ETRUNC;
	op->len = LNX_MIN(op->len, len);
	if (op->len)
		memcpy(op->buf, bytes, op->len);
	append(&core->done_end, op);
}

/* Arrivals into posted buffers; those that find none wait in the network. */
static void match_posted(struct fake_core *core)
{
	if (core->late) {
		core->late--;
		return;
	}
	for (; core->stall && core->posted; core->stall--) {
		append(&core->stalled_end, take_posted(core));
		core->nstalled++;
	}
	while (core->in && core->posted) {
		struct fake_arrival *a = pop_arrival(core);

		received(core, take_posted(core), a->bytes, a->len);
		free(a);
	}
}

void fake_stall_end(struct fake_core *core, const void *bytes, size_t len)
{
	struct fake_op *op = unlink_op(&core->stalled, &core->stalled_end);

	FAKE_CHECK(op);
	core->nstalled--;
	received(core, op, bytes, len);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fake_core *core = CORE_OF(fid, cq);
	struct fi_cq_msg_entry *e = buf;
	size_t n;

	core->npolls++;
	if (core->kind != LNX_RAIL_PLAIN) {
		poll_peer(core);
		return -FI_EAGAIN;
	}
	match_posted(core);
	for (n = 0; n < count && core->done && !core->done->err; n++) {
		struct fake_op *op = unlink_op(&core->done, &core->done_end);

		e[n].op_context = op->context;
		e[n].flags = op->flags;
		e[n].len = op->len;
		free(op);
	}
	return n ? (ssize_t)n : core->done ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *err,
			  uint64_t flags)
{
	struct fake_core *core = CORE_OF(fid, cq);
	struct fake_op *op;

	(void)flags;
	if (!core->done || !core->done->err)
		return -FI_EAGAIN;
	op = unlink_op(&core->done, &core->done_end);
	memset(err, 0, sizeof(*err));
	err->op_context = op->context;
	err->flags = op->flags;
	err->err = op->err;
	err->prov_errno = op->err;
	free(op);
	return 1;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	return src ? -FI_ENOSYS : cq_read(fid, buf, count);
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
};

/* ---- the objects: all are parts of the core, which closing the fabric frees */

static int close_nothing(struct fid *fid)
{
	(void)fid;
	return 0;
}

/* Operations end without a report, or, with flush, with errors. */
static void end_ops(struct fake_core *core, struct fake_op **list,
		    struct fake_op ***end)
{
	struct fake_op *op;

	while ((op = unlink_op(list, end))) {
		op->err = FI_ECANCELED;
		if (core->flush)
			append(&core->done_end, op);
		else
			free(op);
	}
}

/* Entries that the core keeps return to their owner.  What is still in the
 * network, and has no other path, is lost. */
static int close_ep(struct fid *fid)
{
	struct fake_core *core = CORE_OF(fid, ep.fid);
	struct fake_arrival *a;

	/* As cores do: until fi_enable has replaced the calls they take the
	 * receive context that is bound for their own, and destroy it. */
	FAKE_CHECK(!core->srx_bound || core->ep.msg == &enabled_msg_ops);
	end_ops(core, &core->out, &core->out_end);
	end_ops(core, &core->posted, &core->posted_end);
	end_ops(core, &core->stalled, &core->stalled_end);
	core->nposted = core->nstalled = 0;
	while ((a = pop_arrival(core)))
		free(a);
	while ((a = core->kept)) {
		core->kept = a->next;
		core->peer_srx->owner_ops->free_entry(a->entry);
		free(a);
	}
	core->enabled = false;
	return 0;
}

static int bind_any(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return 0;
}

static int bind_ep(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fake_core *core = CORE_OF(fid, ep.fid);

	(void)flags;
	if (bfid == &core->srx.fid)
		core->srx_bound = true;
	return 0;
}

static int control_ep(struct fid *fid, int command, void *arg)
{
	struct fake_core *core = CORE_OF(fid, ep.fid);

	(void)arg;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (scripted(&core->enable_fails))
		return -FI_EADDRINUSE;
	core->ep.msg = &enabled_msg_ops;
	core->enabled = true;
	return 0;
}

static int control_none(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_nothing,
	.bind = bind_any,
	.control = control_none,
};

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_ep,
	.bind = bind_ep,
	.control = control_ep,
};

static int getname(fid_t fid, void *addr, size_t *len)
{
	return fake_own_name(CORE_OF(fid, ep.fid), addr, len);
}

static int setname(fid_t fid, void *addr, size_t len)
{
	(void)fid, (void)addr, (void)len;
	return 0;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = getname,
	.setname = setname,
};

/* ofi_rxm tells the size of its buffers in this way. */
static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	(void)fid;
	FAKE_CHECK(level == FI_OPT_ENDPOINT && name == FI_OPT_MIN_MULTI_RECV);
	FAKE_CHECK(*len >= sizeof(size_t));
	*(size_t *)val = fake_rxm_buffer ? fake_rxm_buffer : LNX_FRAME_MAX;
	*len = sizeof(size_t);
	return 0;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = ep_getopt,
};

static int av_insert(struct fid_av *av, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fake_core *core = CORE_OF(av, av);

	(void)flags, (void)context;
	FAKE_CHECK(count == 1);
	if (scripted(&core->av_fails))
		return -FI_ENOMEM;
	core->nav_in++;
	if (addr && core->nav < FAKE_AV_NAMES)
		memcpy(core->av_name[core->nav], addr, FAKE_NAME_BYTES);
	*fi_addr = core->nav++;
	return 1;
}

/* All addresses here are sockaddr_in. */
static int av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
		     size_t *len)
{
	struct fake_core *core = CORE_OF(av, av);

	if (fi_addr >= FAKE_AV_NAMES || !known(core, fi_addr))
		return -FI_EINVAL;
	memcpy(addr, core->av_name[fi_addr], LNX_MIN(*len, FAKE_NAME_BYTES));
	*len = FAKE_NAME_BYTES;
	return 0;
}

static int av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct fake_core *core = CORE_OF(av, av);

	(void)flags;
	FAKE_CHECK(count == 1 && known(core, *fi_addr));
	if (*fi_addr < FAKE_AV_NAMES)
		core->av_gone[*fi_addr] = true;
	core->nav_in--;
	return 0;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.remove = av_remove,
	.lookup = av_lookup,
};

static int mr_close(struct fid *fid)
{
	struct fake_core *core = fid->context;

	core->nmr_open--;
	free(lnx_container_of(fid, struct fid_mr, fid));
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
};

static int mr_reg(struct fid *fid, const void *buf, size_t len,
		  uint64_t access, uint64_t offset, uint64_t key,
		  uint64_t flags, struct fid_mr **out, void *context)
{
	struct fake_core *core = CORE_OF(fid, domain.fid);
	struct fid_mr *mr;

	(void)buf, (void)len, (void)offset, (void)flags, (void)context;
	FAKE_CHECK(access);
	if (core->poll_in_mr)
		poll_peer(core);
	if (scripted(&core->mr_fails))
		return -FI_ENOMEM;
	core->mr_key = key;
	if (scripted(&core->mr_taken))
		return -FI_ENOKEY;
	mr = zalloc(sizeof(*mr));
	mr->fid.fclass = FI_CLASS_MR;
	mr->fid.context = core;
	mr->fid.ops = &mr_fid_ops;
	mr->key = key;
	core->nmr++;
	core->nmr_open++;
	*out = mr;
	return 0;
}

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
};

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **av, void *context)
{
	struct fake_core *core = CORE_OF(domain, domain);

	(void)attr, (void)context;
	core->av.fid.ops = &fid_ops;
	core->av.ops = &av_ops;
	*av = &core->av;
	return 0;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **cq, void *context)
{
	struct fake_core *core = CORE_OF(domain, domain);

	if (attr->flags & FI_PEER)
		core->peer_cq = ((struct fi_peer_cq_context *)context)->cq;
	FAKE_CHECK(!core->peer_cq == (core->kind == LNX_RAIL_PLAIN));
	core->cq.fid.ops = &fid_ops;
	core->cq.ops = &cq_ops;
	*cq = &core->cq;
	return 0;
}

static int srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **srx, void *context)
{
	struct fake_core *core = CORE_OF(domain, domain);

	FAKE_CHECK(attr->op_flags & FI_PEER);
	core->peer_srx = ((struct fi_peer_srx_context *)context)->srx;
	core->peer_srx->peer_ops = &srx_peer_ops;
	core->srx.fid.ops = &fid_ops;
	*srx = &core->srx;
	return 0;
}

static int ep_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **ep, void *context)
{
	struct fake_core *core = CORE_OF(domain, domain);

	const struct sockaddr_in *in = info->src_addr;

	(void)context;
	FAKE_CHECK(!core->enabled);
	if (scripted(&core->ep_fails))
		return -FI_ENOMEM;
	core->port = FAKE_PORT + core->nopen++;
	core->network = in ? ntohl(in->sin_addr.s_addr) >> 8 & 0xff : 0;
	if (in && in->sin_port)
		core->port = ntohs(in->sin_port);
	core->ep.fid.ops = &ep_fid_ops;
	core->ep.ops = &ep_ops;
	core->ep.cm = &cm_ops;
	core->ep.msg = &msg_ops;
	core->srx_bound = false;
	core->ep.tagged = &tagged_ops;
	core->ep.rma = &rma_ops;
	*ep = &core->ep;
	return 0;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = ep_open,
	.srx_ctx = srx_open,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	struct fake_core *core = CORE_OF(fabric, fabric);

	(void)info, (void)context;
	core->domain.fid.ops = &fid_ops;
	core->domain.ops = &domain_ops;
	core->domain.mr = &mr_ops;
	*domain = &core->domain;
	return 0;
}

static void free_ops(struct fake_op *op)
{
	while (op) {
		struct fake_op *next = op->next;

		free(op);
		op = next;
	}
}

static int close_fabric(struct fid *fid)
{
	struct fake_core *core = CORE_OF(fid, fabric.fid);
	struct fake_sent *s;
	struct fake_arrival *a;

	FAKE_CHECK(!core->nmr_open);
	while ((s = core->sent)) {
		core->sent = s->next;
		free(s);
	}
	while ((a = pop_arrival(core)))
		free(a);
	free_ops(core->out);
	free_ops(core->done);
	free_ops(core->posted);
	free_ops(core->stalled);
	free(core);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = close_fabric,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
};

/* Replaces libfabric's: every rail is opened through it. */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	struct fake_core *core = zalloc(sizeof(*core));

	(void)context;
	FAKE_CHECK(attr->name);
	core->kind = !strcmp(attr->name, "direct") ? LNX_RAIL_DIRECT :
		     !strcmp(attr->name, "peer") ? LNX_RAIL_PEER :
		     LNX_RAIL_PLAIN;
	core->sent_end = &core->sent;
	core->out_end = &core->out;
	core->done_end = &core->done;
	core->posted_end = &core->posted;
	core->stalled_end = &core->stalled;
	core->in_end = &core->in;
	core->fabric.fid.fclass = FI_CLASS_FABRIC;
	core->fabric.fid.ops = &fabric_fid_ops;
	core->fabric.ops = &fabric_ops;
	*fabric = &core->fabric;
	return 0;
}
