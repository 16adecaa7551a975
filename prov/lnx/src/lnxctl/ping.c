/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl ping, discover: have an endpoint ask a peer. */
#include <errno.h>
#include <inttypes.h>
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

static void put_reply(struct lnx_doc *map, const char *key, char *reply)
{
	struct lnx_doc *m = lnx_doc_map(map, key), *list = NULL;
	char *line, *save = NULL;

	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		put_line(m, &list, line);
}

/* The peer that a NID means; or what the user wrote, if it is an id or a number, which
 * also name peers that were not met. */
static bool name_of(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    char *buf, size_t size)
{
	const char *text = c->arg[0];
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

static void ping(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	const char *timeout = lnxctl_value(c, "timeout");
	uint64_t ms = c->wait_ms ? c->wait_ms : LNX_CLIENT_WAIT_MS;
	char peer[64], *reply;

	if (timeout)
		lnxctl_number(timeout, TIMEOUT_MAX, &ms);
	if (!name_of(c, p, e, peer, sizeof(peer)) ||
	    !lnxctl_request(c, p, e, (unsigned)ms, &reply,
			    "ping %s %" PRIu64, peer, ms))
		return;
	put_reply(map, "ping", reply);
	free(reply);
}

static int run_ping(struct lnxctl *c)
{
	const char *timeout = lnxctl_value(c, "timeout");
	uint64_t ms;

	if (timeout && (!lnxctl_number(timeout, TIMEOUT_MAX, &ms) || !ms))
		return lnxctl_usage(c, "--timeout \"%s\": must be ms, from 1 to %u", timeout,
				    TIMEOUT_MAX);
	return lnxctl_each(c, true, ping);
}

static void discover(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		     struct lnx_doc *map)
{
	char peer[64], *reply;

	if (!name_of(c, p, e, peer, sizeof(peer)) ||
	    !lnxctl_request(c, p, e, LNX_CLIENT_WAIT_MS, &reply, "discover %s%s", peer,
			    lnxctl_value(c, "force") ? " force" : ""))
		return;
	put_reply(map, "discover", reply);
	free(reply);
}

static int run_discover(struct lnxctl *c)
{
	return lnxctl_each(c, true, discover);
}

const struct lnxctl_verb lnxctl_ping = {
	.name = "ping", .args = "[--timeout MS] PEER",
	.help = "ask a peer over each of its paths",
	.option = {
		{ "timeout", "MS", "how long to wait, 1000 without it" },
	},
	.min_args = 1, .max_args = 1, .run = run_ping,
};

const struct lnxctl_verb lnxctl_discover = {
	.name = "discover", .args = "[--force] PEER",
	.help = "the rails that a peer says it has",
	.option = {
		{ "force", NULL, "tell it ours again, and wait until it has them" },
	},
	.min_args = 1, .max_args = 1, .run = run_discover,
};
