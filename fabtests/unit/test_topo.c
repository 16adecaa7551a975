/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Machines saved in topo/, which is found below $top_srcdir or from the current
 * directory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nic.h"
#include "os/topo.h"

/* ---- machines ---- */

static struct lnx_topo *machine(const char *name)
{
	const char *top = getenv("top_srcdir");
	struct lnx_topo *topo = NULL;
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/fabtests/unit/topo/%s.xml",
		 top ? top : ".", name);
	cr_assert_eq(access(path, R_OK), 0, "%s: %s; set top_srcdir", path,
		     strerror(errno));
	ret = lnx_topo_load(path, &topo);
	if (ret == -ENOSYS)
		cr_skip_test("there is no hwloc");
	cr_assert_eq(ret, 0, "%s: %s", path, strerror(-ret));
	return topo;
}

static struct lnx_pci pci(const char *text)
{
	unsigned domain, bus, dev, func;

	cr_assert_eq(sscanf(text, "%x:%x:%x.%x", &domain, &bus, &dev, &func),
		     4);
	return (struct lnx_pci){ .domain = domain, .bus = (uint8_t)bus,
				 .dev = (uint8_t)dev, .func = (uint8_t)func };
}

static uint64_t place(const struct lnx_topo *topo, const char *text)
{
	struct lnx_pci p = pci(text);

	return lnx_topo_of_pci(topo, &p);
}

static uint32_t away(const struct lnx_topo *topo, unsigned cpu,
		     const char *text)
{
	return lnx_topo_distance(topo, lnx_topo_of_cpu(topo, cpu),
				 place(topo, text));
}

struct far {
	unsigned cpu;
	const char *nic;
	uint32_t distance;
};

static void check(const char *name, const struct far *f, size_t n)
{
	struct lnx_topo *topo = machine(name);

	for (; n--; f++)
		cr_expect_eq(away(topo, f->cpu, f->nic), f->distance,
			     "%s: CPU %u to %s: %u", name, f->cpu, f->nic,
			     away(topo, f->cpu, f->nic));
	lnx_topo_free(topo);
}
#define CHECK(name, ...) do { \
	const struct far list_[] = { __VA_ARGS__ }; \
	check(name, list_, LNX_ARRAY_SIZE(list_)); \
} while (0)

Test(topo, two_nics)
{
	CHECK("dual2",
	      { 0, "0:11:0.0", 10 }, { 1, "0:11:0.0", 10 },
	      { 2, "0:11:0.0", 21 }, { 3, "0:31:0.0", 10 },
	      { 0, "0:31:0.0", 21 },
	      /* Firmware does not say where it is: all CPUs are equally near. */
	      { 0, "0:5:0.0", 10 }, { 2, "0:5:0.0", 10 },
	      /* The device does not exist; nor does the CPU. */
	      { 0, "0:77:0.0", 10 }, { 4, "0:11:0.0", 10 },
	      { 4000000000u, "0:11:0.0", 10 });
}

/* CPUs alternate between the sockets, and there is no table of distances. */
Test(topo, four_nics)
{
	CHECK("dual4",
	      { 0, "0:41:0.0", 10 }, { 2, "0:41:0.1", 10 },
	      { 1, "0:41:0.0", 20 }, { 3, "0:41:0.1", 20 },
	      { 1, "0:81:0.0", 10 }, { 3, "0:91:0.0", 10 },
	      { 0, "0:81:0.0", 20 }, { 2, "0:91:0.0", 20 });
}

/* Packages with two nodes; each node has its own PCI domain. */
Test(topo, eight_nics)
{
	static const uint32_t want[4][4] = {
		{ 10, 12, 21, 22 }, { 12, 10, 22, 21 },
		{ 21, 22, 10, 12 }, { 22, 21, 12, 10 },
	};
	struct lnx_topo *topo = machine("dual8");

	for (unsigned cpu = 0; cpu < 8; cpu++) {
		for (unsigned nic = 0; nic < 8; nic++) {
			unsigned node = nic / 2;
			char text[32];

			sprintf(text, "%x:%x:0.0", node, 0x11 + 0x20 * node +
				nic % 2);
			cr_expect_eq(place(topo, text), 1u << node);
			cr_expect_eq(away(topo, cpu, text),
				     want[cpu / 2][node]);
			/* The same address in another PCI domain. */
			text[0] = '7';
			cr_expect_eq(place(topo, text), 0);
		}
	}
	lnx_topo_free(topo);
}

Test(topo, gpus)
{
	struct lnx_topo *topo = machine("gpu");

	/* Behind a switch, beside it, and behind the other switch of the socket. */
	cr_expect_eq(place(topo, "0:3:0.0"), 1);
	cr_expect_eq(place(topo, "0:4:0.0"), 1);
	cr_expect_eq(place(topo, "0:30:0.0"), 1);
	cr_expect_eq(place(topo, "0:24:0.0"), 1);
	/* The other socket; and none. */
	cr_expect_eq(place(topo, "0:84:0.0"), 2);
	cr_expect_eq(place(topo, "0:99:0.0"), 0);
	cr_expect_eq(away(topo, 0, "0:24:0.0"), 10);
	cr_expect_eq(away(topo, 0, "0:a4:0.0"), 32);
	lnx_topo_free(topo);
}

Test(topo, sets_of_nodes)
{
	struct lnx_topo *topo = machine("dual8");

	/* The nearest two nodes count. */
	cr_expect_eq(lnx_topo_distance(topo, 1, 2 | 8), 12);
	cr_expect_eq(lnx_topo_distance(topo, 1, 4 | 8), 21);
	cr_expect_eq(lnx_topo_distance(topo, 1 | 2, 2 | 4), 10);
	cr_expect_eq(lnx_topo_distance(topo, 0, 4), LNX_TOPO_NEAR);
	cr_expect_eq(lnx_topo_distance(topo, 4, 0), LNX_TOPO_NEAR);
	/* Nodes that do not exist. */
	cr_expect_eq(lnx_topo_distance(topo, 1ull << 63, 1), LNX_TOPO_NEAR);
	lnx_topo_free(topo);
}

Test(topo, nothing_known)
{
	struct lnx_pci p = pci("0:3:0.0");

	cr_expect_eq(lnx_topo_of_pci(NULL, &p), 0);
	cr_expect_eq(lnx_topo_of_cpu(NULL, 0), 0);
	cr_expect_eq(lnx_topo_of_thread(NULL), 0);
	cr_expect_eq(lnx_topo_distance(NULL, 1, 2), LNX_TOPO_NEAR);
	lnx_topo_free(NULL);
}

Test(topo, files_that_are_none)
{
	struct lnx_topo *topo = (void *)&topo;
	char path[] = "/tmp/lnx-topo-XXXXXX";
	int fd, ret = lnx_topo_load("/nonexistent/machine.xml", &topo);

	cr_expect_lt(ret, 0);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_expect_eq(write(fd, "<topology version=\"2.0\"><ob", 27), 27);
	close(fd);
	cr_expect_lt(lnx_topo_load(path, &topo), 0);
	unlink(path);
	cr_expect_eq(topo, (void *)&topo, "was set");
}

/* This machine: read once, and again after it was freed. */
Test(topo, this_machine)
{
	const struct lnx_topo *topo = lnx_topo_get();
	uint64_t here;

	if (!topo)
		cr_skip_test("there is no hwloc");
	cr_expect_eq(lnx_topo_get(), topo);
	here = lnx_topo_of_thread(topo);
	cr_expect(here && !(here & (here - 1)), "this thread has no node");
	cr_expect_eq(lnx_topo_distance(topo, here, here), LNX_TOPO_NEAR);
	lnx_topo_fini();
	cr_expect_not_null(lnx_topo_get());
	lnx_topo_fini();
}

/* A bound thread is where it is bound. */
Test(topo, bound_thread)
{
	struct lnx_topo *topo = machine("dual2");
	cpu_set_t all, one;
	int cpu;

	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	for (cpu = 0; cpu < 4; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		cr_expect_eq(lnx_topo_of_thread(topo), 1u << cpu / 2);
	}
	sched_setaffinity(0, sizeof(all), &all);
	lnx_topo_free(topo);
}

/* ---- devices of interfaces ---- */

static char root[] = "/tmp/lnx-sysfs-XXXXXX";

static void begin(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static int drop(const char *path, const struct stat *st, int type,
		struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void end(void)
{
	nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make the directories of a path below root, and return the whole path. */
static char *below(const char *fmt, ...)
{
	static char path[4096];
	va_list ap;
	size_t n;
	char *c;

	n = (size_t)snprintf(path, sizeof(path), "%s/", root);
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, ap);
	va_end(ap);
	for (c = path + n; (c = strchr(c, '/')); c++) {
		*c = '\0';
		mkdir(path, 0700);
		*c = '/';
	}
	return path;
}

static void text_file(const char *name, const char *text)
{
	FILE *f = fopen(below("%s", name), "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void device(const char *name, const char *path)
{
	char target[4096];

	snprintf(target, sizeof(target), "%s", below("devices/%s/x", path));
	target[strlen(target) - 2] = '\0';
	cr_assert_eq(symlink(target, below("class/%s/device", name)), 0);
}

static struct lnx_nic found(const char *name, struct fid_nic *fid)
{
	struct fi_domain_attr dom = { .name = (char *)(uintptr_t)name };
	struct fi_info info = { .domain_attr = &dom, .nic = fid };
	struct lnx_nic nic;

	memset(&nic, 0x77, sizeof(nic));
	lnx_nic_find(&info, root, &nic);
	return nic;
}

static void expect_nic(const char *name, const char *where, uint64_t bps)
{
	struct lnx_nic nic = found(name, NULL);
	char text[32] = "";

	if (nic.has_pci)
		sprintf(text, "%04x:%02x:%02x.%u", nic.pci.domain,
			nic.pci.bus, nic.pci.dev, nic.pci.func);
	cr_expect_str_eq(text, where, "%s: [%s], not [%s]", name, text, where);
	cr_expect_eq(nic.bps, bps, "%s: %lu", name, (unsigned long)nic.bps);
}

Test(topo, interfaces, .init = begin, .fini = end)
{
	device("net/eth0", "pci0000:00/0000:00:01.0/0000:81:00.1");
	text_file("class/net/eth0/speed", "100000\n");
	device("net/eth1", "pci0000:00/0000:00:03.0/virtio0");
	text_file("class/net/eth1/speed", "-1\n");
	device("net/dom", "pci10001:00/10001:02:1f.7");
	device("net/usb0", "platform/soc/usb1/1-1");
	text_file("class/net/veth0/speed", "10000\n");
	text_file("class/net/odd/speed", "many\n");
	device("infiniband/mlx5_0", "pci0000:c0/0000:c1:00.0");
	text_file("class/infiniband/mlx5_0/ports/1/rate",
		  "200 Gb/sec (4X HDR)\n");
	text_file("class/infiniband/qib0/ports/1/rate", "2.5 Gb/sec\n");

	expect_nic("eth0", "0000:81:00.1", 100000000000);
	expect_nic("eth1", "0000:00:03.0", 0);
	expect_nic("dom", "10001:02:1f.7", 0);
	expect_nic("usb0", "", 0);
	expect_nic("veth0", "", 10000000000);
	expect_nic("odd", "", 0);
	expect_nic("none", "", 0);
	expect_nic("mlx5_0", "0000:c1:00.0", 200000000000);
	expect_nic("qib0", "", 2500000000);
	/* Links that lead elsewhere, or nowhere. */
	expect_nic("../net/eth0", "", 0);
	expect_nic("..", "", 0);
	expect_nic("", "", 0);
	expect_nic(NULL, "", 0);
}

Test(topo, interfaces_upon_others, .init = begin, .fini = end)
{
	device("net/eth0", "pci0000:00/0000:81:00.0");
	device("net/eth1", "pci0000:00/0000:82:00.0");
	text_file("class/net/vlan5/lower_eth0", "");
	text_file("class/net/br0/lower_vlan5", "");
	text_file("class/net/br0/speed", "25000");
	text_file("class/net/bond0/lower_eth0", "");
	text_file("class/net/bond0/lower_eth1", "");
	/* A cycle. */
	text_file("class/net/a/lower_b", "");
	text_file("class/net/b/lower_a", "");

	expect_nic("vlan5", "0000:81:00.0", 0);
	expect_nic("br0", "0000:81:00.0", 25000000000);
	expect_nic("bond0", "", 0);
	expect_nic("a", "", 0);
}

/* An interface of the network, and one that only has the same name. */
Test(topo, interfaces_of_others, .init = begin, .fini = end)
{
	char index[16];

	if (!if_nametoindex("lo"))
		cr_skip_test("there is no interface lo");
	sprintf(index, "%u\n", if_nametoindex("lo"));
	device("net/lo", "pci0000:00/0000:81:00.0");
	text_file("class/net/lo/speed", "1000");
	text_file("class/net/lo/ifindex", index);
	expect_nic("lo", "0000:81:00.0", 1000000000);
	text_file("class/net/lo/ifindex", "4711");
	expect_nic("lo", "", 0);
}

/* What the core reports comes before what the system reports. */
Test(topo, core_knows_its_nic, .init = begin, .fini = end)
{
	struct fi_bus_attr bus = {
		.bus_type = FI_BUS_PCI,
		.attr.pci = { .domain_id = 1, .bus_id = 2, .device_id = 3,
			      .function_id = 4 },
	};
	struct fi_link_attr link = { .speed = 400000000000 };
	struct fid_nic fid = { .bus_attr = &bus, .link_attr = &link };
	struct lnx_nic nic;

	device("net/eth0", "pci0000:00/0000:81:00.0");
	text_file("class/net/eth0/speed", "1000");
	nic = found("eth0", &fid);
	cr_expect(nic.has_pci);
	cr_expect_eq(nic.pci.domain, 1);
	cr_expect_eq(nic.pci.bus, 2);
	cr_expect_eq(nic.pci.dev, 3);
	cr_expect_eq(nic.pci.func, 4);
	cr_expect_eq(nic.bps, 400000000000);
	/* Each is used where the other has nothing. */
	bus.bus_type = FI_BUS_UNKNOWN;
	link.speed = 0;
	nic = found("eth0", &fid);
	cr_expect_eq(nic.pci.bus, 0x81);
	cr_expect_eq(nic.bps, 1000000000);
	fid.bus_attr = NULL;
	fid.link_attr = NULL;
	nic = found("eth0", &fid);
	cr_expect_eq(nic.pci.bus, 0x81);
	cr_expect_eq(nic.bps, 1000000000);
}
