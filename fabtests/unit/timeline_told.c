/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which states of the tables the stories have shown at which events.  See timeline.h. */
#include <criterion/criterion.h>

#include "timeline_inside.h"

#define STORIES_MAX	200u

static const char *titles[STORIES_MAX];
static unsigned ntitles;

void tell_title(const char *title)
{
	cr_assert_lt(ntitles, STORIES_MAX);
	titles[ntitles++] = title;
}

const char *const path_states[LNX_PATH_NSTATE] = {
	[LNX_PATH_IDLE] = "IDLE", [LNX_PATH_CONNECTING] = "CONNECTING",
	[LNX_PATH_UP] = "UP", [LNX_PATH_DEAD] = "DEAD", [LNX_PATH_DOWN] = "DOWN",
};
static const char *const path_events[LNX_PATH_NEVENT] = {
	[LNX_PATH_TOOK] = "took", [LNX_PATH_REFUSED] = "refused",
	[LNX_PATH_BROKE] = "broke", [LNX_PATH_EXPIRED] = "expired",
	[LNX_PATH_GAVE_UP] = "gave-up", [LNX_PATH_LOST] = "lost",
	[LNX_PATH_ANSWERED] = "answered", [LNX_PATH_REOPENED] = "reopened",
};
const char *const life_states[LNX_LIFE_NSTATE] = {
	[LNX_LIFE_OPEN] = "OPEN", [LNX_LIFE_CLOSING] = "CLOSING",
	[LNX_LIFE_DETACHED] = "DETACHED", [LNX_LIFE_DEAD] = "DEAD",
	[LNX_LIFE_CLOSED] = "CLOSED", [LNX_LIFE_GONE] = "GONE",
};
static const char *const life_events[LNX_LIFE_NEVENT] = {
	[LNX_LIFE_ENDED] = "ended", [LNX_LIFE_FAILED] = "failed",
	[LNX_LIFE_DETACH] = "detach",
};
static const char *const loss_states[] = {
	"nothing is out", "never acknowledged", "waits", "asked", "paused",
};
static const char *const loss_events[] = {
	"look", "look after the timeout", "ack", "pong", "pong to nothing",
	"pong over another path",
};
static const char *const silence_states[] = {
	"nothing is due", "something is due", "kernel asked", "peer asked", "answered",
};
static const char *const silence_events[] = {
	"look", "progress", "nothing is due any more", "pong", "old pong", "news",
};
static const char *const liveness_states[] = { "seen", "silent", "kernels asked" };
static const char *const liveness_events[] = {
	"frame", "kernel answers", "kernels refuse", "kernels are silent",
	"kernels cannot be asked",
};

#define MOST	8
static struct {
	const char *const *states, *const *events;
	unsigned nstates, nevents;
	bool told[MOST][MOST];
} table[] = {
	[PATH_TABLE] = { path_states, path_events, LNX_PATH_NSTATE, LNX_PATH_NEVENT, {} },
	[LIFE_TABLE] = { life_states, life_events, LNX_LIFE_NSTATE, LNX_LIFE_NEVENT, {} },
	[LOSS_TABLE] = { loss_states, loss_events, L_STATES, L_EVENTS, {} },
	[SILENCE_TABLE] = { silence_states, silence_events, S_STATES, S_EVENTS, {} },
	[LIVENESS_TABLE] = { liveness_states, liveness_events, V_STATES, V_EVENTS, {} },
};
static_assert(LNX_PATH_NSTATE <= MOST && LNX_PATH_NEVENT <= MOST &&
	      LNX_LIFE_NSTATE <= MOST, "told[] has room for all tables");

void tell(enum story_table which, unsigned state, unsigned event)
{
	table[which].told[state][event] = true;
}

void story_covers(enum story_table which)
{
	unsigned s, e;

	/* What begins to be due is no progress. */
	table[SILENCE_TABLE].told[S_NOTHING][S_PROGRESS] = true;
	for (s = 0; s < table[which].nstates; s++)
		for (e = 0; e < table[which].nevents; e++)
			cr_expect(table[which].told[s][e], "no story of: %s; %s",
				  table[which].states[s], table[which].events[e]);
}

void story_count(unsigned least)
{
	unsigned i, k;

	cr_expect_geq(ntitles, least, "only %u stories", ntitles);
	for (i = 0; i < ntitles; i++)
		for (k = 0; k < i; k++)
			cr_expect_str_neq(titles[i], titles[k]);
}

unsigned loss_state(void)
{
	if (lnx_chan_idle(&t.c))
		return L_IDLE;
	if (!lnx_chan_acked_any(&t.c))
		return L_NEW;
	if (t.loss.paused)
		return L_PAUSED;
	return t.loss.asked ? L_ASKED : L_WAITS;
}

unsigned silence_state(const struct path *p)
{
	const struct lnx_silence *s = &p->silence;

	if (!s->since_ns)
		return S_NOTHING;
	if (s->answered)
		return S_ANSWERED;
	if (s->probe_sent_ns)
		return S_ASKED;
	return s->kernel_asked ? S_KERNEL_ASKED : S_DUE;
}

unsigned liveness_state(void)
{
	if (!t.liveness.since_ns)
		return V_SEEN;
	return t.liveness.kernels_ns > t.liveness.since_ns ? V_KERNELS_ASKED : V_SILENT;
}
