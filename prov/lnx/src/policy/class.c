/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of failure classes.  See class.h. */
#include "policy/class.h"

#include <string.h>
#include <strings.h>

#include "base/stats.h"

const struct lnx_class_row lnx_class_rows[LNX_CLASS_COUNT] = {
	[LNX_CLASS_OK] = { "ok", "it went well", LNX_CHARGE_NONE, false },
#define LNX_CLASS(NAME, name, pays, sure, help) \
	[LNX_CLASS_##NAME] = { #name, help, LNX_CHARGE_##pays, sure },
#include "policy/classes.def"
#undef LNX_CLASS
};

const char *lnx_class_name(unsigned class)
{
	return class < LNX_CLASS_COUNT ? lnx_class_rows[class].name : "unknown";
}

int lnx_class_find(const char *name, size_t len)
{
	int i;

	for (i = 0; i < LNX_CLASS_COUNT; i++)
		if (strlen(lnx_class_rows[i].name) == len &&
		    !strncasecmp(lnx_class_rows[i].name, name, len))
			return i;
	return -1;
}

unsigned lnx_class_charges(unsigned class, unsigned nremote, bool to_self)
{
	unsigned pays;

	if (class == LNX_CLASS_OK || class >= LNX_CLASS_COUNT)
		return LNX_CHARGE_NONE;
	pays = lnx_class_rows[class].pays;
	if (to_self)
		return pays & LNX_CHARGE_LOCAL;
	if (nremote < 2)
		pays &= ~(unsigned)LNX_CHARGE_REMOTE;
	return pays | LNX_CHARGE_PATH;
}

void lnx_class_count(struct lnx_stats *stats, unsigned class)
{
	switch (class) {
#define LNX_CLASS(NAME, name, pays, sure, help) \
	case LNX_CLASS_##NAME: stats->name##_count++; break;
#include "policy/classes.def"
#undef LNX_CLASS
	}
}
