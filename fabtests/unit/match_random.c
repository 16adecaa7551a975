/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher against a model that follows the rules to the letter: two ordered
 * lists, searched from the front.  Random operations go to both, and every
 * result of the matcher must be that of the model.
 *
 * match_random [--seed N] [--ops N] [--profile NAME]
 *
 * Each profile has its own mix of sources, tags and shapes, chosen for one weak
 * point.  On a difference it prints the command that repeats it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "match/match.h"
#include "match/mtab.h"

#define MAX_LIST	6000
#define MAX_SHAPES	16

enum tags { TAGS_NEAR, TAGS_STRIDE, TAGS_RANDOM, TAGS_COLLIDE };

struct profile {
	const char *name;
	unsigned int sources;
	unsigned int tags;
	enum tags kind;
	unsigned int shapes;	/* different ones in use at a time */
	unsigned int drift;	/* operations until one is replaced; 0: never */
	unsigned int cap;	/* entries on each list */
	unsigned int unknown;	/* messages without a source, percent */
	unsigned int starve;	/* allocations that fail, percent */
};

static const struct profile profiles[] = {
	{ "few",	2, 3, TAGS_NEAR, 3, 0, 60, 10, 0 },
	{ "one_key",	1, 1, TAGS_NEAR, 2, 0, 400, 5, 0 },
	{ "same",	1, 1, TAGS_NEAR, 1, 0, 400, 20, 0 },
	{ "round_robin",	1, 1, TAGS_NEAR, 1, 300, 400, 20, 0 },
	{ "tags",	1, 3000, TAGS_NEAR, 2, 0, 2500, 0, 0 },
	{ "sources",	3000, 2, TAGS_NEAR, 3, 0, 1500, 10, 0 },
	{ "stride",	4, 800, TAGS_STRIDE, 4, 0, 1200, 5, 0 },
	{ "random",	50, 500, TAGS_RANDOM, 5, 0, 800, 10, 0 },
	{ "collide",	1, 200, TAGS_COLLIDE, 2, 0, 250, 0, 0 },
	{ "shapes",	3, 40, TAGS_RANDOM, 14, 0, 150, 10, 0 },
	{ "drift",	3, 40, TAGS_NEAR, 6, 150, 60, 10, 0 },
	{ "unknown",	6, 4, TAGS_NEAR, 4, 0, 300, 80, 0 },
	{ "low",	20, 400, TAGS_NEAR, 4, 0, 1500, 10, 60 },
	{ "no_memory",	20, 400, TAGS_STRIDE, 4, 0, 700, 10, 100 },
};

struct recv {
	struct lnx_mrecv r;
	uint64_t src, tag, ignore;	/* the model's own copies */
	bool seen;
};

struct unex {
	struct lnx_munex u;
	uint64_t src, tag;
};

static struct lnx_match m;
static struct recv *posted[MAX_LIST];
static struct unex *unex[MAX_LIST];
static size_t nposted, nunex;

static const struct profile *prof;
static uint64_t tag_pool[MAX_LIST];
static bool shape_any[MAX_SHAPES];
static uint64_t shape_ignore[MAX_SHAPES];
static uint64_t rng, seed;
static unsigned long op;
static bool starving;
static struct {
	size_t posted, unex, odd, lines, shapes;
} most;

static uint64_t rnd64(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static unsigned int rnd(size_t below)
{
	return (unsigned int)(rnd64() % below);
}

/* Replaces the matcher's own. */
void *lnx_mtab_alloc(size_t bytes)
{
	if (starving && rnd(100) < prof->starve)
		return NULL;
	return calloc(1, bytes);
}

void *lnx_match_get_side(struct lnx_slabs *s)
{
	if (starving && rnd(100) < prof->starve)
		return NULL;
	return lnx_slabs_get(s);
}

static void fail(const char *what)
{
	printf("%s differs at operation %lu, profile %s\n"
	       "repeat with: match_random --seed %llu --profile %s\n", what, op,
	       prof->name, (unsigned long long)seed, prof->name);
	exit(1);
}

static void check(bool ok, const char *what)
{
	if (!ok)
		fail(what);
}

static void *must(void *p)
{
	if (!p) {
		printf("match_random: no memory\n");
		exit(1);
	}
	return p;
}

/* -- the model */

static bool takes(uint64_t rsrc, uint64_t rtag, uint64_t ignore, uint64_t src,
		  uint64_t tag)
{
	if (rsrc != LNX_ANY_SRC && rsrc != src)
		return false;
	return (rtag | ignore) == (tag | ignore);
}

static size_t model_recv(uint64_t src, uint64_t tag)
{
	size_t i;

	for (i = 0; i < nposted; i++)
		if (takes(posted[i]->src, posted[i]->tag, posted[i]->ignore,
			  src, tag))
			break;
	return i;
}

static size_t model_unex(uint64_t src, uint64_t tag, uint64_t ignore)
{
	size_t i;

	for (i = 0; i < nunex; i++)
		if (takes(src, tag, ignore, unex[i]->src, unex[i]->tag))
			break;
	return i;
}

/* Freed at once and overwritten, so that a later access is found. */
static void forget_recv(size_t i)
{
	memset(posted[i], 0xa5, sizeof(*posted[i]));
	free(posted[i]);
	nposted--;
	memmove(&posted[i], &posted[i + 1],
		(nposted - i) * sizeof(posted[0]));
}

static void forget_unex(size_t i)
{
	memset(unex[i], 0xa5, sizeof(*unex[i]));
	free(unex[i]);
	nunex--;
	memmove(&unex[i], &unex[i + 1], (nunex - i) * sizeof(unex[0]));
}

/* -- what is sent and received */

static uint64_t new_ignore(void)
{
	switch (rnd(6)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return 3ULL << 62;
	case 3:
		return 0xffffffffULL;
	case 4:
		return 1ULL << rnd(64);
	default:
		return rnd64() & rnd64() & rnd64();
	}
}

static void new_shape(unsigned int i)
{
	shape_any[i] = rnd(2);
	shape_ignore[i] = new_ignore();
}

static uint64_t colliding_tag(void)
{
	uint64_t tag;

	/* One line in a table of 2048, and in every smaller one. */
	do {
		tag = rnd64();
	} while (lnx_mtab_index(lnx_mtab_hash(0, tag), 64 - 11) != 0);
	return tag;
}

static void make_pools(void)
{
	unsigned int i;

	for (i = 0; i < prof->tags; i++) {
		switch (prof->kind) {
		case TAGS_NEAR:
			tag_pool[i] = i;
			break;
		case TAGS_STRIDE:
			tag_pool[i] = (uint64_t)i << 40 | (i & 3);
			break;
		case TAGS_RANDOM:
			tag_pool[i] = rnd64();
			break;
		case TAGS_COLLIDE:
			tag_pool[i] = colliding_tag();
			break;
		}
	}
	for (i = 0; i < prof->shapes; i++)
		new_shape(i);
	/* Two of the most common shapes. */
	shape_any[0] = false;
	shape_ignore[0] = 0;
	if (prof->kind != TAGS_COLLIDE) {
		shape_any[1] = true;
		shape_ignore[1] = 0;
	}
}

static uint64_t some_tag(void)
{
	return tag_pool[rnd(prof->tags)];
}

static uint64_t some_src(void)
{
	unsigned int s = rnd(prof->sources);

	/* The last source is one below the wildcard. */
	return s && s + 1 == prof->sources ? LNX_ANY_SRC - 1 : s;
}

static uint64_t msg_src(void)
{
	return rnd(100) < prof->unknown ? LNX_ANY_SRC : some_src();
}

static void recv_key(uint64_t *src, uint64_t *tag, uint64_t *ignore)
{
	unsigned int i = rnd(prof->shapes);

	/* Some shapes come more often than others. */
	if (rnd(2))
		i = rnd(i + 1);
	*src = shape_any[i] ? LNX_ANY_SRC : some_src();
	*tag = some_tag();
	*ignore = shape_ignore[i];
}

/* -- operations, on both */

static void do_post(uint64_t src, uint64_t tag, uint64_t ignore)
{
	struct recv *r;

	if (nposted == MAX_LIST)
		return;
	r = must(malloc(sizeof(*r)));
	memset(r, 0x5a, sizeof(*r));
	r->r.src = r->src = src;
	r->r.tag = r->tag = tag;
	r->r.ignore = r->ignore = ignore;
	lnx_match_post(&m, &r->r);
	posted[nposted++] = r;
}

static void do_store(uint64_t src, uint64_t tag)
{
	struct unex *u;

	if (nunex == MAX_LIST)
		return;
	u = must(malloc(sizeof(*u)));
	memset(u, 0x5a, sizeof(*u));
	u->u.src = u->src = src;
	u->u.tag = u->tag = tag;
	lnx_match_store(&m, &u->u);
	unex[nunex++] = u;
}

static bool do_take(uint64_t src, uint64_t tag)
{
	size_t i = model_recv(src, tag);
	struct lnx_mrecv *r = lnx_match_take(&m, src, tag);

	check(r == (i < nposted ? &posted[i]->r : NULL), "take");
	if (r)
		forget_recv(i);
	return r;
}

/* Search, and remove what is found. */
static struct lnx_munex *claim(uint64_t src, uint64_t tag, uint64_t ignore)
{
	struct lnx_munex *u = lnx_match_peek(&m, src, tag, ignore);

	if (u)
		lnx_match_drop(&m, u);
	return u;
}

static bool do_claim(uint64_t src, uint64_t tag, uint64_t ignore)
{
	size_t i = model_unex(src, tag, ignore);
	struct lnx_munex *u = claim(src, tag, ignore);

	check(u == (i < nunex ? &unex[i]->u : NULL), "claim");
	if (u)
		forget_unex(i);
	return u;
}

static void do_cancel(size_t i)
{
	lnx_match_unpost(&m, &posted[i]->r);
	forget_recv(i);
}

static void do_drop(size_t i)
{
	lnx_match_drop(&m, &unex[i]->u);
	forget_unex(i);
}

static void do_set_src(size_t i)
{
	/* An address may also be removed again. */
	uint64_t src = rnd(6) ? some_src() : LNX_ANY_SRC;

	lnx_match_set_src(&m, &unex[i]->u, src);
	unex[i]->src = src;
}

/* An address was inserted: set it for all its messages, forwards or backwards. */
static void do_set_src_all(void)
{
	bool back = rnd(2);
	size_t i, at;

	for (i = 0; i < nunex; i++) {
		at = back ? nunex - 1 - i : i;
		if (unex[at]->src == LNX_ANY_SRC && rnd(4))
			do_set_src(at);
	}
}

static void drain(void)
{
	unsigned int how = rnd(3);

	while (nposted > (how ? 0 : prof->cap / 2))
		do_cancel(how == 1 ? nposted - 1 : rnd(nposted));
	while (nunex > (how ? 0 : prof->cap / 2))
		do_drop(how == 1 ? 0 : rnd(nunex));
}

/* -- checks of the whole matcher */

static bool mark(struct lnx_mrecv *r, void *arg)
{
	struct recv *recv = lnx_container_of(r, struct recv, r);
	size_t *n = arg;

	check(!recv->seen, "each_posted (twice the same)");
	recv->seen = true;
	++*n;
	return false;
}

static void check_lines(const struct lnx_mtab *t, const struct lnx_mshape *sh,
			ptrdiff_t off, struct lnx_mline *line, size_t lines,
			size_t *n, size_t *heads)
{
	const struct lnx_mkey *k;
	struct lnx_mlink *h, *l;
	struct lnx_mprobe p;
	struct lnx_mpos pos;
	uint64_t stamp;
	size_t i;
	int s;

	for (i = 0; i < lines; i++) {
		for (s = 0; s < LNX_MLINE_SLOTS; s++) {
			if (!(line[i].filter >> 8 * s & 0xff))
				continue;
			for (h = line[i].slot[s]; h; h = h->chain) {
				++*heads;
				k = lnx_mkey_of(h, off);
				p = lnx_mprobe(sh, k->src, k->tag, off);
				check(lnx_mtab_find(t, &p, &pos) == h,
				      "place of a head");
				l = h;
				stamp = 0;
				do {
					++*n;
					k = lnx_mkey_of(l, off);
					check(k->stamp > stamp, "stamps");
					check(lnx_mprobe_is(&p, l), "key");
					check((l == h) == lnx_mlink_is_head(l),
					      "mark of a head");
					stamp = k->stamp;
					l = l->next;
				} while (l != h);
			}
		}
	}
}

static void check_table(const struct lnx_mtab *t, const struct lnx_mshape *sh,
			ptrdiff_t off)
{
	size_t n = 0, heads = 0;

	check_lines(t, sh, off, t->line, lnx_mtab_lines(t->shift), &n, &heads);
	if (t->old)
		check_lines(t, sh, off, t->old, lnx_mtab_lines(t->old_shift),
			    &n, &heads);
	check(n == t->n && heads == t->heads, "counts of a table");
	check(prof->starve || heads <= t->limit, "size of a table");
}

static void check_all(void)
{
	struct lnx_munex *u = lnx_match_first_unex(&m);
	unsigned int i;
	size_t k, n = 0;

	for (k = 0; k < nunex; k++) {
		check(u == &unex[k]->u, "order of the unexpected");
		u = lnx_match_next_unex(&m, u);
	}
	check(!u, "end of the unexpected");
	for (k = 0; k < nposted; k++)
		posted[k]->seen = false;
	check(!lnx_match_each_posted(&m, mark, &n), "each_posted");
	check(n == nposted, "each_posted (number)");
	check(m.indexed || nunex <= LNX_MATCH_FEW, "too many not indexed");
	check(m.nbare <= nunex && (prof->starve || !m.nbare), "messages without side");
	for (i = 0; i < m.nshapes; i++) {
		check_table(&m.shape[i].posted, &m.shape[i], LNX_MPOSTED_OFF);
		check_table(&m.shape[i].unex, &m.shape[i], LNX_MUNEX_OFF(i));
		check(m.shape[i].unex.n == (m.indexed ? nunex - (i ? m.nbare : 0) : 0),
		      "unexpected of a shape");
	}
}

static void step(void)
{
	uint64_t src, tag, ignore;
	struct lnx_mrecv *r;
	struct lnx_munex *u;
	unsigned int what = rnd(100);
	size_t i;

	/* In turn: mixed operations, many receives, many messages. */
	if (op / (4 * (size_t)prof->cap) % 3 == 1 && rnd(2))
		what = 48;
	else if (op / (4 * (size_t)prof->cap) % 3 == 2 && rnd(2))
		what = 56;
	recv_key(&src, &tag, &ignore);
	if (what < 24) {
		if (!do_claim(src, tag, ignore))
			do_post(src, tag, ignore);
	} else if (what < 48) {
		src = msg_src();
		if (!do_take(src, tag))
			do_store(src, tag);
	} else if (what < 56) {
		if (nposted < prof->cap)
			do_post(src, tag, ignore);
	} else if (what < 64) {
		if (nunex < prof->cap)
			do_store(msg_src(), tag);
	} else if (what < 70) {
		src = msg_src();
		i = model_recv(src, tag);
		r = lnx_match_find(&m, src, tag);
		check(r == (i < nposted ? &posted[i]->r : NULL), "find");
	} else if (what < 76) {
		i = model_unex(src, tag, ignore);
		u = lnx_match_peek(&m, src, tag, ignore);
		check(u == (i < nunex ? &unex[i]->u : NULL), "peek");
	} else if (what < 82) {
		if (nposted)
			do_cancel(rnd(nposted));
	} else if (what < 86) {
		if (nunex)
			do_drop(rnd(nunex));
	} else if (what < 92) {
		i = nunex ? rnd(nunex) : 0;
		if (nunex && (unex[i]->src == LNX_ANY_SRC || !rnd(8)))
			do_set_src(i);
	} else if (what < 96) {
		do_take(msg_src(), tag);
	} else {
		do_claim(src, tag, ignore);
	}
	while (nposted > prof->cap)
		do_cancel(rnd(nposted));
	while (nunex > prof->cap)
		do_drop(rnd(nunex));
}

/* Records the largest sizes of a profile; small ones would test little. */
static void note_most(void)
{
	static uint64_t keep, any;
	struct lnx_mshape *sh = &m.shape[op % LNX_MATCH_SHAPES];

	most.posted = LNX_MAX(most.posted, nposted);
	most.unex = LNX_MAX(most.unex, nunex);
	most.odd = LNX_MAX(most.odd, m.nodd);
	most.lines = LNX_MAX(most.lines, lnx_mtab_lines(sh->posted.shift));
	most.lines = LNX_MAX(most.lines, lnx_mtab_lines(sh->unex.shift));
	sh = &m.shape[LNX_MATCH_SHAPES - 1];
	if (m.nshapes == LNX_MATCH_SHAPES && (sh->keep != keep ||
					      sh->any != any))
		most.shapes++;
	keep = sh->keep;
	any = sh->any;
}

/* What the matcher counts, without a look at each. */
static size_t counted(void)
{
	size_t n = m.nodd;
	unsigned int i;

	for (i = 0; i < m.nshapes; i++)
		n += m.shape[i].posted.n;
	return n;
}

static void run(const struct profile *p, unsigned long ops)
{
	unsigned int every = p->cap > 1000 ? 2000 : 500;

	prof = p;
	rng = seed;
	starving = false;
	make_pools();
	check(!lnx_match_init(&m), "init");
	starving = true;
	memset(&most, 0, sizeof(most));
	for (op = 0; op < ops; op++) {
		step();
		note_most();
		if (p->drift && op % p->drift == 0)
			new_shape(rnd(p->shapes));
		if (!rnd(40 * (size_t)p->cap))
			drain();
		if (!rnd(2000))
			do_set_src_all();
		check(counted() == nposted, "nposted");
		check(lnx_match_nunex(&m) == nunex, "nunex");
		if (op % every == 0)
			check_all();
	}
	check_all();
	while (nposted)
		do_cancel(rnd(nposted));
	while (nunex)
		do_drop(rnd(nunex));
	check_all();
	lnx_match_fini(&m);
	printf("%-10s at most %zu posted, %zu odd, %zu unexpected, "
	       "%zu lines, %zu new shapes\n", p->name, most.posted, most.odd,
	       most.unex, most.lines, most.shapes);
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	unsigned long ops = 200000;
	size_t n = LNX_ARRAY_SIZE(profiles), i, ran = 0;
	int a;

	seed = (uint64_t)time(NULL) * 1000003 ^ (uint64_t)clock();
	for (a = 1; a + 1 < argc; a += 2) {
		if (!strcmp(argv[a], "--seed"))
			seed = strtoull(argv[a + 1], NULL, 0);
		else if (!strcmp(argv[a], "--ops"))
			ops = strtoul(argv[a + 1], NULL, 0);
		else if (!strcmp(argv[a], "--profile"))
			only = argv[a + 1];
		else
			break;
	}
	if (a != argc) {
		fprintf(stderr, "usage: match_random [--seed N] "
			"[--ops N, of each profile] [--profile NAME]\n");
		return 2;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (i = 0; i < n; i++) {
		if (only && strcmp(only, profiles[i].name))
			continue;
		run(&profiles[i], ops);
		ran++;
	}
	if (!ran) {
		fprintf(stderr, "match_random: no profile '%s'; there are:",
			only);
		for (i = 0; i < n; i++)
			fprintf(stderr, " %s", profiles[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	printf("ok, %zu profiles, %lu operations each\n", ran, ops);
	return 0;
}
