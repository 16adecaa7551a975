/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The paths between two ends, and what is under way on them.  See chan_world.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chan_world.h"

#define PIPE	1024u			/* packets on one path, one way */

/* Sorted by due_ns. */
struct pipe {
	struct packet p[PIPE];
	unsigned first, end;
};

static struct pipe pipes[2][PATHS];

void set_seed(void)
{
	const char *given = getenv("LNX_SEED");
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	w.seed = given ? strtoull(given, NULL, 0) :
		 (uint64_t)ts.tv_sec * 1000003u ^ (uint64_t)ts.tv_nsec;
	fprintf(stderr, "seed %llu (repeat with LNX_SEED=%llu)\n",
		(unsigned long long)w.seed, (unsigned long long)w.seed);
}

unsigned rnd(unsigned n)
{
	static uint64_t state;
	static bool begun;

	if (!begun)
		state = w.seed;
	begun = true;
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((state >> 33) % n);
}

void net_open(void)
{
	unsigned to, path;

	for (to = 0; to < 2; to++)
		for (path = 0; path < PATHS; path++)
			pipes[to][path].first = pipes[to][path].end = 0;
	memset(w.hole, 0, sizeof(w.hole));
}

void net_lost(const struct packet *p)
{
	struct session *s = p->kind == DATA ? ledger[p->src].s : NULL;

	w.t.lost++;
	if (s)
		s->lost[p->id % LNX_SEQ_WINDOW] |= (uint8_t)(1u << p->path);
}

static void put(const struct packet *p)
{
	struct pipe *q = &pipes[p->to][p->path];
	uint64_t delay = w.mode.delay_ns[p->path], due;
	unsigned at;

	if (q->end == PIPE) {
		memmove(q->p, q->p + q->first, (q->end - q->first) * sizeof(q->p[0]));
		q->end -= q->first;
		q->first = 0;
	}
	if (q->end == PIPE) {
		net_lost(p);
		return;
	}
	due = w.now + delay / 2 + rnd((unsigned)(delay / 1000) + 1) * 1000ull;
	at = q->end;
	if (w.mode.in_order && at != q->first)
		due = LNX_MAX(due, q->p[at - 1].due_ns);
	for (; at != q->first && q->p[at - 1].due_ns > due; at--)
		q->p[at] = q->p[at - 1];
	q->p[at] = *p;
	q->p[at].due_ns = due;
	q->end++;
}

void net_send(const struct packet *p)
{
	if (!w.quiet && rnd(1000) < w.mode.loss) {
		net_lost(p);
		return;
	}
	put(p);
	if (!w.quiet && rnd(1000) < w.mode.repeat) {
		put(p);
		w.t.repeated++;
	}
}

bool net_take(unsigned to, struct packet *p)
{
	struct pipe *best = NULL;
	unsigned path;

	for (path = 0; path < w.mode.npath; path++) {
		struct pipe *q = &pipes[to][path];

		if (q->first == q->end || w.hole[path] || q->p[q->first].due_ns > w.now)
			continue;
		if (!best || q->p[q->first].due_ns < best->p[best->first].due_ns)
			best = q;
	}
	if (!best)
		return false;
	*p = best->p[best->first++];
	return true;
}

bool net_take_any(unsigned to, struct packet *p)
{
	unsigned path = rnd(w.mode.npath), n;
	struct pipe *q = &pipes[to][path];
	struct packet *at;

	if (q->first == q->end || w.hole[path])
		return false;
	n = w.mode.in_order ? 0 : rnd(q->end - q->first);
	at = &q->p[q->first + n];
	*p = *at;
	memmove(at, at + 1, (q->end - q->first - n - 1) * sizeof(*at));
	q->end--;
	return true;
}

void net_break(unsigned path)
{
	unsigned to;

	for (to = 0; to < 2; to++) {
		struct pipe *q = &pipes[to][path];

		for (; q->first != q->end; q->first++)
			net_lost(&q->p[q->first]);
	}
}

void net_hole(unsigned path)
{
	w.hole[path] = true;
}

void net_heal(unsigned path, bool loses)
{
	w.hole[path] = false;
	if (loses)
		net_break(path);
}

bool net_empty(void)
{
	unsigned to, path;

	for (to = 0; to < 2; to++)
		for (path = 0; path < w.mode.npath; path++)
			if (pipes[to][path].first != pipes[to][path].end)
				return false;
	return true;
}

bool net_has(unsigned to, uint64_t from)
{
	unsigned path, i;

	for (path = 0; path < w.mode.npath; path++)
		for (i = pipes[to][path].first; i != pipes[to][path].end; i++)
			if (pipes[to][path].p[i].from == from)
				return true;
	return false;
}
