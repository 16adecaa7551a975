/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte of the address blob: what fi_getname returns and fi_av_insert takes.  64
 * bytes, all of them always present, integers little-endian, no alignment needed.
 * Unused bytes are 0, which is checked.
 *
 *	0	magic "LNXA"
 *	4	version, LNX_WIRE_ADDR_VERSION
 *	5	flags
 *	6	number of rails
 *	7	0
 *	8	endpoint identity, 64 bits, never 0
 *	16	host identity, 64 bits, 0 when unknown
 *	24	rails, one behind the other, then zeros
 *
 * A rail:
 *	0	bits 0-5 provider number, bits 6-7 form
 *	1	group, 16 bits, never 0
 *	3	by form:
 *		IPV4	4 bytes of address in their usual order, port (16 bits)
 *		IPV6	16 bytes of address likewise, port (16 bits)
 *		RAW	n (one byte, at least 1), then n bytes as the core
 *			provider wrote them
 *
 * Four IPv4 rails take 36 of the 40 bytes.  A flag tells that there are rails which do
 * not fit; a hello tells the rest.
 *
 * A rail has an index, which never changes while its endpoint is open.  The blob lists
 * the rails 0, 1, 2 and so on.  A hello's payload is the blob, and behind it, unless
 * the blob has all rails, the list of all rails:
 *
 *	0	number of rails, 1..LNX_WIRE_RAILS_MAX
 *	1	0, three times
 *	4	for each rail its index (one byte, below LNX_WIRE_RAILS_MAX, higher than
 *		that of the one before), and the rail as in the blob
 *
 * A later hello may have more rails, and other addresses for known ones; an index is
 * never reused: a rail whose interface was removed is reported down (RAIL).
 *
 * Versions: the offsets of magic and version never change.  A blob of another version
 * is refused, with both versions in the message; any change of layout or meaning, or a
 * new provider number, is a new version.
 */
#ifndef LNX_WIRE_ADDR_H
#define LNX_WIRE_ADDR_H

#include <assert.h>
#include <stdint.h>

#define LNX_WIRE_ADDR_BYTES	64
#define LNX_WIRE_ADDR_MAGIC	"LNXA"
#define LNX_WIRE_ADDR_VERSION	1

#define LNX_WIRE_ADDR_F_SHM	0x01	/* reachable over shared memory too */
#define LNX_WIRE_ADDR_F_MORE	0x02	/* has rails that are not listed */
#define LNX_WIRE_ADDR_F_NATIVE	0x04	/* its rails take messages, not frames */
#define LNX_WIRE_ADDR_F_ALL	0x07

enum lnx_wire_addr_form {
	LNX_WIRE_ADDR_IPV4 = 0,
	LNX_WIRE_ADDR_IPV6 = 1,
	LNX_WIRE_ADDR_RAW = 2,
};

#define LNX_WIRE_ADDR_PROV_MASK		0x3f
#define LNX_WIRE_ADDR_FORM_SHIFT	6

/* Provider numbers. */
#define LNX_WIRE_PROV_SHM		1	/* never in a rail */
#define LNX_WIRE_PROV_TCP		2	/* IP from here ... */
#define LNX_WIRE_PROV_TCP_RXM		3
#define LNX_WIRE_PROV_VERBS_RXM		4	/* ... to here */
#define LNX_WIRE_PROV_CXI		5	/* bytes */
#define LNX_WIRE_PROV_EFA		6	/* bytes */
#define LNX_WIRE_PROV_PSM3		7	/* bytes */
#define LNX_WIRE_PROV_UDP_RXD		8	/* IP */
#define LNX_WIRE_PROV_OPX		9	/* bytes */
#define LNX_WIRE_PROV_SOCKETS		10	/* IP */
#define LNX_WIRE_PROV_MAX		11

#define LNX_WIRE_ADDR_RAIL_HEAD		3	/* provider and form, group */
#define LNX_WIRE_ADDR_IPV4_BYTES	6
#define LNX_WIRE_ADDR_IPV6_BYTES	18
#define LNX_WIRE_ADDR_RAILS_BYTES	40

#define LNX_WIRE_RAILS_MAX		16
#define LNX_WIRE_RAILS_HEAD		4
/* The longest rail is one that alone fills a blob. */
#define LNX_WIRE_RAILS_BYTES \
	(LNX_WIRE_RAILS_HEAD + LNX_WIRE_RAILS_MAX * \
	 (1 + LNX_WIRE_ADDR_RAILS_BYTES))

struct lnx_wire_addr {
	uint8_t magic[4];
	uint8_t version;
	uint8_t flags;
	uint8_t nrail;
	uint8_t zero;
	uint8_t eid[8];
	uint8_t host[8];
	uint8_t rails[LNX_WIRE_ADDR_RAILS_BYTES];
};
static_assert(sizeof(struct lnx_wire_addr) == LNX_WIRE_ADDR_BYTES,
	      "the blob fits the 64 bytes that programs keep for it");
static_assert(4 * (LNX_WIRE_ADDR_RAIL_HEAD + LNX_WIRE_ADDR_IPV4_BYTES) <=
	      LNX_WIRE_ADDR_RAILS_BYTES, "four IPv4 rails fit");

#endif
