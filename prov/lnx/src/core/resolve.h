/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From link text to rails: asks the core providers (fi_getinfo with libfabric's
 * "hidden" flag, so that FI_PROVIDER=lnx does not hide them from us) which domains
 * exist and keeps one core fi_info per rail.
 *
 * How a provider is used: shm is the direct rail; a provider with FI_PEER
 * ("tcp;ofi_rxm", "verbs;ofi_rxm", cxi) is a peer rail; any other reliable datagram
 * provider with FI_MSG and FI_RMA (tcp, efa, psm3) is a plain rail.
 *
 * Which domains: those that the part names, else every domain once, whatever its number
 * of addresses.  An IPv4 address is preferred; an interface with nothing but a
 * link-local address is no rail.  Loopback is a rail only where it is named or there is
 * nothing else.  With FI_LNX_DISABLE_SHM, shm is left out of every link.
 */
#ifndef LNX_RESOLVE_H
#define LNX_RESOLVE_H

#include "obj/link.h"

/*
 * Resolve one link.  text is the whole string that link->at and part->at are offsets
 * of, for messages.  Returns a new object, or NULL with *err (-FI_ENODATA, -FI_EINVAL,
 * -FI_ENOMEM) after one warning that quotes the text, points at the part and lists what
 * exists.  Never leaves out a part silently: a link is offered whole or not at all.
 * Each fabric is opened once, as a test.  Any thread; not from inside fi_prov_ini.
 */
struct lnx_link_rails *lnx_resolve(const struct lnx_link *link,
				   const char *text, int *err);

/* The same from the text of one link (a domain name passed to fi_domain). */
struct lnx_link_rails *lnx_resolve_name(const char *name, int *err);

/*
 * The same rails for FI_HMEM: native ones, because then the core moves every payload,
 * and it knows the kind of the memory.  A new object, or NULL: not all of them can, or
 * there are several and FI_LNX_USE_SRQ=0 did not ask for native ones, which then cannot
 * receive from any source.
 */
struct lnx_link_rails *lnx_resolve_rails_hmem(const struct lnx_link_rails *lr);

/* NULL is fine. */
void lnx_resolve_rails_free(struct lnx_link_rails *lr);

/*
 * Write the canonical text of lr's rails to lr->name, with every domain named except
 * shm's only one: "shm+tcp:eth0,eth1".  For callers that left out some of the rails.  0
 * or -FI_ENOSPC.
 */
int lnx_resolve_rails_name(struct lnx_link_rails *lr);

/* The link used when FI_LNX_PROV_LINKS is not set: shm plus the best inter-node
 * provider present, as link text.  0 or -FI_ENODATA (there is none at all; a warning
 * was given). */
int lnx_resolve_default(char *buf, size_t size);

#endif
