/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state segment of an endpoint on a scripted core: what readers find in it and when,
 * requests through its mailbox, and whose file it is.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/stats.h"
#include "core/policy.h"
#include "ctl/ctl.h"
#include "ctl/request.h"
#include "ctl/state.h"
#include "ctl/stats_file.h"
#include "fake_core.h"
#include "lnxctl/find.h"
#include "lnx_policy.h"

#define PASSES	4u			/* after so many a reader has been seen */

static struct fake f;
static struct fake_peer p;
static char a;				/* a context */
static char root[64];
static struct lnx_procs procs;
static char text[4096];

/* ---- directory and reader ---- */

static void use_root(void)
{
	strcpy(root, "/tmp/lnx-ctl-XXXXXX");
	cr_assert(mkdtemp(root));
	lnx_state_root = root;
	fake_conf.state = true;
}

static void drop_root(void)
{
	char command[200];

	lnx_procs_free(&procs);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	cr_assert_eq(system(command), 0);
}

static void open_kind(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
}

static unsigned find_files(void)
{
	char why[200];

	lnx_procs_free(&procs);
	cr_assert_eq(lnx_procs_find(root, false, 0, &procs, why, sizeof(why)), 0, "%s",
		     why);
	return procs.n;
}

/* The snapshot of the only process. */
static struct lnx_snap *look(void)
{
	cr_assert_eq(find_files(), 1u);
	cr_assert_eq(lnx_proc_open(&procs.proc[0]), 0, "%s", procs.proc[0].why);
	cr_assert_eq(lnx_proc_read(&procs.proc[0]), 0, "%s", procs.proc[0].why);
	return procs.proc[0].snap;
}

static const struct lnx_snap_ep *look_ep(void)
{
	struct lnx_snap *s = look();

	cr_assert_eq(s->nep, 1u);
	return s->ep;
}

static uint64_t value_of(const char *counter)
{
	const struct lnx_snap *s = look();

	return lnx_snap_value(s, s->ep, counter);
}

/* A reader is here: what it sees then. */
static const struct lnx_snap_ep *wake_and_look(void)
{
	look();
	cr_assert(lnx_proc_wake(&procs.proc[0]));
	fake_passes(&f, PASSES);
	cr_assert_eq(lnx_proc_read(&procs.proc[0]), 0);
	return procs.proc[0].snap->ep;
}

static void send1(void)
{
	cr_assert_eq(fi_tsend(f.ep, "hello", 5, NULL, p.addr, 1, &a), 0);
}

static void introduce(void)
{
	send1();
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_pass(&f);
}

TestSuite(ctl, .init = use_root, .fini = drop_root);

/* ---- what is published ---- */

Test(ctl, appears_and_goes)
{
	const struct lnx_snap_ep *e;
	struct stat st;

	cr_expect_eq(find_files(), 0u);
	open_kind(LNX_RAIL_PLAIN);
	e = look_ep();
	cr_assert_eq(stat(procs.proc[0].path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600u);
	cr_expect_eq(procs.proc[0].file.pid, getpid());
	cr_expect_eq(procs.proc[0].snap->h.pid, (uint32_t)getpid());
	cr_expect_eq(procs.proc[0].life, LNX_PROC_LIVES);
	cr_expect_eq(e->ep.eid, f.lnx->eid);
	cr_expect_str_eq(e->ep.link, "fake");
	cr_expect(strstr(e->ep.address, "lnx://"), "%s", e->ep.address);
	cr_assert_eq(e->nrail, 1u);
	cr_expect_str_eq(e->rail[0].name, "plain:fake");
	cr_expect_str_eq(e->rail[0].net, "tcp");
	cr_expect_str_eq(e->rail[0].interface, "fake");
	cr_expect_str_eq(e->rail[0].nid, "127.0.0.1@tcp");
	cr_expect_eq(e->rail[0].health.value, 1000u);
	cr_expect_eq(e->nparam, lnx_nparams);
	cr_expect_str_eq(lnx_snap_param(e, "window")->value, "512");
	fake_close(&f);
	cr_expect_eq(find_files(), 0u);
	/* The directory was empty. */
	cr_expect_eq(rmdir(root), 0);
	mkdir(root, 0700);
}

Test(ctl, without)
{
	fake_conf.state = false;
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 0u);
	cr_expect_not(view_published(f.lnx));
	introduce();
	fake_close(&f);
}

static void same_counters(const struct lnx_snap_ep *e)
{
	unsigned i;

	for (i = 0; i < lnx_nstats; i++)
		cr_expect_eq(e->now.value[i],
			     *(const uint64_t *)((const char *)&f.lnx->stats +
						 lnx_stat_rows[i].offset),
			     "%s", lnx_stat_rows[i].name);
}

/* Counters are there some 100 ms after they were counted, without a reader. */
Test(ctl, counters)
{
	const struct lnx_snap_ep *e;
	unsigned i;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	for (i = 0; i < 9; i++) {
		send1();
		fake_drop_all(&f, &p);
		fake_comp(&f, &a);
		fake_ack(&f, &p);
	}
	cr_assert_eq(f.lnx->stats.send_count, 10u);
	/* Not yet: it costs nothing before. */
	fake_passes(&f, PASSES);
	cr_expect_eq(value_of("send_count"), 0u);
	fake_after_ms(&f, 110);
	fake_passes(&f, 4 * PASSES);
	e = look_ep();
	cr_expect_eq(lnx_snap_value(procs.proc[0].snap, e, "send_count"), 10u);
	cr_expect_eq(lnx_snap_value(procs.proc[0].snap, e, "send_length"), 50u);
	same_counters(e);
	cr_expect_eq(e->rail[0].traffic.send_count, 10u);
	fake_close(&f);
}

/* At once, if a reader asks for it. */
Test(ctl, reader)
{
	const struct lnx_snap_ep *e;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	e = wake_and_look();
	same_counters(e);
	cr_expect(lnx_proc_fresh(&procs.proc[0], false));
	cr_assert_eq(e->npeer, 1u);
	cr_expect_eq(e->peer[0].p.eid, 0x1111u);
	cr_expect_eq(e->peer[0].p.addr, p.addr);
	cr_expect(e->peer[0].p.flags & LNX_STATE_PEER_MET);
	cr_assert_eq(e->peer[0].npath, 1u);
	cr_expect_eq(e->peer[0].path[0]->state, LNX_STATE_PATH_UP);
	cr_expect(e->peer[0].path[0]->flags & LNX_STATE_PATH_CURRENT);
	cr_expect_eq(e->peer[0].path[0]->health.value, 1000u);
	cr_expect_eq(strncmp(e->peer[0].path[0]->nid, "127.0.0.1:", 10), 0, "%s",
		     e->peer[0].path[0]->nid);
	cr_expect_eq(e->peer[0].path[0]->sent_bytes,
		     view_sent(view_path(lnx_peer_get(f.lnx, p.addr), 0)));
	cr_expect(lnx_proc_fresh(&procs.proc[0], true));
	fake_close(&f);
}

static void add_rules(const char *list)
{
	struct lnx_refusal r = { .text = list };

	lnx_lock(&f.lnx->lock);
	cr_assert_eq(lnx_rules_add_text(lnx_policy_rules(f.lnx), list, &r), 0, "%s", r.why);
	lnx_unlock(&f.lnx->lock);
}

/* Rules with their ids, what they apply to, and other ones; more than there was room for. */
Test(ctl, rules)
{
	const struct lnx_snap_ep *e;
	char one[64];
	unsigned i;

	open_kind(LNX_RAIL_PLAIN);
	e = wake_and_look();
	cr_expect(e->rules && !e->nrule);
	add_rules("src: tcp; dst: 10.0.0.*@tcp, priority: 3");
	e = wake_and_look();
	cr_assert_eq(e->nrule, 2u);
	cr_expect_str_eq(e->rule[0].src, "tcp");
	cr_expect_eq(e->rule[0].type, LNX_POLICY_NET);
	cr_expect_eq(e->rule[0].rails, 1u);
	cr_expect_eq(e->rule[0].state, LNX_POLICY_IN_USE);
	cr_expect_str_eq(e->rule[1].dst, "10.0.0.*@tcp");
	cr_expect_eq(e->rule[1].id, 2u);
	cr_expect_eq(e->rule[1].index, 1u);
	cr_expect_eq(e->rule[1].priority, 3u);
	cr_expect_eq(e->rule[1].state, LNX_POLICY_WAITING);
	for (i = 0; i < 70; i++) {
		snprintf(one, sizeof(one), "dst: 10.1.%u.*@tcp, idx: 0", i);
		add_rules(one);
	}
	e = wake_and_look();
	cr_assert_eq(e->nrule, 72u);
	for (i = 0; i < e->nrule; i++)
		cr_expect_eq(e->rule[i].index, i);
	cr_expect_str_eq(e->rule[0].dst, "10.1.69.*@tcp");
	cr_expect_str_eq(e->rule[70].src, "tcp");
	cr_expect_eq(procs.proc[0].snap->torn, 0u);
	fake_close(&f);
}

/* What was in use between two looks counts, too. */
Test(ctl, msgs_max)
{
	const struct lnx_snap_ep *e;
	unsigned i;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	e = wake_and_look();
	cr_expect_eq(e->ep.msgs_alloc, 0u);
	cr_expect_eq(e->ep.msgs_max, 2u, "HELLO and a message");
	for (i = 0; i < 5; i++)
		send1();
	for (i = 0; i < 5; i++)
		fake_expect_drop(&f, &p, LNX_KIND_TAG);
	for (i = 0; i < 5; i++)
		fake_comp(&f, &a);
	fake_ack(&f, &p);
	e = wake_and_look();
	cr_expect_eq(e->ep.msgs_alloc, 0u);
	cr_expect_eq(e->ep.msgs_max, 5u);
	fake_close(&f);
}

/* A pass without a reader publishes a few peers, and not all of many. */
#define CROWD	300u

/* Records of peers that were written, valid or not. */
static unsigned peers_in_place(void)
{
	const struct lnx_state_table *t = lnx_state_front_of()->table;
	struct lnx_state_peer r;
	unsigned i, n = 0;
	int fd = open(procs.proc[0].path, O_RDONLY);

	while (t->kind != LNX_STATE_PEER)
		t++;
	cr_assert(fd >= 0);
	for (i = 0; i < t->capacity; i++)
		n += pread(fd, &r, sizeof(r), (off_t)(t->offset + i * sizeof(r))) ==
		     (ssize_t)sizeof(r) && r.eid;
	close(fd);
	return n;
}

static void meet_crowd(void)
{
	struct fake_peer q;
	unsigned i;
	int err;

	for (i = 0; i < CROWD; i++) {
		fake_peer_init(&f, &q, 0x2000 + i);
		fake_peer_insert(&f, &q);
		lnx_lock(&f.lnx->lock);
		cr_assert(lnx_peer_make(f.lnx, q.addr, &err));
		lnx_unlock(&f.lnx->lock);
	}
}

Test(ctl, crowd)
{
	const struct lnx_snap_ep *e;
	unsigned i, n, walks;

	open_kind(LNX_RAIL_PLAIN);
	/* The first walk finds none, and is over. */
	fake_passes(&f, 2 * PASSES);
	cr_expect_eq(look_ep()->npeer, 0u);
	meet_crowd();
	fake_passes(&f, 2 * PASSES);
	cr_expect_eq(look_ep()->npeer, 0u, "the next one is not due yet");
	fake_after_ms(&f, 1100);
	for (i = 0; i < 100 && !look_ep()->npeer; i++) {
		/* Some at a time. */
		n = peers_in_place();
		fake_passes(&f, PASSES);
		cr_expect(peers_in_place() - n <= PASSES * 20, "%u, then %u", n,
			  peers_in_place());
	}
	cr_expect(i >= 3, "%u", i);
	e = look_ep();
	cr_expect_eq(e->npeer, 256u);
	cr_expect_eq(e->npeer_total, CROWD);
	/* A reader wants them all. */
	wake_and_look();
	for (i = 0; i < 200 && !lnx_proc_fresh(&procs.proc[0], true); i++) {
		fake_passes(&f, PASSES);
		lnx_proc_read(&procs.proc[0]);
	}
	e = procs.proc[0].snap->ep;
	cr_expect_eq(e->npeer, CROWD);
	cr_expect_eq(e->npeer_total, CROWD);
	for (n = 0, i = 0; i < CROWD; i++)
		n += e->peer[i].p.eid == 0x2000 + i && e->peer[i].npath == 1;
	cr_expect_eq(n, CROWD);
	/* And later, again and again: peers that end are gone. */
	for (walks = 0; walks < 3; walks++) {
		fake_after_ms(&f, 1100);
		fake_passes(&f, 60 * PASSES);
	}
	cr_expect_eq(look_ep()->npeer, CROWD);
	fake_close_quick(&f);
}

Test(ctl, two_endpoints)
{
	struct fake g;
	struct lnx_snap *s;

	open_kind(LNX_RAIL_PLAIN);
	fake_open(&g, NULL);
	s = look();
	cr_assert_eq(s->nep, 2u);
	cr_expect_neq(s->ep[0].ep.number, s->ep[1].ep.number);
	cr_expect_eq(s->ep[0].nrail, 1u);
	fake_close(&f);
	s = look();
	cr_assert_eq(s->nep, 1u);
	cr_expect_eq(s->ep[0].ep.eid, g.lnx->eid);
	cr_expect_eq(s->ep[0].nrail, 1u);
	fake_close(&g);
	cr_expect_eq(find_files(), 0u);
}

/* An endpoint after another: the directory of tables does not fill up. */
Test(ctl, one_by_one)
{
	struct fake g;
	unsigned i;

	open_kind(LNX_RAIL_PLAIN);
	for (i = 0; i < 300; i++) {
		fake_open(&g, NULL);
		fake_close_quick(&g);
	}
	fake_open(&g, NULL);
	cr_expect_eq(look()->nep, 2u);
	fake_close(&g);
	fake_close(&f);
}

/* More than there is room for: those that are too many are not published. */
Test(ctl, many_at_once)
{
	enum { MANY_EPS = 60 };
	static struct fake g[MANY_EPS];
	unsigned i;

	for (i = 0; i < MANY_EPS; i++)
		fake_open(&g[i], NULL);
	i = look()->nep;
	cr_expect(i > 20 && i < MANY_EPS, "%u", i);
	for (i = 0; i < MANY_EPS; i++)
		fake_close_quick(&g[i]);
	cr_expect_eq(find_files(), 0u);
}

/* ---- the mailbox ---- */

static uint32_t post(uint64_t eid, const char *request, uint32_t skip)
{
	struct lnx_state_mailbox *m = &lnx_state_front_of()->mailbox;

	m->eid = eid;
	m->skip = skip;
	m->len = (uint32_t)strlen(request);
	memcpy(m->text, request, m->len + 1);
	m->request++;
	m->look++;
	return m->request;
}

/* Post it, let the endpoint look, and keep the answer. */
static int ask(const char *fmt, ...)
{
	struct lnx_state_mailbox *m = &lnx_state_front_of()->mailbox;
	char request[LNX_STATE_REQUEST];
	uint32_t number;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(request, sizeof(request), fmt, ap);
	va_end(ap);
	number = post(f.lnx->eid, request, 0);
	fake_passes(&f, PASSES);
	cr_assert_eq(m->taken, number, "%s", request);
	cr_assert_eq(m->done, number, "%s", request);
	snprintf(text, sizeof(text), "%.*s", (int)m->part_len, m->reply);
	return m->result;
}

Test(ctl, requests)
{
	struct lnx_state_mailbox *m;
	char direct[4096];
	ssize_t n;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	m = &lnx_state_front_of()->mailbox;
	cr_expect_eq(ask("stats"), 0);
	n = lnx_ctl_request(f.lnx, "stats", direct, sizeof(direct));
	cr_expect_eq(n, (ssize_t)m->reply_len);
	cr_expect_str_eq(text, direct);
	cr_expect_eq(ask("frobnicate"), -EINVAL);
	cr_expect(strstr(text, "\"frobnicate\""), "%s", text);
	/* For another endpoint. */
	n = post(f.lnx->eid + 1, "stats", 0);
	fake_passes(&f, 4 * PASSES);
	cr_expect_neq(m->taken, (uint32_t)n);
	/* Withdrawn before it was seen. */
	n = post(f.lnx->eid, "stats", 0);
	m->cancel = (uint32_t)n;
	fake_passes(&f, 4 * PASSES);
	cr_expect_neq(m->done, (uint32_t)n);
	fake_close(&f);
}

/* More than one part: a reader takes them one by one. */
Test(ctl, long_reply)
{
	struct lnx_state_mailbox *m;
	char rule[2100], *whole;
	uint32_t have = 0;
	unsigned i;

	open_kind(LNX_RAIL_PLAIN);
	m = &lnx_state_front_of()->mailbox;
	strcpy(rule, "fault add drop rail=tcp:x");
	for (i = 0; i < 15; i++)
		sprintf(rule + strlen(rule), ",tcp:%0100u", i);
	for (i = 0; i < 30; i++)
		cr_assert_eq(ask("%s", rule), 0, "%s", text);
	cr_assert_eq(ask("fault list"), 0);
	cr_assert(m->reply_len > 2 * LNX_STATE_REPLY, "%u", m->reply_len);
	cr_assert_eq(m->part_len, LNX_STATE_REPLY);
	whole = calloc(1, m->reply_len + 1);
	while (have < m->reply_len) {
		uint32_t number;

		memcpy(whole + have, m->reply, m->part_len);
		have += m->part_len;
		number = post(f.lnx->eid, "", have);
		fake_passes(&f, PASSES);
		cr_assert_eq(m->done, number);
		cr_assert_eq(m->result, 0);
	}
	cr_expect_eq(m->part_len, 0u);
	cr_expect_eq(strncmp(whole, "fault 1 drop", 12), 0);
	cr_expect(strstr(whole, "fault 30 drop"));
	free(whole);
	/* After a short one there is nothing to go on with. */
	ask("fault del all");
	post(f.lnx->eid, "", 5);
	fake_passes(&f, PASSES);
	cr_expect_eq(m->result, -FI_ENODATA);
	fake_close(&f);
}

/* Any bytes in the words that readers write. */
Test(ctl, hostile_mailbox)
{
	unsigned long seed = getenv("LNX_SEED") ? strtoul(getenv("LNX_SEED"), NULL, 10) :
						  (unsigned long)time(NULL);
	struct lnx_state_mailbox *m;
	static const char *const words[] = {
		"stats", "set", "health", "once", "*@*", "0", "1000", "fault", "add", "drop",
		"ping", "discover", "explain", "0000000000001111", "reset", "spill", ";",
		"force", "list", "18446744073709551615", "health_sensitivity", "auto", "all",
	};
	unsigned i, k;

	fprintf(stderr, "LNX_SEED=%lu\n", seed);
	srand48((long)seed);
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	m = &lnx_state_front_of()->mailbox;
	for (i = 0; i < 4000; i++) {
		m->eid = lrand48() % 8 ? f.lnx->eid : (uint64_t)lrand48();
		m->skip = (uint32_t)mrand48();
		m->len = lrand48() % 4 ? (uint32_t)(lrand48() % 200) :
			 (uint32_t)mrand48();
		if (lrand48() % 2) {
			for (k = 0; k < 200; k++)
				m->text[k] = (char)lrand48();
		} else {
			m->text[0] = '\0';
			for (k = 0; k < 1 + (unsigned)lrand48() % 6; k++)
				sprintf(m->text + strlen(m->text), "%s ",
					words[(size_t)lrand48() %
					      LNX_ARRAY_SIZE(words)]);
		}
		m->request = (uint32_t)lrand48();
		m->cancel = lrand48() % 8 ? 0 : m->request;
		m->look = (uint32_t)lrand48();
		fake_passes(&f, PASSES);
		cr_assert(m->part_len <= sizeof(m->reply));
		cr_assert(m->part_len <= m->reply_len);
		fake_drop_all(&f, &p);
	}
	/* It still works. */
	cr_expect_eq(ask("fault del all"), 0);
	cr_expect_eq(ask("health auto all"), 0, "%s", text);
	cr_expect_eq(ask("stats"), 0);
	fake_close_quick(&f);
}

/* Another process of the user writes anything into the file: what steers this one is not
 * in it. */
static void scribble(int fd, size_t from, size_t to)
{
	uint64_t bytes = lrand48() % 4 ? (uint64_t)mrand48() << 32 | (uint32_t)mrand48() :
			 lrand48() % 2 ? UINT64_MAX : 0;
	size_t at = from + (size_t)lrand48() % (to - from - sizeof(bytes));

	cr_assert_eq(pwrite(fd, &bytes, sizeof(bytes), (off_t)at), (ssize_t)sizeof(bytes));
}

Test(ctl, hostile_file)
{
	unsigned long seed = getenv("LNX_SEED") ? strtoul(getenv("LNX_SEED"), NULL, 10) :
						  (unsigned long)time(NULL);
	const size_t tables = offsetof(struct lnx_state_front, table);
	char path[256];
	unsigned i, k;
	struct stat st;
	int fd;

	fprintf(stderr, "LNX_SEED=%lu\n", seed);
	srand48((long)seed);
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	look();
	snprintf(path, sizeof(path), "%s", procs.proc[0].path);
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0);
	for (i = 0; i < 300; i++) {
		cr_assert_eq(fstat(fd, &st), 0);
		for (k = 0; k < 200; k++)
			scribble(fd, tables, i < 100 ? sizeof(struct lnx_state_front) :
				 (size_t)st.st_size);
		for (k = 0; k < 4; k++)
			scribble(fd, 0, sizeof(struct lnx_state_front));
		/* A reader, and tables that have to grow. */
		lnx_state_front_of()->mailbox.look++;
		if (i == 50)
			meet_crowd();
		fake_after_ms(&f, 110);
		fake_passes(&f, PASSES);
		fake_drop_all(&f, &p);
		lnx_lock(&f.lnx->lock);
		if (i % 16 == 0) {
			struct lnx_out o = { .buf = text, .size = sizeof(text) };

			lnx_ctl_reset(f.lnx, lnx_clock_ns(), &o);
		}
		lnx_unlock(&f.lnx->lock);
	}
	close(fd);
	fake_close_quick(&f);
	cr_expect_neq(access(path, F_OK), 0);
}

/* ---- requests ---- */

Test(ctl, settings)
{
	const struct lnx_conf *shared = &fake_conf;

	open_kind(LNX_RAIL_PLAIN);
	cr_assert_eq(f.lnx->conf, shared);
	cr_expect_eq(ask("set spill 700"), 0, "%s", text);
	cr_expect_eq(f.lnx->conf->spill, 700u);
	cr_expect_neq(f.lnx->conf, shared);
	cr_expect_eq(shared->spill, 500u, "other endpoints keep theirs");
	cr_expect_eq(ask("set FI_LNX_HOLD_DOWN 300"), 0, "%s", text);
	cr_expect_eq(f.lnx->plan.hold_ns, 300 * LNX_NS_PER_MS);
	cr_expect_eq(ask("set recovery_limit 7"), 0, "%s", text);
	cr_expect_eq(f.lnx->plan.limit_ns, 7 * LNX_NS_PER_S);
	cr_expect_eq(ask("set discovery 0"), 0, "%s", text);
	cr_expect_not(f.lnx->conf->discovery);
	cr_expect_eq(ask("set ack_every 9"), 0);
	cr_expect_eq(view_ack_every(f.lnx), 9u);
	cr_expect_eq(ask("set poll_idle 33"), 0);
	cr_expect_eq(view_poll_idle_mask(f.lnx), 63u);
	cr_expect_eq(ask("set health_sensitivity_classes local_error=7, remote_error=9"),
		     0, "%s", text);
	cr_expect_eq(f.lnx->plan.step[LNX_CLASS_LOCAL_ERROR], 7u);
	cr_expect_eq(ask("set health_sensitivity_classes remote_error=11"), 0);
	cr_expect_eq(f.lnx->plan.step[LNX_CLASS_REMOTE_ERROR], 11u);
	/* Refused, and nothing changes. */
	cr_expect_eq(ask("set window 16"), -FI_EBUSY);
	cr_expect(strstr(text, "FI_LNX_WINDOW"), "%s", text);
	cr_expect_eq(ask("set spill 0"), -FI_EINVAL);
	cr_expect(strstr(text, "from 1 to"), "%s", text);
	cr_expect_eq(ask("set spil 5"), -FI_EINVAL);
	cr_expect(strstr(text, "nearest one is spill"), "%s", text);
	cr_expect_eq(ask("set job_key 1234567812345678"), -FI_EBUSY);
	cr_expect_eq(ask("set transaction_timeout 1000"), 0, "%s", text);
	cr_expect_eq(ask("set retry_count 50"), -FI_EINVAL);
	cr_expect(strstr(text, "RAIL_TIMEOUT_MIN") && strstr(text, "RETRY_COUNT=50") &&
		  strstr(text, "1000 ms"), "both values: %s", text);
	cr_expect_eq(f.lnx->conf->retry_count, 2u);
	cr_expect_eq(ask("set health_sensitivity_classes remote_eror=11"), -FI_EINVAL);
	cr_expect_eq(f.lnx->plan.step[LNX_CLASS_REMOTE_ERROR], 11u);
	cr_expect_eq(ask("set health_sensitivity_classes none"), 0, "%s", text);
	cr_expect_eq(f.lnx->plan.step[LNX_CLASS_REMOTE_ERROR], 100u);
	fake_close(&f);
}

/* It says what was set, and by which means. */
Test(ctl, settings_are_shown)
{
	const struct lnx_snap_ep *e;

	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(lnx_snap_param(look_ep(), "spill")->origin, LNX_STATE_DEFAULT);
	ask("set spill 700");
	e = wake_and_look();
	cr_expect_str_eq(lnx_snap_param(e, "spill")->value, "700");
	cr_expect_eq(lnx_snap_param(e, "spill")->origin, LNX_STATE_SET);
	cr_expect(lnx_snap_param(e, "spill")->flags & LNX_STATE_PARAM_LIVE);
	cr_expect(!(lnx_snap_param(e, "window")->flags & LNX_STATE_PARAM_LIVE));
	/* Again, which is no new parameter. */
	ask("set spill 800");
	cr_expect_str_eq(lnx_snap_param(wake_and_look(), "spill")->value, "800");
	fake_close(&f);
}

Test(ctl, secret)
{
	const struct lnx_state_param *key;

	fake_conf.job_key = NULL;
	open_kind(LNX_RAIL_PLAIN);
	fake_conf.job_key = "not to be seen by others";
	/* Published again, with all others. */
	force_settings_changed(f.lnx);
	key = lnx_snap_param(wake_and_look(), "job_key");
	cr_expect(key->flags & LNX_STATE_PARAM_SECRET);
	cr_expect_str_eq(key->value, "");
	cr_expect_eq(ask("export all"), 0, "%s", text);
	cr_expect(!strstr(text, "not to be seen") && !strstr(text, "job_key"), "%s", text);
	fake_conf.job_key = NULL;
	fake_close(&f);
}

/* What cannot be set at any time is there if it is not as by default; "all": anyway. */
Test(ctl, export)
{
	const char *links = fake_conf.prov_links;

	fake_conf.prov_links = "tcp:\xc3\xa4";
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(ask("set spill 700"), 0, "%s", text);
	cr_expect_eq(ask("set numa_range 3"), 0, "%s", text);
	cr_expect_eq(ask("export"), 0, "%s", text);
	cr_expect(strstr(text, "numa:\n    range: 3\n"), "%s", text);
	cr_expect(strstr(text, "\n    spill: 700\n"), "%s", text);
	cr_expect(strstr(text, "\n    hold_down: "), "%s", text);
	cr_expect(!strstr(text, " state: "), "%s", text);
	cr_expect(strstr(text, "\nudsp: []\n"), "%s", text);
	/* A file has no empty value, and an import has to unset it again. */
	cr_expect(strstr(text, "\n    health_sensitivity_classes: none\n"), "%s", text);
	cr_expect(strstr(text, "\n# prov_links: "), "%s", text);
	cr_expect_eq(ask("export all"), 0, "%s", text);
	cr_expect(strstr(text, " state: ") && strstr(text, " window: "), "%s", text);
	fake_conf.prov_links = links;
	fake_close(&f);
}

Test(ctl, stats_reset)
{
	const struct lnx_snap_ep *e;
	struct lnx_snap *s;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	cr_assert_eq(ask("stats reset"), 0, "%s", text);
	send1();
	fake_drop_all(&f, &p);
	fake_comp(&f, &a);
	e = wake_and_look();
	s = procs.proc[0].snap;
	cr_expect_eq(lnx_snap_value(s, e, "send_count"), 1u);
	/* The endpoint's own go on. */
	cr_expect_eq(e->now.value[lnx_snap_counter(s, "send_count")], 2u);
	cr_expect_eq(e->rail[0].traffic.send_count - e->rail[0].base.send_count, 1u);
	cr_expect(e->base.when_ns);
	fake_close(&f);
}

static struct lnx_health *rail_health(void)
{
	return &f.lnx->rail[0]->health;
}

Test(ctl, health_once)
{
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	cr_expect_eq(ask("health once plain:fake 400"), 0, "%s", text);
	cr_expect_eq(rail_health()->value, 400u);
	cr_expect(!rail_health()->pinned);
	/* Signs of life raise it. */
	lnx_health_good(rail_health(), &f.lnx->plan, fake_now_ns);
	cr_expect_eq(rail_health()->value, 500u);
	cr_expect_eq(ask("health set plain:fake 400"), 0, "%s", text);
	cr_expect(rail_health()->pinned);
	lnx_health_good(rail_health(), &f.lnx->plan, fake_now_ns);
	cr_expect_eq(rail_health()->value, 400u);
	cr_expect_eq(ask("health auto plain:fake"), 0, "%s", text);
	cr_expect_eq(rail_health()->value, 1000u);
	cr_expect_eq(ask("health once plain:nowhere 400"), -FI_EINVAL);
	fake_close(&f);
}

Test(ctl, fault_reset)
{
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	cr_assert_eq(ask("fault add fail=local_error count=1"), 0, "%s", text);
	send1();
	fake_after_ms(&f, 60);
	fake_drop_all(&f, &p);
	cr_assert_eq(ask("fault show"), 0);
	cr_expect(strstr(text, "hit 1"), "%s", text);
	cr_assert_eq(ask("fault reset"), 0);
	cr_assert_eq(ask("fault show"), 0);
	cr_expect(strstr(text, "matched 0, hit 0"), "%s", text);
	fake_close_quick(&f);
}

/* ---- ping, discover, explain ---- */

/* How often the answer has that. */
static unsigned count(const char *what)
{
	const char *at = text;
	unsigned n = 0;

	while ((at = strstr(at, what))) {
		at += strlen(what);
		n++;
	}
	return n;
}

Test(ctl, ping)
{
	struct lnx_state_mailbox *m;
	uint32_t number;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	m = &lnx_state_front_of()->mailbox;
	number = post(f.lnx->eid, "ping 0000000000001111 1000", 0);
	fake_passes(&f, PASSES);
	cr_assert_eq(m->taken, number);
	cr_expect_neq(m->done, number, "it waits for the peer");
	cr_assert_eq(f.core[0]->nlatency, 1u);
	cr_expect(f.core[0]->latency.data & LNX_WIRE_PROBE_PING);
	fake_now_ns += 3 * LNX_NS_PER_MS;
	fake_answer(&f, &p);
	fake_passes(&f, 2 * PASSES);
	cr_assert_eq(m->done, number);
	cr_expect_eq(m->result, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m->part_len, m->reply);
	cr_expect(strstr(text, "peer 0000000000001111\npath 0 rail plain:fake to 0 nid"),
		  "%s", text);
	cr_expect(strstr(text, " rtt_us 3"), "%s", text);
	/* An answer that comes later is of no interest. */
	fake_answer(&f, &p);
	fake_passes(&f, PASSES);
	fake_close(&f);
}

Test(ctl, ping_without_answer)
{
	struct lnx_state_mailbox *m;
	uint32_t number;

	open_kind(LNX_RAIL_PLAIN);
	introduce();
	m = &lnx_state_front_of()->mailbox;
	number = post(f.lnx->eid, "ping 0000000000001111 20", 0);
	fake_passes(&f, PASSES);
	cr_expect_neq(m->done, number);
	fake_after_ms(&f, 30);
	fake_passes(&f, 2 * PASSES);
	cr_assert_eq(m->done, number);
	cr_expect_eq(m->result, -FI_ETIMEDOUT);
	/* One sentence, which lnxctl shows as it is. */
	cr_expect(strstr(m->reply, "peer 0000000000001111 answers over no path: plain:fake to ") ==
		  m->reply && strstr(m->reply, "@tcp: no answer in time") &&
		  !strchr(m->reply, '\n'), "%s", m->reply);
	/* One that is given up by its reader. */
	number = post(f.lnx->eid, "ping 0000000000001111 1000", 0);
	fake_passes(&f, PASSES);
	cr_assert_eq(m->taken, number);
	m->cancel = number;
	fake_passes(&f, 2 * PASSES);
	cr_expect_not(view_asked_ping(f.lnx));
	fake_answer(&f, &p);
	fake_passes(&f, 2 * PASSES);
	cr_expect_neq(m->done, number);
	/* And one that is under way when the endpoint is closed. */
	post(f.lnx->eid, "ping 0000000000001111 1000", 0);
	fake_passes(&f, PASSES);
	cr_expect(view_asked_ping(f.lnx));
	fake_close(&f);
}

/* A peer that is only in the address vector is met first. */
Test(ctl, ping_of_an_unknown_peer)
{
	struct lnx_state_mailbox *m;
	uint32_t number;

	open_kind(LNX_RAIL_PLAIN);
	m = &lnx_state_front_of()->mailbox;
	number = post(f.lnx->eid, "ping 0 1000", 0);
	fake_passes(&f, PASSES);
	cr_assert_eq(m->taken, number);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	cr_expect_eq(f.core[0]->nlatency, 0u, "it would not know us");
	fake_ack(&f, &p);
	fake_passes(&f, 2 * PASSES);
	cr_assert_eq(f.core[0]->nlatency, 1u);
	fake_answer(&f, &p);
	fake_passes(&f, 2 * PASSES);
	cr_assert_eq(m->done, number);
	cr_expect_eq(m->result, 0, "%s", m->reply);
	cr_expect_eq(ask("ping 77"), -FI_EINVAL);
	cr_expect(strstr(text, "no such peer"), "%s", text);
	fake_close(&f);
}

Test(ctl, discover)
{
	struct lnx_state_mailbox *m;
	uint32_t number;

	open_kind(LNX_RAIL_PLAIN);
	fake_meet(&f, &p);
	m = &lnx_state_front_of()->mailbox;
	cr_expect_eq(ask("discover 0"), 0, "%s", text);
	cr_expect(strstr(text, "peer 0000000000001111\nremote 0 nid 127.0.0.1:"), "%s",
		  text);
	number = post(f.lnx->eid, "discover 0 force", 0);
	fake_passes(&f, PASSES);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	cr_expect_neq(m->done, number);
	fake_ack(&f, &p);
	fake_passes(&f, 2 * PASSES);
	cr_assert_eq(m->done, number);
	cr_expect_eq(m->result, 0, "%s", m->reply);
	fake_close(&f);
}

Test(ctl, explain)
{
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	cr_assert_eq(ask("explain 0"), 0, "%s", text);
	cr_expect(strstr(text, "peer 0000000000001111 addr 0\nway framed\nbecause "), "%s",
		  text);
	cr_expect(strstr(text, "path 0 rail plain:fake to 0 nid 127.0.0.1:"), "%s", text);
	cr_expect(strstr(text, "use frames state up"), "%s", text);
	cr_expect(strstr(text, "because the only path\n"), "%s", text);
	cr_expect(!strstr(text, "form "), "%s", text);
	cr_assert_eq(ask("explain 0 0"), 0);
	cr_expect(strstr(text, "\nsize 0\nform one frame with a copy"), "%s", text);
	cr_assert_eq(ask("explain 0 100"), 0);
	cr_expect(strstr(text, "form one frame with a copy"), "%s", text);
	cr_assert_eq(ask("explain 0 100000"), 0);
	cr_expect(strstr(text, "form frames"), "%s", text);
	cr_assert_eq(ask("explain 0 1000000"), 0);
	cr_expect(strstr(text, "form announced"), "%s", text);
	f.lnx->rail[0]->link_down = true;
	cr_assert_eq(ask("explain 0"), 0);
	cr_expect(strstr(text, "use no state"), "%s", text);
	cr_expect(strstr(text, "link of the local rail is down"), "%s", text);
	f.lnx->rail[0]->link_down = false;
	cr_expect_eq(ask("explain 5"), -FI_EINVAL);
	fake_close(&f);
}

/* Several paths: one has the frames, and each other one a reason. */
Test(ctl, explain_paths)
{
	struct fake_opt opt = {
		.nrail = 3,
		.kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN, LNX_RAIL_PLAIN },
	};
	struct lnx_peer *peer;

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	peer = lnx_peer_get(f.lnx, p.addr);
	cr_assert(peer);
	cr_assert_eq(view_npath(peer), 3u);
	cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
	cr_expect_eq(count("use frames"), 1u, "%s", text);
	cr_expect_eq(count("use spill"), 2u, "%s", text);
	cr_expect_eq(count("as good as path 0"), 2u, "%s", text);
	cr_expect_eq(count("takes those for which path 0 has no room"), 2u, "%s", text);
	/* Each pair of rails that is no path. */
	cr_expect_eq(count("pair plain:fake to"), 6u, "%s", text);
	cr_expect_eq(count("both rails have other paths"), 6u, "%s", text);
	cr_assert_eq(ask("explain 0 1000000"), 0);
	cr_expect_eq(count("use pieces"), 2u, "%s", text);
	cr_expect(strstr(text, "up to 3 paths at once"), "%s", text);
	/* What keeps a path from being used. */
	f.lnx->rail[1]->link_down = true;
	lnx_health_set(view_path_health(view_path(peer, 2)), &f.lnx->plan, 500,
		       fake_now_ns);
	view_path_health(view_path(peer, 2))->ready_ns = 1;
	cr_assert_eq(ask("explain 0 16"), 0);
	cr_expect_eq(count("because the link of the local rail is down"), 1u, "%s", text);
	cr_expect_eq(count("because its health leaves it 500 of 1000, path 0 has 1000; takes"),
		     1u, "%s", text);
	cr_expect_eq(count("use spill"), 1u, "%s", text);
	f.lnx->rail[1]->link_down = false;
	lnx_lock(&f.lnx->lock);
	lnx_path_happens(view_path(peer, 1), LNX_PATH_LOST);
	lnx_unlock(&f.lnx->lock);
	cr_assert_eq(ask("explain 0 16"), 0);
	cr_expect(strstr(text, "state down"), "%s", text);
	cr_expect_eq(count("because it delivered nothing while others did"), 1u, "%s",
		     text);
	fake_close_quick(&f);
}

/* What was set is in the very next answer, and not after a look that comes some time. */
Test(ctl, explain_knows_at_once)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN } };
	struct lnx_peer *peer;
	unsigned once;

	for (once = 0; once < 2; once++) {
		fake_conf.multi_rail_selection = LNX_SELECTION_LNET;
		fake_open(&f, &opt);
		fake_peer_init(&f, &p, 0x1111);
		fake_peer_insert(&f, &p);
		fake_meet(&f, &p);
		peer = lnx_peer_get(f.lnx, p.addr);
		cr_assert_eq(view_npath(peer), 2u);
		cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
		cr_expect_eq(count("use frames"), 2u, "%s", text);
		cr_expect_eq(count("rank 0"), 2u, "%s", text);
		strcpy(f.lnx->rail[1]->name, "plain:second");
		cr_assert_eq(ask("health %s plain:second 500", once ? "once" : "set"), 0, "%s",
			     text);
		cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
		cr_expect_eq(count("use frames"), 1u, "%s", text);
		cr_expect_eq(count("rank 0 "), 1u, "%s", text);
		fake_close_quick(&f);
	}
}

/* A path that is preferred takes nothing before it is connected. */
Test(ctl, explain_before_the_first_message)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN } };

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
	cr_expect_eq(count("use frames state idle"), 1u, "%s", text);
	cr_expect_eq(count("preferred, but not connected yet"), 1u, "%s", text);
	cr_expect_eq(count("goes over path 1, the first message, too"), 1u, "%s", text);
	cr_expect_eq(count("use spill state idle"), 1u, "%s", text);
	cr_expect_eq(count("takes frames until path 0 is connected"), 1u, "%s", text);
	fake_meet(&f, &p);
	cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
	cr_expect_eq(count("not connected"), 0u, "%s", text);
	fake_close_quick(&f);
}

/* By LNet's order a pin decides for frames; what is large the peer reads as it likes. */
Test(ctl, explain_pins_and_large_messages)
{
	struct fake_opt opt = { .nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN } };

	fake_conf.multi_rail_selection = LNX_SELECTION_LNET;
	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	strcpy(f.lnx->rail[1]->name, "plain:second");
	cr_assert_eq(ask("health set plain:second 500"), 0, "%s", text);
	cr_assert_eq(ask("explain 0 16"), 0, "%s", text);
	cr_expect_eq(count("use no"), 1u, "%s", text);
	cr_assert_eq(ask("explain 0 1000000"), 0, "%s", text);
	cr_expect_eq(count("use no"), 0u, "%s", text);
	cr_expect_eq(count("use pieces"), 1u, "%s", text);
	cr_expect_eq(count("reads what is large in an order of its own"), 1u, "%s", text);
	fake_close_quick(&f);
}

/* ---- whose file it is ---- */

static int in_child(void (*play)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		play();
		_exit(0);
	}
	cr_assert(pid > 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void child_passes(void)
{
	unsigned i;

	f.lnx->stats.send_count = 4711;
	lnx_state_front_of()->mailbox.look++;
	for (i = 0; i < 4 * PASSES; i++) {
		fake_now_ns += 100 * LNX_NS_PER_MS;
		fake_pass(&f);
	}
	if (view_published(f.lnx))
		_exit(1);
	fi_close(&f.ep->fid);
}

static void child_opens(void)
{
	struct fake g;
	struct lnx_procs all;
	char why[200];
	unsigned i, own = 0;

	fake_open(&g, NULL);
	for (i = 0; i < 4 * PASSES; i++)
		fake_pass(&g);
	if (lnx_procs_find(root, false, getpid(), &all, why, sizeof(why)) || all.n != 1)
		_exit(1);
	if (lnx_proc_open(&all.proc[0]) || lnx_proc_read(&all.proc[0]) ||
	    all.proc[0].snap->nep != 1 || all.proc[0].snap->ep[0].ep.eid != g.lnx->eid)
		_exit(2);
	lnx_procs_free(&all);
	/* The parent's, of which this is a copy. */
	fi_close(&f.ep->fid);
	if (lnx_procs_find(root, false, 0, &all, why, sizeof(why)))
		_exit(3);
	own = all.n;
	lnx_procs_free(&all);
	fake_close_quick(&g);
	_exit(own == 2 ? 0 : 4);
}

/* The child of a fork leaves the segment alone, and has one of its own. */
Test(ctl, forked)
{
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(in_child(child_passes), 0);
	cr_expect_eq(value_of("send_count"), 0u);
	cr_expect_eq(in_child(child_opens), 0);
	cr_expect_eq(look()->ep[0].ep.eid, f.lnx->eid);
	same_counters(wake_and_look());
	fake_close(&f);
	cr_expect_eq(find_files(), 0u);
}

static void child_dies(void)
{
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	fake_after_ms(&f, 110);
	fake_passes(&f, 4 * PASSES);
	_exit(0);
}

/* What a process leaves behind can be read, and goes after some time. */
Test(ctl, dead)
{
	struct lnx_snap *s;

	cr_assert_eq(in_child(child_dies), 0);
	s = look();
	cr_expect_eq(procs.proc[0].life, LNX_PROC_ENDED);
	cr_expect_eq(lnx_snap_value(s, s->ep, "send_count"), 1u);
	cr_expect(!lnx_proc_wake(&procs.proc[0]));
	/* A young one stays. */
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 2u);
	fake_close(&f);
	cr_expect_eq(find_files(), 1u);
	fake_now_ns += LNX_STATE_KEEP_NS + LNX_NS_PER_S;
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 1u);
	cr_expect_eq(procs.proc[0].file.pid, getpid());
	fake_close(&f);
}

/* Of another name space of process ids: that process may live. */
Test(ctl, elsewhere)
{
	struct lnx_state_header h;
	int fd;

	cr_assert_eq(in_child(child_dies), 0);
	look();
	fd = open(procs.proc[0].path, O_RDWR);
	cr_assert(fd >= 0);
	cr_assert_eq(pread(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	h.pid_ns ^= 1;
	cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	close(fd);
	look();
	cr_expect_eq(procs.proc[0].life, LNX_PROC_UNKNOWN);
	fake_now_ns += LNX_STATE_KEEP_NS / 2;
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 2u);
	fake_close(&f);
	/* But a process that lives says something within that time. */
	fake_now_ns += LNX_STATE_KEEP_NS;
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 1u);
	fake_close(&f);
}

static char *own_path(unsigned copy)
{
	static char path[300];
	struct lnx_statefile s = { .pid = getpid(), .copy = copy };
	char name[LNX_STATEFILE_NAME];

	lnx_proc_start_time(getpid(), &s.started);
	lnx_statefile_print(&s, name);
	snprintf(path, sizeof(path), "%s/lnx-%u/%s", root, (unsigned)geteuid(), name);
	return path;
}

/* A file of that name which is not mapped was left by the program that this process was
 * before it executed another one. */
Test(ctl, executed)
{
	int dir = lnx_statefile_dir(root, geteuid(), true);

	cr_assert(dir >= 0);
	close(dir);
	close(open(own_path(0), O_WRONLY | O_CREAT, 0600));
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_eq(find_files(), 1u);
	cr_expect_eq(look()->ep[0].ep.eid, f.lnx->eid);
	cr_expect_eq(procs.proc[0].file.copy, 0u);
	fake_close(&f);
}

/* Removed while it is used, or replaced: the endpoint works, and removes nothing that is
 * not its own. */
Test(ctl, removed)
{
	struct stat st;

	open_kind(LNX_RAIL_PLAIN);
	cr_assert_eq(unlink(own_path(0)), 0);
	close(open(own_path(0), O_WRONLY | O_CREAT, 0600));
	meet_crowd();
	fake_after_ms(&f, 1100);
	fake_passes(&f, 60 * PASSES);
	introduce();
	fake_close_quick(&f);
	cr_expect_eq(stat(own_path(0), &st), 0);
}

static void no_segment(void)
{
	open_kind(LNX_RAIL_PLAIN);
	cr_expect_not(view_published(f.lnx));
	introduce();
	fake_after_ms(&f, 1100);
	fake_passes(&f, PASSES);
	cr_expect_eq(lnx_ctl_request(f.lnx, "set spill 9", text, sizeof(text)), 0);
	cr_expect_eq(lnx_ctl_request(f.lnx, "stats reset", text, sizeof(text)),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(lnx_ctl_request(f.lnx, "ping 0", text, sizeof(text)),
		     -FI_EOPNOTSUPP);
	fake_close(&f);
}

Test(ctl, no_directory)
{
	lnx_state_root = "/nonexistent";
	no_segment();
}

/* It is there, and others may use it. */
Test(ctl, open_directory)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/lnx-%u", root, (unsigned)geteuid());
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(chmod(path, 0777), 0);
	no_segment();
	cr_expect_eq(rmdir(path), 0, "something was written there");
}

/* ---- FI_LNX_STATS_FILE ---- */

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	cr_assert(fd >= 0, "%s", path);
	n = read(fd, text, sizeof(text) - 1);
	cr_assert(n > 0);
	text[n] = '\0';
	close(fd);
}

Test(ctl, stats_file)
{
	char name[100], path[120];

	snprintf(name, sizeof(name), "%s/%%p-%%%%-%%r", root);
	snprintf(path, sizeof(path), "%s/%d-%%-none", root, (int)getpid());
	fake_conf.stats_file = name;
	fake_conf.state = false;
	open_kind(LNX_RAIL_PLAIN);
	introduce();
	fake_close(&f);
	read_file(path);
	cr_expect(strstr(text, "lnx_endpoint{pid=\""), "%s", text);
	cr_expect(strstr(text, "link=\"fake\"} 1\n"), "%s", text);
	cr_expect(strstr(text, "rail=\"plain:fake\"} 1\n"), "%s", text);
	lnx_stats_file_fini();
	/* Cannot be written: the endpoint is closed all the same. */
	fake_conf.stats_file = "/nonexistent/x";
	open_kind(LNX_RAIL_PLAIN);
	fake_close(&f);
	fake_conf.stats_file = "/tmp/lnx-%q";
	open_kind(LNX_RAIL_PLAIN);
	fake_close(&f);
	lnx_stats_file_fini();
	fake_conf.stats_file = NULL;
}

static void write_stats(char *path)
{
	fake_conf.stats_file = path;
	fake_conf.state = false;
	open_kind(LNX_RAIL_PLAIN);
	fake_close(&f);
	lnx_stats_file_fini();
	fake_conf.stats_file = NULL;
}

/* What is no file stays what it is: FI_LNX_STATS_FILE=/dev/null of root, for instance. */
Test(ctl, stats_file_special)
{
	char path[100], link[120];
	struct stat st;

	snprintf(path, sizeof(path), "%s/pipe", root);
	snprintf(link, sizeof(link), "%s/link", root);
	cr_assert(!mkfifo(path, 0600) && !symlink(path, link));
	write_stats(path);
	write_stats(link);
	cr_expect(!lstat(path, &st) && S_ISFIFO(st.st_mode));
	cr_expect(!lstat(link, &st) && S_ISLNK(st.st_mode));
}

/* /dev/stdout of root leads to a regular file where the output is one, or nowhere. */
Test(ctl, stats_file_link)
{
	char path[100], link[120];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/output", root);
	snprintf(link, sizeof(link), "%s/link", root);
	cr_assert(!symlink(path, link));
	write_stats(link);
	cr_expect(!lstat(link, &st) && S_ISLNK(st.st_mode));
	cr_expect(lstat(path, &st));
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	cr_assert(fd >= 0);
	close(fd);
	write_stats(link);
	cr_expect(!lstat(link, &st) && S_ISLNK(st.st_mode));
	cr_expect(!stat(path, &st) && !st.st_size);
}

/* Others may write to the same path at the same time, each of them first to another file. */
Test(ctl, stats_file_shared)
{
	char path[100], other[120];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/same", root);
	snprintf(other, sizeof(other), "%s.new", path);
	cr_assert(!mkfifo(other, 0600));
	write_stats(path);
	read_file(path);
	cr_expect(strstr(text, "lnx_endpoint{pid=\""));
	d = opendir(root);
	cr_assert(d);
	while ((e = readdir(d)))
		n += !strncmp(e->d_name, "same", 4);
	closedir(d);
	cr_expect_eq(n, 2, "%u files", n);
}
