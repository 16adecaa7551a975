/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is late on a path, and how much is read twice.  See hedge.h. */
#include "rel/hedge.h"

#include "base/compiler.h"
#include "base/interval.h"

/* Bytes: one piece (policy/stripe.h); and so many that there is no limit any more. */
#define WINDOW_FIRST	16384u
#define WINDOW_FULL	(1024u * 1024)

/* ---- a pause that doubles ---- */

void lnx_hedge_pause_begin(struct lnx_pause *p, uint64_t min_ns, uint64_t max_ns, uint64_t now)
{
	bool well = lnx_ns_since(now, p->until_ns) > LNX_PAUSE_FORGET * p->ns;

	p->ns = well ? min_ns : LNX_MIN(2 * p->ns, max_ns);
	p->until_ns = now + p->ns;
}

/* ---- pieces that are read over a path ---- */

uint64_t lnx_hedge_tail_ns(const struct lnx_tail *t)
{
	return LNX_MAX(t->mean_ns + 4 * t->dev_ns, LNX_LATE_MIN_NS);
}

bool lnx_hedge_tail_late(struct lnx_tail *t, uint64_t posted_ns, uint32_t n, uint64_t now)
{
	if (t->late_ns && posted_ns <= t->late_ns)
		return false;
	t->late_ns = now;
	t->behind = n;
	t->window = WINDOW_FIRST;
	lnx_hedge_pause_begin(&t->pause, LNX_LATE_PAUSE_MIN_NS, LNX_LATE_PAUSE_MAX_NS, now);
	return true;
}

void lnx_hedge_tail_came(struct lnx_tail *t, uint64_t posted_ns, uint64_t late_by_ns,
			 uint64_t bytes, bool first)
{
	bool late = t->late_ns && posted_ns <= t->late_ns;
	uint64_t err;

	/* Those that others overtook say nothing of how late a piece may be. */
	if (late && !first)
		return;
	/* All paths were late: the peer, or we, had no CPU.  Not too much of that. */
	late_by_ns = LNX_MIN(late_by_ns, 2 * lnx_hedge_tail_ns(t));
	err = late_by_ns > t->mean_ns ? late_by_ns - t->mean_ns : t->mean_ns - late_by_ns;
	/* RFC 6298, 2.3. */
	t->dev_ns = (3 * t->dev_ns + err) / 4;
	t->mean_ns = (7 * t->mean_ns + late_by_ns) / 8;
	/* No other path was sooner, so this one is not to be left for long. */
	if (lnx_unlikely(late)) {
		t->pause.ns = LNX_LATE_PAUSE_MIN_NS;
		t->pause.until_ns = LNX_MIN(t->pause.until_ns,
					    t->late_ns + LNX_LATE_PAUSE_MIN_NS);
	}
	if (lnx_likely(!t->window) || late)
		return;
	/* It was used all the same, because nothing else worked, and it works. */
	t->pause.until_ns = LNX_MIN(t->pause.until_ns, posted_ns);
	t->window += bytes;
	if (t->window >= WINDOW_FULL)
		t->window = 0;
}

void lnx_hedge_tail_ended(struct lnx_tail *t, uint64_t now)
{
	if (lnx_likely(!t->behind))
		return;
	/* The pause counts from when the path was free again. */
	if (!--t->behind)
		t->pause.until_ns = LNX_MAX(t->pause.until_ns, now);
}

bool lnx_hedge_tail_room(const struct lnx_tail *t, uint64_t out)
{
	return lnx_likely(!t->window) || !out || out + WINDOW_FIRST <= t->window;
}

/* ---- how much is read twice, of a peer ---- */

void lnx_hedge_earn(struct lnx_hedge *h, uint64_t bytes)
{
	if (lnx_unlikely(h->twice))
		h->twice -= LNX_MIN(h->twice, bytes / LNX_HEDGE_SHARE);
}

bool lnx_hedge_take(struct lnx_hedge *h, uint64_t bytes)
{
	/* What is left is used by a piece of any length: none waits for ever. */
	if (h->n >= LNX_HEDGE_MAX || h->twice >= LNX_HEDGE_AHEAD)
		return false;
	h->twice += bytes;
	h->n++;
	return true;
}
