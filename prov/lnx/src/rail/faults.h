/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Injects the faults of FI_LNX_FAULT: the rules of policy/fault.h are applied where
 * frames leave and arrive.  An endpoint without rules has ep->fault NULL, and pays one
 * test for it; the callers make that test themselves, except for check, open, log and
 * close.
 *
 * Owner lock held, except for check, open and close.
 */
#ifndef LNX_FAULTS_H
#define LNX_FAULTS_H

#include "base/out.h"
#include "obj/ep.h"

struct lnx_hdr;

/* Frame buffers that delays may hold in one endpoint; a further one is not delayed, and
 * counts as missed. */
#define LNX_FAULTS_HELD_MAX	4096u

/* Is FI_LNX_FAULT valid?  0; or -FI_EINVAL, after a warning: a test that wrongly seems
 * to inject faults is worse than one that does not run. */
int lnx_faults_check(const struct lnx_conf *conf);

/* Make ep->fault if FI_LNX_FAULT is set, and log it.  0 or a negative errno. */
int lnx_faults_open(struct lnx_ep *ep);
/* To be called when its rails are closed. */
void lnx_faults_close(struct lnx_ep *ep);
/* Write to the log what every rule has hit. */
void lnx_faults_log(const struct lnx_ep *ep);

/*
 * Add and remove rules while the endpoint is in use.  New rules come after the present
 * ones; their text was checked before.  0; -FI_EOPNOTSUPP: no rail carries frames;
 * -FI_ENOSPC, -FI_ENOMEM.
 */
int lnx_faults_add(struct lnx_ep *ep, const char *rules);
/* False: there is no rule of that number. */
bool lnx_faults_del(struct lnx_ep *ep, uint64_t number);
void lnx_faults_del_all(struct lnx_ep *ep);
/* Set the counts of all rules to 0. */
void lnx_faults_reset(struct lnx_ep *ep);
/* Number of the last rule; 0 if there is none. */
uint64_t lnx_faults_last(const struct lnx_ep *ep);
/* A line for each rule with a number above after: "fault NUMBER RULE: matched N, hit N"
 * and, if any, ", missed N". */
void lnx_faults_list(const struct lnx_ep *ep, uint64_t after,
		     struct lnx_out *o);

/*
 * To be called when a frame is about to be given to the core of path, with in_core set.
 * True: a rule has taken it, and it counts as taken by the core; its error comes
 * through lnx_rail_core_error(), from progress, with prov_errno LNX_FAULT_ERRNO_BASE +
 * class.
 */
LNX_COLD bool lnx_faults_tx(const struct lnx_peer *peer, struct lnx_path *path,
			    void *frame, uint8_t kind);
/* The same for a piece of a large transfer (msg/pull.c), which is counted as
 * outstanding; push: it is written. */
LNX_COLD bool lnx_faults_piece(const struct lnx_peer *peer,
			       struct lnx_path *path, void *chunk, bool push);

enum lnx_faults_rx {
	LNX_FAULTS_GO,			/* no fault: handle it */
	LNX_FAULTS_DROPPED,		/* handle it as if it had not come; buf is
					 * not kept */
	LNX_FAULTS_HELD,		/* buf is kept, and comes again later */
};
/* A valid frame has come. */
LNX_COLD enum lnx_faults_rx lnx_faults_rx(struct lnx_rail *rail,
					  struct lnx_rxbuf *buf,
					  const struct lnx_hdr *h, size_t len);

/* LNX_WORK_FAULT: deliver errors, and delayed frames that are due. */
LNX_COLD void lnx_faults_run(struct lnx_ep *ep);
/*
 * The core of rail is closed, and nothing in it comes back: forget the errors that were
 * to come from it and drop the frames held.  For closing a rail of an endpoint that
 * stays open.  ep->fault may be NULL.
 */
LNX_COLD void lnx_faults_forget_rail(struct lnx_rail *rail);

#endif
