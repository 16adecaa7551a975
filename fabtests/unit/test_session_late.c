/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames of every kind that come too late: of a session before the present one, in which they
 * must change nothing, or of one that we gave up, whose sender must hear that it has ended.  On
 * scripted cores; the test is the peer, which has two rails.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "comp/comp.h"
#include "fake_core.h"
#include "msg/tx.h"
#include "rel/admin.h"
#include "rel/rel.h"
#include "wire/atomic.h"

#define OLD		0x51ull		/* sessions of the peer */
#define PRESENT		0x52ull
#define KEY		0x4b4559ull
#define RAILS		2u
#define LARGE		300000u
#define FILL		0x33

static struct fake f;
static struct fake_peer p;
static struct fid_mr *mr;
static char a, b, c, d;			/* contexts */
static uint8_t ours[64];		/* registered */
static uint8_t in[64], result[64];	/* of a receive, and of a read */
static uint8_t theirs[4096];		/* what the peer announces */
static uint8_t large[LARGE];
static uint64_t read_op, rts_op;	/* of ours, on the wire */

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(session_late_plain, name) { name(LNX_RAIL_PLAIN); }	\
	Test(session_late_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

/* What the peer sends; data: of RAIL. */
static const struct late {
	const char *name;
	uint8_t kind;
	uint64_t data;
} late[] = {
	{ "MSG", LNX_KIND_MSG, 0 }, { "TAG", LNX_KIND_TAG, 0 },
	{ "RTS_TAG", LNX_KIND_RTS_TAG, 0 }, { "FIN", LNX_KIND_FIN, 0 },
	{ "PUT", LNX_KIND_PUT, 0 }, { "PUT_RTS", LNX_KIND_PUT_RTS, 0 },
	{ "GET", LNX_KIND_GET, 0 }, { "KEYS", LNX_KIND_KEYS, 0 },
	{ "ATOMIC", LNX_KIND_ATOMIC, 0 }, { "RESP", LNX_KIND_RESP, 0 },
	{ "ACK", LNX_KIND_ACK, 0 }, { "PROBE", LNX_KIND_PROBE, 0 },
	{ "PONG", LNX_KIND_PONG, 0 }, { "BYE", LNX_KIND_BYE, 0 },
	{ "RAIL down", LNX_KIND_RAIL, LNX_WIRE_RAIL_DOWN },
	{ "RAIL drain", LNX_KIND_RAIL, LNX_WIRE_RAIL_DRAIN },
	{ "RAIL weight", LNX_KIND_RAIL, LNX_WIRE_RAIL_WEIGHT + 300 },
};

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static void open_with(enum lnx_rail_kind kind)
{
	struct fake_opt opt = {
		.nrail = RAILS, .kind = { kind, kind }, .caps = FI_RMA | FI_ATOMIC,
	};

	fake_open(&f, &opt);
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	fake_peer_insert(&f, &p);
	memset(ours, FILL, sizeof(ours));
	memset(in, FILL, sizeof(in));
	memset(result, FILL, sizeof(result));
	memset(theirs, ~FILL, sizeof(theirs));
	cr_assert_eq(fi_mr_reg(&f.domain.fid, ours, sizeof(ours), FI_REMOTE_READ |
			       FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
}

static void close_all(void)
{
	cr_assert_eq(fi_close(&f.ep->fid), 0);
	f.ep = NULL;
	cr_expect_eq(fi_close(&mr->fid), 0);
	fake_close_quick(&f);
}

static void hello(uint64_t sid, uint64_t stamp)
{
	p.sid = sid;
	p.seq = p.got = 0;
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = stamp },
		  p.blob, sizeof(p.blob));
	fake_passes(&f, 4);
}

/* Takes what left, over all rails; counts the answers to what `late` asks, and notes numbers of
 * operations of ours. */
static unsigned take(void)
{
	struct fake_sent *s;
	unsigned i, n = 0;

	for (i = 0; i < RAILS; i++) {
		while ((s = fake_take(f.core[i]))) {
			n += s->h.kind == LNX_KIND_ACK || s->h.kind == LNX_KIND_PONG ||
			     s->h.kind == LNX_KIND_RESP || s->h.kind == LNX_KIND_FIN;
			if (s->h.kind == LNX_KIND_GET)
				read_op = s->h.data;
			if (s->h.kind == LNX_KIND_RTS_TAG)
				memcpy(&rts_op, s->bytes + sizeof(struct lnx_wire_hdr),
				       sizeof(rts_op));
			free(s);
		}
	}
	return n;
}

/* What the present session is, as far as frames of the peer may change it. */
struct seen {
	uint64_t sid, rx_sid, acked, rx_next, ooo, open, frames, completions, answers;
	struct { uint64_t state, weight, delivered, came; } over[RAILS];
	uint8_t ours[sizeof(ours)], in[sizeof(in)], result[sizeof(result)];
};

static void look(struct seen *s)
{
	struct lnx_peer *peer = inside();
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	unsigned i;

	memset(s, 0, sizeof(*s));
	fake_passes(&f, 4);
	fake_after_ms(&f, 3);
	s->answers = take();
	while (fi_cq_read(f.cq, &e, 1) == 1 || fi_cq_readerr(f.cq, &err, 0) == 1)
		s->completions++;
	s->sid = view_sid(peer);
	s->rx_sid = view_rx_sid(peer);
	s->acked = view_acked(peer);
	s->rx_next = view_rx_next(peer);
	s->ooo = view_ooo(peer);
	s->open = lnx_peer_open(peer);
	cr_assert_eq(view_npath(peer), RAILS);
	for (i = 0; i < RAILS; i++) {
		struct lnx_path *path = view_path(peer, i);

		s->over[i].state = view_state(path);
		s->over[i].weight = lnx_admin_remote_weight(path, fake_now_ns);
		s->over[i].delivered = view_delivered(path);
		s->over[i].came = view_rx_bytes(peer, i);
	}
	memcpy(s->ours, ours, sizeof(ours));
	memcpy(s->in, in, sizeof(in));
	memcpy(s->result, result, sizeof(result));
}

/* The frame: in order, and about what is outstanding, so that a receiver would take it. */
static void send(const struct late *l, uint32_t seq, uint64_t moved)
{
	struct lnx_atomic at = {
		.op = FI_SUM, .type = FI_UINT64, .cls = 0, .noperand = 1, .nseg = 1,
		.size = 8, .count = 1, .seg = { { 0, KEY, 1 } },
	};
	struct lnx_rma_target place = { .addr = 0, .key = KEY, .len = sizeof(ours) };
	struct lnx_rts rts = { .op = 55, .nseg = 1, .nkey = 1 };
	struct lnx_hdr h = { .kind = l->kind, .seq = seq, .data = l->data };
	uint8_t payload[512];
	size_t len = 0, head;

	memset(payload, ~FILL, sizeof(payload));
	rts.key[0][0].key = 100;
	rts.key[0][0].addr = 0x1000000;
	switch (l->kind) {
	case LNX_KIND_MSG:
	case LNX_KIND_TAG:
		h.tag = l->kind == LNX_KIND_TAG ? 1 : 0;
		h.len = len = 8;
		break;
	case LNX_KIND_RTS_TAG:
		h.tag = 1;
		h.len = rts.seg_len[0] = sizeof(in);
		lnx_wire_rts_put(payload, &rts);
		len = lnx_wire_rts_size(&rts);
		break;
	case LNX_KIND_FIN:
		h.data = rts_op;
		break;
	case LNX_KIND_PUT:
		h.key = KEY;
		h.len = len = 8;
		break;
	case LNX_KIND_PUT_RTS:
		h.tag = 1;
		h.len = rts.seg_len[0] = sizeof(ours);
		lnx_wire_targets_put(payload, &place, 1);
		head = sizeof(struct lnx_wire_target);
		lnx_wire_rts_put(payload + head, &rts);
		len = head + lnx_wire_rts_size(&rts);
		break;
	case LNX_KIND_GET:
		h.len = 8;
		/* fall through */
	case LNX_KIND_KEYS:
		h.key = KEY;
		h.data = 66;
		break;
	case LNX_KIND_ATOMIC:
		lnx_atomic_put(payload, &at);
		h.data = 67;
		h.len = len = lnx_atomic_size(&at);
		break;
	case LNX_KIND_RESP:
		h.data = read_op;
		h.len = len = 8;
		break;
	case LNX_KIND_ACK:
		h.tag = 1;
		h.data = moved;
		break;
	case LNX_KIND_PROBE:
		h.tag = 1;
		break;
	case LNX_KIND_PONG:
		h.tag = 1;
		h.key = moved;
		break;
	}
	fake_frame(&f, &p, h, payload, len);
}

/* The present session, after an old one, with something outstanding of every kind; a message
 * of each end has arrived. */
static void begin_next(enum lnx_rail_kind kind)
{
	struct iovec iov = { large, 8 };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .tag = 9, .context = &a };
	unsigned i;

	open_with(kind);
	for (i = 0; i < RAILS; i++)
		fake_region_rw(f.core[i], 100, 0x1000000, theirs, sizeof(theirs));
	hello(OLD, 100);
	take();
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	hello(PRESENT, 200);
	take();
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 9, &a), 0);
	fake_passes(&f, 4);
	take();
	p.got = view_posted(inside());
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	fake_quiet(&f);
	/* Now what only the peer can end. */
	m.addr = p.addr;
	read_op = rts_op = 0;
	cr_assert_eq(fi_tsendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
	cr_assert_eq(fi_tsend(f.ep, large, LARGE, NULL, p.addr, 9, &b), 0);
	cr_assert_eq(fi_read(f.ep, result, 8, NULL, p.addr, 0, 7, &c), 0);
	cr_assert_eq(fi_trecv(f.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, &d), 0);
	fake_after_ms(&f, 10);
	take();
	cr_assert(read_op && rts_op);
	fake_quiet(&f);
}

/* Does a frame of that session change anything in the present one?  It acknowledges all that
 * is outstanding, or nothing new. */
static bool changes(const struct late *l, uint64_t sid, bool acks)
{
	struct lnx_peer *peer = inside();
	struct seen before, after;

	look(&before);
	p.sid = sid;
	p.got = acks ? view_posted(peer) : view_acked(peer);
	send(l, view_rx_next(peer), view_sent(view_path(peer, 0)));
	look(&after);
	return memcmp(&before, &after, offsetof(struct seen, answers)) ||
	       after.answers > before.answers ||
	       memcmp(before.over, after.over,
		      sizeof(before) - offsetof(struct seen, over));
}

/* A frame is of the session that it names, whatever endpoint sent it.  That each of these
 * changes something if it is of the present one shows that the others would be seen. */
BOTH(of_an_older_session)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(late); i++) {
		begin_next(kind);
		cr_expect(!changes(&late[i], OLD, false), "%s of the old session", late[i].name);
		cr_expect(!changes(&late[i], OLD, true),
			  "%s of the old session, which acknowledges", late[i].name);
		cr_expect_gt(f.lnx->stats.stale_frames, 0u);
		cr_expect(changes(&late[i], PRESENT, false), "%s of the present session",
			  late[i].name);
		close_all();
	}
}

/* Whatever it sends, it hears that we gave it up, and nothing else happens. */
BOTH(after_it_was_given_up)
{
	unsigned i, k, refusals;
	struct fake_sent *s;

	for (i = 0; i < LNX_ARRAY_SIZE(late); i++) {
		if (late[i].kind == LNX_KIND_BYE)
			continue;	/* it has no use for an answer */
		begin_next(kind);
		lnx_lock(&f.lnx->lock);
		lnx_rel_peer_failed(inside(), FI_ETIMEDOUT);
		lnx_unlock(&f.lnx->lock);
		fake_after_ms(&f, 10);
		cr_assert(lnx_peer_dead(inside()));
		take();
		send(&late[i], view_rx_next(inside()), 0);
		fake_after_ms(&f, 3);
		for (k = refusals = 0; k < RAILS; k++) {
			while ((s = fake_take(f.core[k]))) {
				cr_expect_eq(s->h.kind, LNX_KIND_NO_SESSION, "%s: %u left",
					     late[i].name, s->h.kind);
				cr_expect_eq(s->h.tag, LNX_REFUSED_ENDED);
				cr_expect_eq(s->h.dst, PRESENT);
				refusals++;
				free(s);
			}
		}
		cr_expect_eq(refusals, 1u, "%u refusals of %s", refusals, late[i].name);
		for (k = 0; k < sizeof(ours); k++)
			cr_assert_eq(ours[k], FILL, "%s changes memory", late[i].name);
		close_all();
	}
}
