/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local processes whose memory other processes may not read (by
 * PR_SET_DUMPABLE, which any process may set and programs that hold secrets do
 * set), in one direction or both, from the beginning or from a later time.
 * Messages, writes and reads between them still work.  man/fi_lnx.7, LARGE
 * MESSAGES.
 */
#include "pair.h"
#include "../common/rma.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define PLAIN_USER		65534

static const size_t sizes[] = { 100000, 1, 64, 4096, 4097, 5000, 16384, 65536,
				1 << 20 };
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))

enum { NEVER = 4, BOTH = 3 };			/* a: the rank that hides, as 1 << rank,
						 * or one of these */
enum { AT_FIRST, OPENED, USED };		/* b: since when */
enum { MESSAGES, RMA };				/* c: what is exchanged */

/* From here on this process cannot be read, if the case hides it. */
static int hide(struct pair *p)
{
	if (p->c->a >> p->ft->rank & 1)
		FT_CHECK(p->ft, !prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
	return FT_PASS;
}

/* Check that the kernel does what these cases need. */
static int hidden(struct pair *p)
{
	struct { pid_t pid; const void *at; } mine = { getpid(), &outs[0] },
					      theirs;
	bool can;

	FT_TRY(pair_swap(p, &mine, &theirs, sizeof(mine)));
	can = reads_memory(theirs.pid, theirs.at);
	FT_TRY(pair_meet(p));
	FT_CHECK(p->ft, !can || !(p->c->a >> !p->ft->rank & 1),
		 "the other process can be read");
	return FT_PASS;
}

/* ---- messages ---- */

static int one_way(struct pair *p, int from, bool posted)
{
	struct ft_op *op[NSIZES];
	struct ft *ft = p->ft;
	int i;

	memset(ins, 0, (size_t)NSIZES * SLOT);
	for (i = 0; i < NSIZES && ft->rank != from && posted; i++) {
		op[i] = post(ft, i % 2, from, (uint64_t)i,
			     ins + (size_t)i * SLOT, SLOT);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	FT_TRY(pair_meet(p));
	for (i = 0; i < NSIZES && ft->rank == from; i++) {
		op[i] = put(ft, i % 2, !from, (uint64_t)i, (uint64_t)i,
			    sizes[i]);
		FT_CHECK(ft, op[i], "send of %zu bytes refused", sizes[i]);
	}
	if (!posted) {
		ft_linger(ft, 0.01);	/* longer than FI_LNX_PARK */
		FT_TRY(pair_meet(p));
	}
	for (i = 0; i < NSIZES && ft->rank != from && !posted; i++) {
		op[i] = post(ft, i % 2, from, (uint64_t)i,
			     ins + (size_t)i * SLOT, SLOT);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	FT_TRY(all_done(ft, op, NSIZES, ft->rank == from ? "sends" :
			"receives"));
	for (i = 0; i < NSIZES; i++) {
		FT_CHECK(ft, !op[i]->err, "%zu bytes: %s", sizes[i],
			 fi_strerror(op[i]->err));
		FT_CHECK(ft, op[i]->done == 1, "%zu bytes ended %u times",
			 sizes[i], op[i]->done);
		if (ft->rank != from)
			FT_TRY(check(ft, op[i], ins + (size_t)i * SLOT,
				     sizes[i], from, (uint64_t)i));
	}
	return pair_meet(p);
}

/* Truncated, discarded, and received in several pieces. */
static int special_receives(struct pair *p, int from)
{
	static const size_t part[] = { 3000, 0, 60000, 37000 };
	struct ft *ft = p->ft;
	struct iovec iov[4];
	struct ft_op *op[2];
	size_t off = 0;
	int i;

	for (i = 0; i < 4; i++) {
		iov[i].iov_base = ins + off + (size_t)i * 100;
		iov[i].iov_len = part[i];
		off += part[i];
	}
	memset(ins, 0, SLOT);
	if (ft->rank == from) {
		op[0] = put(ft, true, !from, 1, 5, 100000);
		op[1] = put(ft, true, !from, 2, 6, 100000);
	} else {
		op[0] = ft_op_new(ft);
		op[0]->posted = true;
		FT_CALL(ft, fi_trecvv(ft->o.ep, iov, NULL, 4, ft->addr[from], 1,
				      0, op[0]));
		op[1] = post(ft, true, from, 2, ins + SLOT, 10000);
	}
	FT_CHECK(ft, op[0] && op[1], "not taken");
	FT_TRY(all_done(ft, op, 2, "operations"));
	if (ft->rank == from)
		return pair_meet(p);
	FT_CHECK(ft, op[1]->err == FI_ETRUNC, "a receive that is too short: %s",
		 fi_strerror(op[1]->err));
	FT_CHECK(ft, !op[0]->err, "in pieces: %s", fi_strerror(op[0]->err));
	for (i = 0, off = 0; i < 4; off += part[i++])
		memmove(ins + off, iov[i].iov_base, part[i]);
	FT_TRY(check(ft, op[0], ins, 100000, from, 5));
	return pair_meet(p);
}

static int messages(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		FT_TRY(one_way(p, i, true));
		FT_TRY(one_way(p, i, false));
		FT_TRY(special_receives(p, i));
	}
	return FT_PASS;
}

/* ---- remote memory ---- */

static int rma_by(struct pair *p, int rank, struct ft_mr *mr, struct ft_mr *own)
{
	struct ft *ft = p->ft;
	struct ft_rma r;
	long long at;
	int i;

	for (i = 0; i < NSIZES; i++) {
		memset(mr->buf, 0, SLOT);
		FT_TRY(pair_meet(p));
		if (ft->rank == rank) {
			ft_rma_set(ft, &r, FT_WRITE, outs[0], sizes[i], own, mr,
				   !rank, 0);
			r.flags = FI_DELIVERY_COMPLETE;
			r.call = FT_WRITEMSG;
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
		}
		FT_TRY(pair_meet(p));
		if (ft->rank != rank) {
			at = pattern_check(mr->buf, sizes[i], ft->run->seed,
					   (unsigned)rank, 0);
			FT_CHECK(ft, at < 0, "byte %lld of %zu written is "
				 "wrong", at, sizes[i]);
		}
		pattern_fill(mr->buf, sizes[i], ft->run->seed,
			     (unsigned)ft->rank, 7);
		FT_TRY(pair_meet(p));
		if (ft->rank == rank) {
			memset(ins, 0, SLOT);
			ft_rma_set(ft, &r, FT_READ, ins, sizes[i], NULL, mr,
				   !rank, 0);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
			at = pattern_check(ins, sizes[i], ft->run->seed,
					   (unsigned)!rank, 7);
			FT_CHECK(ft, at < 0, "byte %lld of %zu read is wrong",
				 at, sizes[i]);
		}
		FT_TRY(pair_meet(p));
	}
	return FT_PASS;
}

static int rma(struct pair *p)
{
	struct ft *ft = p->ft;
	struct ft_mr mr, own;
	unsigned char *buf = need(malloc(SLOT));
	int i;

	FT_CHECK(ft, !ft_mr_reg(ft, &mr, buf, SLOT, FT_MR_ACCESS) &&
		 !ft_mr_reg(ft, &own, outs[0], SLOT, FT_MR_ACCESS),
		 "cannot register");
	mr.at[ft->rank] = (struct ft_target) {
		.base = ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR ?
			(uintptr_t)buf : 0,
		.key = fi_mr_key(mr.mr), .len = SLOT,
	};
	FT_TRY(pair_swap(p, &mr.at[ft->rank], &mr.at[!ft->rank],
			 sizeof(mr.at[0])));
	for (i = 0; i < 2; i++)
		FT_TRY(rma_by(p, i, &mr, &own));
	ft_mr_close(ft, &mr);
	ft_mr_close(ft, &own);
	free(buf);
	return FT_PASS;
}

/* ---- cases ---- */

static int side(struct pair *p)
{
	struct ft *ft = p->ft;
	int (*go)(struct pair *p) = p->c->c == RMA ? rma : messages;
	struct ft_cfg cfg = { .caps = p->c->c == RMA ? FT_RMA_CAPS : 0 };

	/* Root may read any process, so drop root; changing the user clears
	 * dumpable. */
	FT_CHECK(ft, geteuid() || (!setgroups(0, NULL) && !setgid(PLAIN_USER) &&
				   !setuid(PLAIN_USER)), "cannot become another user");
	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	prepare(ft, (size_t)NSIZES * SLOT);
	if (p->c->b == AT_FIRST)
		FT_TRY(hide(p));
	FT_TRY(pair_open(p, &cfg, p->c->b == OPENED ? hide : NULL));
	if (p->c->b == USED) {
		FT_TRY(go(p));
		FT_TRY(hide(p));
	}
	FT_TRY(hidden(p));
	FT_TRY(go(p));
	return pair_meet(p);
}

static int unread(struct ft *ft, const struct ft_case *c)
{
	if (!ft->opts.prov || strcmp(ft->opts.prov, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (c->c == RMA && c->a != NEVER) {
		ft_known(ft, "lnx", "shm tries to read and write the memory of "
			 "initiators without permission, and then never ends");
		ft->run->timeout_s = ft->run->timeout_s < 3 ?
				     ft->run->timeout_s : 3;
	}
	return pair_run(ft, c, side);
}

#define CASE(what, hidden, since, does)				\
	{ .name = what, .fn = unread, .a = hidden, .b = since, .c = does,	\
	  .cfg.alone = true }
#define CASES(what, does)						\
	CASE(what "-never", NEVER, AT_FIRST, does),			\
	CASE(what "-first-at-first", 1, AT_FIRST, does),		\
	CASE(what "-second-at-first", 2, AT_FIRST, does),		\
	CASE(what "-both-at-first", BOTH, AT_FIRST, does),		\
	CASE(what "-first-opened", 1, OPENED, does),			\
	CASE(what "-second-opened", 2, OPENED, does),			\
	CASE(what "-both-opened", BOTH, OPENED, does),			\
	CASE(what "-first-used", 1, USED, does),			\
	CASE(what "-second-used", 2, USED, does),			\
	CASE(what "-both-used", BOTH, USED, does)

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		CASES("messages", MESSAGES),
		CASES("rma", RMA),
	};

	return ft_main(argc, argv, "local processes that may not be read",
		       cases, sizeof(cases) / sizeof(cases[0]));
}
