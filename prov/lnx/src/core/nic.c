/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads the PCI address, speed and NUMA node of a network device.  See nic.h. */
#include "core/nic.h"

#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOWER_MAX	8		/* interfaces stacked on each other */
#define MBIT		1000000ull

/* A name that cannot lead out of its directory. */
static bool plain_name(const char *name)
{
	return name && *name && *name != '.' && !strchr(name, '/') &&
	       strlen(name) < NAME_MAX;
}

/* The number at the start of a file; 0 if there is none, or a negative one. */
static double read_number(const char *sysfs, const char *class,
			  const char *name, const char *file)
{
	char path[PATH_MAX];
	double v = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/class/%s/%s/%s", sysfs, class,
		     name, file) >= (int)sizeof(path))
		return 0;
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* More than 1e12 Mbit/s cannot be right. */
	if (fscanf(f, "%31lf", &v) != 1 || !(v > 0 && v < 1e12))
		v = 0;
	fclose(f);
	return v;
}

/*
 * Is there an interface of that name, and is it not the one in our network?  That
 * happens when sysfs is that of another network name space.
 */
static bool foreign(const char *sysfs, const char *name)
{
	double index = read_number(sysfs, "net", name, "ifindex");

	return index > 0 && index != if_nametoindex(name);
}

/* ---- PCI address ---- */

/* "0000:81:00.1", all of it. */
static bool parse_pci(const char *text, size_t len, struct lnx_pci *pci)
{
	unsigned domain, bus, dev, func;
	char copy[24];
	int end = 0;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (sscanf(copy, "%8x:%2x:%2x.%1x%n", &domain, &bus, &dev, &func,
		   &end) != 4 || (size_t)end != len || dev > 31 || func > 7)
		return false;
	*pci = (struct lnx_pci){ .domain = domain, .bus = (uint8_t)bus,
				 .dev = (uint8_t)dev, .func = (uint8_t)func };
	return true;
}

/* The last PCI device in a device's path: virtio has one more directory. */
static bool pci_of_path(const char *path, struct lnx_pci *pci)
{
	const char *end = path + strlen(path), *start;

	for (; end > path; end = start - 1) {
		for (start = end; start > path && start[-1] != '/';)
			start--;
		if (parse_pci(start, (size_t)(end - start), pci))
			return true;
		if (start == path)
			break;
	}
	return false;
}

static bool pci_of_device(const char *sysfs, const char *class,
			  const char *name, struct lnx_pci *pci)
{
	char link[PATH_MAX], path[PATH_MAX];

	if (snprintf(link, sizeof(link), "%s/class/%s/%s/device", sysfs, class,
		     name) >= (int)sizeof(link) || !realpath(link, path))
		return false;
	return pci_of_path(path, pci);
}

/* The one interface below a virtual one.  False when there is none, or several. */
static bool lower(const char *sysfs, const char *name, char *out, size_t size)
{
	static const char prefix[] = "lower_";
	char path[PATH_MAX];
	struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/class/net/%s", sysfs, name) >=
	    (int)sizeof(path))
		return false;
	dir = opendir(path);
	if (!dir)
		return false;
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1))
			continue;
		n++;
		snprintf(out, size, "%s", e->d_name + sizeof(prefix) - 1);
	}
	closedir(dir);
	return n == 1 && plain_name(out);
}

static bool find_pci(const char *sysfs, const char *name, struct lnx_pci *pci)
{
	char one[NAME_MAX + 1], next[NAME_MAX + 1];
	unsigned depth;

	if (pci_of_device(sysfs, "infiniband", name, pci))
		return true;
	snprintf(one, sizeof(one), "%s", name);
	for (depth = 0; depth < LOWER_MAX; depth++) {
		if (pci_of_device(sysfs, "net", one, pci))
			return true;
		if (!lower(sysfs, one, next, sizeof(next)))
			return false;
		memcpy(one, next, sizeof(one));
	}
	return false;
}

/* ---- speed ---- */

static uint64_t find_bps(const char *sysfs, const char *name)
{
	/* In Mbit/s. */
	double v = read_number(sysfs, "net", name, "speed");

	if (v > 0)
		return (uint64_t)v * MBIT;
	/* "100 Gb/sec (4X EDR)" */
	v = read_number(sysfs, "infiniband", name, "ports/1/rate");
	return v < 1e6 ? (uint64_t)(v * 1000) * MBIT : 0;
}

void lnx_nic_find(const struct fi_info *info, const char *sysfs,
		  struct lnx_nic *nic)
{
	const struct fid_nic *fid = info->nic;
	const char *name = info->domain_attr ? info->domain_attr->name : NULL;

	memset(nic, 0, sizeof(*nic));
	if (fid && fid->bus_attr && fid->bus_attr->bus_type == FI_BUS_PCI) {
		const struct fi_pci_attr *a = &fid->bus_attr->attr.pci;

		nic->has_pci = true;
		nic->pci = (struct lnx_pci){
			.domain = a->domain_id, .bus = a->bus_id,
			.dev = a->device_id, .func = a->function_id,
		};
	}
	if (fid && fid->link_attr)
		nic->bps = fid->link_attr->speed;
	if (!plain_name(name) || foreign(sysfs, name))
		return;
	if (!nic->has_pci)
		nic->has_pci = find_pci(sysfs, name, &nic->pci);
	if (!nic->bps)
		nic->bps = find_bps(sysfs, name);
}

void lnx_nics_place(struct lnx_ep *ep)
{
	struct lnx_nic nic[LNX_RAILS_MAX];
	unsigned i, nnet = 0, known = 0;
	const struct lnx_topo *topo;
	uint64_t here;

	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		rail->numa = LNX_TOPO_NEAR;
		nic[i].has_pci = false;
		if (lnx_rail_kind_local(rail->kind))
			continue;
		lnx_nic_find(rail->info, "/sys", &nic[i]);
		rail->link_bps = nic[i].bps;
		known += nic[i].has_pci;
		nnet++;
	}
	if (nnet < 2 || !known || !lnx_topo_numa())
		return;
	topo = lnx_topo_get();
	here = lnx_topo_of_thread(topo);
	for (i = 0; i < ep->nrail; i++) {
		struct lnx_rail *rail = ep->rail[i];

		if (!nic[i].has_pci)
			continue;
		rail->numa = lnx_topo_distance(topo, here,
					lnx_topo_of_pci(topo, &nic[i].pci));
		LNX_INFO(FI_LOG_EP_CTRL,
			 "rail %s: NUMA distance %u from this thread\n",
			 rail->name, rail->numa);
	}
}
