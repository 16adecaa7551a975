/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations: every form of call, progress, and the accounting of completions. */
#include "ft.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

const char *const ft_send_names[] = {
	"send", "sendv", "sendmsg", "inject", "senddata", "injectdata"
};
const char *const ft_recv_names[] = { "recv", "recvv", "recvmsg" };

fi_addr_t ft_any(const struct ft *ft, int rank)
{
	return ft->run->directed ? ft->addr[rank] : FI_ADDR_UNSPEC;
}

struct ft_op *ft_op_new(struct ft *ft)
{
	struct ft_op *op;

	if (!ft->ops) {
		ft->ops = mmap(NULL, sizeof(*ft->ops) * FT_MAX_OPS,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);
		if (ft->ops == MAP_FAILED)
			ft_die(ft, "out of memory for operations");
	}
	if (ft->nops == FT_MAX_OPS)
		ft_die(ft, "more than %d operations in one case", FT_MAX_OPS);
	op = &ft->ops[ft->nops++];
	ft_op_reset(op);
	return op;
}

void ft_op_reset(struct ft_op *op)
{
	memset(op, 0, sizeof(*op));
	op->want = 1;
	op->src = FI_ADDR_NOTAVAIL;
}

void ft_ops_drop(struct ft *ft)
{
	size_t i;

	for (i = 0; i < ft->nops; i++)
		ft->ops[i].posted = false;
	ft->nops = 0;
	ft->unexpected[0] = '\0';
	ft->tx_seen = ft->rx_seen = ft->nevents = 0;
}

static struct ft_op *op_of(struct ft *ft, void *context)
{
	uintptr_t at = (uintptr_t)context, base = (uintptr_t)ft->ops;

	if (context && context == ft->kept)
		return context;
	if (!ft->ops || at < base || (at - base) % sizeof(struct ft_op) ||
	    (at - base) / sizeof(struct ft_op) >= ft->nops)
		return NULL;
	return context;
}

/* Caused by a peer's RMA?  Some providers report only the data. */
static bool is_event(uint64_t flags)
{
	if (flags & (FI_REMOTE_WRITE | FI_REMOTE_READ))
		return true;
	return (flags & FI_REMOTE_CQ_DATA) &&
	       !(flags & (FI_RECV | FI_SEND | FI_WRITE | FI_READ));
}

static void event(struct ft *ft, const struct fi_cq_tagged_entry *e,
		  fi_addr_t src)
{
	struct ft_event *ev = &ft->events[ft->nevents++ % FT_MAX_EVENTS];

	ev->flags = e->flags;
	ev->data = e->data;
	ev->len = e->len;
	ev->src = src;
}

/* err: 0, or that of an error entry. */
static struct ft_op *account(struct ft *ft, void *context, uint64_t flags, int err)
{
	struct ft_op *op = op_of(ft, context);

	if (flags & FI_SEND)
		ft->tx_seen++;
	if (flags & FI_RECV)
		ft->rx_seen++;
	if (op && op->posted && (!op->want || op->done < op->want)) {
		op->done++;
		return op;
	}
	if (ft->unexpected[0])
		return NULL;
	snprintf(ft->unexpected, sizeof(ft->unexpected),
		 "a completion with context %p, flags %#llx and error %d that belongs to %s",
		 context, (unsigned long long)flags, err, !op ? "no operation" :
		 !op->posted ? "an operation that was not started" :
		 "an operation that was complete already");
	if (op && op->posted)
		snprintf(ft->unexpected + strlen(ft->unexpected),
			 sizeof(ft->unexpected) - strlen(ft->unexpected),
			 ", with flags %#llx and error %d",
			 (unsigned long long)op->flags, op->err);
	return NULL;
}

static void complete(struct ft *ft, const void *entry, fi_addr_t src)
{
	const struct fi_cq_tagged_entry *e = entry;
	enum fi_cq_format format = ft->cfg.format ? ft->cfg.format :
				   FI_CQ_FORMAT_TAGGED;
	struct ft_op *op;

	if (format >= FI_CQ_FORMAT_MSG && is_event(e->flags)) {
		event(ft, e, src);
		return;
	}
	/* Each format is the beginning of the next one, so a larger one can be read. */
	op = account(ft, e->op_context, format >= FI_CQ_FORMAT_MSG ?
		     e->flags : 0, 0);
	if (!op)
		return;
	op->src = src;
	if (format >= FI_CQ_FORMAT_MSG) {
		op->flags = e->flags;
		op->len = e->len;
	}
	if (format >= FI_CQ_FORMAT_DATA) {
		op->buf = e->buf;
		op->data = e->data;
	}
	if (format >= FI_CQ_FORMAT_TAGGED)
		op->tag = e->tag;
	if (op->hook)
		op->hook(ft, op);
}

static int read_error(struct ft *ft)
{
	struct fi_cq_err_entry ee = { 0 };
	struct ft_op *op;
	ssize_t ret;

	ret = fi_cq_readerr(ft->o.cq, &ee, 0);
	if (ret != 1) {
		if (!ft->unexpected[0])
			snprintf(ft->unexpected, sizeof(ft->unexpected),
				 "fi_cq_readerr returned %zd after "
				 "-FI_EAVAIL", ret);
		return ret < 0 ? (int)ret : -FI_EOTHER;
	}
	if (!ee.op_context && ft->inject_failed && ft->inject_failed(ft, &ee))
		return 1;
	op = account(ft, ee.op_context, ee.flags, ee.err);
	if (!op)
		return 1;
	op->err = ee.err ? ee.err : FI_EOTHER;
	op->flags = ee.flags;
	op->len = ee.len;
	op->buf = ee.buf;
	op->data = ee.data;
	op->tag = ee.tag;
	op->src = ee.src_addr;
	op->ee = ee;
	if (op->hook)
		op->hook(ft, op);
	return 1;
}

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

static struct fid_cntr *cntr_of(struct fid *fid)
{
	return (struct fid_cntr *)((char *)fid -
				   offsetof(struct fid_cntr, fid));
}

int ft_progress(struct ft *ft)
{
	struct fi_cq_tagged_entry e[16], one;
	size_t size = entry_size(ft->cfg.format);
	fi_addr_t src[16];
	ssize_t i, ret;

	if (!ft->o.cq) {
		/* Without a queue, reading the counters makes progress. */
		for (i = 0; i < ft->o.nextra; i++)
			if (ft->o.extra[i]->fclass == FI_CLASS_CNTR)
				fi_cntr_read(cntr_of(ft->o.extra[i]));
		return 0;
	}
	if (ft->stale_errno)
		errno = ft->stale_errno;
	ret = fi_cq_readfrom(ft->o.cq, e, 16, src);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL)
		return read_error(ft);
	if (ret < 0) {
		if (!ft->unexpected[0])
			snprintf(ft->unexpected, sizeof(ft->unexpected),
				 "fi_cq_readfrom: %s (%zd)",
				 fi_strerror((int)-ret), ret);
		return (int)ret;
	}
	for (i = 0; i < ret; i++) {
		memset(&one, 0, sizeof(one));
		memcpy(&one, (char *)e + (size_t)i * size, size);
		complete(ft, &one, src[i]);
	}
	return (int)ret;
}

/* Polls fast; now and then looks at the clock and yields the core. */
struct poll {
	double end;
	unsigned idle;
};

static bool poll_more(struct ft *ft, struct poll *p)
{
	int n = ft_progress(ft);

	if (n > 0) {
		p->idle = 0;
		return true;
	}
	if (++p->idle % 256)
		return true;
	if (ft->stuck)
		ft->stuck(ft);
	if (ft->abandoned || ft_now() > p->end)
		return false;
	sched_yield();
	return true;
}

int ft_wait_for(struct ft *ft, struct ft_op *op, double seconds)
{
	struct poll p = { .end = ft_now() + seconds };

	while (!op->done)
		if (!poll_more(ft, &p))
			return -FI_ETIMEDOUT;
	return 0;
}

int ft_wait(struct ft *ft, struct ft_op *op)
{
	return ft_wait_for(ft, op, ft->run->timeout_s);
}

int ft_wait_events(struct ft *ft, unsigned n)
{
	struct poll p = { .end = ft_now() + ft->run->timeout_s };

	while (ft->nevents < n)
		if (!poll_more(ft, &p))
			return -FI_ETIMEDOUT;
	return 0;
}

int ft_must_complete(struct ft *ft, struct ft_op *op, const char *at)
{
	char buf[96];

	if (ft_wait(ft, op))
		return ft->abandoned ?
		       ft_fail(ft, "%sno completion; another rank left the "
			       "case", at) :
		       ft_fail(ft, "%sno completion after %.0f s%s%s", at,
			       ft->run->timeout_s,
			       ft->unexpected[0] ? "; there was " : "", ft->unexpected);
	if (!op->err)
		return FT_PASS;
	return ft_fail(ft, "%serror completion: %s (%d), prov_errno %d: %s",
		       at, fi_strerror(op->err), op->err, op->ee.prov_errno,
		       fi_cq_strerror(ft->o.cq, op->ee.prov_errno,
				      op->ee.err_data, buf, sizeof(buf)));
}

void ft_linger(struct ft *ft, double seconds)
{
	double end = ft_now() + seconds;

	do {
		ft_progress(ft);
		sched_yield();
	} while (ft_now() < end);
}

int ft_barrier(struct ft *ft)
{
	int ret = oob_barrier(&ft->oob);

	/* A rank left the case; it will not come, so waiting is no use. */
	if (ret == -ECANCELED)
		ft->abandoned = true;
	else if (ret)
		ft_die(ft, "barrier: %s", strerror(-ret));
	return ret;
}

/* Two pieces where there are two bytes, so that sendv differs from send. */
static size_t cut(const struct ft_msg *m, struct iovec iov[2])
{
	size_t half = m->len / 2;

	if (!half) {
		iov[0].iov_base = m->buf;
		iov[0].iov_len = m->len;
		return 1;
	}
	iov[0].iov_base = m->buf;
	iov[0].iov_len = half;
	iov[1].iov_base = (char *)m->buf + half;
	iov[1].iov_len = m->len - half;
	return 2;
}

static ssize_t send_tagged(struct fid_ep *ep, void *ctx, const struct ft_msg *m)
{
	struct iovec iov[2];
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .addr = m->addr, .tag = m->tag,
		.context = ctx, .data = m->data,
	};

	switch (m->call) {
	case FT_SENDV:
		return fi_tsendv(ep, iov, NULL, cut(m, iov), m->addr, m->tag,
				 ctx);
	case FT_SENDMSG:
		msg.iov_count = cut(m, iov);
		return fi_tsendmsg(ep, &msg, m->flags);
	case FT_INJECT:
		return fi_tinject(ep, m->buf, m->len, m->addr, m->tag);
	case FT_SENDDATA:
		return fi_tsenddata(ep, m->buf, m->len, NULL, m->data, m->addr,
				    m->tag, ctx);
	case FT_INJECTDATA:
		return fi_tinjectdata(ep, m->buf, m->len, m->data, m->addr,
				      m->tag);
	default:
		return fi_tsend(ep, m->buf, m->len, NULL, m->addr, m->tag, ctx);
	}
}

static ssize_t send_plain(struct fid_ep *ep, void *ctx, const struct ft_msg *m)
{
	struct iovec iov[2];
	struct fi_msg msg = {
		.msg_iov = iov, .addr = m->addr, .context = ctx,
		.data = m->data,
	};

	switch (m->call) {
	case FT_SENDV:
		return fi_sendv(ep, iov, NULL, cut(m, iov), m->addr, ctx);
	case FT_SENDMSG:
		msg.iov_count = cut(m, iov);
		return fi_sendmsg(ep, &msg, m->flags);
	case FT_INJECT:
		return fi_inject(ep, m->buf, m->len, m->addr);
	case FT_SENDDATA:
		return fi_senddata(ep, m->buf, m->len, NULL, m->data, m->addr,
				   ctx);
	case FT_INJECTDATA:
		return fi_injectdata(ep, m->buf, m->len, m->data, m->addr);
	default:
		return fi_send(ep, m->buf, m->len, NULL, m->addr, ctx);
	}
}

ssize_t ft_try_send(struct fid_ep *ep, void *ctx, const struct ft_msg *m)
{
	return m->tagged ? send_tagged(ep, ctx, m) : send_plain(ep, ctx, m);
}

ssize_t ft_try_recv(struct fid_ep *ep, void *ctx, const struct ft_msg *m)
{
	struct iovec iov[2];
	struct fi_msg msg = { .msg_iov = iov, .addr = m->addr, .context = ctx };
	struct fi_msg_tagged tmsg = {
		.msg_iov = iov, .addr = m->addr, .tag = m->tag,
		.ignore = m->ignore, .context = ctx,
	};

	switch (m->call) {
	case FT_RECVV:
		if (m->tagged)
			return fi_trecvv(ep, iov, NULL, cut(m, iov), m->addr,
					 m->tag, m->ignore, ctx);
		return fi_recvv(ep, iov, NULL, cut(m, iov), m->addr, ctx);
	case FT_RECVMSG:
		msg.iov_count = tmsg.iov_count = cut(m, iov);
		if (m->tagged)
			return fi_trecvmsg(ep, &tmsg, m->flags);
		return fi_recvmsg(ep, &msg, m->flags);
	default:
		if (m->tagged)
			return fi_trecv(ep, m->buf, m->len, NULL, m->addr,
					m->tag, m->ignore, ctx);
		return fi_recv(ep, m->buf, m->len, NULL, m->addr, ctx);
	}
}

int ft_start(struct ft *ft, struct ft_op *op,
	     ssize_t (*attempt)(struct fid_ep *ep, void *ctx, const void *arg),
	     const void *arg)
{
	struct poll p = { .end = ft_now() + ft->run->timeout_s };
	ssize_t ret;

	if (op)
		op->posted = true;
	for (;;) {
		ret = attempt(ft->o.ep, op, arg);
		if (ret != -FI_EAGAIN)
			break;
		if (!poll_more(ft, &p)) {
			ret = -FI_ETIMEDOUT;
			break;
		}
	}
	if (ret && op && !op->done)
		op->posted = false;
	return (int)ret;
}

static ssize_t attempt_send(struct fid_ep *ep, void *ctx, const void *m)
{
	return ft_try_send(ep, ctx, m);
}

static ssize_t attempt_recv(struct fid_ep *ep, void *ctx, const void *m)
{
	return ft_try_recv(ep, ctx, m);
}

int ft_send(struct ft *ft, struct ft_op *op, const struct ft_msg *m)
{
	return ft_start(ft, op, attempt_send, m);
}

int ft_recv(struct ft *ft, struct ft_op *op, const struct ft_msg *m)
{
	return ft_start(ft, op, attempt_recv, m);
}
