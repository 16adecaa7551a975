/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl export: the configuration of a process as YAML, for import and lnx.conf(5). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* Of the endpoints so far; owned. */
static char *exported;

static void one(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	char *reply;

	(void)map;
	if (!lnxctl_request(c, p, e, 0, &reply, "export%s", c->verbose ? " all" : ""))
		return;
	if (!exported) {
		exported = reply;
		return;
	}
	if (strcmp(exported, reply))
		lnxctl_fail(c, p, LNXCTL_REFUSED, -EINVAL, "its endpoints are configured in "
			    "different ways; choose one with --ep, \"lnxctl list\" and "
			    "\"lnxctl info\" name them");
	free(reply);
}

static int run(struct lnxctl *c)
{
	int ret;

	if (c->format_set && c->format != LNX_FORMAT_YAML)
		return lnxctl_usage(c, "\"export\" writes YAML, as lnx.conf(5) has it, and no "
				    "other format");
	if (c->all || c->by_job)
		return lnxctl_usage(c, "\"export\" is about one process; choose it with "
				    "-p PID");
	ret = lnxctl_each(c, false, one);
	if (!ret && exported && fputs(exported, stdout) < 0)
		ret = lnxctl_write_failed(c);
	free(exported);
	return ret;
}

const struct lnxctl_verb lnxctl_export = {
	.name = "export", .args = "[-v]",
	.help = "the configuration as YAML, for \"import\" and lnx.conf; with -v all of it",
	.writes = true, .run = run,
};
