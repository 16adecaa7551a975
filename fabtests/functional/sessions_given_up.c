/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gives B up although B lives: no frame passes between the two for longer than A waits
 * for a silent peer, while the kernels answer and B would wait for an hour.  A's
 * operations end then.  Once frames pass again, B's must end too: by what A says of the
 * session that it has ended, or because A begins the next one.  Nothing of the old session
 * is delivered in the next, for which neither touches its address vector.
 *
 * Rank 0 is A, and B an actor.  See sessions.c.
 */
#include "sessions.h"

#include <stdio.h>
#include <string.h>

#define STALL_S		"3"		/* of A */
#define BIG		300000
#define OURS		0x33
#define KEY		0x7654321u	/* of both */
#define ADDEND		1u

/* Tags of the old session, and of the next one. */
enum { T_HELLO = 1, T_ANNOUNCED, T_LARGE, T_SMALL, T_NEXT };

/* What A orders. */
enum { MEET = 1, ANNOUNCE, CUT, START, MEND, TALK };

/* Operations that cannot end while no frame passes; B has the first one before that. */
enum { ANNOUNCED, LARGE, READ, FETCH, WRITE, LARGE_WRITE, SMALL, UNTAGGED, OPS };
static const char *const op_names[OPS] = {
	"announced send", "large send", "read", "atomic", "write", "large write", "small send",
	"untagged send",
};

/* B's memory, which A sees. */
struct b_mem {
	unsigned char target[BIG];	/* registered */
	volatile unsigned ended[OPS];	/* completions */
	volatile int err[OPS];
};

struct order {
	int what;
	unsigned char name[FT_NAME_MAX];
};

static unsigned char out[BIG], in[BIG], result[BIG];
static uint64_t addend;

/* ---- both ---- */

static const size_t next_sizes[] = { 8, 5000, BIG, 0, 65536 };
#define NEXT		(sizeof(next_sizes) / sizeof(next_sizes[0]))

static int reg(struct ft *ft, void *mem)
{
	static struct ft_mr m;

	memset(mem, OURS, BIG);
	memset(&m, 0, sizeof(m));
	FT_CALL(ft, fi_mr_reg(ft->o.domain, mem, BIG, FT_MR_ACCESS, 0, KEY, 0, &m.mr,
			      NULL));
	ft->o.extra[ft->o.nextra++] = &m.mr->fid;
	return FT_PASS;
}

static int from(struct ft *ft, struct ft_op **op, fi_addr_t source, uint64_t tag,
		void *buf, size_t len)
{
	struct ft_msg m = { .tagged = true, .addr = source, .tag = tag, .buf = buf,
			    .len = len };

	*op = ft_op_new(ft);
	return ft_recv(ft, *op, &m);
}

/* All that can be outstanding with the endpoint at addr[as], but for what is announced. */
static int start(struct ft *ft, int as, struct ft_op **op)
{
	memset(out, OURS ^ 0xff, sizeof(out));
	addend = ADDEND;
	FT_CALL(ft, actor_put(ft, &op[LARGE], ft->addr[as], true, T_LARGE, out, BIG, 0));
	FT_CALL(ft, sessions_rma(ft, &op[READ], as, FT_READMSG, result, BIG, KEY));
	FT_CALL(ft, sessions_atomic(ft, &op[FETCH], as, FT_FETCHMSG, &addend, in, 1,
				    KEY));
	FT_CALL(ft, sessions_rma(ft, &op[WRITE], as, FT_WRITEMSG, out, 64, KEY));
	FT_CALL(ft, sessions_rma(ft, &op[LARGE_WRITE], as, FT_WRITEMSG, out, BIG, KEY));
	FT_CALL(ft, actor_put(ft, &op[SMALL], ft->addr[as], true, T_SMALL, out, 64, 0));
	FT_CALL(ft, actor_put(ft, &op[UNTAGGED], ft->addr[as], false, 0, out, 64, 0));
	return FT_PASS;
}

/* The messages of `sender` in the next session come, in order, and its memory can be
 * read. */
static int receive_next(struct ft *ft, int as, unsigned sender)
{
	struct ft_op *op;
	size_t i;

	for (i = 0; i < NEXT; i++) {
		FT_CALL(ft, from(ft, &op, ft->addr[as], T_NEXT, in, BIG));
		FT_DONE(ft, op);
		FT_CHECK(ft, op->len == next_sizes[i] && op->data == i &&
			 pattern_check(in, op->len, ft->run->seed, sender, i) < 0,
			 "message %zu of the next session is wrong", i);
	}
	memset(result, ~OURS, BIG);
	FT_CALL(ft, sessions_rma(ft, &op, as, FT_READMSG, result, BIG, KEY));
	FT_DONE(ft, op);
	FT_CHECK(ft, pattern_is_filled(result, BIG, OURS) < 0,
		 "memory was read wrong in the next session, or written in the old one");
	return FT_PASS;
}

static int send_next(struct ft *ft, int as, unsigned sender, size_t first)
{
	struct ft_op *op;
	size_t i;

	for (i = first; i < NEXT; i++) {
		pattern_fill(out, next_sizes[i], ft->run->seed, sender, i);
		FT_CALL(ft, actor_put(ft, &op, ft->addr[as], true, T_NEXT, out,
				      next_sizes[i], i));
		FT_DONE(ft, op);
	}
	return FT_PASS;
}

/* ---- B ---- */

static struct b_mem *b_mem;

static void on_end(struct ft *ft, struct ft_op *op)
{
	uintptr_t i = (uintptr_t)op->arg;

	(void)ft;
	b_mem->err[i] = op->err;
	b_mem->ended[i]++;
}

static int b_meet(struct ft *ft, const struct order *o)
{
	struct ft_op *op;

	FT_CHECK(ft, fi_av_insert(ft->o.av, o->name, 1, &ft->addr[0], 0, NULL) == 1,
		 "fi_av_insert failed");
	FT_TRY(reg(ft, b_mem->target));
	FT_CALL(ft, actor_put(ft, &op, ft->addr[0], true, T_HELLO, out, 64, 0));
	FT_DONE(ft, op);
	FT_CALL(ft, from(ft, &op, ft->addr[0], T_HELLO, in, 64));
	FT_DONE(ft, op);
	return FT_PASS;
}

static int b_obey(struct ft *ft, const struct order *o, struct ft_op **op)
{
	uintptr_t i;

	switch (o->what) {
	case MEET:
		return b_meet(ft, o);
	case ANNOUNCE:
		FT_CALL(ft, actor_put(ft, &op[ANNOUNCED], ft->addr[0], true, T_ANNOUNCED,
				      out, BIG, 0));
		break;
	case CUT:
		return actor_ask(ft, "fault add drop");
	case START:
		FT_TRY(start(ft, 0, op));
		break;
	case MEND:
		return actor_ask(ft, "fault del all");
	case TALK:
		FT_TRY(send_next(ft, 0, 1, 0));
		FT_TRY(receive_next(ft, 0, 0));
		FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
		return FT_PASS;
	}
	for (i = 0; i < OPS; i++) {
		if (!op[i])
			continue;
		op[i]->hook = on_end;
		op[i]->arg = (void *)i;
	}
	return FT_PASS;
}

static int play(struct ft *ft, struct actor *me)
{
	struct ft_op *op[OPS] = { NULL };
	struct order o;

	b_mem = (void *)me->mem->at;
	_Static_assert(sizeof(*b_mem) <= ACTOR_ROOM, "there is room for B's memory");
	FT_TRY(actor_open(ft, NULL, 0));
	FT_TRY(actor_tell(ft, me, ft->o.name, sizeof(ft->o.name)));
	for (;;) {
		FT_TRY(actor_hear(ft, me, &o, sizeof(o), false));
		FT_TRY(b_obey(ft, &o, op));
		FT_TRY(actor_tell(ft, me, &o, sizeof(o)));
	}
}

/* ---- A ---- */

static int tell_b(struct ft *ft, int what)
{
	struct order o = { .what = what };

	memcpy(o.name, ft->o.name, sizeof(o.name));
	FT_TRY(actor_tell(ft, &actors[0], &o, sizeof(o)));
	return actor_hear(ft, &actors[0], &o, sizeof(o), false);
}

static int begin(struct ft *ft, unsigned char *mem)
{
	unsigned char name[FT_NAME_MAX];
	struct ft_op *rx, *tx;
	struct order o = { .what = MEET };

	FT_TRY(actor_start(ft, 0, play));
	FT_TRY(actor_hear(ft, &actors[0], name, sizeof(name), true));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_CHECK(ft, fi_av_insert(ft->o.av, name, 1, &ft->addr[1], 0, NULL) == 1,
		 "fi_av_insert failed");
	FT_TRY(reg(ft, mem));
	memcpy(o.name, ft->o.name, sizeof(o.name));
	FT_TRY(actor_tell(ft, &actors[0], &o, sizeof(o)));
	FT_CALL(ft, from(ft, &rx, ft->addr[1], T_HELLO, in, 64));
	FT_DONE(ft, rx);
	FT_CALL(ft, actor_put(ft, &tx, ft->addr[1], true, T_HELLO, out, 64, 0));
	FT_DONE(ft, tx);
	return actor_hear(ft, &actors[0], &o, sizeof(o), false);
}

/* B's large message is announced, and no receive is there for it. */
static int announced(struct ft *ft)
{
	uint64_t before = actor_stat(ft, "recv_count");
	double end = ft_now() + ft->run->timeout_s;

	FT_TRY(tell_b(ft, ANNOUNCE));
	while (actor_stat(ft, "recv_count") == before) {
		FT_CHECK(ft, ft_now() < end, "the message is not announced");
		ft_linger(ft, 0.001);
	}
	return FT_PASS;
}

/* A gives B up, and B waits. */
static int give_up(struct ft *ft, const struct b_mem *b)
{
	struct ft_op *op[OPS] = { NULL };
	int i;

	FT_TRY(actor_ask(ft, "set stall_timeout " STALL_S));
	FT_TRY(actor_ask(ft, "fault add drop"));
	FT_TRY(tell_b(ft, CUT));
	FT_TRY(tell_b(ft, START));
	FT_TRY(start(ft, 1, op));
	for (i = LARGE; i < OPS; i++) {
		FT_CHECK(ft, !ft_wait(ft, op[i]), "the %s to a silent peer does not end",
			 op_names[i]);
		FT_CHECK(ft, op[i]->err == FI_ETIMEDOUT, "the %s to a silent peer ended "
			 "with \"%s\"", op_names[i], op[i]->err ?
			 fi_strerror(op[i]->err) : "success");
	}
	ft_linger(ft, 0.3);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	for (i = 0; i < OPS; i++)
		FT_CHECK(ft, !b->ended[i], "the %s of B ended while B was to wait: %s",
			 op_names[i], fi_strerror(b->err[i]));
	return FT_PASS;
}

/* B hears that the session has ended: everything of it ends, once. */
static int all_ended(struct ft *ft, const struct b_mem *b)
{
	double end = ft_now() + ft->run->timeout_s;
	int i, n;

	do {
		ft_linger(ft, 0.01);
		for (i = n = 0; i < OPS; i++)
			n += b->ended[i] != 0;
	} while (n < OPS && ft_now() < end);
	ft_linger(ft, 0.3);
	for (i = 0; i < OPS; i++) {
		FT_CHECK(ft, b->ended[i], "B is not told that its session has ended: its "
			 "%s, and %d more, do not end", op_names[i], OPS - n - 1);
		FT_CHECK(ft, b->ended[i] == 1, "the %s of B ended %u times", op_names[i],
			 b->ended[i]);
		FT_CHECK(ft, b->err[i] == FI_ECONNRESET, "the %s of B ended with \"%s\"",
			 op_names[i], b->err[i] ? fi_strerror(b->err[i]) : "success");
	}
	return FT_PASS;
}

/* The first message of the next session, from A, which may not begin one at once. */
static int begin_next(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op;
	int ret;

	pattern_fill(out, next_sizes[0], ft->run->seed, 0, 0);
	do {
		ret = actor_put(ft, &op, ft->addr[1], true, T_NEXT, out, next_sizes[0],
				0);
		FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "send: %s",
			 fi_strerror(-ret));
		FT_CHECK(ft, ft_now() < end, "no other session may begin");
		if (ret)
			ft_linger(ft, 0.02);
	} while (ret);
	FT_DONE(ft, op);
	return FT_PASS;
}

/* What was announced in the old session can no longer be read. */
static int not_read(struct ft *ft)
{
	struct ft_op *op;

	FT_CALL(ft, from(ft, &op, ft->addr[1], T_ANNOUNCED, in, BIG));
	FT_CHECK(ft, !ft_wait(ft, op), "the receive of a message of the old session does "
		 "not end");
	FT_CHECK(ft, op->err, "a message of the old session was received");
	return FT_PASS;
}

#define TRAPS		3

/* a: A begins the next session, before B has heard anything */
int sessions_given_up(struct ft *ft, const struct ft_case *c)
{
	static const char *const what[TRAPS] = { "small", "large", "untagged" };
	static unsigned char mem[BIG], trap[TRAPS][BIG];
	struct ft_msg untagged = { .addr = FI_ADDR_UNSPEC, .buf = trap[2], .len = BIG };
	struct ft_op *op[TRAPS];
	uint64_t seed = ft->run->seed;
	const struct b_mem *b;
	struct order o = { .what = TALK };
	int i;

	memset(trap, OURS, sizeof(trap));
	FT_TRY(begin(ft, mem));
	b = (const void *)actors[0].mem->at;
	FT_CALL(ft, from(ft, &op[0], FI_ADDR_UNSPEC, T_SMALL, trap[0], BIG));
	FT_CALL(ft, from(ft, &op[1], ft->addr[1], T_LARGE, trap[1], BIG));
	op[2] = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, op[2], &untagged));
	FT_TRY(announced(ft));
	FT_TRY(give_up(ft, b));
	FT_CHECK(ft, pattern_is_filled(b->target, BIG, OURS) < 0,
		 "B's memory was changed");
	if (pattern_random(&seed) % 2)
		FT_TRY(actor_ask(ft, "fault del all"));
	FT_TRY(tell_b(ft, MEND));
	FT_TRY(actor_ask(ft, "fault del all"));
	if (c->a)
		FT_TRY(begin_next(ft));
	FT_TRY(all_ended(ft, b));
	FT_TRY(not_read(ft));

	FT_TRY(actor_tell(ft, &actors[0], &o, sizeof(o)));
	FT_TRY(receive_next(ft, 1, 1));
	FT_TRY(send_next(ft, 1, 0, c->a ? 1 : 0));
	FT_TRY(actor_hear(ft, &actors[0], &o, sizeof(o), false));
	FT_CHECK(ft, pattern_is_filled(mem, BIG, OURS) < 0, "A's memory was changed");
	for (i = 0; i < TRAPS; i++)
		FT_CHECK(ft, !op[i]->done && pattern_is_filled(trap[i], BIG, OURS) < 0,
			 "a %s message of the old session was received", what[i]);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}
