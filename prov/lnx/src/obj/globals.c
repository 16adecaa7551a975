/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The provider, its parameters and what else the process has once; written by prov.c. */
#include "prov.h"

#include "fi.h"

/*
 * libfabric has a built-in provider of our name, and the one with the higher version is
 * kept.  Its version grows with each release; ours is larger than it can get.
 */
#define PROV_VERSION	FI_VERSION(60000, 0)

/* prov.c adds the calls when libfabric loads us. */
struct fi_provider lnx_prov = {
	.version = PROV_VERSION,
	.name = "lnx",
};

struct lnx_globals lnx_globals;

const struct lnx_conf *lnx_global_config(void)
{
	return &lnx_globals.conf;
}

const struct lnx_config *lnx_global_config_file(void)
{
	return lnx_globals.config;
}

const char *lnx_global_config_error(void)
{
	return lnx_globals.config_error;
}

const char *lnx_global_provider_filter(void)
{
	return lnx_globals.filter;
}

bool lnx_global_named_in_filter(void)
{
	return lnx_globals.named_in_filter;
}

const char *lnx_global_job_rank(void)
{
	return lnx_globals.rank;
}

const char *lnx_global_job_id(void)
{
	return lnx_globals.job;
}
