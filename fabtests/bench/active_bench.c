/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint pays when many peers are in use at once: on the scripted core, without a
 * network, so that ten thousand need no machine that has as many processes.
 *
 * All peers are met first.  Then each in turn gets a message of 64 bytes and answers it,
 * which also acknowledges; at any time all others have exchanged something a moment ago, and
 * an acknowledgement is due to many of them.  Prints
 *
 *	active PEERS: exchange NS, pass waiting NS, pass idle NS, heap BYTES a peer
 *
 * CPU time of one exchange, of the scripted core too; of a pass of progress while a message
 * to each peer waits for its acknowledgement; of a pass when nothing is due from anyone; and
 * what a peer takes that has exchanged messages.  Each is the median of several rounds.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit/fake_core.h"

#define ROUNDS		7
#define EXCHANGES	5000u		/* of a round, at least one with each peer */
#define PASSES		2000u
#define SIZE		64u
#define FIRST_EID	1000u
#define PEERS_MAX	10000u

static struct fake f;
static struct fake_peer peer[PEERS_MAX];
static unsigned npeer;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "active_bench: with %u peers: %s\n", npeer, what);
	exit(1);
}

/* The clock of libc is the script's. */
static double cpu_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

/* What has left reaches its peers. */
static void deliver(void)
{
	struct fake_sent *s;

	while ((s = fake_take(f.core[0]))) {
		struct fake_peer *p = &peer[s->h.dst - FIRST_EID];

		check(s->h.dst >= FIRST_EID && p < peer + npeer, "a frame to a stranger");
		if (s->h.kind == LNX_KIND_HELLO && !s->h.seq && s->h.src != p->theirs) {
			p->theirs = s->h.src;
			p->got = 0;
		}
		if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == p->got)
			p->got++;
		free(s);
	}
}

static void pass_for(uint64_t ns)
{
	uint64_t end = fake_now_ns + ns;

	while (fake_now_ns < end || f.core[0]->in) {
		fake_now_ns += LNX_NS_PER_MS / 10;
		fake_pass(&f);
		deliver();
	}
}

static unsigned completions(void)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t n = fi_cq_read(f.cq, e, 8);

	check(n >= 0 || n == -FI_EAGAIN, "an operation failed");
	return n < 0 ? 0 : (unsigned)n;
}

static void meet_all(void)
{
	unsigned i;

	for (i = 0; i < npeer; i++) {
		fake_peer_init(&f, &peer[i], FIRST_EID + i);
		fake_peer_insert(&f, &peer[i]);
		fake_hello(&f, &peer[i]);
	}
	pass_for(10 * LNX_NS_PER_MS);
	for (i = 0; i < npeer; i++)
		fake_ack(&f, &peer[i]);
	pass_for(10 * LNX_NS_PER_MS);
}

static void exchange(struct fake_peer *p)
{
	static char out[SIZE], in[SIZE];
	unsigned done = 0, tries;

	check(!fi_trecv(f.ep, in, SIZE, NULL, p->addr, 1, 0, NULL), "fi_trecv");
	check(!fi_tsend(f.ep, out, SIZE, NULL, p->addr, 1, NULL), "fi_tsend");
	deliver();
	fake_tag(&f, p, 1, out, SIZE);
	for (tries = 0; done < 2 && tries < 1000; tries++) {
		fake_pass(&f);
		done += completions();
	}
	check(done == 2, "an exchange does not end");
}

/* With every peer in turn, but not in the order in which they were inserted. */
static double exchanges(void)
{
	unsigned n = LNX_MAX(EXCHANGES, npeer), i;
	double start = cpu_ns();

	for (i = 0; i < n; i++)
		exchange(&peer[(uint64_t)i * 7919 % npeer]);
	return (cpu_ns() - start) / n;
}

static double passes(void)
{
	double start;
	unsigned i;

	/* Timers that are due are no part of it. */
	fake_pass(&f);
	start = cpu_ns();
	for (i = 0; i < PASSES; i++)
		fake_pass(&f);
	return (cpu_ns() - start) / PASSES;
}

/* A message to each peer is on its way. */
static double waiting(void)
{
	static char out[SIZE];
	unsigned i, sent = 0;
	double ns;

	for (i = 0; i < npeer; i++)
		check(!fi_tsend(f.ep, out, SIZE, NULL, peer[i].addr, 2, NULL), "fi_tsend");
	fake_passes(&f, 3);
	ns = passes();
	deliver();
	for (i = 0; i < npeer; i++)
		fake_ack(&f, &peer[i]);
	while (f.core[0]->in)
		fake_pass(&f);
	while (sent < npeer) {
		unsigned n = completions();

		fake_pass(&f);
		check(n || f.core[0]->in || fake_held(f.core[0]) || sent == npeer,
		      "a send does not end");
		sent += n;
	}
	return ns;
}

static void measure(unsigned n)
{
	double ex[ROUNDS], wait[ROUNDS], idle[ROUNDS], heap;
	struct fake_opt opt = { .nrail = 1, .kind = { LNX_RAIL_PLAIN } };
	unsigned i;

	npeer = n;
	fake_open(&f, &opt);
	heap = heap_bytes();
	meet_all();
	for (i = 0; i < ROUNDS; i++) {
		ex[i] = exchanges();
		pass_for(100 * LNX_NS_PER_MS);
		wait[i] = waiting();
		pass_for(5 * LNX_NS_PER_S);
		idle[i] = passes();
	}
	heap = (heap_bytes() - heap) / n;
	printf("active %5u: exchange %.0f ns, pass waiting %.0f ns, pass idle %.0f ns, "
	       "heap %.0f bytes a peer\n",
	       n, median(ex), median(wait), median(idle), heap);
	fake_close_quick(&f);
}

int main(void)
{
	static const unsigned peers[] = { 1, 10, 100, 1000, PEERS_MAX };
	size_t i;

	for (i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		measure(peers[i]);
	return 0;
}
