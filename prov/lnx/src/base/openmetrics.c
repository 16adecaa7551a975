/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes OpenMetrics text.  See openmetrics.h. */
#include "base/openmetrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void put(struct lnx_out *o, const char *text)
{
	lnx_out_bytes(o, text, strlen(text));
}

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '\\' && c != '"';
}

static void escaped(struct lnx_out *o, const char *text)
{
	size_t n;

	for (;;) {
		for (n = 0; is_plain(text[n]); n++)
			;
		lnx_out_bytes(o, text, n);
		text += n;
		if (!*text)
			return;
		put(o, *text == '\\' ? "\\\\" : *text == '"' ? "\\\"" :
		       *text == '\n' ? "\\n" : "?");
		text++;
	}
}

void lnx_openmetrics_family(struct lnx_out *o, const char *name, enum lnx_metric_type type,
			    const char *help)
{
	lnx_out(o, "# TYPE %s %s\n# HELP %s ", name,
		type == LNX_METRIC_COUNTER ? "counter" : "gauge", name);
	escaped(o, help);
	lnx_out(o, "\n");
}

void lnx_openmetrics_sample(struct lnx_out *o, const char *name, enum lnx_metric_type type,
			    const char *const *labels, uint64_t value)
{
	const char *before = "{";
	char number[32];

	put(o, name);
	if (type == LNX_METRIC_COUNTER)
		put(o, "_total");
	for (; labels[0]; labels += 2) {
		if (!labels[1][0])
			continue;
		put(o, before);
		put(o, labels[0]);
		put(o, "=\"");
		escaped(o, labels[1]);
		put(o, "\"");
		before = ",";
	}
	snprintf(number, sizeof(number), "%s %" PRIu64 "\n", *before == ',' ? "}" : "", value);
	put(o, number);
}

void lnx_openmetrics_end(struct lnx_out *o)
{
	lnx_out(o, "# EOF\n");
}
