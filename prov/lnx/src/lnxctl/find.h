/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds the state segments of this host, opens them, and makes a process publish. */
#ifndef LNXCTL_FIND_H
#define LNXCTL_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc.h"
#include "base/statefile.h"
#include "lnxctl/reader.h"

struct lnx_proc {
	struct lnx_statefile file;
	uid_t uid;
	char name[LNX_STATEFILE_NAME];	/* of its file */
	char path[LNX_STATEFILE_PATH];
	int fd;				/* -1: not open */
	bool writable;			/* requests can be made */
	uint64_t size;
	enum lnx_proc_life life;
	struct lnx_snap *snap;		/* the last one; owned, or NULL */
	uint32_t look;			/* value of the mailbox's word after our last
					 * call of lnx_proc_wake */
	uint64_t woken_ns;
	int err;			/* why it cannot be read, or 0 */
	char why[400];
};

struct lnx_procs {
	struct lnx_proc *proc;
	unsigned n;
	unsigned denied;		/* directories of other users */
};

/*
 * All segments below root of the user of this process; all_users: of all users, as far
 * as this process may read them, which only root can.  pid: only those of that process;
 * 0: of all.  Sorted by pid.  0; -ENOMEM; or another negative errno with a sentence in
 * why: the directory of the user is not as it should be.
 */
int lnx_procs_find(const char *root, bool all_users, pid_t pid, struct lnx_procs *out,
		   char *why, size_t why_size);
/* A copy that `lnxctl dump` made, as the only process. */
int lnx_procs_file(const char *path, struct lnx_procs *out, char *why, size_t why_size);
void lnx_procs_free(struct lnx_procs *procs);

/* Open p, which stays open.  0, or p->err, with a sentence in p->why. */
int lnx_proc_open(struct lnx_proc *p);
/* Tell it that a reader is here: it publishes everything when it makes progress.  False:
 * it cannot be told. */
bool lnx_proc_wake(struct lnx_proc *p);
/* Read p->snap.  0, or p->err. */
int lnx_proc_read(struct lnx_proc *p);
/* Has an endpoint of the snapshot been published since lnx_proc_wake, and its peers?  Has each? */
bool lnx_proc_ep_fresh(const struct lnx_proc *p, const struct lnx_snap_ep *e, bool peers);
bool lnx_proc_fresh(const struct lnx_proc *p, bool peers);

/*
 * Wake all, and read all that can be read, for at most wait_ms until they are fresh.
 * peers: so are their peers.  Those that have ended are not open then.
 */
void lnx_procs_read(struct lnx_procs *procs, unsigned wait_ms, bool peers);

#endif
