/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_THREAD_SAFE and remote memory: threads of both ranks write and read each
 * other's memory, while other threads register and close memory and open and
 * close endpoints of the same domain.  Memory whose registration is closed
 * belongs to the application alone: nothing accesses it any more.
 */
#include "../common/rma.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS	4
#define SLICE		(1 << 20)
#define FLEETING	8		/* registrations that are opened and closed, */
#define FLEETING_BYTES	20000		/* of this many bytes, */
#define FLEETING_KEY	0x1000000ull	/* with keys from here on */
/* How often threads access them in a quick run.  A read of memory that is
 * closed ends tcp's connection: 40 ms each time.  A hundred accesses meet
 * everything that can happen: meanwhile memory was opened and closed some
 * thousand times, and only the moment within an access differs. */
#define FLEETING_QUICK	100
#define FLEETING_ALL	2000

struct slot {
	struct fi_context2 ctx;		/* first */
	atomic_int done;
	atomic_int err;
};

struct worker {
	struct ft *ft;
	pthread_t thread;
	int id;
	int (*work)(struct worker *w);
	uint64_t count;
	struct slot slot;
	char bad[200];
};

/* A thread failed; the working threads have ended. */
static atomic_bool stop, over;

#define BAD(w, ...)							\
	(snprintf((w)->bad, sizeof((w)->bad), __VA_ARGS__), -1)

/* Handles a completion, whichever thread it belongs to. */
static int poll_queue(struct worker *w)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee = { 0 };
	struct slot *s;
	ssize_t n = fi_cq_read(w->ft->o.cq, &e, 1);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL) {
		n = fi_cq_readerr(w->ft->o.cq, &ee, 0);
		if (n == -FI_EAGAIN)
			return 0;	/* another thread was faster */
	}
	if (n < 0)
		return BAD(w, "fi_cq_read: %s", fi_strerror((int)-n));
	s = ee.err ? ee.op_context : e.op_context;
	if (!s)
		return BAD(w, "a completion without an operation, error %d", ee.err);
	atomic_store(&s->err, ee.err);
	if (atomic_fetch_add(&s->done, 1))
		return BAD(w, "completed twice");
	return 0;
}

/* One operation, from start to completion: its error, or -1. */
static int now(struct worker *w, const struct ft_rma *r)
{
	double end = ft_now() + w->ft->run->timeout_s;
	ssize_t ret;

	atomic_store(&w->slot.done, 0);
	atomic_store(&w->slot.err, 0);
	while ((ret = ft_try_rma(w->ft->o.ep, &w->slot, r)) == -FI_EAGAIN)
		if (poll_queue(w) || atomic_load(&stop))
			return -1;
	if (ret)
		return BAD(w, "%s: %s", ft_rma_names[r->call],
			   fi_strerror((int)-ret));
	while (!atomic_load(&w->slot.done)) {
		if (poll_queue(w) || atomic_load(&stop))
			return -1;
		sched_yield();
		if (ft_now() > end)
			return BAD(w, "%s: no completion",
				   ft_rma_names[r->call]);
	}
	return atomic_load(&w->slot.err);
}

/* ---- threads ---- */

/* Write to the other rank's memory, and read it back. */
static int traffic(struct worker *w)
{
	static const size_t sizes[] = { 8, 300, 5000, 9000, 16384, 60000,
					SLICE / 2 };
	struct ft *ft = w->ft;
	size_t slice = (size_t)w->id * SLICE;
	unsigned char *out = ft_mem.local + slice, *in = out + SLICE / 2;
	uint64_t i;

	for (i = 0; i < w->count; i++) {
		size_t len = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
		struct ft_rma r;
		int err;

		pattern_fill(out, len, ft->run->seed, (unsigned)w->id, i);
		ft_rma_set(ft, &r, FT_WRITEMSG, out, len, &ft_mem.lmr,
			   &ft_mem.tmr, !ft->rank, slice);
		r.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
		err = now(w, &r);
		if (!err) {
			ft_rma_set(ft, &r, FT_READ, in, len, &ft_mem.lmr,
				   &ft_mem.tmr, !ft->rank, slice);
			err = now(w, &r);
		}
		if (err < 0)
			return -1;
		if (err)
			return BAD(w, "%zu bytes: %s", len, fi_strerror(err));
		if (pattern_check(in, len, ft->run->seed, (unsigned)w->id,
				  i) >= 0)
			return BAD(w, "%zu bytes were read back wrong", len);
	}
	return 0;
}

/* Access memory that may be open or closed. */
static int reach(struct worker *w)
{
	static const size_t sizes[] = { 8, 300, 5000, 8000, 16000 };
	struct ft *ft = w->ft;
	unsigned char *out = ft_mem.local + (size_t)w->id * SLICE;
	unsigned short rnd[3] = { (unsigned short)ft->run->seed,
				  (unsigned short)w->id, 7 };
	uint64_t i, hits = 0;

	memset(out, 0x77, FLEETING_BYTES);
	/* On a busy machine the owner of the memory may not run for a long time. */
	for (i = 0; i < w->count || (!hits && i < 20 * w->count); i++) {
		size_t len = sizes[(unsigned)nrand48(rnd) % 5];
		int err;
		struct ft_rma r = {
			.addr = ft->addr[!ft->rank], .niov = 1, .nrma = 1,
			.iov[0] = { .iov_base = out },
			.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
		};

		r.call = nrand48(rnd) & 1 ? FT_READMSG : FT_WRITEMSG;
		if (r.call == FT_WRITEMSG && len > 8000)
			len = 8000;	/* in frames, which the target checks */
		r.iov[0].iov_len = r.rma[0].len = len;
		r.rma[0].key = FLEETING_KEY + (unsigned)nrand48(rnd) % FLEETING;
		r.rma[0].addr = (unsigned)nrand48(rnd) % 4000;
		err = now(w, &r);
		if (err < 0)
			return -1;
		if (err && err != FI_ENOKEY && err != FI_EACCES)
			return BAD(w, "%s of memory that closes: %s",
				   ft_rma_names[r.call], fi_strerror(err));
		hits += !err;
	}
	return hits ? 0 : BAD(w, "the memory was never open");
}

static int reg_close(struct worker *w, struct fid_mr *mr)
{
	double end = ft_now() + w->ft->run->timeout_s;
	int ret;

	while ((ret = fi_close(&mr->fid)) == -FI_EBUSY) {
		if (poll_queue(w) || atomic_load(&stop))
			return -1;
		if (ft_now() > end)
			return BAD(w, "a registration stays busy");
	}
	return ret ? BAD(w, "fi_close of memory: %s", fi_strerror(-ret)) : 0;
}

/* Opens and closes memory; after closing its content must not change. */
static int fleeting(struct worker *w)
{
	struct fid_mr *mr[FLEETING] = { NULL };
	unsigned char *buf[FLEETING];
	unsigned i = 0, k, n = 0;
	int ret = 0;

	while (!ret && !atomic_load(&stop) && !atomic_load(&over)) {
		k = i++ % FLEETING;
		if (mr[k]) {
			ret = reg_close(w, mr[k]);
			mr[k] = NULL;
			if (ret)
				break;
			memset(buf[k], 0x33, FLEETING_BYTES);
			sched_yield();
			for (n = 0; n < FLEETING_BYTES; n++)
				if (buf[k][n] != 0x33)
					ret = BAD(w, "closed memory changed");
			free(buf[k]);
			continue;
		}
		buf[k] = calloc(1, FLEETING_BYTES);
		if (!buf[k])
			ft_die(w->ft, "out of memory");
		ret = fi_mr_reg(w->ft->o.domain, buf[k], FLEETING_BYTES,
				FT_MR_ACCESS, 0, FLEETING_KEY + k, 0, &mr[k],
				NULL);
		if (ret)
			ret = BAD(w, "fi_mr_reg: %s", fi_strerror(-ret));
		if (i % (3 * FLEETING + 1) == 0)
			poll_queue(w);
	}
	for (k = 0; k < FLEETING; k++)
		if (mr[k] && !reg_close(w, mr[k]))
			free(buf[k]);
	return ret;
}

/* Opens and closes endpoints of the same domain. */
static int endpoints(struct worker *w)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct ft *ft = w->ft;

	while (!atomic_load(&stop) && !atomic_load(&over)) {
		struct fid_ep *ep;
		struct fid_cq *cq;
		struct fid_av *av;
		struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
		int ret;

		if (fi_cq_open(ft->o.domain, &attr, &cq, NULL) ||
		    fi_av_open(ft->o.domain, &av_attr, &av, NULL) ||
		    fi_endpoint(ft->o.domain, ft->o.info, &ep, NULL))
			return BAD(w, "another endpoint cannot be opened");
		ret = fi_ep_bind(ep, &av->fid, 0);
		if (!ret)
			ret = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
		if (!ret)
			ret = fi_enable(ep);
		if (ret)
			return BAD(w, "enabling another endpoint: %s",
				   fi_strerror(-ret));
		if (fi_close(&ep->fid) || fi_close(&cq->fid) ||
		    fi_close(&av->fid))
			return BAD(w, "another endpoint cannot be closed");
	}
	return 0;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	if (w->work(w))
		atomic_store(&stop, true);
	return NULL;
}

/* ---- cases ---- */

/* c->a threads of traffic (or of access to closing memory, if b), and the others. */
static int threads(struct ft *ft, const struct ft_case *c)
{
	int i, n = (int)c->a, all = n, ret = FT_PASS;
	struct worker *w = calloc((size_t)n + 2, sizeof(*w));

	FT_CHECK(ft, w, "out of memory");
	atomic_store(&stop, false);
	atomic_store(&over, false);
	for (i = 0; i < n; i++)
		w[i].work = c->b ? reach : traffic;
	w[all++].work = fleeting;
	if (c->c)
		w[all++].work = endpoints;
	/* From here on the threads handle completions. */
	ft_barrier(ft);
	for (i = 0; i < all; i++) {
		w[i].ft = ft;
		w[i].id = i;
		w[i].count = ft->run->iters ? ft->run->iters :
			     ft->run->quick ? c->b ? FLEETING_QUICK : 100 :
			     c->b ? FLEETING_ALL : 1000;
		if (pthread_create(&w[i].thread, NULL, run_worker, &w[i]))
			ft_die(ft, "no more threads");
	}
	for (i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	/* The other rank's threads still access memory that is opened and
	 * closed here. */
	if (c->b)
		ft_barrier(ft);
	atomic_store(&over, true);
	for (; i < all; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < all; i++)
		if (w[i].bad[0] && ret == FT_PASS)
			ret = ft_fail(ft, "thread %d: %s", i, w[i].bad);
	free(w);
	return ret;
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "other providers pick keys themselves");
	if (c->b && ft->run->mr_basic)
		return ft_skip(ft, "only for keys that the case picks");
	if (c->b && strstr(ft->o.info->domain_attr->name, "shm"))
		return ft_skip(ft, "shm does not know when memory is closed");
	return ft_with_mem(ft, c, MAX_THREADS * SLICE);
}

int main(int argc, char **argv)
{
#define CASE(n, ...)							\
	{ .name = n, .fn = with_mem, .body = threads,			\
	  .cfg = { .threading = FI_THREAD_SAFE, .caps = FT_RMA_CAPS,	\
		   .mr_mode = 0 }, __VA_ARGS__ }
	static const struct ft_case cases[] = {
		CASE("registering-1", .a = 1),
		CASE("registering-4", .a = 4),
		CASE("endpoints-1", .a = 1, .c = 1),
		CASE("endpoints-3", .a = 3, .c = 1),
		CASE("memory-that-goes-1", .a = 1, .b = 1),
		CASE("memory-that-goes-3", .a = 3, .b = 1),
		CASE("all-2", .a = 2, .b = 1, .c = 1),
	};

	return ft_main(argc, argv, "many threads and remote memory", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
