/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What an endpoint has done, as one line on standard error (FI_LNX_SUMMARY). */
#ifndef LNX_SUMMARY_H
#define LNX_SUMMARY_H

#include "obj/ep.h"

/*
 * Print it.  ep was enabled and its rails still exist; owner lock held.  No part of the
 * line is left out: an endpoint has at most LNX_RAILS_MAX rails.
 */
void lnx_summary_say(const struct lnx_ep *ep);

#endif
