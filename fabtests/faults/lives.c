/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes on two nodes with the rounds of ../functional/soak_round.h, which go on
 * when one process ends or is killed and another one takes its place, and when one
 * gives the other up.  fabtests/faults/run makes that happen, and announces all of it
 * but the ends of processes (control.h).  It ends them as well.
 *
 * After each such event the two meet again: all operations have ended once, the peer is
 * reached again, nothing of before comes any more, and memory is not touched.  The process
 * that begins gets the name of the one before, so that the survivor's fi_addr_t is
 * valid as it is, and in the next life one of its own, in turn.
 *
 * Prints a line "# met N: ..." each time, and "ok 1" at the end.
 */
#include "control.h"

#include "../functional/soak_round.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define SENTINEL_TAG	0xfefefefeULL
#define WITNESS_TAG	0xfdfdfdfdULL
#define MAGIC		0x6c69766573ULL
#define CANARY		0xa5

/* What each process tells when they meet again. */
struct again {
	uint8_t fresh;			/* it has just begun */
	uint8_t same_name;		/* the fresh one gets the name of the one before */
	uint32_t lives;			/* how often they have met */
	uint64_t round;
	struct soak_counts done;
	uint64_t name_len;		/* of the other one, as it is known here */
	unsigned char name[FT_NAME_MAX];
};

struct name {
	uint64_t len, base, key;
	unsigned char name[FT_NAME_MAX];
};

/* The first message in either direction after they have met; of each kind. */
struct sentinel {
	uint64_t magic, lives, attempt, from;
};

struct reached {
	uint64_t attempt;		/* the one that has arrived */
	uint8_t ended[SOAK_ITEMS];
};

static struct again mine, theirs;
static struct name peer;		/* as it is in our AV */
static bool fresh = true;		/* has not met the other one yet */
static bool allowed;			/* errors, until they have met */
static unsigned errors;			/* operations that ended so */
static unsigned restarts, give_ups;
static struct ft_op *witness;		/* see begin_witness */

/* ---- rounds ---- */

static bool is_documented(int err)
{
	return err == FI_ETIMEDOUT || err == FI_ECONNREFUSED || err == FI_ECONNRESET ||
	       err == FI_EHOSTUNREACH;
}

/* An error may be seen before the reason for it. */
static bool may_fail(struct ft *ft, int err)
{
	double end = ft_now() + 10;

	while (!allowed && is_documented(err) && ft_now() < end) {
		control_look_behind(ft);
		allowed = control.lost || control.cut || control.end;
		if (!allowed)
			ft_linger(ft, 0.005);
	}
	return allowed && is_documented(err);
}

/*
 * It may be that all operations of this side had ended when the cut came.  So one more
 * begins once nothing passes, which then has to fail.  It is none of the round's, which may
 * end all the same, and then its operations are used again.
 */
static void begin_witness(struct ft *ft)
{
	static struct ft_op op;
	static uint64_t buf;
	struct ft_msg m = {
		.tagged = true, .call = FT_SENDMSG, .addr = ft->addr[!ft->rank],
		.buf = &buf, .len = sizeof(buf), .tag = WITNESS_TAG,
		.flags = FI_DELIVERY_COMPLETE,
	};

	witness = ft->kept = &op;
	ft_op_reset(witness);
	witness->posted = true;
	if (!ft_try_send(ft->o.ep, witness, &m))
		return;
	/* Again at the next look, or it is given up already. */
	witness->posted = false;
	witness = NULL;
}

static void look(struct ft *ft)
{
	control_look(ft);
	if (control.silent && !witness && !ft->abandoned)
		begin_witness(ft);
	if (witness && witness->done)
		ft->abandoned = true;
}

static bool inject_failed(struct ft *ft, const struct fi_cq_err_entry *ee)
{
	(void)ft;
	soak.inject_errors++;
	soak.inject_err = ee->err;
	return is_documented(ee->err);
}

static int meet(struct ft *ft)
{
	char a = 0, b;

	return control_swap(ft, CONTROL_ROUND, &a, &b, 1);
}

/* ---- the objects of a life ---- */

static int take_name(struct ft *ft, struct ft_objs *o)
{
	(void)ft;
	return fi_setname(&o->ep->fid, theirs.name, theirs.name_len);
}

static void *pages(struct ft *ft)
{
	void *p = mmap(NULL, SOAK_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ft_die(ft, "out of memory");
	return p;
}

static int open_all(struct ft *ft)
{
	struct ft_cfg cfg = { .caps = FT_ATOMIC_CAPS };
	struct ft_mem *m = &ft_mem;

	if (theirs.same_name)
		cfg.bind = take_name;
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = cfg;
	ft->open = true;
	ft_ops_drop(ft);
	FT_CHECK(ft, !theirs.same_name || (ft->o.name_len == theirs.name_len &&
		 !memcmp(ft->o.name, theirs.name, theirs.name_len)),
		 "the endpoint did not get its old name");
	m->len = SOAK_BYTES;
	m->local = pages(ft);
	m->target = pages(ft);
	if (ft_mr_reg(ft, &m->lmr, m->local, m->len, FT_MR_ACCESS) ||
	    ft_mr_reg(ft, &m->tmr, m->target, m->len, FT_MR_ACCESS))
		return FT_FAIL;
	/* Closed after the endpoint: the other one may be using them. */
	ft->o.extra[ft->o.nextra++] = &m->lmr.mr->fid;
	ft->o.extra[ft->o.nextra++] = &m->tmr.mr->fid;
	return soak_begin(ft);
}

/* ---- which processes there are ---- */

static int swap_names(struct ft *ft)
{
	struct name own = { .len = ft->o.name_len }, got;
	fi_addr_t *addr = &ft->addr[!ft->rank], old = *addr;
	bool known = !fresh && peer.len;

	memcpy(own.name, ft->o.name, sizeof(own.name));
	own.key = fi_mr_key(ft_mem.tmr.mr);
	if (ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR)
		own.base = (uintptr_t)ft_mem.target;
	FT_TRY(control_swap(ft, CONTROL_NAME, &own, &got, sizeof(own)));
	ft_mem.tmr.at[!ft->rank] = (struct ft_target){
		.base = got.base, .key = got.key, .len = SOAK_BYTES,
	};
	if (known && got.len == peer.len && !memcmp(got.name, peer.name, got.len)) {
		FT_CHECK(ft, !theirs.fresh || mine.same_name,
			 "another process has the name of the one before");
		peer = got;
		return FT_PASS;
	}
	FT_CHECK(ft, !known || !mine.same_name, "it has another name");
	FT_CHECK(ft, fi_av_insert(ft->o.av, got.name, 1, addr, 0, NULL) == 1,
		 "fi_av_insert failed");
	peer = got;
	if (known)
		FT_CALL(ft, fi_av_remove(ft->o.av, &old, 1, 0));
	return FT_PASS;
}

static void say_again(void)
{
	memset(&mine, 0, sizeof(mine));
	mine.fresh = fresh;
	mine.lives = theirs.lives;
	mine.round = soak.round;
	mine.done = soak.done;
	if (fresh || !control.lost)
		return;
	/* The next one takes over the name, in turn. */
	mine.same_name = restarts % 2 == 0;
	mine.name_len = peer.len;
	memcpy(mine.name, peer.name, sizeof(mine.name));
}

/* Ends all that was outstanding, if that has not been done. */
static int settle(struct ft *ft, bool *settled)
{
	if (*settled || fresh)
		return FT_PASS;
	*settled = true;
	FT_TRY(soak_settle(ft, &errors));
	if (!witness)
		return FT_PASS;
	FT_CHECK(ft, !ft_wait(ft, witness), "a send that began while nothing passed does "
		 "not end");
	FT_CHECK(ft, !witness->err || may_fail(ft, witness->err), "a send that began while "
		 "nothing passed ended with %s", fi_strerror(witness->err));
	errors += witness->err != 0;
	return FT_PASS;
}

/* ---- it is reached ---- */

static struct ft_op *drain[2];		/* receives of anything, by tagged */
static uint64_t seen[2];		/* attempts */
static unsigned char *drained[2];

static int post_drain(struct ft *ft, int tagged)
{
	struct ft_msg m = {
		.tagged = tagged, .addr = FI_ADDR_UNSPEC, .len = SOAK_BIG_BYTES,
		.ignore = ~0ull,
	};

	if (!drained[tagged])
		drained[tagged] = malloc(SOAK_BIG_BYTES);
	FT_CHECK(ft, drained[tagged], "out of memory");
	m.buf = drained[tagged];
	drain[tagged] = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, drain[tagged], &m));
	return FT_PASS;
}

/* What came: a sentinel, or a message of the round that was hit. */
static int look_drain(struct ft *ft, int tagged)
{
	struct ft_op *op = drain[tagged];
	struct sentinel s = { 0 };

	if (!op->done)
		return FT_PASS;
	/* A long message whose sender is not there any more. */
	FT_CHECK(ft, !op->err || is_documented(op->err), "a receive after the end of a "
		 "session ended with %s", fi_strerror(op->err));
	if (!op->err && op->len == sizeof(s))
		memcpy(&s, drained[tagged], sizeof(s));
	if (!op->err && s.magic == MAGIC && (!tagged || op->tag == SENTINEL_TAG)) {
		FT_CHECK(ft, s.lives == mine.lives && s.from == (uint64_t)!ft->rank &&
			 s.attempt > seen[tagged], "the %llu. message of meeting %llu "
			 "came in meeting %u after the %llu.",
			 (unsigned long long)s.attempt, (unsigned long long)s.lives,
			 mine.lives, (unsigned long long)seen[tagged]);
		seen[tagged] = s.attempt;
	} else if (!op->err) {
		FT_CHECK(ft, !seen[tagged], "a message of %zu bytes, tag %#llx, came "
			 "in another session", op->len, (unsigned long long)op->tag);
		if (!tagged || op->tag != WITNESS_TAG)
			FT_TRY(soak_take(ft, op, tagged, drained[tagged]));
	}
	return post_drain(ft, tagged);
}

/* Send until it arrives. */
static int reach(struct ft *ft, uint64_t *attempt)
{
	double end = ft_now() + ft->run->timeout_s;
	struct sentinel s = {
		.magic = MAGIC, .lives = mine.lives, .from = (uint64_t)ft->rank,
	};
	int tagged = 0, ret;

	for (*attempt = 1; tagged < 2; *attempt += tagged < 2) {
		s.attempt = *attempt;
		for (tagged = 0; tagged < 2; tagged++) {
			struct ft_op *op = ft_op_new(ft);
			struct ft_msg m = {
				.tagged = tagged, .call = FT_SENDMSG,
				.addr = ft->addr[!ft->rank], .buf = &s,
				.len = sizeof(s), .tag = SENTINEL_TAG,
				.flags = FI_DELIVERY_COMPLETE,
			};

			ret = ft_send(ft, op, &m);
			FT_CHECK(ft, ret || !ft_wait(ft, op), "a send to a process that "
				 "is there again does not end");
			ret = ret ? -ret : op->err;
			if (!ret)
				continue;
			FT_CHECK(ft, is_documented(ret), "a send after the end of a "
				 "session: %s", fi_strerror(ret));
			FT_CHECK(ft, ft_now() < end, "it is not reached again after "
				 "%llu sends: %s", (unsigned long long)*attempt,
				 fi_strerror(ret));
			ft_linger(ft, 0.02);
			break;
		}
	}
	return FT_PASS;
}

static int await_drain(struct ft *ft, uint64_t attempt)
{
	double end = ft_now() + ft->run->timeout_s;
	int i;

	while (seen[0] < attempt || seen[1] < attempt) {
		for (i = 0; i < 2; i++)
			FT_TRY(look_drain(ft, i));
		ft_progress(ft);
		FT_CHECK(ft, ft_now() < end, "a message that was delivered, says its "
			 "sender, has not come; untagged %llu, tagged %llu of %llu",
			 (unsigned long long)seen[0], (unsigned long long)seen[1],
			 (unsigned long long)attempt);
	}
	return FT_PASS;
}

static int end_drain(struct ft *ft)
{
	int i;

	for (i = 0; i < 2; i++) {
		FT_CALL(ft, fi_cancel(&ft->o.ep->fid, drain[i]));
		FT_CHECK(ft, !ft_wait(ft, drain[i]), "a cancelled receive does not end");
		FT_CHECK(ft, drain[i]->err == FI_ECANCELED, "after all there was a "
			 "message of %zu bytes, tag %#llx, error %d", drain[i]->len,
			 (unsigned long long)drain[i]->tag, drain[i]->err);
	}
	return FT_PASS;
}

static int reach_each_other(struct ft *ft)
{
	struct reached own = { .attempt = 0 }, got;
	int i;

	if (!fresh)
		soak_results(ft, own.ended);
	seen[0] = seen[1] = 0;
	for (i = 0; i < 2; i++)
		FT_TRY(post_drain(ft, i));
	FT_TRY(reach(ft, &own.attempt));
	FT_TRY(control_swap(ft, CONTROL_REACHED, &own, &got, sizeof(own)));
	FT_TRY(await_drain(ft, got.attempt));
	FT_TRY(end_drain(ft));
	if (fresh)
		return FT_PASS;
	/* What a process knew that has ended is lost. */
	if (theirs.fresh)
		memset(got.ended, SOAK_MAYBE, sizeof(got.ended));
	else
		FT_CHECK(ft, theirs.round == mine.round, "one is in round %llu, the "
			 "other one in %llu", (unsigned long long)theirs.round,
			 (unsigned long long)mine.round);
	return soak_compare(ft, got.ended);
}

/* ---- nothing of before comes any more ---- */

static int barrier(struct ft *ft, unsigned kind)
{
	char a = 0, b;

	return control_swap(ft, kind, &a, &b, 1);
}

static int nothing_late(struct ft *ft)
{
	unsigned char *mem[] = { ft_mem.local, ft_mem.target };
	long long at;
	int i;

	FT_TRY(barrier(ft, CONTROL_CHECKED));
	for (i = 0; i < 2; i++)
		memset(mem[i], CANARY, SOAK_BYTES);
	FT_TRY(barrier(ft, CONTROL_FILLED));
	ft_linger(ft, 0.2);
	for (i = 0; i < 2; i++) {
		at = pattern_is_filled(mem[i], SOAK_BYTES, CANARY);
		FT_CHECK(ft, at < 0, "%s memory was written at %lld though nothing is "
			 "under way", i ? "target" : "local", at);
	}
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	soak_reset(ft);
	return barrier(ft, CONTROL_QUIET);
}

/* ---- they meet ---- */

static unsigned files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void say_met(void)
{
	struct mallinfo2 m = mallinfo2();

	printf("# met %u: %s, %u operations ended with an error, %llu rounds, "
	       "%zu bytes of heap, %u descriptors\n", mine.lives,
	       fresh ? "begun" : theirs.fresh ? mine.same_name ?
	       "the other one restarted, same name" :
	       "the other one restarted, new address" : "given up", errors,
	       (unsigned long long)soak.done.rounds, m.uordblks + m.hblkhd, files());
	fflush(stdout);
}

/* What the one that has been there longer knows. */
static void learn(void)
{
	if (fresh && !theirs.fresh) {
		soak.round = theirs.round;
		soak.done = theirs.done;
	}
	mine.lives = (mine.lives > theirs.lives ? mine.lives : theirs.lives) + 1;
}

static int meet_again(struct ft *ft)
{
	bool settled = false, ended = control.lost;

	ft->abandoned = false;
	ft_guard(ft, "meeting again");
	allowed |= control.lost || control.cut;
	errors = 0;
	/* Sometimes the new process is there before all that was sent to the old one
	 * has ended. */
	if (!(ended && restarts & 2))
		FT_TRY(settle(ft, &settled));
	/* What was injected to a process that ends may fail before its end is seen. */
	control_look_behind(ft);
	ended |= control.lost;
	say_again();
	if (ended && !fresh)
		FT_TRY(control_rejoin(ft));
	FT_TRY(control_swap(ft, CONTROL_AGAIN, &mine, &theirs, sizeof(mine)));
	control.again = ft->abandoned = false;
	learn();
	if (fresh)
		FT_TRY(open_all(ft));
	if (fresh || theirs.fresh)
		FT_TRY(swap_names(ft));
	FT_TRY(settle(ft, &settled));
	FT_TRY(barrier(ft, CONTROL_READY));
	FT_TRY(reach_each_other(ft));
	FT_TRY(nothing_late(ft));
	restarts += !fresh && theirs.fresh;
	give_ups += !fresh && !theirs.fresh;
	say_met();
	theirs.lives = mine.lives;
	soak.round++;
	fresh = allowed = control.silent = false;
	witness = NULL;
	return FT_PASS;
}

/* Until the cut is over, for the next one: it says nothing about other errors. */
static int await_heal(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;

	while (control.cut && !control.healed) {
		control_look(ft);
		ft_linger(ft, 0.002);
		FT_CHECK(ft, ft_now() < end, "a cut without an end");
		if (control.end)
			return SOAK_HIT;
	}
	control.cut = control.healed = false;
	return FT_PASS;
}

static int live(struct ft *ft)
{
	char more[2] = { 1, 1 };
	bool healed;
	int ret = SOAK_HIT;

	while (!control.end) {
		if (ret == SOAK_HIT) {
			ret = meet_again(ft);
			if (ret == SOAK_HIT && !control.end)
				ret = ft_fail(ft, "the other process ended while they "
					      "met");
			if (ret == FT_PASS)
				ret = await_heal(ft);
		}
		healed = control.healed;
		if (ret == FT_PASS)
			ret = soak_round(ft);
		if (ret == FT_PASS && healed)
			control.cut = control.healed = false;
		if (ret == FT_FAIL)
			break;
		control_look(ft);
		more[0] = !control.quit;
		if (ret == FT_PASS)
			ret = control_swap(ft, CONTROL_MORE, &more[0], &more[1], 1);
		if (ret == FT_FAIL || (ret == FT_PASS && !(more[0] && more[1])))
			break;
		ft_guard(ft, "a round");
	}
	if (control.end)
		return SOAK_HIT;
	return ret == FT_PASS ? soak_nothing_left(ft) : ret;
}

int main(int argc, char **argv)
{
	static struct ft ft;
	int ret;

	ft_init(&ft, argc, argv, "two processes that die, begin again and give each "
		"other up; fabtests/faults/run starts them", 2);
	control_begin(&ft);
	soak.levels = true;
	soak.meet = meet;
	soak.look = look;
	soak.may_fail = may_fail;
	ft.inject_failed = inject_failed;
	ret = live(&ft);
	ft_guard(&ft, "closing");
	if (ret == SOAK_HIT) {
		/* The other one has to know the reason for the errors that follow. */
		oob_close(&ft.oob);
		ft_close(&ft);
		return 0;
	}
	if (ret == FT_PASS && ft_close(&ft))
		ret = FT_FAIL;
	printf("# seed %llu: %llu rounds, %llu messages, %llu writes, %llu reads, %llu "
	       "atomics, %.2f GB; the other one began again %u times, and %u times they "
	       "gave each other up\n", (unsigned long long)ft.run->seed,
	       (unsigned long long)soak.done.rounds,
	       (unsigned long long)soak.done.of[SOAK_MESSAGE],
	       (unsigned long long)soak.done.of[SOAK_WRITE],
	       (unsigned long long)soak.done.of[SOAK_READ],
	       (unsigned long long)(soak.done.of[SOAK_ADD] + soak.done.of[SOAK_FETCH]),
	       (double)soak.done.bytes * 1e-9, restarts, give_ups);
	printf("%s 1 - lives\n", ret == FT_PASS ? "ok" : "not ok");
	if (ret != FT_PASS)
		printf("# %s\n", ft.why);
	fflush(stdout);
	return ret != FT_PASS;
}
