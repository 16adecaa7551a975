/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device behind a rail: its place in the machine and the speed of its link. */
#ifndef LNX_NIC_H
#define LNX_NIC_H

#include "os/topo.h"
#include "obj/ep.h"

struct lnx_nic {
	bool has_pci;
	struct lnx_pci pci;
	uint64_t bps;			/* 0: unknown */
};

/*
 * Take what the core says of its NIC; the rest is read below sysfs ("/sys"), for the
 * interface or RDMA device that the core's domain is named after.  A virtual interface
 * is followed to the one below it, if there is just one.
 */
void lnx_nic_find(const struct fi_info *info, const char *sysfs,
		  struct lnx_nic *nic);

/*
 * Set rail->numa of each network rail of ep to its distance from the calling thread.
 * The machine is read only if that can make a difference.
 */
void lnx_nics_place(struct lnx_ep *ep);

#endif
