/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where things are in the machine: NUMA nodes, their distances, and the node of a PCI
 * device.  What hwloc knows of this is copied into a few tables; hwloc is loaded only
 * for that, and only when needed.  Without hwloc, or where it knows nothing, everything
 * is equally near.
 */
#ifndef LNX_TOPO_H
#define LNX_TOPO_H

#include <stdbool.h>
#include <stdint.h>

struct lnx_topo;

struct lnx_pci {
	uint32_t domain;
	uint8_t bus, dev, func;
};

/* Distances as firmware states them: 10 inside a node. */
#define LNX_TOPO_NEAR	10
#define LNX_TOPO_AWAY	12		/* same package, if firmware does not tell */
#define LNX_TOPO_FAR	20		/* another one, if firmware does not tell */

/*
 * Read this machine, or the one in an XML file of hwloc.  0; -ENOSYS: there is no
 * hwloc; or another negative errno.  The result is heap memory for lnx_topo_free.
 */
int lnx_topo_load(const char *xml, struct lnx_topo **topo);
void lnx_topo_free(struct lnx_topo *topo);

/*
 * This machine, read at the first call (tens of ms), then shared by all endpoints of
 * the process until lnx_topo_fini.  NULL when it cannot be read.  Any thread.
 */
const struct lnx_topo *lnx_topo_get(void);
/* When libfabric unloads us: it is not used any more. */
void lnx_topo_fini(void);
/* Has this machine more than one NUMA node?  Without loading anything. */
bool lnx_topo_numa(void);

/* Places are sets of NUMA nodes, a bit for each; 0: unknown.  topo may be NULL. */
uint64_t lnx_topo_of_pci(const struct lnx_topo *topo, const struct lnx_pci *pci);
/* Of a logical CPU, by its number in the operating system. */
uint64_t lnx_topo_of_cpu(const struct lnx_topo *topo, unsigned cpu);
/*
 * Of the calling thread: the node it is bound to, or if it is bound to several, the one
 * it runs on now.
 */
uint64_t lnx_topo_of_thread(const struct lnx_topo *topo);
/* Between the nearest two nodes of both sets; LNX_TOPO_NEAR when one is unknown. */
uint32_t lnx_topo_distance(const struct lnx_topo *topo, uint64_t a, uint64_t b);

#endif
