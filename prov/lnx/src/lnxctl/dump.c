/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl dump: a copy of a state segment, to be read with -f, here or elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lnxctl/lnxctl.h"

#define COPY_BYTES	(256u << 10)

static bool empty(const char *buf, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (buf[i])
			return false;
	return true;
}

/* What is empty stays empty in the copy.  0 or a negative errno. */
static int copy(int from, int to)
{
	static char buf[COPY_BYTES];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, buf, sizeof(buf), at)) > 0) {
		if (!empty(buf, (size_t)n) && pwrite(to, buf, (size_t)n, at) != n)
			return errno ? -errno : -ENOSPC;
		at += n;
	}
	if (n < 0 || ftruncate(to, at))
		return -errno;
	return 0;
}

static int run(struct lnxctl *c)
{
	int ret = lnxctl_select(c, true, false), fd;
	struct lnx_proc *p;

	if (ret)
		return ret;
	if (c->procs.n != 1)
		return lnxctl_usage(c, "\"dump\" copies one process: choose it with -p PID");
	p = &c->procs.proc[0];
	if (!p->snap || lnx_proc_open(p))
		return lnxctl_refuse(c, p->err, "process %d: %s", (int)p->file.pid, p->why);
	fd = open(c->arg[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return lnxctl_refuse(c, -errno, "%s: %s", c->arg[0], errno == EEXIST ?
				     "it exists, and is not overwritten" : strerror(errno));
	ret = copy(p->fd, fd);
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret)
		return LNXCTL_OK;
	unlink(c->arg[0]);
	return lnxctl_refuse(c, ret, "%s: %s", c->arg[0], strerror(-ret));
}

const struct lnxctl_verb lnxctl_dump = {
	.name = "dump", .args = "FILE",
	.help = "copy the state of a process to a file, for -f",
	.min_args = 1, .max_args = 1, .run = run,
};
