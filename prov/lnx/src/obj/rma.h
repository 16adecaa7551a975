/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint keeps for remote memory access: its own operations that wait for an
 * answer (rma/rma.c), and requests of peers that cannot be answered inside a core's
 * callback (rma/serve.c).  Owner lock.
 */
#ifndef LNX_OBJ_RMA_H
#define LNX_OBJ_RMA_H

#include "base/list.h"
#include "base/optab.h"
#include "base/pool.h"

#include "lnx_wire.h"

struct lnx_rkey;

#define LNX_RMA_IOV_MAX	4
/*
 * Reads up to LNX_GET_MAX are one frame each way; the core reads longer ones.  Writes
 * up to LNX_PUT_MAX are one frame; the core writes longer ones.  The longest are read
 * by their target, which avoids the core's copies and is faster from that size on (1.3
 * of the bare provider's time at 256 KiB, 0.4 at 1 MiB).
 */
#define LNX_GET_MAX	LNX_PAYLOAD_MAX
#define LNX_PUT_MAX	8192u
#define LNX_PUSH_MAX	(512u << 10)

#define LNX_RKEYS	64		/* buckets; a power of two */

struct lnx_rma_side {
	struct lnx_optab ops;		/* segments, by their number on the wire */
	struct lnx_pool rma_op_pool;
	struct lnx_pool segment_pool;
	struct lnx_node segments;		/* lnx_rma_segment.all: not ended */
	struct lnx_node waiting;	/* lnx_rma_segment.link: to be started (or
					 * restarted) */
	struct lnx_node asks;		/* lnx_ask.link: peers' key requests */
	struct lnx_rkey *rkey[LNX_RKEYS]; /* peers' keys, by peer and key */
};

#endif
