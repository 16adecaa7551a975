/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the measuring programs share: the same source, calls and objects over
 * every provider, so that only the provider makes a difference.  Each result is
 * one line on stdout, which bench/run collects: NAME SIZE MEDIAN_NS MIN_NS
 */
#ifndef BENCH_H
#define BENCH_H

#include "../common/ft.h"

#define BENCH_MAX_REPEATS	101

struct bench {
	struct ft *ft;
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	bool tagged;			/* -m tagged (default) or -m msg */
	size_t inject_size;
	int repeats;
	double slice_s;			/* time for one repeat of one size */
	uint64_t rx_done, tx_done;	/* completions since bench_reset */
};

/* The sizes to measure: without -s these, up to BENCH_MAX_SIZE.  Valid once
 * bench_open has returned. */
#define BENCH_MAX_SIZE	(4u << 20)
extern size_t bench_sizes[];
extern int bench_nsizes;
/* Room for every size, also for one just above the largest. */
#define BENCH_BUF_BYTES	(BENCH_MAX_SIZE + 4096u)

/* Open, exchange, and set defaults.  If that fails the program ends, with 77 if
 * the provider is not there. */
void bench_open(struct bench *b, struct ft *ft, uint64_t caps);
void bench_close(struct bench *b);
void *bench_buf(struct ft *ft, size_t len);

/* Contexts distinguish sends from receives, without the flags. */
extern struct fi_context2 bench_tx[], bench_rx[];
#define BENCH_SLOTS	1024
#define BENCH_TAG	0x17ULL

double bench_median(double *v, int n);
void bench_print(struct ft *ft, const char *name, size_t size, double *ns,
		 int n);

/* End the program with the error entry at the head of the queue. */
void bench_cq_error(struct bench *b, ssize_t ret)
	__attribute__((cold, noreturn));

/*
 * Read the queue once, as FI_CQ_FORMAT_TAGGED: message-passing libraries use
 * that.
 */
static inline void bench_poll(struct bench *b)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t i, n = fi_cq_read(b->cq, e, 8);

	if (n == -FI_EAGAIN)
		return;
	if (__builtin_expect(n < 0, 0))
		bench_cq_error(b, n);
	for (i = 0; i < n; i++) {
		if ((struct fi_context2 *)e[i].op_context < bench_rx +
		    BENCH_SLOTS && (struct fi_context2 *)e[i].op_context >=
		    bench_rx)
			b->rx_done++;
		else
			b->tx_done++;
	}
}

static inline void bench_recv(struct bench *b, void *buf, size_t len,
			      uint64_t tag, unsigned slot)
{
	ssize_t ret;

	do {
		ret = b->tagged ?
			fi_trecv(b->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, 0,
				 &bench_rx[slot]) :
			fi_recv(b->ep, buf, len, NULL, FI_ADDR_UNSPEC,
				&bench_rx[slot]);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (__builtin_expect(ret != 0, 0))
		ft_die(b->ft, "receive: %s", fi_strerror((int)-ret));
}

/* Returns how many completions to expect: none if it was injected. */
static inline unsigned bench_send(struct bench *b, const void *buf, size_t len,
				  uint64_t tag, unsigned slot)
{
	bool inject = len <= b->inject_size;
	ssize_t ret;

	do {
		if (inject)
			ret = b->tagged ?
				fi_tinject(b->ep, buf, len, b->peer, tag) :
				fi_inject(b->ep, buf, len, b->peer);
		else
			ret = b->tagged ?
				fi_tsend(b->ep, buf, len, NULL, b->peer, tag,
					 &bench_tx[slot]) :
				fi_send(b->ep, buf, len, NULL, b->peer,
					&bench_tx[slot]);
		if (ret == -FI_EAGAIN)
			bench_poll(b);
	} while (ret == -FI_EAGAIN);
	if (__builtin_expect(ret != 0, 0))
		ft_die(b->ft, "send: %s", fi_strerror((int)-ret));
	return !inject;
}

#endif
