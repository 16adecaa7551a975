/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnx_policy_open_process: requests of lnx_policy.h through the state segment of a process. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lnxctl/client.h"
#include "lnxctl/find.h"
#include "lnxctl/policy_open.h"

struct process {
	struct lnx_procs procs;		/* the segments of the process; usually one */
	struct lnx_proc *p;
	uint64_t eid;
	unsigned wait_ms;
};

static ssize_t call(void *arg, const void *request, size_t len, void *reply, size_t size)
{
	struct process *own = arg;
	int failed;

	return lnx_client_call(own->p, own->eid, request, len, own->wait_ms, reply, size,
			       &failed);
}

static void release(void *arg)
{
	struct process *own = arg;

	lnx_procs_free(&own->procs);
	free(own);
}

/* Find the endpoint.  0, or a negative errno. */
static int choose(struct process *own, uint64_t eid)
{
	int err = -ESRCH;
	unsigned i, k, n = 0;

	for (i = 0; i < own->procs.n; i++) {
		struct lnx_proc *p = &own->procs.proc[i];

		if (lnx_proc_open(p) || lnx_proc_read(p)) {
			err = p->err == -ENOENT ? err : p->err;
			continue;
		}
		if (p->life == LNX_PROC_ENDED)
			continue;
		for (k = 0; k < p->snap->nep; k++) {
			if (eid && p->snap->ep[k].ep.eid != eid)
				continue;
			own->p = p;
			own->eid = p->snap->ep[k].ep.eid;
			n++;
		}
	}
	return n > 1 ? -ENOTUNIQ : n ? 0 : eid && err == -ESRCH ? -ENOENT : err;
}

int lnx_policy_open_process(pid_t pid, uint64_t eid, unsigned wait_ms,
			    struct lnx_policy **policy)
{
	struct process *own;
	char why[400];
	int ret;

	*policy = NULL;
	if (pid <= 0)
		return -EINVAL;
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->wait_ms = wait_ms ? wait_ms : LNXCTL_REQUEST_WAIT_MS;
	/* Root may look at processes of other users. */
	ret = lnx_procs_find(LNX_STATE_DIR, !geteuid(), pid, &own->procs, why, sizeof(why));
	if (!ret)
		ret = choose(own, eid);
	if (!ret) {
		*policy = lnxctl_policy_make(call, own, release);
		ret = *policy ? 0 : -ENOMEM;
	}
	if (ret)
		release(own);
	return ret;
}
