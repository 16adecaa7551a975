/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints have a session with each other (lnx_wire.h).  It begins with the
 * first message and ends when one of them closes, dies or gives the other up;
 * then everything that was outstanding ends, once, and another session may
 * begin.  An endpoint that gets the address of a dead one is not touched by what
 * was meant for that; one that is opened again under the same name is reached
 * again; and neither the number of sessions that there were nor strangers cost
 * anything that lasts.
 *
 * Shared memory is off, unless FI_LNX_DISABLE_SHM=0 turns it on: sessions are between
 * nodes, but for endpoints that get the name of one whose process has ended.
 * sessions_forged.c has the cases
 * with hostile senders, sessions_given_up.c those in which an endpoint gives up one that
 * lives, sessions_absent.c and sessions_idle.c those with peers that are not there, and
 * with idle ones.
 */
#include "actor.h"
#include "sessions.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lnx_wire_addr.h"

#define CONNECT_MS	"2000"
#define TRANSACTION_MS	"2000"
#define STRANGERS	"16"

#define SECRET		0x5c
#define OURS		0x33
#define HEIRS_TAG	6
#define BIG		300000
#define EID_AT		offsetof(struct lnx_wire_addr, eid)

static const size_t sizes[] = { 8, 5000, 65536, 0, 16320, BIG };
#define NSIZES		(sizeof(sizes) / sizeof(sizes[0]))
static unsigned char bufs[40][BIG];

static uint64_t seed;			/* of random choices in rank 0 */

/* ---- what several cases do ---- */

/* Opening an endpoint of ofi_rxm takes 100 ms: there are fewer of them. */
static bool over_rxm(void)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	return links && strstr(links, "ofi_rxm");
}

static int insert(struct ft *ft, const unsigned char *name, int as)
{
	FT_CHECK(ft, fi_av_insert(ft->o.av, name, 1, &ft->addr[as], 0, NULL) ==
		 1, "fi_av_insert failed");
	return FT_PASS;
}

static int know(struct ft *ft, struct actor *a)
{
	struct actor_order o = { .what = ACTOR_KNOW };

	memcpy(o.name, ft->o.name, sizeof(o.name));
	return actor_do(ft, a, &o, NULL, false);
}

/* A message to and from, so that there is a session. */
static int contact(struct ft *ft, struct actor *a, int as)
{
	struct actor_order post = { .what = ACTOR_POST, .n = 2, .size = 64 };
	struct actor_order send = { .what = ACTOR_SEND, .n = 1, .size = 64,
				    .key = 5 };
	struct ft_msg m = { .tagged = true, .addr = ft->addr[as], .tag = 5,
			    .buf = bufs[0], .len = 64 };
	struct ft_op *op[2], *rx = ft_op_new(ft);
	int i;

	FT_TRY(actor_do(ft, a, &post, NULL, false));
	for (i = 0; i < 2; i++) {
		FT_CALL(ft, actor_put(ft, &op[i], ft->addr[as], i, 1, bufs[1],
				      64, 0));
		FT_DONE(ft, op[i]);
	}
	FT_CALL(ft, ft_recv(ft, rx, &m));
	FT_TRY(know(ft, a));
	FT_TRY(actor_do(ft, a, &send, NULL, false));
	FT_DONE(ft, rx);
	return FT_PASS;
}

/* Each of them ends, once. */
static int end_once(struct ft *ft, struct ft_op **op, int n, bool must_fail,
		    const char *what)
{
	int i;

	for (i = 0; i < n; i++) {
		FT_CHECK(ft, !ft_wait(ft, op[i]), "%s %d of %d does not end",
			 what, i, n);
		FT_CHECK(ft, op[i]->err || !must_fail,
			 "%s %d to a dead endpoint succeeded", what, i);
	}
	ft_linger(ft, 0.3);
	FT_CHECK(ft, !ft->unexpected[0], "%s: %s", what, ft->unexpected);
	return FT_PASS;
}

/* The end of a process that may have been stopped, and its heir's beginning. */
static int take_over(struct ft *ft, struct actor *dead, struct actor *heir,
		     const unsigned char *name, unsigned char *heirs_name,
		     uint64_t key)
{
	struct actor_order o = { .what = ACTOR_OPEN,
				 .name_len = ft->o.name_len };
	struct actor_answer say;
	bool deaf = pattern_random(&seed) % 2;

	actor_kill(dead);
	memcpy(o.name, name, sizeof(o.name));
	o.name[EID_AT] ^= 0x55;
	o.name[EID_AT + 5] ^= 0x99;
	memset(heir->mem->at, SECRET, ACTOR_ROOM);
	FT_TRY(actor_do(ft, heir, &o, &say, deaf));
	memcpy(heirs_name, say.name, FT_NAME_MAX);
	FT_CHECK(ft, !memcmp(say.name, o.name, ft->o.name_len),
		 "the other endpoint did not get the address");
	if (key) {
		o = (struct actor_order){ .what = ACTOR_REG, .key = key };
		FT_TRY(actor_do(ft, heir, &o, NULL, deaf));
	}
	o = (struct actor_order){ .what = ACTOR_POST, .n = 8, .size = 100000 };
	return actor_do(ft, heir, &o, NULL, deaf);
}

static int untouched(struct ft *ft, const struct actor *a)
{
	long long at = pattern_is_filled(a->mem->at, ACTOR_ROOM, SECRET);

	FT_CHECK(ft, !a->mem->done && !a->mem->failed, "%u receives of another "
		 "endpoint ended, %u of them well",
		 a->mem->done + a->mem->failed, a->mem->done);
	FT_CHECK(ft, at < 0, "memory of another endpoint was written at %lld",
		 at);
	return FT_PASS;
}

/* Receives from the dead one only, for what its heir will send: they take nothing of that. */
#define TRAPS		2

static unsigned char trap[TRAPS][5000];
static struct ft_op *trap_rx[TRAPS];

static int set_trap(struct ft *ft, int i)
{
	struct ft_msg m = { .tagged = true, .addr = ft->addr[1], .tag = HEIRS_TAG,
			    .buf = trap[i], .len = sizeof(trap[i]) };

	memset(trap[i], OURS, sizeof(trap[i]));
	trap_rx[i] = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, trap_rx[i], &m));
	return FT_PASS;
}

static int check_traps(struct ft *ft)
{
	int i;

	for (i = 0; i < TRAPS; i++) {
		FT_CHECK(ft, !trap_rx[i]->done || trap_rx[i]->err, "receive %d from the dead "
			 "endpoint took what its heir sent", i);
		FT_CHECK(ft, pattern_is_filled(trap[i], sizeof(trap[i]), OURS) < 0,
			 "the buffer of receive %d from the dead endpoint was written", i);
	}
	return FT_PASS;
}

/* Under its own address it is reached. */
static int talk_to_heir(struct ft *ft, struct actor *heir,
			const unsigned char *name)
{
	struct actor_order send = { .what = ACTOR_SEND, .n = 3, .size = 5000,
				    .key = HEIRS_TAG };
	struct ft_op *tx[2], *rx[3];
	double end = ft_now() + ft->run->timeout_s;
	int i;

	FT_TRY(insert(ft, name, 2));
	FT_CHECK(ft, ft->addr[2] != ft->addr[1], "it has the dead one's entry");
	pattern_fill(bufs[0], 5000, ft->run->seed, 0, 3);
	for (i = 0; i < 2; i++) {
		FT_CALL(ft, actor_put(ft, &tx[i], ft->addr[2], i, 9, bufs[0],
				      5000, 0));
		FT_DONE(ft, tx[i]);
	}
	for (i = 0; i < 3; i++) {
		struct ft_msg m = { .tagged = true, .addr = ft->addr[2],
				    .buf = bufs[1 + i], .len = BIG, .tag = HEIRS_TAG };

		if (!i)
			FT_TRY(set_trap(ft, 1));
		rx[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, rx[i], &m));
	}
	FT_TRY(know(ft, heir));
	FT_TRY(actor_do(ft, heir, &send, NULL, false));
	FT_TRY(check_traps(ft));
	for (i = 0; i < 3; i++) {
		FT_DONE(ft, rx[i]);
		FT_CHECK(ft, rx[i]->len == 5000 &&
			 pattern_check(bufs[1 + i], 5000, ft->run->seed, 1,
				       (uint64_t)i) < 0, "wrong data");
	}
	while (heir->mem->done < 2 && ft_now() < end)
		ft_linger(ft, 0.01);
	FT_CHECK(ft, heir->mem->done == 2 && !heir->mem->failed, "%u receives "
		 "for 2 messages, and %u errors", heir->mem->done,
		 heir->mem->failed);
	for (i = 0; i < 2; i++)
		FT_CHECK(ft, pattern_check(heir->mem->at + i * 100000, 5000,
					   ft->run->seed, 0, 3) < 0,
			 "the heir got wrong data");
	return check_traps(ft);
}

/* B, with its session; B stops or dies now. */
static int begin_with(struct ft *ft, struct actor *b, unsigned char *name,
		      uint64_t key)
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor_answer say;

	seed = ft->run->seed;
	FT_TRY(actor_start(ft, 0, actor_obeys));
	FT_TRY(actor_start(ft, 1, actor_obeys));
	FT_TRY(actor_do(ft, b, &o, &say, true));
	if (key) {
		o = (struct actor_order){ .what = ACTOR_REG, .key = key };
		FT_TRY(actor_do(ft, b, &o, NULL, true));
	}
	FT_TRY(actor_open(ft, NULL, 0));
	memcpy(name, say.name, FT_NAME_MAX);
	FT_TRY(insert(ft, name, 1));
	FT_TRY(contact(ft, b, 1));
	return set_trap(ft, 0);
}

/* ---- another endpoint gets the port: messages ---- */

enum { UNDER_WAY, AFTERWARDS };

static int start_sends(struct ft *ft, struct ft_op **op, int max, int *n)
{
	int i;

	for (i = 0; i < max; i++) {
		int ret = actor_put(ft, &op[*n], ft->addr[1], i % 2,
				    (uint64_t)i, bufs[i % 40],
				    sizes[(size_t)i % NSIZES], 0);

		FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "send %d: %s", i,
			 fi_strerror(-ret));
		*n += !ret;
	}
	return FT_PASS;
}

/* a: when the endpoint dies */
static int reuse_send(struct ft *ft, const struct ft_case *c)
{
	struct actor *b = &actors[0], *d = &actors[1];
	unsigned char name[FT_NAME_MAX], heirs_name[FT_NAME_MAX];
	struct ft_op *op[24 + 12 + 12];
	int n = 0;

	FT_TRY(begin_with(ft, b, name, 0));
	if (c->a == UNDER_WAY) {
		kill(b->pid, SIGSTOP);
		FT_TRY(start_sends(ft, op, 24, &n));
		FT_CHECK(ft, n == 24, "only %d sends to a stopped process", n);
		ft_linger(ft, 0.02);
	}
	FT_TRY(take_over(ft, b, d, name, heirs_name, 0));
	if (c->a == AFTERWARDS)
		FT_TRY(start_sends(ft, op, 24, &n));
	FT_TRY(end_once(ft, op, n, true, "send"));
	FT_TRY(untouched(ft, d));
	/* The next session with the dead one fails as well. */
	n = 0;
	ft_linger(ft, 1);
	FT_TRY(start_sends(ft, op, 12, &n));
	FT_TRY(end_once(ft, op, n, true, "later send"));
	FT_TRY(untouched(ft, d));
	FT_TRY(talk_to_heir(ft, d, heirs_name));
	n = 0;
	FT_TRY(start_sends(ft, op, 12, &n));
	FT_TRY(end_once(ft, op, n, true, "last send"));
	FT_CHECK(ft, d->mem->done == 2 && !d->mem->failed, "the heir got what "
		 "was not for it");
	return FT_PASS;
}

/* ---- and memory ---- */

#define WARM_READS	13		/* small ones, until lnx requests keys */

int sessions_rma(struct ft *ft, struct ft_op **op, int as, int call, void *buf,
		 size_t len, uint64_t key)
{
	struct ft_rma r = {
		.call = call, .addr = ft->addr[as], .niov = 1, .nrma = 1,
		.iov[0] = { buf, len }, .rma[0] = { 0, len, key },
		.flags = FI_DELIVERY_COMPLETE,
	};

	*op = ft_op_new(ft);
	return ft_rma(ft, *op, &r);
}

int sessions_atomic(struct ft *ft, struct ft_op **op, int as, int call, void *buf,
		    void *res, size_t count, uint64_t key)
{
	struct ft_atomic a = {
		.call = call, .type = FI_UINT64, .op = FI_SUM,
		.addr = ft->addr[as], .niov = 1, .nrma = 1,
		.iov[0] = { buf, count }, .res[0] = { res, count },
		.rma[0] = { 0, count, key },
		.flags = FI_DELIVERY_COMPLETE,
	};

	*op = ft_op_new(ft);
	return ft_atomic(ft, *op, &a);
}

/* Each kind, in each size; results of reads go to bufs 0..n. */
static int start_rma(struct ft *ft, uint64_t key, struct ft_op **op, int *n)
{
	static const size_t len[] = { 8, 5000, 65536, BIG };
	int i, k, ret, buf = 0;

	memset(bufs, OURS, sizeof(bufs));
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 4; k++, buf++) {
			if (k < 2)
				ret = sessions_rma(ft, &op[*n], 1, k ? FT_READMSG :
						   FT_WRITEMSG, bufs[buf], len[i],
						   key);
			else if (len[i] > 5000)
				continue;
			else
				ret = sessions_atomic(ft, &op[*n], 1, k == 2 ?
						      FT_ATOMICMSG : FT_FETCHMSG,
						      bufs[39], bufs[buf],
						      len[i] / 8, key);
			FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH,
				 "operation %d: %s", buf, fi_strerror(-ret));
			*n += !ret;
		}
	}
	return FT_PASS;
}

static int reuse_rma(struct ft *ft, const struct ft_case *c)
{
	uint64_t key = pattern_mix(ft->run->seed) & 0xffffffff;
	struct actor *b = &actors[0], *d = &actors[1];
	unsigned char name[FT_NAME_MAX], heirs_name[FT_NAME_MAX];
	struct ft_op *op[16];
	int i, n = 0, round;
	size_t k;

	key += !key;
	FT_TRY(begin_with(ft, b, name, key));
	for (i = 0; i <= WARM_READS; i++) {
		FT_CALL(ft, sessions_rma(ft, &op[0], 1, FT_READMSG, bufs[0],
					 i == WARM_READS ? BIG : 64, key));
		FT_DONE(ft, op[0]);
	}
	FT_CALL(ft, sessions_rma(ft, &op[0], 1, FT_WRITEMSG, bufs[0], BIG, key));
	FT_DONE(ft, op[0]);
	FT_CALL(ft, sessions_atomic(ft, &op[0], 1, FT_FETCHMSG, bufs[0], bufs[1], 1,
				    key));
	FT_DONE(ft, op[0]);
	if (c->a == UNDER_WAY) {
		kill(b->pid, SIGSTOP);
		FT_TRY(start_rma(ft, key, op, &n));
		FT_CHECK(ft, n == 12, "only %d operations with a stopped "
			 "process", n);
		ft_linger(ft, 0.02);
	}
	FT_TRY(take_over(ft, b, d, name, heirs_name, key));
	for (round = 0; round < 2; round++) {
		if (round)
			ft_linger(ft, 1);
		if (round || c->a == AFTERWARDS)
			FT_TRY(start_rma(ft, key, op, &n));
		FT_TRY(end_once(ft, op, n, true, "operation"));
		FT_TRY(untouched(ft, d));
		for (k = 0; k < 16; k++)
			FT_CHECK(ft, !memchr(bufs[k], SECRET, BIG), "memory of "
				 "another endpoint was read");
		n = 0;
	}
	FT_TRY(talk_to_heir(ft, d, heirs_name));
	return FT_PASS;
}

/* ---- opened again under the same name ---- */

#define ROUNDS		10
#define ROUNDS_RXM	5
#define STREAM		24
#define LEFT		3		/* sends, and receives, outstanding at the
					 * end of a round */

enum { SAME_PROCESS, OTHER_PROCESS, KILLED };

static uint64_t next_seq;

static const unsigned char *contents(uint64_t seq)
{
	return bufs[seq % 8];
}

/* Send until one succeeds: from then on all do.  *errors: those that were taken and
 * failed. */
static int reach(struct ft *ft, unsigned *errors, uint64_t *first)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op;
	int ret;

	for (;;) {
		*first = next_seq++;
		ret = actor_put(ft, &op, ft->addr[1], true, 7,
				contents(*first), 64, *first);
		if (!ret)
			ret = ft_wait(ft, op);
		FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "send: %s",
			 fi_strerror(-ret));
		if (!ret && !op->err)
			return FT_PASS;
		*errors += !ret;
		FT_CHECK(ft, ft_now() < end, "the endpoint is not reached "
			 "again; %u sends failed", *errors);
		ft_linger(ft, 0.02);
	}
}

/* What the endpoint received: everything from `first` on, and before it nothing
 * twice. */
static int check_log(struct ft *ft, const struct actor *a, uint64_t first,
		     unsigned n)
{
	double end = ft_now() + ft->run->timeout_s;
	uint64_t last = 0, want = first;
	unsigned i;

	do {
		ft_linger(ft, 0.002);
		for (i = 0; a->mem->log[i]; i++)
			;
	} while ((!i || a->mem->log[i - 1] != first + n) && ft_now() < end);
	for (i = 0; a->mem->log[i]; i++) {
		uint64_t seq = a->mem->log[i] - 1;

		FT_CHECK(ft, !i || seq > last, "message %llu came after %llu",
			 (unsigned long long)seq, (unsigned long long)last);
		last = seq;
		if (seq < first)
			continue;
		FT_CHECK(ft, seq == want, "message %llu came instead of %llu",
			 (unsigned long long)seq, (unsigned long long)want);
		want++;
	}
	FT_CHECK(ft, want == first + n && !a->mem->failed, "%llu of %u "
		 "messages came, and %u errors",
		 (unsigned long long)(want - first), n, a->mem->failed);
	return FT_PASS;
}

/* Messages in both directions, in order. */
static int stream(struct ft *ft, struct actor *a, uint64_t first)
{
	struct actor_order send = { .what = ACTOR_SEND, .n = STREAM,
				    .size = 5000, .key = 8 };
	struct ft_op *tx[STREAM], *rx[STREAM];
	struct actor_answer say;
	int i;

	for (i = 0; i < STREAM; i++) {
		struct ft_msg m = { .tagged = true, .addr = ft->addr[1],
				    .buf = bufs[8 + i], .len = 5000, .tag = 8 };

		rx[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, rx[i], &m));
		FT_CALL(ft, actor_put(ft, &tx[i], ft->addr[1], true, 7,
				      contents(next_seq),
				      sizes[(size_t)i % NSIZES], next_seq));
		next_seq++;
	}
	FT_TRY(actor_do(ft, a, &send, &say, false));
	FT_CHECK(ft, !say.errors, "a send to us failed in the new session");
	for (i = 0; i < STREAM; i++) {
		FT_DONE(ft, tx[i]);
		FT_DONE(ft, rx[i]);
		FT_CHECK(ft, rx[i]->len == 5000 && rx[i]->data == (uint64_t)i &&
			 pattern_check(bufs[8 + i], 5000, ft->run->seed, 1,
				       (uint64_t)i) < 0, "message %d is wrong",
			 i);
	}
	return check_log(ft, a, first, (unsigned)(next_seq - first));
}

/* One life of the endpoint. */
static int one_life(struct ft *ft, struct actor *a, unsigned round,
		    unsigned char *name, struct ft_op **left)
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor_order post = { .what = ACTOR_POST_FROM, .key = 7,
				    .n = STREAM + 40, .size = BIG };
	struct actor_order send = { .what = ACTOR_SEND, .n = 1, .size = 64,
				    .key = 6 };
	struct ft_msg m = { .tagged = true, .tag = 6, .buf = bufs[8],
			    .len = 64 };
	struct actor_answer say;
	unsigned errors = 0;
	uint64_t first;
	struct ft_op *rx;
	int i;

	if (round) {
		memcpy(o.name, name, sizeof(o.name));
		o.name_len = ft->o.name_len;
	}
	FT_TRY(actor_do(ft, a, &o, &say, pattern_random(&seed) % 2));
	FT_CHECK(ft, !round || !memcmp(name, say.name, ft->o.name_len),
		 "it has another name now");
	memcpy(name, say.name, FT_NAME_MAX);
	if (!round)
		FT_TRY(insert(ft, name, 1));
	memset((void *)a->mem->log, 0, sizeof(a->mem->log));
	a->mem->done = a->mem->failed = 0;
	FT_TRY(know(ft, a));
	FT_TRY(actor_do(ft, a, &post, NULL, false));
	m.addr = ft->addr[1];
	rx = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, rx, &m));
	if (pattern_random(&seed) % 2) {	/* which rank sends first? */
		FT_TRY(actor_do(ft, a, &send, &say, false));
		FT_TRY(reach(ft, &errors, &first));
	} else {
		FT_TRY(reach(ft, &errors, &first));
		FT_TRY(actor_do(ft, a, &send, &say, false));
	}
	FT_DONE(ft, rx);
	FT_CHECK(ft, errors <= 1 && !say.errors, "round %u: %u sends failed "
		 "before the endpoint was reached, and %u of its own", round,
		 errors, say.errors);
	for (i = 0; i < 2 * LEFT; i++) {
		FT_CHECK(ft, !left[i] || !ft_wait(ft, left[i]), "round %u: a "
			 "%s the closed endpoint does not end", round,
			 i < LEFT ? "send to" : "message of");
		FT_CHECK(ft, i < LEFT || !left[i] || left[i]->err ||
			 pattern_check(bufs[32 + i], BIG, ft->run->seed, 1,
				       9) < 0, "round %u: wrong data", round);
	}
	FT_TRY(stream(ft, a, first));
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

static uint64_t received(struct ft *ft)
{
	return actor_stat(ft, "recv_count") + actor_stat(ft, "direct_recvs");
}

/* Large messages of the endpoint, announced and not yet read. */
static int announce(struct ft *ft, struct actor *a)
{
	struct actor_order o = { .what = ACTOR_START, .n = LEFT, .size = BIG,
				 .key = 9 };
	uint64_t before = received(ft);
	double end = ft_now() + ft->run->timeout_s;

	FT_TRY(actor_do(ft, a, &o, NULL, false));
	while (received(ft) < before + LEFT) {
		FT_CHECK(ft, ft_now() < end, "messages are not announced");
		ft_linger(ft, 0.001);
	}
	return FT_PASS;
}

/* What is outstanding when the endpoint ends. */
static int leave(struct ft *ft, struct actor *a, struct ft_op **left)
{
	bool out = pattern_random(&seed) % 2, in = pattern_random(&seed) % 2;
	int i;

	if (in)
		FT_TRY(announce(ft, a));
	kill(a->pid, SIGSTOP);
	for (i = 0; i < LEFT && out; i++) {
		FT_CALL(ft, actor_put(ft, &left[i], ft->addr[1], true, 7,
				      contents(next_seq), sizes[i], next_seq));
		next_seq++;
	}
	for (i = LEFT; i < 2 * LEFT && in; i++) {
		struct ft_msg m = { .tagged = true, .addr = ft->addr[1],
				    .buf = bufs[32 + i], .len = BIG, .tag = 9 };

		left[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, left[i], &m));
	}
	ft_linger(ft, 0.005);
	return FT_PASS;
}

static int reopened(struct ft *ft, const struct ft_case *c)
{
	unsigned round, rounds = over_rxm() ? ROUNDS_RXM : ROUNDS;
	int n = c->a == SAME_PROCESS ? 1 : c->a == OTHER_PROCESS ? 2 : (int)rounds;
	struct actor_order quit = { .what = ACTOR_CLOSE };
	struct ft_op *left[2 * LEFT] = { NULL };
	unsigned char name[FT_NAME_MAX];
	int i;

	seed = ft->run->seed;
	next_seq = 1;
	for (i = 0; i < n; i++)
		FT_TRY(actor_start(ft, i, actor_obeys));
	FT_TRY(actor_open(ft, NULL, 0));
	for (i = 0; i < 8; i++)
		pattern_fill(bufs[i], BIG, ft->run->seed, 0, (uint64_t)i);
	for (round = 0; round < rounds; round++) {
		struct actor *a = &actors[round % (unsigned)n];

		FT_TRY(one_life(ft, a, round, name, left));
		if (round == rounds - 1)
			return FT_PASS;
		ft_ops_drop(ft);
		memset(left, 0, sizeof(left));
		FT_TRY(leave(ft, a, left));
		if (c->a != KILLED)
			kill(a->pid, SIGCONT);
		if (c->a == KILLED)
			actor_kill(a);
		else
			FT_TRY(actor_do(ft, a, &quit, NULL,
					pattern_random(&seed) % 2));
		if (pattern_random(&seed) % 2)
			ft_linger(ft, 0.3);
	}
	return FT_PASS;
}

/* An endpoint meets us while we make no progress, in a process that is killed.  The next
 * one has its name; only then we hear of the first, and nothing of that may be taken for
 * something of the next one's. */
static int reopened_late(struct ft *ft, const struct ft_case *c)
{
	struct actor_order meet = { .what = ACTOR_START, .n = 1, .size = 64, .key = 5 };
	struct actor_order send = { .what = ACTOR_SEND, .n = 1, .size = 64, .key = 6 };
	struct actor_order us = { .what = ACTOR_KNOW }, o = { .what = ACTOR_OPEN };
	struct ft_msg m = { .tagged = true, .tag = 6, .buf = bufs[8], .len = 64,
			    .addr = FI_ADDR_UNSPEC };
	struct actor_answer say;
	struct ft_op *rx;
	int i, n = (int)c->a;

	for (i = 0; i < n; i++)
		FT_TRY(actor_start(ft, i, actor_obeys));
	FT_TRY(actor_open(ft, NULL, 0));
	memcpy(us.name, ft->o.name, sizeof(us.name));
	for (i = 0; i < n; i++) {
		FT_TRY(actor_do(ft, &actors[i], &o, &say, true));
		memcpy(o.name, say.name, sizeof(o.name));
		o.name_len = ft->o.name_len;
		if (i == n - 1)
			break;
		FT_TRY(actor_do(ft, &actors[i], &us, NULL, true));
		FT_TRY(actor_do(ft, &actors[i], &meet, NULL, true));
		actor_kill(&actors[i]);
	}
	ft_linger(ft, 0.05);
	FT_TRY(insert(ft, o.name, 1));
	FT_TRY(actor_do(ft, &actors[i], &us, NULL, false));
	rx = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, rx, &m));
	FT_TRY(actor_do(ft, &actors[i], &send, &say, false));
	FT_DONE(ft, rx);
	FT_CHECK(ft, !say.errors && pattern_check(bufs[8], 64, ft->run->seed, 1, 0) < 0,
		 "wrong data, or %u errors", say.errors);
	return FT_PASS;
}

/* ---- many sessions, one after the other ---- */

/* What a peer that has gone may cost; and growth of tables, which is for the first ones.
 * One that stays costs more than a thousand bytes. */
#define LIFE_BYTES	200
#define SLACK_BYTES	320
#define SLACK_MAX	(64 << 10)

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

static int grown(struct ft *ft, double from, unsigned n)
{
	double by = heap_bytes() - from, slack = SLACK_BYTES * (double)n;

	printf("# %s over %u lives: %.0f bytes of heap, %.1f each\n",
	       ft->opts.prov, n, by, by / n);
	slack = slack < SLACK_MAX ? slack : SLACK_MAX;
	FT_CHECK(ft, by < (double)LIFE_BYTES * n + slack, "%u endpoints "
		 "that came and went cost %.0f bytes, %.0f each", n, by, by / n);
	return FT_PASS;
}

#define RXS	8

static struct ft_op *life_rx[RXS];
static struct actor_life life_in[RXS];

static int receive_life(struct ft *ft, int i)
{
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = &life_in[i],
		.len = sizeof(life_in[i]), .tag = ACTOR_TAG_TELLS,
		.ignore = ACTOR_TAG_TELLS ^ ACTOR_TAG_ASKS,
	};

	ft_op_reset(life_rx[i]);
	return ft_recv(ft, life_rx[i], &m);
}

static int answer_life(struct ft *ft, struct actor_life *life,
		       struct ft_op *tx)
{
	fi_addr_t to;
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDMSG, .tag = ACTOR_TAG_ANSWER,
		.buf = &life->number, .len = sizeof(life->number),
		.flags = FI_DELIVERY_COMPLETE,
	};

	FT_CHECK(ft, fi_av_insert(ft->o.av, life->name, 1, &to, 0, NULL) == 1,
		 "fi_av_insert failed");
	ft_op_reset(tx);
	m.addr = to;
	FT_CALL(ft, ft_send(ft, tx, &m));
	/* It may close as soon as it has the answer. */
	FT_CHECK(ft, !ft_wait(ft, tx), "an answer does not end");
	FT_CALL(ft, fi_av_remove(ft->o.av, &to, 1, 0));
	return FT_PASS;
}

/* Serve n of them, numbered from `from` on. */
static int serve_lives(struct ft *ft, struct actor *a, unsigned from,
		       unsigned n, struct ft_op *tx)
{
	struct actor_order o = { .what = ACTOR_LIVES, .n = n, .key = from };
	struct actor_answer say;
	unsigned served = 0;
	int i, k;

	FT_TRY(actor_tell(ft, a, &o, sizeof(o)));
	while (served < n) {
		double end = ft_now() + ft->run->timeout_s;

		for (i = 0; i < RXS && !life_rx[i]->done; i++)
			;
		while (i == RXS) {
			ft_linger(ft, 0.0001);
			for (i = 0; i < RXS && !life_rx[i]->done; i++)
				;
			FT_CHECK(ft, i < RXS || !actor_speaks(a) ||
				 !a->mem->why[0], "life %u: %s", from + served,
				 a->mem->why);
			FT_CHECK(ft, ft_now() < end, "life %u is not heard of",
				 from + served);
		}
		FT_CHECK(ft, !life_rx[i]->err, "a receive failed: %s",
			 fi_strerror(life_rx[i]->err));
		FT_CHECK(ft, life_in[i].number == from + served,
			 "life %llu came instead of %u",
			 (unsigned long long)life_in[i].number, from + served);
		served++;
		if (life_rx[i]->tag == ACTOR_TAG_ASKS)
			FT_TRY(answer_life(ft, &life_in[i], tx));
		FT_CALL(ft, receive_life(ft, i));
	}
	FT_TRY(actor_hear(ft, a, &say, sizeof(say), false));
	for (i = k = 0; i < RXS; i++)
		k += life_rx[i]->done != 0;
	FT_CHECK(ft, !k && !ft->unexpected[0], "%d messages too many %s", k,
		 ft->unexpected);
	/* Until the last sessions are forgotten. */
	ft_linger(ft, 1.5);
	return FT_PASS;
}

/* An allocator that checks does not tell how much it has given: few lives say as much. */
#ifdef __SANITIZE_ADDRESS__
#define HEAP_TELLS	false
#else
#define HEAP_TELLS	true
#endif

static unsigned how_many(const struct ft_case *c)
{
	return (unsigned)(over_rxm() || !HEAP_TELLS ? c->b : c->a);
}

/* a: how many; b: over ofi_rxm, or where the heap does not tell its size */
static int many_lives(struct ft *ft, const struct ft_case *c)
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor *a = &actors[0];
	unsigned n = how_many(c), warm = n / 3;
	struct ft_op *tx;
	double before;
	int i;

	FT_TRY(actor_start(ft, 0, actor_obeys));
	FT_TRY(actor_do(ft, a, &o, NULL, true));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_TRY(know(ft, a));
	tx = ft_op_new(ft);
	for (i = 0; i < RXS; i++) {
		life_rx[i] = ft_op_new(ft);
		FT_CALL(ft, receive_life(ft, i));
	}
	FT_TRY(serve_lives(ft, a, 0, warm, tx));
	before = heap_bytes();
	FT_TRY(serve_lives(ft, a, warm, n - warm, tx));
	return grown(ft, before, n - warm);
}

/* n of them, as ordered by what; forgotten_s: until the last ones are forgotten. */
static int meet_servers(struct ft *ft, int what, unsigned n, double forgotten_s)
{
	static const size_t len[] = { 8, 5000, BIG };
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor *a = &actors[0];
	unsigned i, warm = n / 3, part;
	struct actor_answer say;
	double before = 0;
	struct ft_op *tx;

	FT_TRY(actor_start(ft, 0, actor_obeys));
	if (what == ACTOR_SERVERS)
		FT_TRY(actor_do(ft, a, &o, NULL, true));
	FT_TRY(actor_open(ft, NULL, 0));
	for (i = 0; i < 3; i++)
		pattern_fill(bufs[i], BIG, ft->run->seed, 0, i);
	for (part = 0; part < 2; part++) {
		unsigned to = part ? n : warm;

		if (part)
			before = heap_bytes();
		i = part ? warm : 0;
		o = (struct actor_order){ .what = what, .n = to - i,
					  .key = part };
		FT_TRY(actor_tell(ft, a, &o, sizeof(o)));
		for (; i < to; i++) {
			uint64_t what[2] = { i % 3, len[i % 3] };

			FT_TRY(actor_hear(ft, a, &say, sizeof(say), false));
			FT_TRY(insert(ft, say.name, 1));
			FT_CALL(ft, actor_put(ft, &tx, ft->addr[1], true, 1,
					      bufs[i % 3], len[i % 3], 0));
			FT_DONE(ft, tx);
			FT_CALL(ft, fi_av_remove(ft->o.av, &ft->addr[1], 1, 0));
			FT_TRY(actor_tell(ft, a, what, sizeof(what)));
			ft_ops_drop(ft);
		}
		FT_TRY(actor_hear(ft, a, &say, sizeof(say), false));
		ft_linger(ft, forgotten_s);
	}
	return grown(ft, before, n - warm);
}

/* The same numbers. */
static int many_servers(struct ft *ft, const struct ft_case *c)
{
	return meet_servers(ft, ACTOR_SERVERS, how_many(c), 1.5);
}

/* a: how many, more than the shm core has places for.  Each takes 4 MiB of /dev/shm until
 * its region is mapped by none: those of dead ones are let go of before they are many. */
static int mortal_servers(struct ft *ft, const struct ft_case *c)
{
	return meet_servers(ft, ACTOR_MORTALS, (unsigned)c->a, 1.5);
}

/* Over a network the process of an idle peer is asked for once in a minute, and ten times
 * where its host answers nothing. */
static int mortal_servers_network(struct ft *ft, const struct ft_case *c)
{
	return meet_servers(ft, ACTOR_MORTALS, (unsigned)c->a, 90);
}

#define EARLY		8u		/* frames that come before one that never does */
#define EARLY_TAG	4

#define BATCH		10u		/* until a death is noticed takes 2 s */

/* A process whose untagged message never arrives here: what it sent behind that is kept until
 * its death is noticed, by *dead. */
static int one_early(struct ft *ft, struct actor *a, struct ft_op **dead)
{
	struct ft_msg m = { .tagged = true, .tag = EARLY_TAG, .buf = bufs[1], .len = 64 };
	uint64_t before = actor_stat(ft, "reorders");
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op = ft_op_new(ft);
	struct actor_answer say;
	char byte = 0;

	FT_TRY(actor_hear(ft, a, &say, sizeof(say), false));
	FT_TRY(insert(ft, say.name, 1));
	m.addr = ft->addr[1];
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_TRY(actor_tell(ft, a, &byte, 1));
	FT_DONE(ft, op);
	while (actor_stat(ft, "reorders") < before + EARLY) {
		FT_CHECK(ft, ft_now() < end, "only %llu of %u early frames came",
			 (unsigned long long)(actor_stat(ft, "reorders") - before), EARLY);
		ft_linger(ft, 0.001);
	}
	FT_TRY(actor_tell(ft, a, &byte, 1));
	FT_TRY(actor_hear(ft, a, &byte, 1, false));
	FT_CALL(ft, actor_put(ft, dead, ft->addr[1], true, 1, bufs[0], 64, 0));
	return FT_PASS;
}

static int some_early(struct ft *ft, struct actor *a, unsigned n)
{
	struct ft_op *dead[BATCH];
	fi_addr_t addr[BATCH];
	unsigned i;

	for (i = 0; i < n; i++) {
		FT_TRY(one_early(ft, a, &dead[i]));
		addr[i] = ft->addr[1];
	}
	for (i = 0; i < n; i++) {
		FT_CHECK(ft, !ft_wait(ft, dead[i]) && dead[i]->err,
			 "a send to a dead process %s", dead[i]->done ? "succeeded" :
			 "does not end");
		FT_CALL(ft, fi_av_remove(ft->o.av, &addr[i], 1, 0));
	}
	ft_ops_drop(ft);
	return FT_PASS;
}

/* a, b: as many_lives.  What is dead is forgotten after 10 s; the first third is not waited
 * for. */
static int early_lives(struct ft *ft, const struct ft_case *c)
{
	unsigned n = how_many(c), warm = n / 3, part, i;
	struct actor_answer say;
	double before = 0, end;

	if (over_rxm() && ft->run->quick)
		return ft_skip(ft, "it takes 20 s, and is not about the core");
	FT_TRY(actor_start(ft, 0, actor_obeys));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_TRY(actor_ask(ft, "fault add drop kind=msg"));
	for (part = 0; part < 2; part++) {
		struct actor_order o = { .what = ACTOR_EARLY, .n = part ? n - warm : warm,
					 .size = EARLY, .key = EARLY_TAG };

		if (part)
			before = heap_bytes();
		memcpy(o.name, ft->o.name, sizeof(o.name));
		FT_TRY(actor_tell(ft, &actors[0], &o, sizeof(o)));
		for (i = 0; i < o.n; i += BATCH)
			FT_TRY(some_early(ft, &actors[0], o.n - i < BATCH ? o.n - i :
					  BATCH));
		FT_TRY(actor_hear(ft, &actors[0], &say, sizeof(say), false));
	}
	end = ft_now() + ft->run->timeout_s;
	while (heap_bytes() - before > LIFE_BYTES * (double)(n - warm) && ft_now() < end)
		ft_linger(ft, 0.2);
	return grown(ft, before, n - warm);
}

/* ---- clients that are killed while nothing is due from them ---- */

#define CLIENTS		19		/* more than STRANGERS */

/* The server knows none of them, and none takes its leave: those that are dead make room
 * for the next ones. */
static int killed_clients(struct ft *ft, const struct ft_case *c)
{
	struct actor_order open = { .what = ACTOR_OPEN };
	struct actor_order send = { .what = ACTOR_SEND, .n = 1, .size = 64, .key = 5 };
	uint64_t drops;
	int i;

	(void)c;
	for (i = 0; i < CLIENTS; i++)
		FT_TRY(actor_start(ft, i, actor_obeys));
	FT_TRY(actor_open(ft, NULL, 0));
	for (i = 0; i < CLIENTS; i++) {
		struct ft_op *rx = ft_op_new(ft);
		struct ft_msg m = { .tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 5,
				    .buf = bufs[0], .len = 64 };

		FT_TRY(actor_do(ft, &actors[i], &open, NULL, true));
		FT_TRY(know(ft, &actors[i]));
		FT_CALL(ft, ft_recv(ft, rx, &m));
		FT_TRY(actor_do(ft, &actors[i], &send, NULL, false));
		FT_DONE(ft, rx);
		/* The last acknowledgements. */
		ft_linger(ft, 0.05);
		actor_kill(&actors[i]);
		ft_ops_drop(ft);
	}
	drops = actor_stat(ft, "unsolicited_drops");
	FT_CHECK(ft, drops, "there was room for all: it shows nothing");
	return FT_PASS;
}

/* Is shared memory used, where it can be? */
static bool local(void)
{
	const char *off = getenv("FI_LNX_DISABLE_SHM");

	return !off || !strcmp(off, "0");
}

static int run(struct ft *ft, const struct ft_case *c)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "only lnx has sessions");
	if (c->body == mortal_servers) {
		if (!links ? !local() : !strstr(links, "shm") ||
					(strstr(links, "tcp") && !local()))
			return ft_skip(ft, "no shared memory");
	} else if (c->body != reopened && c->body != reopened_late) {
		if (!links || !strstr(links, "tcp"))
			return ft_skip(ft, "no rail over a network");
		if (local())
			return ft_skip(ft, "these sessions are between nodes");
	}
	return actors_run(ft, c);
}

int main(int argc, char **argv)
{
	static struct ft_case cases[] = {
		{ .name = "port-reuse-send", .body = reuse_send,
		  .a = UNDER_WAY },
		{ .name = "port-reuse-send-later", .body = reuse_send,
		  .a = AFTERWARDS },
		{ .name = "port-reuse-rma", .body = reuse_rma, .a = UNDER_WAY },
		{ .name = "port-reuse-rma-later", .body = reuse_rma,
		  .a = AFTERWARDS },
		{ .name = "reopened-same-process", .body = reopened,
		  .a = SAME_PROCESS },
		{ .name = "reopened-other-process", .body = reopened,
		  .a = OTHER_PROCESS },
		{ .name = "reopened-killed", .body = reopened, .a = KILLED },
		{ .name = "reopened-late", .body = reopened_late, .a = 2 },
		{ .name = "reopened-late-twice", .body = reopened_late, .a = 3 },
		{ .name = "given-up", .body = sessions_given_up },
		{ .name = "given-up-begins", .body = sessions_given_up, .a = 1 },
		{ .name = "many-lives", .body = many_lives, .a = 300, .b = 60 },
		{ .name = "very-many-lives", .body = many_lives, .a = 20000,
		  .b = 2000, .slow = true, .guard_s = 3000 },
		{ .name = "early-lives", .body = early_lives, .a = 30, .b = 30 },
		{ .name = "killed-clients", .body = killed_clients },
		{ .name = "many-servers", .body = many_servers, .a = 300, .b = 60 },
		{ .name = "very-many-servers", .body = many_servers, .a = 20000,
		  .b = 2000, .slow = true, .guard_s = 3000 },
		{ .name = "mortal-servers", .body = mortal_servers, .a = 300, .guard_s = 900 },
		{ .name = "mortal-servers-network", .body = mortal_servers_network, .a = 200,
		  .slow = true, .guard_s = 600 },
		{ .name = "very-many-mortal-servers", .body = mortal_servers, .a = 6000,
		  .slow = true, .guard_s = 3000 },
		{ .name = "stranger-socket", .body = sessions_stranger },
		{ .name = "stranger-endpoint", .body = sessions_stranger,
		  .a = 1 },
		{ .name = "stranger-halves", .body = sessions_halves },
		{ .name = "stranger-flood", .body = sessions_flood },
		{ .name = "forged", .body = sessions_forged },
		{ .name = "unreachable-others", .body = sessions_unreachable, .a = 1000 },
		{ .name = "unreachable-silent", .body = sessions_unreachable, .a = 1000,
		  .b = 1 },
		/* So few that nothing but its own back-off makes a peer wait. */
		{ .name = "unreachable-few", .body = sessions_unreachable, .a = 8 },
		{ .name = "idle-peers", .body = sessions_idle, .a = 1536 },
	};
	size_t i, n = sizeof(cases) / sizeof(cases[0]);
	const char *filter = getenv("FI_PROVIDER");
	const char *links = getenv("FI_LNX_PROV_LINKS");

	for (i = 0; i < n; i++) {
		cases[i].fn = run;
		cases[i].ranks = 2;
		cases[i].cfg.alone = true;
	}
	/* The filter would hide the cores from sessions_forged.c. */
	if (filter && !strcmp(filter, "lnx"))
		unsetenv("FI_PROVIDER");
	if (links && strstr(links, "tcp"))
		setenv("FI_LNX_DISABLE_SHM", "1", 0);
	setenv("FI_LNX_MR_EAGER", "1", 1);
	setenv("FI_LNX_UNSOLICITED_PEERS", STRANGERS, 1);
	setenv("FI_LNX_RX_BUFFERS", FT_STR(SESSIONS_BUFFERS), 1);
	setenv("FI_LNX_CONNECT_TIMEOUT", CONNECT_MS, 0);
	setenv("FI_LNX_TRANSACTION_TIMEOUT", TRANSACTION_MS, 0);
	return ft_main(argc, argv, "sessions of endpoints that come and go", cases,
		       (int)n);
}
