/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds interfaces that become rails while a link is open.  See hotplug.h. */
#include "core/hotplug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/catalog.h"
#include "os/netwatch.h"
#include "core/resolve.h"
#include "prov.h"

/* ---- which links can grow ---- */

static bool has(const struct lnx_link_rails *lr, const char *prov,
		const char *dom)
{
	unsigned i;

	for (i = 0; i < lr->nrail; i++)
		if (!strcasecmp(lr->rail[i].prov, prov) &&
		    !strcmp(lr->rail[i].dom, dom))
			return true;
	return false;
}

/* The domains of a part that names none; -1: lr does not have all of them. */
static int all_of(const struct lnx_link_rails *lr, const char *prov)
{
	struct lnx_catalog *cat = malloc(sizeof(*cat));
	char why[128];
	unsigned d;
	int n = 0;

	if (!cat)
		return -1;
	if (lnx_catalog_read(cat, prov, why, sizeof(why)))
		n = -1;
	for (d = 0; n >= 0 && d < cat->ndom; d++)
		if (lnx_catalog_meant(cat, d))
			n = has(lr, prov, cat->dom[d].info->domain_attr->name) ?
			    n + 1 : -1;
	lnx_catalog_free(cat);
	free(cat);
	return n;
}

/* Has lr all rails that the link means? */
static bool is_whole(const struct lnx_link_rails *lr,
		     const struct lnx_link *link)
{
	unsigned i, d, rails = 0;
	int n;

	for (i = 0; i < link->npart; i++) {
		const struct lnx_link_part *part = &link->part[i];

		if (!strcasecmp(part->prov, "shm") &&
		    lnx_global_config()->disable_shm)
			continue;
		for (d = 0; d < part->ndom; d++)
			if (!has(lr, part->prov, part->dom[d]))
				return false;
		if (!strcasecmp(part->prov, "shm")) {
			if (!lr->nrail || !lnx_rail_kind_local(lr->rail[0].kind))
				return false;
			rails++;
			continue;
		}
		n = part->ndom ? (int)part->ndom : all_of(lr, part->prov);
		if (n < 0)
			return false;
		rails += (unsigned)n;
	}
	return rails == lr->nrail;
}

static void mark(struct lnx_link_rails *lr, const struct lnx_link *link)
{
	unsigned i;

	for (i = 0; i < link->npart; i++)
		if (!link->part[i].ndom &&
		    strcasecmp(link->part[i].prov, "shm"))
			snprintf(lr->open[lr->nopen++], LNX_NAME_MAX, "%s",
				 link->part[i].prov);
}

void lnx_hotplug_mark(struct lnx_link_rails *lr)
{
	const char *text = lnx_global_config()->prov_links;
	struct lnx_links *links = malloc(sizeof(*links));
	char def[LNX_LINK_TEXT_MAX];
	unsigned i;

	if (links && (!text || !*text)) {
		if (lnx_resolve_default(def, sizeof(def))) {
			free(links);
			return;
		}
		text = def;
	}
	if (!links || lnx_links_parse(text, links, NULL, NULL, 0)) {
		free(links);
		return;
	}
	for (i = 0; i < links->nlink; i++) {
		if (!is_whole(lr, &links->link[i]))
			continue;
		mark(lr, &links->link[i]);
		break;
	}
	free(links);
}

/* ---- what they gain ---- */

static struct lnx_net_addr addr_of(const struct fi_info *info)
{
	return lnx_netmsg_addr_of(info->src_addr, info->src_addr ?
				  info->src_addrlen : 0, NULL);
}

/* A rail of ep over the same provider: a new rail must be able to do as much. */
static const struct lnx_rail *sibling(const struct lnx_ep *ep, uint8_t prov)
{
	unsigned i;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i]->prov == prov)
			return ep->rail[i];
	return NULL;
}

static bool as_good(const struct lnx_rail *old, enum lnx_rail_kind kind,
		    const struct fi_info *new)
{
	const struct fi_info *info = old->info;

	return old->kind == kind &&
	       info->domain_attr->mr_mode == new->domain_attr->mr_mode &&
	       info->ep_attr->max_msg_size <= new->ep_attr->max_msg_size &&
	       info->tx_attr->inject_size <= new->tx_attr->inject_size &&
	       info->tx_attr->iov_limit <= new->tx_attr->iov_limit &&
	       info->rx_attr->iov_limit <= new->rx_attr->iov_limit &&
	       info->tx_attr->rma_iov_limit <= new->tx_attr->rma_iov_limit &&
	       info->domain_attr->cq_data_size <=
	       new->domain_attr->cq_data_size;
}

/*
 * False: it is a rail of ep.  *was: a rail on the same interface, which has lost its
 * own address.
 */
static bool is_new(const struct lnx_ep *ep, uint8_t prov,
		   const struct fi_info *info, struct lnx_rail **was)
{
	struct lnx_net_addr addr = addr_of(info), other;
	unsigned i;

	*was = NULL;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (rail->prov != prov || strcmp(rail->info->domain_attr->name,
						 info->domain_attr->name))
			continue;
		other = lnx_netmsg_addr_of(rail->addr, rail->addrlen, NULL);
		if (!rail->link_down || !addr.family || !other.family ||
		    lnx_netmsg_addr_equal(&addr, &other))
			return false;
		*was = rail;
	}
	return true;
}

static unsigned find_of(const struct lnx_ep *ep, const char *prov, bool open,
			struct lnx_hotplug_rail *out, unsigned max)
{
	uint8_t id = lnx_addr_prov_id(prov);
	const struct lnx_rail *old = sibling(ep, id);
	struct lnx_catalog *cat = malloc(sizeof(*cat));
	unsigned d, n = 0;
	char why[128];

	if (!cat || !old || lnx_catalog_read(cat, prov, why, sizeof(why))) {
		if (cat && old)
			lnx_catalog_free(cat);
		free(cat);
		return 0;
	}
	for (d = 0; d < cat->ndom && n < max; d++) {
		struct lnx_rail *was;

		if (!lnx_catalog_meant(cat, d) ||
		    !as_good(old, cat->kind, cat->dom[d].info) ||
		    !is_new(ep, id, cat->dom[d].info, &was) ||
		    (!open && !was) ||
		    lnx_rail_spec_make(&out[n].spec, cat, &cat->dom[d]))
			continue;
		out[n].was = was && was->group == out[n].spec.group ? was :
								       NULL;
		n++;
	}
	lnx_catalog_free(cat);
	free(cat);
	return n;
}

unsigned lnx_hotplug_find(const struct lnx_ep *ep, struct lnx_hotplug_rail *out,
		       unsigned max)
{
	const struct lnx_link_rails *lr = ep->domain->rails;
	unsigned i, k, n = 0;

	for (i = 0; i < lr->nrail; i++) {
		const char *prov = lr->rail[i].prov;
		bool open = false;

		if (lnx_rail_kind_local(lr->rail[i].kind))
			continue;
		for (k = 0; k < i; k++)
			if (!strcmp(lr->rail[k].prov, prov))
				break;
		if (k < i)
			continue;
		for (k = 0; k < lr->nopen; k++)
			open |= !strcasecmp(lr->open[k], prov);
		n += find_of(ep, prov, open, out + n, max - n);
	}
	return n;
}
