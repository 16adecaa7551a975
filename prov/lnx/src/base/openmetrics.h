/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * OpenMetrics text (openmetrics.io, 1.0): families of samples, each with labels.  All
 * samples of a family follow its header; "# EOF" ends the text.
 */
#ifndef LNX_OPENMETRICS_H
#define LNX_OPENMETRICS_H

#include <stdint.h>

#include "base/out.h"

enum lnx_metric_type {
	LNX_METRIC_COUNTER,		/* its samples are called NAME_total */
	LNX_METRIC_GAUGE,
};

/* Start a family.  help: half a sentence. */
void lnx_openmetrics_family(struct lnx_out *o, const char *name, enum lnx_metric_type type,
			    const char *help);
/*
 * A sample of the family that was started last.  labels: pairs of name and value,
 * NULL-ended; a value may be any text, and a label with an empty one is left out.
 */
void lnx_openmetrics_sample(struct lnx_out *o, const char *name, enum lnx_metric_type type,
			    const char *const *labels, uint64_t value);
void lnx_openmetrics_end(struct lnx_out *o);

#endif
