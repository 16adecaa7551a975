/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams of tagged messages.  A message begins with its number, which is also
 * its tag; the rest is computed from seed and number.  The target's receives
 * match any tag, so that a wrong order is seen instead of waited for.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LATE	100000		/* size of the largest unexpected message */

static unsigned char *buf;		/* one for each slot or receive */
static unsigned nrecv;
static struct ft_op **recv_op;
static uint64_t *turn_of;		/* the number of the receive in each slot */
static unsigned posted;
static uint64_t nposted, shift;
static struct seen seen;
static bool unexpected;
static size_t max_bytes;
static uint64_t quiet_until_ns, rng;

static size_t bytes_of(struct ft *ft, uint64_t seq)
{
	static const size_t sizes[] = { 8, 64, 200, 1000, 4096, 16320, 16321,
					40000, MAX_LATE };
	uint64_t r;

	if (!unexpected)
		return msg_bytes;
	r = pattern_mix(ft->run->seed + seq * 0x9e3779b97f4a7c15ULL);
	return sizes[r % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void check(struct ft *ft, struct ft_op *op)
{
	unsigned slot = (unsigned)(uintptr_t)op->arg;
	unsigned char *at = buf + slot * max_bytes;
	/* Large ones may complete out of order, but must match in order. */
	uint64_t seq, due = turn_of[slot] + shift;

	delivered(op->len);
	if (op->err) {
		tally.failed++;
		note_error(op->err);
		wrong("a receive gave: %s", fi_strerror(op->err));
		return;
	}
	memcpy(&seq, at, sizeof(seq));
	if (op->len < sizeof(seq) || op->len != bytes_of(ft, seq) ||
	    op->tag != seq || pattern_check(at + 8, op->len - 8,
	    ft->run->seed, SOURCE, seq) >= 0) {
		tally.corrupt++;
		wrong("message %llu with tag %llu and %zu bytes is not what "
		      "was sent", (unsigned long long)seq,
		      (unsigned long long)op->tag, op->len);
		return;
	}
	switch (seen_add(&seen, seq)) {
	case 0:
		tally.doubled++;
		wrong("message %llu a second time, %llu is due",
		      (unsigned long long)seq, (unsigned long long)due);
		break;
	case 1:
		if (seq != due) {
			tally.reordered++;
			wrong("message %llu when %llu is due",
			      (unsigned long long)seq,
			      (unsigned long long)due);
			shift = seq - turn_of[slot];
		}
		break;
	default:
		wrong("out of memory, or no number: %llu",
		      (unsigned long long)seq);
	}
}

static int post(struct ft *ft, struct ft_op *op);

static void arrived(struct ft *ft, struct ft_op *op)
{
	posted--;
	check(ft, op);
	if (!unexpected && !op->err)
		post(ft, op);
}

static int post(struct ft *ft, struct ft_op *op)
{
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[SOURCE], .len = max_bytes,
		.ignore = ~0ULL,
	};
	void *arg = op->arg;
	int ret;

	ft_op_reset(op);
	op->arg = arg;
	op->hook = arrived;
	m.buf = buf + (uintptr_t)arg * max_bytes;
	turn_of[(uintptr_t)arg] = nposted++;
	posted++;
	ret = ft_recv(ft, op, &m);
	if (!ret)
		return 0;
	posted--;
	wrong("fi_trecv: %s", fi_strerror(-ret));
	return ret;
}

static int prepare(struct ft *ft, bool late)
{
	unsigned i, n = window;
	int ret;

	unexpected = late;
	rng = ft->run->seed;
	max_bytes = late ? MAX_LATE : msg_bytes;
	if (ft->rank == TARGET) {
		/* The source must never have to wait for a receive. */
		nrecv = n = late ? window / 2 + 1 : window * 2;
		recv_op = calloc(n, sizeof(*recv_op));
		turn_of = calloc(n, sizeof(*turn_of));
	}
	buf = malloc(n * max_bytes);
	if (!buf || (ft->rank == TARGET && (!recv_op || !turn_of)))
		return ft_fail(ft, "out of memory");
	memset(buf, 0, n * max_bytes);
	for (i = 0; i < nrecv; i++) {
		recv_op[i] = ft_op_new(ft);
		recv_op[i]->arg = (void *)(uintptr_t)i;
		if (late)
			continue;
		ret = post(ft, recv_op[i]);
		if (ret)
			return ft_fail(ft, "fi_trecv: %s", fi_strerror(-ret));
	}
	return 0;
}

static int prepare_stream(struct ft *ft)
{
	return prepare(ft, false);
}

static int prepare_unexpected(struct ft *ft)
{
	return prepare(ft, true);
}

static int start(struct ft *ft, unsigned slot, fi_addr_t to)
{
	uint64_t seq = tally.sent;
	size_t len = bytes_of(ft, seq);
	unsigned char *at = buf + slot * max_bytes;
	struct iovec iov = { .iov_base = at, .iov_len = len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = seq,
		.context = slot_op[slot],
	};

	memcpy(at, &seq, sizeof(seq));
	pattern_fill(at + 8, len - 8, ft->run->seed, SOURCE, seq);
	if (acked)
		return (int)fi_tsendmsg(ft->o.ep, &msg, FI_DELIVERY_COMPLETE);
	return (int)fi_tsend(ft->o.ep, at, len, NULL, to, seq, slot_op[slot]);
}

static void done(struct ft *ft, unsigned slot)
{
	(void)ft;
	/* The buffer is ours again: if it is still sent, the data is wrong. */
	memset(buf + slot * max_bytes, 0xee, 8);
}

/* No receive is posted for a while; then as many as messages may have come, at once. */
static int serve_late(struct ft *ft)
{
	unsigned i;
	int ret;

	if (posted || now_ns() < quiet_until_ns)
		return 0;
	if (quiet_until_ns) {
		for (i = 0; i < nrecv; i++) {
			ret = post(ft, recv_op[i]);
			if (ret)
				return ft_fail(ft, "fi_trecv: %s",
					       fi_strerror(-ret));
		}
	}
	quiet_until_ns = now_ns() + (2 + pattern_random(&rng) % 20) * 1000000;
	return 0;
}

static bool complete(uint64_t sent)
{
	return seen.count >= sent;
}

static void finish(struct ft *ft, const struct tally *theirs)
{
	if (ft->rank == TARGET && seen.count < theirs->sent)
		wrong("%llu of %llu messages did not arrive",
		      (unsigned long long)(theirs->sent - seen.count),
		      (unsigned long long)theirs->sent);
	tally.unique = ft->rank == TARGET ? seen.count : theirs->unique;
}

const struct traffic stream_traffic = {
	.name = "stream", .size = 64, .window = 0, .prepare = prepare_stream,
	.start = start, .done = done, .complete = complete, .finish = finish,
};

const struct traffic unexpected_traffic = {
	.name = "unexpected", .size = MAX_LATE, .window = 256,
	.prepare = prepare_unexpected, .start = start, .done = done,
	.serve = serve_late, .complete = complete, .finish = finish,
};
