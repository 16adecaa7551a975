/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The guest book of a shm endpoint: who is, or may come to be, known to its core.
 *
 * shm knows 256 peers, those that we insert and those that send to us first.  One
 * more takes the place of another: its messages are told to be the other's, and
 * sends to the other go to it.  So before two endpoints use shared memory each has
 * a place in the book of the other, or they do not use it; a message over shm is
 * always of somebody in the book.
 *
 * The book is a page behind the end of the file of the endpoint's shm region,
 * which cores map by the size that it says itself: it comes and goes with that.
 * Other processes write into it, and may be hostile: what is in it is a list of
 * endpoint ids that the owner may try to find, and no more.
 *
 * Locking: places are claimed by any process, by compare and swap, and given free
 * by the owner alone, under its owner lock.
 */
#ifndef LNX_BOOK_H
#define LNX_BOOK_H

#include "core/cma.h"
#include "obj/ep.h"

#define LNX_BOOK_PLACES	256		/* of shm's map of peers */

/* Put one behind the region of ep's shm core, which is enabled.  NULL: there is no
 * such file, or no room; peers then see no book. */
struct lnx_book *lnx_book_open(const struct lnx_ep *ep);
void lnx_book_close(struct lnx_book *book);

/*
 * The owner is about to close, and its application to get its buffers back.  What
 * was read of them before a true answer to lnx_book_is_open is good.
 */
void lnx_book_shut(struct lnx_book *book);
bool lnx_book_is_open(const struct lnx_book *book);

/*
 * Memory of the owner has counters: whoever writes there tells (tx/confirm.h).  What
 * counts points to is not 0 from then on; it is as long there as the book.
 */
void lnx_book_count(struct lnx_book *book);
const uint32_t *lnx_book_counts(const struct lnx_book *book);
/* For peers without a book: always 0. */
extern const uint32_t lnx_book_no_counts;

/* A place for eid, which it may have: 0 or -FI_ENOSPC. */
int lnx_book_place(struct lnx_book *book, uint64_t eid);
/* Of our own book. */
bool lnx_book_room(const struct lnx_book *book, uint64_t eid);
unsigned lnx_book_free(const struct lnx_book *book);
/* Who has place i; 0: nobody. */
uint64_t lnx_book_guest(const struct lnx_book *book, unsigned i);
void lnx_book_strike(struct lnx_book *book, unsigned i);

/*
 * The book of another endpoint, to be closed: 0, or -FI_ENOENT when it has none.  A
 * place there is taken with lnx_book_place.
 */
int lnx_book_find(uint64_t eid, struct lnx_book **book);
void lnx_book_owner(const struct lnx_book *book, struct lnx_cma_owner *owner);
/* Is the endpoint gone, its process dead or its file removed?  Says no if unsure. */
bool lnx_book_gone(uint64_t eid);

#endif
