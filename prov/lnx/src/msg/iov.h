/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lengths of calls with several pieces, as the application gave them.  Nothing below adds
 * them up before these have.
 */
#ifndef LNX_IOV_H
#define LNX_IOV_H

#include "obj/call.h"

/*
 * May these pieces be used: are they LNX_IOV_MAX at most, and does the sum of their lengths
 * fit in a size_t?  0; or -FI_EINVAL, after a warning about the sum that names the call.
 * Any thread, no lock.
 */
int lnx_iov_check(const char *call, const struct iovec *iov, size_t niov);
/*
 * The same for the pieces of a read or write, of which those in remote memory must be
 * LNX_RMA_IOV_MAX at most, at least one, and as long as the local ones.
 */
int lnx_iov_check_rma(const struct lnx_rma *r);

#endif
