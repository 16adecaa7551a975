/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hosts that sources of a gateway are on, and what each source may fill.  The pools are
 * divided between hosts, and the share of a host between its sources, so that one process
 * that announces a thousand sources shrinks nothing but the grants of its own host.  A
 * host is the address that a source says it sends from.  It counts from the first info
 * that has arrived there: an address that none listens at takes no share.  But anyone can say
 * the address of others.  So of a host those that have said a hello with their account, which
 * only infos tell, keep half of its share at least, however many others there are.
 *
 * Shares are max-min fair: a host that cannot use its share, because none of its sources
 * gets more than the settings allow, leaves the rest to the others.
 */
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/inside.h"

/* The address without its port; of a net without ports the whole of it. */
static uint32_t address_of(const struct lnx_addr_rail *rail, struct lnx_nid *nid)
{
	static const struct lnx_nets none;

	if (lnx_nid_of(&none, rail, nid))
		memset(nid, 0, sizeof(*nid));
	return rtd_hash(nid->addr, nid->len);
}

static bool has_address(const struct rtd_host *h, const struct lnx_nid *nid)
{
	return h->len == nid->len && !memcmp(h->addr, nid->addr, nid->len);
}

bool rtd_host_is(const struct rtd_host *h, const struct lnx_addr_rail *rail)
{
	struct lnx_nid nid;

	address_of(rail, &nid);
	return has_address(h, &nid);
}

struct rtd_host *rtd_host_get(struct rtd_relay *r, const struct lnx_addr_rail *rail)
{
	struct lnx_nid nid;
	uint32_t at = address_of(rail, &nid);
	struct rtd_host *h = r->hosts[at];

	while (h && !has_address(h, &nid))
		h = h->chain;
	if (h && h->sources == RTD_HOST_SOURCES)
		return NULL;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return NULL;
		h->at = at;
		h->len = nid.len;
		memcpy(h->addr, nid.addr, nid.len);
		r->crowd[0]++;
		h->chain = r->hosts[at];
		r->hosts[at] = h;
	}
	h->sources++;
	return h;
}

struct rtd_limit *rtd_host_hellos(struct rtd_relay *r, unsigned rail,
				  const struct lnx_gw_hello *h)
{
	struct lnx_nid nid;
	uint32_t at = h->rails.n ? address_of(&h->rails.rail[0], &nid) : 0;

	return &r->out[rail].host_hellos[at % RTD_HELLO_HOSTS];
}

/* The host has n sources that count. */
static void counts(struct rtd_relay *r, struct rtd_host *h, unsigned n)
{
	r->nhost -= h->reached != 0;
	r->crowd[h->reached]--;
	h->reached = n;
	r->nhost += n != 0;
	r->crowd[n]++;
	r->crowd_max = LNX_MAX(r->crowd_max, n);
	r->level_stale = true;
	rtd_grants_renew(r);
}

void rtd_host_put(struct rtd_relay *r, const struct rtd_source *s)
{
	struct rtd_host *h = s->host, **p = &r->hosts[h->at];

	h->confirmed -= s->confirmed;
	if (s->reached)
		counts(r, h, h->reached - 1);
	if (--h->sources)
		return;
	while (*p != h)
		p = &(*p)->chain;
	*p = h->chain;
	r->crowd[0]--;
	free(h);
}

void rtd_source_reached(struct rtd_relay *r, struct rtd_source *s)
{
	if (s->reached)
		return;
	s->reached = true;
	counts(r, s->host, s->host->reached + 1);
}

void rtd_source_confirmed(struct rtd_relay *r, struct rtd_source *s)
{
	if (s->confirmed)
		return;
	rtd_source_arrived(r, s->account);
	s->confirmed = true;
	s->host->confirmed++;
}

/*
 * How much a host may fill, if each of its sources may fill up to most: the level at which
 * all together fill the whole.  Those without an account are a host of one source on each
 * rail.
 */
static uint32_t level_of(const struct rtd_relay *r, uint32_t whole, uint32_t most)
{
	uint64_t left = whole;
	unsigned hosts = r->nhost + r->nout, n;

	for (n = 1; n <= LNX_MAX(r->crowd_max, 1u) && hosts; n++) {
		unsigned here = r->crowd[n] + (n == 1 ? r->nout : 0);

		if ((uint64_t)n * most * hosts > left)
			return (uint32_t)(left / hosts);
		left -= (uint64_t)n * most * here;
		hosts -= here;
	}
	return UINT32_MAX;
}

static void level(struct rtd_relay *r, unsigned grant, uint32_t whole, uint32_t most)
{
	if (!r->level_stale && r->level_whole[grant] == whole)
		return;
	r->level_whole[grant] = whole;
	r->level[grant] = level_of(r, whole, most);
}

void rtd_grants_renew(struct rtd_relay *r)
{
	uint32_t large = r->pool.class[RTD_LARGE].want;

	/* What is posted for receiving holds no frame. */
	large = large > r->landings ? large - r->landings : 0;
	level(r, RTD_GRANT_LARGE, large, r->s.grant_large);
	level(r, RTD_GRANT_SMALL,
	      r->pool.class[RTD_TINY].want + r->pool.class[RTD_SMALL].want,
	      r->s.grant_small);
	r->level_stale = false;
}

uint32_t rtd_grant(const struct rtd_relay *r, const struct rtd_source *s, unsigned grant)
{
	uint32_t most = grant == RTD_GRANT_LARGE ? r->s.grant_large : r->s.grant_small;
	/* One that does not count yet is told what it will have. */
	unsigned all = s->host ? s->host->reached + !s->reached : 1;
	unsigned confirmed = s->host ? s->host->confirmed : 0;
	unsigned others = all - confirmed;
	/* As many of the others as of those at most share with these. */
	unsigned shares = confirmed ? LNX_MIN(others, confirmed) : others;
	uint32_t share = r->level[grant];
	uint64_t part;

	if (s->host && !s->host->reached)
		share = LNX_MIN(share, r->level_whole[grant] / (r->nhost + r->nout + 1));
	part = share / LNX_MAX(confirmed + shares, 1u);
	if (!s->confirmed)
		part = part * shares / LNX_MAX(others, 1u);
	return (uint32_t)LNX_MAX(LNX_MIN(part, most), 1u);
}
