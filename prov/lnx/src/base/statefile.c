/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names and permissions of state segments.  See statefile.h. */
#include "base/statefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/span.h"

void lnx_statefile_print(const struct lnx_statefile *f, char name[LNX_STATEFILE_NAME])
{
	int n = snprintf(name, LNX_STATEFILE_NAME, "%d.%" PRIu64, (int)f->pid,
			 f->started);

	if (f->copy)
		snprintf(name + n, LNX_STATEFILE_NAME - (size_t)n, ".%u", f->copy);
}

bool lnx_statefile_parse(const char *name, struct lnx_statefile *f)
{
	struct lnx_span part[3] = { 0 };
	uint64_t v[3] = { 0 };
	char again[LNX_STATEFILE_NAME];
	unsigned n = 0;

	if (strnlen(name, LNX_STATEFILE_NAME) == LNX_STATEFILE_NAME)
		return false;
	for (;; n++) {
		if (n == 3)
			return false;
		part[n].s = name;
		part[n].len = strcspn(name, ".");
		if (!lnx_span_uint(part[n], &v[n]))
			return false;
		name += part[n].len;
		if (!*name++)
			break;
	}
	if (!n || !v[0] || v[0] > INT32_MAX || v[2] > UINT32_MAX)
		return false;
	*f = (struct lnx_statefile){
		.pid = (pid_t)v[0], .started = v[1], .copy = (unsigned)v[2],
	};
	/* Only one spelling. */
	lnx_statefile_print(f, again);
	return !strcmp(again, part[0].s);
}

int lnx_statefile_dir(const char *root, uid_t uid, bool make)
{
	char path[LNX_STATEFILE_PATH];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/lnx-%u", root, (unsigned)uid) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 077)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int lnx_statefile_open(int dir, const char *name, uid_t uid, int flags)
{
	struct stat st;
	/* Not to wait for the other end of a pipe that is in its place. */
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
			O_NOCTTY);

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid ||
	    (st.st_mode & 077)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int lnx_statefile_each(int dir, unsigned max,
		       void (*fn)(void *arg, const char *name,
				  const struct lnx_statefile *f, bool temporary),
		       void *arg)
{
	/* The stream closes its descriptor, and a copy would share the position. */
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct lnx_statefile f;
	struct dirent *e;
	int ret = 0;

	if (!d) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while (max && (e = readdir(d))) {
		const char *name = e->d_name;
		bool temporary = !strncmp(name, LNX_STATEFILE_NEW,
					  sizeof(LNX_STATEFILE_NEW) - 1);

		if (temporary)
			name += sizeof(LNX_STATEFILE_NEW) - 1;
		if (!lnx_statefile_parse(name, &f))
			continue;
		max--;
		fn(arg, e->d_name, &f, temporary);
	}
	closedir(d);
	return ret;
}
