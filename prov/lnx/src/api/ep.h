/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the endpoint's files: ep.c, ep_open.c, ep_enable.c, ep_close.c. */
#ifndef LNX_API_EP_H
#define LNX_API_EP_H

#include "api/api.h"

static inline struct lnx_ep *lnx_ep_of_fid(struct fid *fid)
{
	return lnx_container_of(fid, struct lnx_ep, fid.fid);
}

/* ep_open.c */
void lnx_ep_init_lists(struct lnx_ep *ep);
/* Matchers and entries of an endpoint or shared context.  0 or -FI_ENOMEM. */
int lnx_ep_init_rx(struct lnx_ep *ep);

/* srx.c */
/* fi_ep_bind of a shared context, before ep is enabled. */
int lnx_srx_bind(struct lnx_ep *ep, struct fid *fid);
/* Calls of an enabled endpoint with a shared context: it cannot post receives. */
extern struct fi_ops_msg lnx_srx_user_msg_ops;
extern struct fi_ops_tagged lnx_srx_user_tagged_ops;

/* ep.c.  Tables of calls that an endpoint has from the start. */
extern struct fi_ops lnx_ep_fid_ops;
extern struct fi_ops_ep lnx_ep_ops;	/* those of shared contexts, too */
extern struct fi_ops_cm lnx_ep_cm_ops;

/* ep_enable.c */
/* fi_enable: 0 (also when it was enabled before), or an error that leaves the
 * endpoint as it was.  Takes the owner lock. */
int lnx_ep_enable(struct lnx_ep *ep);
/*
 * Give the application the data calls of an enabled endpoint, or those that fail with
 * -FI_EOPBADSTATE.  To add a class of calls, add a member to the table there.
 */
void lnx_ep_set_ops(struct lnx_ep *ep, bool enabled);
/* Undo enabling, after an error and for close.  Owner lock held. */
void lnx_ep_del_wait_fds(struct lnx_ep *ep);
void lnx_ep_close_rails(struct lnx_ep *ep);

/* inject.c */
/* Tables for FI_INJECT by default: 0 or -FI_ENOMEM; freed with ep.  And let ep, which
 * is enabled, use them. */
int lnx_inject_new(struct lnx_ep *ep);
void lnx_inject_set(struct lnx_ep *ep);

/* ep_close.c.  Frees ep; always 0. */
int lnx_ep_close(struct fid *fid);

#endif
