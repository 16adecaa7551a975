/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parameters of a process that is started in the environment of lnxctl. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/conf.h"
#include "conf/config.h"
#include "lnxctl/lnxctl.h"

#define PARAMS_MAX	64u		/* of a file */

static bool is_given(const struct lnxctl *c, size_t row)
{
	char **e;

	for (e = c->env; *e; e++)
		if (lnx_conf_param_of(*e) == (int)row)
			return true;
	return false;
}

/* What conf points to is in the environment, or stays until lnxctl ends. */
int lnxctl_environment(struct lnxctl *c, struct lnx_conf *conf,
		       void (*warn)(void *arg, const char *sentence), void *arg)
{
	static const char name[] = "FI_LNX_CONFIG=", own[] = "FI_LNX_RECOVERY_PING_INTERVAL=";
	static struct lnx_config *file;
	static char **env;
	const char *path = NULL;
	char why[1024];
	size_t n, i;
	int bad, more = 0;

	for (n = 0; c->env[n]; n++)
		if (!strncmp(c->env[n], name, sizeof(name) - 1))
			path = c->env[n] + sizeof(name) - 1;
	bad = lnx_config_load(path && *path ? path : NULL, &file, why, sizeof(why)) != 0;
	if (bad)
		warn(arg, why);
	env = lnx_must(calloc(n + PARAMS_MAX + 1, sizeof(*env)));
	memcpy(env, c->env, n * sizeof(*env));
	/* libfabric gives lnx the names that it knows before all others. */
	for (i = 0; i < n; i++)
		if (!strncmp(env[i], own, sizeof(own) - 1)) {
			env[i] = env[0];
			env[0] = c->env[i];
			break;
		}
	/* Each name counts where it is first. */
	if (file)
		more = lnx_config_env(file, env + n, PARAMS_MAX);
	bad += lnx_conf_read(conf, env, warn, arg);
	for (i = 0; more > 0 && i < lnx_nparams; i++)
		if ((conf->origin[i] & LNX_CONF_GIVEN) && !is_given(c, i))
			conf->origin[i] |= LNX_CONF_IN_FILE;
	return bad;
}
