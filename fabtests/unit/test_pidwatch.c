/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watching local processes for their end. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/pidwatch.h"

/* A descriptor of pid, as every kernel since Linux 5.3 gives one. */
static int watch(pid_t pid)
{
	int fd = lnx_pidwatch_open(pid);

	if (fd == -ENOSYS || fd == -EPERM) {
		if (pid != getpid())
			kill(pid, SIGKILL);
		cr_skip_test("this kernel has no pidfds");
	}
	return fd;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static pid_t start_child(void (*does)(void))
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (does)
			does();
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	return pid;
}

/* Wait until the process has ended; it is not reaped yet. */
static void wait_for_end(pid_t pid)
{
	siginfo_t si;

	cr_assert_eq(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(pidwatch, lives_and_dies)
{
	pid_t pid = start_child(NULL);
	int fd = watch(pid);
	uint64_t started = lnx_pidwatch_started(pid);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cr_assert_not(readable(fd));
	cr_assert_neq(started, 0);
	cr_assert_eq(lnx_pidwatch_started(pid), started);
	kill(pid, SIGKILL);
	wait_for_end(pid);
	cr_assert(readable(fd), "not reaped");
	cr_assert_eq(lnx_pidwatch_started(pid), 0, "not reaped");
	waitpid(pid, NULL, 0);
	cr_assert(readable(fd), "reaped");
	cr_assert_eq(lnx_pidwatch_started(pid), 0, "reaped");
	close(fd);
}

/* One that waits for it is woken. */
Test(pidwatch, descriptor_wakes)
{
	pid_t pid = start_child(NULL);
	struct pollfd p = { .fd = watch(pid), .events = POLLIN };

	cr_assert_geq(p.fd, 0);
	cr_assert_eq(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	cr_assert_eq(poll(&p, 1, -1), 1);
	waitpid(pid, NULL, 0);
	close(p.fd);
}

Test(pidwatch, reaped_before_it_is_asked)
{
	pid_t pid = start_child(NULL);
	int fd = watch(pid);

	cr_assert_geq(fd, 0);
	end(pid);
	cr_assert(readable(fd));
	close(fd);
}

Test(pidwatch, stopped_is_not_dead)
{
	pid_t pid = start_child(NULL);
	int fd = watch(pid);
	siginfo_t si;

	cr_assert_geq(fd, 0);
	kill(pid, SIGSTOP);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOWAIT), 0);
	cr_assert_not(readable(fd));
	cr_assert_neq(lnx_pidwatch_started(pid), 0);
	end(pid);
	cr_assert(readable(fd));
	close(fd);
}

Test(pidwatch, dead_from_the_start)
{
	pid_t pid = start_child(NULL);
	int fds = count_fds();

	kill(pid, SIGKILL);
	wait_for_end(pid);
	cr_assert_eq(watch(pid), -ESRCH, "not reaped");
	waitpid(pid, NULL, 0);
	cr_assert_eq(watch(pid), -ESRCH, "reaped");
	cr_assert_eq(watch(INT_MAX), -ESRCH);
	cr_assert_eq(watch(0), -EINVAL);
	cr_assert_eq(watch(-1), -EINVAL);
	cr_assert_eq(count_fds(), fds);
	cr_assert_eq(lnx_pidwatch_started(INT_MAX), 0);
	cr_assert_eq(lnx_pidwatch_started(0), 0);
	cr_assert_eq(lnx_pidwatch_started(-1), 0);
}

Test(pidwatch, oneself_and_others)
{
	int fd = watch(getpid());

	cr_assert_geq(fd, 0);
	cr_assert_not(readable(fd));
	close(fd);
	/* A process of root, whatever our user is; hidden on some systems. */
	fd = lnx_pidwatch_open(1);
	if (fd >= 0) {
		cr_assert_not(readable(fd));
		close(fd);
	}
}

/* The first thread ends; another one runs until it is told to end. */

static int go_on[2];

static void *other_thread(void *arg)
{
	char c;

	(void)arg;
	if (read(go_on[0], &c, 1) < 0)
		_exit(1);
	_exit(0);
}

static void leave_a_thread(void)
{
	pthread_t t;

	close(go_on[1]);
	pthread_create(&t, NULL, other_thread, NULL);
	pthread_exit(NULL);
}

static bool first_thread_is_a_zombie(pid_t pid)
{
	char path[64], text[512] = "", *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	p = strrchr(text, ')');
	return p && p[2] == 'Z';
}

Test(pidwatch, first_thread_ends)
{
	uint64_t started;
	pid_t pid;
	int fd;

	cr_assert_eq(pipe(go_on), 0);
	pid = start_child(leave_a_thread);
	close(go_on[0]);
	started = lnx_pidwatch_started(pid);
	while (!first_thread_is_a_zombie(pid))
		usleep(1000);
	fd = watch(pid);
	cr_assert_geq(fd, 0);
	cr_assert_not(readable(fd));
	cr_assert_neq(started, 0);
	cr_assert_eq(lnx_pidwatch_started(pid), started);
	close(go_on[1]);
	wait_for_end(pid);
	cr_assert(readable(fd));
	waitpid(pid, NULL, 0);
	close(fd);
}

/* A process name may look like the fields that follow it. */
static void special_name(void)
{
	char c = 0;

	prctl(PR_SET_NAME, ") Z 1 (x");
	if (write(go_on[1], &c, 1) != 1)
		_exit(1);
}

Test(pidwatch, special_names)
{
	uint64_t started;
	pid_t pid;
	char c;

	cr_assert_eq(pipe(go_on), 0);
	pid = start_child(special_name);
	started = lnx_pidwatch_started(getpid());
	cr_assert_eq(read(go_on[0], &c, 1), 1);
	cr_assert_geq(lnx_pidwatch_started(pid), started);
	end(pid);
	cr_assert_eq(lnx_pidwatch_started(pid), 0);
}

/* Another process has another start time, also if it gets the same number later: time
 * goes on by ticks. */
Test(pidwatch, start_times_differ)
{
	pid_t first = start_child(NULL), second = 0;
	uint64_t started = lnx_pidwatch_started(first), later = started;

	while (later == started) {
		if (second)
			end(second);
		second = start_child(NULL);
		later = lnx_pidwatch_started(second);
	}
	cr_assert_gt(later, started);
	end(first);
	end(second);
}

/* Running out of descriptors is no sign that a process has ended. */
Test(pidwatch, no_descriptor_left)
{
	pid_t pid = start_child(NULL);
	int fd = watch(pid);

	cr_assert_geq(fd, 0);
	while (dup(0) >= 0)
		;
	cr_assert_not(readable(fd));
	cr_assert_eq(lnx_pidwatch_open(pid), -EMFILE);
	end(pid);
	cr_assert(readable(fd));
}
