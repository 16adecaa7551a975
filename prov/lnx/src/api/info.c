/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo.  Called by libfabric; gets rails from core/resolve.c and their
 * capabilities from core/caps.c.
 */
#include "api/info.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "rail/faults.h"
#include "core/caps.h"
#include "core/catalog.h"
#include "core/job_key.h"
#include "core/policy.h"
#include "core/warn_once.h"
#include "core/open.h"
#include "obj/peer_abi.h"
#include "core/resolve.h"
#include "prov.h"
#include "wire/addr.h"

#define FABRIC_NAME	"lnx"

/* One call of lnx_info_get. */
struct request {
	uint32_t version;
	const struct fi_info *hints;	/* may be NULL */
	const char *domain;		/* the name in them, or NULL */
	struct addrinfo *local;		/* FI_SOURCE's address, or NULL */

	struct fi_info *first;
	struct fi_info **end;
	const char *why;		/* why the last candidate did not fit */
};

/* ---- local address ---- */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (!a || !b || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(
			&((const struct sockaddr_in6 *)a)->sin6_addr,
			&((const struct sockaddr_in6 *)b)->sin6_addr);
	return false;
}

/* The rail's own address, if it is an internet address. */
static const struct sockaddr *rail_address(const struct lnx_rail_spec *rail)
{
	const struct fi_info *info = rail->info;

	if (!info->src_addr || (info->addr_format != FI_SOCKADDR &&
				info->addr_format != FI_SOCKADDR_IN &&
				info->addr_format != FI_SOCKADDR_IN6))
		return NULL;
	return info->src_addr;
}

/*
 * Does the rail use the interface that has this address?  The interface may have
 * several, and the rail use another one.
 */
static bool rail_is_at(const struct lnx_rail_spec *rail,
		       const struct ifaddrs *ifs, const struct addrinfo *at)
{
	const struct ifaddrs *i;

	for (; at; at = at->ai_next) {
		if (same_address(rail_address(rail), at->ai_addr))
			return true;
		if (!rail_address(rail))
			continue;
		for (i = ifs; i; i = i->ifa_next)
			if (same_address(i->ifa_addr, at->ai_addr) &&
			    !strcmp(i->ifa_name, rail->dom))
				return true;
	}
	return false;
}

/* Keep shm and the rails at the requested address; false if there is none. */
static bool restrict_to_local(struct lnx_link_rails *lr,
			      const struct addrinfo *at)
{
	struct ifaddrs *ifs = NULL;
	unsigned kept = 0, net = 0;

	if (getifaddrs(&ifs))
		ifs = NULL;
	for (unsigned i = 0; i < lr->nrail; i++) {
		if (!lnx_rail_kind_local(lr->rail[i].kind)) {
			if (!rail_is_at(&lr->rail[i], ifs, at))
				continue;
			net++;
		}
		lr->rail[kept++] = lr->rail[i];
	}
	lr->nrail = kept;
	if (ifs)
		freeifaddrs(ifs);
	return net > 0;
}

static int read_local(struct request *req, const char *node, uint64_t flags)
{
	struct addrinfo want = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST,
	};

	if (!node || !(flags & FI_SOURCE))
		return 0;
	if (!getaddrinfo(node, NULL, &want, &req->local))
		return 0;
	want.ai_flags = 0;
	if (!(flags & FI_NUMERICHOST) &&
	    !getaddrinfo(node, NULL, &want, &req->local))
		return 0;
	LNX_INFO(FI_LOG_FABRIC, "source address \"%s\" is not valid\n", node);
	return -FI_ENODATA;
}

/* ---- one entry ---- */

/* The nic belongs to its fi_info; move it out of a copy. */
static int forward_nic(struct fi_info *info, const struct lnx_link_rails *lr)
{
	struct fi_info *copy;

	for (unsigned i = 0; i < lr->nrail; i++) {
		if (lnx_rail_kind_local(lr->rail[i].kind) ||
		    !lr->rail[i].info->nic)
			continue;
		copy = fi_dupinfo(lr->rail[i].info);
		if (!copy)
			return -FI_ENOMEM;
		info->nic = copy->nic;
		copy->nic = NULL;
		fi_freeinfo(copy);
		return 0;
	}
	return 0;
}

/* A destination is accepted only if it was made by fi_getname somewhere. */
static int take_dest(struct fi_info *info, const struct fi_info *hints)
{
	struct lnx_addr addr;
	char why[128];

	if (!hints || !hints->dest_addr)
		return 0;
	if (lnx_addr_unpack(&addr, hints->dest_addr, hints->dest_addrlen, why,
			    sizeof(why))) {
		LNX_INFO(FI_LOG_FABRIC, "hints: dest_addr: %s\n", why);
		return -FI_ENODATA;
	}
	info->dest_addr = malloc(hints->dest_addrlen);
	if (!info->dest_addr)
		return -FI_ENOMEM;
	memcpy(info->dest_addr, hints->dest_addr, hints->dest_addrlen);
	info->dest_addrlen = hints->dest_addrlen;
	return 0;
}

/* The address of an endpoint over these rails, before it is opened. */
static struct lnx_addr source_of(const struct lnx_link_rails *lr)
{
	struct lnx_addr a = { .host = lnx_host_identity(lnx_global_config()) };
	unsigned i;

	for (i = 0; i < lr->nrail; i++) {
		if (lnx_rail_kind_local(lr->rail[i].kind))
			a.has_shm = true;
		else
			a.more = true;
		if (lnx_rail_kind_native(lr->rail[i].kind))
			a.native = true;
	}
	return a;
}

/* Has the link a rail for that rail of the address? */
static bool has_rail(const struct lnx_link_rails *lr,
		     const struct lnx_addr_rail *r)
{
	unsigned i;

	for (i = 0; i < lr->nrail; i++)
		if (lr->rail[i].prov_id == r->prov &&
		    lr->rail[i].group == r->group)
			return true;
	return false;
}

/* Could an endpoint over these rails have that address?  NULL, or what does not fit. */
static const char *is_elsewhere(const struct lnx_addr *ask,
				const struct lnx_addr *own,
				const struct lnx_link_rails *lr)
{
	unsigned i;

	if (ask->host != own->host)
		return "src_addr: of another host";
	if (ask->has_shm != own->has_shm)
		return "src_addr: shared memory";
	if (ask->native != own->native)
		return "src_addr: FI_LNX_USE_SRQ";
	if (!ask->eid)
		return NULL;
	for (i = 0; i < ask->nrail; i++)
		if (!has_rail(lr, &ask->rail[i]))
			return "src_addr: its rails";
	return !ask->nrail && !ask->more && own->more ? "src_addr: its rails" :
							NULL;
}

/*
 * The source address: of no endpoint, since each one opened from this entry gets its
 * own; or the one in the hints, which the endpoint opened from it will have
 * (ep_open.c).
 */
static int take_source(struct request *req, struct fi_info *info,
		       const struct lnx_link_rails *lr)
{
	const struct fi_info *hints = req->hints;
	struct lnx_addr own = source_of(lr), ask;
	char why[160];

	info->src_addr = malloc(LNX_ADDR_BYTES);
	if (!info->src_addr)
		return -FI_ENOMEM;
	info->src_addrlen = LNX_ADDR_BYTES;
	if (!hints || !hints->src_addr)
		return lnx_addr_source_pack(&own, info->src_addr);
	if (lnx_addr_source_unpack(&ask, hints->src_addr, hints->src_addrlen,
				   why, sizeof(why))) {
		LNX_INFO(FI_LOG_FABRIC, "hints: src_addr: %s\n", why);
		return -FI_ENODATA;
	}
	req->why = is_elsewhere(&ask, &own, lr);
	if (req->why) {
		LNX_INFO(FI_LOG_FABRIC, "link \"%s\" does not fit the hints: "
			 "%s\n", lr->name, req->why);
		return -FI_ENODATA;
	}
	memcpy(info->src_addr, hints->src_addr, LNX_ADDR_BYTES);
	return 0;
}

static bool is_there(const struct request *req, const char *domain)
{
	const struct fi_info *info;

	for (info = req->first; info; info = info->next)
		if (!strcmp(info->domain_attr->name, domain))
			return true;
	return false;
}

static const char *fabric_hint(const struct fi_info *hints)
{
	return hints && hints->fabric_attr ? hints->fabric_attr->name : NULL;
}

static bool fabric_is(const struct request *req, const char *name,
		      const struct lnx_link_rails *lr)
{
	size_t n = sizeof(FABRIC_NAME) - 1;

	if (strncmp(name, FABRIC_NAME, n))
		return false;
	if (!name[n])
		return req->domain || !req->first;
	return name[n] == ':' && !strcmp(name + n + 1, lr->name);
}

/*
 * The first entry has fabric "lnx", and every other one a fabric of its own: Open MPI
 * distributes similar entries of one fabric over its ranks, as if they were NICs, and
 * these are not meant for that.  An application that has an entry may ask for it again.
 */
static char *fabric_name(const struct request *req,
			 const struct lnx_link_rails *lr)
{
	const char *hint = fabric_hint(req->hints);
	char *name;

	if (hint || !req->first)
		return strdup(hint ? hint : FABRIC_NAME);
	return asprintf(&name, FABRIC_NAME ":%s", lr->name) < 0 ? NULL : name;
}

/* Append the entry for these rails, if it is wanted.  0 also if it is not. */
static int offer(struct request *req, const struct lnx_link_rails *lr)
{
	const char *fabric = fabric_hint(req->hints);
	struct lnx_link_rails *hmem = NULL;
	struct fi_info *info;
	int ret;

	if ((req->domain && strcmp(req->domain, lr->name)) ||
	    (fabric && !fabric_is(req, fabric, lr)) || is_there(req, lr->name))
		return 0;

	/* Its rails are native: a key could protect nothing. */
	if (req->hints && (req->hints->caps & FI_HMEM) &&
	    !lnx_job_key_wanted(lnx_global_config()))
		hmem = lnx_resolve_rails_hmem(lr);
	info = lnx_caps_offer(hmem ? hmem : lr);
	lnx_resolve_rails_free(hmem);
	if (!info)
		return -FI_ENOMEM;
	ret = lnx_caps_fit(info, req->version, req->hints, &req->why);
	if (ret) {
		LNX_INFO(FI_LOG_FABRIC, "link \"%s\" does not fit the hints: "
			 "%s\n", lr->name, req->why);
		fi_freeinfo(info);
		return 0;
	}
	info->fabric_attr->name = fabric_name(req, lr);
	info->domain_attr->name = strdup(lr->name);
	info->fabric_attr->api_version = req->version;
	info->fabric_attr->prov_version = lnx_prov.version;
	ret = info->fabric_attr->name && info->domain_attr->name ?
	      0 : -FI_ENOMEM;
	if (!ret)
		ret = forward_nic(info, lr);
	if (!ret)
		ret = take_dest(info, req->hints);
	if (!ret)
		ret = take_source(req, info, lr);
	if (ret) {
		fi_freeinfo(info);
		return ret == -FI_ENODATA ? 0 : ret;
	}
	*req->end = info;
	req->end = &info->next;
	return 0;
}

/* The rails of lr for one network rail: it and shm.  Borrowed. */
static int offer_single(struct request *req, const struct lnx_link_rails *lr,
			unsigned net)
{
	struct lnx_link_rails *one = calloc(1, sizeof(*one));
	int ret;

	if (!one)
		return -FI_ENOMEM;
	for (unsigned i = 0; i < lr->nrail; i++)
		if (i == net || lnx_rail_kind_local(lr->rail[i].kind))
			one->rail[one->nrail++] = lr->rail[i];
	ret = lnx_resolve_rails_name(one);
	if (!ret)
		ret = offer(req, one);
	free(one);
	return ret;
}

/* The link as a whole, then each of its network domains. */
static int offer_link(struct request *req, const struct lnx_link_rails *all)
{
	struct lnx_link_rails *lr = malloc(sizeof(*lr));
	unsigned net = 0;
	int ret = 0;

	if (!lr)
		return -FI_ENOMEM;
	*lr = *all;			/* the infos stay with `all` */
	if (req->local) {
		if (!restrict_to_local(lr, req->local)) {
			LNX_INFO(FI_LOG_FABRIC, "link \"%s\" has no rail at "
				 "the source address\n", all->name);
			goto out;
		}
		ret = lnx_resolve_rails_name(lr);
		if (ret)
			goto out;
	}
	ret = offer(req, lr);
	for (unsigned i = 0; i < lr->nrail; i++)
		net += !lnx_rail_kind_local(lr->rail[i].kind);
	for (unsigned i = 0; !ret && net > 1 && i < lr->nrail; i++)
		if (!lnx_rail_kind_local(lr->rail[i].kind))
			ret = offer_single(req, lr, i);
out:
	free(lr);
	return ret;
}

/* ---- which links ---- */

static int offer_text(struct request *req, const char *text)
{
	struct lnx_links *links = malloc(sizeof(*links));
	struct lnx_link_rails *lr;
	char why[200], shown[300];
	int ret = 0, first = 0;
	size_t at;

	if (!links)
		return -FI_ENOMEM;
	if (lnx_links_parse(text, links, &at, why, sizeof(why))) {
		lnx_warn_once(true,
			      "FI_LNX_PROV_LINKS=\"%s\", character %zu: %s",
			      lnx_warn_printable(text, strlen(text), shown,
						 sizeof(shown)), at + 1, why);
		free(links);
		return -FI_EINVAL;
	}
	for (unsigned i = 0; !ret && i < links->nlink; i++) {
		/* A link that is not possible was warned about; the user wrote the
		 * others too. */
		lr = lnx_resolve(&links->link[i], text, &ret);
		if (lr) {
			ret = offer_link(req, lr);
			lnx_resolve_rails_free(lr);
		} else if (ret != -FI_ENOMEM) {
			first = first ? first : ret;
			ret = 0;
		}
	}
	free(links);
	return ret ? ret : first;
}

static int offer_named(struct request *req)
{
	struct lnx_link_rails *lr;
	char text[LNX_LINK_TEXT_MAX];
	int ret;

	if (req->domain) {
		lr = lnx_resolve_name(req->domain, &ret);
	} else {
		ret = lnx_resolve_default(text, sizeof(text));
		if (ret)
			return ret;
		lr = lnx_resolve_name(text, &ret);
	}
	if (!lr)
		return ret;
	ret = offer_link(req, lr);
	lnx_resolve_rails_free(lr);
	return ret;
}

/* A name from another process may need what is forbidden here. */
static void explain_no_shm(const struct request *req)
{
	struct lnx_links *links;
	char shown[300];
	size_t at;

	if (!lnx_global_config()->disable_shm || !req->domain)
		return;
	links = malloc(sizeof(*links));
	if (!links)
		return;
	if (!lnx_links_parse(req->domain, links, &at, NULL, 0) &&
	    links->nlink == 1)
		for (unsigned i = 0; i < links->link[0].npart; i++)
			if (!strcasecmp(links->link[0].part[i].prov, "shm"))
				lnx_warn_once(true,
					      "domain \"%s\": FI_LNX_DISABLE_SHM "
					      "leaves shm out, and with it out "
					      "of the names of domains; ask for "
					      "the name without shm, or unset "
					      "the variable",
					      lnx_warn_printable(req->domain,
								 strlen(req->domain), shown,
								 sizeof(shown)));
	free(links);
}

static const char *prov_hint(const struct fi_info *hints)
{
	return hints && hints->fabric_attr ? hints->fabric_attr->prov_name :
					     NULL;
}

/* Hints that exclude us whatever the link. */
static bool is_for_others(const struct fi_info *hints)
{
	const char *prov = prov_hint(hints);

	if (!hints)
		return false;
	/* "^tcp" excludes other providers and not us. */
	if (prov && *prov != '^' && strcasecmp(prov, lnx_prov.name))
		return true;
	if (hints->fabric_attr && hints->fabric_attr->name &&
	    strncmp(hints->fabric_attr->name, FABRIC_NAME,
		    sizeof(FABRIC_NAME) - 1))
		return true;
	return hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	       hints->ep_attr->type != FI_EP_RDM;
}

int lnx_info_get(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info)
{
	struct request req = { .version = version, .hints = hints };
	const char *links = lnx_global_config()->prov_links;
	const char *prov = prov_hint(hints);
	int ret;

	*info = NULL;
	req.end = &req.first;
	if (lnx_catalog_busy() || is_for_others(hints))
		return -FI_ENODATA;
	if (!links && !lnx_global_named_in_filter() &&
	    !(prov && !strcasecmp(prov, lnx_prov.name)))
		return -FI_ENODATA;
	if (lnx_peer_abi_check()) {
		lnx_warn_once(links != NULL, "%s", lnx_peer_abi_why());
		return -FI_ENODATA;
	}
	ret = lnx_faults_check(lnx_global_config());
	if (!ret)
		ret = lnx_policy_check(lnx_global_config());
	if (!ret)
		ret = lnx_job_key_check(lnx_global_config());
	if (ret)
		return ret;
	if (hints && hints->domain_attr)
		req.domain = hints->domain_attr->name;
	if ((node || service) && !(flags & FI_SOURCE))
		LNX_INFO(FI_LOG_FABRIC, "node and service are not used: "
			 "addresses of peers come from fi_getname\n");

	ret = read_local(&req, node, flags);
	if (!ret)
		ret = links ? offer_text(&req, links) : offer_named(&req);
	if (req.local)
		freeaddrinfo(req.local);
	if (!ret && !req.first)
		explain_no_shm(&req);
	if (ret == -FI_ENOMEM || !req.first) {
		fi_freeinfo(req.first);
		return ret ? ret : -FI_ENODATA;
	}
	*info = req.first;
	return 0;
}
