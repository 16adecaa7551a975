/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads YAML text as a sequence of events with their positions, with libyaml.  The text
 * is not trusted.  Of YAML this takes one document of mappings, sequences and scalars;
 * anchors, aliases and tags are refused, so that what is read is never longer than the
 * text.  Does no I/O, but loads libyaml at first use.
 */
#ifndef LNX_YAML_H
#define LNX_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/refuse.h"

#define LNX_YAML_BYTES_MAX	(1u << 20)
#define LNX_YAML_DEPTH_MAX	12

enum lnx_yaml_event {
	LNX_YAML_SCALAR,
	LNX_YAML_MAP,			/* then key, value, key, value ... */
	LNX_YAML_MAP_END,
	LNX_YAML_SEQ,			/* then the items */
	LNX_YAML_SEQ_END,
	LNX_YAML_END,			/* of the text */
};

struct lnx_yaml_node {
	enum lnx_yaml_event event;
	unsigned line, column;		/* from 1; of what it stands for */
	bool quoted;			/* the first letter stands behind a quote */
	bool literal;			/* one line of text stands for itself: a letter
					 * of it is in the text, as far from column */
	const char *text;		/* SCALAR: with NUL; until the next event */
	size_t len;
};

struct lnx_yaml;

/*
 * Begin to read text, which stays until lnx_yaml_close.  0; -ENOMEM; -ENOSYS: libyaml
 * is missing; -EINVAL: the text is too long.  r->why has a sentence.
 */
int lnx_yaml_open(const char *text, size_t len, struct lnx_yaml **out,
		  struct lnx_refusal *r);

/* The next event.  0; -ENOMEM; or -EINVAL: r has a sentence then, node a position. */
int lnx_yaml_next(struct lnx_yaml *y, struct lnx_yaml_node *node,
		  struct lnx_refusal *r);

/* NULL is fine. */
void lnx_yaml_close(struct lnx_yaml *y);

#endif
