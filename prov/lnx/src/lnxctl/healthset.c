/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The options by which "net set" and "peer set" set a health. */
#include <stdio.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

#define HEALTH_MAX	1000u

static int check_number(const struct lnxctl *c, const char *name)
{
	const char *text = lnxctl_value(c, name);
	uint64_t v;

	if (!text || lnxctl_number(text, HEALTH_MAX, &v))
		return LNXCTL_OK;
	return lnxctl_usage(c, "--%s \"%s\": must be a health, a whole number from 0 to %u",
			    name, text, HEALTH_MAX);
}

int lnxctl_health_options(const struct lnxctl *c)
{
	const char *state = lnxctl_value(c, "state");
	unsigned n = (lnxctl_value(c, "health") != NULL) +
		     (lnxctl_value(c, "pin") != NULL) +
		     (lnxctl_value(c, "auto") != NULL) + (state != NULL);
	const char *nid = lnxctl_value(c, "nid");
	int ret;

	if (!nid || !*nid)
		return lnxctl_usage(c, "\"%s\" needs --nid, which says what is set",
				    c->verb->name);
	if (n != 1)
		return lnxctl_usage(c, "\"%s\" needs one of --health, --pin, --auto and "
				    "--state", c->verb->name);
	if (state && strcmp(state, "up") && strcmp(state, "down"))
		return lnxctl_usage(c, "--state \"%s\": must be up or down", state);
	ret = check_number(c, "health");
	return ret ? ret : check_number(c, "pin");
}

const char *lnxctl_health_verb(const struct lnxctl *c)
{
	const char *state = lnxctl_value(c, "state");

	if (lnxctl_value(c, "health"))
		return "once";
	return lnxctl_value(c, "auto") || (state && !strcmp(state, "up")) ? "auto" :
									    "set";
}

const char *lnxctl_health_value(const struct lnxctl *c, char *buf, size_t size)
{
	const char *value = lnxctl_value(c, "health");

	if (!value)
		value = lnxctl_value(c, "pin");
	if (!strcmp(lnxctl_health_verb(c), "auto"))
		buf[0] = '\0';
	else
		snprintf(buf, size, " %s", value ? value : "0");
	return buf;
}
