/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines on standard error, for what must be seen without FI_LOG_LEVEL: warnings about
 * settings (core/warn_once.h) and the summary (api/summary.h).  Nothing else of the
 * library writes there, except libfabric's log.
 */
#ifndef LNX_SAY_H
#define LNX_SAY_H

#include <stddef.h>

/*
 * Write len bytes to standard error in one write(2), so that lines of several processes
 * do not mix.  stdio is not used: its buffers are the application's.  If the reader has
 * closed, the line is lost, but there is no SIGPIPE.  errno is kept.  Any thread.
 */
void lnx_say(const char *text, size_t len);

#endif
