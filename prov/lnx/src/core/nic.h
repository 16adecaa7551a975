/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device behind a rail: where it is plugged in, how fast its link is. */
#ifndef LNX_NIC_H
#define LNX_NIC_H

#include "core/topo.h"
#include "obj/ep.h"

struct lnx_nic {
	bool has_pci;
	struct lnx_pci pci;
	uint64_t bps;			/* 0: unknown */
};

/*
 * What the core says of its NIC, and for the rest what the system says below sysfs
 * ("/sys") of the interface or RDMA device that the core's domain is named after.
 * Virtual interfaces are followed down to the one they stand on, if it is one.
 */
void lnx_nic_find(const struct fi_info *info, const char *sysfs,
		  struct lnx_nic *nic);

/*
 * Say of each network rail of ep how far it is from the calling thread, in
 * rail->numa.  The machine is looked at only if that can make a difference.
 */
void lnx_nics_place(struct lnx_ep *ep);

#endif
