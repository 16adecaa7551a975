/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The only code that knows the layout of the address blob.  A blob has one form only:
 * what was unpacked packs again to the same bytes.  So blobs can be compared with
 * memcmp, and nothing can be hidden in unused bytes.
 */
#include "wire/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "lnx_wire_addr.h"

_Static_assert(LNX_ADDR_BYTES == LNX_WIRE_ADDR_BYTES, "one size of a blob");
_Static_assert((int)LNX_PROV_SHM == LNX_WIRE_PROV_SHM &&
	       (int)LNX_PROV_TCP == LNX_WIRE_PROV_TCP &&
	       (int)LNX_PROV_TCP_RXM == LNX_WIRE_PROV_TCP_RXM &&
	       (int)LNX_PROV_VERBS_RXM == LNX_WIRE_PROV_VERBS_RXM &&
	       (int)LNX_PROV_CXI == LNX_WIRE_PROV_CXI &&
	       (int)LNX_PROV_EFA == LNX_WIRE_PROV_EFA &&
	       (int)LNX_PROV_PSM3 == LNX_WIRE_PROV_PSM3 &&
	       (int)LNX_PROV_UDP_RXD == LNX_WIRE_PROV_UDP_RXD &&
	       (int)LNX_PROV_OPX == LNX_WIRE_PROV_OPX &&
	       (int)LNX_PROV_SOCKETS == LNX_WIRE_PROV_SOCKETS &&
	       (int)LNX_PROV_MAX == LNX_WIRE_PROV_MAX,
	       "provider numbers are those on the wire");
_Static_assert(LNX_ADDR_RAIL_BYTES == LNX_WIRE_ADDR_RAILS_BYTES,
	       "room for any rail");
_Static_assert(sizeof(struct sockaddr_in6) <= LNX_ADDR_RAW, "raw holds IPv6");
_Static_assert(LNX_WIRE_ADDR_RAIL_HEAD + 1 + LNX_ADDR_RAW <=
	       LNX_WIRE_ADDR_RAILS_BYTES, "the longest rail fits alone");

static const struct {
	const char *name;
	bool ip;			/* core addresses are sockaddrs */
} provs[LNX_PROV_MAX] = {
	[LNX_PROV_SHM] = { "shm", false },
	[LNX_PROV_TCP] = { "tcp", true },
	[LNX_PROV_TCP_RXM] = { "tcp;ofi_rxm", true },
	[LNX_PROV_VERBS_RXM] = { "verbs;ofi_rxm", true },
	[LNX_PROV_CXI] = { "cxi", false },
	[LNX_PROV_EFA] = { "efa", false },
	[LNX_PROV_PSM3] = { "psm3", false },
	[LNX_PROV_UDP_RXD] = { "udp;ofi_rxd", true },
	[LNX_PROV_OPX] = { "opx", false },
	[LNX_PROV_SOCKETS] = { "sockets", true },
};

static void put_le(uint8_t *p, uint64_t v, unsigned bytes)
{
	while (bytes--) {
		*p++ = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

/* Unspecified, broadcast or multicast: no address that an endpoint can be bound to. */
static bool ipv4_unusable(const uint8_t a[4])
{
	return all_zero(a, 4) || (a[0] & 0xf0) == 0xe0 ||
	       (a[0] & a[1] & a[2] & a[3]) == 0xff;
}

static bool ipv6_unusable(const uint8_t a[16])
{
	return all_zero(a, 16) || a[0] == 0xff;
}

static bool ipv6_link_local(const uint8_t a[16])
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

/* Pack one rail at p: bytes used, 0 when it is left out, or -EINVAL. */
static int pack_rail(const struct lnx_addr_rail *r,
		     uint8_t p[LNX_WIRE_ADDR_RAILS_BYTES])
{
	uint8_t *body = p + LNX_WIRE_ADDR_RAIL_HEAD;
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	unsigned form;
	int n;

	if (r->prov <= LNX_PROV_SHM || r->prov >= LNX_PROV_MAX || !r->group ||
	    !r->rawlen || r->rawlen > LNX_ADDR_RAW)
		return -EINVAL;
	if (!provs[r->prov].ip) {
		form = LNX_WIRE_ADDR_RAW;
		body[0] = r->rawlen;
		memcpy(body + 1, r->raw, r->rawlen);
		n = 1 + r->rawlen;
	} else if (r->rawlen == sizeof(in)) {
		memcpy(&in, r->raw, sizeof(in));
		if (in.sin_family != AF_INET || !in.sin_port)
			return -EINVAL;
		form = LNX_WIRE_ADDR_IPV4;
		memcpy(body, &in.sin_addr, 4);
		put_le(body + 4, ntohs(in.sin_port), 2);
		if (ipv4_unusable(body))
			return -EINVAL;
		n = LNX_WIRE_ADDR_IPV4_BYTES;
	} else if (r->rawlen == sizeof(in6)) {
		memcpy(&in6, r->raw, sizeof(in6));
		if (in6.sin6_family != AF_INET6 || !in6.sin6_port)
			return -EINVAL;
		form = LNX_WIRE_ADDR_IPV6;
		memcpy(body, &in6.sin6_addr, 16);
		put_le(body + 16, ntohs(in6.sin6_port), 2);
		if (ipv6_unusable(body))
			return -EINVAL;
		/* Useless without the scope, which is a number of this host only. */
		if (ipv6_link_local(body))
			return 0;
		n = LNX_WIRE_ADDR_IPV6_BYTES;
	} else {
		return -EINVAL;
	}
	p[0] = (uint8_t)(r->prov | form << LNX_WIRE_ADDR_FORM_SHIFT);
	put_le(p + 1, r->group, 2);
	return LNX_WIRE_ADDR_RAIL_HEAD + n;
}

int lnx_addr_add(struct lnx_addr *a, const struct lnx_addr_rail *r)
{
	uint8_t scratch[LNX_WIRE_ADDR_RAILS_BYTES];
	int n = pack_rail(r, scratch), used = 0, one;
	unsigned i;

	if (n < 0)
		return n;
	for (i = 0; i < a->nrail; i++) {
		one = pack_rail(&a->rail[i], scratch);
		if (one < 0)
			return one;
		used += one;
	}
	if (!n || used + n > LNX_WIRE_ADDR_RAILS_BYTES ||
	    a->nrail == LNX_ADDR_RAILS) {
		a->more = true;
		return -ENOSPC;
	}
	a->rail[a->nrail] = *r;
	return (int)a->nrail++;
}

static int pack(const struct lnx_addr *a, uint8_t buf[LNX_ADDR_BYTES])
{
	uint8_t rail[LNX_WIRE_ADDR_RAILS_BYTES];
	bool more = a->more, full = false;
	struct lnx_wire_addr w;
	size_t used = 0;
	unsigned i;
	int n;

	if (a->nrail > LNX_ADDR_RAILS)
		return -EINVAL;
	memset(&w, 0, sizeof(w));
	memcpy(w.magic, LNX_WIRE_ADDR_MAGIC, sizeof(w.magic));
	w.version = LNX_WIRE_ADDR_VERSION;
	put_le(w.eid, a->eid, sizeof(w.eid));
	put_le(w.host, a->host, sizeof(w.host));
	for (i = 0; i < a->nrail; i++) {
		n = pack_rail(&a->rail[i], rail);
		if (n < 0)
			return n;
		/* After one is left out, so are all others: the order is kept. */
		full |= used + (size_t)n > sizeof(w.rails);
		if (!n || full) {
			more = true;
			continue;
		}
		memcpy(w.rails + used, rail, (size_t)n);
		used += (size_t)n;
		w.nrail++;
	}
	w.flags = (a->has_shm ? LNX_WIRE_ADDR_F_SHM : 0) |
		  (more ? LNX_WIRE_ADDR_F_MORE : 0) |
		  (a->native ? LNX_WIRE_ADDR_F_NATIVE : 0);
	memcpy(buf, &w, sizeof(w));
	return 0;
}

int lnx_addr_pack(const struct lnx_addr *a, uint8_t buf[LNX_ADDR_BYTES])
{
	return a->eid ? pack(a, buf) : -EINVAL;
}

int lnx_addr_source_pack(const struct lnx_addr *a, uint8_t buf[LNX_ADDR_BYTES])
{
	return a->eid || !a->nrail ? pack(a, buf) : -EINVAL;
}

struct reason {
	char *text;
	size_t size;
};

static int LNX_PRINTF(3, 4) refuse(struct reason *why, int err,
				   const char *fmt, ...)
{
	va_list ap;

	if (why->size) {
		va_start(ap, fmt);
		vsnprintf(why->text, why->size, fmt, ap);
		va_end(ap);
	}
	return err;
}

static int unpack_ip(struct lnx_addr_rail *r, unsigned index, unsigned form,
		     const uint8_t *p, struct reason *why)
{
	unsigned len = form == LNX_WIRE_ADDR_IPV4 ? 4 : 16;
	uint16_t port = (uint16_t)get_le(p + len, 2);
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (!port)
		return refuse(why, -EINVAL, "the address has port 0 on rail %u",
			      index);
	if (len == 4) {
		if (ipv4_unusable(p))
			return refuse(why, -EINVAL, "the address has "
				      "%u.%u.%u.%u on rail %u, which is not "
				      "that of one host", p[0], p[1], p[2],
				      p[3], index);
		memset(&in, 0, sizeof(in));
		in.sin_family = AF_INET;
		in.sin_port = htons(port);
		memcpy(&in.sin_addr, p, 4);
		r->rawlen = sizeof(in);
		memcpy(r->raw, &in, sizeof(in));
		return 0;
	}
	if (ipv6_unusable(p) || ipv6_link_local(p))
		return refuse(why, -EINVAL, "the address has an IPv6 address "
			      "on rail %u that is unspecified, multicast or "
			      "link-local", index);
	memset(&in6, 0, sizeof(in6));
	in6.sin6_family = AF_INET6;
	in6.sin6_port = htons(port);
	memcpy(&in6.sin6_addr, p, 16);
	r->rawlen = sizeof(in6);
	memcpy(r->raw, &in6, sizeof(in6));
	return 0;
}

/* Unpack one rail from at most left bytes at p: bytes used, or a negative errno. */
static int unpack_rail(struct lnx_addr_rail *r, unsigned index,
		       const uint8_t *p, size_t left, struct reason *why)
{
	const uint8_t *body = p + LNX_WIRE_ADDR_RAIL_HEAD;
	unsigned form;
	size_t len;
	int ret;

	/* In every form at least one byte follows the head. */
	if (left <= LNX_WIRE_ADDR_RAIL_HEAD)
		goto beyond;
	r->prov = p[0] & LNX_WIRE_ADDR_PROV_MASK;
	form = p[0] >> LNX_WIRE_ADDR_FORM_SHIFT;
	r->group = (uint16_t)get_le(p + 1, 2);
	if (r->prov <= LNX_PROV_SHM || r->prov >= LNX_PROV_MAX)
		return refuse(why, -EINVAL, "the address has the provider "
			      "number %u on rail %u; %u to %u are known",
			      r->prov, index, LNX_PROV_SHM + 1,
			      LNX_PROV_MAX - 1);
	if (!r->group)
		return refuse(why, -EINVAL, "the address has group 0 on rail "
			      "%u", index);
	if (form > LNX_WIRE_ADDR_RAW ||
	    provs[r->prov].ip == (form == LNX_WIRE_ADDR_RAW))
		return refuse(why, -EINVAL, "the address has the form %u on "
			      "rail %u, which is none of %s", form, index,
			      provs[r->prov].name);

	len = form == LNX_WIRE_ADDR_IPV4 ? LNX_WIRE_ADDR_IPV4_BYTES :
	      form == LNX_WIRE_ADDR_IPV6 ? LNX_WIRE_ADDR_IPV6_BYTES :
	      1 + (size_t)body[0];
	if (LNX_WIRE_ADDR_RAIL_HEAD + len > left)
		goto beyond;
	if (form == LNX_WIRE_ADDR_RAW) {
		if (len < 2 || len > 1 + LNX_ADDR_RAW)
			return refuse(why, -EINVAL, "the address has %zu bytes "
				      "on rail %u; 1 to %d are possible",
				      len - 1, index, LNX_ADDR_RAW);
		r->rawlen = body[0];
		memcpy(r->raw, body + 1, r->rawlen);
	} else {
		ret = unpack_ip(r, index, form, body, why);
		if (ret)
			return ret;
	}
	return (int)(LNX_WIRE_ADDR_RAIL_HEAD + len);

beyond:
	return refuse(why, -EINVAL, "the address ends within its rail %u",
		      index);
}

int lnx_addr_rail_pack(const struct lnx_addr_rail *r,
		       uint8_t p[LNX_ADDR_RAIL_BYTES])
{
	return pack_rail(r, p);
}

int lnx_addr_rail_unpack(struct lnx_addr_rail *r, const uint8_t *p,
			 size_t left)
{
	struct reason why = { NULL, 0 };

	memset(r, 0, sizeof(*r));
	return unpack_rail(r, 0, p, left, &why);
}

/* source: it may be of no endpoint. */
static int unpack(struct lnx_addr *a, const void *buf, size_t len,
		  bool source, char *why_buf, size_t why_size)
{
	struct reason why = { why_buf, why_buf ? why_size : 0 };
	struct lnx_wire_addr w;
	struct lnx_addr out;
	size_t used = 0;
	unsigned i;
	int n;

	/* These come first and keep their offsets in every version. */
	if (len < offsetof(struct lnx_wire_addr, flags))
		return refuse(&why, -EINVAL, "the address has %zu bytes; one "
			      "of lnx has %d", len, LNX_WIRE_ADDR_BYTES);
	memset(&w, 0, sizeof(w));
	memcpy(&w, buf, LNX_MIN(len, sizeof(w)));
	if (memcmp(w.magic, LNX_WIRE_ADDR_MAGIC, sizeof(w.magic)))
		return refuse(&why, -EINVAL, "this is no address of lnx: it "
			      "begins with %02x%02x%02x%02x", w.magic[0],
			      w.magic[1], w.magic[2], w.magic[3]);
	if (w.version != LNX_WIRE_ADDR_VERSION)
		return refuse(&why, -EPROTONOSUPPORT, "the address has version "
			      "%u and this lnx speaks version %u; the same "
			      "release of lnx is needed at both ends",
			      w.version, LNX_WIRE_ADDR_VERSION);
	if (len != sizeof(w))
		return refuse(&why, -EINVAL, "the address has %zu bytes; one "
			      "of lnx has %d", len, LNX_WIRE_ADDR_BYTES);
	if (w.flags & ~LNX_WIRE_ADDR_F_ALL || w.zero)
		return refuse(&why, -EINVAL, "the address has reserved bits "
			      "set: flags %02x, reserved %02x", w.flags,
			      w.zero);
	if (w.nrail > LNX_ADDR_RAILS)
		return refuse(&why, -EINVAL, "the address claims %u rails; %d "
			      "are the most", w.nrail, LNX_ADDR_RAILS);

	memset(&out, 0, sizeof(out));
	out.eid = get_le(w.eid, sizeof(w.eid));
	out.host = get_le(w.host, sizeof(w.host));
	out.has_shm = w.flags & LNX_WIRE_ADDR_F_SHM;
	out.more = w.flags & LNX_WIRE_ADDR_F_MORE;
	out.native = w.flags & LNX_WIRE_ADDR_F_NATIVE;
	out.nrail = w.nrail;
	if (!out.eid && (!source || out.nrail))
		return refuse(&why, -EINVAL, "the address has endpoint "
			      "identity 0: it is of no endpoint; those of "
			      "fi_getname are");
	for (i = 0; i < out.nrail; i++) {
		n = unpack_rail(&out.rail[i], i, w.rails + used,
				sizeof(w.rails) - used, &why);
		if (n < 0)
			return n;
		used += (size_t)n;
	}
	if (!all_zero(w.rails + used, sizeof(w.rails) - used))
		return refuse(&why, -EINVAL, "the address has something behind "
			      "its %u rails, where zeros belong", out.nrail);
	*a = out;
	return 0;
}

int lnx_addr_unpack(struct lnx_addr *a, const void *buf, size_t len,
		    char *why, size_t why_size)
{
	return unpack(a, buf, len, false, why, why_size);
}

int lnx_addr_source_unpack(struct lnx_addr *a, const void *buf, size_t len,
			   char *why, size_t why_size)
{
	return unpack(a, buf, len, true, why, why_size);
}

struct text {
	char *buf;
	size_t size, len;
};

static void LNX_PRINTF(2, 3) add(struct text *t, const char *fmt, ...)
{
	size_t room = t->len < t->size ? t->size - t->len : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? t->buf + t->len : NULL, room, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
}

static void add_rail(struct text *t, const struct lnx_addr_rail *r)
{
	const char *name = lnx_addr_prov_name(r->prov);
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	char ip[INET6_ADDRSTRLEN];
	size_t i, n = LNX_MIN((size_t)r->rawlen, sizeof(r->raw));

	if (name)
		add(t, "%s=", name);
	else
		add(t, "provider%u=", r->prov);
	memcpy(&in, r->raw, sizeof(in));
	memcpy(&in6, r->raw, sizeof(in6));
	if (name && provs[r->prov].ip && n == sizeof(in) &&
	    in.sin_family == AF_INET &&
	    inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip))) {
		add(t, "%s:%u", ip, ntohs(in.sin_port));
	} else if (name && provs[r->prov].ip && n == sizeof(in6) &&
		   in6.sin6_family == AF_INET6 &&
		   inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip))) {
		add(t, "[%s]:%u", ip, ntohs(in6.sin6_port));
	} else {
		add(t, "0x");
		for (i = 0; i < n; i++)
			add(t, "%02x", r->raw[i]);
	}
	add(t, "#%04x", r->group);
}

size_t lnx_addr_print(const struct lnx_addr *a, char *buf, size_t size)
{
	struct text t = { buf, size, 0 };
	const char *sep = "/";
	unsigned i;

	if (size)
		buf[0] = '\0';
	add(&t, "lnx://%016" PRIx64 "@%016" PRIx64, a->eid, a->host);
	if (a->has_shm) {
		add(&t, "%sshm", sep);
		sep = ",";
	}
	for (i = 0; i < LNX_MIN(a->nrail, (unsigned)LNX_ADDR_RAILS); i++) {
		add(&t, "%s", sep);
		add_rail(&t, &a->rail[i]);
		sep = ",";
	}
	if (a->more)
		add(&t, "%s...", sep);
	return t.len;
}

uint16_t lnx_addr_group(uint8_t prov, const char *fabric_name)
{
	const char *p = fabric_name ? fabric_name : "";
	uint32_t h = 2166136261u;	/* FNV-1a: the same on every machine */

	h = (h ^ prov) * 16777619u;
	for (; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	h = (h >> 16 ^ h) & 0xffff;
	return h ? (uint16_t)h : 0xffff;
}

uint8_t lnx_addr_prov_id(const char *name)
{
	uint8_t i;

	for (i = LNX_PROV_NONE + 1; name && i < LNX_PROV_MAX; i++)
		if (!strcasecmp(provs[i].name, name))
			return i;
	return LNX_PROV_NONE;
}

const char *lnx_addr_prov_name(uint8_t prov)
{
	return prov < LNX_PROV_MAX ? provs[prov].name : NULL;
}

void lnx_addr_shm_name(uint64_t eid, unsigned turn, char name[LNX_SHM_NAME_BYTES])
{
	int n = snprintf(name, LNX_SHM_NAME_BYTES, "fi_shm://lnx-%016" PRIx64, eid);

	if (turn)
		snprintf(name + n, (size_t)(LNX_SHM_NAME_BYTES - n), ".%u", turn % 10);
}
