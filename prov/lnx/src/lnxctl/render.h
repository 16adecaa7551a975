/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes a tree (doc.h) as YAML in block style, as lnetctl does, as JSON, or as tables:
 * each list of maps becomes a table, a line for each map, a column for each of their
 * values; maps in them become columns too, named KEY.KEY.  A table that is too wide has the
 * values of each map below each other.
 */
#ifndef LNXCTL_RENDER_H
#define LNXCTL_RENDER_H

#include <stdio.h>

#include "lnxctl/doc.h"

enum lnx_format {
	LNX_FORMAT_YAML,
	LNX_FORMAT_JSON,
	LNX_FORMAT_TABLE,
};

/* Can it be written?  JSON needs a library that the build may not have. */
bool lnx_format_available(enum lnx_format format);

/* width: columns that a table may have; 0: any number.  False: writing failed. */
bool lnx_render(const struct lnx_doc *d, enum lnx_format format, unsigned width, FILE *out);

/* Text as a YAML scalar, quoted where YAML would read it as something else. */
void lnx_yaml_scalar(FILE *out, const char *text);

#endif
