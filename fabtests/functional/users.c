/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local processes of different users cannot open each other's shared memory, or
 * only in one direction (root).  They reach each other over the network,
 * whichever sends first; without a network, sends are refused.  man/fi_lnx.7,
 * ADDRESSES.
 */
#include "pair.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN_USER		65534
#define OTHER_USER	65533

static const size_t sizes[] = { 64, 0, 1, 4096, 4097, 16384, 65536, 1 << 20 };
#define NSIZES		(int)(sizeof(sizes) / sizeof(sizes[0]))

/* a: users of the two, b: the rank that sends first, c: change the user only
 * after opening. */
enum { ROOT_USER, USER_USER, ROOT_ROOT, TWO_OTHERS };
enum { EARLY, LATE };

static uid_t user_of(const struct ft_case *c, int rank)
{
	static const uid_t user[][2] = {
		[ROOT_USER] = { 0, PLAIN_USER },
		[USER_USER] = { PLAIN_USER, PLAIN_USER },
		[ROOT_ROOT] = { 0, 0 },
		[TWO_OTHERS] = { PLAIN_USER, OTHER_USER },
	};

	return user[c->a][rank];
}

static int become(struct pair *p)
{
	uid_t uid = user_of(p->c, p->ft->rank);

	if (!uid)
		return FT_PASS;
	FT_CHECK(p->ft, !setgroups(0, NULL) && !setgid(uid) && !setuid(uid),
		 "cannot become user %u", uid);
	return FT_PASS;
}

/* Can each open the shared memory of the other? */
static bool both_may(const struct ft_case *c)
{
	return user_of(c, 0) == user_of(c, 1) &&
	       (c->c == EARLY || !user_of(c, 0));
}

/* All sizes from one rank to the other, which has posted its receives or has not. */
static int one_way(struct pair *p, int from, bool posted)
{
	struct ft_op *op[NSIZES];
	struct ft *ft = p->ft;
	int i;

	memset(ins, 0, (size_t)NSIZES * SLOT);
	for (i = 0; i < NSIZES && ft->rank != from && posted; i++) {
		op[i] = post(ft, true, from, (uint64_t)i,
			     ins + (size_t)i * SLOT, SLOT);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	FT_TRY(pair_meet(p));
	for (i = 0; i < NSIZES && ft->rank == from; i++) {
		op[i] = put(ft, true, !from, (uint64_t)i, (uint64_t)i,
			    sizes[i]);
		FT_CHECK(ft, op[i], "send of %zu bytes refused", sizes[i]);
	}
	if (!posted)
		FT_TRY(pair_meet(p));
	for (i = 0; i < NSIZES && ft->rank != from && !posted; i++) {
		op[i] = post(ft, true, from, (uint64_t)i,
			     ins + (size_t)i * SLOT, SLOT);
		FT_CHECK(ft, op[i], "receive %d not posted", i);
	}
	FT_TRY(all_done(ft, op, NSIZES, ft->rank == from ? "sends" :
			"receives"));
	for (i = 0; i < NSIZES; i++) {
		FT_CHECK(ft, !op[i]->err, "%zu bytes: %s", sizes[i],
			 fi_strerror(op[i]->err));
		if (ft->rank != from)
			FT_TRY(check(ft, op[i], ins + (size_t)i * SLOT,
				     sizes[i], from, (uint64_t)i));
	}
	return pair_meet(p);
}

/* Without a network rail sends to the other user are refused with an error. */
static int refused(struct pair *p)
{
	struct ft *ft = p->ft;
	size_t len[] = { 1, 100000 };
	int i;

	for (i = 0; i < 2; i++) {
		struct ft_op *op = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = ft->addr[!ft->rank],
			.buf = outs[0], .len = len[i],
		};
		ssize_t ret = ft_try_send(ft->o.ep, op, &m);

		FT_CHECK(ft, ret == -FI_EHOSTUNREACH, "%zu bytes to another "
			 "user: %zd", len[i], ret);
	}
	return pair_meet(p);
}

static int talk(struct pair *p)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");
	bool shm = strstr(links, "shm") != NULL, net = strstr(links, "tcp");
	struct ft_cfg cfg = { 0 };
	struct ft *ft = p->ft;
	int first = (int)p->c->b;
	uint64_t direct;

	prepare(ft, (size_t)NSIZES * SLOT);
	if (p->c->c == EARLY)
		FT_TRY(become(p));
	FT_TRY(pair_open(p, &cfg, p->c->c == LATE ? become : NULL));
	if (!both_may(p->c) && !net)
		return refused(p);
	FT_TRY(one_way(p, first, true));
	FT_TRY(one_way(p, !first, true));
	FT_TRY(one_way(p, first, false));
	FT_TRY(one_way(p, !first, false));
	direct = pair_stat(p, "direct_sends");
	FT_CHECK(ft, (direct != 0) == (shm && both_may(p->c)),
		 "%llu sends over shared memory", (unsigned long long)direct);
	return pair_meet(p);
}

static int users(struct ft *ft, const struct ft_case *c)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	if (!links || !ft->opts.prov || strcmp(ft->opts.prov, "lnx"))
		return ft_skip(ft, "not over lnx");
	if (geteuid())
		return ft_skip(ft, "only root can become another user");
	return pair_run(ft, c, talk);
}

#define CASES(what, pair)						\
	{ .name = what "-first", .fn = users, .a = pair, .b = 0,	\
	  .cfg.alone = true },						\
	{ .name = what "-second", .fn = users, .a = pair, .b = 1,	\
	  .cfg.alone = true }

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		CASES("root-and-user", ROOT_USER),
		CASES("two-others", TWO_OTHERS),
		CASES("user-twice", USER_USER),
		CASES("root-twice", ROOT_ROOT),
		{ .name = "root-and-late-user", .fn = users, .a = ROOT_USER,
		  .b = 0, .c = LATE, .cfg.alone = true },
		{ .name = "late-user-and-root", .fn = users, .a = ROOT_USER,
		  .b = 1, .c = LATE, .cfg.alone = true },
		{ .name = "late-user-twice", .fn = users, .a = USER_USER,
		  .c = LATE, .cfg.alone = true },
	};

	return ft_main(argc, argv, "local processes of several users", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
