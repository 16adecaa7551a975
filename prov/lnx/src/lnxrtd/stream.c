/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Is what comes a stream of large frames between two ends?  Then the gateway need not be woken up
 * for each of them: to wake it costs the sender's processor about as much as to send the frame.
 * It sleeps for a moment instead, in which some come.  Others lose nothing by that:
 * - what goes there and back, or ends after a few frames, is no stream;
 * - a third source, or another gateway, of which one cannot tell for how many it speaks, ends it.
 */
#include "lnxrtd/inside.h"

/* One of the two ends with that account, or a place for it; NULL: there are two others. */
static struct rtd_stream_end *end_of(struct rtd_stream *s, uint16_t account, uint64_t now)
{
	struct rtd_stream_end *place = NULL;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(s->end); i++) {
		struct rtd_stream_end *e = &s->end[i];

		if (e->account == account)
			return e;
		if (!e->account || lnx_ns_since(now, e->came_ns) >= RTD_STREAM_OTHERS_NS)
			place = e;
	}
	return place;
}

void rtd_stream_came(struct rtd_stream *s, unsigned rail, const struct rtd_source *source,
		     size_t len, uint64_t now)
{
	struct rtd_stream_end *e = NULL;

	if (source->account && !source->gateway)
		e = end_of(s, source->account, now);
	if (!e) {
		s->row = 0;
		s->others_ns = now;
		return;
	}
	*e = (struct rtd_stream_end){ .account = source->account, .came_ns = now };
	if (rtd_class_of(len) != RTD_LARGE)
		return;
	s->napped = false;
	if (s->rail != rail)
		s->row = 0;
	s->rail = (uint8_t)rail;
	s->row = (uint8_t)LNX_MIN(s->row + 1u, RTD_STREAM_ROW);
}

uint64_t rtd_relay_nap(struct rtd_relay *r, uint64_t now)
{
	struct rtd_stream *s = &r->stream;

	/* It is over. */
	if (s->napped)
		s->row = 0;
	s->napped = s->row >= RTD_STREAM_ROW &&
		    (!s->others_ns ||
		     lnx_ns_since(now, s->others_ns) >= RTD_STREAM_OTHERS_NS);
	return s->napped ? RTD_STREAM_NAP_NS : 0;
}
