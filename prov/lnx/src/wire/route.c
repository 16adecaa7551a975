/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The layouts of what endpoints and gateways exchange.  See route.h. */
#include "wire/route.h"

#include <errno.h>
#include <string.h>

#define RAIL_BYTES	LNX_ROUTE_RAIL_BYTES

static_assert(LNX_ROUTE_NOTE_LEN == sizeof(struct lnx_wire_route_note),
	      "one length of a note");
static_assert(LNX_WIRE_ADDR_RAIL_HEAD + 1 + LNX_ADDR_RAW == LNX_ROUTE_RAIL_BYTES,
	      "room for the longest rail");
static_assert(offsetof(struct lnx_wire_route, via) == 8 &&
	      offsetof(struct lnx_wire_route_note, id) == 8 &&
	      offsetof(struct lnx_wire_gw, id) == 8 &&
	      offsetof(struct lnx_wire_gw_ask, id) == 8, "ids have one place");
static_assert(offsetof(struct lnx_wire_route, key) == 16 &&
	      offsetof(struct lnx_wire_route_note, key) == 16 &&
	      offsetof(struct lnx_wire_gw, key) == 16 &&
	      offsetof(struct lnx_wire_gw_ask, key) == 16, "keys have one place");

static int bad(const char **why, int err, const char *text)
{
	if (why)
		*why = text;
	return err;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

/* ---- one rail ---- */

int lnx_route_rail_put(uint8_t p[LNX_ROUTE_RAIL_BYTES],
		       const struct lnx_addr_rail *r)
{
	uint8_t packed[LNX_ADDR_RAIL_BYTES] = { 0 };

	if (lnx_addr_rail_pack(r, packed) <= 0)
		return -EINVAL;
	memcpy(p, packed, RAIL_BYTES);
	return 0;
}

int lnx_route_rail_get(struct lnx_addr_rail *r,
		       const uint8_t p[LNX_ROUTE_RAIL_BYTES])
{
	int n = lnx_addr_rail_unpack(r, p, RAIL_BYTES);

	return n > 0 && all_zero(p + n, RAIL_BYTES - (size_t)n) ? 0 : -EBADMSG;
}

/* ---- what all records begin with ---- */

/* least: bytes of the shortest record of that kind. */
static int head(const uint8_t *p, size_t len, uint8_t kind, size_t least,
		const char **why)
{
	if (len < 4)
		return bad(why, -EMSGSIZE, "it has less than 4 bytes");
	if (p[0] != LNX_ROUTE_MAGIC)
		return bad(why, -EBADMSG, "it does not begin with 0x52");
	if (p[1] != LNX_ROUTE_VERSION)
		return bad(why, -EPROTONOSUPPORT, "it has another version than 1");
	if (p[2] != kind)
		return bad(why, -EBADMSG, "it is of another kind");
	if (len < least)
		return bad(why, -EMSGSIZE, "it is shorter than its kind is");
	return 0;
}

static void put_head(void *buf, uint8_t kind, uint8_t flags)
{
	uint8_t *p = buf;

	p[0] = LNX_ROUTE_MAGIC;
	p[1] = LNX_ROUTE_VERSION;
	p[2] = kind;
	p[3] = flags;
}

/* ---- envelopes ---- */

static int env_check(const struct lnx_route_env *e, const char **why)
{
	if (e->hops_left > LNX_ROUTE_HOPS_MAX || e->hops_done > LNX_ROUTE_HOPS_MAX ||
	    e->hops_left + e->hops_done > LNX_ROUTE_HOPS_MAX)
		return bad(why, -EBADMSG, "it has more than 15 hops");
	if (!e->via != !e->hops_done)
		return bad(why, -EBADMSG, "its hops and its last gateway contradict");
	if (e->len < sizeof(struct lnx_wire_hdr) || e->len > LNX_ROUTE_INNER_MAX)
		return bad(why, -EMSGSIZE, "no frame has the length that it says");
	return 0;
}

int lnx_route_put(void *buf, const struct lnx_route_env *e)
{
	struct lnx_wire_route w = { .hops_left = e->hops_left };

	if (env_check(e, NULL) || lnx_route_rail_put(w.rail, &e->rail))
		return -EINVAL;
	put_head(&w, LNX_ROUTE_FRAME, 0);
	w.hops_done = e->hops_done;
	w.account = htole16(e->account);
	w.via = htole64(e->via);
	w.key = htole64(e->key);
	w.len = htole32(e->len);
	memcpy(buf, &w, sizeof(w));
	return (int)sizeof(w);
}

int lnx_route_get(struct lnx_route_env *e, const void *buf, size_t len,
		  const char **why)
{
	struct lnx_wire_route w;
	int ret = head(buf, len, LNX_ROUTE_FRAME, sizeof(w), why);

	if (ret)
		return ret;
	memcpy(&w, buf, sizeof(w));
	if (w.flags)
		return bad(why, -EBADMSG, "it has flags that are not known");
	e->hops_left = w.hops_left;
	e->hops_done = w.hops_done;
	e->account = le16toh(w.account);
	e->via = le64toh(w.via);
	e->key = le64toh(w.key);
	e->len = le32toh(w.len);
	ret = env_check(e, why);
	if (ret)
		return ret;
	if (len - sizeof(w) != e->len)
		return bad(why, -EMSGSIZE, "it says another length than it has");
	if (((const uint8_t *)buf)[sizeof(w)] != LNX_WIRE_MAGIC)
		return bad(why, -EBADMSG, "no frame is behind the envelope");
	if (lnx_route_rail_get(&e->rail, w.rail))
		return bad(why, -EBADMSG, "its destination is no address of a rail");
	return 0;
}

void lnx_route_forward(void *buf, uint64_t id, uint16_t account)
{
	struct lnx_wire_route w;

	memcpy(&w, buf, sizeof(w));
	w.hops_left--;
	w.hops_done++;
	w.account = htole16(account);
	w.via = htole64(id);
	memcpy(buf, &w, sizeof(w));
}

/* ---- notes ---- */

static int note_check(const struct lnx_route_note *n, const char **why)
{
	if (!n->reason || n->reason >= LNX_NOTE_MAX)
		return bad(why, -EBADMSG, "it has a reason that is not known");
	if (n->hops_done > LNX_ROUTE_HOPS_MAX)
		return bad(why, -EBADMSG, "it has more than 15 hops");
	if (!n->id)
		return bad(why, -EBADMSG, "it has gateway id 0");
	if (!n->count)
		return bad(why, -EBADMSG, "it is about no frame");
	return 0;
}

int lnx_route_note_put(void *buf, const struct lnx_route_note *n)
{
	struct lnx_wire_route_note w = { .reason = n->reason };

	if (note_check(n, NULL) || lnx_route_rail_put(w.rail, &n->rail))
		return -EINVAL;
	put_head(&w, LNX_ROUTE_NOTE, 0);
	w.hops_done = n->hops_done;
	w.account = htole16(n->account);
	w.id = htole64(n->id);
	w.key = htole64(n->key);
	w.count = htole32(n->count);
	w.src = htole64(n->src);
	w.dst = htole64(n->dst);
	w.seq = htole32(n->seq);
	w.wait_ms = htole32(n->wait_ms);
	memcpy(buf, &w, sizeof(w));
	return (int)sizeof(w);
}

int lnx_route_note_get(struct lnx_route_note *n, const void *buf, size_t len,
		       const char **why)
{
	struct lnx_wire_route_note w;
	int ret = head(buf, len, LNX_ROUTE_NOTE, sizeof(w), why);

	if (ret)
		return ret;
	if (len != sizeof(w))
		return bad(why, -EMSGSIZE, "it is longer than a note");
	memcpy(&w, buf, sizeof(w));
	if (w.flags)
		return bad(why, -EBADMSG, "it has flags that are not known");
	n->reason = w.reason;
	n->hops_done = w.hops_done;
	n->account = le16toh(w.account);
	n->id = le64toh(w.id);
	n->key = le64toh(w.key);
	n->count = le32toh(w.count);
	n->src = le64toh(w.src);
	n->dst = le64toh(w.dst);
	n->seq = le32toh(w.seq);
	n->wait_ms = le32toh(w.wait_ms);
	ret = note_check(n, why);
	if (!ret && lnx_route_rail_get(&n->rail, w.rail))
		ret = bad(why, -EBADMSG, "its destination is no address of a rail");
	return ret;
}

const char *lnx_route_reason_name(unsigned reason)
{
	static const char *const names[LNX_NOTE_MAX] = {
		[LNX_NOTE_NO_ROUTE] = "no_route",
		[LNX_NOTE_REFUSED] = "refused",
		[LNX_NOTE_UNREACHABLE] = "unreachable",
		[LNX_NOTE_UNKNOWN_DST] = "unknown_dst",
		[LNX_NOTE_TTL] = "ttl",
		[LNX_NOTE_FORBIDDEN] = "forbidden",
		[LNX_NOTE_OVER_QUOTA] = "over_quota",
		[LNX_NOTE_DRAINING] = "draining",
		[LNX_NOTE_TOO_BIG] = "too_big",
		[LNX_NOTE_NOT_ROUTER] = "not_router",
	};

	return reason < LNX_NOTE_MAX && names[reason] ? names[reason] : "unknown";
}

/* ---- hello and info ---- */

static int gw_check(const struct lnx_gw_hello *h, bool info, const char **why)
{
	uint8_t flags = info ? LNX_GW_F_ROUTING | LNX_GW_F_DRAINING : LNX_GW_F_GATEWAY;

	if (h->flags & ~flags)
		return bad(why, -EBADMSG, "it has flags that are not known");
	if (!h->oldest || h->oldest > LNX_ROUTE_VERSION ||
	    h->newest < LNX_ROUTE_VERSION)
		return bad(why, -EBADMSG, "its versions do not contain its own");
	if (!h->id)
		return bad(why, -EBADMSG, "its sender has id 0");
	if (info && !h->account)
		return bad(why, -EBADMSG, "it gives the account 0");
	if (!h->nonce)
		return bad(why, -EBADMSG, "its nonce is 0");
	if (info ? h->rail != 0 : !lnx_rails_find(&h->rails, h->rail))
		return bad(why, -EBADMSG, "it came from a rail that it does not list");
	return 0;
}

/* The head, the blob and the list of rails: bytes written. */
static int gw_put(uint8_t *buf, size_t size, uint8_t kind,
		  const struct lnx_gw_hello *h)
{
	struct lnx_wire_gw w = { .oldest = h->oldest };
	struct lnx_addr a = { .eid = h->id, .host = h->host };
	uint8_t list[LNX_WIRE_RAILS_BYTES] = { 0 };
	int nlist = 0;
	unsigned i;

	if (!h->rails.n || h->rails.n > LNX_WIRE_RAILS_MAX)
		return -EINVAL;
	/* The blob lists the rails 0, 1, 2; the list all, if the blob does not. */
	for (i = 0; i < h->rails.n && h->rails.place[i] == i; i++)
		if (lnx_addr_add(&a, &h->rails.rail[i]) < 0)
			break;
	if (i < h->rails.n) {
		a.more = true;
		nlist = lnx_rails_pack(&h->rails, list);
		/* One that is left out has a state that no list explains. */
		if (nlist <= 0 || list[0] != h->rails.n)
			return -EINVAL;
	}
	if (size < LNX_GW_HELLO_BYTES + (size_t)nlist)
		return -EINVAL;
	put_head(&w, kind, h->flags);
	w.newest = h->newest;
	w.account = htole16(h->account);
	w.id = htole64(h->id);
	w.key = htole64(h->key);
	w.nonce = htole32(h->nonce);
	w.rail = htole16(h->rail);
	w.nrails = htole16((uint16_t)nlist);
	memcpy(buf, &w, sizeof(w));
	if (lnx_addr_pack(&a, buf + sizeof(w)))
		return -EINVAL;
	memcpy(buf + LNX_GW_HELLO_BYTES, list, (size_t)nlist);
	return LNX_GW_HELLO_BYTES + nlist;
}

/* Bytes read, or an error. */
static int gw_get(struct lnx_gw_hello *h, const uint8_t *buf, size_t len,
		  uint8_t kind, const char **why)
{
	int ret = head(buf, len, kind, LNX_GW_HELLO_BYTES, why);
	struct lnx_wire_gw w;
	struct lnx_addr a;
	size_t nlist;

	if (ret)
		return ret;
	memcpy(&w, buf, sizeof(w));
	h->flags = w.flags;
	h->oldest = w.oldest;
	h->newest = w.newest;
	h->account = le16toh(w.account);
	h->id = le64toh(w.id);
	h->key = le64toh(w.key);
	h->nonce = le32toh(w.nonce);
	h->rail = le16toh(w.rail);
	nlist = le16toh(w.nrails);
	if (nlist > len - LNX_GW_HELLO_BYTES)
		return bad(why, -EMSGSIZE, "its list of rails is cut");
	if (lnx_addr_unpack(&a, buf + sizeof(w), LNX_WIRE_ADDR_BYTES, NULL, 0) ||
	    a.eid != h->id || a.native || a.has_shm)
		return bad(why, -EBADMSG, "its address is none of its sender");
	h->host = a.host;
	if (a.more != (nlist > 0))
		return bad(why, -EBADMSG, "its address and its list of rails contradict");
	if (!nlist)
		lnx_rails_of_addr(&h->rails, &a);
	else if (lnx_rails_unpack(&h->rails, buf + LNX_GW_HELLO_BYTES, nlist))
		return bad(why, -EBADMSG, "its list of rails is malformed");
	if (!h->rails.n)
		return bad(why, -EBADMSG, "it lists no rails");
	return (int)(LNX_GW_HELLO_BYTES + nlist);
}

int lnx_wire_gw_hello_put(void *buf, size_t size, const struct lnx_gw_hello *h)
{
	return gw_check(h, false, NULL) ? -EINVAL :
		gw_put(buf, size, LNX_ROUTE_GW_HELLO, h);
}

int lnx_wire_gw_hello_get(struct lnx_gw_hello *h, const void *buf, size_t len,
			  const char **why)
{
	int n;

	memset(h, 0, sizeof(*h));
	n = gw_get(h, buf, len, LNX_ROUTE_GW_HELLO, why);
	if (n < 0)
		return n;
	if ((size_t)n != len)
		return bad(why, -EMSGSIZE, "it is longer than it says");
	return gw_check(h, false, why);
}

static int info_check(const struct lnx_gw_info *i, const char **why)
{
	unsigned k;

	if (i->hops > LNX_ROUTE_HOPS_MAX)
		return bad(why, -EBADMSG, "it has more than 15 hops");
	if (i->frame_max < LNX_ROUTE_HEAD + sizeof(struct lnx_wire_hdr) ||
	    i->frame_max > LNX_FRAME_LARGE)
		return bad(why, -EBADMSG, "no frame has the length that it takes");
	if (i->behind && (i->gw.newest < LNX_ROUTE_NEWEST ||
			  i->behind < LNX_ROUTE_HEAD + LNX_FRAME_MAX ||
			  i->behind > LNX_FRAME_LARGE))
		return bad(why, -EBADMSG, "no frame has the length that is taken behind it");
	for (k = 0; k < i->gw.rails.n; k++)
		if (i->state[k].health > 1000)
			return bad(why, -EBADMSG, "it has a health above 1000");
	for (k = 0; k < i->nnet; k++)
		if (i->net[k].prov <= LNX_PROV_SHM || i->net[k].prov >= LNX_PROV_MAX ||
		    !i->net[k].group || !i->net[k].hops ||
		    i->net[k].hops > LNX_ROUTE_HOPS_MAX)
			return bad(why, -EBADMSG, "it lists a net that cannot be one");
	return 0;
}

int lnx_wire_gw_info_put(void *buf, size_t size, const struct lnx_gw_info *i)
{
	struct lnx_wire_gw_info w = {
		.large = htole32(i->large), .small = htole32(i->small),
		.frame_max = htole32(i->frame_max), .hops = i->hops,
		.nrail = (uint8_t)i->gw.rails.n, .nnet = (uint8_t)i->nnet,
		.behind = (uint8_t)(i->behind ?
				    (i->behind - LNX_ROUTE_HEAD) / LNX_GW_BEHIND_UNIT : 0),
	};
	uint8_t *p = buf;
	size_t rest;
	unsigned k;
	int n;

	if (gw_check(&i->gw, true, NULL) || i->nnet > LNX_GW_NETS_MAX ||
	    info_check(i, NULL))
		return -EINVAL;
	n = gw_put(buf, size, LNX_ROUTE_GW_INFO, &i->gw);
	if (n < 0)
		return n;
	rest = sizeof(w) + i->gw.rails.n * sizeof(struct lnx_wire_gw_rail) +
	       i->nnet * sizeof(struct lnx_wire_gw_net);
	if (size - (size_t)n < rest)
		return -EINVAL;
	p += n;
	memcpy(p, &w, sizeof(w));
	p += sizeof(w);
	for (k = 0; k < i->gw.rails.n; k++) {
		struct lnx_wire_gw_rail r = {
			.place = i->gw.rails.place[k],
			.state = i->state[k].up ? LNX_GW_RAIL_UP : LNX_GW_RAIL_DOWN,
			.health = htole16(i->state[k].health),
		};

		memcpy(p, &r, sizeof(r));
		p += sizeof(r);
	}
	for (k = 0; k < i->nnet; k++) {
		struct lnx_wire_gw_net net = i->net[k];

		net.group = htole16(net.group);
		memcpy(p, &net, sizeof(net));
		p += sizeof(net);
	}
	return n + (int)rest;
}

/* What follows the rails, len bytes at p. */
static int info_rest(struct lnx_gw_info *i, const uint8_t *p, size_t len,
		     const char **why)
{
	struct lnx_wire_gw_info w;
	unsigned k;

	if (len < sizeof(w))
		return bad(why, -EMSGSIZE, "it is cut behind its rails");
	memcpy(&w, p, sizeof(w));
	p += sizeof(w);
	i->large = le32toh(w.large);
	i->small = le32toh(w.small);
	i->frame_max = le32toh(w.frame_max);
	i->hops = w.hops;
	i->nnet = w.nnet;
	if (w.behind)
		i->behind = LNX_ROUTE_HEAD + w.behind * LNX_GW_BEHIND_UNIT;
	if (w.nrail != i->gw.rails.n || i->nnet > LNX_GW_NETS_MAX)
		return bad(why, -EBADMSG, "its numbers of rails or nets are wrong");
	if (len != sizeof(w) + w.nrail * sizeof(struct lnx_wire_gw_rail) +
		   i->nnet * sizeof(struct lnx_wire_gw_net))
		return bad(why, -EMSGSIZE, "it says another length than it has");
	for (k = 0; k < i->gw.rails.n; k++) {
		struct lnx_wire_gw_rail r;

		memcpy(&r, p, sizeof(r));
		p += sizeof(r);
		if (r.place != i->gw.rails.place[k] || r.state > LNX_GW_RAIL_UP)
			return bad(why, -EBADMSG, "it has the state of no rail");
		i->state[k].up = r.state == LNX_GW_RAIL_UP;
		i->state[k].health = le16toh(r.health);
	}
	for (k = 0; k < i->nnet; k++) {
		memcpy(&i->net[k], p, sizeof(i->net[k]));
		p += sizeof(i->net[k]);
		i->net[k].group = le16toh(i->net[k].group);
	}
	return info_check(i, why);
}

int lnx_wire_gw_info_get(struct lnx_gw_info *i, const void *buf, size_t len,
			 const char **why)
{
	int n, ret;

	memset(i, 0, sizeof(*i));
	n = gw_get(&i->gw, buf, len, LNX_ROUTE_GW_INFO, why);
	if (n < 0)
		return n;
	ret = info_rest(i, (const uint8_t *)buf + n, len - (size_t)n, why);
	return ret ? ret : gw_check(&i->gw, true, why);
}

/* ---- ask and tell ---- */

static int ask_check(const struct lnx_gw_ask *a, const char **why)
{
	if (a->tell >= LNX_TELL_MAX)
		return bad(why, -EBADMSG, "it tells what is not known");
	if (!a->id)
		return bad(why, -EBADMSG, "its sender has id 0");
	if (!a->nonce)
		return bad(why, -EBADMSG, "its nonce is 0");
	if (a->hops_done > (a->tell ? 0 : LNX_ROUTE_HOPS_MAX))
		return bad(why, -EBADMSG, "it went over too many gateways");
	return 0;
}

int lnx_wire_gw_ask_put(void *buf, const struct lnx_gw_ask *a)
{
	struct lnx_wire_gw_ask w = { .tell = a->tell, .hops_done = a->hops_done };

	if (ask_check(a, NULL) || lnx_route_rail_put(w.rail, &a->rail))
		return -EINVAL;
	put_head(&w, a->tell ? LNX_ROUTE_GW_TELL : LNX_ROUTE_GW_ASK, 0);
	w.account = htole16(a->account);
	w.id = htole64(a->id);
	w.key = htole64(a->key);
	w.nonce = htole32(a->nonce);
	memcpy(buf, &w, sizeof(w));
	return (int)sizeof(w);
}

int lnx_wire_gw_ask_get(struct lnx_gw_ask *a, const void *buf, size_t len,
			const char **why)
{
	bool told = lnx_route_kind(buf, len) == LNX_ROUTE_GW_TELL;
	struct lnx_wire_gw_ask w;
	int ret = head(buf, len, told ? LNX_ROUTE_GW_TELL : LNX_ROUTE_GW_ASK,
		       sizeof(w), why);

	if (ret)
		return ret;
	if (len != sizeof(w))
		return bad(why, -EMSGSIZE, "it is longer than its kind is");
	memcpy(&w, buf, sizeof(w));
	if (w.flags)
		return bad(why, -EBADMSG, "it has flags that are not known");
	if (told != (w.tell != 0))
		return bad(why, -EBADMSG, "its kind and its answer contradict");
	a->tell = w.tell;
	a->hops_done = w.hops_done;
	a->account = le16toh(w.account);
	a->id = le64toh(w.id);
	a->key = le64toh(w.key);
	a->nonce = le32toh(w.nonce);
	ret = ask_check(a, why);
	if (!ret && lnx_route_rail_get(&a->rail, w.rail))
		ret = bad(why, -EBADMSG, "its destination is no address of a rail");
	return ret;
}

const char *lnx_route_tell_name(unsigned tell)
{
	static const char *const names[LNX_TELL_MAX] = {
		[LNX_TELL_ALIVE] = "alive",
		[LNX_TELL_REFUSED] = "refused",
		[LNX_TELL_UNREACHABLE] = "unreachable",
		[LNX_TELL_SILENT] = "silent",
		[LNX_TELL_RAIL_DOWN] = "rail_down",
		[LNX_TELL_NO_ROUTE] = "no_route",
	};

	return tell < LNX_TELL_MAX && names[tell] ? names[tell] : "unknown";
}

/* ---- pull and piece ---- */

static int pull_check(const struct lnx_route_pull *p, const char **why)
{
	if (!p->src || !p->dst)
		return bad(why, -EBADMSG, "it is from or for id 0");
	if (!p->id)
		return bad(why, -EBADMSG, "it belongs to pull 0");
	if (!p->len || p->len > (p->piece ? LNX_PAYLOAD_LARGE - LNX_ROUTE_HEAD :
				 LNX_PULL_MAX))
		return bad(why, -EBADMSG, "it is for no bytes, or for too many");
	if (p->offset > UINT64_MAX - p->len)
		return bad(why, -EBADMSG, "its range ends behind the last address");
	if (p->piece ? p->segment || p->key : p->segment > LNX_PULL_MEMORY)
		return bad(why, -EBADMSG, "it is of a segment that there is not");
	return 0;
}

int lnx_route_pull_put(void *buf, const struct lnx_route_pull *p)
{
	struct lnx_hdr h = {
		.kind = p->piece ? LNX_KIND_PIECE : LNX_KIND_PULL,
		.seq = p->segment,
		.ack = p->most | (uint32_t)p->way << LNX_PULL_WAY_SHIFT, .src = p->src, .dst = p->dst,
		.tag = p->offset, .data = p->id, .len = p->len, .key = p->key,
	};
	struct lnx_wire_hdr w;

	if (pull_check(p, NULL))
		return -EINVAL;
	lnx_hdr_put(&w, &h);
	memcpy(buf, &w, sizeof(w));
	return (int)sizeof(w);
}

int lnx_route_pull_get(struct lnx_route_pull *p, const void *buf, size_t len, const char **why)
{
	struct lnx_wire_hdr w;
	int ret;

	if (len < sizeof(w))
		return bad(why, -EMSGSIZE, "it is shorter than a header");
	memcpy(&w, buf, sizeof(w));
	if (w.magic != LNX_WIRE_MAGIC)
		return bad(why, -EBADMSG, "it does not begin with 0x4c");
	if (w.version != LNX_WIRE_VERSION)
		return bad(why, -EPROTONOSUPPORT, "it has another version than 1");
	if (w.kind != LNX_KIND_PULL && w.kind != LNX_KIND_PIECE)
		return bad(why, -EBADMSG, "it is of another kind");
	if (w.flags & ~LNX_WIRE_F_MSG)
		return bad(why, -EBADMSG, "it has flags that are not known");
	p->piece = w.kind == LNX_KIND_PIECE;
	p->src = le64toh(w.src);
	p->dst = le64toh(w.dst);
	p->most = p->piece ? 0 : le32toh(w.ack) & ((1u << LNX_PULL_WAY_SHIFT) - 1);
	p->way = p->piece ? 0 : (uint8_t)(le32toh(w.ack) >> LNX_PULL_WAY_SHIFT);
	p->id = le64toh(w.data);
	p->key = le64toh(w.key);
	p->segment = le32toh(w.seq);
	p->offset = le64toh(w.tag);
	p->len = le64toh(w.len);
	ret = pull_check(p, why);
	if (!ret && len - sizeof(w) != (p->piece ? p->len : 0))
		ret = bad(why, -EMSGSIZE, "it says another length than it has");
	return ret;
}
