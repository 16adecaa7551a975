/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading the memory of other processes of this host.  Whom the kernel lets read
 * is its business (same user, no more restrictive rule); ask lnx_cma_probe first.
 */
#ifndef LNX_CMA_H
#define LNX_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lnx_wire_shm.h"
#include "obj/peer.h"

/*
 * Does that process live, and its endpoint, and may we read it?  0; ESRCH: one of them
 * is no more; or the errno that says why it cannot be told, EPERM mostly.
 */
int lnx_cma_ask(const struct lnx_cma_owner *owner);
static inline bool lnx_cma_probe(const struct lnx_cma_owner *owner)
{
	return !lnx_cma_ask(owner);
}
/*
 * Read the first `want` bytes of the pieces into iov, which has room for them.  0,
 * or a positive error number: the pieces are not, or may not have been all the time,
 * what they were said to be.  Without a mark whether the endpoint was open all the
 * time is left to the caller to find out (lnx_shm_registry_is_live).
 */
int lnx_cma_read(const struct lnx_cma_owner *owner,
		 const struct lnx_wire_piece *piece, unsigned npiece,
		 const struct iovec *iov, size_t niov, size_t want);

#endif
