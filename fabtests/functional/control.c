/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to an endpoint (lnx_ext.h): their answers; and that setting a health
 * and adding faults have the effect on traffic that they should have.  These
 * two need a link with two network rails, as the lab has.
 */
#include "../common/ft.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnx_ext.h"

#define REPLY		65536
#define LARGE		(1u << 20)
#define NLARGE		16
#define NSMALL		64
#define N		(NLARGE + NSMALL)
#define SMALL		8192u
#define ROOM		((size_t)NLARGE * LARGE + (size_t)NSMALL * SMALL)
#define RAIL_MAX	128
#define HEAR_S		0.05	/* for a link notice to arrive and be acted on */
#define RETURN_S	60	/* for a rail to be used again; a guard, not a target */

static struct lnx_control_ops *control;
static char reply[REPLY];
static char rail[2][RAIL_MAX];
static unsigned char *out, *in;

static int open_control(struct ft *ft)
{
	int ret = fi_open_ops(&ft->o.ep->fid, LNX_CONTROL_OPS, 0,
			      (void **)&control, NULL);

	if (ret == -FI_ENOSYS && (!ft->opts.prov ||
				  strcmp(ft->opts.prov, "lnx")))
		return ft_skip(ft, "not over lnx");
	FT_CALL(ft, ret);
	FT_CHECK(ft, control->size >= sizeof(*control), "size %zu",
		 control->size);
	return FT_PASS;
}

static ssize_t ask(struct ft *ft, const char *text)
{
	memset(reply, 'x', sizeof(reply));
	return control->request(&ft->o.ep->fid, text, reply, sizeof(reply));
}

/* A request that must succeed. */
static int done(struct ft *ft, const char *what, const char *of,
		const char *value)
{
	char text[RAIL_MAX + 64];
	ssize_t n;

	snprintf(text, sizeof(text), "%s %s %s", what, of, value);
	n = ask(ft, text);
	FT_CHECK(ft, n >= 0, "%s: %zd, %.120s", text, n, reply);
	FT_CHECK(ft, (size_t)n == strlen(reply), "%s: length %zd, is %zu", text,
		 n, strlen(reply));
	return FT_PASS;
}

/* ---- answers ---- */

static int table(struct ft *ft, const struct ft_case *c)
{
	void *none = ft;

	(void)c;
	FT_TRY(open_control(ft));
	FT_CHECK(ft, fi_open_ops(&ft->o.ep->fid, "lnx_contro", 0, &none,
				 NULL) == -FI_ENOSYS, "another name");
	FT_CHECK(ft, fi_open_ops(&ft->o.ep->fid, LNX_CONTROL_OPS, 1, &none,
				 NULL) == -FI_EBADFLAGS, "flags");
	FT_CHECK(ft, none == (void *)ft, "a table was returned");
	return FT_PASS;
}

static int wrong(struct ft *ft, const struct ft_case *c)
{
	static const char *const texts[][2] = {
		{ "", "begins with" },
		{ "helth list", "\"helth\"" },
		{ "health", "list, set, once or auto" },
		{ "health show", "\"show\"" },
		{ "health list now", "\"now\"" },
		{ "health set", "missing" },
		{ "health set 5", "before the value" },
		{ "health set tcp:eth0 1001", "\"1001\"" },
		{ "health set tcp:eth0 -1", "\"-1\"" },
		{ "health set eth0 0", "\"eth0\"" },
		{ "health set shm:x 0", "shared memory" },
		{ "health set tcp:eth0@12ef 0", "16 hex digits" },
		{ "fault add", "missing" },
		{ "fault add dorp", "\"dorp\"" },
		{ "fault del x", "\"x\"" },
		{ "fault del 4711", "no rule" },
		{ "stats all", "\"all\"" },
	};
	size_t i;

	(void)c;
	FT_TRY(open_control(ft));
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ssize_t n = ask(ft, texts[i][0]);

		FT_CHECK(ft, n == -FI_EINVAL, "\"%s\": %zd", texts[i][0], n);
		FT_CHECK(ft, strstr(reply, texts[i][1]), "\"%s\": %.150s",
			 texts[i][0], reply);
	}
	return FT_PASS;
}

static int cut(struct ft *ft, const struct ft_case *c)
{
	char few[10];
	ssize_t n, k;

	(void)c;
	FT_TRY(open_control(ft));
	n = ask(ft, "stats");
	FT_CHECK(ft, n > 100 && strstr(reply, "send_count 0\n"), "%zd: %.100s",
		 n, reply);
	memset(few, 'x', sizeof(few));
	k = control->request(&ft->o.ep->fid, "stats", few, 9);
	FT_CHECK(ft, k == n, "length %zd when cut, else %zd", k, n);
	FT_CHECK(ft, strlen(few) == 8 && !strncmp(few, reply, 8) &&
		 few[9] == 'x', "cut to \"%.10s\"", few);
	k = control->request(&ft->o.ep->fid, "stats", NULL, 0);
	FT_CHECK(ft, k == n, "length %zd without a buffer, else %zd", k, n);
	k = control->request(&ft->o.ep->fid, "stat", few, 9);
	FT_CHECK(ft, k == -FI_EINVAL && strlen(few) == 8, "error: %zd", k);
	return FT_PASS;
}

static bool next_rail(const char **at, char *name)
{
	return *at && sscanf(*at, "rail %127s", name) == 1;
}

/* Skips if there is nothing whose health can be set. */
static int settable(struct ft *ft)
{
	ssize_t n = ask(ft, "health auto all");

	if (n == -FI_EOPNOTSUPP)
		return ft_skip(ft, "%.100s", reply);
	FT_CHECK(ft, !n && !reply[0], "health auto all: %zd, %.150s", n,
		 reply);
	return FT_PASS;
}

/* Names of the first two rails.  Skips if there are fewer. */
static int two_rails(struct ft *ft)
{
	const char *at = reply;
	int n = 0;

	FT_TRY(done(ft, "health", "list", ""));
	while (n < 2 && next_rail(&at, rail[n])) {
		at = strchr(at, '\n');
		at += at != NULL;
		n++;
	}
	if (n < 2)
		return ft_skip(ft, "needs two network rails");
	return FT_PASS;
}

static int unknown(struct ft *ft, const struct ft_case *c)
{
	ssize_t n;

	(void)c;
	FT_TRY(open_control(ft));
	FT_TRY(settable(ft));
	n = ask(ft, "health set tcp:nowhere 0");
	FT_CHECK(ft, n == -FI_EINVAL && strstr(reply, "no such rail"),
		 "%zd, %.150s", n, reply);
	n = ask(ft, "health set 3@77 0");
	FT_CHECK(ft, n == -FI_EINVAL && strstr(reply, "no such rail of a peer"),
		 "%zd, %.150s", n, reply);
	n = ask(ft, "health set *@77 0");
	FT_CHECK(ft, n == -FI_EINVAL && strstr(reply, "no such path"),
		 "%zd, %.150s", n, reply);
	return FT_PASS;
}

/* ---- traffic ---- */

static size_t size_of(int i)
{
	return i < NLARGE ? LARGE : (size_t)(i * 97);
}

static unsigned char *place(unsigned char *buf, int i)
{
	return i < NLARGE ? buf + (size_t)i * LARGE :
	       buf + (size_t)NLARGE * LARGE + (size_t)(i - NLARGE) * SMALL;
}

static uint64_t round_no;

/*
 * Both ranks send messages of all sizes to each other; in the middle rank
 * `asker` makes `request`.
 */
static int traffic(struct ft *ft, int asker, const char *request)
{
	struct ft_op *tx[N], *rx[N];
	struct ft_msg m = { .tagged = true, .addr = ft->addr[!ft->rank] };
	ssize_t n;
	int i;

	ft_ops_drop(ft);
	round_no++;
	for (i = 0; i < N; i++) {
		rx[i] = ft_op_new(ft);
		m.tag = round_no * N + (uint64_t)i;
		m.buf = place(in, i);
		m.len = size_of(i);
		memset(m.buf, 0, m.len);
		FT_CALL(ft, ft_recv(ft, rx[i], &m));
	}
	FT_CHECK(ft, !ft_barrier(ft), "lost the other rank");
	for (i = 0; i < N; i++) {
		tx[i] = ft_op_new(ft);
		m.tag = round_no * N + (uint64_t)i;
		m.buf = place(out, i);
		m.len = size_of(i);
		pattern_fill(m.buf, m.len, ft->run->seed, (unsigned)ft->rank,
			     m.tag);
		FT_CALL(ft, ft_send(ft, tx[i], &m));
		if (i != N / 2 || !request || ft->rank != asker)
			continue;
		n = ask(ft, request);
		FT_CHECK(ft, n >= 0, "%s: %zd, %.150s", request, n, reply);
	}
	for (i = 0; i < N; i++) {
		FT_DONE(ft, tx[i]);
		FT_DONE(ft, rx[i]);
		FT_CHECK(ft, rx[i]->len == size_of(i), "message %d: %zu bytes",
			 i, rx[i]->len);
		FT_CHECK(ft, pattern_check(place(in, i), size_of(i),
					   ft->run->seed, !ft->rank,
					   round_no * N + (uint64_t)i) < 0,
			 "message %d of round %" PRIu64 ": other contents", i,
			 round_no);
	}
	FT_CHECK(ft, !ft_barrier(ft), "lost the other rank");
	return FT_PASS;
}

/* Bytes received and sent on the interface of a rail. */
static uint64_t bytes_of(const char *name)
{
	const char *dev = strrchr(name, ':') + 1;
	uint64_t rx = 0, tx = 0;
	char line[512];
	FILE *f = fopen("/proc/net/dev", "r");

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':'), *s = line;

		while (*s == ' ')
			s++;
		if (!at || (size_t)(at - s) != strlen(dev) ||
		    strncmp(s, dev, strlen(dev)))
			continue;
		sscanf(at + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %"
		       SCNu64, &rx, &tx);
	}
	if (f)
		fclose(f);
	return rx + tx;
}

/* Runs a round and gives each rail's share of it in thousandths. */
static int shares(struct ft *ft, unsigned share[2])
{
	uint64_t before[2], moved[2];
	int k;

	for (k = 0; k < 2; k++)
		before[k] = bytes_of(rail[k]);
	FT_TRY(traffic(ft, 0, NULL));
	for (k = 0; k < 2; k++)
		moved[k] = bytes_of(rail[k]) - before[k];
	FT_CHECK(ft, moved[0] + moved[1] > NLARGE * (uint64_t)LARGE,
		 "%s and %s carried %" PRIu64 " bytes", rail[0], rail[1],
		 moved[0] + moved[1]);
	for (k = 0; k < 2; k++)
		share[k] = (unsigned)(moved[k] * 1000 / (moved[0] + moved[1]));
	printf("# rank %d: %s %u, %s %u thousandths\n", ft->rank, rail[0],
	       share[0], rail[1], share[1]);
	return FT_PASS;
}

/* Rounds until both rails carry a part worth counting, on both ranks. */
static int both(struct ft *ft, const char *when)
{
	double end = ft_now() + RETURN_S;
	unsigned share[2];

	for (;;) {
		unsigned char good[2], mine;

		FT_TRY(shares(ft, share));
		mine = share[0] > 100 && share[1] > 100;
		FT_CHECK(ft, !oob_allgather(&ft->oob, &mine, good, 1),
			 "lost the other rank");
		if (good[0] && good[1])
			return FT_PASS;
		FT_CHECK(ft, ft_now() < end, "%s: %s %u, %s %u thousandths",
			 when, rail[0], share[0], rail[1], share[1]);
	}
}

static int prepare(struct ft *ft)
{
	if (!out)
		out = malloc(ROOM);
	if (!in)
		in = malloc(ROOM);
	FT_CHECK(ft, in && out, "no memory");
	FT_TRY(open_control(ft));
	FT_TRY(settable(ft));
	FT_TRY(two_rails(ft));
	if (!strcmp(strrchr(rail[0], ':'), ":lo"))
		return ft_skip(ft, "needs interfaces of its own");
	return FT_PASS;
}

/* One rank sets one of its rails to 0, and later back. */
static int out_of_use(struct ft *ft, const struct ft_case *c)
{
	int asker = (int)c->a, which = (int)c->b;
	char text[RAIL_MAX + 32], line[RAIL_MAX + 64];
	unsigned share[2];

	FT_TRY(prepare(ft));
	FT_TRY(both(ft, "before"));
	snprintf(text, sizeof(text), "health set %s 0", rail[which]);
	FT_TRY(traffic(ft, asker, text));
	ft_linger(ft, HEAR_S);
	FT_TRY(shares(ft, share));
	FT_CHECK(ft, share[which] < 20, "%s has health 0 and carries %u "
		 "thousandths", rail[which], share[which]);
	if (ft->rank == asker) {
		FT_TRY(done(ft, "health", "list", ""));
		snprintf(line, sizeof(line), "rail %s health 0 down by-hand\n",
			 rail[which]);
		FT_CHECK(ft, strstr(reply, line), "%.200s", reply);
	}
	/* The setting must outlast the notice that peers get once. */
	ft_linger(ft, 3);
	FT_TRY(shares(ft, share));
	FT_CHECK(ft, share[which] < 20, "%s has health 0 and carries %u "
		 "thousandths, after a while", rail[which], share[which]);
	snprintf(text, sizeof(text), "health auto %s", rail[which]);
	FT_TRY(traffic(ft, asker, text));
	return both(ft, "afterwards");
}

/* With all rails at 0 traffic still goes. */
static int all_out(struct ft *ft, const struct ft_case *c)
{
	char text[2 * RAIL_MAX + 32];

	(void)c;
	FT_TRY(prepare(ft));
	FT_TRY(both(ft, "before"));
	snprintf(text, sizeof(text), "health set %s %s 0", rail[0], rail[1]);
	FT_TRY(traffic(ft, 0, text));
	FT_TRY(traffic(ft, 0, NULL));
	FT_TRY(traffic(ft, 1, text));
	FT_TRY(traffic(ft, 0, NULL));
	FT_TRY(traffic(ft, 0, "health auto all"));
	FT_TRY(traffic(ft, 1, "health auto all"));
	return both(ft, "afterwards");
}

/* The same for the paths to a peer and for a peer's rails. */
static int of_peer(struct ft *ft, const struct ft_case *c)
{
	char text[2 * RAIL_MAX + 64];
	unsigned share[2];

	FT_TRY(prepare(ft));
	FT_TRY(both(ft, "before"));
	if (c->a)
		snprintf(text, sizeof(text), "health set 1@* 0");
	else
		snprintf(text, sizeof(text), "health set %s@* 0", rail[1]);
	/* Each rank for what it sends and reads itself. */
	FT_TRY(traffic(ft, 0, text));
	FT_TRY(traffic(ft, 1, text));
	FT_TRY(shares(ft, share));
	FT_CHECK(ft, share[1] < 20, "%s and carries %u thousandths", text,
		 share[1]);
	FT_TRY(traffic(ft, 0, "health auto all"));
	FT_TRY(traffic(ft, 1, "health auto all"));
	return both(ft, "afterwards");
}

/* Random settings, again and again; contents and counts stay right. */
static int toggled(struct ft *ft, const struct ft_case *c)
{
	static const char *const what[] = {
		"health set %s 0", "health auto %s", "health set %s 300",
		"health set %s@* 0", "health auto %s@*", "health set %s@* 700",
		"health set 0@* 0", "health set 1@* 0", "health auto 0@* 1@*",
		"health set * 0", "health auto all",
	};
	uint64_t state = ft->run->seed;
	char text[RAIL_MAX + 64];
	uint64_t i;

	FT_TRY(prepare(ft));
	for (i = 0; i < (ft->run->quick ? c->a / 4 : c->a); i++) {
		uint64_t r = pattern_random(&state);

		snprintf(text, sizeof(text), what[r % (sizeof(what) /
						       sizeof(what[0]))],
			 rail[r >> 32 & 1]);
		FT_TRY(traffic(ft, (int)(r >> 33 & 1), text));
	}
	FT_TRY(traffic(ft, 0, "health auto all"));
	FT_TRY(traffic(ft, 1, "health auto all"));
	return both(ft, "afterwards");
}

/* ---- faults ---- */

static int faults(struct ft *ft, const struct ft_case *c)
{
	unsigned long long number, matched, hit;
	char text[64];
	const char *at;
	ssize_t n;

	(void)c;
	if (!out)
		out = malloc(ROOM);
	if (!in)
		in = malloc(ROOM);
	FT_CHECK(ft, in && out, "no memory");
	FT_TRY(open_control(ft));
	n = ask(ft, "fault add drop kind=tag rate=3 count=5; delay=2ms "
		"kind=ack rate=2 seed=7");
	if (n == -FI_EOPNOTSUPP)
		return ft_skip(ft, "%.100s", reply);
	FT_CHECK(ft, n > 0, "fault add: %zd, %.150s", n, reply);
	FT_CHECK(ft, sscanf(reply, "fault %llu drop kind=tag", &number) == 1,
		 "%.150s", reply);
	FT_TRY(traffic(ft, 0, NULL));
	FT_TRY(done(ft, "fault", "list", ""));
	FT_CHECK(ft, sscanf(reply, "fault %*u %*[^:]: matched %llu, hit %llu",
			    &matched, &hit) == 2, "%.150s", reply);
	/* Local ranks may use shared memory instead of frames. */
	if (!ft_lnx_over_shm(ft))
		FT_CHECK(ft, hit, "nothing was dropped: %.150s", reply);
	at = strchr(reply, '\n');
	FT_CHECK(ft, at && strstr(at, "delay=2ms kind=ack rate=2"), "%.200s",
		 reply);
	snprintf(text, sizeof(text), "%llu", number);
	FT_TRY(done(ft, "fault", "del", text));
	n = ask(ft, "fault list");
	FT_CHECK(ft, n > 0 && !strstr(reply, "drop"), "%.150s", reply);
	FT_TRY(done(ft, "fault", "del", "all"));
	n = ask(ft, "fault list");
	FT_CHECK(ft, !n && !reply[0], "%zd, %.150s", n, reply);
	return traffic(ft, 0, NULL);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "table", .fn = table, .ranks = 1 },
		{ .name = "wrong-requests", .fn = wrong, .ranks = 1 },
		{ .name = "names-of-nothing", .fn = unknown, .ranks = 1 },
		{ .name = "reply-is-cut", .fn = cut, .ranks = 1 },
		{ .name = "faults", .fn = faults },
		{ .name = "rail-out-of-use-0", .fn = out_of_use, .a = 0,
		  .b = 1 },
		{ .name = "rail-out-of-use-1", .fn = out_of_use, .a = 1,
		  .b = 0 },
		{ .name = "path-out-of-use", .fn = of_peer, .a = 0 },
		{ .name = "remote-rail-out-of-use", .fn = of_peer, .a = 1 },
		{ .name = "all-out-of-use", .fn = all_out },
		{ .name = "toggled", .fn = toggled, .a = 24 },
	};

	return ft_main(argc, argv, "requests to an endpoint", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
