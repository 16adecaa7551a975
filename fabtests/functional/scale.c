/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Very many peers in an address vector: the memory they need before they are
 * used, and that the endpoint still works.
 */
#include "../common/ft.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH		1000
/* The limits of lnx for a peer that was never used, and for memory needed once. */
#define PEER_BYTES	128
#define SLACK_BYTES	(1 << 20)
/* Inserting the last tenth of the peers may take this many times as much of the processor's
 * time as the first.  It is far more than caches cause, and far less than any growth with the
 * number of peers. */
#define SLOWER_MAX	50

/* Without what other programs take: the whole of a tenth is about a millisecond. */
static double cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

/* Insert [from, to) and keep their addresses.  FT_SKIP: there is no room for more. */
static int insert(struct ft *ft, bool local, uint64_t from, uint64_t to,
		  fi_addr_t *addr)
{
	static unsigned char names[BATCH * FT_NAME_MAX];
	uint64_t i, n;
	int ret;

	for (; from < to; from += n) {
		n = to - from < BATCH ? to - from : BATCH;
		for (i = 0; i < n; i++)
			if (ft_fake_name(ft, from + i, local,
					 names + i * ft->o.name_len))
				return ft_skip(ft, "no way known to make "
					       "addresses");
		ret = fi_av_insert(ft->o.av, names, n, addr + from, 0, NULL);
		FT_CHECK(ft, ret == (int)n, "fi_av_insert of %llu after %llu "
			 "returned %d", (unsigned long long)n,
			 (unsigned long long)from, ret);
	}
	return FT_PASS;
}

/* The address of a peer is found, and inserting it again gives the same one. */
static int look(struct ft *ft, bool local, uint64_t n, fi_addr_t addr)
{
	unsigned char name[FT_NAME_MAX], got[FT_NAME_MAX];
	size_t len = sizeof(got);
	fi_addr_t again;

	if (ft_fake_name(ft, n, local, name))
		return FT_SKIP;
	FT_CALL(ft, fi_av_lookup(ft->o.av, addr, got, &len));
	FT_CHECK(ft, len == ft->o.name_len && !memcmp(got, name, len),
		 "peer %llu has another name", (unsigned long long)n);
	if (ft_is_bare(ft, "tcp") || ft_is_bare(ft, "tcp;ofi_rxm"))
		return FT_PASS;
	FT_CHECK(ft, fi_av_insert(ft->o.av, name, 1, &again, 0, NULL) == 1 &&
		 again == addr, "peer %llu was inserted again as another",
		 (unsigned long long)n);
	FT_CALL(ft, fi_av_remove(ft->o.av, &again, 1, 0));
	return FT_PASS;
}

/* One message each way. */
static int talk(struct ft *ft)
{
	static char in[8], out[8] = "message";
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank], .buf = in,
		.len = sizeof(in), .tag = 7,
	};

	FT_CALL(ft, ft_recv(ft, rx, &m));
	m.buf = out;
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, tx);
	FT_DONE(ft, rx);
	FT_CHECK(ft, rx->src == ft->addr[!ft->rank], "from %llu",
		 (unsigned long long)rx->src);
	ft_ops_drop(ft);
	return FT_PASS;
}

static int crowd(struct ft *ft, const struct ft_case *c, fi_addr_t *addr)
{
	uint64_t n = c->a, tenth = n / 10, i;
	bool local = c->b, lnx = ft_is_bare(ft, "lnx");
	double t[3], before, bytes;

	FT_TRY(talk(ft));
	before = heap_bytes();
	t[0] = cpu_now();
	FT_TRY(insert(ft, local, 0, tenth, addr));
	t[0] = cpu_now() - t[0];
	FT_TRY(insert(ft, local, tenth, n - tenth, addr));
	t[1] = cpu_now();
	FT_TRY(insert(ft, local, n - tenth, n, addr));
	t[1] = cpu_now() - t[1];
	bytes = heap_bytes() - before;
	if (lnx) {
		/* It is 0 with a sanitizer, whose allocator does not count here. */
		FT_CHECK(ft, bytes <= (double)n * PEER_BYTES + SLACK_BYTES,
			 "%llu peers take %.0f bytes", (unsigned long long)n,
			 bytes);
		FT_CHECK(ft, t[1] <= SLOWER_MAX * t[0], "the last tenth of "
			 "%llu peers took %.4f s, the first %.4f s",
			 (unsigned long long)n, t[1], t[0]);
	}
	for (i = 0; i < n; i += n / 97)
		FT_TRY(look(ft, local, i, addr[i]));
	FT_TRY(talk(ft));
	if (!lnx)
		return FT_PASS;

	/* Removed peers make room for others.  What talk() takes in between does not count: if
	 * the other rank is slow to answer, another rail gets its buffers. */
	before = heap_bytes();
	FT_CALL(ft, fi_av_remove(ft->o.av, addr, n / 2, 0));
	bytes = heap_bytes() - before;
	FT_TRY(talk(ft));
	before = heap_bytes();
	FT_TRY(insert(ft, local, 0, n / 2, addr));
	bytes += heap_bytes() - before;
	FT_CHECK(ft, bytes <= SLACK_BYTES, "half of the peers removed and "
		 "inserted again takes %.0f bytes more", bytes);
	for (i = 0; i < n; i += n / 97)
		FT_TRY(look(ft, local, i, addr[i]));
	return talk(ft);
}

static int crowd_case(struct ft *ft, const struct ft_case *c)
{
	fi_addr_t *addr;
	int ret;

	if (ft_is_bare(ft, "shm"))
		return ft_skip(ft, "no more than 256 peers");
	addr = calloc(c->a, sizeof(*addr));
	if (!addr)
		return ft_fail(ft, "out of memory");
	ret = crowd(ft, c, addr);
	free(addr);
	ft->spoiled = true;		/* a new AV for the next case */
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "remote-100000", .fn = crowd_case, .a = 100000 },
		{ .name = "absent-locals-100000", .fn = crowd_case,
		  .a = 100000, .b = true },
		{ .name = "remote-1000000", .fn = crowd_case, .a = 1000000,
		  .slow = true },
	};

	return ft_main(argc, argv, "very many peers", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
