/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packs and checks the payloads of ATOMIC frames.  See atomic.h. */
#include "wire/atomic.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void lnx_atomic_put(void *payload, const struct lnx_atomic *a)
{
	struct lnx_wire_atomic fixed = {
		.op = a->op, .type = a->type, .cls = a->cls,
		.noperand = a->noperand, .nseg = (uint8_t)a->nseg,
		.size = (uint8_t)a->size,
		.count = htole16((uint16_t)a->count),
	};
	char *p = payload;
	unsigned i;

	memcpy(p, &fixed, sizeof(fixed));
	p += sizeof(fixed);
	for (i = 0; i < a->nseg; i++) {
		struct lnx_wire_atomic_seg seg = {
			.addr = htole64(a->seg[i].addr),
			.key = htole64(a->seg[i].key),
			.count = htole16((uint16_t)a->seg[i].count),
		};

		memcpy(p, &seg, sizeof(seg));
		p += sizeof(seg);
	}
}

int lnx_atomic_get(struct lnx_atomic *a, const void *payload, size_t size)
{
	struct lnx_wire_atomic fixed;
	const char *p = payload;
	unsigned i, sum = 0;

	if (size < sizeof(fixed))
		return -EBADMSG;
	memcpy(&fixed, p, sizeof(fixed));
	p += sizeof(fixed);
	a->op = fixed.op;
	a->type = fixed.type;
	a->cls = fixed.cls;
	a->noperand = fixed.noperand;
	a->nseg = fixed.nseg;
	a->size = fixed.size;
	a->count = le16toh(fixed.count);
	if (a->noperand > 2 || !a->nseg || a->nseg > LNX_ATOMIC_SEGS ||
	    !a->size || a->size > LNX_ATOMIC_ELEM_MAX ||
	    lnx_atomic_bytes(a) > LNX_ATOMIC_BYTES_MAX ||
	    size != lnx_atomic_size(a))
		return -EBADMSG;
	for (i = 0; i < a->nseg; i++) {
		struct lnx_wire_atomic_seg seg;

		memcpy(&seg, p, sizeof(seg));
		p += sizeof(seg);
		a->seg[i].addr = le64toh(seg.addr);
		a->seg[i].key = le64toh(seg.key);
		a->seg[i].count = le16toh(seg.count);
		sum += a->seg[i].count;
	}
	return sum == a->count ? 0 : -EBADMSG;
}
