/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rel/life: lives of a peer, one event after the other, with the state after each. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "rel/life.h"

static const char *const states[LNX_LIFE_NSTATE] = {
	[LNX_LIFE_OPEN] = "OPEN", [LNX_LIFE_CLOSING] = "CLOSING",
	[LNX_LIFE_DETACHED] = "DETACHED", [LNX_LIFE_DEAD] = "DEAD",
	[LNX_LIFE_CLOSED] = "CLOSED", [LNX_LIFE_GONE] = "GONE",
};

static const char *const events[LNX_LIFE_NEVENT] = {
	[LNX_LIFE_ENDED] = "ended", [LNX_LIFE_FAILED] = "failed",
	[LNX_LIFE_DETACH] = "detach",
};

/* Transitions that a story has shown. */
static bool told[LNX_LIFE_NSTATE][LNX_LIFE_NEVENT];

static unsigned find(const char *const *names, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	cr_assert(false, "no such name: %s", name);
	return 0;
}

/* Words: an event, the state after it, and so on; from OPEN. */
static void story(const char *text)
{
	char words[256], *save = NULL, *w;
	uint8_t life = LNX_LIFE_OPEN;

	cr_assert_lt(strlen(text), sizeof(words));
	strcpy(words, text);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		unsigned event = find(events, LNX_LIFE_NEVENT, w), want;

		w = strtok_r(NULL, " ", &save);
		cr_assert(w);
		want = find(states, LNX_LIFE_NSTATE, w);
		told[life][event] = true;
		life = lnx_life_table[life][event];
		cr_expect_eq(life, want, "\"%s\": %s after %s, not %s", text,
			     states[life], events[event], states[want]);
	}
}

Test(life, stories)
{
	unsigned s, e;

	/* It closes its endpoint; the address is used again, or is not in the AV. */
	story("ended CLOSING failed CLOSED detach GONE");
	/* It says so twice, and a refusal comes late. */
	story("ended CLOSING ended CLOSING failed CLOSED ended CLOSED");
	/* Its HELLO of another session comes before we knew of the end. */
	story("ended CLOSING detach DETACHED failed GONE");
	/* A black hole: given up; a send begins the next session. */
	story("failed DEAD detach GONE");
	/* Given up, and told: it answers that it had ended the session, too. */
	story("failed DEAD ended CLOSED detach GONE");
	/* A local process that was killed: given up, then all that is left fails. */
	story("failed DEAD failed DEAD");
	/* The endpoint drops one that was never heard of. */
	story("detach DETACHED failed GONE failed GONE");
	/* What comes for it later changes nothing. */
	story("failed DEAD detach GONE ended GONE failed GONE detach GONE");
	/* Two of its HELLOs cross: the second finds the first one's peer. */
	story("detach DETACHED detach DETACHED failed GONE");
	story("ended CLOSING detach DETACHED ended DETACHED failed GONE");
	/* Given up, begun again by our send, and its old BYE comes now. */
	story("failed DEAD detach GONE ended GONE");
	/* It is closed, and our connection to it breaks later. */
	story("ended CLOSING failed CLOSED failed CLOSED detach GONE");
	/* A stranger in its place was refused; nothing was outstanding. */
	story("ended CLOSING ended CLOSING failed CLOSED detach GONE");
	/* Not in the AV, silent for ten seconds after it was given up. */
	story("failed DEAD failed DEAD detach GONE failed GONE");

	for (s = 0; s < LNX_LIFE_NSTATE; s++)
		for (e = 0; e < LNX_LIFE_NEVENT; e++)
			cr_expect(told[s][e], "no story of %s, %s", states[s],
				  events[e]);
}

Test(life, nothing_opens_again)
{
	unsigned s, e;

	for (s = 0; s < LNX_LIFE_NSTATE; s++)
		for (e = 0; e < LNX_LIFE_NEVENT; e++)
			cr_expect_neq(lnx_life_table[s][e], LNX_LIFE_OPEN, "%s %s",
				      events[e], states[s]);
}

/* What has failed does not wait for it again, what no id leads to is not found again. */
Test(life, one_direction)
{
	unsigned s, e;

	for (s = 0; s < LNX_LIFE_NSTATE; s++) {
		for (e = 0; e < LNX_LIFE_NEVENT; e++) {
			uint8_t next = lnx_life_table[s][e];

			cr_expect_lt(next, LNX_LIFE_NSTATE);
			cr_expect(lnx_life_dead(next) ==
				  (lnx_life_dead((uint8_t)s) || e == LNX_LIFE_FAILED));
			cr_expect(lnx_life_detached(next) ==
				  (lnx_life_detached((uint8_t)s) || e == LNX_LIFE_DETACH));
			cr_expect_eq(lnx_life_table[next][e], next, "%s twice, %s",
				     events[e], states[s]);
		}
	}
}
