/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that runs out.  Allocations of lnx are refused as the test says; those
 * of the scripted core, Criterion and libfabric are not.  A program has one
 * such memory, so names are short.  Programs link with memory_ldflags.
 */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <stdbool.h>

extern volatile bool no_memory;		/* none at all, */
extern volatile bool no_aligned;	/* none from aligned_alloc: pools do not grow */
/* While fail_armed is set, allocations are counted, and those in [fail_from,
 * fail_to) are refused. */
extern volatile bool fail_armed;
extern volatile unsigned long nalloc, fail_from, fail_to;

#endif
