/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What silence means.  See silence.h. */
#include "rel/silence.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/interval.h"
#include "base/timer.h"

/* A path that delivers is looked at so often in its timeout. */
#define LOOKS		8u

/* ---- of a path ---- */

/*
 * Has nothing come over it since the last look?  Piggybacked acknowledgements do not report
 * paths; but while the oldest frame keeps changing, no path holds it back.
 */
static bool stalled(const struct lnx_silence *s, const struct lnx_silence_view *v)
{
	return s->progress == v->progress && (v->reads || s->una == v->una);
}

static enum lnx_silence_verdict begin(struct lnx_silence *s,
				      const struct lnx_silence_view *v, uint64_t now)
{
	bool first = !s->since_ns;

	s->progress = v->progress;
	s->una = v->una;
	/* If the report had to be asked for, it came some time ago. */
	s->since_ns = now - (s->stale_report ? v->timeout_ns / 2 : 0);
	s->probe_sent_ns = 0;
	s->answered = s->kernel_asked = s->stale_report = false;
	return first ? LNX_SILENCE_BEGINS : LNX_SILENCE_PROGRESS;
}

enum lnx_silence_verdict lnx_silence_look(struct lnx_silence *s,
					  const struct lnx_silence_view *v, uint64_t now)
{
	uint64_t silent_ns = lnx_ns_since(now, s->since_ns);

	if (!v->frames && !v->reads) {
		s->since_ns = 0;
		s->stale_report = s->kernel_asked = false;
		return LNX_SILENCE_NOTHING;
	}
	if (!s->since_ns || !stalled(s, v))
		return begin(s, v, now);
	if (silent_ns < v->timeout_ns / 2)
		return LNX_SILENCE_WAIT;
	if (!s->kernel_asked) {
		s->kernel_asked = true;
		return LNX_SILENCE_ASK_KERNEL;
	}
	if (silent_ns < v->timeout_ns)
		return LNX_SILENCE_WAIT;
	if (s->answered)
		return v->kernel_answers &&
		       silent_ns < LNX_SILENCE_KERNEL_TIMES * v->timeout_ns ?
		       LNX_SILENCE_WAIT : LNX_SILENCE_DOWN;
	if (!v->acked && v->frames) {
		if (silent_ns < 2 * v->timeout_ns)
			return LNX_SILENCE_WAIT;
		s->since_ns = 0;
		return LNX_SILENCE_ELSEWHERE;
	}
	if (s->probe_sent_ns && lnx_ns_since(now, s->probe_sent_ns) <
			   LNX_MIN(silent_ns / 2, LNX_SILENCE_ASK_MAX_NS))
		return LNX_SILENCE_WAIT;
	s->probe_sent_ns = now;
	return LNX_SILENCE_ASK;
}

/* Until then it may deliver something: when it did matters for what comes after that. */
static uint64_t meanwhile(const struct lnx_silence *s, const struct lnx_silence_view *v,
			  uint64_t at_ns, uint64_t now)
{
	uint64_t ns = LNX_MIN(v->timeout_ns / LOOKS, LNX_LOOK_SEVERAL_NS);

	/* The peer has never answered: the first time is not missed. */
	if (!v->acked && !v->reads)
		return at_ns;
	return LNX_MIN(at_ns, now + LNX_MAX(ns, lnx_ns_since(now, s->since_ns) / 4));
}

uint64_t lnx_silence_next(const struct lnx_silence *s, const struct lnx_silence_view *v,
			  enum lnx_silence_verdict verdict, uint64_t now)
{
	uint64_t end_ns = s->since_ns + v->timeout_ns;

	if (verdict == LNX_SILENCE_NOTHING)
		return LNX_NEVER;
	/* The silence begins anew. */
	if (verdict == LNX_SILENCE_DOWN || verdict == LNX_SILENCE_ELSEWHERE)
		return now;
	if (!s->kernel_asked)
		return meanwhile(s, v, s->since_ns + v->timeout_ns / 2, now);
	if (now < end_ns)
		return meanwhile(s, v, end_ns, now);
	if (s->answered)
		return s->since_ns + LNX_SILENCE_KERNEL_TIMES * v->timeout_ns;
	if (!v->acked && v->frames)
		return end_ns + v->timeout_ns;
	/* Asked again when twice as much time has passed as until then. */
	return s->probe_sent_ns + LNX_MIN(lnx_ns_since(s->probe_sent_ns, s->since_ns),
					  LNX_SILENCE_ASK_MAX_NS);
}

void lnx_silence_answered(struct lnx_silence *s, bool moved, bool about_this)
{
	s->stale_report |= moved;
	s->answered |= s->probe_sent_ns && about_this;
}

/* ---- of a peer ---- */

enum lnx_liveness_verdict lnx_silence_peer_look(struct lnx_liveness *l, uint64_t now)
{
	if (!l->since_ns) {
		*l = (struct lnx_liveness){ .since_ns = now, .kernels_ns = l->kernels_ns };
		return LNX_LIVENESS_WAIT;
	}
	if (lnx_ns_since(now, l->since_ns) < LNX_LIVENESS_SILENT_NS)
		return LNX_LIVENESS_WAIT;
	return l->kernels_ns > l->since_ns ? LNX_LIVENESS_LOOK :
					   LNX_LIVENESS_ASK_KERNELS;
}

void lnx_silence_peer_asked(struct lnx_liveness *l, uint64_t now)
{
	l->kernels_ns = now;
}

/* What is not known of some of its kernels, it may take that time to find out. */
static uint64_t limit(const struct lnx_liveness_view *v)
{
	if (v->unknown)
		return v->stall_limit_ns ? LNX_MAX(v->limit_ns, v->stall_limit_ns) : LNX_NEVER;
	return v->unasked ? LNX_MAX(v->limit_ns, v->unasked_limit_ns) : v->limit_ns;
}

void lnx_silence_peer_asked_late(struct lnx_liveness *l, const struct lnx_liveness_view *v,
				 uint64_t now)
{
	if (lnx_ns_since(now, l->since_ns) < LNX_MAX(v->limit_ns, v->unasked_limit_ns))
		l->kernels_ns = now;
}

/* A kernel has answered for a peer that did not. */
static enum lnx_liveness_verdict stalls(struct lnx_liveness *l, uint64_t limit_ns,
					uint64_t now)
{
	/* Time in which we did not look does not count. */
	l->stalled_ns += LNX_MIN(lnx_ns_since(now, l->since_ns),
				 LNX_LIVENESS_STALL_STEP_NS);
	l->since_ns = now;
	return limit_ns && l->stalled_ns >= limit_ns ? LNX_LIVENESS_TIMED_OUT :
						       LNX_LIVENESS_WAIT;
}

enum lnx_liveness_verdict lnx_silence_peer_judge(struct lnx_liveness *l,
						 const struct lnx_liveness_view *v,
						 uint64_t now)
{
	if (v->alive)
		return stalls(l, v->stall_limit_ns, now);
	/* They had no time to answer: perhaps we did not look for long. */
	if (lnx_ns_since(now, l->kernels_ns) < LNX_LIVENESS_SILENT_NS)
		return LNX_LIVENESS_WAIT;
	/* FI_LNX_CONNECT_TIMEOUT is for peers that are unknown. */
	if (lnx_ns_since(now, l->since_ns) < limit(v))
		return lnx_ns_since(now, l->kernels_ns) >= LNX_LIVENESS_ASK_NS ?
		       LNX_LIVENESS_ASK_KERNELS : LNX_LIVENESS_WAIT;
	return v->refused == v->npath ? LNX_LIVENESS_REFUSED : LNX_LIVENESS_TIMED_OUT;
}

uint64_t lnx_silence_peer_next(const struct lnx_liveness *l, uint64_t limit_ns, uint64_t now)
{
	const uint64_t at_ns[] = {
		l->since_ns + LNX_LIVENESS_SILENT_NS,
		/* If they were asked. */
		l->kernels_ns + LNX_LIVENESS_LOOK_NS,
		l->kernels_ns + LNX_KERNEL_MUTE_NS,
		l->kernels_ns + LNX_LIVENESS_SILENT_NS,
		l->kernels_ns + LNX_LIVENESS_ASK_NS,
		l->since_ns + limit_ns,
	};
	unsigned i, n = l->kernels_ns > l->since_ns ? LNX_ARRAY_SIZE(at_ns) : 1;
	uint64_t next = LNX_NEVER;

	for (i = 0; i < n; i++)
		next = lnx_next_of(next, at_ns[i], now);
	return next == LNX_NEVER ? now : next;
}
