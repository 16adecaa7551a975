/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl ping, discover: have an endpoint ask a peer. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

#define TIMEOUT_MAX	600000u		/* ms */

/* What follows "KEY " in line, up to a blank; "" if it is not there. */
static const char *word(const char *line, const char *key, char *buf, size_t size)
{
	char want[32];
	const char *at;

	snprintf(want, sizeof(want), " %s ", key);
	at = strstr(line, want);
	snprintf(buf, size, "%.*s", at ? (int)strcspn(at + strlen(want), " ") : 0,
		 at ? at + strlen(want) : "");
	return buf;
}

static void put_line(struct lnx_doc *m, struct lnx_doc **list, const char *line)
{
	char text[LNX_STATE_NAME];
	struct lnx_doc *r;
	const char *at;

	if (!strncmp(line, "peer ", 5)) {
		lnx_doc_text(m, "peer", line + 5);
	} else if (!strncmp(line, "local ", 6)) {
		lnx_doc_printf(m, "answer", "shared memory, process %s", line + 6);
	} else if (!strncmp(line, "path ", 5) || !strncmp(line, "remote ", 7)) {
		if (!*list)
			*list = lnx_doc_list(m, "peer ni");
		r = lnx_doc_map(*list, NULL);
		lnx_doc_text(r, "nid", word(line, "nid", text, sizeof(text)));
		if (strncmp(line, "path ", 5))
			return;
		lnx_doc_text(r, "rail", word(line, "rail", text, sizeof(text)));
		word(line, "rtt_us", text, sizeof(text));
		if (text[0])
			lnx_doc_real(r, "rtt_us", strtod(text, NULL));
		at = strstr(line, " error ");
		if (!text[0] && at)
			lnx_doc_text(r, "error", at + 7);
	}
}

static void put_reply(struct lnx_doc *m, char *reply)
{
	struct lnx_doc *list = NULL;
	char *line, *save = NULL;

	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_line(m, &list, line);
}

/* The peer that a NID means; or what the user wrote, if it is an id or a number, which
 * also name peers that were not met. */
static bool name_of(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    const char *text, char *buf, size_t size)
{
	unsigned i;

	if (!strchr(text, '@') && !strchr(text, '*')) {
		snprintf(buf, size, "%s", text);
		return true;
	}
	for (i = 0; i < e->npeer; i++)
		if (lnxctl_peer_is(text, &e->peer[i])) {
			snprintf(buf, size, "%016" PRIx64, e->peer[i].p.eid);
			return true;
		}
	lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "\"%s\": it has met no such peer; name another "
		    "one by its number in the address vector", text);
	return false;
}

/* ---- targets: NIDs with commas between, as of lnetctl, or several words ---- */

struct asking {
	const char *verb, *behind;	/* of the request: in front of the peer, and behind it */
	unsigned answer_ms;
};

static bool several(const struct lnxctl *c)
{
	return c->narg > 1 || strchr(c->arg[0], ',');
}

static void ask(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		const struct asking *a, const char *target, struct lnx_doc *to)
{
	struct lnx_doc *m;
	char peer[64], *reply;

	if (name_of(c, p, e, target, peer, sizeof(peer)) &&
	    lnxctl_request(c, p, e, a->answer_ms, &reply, "%s %s%s", a->verb, peer,
			   a->behind)) {
		m = lnx_doc_map(to, several(c) ? NULL : a->verb);
		put_reply(m, reply);
		free(reply);
	} else if (several(c)) {
		m = lnx_doc_map(to, NULL);
		lnx_doc_text(m, "nid", target);
		lnx_doc_int(m, "errno", c->failed_err);
		lnx_doc_text(m, "descr", c->failed_why);
	}
}

static void ask_all(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    const struct asking *a, struct lnx_doc *map)
{
	struct lnx_doc *to = several(c) ? lnx_doc_list(map, a->verb) : map;
	char *words, *word, *save = NULL;
	unsigned i;

	for (i = 0; i < c->narg; i++) {
		words = lnx_must(strdup(c->arg[i]));
		for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save))
			ask(c, p, e, a, word, to);
		free(words);
	}
}

static int check_targets(const struct lnxctl *c)
{
	unsigned i;

	for (i = 0; i < c->narg; i++)
		if (!c->arg[i][strspn(c->arg[i], ", ")])
			return lnxctl_usage(c, "\"%s\": must be a peer", c->arg[i]);
	return LNXCTL_OK;
}

/* ---- the commands ---- */

static void ping(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	const char *timeout = lnxctl_value(c, "timeout");
	uint64_t ms = c->wait_ms ? c->wait_ms : LNXCTL_REQUEST_WAIT_MS;
	char behind[32];
	struct asking a = { .verb = "ping", .behind = behind };

	if (timeout)
		lnxctl_number(timeout, TIMEOUT_MAX, &ms);
	a.answer_ms = (unsigned)ms;
	snprintf(behind, sizeof(behind), " %" PRIu64, ms);
	ask_all(c, p, e, &a, map);
}

static int run_ping(struct lnxctl *c)
{
	const char *timeout = lnxctl_value(c, "timeout");
	int ret = check_targets(c);
	uint64_t ms;

	if (!ret && timeout && (!lnxctl_number(timeout, TIMEOUT_MAX, &ms) || !ms))
		ret = lnxctl_usage(c, "--timeout \"%s\": must be ms, from 1 to %u", timeout,
				   TIMEOUT_MAX);
	return ret ? ret : lnxctl_each(c, true, ping);
}

static void discover(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		     struct lnx_doc *map)
{
	struct asking a = { .verb = "discover", .answer_ms = LNXCTL_REQUEST_WAIT_MS,
			    .behind = lnxctl_value(c, "force") ? " force" : "" };

	ask_all(c, p, e, &a, map);
}

static int run_discover(struct lnxctl *c)
{
	int ret = check_targets(c);

	return ret ? ret : lnxctl_each(c, true, discover);
}

const struct lnxctl_verb lnxctl_ping = {
	.name = "ping", .args = "[--timeout MS] PEER...",
	.help = "ask peers over each of their paths",
	.option = {
		{ "timeout", "MS", "how long to wait, 1000 without it" },
	},
	.min_args = 1, .max_args = INT_MAX, .asks = true, .run = run_ping,
};

const struct lnxctl_verb lnxctl_discover = {
	.name = "discover", .args = "[--force] PEER...",
	.help = "the rails that peers say they have",
	.option = {
		{ "force", NULL, "tell them ours again, and wait until they have them" },
	},
	.min_args = 1, .max_args = INT_MAX, .asks = true, .run = run_discover,
};
