/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The route key (lnx_wire_route.h) in its file: of endpoints and of gateways. */
#ifndef LNX_ROUTE_KEY_H
#define LNX_ROUTE_KEY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Read a file of 16 hex digits, not all 0, that no other user may read or write.  0, or
 * -EINVAL with a sentence in why that names the file.
 */
int lnx_route_key_read(const char *file, uint64_t *key, char *why, size_t size);

#endif
