/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What one core provider offers, read with fi_getinfo.  See catalog.h. */
#include "core/catalog.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "prov.h"
#include "wire/addr.h"

/* The API version that we use with cores, whatever the application uses with us. */
#define CORE_API	FI_VERSION(2, 1)

static LNX_THREAD unsigned busy;

bool lnx_catalog_busy(void)
{
	return busy > 0;
}

static int ask(const struct fi_info *hints, struct fi_info **list)
{
	int ret;

	*list = NULL;
	busy++;
	ret = fi_getinfo(CORE_API, NULL, NULL, LNX_GETINFO_HIDDEN, hints,
			 list);
	busy--;
	return ret;
}

static uint64_t kind_caps(enum lnx_rail_kind kind)
{
	switch (kind) {
	case LNX_RAIL_DIRECT:
		return FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT |
		       FI_PEER | FI_SOURCE | FI_DIRECTED_RECV;
	case LNX_RAIL_PEER:
		/* Without the last two, ofi_rxm knows no source address. */
		return FI_MSG | FI_RMA | FI_PEER | FI_SOURCE |
		       FI_DIRECTED_RECV;
	case LNX_RAIL_NATIVE_LOCAL:
	case LNX_RAIL_NATIVE:
		return FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	case LNX_RAIL_PLAIN:
		break;
	}
	return FI_MSG | FI_RMA;
}

/*
 * mode stays 0: among "all modes" there is a private one that makes ofi_rxm
 * bypass our receive queue.  shm must not get FI_MR_VIRT_ADDR: it would then
 * write into its peers' memory without looking at the key.
 */
static struct fi_info *kind_hints(enum lnx_rail_kind kind, const char *prov)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(prov);
	if (!hints->fabric_attr->prov_name) {
		fi_freeinfo(hints);
		return NULL;
	}
	hints->caps = kind_caps(kind);
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	/*
	 * Not FI_MR_LOCAL: we have no descriptors for buffers.  Then ofi_rxm makes its
	 * own; a core that cannot is refused here and not at run time.
	 */
	if (!lnx_rail_kind_local(kind))
		hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR |
					      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	/* The one core that registers memory per endpoint. */
	if (!strcasecmp(prov, "cxi"))
		hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	if (lnx_rail_kind_native(kind))
		return hints;		/* we offer its order */
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	return hints;
}

static bool is_prov(const struct fi_info *info, const char *prov)
{
	return info->fabric_attr && info->fabric_attr->prov_name &&
	       !strcasecmp(info->fabric_attr->prov_name, prov);
}

/* "tcp" also brings "tcp;ofi_rxm": keep the exact name only. */
static void keep_prov(struct fi_info **list, const char *prov,
		      uint64_t must_have)
{
	struct fi_info **at = list, *info;

	while ((info = *at)) {
		if (is_prov(info, prov) &&
		    (info->caps & must_have) == must_have &&
		    info->domain_attr->name && info->fabric_attr->name) {
			at = &info->next;
			continue;
		}
		*at = info->next;
		info->next = NULL;
		fi_freeinfo(info);
	}
}

/*
 * A native rail gets remote keys and addresses unchanged from the application: where
 * the core picks its own keys, there is no RMA.
 */
static int ask_bare(struct fi_info *hints, struct fi_info **list)
{
	int mr_mode = hints->domain_attr->mr_mode, ret;

	hints->domain_attr->mr_mode &= FI_MR_ALLOCATED | FI_MR_ENDPOINT |
				       FI_MR_HMEM;
	hints->caps |= FI_RMA;
	ret = ask(hints, list);
	hints->domain_attr->mr_mode = mr_mode;
	hints->caps &= ~FI_RMA;
	return ret == -FI_ENODATA ? ask(hints, list) : ret;
}

/* -FI_ENODATA when the provider offers nothing of that kind. */
static int read_kind(struct lnx_catalog *cat, enum lnx_rail_kind kind,
		     const char *prov)
{
	struct fi_info *hints = kind_hints(kind, prov);
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = lnx_rail_kind_native(kind) ? ask_bare(hints, &cat->list) :
				    ask(hints, &cat->list);
	if (ret == -FI_ENODATA && !lnx_rail_kind_native(kind)) {
		/*
		 * We put frames in order: an order of the core is useful, but not
		 * needed.
		 */
		hints->tx_attr->msg_order = 0;
		hints->rx_attr->msg_order = 0;
		if (kind != LNX_RAIL_DIRECT)
			ret = ask(hints, &cat->list);
	}
	fi_freeinfo(hints);
	if (ret)
		return ret == -FI_ENOMEM ? ret : -FI_ENODATA;

	keep_prov(&cat->list, prov, kind_caps(kind));
	cat->kind = kind;
	return cat->list ? 0 : -FI_ENODATA;
}

struct fi_info *lnx_catalog_hmem(const struct lnx_rail_spec *rail)
{
	enum lnx_rail_kind kind = lnx_rail_kind_local(rail->kind) ?
				  LNX_RAIL_NATIVE_LOCAL : LNX_RAIL_NATIVE;
	struct fi_info *hints = kind_hints(kind, rail->prov);
	struct fi_info *list = NULL, *info, *found = NULL;

	if (!hints)
		return NULL;
	hints->caps |= FI_HMEM;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
	hints->domain_attr->name = strdup(rail->dom);
	hints->addr_format = rail->info->addr_format;
	if (hints->domain_attr->name && !ask_bare(hints, &list)) {
		keep_prov(&list, rail->prov, kind_caps(kind) | FI_HMEM);
		for (info = list; info && !found; info = info->next)
			if (!strcmp(info->fabric_attr->name,
				    rail->info->fabric_attr->name))
				found = fi_dupinfo(info);
		fi_freeinfo(list);
	}
	fi_freeinfo(hints);
	return found;
}

/* The provider exists, but lacks something that a rail needs. */
static bool exists(const char *prov)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	bool found;

	if (!hints)
		return false;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
		FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_RAW;
	hints->fabric_attr->prov_name = strdup(prov);
	if (hints->fabric_attr->prov_name && !ask(hints, &list))
		keep_prov(&list, prov, 0);
	found = list != NULL;
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return found;
}

/* ---- one entry per interface ---- */

/* How suitable an address is for the rail; the best one of an interface is used. */
enum fitness {
	FIT_LINK_LOCAL,		/* useless without a scope */
	FIT_IPV6,
	FIT_IPV4,		/* shortest on the wire; first among many */
	FIT_OTHER,		/* not an internet address: no choice */
};

static enum fitness fitness(const struct fi_info *info)
{
	const struct sockaddr *sa = info->src_addr;

	if (!sa)
		return FIT_OTHER;
	if (info->addr_format == FI_SOCKADDR_IN ||
	    (info->addr_format != FI_SOCKADDR_IN6 &&
	     info->src_addrlen == sizeof(struct sockaddr_in) &&
	     sa->sa_family == AF_INET))
		return FIT_IPV4;
	if (info->addr_format == FI_SOCKADDR_IN6 ||
	    (info->src_addrlen == sizeof(struct sockaddr_in6) &&
	     sa->sa_family == AF_INET6)) {
		const struct sockaddr_in6 *in6 = info->src_addr;

		return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ?
		       FIT_LINK_LOCAL : FIT_IPV6;
	}
	return FIT_OTHER;
}

static bool is_loopback(const struct fi_info *info)
{
	switch (fitness(info)) {
	case FIT_IPV4:
		return ntohl(((const struct sockaddr_in *)info->src_addr)->
			     sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case FIT_IPV6:
		return IN6_IS_ADDR_LOOPBACK(
			&((const struct sockaddr_in6 *)info->src_addr)->
			sin6_addr);
	default:
		return false;
	}
}

/* A name that can be written in a link's text. */
static bool can_be_named(const char *name)
{
	return *name && strlen(name) < LNX_NAME_MAX &&
	       !name[strcspn(name, "+|,: \t\n")];
}

static void reduce(struct lnx_catalog *cat)
{
	enum fitness fit[LNX_CATALOG_DOMS];
	struct fi_info *info;
	unsigned i;

	for (info = cat->list; info; info = info->next) {
		const char *name = info->domain_attr->name;
		enum fitness f = fitness(info);

		if (!can_be_named(name)) {
			/* "eth0:1" is a second address of eth0. */
			LNX_INFO(FI_LOG_FABRIC, "domain \"%s\" of %s cannot "
				 "be named in a link: left out\n", name,
				 info->fabric_attr->prov_name);
			continue;
		}
		for (i = 0; i < cat->ndom; i++)
			if (!strcmp(cat->dom[i].info->domain_attr->name, name))
				break;
		if (i == LNX_CATALOG_DOMS)
			continue;
		if (i < cat->ndom && fit[i] >= f)
			continue;
		if (i == cat->ndom)
			cat->ndom++;
		fit[i] = f;
		cat->dom[i] = (struct lnx_catalog_dom){
			.info = info,
			.loopback = is_loopback(info),
			.link_local = f == FIT_LINK_LOCAL,
		};
	}

	cat->loopback_only = true;
	for (i = 0; i < cat->ndom; i++)
		if (!cat->dom[i].loopback && !cat->dom[i].link_local)
			cat->loopback_only = false;
}

/*
 * Half a sentence about a provider that has all that a rail needs, and must not be one;
 * or NULL.
 */
static const char *unfit(const char *prov)
{
	if (!strcasecmp(prov, "sockets"))
		return "is libfabric's old provider over TCP, which lnx was not made to work over; name \"tcp\" in its place";
	return NULL;
}

int lnx_catalog_read(struct lnx_catalog *cat, const char *prov, char *why,
		     size_t why_size)
{
	bool shm = !strcasecmp(prov, "shm");
	int ret;

	memset(cat, 0, sizeof(*cat));
	if (unfit(prov)) {
		snprintf(why, why_size, "%s", unfit(prov));
		return -FI_ENODATA;
	}
	if (lnx_conf_native(lnx_global_config())) {
		ret = read_kind(cat, shm ? LNX_RAIL_NATIVE_LOCAL : LNX_RAIL_NATIVE,
				prov);
	} else if (shm) {
		ret = read_kind(cat, LNX_RAIL_DIRECT, prov);
	} else if (!strcasecmp(prov, "tcp")) {
		/* A known provider; asking it for FI_PEER would make libfabric warn. */
		ret = read_kind(cat, LNX_RAIL_PLAIN, prov);
	} else {
		/* Some providers accept a peer's CQ and then crash: only the capability
		 * counts, which read_kind checks. */
		ret = read_kind(cat, LNX_RAIL_PEER, prov);
		if (ret == -FI_ENODATA)
			ret = read_kind(cat, LNX_RAIL_PLAIN, prov);
	}
	if (ret == -FI_ENODATA) {
		if (exists(prov))
			snprintf(why, why_size, lnx_conf_native(lnx_global_config()) ?
				 "has no reliable datagram endpoint with "
				 "FI_MSG, FI_TAGGED and FI_DIRECTED_RECV" :
				 "has neither FI_PEER nor a "
				 "reliable datagram endpoint with FI_MSG and "
				 "FI_RMA");
		else
			snprintf(why, why_size, "is not available");
		return ret;
	}
	if (ret) {
		snprintf(why, why_size, "could not be queried: %s",
			 fi_strerror(-ret));
		return ret;
	}
	if (lnx_addr_prov_id(prov) == LNX_PROV_NONE) {
		snprintf(why, why_size, "is one whose addresses lnx cannot "
			 "tell to others");
		return -FI_ENODATA;
	}
	reduce(cat);
	if (!cat->ndom) {
		snprintf(why, why_size, "has no domain that can be named");
		return -FI_ENODATA;
	}
	return 0;
}

void lnx_catalog_free(struct lnx_catalog *cat)
{
	fi_freeinfo(cat->list);
	cat->list = NULL;
	cat->ndom = 0;
}

/* ---- which fabrics can be opened ---- */

struct tried {
	struct tried *next;
	int ret;
	char name[];			/* provider, '/', fabric */
};

static pthread_mutex_t tried_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tried *tried_list;

int lnx_catalog_try_open(const struct fi_info *info)
{
	const char *prov = info->fabric_attr->prov_name;
	const char *fabric = info->fabric_attr->name;
	size_t size = strlen(prov) + strlen(fabric) + 2;
	struct fid_fabric *fid;
	struct tried *t;
	int ret;

	pthread_mutex_lock(&tried_lock);
	for (t = tried_list; t; t = t->next) {
		size_t n = strlen(prov);

		if (!strncmp(t->name, prov, n) && t->name[n] == '/' &&
		    !strcmp(t->name + n + 1, fabric))
			break;
	}
	ret = t ? t->ret : 0;
	pthread_mutex_unlock(&tried_lock);
	if (t)
		return ret;

	/* Not under the lock: it runs a core's code.  Two threads may both try; the
	 * result is the same. */
	ret = fi_fabric(info->fabric_attr, &fid, NULL);
	if (!ret)
		fi_close(&fid->fid);
	if (ret == -FI_ENOMEM || ret == -FI_EAGAIN)
		return ret;

	t = malloc(sizeof(*t) + size);
	if (t) {
		snprintf(t->name, size, "%s/%s", prov, fabric);
		t->ret = ret;
		pthread_mutex_lock(&tried_lock);
		t->next = tried_list;
		tried_list = t;
		pthread_mutex_unlock(&tried_lock);
	}
	return ret;
}

void lnx_catalog_fini(void)
{
	struct tried *t;

	while ((t = tried_list)) {
		tried_list = t->next;
		free(t);
	}
}

/* ---- for log messages ---- */

bool lnx_catalog_listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *p = list;

	while ((p = strstr(p, name))) {
		if ((p == list || p[-1] == ' ') &&
		    (p[len] == ',' || !p[len]))
			return true;
		p += len;
	}
	return false;
}

static bool usable(const struct fi_info *info)
{
	const char *prov = info->fabric_attr->prov_name;
	uint64_t need = FI_MSG | FI_RMA;

	return prov && !unfit(prov) && lnx_addr_prov_id(prov) != LNX_PROV_NONE &&
	       (info->caps & need) == need;
}

void lnx_catalog_usable(char *buf, size_t size)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL, *info;
	size_t used = 0;

	*buf = '\0';
	if (!hints)
		return;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	/* libfabric's own lnx, which ours replaces, is only hidden and would answer
	 * too. */
	hints->fabric_attr->prov_name = strdup("^lnx");
	if (hints->fabric_attr->prov_name && !ask(hints, &list)) {
		for (info = list; info; info = info->next) {
			const char *name = info->fabric_attr->prov_name;

			if (!usable(info) || lnx_catalog_listed(buf, name) ||
			    used + strlen(name) + 3 > size)
				continue;
			used += snprintf(buf + used, size - used, "%s%s",
					 used ? ", " : "", name);
		}
	}
	if (!used)
		snprintf(buf, size, "none");
	fi_freeinfo(list);
	fi_freeinfo(hints);
}
