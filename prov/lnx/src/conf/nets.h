/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nets: names for rails that reach each other, which rules and NIDs use.  Does no I/O.
 *
 *	nets ::= net (';' net)*
 *	net  ::= name [number] '=' [provider '/'] what | provider
 *	what ::= subnet (',' subnet)* | fabric name
 *
 * As in "tcp1=10.78.0.0/16; ib0=verbs;ofi_rxm/10.80.0.0/16; hs=cxi".  Without a
 * provider the name must be one.  A name without a number has the number 0: ib is ib0.
 * With just a provider, all its rails are meant.
 *
 * A rail that is in no such net is in the net that has the name of its provider and the
 * number 0.  "verbs" and "udp" are verbs;ofi_rxm and udp;ofi_rxd, because rails need
 * these layers anyway.  Shared memory is no net: it is chosen before rails are.
 */
#ifndef LNX_NETS_H
#define LNX_NETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refuse.h"
#include "conf/cidr.h"
#include "wire/addr.h"

#define LNX_NETS_MAX		16
#define LNX_NET_SUBNETS		8	/* of one net */
#define LNX_NET_NAME_MAX	16	/* without number, with NUL */
#define LNX_NET_FABRIC_MAX	64	/* with NUL */
#define LNX_NET_TEXT_MAX	1024	/* canonical text of one net, with NUL */

struct lnx_net {
	char name[LNX_NET_NAME_MAX];	/* lower case; bytes behind the NUL are 0 */
	uint16_t number;
	uint8_t prov;			/* enum lnx_prov_id */
	uint8_t nsubnet;		/* 0: by fabric, or all rails of prov */
	uint16_t group;			/* lnx_addr_group(prov, fabric); 0: all */
	char fabric[LNX_NET_FABRIC_MAX];
	struct lnx_cidr subnet[LNX_NET_SUBNETS];
};

struct lnx_nets {
	unsigned n;
	struct lnx_net net[LNX_NETS_MAX];
};

/*
 * Read text (FI_LNX_NETS); NULL and blanks are no nets.  0, or -EINVAL with r filled
 * and *out undefined: grammar, unknown providers, too many, shm; a name that is given
 * twice or could be taken for another provider's; two nets that share rails.
 */
int lnx_nets_parse(const char *text, struct lnx_nets *out, struct lnx_refusal *r);

/*
 * Add one net to out as lnx_nets_parse does, from the two sides of its '='; both are
 * part of r->text.  out is unchanged after an error.
 */
int lnx_nets_add(struct lnx_nets *out, struct lnx_span name, struct lnx_span value,
		 struct lnx_refusal *r);

/* "tcp1=tcp/10.78.0.0/16": canonical text.  Length without NUL, as snprintf. */
size_t lnx_net_print(const struct lnx_net *net, char *buf, size_t size);
/* What is behind its '='. */
size_t lnx_net_value(const struct lnx_net *net, char *buf, size_t size);

/*
 * Find the net of a rail: of ours or of a peer's, whose address and group are known.
 * Returns its index, or -1: the rail has only the net of its provider.
 */
int lnx_nets_find(const struct lnx_nets *nets, const struct lnx_addr_rail *rail);

/*
 * Do these rails, all of one node, fit the nets?  0; or -EINVAL with a sentence in r
 * (r->at stays): one rail is in two nets, or rails of one group, which reach each
 * other, are in different ones.
 */
int lnx_nets_check(const struct lnx_nets *nets, const struct lnx_addr_rail *rail,
		   unsigned n, struct lnx_refusal *r);

/*
 * A net's name at the start of w: the name of a provider, or one of nets, which may be
 * NULL.  name gets its canonical spelling, *prov its provider; returns the number of
 * letters, without those of its number, or 0: w begins with no known name.
 */
size_t lnx_nets_name(const struct lnx_nets *nets, struct lnx_span w,
		     char name[LNX_NET_NAME_MAX], uint8_t *prov);

/* The known names, as "tcp, verbs, ib": length without NUL, as snprintf. */
size_t lnx_nets_known(const struct lnx_nets *nets, char *buf, size_t size);

/* The name of the net that rails of a provider are in without others; NULL: none. */
const char *lnx_net_of_prov(uint8_t prov);
/* Are its addresses IP addresses? */
bool lnx_net_ip(uint8_t prov);

#endif
