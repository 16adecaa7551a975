/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabric and domain: the objects above endpoints; and event queues. */
#ifndef LNX_DOMAIN_H
#define LNX_DOMAIN_H

#include "base/list.h"
#include "base/lock.h"
#include "obj/link.h"
#include "fi.h"

struct lnx_job_key;

struct lnx_fabric {
	struct fid_fabric fid;
	int refs;			/* domains, EQs; atomic */
};

struct lnx_domain {
	struct fid_domain fid;
	struct lnx_fabric *fabric;
	struct lnx_link_rails *rails;	/* of this link */
	struct fi_info *info;		/* as the application passed it */
	bool threads;			/* locking is on */
	bool mr_basic;			/* we pick keys; addresses are virtual */
	bool hmem;			/* FI_HMEM: all rails are native and have it */
	bool new_mr_attr;		/* the application's fi_mr_attr has the
					 * member iface */
	uint64_t host;			/* our host identity */
	int refs;			/* endpoints, AVs, CQs, MRs; atomic */
	pthread_mutex_t eps_lock;
	struct lnx_node eps;		/* enabled ones: lnx_ep.domain_link */
	struct lnx_lock mr_lock;
	struct lnx_mr **mrs;		/* hash of registrations by key */
	uint32_t mrs_mask;
	uint32_t nmr;
	uint32_t ncounted;		/* registrations with a counter; atomic */
	struct lnx_amo_limits *amo;	/* rma/amo_limits.c; atomic, owned */
	struct lnx_job_key *job_key;	/* core/job_key.h; NULL: none; owned */
};

struct lnx_mr;
struct lnx_eq;
/* Reference to an event queue, for objects that report to one (api/eq.c). */
struct lnx_eq *lnx_eq_ref(struct fid *fid);
void lnx_eq_unref(struct lnx_eq *eq);
int lnx_eq_write_err(struct lnx_eq *eq, const struct fi_eq_err_entry *err);
/* Queue an event; 0 or -FI_ENOMEM. */
int lnx_eq_write(struct lnx_eq *eq, uint32_t event, const void *buf,
		 size_t len);

#endif
