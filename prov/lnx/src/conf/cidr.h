/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Subnets and addresses of IPv4 and IPv6 as text: "10.78.0.0/16", "fd00::/64". */
#ifndef LNX_CIDR_H
#define LNX_CIDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/out.h"
#include "base/refuse.h"
#include "base/span.h"

struct lnx_cidr {
	uint8_t len;			/* bytes of an address: 4 or 16 */
	uint8_t bits;			/* of the prefix, up to 8 * len */
	uint8_t addr[16];		/* in the usual order; behind the prefix 0 */
};

/*
 * Read all of w, part of r->text: an address, which is a subnet of one, or one with a
 * prefix.  IPv6 may stand in brackets: [fd00::]/64, [fd00::/64].  0, or -EINVAL with r
 * filled.
 */
int lnx_cidr_parse(struct lnx_span w, struct lnx_cidr *out, struct lnx_refusal *r);

/* "10.78.0.0/16"; without the prefix if it is one address.  IPv6 without brackets. */
void lnx_cidr_print(const struct lnx_cidr *c, struct lnx_out *o);

/* Is the address with that length in the subnet? */
bool lnx_cidr_has(const struct lnx_cidr *c, const uint8_t *addr, unsigned len);

/* Is there an address that is in both? */
bool lnx_cidr_overlap(const struct lnx_cidr *a, const struct lnx_cidr *b);

#endif
