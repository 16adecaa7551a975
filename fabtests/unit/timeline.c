/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stories with times: what happens, what follows, and what the caller of rel/ does then.
 * See timeline.h.
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timeline_inside.h"

struct timeline t;

static __attribute__((format(printf, 1, 2))) void say(const char *fmt, ...)
{
	size_t n = strlen(t.got);
	va_list ap;

	if (n)
		n += (size_t)snprintf(t.got + n, sizeof(t.got) - n, ", ");
	va_start(ap, fmt);
	vsnprintf(t.got + n, sizeof(t.got) - n, fmt, ap);
	va_end(ap);
}

/* ---- what follows ---- */

static char name_of(unsigned path)
{
	return (char)('A' + path);
}

static void path_happens(unsigned which, unsigned event, bool loud)
{
	struct path *p = &t.path[which];

	tell(PATH_TABLE, p->state, event);
	p->state = lnx_path_table[p->state][event];
	if (loud)
		say("%s", path_states[p->state]);
}

static void life_happens(unsigned event)
{
	tell(LIFE_TABLE, t.life, event);
	t.life = lnx_life_table[t.life][event];
	say("%s", life_states[t.life]);
}

static bool usable(unsigned path)
{
	return t.path[path].state != LNX_PATH_DOWN;
}

/* The path on which a frame leaves again. */
static unsigned path_for(const struct lnx_frame *f, bool other)
{
	unsigned i;

	for (i = other; i <= t.npath; i++)
		if (usable((f->path + i) % t.npath))
			return (f->path + i) % t.npath;
	return f->path;
}

static void again(unsigned from, unsigned to, unsigned path)
{
	if (from && from == to)
		say("%u again on %c", from, name_of(path));
	else if (from)
		say("%u..%u again on %c", from, to, name_of(path));
}

/* What is to leave again leaves. */
static void pump(bool other)
{
	unsigned from = 0, to = 0, on = 0;
	enum lnx_chan_what what;
	struct lnx_frame *f;

	while ((f = lnx_chan_next_out(&t.c, &what))) {
		unsigned number = (unsigned)(f - t.frame), path = path_for(f, other);
		uint8_t before = f->path;

		cr_assert_neq(what, LNX_CHAN_OUT_NEW);
		f->path = (uint8_t)path;
		lnx_chan_out(&t.c, what, f->seq, before);
		if (what == LNX_CHAN_OUT_PROBE) {
			say("probe %u on %c", number, name_of(path));
			continue;
		}
		if (from && number == to + 1 && path == on) {
			to++;
			continue;
		}
		again(from, to, on);
		from = to = number;
		on = path;
	}
	again(from, to, on);
}

static void path_down(unsigned which)
{
	path_happens(which, LNX_PATH_LOST, false);
	t.path[which].silence = (struct lnx_silence){ 0 };
	lnx_chan_retransmit(&t.c, 1u << which);
}

static void give_up(void)
{
	life_happens(LNX_LIFE_FAILED);
	while (!lnx_chan_idle(&t.c))
		lnx_chan_pop_una(&t.c);
	lnx_chan_end(&t.c);
}

/* ---- a look: rel/control.c, rel/liveness.c, rel/detect.c ---- */

static void look_at_loss(void)
{
	static const char *const names[] = {
		[LNX_LOSS_MOVED] = "MOVED", [LNX_LOSS_ASK] = "ASK",
		[LNX_LOSS_INSIST] = "INSIST",
	};
	bool idle = lnx_chan_idle(&t.c);
	unsigned state = loss_state();
	enum lnx_loss_todo todo;
	int path;

	todo = lnx_loss_look(&t.loss, &t.c, lnx_chan_acked_any(&t.c) ? LNX_RTO_FIRST_NS :
			     LNX_ALIVE_NS, t.now);
	tell(LOSS_TABLE, state, todo == LNX_LOSS_ASK || todo == LNX_LOSS_INSIST ?
	     L_TIMEOUT : L_EARLY);
	if (todo == LNX_LOSS_MOVED)
		lnx_silence_peer_seen(&t.liveness);
	if (todo != LNX_LOSS_NOTHING)
		say("%s", names[todo]);
	path = lnx_loss_path(&t.c);
	if (idle || path < 0 || t.npath > 1 ||
	    (todo != LNX_LOSS_ASK && todo != LNX_LOSS_INSIST))
		return;
	lnx_loss_asked(&t.loss, &t.c, (unsigned)path, t.loss.last + 1, t.now);
}

/* True: its frames leave again over another path. */
static bool look_at_path(unsigned which)
{
	static const char *const names[] = {
		[LNX_SILENCE_PROGRESS] = "works", [LNX_SILENCE_BEGINS] = "begins",
		[LNX_SILENCE_ASK_KERNEL] = "ASK KERNEL", [LNX_SILENCE_ASK] = "ASK PEER",
		[LNX_SILENCE_ELSEWHERE] = "ELSEWHERE", [LNX_SILENCE_DOWN] = "DOWN",
	};
	struct path *p = &t.path[which];
	struct lnx_silence_view v = {
		.progress = p->progress, .una = t.c.una, .timeout_ns = TIMEOUT_NS,
		.acked = lnx_chan_acked_any(&t.c),
		.kernel_answers = p->kernel == ALIVE || p->kernel == REFUSES,
	};
	unsigned state = silence_state(p);
	enum lnx_silence_verdict verdict;
	uint32_t seq;

	for (seq = t.c.una; seq != t.c.posted; seq++)
		v.frames |= (*lnx_chan_slot(&t.c, seq))->path == which;
	verdict = lnx_silence_look(&p->silence, &v, t.now);
	tell(SILENCE_TABLE, state, verdict == LNX_SILENCE_PROGRESS ? S_PROGRESS :
	     verdict == LNX_SILENCE_NOTHING ? S_DONE : S_LOOK);
	if (verdict == LNX_SILENCE_NOTHING || verdict == LNX_SILENCE_WAIT)
		return false;
	say("%c %s", name_of(which), names[verdict]);
	if (verdict == LNX_SILENCE_DOWN)
		path_down(which);
	if (verdict == LNX_SILENCE_ELSEWHERE)
		lnx_chan_retransmit(&t.c, 1u << which);
	return verdict == LNX_SILENCE_ELSEWHERE;
}

/* True: the oldest frame does. */
static bool look_for_late(void)
{
	int which = lnx_loss_path(&t.c);
	struct path *p;

	if (which < 0)
		return false;
	p = &t.path[which];
	switch (lnx_loss_late(&p->late, &t.c, TIMEOUT_NS, t.pong_ns, t.now)) {
	case LNX_LOSS_ASK:
		/* The same question as whether the path is silent. */
		if (!p->silence.probe_sent_ns) {
			say("late ASK");
			p->silence.probe_sent_ns = t.now;
		}
		break;
	case LNX_LOSS_LATE:
		say("late AGAIN");
		lnx_loss_late_again(&p->late, &t.c, (unsigned)which);
		return true;
	default:
		break;
	}
	return false;
}

static void look_at_peer(void)
{
	struct lnx_liveness_view v = {
		.limit_ns = 5 * LNX_NS_PER_S, .stall_limit_ns = 20 * LNX_NS_PER_S,
		.npath = t.npath,
	};
	enum lnx_liveness_verdict verdict;
	unsigned state = liveness_state(), i;

	for (i = 0; i < t.npath; i++) {
		v.alive += t.path[i].kernel == ALIVE;
		v.refused += t.path[i].kernel == REFUSES;
		v.unknown += t.path[i].kernel == UNKNOWN;
	}
	verdict = lnx_silence_peer_look(&t.liveness, t.now);
	tell(LIVENESS_TABLE, state, v.alive ? V_ALIVE : v.unknown ? V_UNKNOWN :
	     v.refused ? V_REFUSED : V_MUTE);
	if (verdict == LNX_LIVENESS_LOOK)
		verdict = lnx_silence_peer_judge(&t.liveness, &v, t.now);
	switch (verdict) {
	case LNX_LIVENESS_ASK_KERNELS:
		say("peer ASK KERNELS");
		lnx_silence_peer_asked(&t.liveness, t.now);
		break;
	case LNX_LIVENESS_REFUSED:
	case LNX_LIVENESS_TIMED_OUT:
		say(verdict == LNX_LIVENESS_REFUSED ? "peer REFUSED" : "peer TIMED OUT");
		give_up();
		break;
	default:
		break;
	}
}

static void look(void)
{
	bool other = false;
	unsigned i;

	if (t.life != LNX_LIFE_OPEN)
		return;
	if (!lnx_chan_idle(&t.c) || t.waits)
		look_at_loss();
	for (i = 0; i < t.npath && t.npath > 1; i++)
		if (usable(i))
			other |= look_at_path(i);
	if (t.npath > 1)
		other |= look_for_late();
	if (lnx_chan_idle(&t.c) && !t.waits)
		lnx_silence_peer_seen(&t.liveness);
	else
		look_at_peer();
	pump(other);
}

/* ---- what happens ---- */

struct args {
	unsigned from, to, path;
};

static void posted(const struct args *a, unsigned arg)
{
	unsigned n;

	(void)arg;
	if (lnx_chan_idle(&t.c))
		lnx_loss_restart(&t.loss, &t.c);
	for (n = a->from; n <= a->to; n++) {
		struct lnx_frame *f = &t.frame[n];

		cr_assert(n && n <= FRAMES && lnx_chan_window_open(&t.c));
		f->path = (uint8_t)a->path;
		f->len = 100;
		cr_assert_eq(lnx_chan_number(&t.c, f), n, "%s: %s", t.title, t.line);
		lnx_chan_posted(&t.c, f, f->len);
	}
}

static void acked(const struct args *a, unsigned arg)
{
	uint32_t n = lnx_chan_ackable(&t.c, a->to + 1);

	(void)arg;
	tell(LOSS_TABLE, loss_state(), L_ACK);
	for (; n; n--)
		lnx_chan_pop_una(&t.c);
	lnx_chan_after_ack(&t.c);
	pump(false);
}

static void nothing_came(const struct args *a, unsigned arg)
{
	(void)a;
	(void)arg;
	look();
}

/* A frame or an acknowledgement of the peer. */
static void lives(const struct args *a, unsigned arg)
{
	(void)a;
	(void)arg;
	tell(LIVENESS_TABLE, liveness_state(), V_FRAME);
	lnx_silence_peer_seen(&t.liveness);
}

static void more_came(const struct args *a, unsigned arg)
{
	t.path[a->path].progress++;
	lives(a, arg);
}

static void probe_over(const struct args *a, unsigned arg)
{
	(void)arg;
	lnx_loss_asked(&t.loss, &t.c, a->path, ++t.path[a->path].probes, t.now);
}

static void pong_over(const struct args *a, unsigned arg)
{
	const struct lnx_loss *l = &t.loss;
	bool match = a->from - l->number <= l->last - l->number;

	lives(a, arg);
	tell(LOSS_TABLE, loss_state(), !match ? L_OTHER_PONG :
	     a->path != l->path ? L_OTHER_PATH : L_PONG);
	if (lnx_loss_answered(&t.loss, &t.c, a->path, a->from, t.now))
		say("LOST");
	pump(false);
}

enum { ABOUT, OLD, NEWS };

static void pong_about(const struct args *a, unsigned arg)
{
	struct path *p = &t.path[a->path];

	lives(a, arg);
	t.pong_ns = t.now;
	tell(SILENCE_TABLE, silence_state(p), arg == NEWS ? S_NEWS :
	     arg == OLD ? S_OLD_PONG : S_PONG);
	p->progress += arg == NEWS;
	lnx_silence_answered(&p->silence, arg == NEWS, arg != OLD);
}

static void kernel(const struct args *a, unsigned arg)
{
	t.path[a->path].kernel = (enum kernel)arg;
}

static void core_keeps(const struct args *a, unsigned arg)
{
	t.frame[a->from].in_core = arg;
}

static void path_event(const struct args *a, unsigned arg)
{
	struct path *p = &t.path[a->path];

	path_happens(a->path, arg, true);
	if (arg == LNX_PATH_LOST && p->state == LNX_PATH_DOWN) {
		p->silence = (struct lnx_silence){ 0 };
		lnx_chan_retransmit(&t.c, 1u << a->path);
	}
	if (arg == LNX_PATH_BROKE)
		lnx_chan_retransmit(&t.c, 1u << a->path);
	pump(false);
}

static void life_event(const struct args *a, unsigned arg)
{
	(void)a;
	if (arg == LNX_LIFE_FAILED)
		give_up();
	else
		life_happens(arg);
}

static void new_session(const struct args *a, unsigned arg)
{
	(void)a;
	(void)arg;
	t.c.flags |= LNX_CHAN_NO_ACK_YET;
}

static void waits(const struct args *a, unsigned arg)
{
	(void)a;
	if (arg && !t.waits && lnx_chan_idle(&t.c))
		lnx_loss_restart(&t.loss, &t.c);
	t.waits = arg;
}

/* # a number, #..# or # numbers, $ a path. */
static const struct {
	const char *phrase;
	void (*happens)(const struct args *a, unsigned arg);
	unsigned arg;
} phrases[] = {
	{ "a new session", new_session, 0 },
	{ "a large message waits for the peer's read", waits, 1 },
	{ "the peer has read all", waits, 0 },
	{ "posted # on $", posted, 0 },
	{ "acked #", acked, 0 },
	{ "nothing came", nothing_came, 0 },
	{ "nothing else came", nothing_came, 0 },
	{ "back from the debugger", nothing_came, 0 },
	{ "the machine wakes up", nothing_came, 0 },
	{ "more came over $", more_came, 0 },
	{ "a frame of the peer", lives, 0 },
	{ "probe over $", probe_over, 0 },
	{ "pong # over $", pong_over, 0 },
	{ "pong about $", pong_about, ABOUT },
	{ "old pong about $", pong_about, OLD },
	{ "pong with news of $", pong_about, NEWS },
	{ "kernel of $ answers", kernel, ALIVE },
	{ "kernel of $ is silent", kernel, MUTE },
	{ "kernel of $ refuses", kernel, REFUSES },
	{ "kernel of $ cannot be asked", kernel, UNKNOWN },
	{ "the core of $ keeps #", core_keeps, 1 },
	{ "the core of $ releases #", core_keeps, 0 },
	/* A path's life. */
	{ "$ takes a frame", path_event, LNX_PATH_TOOK },
	{ "$ connects", path_event, LNX_PATH_TOOK },
	{ "$ refuses a frame", path_event, LNX_PATH_REFUSED },
	{ "$ is busy", path_event, LNX_PATH_REFUSED },
	{ "$ resets the connection", path_event, LNX_PATH_BROKE },
	{ "a late error of $", path_event, LNX_PATH_BROKE },
	{ "the deadline of $ passes", path_event, LNX_PATH_EXPIRED },
	{ "the ack for $ is dropped", path_event, LNX_PATH_GAVE_UP },
	{ "link of $ goes down", path_event, LNX_PATH_LOST },
	{ "the peer's link to $ goes down", path_event, LNX_PATH_LOST },
	{ "$ is drained", path_event, LNX_PATH_LOST },
	{ "health of $ is 0", path_event, LNX_PATH_LOST },
	{ "the peer answers over $", path_event, LNX_PATH_ANSWERED },
	{ "$ is taken back", path_event, LNX_PATH_ANSWERED },
	{ "the rail of $ is opened anew", path_event, LNX_PATH_REOPENED },
	/* A peer's. */
	{ "BYE of the peer", life_event, LNX_LIFE_ENDED },
	{ "the peer refuses the session", life_event, LNX_LIFE_ENDED },
	{ "another endpoint is there", life_event, LNX_LIFE_ENDED },
	{ "what is outstanding fails", life_event, LNX_LIFE_FAILED },
	{ "its process is killed", life_event, LNX_LIFE_FAILED },
	{ "HELLO of its next session", life_event, LNX_LIFE_DETACH },
	{ "a send begins the next session", life_event, LNX_LIFE_DETACH },
	{ "it is removed from the AV", life_event, LNX_LIFE_DETACH },
};

static bool matches(const char *phrase, const char *text, struct args *a)
{
	char *end;

	while (*phrase) {
		if (*phrase == '$') {
			if (*text < 'A' || *text >= (char)('A' + t.npath))
				return false;
			a->path = (unsigned)(*text++ - 'A');
		} else if (*phrase == '#') {
			a->from = a->to = (unsigned)strtoul(text, &end, 10);
			if (end == text)
				return false;
			text = end;
			if (!strncmp(text, "..", 2)) {
				a->to = (unsigned)strtoul(text + 2, &end, 10);
				text = end;
			}
		} else if (*phrase != *text++) {
			return false;
		}
		phrase++;
	}
	return !*text;
}

static uint64_t time_of(const char **text)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "ms ", MS }, { "s ", LNX_NS_PER_S }, { "min ", 60 * LNX_NS_PER_S },
		{ "h ", 3600 * LNX_NS_PER_S },
	};
	char *end;
	uint64_t n = strtoull(*text, &end, 10);
	unsigned i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != *text && !strncmp(end, units[i].unit, strlen(units[i].unit))) {
			*text += end - *text + (ptrdiff_t)strlen(units[i].unit);
			*text += strspn(*text, " ");
			return BEGIN + n * units[i].ns;
		}
	cr_assert_fail("\"%s\": \"%s\" has no time", t.title, t.line);
	return 0;
}

static void line(const char *text)
{
	char event[128];
	const char *want;
	struct args a = { 0, 0, 0 };
	uint64_t now;
	size_t n;
	unsigned i;

	t.line = text;
	now = time_of(&text);
	cr_assert(now >= t.now, "\"%s\": \"%s\" goes back in time", t.title, t.line);
	t.now = now;
	want = strstr(text, ": ");
	n = want ? (size_t)(want - text) : strlen(text);
	want = want ? want + 2 : "";
	cr_assert_lt(n, sizeof(event));
	memcpy(event, text, n);
	event[n] = 0;
	t.got[0] = 0;
	for (i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (matches(phrases[i].phrase, event, &a))
			break;
	cr_assert(i < sizeof(phrases) / sizeof(phrases[0]), "\"%s\": what is \"%s\"?",
		  t.title, event);
	phrases[i].happens(&a, phrases[i].arg);
	cr_expect_str_eq(t.got, want, "\"%s\": \"%s\"\n\tgot: %s", t.title, t.line, t.got);
}

void story(unsigned npath, const char *title, const char *const *lines)
{
	cr_assert(npath && npath <= PATHS);
	tell_title(title);
	memset(&t, 0, sizeof(t));
	t.title = title;
	t.npath = npath;
	t.now = BEGIN;
	lnx_chan_init(&t.c);
	cr_assert_eq(lnx_chan_open(&t.c, WINDOW), 0);
	t.c.next = t.c.posted = t.c.una = 1;
	t.c.flags = 0;
	lnx_loss_restart(&t.loss, &t.c);
	while (*lines)
		line(*lines++);
	while (!lnx_chan_idle(&t.c))
		lnx_chan_pop_una(&t.c);
	lnx_chan_fini(&t.c);
}
