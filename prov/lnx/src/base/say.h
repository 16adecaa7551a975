/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines on standard error, for what has to be seen without FI_LOG_LEVEL: warnings
 * about settings (core/warn_once.h) and the summary (api/summary.h).  Nothing else of
 * the library writes there but libfabric's log.
 */
#ifndef LNX_SAY_H
#define LNX_SAY_H

#include <stddef.h>

/*
 * Write len bytes to standard error in one write(2), so that lines of several
 * processes do not mix.  stdio is not used: its buffers are the application's.  A
 * reader that has gone costs the line, but raises no SIGPIPE.  errno is kept.  Any
 * thread.
 */
void lnx_say(const char *text, size_t len);

#endif
