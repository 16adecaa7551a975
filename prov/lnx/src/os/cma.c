/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading other processes' memory, with a check that the data is valid.  The liveness
 * cookie is read after the data in the same call.  If it is right, all the data was
 * read from a process that had not ended and an endpoint that was not closed, so the
 * data is valid.  It costs some 150 ns, like any additional piece.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/cma.h"

/* The kernel moves no more than 2 GiB in a call. */
#define STEP_BYTES	((size_t)1 << 30)

#define IOV_MAX_OURS	8

int lnx_cma_ask(const struct lnx_cma_owner *owner)
{
	uint64_t found = 0;
	struct iovec here = { &found, sizeof(found) };
	struct iovec there = {
		(void *)(uintptr_t)owner->cookie, sizeof(found)
	};

	ssize_t n = process_vm_readv(owner->pid, &here, 1, &there, 1, 0);

	if (n == sizeof(found))
		return found == owner->eid ? 0 : ESRCH;
	/* There is no memory at the address of the cookie: another process. */
	return n >= 0 || errno == EFAULT ? ESRCH : errno;
}

bool lnx_cma_readable(void)
{
	return prctl(PR_GET_DUMPABLE) == 1;
}

/* The part [skip, skip + n) of iov, as an iov; returns its length. */
static size_t slice_iov(const struct iovec *iov, size_t niov, size_t skip,
			size_t n, struct iovec *out)
{
	size_t i, k = 0;

	for (i = 0; i < niov && n; i++) {
		size_t len = iov[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		out[k].iov_base = (char *)iov[i].iov_base + skip;
		out[k].iov_len = LNX_MIN(len - skip, n);
		n -= out[k++].iov_len;
		skip = 0;
	}
	return k;
}

int lnx_cma_read(const struct lnx_cma_owner *owner,
		 const struct lnx_wire_piece *piece, unsigned npiece,
		 const struct iovec *iov, size_t niov, size_t want)
{
	struct iovec src[LNX_SHM_CTRL_PIECES], here[IOV_MAX_OURS];
	struct iovec there[LNX_SHM_CTRL_PIECES + 1];
	uint64_t found = 0;
	size_t done = 0;
	unsigned i;

	if (npiece > LNX_SHM_CTRL_PIECES || niov >= IOV_MAX_OURS)
		return EINVAL;
	for (i = 0; i < npiece; i++) {
		src[i].iov_base = (void *)(uintptr_t)piece[i].addr;
		src[i].iov_len = piece[i].len;
	}
	while (done < want) {
		size_t n = LNX_MIN(want - done, STEP_BYTES);
		size_t nh = slice_iov(iov, niov, done, n, here);
		size_t nt = slice_iov(src, npiece, done, n, there);
		ssize_t got;

		done += n;
		if (owner->cookie) {
			here[nh++] = (struct iovec) { &found, sizeof(found) };
			there[nt++] = (struct iovec) {
				(void *)(uintptr_t)owner->cookie, sizeof(found)
			};
			n += sizeof(found);
			found = 0;
		}
		got = process_vm_readv(owner->pid, here, nh, there, nt, 0);
		if (got < 0)
			return errno;
		if ((size_t)got != n)
			return EFAULT;
		if (owner->cookie && found != owner->eid)
			return ESRCH;
	}
	return 0;
}

bool lnx_cma_own(const void *from, void *buf, size_t len)
{
	struct iovec here = { buf, len }, there = { (void *)(uintptr_t)from, len };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)len;
}
