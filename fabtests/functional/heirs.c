/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process is killed whose child process lives on and may hold its sockets, so
 * that the kernel still answers for the dead process.  What is sent to it must
 * end, once, with one error.  A child that executed another program has none of
 * its sockets.  A child that was only forked has all of them, and
 * FI_LNX_STALL_TIMEOUT ends the sends.  man/fi_lnx.7, FAILURES.
 */
#include "victim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N		12
#define TRANSACTION_MS	"1000"
#define STALL_S		"3"
#define LATER_S		0.5		/* until connections show in /proc */

enum { FORKED, EXECUTED };

static const size_t sizes[] = { 8, 300000, 5000, 0 };
static pid_t *heir;			/* shared */
static int kind;

/* Runs in the process that will be killed. */
static int start_heir(struct ft *ft)
{
	pid_t pid;

	ft_linger(ft, LATER_S);
	pid = fork();
	FT_CHECK(ft, pid >= 0, "fork: no process");
	if (pid) {
		*heir = pid;
		return FT_PASS;
	}
	alarm(ft->run->guard_s);
	if (kind == EXECUTED)
		execlp("sleep", "sleep", "1000", (char *)NULL);
	for (;;)
		pause();
}

/* The number of network sockets that the child has. */
static int sockets(pid_t pid)
{
	char path[64], to[64];
	int fd, n = 0;

	for (fd = 3; fd < 1024; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		len = readlink(path, to, sizeof(to) - 1);
		if (len <= 0)
			continue;
		to[len] = '\0';
		n += !strncmp(to, "socket:", 7);
	}
	return n;
}

/* Wait until the program runs: before that it is a copy of its parent. */
static int executed(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	char path[64], name[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)*heir);
	do {
		FT_CHECK(ft, ft_now() < end, "no program is executed");
		fd = open(path, O_RDONLY);
		n = fd < 0 ? -1 : read(fd, name, sizeof(name));
		close(fd);
	} while (n < 5 || strncmp(name, "sleep", 5));
	return FT_PASS;
}

static int heirs(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct ft_cfg cfg = { 0 };
	struct ft_op *tx[N];
	int i, n = 0;

	kind = (int)c->a;
	prepare(ft, 0);			/* before the fork, so that addresses are the
					 * same */
	FT_TRY(victim_start(ft, v, &cfg, start_heir));
	FT_TRY(victim_ready(ft, v, false));
	if (kind == EXECUTED) {
		FT_TRY(executed(ft));
		/* One socket is the test programs' own (out-of-band). */
		FT_CHECK(ft, sockets(*heir) <= sockets(v->pid) - 2 ||
			 !getenv("FI_LNX_PROV_LINKS") ||
			 !strstr(getenv("FI_LNX_PROV_LINKS"), "tcp"),
			 "%d of %d sockets are inherited", sockets(*heir),
			 sockets(v->pid));
	}
	victim_kill(v);
	for (i = 0; i < N; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[1], .tag = 1,
			.buf = outs[0], .len = sizes[i % 4],
		};
		ssize_t ret;

		tx[n] = ft_op_new(ft);
		tx[n]->posted = true;
		ret = ft_try_send(ft->o.ep, tx[n], &m);
		tx[n]->posted = !ret;
		FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH ||
			 ret == -FI_EAGAIN, "send %d: %zd", i, ret);
		n += !ret;
		ft_progress(ft);
	}
	FT_TRY(all_done(ft, tx, n, "sends to the dead"));
	ft_linger(ft, 0.1);
	for (i = 0; i < n; i++) {
		FT_CHECK(ft, tx[i]->done == 1, "send %d ended %u times", i,
			 tx[i]->done);
		FT_CHECK(ft, kind == FORKED || tx[i]->err != FI_ETIMEDOUT,
			 "send %d: %s", i, fi_strerror(tx[i]->err));
		FT_CHECK(ft, sizes[i % 4] < 100000 || tx[i]->err,
			 "a large send to the dead succeeded");
	}
	return FT_PASS;
}

static int dead(struct ft *ft, const struct ft_case *c)
{
	struct victim v = { .fd = -1 };
	int ret = FT_PASS, all[OOB_MAX_RANKS];

	if (!ft->opts.prov || strcmp(ft->opts.prov, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (!ft->rank) {
		heir = mmap(NULL, sizeof(*heir), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		FT_CHECK(ft, heir != MAP_FAILED, "no memory");
		ret = heirs(ft, c, &v);
		victim_kill(&v);
		if (*heir > 0)
			kill(*heir, SIGKILL);
		munmap(heir, sizeof(*heir));
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
	}
	/* Rank 1 does not take part in that; it waits here. */
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a "
		 "rank");
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "executed", .fn = dead, .a = EXECUTED,
		  .cfg.alone = true },
		{ .name = "forked", .fn = dead, .a = FORKED,
		  .cfg.alone = true },
	};

	setenv("FI_LNX_TRANSACTION_TIMEOUT", TRANSACTION_MS, 0);
	setenv("FI_LNX_STALL_TIMEOUT", STALL_S, 0);
	return ft_main(argc, argv, "dead processes with living children", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
