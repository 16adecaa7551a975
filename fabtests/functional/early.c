/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first messages of endpoints that the receiver does not know yet: they come in order,
 * to the receives that name their endpoint, whatever their length and tag, and whichever was
 * first: these receives, or progress before the endpoint is in the address vector.  Some
 * lengths, and a tag, are those of what lnx says itself over shared memory.
 */
#include "hazard.h"

#include <string.h>

#include "lnx_wire_shm.h"

#define SENDERS		8		/* endpoints */
#define N		6		/* messages of each */
#define ROOM		66000		/* of a receive */
#define TAG		7

enum { UNTAGGED, TAGGED, RESERVED };	/* with the tag of what lnx says itself */
enum { POSTED, STORED, LATE };		/* receives */

struct sender {
	struct ft_objs o;
	fi_addr_t to;
	unsigned done, failed;
};

struct name {
	unsigned char bytes[FT_NAME_MAX];
};

static struct sender sender[SENDERS];
static struct name name[SENDERS];

/* Of message i of endpoint k: longer ones come in other ways. */
static size_t len_of(int k, int i)
{
	static const size_t first[SENDERS] = {
		LNX_SHM_CTRL_BYTES, LNX_PUSH_REST_BYTES, LNX_COPY_BYTES, LNX_PUSH_BYTES,
		64, 4583, 60000, 0,
	};
	static const size_t next[] = {
		4583, LNX_SHM_CTRL_BYTES, 64, 60000, LNX_PUSH_BYTES,
	};

	return i ? next[(k + i - 1) % 5] : first[k];
}

/* ---- rank 1 ---- */

static void progress(struct sender *s)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(s->o.cq, &e, 1);

	if (ret == 1)
		s->done++;
	else if (ret == -FI_EAVAIL && fi_cq_readerr(s->o.cq, &err, 0) == 1)
		s->failed++;
}

static int send_one(struct ft *ft, const struct ft_case *c, int k, int i)
{
	double end = ft_now() + ft->run->timeout_s;
	struct sender *s = &sender[k];
	struct ft_msg m = {
		.tagged = c->a != UNTAGGED, .addr = s->to, .len = len_of(k, i),
		.tag = c->a == RESERVED ? LNX_SHM_CTRL_TAG : TAG,
		.buf = outs[(k * N + i) % SLOTS],
	};
	ssize_t ret;

	while ((ret = ft_try_send(s->o.ep, NULL, &m)) == -FI_EAGAIN && ft_now() < end)
		progress(s);
	FT_CALL(ft, ret);
	return FT_PASS;
}

static int all_sent(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;
	int k, left;

	do {
		for (k = left = 0; k < SENDERS; k++) {
			progress(&sender[k]);
			FT_CHECK(ft, !sender[k].failed, "endpoint %d: a send failed", k);
			left += sender[k].done != N;
		}
	} while (left && ft_now() < end);
	FT_CHECK(ft, !left, "%d endpoints with sends that do not end", left);
	return FT_PASS;
}

static int send_all(struct ft *ft, const struct ft_case *c, const struct name *to)
{
	int i, k;

	for (k = 0; k < SENDERS; k++)
		FT_CHECK(ft, fi_av_insert(sender[k].o.av, to, 1, &sender[k].to, 0, NULL) == 1,
			 "endpoint %d: fi_av_insert failed", k);
	for (i = 0; i < N; i++)
		for (k = 0; k < SENDERS; k++)
			FT_TRY(send_one(ft, c, k, i));
	return FT_PASS;
}

/* ---- rank 0 ---- */

static unsigned char *at(int k, int i)
{
	return ins + (size_t)(k * N + i) * ROOM;
}

static int receive_all(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *op[SENDERS * N];
	fi_addr_t from[SENDERS];
	int i, k;

	if (c->b != POSTED)
		ft_linger(ft, 0.05);
	for (k = 0; k < SENDERS; k++)
		FT_CHECK(ft, fi_av_insert(ft->o.av, &name[k], 1, &from[k], 0, NULL) == 1,
			 "fi_av_insert failed");
	if (c->b == LATE)
		ft_linger(ft, 0.05);
	for (i = 0; i < N; i++) {
		for (k = 0; k < SENDERS; k++) {
			ft->addr[1] = from[k];
			op[k * N + i] = post(ft, c->a != UNTAGGED, 1, c->a == RESERVED ?
					     LNX_SHM_CTRL_TAG : TAG, at(k, i), ROOM);
			FT_CHECK(ft, op[k * N + i], "receive %d of %d not posted", i, k);
		}
	}
	FT_TRY(all_done(ft, op, SENDERS * N, "receives that name their source"));
	for (k = 0; k < SENDERS; k++) {
		for (i = 0; i < N; i++) {
			const struct ft_op *o = op[k * N + i];

			FT_TRY(check(ft, o, at(k, i), len_of(k, i), 1,
				     (uint64_t)(k * N + i)));
			FT_CHECK(ft, o->src == from[k], "message %d of %d has another source",
				 i, k);
		}
	}
	return FT_PASS;
}

/* ---- both ---- */

static int open_all(struct ft *ft, const struct ft_cfg *cfg)
{
	int k, n = ft->rank ? SENDERS : 1;

	memset(sender, 0, sizeof(sender));
	for (k = 0; k < n; k++) {
		if (ft_objs_open(ft, cfg, &sender[k].o))
			return FT_FAIL;
		memcpy(&name[k], sender[k].o.name, sizeof(name[k]));
	}
	if (ft->rank)
		return FT_PASS;
	/* For what waits and makes progress. */
	ft->o = sender[0].o;
	ft->cfg = *cfg;
	ft->open = true;
	ft_ops_drop(ft);
	return FT_PASS;
}

static int run(struct ft *ft, const struct ft_case *c)
{
	struct { struct name of[SENDERS]; } all[2];
	struct name to;

	prepare(ft, (size_t)SENDERS * N * ROOM);
	FT_TRY(open_all(ft, &c->cfg));
	FT_CHECK(ft, !oob_allgather(&ft->oob, name, all, sizeof(name)), "lost a rank");
	memcpy(name, all[1].of, sizeof(name));
	to = all[0].of[0];
	if (ft->rank)
		FT_TRY(send_all(ft, c, &to));
	FT_CHECK(ft, !oob_barrier(&ft->oob), "lost a rank");
	return ft->rank ? all_sent(ft) : receive_all(ft, c);
}

static int early(struct ft *ft, const struct ft_case *c)
{
	int all[2], k, ret;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "not over lnx");
	ret = run(ft, c);
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a rank");
	ft->open = false;
	for (k = 0; k < SENDERS; k++)
		if (sender[k].o.ep && ft_objs_close(ft, &sender[k].o) && ret == FT_PASS)
			ret = FT_FAIL;
	ft_ops_drop(ft);
	return ret;
}

#define CASES(word, tag)							\
	{ .name = "posted-" word, .fn = early, .a = tag, .b = POSTED },		\
	{ .name = "stored-" word, .fn = early, .a = tag, .b = STORED },		\
	{ .name = "late-" word, .fn = early, .a = tag, .b = LATE }

int main(int argc, char **argv)
{
	static struct ft_case cases[] = {
		CASES("untagged", UNTAGGED), CASES("tagged", TAGGED),
		CASES("reserved", RESERVED),
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i].cfg.alone = true;
	return ft_main(argc, argv, "first messages of unknown endpoints", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
