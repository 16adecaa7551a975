/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads /proc.  See proc.h. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID_NS	"/proc/self/ns/pid"

/* Bytes read, with NUL behind them; or a negative errno. */
static ssize_t slurp(pid_t pid, const char *file, char *buf, size_t size)
{
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = errno == ESRCH ? -ENOENT : -errno;
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

int lnx_proc_start_time(pid_t pid, uint64_t *ticks)
{
	unsigned long long t;
	long threads;
	char text[1024], state, *p;
	ssize_t n = slurp(pid, "stat", text, sizeof(text));

	if (n <= 0)
		return n ? (int)n : -EBADMSG;
	/* "17 (name) S ...": the name may contain anything, so the last ')' counts. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			 "%*u %*u %*d %*d %*d %*d %ld %*d %llu",
			 &state, &threads, &t) != 3)
		return -EBADMSG;
	/* The first thread may end before the others. */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return 0;
	*ticks = t;
	return 1;
}

uint64_t lnx_proc_pid_ns(void)
{
	struct stat st;

	return stat(PID_NS, &st) ? 0 : (uint64_t)st.st_ino;
}

enum lnx_proc_life lnx_proc_life(pid_t pid, uint64_t ticks)
{
	uint64_t now;
	int ret;

	if (pid <= 0)
		return LNX_PROC_ENDED;
	ret = lnx_proc_start_time(pid, &now);
	if (ret > 0)
		return now == ticks ? LNX_PROC_LIVES : LNX_PROC_ENDED;
	if (!ret || (kill(pid, 0) && errno == ESRCH))
		return LNX_PROC_ENDED;
	return LNX_PROC_UNKNOWN;
}

void lnx_proc_name(pid_t pid, char *buf, size_t size)
{
	size_t i;

	buf[0] = '\0';
	if (slurp(pid, "comm", buf, size) <= 0)
		return;
	buf[strcspn(buf, "\n")] = '\0';
	for (i = 0; buf[i]; i++)
		if (buf[i] < ' ' || buf[i] > '~')
			buf[i] = '?';
}
