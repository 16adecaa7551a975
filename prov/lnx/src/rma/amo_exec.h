/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations on memory of this host, on behalf of a peer or of ourselves.
 * Called by rma/serve.c and rma/amo.c, which have checked keys and bounds.
 *
 * What is atomic: each element, never the array.  Aligned elements of 1, 2, 4 and 8
 * bytes are atomic with respect to atomic instructions of all threads and processes;
 * those of 16 bytes too, if the CPU supports it.  All other elements, also those that
 * are not aligned to their size, are atomic only with respect to operations of this
 * library in this process: a lock of ours is held.
 *
 * No owner lock is needed.  No function here fails.
 */
#ifndef LNX_AMO_H
#define LNX_AMO_H

#include <stdbool.h>

#include "fi.h"

enum lnx_amo_class {
	LNX_AMO_BASE,			/* changes the target */
	LNX_AMO_FETCH,			/* and returns the old value */
	LNX_AMO_COMPARE,		/* if it compares; returns the old value too */
	LNX_AMO_CLASSES
};

/* Bytes of the largest element. */
#define LNX_AMO_ELEM_MAX	32

/* Bytes of an element; 0 for a type that is not offered.  Takes any value. */
size_t lnx_amo_size(enum fi_datatype type);
/* Is the operation of that class defined for the type?  Takes any values. */
bool lnx_amo_valid(enum fi_op op, enum fi_datatype type,
		   enum lnx_amo_class cls);

/*
 * Do op, which must be valid for type and class, on count elements from dst on.  No
 * pointer needs to be aligned; src may be NULL for FI_ATOMIC_READ.  That, and a
 * comparison that fails, never write to dst.  result gets the old content of dst; it,
 * src and compare do not overlap dst.
 */
void lnx_amo_base(enum fi_op op, enum fi_datatype type, void *dst,
		  const void *src, size_t count);
void lnx_amo_fetch(enum fi_op op, enum fi_datatype type, void *dst,
		   const void *src, void *result, size_t count);
void lnx_amo_compare(enum fi_op op, enum fi_datatype type, void *dst,
		     const void *src, const void *compare, void *result,
		     size_t count);

#endif
