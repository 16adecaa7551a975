/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds out whether descriptors have run out.  See fd_limit.h. */
#include "core/fd_limit.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/warn_once.h"

/* A connection takes one descriptor at each end, and for a short time two, when both
 * ends connect at once. */
#define FDS_PER_PEER	2u
/* For what else comes: files and sockets of the application, the cores' own. */
#define FDS_MORE	64u

static atomic_flag said = ATOMIC_FLAG_INIT;

static void say(const struct lnx_ep *ep, const char *rail)
{
	struct rlimit limit;
	unsigned long long now, right;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	now = (unsigned long long)limit.rlim_cur;
	right = now + FDS_MORE +
		(unsigned long long)ep->peers.n * LNX_MAX(ep->nnet, 1u) *
		FDS_PER_PEER;
	lnx_warn_once(true, "rail %s cannot connect: this process has no descriptors left, RLIMIT_NOFILE (ulimit -n) is %llu and would have to be about %llu for the %u peers of this endpoint; sends wait for descriptors until FI_LNX_CONNECT_TIMEOUT",
		      rail, now, right, ep->peers.n);
}

LNX_COLD void lnx_fd_limit_look(const struct lnx_ep *ep, const char *rail)
{
	int fd, was = errno;

	if (atomic_flag_test_and_set(&said))
		return;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0 && errno == EMFILE) {
		say(ep, rail);
	} else if (fd < 0 && errno == ENFILE) {
		lnx_warn_once(true, "rail %s cannot connect: the system has no descriptors left (fs.file-max), whatever RLIMIT_NOFILE is; sends wait for descriptors until FI_LNX_CONNECT_TIMEOUT",
			      rail);
	} else {
		if (fd >= 0)
			close(fd);
		atomic_flag_clear(&said);
	}
	errno = was;
}
