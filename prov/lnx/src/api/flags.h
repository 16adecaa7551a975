/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which flags each call may have.  Others are refused: ignoring a flag would break a
 * promise.  FI_MORE is a hint without effect here.  FI_FENCE, FI_MULTICAST,
 * FI_MATCH_COMPLETE and FI_COMMIT_COMPLETE are not supported.
 */
#ifndef LNX_FLAGS_H
#define LNX_FLAGS_H

#include "base/compiler.h"
#include "core/caps.h"
#include "fi.h"

#define LNX_SEND_FLAGS	(FI_COMPLETION | FI_MORE | FI_INJECT | \
			 FI_REMOTE_CQ_DATA | LNX_TX_LEVELS)
#define LNX_RECV_FLAGS	(FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_PEEK | \
			 FI_CLAIM | FI_DISCARD | FI_TRANSMIT_COMPLETE)
#define LNX_TRECV_FLAGS	(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | \
			 FI_DISCARD)
#define LNX_WRITE_FLAGS	LNX_SEND_FLAGS
/* No buffer is returned early, and the target is not notified. */
#define LNX_READ_FLAGS	(FI_COMPLETION | FI_MORE | LNX_TX_LEVELS)
#define LNX_AMO_FLAGS	(FI_COMPLETION | FI_MORE | FI_INJECT | LNX_TX_LEVELS)

/* -FI_EBADFLAGS, after logging the flags.  Any thread. */
LNX_COLD ssize_t lnx_api_bad_flags(const char *call, uint64_t flags);

/* 0, or -FI_EBADFLAGS. */
LNX_INLINE ssize_t lnx_flags_check(const char *call, uint64_t flags,
				   uint64_t legal)
{
	return lnx_likely(!(flags & ~legal)) ? 0 :
	       lnx_api_bad_flags(call, flags & ~legal);
}

#endif
