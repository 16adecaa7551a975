/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arbitrary frames into an endpoint that has receives posted, sends and accesses to
 * remote memory under way, memory registered, and a peer that it knows: no crash, no
 * leak, no hang, no write except where peers may write, and every answer is a valid
 * frame (the scripted core checks that).  With routes the known peer is behind gateways,
 * which send what gateways send, right or nearly so.  An input is a list of steps: what to
 * do, a length, so many bytes.
 *
 * Above: fabtests/unit/fake_core.c fabtests/unit/fake_world.c fabtests/unit/view.c
 * Libraries: libfabric
 */
#define LNX_FUZZ_NAME "arrive"
#define FUZZ_CHANGES	100	/* each opens an endpoint and checks for leaks */
#include "fuzz.h"

#include <netinet/in.h>
#include <string.h>

#include "../unit/fake_core.h"
#include "conf/routes.h"
#include "core/job_key.h"
#include "obj/gateway.h"
#include "rma/amo_serve.h"
#include "wire/atomic.h"
#include "wire/route.h"

#define STEPS	64
#define HDR	sizeof(struct lnx_wire_hdr)
#define OWN_ID	0x7777777777777777ULL

static struct fake f;
static struct fake_peer known, unsolicited;
static uint8_t buf[8][20000];
static unsigned nbuf, ntx, nrma;

/* ---- memory: pieces that peers may write, and bytes around them that must not
 * change ---- */

#define PIECE	8192u
#define NPIECE	4u
#define STAYS	0x5a

static const struct {
	uint64_t access;
	size_t len;
} piece[NPIECE] = {
	{ FI_REMOTE_READ | FI_REMOTE_WRITE, PIECE },
	{ FI_REMOTE_READ, PIECE },
	{ FI_REMOTE_WRITE, 100 },
	{ FI_REMOTE_READ | FI_REMOTE_WRITE, 0 },
};
/* Guard, piece, guard, piece, ..., guard. */
static uint8_t memory[(2 * NPIECE + 1) * PIECE];
static struct fid_mr *mr[NPIECE];
/* The memory of peers that cores find by their keys. */
static uint8_t theirs[1 << 17];
#define THEIR_KEY	99u
#define THEIR_BASE	0x1000000u

static uint8_t *piece_at(unsigned i)
{
	return memory + (2 * i + 1) * PIECE;
}

static void memory_stays(void)
{
	static const uint8_t stays[PIECE] = { [0 ... PIECE - 1] = STAYS };
	unsigned i;
	size_t may;

	for (i = 0; i < 2 * NPIECE + 1; i++) {
		may = i % 2 && (piece[i / 2].access & FI_REMOTE_WRITE) ? piece[i / 2].len : 0;
		FUZZ_CHECK(!memcmp(memory + i * PIECE + may, stays, PIECE - may));
	}
}

/* Open or close one: [which].  One that is being written to is not closed. */
static void registration(uint8_t what)
{
	unsigned i = what % NPIECE;

	if (!mr[i])
		fi_mr_reg(&f.domain.fid, piece_at(i), piece[i].len,
			  piece[i].access, 0, i, 0, &mr[i], NULL);
	else if (!fi_close(&mr[i]->fid))
		mr[i] = NULL;
}

static struct lnx_peer *inside(const struct fake_peer *p)
{
	return lnx_peer_by_eid(f.lnx, p->eid);
}

/* The bytes unchanged. */
static void raw(const uint8_t *data, size_t n)
{
	fake_arrive(f.core[0], data, n);
}

/* ---- gateways ---- */

static const uint64_t gateway_id[] = { 0x71, 0x72, 0x73, OWN_ID };

/* A record of a gateway arrives: [, , , where and how a byte of it is changed]. */
static void arrive_changed(uint8_t *bytes, int len, const uint8_t *data)
{
	if (len <= 0)
		return;
	if (data[3] & 1)
		bytes[(data[4] | data[3] >> 1 << 8) % len] ^= data[5];
	fake_arrive(f.core[0], bytes, (size_t)len);
}

/* An info: [whose, answers which hello, flags, a change: three bytes, grant, account, rails]. */
static void inform(const uint8_t *data)
{
	struct lnx_gw_info info = {
		.gw = { .flags = data[2] & LNX_GW_F_ALL, .oldest = LNX_ROUTE_VERSION,
			.newest = data[2] & 0x40 ? LNX_ROUTE_NEWEST : LNX_ROUTE_VERSION,
			.account = data[7],
			.id = gateway_id[data[0] & 3],
			.nonce = data[1] & 0x80 ? 1 : f.core[0]->nonce[data[1] % FAKE_GATEWAYS] },
		.large = data[6], .small = data[6], .hops = 1,
		.frame_max = data[2] & 0x80 ? data[6] : LNX_FRAME_LARGE,
		.behind = data[2] & 0x40 && data[8] & 0x10 ?
			  LNX_ROUTE_HEAD + LNX_FRAME_MAX + data[6] * 64u : 0,
	};
	static uint8_t bytes[LNX_GW_INFO_BYTES_MAX];
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(LNX_ROUTE_PORT),
				  .sin_addr.s_addr = htonl(0x0a090000u | data[0]) };
	unsigned i;

	info.gw.rails.n = 1 + data[8] % 2;
	for (i = 0; i < info.gw.rails.n; i++) {
		info.gw.rails.place[i] = (uint8_t)i;
		info.gw.rails.rail[i] = known.where.rail[0];
		info.state[i].up = !(data[8] >> 2 & (1u << i));
		info.state[i].health = (uint16_t)(data[8] * 4u);
	}
	info.gw.rails.rail[0].group--;
	memcpy(info.gw.rails.rail[0].raw, &in, sizeof(in));
	arrive_changed(bytes, lnx_wire_gw_info_put(bytes, sizeof(bytes), &info), data);
}

/* Our account at the gateway with that id. */
static uint16_t account_at(uint64_t id)
{
	const struct lnx_gateways *all = view_gateways(f.lnx);
	unsigned i;

	for (i = 0; all && i < all->n; i++)
		if (all->gw[i]->process->state.id == id)
			return all->gw[i]->process->state.account;
	return 1;
}

/* A note about a frame: [whose, reason, number of the frame, a change: three bytes, whose
 * frame, with another account]. */
static void note(const uint8_t *data)
{
	struct fake_peer *p = data[6] & 1 ? &known : &unsolicited;
	struct lnx_peer *in = inside(p);
	struct lnx_route_note n = {
		.reason = data[1], .id = gateway_id[data[0] & 3], .count = 1,
		.account = (uint16_t)(account_at(gateway_id[data[0] & 3]) + (data[7] & 1)),
		.rail = known.where.rail[0], .src = in ? view_sid(in) : 1, .dst = p->eid,
		.seq = (in ? view_posted(in) : 0) - (uint32_t)(data[2] & 15),
		.wait_ms = data[6] * 16u,
	};
	static uint8_t bytes[LNX_ROUTE_NOTE_LEN];

	arrive_changed(bytes, lnx_route_note_put(bytes, &n), data);
}

/* What is told of the host that was asked about last: [whose, what, , a change]. */
static void told(const uint8_t *data)
{
	struct lnx_gw_ask a = f.core[0]->ask;
	static uint8_t bytes[sizeof(struct lnx_wire_gw_ask)];

	a.tell = data[1];
	a.id = gateway_id[data[0] & 3];
	a.hops_done = 0;
	arrive_changed(bytes, lnx_wire_gw_ask_put(bytes, &a), data);
}

/* A PULL or a PIECE, over the gateway by which frames come now: [which, number, length, offset,
 * what is known of it: two bytes]. */
static void pull(const uint8_t *data)
{
	struct lnx_hdr h = {
		.kind = data[0] & 1 ? LNX_KIND_PULL : LNX_KIND_PIECE, .data = data[1],
		.tag = data[3] * 100u, .len = data[2] * 64u, .key = data[4],
		.seq = data[5] & 1 ? LNX_PULL_MEMORY : data[5] >> 4, .src = known.eid,
		.dst = OWN_ID,
	};
	static uint8_t payload[256 * 64];

	/* Of remote memory: the key and the place of a registration. */
	if (h.kind == LNX_KIND_PULL && data[5] & 1)
		h.key = data[4] % (NPIECE + 1);
	fake_frame(&f, &known, h, payload, h.kind == LNX_KIND_PULL ? 0 : h.len);
}

/* A frame in an envelope that is not quite right: [whose, hops, kind, a change: three bytes, number
 * of the frame, length]. */
static void wrapped(const uint8_t *data)
{
	struct lnx_peer *in = inside(&known);
	struct lnx_route_env e = {
		.via = gateway_id[data[0] & 3], .hops_done = data[1] & 15,
		.hops_left = data[1] >> 4, .account = data[0] >> 2, .key = data[0] & 0x80,
		.len = (uint32_t)HDR + data[7], .rail = known.where.rail[0],
	};
	struct lnx_hdr h = {
		.kind = data[2] % (LNX_KIND_MAX + 1), .len = data[7], .src = known.eid,
		.dst = OWN_ID, .seq = (in ? view_rx_next(in) : 0) + (uint32_t)(int8_t)data[6],
	};
	static uint8_t bytes[LNX_ROUTE_HEAD + HDR + UINT8_MAX];

	if (lnx_route_put(bytes, &e) < 0)
		return;
	lnx_hdr_put((struct lnx_wire_hdr *)(void *)(bytes + LNX_ROUTE_HEAD), &h);
	arrive_changed(bytes, LNX_ROUTE_HEAD + (int)e.len, data);
}

static void gateway(const uint8_t *data)
{
	switch (*data++ % 6) {
	case 0:
		inform(data);
		break;
	case 1:
		note(data);
		break;
	case 2:
		told(data);
		break;
	case 3:
		pull(data);
		break;
	case 5:
		wrapped(data);
		break;
	default:
		/* Frames come by that one from now on, or by none. */
		fake_via = data[0] & 4 ? 0 : gateway_id[data[0] & 3];
	}
}

/*
 * A header that passes the first checks: [which peer, kind, flags, seq, ack, tag,
 * error of the length in bytes].
 */
static void framed(const uint8_t *data, size_t n)
{
	struct fake_peer *p = data[0] & 1 ? &known : &unsolicited;
	struct lnx_peer *in = inside(p);
	static uint8_t copy[HDR + LNX_FRAME_MAX];
	struct lnx_hdr h = {
		.kind = data[1] % (LNX_KIND_MAX + 1),
		.flags = data[2] % (LNX_WIRE_F_ALL + 1),
		.seq = (in ? view_rx_next(in) : 0) + (uint32_t)(int8_t)data[3],
		.ack = (in ? view_acked(in) : 0) + (uint32_t)(int8_t)data[4],
		.src = p->eid, .dst = OWN_ID, .tag = data[5] & 3,
		.data = data[5] >> 2,
	};
	bool right = false;

	data += 7;
	n -= 7;
	h.len = n + (uint64_t)(int8_t)data[-1];
	if (h.kind == LNX_KIND_HELLO && (h.flags & LNX_WIRE_F_DATA)) {
		static uint8_t hello[sizeof(p->blob) +
				     sizeof(struct lnx_wire_proof)];
		uint64_t nonce = htole64(view_hello_nonce(f.lnx));

		memcpy(hello, p->blob, sizeof(p->blob));
		memcpy(hello + sizeof(p->blob), &nonce, sizeof(nonce));
		data = hello;
		n = sizeof(p->blob) + lnx_wire_proof_size(&h);
		if (lnx_wire_proof_size(&h)) {
			right = h.data & 1 && f.domain.job_key;
			h.data = 0;
		}
	}
	/* [key, where in it: two bytes and a shift, how much] */
	if ((h.kind == LNX_KIND_PUT || h.kind == LNX_KIND_GET ||
	     h.kind == LNX_KIND_KEYS) && n >= 6) {
		h.key = data[0] % (NPIECE + 1);
		h.tag = (uint64_t)(int16_t)(data[1] | data[2] << 8) <<
			(data[3] & 63);
		if (h.kind == LNX_KIND_GET)
			h.len = (uint64_t)(data[4] | data[5] << 8);
		data += 6;
		n -= 6;
		if (h.kind == LNX_KIND_PUT)
			h.len = n - (h.flags & LNX_WIRE_F_PUT ?
				     sizeof(struct lnx_wire_put) : 0);
		else
			n = 0;
	}
	/* [index and generation of an operation, error] */
	if (h.kind == LNX_KIND_RESP && n >= 3) {
		h.data = (uint64_t)(data[1] & 7) << 32 | (data[0] & 15);
		h.tag = data[2] & 0x80 ? data[2] & 0x7f : 0;
		data += 3;
		n -= 3;
		h.len = n;
	}
	if ((h.kind == LNX_KIND_RTS_MSG || h.kind == LNX_KIND_RTS_TAG) &&
	    n >= 8) {
		memcpy(&h.len, data, 8);
		data += 8;
		n -= 8;
	}
	lnx_hdr_put((struct lnx_wire_hdr *)copy, &h);
	n = LNX_MIN(n, (size_t)LNX_FRAME_MAX);
	if (n)
		memcpy(copy + HDR, data, n);
	if (right)
		lnx_job_key_sign(f.domain.job_key, copy, HDR + n);
	fake_arrive(f.core[0], copy, HDR + n);
}

/* A valid RTS: [which peer, tag, pieces, length of each in KiB]. */
static void announce(const uint8_t *data)
{
	struct fake_peer *p = data[0] & 1 ? &known : &unsolicited;
	static const uint8_t memory[16 << 10];
	struct lnx_peer *in = inside(p);
	uint64_t seg[LNX_RTS_SEGS];
	unsigned i, nseg = 1 + data[2] % LNX_RTS_SEGS;

	for (i = 0; i < nseg; i++)
		seg[i] = 1 + (data[3] + i) % 4 * 1023;
	p->seq = in ? view_rx_next(in) : 0;
	fake_rts(&f, p, data[0] & 2, data[1] & 3, data[0], memory, seg, nseg);
}

/*
 * A valid large write: [which peer, pieces, key of each and a byte for its address,
 * KiB of each].
 */
static void announce_write(const uint8_t *data)
{
	struct fake_peer *p = data[0] & 1 ? &known : &unsolicited;
	struct lnx_peer *in = inside(p);
	struct lnx_rma_target place[LNX_RMA_TARGETS_MAX];
	struct lnx_rts rts = { .op = data[0], .nseg = 1, .nkey = 1 };
	unsigned i, n = 1 + data[1] % LNX_RMA_TARGETS_MAX;
	size_t head = n * sizeof(struct lnx_wire_target);
	struct lnx_hdr h = {
		.kind = LNX_KIND_PUT_RTS, .tag = n,
		.flags = data[0] & 2 ? LNX_WIRE_F_DATA : 0,
	};
	uint8_t payload[256];

	for (i = 0; i < n; i++) {
		place[i].key = data[2 + i] % (NPIECE + 1);
		place[i].addr = (data[2 + i] >> 3) * 100u;
		place[i].len = (data[6 + i] % 24) * 400u;
		h.len += place[i].len;
	}
	rts.seg_len[0] = h.len;
	rts.key[0][0].key = THEIR_KEY;
	rts.key[0][0].addr = THEIR_BASE;
	lnx_wire_targets_put(payload, place, n);
	lnx_wire_rts_put(payload + head, &rts);
	p->seq = in ? view_rx_next(in) : 0;
	fake_next(&f, p, h, payload, head + lnx_wire_rts_size(&rts));
}

/*
 * A valid atomic: [which peer, operation, type, class, pieces, key of each and a byte
 * for its address, elements of each, what is wrong with it: mostly nothing].
 */
static void atomic(const uint8_t *data)
{
	struct fake_peer *p = data[0] & 1 ? &known : &unsolicited;
	struct lnx_peer *in = inside(p);
	struct lnx_atomic a = {
		.op = data[1] % 24, .type = data[2] % 20, .cls = data[3] % 3,
		.nseg = 1 + data[4] % LNX_ATOMIC_SEGS,
	};
	static uint8_t payload[LNX_PAYLOAD_MAX];
	struct lnx_hdr h = { .kind = LNX_KIND_ATOMIC, .data = data[0] };
	size_t at;
	unsigned i;

	a.size = (unsigned)lnx_amo_size((enum fi_datatype)a.type);
	a.size = a.size ? a.size : 8;
	a.noperand = (uint8_t)lnx_amo_operands((enum fi_op)a.op,
					       (enum lnx_amo_class)a.cls);
	for (i = 0; i < a.nseg; i++) {
		a.seg[i].key = data[5 + i] % (NPIECE + 1);
		/* Aligned, or not. */
		a.seg[i].addr = (data[5 + i] >> 3) *
				(data[0] & 2 ? 3u : a.size);
		a.seg[i].count = 1 + data[9 + i] % 12;
		a.count += a.seg[i].count;
	}
	switch (data[13]) {
	case 1: a.size++; break;
	case 2: a.noperand++; break;
	case 3: a.count++; break;
	case 4: a.seg[0].addr = ~0ull; break;
	case 5: a.seg[0].addr = PIECE - a.size; break;
	case 6: a.op = 255; break;
	}
	h.len = lnx_atomic_size(&a);
	if (h.len > sizeof(payload))
		return;
	lnx_atomic_put(payload, &a);
	for (at = lnx_atomic_head(&a); at < h.len; at++)
		payload[at] = (uint8_t)(data[12] * at);
	p->seq = in ? view_rx_next(in) : 0;
	fake_next(&f, p, h, payload, h.len);
}

/* An answer of the known peer: [index, generation, kind, access, KiB]. */
static void answer(const uint8_t *data)
{
	struct lnx_peer *in = inside(&known);
	struct lnx_keys k = { .len = data[4] * 1024u, .access = data[3] & 15,
			      .nkey = 1 };
	struct lnx_hdr h = {
		.kind = LNX_KIND_RESP,
		.data = (uint64_t)(data[1] & 3) << 32 | (data[0] & 15),
	};
	uint8_t payload[256];

	k.key[0].key = THEIR_KEY;
	k.key[0].addr = THEIR_BASE;
	known.seq = in ? view_rx_next(in) : 0;
	switch (data[2] % 3) {
	case 0:
		h.len = lnx_wire_keys_size(1);
		lnx_wire_keys_put(payload, &k);
		break;
	case 1:
		h.tag = data[3];
		break;
	default:
		h.len = data[4];
		memset(payload, 1, h.len);
	}
	fake_next(&f, &known, h, payload, h.len);
}

/* A call of the application: [what, size, flags]. */
static void remote(const uint8_t *data)
{
	static const size_t size[] = { 8, 500, 9000, 20000 };
	struct fi_rma_iov rma[2] = {
		{ .addr = data[1], .len = size[data[1] & 3], .key = 5 },
		{ .addr = 7, .len = size[data[1] >> 2 & 3],
		  .key = data[1] >> 4 & 3 },
	};
	struct iovec iov = { buf[nbuf % 8], 0 };
	struct fi_msg_rma m = {
		.msg_iov = &iov, .iov_count = 1, .addr = known.addr,
		.rma_iov = rma, .rma_iov_count = 1 + (data[0] >> 1 & 1),
		.context = &f,
	};
	uint64_t flags = (data[0] & 4 ? FI_DELIVERY_COMPLETE : 0) |
			 (data[0] & 8 ? FI_REMOTE_CQ_DATA : 0);
	size_t i;

	for (i = 0; i < m.rma_iov_count; i++)
		iov.iov_len += rma[i].len;
	if (iov.iov_len > sizeof(buf[0]))
		iov.iov_len = rma[0].len = sizeof(buf[0]) / 2,
		m.rma_iov_count = 1;
	if (nrma++ >= 8)
		return;
	if (data[0] & 1)
		fi_readmsg(f.ep, &m, 0);
	else if (data[0] & 16)
		fi_inject_write(f.ep, buf[0], 64, known.addr, 0, 5);
	else
		fi_writemsg(f.ep, &m, flags);
}

/* A call of the application: [what, size]. */
static void application(const uint8_t *data)
{
	size_t size = data[1] * 80u;
	struct fi_context ctx;
	struct fi_msg m = { .addr = FI_ADDR_UNSPEC, .context = &ctx };
	struct iovec iov = { buf[nbuf % 8], size };

	m.msg_iov = &iov;
	m.iov_count = 1;
	switch (data[0] % 8) {
	case 0:
		fi_trecv(f.ep, buf[nbuf++ % 8], size, NULL, FI_ADDR_UNSPEC,
			 data[1] & 3, data[0] >> 6, &f);
		break;
	case 1:
		fi_recv(f.ep, buf[nbuf++ % 8], size, NULL, FI_ADDR_UNSPEC, &f);
		break;
	case 2:
		fi_recvmsg(f.ep, &m, FI_MULTI_RECV);
		nbuf++;
		break;
	case 3:
		m.iov_count = 0;
		fi_recvmsg(f.ep, &m, FI_PEEK |
			   (data[1] & 1 ? FI_DISCARD : 0));
		break;
	case 4:
		fi_cancel(&f.ep->fid, &f);
		break;
	default:
		if (ntx++ < 8)
			fi_tsend(f.ep, buf[ntx % 8], size, NULL, known.addr,
				 data[1], &f);
	}
}

/* A step of the core: [what]. */
static void core(uint8_t what)
{
	struct fake_core *c = f.core[0];

	switch (what % 8) {
	case 0:
		c->send_again = what >> 4;
		break;
	case 1:
		c->send_fails = what >> 4;
		break;
	case 2:
		c->read_fails = what >> 4;
		break;
	case 3:
		c->read_again = what >> 4;
		break;
	case 4:
		c->hold_reads = !c->hold_reads;
		break;
	case 5:
		c->hold_sends = !c->hold_sends;
		break;
	case 6:
		fake_after_ms(&f, what >> 3);
		break;
	default:
		if (fake_held(c))
			fake_finish(c, fake_held(c) - 1,
				    what & 8 ? FI_EIO : 0);
	}
}

static void look(void)
{
	struct fi_cq_tagged_entry e[8];
	struct fi_cq_err_entry err;
	ssize_t n;

	fake_passes(&f, 3);
	while ((n = fi_cq_read(f.cq, e, 8)) != -FI_EAGAIN)
		if (n == -FI_EAVAIL)
			fi_cq_readerr(f.cq, &err, 0);
}

/* The peer acknowledges everything that left, so that queued frames can leave. */
static void acknowledge(struct fake_peer *p)
{
	struct lnx_peer *in = inside(p);

	if (!in)
		return;
	p->got = view_posted(in);
	fake_ack(&f, p);
}

/* Its only rail is in the net that routes lead to. */
static void put_behind(struct fake_peer *p)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(5001),
				  .sin_addr.s_addr = htonl(0x0a020005) };

	p->where.rail[0].group++;
	memcpy(p->where.rail[0].raw, &in, sizeof(in));
	FUZZ_CHECK(!lnx_addr_pack(&p->where, p->blob));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_opt opt = { .nrail = 1, .caps = FI_RMA };
	unsigned steps, i;
	bool routes;

	if (size < 2)
		return 0;
	routes = data[0] & 0x40;
	opt.kind[0] = data[0] & 1 || routes ? LNX_RAIL_PLAIN : LNX_RAIL_PEER;
	fake_conf.nets = routes ? "tcp1=127.0.0.0/8; tcp2=10.2.0.0/16" : NULL;
	fake_conf.routes = routes ? "tcp2 via 10.9.0.[7-9]@tcp1" : NULL;
	fake_conf.learn_routes = data[0] & 0x80;
	fake_via = 0;
	fake_conf.linger = 0;
	/* Or without one, where there is no libsodium. */
	fake_conf.job_key = data[0] & 0x20 ? "a key of this job" : NULL;
	if (fake_conf.job_key && lnx_job_key_check(&fake_conf))
		fake_conf.job_key = NULL;
	fake_conf.connect_timeout = 100;
	fake_conf.eager_limit = 8192;
	fake_conf.window = 8;
	fake_conf.chunk = 4096;
	nbuf = ntx = nrma = 0;
	memset(memory, STAYS, sizeof(memory));
	fake_open(&f, &opt);
	f.lnx->eid = OWN_ID;
	fake_peer_init(&f, &known, 0x1111111111111111);
	if (routes)
		put_behind(&known);
	fake_peer_init(&f, &unsolicited, 0x2222222222222222);
	fake_peer_insert(&f, &known);
	fake_region_rw(f.core[0], THEIR_KEY, THEIR_BASE, theirs,
		       sizeof(theirs));
	for (i = 0; i < NPIECE; i++)
		registration((uint8_t)i);

	for (steps = 0; steps < STEPS && size >= 3; steps++) {
		size_t n = 1 + (data[1] | (size_t)(data[2] & 0x3f) << 8);
		const uint8_t *arg = data + 3;
		uint8_t what = *data % 16;

		n = LNX_MIN(n, size - 3);
		data += 3 + n;
		size -= 3 + n;
		if (what == 0)
			raw(arg, n);
		else if (what <= 3 && n >= 7)
			framed(arg, n);
		else if (what == 4 && n >= 4)
			announce(arg);
		else if (what == 5 && n >= 2)
			application(arg);
		else if (what == 6 && n >= 1)
			core(*arg);
		else if (what == 8 && n >= 10)
			announce_write(arg);
		else if (what == 9 && n >= 5)
			answer(arg);
		else if (what == 10 && n >= 2)
			remote(arg);
		else if (what == 11 && n >= 1)
			registration(*arg);
		else if (what == 12 && n >= 14)
			atomic(arg);
		else if (what == 13 && n >= 10)
			gateway(arg);
		else
			look();
	}
	look();
	/* Nothing is blocked any more: whatever can end, ends. */
	f.core[0]->send_again = f.core[0]->read_again = 0;
	f.core[0]->send_fails = f.core[0]->read_fails = 0;
	f.core[0]->hold_sends = f.core[0]->hold_reads = false;
	fake_finish_all(f.core[0]);
	for (i = 0; i < 10; i++) {
		fake_after_ms(&f, 30);
		acknowledge(&known);
		acknowledge(&unsolicited);
	}
	look();
	FUZZ_CHECK(!fi_close(&f.ep->fid));
	f.ep = NULL;
	for (i = 0; i < NPIECE; i++) {
		if (mr[i])
			FUZZ_CHECK(!fi_close(&mr[i]->fid));
		mr[i] = NULL;
	}
	memory_stays();
	fake_via = 0;
	fake_close_quick(&f);
	return 0;
}
