/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The only caller of clock_gettime.  All other code is passed `now`. */
#ifndef LNX_CLOCK_H
#define LNX_CLOCK_H

#include <stdint.h>
#include <time.h>

#define LNX_NS_PER_US	1000ULL
#define LNX_NS_PER_MS	1000000ULL
#define LNX_NS_PER_S	1000000000ULL

/* Monotonic time in ns; never 0, so that 0 can mean "not set". */
static inline uint64_t lnx_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * LNX_NS_PER_S + (uint64_t)ts.tv_nsec + 1;
}

/* Ticks of the processor's counter.  Reading it costs less than the clock.  Not inline: tests
 * replace it. */
uint64_t lnx_clock_ticks(void);

/* Time of day in ns: for what has to be compared with what another process, perhaps an
 * earlier one, took it to be. */
static inline uint64_t lnx_clock_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * LNX_NS_PER_S + (uint64_t)ts.tv_nsec + 1;
}

/* CPU time of this thread in ns: what something costs, also where others have the core
 * meanwhile.  0 where it is not known. */
static inline uint64_t lnx_clock_thread_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * LNX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/*
 * Time from then to now; 0 when then is later.  A pass reads the clock once, but what
 * is called on the way, callbacks of cores for example, records its own times.
 */
static inline uint64_t lnx_ns_since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/* In ms, as calls that wait want it: not less. */
static inline uint64_t lnx_ms_up(uint64_t ns)
{
	return ns / LNX_NS_PER_MS + (ns % LNX_NS_PER_MS != 0);
}

/* A time in 4 bytes, for what is looked at within days: in ms, about; never 0. */
static inline uint32_t lnx_stamp_ms(uint64_t now)
{
	return (uint32_t)(now / LNX_NS_PER_MS) | 1u;
}

/*
 * Time from that to now, in ns; 0 when it is later, by less than an hour.  UINT64_MAX for a
 * stamp of 0.  Stamps are used again after 49 days.
 */
static inline uint64_t lnx_ns_since_stamp(uint64_t now, uint32_t stamp_ms)
{
	uint32_t ms = (uint32_t)(now / LNX_NS_PER_MS) - stamp_ms;

	if (!stamp_ms)
		return UINT64_MAX;
	return ms > UINT32_MAX - 3600 * 1000u ? 0 : ms * LNX_NS_PER_MS;
}

#endif
