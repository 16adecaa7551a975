/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening a fabric. */
#ifndef LNX_FABRIC_H
#define LNX_FABRIC_H

#include "fi.h"

/* fi_fabric(3) of this provider. */
int lnx_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	       void *context);

#endif
