/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entry and exit: what libfabric calls when it loads and unloads us.  Everything here
 * runs once, inside fi_ini() and under its lock, so it may not call libfabric, except
 * for parameters and logging.
 */
#include "prov.h"
#include "tune.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/fabric.h"
#include "api/info.h"
#include "base/compiler.h"
#include "comp/comp.h"
#include "conf/config.h"
#include "core/catalog.h"
#include "core/key_pool.h"
#include "core/policy.h"
#include "core/warn_once.h"
#include "conf/rank.h"
#include "os/topo.h"
#include "ctl/state.h"
#include "ctl/stats_file.h"
#include "obj/peer_abi.h"
#include "fi.h"
#include "lnx_wire.h"

/* Parameters that a configuration file may have, at most. */
#define LNX_CONFIG_PARAMS	64u

static char **conf_env;			/* what conf was read from; owned */

/*
 * The types that libfabric is told.  It would accept neither our binary suffixes nor
 * our names, so everything except switches is text to it.
 */
static void define_params(void)
{
	char allowed[LNX_PARAM_ALLOWED_BYTES];

	for (size_t i = 0; i < lnx_nparams; i++) {
		const struct lnx_param *p = &lnx_params[i];

		fi_param_define(&lnx_prov, p->name,
				p->type == LNX_PARAM_BOOL ? FI_PARAM_BOOL :
							    FI_PARAM_STRING,
				"%s (%s; default: %s)", p->help,
				lnx_conf_allowed(p, allowed, sizeof(allowed)),
				*p->def ? p->def : "none");
	}
}

/* "FI_LNX_NAME=value", with the value that libfabric has; NULL when unset. */
static char *param_text(const struct lnx_param *p)
{
	char *value = NULL, *text = NULL;
	char name[64];
	int on, n;

	n = snprintf(name, sizeof(name), "FI_LNX_%s", p->name);
	for (int i = 0; i < n && name[i]; i++)
		if (name[i] >= 'a' && name[i] <= 'z')
			name[i] -= 'a' - 'A';

	/* libfabric would write the key to its log. */
	if (!strcmp(p->name, "job_key"))
		return NULL;
	if (p->type == LNX_PARAM_BOOL) {
		/* libfabric would warn of a bad value, and so do we. */
		if (getenv(name) ||
		    fi_param_get_bool(&lnx_prov, p->name, &on))
			return NULL;
		value = on ? "1" : "0";
	} else if (fi_param_get_str(&lnx_prov, p->name, &value) || !value) {
		return NULL;
	}
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return NULL;
	return text;
}

/* Kept until all is read: a later variable may say that no warnings are wanted. */
struct sentences {
	char **text;
	size_t n;
};

static void conf_warn(void *arg, const char *sentence)
{
	struct sentences *s = arg;
	char **more = realloc(s->text, (s->n + 1) * sizeof(*more));

	if (!more)
		return;
	s->text = more;
	s->text[s->n] = strdup(sentence);
	s->n += s->text[s->n] != NULL;
}

static void complain_all(struct sentences *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		lnx_warn_once(true, "%s", s->text[i]);
		free(s->text[i]);
	}
	free(s->text);
}

static void speak_up(const struct lnx_conf *c)
{
	const char *own = lnx_rank(environ);

	snprintf(lnx_globals.rank, sizeof(lnx_globals.rank), "%s", own ? own : "");
	own = lnx_conf_job(environ);
	lnx_warn_printable(own ? own : "", sizeof(lnx_globals.job), lnx_globals.job,
			   sizeof(lnx_globals.job));
	lnx_warn_aloud(!c->quiet && lnx_rank_speaks(environ));
}

static bool shm_cma_disabled(void)
{
	const char *text = getenv("FI_SHM_DISABLE_CMA");

	return text && *text && strcmp(text, "0") && strcasecmp(text, "no") &&
	       strcasecmp(text, "false") && strcasecmp(text, "off");
}

/*
 * Those of the parameters given that are not in the environment are in libfabric.conf, as the
 * first n of conf_env are, or in our configuration file.
 */
static void find_origin(struct lnx_conf *c, size_t n)
{
	bool here[LNX_CONF_ROWS] = { false }, early[LNX_CONF_ROWS] = { false };

	for (char **e = environ; e && *e; e++) {
		int i = lnx_conf_param_of(*e);

		if (i >= 0)
			here[i] = true;
	}
	for (size_t k = 0; k < n; k++) {
		int i = lnx_conf_find(conf_env[k], strcspn(conf_env[k], "="));

		if (i >= 0)
			early[i] = true;
	}
	for (size_t i = 0; i < LNX_CONF_ROWS; i++)
		if ((c->origin[i] & LNX_CONF_GIVEN) && !here[i])
			c->origin[i] |= early[i] ? LNX_CONF_IN_CONFIG : LNX_CONF_IN_FILE;
}

/*
 * Read the configuration file, and append its parameters to the n that there are: each
 * name counts where it is first.  An error is told when lnx is asked for something.
 */
static void read_config(size_t n)
{
	static const char name[] = "FI_LNX_CONFIG=";
	const char *path = NULL;
	char *more[LNX_CONFIG_PARAMS], why[LNX_REFUSAL_BYTES + 300];
	int count;

	for (size_t i = 0; i < n && !path; i++)
		if (!strncasecmp(conf_env[i], name, sizeof(name) - 1))
			path = conf_env[i] + sizeof(name) - 1;
	if (lnx_config_load(path && *path ? path : NULL, &lnx_globals.config, why,
			    sizeof(why))) {
		lnx_globals.config_error = strdup(why);
		return;
	}
	if (!lnx_globals.config)
		return;
	count = lnx_config_env(lnx_globals.config, more, LNX_CONFIG_PARAMS);
	for (int i = 0; i < count; i++) {
		conf_env[n] = strdup(more[i]);
		n += conf_env[n] != NULL;
	}
}

/*
 * First the values that libfabric has, because they may also come from libfabric.conf.
 * Then our part of the environment, which has values that libfabric would not accept,
 * and unknown names.  All is copied: the application may change its environment at any
 * time.
 */
static int read_conf(void)
{
	static const char prefix[] = "FI_LNX_";
	size_t room = lnx_nparams + LNX_CONFIG_PARAMS + 1, n = 0;
	struct sentences said = { 0 };

	for (char **e = environ; e && *e; e++)
		room++;
	conf_env = calloc(room, sizeof(*conf_env));
	if (!conf_env)
		return -FI_ENOMEM;

	for (size_t i = 0; i < lnx_nparams; i++) {
		conf_env[n] = param_text(&lnx_params[i]);
		if (conf_env[n])
			n++;
	}
	for (char **e = environ; e && *e; e++) {
		if (strncmp(*e, prefix, sizeof(prefix) - 1))
			continue;
		conf_env[n] = strdup(*e);
		if (conf_env[n])
			n++;
	}
	read_config(n);
	lnx_conf_read(&lnx_globals.conf, conf_env, conf_warn, &said);
	find_origin(&lnx_globals.conf, n);
	speak_up(&lnx_globals.conf);
	complain_all(&said);
	/* A user that forbids it to shm does not want us to do it. */
	if (shm_cma_disabled())
		lnx_globals.conf.disable_cma = true;
	return 0;
}

static void read_filter(void)
{
	char *text = NULL;
	const char *item;

	if (fi_param_get_str(NULL, "provider", &text) || !text)
		return;
	lnx_globals.filter = strdup(text);
	if (!lnx_globals.filter || *lnx_globals.filter == '^')
		return;
	for (item = lnx_globals.filter; ; item++) {
		size_t len = strcspn(item, ",");

		if (len == 3 && !strncasecmp(item, "lnx", 3))
			lnx_globals.named_in_filter = true;
		item += len;
		if (!*item)
			break;
	}
}

/* Only if lnx is going to be used. */
static void tune_cores(void)
{
	if (!lnx_globals.conf.prov_links && !lnx_globals.named_in_filter)
		return;
	lnx_tune_cores();
	if (lnx_globals.conf.prov_links &&
	    strcasestr(lnx_globals.conf.prov_links, "tcp;ofi_rxm"))
		lnx_tune_rxm();
}

static void cleanup(void)
{
	/* Endpoints that the application left open: no thread may run on. */
	lnx_threads_stop();
	lnx_state_fini();
	lnx_stats_file_fini();
	lnx_catalog_fini();
	lnx_topo_fini();
	lnx_key_pool_fini();
	lnx_warn_once_fini();
	if (conf_env)
		for (size_t i = 0; conf_env[i]; i++) {
			/* One of them may be FI_LNX_JOB_KEY. */
			explicit_bzero(conf_env[i], strlen(conf_env[i]));
			free(conf_env[i]);
		}
	free(conf_env);
	conf_env = NULL;
	memset(&lnx_globals.conf, 0, sizeof(lnx_globals.conf));
	lnx_config_destroy(lnx_globals.config);
	lnx_globals.config = NULL;
	free(lnx_globals.config_error);
	lnx_globals.config_error = NULL;
	free(lnx_globals.filter);
	lnx_globals.filter = NULL;
	lnx_globals.named_in_filter = false;
}

/* Before any parameter is defined: libfabric would keep the parameters of a module that
 * it unloads at once. */
static void stay_out(void)
{
	struct lnx_conf c;

	lnx_conf_read(&c, environ, NULL, NULL);
	speak_up(&c);
	lnx_warn_once(c.prov_links != NULL, "lnx was built for libfabric %u.%u "
		     "and was loaded into %u.%u; it needs %u.%u or newer and "
		     "stays out (the library may have an lnx of its own, "
		     "which then answers)",
		     FI_MAJOR_VERSION, FI_MINOR_VERSION,
		     FI_MAJOR(lnx_prov.fi_version),
		     FI_MINOR(lnx_prov.fi_version),
		     FI_MAJOR(LNX_PEER_ABI_OLDEST),
		     FI_MINOR(LNX_PEER_ABI_OLDEST));
}

/* fi_info shows PROV_VERSION, which does not tell the release. */
static void say_release(void)
{
	Dl_info where;

	if (!dladdr(&lnx_prov, &where) || !where.dli_fname)
		where.dli_fname = "(unknown)";
	LNX_INFO(FI_LOG_CORE, "lnx %s, %s, in libfabric %u.%u, wire version %d\n",
		 PACKAGE_VERSION, where.dli_fname, FI_MAJOR(lnx_prov.fi_version),
		 FI_MINOR(lnx_prov.fi_version), LNX_WIRE_VERSION);
}

FI_EXT_INI
{
	/* Until this is set libfabric does not call us for programs that use its newest
	 * interface. */
	lnx_prov.fi_version = fi_version();
	lnx_prov.getinfo = lnx_info_get;
	lnx_prov.fabric = lnx_fabric;
	lnx_prov.cleanup = cleanup;

	if (lnx_peer_abi_init(lnx_prov.fi_version)) {
		stay_out();
		return NULL;
	}
	define_params();
	if (read_conf())
		return NULL;
	read_filter();
	tune_cores();
	say_release();
	return &lnx_prov;
}
