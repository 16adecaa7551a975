/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints talk, and one of them also sends to others that are not there.  Each try to
 * connect is refused at once, and costs a socket; or it is not answered.  The sends to no
 * endpoint end after FI_LNX_CONNECT_TIMEOUT, and there are no more tries than the constants
 * of the library allow: for each peer, in all, and in one pass.  That does not depend on
 * what else the machine does.  Where times are judged, the messages of the two must not take
 * much longer, neither on average nor the slowest ones.  See sessions.c.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/interval.h"
#include "lnx_wire_addr.h"

#define EID_AT		offsetof(struct lnx_wire_addr, eid)

#define ABSENT		1000		/* at most */
#define ABSENT_NET	0x7f010000u	/* the loopback addresses that they have */
#define AWAY_S		0.1		/* without progress: then tries of many are due */
#define TRIPS		4000
#define TRIPS_MIN	1000		/* where they take longer than that: */
#define ALONE_S		1.0
#define KEPT		200000
#define TRIES		3
/* How many times as long as alone: half of the round trips, 99 of 100, on average. */
#define MEDIAN_MAX	3.0
#define SLOWEST_MAX	20.0
#define MEAN_MAX	5.0
/* The part of the time that goes into the system call which connects. */
#define SHARE_MAX	0.15
/* Where a round trip takes so long, other work has the cores: then times say nothing. */
#define JUDGED_S	200e-6
#define UNJUDGED	1e6

static unsigned char out[64], in[64], word[64];
static uint64_t seed;

/* ---- tries to connect ---- */

/* Of those to absent peers: how many, the time that they took, and the cheapest one's. */
static struct {
	unsigned n, to[ABSENT];
	double took, cheapest;
	unsigned at_once;		/* most of them in one call that makes progress */
} tries;

/* That of libc, for this program and all libraries in it; counted. */
__attribute__((visibility("default")))
int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_in *in = (const void *)addr;
	double start = ft_now(), took;
	int ret = (int)syscall(SYS_connect, fd, addr, len), err = errno;
	uint32_t i = ABSENT;

	if (addr->sa_family == AF_INET)
		i = ntohl(in->sin_addr.s_addr) - ABSENT_NET;
	if (i < ABSENT) {
		took = ft_now() - start;
		tries.n++;
		tries.to[i]++;
		tries.took += took;
		if (took < tries.cheapest)
			tries.cheapest = took;
	}
	errno = err;
	return ret;
}

/* The most tries to connect to one peer in that time, the first one included: each pause is
 * half as long again as the one before, up to a part of the time that there was no peer. */
static unsigned most_for_one(double seconds)
{
	uint64_t end_ns = (uint64_t)(seconds * 1e9), at_ns = 0, max_ns;
	uint64_t pause_ns = LNX_BACKOFF_MIN_NS;
	unsigned n = 1;

	while ((at_ns += pause_ns) <= end_ns) {
		n++;
		max_ns = LNX_MIN(at_ns / LNX_REFUSED_SHARE, LNX_REFUSED_MAX_NS);
		max_ns = LNX_MAX(max_ns, LNX_BACKOFF_MAX_NS);
		pause_ns = LNX_MIN(pause_ns + pause_ns / 2, max_ns);
	}
	return n;
}

/* And to all of them: a pause follows each try, many times as long as it took. */
static double most_for_all(double seconds)
{
	double gap = LNX_MIN(tries.cheapest * LNX_CONNECT_SHARE,
			     LNX_CONNECT_GAP_MAX_NS * 1e-9);

	return seconds / gap + LNX_CONNECTS_PER_PASS;
}

static int few_tries(struct ft *ft, unsigned n, unsigned first, double seconds)
{
	unsigned i, one = most_for_one(seconds), most = 0, again = tries.n - first;
	double all = most_for_all(seconds);

	for (i = 0; i < n; i++)
		most = LNX_MAX(most, tries.to[i]);
	printf("# tries to connect: %u to %u absent peers, %u of them again, of at most %.0f; "
	       "%u to one, of at most %u; %u in one call, of at most %u\n", tries.n, n, again,
	       all, most, one, tries.at_once, LNX_CONNECTS_PER_PASS);
	FT_CHECK(ft, most <= one, "%u tries to connect to one peer in %.2f s, where its "
		 "pauses allow %u", most, seconds, one);
	FT_CHECK(ft, again <= all, "%u tries to connect again in %.2f s, where the pauses "
		 "between them allow %.0f", again, seconds, all);
	FT_CHECK(ft, tries.at_once <= LNX_CONNECTS_PER_PASS, "%u tries to connect in one "
		 "call", tries.at_once);
	return FT_PASS;
}

/* ---- round trips ---- */

struct times {
	double median, slowest, mean;
};

static double taken[KEPT];

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct times times_of(unsigned n, double total)
{
	unsigned kept = n < KEPT ? n : KEPT;

	qsort(taken, kept, sizeof(taken[0]), by_size);
	return (struct times){
		.median = taken[kept / 2], .slowest = taken[kept / 100 * 99],
		.mean = total / n,
	};
}

/* Until op is done; counts what each call tries meanwhile. */
static int wait_for(struct ft *ft, struct ft_op *op)
{
	double end = ft_now() + ft->run->timeout_s;
	unsigned n, before;

	for (n = 1; !op->done; n++) {
		before = tries.n;
		ft_progress(ft);
		tries.at_once = LNX_MAX(tries.at_once, tries.n - before);
		FT_CHECK(ft, n % 256 || ft_now() < end, "a message is not there");
		if (!(n % 256))
			sched_yield();
	}
	FT_DONE(ft, op);
	return FT_PASS;
}

/* The i-th round trip of 64 bytes. */
static int trip(struct ft *ft, struct ft_op **op, unsigned i)
{
	struct ft_msg tx = { .tagged = true, .addr = ft->addr[1], .tag = 1,
			     .buf = out, .len = sizeof(out) };
	struct ft_msg rx = { .tagged = true, .addr = ft->addr[1], .tag = 2,
			     .buf = in, .len = sizeof(in) };
	double start;

	ft_op_reset(op[0]);
	ft_op_reset(op[1]);
	start = ft_now();
	FT_CALL(ft, ft_recv(ft, op[1], &rx));
	FT_CALL(ft, ft_send(ft, op[0], &tx));
	FT_TRY(wait_for(ft, op[1]));
	taken[i % KEPT] = ft_now() - start;
	return wait_for(ft, op[0]);
}

static int alone(struct ft *ft, struct ft_op **op, struct times *t)
{
	double start = ft_now();
	unsigned i;

	for (i = 0; i < TRIPS_MIN || (i < TRIPS && ft_now() < start + ALONE_S); i++)
		FT_TRY(trip(ft, op, i));
	*t = times_of(i, ft_now() - start);
	return FT_PASS;
}

/* ---- endpoints that are not there ---- */

/* An address like a peer's, but of a loopback address of its own, and at a port where
 * nothing listens. */
static int no_endpoint(struct ft *ft, const unsigned char *like, uint16_t port,
		       unsigned i, fi_addr_t *addr)
{
	struct in_addr ip = { .s_addr = htonl(ABSENT_NET + i) };
	unsigned char name[FT_NAME_MAX];
	uint64_t id = pattern_random(&seed);

	memcpy(name, like, sizeof(name));
	memcpy(name + EID_AT, &id, sizeof(id));
	sessions_set_address(name, ip, port);
	FT_CHECK(ft, fi_av_insert(ft->o.av, name, 1, addr, 0, NULL) == 1,
		 "fi_av_insert failed");
	return FT_PASS;
}

/* A port that refuses, or one that is silent: nothing is accepted there, and the kernel
 * drops what is too much.  They stay ours, so that no other program gets the port. */
static int absent_port(struct ft *ft, bool silent, int fd[3], uint16_t *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t len = sizeof(any);
	unsigned i;

	for (i = 0; i < 3; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		FT_CHECK(ft, fd[i] >= 0, "no socket: %s", strerror(errno));
	}
	FT_CHECK(ft, !bind(fd[0], (void *)&any, sizeof(any)) &&
		 !getsockname(fd[0], (void *)&any, &len), "no port");
	*port = ntohs(any.sin_port);
	if (!silent)
		return FT_PASS;
	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	FT_CHECK(ft, !listen(fd[0], 0), "no listener: %s", strerror(errno));
	for (i = 1; i < 3; i++)
		FT_CHECK(ft, !connect(fd[i], (void *)&any, len) || errno == EINPROGRESS,
			 "the listener cannot be filled: %s", strerror(errno));
	return FT_PASS;
}

static struct ft_op *absent_op[ABSENT];

/* What one try to make the two slower gives. */
struct outcome {
	struct times before, beside, after;
	double share;			/* of the time, spent in tries to connect again */
};

/* Round trips until the sends to n absent peers have ended.  Once, many tries to connect are
 * due when a call makes progress. */
static int beside(struct ft *ft, struct ft_op **op, const fi_addr_t *absent, unsigned n,
		  bool silent, struct outcome *out)
{
	double limit = atof(getenv("FI_LNX_CONNECT_TIMEOUT")) / 1000;
	double started = ft_now(), began, first = 0, ended, away = 0;
	unsigned i, trips = 0, left, tried;

	memset(&tries, 0, sizeof(tries));
	tries.cheapest = limit;
	for (i = 0; i < n; i++)
		FT_CALL(ft, actor_put(ft, &absent_op[i], absent[i], true, 1, word,
				      sizeof(word), 0));
	began = ft_now();
	tried = tries.n;
	tries.took = 0;
	tries.at_once = 0;
	do {
		FT_TRY(trip(ft, op, trips++));
		for (i = left = 0; i < n; i++)
			left += !absent_op[i]->done;
		if (left < n && !first)
			first = ft_now() - started;
		if (!away && ft_now() > began + limit / 2) {
			usleep((useconds_t)(AWAY_S * 1e6));
			away = AWAY_S;
		}
		FT_CHECK(ft, ft_now() < started + limit + ft->run->timeout_s,
			 "%u of %u sends to no endpoint do not end", left, n);
	} while (left);
	ended = ft_now();
	out->share = tries.took / (ended - began);
	out->beside = times_of(trips, ended - began - away);
	printf("# sends to %u absent peers ended after %.2f to %.2f s\n", n, first,
	       ended - started);
	for (i = 0; i < n; i++)
		FT_CHECK(ft, absent_op[i]->err, "a send to no endpoint succeeded");
	FT_CHECK(ft, first > limit * 0.9, "a send to no endpoint ended after %.2f s "
		 "already", first);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	/* What is silent is asked again by the kernel. */
	FT_CHECK(ft, silent || tries.n > tried, "none was tried again");
	return few_tries(ft, n, tried, ended - started);
}

static int one_try(struct ft *ft, const unsigned char *name, const struct ft_case *c,
		   struct ft_op **op, struct outcome *out)
{
	unsigned i, n = (unsigned)c->a;
	fi_addr_t absent[ABSENT];
	bool silent = c->b;
	uint16_t port = 0;
	int fd[3];

	if (ft_judges_times())
		FT_TRY(alone(ft, op, &out->before));
	FT_TRY(absent_port(ft, silent, fd, &port));
	for (i = 0; i < n; i++)
		FT_TRY(no_endpoint(ft, name, port, i, &absent[i]));
	FT_TRY(beside(ft, op, absent, n, silent, out));
	FT_CALL(ft, fi_av_remove(ft->o.av, absent, n, 0));
	for (i = 0; i < 3; i++)
		close(fd[i]);
	return ft_judges_times() ? alone(ft, op, &out->after) : FT_PASS;
}

static double worse(double a, double b)
{
	return a > b ? a : b;
}

/* How often is the worst of them as long as it may be?  Beside what was slower alone, before
 * or after.  UNJUDGED: there is too much other work to say. */
static double worst_of(const struct outcome *o)
{
	const struct times *a = &o->before, *b = &o->beside, *z = &o->after;
	double median = worse(a->median, z->median), worst = o->share / SHARE_MAX;

	worst = worse(worst, b->median / median / MEDIAN_MAX);
	worst = worse(worst, b->mean / worse(a->mean, z->mean) / MEAN_MAX);
	worst = worse(worst, b->slowest / worse(a->slowest, z->slowest) / SLOWEST_MAX);
	printf("# round trips alone, beside them and alone again: median %.1f %.1f %.1f us, "
	       "99%% %.1f %.1f %.1f, mean %.1f %.1f %.1f; tries to connect took %.3f of the "
	       "time\n", a->median * 1e6, b->median * 1e6, z->median * 1e6,
	       a->slowest * 1e6, b->slowest * 1e6, z->slowest * 1e6, a->mean * 1e6,
	       b->mean * 1e6, z->mean * 1e6, o->share);
	if (worst > 1 && median > JUDGED_S) {
		printf("# too much other work to judge the times\n");
		return UNJUDGED;
	}
	return worst;
}

/* a: how many are not there; b: silent */
int sessions_unreachable(struct ft *ft, const struct ft_case *c)
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor *b = &actors[0];
	struct actor_answer say;
	struct outcome out;
	struct ft_op *op[2];
	double worst = 0;
	int i;

	seed = ft->run->seed;
	FT_TRY(actor_start(ft, 0, actor_obeys));
	FT_TRY(actor_do(ft, b, &o, &say, true));
	FT_TRY(actor_open(ft, NULL, 0));
	FT_CHECK(ft, fi_av_insert(ft->o.av, say.name, 1, &ft->addr[1], 0, NULL) == 1,
		 "fi_av_insert failed");
	o.what = ACTOR_KNOW;
	memcpy(o.name, ft->o.name, sizeof(o.name));
	FT_TRY(actor_do(ft, b, &o, NULL, false));
	o = (struct actor_order){ .what = ACTOR_ECHO, .size = 64, .key = 1 };
	FT_TRY(actor_tell(ft, b, &o, sizeof(o)));
	for (i = 0; i < 2; i++)
		op[i] = ft_op_new(ft);
	for (i = 0; i < TRIES; i++) {
		FT_TRY(one_try(ft, say.name, c, op, &out));
		worst = ft_judges_times() ? worst_of(&out) : 0;
		if (worst <= 1)
			return FT_PASS;
	}
	if (worst == UNJUDGED)
		return ft_skip(ft, "too much other work to judge the times");
	return ft_fail(ft, "round trips, or tries to connect, take %.1f times as long "
		       "as they may beside %u peers that are not there", worst,
		       (unsigned)c->a);
}
