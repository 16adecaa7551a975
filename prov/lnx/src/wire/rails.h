/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All rails of an endpoint by their places, as a hello lists them behind the address
 * blob (lnx_wire_addr.h).
 */
#ifndef LNX_WIRE_RAILS_H
#define LNX_WIRE_RAILS_H

#include "lnx_wire_addr.h"
#include "wire/addr.h"

struct lnx_rails {
	unsigned n;
	uint8_t place[LNX_WIRE_RAILS_MAX];	/* each higher than the one before */
	struct lnx_addr_rail rail[LNX_WIRE_RAILS_MAX];
};

/* Those that a blob lists. */
void lnx_rails_of_addr(struct lnx_rails *r, const struct lnx_addr *a);

/* The one with that place, or NULL. */
const struct lnx_addr_rail *lnx_rails_find(const struct lnx_rails *r,
					   unsigned place);

/* What is in add replaces what r has in the same places. */
void lnx_rails_merge(struct lnx_rails *r, const struct lnx_rails *add);

/*
 * Write r behind a blob: bytes written, at most LNX_WIRE_RAILS_BYTES; 0 when there is
 * nothing in it that means something elsewhere; or -EINVAL when it is malformed.
 */
int lnx_rails_pack(const struct lnx_rails *r,
		   uint8_t buf[LNX_WIRE_RAILS_BYTES]);

/* Check and read what anybody may have sent.  0, or -EINVAL with *r undefined. */
int lnx_rails_unpack(struct lnx_rails *r, const void *buf, size_t len);

#endif
