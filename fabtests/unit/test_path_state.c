/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rel/path: lives of a path, one event after the other, with the state after each. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "rel/path.h"

static const char *const states[LNX_PATH_NSTATE] = {
	[LNX_PATH_IDLE] = "IDLE", [LNX_PATH_CONNECTING] = "CONNECTING",
	[LNX_PATH_UP] = "UP", [LNX_PATH_DEAD] = "DEAD", [LNX_PATH_DOWN] = "DOWN",
};

static const char *const events[LNX_PATH_NEVENT] = {
	[LNX_PATH_TOOK] = "took", [LNX_PATH_REFUSED] = "refused",
	[LNX_PATH_BROKE] = "broke", [LNX_PATH_EXPIRED] = "expired",
	[LNX_PATH_GAVE_UP] = "gave-up", [LNX_PATH_LOST] = "lost",
	[LNX_PATH_ANSWERED] = "answered", [LNX_PATH_REOPENED] = "reopened",
};

static const char *const far_states[LNX_FAR_NSTATE] = {
	[LNX_FAR_UNKNOWN] = "UNKNOWN", [LNX_FAR_MUTE] = "MUTE",
	[LNX_FAR_REFUSES] = "REFUSES", [LNX_FAR_ANSWERED] = "ANSWERED",
};

static const char *const far_events[LNX_FAR_NEVENT] = {
	[LNX_FAR_ANEW] = "anew", [LNX_FAR_KERNEL_ANSWERS] = "kernel-answers",
	[LNX_FAR_KERNEL_REFUSES] = "kernel-refuses",
	[LNX_FAR_KERNEL_SILENT] = "kernel-silent", [LNX_FAR_ASKS] = "asks",
	[LNX_FAR_REOPENED] = "reopened", [LNX_FAR_PONG] = "pong",
};

#define STATES_MAX	8
#define EVENTS_MAX	8

struct machine {
	const char *const *states, *const *events;
	unsigned nstate, nevent;
	const uint8_t *table;
	/* Transitions that a story has shown. */
	bool told[STATES_MAX][EVENTS_MAX];
};

static struct machine path = {
	.states = states, .events = events, .nstate = LNX_PATH_NSTATE,
	.nevent = LNX_PATH_NEVENT, .table = lnx_path_table[0],
};
static struct machine far_end = {
	.states = far_states, .events = far_events, .nstate = LNX_FAR_NSTATE,
	.nevent = LNX_FAR_NEVENT, .table = lnx_far_table[0],
};

static unsigned find(const char *const *names, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	cr_assert(false, "no such name: %s", name);
	return 0;
}

/* Words: an event, the state after it, and so on; from the first state. */
static void story_of(struct machine *m, const char *text)
{
	char words[512], *save = NULL, *w;
	uint8_t state = 0;

	cr_assert_lt(strlen(text), sizeof(words));
	strcpy(words, text);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		unsigned event = find(m->events, m->nevent, w), want;

		w = strtok_r(NULL, " ", &save);
		cr_assert(w);
		want = find(m->states, m->nstate, w);
		m->told[state][event] = true;
		state = m->table[state * m->nevent + event];
		cr_expect_eq(state, want, "\"%s\": %s after %s, not %s", text,
			     m->states[state], m->events[event], m->states[want]);
	}
}

static void all_told(const struct machine *m)
{
	unsigned s, e;

	for (s = 0; s < m->nstate; s++)
		for (e = 0; e < m->nevent; e++)
			cr_expect(m->told[s][e], "no story of %s, %s", m->states[s],
				  m->events[e]);
}

static void story(const char *text)
{
	story_of(&path, text);
}

Test(path_state, stories)
{
	/* A peer that is there, and one that takes a while to connect. */
	story("took UP took UP took UP");
	story("refused CONNECTING refused CONNECTING took UP");
	/* A connection that breaks, and is made again. */
	story("took UP broke CONNECTING refused CONNECTING took UP");
	story("took UP broke CONNECTING broke CONNECTING took UP");
	/* The core of a path that was up becomes busy. */
	story("took UP refused CONNECTING took UP");
	/* A peer that is never there; it is looked for again later. */
	story("refused CONNECTING refused CONNECTING expired DEAD refused CONNECTING");
	story("refused CONNECTING expired DEAD took UP");
	/* An acknowledgement that no core takes is dropped. */
	story("refused CONNECTING gave-up IDLE took UP");
	story("took UP refused CONNECTING gave-up IDLE refused CONNECTING");
	/* A black hole: what the core takes there changes nothing. */
	story("took UP lost DOWN took DOWN took DOWN refused DOWN broke DOWN");
	story("took UP lost DOWN took DOWN answered UP took UP");
	/* It comes again and again. */
	story("took UP lost DOWN answered UP lost DOWN answered UP lost DOWN");
	/* The link is down before anything was sent, or while it connects. */
	story("lost DOWN took DOWN answered UP");
	story("refused CONNECTING lost DOWN refused DOWN answered UP");
	/* The rail is opened anew: of others too, which have to connect again. */
	story("took UP reopened CONNECTING took UP");
	story("took UP lost DOWN reopened DOWN took DOWN answered UP");
	story("took UP lost DOWN lost DOWN reopened DOWN lost DOWN answered UP");
	story("reopened CONNECTING took UP");
	/* Drained by hand, and taken back. */
	story("took UP lost DOWN gave-up DOWN answered UP");
	/* All paths are silent until the peer is given up. */
	story("took UP lost DOWN took DOWN expired DEAD broke DEAD");
	story("took UP broke CONNECTING expired DEAD reopened CONNECTING took UP");
	story("lost DOWN expired DEAD took UP");
	/* The deadline is the peer's: idle and working paths end with the others. */
	story("expired DEAD refused CONNECTING took UP");
	story("took UP expired DEAD took UP");
	/* Each of many frames fails, long after it was taken. */
	story("took UP broke CONNECTING took UP broke CONNECTING took UP");
	story("took UP broke CONNECTING refused CONNECTING gave-up IDLE broke IDLE");
	/* An acknowledgement finds the connection made meanwhile. */
	story("refused CONNECTING took UP gave-up IDLE took UP");
	story("gave-up IDLE refused CONNECTING took UP");
	/* A PONG comes over it before it was missed, or even used. */
	story("answered IDLE took UP answered UP");
	story("refused CONNECTING answered CONNECTING took UP");
	/* One comes after the peer was given up: only another session may begin. */
	story("took UP lost DOWN expired DEAD answered DEAD");
	/* What a core still reports of a path that was given up. */
	story("refused CONNECTING expired DEAD broke DEAD expired DEAD");
	story("refused CONNECTING expired DEAD gave-up IDLE took UP");
	/* Its link goes down after that: it is recovered like others. */
	story("refused CONNECTING expired DEAD lost DOWN answered UP");
	/* The core endpoint of its rail dies while it connects, twice. */
	story("refused CONNECTING reopened CONNECTING reopened CONNECTING took UP");
	/* And in a black hole: the new one has to be answered, too. */
	story("took UP broke CONNECTING lost DOWN reopened DOWN took DOWN answered UP");
	/* The cable: out, in, out, in, before anything is sent. */
	story("lost DOWN answered UP lost DOWN answered UP took UP");
	/* Drained while its core is busy. */
	story("took UP refused CONNECTING lost DOWN took DOWN answered UP");
	/* The peer was stopped for a while: what its core took is all there. */
	story("took UP lost DOWN took DOWN took DOWN answered UP took UP took UP");
	/* A rail that is sick for long: it comes back, and fails the first frame. */
	story("took UP lost DOWN answered UP broke CONNECTING lost DOWN answered UP");
	story("took UP lost DOWN answered UP broke CONNECTING broke CONNECTING took UP");

	all_told(&path);
}

static void far_story(const char *text)
{
	story_of(&far_end, text);
}

/* What is known of the far end of a path that is DOWN. */
Test(path_state, far_stories)
{
	/* A cable is out for a while; then the kernel answers, and the peer. */
	far_story("anew UNKNOWN kernel-silent UNKNOWN kernel-answers MUTE pong ANSWERED");
	/* The peer answers before its kernel does. */
	far_story("anew UNKNOWN pong ANSWERED kernel-answers ANSWERED kernel-silent ANSWERED");
	/* A connection hangs: our rail is opened anew, and the peer is asked again. */
	far_story("kernel-answers MUTE kernel-answers MUTE reopened UNKNOWN "
		  "kernel-answers MUTE pong ANSWERED");
	far_story("kernel-answers MUTE kernel-silent UNKNOWN kernel-answers MUTE anew UNKNOWN");
	/* The peer's rail is closed, and opened again. */
	far_story("kernel-refuses REFUSES kernel-refuses REFUSES kernel-answers MUTE "
		  "pong ANSWERED anew UNKNOWN");
	far_story("kernel-answers MUTE kernel-refuses REFUSES kernel-silent UNKNOWN");
	far_story("kernel-refuses REFUSES pong ANSWERED pong ANSWERED");
	far_story("kernel-refuses REFUSES reopened UNKNOWN reopened UNKNOWN");
	far_story("kernel-refuses REFUSES anew UNKNOWN");
	/* It asks us: what its kernel answered is out of date; that nothing listens at the
	 * address that we know is not. */
	far_story("asks UNKNOWN kernel-answers MUTE asks UNKNOWN kernel-answers MUTE");
	far_story("kernel-refuses REFUSES asks REFUSES");
	/* It is back, and waits until its health allows that it is used. */
	far_story("pong ANSWERED asks ANSWERED reopened ANSWERED kernel-refuses ANSWERED");

	all_told(&far_end);
}

/* A state says since when it is so; what does not change it does not begin it anew. */
Test(path_state, far_since)
{
	struct lnx_far f = { 0 };

	cr_expect_not(lnx_path_far_happens(&f, LNX_FAR_KERNEL_SILENT, 5));
	cr_expect_eq(lnx_path_far_since(&f, LNX_FAR_UNKNOWN), 0);
	cr_expect(lnx_path_far_happens(&f, LNX_FAR_KERNEL_ANSWERS, 7));
	cr_expect_not(lnx_path_far_happens(&f, LNX_FAR_KERNEL_ANSWERS, 9));
	cr_expect_eq(lnx_path_far_since(&f, LNX_FAR_MUTE), 7);
	cr_expect_eq(lnx_path_far_since(&f, LNX_FAR_REFUSES), 0);
	/* DOWN again without having been used. */
	cr_expect(lnx_path_far_happens(&f, LNX_FAR_ANEW, 11));
	cr_expect_not(lnx_path_far_happens(&f, LNX_FAR_ANEW, 12));
	cr_expect_eq(lnx_path_far_since(&f, LNX_FAR_UNKNOWN), 12);
}

/* Only the peer's answer ends DOWN, or that it is given up. */
Test(path_state, down_is_ended_by_the_peer)
{
	unsigned e;

	for (e = 0; e < LNX_PATH_NEVENT; e++)
		cr_expect_eq(lnx_path_table[LNX_PATH_DOWN][e],
			     e == LNX_PATH_ANSWERED ? LNX_PATH_UP :
			     e == LNX_PATH_EXPIRED ? LNX_PATH_DEAD : LNX_PATH_DOWN,
			     "%s", events[e]);
}

/* The same again changes nothing. */
Test(path_state, events_may_be_repeated)
{
	unsigned s, e;

	for (s = 0; s < LNX_PATH_NSTATE; s++) {
		for (e = 0; e < LNX_PATH_NEVENT; e++) {
			uint8_t once = lnx_path_table[s][e];

			cr_expect_lt(once, LNX_PATH_NSTATE);
			cr_expect_eq(lnx_path_table[once][e], once, "%s, %s",
				     states[s], events[e]);
		}
	}
}
