/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The only file in src/ that includes libfabric's headers. */
#ifndef LNX_FI_H
#define LNX_FI_H

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>

/* Ours; written only by prov.c, and by libfabric (context). */
extern struct fi_provider lnx_prov;

#define LNX_WARN(sub, ...)	FI_WARN(&lnx_prov, sub, __VA_ARGS__)
#define LNX_INFO(sub, ...)	FI_INFO(&lnx_prov, sub, __VA_ARGS__)

/*
 * fi_getinfo flag that also asks providers which FI_PROVIDER hides.  Not public;
 * the value has been the same from 1.17 to 2.7.  Where it means nothing, the call
 * fails and the resolver says which setting helps.
 */
#define LNX_GETINFO_HIDDEN	(1ULL << 60)

#endif
