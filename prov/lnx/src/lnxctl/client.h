/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Makes requests to a process through the mailbox of its state segment (lnx_state.h). */
#ifndef LNXCTL_CLIENT_H
#define LNXCTL_CLIENT_H

#include <stdint.h>

#include "lnxctl/find.h"

/* A process that makes progress takes a request within that; it answers some later. */
#define LNX_CLIENT_WAIT_MS	1000u

struct lnx_answer {
	int result;			/* 0, or what lnx_control_ops.request returned */
	char *text;			/* the reply, or the sentence; owned, ends with
					 * NUL; printable but for newlines */
};

/*
 * Have the endpoint eid of p, which is open, carry out a request.  take_ms: how long it
 * may take until the process takes it, answer_ms: and then until it is answered.
 *
 * 0, and *a, to be freed with lnx_answer_free; -ETIMEDOUT: the process makes no progress,
 * and the request will not be carried out; -ETIME: it was taken, and there was no answer
 * in time; -ESRCH: the process has ended; -EACCES: its segment may not be written;
 * -EBUSY: other readers keep the mailbox; -E2BIG; -EPROTO: what it writes makes no
 * sense; -ENOMEM.
 */
int lnx_client_ask(struct lnx_proc *p, uint64_t eid, const char *text,
		   unsigned take_ms, unsigned answer_ms, struct lnx_answer *a);
void lnx_answer_free(struct lnx_answer *a);

/* A sentence for such an error. */
const char *lnx_client_error(int err);

#endif
