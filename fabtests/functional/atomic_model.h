/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What atomic operations do to memory, written as plainly as possible: one
 * element at a time, without a provider.
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
	bool integer, ordered;		/* false for complex types */
	/* Small values, so that nothing overflows and results are exact. */
	void (*put)(void *at, int v);
	bool (*same)(const void *a, const void *b);
	/* Sets *t to the result of op with *t, b and c (the operand to compare
	 * with). */
	void (*apply)(enum fi_op op, void *t, const void *b, const void *c);
};

#define ATOMIC_NOPS	(FI_DIFF + 1)

extern const struct atomic_type atomic_types[];
extern const int atomic_ntypes;
extern const char *const atomic_op_names[ATOMIC_NOPS];

/* Does op make sense in a base, fetching or comparing call? */
bool atomic_is_compare(enum fi_op op);
bool atomic_defined(const struct atomic_type *t, enum fi_op op);

#endif
