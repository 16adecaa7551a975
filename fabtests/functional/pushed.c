/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of 4 to 64 KiB, which a provider may move in several pieces before the receiver
 * has asked for them: in order with shorter and longer ones, whole where no receive waits,
 * where the receiver's queue is full, and where one of the two ends dies in the middle.
 */
#include "victim.h"

#include <stdlib.h>
#include <string.h>

#define MANY		600		/* more than a queue takes */
#define LEN		12000		/* of each */
#define FEW		4
#define QUEUE		1024		/* messages in that of shared memory */
#define ROOM		66000		/* of a receive */

static const size_t sizes[] = {
	8, 4096, 4097, 191, 4160, 8101, 8102, 8103, 64, 8192, 8261, 4095, 12288, 16383,
	16384, 16448, 16449, 1, 20000, 24576, 32768, 32832, 65536, 4095, 191, 4081, 137, 0,
};
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))

static unsigned char *at(int i)
{
	return ins + (size_t)i * ROOM;
}

/* One send of message i, in the call of the case. */
static struct ft_op *send_one(struct ft *ft, const struct ft_case *c, int i)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = c->a, .addr = ft->addr[1], .buf = outs[i % SLOTS],
		.len = sizes[i], .tag = 5, .call = (int)c->b, .data = (uint64_t)i,
		.flags = c->b == FT_SENDMSG ? FI_COMPLETION : 0,
	};

	return ft_send(ft, op, &m) ? NULL : op;
}

/* Receives for all of them, or those that were sent, in order. */
static int receive_all(struct ft *ft, const struct ft_case *c, struct ft_op **op, bool from)
{
	int i;

	for (i = 0; i < NSIZES && from; i++) {
		op[i] = post(ft, c->a, i % 3 || !ft_is_bare(ft, "lnx") ? 0 : -1, 5,
			     at(i), ROOM);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	return FT_PASS;
}

static int check_all(struct ft *ft, const struct ft_case *c, struct ft_op **op)
{
	int i;

	FT_TRY(all_done(ft, op, NSIZES, "receives"));
	for (i = 0; i < NSIZES; i++) {
		FT_TRY(check(ft, op[i], at(i), sizes[i], 0, (uint64_t)i));
		if (c->b == FT_SENDDATA)
			FT_CHECK(ft, (op[i]->flags & FI_REMOTE_CQ_DATA) &&
				 op[i]->data == (uint64_t)i, "message %d has not its "
				 "data", i);
	}
	return FT_PASS;
}

/* c->c: receives are posted before. */
static int in_order(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[NSIZES];
	int i;

	prepare(ft, (size_t)NSIZES * ROOM);
	if (ft->rank)
		FT_TRY(receive_all(ft, c, op, c->c));
	ft_barrier(ft);
	if (!ft->rank) {
		for (i = 0; i < NSIZES; i++) {
			op[i] = send_one(ft, c, i);
			FT_CHECK(ft, op[i], "send %d not taken", i);
		}
		/* Those that wait arrive, and are found to do so. */
		if (!c->c)
			ft_linger(ft, 0.02);
		ft_barrier(ft);
		FT_TRY(all_done(ft, op, NSIZES, "sends"));
		return FT_PASS;
	}
	if (!c->c)
		ft_linger(ft, 0.02);
	ft_barrier(ft);
	FT_TRY(receive_all(ft, c, op, !c->c));
	return check_all(ft, c, op);
}

/* Some have lengths that mean something to a provider, which must not take them for that. */
static size_t full_len(int i)
{
	return i % 7 == 3 ? 4095 : i % 7 == 5 ? 191 : i % 7 == 6 ? 100 : LEN - (size_t)i;
}

/* More than the receiver's queue takes, while it makes no progress; sent in both
 * directions, so that each end has some that wait. */
static int full(struct ft *ft, const struct ft_case *c)
{
	struct ft_op **tx = need(calloc(MANY, sizeof(*tx)));
	struct ft_op **rx = need(calloc(MANY, sizeof(*rx)));
	int i, to = !ft->rank, ret;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	prepare(ft, (size_t)MANY * LEN);
	for (i = 0; i < MANY && c->a; i++)
		FT_CHECK(ft, rx[i] = post(ft, c->b, to, 3, ins + (size_t)i * LEN, LEN),
			 "receive %d not posted", i);
	ft_barrier(ft);
	for (i = 0; i < MANY; i++) {
		tx[i] = put(ft, c->b, to, 3, (uint64_t)i, full_len(i));
		FT_CHECK(ft, tx[i], "send %d not taken", i);
	}
	ft_barrier(ft);
	for (i = 0; i < MANY && !c->a; i++)
		FT_CHECK(ft, rx[i] = post(ft, c->b, to, 3, ins + (size_t)i * LEN, LEN),
			 "receive %d not posted", i);
	ret = all_done(ft, rx, MANY, "receives");
	if (ret == FT_PASS)
		ret = all_done(ft, tx, MANY, "sends");
	for (i = 0; i < MANY && ret == FT_PASS; i++)
		ret = check(ft, rx[i], ins + (size_t)i * LEN, full_len(i), to, (uint64_t)i);
	free(tx);
	free(rx);
	return ret;
}

/*
 * So many short messages that the queue has room for a part of the message that follows; then
 * it is emptied, and before the rest leaves comes another message: as long as what a provider
 * may be waiting for, or in pieces itself.
 */
static int overtaken(struct ft *ft, const struct ft_case *c)
{
	size_t last = c->a ? LEN : 4095;
	struct ft_op *op[3];
	int i, n;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	for (n = QUEUE - 4; n < QUEUE + 5; n++) {
		prepare(ft, 3 * LEN);
		if (ft->rank) {
			op[0] = post(ft, true, 0, 2, ins + 2 * LEN, LEN);
			op[1] = post(ft, false, 0, 0, ins, LEN);
			op[2] = post(ft, false, 0, 0, ins + LEN, LEN);
			FT_CHECK(ft, op[0] && op[1] && op[2], "receives not posted");
		}
		ft_barrier(ft);
		for (i = 0; i < n && !ft->rank; i++)
			FT_CALL(ft, fi_tinject(ft->o.ep, outs[0], 8, ft->addr[1], 1));
		if (!ft->rank) {
			op[1] = put(ft, false, 1, 0, (uint64_t)n, LEN);
			FT_CHECK(ft, op[1], "a send is not taken");
		}
		ft_barrier(ft);
		if (ft->rank)
			ft_linger(ft, 0.02);
		ft_barrier(ft);
		if (!ft->rank) {
			op[2] = put(ft, false, 1, 0, (uint64_t)n + 1, last);
			op[0] = put(ft, true, 1, 2, 0, 8);
			FT_CHECK(ft, op[2] && op[0], "the last sends are not taken");
		}
		FT_TRY(all_done(ft, op, 3, "operations"));
		if (ft->rank) {
			FT_TRY(check(ft, op[1], ins, LEN, 0, (uint64_t)n));
			FT_TRY(check(ft, op[2], ins + LEN, last, 0, (uint64_t)n + 1));
		}
		for (i = 0; i < n && ft->rank; i++) {
			op[0] = post(ft, true, 0, 1, ins + 2 * LEN, 8);
			FT_TRY(all_done(ft, op, 1, "receives"));
		}
		ft_barrier(ft);
		ft_ops_drop(ft);
	}
	return FT_PASS;
}

static int truncated(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[2];

	if (ft_is_bare(ft, "shm"))
		return ft_skip(ft, "bare shm loops for ever inside progress");
	prepare(ft, ROOM);
	if (!ft->rank) {
		ft_barrier(ft);
		op[0] = put(ft, true, 1, 1, 1, LEN);
		op[1] = put(ft, true, 1, 2, 2, LEN);
		FT_CHECK(ft, op[0] && op[1], "a send is not taken");
		if (!c->a)
			ft_linger(ft, 0.02);
		ft_barrier(ft);
		return all_done(ft, op, 2, "sends");
	}
	if (c->a)
		op[0] = post(ft, true, 0, 1, ins, 5000);
	ft_barrier(ft);
	if (!c->a)
		ft_linger(ft, 0.02);
	ft_barrier(ft);
	if (!c->a)
		op[0] = post(ft, true, 0, 1, ins, 5000);
	FT_TRY(all_done(ft, op, 1, "receives"));
	FT_CHECK(ft, op[0]->err == FI_ETRUNC, "a receive that is too short: %s",
		 op[0]->err ? fi_strerror(op[0]->err) : "success");
	FT_CHECK(ft, ins[5000] == 0, "it wrote behind the receive");
	op[1] = post(ft, true, 0, 2, ins, ROOM);
	FT_TRY(all_done(ft, op + 1, 1, "receives"));
	FT_TRY(check(ft, op[1], ins, LEN, 0, 2));
	ft_known(ft, NULL, "wrong olen in the error entry");
	FT_CHECK(ft, op[0]->ee.olen == LEN - 5000, "%zu bytes too many, not %d",
		 op[0]->ee.olen, LEN - 5000);
	return FT_PASS;
}

/* A receive is cancelled while the message may be coming: one of the two has it. */
static int cancelled(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[2];
	int i, ret;

	(void)c;
	prepare(ft, 2 * ROOM);
	for (i = 0; i < 200; i++) {
		if (!ft->rank) {
			ft_barrier(ft);
			op[0] = put(ft, true, 1, 1, (uint64_t)i, LEN);
			FT_CHECK(ft, op[0], "a send is not taken");
			FT_TRY(all_done(ft, op, 1, "sends"));
			ft_barrier(ft);
			continue;
		}
		op[0] = post(ft, true, 0, 1, at(0), ROOM);
		ft_barrier(ft);
		if (i % 2)
			ft_progress(ft);
		ret = (int)fi_cancel(&ft->o.ep->fid, op[0]);
		FT_CHECK(ft, !ret || ret == -FI_ENOENT || ret == -FI_EAGAIN,
			 "fi_cancel: %d", ret);
		FT_TRY(all_done(ft, op, 1, "receives"));
		if (op[0]->err) {
			FT_CHECK(ft, op[0]->err == FI_ECANCELED, "a cancelled "
				 "receive: %s", fi_strerror(op[0]->err));
			op[1] = post(ft, true, 0, 1, at(1), ROOM);
			FT_TRY(all_done(ft, op + 1, 1, "receives"));
			FT_TRY(check(ft, op[1], at(1), LEN, 0, (uint64_t)i));
		} else {
			FT_TRY(check(ft, op[0], at(0), LEN, 0, (uint64_t)i));
		}
		ft_barrier(ft);
	}
	return FT_PASS;
}

/* A message that waits is looked at, claimed and received, or discarded. */
static int looked_at(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[3];
	struct ft_msg m = { .tagged = true, .call = FT_RECVMSG, .tag = 1 };
	int i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	prepare(ft, ROOM);
	for (i = 0; i < 2; i++) {
		if (!ft->rank) {
			op[0] = put(ft, true, 1, 1, (uint64_t)i, LEN);
			FT_CHECK(ft, op[0], "a send is not taken");
			ft_barrier(ft);
			/* Where memory may not be read it waits for the receive. */
			FT_TRY(all_done(ft, op, 1, "sends"));
			ft_barrier(ft);
			continue;
		}
		ft_barrier(ft);
		m.addr = ft->addr[0];
		do {
			op[0] = ft_op_new(ft);
			m.flags = FI_PEEK | (i ? FI_DISCARD : FI_CLAIM);
			FT_CHECK(ft, !ft_recv(ft, op[0], &m), "no FI_PEEK");
			FT_TRY(all_done(ft, op, 1, "FI_PEEK"));
		} while (op[0]->err == FI_ENOMSG);
		FT_CHECK(ft, !op[0]->err && op[0]->len == LEN, "FI_PEEK: %s, %zu bytes",
			 fi_strerror(op[0]->err), op[0]->len);
		if (!i) {
			op[0]->done = 0;
			m.flags = FI_CLAIM;
			m.buf = ins;
			m.len = ROOM;
			FT_CHECK(ft, !ft_recv(ft, op[0], &m), "no FI_CLAIM");
			FT_TRY(all_done(ft, op, 1, "FI_CLAIM"));
			FT_TRY(check(ft, op[0], ins, LEN, 0, 0));
			m.buf = NULL;
			m.len = 0;
		}
		ft_barrier(ft);
	}
	/* It was discarded. */
	if (!ft->rank) {
		op[0] = put(ft, true, 1, 1, 7, LEN);
		FT_CHECK(ft, op[0], "a send is not taken");
		return all_done(ft, op, 1, "sends");
	}
	op[0] = post(ft, true, 0, 1, ins, ROOM);
	FT_TRY(all_done(ft, op, 1, "receives"));
	return check(ft, op[0], ins, LEN, 0, 7);
}

/* ---- the end of a process ---- */

static int with_victim(struct ft *ft, const struct ft_case *c, int (*does)(struct ft *ft),
		       int (*body)(struct ft *ft, struct victim *v))
{
	struct victim v = { 0 };
	int all[OOB_MAX_RANKS], ret = FT_PASS;

	if (!ft_lnx_over_shm(ft))
		return ft_skip(ft, "not over shared memory of lnx");
	if (!ft->rank) {
		prepare(ft, (size_t)MANY * LEN);
		ret = victim_start(ft, &v, &c->cfg, does);
		if (ret == FT_PASS)
			ret = victim_ready(ft, &v, does != NULL);
		if (ret == FT_PASS)
			ret = body(ft, &v);
		victim_kill(&v);
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
	}
	/* Rank 1 waits here. */
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a rank");
	return ret;
}

/* It does not receive what fills its queue. */
static int receiver_dies(struct ft *ft, struct victim *v)
{
	struct ft_op *tx[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		FT_CHECK(ft, tx[i] = put(ft, true, 1, 3, (uint64_t)i, LEN),
			 "send %d not taken", i);
	FT_CHECK(ft, !tx[MANY - 1]->done, "all %d were sent: the queue is not full", MANY);
	victim_kill(v);
	FT_TRY(all_done(ft, tx, MANY, "sends to a dead process"));
	for (i = 0; i < MANY; i++)
		FT_CHECK(ft, tx[i]->done == 1 &&
			 (!tx[i]->err || tx[i]->err == FI_ECONNRESET),
			 "send %d ended %u times, with %s", i, tx[i]->done,
			 fi_strerror(tx[i]->err));
	return FT_PASS;
}

static int sends_many(struct ft *ft, int before)
{
	int i;

	for (i = 0; i < before; i++)
		if (fi_tinject(ft->o.ep, outs[0], 8, ft->addr[0], 9))
			return FT_FAIL;
	for (i = 0; i < FEW; i++)
		if (!put(ft, true, 0, 3, (uint64_t)i, LEN))
			return FT_FAIL;
	return FT_PASS;
}

/* With one of these numbers the queue has room for a part of the first message. */
static int sends_0(struct ft *ft)
{
	return sends_many(ft, QUEUE - 3);
}

static int sends_1(struct ft *ft)
{
	return sends_many(ft, QUEUE - 2);
}

static int sends_2(struct ft *ft)
{
	return sends_many(ft, QUEUE - 1);
}

/* It has filled our queue, and a message may have come in part, or be announced and still in
 * its memory: then its receive fails, and does not wait for ever. */
static int sender_dies(struct ft *ft, struct victim *v)
{
	struct ft_op *rx[FEW], *one;
	int i;

	victim_leave(v);
	for (i = 0; i < FEW; i++)
		FT_CHECK(ft, rx[i] = post(ft, true, 1, 3, ins + (size_t)i * LEN, LEN),
			 "receive %d not posted", i);
	/* What has left comes, and its death is noticed. */
	ft_linger(ft, 2);
	for (i = 0; i < FEW; i++) {
		FT_CHECK(ft, rx[i]->done || !fi_cancel(&ft->o.ep->fid, rx[i]), "message %d "
			 "of a dead process is in part here, and its receive does not end",
			 i);
		if (rx[i]->done && !rx[i]->err)
			FT_TRY(check(ft, rx[i], ins + (size_t)i * LEN, LEN, 1,
				     (uint64_t)i));
	}
	/* Others go on. */
	FT_CHECK(ft, fi_av_insert(ft->o.av, ft->o.name, 1, &ft->addr[0], 0, NULL) == 1,
		 "fi_av_insert failed");
	one = post(ft, true, 0, 4, ins, LEN);
	rx[0] = put(ft, true, 0, 4, 0, LEN);
	FT_CHECK(ft, one && rx[0], "a message to ourselves is refused");
	FT_TRY(all_done(ft, &one, 1, "receives from ourselves"));
	return check(ft, one, ins, LEN, 0, 0);
}

static int to_victim(struct ft *ft, const struct ft_case *c)
{
	return with_victim(ft, c, NULL, receiver_dies);
}

static int from_victim(struct ft *ft, const struct ft_case *c)
{
	return with_victim(ft, c, c->a == 0 ? sends_0 : c->a == 1 ? sends_1 : sends_2,
			   sender_dies);
}

#define CALL(word, call)							\
	{ .name = "posted-" word, .fn = in_order, .a = 1, .b = call, .c = 1 },	\
	{ .name = "stored-" word, .fn = in_order, .a = 1, .b = call, .c = 0 },	\
	{ .name = "untagged-posted-" word, .fn = in_order, .b = call, .c = 1 },	\
	{ .name = "untagged-stored-" word, .fn = in_order, .b = call, .c = 0 }

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		CALL("send", FT_SEND), CALL("sendv", FT_SENDV),
		CALL("sendmsg", FT_SENDMSG), CALL("senddata", FT_SENDDATA),
		{ .name = "full-posted", .fn = full, .a = 1, .b = 1 },
		{ .name = "full-stored", .fn = full, .b = 1 },
		{ .name = "untagged-full-posted", .fn = full, .a = 1 },
		{ .name = "untagged-full-stored", .fn = full },
		{ .name = "overtaken", .fn = overtaken },
		{ .name = "overtaken-by-pieces", .fn = overtaken, .a = 1 },
		{ .name = "truncated-posted", .fn = truncated, .a = 1 },
		{ .name = "truncated-stored", .fn = truncated },
		{ .name = "cancelled", .fn = cancelled },
		{ .name = "looked-at", .fn = looked_at },
		{ .name = "receiver-dies", .fn = to_victim, .cfg.alone = true },
		{ .name = "sender-dies", .fn = from_victim, .cfg.alone = true },
		{ .name = "sender-dies-1", .fn = from_victim, .a = 1, .cfg.alone = true },
		{ .name = "sender-dies-2", .fn = from_victim, .a = 2, .cfg.alone = true },
	};

	return ft_main(argc, argv, "messages of some KiB", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
