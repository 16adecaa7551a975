/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time and memory for inserting -N peers that do not exist.  One rank.  The
 * addresses are made from the endpoint's own.  With -m local, addresses of lnx
 * claim to be on this host, otherwise on others, with 64 peers each.  Prints
 * two lines: av_insert (ns per peer) and av_memory (resident bytes per peer).
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	double ns[1], bytes[1], t0;
	struct ft_cfg cfg = { .caps = FI_MSG | FI_TAGGED };
	unsigned char *names;
	static struct ft ft;
	fi_addr_t *addr;
	uint64_t i, n;
	int ret;

	ft_init(&ft, argc, argv, "cost of peers in an address vector (-N "
		"peers)", 1);
	if (ft.n != 1)
		ft_die(&ft, "one rank is enough");
	n = ft.run->arg ? ft.run->arg : 1000;
	ret = ft_open(&ft, &cfg);
	if (ret) {
		fprintf(stderr, "# %s\n", ft.why);
		return ret == -FI_ENODATA ? 77 : 1;
	}
	names = malloc(n * ft.o.name_len);
	addr = malloc(n * sizeof(*addr));
	if (!names || !addr)
		ft_die(&ft, "out of memory");
	for (i = 0; i < n; i++) {
		if (ft_fake_name(&ft, i, !strcmp(ft.run->mode, "local"),
				 names + i * ft.o.name_len))
			ft_die(&ft, "no way known to make addresses of %zu "
			       "bytes", ft.o.name_len);
		addr[i] = 0;			/* touch the memory */
	}
	bytes[0] = resident_bytes();
	t0 = ft_now();
	for (i = 0; i < n; i++) {
		ret = fi_av_insert(ft.o.av, names + i * ft.o.name_len, 1,
				   &addr[i], 0, NULL);
		if (ret != 1)
			ft_die(&ft, "fi_av_insert of peer %llu returned %d",
			       (unsigned long long)i, ret);
	}
	ns[0] = (ft_now() - t0) / (double)n * 1e9;
	bytes[0] = (resident_bytes() - bytes[0]) / (double)n;
	bench_print(&ft, "av_insert", n, ns, 1);
	bench_print(&ft, "av_memory", n, bytes, 1);
	if (ft_close(&ft))
		ft_die(&ft, "%s", ft.why);
	ft_fini(&ft);
	free(names);
	free(addr);
	return 0;
}
