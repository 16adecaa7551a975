/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Compiler attributes and the few macros that everything needs. */
#ifndef LNX_COMPILER_H
#define LNX_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define lnx_likely(x)		__builtin_expect(!!(x), 1)
#define lnx_unlikely(x)		__builtin_expect(!!(x), 0)
#define LNX_INLINE		static inline __attribute__((always_inline))
#define LNX_COLD		__attribute__((cold, noinline))
/*
 * One of the few functions that every message passes: these are together, on few pages.
 */
#define LNX_HOT		__attribute__((hot))
/* A variable of each thread, in the block that a thread has from its start: otherwise the
 * first use would allocate it, and the process abort when there is no memory.  Few bytes,
 * because a module that is loaded later shares a small reserve. */
#define LNX_THREAD		__thread __attribute__((tls_model("initial-exec")))
#define LNX_PRINTF(f, a)	__attribute__((format(printf, f, a)))

#define lnx_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define LNX_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define LNX_MIN(a, b)		((a) < (b) ? (a) : (b))
#define LNX_MAX(a, b)		((a) > (b) ? (a) : (b))

/* Spread the entropy of v over all bits; for hash tables of powers of two. */
static inline uint64_t lnx_mix64(uint64_t v)
{
	v ^= v >> 32;
	v *= 0x9e3779b97f4a7c15ULL;
	return v ^ (v >> 29);
}

/*
 * A full fence.  The thread sanitizer does not know fences: there it is an atomic
 * operation on a private object, which is enough on the machines that it runs on.
 */
LNX_INLINE void lnx_fence(void)
{
#ifdef __SANITIZE_THREAD__
	int nothing = 0;

	__atomic_fetch_add(&nothing, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Bits of v that are set. */
#define lnx_bits(v)	((unsigned)__builtin_popcount(v))

#endif
