/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl fault: faults that an endpoint injects (FAULT INJECTION in fi_lnx(7)). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* "fault 3 drop rail=tcp:*: matched 12, hit 4, missed 1" */
static void put_rule(struct lnx_doc *list, char *line)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);
	char *end, *counts = NULL, *at;
	unsigned long long number, v;

	number = strtoull(line + strcspn(line, " "), &end, 10);
	/* The last one: a rule may contain anything. */
	for (at = strstr(end, ": matched "); at; at = strstr(at + 1, ": matched "))
		counts = at;
	if (counts)
		*counts = '\0';
	lnx_doc_uint(m, "id", number);
	lnx_doc_text(m, "rule", *end ? end + 1 : "");
	if (!counts)
		return;
	if (sscanf(counts + 1, " matched %llu", &v) == 1)
		lnx_doc_uint(m, "matched", v);
	at = strstr(counts + 1, ", hit ");
	if (at && sscanf(at, ", hit %llu", &v) == 1)
		lnx_doc_uint(m, "hit", v);
	at = strstr(counts + 1, ", missed ");
	lnx_doc_uint(m, "missed", at && sscanf(at, ", missed %llu", &v) == 1 ? v : 0);
}

static void put_rules(struct lnx_doc *map, char *reply)
{
	struct lnx_doc *list = lnx_doc_list(map, "fault");
	char *line, *save = NULL;

	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_rule(list, line);
}

/* The words after the verb, as one text. */
static char *join(const struct lnxctl *c)
{
	size_t len = 1;
	unsigned i;
	char *text;

	for (i = 0; i < c->narg; i++)
		len += strlen(c->arg[i]) + 1;
	text = lnx_must(calloc(1, len));
	for (i = 0; i < c->narg; i++) {
		strcat(text, i ? " " : "");
		strcat(text, c->arg[i]);
	}
	return text;
}

static void request(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    struct lnx_doc *map, const char *verb, bool list)
{
	char *words = join(c), *reply;

	if (lnxctl_request(c, p, e, 0, &reply, "fault %s%s%s", verb,
			   *words ? " " : "", words)) {
		if (list)
			put_rules(map, reply);
		free(reply);
	}
	free(words);
}

static void add(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	request(c, p, e, map, "add", true);
}

static void del(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	request(c, p, e, map, "del", false);
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	request(c, p, e, map, "list", true);
}

static void reset(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		  struct lnx_doc *map)
{
	request(c, p, e, map, "reset", false);
}

static int run_add(struct lnxctl *c)
{
	return lnxctl_each(c, false, add);
}

static int run_del(struct lnxctl *c)
{
	uint64_t v;

	if (strcmp(c->arg[0], "all") && !lnxctl_number(c->arg[0], UINT64_MAX, &v))
		return lnxctl_usage(c, "\"%s\": must be the number of a rule, or all",
				    c->arg[0]);
	return lnxctl_each(c, false, del);
}

static int run_show(struct lnxctl *c)
{
	return lnxctl_each(c, false, show);
}

static int run_reset(struct lnxctl *c)
{
	return lnxctl_each(c, false, reset);
}

const struct lnxctl_verb lnxctl_fault_add = {
	.name = "fault add", .args = "RULE...",
	.help = "inject faults: drop, delay or fail frames, as FI_LNX_FAULT does",
	.min_args = 1, .max_args = 256, .asks = true, .run = run_add,
};

const struct lnxctl_verb lnxctl_fault_del = {
	.name = "fault del", .args = "ID|all",
	.help = "end a fault, or all",
	.min_args = 1, .max_args = 1, .asks = true, .run = run_del,
};

const struct lnxctl_verb lnxctl_fault_show = {
	.name = "fault show", .args = "",
	.help = "the faults that are injected, and what they have hit",
	.asks = true, .run = run_show,
};

const struct lnxctl_verb lnxctl_fault_reset = {
	.name = "fault reset", .args = "",
	.help = "set the counts of all faults to 0",
	.asks = true, .run = run_reset,
};
