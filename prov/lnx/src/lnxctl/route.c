/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl route: gateways and the nets that they lead to (ROUTES in fi_lnx(7)). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "conf/routes.h"
#include "lnxctl/lnxctl.h"

#define TEXT_MAX	4000u		/* of --net, and of --gateway */

/* ---- options ---- */

/* They become words of a request. */
static bool is_word(const char *text)
{
	size_t n = strcspn(text, " \t\n;=");

	while (text[n] == ';' && lnx_joins_layers(text + n))
		n += 1 + strcspn(text + n + 1, " \t\n;=");
	return n && !text[n] && n < TEXT_MAX;
}

static int check_word(const struct lnxctl *c, const char *name, const char *what)
{
	const char *text = lnxctl_value(c, name);

	if (!text || is_word(text))
		return LNXCTL_OK;
	return lnxctl_usage(c, "--%s \"%.40s\": must be %s", name, text, what);
}

static int check_words(const struct lnxctl *c)
{
	int ret = check_word(c, "net", "the name of one net, such as tcp2");

	return ret ? ret : check_word(c, "gateway", "NIDs of gateways with commas between, "
				      "such as 10.0.0.1@tcp1,10.0.0.[2-4]@tcp1");
}

static int check_number(const struct lnxctl *c, const char *name, const char *what,
			uint64_t min, uint64_t max)
{
	const char *text = lnxctl_value(c, name);
	uint64_t v;

	if (!text || (lnxctl_number(text, max, &v) && v >= min))
		return LNXCTL_OK;
	return lnxctl_usage(c, "--%s \"%s\": must be %s, a whole number from %u to %u", name,
			    text, what, (unsigned)min, (unsigned)max);
}

/* ---- add ---- */

static void add(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	const char *hop = lnxctl_value(c, "hop"), *priority = lnxctl_value(c, "priority");
	char *reply;

	(void)map;
	if (lnxctl_request(c, p, e, 0, &reply, "route add %s%s%s%s%s via %s",
			   lnxctl_value(c, "net"), hop ? " hop=" : "", hop ? hop : "",
			   priority ? " priority=" : "", priority ? priority : "",
			   lnxctl_value(c, "gateway")))
		free(reply);
}

static int run_add(struct lnxctl *c)
{
	int ret = check_words(c);

	if (!ret && (!lnxctl_value(c, "net") || !lnxctl_value(c, "gateway")))
		ret = lnxctl_usage(c, "\"route add\" needs --net, which the route leads to, and "
				   "--gateway, which it leads over");
	if (!ret)
		ret = check_number(c, "hop", "a number of gateways", 1, LNX_ROUTE_HOP_MAX);
	if (!ret)
		ret = check_number(c, "priority", "a priority (0 is the best)", 0,
				   UINT32_MAX - 1u);
	return ret ? ret : lnxctl_each(c, false, add);
}

const struct lnxctl_verb lnxctl_route_add = {
	.name = "route add",
	.args = "--net NET --gateway NID[,NID...] [--hop N] [--priority N]",
	.help = "add routes to a net, one over each gateway",
	.option = {
		{ "net", "NET", "the net that they lead to, such as tcp2" },
		{ "gateway", "NID", "gateways: 10.0.0.1@tcp1,10.0.0.[2-4]@tcp1" },
		{ "hop", "N", "over how many gateways they lead, 1 to 255" },
		{ "priority", "N", "0, the best and the default, to 4294967294" },
	},
	.asks = true, .run = run_add,
};

/* ---- del ---- */

static void del(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		struct lnx_doc *map)
{
	const char *net = lnxctl_value(c, "net"), *gateway = lnxctl_value(c, "gateway");
	char *reply;

	(void)map;
	if (lnxctl_request(c, p, e, 0, &reply, "route del %s%s%s", net ? net : "all",
			   gateway ? " via " : "", gateway ? gateway : ""))
		free(reply);
}

static int run_del(struct lnxctl *c)
{
	bool net = lnxctl_value(c, "net") != NULL, all = lnxctl_value(c, "all") != NULL;
	int ret = check_words(c);

	if (!ret && net == all)
		ret = lnxctl_usage(c, "\"route del\" needs --net, or --all, and not "
				   "both");
	if (!ret && all && lnxctl_value(c, "gateway"))
		ret = lnxctl_usage(c, "--gateway is for --net");
	return ret ? ret : lnxctl_each(c, false, del);
}

const struct lnxctl_verb lnxctl_route_del = {
	.name = "route del",
	.args = "{--net NET [--gateway NID[,NID...]] | --all}",
	.help = "delete routes to a net",
	.option = {
		{ "net", "NET", "the net that they lead to" },
		{ "gateway", "NID", "only the routes over these gateways" },
		{ "all", NULL, "all routes there are" },
	},
	.asks = true, .run = run_del,
};

/* ---- show ---- */

/* The value of a word "KEY=" in text, as long as its digits are, or NULL. */
static const char *word(char *text, const char *key, uint64_t *v)
{
	char *at = strstr(text, key);
	char digits[24];

	if (!at)
		return NULL;
	at += strlen(key);
	snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at, "0123456789"), at);
	return lnxctl_number(digits, UINT32_MAX, v) ? at : NULL;
}

/* "tcp2 hop=1 priority=3 via 10.77.0.9@tcp1" */
struct shown {
	char *net, *gateway, *why, *type, *state, *id;
	int64_t hop;
	uint64_t priority;
};

/* The next of the fields that sign separates; NULL: there is none. */
static char *behind(char *at, const char *sign)
{
	char *next = at ? strstr(at, sign) : NULL;

	if (!next)
		return NULL;
	*next = '\0';
	return next + strlen(sign);
}

/* "route tcp2 via 10.77.0.9@tcp1: up; single-hop; gateway alive, id 0123456789abcdef" */
static bool read_line(char *line, struct shown *s)
{
	uint64_t hop = 0;

	s->net = behind(line, " ");
	s->why = behind(s->net, ": ");
	s->type = behind(s->why, "; ");
	s->state = behind(s->type, "; gateway ");
	s->id = behind(s->state, ", id ");
	s->gateway = behind(s->net, " via ");
	if (!s->gateway || !s->id)
		return false;
	s->hop = word(s->net, " hop=", &hop) ? (int64_t)hop : -1;
	s->priority = 0;
	word(s->net, " priority=", &s->priority);
	s->net[strcspn(s->net, " ")] = '\0';
	return true;
}

static bool wanted(const struct lnxctl *c, const struct shown *s)
{
	const char *net = lnxctl_value(c, "net"), *gateway = lnxctl_value(c, "gateway");

	return (!net || !strcmp(net, s->net)) &&
	       (!gateway || lnxctl_nid_is(gateway, s->gateway));
}

static struct lnx_doc *put_route(const struct lnxctl *c, struct lnx_doc *list,
				 const struct shown *s)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_text(m, "net", s->net);
	lnx_doc_text(m, "gateway", s->gateway);
	if (!c->verbose)
		return m;
	lnx_doc_int(m, "hop", s->hop);
	lnx_doc_uint(m, "priority", s->priority);
	lnx_doc_text(m, "state", strncmp(s->why, "up", 2) ? "down" : "up");
	lnx_doc_text(m, "type", s->type);
	lnx_doc_text(m, "reason", s->why);
	lnx_doc_text(m, "gateway state", s->state);
	lnx_doc_text(m, "gateway id", s->id);
	return m;
}

/* Words "KEY=NUMBER" into a map. */
static void put_numbers(struct lnx_doc *m, char *words)
{
	char *w, *save = NULL;
	uint64_t v;

	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *number = behind(w, "=");

		if (number && lnxctl_number(number, UINT64_MAX, &v))
			lnx_doc_uint(m, w, v);
	}
}

/* What follows the line of a route: "notes no_route=3 refused=1", or for each of our rails
 * "leg tcp:eth0>10.77.0.9@tcp1 health 1000; sent_frames=3 ...".  legs: NULL at first. */
static void put_more(struct lnx_doc *route, char *line, struct lnx_doc **legs)
{
	char *words = behind(line, " "), *health, *numbers;
	struct lnx_doc *m;
	uint64_t value;

	if (!words)
		return;
	if (!strcmp(line, "notes"))
		put_numbers(lnx_doc_map(route, "gateway notes"), words);
	if (strcmp(line, "leg"))
		return;
	health = behind(words, " health ");
	numbers = behind(health, "; ");
	if (!numbers || !lnxctl_number(health, UINT32_MAX, &value))
		return;
	if (!*legs)
		*legs = lnx_doc_list(route, "legs");
	m = lnx_doc_map(*legs, NULL);
	lnx_doc_text(m, "rail", words);
	lnx_doc_uint(m, "health value", value);
	put_numbers(lnx_doc_map(m, "statistics"), numbers);
}

static void show(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		 struct lnx_doc *map)
{
	bool some = lnxctl_value(c, "net") || lnxctl_value(c, "gateway");
	struct lnx_doc *list = NULL, *route = NULL, *legs = NULL;
	char *line, *save = NULL, *reply;
	struct shown s;

	if (!lnxctl_request(c, p, e, 0, &reply, "route show"))
		return;
	for (line = strtok_r(reply, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "route ", 6)) {
			if (route && c->verbose)
				put_more(route, line, &legs);
			continue;
		}
		route = legs = NULL;
		if (!read_line(line, &s) || !wanted(c, &s))
			continue;
		if (!list)
			list = lnx_doc_list(map, "route");
		route = put_route(c, list, &s);
	}
	if (!list && some)
		lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, "there is no such route");
	else if (!list)
		lnx_doc_list(map, "route");
	free(reply);
}

static int run_show(struct lnxctl *c)
{
	int ret = check_words(c);

	return ret ? ret : lnxctl_each(c, false, show);
}

const struct lnxctl_verb lnxctl_route_show = {
	.name = "route show", .args = "[--net NET] [--gateway NID] [-v]",
	.help = "routes; with -v whether they are up, and the state of their gateways",
	.option = {
		{ "net", "NET", "only routes to that net" },
		{ "gateway", "NID", "only routes over that gateway" },
	},
	.asks = true, .run = run_show,
};
