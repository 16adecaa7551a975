/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Provokes what core providers are known to get wrong between living peers:
 * sends stuck behind a large message that is not received, both directions at
 * every limit at once, sends inside handlers, calls in an unusual order.
 * prov/lnx/PEERS.md says what each case is about.  deaf.c and peer_dead.c have
 * peers that do not answer or that die.
 */
#include "hazard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- sends behind a large unexpected message ---- */

static const size_t behind[] = { 8, 5000, 65536, 0, 20000, 4097, 300, 100000 };
#define NBEHIND		64
#define BEHIND_MAX	100000
#define TAG_A		0xa000u
#define TAG_B		0xb000u

struct block {
	size_t size;			/* of the messages that are not received */
	int n;				/* how many of them */
	bool tagged;
};

static struct block block_of(const struct ft_case *c)
{
	struct block b = {
		.size = c->a & 0xffffffff, .n = (int)(c->a >> 32),
		.tagged = c->b,
	};

	return b;
}

/* The messages that follow: tagged, whatever the ones in front are. */
static int behind_recv(struct ft *ft, struct ft_op **op)
{
	int i;

	for (i = 0; i < NBEHIND; i++) {
		op[i] = post(ft, true, i % 2 ? 0 : -1, TAG_B + (unsigned)i,
			     ins + (size_t)i * BEHIND_MAX, BEHIND_MAX);
		FT_CHECK(ft, op[i], "receive not posted");
	}
	return FT_PASS;
}

static int behind_check(struct ft *ft, struct ft_op **op)
{
	int i;

	for (i = 0; i < NBEHIND; i++)
		FT_TRY(check(ft, op[i], ins + (size_t)i * BEHIND_MAX,
			     behind[i % 8], 0, (uint64_t)i));
	return FT_PASS;
}

/* Now receive the message in front: it must have arrived whole. */
static int front_recv(struct ft *ft, const struct block *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		unsigned char *at = ins + (size_t)NBEHIND * BEHIND_MAX;
		struct ft_op *op = post(ft, b->tagged, i % 2 ? 0 : -1, TAG_A,
					at, b->size);

		FT_CHECK(ft, op, "receive not posted");
		FT_TRY(all_done(ft, &op, 1, "receives of the messages in front"));
		FT_TRY(check(ft, op, at, b->size, 0, (uint64_t)i));
	}
	return FT_PASS;
}

static int front_send(struct ft *ft, const struct block *b, struct ft_op **a,
		      struct ft_op **op)
{
	int i;

	for (i = 0; i < b->n; i++) {
		a[i] = put(ft, b->tagged, 1, TAG_A, (uint64_t)i, b->size);
		FT_CHECK(ft, a[i], "unexpected send %d was refused", i);
	}
	/* They arrive and are found to be unexpected. */
	ft_linger(ft, 0.005);
	for (i = 0; i < NBEHIND; i++) {
		op[i] = put(ft, true, 1, TAG_B + (unsigned)i, (uint64_t)i,
			    behind[i % 8]);
		FT_CHECK(ft, op[i], "send %d behind it was refused", i);
	}
	return FT_PASS;
}

/*
 * Rank 0 sends messages to rank 1 that are not received, then others that are:
 * these must arrive and complete on both sides meanwhile.  The barrier comes
 * after them, so the receives of the first messages cannot help.
 */
static int blocked(struct ft *ft, const struct ft_case *c)
{
	struct block b = block_of(c);
	static struct ft_op *a[2048], *op[NBEHIND];
	int left;

	ft_known(ft, NULL, "a message that is not received blocks later ones");
	if (b.n > 1000 && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers block behind the first");
	prepare(ft, (size_t)NBEHIND * BEHIND_MAX + SLOT);
	if (ft->rank)
		FT_TRY(behind_recv(ft, op));
	ft_barrier(ft);
	if (!ft->rank)
		FT_TRY(front_send(ft, &b, a, op));
	left = missing(ft, op, NBEHIND, time_limit(ft));
	ft_barrier(ft);
	/* When the first messages are received, everything must end, late or not. */
	if (ft->rank) {
		FT_TRY(front_recv(ft, &b));
		FT_TRY(all_done(ft, op, NBEHIND, "receives"));
		FT_TRY(behind_check(ft, op));
	} else {
		FT_TRY(all_done(ft, a, b.n, "unexpected sends"));
		FT_TRY(all_done(ft, op, NBEHIND, "sends behind them"));
	}
	FT_CHECK(ft, !left, "%d of %d %s behind %d x %zu bytes unreceived did "
		 "not complete", left, NBEHIND, ft->rank ? "receives" :
		 "sends", b.n, b.size);
	return FT_PASS;
}

/* ---- every limit, both directions at once ---- */

static const size_t limits[] = {
	0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 256, 1984, 1985, 4032,
	4095, 4096, 4097, 8999, 9000, 9001, 16255, 16256, 16320, 16321, 16383,
	16384, 16385, 32768, 32769, 65535, 65536, 65537, 131071, 131072,
	131073, 262144, 524289, 1048575, 1048576
};
#define NLIMITS		(int)(sizeof(limits) / sizeof(limits[0]))

static int both_ways(struct ft *ft, const struct ft_case *c)
{
	static struct ft_op *rx[NLIMITS], *tx[NLIMITS];
	int i, k, round, peer = !ft->rank;
	bool late = c->a;

	if (late && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers block behind a message that "
			       "is not received");
	prepare(ft, (size_t)NLIMITS * SLOT);
	for (round = 0; round < (ft->run->quick ? 2 : 10); round++) {
		for (k = 0; k < 2; k++) {
			for (i = 0; i < NLIMITS && k == late; i++) {
				int at = late ? NLIMITS - 1 - i : i;

				rx[at] = post(ft, true, i % 3 ? peer : -1,
					      (uint64_t)at, ins +
					      (size_t)at * SLOT, limits[at]);
				FT_CHECK(ft, rx[at], "receive not posted");
			}
			if (!k)
				ft_barrier(ft);
			for (i = 0; i < NLIMITS && k != late; i++) {
				tx[i] = put(ft, true, peer, (uint64_t)i,
					    (uint64_t)(i + round), limits[i]);
				FT_CHECK(ft, tx[i], "send not taken");
			}
			if (late && !k)
				ft_barrier(ft);
		}
		FT_TRY(all_done(ft, rx, NLIMITS, "receives"));
		FT_TRY(all_done(ft, tx, NLIMITS, "sends"));
		for (i = 0; i < NLIMITS; i++)
			FT_TRY(check(ft, rx[i], ins + (size_t)i * SLOT,
				     limits[i], peer, (uint64_t)(i + round)));
		ft_barrier(ft);
		ft_ops_drop(ft);
	}
	return FT_PASS;
}

/* ---- to itself, large and unexpected ---- */

static int to_self(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 65536, 8, 5000, 1 << 20, 0, 4097 };
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	struct ft_op *tx[N], *rx[N];
	int i, k;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not required of bare providers");
	prepare(ft, (size_t)N * SLOT);
	for (i = 0; i < N; i++) {
		tx[i] = put(ft, true, ft->rank, (uint64_t)i, (uint64_t)i,
			    sizes[i]);
		FT_CHECK(ft, tx[i], "send not taken");
	}
	/* All is sent although nothing is received yet. */
	FT_TRY(all_done(ft, tx, N, "sends to itself"));
	for (k = 0; k < N; k++) {
		i = (k * 5 + 2) % N;
		rx[i] = post(ft, true, k % 2 ? ft->rank : -1, (uint64_t)i,
			     ins + (size_t)i * SLOT, sizes[i]);
		FT_CHECK(ft, rx[i], "receive not posted");
	}
	FT_TRY(all_done(ft, rx, N, "receives from itself"));
	for (i = 0; i < N; i++)
		FT_TRY(check(ft, rx[i], ins + (size_t)i * SLOT, sizes[i],
			     ft->rank, (uint64_t)i));
	return FT_PASS;
}

/* ---- no bytes and no buffer ---- */

static int empty(struct ft *ft, const struct ft_case *c)
{
	struct fi_msg_tagged t = {
		.addr = ft->addr[!ft->rank], .tag = 5, .data = 77,
	};
	struct ft_op *op[4];
	struct ft_msg m = { .addr = FI_ADDR_UNSPEC, .tag = 5 };
	bool late = c->a;
	int i;

	for (i = 0; i < 4; i++) {
		op[i] = ft_op_new(ft);
		op[i]->posted = true;
	}
	if (late && ft->rank) {
		ft_barrier(ft);
		ft_linger(ft, 0.005);
	}
	for (i = 0; i < 4 && ft->rank; i++) {
		m.tagged = i % 2;
		FT_CALL(ft, ft_recv(ft, op[i], &m));
	}
	if (!late)
		ft_barrier(ft);
	for (i = 0; i < 4 && !ft->rank; i++) {
		double end = ft_now() + ft->run->timeout_s;
		ssize_t ret;

		m.tagged = i % 2;
		m.addr = ft->addr[1];
		if (i < 3) {
			FT_CALL(ft, ft_send(ft, op[i], &m));
			continue;
		}
		t.context = op[i];	/* not even one iovec */
		do {
			ret = fi_tsendmsg(ft->o.ep, &t, FI_REMOTE_CQ_DATA |
					  FI_COMPLETION);
			ft_progress(ft);
		} while (ret == -FI_EAGAIN && ft_now() < end);
		FT_CALL(ft, ret);
	}
	if (late && !ft->rank)
		ft_barrier(ft);
	FT_TRY(all_done(ft, op, 4, "empty messages"));
	for (i = 0; i < 4; i++)
		FT_CHECK(ft, !op[i]->err && !op[i]->len, "%d: error %d, %zu "
			 "bytes", i, op[i]->err, op[i]->len);
	if (ft->rank)
		FT_CHECK(ft, op[3]->flags & FI_REMOTE_CQ_DATA &&
			 op[3]->data == 77, "cq data %llu",
			 (unsigned long long)op[3]->data);
	return FT_PASS;
}

/* ---- sends from inside completion handlers ---- */

/*
 * Many exchanges at once.  Each continues in the handler of its last
 * completion, which may run inside a send of another exchange.  So sends nest
 * in progress, progress nests in sends that return -FI_EAGAIN, and completions
 * come before the call that started them has returned.
 */
struct lane {
	struct ft_op *tx, *rx;
	unsigned char *in;
	unsigned left;
	uint64_t tag;
};

static struct {
	size_t len;
	unsigned running, depth, deepest;
	int err;
	char why[FT_WHY_MAX];
} storm;

static void lane_go(struct ft *ft, struct lane *l);

static void lane_event(struct ft *ft, struct ft_op *op)
{
	struct lane *l = op->arg;

	if (storm.err || !l->tx->done || !l->rx->done)
		return;
	if (check(ft, l->rx, l->in, storm.len, !ft->rank, l->tag) != FT_PASS ||
	    l->tx->err) {
		storm.err = 1;
		return;
	}
	if (!--l->left) {
		storm.running--;
		return;
	}
	if (++storm.depth > storm.deepest)
		storm.deepest = storm.depth;
	lane_go(ft, l);
	storm.depth--;
}

static void lane_go(struct ft *ft, struct lane *l)
{
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank], .buf = l->in,
		.len = storm.len, .tag = l->tag,
	};

	ft_op_reset(l->rx);
	ft_op_reset(l->tx);
	l->rx->hook = l->tx->hook = lane_event;
	l->rx->arg = l->tx->arg = l;
	if (ft_recv(ft, l->rx, &m))
		storm.err = 2;
	m.buf = outs[l->tag % SLOTS];
	if (!storm.err && ft_send(ft, l->tx, &m))
		storm.err = 3;
}

static int nested(struct ft *ft, const struct ft_case *c)
{
	unsigned n = (unsigned)c->b, i;
	double end = ft_now() + 2 * ft->run->timeout_s;
	struct lane *lane = need(calloc(n, sizeof(*lane)));

	memset(&storm, 0, sizeof(storm));
	storm.len = c->a;
	storm.running = n;
	prepare(ft, n * (storm.len + 1));
	ft_barrier(ft);
	for (i = 0; i < n && !storm.err; i++) {
		lane[i].tx = ft_op_new(ft);
		lane[i].rx = ft_op_new(ft);
		lane[i].in = ins + i * storm.len;
		lane[i].left = ft->run->quick ? 10 : 50;
		lane[i].tag = i;
		lane_go(ft, &lane[i]);
	}
	while (storm.running && !storm.err && ft_now() < end)
		ft_progress(ft);
	if (storm.err == 1)
		return FT_FAIL;		/* check() has set the reason */
	FT_CHECK(ft, !storm.err, "%s not taken", storm.err == 2 ? "receive" :
		 "send");
	FT_CHECK(ft, !storm.running, "%u of %u exchanges did not end",
		 storm.running, n);
	free(lane);
	return FT_PASS;
}

/* ---- addresses before endpoints ---- */

/* Called before fi_enable: the AV knows the peer already. */
static int open_late(struct ft *ft, const struct ft_cfg *cfg, struct ft_objs *o,
		     const void *peer, fi_addr_t *addr, bool bound)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	FT_CALL(ft, ft_getinfo(ft, cfg, &o->info));
	FT_CALL(ft, fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	FT_CALL(ft, fi_domain(o->fabric, o->info, &o->domain, NULL));
	FT_CALL(ft, fi_av_open(o->domain, &av, &o->av, NULL));
	FT_CALL(ft, fi_cq_open(o->domain, &cq, &o->cq, NULL));
	if (!bound)
		FT_CHECK(ft, fi_av_insert(o->av, peer, 1, addr, 0, NULL) == 1,
			 "fi_av_insert failed");
	FT_CALL(ft, fi_endpoint(o->domain, o->info, &o->ep, NULL));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	if (bound)
		FT_CHECK(ft, fi_av_insert(o->av, peer, 1, addr, 0, NULL) == 1,
			 "fi_av_insert failed");
	FT_CALL(ft, fi_enable(o->ep));
	o->name_len = sizeof(o->name);
	FT_CALL(ft, fi_getname(&o->ep->fid, o->name, &o->name_len));
	return FT_PASS;
}

static int first_words(struct ft *ft, int peer)
{
	static const size_t sizes[] = { 8, 5000, 65536 };
	struct ft_op *op[6];
	int i;

	prepare(ft, 3 * 65536);
	for (i = 0; i < 3; i++) {
		op[2 * i] = post(ft, true, peer, (uint64_t)i, ins + i * 65536,
				 65536);
		op[2 * i + 1] = put(ft, true, peer, (uint64_t)i, (uint64_t)i,
				    sizes[i]);
		FT_CHECK(ft, op[2 * i] && op[2 * i + 1], "not taken");
	}
	FT_TRY(all_done(ft, op, 6, "first messages"));
	for (i = 0; i < 3; i++) {
		FT_TRY(check(ft, op[2 * i], ins + i * 65536, sizes[i], peer,
			     (uint64_t)i));
		FT_CHECK(ft, op[2 * i]->src == ft->addr[peer], "source %lld",
			 (long long)op[2 * i]->src);
	}
	return FT_PASS;
}

static int insert_first(struct ft *ft, const struct ft_case *c)
{
	struct { uint64_t len; unsigned char name[FT_NAME_MAX]; } mine, all[2];
	struct ft_cfg cfg = c->cfg;
	int i, ret = FT_PASS;

	cfg.alone = false;
	if (c->a && !ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers may die inserting into what "
			       "an endpoint that is not enabled is bound to");
	memset(&mine, 0, sizeof(mine));
	ft_ops_drop(ft);
	for (i = 1; i >= 0 && ret == FT_PASS; i--) {
		if (ft->rank == i && i) {
			if (ft_objs_open(ft, &cfg, &ft->o))
				ret = FT_FAIL;
		} else if (ft->rank == i) {
			ret = open_late(ft, &cfg, &ft->o, all[1].name,
					&ft->addr[1], c->a);
		}
		if (ft->rank == i && ret == FT_PASS) {
			mine.len = ft->o.name_len;
			memcpy(mine.name, ft->o.name, mine.len);
			ft->cfg = cfg;
			ft->open = true;
		}
		if (ret == FT_PASS &&
		    oob_allgather(&ft->oob, &mine, all, sizeof(mine)))
			ret = ft_fail(ft, "lost the other rank");
	}
	if (ret == FT_PASS && ft->rank &&
	    fi_av_insert(ft->o.av, all[0].name, 1, &ft->addr[0], 0, NULL) != 1)
		ret = ft_fail(ft, "fi_av_insert failed");
	if (ret == FT_PASS)
		ret = first_words(ft, !ft->rank);
	ft_barrier(ft);
	ft->open = false;
	if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
		ret = FT_FAIL;
	ft->cfg = c->cfg;
	return ret;
}

/* ---- a sender that is not in the AV ---- */

/*
 * Rank 1 is unknown to rank 0, which asked for sources, so its large message
 * cannot match a directed receive yet.  Its other messages must arrive.
 */
static int unknown_sender_run(struct ft *ft)
{
	struct { uint64_t len; unsigned char name[FT_NAME_MAX]; } mine, all[2];
	struct ft_op *front, *op[NBEHIND];
	int i, left = 0;

	mine.len = ft->o.name_len;
	memcpy(mine.name, ft->o.name, sizeof(mine.name));
	FT_CHECK(ft, !oob_allgather(&ft->oob, &mine, all, sizeof(mine)),
		 "lost the other rank");
	prepare(ft, (size_t)NBEHIND * BEHIND_MAX + SLOT);
	if (ft->rank) {
		FT_CHECK(ft, fi_av_insert(ft->o.av, all[0].name, 1,
					  &ft->addr[0], 0, NULL) == 1,
			 "fi_av_insert failed");
		front = put(ft, true, 0, TAG_A, 0, 65536);
		FT_CHECK(ft, front, "first send not taken");
		ft_linger(ft, 0.005);
	}
	for (i = 0; i < NBEHIND; i++) {
		op[i] = ft->rank ? put(ft, true, 0, TAG_B + (unsigned)i,
				       (uint64_t)i, behind[i % 8]) :
			post(ft, true, -1, TAG_B + (unsigned)i,
			     ins + (size_t)i * BEHIND_MAX, BEHIND_MAX);
		FT_CHECK(ft, op[i], "operation %d not started", i);
	}
	left = missing(ft, op, NBEHIND, time_limit(ft));
	ft_barrier(ft);
	if (!ft->rank) {
		front = post(ft, true, -1, TAG_A, ins + (size_t)NBEHIND *
			     BEHIND_MAX, 65536);
		FT_CHECK(ft, front, "receive not posted");
	}
	FT_TRY(all_done(ft, &front, 1, "first messages"));
	FT_TRY(all_done(ft, op, NBEHIND, "others, after it was received,"));
	for (i = 0; i < NBEHIND && !ft->rank; i++)
		FT_TRY(check(ft, op[i], ins + (size_t)i * BEHIND_MAX,
			     behind[i % 8], 1, (uint64_t)i));
	FT_CHECK(ft, !left, "%d of %d %s behind an unknown sender's large one "
		 "did not complete", left, NBEHIND, ft->rank ? "sends" :
		 "receives");
	return FT_PASS;
}

static int unknown_sender(struct ft *ft, const struct ft_case *c)
{
	struct ft_cfg cfg = c->cfg;
	int ret;

	ft_known(ft, NULL, "a message that is not received blocks later ones");
	cfg.alone = false;
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft_ops_drop(ft);
	ft->cfg = cfg;
	ft->open = true;
	ret = unknown_sender_run(ft);
	ft_barrier(ft);
	if (ft_close(ft) && ret == FT_PASS)
		return FT_FAIL;
	ft->cfg = c->cfg;
	return ret;
}

/* ---- more local peers than shared memory has room for ---- */

#define CROWD		280

struct crowd_name {
	uint64_t len;
	unsigned char name[FT_NAME_MAX];
};

static int crowd_open(struct ft *ft, struct fid_ep **ep,
		      struct crowd_name *name, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &ep[i],
					NULL));
		FT_CALL(ft, fi_ep_bind(ep[i], &ft->o.av->fid, 0));
		FT_CALL(ft, fi_ep_bind(ep[i], &ft->o.cq->fid, FI_TRANSMIT |
				       FI_RECV));
		FT_CALL(ft, fi_enable(ep[i]));
		name[i].len = sizeof(name[i].name);
		FT_CALL(ft, fi_getname(&ep[i]->fid, name[i].name,
				       &name[i].len));
	}
	return FT_PASS;
}

/* Rank 1 has CROWD endpoints; rank 0 exchanges messages with each of them. */
static int crowd_talk(struct ft *ft, struct fid_ep **ep,
		      const struct crowd_name *name)
{
	struct fid_ep *mine = ft->o.ep;
	static struct ft_op *rx[CROWD], *tx[CROWD];
	static fi_addr_t to[CROWD];
	size_t len = 5000;
	int i;

	prepare(ft, CROWD * len);
	for (i = 0; i < CROWD && !ft->rank; i++)
		FT_CHECK(ft, fi_av_insert(ft->o.av, name[i].name, 1, &to[i], 0,
					  NULL) == 1, "peer %d not inserted",
			 i);
	for (i = 0; i < CROWD; i++) {
		if (ft->rank) {
			ft->o.ep = ep[i];
			rx[i] = post(ft, true, 0, 3, ins + (size_t)i * len,
				     len);
		} else {
			rx[i] = post(ft, true, -1, (uint64_t)i, ins +
				     (size_t)i * len, len);
		}
		ft->o.ep = mine;
		FT_CHECK(ft, rx[i], "receive %d not posted", i);
	}
	ft_barrier(ft);
	for (i = 0; i < CROWD; i++) {
		fi_addr_t was = ft->addr[0];

		if (ft->rank)
			ft->o.ep = ep[i];
		else
			ft->addr[0] = to[i];
		tx[i] = put(ft, true, 0, ft->rank ? (uint64_t)i : 3,
			    (uint64_t)i, len);
		ft->o.ep = mine;
		ft->addr[0] = was;
		FT_CHECK(ft, tx[i], "send %d not taken", i);
	}
	FT_TRY(all_done(ft, tx, CROWD, "sends"));
	FT_TRY(all_done(ft, rx, CROWD, "receives"));
	for (i = 0; i < CROWD; i++) {
		FT_TRY(check(ft, rx[i], ins + (size_t)i * len, len, !ft->rank,
			     (uint64_t)i));
		if (!ft->rank)
			FT_CHECK(ft, rx[i]->src == to[i], "source %lld, not "
				 "%lld", (long long)rx[i]->src,
				 (long long)to[i]);
	}
	return FT_PASS;
}

static int crowd(struct ft *ft, const struct ft_case *c)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");
	static struct crowd_name all[2][CROWD];
	static struct fid_ep *ep[CROWD];
	struct rlimit fds;
	int i, ret = FT_PASS;

	(void)c;
	if (!ft_is_bare(ft, "lnx") || !links)
		return ft_skip(ft, "not required of bare providers");
	if (strstr(links, "rxm"))
		return ft_skip(ft, "%d endpoints of tcp;ofi_rxm take too much "
			       "memory", CROWD);
	if (!strncmp(links, "shm", 3) && !strchr(links, '+'))
		return ft_skip(ft, "shared memory alone has room for 256 peers");
	if (!getrlimit(RLIMIT_NOFILE, &fds)) {
		fds.rlim_cur = fds.rlim_max;
		setrlimit(RLIMIT_NOFILE, &fds);
	}
	memset(ep, 0, sizeof(ep));
	if (ft->rank)
		ret = crowd_open(ft, ep, all[1], CROWD);
	if (ret == FT_PASS) {
		static struct crowd_name both[2][CROWD];

		if (oob_allgather(&ft->oob, all[ft->rank], both,
				  sizeof(all[0])))
			ret = ft_fail(ft, "lost the other rank");
		else
			ret = crowd_talk(ft, ep, both[1]);
	}
	ft_barrier(ft);
	for (i = 0; i < CROWD; i++)
		if (ep[i])
			fi_close(&ep[i]->fid);
	return ret;
}

/* ---- more local peers than shared memory has room for, one after the other ---- */

#define VISITS		300

/* Rank 1 is a new endpoint each time; rank 0 removes those that have closed. */
static int visit(struct ft *ft, struct crowd_name *name, int i)
{
	struct crowd_name both[2];
	struct ft_op *op[2];
	fi_addr_t peer = 0;
	int k;

	FT_CHECK(ft, !oob_allgather(&ft->oob, name, both, sizeof(*name)),
		 "lost the other rank");
	if (!ft->rank)
		FT_CHECK(ft, fi_av_insert(ft->o.av, both[1].name, 1, &peer, 0,
					  NULL) == 1, "visitor %d not inserted",
			 i);
	for (k = 0; k < 2; k++) {
		size_t len = k ? 20000 : 8;

		op[k] = ft->rank ? put(ft, true, 0, 9, (uint64_t)i + k, len) :
			post(ft, true, -1, 9, ins + k * SLOT, len);
		FT_CHECK(ft, op[k], "visit %d: not taken", i);
	}
	FT_TRY(all_done(ft, op, 2, "messages of a visitor"));
	for (k = 0; k < 2 && !ft->rank; k++) {
		FT_TRY(check(ft, op[k], ins + k * SLOT, k ? 20000 : 8, 1,
			     (uint64_t)i + k));
		FT_CHECK(ft, op[k]->src == peer, "visit %d: source %lld, not "
			 "%lld", i, (long long)op[k]->src, (long long)peer);
	}
	if (!ft->rank)
		FT_CALL(ft, fi_av_remove(ft->o.av, &peer, 1, 0));
	ft_ops_drop(ft);
	return FT_PASS;
}

static int visits(struct ft *ft, const struct ft_case *c)
{
	struct fid_ep *mine = ft->o.ep;
	static struct crowd_name name;
	int i, ret = FT_PASS;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not required of bare providers");
	if (ft_lnx_over_shm(ft) && !all_read_memory(ft))
		return ft_skip(ft, "slots of peers that have closed are only "
			       "reused where memory can be read");
	prepare(ft, 2 * SLOT);
	for (i = 0; i < VISITS && ret == FT_PASS; i++) {
		struct fid_ep *ep = NULL;

		if (ft->rank)
			ret = crowd_open(ft, &ep, &name, 1);
		if (ep)
			ft->o.ep = ep;
		if (ret == FT_PASS)
			ret = visit(ft, &name, i);
		ft->o.ep = mine;
		if (ep)
			fi_close(&ep->fid);
		/* Only when the peer has closed. */
		if (ft_barrier(ft))
			break;
	}
	return ret;
}

/* ---- messages as long as lnx's own control messages ---- */

/* Messages of about that length, with others between them, in order. */
static int control_messages(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 137, 65536, 136, 137, 8, 137, 5000,
					138, 137, 137 };
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	struct ft_op *rx[2 * N], *tx[2 * N];
	int i, k;

	prepare(ft, 2ul * N * SLOT);
	for (k = 0; k < 2; k++) {
		if (k == (int)c->a)
			ft_barrier(ft);
		for (i = 0; i < 2 * N && k != (int)c->a; i++) {
			rx[i] = post(ft, i & 1, i & 2 ? !ft->rank : -1, 7,
				     ins + (size_t)i * SLOT, SLOT);
			FT_CHECK(ft, rx[i], "receive not posted");
		}
		for (i = 0; i < 2 * N && k == (int)c->a; i++) {
			tx[i] = put(ft, i & 1, !ft->rank, 7, (uint64_t)i,
				    sizes[i / 2]);
			FT_CHECK(ft, tx[i], "send not taken");
		}
		if (k == (int)c->a)
			ft_linger(ft, 0.005);
	}
	FT_TRY(all_done(ft, tx, 2 * N, "sends"));
	FT_TRY(all_done(ft, rx, 2 * N, "receives"));
	for (i = 0; i < 2 * N; i++)
		FT_TRY(check(ft, rx[i], ins + (size_t)i * SLOT, sizes[i / 2],
			     !ft->rank, (uint64_t)i));
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const size_t fronts[] = { 4097, 65536, 1 << 20 };
	static struct ft_case cases[40];
	struct ft_case *c = cases;
	size_t i;
	int k;

	for (i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		for (k = 0; k < 2; k++, c++) {
			snprintf(c->name, sizeof(c->name), "%sbehind-%zu",
				 k ? "t" : "", fronts[i]);
			c->fn = blocked;
			c->a = 1ULL << 32 | fronts[i];
			c->b = (uint64_t)k;
		}
	}
	*c++ = (struct ft_case) { .name = "behind-1500-of-5000",
		.fn = blocked, .a = 1500ULL << 32 | 5000, .b = 1 };
	*c++ = (struct ft_case) { .name = "limits-both-ways-expected",
		.fn = both_ways };
	*c++ = (struct ft_case) { .name = "limits-both-ways-unexpected",
		.fn = both_ways, .a = 1 };
	*c++ = (struct ft_case) { .name = "to-self-unexpected",
		.fn = to_self, .ranks = 1 };
	*c++ = (struct ft_case) { .name = "empty-without-buffer-expected",
		.fn = empty };
	*c++ = (struct ft_case) { .name = "empty-without-buffer-unexpected",
		.fn = empty, .a = 1 };
	*c++ = (struct ft_case) { .name = "nested-64", .fn = nested, .a = 64,
		.b = 1200 };
	*c++ = (struct ft_case) { .name = "nested-5000", .fn = nested,
		.a = 5000, .b = 300 };
	*c++ = (struct ft_case) { .name = "nested-20000", .fn = nested,
		.a = 20000, .b = 300 };
	*c++ = (struct ft_case) { .name = "insert-before-bind",
		.fn = insert_first, .cfg.alone = true };
	*c++ = (struct ft_case) { .name = "insert-before-enable",
		.fn = insert_first, .a = 1, .cfg.alone = true };
	*c++ = (struct ft_case) { .name = "behind-unknown-sender",
		.fn = unknown_sender, .cfg.alone = true };
	*c++ = (struct ft_case) { .name = "more-than-256-local-peers",
		.fn = crowd, .slow = true };
	*c++ = (struct ft_case) { .name = "more-than-256-visitors",
		.fn = visits, .slow = true };
	*c++ = (struct ft_case) { .name = "control-messages-expected", .fn = control_messages,
		.a = 1 };
	*c++ = (struct ft_case) { .name = "control-messages-unexpected", .fn = control_messages };
	return ft_main(argc, argv, "hazards of core providers", cases,
		       (int)(c - cases));
}
