/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint over a set of rails can promise, and what remains of it when
 * an application says what it wants.
 */
#ifndef LNX_CAPS_H
#define LNX_CAPS_H

#include "core/resolve.h"
#include "fi.h"

/*
 * Numbers of our own for things that libfabric keeps a list of; the upper bit
 * says "private to a provider".  The library's FI_PROTO_LNX is another
 * protocol: equal numbers promise that two providers understand each other.
 */
#define LNX_PRIVATE		0x80000000U
#define LNX_PROTO		(LNX_PRIVATE | 0x6c6e78)
#define LNX_PROTO_VERSION	1	/* of the frames between nodes */
#define LNX_ADDR_FORMAT		(LNX_PRIVATE | 0x6c6e78)

/* Queue sizes: when not asked for, and the most that can be asked for. */
#define LNX_QUEUE_SIZE		1024
#define LNX_QUEUE_SIZE_MAX	65536

/* Largest message, where the rails do not make it less. */
#define LNX_MSG_SIZE_MAX	(1ULL << 32)

/* Levels of completion, and what an endpoint may have as its defaults. */
#define LNX_TX_LEVELS		(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
				 FI_DELIVERY_COMPLETE)
#define LNX_TX_OP_FLAGS		(FI_COMPLETION | FI_INJECT | LNX_TX_LEVELS)
#define LNX_RX_OP_FLAGS		(FI_COMPLETION | FI_MULTI_RECV)

/*
 * A new fi_info with all that these rails together can do: the answer to empty
 * hints.  NULL without memory.  fi_freeinfo() it.
 */
struct fi_info *lnx_caps_offer(const struct lnx_link_rails *lr);

/*
 * Narrow the offer to what the hints of an application that speaks API version
 * ask for.  0, or -FI_ENODATA with *why naming the attribute (a constant
 * string). Names, node, service and addresses are not looked at.
 */
int lnx_caps_fit(struct fi_info *info, uint32_t version,
		 const struct fi_info *hints, const char **why);

#endif
