/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints talk, and one of them also sends to many that are not there.  Each try to
 * connect is refused at once, and costs a socket; or it is not answered.  The messages of
 * the two must not take much longer for that, neither on average nor the slowest ones; and
 * the sends to no endpoint end after FI_LNX_CONNECT_TIMEOUT.  See sessions.c.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lnx_wire_addr.h"

#define EID_AT		offsetof(struct lnx_wire_addr, eid)

#define ABSENT		1000
#define TRIPS		4000
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

static unsigned connects;
static double connecting;		/* the time that they took */

/* That of libc, for this program and all libraries in it; counted. */
__attribute__((visibility("default")))
int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	double start = ft_now();
	int ret = (int)syscall(SYS_connect, fd, addr, len), err = errno;

	if (addr->sa_family == AF_INET) {
		connects++;
		connecting += ft_now() - start;
	}
	errno = err;
	return ret;
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
	FT_DONE(ft, op[1]);
	taken[i % KEPT] = ft_now() - start;
	FT_DONE(ft, op[0]);
	return FT_PASS;
}

static int alone(struct ft *ft, struct ft_op **op, struct times *t)
{
	double start = ft_now();
	unsigned i;

	for (i = 0; i < TRIPS; i++)
		FT_TRY(trip(ft, op, i));
	*t = times_of(TRIPS, ft_now() - start);
	return FT_PASS;
}

/* ---- endpoints that are not there ---- */

/* An address like a peer's, but of a loopback address of its own, and at a port where
 * nothing listens. */
static int no_endpoint(struct ft *ft, const unsigned char *like, uint16_t port,
		       unsigned i, fi_addr_t *addr)
{
	struct in_addr ip = { .s_addr = htonl(0x7f010000u + i) };
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

/* *share: of the time, spent in tries to connect after the first one to each. */
static int beside(struct ft *ft, struct ft_op **op, const fi_addr_t *absent, bool silent,
		  struct times *t, double *share)
{
	double limit = atof(getenv("FI_LNX_CONNECT_TIMEOUT")) / 1000;
	double started = ft_now(), began, first = 0, ended;
	unsigned i, n = 0, left, tried;

	for (i = 0; i < ABSENT; i++)
		FT_CALL(ft, actor_put(ft, &absent_op[i], absent[i], true, 1, word,
				      sizeof(word), 0));
	began = ft_now();
	tried = connects;
	connecting = 0;
	do {
		FT_TRY(trip(ft, op, n++));
		for (i = left = 0; i < ABSENT; i++)
			left += !absent_op[i]->done;
		if (left < ABSENT && !first)
			first = ft_now() - started;
		FT_CHECK(ft, ft_now() < started + limit + ft->run->timeout_s,
			 "%u of %d sends to no endpoint do not end", left, ABSENT);
	} while (left);
	ended = ft_now();
	*share = connecting / (ended - began);
	*t = times_of(n, ended - began);
	for (i = 0; i < ABSENT; i++)
		FT_CHECK(ft, absent_op[i]->err, "a send to no endpoint succeeded");
	FT_CHECK(ft, first > limit * 0.9, "a send to no endpoint ended after %.2f s "
		 "already", first);
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	printf("# sends to %d absent peers ended after %.2f to %.2f s; %u tries to "
	       "connect took %.3f of the time\n", ABSENT, first, ended - started,
	       connects - tried, *share);
	/* What is silent is asked again by the kernel. */
	FT_CHECK(ft, silent || connects > tried, "none was tried again");
	return FT_PASS;
}

/* How often is the worst of them as long as it may be?  UNJUDGED: there is too much other
 * work to say. */
static int one_try(struct ft *ft, const unsigned char *name, bool silent,
		   struct ft_op **op, double *worst)
{
	fi_addr_t absent[ABSENT];
	struct times a, b = { 0 };
	uint16_t port = 0;
	double share = 0;
	unsigned i;
	int fd[3];

	FT_TRY(alone(ft, op, &a));
	FT_TRY(absent_port(ft, silent, fd, &port));
	for (i = 0; i < ABSENT; i++)
		FT_TRY(no_endpoint(ft, name, port, i, &absent[i]));
	FT_TRY(beside(ft, op, absent, silent, &b, &share));
	FT_CALL(ft, fi_av_remove(ft->o.av, absent, ABSENT, 0));
	for (i = 0; i < 3; i++)
		close(fd[i]);
	printf("# round trips: median %.1f us alone and %.1f beside them, 99%% %.1f and "
	       "%.1f, mean %.1f and %.1f\n", a.median * 1e6, b.median * 1e6,
	       a.slowest * 1e6, b.slowest * 1e6, a.mean * 1e6, b.mean * 1e6);
	*worst = b.median / a.median / MEDIAN_MAX;
	if (b.mean / a.mean / MEAN_MAX > *worst)
		*worst = b.mean / a.mean / MEAN_MAX;
	if (b.slowest / a.slowest / SLOWEST_MAX > *worst)
		*worst = b.slowest / a.slowest / SLOWEST_MAX;
	if (share / SHARE_MAX > *worst)
		*worst = share / SHARE_MAX;
	if (a.median > JUDGED_S) {
		printf("# too much other work to judge the times\n");
		*worst = UNJUDGED;
	}
	return FT_PASS;
}

int sessions_unreachable(struct ft *ft, const struct ft_case *c)
{
	struct actor_order o = { .what = ACTOR_OPEN };
	struct actor *b = &actors[0];
	struct actor_answer say;
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
		FT_TRY(one_try(ft, say.name, c->a, op, &worst));
		if (worst <= 1)
			return FT_PASS;
	}
	if (worst == UNJUDGED)
		return ft_skip(ft, "too much other work to judge the times");
	return ft_fail(ft, "round trips, or tries to connect, take %.1f times as long "
		       "as they may beside %d peers that are not there", worst, ABSENT);
}
