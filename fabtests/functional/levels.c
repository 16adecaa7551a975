/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The completion level of an endpoint (op_flags of its tx_attr) is used for
 * every call, also for injects, and for its counters: when a counter has
 * counted an operation with FI_DELIVERY_COMPLETE, memory at the target has
 * changed and its lnx has the message.
 *
 * The target is slow on purpose: it sleeps longer than it makes progress, and
 * frames between nodes are delayed.  What is counted too early is then found
 * missing.
 */
#include "../common/rma.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEM_BYTES	(1 << 16)
#define SLEEP_US	300

/* Every third frame with data is delayed, and others overtake it. */
#define FAULTS		"delay=15ms kind=put,atomic,msg,tag rate=3"

enum { INJECT_WRITE, INJECT_WRITEDATA, WRITE, WRITE_WITH_FLAG, INJECT_ATOMIC,
       ATOMIC, ATOMIC_WITH_FLAG, INJECT, INJECTDATA, TINJECT, TINJECTDATA,
       TSEND, TSEND_WITH_FLAG, NKINDS };
static const char *const kind_names[NKINDS] = {
	"inject-write", "inject-writedata", "write", "write-with-flag",
	"inject-atomic", "atomic", "atomic-with-flag", "inject", "injectdata",
	"tinject", "tinjectdata", "tsend", "tsend-with-flag"
};

static struct fid_cntr *writes, *sends;
static uint64_t before;
static struct ft_op *last;		/* reports a completion that is outstanding; or
					 * NULL */

static bool is_message(int kind)
{
	return kind >= INJECT;
}

static bool is_atomic(int kind)
{
	return kind == INJECT_ATOMIC || kind == ATOMIC ||
	       kind == ATOMIC_WITH_FLAG;
}

static bool with_flag(int kind)
{
	return kind == WRITE_WITH_FLAG || kind == ATOMIC_WITH_FLAG ||
	       kind == TSEND_WITH_FLAG;
}

static int bind_both(struct ft *ft, struct ft_objs *o)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr **c[] = { &writes, &sends };
	const uint64_t flags[] = { FI_WRITE, FI_SEND };
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = fi_cntr_open(o->domain, &attr, c[i], NULL);
		if (!ret) {
			o->extra[o->nextra++] = &(*c[i])->fid;
			ret = fi_ep_bind(o->ep, &(*c[i])->fid, flags[i]);
		}
		if (ret) {
			ft_fail(ft, "counter: %s", fi_strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static struct fid_cntr *cntr_of(int kind)
{
	return is_message(kind) ? sends : writes;
}

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

/* Has a rank come to the barrier?  Looks without making progress. */
static bool called(struct ft *ft)
{
	struct pollfd p = {
		.fd = ft->oob.fd[ft->rank ? 0 : 1], .events = POLLIN,
	};

	return poll(&p, 1, 0) == 1;
}

/* Come to the barrier with as little progress as possible, and with none
 * between the other rank's arrival and the return. */
static int wait_deaf(struct ft *ft)
{
	void (*idle)(void *) = ft->oob.idle;
	double end = ft_now() + ft->run->timeout_s;
	int ret;

	while (!called(ft)) {
		usleep(SLEEP_US);
		if (called(ft))
			break;
		if (!ft->cfg.automatic)
			ft_progress(ft);
		FT_CHECK(ft, ft_now() < end, "the other rank does not come");
	}
	ft->oob.idle = NULL;
	ret = meet(ft);
	ft->oob.idle = idle;
	return ret;
}

/* The call itself; op NULL: no completion. */
static int start_rma(struct ft *ft, int kind, struct ft_op *op, void *buf,
		     size_t len, const struct ft_mr *to, uint64_t off)
{
	static const int call[] = {
		[INJECT_WRITE] = FT_INJECT_WRITE,
		[INJECT_WRITEDATA] = FT_INJECT_WRITEDATA,
		[WRITE] = FT_WRITE, [WRITE_WITH_FLAG] = FT_WRITEMSG,
		[INJECT_ATOMIC] = FT_INJECT_ATOMIC, [ATOMIC] = FT_ATOMIC,
		[ATOMIC_WITH_FLAG] = FT_ATOMICMSG,
	};
	uint64_t flags = with_flag(kind) ? FI_DELIVERY_COMPLETE : 0;
	struct ft_atomic a;
	struct ft_rma r;

	if (is_atomic(kind)) {
		ft_atomic_set(ft, &a, call[kind], FI_UINT64, FI_SUM, 8, buf,
			      NULL, NULL, len / 8, &ft_mem.lmr, to, !ft->rank,
			      off);
		a.flags = flags;
		return ft_atomic(ft, op, &a);
	}
	ft_rma_set(ft, &r, call[kind], buf, len, &ft_mem.lmr, to, !ft->rank,
		   off);
	r.flags = flags;
	r.data = 77;
	return ft_rma(ft, op, &r);
}

static int start_message(struct ft *ft, int kind, struct ft_op *op, void *buf,
			 size_t len, uint64_t tag)
{
	static const int call[] = {
		[INJECT] = FT_INJECT, [INJECTDATA] = FT_INJECTDATA,
		[TINJECT] = FT_INJECT, [TINJECTDATA] = FT_INJECTDATA,
		[TSEND] = FT_SEND, [TSEND_WITH_FLAG] = FT_SENDMSG,
	};
	struct ft_msg m = {
		.tagged = kind >= TINJECT, .call = call[kind],
		.addr = ft->addr[!ft->rank], .buf = buf, .len = len,
		.tag = tag, .data = 77,
		.flags = with_flag(kind) ? FI_DELIVERY_COMPLETE : 0,
	};

	return ft_send(ft, op, &m);
}

/* One operation of this kind on *buf; an inject gives the buffer back at once. */
static int start(struct ft *ft, int kind, void *buf, size_t len, uint64_t off)
{
	bool inject = kind == INJECT_WRITE || kind == INJECT_WRITEDATA ||
		      kind == INJECT_ATOMIC ||
		      (is_message(kind) && kind < TSEND);
	int ret;

	last = inject ? NULL : ft_op_new(ft);
	before = fi_cntr_read(cntr_of(kind));
	ret = is_message(kind) ? start_message(ft, kind, last, buf, len, off) :
	      start_rma(ft, kind, last, buf, len, &ft_mem.tmr, off);
	if (ret)
		return ft_fail(ft, "%s: %s", kind_names[kind],
			       fi_strerror(-ret));
	if (inject)
		memset(buf, 0xee, len);
	return FT_PASS;
}

static int counted(struct ft *ft, int kind)
{
	struct fid_cntr *c = cntr_of(kind);
	double end = ft_now() + ft->run->timeout_s;

	while (fi_cntr_read(c) == before) {
		ft_progress(ft);
		FT_CHECK(ft, !fi_cntr_readerr(c), "an error was counted");
		FT_CHECK(ft, !ft->abandoned && ft_now() < end,
			 "it is not counted");
	}
	FT_CHECK(ft, fi_cntr_read(c) == before + 1, "it is counted twice");
	if (last)
		FT_DONE(ft, last);
	return FT_PASS;
}

static void fill(unsigned char *p, size_t len, uint64_t round)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)(round * 7 + i * 3 + 1);
}

/* This makes no progress. */
static int look(struct ft *ft, int kind, size_t len, uint64_t round)
{
	const volatile unsigned char *at = ft_mem.target;
	uint64_t sum;
	size_t i;

	if (is_atomic(kind)) {
		memcpy(&sum, ft_mem.target, sizeof(sum));
		FT_CHECK(ft, sum == round + 1, "after %llu atomics the sum is "
			 "%llu", (unsigned long long)round + 1,
			 (unsigned long long)sum);
		return FT_PASS;
	}
	for (i = 0; i < len; i++)
		FT_CHECK(ft, at[i] == (unsigned char)(round * 7 + i * 3 + 1),
			 "round %llu: byte %zu of %zu is missing",
			 (unsigned long long)round, i, len);
	return FT_PASS;
}

/* What was counted is in the target's memory.  a: kind */
static int lands(struct ft *ft, const struct ft_case *c)
{
	static const size_t sizes[] = { 8, 100, 1000, 4096 };
	uint64_t round, rounds = ft->run->iters ? ft->run->iters :
				 ft->run->quick ? 60 : 300;
	int kind = (int)c->a;
	size_t max = ft->o.info->tx_attr->inject_size;

	ft_known(ft, NULL, "injects and atomics complete before delivery");
	memset(ft_mem.target, 0, MEM_BYTES);
	for (round = 0; round < rounds; round++) {
		size_t len = is_atomic(kind) ? 8 : sizes[round % 4];

		if (len > max)
			len = max;
		FT_TRY(meet(ft));
		if (!ft->rank) {
			FT_TRY(wait_deaf(ft));
			FT_TRY(look(ft, kind, len, round));
			continue;
		}
		if (is_atomic(kind)) {
			uint64_t one = 1;

			memcpy(ft_mem.local, &one, sizeof(one));
		} else {
			fill(ft_mem.local, len, round);
		}
		FT_TRY(start(ft, kind, ft_mem.local, len, 0));
		FT_TRY(counted(ft, kind));
		FT_TRY(meet(ft));
	}
	FT_TRY(meet(ft));
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	if (kind == INJECT_WRITEDATA && !ft->rank)
		FT_TRY(ft_wait_events(ft, (unsigned)rounds));
	return FT_PASS;
}

/* While the target makes no progress, nothing can be counted.  a: kind */
static int deaf(struct ft *ft, const struct ft_case *c)
{
	int kind = (int)c->a, round;
	unsigned char buf[64] = { 0 };

	ft_known(ft, NULL, "injects complete before delivery");
	for (round = 0; round < 3; round++) {
		struct ft_op *op = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = kind >= TINJECT, .addr = FI_ADDR_UNSPEC,
			.buf = ft_mem.target, .len = 64, .tag = 5,
		};
		double end = ft_now() + 0.05;

		if (!ft->rank && is_message(kind))
			FT_CALL(ft, ft_recv(ft, op, &m));
		FT_TRY(meet(ft));
		if (!ft->rank) {
			/* The first round opens the connection. */
			if (round)
				usleep(100000);
			if (is_message(kind))
				FT_DONE(ft, op);
			FT_TRY(meet(ft));
			continue;
		}
		FT_TRY(start(ft, kind, buf, 64, is_message(kind) ? 5 : 0));
		while (round && ft_now() < end) {
			ft_progress(ft);
			FT_CHECK(ft, fi_cntr_read(cntr_of(kind)) == before,
				 "counted while the target slept");
			FT_CHECK(ft, !last || !last->done,
				 "complete while the target slept");
		}
		FT_TRY(counted(ft, kind));
		FT_TRY(meet(ft));
	}
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

/* What the target refuses is an error, also of the counter.  a: kind */
static int refused(struct ft *ft, const struct ft_case *c)
{
	struct ft_mr none = ft_mem.tmr;
	struct ft_op *op = ft_op_new(ft);
	uint64_t buf[1] = { 1 }, was;
	int kind = (int)c->a, ret;
	double end;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers end connections");
	ft->spoiled = true;		/* there may be an entry left */
	FT_TRY(meet(ft));
	if (!ft->rank) {
		FT_TRY(meet(ft));
		return FT_PASS;
	}
	none.at[0].key += 12345;
	was = fi_cntr_read(writes);
	ret = start_rma(ft, kind, kind == WRITE ? op : NULL, buf, 8, &none, 0);
	FT_CHECK(ft, !ret, "%s: %d", kind_names[kind], ret);
	end = ft_now() + ft->run->timeout_s;
	while (!fi_cntr_readerr(writes)) {
		struct fi_cq_err_entry ee = { 0 };

		if (kind == WRITE)
			ft_progress(ft);
		else if (fi_cq_read(ft->o.cq, &ee, 1) == -FI_EAVAIL)
			fi_cq_readerr(ft->o.cq, &ee, 0);
		FT_CHECK(ft, fi_cntr_read(writes) == was, "a write that was "
			 "a refused operation is counted as a success");
		FT_CHECK(ft, !ft->abandoned && ft_now() < end,
			 "no error is counted");
	}
	if (kind == WRITE) {
		ft_wait(ft, op);
		FT_CHECK(ft, op->err == FI_ENOKEY, "error %d", op->err);
	} else {
		struct fi_cq_err_entry ee = { 0 };

		/* The error was reported, or will be. */
		if (fi_cq_read(ft->o.cq, &ee, 1) == -FI_EAVAIL)
			fi_cq_readerr(ft->o.cq, &ee, 0);
	}
	FT_CHECK(ft, fi_cntr_readerr(writes) == 1, "%llu errors",
		 (unsigned long long)fi_cntr_readerr(writes));
	/* Operations after it work as before. */
	before = fi_cntr_read(writes);
	FT_CALL(ft, fi_cntr_seterr(writes, 0));
	FT_CALL(ft, start_rma(ft, INJECT_WRITE, NULL, buf, 8, &ft_mem.tmr, 0));
	last = NULL;
	FT_TRY(counted(ft, INJECT_WRITE));
	return meet(ft);
}

/* Messages that are not received yet delay nothing. */
static int unmatched(struct ft *ft, const struct ft_case *c)
{
	struct ft_rma r;
	struct ft_op *op[2];
	int i;

	(void)c;
	ft_known(ft, "shm", "completions wait for those of earlier operations");
	FT_TRY(meet(ft));
	if (ft->rank) {
		FT_TRY(start(ft, TINJECT, ft_mem.local, 64, 1));
		FT_TRY(start(ft, TINJECT, ft_mem.local, 64, 2));
		ft_rma_set(ft, &r, FT_READ, ft_mem.local, 500, &ft_mem.lmr,
			   &ft_mem.tmr, 0, 0);
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
		before = fi_cntr_read(sends);
	}
	FT_TRY(meet(ft));
	for (i = 0; !ft->rank && i < 2; i++) {
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .len = 64,
			.buf = ft_mem.target + 1024 * i, .tag = 2 - (unsigned)i,
		};

		op[i] = ft_op_new(ft);
		FT_CALL(ft, ft_recv(ft, op[i], &m));
		FT_DONE(ft, op[i]);
	}
	return meet(ft);
}

/* Many at once: each is counted in the end, and none twice.  a: kind */
static int stream(struct ft *ft, const struct ft_case *c)
{
	uint64_t i, n = ft->run->quick ? 2000 : 20000, was;
	int kind = (int)c->a;
	double end;

	ft_known(ft, NULL, "injects complete before delivery");
	memset(ft_mem.target, 0, MEM_BYTES);
	FT_TRY(meet(ft));
	was = fi_cntr_read(writes);
	for (i = 0; ft->rank && i < n; i++) {
		uint64_t v = kind == INJECT_ATOMIC ? 1 : i + 1;

		FT_CALL(ft, start_rma(ft, kind, NULL, &v, 8, &ft_mem.tmr, 0));
	}
	end = ft_now() + ft->run->timeout_s;
	while (ft->rank && fi_cntr_read(writes) < was + n) {
		ft_progress(ft);
		FT_CHECK(ft, !fi_cntr_readerr(writes), "an error");
		FT_CHECK(ft, !ft->abandoned && ft_now() < end, "%llu of %llu "
			 "are counted", (unsigned long long)
			 (fi_cntr_read(writes) - was), (unsigned long long)n);
	}
	if (ft->rank) {
		FT_TRY(meet(ft));
		FT_CHECK(ft, fi_cntr_read(writes) == was + n, "too many");
	} else {
		uint64_t sum;

		FT_TRY(wait_deaf(ft));
		memcpy(&sum, ft_mem.target, sizeof(sum));
		FT_CHECK(ft, sum == n, "after the last of %llu it is %llu",
			 (unsigned long long)n, (unsigned long long)sum);
	}
	return meet(ft);
}

/*
 * The target closes the registration as soon as it sees what was written: the write has
 * succeeded, whatever the target's lnx still has to say to its initiator.  a: kind
 */
static int seen_and_closed(struct ft *ft, const struct ft_case *c)
{
	int kind = (int)c->a, round, rounds = ft->run->quick ? 300 : 3000;
	static uint64_t word;
	volatile uint64_t *seen = &word;

	ft_known(ft, NULL, "injects complete before delivery");
	for (round = 0; round < rounds; round++) {
		double end = ft_now() + ft->run->timeout_s;
		struct ft_mr m = { 0 };
		uint64_t one = 1;

		word = 0;
		FT_CALL(ft, ft_mr_reg(ft, &m, &word, sizeof(word),
				      FI_REMOTE_WRITE | FI_REMOTE_READ));
		FT_CALL(ft, ft_mr_share(ft, &m));
		if (ft->rank) {
			last = NULL;
			before = fi_cntr_read(writes);
			FT_CALL(ft, start_rma(ft, kind, NULL, &one, 8, &m, 0));
			FT_TRY(counted(ft, kind));
		}
		while (!ft->rank && !*seen) {
			ft_progress(ft);
			FT_CHECK(ft, !ft->abandoned && ft_now() < end,
				 "round %d: nothing is written", round);
		}
		FT_CALL(ft, ft_mr_close(ft, &m));
		FT_TRY(meet(ft));
	}
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return meet(ft);
}

static int with_mem(struct ft *ft, const struct ft_case *c)
{
	return ft_with_mem(ft, c, MEM_BYTES);
}

int main(int argc, char **argv)
{
	static struct ft_case cases[64];
	struct ft_case *c = cases;
	int kind;

#define CASE(body_, auto_, ...) do {					\
	snprintf(c->name, sizeof(c->name), __VA_ARGS__);		\
	c->fn = with_mem;						\
	c->body = (body_);						\
	c->a = (uint64_t)kind;						\
	c->cfg.caps = FT_ATOMIC_CAPS;					\
	c->cfg.bind = bind_both;					\
	c->cfg.automatic = (auto_);					\
	c->cfg.tx_op_flags = with_flag(kind) ? 0 :			\
			     FI_DELIVERY_COMPLETE;			\
	c++;								\
} while (0)

	/* Unless FI_LNX_FAULT is set.  Links inside a node have no faults. */
	setenv("FI_LNX_FAULT", FAULTS, 0);
	for (kind = 0; !is_message(kind); kind++)
		CASE(lands, false, "lands-%s", kind_names[kind]);
	for (kind = 0; !is_message(kind); kind++)
		CASE(lands, true, "lands-auto-%s", kind_names[kind]);
	for (kind = 0; kind < NKINDS; kind++)
		CASE(deaf, false, "deaf-%s", kind_names[kind]);
	for (kind = 0; kind <= ATOMIC; kind++)
		if (kind != ATOMIC && kind != WRITE_WITH_FLAG)
			CASE(refused, false, "refused-%s", kind_names[kind]);
	kind = TINJECT;
	CASE(unmatched, false, "unmatched");
	kind = INJECT_WRITE;
	CASE(stream, false, "stream-inject-write");
	kind = INJECT_ATOMIC;
	CASE(stream, false, "stream-inject-atomic");
	CASE(seen_and_closed, false, "seen-and-closed-inject-atomic");
	kind = INJECT_WRITE;
	CASE(seen_and_closed, false, "seen-and-closed-inject-write");
	return ft_main(argc, argv, "completion levels", cases,
		       (int)(c - cases));
}
