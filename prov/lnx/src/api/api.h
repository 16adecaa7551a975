/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects of the libfabric face: who opens what, and tables of "not supported". */
#ifndef LNX_API_H
#define LNX_API_H

#include "comp/comp.h"
#include "obj/ep.h"

int lnx_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);
int lnx_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **eq, void *context);
int lnx_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **av, void *context);
int lnx_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **cq, void *context);
int lnx_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int lnx_eq_trywait(struct fid *fid);
int lnx_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

/* Called by the endpoint: reading cq moves ep along; cq cannot be closed. */
void lnx_cq_attach(struct lnx_cq *cq, struct lnx_ep_link *link,
		   struct lnx_ep *ep);
void lnx_cq_detach(struct lnx_cq *cq, struct lnx_ep_link *link);
int lnx_av_attach(struct lnx_av *av, struct lnx_ep *ep);
void lnx_av_detach(struct lnx_av *av, struct lnx_ep *ep);

extern struct fi_ops_msg lnx_msg_ops;
extern struct fi_ops_msg lnx_msg_off_ops;	/* endpoint not enabled */
extern struct fi_ops_tagged lnx_tagged_ops;
extern struct fi_ops_tagged lnx_tagged_off_ops;

/* api/nosys.c: libfabric does not export its own tables. */
int lnx_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int lnx_no_control(struct fid *fid, int command, void *arg);
int lnx_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);
extern struct fi_ops_rma lnx_no_rma_ops;
extern struct fi_ops_atomic lnx_no_atomic_ops;
extern struct fi_ops_mr lnx_no_mr_ops;

#endif
