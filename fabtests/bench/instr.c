/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ping-pong of two endpoints in one process and one thread, so that the
 * number of instructions does not depend on scheduling.  bench/run runs it
 * under callgrind with -I N and -I 2N: the difference is N round trips of two
 * messages each.  -s is the size (8).
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct side {
	struct ft_objs o;
	fi_addr_t peer;
	unsigned char *sbuf, *rbuf;
	struct fi_context2 rx, tx;
};

static void die_cq(struct ft *ft, struct side *s, ssize_t n)
{
	struct fi_cq_err_entry ee = { 0 };

	if (n == -FI_EAVAIL)
		fi_cq_readerr(s->o.cq, &ee, 0);
	ft_die(ft, "fi_cq_read: %s, error %s", fi_strerror((int)-n),
	       fi_strerror(ee.err));
}

/* Number of completions; rx tells whether the receive was one of them. */
static int poll_side(struct ft *ft, struct side *s, bool *rx, bool *tx)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t i, n = fi_cq_read(s->o.cq, e, 4);

	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		die_cq(ft, s, n);
	for (i = 0; i < n; i++) {
		if (e[i].op_context == &s->rx)
			*rx = true;
		else
			*tx = true;
	}
	return (int)n;
}

static void post(struct ft *ft, struct side *s, size_t len)
{
	ssize_t ret;

	do {
		ret = fi_trecv(s->o.ep, s->rbuf, len, NULL, FI_ADDR_UNSPEC,
			       BENCH_TAG, 0, &s->rx);
	} while (ret == -FI_EAGAIN);
	if (ret)
		ft_die(ft, "receive: %s", fi_strerror((int)-ret));
}

static void one_way(struct ft *ft, struct side *from, struct side *to,
		    size_t len)
{
	bool inject = len <= from->o.info->tx_attr->inject_size;
	bool got = false, sent = inject, dummy = false;
	ssize_t ret;

	post(ft, to, len);
	do {
		ret = inject ? fi_tinject(from->o.ep, from->sbuf, len,
					  from->peer, BENCH_TAG) :
			fi_tsend(from->o.ep, from->sbuf, len, NULL,
				 from->peer, BENCH_TAG, &from->tx);
		if (ret == -FI_EAGAIN) {	/* while connecting */
			poll_side(ft, from, &dummy, &sent);
			poll_side(ft, to, &got, &dummy);
		}
	} while (ret == -FI_EAGAIN);
	if (ret)
		ft_die(ft, "send: %s", fi_strerror((int)-ret));
	while (!got || !sent) {
		poll_side(ft, to, &got, &dummy);
		if (!sent || !got)
			poll_side(ft, from, &dummy, &sent);
	}
}

int main(int argc, char **argv)
{
	struct ft_cfg cfg = { .caps = FI_MSG | FI_TAGGED };
	static struct side a, b;
	static struct ft ft;
	uint64_t i, n;
	size_t len;
	int ret;

	ft_init(&ft, argc, argv, "two endpoints of one process (-I round "
		"trips, -s size)", 1);
	len = ft.run->size == UINT64_MAX ? 8 : ft.run->size;
	n = ft.run->iters ? ft.run->iters : 1000;
	ret = ft_objs_open(&ft, &cfg, &a.o);
	if (!ret)
		ret = ft_objs_open(&ft, &cfg, &b.o);
	if (ret) {
		fprintf(stderr, "# %s\n", ft.why);
		return ret == -FI_ENODATA ? 77 : 1;
	}
	if (fi_av_insert(a.o.av, b.o.name, 1, &a.peer, 0, NULL) != 1 ||
	    fi_av_insert(b.o.av, a.o.name, 1, &b.peer, 0, NULL) != 1)
		ft_die(&ft, "fi_av_insert failed");
	a.sbuf = bench_buf(&ft, len);
	a.rbuf = bench_buf(&ft, len);
	b.sbuf = bench_buf(&ft, len);
	b.rbuf = bench_buf(&ft, len);
	pattern_fill(a.sbuf, len, ft.run->seed, 0, 1);
	for (i = 0; i < n + 100; i++) {
		one_way(&ft, &a, &b, len);
		one_way(&ft, &b, &a, len);
	}
	if (pattern_check(b.rbuf, len, ft.run->seed, 0, 1) >= 0)
		ft_die(&ft, "wrong data");
	if (ft_objs_close(&ft, &a.o) || ft_objs_close(&ft, &b.o))
		ft_die(&ft, "%s", ft.why);
	printf("instr %zu %llu 0\n", len, (unsigned long long)n);
	ft_fini(&ft);
	return 0;
}
