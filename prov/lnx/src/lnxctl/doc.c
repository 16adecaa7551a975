/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The tree of what is printed.  See doc.h. */
#include "lnxctl/doc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *lnx_must(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "lnxctl: out of memory\n");
	exit(1);
}

static struct lnx_doc *make(struct lnx_doc *parent, const char *key,
			    enum lnx_doc_type type)
{
	struct lnx_doc *d = lnx_must(calloc(1, sizeof(*d)));

	d->type = type;
	d->end = &d->child;
	if (key)
		d->key = lnx_must(strdup(key));
	if (parent) {
		*parent->end = d;
		parent->end = &d->next;
	}
	return d;
}

struct lnx_doc *lnx_doc_new(void)
{
	return make(NULL, NULL, LNX_DOC_MAP);
}

void lnx_doc_free(struct lnx_doc *d)
{
	while (d) {
		struct lnx_doc *next = d->next;

		lnx_doc_free(d->child);
		free(d->key);
		free(d->text);
		free(d);
		d = next;
	}
}

struct lnx_doc *lnx_doc_map(struct lnx_doc *parent, const char *key)
{
	return make(parent, key, LNX_DOC_MAP);
}

struct lnx_doc *lnx_doc_list(struct lnx_doc *parent, const char *key)
{
	return make(parent, key, LNX_DOC_LIST);
}

void lnx_doc_attach(struct lnx_doc *map, struct lnx_doc *d)
{
	*map->end = d;
	map->end = &d->next;
}

void lnx_doc_text(struct lnx_doc *parent, const char *key, const char *text)
{
	make(parent, key, LNX_DOC_TEXT)->text = lnx_must(strdup(text));
}

void lnx_doc_printf(struct lnx_doc *parent, const char *key, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	make(parent, key, LNX_DOC_TEXT)->text = lnx_must(text);
}

void lnx_doc_int(struct lnx_doc *parent, const char *key, int64_t v)
{
	make(parent, key, LNX_DOC_INT)->i = v;
}

void lnx_doc_uint(struct lnx_doc *parent, const char *key, uint64_t v)
{
	make(parent, key, LNX_DOC_UINT)->u = v;
}

void lnx_doc_real(struct lnx_doc *parent, const char *key, double v)
{
	make(parent, key, LNX_DOC_REAL)->real = v;
}

void lnx_doc_bool(struct lnx_doc *parent, const char *key, bool v)
{
	make(parent, key, LNX_DOC_BOOL)->u = v;
}

const struct lnx_doc *lnx_doc_get(const struct lnx_doc *map, const char *key)
{
	const struct lnx_doc *d;

	for (d = map->child; d; d = d->next)
		if (d->key && !strcmp(d->key, key))
			return d;
	return NULL;
}

const char *lnx_doc_value(const struct lnx_doc *d, char *buf, size_t size)
{
	switch (d->type) {
	case LNX_DOC_TEXT:
		return d->text;
	case LNX_DOC_INT:
		snprintf(buf, size, "%" PRId64, d->i);
		return buf;
	case LNX_DOC_UINT:
		snprintf(buf, size, "%" PRIu64, d->u);
		return buf;
	case LNX_DOC_REAL:
		snprintf(buf, size, "%.1f", d->real);
		return buf;
	case LNX_DOC_BOOL:
		return d->u ? "True" : "False";
	default:
		return "";
	}
}
