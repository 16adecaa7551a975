/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What prov.c sets when libfabric loads us; constant from then on. */
#ifndef LNX_PROV_H
#define LNX_PROV_H

#include <stdbool.h>

#include "conf/conf.h"

/* Written by prov.c alone; others use the functions below. */
extern struct lnx_globals {
	struct lnx_conf conf;
	char *filter;			/* owned; NULL: FI_PROVIDER is not set */
	bool named_in_filter;
	char rank[16];
	char job[128];
	struct lnx_config *config;	/* owned; NULL: there is no configuration file */
	char *config_error;		/* owned; NULL: it could be read */
} lnx_globals;

/* The parameters.  Any thread; valid until libfabric unloads us. */
const struct lnx_conf *lnx_global_config(void);

/* The configuration file (conf/config.h), or NULL; and the sentence that says why it could
 * not be read, or NULL.  As above. */
struct lnx_config;
const struct lnx_config *lnx_global_config_file(void);
const char *lnx_global_config_error(void);

/*
 * FI_PROVIDER as libfabric read it (environment or libfabric.conf), or NULL.
 * For messages only.
 */
const char *lnx_global_provider_filter(void);

/* FI_PROVIDER is a list of providers to use, and lnx is one of them. */
bool lnx_global_named_in_filter(void);

/* The rank of this process in its job, as digits; "" if no launcher tells it. */
const char *lnx_global_job_rank(void);

/* The id of its job; "" if it is not known.  Printable ASCII. */
const char *lnx_global_job_id(void);

#endif
