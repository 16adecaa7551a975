/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote reads and writes in every form of call and size, in both directions at
 * once.  rma_rules.c tests ordering, promises and errors.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <string.h>

#define CANARY		0xa5
#define MARGIN		64
#define MAX_BYTES	(4 << 20)
#define MEM_BYTES	(MAX_BYTES + (1 << 16))
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

static const size_t sizes[] = {
	0, 1, 7, 8, 64, 191, 192, 193,
	4095, 4096, 4097, 16320, 16384, 16385,
	65536, 262144, (1 << 20) + 3,
	MAX_BYTES
};
/* Ranges of sizes: small, medium, large, huge. */
static const int ranges[][2] = { { 0, 8 }, { 8, 14 }, { 14, 17 }, { 17, 18 } };
static const char *const range_names[] = { "small", "medium", "large",
					   "huge" };

static unsigned char *local, *target;

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

static void take_mem(void)
{
	local = ft_mem.local;
	target = ft_mem.target;
}

static uint64_t data_of(struct ft *ft, uint64_t i)
{
	size_t n = ft->o.info->domain_attr->cq_data_size;
	uint64_t v = 0x8102030405060708ULL ^ (i * 0x1111111111111111ULL);

	return n >= 8 ? v : v & ((1ULL << (n * 8)) - 1);
}

/* The event of a write with data; entries may come in any order. */
static int expect_event(struct ft *ft, uint64_t data, size_t len, bool strict)
{
	const uint64_t want = FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	struct ft_event *ev;

	FT_CHECK(ft, !ft_wait_events(ft, 1), "no event of a write with data");
	ev = &ft->events[0];
	FT_CHECK(ft, ft->nevents == 1, "%u events of one write", ft->nevents);
	FT_CHECK(ft, ev->data == data, "data %#llx, not %#llx",
		 (unsigned long long)ev->data, (unsigned long long)data);
	ft->nevents = 0;
	FT_CHECK(ft, ev->len == len, "event of %zu bytes has len %zu", len,
		 ev->len);
	/* Reported in one case, so that it does not hide other failures. */
	if (ft_is_bare(ft, "shm") && !strict)
		return FT_PASS;
	ft_known(ft, "shm", "the event lacks FI_REMOTE_WRITE");
	FT_CHECK(ft, (ev->flags & want) == want, "flags %#llx of the event of "
		 "a write with data", (unsigned long long)ev->flags);
	ft->todo[0] = '\0';
	if (ft_is_bare(ft, "lnx"))
		FT_CHECK(ft, ev->flags & FI_RMA, "flags %#llx lack FI_RMA",
			 (unsigned long long)ev->flags);
	return FT_PASS;
}

static int check_canary(struct ft *ft, const unsigned char *p, size_t len,
			const char *what)
{
	long long before = pattern_is_filled(p - MARGIN, MARGIN, CANARY);
	long long behind = pattern_is_filled(p + len, MARGIN, CANARY);

	FT_CHECK(ft, before < 0, "%zu bytes: byte %lld before the %s was "
		 "written", len, before - MARGIN, what);
	FT_CHECK(ft, behind < 0, "%zu bytes: byte %lld after the %s was "
		 "written", len, behind, what);
	return FT_PASS;
}

static int one_write(struct ft *ft, int call, size_t len, uint64_t off,
		     uint64_t flags, int peer, uint64_t seq)
{
	struct ft_rma r;

	memset(target + off - MARGIN, CANARY, len + 2 * MARGIN);
	pattern_fill(local, len, ft->run->seed, (unsigned)ft->rank, seq);
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	ft_rma_set(ft, &r, call, local, len, &ft_mem.lmr, &ft_mem.tmr, peer,
		   off);
	r.data = data_of(ft, seq);
	r.flags = flags;
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	/* The buffer of an inject is ours again; so is that of a completed
	 * operation. */
	memset(local, 0x11, len);
	FT_TRY(ft_await_pattern(ft, target + off, len, (unsigned)peer, seq,
				FT_AT));
	if (ft_rma_has_data(call) || flags & FI_REMOTE_CQ_DATA)
		FT_TRY(expect_event(ft, data_of(ft, seq), len, false));
	/* A late write would be found in the next round. */
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	FT_TRY(check_canary(ft, target + off, len, "target"));
	return pattern_check(target + off, len, ft->run->seed, (unsigned)peer,
			     seq) < 0 ? FT_PASS :
	       ft_fail(ft, FT_AT "the target has changed again");
}

static int one_read(struct ft *ft, int call, size_t len, uint64_t off,
		    uint64_t flags, int peer, uint64_t seq)
{
	unsigned char *buf = local + MARGIN;
	struct ft_rma r;
	long long bad;

	pattern_fill(target + off, len, ft->run->seed, (unsigned)ft->rank,
		     seq);
	memset(buf - MARGIN, CANARY, len + 2 * MARGIN);
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	ft_rma_set(ft, &r, call, buf, len, &ft_mem.lmr, &ft_mem.tmr, peer,
		   off);
	r.flags = flags;
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	/* A completed read has its data in memory: no waiting. */
	bad = pattern_check(buf, len, ft->run->seed, (unsigned)peer, seq);
	FT_CHECK(ft, bad < 0, "byte %lld of %zu read is wrong", bad, len);
	FT_TRY(check_canary(ft, buf, len, "buffer"));
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	bad = pattern_check(target + off, len, ft->run->seed,
			    (unsigned)ft->rank, seq);
	FT_CHECK(ft, bad < 0, "a read changed byte %lld of its source", bad);
	return FT_PASS;
}

static int one(struct ft *ft, int call, size_t len, uint64_t off,
	       uint64_t flags, int peer, uint64_t seq)
{
	return ft_rma_is_read(call) ?
	       one_read(ft, call, len, off, flags, peer, seq) :
	       one_write(ft, call, len, off, flags, peer, seq);
}

/* a: call, b: range of sizes (or all but huge), c: to itself */
static int data(struct ft *ft, const struct ft_case *c)
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	int from = c->b < 4 ? ranges[c->b][0] : 0;
	int to = c->b < 4 ? ranges[c->b][1] : 17, i, ran = 0, call = (int)c->a;

	take_mem();
	if (ft_rma_has_data(call) && !ft->o.info->domain_attr->cq_data_size)
		return ft_skip(ft, "cq_data_size is 0");
	for (i = from; i < to; i++) {
		if (ft_rma_is_inject(call) && sizes[i] > inject)
			continue;
		ran++;
		/* At the start of the memory, after the margin, and at an odd
		 * offset. */
		FT_TRY(one(ft, call, sizes[i], MARGIN, 0,
			   c->c ? ft->rank : !ft->rank, (uint64_t)i));
		FT_TRY(one(ft, call, sizes[i], 4096 + 77, 0,
			   c->c ? ft->rank : !ft->rank, (uint64_t)i + 100));
	}
	return ran ? FT_PASS : ft_skip(ft, "inject_size is %zu", inject);
}

/* a: call, b: flags; all sizes */
static int flagged(struct ft *ft, const struct ft_case *c)
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	int i;

	take_mem();
	for (i = 0; i < 17; i++)
		if (!(c->b & FI_INJECT) || sizes[i] <= inject)
			FT_TRY(one(ft, (int)c->a, sizes[i], 1000, c->b,
				   !ft->rank, (uint64_t)i));
	return FT_PASS;
}

/* NULL as buffer where 0 bytes are moved; the event still comes. */
static int nothing(struct ft *ft, const struct ft_case *c)
{
	static const int calls[] = { FT_WRITE, FT_READ, FT_INJECT_WRITE,
				     FT_WRITEDATA };
	struct ft_rma r;
	int i;

	(void)c;
	for (i = 0; i < COUNT(calls); i++) {
		ft_rma_set(ft, &r, calls[i], NULL, 0, NULL, &ft_mem.tmr,
			   !ft->rank, 0);
		r.data = data_of(ft, 5);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
	}
	return expect_event(ft, data_of(ft, 5), 0, false);
}

/* Every value of every byte of the remote data that the provider carries. */
static int data_bits(struct ft *ft, const struct ft_case *c)
{
	size_t n = ft->o.info->domain_attr->cq_data_size * 8, i;
	int call = (int)c->a;
	struct ft_rma r;

	take_mem();
	for (i = 0; i < n; i++) {
		local[0] = (unsigned char)i;
		ft_rma_set(ft, &r, call, local, 1, &ft_mem.lmr, &ft_mem.tmr,
			   !ft->rank, 0);
		r.data = 1ULL << i;
		r.flags = FI_REMOTE_CQ_DATA;
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		FT_TRY(expect_event(ft, 1ULL << i, 1, true));
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	return FT_PASS;
}

/* Reads and writes at random offsets; after each round the whole target is
 * compared with a model. */
static int places(struct ft *ft, const struct ft_case *c)
{
	enum { SPAN = 40000, ROUNDS = 60, BATCH = 8 };
	static unsigned char model[SPAN];
	uint64_t rng = ft->run->seed + c->a;
	int i, j, peer = !ft->rank;
	struct ft_rma r;

	take_mem();
	memset(target, 0, SPAN);
	memset(model, 0, SPAN);
	for (i = 0; i < ROUNDS; i++) {
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		for (j = 0; j < BATCH; j++) {
			uint64_t off = pattern_random(&rng) % SPAN;
			size_t len = pattern_random(&rng) % (j & 1 ? 64 :
							     SPAN);
			uint64_t seq = (uint64_t)(i * BATCH + j);

			if (len > SPAN - off)
				len = SPAN - off;
			/* The same random numbers on both sides. */
			pattern_fill(model + off, len, ft->run->seed, 9, seq);
			pattern_fill(local, len, ft->run->seed, 9, seq);
			ft_rma_set(ft, &r, j % 3 ? FT_WRITE : FT_WRITEMSG,
				   local, len, &ft_mem.lmr, &ft_mem.tmr, peer,
				   off);
			if (j % 3 == 0)
				r.flags = FI_DELIVERY_COMPLETE;
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
			/* One after the other, because they overlap. */
			ft_rma_set(ft, &r, FT_READ, local, len, &ft_mem.lmr,
				   &ft_mem.tmr, peer, off);
			for (;;) {
				FT_TRY(ft_rma_now(ft, &r, FT_AT));
				if (!memcmp(local, model + off, len))
					break;
				if (ft->abandoned)
					return ft_fail(ft, "another rank left "
						       "the case");
			}
		}
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		FT_CHECK(ft, !memcmp(target, model, SPAN), "round %d: the "
			 "target differs from what was written", i);
	}
	return FT_PASS;
}

/* As many pieces on both sides as the provider allows, with different lengths
 * and with gaps.  a: write or read, b: unit length */
static int pieces(struct ft *ft, const struct ft_case *c)
{
	struct fi_tx_attr *tx = ft->o.info->tx_attr;
	size_t ni = tx->iov_limit, nr = tx->rma_iov_limit, i, total = 0, left;
	const struct ft_target *t;
	size_t unit = c->b, off;
	struct ft_rma r;
	bool read = c->a;

	take_mem();
	if (ni > FT_MAX_IOV)
		ni = FT_MAX_IOV;
	if (nr > FT_MAX_IOV)
		nr = FT_MAX_IOV;
	t = &ft_mem.tmr.at[!ft->rank];
	memset(local, CANARY, 1 << 20);
	memset(target, CANARY, 1 << 20);
	memset(&r, 0, sizeof(r));
	r.call = read ? FT_READMSG : FT_WRITEMSG;
	r.addr = ft->addr[!ft->rank];
	r.niov = ni;
	r.nrma = nr;
	for (i = 0, off = 0; i < ni; i++) {
		size_t len = unit + i * 13;

		r.iov[i].iov_base = local + off;
		r.iov[i].iov_len = len;
		r.desc[i] = ft_mr_desc(ft, &ft_mem.lmr);
		if (!read)
			pattern_fill(local + off, len, ft->run->seed,
				     (unsigned)ft->rank, i);
		off += len + 33;
		total += len;
	}
	/* Backwards, so that a right result cannot be chance. */
	for (i = 0, left = total; i < nr; i++) {
		size_t len = i + 1 < nr ? total / nr - i : left;

		off = (nr - 1 - i) * (total + 100);
		r.rma[i].addr = t->base + off;
		r.rma[i].len = len;
		r.rma[i].key = t->key;
		if (read)
			pattern_fill(target + off, len, ft->run->seed,
				     (unsigned)ft->rank, i);
		left -= len;
	}
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	/* Compare the two sides as one stream of bytes. */
	{
		static unsigned char want[1 << 20], got[1 << 20];
		size_t w = 0, g = 0, len;
		double end = ft_now() + ft->run->timeout_s;

		for (i = 0, off = 0; i < ni; i++) {
			len = unit + i * 13;
			if (read)
				memcpy(got + g, local + off, len);
			else
				pattern_fill(want + w, len, ft->run->seed,
					     (unsigned)!ft->rank, i);
			FT_CHECK(ft, !read || pattern_is_filled(
				 local + off + len, 33, CANARY) < 0,
				 "the gap after piece %zu was written", i);
			off += len + 33;
			w += len;
			g += len;
		}
again:
		for (i = 0, w = read ? 0 : w, g = read ? g : 0, left = total;
		     i < nr; i++) {
			len = i + 1 < nr ? total / nr - i : left;
			off = (nr - 1 - i) * (total + 100);
			if (read)
				pattern_fill(want + w, len, ft->run->seed,
					     (unsigned)!ft->rank, i);
			else
				memcpy(got + g, target + off, len);
			if (read)
				w += len;
			else
				g += len;
			left -= len;
		}
		if (memcmp(want, got, total)) {
			ft_progress(ft);
			if (!read && !ft->abandoned && ft_now() < end)
				goto again;
			return ft_fail(ft, FT_AT "%zu bytes in %zu pieces came "
				       "out wrong", total, ni);
		}
	}
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

/*
 * Hundreds under way at once: reads and writes of all sizes, in both
 * directions, without waiting for any of them.  One half of the target is
 * written by the other rank, the other half is read.
 */
static int flood(struct ft *ft, const struct ft_case *c)
{
	enum { N = 300, SLOT = 12000 };
	static struct ft_op *op[2 * N];
	static size_t len[N];
	uint64_t rng = ft->run->seed;
	unsigned me = (unsigned)ft->rank;
	int i, peer = !ft->rank, rounds = (int)c->a, k;
	struct ft_rma r;
	long long bad;

	take_mem();
	for (k = 0; k < rounds; k++) {
		memset(target, 0, (size_t)N * SLOT / 2);
		for (i = 0; i < N; i++) {
			len[i] = pattern_random(&rng) % 3 ?
				 pattern_random(&rng) % 300 :
				 pattern_random(&rng) % (SLOT / 2);
			pattern_fill(local + i * (SLOT / 2), len[i],
				     ft->run->seed, me, (uint64_t)(i + k));
			pattern_fill(target + MEM_BYTES / 2 +
				     i * (SLOT / 2), len[i], ft->run->seed, me,
				     (uint64_t)(N + i + k));
		}
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
		for (i = 0; i < N; i++) {
			op[i] = ft_op_new(ft);
			ft_rma_set(ft, &r, i % 4 ? FT_WRITE : FT_WRITEV,
				   local + i * (SLOT / 2), len[i],
				   &ft_mem.lmr, &ft_mem.tmr, peer,
				   (uint64_t)i * (SLOT / 2));
			FT_CALL(ft, ft_rma(ft, op[i], &r));
			op[N + i] = ft_op_new(ft);
			ft_rma_set(ft, &r, i % 4 ? FT_READ : FT_READMSG,
				   local + MEM_BYTES / 2 + i * (SLOT / 2),
				   len[i], &ft_mem.lmr, &ft_mem.tmr, peer,
				   (uint64_t)(MEM_BYTES / 2 +
					      i * (SLOT / 2)));
			FT_CALL(ft, ft_rma(ft, op[N + i], &r));
		}
		for (i = 0; i < 2 * N; i++)
			FT_DONE(ft, op[i]);
		for (i = 0; i < N; i++) {
			bad = pattern_check(local + MEM_BYTES / 2 +
					    i * (SLOT / 2), len[i],
					    ft->run->seed, (unsigned)peer,
					    (uint64_t)(N + i + k));
			FT_CHECK(ft, bad < 0, "read %d: byte %lld of %zu", i,
				 bad, len[i]);
			FT_TRY(ft_await_pattern(ft, target + i * (SLOT / 2),
						len[i], (unsigned)peer,
						(uint64_t)(i + k), FT_AT));
		}
		if (ft_barrier(ft))
			return ft_fail(ft, "another rank left the case");
	}
	return FT_PASS;
}

/* All are started first; a completion is read in between only when the provider
 * requires it (-FI_EAGAIN). */
static int unread(struct ft *ft, const struct ft_case *c)
{
	enum { N = 3000 };
	static struct ft_op *op[N];
	struct ft_rma r;
	ssize_t ret;
	int i;

	(void)c;
	take_mem();
	for (i = 0; i < N; i++)
		memcpy(local + i * 4, &i, 4);
	memset(target, 0xff, N * 4);
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	for (i = 0; i < N; i++) {
		ft_rma_set(ft, &r, FT_WRITE, local + i * 4, 4, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, (uint64_t)i * 4);
		op[i] = ft_op_new(ft);
		op[i]->posted = true;
		ret = ft_try_rma(ft->o.ep, op[i], &r);
		if (ret == -FI_EAGAIN)
			ret = ft_rma(ft, op[i], &r);
		FT_CALL(ft, ret);
	}
	for (i = 0; i < N; i++)
		FT_DONE(ft, op[i]);
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	for (i = 0; i < N; i++) {
		double end = ft_now() + ft->run->timeout_s;

		while (memcmp(target + i * 4, &i, 4)) {
			ft_progress(ft);
			FT_CHECK(ft, ft_now() < end, "write %d is missing",
				 i);
		}
	}
	return FT_PASS;
}

/* Messages and one-sided operations at the same time. */
static int mixed(struct ft *ft, const struct ft_case *c)
{
	enum { N = 100, BYTES = 6000 };
	static struct ft_op *s[N], *v[N], *w[N];
	unsigned char *in = local + 2 * N * BYTES;
	int i, peer = !ft->rank;
	struct ft_rma r;

	(void)c;
	take_mem();
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = i & 1, .addr = ft_any(ft, peer),
			.buf = in + i * BYTES, .len = BYTES, .tag = 7,
		};

		v[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, v[i], &m));
		pattern_fill(local + i * BYTES, BYTES, ft->run->seed,
			     (unsigned)ft->rank, (uint64_t)i);
	}
	if (ft_barrier(ft))
		return ft_fail(ft, "another rank left the case");
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = i & 1, .addr = ft->addr[peer],
			.buf = local + i * BYTES,
			.len = i % 3 ? 50 : BYTES, .tag = 7,
		};

		ft_rma_set(ft, &r, FT_WRITE, local + i * BYTES, BYTES,
			   &ft_mem.lmr, &ft_mem.tmr, peer,
			   (uint64_t)i * BYTES);
		w[i] = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, w[i], &r));
		s[i] = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, s[i], &m));
	}
	for (i = 0; i < N; i++) {
		FT_DONE(ft, s[i]);
		FT_DONE(ft, v[i]);
		FT_DONE(ft, w[i]);
		FT_CHECK(ft, pattern_check(in + i * BYTES, i % 3 ? 50 : BYTES,
					   ft->run->seed, (unsigned)peer,
					   (uint64_t)i) < 0,
			 "message %d is wrong", i);
		FT_TRY(ft_await_pattern(ft, target + i * BYTES, BYTES,
					(unsigned)peer, (uint64_t)i, FT_AT));
	}
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[96];
	struct ft_case *c = cases;
	int call, range;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	if (!c->cfg.caps)						\
		c->cfg.caps = FT_RMA_CAPS;				\
	c++;								\
} while (0)

	for (call = 0; call < FT_RMA_CALLS; call++)
	for (range = 0; range < 4; range++) {
		if (range > 1 && ft_rma_is_inject(call))
			continue;
		c->a = (uint64_t)call;
		c->b = (uint64_t)range;
		c->huge = range == 3;
		CASE(data, "%s-%s", ft_rma_names[call], range_names[range]);
	}
	c->cfg.caps = FT_RMA_CAPS;
	CASE(nothing, "no-buffer");
	c->a = FT_WRITEDATA;
	CASE(data_bits, "writedata-all-bits");
	c->a = FT_INJECT_WRITEDATA;
	CASE(data_bits, "inject-writedata-all-bits");
	c->a = FT_WRITEMSG;
	CASE(data_bits, "writemsg-data-all-bits");
	CASE(places, "random-places");
	for (call = 0; call < 2; call++)
	for (range = 0; range < 3; range++) {
		static const size_t unit[] = { 100, 5000, 50000 };

		c->a = (uint64_t)call;
		c->b = unit[range];
		CASE(pieces, "pieces-%s-%zu", call ? "read" : "write",
		     unit[range]);
	}
	c->a = FT_WRITEMSG;
	c->b = FI_INJECT;
	CASE(flagged, "writemsg-inject-flag");
	c->a = FT_WRITEMSG;
	c->b = FI_INJECT_COMPLETE;
	CASE(flagged, "writemsg-inject-complete");
	c->a = FT_WRITEMSG;
	c->b = FI_TRANSMIT_COMPLETE;
	CASE(flagged, "writemsg-transmit-complete");
	c->a = FT_WRITEMSG;
	c->b = FI_DELIVERY_COMPLETE;
	CASE(flagged, "writemsg-delivery-complete");
	c->a = FT_WRITEMSG;
	c->b = FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE;
	CASE(flagged, "writemsg-data-delivery-complete");
	c->a = FT_WRITE;
	c->cfg.tx_op_flags = FI_DELIVERY_COMPLETE;
	CASE(flagged, "default-delivery-complete");
	c->a = 3;
	CASE(flood, "flood");
	CASE(unread, "unread-completions");
	CASE(mixed, "beside-messages");
	for (call = 0; call < FT_RMA_CALLS; call++) {
		c->a = (uint64_t)call;
		c->b = 4;
		c->c = 1;
		CASE(data, "self-%s", ft_rma_names[call]);
	}
	/* The same for all rules for keys and addresses that a provider may
	 * have; it picks. */
	for (call = 0; call < FT_RMA_CALLS; call++) {
		c->a = (uint64_t)call;
		c->b = 4;
		c->cfg.mr_mode = FT_MR_ALL;
		CASE(data, "any-mr-mode-%s", ft_rma_names[call]);
	}
	c->a = 3;
	c->cfg.mr_mode = FT_MR_ALL;
	CASE(flood, "any-mr-mode-flood");
	return ft_main(argc, argv, "remote reads and writes", cases,
		       (int)(c - cases));
}
