/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl top: what the rails of all processes do, refreshed. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lnxctl/lnxctl.h"

#ifdef HAVE_NCURSES
#include <curses.h>

#define DELAY_MAX	3600u		/* s */
#define LINE_MAX_LEN	200		/* the longest one has some 120 */

struct line {
	pid_t pid;
	uint64_t eid;
	uint32_t rail;
	const struct lnx_proc *p;
	const struct lnx_snap_ep *e;
	const struct lnx_state_rail *r;
	uint64_t when_ns;		/* of its counters */
	struct lnx_state_traffic t;
	double tx_mb, rx_mb, tx_msg, rx_msg;	/* a second; of this refresh */
};

struct screen {
	struct line *line;
	unsigned n;
	struct line *old;		/* of the refresh before */
	unsigned nold;
	unsigned silent, dead;
};

static const struct line *before(const struct screen *s, const struct line *l)
{
	unsigned i;

	for (i = 0; i < s->nold; i++)
		if (s->old[i].pid == l->pid && s->old[i].eid == l->eid &&
		    s->old[i].rail == l->rail)
			return &s->old[i];
	return NULL;
}

static void rates(const struct screen *s, struct line *l)
{
	const struct line *b = before(s, l);
	double sec;

	/* Nothing was published since: no progress, so nothing to show. */
	if (!b || l->when_ns <= b->when_ns)
		return;
	sec = (double)(l->when_ns - b->when_ns) / 1e9;
	l->tx_mb = (double)(l->t.send_length - b->t.send_length) / 1e6 / sec;
	l->rx_mb = (double)(l->t.recv_length - b->t.recv_length) / 1e6 / sec;
	l->tx_msg = (double)(l->t.send_count - b->t.send_count) / sec;
	l->rx_msg = (double)(l->t.recv_count - b->t.recv_count) / sec;
}

static void add(struct screen *s, const struct lnx_proc *p, const struct lnx_snap_ep *e,
		const struct lnx_state_rail *r)
{
	struct line *l;

	s->line = lnx_must(realloc(s->line, (s->n + 1) * sizeof(*s->line)));
	l = &s->line[s->n++];
	*l = (struct line){
		.pid = p->file.pid, .eid = e->ep.eid, .rail = r->index, .p = p,
		.e = e, .r = r, .when_ns = e->ep.seen_ns, .t = r->traffic,
	};
	rates(s, l);
}

static void collect(struct lnxctl *c, struct screen *s)
{
	unsigned i, k, r;

	free(s->old);
	s->old = s->line;
	s->nold = s->n;
	s->line = NULL;
	s->n = s->silent = s->dead = 0;
	for (i = 0; i < c->procs.n; i++) {
		const struct lnx_proc *p = &c->procs.proc[i];

		if (p->life == LNX_PROC_ENDED) {
			s->dead++;
			continue;
		}
		s->silent += p->snap && !lnx_proc_fresh(p, false);
		for (k = 0; p->snap && k < p->snap->nep; k++)
			for (r = 0; r < p->snap->ep[k].nrail; r++)
				if (lnxctl_wants_ep(c, &p->snap->ep[k]))
					add(s, p, &p->snap->ep[k],
					    &p->snap->ep[k].rail[r]);
	}
}

/* Busiest first, then by process. */
static int by_traffic(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	double mine = x->tx_mb + x->rx_mb, its = y->tx_mb + y->rx_mb;

	if (mine != its)
		return mine > its ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->rail < y->rail ? -1 : x->rail > y->rail;
}

static void health(const struct line *l, char *buf, size_t size)
{
	if (l->r->flags & LNX_STATE_RAIL_HEALTH)
		snprintf(buf, size, "%u%s", l->r->health.value,
			 l->r->health.flags & LNX_STATE_HEALTH_PINNED ? "*" : "");
	else
		snprintf(buf, size, "-");
}

/* As much of a line as the screen has columns.  mvprintw of ncurses 6.4 crashes where a line
 * is longer than the whole screen. */
static void LNX_PRINTF(2, 3) put(int row, const char *fmt, ...)
{
	char text[LINE_MAX_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mvaddnstr(row, 0, text, COLS);
}

static void draw(struct lnxctl *c, struct screen *s)
{
	unsigned i;
	int row = 0;

	erase();
	put(row++, "lnxctl top: %u processes, %u silent, %u dead; q quits",
	    c->procs.n, s->silent, s->dead);
	row++;
	attron(A_REVERSE);
	put(row++, "%8s %-12.12s %5s %-18.18s %-5s %6s %9s %9s %9s %9s %6s", "PID", "PROGRAM",
	    "RANK", "RAIL", "LINK", "HEALTH", "TX MB/s", "RX MB/s", "TX msg/s", "RX msg/s",
	    "PEERS");
	attroff(A_REVERSE);
	if (s->n)
		qsort(s->line, s->n, sizeof(*s->line), by_traffic);
	for (i = 0; i < s->n && row < LINES; i++) {
		const struct line *l = &s->line[i];
		bool down = !lnxctl_rail_up(l->r);
		char h[16];

		health(l, h, sizeof(h));
		if (down)
			attron(A_BOLD);
		put(row++, "%8d %-12.12s %5.5s %-18.18s %-5s %6s %9.1f %9.1f %9.0f %9.0f %6"
		    PRIu64, (int)l->pid, l->p->snap->h.program,
		    l->p->snap->h.rank[0] ? l->p->snap->h.rank : "-", l->r->name,
		    down ? "down" : "up", h, l->tx_mb, l->rx_mb, l->tx_msg, l->rx_msg,
		    l->e->ep.npeer);
		if (down)
			attroff(A_BOLD);
	}
	refresh();
}

/* One refresh.  A status that is not LNXCTL_OK ends it. */
static int once(struct lnxctl *c, struct screen *s)
{
	int ret;

	lnx_procs_free(&c->procs);
	ret = lnxctl_select(c, false, true);
	if (ret)
		return ret;
	collect(c, s);
	draw(c, s);
	return LNXCTL_OK;
}

/* Without a signal about it, as in another session, a terminal that is gone only fails: each
 * wait for a key would end at once, for ever. */
static bool is_gone(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* True: the user ends it. */
static bool key(uint64_t delay_ms)
{
	int k;

	timeout((int)delay_ms);
	k = getch();
	return k == 'q' || k == 'Q' || k == 27 || (k == ERR && is_gone());
}

static int loop(struct lnxctl *c, uint64_t delay_s, uint64_t count)
{
	const char *term = getenv("TERM");
	struct screen s = { 0 };
	int ret = LNXCTL_OK;

	/* On a pipe curses would write what no program reads. */
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return lnxctl_refuse(c, -ENOTTY, "top needs a terminal; \"stats show\" and "
				     "\"metrics\" do not");
	if (!newterm(NULL, stdout, stdin))
		return lnxctl_refuse(c, -ENOTTY, "top cannot use this terminal (TERM=%s)",
				     term ? term : "");
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	do {
		ret = once(c, &s);
	} while (!ret && (!count || --count) && !key(delay_s * 1000));
	endwin();
	free(s.line);
	free(s.old);
	return ret;
}

static int run(struct lnxctl *c)
{
	const char *delay = lnxctl_value(c, "d"), *count = lnxctl_value(c, "n");
	uint64_t d = 1, n = 0;

	if (delay && (!lnxctl_number(delay, DELAY_MAX, &d) || !d))
		return lnxctl_usage(c, "-d \"%s\": must be seconds, from 1 to %u", delay,
				    DELAY_MAX);
	if (count && (!lnxctl_number(count, UINT32_MAX, &n) || !n))
		return lnxctl_usage(c, "-n \"%s\": must be a number, 1 or more", count);
	return loop(c, d, n);
}
#else
static int run(struct lnxctl *c)
{
	(void)c;
	return lnxctl_refuse(c, -ENOTSUP, "top: this lnxctl was built without ncurses");
}
#endif

const struct lnxctl_verb lnxctl_top = {
	.name = "top", .args = "[-d SECONDS] [-n TIMES]",
	.help = "what rails do, refreshed each second",
	.option = {
		{ "d", "SECONDS", "between refreshes, 1 without it" },
		{ "n", "TIMES", "end after so many" },
	},
	.run = run,
};
