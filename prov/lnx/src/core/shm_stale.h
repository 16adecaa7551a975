/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of shm endpoints whose process was killed.  Nothing removes their files: each
 * keeps some MiB of the node's memory.  So each process that opens an endpoint removes
 * those of its user.
 *
 * Removed is only what says by its registry (core/shm_registry.h) that its process, of this
 * pid name space, has ended; and not before LNX_SHM_KEEP_NS after it was written last,
 * because peers that look for an endpoint tell by its file that it was there.  Other
 * processes may have it mapped: that stays as it is.
 */
#ifndef LNX_SHM_STALE_H
#define LNX_SHM_STALE_H

#include <stdbool.h>

#include "base/compiler.h"

/* Remove them.  all: also those that were written just now, as there is no room.  Takes no
 * lock. */
LNX_COLD void lnx_shm_stale_clean(bool all);

#endif
