/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rank of this process, from the launcher's variables.  See rank.h. */
#include "conf/rank.h"

#include <stddef.h>
#include <string.h>

#define RANK_DIGITS	10

/* First the variables of the MPI launcher: those of a batch system describe the
 * launcher, if that started the processes itself. */
static const char *const in_job[] = {
	"OMPI_COMM_WORLD_RANK",		/* Open MPI */
	"PMIX_RANK",			/* PRRTE, Slurm with PMIx */
	"PMI_RANK",			/* MPICH, Intel MPI, Slurm with PMI-2 */
	"MV2_COMM_WORLD_RANK",		/* MVAPICH */
	"PALS_RANKID",			/* Cray */
	"FLUX_TASK_RANK",
	"SLURM_PROCID",
	NULL
};
static const char *const on_node[] = {
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"MPI_LOCALRANKID",		/* MPICH, Intel MPI */
	"SLURM_LOCALID",
	NULL
};

/* First those of batch systems, which users know. */
static const char *const job_ids[] = {
	"SLURM_JOB_ID",
	"PBS_JOBID",
	"LSB_JOBID",
	"FLUX_JOB_ID",
	"PALS_APID",
	"PMIX_NAMESPACE",
	NULL
};

static const char *value_of(char *const env[], const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* The first of these variables that is a number. */
static const char *first_of(char *const env[], const char *const names[])
{
	const char *value;
	size_t n;

	for (; *names; names++) {
		value = value_of(env, *names);
		n = value ? strspn(value, "0123456789") : 0;
		if (n && n <= RANK_DIGITS && !value[n])
			return value;
	}
	return NULL;
}

const char *lnx_rank(char *const env[])
{
	return first_of(env, in_job);
}

bool lnx_rank_speaks(char *const env[])
{
	const char *rank = first_of(env, in_job);

	if (!rank)
		rank = first_of(env, on_node);
	return !rank || !rank[strspn(rank, "0")];
}

const char *lnx_conf_job(char *const env[])
{
	const char *const *name, *value;

	for (name = job_ids; *name; name++) {
		value = value_of(env, *name);
		if (value && *value)
			return value;
	}
	return NULL;
}
