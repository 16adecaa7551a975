/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo. */
#ifndef LNX_INFO_H
#define LNX_INFO_H

#include "fi.h"

/*
 * Our part of fi_getinfo.
 *
 * Which links: those of FI_LNX_PROV_LINKS in their order, each followed by one entry
 * per network domain (shm+dom) when it has several.  Without the variable, shm plus the
 * best inter-node provider, and only for callers that ask for lnx by name: in
 * hints->fabric_attr->prov_name, or in a FI_PROVIDER list.  Then a domain name in the
 * hints may also be any link that can be resolved.
 *
 * Names: fabric "lnx", domain = the link with every domain named ("shm+tcp:eth0,eth1");
 * usable as hints, compared exactly.  prov_name stays NULL: libfabric sets it, and
 * would damage one that is set.
 *
 * With FI_SOURCE, node and service are a local address: only the network rails of that
 * interface are kept; the service is not used, as each rail has an address of its own.
 * Otherwise they are not used: addresses of peers come from fi_getname.  A
 * hints->dest_addr made by that is passed on.
 *
 * src_addr is of no endpoint yet and can be used in hints; an address of fi_getname in
 * the hints will be the name of the endpoint opened from the result.
 *
 * 0, -FI_ENODATA (nothing fits), -FI_EINVAL (FI_LNX_PROV_LINKS cannot be read),
 * -FI_ENOMEM.  Any thread.
 */
int lnx_info_get(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info);

#endif
