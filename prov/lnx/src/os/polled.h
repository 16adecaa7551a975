/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which descriptors of this process does an epoll instance of it have?  One that a core still
 * polls must not be closed by others: the number may be given to something else, and the core
 * would take that for its own.  Needs /proc; all threads.
 */
#ifndef LNX_POLLED_H
#define LNX_POLLED_H

/* A byte for each descriptor below end, not 0 if an epoll instance has it, or may have it; for
 * free().  NULL: it is not known of any. */
unsigned char *lnx_polled(int end);

#endif
