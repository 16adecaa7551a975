/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Local peers and their processes (core/exit_monitor.c): the peers are children
 * of this one. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/cma.h"
#include "core/exit_monitor.h"
#include "view.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#endif

#define EID		0xabcdef0123456789ULL
#define N		3

static uint64_t cookie = EID;		/* liveness cookie, at the same address in
					 * children */
static struct lnx_rail shm;
static struct lnx_conf conf;
static struct lnx_ep ep = { .conf = &conf };
static struct lnx_peer peer[N];

static void start(struct lnx_peer *p)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	memset(p, 0, sizeof(*p));
	make_peer(p, &ep);
	force_process(p, pid, EID, &cookie);
}

static void end(struct lnx_peer *p)
{
	kill(view_process(p)->pid, SIGKILL);
	waitpid(view_process(p)->pid, NULL, 0);
}

static void open_ep(void)
{
	ep.shm = &shm;
	force_pid(&ep, getpid());
	make_no_peers(&ep);
	cr_assert_eq(make_timers(&ep), 0);
	lnx_exit_monitor_open(&ep);
}

TestSuite(exit_monitor, .init = open_ep);

/* False where the monitor cannot work. */
static bool works(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	bool reads;

	if (fd >= 0)
		close(fd);
	start(&peer[N - 1]);
	reads = lnx_cma_probe(view_process(&peer[N - 1]));
	end(&peer[N - 1]);
	drop_peer(&peer[N - 1]);
	return fd >= 0 && reads;
}

#define MUST_WORK() do { \
	if (!works()) \
		cr_skip_test("no pidfds, or no reading of other processes"); \
} while (0)

static bool readable(void)
{
	struct pollfd p = { .fd = lnx_exit_monitor_fd(&ep), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(exit_monitor, those_that_end_are_named_once)
{
	unsigned i;

	MUST_WORK();
	for (i = 0; i < N; i++) {
		start(&peer[i]);
		cr_assert(lnx_exit_monitor_watch(&peer[i]));
	}
	cr_assert(view_watches_local(&ep));
	cr_assert_null(lnx_exit_monitor_next(&ep));
	cr_assert_not(readable());
	end(&peer[1]);
	cr_assert(readable());
	cr_assert_eq(lnx_exit_monitor_next(&ep), &peer[1]);
	cr_assert_null(lnx_exit_monitor_next(&ep));
	cr_assert_not(readable(), "it would wake sleepers for ever");
	end(&peer[0]);
	end(&peer[2]);
	cr_assert_not_null(lnx_exit_monitor_next(&ep));
	cr_assert_not_null(lnx_exit_monitor_next(&ep));
	cr_assert_null(lnx_exit_monitor_next(&ep));
	cr_assert_not(view_watches_local(&ep));
	lnx_exit_monitor_close(&ep);
}

/* The pid now belongs to another process. */
Test(exit_monitor, another_process_is_no_peer)
{
	MUST_WORK();
	start(&peer[0]);
	view_process(&peer[0])->eid++;
	cr_assert_not(lnx_exit_monitor_watch(&peer[0]));
	cr_assert_not(view_watched(&peer[0]));
	end(&peer[0]);
	cr_assert_not(readable());
	cr_assert_null(lnx_exit_monitor_next(&ep));
	lnx_exit_monitor_close(&ep);
}

Test(exit_monitor, dead_before)
{
	MUST_WORK();
	start(&peer[0]);
	end(&peer[0]);
	cr_assert_not(lnx_exit_monitor_watch(&peer[0]));
	cr_assert_null(lnx_exit_monitor_next(&ep));
	lnx_exit_monitor_close(&ep);
}

Test(exit_monitor, our_own_process)
{
	MUST_WORK();
	start(&peer[0]);
	end(&peer[0]);
	view_process(&peer[0])->pid = getpid();
	cr_assert(lnx_exit_monitor_watch(&peer[0]), "it can be read");
	cr_assert_not(view_watched(&peer[0]), "but need not be watched");
	lnx_exit_monitor_close(&ep);
}

Test(exit_monitor, forgotten)
{
	MUST_WORK();
	start(&peer[0]);
	cr_assert(lnx_exit_monitor_watch(&peer[0]));
	cr_assert(lnx_exit_monitor_watch(&peer[0]), "twice is once");
	lnx_exit_monitor_forget(&peer[0]);
	lnx_exit_monitor_forget(&peer[0]);
	end(&peer[0]);
	cr_assert_not(readable());
	cr_assert_null(lnx_exit_monitor_next(&ep));
	cr_assert_not(view_watches_local(&ep));
	lnx_exit_monitor_close(&ep);
}

Test(exit_monitor, closed_with_some_left)
{
	MUST_WORK();
	start(&peer[0]);
	cr_assert(lnx_exit_monitor_watch(&peer[0]));
	lnx_exit_monitor_close(&ep);
	cr_assert_not(view_watched(&peer[0]));
	cr_assert_eq(lnx_exit_monitor_fd(&ep), -1);
	cr_assert_null(lnx_exit_monitor_next(&ep));
	lnx_exit_monitor_close(&ep);
	end(&peer[0]);
	/* Peers may come afterwards: their exits are not reported. */
	start(&peer[1]);
	cr_assert(lnx_exit_monitor_watch(&peer[1]));
	cr_assert_not(view_watched(&peer[1]));
	end(&peer[1]);
}

Test(exit_monitor, without_shared_memory)
{
	lnx_exit_monitor_close(&ep);
	ep.shm = NULL;
	lnx_exit_monitor_open(&ep);
	cr_assert_eq(lnx_exit_monitor_fd(&ep), -1);
}
