/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/silence: stories of paths and of peers.  A story is words: what happens, and
 * "TIME:verdict" for a look at that time, in ms.  The timeout of a path is 100 ms; a peer is
 * given up after 5 s, and after 20 s if its kernel answers.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rel/silence.h"

#define BEGIN	(1000 * LNX_NS_PER_S)

static bool is(const char *word, const char *what)
{
	return !strcmp(word, what);
}

static unsigned find(const char *const *names, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	cr_assert_fail("no such word: %s", name);
	return 0;
}

/* The look that the word asks for. */
static uint64_t time_of(const char *word, const char **verdict)
{
	char *end;
	unsigned long ms = strtoul(word, &end, 10);

	cr_assert(end != word && *end == ':', "%s", word);
	*verdict = end + 1;
	return BEGIN + ms * LNX_NS_PER_MS;
}

/* ---- a path ---- */

static const char *const verdicts[] = {
	[LNX_SILENCE_NOTHING] = "nothing", [LNX_SILENCE_PROGRESS] = "progress",
	[LNX_SILENCE_BEGINS] = "begins", [LNX_SILENCE_WAIT] = "wait",
	[LNX_SILENCE_ASK_KERNEL] = "ask-kernel", [LNX_SILENCE_ASK] = "ask",
	[LNX_SILENCE_ELSEWHERE] = "elsewhere", [LNX_SILENCE_DOWN] = "down",
};

static bool shown[LNX_ARRAY_SIZE(verdicts)];

static void happens(struct lnx_silence *s, struct lnx_silence_view *v, const char *word)
{
	if (is(word, "frames"))
		v->frames = true;
	else if (is(word, "acked"))
		v->frames = false;
	else if (is(word, "reads"))
		v->reads = true;
	else if (is(word, "read"))
		v->reads = false;
	else if (is(word, "bytes"))
		v->progress++;
	else if (is(word, "oldest"))
		v->una++;
	else if (is(word, "unknown"))
		v->acked = false;
	else if (is(word, "kernel"))
		v->kernel_answers = true;
	else if (is(word, "pong"))
		lnx_silence_answered(s, false, true);
	else if (is(word, "old-pong"))
		lnx_silence_answered(s, false, false);
	else if (is(word, "report")) {
		v->progress++;
		lnx_silence_answered(s, true, true);
	} else
		cr_assert_fail("no such word: %s", word);
}

static void path_story(const char *text)
{
	struct lnx_silence_view v = { .timeout_ns = 100 * LNX_NS_PER_MS, .acked = true };
	struct lnx_silence s = { 0 };
	char words[512], *save = NULL, *w;

	cr_assert_lt(strlen(text), sizeof(words));
	strcpy(words, text);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		const char *verdict;
		unsigned got, want;
		uint64_t now;

		if (!strchr(w, ':')) {
			happens(&s, &v, w);
			continue;
		}
		now = time_of(w, &verdict);
		want = find(verdicts, LNX_ARRAY_SIZE(verdicts), verdict);
		got = lnx_silence_look(&s, &v, now);
		shown[got] = true;
		cr_expect_eq(got, want, "\"%s\": %s, not %s at %s", text, verdicts[got],
			     verdicts[want], w);
	}
}

Test(silence, of_a_path)
{
	unsigned i;

	/* Nothing is due, ever. */
	path_story("0:nothing 1000:nothing 100000:nothing");
	/* Frames come and are acknowledged. */
	path_story("frames 0:begins 2:wait acked 4:nothing frames 6:begins");
	/* Progress, by bytes or by the oldest frame, starts again. */
	path_story("frames 0:begins 40:wait bytes 45:progress 90:wait oldest 94:progress "
		   "140:wait 145:ask-kernel");
	/* While it reads, the oldest frame says nothing of this path. */
	path_story("reads 0:begins oldest 40:wait 60:ask-kernel oldest 100:ask");
	path_story("reads 0:begins bytes 60:progress 100:wait");
	/* Dead: the peer answers that nothing came. */
	path_story("frames 0:begins 50:ask-kernel 98:wait 100:ask 101:wait pong 104:down");
	/* The peer computes: nothing answers, no path is charged; it is asked more rarely. */
	path_story("frames 0:begins 50:ask-kernel 100:ask 199:wait 200:ask 399:wait 400:ask "
		   "800:ask 1299:wait 1300:ask 60000:ask");
	/* It answers, and more has come than we knew: but half a timeout ago. */
	path_story("frames 0:begins 50:ask-kernel 100:ask report 102:progress "
		   "103:ask-kernel 152:ask pong 154:down");
	/* An answer to another question. */
	path_story("frames 0:begins 50:ask-kernel 100:ask old-pong 102:wait 200:ask");
	/* An answer to none. */
	path_story("frames 0:begins pong 50:ask-kernel pong 100:ask 101:wait");
	/* Its kernel answers: congested, and then four times as long. */
	path_story("frames 0:begins 50:ask-kernel kernel 100:ask pong 102:wait 399:wait "
		   "400:down");
	path_story("frames 0:begins 50:ask-kernel kernel 100:ask pong 102:wait bytes "
		   "300:progress 340:wait");
	/* This process was away: it asks first. */
	path_story("frames 0:begins 60000:ask-kernel 60002:ask 60004:wait pong 60006:down");
	/* What it was waited for came while it was away. */
	path_story("frames 0:begins bytes 60000:progress 60040:wait");
	/* A peer that does not know us cannot answer. */
	path_story("unknown frames 0:begins 50:ask-kernel 100:wait 199:wait 200:elsewhere "
		   "202:begins 402:ask-kernel 404:elsewhere");
	/* But for reads, which it cannot wait for without knowing us. */
	path_story("unknown reads 0:begins 50:ask-kernel 100:ask");
	/* All was acknowledged while it was asked: its answer comes too late. */
	path_story("frames 0:begins 50:ask-kernel 100:ask acked 102:nothing pong frames "
		   "104:begins 154:ask-kernel 204:ask");
	for (i = 0; i < LNX_ARRAY_SIZE(shown); i++)
		cr_expect(shown[i], "no story shows %s", verdicts[i]);
}

/* ---- a peer ---- */

static const char *const says[] = {
	[LNX_LIVENESS_WAIT] = "wait", [LNX_LIVENESS_ASK_KERNELS] = "ask",
	[LNX_LIVENESS_LOOK] = "look", [LNX_LIVENESS_REFUSED] = "refused",
	[LNX_LIVENESS_TIMED_OUT] = "timed-out",
};

/* Two paths; kernels: "alive", "refuse", "unknown", "unasked" or "mute", of both.  "late": one
 * that could not be asked is asked at the time of the last look. */
static void peer_story(const char *text)
{
	struct lnx_liveness_view v = {
		.limit_ns = 5 * LNX_NS_PER_S, .stall_limit_ns = 20 * LNX_NS_PER_S,
		.unasked_limit_ns = 8 * LNX_NS_PER_S, .npath = 2,
	};
	struct lnx_liveness l = { 0 };
	uint64_t now = 0;
	char words[512], *save = NULL, *w;

	cr_assert_lt(strlen(text), sizeof(words));
	strcpy(words, text);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		const char *verdict;
		unsigned got, want;

		if (!strchr(w, ':')) {
			if (is(w, "frame")) {
				lnx_silence_peer_seen(&l);
				continue;
			}
			if (is(w, "late")) {
				lnx_silence_peer_asked_late(&l, &v, now);
				continue;
			}
			v.alive = is(w, "alive") ? 2 : is(w, "one-alive");
			v.refused = is(w, "refuse") ? 2 : is(w, "one-refuses");
			v.unknown = is(w, "unknown") ? 2 : is(w, "one-unknown");
			v.unasked = is(w, "unasked") ? 2 : is(w, "one-unasked");
			cr_assert(v.alive || v.refused || v.unknown || v.unasked ||
				  is(w, "mute") || is(w, "for-ever"), "%s", w);
			if (is(w, "for-ever"))
				v.stall_limit_ns = 0, v.alive = 2;
			continue;
		}
		now = time_of(w, &verdict);
		want = find(says, LNX_ARRAY_SIZE(says), verdict);
		got = lnx_silence_peer_look(&l, now);
		if (got == LNX_LIVENESS_LOOK)
			got = lnx_silence_peer_judge(&l, &v, now);
		if (got == LNX_LIVENESS_ASK_KERNELS)
			lnx_silence_peer_asked(&l, now);
		cr_expect_eq(got, want, "\"%s\": %s, not %s at %s", text, says[got],
			     says[want], w);
	}
}

Test(silence, of_a_peer)
{
	/* It answers in time. */
	peer_story("0:wait 400:wait frame 450:wait 900:wait 951:ask");
	/* Nothing there: after the transaction timeout. */
	peer_story("mute 0:wait 499:wait 500:ask 999:wait 1500:ask 2500:ask 3500:ask "
		   "4500:ask 4999:wait 5000:timed-out");
	/* No process listens: the error says so. */
	peer_story("refuse 0:wait 500:ask 1500:ask 4500:ask 5000:refused");
	peer_story("one-refuses 0:wait 500:ask 1500:ask 4500:ask 5000:timed-out");
	/* It computes: its kernel answers, and it has all the time of the stall limit. */
	peer_story("alive 0:wait 500:ask 600:wait 1100:ask 1200:wait 1700:ask");
	/* One kernel is enough. */
	peer_story("one-alive 0:wait 500:ask 600:wait 6000:ask 6100:wait");
	/* Then it is given up: 2 s of each look count at most. */
	peer_story("alive 0:wait 500:ask 2000:wait 2500:ask 4000:wait 4500:ask 6000:wait "
		   "6500:ask 8000:wait 8500:ask 10000:wait 10500:ask 12000:wait 12500:ask "
		   "14000:wait 14500:ask 16000:wait 16500:ask 18000:wait 18500:ask "
		   "20000:timed-out");
	/* Without a limit it is never. */
	peer_story("for-ever 0:wait 500:ask 2000:wait 900000:ask 902000:wait 1900000:ask");
	/* What cannot be known ends nothing before the stall limit, */
	peer_story("unknown 0:wait 500:ask 5000:ask 6000:ask 19000:ask 19999:wait "
		   "20000:timed-out");
	peer_story("one-unknown 0:wait 500:ask 5000:ask 19000:ask 20000:timed-out");
	/* and what only could not be asked nothing before the limit of that. */
	peer_story("unasked 0:wait 500:ask 5000:ask 7000:ask 7999:wait 8000:timed-out");
	peer_story("one-unasked 0:wait 500:ask 5000:ask 7000:ask 7999:wait 8000:timed-out");
	/* A frame of it, or an answer, at any time. */
	peer_story("unasked 0:wait 500:ask 7000:ask 7900:wait frame 8000:wait 8500:ask "
		   "15000:ask 15999:wait 16000:timed-out");
	peer_story("unasked 0:wait 500:ask 7000:ask one-alive 7999:wait 8499:ask");
	/* One that is asked at last has time to answer, but not again and again. */
	peer_story("unasked 0:wait 500:ask 5000:ask 5600:wait late mute 6000:wait 6099:wait "
		   "6100:timed-out");
	peer_story("unasked 0:wait 500:ask 7600:ask 7900:wait late 8000:wait late 8399:wait late "
		   "8400:timed-out");
	/* A frame of it, at any time. */
	peer_story("mute 0:wait 500:ask 4900:ask frame 5000:wait 5400:wait 5500:ask "
		   "9999:ask 10498:wait 10499:timed-out");
	/* This process was away for long: kernels are asked, and have time to answer. */
	peer_story("mute 0:wait 60000:ask 60100:wait 60500:timed-out");
	peer_story("mute 0:wait 60000:ask 60100:wait alive 60499:wait 60900:wait 61000:ask");
}
