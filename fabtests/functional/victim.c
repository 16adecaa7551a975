/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process that a case kills; see victim.h. */
#include "victim.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process with an endpoint of its own, connected by a socket. */
static void victim_main(struct ft *ft, int fd, uint64_t caps,
			int (*does)(struct ft *ft))
{
	struct ft_cfg cfg = { .caps = caps };
	struct ft_op *tx[2];
	char byte = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ft_guard(ft, "a process that was to be killed");
	ft->rank = 1;
	prepare(ft, 0);
	if (ft_objs_open(ft, &cfg, &ft->o))
		_exit(1);
	ft->open = true;
	if (write(fd, ft->o.name, FT_NAME_MAX) != FT_NAME_MAX ||
	    read(fd, ft->o.name, FT_NAME_MAX) != FT_NAME_MAX ||
	    fi_av_insert(ft->o.av, ft->o.name, 1, &ft->addr[0], 0, NULL) != 1)
		_exit(1);
	tx[0] = post(ft, true, 0, 99, NULL, 0);
	tx[1] = put(ft, true, 0, 99, 0, 0);
	if (!tx[0] || !tx[1] || missing(ft, tx, 2, ft->run->timeout_s) ||
	    (does && does(ft)))
		_exit(1);
	if (write(fd, &byte, 1) != 1)
		_exit(1);
	/* It may be told to kill itself, while the other process sleeps. */
	if (read(fd, &byte, 1) == 1) {
		usleep(VICTIM_NAP_US);
		kill(getpid(), SIGKILL);
	}
	for (;;)
		pause();
}

int victim_start(struct ft *ft, struct victim *v, const struct ft_cfg *cfg,
		 int (*does)(struct ft *ft))
{
	struct ft_op *hello[2];
	char name[FT_NAME_MAX];
	int pair[2];

	FT_CHECK(ft, !socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	v->fd = pair[0];
	v->pid = fork();	/* nothing is open here yet */
	FT_CHECK(ft, v->pid >= 0, "fork: no process");
	if (!v->pid)
		victim_main(ft, pair[1], cfg->caps, does);
	close(pair[1]);
	if (ft_objs_open(ft, cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = *cfg;
	ft->open = true;
	ft_ops_drop(ft);
	/* What the other process maps beyond these is its own. */
	shm_files_of(getpid(), &v->ours);
	FT_CHECK(ft, write(v->fd, ft->o.name, FT_NAME_MAX) == FT_NAME_MAX &&
		 recv(v->fd, name, FT_NAME_MAX, MSG_WAITALL) == FT_NAME_MAX,
		 "the other process did not open");
	FT_CHECK(ft, fi_av_insert(ft->o.av, name, 1, &ft->addr[1], 0, NULL) ==
		 1, "fi_av_insert failed");
	hello[0] = post(ft, true, 1, 99, NULL, 0);
	hello[1] = put(ft, true, 1, 99, 0, 0);
	FT_CHECK(ft, hello[0] && hello[1], "no contact");
	return all_done(ft, hello, 2, "first messages");
}

void victim_leave(struct victim *v)
{
	if (v->pid <= 0)
		return;
	if (!v->theirs.n)
		shm_files_of(v->pid, &v->theirs);
	kill(v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	close(v->fd);
	v->pid = 0;
}

void victim_kill(struct victim *v)
{
	victim_leave(v);
	shm_files_remove(&v->theirs, &v->ours);
}

int victim_dies_soon(struct ft *ft, struct victim *v)
{
	char byte = 1;

	shm_files_of(v->pid, &v->theirs);
	FT_CHECK(ft, write(v->fd, &byte, 1) == 1, "the other process has "
		 "ended");
	return FT_PASS;
}

int victim_ready(struct ft *ft, struct victim *v, bool deaf)
{
	double end = ft_now() + ft->run->timeout_s;
	char byte;

	while (recv(v->fd, &byte, 1, deaf ? 0 : MSG_DONTWAIT) != 1) {
		FT_CHECK(ft, !deaf && ft_now() < end, "the other process "
			 "failed");
		ft_progress(ft);
	}
	return FT_PASS;
}
