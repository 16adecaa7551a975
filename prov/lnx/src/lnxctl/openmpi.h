/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings of Open MPI that keep it from lnx.  It obeys them without a word and uses another
 * transport: that of a name that fits no provider, too.
 */
#ifndef LNXCTL_OPENMPI_H
#define LNXCTL_OPENMPI_H

#include "lnxctl/doc.h"

/*
 * Look at the variables OMPI_MCA_..., at --mca of a command that is mpirun (NULL: there is
 * none), and at Open MPI's files.  What is set goes into env, by its name.  problem gets a
 * sentence, with the cure, for each setting that keeps Open MPI from lnx.  Those of files
 * count only if something shows that Open MPI is used at all: a variable or mpirun.
 */
void lnxctl_openmpi(char *const env[], char *const command[], struct lnx_doc *map,
		    void (*problem)(void *arg, const char *sentence), void *arg);

#endif
