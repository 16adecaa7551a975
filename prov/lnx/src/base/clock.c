/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A counter of the CPU that costs less than a clock.  See clock.h. */
#include "base/clock.h"

uint64_t lnx_clock_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return lnx_clock_ns();
#endif
}
