/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses the text of control requests.  See request.h.  It is read in place, word by
 * word.
 */
#include "policy/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/glob.h"
#include "base/span.h"
#include "policy/health.h"

#define QUOTE_MAX	48	/* of a word quoted in a sentence */
#define ADDR_DIGITS	15	/* of an fi_addr_t: with one more it is an id */

struct parser {
	const char *text;
	size_t pos;
	char *why;
	size_t why_size;
};

#define QUOTE(w)	lnx_span_quoted((w), QUOTE_MAX), (w).s

static int LNX_PRINTF(2, 3) refuse(struct parser *p, const char *fmt, ...)
{
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_size, fmt, ap);
	va_end(ap);
	for (i = 0; p->why[i]; i++)
		if (p->why[i] < ' ' || p->why[i] > '~')
			p->why[i] = '?';
	return -EINVAL;
}

static void skip(struct parser *p)
{
	p->pos += lnx_blanks(p->text + p->pos);
}

/* The next word; empty at the end. */
static struct lnx_span take(struct parser *p)
{
	struct lnx_span w;

	skip(p);
	w.s = p->text + p->pos;
	for (w.len = 0; w.s[w.len] && !lnx_is_blank(w.s[w.len]); w.len++)
		;
	p->pos += w.len;
	return w;
}

static int at_end(struct parser *p, const char *after)
{
	struct lnx_span w = take(p);

	if (!w.len)
		return 0;
	return refuse(p, "\"%.*s\": nothing follows \"%s\"", QUOTE(w), after);
}

/* ---- targets ---- */

/* PEER; false: it is none. */
static bool parse_peer(struct lnx_span w, struct lnx_target *t)
{
	t->by_eid = w.len > ADDR_DIGITS;
	return t->by_eid ? lnx_span_hex64(w, &t->peer) : lnx_span_uint(w, &t->peer);
}

static bool rail_letter(char c)
{
	return c > ' ' && c <= '~' && !strchr(",|+\"'=@", c);
}

static int parse_rail(struct parser *p, struct lnx_span all, struct lnx_span w,
		      struct lnx_target *t)
{
	size_t i;

	for (i = 0; i < w.len && rail_letter(w.s[i]); i++)
		;
	if (!w.len || i < w.len || w.len >= LNX_REQUEST_NAME_MAX ||
	    (!memchr(w.s, ':', w.len) && !memchr(w.s, '*', w.len)))
		return refuse(p, "\"%.*s\": must be a rail by its "
			      "name, such as tcp:eth0 or tcp:*, the paths "
			      "over one to a peer, RAIL@PEER, or a rail of a "
			      "peer, by its number, such as 1@PEER",
			      QUOTE(all));
	if (w.len > 4 && !strncmp(w.s, "shm:", 4))
		return refuse(p, "\"%.*s\": shared memory has no health; name "
			      "a network rail, such as tcp:eth0", QUOTE(all));
	memcpy(t->rail, w.s, w.len);
	t->rail[w.len] = '\0';
	return 0;
}

static int parse_target(struct parser *p, struct lnx_span all,
			struct lnx_target *t)
{
	const char *at = memchr(all.s, '@', all.len);
	struct lnx_span end = all, peer;
	uint64_t n;

	t->at = (unsigned)(all.s - p->text);
	t->len = (unsigned)all.len;
	if (!at) {
		t->kind = LNX_TARGET_RAIL;
		return parse_rail(p, all, all, t);
	}
	end.len = (size_t)(at - all.s);
	peer = (struct lnx_span){ at + 1, all.len - end.len - 1 };
	t->any_peer = lnx_span_is(peer, "*");
	if (!parse_peer(peer, t) && !t->any_peer)
		return refuse(p, "\"%.*s\": behind @ there must be the "
			      "16 hex digits of an endpoint id, or the number of an fi_addr_t, "
			      "or * for all peers", QUOTE(all));
	if (lnx_span_uint(end, &n)) {
		t->kind = LNX_TARGET_REMOTE;
		t->remote = (unsigned)n;
		if (n < UINT16_MAX)
			return 0;
		return refuse(p, "\"%.*s\": a peer has no rail of so high a "
			      "number", QUOTE(all));
	}
	t->kind = LNX_TARGET_PATH;
	return parse_rail(p, all, end, t);
}

static int add_target(struct parser *p, struct lnx_span w,
		      struct lnx_request *r)
{
	if (r->ntarget == LNX_REQUEST_TARGETS)
		return refuse(p, "\"%.*s\" is one too many, there can be %d; "
			      "make another request for the others", QUOTE(w),
			      LNX_REQUEST_TARGETS);
	return parse_target(p, w, &r->target[r->ntarget++]);
}

/* ---- health ---- */

static const char *set_word(const struct lnx_request *r)
{
	return r->kind == LNX_REQUEST_HEALTH_ONCE ? "once" : "set";
}

static int parse_value(struct parser *p, struct lnx_span w,
		       struct lnx_request *r)
{
	uint64_t v;

	if (!lnx_span_uint(w, &v) || v > LNX_HEALTH_MAX)
		return refuse(p, "\"%.*s\": the last word of \"health %s\" "
			      "must be a health, a whole number from 0 to %d",
			      QUOTE(w), set_word(r), LNX_HEALTH_MAX);
	r->value = (unsigned)v;
	return 0;
}

static int parse_set(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p), next;
	int ret = 0;

	if (!w.len)
		return refuse(p, "\"health %s\" is missing what is set: "
			      "health %s RAIL|RAIL@PEER|N@PEER... VALUE",
			      set_word(r), set_word(r));
	for (next = take(p); next.len && !ret; next = take(p)) {
		ret = add_target(p, w, r);
		w = next;
	}
	if (!ret)
		ret = parse_value(p, w, r);
	if (!ret && !r->ntarget)
		ret = refuse(p, "\"%.*s\": before the value, name what is set: "
			     "health %s RAIL|RAIL@PEER|N@PEER... VALUE",
			     QUOTE(w), set_word(r));
	return ret;
}

static int parse_auto(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);
	int ret = 0;

	if (!w.len)
		return refuse(p, "\"health auto\" is missing what is given "
			      "back: health auto RAIL|RAIL@PEER|N@PEER..., or "
			      "all");
	if (lnx_span_is(w, "all")) {
		r->all = true;
		return at_end(p, "health auto all");
	}
	for (; w.len && !ret; w = take(p))
		ret = add_target(p, w, r);
	return ret;
}

static int parse_health(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);

	if (lnx_span_is(w, "list")) {
		r->kind = LNX_REQUEST_HEALTH_LIST;
		return at_end(p, "health list");
	}
	if (lnx_span_is(w, "set")) {
		r->kind = LNX_REQUEST_HEALTH_SET;
		return parse_set(p, r);
	}
	if (lnx_span_is(w, "once")) {
		r->kind = LNX_REQUEST_HEALTH_ONCE;
		return parse_set(p, r);
	}
	if (lnx_span_is(w, "auto")) {
		r->kind = LNX_REQUEST_HEALTH_AUTO;
		return parse_auto(p, r);
	}
	return refuse(p, "\"%.*s\": \"health\" is followed by list, set, once "
		      "or auto", QUOTE(w));
}

/* ---- faults ---- */

static int parse_add(struct parser *p, struct lnx_request *r)
{
	/* Behind the blank that ends "add": there begins what the user wrote. */
	size_t from = p->pos + 1, at = 0;
	char why[400];
	int ret;

	skip(p);
	r->rules = p->text + p->pos;
	ret = lnx_fault_create(r->rules, 0, 0, NULL, &at, why, sizeof(why));
	if (ret != -EINVAL)
		return ret;
	at += p->pos + 1;
	return refuse(p, "character %zu of the rules: %s", at > from ? at - from : 1, why);
}

static int parse_del(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);

	r->all = lnx_span_is(w, "all");
	if (!r->all && !lnx_span_uint(w, &r->number))
		return refuse(p, "\"%.*s\": \"fault del\" is followed by the "
			      "number of a rule, as \"fault show\" shows it, "
			      "or all", QUOTE(w));
	return at_end(p, r->all ? "fault del all" : "fault del NUMBER");
}

static int parse_fault(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);

	if (lnx_span_is(w, "add")) {
		r->kind = LNX_REQUEST_FAULT_ADD;
		return parse_add(p, r);
	}
	if (lnx_span_is(w, "list") || lnx_span_is(w, "show")) {
		r->kind = LNX_REQUEST_FAULT_LIST;
		return at_end(p, "fault list");
	}
	if (lnx_span_is(w, "del")) {
		r->kind = LNX_REQUEST_FAULT_DEL;
		return parse_del(p, r);
	}
	if (lnx_span_is(w, "reset")) {
		r->kind = LNX_REQUEST_FAULT_RESET;
		return at_end(p, "fault reset");
	}
	return refuse(p, "\"%.*s\": \"fault\" is followed by add, list, del or "
		      "reset", QUOTE(w));
}

/* ---- counters, parameters, peers ---- */

static int parse_stats(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w;
	size_t back = p->pos;

	w = take(p);
	if (lnx_span_is(w, "reset")) {
		r->kind = LNX_REQUEST_STATS_RESET;
		return at_end(p, "stats reset");
	}
	p->pos = back;
	r->kind = LNX_REQUEST_STATS;
	return at_end(p, "stats");
}

/* A word that may follow; false: there is none. */
static bool option(struct parser *p, struct lnx_span *w)
{
	*w = take(p);
	return w->len != 0;
}

static int parse_export(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w;

	r->kind = LNX_REQUEST_EXPORT;
	if (!option(p, &w))
		return 0;
	r->all = true;
	if (!lnx_span_is(w, "all"))
		return refuse(p, "\"%.*s\": \"export\" is followed by all, or by "
			      "nothing", QUOTE(w));
	return at_end(p, "export all");
}

/* What follows is read later, by the endpoint, which knows its nets. */
static int parse_routes(struct parser *p, const char *verb, struct lnx_request *r)
{
	struct lnx_span w;
	size_t back;

	skip(p);
	r->rules = p->text + p->pos;
	if (!*r->rules)
		return refuse(p, "\"route %s\" is followed by %s", verb,
			      r->kind == LNX_REQUEST_ROUTE_DEL ?
			      "a net, as in \"tcp2\" or \"tcp2 via 10.0.0.1@tcp1\", or by "
			      "all" : "routes, as in \"tcp2 via 10.0.0.1@tcp1\"");
	if (r->kind != LNX_REQUEST_ROUTE_DEL)
		return 0;
	back = p->pos;
	w = take(p);
	r->all = lnx_span_is(w, "all");
	p->pos = r->all ? p->pos : back;
	return r->all ? at_end(p, "route del all") : 0;
}

static int parse_route(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);

	if (lnx_span_is(w, "show")) {
		r->kind = LNX_REQUEST_ROUTE_SHOW;
		return at_end(p, "route show");
	}
	if (lnx_span_is(w, "add")) {
		r->kind = LNX_REQUEST_ROUTE_ADD;
		return parse_routes(p, "add", r);
	}
	if (lnx_span_is(w, "put")) {
		r->kind = LNX_REQUEST_ROUTE_PUT;
		return parse_routes(p, "put", r);
	}
	if (lnx_span_is(w, "del")) {
		r->kind = LNX_REQUEST_ROUTE_DEL;
		return parse_routes(p, "del", r);
	}
	return refuse(p, "\"%.*s\": \"route\" is followed by show, add, put or del",
		      QUOTE(w));
}

static int parse_param(struct parser *p, struct lnx_request *r)
{
	struct lnx_span name = take(p);
	size_t end;

	r->kind = LNX_REQUEST_SET;
	skip(p);
	if (!name.len || !p->text[p->pos])
		return refuse(p, "\"set\" is followed by the name of a parameter "
			      "and its value");
	r->name_at = (unsigned)(name.s - p->text);
	r->name_len = (unsigned)name.len;
	r->value_at = (unsigned)p->pos;
	end = strlen(p->text);
	while (end > p->pos && lnx_is_blank(p->text[end - 1]))
		end--;
	r->value_len = (unsigned)(end - p->pos);
	return 0;
}

static int parse_tunable(struct parser *p, struct lnx_span w, struct lnx_request *r)
{
	static const char *const names[LNX_TUNABLES] = {
		[LNX_TUNE_CREDITS] = "credits", [LNX_TUNE_PEER_CREDITS] = "peer_credits",
	};
	struct lnx_span value = take(p);
	uint64_t v = LNX_TUNE_DEFAULT;
	unsigned i;

	for (i = 0; i < LNX_TUNABLES && !lnx_span_is(w, names[i]); i++)
		;
	if (i == LNX_TUNABLES)
		return refuse(p, "\"%.*s\": behind the rail of \"tune\" there are credits or "
			      "peer_credits, each with its value", QUOTE(w));
	if (!lnx_span_is(value, "default") && (!lnx_span_uint(value, &v) || v > LNX_TUNE_MAX))
		return refuse(p, "\"%.*s\": %s must be a whole number from 0, which is no "
			      "limit, to %u, or default", QUOTE(value), names[i],
			      LNX_TUNE_MAX);
	r->tuned |= 1u << i;
	r->tune[i] = (uint32_t)v;
	return 0;
}

static int parse_tune(struct parser *p, struct lnx_request *r)
{
	struct lnx_span w = take(p);
	struct lnx_target *t = &r->target[0];
	int ret;

	t->kind = LNX_TARGET_RAIL;
	t->at = (unsigned)(w.s - p->text);
	t->len = (unsigned)w.len;
	ret = parse_rail(p, w, w, t);
	r->ntarget = 1;
	for (w = take(p); w.len && !ret; w = take(p))
		ret = parse_tunable(p, w, r);
	if (!ret && !r->tuned)
		ret = refuse(p, "\"tune\" is followed by a rail, and credits or peer_credits "
			     "with a value");
	return ret;
}

static int parse_ping(struct parser *p, struct lnx_span w, struct lnx_request *r)
{
	if (!lnx_span_uint(w, &r->number) || !r->number ||
	    r->number > LNX_REQUEST_TIMEOUT_MAX)
		return refuse(p, "\"%.*s\": behind the peer \"ping\" has a time "
			      "limit in ms, from 1 to %u", QUOTE(w),
			      LNX_REQUEST_TIMEOUT_MAX);
	return at_end(p, "ping PEER TIMEOUT");
}

static int parse_discover(struct parser *p, struct lnx_span w, struct lnx_request *r)
{
	r->all = lnx_span_is(w, "force");
	if (!r->all)
		return refuse(p, "\"%.*s\": behind the peer of \"discover\" there "
			      "may only be force", QUOTE(w));
	return at_end(p, "discover PEER force");
}

static int parse_explain(struct parser *p, struct lnx_span w, struct lnx_request *r)
{
	if (!lnx_span_uint(w, &r->number))
		return refuse(p, "\"%.*s\": behind the peer of \"explain\" there "
			      "may be a size in bytes, a whole number", QUOTE(w));
	r->sized = true;
	return at_end(p, "explain PEER SIZE");
}

static int parse_of_peer(struct parser *p, const char *verb,
			 int (*more)(struct parser *p, struct lnx_span w,
				     struct lnx_request *r),
			 struct lnx_request *r)
{
	struct lnx_target *t = &r->target[0];
	struct lnx_span w = take(p);

	t->kind = LNX_TARGET_PEER;
	t->at = (unsigned)(w.s - p->text);
	t->len = (unsigned)w.len;
	if (!parse_peer(w, t))
		return refuse(p, "\"%.*s\": \"%s\" is followed by a peer: the "
			      "16 hex digits of its endpoint id, as \"peer show -v 3\" "
			      "of lnxctl shows it, or the number of an fi_addr_t",
			      QUOTE(w), verb);
	r->ntarget = 1;
	return option(p, &w) ? more(p, w, r) : 0;
}

int lnx_request_parse(const char *text, struct lnx_request *out, char *why,
		      size_t why_size)
{
	struct parser p = { .text = text, .why = why, .why_size = why_size };
	struct lnx_span w;

	memset(out, 0, sizeof(*out));
	if (strnlen(text, LNX_REQUEST_MAX) == LNX_REQUEST_MAX)
		return refuse(&p, "the request is longer than %d letters",
			      LNX_REQUEST_MAX - 1);
	w = take(&p);
	if (lnx_span_is(w, "fault"))
		return parse_fault(&p, out);
	if (lnx_span_is(w, "health"))
		return parse_health(&p, out);
	if (lnx_span_is(w, "stats"))
		return parse_stats(&p, out);
	if (lnx_span_is(w, "set"))
		return parse_param(&p, out);
	if (lnx_span_is(w, "tune")) {
		out->kind = LNX_REQUEST_TUNE;
		return parse_tune(&p, out);
	}
	if (lnx_span_is(w, "ping")) {
		out->kind = LNX_REQUEST_PING;
		return parse_of_peer(&p, "ping", parse_ping, out);
	}
	if (lnx_span_is(w, "discover")) {
		out->kind = LNX_REQUEST_DISCOVER;
		return parse_of_peer(&p, "discover", parse_discover, out);
	}
	if (lnx_span_is(w, "explain")) {
		out->kind = LNX_REQUEST_EXPLAIN;
		return parse_of_peer(&p, "explain", parse_explain, out);
	}
	if (lnx_span_is(w, "export"))
		return parse_export(&p, out);
	if (lnx_span_is(w, "route"))
		return parse_route(&p, out);
	return refuse(&p, "\"%.*s\": a request begins with fault, health, stats, "
		      "set, tune, ping, discover, explain, export or route", QUOTE(w));
}

bool lnx_request_has_rail(const struct lnx_target *target, const char *rail)
{
	return lnx_glob(target->rail, rail);
}

bool lnx_request_has_peer(const struct lnx_target *target, uint64_t eid,
			  uint64_t addr)
{
	return target->any_peer ||
	       target->peer == (target->by_eid ? eid : addr);
}
