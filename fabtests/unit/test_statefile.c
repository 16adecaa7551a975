/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* base/statefile, base/proc: names of segments, which files are trusted, which process lives. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/statefile.h"

static char root[64], dir_path[128];

static void begin(void)
{
	strcpy(root, "/tmp/lnx-statefile-XXXXXX");
	cr_assert(mkdtemp(root));
	snprintf(dir_path, sizeof(dir_path), "%s/lnx-%u", root, (unsigned)geteuid());
}

static void end(void)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	cr_assert_eq(system(command), 0);
}

static const char *in_dir(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir_path, name);
	return path;
}

static int make_file(const char *name, mode_t mode)
{
	int fd = open(in_dir(name), O_RDWR | O_CREAT, mode);

	cr_assert(fd >= 0);
	fchmod(fd, mode);
	close(fd);
	return 0;
}

TestSuite(statefile, .init = begin, .fini = end);

Test(statefile, names)
{
	static const char *const bad[] = {
		"", ".", "12", "12.", ".12", "12.34.", "12.34.5.6", "0.1", "a.1", "12.b",
		"012.34", "12.034", "12.34.0", "12.34.01", "-1.3", "12.34 ", "99999999999.1",
		"2147483648.1", "12.18446744073709551616", "12.34.4294967296", "..",
	};
	struct lnx_statefile f = { .pid = 4711, .started = 123456 };
	char name[LNX_STATEFILE_NAME], longest[200];
	unsigned i;

	lnx_statefile_print(&f, name);
	cr_expect_str_eq(name, "4711.123456");
	cr_assert(lnx_statefile_parse("4711.123456", &f));
	cr_expect(f.pid == 4711 && f.started == 123456 && !f.copy);
	f.copy = 3;
	lnx_statefile_print(&f, name);
	cr_expect_str_eq(name, "4711.123456.3");
	memset(&f, 0, sizeof(f));
	cr_assert(lnx_statefile_parse(name, &f));
	cr_expect(f.pid == 4711 && f.started == 123456 && f.copy == 3);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect(!lnx_statefile_parse(bad[i], &f), "\"%s\"", bad[i]);
	memset(longest, '1', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	cr_expect(!lnx_statefile_parse(longest, &f));
}

Test(statefile, directory)
{
	char long_root[400];
	struct stat st;
	int fd;

	cr_assert_eq(lnx_statefile_dir(root, geteuid(), false), -ENOENT);
	umask(0);
	fd = lnx_statefile_dir(root, geteuid(), true);
	cr_assert(fd >= 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0700u);
	close(fd);
	/* Others could use it. */
	chmod(dir_path, 0750);
	cr_expect_eq(lnx_statefile_dir(root, geteuid(), true), -EPERM);
	chmod(dir_path, 0701);
	cr_expect_eq(lnx_statefile_dir(root, geteuid(), true), -EPERM);
	/* A link, and a file. */
	rmdir(dir_path);
	cr_assert_eq(symlink("/tmp", dir_path), 0);
	cr_expect_eq(lnx_statefile_dir(root, geteuid(), true), -EPERM);
	unlink(dir_path);
	close(open(dir_path, O_WRONLY | O_CREAT, 0700));
	cr_expect_eq(lnx_statefile_dir(root, geteuid(), true), -EPERM);
	memset(long_root, 'x', sizeof(long_root));
	long_root[sizeof(long_root) - 1] = '\0';
	cr_expect_eq(lnx_statefile_dir(long_root, 1, true), -ENAMETOOLONG);
}

/* Of another user: only root can make one. */
Test(statefile, foreign_directory)
{
	if (geteuid()) {
		cr_log_warn("skipped: needs root");
		return;
	}
	cr_assert_eq(mkdir(dir_path, 0700), 0);
	cr_assert_eq(chown(dir_path, 65534, 65534), 0);
	cr_expect_eq(lnx_statefile_dir(root, 0, false), -EPERM);
}

Test(statefile, files)
{
	int dir = lnx_statefile_dir(root, geteuid(), true), fd;

	cr_assert(dir >= 0);
	cr_expect_eq(lnx_statefile_open(dir, "1.1", geteuid(), O_RDONLY), -ENOENT);
	make_file("1.1", 0600);
	fd = lnx_statefile_open(dir, "1.1", geteuid(), O_RDWR);
	cr_assert(fd >= 0);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	cr_expect_eq(lnx_statefile_open(dir, "1.1", geteuid() + 1, O_RDONLY), -EPERM);
	make_file("1.2", 0640);
	cr_expect_eq(lnx_statefile_open(dir, "1.2", geteuid(), O_RDONLY), -EPERM);
	cr_assert_eq(symlink("1.1", in_dir("1.3")), 0);
	cr_expect_eq(lnx_statefile_open(dir, "1.3", geteuid(), O_RDONLY), -EPERM);
	/* A pipe must not be waited for. */
	cr_assert_eq(mkfifo(in_dir("1.4"), 0600), 0);
	cr_expect_eq(lnx_statefile_open(dir, "1.4", geteuid(), O_RDONLY), -EPERM);
	cr_assert_eq(mkdir(in_dir("1.5"), 0700), 0);
	cr_expect_eq(lnx_statefile_open(dir, "1.5", geteuid(), O_RDONLY), -EPERM);
	close(dir);
}

struct seen {
	unsigned n, temporary, sum;
};

static void see(void *arg, const char *name, const struct lnx_statefile *f,
		bool temporary)
{
	struct seen *s = arg;

	cr_assert(name[0]);
	s->n++;
	s->temporary += temporary;
	s->sum += (unsigned)f->pid;
}

Test(statefile, each)
{
	int dir = lnx_statefile_dir(root, geteuid(), true);
	struct seen s = { 0 };

	make_file("1.5", 0600);
	make_file("2.5", 0600);
	make_file("4.5.1", 0600);
	make_file(LNX_STATEFILE_NEW "8.5", 0600);
	make_file("something", 0600);
	cr_assert_eq(lnx_statefile_each(dir, 100, see, &s), 0);
	cr_expect_eq(s.n, 4u);
	cr_expect_eq(s.temporary, 1u);
	cr_expect_eq(s.sum, 15u);
	/* The descriptor can be used again. */
	s.n = 0;
	cr_assert_eq(lnx_statefile_each(dir, 2, see, &s), 0);
	cr_expect_eq(s.n, 2u);
	close(dir);
}

Test(statefile, processes)
{
	uint64_t ticks = 0;
	char name[32];
	pid_t pid;

	cr_assert_eq(lnx_proc_start_time(getpid(), &ticks), 1);
	cr_expect_eq(lnx_proc_life(getpid(), ticks), LNX_PROC_LIVES);
	/* The number is another process's. */
	cr_expect_eq(lnx_proc_life(getpid(), ticks + 1), LNX_PROC_ENDED);
	cr_expect_eq(lnx_proc_life(0, ticks), LNX_PROC_ENDED);
	cr_expect_eq(lnx_proc_life(-3, ticks), LNX_PROC_ENDED);
	pid = fork();
	if (!pid)
		_exit(0);
	while (lnx_proc_start_time(pid, &ticks) == 1)
		usleep(1000);
	/* Its parent has not noticed. */
	cr_expect_eq(lnx_proc_life(pid, ticks), LNX_PROC_ENDED);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(lnx_proc_life(pid, ticks), LNX_PROC_ENDED);
	lnx_proc_name(getpid(), name, sizeof(name));
	cr_expect_str_eq(name, "pure.t");
	lnx_proc_name(pid, name, sizeof(name));
	cr_expect_str_eq(name, "");
	cr_expect(lnx_proc_pid_ns());
}
