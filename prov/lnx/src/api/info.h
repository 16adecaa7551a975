/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef LNX_INFO_H
#define LNX_INFO_H

#include "fi.h"

/*
 * Our part of fi_getinfo.
 *
 * Which links: those of FI_LNX_PROV_LINKS in their order, each followed by one
 * entry per network domain (shm+dom) when it has several.  Without the
 * variable, shm plus the best inter-node provider, and only for those who ask
 * for lnx by name: in hints->fabric_attr->prov_name, or in a FI_PROVIDER list.
 * There, a domain name in the hints may also be any link that can be resolved.
 *
 * Names: fabric "lnx", domain = the link with every domain named
 * ("shm+tcp:eth0,eth1"); usable as hints, compared exactly.  prov_name stays
 * NULL: libfabric fills it in, and would spoil one that is set.
 *
 * node and service name a local address with FI_SOURCE: of the network rails
 * those of that interface remain; the service is not used, as each rail has an
 * address of its own.  Otherwise they are not used: addresses of peers come
 * from fi_getname.  A hints->dest_addr made by that is handed through.
 *
 * src_addr is of no endpoint yet and can be given back in hints; one of fi_getname in
 * the hints is the name that the endpoint opened from the result will have.
 *
 * 0, -FI_ENODATA (nothing fits), -FI_EINVAL (FI_LNX_PROV_LINKS cannot be read),
 * -FI_ENOMEM.  Any thread.
 */
int lnx_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

#endif
