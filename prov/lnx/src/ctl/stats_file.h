/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_LNX_STATS_FILE: the counters of endpoints, written when they are closed. */
#ifndef LNX_STATS_FILE_H
#define LNX_STATS_FILE_H

#include "obj/ep.h"

/* An endpoint is being closed, and still has its rails.  What fails is logged once.
 * Owner lock held. */
void lnx_stats_file_add(struct lnx_ep *ep);
/* The library is unloaded. */
void lnx_stats_file_fini(void);

#endif
