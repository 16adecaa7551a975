/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading the memory of other processes of this host.  The kernel decides which may be
 * read (same user, no stricter rule); ask lnx_cma_probe first.
 */
#ifndef LNX_CMA_H
#define LNX_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lnx_wire_shm.h"

/* A process, and where the id is in its memory while that may be read. */
struct lnx_cma_owner {
	int pid;
	uint64_t cookie;
	uint64_t eid;
	uint64_t started;		/* start time (os/pidwatch.h); 0: not known */
};

/*
 * Do that process and its endpoint live, and may we read it?  0; ESRCH: one of them
 * does not; or the errno that says why it cannot be found out, mostly EPERM.
 */
int lnx_cma_ask(const struct lnx_cma_owner *owner);
static inline bool lnx_cma_probe(const struct lnx_cma_owner *owner)
{
	return !lnx_cma_ask(owner);
}
/* Is this process itself as readable as others are?  A system call. */
bool lnx_cma_readable(void);
/*
 * Read the first `want` bytes of the pieces into iov, which has room for them.  0, or a
 * positive error number: the pieces are not valid, or may not have been all the time.
 * Without a liveness cookie the caller must find out whether the endpoint was open all
 * the time (lnx_shm_registry_is_live).
 */
int lnx_cma_read(const struct lnx_cma_owner *owner,
		 const struct lnx_wire_piece *piece, unsigned npiece,
		 const struct iovec *iov, size_t niov, size_t want);
/*
 * Copy len bytes of our own memory at `from`, a pointer that may lead anywhere: memory that
 * is not there is no fault.  False: not all of it is there, or the kernel has no such call.
 */
bool lnx_cma_own(const void *from, void *buf, size_t len);

#endif
