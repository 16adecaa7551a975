/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Cases that need two processes with nothing open; see pair.h. */
#include "pair.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lnx_ext.h"

#define STATS_MAX	65536

/* The result of a process, for the parent that waits for both. */
struct outcome {
	int result;
	char why[FT_WHY_MAX];
};

static void side_main(struct pair *p, struct outcome *o,
		      int (*side)(struct pair *p))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ft_guard(p->ft, p->c->name);
	o->result = side(p);
	snprintf(o->why, sizeof(o->why), "%s", p->ft->why);
	if (p->ft->open && ft_objs_close(p->ft, &p->ft->o) &&
	    o->result == FT_PASS) {
		o->result = FT_FAIL;
		snprintf(o->why, sizeof(o->why), "%s", p->ft->why);
	}
	_exit(0);
}

static int wait_for(struct ft *ft, const pid_t pid[2], struct outcome *o)
{
	int i, status, ret = FT_PASS;

	for (i = 0; i < 2; i++) {
		if (waitpid(pid[i], &status, 0) != pid[i] || status)
			ret = ft_fail(ft, "process %d ended with status %#x",
				      i, (unsigned)status);
	}
	/* The failure of one process may be the reason for the other's: report both. */
	for (i = 0; i < 2; i++) {
		if (o[i].result == FT_FAIL)
			return ft_fail(ft, "process %d: %s%s%s", i, o[i].why,
				       o[!i].result == FT_FAIL ?
				       "; the other: " : "",
				       o[!i].result == FT_FAIL ? o[!i].why :
				       "");
		if (o[i].result == FT_SKIP)
			return ft_skip(ft, "%s", o[i].why);
	}
	return ret;
}

int pair_run(struct ft *ft, const struct ft_case *c,
	     int (*side)(struct pair *p))
{
	int ret = FT_PASS, all[OOB_MAX_RANKS], pair[2], i;
	struct ft_cfg cfg = { 0 };
	struct fi_info *info;
	struct outcome *o;
	pid_t pid[2];

	if (ft->rank)
		goto meet;
	/* Load the providers before the process changes its user: the new user
	 * may not be allowed to read them. */
	if (!ft_getinfo(ft, &cfg, &info))
		fi_freeinfo(info);
	o = mmap(NULL, 2 * sizeof(*o), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(ft, o != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0,
						    pair), "no memory");
	fflush(stdout);
	for (i = 0; i < 2; i++) {
		struct pair p = { .ft = ft, .c = c, .fd = pair[i] };

		o[i].result = FT_FAIL;
		pid[i] = fork();
		if (!pid[i]) {
			close(pair[!i]);
			ft->rank = i;
			side_main(&p, &o[i], side);
		}
		FT_CHECK(ft, pid[i] > 0, "fork: no process");
	}
	close(pair[0]);
	close(pair[1]);
	ret = wait_for(ft, pid, o);
	munmap(o, 2 * sizeof(*o));
meet:
	/* Rank 1 does not take part in that; it waits here. */
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)),
		 "lost a rank");
	return ret;
}

int pair_swap(struct pair *p, const void *mine, void *theirs, size_t len)
{
	double end = ft_now() + p->ft->run->timeout_s;
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t n;

	FT_CHECK(p->ft, send(p->fd, mine, len, MSG_NOSIGNAL) == (ssize_t)len,
		 "the other process has ended");
	while (!poll(&pfd, 1, p->ft->open ? 0 : 10)) {
		FT_CHECK(p->ft, ft_now() < end, "the other process does not "
			 "answer");
		if (p->ft->open)
			ft_progress(p->ft);
	}
	n = recv(p->fd, theirs, len, MSG_WAITALL);
	FT_CHECK(p->ft, n == (ssize_t)len, "the other process has ended");
	return FT_PASS;
}

int pair_meet(struct pair *p)
{
	char mine = 1, theirs;

	return pair_swap(p, &mine, &theirs, 1);
}

int pair_open(struct pair *p, const struct ft_cfg *cfg,
	      int (*opened)(struct pair *p))
{
	unsigned char name[2][FT_NAME_MAX];
	struct ft *ft = p->ft;
	int i;

	if (ft_objs_open(ft, cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = *cfg;
	ft->open = true;
	ft_ops_drop(ft);
	if (opened)
		FT_TRY(opened(p));
	memcpy(name[ft->rank], ft->o.name, FT_NAME_MAX);
	FT_TRY(pair_swap(p, ft->o.name, name[!ft->rank], FT_NAME_MAX));
	for (i = 0; i < 2; i++)
		FT_CHECK(ft, fi_av_insert(ft->o.av, name[i], 1, &ft->addr[i], 0,
					  NULL) == 1, "fi_av_insert failed");
	return pair_meet(p);
}

uint64_t pair_stat(struct pair *p, const char *name)
{
	struct lnx_control_ops *control;
	static char reply[STATS_MAX];
	size_t len = strlen(name);
	char *at;

	if (fi_open_ops(&p->ft->o.ep->fid, LNX_CONTROL_OPS, 0,
			(void **)&control, NULL) ||
	    control->request(&p->ft->o.ep->fid, "stats", reply,
			     sizeof(reply)) < 0)
		return UINT64_MAX;
	for (at = reply; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, len) && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	}
	return UINT64_MAX;
}
