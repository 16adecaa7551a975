/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The control connection of lives.c; see control.h. */
#include "control.h"

#include "../functional/soak_round.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_S		0.002

struct head {
	uint32_t kind, len;
};

struct control control;

static int other(const struct ft *ft)
{
	return !ft->rank;
}

static int fd(const struct ft *ft)
{
	return ft->oob.fd[other(ft)];
}

static bool readable(int from)
{
	struct pollfd p = { .fd = from, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void read_orders(struct ft *ft)
{
	static bool closed;
	char c;

	while (!closed && readable(STDIN_FILENO)) {
		if (read(STDIN_FILENO, &c, 1) != 1) {
			closed = true;
			return;
		}
		control.end |= c == 'e';
		control.quit |= c == 'q';
		control.healed |= c == 'h';
		control.silent |= c == 's';
		if (c == 'c') {
			control.cut = true;
			control.healed = control.silent = false;
		}
	}
	ft->abandoned |= control.end;
}

static void peek(struct ft *ft)
{
	struct head h;
	ssize_t n;

	if (control.lost || fd(ft) < 0 || !readable(fd(ft)))
		return;
	n = recv(fd(ft), &h, sizeof(h), MSG_PEEK | MSG_DONTWAIT);
	control.lost |= !n || (n < 0 && errno != EAGAIN && errno != EINTR);
	control.again |= n == sizeof(h) && h.kind == CONTROL_AGAIN;
	ft->abandoned |= control.lost || control.again;
}

void control_look(struct ft *ft)
{
	static double last;

	if (ft_now() - last < LOOK_S)
		return;
	last = ft_now();
	read_orders(ft);
	peek(ft);
}

void control_look_behind(struct ft *ft)
{
	struct pollfd p = { .fd = fd(ft), .events = POLLRDHUP };

	control_look(ft);
	if (p.fd >= 0 && poll(&p, 1, 0) > 0)
		control.lost = ft->abandoned = true;
}

/* While a block is waited for: what comes is read there. */
static void idle(void *arg)
{
	struct ft *ft = arg;

	if (ft->open)
		ft_progress(ft);
	read_orders(ft);
	if (control.end && fd(ft) >= 0)
		shutdown(fd(ft), SHUT_RDWR);
}

void control_begin(struct ft *ft)
{
	ft->oob.idle = idle;
	ft->oob.idle_arg = ft;
}

static int lost(struct ft *ft, int ret)
{
	if (ret != -ECONNRESET)
		return ft_fail(ft, "control connection: %s", strerror(-ret));
	control.lost = true;
	return SOAK_HIT;
}

/* Of rounds: the other one may be at another point if something has been hit. */
static bool of_round(unsigned kind)
{
	return kind == CONTROL_ROUND || kind == CONTROL_MORE;
}

static int receive(struct ft *ft, unsigned kind, void *theirs, size_t len)
{
	char other_block[4096];
	struct head h;
	int ret;

	for (;;) {
		/* A block of CONTROL_AGAIN is left for the call that wants it. */
		while (of_round(kind) && !readable(fd(ft)) && !soak.inject_errors &&
		       !ft->abandoned) {
			idle(ft);
			soak.look(ft);
		}
		peek(ft);
		if (of_round(kind) && (control.again || control.lost || ft->abandoned ||
				       soak.inject_errors))
			return SOAK_HIT;
		ret = oob_recv(&ft->oob, other(ft), &h, sizeof(h));
		if (ret)
			return lost(ft, ret);
		if (of_round(kind) && h.kind == CONTROL_AGAIN)
			return ft_fail(ft, "CONTROL_AGAIN was not seen in time");
		FT_CHECK(ft, h.len <= sizeof(other_block) &&
			 (h.kind == kind ? h.len == len :
			  kind == CONTROL_AGAIN && of_round(h.kind)),
			 "control connection: block %u of %u bytes instead of %u",
			 h.kind, h.len, kind);
		ret = oob_recv(&ft->oob, other(ft), other_block, h.len);
		if (ret)
			return lost(ft, ret);
		if (h.kind == kind) {
			memcpy(theirs, other_block, len);
			return FT_PASS;
		}
	}
}

int control_swap(struct ft *ft, unsigned kind, const void *mine, void *theirs,
		 size_t len)
{
	struct head h = { .kind = kind, .len = (uint32_t)len };
	int ret;

	ret = oob_send(&ft->oob, other(ft), &h, sizeof(h));
	if (!ret)
		ret = oob_send(&ft->oob, other(ft), mine, len);
	if (ret)
		return lost(ft, ret);
	return receive(ft, kind, theirs, len);
}

/* One attempt; makes progress.  0, or -errno. */
static int connect_once(struct ft *ft, int lfd)
{
	if (ft->rank) {
		ft_linger(ft, 0.02);
		return oob_join(&ft->oob, ft->opts.server, ft->opts.port, 0);
	}
	if (!readable(lfd)) {
		ft_progress(ft);
		sched_yield();
		return -EAGAIN;
	}
	return oob_serve(&ft->oob, lfd, 2);
}

int control_rejoin(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_run run = *ft->run;
	int lfd = -1, ret;

	oob_close(&ft->oob);
	if (!ft->rank) {
		lfd = oob_listen(NULL, &ft->opts.port);
		FT_CHECK(ft, lfd >= 0, "listen: %s", strerror(-lfd));
	}
	do {
		ret = connect_once(ft, lfd);
	} while (ret && ft_now() < end);
	if (lfd >= 0)
		close(lfd);
	FT_CHECK(ft, !ret, "no process takes the place of the one that ended: %s",
		 strerror(-ret));
	/* A process that begins wants to know, or tells, how it was started. */
	ret = oob_bcast(&ft->oob, &run, sizeof(run));
	FT_CHECK(ft, !ret, "control connection: %s", strerror(-ret));
	control.lost = control.again = false;
	return FT_PASS;
}
