/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a gateway has done, as YAML in a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/out.h"
#include "lnxrtd/lnxrtd.h"

#define SHOWN	64u		/* sources and destinations that are listed */

static void put_addr(struct lnx_out *o, const struct lnx_addr_rail *to)
{
	static const struct lnx_nets none;
	char text[LNX_NID_TEXT_MAX];
	struct lnx_nid nid;

	if (!to->prov || lnx_nid_of(&none, to, &nid)) {
		lnx_out(o, "\"\"");
		return;
	}
	lnx_nid_print(&nid, text, sizeof(text));
	lnx_out(o, "\"%s\"", text);
}

static void put_drops(struct lnx_out *o, const struct rtd_relay *r, uint64_t now)
{
	const struct rtd_counts *c = rtd_relay_counts(r);
	unsigned i;

	lnx_out(o, "drops:\n");
	for (i = 0; i < RTD_REASONS; i++) {
		const struct rtd_example *x = rtd_relay_example(r, i);

		lnx_out(o, "    %s:\n        count: %" PRIu64 "\n", rtd_reason_name(i),
			c->dropped[i]);
		if (!x->at_ns)
			continue;
		lnx_out(o, "        last: {ms_ago: %" PRIu64 ", rail: %u, source: "
			"\"%016" PRIx64 "\", via: \"%016" PRIx64 "\", length: %u, to: ",
			(uint64_t)(lnx_ns_since(now, x->at_ns) / LNX_NS_PER_MS), x->arrival,
			x->source, x->via, x->len);
		put_addr(o, &x->to);
		lnx_out(o, ", why: \"%s\"}\n", x->why ? x->why : "");
	}
}

static void put_counts(struct lnx_out *o, const struct rtd_relay *r)
{
	const struct rtd_counts *c = rtd_relay_counts(r);
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "route_count", c->frames_out }, { "route_length", c->bytes_out },
		{ "recv_count", c->frames_in }, { "recv_length", c->bytes_in },
		{ "drop_length", c->dropped_bytes }, { "notes_sent", c->notes_sent },
		{ "notes_held", c->notes_held }, { "notes_received", c->notes_received },
		{ "hellos", c->hellos }, { "infos", c->infos }, { "asks", c->asks },
		{ "bad_control", c->bad_control }, { "connects", c->connects },
		{ "connect_limited", c->connect_limited }, { "copied", c->copied },
		{ "taken", c->taken }, { "held", rtd_relay_held(r) },
	};
	size_t i;

	lnx_out(o, "statistics:\n");
	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++)
		lnx_out(o, "    %s: %" PRIu64 "\n", rows[i].name, rows[i].value);
}

static void put_pools(struct lnx_out *o, const struct rtd_relay *r)
{
	const struct rtd_pool *p = rtd_relay_pool(r);
	unsigned i;

	lnx_out(o, "buffers:\n");
	for (i = 0; i < RTD_CLASSES; i++)
		lnx_out(o, "    %s: {total: %u, free: %u, min_free: %u, empty: %" PRIu64
			"}\n", rtd_class_name(i), p->class[i].total, p->class[i].nfree,
			p->class[i].min_free, p->class[i].empty);
}

static void put_settings(struct lnx_out *o, const struct rtd_relay *r)
{
	const struct rtd_settings *s = rtd_relay_settings(r);
	unsigned i;

	lnx_out(o, "settings:\n");
	for (i = 0; i < RTD_SETTINGS; i++)
		lnx_out(o, "    %s: %" PRIu64 "\n", rtd_setting_name(i),
			rtd_setting_value(s, i));
}

static void put_rails(struct lnx_out *o, const struct rtd_relay *r)
{
	const struct rtd_rail *rail[RTD_RAILS];
	unsigned i, n = rtd_relay_rails(r, rail);
	char nid[LNX_NID_TEXT_MAX];

	lnx_out(o, "rails:\n");
	for (i = 0; i < n; i++) {
		lnx_nid_print(&rail[i]->nid, nid, sizeof(nid));
		lnx_out(o, "    - {nid: \"%s\", state: %s, frame_max: %u}\n", nid,
			rail[i]->up ? "up" : "down", rail[i]->frame_max);
	}
}

/* The worst of a number that may never have been needed. */
static int64_t shown(int64_t min)
{
	return min == INT64_MAX ? 0 : min;
}

static void put_ends(struct lnx_out *o, const struct rtd_relay *r)
{
	struct rtd_source_view s;
	struct rtd_dest_view d;
	unsigned i;

	lnx_out(o, "sources: # %u announced\n", rtd_relay_nsources(r));
	for (i = 0; i < SHOWN && rtd_relay_source(r, i, &s); i++)
		lnx_out(o, "    - {account: %u, id: \"%016" PRIx64 "\", gateway: %u, grant: "
			"[%u, %u], used: [%u, %u], min_credits: %" PRId64 ", recv_count: %"
			PRIu64 ", recv_length: %" PRIu64 ", drop_count: %" PRIu64 "}\n",
			s.account, s.id, s.gateway, s.large, s.small, s.used_large,
			s.used_small, shown(s.min_credits), s.frames, s.bytes, s.dropped);
	lnx_out(o, "destinations: # %u\n", rtd_relay_ndests(r));
	for (i = 0; i < SHOWN && rtd_relay_dest(r, i, &d); i++) {
		lnx_out(o, "    - {to: ");
		put_addr(o, &d.to);
		lnx_out(o, ", rail: %u, state: %s, routed: %u, credits: %" PRId64
			", min_credits: %" PRId64 ", route_count: %" PRIu64
			", route_length: %" PRIu64 ", failures: %" PRIu64 "}\n", d.rail,
			d.state, d.routed, d.credits, shown(d.min_credits), d.frames,
			d.bytes, d.failures);
	}
}

size_t rtd_state_print(const struct rtd_relay *r, char *buf, size_t size, uint64_t now)
{
	static const char *const states[] = { "off", "on", "draining" };
	struct lnx_out o = { .buf = buf, .size = size };

	lnx_out(&o, "routing: {state: %s, pid: %d}\n", states[rtd_relay_state(r)],
		(int)getpid());
	put_rails(&o, r);
	put_pools(&o, r);
	put_settings(&o, r);
	put_counts(&o, r);
	put_drops(&o, r, now);
	put_ends(&o, r);
	return o.n;
}

int rtd_state_write(const struct rtd_relay *r, const char *file, uint64_t now)
{
	size_t len = rtd_state_print(r, NULL, 0, now);
	char *text = malloc(len + 1), tmp[300];
	int fd, ret = 0;

	if (!text)
		return -ENOMEM;
	rtd_state_print(r, text, len + 1, now);
	snprintf(tmp, sizeof(tmp), "%s.new", file);
	/* Accounts are secrets.  One that is there may be open to others, or opened by them. */
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		ret = -errno;
	else if (write(fd, text, len) != (ssize_t)len)
		ret = errno ? -errno : -EIO;
	if (fd >= 0)
		close(fd);
	if (!ret && rename(tmp, file))
		ret = -errno;
	free(text);
	return ret;
}
