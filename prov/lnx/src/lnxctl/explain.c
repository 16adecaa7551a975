/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl explain: which way a message to a peer takes, and why no other one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* Words of a line in pairs, up to "because TEXT", which is the last one. */
static void put_pairs(struct lnx_doc *m, char *line)
{
	char *because = strstr(line, " because "), *key, *value, *save = NULL;
	uint64_t v;

	if (because)
		*because = '\0';
	for (key = strtok_r(line, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
		value = strtok_r(NULL, " ", &save);
		if (!value)
			break;
		if (lnxctl_number(value, UINT64_MAX, &v))
			lnx_doc_uint(m, key, v);
		else
			lnx_doc_text(m, key, value);
	}
	if (because)
		lnx_doc_text(m, "because", because + 9);
}

struct lists {
	struct lnx_doc *paths, *pairs;
};

static void put_line(struct lnx_doc *m, struct lists *l, char *line)
{
	if (!strncmp(line, "path ", 5)) {
		if (!l->paths)
			l->paths = lnx_doc_list(m, "paths");
		put_pairs(lnx_doc_map(l->paths, NULL), line);
	} else if (!strncmp(line, "pair ", 5)) {
		if (!l->pairs)
			l->pairs = lnx_doc_list(m, "rejected");
		/* "pair RAIL to N because ..." */
		memcpy(line, "rail", 4);
		put_pairs(lnx_doc_map(l->pairs, NULL), line);
	} else if (!strncmp(line, "because ", 8)) {
		lnx_doc_text(m, "because", line + 8);
	} else if (!strncmp(line, "form ", 5)) {
		lnx_doc_text(m, "form", line + 5);
	} else {
		put_pairs(m, line);
	}
}

static void one(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		const char *peer, uint64_t size, struct lnx_doc *list)
{
	struct lists l = { 0 };
	char *reply, *line, *save = NULL, words[32] = "";
	struct lnx_doc *m;

	if (size)
		snprintf(words, sizeof(words), " %" PRIu64, size);
	if (!lnxctl_request(c, p, e, 0, &reply, "explain %s%s", peer,
			    words))
		return;
	m = lnx_doc_map(list, NULL);
	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_line(m, &l, line);
	free(reply);
}

/* "65536", "64k", "1m" */
static bool size_of(const char *text, uint64_t *v)
{
	size_t len = strlen(text);
	unsigned shift = !len ? 0 : strchr("kK", text[len - 1]) ? 10 :
			 strchr("mM", text[len - 1]) ? 20 :
			 strchr("gG", text[len - 1]) ? 30 : 0;
	char digits[24];

	snprintf(digits, sizeof(digits), "%.*s", (int)(len - (shift != 0)), text);
	if (!lnxctl_number(digits, UINT64_MAX >> 32, v))
		return false;
	*v <<= shift;
	return true;
}

static void explain(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    struct lnx_doc *map)
{
	const char *text = c->arg[0];
	struct lnx_doc *list = lnx_doc_list(map, "explain");
	bool by_nid = strchr(text, '@') || strchr(text, '*');
	uint64_t size = 0;
	unsigned i, n = 0;
	char peer[32];

	if (c->narg > 1)
		size_of(c->arg[1], &size);
	if (!by_nid) {
		one(c, p, e, text, size, list);
		return;
	}
	for (i = 0; i < e->npeer; i++)
		if (lnxctl_peer_is(text, &e->peer[i])) {
			snprintf(peer, sizeof(peer), "%016" PRIx64, e->peer[i].p.eid);
			one(c, p, e, peer, size, list);
			n++;
		}
	if (!n)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no such peer; name "
			    "another one by its number in the address vector", text);
}

static int run(struct lnxctl *c)
{
	uint64_t size;

	if (c->narg > 1 && (!size_of(c->arg[1], &size) || !size))
		return lnxctl_usage(c, "\"%s\": must be a size in bytes, with k, m or g if "
				    "it is in KiB, MiB or GiB", c->arg[1]);
	return lnxctl_each(c, true, explain);
}

const struct lnxctl_verb lnxctl_explain = {
	.name = "explain", .args = "PEER [SIZE]",
	.help = "which way a message takes, and why no other one",
	.min_args = 1, .max_args = 2, .run = run,
};
