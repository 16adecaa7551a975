/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application of fail_world.h: it sends and receives, opens and closes, and
 * checks that everything expected arrived.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail_world.h"
#include "rel/peer_path.h"
#include "rel/rel.h"

size_t inject_size;
unsigned nops;
/* Each send has a buffer of its own, so that a read after its completion is found; and
 * nothing of this size is static, as the leak checker reads all of that at the end of a test. */
static uint8_t *slot[NSLOT];
static struct op ops[MANY];		/* by context */

/* ---- sending and receiving ---- */

static void fill_slot(int i, uint64_t tag, size_t len)
{
	slot[i] = malloc(LNX_MAX(len, (size_t)8));
	cr_assert_not_null(slot[i]);
	memset(slot[i], (int)(uint8_t)(tag * 31 + 7), len);
	if (len >= 8)
		memcpy(slot[i], &tag, 8);
}

static int free_slot(void)
{
	unsigned i;

	for (i = 0; i < NSLOT; i++)
		if (!slot[i])
			return (int)i;
	return -1;
}

static void give_slot(int i)
{
	free(slot[i]);
	slot[i] = NULL;
}

static void ended(struct op *o)
{
	if (o->slot >= 0)
		give_slot(o->slot);
	o->slot = -1;
}

static void completions(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee;
	ssize_t ret;

	for (;;) {
		struct op *o;

		memset(&ee, 0, sizeof(ee));
		ret = fi_cq_read(f.cq, &e, 1);
		if (ret == -FI_EAGAIN)
			return;
		if (ret == -FI_EAVAIL) {
			cr_assert_eq(fi_cq_readerr(f.cq, &ee, 0), 1);
			o = ee.op_context;
			o->nerr++;
			o->err = ee.err;
			ended(o);
			continue;
		}
		cr_assert_eq(ret, 1);
		o = e.op_context;
		o->ncomp++;
		ended(o);
		if (!(e.flags & FI_RECV))
			continue;
		/* In order, and whole. */
		cr_assert_eq(e.tag, o->tag, "%lu for %lu", e.tag, o->tag);
		o->from->nrecv++;
		cr_assert_eq(e.len, o->len);
		if (o->len == LARGE || o->len == PARTS)
			cr_assert_eq(memcmp(o->buf, mem, o->len), 0);
		else
			cr_assert_eq(memcmp(o->buf, &e.tag, 8), 0);
	}
}

static struct op *new_op(void)
{
	struct op *o = &ops[nops++];

	cr_assert_leq(nops, MANY);
	memset(o, 0, sizeof(*o));
	o->slot = -1;
	return o;
}

struct op *send_flags(struct side *s, size_t len, uint64_t flags)
{
	struct op *o = new_op();
	struct iovec iov;
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->p.addr,
		.tag = s->nsent + 1, .context = o,
	};
	ssize_t ret;

	o->slot = free_slot();
	if (o->slot < 0) {
		nops--;
		return NULL;
	}
	fill_slot(o->slot, msg.tag, len);
	iov.iov_base = slot[o->slot];
	iov.iov_len = len;
	ret = fi_tsendmsg(f.ep, &msg, flags | FI_COMPLETION);
	if (ret) {
		cr_assert_eq(ret, -FI_EAGAIN, "%zd", ret);
		give_slot(o->slot);
		nops--;
		return NULL;
	}
	s->nsent++;
	return o;
}

struct op *send1(struct side *s, size_t len)
{
	struct op *o = send_flags(s, len, 0);

	cr_assert_not_null(o);
	return o;
}

struct op *receive(struct side *s, size_t len)
{
	struct op *o = new_op();

	o->buf = malloc(len);
	cr_assert_not_null(o->buf);
	memset(o->buf, 0xee, len);
	o->len = len;
	o->from = s;
	o->tag = ++s->nposted;
	cr_assert_eq(fi_trecv(f.ep, o->buf, len, NULL, s->p.addr, 0, ~0ull, o),
		     0);
	return o;
}

void step(void)
{
	fake_passes(&f, 2);
	world();
	fake_pass(&f);
	completions();
}

void run_ms(unsigned ms)
{
	while (ms--) {
		fake_now_ns += LNX_NS_PER_MS;
		step();
	}
}

/* ---- opening and closing ---- */

void start_side(unsigned i)
{
	struct side *s = &side[i];

	memset(s, 0, sizeof(*s));
	fake_peer_init(&f, &s->p, 0x1111 * (i + 1ull));
	fake_peer_insert(&f, &s->p);
	nside = LNX_MAX(nside, i + 1);
}

void open_n(enum lnx_rail_kind kind, unsigned rails, unsigned sides)
{
	struct fake_opt opt = {
		.nrail = rails, .caps = FI_DIRECTED_RECV,
		.inject_size = inject_size,
	};
	size_t k;
	unsigned i;

	nrail = rails;
	/* The world answers transactions, so there is a timeout. */
	fake_conf.transaction_timeout = 5000;
	for (i = 0; i < rails; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	/* Names for tests that give rails by name. */
	for (i = 0; i < rails; i++)
		snprintf(f.lnx->rail[i]->name, sizeof(f.lnx->rail[i]->name),
			 "fake:%u", i);
	for (k = 0; k < sizeof(mem); k++)
		mem[k] = (uint8_t)(k * 7 + k / 251 + k / 65521);
	for (i = 0; i < sides; i++)
		start_side(i);
}

bool all_there_of(const struct side *s)
{
	const struct lnx_peer *peer = inside(s);

	return s->mute || !peer ||
	       (view_all_acked(peer) && !view_queued(peer) &&
		s->acked == s->p.seq);
}

bool all_there(void)
{
	unsigned i;

	for (i = 0; i < nside; i++)
		if (!all_there_of(&side[i]))
			return false;
	return true;
}

/* Each side has a hello and a message of the other. */
static void introduce(void)
{
	unsigned i, k;

	for (i = 0; i < nside; i++) {
		struct op *o = receive(&side[i], 8);

		say(&side[i], 0, LNX_KIND_HELLO, 0);
		say(&side[i], 0, LNX_KIND_TAG, ++side[i].next_tag);
		send1(&side[i], 100);
		RUN_UNTIL(o->ncomp, 100);
	}
	RUN_UNTIL(all_there(), 100);
	for (i = 0; i < nside; i++) {
		cr_assert_eq(view_npath(inside(&side[i])), nrail);
		for (k = 0; k < nrail; k++)
			cr_assert_eq(view_remote(path_of(&side[i], k)), k);
		memset(side[i].nseen, 0, sizeof(side[i].nseen));
		memset(side[i].nprobe, 0, sizeof(side[i].nprobe));
	}
}

void open_met(enum lnx_rail_kind kind, unsigned rails, unsigned sides)
{
	open_n(kind, rails, sides);
	introduce();
}

static void all_ended(void)
{
	unsigned i;

	for (i = 0; i < nops; i++) {
		cr_assert_eq(ops[i].ncomp + ops[i].nerr, 1u,
			     "%u: %u completions, %u errors", i, ops[i].ncomp,
			     ops[i].nerr);
		cr_assert_eq(ops[i].nerr, 0u, "%u failed: %d", i, ops[i].err);
	}
}

/* Everything that was sent arrived, in order. */
static void check_side(const struct side *s)
{
	uint64_t tag = 0, at = 0, end = 0;
	uint32_t i;

	for (i = 0; i < s->p.got; i++) {
		switch (s->kind[i]) {
		case LNX_KIND_TAG:
		case LNX_KIND_PART_TAG:
		case LNX_KIND_RTS_TAG:
			cr_assert_eq(s->tag[i], ++tag);
			/* Nothing comes between the frames of a message. */
			cr_assert_eq(at, end);
			at = s->kind[i] == LNX_KIND_RTS_TAG ? 0 : s->part[i];
			end = s->kind[i] == LNX_KIND_RTS_TAG ? s->part[i] : s->len[i];
			break;
		case LNX_KIND_MORE:
			cr_assert_eq(s->tag[i], at);
			cr_assert_eq(s->byte[i], (uint8_t)(tag * 31 + 7));
			cr_assert(at || s->first[i] == tag);
			at += s->len[i];
			cr_assert_leq(at, end);
			break;
		default:
			break;
		}
	}
	cr_assert_eq(at, end);
	cr_assert_eq(tag, s->nsent, "%lu of %lu", tag, s->nsent);
	cr_assert_eq(s->nrecv, s->next_tag);
}

static void free_bufs(void)
{
	unsigned i;

	for (i = 0; i < nops; i++)
		free(ops[i].buf);
	nops = 0;
	for (i = 0; i < NSLOT; i++)
		give_slot((int)i);
}

void close_now(void)
{
	fake_close(&f);
	free_bufs();
}

void close_clean(void)
{
	unsigned i, k;

	for (i = 0; i < nrail; i++) {
		lost_to[i] = lost_from[i] = false;
		f.core[i]->hold_sends = f.core[i]->hold_reads = false;
		f.core[i]->ep_fails = f.core[i]->enable_fails = 0;
		fake_finish_all(f.core[i]);
	}
	for (i = 0; i < nside; i++)
		side[i].mute = side[i].no_pongs = side[i].no_acks = false;
	for (i = 0; i < 20000 && !all_there(); i++)
		run_ms(1);
	cr_assert(all_there());
	run_ms(100);
	all_ended();
	for (i = 0; i < nside; i++) {
		const struct lnx_peer *peer = inside(&side[i]);

		check_side(&side[i]);
		cr_expect_eq(view_unacked_bytes(peer), 0u);
		cr_expect_eq(view_kept(peer), 0u);
		for (k = 0; k < nrail; k++) {
			const struct lnx_path *path = view_path(peer, k);

			cr_expect_eq(lnx_peer_path_in_flight(peer, path), 0u);
			cr_expect(view_no_reads(path));
		}
	}
	for (i = 0; i < nrail; i++) {
		cr_expect_eq(f.lnx->rail[i]->credits.used, 0u);
		cr_expect_eq(f.lnx->rail[i]->busy, 0u, "%u",
			     f.lnx->rail[i]->busy);
		cr_expect(lnx_list_empty(&f.lnx->rail[i]->clones));
		cr_expect_eq(f.core[i]->nav_in, nside);
	}
	cr_expect_eq(view_chunks(f.lnx), 0u);
	cr_expect_eq(view_frames(f.lnx), 0u);
	close_now();
}

/* ---- events that several programs provoke ---- */

void path0_down(void)
{
	black_hole(0);
	send1(&side[0], 200);
	RUN_UNTIL(is_down(&side[0], 0), 5000);
}

struct op *large_from(struct side *s)
{
	struct op *o = receive(s, LARGE);

	say(s, 1, LNX_KIND_RTS_TAG, ++s->next_tag);
	return o;
}

struct op *force_reopen(struct side *s)
{
	struct op *o;

	f.core[0]->hold_reads = true;
	o = large_from(s);
	step();
	cr_assert_gt(fake_held(f.core[0]), 0u);
	black_hole(0);
	return o;
}

void link_is(unsigned rail, bool up)
{
	lnx_lock(&f.lnx->lock);
	lnx_rel_link(f.lnx->rail[rail], up ? LNX_REL_LINK_UP : LNX_REL_LINK_DOWN,
		     lnx_clock_ns());
	lnx_unlock(&f.lnx->lock);
}
