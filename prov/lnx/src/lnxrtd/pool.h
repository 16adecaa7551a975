/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers of a gateway: three pools by the length of the frame, each with a number of
 * buffers that is set and can be changed while they are in use.  What a pool does not have
 * is refused: no pool borrows from another, so that large frames cannot take the buffers
 * of small ones.
 *
 * Pure but for memory.  No locks: lnxrtd has one thread.
 */
#ifndef LNX_RTD_POOL_H
#define LNX_RTD_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "lnx_wire_route.h"

enum rtd_class { RTD_TINY, RTD_SMALL, RTD_LARGE, RTD_CLASSES };

#define RTD_TINY_BYTES	256u
#define RTD_SMALL_BYTES	4096u
#define RTD_LARGE_BYTES	LNX_FRAME_LARGE

#define RTD_TINY_COUNT	2048u
#define RTD_SMALL_COUNT	16384u
#define RTD_LARGE_COUNT	1024u

struct rtd_source;
struct rtd_dest;

/* A buffer, and the frame in it while it is queued. */
struct rtd_buf {
	struct lnx_node link;		/* of the free list, or of a queue */
	uint8_t class;			/* enum rtd_class */
	uint8_t control;		/* a note or an info of this gateway */
	uint8_t arrival;		/* rail that it came over */
	uint16_t account;		/* an info: of the source that it is for; else 0 */
	uint32_t len;			/* bytes of the frame */
	struct rtd_source *source;	/* charged for it; NULL: control */
	struct rtd_dest *dest;		/* where it goes next */
	uint8_t *bytes;			/* as many as its class has */
};

struct rtd_pool_class {
	struct lnx_node free;		/* the one used last comes first */
	uint32_t want;			/* as set */
	uint32_t total;			/* that there are; above want until they return */
	uint32_t nfree;
	uint32_t min_free;		/* the lowest nfree so far */
	uint64_t empty;			/* times that none was there */
};

struct rtd_pool {
	struct rtd_pool_class class[RTD_CLASSES];
};

/* There are no buffers yet. */
void rtd_pool_init(struct rtd_pool *p);
/* All buffers are free again. */
void rtd_pool_fini(struct rtd_pool *p);

/* The bytes that a buffer of the class has, and the class for a frame. */
size_t rtd_class_bytes(enum rtd_class class);
enum rtd_class rtd_class_of(size_t len);
/* "tiny". */
const char *rtd_class_name(enum rtd_class class);

/*
 * The class shall have want buffers.  More are made at once; fewer: those that are free are
 * freed, others when they return.  0, or -ENOMEM: as many as before.
 */
int rtd_pool_resize(struct rtd_pool *p, enum rtd_class class, uint32_t want);

/* NULL: there is none free, which is counted. */
struct rtd_buf *rtd_pool_get(struct rtd_pool *p, enum rtd_class class);
void rtd_pool_put(struct rtd_pool *p, struct rtd_buf *buf);

#endif
