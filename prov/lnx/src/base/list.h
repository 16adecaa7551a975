/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Intrusive circular doubly linked list.  A head is a node too. */
#ifndef LNX_LIST_H
#define LNX_LIST_H

#include <stdbool.h>

#include "base/compiler.h"

struct lnx_node {
	struct lnx_node *next;
	struct lnx_node *prev;
};

static inline void lnx_list_init(struct lnx_node *h)
{
	h->next = h->prev = h;
}

static inline bool lnx_list_empty(const struct lnx_node *h)
{
	return h->next == h;
}

static inline void lnx_list_insert_before(struct lnx_node *at,
					  struct lnx_node *n)
{
	n->next = at;
	n->prev = at->prev;
	at->prev->next = n;
	at->prev = n;
}

static inline void lnx_list_add_tail(struct lnx_node *h, struct lnx_node *n)
{
	lnx_list_insert_before(h, n);
}

static inline void lnx_list_add_head(struct lnx_node *h, struct lnx_node *n)
{
	lnx_list_insert_before(h->next, n);
}

/* n becomes a list of its own, so that removing it twice is harmless. */
static inline void lnx_list_del(struct lnx_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	lnx_list_init(n);
}

/* Is n, once initialised, in a list? */
static inline bool lnx_list_linked(const struct lnx_node *n)
{
	return n->next != n;
}

static inline struct lnx_node *lnx_list_pop(struct lnx_node *h)
{
	struct lnx_node *n = h->next;

	if (n == h)
		return NULL;
	lnx_list_del(n);
	return n;
}

/* Move everything from src to the tail of dst. */
static inline void lnx_list_splice(struct lnx_node *dst, struct lnx_node *src)
{
	if (lnx_list_empty(src))
		return;
	src->next->prev = dst->prev;
	dst->prev->next = src->next;
	src->prev->next = dst;
	dst->prev = src->prev;
	lnx_list_init(src);
}

#define lnx_list_entry(n, type, member)	lnx_container_of(n, type, member)

/* Safe against removal of the current node. */
#define lnx_list_foreach(h, n, tmp) \
	for ((n) = (h)->next; (tmp) = (n)->next, (n) != (h); (n) = (tmp))

#endif
