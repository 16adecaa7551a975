/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address blob: what fi_getname returns and fi_av_insert takes.  Always
 * LNX_ADDR_BYTES (64) long, because applications insert arrays of addresses and because
 * Open MPI 4.1 copies fi_getname's result into 64 bytes.  Layout and version rules are
 * in lnx_wire_addr.h; only wire/addr.c uses them.
 *
 * The shm rail needs no room: its core address is a name derived from eid
 * (lnx_addr_shm_name).
 */
#ifndef LNX_ADDR_H
#define LNX_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LNX_ADDR_BYTES		64
#define LNX_ADDR_RAILS		8	/* rails one blob can carry at most */
#define LNX_ADDR_RAW		32	/* bytes of a core address, unpacked */

/* Core providers with a number of their own on the wire; 0 = none.  The core
 * addresses of tcp, tcp;ofi_rxm, verbs;ofi_rxm, udp;ofi_rxd and sockets are
 * sockaddr_in or sockaddr_in6, those of the others are bytes. */
enum lnx_prov_id {
	LNX_PROV_NONE,
	LNX_PROV_SHM,
	LNX_PROV_TCP,
	LNX_PROV_TCP_RXM,
	LNX_PROV_VERBS_RXM,
	LNX_PROV_CXI,
	LNX_PROV_EFA,
	LNX_PROV_PSM3,
	LNX_PROV_UDP_RXD,
	LNX_PROV_OPX,
	LNX_PROV_SOCKETS,
	LNX_PROV_MAX
};

struct lnx_addr_rail {
	uint8_t prov;			/* enum lnx_prov_id, except shm */
	uint8_t rawlen;			/* bytes used in raw */
	uint16_t group;			/* lnx_addr_group() of the rail */
	uint8_t raw[LNX_ADDR_RAW];	/* core address as fi_getname gave it:
					 * sockaddr_in, sockaddr_in6, bytes */
};

struct lnx_addr {
	uint64_t eid;			/* endpoint identity, random, never 0 */
	uint64_t host;			/* host identity, 0 = unknown */
	bool has_shm;			/* the endpoint has an shm rail */
	bool more;			/* not all rails fitted */
	bool native;			/* takes messages as cores send them */
	unsigned nrail;
	struct lnx_addr_rail rail[LNX_ADDR_RAILS];
};

/*
 * Add a rail to a, whose other rails were all added by this function, if the blob has
 * room for it.  Its index there; -ENOSPC when it is left out and a->more was set
 * (always for IPv6 link-local addresses, which are useless on another host); or -EINVAL
 * when r is malformed.
 */
int lnx_addr_add(struct lnx_addr *a, const struct lnx_addr_rail *r);

/*
 * Pack a into buf[LNX_ADDR_BYTES]; sockaddrs are reduced to address and port.  What
 * lnx_addr_add would leave out is left out here too, with `more` set in the blob; if
 * rails do not fit, the last ones are left out.  0, or -EINVAL with buf unchanged if a
 * itself is malformed (eid 0, bad lengths, provider, group 0, an address without port
 * or not of one host).
 */
int lnx_addr_pack(const struct lnx_addr *a, uint8_t buf[LNX_ADDR_BYTES]);

/*
 * Check and unpack an untrusted blob.  0, or a negative errno with one sentence in why
 * (cut at why_size; may be NULL): -EINVAL (no magic, lengths, counts, reserved bits,
 * port 0, trailing garbage), -EPROTONOSUPPORT (version: the sentence names both).  *a
 * is written only on success, with every byte of raw beyond rawlen 0, and packs to the
 * same blob again.
 */
int lnx_addr_unpack(struct lnx_addr *a, const void *buf, size_t len,
		    char *why, size_t why_size);

/*
 * The same for the address of a fi_info, which may be of no endpoint: then eid is 0 and
 * there are no rails, only a host and the kind of endpoint.  It is never on the wire,
 * and no destination: lnx_addr_unpack refuses it.
 */
int lnx_addr_source_pack(const struct lnx_addr *a,
			 uint8_t buf[LNX_ADDR_BYTES]);
int lnx_addr_source_unpack(struct lnx_addr *a, const void *buf, size_t len,
			   char *why, size_t why_size);

/*
 * One rail in the form used in blobs and lists.  Pack: bytes written; 0 if the rail is
 * useless elsewhere; or -EINVAL.  Unpack: bytes read, of at most left, or -EINVAL; *r
 * as after lnx_addr_unpack.
 */
#define LNX_ADDR_RAIL_BYTES	40
int lnx_addr_rail_pack(const struct lnx_addr_rail *r,
		       uint8_t p[LNX_ADDR_RAIL_BYTES]);
int lnx_addr_rail_unpack(struct lnx_addr_rail *r, const uint8_t *p,
			 size_t left);

/* Text for fi_av_straddr and logs, like
 * "lnx://0123456789abcdef@89abcdef01234567/shm,tcp=10.77.1.1:4711#1a2b", with ",..."
 * at the end for `more`.  IPv6 is in brackets, bytes are 0x and hex.  Writes at most
 * size bytes with NUL; returns the full length without NUL. */
size_t lnx_addr_print(const struct lnx_addr *a, char *buf, size_t size);

/* 16-bit hash of provider number and core fabric name: rails with equal group
 * are expected to reach each other.  Never 0. */
uint16_t lnx_addr_group(uint8_t prov, const char *fabric_name);

/* "tcp;ofi_rxm" <-> LNX_PROV_TCP_RXM; LNX_PROV_NONE / NULL when unknown.  Case
 * does not matter, as in libfabric. */
uint8_t lnx_addr_prov_id(const char *name);
const char *lnx_addr_prov_name(uint8_t prov);

/*
 * Name of the shm endpoint that belongs to eid, as shm spells addresses, at most 40
 * bytes with NUL: "fi_shm://lnx-" and 16 hex digits; with a turn other than 0 (core/open.h)
 * also "." and its number, a digit.
 *
 * The endpoint gets exactly this name only with fi_setname(ep, name, strlen + 1)
 * between fi_endpoint and fi_enable.  A src_addr in the hints is not enough: shm
 * appends ":uid:index" to it, and index counts endpoints of the process, so that peers
 * could not guess it.  The file has the name without "fi_shm://", in /dev/shm.
 */
#define LNX_SHM_NAME_BYTES	40
void lnx_addr_shm_name(uint64_t eid, unsigned turn, char name[LNX_SHM_NAME_BYTES]);

#endif
