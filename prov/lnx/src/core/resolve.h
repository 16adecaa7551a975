/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From link text to rails: asks the core providers (fi_getinfo with libfabric's
 * "hidden" flag, so that FI_PROVIDER=lnx does not hide them from us) which
 * domains exist and keeps one core fi_info per rail.
 *
 * Which way a provider is used: shm is the direct rail; what has FI_PEER
 * ("tcp;ofi_rxm", "verbs;ofi_rxm", cxi) is a peer rail; any other reliable
 * datagram provider with FI_MSG and FI_RMA (tcp, efa, psm3) is a plain rail.
 *
 * Which domains: those that the part names, else every domain once, whatever
 * its number of addresses.  An IPv4 address is preferred; an interface with
 * nothing but a link-local address is no rail.  Loopback is one only where it
 * is named or nothing else is there.  With FI_LNX_DISABLE_SHM, shm is left out
 * of every link.
 */
#ifndef LNX_RESOLVE_H
#define LNX_RESOLVE_H

#include "obj/link.h"

/*
 * Resolve one link.  text is the whole string that link->at and part->at are
 * offsets of, for messages.  Returns a new object, or NULL with *err
 * (-FI_ENODATA, -FI_EINVAL, -FI_ENOMEM) after one warning that quotes the text,
 * points at the part and lists what exists.  Never leaves out a part silently:
 * a link is offered whole or not at all.  Each fabric was opened once, as proof
 * that it can be. Any thread; not from inside fi_prov_ini.
 */
struct lnx_link_rails *lnx_resolve(const struct lnx_link *link,
				   const char *text, int *err);

/* Same from the text of one link (a domain name that fi_domain got). */
struct lnx_link_rails *lnx_resolve_name(const char *name, int *err);

/*
 * The same rails for FI_HMEM: bare ones, because then every payload is moved by the
 * core that knows whose memory it is.  A new object, or NULL: not all of them can, or
 * there are several and FI_LNX_USE_SRQ=0 did not ask for bare ones, which then cannot
 * receive from any source.
 */
struct lnx_link_rails *lnx_link_rails_hmem(const struct lnx_link_rails *lr);

/* NULL is fine. */
void lnx_link_rails_free(struct lnx_link_rails *lr);

/*
 * Write the canonical text of lr's rails to lr->name, with every domain named
 * but shm's only one: "shm+tcp:eth0,eth1".  For who left out some of the rails.
 * 0 or -FI_ENOSPC.
 */
int lnx_link_rails_name(struct lnx_link_rails *lr);

/* The link used when FI_LNX_PROV_LINKS is not set: shm plus the best inter-node
 * provider present, as link text.  0 or -FI_ENODATA (nothing at all is there,
 * after a warning). */
int lnx_resolve_default(char *buf, size_t size);

#endif
