/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching: which tables an entry belongs to and which of several candidates
 * is the oldest.  The tables themselves are in mtab.h.
 */
#include "match/match.h"

#include <errno.h>
#include <stdlib.h>

#include "match/mtab.h"

#define ODD		LNX_MATCH_ODD
#define ODD_BIT		LNX_MATCH_ODD_BIT
#define TABLES		(2 * LNX_MATCH_SHAPES)
#define LINE_BYTES	sizeof(struct lnx_mline)

static struct lnx_mrecv *recv_of(struct lnx_mlink *l)
{
	return lnx_container_of(l, struct lnx_mrecv, link);
}

static struct lnx_munex *unex_of(struct lnx_mlink *l, unsigned int i)
{
	if (lnx_likely(!i))
		return lnx_container_of(l, struct lnx_munex, first);
	return lnx_container_of(l - (i - 1), struct lnx_mside, link[0])->of;
}

/* Its link for shape i; NULL: it has none. */
static struct lnx_mlink *link_of(struct lnx_munex *u, unsigned int i)
{
	if (lnx_likely(!i))
		return &u->first;
	return u->side ? &u->side->link[i - 1] : NULL;
}

static struct lnx_mline *first_lines(const struct lnx_match *m, unsigned int i)
{
	uintptr_t at = ((uintptr_t)m->first_mem + LINE_BYTES - 1) /
		       LINE_BYTES * LINE_BYTES;

	return (struct lnx_mline *)at + (size_t)i * LNX_MTAB_FIRST_LINES;
}

int lnx_match_init(struct lnx_match *m)
{
	unsigned int i;

	*m = (struct lnx_match){0};
	m->first_mem = lnx_mtab_alloc((TABLES * LNX_MTAB_FIRST_LINES + 1) *
				      LINE_BYTES);
	if (!m->first_mem)
		return -ENOMEM;
	m->odd.next = &m->odd;
	m->odd.prev = &m->odd;
	lnx_slab_spares_init(&m->spares, LNX_SLAB_BYTES);
	lnx_slabs_init(&m->sides, sizeof(struct lnx_mside), &m->spares);
	for (i = 0; i < LNX_MATCH_SHAPES; i++) {
		lnx_mtab_init(&m->shape[i].posted, first_lines(m, 2 * i));
		lnx_mtab_init(&m->shape[i].unex, first_lines(m, 2 * i + 1));
	}
	return 0;
}

void lnx_match_fini(struct lnx_match *m)
{
	unsigned int i;

	for (i = 0; i < LNX_MATCH_SHAPES; i++) {
		lnx_mtab_fini(&m->shape[i].posted);
		lnx_mtab_fini(&m->shape[i].unex);
	}
	if (m->first_mem)
		lnx_slabs_fini(&m->sides);
	free(m->first_mem);
	*m = (struct lnx_match){0};
}

__attribute__((weak)) void *lnx_match_get_side(struct lnx_slabs *s)
{
	return lnx_slabs_get(s);
}

/* u, which is in no table, is to be in those of several shapes. */
static void add_side(struct lnx_match *m, struct lnx_munex *u)
{
	u->side = lnx_match_get_side(&m->sides);
	if (lnx_unlikely(!u->side)) {
		m->nbare++;
		return;
	}
	u->side->key = u->key;
	u->side->of = u;
}

static void index_unex(struct lnx_match *m, struct lnx_munex *u,
		       unsigned int i)
{
	struct lnx_mshape *sh = &m->shape[i];
	struct lnx_mlink *l = link_of(u, i);
	struct lnx_mprobe p;

	if (lnx_unlikely(!l))
		return;
	p = lnx_mprobe(sh, u->src, u->tag, LNX_MUNEX_OFF(i));
	lnx_mtab_add(&sh->unex, &p, l);
}

static void index_all(struct lnx_match *m, struct lnx_munex *u)
{
	unsigned int i;

	if (m->nshapes > 1)
		add_side(m, u);
	for (i = 0; i < m->nshapes; i++)
		index_unex(m, u, i);
}

/*
 * The idle shape that was unused for longest, if replacing it is worth it: all stored
 * messages would have to be indexed again, so scans must first have cost as much.  Else
 * ODD.
 */
static unsigned int recycle(struct lnx_match *m)
{
	unsigned int i, oldest = ODD;

	if (m->nunex > m->scanned)
		return ODD;
	for (i = 0; i < LNX_MATCH_SHAPES; i++)
		if (!m->shape[i].posted.n && (oldest == ODD ||
		    m->shape[i].used < m->shape[oldest].used))
			oldest = i;
	if (oldest == ODD)
		return ODD;
	lnx_mtab_fini(&m->shape[oldest].unex);
	lnx_mtab_init(&m->shape[oldest].unex, first_lines(m, 2 * oldest + 1));
	for (i = 0; i < LNX_MTAB_FIRST_LINES; i++)
		m->shape[oldest].unex.line[i].filter = 0;
	return oldest;
}

static LNX_COLD unsigned int
new_shape(struct lnx_match *m, uint64_t any, uint64_t keep)
{
	struct lnx_munex *u;
	unsigned int i;

	i = m->nshapes < LNX_MATCH_SHAPES ? m->nshapes++ : recycle(m);
	if (i == ODD)
		return ODD;
	m->scanned = 0;
	m->shape[i].any = any;
	m->shape[i].keep = keep;
	for (u = m->unex_first; m->indexed && u; u = u->next) {
		if (m->nshapes == 2 && !u->side)
			add_side(m, u);
		index_unex(m, u, i);
	}
	return i;
}

/* The shape of a receive, a new one if needed; ODD if there is no room. */
LNX_INLINE unsigned int shape_of(struct lnx_match *m, uint64_t src,
				    uint64_t ignore)
{
	uint64_t any = src == LNX_ANY_SRC ? UINT64_MAX : 0;
	unsigned int i;

	for (i = 0; i < m->nshapes; i++)
		if (m->shape[i].keep == ~ignore && m->shape[i].any == any)
			break;
	if (lnx_unlikely(i == m->nshapes)) {
		i = new_shape(m, any, ~ignore);
		if (i == ODD)
			return ODD;
	}
	m->shape[i].used = m->stamp;
	return i;
}

void lnx_match_post_many(struct lnx_match *m, struct lnx_mrecv *r)
{
	unsigned int i = shape_of(m, r->src, r->ignore);
	struct lnx_mshape *sh = &m->shape[i];
	struct lnx_mprobe p;

	r->stamp = ++m->stamp;
	r->shape = (uint8_t)i;
	m->active |= 1U << i;
	if (lnx_unlikely(i == ODD)) {
		if (m->nodd++ && !lnx_match_same(recv_of(m->odd.prev), r))
			m->mixed = true;
		lnx_mlink_before(&m->odd, &r->link);
		return;
	}
	p = lnx_mprobe(sh, r->src, r->tag, LNX_MPOSTED_OFF);
	lnx_mtab_add(&sh->posted, &p, &r->link);
}

static bool takes(uint64_t rsrc, uint64_t rtag, uint64_t ignore, uint64_t src,
		  uint64_t tag)
{
	return (rsrc == LNX_ANY_SRC || rsrc == src) &&
	       ((rtag ^ tag) & ~ignore) == 0;
}

/* The oldest receive for a message on the ordered list, if older than best. */
static __attribute__((noinline)) struct lnx_mrecv *
find_odd(struct lnx_match *m, uint64_t src, uint64_t tag,
	 struct lnx_mrecv *best)
{
	struct lnx_mlink *l;
	struct lnx_mrecv *r;

	for (l = m->odd.next; l != &m->odd; l = l->next) {
		r = recv_of(l);
		if (best && best->stamp < r->stamp)
			break;
		m->scanned += m->nodd > LNX_MATCH_FEW;
		if (takes(r->src, r->tag, r->ignore, src, tag))
			return r;
		if (!m->mixed)
			break;
	}
	return best;
}

/* *pos gets its position, unless it is on the ordered list. */
LNX_INLINE struct lnx_mrecv *find(struct lnx_match *m, uint64_t src,
				  uint64_t tag, struct lnx_mpos *pos)
{
	unsigned int left = m->active & (ODD_BIT - 1), i;
	struct lnx_mrecv *best = NULL, *r;
	struct lnx_mprobe p;
	struct lnx_mpos at;
	struct lnx_mlink *l;

	for (; left; left &= left - 1) {
		i = (unsigned int)__builtin_ctz(left);
		p = lnx_mprobe(&m->shape[i], src, tag, LNX_MPOSTED_OFF);
		l = lnx_mtab_find(&m->shape[i].posted, &p, &at);
		if (!l)
			continue;
		r = recv_of(l);
		if (best && best->stamp < r->stamp)
			continue;
		best = r;
		*pos = at;
	}
	if (lnx_unlikely(m->active & ODD_BIT))
		best = find_odd(m, src, tag, best);
	return best;
}

struct lnx_mrecv *lnx_match_find(struct lnx_match *m, uint64_t src,
				 uint64_t tag)
{
	struct lnx_mpos pos;

	return find(m, src, tag, &pos);
}

static void del_odd(struct lnx_match *m, struct lnx_mrecv *r)
{
	lnx_mlink_del(&r->link);
	if (!--m->nodd) {
		m->active &= ~ODD_BIT;
		m->mixed = false;
	}
}

static __attribute__((noinline)) struct lnx_mrecv *
take_of_several(struct lnx_match *m, uint64_t src, uint64_t tag)
{
	struct lnx_mpos pos;
	struct lnx_mrecv *r = find(m, src, tag, &pos);
	struct lnx_mprobe p;
	struct lnx_mshape *sh;

	if (!r)
		return NULL;
	if (lnx_unlikely(r->shape == ODD)) {
		del_odd(m, r);
		return r;
	}
	sh = &m->shape[r->shape];
	p = lnx_mprobe(sh, src, tag, LNX_MPOSTED_OFF);
	lnx_mtab_del_head(&sh->posted, &p, pos, &r->link);
	if (!sh->posted.n)
		m->active &= ~(1U << r->shape);
	return r;
}

struct lnx_mrecv *lnx_match_take_many(struct lnx_match *m, uint64_t src,
				      uint64_t tag)
{
	unsigned int active = m->active;
	struct lnx_mshape *sh;
	struct lnx_mprobe p;
	struct lnx_mpos pos;
	struct lnx_mlink *l;

	if (active & (active - 1) || active == ODD_BIT)
		return take_of_several(m, src, tag);
	/* Only one shape is active: the usual case. */
	sh = &m->shape[__builtin_ctz(active)];
	p = lnx_mprobe(sh, src, tag, LNX_MPOSTED_OFF);
	l = lnx_mtab_find(&sh->posted, &p, &pos);
	if (!l)
		return NULL;
	lnx_mtab_del_head(&sh->posted, &p, pos, l);
	if (!sh->posted.n)
		m->active = 0;
	return recv_of(l);
}

void lnx_match_unpost(struct lnx_match *m, struct lnx_mrecv *r)
{
	struct lnx_mshape *sh = &m->shape[r->shape];
	struct lnx_mprobe p;

	if (r->shape == ODD) {
		del_odd(m, r);
		return;
	}
	if (lnx_mlink_is_head(&r->link)) {
		p = lnx_mprobe(sh, r->src, r->tag, LNX_MPOSTED_OFF);
		lnx_mtab_del(&sh->posted, &p, &r->link);
	} else {
		lnx_mtab_del_other(&sh->posted, &r->link);
	}
	if (!sh->posted.n)
		m->active &= ~(1U << r->shape);
}

void lnx_match_store(struct lnx_match *m, struct lnx_munex *u)
{
	u->stamp = ++m->stamp;
	u->side = NULL;
	u->next = NULL;
	u->prev = m->unex_last;
	if (u->prev)
		u->prev->next = u;
	else
		m->unex_first = u;
	m->unex_last = u;
	if (!m->indexed && m->nunex++ < LNX_MATCH_FEW)
		return;
	if (m->indexed) {
		m->nunex++;
		index_all(m, u);
		return;
	}
	m->indexed = true;
	for (u = m->unex_first; u; u = u->next)
		index_all(m, u);
}

static __attribute__((noinline)) struct lnx_munex *
scan_unex(struct lnx_match *m, uint64_t src, uint64_t tag, uint64_t ignore)
{
	struct lnx_munex *u;

	for (u = m->unex_first; u; u = u->next) {
		m->scanned += m->indexed;
		if (takes(src, tag, ignore, u->src, u->tag))
			return u;
	}
	return NULL;
}

struct lnx_munex *lnx_match_peek(struct lnx_match *m, uint64_t src,
				 uint64_t tag, uint64_t ignore)
{
	struct lnx_mprobe p;
	struct lnx_mpos pos;
	struct lnx_mlink *l;
	unsigned int i;

	if (!m->nunex)
		return NULL;
	if (!m->indexed)
		return scan_unex(m, src, tag, ignore);
	i = shape_of(m, src, ignore);
	if (lnx_unlikely(i == ODD || (i && m->nbare)))
		return scan_unex(m, src, tag, ignore);
	p = lnx_mprobe(&m->shape[i], src, tag, LNX_MUNEX_OFF(i));
	l = lnx_mtab_find(&m->shape[i].unex, &p, &pos);
	return l ? unex_of(l, i) : NULL;
}

static void unindex(struct lnx_match *m, struct lnx_munex *u, unsigned int i)
{
	struct lnx_mshape *sh = &m->shape[i];
	struct lnx_mlink *l = link_of(u, i);
	struct lnx_mprobe p;

	if (lnx_unlikely(!l))
		return;
	if (!lnx_mlink_is_head(l)) {
		lnx_mtab_del_other(&sh->unex, l);
		return;
	}
	p = lnx_mprobe(sh, u->src, u->tag, LNX_MUNEX_OFF(i));
	lnx_mtab_del(&sh->unex, &p, l);
}

void lnx_match_drop(struct lnx_match *m, struct lnx_munex *u)
{
	unsigned int i;

	for (i = 0; m->indexed && i < m->nshapes; i++)
		unindex(m, u, i);
	if (u->side) {
		lnx_slabs_put(&m->sides, u->side);
		u->side = NULL;
	} else if (lnx_unlikely(m->nbare)) {
		/* All were to have one. */
		m->nbare--;
	}
	if (u->prev)
		u->prev->next = u->next;
	else
		m->unex_first = u->next;
	if (u->next)
		u->next->prev = u->prev;
	else
		m->unex_last = u->prev;
	if (!--m->nunex)
		m->indexed = false;
}

/* Insert it into the FIFO of its key, in the order of stamps. */
static void index_by_stamp(struct lnx_match *m, struct lnx_munex *u,
			   unsigned int i)
{
	struct lnx_mlink *l = link_of(u, i), *head, *at;
	const ptrdiff_t off = LNX_MUNEX_OFF(i);
	struct lnx_mtab *t = &m->shape[i].unex;
	struct lnx_mprobe p = lnx_mprobe(&m->shape[i], u->src, u->tag, off);
	struct lnx_mpos pos;

	if (lnx_unlikely(!l))
		return;
	head = lnx_mtab_find(t, &p, &pos);
	t->n++;
	if (!head) {
		lnx_mtab_add_key(t, &p, pos.line, l);
		return;
	}
	if (u->stamp < lnx_mkey_of(head, off)->stamp) {
		lnx_mlink_before(head, l);
		lnx_mpos_set(pos, head, l);
		head->chain = head;
		return;
	}
	for (at = head->prev; lnx_mkey_of(at, off)->stamp > u->stamp;)
		at = at->prev;
	lnx_mlink_before(at->next, l);
	l->chain = l;
}

static void set_key_src(struct lnx_munex *u, uint64_t src)
{
	u->src = src;
	if (u->side)
		u->side->key.src = src;
}

void lnx_match_set_src(struct lnx_match *m, struct lnx_munex *u, uint64_t src)
{
	uint64_t was = u->src;
	unsigned int i;

	if (src == was)
		return;
	/* In shapes that name no source the key does not change. */
	for (i = 0; m->indexed && i < m->nshapes; i++) {
		if (m->shape[i].any)
			continue;
		set_key_src(u, was);
		unindex(m, u, i);
		set_key_src(u, src);
		index_by_stamp(m, u, i);
	}
	set_key_src(u, src);
}

struct lnx_munex *lnx_match_first_unex(struct lnx_match *m)
{
	return m->unex_first;
}

struct lnx_munex *lnx_match_next_unex(struct lnx_match *m, struct lnx_munex *u)
{
	(void)m;
	return u->next;
}

struct claim_slot {
	bool (*fn)(struct lnx_mrecv *r, void *arg);
	void *arg;
	size_t left;		/* receives not seen yet; at 0 stop */
};

/* Everything is read before fn is called, because fn may remove the receive. */
static struct lnx_mrecv *each_in_fifo(struct lnx_mlink *head, struct claim_slot *v)
{
	struct lnx_mlink *l = head, *tail = head->prev, *next;
	struct lnx_mrecv *r;
	bool last;

	do {
		next = l->next;
		last = l == tail;
		r = recv_of(l);
		v->left--;
		if (v->fn(r, v->arg))
			return r;
		l = next;
	} while (!last);
	return NULL;
}

static struct lnx_mrecv *each_in_lines(struct lnx_mline *line, size_t n,
				       struct claim_slot *v)
{
	struct lnx_mlink *head, *chain;
	struct lnx_mrecv *r;
	unsigned int i;

	for (; n && v->left; n--, line++) {
		for (i = 0; line->filter && i < LNX_MLINE_SLOTS; i++) {
			if (!(line->filter >> 8 * i & 0xff))
				continue;
			for (head = line->slot[i]; head; head = chain) {
				chain = head->chain;
				r = each_in_fifo(head, v);
				if (r)
					return r;
			}
		}
	}
	return NULL;
}

struct lnx_mrecv *lnx_match_each_posted(struct lnx_match *m,
		bool (*fn)(struct lnx_mrecv *r, void *arg), void *arg)
{
	struct claim_slot v = { .fn = fn, .arg = arg };
	struct lnx_mrecv *r = NULL;
	struct lnx_mlink *l, *next;
	struct lnx_mtab *t;
	unsigned int i;

	for (l = m->odd.next; l != &m->odd; l = next) {
		next = l->next;
		r = recv_of(l);
		if (fn(r, arg))
			return r;
	}
	for (i = 0; i < m->nshapes; i++) {
		t = &m->shape[i].posted;
		v.left = t->n;
		r = each_in_lines(t->line, lnx_mtab_lines(t->shift), &v);
		if (!r && t->old)
			r = each_in_lines(t->old, lnx_mtab_lines(t->old_shift),
					  &v);
		if (r)
			return r;
	}
	return NULL;
}
