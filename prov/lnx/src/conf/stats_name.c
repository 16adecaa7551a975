/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Expands FI_LNX_STATS_FILE.  See stats_name.h. */
#include "conf/stats_name.h"

#include <errno.h>
#include <stdio.h>

#include "base/out.h"

int lnx_stats_name(const char *name, pid_t pid, const char *host, const char *rank,
		   char path[PATH_MAX], const char **why)
{
	struct lnx_out o = { .buf = path, .size = PATH_MAX };

	path[0] = '\0';
	for (; *name; name++) {
		if (*name != '%') {
			lnx_out(&o, "%c", *name);
			continue;
		}
		switch (*++name) {
		case 'p':
			lnx_out(&o, "%d", (int)pid);
			break;
		case 'h':
			lnx_out(&o, "%s", host);
			break;
		case 'r':
			lnx_out(&o, "%s", *rank ? rank : "none");
			break;
		case '%':
			lnx_out(&o, "%%");
			break;
		default:
			*why = "behind % there must be p, h, r or %";
			return -EINVAL;
		}
	}
	if (o.n < o.size)
		return 0;
	*why = "the name is too long";
	return -EINVAL;
}
