/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting for completions and events without polling for them. */
#include "../common/ft.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_BYTES	(1 << 20)
#define TAG		3ULL

static unsigned char sbuf[MAX_BYTES], rbuf[MAX_BYTES];

static int limit_ms(struct ft *ft)
{
	return (int)(ft->run->timeout_s * 1000);
}

/* An empty queue gives -FI_EAGAIN, and not before the time is over. */
static int sread_timeout(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_tagged_entry e;
	double t0 = ft_now(), took;
	ssize_t ret;

	(void)c;
	ret = fi_cq_sread(ft->o.cq, &e, 1, NULL, 100);
	took = ft_now() - t0;
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_cq_sread returned %zd", ret);
	FT_CHECK(ft, took > 0.09, "returned after %.3f s instead of 0.1",
		 took);
	return FT_PASS;
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int sread_sleeps(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_tagged_entry e;
	double t0, cpu;
	ssize_t ret;

	(void)c;
	t0 = ft_now();
	cpu = cpu_s();
	ret = fi_cq_sread(ft->o.cq, &e, 1, NULL, 500);
	cpu = cpu_s() - cpu;
	t0 = ft_now() - t0;
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_cq_sread returned %zd", ret);
	FT_CHECK(ft, cpu < t0 / 2, "%.3f s of cpu in %.3f s", cpu, t0);
	return FT_PASS;
}

/* Ping-pong in which both sides only sleep until the next message. */
static int sread_pingpong(struct ft *ft, const struct ft_case *c)
{
	int i, n = ft->run->quick ? 20 : 200;
	size_t len = c->a;

	for (i = 0; i < n; i++) {
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = rbuf, .len = len, .tag = TAG,
		};
		bool sent = false;
		double end = ft_now() + ft->run->timeout_s;

		FT_CALL(ft, ft_recv(ft, rx, &m));
		m.buf = sbuf;
		pattern_fill(sbuf, len, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		if (!ft->rank) {
			FT_CALL(ft, ft_send(ft, tx, &m));
			sent = true;
		}
		while (!rx->done || !tx->done) {
			struct fi_cq_tagged_entry e;
			fi_addr_t src;
			ssize_t ret;

			if (rx->done && !sent) {
				FT_CALL(ft, ft_send(ft, tx, &m));
				sent = true;
				continue;
			}
			ret = fi_cq_sreadfrom(ft->o.cq, &e, 1, &src, NULL,
					      limit_ms(ft));
			FT_CHECK(ft, ft_now() < end, "round %d: nothing came",
				 i);
			if (ret == -FI_EAGAIN)
				continue;
			FT_CALL(ft, ret);
			FT_CHECK(ft, e.op_context == rx || e.op_context == tx,
				 "round %d: completion of another operation", i);
			((struct ft_op *)e.op_context)->done++;
		}
		FT_CHECK(ft, pattern_check(rbuf, len, ft->run->seed,
					   !ft->rank, (uint64_t)i) < 0,
			 "round %d: wrong data", i);
		/* rx and tx are complete; record that. */
		rx->posted = tx->posted = false;
	}
	return FT_PASS;
}

static void *signaller(void *arg)
{
	struct ft *ft = arg;

	usleep(100 * 1000);
	fi_cq_signal(ft->o.cq);
	return NULL;
}

static int signal_wakes(struct ft *ft, const struct ft_case *c)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;
	double t0 = ft_now(), took;
	ssize_t ret;

	(void)c;
	FT_CHECK(ft, !pthread_create(&thread, NULL, signaller, ft),
		 "no thread");
	ret = fi_cq_sread(ft->o.cq, &e, 1, NULL, limit_ms(ft));
	took = ft_now() - t0;
	pthread_join(thread, NULL);
	FT_CHECK(ft, ret == -FI_EAGAIN || ret == -FI_ECANCELED,
		 "fi_cq_sread returned %zd", ret);
	FT_CHECK(ft, took < ft->run->timeout_s / 2, "fi_cq_signal did not "
		 "end fi_cq_sread: %.1f s", took);
	return FT_PASS;
}

/*
 * As an event loop does it: fi_trywait, then sleep on the descriptor.  A sleep
 * past the limit while there was something to read is a lost wake-up.
 */
static int wait_fd(struct ft *ft, const struct ft_case *c)
{
	int i, ret, fd = -1, n = ft->run->quick ? 20 : 200;
	struct fid *fids[1] = { &ft->o.cq->fid };
	size_t len = c->a;

	FT_CALL(ft, fi_control(&ft->o.cq->fid, FI_GETWAIT, &fd));
	FT_CHECK(ft, fd >= 0, "FI_GETWAIT gave descriptor %d", fd);
	for (i = 0; i < n; i++) {
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = rbuf, .len = len, .tag = TAG,
		};
		double end = ft_now() + ft->run->timeout_s;
		bool sent = false;

		FT_CALL(ft, ft_recv(ft, rx, &m));
		m.buf = sbuf;
		pattern_fill(sbuf, len, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		while (!rx->done || !tx->done) {
			struct pollfd pfd = { .fd = fd, .events = POLLIN };

			if (!sent && (!ft->rank || rx->done)) {
				FT_CALL(ft, ft_send(ft, tx, &m));
				sent = true;
			}
			if (ft_progress(ft))
				continue;
			ret = fi_trywait(ft->o.fabric, fids, 1);
			if (ret == -FI_EAGAIN)
				continue;
			FT_CALL(ft, ret);
			ret = poll(&pfd, 1, limit_ms(ft));
			FT_CHECK(ft, ret > 0 && ft_now() < end,
				 "round %d: the wake-up was lost (rx %d tx %d)", i,
				 rx->done, tx->done);
		}
		FT_CHECK(ft, !rx->err && !tx->err, "round %d: error %d %d", i,
			 rx->err, tx->err);
		FT_CHECK(ft, pattern_check(rbuf, len, ft->run->seed,
					   !ft->rank, (uint64_t)i) < 0,
			 "round %d: wrong data", i);
	}
	return FT_PASS;
}

/*
 * With nothing to read, the descriptor must not keep an event loop awake.  What the case
 * before left may still have to be done, here or at the peer, and on a busy machine that
 * takes its time: so it has to become quiet, not to be quiet at once.
 */
static int wait_fd_quiet(struct ft *ft, const struct ft_case *c)
{
	struct fid *fids[1] = { &ft->o.cq->fid };
	int ret, fd = -1, slept = 0, refused = 0, woken = 0;
	double t0 = ft_now();

	(void)c;
	FT_CALL(ft, fi_control(&ft->o.cq->fid, FI_GETWAIT, &fd));
	while (slept < 3) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		ft_progress(ft);
		ret = fi_trywait(ft->o.fabric, fids, 1);
		if (ret == -FI_EAGAIN) {
			refused++;
		} else {
			FT_CALL(ft, ret);
			if (poll(&pfd, 1, 30) > 0)
				woken++;
			else
				slept++;
		}
		FT_CHECK(ft, ft_now() - t0 < ft->run->timeout_s,
			 "in %.0f s it slept %d times, fi_trywait refused %d "
			 "times, and it was woken %d times", ft_now() - t0,
			 slept, refused, woken);
	}
	return FT_PASS;
}

/* ---- event queues ---- */

static int with_eq(struct ft *ft, int (*fn)(struct ft *, struct fid_eq *))
{
	struct fi_eq_attr attr = {
		.size = 16, .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC,
	};
	struct fid_eq *eq;
	int ret;

	FT_CALL(ft, fi_eq_open(ft->o.fabric, &attr, &eq, NULL));
	ret = fn(ft, eq);
	FT_CALL(ft, fi_close(&eq->fid));
	return ret;
}

static int eq_empty_fn(struct ft *ft, struct fid_eq *eq)
{
	struct fi_eq_err_entry ee = { 0 };
	struct fi_eq_entry e;
	uint32_t event;
	double t0;
	ssize_t ret;

	ret = fi_eq_read(eq, &event, &e, sizeof(e), 0);
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_eq_read returned %zd", ret);
	ret = fi_eq_readerr(eq, &ee, 0);
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_eq_readerr returned %zd", ret);
	t0 = ft_now();
	ret = fi_eq_sread(eq, &event, &e, sizeof(e), 100, 0);
	FT_CHECK(ft, ret == -FI_EAGAIN, "fi_eq_sread returned %zd", ret);
	FT_CHECK(ft, ft_now() - t0 > 0.09, "fi_eq_sread returned early");
	FT_CHECK(ft, fi_eq_strerror(eq, 5, NULL, NULL, 0), "no text");
	return FT_PASS;
}

static int eq_empty(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	return with_eq(ft, eq_empty_fn);
}

static int eq_write_fn(struct ft *ft, struct fid_eq *eq)
{
	struct fi_eq_entry in = { .fid = &ft->o.ep->fid, .data = 0 }, out;
	uint32_t event = 0;
	ssize_t ret;
	int i;

	for (i = 0; i < 5; i++) {
		in.context = (void *)(uintptr_t)(i + 1);
		in.data = (uint64_t)i * 1000;
		ret = fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0);
		FT_CHECK(ft, ret == sizeof(in), "fi_eq_write returned %zd",
			 ret);
	}
	/* FI_PEEK leaves it there. */
	ret = fi_eq_read(eq, &event, &out, sizeof(out), FI_PEEK);
	FT_CHECK(ft, ret == sizeof(out) && out.data == 0, "peek: %zd, data "
		 "%llu", ret, (unsigned long long)out.data);
	for (i = 0; i < 5; i++) {
		memset(&out, 0, sizeof(out));
		ret = i % 2 ? fi_eq_read(eq, &event, &out, sizeof(out), 0) :
		      fi_eq_sread(eq, &event, &out, sizeof(out), 1000, 0);
		FT_CHECK(ft, ret == sizeof(out), "event %d: %zd", i, ret);
		FT_CHECK(ft, event == FI_NOTIFY &&
			 out.context == (void *)(uintptr_t)(i + 1) &&
			 out.data == (uint64_t)i * 1000 &&
			 out.fid == &ft->o.ep->fid,
			 "event %d was read changed or out of order", i);
	}
	ret = fi_eq_read(eq, &event, &out, sizeof(out), 0);
	FT_CHECK(ft, ret == -FI_EAGAIN, "one event too many: %zd", ret);
	return FT_PASS;
}

static int eq_write(struct ft *ft, const struct ft_case *c)
{
	(void)c;
	return with_eq(ft, eq_write_fn);
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "sread-timeout", .fn = sread_timeout,
		  .cfg.wait = FI_WAIT_UNSPEC },
		{ .name = "sread-sleeps", .fn = sread_sleeps,
		  .cfg.wait = FI_WAIT_UNSPEC },
		{ .name = "sread-pingpong-8", .fn = sread_pingpong,
		  .cfg.wait = FI_WAIT_UNSPEC, .a = 8 },
		{ .name = "sread-pingpong-20000", .fn = sread_pingpong,
		  .cfg.wait = FI_WAIT_UNSPEC, .a = 20000 },
		{ .name = "sread-pingpong-1048576", .fn = sread_pingpong,
		  .cfg.wait = FI_WAIT_UNSPEC, .a = MAX_BYTES },
		{ .name = "signal", .fn = signal_wakes,
		  .cfg.wait = FI_WAIT_UNSPEC,
		  .cfg.threading = FI_THREAD_SAFE },
		{ .name = "wait-fd-8", .fn = wait_fd,
		  .cfg.wait = FI_WAIT_FD, .a = 8 },
		{ .name = "wait-fd-20000", .fn = wait_fd,
		  .cfg.wait = FI_WAIT_FD, .a = 20000 },
		{ .name = "wait-fd-1048576", .fn = wait_fd,
		  .cfg.wait = FI_WAIT_FD, .a = MAX_BYTES },
		{ .name = "wait-fd-quiet", .fn = wait_fd_quiet,
		  .cfg.wait = FI_WAIT_FD },
		{ .name = "eq-empty", .fn = eq_empty },
		{ .name = "eq-write-and-read", .fn = eq_write },
	};

	return ft_main(argc, argv, "wait objects and event queues", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
