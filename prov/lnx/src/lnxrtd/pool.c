/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Buffers of a gateway.  See pool.h. */
#include "lnxrtd/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
	const char *name;
	size_t bytes;
} classes[RTD_CLASSES] = {
	[RTD_TINY] = { "tiny", RTD_TINY_BYTES },
	[RTD_SMALL] = { "small", RTD_SMALL_BYTES },
	[RTD_LARGE] = { "large", RTD_LARGE_BYTES },
};

size_t rtd_class_bytes(enum rtd_class class)
{
	return classes[class].bytes;
}

enum rtd_class rtd_class_of(size_t len)
{
	return len <= RTD_TINY_BYTES ? RTD_TINY :
	       len <= RTD_SMALL_BYTES ? RTD_SMALL : RTD_LARGE;
}

const char *rtd_class_name(enum rtd_class class)
{
	return classes[class].name;
}

void rtd_pool_init(struct rtd_pool *p)
{
	unsigned i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < RTD_CLASSES; i++)
		lnx_list_init(&p->class[i].free);
}

/* Free free buffers until there are no more than want. */
static void trim(struct rtd_pool_class *c, uint32_t want)
{
	struct lnx_node *n;

	while (c->total > want && (n = lnx_list_pop(&c->free))) {
		free(lnx_list_entry(n, struct rtd_buf, link));
		c->nfree--;
		c->total--;
	}
	c->min_free = LNX_MIN(c->min_free, c->nfree);
}

void rtd_pool_fini(struct rtd_pool *p)
{
	unsigned i;

	for (i = 0; i < RTD_CLASSES; i++)
		trim(&p->class[i], 0);
}

static int grow(struct rtd_pool_class *c, enum rtd_class class, uint32_t want)
{
	uint32_t before = c->total;
	struct rtd_buf *buf;

	while (c->total < want) {
		/* Untouched memory costs no pages: what is never used is only promised. */
		buf = malloc(sizeof(*buf) + classes[class].bytes);
		if (!buf) {
			trim(c, before);
			return -ENOMEM;
		}
		memset(buf, 0, sizeof(*buf));
		buf->class = (uint8_t)class;
		buf->bytes = (uint8_t *)(buf + 1);
		lnx_list_add_tail(&c->free, &buf->link);
		c->nfree++;
		c->total++;
	}
	return 0;
}

int rtd_pool_resize(struct rtd_pool *p, enum rtd_class class, uint32_t want)
{
	struct rtd_pool_class *c = &p->class[class];
	int ret = grow(c, class, want);

	if (ret)
		return ret;
	if (want > c->want)
		c->min_free = c->nfree;
	c->want = want;
	trim(c, want);
	return 0;
}

struct rtd_buf *rtd_pool_get(struct rtd_pool *p, enum rtd_class class)
{
	struct rtd_pool_class *c = &p->class[class];
	struct lnx_node *n = lnx_list_pop(&c->free);
	struct rtd_buf *buf;

	if (!n) {
		c->empty++;
		return NULL;
	}
	c->nfree--;
	c->min_free = LNX_MIN(c->min_free, c->nfree);
	buf = lnx_list_entry(n, struct rtd_buf, link);
	buf->control = 0;
	buf->account = 0;
	buf->source = NULL;
	buf->dest = NULL;
	buf->len = 0;
	return buf;
}

void rtd_pool_put(struct rtd_pool *p, struct rtd_buf *buf)
{
	struct rtd_pool_class *c = &p->class[buf->class];

	if (c->total > c->want) {
		c->total--;
		free(buf);
		return;
	}
	lnx_list_add_head(&c->free, &buf->link);
	c->nfree++;
}
