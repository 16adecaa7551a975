/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which frames are lost.  See loss.h. */
#include "rel/loss.h"

#include "base/interval.h"

static uint64_t doubled(uint64_t rto_ns)
{
	return LNX_MIN(rto_ns * 2, LNX_RTO_MAX_NS);
}

enum lnx_loss_todo lnx_loss_look(struct lnx_loss *l, struct lnx_chan *c,
				 uint64_t rto_ns, uint64_t now)
{
	if (l->oldest != c->una) {
		lnx_loss_restart(l, c);
		l->since_ns = now;
		return LNX_LOSS_MOVED;
	}
	if (!l->since_ns) {
		l->since_ns = now;
		return LNX_LOSS_NOTHING;
	}
	if (!l->rto_ns)
		l->rto_ns = LNX_MIN(rto_ns, LNX_RTO_MAX_NS);
	if (now < l->since_ns || now - l->since_ns < l->rto_ns)
		return LNX_LOSS_NOTHING;
	l->since_ns = now;
	l->rto_ns = doubled(l->rto_ns);
	l->paused = false;
	if (lnx_chan_idle(c) ||
	    (lnx_chan_acked_any(c) && l->rto_ns < LNX_RTO_INSIST_NS))
		return LNX_LOSS_ASK;
	lnx_chan_probe(c);
	return LNX_LOSS_INSIST;
}

uint64_t lnx_loss_next(const struct lnx_loss *l, uint64_t now)
{
	uint64_t ns = LNX_MAX(LNX_LOOK_ONE_NS, lnx_ns_since(now, l->since_ns) / 2);

	/* The oldest frame was sent again: lnx_done_acked tells when it is acknowledged. */
	if (l->rto_ns >= LNX_RTO_INSIST_NS)
		return l->since_ns + l->rto_ns;
	/* Else some may be acknowledged until then, and the timeout begins again when they
	 * are. */
	return l->rto_ns ? LNX_MIN(l->since_ns + l->rto_ns, now + ns) : now + ns;
}

enum lnx_loss_todo lnx_loss_late(struct lnx_late *l, const struct lnx_chan *c,
				 uint64_t limit_ns, uint64_t answered_ns, uint64_t now)
{
	if (c->una != l->seq || !l->since_ns) {
		l->seq = c->una;
		l->since_ns = now;
	}
	if (now - l->since_ns < limit_ns)
		return LNX_LOSS_NOTHING;
	return answered_ns >= l->since_ns + limit_ns ? LNX_LOSS_LATE : LNX_LOSS_ASK;
}

uint64_t lnx_loss_late_next(const struct lnx_late *l, uint64_t limit_ns, uint64_t now)
{
	uint64_t waited_ns = lnx_ns_since(now, l->since_ns);

	return waited_ns < limit_ns ? l->since_ns + limit_ns : now + waited_ns / 2;
}

void lnx_loss_late_again(struct lnx_late *l, struct lnx_chan *c, unsigned path)
{
	/* Should it come back to this path, its time there begins with the next look. */
	l->since_ns = 0;
	lnx_chan_retransmit_before(c, 1u << path,
				   c->una + LNX_MIN(c->posted - c->una, LNX_LATE_AGAIN_MAX));
}

/* The oldest frame, if it has left and is not about to leave again. */
static const struct lnx_frame *oldest(const struct lnx_chan *c)
{
	const struct lnx_frame *f;

	if (lnx_chan_idle(c) || !lnx_chan_acked_any(c) ||
	    lnx_chan_retransmits(c))
		return NULL;
	f = *lnx_chan_slot(c, c->una);
	return f && !f->in_core ? f : NULL;
}

int lnx_loss_path(const struct lnx_chan *c)
{
	const struct lnx_frame *f = oldest(c);

	return f ? f->path : -1;
}

void lnx_loss_asked(struct lnx_loss *l, const struct lnx_chan *c, unsigned path,
		    uint32_t number, uint64_t now)
{
	const struct lnx_frame *f = oldest(c);

	if (!f || f->path != path)
		return;
	l->last = number;
	l->probe_sent_ns = now;
	/* An answer to this PROBE answers the question before it, too. */
	if (l->asked && l->about == c->una && l->path == path)
		return;
	l->asked = true;
	l->number = number;
	l->about = c->una;
	l->end = c->posted;
	l->path = (uint8_t)path;
}

bool lnx_loss_answered(struct lnx_loss *l, struct lnx_chan *c, unsigned path,
		       uint32_t number, uint64_t now)
{
	const struct lnx_frame *f;

	/* Not an answer to what was asked. */
	if (!l->asked || path != l->path || number - l->number > l->last - l->number)
		return false;
	f = oldest(c);
	if (l->about != c->una || !f || f->path != path) {
		l->asked = false;
		return false;
	}
	/* The peer may have no memory for it. */
	if (l->paused && now - l->since_ns < l->rto_ns)
		return false;
	l->asked = false;
	l->rto_ns = doubled(LNX_MAX(l->rto_ns, LNX_RETX_PAUSE_NS));
	l->since_ns = now;
	l->paused = true;
	lnx_chan_retransmit_before(c, 1u << path, l->end);
	return true;
}
