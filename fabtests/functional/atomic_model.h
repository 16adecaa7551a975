/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What atomic operations do to memory, written down as plainly as possible: one
 * element at a time, no provider in sight.
 */
#ifndef ATOMIC_MODEL_H
#define ATOMIC_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fi_atomic.h>

struct atomic_type {
	enum fi_datatype type;
	const char *name;
	size_t size;
	bool integer, ordered;		/* not complex */
	/* Small values, so that nothing overflows and all is exact. */
	void (*put)(void *at, int v);
	bool (*same)(const void *a, const void *b);
	/* *t becomes what op makes of it, b and c (the operand to compare). */
	void (*apply)(enum fi_op op, void *t, const void *b, const void *c);
};

#define ATOMIC_NOPS	(FI_DIFF + 1)

extern const struct atomic_type atomic_types[];
extern const int atomic_ntypes;
extern const char *const atomic_op_names[ATOMIC_NOPS];

/* Does it make sense at all, in a base, fetching or comparing call? */
bool atomic_is_compare(enum fi_op op);
bool atomic_defined(const struct atomic_type *t, enum fi_op op);

#endif
