/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_enable while something that the core providers need is short or taken: it
 * returns the error, the endpoint can be enabled later or closed, and nothing
 * of other endpoints is touched.  And sends without a descriptor to connect
 * with: they wait, and a line says why.
 */
#include "pair.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MORE	200		/* descriptors that enabling may need */

static unsigned char sbuf[8192], rbuf[8192];

static bool over_lnx(const struct ft *ft)
{
	return ft->opts.prov && !strcmp(ft->opts.prov, "lnx");
}

/* Messages of an endpoint to itself. */
static int works(struct ft *ft, struct ft_objs *o)
{
	static const size_t sizes[] = { 8, 8192 };
	struct ft_objs was = ft->o;
	fi_addr_t self;
	int ret = FT_PASS;
	size_t i;

	if (fi_av_insert(o->av, o->name, 1, &self, 0, NULL) != 1)
		return ft_fail(ft, "fi_av_insert failed");
	ft->o = *o;
	for (i = 0; i < 2 && ret == FT_PASS; i++) {
		struct ft_op *rx = ft_op_new(ft), *tx = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = self, .buf = rbuf,
			.len = sizes[i], .tag = i,
		};

		ret = ft_recv(ft, rx, &m) ? ft_fail(ft, "receive") : FT_PASS;
		m.buf = sbuf;
		pattern_fill(sbuf, sizes[i], ft->run->seed, 0, i);
		if (ret == FT_PASS && ft_send(ft, tx, &m))
			ret = ft_fail(ft, "send");
		if (ret == FT_PASS)
			ret = ft_must_complete(ft, tx, FT_AT);
		if (ret == FT_PASS)
			ret = ft_must_complete(ft, rx, FT_AT);
		if (ret == FT_PASS &&
		    pattern_check(rbuf, sizes[i], ft->run->seed, 0, i) >= 0)
			ret = ft_fail(ft, "wrong data");
	}
	ft->o = was;
	return ret;
}

/* All objects up to an endpoint that is not enabled; the AV and CQ are bound. */
static int make(struct ft *ft, const struct ft_cfg *cfg, struct ft_objs *o)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = cfg->wait,
	};
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	if (!o->info)
		FT_CALL(ft, ft_getinfo(ft, cfg, &o->info));
	if (!o->domain) {
		FT_CALL(ft, fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
		FT_CALL(ft, fi_domain(o->fabric, o->info, &o->domain, NULL));
	}
	FT_CALL(ft, fi_av_open(o->domain, &av, &o->av, NULL));
	FT_CALL(ft, fi_cq_open(o->domain, &cq, &o->cq, NULL));
	FT_CALL(ft, fi_endpoint(o->domain, o->info, &o->ep, NULL));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	return FT_PASS;
}

static int name(struct ft *ft, struct ft_objs *o)
{
	o->name_len = sizeof(o->name);
	FT_CALL(ft, fi_getname(&o->ep->fid, o->name, &o->name_len));
	return FT_PASS;
}

/* ---- descriptors ---- */

static int lowest_free(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* fi_enable with so many descriptors and no more. */
static int enable_with(struct fid_ep *ep, unsigned more)
{
	struct rlimit limit, was;
	int ret, fd = lowest_free();

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &was))
		return 0;
	limit = was;
	limit.rlim_cur = (rlim_t)fd + more;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	ret = fi_enable(ep);
	setrlimit(RLIMIT_NOFILE, &was);
	return ret;
}

/*
 * One descriptor more each time, until there are enough: each call that needs
 * one has failed once.  Every other endpoint is enabled after that, with enough
 * descriptors; the rest are closed.
 */
static int descriptors(struct ft *ft, const struct ft_case *c)
{
	unsigned more, failed = 0;
	int ret = -1;

	if (!over_lnx(ft))
		return ft_skip(ft, "not over lnx");
	for (more = 0; ret && more < MAX_MORE; more++) {
		struct ft_objs o = { 0 };

		FT_TRY(make(ft, &c->cfg, &o));
		ret = enable_with(o.ep, more);
		failed += !!ret;
		FT_CHECK(ft, !ret || ret == -FI_EMFILE || ret == -FI_ENOMEM ||
			 ret == -FI_EIO, "fi_enable with %u descriptors: %s",
			 more, fi_strerror(-ret));
		if (!ret || more % 2) {
			FT_CALL(ft, fi_enable(o.ep));
			FT_TRY(name(ft, &o));
			FT_TRY(works(ft, &o));
		}
		if (ft_objs_close(ft, &o))
			return FT_FAIL;
		ft_ops_drop(ft);
	}
	FT_CHECK(ft, !ret, "fi_enable fails with %u descriptors: %s", more,
		 fi_strerror(-ret));
	FT_CHECK(ft, failed, "fi_enable needs no descriptor");
	return FT_PASS;
}

/* ---- names ---- */

/* Ask for a name: as source address of the hints, or by fi_setname. */
static int ask(struct ft *ft, const struct ft_case *c, struct ft_objs *o,
	       const struct ft_objs *taken)
{
	void *src;

	if (c->a) {
		FT_TRY(make(ft, &c->cfg, o));
		FT_CALL(ft, fi_setname(&o->ep->fid, (void *)taken->name,
				       taken->name_len));
		return FT_PASS;
	}
	FT_CALL(ft, ft_getinfo(ft, &c->cfg, &o->info));
	src = malloc(taken->name_len);
	FT_CHECK(ft, src, "no memory");
	free(o->info->src_addr);
	o->info->src_addr = memcpy(src, taken->name, taken->name_len);
	o->info->src_addrlen = taken->name_len;
	return make(ft, &c->cfg, o);
}

static bool has_file(const struct ft_objs *o)
{
	char text[256], path[64] = "/dev/shm/lnx-";
	size_t len = sizeof(text);

	fi_av_straddr(o->av, o->name, text, &len);
	return sscanf(text, "lnx://%16[0-9a-f]",
		      path + strlen(path)) == 1 && !access(path, F_OK);
}

/* A name that another endpoint has is refused, each time; the other one works. */
static int name_taken(struct ft *ft, const struct ft_case *c)
{
	struct ft_objs first = { 0 }, second = { 0 };
	bool file;
	int i;

	if (!over_lnx(ft))
		return ft_skip(ft, "not over lnx");
	FT_TRY(make(ft, &c->cfg, &first));
	FT_CALL(ft, fi_enable(first.ep));
	FT_TRY(name(ft, &first));
	file = has_file(&first);
	FT_CHECK(ft, file || !ft_lnx_over_shm(ft), "no file in /dev/shm");
	FT_TRY(ask(ft, c, &second, &first));
	for (i = 0; i < 2; i++) {
		int ret = fi_enable(second.ep);

		FT_CHECK(ft, ret == -FI_EADDRINUSE, "fi_enable %d: %s", i,
			 fi_strerror(-ret));
		FT_CHECK(ft, has_file(&first) == file, "its file is gone");
	}
	FT_TRY(works(ft, &first));
	if (ft_objs_close(ft, &second) || ft_objs_close(ft, &first))
		return FT_FAIL;
	ft_ops_drop(ft);
	return FT_PASS;
}

/* ---- connecting without descriptors ---- */

#define NMSGS		5
#define SHORT_S		0.4		/* without descriptors */

/* Leave no descriptor for further use. */
static int exhaust(struct ft *ft, struct rlimit *was)
{
	struct rlimit limit;
	int fd = lowest_free();

	FT_CHECK(ft, fd >= 0 && !getrlimit(RLIMIT_NOFILE, was), "no limit");
	limit = *was;
	limit.rlim_cur = (rlim_t)fd;
	FT_CHECK(ft, !setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	FT_CHECK(ft, lowest_free() < 0, "there is a descriptor");
	return FT_PASS;
}

/* How often has the pipe this word since the last call? */
static unsigned count_word(int fd, const char *word)
{
	static char text[1 << 16];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	unsigned found = 0;
	char *at = text;

	text[n > 0 ? n : 0] = '\0';
	while ((at = strstr(at, word))) {
		found++;
		at++;
	}
	return found;
}

static int connect_side(struct pair *p)
{
	struct ft_cfg cfg = { .wait = FI_WAIT_NONE };
	struct ft_op *op[NMSGS];
	struct ft *ft = p->ft;
	int err[2], i, k;
	struct rlimit was;

	prepare(ft, (size_t)NMSGS * SLOT);
	FT_CHECK(ft, !pipe2(err, O_NONBLOCK | O_CLOEXEC) &&
		 dup2(err[1], STDERR_FILENO) >= 0, "no pipe");
	FT_TRY(pair_open(p, &cfg, NULL));
	for (i = 0; i < NMSGS && ft->rank; i++)
		FT_CHECK(ft, op[i] = post(ft, true, 0, (uint64_t)i,
					  ins + (size_t)i * SLOT, SLOT),
			 "receive not posted");
	FT_TRY(pair_meet(p));
	if (!ft->rank) {
		FT_TRY(exhaust(ft, &was));
		for (i = 0; i < NMSGS; i++)
			FT_CHECK(ft, op[i] = put(ft, true, 1, (uint64_t)i,
						 (uint64_t)i, i % 2 ? 60000 :
						 64), "send %d not taken", i);
		ft_linger(ft, SHORT_S);
		for (i = 0, k = 0; i < NMSGS; i++)
			k += op[i]->done && op[i]->err;
		setrlimit(RLIMIT_NOFILE, &was);
		FT_CHECK(ft, !k, "%d sends failed", k);
		k = (int)count_word(err[0], "RLIMIT_NOFILE");
		FT_CHECK(ft, k == 1, "%d lines name RLIMIT_NOFILE", k);
	}
	FT_TRY(all_done(ft, op, NMSGS, "messages"));
	for (i = 0; i < NMSGS; i++) {
		FT_CHECK(ft, !op[i]->err && op[i]->done == 1, "message %d "
			 "ended %u times: %s", i, op[i]->done,
			 fi_strerror(op[i]->err));
		if (ft->rank)
			FT_TRY(check(ft, op[i], ins + (size_t)i * SLOT,
				     i % 2 ? 60000 : 64, 0, (uint64_t)i));
	}
	FT_TRY(pair_meet(p));
	FT_CHECK(ft, !count_word(err[0], "RLIMIT_NOFILE"), "another line");
	return pair_meet(p);
}

static int no_connection(struct ft *ft, const struct ft_case *c)
{
	if (!over_lnx(ft) || ft_lnx_over_shm(ft))
		return ft_skip(ft, "not over lnx and a network alone");
	return pair_run(ft, c, connect_side);
}

/* ---- room in /dev/shm ---- */

#define CANNOT		77		/* exit status: the test cannot run */

/* Mount a /dev/shm of that size, for this process only. */
static bool mount_shm(const char *size)
{
	char opt[32];

	snprintf(opt, sizeof(opt), "size=%s", size);
	return !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", "/dev/shm", "tmpfs", 0, opt);
}

/* Does a line of standard error, since it was a pipe, name /dev/shm? */
static bool named(int fd)
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "/dev/shm has ") != NULL;
}

/* Endpoints until there is no room for another one; the rest work. */
static int fill(struct ft *ft, const struct ft_case *c, int err)
{
	struct ft_objs o[40] = { 0 };
	int i, n, ret = 0;

	for (n = 0; n < 40; n++) {
		/* There is no other domain when there is little room. */
		if (n) {
			o[n].info = fi_dupinfo(o[0].info);
			o[n].domain = o[0].domain;
		}
		FT_TRY(make(ft, &c->cfg, &o[n]));
		ret = fi_enable(o[n].ep);
		if (ret)
			break;
		FT_TRY(name(ft, &o[n]));
	}
	FT_CHECK(ft, ret == -FI_ENOSPC, "fi_enable of endpoint %d: %s", n,
		 fi_strerror(-ret));
	FT_CHECK(ft, n >= 2, "%d endpoints in /dev/shm", n);
	FT_CHECK(ft, named(err), "no line names /dev/shm");
	for (i = 0; i < n; i++)
		FT_TRY(works(ft, &o[i]));
	for (i = n; i >= 0; i--) {
		if (i)
			o[i].domain = NULL;
		if (ft_objs_close(ft, &o[i]))
			return FT_FAIL;
	}
	return FT_PASS;
}

/* The provider is not even offered. */
static int not_offered(struct ft *ft, const struct ft_case *c, int err)
{
	struct ft_objs o = { 0 };

	FT_CHECK(ft, ft_getinfo(ft, &c->cfg, &o.info), "shm is offered");
	FT_CHECK(ft, named(err), "no line names /dev/shm");
	return FT_PASS;
}

static int in_child(struct ft *ft, const struct ft_case *c)
{
	int fd[2];

	if (!mount_shm(c->a ? "4m" : "40m"))
		return CANNOT;
	if (pipe2(fd, O_NONBLOCK) || dup2(fd[1], STDERR_FILENO) < 0)
		return FT_FAIL;
	return c->a ? not_offered(ft, c, fd[0]) : fill(ft, c, fd[0]);
}

static int no_room(struct ft *ft, const struct ft_case *c)
{
	char why[FT_WHY_MAX] = "";
	int status = 0, fd[2];
	pid_t pid;

	if (!over_lnx(ft) || !ft_lnx_over_shm(ft))
		return ft_skip(ft, "not over shm");
	if (pipe(fd))
		return ft_fail(ft, "no pipe");
	pid = fork();
	FT_CHECK(ft, pid >= 0, "no process");
	if (!pid) {
		status = in_child(ft, c);
		if (write(fd[1], ft->why, sizeof(ft->why)) < 0)
			status = FT_FAIL;
		_exit(status);
	}
	close(fd[1]);
	if (read(fd[0], why, sizeof(why) - 1) < 0)
		why[0] = '\0';
	close(fd[0]);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		return ft_skip(ft, "cannot mount another /dev/shm");
	FT_CHECK(ft, WIFEXITED(status), "signal %d", WTERMSIG(status));
	FT_CHECK(ft, WEXITSTATUS(status) == FT_PASS, "%s", why);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "descriptors", .fn = descriptors, .ranks = 1,
		  .cfg.alone = true },
		{ .name = "descriptors-wait", .fn = descriptors, .ranks = 1,
		  .cfg = { .alone = true, .wait = FI_WAIT_FD } },
		{ .name = "no-connection", .fn = no_connection,
		  .cfg.alone = true },
		{ .name = "name-taken", .fn = name_taken, .ranks = 1,
		  .cfg.alone = true },
		{ .name = "name-taken-setname", .fn = name_taken, .ranks = 1,
		  .cfg.alone = true, .a = 1 },
		{ .name = "no-room", .fn = no_room, .ranks = 1,
		  .cfg.alone = true },
		{ .name = "no-room-at-all", .fn = no_room, .ranks = 1,
		  .cfg.alone = true, .a = 1 },
	};

	return ft_main(argc, argv, "enabling while something is short", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
