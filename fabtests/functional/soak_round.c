/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rounds of random mixed operations; see soak_round.h. */
#include "soak_round.h"

#include <stdlib.h>
#include <string.h>

/* One operation that a rank does in a round. */
struct item {
	enum soak_use use;
	int call;
	bool tagged, late;		/* receive posted after the send */
	bool started;
	bool got;			/* message: it has arrived */
	size_t len, at;			/* at: in local and in target */
	uint64_t flags, seq;
	int sum;			/* which counter */
	struct ft_op *op, *recv;
	uint64_t *result;
};

struct soak soak;

static struct item plan[2][SOAK_ITEMS];	/* by the rank that does it */
static int nplan;
static uint64_t *results;		/* local memory of fetches */
static uint64_t *one;			/* what is added */
static unsigned char *in;		/* where messages arrive */
static uint64_t before[SOAK_SUMS];	/* the counters when the round began */
static bool starting;
/* Injects that were started in this round, and in the one before. */
static unsigned ninject, ninject_before;
/* Of a round that was hit: the last untagged message that is known to have come, in the
 * order of its sender; and receives that ended with an error had one, too. */
static int last_untagged;
static bool lost_untagged;

int soak_begin(struct ft *ft)
{
	soak.rma = ft->o.info->caps & FI_RMA;
	soak.atomics = ft->o.info->caps & FI_ATOMIC;
	memset(ft_mem.target + SOAK_SUM_AT, 0, SOAK_SUMS * 8);
	one = (void *)(ft_mem.local + SOAK_SUM_AT);
	results = one + 8;
	*one = SOAK_ONE;
	if (!in)
		in = malloc(SOAK_BYTES);
	if (!in)
		return ft_fail(ft, "out of memory");
	return FT_PASS;
}

/* ---- the plan ---- */

static size_t random_len(uint64_t *rng, bool big)
{
	static const size_t edges[] = { 0, 1, 8, 63, 64, 65, 128, 129, 191,
		192, 193, 4095, 4096, 4097, 16320, 16384, 16385, 32768,
		65535, 65536 };
	uint64_t r = pattern_random(rng);

	if (big)
		return r % (SOAK_BIG_BYTES + 1);
	switch (r % 4) {
	case 0:
		return edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (r >> 8) % (SOAK_SLOT_BYTES + 1);
	default:
		return (r >> 8) % 512;
	}
}

static void choose_call(struct ft *ft, struct item *t, uint64_t r)
{
	size_t inject = ft->o.info->tx_attr->inject_size;

	switch (t->use) {
	case SOAK_MESSAGE:
		t->call = (int)(r % FT_SEND_CALLS);
		if ((t->call == FT_INJECT || t->call == FT_INJECTDATA) &&
		    t->len > inject)
			t->call = FT_SENDMSG;
		if (t->call == FT_SENDMSG && soak.levels && r & 0x100)
			t->flags = FI_DELIVERY_COMPLETE;
		break;
	case SOAK_WRITE:
		t->call = (int)(r % FT_READ);
		if (ft_rma_is_inject(t->call) && t->len > inject)
			t->call = FT_WRITEMSG;
		if (t->call == FT_WRITEMSG && r & 0x100)
			t->flags = FI_DELIVERY_COMPLETE;
		break;
	case SOAK_READ:
		t->call = FT_READ + (int)(r % 3);
		break;
	case SOAK_ADD:
		t->call = (int)(r % FT_FETCH);
		break;
	default:
		t->call = FT_FETCH + (int)(r % 3);
	}
}

static void make_item(struct ft *ft, struct item *t, int i, uint64_t *rng, int *late)
{
	bool big = i >= SOAK_SLOTS;
	uint64_t r = pattern_random(rng);

	memset(t, 0, sizeof(*t));
	t->len = random_len(rng, big);
	t->at = big ? (size_t)SOAK_SLOTS * SOAK_SLOT_BYTES +
		(size_t)(i - SOAK_SLOTS) * SOAK_BIG_BYTES :
		(size_t)i * SOAK_SLOT_BYTES;
	t->seq = soak.round * SOAK_ITEMS + (uint64_t)i;
	t->use = (enum soak_use)(r % SOAK_USES);
	if ((t->use >= SOAK_ADD && !soak.atomics) ||
	    ((t->use == SOAK_WRITE || t->use == SOAK_READ) && !soak.rma))
		t->use = SOAK_MESSAGE;
	r >>= 8;
	t->tagged = r & 3;
	/* Only a few: a message that waits for a receive needs memory. */
	if (t->use == SOAK_MESSAGE && t->tagged && r & 4)
		t->late = ++*late <= 16;
	t->sum = (int)(r >> 8 & (SOAK_SUMS - 1));
	choose_call(ft, t, r >> 16);
}

static void make_plan(struct ft *ft)
{
	/* Not that of the round before, which one rank may not have seen. */
	uint64_t rng = pattern_mix(ft->run->seed ^ pattern_mix(soak.round + 1));
	int from, i, late[2] = { 0, 0 };

	nplan = 0;
	for (i = 0; i < SOAK_ITEMS; i++) {
		if (pattern_random(&rng) % (i >= SOAK_SLOTS ? 8 : 2))
			continue;
		for (from = 0; from < 2; from++)
			make_item(ft, &plan[from][nplan], i, &rng, &late[from]);
		nplan++;
	}
}

/* Number n in the order of the rank that does them: each walks through the plan in
 * another order. */
static int in_order(int from, int n)
{
	return from ? nplan - 1 - n : n;
}

static void prepare(struct ft *ft)
{
	struct item *mine = plan[ft->rank], *theirs = plan[!ft->rank];
	int i;

	make_plan(ft);
	memcpy(before, soak.sums, sizeof(before));
	last_untagged = -1;
	lost_untagged = false;
	ninject_before = ninject;
	ninject = 0;
	for (i = 0; i < nplan; i++) {
		if (mine[i].use == SOAK_MESSAGE || mine[i].use == SOAK_WRITE)
			pattern_fill(ft_mem.local + mine[i].at, mine[i].len,
				     ft->run->seed, (unsigned)ft->rank,
				     mine[i].seq);
		if (theirs[i].use == SOAK_READ)
			pattern_fill(ft_mem.target + theirs[i].at,
				     theirs[i].len, ft->run->seed,
				     (unsigned)ft->rank, theirs[i].seq);
		if (theirs[i].use >= SOAK_ADD)
			soak.sums[theirs[i].sum] += SOAK_ONE;
	}
}

/* ---- starting ---- */

static bool cut(const struct ft *ft)
{
	return soak.look && ft->abandoned;
}

/* The result of a call that starts an operation. */
static int started(struct ft *ft, int ret, const char *what)
{
	if (!ret)
		return FT_PASS;
	if (soak.look && ((ret == -FI_ETIMEDOUT && ft->abandoned) ||
			  soak.may_fail(ft, -ret)))
		return SOAK_HIT;
	return ft_fail(ft, "round %llu: %s: %s", (unsigned long long)soak.round, what,
		       fi_strerror(-ret));
}

static int post_recv(struct ft *ft, struct item *t, int i)
{
	/* Bare shm and rxm confuse the two kinds of message without a tag, and
	 * crash. */
	bool any = i & 1 || (!t->tagged && !ft_is_bare(ft, "lnx"));
	struct ft_msg m = {
		.tagged = t->tagged, .call = i % FT_RECV_CALLS,
		.addr = any ? FI_ADDR_UNSPEC : ft->addr[!ft->rank],
		.buf = in + t->at,
		.len = t->at >= (size_t)SOAK_SLOTS * SOAK_SLOT_BYTES ?
		       SOAK_BIG_BYTES : SOAK_SLOT_BYTES,
		.tag = (uint64_t)i + 1,
	};

	t->recv = ft_op_new(ft);
	return started(ft, ft_recv(ft, t->recv, &m), "a receive");
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
		if (theirs[i].use == SOAK_MESSAGE && theirs[i].late &&
		    !theirs[i].recv)
			post_recv(ft, &theirs[i], i);
	inside = false;
}

static void stuck(struct ft *ft)
{
	if (starting)
		post_late(ft);
	if (soak.look)
		soak.look(ft);
	/* It may be that nothing else was outstanding. */
	if (soak.inject_errors && soak.may_fail(ft, soak.inject_err))
		ft->abandoned = true;
}

static bool injects(const struct item *t)
{
	switch (t->use) {
	case SOAK_MESSAGE:
		return t->call == FT_INJECT || t->call == FT_INJECTDATA;
	case SOAK_WRITE:
		return ft_rma_is_inject(t->call);
	default:
		return t->use == SOAK_ADD && t->call == FT_INJECT_ATOMIC;
	}
}

static int call_item(struct ft *ft, struct item *t, int i)
{
	unsigned char *buf = ft_mem.local + t->at;
	struct ft_atomic a;
	struct ft_rma r;
	struct ft_msg m = {
		.tagged = t->tagged, .call = t->call, .addr = ft->addr[!ft->rank],
		.buf = buf, .len = t->len, .tag = (uint64_t)i + 1,
		.data = t->seq, .flags = t->flags,
	};

	switch (t->use) {
	case SOAK_MESSAGE:
		return ft_send(ft, t->op, &m);
	case SOAK_WRITE:
	case SOAK_READ:
		ft_rma_set(ft, &r, t->call, buf, t->len, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, t->at);
		r.data = t->seq;
		r.flags = t->flags;
		return ft_rma(ft, t->op, &r);
	default:
		t->result = &results[i];
		ft_atomic_set(ft, &a, t->call, FI_UINT64, FI_SUM, 8, one, NULL,
			      t->result, 1, &ft_mem.lmr, &ft_mem.tmr,
			      !ft->rank, SOAK_SUM_AT + (size_t)t->sum * 8);
		return ft_atomic(ft, t->op, &a);
	}
}

static int start(struct ft *ft, struct item *t, int i)
{
	if (cut(ft))
		return SOAK_HIT;
	t->op = injects(t) ? NULL : ft_op_new(ft);
	FT_TRY(started(ft, call_item(ft, t, i), "the start of an operation"));
	t->started = true;
	ninject += !t->op;
	if (!t->op && t->use != SOAK_ADD)
		/* The buffer is ours again. */
		memset(ft_mem.local + t->at, 0xee, t->len);
	soak.done.of[t->use]++;
	soak.done.bytes += t->use < SOAK_ADD ? t->len : 8;
	return FT_PASS;
}

/* ---- the end ---- */

static const char *const use_names[SOAK_USES] = { "message", "write", "read",
						  "add", "fetch" };

static int read_is_right(struct ft *ft, const struct item *t, int i)
{
	FT_CHECK(ft, pattern_check(ft_mem.local + t->at, t->len, ft->run->seed,
				   (unsigned)!ft->rank, t->seq) < 0,
		 "round %llu: item %d read %zu bytes wrongly",
		 (unsigned long long)soak.round, i, t->len);
	return FT_PASS;
}

/* Until an operation of the round ends. */
static int await(struct ft *ft, struct ft_op *op, const struct item *t, int i)
{
	char why[FT_WHY_MAX];
	int ret;

	if (soak.look) {
		if (ft_wait(ft, op) && ft->abandoned)
			return SOAK_HIT;
		if (op->done && op->err && soak.may_fail(ft, op->err))
			return SOAK_HIT;
	}
	ret = ft_must_complete(ft, op, FT_AT);
	if (ret == FT_PASS)
		return FT_PASS;
	memcpy(why, ft->why, sizeof(why));
	return ft_fail(ft, "round %llu, item %d, %s of %zu bytes: %.150s",
		       (unsigned long long)soak.round, i, use_names[t->use], t->len,
		       why);
}

static int wait_item(struct ft *ft, struct item *t, int i)
{
	if (t->op)
		FT_TRY(await(ft, t->op, t, i));
	return t->use == SOAK_READ ? read_is_right(ft, t, i) : FT_PASS;
}

static int has_message(struct ft *ft, const struct item *t, int i,
		       const struct ft_op *op, const void *buf)
{
	FT_CHECK(ft, op->len == t->len && pattern_check(
		 buf, t->len, ft->run->seed, (unsigned)!ft->rank, t->seq) < 0,
		 "round %llu: message %d of %zu bytes is wrong (len %zu)",
		 (unsigned long long)soak.round, i, t->len, op->len);
	FT_CHECK(ft, (t->call != FT_SENDDATA && t->call != FT_INJECTDATA) ||
		 op->data == t->seq, "round %llu: message %d has data %#llx",
		 (unsigned long long)soak.round, i, (unsigned long long)op->data);
	return FT_PASS;
}

/* Check what the other rank did to us. */
static int check_theirs(struct ft *ft, struct item *t, int i)
{
	int ret;

	if (t->use == SOAK_MESSAGE) {
		FT_CHECK(ft, t->recv, "a receive was not posted");
		FT_TRY(await(ft, t->recv, t, i));
		return has_message(ft, t, i, t->recv, in + t->at);
	}
	if (t->use != SOAK_WRITE)
		return FT_PASS;
	ret = ft_await_pattern(ft, ft_mem.target + t->at, t->len,
			       (unsigned)!ft->rank, t->seq, FT_AT);
	return ret == FT_FAIL && cut(ft) ? SOAK_HIT : ret;
}

static int check_events(struct ft *ft)
{
	struct item *theirs = plan[!ft->rank];
	uint64_t want = 0, sum = 0;
	unsigned n = 0, k;
	int i;

	for (i = 0; i < nplan; i++) {
		if (theirs[i].use != SOAK_WRITE || !ft_rma_has_data(theirs[i].call))
			continue;
		n++;
		want += pattern_mix(theirs[i].seq);
	}
	if (ft_wait_events(ft, n) && cut(ft))
		return SOAK_HIT;
	FT_CHECK(ft, ft->nevents == n, "%u events of %u writes with data",
		 ft->nevents, n);
	for (k = 0; k < n; k++)
		sum += pattern_mix(ft->events[k].data);
	FT_CHECK(ft, sum == want, "round %llu: the data of %u writes is wrong",
		 (unsigned long long)soak.round, n);
	return FT_PASS;
}

static const uint64_t *counters(void)
{
	return (const void *)(ft_mem.target + SOAK_SUM_AT);
}

static uint64_t counter(int i)
{
	return __atomic_load_n(&counters()[i], __ATOMIC_ACQUIRE);
}

static int check_sums(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	int i;

	for (i = 0; i < SOAK_SUMS; i++) {
		while (counter(i) != soak.sums[i]) {
			ft_progress(ft);
			stuck(ft);
			if (cut(ft))
				return SOAK_HIT;
			FT_CHECK(ft, ft_now() < end, "round %llu: counter %d "
				 "is %llu, not %llu", (unsigned long long)
				 soak.round, i, (unsigned long long)counter(i),
				 (unsigned long long)soak.sums[i]);
		}
	}
	return FT_PASS;
}

static int do_round(struct ft *ft)
{
	struct item *mine = plan[ft->rank], *theirs = plan[!ft->rank];
	int i, j;

	/* Messages without a tag arrive in the order of their sender. */
	for (i = 0; i < nplan; i++) {
		j = in_order(!ft->rank, i);
		if (theirs[j].use == SOAK_MESSAGE && !theirs[j].late)
			FT_TRY(post_recv(ft, &theirs[j], j));
	}
	FT_TRY(soak.meet(ft));
	starting = true;
	for (i = 0; i < nplan; i++) {
		j = in_order(ft->rank, i);
		FT_TRY(start(ft, &mine[j], j));
	}
	starting = false;
	post_late(ft);
	for (i = 0; i < nplan; i++)
		FT_TRY(wait_item(ft, &mine[i], i));
	for (i = 0; i < nplan; i++)
		FT_TRY(check_theirs(ft, &theirs[i], i));
	FT_TRY(check_events(ft));
	FT_TRY(soak.meet(ft));
	FT_TRY(check_sums(ft));
	FT_CHECK(ft, !ft->unexpected[0], "round %llu: %s",
		 (unsigned long long)soak.round, ft->unexpected);
	return soak.meet(ft);
}

int soak_round(struct ft *ft)
{
	int ret;

	prepare(ft);
	ft->stuck = stuck;
	ret = do_round(ft);
	ft->stuck = NULL;
	starting = false;
	if (ret != FT_PASS)
		return ret;
	ft_ops_drop(ft);
	nplan = 0;
	memcpy(before, soak.sums, sizeof(before));
	soak.done.rounds++;
	soak.round++;
	/* Executed, but the peer has died before it said so.  For the peer this round is over
	 * too. */
	return soak.inject_errors ? SOAK_HIT : FT_PASS;
}

int soak_nothing_left(struct ft *ft)
{
	struct ft_op *op[2];
	int i;

	/* Other providers die when receives are cancelled. */
	if (!ft_is_bare(ft, "lnx"))
		return FT_PASS;
	FT_TRY(soak.meet(ft));
	for (i = 0; i < 2; i++) {
		struct ft_msg m = {
			.tagged = i, .addr = FI_ADDR_UNSPEC, .buf = ft_mem.local,
			.len = SOAK_BIG_BYTES, .ignore = ~0ull,
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
	FT_TRY(soak.meet(ft));
	ft_ops_drop(ft);
	return FT_PASS;
}

/* ---- a round that was hit ---- */

/* An operation that is no longer waited for has ended: may it so? */
static int ended(struct ft *ft, struct ft_op *op, const char *what, int i)
{
	FT_CHECK(ft, !ft_wait(ft, op), "round %llu was hit: %s %d does not end",
		 (unsigned long long)soak.round, what, i);
	FT_CHECK(ft, !op->err || op->err == FI_ECANCELED || soak.may_fail(ft, op->err),
		 "round %llu was hit: %s %d ended with %s",
		 (unsigned long long)soak.round, what, i, fi_strerror(op->err));
	return FT_PASS;
}

/* The next message without a tag that this can be. */
static int take_untagged(struct ft *ft, const struct ft_op *op, const void *buf)
{
	struct item *theirs = plan[!ft->rank];
	int n, j;

	for (n = last_untagged + 1; n < nplan; n++) {
		j = in_order(!ft->rank, n);
		if (theirs[j].use != SOAK_MESSAGE || theirs[j].tagged ||
		    has_message(ft, &theirs[j], j, op, buf) != FT_PASS)
			continue;
		theirs[j].got = true;
		last_untagged = n;
		return FT_PASS;
	}
	return ft_fail(ft, "round %llu was hit: an untagged message of %zu bytes is of "
		       "another round, wrong, out of order or a second time",
		       (unsigned long long)soak.round, op->len);
}

int soak_take(struct ft *ft, const struct ft_op *op, bool tagged, const void *buf)
{
	struct item *t;

	if (!tagged)
		return take_untagged(ft, op, buf);
	t = op->tag && op->tag <= (uint64_t)nplan ?
	    &plan[!ft->rank][op->tag - 1] : NULL;
	FT_CHECK(ft, t && t->use == SOAK_MESSAGE && t->tagged, "round %llu was hit: a "
		 "message with tag %#llx", (unsigned long long)soak.round,
		 (unsigned long long)op->tag);
	FT_CHECK(ft, !t->got, "round %llu was hit: message %d came twice",
		 (unsigned long long)soak.round, (int)op->tag - 1);
	t->got = true;
	return has_message(ft, t, (int)op->tag - 1, op, buf);
}

static int settle_receives(struct ft *ft)
{
	struct item *theirs = plan[!ft->rank], *t;
	int n, j, ret;

	for (j = 0; j < nplan; j++) {
		t = &theirs[j];
		if (!t->recv || !t->recv->posted || t->recv->done)
			continue;
		/* -FI_ENOENT: it has a message, or its completion is not read yet. */
		ret = (int)fi_cancel(&ft->o.ep->fid, t->recv);
		FT_CHECK(ft, !ret || ret == -FI_ENOENT, "fi_cancel: %s",
			 fi_strerror(-ret));
	}
	for (n = 0; n < nplan; n++) {
		j = in_order(!ft->rank, n);
		t = &theirs[j];
		if (!t->recv || !t->recv->posted)
			continue;
		/* Others may have been lost before a message that came. */
		if (!t->tagged && t->recv->err == FI_ETRUNC) {
			lost_untagged = true;
			continue;
		}
		FT_TRY(ended(ft, t->recv, "receive", j));
		if (!t->recv->err)
			FT_TRY(soak_take(ft, t->recv, t->tagged, in + t->at));
		else if (t->recv->err != FI_ECANCELED && !t->tagged)
			lost_untagged = true;
	}
	return FT_PASS;
}

int soak_settle(struct ft *ft, unsigned *errors)
{
	struct item *mine = plan[ft->rank];
	int i;

	*errors = 0;
	for (i = 0; i < nplan; i++) {
		if (!mine[i].op || !mine[i].started)
			continue;
		FT_TRY(ended(ft, mine[i].op, use_names[mine[i].use], i));
		*errors += mine[i].op->err != 0;
		if (mine[i].use == SOAK_READ && !mine[i].op->err)
			FT_TRY(read_is_right(ft, &mine[i], i));
	}
	FT_CHECK(ft, !soak.inject_errors || soak.may_fail(ft, soak.inject_err),
		 "round %llu: an inject failed with %s", (unsigned long long)soak.round,
		 fi_strerror(soak.inject_err));
	/* Some of the round before may not have been acknowledged yet. */
	FT_CHECK(ft, soak.inject_errors <= ninject + ninject_before,
		 "round %llu: %u of %u injects failed", (unsigned long long)soak.round,
		 soak.inject_errors, ninject + ninject_before);
	*errors += soak.inject_errors;
	return settle_receives(ft);
}

void soak_results(const struct ft *ft, uint8_t ended_as[SOAK_ITEMS])
{
	const struct item *mine = plan[ft->rank], *t;
	int i;

	memset(ended_as, SOAK_NOT_STARTED, SOAK_ITEMS);
	for (i = 0; i < nplan; i++) {
		t = &mine[i];
		if (!t->started)
			continue;
		if (t->op && t->op->err)
			ended_as[i] = SOAK_FAILED;
		else if (t->use == SOAK_FETCH || t->flags & FI_DELIVERY_COMPLETE)
			ended_as[i] = SOAK_DELIVERED;
		else
			ended_as[i] = SOAK_MAYBE;
	}
}

/* Each event belongs to a write of this round, and to another one. */
static int compare_events(struct ft *ft)
{
	struct item *theirs = plan[!ft->rank];
	unsigned k;
	int i;

	for (k = 0; k < ft->nevents; k++) {
		for (i = 0; i < nplan; i++)
			if (theirs[i].use == SOAK_WRITE && !theirs[i].got &&
			    ft_rma_has_data(theirs[i].call) &&
			    theirs[i].seq == ft->events[k].data)
				break;
		FT_CHECK(ft, i < nplan, "round %llu was hit: an event has data %#llx, "
			 "of no write or a second time", (unsigned long long)soak.round,
			 (unsigned long long)ft->events[k].data);
		theirs[i].got = true;
	}
	return FT_PASS;
}

static int is_there(struct ft *ft, const struct item *t, int i)
{
	if (t->use == SOAK_MESSAGE)
		FT_CHECK(ft, t->got || (!t->tagged && lost_untagged),
			 "round %llu was hit: message %d was delivered, says its "
			 "sender, but has not come", (unsigned long long)soak.round, i);
	if (t->use == SOAK_WRITE)
		FT_CHECK(ft, pattern_check(ft_mem.target + t->at, t->len, ft->run->seed,
					   (unsigned)!ft->rank, t->seq) < 0,
			 "round %llu was hit: write %d of %zu bytes was delivered, says "
			 "its sender, but is not there",
			 (unsigned long long)soak.round, i, t->len);
	return FT_PASS;
}

int soak_compare(struct ft *ft, const uint8_t results_of[SOAK_ITEMS])
{
	uint64_t least[SOAK_SUMS], most[SOAK_SUMS], value;
	struct item *theirs = plan[!ft->rank];
	int i;

	memcpy(least, before, sizeof(least));
	memcpy(most, before, sizeof(most));
	for (i = 0; i < nplan; i++) {
		if (results_of[i] == SOAK_DELIVERED)
			FT_TRY(is_there(ft, &theirs[i], i));
		if (theirs[i].use < SOAK_ADD || results_of[i] == SOAK_NOT_STARTED)
			continue;
		most[theirs[i].sum] += SOAK_ONE;
		if (results_of[i] == SOAK_DELIVERED)
			least[theirs[i].sum] += SOAK_ONE;
	}
	for (i = 0; i < SOAK_SUMS; i++) {
		value = counter(i);
		FT_CHECK(ft, value >= least[i] && value <= most[i] &&
			 !((value - before[i]) % SOAK_ONE), "round %llu was hit: counter "
			 "%d is %llu, not between %llu and %llu",
			 (unsigned long long)soak.round, i, (unsigned long long)value,
			 (unsigned long long)least[i], (unsigned long long)most[i]);
	}
	return compare_events(ft);
}

void soak_reset(struct ft *ft)
{
	memset(soak.sums, 0, sizeof(soak.sums));
	memset(ft_mem.target + SOAK_SUM_AT, 0, SOAK_SUMS * 8);
	*one = SOAK_ONE;
	ft_ops_drop(ft);
	nplan = 0;
	soak.inject_errors = ninject = 0;
}
