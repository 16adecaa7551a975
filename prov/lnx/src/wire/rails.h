/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All rails of an endpoint by their index, as a hello lists them behind the address
 * blob (lnx_wire_addr.h).
 */
#ifndef LNX_WIRE_RAILS_H
#define LNX_WIRE_RAILS_H

#include "lnx_wire_addr.h"
#include "wire/addr.h"

struct lnx_rails {
	unsigned n;
	uint8_t place[LNX_WIRE_RAILS_MAX];	/* the rails' indexes, ascending */
	struct lnx_addr_rail rail[LNX_WIRE_RAILS_MAX];
};

/* The rails that a blob lists. */
void lnx_rails_of_addr(struct lnx_rails *r, const struct lnx_addr *a);

/* The rail with that index, or NULL. */
const struct lnx_addr_rail *lnx_rails_find(const struct lnx_rails *r,
					   unsigned place);

/* The rails of add replace those of r with the same index. */
void lnx_rails_merge(struct lnx_rails *r, const struct lnx_rails *add);

/*
 * Write r behind a blob: bytes written, at most LNX_WIRE_RAILS_BYTES; 0 when no rail in
 * it is usable elsewhere; or -EINVAL when it is malformed.
 */
int lnx_rails_pack(const struct lnx_rails *r,
		   uint8_t buf[LNX_WIRE_RAILS_BYTES]);

/* Check and read an untrusted list.  0, or -EINVAL with *r undefined. */
int lnx_rails_unpack(struct lnx_rails *r, const void *buf, size_t len);

#endif
