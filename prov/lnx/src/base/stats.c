/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of counters, from stats.def.  See stats.h. */
#include "base/stats.h"

#include <stddef.h>

const struct lnx_stat_row lnx_stat_rows[] = {
#define LNX_STAT(name, help) { #name, help, offsetof(struct lnx_stats, name) },
#include "base/stats.def"
#undef LNX_STAT
};

const unsigned lnx_nstats = sizeof(lnx_stat_rows) / sizeof(lnx_stat_rows[0]);
