/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the machine's topology with hwloc.  See topo.h. */
#include "os/topo.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#ifdef HAVE_HWLOC
#include <hwloc.h>
#if HWLOC_API_VERSION >= 0x00020100 && HWLOC_API_VERSION < 0x00030000
#define USE_HWLOC
#endif
#endif

#define NODES_MAX	64		/* bits of a place; further nodes are unknown */

struct device {
	struct lnx_pci pci;
	uint64_t nodes;
};

struct lnx_topo {
	unsigned nnode;
	uint32_t os_index[NODES_MAX];
	uint32_t distance[NODES_MAX][NODES_MAX];
	unsigned ncpu;
	uint8_t *node_of_cpu;		/* index + 1; 0: none */
	unsigned ndevice;
	struct device *device;
};

/* ---- reading it with hwloc ---- */

#ifdef USE_HWLOC
#include <dlfcn.h>

/*
 * hwloc is opened by name and not linked: it loads plugins (OpenCL, GL) that processes
 * with one rail, or without lnx, do not need; and an application may have another
 * version of its own.
 */
#define HWLOC_FILE	"libhwloc.so.15"	/* of all releases 2.x */

#define HWLOC_CALLS(call) \
	call(get_api_version) \
	call(topology_init) \
	call(topology_destroy) \
	call(topology_set_all_types_filter) \
	call(topology_set_type_filter) \
	call(topology_set_components) \
	call(topology_set_xml) \
	call(topology_load) \
	call(get_nbobjs_by_depth) \
	call(get_obj_by_depth) \
	call(distances_get_by_depth) \
	call(distances_release) \
	call(bitmap_isset) \
	call(bitmap_first) \
	call(bitmap_next) \
	call(bitmap_last)

struct hwloc {
	void *file;
#define CALL(name) __typeof__(&hwloc_##name) name;
	HWLOC_CALLS(CALL)
#undef CALL
};

static int hwloc_open(struct hwloc *h)
{
	h->file = dlopen(HWLOC_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!h->file)
		return -ENOSYS;
#define CALL(name) \
	h->name = (__typeof__(&hwloc_##name))dlsym(h->file, "hwloc_" #name); \
	if (!h->name) \
		goto missing;
	HWLOC_CALLS(CALL)
#undef CALL
	if (h->get_api_version() >> 16 == HWLOC_API_VERSION >> 16)
		return 0;
missing:
	dlclose(h->file);
	return -ENOSYS;
}

/* Leave out all that is not needed below. */
static void trim(const struct hwloc *h, hwloc_topology_t t)
{
	/* x86 moves the calling thread over all CPUs; the others open devices. */
	static const char *const without[] = {
		"x86", "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero",
	};
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(without); i++)
		h->topology_set_components(t,
			HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, without[i]);
	h->topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	h->topology_set_type_filter(t, HWLOC_OBJ_PACKAGE,
				    HWLOC_TYPE_FILTER_KEEP_ALL);
	/* Where firmware splits packages, devices belong to the parts. */
	h->topology_set_type_filter(t, HWLOC_OBJ_GROUP,
				    HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
	h->topology_set_type_filter(t, HWLOC_OBJ_PCI_DEVICE,
				    HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

static hwloc_obj_t package_of(hwloc_obj_t obj)
{
	while (obj && obj->type != HWLOC_OBJ_PACKAGE)
		obj = obj->parent;
	return obj;
}

static int read_nodes(const struct hwloc *h, hwloc_topology_t t,
		      struct lnx_topo *topo)
{
	int n = h->get_nbobjs_by_depth(t, HWLOC_TYPE_DEPTH_NUMANODE);
	hwloc_obj_t node[NODES_MAX];
	unsigned i, j;
	int cpu, last = -1;

	topo->nnode = n < 0 ? 0 : LNX_MIN((unsigned)n, NODES_MAX);
	for (i = 0; i < topo->nnode; i++) {
		node[i] = h->get_obj_by_depth(t, HWLOC_TYPE_DEPTH_NUMANODE, i);
		topo->os_index[i] = node[i]->os_index;
		cpu = h->bitmap_last(node[i]->cpuset);
		last = LNX_MAX(last, cpu);
	}
	for (i = 0; i < topo->nnode; i++)
		for (j = 0; j < topo->nnode; j++)
			topo->distance[i][j] = i == j ? LNX_TOPO_NEAR :
				package_of(node[i]) &&
				package_of(node[i]) == package_of(node[j]) ?
				LNX_TOPO_AWAY : LNX_TOPO_FAR;
	topo->ncpu = (unsigned)(last + 1);
	topo->node_of_cpu = calloc(topo->ncpu + 1, 1);
	if (!topo->node_of_cpu)
		return -ENOMEM;
	/* Several nodes may have the same CPUs; plain memory comes first. */
	for (i = topo->nnode; i-- > 0;)
		for (cpu = h->bitmap_first(node[i]->cpuset); cpu >= 0;
		     cpu = h->bitmap_next(node[i]->cpuset, cpu))
			topo->node_of_cpu[cpu] = (uint8_t)(i + 1);
	return 0;
}

static void read_distances(const struct hwloc *h, hwloc_topology_t t,
			   struct lnx_topo *topo)
{
	struct hwloc_distances_s *d = NULL;
	unsigned n = 1, i, j;

	if (h->distances_get_by_depth(t, HWLOC_TYPE_DEPTH_NUMANODE, &n, &d,
				      HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ||
	    !n)
		return;
	for (i = 0; i < d->nbobjs; i++) {
		for (j = 0; j < d->nbobjs; j++) {
			unsigned a = d->objs[i]->logical_index;
			unsigned b = d->objs[j]->logical_index;
			uint64_t v = d->values[i * d->nbobjs + j];

			if (a < topo->nnode && b < topo->nnode)
				topo->distance[a][b] = (uint32_t)
					LNX_MIN(v, (uint64_t)UINT32_MAX);
		}
	}
	h->distances_release(t, d);
}

static uint64_t nodes_in(const struct hwloc *h, const struct lnx_topo *topo,
			 hwloc_obj_t obj)
{
	uint64_t set = 0;
	unsigned i;

	for (i = 0; obj->nodeset && i < topo->nnode; i++)
		if (h->bitmap_isset(obj->nodeset, topo->os_index[i]))
			set |= 1ull << i;
	return set;
}

static void read_device(const struct hwloc *h, const struct lnx_topo *topo,
			hwloc_obj_t obj, struct device *dev)
{
	uint64_t all = topo->nnode < 64 ? (1ull << topo->nnode) - 1 : ~0ull;

	dev->pci = (struct lnx_pci){
		.domain = obj->attr->pcidev.domain,
		.bus = obj->attr->pcidev.bus,
		.dev = obj->attr->pcidev.dev,
		.func = obj->attr->pcidev.func,
	};
	/* Normal objects have CPUs; the objects above a device have none. */
	for (obj = obj->parent; obj && !obj->cpuset; obj = obj->parent)
		;
	dev->nodes = obj ? nodes_in(h, topo, obj) : 0;
	/* Firmware that does not know gives all nodes. */
	if (dev->nodes == all && topo->nnode > 1)
		dev->nodes = 0;
}

static int read_devices(const struct hwloc *h, hwloc_topology_t t,
			struct lnx_topo *topo)
{
	int n = h->get_nbobjs_by_depth(t, HWLOC_TYPE_DEPTH_PCI_DEVICE);
	unsigned i;

	if (n <= 0)
		return 0;
	topo->device = calloc((size_t)n, sizeof(*topo->device));
	if (!topo->device)
		return -ENOMEM;
	topo->ndevice = (unsigned)n;
	for (i = 0; i < topo->ndevice; i++)
		read_device(h, topo,
			    h->get_obj_by_depth(t, HWLOC_TYPE_DEPTH_PCI_DEVICE,
						i), &topo->device[i]);
	return 0;
}

static int read_machine(const struct hwloc *h, const char *xml,
			struct lnx_topo *topo)
{
	hwloc_topology_t t;
	int ret;

	if (h->topology_init(&t))
		return -ENOMEM;
	trim(h, t);
	errno = 0;
	if ((xml && h->topology_set_xml(t, xml)) || h->topology_load(t)) {
		ret = errno ? -errno : -EINVAL;
	} else {
		ret = read_nodes(h, t, topo);
		if (!ret) {
			read_distances(h, t, topo);
			ret = read_devices(h, t, topo);
		}
	}
	h->topology_destroy(t);
	return ret;
}

int lnx_topo_load(const char *xml, struct lnx_topo **out)
{
	struct lnx_topo *topo = calloc(1, sizeof(*topo));
	struct hwloc h;
	int ret;

	if (!topo)
		return -ENOMEM;
	ret = hwloc_open(&h);
	if (!ret) {
		ret = read_machine(&h, xml, topo);
		dlclose(h.file);
	}
	if (ret) {
		lnx_topo_free(topo);
		return ret;
	}
	*out = topo;
	return 0;
}

#else
int lnx_topo_load(const char *xml, struct lnx_topo **out)
{
	(void)xml, (void)out;
	return -ENOSYS;
}
#endif

void lnx_topo_free(struct lnx_topo *topo)
{
	if (!topo)
		return;
	free(topo->node_of_cpu);
	free(topo->device);
	free(topo);
}

/* ---- the topology of this machine ---- */

static pthread_mutex_t machine_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lnx_topo *machine;
static bool asked;

const struct lnx_topo *lnx_topo_get(void)
{
	const struct lnx_topo *topo;

	pthread_mutex_lock(&machine_lock);
	/* Only once, also when it fails: the answer would be the same. */
	if (!asked && lnx_topo_load(NULL, &machine))
		machine = NULL;
	asked = true;
	topo = machine;
	pthread_mutex_unlock(&machine_lock);
	return topo;
}

void lnx_topo_fini(void)
{
	pthread_mutex_lock(&machine_lock);
	lnx_topo_free(machine);
	machine = NULL;
	asked = false;
	pthread_mutex_unlock(&machine_lock);
}

bool lnx_topo_numa(void)
{
	FILE *f = fopen("/sys/devices/system/node/online", "re");
	char text[64] = "";
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* "0" or "0-3" or "0,2". */
	return strpbrk(text, "-,") != NULL;
}

/* ---- places ---- */

static const struct device *find(const struct lnx_topo *topo,
				 const struct lnx_pci *pci)
{
	unsigned i;

	for (i = 0; topo && i < topo->ndevice; i++) {
		const struct lnx_pci *p = &topo->device[i].pci;

		if (p->domain == pci->domain && p->bus == pci->bus &&
		    p->dev == pci->dev && p->func == pci->func)
			return &topo->device[i];
	}
	return NULL;
}

uint64_t lnx_topo_of_pci(const struct lnx_topo *topo, const struct lnx_pci *pci)
{
	const struct device *dev = find(topo, pci);

	return dev ? dev->nodes : 0;
}

uint64_t lnx_topo_of_cpu(const struct lnx_topo *topo, unsigned cpu)
{
	if (!topo || cpu >= topo->ncpu || !topo->node_of_cpu[cpu])
		return 0;
	return 1ull << (topo->node_of_cpu[cpu] - 1);
}

uint64_t lnx_topo_of_thread(const struct lnx_topo *topo)
{
	unsigned long mask[128];	/* no kernel has more CPUs */
	uint64_t nodes = 0;
	unsigned cpu;
	int now;

	if (!topo)
		return 0;
	memset(mask, 0, sizeof(mask));
	/* The mask is of unsigned longs; a kernel with fewer CPUs fills less. */
	if (!sched_getaffinity(0, sizeof(mask), (cpu_set_t *)mask))
		for (cpu = 0; cpu < LNX_MIN(topo->ncpu, 8 * sizeof(mask)); cpu++)
			if (mask[cpu / 64] >> (cpu % 64) & 1)
				nodes |= lnx_topo_of_cpu(topo, cpu);
	if (nodes && !(nodes & (nodes - 1)))
		return nodes;
	now = sched_getcpu();
	return now < 0 ? 0 : lnx_topo_of_cpu(topo, (unsigned)now);
}

/* ---- distances ---- */

uint32_t lnx_topo_distance(const struct lnx_topo *topo, uint64_t a, uint64_t b)
{
	uint32_t least = UINT32_MAX;
	unsigned i, j;

	for (i = 0; topo && i < topo->nnode; i++)
		for (j = 0; j < topo->nnode && (a >> i & 1); j++)
			if (b >> j & 1)
				least = LNX_MIN(least, topo->distance[i][j]);
	return least == UINT32_MAX ? LNX_TOPO_NEAR : least;
}
