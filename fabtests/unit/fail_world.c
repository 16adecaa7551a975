/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers and the networks between, for fail_world.h: which frames are lost
 * or late, and which peers answer.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/half_open.h"
#include "os/ping.h"
#include "fail_world.h"

#define HDR	sizeof(struct lnx_wire_hdr)
#define BASE	0x1000000ull		/* of the peers' memory */

struct fake f;
struct side side[SIDES];
unsigned nside, nrail;
bool lost_to[FAKE_RAILS], lost_from[FAKE_RAILS];
uint8_t mem[LARGE];
uint64_t credit;

struct lnx_peer *inside(const struct side *s)
{
	return lnx_peer_by_eid(f.lnx, s->p.eid);
}

struct lnx_path *path_of(const struct side *s, unsigned rail)
{
	struct lnx_path *path = view_path_over(inside(s), f.lnx->rail[rail]);

	cr_assert_not_null(path, "no path over rail %u", rail);
	return path;
}

bool is_down(const struct side *s, unsigned rail)
{
	return view_state(path_of(s, rail)) == LNX_PATH_DOWN;
}

unsigned port_known(const struct side *s, unsigned rail)
{
	struct sockaddr_in in;

	memcpy(&in, s->us.rail[rail].raw, sizeof(in));
	return ntohs(in.sin_port);
}

void move(struct side *s, unsigned rail, unsigned port)
{
	struct sockaddr_in in;

	memcpy(&in, s->p.where.rail[rail].raw, sizeof(in));
	in.sin_port = htons((uint16_t)port);
	memcpy(s->p.where.rail[rail].raw, &in, sizeof(in));
	cr_assert_eq(lnx_addr_pack(&s->p.where, s->p.blob), 0);
}

unsigned port_used(const struct side *s, unsigned rail)
{
	struct sockaddr_in in;

	memcpy(&in, f.core[rail]->av_name[view_core_addr(path_of(s, rail))],
	       sizeof(in));
	return ntohs(in.sin_port);
}

void black_hole(unsigned rail)
{
	lost_to[rail] = lost_from[rail] = true;
}

void heal(unsigned rail)
{
	lost_to[rail] = lost_from[rail] = false;
}

/* ---- kernels, which answer for peers that compute ---- */

bool kernel_alive[FAKE_RAILS], kernel_refuses[FAKE_RAILS], kernel_unknown, kernel_lacks;
unsigned kernel_takes_ms;
enum lnx_ping_result kernel_says;

static enum lnx_ping_result kernel(const struct lnx_ping *ping)
{
	unsigned i, k;

	if (kernel_unknown)
		return LNX_PING_UNKNOWN;
	for (i = 0; i < nside; i++) {
		const struct lnx_peer *peer = inside(&side[i]);
		unsigned rail;

		for (k = 0; peer && k < view_npath(peer); k++) {
			if (!view_pings(view_path(peer, k), ping))
				continue;
			for (rail = 0; rail < nrail - 1; rail++)
				if (f.lnx->rail[rail] == view_rail(view_path(peer, k)))
					break;
			if (kernel_refuses[rail])
				return LNX_PING_REFUSED;
			return kernel_alive[rail] ||
			       (!lost_to[rail] && !lost_from[rail]) ?
			       LNX_PING_ALIVE : LNX_PING_WAITING;
		}
	}
	return kernel_says;
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
	ping->result = kernel_unknown || kernel_lacks ? LNX_PING_UNKNOWN : LNX_PING_WAITING;
	ping->err = kernel_lacks ? EMFILE : 0;
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

/* ---- connections ---- */

bool cuts_work;
unsigned ncut[FAKE_RAILS];

static unsigned number(const struct lnx_rail *rail)
{
	unsigned i = 0;

	while (f.lnx->rail[i] != rail)
		i++;
	return i;
}

unsigned __wrap_lnx_half_open_cut(const struct lnx_rail *rail, fi_addr_t to);

unsigned __wrap_lnx_half_open_cut(const struct lnx_rail *rail, fi_addr_t to)
{
	unsigned i = number(rail);

	cr_assert_neq(to, FI_ADDR_NOTAVAIL);
	if (!cuts_work)
		return 0;
	ncut[i]++;
	while (fake_held(f.core[i]))
		fake_finish(f.core[i], 0, FI_ECANCELED);
	return 1;
}

unsigned nread_cuts[FAKE_RAILS], mrs_at_cut[FAKE_RAILS], announced_at_cut;
unsigned npaths_cut[FAKE_RAILS];
uint64_t silent_at_cut_ns;

void __wrap_lnx_half_open_cut_all(const struct lnx_rail *rail, struct lnx_cut *cut, unsigned n);

void __wrap_lnx_half_open_cut_all(const struct lnx_rail *rail, struct lnx_cut *cut, unsigned n)
{
	unsigned i = number(rail), k;
	bool reads = cut->reads;

	cr_assert_gt(n, 0u);
	npaths_cut[i] += n;
	for (k = 0; k < n; k++) {
		cr_assert(view_rail(cut[k].path) == rail && cut[k].reads == reads);
		cut[k].ncut = reads || cuts_work;
	}
	if (!reads) {
		__wrap_lnx_half_open_cut(rail, 0);
		return;
	}
	nread_cuts[i]++;
	silent_at_cut_ns = cut->silent_ns;
	mrs_at_cut[i] = f.core[i]->nmr_open;
	announced_at_cut = view_announced(inside(&side[0]));
}

unsigned nunanswered;
uint64_t unanswered_ns;
bool unanswered_began;

unsigned __wrap_lnx_half_open_unanswered(const struct lnx_rail *rail, uint64_t so_long_ns,
						bool began);

unsigned __wrap_lnx_half_open_unanswered(const struct lnx_rail *rail, uint64_t so_long_ns,
						bool began)
{
	cr_assert_geq(so_long_ns, LNX_CONNECT_HANGS_NS);
	unanswered_ns = so_long_ns;
	unanswered_began = began;
	nunanswered += rail->core_ep != NULL;
	return 0;
}

/* ---- the network, and the peers at its other end ---- */

void from(struct side *s, unsigned rail, uint32_t seq, struct lnx_hdr h,
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
	uint64_t n;
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
	case LNX_KIND_PART_TAG:
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_PART_TAG,
		     .tag = tag, .len = PARTS, .key = s->came + credit }, mem, SEGMENT);
		break;
	case LNX_KIND_MORE:
		n = LNX_MIN(SEGMENT, PARTS - tag);
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_MORE,
		     .tag = tag, .len = n }, mem + tag, n);
		break;
	case LNX_KIND_FIN:
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_FIN,
		     .data = tag, .key = s->came + credit }, NULL, 0);
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
		lnx_wire_rts_put(payload, &rts);
		from(s, rail, seq, (struct lnx_hdr) { .kind = LNX_KIND_RTS_TAG,
		     .tag = tag, .len = LARGE }, payload, lnx_wire_rts_size(&rts));
	}
}

bool may_part(const struct side *s)
{
	return s->granted >= s->spent + PARTS;
}

void say(struct side *s, unsigned rail, uint8_t kind, uint64_t tag)
{
	uint32_t seq = s->p.seq++;

	cr_assert_lt(seq, MANY);
	s->out[seq].kind = kind;
	s->out[seq].tag = tag;
	post_out(s, rail, seq);
	if (kind == LNX_KIND_PART_TAG) {
		s->spent += PARTS;
		tag = 0;
	}
	if ((kind == LNX_KIND_PART_TAG || kind == LNX_KIND_MORE) && tag + SEGMENT < PARTS)
		say(s, rail, LNX_KIND_MORE, tag + SEGMENT);
}

void ack_on(struct side *s, unsigned rail)
{
	struct lnx_wire_credit grant;
	unsigned i;

	lnx_wire_credit_put(&grant, s->came + credit);
	for (i = 0; i < nrail; i += 2)
		from(s, rail, 0, (struct lnx_hdr) { .kind = LNX_KIND_ACK,
		     .tag = 1 + i, .data = s->bytes[i],
		     .len = i + 1 < nrail ? 2 + i : 0,
		     .key = s->bytes[i + 1] }, &grant, credit ? sizeof(grant) : 0);
}

void pong(struct side *s, unsigned rail, uint64_t tag, uint64_t data)
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
	cr_assert_fail("a frame to no peer of the test");
	return NULL;
}

static void check_bytes(const uint8_t *b, size_t len, uint64_t tag)
{
	size_t i;

	if (len >= 8)
		cr_assert_eq(memcmp(b, &tag, 8), 0);
	for (i = 8; i < len; i++)
		cr_assert_eq(b[i], (uint8_t)(tag * 31 + 7));
}

static void grants(struct side *s, uint64_t limit)
{
	s->granted = LNX_MAX(s->granted, limit);
}

/* A frame of a message that it does not have yet. */
static void new_part(struct side *s, unsigned rail, const struct fake_sent *m)
{
	const uint8_t *b = m->bytes + HDR;
	size_t i, len = m->len - HDR;
	uint32_t seq = m->h.seq;
	struct lnx_rts rts;

	s->len[seq] = m->h.len;
	s->part[seq] = len;
	switch (m->h.kind) {
	case LNX_KIND_TAG:
		cr_assert_eq(len, m->h.len);
		if (len > LNX_PAYLOAD_MAX) {
			s->came += len;
			grants(s, m->h.key);
		}
		break;
	case LNX_KIND_PART_TAG:
		s->came += len;
		grants(s, m->h.key);
		break;
	case LNX_KIND_MORE:
		/* A message begins with its tag (fail_app.c); the last byte tells the others. */
		cr_assert_gt(len, 8u);
		if (!m->h.tag)
			memcpy(&s->first[seq], b, 8);
		for (i = m->h.tag ? 0 : 8; i < len; i++)
			cr_assert_eq(b[i], b[len - 1]);
		s->byte[seq] = b[len - 1];
		s->came += len;
		break;
	case LNX_KIND_RTS_TAG:
		s->part[seq] = m->h.key;
		cr_assert_eq(lnx_wire_rts_get(&rts, b, len, m->h.len), 0);
		cr_assert_eq(rts.nseg, 1u);
		/* It reads the message now; its first bytes may come later. */
		check_bytes((const uint8_t *)(uintptr_t)rts.key[0][0].addr, m->h.len,
			    m->h.tag);
		say(s, rail, LNX_KIND_FIN, rts.op);
		break;
	default:
		break;
	}
}

void look_at(struct side *s, unsigned rail, const struct fake_sent *m)
{
	if (m->h.kind == LNX_KIND_NO_SESSION) {
		cr_assert_eq(m->h.src, f.lnx->eid);
		return;
	}
	cr_assert_eq(m->h.src, view_sid(inside(s)));
	cr_assert_eq(m->h.path, view_index(path_of(s, rail)));
	if ((int32_t)(m->h.ack - s->acked) > 0)
		s->acked = m->h.ack;
	s->last_rail = rail;
	s->dest[rail] = m->dest;
	if (m->h.kind == LNX_KIND_PROBE) {
		s->nprobe[rail]++;
		s->probe[rail] = m->h;
		s->acks_pending = true;
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
	if (m->h.kind == LNX_KIND_ACK)
		grants(s, lnx_wire_credit_get(m->bytes + HDR, m->len - HDR));
	if (!lnx_wire_kind_sequenced(m->h.kind))
		return;
	cr_assert_lt(m->h.seq, MANY);
	if (m->h.kind == LNX_KIND_FIN)
		grants(s, m->h.key);
	if (m->h.kind == LNX_KIND_TAG || m->h.kind == LNX_KIND_PART_TAG)
		check_bytes(m->bytes + HDR, m->len - HDR, m->h.tag);
	if (!s->seen[m->h.seq])
		new_part(s, rail, m);
	if (s->seen[m->h.seq]++) {
		/* A retransmitted frame is the same. */
		cr_assert_eq(s->kind[m->h.seq], m->h.kind);
		cr_assert_eq(s->tag[m->h.seq], m->h.tag);
		cr_assert_eq(s->sum[m->h.seq], sum_of(m));
	}
	s->kind[m->h.seq] = m->h.kind;
	s->tag[m->h.seq] = m->h.tag;
	s->sum[m->h.seq] = sum_of(m);
	s->nseen[rail]++;
	s->bytes[m->h.path] += m->len;
	s->acks_pending = true;
	if (m->h.kind == LNX_KIND_HELLO) {
		s->nhello++;
		cr_assert_eq(lnx_addr_unpack(&s->us, m->bytes + HDR,
					     LNX_ADDR_BYTES, NULL, 0), 0);
		cr_assert_eq(s->us.eid, f.lnx->eid);
	}
}

/* Frames that left on a rail arrive, wait for a peer that computes, or are lost. */
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

/* PROBEs about latency, as soon as all before them has come. */
static void answer_latency(struct side *s)
{
	unsigned i;

	for (i = 0; i < nrail; i++) {
		struct fake_core *core = f.core[i];

		while (!core->sent && s->nlatency[i] != core->nlatency) {
			const struct lnx_hdr *h =
				&core->latencies[s->nlatency[i]++ % FAKE_LATENCIES];

			if (h->dst == s->p.eid && !lost_to[i] && !s->no_pongs)
				pong(s, i, h->tag, h->data);
		}
	}
}

static void answer(struct side *s)
{
	unsigned i;

	while (s->seen[s->p.got])
		s->p.got++;
	if (!s->test_answers)
		answer_latency(s);
	for (i = 0; i < nrail; i++) {
		if (s->probe[i].tag && !s->no_pongs)
			pong(s, i, s->probe[i].tag, s->probe[i].data);
		if (!s->no_pongs)
			s->probe[i].tag = 0;
	}
	if (s->acks_pending && !s->no_acks)
		ack_on(s, s->last_rail);
	s->acks_pending = false;
	/* A frame that we do not acknowledge is retransmitted over another rail. */
	if (s->acked != s->p.seq && fake_now_ns > s->again_ns) {
		unsigned rail = (unsigned)(fake_now_ns / 1000) % nrail;
		uint32_t seq;

		if (s->again_ns)
			for (seq = s->acked; seq != s->p.seq; seq++)
				post_out(s, rail, seq);
		s->again_ns = fake_now_ns + 40 * LNX_NS_PER_MS;
	}
}

void world(void)
{
	unsigned i;

	for (i = 0; i < nrail; i++)
		carry(i);
	for (i = 0; i < nside; i++)
		if (!side[i].mute)
			answer(&side[i]);
}
