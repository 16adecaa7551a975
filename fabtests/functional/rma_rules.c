/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one-sided operations promise: their order among themselves and with
 * messages, as far as the provider reports one; completion levels; fences;
 * which operations have a completion.  And what happens to operations that must
 * fail.
 *
 * Over bare providers these do harm: connections end, memory after the end is
 * read, nothing completes.  Such results are known and do not count.  Through
 * lnx there has to be an error, and later operations have to work.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <string.h>

#define MEM_BYTES	(2 << 20)
#define CANARY		0xa5
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

static const size_t sizes[] = { 8, 200, 4096, 5000, 16384, 100000, 1 << 20 };

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static void set(struct ft *ft, struct ft_rma *r, int call, void *buf,
		size_t len, uint64_t off)
{
	ft_rma_set(ft, r, call, buf, len, &ft_mem.lmr, &ft_mem.tmr, !ft->rank,
		   off);
}

/* Does the provider promise this order for this many bytes? */
static int promised(struct ft *ft, const struct ft_case *c, size_t len)
{
	struct fi_info *i = ft->o.info;
	size_t max = SIZE_MAX;

	if (!(i->tx_attr->msg_order & c->a))
		return ft_skip(ft, "not in tx_attr->msg_order %#llx",
			       (unsigned long long)i->tx_attr->msg_order);
	if (c->a & (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
		max = i->ep_attr->max_order_waw_size;
	else if (c->a & (FI_ORDER_RAW | FI_ORDER_RMA_RAW))
		max = i->ep_attr->max_order_raw_size;
	else if (c->a & (FI_ORDER_WAR | FI_ORDER_RMA_WAR))
		max = i->ep_attr->max_order_war_size;
	return len <= max ? FT_PASS : ft_skip(ft, "max_order size is %zu",
					      max);
}

/* Of two writes to the same memory, started one after the other, the second wins. */
static int waw(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[8];
	struct ft_rma r;
	int i, j, ran = 0;

	for (i = 0; i < COUNT(sizes); i++) {
		size_t len = sizes[i], slot = 128 << 10;

		if (promised(ft, c, len) != FT_PASS)
			continue;
		ran++;
		for (j = 0; j < 8; j++)
			pattern_fill(ft_mem.local + (size_t)j * slot, len < slot
				     ? len : slot, ft->run->seed,
				     (unsigned)ft->rank, (uint64_t)j);
		FT_TRY(meet(ft));
		for (j = 0; j < 8; j++) {
			/* Long ones first, so that a small one could overtake. */
			set(ft, &r, FT_WRITE, ft_mem.local + (size_t)j * slot,
			    j & 1 ? (len < 64 ? len : 64) :
			    len < slot ? len : slot, 0);
			op[j] = ft_op_new(ft);
			FT_CALL(ft, ft_rma(ft, op[j], &r));
		}
		for (j = 0; j < 8; j++)
			FT_DONE(ft, op[j]);
		FT_TRY(ft_await_pattern(ft, ft_mem.target, len < 64 ? len : 64,
					(unsigned)!ft->rank, 7, FT_AT));
		FT_TRY(meet(ft));
		FT_TRY(ft_await_pattern(ft, ft_mem.target, len < 64 ? len : 64,
					(unsigned)!ft->rank, 7, FT_AT));
		FT_TRY(meet(ft));
	}
	return ran ? FT_PASS : promised(ft, c, sizes[0]);
}

/* A read that starts after a write returns what was written. */
static int raw(struct ft *ft, const struct ft_case *c)
{
	unsigned char *in = ft_mem.local + (1 << 20);
	struct ft_op *w, *d;
	struct ft_rma r;
	long long bad;
	int i, ran = 0;

	for (i = 0; i < COUNT(sizes); i++) {
		if (promised(ft, c, sizes[i]) != FT_PASS)
			continue;
		ran++;
		memset(ft_mem.target, 0, sizes[i]);
		pattern_fill(ft_mem.local, sizes[i], ft->run->seed,
			     (unsigned)ft->rank, (uint64_t)i);
		FT_TRY(meet(ft));
		set(ft, &r, FT_WRITE, ft_mem.local, sizes[i], 0);
		w = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, w, &r));
		set(ft, &r, FT_READ, in, sizes[i], 0);
		d = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, d, &r));
		FT_DONE(ft, w);
		FT_DONE(ft, d);
		bad = pattern_check(in, sizes[i], ft->run->seed,
				    (unsigned)ft->rank, (uint64_t)i);
		FT_CHECK(ft, bad < 0, "a read of %zu bytes overtook a write "
			 "(byte %lld)", sizes[i], bad);
		FT_TRY(meet(ft));
	}
	return ran ? FT_PASS : promised(ft, c, sizes[0]);
}

/* A write that starts after a read does not change what is read. */
static int war(struct ft *ft, const struct ft_case *c)
{
	unsigned char *in = ft_mem.local + (1 << 20);
	struct ft_op *w, *d;
	struct ft_rma r;
	long long bad;
	int i, ran = 0;

	for (i = 0; i < COUNT(sizes); i++) {
		if (promised(ft, c, sizes[i]) != FT_PASS)
			continue;
		ran++;
		pattern_fill(ft_mem.target, sizes[i], ft->run->seed,
			     (unsigned)ft->rank, 1000);
		pattern_fill(ft_mem.local, sizes[i], ft->run->seed,
			     (unsigned)ft->rank, 1001);
		FT_TRY(meet(ft));
		set(ft, &r, FT_READ, in, sizes[i], 0);
		d = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, d, &r));
		set(ft, &r, FT_WRITE, ft_mem.local, sizes[i], 0);
		w = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, w, &r));
		FT_DONE(ft, d);
		FT_DONE(ft, w);
		bad = pattern_check(in, sizes[i], ft->run->seed,
				    (unsigned)!ft->rank, 1000);
		FT_CHECK(ft, bad < 0, "a write of %zu bytes overtook a read "
			 "(byte %lld)", sizes[i], bad);
		/* The write is complete at its source, and may land later than
		 * the barrier, which is out of band, ends. */
		FT_TRY(ft_await_pattern(ft, ft_mem.target, sizes[i],
					(unsigned)!ft->rank, 1001, FT_AT));
		FT_TRY(meet(ft));
	}
	return ran ? FT_PASS : promised(ft, c, sizes[0]);
}

static int send_after(struct ft *ft, const struct ft_case *c, size_t len,
		      bool wait)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 3,
		.buf = ft_mem.local + MEM_BYTES - 64, .len = 8,
	};
	struct ft_op *v = ft_op_new(ft), *s = ft_op_new(ft), *w;
	struct ft_rma r;
	long long bad;

	memset(ft_mem.target, 0, len);
	pattern_fill(ft_mem.local, len, ft->run->seed, (unsigned)ft->rank,
		     len);
	FT_CALL(ft, ft_recv(ft, v, &m));
	FT_TRY(meet(ft));
	set(ft, &r, FT_WRITEMSG, ft_mem.local, len, 0);
	r.flags = c->b;
	w = ft_op_new(ft);
	FT_CALL(ft, ft_rma(ft, w, &r));
	if (wait)
		FT_DONE(ft, w);
	m.addr = ft->addr[!ft->rank];
	m.buf = ft_mem.local + MEM_BYTES - 32;
	FT_CALL(ft, ft_send(ft, s, &m));
	FT_DONE(ft, v);
	bad = pattern_check(ft_mem.target, len, ft->run->seed,
			    (unsigned)!ft->rank, len);
	FT_CHECK(ft, bad < 0, "a message overtook a write of %zu bytes (byte "
		 "%lld)", len, bad);
	FT_DONE(ft, s);
	if (!wait)
		FT_DONE(ft, w);
	return meet(ft);
}

/* A rank that receives a message sent after a write has the data already. */
static int saw(struct ft *ft, const struct ft_case *c)
{
	int i;

	FT_TRY(promised(ft, c, 0));
	for (i = 0; i < COUNT(sizes); i++)
		FT_TRY(send_after(ft, c, sizes[i], false));
	return FT_PASS;
}

/* No order is needed: FI_DELIVERY_COMPLETE promises that the data has arrived. */
static int delivered(struct ft *ft, const struct ft_case *c)
{
	int i;

	for (i = 0; i < COUNT(sizes); i++)
		FT_TRY(send_after(ft, c, sizes[i], true));
	return FT_PASS;
}

/* An operation with FI_FENCE overtakes nothing, whatever the order is otherwise. */
static int fence(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *w, *f, *d;
	uint64_t flag = 1, seen = 0;
	struct ft_rma r;
	long long bad;
	double end;
	int i;

	(void)c;
	for (i = 0; i < COUNT(sizes); i++) {
		uint64_t *to = (void *)(ft_mem.target + MEM_BYTES - 8);

		memset(ft_mem.target, 0, sizes[i]);
		*to = 0;
		pattern_fill(ft_mem.local, sizes[i], ft->run->seed,
			     (unsigned)ft->rank, (uint64_t)i);
		memcpy(ft_mem.local + MEM_BYTES - 8, &flag, 8);
		FT_TRY(meet(ft));
		set(ft, &r, FT_WRITE, ft_mem.local, sizes[i], 0);
		w = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, w, &r));
		set(ft, &r, FT_WRITEMSG, ft_mem.local + MEM_BYTES - 8, 8,
		    MEM_BYTES - 8);
		r.flags = FI_FENCE | FI_DELIVERY_COMPLETE;
		f = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, f, &r));
		set(ft, &r, FT_READMSG, ft_mem.local + MEM_BYTES - 16, 8,
		    MEM_BYTES - 8);
		r.flags = FI_FENCE;
		d = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, d, &r));
		end = ft_now() + ft->run->timeout_s;
		while (!__atomic_load_n(to, __ATOMIC_ACQUIRE)) {
			ft_progress(ft);
			FT_CHECK(ft, ft_now() < end, "the fenced write has not "
				 "arrived");
		}
		bad = pattern_check(ft_mem.target, sizes[i], ft->run->seed,
				    (unsigned)!ft->rank, (uint64_t)i);
		FT_CHECK(ft, bad < 0, "a fenced write overtook one of %zu bytes "
			 "(byte %lld)", sizes[i], bad);
		FT_DONE(ft, w);
		FT_DONE(ft, f);
		FT_DONE(ft, d);
		memcpy(&seen, ft_mem.local + MEM_BYTES - 16, 8);
		FT_CHECK(ft, seen == flag, "a fenced read overtook a write");
		FT_TRY(meet(ft));
	}
	return FT_PASS;
}

/* With FI_SELECTIVE_COMPLETION only operations that ask have one; injects never do. */
static int selective(struct ft *ft, const struct ft_case *c)
{
	static const int calls[] = { FT_WRITE, FT_WRITEMSG, FT_WRITEMSG,
				     FT_READMSG, FT_READMSG, FT_READ,
				     FT_INJECT_WRITE };
	static const bool ask[] = { false, false, true, false, true, false,
				    false };
	size_t len = c->a;
	struct ft_rma r;
	int i;

	for (i = 0; i < COUNT(calls); i++) {
		struct ft_op *op = ft_op_new(ft);

		if (ft_rma_is_inject(calls[i]) &&
		    len > ft->o.info->tx_attr->inject_size)
			continue;
		set(ft, &r, calls[i], ft_mem.local + i * (128 << 10), len,
		    (uint64_t)i * (128 << 10));
		r.flags = ask[i] ? FI_COMPLETION : 0;
		FT_CALL(ft, ft_rma(ft, op, &r));
		op->posted = ask[i];
		if (ask[i])
			FT_DONE(ft, op);
		FT_TRY(meet(ft));
		ft_linger(ft, 0.01);
	}
	FT_TRY(meet(ft));
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

/* ---- what must fail ---- */

/* A whole round of valid operations: the endpoint still works. */
static int still_works(struct ft *ft)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 9,
		.buf = ft_mem.local + (1 << 20), .len = 5000,
	};
	struct ft_op *v = ft_op_new(ft), *s = ft_op_new(ft);
	struct ft_rma r;

	ft_known(ft, NULL, "nothing works any more after the error");
	FT_CALL(ft, ft_recv(ft, v, &m));
	pattern_fill(ft_mem.local, 5000, ft->run->seed, (unsigned)ft->rank,
		     77);
	FT_TRY(meet(ft));
	set(ft, &r, FT_WRITE, ft_mem.local, 5000, 0);
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	m.addr = ft->addr[!ft->rank];
	m.buf = ft_mem.local;
	FT_CALL(ft, ft_send(ft, s, &m));
	FT_DONE(ft, s);
	FT_DONE(ft, v);
	FT_TRY(ft_await_pattern(ft, ft_mem.target, 5000, (unsigned)!ft->rank,
				77, FT_AT));
	return meet(ft);
}

enum wrong { KEY, BEHIND, FAR_BEHIND, ACROSS, NO_READ, NO_WRITE, CLOSED,
	     NWRONG };
static const char *const wrong_names[] = {
	"wrong-key", "behind-the-end", "far-behind-the-end", "across-the-end",
	"read-of-write-only", "write-of-read-only", "closed-memory"
};

/* Seconds to wait for a completion: few where it is known that there may be none. */
static double silence_timeout_s(const struct ft *ft)
{
	return ft_is_bare(ft, "lnx") ? ft->run->timeout_s : 0.3;
}

/*
 * Rank 1 does to rank 0 what is not allowed.  a: what, b: call, c: length
 *
 * FT_WRITEMSG asks for FI_DELIVERY_COMPLETE: success would be wrong.  A plain
 * write may complete before the target has checked it.
 */
static int refused(struct ft *ft, const struct ft_case *c)
{
	static unsigned char small[2 << 20];
	size_t len = c->c, have = 1 << 20;
	uint64_t access = FT_MR_ACCESS;
	struct ft_target *t;
	struct ft_mr mr = { 0 };
	struct ft_op *op;
	struct ft_rma r;
	int ret, what = (int)c->a, result = FT_PASS;
	long long at;

	ft->spoiled = true;
	if (what == NO_READ)
		access &= ~(uint64_t)FI_REMOTE_READ;
	if (what == NO_WRITE)
		access &= ~(uint64_t)FI_REMOTE_WRITE;
	memset(small, CANARY, sizeof(small));
	if (ft_mr_reg(ft, &mr, small, have, access))
		return FT_FAIL;
	if (ft_mr_share(ft, &mr))
		return FT_FAIL;
	/* Open the connection. */
	FT_TRY(still_works(ft));
	ft_known(ft, NULL, "an operation that is not allowed gives no error");
	if (what == CLOSED && !ft->rank && ft_mr_close(ft, &mr))
		return FT_FAIL;
	FT_TRY(meet(ft));
	if (ft->rank) {
		ft_rma_set(ft, &r, (int)c->b, ft_mem.local, len, &ft_mem.lmr,
			   &mr, 0, 0);
		/* In one piece: no part of it may be done. */
		r.nrma = 1;
		r.rma[0].len = len;
		t = &mr.at[0];
		switch (what) {
		case KEY:
			r.rma[0].key = t->key ^ 0x40000;
			break;
		case BEHIND:
			r.rma[0].addr = t->base + have;
			break;
		case FAR_BEHIND:
			r.rma[0].addr = t->base + (1ULL << 62);
			break;
		case ACROSS:
			r.rma[0].addr = t->base + have - len / 2;
			break;
		default:
			break;
		}
		memset(ft_mem.local, 0x33, len);
		r.flags = FI_DELIVERY_COMPLETE;
		op = ft_op_new(ft);
		ret = ft_rma(ft, op, &r);
		if (!ret && ft_wait_for(ft, op, silence_timeout_s(ft))) {
			result = ft_fail(ft, "it never completes");
		} else if (!ret && !op->err && c->b != FT_WRITE) {
			result = ft_fail(ft, "it completes with success");
		} else if (ret == -FI_ETIMEDOUT) {
			result = ft_fail(ft, "-FI_EAGAIN for ever");
		}
	}
	if (result == FT_PASS)
		result = meet(ft);
	at = pattern_is_filled(small, sizeof(small), CANARY);
	if (!ft->rank && at >= 0) {
		ft->abandoned = false;	/* this rank's reason is better than the
					 * other's */
		result = ft_fail(ft, "memory was written at %lld: %#x", at,
				 small[at]);
	}
	if (result == FT_PASS)
		result = still_works(ft);
	if (result == FT_PASS) {
		ft->todo[0] = '\0';
		if (ft_mr_close(ft, &mr))
			return FT_FAIL;
	} else if (mr.mr) {
		char why[FT_WHY_MAX];

		memcpy(why, ft->why, sizeof(why));
		ft_mr_close(ft, &mr);
		memcpy(ft->why, why, sizeof(why));
	}
	return result;
}

/* More than can be injected, more pieces than the limit: an error at once, and
 * nothing is done. */
static int too_much(struct ft *ft, const struct ft_case *c)
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	struct ft_op *op = ft_op_new(ft);
	struct ft_rma r;
	ssize_t ret;

	(void)c;
	set(ft, &r, FT_INJECT_WRITE, ft_mem.local, inject + 1, 0);
	ft_known(ft, NULL, "more than inject_size is accepted");
	if (inject + 1 < MEM_BYTES) {
		ret = ft_try_rma(ft->o.ep, NULL, &r);
		while (ret == -FI_EAGAIN) {	/* connecting */
			ft_progress(ft);
			ret = ft_try_rma(ft->o.ep, NULL, &r);
		}
		FT_CHECK(ft, ret < 0, "%zu bytes injected, inject_size is %zu",
			 inject + 1, inject);
	}
	if (!ft_is_bare(ft, "lnx"))
		goto done;		/* their effect is not defined */
	set(ft, &r, FT_WRITEV, ft_mem.local, 100, 0);
	r.niov = ft->o.info->tx_attr->iov_limit + 1;
	if (r.niov <= FT_MAX_IOV) {
		size_t i;

		for (i = 0; i < r.niov; i++) {
			r.iov[i].iov_base = ft_mem.local;
			r.iov[i].iov_len = 10;
		}
		ret = ft_try_rma(ft->o.ep, op, &r);
		FT_CHECK(ft, ret < 0 && ret != -FI_EAGAIN, "%zu pieces gave "
			 "%zd", r.niov, ret);
	}
done:
	return still_works(ft);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; uint64_t order;
		int (*fn)(struct ft *ft, const struct ft_case *c); } orders[] = {
		{ "write-after-write", FI_ORDER_WAW, waw },
		{ "rma-write-after-write", FI_ORDER_RMA_WAW, waw },
		{ "read-after-write", FI_ORDER_RAW, raw },
		{ "rma-read-after-write", FI_ORDER_RMA_RAW, raw },
		{ "write-after-read", FI_ORDER_WAR, war },
		{ "rma-write-after-read", FI_ORDER_RMA_WAR, war },
		{ "send-after-write", FI_ORDER_SAW, saw },
	};
	static const size_t lens[] = { 8, 3000, 300000 };
	static struct ft_case cases[96];
	struct ft_case *c = cases;
	int i, j, k;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	if (!c->cfg.caps)						\
		c->cfg.caps = FT_RMA_CAPS;				\
	c++;								\
} while (0)

	for (i = 0; i < COUNT(orders); i++) {
		c->a = orders[i].order;
		c->cfg.order = FI_ORDER_SAS | orders[i].order;
		CASE(orders[i].fn, "%s", orders[i].name);
	}
	c->b = FI_DELIVERY_COMPLETE;
	CASE(delivered, "send-after-delivery-complete");
	c->cfg.caps = FT_RMA_CAPS | FI_FENCE;
	CASE(fence, "fence");
	for (i = 0; i < COUNT(lens) - 1; i++) {
		c->a = lens[i] * 30;
		c->cfg.selective = true;
		CASE(selective, "selective-%zu", lens[i] * 30);
	}
	c->a = 8;
	c->cfg.selective = true;
	CASE(selective, "selective-8");
	CASE(too_much, "too-much");
	for (i = 0; i < NWRONG; i++)
	for (j = 0; j < 3; j++)
	for (k = 0; k < COUNT(lens); k++) {
		static const int calls[] = { FT_WRITE, FT_WRITEMSG, FT_READ };

		if ((i == NO_READ && j < 2) || (i == NO_WRITE && j == 2))
			continue;
		c->a = (uint64_t)i;
		c->b = (uint64_t)calls[j];
		c->c = lens[k];
		c->guard_s = 60;
		c->slow = k == 1 || i == FAR_BEHIND || i == ACROSS;
		CASE(refused, "%s-%s-%zu", wrong_names[i], calls[j] ==
		     FT_WRITEMSG ? "write-delivered" :
		     ft_rma_names[calls[j]], lens[k]);
	}
	return ft_main(argc, argv, "what one-sided operations promise", cases,
		       (int)(c - cases));
}
