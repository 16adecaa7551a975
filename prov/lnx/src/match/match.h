/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching of arrived messages with posted receives: (source, tag, ignore).
 *
 * A receive matches a message when
 *	(recv.src == LNX_ANY_SRC || recv.src == msg.src) &&
 *	((recv.tag ^ msg.tag) & ~recv.ignore) == 0
 * and among several candidates the one posted (or arrived) first wins.  Untagged
 * traffic uses a matcher of its own with every tag 0.
 *
 * Why it is built this way: applications use only a handful of *shapes* of receive, a
 * shape being (source given or not, ignore mask).  Open MPI's receives, for instance,
 * always ignore its protocol bits, so "exact means ignore == 0" would put all of them
 * on a slow list.  Every shape seen gets a hash table keyed by (source or LNX_ANY_SRC,
 * tag & ~ignore); a message looks once into each shape that has receives posted and
 * takes the oldest of the heads, by a post stamp that is global to the matcher.
 * Unexpected messages are indexed the same way, once per shape seen.  The cost thus
 * depends on the number of shapes, never on the number of entries.
 *
 * Shapes beyond LNX_MATCH_SHAPES are still matched correctly, by scans of an ordered
 * list.  A shape with nothing posted is replaced by a new one when the scans have cost
 * as much as it costs to index the stored messages again.  So shapes that are used only
 * in the beginning do not keep later ones slow for ever.
 *
 * Nothing here can fail after init: links are embedded in the caller's objects.  Only
 * those of unexpected messages for all shapes but the first one are allocated; if there is
 * no memory for them, a receive of such a shape searches the messages in order.  Hash
 * tables grow by doubling, a little with every insertion; if there is no memory for a
 * larger table, the old one stays and gets slower.
 *
 * Locking: none.  The caller holds the endpoint's owner lock.
 */
#ifndef LNX_MATCH_H
#define LNX_MATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"

/* Equals FI_ADDR_UNSPEC; this layer does not include libfabric. */
#define LNX_ANY_SRC		UINT64_MAX
/*
 * Open MPI 4.1 uses five: source given or not times tag given or not, all
 * with its protocol bits ignored, and its synchronous send's acknowledgement.
 */
#define LNX_MATCH_SHAPES	6

/*
 * While no more than this are queued, a walk through them in order is cheaper than any
 * table: the first few receives go to the ordered list, and the first few unexpected
 * messages are not indexed.
 */
#define LNX_MATCH_FEW		6
/* A list of receives that all look the same is cheap too: either the first one matches
 * or none.  Up to this many stay on the ordered list. */
#define LNX_MATCH_SAME		256

/*
 * Membership of one entry in one shape's table.  Entries of equal key form a circular
 * FIFO of which the table knows only the head, the oldest, so a million receives with
 * one key never make the look-up of another key longer.
 */
struct lnx_mlink {
	struct lnx_mlink *next;		/* same key, circular */
	struct lnx_mlink *prev;
	struct lnx_mlink *chain;	/* head: next head beyond a full line;
					 * others: this very link */
};

struct lnx_mkey {
	uint64_t src;
	uint64_t tag;
	uint64_t stamp;
};

/*
 * A posted receive; embed it, aligned to 64 if possible: it is one cache line.  The
 * caller sets src, tag and ignore, and leaves them unchanged while it is queued; the
 * rest is the matcher's.
 */
struct lnx_mrecv {
	struct lnx_mlink link;
	union {
		struct lnx_mkey key;
		struct {
			uint64_t src;
			uint64_t tag;
			uint64_t stamp;
		};
	};
	uint64_t ignore;
	uint8_t shape;		/* LNX_MATCH_SHAPES: on the ordered list */
};

/*
 * An unexpected message; embed it.  The caller sets src and tag; src changes later only
 * through lnx_match_set_src.  The rest is the matcher's.
 */
struct lnx_munex {
	union {
		struct lnx_mkey key;
		struct {
			uint64_t src;
			uint64_t tag;
			uint64_t stamp;
		};
	};
	struct lnx_munex *next;		/* all of them, in arrival order */
	struct lnx_munex *prev;
	struct lnx_mlink first;		/* of shape 0 */
	struct lnx_mside *side;		/* of the other shapes; NULL: there is none */
};

/*
 * Its links for the shapes above 0.  Many programs use only one, and there can be many
 * messages: so this is allocated once a second shape is seen.
 */
struct lnx_mside {
	struct lnx_mkey key;		/* the same as of */
	struct lnx_munex *of;
	struct lnx_mlink link[LNX_MATCH_SHAPES - 1];
};

struct lnx_mline;			/* one bucket, see mtab.h */

/* Hash table of key FIFOs, see mtab.h.  Counts are of entries (n) and of
 * different keys (heads). */
struct lnx_mtab {
	struct lnx_mline *line;
	struct lnx_mline *old;		/* smaller table being emptied */
	size_t heads;
	size_t limit;			/* heads at which to grow */
	size_t n;
	size_t moved;			/* lines of old already emptied */
	unsigned int shift;		/* line index is hash >> shift */
	unsigned int old_shift;
	void *line_mem;			/* to free; NULL for the first table */
	void *old_mem;
};

struct lnx_mshape {
	uint64_t keep;			/* ~ignore */
	uint64_t any;			/* all ones if the shape names no source */
	uint64_t used;			/* stamp of last use, for recycling */
	struct lnx_mtab posted;
	struct lnx_mtab unex;
};

/*
 * Embed it; it must not move between init and fini.  The fields are for match.c, and
 * for a debugger.
 */
struct lnx_match {
	unsigned int active;		/* bit i: shape i has receives posted, bit
					 * LNX_MATCH_SHAPES: the ordered list has */
	unsigned int nshapes;
	uint64_t stamp;			/* last one given out */
	struct lnx_munex *unex_first;
	struct lnx_munex *unex_last;
	size_t nunex;
	struct lnx_mlink odd;		/* the ordered list: the first few receives,
					 * and those of other shapes */
	size_t nodd;
	bool mixed;			/* they do not all look the same */
	bool indexed;			/* unexpected messages are in tables */
	size_t nbare;			/* of these, so many are only in that of shape 0:
					 * there was no memory for the others */
	size_t scanned;			/* entries passed in scans in order */
	void *first_mem;		/* the first, small tables */
	struct lnx_slabs sides;		/* struct lnx_mside */
	struct lnx_spares spares;	/* of them */
	struct lnx_mshape shape[LNX_MATCH_SHAPES];
};

static_assert(sizeof(void *) != 8 || sizeof(struct lnx_mrecv) == 64,
	      "a posted receive is one cache line");

/* 0 or -ENOMEM.  fini does not touch entries that are still queued. */
int lnx_match_init(struct lnx_match *m);
void lnx_match_fini(struct lnx_match *m);

/* Queue a receive behind all earlier ones. */
static inline void lnx_match_post(struct lnx_match *m, struct lnx_mrecv *r);

/*
 * The oldest posted receive that takes a message (src, tag), or NULL.  find leaves it
 * queued (multi-receive buffers stay), take removes it.  src may be LNX_ANY_SRC for an
 * unknown source: then only receives that name no source match.
 */
struct lnx_mrecv *lnx_match_find(struct lnx_match *m, uint64_t src,
				 uint64_t tag);
static inline struct lnx_mrecv *lnx_match_take(struct lnx_match *m,
					       uint64_t src, uint64_t tag);

/* Remove a queued receive (cancel, multi-receive buffer used up). */
void lnx_match_unpost(struct lnx_match *m, struct lnx_mrecv *r);

/* Keep a message that no posted receive matches. */
void lnx_match_store(struct lnx_match *m, struct lnx_munex *u);

/* The oldest unexpected message that a receive (src, tag, ignore) takes, or NULL.  It stays
 * queued. */
struct lnx_munex *lnx_match_peek(struct lnx_match *m, uint64_t src,
				 uint64_t tag, uint64_t ignore);

/* Remove one unexpected message. */
void lnx_match_drop(struct lnx_match *m, struct lnx_munex *u);

/*
 * The source of a queued unexpected message was resolved (its address was inserted), or
 * with LNX_ANY_SRC became unknown again: set it, without changing the order.  Receives
 * already posted for that source are not checked: the caller then tries lnx_match_take
 * and, if there is one, drops the message and delivers it.  Constant time when messages
 * of one key get their source in the order of arrival (or in the reverse), else up to
 * the length of the key's FIFO.
 */
void lnx_match_set_src(struct lnx_match *m, struct lnx_munex *u, uint64_t src);

/*
 * Unexpected messages in the order of arrival; NULL at the end.  To remove
 * one on the way, fetch its successor first.
 */
struct lnx_munex *lnx_match_first_unex(struct lnx_match *m);
struct lnx_munex *lnx_match_next_unex(struct lnx_match *m, struct lnx_munex *u);

/*
 * Calls fn(r, arg) for each posted receive, in no particular order, until it returns
 * true; that one is returned, else NULL.  For cancel by context and for closing; cost
 * is that of all receives, not constant.  fn may unpost r itself (and free it, if it
 * then returns false) but change nothing else.  To remove many, use this: taking the
 * first one again and again is quadratic.
 */
struct lnx_mrecv *lnx_match_each_posted(struct lnx_match *m,
		bool (*fn)(struct lnx_mrecv *r, void *arg), void *arg);

/* Slow halves of post and take: for more than a few queued receives. */
void lnx_match_post_many(struct lnx_match *m, struct lnx_mrecv *r);
struct lnx_mrecv *lnx_match_take_many(struct lnx_match *m, uint64_t src,
				      uint64_t tag);

/* Messages that are stored. */
static inline size_t lnx_match_nunex(const struct lnx_match *m)
{
	return m->nunex;
}

/* ---- the usual case, inline ---- */

#define LNX_MATCH_ODD		LNX_MATCH_SHAPES
#define LNX_MATCH_ODD_BIT	(1U << LNX_MATCH_ODD)

static inline struct lnx_mrecv *lnx_match_odd(struct lnx_mlink *l)
{
	return (struct lnx_mrecv *)((char *)l -
				    offsetof(struct lnx_mrecv, link));
}

static inline bool lnx_match_same(const struct lnx_mrecv *a,
				  const struct lnx_mrecv *b)
{
	return a->src == b->src && a->tag == b->tag && a->ignore == b->ignore;
}

static inline void lnx_match_post(struct lnx_match *m, struct lnx_mrecv *r)
{
	if ((m->active & ~LNX_MATCH_ODD_BIT) ||
	    (m->nodd >= LNX_MATCH_FEW &&
	     (m->mixed || m->nodd >= LNX_MATCH_SAME ||
	      !lnx_match_same(lnx_match_odd(m->odd.prev), r)))) {
		lnx_match_post_many(m, r);
		return;
	}
	if (m->nodd++ && !lnx_match_same(lnx_match_odd(m->odd.prev), r))
		m->mixed = true;
	r->stamp = ++m->stamp;
	r->shape = LNX_MATCH_ODD;
	r->link.next = &m->odd;
	r->link.prev = m->odd.prev;
	m->odd.prev->next = &r->link;
	m->odd.prev = &r->link;
	m->active = LNX_MATCH_ODD_BIT;
}

/* Are all receives in one list, and few, or all alike? */
static inline bool lnx_match_few(const struct lnx_match *m)
{
	return m->active == LNX_MATCH_ODD_BIT &&
	       !(m->mixed && m->nodd > LNX_MATCH_FEW);
}

/* lnx_match_take among those, without a call. */
static inline struct lnx_mrecv *lnx_match_take_few(struct lnx_match *m,
						   uint64_t src, uint64_t tag)
{
	struct lnx_mlink *l;

	for (l = m->odd.next; l != &m->odd; l = l->next) {
		struct lnx_mrecv *r = lnx_match_odd(l);

		if ((r->src != src && r->src != LNX_ANY_SRC) ||
		    ((r->tag ^ tag) & ~r->ignore)) {
			if (!m->mixed)
				return NULL;
			continue;
		}
		l->prev->next = l->next;
		l->next->prev = l->prev;
		if (!--m->nodd) {
			m->active = 0;
			m->mixed = false;
		}
		return r;
	}
	return NULL;
}

static inline struct lnx_mrecv *lnx_match_take(struct lnx_match *m,
					       uint64_t src, uint64_t tag)
{
	if (lnx_match_few(m))
		return lnx_match_take_few(m, src, tag);
	return m->active ? lnx_match_take_many(m, src, tag) : NULL;
}

#endif
