/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The text of links (FI_LNX_PROV_LINKS): canonical form, errors, limits. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "conf/links.h"

static struct lnx_links links, again;
static char why[256];
static size_t at;

static int parse(const char *text)
{
	at = SIZE_MAX;
	memset(why, 'x', sizeof(why));
	return lnx_links_parse(text, &links, &at, why, sizeof(why));
}

/* Canonical text of all links, separated by '|'. */
static const char *canonical(const struct lnx_links *l)
{
	static char buf[LNX_LINKS_MAX * LNX_LINK_TEXT_MAX];
	size_t n = 0;
	unsigned i;
	int r;

	buf[0] = '\0';
	for (i = 0; i < l->nlink; i++) {
		if (i)
			buf[n++] = '|';
		r = lnx_link_print(&l->link[i], buf + n, LNX_LINK_TEXT_MAX);
		cr_assert_geq(r, 0);
		cr_assert_eq((size_t)r, strlen(buf + n));
		n += (size_t)r;
	}
	return buf;
}

/* What is true of any text, valid or not. */
static int check(const char *text)
{
	size_t len = strlen(text);
	char *once;
	unsigned i, j;
	int ret = parse(text);

	if (ret) {
		cr_assert_eq(ret, -EINVAL);
		cr_assert_leq(at, len, "%s", text);
		cr_assert_not_null(memchr(why, '\0', sizeof(why)));
		cr_assert_gt(strlen(why), 10);
		for (i = 0; why[i]; i++)
			cr_assert(isprint((unsigned char)why[i]), "%s", text);
		return ret;
	}
	cr_assert(links.nlink >= 1 && links.nlink <= LNX_LINKS_MAX);
	for (i = 0; i < links.nlink; i++) {
		struct lnx_link *l = &links.link[i];

		cr_assert(l->npart >= 1 && l->npart <= LNX_LINK_PARTS);
		cr_assert_eq(l->at, l->part[0].at);
		for (j = 0; j < l->npart; j++) {
			struct lnx_link_part *p = &l->part[j];

			cr_assert_leq(p->ndom, LNX_PART_DOMS);
			cr_assert_lt(p->at, len);
			cr_assert(!strncasecmp(text + p->at, p->prov, 3) ||
				  strlen(p->prov) < 3);
		}
	}
	once = strdup(canonical(&links));
	cr_assert_eq(lnx_links_parse(once, &again, &at, why, sizeof(why)), 0,
		     "%s: %s", once, why);
	cr_assert_str_eq(canonical(&again), once);
	free(once);
	return 0;
}

Test(links, good_text_and_its_canonical_spelling)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "shm", "shm" },
		{ "shm+tcp", "shm+tcp" },
		{ " shm + tcp ", "shm+tcp" },
		{ "\tshm\n+\r\ntcp\n", "shm+tcp" },
		{ "tcp:eth0", "tcp:eth0" },
		{ "tcp:eth0,eth1", "tcp:eth0,eth1" },
		{ "tcp : eth0 , eth1", "tcp:eth0,eth1" },
		{ "shm+tcp:eth0,eth1|shm+tcp", "shm+tcp:eth0,eth1|shm+tcp" },
		{ " shm | tcp | udp;ofi_rxd ", "shm|tcp|udp;ofi_rxd" },
		{ "shm+tcp;ofi_rxm", "shm+tcp;ofi_rxm" },
		{ "shm+tcp;ofi_rxm:lo", "shm+tcp;ofi_rxm:lo" },
		{ "verbs", "verbs;ofi_rxm" },
		{ "shm+verbs:mlx5_0", "shm+verbs;ofi_rxm:mlx5_0" },
		{ "VERBS", "verbs;ofi_rxm" },
		{ "verbs;ofi_rxm", "verbs;ofi_rxm" },
		{ "verbsx", "verbsx" },
		{ "shm+cxi:cxi0,cxi1+tcp:eth0", "shm+cxi:cxi0,cxi1+tcp:eth0" },
		/* one provider in two parts, with different domains */
		{ "tcp:eth0+tcp:eth1", "tcp:eth0+tcp:eth1" },
		{ "tcp:eth0+tcp;ofi_rxm:eth0", "tcp:eth0+tcp;ofi_rxm:eth0" },
		{ "tcp:e+udp;ofi_rxd:e", "tcp:e+udp;ofi_rxd:e" },
		/* domain names may hold what provider names may not */
		{ "tcp:a@b/c=d-e.f;g", "tcp:a@b/c=d-e.f;g" },
		{ "verbs:mlx5_0-dgram", "verbs;ofi_rxm:mlx5_0-dgram" },
		/* the same link twice is unusual, and not wrong */
		{ "shm|shm", "shm|shm" },
		/* the old form of a domain */
		{ "shm+cxi:lnx", "shm+cxi" },
		{ "cxi:lnx", "cxi" },
		{ "shm+cxi : lnx ", "shm+cxi" },
		{ "shm+cxi:cxi0,cxi1:lnx", "shm+cxi:cxi0,cxi1" },
		{ "shm+cxi:lnx|shm+tcp:lnx", "shm+cxi|shm+tcp" },
		/* ... and domains whose names only resemble it */
		{ "shm+tcp:lnx0", "shm+tcp:lnx0" },
		{ "shm+tcp:eth0,lnx", "shm+tcp:eth0,lnx" },
		{ "shm+tcp:lnx,eth0", "shm+tcp:lnx,eth0" },
		{ "tcp:lnx+shm", "tcp:lnx+shm" },
		{ "shm+tcp:lnx:lnx", "shm+tcp:lnx:lnx" },
		{ "tcp:lnx:lnx|shm", "tcp:lnx:lnx|shm" },
		{ "tcp:eth0,lnx:lnx", "tcp:eth0,lnx" },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_expect_eq(check(cases[i].text), 0, "%s: %s", cases[i].text,
			     why);
		parse(cases[i].text);
		cr_expect_str_eq(canonical(&links), cases[i].want);
	}
}

Test(links, parts_domains_and_offsets)
{
	struct lnx_link *l;

	cr_assert_eq(parse(" shm + tcp;ofi_rxm : eth0, eth1 | cxi"), 0);
	cr_assert_eq(links.nlink, 2);
	l = &links.link[0];
	cr_assert_eq(l->at, 1);
	cr_assert_eq(l->npart, 2);
	cr_assert_str_eq(l->part[0].prov, "shm");
	cr_assert_eq(l->part[0].ndom, 0);
	cr_assert_eq(l->part[0].at, 1);
	cr_assert_str_eq(l->part[1].prov, "tcp;ofi_rxm");
	cr_assert_eq(l->part[1].at, 7);
	cr_assert_eq(l->part[1].ndom, 2);
	cr_assert_str_eq(l->part[1].dom[0], "eth0");
	cr_assert_str_eq(l->part[1].dom[1], "eth1");
	l = &links.link[1];
	cr_assert_eq(l->at, 34);
	cr_assert_eq(l->npart, 1);
	cr_assert_str_eq(l->part[0].prov, "cxi");
}

Test(links, bad_text_where_and_why)
{
	static const struct {
		const char *text;
		size_t at;
		const char *why;
	} cases[] = {
		{ "", 0, "there is no link; write one like shm+tcp" },
		{ "  ", 2, "there is no link" },
		{ "+", 0, "a provider name is missing before '+'" },
		{ "|", 0, "a provider name is missing before '|'" },
		{ "shm+", 4, "a provider name is missing at the end" },
		{ "shm + ", 6, "a provider name is missing at the end" },
		{ "shm|", 4, "a provider name is missing at the end" },
		{ "shm||tcp", 4, "a provider name is missing before '|'" },
		{ "shm | | tcp", 6, "a provider name is missing before '|'" },
		{ "shm++tcp", 4, "a provider name is missing before '+'" },
		{ "+shm", 0, "a provider name is missing before '+'" },
		{ "|shm", 0, "a provider name is missing before '|'" },
		{ ":eth0", 0, "a provider name is missing before ':'" },
		{ "shm+:eth0", 4, "a provider name is missing before ':'" },
		{ ",", 0, "a provider name is missing before ','" },
		{ "tcp:", 4, "a domain name is missing at the end; without "
			     "':' and domains, every domain of tcp is meant" },
		{ "tcp: +shm", 5, "a domain name is missing before '+'" },
		{ "tcp:eth0,", 9, "a domain name is missing at the end" },
		{ "tcp:,eth0", 4, "a domain name is missing before ','" },
		{ "tcp:eth0,,eth1", 9, "a domain name is missing before ','" },
		{ "tcp::eth0", 4, "a domain name is missing before ':'" },
		{ "tcp::lnx", 4, "a domain name is missing before ':'" },
		{ "tcp:eth0:eth1", 8, "':' is used once in a part" },
		{ "tcp:eth0:lnx+shm", 8, "':' is used once in a part" },
		{ "tcp:lnx:lnx:lnx", 7, "':' is used once in a part" },
		{ "shm,tcp", 3, "',' separates domains, and they come after "
				"':'" },
		{ "shm tcp", 4, "a blank cannot end the provider name \"shm\"; "
				"'+' begins the next part" },
		{ "tcp:eth0 eth1", 9, "a blank cannot end the domain name "
				      "\"eth0\"" },
		{ "tcp; ofi_rxm", 5, "a blank cannot end the provider name "
				     "\"tcp;\"" },
		{ "tcp ;ofi_rxm", 4, "a blank cannot end" },
		{ "tcp;", 4, "a name is missing beside ';'" },
		{ ";tcp", 0, "a name is missing beside ';'" },
		{ "tcp;;ofi_rxm", 4, "a name is missing beside ';'" },
		{ "tcp/ip", 3, "'/' cannot be part of a provider name; spell "
			       "it as fi_info lists it" },
		{ "shm+t(p", 5, "'(' cannot be part of a provider name" },
		{ "tc\001", 2, "the byte 0x01 cannot be part of a provider" },
		{ "tcp:e\177", 5, "the byte 0x7f cannot be part of a domain" },
		{ "tcp:\377", 4, "the byte 0xff cannot be part of a domain" },
		{ "lnx", 0, "lnx cannot be a part of its own link; name the "
			    "providers to link" },
		{ "shm+lnx", 4, "lnx cannot be a part" },
		{ "shm+LNX:eth0", 4, "lnx cannot be a part" },
		{ "tcp;lnx", 4, "lnx cannot be a part" },
		{ "lnx;ofi_rxm", 0, "lnx cannot be a part" },
		{ "lnx:lnx", 0, "lnx cannot be a part" },
		{ "shm|lnx", 4, "lnx cannot be a part" },
		{ "tcp+tcp", 4, "tcp is in this link already" },
		{ "tcp+shm+tcp", 8, "tcp is in this link already" },
		{ "tcp+TCP", 4, "TCP is in this link already" },
		{ "verbs+verbs;ofi_rxm", 6, "verbs;ofi_rxm is in this link" },
		{ "tcp:eth0,eth0", 9, "the domain \"eth0\" of tcp is in this "
				      "link already; name it once" },
		{ "tcp:eth0+tcp:eth1,eth0", 18, "the domain \"eth0\" of tcp" },
		{ "tcp+tcp:eth0", 8, "the domain \"eth0\" of tcp" },
		{ "tcp:eth0+tcp", 9, "tcp is in this link already" },
		{ "tcp:eth0+tcp:lnx", 9, "tcp is in this link already" },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_expect_eq(check(cases[i].text), -EINVAL, "\"%s\"",
			     cases[i].text);
		cr_expect_eq(at, cases[i].at, "\"%s\": at %zu: %s",
			     cases[i].text, at, why);
		cr_expect_eq(strncmp(why, cases[i].why, strlen(cases[i].why)),
			     0, "\"%s\": %s", cases[i].text, why);
	}
	cr_expect_eq(check(""), -EINVAL);
	cr_expect_eq(parse(NULL), -EINVAL);
	cr_expect_eq(at, 0);
}

/* The word n times, each %d in it replaced by a number, joined by sep. */
static char *many(const char *head, const char *word, char sep, int n)
{
	char *text = malloc(strlen(head) + (strlen(word) + 12) * (size_t)n + 1);
	char *p = stpcpy(text, head);
	int i;

	for (i = 0; i < n; i++) {
		if (i)
			*p++ = sep;
		p += sprintf(p, "%s%d", word, i);
	}
	return text;
}

Test(links, counts_at_their_limits)
{
	static const struct {
		const char *head, *word, *why;
		char sep;
		int max;
	} cases[] = {
		{ "", "p", "a link can have at most 16 parts", '+',
		  LNX_LINK_PARTS },
		{ "tcp:", "d", "a part can name at most 16 domains", ',',
		  LNX_PART_DOMS },
		{ "", "p", "there can be at most 16 links", '|',
		  LNX_LINKS_MAX },
	};
	char *text;
	size_t i;
	int n;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		for (n = cases[i].max - 1; n < cases[i].max + 3; n++) {
			text = many(cases[i].head, cases[i].word, cases[i].sep,
				    n);
			cr_expect_eq(check(text), n > cases[i].max ? -EINVAL :
				     0, "%s: %s", text, why);
			if (n > cases[i].max)
				cr_expect_eq(strncmp(why, cases[i].why,
						     strlen(cases[i].why)), 0,
					     "%s", why);
			free(text);
		}
	}
}

Test(links, names_at_their_limit)
{
	char text[300];
	int n, dom;

	for (dom = 0; dom < 2; dom++) {
		for (n = LNX_NAME_MAX - 3; n < LNX_NAME_MAX + 3; n++) {
			sprintf(text, "shm+%s%0*d", dom ? "tcp:" : "", n, 7);
			cr_expect_eq(check(text), n < LNX_NAME_MAX ? 0 :
				     -EINVAL, "%s", why);
			if (n >= LNX_NAME_MAX) {
				cr_expect_eq(at, dom ? 8 : 4);
				cr_expect_not_null(strstr(why, "at most 63"));
			}
		}
	}
	/* "verbs" grows: the bound must hold after that */
	cr_expect_eq(check("verbs:lnx"), 0);
}

Test(links, link_text_at_its_limit)
{
	char text[2 * LNX_LINK_TEXT_MAX];
	int want, n, i;

	for (want = LNX_LINK_TEXT_MAX - 3; want < LNX_LINK_TEXT_MAX + 3;
	     want++) {
		n = sprintf(text, "shm|tcp:");
		for (i = 0; i < 9; i++)
			n += sprintf(text + n, "%050d,", i);
		/* without the link before it the text has `want` bytes */
		sprintf(text + n, "%0*d", want - (n - 4), 99);
		cr_expect_eq(check(text), want < LNX_LINK_TEXT_MAX ? 0 :
			     -EINVAL, "%d: %s", want, why);
		if (want >= LNX_LINK_TEXT_MAX) {
			cr_expect_eq(at, 4);
			cr_expect_not_null(strstr(why, "511 letters"));
		}
	}
}

Test(links, print_never_overruns)
{
	static const char *const texts[] = {
		"shm+tcp;ofi_rxm:eth0,eth1", "shm+tcp:lnx:lnx", "a"
	};
	char buf[64];
	int n, want;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(texts); i++) {
		cr_assert_eq(parse(texts[i]), 0);
		want = (int)strlen(texts[i]);
		for (n = 0; n < 40; n++) {
			memset(buf, 'x', sizeof(buf));
			cr_expect_eq(lnx_link_print(&links.link[0], buf,
						    (size_t)n),
				     n > want ? want : -ENOSPC);
			cr_expect_eq(buf[n], 'x');
			if (n > want)
				cr_expect_str_eq(buf, texts[i]);
		}
	}
}

Test(links, sentence_is_cut_and_not_overrun)
{
	static const char *const texts[] = {
		"", "shm tcp", "tcp:", "lnx", "tcp:a,a", "tcp:a b", "a/b"
	};
	char buf[128];
	size_t i, n;

	for (i = 0; i < LNX_ARRAY_SIZE(texts); i++) {
		for (n = 0; n < 100; n++) {
			memset(buf, 'x', sizeof(buf));
			cr_expect_eq(lnx_links_parse(texts[i], &links, NULL,
						     buf, n), -EINVAL);
			cr_expect_eq(buf[n], 'x');
			cr_expect(!n || memchr(buf, '\0', n));
		}
		cr_expect_eq(lnx_links_parse(texts[i], &links, NULL, NULL, 9),
			     -EINVAL);
	}
}

Test(links, huge_text)
{
	static const char *const unit[] = {
		"a", " ", "+", "shm+", "tcp:", ",", "a,", ";", "a;", "|", "a|",
		"\377", ":lnx", "tcp:eth0 ", "a:"
	};
	size_t i, j, k, size = 4 << 20;
	char *text = malloc(size + 1);

	for (i = 0; i < LNX_ARRAY_SIZE(unit); i++) {
		k = strlen(unit[i]);
		for (j = 0; j + k <= size; j += k)
			memcpy(text + j, unit[i], k);
		text[j] = '\0';
		cr_expect_eq(check(text), -EINVAL, "%s", unit[i]);
		memcpy(text, "shm+", 4);
		cr_expect_eq(check(text), -EINVAL, "%s", unit[i]);
	}
	/* blanks do not count */
	memset(text, ' ', size);
	memcpy(text, "shm+", 4);
	memcpy(text + size - 3, "tcp", 3);
	text[size] = '\0';
	cr_expect_eq(check(text), 0, "%s", why);
	free(text);
}

static const char sample[] =
	" shm + verbs:mlx5_0 , mlx5_1+tcp;ofi_rxm:eth0|shm+cxi:cxi0:lnx | tcp ";

Test(links, each_truncation)
{
	char text[sizeof(sample)];
	size_t n;

	for (n = 0; n < sizeof(sample); n++) {
		memcpy(text, sample, n);
		text[n] = '\0';
		check(text);
		memmove(text, sample + sizeof(sample) - 1 - n, n + 1);
		check(text);
	}
}

Test(links, each_byte_replaced)
{
	char text[sizeof(sample)];
	size_t n;
	int c;

	for (n = 0; n < sizeof(sample) - 1; n++) {
		for (c = 0; c < 256; c++) {
			memcpy(text, sample, sizeof(sample));
			text[n] = (char)c;
			check(text);
		}
	}
}

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static int roll(int n)
{
	return (int)(lrand48() % n);
}

static char *blanks(char *p)
{
	while (!roll(3))
		*p++ = " \t\n\r"[roll(4)];
	return p;
}

static char *word(char *p, const char *letters, int len, int unique)
{
	while (len--)
		*p++ = letters[roll((int)strlen(letters))];
	return p + sprintf(p, "q%d", unique);	/* q: in no letters */
}

/* A random link text, and the canonical text that it must give. */
Test(links, random_text_keeps_its_meaning)
{
	static const char plain[] = "abcXYZ019_-.";
	static const char any[] = "abcXYZ019_-.;@/=()[]{}<>!?*&%$#~^'\"\\`";
	static char text[65536], want[16384];
	char *t, *w, *from;
	int round, nlink, npart, ndom, unique, i, j, k;
	unsigned long s = seed();

	for (round = 0; round < 3000; round++) {
		t = text;
		w = want;
		unique = 0;
		nlink = 1 + roll(LNX_LINKS_MAX);
		for (i = 0; i < nlink; i++) {
			char *begin = w + !!i;

			if (i)
				*t++ = *w++ = '|';
			npart = 1 + roll(LNX_LINK_PARTS);
			for (j = 0; j < npart && w - begin < 300; j++) {
				if (j)
					*t++ = *w++ = '+';
				t = blanks(t);
				from = t;
				t = word(t, plain, roll(5), unique++);
				if (!roll(3))
					t = stpcpy(t, ";ofi_rxm");
				memcpy(w, from, (size_t)(t - from));
				w += t - from;
				t = blanks(t);
				ndom = roll(3) ? 0 : 1 + roll(LNX_PART_DOMS);
				for (k = 0; k < ndom; k++) {
					if (w - begin > 400)
						break;
					*t++ = *w++ = k ? ',' : ':';
					t = blanks(t);
					from = t;
					t = word(t, any, roll(30), unique++);
					memcpy(w, from, (size_t)(t - from));
					w += t - from;
					t = blanks(t);
				}
			}
			if (!roll(4))
				t = blanks(stpcpy(t, ":lnx"));
		}
		*t = *w = '\0';
		cr_assert_eq(check(text), 0, "seed %lu: %s: %s", s, text, why);
		parse(text);
		cr_assert_str_eq(canonical(&links), want, "seed %lu", s);
	}
}

/* Text made of the grammar's characters, mostly wrong. */
Test(links, random_letters)
{
	static const char letters[] = ":,+|; lnxa\ttcp";
	char text[64];
	int round, n, good = 0;
	unsigned long s = seed();

	for (round = 0; round < 200000; round++) {
		n = roll(20);
		text[n] = '\0';
		while (n--)
			text[n] = letters[roll(sizeof(letters) - 1)];
		good += !check(text);
	}
	cr_assert(good > 100 && good < 190000, "seed %lu: %d good", s, good);
}
