/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything at once for as long as you like: random messages, reads, writes and
 * atomics, both directions, hundreds under way, all data checked.  --seconds N
 * says how long each case takes; otherwise -I rounds.  The seed is printed, -S repeats a run.
 *
 * Both ranks make the same random plan of a round, so each knows what the other
 * does to it.  In a round every slot of memory has one use, and all of its
 * operations are under way together; between rounds everything is compared.
 */
#include "../common/rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS		256
#define SLOT_BYTES	(64 << 10)
#define BIG_SLOTS	4		/* of 1 MiB, after the small ones */
#define BIG_BYTES	(1 << 20)
#define SUMS		64		/* counters, after those */
#define SUM_AT		((size_t)SLOTS * SLOT_BYTES + \
			 (size_t)BIG_SLOTS * BIG_BYTES)
#define MEM_BYTES	(SUM_AT + 8192)

enum use { MESSAGE, WRITES, READS, ATOMIC_ADD, ATOMIC_FETCH, NUSES };

/* One operation that rank `from` does in a round. */
struct item {
	enum use use;
	int call;
	bool tagged, late;		/* receive posted after the send */
	size_t len, at;			/* at: in local and in target */
	uint64_t flags, seq;
	int sum;			/* which counter */
	struct ft_op *op, *rma_op;
	uint64_t *result;
};

#define ITEMS	(SLOTS + BIG_SLOTS)

static struct item plan[2][ITEMS];	/* by the rank that does it */
static int nplan;
static uint64_t *results;		/* local memory of fetches */
static unsigned char *in;		/* where messages arrive */
static unsigned char *base_in;
static bool rma, atomics;

static struct {
	uint64_t rounds, bytes, of[NUSES];
} done;

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static size_t random_len(uint64_t *rng, bool big)
{
	static const size_t edges[] = { 0, 1, 8, 63, 64, 65, 128, 129, 191,
		192, 193, 4095, 4096, 4097, 16320, 16384, 16385, 32768,
		65535, 65536 };
	uint64_t r = pattern_random(rng);

	if (big)
		return r % (BIG_BYTES + 1);
	switch (r % 4) {
	case 0:
		return edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (r >> 8) % (SLOT_BYTES + 1);
	default:
		return (r >> 8) % 512;
	}
}

static void make_plan(struct ft *ft, uint64_t *rng, uint64_t round)
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	int from, i, late[2] = { 0, 0 };

	nplan = 0;
	for (i = 0; i < ITEMS; i++) {
		bool big = i >= SLOTS;

		if (pattern_random(rng) % (big ? 8 : 2))
			continue;
		for (from = 0; from < 2; from++) {
			struct item *t = &plan[from][nplan];
			uint64_t r = pattern_random(rng);

			memset(t, 0, sizeof(*t));
			t->len = random_len(rng, big);
			t->at = big ? (size_t)SLOTS * SLOT_BYTES +
				(size_t)(i - SLOTS) * BIG_BYTES :
				(size_t)i * SLOT_BYTES;
			t->seq = round * ITEMS + (uint64_t)i;
			t->use = (enum use)(r % NUSES);
			if ((t->use >= ATOMIC_ADD && !atomics) ||
			    ((t->use == WRITES || t->use == READS) && !rma))
				t->use = MESSAGE;
			r >>= 8;
			t->tagged = r & 3;
			/* Only a few: a message that waits for a receive needs
			 * memory. */
			if (t->use == MESSAGE && t->tagged && r & 4)
				t->late = ++late[from] <= 16;
			t->sum = (int)(r >> 8 & (SUMS - 1));
			r >>= 16;
			switch (t->use) {
			case MESSAGE:
				t->call = (int)(r % FT_SEND_CALLS);
				if ((t->call == FT_INJECT ||
				     t->call == FT_INJECTDATA) &&
				    t->len > inject)
					t->call = FT_SENDMSG;
				break;
			case WRITES:
				t->call = (int)(r % FT_READ);
				if (ft_rma_is_inject(t->call) &&
				    t->len > inject)
					t->call = FT_WRITEMSG;
				if (t->call == FT_WRITEMSG && r & 0x100)
					t->flags = FI_DELIVERY_COMPLETE;
				break;
			case READS:
				t->call = FT_READ + (int)(r % 3);
				break;
			case ATOMIC_ADD:
				t->call = (int)(r % FT_FETCH);
				break;
			default:
				t->call = FT_FETCH + (int)(r % 3);
			}
		}
		nplan++;
	}
}

static int post_recv(struct ft *ft, struct item *t, int i)
{
	/* Bare shm and rxm confuse the two kinds of message without a tag, and
	 * crash. */
	bool any = i & 1 || (!t->tagged && !ft_is_bare(ft, "lnx"));
	struct ft_msg m = {
		.tagged = t->tagged, .call = i % FT_RECV_CALLS,
		.addr = any ? FI_ADDR_UNSPEC : ft->addr[!ft->rank],
		.buf = in + t->at, .len = t->at >= (size_t)SLOTS * SLOT_BYTES ?
		BIG_BYTES : SLOT_BYTES, .tag = (uint64_t)i + 1,
	};

	t->rma_op = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, t->rma_op, &m));
	return FT_PASS;
}

/* A provider may delay sends until they are received: each rank would wait for
 * the other's late receives for ever. */
static void post_late(struct ft *ft)
{
	struct item *theirs = plan[!ft->rank];
	static bool inside;
	int i;

	if (inside)
		return;
	inside = true;
	for (i = 0; i < nplan; i++)
		if (theirs[i].use == MESSAGE && theirs[i].late &&
		    !theirs[i].rma_op)
			post_recv(ft, &theirs[i], i);
	inside = false;
}

static int start(struct ft *ft, struct item *t, int i, uint64_t *one)
{
	unsigned char *buf = ft_mem.local + t->at;
	struct ft_atomic a;
	struct ft_rma r;
	struct ft_msg m = {
		.tagged = t->tagged, .call = t->call, .addr = ft->addr[!ft->rank],
		.buf = buf, .len = t->len, .tag = (uint64_t)i + 1,
		.data = t->seq,
	};
	bool inject = t->use == MESSAGE ? t->call == FT_INJECT ||
		      t->call == FT_INJECTDATA :
		      t->use == WRITES ? ft_rma_is_inject(t->call) :
		      t->use == ATOMIC_ADD && t->call == FT_INJECT_ATOMIC;

	t->op = inject ? NULL : ft_op_new(ft);
	switch (t->use) {
	case MESSAGE:
		FT_CALL(ft, ft_send(ft, t->op, &m));
		break;
	case WRITES:
	case READS:
		ft_rma_set(ft, &r, t->call, buf, t->len, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, t->at);
		r.data = t->seq;
		r.flags = t->flags;
		FT_CALL(ft, ft_rma(ft, t->op, &r));
		break;
	default:
		t->result = &results[i];
		ft_atomic_set(ft, &a, t->call, FI_UINT64, FI_SUM, 8, one, NULL,
			      t->result, 1, &ft_mem.lmr, &ft_mem.tmr,
			      !ft->rank, SUM_AT + (size_t)t->sum * 8);
		FT_CALL(ft, ft_atomic(ft, t->op, &a));
	}
	if (inject && t->use != ATOMIC_ADD)
		memset(buf, 0xee, t->len);	/* the buffer is ours again */
	done.of[t->use]++;
	done.bytes += t->use < ATOMIC_ADD ? t->len : 8;
	return FT_PASS;
}

static const char *const use_names[NUSES] = { "message", "write", "read",
					      "add", "fetch" };

static int wait_item(struct ft *ft, struct item *t, int i)
{
	int ret = FT_PASS;

	if (t->op)
		ret = ft_must_complete(ft, t->op, FT_AT);
	if (ret != FT_PASS) {
		char why[FT_WHY_MAX];

		memcpy(why, ft->why, sizeof(why));
		return ft_fail(ft, "round %llu, item %d, %s of %zu bytes: "
			       "%.150s", (unsigned long long)done.rounds, i,
			       use_names[t->use], t->len, why);
	}
	if (t->use != READS)
		return FT_PASS;
	FT_CHECK(ft, pattern_check(ft_mem.local + t->at, t->len, ft->run->seed,
				   (unsigned)!ft->rank, t->seq) < 0,
		 "round %llu: item %d read %zu bytes wrongly",
		 (unsigned long long)done.rounds, i, t->len);
	return FT_PASS;
}

/* Check what the other rank did to us. */
static int check_theirs(struct ft *ft, struct item *t, int i)
{
	if (t->use == MESSAGE) {
		FT_CHECK(ft, t->rma_op, "a receive was not posted");
		FT_DONE(ft, t->rma_op);
		FT_CHECK(ft, t->rma_op->len == t->len && pattern_check(
			 in + t->at, t->len, ft->run->seed,
			 (unsigned)!ft->rank, t->seq) < 0,
			 "round %llu: message %d of %zu bytes is wrong (len "
			 "%zu)", (unsigned long long)done.rounds, i, t->len,
			 t->rma_op->len);
		FT_CHECK(ft, (t->call != FT_SENDDATA &&
			      t->call != FT_INJECTDATA) ||
			 t->rma_op->data == t->seq, "round %llu: message %d has "
			 "data %#llx", (unsigned long long)done.rounds, i,
			 (unsigned long long)t->rma_op->data);
	} else if (t->use == WRITES) {
		FT_TRY(ft_await_pattern(ft, ft_mem.target + t->at, t->len,
					(unsigned)!ft->rank, t->seq, FT_AT));
	}
	return FT_PASS;
}

static int check_events(struct ft *ft)
{
	struct item *theirs = plan[!ft->rank];
	uint64_t want = 0, sum = 0;
	unsigned n = 0, k;
	int i;

	for (i = 0; i < nplan; i++) {
		if (theirs[i].use != WRITES || !ft_rma_has_data(theirs[i].call))
			continue;
		n++;
		want += pattern_mix(theirs[i].seq);
	}
	FT_CHECK(ft, !ft_wait_events(ft, n), "%u events of %u writes with "
		 "data", ft->nevents, n);
	FT_CHECK(ft, ft->nevents == n, "%u events of %u writes with data",
		 ft->nevents, n);
	for (k = 0; k < n; k++)
		sum += pattern_mix(ft->events[k].data);
	FT_CHECK(ft, sum == want, "round %llu: the data of %u writes is wrong",
		 (unsigned long long)done.rounds, n);
	return FT_PASS;
}

static int one_round(struct ft *ft, uint64_t *rng, uint64_t sums[SUMS],
		     uint64_t *one)
{
	struct item *mine = plan[ft->rank], *theirs = plan[!ft->rank];
	uint64_t *counter = (void *)(ft_mem.target + SUM_AT);
	double end;
	int i, j;

	make_plan(ft, rng, done.rounds);
	for (i = 0; i < nplan; i++) {
		if (mine[i].use == MESSAGE || mine[i].use == WRITES)
			pattern_fill(ft_mem.local + mine[i].at, mine[i].len,
				     ft->run->seed, (unsigned)ft->rank,
				     mine[i].seq);
		if (theirs[i].use == READS)
			pattern_fill(ft_mem.target + theirs[i].at,
				     theirs[i].len, ft->run->seed,
				     (unsigned)ft->rank, theirs[i].seq);
		if (theirs[i].use >= ATOMIC_ADD)
			sums[theirs[i].sum] += *one;
	}
	/* Each rank walks through the plan in another order; messages without a
	 * tag arrive in the order of their sender. */
	for (i = 0; i < nplan; i++) {
		j = ft->rank ? i : nplan - 1 - i;
		if (theirs[j].use == MESSAGE && !theirs[j].late)
			FT_TRY(post_recv(ft, &theirs[j], j));
	}
	FT_TRY(meet(ft));
	ft->stuck = post_late;
	for (i = 0; i < nplan; i++) {
		j = ft->rank ? nplan - 1 - i : i;
		FT_TRY(start(ft, &mine[j], j, one));
	}
	ft->stuck = NULL;
	post_late(ft);
	for (i = 0; i < nplan; i++)
		FT_TRY(wait_item(ft, &mine[i], i));
	for (i = 0; i < nplan; i++)
		FT_TRY(check_theirs(ft, &theirs[i], i));
	FT_TRY(check_events(ft));
	FT_TRY(meet(ft));
	end = ft_now() + ft->run->timeout_s;
	for (i = 0; i < SUMS; i++) {
		while (__atomic_load_n(&counter[i], __ATOMIC_ACQUIRE) !=
		       sums[i]) {
			ft_progress(ft);
			FT_CHECK(ft, ft_now() < end, "round %llu: counter %d "
				 "is %llu, not %llu", (unsigned long long)
				 done.rounds, i, (unsigned long long)
				 counter[i], (unsigned long long)sums[i]);
		}
	}
	FT_CHECK(ft, !ft->unexpected[0], "round %llu: %s",
		 (unsigned long long)done.rounds, ft->unexpected);
	FT_TRY(meet(ft));
	ft_ops_drop(ft);
	done.rounds++;
	return FT_PASS;
}

/* What arrived twice, or should not have arrived, would be here now. */
static int nothing_left(struct ft *ft)
{
	struct ft_op *op[2];
	int i;

	/* Other providers die when receives are cancelled. */
	if (!ft_is_bare(ft, "lnx"))
		return FT_PASS;
	FT_TRY(meet(ft));
	for (i = 0; i < 2; i++) {
		struct ft_msg m = {
			.tagged = i, .addr = FI_ADDR_UNSPEC, .buf = in,
			.len = BIG_BYTES, .ignore = ~0ull,
		};

		op[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, op[i], &m));
	}
	ft_linger(ft, 0.5);
	for (i = 0; i < 2; i++)
		FT_CHECK(ft, !op[i]->done, "after the last round there was a "
			 "message of %zu bytes, tag %#llx", op[i]->len,
			 (unsigned long long)op[i]->tag);
	FT_CHECK(ft, !ft->nevents, "after the last round there were %u events",
		 ft->nevents);
	FT_CHECK(ft, !ft->unexpected[0], "after the last round: %s", ft->unexpected);
	for (i = 0; i < 2; i++) {
		FT_CALL(ft, fi_cancel(&ft->o.ep->fid, op[i]));
		FT_CHECK(ft, !ft_wait(ft, op[i]) && op[i]->err == FI_ECANCELED,
			 "cancelled receive: error %d", op[i]->err);
	}
	FT_TRY(meet(ft));
	ft_ops_drop(ft);
	return FT_PASS;
}

static int soak(struct ft *ft, const struct ft_case *c)
{
	uint64_t rounds = ft->run->iters ? ft->run->iters :
			  ft->run->quick ? 40 : 400;
	static uint64_t sums[SUMS];
	uint64_t rng = ft->run->seed, *one;
	double t0 = ft_now(), last = t0;
	int32_t more = 1;

	(void)c;
	rma = ft->o.info->caps & FI_RMA;
	atomics = ft->o.info->caps & FI_ATOMIC;
	memset(&done, 0, sizeof(done));
	memset(sums, 0, sizeof(sums));
	memset(ft_mem.target + SUM_AT, 0, SUMS * 8);
	one = (void *)(ft_mem.local + SUM_AT);
	results = one + 8;
	*one = 3;
	in = base_in;
	if (!in)
		in = base_in = malloc(MEM_BYTES);
	if (!in)
		return ft_fail(ft, "out of memory");
	while (more) {
		FT_TRY(one_round(ft, &rng, sums, one));
		ft_guard(ft, c->name);
		if (ft->run->seconds > 0)
			more = ft_now() - t0 < ft->run->seconds;
		else
			more = done.rounds < rounds;
		/* The time is measured by rank 0. */
		if (oob_bcast(&ft->oob, &more, sizeof(more)))
			return ft_fail(ft, "lost the other rank");
		if (!ft->rank && ft_now() - last > 30) {
			last = ft_now();
			printf("# %.0f s, %llu rounds, %.1f GB\n", last - t0,
			       (unsigned long long)done.rounds,
			       (double)done.bytes * 1e-9);
			fflush(stdout);
		}
	}
	FT_TRY(nothing_left(ft));
	if (!ft->rank)
		printf("# seed %llu: %llu rounds, %llu messages, %llu writes, "
		       "%llu reads, %llu atomics, %.2f GB, in %.1f s\n",
		       (unsigned long long)ft->run->seed,
		       (unsigned long long)done.rounds,
		       (unsigned long long)done.of[MESSAGE],
		       (unsigned long long)done.of[WRITES],
		       (unsigned long long)done.of[READS],
		       (unsigned long long)(done.of[ATOMIC_ADD] +
					    done.of[ATOMIC_FETCH]),
		       (double)done.bytes * 1e-9, ft_now() - t0);
	return FT_PASS;
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	int ret = ft_with_mem(ft, c, MEM_BYTES);

	ft->stuck = NULL;
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "messages-and-rma", .fn = with_mem, .body = soak,
		  .cfg.caps = FT_RMA_CAPS },
		{ .name = "messages-rma-atomics", .fn = with_mem, .body = soak,
		  .cfg.caps = FT_ATOMIC_CAPS },
		{ .name = "any-mr-mode", .fn = with_mem, .body = soak,
		  .cfg.caps = FT_ATOMIC_CAPS, .cfg.mr_mode = FT_MR_ALL },
	};

	return ft_main(argc, argv, "random mixed operations (--seconds N, or "
		       "-I rounds)", cases,
		       (int)(sizeof(cases) / sizeof(cases[0])));
}
