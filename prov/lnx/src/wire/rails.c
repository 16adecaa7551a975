/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packs and checks the list of all rails.  See rails.h. */
#include "wire/rails.h"

#include <errno.h>
#include <string.h>

void lnx_rails_of_addr(struct lnx_rails *r, const struct lnx_addr *a)
{
	unsigned i;

	_Static_assert((int)LNX_ADDR_RAILS <= (int)LNX_WIRE_RAILS_MAX,
		       "those of a blob");
	r->n = a->nrail;
	for (i = 0; i < a->nrail; i++) {
		r->place[i] = (uint8_t)i;
		r->rail[i] = a->rail[i];
	}
}

const struct lnx_addr_rail *lnx_rails_find(const struct lnx_rails *r,
					   unsigned place)
{
	unsigned i;

	for (i = 0; i < r->n; i++)
		if (r->place[i] == place)
			return &r->rail[i];
	return NULL;
}

void lnx_rails_merge(struct lnx_rails *r, const struct lnx_rails *add)
{
	struct lnx_rails both = { .n = 0 };
	unsigned i = 0, k = 0;

	while (i < r->n || k < add->n) {
		bool new = k < add->n &&
			   (i == r->n || add->place[k] <= r->place[i]);

		both.place[both.n] = new ? add->place[k] : r->place[i];
		both.rail[both.n] = new ? add->rail[k] : r->rail[i];
		if (new && i < r->n && add->place[k] == r->place[i])
			i++;
		k += new;
		i += !new;
		both.n++;
	}
	*r = both;
}

int lnx_rails_pack(const struct lnx_rails *r,
		   uint8_t buf[LNX_WIRE_RAILS_BYTES])
{
	int used = LNX_WIRE_RAILS_HEAD, n, before = -1;
	unsigned i;

	if (r->n > LNX_WIRE_RAILS_MAX)
		return -EINVAL;
	memset(buf, 0, LNX_WIRE_RAILS_HEAD);
	for (i = 0; i < r->n; i++) {
		if (r->place[i] >= LNX_WIRE_RAILS_MAX ||
		    (int)r->place[i] <= before)
			return -EINVAL;
		before = r->place[i];
		n = lnx_addr_rail_pack(&r->rail[i], buf + used + 1);
		if (n < 0)
			return n;
		if (!n)
			continue;
		buf[used] = r->place[i];
		used += 1 + n;
		buf[0]++;
	}
	return buf[0] ? used : 0;
}

int lnx_rails_unpack(struct lnx_rails *r, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t used = LNX_WIRE_RAILS_HEAD;
	unsigned i;
	int n;

	if (len < LNX_WIRE_RAILS_HEAD || !p[0] || p[0] > LNX_WIRE_RAILS_MAX ||
	    p[1] || p[2] || p[3])
		return -EINVAL;
	r->n = p[0];
	for (i = 0; i < r->n; i++) {
		if (used == len || p[used] >= LNX_WIRE_RAILS_MAX ||
		    (i && p[used] <= r->place[i - 1]))
			return -EINVAL;
		r->place[i] = p[used++];
		n = lnx_addr_rail_unpack(&r->rail[i], p + used, len - used);
		if (n < 0)
			return -EINVAL;
		used += (size_t)n;
	}
	return used == len ? 0 : -EINVAL;
}
