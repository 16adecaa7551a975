/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link grammar: text of FI_LNX_PROV_LINKS (and of our domain names, which are links
 * in canonical spelling) to structs and back.  Does no I/O, and does not know which
 * providers exist.
 *
 *	links ::= link ('|' link)*
 *	link  ::= part ('+' part)*
 *	part  ::= prov [':' dom (',' dom)*]
 *
 * Blanks are allowed around every token.  Provider names are libfabric's, including ';'
 * ("tcp;ofi_rxm").  "verbs" means "verbs;ofi_rxm".  A last part that ends in ":lnx"
 * (upstream's old form, "shm+cxi:lnx") means the part without it; a last domain really
 * called lnx is written ":lnx:lnx".  One provider may be in several parts of a link if
 * each names other domains.
 */
#ifndef LNX_LINKS_H
#define LNX_LINKS_H

#include <stddef.h>

#define LNX_NAME_MAX		64	/* of a provider or domain, with NUL */
#define LNX_LINK_PARTS		16	/* parts of one link */
#define LNX_PART_DOMS		16	/* domains named in one part */
#define LNX_LINKS_MAX		16	/* links of one string */
#define LNX_LINK_TEXT_MAX	512	/* canonical text of a link, with NUL */

struct lnx_link_part {
	char prov[LNX_NAME_MAX];
	unsigned ndom;			/* 0: every domain of the provider */
	char dom[LNX_PART_DOMS][LNX_NAME_MAX];
	size_t at;			/* offset of the part in the text */
};

struct lnx_link {
	unsigned npart;
	struct lnx_link_part part[LNX_LINK_PARTS];
	size_t at;			/* offset of the link in the text */
};

struct lnx_links {
	unsigned nlink;
	struct lnx_link link[LNX_LINKS_MAX];
};

/*
 * Parse text.  0, or -EINVAL (grammar, "lnx" used as a part, the same provider+domain
 * twice in one link, too long, too many) with *at the offset of the error and why[] one
 * sentence: what is wrong and what would be right.  *out is undefined after an error.
 * The struct is large: use the heap.  Every accepted link fits LNX_LINK_TEXT_MAX when
 * printed, and its text parses to the same link.  text NULL is like empty; at and why
 * may be NULL; why is cut at why_size, and is printable ASCII whatever text contains.
 */
int lnx_links_parse(const char *text, struct lnx_links *out, size_t *at,
		    char *why, size_t why_size);

/* Canonical text, without blanks.  Length, or -ENOSPC. */
int lnx_link_print(const struct lnx_link *link, char *buf, size_t size);

#endif
