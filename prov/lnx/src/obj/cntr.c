/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* References to a counter, and the threads that sleep on it (obj/cntr.h). */
#include "obj/cntr.h"

#include "obj/wait.h"

LNX_COLD void lnx_cntr_wake(struct lnx_cntr *cntr)
{
	lnx_wait_signal(cntr->wait);
}

struct lnx_cntr *lnx_cntr_ref(struct fid *fid)
{
	struct lnx_cntr *cntr =
		lnx_container_of(fid, struct lnx_cntr, fid.fid);

	__atomic_add_fetch(&cntr->refs, 1, __ATOMIC_RELAXED);
	return cntr;
}

void lnx_cntr_unref(struct lnx_cntr *cntr)
{
	__atomic_sub_fetch(&cntr->refs, 1, __ATOMIC_RELEASE);
}

struct lnx_cntr *lnx_cntr_ref_mr(struct fid *fid)
{
	struct lnx_cntr *cntr = lnx_cntr_ref(fid);

	/* Endpoints have locks of their own. */
	cntr->threads = true;
	__atomic_add_fetch(&cntr->nmr, 1, __ATOMIC_RELEASE);
	return cntr;
}

void lnx_cntr_unref_mr(struct lnx_cntr *cntr)
{
	__atomic_sub_fetch(&cntr->nmr, 1, __ATOMIC_RELEASE);
	lnx_cntr_unref(cntr);
}
