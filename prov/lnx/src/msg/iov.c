/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See iov.h. */
#include "fi.h"
#include "msg/iov.h"
#include "obj/ep.h"
#include "obj/rma.h"

static LNX_COLD int too_long(const char *call)
{
	LNX_WARN(FI_LOG_EP_DATA, "%s: the lengths of all pieces are together more than SIZE_MAX\n",
		 call);
	return -FI_EINVAL;
}

int lnx_iov_check(const char *call, const struct iovec *iov, size_t niov)
{
	size_t i, len = 0;

	if (niov > LNX_IOV_MAX)
		return -FI_EINVAL;
	for (i = 0; i < niov; i++)
		if (__builtin_add_overflow(len, iov[i].iov_len, &len))
			return too_long(call);
	return 0;
}

int lnx_iov_check_rma(const struct lnx_rma *r)
{
	const char *call = lnx_rma_read(r->call) ? "read" : "write";
	size_t i, here = 0, there = 0;

	if (!r->nrma || r->nrma > LNX_RMA_IOV_MAX || lnx_iov_check(call, r->iov, r->niov))
		return -FI_EINVAL;
	for (i = 0; i < r->niov; i++)
		here += r->iov[i].iov_len;
	for (i = 0; i < r->nrma; i++)
		if (__builtin_add_overflow(there, r->rma[i].len, &there))
			return too_long(call);
	if (here == there)
		return 0;
	LNX_WARN(FI_LOG_EP_DATA, "%s: the local pieces have %zu bytes, those in remote memory %zu\n",
		 call, here, there);
	return -FI_EINVAL;
}
