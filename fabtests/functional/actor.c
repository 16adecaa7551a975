/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes with endpoints of their own; see actor.h. */
#include "actor.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lnx_ext.h"

#define STATS_MAX	65536
#define SLOT		(1 << 19)	/* largest message */

struct actor actors[ACTORS_MAX];

/* ---- processes ---- */

static void actor_main(struct ft *ft, struct actor *me, int i,
		       int (*play)(struct ft *ft, struct actor *me))
{
	cpu_set_t set;
	int k;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ft_guard_s(ft, "an actor", 20 * ft->run->guard_s);
	for (k = 0; k < ACTORS_MAX; k++)
		if (k != i && actors[k].pid)
			close(actors[k].fd);
	/* Rank 0 has the first core. */
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (!ft->run->one_core)
		sched_setaffinity(0, sizeof(set), &set);
	ft->rank = 1;
	if (play(ft, me) != FT_PASS)
		snprintf(me->mem->why, sizeof(me->mem->why), "%s", ft->why);
	actor_close(ft);
	_exit(0);
}

int actor_start(struct ft *ft, int i,
		int (*play)(struct ft *ft, struct actor *me))
{
	struct actor *a = &actors[i];
	int pair[2];

	a->mem = mmap(NULL, sizeof(*a->mem), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(ft, a->mem != MAP_FAILED &&
		 !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
		 "no memory");
	fflush(stdout);
	a->pid = fork();
	FT_CHECK(ft, a->pid >= 0, "fork: no process");
	if (!a->pid) {
		struct actor me = { .fd = pair[1], .mem = a->mem };

		close(pair[0]);
		actor_main(ft, &me, i, play);
	}
	close(pair[1]);
	a->fd = pair[0];
	return FT_PASS;
}

void actor_kill(struct actor *a)
{
	if (a->pid <= 0)
		return;
	kill(a->pid, SIGKILL);
	waitpid(a->pid, NULL, 0);
	shm_files_remove(&a->mem->leaves, NULL);
	close(a->fd);
	a->pid = 0;
}

int actors_run(struct ft *ft, const struct ft_case *c)
{
	int ret = FT_PASS, all[OOB_MAX_RANKS], i;
	void (*idle)(void *) = ft->oob.idle;
	char why[FT_WHY_MAX];

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "only lnx has sessions");
	if (!ft->rank) {
		ret = c->body(ft, c);
		memcpy(why, ft->why, sizeof(why));
		if (ret == FT_PASS && ft->unexpected[0]) {
			ret = FT_FAIL;
			memcpy(why, ft->unexpected, sizeof(why));
		}
		for (i = 0; i < ACTORS_MAX; i++) {
			actor_kill(&actors[i]);
			if (actors[i].mem)
				munmap(actors[i].mem, sizeof(*actors[i].mem));
		}
		memset(actors, 0, sizeof(actors));
		actor_close(ft);
		memcpy(ft->why, why, sizeof(why));
		ft->cfg = c->cfg;
	}
	/* Rank 1 waits here, and leaves its core to the actors. */
	ft->oob.idle = NULL;
	i = oob_allgather(&ft->oob, &ret, all, sizeof(ret));
	ft->oob.idle = idle;
	FT_CHECK(ft, !i, "lost a rank");
	return ret;
}

int actor_tell(struct ft *ft, struct actor *a, const void *buf, size_t len)
{
	FT_CHECK(ft, send(a->fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len,
		 "a process has ended: %s", a->mem->why);
	return FT_PASS;
}

bool actor_speaks(const struct actor *a)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

int actor_hear(struct ft *ft, struct actor *a, void *buf, size_t len,
	       bool deaf)
{
	double end = ft_now() + 4 * ft->run->timeout_s;
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	bool open = ft->open && !deaf;
	unsigned turn = 0;

	/* An actor waits for orders as long as there are any to come. */
	while (!open || ++turn % 64 || !poll(&p, 1, 0)) {
		if (!open && poll(&p, 1, 100))
			break;
		FT_CHECK(ft, !a->pid || turn % 64 || ft_now() < end,
			 "a process does not answer");
		if (!open)
			continue;
		ft_progress(ft);
		if (turn % 16 == 0)
			sched_yield();
	}
	FT_CHECK(ft, recv(a->fd, buf, len, MSG_WAITALL) == (ssize_t)len,
		 "a process has ended: %s", a->mem->why);
	return FT_PASS;
}

/* ---- both sides ---- */

static const unsigned char *wanted_name;
static size_t wanted_len;

static int take_name(struct ft *ft, struct ft_objs *o)
{
	(void)ft;
	return fi_setname(&o->ep->fid, (void *)wanted_name, wanted_len);
}

int actor_open(struct ft *ft, const unsigned char *name, size_t name_len)
{
	struct ft_cfg cfg = { .caps = FT_ATOMIC_CAPS };

	wanted_name = name;
	wanted_len = name_len;
	if (name_len)
		cfg.bind = take_name;
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = cfg;
	ft->open = true;
	ft_ops_drop(ft);
	return FT_PASS;
}

void actor_close(struct ft *ft)
{
	ft->open = false;
	if (ft->o.fabric)
		ft_objs_close(ft, &ft->o);
	ft_ops_drop(ft);
}

uint64_t actor_stat(struct ft *ft, const char *name)
{
	struct lnx_control_ops *control;
	static char reply[STATS_MAX];
	size_t len = strlen(name);
	char *at;

	if (fi_open_ops(&ft->o.ep->fid, LNX_CONTROL_OPS, 0, (void **)&control,
			NULL) ||
	    control->request(&ft->o.ep->fid, "stats", reply,
			     sizeof(reply)) < 0)
		return UINT64_MAX;
	for (at = reply; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, len) && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	}
	return UINT64_MAX;
}

int actor_ask(struct ft *ft, const char *request)
{
	struct lnx_control_ops *control;
	char reply[FT_WHY_MAX];

	FT_CALL(ft, fi_open_ops(&ft->o.ep->fid, LNX_CONTROL_OPS, 0, (void **)&control,
				NULL));
	FT_CHECK(ft, control->request(&ft->o.ep->fid, request, reply, sizeof(reply)) >= 0,
		 "\"%s\": %.150s", request, reply);
	return FT_PASS;
}

int actor_put(struct ft *ft, struct ft_op **op, fi_addr_t to, bool tagged,
	      uint64_t tag, const void *buf, size_t len, uint64_t data)
{
	struct ft_msg m = {
		.tagged = tagged, .call = FT_SENDMSG, .addr = to, .tag = tag,
		.buf = (void *)buf, .len = len, .data = data,
		.flags = FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA,
	};

	*op = ft_op_new(ft);
	return ft_send(ft, *op, &m);
}

/* ---- orders ---- */

static struct actor *self;
static unsigned char out[SLOT];

static void on_receive(struct ft *ft, struct ft_op *op)
{
	struct actor_mem *m = self->mem;

	(void)ft;
	if (op->err == FI_ECANCELED)
		return;
	if (op->err)
		m->failed++;
	else
		m->done++;
	if (!op->err && op->arg)
		m->log[(uintptr_t)op->arg - 1] = op->data + 1;
}

static int post(struct ft *ft, const struct actor_order *o)
{
	unsigned i;

	FT_CHECK(ft, o->n < ACTOR_LOG, "too many receives");
	for (i = 0; i < o->n; i++) {
		bool from = o->what == ACTOR_POST_FROM;
		struct ft_op *op = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = from || i % 2,
			.addr = from ? ft->addr[0] : FI_ADDR_UNSPEC,
			.tag = o->key, .ignore = from ? 0 : ~0ull,
			.buf = self->mem->at + (from ? 0 : i * o->size),
			.len = o->size,
		};

		op->hook = on_receive;
		op->arg = from ? (void *)(uintptr_t)(i + 1) : NULL;
		FT_CALL(ft, ft_recv(ft, op, &m));
	}
	return FT_PASS;
}

static int reg(struct ft *ft, uint64_t key)
{
	static struct ft_mr m;

	memset(&m, 0, sizeof(m));
	FT_CALL(ft, fi_mr_reg(ft->o.domain, self->mem->at, ACTOR_ROOM,
			      FT_MR_ACCESS, 0, key, 0, &m.mr, NULL));
	FT_CHECK(ft, !ft_mr_ready(ft, &ft->o, &m) && fi_mr_key(m.mr) == key,
		 "the provider picks keys");
	ft->o.extra[ft->o.nextra++] = &m.mr->fid;
	return FT_PASS;
}

static int send_all(struct ft *ft, const struct actor_order *o,
		    struct actor_answer *say)
{
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op;
	unsigned i = 0;
	int ret;

	while (i < o->n) {
		pattern_fill(out, o->size, ft->run->seed, 1, i);
		ret = actor_put(ft, &op, ft->addr[0], true, o->key, out,
				o->size, i);
		if (!ret)
			ret = ft_wait(ft, op);
		FT_CHECK(ft, !ret || ret == -FI_EHOSTUNREACH, "send %u: %s", i,
			 fi_strerror(-ret));
		if (!ret && !op->err) {
			i++;
			continue;
		}
		FT_CHECK(ft, !i, "send %u: %s", i,
			 fi_strerror(ret ? -ret : op->err));
		FT_CHECK(ft, ft_now() < end, "no send succeeds");
		say->errors += !ret;
		ft_linger(ft, 0.02);
	}
	return FT_PASS;
}

static int start_all(struct ft *ft, const struct actor_order *o)
{
	struct ft_op *op;
	unsigned i;

	pattern_fill(out, o->size, ft->run->seed, 1, o->key);
	for (i = 0; i < o->n; i++)
		FT_CALL(ft, actor_put(ft, &op, ft->addr[0], true, o->key, out,
				      o->size, i));
	return FT_PASS;
}

static int echo(struct ft *ft, const struct actor_order *o)
{
	struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);

	FT_CHECK(ft, o->size <= SLOT, "too long");
	while (!self->mem->stop) {
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[0], .tag = o->key,
			.buf = out, .len = o->size,
		};

		ft_op_reset(rx);
		FT_CALL(ft, ft_recv(ft, rx, &m));
		while (!rx->done && !self->mem->stop)
			ft_wait_for(ft, rx, 0.01);
		if (!rx->done)
			break;
		FT_CHECK(ft, !rx->err, "a receive failed: %s",
			 fi_strerror(rx->err));
		m.len = rx->len;
		m.tag++;
		ft_op_reset(tx);
		FT_CALL(ft, ft_send(ft, tx, &m));
		FT_DONE(ft, tx);
		self->mem->count[0]++;
	}
	FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	return FT_PASS;
}

/* Another endpoint in place of ft->o.ep, with the same queue and AV. */
static int replace_ep(struct ft *ft)
{
	struct ft_objs *o = &ft->o;

	FT_CALL(ft, fi_close(&o->ep->fid));
	o->ep = NULL;
	ft_ops_drop(ft);
	FT_CALL(ft, fi_endpoint(o->domain, o->info, &o->ep, NULL));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_enable(o->ep));
	o->name_len = sizeof(o->name);
	FT_CALL(ft, fi_getname(&o->ep->fid, o->name, &o->name_len));
	return FT_PASS;
}

static int lives(struct ft *ft, const struct actor_order *o)
{
	unsigned i;

	for (i = 0; i < o->n; i++) {
		bool asks = i % 2;
		struct actor_life life = { .number = o->key + i };
		uint64_t back = ~0ull;
		struct ft_msg m = {
			.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = &back,
			.len = sizeof(back), .tag = ACTOR_TAG_ANSWER,
		};
		struct ft_op *tx, *rx;

		if (i || o->key)
			FT_TRY(replace_ep(ft));
		rx = ft_op_new(ft);
		if (asks)
			FT_CALL(ft, ft_recv(ft, rx, &m));
		life.name_len = ft->o.name_len;
		memcpy(life.name, ft->o.name, sizeof(life.name));
		FT_CALL(ft, actor_put(ft, &tx, ft->addr[0], true,
				      asks ? ACTOR_TAG_ASKS : ACTOR_TAG_TELLS,
				      &life, sizeof(life), 0));
		FT_DONE(ft, tx);
		if (asks)
			FT_DONE(ft, rx);
		FT_CHECK(ft, !asks || back == life.number,
			 "life %llu got the answer of %llu",
			 (unsigned long long)life.number,
			 (unsigned long long)back);
		FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
	}
	return FT_PASS;
}

static int serve(struct ft *ft, unsigned i)
{
	struct actor_answer say = { 0 };
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC,
		.buf = self->mem->at, .len = ACTOR_ROOM, .tag = 1,
	};
	struct ft_op *rx = ft_op_new(ft);
	uint64_t want[2];

	FT_CALL(ft, ft_recv(ft, rx, &m));
	say.name_len = ft->o.name_len;
	memcpy(say.name, ft->o.name, sizeof(say.name));
	FT_TRY(actor_tell(ft, self, &say, sizeof(say)));
	FT_DONE(ft, rx);
	/* The sender has removed us now; what it sent is here. */
	FT_TRY(actor_hear(ft, self, want, sizeof(want), false));
	FT_CHECK(ft, rx->len == want[1] &&
		 pattern_check(self->mem->at, want[1], ft->run->seed, 0,
			       want[0]) < 0, "server %u: wrong data", i);
	return FT_PASS;
}

static int servers(struct ft *ft, const struct actor_order *o)
{
	unsigned i;

	for (i = 0; i < o->n; i++) {
		if (i || o->key)
			FT_TRY(replace_ep(ft));
		FT_TRY(serve(ft, i));
	}
	return FT_PASS;
}

static void mortal(struct ft *ft, unsigned i)
{
	int ret = actor_open(ft, NULL, 0);

	/* No other endpoint is open in this process, and no peer is known yet. */
	shm_files_of(getpid(), &self->mem->leaves);
	if (ret == FT_PASS && serve(ft, i) == FT_PASS)
		_exit(0);
	snprintf(self->mem->why, sizeof(self->mem->why), "%s", ft->why);
	_exit(1);
}

static int mortals(struct ft *ft, const struct actor_order *o)
{
	unsigned i;

	for (i = 0; i < o->n; i++) {
		int status = 0;
		pid_t pid = fork();

		FT_CHECK(ft, pid >= 0, "fork: no process");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			mortal(ft, i);
		}
		FT_CHECK(ft, waitpid(pid, &status, 0) == pid, "waitpid: no process");
		/* Each leaves megabytes. */
		shm_files_remove(&self->mem->leaves, NULL);
		FT_CHECK(ft, !status, "server %u: %s", i, self->mem->why);
	}
	return FT_PASS;
}

static int send_early(struct ft *ft, const struct actor_order *o)
{
	struct actor_answer say = { 0 };
	struct ft_op *op;
	size_t i;
	char byte;

	FT_TRY(actor_open(ft, NULL, 0));
	memcpy(say.name, ft->o.name, sizeof(say.name));
	FT_TRY(actor_tell(ft, self, &say, sizeof(say)));
	FT_TRY(actor_hear(ft, self, &byte, 1, false));
	FT_CHECK(ft, fi_av_insert(ft->o.av, o->name, 1, &ft->addr[0], 0, NULL) == 1,
		 "fi_av_insert failed");
	FT_CALL(ft, actor_put(ft, &op, ft->addr[0], true, o->key, out, 64, 0));
	FT_DONE(ft, op);
	FT_CALL(ft, actor_put(ft, &op, ft->addr[0], false, 0, out, 64, 0));
	for (i = 0; i < o->size; i++)
		FT_CALL(ft, actor_put(ft, &op, ft->addr[0], true, o->key, out,
				      i % 2 ? 64 : 5000, 0));
	/* When it hears that, its end has come. */
	return actor_hear(ft, self, &byte, 1, false);
}

static int early(struct ft *ft, const struct actor_order *o)
{
	unsigned i;
	char byte = 0;

	for (i = 0; i < o->n; i++) {
		int status = 0;
		pid_t pid = fork();

		FT_CHECK(ft, pid >= 0, "fork: no process");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (send_early(ft, o) == FT_PASS)
				_exit(0);
			snprintf(self->mem->why, sizeof(self->mem->why), "%s", ft->why);
			_exit(1);
		}
		FT_CHECK(ft, waitpid(pid, &status, 0) == pid, "waitpid: no process");
		FT_CHECK(ft, !status, "sender %u: %s", i, self->mem->why);
		FT_TRY(actor_tell(ft, self, &byte, 1));
	}
	return FT_PASS;
}

static int obey(struct ft *ft, const struct actor_order *o,
		struct actor_answer *say)
{
	switch (o->what) {
	case ACTOR_OPEN:
		FT_TRY(actor_open(ft, o->name, o->name_len));
		say->name_len = ft->o.name_len;
		memcpy(say->name, ft->o.name, sizeof(say->name));
		return FT_PASS;
	case ACTOR_CLOSE:
		ft->open = false;
		FT_CHECK(ft, !ft->unexpected[0], "%s", ft->unexpected);
		return ft_objs_close(ft, &ft->o) ? FT_FAIL : FT_PASS;
	case ACTOR_KNOW:
		FT_CHECK(ft, fi_av_insert(ft->o.av, o->name, 1, &ft->addr[0],
					  0, NULL) == 1, "fi_av_insert failed");
		return FT_PASS;
	case ACTOR_POST:
	case ACTOR_POST_FROM:
		return post(ft, o);
	case ACTOR_REG:
		return reg(ft, o->key);
	case ACTOR_SEND:
		return send_all(ft, o, say);
	case ACTOR_START:
		return start_all(ft, o);
	case ACTOR_ECHO:
		return echo(ft, o);
	case ACTOR_LIVES:
		return lives(ft, o);
	case ACTOR_SERVERS:
		return servers(ft, o);
	case ACTOR_MORTALS:
		return mortals(ft, o);
	case ACTOR_EARLY:
		return early(ft, o);
	default:
		return ft_fail(ft, "unknown order");
	}
}

int actor_obeys(struct ft *ft, struct actor *me)
{
	static struct actor_order o;

	self = me;
	for (;;) {
		struct actor_answer say = { 0 };

		FT_TRY(actor_hear(ft, me, &o, sizeof(o), false));
		FT_TRY(obey(ft, &o, &say));
		FT_TRY(actor_tell(ft, me, &say, sizeof(say)));
	}
}

int actor_do(struct ft *ft, struct actor *a, const struct actor_order *o,
	     struct actor_answer *answer, bool deaf)
{
	struct actor_answer none;

	FT_TRY(actor_tell(ft, a, o, sizeof(*o)));
	return actor_hear(ft, a, answer ? answer : &none, sizeof(none), deaf);
}
