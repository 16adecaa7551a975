/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hash table of one shape: key -> FIFO of entries, private to match.c and mtab.c.
 *
 * With 100000 receives posted the cost of a look-up is its cache misses: an entry that
 * is not the wanted one must not be read.  So a bucket is one cache line with seven
 * heads and, for each, a byte of its hash, which excludes all but the right one (or,
 * one time in some hundred, one more).  Found or not, a look-up reads one line of the
 * table and then the entry.  Heads whose line is full are in a chain behind its last
 * slot.
 *
 * Sixteen consecutive tags have the same hash and use the lines of one aligned group,
 * one each: messages tend to come in the order of tags, and the processor prefetches
 * such lines.
 *
 * Growing allocates a table twice as large and then empties one line of the old one
 * with each new key, so no single post pays for all.  Until then a key is in the old
 * table if its line there was not emptied yet.
 */
#ifndef LNX_MTAB_H
#define LNX_MTAB_H

#include "base/compiler.h"
#include "match/match.h"

#define LNX_MLINE_SLOTS		7
#define LNX_MTAB_FIRST_LINES	LNX_MTAB_NEAR_LINES
#define LNX_MTAB_LINE_HEADS	4	/* mean heads a line before growing */
#define LNX_MTAB_NEAR_LINES	16U	/* lines for consecutive tags */

/*
 * filter has, from the low byte up, the hash byte of each slot (0: free), and in the
 * last byte whether heads are chained behind the last slot.
 */
struct lnx_mline {
	uint64_t filter;
	struct lnx_mlink *slot[LNX_MLINE_SLOTS];
};

static_assert(sizeof(void *) != 8 || sizeof(struct lnx_mline) == 64,
	      "a bucket is one cache line");

#define LNX_MLINE_ONES		0x0001010101010101ULL
#define LNX_MLINE_LOWS		0x007f7f7f7f7f7f7fULL
#define LNX_MLINE_TOPS		0x0080808080808080ULL
#define LNX_MLINE_CHAINED	0x0100000000000000ULL

/*
 * The key to look for: src and tag without the bits that the shape ignores.  off leads
 * from a link to its entry's key.
 */
struct lnx_mprobe {
	uint64_t keep;
	uint64_t any;
	uint64_t src;
	uint64_t tag;
	uint64_t hash;
	ptrdiff_t off;
};

/* Position of a head; slot LNX_MLINE_SLOTS: in the chain. */
struct lnx_mpos {
	struct lnx_mline *line;
	unsigned int slot;
};

#define LNX_MPOSTED_OFF	((ptrdiff_t)offsetof(struct lnx_mrecv, key) - \
			 (ptrdiff_t)offsetof(struct lnx_mrecv, link))
#define LNX_MUNEX_OFF(i) \
	((i) ? (ptrdiff_t)offsetof(struct lnx_mside, key) - \
	       (ptrdiff_t)offsetof(struct lnx_mside, link) - \
	       ((ptrdiff_t)(i) - 1) * (ptrdiff_t)sizeof(struct lnx_mlink) : \
	       (ptrdiff_t)offsetof(struct lnx_munex, key) - \
	       (ptrdiff_t)offsetof(struct lnx_munex, first))

/* Number of lines of a table of the first size. */
void lnx_mtab_init(struct lnx_mtab *t, struct lnx_mline *first);
void lnx_mtab_fini(struct lnx_mtab *t);

/*
 * Called after a new key was added: starts to grow when needed, or continues.  Out of
 * line, as it rarely has anything to do.
 */
void lnx_mtab_grow(struct lnx_mtab *t, const struct lnx_mprobe *p);

/* Remove a head that is alone in its FIFO and whose line has a chain. */
void lnx_mtab_unchain(struct lnx_mpos pos, const struct lnx_mprobe *p,
		      struct lnx_mlink *l);

/*
 * Memory for tables, zeroed; NULL if there is none.  Weak, so that a test can replace
 * it and let it fail.  Released with free().
 */
void *lnx_mtab_alloc(size_t bytes);
/* The same for a struct lnx_mside of s, not zeroed. */
void *lnx_match_get_side(struct lnx_slabs *s);

LNX_INLINE size_t lnx_mtab_lines(unsigned int shift)
{
	return (size_t)1 << (64 - shift);
}

LNX_INLINE struct lnx_mkey *lnx_mkey_of(struct lnx_mlink *l, ptrdiff_t off)
{
	return (struct lnx_mkey *)((char *)l + off);
}

/*
 * The low bits select a line of the group.  Sums and multiples alone would put sources
 * or tags at certain distances into few lines; the shift between the two
 * multiplications prevents that.
 */
LNX_INLINE uint64_t lnx_mtab_hash(uint64_t src, uint64_t tag)
{
	uint64_t hash = tag / LNX_MTAB_NEAR_LINES *
			0x9e3779b96a09e667ULL + src * 0xbb67ae8584caa73bULL;

	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return (hash & ~(uint64_t)(LNX_MTAB_NEAR_LINES - 1)) |
	       (tag & (LNX_MTAB_NEAR_LINES - 1));
}

LNX_INLINE size_t lnx_mtab_index(uint64_t hash, unsigned int shift)
{
	return (size_t)(hash >> shift ^ (hash & (LNX_MTAB_NEAR_LINES - 1)));
}

/* The filter byte, not 0. */
LNX_INLINE uint64_t lnx_mtab_byte(uint64_t hash)
{
	uint64_t b = hash >> 24 & 0xff;

	return b + !b;
}

LNX_INLINE struct lnx_mprobe
lnx_mprobe(const struct lnx_mshape *sh, uint64_t src, uint64_t tag,
	   ptrdiff_t off)
{
	struct lnx_mprobe p = {
		.keep = sh->keep,
		.any = sh->any,
		.src = src | sh->any,
		.tag = tag & sh->keep,
		.off = off,
	};

	p.hash = lnx_mtab_hash(p.src, p.tag);
	return p;
}

LNX_INLINE bool lnx_mprobe_is(const struct lnx_mprobe *p,
				 struct lnx_mlink *l)
{
	const struct lnx_mkey *k = lnx_mkey_of(l, p->off);

	return (k->src | p->any) == p->src && (k->tag & p->keep) == p->tag;
}

LNX_INLINE bool lnx_mlink_is_head(const struct lnx_mlink *l)
{
	return l->chain != l;
}

LNX_INLINE struct lnx_mline *lnx_mtab_line(const struct lnx_mtab *t,
					      uint64_t hash)
{
	size_t i;

	if (lnx_unlikely(t->old != NULL)) {
		i = lnx_mtab_index(hash, t->old_shift);
		if (i >= t->moved)
			return &t->old[i];
	}
	return &t->line[lnx_mtab_index(hash, t->shift)];
}

/* The head of the key's FIFO and its position, or NULL and its line. */
LNX_INLINE struct lnx_mlink *
lnx_mtab_find(const struct lnx_mtab *t, const struct lnx_mprobe *p,
	      struct lnx_mpos *pos)
{
	struct lnx_mline *line = lnx_mtab_line(t, p->hash);
	uint64_t filter = line->filter, diff, hits;
	struct lnx_mlink *l;

	pos->line = line;
	if (!filter)
		return NULL;
	/*
	 * Bytes equal to ours become 0, and their top bits then mark them.  The shorter
	 * x - ONES would sometimes mark one too many, but the pointer in a free slot is
	 * stale and must not be followed.
	 */
	diff = filter ^ lnx_mtab_byte(p->hash) * LNX_MLINE_ONES;
	hits = ~(((diff & LNX_MLINE_LOWS) + LNX_MLINE_LOWS) | diff) &
	       LNX_MLINE_TOPS;
	for (; hits; hits &= hits - 1) {
		pos->slot = (unsigned int)__builtin_ctzll(hits) / 8;
		l = line->slot[pos->slot];
		if (lnx_likely(lnx_mprobe_is(p, l)))
			return l;
	}
	if (lnx_unlikely(filter >= LNX_MLINE_CHAINED)) {
		pos->slot = LNX_MLINE_SLOTS;
		l = line->slot[LNX_MLINE_SLOTS - 1]->chain;
		for (; l; l = l->chain)
			if (lnx_mprobe_is(p, l))
				return l;
	}
	return NULL;
}

/* Add a key that is not in the line. */
LNX_INLINE void lnx_mline_put(struct lnx_mline *line,
				 const struct lnx_mprobe *p,
				 struct lnx_mlink *head)
{
	uint64_t filter = line->filter;
	uint64_t room = (filter - LNX_MLINE_ONES) & ~filter & LNX_MLINE_TOPS;
	struct lnx_mlink *last;
	unsigned int bit;

	/* The line has no other key: no need to wait. */
	if (!filter) {
		head->chain = NULL;
		line->slot[0] = head;
		line->filter = lnx_mtab_byte(p->hash);
		return;
	}
	if (lnx_likely(room != 0)) {
		bit = (unsigned int)__builtin_ctzll(room) - 7;
		head->chain = NULL;
		line->slot[bit / 8] = head;
		line->filter = filter | lnx_mtab_byte(p->hash) << bit;
		return;
	}
	last = line->slot[LNX_MLINE_SLOTS - 1];
	head->chain = last->chain;
	last->chain = head;
	line->filter = filter | LNX_MLINE_CHAINED;
}

LNX_INLINE void lnx_mlink_before(struct lnx_mlink *at, struct lnx_mlink *l)
{
	l->next = at;
	l->prev = at->prev;
	at->prev->next = l;
	at->prev = l;
}

LNX_INLINE void lnx_mlink_del(struct lnx_mlink *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
}

LNX_INLINE void lnx_mtab_add_key(struct lnx_mtab *t,
				    const struct lnx_mprobe *p,
				    struct lnx_mline *line,
				    struct lnx_mlink *l)
{
	l->next = l;
	l->prev = l;
	lnx_mline_put(line, p, l);
	if (lnx_unlikely(++t->heads > t->limit || t->old)) {
		/* A copy, so that p itself can stay in registers. */
		struct lnx_mprobe copy = *p;

		lnx_mtab_grow(t, &copy);
	}
}

/* Append to the key's FIFO. */
LNX_INLINE void lnx_mtab_add(struct lnx_mtab *t, const struct lnx_mprobe *p,
				struct lnx_mlink *l)
{
	struct lnx_mpos pos;
	struct lnx_mlink *head = lnx_mtab_find(t, p, &pos);

	t->n++;
	if (!head) {
		lnx_mtab_add_key(t, p, pos.line, l);
		return;
	}
	lnx_mlink_before(head, l);
	l->chain = l;
}

/* Put a new head where the old one was. */
LNX_INLINE void lnx_mpos_set(struct lnx_mpos pos, struct lnx_mlink *old,
				struct lnx_mlink *head)
{
	struct lnx_mlink *l;

	head->chain = old->chain;
	if (lnx_likely(pos.slot < LNX_MLINE_SLOTS)) {
		pos.line->slot[pos.slot] = head;
		return;
	}
	for (l = pos.line->slot[LNX_MLINE_SLOTS - 1]; l->chain != old;)
		l = l->chain;
	l->chain = head;
}

/* Remove a head that lnx_mtab_find has just found. */
LNX_INLINE void lnx_mtab_del_head(struct lnx_mtab *t,
				     const struct lnx_mprobe *p,
				     struct lnx_mpos pos, struct lnx_mlink *l)
{
	struct lnx_mlink *next = l->next;

	t->n--;
	if (next != l) {
		lnx_mlink_del(l);
		lnx_mpos_set(pos, l, next);
		return;
	}
	t->heads--;
	if (lnx_unlikely(pos.slot == LNX_MLINE_SLOTS || l->chain)) {
		struct lnx_mprobe copy = *p;

		lnx_mtab_unchain(pos, &copy, l);
		return;
	}
	pos.line->filter &= ~(0xffULL << 8 * pos.slot);
}

/* Remove an entry that is not the head of its FIFO. */
LNX_INLINE void lnx_mtab_del_other(struct lnx_mtab *t, struct lnx_mlink *l)
{
	t->n--;
	lnx_mlink_del(l);
}

/* Remove the head of the FIFO that p describes. */
LNX_INLINE void lnx_mtab_del(struct lnx_mtab *t, const struct lnx_mprobe *p,
				struct lnx_mlink *l)
{
	struct lnx_mpos pos;

	/* It is there; this only finds its position. */
	if (lnx_mtab_find(t, p, &pos) == l)
		lnx_mtab_del_head(t, p, pos, l);
}

#endif
