/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process dies, and another endpoint gets its port.  Keys that a peer learned from
 * the dead one must not open the memory of the new one: nothing of it is read, nothing
 * of it is written, and no operation is told to have succeeded.
 *
 * Rank 0 plays A, which keeps the keys; B and C are processes of its own.
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
#define EID_AT		8		/* in an address of lnx */
#define SECRET		0x5c
#define OURS		0x33
#define WARM_READS	12		/* small ones, until keys are asked for */

/* What B and C tell A. */
struct said {
	unsigned char name[FT_NAME_MAX];
	size_t name_len;
	uint64_t key, base;
};

struct other {
	pid_t pid;
	int fd;
	unsigned char *mem;		/* shared with A */
};

static struct said was;			/* of B, for C */

/* The place of B, and another identity. */
static int take_place(struct ft *ft, struct ft_objs *o)
{
	(void)ft;
	was.name[EID_AT] ^= 0x55;
	was.name[EID_AT + 5] ^= 0x99;
	return fi_setname(&o->ep->fid, was.name, was.name_len);
}

/* B, or with second C: registered memory, and progress until it is killed. */
static void serve(struct ft *ft, struct other *me, int fd, bool second)
{
	struct ft_cfg cfg = { .caps = FT_RMA_CAPS };
	struct said say = { .base = 0 };
	struct ft_mr mr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ft_guard(ft, "a process that serves memory");
	if (second) {
		if (read(fd, &was, sizeof(was)) != sizeof(was))
			_exit(1);
		cfg.bind = take_place;
		/* Another key of the application's. */
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
		const struct said *at)
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
	struct said at;
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
		 "C did not get B's place");

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
	FT_CHECK(ft, ret || op->err, "it ends with success");
	return FT_PASS;
}

static int stale(struct ft *ft, const struct ft_case *c)
{
	struct other b = { 0 }, d = { 0 };
	int ret;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "keys are the application's");
	if (ft_lnx_over_shm(ft))
		return ft_skip(ft, "names in shared memory are not used twice");
	ret = with_old_keys(ft, c, &b, &d);
	end(&b);
	end(&d);
	ft->open = false;
	if (ft->o.fabric && ft_objs_close(ft, &ft->o) && ret == FT_PASS)
		ret = FT_FAIL;
	ft_ops_drop(ft);
	return ret;
}

int main(int argc, char **argv)
{
	static struct ft_case cases[] = {
		{ .name = "read-large", .a = FT_READMSG, .b = 300000 },
		{ .name = "read-small", .a = FT_READMSG, .b = 512 },
		{ .name = "write-large", .a = FT_WRITEMSG, .b = 300000 },
		{ .name = "write-small", .a = FT_WRITEMSG, .b = 512 },
	};
	size_t i, n = sizeof(cases) / sizeof(cases[0]);

	for (i = 0; i < n; i++) {
		cases[i].fn = stale;
		cases[i].ranks = 1;
		cases[i].cfg.alone = true;
	}
	/* All that is registered is known to the rails; and the dead are given up
	 * soon. */
	setenv("FI_LNX_MR_EAGER", "1", 1);
	setenv("FI_LNX_CONNECT_TIMEOUT", "3000", 0);
	setenv("FI_LNX_TRANSACTION_TIMEOUT", "3000", 0);
	return ft_main(argc, argv, "keys that outlive their owner", cases,
		       (int)n);
}
