/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of one endpoint.  stats.def is the only table: name and help; the enum, the
 * struct and every printer are made from it.  The data path only increments its own
 * counters, under the owner lock.
 */
#ifndef LNX_STATS_H
#define LNX_STATS_H

#include <stdint.h>

struct lnx_stats {
#define LNX_STAT(name, help) uint64_t name;
#include "base/stats.def"
#undef LNX_STAT
};

struct lnx_stat_row {
	const char *name;
	const char *help;
	uint32_t offset;		/* of the uint64_t in struct lnx_stats */
};

extern const struct lnx_stat_row lnx_stat_rows[];
extern const unsigned lnx_nstats;

#endif
