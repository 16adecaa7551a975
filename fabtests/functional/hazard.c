/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Helpers of hazards.c, deaf.c and peer_dead.c; see hazard.h. */
#include "hazard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

unsigned char *outs[SLOTS], *ins;

void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "# out of memory\n");
		exit(1);
	}
	return p;
}

void prepare(struct ft *ft, size_t in_bytes)
{
	static size_t have;
	int i;

	for (i = 0; i < SLOTS; i++) {
		if (!outs[i])
			outs[i] = need(malloc(SLOT));
		pattern_fill(outs[i], SLOT, ft->run->seed, (unsigned)ft->rank,
			     (uint64_t)i);
	}
	if (in_bytes > have) {
		free(ins);
		ins = need(malloc(in_bytes));
		have = in_bytes;
	}
	if (in_bytes)
		memset(ins, 0, in_bytes);
}

int check(struct ft *ft, const struct ft_op *op, const void *buf, size_t len,
	  int sender, uint64_t seq)
{
	long long at;

	FT_CHECK(ft, !op->err, "message %llu: error completion: %s",
		 (unsigned long long)seq, fi_strerror(op->err));
	FT_CHECK(ft, op->len == len, "message %llu: %zu bytes, not %zu",
		 (unsigned long long)seq, op->len, len);
	at = pattern_check(buf, len, ft->run->seed, (unsigned)sender,
			   seq % SLOTS);
	FT_CHECK(ft, at < 0, "message %llu of %zu bytes: wrong byte at %lld",
		 (unsigned long long)seq, len, at);
	return FT_PASS;
}

double time_limit(const struct ft *ft)
{
	double s = ft->run->timeout_s;

	return (ft_is_bare(ft, "lnx") && !ft->todo[0]) || s < 2 ? s : 2;
}

int missing(struct ft *ft, struct ft_op *const *op, int n, double seconds)
{
	double end = ft_now() + seconds;
	int i, first = 0, left = 0, spin = 0;

	for (;;) {
		while (first < n && op[first]->done)
			first++;
		if (first == n)
			return 0;
		if (++spin % 64 == 0 && ft_now() > end)
			break;
		ft_progress(ft);
	}
	for (i = first; i < n; i++)
		left += !op[i]->done;
	return left;
}

int all_done(struct ft *ft, struct ft_op *const *op, int n,
		    const char *what)
{
	int left = missing(ft, op, n, ft->run->timeout_s);

	FT_CHECK(ft, !left, "%d of %d %s without a completion", left, n, what);
	return FT_PASS;
}

struct ft_op *post(struct ft *ft, bool tagged, int from, uint64_t tag,
		   void *buf, size_t len)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = tagged, .buf = buf, .len = len, .tag = tag,
		.addr = from < 0 ? FI_ADDR_UNSPEC : ft->addr[from],
	};

	return ft_recv(ft, op, &m) ? NULL : op;
}

struct ft_op *put(struct ft *ft, bool tagged, int to, uint64_t tag,
		  uint64_t seq, size_t len)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = tagged, .addr = ft->addr[to],
		.buf = outs[seq % SLOTS], .len = len, .tag = tag,
	};

	return ft_send(ft, op, &m) ? NULL : op;
}

void count_each_page(void)
{
	/* A kernel without it has no huge pages to spare either. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

bool reads_memory(pid_t pid, const void *at)
{
	const char *off = getenv("FI_SHM_DISABLE_CMA");
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)at, 1 };

	return (!off || !atoi(off)) &&
	       process_vm_readv(pid, &here, 1, &there, 1, 0) == 1;
}

bool all_read_memory(struct ft *ft)
{
	struct { pid_t pid; const void *at; } mine, all[OOB_MAX_RANKS];
	int can = 1, cans[OOB_MAX_RANKS], i;

	mine.pid = getpid();
	mine.at = ft;
	if (oob_allgather(&ft->oob, &mine, all, sizeof(mine)))
		return false;
	for (i = 0; i < ft->n; i++)
		can &= reads_memory(all[i].pid, all[i].at);
	if (oob_allgather(&ft->oob, &can, cans, sizeof(can)))
		return false;
	for (i = 0; i < ft->n; i++)
		can &= cans[i];
	return can;
}
