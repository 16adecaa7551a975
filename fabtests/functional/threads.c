/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_THREAD_SAFE: threads of both ranks send, receive and poll on one endpoint
 * and one queue at the same time.  Any thread may read any completion.
 */
#include "../common/ft.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS	8
#define WINDOW		8
#define MAX_BYTES	50000

struct slot {
	struct fi_context2 ctx;		/* first */
	atomic_int done;
	atomic_int err;
	size_t len;
	unsigned char buf[MAX_BYTES];
};

struct worker {
	struct ft *ft;
	pthread_t thread;
	int id;
	uint64_t count;
	struct slot rx[WINDOW], tx[WINDOW];
	char bad[200];
};

static atomic_bool stop;

static size_t len_of(uint64_t seq)
{
	static const size_t sizes[] = { 8, 100, 0, 5000, 64, 40000, 16, 20000 };

	return sizes[seq % 8];
}

static uint64_t tag_of(int id, uint64_t seq)
{
	return (uint64_t)id << 48 | seq;
}

/* Handles a completion, whichever thread it belongs to. */
static int poll_queue(struct worker *w)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry ee = { 0 };
	struct slot *s;
	ssize_t i, n;

	n = fi_cq_read(w->ft->o.cq, e, 4);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL) {
		n = fi_cq_readerr(w->ft->o.cq, &ee, 0);
		if (n == -FI_EAGAIN)
			return 0;	/* another thread was faster */
		if (n == 1 && ee.op_context) {
			s = ee.op_context;
			atomic_store(&s->err, ee.err);
			atomic_store(&s->done, 1);
			return 0;
		}
	}
	if (n < 0) {
		snprintf(w->bad, sizeof(w->bad), "fi_cq_read: %s",
			 fi_strerror((int)-n));
		return -1;
	}
	for (i = 0; i < n; i++) {
		s = e[i].op_context;
		if (e[i].flags & FI_RECV)
			s->len = e[i].len;
		if (atomic_fetch_add(&s->done, 1)) {
			snprintf(w->bad, sizeof(w->bad), "completed twice");
			return -1;
		}
	}
	return 0;
}

static int poll_until(struct worker *w, struct slot *s)
{
	double end = ft_now() + w->ft->run->timeout_s;
	unsigned idle = 0;

	while (!atomic_load(&s->done)) {
		if (atomic_load(&stop))
			return -1;
		if (poll_queue(w))
			return -1;
		if (++idle % 64)
			continue;
		sched_yield();
		if (ft_now() > end) {
			snprintf(w->bad, sizeof(w->bad), "no completion");
			return -1;
		}
	}
	if (atomic_load(&s->err)) {
		snprintf(w->bad, sizeof(w->bad), "error completion: %s",
			 fi_strerror(atomic_load(&s->err)));
		return -1;
	}
	return 0;
}

static int start(struct worker *w, struct slot *s, bool send, uint64_t seq)
{
	struct ft_msg m = {
		.tagged = true, .addr = w->ft->addr[!w->ft->rank],
		.buf = s->buf, .len = send ? len_of(seq) : MAX_BYTES,
		.tag = tag_of(w->id, seq),
	};
	ssize_t ret;

	atomic_store(&s->done, 0);
	atomic_store(&s->err, 0);
	if (send)
		pattern_fill(s->buf, m.len, w->ft->run->seed +
			     (unsigned)w->id, (unsigned)w->ft->rank, seq);
	do {
		ret = send ? ft_try_send(w->ft->o.ep, s, &m) :
			ft_try_recv(w->ft->o.ep, s, &m);
		if (ret == -FI_EAGAIN && (poll_queue(w) ||
					  atomic_load(&stop)))
			return -1;
	} while (ret == -FI_EAGAIN);
	if (ret)
		snprintf(w->bad, sizeof(w->bad), "%s: %s", send ? "send" :
			 "receive", fi_strerror((int)-ret));
	return ret ? -1 : 0;
}

static int check(struct worker *w, struct slot *s, uint64_t seq)
{
	if (s->len == len_of(seq) &&
	    pattern_check(s->buf, s->len, w->ft->run->seed + (unsigned)w->id,
			  !w->ft->rank, seq) < 0)
		return 0;
	snprintf(w->bad, sizeof(w->bad), "message %llu is wrong (%zu bytes)",
		 (unsigned long long)seq, s->len);
	return -1;
}

static int work(struct worker *w)
{
	uint64_t i;

	for (i = 0; i < w->count + WINDOW; i++) {
		unsigned k = (unsigned)(i % WINDOW);

		if (i >= WINDOW) {
			if (poll_until(w, &w->tx[k]) ||
			    poll_until(w, &w->rx[k]) ||
			    check(w, &w->rx[k], i - WINDOW))
				return -1;
		}
		if (i < w->count && (start(w, &w->rx[k], false, i) ||
				     start(w, &w->tx[k], true, i)))
			return -1;
	}
	return 0;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	if (work(w))
		atomic_store(&stop, true);
	return NULL;
}

static int threads(struct ft *ft, const struct ft_case *c)
{
	int i, n = (int)c->a, ret = FT_PASS;
	struct worker *w = calloc((size_t)n, sizeof(*w));

	FT_CHECK(ft, w, "out of memory");
	atomic_store(&stop, false);
	/* From here on the threads handle completions. */
	ft_barrier(ft);
	for (i = 0; i < n; i++) {
		w[i].ft = ft;
		w[i].id = i;
		w[i].count = ft->run->iters ? ft->run->iters :
			     ft->run->quick ? 200 : 2000;
		if (pthread_create(&w[i].thread, NULL, run_worker, &w[i]))
			ft_die(ft, "no more threads");
	}
	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < n; i++)
		if (w[i].bad[0] && ret == FT_PASS)
			ret = ft_fail(ft, "thread %d: %s", i, w[i].bad);
	if (ret == FT_PASS)
		free(w);
	return ret;
}

/* ---- an endpoint is closed while another one of the process sends to it ---- */

static _Atomic fi_addr_t target;
static atomic_ulong n_sent;

/* Sends to whatever target is, until it is told to stop; what a closed one refuses is fine. */
static void *send_always(void *arg)
{
	struct ft *ft = arg;
	struct fi_cq_tagged_entry e[8];
	struct fi_cq_err_entry ee = { 0 };
	char bytes[64] = { 0 };

	while (!atomic_load(&stop)) {
		fi_addr_t to = atomic_load(&target);

		if (to != FI_ADDR_UNSPEC && !fi_tinject(ft->o.ep, bytes, sizeof(bytes), to, 1))
			atomic_fetch_add(&n_sent, 1);
		if (fi_cq_read(ft->o.cq, e, 8) == -FI_EAVAIL)
			fi_cq_readerr(ft->o.cq, &ee, 0);
	}
	return NULL;
}

/* It takes some of what comes, so that both are connected, and goes while more is coming. */
static int live_and_die(struct ft *ft, const struct ft_case *c)
{
	unsigned long before = atomic_load(&n_sent);
	double end = ft_now() + ft->run->timeout_s;
	struct fi_cq_tagged_entry e;
	struct ft_objs other;
	fi_addr_t addr;

	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &other), "an endpoint");
	FT_CHECK(ft, fi_av_insert(ft->o.av, other.name, 1, &addr, 0, NULL) == 1,
		 "fi_av_insert failed");
	atomic_store(&target, addr);
	while (atomic_load(&n_sent) < before + 20 && ft_now() < end)
		fi_cq_read(other.cq, &e, 1);
	FT_CHECK(ft, atomic_load(&n_sent) >= before + 20, "no sends");
	FT_CHECK(ft, !ft_objs_close(ft, &other), "closing it");
	atomic_store(&target, FI_ADDR_UNSPEC);
	return FT_PASS;
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#else
#define THREAD_SANITIZER 0
#endif

static int closed_meanwhile(struct ft *ft, const struct ft_case *c)
{
	int i, n = ft->run->quick ? 40 : 400, ret = FT_PASS;
	pthread_t thread;

	if (THREAD_SANITIZER && ft_lnx_over_shm(ft))
		return ft_skip(ft, "the core is not compiled with it, and it does not see how "
				   "that orders what two threads do to the same shared memory");
	ft_barrier(ft);
	if (ft->rank)
		return FT_PASS;
	atomic_store(&stop, false);
	atomic_store(&target, FI_ADDR_UNSPEC);
	if (pthread_create(&thread, NULL, send_always, ft))
		ft_die(ft, "no more threads");
	for (i = 0; i < n && ret == FT_PASS; i++)
		ret = live_and_die(ft, c);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ft->spoiled = true;		/* sends to closed ones may end later */
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "threads-2", .fn = threads, .a = 2,
		  .cfg.threading = FI_THREAD_SAFE },
		{ .name = "threads-4", .fn = threads, .a = 4,
		  .cfg.threading = FI_THREAD_SAFE },
		{ .name = "threads-8", .fn = threads, .a = 8, .slow = true,
		  .cfg.threading = FI_THREAD_SAFE },
		{ .name = "closed-meanwhile", .fn = closed_meanwhile,
		  .cfg.threading = FI_THREAD_SAFE },
	};

	return ft_main(argc, argv, "many threads on one endpoint", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
