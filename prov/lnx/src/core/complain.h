/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Warnings about what the user wrote.  fi_getinfo is called several times by
 * most programs; the same sentence is said once per process.
 */
#ifndef LNX_COMPLAIN_H
#define LNX_COMPLAIN_H

#include <stddef.h>

#include "base/compiler.h"

/* One sentence, without newline; libfabric cuts lines at 1024 bytes, this at a
 * little less.  Any thread. */
void lnx_complain(const char *fmt, ...) LNX_PRINTF(1, 2);

/*
 * At most max bytes of text as it can stand in a log line: what is not
 * printable becomes '?', and dots say where it was cut.  Returns buf.
 */
const char *lnx_printable(const char *text, size_t max, char *buf, size_t size);

/* Forget what was said. */
void lnx_complain_fini(void);

#endif
