/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one core provider offers: fi_getinfo's long list (an entry per address family,
 * address and duplicate) reduced to one entry per network interface.
 */
#ifndef LNX_CATALOG_H
#define LNX_CATALOG_H

#include <stdbool.h>

#include "core/resolve.h"

#define LNX_CATALOG_DOMS	64	/* interfaces of one provider */

struct lnx_catalog {
	enum lnx_rail_kind kind;
	struct fi_info *list;		/* the core's answer, owned */
	bool loopback_only;
	unsigned ndom;
	struct lnx_catalog_dom {
		struct fi_info *info;	/* within list: the address to use */
		bool loopback;
		bool link_local;	/* no other address: unusable */
	} dom[LNX_CATALOG_DOMS];	/* in the core's order */
};

/*
 * Read what provider prov (spelled in full) has.  0; -FI_ENODATA with why set
 * to half a sentence ("is not available") when it cannot be a rail; -FI_ENOMEM.
 * Asks the core each time: interfaces come and go.  Free the result with
 * lnx_catalog_free, also after an error.
 */
int lnx_catalog_read(struct lnx_catalog *cat, const char *prov, char *why,
		     size_t why_size);
void lnx_catalog_free(struct lnx_catalog *cat);

/* Is that domain used when a part of a link names none? */
static inline bool lnx_catalog_meant(const struct lnx_catalog *cat, unsigned d)
{
	return !cat->dom[d].link_local &&
	       (!cat->dom[d].loopback || cat->loopback_only);
}

/* Fill what a rail on that domain is opened from; 0 or -FI_ENOMEM.  (core/resolve.c) */
int lnx_rail_spec_make(struct lnx_rail_spec *rail,
		       const struct lnx_catalog *cat,
		       const struct lnx_catalog_dom *dom);

/*
 * Can the fabric of info be opened?  A core under a filter may list what it
 * cannot open.  0 or the core's error; tried once per process and fabric.
 */
int lnx_catalog_try_open(const struct fi_info *info);

/*
 * The domain of that rail as a native one with FI_HMEM: its core moves device memory
 * that is registered by FI_MR_HMEM's rules.  NULL: it cannot, or memory is short.
 */
struct fi_info *lnx_catalog_hmem(const struct lnx_rail_spec *rail);

/* Providers that could be named in a link here, as "shm, tcp, …". */
void lnx_catalog_usable(char *buf, size_t size);

/* Is the name one of such a list? */
bool lnx_catalog_listed(const char *list, const char *name);

/*
 * Is this thread querying cores?  A core may query all providers in turn: then we must
 * offer nothing.
 */
bool lnx_catalog_busy(void);

/* Forget which fabrics were tried. */
void lnx_catalog_fini(void);

#endif
