/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What lnxctl prints, as a tree of maps, lists and values, in the order in which it is
 * made.  render.h writes it.  Memory that is short ends the program.
 */
#ifndef LNXCTL_DOC_H
#define LNXCTL_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum lnx_doc_type {
	LNX_DOC_MAP,
	LNX_DOC_LIST,
	LNX_DOC_TEXT,
	LNX_DOC_INT,
	LNX_DOC_UINT,
	LNX_DOC_REAL,			/* one decimal */
	LNX_DOC_BOOL,
};

struct lnx_doc {
	enum lnx_doc_type type;
	char *key;			/* in a map */
	char *text;
	int64_t i;
	uint64_t u;
	double real;
	struct lnx_doc *child, **end;	/* of a map or list */
	struct lnx_doc *next;
};

/* A tree, which is a map; to be freed with lnx_doc_free. */
struct lnx_doc *lnx_doc_new(void);
void lnx_doc_free(struct lnx_doc *d);

/* Append to parent, a map with key, or a list, where key is NULL. */
struct lnx_doc *lnx_doc_map(struct lnx_doc *parent, const char *key);
struct lnx_doc *lnx_doc_list(struct lnx_doc *parent, const char *key);
/* A list or map that was made without a parent becomes a child of map; it has a key. */
void lnx_doc_attach(struct lnx_doc *map, struct lnx_doc *d);
void lnx_doc_text(struct lnx_doc *parent, const char *key, const char *text);
void lnx_doc_printf(struct lnx_doc *parent, const char *key, const char *fmt, ...)
	LNX_PRINTF(3, 4);
void lnx_doc_int(struct lnx_doc *parent, const char *key, int64_t v);
void lnx_doc_uint(struct lnx_doc *parent, const char *key, uint64_t v);
void lnx_doc_real(struct lnx_doc *parent, const char *key, double v);
void lnx_doc_bool(struct lnx_doc *parent, const char *key, bool v);

/* The child of a map with that key, or NULL. */
const struct lnx_doc *lnx_doc_get(const struct lnx_doc *map, const char *key);
/* A value as text, in buf or its own. */
const char *lnx_doc_value(const struct lnx_doc *d, char *buf, size_t size);

/* Memory for a tool that ends without it. */
void *lnx_must(void *memory);

#endif
