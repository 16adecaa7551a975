/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State segments of processes that were killed.  They stay to be read, and each process
 * that makes a segment removes, of its user's,
 *
 *	what was written last more than LNX_STATE_KEEP_NS ago,
 *	all but the newest LNX_STALE_MAX,
 *	of these the oldest, until they have LNX_STALE_BYTES at most; one always stays.
 *
 * Whether a process of another pid name space, as of a container, has ended cannot be
 * known: its segment counts as left behind once nothing was written for LNX_STATE_KEEP_NS,
 * which a process that makes progress does all the time.
 */
#ifndef LNX_STALE_H
#define LNX_STALE_H

#include <stdint.h>
#include <sys/types.h>

#define LNX_STALE_MAX	256u
#define LNX_STALE_BYTES	(64u << 20)

/*
 * Remove what has to go from dir (lnx_statefile_dir) of that user, but nothing of this
 * process.  now, wall: CLOCK_MONOTONIC, and of day, in ns.
 */
void lnx_stale_clean(int dir, uid_t uid, uint64_t now, uint64_t wall);

#endif
