/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl list: the processes that have a state segment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

static uint64_t seen_ns(const struct lnx_snap *s)
{
	uint64_t seen = s->h.seen_ns;
	unsigned i;

	for (i = 0; i < s->nep; i++)
		seen = LNX_MAX(seen, s->ep[i].ep.seen_ns);
	return seen;
}

/* "silent": it lives, and makes no progress now. */
static const char *state(const struct lnx_proc *p, uint64_t age)
{
	if (p->life == LNX_PROC_ENDED)
		return "dead";
	if (p->life == LNX_PROC_UNKNOWN)
		return "unknown";
	return age > LNXCTL_SILENT_NS ? "silent" : "live";
}

static void put_links(const struct lnxctl *c, const struct lnx_snap *s, struct lnx_doc *map)
{
	char text[1100] = "";
	size_t n = 0;
	unsigned i, k;

	for (i = 0; i < s->nep && n < sizeof(text); i++) {
		if (!lnxctl_wants_ep(c, &s->ep[i]))
			continue;
		for (k = 0; k < i; k++)
			if (lnxctl_wants_ep(c, &s->ep[k]) &&
			    !strcmp(s->ep[k].ep.link, s->ep[i].ep.link))
				break;
		if (k == i)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
					      n ? "|" : "", s->ep[i].ep.link);
	}
	lnx_doc_text(map, "link", text);
}

static void put_process(struct lnxctl *c, const struct lnx_proc *p, struct lnx_doc *map)
{
	const struct lnx_snap *s = p->snap;
	uint64_t age = lnxctl_now() - LNX_MIN(lnxctl_now(), seen_ns(s));
	uint64_t peers = 0;
	unsigned i;
	char text[32];

	lnx_doc_int(map, "pid", p->file.pid);
	lnx_doc_text(map, "state", state(p, age));
	lnx_doc_text(map, "program", s->h.program);
	lnx_doc_text(map, "rank", s->h.rank[0] ? s->h.rank : "-");
	lnx_doc_text(map, "job", s->h.job[0] ? s->h.job : "-");
	lnx_doc_uint(map, "endpoints", lnxctl_wanted(c, s));
	for (i = 0; i < s->nep; i++)
		if (lnxctl_wants_ep(c, &s->ep[i]))
			peers += s->ep[i].ep.npeer;
	lnx_doc_uint(map, "peers", peers);
	put_links(c, s, map);
	if (c->verbose) {
		lnx_doc_uint(map, "uid", p->uid);
		lnxctl_age(text, sizeof(text), age);
		lnx_doc_text(map, "last seen", text);
		lnx_doc_text(map, "lnx", s->h.lnx);
		lnx_doc_text(map, "segment", p->path);
	}
}

/* A file that is no segment, or a damaged one: it keeps nothing else from being listed. */
static void put_odd(const struct lnx_proc *p, struct lnx_doc *map)
{
	lnx_doc_int(map, "pid", p->file.pid);
	lnx_doc_text(map, "state", "unreadable");
	lnx_doc_text(map, "segment", p->path);
	lnx_doc_text(map, "because", p->why);
}

/* Dead ones that nothing chose are in the way of those that run. */
static bool only_counted(const struct lnxctl *c, const struct lnx_proc *p)
{
	return p->life == LNX_PROC_ENDED && !c->verbose && !lnxctl_chosen(c);
}

static int run(struct lnxctl *c)
{
	int ret = lnxctl_select(c, false, true);
	struct lnx_doc *list;
	unsigned i, dead = 0, odd = 0, has_ep = 0;

	if (ret)
		return ret;
	c->doc = lnx_doc_new();
	list = lnx_doc_list(c->doc, "process");
	for (i = 0; i < c->procs.n; i++) {
		const struct lnx_proc *p = &c->procs.proc[i];

		if (!p->snap && lnxctl_chosen(c)) {
			lnxctl_fail(c, p, LNXCTL_REFUSED, p->err, "%s", p->why);
			continue;
		}
		c->ndone++;
		if (c->ep && (!p->snap || !lnxctl_wanted(c, p->snap)))
			continue;
		has_ep++;
		/* It has just ended. */
		if (!p->snap && p->err == -ENOENT)
			continue;
		if (!p->snap && !c->verbose)
			odd++;
		else if (!p->snap)
			put_odd(p, lnx_doc_map(list, NULL));
		else if (only_counted(c, p))
			dead++;
		else
			put_process(c, p, lnx_doc_map(list, NULL));
	}
	if (c->ep && !has_ep)
		return lnxctl_no_ep(c);
	if (dead)
		lnx_doc_uint(c->doc, "dead processes", dead);
	if (odd)
		lnx_doc_uint(c->doc, "unreadable files", odd);
	/* An empty list is a result, too. */
	c->ndone += !c->procs.n;
	return lnxctl_finish(c);
}

const struct lnxctl_verb lnxctl_list = {
	.name = "list", .args = "[-v]",
	.help = "processes that have lnx endpoints; with -v also killed ones",
	.run = run,
};
