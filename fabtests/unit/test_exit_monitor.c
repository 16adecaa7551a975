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

#include "core/cma.h"
#include "core/exit_monitor.h"

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
	*p = (struct lnx_peer){
		.ep = &ep, .shm.where = { .pid = pid, .eid = EID,
				      .cookie = (uint64_t)(uintptr_t)&cookie },
	};
	lnx_list_add_tail(&ep.peers.all, &p->all_link);
}

static void end(struct lnx_peer *p)
{
	kill(p->shm.where.pid, SIGKILL);
	waitpid(p->shm.where.pid, NULL, 0);
}

static void open_ep(void)
{
	ep.shm = &shm;
	ep.local.pid = getpid();
	lnx_list_init(&ep.peers.all);
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
	reads = lnx_cma_probe(&peer[N - 1].shm.where);
	end(&peer[N - 1]);
	lnx_list_del(&peer[N - 1].all_link);
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
	cr_assert(ep.poll.watch_idle);
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
	cr_assert_not(ep.poll.watch_idle);
	lnx_exit_monitor_close(&ep);
}

/* The pid now belongs to another process. */
Test(exit_monitor, another_process_is_no_peer)
{
	MUST_WORK();
	start(&peer[0]);
	peer[0].shm.where.eid++;
	cr_assert_not(lnx_exit_monitor_watch(&peer[0]));
	cr_assert_eq(peer[0].shm.pidfd, 0);
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
	peer[0].shm.where.pid = getpid();
	cr_assert(lnx_exit_monitor_watch(&peer[0]), "it can be read");
	cr_assert_eq(peer[0].shm.pidfd, 0, "but need not be watched");
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
	cr_assert_not(ep.poll.watch_idle);
	lnx_exit_monitor_close(&ep);
}

Test(exit_monitor, closed_with_some_left)
{
	MUST_WORK();
	start(&peer[0]);
	cr_assert(lnx_exit_monitor_watch(&peer[0]));
	lnx_exit_monitor_close(&ep);
	cr_assert_eq(peer[0].shm.pidfd, 0);
	cr_assert_eq(lnx_exit_monitor_fd(&ep), -1);
	cr_assert_null(lnx_exit_monitor_next(&ep));
	lnx_exit_monitor_close(&ep);
	end(&peer[0]);
	/* Peers may come afterwards: their exits are not reported. */
	start(&peer[1]);
	cr_assert(lnx_exit_monitor_watch(&peer[1]));
	cr_assert_eq(peer[1].shm.pidfd, 0);
	end(&peer[1]);
}

Test(exit_monitor, without_shared_memory)
{
	lnx_exit_monitor_close(&ep);
	ep.shm = NULL;
	lnx_exit_monitor_open(&ep);
	cr_assert_eq(lnx_exit_monitor_fd(&ep), -1);
}
