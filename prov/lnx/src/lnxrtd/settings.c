/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings of a gateway by their names. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lnxrtd/lnxrtd.h"

#define BUFFERS_MAX	(1u << 24)

struct setting {
	size_t at;			/* of the member */
	bool seconds;			/* it is a uint64_t of ns; else a uint32_t */
};

#define NUMBER(member)	{ offsetof(struct rtd_settings, member), false }
#define SECONDS(member)	{ offsetof(struct rtd_settings, member), true }

static const struct setting settings[RTD_SETTINGS] = {
	NUMBER(count[RTD_TINY]), NUMBER(count[RTD_SMALL]), NUMBER(count[RTD_LARGE]),
	[RTD_SETTING_LIMITS + LNX_CONFIG_GRANT_LARGE] = NUMBER(grant_large),
	[RTD_SETTING_LIMITS + LNX_CONFIG_GRANT_SMALL] = NUMBER(grant_small),
	[RTD_SETTING_LIMITS + LNX_CONFIG_FRAME_MAX] = NUMBER(frame_max),
	[RTD_SETTING_LIMITS + LNX_CONFIG_DESTINATIONS] = NUMBER(dests),
	[RTD_SETTING_LIMITS + LNX_CONFIG_SOURCES] = NUMBER(sources),
	[RTD_SETTING_LIMITS + LNX_CONFIG_CONNECTS] = NUMBER(connects),
	[RTD_SETTING_LIMITS + LNX_CONFIG_NOTES] = NUMBER(notes),
	[RTD_SETTING_LIMITS + LNX_CONFIG_IDLE] = SECONDS(idle_ns),
	[RTD_SETTING_LIMITS + LNX_CONFIG_CONNECT_TIMEOUT] = SECONDS(connect_ns),
	[RTD_SETTING_LIMITS + LNX_CONFIG_DRAIN] = SECONDS(drain_ns),
};

/* As the configuration has them. */
static struct lnx_config_limit range(unsigned i)
{
	static const char *const buffers[RTD_SETTING_LIMITS] = {
		"tiny_buffers", "small_buffers", "large_buffers",
	};

	if (i >= RTD_SETTING_LIMITS)
		return lnx_config_limits[i - RTD_SETTING_LIMITS];
	return (struct lnx_config_limit){ buffers[i], 1, BUFFERS_MAX };
}

const char *rtd_setting_name(unsigned i)
{
	return range(i).name;
}

uint64_t rtd_setting_value(const struct rtd_settings *s, unsigned i)
{
	const char *at = (const char *)s + settings[i].at;
	uint64_t ns;
	uint32_t n;

	if (settings[i].seconds) {
		memcpy(&ns, at, sizeof(ns));
		return ns / LNX_NS_PER_S;
	}
	memcpy(&n, at, sizeof(n));
	return n;
}

void rtd_setting_put(struct rtd_settings *s, unsigned i, uint32_t value)
{
	char *at = (char *)s + settings[i].at;
	uint64_t ns = value * LNX_NS_PER_S;

	if (settings[i].seconds)
		memcpy(at, &ns, sizeof(ns));
	else
		memcpy(at, &value, sizeof(value));
}

int rtd_setting_set(struct rtd_settings *s, const char *name, const char *value,
		    char why[RTD_WHY])
{
	size_t digits = strspn(value, "0123456789");
	struct lnx_config_limit l;
	unsigned i;
	uint64_t v;

	for (i = 0; i < RTD_SETTINGS && strcmp(rtd_setting_name(i), name); i++)
		;
	if (i == RTD_SETTINGS) {
		snprintf(why, RTD_WHY, "\"%.40s\": there is no such setting; \"gateway show\" "
			 "lists them", name);
		return -ENOENT;
	}
	l = range(i);
	if (!digits || digits > 10 || value[digits] ||
	    sscanf(value, "%" SCNu64, &v) != 1 || v < l.min || v > l.max) {
		snprintf(why, RTD_WHY, "%s \"%.20s\": must be a number from %u to %u", name,
			 value, l.min, l.max);
		return -EINVAL;
	}
	rtd_setting_put(s, i, (uint32_t)v);
	return 0;
}
