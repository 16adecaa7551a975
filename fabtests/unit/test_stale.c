/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* base/stale: which segments of dead processes stay. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/proc.h"
#include "base/stale.h"
#include "base/statefile.h"
#include "lnx_state.h"

#define NOW	(1000000 * LNX_NS_PER_S)	/* since boot */
#define WALL	(9000000 * LNX_NS_PER_S)
#define MIB	(1u << 20)

static char root[64];
static int dir;
static pid_t ended;

static void begin(void)
{
	strcpy(root, "/tmp/lnx-stale-XXXXXX");
	cr_assert(mkdtemp(root));
	dir = lnx_statefile_dir(root, geteuid(), true);
	cr_assert(dir >= 0);
	ended = fork();
	if (!ended)
		_exit(0);
	cr_assert_eq(waitpid(ended, NULL, 0), ended);
}

static void end(void)
{
	char command[200];

	close(dir);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(stale, .init = begin, .fini = end);

/* The file of a process that was started then, and wrote last so long ago. */
static void make(pid_t pid, uint64_t started, uint64_t age_ns, uint64_t pid_ns, size_t bytes)
{
	struct lnx_state_header h = {
		.version = LNX_STATE_VERSION, .byte_order = LNX_STATE_ORDER,
		.pid = (uint32_t)pid, .started = started, .pid_ns = pid_ns,
		.opened_ns = NOW - age_ns - LNX_NS_PER_S, .seen_ns = NOW - age_ns,
		.opened_wall_ns = WALL - age_ns - LNX_NS_PER_S,
	};
	struct lnx_statefile f = { .pid = pid, .started = started };
	char name[LNX_STATEFILE_NAME];
	int fd;

	memcpy(h.magic, LNX_STATE_MAGIC, sizeof(h.magic));
	lnx_statefile_print(&f, name);
	fd = openat(dir, name, O_RDWR | O_CREAT, 0600);
	cr_assert(fd >= 0);
	cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	if (bytes)
		cr_assert_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
	close(fd);
}

static void dead(uint64_t started, uint64_t age_s, size_t bytes)
{
	make(ended, started, age_s * LNX_NS_PER_S, lnx_proc_pid_ns(), bytes);
}

static bool there(pid_t pid, uint64_t started)
{
	struct lnx_statefile f = { .pid = pid, .started = started };
	char name[LNX_STATEFILE_NAME];

	lnx_statefile_print(&f, name);
	return !faccessat(dir, name, F_OK, 0);
}

static void clean(void)
{
	lnx_stale_clean(dir, geteuid(), NOW, WALL);
}

Test(stale, a_day)
{
	const uint64_t day = LNX_STATE_KEEP_NS / LNX_NS_PER_S;
	uint64_t self = 0;

	dead(1, 10, 0);
	dead(2, day - 1, 0);
	dead(3, day + 1, 0);
	/* Of one that lives, whatever it says, and of this process. */
	cr_assert_eq(lnx_proc_start_time(getppid(), &self), 1);
	make(getppid(), self, 2 * LNX_STATE_KEEP_NS, lnx_proc_pid_ns(), 0);
	clean();
	cr_expect(there(ended, 1) && there(ended, 2));
	cr_expect(!there(ended, 3));
	cr_expect(there(getppid(), self));
	cr_assert_eq(lnx_proc_start_time(getpid(), &self), 1);
	make(getpid(), self, 2 * LNX_STATE_KEEP_NS, lnx_proc_pid_ns(), 0);
	clean();
	cr_expect(there(getpid(), self));
}

Test(stale, the_newest)
{
	unsigned i;

	/* The older the higher. */
	for (i = 1; i <= LNX_STALE_MAX + 9; i++)
		dead(i, 10 + i, 0);
	clean();
	for (i = 1; i <= LNX_STALE_MAX + 9; i++)
		cr_expect_eq(there(ended, i), i <= LNX_STALE_MAX, "number %u", i);
}

Test(stale, together_they_are_not_too_large)
{
	dead(1, 30, 20 * MIB);
	dead(2, 20, 30 * MIB);
	dead(3, 10, 30 * MIB);
	clean();
	cr_expect(!there(ended, 1));
	cr_expect(there(ended, 2) && there(ended, 3));
	/* One alone may be. */
	dead(4, 5, LNX_STALE_BYTES + MIB);
	clean();
	cr_expect(!there(ended, 2) && !there(ended, 3));
	cr_expect(there(ended, 4));
}

/* Nothing tells whether it has ended. */
Test(stale, elsewhere)
{
	make(ended, 1, LNX_STATE_KEEP_NS - LNX_NS_PER_S, lnx_proc_pid_ns() + 1, 0);
	make(ended, 2, LNX_STATE_KEEP_NS + LNX_NS_PER_S, lnx_proc_pid_ns() + 1, 0);
	/* A number that some process has here. */
	make(getppid(), 3, LNX_STATE_KEEP_NS + LNX_NS_PER_S, lnx_proc_pid_ns() + 1, 0);
	clean();
	cr_expect(there(ended, 1));
	cr_expect(!there(ended, 2) && !there(getppid(), 3));
}

/* Where the clock since boot is another one. */
Test(stale, another_clock)
{
	struct lnx_statefile f = { .pid = ended, .started = 1 };
	struct lnx_state_header h;
	char name[LNX_STATEFILE_NAME];
	int fd;

	make(ended, 1, 10 * LNX_NS_PER_S, lnx_proc_pid_ns() + 1, 0);
	lnx_statefile_print(&f, name);
	fd = openat(dir, name, O_RDWR);
	cr_assert_eq(pread(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	h.opened_ns -= 5 * LNX_STATE_KEEP_NS;
	h.seen_ns -= 5 * LNX_STATE_KEEP_NS;
	cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	close(fd);
	clean();
	cr_expect(there(ended, 1));
}

/* What a process was making, and what is nothing of ours. */
Test(stale, without_a_header)
{
	struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char young[LNX_STATEFILE_NAME], name[2][LNX_STATEFILE_NAME];
	int i, fd;

	snprintf(young, sizeof(young), "%d.7", (int)ended);
	snprintf(name[0], sizeof(name[0]), "%d.8", (int)ended);
	snprintf(name[1], sizeof(name[1]), LNX_STATEFILE_NEW "%d.9", (int)ended);
	close(openat(dir, young, O_RDWR | O_CREAT, 0600));
	close(openat(dir, "health", O_RDWR | O_CREAT, 0600));
	for (i = 0; i < 2; i++) {
		fd = openat(dir, name[i], O_RDWR | O_CREAT, 0600);
		cr_assert_eq(futimens(fd, old), 0);
		close(fd);
	}
	clean();
	cr_expect(!faccessat(dir, young, F_OK, 0));
	cr_expect(!faccessat(dir, "health", F_OK, 0));
	cr_expect(faccessat(dir, name[0], F_OK, 0) && faccessat(dir, name[1], F_OK, 0));
}
