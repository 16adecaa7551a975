/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Turns the text of a link into rails.  See resolve.h. */
#include "core/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/catalog.h"
#include "core/open.h"
#include "core/warn_once.h"
#include "core/hotplug.h"
#include "prov.h"
#include "wire/addr.h"

/*
 * Inter-node providers, best first, for the default link.  Those with hardware of their
 * own come before TCP; each exists only where its hardware does.
 */
static const char *const best_first[] = {
	"cxi", "verbs;ofi_rxm", "efa", "psm3", "opx", "tcp",
};

/* What a resolution passes around: the origin of the text, for messages. */
struct source {
	const char *text;
	const struct lnx_link *link;
	const struct lnx_link_part *part;	/* the present one, or NULL */
};

/* ---- messages ---- */

#define SENTENCE	640

/*
 * Is the text from the user's variable?  Else it is from an application, or the
 * default.
 */
static bool is_set(const char *text)
{
	const char *var = lnx_global_config()->prov_links;

	return var && !strcmp(var, text);
}

static const char *origin(const char *text)
{
	return is_set(text) ? "FI_LNX_PROV_LINKS=" : "link ";
}

/* FI_LNX_PROV_LINKS="shm+foo:eth0", at "foo:eth0" (character 5): … */
static void warn_at(const struct source *src, const char *sentence)
{
	char whole[300], bad[100];
	size_t len = strlen(src->text), at, n;

	lnx_warn_printable(src->text, len, whole, sizeof(whole));
	if (!src->part) {
		lnx_warn_once(is_set(src->text), "%s\"%s\": %s",
			     origin(src->text), whole, sentence);
		return;
	}
	at = LNX_MIN(src->part->at, len);
	n = strcspn(src->text + at, "+|");
	while (n && strchr(" \t", src->text[at + n - 1]))
		n--;
	lnx_warn_printable(src->text + at, n, bad, sizeof(bad));
	lnx_warn_once(is_set(src->text),
		     "%s\"%s\", at \"%s\" (character %zu): %s",
		     origin(src->text), whole, bad, at + 1, sentence);
}

static void no_such_provider(const struct source *src, const char *why)
{
	const char *filter = lnx_global_provider_filter();
	char usable[256], sentence[SENTENCE + 100], shown[80], room[100] = "";

	if (!strcmp(src->part->prov, "shm"))
		lnx_host_shm_why(room, sizeof(room));
	lnx_catalog_usable(usable, sizeof(usable));
	if (filter)
		lnx_warn_printable(filter, strlen(filter), shown, sizeof(shown));
	snprintf(sentence, sizeof(sentence),
		 "provider \"%s\" %s%s; usable here: %s%s%s%s",
		 src->part->prov, why, room, usable, filter ? " (FI_PROVIDER=\"" : "",
		 filter ? shown : "", filter ? "\" is set)" : "");
	warn_at(src, sentence);
}

static void no_such_domain(const struct source *src, const char *dom,
			   const struct lnx_catalog *cat)
{
	char sentence[SENTENCE];
	int n;

	n = snprintf(sentence, sizeof(sentence), "provider \"%s\" has no "
		     "domain \"%s\"; it has:", src->part->prov, dom);
	for (unsigned i = 0; i < cat->ndom && n < (int)sizeof(sentence); i++)
		if (!cat->dom[i].link_local)
			n += snprintf(sentence + n, sizeof(sentence) - n,
				      " %s", cat->dom[i].info->domain_attr->
				      name);
	warn_at(src, sentence);
}

/*
 * "lnx,tcp;ofi_rxm,shm": the FI_PROVIDER filter under which every part can be opened.
 */
static void filter_for(const struct lnx_link *link, char *buf, size_t size)
{
	size_t n = snprintf(buf, size, "lnx");
	bool shm = false;

	for (unsigned i = 0; i < link->npart; i++) {
		if (!strcasecmp(link->part[i].prov, "shm")) {
			shm = true;
			continue;
		}
		if (n < size)
			n += snprintf(buf + n, size - n, ",%s",
				      link->part[i].prov);
	}
	if (shm && n < size)
		snprintf(buf + n, size - n, ",shm");
}

static void cannot_open(const struct source *src, const struct fi_info *info,
			int ret)
{
	const char *prov = info->fabric_attr->prov_name;
	const char *filter = lnx_global_provider_filter();
	char sentence[SENTENCE], shown[80], cure[160];

	if (filter && strchr(prov, ';')) {
		/* A layered provider looks for its lower one among those that
		 * FI_PROVIDER allows.  No call of ours can change that. */
		lnx_warn_printable(filter, strlen(filter), shown, sizeof(shown));
		filter_for(src->link, cure, sizeof(cure));
		snprintf(sentence, sizeof(sentence), "provider \"%s\" cannot "
			 "be opened (%s), because FI_PROVIDER=\"%s\" hides "
			 "the provider that it works on; set "
			 "FI_PROVIDER=\"%s\", or unset it", prov,
			 fi_strerror(-ret), shown, cure);
	} else {
		snprintf(sentence, sizeof(sentence), "fabric \"%s\" of "
			 "provider \"%s\" cannot be opened: %s",
			 info->fabric_attr->name, prov, fi_strerror(-ret));
	}
	warn_at(src, sentence);
}

/* ---- one part ---- */

int lnx_rail_spec_make(struct lnx_rail_spec *rail,
		       const struct lnx_catalog *cat,
		       const struct lnx_catalog_dom *dom)
{
	const char *prov = dom->info->fabric_attr->prov_name;

	rail->info = fi_dupinfo(dom->info);
	if (!rail->info)
		return -FI_ENOMEM;
	rail->kind = cat->kind;
	snprintf(rail->prov, sizeof(rail->prov), "%s", prov);
	snprintf(rail->dom, sizeof(rail->dom), "%s",
		 dom->info->domain_attr->name);
	rail->prov_id = lnx_addr_prov_id(prov);
	rail->group = lnx_addr_group(rail->prov_id,
				     dom->info->fabric_attr->name);
	return 0;
}

static int add_rail(struct lnx_link_rails *lr, const struct source *src,
		    const struct lnx_catalog *cat,
		    const struct lnx_catalog_dom *dom)
{
	const char *prov = dom->info->fabric_attr->prov_name;
	const char *name = dom->info->domain_attr->name;
	struct lnx_rail_spec *rail;
	char sentence[SENTENCE];
	int ret;

	for (unsigned i = 0; i < lr->nrail; i++) {
		if (!strcmp(lr->rail[i].prov, prov) &&
		    !strcmp(lr->rail[i].dom, name)) {
			snprintf(sentence, sizeof(sentence), "domain \"%s\" of "
				 "provider \"%s\" is in the link already",
				 name, prov);
			warn_at(src, sentence);
			return -FI_EINVAL;
		}
	}
	if (lr->nrail == LNX_RAILS_MAX) {
		snprintf(sentence, sizeof(sentence), "more than %d domains in "
			 "one link; name those to use",
			 LNX_RAILS_MAX);
		warn_at(src, sentence);
		return -FI_EINVAL;
	}
	ret = lnx_catalog_try_open(dom->info);
	if (ret) {
		cannot_open(src, dom->info, ret);
		return ret == -FI_ENOMEM ? ret : -FI_ENODATA;
	}

	rail = &lr->rail[lr->nrail];
	ret = lnx_rail_spec_make(rail, cat, dom);
	lr->nrail += !ret;
	return ret;
}

static int add_named(struct lnx_link_rails *lr, const struct source *src,
		     const struct lnx_catalog *cat)
{
	char sentence[SENTENCE];
	unsigned i, d;
	int ret;

	for (i = 0; i < src->part->ndom; i++) {
		const char *name = src->part->dom[i];

		for (d = 0; d < cat->ndom; d++)
			if (!strcmp(cat->dom[d].info->domain_attr->name, name))
				break;
		if (d == cat->ndom) {
			no_such_domain(src, name, cat);
			return -FI_ENODATA;
		}
		if (cat->dom[d].link_local) {
			snprintf(sentence, sizeof(sentence), "domain \"%s\" "
				 "has only a link-local address, which is "
				 "useless to other nodes; give it another",
				 name);
			warn_at(src, sentence);
			return -FI_ENODATA;
		}
		ret = add_rail(lr, src, cat, &cat->dom[d]);
		if (ret)
			return ret;
	}
	return 0;
}

static int add_all(struct lnx_link_rails *lr, const struct source *src,
		   const struct lnx_catalog *cat)
{
	unsigned before = lr->nrail;
	int ret;

	for (unsigned d = 0; d < cat->ndom; d++) {
		if (!lnx_catalog_meant(cat, d))
			continue;
		ret = add_rail(lr, src, cat, &cat->dom[d]);
		if (ret)
			return ret;
	}
	if (lr->nrail == before) {
		warn_at(src, "none of its interfaces has an address that "
			    "other nodes can use");
		return -FI_ENODATA;
	}
	return 0;
}

static int add_part(struct lnx_link_rails *lr, const struct source *src)
{
	struct lnx_catalog *cat = malloc(sizeof(*cat));
	char why[200];
	int ret;

	if (!cat)
		return -FI_ENOMEM;
	ret = lnx_catalog_read(cat, src->part->prov, why, sizeof(why));
	if (ret)
		no_such_provider(src, why);
	else if (src->part->ndom)
		ret = add_named(lr, src, cat);
	else
		ret = add_all(lr, src, cat);
	lnx_catalog_free(cat);
	free(cat);
	return ret;
}

/* ---- whole links ---- */

/* Our code requires that the direct rail is the first. */
static void shm_first(struct lnx_link_rails *lr)
{
	struct lnx_rail_spec shm;
	unsigned i;

	for (i = 0; i < lr->nrail; i++)
		if (lnx_rail_kind_local(lr->rail[i].kind))
			break;
	if (!i || i == lr->nrail)
		return;
	shm = lr->rail[i];
	memmove(&lr->rail[1], &lr->rail[0], i * sizeof(shm));
	lr->rail[0] = shm;
}

int lnx_resolve_rails_name(struct lnx_link_rails *lr)
{
	struct lnx_link *link = calloc(1, sizeof(*link));
	struct lnx_link_part *part = NULL;
	int ret;

	if (!link)
		return -FI_ENOMEM;
	for (unsigned i = 0; i < lr->nrail; i++) {
		const struct lnx_rail_spec *rail = &lr->rail[i];

		if (!part || strcmp(part->prov, rail->prov)) {
			if (link->npart == LNX_LINK_PARTS)
				goto too_long;
			part = &link->part[link->npart++];
			snprintf(part->prov, sizeof(part->prov), "%s",
				 rail->prov);
		}
		if (lnx_rail_kind_local(rail->kind))
			continue;
		if (part->ndom == LNX_PART_DOMS)
			goto too_long;
		snprintf(part->dom[part->ndom++], LNX_NAME_MAX, "%s",
			 rail->dom);
	}
	ret = lnx_link_print(link, lr->name, sizeof(lr->name));
	free(link);
	return ret < 0 ? -FI_ENOSPC : 0;
too_long:
	free(link);
	return -FI_ENOSPC;
}

struct lnx_link_rails *lnx_resolve(const struct lnx_link *link,
				   const char *text, int *err)
{
	struct source src = { .text = text, .link = link };
	struct lnx_link_rails *lr = calloc(1, sizeof(*lr));
	int ret = 0;

	if (!lr) {
		*err = -FI_ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; !ret && i < link->npart; i++) {
		src.part = &link->part[i];
		if (lnx_global_config()->disable_shm &&
		    !strcasecmp(src.part->prov, "shm"))
			continue;
		ret = add_part(lr, &src);
	}
	src.part = NULL;
	if (!ret && !lr->nrail) {
		warn_at(&src, "nothing but shm in it, which "
			    "FI_LNX_DISABLE_SHM forbids");
		ret = -FI_ENODATA;
	}
	if (!ret) {
		shm_first(lr);
		ret = lnx_resolve_rails_name(lr);
		if (ret == -FI_ENOSPC) {
			warn_at(&src, "the names of its domains are too "
				    "long together; name fewer of them");
			ret = -FI_EINVAL;
		}
	}
	if (ret) {
		lnx_resolve_rails_free(lr);
		*err = ret;
		return NULL;
	}
	*err = 0;
	return lr;
}

struct lnx_link_rails *lnx_resolve_name(const char *name, int *err)
{
	struct lnx_links *links = malloc(sizeof(*links));
	struct lnx_link_rails *lr = NULL;
	char why[200], shown[300];
	size_t at;

	if (!links) {
		*err = -FI_ENOMEM;
		return NULL;
	}
	if (lnx_links_parse(name, links, &at, why, sizeof(why))) {
		lnx_warn_once(false, "link \"%s\", character %zu: %s",
			      lnx_warn_printable(name, strlen(name), shown,
						 sizeof(shown)), at + 1, why);
		*err = -FI_EINVAL;
	} else if (links->nlink != 1) {
		lnx_warn_once(false, "link \"%s\": a domain name is one link, "
			      "without '|'",
			      lnx_warn_printable(name, strlen(name), shown,
						 sizeof(shown)));
		*err = -FI_EINVAL;
	} else {
		lr = lnx_resolve(&links->link[0], name, err);
		if (lr)
			lnx_hotplug_mark(lr);
	}
	free(links);
	return lr;
}

struct lnx_link_rails *lnx_resolve_rails_hmem(const struct lnx_link_rails *lr)
{
	struct lnx_link_rails *out;
	unsigned i;

	if (lr->nrail > 1 && !lnx_conf_native(lnx_global_config()))
		return NULL;
	out = calloc(1, sizeof(*out));
	if (!out)
		return NULL;
	memcpy(out->name, lr->name, sizeof(out->name));
	for (i = 0; i < lr->nrail; i++) {
		out->rail[i] = lr->rail[i];
		out->rail[i].info = lnx_catalog_hmem(&lr->rail[i]);
		if (!out->rail[i].info) {
			lnx_resolve_rails_free(out);
			return NULL;
		}
		out->rail[i].kind = lnx_rail_kind_local(lr->rail[i].kind) ?
				    LNX_RAIL_NATIVE_LOCAL : LNX_RAIL_NATIVE;
		out->nrail++;
	}
	return out;
}

void lnx_resolve_rails_free(struct lnx_link_rails *lr)
{
	if (!lr)
		return;
	for (unsigned i = 0; i < lr->nrail; i++)
		fi_freeinfo(lr->rail[i].info);
	free(lr);
}

/* ---- the default link ---- */

/* It exists, has an interface, and can be opened. */
static bool works(const char *prov)
{
	struct lnx_catalog *cat = malloc(sizeof(*cat));
	struct lnx_link link = { .npart = 2 };
	struct source src = { .text = "default", .link = &link };
	bool usable = false;
	char why[128];
	int ret;

	if (!cat)
		return false;
	if (!lnx_catalog_read(cat, prov, why, sizeof(why))) {
		for (unsigned d = 0; d < cat->ndom && !usable; d++) {
			if (cat->dom[d].link_local)
				continue;
			ret = lnx_catalog_try_open(cat->dom[d].info);
			if (!ret) {
				usable = true;
				break;
			}
			/* It would have been the better one: do not take the next
			 * without a warning. */
			snprintf(link.part[0].prov, LNX_NAME_MAX, "%s", prov);
			snprintf(link.part[1].prov, LNX_NAME_MAX, "shm");
			cannot_open(&src, cat->dom[d].info, ret);
			break;
		}
	}
	lnx_catalog_free(cat);
	free(cat);
	return usable;
}

int lnx_resolve_default(char *buf, size_t size)
{
	const char *net = NULL;
	bool shm = !lnx_global_config()->disable_shm;
	char present[256], room[100];

	lnx_catalog_usable(present, sizeof(present));
	for (size_t i = 0; i < LNX_ARRAY_SIZE(best_first) && !net; i++)
		if (lnx_catalog_listed(present, best_first[i]) &&
		    works(best_first[i]))
			net = best_first[i];
	if (shm && !(lnx_catalog_listed(present, "shm") && works("shm"))) {
		shm = false;
		lnx_warn_once(false, "the default link is without shm, which libfabric "
			     "does not offer here%s",
			     lnx_host_shm_why(room, sizeof(room)));
	}
	if (!shm && !net) {
		lnx_warn_once(false, "there is no provider for a default link%s",
			      lnx_global_config()->disable_shm ? " without shm, which "
			      "FI_LNX_DISABLE_SHM forbids" : "");
		return -FI_ENODATA;
	}
	snprintf(buf, size, "%s%s%s", shm ? "shm" : "", shm && net ? "+" : "",
		 net ? net : "");
	return 0;
}
