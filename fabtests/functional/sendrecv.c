/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every form of send with every form of receive, over the sizes at which some
 * provider changes how it moves a message, with the receive posted before and
 * after the message arrives.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY		64
#define CANARY_BYTE	0xc5
#define HUGE_BYTES	((1ULL << 30) + 4097)

static const size_t sizes[] = {
	0, 1, 8, 63, 64, 65, 192, 193, 4095, 4096, 4097, 8192, 16319, 16320,
	16321, 16384, 16385, 65536, 131072, 131073, 1 << 20, 4 << 20
};
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))
#define MAX_BYTES	(4 << 20)

static unsigned char *sbuf, *rbuf;

static void buffers(size_t len)
{
	static size_t have;

	if (len <= have)
		return;
	free(sbuf);
	free(rbuf);
	sbuf = malloc(len + CANARY);
	rbuf = malloc(len + CANARY);
	if (!sbuf || !rbuf) {
		fprintf(stderr, "# out of memory\n");
		exit(1);
	}
	have = len;
}

static uint64_t tag_of(int i)
{
	return 0xfedcba9876543210ULL + (uint64_t)i;
}

static uint64_t data_of(struct ft *ft, int i)
{
	uint64_t v = 0x0102030405060708ULL * (uint64_t)(i + 1);

	return ft->o.info->domain_attr->cq_data_size >= 8 ? v : (uint32_t)v;
}

static bool has_data(const struct ft_msg *m)
{
	return m->call == FT_SENDDATA || m->call == FT_INJECTDATA;
}

static int send_one(struct ft *ft, const struct ft_case *c, int i, size_t len,
		    int peer, bool late)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = c->a, .call = (int)c->b, .addr = ft->addr[peer],
		.buf = sbuf, .len = len, .tag = tag_of(i),
		.data = data_of(ft, i),
	};
	bool inject = m.call == FT_INJECT || m.call == FT_INJECTDATA;

	pattern_fill(sbuf, len, ft->run->seed, (unsigned)ft->rank,
		     (uint64_t)i);
	if (!late)
		ft_barrier(ft);		/* the receive is posted */
	FT_CALL(ft, ft_send(ft, inject ? NULL : op, &m));
	if (inject)
		memset(sbuf, 0xee, len);	/* the buffer is ours again */
	if (late)
		ft_barrier(ft);
	if (!inject) {
		FT_DONE(ft, op);
		FT_CHECK(ft, op->flags & FI_SEND, "size %zu: send completion "
			 "with flags %#llx", len,
			 (unsigned long long)op->flags);
	}
	return FT_PASS;
}

static int recv_one(struct ft *ft, const struct ft_case *c, int i, size_t len,
		    int peer, bool late)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = c->a, .call = (int)(c->c & 0xff),
		.addr = i % 2 ? ft->addr[peer] : ft_any(ft, peer),
		.buf = rbuf, .len = len + (i % 3 ? 0 : CANARY / 2),
		.tag = tag_of(i),
	};
	struct ft_msg sent = { .call = (int)c->b };
	uint64_t kind = c->a ? FI_TAGGED : FI_MSG;
	long long at;

	memset(rbuf, CANARY_BYTE, len + CANARY);
	if (late) {
		ft_barrier(ft);		/* the message is under way */
		ft_linger(ft, 0.001);
	}
	FT_CALL(ft, ft_recv(ft, op, &m));
	if (!late)
		ft_barrier(ft);
	FT_DONE(ft, op);
	FT_CHECK(ft, op->len == len, "size %zu: completion with len %zu", len,
		 op->len);
	FT_CHECK(ft, (op->flags & (FI_RECV | kind)) == (FI_RECV | kind),
		 "size %zu: receive completion with flags %#llx", len,
		 (unsigned long long)op->flags);
	FT_CHECK(ft, !c->a || op->tag == m.tag, "size %zu: tag %#llx", len,
		 (unsigned long long)op->tag);
	FT_CHECK(ft, op->src == ft->addr[peer], "size %zu: source %#llx",
		 len, (unsigned long long)op->src);
	if (has_data(&sent))
		FT_CHECK(ft, op->flags & FI_REMOTE_CQ_DATA &&
			 op->data == data_of(ft, i), "size %zu: flags %#llx, "
			 "cq data %#llx", len, (unsigned long long)op->flags,
			 (unsigned long long)op->data);
	else
		FT_CHECK(ft, !(op->flags & FI_REMOTE_CQ_DATA), "size %zu: cq "
			 "data that was not sent", len);
	if (!ft->run->verify)
		return FT_PASS;
	at = pattern_check(rbuf, len, ft->run->seed, (unsigned)peer,
			   (uint64_t)i);
	FT_CHECK(ft, at < 0, "size %zu: wrong byte at %lld", len, at);
	at = pattern_is_filled(rbuf + len, CANARY, CANARY_BYTE);
	FT_CHECK(ft, at < 0, "size %zu: byte %lld after the message was "
		 "written", len, at);
	return FT_PASS;
}

static int one_size(struct ft *ft, const struct ft_case *c, int i, size_t len)
{
	bool late = c->c >> 8;
	int sender = i % 2;

	if (ft->rank == sender)
		return send_one(ft, c, i, len, !sender, late);
	if (ft->rank == !sender)
		return recv_one(ft, c, i, len, sender, late);
	ft_barrier(ft);
	return FT_PASS;
}

static int run_sizes(struct ft *ft, const struct ft_case *c)
{
	size_t inject = ft->o.info->tx_attr->inject_size;
	size_t limit = c->b == FT_INJECT || c->b == FT_INJECTDATA ? inject :
		       MAX_BYTES;
	int i;

	if (c->b == FT_SENDDATA || c->b == FT_INJECTDATA)
		if (!ft->o.info->domain_attr->cq_data_size)
			return ft_skip(ft, "no remote cq data");
	buffers(MAX_BYTES);
	for (i = 0; i < NSIZES; i++) {
		if (sizes[i] > limit)
			break;
		if (ft->run->size != UINT64_MAX && ft->run->size != sizes[i])
			continue;
		if (ft->run->quick && sizes[i] > 131073)
			break;
		FT_TRY(one_size(ft, c, i, sizes[i]));
	}
	/* Also exactly at the limit of each inject size. */
	if (limit == inject)
		FT_TRY(one_size(ft, c, NSIZES, inject));
	return FT_PASS;
}

static int run_huge(struct ft *ft, const struct ft_case *c)
{
	buffers(HUGE_BYTES);
	return one_size(ft, c, 0, HUGE_BYTES);
}

/* An inject above the limit must be refused, not truncated or sent anyway. */
static int inject_too_long(struct ft *ft, const struct ft_case *c)
{
	size_t len = ft->o.info->tx_attr->inject_size + 1;
	struct ft_msg m = {
		.tagged = c->a, .call = FT_INJECT, .addr = ft->addr[1],
		.buf = sbuf, .len = len, .tag = 1,
	};
	ssize_t ret;

	buffers(MAX_BYTES);
	if (ft->rank)
		return FT_PASS;
	ft_known(ft, NULL, "sends it");
	m.buf = sbuf;
	ret = ft_send(ft, NULL, &m);
	FT_CHECK(ft, ret < 0 && ret != -FI_ETIMEDOUT, "%zu bytes with "
		 "inject_size %zu gave %zd", len, len - 1, ret);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[128];
	struct ft_case *c = cases;
	int tagged, s, r, late;

	for (tagged = 0; tagged < 2; tagged++)
	for (s = 0; s < FT_SEND_CALLS; s++)
	for (r = 0; r < FT_RECV_CALLS; r++)
	for (late = 0; late < 2; late++, c++) {
		snprintf(c->name, sizeof(c->name), "%s%s-%s-%s",
			 tagged ? "t" : "", ft_send_names[s],
			 ft_recv_names[r], late ? "unexpected" : "expected");
		c->fn = run_sizes;
		c->a = (uint64_t)tagged;
		c->b = (uint64_t)s;
		c->c = (uint64_t)(r | late << 8);
		/* The diagonal finds most errors; the rest is for full runs. */
		c->slow = s % FT_RECV_CALLS != r;
	}
	for (tagged = 0; tagged < 2; tagged++, c++) {
		snprintf(c->name, sizeof(c->name), "%sinject-too-long",
			 tagged ? "t" : "");
		c->fn = inject_too_long;
		c->a = (uint64_t)tagged;
	}
	for (late = 0; late < 2; late++, c++) {
		snprintf(c->name, sizeof(c->name), "tsend-recv-huge-%s",
			 late ? "unexpected" : "expected");
		c->fn = run_huge;
		c->a = 1;
		c->c = (uint64_t)(late << 8);
		c->huge = true;
	}
	return ft_main(argc, argv, "all spellings of send and receive",
		       cases, (int)(c - cases));
}
