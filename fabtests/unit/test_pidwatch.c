/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watching local processes for their end, with pidfds and without. */
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

#include "core/pidwatch.h"

typedef int (*open_fn)(struct lnx_pidwatch *w, pid_t pid);

static int open_default(struct lnx_pidwatch *w, pid_t pid)
{
	return lnx_pidwatch_open(w, pid);
}

static int open_by_time(struct lnx_pidwatch *w, pid_t pid)
{
	return lnx_pidwatch_open_by_time(w, pid);
}

/* Each test runs with both ways of watching. */
#define BOTH(name) \
	static void name(open_fn watch); \
	Test(pidwatch, name##_default) { name(open_default); } \
	Test(pidwatch, name##_by_time) { name(open_by_time); } \
	static void name(open_fn watch)

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

BOTH(lives_and_dies)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(NULL);
	int fds = count_fds();

	cr_assert_eq(watch(&w, pid), 0);
	cr_assert_eq(w.pid, pid);
	cr_assert_not(lnx_pidwatch_dead(&w));
	kill(pid, SIGKILL);
	wait_for_end(pid);
	cr_assert(lnx_pidwatch_dead(&w), "not reaped");
	waitpid(pid, NULL, 0);
	cr_assert(lnx_pidwatch_dead(&w), "reaped");
	lnx_pidwatch_close(&w);
	cr_assert_eq(count_fds(), fds);
	cr_assert_not(lnx_pidwatch_dead(&w), "no process is watched");
	lnx_pidwatch_close(&w);
}

BOTH(reaped_before_it_is_asked)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(NULL);

	cr_assert_eq(watch(&w, pid), 0);
	end(pid);
	cr_assert(lnx_pidwatch_dead(&w));
	lnx_pidwatch_close(&w);
}

BOTH(stopped_is_not_dead)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(NULL);
	siginfo_t si;

	cr_assert_eq(watch(&w, pid), 0);
	kill(pid, SIGSTOP);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOWAIT), 0);
	cr_assert_not(lnx_pidwatch_dead(&w));
	end(pid);
	cr_assert(lnx_pidwatch_dead(&w));
	lnx_pidwatch_close(&w);
}

BOTH(dead_from_the_start)
{
	struct lnx_pidwatch w = { 0 };
	pid_t pid = start_child(NULL);

	kill(pid, SIGKILL);
	wait_for_end(pid);
	cr_assert_eq(watch(&w, pid), -ESRCH, "not reaped");
	waitpid(pid, NULL, 0);
	cr_assert_eq(watch(&w, pid), -ESRCH, "reaped");
	cr_assert_eq(watch(&w, INT_MAX), -ESRCH);
	cr_assert_eq(watch(&w, 0), -EINVAL);
	cr_assert_eq(watch(&w, -1), -EINVAL);
	cr_assert_eq(w.pid, 0, "changed by a failure");
}

BOTH(oneself_and_others)
{
	struct lnx_pidwatch w;

	cr_assert_eq(watch(&w, getpid()), 0);
	cr_assert_not(lnx_pidwatch_dead(&w));
	lnx_pidwatch_close(&w);
	/* A process of root, whatever our user is; hidden on some systems. */
	if (!watch(&w, 1)) {
		cr_assert_not(lnx_pidwatch_dead(&w));
		lnx_pidwatch_close(&w);
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

BOTH(first_thread_ends)
{
	struct lnx_pidwatch w;
	pid_t pid;

	cr_assert_eq(pipe(go_on), 0);
	pid = start_child(leave_a_thread);
	close(go_on[0]);
	while (!first_thread_is_a_zombie(pid))
		usleep(1000);
	cr_assert_eq(watch(&w, pid), 0);
	cr_assert_not(lnx_pidwatch_dead(&w));
	close(go_on[1]);
	wait_for_end(pid);
	cr_assert(lnx_pidwatch_dead(&w));
	waitpid(pid, NULL, 0);
	lnx_pidwatch_close(&w);
}

/* A process name may look like the fields that follow it. */
static void special_name(void)
{
	prctl(PR_SET_NAME, ") Z 1 (x");
}

BOTH(odd_names)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(special_name);

	usleep(10000);
	cr_assert_eq(watch(&w, pid), 0);
	cr_assert_not(lnx_pidwatch_dead(&w));
	end(pid);
	cr_assert(lnx_pidwatch_dead(&w));
	lnx_pidwatch_close(&w);
}

/* The pid belongs to a process that was started at another time. */
Test(pidwatch, number_used_again)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(NULL);

	cr_assert_eq(lnx_pidwatch_open_by_time(&w, pid), 0);
	cr_assert_eq(w.fd, -1);
	w.started--;
	cr_assert(lnx_pidwatch_dead(&w));
	w.started++;
	cr_assert(lnx_pidwatch_dead(&w), "dead for good");
	lnx_pidwatch_close(&w);
	end(pid);
}

Test(pidwatch, descriptor_tells)
{
	struct lnx_pidwatch w;
	pid_t pid = start_child(NULL);
	struct pollfd p = { .events = POLLIN };

	cr_assert_eq(lnx_pidwatch_open(&w, pid), 0);
	p.fd = lnx_pidwatch_fd(&w);
	if (p.fd < 0) {
		end(pid);
		cr_skip_test("this kernel has no pidfds");
	}
	cr_assert_eq(fcntl(p.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	cr_assert_eq(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	cr_assert_eq(poll(&p, 1, -1), 1);
	cr_assert(lnx_pidwatch_dead(&w));
	waitpid(pid, NULL, 0);
	lnx_pidwatch_close(&w);
	cr_assert_eq(lnx_pidwatch_fd(&w), -1);
}

/* Running out of descriptors must not make a process count as dead. */
Test(pidwatch, no_descriptor_left)
{
	struct lnx_pidwatch w, more;
	pid_t pid = start_child(NULL);

	cr_assert_eq(lnx_pidwatch_open_by_time(&w, pid), 0);
	while (dup(0) >= 0)
		;
	cr_assert_not(lnx_pidwatch_dead(&w));
	cr_assert_eq(lnx_pidwatch_open(&more, pid), -EMFILE);
	cr_assert_eq(lnx_pidwatch_open_by_time(&more, pid), -EMFILE);
	end(pid);
	cr_assert(lnx_pidwatch_dead(&w));
}
