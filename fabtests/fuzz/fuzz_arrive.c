/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arbitrary frames into an endpoint that has receives posted, sends under way
 * and a peer it knows: no crash, no leak, no hang, and whatever it answers is a
 * good frame (the scripted core checks that).  An input is a list of steps:
 * what to do, a length, so many bytes.
 *
 * Above: fabtests/unit/fake_core.c fabtests/unit/fake_world.c
 * Libraries: libfabric
 */
#define LNX_FUZZ_NAME "arrive"
#include "fuzz.h"

#include <string.h>

#include "../unit/fake_core.h"

#define STEPS	64
#define HDR	sizeof(struct lnx_wire_hdr)
#define OWN_ID	0x7777777777777777ULL

static struct fake f;
static struct fake_peer known, stranger;
static uint8_t buf[8][20000];
static unsigned nbuf, ntx;

static struct lnx_peer *inside(const struct fake_peer *p)
{
	return lnx_peer_by_eid(f.lnx, p->eid);
}

/* Bytes as they come. */
static void raw(const uint8_t *data, size_t n)
{
	fake_arrive(f.core[0], data, n);
}

/*
 * A header that gets past the first checks: [who, kind, flags, seq, ack, tag,
 * how many bytes the length is off].
 */
static void framed(const uint8_t *data, size_t n)
{
	struct fake_peer *p = data[0] & 1 ? &known : &stranger;
	struct lnx_peer *in = inside(p);
	static uint8_t copy[HDR + LNX_FRAME_MAX];
	struct lnx_hdr h = {
		.kind = data[1] % (LNX_KIND_MAX + 1),
		.flags = data[2] % (LNX_WIRE_F_ALL + 1),
		.seq = (in ? in->seq.next : 0) + (uint32_t)(int8_t)data[3],
		.ack = (in ? in->tx_una : 0) + (uint32_t)(int8_t)data[4],
		.src = p->eid, .dst = OWN_ID, .tag = data[5] & 3,
		.data = data[5] >> 2,
	};

	data += 7;
	n -= 7;
	h.len = n + (uint64_t)(int8_t)data[-1];
	if (h.kind == LNX_KIND_HELLO && (h.flags & LNX_WIRE_F_DATA)) {
		data = p->blob;
		n = sizeof(p->blob);
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
	fake_arrive(f.core[0], copy, HDR + n);
}

/* An RTS that reads well: [who, tag, pieces, length of each in KiB]. */
static void announce(const uint8_t *data)
{
	struct fake_peer *p = data[0] & 1 ? &known : &stranger;
	static const uint8_t memory[16 << 10];
	struct lnx_peer *in = inside(p);
	uint64_t seg[LNX_RTS_SEGS];
	unsigned i, nseg = 1 + data[2] % LNX_RTS_SEGS;

	for (i = 0; i < nseg; i++)
		seg[i] = 1 + (data[3] + i) % 4 * 1023;
	p->seq = in ? in->seq.next : 0;
	fake_rts(&f, p, data[0] & 2, data[1] & 3, data[0], memory, seg, nseg);
}

/* The application: [what, size]. */
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

/* The core: [what]. */
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

/* The peer has everything that left, so that what waits behind it can leave. */
static void acknowledge(struct fake_peer *p)
{
	struct lnx_peer *in = inside(p);

	if (!in)
		return;
	p->got = in->tx_posted;
	fake_ack(&f, p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_opt opt = { .nrail = 1 };
	unsigned steps, i;

	if (size < 2)
		return 0;
	opt.kind[0] = data[0] & 1 ? LNX_RAIL_PLAIN : LNX_RAIL_PEER;
	fake_conf.linger = 0;
	fake_conf.connect_timeout = 100;
	fake_conf.eager_limit = 8192;
	fake_conf.window = 8;
	fake_conf.chunk = 4096;
	nbuf = ntx = 0;
	fake_open(&f, &opt);
	f.lnx->eid = OWN_ID;
	fake_peer_init(&f, &known, 0x1111111111111111);
	fake_peer_init(&f, &stranger, 0x2222222222222222);
	fake_peer_insert(&f, &known);

	for (steps = 0; steps < STEPS && size >= 3; steps++) {
		size_t n = 1 + (data[1] | (size_t)(data[2] & 0x3f) << 8);
		const uint8_t *arg = data + 3;
		uint8_t what = *data % 8;

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
		else
			look();
	}
	look();
	/* Nothing in its way any more: what can end, ends. */
	f.core[0]->send_again = f.core[0]->read_again = 0;
	f.core[0]->send_fails = f.core[0]->read_fails = 0;
	f.core[0]->hold_sends = f.core[0]->hold_reads = false;
	fake_finish_all(f.core[0]);
	for (i = 0; i < 10; i++) {
		fake_after_ms(&f, 30);
		acknowledge(&known);
		acknowledge(&stranger);
	}
	look();
	fake_close_quick(&f);
	return 0;
}
