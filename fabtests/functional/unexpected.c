/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_LNX_UNEXPECTED_LIMIT: messages that no receive matches take no more memory than that,
 * and their senders wait; what a posted receive or a probe waits for comes all the same;
 * nothing is lost, and nothing counts as a failure.
 */
#include "hazard.h"
#include "victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT		(1 << 20)
#define WINDOW		16
#define FRAME		16384
/* Resident memory of the process, for everything else: cores, tables of this program. */
#define SLACK		(12 << 20)
#define STILL_S		1.0		/* nothing more comes: the sender waits */

#define STORM		7		/* tags */
#define LAST		1
#define LARGE		2
#define LARGE_LEN	(1 << 20)
#define BATCH		64

static char stats_path[128];

static int skipped(struct ft *ft)
{
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (ft_lnx_over_shm(ft))
		return ft_skip(ft, "the shm provider keeps these messages");
	return FT_PASS;
}

static bool quick(const struct ft *ft, int *n)
{
	if (ft->run->quick)
		*n /= 2;
	return ft->run->quick;
}

/* ---- what is counted ---- */

/* Those that are looked at: what they were before the case. */
static struct { const char *name; double before; } counters[] = {
	{ .name = "throttles" }, { .name = "throttled_frames" }, { .name = "unexpected_peak" },
	{ .name = "losses" }, { .name = "network_timeout_count" },
	{ .name = "response_timeout_count" }, { .name = "remote_timeout_count" },
	{ .name = "local_timeout_count" }, { .name = "paths_down" }, { .name = "failed" },
	{ .name = "bad_frames" }, { .name = "mem_drops" }, { .name = "ooo_drops" },
};
#define NCOUNTERS	(sizeof(counters) / sizeof(counters[0]))
#define FAILURES	3		/* these and those behind are failures */

/* Of all endpoints that this process has closed. */
static double counted(const char *name)
{
	char path[160], line[512], full[80];
	double sum = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s-%d", stats_path, (int)getpid());
	f = fopen(path, "r");
	snprintf(full, sizeof(full), "lnx_%s_total{", name);
	while (f && fgets(line, sizeof(line), f)) {
		const char *value = strrchr(line, ' ');

		if (!strncmp(line, full, strlen(full)) && value)
			sum += strtod(value, NULL);
	}
	if (f)
		fclose(f);
	return sum;
}

static double counter(const char *name)
{
	size_t i;

	for (i = 0; i < NCOUNTERS; i++)
		if (!strcmp(counters[i].name, name))
			return counted(name) - counters[i].before;
	return 0;
}

static void count_from_here(void)
{
	size_t i;

	for (i = 0; i < NCOUNTERS; i++)
		counters[i].before = counted(counters[i].name);
}

static void forget_stats(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s-%d", stats_path, (int)getpid());
	unlink(path);
}

/* An endpoint of this case's own is closed.  No path is charged for the wait. */
static int nothing_failed(struct ft *ft)
{
	size_t i;

	for (i = FAILURES; i < NCOUNTERS; i++)
		FT_CHECK(ft, counter(counters[i].name) <= 0, "%s is %.0f", counters[i].name,
			 counter(counters[i].name));
	return FT_PASS;
}

/* ---- one storm ---- */

/* Rank 1: n messages to rank 0, and one that is LAST. */
static int send_storm(struct ft *ft, int n, size_t size)
{
	struct ft_op **op = need(malloc(((size_t)n + 1) * sizeof(*op)));
	int i, ret;

	for (i = 0; i < n; i++) {
		op[i] = put(ft, true, 0, STORM, (uint64_t)i, size);
		FT_CHECK(ft, op[i], "send %d not taken", i);
	}
	op[n] = put(ft, true, 0, LAST, (uint64_t)n, 8);
	FT_CHECK(ft, op[n], "the last send is refused");
	ret = all_done(ft, op, n + 1, "sends");
	free(op);
	return ret;
}

/* Rank 0: receive these, in order. */
static int receive_storm(struct ft *ft, int n, size_t size)
{
	struct ft_op *op[BATCH];
	int i, k, some;

	for (i = 0; i < n; i += some) {
		some = n - i < BATCH ? n - i : BATCH;
		for (k = 0; k < some; k++) {
			op[k] = post(ft, true, 1, STORM, ins + (size_t)k * size, size);
			FT_CHECK(ft, op[k], "receive %d not taken", i + k);
		}
		FT_TRY(all_done(ft, op, some, "receives of messages that waited"));
		for (k = 0; k < some; k++)
			FT_TRY(check(ft, op[k], ins + (size_t)k * size, size, 1,
				     (uint64_t)(i + k)));
	}
	return FT_PASS;
}

static int receive_last(struct ft *ft, int n)
{
	struct ft_op *op = post(ft, true, 1, LAST, ins, 8);

	FT_CHECK(ft, op, "no receive");
	FT_TRY(all_done(ft, &op, 1, "receives of the last message"));
	return check(ft, op, ins, 8, 1, (uint64_t)n);
}

/*
 * Make progress until memory does not grow any more; *most: what it was at most, or 0 where
 * that says nothing.
 */
static int until_still(struct ft *ft, double *most)
{
	double since = ft_now(), end = since + ft->run->timeout_s;

	if (ft_sanitized()) {
		ft_linger(ft, 2 * STILL_S);
		*most = 0;
		return FT_PASS;
	}
	*most = resident_bytes();
	while (ft_now() - since < STILL_S) {
		double now = resident_bytes();
		int i;

		if (now > *most) {
			*most = now;
			since = ft_now();
		}
		FT_CHECK(ft, ft_now() < end, "memory grows and grows");
		for (i = 0; i < 100; i++)
			ft_progress(ft);
	}
	return FT_PASS;
}

/* Endpoints of the case's own, so that they are counted by themselves. */
static int open_own(struct ft *ft, struct ft_cfg *cfg, size_t in_bytes)
{
	*cfg = (struct ft_cfg){ 0 };
	count_from_here();
	prepare(ft, in_bytes);
	if (ft_open(ft, cfg))
		return FT_FAIL;
	return FT_PASS;
}

/* The other ranks are there for storms of all sides. */
static bool is_idle(const struct ft *ft)
{
	return ft->rank > 1;
}

static int close_own(struct ft *ft, const struct ft_case *c)
{
	ft_barrier(ft);
	ft_ops_drop(ft);
	if (ft_close(ft))
		return FT_FAIL;
	ft->cfg = c->cfg;
	return FT_PASS;
}

/* No receives: memory stays below the limit.  Then all are received. */
static int holds(struct ft *ft, const struct ft_case *c)
{
	size_t size = c->a;
	int n = (int)c->b;
	double before, most;
	struct ft_cfg cfg;

	FT_TRY(skipped(ft));
	if (ft_sanitized())
		return ft_skip(ft, "a sanitizer's memory is not what is measured");
	quick(ft, &n);
	FT_TRY(open_own(ft, &cfg, BATCH * size));
	if (is_idle(ft))
		return close_own(ft, c);
	if (ft->rank) {
		FT_TRY(send_storm(ft, n, size));
		FT_TRY(close_own(ft, c));
		FT_CHECK(ft, counter("throttled_frames") > 0, "nothing had to wait");
		return nothing_failed(ft);
	}
	before = resident_bytes();
	FT_TRY(until_still(ft, &most));
	printf("# %d messages of %zu bytes: memory grows by %.1f MiB\n", n, size,
	       (most - before) / (1 << 20));
	FT_CHECK(ft, most - before <= LIMIT + WINDOW * FRAME + SLACK,
		 "memory grows by %.0f bytes, with a limit of %d", most - before, LIMIT);
	FT_TRY(receive_storm(ft, n, size));
	FT_TRY(receive_last(ft, n));
	FT_TRY(close_own(ft, c));
	FT_CHECK(ft, counter("throttles") > 0, "no peer was told to wait");
	FT_CHECK(ft, counter("unexpected_peak") <= LIMIT + WINDOW * FRAME,
		 "%.0f bytes were kept, with a limit of %d", counter("unexpected_peak"), LIMIT);
	return nothing_failed(ft);
}

/* A receive waits for the last message of a storm that is larger than the limit. */
static int wanted(struct ft *ft, const struct ft_case *c)
{
	size_t size = c->a;
	int n = (int)c->b;
	struct ft_cfg cfg;

	FT_TRY(skipped(ft));
	quick(ft, &n);
	FT_TRY(open_own(ft, &cfg, BATCH * size));
	if (is_idle(ft))
		return close_own(ft, c);
	if (ft->rank) {
		FT_TRY(send_storm(ft, n, size));
	} else {
		FT_TRY(receive_last(ft, n));
		FT_TRY(receive_storm(ft, n, size));
	}
	FT_TRY(close_own(ft, c));
	FT_CHECK(ft, counter(ft->rank ? "throttled_frames" : "throttles") > 0,
		 "nothing had to wait");
	return nothing_failed(ft);
}

/* ---- probes ---- */

/* One FI_PEEK: was the message there? */
static int peek(struct ft *ft, struct ft_op *op, int from, uint64_t tag, uint64_t flags,
		bool *found)
{
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG, .tag = tag, .flags = FI_PEEK | flags,
		.addr = from < 0 ? FI_ADDR_UNSPEC : ft->addr[from],
	};

	op->done = 0;
	op->err = 0;
	op->posted = false;
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_CHECK(ft, !ft_wait(ft, op), "no completion of a peek");
	FT_CHECK(ft, !op->err || op->err == FI_ENOMSG, "peek: %s", fi_strerror(op->err));
	*found = !op->err;
	return FT_PASS;
}

static int peek_until(struct ft *ft, struct ft_op *op, int from, uint64_t tag,
		      uint64_t flags)
{
	double end = ft_now() + ft->run->timeout_s;
	bool found = false;

	while (!found) {
		FT_TRY(peek(ft, op, from, tag, flags, &found));
		FT_CHECK(ft, found || ft_now() < end, "FI_PEEK never finds the message");
	}
	return FT_PASS;
}

/* A probe waits for the last message, from rank 1 or from any; it is claimed. */
static int probed(struct ft *ft, const struct ft_case *c)
{
	const size_t size = 3000;
	int n = 2000;
	struct ft_cfg cfg;
	struct ft_op *op;
	struct ft_msg m = {
		.tagged = true, .call = FT_RECVMSG, .tag = LAST, .len = 8,
		.flags = FI_CLAIM | FI_COMPLETION,
	};

	FT_TRY(skipped(ft));
	if (ft->run->directed && !c->a)
		return ft_skip(ft, "receives must name their source here");
	quick(ft, &n);
	FT_TRY(open_own(ft, &cfg, BATCH * size));
	if (is_idle(ft))
		return close_own(ft, c);
	if (ft->rank) {
		FT_TRY(send_storm(ft, n, size));
		return close_own(ft, c);
	}
	op = ft_op_new(ft);
	FT_TRY(peek_until(ft, op, c->a ? 1 : -1, LAST, FI_CLAIM));
	FT_CHECK(ft, op->len == 8, "%zu bytes", op->len);
	op->done = 0;
	op->posted = false;
	m.addr = ft->addr[1];
	m.buf = ins;
	FT_CALL(ft, ft_recv(ft, op, &m));
	FT_DONE(ft, op);
	FT_TRY(check(ft, op, ins, 8, 1, (uint64_t)n));
	FT_TRY(receive_storm(ft, n, size));
	FT_TRY(close_own(ft, c));
	FT_CHECK(ft, counter("throttles") > 0, "no peer was told to wait");
	return FT_PASS;
}

/* ---- what is no message goes on ---- */

/*
 * Rank 1 has a receive for a large message, and storms rank 0, which sends that message and
 * waits until it has been read, and receives nothing before.
 */
static int crossing(struct ft *ft, const struct ft_case *c)
{
	const size_t size = 8000;
	int n = 2000;
	struct ft_op *op = NULL;
	struct ft_cfg cfg;
	double most;

	FT_TRY(skipped(ft));
	quick(ft, &n);
	FT_TRY(open_own(ft, &cfg, LARGE_LEN));
	if (is_idle(ft))
		return close_own(ft, c);
	if (ft->rank) {
		op = post(ft, true, 0, LARGE, ins, LARGE_LEN);
		FT_CHECK(ft, op, "no receive");
		FT_TRY(send_storm(ft, n, size));
		FT_TRY(all_done(ft, &op, 1, "receives of the large message"));
		FT_TRY(check(ft, op, ins, LARGE_LEN, 0, 3));
		return close_own(ft, c);
	}
	FT_TRY(until_still(ft, &most));
	op = put(ft, true, 1, LARGE, 3, LARGE_LEN);
	FT_CHECK(ft, op, "the large message is refused");
	FT_TRY(all_done(ft, &op, 1, "sends of the large message"));
	FT_TRY(receive_storm(ft, n, size));
	FT_TRY(receive_last(ft, n));
	FT_TRY(close_own(ft, c));
	FT_CHECK(ft, counter("throttles") > 0, "no peer was told to wait");
	return nothing_failed(ft);
}

/* ---- storms from all sides ---- */

#define SIDES		4
#define POSTED		3		/* receives of each source at a time */

static const size_t sizes[] = { 8, 5000, 65536, 0, 16320, 300000, 4096, 1000, 16321, 60 };
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))
#define ROOM		300000

struct side {
	int sent, done;			/* to this rank */
	int left;			/* receives from it to be posted, the last first */
	struct ft_op *rx[POSTED];
	int seq[POSTED];
	struct ft_op **tx;
};

static unsigned char *room(int rank, int k)
{
	return ins + (size_t)(rank * POSTED + k) * ROOM;
}

/* Posts receives for what was sent last, first. */
static int receive_some(struct ft *ft, struct side *s, int rank, bool *moved)
{
	int k;

	for (k = 0; k < POSTED; k++) {
		if (s->rx[k] && s->rx[k]->done) {
			FT_TRY(check(ft, s->rx[k], room(rank, k),
				     sizes[s->seq[k] % NSIZES], rank, (uint64_t)s->seq[k]));
			s->rx[k] = NULL;
			*moved = true;
		}
		if (s->rx[k] || !s->left)
			continue;
		s->seq[k] = --s->left;
		s->rx[k] = post(ft, true, rank, 100 + (uint64_t)s->seq[k], room(rank, k), ROOM);
		FT_CHECK(ft, s->rx[k], "no receive");
	}
	return FT_PASS;
}

static int send_some(struct ft *ft, struct side *s, int rank, int n, bool *moved)
{
	while (s->sent < n) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[rank], .tag = 100 + (uint64_t)s->sent,
			.buf = outs[s->sent % SLOTS], .len = sizes[s->sent % NSIZES],
		};
		struct ft_op *op = ft_op_new(ft);
		ssize_t ret;

		op->posted = true;
		ret = ft_try_send(ft->o.ep, op, &m);
		if (ret) {
			op->posted = false;
			op->done = 1;
			FT_CHECK(ft, ret == -FI_EAGAIN, "send: %s", fi_strerror((int)-ret));
			return FT_PASS;
		}
		s->tx[s->sent++] = op;
		*moved = true;
	}
	return FT_PASS;
}

static bool all_over(struct side *s, int n)
{
	int k;

	while (s->done < s->sent && s->tx[s->done]->done)
		s->done++;
	for (k = 0; k < POSTED; k++)
		if (s->rx[k])
			return false;
	return s->done == n && !s->left;
}

static int all_sides(struct ft *ft, const struct ft_case *c)
{
	struct side side[SIDES] = { 0 };
	double since;
	struct ft_cfg cfg;
	int n = 200, i, over;

	FT_TRY(skipped(ft));
	quick(ft, &n);
	FT_TRY(open_own(ft, &cfg, (size_t)SIDES * POSTED * ROOM));
	for (i = 0; i < SIDES; i++) {
		side[i].tx = need(calloc((size_t)n, sizeof(*side[i].tx)));
		side[i].left = i == ft->rank ? 0 : n;
	}
	ft_barrier(ft);
	for (since = ft_now(), over = 0; over < SIDES - 1; ) {
		bool moved = false;

		for (i = 0, over = 0; i < SIDES; i++) {
			if (i == ft->rank)
				continue;
			FT_TRY(send_some(ft, &side[i], i, n, &moved));
			FT_TRY(receive_some(ft, &side[i], i, &moved));
			over += all_over(&side[i], n);
		}
		ft_progress(ft);
		if (moved)
			since = ft_now();
		FT_CHECK(ft, ft_now() - since < ft->run->timeout_s,
			 "nothing moves: %d of %d are over", over, SIDES - 1);
	}
	for (i = 0; i < SIDES; i++) {
		int k;

		for (k = 0; k < side[i].done; k++)
			FT_CHECK(ft, !side[i].tx[k]->err, "send %d to rank %d: %s", k, i,
				 fi_strerror(side[i].tx[k]->err));
		free(side[i].tx);
	}
	FT_TRY(close_own(ft, c));
	FT_CHECK(ft, counter("throttles") > 0, "no peer was told to wait");
	return FT_PASS;
}

/* ---- one of them dies meanwhile ---- */

#define MANY		3000
#define BYTES		4000

/* Send to `to` until it does not go on; how many were taken. */
static int storm_until_still(struct ft *ft, int to, struct ft_op **op)
{
	double since = ft_now();
	int n = 0;

	while (n < MANY && ft_now() - since < STILL_S) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[to], .tag = STORM,
			.buf = outs[n % SLOTS], .len = BYTES,
		};

		op[n] = ft_op_new(ft);
		op[n]->posted = true;
		if (!ft_try_send(ft->o.ep, op[n], &m)) {
			n++;
			since = ft_now();
			continue;
		}
		op[n]->posted = false;
		op[n]->done = 1;
		ft_progress(ft);
	}
	return n;
}

static int victim_storms(struct ft *ft)
{
	static struct ft_op *op[MANY];

	return storm_until_still(ft, 0, op) < MANY ? FT_PASS : FT_FAIL;
}

static int victim_takes(struct ft *ft)
{
	ft_linger(ft, 4 * STILL_S);
	return FT_PASS;
}

/* What came of it can be received, and the rest of what is waited for ends. */
static int dead_sender(struct ft *ft, struct victim *v)
{
	struct ft_cfg cfg = { 0 };
	struct ft_op *op;
	double most;
	int i;

	prepare(ft, BYTES);
	FT_TRY(victim_start(ft, v, &cfg, victim_storms));
	FT_TRY(victim_ready(ft, v, false));
	victim_kill(v);
	for (i = 0; i < 20; i++) {
		op = post(ft, true, 1, STORM, ins, BYTES);
		FT_CHECK(ft, op, "no receive");
		FT_TRY(all_done(ft, &op, 1, "receives of what was there"));
		FT_TRY(check(ft, op, ins, BYTES, 1, (uint64_t)i));
	}
	/* It is waited for, and is not there any more. */
	FT_CHECK(ft, post(ft, true, 1, LAST, ins, 8), "no receive");
	return until_still(ft, &most);
}

/* Its sends end, one way or the other. */
static int dead_receiver(struct ft *ft, struct victim *v)
{
	static struct ft_op *op[MANY];
	struct ft_cfg cfg = { 0 };
	int n, left;

	prepare(ft, 0);
	FT_TRY(victim_start(ft, v, &cfg, victim_takes));
	n = storm_until_still(ft, 1, op);
	FT_CHECK(ft, n < MANY, "nothing had to wait");
	FT_TRY(victim_ready(ft, v, false));
	victim_kill(v);
	left = missing(ft, op, n, time_limit(ft));
	FT_CHECK(ft, !left, "%d of %d sends to a dead receiver did not end", left, n);
	return FT_PASS;
}

static int killed(struct ft *ft, const struct ft_case *c)
{
	struct victim v = { .fd = -1 };
	int ret = FT_PASS, all[OOB_MAX_RANKS];

	FT_TRY(skipped(ft));
	count_from_here();
	if (!ft->rank) {
		ret = c->a ? dead_receiver(ft, &v) : dead_sender(ft, &v);
		victim_kill(&v);
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
		if (ret == FT_PASS &&
		    counter(c->a ? "throttled_frames" : "throttles") <= 0)
			ret = ft_fail(ft, "nothing had to wait");
	}
	/* Rank 1 does not take part in that; it waits here. */
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a rank");
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "unexpected-limit-1000", .fn = holds, .a = 1000, .b = 60000 },
		{ .name = "unexpected-limit-4000", .fn = holds, .a = 4000, .b = 16000 },
		{ .name = "unexpected-limit-16000", .fn = holds, .a = 16000, .b = 4000 },
		{ .name = "unexpected-limit-60000", .fn = holds, .a = 60000, .b = 1000 },
		{ .name = "unexpected-wanted-8", .fn = wanted, .a = 8, .b = 40000 },
		{ .name = "unexpected-wanted-1000", .fn = wanted, .a = 1000, .b = 6000 },
		{ .name = "unexpected-wanted-16000", .fn = wanted, .a = 16000, .b = 3000 },
		{ .name = "unexpected-probed", .fn = probed, .a = 1 },
		{ .name = "unexpected-probed-any", .fn = probed, .a = 0 },
		{ .name = "unexpected-crossing", .fn = crossing },
		{ .name = "unexpected-all-sides", .fn = all_sides, .ranks = SIDES },
		{ .name = "unexpected-sender-dies", .fn = killed },
		{ .name = "unexpected-receiver-dies", .fn = killed, .a = 1 },
	};
	struct ft_case alone[sizeof(cases) / sizeof(cases[0])];
	char name[160];
	size_t i;

	memcpy(alone, cases, sizeof(cases));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		alone[i].cfg.alone = true;
	snprintf(stats_path, sizeof(stats_path), "%s/lnx-unexpected-%d",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
	snprintf(name, sizeof(name), "%s-%%p", stats_path);
	setenv("FI_LNX_STATS_FILE", name, 1);
	setenv("FI_LNX_UNEXPECTED_LIMIT", "1m", 0);
	setenv("FI_LNX_WINDOW", "16", 0);
	setenv("FI_LNX_CONNECT_TIMEOUT", "3000", 0);
	atexit(forget_stats);
	count_each_page();
	return ft_main(argc, argv, "a limit for messages that wait for a receive", alone,
		       sizeof(cases) / sizeof(cases[0]));
}
