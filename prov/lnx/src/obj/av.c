/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding an address by endpoint id (obj/av.h). */
#include "obj/av.h"

uint32_t lnx_av_slot_of(const struct lnx_av *av, uint64_t eid)
{
	uint32_t hash = lnx_av_hash(eid), i = hash & av->hash_mask;
	const struct lnx_av_slot *s;

	for (;; i = (i + 1) & av->hash_mask) {
		s = &av->hash[i];
		if (!s->index1 || (s->hash == hash &&
				   lnx_av_entry_at(av, s->index1 - 1)->eid == eid))
			return i;
	}
}

fi_addr_t lnx_av_find(struct lnx_av *av, uint64_t eid)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	uint32_t i;

	pthread_mutex_lock(&av->hash_lock);
	i = av->hash[lnx_av_slot_of(av, eid)].index1;
	if (i)
		addr = i - 1;
	pthread_mutex_unlock(&av->hash_lock);
	return addr;
}
