/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Regions that killed processes have left.  See shm_stale.h. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/proc.h"
#include "core/open.h"
#include "core/shm_registry.h"
#include "core/shm_stale.h"

#define FILES_MAX	4096u		/* that are looked at */
#define PREFIX		"lnx-"
#define EID_DIGITS	16u		/* of the endpoint's id, in its name */

/* lnx-0123456789abcdef, or the same with a dot and a digit. */
static bool is_name(const char *name)
{
	const char *id = name + strlen(PREFIX), *end;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return false;
	end = id + strspn(id, "0123456789abcdef");
	return end == id + EID_DIGITS && (!*end || (end[0] == '.' && end[1] && !end[2]));
}

static bool is_recent(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec < st->st_mtime + (time_t)(LNX_SHM_KEEP_NS / LNX_NS_PER_S);
}

/* Has the process ended whose region it is? */
static bool is_left(int fd, const struct stat *st)
{
	struct lnx_shm_opener opener;

	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       lnx_shm_registry_opener(fd, st->st_size, &opener) && opener.started &&
	       opener.pid_ns && opener.pid_ns == lnx_proc_pid_ns() &&
	       lnx_proc_life(opener.pid, opener.started) == LNX_PROC_ENDED;
}

/*
 * Remove name, which was st.  A process may have opened an endpoint of the same name
 * meanwhile: so it is renamed first, and goes back if it is another file.
 */
static void remove_file(int dir, const char *name, const struct stat *st)
{
	char aside[NAME_MAX + 1];
	struct stat now;

	snprintf(aside, sizeof(aside), ".%.*s.%ld", LNX_SHM_PATH_BYTES, name, (long)getpid());
	if (renameat(dir, name, dir, aside))
		return;
	if (!fstatat(dir, aside, &now, AT_SYMLINK_NOFOLLOW) &&
	    (now.st_ino != st->st_ino || now.st_dev != st->st_dev) &&
	    !linkat(dir, aside, dir, name, 0))
		FI_DBG(&lnx_prov, FI_LOG_EP_CTRL, "%s: opened anew meanwhile\n", name);
	unlinkat(dir, aside, 0);
}

static void look_at(int dir, const char *name, bool all)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (all || !is_recent(&st)) && is_left(fd, &st))
		remove_file(dir, name, &st);
	close(fd);
}

LNX_COLD void lnx_shm_stale_clean(bool all)
{
	DIR *d = opendir(LNX_SHM_DIR);
	const struct dirent *e;
	unsigned n;

	for (n = 0; d && n < FILES_MAX && (e = readdir(d)); n++)
		if (is_name(e->d_name))
			look_at(dirfd(d), e->d_name, all);
	if (d)
		closedir(d);
}
