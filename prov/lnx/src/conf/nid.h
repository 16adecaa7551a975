/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * NIDs, the names of rails, and patterns for them.  Does no I/O.
 *
 *	NID     ::= address [':' port] '@' net
 *	pattern ::= one (',' one)*
 *	one     ::= net | address [':' expr] '@' net
 *	net     ::= name [expr] | provider ':' fabric
 *	address ::= expr '.' expr '.' expr '.' expr	IPv4
 *		| IPv4 '/' bits
 *		| '[' IPv6 ['/' bits] ']'
 *		| '0x' hex digits [ '*' ] | '*'			other addresses
 *
 * with the sets of numbers of conf/expr.h and the names of conf/nets.h: as in
 * "10.77.0.1@tcp", "10.0.[1-2].*@ib[0-3]", "[fd00::/64]@tcp1".  A net's name without a
 * number means the number 0, not all of them.  A pattern is for the rails that one of
 * its parts is for.  Either all parts have an address, or none has; that means all
 * rails of these nets.
 *
 * The grammar is LNet's, but for subnets, IPv6, ports, addresses in hex and commas.
 */
#ifndef LNX_NID_H
#define LNX_NID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refuse.h"
#include "conf/expr.h"
#include "conf/nets.h"
#include "wire/addr.h"

#define LNX_NID_TEXT_MAX	128	/* of a NID, with NUL */
#define LNX_PATTERN_PARTS	8
#define LNX_PATTERN_TEXT_MAX	256	/* canonical text of a pattern, with NUL */

/* The name of one rail.  Bytes behind the address are 0. */
struct lnx_nid {
	char net[LNX_NET_NAME_MAX];
	uint16_t number;		/* of the net */
	uint16_t group;
	uint16_t port;			/* 0: none */
	uint8_t prov;			/* enum lnx_prov_id */
	uint8_t len;			/* bytes of the address */
	uint8_t addr[LNX_ADDR_RAW];	/* IPv4 and IPv6 in the usual order */
};

/*
 * The NID of a rail, of ours or of a peer's.  0, or -EINVAL if rail is malformed: its
 * provider is unknown or shm, or the length of its address is wrong.
 */
int lnx_nid_of(const struct lnx_nets *nets, const struct lnx_addr_rail *rail,
	       struct lnx_nid *out);

/*
 * The other way: where the rail of that NID listens, in a group; port: if the NID has none.
 * Of nets without ports it is the bytes of the address.
 */
void lnx_nid_where(const struct lnx_nid *nid, uint16_t group, uint16_t port,
		  struct lnx_addr_rail *out);

/* "10.77.0.1:4711@tcp1".  Length without NUL, as snprintf. */
size_t lnx_nid_print(const struct lnx_nid *nid, char *buf, size_t size);

enum lnx_nid_form {
	LNX_NID_NET,			/* no address: all rails of the nets */
	LNX_NID_ANY,			/* any address */
	LNX_NID_IPV4,
	LNX_NID_IPV6,			/* all addresses with a prefix */
	LNX_NID_BYTES,
	LNX_NID_BYTES_PREFIX,
};

/* One part of a pattern. */
struct lnx_nid_part {
	char net[LNX_NET_NAME_MAX];
	uint8_t prov;
	uint8_t form;			/* enum lnx_nid_form */
	uint8_t len;			/* BYTES: bytes; IPV6: bits of the prefix */
	uint16_t group;			/* by fabric; 0: by name and number */
	struct lnx_expr number;		/* of the net */
	struct lnx_expr port;
	char fabric[LNX_NET_FABRIC_MAX];
	union {
		struct lnx_expr octet[4];
		uint8_t addr[LNX_ADDR_RAW];
	};
};

struct lnx_pattern {
	unsigned n;
	struct lnx_nid_part part[LNX_PATTERN_PARTS];
};

/*
 * Read all of w, part of r->text.  nets, which may be NULL, has the names that are
 * known beside those of providers.  Equal patterns become equal bytes.  0, or -EINVAL
 * with r filled and *out undefined: also if the canonical text would be longer than
 * LNX_PATTERN_TEXT_MAX.
 */
int lnx_nid_pattern_parse(const struct lnx_nets *nets, struct lnx_span w,
			  struct lnx_pattern *out, struct lnx_refusal *r);

/* Is it for nets, without addresses?  No pattern mixes the two. */
static inline bool lnx_nid_pattern_nets(const struct lnx_pattern *p)
{
	return p->part[0].form == LNX_NID_NET;
}

/* Does it name one address of one net?  Then *nid is that, without group. */
bool lnx_nid_pattern_one(const struct lnx_pattern *p, struct lnx_nid *nid);

bool lnx_nid_part_has(const struct lnx_nid_part *part, const struct lnx_nid *nid);

/* With these nets, can it have rails at all?  False: its net has a number, or all that it
 * may have, that is none of nets', as of tcp1 without them. */
bool lnx_nid_part_defined(const struct lnx_nets *nets, const struct lnx_nid_part *part);

/* Canonical text, which parses to the same.  Length without NUL, as snprintf. */
size_t lnx_nid_pattern_print(const struct lnx_nid_part *part, unsigned n, char *buf,
			     size_t size);

#endif
