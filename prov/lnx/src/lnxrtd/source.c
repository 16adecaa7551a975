/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sources of a gateway: what each fills.  A grant is in buffers: large ones, and others.
 * It is that of the settings as long as all grants together fit the pools; else the pools
 * are divided (host.c), so that no source, however many frames it sends, takes the share
 * of another.
 *
 * A source is fresh until an info has arrived at the address that it names.  Fresh ones
 * displace only each other.
 */
#include <stdlib.h>
#include <string.h>

#include "lnxrtd/inside.h"

bool rtd_limit_take(struct rtd_limit *l, uint32_t per_second, uint32_t burst, uint64_t now)
{
	uint64_t each = LNX_NS_PER_S / LNX_MAX(per_second, 1u);
	uint64_t from = LNX_MAX(l->full_ns, now);

	if (from + each > now + (uint64_t)burst * each)
		return false;
	l->full_ns = from + each;
	return true;
}

bool rtd_source_charge(struct rtd_relay *r, struct rtd_source *s, unsigned class)
{
	unsigned grant = rtd_grant_of(class);
	int64_t left;

	rtd_grants_renew(r);
	left = (int64_t)rtd_grant(r, s, grant) - s->used[grant] - 1;
	s->min_credits = LNX_MIN(s->min_credits, left);
	if (left < 0)
		return false;
	s->used[grant]++;
	return true;
}

void rtd_source_release(struct rtd_source *s, unsigned class)
{
	s->used[rtd_grant_of(class)]--;
}

static bool idle(const struct rtd_source *s)
{
	return !s->used[RTD_GRANT_SMALL] && !s->used[RTD_GRANT_LARGE];
}

static void heard(struct rtd_relay *r, struct rtd_source *s, uint64_t now)
{
	s->heard_ns = now;
	if (!s->account)
		return;
	lnx_list_del(&s->lru);
	lnx_list_add_tail(s->reached ? &r->sources : &r->fresh, &s->lru);
}

void rtd_source_arrived(struct rtd_relay *r, uint16_t account)
{
	struct rtd_source *s = r->by_account[account];

	if (!account || !s || s->reached)
		return;
	rtd_source_reached(r, s);
	r->nfresh--;
	/* The others may fill less. */
	if (!r->sweep_ns)
		r->sweep_ns = 1;
	lnx_list_del(&s->lru);
	lnx_list_add_tail(&r->sources, &s->lru);
}

struct rtd_source *rtd_source_of(struct rtd_relay *r, unsigned rail, uint16_t account,
				 uint64_t now)
{
	struct rtd_source *s = account ? r->by_account[account] : NULL;

	/* One that this gateway does not know was given by the process before it; one of
	 * a source that cannot know it yet was guessed. */
	if (!s || !s->reached)
		s = &r->out[rail].unannounced;
	heard(r, s, now);
	return s;
}

struct rtd_source *rtd_source_find(struct rtd_relay *r, uint64_t id, uint16_t account)
{
	struct rtd_source *s = account ? r->by_account[account] : NULL, *found = NULL;

	if (account)
		return s && s->id == id ? s : NULL;
	/* New ones are put in front. */
	for (s = r->by_id[rtd_hash64(id)]; s; s = s->chain)
		if (s->id == id)
			found = s;
	return found;
}

/* Frames that wait refer to it: only idle ones go. */
static void remove_source(struct rtd_relay *r, struct rtd_source *s)
{
	struct rtd_source **p = &r->by_id[rtd_hash64(s->id)];

	while (*p != s)
		p = &(*p)->chain;
	*p = s->chain;
	r->by_account[s->account] = NULL;
	lnx_list_del(&s->lru);
	r->nsource--;
	r->nfresh -= !s->reached;
	rtd_host_put(r, s);
	free(s);
}

static bool make_room(struct rtd_relay *r)
{
	uint32_t most = LNX_MIN(r->s.sources, RTD_SOURCES_MAX);
	struct lnx_node *n, *tmp;
	unsigned tries = 0;

	if (r->nsource < most && r->nfresh < RTD_FRESH_SOURCES)
		return true;
	lnx_list_foreach(r->nfresh ? &r->fresh : &r->sources, n, tmp) {
		struct rtd_source *s = lnx_list_entry(n, struct rtd_source, lru);

		if (idle(s)) {
			remove_source(r, s);
			return true;
		}
		if (++tries == 64)
			break;
	}
	return false;
}

/* There are as many sources on that host as may be: of those that may be somewhere else one goes. */
static bool make_room_at(struct rtd_relay *r, const struct lnx_addr_rail *from)
{
	struct lnx_node *n, *tmp;
	unsigned tries = 0;

	lnx_list_foreach(&r->sources, n, tmp) {
		struct rtd_source *s = lnx_list_entry(n, struct rtd_source, lru);

		if (!s->confirmed && idle(s) && rtd_host_is(s->host, from)) {
			remove_source(r, s);
			return true;
		}
		if (++tries == 4 * RTD_HOST_SOURCES)
			break;
	}
	return false;
}

/* Frames name it, so that it must not be found by counting. */
static uint16_t new_account(struct rtd_relay *r)
{
	uint16_t account;

	do {
		account = (uint16_t)rtd_secret(r, ++r->last_account);
	} while (!account || r->by_account[account]);
	return account;
}

static struct rtd_source *make(struct rtd_relay *r, uint64_t id,
			       const struct lnx_addr_rail *from)
{
	struct rtd_source *s;

	if (!make_room(r))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->host = rtd_host_get(r, from);
	if (!s->host && make_room_at(r, from))
		s->host = rtd_host_get(r, from);
	if (!s->host) {
		free(s);
		return NULL;
	}
	s->account = new_account(r);
	s->id = id;
	s->min_credits = INT64_MAX;
	s->chain = r->by_id[rtd_hash64(id)];
	r->by_id[rtd_hash64(id)] = s;
	r->by_account[s->account] = s;
	lnx_list_init(&s->lru);
	r->nsource++;
	r->nfresh++;
	return s;
}

static void find_place(struct rtd_relay *r, const struct lnx_gw_hello *h,
		       struct rtd_place *place)
{
	unsigned i;

	*place = (struct rtd_place){ .n = 0 };
	for (i = 0; i < h->rails.n && place->n < RTD_BACKS; i++) {
		int rail = rtd_rail_to(r, &h->rails.rail[i]);

		if (rail < 0)
			continue;
		if (h->rails.place[i] == h->rail)
			place->first = place->n;
		place->back[place->n].rail = (uint8_t)rail;
		place->back[place->n++].to = h->rails.rail[i];
	}
}

static bool same_place(const struct rtd_place *a, const struct rtd_place *b)
{
	unsigned i;

	for (i = 0; i < LNX_MIN(a->n, b->n); i++)
		if (memcmp(&a->back[i].to, &b->back[i].to, sizeof(a->back[i].to)))
			return false;
	return a->n == b->n;
}

struct rtd_source *rtd_source_at(struct rtd_relay *r, const struct lnx_gw_hello *h,
				 struct rtd_place *place)
{
	struct rtd_source *s = r->by_id[rtd_hash64(h->id)];

	find_place(r, h, place);
	while (s && (s->id != h->id || !same_place(&s->place, place)))
		s = s->chain;
	return s;
}

struct rtd_source *rtd_source_hello(struct rtd_relay *r, struct rtd_source *s,
				    const struct lnx_gw_hello *h, const struct rtd_place *place,
				    uint64_t now)
{
	bool known = s && h->account == s->account;

	if (known)
		rtd_source_confirmed(r, s);
	/* One that no info can be sent to never counts. */
	if (!s && place->n) {
		s = make(r, h->id, &place->back[place->first].to);
		known = true;
	}
	if (!s)
		return NULL;
	if (known) {
		s->gateway = h->flags & LNX_GW_F_GATEWAY;
		s->knows_behind = h->newest >= LNX_ROUTE_NEWEST;
		s->nonce = h->nonce;
		s->claimed = 0;
		s->place = *place;
	} else if (h->nonce != s->nonce) {
		s->claimed = h->nonce;
	}
	heard(r, s, now);
	return s;
}

static void expire(struct rtd_relay *r, struct lnx_node *list, uint64_t now)
{
	unsigned tries;

	for (tries = 0; tries < 64 && !lnx_list_empty(list); tries++) {
		struct rtd_source *s = lnx_list_entry(list->next, struct rtd_source, lru);

		if (lnx_ns_since(now, s->heard_ns) < r->s.idle_ns)
			return;
		if (idle(s))
			remove_source(r, s);
		else
			heard(r, s, now);
	}
}

void rtd_sources_expire(struct rtd_relay *r, uint64_t now)
{
	expire(r, &r->sources, now);
	expire(r, &r->fresh, now);
}

void rtd_sources_free(struct rtd_relay *r)
{
	struct lnx_node *list[] = { &r->sources, &r->fresh };
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(list); i++)
		while (!lnx_list_empty(list[i]))
			remove_source(r, lnx_list_entry(list[i]->next, struct rtd_source,
							lru));
}
