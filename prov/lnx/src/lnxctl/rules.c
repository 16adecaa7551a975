/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of lnx_policy.h, with blocks that go through the mailbox of an endpoint.  For
 * "udsp" and "import".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

static ssize_t call(void *arg, const void *request, size_t len, void *reply, size_t size)
{
	struct lnxctl_rules *r = arg;

	return lnx_client_call(r->p, r->e->ep.eid, request, len,
			       r->c->wait_ms ? r->c->wait_ms : LNXCTL_REQUEST_WAIT_MS, reply,
			       size, &r->failed);
}

bool lnxctl_rules_open(struct lnxctl_rules *r, struct lnxctl *c, struct lnx_proc *p,
		       const struct lnx_snap_ep *e)
{
	*r = (struct lnxctl_rules){ .c = c, .p = p, .e = e };
	if (c->file) {
		lnxctl_fail(c, NULL, LNXCTL_REFUSED, -EROFS, "%s: it is a copy, which "
			    "answers nothing", c->file);
		return false;
	}
	r->policy = lnx_must(lnx_policy_open(call, r));
	return true;
}

void lnxctl_rules_close(struct lnxctl_rules *r)
{
	lnx_policy_close(r->policy);
	r->policy = NULL;
}

void lnxctl_rules_fail(const struct lnxctl_rules *r, int err)
{
	char why[600];

	/* It comes from the process. */
	snprintf(why, sizeof(why), "%s", lnx_policy_error(r->policy));
	lnx_client_printable(why, strlen(why));
	if (r->failed)
		lnxctl_fail(r->c, r->p, r->failed == -EACCES || r->failed == -E2BIG ?
			    LNXCTL_REFUSED : LNXCTL_NO_ANSWER, r->failed, "%s",
			    lnx_client_error(r->failed));
	else
		lnxctl_fail(r->c, r->p, LNXCTL_REFUSED, err, "%s", why);
}
