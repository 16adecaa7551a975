/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that runs out.  What lnx allocates is refused as the test says; what the
 * scripted core, Criterion and libfabric allocate is not.  There is one of it in a
 * program, so names are short.  Programs link with memory_ldflags.
 */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <stdbool.h>

extern volatile bool no_memory;		/* none at all, */
extern volatile bool no_aligned;	/* none of aligned_alloc's: pools do not grow */
/* While fail_armed, allocations are counted, and [fail_from, fail_to) refused. */
extern volatile bool fail_armed;
extern volatile unsigned long nalloc, fail_from, fail_to;

#endif
