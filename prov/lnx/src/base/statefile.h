/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where state segments are (lnx_state.h): for the process that writes one and for
 * readers.  root is LNX_STATE_DIR, but for tests.
 */
#ifndef LNX_STATEFILE_H
#define LNX_STATEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LNX_STATEFILE_NAME	64	/* of a file, with NUL */
#define LNX_STATEFILE_PATH	256	/* of it with its directory */

/* What the name of a segment's file says. */
struct lnx_statefile {
	pid_t pid;
	uint64_t started;
	unsigned copy;			/* 0, but for further libraries of the process */
};

void lnx_statefile_print(const struct lnx_statefile *f, char name[LNX_STATEFILE_NAME]);
/* False: name is not that of a segment. */
bool lnx_statefile_parse(const char *name, struct lnx_statefile *f);

/*
 * The directory of that user, as a descriptor.  It is used only if it is a directory
 * that belongs to the user and that no other user may write or search.  make: create it
 * if there is none.  A negative errno: -ENOENT: there is none; -EPERM: it is not as it
 * should be.
 */
int lnx_statefile_dir(const char *root, uid_t uid, bool make);

/*
 * Open a file in it: a regular file of that user, which others may not read or write.
 * flags as of open(2), without O_CREAT.  A descriptor, or a negative errno as above.
 */
int lnx_statefile_open(int dir, const char *name, uid_t uid, int flags);

/*
 * Call fn for each segment in dir, at most max of them; a temporary file of a process
 * that was creating one counts too (fn gets temporary set).  0 or a negative errno.
 */
int lnx_statefile_each(int dir, unsigned max,
		       void (*fn)(void *arg, const char *name,
				  const struct lnx_statefile *f, bool temporary),
		       void *arg);

/* Before a file has all of its header its name begins with this. */
#define LNX_STATEFILE_NEW	".new-"

#endif
