/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames for another endpoint that had our address before, and the answer to them: see
 * wrong_endpoint.h.
 */
#include "tx/wrong_endpoint.h"

#include "core/open.h"
#include "tx/tx.h"
#include "wire/hdr.h"
#include "wire/rails.h"

#define TRIES_MAX	20u
#define TRY_NS		(10 * LNX_NS_PER_MS)	/* a core may have to connect */

LNX_COLD void lnx_wrong_endpoint_note(struct lnx_rail *rail, const struct lnx_hdr *h,
				const void *payload, size_t len)
{
	const struct lnx_addr_rail *from;
	struct lnx_ep *ep = rail->ep;
	struct lnx_rails all, more;
	struct lnx_misdirected *s;
	struct lnx_addr a;
	unsigned i;

	if ((h->kind != LNX_KIND_HELLO && h->kind != LNX_KIND_PROBE) ||
	    len < LNX_ADDR_BYTES ||
	    lnx_addr_unpack(&a, payload, LNX_ADDR_BYTES, NULL, 0) ||
	    a.eid != h->src)
		return;
	lnx_rails_of_addr(&all, &a);
	if (len > LNX_ADDR_BYTES) {
		if (lnx_rails_unpack(&more, (const uint8_t *)payload +
				     LNX_ADDR_BYTES, len - LNX_ADDR_BYTES))
			return;
		lnx_rails_merge(&all, &more);
	}
	from = lnx_rails_find(&all, h->rail);
	if (!from || from->prov != rail->prov)
		return;
	for (i = 0; i < ep->n_misdirected; i++)
		if (ep->misdirected[i].rail == rail && ep->misdirected[i].src == h->src &&
		    ep->misdirected[i].dst == h->dst)
			return;
	/* No more than that at once: their senders ask again. */
	if (ep->n_misdirected == LNX_MISDIRECTED_MAX)
		return;
	s = &ep->misdirected[ep->n_misdirected++];
	*s = (struct lnx_misdirected){ .rail = rail, .src = h->src, .dst = h->dst };
	memcpy(s->raw, from->raw, sizeof(s->raw));
	ep->work |= LNX_WORK_DETECT;
}

/* True: told, or given up. */
static bool tell(struct lnx_ep *ep, struct lnx_misdirected *s, uint64_t now)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_WRONG_ENDPOINT, .src = ep->eid, .dst = s->src,
		.tag = s->dst,
	};
	struct lnx_rail *rail = s->rail;
	struct lnx_wire_hdr w;
	fi_addr_t to;
	ssize_t ret;

	if (!rail->core_ep || lnx_rail_insert(rail, s->raw, &to))
		return true;
	lnx_hdr_put(&w, &h);
	lnx_hdr_set_path(&w, rail->wire_index, 0);
	ret = fi_inject(rail->core_ep, &w, sizeof(w), to);
	lnx_rail_remove(rail, to);
	rail->poll_credits = ep->poll_hot;
	s->retry_ns = now + TRY_NS;
	return ret != -FI_EAGAIN || ++s->tries == TRIES_MAX;
}

LNX_COLD void lnx_wrong_endpoint_send(struct lnx_ep *ep, uint64_t now)
{
	unsigned i = 0;

	while (i < ep->n_misdirected) {
		if (now >= ep->misdirected[i].retry_ns &&
		    tell(ep, &ep->misdirected[i], now))
			ep->misdirected[i] = ep->misdirected[--ep->n_misdirected];
		else
			i++;
	}
}

LNX_COLD void lnx_wrong_endpoint_rx(struct lnx_rail *rail, const struct lnx_hdr *h)
{
	struct lnx_peer *peer = lnx_peer_by_eid(rail->ep, h->tag);
	struct lnx_addr own;
	uint8_t untold = 0;
	unsigned i;

	if (!peer || h->src == peer->eid || peer->dead || peer->closing ||
	    !peer->npath)
		return;
	for (i = 0; i < peer->npath; i++)
		if (peer->path[i].rail == rail)
			peer->wrong_endpoint |= (uint8_t)(1u << i);
	/* A rail that is not in our address cannot be asked about: a PROBE does not
	 * name it. */
	if (!lnx_addr_unpack(&own, rail->ep->addr, LNX_ADDR_BYTES, NULL, 0))
		for (i = 0; i < peer->npath; i++)
			if (peer->path[i].rail->wire_index >= own.nrail)
				untold |= (uint8_t)(1u << i);
	/* It may still be there by other paths. */
	if ((peer->wrong_endpoint | untold) != (1u << peer->npath) - 1)
		return;
	LNX_WARN(FI_LOG_EP_DATA,
		 "peer %016llx: another endpoint (%016llx) has its address\n",
		 (unsigned long long)peer->eid, (unsigned long long)h->src);
	lnx_tx_bye(peer);
}

LNX_COLD void lnx_wrong_endpoint_ask(struct lnx_peer *peer, struct lnx_path *path)
{
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE };

	lnx_tx_probe_from(peer, path, &h);
}
