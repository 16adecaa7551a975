/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Makes requests to a process through the mailbox of its state segment (lnx_state.h). */
#ifndef LNXCTL_CLIENT_H
#define LNXCTL_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/interval.h"
#include "lnxctl/find.h"

#define LNX_CLIENT_REQUEST	(LNX_STATE_REQUEST - 1ul)	/* bytes of one, at most */

struct lnx_answer {
	int result;			/* 0, or what lnx_control_ops.request returned */
	char *text;			/* the reply, or the sentence; owned, ends with
					 * NUL; of lnx_client_ask printable but for
					 * newlines */
	uint32_t len;			/* of text, without that NUL */
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
/* The same of a request that is no text, such as a block of lnx_policy.h, and not empty.
 * The reply is as the process wrote it. */
int lnx_client_send(struct lnx_proc *p, uint64_t eid, const void *request, size_t len,
		    unsigned take_ms, unsigned answer_ms, struct lnx_answer *a);
/*
 * The same with the reply in a buffer of size bytes: its length, or a negative errno.
 * *failed is the error of lnx_client_send, or 0 if the process has answered.
 */
ssize_t lnx_client_call(struct lnx_proc *p, uint64_t eid, const void *request, size_t len,
			unsigned wait_ms, void *reply, size_t size, int *failed);
void lnx_answer_free(struct lnx_answer *a);

/* Put '?' for bytes from a process that a terminal might obey; newlines stay. */
void lnx_client_printable(char *text, size_t len);

/* A sentence for such an error. */
const char *lnx_client_error(int err);

#endif
