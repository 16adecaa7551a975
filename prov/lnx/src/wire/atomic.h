/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payloads of ATOMIC frames in the host's byte order, packed and unpacked here.  Data
 * that arrives is not trusted until lnx_atomic_get has returned 0.  Then its lengths
 * are right, but op, type and cls are not checked here.
 */
#ifndef LNX_ATOMIC_WIRE_H
#define LNX_ATOMIC_WIRE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lnx_wire.h"

struct lnx_atomic {
	uint8_t op;
	uint8_t type;
	uint8_t cls;
	uint8_t noperand;
	unsigned nseg;
	unsigned size;			/* bytes of an element */
	unsigned count;			/* sum over the pieces */
	struct {
		uint64_t addr;
		uint64_t key;
		unsigned count;
	} seg[LNX_ATOMIC_SEGS];
};

/* Bytes before the operands; they are 8-byte aligned if the payload is. */
static inline size_t lnx_atomic_head(const struct lnx_atomic *a)
{
	return sizeof(struct lnx_wire_atomic) +
	       a->nseg * sizeof(struct lnx_wire_atomic_seg);
}

/* Bytes of one array of elements. */
static inline size_t lnx_atomic_bytes(const struct lnx_atomic *a)
{
	return (size_t)a->count * a->size;
}

/* Bytes of the payload. */
static inline size_t lnx_atomic_size(const struct lnx_atomic *a)
{
	return lnx_atomic_head(a) + a->noperand * lnx_atomic_bytes(a);
}

/* Bytes of the operands, as a payload of size bytes says. */
static inline size_t lnx_atomic_operands(const void *payload, size_t size)
{
	struct lnx_wire_atomic w;
	size_t len;

	if (size < sizeof(w))
		return 0;
	memcpy(&w, payload, sizeof(w));
	len = (size_t)w.noperand * w.size * le16toh(w.count);
	return len < size ? len : 0;
}

/* Write everything but the operands. */
void lnx_atomic_put(void *payload, const struct lnx_atomic *a);
/* 0 or -EBADMSG. */
int lnx_atomic_get(struct lnx_atomic *a, const void *payload, size_t size);

#endif
