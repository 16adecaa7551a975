/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address of an endpoint: its identity, and those of its rails.  Each rail has an
 * index that never changes; the address has room for the first ones.
 */
#include <errno.h>
#include <string.h>

#include "core/open.h"

bool lnx_rail_describe(const struct lnx_rail *rail, struct lnx_addr_rail *r)
{
	memset(r, 0, sizeof(*r));
	r->prov = rail->prov;
	r->group = rail->group;
	if (lnx_rail_kind_local(rail->kind) || !rail->addrlen ||
	    rail->addrlen > sizeof(r->raw))
		return false;
	r->rawlen = (uint8_t)rail->addrlen;
	memcpy(r->raw, rail->addr, rail->addrlen);
	return true;
}

static struct lnx_rail *at_place(const struct lnx_ep *ep, unsigned place)
{
	unsigned i;

	for (i = 0; i < ep->nrail; i++)
		if (!lnx_rail_kind_local(ep->rail[i]->kind) &&
		    ep->rail[i]->wire_index == place)
			return ep->rail[i];
	return NULL;
}

/* Add the rails that have their index already.  0, or -EINVAL. */
static int add_placed(const struct lnx_ep *ep, struct lnx_addr *a)
{
	const struct lnx_rail *rail;
	struct lnx_addr_rail r;
	int place;

	while ((rail = at_place(ep, a->nrail)) && lnx_rail_describe(rail, &r)) {
		place = lnx_addr_add(a, &r);
		if (place < 0)
			return place == -ENOSPC ? 0 : place;
	}
	return 0;
}

/* Give the others an index: in the address if it has room for them, else above. */
static int add_new(const struct lnx_ep *ep, struct lnx_addr *a, unsigned *next)
{
	uint8_t scratch[LNX_ADDR_RAIL_BYTES];
	struct lnx_addr_rail r;
	unsigned i;
	int place;

	for (i = 0; *next == a->nrail && i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (rail->wire_index != LNX_WIRE_INDEX_NONE ||
		    !lnx_rail_describe(rail, &r))
			continue;
		place = lnx_addr_add(a, &r);
		if (place >= 0)
			rail->wire_index = (uint16_t)place;
		else if (place != -ENOSPC)
			return place;
		*next = a->nrail;
	}
	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (rail->wire_index != LNX_WIRE_INDEX_NONE ||
		    lnx_rail_kind_local(rail->kind))
			continue;
		a->more = true;
		if (!ep->native && *next < LNX_WIRE_RAILS_MAX &&
		    lnx_rail_describe(rail, &r) && lnx_addr_rail_pack(&r, scratch) > 0)
			rail->wire_index = (uint16_t)(*next)++;
	}
	return 0;
}

int lnx_ep_address(struct lnx_ep *ep)
{
	struct lnx_addr a = {
		.eid = ep->eid,
		.host = ep->domain->host,
		.has_shm = ep->shm != NULL,
		.native = ep->native,
	};
	unsigned i, next = 0;
	int ret;

	for (i = 0; i < ep->nrail; i++)
		if (!lnx_rail_kind_local(ep->rail[i]->kind) &&
		    ep->rail[i]->wire_index != LNX_WIRE_INDEX_NONE)
			next = LNX_MAX(next, ep->rail[i]->wire_index + 1u);
	ret = add_placed(ep, &a);
	if (!ret)
		ret = add_new(ep, &a, &next);
	if (ret)
		return ret;
	a.more |= next > a.nrail;
	ep->address.epoch++;
	ep->address.more = next > a.nrail;
	ep->address.changed = ep->address.more || ep->enabled;
	return lnx_addr_pack(&a, ep->address.raw);
}

size_t lnx_ep_hello(const struct lnx_ep *ep, uint8_t buf[LNX_HELLO_BYTES])
{
	struct lnx_rails all = { .n = 0 };
	unsigned place;
	int n = 0;

	memcpy(buf, ep->address.raw, LNX_ADDR_BYTES);
	if (lnx_likely(!ep->address.more))
		return LNX_ADDR_BYTES;
	for (place = 0; place < LNX_WIRE_RAILS_MAX; place++) {
		const struct lnx_rail *rail = at_place(ep, place);

		if (!rail || !lnx_rail_describe(rail, &all.rail[all.n]))
			continue;
		all.place[all.n++] = (uint8_t)place;
	}
	n = lnx_rails_pack(&all, buf + LNX_ADDR_BYTES);
	return LNX_ADDR_BYTES + (n > 0 ? (size_t)n : 0);
}
