/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl/reader: what a segment says, of this version and of others; torn and hostile ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "lnxctl/reader.h"
#include "state_image.h"

static struct image im;
static struct lnx_snap *snap;
static char why[200];
static unsigned nread;
static void (*on_read)(void);

static ssize_t read_image(void *arg, void *buf, size_t len, uint64_t at)
{
	(void)arg;
	if (at >= im.n)
		return 0;
	len = len < im.n - at ? len : im.n - at;
	memcpy(buf, im.b + at, len);
	nread++;
	if (on_read)
		on_read();
	return (ssize_t)len;
}

static int try(bool live)
{
	struct lnx_source src = { .read = read_image, .size = im.n, .live = live };

	lnx_snap_free(snap);
	snap = NULL;
	nread = 0;
	return lnx_snap_read(&src, &snap, why, sizeof(why));
}

static void good(void)
{
	cr_assert_eq(try(false), 0, "%s", why);
	cr_assert_eq(snap->nep, 1u);
}

static void begin(void)
{
	image_build(&im);
}

static void end(void)
{
	lnx_snap_free(snap);
}

TestSuite(reader, .init = begin, .fini = end);

Test(reader, everything)
{
	const struct lnx_snap_ep *e;

	good();
	e = snap->ep;
	cr_expect_eq(snap->h.pid, 4711u);
	cr_expect_str_eq(snap->h.program, "a program");
	cr_expect_eq(snap->torn, 0u);
	cr_assert_eq(snap->ncounter, IMAGE_COUNTERS);
	cr_expect_eq(e->ep.eid, IMAGE_EID);
	cr_expect_str_eq(e->ep.link, "shm+tcp:eth0,eth1");
	cr_expect_eq(e->now.value[1], 200u);
	cr_expect_eq(lnx_snap_value(snap, e, "recv_count"), 180u);
	cr_expect_eq(lnx_snap_value(snap, e, "no_such"), 0u);
	cr_expect_eq(lnx_snap_class(snap, "remote_error"), 1);
	cr_expect_eq(lnx_snap_class(snap, "remote"), -1);
	cr_expect_str_eq(lnx_snap_param(e, "window")->value, "512");
	cr_expect_null(lnx_snap_param(e, "windo"));
	cr_assert_eq(e->nrail, 2u);
	cr_expect_str_eq(e->rail[1].nid, "10.0.1.1@tcp");
	/* A directory of hundreds of entries is read as a whole. */
	cr_expect_lt(nread, 100u, "%u", nread);
	/* By number in the address vector. */
	cr_assert_eq(e->npeer, 2u);
	cr_expect_eq(e->peer[0].p.eid, 20u);
	cr_assert_eq(e->peer[0].npath, 2u);
	cr_expect_eq(e->peer[0].path[1]->index, 1u);
	cr_assert_eq(e->peer[1].npath, 1u);
	cr_expect_str_eq(e->peer[1].path[0]->nid, "10.0.2.2:4711@tcp");
}

Test(reader, refused)
{
	image_header(&im)->version = LNX_STATE_VERSION + 1;
	cr_assert_eq(try(false), -EPROTONOSUPPORT);
	cr_expect(strstr(why, "version 2") && strstr(why, "version 1"), "%s", why);
	image_build(&im);
	image_header(&im)->byte_order = 0x04030201;
	cr_assert_eq(try(false), -EINVAL);
	cr_expect(strstr(why, "byte order"), "%s", why);
	image_build(&im);
	im.b[0] = 'X';
	cr_assert_eq(try(false), -EINVAL);
	cr_expect(strstr(why, "no state segment"), "%s", why);
	image_build(&im);
	im.n = sizeof(struct lnx_state_header) - 1;
	cr_assert_eq(try(false), -EINVAL);
	cr_expect(strstr(why, "too short"), "%s", why);
}

/* Wherever it ends, there is a snapshot or a reason. */
Test(reader, cut)
{
	size_t n = im.n, cut;
	unsigned full = 0;

	for (cut = 0; cut <= n; cut += 8) {
		im.n = cut;
		if (!try(false))
			full += snap->nep;
		else
			cr_assert(strlen(why) > 10);
	}
	cr_expect(full > 0 && full < n / 8);
}

/* Records of a release that had fewer members, and of one that has more. */
Test(reader, sizes)
{
	struct lnx_state_table *t = image_table(&im, IMAGE_RAIL);
	uint8_t old[2][64];

	memcpy(old[0], image_record(&im, IMAGE_RAIL, 0), 64);
	memcpy(old[1], image_record(&im, IMAGE_RAIL, 1), 64);
	memset(image_record(&im, IMAGE_RAIL, 0), 0xff, 2 * sizeof(struct lnx_state_rail));
	memcpy(im.b + t->offset, old, sizeof(old));
	t->record_size = 64;
	good();
	cr_assert_eq(snap->ep->nrail, 2u);
	cr_expect_str_eq(snap->ep->rail[1].name, "tcp:eth1");
	cr_expect_str_eq(snap->ep->rail[1].nid, "");
	cr_expect_eq(snap->ep->rail[1].traffic.send_count, 0u);

	image_build(&im);
	t = image_table(&im, IMAGE_PARAM);
	t->record_size = 2 * sizeof(struct lnx_state_param);
	t->count = t->capacity = 1;
	good();
	cr_assert_eq(snap->ep->nparam, 1u);
	cr_expect_str_eq(snap->ep->param[0].name, "window");
}

/* Kinds that are not known are skipped, and so are tables of other endpoints. */
Test(reader, unknown_kinds)
{
	image_table(&im, 10)->kind = 77;
	image_table(&im, 10)->owner = 7;
	image_table(&im, 10)->seq = 4;
	image_table(&im, IMAGE_RAIL)->owner = 8;
	good();
	cr_expect_eq(snap->ep->nrail, 0u);
}

/* Those of one list, although another one takes its place. */
Test(reader, rules)
{
	struct lnx_state_rule *r = image_record(&im, IMAGE_RULE, 0);

	r[0].src[3] = '\x1b';
	good();
	cr_expect(snap->ep->rules);
	cr_assert_eq(snap->ep->nrule, 2u);
	cr_expect_str_eq(snap->ep->rule[0].src, "tcp?");
	cr_expect_eq(snap->ep->rule[1].id, 11u);
	cr_expect_eq(snap->torn, 0u);
	/* It died while it wrote the list anew. */
	r[0].rec.walk = 4;
	good();
	cr_assert_eq(snap->ep->nrule, 1u);
	cr_expect_eq(snap->ep->rule[0].id, 11u);
	cr_expect_eq(snap->torn, 1u);
	image_table(&im, IMAGE_RULE)->count = 0;
	good();
	cr_expect(snap->ep->rules && !snap->ep->nrule);
	/* A release that publishes none. */
	image_table(&im, IMAGE_RULE)->kind = LNX_STATE_FREE;
	good();
	cr_expect(!snap->ep->rules && !snap->ep->nrule);
}

/* What follows the header of an older release is not the name of a file. */
Test(reader, older_header)
{
	strcpy(image_header(&im)->module, "/lib/liblnx-fi.so");
	good();
	cr_expect_str_eq(snap->h.module, "/lib/liblnx-fi.so");
	image_header(&im)->mailbox = (uint32_t)offsetof(struct lnx_state_header, module);
	good();
	cr_expect_str_eq(snap->h.module, "");
}

Test(reader, texts)
{
	struct lnx_state_rail *r = image_record(&im, IMAGE_RAIL, 0);

	memset(r->name, 'x', sizeof(r->name));
	r->nid[2] = '\x1b';
	r->nid[3] = '\xff';
	good();
	cr_expect_eq(strlen(snap->ep->rail[0].name), sizeof(r->name) - 1);
	cr_expect(!strncmp(snap->ep->rail[0].nid, "10??", 4), "%s",
		  snap->ep->rail[0].nid);
}

/* ---- records that are being written ---- */

/* A process that died while it wrote. */
Test(reader, torn)
{
	struct lnx_state_rail *r = image_record(&im, IMAGE_RAIL, 1);

	r->rec.seq = 5;
	good();
	cr_expect_eq(snap->torn, 1u);
	cr_expect_str_eq(snap->ep->rail[1].name, "tcp:eth1");
	cr_expect_eq(snap->ep->nrail, 2u);
}

/* Each time that anything is read a writer goes on with one record. */
static void writer(void)
{
	struct lnx_state_counters *c = image_record(&im, IMAGE_NOW, 0);
	static unsigned step;

	switch (step++ % 11) {
	case 0:
		c->rec.seq++;
		break;
	case 1:
		c->value[0]++;
		break;
	case 2:
		c->value[1]++;
		c->value[2]++;
		break;
	case 3:
		c->rec.seq++;
		break;
	default:
		break;			/* it rests */
	}
}

/* A record that is read is one that was there. */
Test(reader, live)
{
	unsigned i, whole = 0;

	on_read = writer;
	for (i = 0; i < 200; i++) {
		const struct lnx_snap_counters *c;

		cr_assert_eq(try(true), 0);
		c = &snap->ep->now;
		if (snap->torn)
			continue;
		whole++;
		cr_assert_eq(c->value[1] - 200, c->value[0] - 100, "%u", i);
		cr_assert_eq(c->value[2] - 300, c->value[0] - 100, "%u", i);
	}
	on_read = NULL;
	cr_expect(whole > 0);
}

/* It is always being written: there is an end to waiting for it. */
static void never_rests(void)
{
	((struct lnx_state_counters *)image_record(&im, IMAGE_NOW, 0))->rec.seq += 2;
}

Test(reader, never_whole)
{
	on_read = never_rests;
	cr_assert_eq(try(true), 0);
	on_read = NULL;
	cr_expect_eq(snap->torn, 1u);
	cr_expect(nread > 100 && nread < 2000, "%u", nread);
}

static bool moved;

/* The table of peers moves while it is read. */
static void mover(void)
{
	struct lnx_state_table *t = image_table(&im, IMAGE_PEER);

	if (moved || nread < 60)
		return;
	moved = true;
	t->seq += 2;
	memcpy(im.b + im.n - 2 * t->record_size, im.b + t->offset, 2 * t->record_size);
	memset(im.b + t->offset, 0, 2 * t->record_size);
	t->offset = im.n - 2 * t->record_size;
}

Test(reader, moving)
{
	unsigned at;

	im.n += 512;
	/* Whenever it happens. */
	for (at = 20; at < 200; at++) {
		size_t n = im.n;

		image_build(&im);
		im.n = n;
		moved = false;
		on_read = at % 2 ? mover : NULL;
		cr_assert_eq(try(true), 0);
		cr_assert_eq(snap->ep->npeer, 2u, "%u", at);
		cr_assert_eq(snap->ep->peer[0].p.eid, 20u);
	}
	on_read = NULL;
}

/* ---- walks ---- */

/* A walk that is under way has written a peer to another place: the newest counts. */
Test(reader, twice)
{
	struct lnx_state_peer *p = image_record(&im, IMAGE_PEER, 0);
	struct lnx_state_path *path = image_record(&im, IMAGE_PATH, 0);

	p[1].eid = 20;
	p[1].addr = 0;
	p[1].rec.walk = 2;
	p[1].queued = 99;
	p[1].npath = 2;
	path[2].eid = 20;
	path[2].index = 1;
	path[2].rec.walk = 2;
	path[2].share = 77;
	good();
	cr_assert_eq(snap->ep->npeer, 1u);
	cr_expect_eq(snap->ep->peer[0].p.queued, 99u);
	cr_assert_eq(snap->ep->peer[0].npath, 2u);
	cr_expect_eq(snap->ep->peer[0].path[1]->share, 77u);
	cr_expect_eq(snap->ep->peer[0].path[0]->share, 0u);
	/* Numbers of walks wrap. */
	p[0].rec.walk = 3;
	p[1].rec.walk = UINT32_MAX;
	good();
	cr_expect_eq(snap->ep->peer[0].p.queued, 0u);
}

Test(reader, more_than_shown)
{
	image_table(&im, IMAGE_PEER)->total = 5000;
	image_table(&im, IMAGE_PEER)->walk_ns = 17;
	good();
	cr_expect_eq(snap->ep->npeer_total, 5000u);
	cr_expect_eq(snap->ep->walk_ns, 17u);
}

/* ---- sizes and places that cannot be right ---- */

Test(reader, hostile)
{
	static const uint64_t bad[] = { 0, 1, 7, 65537, 1u << 20, UINT32_MAX, UINT64_MAX,
					UINT64_MAX - 100, INT64_MAX };
	unsigned t, i, m;

	for (t = 0; t < IMAGE_TABLES; t++)
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			for (m = 0; m < 5; m++) {
				struct lnx_state_table *e;

				image_build(&im);
				e = image_table(&im, t);
				switch (m) {
				case 0: e->record_size = (uint32_t)bad[i]; break;
				case 1: e->count = (uint32_t)bad[i]; break;
				case 2: e->count = e->capacity = (uint32_t)bad[i]; break;
				case 3: e->offset = bad[i]; break;
				default: e->seq = (uint32_t)bad[i];
				}
				cr_assert_eq(try(false), 0);
				cr_assert(snap->nep <= 1);
			}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		image_build(&im);
		image_header(&im)->tables = (uint32_t)bad[i];
		try(false);
		image_build(&im);
		image_header(&im)->ntable = (uint32_t)bad[i];
		try(false);
		image_build(&im);
		image_header(&im)->table_size = (uint32_t)bad[i];
		try(false);
	}
}
