/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths that deliver nothing, on scripted cores: a rail each.  The test is the peers
 * and the network between: what gets lost, what is late, who answers.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comp/comp.h"
#include "comp/links.h"
#include "core/ping.h"
#include "ctl/request.h"
#include "fake_core.h"
#include "fake_watch.h"
#include "rx/rx.h"
#include "tx/guard.h"
#include "tx/path.h"
#include "tx/tx.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define MANY	4096u			/* numbers of frames, and more than any */
#define BASE	0x1000000ull		/* of the peers' memory */
#define LARGE	(1ul << 20)
#define SIDES	3u
#define SLOT	16384u
#define NSLOT	256u			/* sends that are not complete */
#define OLD_PORT	4000		/* of a rail that is opened first */

/* One of ours at the other end. */
struct side {
	struct fake_peer p;
	bool mute;			/* it computes: takes nothing */
	bool no_pongs, no_acks;
	unsigned max_take;		/* frames of a rail at a time */

	/* What it has of us. */
	unsigned seen[MANY];		/* times, by number */
	uint64_t sum[MANY];		/* what it was */
	uint64_t tag[MANY];
	uint8_t kind[MANY];
	unsigned nseen[FAKE_RAILS];	/* sequenced, by rail */
	uint64_t bytes[LNX_WIRE_PATHS];
	unsigned nprobe[FAKE_RAILS];
	struct lnx_hdr probe[FAKE_RAILS]; /* the last one */
	unsigned nrail;			/* notices of links, and the last one */
	struct lnx_hdr rail;
	unsigned last_rail;
	unsigned nhello;
	struct lnx_addr us;		/* by our last hello */
	bool owes;

	/* What it sends: kept until acknowledged. */
	uint32_t acked;
	struct { uint8_t kind; uint64_t tag; } out[MANY];
	uint64_t again_ns;
	uint64_t nsent;			/* tags that we have sent to it */
	uint64_t next_tag;		/* the last that it sent, */
	uint64_t nposted, nrecv;	/* and that was asked for, and came */
	fi_addr_t dest[FAKE_RAILS];	/* last one of ours, by rail */
};

static struct fake f;
static struct side side[SIDES];
static unsigned nside, nrail;
static bool lost_to[FAKE_RAILS], lost_from[FAKE_RAILS];
static uint8_t mem[LARGE];
static uint8_t slot[NSLOT][SLOT];
static bool slot_used[NSLOT];

/* By context. */
static struct op {
	unsigned ncomp, nerr;
	int err;
	int slot;			/* payload of a send */
	uint8_t *buf;			/* of a receive */
	size_t len;
	uint64_t tag;			/* that it is to get */
	struct side *from;
} ops[MANY];
static unsigned nops;

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(guard_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(guard_peer, name) { name(LNX_RAIL_PEER); }			\
	static void name(enum lnx_rail_kind kind)

static struct lnx_peer *inside(const struct side *s)
{
	return lnx_peer_by_eid(f.lnx, s->p.eid);
}

/* The path that begins on a rail of ours; it ends on the same of the peer's. */
static struct lnx_path *path_of(const struct side *s, unsigned rail)
{
	struct lnx_peer *peer = inside(s);
	unsigned i;

	for (i = 0; i < peer->npath; i++)
		if (peer->path[i].rail == f.lnx->rail[rail])
			return &peer->path[i];
	cr_assert_fail("no path over rail %u", rail);
	return NULL;
}

static bool left(const struct side *s, unsigned rail)
{
	return path_of(s, rail)->state == LNX_PATH_LEFT;
}

static void fill_slot(int i, uint64_t tag, size_t len)
{
	memset(slot[i], (int)(uint8_t)(tag * 31 + 7), len);
	if (len >= 8)
		memcpy(slot[i], &tag, 8);
}

static int take_slot(void)
{
	unsigned i;

	for (i = 0; i < NSLOT; i++) {
		if (!slot_used[i]) {
			slot_used[i] = true;
			return (int)i;
		}
	}
	return -1;
}

static void give_slot(int i)
{
	slot_used[i] = false;
	/* It is the application's again. */
	memset(slot[i], 0xdd, SLOT);
}

/* ---- kernels, that answer for peers which compute ---- */

static bool kernel_alive[FAKE_RAILS];	/* whatever is lost */
static bool kernel_refuses[FAKE_RAILS];	/* unless it is so */
static bool kernel_unknown;
static unsigned kernel_takes_ms;

static enum lnx_ping_result kernel(const struct lnx_ping *ping)
{
	unsigned i, k;

	if (kernel_unknown)
		return LNX_PING_UNKNOWN;
	for (i = 0; i < nside; i++) {
		const struct lnx_peer *peer = inside(&side[i]);
		unsigned rail;

		for (k = 0; peer && k < peer->npath; k++) {
			if (peer->path[k].guard.ping != ping)
				continue;
			for (rail = 0; rail < nrail - 1; rail++)
				if (f.lnx->rail[rail] == peer->path[k].rail)
					break;
			if (kernel_refuses[rail])
				return LNX_PING_REFUSED;
			return kernel_alive[rail] ||
			       (!lost_to[rail] && !lost_from[rail]) ?
			       LNX_PING_ALIVE : LNX_PING_WAITING;
		}
	}
	return LNX_PING_UNKNOWN;
}

enum lnx_ping_result __wrap_lnx_ping_start(struct lnx_ping *ping,
		const void *src, size_t srclen, const void *dst, size_t dstlen,
		const char *device);
enum lnx_ping_result __wrap_lnx_ping_check(struct lnx_ping *ping);
void __wrap_lnx_ping_stop(struct lnx_ping *ping);

enum lnx_ping_result __wrap_lnx_ping_start(struct lnx_ping *ping,
		const void *src, size_t srclen, const void *dst, size_t dstlen,
		const char *device)
{
	cr_assert(src && dst && srclen == dstlen && !device);
	ping->fd = (int)(fake_now_ns / LNX_NS_PER_MS);
	ping->result = kernel_unknown ? LNX_PING_UNKNOWN : LNX_PING_WAITING;
	return (enum lnx_ping_result)ping->result;
}

enum lnx_ping_result __wrap_lnx_ping_check(struct lnx_ping *ping)
{
	if (fake_now_ns / LNX_NS_PER_MS - (unsigned)ping->fd < kernel_takes_ms)
		return LNX_PING_WAITING;
	ping->result = (uint8_t)kernel(ping);
	return (enum lnx_ping_result)ping->result;
}

void __wrap_lnx_ping_stop(struct lnx_ping *ping)
{
	if (ping->result == LNX_PING_WAITING)
		ping->result = LNX_PING_UNKNOWN;
}

/* ---- the network, and who is at its other end ---- */

static void from(struct side *s, unsigned rail, uint32_t seq, struct lnx_hdr h,
		 const void *payload, size_t len)
{
	if (lost_from[rail] || !f.core[rail]->enabled)
		return;
	h.seq = seq;
	h.path = (uint8_t)rail;
	h.rail = (uint16_t)rail;
	fake_frame_on(&f, &s->p, rail, h, payload, len);
}

static void post_out(struct side *s, unsigned rail, uint32_t seq)
{
	uint64_t tag = s->out[seq].tag;
	uint8_t payload[512];
	struct lnx_rts rts = { .op = tag, .nseg = 1, .seg_len[0] = LARGE };
	unsigned i;

	switch (s->out[seq].kind) {
	case LNX_KIND_HELLO:
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_HELLO },
		     s->p.blob, sizeof(s->p.blob));
		break;
	case LNX_KIND_TAG:
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_TAG,
		     .tag = tag, .len = 8 }, &tag, 8);
		break;
	default:
		rts.nkey = (uint8_t)nrail;
		for (i = 0; i < nrail; i++) {
			rts.key[0][i].rail = (uint16_t)i;
			rts.key[0][i].key = 100;
			rts.key[0][i].addr = BASE;
			if (!f.core[i]->nregion)
				fake_region(f.core[i], 100, BASE, mem,
					    sizeof(mem));
		}
		lnx_rts_put(payload, &rts);
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
		     .tag = tag, .len = LARGE }, payload, lnx_rts_size(&rts));
	}
}

/* It says something new, over a rail. */
static void say(struct side *s, unsigned rail, uint8_t kind, uint64_t tag)
{
	uint32_t seq = s->p.seq++;

	cr_assert_lt(seq, MANY);
	s->out[seq].kind = kind;
	s->out[seq].tag = tag;
	post_out(s, rail, seq);
}

static void ack_on(struct side *s, unsigned rail)
{
	unsigned i;

	for (i = 0; i < nrail; i += 2)
		from(s, rail, 0, (struct lnx_hdr) { .kind = LNX_KIND_ACK,
		     .tag = 1 + i, .data = s->bytes[i],
		     .len = i + 1 < nrail ? 2 + i : 0,
		     .key = s->bytes[i + 1] }, NULL, 0);
}

static void pong(struct side *s, unsigned rail, uint64_t tag, uint64_t data)
{
	from(s, rail, 0, (struct lnx_hdr) { .kind = LNX_KIND_PONG, .tag = tag,
	     .data = data,
	     .key = tag - 1 < nrail ? s->bytes[tag - 1] : 0 }, NULL, 0);
}

static uint64_t sum_of(const struct fake_sent *s)
{
	uint64_t sum = s->len;
	size_t i;

	for (i = HDR; i < s->len; i++)
		sum = sum * 1099511628211ull + s->bytes[i];
	return sum;
}

static struct side *side_of(uint64_t eid)
{
	unsigned i;

	for (i = 0; i < nside; i++)
		if (side[i].p.eid == eid)
			return &side[i];
	cr_assert_fail("a frame to nobody");
	return NULL;
}

static void check_payload(const struct fake_sent *s)
{
	const uint8_t *b = s->bytes + HDR;
	size_t i, len = s->len - HDR;

	cr_assert_eq(len, s->h.len);
	if (len >= 8)
		cr_assert_eq(memcmp(b, &s->h.tag, 8), 0);
	for (i = 8; i < len; i++)
		cr_assert_eq(b[i], (uint8_t)(s->h.tag * 31 + 7));
}

static void look_at(struct side *s, unsigned rail, const struct fake_sent *m)
{
	cr_assert_eq(m->h.src, f.lnx->eid);
	cr_assert_eq(m->h.path, path_of(s, rail)->index);
	if ((int32_t)(m->h.ack - s->acked) > 0)
		s->acked = m->h.ack;
	s->last_rail = rail;
	s->dest[rail] = m->dest;
	if (m->h.kind == LNX_KIND_PROBE) {
		s->nprobe[rail]++;
		s->probe[rail] = m->h;
		s->owes = true;
		if (m->h.key) {
			cr_assert_eq(m->len, HDR + LNX_ADDR_BYTES);
			cr_assert_eq(lnx_addr_unpack(&s->us, m->bytes + HDR,
						     LNX_ADDR_BYTES, NULL, 0),
				     0);
			cr_assert_eq(s->us.eid, f.lnx->eid);
		}
		return;
	}
	if (m->h.kind == LNX_KIND_RAIL) {
		s->nrail++;
		s->rail = m->h;
	}
	if (!lnx_kind_sequenced(m->h.kind))
		return;
	cr_assert_lt(m->h.seq, MANY);
	if (m->h.kind == LNX_KIND_TAG)
		check_payload(m);
	if (s->seen[m->h.seq]++) {
		/* Sent again it is the same. */
		cr_assert_eq(s->kind[m->h.seq], m->h.kind);
		cr_assert_eq(s->tag[m->h.seq], m->h.tag);
		cr_assert_eq(s->sum[m->h.seq], sum_of(m));
	}
	s->kind[m->h.seq] = m->h.kind;
	s->tag[m->h.seq] = m->h.tag;
	s->sum[m->h.seq] = sum_of(m);
	s->nseen[rail]++;
	s->bytes[m->h.path] += m->len;
	s->owes = true;
	if (m->h.kind == LNX_KIND_HELLO) {
		s->nhello++;
		cr_assert_eq(lnx_addr_unpack(&s->us, m->bytes + HDR,
					     LNX_ADDR_BYTES, NULL, 0), 0);
		cr_assert_eq(s->us.eid, f.lnx->eid);
	}
}

/* What left on a rail: arrives, waits for one that computes, or is lost. */
static void carry(unsigned rail)
{
	struct fake_sent *m, *kept = NULL, **end = &kept;
	unsigned n[SIDES] = { 0 };

	while ((m = fake_take(f.core[rail]))) {
		struct side *s = side_of(m->h.dst);

		if (lost_to[rail]) {
			free(m);
		} else if (s->mute ||
			   (s->max_take && n[s - side]++ >= s->max_take)) {
			m->next = NULL;
			*end = m;
			end = &m->next;
		} else {
			look_at(s, rail, m);
			free(m);
		}
	}
	if (kept) {
		f.core[rail]->sent = kept;
		f.core[rail]->sent_end = end;
	}
}

static void answer(struct side *s)
{
	unsigned i;

	while (s->seen[s->p.got])
		s->p.got++;
	for (i = 0; i < nrail; i++) {
		if (s->probe[i].tag && !s->no_pongs)
			pong(s, i, s->probe[i].tag, s->probe[i].data);
		if (!s->no_pongs)
			s->probe[i].tag = 0;
	}
	if (s->owes && !s->no_acks)
		ack_on(s, s->last_rail);
	s->owes = false;
	/* What we do not acknowledge it sends again, over another. */
	if (s->acked != s->p.seq && fake_now_ns > s->again_ns) {
		unsigned rail = (unsigned)(fake_now_ns / 1000) % nrail;
		uint32_t seq;

		if (s->again_ns)
			for (seq = s->acked; seq != s->p.seq; seq++)
				post_out(s, rail, seq);
		s->again_ns = fake_now_ns + 40 * LNX_NS_PER_MS;
	}
}

static void world(void)
{
	unsigned i;

	for (i = 0; i < nrail; i++)
		carry(i);
	for (i = 0; i < nside; i++)
		if (!side[i].mute)
			answer(&side[i]);
}

/* ---- the application ---- */

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
		if (o->len == LARGE)
			cr_assert_eq(memcmp(o->buf, mem, LARGE), 0);
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

static struct op *send_flags(struct side *s, size_t len, uint64_t flags)
{
	struct op *o = new_op();
	struct iovec iov;
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->p.addr,
		.tag = s->nsent + 1, .context = o,
	};
	ssize_t ret;

	o->slot = take_slot();
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

static struct op *send1(struct side *s, size_t len)
{
	struct op *o = send_flags(s, len, 0);

	cr_assert_not_null(o);
	return o;
}

static struct op *receive(struct side *s, size_t len)
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

static void step(void)
{
	fake_passes(&f, 2);
	world();
	fake_pass(&f);
	completions();
}

static void run_ms(unsigned ms)
{
	while (ms--) {
		fake_now_ns += LNX_NS_PER_MS;
		step();
	}
}

#define RUN_UNTIL(cond, ms)						\
	do {								\
		unsigned left_ms = ms;					\
									\
		while (!(cond) && left_ms--)				\
			run_ms(1);					\
		cr_assert(cond);					\
	} while (0)

/* ---- opening and closing ---- */

static size_t inject_size;		/* of the cores that are opened next */

static void start_side(unsigned i)
{
	struct side *s = &side[i];

	memset(s, 0, sizeof(*s));
	fake_peer_init(&f, &s->p, 0x1111 * (i + 1ull));
	fake_peer_insert(&f, &s->p);
	nside = LNX_MAX(nside, i + 1);
}

static void open_n(enum lnx_rail_kind kind, unsigned rails, unsigned sides)
{
	struct fake_opt opt = {
		.nrail = rails, .caps = FI_DIRECTED_RECV,
		.inject_size = inject_size,
	};
	size_t k;
	unsigned i;

	nrail = rails;
	/* Here is somebody to ask. */
	fake_conf.transaction_timeout = 5000;
	for (i = 0; i < rails; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	/* For who names them. */
	for (i = 0; i < rails; i++)
		snprintf(f.lnx->rail[i]->name, sizeof(f.lnx->rail[i]->name),
			 "fake:%u", i);
	for (k = 0; k < sizeof(mem); k++)
		mem[k] = (uint8_t)(k * 7 + k / 251 + k / 65521);
	for (i = 0; i < sides; i++)
		start_side(i);
}

static bool all_there_of(const struct side *s)
{
	const struct lnx_peer *peer = inside(s);

	return s->mute || !peer ||
	       (peer->tx_una == peer->tx_next && !peer->npend &&
		s->acked == s->p.seq);
}

static bool all_there(void)
{
	unsigned i;

	for (i = 0; i < nside; i++)
		if (!all_there_of(&side[i]))
			return false;
	return true;
}

/* Each has a hello and a message of the other. */
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
		cr_assert_eq(inside(&side[i])->npath, nrail);
		for (k = 0; k < nrail; k++)
			cr_assert_eq(path_of(&side[i], k)->remote_rail, k);
		memset(side[i].nseen, 0, sizeof(side[i].nseen));
		memset(side[i].nprobe, 0, sizeof(side[i].nprobe));
	}
}

static void open_met(enum lnx_rail_kind kind, unsigned rails, unsigned sides)
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

/* All that was sent, in order. */
static void check_side(const struct side *s)
{
	uint64_t tag = 0;
	uint32_t i;

	for (i = 0; i < s->p.got; i++)
		if (s->kind[i] == LNX_KIND_TAG)
			cr_assert_eq(s->tag[i], ++tag);
	cr_assert_eq(tag, s->nsent, "%lu of %lu", tag, s->nsent);
	cr_assert_eq(s->nrecv, s->next_tag);
}

static void free_bufs(void)
{
	unsigned i;

	for (i = 0; i < nops; i++)
		free(ops[i].buf);
	nops = 0;
}

static void close_now(void)
{
	fake_close(&f);
	free_bufs();
}

/* All works again: everything arrives, once, and nothing is left behind. */
static void close_clean(void)
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
		cr_expect_eq(peer->una_bytes, 0u);
		for (k = 0; k < nrail; k++) {
			const struct lnx_path *path = &peer->path[k];

			cr_expect_eq(lnx_path_in_flight(peer, path), 0u);
			cr_expect_eq(path->nread, 0u);
			cr_expect(lnx_list_empty(&path->reads));
		}
	}
	for (i = 0; i < nrail; i++) {
		cr_expect_eq(f.lnx->rail[i]->busy, 0u, "%u",
			     f.lnx->rail[i]->busy);
		cr_expect(lnx_list_empty(&f.lnx->rail[i]->twins));
		cr_expect_eq(f.core[i]->nav_in, nside);
	}
	cr_expect_eq(f.lnx->chunk_pool.used, 0u);
	cr_expect_eq(f.lnx->txe_pool[0].used + f.lnx->txe_pool[1].used +
		     f.lnx->txe_pool[2].used, 0u);
	close_now();
}

/* Nothing gets through, either way. */
static void black_hole(unsigned rail)
{
	lost_to[rail] = lost_from[rail] = true;
}

static void heal(unsigned rail)
{
	lost_to[rail] = lost_from[rail] = false;
}

/* Path 0 of the first, for want of news. */
static void leave0(void)
{
	black_hole(0);
	send1(&side[0], 200);
	RUN_UNTIL(left(&side[0], 0), 5000);
}

/* ---- silence ---- */

BOTH(silent_path_is_left)
{
	struct side *s = &side[0];
	struct op *o[5];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	seq = inside(s)->tx_next;
	black_hole(0);
	for (i = 0; i < 5; i++) {
		o[i] = send1(s, 200);
		run_ms(1);
	}
	cr_expect_eq(s->nprobe[1], 0u);	/* not at once */
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	cr_assert_eq(s->nprobe[1], 1u);
	cr_expect_eq(s->nprobe[0], 0u);
	RUN_UNTIL(left(s, 0), 100);
	cr_expect_eq(f.lnx->stats.paths_left, 1u);
	cr_expect(!left(s, 1));
	run_ms(10);
	cr_expect_eq(s->nseen[1], 5u);
	for (i = 0; i < 5; i++) {
		cr_expect_eq(s->seen[seq + i], 1u);
		cr_expect_eq(o[i]->ncomp, 1u);
	}
	/* The next ones at once. */
	for (i = 0; i < 20; i++)
		send1(s, 200);
	step();
	cr_expect_eq(s->nseen[1], 25u);
	close_clean();
}

/* What it is asked about is said in the question. */
BOTH(the_question)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 3, 1);
	s->no_pongs = true;
	black_hole(0);
	send1(s, 200);
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	cr_expect_eq(s->probe[1].tag, 1u);
	cr_expect_eq(s->nprobe[2], 1u);	/* one of them may be silent, too */
	cr_expect_eq(s->probe[2].tag, 1u);
	close_clean();
}

/* Slow it is, and not dead. */
BOTH(slow_path_is_not_left)
{
	struct side *s = &side[0];
	unsigned i, k;

	open_met(kind, 2, 1);
	s->no_acks = true;
	lost_to[0] = false;
	for (i = 0; i < 30; i++)
		send1(s, 200);
	for (i = 0; i < 60; i++) {
		struct fake_sent *held = f.core[0]->sent, *one = held;

		/* One frame gets through every 25 ms. */
		if (one) {
			f.core[0]->sent = NULL;
			f.core[0]->sent_end = &f.core[0]->sent;
			held = one->next;
			look_at(s, 0, one);
			free(one);
		}
		for (k = 0; k < 25; k++) {
			struct fake_sent *mine = held;

			f.core[0]->sent = NULL;
			f.core[0]->sent_end = &f.core[0]->sent;
			run_ms(1);
			held = mine;
		}
		/* What was sent again meanwhile was seen; the rest waits. */
		f.core[0]->sent = held;
		f.core[0]->sent_end = &f.core[0]->sent;
		while (*f.core[0]->sent_end)
			f.core[0]->sent_end = &(*f.core[0]->sent_end)->next;
	}
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	cr_expect_gt(s->nprobe[1], 0u);
	close_clean();
}

/* One that computes is as silent as one that is gone. */
BOTH(nobody_is_blamed)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 10; i++)
		send1(s, 200);
	s->mute = true;
	for (i = 0; i < 600; i++) {
		fake_now_ns += 100 * LNX_NS_PER_MS;
		step();
	}
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	cr_expect(!inside(s)->gone);
	/* It goes on, and has them in its buffers. */
	s->mute = false;
	run_ms(1000);
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	close_clean();
}

/* We compute as well: when we look again, nobody had time to answer. */
BOTH(nobody_looks)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	kernel_takes_ms = 3;
	for (i = 0; i < 10; i++)
		send1(s, 200);
	s->mute = true;
	run_ms(20);
	for (i = 0; i < 10; i++) {
		fake_now_ns += 7000 * LNX_NS_PER_MS;
		step();
		run_ms(i);
		cr_assert(!inside(s)->gone, "%u", i);
	}
	s->mute = false;
	run_ms(1000);
	close_clean();
}

/* ... and those who are no more are given up all the same. */
BOTH(nobody_looks_for_one_that_is_gone)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	kernel_takes_ms = 3;
	o = send_flags(s, 200, FI_DELIVERY_COMPLETE);
	black_hole(0);
	black_hole(1);
	for (i = 0; i < 20 && !inside(s)->gone; i++) {
		fake_now_ns += 2000 * LNX_NS_PER_MS;
		step();
	}
	cr_assert(inside(s)->gone);
	cr_expect_geq(i, 3u);
	cr_expect_eq(o->nerr, 1u);
	cr_expect_eq(o->err, FI_ETIMEDOUT);
	close_now();
}

/* Answers to what was asked about an earlier silence say nothing of this one. */
BOTH(late_answer)
{
	struct side *s = &side[0];
	struct lnx_hdr old;
	unsigned i;

	open_met(kind, 2, 1);
	s->no_pongs = s->no_acks = true;
	send1(s, 200);
	for (i = 0; i < 5000 && !s->nprobe[1]; i++)
		run_ms(1);
	old = s->probe[1];
	cr_assert_eq(old.kind, LNX_KIND_PROBE);
	/* The frame is there, it says so; its PONG takes another moment. */
	ack_on(s, 1);
	run_ms(5);
	cr_assert(all_there());
	/* Now one that is late because the peer computes. */
	s->nprobe[1] = 0;
	send1(s, 200);
	fake_passes(&f, 2);
	s->mute = true;
	for (i = 0; i < 200; i++) {
		run_ms(1);
		pong(s, 1, old.tag, old.data);
	}
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	close_clean();
}

/* ---- frames that the core still has ---- */

enum what { ACK, CORE_OK, CORE_ERR, CUT };

static void happen(enum what w)
{
	struct side *s = &side[0];
	unsigned i;

	switch (w) {
	case ACK:
		s->no_acks = s->no_pongs = false;
		s->owes = true;
		/* It is told over the living path, though that may have to
		 * bring them first. */
		for (i = 0; i < 50 && !all_there(); i++)
			run_ms(1);
		break;
	case CORE_OK:
		f.core[0]->hold_sends = false;
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, 0);
		run_ms(1);
		break;
	case CORE_ERR:
		f.core[0]->hold_sends = false;
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, FI_EIO);
		run_ms(1);
		break;
	case CUT:
		f.core[0]->hold_sends = false;
		kernel_alive[0] = true;
		for (i = 0; i < 5000 && f.core[0]->nopen == 1; i++)
			run_ms(1);
		cr_assert_gt(f.core[0]->nopen, 1u);
	}
}

static void held_sends(enum lnx_rail_kind kind, enum what one, enum what two,
		       bool flush)
{
	struct side *s = &side[0];
	struct op *o[6];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	seq = inside(s)->tx_next;
	s->no_acks = true;
	f.core[0]->hold_sends = true;
	black_hole(0);
	for (i = 0; i < 6; i++) {
		o[i] = send_flags(s, i & 2 ? 5000 : 100,
				  i & 1 ? FI_TRANSMIT_COMPLETE : 0);
		cr_assert_not_null(o[i]);
	}
	cr_assert_eq(fake_held(f.core[0]), 6u);
	RUN_UNTIL(left(s, 0), 5000);
	/* Their PONG acknowledged them, or will. */
	for (i = 0; i < 6; i++)
		cr_expect_leq(o[i]->ncomp, 1u);
	happen(one);
	for (i = 0; i < 6; i++)
		cr_expect_leq(o[i]->ncomp, 1u);
	happen(two);
	for (i = 0; i < 6; i++) {
		cr_expect_eq(o[i]->ncomp, 1u);
		cr_expect_geq(s->seen[seq + i], 1u);
	}
	close_clean();
}

BOTH(ack_then_core) { held_sends(kind, ACK, CORE_OK, false); }
BOTH(core_then_ack) { held_sends(kind, CORE_OK, ACK, false); }
BOTH(ack_then_error) { held_sends(kind, ACK, CORE_ERR, false); }
BOTH(error_then_ack) { held_sends(kind, CORE_ERR, ACK, false); }
BOTH(ack_then_reopen) { held_sends(kind, ACK, CUT, false); }
BOTH(reopen_then_ack) { held_sends(kind, CUT, ACK, false); }
BOTH(ack_then_reopen_with_errors) { held_sends(kind, ACK, CUT, true); }
BOTH(reopen_with_errors_then_ack) { held_sends(kind, CUT, ACK, true); }

/* Twins may have twins. */
BOTH(held_by_one_after_the_other)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;
	uint32_t seq;

	open_met(kind, 3, 1);
	seq = inside(s)->tx_next;
	for (i = 0; i < 2; i++) {
		f.core[i]->hold_sends = true;
		black_hole(i);
	}
	o = send_flags(s, 200, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(s->seen[seq], 5000);
	cr_expect_eq(s->seen[seq], 1u);
	RUN_UNTIL(o->ncomp, 100);
	cr_expect_gt(fake_held(f.core[0]), 0u);
	/* Their time comes at last, in the other order. */
	for (i = 2; i-- > 0; ) {
		f.core[i]->hold_sends = false;
		while (fake_held(f.core[i]))
			fake_finish(f.core[i], 0, i ? FI_EIO : 0);
		run_ms(1);
	}
	cr_expect_eq(o->ncomp, 1u);
	close_clean();
}

/* A payload that is the application's cannot be in two places. */
static void not_copied(enum lnx_rail_kind kind, enum what w, bool flush)
{
	struct side *s = &side[0];
	struct op *o;
	uint32_t seq;
	unsigned i;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	seq = inside(s)->tx_next;
	f.core[0]->hold_sends = true;
	black_hole(0);
	o = send1(s, 8000);
	cr_assert_eq(fake_held(f.core[0]), 1u);
	for (i = 0; i < 5000 && !left(s, 0); i++)
		run_ms(1);
	cr_assert(left(s, 0));
	run_ms(10);
	cr_expect_eq(s->seen[seq], 0u);
	cr_expect_eq(o->ncomp, 0u);
	happen(w);
	RUN_UNTIL(o->ncomp, 20000);
	cr_expect_geq(s->seen[seq], 1u);
	close_clean();
}

BOTH(not_copied_core) { not_copied(kind, CORE_OK, false); }
BOTH(not_copied_error) { not_copied(kind, CORE_ERR, false); }
BOTH(not_copied_reopen) { not_copied(kind, CUT, false); }
BOTH(not_copied_reopen_with_errors) { not_copied(kind, CUT, true); }

/* Nor can what comes behind it be delivered: the core is closed, though the network
 * is gone for good. */
BOTH(not_copied_in_a_black_hole)
{
	struct side *s = &side[0];
	struct op *o, *o2;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->hold_sends = true;
	black_hole(0);
	o = send1(s, 8000);
	o2 = send_flags(s, 100, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(o->ncomp && o2->ncomp, 5000);
	cr_expect(!f.core[0]->enabled);
	close_clean();
}

/* Acknowledged while the core has it still, and the core is closed: it has ended. */
static void acked_in_core(enum lnx_rail_kind kind, bool flush)
{
	struct side *s = &side[0];
	struct op *o, *o2;

	fake_conf.copy_limit = 1000;
	open_met(kind, 2, 1);
	f.core[0]->flush = flush;
	f.core[0]->hold_sends = true;
	o = send1(s, 8000);
	o2 = send_flags(s, 100, FI_TRANSMIT_COMPLETE);
	run_ms(5);			/* it has them, and says so */
	cr_assert_eq(inside(s)->tx_una, inside(s)->tx_next);
	cr_expect_eq(o->ncomp, 0u);	/* the core may read it yet */
	cr_expect_eq(o2->ncomp, 1u);
	leave0();
	happen(CUT);
	run_ms(5);
	cr_expect_eq(o->ncomp, 1u);
	cr_expect_eq(o2->ncomp, 1u);
	close_clean();
}

BOTH(acked_in_core_that_closes) { acked_in_core(kind, false); }
BOTH(acked_in_core_that_says_so) { acked_in_core(kind, true); }

/* ---- reads ---- */

static struct op *large_from(struct side *s)
{
	struct op *o = receive(s, LARGE);

	say(s, 1, LNX_KIND_RTS_TAG, ++s->next_tag);
	return o;
}

static unsigned port_told(const struct side *s, unsigned rail)
{
	struct sockaddr_in in;

	memcpy(&in, s->us.rail[rail].raw, sizeof(in));
	return ntohs(in.sin_port);
}

static void held_reads(enum lnx_rail_kind kind, bool flush, bool by_itself)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i, nhello;

	fake_conf.chunk = 65536;
	open_met(kind, 2, 1);
	nhello = s->nhello;
	f.core[0]->flush = flush;
	f.core[0]->hold_reads = true;
	o = large_from(s);
	step();
	cr_assert_gt(fake_held(f.core[0]), 0u);
	black_hole(0);
	for (i = 0; i < 5000 && !left(s, 0); i++)
		run_ms(1);
	cr_assert(left(s, 0));
	/* All but what hangs is there. */
	run_ms(10);
	cr_expect_eq(o->ncomp, 0u);
	cr_expect_eq(memcmp(o->buf, mem, LARGE), 0);
	cr_expect_eq(s->nhello, nhello);
	if (by_itself) {
		while (fake_held(f.core[0]))
			fake_finish(f.core[0], 0, i & 1 ? FI_EIO : 0);
		run_ms(5);
		cr_expect_eq(o->ncomp, 1u);
		cr_expect_eq(f.core[0]->nopen, 1u);
		close_clean();
		return;
	}
	RUN_UNTIL(o->ncomp, 2000);
	cr_expect_eq(fake_held(f.core[0]), 0u);
	/* Opening takes its time: not before somebody can be reached. */
	run_ms(3000);
	cr_expect(!f.core[0]->enabled);
	cr_expect_eq(f.core[0]->nopen, 1u);
	cr_expect_eq(s->nhello, nhello);
	heal(0);
	RUN_UNTIL(f.core[0]->enabled, 1000);
	cr_expect_eq(f.core[0]->nopen, 2u);
	cr_expect_eq(f.core[1]->nopen, 1u);
	run_ms(5);
	cr_expect_eq(s->nhello, nhello + 1);
	cr_expect_eq(s->us.nrail, 2u);
	cr_expect_eq(port_told(s, 0), OLD_PORT + 1);
	cr_expect_eq(port_told(s, 1), OLD_PORT);
	/* A newcomer sees the new one at once. */
	start_side(1);
	send1(&side[1], 100);
	RUN_UNTIL(side[1].nhello, 1000);
	cr_expect_eq(port_told(&side[1], 0), OLD_PORT + 1);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

BOTH(held_reads_end_with_the_core) { held_reads(kind, false, false); }
BOTH(held_reads_end_with_errors) { held_reads(kind, true, false); }
BOTH(held_reads_end_by_themselves) { held_reads(kind, false, true); }

/* ---- back again ---- */

BOTH(path_that_answers_is_used_again)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	leave0();
	run_ms(50);
	cr_expect_eq(s->nprobe[0], 0u);
	heal(0);
	RUN_UNTIL(!left(s, 0), 5000);
	cr_expect_gt(s->nprobe[0], 0u);
	cr_expect_eq(f.lnx->stats.paths_back, 1u);
	memset(s->nseen, 0, sizeof(s->nseen));
	for (i = 0; i < 100; i++)
		send1(s, 4000);
	step();
	cr_expect_gt(s->nseen[0], 0u);
	cr_expect_gt(s->nseen[1], 0u);
	close_clean();
}

BOTH(wrong_answers)
{
	struct side *s = &side[0];
	uint64_t last = 0;
	unsigned i, k;

	open_met(kind, 3, 1);
	leave0();
	s->no_pongs = true;
	heal(0);
	for (i = 0; i < 5; i++) {
		RUN_UNTIL(s->probe[0].tag && s->probe[0].data != last, 3000);
		/* Late. */
		if (last)
			pong(s, 0, 1, last);
		last = s->probe[0].data;
		/* Over others. */
		for (k = 1; k < 3; k++)
			pong(s, k, 1, last);
		/* Of others. */
		pong(s, 0, 2, last);
		pong(s, 0, 3, last);
		/* Wrong, and almost right. */
		pong(s, 0, 1, 0);
		pong(s, 0, 1, last + 1);
		pong(s, 0, 1, last | 1ull << 32);
		pong(s, 0, 1ull << 32 | 1, last);
		fake_passes(&f, 3);
		cr_expect(left(s, 0));
	}
	pong(s, 0, 1, last);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

BOTH(hostile_values)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 8, 9, 255, 256, 257, 1ull << 32, UINT64_MAX,
		INT64_MAX, 1ull << 63,
	};
	struct side *s = &side[0];
	unsigned i, k, r, n = LNX_ARRAY_SIZE(odd);

	open_met(kind, 2, 1);
	for (r = 0; r < 2; r++) {
		for (i = 0; i < n; i++) {
			for (k = 0; k < n; k++) {
				struct lnx_hdr h = {
					.kind = LNX_KIND_PROBE,
					.tag = odd[i], .data = odd[k],
					.key = odd[(i + k) % n],
				};

				from(s, k & 1, (uint32_t)odd[k], h, NULL, 0);
				h.kind = LNX_KIND_PONG;
				/* What it claims to have may only hurt itself. */
				h.key = 0;
				from(s, i & 1, (uint32_t)odd[k], h, NULL, 0);
				fake_pass(&f);
			}
			run_ms(1);
		}
		cr_expect_eq(f.lnx->stats.paths_left, r);
		cr_expect_eq(f.lnx->stats.paths_back, 0u);
		if (!r) {
			leave0();
			s->no_pongs = true;
		}
	}
	cr_expect(left(s, 0));
	close_clean();
}

/* A claim to have had more than ever was sent. */
BOTH(invented_news)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 64; i++) {
		send1(s, 200);
		from(s, 1, 0, (struct lnx_hdr) { .kind = LNX_KIND_PONG,
		     .tag = 1 + (i & 1), .key = 1ull << i }, NULL, 0);
		run_ms(1);
	}
	cr_expect(!inside(s)->gone);
	close_clean();
}

/* A question is answered the way it came, and by that way only. */
BOTH(answers)
{
	struct side *s = &side[0];
	struct fake_sent *m;
	unsigned i, n = 0;

	open_met(kind, 3, 1);
	from(s, 2, 0, (struct lnx_hdr) { .kind = LNX_KIND_PROBE, .tag = 1,
	     .data = 0x1234567890 }, NULL, 0);
	fake_passes(&f, 4);
	for (i = 0; i < 3; i++) {
		while ((m = fake_take(f.core[i]))) {
			if (m->h.kind == LNX_KIND_PONG) {
				n++;
				cr_expect_eq(i, 2u);
				cr_expect_eq(m->h.tag, 1u);
				cr_expect_eq(m->h.data, 0x1234567890u);
				cr_expect_eq(m->h.key, inside(s)->got[0]);
			}
			free(m);
		}
	}
	cr_expect_eq(n, 1u);
	close_clean();
}

/* ---- opening anew ---- */

static void move(struct side *s, unsigned rail, unsigned port)
{
	struct sockaddr_in in;

	memcpy(&in, s->p.where.rail[rail].raw, sizeof(in));
	in.sin_port = htons((uint16_t)port);
	memcpy(s->p.where.rail[rail].raw, &in, sizeof(in));
	cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
}

static unsigned port_used(const struct side *s, unsigned rail)
{
	struct sockaddr_in in;

	memcpy(&in, f.core[rail]->av_name[path_of(s, rail)->core_addr],
	       sizeof(in));
	return ntohs(in.sin_port);
}

/* The rail's core endpoint hangs with a read, and is closed. */
static struct op *force_reopen(struct side *s)
{
	struct op *o;

	f.core[0]->hold_reads = true;
	o = large_from(s);
	step();
	cr_assert_gt(fake_held(f.core[0]), 0u);
	black_hole(0);
	return o;
}

static void reopen_fails(enum lnx_rail_kind kind, uint32_t *script,
			 uint32_t times)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	*(uint32_t *)((char *)f.core[0] + (uintptr_t)script) = times;
	RUN_UNTIL(o->ncomp, 3000);
	if (times == FAKE_ALWAYS) {
		cr_expect(!f.core[0]->enabled);
		cr_expect_null(f.lnx->rail[0]->core_ep);
	}
	/* Others go on. */
	for (i = 0; i < 200; i++) {
		send1(s, 200);
		receive(s, 8);
		say(s, 1, LNX_KIND_TAG, ++s->next_tag);
		run_ms(20);
	}
	if (times == FAKE_ALWAYS)
		cr_expect(!f.core[0]->enabled);
	*(uint32_t *)((char *)f.core[0] + (uintptr_t)script) = 0;
	heal(0);
	f.core[0]->hold_reads = false;
	RUN_UNTIL(!left(s, 0), 5000);
	cr_expect(f.core[0]->enabled);
	close_clean();
}

#define SCRIPT(member)	((uint32_t *)offsetof(struct fake_core, member))

BOTH(fi_endpoint_fails_once) { reopen_fails(kind, SCRIPT(ep_fails), 1); }
BOTH(fi_enable_fails_once) { reopen_fails(kind, SCRIPT(enable_fails), 1); }
BOTH(fi_endpoint_fails) { reopen_fails(kind, SCRIPT(ep_fails), FAKE_ALWAYS); }
BOTH(fi_enable_fails) { reopen_fails(kind, SCRIPT(enable_fails), FAKE_ALWAYS); }

/* While a rail cannot be opened: */
static void without_core(enum lnx_rail_kind kind, unsigned sides)
{
	struct op *o;

	open_met(kind, 2, sides);
	o = force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(o->ncomp, 3000);
	cr_assert_null(f.lnx->rail[0]->core_ep);
}

/* ... somebody comes, whom it would lead to; */
BOTH(newcomer_while_closed)
{
	unsigned i;

	without_core(kind, 1);
	start_side(1);
	start_side(2);
	for (i = 0; i < 20; i++) {
		send1(&side[1], 4000);
		send1(&side[2], 4000);
		if (i % 10 == 0)
			run_ms(10);
	}
	RUN_UNTIL(all_there(), 3000);
	cr_expect_eq(side[1].nseen[0] + side[2].nseen[0], 0u);
	close_clean();
}

/* ... a peer says that its end is elsewhere now; */
BOTH(hello_while_closed)
{
	struct side *s = &side[1];
	unsigned i;

	without_core(kind, 2);
	move(s, 0, 7777);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(1);
	for (i = 0; i < 50; i++)
		send1(s, 4000);
	RUN_UNTIL(all_there(), 3000);
	cr_expect_eq(s->nseen[0], 0u);
	cr_expect_eq(port_used(s, 0), 7777u);
	close_clean();
}

/* ... another has frames for it, */
BOTH(another_while_closed)
{
	unsigned i;

	open_met(kind, 2, 2);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	for (i = 0; i < 50; i++) {
		send1(&side[1], 4000);
		run_ms(5);
	}
	cr_expect(all_there());
	close_clean();
}

/* ... whom it was closed for is no more, */
BOTH(nobody_while_closed)
{
	without_core(kind, 2);
	lnx_lock(&f.lnx->lock);
	lnx_tx_peer_failed(inside(&side[0]), FI_ETIMEDOUT);
	lnx_unlock(&f.lnx->lock);
	run_ms(2000);
	f.core[0]->ep_fails = 0;
	heal(0);
	RUN_UNTIL(f.core[0]->enabled, 3000);
	send1(&side[1], 100);
	RUN_UNTIL(all_there_of(&side[1]), 1000);
	cr_expect_eq(port_told(&side[1], 0), OLD_PORT + 1);
	close_now();
}

/* ... there is no other for somebody, */
BOTH(no_other_while_closed)
{
	struct side *s = NULL;
	struct op *o;
	unsigned i;

	fake_conf.connect_timeout = 1000;
	open_met(kind, 2, 1);
	fake_conf.max_rails = 1;
	for (i = 1; i < 3; i++) {
		start_side(i);
		send1(&side[i], 100);
		RUN_UNTIL(side[i].p.got == 2, 1000);
		/* They take turns. */
		if (inside(&side[i])->path[0].rail == f.lnx->rail[0])
			s = &side[i];
	}
	fake_conf.max_rails = 8;
	cr_assert_not_null(s);
	cr_assert_eq(inside(s)->npath, 1u);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	o = send_flags(s, 100, FI_DELIVERY_COMPLETE);
	RUN_UNTIL(o->nerr, 5000);
	cr_expect(!inside(&side[0])->gone);
	close_now();
}

/* ... or reads. */
BOTH(reads_while_closed)
{
	struct op *o;

	open_met(kind, 2, 2);
	force_reopen(&side[0]);
	f.core[0]->ep_fails = FAKE_ALWAYS;
	RUN_UNTIL(!f.core[0]->enabled, 3000);
	o = large_from(&side[1]);
	RUN_UNTIL(o->ncomp, 1000);
	close_clean();
}

/* All that others have on the rail gets there. */
static void several_peers(enum lnx_rail_kind kind, bool flush)
{
	struct op *o;
	unsigned i, k;

	open_met(kind, 2, 3);
	f.core[0]->flush = flush;
	f.core[0]->hold_sends = true;
	o = force_reopen(&side[0]);
	for (i = 1; i < 3; i++)
		side[i].no_pongs = true;	/* nobody to blame */
	for (k = 0; k < 30; k++)
		for (i = 1; i < 3; i++)
			cr_assert_not_null(send_flags(&side[i], 100 + k * 100,
				k & 1 ? FI_DELIVERY_COMPLETE : 0));
	RUN_UNTIL(f.core[0]->nopen == 2, 3000);
	f.core[0]->hold_sends = f.core[0]->hold_reads = false;
	heal(0);
	/* They were handed to the new one at once. */
	fake_finish_all(f.core[0]);
	RUN_UNTIL(o->ncomp && all_there(), 3000);
	for (i = 0; i < 3; i++)
		cr_expect_eq(port_told(&side[i], 0), OLD_PORT + 1);
	close_clean();
}

BOTH(several_peers_cut_off) { several_peers(kind, false); }
BOTH(several_peers_cut_off_with_errors) { several_peers(kind, true); }

/* ---- peers whose rails were opened anew ---- */

BOTH(moved)
{
	struct side *s = &side[0];
	fi_addr_t first, second;
	unsigned i;

	open_met(kind, 2, 2);
	first = path_of(s, 0)->core_addr;
	second = path_of(s, 1)->core_addr;
	move(s, 1, 7001);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(path_of(s, 0)->core_addr, first);
	cr_expect_neq(path_of(s, 1)->core_addr, second);
	cr_expect_eq(port_used(s, 1), 7001u);
	cr_expect(f.core[1]->av_gone[second]);
	cr_expect_eq(f.core[1]->nav_in, 2u);
	/* The core asserts that nothing goes to the old one. */
	for (i = 0; i < 100; i++)
		send1(s, 4000);
	run_ms(10);
	cr_expect_gt(s->nseen[1], 0u);
	cr_expect_eq(s->dest[1], path_of(s, 1)->core_addr);
	/* The other peer is where it was. */
	cr_expect_eq(port_used(&side[1], 1), 5000 + 0x2222u);
	close_clean();
}

/* While nothing can be sent to where it was, nor to where it is now. */
BOTH(moves_while_connecting)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++)
		f.core[i]->send_again = FAKE_ALWAYS;
	for (i = 0; i < 10; i++) {
		send1(s, 200);
		run_ms(1);
	}
	for (i = 0; i < 2; i++)
		move(s, i, 7000 + i);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(20);
	for (i = 0; i < 2; i++)
		f.core[i]->send_again = 0;
	close_clean();
}

BOTH(moves_all_the_time)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 300; i++) {
		move(s, i & 1, 6000 + i);
		if (i % 3 == 2)
			move(s, !(i & 1), 9000 + i);
		say(s, i & 1, LNX_KIND_HELLO, 0);
		if (i % 5 == 0)
			say(s, i & 1, LNX_KIND_HELLO, 0);	/* the same */
		run_ms(1);
		cr_assert_eq(f.core[0]->nav_in, 1u);
		cr_assert_eq(f.core[1]->nav_in, 1u);
		send1(s, 300);
	}
	close_clean();
}

BOTH(hostile_hellos)
{
	struct side *s = &side[0];
	struct lnx_addr good;
	fi_addr_t at[2];
	unsigned i;

	open_met(kind, 2, 1);
	good = s->p.where;
	for (i = 0; i < 2; i++)
		at[i] = path_of(s, i)->core_addr;
	for (i = 0; i < 4; i++) {
		s->p.where = good;
		move(s, 0, 7000 + i);
		move(s, 1, 7000 + i);
		switch (i) {
		case 0:
			s->p.where.nrail = 0;
			break;
		case 1:
			s->p.where.rail[0].prov = s->p.where.rail[1].prov =
				LNX_PROV_SOCKETS;
			break;
		case 2:
			s->p.where.bare = true;
			break;
		default:
			s->p.where.eid = 77;
		}
		cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
		say(s, 0, LNX_KIND_HELLO, 0);
		run_ms(2);
		cr_expect_eq(path_of(s, 0)->core_addr, at[0], "%u", i);
		cr_expect_eq(path_of(s, 1)->core_addr, at[1], "%u", i);
	}
	/* Fewer: those that are there. */
	s->p.where = good;
	move(s, 0, 8000);
	s->p.where.nrail = 1;
	cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 8000u);
	cr_expect_eq(path_of(s, 1)->core_addr, at[1]);
	/* No place for it. */
	s->p.where = good;
	move(s, 0, 8001);
	f.core[0]->av_fails = 1;
	say(s, 0, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 8000u);
	close_clean();
}

/* ---- the end, in all of these states ---- */

static void close_in(enum lnx_rail_kind kind, unsigned state, bool flush)
{
	struct side *s = &side[0];
	struct op *o;

	fake_conf.copy_limit = state & 1 ? 1000 : 16320;
	fake_conf.chunk = 65536;
	open_met(kind, 2, 2);
	f.core[0]->flush = f.core[1]->flush = flush;
	f.core[0]->hold_sends = true;
	o = force_reopen(s);
	send1(s, 8000);
	send1(s, 100);
	send1(&side[1], 8000);
	receive(&side[1], 8);
	if (state >= 2)
		RUN_UNTIL(left(s, 0), 5000);
	if (state >= 4) {
		f.core[0]->ep_fails = state >= 6 ? FAKE_ALWAYS : 0;
		RUN_UNTIL(f.core[0]->enabled == (state < 6) &&
			  (f.core[0]->nopen == 2 || state >= 6), 2000);
	}
	if (state == 8) {
		lnx_lock(&f.lnx->lock);
		lnx_tx_peer_failed(inside(s), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
		run_ms(10);
	}
	(void)o;
	close_now();
	memset(slot_used, 0, sizeof(slot_used));
	heal(0);
}

BOTH(close_in_all_states)
{
	unsigned i;

	for (i = 0; i < 10; i++) {
		close_in(kind, i, false);
		close_in(kind, i, true);
	}
}

BOTH(cancel)
{
	struct side *s = &side[0];
	struct op *o, *c;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	c = receive(s, 8);
	RUN_UNTIL(left(s, 0), 5000);
	/* The one is on its way, and cannot be taken back; the other can. */
	fi_cancel(&f.ep->fid, o);
	fi_cancel(&f.ep->fid, c);
	run_ms(1);
	cr_expect_eq(o->ncomp + o->nerr, 0u);
	cr_expect_eq(c->nerr, 1u);
	cr_expect_eq(c->err, FI_ECANCELED);
	c->nerr = 0;
	c->ncomp = 1;
	RUN_UNTIL(o->ncomp, 2000);
	close_clean();
}

/* It is gone; what its reads wrote to is the application's again some day. */
static void reader_of_one_that_goes(enum lnx_rail_kind kind, bool bye)
{
	struct side *s = &side[0];
	struct op *o;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	RUN_UNTIL(left(s, 0), 5000);
	if (bye) {
		from(s, 1, s->p.seq, (struct lnx_hdr) { .kind = LNX_KIND_BYE },
		     NULL, 0);
	} else {
		lnx_lock(&f.lnx->lock);
		lnx_tx_peer_failed(inside(s), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
	}
	RUN_UNTIL(o->ncomp + o->nerr, 5000);
	cr_expect_eq(fake_held(f.core[0]), 0u);
	close_now();
}

BOTH(reads_of_one_that_says_goodbye) { reader_of_one_that_goes(kind, true); }
BOTH(reads_of_one_that_failed) { reader_of_one_that_goes(kind, false); }

/* ---- links ---- */

static void link_is(unsigned rail, bool up)
{
	lnx_lock(&f.lnx->lock);
	lnx_guard_link(f.lnx->rail[rail], up, lnx_clock_ns());
	lnx_unlock(&f.lnx->lock);
}

/* It needs no asking, and the peer hears of it. */
BOTH(link_goes_down)
{
	struct side *s = &side[0];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	seq = inside(s)->tx_next;
	black_hole(0);
	for (i = 0; i < 5; i++)
		send1(s, 200);
	link_is(0, false);
	cr_expect(left(s, 0));
	step();
	cr_expect_eq(s->nprobe[1], 0u);
	for (i = 0; i < 5; i++)
		cr_expect_eq(s->seen[seq + i], 1u);
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, 0u);
	run_ms(3000);
	cr_expect_eq(s->nprobe[0], 0u);
	heal(0);
	link_is(0, true);
	run_ms(1);
	cr_expect_eq(s->nrail, 2u);
	cr_expect_eq(s->rail.data, 1u);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* So it does if no core takes that at once. */
BOTH(link_goes_down_and_cores_are_busy)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	black_hole(0);
	f.core[1]->inject_again = 3;
	link_is(0, false);
	link_is(0, true);
	link_is(0, false);
	cr_expect_eq(s->nrail, 0u);
	RUN_UNTIL(s->nrail, 100);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, 0u);
	run_ms(100);
	cr_expect_eq(s->nrail, 1u);
	heal(0);
	link_is(0, true);
	RUN_UNTIL(s->nrail == 2, 100);
	cr_expect_eq(s->rail.data, 1u);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* Even so, what it was to read ends. */
BOTH(reads_of_a_link_that_goes_down)
{
	struct side *s = &side[0];
	struct op *o;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	link_is(0, false);
	RUN_UNTIL(o->ncomp, 3000);
	cr_expect(!f.core[0]->enabled);
	cr_expect(left(s, 0));
	run_ms(5000);
	cr_expect(!f.core[0]->enabled);
	cr_expect(left(s, 0));
	heal(0);
	link_is(0, true);
	RUN_UNTIL(!left(s, 0), 5000);
	cr_expect_eq(f.core[0]->nopen, 2u);
	close_clean();
}

/* The same at the peer's. */
BOTH(link_of_the_peer)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_RAIL, .tag = 0 };
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 2);
	seq = inside(s)->tx_next;
	black_hole(0);
	for (i = 0; i < 5; i++)
		send1(s, 200);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(left(s, 0));
	cr_expect(!left(&side[1], 0));
	step();
	for (i = 0; i < 5; i++)
		cr_expect_eq(s->seen[seq + i], 1u);
	heal(0);
	h.data = 1;
	from(s, 1, 0, h, NULL, 0);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* It said so over a connection that was lost: what answers is used again. */
BOTH(link_of_the_peer_is_up_and_nobody_says_so)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_RAIL, .tag = 0 };
	unsigned i;

	open_met(kind, 2, 1);
	black_hole(0);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(left(s, 0));
	/* As long as it is not, it stays left. */
	for (i = 0; i < 5; i++) {
		send1(s, 200);
		run_ms(1000);
		cr_expect(left(s, 0));
	}
	heal(0);
	RUN_UNTIL(!left(s, 0), 5000);
	/* Said again, it counts again. */
	black_hole(0);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(left(s, 0));
	heal(0);
	h.data = 1;
	from(s, 1, 0, h, NULL, 0);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* Rails that it has not; down twice; up without having been down. */
BOTH(hostile_notices)
{
	static const uint64_t odd[] = {
		2, 3, 8, 255, 65535, 65536, 65537, 1ull << 32, UINT64_MAX,
	};
	struct side *s = &side[0];
	unsigned i, k;

	open_met(kind, 2, 1);
	for (i = 0; i < LNX_ARRAY_SIZE(odd); i++) {
		for (k = 0; k < 2; k++) {
			from(s, k, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
			     .tag = odd[i], .data = k ? UINT64_MAX : 0,
			     .len = odd[i], .key = odd[i] }, NULL, 0);
			run_ms(1);
		}
	}
	from(s, 0, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL, .tag = 1,
	     .data = 1 }, NULL, 0);
	run_ms(1);
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	/* Those that it has: all of them, down for good, as it says. */
	for (k = 0; k < 4; k++)
		from(s, k & 1, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
		     .tag = k & 1 }, NULL, 0);
	run_ms(100);
	for (k = 0; k < 2; k++)
		from(s, 0, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
		     .tag = k, .data = 1 }, NULL, 0);
	close_clean();
}

/* ---- by hand ---- */

static char reply[8192];

static void ask(const char *text)
{
	ssize_t n = lnx_ctl_request(f.lnx, text, reply, sizeof(reply));

	cr_assert_geq(n, 0, "%s: %s", text, reply);
	cr_assert_eq((size_t)n, strlen(reply));
}

static void set_rail(unsigned rail, const char *value)
{
	char text[256];

	snprintf(text, sizeof(text), "health %s %s %s", value ? "set" : "auto",
		 f.lnx->rail[rail]->name, value ? value : "");
	ask(text);
}

static unsigned seen_more(const struct side *s, unsigned rail, unsigned n)
{
	unsigned before = s->nseen[rail], i;

	for (i = 0; i < n; i++) {
		send1(&side[s - side], 200);
		run_ms(3);
	}
	return s->nseen[rail] - before;
}

/* It carries nothing, says so again and again, and returns when it answers. */
BOTH(rail_is_set_to_0)
{
	struct side *s = &side[0];
	unsigned told;

	open_met(kind, 2, 2);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	set_rail(0, "0");
	cr_expect(left(s, 0) && left(&side[1], 0));
	ask("health list");
	cr_expect(strstr(reply, " health 0 down by-hand\n"), "%s", reply);
	cr_expect(strstr(reply, " to 0 health 1000 spare "), "%s", reply);
	step();
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_SPARE);
	cr_expect_eq(seen_more(s, 0, 20), 0u);
	told = s->nrail;
	run_ms(5000);
	cr_expect(left(s, 0));
	cr_expect_geq(s->nrail - told, 10u);
	cr_expect_eq(s->nprobe[0], 0u);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	/* Not before it answers. */
	black_hole(0);
	set_rail(0, NULL);
	run_ms(50);
	cr_expect(left(s, 0));
	cr_expect_eq(s->rail.data, (uint64_t)LNX_WIRE_RAIL_UP);
	heal(0);
	RUN_UNTIL(!left(s, 0) && !left(&side[1], 0), 10000);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	ask("health list");
	cr_expect(!strstr(reply, "by-hand"), "%s", reply);
	run_ms(1000);
	told = s->nrail;
	run_ms(2000);
	cr_expect_eq(s->nrail, told);
	close_clean();
}

/* Where there is nothing else it is used, until there is. */
BOTH(rail_is_set_to_0_and_the_other_fails)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "0");
	cr_expect(left(s, 0));
	black_hole(1);
	link_is(1, false);
	send1(s, 200);
	RUN_UNTIL(!left(s, 0), 5000);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	heal(1);
	link_is(1, true);
	RUN_UNTIL(!left(s, 1), 20000);
	run_ms(5);
	cr_expect(left(s, 0));
	cr_expect_eq(seen_more(s, 0, 5), 0u);
	set_rail(0, NULL);
	RUN_UNTIL(!left(s, 0), 10000);
	close_clean();
}

/* The same when nothing but silence tells: the one that is spared can still ask. */
BOTH(rail_is_set_to_0_and_the_other_falls_silent)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "0");
	cr_expect(left(s, 0));
	black_hole(1);
	send1(s, 200);
	RUN_UNTIL(!left(s, 0), 5000);
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	heal(1);
	set_rail(0, NULL);
	close_clean();
}

/* All of them: as if it had not been said. */
BOTH(all_rails_are_set_to_0)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	ask("health set * 0");
	run_ms(10);
	cr_expect(!left(s, 0) && !left(s, 1));
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	ask("health set *@* 1@* 500");
	ask("health auto all");
	ask("health list");
	cr_expect(!strstr(reply, "by-hand"), "%s", reply);
	run_ms(10);
	close_clean();
}

/* The path to one peer, and one peer's rail. */
BOTH(part_of_a_peer_is_set_to_0)
{
	struct side *s = &side[0];
	char text[256];

	open_met(kind, 2, 2);
	snprintf(text, sizeof(text), "health set %s@%016llx 0",
		 f.lnx->rail[0]->name, (unsigned long long)s->p.eid);
	ask(text);
	cr_expect(left(s, 0) && !left(&side[1], 0));
	snprintf(text, sizeof(text), "health set 0@%llu 0",
		 (unsigned long long)side[1].p.addr);
	ask(text);
	cr_expect(left(s, 0) && left(&side[1], 0));
	run_ms(2000);
	cr_expect(left(s, 0) && left(&side[1], 0));
	cr_expect_eq(s->nrail, 0u);
	ask("health auto *@* 0@*");
	RUN_UNTIL(!left(s, 0) && !left(&side[1], 0), 10000);
	close_clean();
}

/* Frames go over what is worth more; failures do not change what it is worth. */
BOTH(rails_are_worth_something)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	set_rail(0, "400");
	cr_expect(!left(s, 0));
	cr_expect_eq(seen_more(s, 0, 5), 0u);
	cr_expect_eq(seen_more(s, 1, 5), 5u);
	lnx_lock(&f.lnx->lock);
	lnx_guard_blame(inside(s), path_of(s, 0), LNX_CLASS_LOCAL_ERROR,
			lnx_clock_ns());
	lnx_unlock(&f.lnx->lock);
	cr_expect_eq(f.lnx->rail[0]->health.value, 400u);
	set_rail(1, "300");
	cr_expect_eq(seen_more(s, 0, 5), 5u);
	set_rail(1, "0");
	set_rail(0, NULL);
	cr_expect(left(s, 1));
	set_rail(1, "1000");
	RUN_UNTIL(!left(s, 1), 10000);
	close_clean();
}

/* Whom it meets then does not come to use it. */
BOTH(newcomer_where_a_rail_is_set_to_0)
{
	unsigned i;

	open_n(kind, 2, 1);
	set_rail(0, "0");
	for (i = 0; i < 5; i++)
		send1(&side[0], 200);
	run_ms(20);
	cr_expect_eq(side[0].nseen[0], 0u);
	cr_expect_geq(side[0].nseen[1], 6u);
	cr_expect(left(&side[0], 0));
	set_rail(0, NULL);
	RUN_UNTIL(!left(&side[0], 0), 10000);
	close_clean();
}

/* The peer says so of its own: as long as it does. */
BOTH(peer_does_not_want_a_rail)
{
	struct side *s = &side[0];
	struct lnx_hdr h = {
		.kind = LNX_KIND_RAIL, .tag = 0, .data = LNX_WIRE_RAIL_SPARE,
	};
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 20; i++) {
		from(s, 1, 0, h, NULL, 0);
		fake_pass(&f);
		cr_expect_eq(seen_more(s, 0, 50), 0u);
		cr_expect(left(s, 0));
	}
	ask("health list");
	cr_expect(strstr(reply, " by-peer\n"), "%s", reply);
	RUN_UNTIL(!left(s, 0), 10000);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(left(s, 0));
	h.data = LNX_WIRE_RAIL_UP;
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	RUN_UNTIL(!left(s, 0), 10000);
	close_clean();
}

/* Any time, with frames and reads on their way. */
BOTH(set_under_traffic)
{
	struct side *s = &side[0];
	struct op *o[4];
	unsigned i, k;

	open_met(kind, 2, 1);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < 4; k++)
			o[k] = large_from(s);
		for (k = 0; k < 10; k++)
			send1(s, 200);
		step();
		set_rail(i & 1, i & 2 ? NULL : "0");
		for (k = 0; k < 4; k++)
			RUN_UNTIL(o[k]->ncomp, 20000);
	}
	ask("health auto all");
	RUN_UNTIL(!left(s, 0) && !left(s, 1), 10000);
	cr_expect_eq(f.lnx->stats.reopened, 0u);
	close_clean();
}

/* ---- nobody calls: the application sleeps, or computes ---- */

static struct lnx_netwatch *watch_links(void)
{
	struct lnx_netwatch *w = fake_watch_open();
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < nrail; i++) {
		struct lnx_rail *rail = f.lnx->rail[i];

		rail->ifindex = 10 + i;
		fake_watch_link(w, 10 + i, i ? "b" : "a", true);
		fake_watch_addr(w, 10 + i, rail->addr, rail->addrlen, true);
	}
	while (lnx_netwatch_next(w, &ev) == 1)
		;
	/* This host's own are of no interest. */
	lnx_links_close(f.lnx);
	f.lnx->netwatch = w;
	return w;
}

/* Nothing is due, and who is about to sleep hears of it. */
BOTH(link_goes_down_before_a_sleep)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	cr_expect(!lnx_ep_look(f.lnx, false));
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	lnx_ep_look(f.lnx, false);
	cr_expect(left(s, 0));
	world();
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.data, 0u);
	/* Nobody looks after the path but who calls. */
	cr_expect(lnx_ep_look(f.lnx, false));
	heal(0);
	fake_watch_link(w, 10, "a", true);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* ---- RDMA devices ---- */

static struct device {
	struct lnx_netwatch base;
	unsigned events;
	bool up, taken_away;
} device;

static int device_next(struct lnx_netwatch *w, struct lnx_net_event *ev)
{
	(void)w;
	memset(ev, 0, sizeof(*ev));
	ev->what = device.taken_away ? LNX_NET_GONE : LNX_NET_LINK;
	ev->up = device.up;
	if (device.events) {
		device.events--;
		return 1;
	}
	return device.taken_away ? -ENODEV : 0;
}

static int device_look(struct lnx_netwatch *w, uint32_t ifindex,
		       const char *name, const void *addr, size_t addrlen,
		       struct lnx_net_state *now)
{
	(void)w, (void)addr, (void)addrlen;
	cr_assert_eq(ifindex, 0);
	cr_assert_null(name);
	memset(now, 0, sizeof(*now));
	now->up = device.up;
	return device.taken_away ? -ENODEV : 0;
}

static void device_close(struct lnx_netwatch *w)
{
	(void)w;
}

static void add_device(unsigned rail)
{
	static const struct lnx_netwatch_ops ops = {
		.next = device_next, .look = device_look,
		.close = device_close,
	};

	device = (struct device){ .base = { .ops = &ops, .fd = -1 },
				  .up = true };
	f.lnx->rail[rail]->devwatch = &device.base;
}

/* Its interface looks as good as ever. */
BOTH(port_of_a_device_goes_down)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	run_ms(200);
	watch_links();
	add_device(0);
	lnx_ep_look(f.lnx, false);
	cr_expect(!left(s, 0));
	black_hole(0);
	device.up = false;
	device.events = 1;
	lnx_ep_look(f.lnx, false);
	cr_expect(left(s, 0));
	cr_expect(!left(s, 1));
	world();
	cr_expect_eq(s->nrail, 1u, "the peer is told");
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	device.up = true;
	device.events = 1;
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

BOTH(device_is_taken_away)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	add_device(0);
	black_hole(0);
	device.taken_away = true;
	device.events = 1;
	lnx_ep_look(f.lnx, false);
	cr_expect(left(s, 0));
	cr_expect(f.lnx->rail[0]->devgone, "it is not polled any more");
	heal(0);
	/* An interface may be there, without what the rail stands on. */
	fake_watch_link(w, 10, "a", true);
	lnx_ep_look(f.lnx, false);
	cr_expect(f.lnx->rail[0]->link_down);
	cr_expect(!f.lnx->rail[1]->link_down);
	close_clean();
}

/* Who only receives owes nothing, and is the one who knows. */
BOTH(link_goes_down_where_messages_come_in)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;
	struct op *o;

	open_met(kind, 2, 1);
	run_ms(3000);
	w = watch_links();
	o = receive(s, 8);
	say(s, 0, LNX_KIND_TAG, ++s->next_tag);
	RUN_UNTIL(o->ncomp && all_there(), 100);
	run_ms(20);
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	RUN_UNTIL(s->nrail, 10);
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	fake_watch_link(w, 10, "a", true);
	RUN_UNTIL(!left(s, 0), 5000);
	close_clean();
}

/* Even if he has never said anything himself. */
BOTH(link_goes_down_of_one_who_only_receives)
{
	struct side *s = &side[0];
	struct op *o;

	open_n(kind, 2, 1);
	o = receive(s, 8);
	say(s, 0, LNX_KIND_HELLO, 0);
	say(s, 0, LNX_KIND_TAG, ++s->next_tag);
	RUN_UNTIL(o->ncomp, 100);
	run_ms(20);
	cr_assert_eq(s->nhello, 0u);
	black_hole(0);
	link_is(0, false);
	RUN_UNTIL(s->nrail, 10);
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	link_is(0, true);
	RUN_UNTIL(!left(s, 0), 5000);
	close_now();
}

/* Both that a link goes down and what is to be done later wake the helper thread. */
BOTH(link_goes_down_while_nobody_calls)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;
	bool is = false;
	unsigned i;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	f.lnx->lock.on = f.domain.mr_lock.on = true;
	f.lnx->tx_cq->lock.on = f.lnx->rx_cq->lock.on = true;
	cr_assert_eq(lnx_thread_start(f.lnx), 0);
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	for (i = 0; i < 20000 && !is; i++) {
		usleep(1000);
		lnx_lock(&f.lnx->lock);
		is = left(s, 0);
		lnx_unlock(&f.lnx->lock);
	}
	cr_assert(is);
	/* So the application may sleep. */
	cr_expect(!lnx_ep_look(f.lnx, false));
	/* Time goes on for it, as far as it looks. */
	heal(0);
	fake_watch_link(w, 10, "a", true);
	for (i = 0; i < 20000 && is; i++) {
		usleep(1000);
		lnx_lock(&f.lnx->lock);
		fake_now_ns += LNX_NS_PER_MS;
		world();
		is = left(s, 0);
		lnx_unlock(&f.lnx->lock);
	}
	cr_assert(!is);
	lnx_thread_stop(f.lnx);
	close_clean();
}

/* With nowhere to go there is no going. */
BOTH(all_left)
{
	struct side *s = &side[0];
	unsigned i;

	open_met(kind, 2, 1);
	for (i = 0; i < 2; i++)
		black_hole(i);
	send1(s, 200);
	for (i = 0; i < 2; i++)
		link_is(i, false);
	/* Something has to be acknowledged, and no core takes it. */
	lost_from[1] = false;
	say(s, 1, LNX_KIND_TAG, ++s->next_tag);
	receive(s, 8);
	f.core[0]->inject_again = f.core[1]->inject_again = FAKE_ALWAYS;
	for (i = 0; i < 20; i++) {
		run_ms(100);
		cr_assert(left(s, 0));
		cr_assert(left(s, 1));
	}
	cr_expect_eq(s->nseen[0] + s->nseen[1], 0u);
	for (i = 0; i < 2; i++) {
		f.core[i]->inject_again = 0;
		heal(i);
		link_is(i, true);
	}
	close_clean();
}

/* All networks are silent, so long that connections try again only later. */
static struct op *all_silent(struct side *s)
{
	struct op *o;
	unsigned i;

	for (i = 0; i < 2; i++)
		black_hole(i);
	o = send1(s, 200);
	RUN_UNTIL(left(s, 0) && left(s, 1), 2000);
	run_ms(2000);
	return o;
}

/*
 * They hang, and kernels answer.  Rails are opened anew where the peer knows them: with
 * no other path nobody could tell him of another place, and he may move as well.
 */
BOTH(all_silent_and_connections_hang)
{
	struct side *s = &side[0];
	struct op *o;
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	o = all_silent(s);
	cr_expect_eq(f.core[0]->nopen + f.core[1]->nopen, 2u);
	kernel_alive[0] = kernel_alive[1] = true;
	RUN_UNTIL(f.core[0]->nopen == 2 && f.core[1]->nopen == 2, 500);
	for (i = 0; i < 2; i++) {
		cr_expect_eq(f.core[i]->port, (unsigned)OLD_PORT);
		heal(i);
	}
	RUN_UNTIL(!left(s, 0) && !left(s, 1), 2000);
	RUN_UNTIL(o->ncomp, 100);
	close_clean();
}

/* A rail has moved, and the path over which that was told has failed, too. */
static void move_untold(struct side *s, bool heard)
{
	struct op *o = force_reopen(s);
	uint32_t seq = inside(s)->tx_next;

	/* While there is another path there is nothing against that. */
	f.core[0]->hold_reads = false;
	RUN_UNTIL(left(s, 0), 1000);
	kernel_alive[0] = true;
	lost_to[1] = !heard;
	RUN_UNTIL(f.core[0]->port == OLD_PORT + 1, 1000);
	kernel_alive[0] = false;
	RUN_UNTIL(o->ncomp, 1000);
	if (heard) {
		RUN_UNTIL(port_told(s, 0) == OLD_PORT + 1, 100);
		RUN_UNTIL((int32_t)(inside(s)->tx_una - seq) > 0, 100);
		run_ms(10);
	}
}

/* The peer never hears of it: it goes back to where he looks for it. */
BOTH(all_silent_before_the_peer_is_told)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, false);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	run_ms(500);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* So it does where its host says that the peer is not there: it has moved as well. */
BOTH(all_silent_and_both_have_moved)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, false);
	kernel_refuses[0] = true;
	all_silent(s);
	RUN_UNTIL(f.core[0]->port == OLD_PORT, 1500);
	/* And stays: the peer comes there. */
	run_ms(1200);
	cr_expect_eq(f.core[0]->port, (unsigned)OLD_PORT);
	kernel_refuses[0] = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* Who knows the new place looks for it there. */
BOTH(all_silent_after_the_peer_was_told)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	move_untold(s, true);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->nopen == 3, 1500);
	cr_expect_eq(f.core[0]->port, OLD_PORT + 1u);
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* He may not have moved, and believe in a connection of before: other places do, too,
 * but not for long. */
BOTH(all_silent_and_the_peer_does_not_move)
{
	struct side *s = &side[0];
	unsigned i, other = 0, old = 0, ms;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = true;
	for (ms = 0; ms < 12000; ms++) {
		other += f.core[0]->port != OLD_PORT;
		old += f.core[0]->port == OLD_PORT;
		run_ms(1);
	}
	cr_expect_gt(other, 1000u);
	cr_expect_gt(old, 4000u);
	/* There the peer is told by the rail itself. */
	RUN_UNTIL(f.core[0]->port != OLD_PORT, 5000);
	s->probe[0] = (struct lnx_hdr) { .kind = 0 };
	for (i = 0; i < 2; i++)
		heal(i);
	RUN_UNTIL(!left(s, 0), 1000);
	cr_expect_eq(port_told(s, 0), f.core[0]->port);
	close_clean();
}

/* The peer is not where he said that he moved to: perhaps he went back. */
BOTH(all_silent_and_the_peer_is_back)
{
	struct side *s = &side[0];
	unsigned before, i, nopen;

	open_met(kind, 2, 1);
	before = port_used(s, 0);
	move(s, 0, 7001);
	say(s, 1, LNX_KIND_HELLO, 0);
	run_ms(2);
	cr_expect_eq(port_used(s, 0), 7001u);
	all_silent(s);
	nopen = f.core[0]->nopen;
	kernel_refuses[0] = true;
	RUN_UNTIL(port_used(s, 0) == before, 500);
	RUN_UNTIL(port_used(s, 0) == 7001u, 500);
	RUN_UNTIL(port_used(s, 0) == before, 500);
	cr_expect_eq(f.core[0]->nav_in, 1u);
	cr_expect_eq(f.core[0]->nopen, nopen);
	kernel_refuses[0] = false;
	kernel_alive[0] = true;
	for (i = 0; i < 2; i++)
		heal(i);
	RUN_UNTIL(!left(s, 0), 1000);
	cr_expect_eq(port_used(s, 0), before);
	close_clean();
}

/* Who gets a processor rarely sees nevertheless what kernels say. */
BOTH(all_silent_and_we_are_slow)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = kernel_alive[1] = true;
	kernel_takes_ms = 1;
	for (i = 0; i < 20 && f.core[0]->nopen == 1; i++) {
		fake_now_ns += 150 * LNX_NS_PER_MS;
		step();
	}
	cr_expect_eq(f.core[0]->nopen, 2u);
	kernel_takes_ms = 0;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* Nor is a peer given up who was silent while we were. */
BOTH(all_silent_and_we_are_stopped)
{
	struct side *s = &side[0];
	unsigned i;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_takes_ms = 1;
	fake_now_ns += 10 * LNX_NS_PER_S;
	run_ms(100);
	cr_expect(!inside(s)->gone);
	kernel_alive[0] = kernel_alive[1] = true;
	kernel_takes_ms = 0;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* The peer has reset a connection, and our PROBE with it; he asks by the new one. */
BOTH(probe_of_the_peer)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .tag = 1, .data = 1 };
	unsigned i, n;

	inject_size = 192;
	open_met(kind, 2, 1);
	all_silent(s);
	kernel_alive[0] = true;
	RUN_UNTIL(f.core[0]->nopen == 2, 500);
	run_ms(20);
	n = s->nprobe[0];
	s->no_pongs = true;
	heal(0);
	from(s, 0, 0, h, NULL, 0);
	run_ms(8);
	cr_expect_gt(s->nprobe[0], n);
	/* That is no answer. */
	cr_expect(left(s, 0));
	s->no_pongs = false;
	for (i = 0; i < 2; i++)
		heal(i);
	close_clean();
}

/* A peer that computes is not one whose networks are silent. */
BOTH(silent_peer_whose_kernels_answer)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	s->mute = true;
	send1(s, 200);
	run_ms(4000);
	cr_expect_eq(f.lnx->stats.paths_left, 0u);
	close_clean();
}

/* A PROBE tells of a new address by the way itself, and late news are none. */
BOTH(probes_with_addresses)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_PROBE, .key = 3 };

	open_met(kind, 2, 1);
	move(s, 1, 7001);
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	move(s, 1, 7002);
	h.key = 2;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	/* A key, and no address. */
	h.key = 9;
	from(s, 1, 0, h, NULL, 0);
	run_ms(2);
	/* An address that is no news. */
	h.key = 0;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7001u);
	h.key = 4;
	from(s, 1, 0, h, s->p.blob, sizeof(s->p.blob));
	run_ms(2);
	cr_expect_eq(port_used(s, 1), 7002u);
	close_clean();
}

/* ---- at random ---- */

static uint64_t rnd_state;

static unsigned rnd(unsigned n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((rnd_state >> 33) % n);
}

static uint64_t take_seed(void)
{
	const char *given = getenv("LNX_SEED");
	uint64_t seed = 0;
	int fd;

	if (given)
		return strtoull(given, NULL, 0);
	fd = open("/dev/urandom", O_RDONLY);
	cr_assert(fd >= 0 && read(fd, &seed, sizeof(seed)) == sizeof(seed));
	close(fd);
	return seed;
}

static void disturb(void)
{
	unsigned rail = rnd(nrail), k;
	struct fake_core *core = f.core[rail];

	switch (rnd(12)) {
	case 0:
		lost_to[rail] = !lost_to[rail];
		break;
	case 1:
		lost_from[rail] = !lost_from[rail];
		break;
	case 2:
		black_hole(rail);
		break;
	case 3:
		heal(rail);
		break;
	case 4:
		core->hold_sends = !core->hold_sends;
		break;
	case 5:
		core->hold_reads = !core->hold_reads;
		break;
	case 6:
		core->send_again = rnd(4);
		core->inject_again = rnd(4);
		core->read_again = rnd(3);
		break;
	case 7:
		core->flush = rnd(2);
		core->ep_fails = rnd(3) ? 0 : rnd(3);
		core->enable_fails = rnd(3) ? 0 : rnd(3);
		break;
	case 8:
		/* A connection breaks. */
		for (k = rnd(8); k && fake_held(core); k--)
			fake_finish(core, 0, FI_EIO);
		break;
	case 9:
		k = rnd(nside);
		side[k].mute = rnd(2);
		break;
	case 10:
		k = rnd(nside);
		move(&side[k], rail, 6000 + rnd(1000));
		say(&side[k], rail, LNX_KIND_HELLO, 0);
		break;
	default:
		for (k = rnd(8); k && fake_held(core); k--)
			fake_finish(core, rnd(fake_held(core)), 0);
	}
}

static void mend(void)
{
	unsigned i;

	for (i = 0; i < nrail; i++) {
		struct fake_core *core = f.core[i];

		heal(i);
		core->hold_sends = core->hold_reads = false;
		core->send_again = core->inject_again = core->read_again = 0;
		core->ep_fails = core->enable_fails = 0;
		fake_finish_all(core);
	}
	for (i = 0; i < nside; i++)
		side[i].mute = false;
}

BOTH(at_random)
{
	struct side *s;
	unsigned r;

	rnd_state = take_seed();
	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", rnd_state,
		rnd_state);
	fake_conf.connect_timeout = 1000000;
	fake_conf.retry_count = 50;
	fake_conf.window = 64;
	fake_conf.chunk = 65536;
	if (rnd(2))
		fake_conf.copy_limit = 1000;
	open_met(kind, 2 + rnd(2), 1 + rnd(3));
	for (r = 0; r < 1500; r++) {
		s = &side[rnd(nside)];
		if (rnd(3) == 0 && nops < MANY - 100 &&
		    inside(s)->tx_next < MANY - 300)
			send_flags(s, rnd(3) ? rnd(300) : rnd(16000),
				   rnd(3) ? 0 : FI_DELIVERY_COMPLETE);
		if (rnd(3) == 0 && nops < MANY - 100 && s->p.seq < MANY - 300) {
			bool large = !rnd(20);

			receive(s, large ? LARGE : 8);
			say(s, rnd(nrail), large ? LNX_KIND_RTS_TAG :
			    LNX_KIND_TAG, ++s->next_tag);
		}
		if (!rnd(6))
			disturb();
		if (!rnd(60)) {
			mend();
			run_ms(rnd(300));
		}
		run_ms(rnd(4));
	}
	mend();
	RUN_UNTIL(all_there(), 60000);
	close_clean();
}
