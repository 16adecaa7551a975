/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Warnings about the user's settings.  Most programs call fi_getinfo several times;
 * each warning is given once per process.
 *
 * libfabric's log shows nothing unless FI_LOG_LEVEL asks for it, and a program that
 * falls back to another transport shows nothing either.  So a setting of the user that
 * is not honoured is also reported in one line on standard error: by the first rank of
 * a job (conf/rank.h), unless the log shows it or FI_LNX_QUIET=1.
 */
#ifndef LNX_WARN_ONCE_H
#define LNX_WARN_ONCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/*
 * One sentence, without newline; libfabric cuts lines at 1024 bytes, this at a little
 * less.  set: a variable that the user set is the cause.  Any thread.
 */
void lnx_warn_once(bool set, const char *fmt, ...) LNX_PRINTF(2, 3);

/* Does this process write to standard error?  Not before this is called. */
void lnx_warn_aloud(bool aloud);

/*
 * At most max bytes of text as it can be in a log line: non-printable characters become
 * '?', and dots mark where it was cut.  Returns buf.
 */
const char *lnx_warn_printable(const char *text, size_t max, char *buf, size_t size);

/* Forget which warnings were given. */
void lnx_warn_once_fini(void);

#endif
