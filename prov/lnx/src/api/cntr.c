/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cntr(3): what obj/cntr.h counts, read, changed and waited for. */
#include "api/api.h"

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
