/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint over a set of rails can offer, and what is left of it after an
 * application's hints.
 */
#ifndef LNX_CAPS_H
#define LNX_CAPS_H

#include "core/resolve.h"
#include "fi.h"

/*
 * Our own numbers for protocols that libfabric has a list of; the upper bit means
 * "private to a provider".  libfabric's FI_PROTO_LNX is another protocol, and equal
 * numbers would promise that two providers can talk to each other.
 */
#define LNX_PRIVATE		0x80000000U
#define LNX_PROTO		(LNX_PRIVATE | 0x6c6e78)
#define LNX_PROTO_VERSION	1	/* of the frames between nodes */
#define LNX_ADDR_FORMAT		(LNX_PRIVATE | 0x6c6e78)

/* Queue sizes: the default, and the largest. */
#define LNX_QUEUE_SIZE		1024
#define LNX_QUEUE_SIZE_MAX	65536

/* Largest message, if the rails do not limit it further. */
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
 * Narrow the offer to the hints of an application that uses this API version.  0, or
 * -FI_ENODATA with *why naming the attribute (a constant string).  Names, node, service
 * and addresses are not checked.
 */
int lnx_caps_fit(struct fi_info *info, uint32_t version,
		 const struct fi_info *hints, const char **why);

#endif
