/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The address of an endpoint: its identity, and those of its rails. */
#include <errno.h>
#include <string.h>

#include "core/open.h"

int lnx_ep_address(struct lnx_ep *ep)
{
	struct lnx_addr a = {
		.eid = ep->eid,
		.host = ep->domain->host,
		.has_shm = ep->shm != NULL,
		.bare = ep->bare,
	};
	unsigned i;

	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];
		struct lnx_addr_rail r = {
			.prov = rail->prov, .group = rail->group,
		};
		int place;

		rail->wire_index = LNX_WIRE_INDEX_NONE;
		if (lnx_kind_local(rail->kind))
			continue;
		if (rail->addrlen > sizeof(r.raw)) {
			a.more = true;
			continue;
		}
		r.rawlen = (uint8_t)rail->addrlen;
		memcpy(r.raw, rail->addr, rail->addrlen);
		place = lnx_addr_add(&a, &r);
		if (place >= 0)
			rail->wire_index = (uint16_t)place;
		else if (place != -ENOSPC)
			return place;
	}
	ep->moves++;
	return lnx_addr_pack(&a, ep->addr);
}
