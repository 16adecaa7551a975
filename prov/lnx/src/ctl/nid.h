/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of rails as users write them in rules (conf/nid.h), with the nets of the user.  A
 * rail of ours is named without its port, because it has one address whatever its port;
 * a peer's rail with it, because several peers may be on one host.
 */
#ifndef LNX_CTL_NID_H
#define LNX_CTL_NID_H

#include <stddef.h>

#include "obj/ep.h"

/* "tcp", "tcp1", "shm" */
void lnx_nid_net(const struct lnx_rail *rail, char *buf, size_t size);
/* The name of the interface or device below the rail; "" for shared memory. */
const char *lnx_nid_interface(const struct lnx_rail *rail);
void lnx_nid_rail(const struct lnx_rail *rail, char *buf, size_t size);
/* Of the far end of path.  Calls the core. */
void lnx_nid_remote(const struct lnx_path *path, char *buf, size_t size);

#endif
