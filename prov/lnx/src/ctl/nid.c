/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes NIDs.  See nid.h.  Called by ctl/publish.c and ctl/explain.c. */
#include "ctl/nid.h"

#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "conf/nid.h"
#include "core/open.h"
#include "core/policy.h"

const char *lnx_nid_interface(const struct lnx_rail *rail)
{
	return lnx_rail_kind_local(rail->kind) ? "" : lnx_policy_interface(rail);
}

/* The provider alone.  Domains may contain a colon, providers do not. */
static void provider(const struct lnx_rail *rail, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strcspn(rail->name, ":"), rail->name);
}

void lnx_nid_net(const struct lnx_rail *rail, char *buf, size_t size)
{
	if (!lnx_policy_net(rail, buf, size))
		provider(rail, buf, size);
}

/* The address is none that its provider has, or it has none. */
static void unknown(const struct lnx_rail *rail, const struct lnx_addr_rail *r, char *buf,
		    size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	char net[LNX_NAME_MAX];
	unsigned i;

	provider(rail, net, sizeof(net));
	lnx_out(&o, "0x");
	for (i = 0; i < r->rawlen; i++)
		lnx_out(&o, "%02x", r->raw[i]);
	lnx_out(&o, "@%s", net);
}

void lnx_nid_rail(const struct lnx_rail *rail, char *buf, size_t size)
{
	struct lnx_addr_rail r;
	struct lnx_nid nid;

	/* Shared memory has no address that tells a user anything. */
	if (lnx_rail_kind_local(rail->kind)) {
		snprintf(buf, size, "%016llx@shm", (unsigned long long)rail->ep->eid);
	} else if (!lnx_rail_describe(rail, &r) || lnx_policy_nid(rail->ep, &r, &nid)) {
		unknown(rail, &r, buf, size);
	} else {
		nid.port = 0;
		lnx_nid_print(&nid, buf, size);
	}
}

void lnx_nid_remote(const struct lnx_path *path, char *buf, size_t size)
{
	const struct lnx_rail *rail = path->rail;
	/* Rails reach those of their own group. */
	struct lnx_addr_rail r = { .prov = rail->prov, .group = rail->group };
	size_t len = sizeof(r.raw);
	struct lnx_nid nid;

	if (rail->av && !fi_av_lookup(rail->av, path->core_addr, r.raw, &len) &&
	    len <= sizeof(r.raw))
		r.rawlen = (uint8_t)len;
	if (lnx_policy_nid(rail->ep, &r, &nid))
		unknown(rail, &r, buf, size);
	else
		lnx_nid_print(&nid, buf, size);
}
