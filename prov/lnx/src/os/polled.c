/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors that epoll instances of this process have, as the kernel tells.  See polled.h. */
#include "os/polled.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Marks the descriptors that the epoll instance polls; those from end on do not matter. */
static void mark(int proc, const char *poll, unsigned char *polled, int end)
{
	char path[32], link[32], line[256];
	ssize_t len;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "fd/%s", poll);
	len = readlinkat(proc, path, link, sizeof(link));
	if (len < 0 || strncmp(link, "anon_inode:[eventpoll]", (size_t)len))
		return;
	snprintf(path, sizeof(path), "fdinfo/%s", poll);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		/* It may be any of them. */
		memset(polled, 1, (size_t)end);
		return;
	}
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "tfd: %d", &fd) == 1 && fd >= 0 && fd < end)
			polled[fd] = 1;
	fclose(f);
}

unsigned char *lnx_polled(int end)
{
	unsigned char *polled = calloc((size_t)end, 1);
	struct dirent *e;
	DIR *dir = NULL;
	int proc;

	proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (polled && proc >= 0)
		dir = opendir("/proc/self/fd");
	if (dir) {
		while ((e = readdir(dir)))
			if (e->d_name[0] != '.' && strlen(e->d_name) < 12)
				mark(proc, e->d_name, polled, end);
		closedir(dir);
	} else {
		free(polled);
		polled = NULL;
	}
	if (proc >= 0)
		close(proc);
	return polled;
}
