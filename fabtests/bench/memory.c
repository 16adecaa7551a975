/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resident memory of an endpoint with its CQ, AV and domain, and with one
 * receive posted, because some providers allocate memory for receives with the
 * first one.  One rank; the mean of -N endpoints (8) after a first one, which
 * includes what a process allocates once.  Prints one line: endpoint_memory.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX	64

static double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return (double)pages * 4096;
}

int main(int argc, char **argv)
{
	struct ft_cfg cfg = { .caps = FI_MSG | FI_TAGGED | FI_RMA };
	static struct fi_context2 ctx[MAX];
	static struct ft_objs more[MAX];
	static char room[8];
	static struct ft ft;
	double bytes[1];
	uint64_t i, n;
	int ret;

	ft_init(&ft, argc, argv, "memory of an endpoint (-N endpoints)", 1);
	n = ft.run->arg ? ft.run->arg : 8;
	if (ft.n != 1 || n > MAX)
		ft_die(&ft, "one rank and %d endpoints are enough", MAX);
	ret = ft_open(&ft, &cfg);
	if (ret) {
		fprintf(stderr, "# %s\n", ft.why);
		return ret == -FI_ENODATA ? 77 : 1;
	}
	bytes[0] = resident_bytes();
	for (i = 0; i < n; i++) {
		if (ft_objs_open(&ft, &cfg, &more[i]))
			ft_die(&ft, "%s", ft.why);
		ret = (int)fi_trecv(more[i].ep, room, sizeof(room), NULL,
				    FI_ADDR_UNSPEC, 0, 0, &ctx[i]);
		if (ret)
			ft_die(&ft, "fi_trecv: %s", fi_strerror(-ret));
	}
	bytes[0] = (resident_bytes() - bytes[0]) / (double)n;
	bench_print(&ft, "endpoint_memory", n, bytes, 1);
	for (i = 0; i < n; i++)
		if (ft_objs_close(&ft, &more[i]))
			ft_die(&ft, "%s", ft.why);
	if (ft_close(&ft))
		ft_die(&ft, "%s", ft.why);
	ft_fini(&ft);
	return 0;
}
