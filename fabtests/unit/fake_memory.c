/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that runs out, by wrapping the allocation functions; see fake_memory.h. */
#include <stdlib.h>
#include <sys/mman.h>

#include "fake_core.h"
#include "fake_memory.h"

volatile bool no_memory, no_aligned, fail_armed;
volatile unsigned long nalloc, fail_from, fail_to;

/* The linker's names for the functions that -Wl,--wrap replaces. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);

static bool refused(void)
{
	unsigned long n;

	if (fake_allocating)
		return false;
	if (no_memory)
		return true;
	if (!fail_armed)
		return false;
	n = nalloc++;
	return n >= fail_from && n < fail_to;
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return refused() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	if (no_aligned && !fake_allocating)
		return NULL;
	return refused() ? NULL : __real_aligned_alloc(align, size);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	return refused() ? MAP_FAILED : __real_mmap(at, size, prot, flags, fd, off);
}
