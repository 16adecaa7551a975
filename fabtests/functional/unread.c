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
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PLAIN_USER		65534

static const size_t sizes[] = { 100000, 1, 64, 4096, 4097, 5000, 16384, 65536,
				1 << 20 };
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))

enum { NEVER = 4, BOTH = 3 };			/* a: the rank that hides, as 1 << rank,
						 * or one of these */
enum { AT_FIRST, OPENED, USED };		/* b: since when */
enum { MESSAGES, RMA, ATOMICS, REMADE, MANY, BEGUN, BACK, TOGGLED };	/* c: what is exchanged */

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
		ft_linger(ft, 0.01);	/* longer than FI_LNX_DEFER */
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

#define REMOTE		((6u << 20) + 12345)	/* bytes that the other reaches */
#define WORDS		64

static const size_t rma_sizes[] = { 100000, 1, 64, 4096, 4097, 5000, 65536,
				    65537, 1 << 20, REMOTE };
static const int rma_calls[] = { FT_WRITE, FT_WRITEV, FT_WRITEMSG,
				 FT_WRITEDATA, FT_READ, FT_READV, FT_READMSG };

static struct ft_mr near, far;
static const uint64_t cntr_flags[] = { FI_WRITE, FI_READ, FI_REMOTE_WRITE,
				       FI_REMOTE_READ };
#define NCNTRS		4
static struct fid_cntr *cntrs[NCNTRS];
static uint64_t counted[NCNTRS], failed[NCNTRS];

static int bind_cntrs(struct ft *ft, struct ft_objs *o)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	int i, ret;

	for (i = 0; i < NCNTRS; i++) {
		ret = fi_cntr_open(o->domain, &attr, &cntrs[i], NULL);
		if (!ret) {
			o->extra[o->nextra++] = &cntrs[i]->fid;
			ret = fi_ep_bind(o->ep, &cntrs[i]->fid, cntr_flags[i]);
		}
		if (ret) {
			ft_fail(ft, "counter: %s", fi_strerror(-ret));
			return ret;
		}
		counted[i] = failed[i] = 0;
	}
	return 0;
}

static int enter(struct pair *p)
{
	struct ft *ft = p->ft;

	near.buf = need(malloc(REMOTE));
	far.buf = need(malloc(REMOTE));
	FT_CHECK(ft, !ft_mr_reg(ft, &near, near.buf, REMOTE, FT_MR_ACCESS) &&
		 !ft_mr_reg(ft, &far, far.buf, REMOTE, FT_MR_ACCESS),
		 "cannot register");
	far.at[ft->rank] = (struct ft_target) {
		.base = ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR ?
			(uintptr_t)far.buf : 0,
		.key = fi_mr_key(far.mr), .len = REMOTE,
	};
	return pair_swap(p, &far.at[ft->rank], &far.at[!ft->rank],
			 sizeof(far.at[0]));
}

static void leave(struct pair *p)
{
	ft_mr_close(p->ft, &near);
	ft_mr_close(p->ft, &far);
	free(near.buf);
	free(far.buf);
}

/* Each counter as expected, and not more; collective. */
static int check_counters(struct pair *p, const char *name, size_t size)
{
	struct ft *ft = p->ft;
	double end = ft_now() + ft->run->timeout_s;
	int i;

	FT_TRY(pair_meet(p));
	for (i = 0; i < NCNTRS; i++) {
		while (fi_cntr_read(cntrs[i]) < counted[i] && ft_now() < end)
			ft_progress(ft);
		FT_CHECK(ft, fi_cntr_read(cntrs[i]) == counted[i] &&
			 fi_cntr_readerr(cntrs[i]) == failed[i],
			 "%s of %zu bytes: counter %d is %llu, not %llu, %llu "
			 "errors", name, size, i,
			 (unsigned long long)fi_cntr_read(cntrs[i]),
			 (unsigned long long)counted[i],
			 (unsigned long long)fi_cntr_readerr(cntrs[i]));
	}
	return FT_PASS;
}

/* One call of rank `by`, of this size; collective. */
static int one_rma(struct pair *p, int by, int call, size_t size, unsigned seq)
{
	const uint64_t mark = 0x1234567890 + seq;
	bool read = ft_rma_is_read(call), data = call == FT_WRITEDATA;
	struct ft *ft = p->ft;
	unsigned events = ft->nevents;
	struct ft_rma r;
	long long at = -1;

	pattern_fill(near.buf, size, ft->run->seed, (unsigned)ft->rank, seq);
	pattern_fill(far.buf, size, ft->run->seed, (unsigned)ft->rank, seq + 1);
	FT_TRY(pair_meet(p));
	if (ft->rank == by) {
		ft_rma_set(ft, &r, call, near.buf, size, &near, &far, !by, 0);
		r.data = mark;
		if (call == FT_WRITEMSG)
			r.flags = FI_DELIVERY_COMPLETE;
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		counted[read]++;
		if (read)
			at = pattern_check(near.buf, size, ft->run->seed,
					   (unsigned)!by, seq + 1);
	} else {
		counted[2 + read]++;
	}
	FT_TRY(check_counters(p, ft_rma_names[call], size));
	if (ft->rank != by && !read)
		at = pattern_check(far.buf, size, ft->run->seed, (unsigned)by,
				   seq);
	FT_CHECK(ft, at < 0, "%s: byte %lld of %zu is wrong",
		 ft_rma_names[call], at, size);
	if (ft->rank != by && data) {
		const struct ft_event *e;

		FT_CHECK(ft, !ft_wait_events(ft, events + 1), "no event");
		e = &ft->events[events % FT_MAX_EVENTS];
		FT_CHECK(ft, e->data == mark && e->len == size,
			 "event of %zu bytes, not %zu, data %llx", e->len, size,
			 (unsigned long long)e->data);
		events++;
	}
	FT_CHECK(ft, ft->nevents == events, "too many events");
	return pair_meet(p);
}

static int rma(struct pair *p)
{
	unsigned seq = 0;
	size_t i, k;
	int by;

	for (by = 0; by < 2; by++)
		for (i = 0; i < sizeof(rma_sizes) / sizeof(*rma_sizes); i++)
			for (k = 0; k < sizeof(rma_calls) / sizeof(int); k++)
				FT_TRY(one_rma(p, by, rma_calls[k],
					       rma_sizes[i], seq += 2));
	return FT_PASS;
}

/* ---- atomics ---- */

static int atomics_by(struct pair *p, int by, int call, size_t count)
{
	uint64_t *to = far.buf, *from = near.buf;
	struct ft *ft = p->ft;
	struct ft_atomic a;
	size_t i;

	for (i = 0; i < count; i++) {
		to[i] = 1000 + i;
		from[i] = 5;			/* the operand, */
		from[count + i] = 1000 + i;	/* what is compared, */
		from[2 * count + i] = 0;	/* and the result */
	}
	FT_TRY(pair_meet(p));
	if (ft->rank == by) {
		ft_atomic_set(ft, &a, call, FI_UINT64, ft_atomic_compares(call) ?
			      FI_CSWAP : FI_SUM, 8, from, from + count,
			      from + 2 * count, count, &near, &far, !by, 0);
		if (call == FT_ATOMICMSG)
			a.flags = FI_DELIVERY_COMPLETE;
		FT_TRY(ft_atomic_now(ft, &a, FT_AT));
	}
	FT_TRY(pair_meet(p));
	ft_linger(ft, 0.001);
	for (i = 0; i < count && ft->rank == by; i++)
		FT_CHECK(ft, !ft_atomic_fetches(call) ||
			 from[2 * count + i] == 1000 + i, "%s: result %zu of "
			 "%zu is wrong", ft_atomic_names[call], i, count);
	for (i = 0; i < count && ft->rank != by; i++)
		FT_CHECK(ft, to[i] == (ft_atomic_compares(call) ? 5ul : 1005 + i),
			 "%s: word %zu of %zu is wrong", ft_atomic_names[call],
			 i, count);
	return pair_meet(p);
}

static int atomics(struct pair *p)
{
	static const int calls[] = { FT_ATOMIC, FT_ATOMICMSG, FT_FETCH,
				     FT_FETCHMSG, FT_COMPARE };
	size_t k;
	int by;

	for (by = 0; by < 2; by++) {
		for (k = 0; k < sizeof(calls) / sizeof(*calls); k++) {
			FT_TRY(atomics_by(p, by, calls[k], 1));
			FT_TRY(atomics_by(p, by, calls[k], WORDS));
		}
	}
	return FT_PASS;
}

/* ---- many at once ---- */

#define PLACES		60
#define PLACE		100000

static size_t size_at(int i)
{
	static const size_t size[] = { 64, 3000, 5000, 20000, PLACE };

	return size[i % 5];
}

/* Start one operation for each place: writes at even ones, reads at odd ones. */
static int start_many(struct pair *p, struct ft_op **op, unsigned seq)
{
	struct ft *ft = p->ft;
	struct ft_rma r;
	int i;

	for (i = 0; i < PLACES; i++) {
		pattern_fill((char *)near.buf + (size_t)i * PLACE, PLACE,
			     ft->run->seed, (unsigned)ft->rank,
			     seq + (unsigned)i);
		pattern_fill((char *)far.buf + (size_t)i * PLACE, PLACE,
			     ft->run->seed, (unsigned)ft->rank,
			     seq + 500 + (unsigned)i);
	}
	FT_TRY(pair_meet(p));
	for (i = 0; i < PLACES && op; i++) {
		op[i] = ft_op_new(ft);
		ft_rma_set(ft, &r, i % 2 ? FT_READ : FT_WRITE,
			   (char *)near.buf + (size_t)i * PLACE, size_at(i),
			   &near, &far, !ft->rank, (uint64_t)i * PLACE);
		FT_CALL(ft, ft_rma(ft, op[i], &r));
	}
	return FT_PASS;
}

/* Has the place of operation i the content that it should have? */
static int check_place(struct pair *p, int by, int i, unsigned seq)
{
	struct ft *ft = p->ft;
	long long at = -1;

	if (ft->rank == by && i % 2)
		at = pattern_check((char *)near.buf + (size_t)i * PLACE,
				   size_at(i), ft->run->seed, (unsigned)!by,
				   seq + 500 + (unsigned)i);
	if (ft->rank != by && i % 2 == 0)
		at = pattern_check((char *)far.buf + (size_t)i * PLACE,
				   size_at(i), ft->run->seed, (unsigned)by,
				   seq + (unsigned)i);
	FT_CHECK(ft, at < 0, "%s %d: byte %lld of %zu is wrong",
		 i % 2 ? "read" : "write", i, at, size_at(i));
	return FT_PASS;
}

static int many(struct pair *p)
{
	struct ft_op *op[PLACES];
	struct ft *ft = p->ft;
	int i;

	/* Both at the same time. */
	FT_TRY(start_many(p, op, 2000));
	FT_TRY(all_done(ft, op, PLACES, "operations"));
	for (i = 0; i < PLACES; i++)
		FT_CHECK(ft, !op[i]->err && op[i]->done == 1,
			 "operation %d ended %u times: %s", i, op[i]->done,
			 fi_strerror(op[i]->err));
	FT_TRY(pair_meet(p));
	ft_linger(ft, 0.01);	/* small writes end before they are executed */
	for (i = 0; i < PLACES; i++)
		FT_TRY(check_place(p, !ft->rank, i, 2000));
	for (i = 0; i < PLACES; i++)
		FT_TRY(check_place(p, ft->rank, i, 2000));
	return pair_meet(p);
}

/* ---- operations that began before ---- */

/* The target looks at nothing meanwhile. */
static int begun_by(struct pair *p, int by)
{
	unsigned seq = 4000 + 1000 * (unsigned)by;
	uint64_t well[2] = { 0 }, theirs[2];
	struct ft_op *op[PLACES];
	struct ft *ft = p->ft;
	char c = 1;
	int i, bad = 0;

	FT_TRY(one_rma(p, by, FT_READ, 64, 3));
	FT_TRY(one_rma(p, by, FT_READ, 64, 5));
	FT_TRY(start_many(p, ft->rank == by ? op : NULL, seq));
	if (ft->rank == by) {
		FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
		FT_CHECK(ft, send(p->fd, &c, 1, 0) == 1, "the other ended");
		FT_TRY(all_done(ft, op, PLACES, "operations"));
		ft_linger(ft, 0.02);
	} else {
		FT_CHECK(ft, recv(p->fd, &c, 1, MSG_WAITALL) == 1,
			 "the other ended");
	}
	FT_TRY(pair_meet(p));
	ft_linger(ft, 0.02);
	for (i = 0; i < PLACES; i++) {
		/* Of short ones it is promised that none overtakes another.  A
		 * write of up to 4096 bytes is copied at once. */
		bool may_fail = size_at(i) <= 16384 &&
				(i % 2 || size_at(i) > 4096);

		if (ft->rank == by) {
			FT_CHECK(ft, op[i]->done == 1, "%d ended %u times", i,
				 op[i]->done);
			FT_CHECK(ft, !op[i]->err || may_fail, "%d, of %zu "
				 "bytes: %s", i, size_at(i),
				 fi_strerror(op[i]->err));
			bad += op[i]->err != 0;
			failed[i % 2] += op[i]->err != 0;
			well[i % 2] += !op[i]->err;
			if (op[i]->err)
				continue;
		} else if (may_fail) {
			continue;
		}
		FT_TRY(check_place(p, by, i, seq));
	}
	FT_CHECK(ft, ft->rank != by || bad, "all of them ended well: the target "
		 "was not deaf");
	FT_TRY(pair_swap(p, well, theirs, sizeof(well)));
	for (i = 0; i < 2; i++) {
		counted[i] += well[i];
		counted[2 + i] += theirs[i];
	}
	return check_counters(p, "begun before", 0);
}

/* Alone an operation can be repeated, however short it is. */
static int begun_alone(struct pair *p, int by, int call, size_t size)
{
	struct ft *ft = p->ft;
	struct ft_op *op = NULL;
	struct ft_rma r;
	long long at = -1;
	char c = 1;

	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	pattern_fill(near.buf, size, ft->run->seed, (unsigned)ft->rank, 71);
	pattern_fill(far.buf, size, ft->run->seed, (unsigned)ft->rank, 72);
	FT_TRY(pair_meet(p));
	/* Let the target find that it reaches us (again). */
	if (ft->rank == by) {
		int i;

		for (i = 0; i < 2; i++) {
			ft_rma_set(ft, &r, FT_READ, (char *)near.buf + size, 64,
				   &near, &far, !by, 0);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
		}
	}
	counted[ft->rank == by ? 1 : 3] += 2;
	counted[(ft->rank == by ? 0 : 2) + ft_rma_is_read(call)]++;
	FT_TRY(pair_meet(p));
	if (ft->rank == by) {
		op = ft_op_new(ft);
		ft_rma_set(ft, &r, call, near.buf, size, &near, &far, !by, 0);
		FT_CALL(ft, ft_rma(ft, op, &r));
		FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
		FT_CHECK(ft, send(p->fd, &c, 1, 0) == 1, "the other ended");
		FT_CHECK(ft, !ft_wait(ft, op), "%s of %zu bytes never ended",
			 ft_rma_names[call], size);
		ft_linger(ft, 0.01);
		FT_CHECK(ft, !op->err && op->done == 1, "%s of %zu bytes ended "
			 "%u times: %s", ft_rma_names[call], size, op->done,
			 fi_strerror(op->err));
	} else {
		FT_CHECK(ft, recv(p->fd, &c, 1, MSG_WAITALL) == 1,
			 "the other ended");
	}
	FT_TRY(pair_meet(p));
	if (ft_rma_is_read(call) && ft->rank == by)
		at = pattern_check(near.buf, size, ft->run->seed,
				   (unsigned)!by, 72);
	if (!ft_rma_is_read(call) && ft->rank != by)
		at = pattern_check(far.buf, size, ft->run->seed, (unsigned)by,
				   71);
	FT_CHECK(ft, at < 0, "%s: byte %lld of %zu is wrong",
		 ft_rma_names[call], at, size);
	return check_counters(p, ft_rma_names[call], size);
}

static int begun(struct pair *p)
{
	int by;

	for (by = 0; by < 2; by++) {
		FT_TRY(begun_by(p, by));
		FT_TRY(begun_alone(p, by, FT_READ, 5000));
		FT_TRY(begun_alone(p, by, FT_READ, 1 << 20));
		FT_TRY(begun_alone(p, by, FT_WRITE, 5000));
		FT_TRY(begun_alone(p, by, FT_WRITEDATA, 1 << 20));
		FT_CHECK(p->ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
		FT_TRY(pair_meet(p));
	}
	return FT_PASS;
}

/* ---- a registration that is made again ---- */

#define REMADE_KEY	4242u

/*
 * The target closes the registration in the middle of a write, and makes it again under
 * the same key.  A part may be refused; then the write has failed.
 */
static int remade(struct pair *p)
{
	struct ft *ft = p->ft;
	struct ft_target to = far.at[1];
	struct fid_mr *mr = NULL;
	int i, k;

	to.key = REMADE_KEY;
	for (i = 0; i < 12; i++) {
		unsigned seq = 9000 + (unsigned)i;
		int err = 0;

		pattern_fill(near.buf, REMOTE, ft->run->seed, 0, seq);
		memset(far.buf, 0, REMOTE);
		if (ft->rank)
			FT_CALL(ft, fi_mr_reg(ft->o.domain, far.buf, REMOTE,
					      FI_REMOTE_WRITE, 0, REMADE_KEY, 0,
					      &mr, NULL));
		FT_TRY(pair_meet(p));
		if (!ft->rank) {
			struct ft_op *op = ft_op_new(ft);

			op->posted = true;
			FT_CALL(ft, fi_write(ft->o.ep, near.buf, REMOTE, NULL,
					     ft->addr[1], to.base, to.key, op));
			FT_CHECK(ft, !ft_wait(ft, op), "the write never ended");
			err = op->err;
		} else {
			for (k = 0; k < i * 3; k++)
				ft_progress(ft);
			FT_CALL(ft, fi_close(&mr->fid));
			for (k = 0; k < 1 + i % 4; k++)
				ft_progress(ft);
			FT_CALL(ft, fi_mr_reg(ft->o.domain, far.buf, REMOTE,
					      FI_REMOTE_WRITE, 0, REMADE_KEY, 0,
					      &mr, NULL));
		}
		if (!ft->rank) {
			FT_CHECK(ft, send(p->fd, &err, sizeof(err), 0) ==
				 sizeof(err), "the other ended");
			continue;
		}
		while (recv(p->fd, &err, sizeof(err), MSG_DONTWAIT) < 0)
			ft_progress(ft);
		if (!err) {
			long long at = pattern_check(far.buf, REMOTE,
						     ft->run->seed, 0, seq);

			FT_CHECK(ft, at < 0, "success, but byte %lld of %u was "
				 "not written", at, REMOTE);
		}
		FT_CALL(ft, fi_close(&mr->fid));
	}
	return FT_PASS;
}

/* ---- processes that may be read again ---- */

static int back(struct pair *p)
{
	struct ft *ft = p->ft;
	uint64_t before;
	int i;

	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
	FT_TRY(pair_meet(p));
	FT_TRY(rma(p));
	FT_CHECK(ft, pair_stat(p, "copied_rma") > 20, "not copied");
	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	FT_TRY(pair_meet(p));
	for (i = 0; i < 2; i++)
		FT_TRY(one_rma(p, i, FT_READ, 100000, 9));
	before = pair_stat(p, "copied_rma");
	FT_TRY(rma(p));
	FT_CHECK(ft, pair_stat(p, "copied_rma") == before, "still copied");
	return FT_PASS;
}

/*
 * The same while operations are under way: the first one fails in the core, and a later
 * one may not.  Then what was promised of their order holds, or one of them has failed.
 */
static int toggled_by(struct pair *p, int by, int first, int second)
{
	static const size_t size = 5000;
	struct ft *ft = p->ft;
	unsigned char *at = far.buf;
	struct ft_op *op[2];
	struct ft_rma r;
	char c = 1;
	int i;

	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	memset(far.buf, 1, size);
	memset(near.buf, 2, size);
	memset((char *)near.buf + size, 3, size);
	FT_TRY(pair_meet(p));
	if (ft->rank == by) {
		/* Let the target find that it reaches us (again). */
		for (i = 0; i < 3; i++) {
			ft_rma_set(ft, &r, FT_READ, (char *)near.buf + 2 * size,
				   64, &near, &far, !by, 2 * size);
			FT_TRY(ft_rma_now(ft, &r, FT_AT));
		}
	}
	FT_TRY(pair_meet(p));
	if (ft->rank != by) {
		/* It looks at the first only while the other hides. */
		FT_CHECK(ft, recv(p->fd, &c, 1, MSG_WAITALL) == 1,
			 "the other ended");
		ft_progress(ft);
		FT_CHECK(ft, send(p->fd, &c, 1, 0) == 1, "the other ended");
		while (recv(p->fd, &c, 1, MSG_DONTWAIT) < 0)
			ft_progress(ft);
		FT_TRY(pair_meet(p));
		FT_CHECK(ft, first != FT_WRITE || second != FT_WRITE ||
			 at[0] != 2, "the first write came last");
		return pair_meet(p);
	}
	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
	for (i = 0; i < 2; i++) {
		op[i] = ft_op_new(ft);
		ft_rma_set(ft, &r, i ? second : first,
			   (char *)near.buf + (size_t)i * size, size, &near,
			   &far, !by, 0);
		FT_CALL(ft, ft_rma(ft, op[i], &r));
		if (i)
			break;
		FT_CHECK(ft, send(p->fd, &c, 1, 0) == 1 &&
			 recv(p->fd, &c, 1, MSG_WAITALL) == 1, "the other ended");
		FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	}
	FT_TRY(all_done(ft, op, 2, "operations"));
	if (first == FT_READ && second == FT_WRITE)
		FT_CHECK(ft, op[0]->err || *(uint8_t *)near.buf == 1,
			 "the read has what was written after it");
	if (first == FT_WRITE && second == FT_READ)
		FT_CHECK(ft, op[0]->err || op[1]->err ||
			 ((uint8_t *)near.buf)[size] == 2,
			 "the read has not what was written before it");
	FT_CHECK(ft, send(p->fd, &c, 1, 0) == 1, "the other ended");
	FT_TRY(pair_meet(p));
	return pair_meet(p);
}

static int toggled(struct pair *p)
{
	static const int calls[][2] = {
		{ FT_READ, FT_WRITE }, { FT_WRITE, FT_WRITE },
		{ FT_WRITE, FT_READ },
	};
	size_t i;
	int by;

	for (by = 0; by < 2; by++)
		for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
			FT_TRY(toggled_by(p, by, calls[i][0], calls[i][1]));
	return FT_PASS;
}

/* ---- cases ---- */

static int side(struct pair *p)
{
	struct ft *ft = p->ft;
	int (*const all[])(struct pair *p) = {
		[MESSAGES] = messages, [RMA] = rma, [ATOMICS] = atomics,
		[MANY] = many, [BEGUN] = begun, [BACK] = back,
		[REMADE] = remade, [TOGGLED] = toggled,
	};
	int (*go)(struct pair *p) = all[p->c->c];
	struct ft_cfg cfg = {
		.caps = p->c->c == MESSAGES ? 0 :
			p->c->c == ATOMICS ? FT_ATOMIC_CAPS : FT_RMA_CAPS,
		.bind = p->c->c == MESSAGES ? NULL : bind_cntrs,
	};

	/* Root may read any process, so drop root; changing the user clears
	 * dumpable. */
	FT_CHECK(ft, geteuid() || (!setgroups(0, NULL) && !setgid(PLAIN_USER) &&
				   !setuid(PLAIN_USER)), "cannot become another user");
	FT_CHECK(ft, !prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE");
	prepare(ft, (size_t)NSIZES * SLOT);
	if (p->c->b == AT_FIRST)
		FT_TRY(hide(p));
	FT_TRY(pair_open(p, &cfg, p->c->b == OPENED ? hide : NULL));
	if (p->c->c != MESSAGES)
		FT_TRY(enter(p));
	if (p->c->b == USED) {
		FT_TRY(go(p));
		FT_TRY(hide(p));
	}
	if (p->c->a != NEVER)
		FT_TRY(hidden(p));
	FT_TRY(go(p));
	FT_TRY(pair_meet(p));
	if (p->c->c != MESSAGES)
		leave(p);
	return pair_meet(p);
}

static int unread(struct ft *ft, const struct ft_case *c)
{
	if (!ft->opts.prov || strcmp(ft->opts.prov, "lnx"))
		return ft_skip(ft, "not over lnx");
	if ((c->c == BEGUN || c->c == BACK || c->c == REMADE ||
	     c->c == TOGGLED) &&
	    !ft_lnx_over_shm(ft))
		return ft_skip(ft, "the link has no shm, whose core reads memory");
	if (c->c == REMADE && ft->run->mr_basic)
		return ft_skip(ft, "the provider picks keys: it gets another one");
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
		CASES("many", MANY),
		CASE("atomics-never", NEVER, AT_FIRST, ATOMICS),
		CASE("atomics-first-at-first", 1, AT_FIRST, ATOMICS),
		CASE("atomics-both-used", BOTH, USED, ATOMICS),
		CASE("remade-first-at-first", 1, AT_FIRST, REMADE),
		CASE("begun-before", NEVER, AT_FIRST, BEGUN),
		CASE("read-again", NEVER, AT_FIRST, BACK),
		CASE("read-again-meanwhile", NEVER, AT_FIRST, TOGGLED),
	};

	return ft_main(argc, argv, "local processes that may not be read",
		       cases, sizeof(cases) / sizeof(cases[0]));
}
