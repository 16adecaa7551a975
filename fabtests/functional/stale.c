/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys that no longer mean what they meant.
 *
 * A process dies, and another endpoint gets its port.  Keys that a peer learned
 * from the dead process must not open the memory of the new one: nothing of it
 * is read or written, and no operation reports success.  The rank is A, which
 * keeps the keys; B and C are processes of its own.
 *
 * Or a key is used again, for more memory, for other memory, or with more
 * rights: what was cached for the key before must not cause a refusal.
 */
#include "../common/rma.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES		(512 << 10)
#define EID_AT		8		/* offset in an address of lnx */
#define SECRET		0x5c
#define OURS		0x33
#define WARM_READS	12		/* small ones, until lnx requests keys */

/* What B and C report to A. */
struct report {
	unsigned char name[FT_NAME_MAX];
	size_t name_len;
	uint64_t key, base;
};

struct other {
	pid_t pid;
	int fd;
	unsigned char *mem;		/* shared with A */
};

static struct report was;			/* what B reported, for C */

/* The address of B with another identity. */
static int take_place(struct ft *ft, struct ft_objs *o)
{
	(void)ft;
	was.name[EID_AT] ^= 0x55;
	was.name[EID_AT + 5] ^= 0x99;
	return fi_setname(&o->ep->fid, was.name, was.name_len);
}

/* B, or C if `second`: registered memory, and progress until it is killed. */
static void serve(struct ft *ft, struct other *me, int fd, bool second)
{
	struct ft_cfg cfg = { .caps = FT_RMA_CAPS };
	struct report say = { .base = 0 };
	struct ft_mr mr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ft_guard(ft, "a process that serves memory");
	if (second) {
		if (read(fd, &was, sizeof(was)) != sizeof(was))
			_exit(1);
		cfg.bind = take_place;
		/* A second key, so that C has another one than B. */
		ft_mr_new_key(ft);
	}
	memset(me->mem, second ? SECRET : 0, BYTES);
	if (ft_objs_open(ft, &cfg, &ft->o) ||
	    ft_mr_reg(ft, &mr, me->mem, BYTES, FT_MR_ACCESS)) {
		fprintf(stderr, "# %s: %s\n", second ? "C" : "B", ft->why);
		_exit(1);
	}
	ft->open = true;
	memcpy(say.name, ft->o.name, sizeof(say.name));
	say.name_len = ft->o.name_len;
	say.key = fi_mr_key(mr.mr);
	if (ft_mr_mode(&ft->o) & FI_MR_VIRT_ADDR)
		say.base = (uintptr_t)me->mem;
	if (write(fd, &say, sizeof(say)) != sizeof(say))
		_exit(1);
	for (;;)
		ft_progress(ft);
}

static int start(struct ft *ft, struct other *o, bool second)
{
	int pair[2];

	o->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED |
		      MAP_ANONYMOUS, -1, 0);
	FT_CHECK(ft, o->mem != MAP_FAILED, "mmap");
	FT_CHECK(ft, !socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	o->pid = fork();
	FT_CHECK(ft, o->pid >= 0, "fork");
	if (!o->pid) {
		close(pair[0]);
		serve(ft, o, pair[1], second);
	}
	close(pair[1]);
	o->fd = pair[0];
	return FT_PASS;
}

static void end(struct other *o)
{
	if (o->pid > 0) {
		kill(o->pid, SIGKILL);
		waitpid(o->pid, NULL, 0);
		close(o->fd);
	}
	o->pid = 0;
	if (o->mem && o->mem != MAP_FAILED)
		munmap(o->mem, BYTES);
	o->mem = NULL;
}

static void aim(struct ft_rma *r, int call, unsigned char *buf, size_t len,
		const struct report *at)
{
	memset(r, 0, sizeof(*r));
	r->call = call;
	r->niov = r->nrma = 1;
	r->iov[0].iov_base = buf;
	r->iov[0].iov_len = len;
	r->rma[0] = (struct fi_rma_iov){ .addr = at->base, .len = len,
					 .key = at->key };
	r->flags = FI_DELIVERY_COMPLETE;
}

/* a: call, b: bytes */
static int with_old_keys(struct ft *ft, const struct ft_case *c,
			 struct other *b, struct other *d)
{
	static unsigned char buf[BYTES];
	struct ft_cfg cfg = { .caps = FT_RMA_CAPS };
	int call = (int)c->a, i;
	size_t len = c->b;
	struct report at;
	struct ft_op *op;
	struct ft_rma r;
	int ret;

	FT_TRY(start(ft, b, false));
	FT_TRY(start(ft, d, true));
	FT_CHECK(ft, recv(b->fd, &at, sizeof(at), MSG_WAITALL) == sizeof(at),
		 "B did not open");
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = cfg;
	ft->open = true;
	ft_ops_drop(ft);
	FT_CHECK(ft, fi_av_insert(ft->o.av, at.name, 1, &ft->addr[1], 0,
				  NULL) == 1, "fi_av_insert");
	for (i = 0; i <= WARM_READS; i++) {
		aim(&r, FT_READMSG, buf, i == WARM_READS ? BYTES : 64, &at);
		r.addr = ft->addr[1];
		FT_TRY(ft_rma_now(ft, &r, FT_AT));
	}
	kill(b->pid, SIGKILL);
	waitpid(b->pid, NULL, 0);
	b->pid = 0;
	close(b->fd);
	FT_CHECK(ft, write(d->fd, &at, sizeof(at)) == sizeof(at) &&
		 recv(d->fd, &was, sizeof(was), MSG_WAITALL) == sizeof(was),
		 "C did not get B's address");

	memset(buf, OURS, len);
	aim(&r, call, buf, len, &at);
	r.addr = ft->addr[1];
	op = ft_op_new(ft);
	ret = ft_rma(ft, op, &r);
	if (!ret)
		ret = ft_wait(ft, op);
	i = (int)pattern_is_filled(d->mem, BYTES, SECRET);
	FT_CHECK(ft, i < 0, "memory of another process was written at %d", i);
	FT_CHECK(ft, memchr(buf, SECRET, len) == NULL,
		 "memory of another process was read");
	FT_CHECK(ft, ret != -FI_ETIMEDOUT, "it never ends");
	FT_CHECK(ft, ret || op->err, "it completes with success");
	return FT_PASS;
}

static int stale(struct ft *ft, const struct ft_case *c)
{
	struct other b = { 0 }, d = { 0 };
	int ret;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "keys are picked by the application");
	if (ft_lnx_over_shm(ft))
		return ft_skip(ft, "names in shared memory are not used again");
	ret = with_old_keys(ft, c, &b, &d);
	end(&b);
	end(&d);
	ft->open = false;
	if (ft->o.fabric && ft_objs_close(ft, &ft->o) && ret == FT_PASS)
		ret = FT_FAIL;
	ft_ops_drop(ft);
	return ret;
}

/* ---- a key used again ---- */

enum { MORE, OTHER, RIGHTS };
#define AT_ONCE		3

/* Operations one after the other, in both ranks: delivered writes, or reads. */
static int access_now(struct ft *ft, const struct ft_mr *m, int call,
		      unsigned char *buf, size_t len, uint64_t off)
{
	struct ft_rma r;

	ft_rma_set(ft, &r, call, buf, len, NULL, m, !ft->rank, off);
	r.flags = FI_DELIVERY_COMPLETE;
	return ft_rma_now(ft, &r, FT_AT);
}

static int meet(struct ft *ft)
{
	return ft_barrier(ft) ? ft_fail(ft, "another rank left the case") :
	       FT_PASS;
}

static int reg_as(struct ft *ft, struct ft_mr *m, void *buf, size_t len,
		  uint64_t access, uint64_t key)
{
	memset(m, 0, sizeof(*m));
	m->buf = buf;
	m->len = len;
	FT_CALL(ft, fi_mr_reg(ft->o.domain, buf, len, access, 0, key, 0,
			      &m->mr, NULL));
	FT_CHECK(ft, !ft_mr_ready(ft, &ft->o, m), "not ready");
	return ft_mr_share(ft, m) ? FT_FAIL : FT_PASS;
}

/* Several operations at once, of all that the key stands for now. */
static int at_once(struct ft *ft, const struct ft_mr *m, int call,
		   unsigned char *buf, size_t len, uint64_t off)
{
	struct ft_op *op[AT_ONCE];
	struct ft_rma r;
	int i;

	for (i = 0; i < AT_ONCE; i++) {
		size_t n = len / AT_ONCE;

		ft_rma_set(ft, &r, call, buf + (size_t)i * n, n, NULL, m,
			   !ft->rank, off + (size_t)i * n);
		r.flags = FI_DELIVERY_COMPLETE;
		op[i] = ft_op_new(ft);
		FT_CALL(ft, ft_rma(ft, op[i], &r));
	}
	for (i = 0; i < AT_ONCE; i++)
		FT_DONE(ft, op[i]);
	return FT_PASS;
}

/* a: what changes; b: call afterwards */
static int used_again(struct ft *ft, const struct ft_case *c, struct ft_mr *m)
{
	static unsigned char mem[2][BYTES], buf[BYTES];
	uint64_t key = ft_mr_new_key(ft), access = FT_MR_ACCESS;
	size_t before = c->a == MORE ? 100002 : 400002, now = 400002, off;
	unsigned char *new = mem[c->a == OTHER];
	bool reads = c->b == FT_READMSG;
	size_t len = 150000;
	int i;

	if (ft_mr_mode(&ft->o) & FI_MR_PROV_KEY)
		return ft_skip(ft, "the provider picks keys");
	if (c->a == RIGHTS)
		access &= ~(uint64_t)(reads ? FI_REMOTE_READ : FI_REMOTE_WRITE);
	memset(mem, 0, sizeof(mem));
	FT_TRY(reg_as(ft, m, mem[0], before, access, key));
	/* The peer learns the key with an operation that is allowed. */
	FT_TRY(access_now(ft, m, c->a == RIGHTS && reads ? FT_WRITEMSG :
			  FT_READMSG, buf, 90000, 0));
	for (i = 0; i < WARM_READS && (c->a != RIGHTS || !reads); i++)
		FT_TRY(access_now(ft, m, FT_READMSG, buf, 64, 0));
	FT_TRY(meet(ft));
	FT_CALL(ft, ft_mr_close(ft, m));
	memset(mem, 0, sizeof(mem));
	FT_TRY(reg_as(ft, m, new, now, FT_MR_ACCESS, key));
	off = now - len;
	if (reads)
		pattern_fill(new + off, len, ft->run->seed, (unsigned)ft->rank,
			     1);
	else
		pattern_fill(buf, len, ft->run->seed, (unsigned)ft->rank, 1);
	FT_TRY(meet(ft));
	FT_TRY(at_once(ft, m, (int)c->b, buf, len, off));
	if (reads)
		FT_TRY(access_now(ft, m, FT_READMSG, buf + len - 64, 64,
				  off + len - 64));
	FT_TRY(meet(ft));
	FT_CHECK(ft, pattern_check(reads ? buf : new + off, len, ft->run->seed,
				   (unsigned)!ft->rank, 1) < 0, "wrong data");
	return meet(ft);
}

static int again(struct ft *ft, const struct ft_case *c)
{
	char why[FT_WHY_MAX];
	struct ft_mr m = { 0 };
	int ret;

	ft_known(ft, NULL, "keys of closed memory may end connections");
	ret = used_again(ft, c, &m);
	memcpy(why, ft->why, sizeof(why));
	if (ft_mr_close(ft, &m) && ret == FT_PASS)
		return FT_FAIL;
	memcpy(ft->why, why, sizeof(why));
	return ret;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[] = {
		{ .name = "read-large", .a = FT_READMSG, .b = 300000 },
		{ .name = "read-small", .a = FT_READMSG, .b = 512 },
		{ .name = "write-large", .a = FT_WRITEMSG, .b = 300000 },
		{ .name = "write-small", .a = FT_WRITEMSG, .b = 512 },
		{ .name = "read-of-more", .a = MORE, .b = FT_READMSG },
		{ .name = "write-to-more", .a = MORE, .b = FT_WRITEMSG },
		{ .name = "read-of-other", .a = OTHER, .b = FT_READMSG },
		{ .name = "write-to-other", .a = OTHER, .b = FT_WRITEMSG },
		{ .name = "read-allowed", .a = RIGHTS, .b = FT_READMSG },
		{ .name = "write-allowed", .a = RIGHTS, .b = FT_WRITEMSG },
	};
	size_t i, n = sizeof(cases) / sizeof(cases[0]);

	for (i = 0; i < n; i++) {
		if (i >= 4) {
			cases[i].fn = again;
			cases[i].cfg.caps = FT_RMA_CAPS;
			continue;
		}
		cases[i].fn = stale;
		cases[i].ranks = 1;
		cases[i].cfg.alone = true;
	}
	/* The rails know all registered memory, and lnx gives up a dead peer soon. */
	setenv("FI_LNX_MR_EAGER", "1", 1);
	setenv("FI_LNX_CONNECT_TIMEOUT", "3000", 0);
	setenv("FI_LNX_TRANSACTION_TIMEOUT", "3000", 0);
	return ft_main(argc, argv, "keys that no longer mean what they meant", cases,
		       (int)n);
}
