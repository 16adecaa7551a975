/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rel/sched: the path of the next frame and of the next piece.  One choice is one line: what
 * is known, and what it makes of that.  Then choices at random, beside a plain model.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/interval.h"
#include "policy/health.h"
#include "rel/sched.h"
#include "seed.h"

#define MS	LNX_NS_PER_MS
#define NOW	(100 * LNX_NS_PER_S)
#define LIMIT	32768u
#define NPATH	3u

/* The world of a line, and what it points to. */
static struct lnx_sched s;
static struct lnx_ranking ranking;
static struct lnx_rate rate[LNX_WIRE_PATHS];
static struct lnx_tail tail[LNX_WIRE_PATHS];
static struct lnx_rank_path lnet[LNX_RANK_PATHS];
static struct lnx_rank_how how = { .mode = LNX_SELECTION_LNET, .health_first = true };

/* ---- a line in words ---- */

static unsigned letter(char c)
{
	cr_assert(c >= 'A' && c < 'A' + (int)NPATH, "no path %c", c);
	return (unsigned)(c - 'A');
}

static uint8_t letters(const char *text)
{
	unsigned mask = 0;

	for (; *text >= 'A' && *text <= 'Z'; text++)
		mask |= 1u << letter(*text);
	return (uint8_t)mask;
}

/* "40k", "100M", "5ms", "2s". */
static uint64_t number(const char *text)
{
	static const struct {
		const char *unit;
		uint64_t by;
	} units[] = {
		{ "", 1 }, { "k", 1024 }, { "M", 1000000 }, { "us", LNX_NS_PER_US },
		{ "ms", LNX_NS_PER_MS }, { "s", LNX_NS_PER_S },
	};
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	unsigned i;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].unit))
			return n * units[i].by;
	cr_assert(false, "no number: %s", text);
	return 0;
}

/* Paths with nothing to say of them: all work, A is in use, they share the traffic. */
static void begin(void)
{
	unsigned i;

	memset(&s, 0, sizeof(s));
	memset(rate, 0, sizeof(rate));
	memset(tail, 0, sizeof(tail));
	memset(lnet, 0, sizeof(lnet));
	memset(&ranking, 0, sizeof(ranking));
	s.now = NOW;
	s.n = NPATH;
	s.stripe = (1u << NPATH) - 1;
	s.acked = s.posted = true;
	s.hello = -1;
	s.hearsay_ns = 200 * MS;
	s.how = &how;
	s.chunk = s.left = 1 << 20;
	for (i = 0; i < NPATH; i++) {
		struct lnx_rank_rules none;

		s.path[i] = (struct lnx_sched_path){
			.state = LNX_PATH_UP, .share = LNX_WEIGHT_MAX, .rate = &rate[i],
			.inflight_limit = LIMIT, .credits = true, .able = true,
			.done_ns = NOW, .tail = &tail[i],
		};
		lnet[i] = (struct lnx_rank_path){
			.prov = LNX_PROV_TCP, .rail = (uint8_t)i, .remote = (uint8_t)i,
			.health = LNX_HEALTH_MAX,
			.local_view = { .health = LNX_HEALTH_MAX, .credits = 8 },
			.remote_view = { .health = LNX_HEALTH_MAX, .credits = 8 },
		};
		lnx_rank_no_rules(&none);
		lnx_rank_says(&lnet[i], &none);
	}
}

/* "AC/B": A and C are of the first class, and come first. */
static void classes(const char *text)
{
	unsigned class = 0;

	for (; *text; text++) {
		if (*text == '/') {
			class++;
			continue;
		}
		ranking.order[ranking.n++] = (uint8_t)letter(*text);
		ranking.class[letter(*text)] = (uint8_t)class;
	}
	cr_assert_eq(ranking.n, NPATH);
	s.rank = &ranking;
	s.stripe = (uint8_t)lnx_rank_class(&ranking, NPATH, 0);
}

static bool starts(const char *word, const char *with, const char **rest)
{
	size_t n = strlen(with);

	*rest = word + n;
	return !strncmp(word, with, n);
}

static bool peer_word(const char *word)
{
	const char *v;

	if (starts(word, "cur=", &v))
		s.cur = (uint8_t)letter(*v);
	else if (starts(word, "class=", &v))
		classes(v);
	else if (starts(word, "stripe=", &v))
		s.stripe = letters(v);
	else if (starts(word, "turns=", &v))
		s.rr = letters(v);
	else if (starts(word, "last=", &v))
		s.rr_index = (uint8_t)letter(*v);
	else if (!strcmp(word, "lnet"))
		s.lnet = lnet;
	else if (starts(word, "left=", &v))
		s.left = number(v);
	else if (starts(word, "chunk=", &v))
		s.chunk = number(v);
	else if (starts(word, "threshold=", &v))
		s.threshold = number(v);
	else if (!strcmp(word, "silent"))	/* it has acknowledged nothing */
		s.acked = s.posted = false;
	else if (starts(word, "hello=", &v)) {
		s.acked = false;
		s.posted = true;
		s.hello = *v == '?' ? -1 : (int8_t)letter(*v);
	} else {
		return false;
	}
	return true;
}

static bool state_word(struct lnx_sched_path *p, const char *word)
{
	static const char *const states[LNX_PATH_NSTATE] = {
		[LNX_PATH_IDLE] = "idle", [LNX_PATH_CONNECTING] = "connects",
		[LNX_PATH_UP] = "up", [LNX_PATH_DEAD] = "dead", [LNX_PATH_DOWN] = "down",
	};
	const char *v;
	unsigned i;

	for (i = 0; i < LNX_PATH_NSTATE; i++)
		if (!strcmp(word, states[i])) {
			p->state = (uint8_t)i;
			return true;
		}
	/* "pauses=5ms": it connects, and is tried again in 5 ms. */
	if (starts(word, "pauses=", &v)) {
		p->state = LNX_PATH_CONNECTING;
		p->retry_ns = NOW + number(v);
		p->since_ns = NOW - MS;
		return true;
	}
	if (starts(word, "since=", &v)) {
		p->since_ns = NOW - number(v);
		return true;
	}
	return false;
}

/* The first word that is of a piece. */
static bool piece_word(unsigned i, const char *word)
{
	struct lnx_sched_path *p = &s.path[i];
	struct lnx_tail *t = &tail[i];
	const char *v;

	if (starts(word, "pieces=", &v)) {
		p->out = (uint32_t)number(v);
		p->out_bytes = p->out * 16384u;
	} else if (starts(word, "ended=", &v)) {
		p->done_ns = NOW - number(v);
	} else if (starts(word, "credit=", &v)) {
		p->credit = (int64_t)number(v);
	} else if (!strcmp(word, "unable")) {
		p->able = false;
	} else if (!strcmp(word, "failed")) {
		p->failed = true;
	} else if (starts(word, "refused=", &v)) {
		p->retry_ns = NOW + number(v);
	} else if (starts(word, "late=", &v)) {	/* one was, so long ago */
		t->late_ns = NOW - number(v);
		t->pause.until_ns = NOW + 8 * MS;
		t->window = LNX_STRIPE_MIN;
	} else if (starts(word, "window=", &v)) {
		t->window = number(v);
	} else if (!strcmp(word, "stuck")) {
		t->behind = 1;
	} else {
		return false;
	}
	return true;
}

static void path_word(unsigned i, const char *word)
{
	struct lnx_sched_path *p = &s.path[i];
	const char *v;

	if (state_word(p, word) || piece_word(i, word))
		return;
	if (!strcmp(word, "full"))
		p->out_bytes = LIMIT + 1;
	else if (starts(word, "out=", &v))
		p->out_bytes = number(v);
	else if (starts(word, "limit=", &v))
		p->inflight_limit = number(v);
	else if (starts(word, "rate=", &v))
		rate[i].rate = number(v);
	else if (starts(word, "link=", &v))
		p->link_bps = number(v);
	else if (starts(word, "share=", &v))
		p->share = (uint16_t)number(v);
	else if (starts(word, "answers=", &v))
		p->latency_ns = number(v);
	else if (starts(word, "had=", &v))	/* so many turns */
		p->turns = (uint32_t)number(v);
	else if (!strcmp(word, "nocredits"))
		p->credits = false;
	else if (!strcmp(word, "opens"))
		p->opens = true;
	else if (!strcmp(word, "away"))
		p->away = true;
	else if (!strcmp(word, "hearsay"))
		p->hearsay = true;
	else if (starts(word, "used=", &v))
		lnet[i].net_used = lnet[i].local_view.used = lnet[i].peer_net_used =
			lnet[i].remote_view.used = number(v);
	else if (starts(word, "credits=", &v))
		lnet[i].local_view.credits = (int32_t)number(v);
	else if (!strcmp(word, "linkdown"))
		lnet[i].state = LNX_RANK_DOWN;
	else
		cr_assert(false, "no such word: %s", word);
}

/* "class=AB/C A full nocredits BC down": words of a path follow its letter, or several. */
static void world(const char *text)
{
	char words[256], *save = NULL, *w;
	unsigned mask = 0, i;

	begin();
	cr_assert_lt(strlen(text), sizeof(words));
	strcpy(words, text);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (strspn(w, "ABC") == strlen(w)) {
			mask = letters(w);
			continue;
		}
		if (peer_word(w))
			continue;
		cr_assert(mask, "of which path: %s", w);
		for (i = 0; i < NPATH; i++)
			if (mask >> i & 1)
				path_word(i, w);
	}
	for (i = 0; i < NPATH; i++)
		s.sick |= s.path[i].share < LNX_WEIGHT_MAX;
}

/* ---- the next frame ---- */

static const char *const whys[] = {
	[LNX_SCHED_USUAL] = "usual", [LNX_SCHED_TURN] = "turn", [LNX_SCHED_LNET] = "lnet",
	[LNX_SCHED_SHORTEST] = "shortest", [LNX_SCHED_NONE] = "none",
	[LNX_SCHED_HELLO] = "hello", [LNX_SCHED_HEARSAY] = "hearsay",
};

static unsigned told;			/* why each choice was made: bits */

#define FRAME(known, want) frame(__LINE__, known, want)
/* want: "A usual", or "- none". */
static void frame(int line, const char *known, const char *want)
{
	struct lnx_sched_choice c;

	world(known);
	c = lnx_sched_frame(&s, 64);
	told |= 1u << c.why;
	cr_expect(want[0] == (c.path < 0 ? '-' : 'A' + c.path) && !strcmp(want + 2, whys[c.why]),
		  "line %d, \"%s\": %c %s, not %s", line, known,
		  c.path < 0 ? '-' : 'A' + c.path, whys[c.why], want);
}

static void the_path_in_use(void)
{
	FRAME("", "A usual");
	FRAME("cur=C", "C usual");
	/* It stays, though others are faster, idle, or of a better class. */
	FRAME("A rate=1M answers=4ms B rate=1000M answers=1ms", "A usual");
	FRAME("class=BC/A cur=A", "A usual");
	FRAME("A idle", "A usual");
	FRAME("A out=32k", "A usual");
	/* What does not fit on it takes the path over which it arrives first. */
	FRAME("A full", "B shortest");
	FRAME("A full B out=20k C out=10k", "C shortest");
	FRAME("A full B out=10k C out=10k", "B shortest");
	FRAME("A full B rate=10M C rate=100M", "C shortest");
	FRAME("A full rate=1000M B out=31k rate=1M C out=32k rate=2M", "A shortest");
	FRAME("A full B link=1000M C link=9000M", "C shortest");
	FRAME("A full B rate=100M share=100 C rate=50M", "C shortest");
	FRAME("stripe=AB A full B out=40k", "A shortest");
	FRAME("stripe=AC A full", "C shortest");
	FRAME("cur=B stripe=AC B out=5k limit=4k", "A shortest");
}

static void paths_that_do_not_work(void)
{
	FRAME("A down", "B shortest");
	FRAME("A pauses=1ms", "B shortest");
	FRAME("AB pauses=1ms", "C shortest");
	FRAME("A pauses=0ms", "A usual");
	FRAME("A dead", "A usual");
	FRAME("ABC pauses=1ms", "- none");
	FRAME("ABC down", "- none");
	FRAME("AB down C pauses=2ms", "- none");
	FRAME("AB down C connects", "C shortest");
	FRAME("AB down C idle", "C shortest");
	/* By class: those that share the traffic, and then one class after the other. */
	FRAME("class=AB/C A full B out=20k", "B shortest");
	FRAME("class=AB/C AB full", "A shortest");
	FRAME("class=AB/C AB down", "C shortest");
	FRAME("class=A/B/C A down", "B shortest");
	FRAME("class=A/B/C AB down", "C shortest");
	FRAME("class=A/B/C A down B pauses=1ms", "C shortest");
	FRAME("class=C/B/A cur=A A down B out=9k", "C shortest");
	FRAME("class=AB/C stripe=A A down B full", "B shortest");
	FRAME("stripe=A A down C out=9k", "B shortest");
	/* Far ones, even if their rate is not known to be low. */
	FRAME("A full answers=1ms B answers=50ms C out=60k answers=2ms", "A shortest");
	FRAME("A down answers=1ms B answers=50ms C out=60k answers=2ms", "C shortest");
	FRAME("AB down C answers=900ms", "C shortest");
}

static void paths_that_are_not_good(void)
{
	/* Frames were late there. */
	FRAME("A away", "B shortest");
	FRAME("AB away", "C shortest");
	FRAME("ABC away", "A usual");
	FRAME("A away full B full C out=1k", "C shortest");
	FRAME("A away BC full out=60k", "B shortest");
	FRAME("A away BC down", "A usual");
	FRAME("A away B pauses=1ms C down", "A usual");
	FRAME("class=A/BC A away", "A usual");
	FRAME("class=AB/C AB away", "A usual");
	FRAME("class=AB/C A away B out=9k", "B shortest");
	/* Without credits. */
	FRAME("A nocredits", "B shortest");
	FRAME("AB nocredits", "C shortest");
	FRAME("ABC nocredits", "A usual");
	FRAME("A nocredits BC down", "A usual");
	FRAME("class=A/BC A nocredits", "A usual");
	FRAME("class=BC/A cur=A A nocredits C out=1k", "B shortest");
	FRAME("A away B nocredits", "C shortest");
	FRAME("A nocredits BC away", "A usual");
	/* With a first frame that is not acknowledged. */
	FRAME("A opens", "B shortest");
	FRAME("A full B opens C full", "A shortest");
	FRAME("ABC opens", "A usual");
	FRAME("A opens BC down", "A usual");
	FRAME("A down BC opens C out=9k", "B shortest");
	FRAME("class=A/BC A opens", "A usual");
	FRAME("class=A/BC A full BC opens", "A shortest");
	FRAME("A opens B away", "C shortest");
	FRAME("A opens B nocredits", "C shortest");
	FRAME("A nocredits BC opens", "A usual");
}

static void before_it_has_answered(void)
{
	FRAME("silent", "A usual");
	FRAME("silent A full", "A usual");
	FRAME("hello=A", "A usual");
	FRAME("hello=B", "B usual");
	FRAME("hello=? cur=C", "C usual");
	FRAME("hello=B B full", "B usual");
	FRAME("hello=B B nocredits", "B usual");
	FRAME("hello=B B opens", "B usual");
	FRAME("hello=B B pauses=1ms", "- hello");
	FRAME("hello=? A pauses=1ms", "- hello");
	FRAME("hello=B B pauses=1ms since=499ms", "- hello");
	FRAME("hello=B B pauses=1ms since=500ms", "A shortest");
	FRAME("hello=B B down since=1ms", "A shortest");
	FRAME("hello=B B away", "A shortest");
	FRAME("silent A pauses=1ms", "B shortest");
	FRAME("hello=A turns=ABC last=A", "A usual");
	/* Others have said that a rail is dead. */
	FRAME("silent A pauses=1ms BC hearsay", "- hearsay");
	FRAME("silent A pauses=1ms B hearsay out=9k", "C shortest");
	FRAME("silent A pauses=1ms since=199ms BC hearsay", "- hearsay");
	FRAME("silent A pauses=1ms since=200ms BC hearsay", "B shortest");
	FRAME("silent A down since=1ms BC hearsay", "B shortest");
	FRAME("silent A pauses=1ms hearsay BC hearsay", "B shortest");
	FRAME("silent A hearsay B pauses=1ms", "A usual");
	FRAME("A pauses=1ms BC hearsay", "B shortest");
}

static void round_robin(void)
{
	FRAME("turns=ABC last=A", "B turn");
	FRAME("turns=ABC last=C", "A turn");
	FRAME("turns=AC last=A", "C turn");
	FRAME("turns=ABC last=A B down", "C turn");
	FRAME("turns=ABC last=A B pauses=1ms C away", "A turn");
	FRAME("turns=ABC last=A BC down", "A turn");
	FRAME("turns=ABC last=A B full", "B turn");
	FRAME("turns=ABC last=A B nocredits", "C turn");
	FRAME("turns=ABC last=A B opens", "C turn");
	FRAME("turns=ABC last=A ABC opens", "B turn");
	/* A sick one takes so many of its turns. */
	FRAME("turns=ABC last=A B share=250", "C turn");
	FRAME("turns=ABC last=A B share=250 had=2", "C turn");
	FRAME("turns=ABC last=A B share=250 had=3", "B turn");
	FRAME("turns=ABC last=A B share=250 had=4", "C turn");
	FRAME("turns=AB last=A B share=250", "A turn");
	FRAME("turns=ABC last=A B share=250 AC down", "B turn");
	FRAME("turns=ABC last=A B share=0 had=99", "C turn");
	FRAME("turns=ABC last=A BC share=250", "A turn");
	FRAME("turns=BC last=C B share=250 C share=500", "C turn");
	FRAME("turns=BC last=C B share=250 had=1 C share=500", "B turn");
	FRAME("class=AB/C turns=AB AB down", "C shortest");
	FRAME("turns=ABC ABC pauses=1ms", "- none");
	/* By LNet's tables. */
	FRAME("turns=ABC lnet last=A A used=3 B used=2 C used=1", "C lnet");
	FRAME("turns=ABC lnet last=A A used=3 B used=2 C used=1 down", "B lnet");
	FRAME("turns=ABC lnet A credits=8 B credits=9 C credits=7", "B lnet");
	FRAME("turns=ABC lnet A credits=8 B credits=9 C credits=7 B away", "A lnet");
	FRAME("turns=ABC lnet last=A ABC linkdown A down", "B turn");
	FRAME("turns=ABC lnet ABC down", "- none");
}

Test(sched, frames)
{
	the_path_in_use();
	paths_that_do_not_work();
	paths_that_are_not_good();
	before_it_has_answered();
	round_robin();
	cr_expect_eq(told, (1u << sizeof(whys) / sizeof(*whys)) - 1,
		     "not every reason was told: %x", told);
}

/* ---- instead of one that is not connected; and any that works ---- */

#define INSTEAD(known, want) cr_expect_eq(instead(known), want, "\"%s\"", known)
static char instead(const char *known)
{
	int path;

	world(known);
	path = lnx_sched_instead(&s);
	return path < 0 ? '-' : (char)('A' + path);
}

Test(sched, instead)
{
	INSTEAD("A connects", 'B');
	INSTEAD("A pauses=1ms B out=9k", 'C');
	INSTEAD("A connects BC down", '-');
	INSTEAD("A connects class=AB/C B pauses=1ms", 'C');
	INSTEAD("hello=C cur=A A connects", 'B');
	INSTEAD("silent A connects BC hearsay", 'B');
	INSTEAD("turns=ABC last=B A connects", 'B');
}

#define LIVE(known, want) cr_expect_eq(live(known), want, "\"%s\"", known)
static char live(const char *known)
{
	world(known);
	return (char)('A' + lnx_sched_live(&s));
}

Test(sched, live)
{
	LIVE("A connects", 'B');
	LIVE("class=C/B/A A connects", 'C');
	LIVE("class=C/B/A A connects C down", 'B');
	LIVE("ABC down", 'A');
	LIVE("cur=C ABC down", 'C');
	LIVE("A down B pauses=2ms C pauses=1ms", 'C');
	LIVE("A down BC pauses=1ms", 'B');
	LIVE("A pauses=1ms BC pauses=1ms", 'A');
	LIVE("A pauses=1ms B idle C down", 'B');
	LIVE("A idle B connects C idle", 'A');
	LIVE("A down B dead C pauses=1ms", 'B');
}

/* ---- the next piece ---- */

#define PIECE(known, want) piece(__LINE__, known, want)
/* want: the path; '-': none, and no piece under way will change that; '|': stand in line. */
static void piece(int line, const char *known, char want)
{
	bool in_line = false;
	int path;
	char got;

	world(known);
	path = lnx_sched_piece(&s, &in_line);
	got = path >= 0 ? (char)('A' + path) : in_line ? '|' : '-';
	cr_expect_eq(got, want, "line %d, \"%s\": %c, not %c", line, known, got, want);
	cr_expect_not(path >= 0 && in_line);
}

Test(sched, pieces)
{
	/* Each goes where it is finished first. */
	PIECE("", 'A');
	PIECE("left=16k A rate=100M B rate=200M C rate=50M", 'B');
	PIECE("ABC rate=100M A pieces=1", 'B');
	PIECE("ABC rate=100M AB pieces=1", 'C');
	PIECE("A rate=100M B rate=200M share=100 C unable", 'A');
	PIECE("ABC pieces=5", '|');
	/* A sick one without credit leaves pieces to better ones. */
	PIECE("ABC rate=100M A share=900 credit=1 BC pieces=1", 'A');
	PIECE("ABC rate=100M A share=900 BC pieces=1", 'B');
	PIECE("ABC rate=100M A share=900 BC pieces=99", '|');
	PIECE("ABC rate=100M A share=900 BC unable", 'A');
	PIECE("ABC rate=100M A share=900 BC down", 'A');
	PIECE("class=A/BC ABC rate=100M A share=100", 'A');
	PIECE("ABC rate=100M AB share=500 C unable", 'A');
	PIECE("ABC rate=100M A share=400 B share=500 C unable", 'B');
	/* Those that cannot. */
	PIECE("A unable", 'B');
	PIECE("A down", 'B');
	PIECE("A refused=1ms", 'B');
	PIECE("ABC unable", '-');
	PIECE("ABC refused=1ms", '-');
	PIECE("ABC refused=1ms C pieces=1", '|');
	PIECE("ABC unable pieces=1", '-');
	PIECE("A connects", 'A');
	/* By class.  A better one that is busy is waited for. */
	PIECE("class=B/AC", 'B');
	PIECE("class=B/AC B unable", 'A');
	PIECE("class=A/B/C AB down", 'C');
	PIECE("class=A/BC A refused=1ms pieces=1", '|');
	PIECE("stripe=A turns=B A down", 'B');
	/* One that has failed has one at a time. */
	PIECE("A failed rate=900M BC rate=100M A pieces=1", 'B');
	/* Slow ones are tried again now and then; not if even an answer takes much longer. */
	PIECE("ABC rate=100M B rate=1M", 'A');
	PIECE("ABC rate=100M AC pieces=1 B rate=1M ended=90s", 'B');
	PIECE("ABC rate=100M AC pieces=1 answers=1ms B rate=1M ended=90s answers=20ms", 'A');
	PIECE("ABC rate=100M AC pieces=1 B rate=1M share=400 ended=90s", 'A');
	PIECE("ABC rate=100M AC pieces=1 B rate=1M ended=900ms", 'A');
	PIECE("ABC rate=100M AC pieces=1 B rate=1M ended=600ms window=16k", 'B');
	/* Pieces were late. */
	PIECE("A late=5ms", 'B');
	PIECE("A late=5ms BC unable", 'A');
	PIECE("ABC late=5ms", 'A');
	PIECE("A late=5ms B late=9ms C late=7ms", 'B');
	PIECE("A late=5ms B late=9ms stuck C unable", 'A');
	PIECE("A late=9ms B late=5ms C late=7ms class=A/BC", 'A');
	PIECE("A window=16k pieces=1 B pieces=1 window=32k C unable", 'B');
	PIECE("A late=5ms BC stuck", 'A');
}

#define LEN(known, want) cr_expect_eq(len_of(known), number(want), "\"%s\": %zu", known, \
				      len_of(known))
static size_t len_of(const char *known)
{
	world(known);
	return lnx_sched_piece_len(&s, 0, LNX_MIN(s.left, (uint64_t)1 << 20));
}

Test(sched, lengths)
{
	LEN("left=10k", "10k");
	LEN("left=60k threshold=64k", "60k");
	LEN("left=60k threshold=60k", "16k");
	LEN("left=60k threshold=64k chunk=32k", "16k");
	LEN("", "16k");
	LEN("A rate=900M", "148k");
	LEN("A rate=900M chunk=64k", "64k");
	LEN("A rate=900M share=100", "64k");
	LEN("A rate=900M window=32k", "32k");
	LEN("A rate=900M failed", "16k");
	/* LNET: a message is one piece. */
	LEN("A rate=900M stripe=A turns=ABC", "1024k");
	LEN("A rate=900M stripe=A turns=ABC chunk=512k", "512k");
}

Test(sched, shares)
{
	unsigned all_well[] = { 1000, 1000, 1000 }, sick[] = { 1000, 250, 0 };
	unsigned all_sick[] = { 200, 100, 50 }, none[] = { 0, 0, 0 };

	lnx_sched_shares(all_well, NPATH);
	lnx_sched_shares(sick, NPATH);
	lnx_sched_shares(all_sick, NPATH);
	lnx_sched_shares(none, NPATH);
	cr_expect(all_well[0] == 1000 && all_well[1] == 1000 && all_well[2] == 1000);
	cr_expect(sick[0] == 1000 && sick[1] == 250 && sick[2] == 0);
	cr_expect(all_sick[0] == 1000 && all_sick[1] == 500 && all_sick[2] == 250);
	cr_expect(none[0] == 1000 && none[1] == 1000 && none[2] == 1000);
}

/* ---- what sick paths get of a stream ---- */

/* Paths that move pieces one after the other, with a delay; the ends are noticed late. */
struct moving {
	double bytes_per_ns;
	uint64_t delay_ns, late_ns, free_ns, total;
	struct { uint64_t end_ns, len; } q[512];
	unsigned nq;
	uint64_t read_bytes;
};

static struct moving moving[2];

static void take_piece(unsigned i, size_t len)
{
	struct moving *m = &moving[i];
	int64_t credit[2] = { 0 };
	unsigned k;

	m->free_ns = LNX_MAX(m->free_ns, s.now) + (uint64_t)((double)len / m->bytes_per_ns);
	cr_assert_lt(m->nq, LNX_ARRAY_SIZE(m->q));
	m->q[m->nq].end_ns = m->free_ns + m->delay_ns + m->late_ns;
	m->q[m->nq++].len = len;
	m->read_bytes += len;
	m->total += len;
	lnx_rate_posted(&rate[i], m->read_bytes, s.now);
	for (k = 0; s.sick && k < 2; k++)
		credit[k] = lnx_sched_credit(&s, k, i, len);
	for (k = 0; k < 2; k++)
		s.path[k].credit = credit[k];
}

static void end_pieces(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct moving *m = &moving[i];

		while (m->nq && m->q[0].end_ns <= s.now) {
			m->read_bytes -= m->q[0].len;
			lnx_rate_delivered(&rate[i], m->q[0].len, m->read_bytes, s.now);
			s.path[i].done_ns = s.now;
			memmove(&m->q[0], &m->q[1], --m->nq * sizeof(m->q[0]));
		}
	}
}

/* Look again when a piece ends, and every 10 us. */
static void transfer(uint64_t bytes, size_t message)
{
	s.left = 0;
	for (;; s.now += 10 * LNX_NS_PER_US) {
		unsigned i;
		bool line;
		int p;

		end_pieces();
		if (!s.left) {
			if (!bytes && !moving[0].nq && !moving[1].nq)
				return;
			s.left = LNX_MIN(bytes, message);
			bytes -= s.left;
		}
		for (;;) {
			size_t len;

			for (i = 0; i < 2; i++) {
				s.path[i].out = moving[i].nq;
				s.path[i].out_bytes = moving[i].read_bytes;
			}
			p = s.left ? lnx_sched_piece(&s, &line) : -1;
			if (p < 0)
				break;
			len = lnx_sched_piece_len(&s, (unsigned)p, s.left);
			take_piece((unsigned)p, len);
			s.left -= len;
		}
	}
}

/* Thousandths of a stream that take the second path, whose share is that. */
static unsigned second_of(unsigned share, double rates[2], uint64_t delay_ns, size_t message)
{
	unsigned i;

	begin();
	memset(moving, 0, sizeof(moving));
	s.n = 2;
	s.stripe = 3;
	for (i = 0; i < 2; i++) {
		moving[i].bytes_per_ns = rates[i];
		moving[i].delay_ns = delay_ns;
	}
	/* They are well while their rates are learned. */
	transfer(64 << 20, message);
	s.path[1].share = (uint16_t)share;
	s.sick = share < LNX_WEIGHT_MAX;
	moving[0].total = moving[1].total = 0;
	transfer(256 << 20, message);
	return (unsigned)(moving[1].total * 1000 / (moving[0].total + moving[1].total));
}

Test(sched, sick_paths_get_their_share)
{
	static const uint64_t delays[] = { 0, 50000, 1000000 };
	static const unsigned all[] = { 1000, 900, 700, 500, 300, 100, 10 };
	static double speeds[][2] = { { .125, .125 }, { 1.25, 1.25 }, { .5, .125 }, { 1, 4 } };
	static const size_t messages[] = { 1 << 20, 16 << 20 };
	unsigned i, k, d, m;

	for (k = 0; k < LNX_ARRAY_SIZE(speeds); k++)
		for (d = 0; d < LNX_ARRAY_SIZE(delays); d++)
			for (m = 0; m < LNX_ARRAY_SIZE(messages); m++)
				for (i = 0; i < LNX_ARRAY_SIZE(all); i++) {
					double part = speeds[k][1] * all[i] / 1000, want;
					unsigned got = second_of(all[i], speeds[k], delays[d],
								 messages[m]);

					want = 1000 * part / (part + speeds[k][0]);
					cr_expect(got <= want * 1.25 + 15 &&
						  (got >= want * .6 || got + 100 >= want),
						  "%g and %g byte/ns, %llu ns, messages of %zu, "
						  "share %u: %u of 1000, not %.0f",
						  speeds[k][0], speeds[k][1],
						  (unsigned long long)delays[d], messages[m],
						  all[i], got, want);
				}
}

/* ---- at random, beside a model: as the decision was before it was made of facts ---- */

static unsigned class_of(unsigned i)
{
	return s.rank ? s.rank->class[i] : 0;
}

static unsigned nclass(void)
{
	unsigned i, n = 1;

	for (i = 0; i < NPATH; i++)
		n = LNX_MAX(n, class_of(i) + 1);
	return n;
}

static uint64_t nearest(void)
{
	uint64_t least = UINT64_MAX;
	unsigned i;

	for (i = 0; i < NPATH; i++)
		if (s.path[i].latency_ns)
			least = LNX_MIN(least, s.path[i].latency_ns);
	return least == UINT64_MAX ? 0 : least;
}

/* What policy/stripe sees of a path, but for its being usable. */
static struct lnx_stripe_path model_view(unsigned i)
{
	const struct lnx_sched_path *p = &s.path[i];
	uint64_t nominal = p->link_bps / 8 * p->share / 1000, r = rate[i].rate * p->share / 1000;

	return (struct lnx_stripe_path){
		.rate = rate[i].rate && !r ? 1 : r,
		.nominal = p->link_bps / 8 && !nominal ? 1 : nominal,
		.delay_ns = lnx_rate_latency(&rate[i]), .room = lnx_rate_room(&rate[i]),
		.deep = lnx_rate_deep(&rate[i]),
		.drain = rate[i].drain, .out_bytes = p->out_bytes, .out = p->out,
	};
}

static bool distant(unsigned i)
{
	return s.path[i].latency_ns > 2 * nearest() + LNX_FAR_NS;
}

/* Is there a path as good as i, of those that are `ok`? */
static bool other_as_good(unsigned i, const bool *ok)
{
	unsigned k;

	for (k = 0; k < NPATH; k++)
		if (ok[k] && class_of(k) <= class_of(i))
			return true;
	return false;
}

static void model_frames(struct lnx_stripe_path *v)
{
	bool near[NPATH], works[NPATH], with[NPATH];
	unsigned i;

	for (i = 0; i < NPATH; i++) {
		const struct lnx_sched_path *p = &s.path[i];

		v[i] = model_view(i);
		if (distant(i) && p->latency_ns > v[i].delay_ns)
			v[i].delay_ns = p->latency_ns;
		if (p->state == LNX_PATH_UP || p->state == LNX_PATH_IDLE)
			v[i].usable = true;
		else if (p->state != LNX_PATH_DOWN)
			v[i].usable = p->retry_ns <= NOW;
		near[i] = v[i].usable && !p->away;
	}
	for (i = 0; i < NPATH; i++)
		if (s.path[i].away && other_as_good(i, near))
			v[i].usable = false;
	for (i = 0; i < NPATH; i++)
		works[i] = v[i].usable && !s.path[i].opens;
	for (i = 0; i < NPATH; i++)
		if (s.acked && s.path[i].opens && other_as_good(i, works))
			v[i].usable = false;
	for (i = 0; i < NPATH; i++)
		with[i] = v[i].usable && s.path[i].credits;
	for (i = 0; i < NPATH; i++)
		if (s.acked && !s.path[i].credits && other_as_good(i, with))
			v[i].usable = false;
}

static int model_shortest(const struct lnx_stripe_path *v, size_t len)
{
	struct lnx_stripe_path some[NPATH];
	int pick = -1, class;
	unsigned i;

	/* -1: those that share the traffic. */
	for (class = -1; s.stripe && pick < 0 && class < (int)nclass(); class++) {
		memcpy(some, v, sizeof(some));
		for (i = 0; i < NPATH; i++)
			some[i].usable &= class < 0 ? s.stripe >> i & 1 :
					  class_of(i) == (unsigned)class;
		pick = lnx_stripe_shortest(some, NPATH, len);
	}
	return pick;
}

static unsigned model_best(const struct lnx_stripe_path *v, unsigned of)
{
	unsigned i, best = 0;

	for (i = 0; i < NPATH; i++)
		if (v[i].usable && (of >> i & 1))
			best = LNX_MAX(best, s.path[i].share);
	return best;
}

/* Of its turns, those by which the number of messages that it should have had grows. */
static bool model_takes(unsigned i, unsigned best)
{
	double part = best ? (double)s.path[i].share / best : 1, n = s.path[i].turns;

	return part == 1 || (uint64_t)((n + 1) * part + 1e-9) > (uint64_t)(n * part + 1e-9);
}

static int model_turn(const struct lnx_stripe_path *v)
{
	struct lnx_rank_path p[NPATH];
	unsigned i, best = model_best(v, s.rr);
	int next;

	if (s.lnet) {
		memcpy(p, lnet, sizeof(p));
		for (i = 0; i < NPATH; i++)
			if (!v[i].usable)
				p[i].state = LNX_RANK_DOWN;
		next = lnx_rank_next(p, NPATH, &how, NULL);
		if (next >= 0 && v[next].usable)
			return next;
	}
	for (i = s.rr_index + 1u; i <= s.rr_index + NPATH; i++)
		if (v[i % NPATH].usable && (s.rr >> i % NPATH & 1) &&
		    model_takes(i % NPATH, best))
			return (int)(i % NPATH);
	return -1;
}

static int model_frame(size_t len)
{
	unsigned first = !s.acked && s.hello >= 0 ? (unsigned)s.hello : s.cur, i;
	const struct lnx_sched_path *f = &s.path[first];
	struct lnx_stripe_path v[NPATH];
	int pick;

	model_frames(v);
	if (s.acked && s.rr) {
		pick = model_turn(v);
		if (pick >= 0)
			return pick;
	} else if (v[first].usable && (!s.acked || f->out_bytes <= f->inflight_limit)) {
		return (int)first;
	}
	if (!s.acked && s.posted && !v[first].usable && f->state != LNX_PATH_DOWN &&
	    f->since_ns && NOW - f->since_ns < LNX_ALIVE_NS)
		return -1;
	pick = model_shortest(v, len);
	for (i = 0; pick >= 0 && !s.acked && s.path[pick].hearsay && i < NPATH; i++)
		if (s.path[i].state == LNX_PATH_CONNECTING && !s.path[i].hearsay &&
		    s.path[i].since_ns && NOW - s.path[i].since_ns < s.hearsay_ns)
			return -1;
	return pick;
}

static unsigned model_live(void)
{
	unsigned best = s.cur, i, k;

	for (i = 0; i < NPATH; i++)
		if (s.path[s.rank ? s.rank->order[i] : i].state == LNX_PATH_UP)
			return s.rank ? s.rank->order[i] : i;
	for (i = 0; i < NPATH; i++) {
		const struct lnx_sched_path *b = &s.path[best], *o;

		k = s.rank ? s.rank->order[i] : i;
		o = &s.path[k];
		if (o->state == LNX_PATH_DOWN || b->state == LNX_PATH_IDLE)
			continue;
		if (b->state == LNX_PATH_DOWN || o->state == LNX_PATH_IDLE ||
		    o->retry_ns < b->retry_ns)
			best = k;
	}
	return best;
}

static bool model_pauses(unsigned i, const bool *able)
{
	uint64_t first_ns = UINT64_MAX;
	unsigned k;

	for (k = 0; k < NPATH; k++) {
		if (!able[k] || class_of(k) > class_of(i) || tail[k].behind)
			continue;
		if (tail[k].pause.until_ns <= NOW)
			return true;
		first_ns = LNX_MIN(first_ns, tail[k].late_ns);
	}
	return tail[i].late_ns > first_ns;
}

/* So slow that it was not used for long: may a piece find out whether it still is? */
static bool model_relearns(unsigned i, const struct lnx_stripe_path *v, uint64_t best)
{
	uint64_t rest = LNX_LATE_PAUSE_MAX_NS;

	if (!tail[i].window)
		rest = LNX_MAX(LNX_RELEARN_NS,
			       20 * (v->delay_ns + LNX_STRIPE_MIN * LNX_NS_PER_S /
						   LNX_MAX(v->rate, 1ull)));
	return !v->out && s.path[i].share > 500 && !distant(i) &&
	       (v->rate < best / 2 || v->delay_ns > LNX_FAR_NS) &&
	       NOW - s.path[i].done_ns > rest;
}

static unsigned model_pieces(struct lnx_stripe_path *v)
{
	unsigned i, busy = 0;
	uint64_t best = 0;
	bool able[NPATH];

	for (i = 0; i < NPATH; i++) {
		const struct lnx_sched_path *p = &s.path[i];
		uint64_t waits = NOW - LNX_MAX(p->done_ns, rate[i].round_ns);

		v[i] = model_view(i);
		if (!p->out || waits < 2 * rate[i].delay_ns + LNX_FAR_NS)
			waits = 0;
		if (distant(i))
			waits = LNX_MAX(waits, p->latency_ns);
		v[i].delay_ns = LNX_MAX(v[i].delay_ns, waits);
		if (p->failed)
			v[i].rate = v[i].room = 0;
		able[i] = p->able && p->state != LNX_PATH_DOWN;
		busy |= (unsigned)(able[i] && p->out) << i;
		able[i] = able[i] && p->retry_ns <= NOW;
		best = LNX_MAX(best, v[i].rate);
	}
	for (i = 0; i < NPATH; i++)
		v[i].usable = able[i] && lnx_hedge_tail_room(&tail[i], v[i].out_bytes) &&
			      (tail[i].pause.until_ns <= NOW || !model_pauses(i, able));
	for (i = 0; i < NPATH; i++)
		if (model_relearns(i, &v[i], best))
			v[i].rate = v[i].room = v[i].delay_ns = 0;
	return busy;
}

static int model_piece(bool *in_line)
{
	struct lnx_stripe_path v[NPATH], some[NPATH];
	unsigned busy = model_pieces(v), mask = s.stripe | s.rr, i, best;
	int pick = -1, class;

	for (class = -1; mask && pick < 0 && class < (int)nclass(); class++) {
		if (class >= 0)
			for (mask = i = 0; i < NPATH; i++)
				mask |= (unsigned)(class_of(i) == (unsigned)class) << i;
		memcpy(some, v, sizeof(some));
		for (i = 0; i < NPATH; i++)
			some[i].usable &= mask >> i & 1;
		best = model_best(some, mask);
		for (i = 0; i < NPATH; i++)
			some[i].usable &= s.path[i].share == best ||
					  s.path[i].credit > 0;
		pick = lnx_stripe_pick(some, NPATH, s.left);
		if (busy & mask)
			break;
	}
	*in_line = pick < 0 && busy;
	return pick;
}

static size_t model_len(unsigned path, size_t rest)
{
	size_t max = LNX_MIN(s.chunk, lnx_hedge_tail_most(&tail[path], s.path[path].out_bytes));
	struct lnx_stripe_path v[NPATH];
	unsigned i;

	if (rest == s.left && rest < s.threshold && rest <= s.chunk)
		return rest;
	if (s.rr && s.rr != s.stripe)
		return LNX_MIN(rest, max);
	model_pieces(v);
	for (i = 0; i < NPATH; i++)
		v[i].usable &= i == path || (s.stripe >> i & 1);
	return lnx_stripe_len(v, NPATH, path, s.left, rest, max);
}

#define ONE_OF(...) one_of((const uint64_t[]){ __VA_ARGS__ }, \
			   sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
static uint64_t one_of(const uint64_t *values, unsigned n)
{
	return values[rnd(n)];
}

static void random_path(unsigned i)
{
	struct lnx_sched_path *p = &s.path[i];
	struct lnx_tail *t = &tail[i];

	p->state = (uint8_t)ONE_OF(LNX_PATH_UP, LNX_PATH_UP, LNX_PATH_IDLE, LNX_PATH_CONNECTING,
				   LNX_PATH_DEAD, LNX_PATH_DOWN);
	p->share = (uint16_t)ONE_OF(1000, 1000, 600, 500, 1);
	p->turns = (uint32_t)ONE_OF(0, 1, 4, 5, 999);
	p->credit = (int64_t)ONE_OF(0, 1) - !rnd(3);
	s.sick |= p->share < LNX_WEIGHT_MAX;
	p->retry_ns = ONE_OF(0, NOW, NOW + MS, NOW + 2 * MS);
	p->link_bps = ONE_OF(0, 1, 1000000000);
	p->latency_ns = ONE_OF(0, MS, 2 * MS, 50 * MS);
	p->out_bytes = ONE_OF(0, 0, 9000, 16384, LIMIT, LIMIT + 1, 1 << 20);
	p->inflight_limit = ONE_OF(LIMIT, 4096);
	p->since_ns = ONE_OF(0, NOW - MS, NOW - 300 * MS, NOW - 600 * MS);
	p->credits = rnd(4);
	p->opens = !rnd(4);
	p->away = !rnd(4);
	p->hearsay = !rnd(3);
	p->able = rnd(4);
	p->failed = !rnd(6);
	p->out = (uint32_t)ONE_OF(0, 0, 1, 2, 5);
	p->done_ns = ONE_OF(NOW, NOW - 30 * MS, NOW - 600 * MS, NOW - 90 * LNX_NS_PER_S);
	t->late_ns = ONE_OF(0, NOW - 9 * MS, NOW - 5 * MS);
	t->pause.until_ns = ONE_OF(0, 0, NOW, NOW + MS);
	t->window = ONE_OF(0, 0, 16384, 65536);
	t->behind = !rnd(5);
	rate[i].rate = ONE_OF(0, 1, 1000000, 100000000, 100000000, 1000000000);
	rate[i].delay_ns = ONE_OF(0, 20000, MS, 20 * MS);
	rate[i].round_ns = ONE_OF(0, NOW - MS, NOW - 100 * MS);
	rate[i].drain = !rnd(4);
	lnet[i].state = !rnd(4) ? LNX_RANK_DOWN : LNX_RANK_USABLE;
	lnet[i].local_view.used = rnd(3);
	lnet[i].local_view.credits = (int32_t)rnd(3);
}

static void random_world(void)
{
	static const char *const orders[] = { "ABC", "AB/C", "C/AB", "B/C/A", "A/BC" };
	unsigned i, n = (unsigned)rnd(sizeof(orders) / sizeof(*orders) + 1);

	begin();
	if (n < sizeof(orders) / sizeof(*orders))
		classes(orders[n]);
	s.cur = (uint8_t)rnd(NPATH);
	if (!rnd(3))
		s.stripe = (uint8_t)(1 + rnd((1u << NPATH) - 1));
	if (!rnd(3))
		s.rr = (uint8_t)rnd(1u << NPATH);
	s.rr_index = (uint8_t)rnd(NPATH);
	if (!rnd(2))
		s.lnet = lnet;
	if (!rnd(3)) {
		s.acked = false;
		s.posted = rnd(2);
		s.hello = s.posted ? (int8_t)((int)rnd(NPATH + 1) - 1) : -1;
	}
	s.left = ONE_OF(1, 9000, 65536, 1 << 20, 64 << 20);
	s.chunk = ONE_OF(16384, 65536, 1 << 20);
	s.threshold = ONE_OF(0, 16384, 1 << 20);
	for (i = 0; i < NPATH; i++)
		random_path(i);
}

Test(sched, as_the_model)
{
	unsigned n, path;

	rnd_begin();
	for (n = 0; n < 300000; n++) {
		size_t len = ONE_OF(64, 4096, 65536), rest;
		bool line, model_line;
		struct lnx_stripe_path v[NPATH];
		int got;

		random_world();
		got = lnx_sched_frame(&s, len).path;
		cr_assert_eq(got, model_frame(len), "world %u: frame on %d, not %d", n, got,
			     model_frame(len));
		model_frames(v);
		v[s.cur].usable = false;
		got = lnx_sched_instead(&s);
		cr_assert_eq(got, model_shortest(v, 0), "world %u: instead %d", n, got);
		cr_assert_eq(lnx_sched_live(&s), model_live(), "world %u: live", n);
		got = lnx_sched_piece(&s, &line);
		cr_assert_eq(got, model_piece(&model_line), "world %u: piece on %d", n, got);
		cr_assert_eq(line, model_line, "world %u: in line %d", n, line);
		if (got < 0)
			continue;
		path = (unsigned)got;
		rest = LNX_MIN((size_t)s.left, (size_t)ONE_OF(1, 9000, 1 << 20, 64 << 20));
		cr_assert_eq(lnx_sched_piece_len(&s, path, rest), model_len(path, rest),
			     "world %u: length", n);
	}
}
