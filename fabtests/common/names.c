/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of peers that do not exist, for address vectors of any length; and addresses as
 * text, for scripts. */
#include "ft.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Offsets of the 8-byte identities of endpoint and host in lnx's address. */
#define LNX_ID_AT	8
#define LNX_HOST_AT	16
#define LNX_PEERS	64		/* of one host */

int ft_fake_name(struct ft *ft, uint64_t n, bool local, unsigned char *at)
{
	uint64_t seed = ft->run->seed, id;

	memcpy(at, ft->o.name, ft->o.name_len);
	if (ft->o.info->addr_format == FI_SOCKADDR_IN) {
		struct sockaddr_in sin;

		memcpy(&sin, at, sizeof(sin));
		sin.sin_port = htons((uint16_t)(1024 + n % 60000));
		sin.sin_addr.s_addr = htonl(0x7f000002u +
					    (uint32_t)(n / 60000));
		memcpy(at, &sin, sizeof(sin));
		return 0;
	}
	if (strcmp(ft->o.info->fabric_attr->prov_name, "lnx") ||
	    ft->o.name_len < LNX_HOST_AT + sizeof(id))
		return -FI_ENOSYS;
	id = pattern_mix(pattern_mix(seed) + n + 1);
	memcpy(at + LNX_ID_AT, &id, sizeof(id));
	if (!local) {
		id = pattern_mix(pattern_mix(~seed) + n / LNX_PEERS + 1);
		memcpy(at + LNX_HOST_AT, &id, sizeof(id));
	}
	return 0;
}

void ft_say_name(const struct ft_objs *o)
{
	size_t i;

	printf("ok ");
	for (i = 0; i < o->name_len; i++)
		printf("%02x", o->name[i]);
	printf("\n");
}

void ft_know(const struct ft_objs *o, const char *hex)
{
	unsigned char blob[FT_NAME_MAX];
	fi_addr_t addr;
	unsigned v;
	size_t n = 0;

	for (; n < sizeof(blob) && sscanf(hex, "%2x", &v) == 1; hex += 2)
		blob[n++] = (unsigned char)v;
	if (fi_av_insert(o->av, blob, 1, &addr, 0, NULL) == 1)
		printf("ok %" PRIu64 "\n", (uint64_t)addr);
	else
		printf("error not an address\n");
}
