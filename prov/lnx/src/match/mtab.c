/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rarely used half of the table in mtab.h: growing, and heads that did not fit into
 * their line.
 */
#include "match/mtab.h"

#include <stdlib.h>

#define LINE_BYTES	sizeof(struct lnx_mline)

__attribute__((weak)) void *lnx_mtab_alloc(size_t bytes)
{
	/* A large block comes as fresh pages, which are faulted in one by one when
	 * used: no need to clear it at once within one post. */
	return calloc(1, bytes);
}

static void set_limit(struct lnx_mtab *t)
{
	t->limit = lnx_mtab_lines(t->shift) * LNX_MTAB_LINE_HEADS;
}

void lnx_mtab_init(struct lnx_mtab *t, struct lnx_mline *first)
{
	*t = (struct lnx_mtab){
		.line = first,
		.shift = 64 - __builtin_ctz(LNX_MTAB_FIRST_LINES),
	};
	set_limit(t);
}

void lnx_mtab_fini(struct lnx_mtab *t)
{
	free(t->line_mem);
	free(t->old_mem);
	*t = (struct lnx_mtab){0};
}

/* The probe that finds this head, made from another one of its shape. */
static struct lnx_mprobe probe_of(const struct lnx_mprobe *p,
				  struct lnx_mlink *head)
{
	const struct lnx_mkey *k = lnx_mkey_of(head, p->off);
	struct lnx_mprobe hp = *p;

	hp.src = k->src | p->any;
	hp.tag = k->tag & p->keep;
	hp.hash = lnx_mtab_hash(hp.src, hp.tag);
	return hp;
}

static void start(struct lnx_mtab *t)
{
	unsigned int shift = t->shift;
	struct lnx_mline *line;
	size_t lines;
	void *mem;

	/* More than one step, if there was no memory for earlier ones. */
	do {
		lines = lnx_mtab_lines(--shift);
	} while (lines * LNX_MTAB_LINE_HEADS < t->heads + t->heads / 2);
	mem = lines < SIZE_MAX / LINE_BYTES - 1 ?
	      lnx_mtab_alloc((lines + 1) * LINE_BYTES) : NULL;
	if (!mem) {
		/* Try again only after a good many more, else every post would try. */
		t->limit = t->heads + t->heads / 4;
		return;
	}
	line = (struct lnx_mline *)(((uintptr_t)mem + LINE_BYTES - 1) /
				    LINE_BYTES * LINE_BYTES);
	t->old = t->line;
	t->old_mem = t->line_mem;
	t->old_shift = t->shift;
	t->moved = 0;
	t->line = line;
	t->line_mem = mem;
	t->shift = shift;
	set_limit(t);
}

static void move_line(struct lnx_mtab *t, const struct lnx_mprobe *p,
		      struct lnx_mline *from)
{
	struct lnx_mlink *head, *chain;
	struct lnx_mprobe hp;
	unsigned int i;

	for (i = 0; i < LNX_MLINE_SLOTS; i++) {
		if (!(from->filter >> 8 * i & 0xff))
			continue;
		for (head = from->slot[i]; head; head = chain) {
			chain = head->chain;
			hp = probe_of(p, head);
			lnx_mline_put(lnx_mtab_line(t, hp.hash), &hp, head);
		}
	}
	from->filter = 0;
}

void lnx_mtab_grow(struct lnx_mtab *t, const struct lnx_mprobe *p)
{
	/*
	 * One line with each new key is enough: the new table takes in
	 * LINE_HEADS times as many keys as the old has lines before it is
	 * itself full, so a second growth never meets an unfinished one.
	 */
	if (!t->old) {
		start(t);
		return;
	}
	t->moved++;
	move_line(t, p, &t->old[t->moved - 1]);
	if (t->moved < lnx_mtab_lines(t->old_shift))
		return;
	free(t->old_mem);
	t->old = NULL;
	t->old_mem = NULL;
}

void lnx_mtab_unchain(struct lnx_mpos pos, const struct lnx_mprobe *p,
		      struct lnx_mlink *l)
{
	const unsigned int last_bit = 8 * (LNX_MLINE_SLOTS - 1);
	struct lnx_mlink *last = pos.line->slot[LNX_MLINE_SLOTS - 1];
	struct lnx_mlink *at;
	struct lnx_mprobe hp;

	if (pos.slot == LNX_MLINE_SLOTS) {
		for (at = last; at->chain != l;)
			at = at->chain;
		at->chain = l->chain;
	} else {
		/* The first of the chain gets the slot. */
		last = l->chain;
		hp = probe_of(p, last);
		pos.line->slot[LNX_MLINE_SLOTS - 1] = last;
		pos.line->filter &= ~(0xffULL << last_bit);
		pos.line->filter |= lnx_mtab_byte(hp.hash) << last_bit;
	}
	if (!last->chain)
		pos.line->filter &= ~LNX_MLINE_CHAINED;
}
