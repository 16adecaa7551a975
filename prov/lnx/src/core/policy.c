/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rules of the user of one endpoint.  See policy.h. */
#include "core/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/config.h"
#include "core/credits.h"
#include "core/open.h"
#include "core/routes.h"
#include "core/warn_once.h"
#include "prov.h"

static const struct lnx_nets no_nets;

static const struct lnx_nets *nets_of(const struct lnx_ep *ep)
{
	return ep->policy.nets ? ep->policy.nets : &no_nets;
}

/* ---- what the user wants ---- */

static int refused(const char *name, const char *text, const struct lnx_refusal *r)
{
	char shown[300];

	lnx_warn_once(true, "%s=\"%s\", character %zu: %s; lnx offers nothing until this is "
		      "mended, and another provider may be taken", name,
		      lnx_warn_printable(text, sizeof(shown), shown, sizeof(shown)), r->at + 1,
		      r->why);
	return -FI_EINVAL;
}

/* The nets of FI_LNX_NETS, or else those of the configuration. */
static int read_nets(const struct lnx_conf *conf, struct lnx_nets *nets)
{
	const struct lnx_config *config = lnx_global_config_file();
	struct lnx_refusal r = { .text = conf->nets };

	if (conf->nets)
		return lnx_nets_parse(conf->nets, nets, &r) ?
		       refused("FI_LNX_NETS", conf->nets, &r) : 0;
	if (config)
		*nets = config->nets;
	else
		memset(nets, 0, sizeof(*nets));
	return 0;
}

static int read_rules(const struct lnx_conf *conf, struct lnx_rules *rules)
{
	const struct lnx_config *config = lnx_global_config_file();
	struct lnx_refusal r = { .text = conf->udsp };
	int ret = config ? lnx_config_rules(config, rules, &r) : 0;

	if (ret == -EINVAL || ret == -ENOSPC || ret == -EALREADY) {
		lnx_warn_once(true, "FI_LNX_NETS and the rules of the configuration do "
			      "not fit together: %s", r.why);
		return -FI_EINVAL;
	}
	if (!ret && conf->udsp) {
		r = (struct lnx_refusal){ .text = conf->udsp };
		ret = lnx_rules_add_text(rules, conf->udsp, &r);
		if (ret && ret != -ENOMEM)
			return refused("FI_LNX_UDSP", conf->udsp, &r);
	}
	return ret;
}

/* A side of a rule of which no part has a net that a rail can be in: its parts, of *n; or
 * NULL. */
static const struct lnx_nid_part *undefined_side(const struct lnx_nets *nets,
						 const struct lnx_rule *rule, unsigned *n)
{
	const struct lnx_nid_part *part = rule->part;
	unsigned side, i;

	for (side = 0; side < LNX_RULE_SIDES; side++, part += *n) {
		*n = rule->n[side];
		for (i = 0; i < *n && !lnx_nid_part_defined(nets, &part[i]); i++)
			;
		if (*n && i == *n)
			return part;
	}
	return NULL;
}

/* A rule may be left over from other nets: it would never do anything. */
static void look_for_undefined(const struct lnx_conf *conf, const struct lnx_nets *nets,
			       const struct lnx_rules *rules)
{
	const struct lnx_config *config = lnx_global_config_file();
	bool replaced = conf->nets && config && config->nets.n;
	char text[LNX_RULE_TEXT_MAX], net[LNX_PATTERN_TEXT_MAX];
	struct lnx_rule_info info;
	unsigned n;
	uint32_t i;

	for (i = 0; !lnx_rules_info(rules, i, &info); i++) {
		const struct lnx_nid_part *part = undefined_side(nets, info.rule, &n);

		if (!part)
			continue;
		lnx_nid_pattern_print(part, n, net, sizeof(net));
		lnx_rule_print(info.rule, text, sizeof(text));
		lnx_warn_once(true, "the rule \"%s\" has no effect: no rail can be of \"%s\", "
			      "because %s gives no net that name%s", text, net,
			      conf->nets ? "FI_LNX_NETS" : "neither FI_LNX_NETS nor the "
			      "configuration file", replaced ? "; the nets of the "
			      "configuration file do not count beside FI_LNX_NETS" : "");
		return;
	}
}

static bool wants_rules(const struct lnx_conf *conf)
{
	const struct lnx_config *config = lnx_global_config_file();

	return conf->udsp || (config && config->n_rule);
}

int lnx_policy_check(const struct lnx_conf *conf)
{
	struct lnx_nets *nets;
	struct lnx_rules *rules;
	int ret = -FI_ENOMEM;

	if (lnx_global_config_error()) {
		lnx_warn_once(true, "%s", lnx_global_config_error());
		return -FI_EINVAL;
	}
	if (!conf->nets && !wants_rules(conf) && !lnx_routes_wanted(conf))
		return 0;
	nets = calloc(1, sizeof(*nets));
	rules = nets ? lnx_rules_create(nets) : NULL;
	if (rules)
		ret = read_nets(conf, nets);
	if (!ret)
		ret = read_rules(conf, rules);
	if (!ret)
		ret = lnx_routes_user_check(conf, nets);
	if (!ret)
		look_for_undefined(conf, nets, rules);
	if (!ret && wants_rules(conf) && lnx_conf_native(conf))
		lnx_warn_once(true, "with FI_LNX_USE_SRQ=0 or FI_LNX_PROTOCOL=direct "
			      "rules (FI_LNX_UDSP, udsp) have no effect: each message "
			      "takes the first rail that reaches the peer");
	lnx_rules_destroy(rules);
	free(nets);
	return ret;
}

/* ---- the rules of an endpoint ---- */

int lnx_ep_policy_open(struct lnx_ep *ep)
{
	const struct lnx_config *config = lnx_global_config_file();
	char unused[200];
	int ret = 0;

	lnx_policy_stale(ep);
	/* The file of a whole cluster may well have what is for gateways. */
	if (config && lnx_config_unused(config, unused, sizeof(unused)))
		lnx_warn_once(false, "the configuration file has what no endpoint uses: %s",
			      unused);
	if (ep->native)
		return 0;
	if (ep->conf->nets || (config && config->nets.n)) {
		ep->policy.nets = calloc(1, sizeof(*ep->policy.nets));
		ret = ep->policy.nets ? read_nets(ep->conf, ep->policy.nets) :
					-FI_ENOMEM;
	}
	if (!ret && wants_rules(ep->conf)) {
		ep->policy.rules = lnx_rules_create(nets_of(ep));
		ret = ep->policy.rules ? read_rules(ep->conf, ep->policy.rules) :
					 -FI_ENOMEM;
	}
	if (ret)
		lnx_ep_policy_close(ep);
	return ret;
}

void lnx_ep_policy_close(struct lnx_ep *ep)
{
	lnx_rules_destroy(ep->policy.rules);
	free(ep->policy.nets);
	ep->policy.rules = NULL;
	ep->policy.nets = NULL;
}

int lnx_policy_nid(const struct lnx_ep *ep, const struct lnx_addr_rail *rail,
		   struct lnx_nid *nid)
{
	return lnx_nid_of(nets_of(ep), rail, nid);
}

static void set_rails(struct lnx_ep *ep)
{
	struct lnx_nid nid[LNX_RAILS_MAX];
	struct lnx_addr_rail r;
	unsigned i;

	memset(nid, 0, sizeof(nid));
	for (i = 0; i < ep->nnet; i++)
		if (lnx_rail_describe(ep->rail[ep->nrail - ep->nnet + i], &r))
			(void)lnx_policy_nid(ep, &r, &nid[i]);
	lnx_rules_rails(ep->policy.rules, nid, ep->nnet);
}

struct lnx_rules *lnx_policy_rules(struct lnx_ep *ep)
{
	if (!ep->policy.rules) {
		ep->policy.rules = lnx_rules_create(nets_of(ep));
		if (ep->policy.rules) {
			lnx_rules_routing(ep->policy.rules, ep->policy.gateways != NULL);
			set_rails(ep);
		}
	}
	return ep->policy.rules;
}

/* Do our rails fit the nets? */
static int check_rails(const struct lnx_ep *ep)
{
	struct lnx_addr_rail r[LNX_RAILS_MAX];
	struct lnx_refusal why = { 0 };
	unsigned i, n = 0;

	if (!ep->policy.nets)
		return 0;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		n += lnx_rail_describe(ep->rail[i], &r[n]);
	if (!lnx_nets_check(ep->policy.nets, r, n, &why))
		return 0;
	lnx_warn_once(true, "FI_LNX_NETS or nets of the configuration: %s", why.why);
	return -FI_EINVAL;
}

int lnx_policy_rails(struct lnx_ep *ep)
{
	int ret = ep->native ? 0 : check_rails(ep);
	uint32_t generation, i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		lnx_credits_rail(ep->rail[i]);
	if (!ep->policy.rules)
		return ret;
	generation = lnx_rules_generation(ep->policy.rules);
	set_rails(ep);
	if (lnx_rules_generation(ep->policy.rules) != generation && ep->enabled) {
		lnx_policy_stale(ep);
		ep->policy.sweeping = true;
		lnx_ep_due(ep, LNX_DUE_POLICY, 0);
	}
	return ret;
}

bool lnx_policy_net(const struct lnx_rail *rail, char *buf, size_t size)
{
	struct lnx_addr_rail r;
	struct lnx_nid nid;

	if (!lnx_rail_describe(rail, &r) || lnx_policy_nid(rail->ep, &r, &nid))
		return false;
	if (nid.number)
		snprintf(buf, size, "%s%u", nid.net, nid.number);
	else
		snprintf(buf, size, "%s", nid.net);
	return true;
}

const char *lnx_policy_interface(const struct lnx_rail *rail)
{
	const char *domain = strchr(rail->name, ':');

	return domain ? domain + 1 : "";
}

unsigned lnx_policy_index(const struct lnx_ep *ep, const struct lnx_rail *rail)
{
	unsigned i;

	for (i = 0; i < ep->nnet; i++)
		if (ep->rail[ep->nrail - ep->nnet + i] == rail->below)
			return i;
	return LNX_RULE_RAILS;
}

/* ---- peers ---- */

struct lnx_peer_choice *lnx_policy_of(struct lnx_peer *peer)
{
	if (!peer->choice) {
		peer->choice = calloc(1, sizeof(*peer->choice));
		if (!peer->choice)
			return NULL;
		peer->choice->peer = peer;
	}
	return peer->choice;
}

unsigned lnx_policy_nids(const struct lnx_peer *peer, const struct lnx_rails *r,
			 struct lnx_nid nid[LNX_WIRE_RAILS_MAX])
{
	unsigned i, n = 0;

	memset(nid, 0, LNX_WIRE_RAILS_MAX * sizeof(*nid));
	for (i = 0; i < r->n; i++) {
		if (lnx_policy_nid(peer->ep, &r->rail[i], &nid[r->place[i]]))
			memset(&nid[r->place[i]], 0, sizeof(*nid));
		n = r->place[i] + 1u;
	}
	return n;
}

void lnx_policy_peer(struct lnx_peer *peer, const struct lnx_rails *r, bool again)
{
	struct lnx_rules *rules = peer->ep->policy.rules;
	struct lnx_nid nid[LNX_WIRE_RAILS_MAX];
	struct lnx_rails known;

	if (lnx_likely(!rules) || peer->ep->native)
		return;
	if (!lnx_rules_stale(rules, lnx_policy_table(peer)) &&
	    !(again && lnx_policy_table(peer)))
		return;
	if (!r && !lnx_peer_rails(peer, &known))
		return;
	/* Without memory it stays stale, and its next use tries again. */
	if (lnx_policy_of(peer) &&
	    !lnx_rules_peer(rules, &peer->choice->table, nid,
			    lnx_policy_nids(peer, r ? r : &known, nid)))
		peer->choice->generation = 0;
}

static void *next_peer(void *arg, void *at)
{
	struct lnx_ep *ep = arg;
	struct lnx_peer *peer = at;
	struct lnx_node *n = peer ? peer->all_link.next : ep->peers.all.next;

	return n == &ep->peers.all ? NULL : lnx_list_entry(n, struct lnx_peer, all_link);
}

static unsigned peer_nids(void *arg, void *at, struct lnx_nid *nid, unsigned max)
{
	struct lnx_nid all[LNX_WIRE_RAILS_MAX];
	struct lnx_peer *peer = at;
	struct lnx_rails r;
	unsigned n;

	(void)arg;
	if (!peer->npath || !lnx_peer_open(peer) || !lnx_policy_of(peer) ||
	    !lnx_peer_rails(peer, &r))
		return 0;
	n = LNX_MIN(lnx_policy_nids(peer, &r, all), max);
	memcpy(nid, all, n * sizeof(*nid));
	return n;
}

static struct lnx_rule_peer **peer_table(void *arg, void *at)
{
	static struct lnx_rule_peer *none;
	struct lnx_peer *peer = at;

	(void)arg;
	none = NULL;
	/* A peer that is not in use needs none. */
	return lnx_likely(peer->npath != 0) && lnx_policy_of(peer) ? &peer->choice->table :
								      &none;
}

struct lnx_rules_peers lnx_policy_peers(struct lnx_ep *ep)
{
	return (struct lnx_rules_peers){
		.arg = ep, .next = next_peer, .nids = peer_nids, .table = peer_table,
	};
}

void lnx_policy_leave(struct lnx_peer *peer)
{
	struct lnx_ep *ep = peer->ep;
	struct lnx_rules_peers peers = lnx_policy_peers(ep);

	lnx_rules_sweep_forget(&ep->policy.sweep, &peers, peer);
	if (peer->choice && peer->choice->table)
		lnx_rules_leave(ep->policy.rules, peer->choice->table);
	free(peer->choice);
	peer->choice = NULL;
}
