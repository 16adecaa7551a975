/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers for keys of registrations, which peers must not be able to guess from
 * other keys.  The kernel is asked for many at a time.
 */
#ifndef LNX_KEY_POOL_H
#define LNX_KEY_POOL_H

#include <stdint.h>

/*
 * The next number; none is given twice, also not by a process and its child.  0, or
 * -FI_EIO: the kernel gives none, after a warning.  Any thread; takes a lock of its own.
 */
int lnx_key_random(uint64_t *key);
/* When we are unloaded. */
void lnx_key_pool_fini(void);

#endif
