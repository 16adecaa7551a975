/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A recursive descent parser with one function per rule of the grammar in links.h.  The
 * text is read in place and never changed: each name is a span until its length and
 * letters have been checked.
 */
#include "conf/links.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/span.h"

#define SEPARATORS	":,+|"
#define QUOTE_MAX	40	/* of a name quoted in a sentence */

struct parser {
	const char *text;
	size_t pos;
	size_t *at;
	char *why;
	size_t why_size;
};

static int LNX_PRINTF(3, 4) fail(struct parser *p, size_t at,
				 const char *fmt, ...)
{
	va_list ap;

	if (p->at)
		*p->at = at;
	if (p->why_size) {
		va_start(ap, fmt);
		vsnprintf(p->why, p->why_size, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

static char peek(struct parser *p)
{
	p->pos += lnx_blanks(p->text + p->pos);
	return p->text[p->pos];
}

/* "before '+'" or "at the end": the position of something missing. */
static const char *where(char c, char buf[12])
{
	if (!c)
		return "at the end";
	snprintf(buf, 12, "before '%c'", c);
	return buf;
}

static int quoted(const struct lnx_span *n)
{
	return lnx_span_quoted(*n, QUOTE_MAX);
}

/* Offset of n in the text. */
static size_t offset(const struct parser *p, const struct lnx_span *n)
{
	return (size_t)(n->s - p->text);
}

/* Take the letters up to a blank or a separator; may be empty. */
static struct lnx_span take(struct parser *p)
{
	struct lnx_span n;

	peek(p);
	n.s = p->text + p->pos;
	n.len = 0;
	while (n.s[n.len] && !lnx_is_blank(n.s[n.len]) &&
	       !strchr(SEPARATORS, n.s[n.len]))
		n.len++;
	p->pos += n.len;
	return n;
}

static bool letter_ok(char c, bool prov)
{
	if (!prov)
		return c > ' ' && c <= '~';
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       lnx_is_digit(c) || (c && strchr("_-.;", c));
}

static int check_name(struct parser *p, const struct lnx_span *n, bool prov)
{
	const char *kind = prov ? "provider" : "domain";
	char next;
	size_t i;

	for (i = 0; i < n->len; i++) {
		if (letter_ok(n->s[i], prov))
			continue;
		if (n->s[i] > ' ' && n->s[i] <= '~')
			return fail(p, offset(p, n) + i, "'%c' cannot be part "
				    "of a %s name; spell it as fi_info lists "
				    "it", n->s[i], kind);
		return fail(p, offset(p, n) + i, "the byte 0x%02x cannot be "
			    "part of a %s name; spell it as fi_info lists it",
			    (unsigned char)n->s[i], kind);
	}
	if (n->len >= LNX_NAME_MAX)
		return fail(p, offset(p, n), "the %s name \"%.*s...\" has %zu "
			    "letters and may have at most %d", kind, quoted(n),
			    n->s, n->len, LNX_NAME_MAX - 1);
	/* Blanks are allowed around a name, not inside it. */
	next = peek(p);
	if (next && !strchr(SEPARATORS, next))
		return fail(p, p->pos, "a blank cannot end the %s name "
			    "\"%.*s\"; '+' begins the next part, ',' the next "
			    "domain, '|' the next link", kind, quoted(n), n->s);
	return 0;
}

static int check_prov(struct parser *p, const struct lnx_span *n)
{
	size_t i, from;
	char c, buf[12];
	int ret;

	if (!n->len) {
		c = peek(p);
		return fail(p, p->pos, "a provider name is missing %s; a link "
			    "is written like shm+tcp:eth0,eth1", where(c, buf));
	}
	ret = check_name(p, n, true);
	if (ret)
		return ret;
	/* Each layer of "tcp;ofi_rxm" is a name. */
	for (i = from = 0; i <= n->len; i++) {
		if (i < n->len && n->s[i] != ';')
			continue;
		if (i == from)
			return fail(p, offset(p, n) + i, "a name is missing "
				    "beside ';', which joins two layers of one "
				    "provider as in tcp;ofi_rxm");
		if (i - from == 3 && !strncasecmp(n->s + from, "lnx", 3))
			return fail(p, offset(p, n) + from, "lnx cannot be a "
				    "part of its own link; name the providers "
				    "to link, as in shm+tcp");
		from = i + 1;
	}
	return 0;
}

static void copy_name(char to[LNX_NAME_MAX], const struct lnx_span *n)
{
	memcpy(to, n->s, n->len);
	to[n->len] = '\0';
}

/* Has an earlier part of the link this domain (all, if NULL)? */
static bool taken(const struct lnx_link *link, const struct lnx_link_part *part,
		  const char *dom)
{
	const struct lnx_link_part *q;
	unsigned i;

	for (q = link->part; q <= part; q++) {
		if (strcasecmp(q->prov, part->prov))
			continue;
		if (q != part && (!dom || !q->ndom))
			return true;
		for (i = 0; dom && i < q->ndom; i++)
			if (!strcmp(q->dom[i], dom))
				return true;
	}
	return false;
}

/* Skip ":lnx" at the end of a link, which has no meaning; p is behind the ':'. */
static bool old_spelling(struct parser *p)
{
	struct parser ahead = *p;
	struct lnx_span n = take(&ahead);
	char next = peek(&ahead);

	if (n.len != 3 || strncmp(n.s, "lnx", 3) || (next && next != '|'))
		return false;
	p->pos = ahead.pos;
	return true;
}

static int parse_doms(struct parser *p, struct lnx_link *link,
		      struct lnx_link_part *part)
{
	struct lnx_span n;
	char c, buf[12];
	int ret;

	do {
		n = take(p);
		if (!n.len) {
			c = peek(p);
			return fail(p, p->pos, "a domain name is missing %s; "
				    "without ':' and domains, every domain of "
				    "%s is meant", where(c, buf), part->prov);
		}
		ret = check_name(p, &n, false);
		if (ret)
			return ret;
		if (part->ndom == LNX_PART_DOMS)
			return fail(p, offset(p, &n), "a part can name at most "
				    "%d domains; without ':' and domains, "
				    "every domain of %s is meant",
				    LNX_PART_DOMS, part->prov);
		copy_name(part->dom[part->ndom], &n);
		if (taken(link, part, part->dom[part->ndom]))
			return fail(p, offset(p, &n), "the domain \"%.*s\" of "
				    "%s is in this link already; name it once",
				    quoted(&n), n.s, part->prov);
		part->ndom++;
		c = peek(p);
	} while (c == ',' && p->text[p->pos++]);

	if (c == ':') {
		p->pos++;
		if (old_spelling(p))
			return 0;
		return fail(p, p->pos - 1, "':' is used once in a part, before "
			    "its domains; ',' separates domains, '+' begins "
			    "the next part");
	}
	return 0;
}

static int parse_part(struct parser *p, struct lnx_link *link)
{
	struct lnx_link_part *part;
	struct lnx_span n = take(p);
	char c;
	int ret;

	ret = check_prov(p, &n);
	if (ret)
		return ret;
	if (link->npart == LNX_LINK_PARTS)
		return fail(p, offset(p, &n), "a link can have at most %d "
			    "parts; '|' begins another link", LNX_LINK_PARTS);
	part = &link->part[link->npart];
	memset(part, 0, sizeof(*part));
	part->at = offset(p, &n);
	copy_name(part->prov, &n);
	/* Plain verbs has no reliable datagrams: its layered form is meant. */
	if (lnx_span_is(n, "verbs"))
		strcpy(part->prov, "verbs;ofi_rxm");

	c = peek(p);
	if (c == ',')
		return fail(p, p->pos, "',' separates domains, and they come "
			    "after ':', as in tcp:eth0,eth1");
	if (c == ':') {
		p->pos++;
		if (!old_spelling(p)) {
			ret = parse_doms(p, link, part);
			if (ret)
				return ret;
		}
	}
	if (!part->ndom && taken(link, part, NULL))
		return fail(p, offset(p, &n), "%s is in this link already; "
			    "name it once, or with different domains each "
			    "time, as in tcp:eth0,eth1", part->prov);
	link->npart++;
	return 0;
}

static int parse_link(struct parser *p, struct lnx_link *link)
{
	char text[LNX_LINK_TEXT_MAX];
	int ret;

	link->npart = 0;
	peek(p);
	link->at = p->pos;
	do {
		ret = parse_part(p, link);
		if (ret)
			return ret;
	} while (peek(p) == '+' && p->text[p->pos++]);

	/* The text becomes a domain name, so its length is limited. */
	if (lnx_link_print(link, text, sizeof(text)) < 0)
		return fail(p, link->at, "the link has more than %d letters; "
			    "name fewer domains, or none to mean all",
			    LNX_LINK_TEXT_MAX - 1);
	return 0;
}

int lnx_links_parse(const char *text, struct lnx_links *out, size_t *at,
		    char *why, size_t why_size)
{
	struct parser p = { .text = text ? text : "", .at = at, .why = why,
			    .why_size = why ? why_size : 0 };
	int ret;

	out->nlink = 0;
	if (!peek(&p))
		return fail(&p, p.pos, "there is no link; write one like "
			    "shm+tcp, or leave the variable unset");
	do {
		if (out->nlink == LNX_LINKS_MAX) {
			peek(&p);
			return fail(&p, p.pos, "there can be at most %d links",
				    LNX_LINKS_MAX);
		}
		ret = parse_link(&p, &out->link[out->nlink]);
		if (ret)
			return ret;
		out->nlink++;
	} while (peek(&p) == '|' && p.text[p.pos++]);
	/* A name ends at a separator, and each of those is handled above. */
	return 0;
}

/* A last domain that is really called lnx would be read as the old form. */
static bool needs_old_spelling(const struct lnx_link *link)
{
	const struct lnx_link_part *part;

	if (!link->npart)
		return false;
	part = &link->part[link->npart - 1];
	return part->ndom == 1 && !strcmp(part->dom[0], "lnx");
}

int lnx_link_print(const struct lnx_link *link, char *buf, size_t size)
{
	const struct lnx_link_part *part;
	unsigned i, j;
	size_t n = 0;
	int r;

	if (!size)
		return -ENOSPC;
	buf[0] = '\0';
	for (i = 0; i < link->npart; i++) {
		part = &link->part[i];
		for (j = 0; j <= part->ndom; j++) {
			r = snprintf(buf + n, size - n, "%s%s",
				     j > 1 ? "," : j ? ":" : i ? "+" : "",
				     j ? part->dom[j - 1] : part->prov);
			if (r < 0 || (size_t)r >= size - n)
				return -ENOSPC;
			n += (size_t)r;
		}
	}
	if (needs_old_spelling(link)) {
		if (size - n <= sizeof(":lnx") - 1)
			return -ENOSPC;
		strcpy(buf + n, ":lnx");
		n += sizeof(":lnx") - 1;
	}
	return (int)n;
}
