/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes OpenMetrics text.  See openmetrics.h. */
#include "base/openmetrics.h"

#include <inttypes.h>

static void escaped(struct lnx_out *o, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			lnx_out(o, "\\%c", *text);
		else if (*text == '\n')
			lnx_out(o, "\\n");
		else if (*text < ' ' || *text > '~')
			lnx_out(o, "?");
		else
			lnx_out(o, "%c", *text);
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

	lnx_out(o, "%s%s", name, type == LNX_METRIC_COUNTER ? "_total" : "");
	for (; labels[0]; labels += 2) {
		if (!labels[1][0])
			continue;
		lnx_out(o, "%s%s=\"", before, labels[0]);
		escaped(o, labels[1]);
		lnx_out(o, "\"");
		before = ",";
	}
	lnx_out(o, "%s %" PRIu64 "\n", *before == ',' ? "}" : "", value);
}

void lnx_openmetrics_end(struct lnx_out *o)
{
	lnx_out(o, "# EOF\n");
}
