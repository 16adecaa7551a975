/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory registration: keys, addresses, access rights, large numbers, and closing. */
#include "../common/rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES		(256 << 10)
#define CANARY		0xa5
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

static unsigned char *mem, *out;	/* BYTES each, page-aligned */

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static int mode_of(struct ft *ft)
{
	return ft_mr_mode(&ft->o);
}

static unsigned char *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "# out of memory\n");
		exit(1);
	}
	return p;
}

/* What a case leaves open is closed, however the case ends. */
#define MAX_OPEN	16384
static struct fid_mr *opened[MAX_OPEN];
static int nopened;

static void keep(struct fid_mr *mr)
{
	opened[nopened++] = mr;
}

static int run(struct ft *ft, const struct ft_case *c)
{
	char why[FT_WHY_MAX];
	int ret, i;

	if (!mem) {
		mem = pages(BYTES);
		out = pages(BYTES);
	}
	nopened = 0;
	ret = c->body(ft, c);
	if (ret == FT_PASS)
		ret = meet(ft);
	memcpy(why, ft->why, sizeof(why));
	for (i = 0; i < nopened; i++)
		if (opened[i] && fi_close(&opened[i]->fid) && ret == FT_PASS)
			return ft_fail(ft, "fi_close of memory %d failed", i);
	memcpy(ft->why, why, sizeof(why));
	return ret;
}

/* Register with one of the calls; 0: reg, 1: regv, 2: regattr. */
static int reg(struct ft *ft, struct ft_mr *m, int call, void *buf,
	       size_t len, uint64_t access, uint64_t key)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = access,
		.requested_key = key, .context = m,
	};
	int ret;

	memset(m, 0, sizeof(*m));
	m->buf = buf;
	m->len = len;
	switch (call) {
	case 0:
		ret = fi_mr_reg(ft->o.domain, buf, len, access, 0, key, 0,
				&m->mr, m);
		break;
	case 1:
		ret = fi_mr_regv(ft->o.domain, &iov, 1, access, 0, key, 0,
				 &m->mr, m);
		break;
	default:
		ret = fi_mr_regattr(ft->o.domain, &attr, 0, &m->mr);
	}
	if (ret) {
		m->mr = NULL;
		return ret;
	}
	ret = ft_mr_ready(ft, &ft->o, m);
	if (ret)
		ft_mr_close(ft, m);
	else
		keep(m->mr);
	return ret;
}

static void unreg(struct ft_mr *m)
{
	int i;

	for (i = 0; i < nopened; i++)
		if (opened[i] == m->mr)
			opened[i] = NULL;
	fi_close(&m->mr->fid);
	m->mr = NULL;
}

/* The other rank writes and reads [off, off + len) of the memory that m has there. */
static int use(struct ft *ft, struct ft_mr *m, uint64_t off, size_t len,
	       uint64_t seq)
{
	unsigned char *at = (unsigned char *)m->buf + off;
	struct ft_mr lmr = { 0 };
	struct ft_rma r;
	long long bad;

	if (mode_of(ft) & FI_MR_LOCAL)
		FT_CALL(ft, reg(ft, &lmr, 0, out, BYTES, FI_READ | FI_WRITE,
				ft_mr_new_key(ft)));
	pattern_fill(out, len, ft->run->seed, (unsigned)ft->rank, seq);
	FT_TRY(meet(ft));
	ft_rma_set(ft, &r, FT_WRITEMSG, out, len, &lmr, m, !ft->rank, off);
	r.flags = FI_DELIVERY_COMPLETE;
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	FT_TRY(ft_await_pattern(ft, at, len, (unsigned)!ft->rank, seq,
				FT_AT));
	FT_TRY(meet(ft));
	memset(out, 0, len);
	ft_rma_set(ft, &r, FT_READ, out, len, &lmr, m, !ft->rank, off);
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	bad = pattern_check(out, len, ft->run->seed, (unsigned)ft->rank, seq);
	FT_CHECK(ft, bad < 0, "byte %lld read back is wrong", bad);
	if (lmr.mr)
		unreg(&lmr);
	return meet(ft);
}

static int whole(struct ft *ft, struct ft_mr *m, uint64_t seq)
{
	FT_TRY(use(ft, m, 0, m->len, seq));
	if (m->len > 100)
		FT_TRY(use(ft, m, m->len - 77, 77, seq + 1));
	return FT_PASS;
}

#define SHARE(m) do {							\
	if (ft_mr_share(ft, m))						\
		return FT_FAIL;						\
} while (0)

/* a: call */
static int basic(struct ft *ft, const struct ft_case *c)
{
	uint64_t key = ft_mr_new_key(ft);
	struct ft_mr m;

	FT_CALL(ft, reg(ft, &m, (int)c->a, mem + 100, 30000, FT_MR_ACCESS,
			key));
	FT_CHECK(ft, m.mr->fid.fclass == FI_CLASS_MR, "fclass %zu",
		 m.mr->fid.fclass);
	FT_CHECK(ft, m.mr->fid.context == &m, "the context is lost");
	if (!(mode_of(ft) & (FI_MR_PROV_KEY | FI_MR_RAW)))
		FT_CHECK(ft, fi_mr_key(m.mr) == key, "key %llu, not %llu",
			 (unsigned long long)fi_mr_key(m.mr),
			 (unsigned long long)key);
	SHARE(&m);
	return whole(ft, &m, 1);
}

static int duplicate(struct ft *ft, const struct ft_case *c)
{
	uint64_t key = ft_mr_new_key(ft);
	struct ft_mr a, b;
	int ret;

	(void)c;
	if (mode_of(ft) & FI_MR_PROV_KEY)
		return ft_skip(ft, "the provider picks keys");
	FT_CALL(ft, reg(ft, &a, 0, mem, 1000, FT_MR_ACCESS, key));
	ret = reg(ft, &b, 0, mem + 2000, 1000, FT_MR_ACCESS, key);
	FT_CHECK(ft, ret == -FI_ENOKEY || ret == -FI_EKEYREJECTED ||
		 ret == -FI_EINVAL || ret == -FI_EALREADY, "the same key "
		 "again: %d", ret);
	SHARE(&a);
	FT_TRY(whole(ft, &a, 3));
	unreg(&a);
	FT_CALL(ft, reg(ft, &b, 0, mem + 2000, 1000, FT_MR_ACCESS, key));
	SHARE(&b);
	return whole(ft, &b, 5);
}

/* Any value of the key's size. */
/* The same key requested twice gives two keys. */
static int own_keys(struct ft *ft, const struct ft_case *c)
{
	uint64_t key = ft_mr_new_key(ft);
	struct ft_mr a, b;

	(void)c;
	if (!(mode_of(ft) & FI_MR_PROV_KEY))
		return ft_skip(ft, "the case picks keys");
	FT_CALL(ft, reg(ft, &a, 0, mem, 1000, FT_MR_ACCESS, key));
	FT_CALL(ft, reg(ft, &b, 0, mem + 2000, 1000, FT_MR_ACCESS, key));
	FT_CHECK(ft, fi_mr_key(a.mr) != fi_mr_key(b.mr), "key %llu twice",
		 (unsigned long long)fi_mr_key(a.mr));
	SHARE(&a);
	SHARE(&b);
	FT_TRY(whole(ft, &a, 3));
	FT_TRY(whole(ft, &b, 5));
	unreg(&a);
	return whole(ft, &b, 7);
}

static int key_values(struct ft *ft, const struct ft_case *c)
{
	size_t size = ft->o.info->domain_attr->mr_key_size, i;
	uint64_t max = size >= 8 ? UINT64_MAX - 1 : (1ULL << (size * 8)) - 1;
	uint64_t keys[] = { 0, 1, 255, 256, 0x7fffffff, 0xffffffff,
			    0x123456789abcdefULL, max };
	struct ft_mr m;
	int ret;

	(void)c;
	if (mode_of(ft) & FI_MR_PROV_KEY)
		return ft_skip(ft, "the provider picks keys");
	for (i = 0; i < COUNT(keys); i++) {
		if (keys[i] > max)
			continue;
		ret = reg(ft, &m, 0, mem, 4000, FT_MR_ACCESS, keys[i]);
		FT_CHECK(ft, !ret, "key %#llx: %s", (unsigned long long)
			 keys[i], fi_strerror(-ret));
		FT_CHECK(ft, fi_mr_key(m.mr) == keys[i], "key %#llx became "
			 "%#llx", (unsigned long long)keys[i],
			 (unsigned long long)fi_mr_key(m.mr));
		SHARE(&m);
		FT_TRY(whole(ft, &m, i * 2));
		unreg(&m);
	}
	if (size >= 8)
		return FT_PASS;
	ret = reg(ft, &m, 0, mem, 4000, FT_MR_ACCESS, max + 1);
	FT_CHECK(ft, ret, "a key of more than %zu bytes is accepted", size);
	return FT_PASS;
}

/* The key of closed memory, used again, must not reach the old memory. */
static int key_again(struct ft *ft, const struct ft_case *c)
{
	uint64_t key = ft_mr_new_key(ft);
	struct ft_mr m;
	int i;

	(void)c;
	for (i = 0; i < 20; i++) {
		unsigned char *at = mem + (i % 2) * (BYTES / 2);
		unsigned char *other = mem + !(i % 2) * (BYTES / 2);

		FT_CALL(ft, reg(ft, &m, i % 3, at, 20000, FT_MR_ACCESS, key));
		SHARE(&m);
		memset(other, CANARY, 20000);
		FT_TRY(whole(ft, &m, (uint64_t)i));
		FT_CHECK(ft, pattern_is_filled(other, 20000, CANARY) < 0,
			 "round %d: the old memory was written", i);
		FT_TRY(meet(ft));
		unreg(&m);
	}
	return FT_PASS;
}

/* Other memory at the same address, used as target and as local buffer: what
 * was cached for the old memory is wrong now. */
static int remapped(struct ft *ft, const struct ft_case *c)
{
	enum { LEN = 128 << 10 };
	unsigned char *at = pages(LEN), *local = pages(LEN);
	int i, ret = FT_PASS;
	struct ft_mr m, lmr;
	struct ft_rma r;

	(void)c;
	for (i = 0; i < 5 && ret == FT_PASS; i++) {
		FT_CALL(ft, reg(ft, &m, 0, at, LEN, FT_MR_ACCESS,
				ft_mr_new_key(ft)));
		memset(&lmr, 0, sizeof(lmr));
		if (mode_of(ft) & FI_MR_LOCAL)
			FT_CALL(ft, reg(ft, &lmr, 0, local, LEN, FT_MR_ACCESS,
					ft_mr_new_key(ft)));
		SHARE(&m);
		pattern_fill(local, LEN, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		FT_TRY(meet(ft));
		ft_rma_set(ft, &r, FT_WRITE, local, LEN, &lmr, &m, !ft->rank,
			   0);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		ret = ft_await_pattern(ft, at, LEN, (unsigned)!ft->rank,
				       (uint64_t)i, FT_AT);
		FT_TRY(meet(ft));
		unreg(&m);
		if (lmr.mr)
			unreg(&lmr);
		if (mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at ||
		    mmap(local, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_FIXED, -1, 0) != local)
			return ft_fail(ft, "mmap");
	}
	munmap(at, LEN);
	munmap(local, LEN);
	return ret;
}

/* Registered before it has pages that can be used; then fi_mr_refresh, where mr_mode
 * requires it. */
static int refresh(struct ft *ft, const struct ft_case *c)
{
	enum { LEN = 64 << 10 };
	unsigned char *at = pages(LEN);
	struct iovec iov = { .iov_base = at, .iov_len = LEN };
	struct ft_mr m;
	int ret;

	(void)c;
	if (mode_of(ft) & FI_MR_ALLOCATED)
		return ft_skip(ft, "FI_MR_ALLOCATED");
	/* Not munmap(): others in this process map memory too, and would get it. */
	if (mmap(at, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
		 MAP_NORESERVE, -1, 0) != at)
		return ft_fail(ft, "mmap");
	FT_CALL(ft, reg(ft, &m, 0, at, LEN, FT_MR_ACCESS, ft_mr_new_key(ft)));
	if (mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_FIXED, -1, 0) != at)
		return ft_fail(ft, "mmap");
	ret = fi_mr_refresh(m.mr, &iov, 1, 0);
	FT_CHECK(ft, !ret || (ret == -FI_ENOSYS &&
			      !(mode_of(ft) & FI_MR_MMU_NOTIFY)),
		 "fi_mr_refresh: %d", ret);
	SHARE(&m);
	return whole(ft, &m, 1);
}

/* A descriptor may be given where none is required. */
static int desc(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *s = ft_op_new(ft), *v = ft_op_new(ft);
	struct ft_mr m, lmr;
	struct ft_rma r;
	void *d;
	int i;

	(void)c;
	FT_CALL(ft, reg(ft, &m, 0, mem, BYTES, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	FT_CALL(ft, reg(ft, &lmr, 0, out, BYTES, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	SHARE(&m);
	d = fi_mr_desc(lmr.mr);
	pattern_fill(out, 60000, ft->run->seed, (unsigned)ft->rank, 4);
	FT_TRY(meet(ft));
	for (i = 0; i < 2; i++) {
		ft_rma_set(ft, &r, i ? FT_WRITEMSG : FT_WRITE, out, 60000,
			   NULL, &m, !ft->rank, 0);
		r.desc[0] = r.desc[1] = d;
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		FT_TRY(ft_await_pattern(ft, mem, 60000, (unsigned)!ft->rank, 4,
					FT_AT));
		FT_TRY(meet(ft));
		memset(mem, 0, 60000);
		FT_TRY(meet(ft));
	}
	pattern_fill(mem, 60000, ft->run->seed, (unsigned)ft->rank, 5);
	FT_TRY(meet(ft));
	ft_rma_set(ft, &r, FT_READ, out + 100000, 60000, NULL, &m, !ft->rank,
		   0);
	r.desc[0] = d;
	FT_TRY(ft_rma_now(ft, &r, FT_AT));
	FT_CHECK(ft, pattern_check(out + 100000, 60000, ft->run->seed,
				   (unsigned)!ft->rank, 5) < 0, "read wrong");
	s->posted = v->posted = true;
	FT_CALL(ft, fi_trecv(ft->o.ep, out + 100000, 60000, d, FI_ADDR_UNSPEC,
			     7, 0, v));
	FT_TRY(meet(ft));
	FT_CALL(ft, fi_tsend(ft->o.ep, out, 60000, d, ft->addr[!ft->rank], 7,
			     s));
	FT_DONE(ft, s);
	FT_DONE(ft, v);
	FT_CHECK(ft, pattern_check(out + 100000, 60000, ft->run->seed,
				   (unsigned)!ft->rank, 4) < 0,
		 "received wrong");
	return FT_PASS;
}

struct raw {
	uint64_t base, size;
	uint8_t key[256];
};

/* Raw keys; providers with plain keys may support them as well. */
static int raw_key(struct ft *ft, const struct ft_case *c)
{
	struct raw mine = { 0 }, all[OOB_MAX_RANKS];
	struct ft_target *t;
	struct ft_mr m;
	size_t size = sizeof(mine.key);
	int ret;

	(void)c;
	FT_CALL(ft, reg(ft, &m, 0, mem, 4000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	ret = fi_mr_raw_attr(m.mr, &mine.base, mine.key, &size, 0);
	if (ret == -FI_ENOSYS && !(mode_of(ft) & FI_MR_RAW))
		return ft_skip(ft, "no fi_mr_raw_attr, and no FI_MR_RAW");
	FT_CHECK(ft, !ret, "fi_mr_raw_attr: %d", ret);
	FT_CHECK(ft, size && size <= sizeof(mine.key), "a raw key of %zu bytes",
		 size);
	mine.size = size;
	/* With too small a buffer, the call returns the size that is needed. */
	size = 0;
	ret = fi_mr_raw_attr(m.mr, &mine.base, NULL, &size, 0);
	ft_known(ft, NULL, "no answer to a buffer that is too small");
	FT_CHECK(ft, ret == -FI_ETOOSMALL && size == mine.size,
		 "no room: %d, size %zu", ret, size);
	ft->todo[0] = '\0';
	if (oob_allgather(&ft->oob, &mine, all, sizeof(mine)))
		return ft_fail(ft, "exchange");
	SHARE(&m);
	t = &m.at[!ft->rank];
	ret = fi_mr_map_raw(ft->o.domain, all[!ft->rank].base,
			    all[!ft->rank].key, all[!ft->rank].size, &t->key,
			    0);
	if (ret == -FI_ENOSYS && !(mode_of(ft) & FI_MR_RAW))
		return ft_skip(ft, "no fi_mr_map_raw, and no FI_MR_RAW");
	FT_CHECK(ft, !ret, "fi_mr_map_raw: %d", ret);
	FT_TRY(whole(ft, &m, 2));
	ret = fi_mr_unmap_key(ft->o.domain, t->key);
	FT_CHECK(ft, !ret, "fi_mr_unmap_key: %d", ret);
	return FT_PASS;
}

/* A counter bound to memory counts the writes to it, and nothing else. */
static int counted(struct ft *ft, const struct ft_case *c)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct ft_mr m, other;
	double end;
	int ret;

	(void)c;
	memset(&m, 0, sizeof(m));
	m.buf = mem;
	m.len = 1000;
	FT_CALL(ft, fi_cntr_open(ft->o.domain, &attr, &cntr, NULL));
	FT_CALL(ft, fi_mr_reg(ft->o.domain, mem, 1000, FT_MR_ACCESS, 0,
			      ft_mr_new_key(ft), FI_RMA_EVENT, &m.mr, NULL));
	ret = fi_mr_bind(m.mr, &cntr->fid, FI_REMOTE_WRITE);
	if (ret) {
		fi_close(&m.mr->fid);
		fi_close(&cntr->fid);
		return ret == -FI_ENOSYS ? ft_skip(ft, "fi_mr_bind of a "
			"counter: %s", fi_strerror(-ret)) :
			ft_fail(ft, "fi_mr_bind: %s", fi_strerror(-ret));
	}
	if (mode_of(ft) & (FI_MR_RMA_EVENT | FI_MR_ENDPOINT))
		FT_CALL(ft, fi_mr_enable(m.mr));
	FT_CALL(ft, reg(ft, &other, 0, mem + 2000, 1000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	SHARE(&m);
	SHARE(&other);
	FT_TRY(whole(ft, &other, 1));
	FT_TRY(use(ft, &m, 0, 1000, 3));
	end = ft_now() + ft->run->timeout_s;
	ft_known(ft, NULL, "counters of memory do not count");
	while (!fi_cntr_read(cntr))
		FT_CHECK(ft, ft_now() < end, "the write was not counted");
	FT_CHECK(ft, fi_cntr_read(cntr) == 1, "%llu writes counted",
		 (unsigned long long)fi_cntr_read(cntr));
	FT_TRY(meet(ft));
	ret = fi_close(&cntr->fid);
	FT_CHECK(ft, ret == -FI_EBUSY, "a counter that memory uses was "
		 "closed: %d", ret);
	FT_CALL(ft, fi_close(&m.mr->fid));
	FT_CALL(ft, fi_close(&cntr->fid));
	return FT_PASS;
}

/* a: how many registrations */
static int many(struct ft *ft, const struct ft_case *c)
{
	int n = (int)c->a, i, k;
	static struct ft_mr m;
	uint64_t first = 1 << 20, rng = ft->run->seed;
	int max = (int)ft->o.info->domain_attr->mr_cnt;
	int provkey = mode_of(ft) & (FI_MR_PROV_KEY | FI_MR_RAW |
				     FI_MR_ENDPOINT);

	if (provkey)
		return ft_skip(ft, "only for keys that the case picks");
	if (max && n > max)
		n = max;
	for (i = 0; i < n; i++)
		FT_CALL(ft, reg(ft, &m, 0, mem + i * 16, 16, FT_MR_ACCESS,
				first + (uint64_t)i * 7));
	for (k = 0; k < 100; k++) {
		i = k == 0 ? 0 : k == 1 ? n - 1 :
		    (int)(pattern_random(&rng) % (uint64_t)n);
		m.buf = mem + i * 16;
		m.len = 16;
		m.mr = opened[i];
		SHARE(&m);
		FT_TRY(use(ft, &m, 0, 16, (uint64_t)k));
	}
	return FT_PASS;
}

static int churn(struct ft *ft, const struct ft_case *c)
{
	struct ft_mr m;
	int i;

	for (i = 0; i < (int)c->a; i++) {
		FT_CALL(ft, reg(ft, &m, i % 3, mem + i % 1000, 5000,
				FT_MR_ACCESS, ft_mr_new_key(ft)));
		unreg(&m);
		nopened = 0;
	}
	FT_CALL(ft, reg(ft, &m, 0, mem, 5000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	SHARE(&m);
	return whole(ft, &m, 1);
}

/* The same bytes registered several times, with different rights. */
static int overlapping(struct ft *ft, const struct ft_case *c)
{
	struct ft_mr a, b, d;

	(void)c;
	FT_CALL(ft, reg(ft, &a, 0, mem, 8000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	FT_CALL(ft, reg(ft, &b, 1, mem + 4000, 8000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	FT_CALL(ft, reg(ft, &d, 2, mem, 8000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	SHARE(&a);
	SHARE(&b);
	SHARE(&d);
	FT_TRY(whole(ft, &a, 1));
	FT_TRY(whole(ft, &b, 3));
	unreg(&a);
	FT_TRY(whole(ft, &d, 5));
	unreg(&d);
	return whole(ft, &b, 7);
}

/* Every set of rights can be registered, and what it allows works.  One number each. */
static int access_flags(struct ft *ft, const struct ft_case *c)
{
	static const uint64_t bit[] = { FI_REMOTE_READ, FI_REMOTE_WRITE,
					FI_READ, FI_WRITE, FI_SEND, FI_RECV };
	struct ft_mr m, lmr;
	struct ft_rma r;
	int i, j;

	(void)c;
	FT_CALL(ft, reg(ft, &lmr, 0, out, BYTES, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	for (i = 1; i < 1 << COUNT(bit); i++) {
		uint64_t access = 0;

		for (j = 0; j < COUNT(bit); j++)
			if (i & (1 << j))
				access |= bit[j];
		FT_CALL(ft, reg(ft, &m, i % 3, mem, 3000, access,
				ft_mr_new_key(ft)));
		SHARE(&m);
		pattern_fill(mem, 3000, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		FT_TRY(meet(ft));
		if (access & FI_REMOTE_READ) {
			ft_rma_set(ft, &r, FT_READ, out, 3000, &lmr, &m,
				   !ft->rank, 0);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
			FT_CHECK(ft, pattern_check(out, 3000, ft->run->seed,
						   (unsigned)!ft->rank,
						   (uint64_t)i) < 0,
				 "access %#llx: read wrong",
				 (unsigned long long)access);
			FT_TRY(meet(ft));
		}
		if (access & FI_REMOTE_WRITE) {
			pattern_fill(out, 3000, ft->run->seed,
				     (unsigned)ft->rank, 99);
			ft_rma_set(ft, &r, FT_WRITE, out, 3000, &lmr, &m,
				   !ft->rank, 0);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
			FT_TRY(ft_await_pattern(ft, mem, 3000,
						(unsigned)!ft->rank, 99,
						FT_AT));
			FT_TRY(meet(ft));
		}
		unreg(&m);
	}
	return FT_PASS;
}

/* Zero bytes, and zero bytes at NULL: refused or not, but never a crash. */
static int zero(struct ft *ft, const struct ft_case *c)
{
	struct fi_mr_attr attr = { .access = FT_MR_ACCESS };
	struct fid_mr *mr = NULL;
	struct ft_mr m;
	int ret, i;

	(void)c;
	for (i = 0; i < 3; i++) {
		ret = reg(ft, &m, i, mem, 0, FT_MR_ACCESS, ft_mr_new_key(ft));
		FT_CHECK(ft, ret <= 0, "%d", ret);
		ret = reg(ft, &m, i, NULL, 0, FT_MR_ACCESS,
			  ft_mr_new_key(ft));
		FT_CHECK(ft, ret <= 0, "%d", ret);
	}
	if (!ft_is_bare(ft, "lnx"))
		return FT_PASS;
	attr.requested_key = ft_mr_new_key(ft);
	ret = fi_mr_regattr(ft->o.domain, &attr, 0, &mr);
	FT_CHECK(ft, ret < 0, "registered no iovec at all: %d", ret);
	return FT_PASS;
}

/* Several pieces in one registration: the peer sees them as one contiguous range. */
static int iovecs(struct ft *ft, const struct ft_case *c)
{
	size_t limit = ft->o.info->domain_attr->mr_iov_limit, i;
	struct iovec iov[FT_MAX_IOV];
	struct ft_mr m = { .buf = mem, .len = 4000 };

	(void)c;
	if (limit > FT_MAX_IOV - 1)
		limit = FT_MAX_IOV - 1;
	for (i = 0; i < FT_MAX_IOV; i++) {
		iov[i].iov_base = mem + i * 8000;
		iov[i].iov_len = 4000;
	}
	FT_CALL(ft, fi_mr_regv(ft->o.domain, iov, limit, FT_MR_ACCESS, 0,
			       ft_mr_new_key(ft), 0, &m.mr, NULL));
	FT_CALL(ft, ft_mr_ready(ft, &ft->o, &m));
	keep(m.mr);
	SHARE(&m);
	FT_TRY(whole(ft, &m, 1));
	if (limit < 2)
		return ft_skip(ft, "mr_iov_limit is %zu", limit);
	if (mode_of(ft) & FI_MR_VIRT_ADDR) {
		struct ft_mr second = m;

		second.buf = iov[1].iov_base;
		for (i = 0; i < (size_t)ft->n; i++)
			second.at[i].base += 8000;
		if (ft_is_bare(ft, "shm"))
			return ft_skip(ft, "bare shm never completes a write "
				       "to the second iovec");
		return whole(ft, &second, 5);
	}
	{
		static unsigned char want[8000];
		struct ft_mr lmr;
		struct ft_rma r;
		double end = ft_now() + 3;

		ft_known(ft, NULL, "only the first iovec can be reached");
		FT_CALL(ft, reg(ft, &lmr, 0, out, BYTES, FT_MR_ACCESS,
				ft_mr_new_key(ft)));
		ft->spoiled = true;
		pattern_fill(out, 8000, ft->run->seed, 3, 3);
		memcpy(want, out, 8000);
		FT_TRY(meet(ft));
		ft_rma_set(ft, &r, FT_WRITE, out, 8000, &lmr, &m, !ft->rank,
			   0);
		{
			struct ft_op *op = ft_op_new(ft);

			FT_CALL(ft, ft_rma(ft, op, &r));
			FT_CHECK(ft, !ft_wait_for(ft, op, 3), "a write over "
				 "two iovecs never completes");
			FT_CHECK(ft, !op->err, "a write over two iovecs: %s",
				 fi_strerror(op->err));
		}
		while (memcmp(mem, want, 4000) ||
		       memcmp(mem + 8000, want + 4000, 4000)) {
			ft_progress(ft);
			FT_CHECK(ft, ft_now() < end, "a write over two iovecs "
				 "went elsewhere");
		}
	}
	return FT_PASS;
}

static int too_many_iovecs(struct ft *ft, const struct ft_case *c)
{
	size_t n = ft->o.info->domain_attr->mr_iov_limit + 1, i;
	struct iovec iov[FT_MAX_IOV];
	struct fid_mr *mr = NULL;
	int ret;

	(void)c;
	if (n > FT_MAX_IOV)
		return ft_skip(ft, "mr_iov_limit is %zu", n - 1);
	for (i = 0; i < n; i++) {
		iov[i].iov_base = mem + i * 8000;
		iov[i].iov_len = 4000;
	}
	ret = fi_mr_regv(ft->o.domain, iov, n, FT_MR_ACCESS, 0,
			 ft_mr_new_key(ft), 0, &mr, NULL);
	if (!ret)
		keep(mr);
	ft_known(ft, NULL, "more than mr_iov_limit is accepted");
	FT_CHECK(ft, ret, "%zu iovecs registered, mr_iov_limit is %zu", n,
		 n - 1);
	return FT_PASS;
}

/* An offset of more than 32 bits. */
static int big(struct ft *ft, const struct ft_case *c)
{
	size_t len = (size_t)5 << 30;
	unsigned char *at;
	struct ft_mr m;
	int ret = FT_PASS;

	(void)c;
	if (mode_of(ft) & FI_MR_ALLOCATED)
		return ft_skip(ft, "FI_MR_ALLOCATED");
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		  MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return ft_skip(ft, "no 5 GiB of address space");
	FT_CALL(ft, reg(ft, &m, 0, at, len, FT_MR_ACCESS, ft_mr_new_key(ft)));
	SHARE(&m);
	ret = use(ft, &m, 0, 5000, 1);
	if (ret == FT_PASS)
		ret = use(ft, &m, ((uint64_t)4 << 30) - 1000, 50000, 2);
	if (ret == FT_PASS)
		ret = use(ft, &m, len - 70000, 70000, 3);
	unreg(&m);
	munmap(at, len);
	return ret;
}

/* ---- lifetime relative to other objects ---- */

static struct ft_mr early;

static int reg_early(struct ft *ft, struct ft_objs *o)
{
	if (!mem) {
		mem = pages(BYTES);
		out = pages(BYTES);
	}
	if (ft_mr_mode(o) & FI_MR_ENDPOINT)
		return 0;
	if (ft_mr_open(ft, o, &early, mem, 5000, FT_MR_ACCESS))
		return -FI_EOTHER;
	o->extra[o->nextra++] = &early.mr->fid;
	return 0;
}

/* Memory registered before the endpoint is enabled, and closed after it. */
static int before_enable(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	ft->spoiled = true;
	if (mode_of(ft) & FI_MR_ENDPOINT)
		return ft_skip(ft, "FI_MR_ENDPOINT");
	SHARE(&early);
	return whole(ft, &early, 1);
}

/* A second endpoint of the domain uses the same memory with the same key. */
static int two_endpoints(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr ava = { .type = FI_AV_TABLE };
	struct ft_objs o = ft->o, main_o = ft->o;
	fi_addr_t addr[OOB_MAX_RANKS], main_addr[OOB_MAX_RANKS];
	int result, i;
	struct ft_mr m;

	(void)c;
	ft->spoiled = true;
	if (mode_of(ft) & FI_MR_ENDPOINT)
		return ft_skip(ft, "FI_MR_ENDPOINT");
	FT_CALL(ft, reg(ft, &m, 0, mem, 20000, FT_MR_ACCESS,
			ft_mr_new_key(ft)));
	FT_CALL(ft, fi_av_open(o.domain, &ava, &o.av, NULL));
	FT_CALL(ft, fi_cq_open(o.domain, &cqa, &o.cq, NULL));
	FT_CALL(ft, fi_endpoint(o.domain, o.info, &o.ep, NULL));
	FT_CALL(ft, fi_ep_bind(o.ep, &o.av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_enable(o.ep));
	o.name_len = sizeof(o.name);
	FT_CALL(ft, fi_getname(&o.ep->fid, o.name, &o.name_len));
	if (ft_exchange(ft, &o, addr))
		return FT_FAIL;
	SHARE(&m);
	memcpy(main_addr, ft->addr, sizeof(addr));
	result = whole(ft, &m, 1);
	for (i = 0; i < 2 && result == FT_PASS; i++) {
		ft->o = o;
		memcpy(ft->addr, addr, sizeof(addr));
		result = whole(ft, &m, 3);
		ft->o = main_o;
		memcpy(ft->addr, main_addr, sizeof(addr));
		if (result == FT_PASS)
			result = whole(ft, &m, 5);
	}
	fi_close(&o.ep->fid);
	fi_close(&o.cq->fid);
	fi_close(&o.av->fid);
	/* The other endpoint still uses it. */
	if (result == FT_PASS)
		result = meet(ft);
	if (result == FT_PASS)
		result = whole(ft, &m, 7);
	return result;
}

/* a: order of closing.  0: memory, endpoint, domain; 1: endpoint, memory,
 * domain; 2: domain first; 3: memory that the peer has used and that no
 * endpoint uses any more */
static int close_order(struct ft *ft, const struct ft_case *c)
{
	struct ft_cfg cfg = { .caps = FT_RMA_CAPS };
	struct ft_objs o;
	struct ft_mr m;
	int ret;

	ret = ft_objs_open(ft, &cfg, &o);
	if (ret == -FI_ENODATA)
		return FT_SKIP;
	if (ret)
		return FT_FAIL;
	if (ft_mr_open(ft, &o, &m, mem, 5000, FT_MR_ACCESS))
		return FT_FAIL;
	switch (c->a) {
	case 0:
		FT_CALL(ft, fi_close(&m.mr->fid));
		break;
	case 1:
		FT_CALL(ft, fi_close(&o.ep->fid));
		o.ep = NULL;
		FT_CALL(ft, fi_close(&m.mr->fid));
		break;
	default:
		if (ft_is_bare(ft, "tcp;ofi_rxm")) {
			ft_mr_close(ft, &m);
			ft_objs_close(ft, &o);
			return ft_skip(ft, "bare tcp;ofi_rxm frees half of "
				       "the domain and dies at the next try");
		}
		FT_CALL(ft, fi_close(&o.ep->fid));
		FT_CALL(ft, fi_close(&o.cq->fid));
		FT_CALL(ft, fi_close(&o.av->fid));
		o.ep = NULL;
		o.cq = NULL;
		o.av = NULL;
		ret = fi_close(&o.domain->fid);
		FT_CHECK(ft, ret == -FI_EBUSY, "a domain with memory was "
			 "closed: %d", ret);
		FT_CALL(ft, fi_close(&m.mr->fid));
	}
	return ft_objs_close(ft, &o) ? FT_FAIL : FT_PASS;
}

int main(int argc, char **argv)
{
	static const char *const calls[] = { "reg", "regv", "regattr" };
	static const char *const orders[] = { "memory-endpoint-domain",
					      "endpoint-memory-domain",
					      "domain-with-memory" };
	static struct ft_case cases[64];
	struct ft_case *c = cases;
	int i, any;

#define CASE(body_, ...) do {						\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = run;							\
	c->body = (body_);						\
	if (!c->cfg.caps)						\
		c->cfg.caps = FT_RMA_CAPS;				\
	c->cfg.mr_mode = any ? FT_MR_ALL : 0;				\
	c++;								\
} while (0)

	for (any = 0; any < 2; any++) {
		const char *pre = any ? "any-mr-mode-" : "";

		for (i = 0; i < COUNT(calls); i++) {
			c->a = (uint64_t)i;
			CASE(basic, "%s%s", pre, calls[i]);
		}
		CASE(desc, "%sdescriptors", pre);
		CASE(raw_key, "%sraw-keys", pre);
		CASE(key_again, "%skey-used-again", pre);
		CASE(remapped, "%sother-pages", pre);
		CASE(overlapping, "%soverlapping", pre);
		CASE(access_flags, "%saccess-flags", pre);
		CASE(iovecs, "%siovecs", pre);
		CASE(two_endpoints, "%stwo-endpoints", pre);
	}
	any = 0;
	CASE(too_many_iovecs, "too-many-iovecs");
	CASE(duplicate, "duplicate-key");
	CASE(key_values, "key-values");
	CASE(own_keys, "keys-of-the-provider");
	CASE(refresh, "refresh");
	c->cfg.caps = FT_RMA_CAPS | FI_RMA_EVENT;
	CASE(counted, "counter-of-memory");
	c->a = 1000;
	CASE(many, "thousand");
	c->a = 10000;
	CASE(many, "ten-thousand");
	c->a = 20000;
	CASE(churn, "open-and-close");
	CASE(zero, "zero-length");
	CASE(big, "five-gigabytes");
	c->cfg.bind = reg_early;
	CASE(before_enable, "before-enable");
	for (i = 0; i < COUNT(orders); i++) {
		c->a = (uint64_t)i;
		c->cfg.alone = true;
		CASE(close_order, "close-%s", orders[i]);
	}
	return ft_main(argc, argv, "memory registration", cases,
		       (int)(c - cases));
}
