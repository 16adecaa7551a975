/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of the libfabric interface: which opens which, and tables of "not supported".
 */
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
int lnx_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr, void *context);
int lnx_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **set);
int lnx_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int lnx_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		 struct fid_ep **srx, void *context);
int lnx_eq_trywait(struct fid *fid);
int lnx_cntr_trywait(struct fid *fid);
int lnx_cq_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

/* Called by the endpoint: reading cq makes ep progress; cq cannot be closed. */
void lnx_cq_attach(struct lnx_cq *cq, struct lnx_ep_link *link,
		   struct lnx_ep *ep);
void lnx_cq_detach(struct lnx_cq *cq, struct lnx_ep_link *link);
/*
 * A queue for the completions of an endpoint that has no CQ for sends or receives, so
 * that the data path need not check for one.  Written by one endpoint, under its owner
 * lock.  0 or -FI_ENOMEM; closing NULL is fine.
 */
int lnx_cq_null_open(struct lnx_cq **cq);
void lnx_cq_null_close(struct lnx_cq *cq);
/* fi_ep_bind of a counter, before ep is enabled. */
int lnx_cntr_bind(struct lnx_ep *ep, struct fid *fid, uint64_t flags);
/* The same for an enabled endpoint: -FI_EOPBADSTATE once it has sent, received or
 * accessed anything. */
LNX_COLD int lnx_cntr_bind_late(struct lnx_ep *ep, struct fid *fid,
				uint64_t flags);
/* ep is closing: reading a counter does not reach it any more; and later, when nothing
 * will be counted any more: release its counters. */
void lnx_cntr_unbind(struct lnx_ep *ep);
void lnx_cntr_release(struct lnx_ep *ep);
/* One pass over the endpoints that cntr counts for. */
void lnx_cntr_progress(struct lnx_cntr *cntr);
/*
 * Has cntr counted something since this function last filled in *ok and *err, and since
 * the application set it?
 */
bool lnx_cntr_changed(struct lnx_cntr *cntr, uint64_t *ok, uint64_t *err);
int lnx_av_attach(struct lnx_av *av, struct lnx_ep *ep);
void lnx_av_detach(struct lnx_av *av, struct lnx_ep *ep);

int lnx_atomic_query(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

extern struct fi_ops_msg lnx_msg_ops;
extern struct fi_ops_msg lnx_msg_off_ops;	/* all -FI_EOPBADSTATE */
extern struct fi_ops_tagged lnx_tagged_ops;
extern struct fi_ops_tagged lnx_tagged_off_ops;
extern struct fi_ops_rma lnx_rma_ops;
extern struct fi_ops_atomic lnx_atomic_ops;
/* The same where operations are the core providers' own (api/native_*.c). */
extern struct fi_ops_msg lnx_native_msg_ops;
extern struct fi_ops_tagged lnx_native_tagged_ops;
extern struct fi_ops_rma lnx_native_rma_ops;
extern struct fi_ops_mr lnx_mr_ops;	/* of a domain */

/* api/nosys.c: libfabric does not export its own tables. */
int lnx_nosys_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int lnx_nosys_control(struct fid *fid, int command, void *arg);
int lnx_nosys_ops_open(struct fid *fid, const char *name, uint64_t flags,
		       void **ops, void *context);
extern struct fi_ops_rma lnx_no_rma_ops;
extern struct fi_ops_atomic lnx_no_atomic_ops;

#endif
