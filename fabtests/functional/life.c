/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lives of endpoints: one that sends to itself, one opened again and again, two
 * at once, and one that gets far more messages than it has receives for.
 */
#include "../common/ft.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_BYTES	(1 << 20)

static unsigned char sbuf[MAX_BYTES], rbuf[MAX_BYTES];

static int exchange(struct ft *ft, fi_addr_t to, unsigned from, size_t len,
		    uint64_t seq)
{
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = to, .buf = rbuf, .len = len,
		.tag = seq,
	};

	memset(rbuf, 0, len);
	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.buf = sbuf;
	pattern_fill(sbuf, len, ft->run->seed, (unsigned)ft->rank, seq);
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	FT_CHECK(ft, rx->len == len && pattern_check(rbuf, len, ft->run->seed,
						     from, seq) < 0,
		 "message %llu of %zu bytes arrived wrong",
		 (unsigned long long)seq, len);
	return FT_PASS;
}

static int to_self(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 0, 8, 4096, 4097, 20000, 200000,
					MAX_BYTES };
	struct ft_op *tx, *rx;
	size_t i;

	(void)c;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		FT_TRY(exchange(ft, ft->addr[ft->rank], (unsigned)ft->rank,
				sizes[i], i));
	/* The same as unexpected messages. */
	for (i = 0; i < 3; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[ft->rank],
			.buf = sbuf, .len = sizes[i], .tag = 99,
		};

		tx = ft_op_new(ft);
		rx = ft_op_new(ft);
		FT_CALL(ft, ft_send(ft, tx, &m));
		ft_linger(ft, 0.01);
		m.buf = rbuf;
		FT_CALL(ft, ft_recv(ft, rx, &m));
		FT_DONE(ft, tx);
		FT_DONE(ft, rx);
		FT_CHECK(ft, rx->len == sizes[i], "length %zu", rx->len);
	}
	return FT_PASS;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The number of mappings of shared memory files that we have. */
static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/dev/shm/") != NULL;
	fclose(f);
	return n;
}

/* Defined with a sanitizer, whose allocator does not count in mallinfo. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/*
 * Bytes in use.  The resident size says little: whether the allocator returns
 * the megabytes of a closed endpoint, or keeps them for the next one, depends
 * on which small block is above them.
 */
static size_t bytes_in_use(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
#if defined(__GLIBC__)
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
#else
	return 0;
#endif
}

struct cycles {
	struct ft *ft;
	const struct ft_case *c;
	uint64_t from, to;
	int ret;
};

static int some_cycles(struct ft *ft, const struct cycles *cy)
{
	struct ft_cfg cfg = cy->c->cfg;
	uint64_t i;

	cfg.alone = false;
	for (i = cy->from; i < cy->to; i++) {
		/* One guard for the whole loop would find a hang too late. */
		ft_guard(ft, cy->c->name);
		if (ft_open(ft, &cfg))
			return FT_FAIL;
		FT_TRY(exchange(ft, ft->addr[!ft->rank], !ft->rank,
				i % 4 ? 64 : 50000, i));
		ft_barrier(ft);
		if (ft_close(ft))
			return FT_FAIL;
	}
	return FT_PASS;
}

static void *cycles_thread(void *arg)
{
	struct cycles *cy = arg;

	cy->ret = some_cycles(cy->ft, cy);
	return NULL;
}

/* Runs in a thread: what the allocator caches for a thread, which counts as in
 * use, is freed when it ends. */
static int run_cycles(struct ft *ft, const struct ft_case *c, uint64_t from,
		      uint64_t to)
{
	struct cycles cy = { .ft = ft, .c = c, .from = from, .to = to };
	pthread_t thread;

	if (pthread_create(&thread, NULL, cycles_thread, &cy))
		return ft_fail(ft, "no thread");
	pthread_join(thread, NULL);
	if (cy.ret == FT_PASS)
		ft->cfg = c->cfg;
	return cy.ret;
}

/*
 * What the core providers leak in a cycle: shm keeps the name of each endpoint
 * until the program ends, tcp leaks a block of 8 bytes when both sides
 * connected at once.
 */
#define SHM_KEEPS_BYTES	288
#define MAY_GROW_BYTES	48

/*
 * Open, connect, exchange, close, again and again: nothing may leak.  After a
 * quarter of the cycles everything that is allocated once has been.
 */
static int cycles(struct ft *ft, const struct ft_case *c)
{
	uint64_t n = ft->run->iters ? ft->run->iters :
		     ft->run->quick ? 20 : c->a, first = n / 4 + 1;
	long long grown, limit = MAY_GROW_BYTES;
	size_t used;
	int fds, maps;

	FT_TRY(run_cycles(ft, c, 0, first));
	fds = count_fds();
	maps = count_maps();
	used = bytes_in_use();
	FT_TRY(run_cycles(ft, c, first, n));
	grown = (long long)(bytes_in_use() - used);
	FT_CHECK(ft, count_fds() <= fds, "%d descriptors after a quarter, %d "
		 "at the end", fds, count_fds());
	FT_CHECK(ft, count_maps() <= maps, "%d mappings of shared memory after "
		 "a quarter, %d at the end", maps, count_maps());
	ft_known(ft, NULL, "memory is lost");
	if (ft_lnx_over_shm(ft))
		limit += SHM_KEEPS_BYTES;
	FT_CHECK(ft, grown <= limit * (long long)(n - first), "%lld bytes more "
		 "in use after %llu cycles, %zu at first", grown,
		 (unsigned long long)(n - first), used);
	return FT_PASS;
}

/* Two endpoints of one domain with one AV and one CQ. */
static int two_endpoints(struct ft *ft, const struct ft_case *c)
{
	struct name { uint64_t len; unsigned char b[FT_NAME_MAX]; } mine,
		all[2];
	struct fid_ep *first = ft->o.ep, *second;
	fi_addr_t to[2], src[2];
	int i, ret = FT_PASS;

	(void)c;
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &second, NULL));
	mine.len = sizeof(mine.b);
	if (fi_ep_bind(second, &ft->o.av->fid, 0) ||
	    fi_ep_bind(second, &ft->o.cq->fid, FI_TRANSMIT | FI_RECV) ||
	    fi_enable(second) ||
	    fi_getname(&second->fid, mine.b, &mine.len)) {
		fi_close(&second->fid);
		mine.len = 0;
	}
	FT_CHECK(ft, !oob_allgather(&ft->oob, &mine, all, sizeof(mine)),
		 "lost the other rank");
	FT_CHECK(ft, all[0].len && all[1].len, "a second endpoint could not "
		 "be opened");
	to[0] = ft->addr[!ft->rank];
	if (fi_av_insert(ft->o.av, all[!ft->rank].b, 1, &to[1], 0, NULL) != 1)
		ret = ft_fail(ft, "fi_av_insert failed");
	/* Each endpoint to each: the receiver reports the right source. */
	for (i = 0; i < 4 && ret == FT_PASS; i++) {
		struct fid_ep *from = i & 1 ? second : first;
		struct fid_ep *at = i & 2 ? second : first;
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = rbuf,
			.len = 3000, .tag = (uint64_t)i,
		};

		ft->o.ep = at;
		ret = ft_recv(ft, rx, &m) ? ft_fail(ft, "receive") : FT_PASS;
		m.buf = sbuf;
		m.addr = to[i >> 1];
		pattern_fill(sbuf, 3000, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		ft->o.ep = from;
		if (ret == FT_PASS && ft_send(ft, tx, &m))
			ret = ft_fail(ft, "send");
		if (ret == FT_PASS)
			ret = ft_must_complete(ft, tx, FT_AT);
		if (ret == FT_PASS)
			ret = ft_must_complete(ft, rx, FT_AT);
		if (ret == FT_PASS &&
		    pattern_check(rbuf, 3000, ft->run->seed, !ft->rank,
				  (uint64_t)i) >= 0)
			ret = ft_fail(ft, "pair %d: wrong data", i);
		src[0] = rx->src;
		if (ret == FT_PASS && src[0] != to[i & 1])
			ret = ft_fail(ft, "pair %d: source %lld, not %lld", i,
				      (long long)src[0],
				      (long long)to[i & 1]);
	}
	ft->o.ep = first;
	ft_barrier(ft);
	FT_CALL(ft, fi_close(&second->fid));
	if (ret != FT_PASS)
		return ret;
	/* The first one still works. */
	return exchange(ft, to[0], !ft->rank, 64, 1000);
}

static int both_ways(struct ft *ft, uint64_t seq)
{
	static const size_t sizes[] = { 8, 4097, 20000, MAX_BYTES };
	size_t i;

	for (i = 0; i < 4; i++)
		FT_TRY(exchange(ft, ft->addr[!ft->rank], !ft->rank, sizes[i],
				seq + i));
	return FT_PASS;
}

/*
 * A process that was forked from rank 0 closes the endpoint: its own copy, at
 * once.  The endpoint goes on.
 */
static int closed_by_child(struct ft *ft, const struct ft_case *c)
{
	double start;
	int status;
	pid_t pid;

	(void)c;
	if (!ft->opts.prov || strcmp(ft->opts.prov, "lnx"))
		return ft_skip(ft, "not over lnx");
	FT_TRY(both_ways(ft, 0));
	if (!ft->rank) {
		start = ft_now();
		pid = fork();
		FT_CHECK(ft, pid >= 0, "no process");
		if (!pid) {
			alarm(20);
			_exit(ft_objs_close(ft, &ft->o) != 0);
		}
		FT_CHECK(ft, waitpid(pid, &status, 0) == pid && !status,
			 "the child closes: status %x", status);
		FT_CHECK(ft, ft_now() - start < 10, "it took %.1f s",
			 ft_now() - start);
	}
	ft_barrier(ft);
	return both_ways(ft, 10);
}

/*
 * The receiver is not ready for a long time: one side or the other must keep
 * everything that is sent, and it must arrive in order.
 */
static int overrun(struct ft *ft, const struct ft_case *c)
{
	uint64_t i, n = ft->run->iters ? ft->run->iters :
			ft->run->quick ? 5000 : c->a;
	size_t len = c->b;
	struct ft_op *op[64];
	int k;

	for (k = 0; k < 64; k++)
		op[k] = ft_op_new(ft);
	if (ft->rank) {
		for (i = 0; i < n; i++) {
			unsigned char *at = sbuf + (i % 64) * 8192;
			struct ft_msg m = {
				.tagged = true, .addr = ft->addr[0],
				.buf = at, .len = len, .tag = 5,
			};

			k = (int)(i % 64);
			if (i >= 64)
				FT_DONE(ft, op[k]);
			ft_op_reset(op[k]);
			pattern_fill(at, len, ft->run->seed, 1, i);
			FT_CALL(ft, ft_send(ft, op[k], &m));
		}
		for (k = 0; k < 64; k++)
			FT_DONE(ft, op[k]);
		return FT_PASS;
	}
	/* Progress makes the messages unexpected instead of blocking the sender. */
	ft_linger(ft, ft->run->quick ? 0.2 : 1);
	for (i = 0; i < n; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = i % 2 ? ft->addr[1] :
			FI_ADDR_UNSPEC, .buf = rbuf, .len = 8192, .tag = 5,
		};

		ft_op_reset(op[0]);
		FT_CALL(ft, ft_recv(ft, op[0], &m));
		FT_DONE(ft, op[0]);
		FT_CHECK(ft, op[0]->len == len &&
			 pattern_check(rbuf, len, ft->run->seed, 1, i) < 0,
			 "message %llu is not the one that arrived",
			 (unsigned long long)i);
	}
	return FT_PASS;
}

/* Everything at once, in both directions: 50 messages of every size are under way. */
static int flood(struct ft *ft, const struct ft_case *c)
{
	enum { N = 300 };
	static struct ft_op *rx[N], *tx[N];
	static unsigned char *in[N], *out[N];
	static const size_t sizes[] = { 8, 5000, 100000, 0, 17000, 400000 };
	int i, ret = FT_PASS;

	(void)c;
	for (i = 0; i < N && ret == FT_PASS; i++) {
		size_t len = sizes[i % 6];
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.len = len, .tag = (uint64_t)(N - i),
		};

		rx[i] = ft_op_new(ft);
		in[i] = calloc(1, len + 1);
		m.buf = in[i];
		if (!in[i] || ft_recv(ft, rx[i], &m))
			ret = ft_fail(ft, "receive %d", i);
	}
	for (i = N - 1; i >= 0 && ret == FT_PASS; i--) {
		size_t len = sizes[i % 6];
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.len = len, .tag = (uint64_t)(N - i),
		};

		tx[i] = ft_op_new(ft);
		out[i] = malloc(len + 1);
		m.buf = out[i];
		if (!out[i]) {
			ret = ft_fail(ft, "out of memory");
			break;
		}
		pattern_fill(out[i], len, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
		if (ft_send(ft, tx[i], &m))
			ret = ft_fail(ft, "send %d", i);
	}
	for (i = 0; i < N && ret == FT_PASS; i++) {
		size_t len = sizes[i % 6];

		ret = ft_must_complete(ft, tx[i], FT_AT);
		if (ret == FT_PASS)
			ret = ft_must_complete(ft, rx[i], FT_AT);
		if (ret == FT_PASS && (rx[i]->len != len ||
		    pattern_check(in[i], len, ft->run->seed, !ft->rank,
				  (uint64_t)i) >= 0))
			ret = ft_fail(ft, "message %d is wrong", i);
	}
	if (ret != FT_PASS)
		return ret;	/* buffers may still be in use: do not free them */
	for (i = 0; i < N; i++) {
		free(in[i]);
		free(out[i]);
	}
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "to-self", .fn = to_self, .ranks = 1 },
		{ .name = "two-endpoints", .fn = two_endpoints },
		{ .name = "closed-by-child", .fn = closed_by_child },
		{ .name = "closed-by-child-wait", .fn = closed_by_child,
		  .cfg.wait = FI_WAIT_FD },
		{ .name = "closed-by-child-auto", .fn = closed_by_child,
		  .cfg.automatic = true },
		{ .name = "flood", .fn = flood },
		{ .name = "overrun-8", .fn = overrun, .a = 100000, .b = 8 },
		{ .name = "overrun-3000", .fn = overrun, .a = 20000,
		  .b = 3000 },
		{ .name = "overrun-8000", .fn = overrun, .a = 5000,
		  .b = 8000 },
		{ .name = "cycles", .fn = cycles, .a = 1000,
		  .cfg.alone = true },
	};

	return ft_main(argc, argv, "lives of endpoints (-I: cycles, messages)",
		       cases, sizeof(cases) / sizeof(cases[0]));
}
