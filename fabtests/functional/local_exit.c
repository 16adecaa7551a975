/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of this host is killed while large sends to it, or operations on its
 * memory, are outstanding and we poll or sleep.  Each ends once, with one error; later
 * sends are refused; receives and traffic with other peers go on.  man/fi_lnx.7,
 * FAILURES.
 */
#include "victim.h"
#include "../common/rma.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434		/* the same on all architectures */
#endif

#define N		12
#define BYTES		300000
#define SMALL_MAX	100000

enum { POLL, SREAD, FD };

/* ---- completions, asleep ---- */

static int take(struct ft *ft, struct ft_op *const *op, ssize_t ret,
		const struct fi_cq_tagged_entry *e)
{
	struct fi_cq_err_entry ee = { 0 };
	void *context = e->op_context;
	int i;

	if (ret == -FI_EAGAIN)
		return FT_PASS;
	if (ret == -FI_EAVAIL) {
		FT_CHECK(ft, fi_cq_readerr(ft->o.cq, &ee, 0) == 1, "no error "
			 "entry after -FI_EAVAIL");
		context = ee.op_context;
	} else {
		FT_CHECK(ft, ret == 1, "reading the queue: %zd", ret);
	}
	for (i = 0; i < N && op[i] != context; i++)
		;
	FT_CHECK(ft, i < N, "a completion of another operation");
	op[i]->done++;
	op[i]->err = ee.err;
	op[i]->ee = ee;
	return FT_PASS;
}

static int ended(struct ft_op *const *op)
{
	int i, n = 0;

	for (i = 0; i < N; i++)
		n += op[i]->done != 0;
	return n;
}

/* Sleep until all have ended; FD waits on the descriptor. */
static int sleep_for(struct ft *ft, struct ft_op *const *op, int how)
{
	double end = ft_now() + ft->run->timeout_s;
	struct fid *fid = &ft->o.cq->fid;
	struct pollfd p = { .events = POLLIN };

	if (how == FD)
		FT_CALL(ft, fi_control(fid, FI_GETWAIT, &p.fd));
	while (ended(op) < N) {
		struct fi_cq_tagged_entry e;
		ssize_t ret;

		FT_CHECK(ft, ft_now() < end, "%d of %d sends to a dead process "
			 "did not end", N - ended(op), N);
		if (how == SREAD) {
			ret = fi_cq_sread(ft->o.cq, &e, 1, NULL,
					  (int)(ft->run->timeout_s * 1000));
		} else {
			if (!fi_trywait(ft->o.fabric, &fid, 1))
				poll(&p, 1, (int)(ft->run->timeout_s * 1000));
			ret = fi_cq_read(ft->o.cq, &e, 1);
		}
		FT_TRY(take(ft, op, ret, &e));
	}
	return FT_PASS;
}

/* ---- afterwards ---- */

/* Receives go on, also of messages from ourselves over the same shared memory. */
static int others_go_on(struct ft *ft, struct ft_op *any)
{
	struct ft_op *tx;

	FT_CHECK(ft, fi_av_insert(ft->o.av, ft->o.name, 1, &ft->addr[0], 0,
				  NULL) == 1, "fi_av_insert failed");
	tx = put(ft, true, 0, 5, 0, 5000);
	FT_CHECK(ft, tx, "a send to ourselves is refused");
	FT_TRY(all_done(ft, &tx, 1, "sends to ourselves"));
	FT_TRY(all_done(ft, &any, 1, "receives from any source"));
	return check(ft, any, ins, 5000, 0, 0);
}

/* 0 or the error of a send to the dead process. */
static ssize_t send_to_dead(struct ft *ft, size_t len)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[1], .tag = 1,
		.buf = outs[0], .len = len,
	};
	ssize_t ret;

	op->posted = true;
	ret = ft_try_send(ft->o.ep, op, &m);
	op->posted = !ret;
	return ret;
}

static int refused(struct ft *ft)
{
	ssize_t ret = send_to_dead(ft, 8);

	FT_CHECK(ft, ret == -FI_EHOSTUNREACH, "a small send to a dead process: "
		 "%zd", ret);
	ret = send_to_dead(ft, BYTES);
	FT_CHECK(ft, ret == -FI_EHOSTUNREACH, "a large send to a dead process: "
		 "%zd", ret);
	ret = fi_tinject(ft->o.ep, outs[0], 8, ft->addr[1], 1);
	FT_CHECK(ft, ret == -FI_EHOSTUNREACH, "an inject to a dead process: "
		 "%zd", ret);
	return FT_PASS;
}

/* ---- messages ---- */

static int begin(struct ft *ft, struct victim *v, const struct ft_cfg *cfg,
		 struct ft_op **any)
{
	prepare(ft, BYTES);		/* before the fork, so that addresses are the
					 * same */
	FT_TRY(victim_start(ft, v, cfg, NULL));
	FT_TRY(victim_ready(ft, v, false));
	if (!reads_memory(v->pid, outs[0]))
		return ft_skip(ft, "processes may not read each other's "
			       "memory: a death is not noticed");
	ft->addr[0] = FI_ADDR_UNSPEC;
	*any = post(ft, true, -1, 5, ins, BYTES);
	FT_CHECK(ft, *any, "a receive is refused");
	return FT_PASS;
}

static int large(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct ft_op *tx[N], *any;
	int i;

	FT_TRY(begin(ft, v, &c->cfg, &any));
	for (i = 0; i < N; i++) {
		tx[i] = put(ft, true, 1, (uint64_t)i, (uint64_t)i, BYTES);
		FT_CHECK(ft, tx[i], "send %d not taken", i);
	}
	if (c->a == POLL) {
		victim_kill(v);
		FT_TRY(all_done(ft, tx, N, "sends to a dead process"));
	} else {
		FT_TRY(victim_dies_soon(ft, v));
		FT_TRY(sleep_for(ft, tx, (int)c->a));
	}
	FT_TRY(refused(ft));
	FT_TRY(others_go_on(ft, any));
	ft_linger(ft, 0.05);
	for (i = 0; i < N; i++) {
		FT_CHECK(ft, tx[i]->done == 1, "send %d ended %u times", i,
			 tx[i]->done);
		FT_CHECK(ft, tx[i]->err == FI_ECONNRESET, "send %d: %s", i,
			 tx[i]->err ? fi_strerror(tx[i]->err) : "success");
	}
	return FT_PASS;
}

/* No operation is due, and its end is still noticed, after some time. */
static int idle(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");
	double end = ft_now() + ft->run->timeout_s;
	struct fi_cq_tagged_entry e;
	struct ft_op *any;
	ssize_t ret;
	int i, fd;

	if (c->a == POLL && (!links || !strchr(links, '+')))
		return ft_skip(ft, "no network rail: without one nothing looks "
			       "for processes that end while nothing is due");

	fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0)
		return ft_skip(ft, "no pidfd here: the end of an idle process "
			       "is not noticed");
	close(fd);
	FT_TRY(begin(ft, v, &c->cfg, &any));
	FT_TRY(victim_dies_soon(ft, v));
	do {
		FT_CHECK(ft, ft_now() < end, "sends to a dead process are "
			 "taken");
		ret = -FI_EAGAIN;
		/* A process that polls looks for exits once in so many polls
		 * (comp/progress.c).  There are few polls on a busy machine,
		 * where each of them yields the CPU. */
		for (i = 0; c->a == POLL && i < 100000; i++)
			ft_progress(ft);
		if (c->a != POLL)
			ret = fi_cq_sread(ft->o.cq, &e, 1, NULL, 300);
		FT_CHECK(ft, ret == -FI_EAGAIN, "fi_cq_sread returned %zd",
			 ret);
		ret = fi_tinject(ft->o.ep, outs[0], 8, ft->addr[1], 1);
	} while (ret != -FI_EHOSTUNREACH);
	FT_TRY(refused(ft));
	return others_go_on(ft, any);
}

static int files_there(const struct shm_files *files, const struct shm_files *but)
{
	int i, k, n = 0;

	for (i = 0; i < files->n; i++) {
		for (k = 0; k < but->n && strcmp(files->path[i], but->path[k]); k++)
			;
		/* Not what it publishes for lnxctl, in a directory of its own. */
		n += k == but->n && !strchr(files->path[i] + strlen("/dev/shm/"), '/') &&
		     !access(files->path[i], F_OK);
	}
	return n;
}

/* They were written last so many seconds ago. */
static void set_age(const struct shm_files *files, int seconds)
{
	struct timespec then[2];
	int i;

	clock_gettime(CLOCK_REALTIME, &then[0]);
	then[0].tv_sec -= seconds;
	then[1] = then[0];
	for (i = 0; i < files->n; i++)
		utimensat(AT_FDCWD, files->path[i], then, 0);
}

static int open_another(struct ft *ft, const struct ft_case *c)
{
	struct ft_objs o;

	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &o), "another endpoint");
	return ft_objs_close(ft, &o) ? FT_FAIL : FT_PASS;
}

/* The memory of a process that was killed is given back when another endpoint is opened,
 * but not at once, and not that of processes that live. */
static int left_behind(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct shm_files ours;
	int mine, n;

	FT_TRY(victim_start(ft, v, &c->cfg, NULL));
	shm_files_of(v->pid, &v->theirs);
	shm_files_of(getpid(), &ours);
	n = files_there(&v->theirs, &v->ours);
	mine = files_there(&ours, &v->theirs);
	FT_CHECK(ft, n > 0, "no file of the other process is found");
	set_age(&v->theirs, 600);
	set_age(&ours, 600);
	FT_TRY(open_another(ft, c));
	FT_CHECK(ft, files_there(&v->theirs, &v->ours) == n, "files of a process that "
		 "lives were removed");
	victim_leave(v);
	set_age(&v->theirs, 0);
	FT_TRY(open_another(ft, c));
	FT_CHECK(ft, files_there(&v->theirs, &v->ours) == n, "files were removed at once");
	set_age(&v->theirs, 600);
	FT_TRY(open_another(ft, c));
	FT_CHECK(ft, !files_there(&v->theirs, &v->ours), "%d files are still there of %d",
		 files_there(&v->theirs, &v->ours), n);
	FT_CHECK(ft, files_there(&ours, &v->theirs) == mine, "files of this process were removed");
	return FT_PASS;
}

/* More small sends than the core accepts; those that it has accepted count as sent. */
static int small(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op **tx = need(calloc(SMALL_MAX, sizeof(struct ft_op *)));
	struct ft_op *any, *op = NULL;
	int n = 0, ret;

	ret = begin(ft, v, &c->cfg, &any);
	if (ret != FT_PASS) {
		free(tx);
		return ret;
	}
	victim_kill(v);
	for (;;) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[1], .tag = 1,
			.buf = outs[0], .len = 8,
		};

		if (!op)
			op = ft_op_new(ft);
		op->posted = true;
		ret = (int)ft_try_send(ft->o.ep, op, &m);
		op->posted = !ret;
		if (!ret && n < SMALL_MAX) {
			tx[n++] = op;
			op = NULL;
		} else if (ret != -FI_EAGAIN || ft_now() > end) {
			break;
		}
		ft_progress(ft);
	}
	ret = ret == -FI_EHOSTUNREACH ? all_done(ft, tx, n, "small sends") :
	      ft_fail(ft, "after %d small sends: %d", n, ret);
	free(tx);
	FT_TRY(ret);
	FT_TRY(refused(ft));
	return others_go_on(ft, any);
}

/* ---- memory ---- */

enum { KEY = 77, AT_WORK = 1, DONE, GO_ON };
enum { OURSELVES, VICTIM, OTHER };		/* in ft->addr */

/* Of each process, at the same address; and where both see how far the other is. */
static unsigned char far[BYTES], near[N][BYTES];
static int *stage;
/* Another target, which lives: here, so that this process makes its progress. */
static struct ft_objs other;
static struct fid_mr *other_mr, *own_mr;

static int share_memory(struct ft *ft, const struct ft_objs *o, struct fid_mr **mr)
{
	memset(far, ft->rank + 1, sizeof(far));
	FT_CALL(ft, fi_mr_reg(o->domain, far, sizeof(far), FT_MR_ACCESS, 0, KEY,
			      0, mr, NULL));
	return FT_PASS;
}

static int serves(struct ft *ft)
{
	double end = ft_now() + ft->run->timeout_s;

	__atomic_store_n(stage, AT_WORK, __ATOMIC_RELEASE);
	while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) != DONE) {
		FT_CHECK(ft, ft_now() < end, "the other process is slow");
		ft_progress(ft);
	}
	return FT_PASS;
}

/* What it does before it is killed. */
static int target(struct ft *ft)
{
	struct fid_mr *mr;

	FT_TRY(share_memory(ft, &ft->o, &mr));
	return serves(ft);
}

/* It computes for a time before it serves again. */
static int target_that_computes(struct ft *ft)
{
	double end;

	FT_TRY(target(ft));
	end = ft_now() + ft->run->timeout_s;
	while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) != GO_ON) {
		FT_CHECK(ft, ft_now() < end, "the other process is slow");
		usleep(1000);
	}
	return serves(ft);
}

/* While an operation has to wait: the core of the other may be what it waits for. */
static void poll_other(struct ft *ft)
{
	(void)ft;
	fi_cq_read(other.cq, NULL, 0);
}

static int open_other(struct ft *ft, const struct ft_cfg *cfg)
{
	FT_CHECK(ft, !ft_objs_open(ft, cfg, &other), "another endpoint");
	ft->stuck = poll_other;
	FT_TRY(share_memory(ft, &other, &other_mr));
	FT_CHECK(ft, fi_av_insert(ft->o.av, other.name, 1, &ft->addr[OTHER], 0,
				  NULL) == 1, "fi_av_insert failed");
	return FT_PASS;
}

static int close_other(struct ft *ft)
{
	int ret = other_mr ? fi_close(&other_mr->fid) : 0;

	if (own_mr && fi_close(&own_mr->fid))
		ret = -FI_EBUSY;
	other_mr = own_mr = NULL;
	ft->stuck = NULL;
	return ft_objs_close(ft, &other) || ret ? FT_FAIL : FT_PASS;
}

static int start(struct ft *ft, struct ft_op *op, int call, int rank, void *buf,
		 size_t len)
{
	bool virtual = ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR;
	struct ft_rma r = {
		.call = call, .addr = ft->addr[rank], .niov = 1, .nrma = 1,
		.iov[0] = { buf, len },
		.rma[0] = { virtual ? (uintptr_t)far : 0, len, KEY },
	};

	FT_CALL(ft, ft_rma(ft, op, &r));
	return FT_PASS;
}

static int all_end(struct ft *ft, struct ft_op *const *op, int n, const char *what)
{
	double end = ft_now() + ft->run->timeout_s;
	struct fi_cq_tagged_entry e;
	int i, left;

	do {
		ft_progress(ft);
		fi_cq_read(other.cq, &e, 1);
		for (left = i = 0; i < n; i++)
			left += !op[i]->done;
		FT_CHECK(ft, ft_now() < end, "%s: %d of %d did not end", what,
			 left, n);
	} while (left);
	return FT_PASS;
}

/* The targets can reach our memory; and the victim makes no progress any more. */
static int begin_on_memory(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct ft_op *one;
	int i;

	FT_TRY(victim_start(ft, v, &c->cfg, target));
	if (!reads_memory(v->pid, outs[0]))
		return ft_skip(ft, "processes may not read each other's "
			       "memory: a death is not noticed");
	FT_TRY(open_other(ft, &c->cfg));
	while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) != AT_WORK)
		ft_progress(ft);
	for (i = 0; i < 6; i++) {
		one = ft_op_new(ft);
		FT_TRY(start(ft, one, FT_READ, VICTIM + i % 2, near[0], 64));
		FT_TRY(all_end(ft, &one, 1, "the first reads"));
		FT_CHECK(ft, !one->err && near[0][63] == (i % 2 ? 1 : 2),
			 "read %d, %s", near[0][63], fi_strerror(one->err));
	}
	__atomic_store_n(stage, DONE, __ATOMIC_RELEASE);
	return victim_ready(ft, v, false);
}

/* Reads and large writes to it; and, when we poll, to another that lives.  a: how we
 * wait */
static int memory(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	static const size_t sizes[] = { 8, BYTES, 5000, 4096 };
	int first = c->a == POLL ? 6 : N, i, k;
	struct ft_op *op[N], *one;

	FT_TRY(begin_on_memory(ft, c, v));
	memset(near, 0, sizeof(near));
	for (i = 0; i < N; i++) {
		/* To the other a write, of what is there anyway, and reads. */
		bool read = i < first ? i % 3 != 1 : i != first + 1;

		op[i] = ft_op_new(ft);
		if (!read)
			memset(near[i], 1, BYTES);
		FT_TRY(start(ft, op[i], read ? FT_READ : FT_WRITE, i < first ?
			     VICTIM : OTHER, near[i], read ? sizes[i % 4] : BYTES));
	}
	if (c->a == POLL) {
		victim_kill(v);
		FT_TRY(all_end(ft, op, N, "operations on memory"));
	} else {
		FT_TRY(victim_dies_soon(ft, v));
		FT_TRY(sleep_for(ft, op, (int)c->a));
	}
	/* Others go on. */
	for (k = 0; k < 2; k++) {
		one = ft_op_new(ft);
		FT_TRY(start(ft, one, k ? FT_WRITE : FT_READ, OTHER, near[0],
			     BYTES));
		FT_TRY(all_end(ft, &one, 1, "later operations"));
		FT_CHECK(ft, !one->err, "a later one: %s", fi_strerror(one->err));
	}
	FT_TRY(refused(ft));
	ft_linger(ft, 0.05);
	for (i = 0; i < N; i++) {
		int want = i < first ? FI_ECONNRESET : 0;

		FT_CHECK(ft, op[i]->done == 1, "%d ended %u times", i,
			 op[i]->done);
		/* A short read before a write must not be repeated after it. */
		if (i == first && op[i]->err == FI_EIO)
			continue;
		FT_CHECK(ft, op[i]->err == want, "%d: %s", i, op[i]->err ?
			 fi_strerror(op[i]->err) : "success");
		FT_CHECK(ft, i < first || near[i][sizes[i % 4] - 1] == 1,
			 "%d read %d", i, near[i][sizes[i % 4] - 1]);
	}
	return FT_PASS;
}

/* A short read before a write, from a process that computes and lives: its buffer is ours when
 * it has ended, and stays as it is. */
static int read_late(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct ft_op *op[3];
	bool early;
	int i;

	FT_TRY(begin_on_memory(ft, c, v));
	ft->stuck = NULL;		/* it computes */
	memset(near[2], 1, BYTES);
	for (i = 0; i < 3; i++)
		op[i] = ft_op_new(ft);
	FT_TRY(start(ft, op[0], FT_READ, VICTIM, near[0], 8));
	FT_TRY(start(ft, op[1], FT_READ, OTHER, near[1], 4096));
	FT_TRY(start(ft, op[2], FT_WRITE, OTHER, near[2], BYTES));
	victim_kill(v);
	FT_TRY(ft_wait(ft, op[0]));
	FT_CHECK(ft, op[0]->err == FI_ECONNRESET, "a read of a dead process: %s",
		 fi_strerror(op[0]->err));
	ft_linger(ft, 0.2);
	early = op[1]->done;
	if (early)
		memset(near[1], 0xee, sizeof(near[1]));
	FT_TRY(all_end(ft, op, 3, "operations on memory"));
	ft_linger(ft, 0.05);
	for (i = 0; early && i < 4096; i++)
		FT_CHECK(ft, near[1][i] == 0xee, "a read that had ended (%s) wrote %d at %d",
			 fi_strerror(op[1]->err), near[1][i], i);
	FT_CHECK(ft, op[1]->err == FI_EIO || (!op[1]->err && near[1][4095] == 1),
		 "the read: %s, %d", fi_strerror(op[1]->err), near[1][4095]);
	FT_CHECK(ft, !op[2]->err, "the write: %s", fi_strerror(op[2]->err));
	return FT_PASS;
}

/* What we asked of our own memory does not hang in the core behind it. */
static int to_ourselves(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	struct ft_op *op[5];
	int i;

	FT_TRY(begin_on_memory(ft, c, v));
	FT_TRY(share_memory(ft, &ft->o, &own_mr));
	FT_CHECK(ft, fi_av_insert(ft->o.av, ft->o.name, 1, &ft->addr[OURSELVES], 0,
				  NULL) == 1, "fi_av_insert failed");
	for (i = 0; i < 5; i++) {
		op[i] = ft_op_new(ft);
		memset(near[i], 7, BYTES);
	}
	FT_TRY(start(ft, op[0], FT_READ, VICTIM, near[0], 8));
	FT_TRY(start(ft, op[1], FT_WRITE, OURSELVES, near[1], BYTES));
	victim_kill(v);
	FT_TRY(all_end(ft, op, 2, "a write to ourselves"));
	FT_TRY(start(ft, op[2], FT_READ, OURSELVES, near[2], BYTES));
	FT_TRY(start(ft, op[3], FT_WRITE, OURSELVES, near[3], 100));
	FT_TRY(start(ft, op[4], FT_READ, OURSELVES, near[4], 50));
	FT_TRY(all_end(ft, op, 5, "operations on our own memory"));
	FT_CHECK(ft, op[0]->err == FI_ECONNRESET, "a read of a dead process: %s",
		 fi_strerror(op[0]->err));
	for (i = 1; i < 5; i++)
		FT_CHECK(ft, !op[i]->err && near[i][0] == 7, "%d: %s, %d", i,
			 op[i]->err ? fi_strerror(op[i]->err) : "success", near[i][0]);
	return FT_PASS;
}

/* ---- atomics with a result ---- */

enum { KILLED = 1, REMOVED = 2, CONFIRMED = 4 };

static uint64_t operand = 1, compare, fetched[N];

/* A fetch or compare atomic, by turns: a[i] += 1, or what there is becomes 1. */
static int amo(struct ft *ft, struct ft_op *op, int i, int rank, uint64_t flags)
{
	bool virtual = ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR;
	bool swap = i % 2;
	struct ft_atomic a = {
		.call = swap ? FT_COMPAREMSG : FT_FETCHMSG, .type = FI_UINT64,
		.op = swap ? FI_CSWAP_NE : FI_SUM, .addr = ft->addr[rank],
		.niov = 1, .nrma = 1, .flags = flags | FI_COMPLETION,
		.iov[0] = { &operand, 1 }, .cmp[0] = { &compare, 1 },
		.res[0] = { &fetched[i], 1 },
		.rma[0] = { (virtual ? (uintptr_t)far : 0) + 8 * (unsigned)i, 1, KEY },
	};

	fetched[i] = 0;
	FT_CALL(ft, ft_atomic(ft, op, &a));
	return FT_PASS;
}

/* One of each kind of what the core of the other answers. */
static int others_end(struct ft *ft, uint64_t flags, const char *what)
{
	const uint64_t is = 0x0101010101010101;	/* share_memory */
	struct ft_op *op[4];
	int i;

	memset(far, 1, sizeof(far));
	memset(near[0], 1, BYTES);
	for (i = 0; i < 4; i++)
		op[i] = ft_op_new(ft);
	FT_TRY(amo(ft, op[0], 0, OTHER, flags));
	FT_TRY(amo(ft, op[1], 1, OTHER, flags));
	FT_TRY(start(ft, op[2], FT_READ, OTHER, near[1], 100));
	FT_TRY(start(ft, op[3], FT_WRITE, OTHER, near[0], BYTES));
	FT_TRY(all_end(ft, op, 4, what));
	for (i = 0; i < 4; i++)
		FT_CHECK(ft, op[i]->done == 1 && !op[i]->err, "%s: %d ended %u times: %s",
			 what, i, op[i]->done, fi_strerror(op[i]->err));
	FT_CHECK(ft, fetched[0] == is && fetched[1] == is, "%s: fetched %llx and %llx",
		 what, (unsigned long long)fetched[0], (unsigned long long)fetched[1]);
	return FT_PASS;
}

static int stuck(struct ft *ft, struct ft_op *const *op, int n)
{
	int i;

	ft_linger(ft, 0.05);
	for (i = 2; i < n; i++)
		FT_CHECK(ft, !op[i]->done, "an atomic of a process that does nothing has ended");
	return FT_PASS;
}

/* To one that computes, or is killed; those to another end before and after.  a: of those
 * above */
static int atomics(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	uint64_t flags = c->a & CONFIRMED ? FI_DELIVERY_COMPLETE : 0;
	int want = c->a & KILLED ? FI_ECONNRESET : 0, i;
	struct ft_op *op[N];

	FT_TRY(victim_start(ft, v, &c->cfg, c->a & KILLED ? target : target_that_computes));
	FT_TRY(open_other(ft, &c->cfg));
	while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) != AT_WORK)
		ft_progress(ft);
	for (i = 0; i < N; i++)
		op[i] = ft_op_new(ft);
	/* The core takes nothing for an endpoint that has not answered it yet. */
	FT_TRY(start(ft, op[0], FT_READ, OTHER, near[0], 100));
	FT_TRY(all_end(ft, op, 1, "the first read"));
	op[0] = ft_op_new(ft);
	for (i = 0; i < 2; i++)
		FT_TRY(amo(ft, op[i], i, VICTIM, flags));
	FT_TRY(all_end(ft, op, 2, "the first ones"));
	for (i = 0; i < 6; i++)		/* the targets find that they reach our memory */
		FT_TRY(others_end(ft, flags, "before"));
	__atomic_store_n(stage, DONE, __ATOMIC_RELEASE);
	if (c->a & KILLED)
		FT_TRY(victim_ready(ft, v, false));
	ft_linger(ft, 0.05);
	for (i = 2; i < N; i++)
		FT_TRY(amo(ft, op[i], i, VICTIM, flags));
	FT_TRY(others_end(ft, flags, "while it does nothing"));
	FT_TRY(stuck(ft, op, N));
	if (c->a & KILLED) {
		victim_kill(v);
		if (c->a & REMOVED)
			FT_CALL(ft, fi_av_remove(ft->o.av, &ft->addr[VICTIM], 1, 0));
		FT_TRY(others_end(ft, flags, "after its end"));
	} else {
		__atomic_store_n(stage, GO_ON, __ATOMIC_RELEASE);
	}
	FT_TRY(all_end(ft, op, N, "atomics"));
	FT_TRY(others_end(ft, flags, "at the end"));
	for (i = 2; i < N; i++)
		FT_CHECK(ft, op[i]->done == 1 && op[i]->err == want, "%d ended %u times: %s",
			 i, op[i]->done, fi_strerror(op[i]->err));
	return c->a == KILLED ? refused(ft) : FT_PASS;
}

/* ---- it was dead before ---- */

/* One completion of the other endpoint. */
static int read_other(struct ft *ft, struct ft_op *const *op)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(other.cq, &e, 1);
	struct fi_cq_err_entry ee = { 0 };
	int i;

	if (ret == -FI_EAGAIN)
		return FT_PASS;
	FT_CHECK(ft, ret == -FI_EAVAIL && fi_cq_readerr(other.cq, &ee, 0) == 1,
		 "reading the queue: %zd", ret);
	for (i = 0; i < N && op[i] != ee.op_context; i++)
		;
	FT_CHECK(ft, i < N, "a completion of another operation");
	op[i]->done++;
	op[i]->err = ee.err;
	return FT_PASS;
}

static int sends_to_it(struct ft *ft, fi_addr_t to)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op[N];
	int i;

	for (i = 0; i < N; i++) {
		op[i] = ft_op_new(ft);
		FT_CALL(ft, fi_tsend(other.ep, outs[0], BYTES, NULL, to, 1, op[i]));
	}
	while (ended(op) < N) {
		FT_CHECK(ft, ft_now() < end, "%d of %d sends did not end",
			 N - ended(op), N);
		FT_TRY(read_other(ft, op));
	}
	for (i = 0; i < N; i++)
		FT_CHECK(ft, op[i]->done == 1 && op[i]->err == FI_ECONNRESET,
			 "send %d ended %u times: %s", i, op[i]->done,
			 fi_strerror(op[i]->err));
	FT_CHECK(ft, fi_tinject(other.ep, outs[0], 8, to, 1) == -FI_EHOSTUNREACH,
		 "a later inject is not refused");
	return FT_PASS;
}

/* An endpoint learns the name when the process has ended, and its shared memory is there. */
static int known_too_late(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	unsigned char name[FT_NAME_MAX];
	size_t len = sizeof(name);
	struct ft_op *any;
	fi_addr_t to;
	int ret;

	FT_TRY(begin(ft, v, &c->cfg, &any));
	FT_CALL(ft, fi_av_lookup(ft->o.av, ft->addr[1], name, &len));
	victim_leave(v);
	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &other), "another endpoint");
	FT_CHECK(ft, fi_av_insert(other.av, name, 1, &to, 0, NULL) == 1,
		 "fi_av_insert failed");
	ret = sends_to_it(ft, to);
	return ft_objs_close(ft, &other) ? FT_FAIL : ret;
}

/* ---- another endpoint of this process, which is closed ---- */

/* Operations on it, which are refused, or come to nothing. */
static int touch(struct ft *ft)
{
	static uint64_t one = 1;
	struct ft_rma r = {
		.call = FT_WRITE, .addr = ft->addr[1], .niov = 1, .nrma = 1,
		.iov[0] = { outs[0], 8 }, .rma[0] = { 0, 8, KEY },
	};
	ssize_t ret;

	ret = ft_rma(ft, ft_op_new(ft), &r);
	FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "a write: %zd", ret);
	ret = fi_inject_atomic(ft->o.ep, &one, 1, ft->addr[1], 0, KEY, FI_UINT64, FI_SUM);
	FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "an atomic: %zd", ret);
	ret = fi_tinject(ft->o.ep, outs[0], 8, ft->addr[1], 1);
	FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "an inject: %zd", ret);
	return FT_PASS;
}

/*
 * The cores of both share a mapping of its region, which the core gives up when it is
 * closed: what it sent is still to be read, and things are still sent to it.
 */
static int closed_here(struct ft *ft, const struct ft_case *c)
{
	struct ft_op *tx[N], *late, *any, *large = ft_op_new(ft);
	double end = ft_now() + 0.05;
	fi_addr_t us;
	int i;

	prepare(ft, BYTES);
	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &ft->o), "an endpoint");
	ft->open = true;
	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &other), "another endpoint");
	FT_CHECK(ft, fi_av_insert(ft->o.av, other.name, 1, &ft->addr[1], 0, NULL) == 1 &&
		 fi_av_insert(other.av, ft->o.name, 1, &us, 0, NULL) == 1,
		 "fi_av_insert failed");
	ft->addr[0] = FI_ADDR_UNSPEC;
	any = post(ft, true, -1, 5, ins, BYTES);
	FT_CHECK(ft, any, "a receive is refused");
	for (i = 0; i < N; i++) {
		tx[i] = put(ft, true, 1, (uint64_t)i, (uint64_t)i, BYTES);
		FT_CHECK(ft, tx[i], "send %d not taken", i);
	}
	/* What nothing receives here is answered when our endpoint is closed. */
	FT_CALL(ft, fi_tsend(other.ep, outs[0], BYTES, NULL, us, 1, large));
	while (ft_now() < end) {
		struct fi_cq_tagged_entry e;

		ft_progress(ft);
		fi_cq_read(other.cq, &e, 1);
	}
	if (c->a)
		for (i = 0; i < 20; i++)
			FT_CALL(ft, fi_tinject(other.ep, outs[0], 8, us, 6));
	FT_CHECK(ft, !ft_objs_close(ft, &other), "closing the other endpoint");
	FT_TRY(touch(ft));
	late = put(ft, true, 1, 50, 0, BYTES);
	/* Those that it had read into its memory have ended well; and it says that it has
	 * refused those of which it knew, but had not read. */
	FT_TRY(all_done(ft, tx, N, "sends to a closed endpoint"));
	if (late)
		FT_TRY(all_done(ft, &late, 1, "a later one"));
	for (i = 0; i < N; i++)
		FT_CHECK(ft, tx[i]->done == 1 &&
			 (!tx[i]->err || tx[i]->err == FI_ECONNRESET ||
			  tx[i]->err == FI_ECONNABORTED),
			 "send %d ended %u times: %s", i, tx[i]->done,
			 fi_strerror(tx[i]->err));
	FT_TRY(touch(ft));
	return others_go_on(ft, any);
}

/* ---- both begin at once, and one has ended when the other looks ---- */

/*
 * Rank 1 sends to us before it has read what we sent first, and closes.  Only then we read
 * how it began, and that its name leads nowhere must not matter.
 */
static int closed_unread(struct ft *ft, const struct ft_case *c)
{
	void (*idle)(void *arg) = ft->oob.idle;
	struct ft_op *rx, *tx;
	int ret = FT_PASS;

	prepare(ft, BYTES);
	FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &ft->o), "an endpoint");
	ft->open = true;
	FT_CHECK(ft, !ft_exchange(ft, &ft->o, ft->addr), "the other rank");
	rx = post(ft, true, !ft->rank, 1, ins, BYTES);
	FT_CHECK(ft, rx, "a receive is refused");
	/* Neither makes progress while it waits for the other. */
	ft->oob.idle = NULL;
	if (!ft->rank) {
		tx = put(ft, true, 1, 1, 0, 64);
		FT_CHECK(ft, tx, "a send is refused");
		ft_barrier(ft);
		ft_barrier(ft);
		ft->oob.idle = idle;
		FT_TRY(all_done(ft, &tx, 1, "a send"));
		FT_TRY(all_done(ft, &rx, 1, "a receive"));
		FT_TRY(check(ft, rx, ins, 64, 1, 0));
	} else {
		ft_barrier(ft);
		ft->oob.idle = idle;
		tx = put(ft, true, 0, 1, 0, 64);
		FT_CHECK(ft, tx, "a send is refused");
		ret = all_done(ft, &tx, 1, "a send");
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_barrier(ft);
		ft_ops_drop(ft);
	}
	return ret;
}

/* ---- descriptors ---- */

static int count_pidfds(void)
{
	char path[300], is[64];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, is, sizeof(is) - 1);
		is[len < 0 ? 0 : len] = '\0';
		n += strstr(is, "[pidfd]") != NULL;
	}
	if (d)
		closedir(d);
	return n;
}

/*
 * A process has ended, nothing is due, and the descriptor of it is closed when another one
 * comes: so those of ended ones do not add up.  Rank 1 is that other one.
 */
static int descriptors(struct ft *ft, const struct ft_case *c, struct victim *v)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *any;
	int before, n;

	FT_TRY(begin(ft, v, &c->cfg, &any));
	before = count_pidfds();
	victim_leave(v);
	FT_CHECK(ft, !ft_exchange(ft, &ft->o, ft->addr), "the other rank");
	FT_CHECK(ft, before > 0 || count_pidfds() == 0, "%d descriptors of processes",
		 count_pidfds());
	do {
		FT_CHECK(ft, ft_now() < end, "the descriptor of an ended process is "
			 "not closed: there are %d", count_pidfds());
		ft_progress(ft);
		n = count_pidfds();
	} while (n > before);
	return FT_PASS;
}

/* ---- cases ---- */

static int on_memory(struct ft *ft, const struct ft_case *c, struct victim *v,
		     int (*what)(struct ft *ft, const struct ft_case *c, struct victim *v))
{
	int ret;

	if (ft->run->mr_basic)
		return ft_skip(ft, "the provider picks keys");
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(ft, stage != MAP_FAILED, "mmap");
	prepare(ft, BYTES);
	ret = what(ft, c, v);
	if (close_other(ft) && ret == FT_PASS)
		ret = FT_FAIL;
	munmap(stage, sizeof(*stage));
	return ret;
}

static int death(struct ft *ft, const struct ft_case *c)
{
	struct victim v = { .fd = -1 };
	int ret = FT_PASS, all[OOB_MAX_RANKS];

	if (!ft_lnx_over_shm(ft))
		return ft_skip(ft, "not over shared memory of lnx");
	if (!ft->rank) {
		ret = c->b == 0 ? large(ft, c, &v) :
		      c->b == 1 ? idle(ft, c, &v) :
		      c->b == 2 ? small(ft, c, &v) :
		      c->b == 3 ? on_memory(ft, c, &v, memory) :
		      c->b == 8 ? on_memory(ft, c, &v, atomics) :
		      c->b == 10 ? on_memory(ft, c, &v, read_late) :
		      c->b == 11 ? on_memory(ft, c, &v, to_ourselves) :
		      c->b == 4 ? known_too_late(ft, c, &v) :
		      c->b == 5 ? closed_here(ft, c) :
		      c->b == 6 ? descriptors(ft, c, &v) :
		      c->b == 9 ? left_behind(ft, c, &v) : closed_unread(ft, c);
		victim_kill(&v);
		ft->open = false;
		if (ft_objs_close(ft, &ft->o) && ret == FT_PASS)
			ret = FT_FAIL;
		ft_ops_drop(ft);
	}
	if (ft->rank && c->b == 7)
		ret = closed_unread(ft, c);
	/* Rank 1 does not take part in that, but for its name; it waits here. */
	if (ft->rank && c->b == 6) {
		FT_CHECK(ft, !ft_objs_open(ft, &c->cfg, &ft->o), "an endpoint");
		ret = ft_exchange(ft, &ft->o, ft->addr) ? FT_FAIL : FT_PASS;
	}
	FT_CHECK(ft, !oob_allgather(&ft->oob, &ret, all, sizeof(ret)), "lost a "
		 "rank");
	if (ft->rank && c->b == 6 && ft_objs_close(ft, &ft->o))
		return FT_FAIL;
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "polling", .fn = death, .a = POLL,
		  .cfg.alone = true },
		{ .name = "in-sread", .fn = death, .a = SREAD,
		  .cfg = { .alone = true, .wait = FI_WAIT_UNSPEC } },
		{ .name = "on-descriptor", .fn = death, .a = FD,
		  .cfg = { .alone = true, .wait = FI_WAIT_FD } },
		{ .name = "idle-polling", .fn = death, .a = POLL, .b = 1,
		  .cfg.alone = true },
		{ .name = "idle", .fn = death, .a = SREAD, .b = 1,
		  .cfg = { .alone = true, .wait = FI_WAIT_UNSPEC } },
		{ .name = "small", .fn = death, .b = 2, .cfg.alone = true },
		{ .name = "left-behind", .fn = death, .b = 9, .cfg.alone = true },
		{ .name = "dead-before", .fn = death, .b = 4, .cfg.alone = true },
		{ .name = "closed-here", .fn = death, .b = 5,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS | FI_ATOMIC } },
		{ .name = "closed-here-unread", .fn = death, .a = 1, .b = 5,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS | FI_ATOMIC } },
		{ .name = "closed-unread", .fn = death, .b = 7, .cfg.alone = true },
		{ .name = "descriptors", .fn = death, .b = 6, .cfg.alone = true },
		{ .name = "memory-polling", .fn = death, .a = POLL, .b = 3,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS } },
		{ .name = "memory-in-sread", .fn = death, .a = SREAD, .b = 3,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS,
			   .wait = FI_WAIT_UNSPEC } },
		{ .name = "memory-read-late", .fn = death, .b = 10,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS } },
		{ .name = "memory-of-ourselves", .fn = death, .b = 11,
		  .cfg = { .alone = true, .caps = FT_RMA_CAPS } },
		{ .name = "atomics-killed", .fn = death, .a = KILLED, .b = 8,
		  .cfg = { .alone = true, .caps = FT_ATOMIC_CAPS } },
		{ .name = "atomics-killed-removed", .fn = death, .a = KILLED | REMOVED,
		  .b = 8, .cfg = { .alone = true, .caps = FT_ATOMIC_CAPS } },
		{ .name = "atomics-killed-delivery", .fn = death, .a = KILLED | CONFIRMED,
		  .b = 8, .cfg = { .alone = true, .caps = FT_ATOMIC_CAPS } },
		{ .name = "atomics-computing", .fn = death, .b = 8,
		  .cfg = { .alone = true, .caps = FT_ATOMIC_CAPS } },
		{ .name = "atomics-computing-delivery", .fn = death, .a = CONFIRMED, .b = 8,
		  .cfg = { .alone = true, .caps = FT_ATOMIC_CAPS } },
	};

	return ft_main(argc, argv, "local processes that are killed", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
