/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The limits of credits for frames.  See credits.h. */
#include "core/credits.h"

#include <string.h>

#include "conf/config.h"
#include "core/policy.h"
#include "prov.h"

/* ---- the configuration file ---- */

static bool has(const struct lnx_config_ni *ni, const char *interface)
{
	unsigned i;

	for (i = 0; i < ni->n; i++)
		if (!strcmp(ni->interface[i], interface))
			return true;
	return false;
}

static const struct lnx_config_ni *of_file(const struct lnx_rail *rail)
{
	const struct lnx_config *c = lnx_global_config_file();
	const char *interface = lnx_policy_interface(rail);
	char net[LNX_NAME_MAX];
	unsigned i, k;

	if (!c || !c->n_net || !lnx_policy_net(rail, net, sizeof(net)))
		return NULL;
	for (i = 0; i < c->n_net; i++)
		for (k = 0; !strcmp(c->net[i].net, net) && k < c->net[i].n; k++)
			if (has(&c->net[i].ni[k], interface))
				return &c->net[i].ni[k];
	return NULL;
}

LNX_COLD struct lnx_rail_credits lnx_credits_own(const struct lnx_rail *rail)
{
	const struct lnx_config_ni *ni;

	if (rail->has_own_credits)
		return rail->own_credits;
	ni = of_file(rail);
	return (struct lnx_rail_credits){
		.credits = ni ? ni->credits : LNX_CONFIG_UNSET,
		.peer_credits = ni ? ni->peer_credits : LNX_CONFIG_UNSET,
	};
}

LNX_COLD void lnx_credits_tune(struct lnx_rail *rail, struct lnx_rail_credits own)
{
	rail->own_credits = own;
	rail->has_own_credits = true;
}

/* ---- limits ---- */

void lnx_credits_rail(struct lnx_rail *rail)
{
	const struct lnx_conf *conf = rail->ep->conf;
	struct lnx_rail_credits own = lnx_credits_own(rail);

	rail->credits_max = own.credits != LNX_CONFIG_UNSET ? own.credits :
							      (uint32_t)conf->credits;
	rail->peer_credits_max = own.peer_credits != LNX_CONFIG_UNSET ?
				 own.peer_credits : (uint32_t)conf->peer_credits;
	rail->ep->policy.limited |= rail->credits_max || rail->peer_credits_max;
	rail->credits_fast = lnx_credits_fast(rail);
}

LNX_COLD void lnx_credits_changed(struct lnx_ep *ep)
{
	struct lnx_node *n, *tmp;
	uint32_t i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		lnx_credits_rail(ep->rail[i]);
	lnx_list_foreach(&ep->peers.all, n, tmp) {
		struct lnx_peer *peer = lnx_list_entry(n, struct lnx_peer, all_link);

		if (peer->chan.nqueued)
			lnx_peer_pump(peer);
	}
	ep->work |= LNX_WORK_CREDITS;
}
