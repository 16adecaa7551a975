/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory that all ranks know of, and every form of RMA call. */
#include "rma.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RAW_KEY_MAX	256

const char *const ft_rma_names[] = {
	"write", "writev", "writemsg", "inject-write", "writedata",
	"inject-writedata", "read", "readv", "readmsg"
};

/* ---- memory ---- */

int ft_mr_mode(const struct ft_objs *o)
{
	int mode = o->info->domain_attr->mr_mode;

	return mode == FT_MR_BASIC ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				     FI_MR_PROV_KEY : mode;
}

uint64_t ft_mr_new_key(struct ft *ft)
{
	static uint64_t next;

	/* Keys of different ranks differ, so that a mix-up of ranks is found. */
	return ++next * 64 + (uint64_t)ft->rank;
}

int ft_mr_ready(struct ft *ft, struct ft_objs *o, struct ft_mr *m)
{
	int mode = ft_mr_mode(o), ret;

	if (!(mode & FI_MR_ENDPOINT))
		return 0;
	ret = fi_mr_bind(m->mr, &o->ep->fid, 0);
	if (ret) {
		ft_fail(ft, "fi_mr_bind(endpoint): %s", fi_strerror(-ret));
		return ret;
	}
	ret = fi_mr_enable(m->mr);
	if (ret)
		ft_fail(ft, "fi_mr_enable: %s", fi_strerror(-ret));
	m->bound = !ret;
	return ret;
}

int ft_mr_open(struct ft *ft, struct ft_objs *o, struct ft_mr *m, void *buf,
	       size_t len, uint64_t access)
{
	int ret;

	memset(m, 0, sizeof(*m));
	m->buf = buf;
	m->len = len;
	ret = fi_mr_reg(o->domain, buf, len, access, 0, ft_mr_new_key(ft), 0,
			&m->mr, NULL);
	if (ret) {
		m->mr = NULL;
		ft_fail(ft, "fi_mr_reg of %zu bytes: %s (%d)", len,
			fi_strerror(-ret), ret);
		return ret;
	}
	ret = ft_mr_ready(ft, o, m);
	if (ret)
		ft_mr_close(ft, m);
	return ret;
}

int ft_mr_reg(struct ft *ft, struct ft_mr *m, void *buf, size_t len,
	      uint64_t access)
{
	return ft_mr_open(ft, &ft->o, m, buf, len, access);
}

int ft_mr_close(struct ft *ft, struct ft_mr *m)
{
	int ret;

	if (!m->mr)
		return 0;
	ret = fi_close(&m->mr->fid);
	if (ret)
		ft_fail(ft, "fi_close(mr): %s (%d)", fi_strerror(-ret), ret);
	m->mr = NULL;
	return ret;
}

struct wire_mr {
	uint64_t base, key, len, raw_len;
	uint8_t raw[RAW_KEY_MAX];
};

int ft_mr_share(struct ft *ft, struct ft_mr *m)
{
	int mode = ft_mr_mode(&ft->o), i, ret;
	static struct wire_mr all[OOB_MAX_RANKS];
	struct wire_mr mine = { .len = m->len };

	if (mode & FI_MR_VIRT_ADDR)
		mine.base = (uintptr_t)m->buf;
	mine.key = fi_mr_key(m->mr);
	if (mode & FI_MR_RAW) {
		size_t len = sizeof(mine.raw);

		ret = fi_mr_raw_attr(m->mr, &mine.base, mine.raw, &len, 0);
		if (ret) {
			ft_fail(ft, "fi_mr_raw_attr: %s", fi_strerror(-ret));
			return ret;
		}
		mine.raw_len = len;
	}
	ret = oob_allgather(&ft->oob, &mine, all, sizeof(mine));
	if (ret) {
		ft->abandoned = ret == -ECANCELED;
		ft_fail(ft, "exchange of keys: %s", strerror(-ret));
		return ret;
	}
	for (i = 0; i < ft->n; i++) {
		m->at[i].base = all[i].base;
		m->at[i].key = all[i].key;
		m->at[i].len = all[i].len;
		if (!(mode & FI_MR_RAW))
			continue;
		ret = fi_mr_map_raw(ft->o.domain, all[i].base, all[i].raw,
				    all[i].raw_len, &m->at[i].key, 0);
		if (ret) {
			ft_fail(ft, "fi_mr_map_raw: %s", fi_strerror(-ret));
			return ret;
		}
	}
	return 0;
}

struct ft_mem ft_mem;

static unsigned char *pages(struct ft *ft, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ft_die(ft, "out of memory");
	return p;
}

int ft_with_mem(struct ft *ft, const struct ft_case *c, size_t len)
{
	struct ft_mem *m = &ft_mem;
	char why[FT_WHY_MAX];
	int ret;

	if (len > m->len) {
		/* The old pages stay mapped: a late write must not hit anything
		 * else. */
		m->local = pages(ft, len);
		m->target = pages(ft, len);
		m->len = len;
	}
	if (ft_mr_reg(ft, &m->lmr, m->local, m->len, FT_MR_ACCESS))
		return FT_FAIL;
	if (ft_mr_reg(ft, &m->tmr, m->target, m->len, FT_MR_ACCESS)) {
		ret = FT_FAIL;
	} else if (ft_mr_share(ft, &m->tmr)) {
		ret = FT_FAIL;
	} else {
		ret = c->body(ft, c);
		/* Memory is freed only when no other rank uses it. */
		if (ret == FT_PASS && ft_barrier(ft))
			ret = ft_fail(ft, "another rank left the case");
	}
	memcpy(why, ft->why, sizeof(why));
	if (ft_mr_close(ft, &m->tmr) | ft_mr_close(ft, &m->lmr))
		return ret == FT_PASS ? FT_FAIL : ret;
	memcpy(ft->why, why, sizeof(why));
	return ret;
}

void *ft_mr_desc(struct ft *ft, const struct ft_mr *m)
{
	if (!m || !(ft_mr_mode(&ft->o) & FI_MR_LOCAL))
		return NULL;
	return fi_mr_desc(m->mr);
}

int ft_await_pattern(struct ft *ft, const void *buf, size_t len,
		     unsigned sender, uint64_t seq, const char *at)
{
	double end = ft_now() + ft->run->timeout_s;
	long long bad;
	int i;

	for (;;) {
		/* Another rank writes it: read it again each time. */
		__asm__ volatile("" ::: "memory");
		bad = pattern_check(buf, len, ft->run->seed, sender, seq);
		if (bad < 0)
			return FT_PASS;
		if (ft->abandoned || ft_now() > end)
			return ft_fail(ft, "%sbyte %lld of %zu is not what "
				       "rank %u wrote", at, bad, len, sender);
		for (i = 0; i < 64; i++)
			ft_progress(ft);
		if (ft->stuck)
			ft->stuck(ft);
		sched_yield();
	}
}

/* ---- RMA ---- */

bool ft_rma_is_read(int call)
{
	return call >= FT_READ;
}

bool ft_rma_is_inject(int call)
{
	return call == FT_INJECT_WRITE || call == FT_INJECT_WRITEDATA;
}

bool ft_rma_has_data(int call)
{
	return call == FT_WRITEDATA || call == FT_INJECT_WRITEDATA;
}

void ft_rma_set(struct ft *ft, struct ft_rma *r, int call, void *buf,
		size_t len, const struct ft_mr *local,
		const struct ft_mr *remote, int rank, uint64_t off)
{
	const struct ft_target *t = &remote->at[rank];
	struct fi_tx_attr *tx = ft->o.info->tx_attr;
	bool msg = call == FT_WRITEMSG || call == FT_READMSG;
	bool vec = msg || call == FT_WRITEV || call == FT_READV;
	size_t cut = len / 2, i;

	memset(r, 0, sizeof(*r));
	r->call = call;
	r->addr = ft->addr[rank];
	r->niov = vec && cut && tx->iov_limit > 1 ? 2 : 1;
	r->iov[0].iov_base = buf;
	r->iov[0].iov_len = len;
	if (r->niov == 2) {
		r->iov[0].iov_len = cut;
		r->iov[1].iov_base = (char *)buf + cut;
		r->iov[1].iov_len = len - cut;
	}
	/* Cut at another position than the local side. */
	cut = len / 3;
	r->nrma = msg && cut && tx->rma_iov_limit > 1 ? 2 : 1;
	r->rma[0].addr = t->base + off;
	r->rma[0].len = len;
	r->rma[0].key = t->key;
	if (r->nrma == 2) {
		r->rma[0].len = cut;
		r->rma[1].addr = t->base + off + cut;
		r->rma[1].len = len - cut;
		r->rma[1].key = t->key;
	}
	for (i = 0; i < r->niov; i++)
		r->desc[i] = ft_mr_desc(ft, local);
}

ssize_t ft_try_rma(struct fid_ep *ep, void *ctx, const struct ft_rma *r)
{
	const struct iovec *v = r->iov;
	const struct fi_rma_iov *t = r->rma;
	void **desc = (void **)(uintptr_t)r->desc;
	struct fi_msg_rma msg = {
		.msg_iov = v, .desc = desc, .iov_count = r->niov,
		.addr = r->addr, .rma_iov = t, .rma_iov_count = r->nrma,
		.context = ctx, .data = r->data,
	};

	switch (r->call) {
	case FT_WRITE:
		return fi_write(ep, v->iov_base, v->iov_len, desc[0], r->addr,
				t->addr, t->key, ctx);
	case FT_WRITEV:
		return fi_writev(ep, v, desc, r->niov, r->addr, t->addr,
				 t->key, ctx);
	case FT_WRITEMSG:
		return fi_writemsg(ep, &msg, r->flags);
	case FT_INJECT_WRITE:
		return fi_inject_write(ep, v->iov_base, v->iov_len, r->addr,
				       t->addr, t->key);
	case FT_WRITEDATA:
		return fi_writedata(ep, v->iov_base, v->iov_len, desc[0],
				    r->data, r->addr, t->addr, t->key, ctx);
	case FT_INJECT_WRITEDATA:
		return fi_inject_writedata(ep, v->iov_base, v->iov_len,
					   r->data, r->addr, t->addr, t->key);
	case FT_READ:
		return fi_read(ep, v->iov_base, v->iov_len, desc[0], r->addr,
			       t->addr, t->key, ctx);
	case FT_READV:
		return fi_readv(ep, v, desc, r->niov, r->addr, t->addr,
				t->key, ctx);
	default:
		return fi_readmsg(ep, &msg, r->flags);
	}
}

static ssize_t attempt(struct fid_ep *ep, void *ctx, const void *r)
{
	return ft_try_rma(ep, ctx, r);
}

int ft_rma(struct ft *ft, struct ft_op *op, const struct ft_rma *r)
{
	return ft_start(ft, op, attempt, r);
}

int ft_rma_now(struct ft *ft, const struct ft_rma *r, const char *at)
{
	struct ft_op *op = ft_rma_is_inject(r->call) ? NULL : ft_op_new(ft);
	uint64_t want = ft_rma_is_read(r->call) ? FI_READ : FI_WRITE;
	int ret = ft_rma(ft, op, r);

	if (ret)
		return ft_fail(ft, "%sfi_%s: %s (%d)", at,
			       ft_rma_names[r->call], fi_strerror(-ret), ret);
	if (!op)
		return FT_PASS;
	FT_TRY(ft_must_complete(ft, op, at));
	if (ft->cfg.format != FI_CQ_FORMAT_CONTEXT &&
	    (op->flags & (FI_RMA | want)) != (FI_RMA | want))
		return ft_fail(ft, "%sflags %#llx of a completed fi_%s", at,
			       (unsigned long long)op->flags,
			       ft_rma_names[r->call]);
	return FT_PASS;
}
