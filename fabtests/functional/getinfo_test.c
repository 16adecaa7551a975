/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo of lnx: which links are offered, under which names and attributes,
 * which hints are honoured or refused, and which messages mistakes give.
 *
 * libfabric reads its environment once per process, so each case is this
 * program started again with the case's environment; the output of program and
 * library is captured.  A case passes when the child found no error and the
 * warnings of lnx are exactly those expected: in the log at level warn; without
 * FI_LOG_LEVEL, as lines on standard error by the first rank of a job, unless
 * FI_LNX_QUIET=1.  The cases themselves are in getinfo_cases.c.
 *
 * getinfo_test [-v] [NAME...], with LNX_SO=…/liblnx-fi.so in the environment
 *
 * Prints TAP.  Exit 0 all passed, 1 some failed, 77 nothing to test.
 */
#include "getinfo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>

#define CASE_SECONDS	60	/* hang guard */
#define OUTPUT_MAX	(1 << 18)

int gi_failed;

/*
 * Replaces libfabric's function, for cases about other versions: the module
 * calls it to learn the version of the library that loaded it.
 */
__attribute__((visibility("default"))) uint32_t fi_version(void)
{
	uint32_t (*real)(void) = (uint32_t (*)(void))dlsym(RTLD_NEXT,
							   "fi_version");
	const char *pretend = getenv("TEST_FI_VERSION");
	unsigned major, minor;

	if (pretend && sscanf(pretend, "%u.%u", &major, &minor) == 2)
		return FI_VERSION(major, minor);
	return real ? real() : 0;
}

void gi_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	gi_failed++;
	printf("#   %s:%d: ", strrchr(file, '/') ? strrchr(file, '/') + 1 :
	       file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* ---- child ---- */

static int run_child(const char *name)
{
	const struct gi_case *c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (c = gi_cases; c->name; c++)
		if (!strcmp(c->name, name))
			break;
	if (!c->name)
		return 2;
	if (c->how & GI_NETNS) {
		const char *why = gi_make_net();

		if (why) {
			printf("# SKIP %s\n", why);
			return 77;
		}
	}
	if (c->run)
		c->run();
	return gi_failed ? 1 : 0;
}

/* ---- parent ---- */

static char self[PATH_MAX];
static char provider_path[PATH_MAX];
static bool verbose;

/* How a case is run: its environment, and where its warnings must appear. */
struct mode {
	const char *name;
	const char *env[3];
	bool log;			/* libfabric's log, at level warn */
	bool lines;			/* lines on standard error */
};

/* Those from the third on are only used for cases with warnings. */
static const struct mode modes[] = {
	{ "log", { "FI_LOG_LEVEL=warn" }, true, false },
	{ "no log", { 0 }, false, true },
	{ "quiet", { "FI_LNX_QUIET=1" }, false, false },
	{ "rank 1", { "PMI_RANK=1", "MPI_LOCALRANKID=0" }, false, false },
	{ "rank 0", { "OMPI_COMM_WORLD_RANK=0", "SLURM_PROCID=3" }, false,
	  true },
	/* A warning while libfabric loads us is in the log in any case. */
	{ "log of others", { "FI_LOG_LEVEL=warn", "FI_LOG_PROV=tcp" }, true,
	  true },
};
#define MODES		(sizeof(modes) / sizeof(modes[0]))
#define MODES_ALWAYS	2

static void start_child(const struct gi_case *c, const struct mode *m, int out)
{
	static const char *const clean[] = {
		"FI_PROVIDER", "FI_HOOK", "FI_LOG_SUBSYS", "FI_LOG_PROV",
		"FI_TCP_IFACE", "FI_OFI_RXM_MSG_RX_SIZE", "TEST_FI_VERSION",
		"FI_LOG_LEVEL", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
		"MV2_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK",
		"SLURM_PROCID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"MPI_LOCALRANKID", "SLURM_LOCALID",
	};
	extern char **environ;

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++)
		unsetenv(clean[i]);
	for (char **e = environ; *e; ) {
		char name[128];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="),
			 *e);
		if (strncmp(name, "FI_LNX_", 7) || unsetenv(name))
			e++;
	}
	setenv("FI_PROVIDER_PATH", provider_path, 1);
	for (int i = 0; i < 3 && m->env[i]; i++)
		putenv((char *)m->env[i]);
	for (int i = 0; i < GI_ENV_MAX && c->env[i]; i++)
		putenv((char *)c->env[i]);

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	alarm(CASE_SECONDS);	/* survives exec */
	execl(self, self, "--child", c->name, (char *)NULL);
	_exit(127);
}

static char *read_all(int fd)
{
	char *buf = malloc(OUTPUT_MAX);
	size_t used = 0;
	ssize_t n;

	if (!buf)
		abort();
	while ((n = read(fd, buf + used, OUTPUT_MAX - 1 - used)) > 0 ||
	       (n < 0 && errno == EINTR))
		used += n > 0 ? (size_t)n : 0;
	buf[used] = '\0';
	return buf;
}

/* Lines that our provider logged at level warn. */
static int count_warnings(const char *out)
{
	int count = 0;

	for (const char *p = out; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, "\n");
		const char *lnx = memmem(p, len, ":lnx:", 5);

		if (lnx && memmem(lnx, len - (lnx - p), "<warn>", 6))
			count++;
	}
	return count;
}

/* Lines that the library wrote itself. */
static int count_lines(const char *out)
{
	int count = 0;

	for (const char *p = out; *p; p += strcspn(p, "\n"), p += *p == '\n')
		count += !strncmp(p, "lnx", 3);
	return count;
}

/* Prints why a case failed; true when everything was as the case requires. */
static bool judge(const struct gi_case *c, const struct mode *m, int status,
		  const char *out)
{
	bool good = true;
	int warnings = count_warnings(out), lines = count_lines(out);
	int should_log = m->log ? c->warnings : 0;
	int should_line = m->lines && !(c->how & GI_LOG_ONLY) ?
			  c->warnings : 0;

	if (WIFSIGNALED(status)) {
		printf("#   ended by signal %d\n", WTERMSIG(status));
		return false;
	}
	if (WEXITSTATUS(status)) {
		printf("#   exit code %d\n", WEXITSTATUS(status));
		good = false;
	}
	if (c->warnings < 0) {
		/* Any number of warnings: their text is checked, where all of
		 * it is captured. */
		if (!m->log || m->lines)
			return good;
		goto text;
	}
	if (m->log && m->lines) {
		if (should_line ? lines + warnings == should_line : !lines)
			return good;
		printf("#   %d warnings of lnx and %d lines instead of %d\n",
		       warnings, lines, should_line);
		return false;
	}
	if (warnings != should_log) {
		printf("#   %d warnings of lnx instead of %d\n", warnings,
		       should_log);
		good = false;
	}
	if (lines != should_line) {
		printf("#   %d lines of lnx on standard error instead of %d\n",
		       lines, should_line);
		good = false;
	}
	if (!should_log && !should_line)
		return good;
text:
	for (int i = 0; i < GI_SAYS_MAX && c->says[i]; i++) {
		if (strstr(out, c->says[i]))
			continue;
		printf("#   missing in the output: %s\n", c->says[i]);
		good = false;
	}
	return good;
}

static void show(const char *out)
{
	while (*out) {
		size_t len = strcspn(out, "\n");

		printf("# | %.*s\n", (int)len, out);
		out += len + (out[len] == '\n');
	}
}

/* 0 passed or skipped, 1 failed. */
static int run_case(const struct gi_case *c, const struct mode *m, int number)
{
	int fd[2], status, bad;
	char *out, *skip;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		abort();
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid)
		start_child(c, m, fd[1]);
	close(fd[1]);
	out = read_all(fd[0]);
	close(fd[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77 &&
	    (skip = strstr(out, "# SKIP "))) {
		skip[strcspn(skip, "\n")] = '\0';
		printf("ok %d - %s, %s %s\n", number, c->name, m->name, skip);
		free(out);
		return 0;
	}
	bad = !judge(c, m, status, out);
	if (bad || verbose)
		show(out);
	printf("%s %d - %s, %s\n", bad ? "not ok" : "ok", number, c->name,
	       m->name);
	free(out);
	return bad;
}

static bool chosen(const struct gi_case *c, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(c->name, *names))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *so = getenv("LNX_SO");
	const struct gi_case *c;
	int number = 0, failed = 0;
	ssize_t n;

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return run_child(argv[2]);

	argv++;
	if (*argv && !strcmp(*argv, "-v")) {
		verbose = true;
		argv++;
	}
	if (!so || access(so, R_OK)) {
		printf("1..0 # SKIP LNX_SO does not name the module to "
		       "test\n");
		return 77;
	}
	snprintf(provider_path, sizeof(provider_path), "+%s", so);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		abort();
	self[n] = '\0';

	for (c = gi_cases; c->name; c++)
		for (size_t i = 0; chosen(c, argv) && i < MODES; i++)
			if (i < MODES_ALWAYS || c->warnings)
				failed += run_case(c, &modes[i], ++number);
	printf("1..%d\n", number);
	if (!number)
		printf("# no such case\n");
	return failed || !number ? 1 : 0;
}
