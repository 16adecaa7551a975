/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses: address vectors, names of endpoints, senders that are not known yet. */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char buf[4096];

static int open_av(struct ft *ft, enum fi_av_type type, struct fid_av **av)
{
	struct fi_av_attr attr = { .type = type, .count = 16 };

	FT_CALL(ft, fi_av_open(ft->o.domain, &attr, av, NULL));
	return FT_PASS;
}

/* A case with an address vector of its own, which is closed in any case. */
static int with_av(struct ft *ft, const struct ft_case *c,
		   int (*fn)(struct ft *, struct fid_av *,
			     const struct ft_case *))
{
	struct fid_av *av;
	int ret, closed;

	FT_TRY(open_av(ft, c->cfg.av_type ? c->cfg.av_type : FI_AV_TABLE,
		       &av));
	ret = fn(ft, av, c);
	closed = fi_close(&av->fid);
	if (ret == FT_PASS)
		FT_CALL(ft, closed);
	return ret;
}

static int look(struct ft *ft, struct fid_av *av, fi_addr_t at)
{
	unsigned char got[FT_NAME_MAX] = { 0 };
	size_t len = sizeof(got);

	FT_CALL(ft, fi_av_lookup(av, at, got, &len));
	ft_known(ft, "shm", "lookup gives another name than was inserted");
	FT_CHECK(ft, len == ft->o.name_len, "lookup: length %zu, not %zu", len,
		 ft->o.name_len);
	FT_CHECK(ft, !memcmp(got, ft->o.name, len), "lookup: other bytes than "
		 "were inserted");
	return FT_PASS;
}

static int insert_one(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	fi_addr_t at = FI_ADDR_NOTAVAIL;
	int ret;

	ret = fi_av_insert(av, ft->o.name, 1, &at, 0, NULL);
	FT_CHECK(ft, ret == 1, "fi_av_insert returned %d", ret);
	FT_CHECK(ft, at != FI_ADDR_NOTAVAIL, "no address");
	if (!c->cfg.av_type || c->cfg.av_type == FI_AV_TABLE)
		FT_CHECK(ft, at == 0, "first index of a table is %lld",
			 (long long)at);
	return look(ft, av, at);
}

/* Insert the same name several times: all results must be usable. */
static int insert_twice(struct ft *ft, struct fid_av *av,
			const struct ft_case *c)
{
	unsigned char two[2 * FT_NAME_MAX];
	fi_addr_t at[4];
	int i, ret;

	(void)c;
	memcpy(two, ft->o.name, ft->o.name_len);
	memcpy(two + ft->o.name_len, ft->o.name, ft->o.name_len);
	for (i = 0; i < 2; i++) {
		ret = fi_av_insert(av, two, 2, at + 2 * i, 0, NULL);
		FT_CHECK(ft, ret == 2, "fi_av_insert of two returned %d", ret);
	}
	for (i = 0; i < 4; i++)
		FT_TRY(look(ft, av, at[i]));
	return FT_PASS;
}

static int insert_none(struct ft *ft, struct fid_av *av,
		       const struct ft_case *c)
{
	fi_addr_t at = 5;
	int ret;

	(void)c;
	ret = fi_av_insert(av, ft->o.name, 0, &at, 0, NULL);
	FT_CHECK(ft, ret <= 0, "fi_av_insert of nothing returned %d", ret);
	return FT_PASS;
}

/* After removal an address is not found any more, and can be inserted again. */
static int remove_one(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	unsigned char got[FT_NAME_MAX];
	size_t len = sizeof(got);
	fi_addr_t at;
	int i, ret;

	(void)c;
	for (i = 0; i < 3; i++) {
		ret = fi_av_insert(av, ft->o.name, 1, &at, 0, NULL);
		FT_CHECK(ft, ret == 1, "fi_av_insert returned %d", ret);
		FT_TRY(look(ft, av, at));
		FT_CALL(ft, fi_av_remove(av, &at, 1, 0));
		if (ft_is_bare(ft, "lnx")) {
			ret = fi_av_lookup(av, at, got, &len);
			FT_CHECK(ft, ret < 0, "lookup of a removed address "
				 "returned %d", ret);
		}
	}
	return FT_PASS;
}

static int bad_handles(struct ft *ft, struct fid_av *av,
		       const struct ft_case *c)
{
	unsigned char got[FT_NAME_MAX];
	size_t len = sizeof(got);
	fi_addr_t bad[] = { 77, 1ULL << 40, FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC };
	size_t i;
	int ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers dereference any handle");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ret = fi_av_lookup(av, bad[i], got, &len);
		FT_CHECK(ft, ret < 0, "lookup of handle %llx returned %d",
			 (unsigned long long)bad[i], ret);
		ret = fi_av_remove(av, &bad[i], 1, 0);
		FT_CHECK(ft, ret < 0, "remove of handle %llx returned %d",
			 (unsigned long long)bad[i], ret);
	}
	return FT_PASS;
}

static int lookup_short(struct ft *ft, struct fid_av *av,
			const struct ft_case *c)
{
	unsigned char got[FT_NAME_MAX];
	size_t half = ft->o.name_len / 2, len = half;
	fi_addr_t at;
	int ret;

	(void)c;
	FT_CHECK(ft, fi_av_insert(av, ft->o.name, 1, &at, 0, NULL) == 1,
		 "fi_av_insert failed");
	memset(got, 0x77, sizeof(got));
	ret = fi_av_lookup(av, at, got, &len);
	ft_known(ft, "shm", "lookup gives another name than was inserted");
	FT_CHECK(ft, ret == 0 || ret == -FI_ETOOSMALL, "lookup with half the "
		 "room returned %d", ret);
	FT_CHECK(ft, len == ft->o.name_len, "lookup with half the room: "
		 "length %zu, not %zu", len, ft->o.name_len);
	FT_CHECK(ft, pattern_is_filled(got + half, sizeof(got) - half, 0x77) <
		 0, "lookup wrote after the buffer");
	return FT_PASS;
}

static int straddr(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	char text[512], small[8];
	size_t len = sizeof(text), need;

	(void)c;
	FT_CHECK(ft, fi_av_straddr(av, ft->o.name, text, &len), "no text");
	FT_CHECK(ft, len > 1 && len <= sizeof(text) &&
		 memchr(text, '\0', sizeof(text)), "length %zu", len);
	need = len;
	len = sizeof(small);
	memset(small, 0x77, sizeof(small));
	fi_av_straddr(av, ft->o.name, small, &len);
	FT_CHECK(ft, len == need, "with little room: length %zu, not %zu",
		 len, need);
	ft_known(ft, "shm", "text that is cut off is not terminated");
	FT_CHECK(ft, memchr(small, '\0', sizeof(small)), "not terminated");
	return FT_PASS;
}

/* Bytes that are not an address are refused one by one; a good one is still
 * inserted. */
static int garbage(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	unsigned char three[3 * FT_NAME_MAX];
	size_t len = ft->o.name_len, i;
	uint64_t seed = ft->run->seed;
	fi_addr_t at[3];
	int errors[3] = { 0 }, round, ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers accept any bytes");
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 3 * len; i++)
			three[i] = (unsigned char)pattern_random(&seed);
		memcpy(three + len, ft->o.name, len);
		if (round % 2) {	/* good bytes with one changed */
			memcpy(three, ft->o.name, len);
			three[pattern_random(&seed) % 2] ^=
				(unsigned char)(1u << (round / 2 % 8));
			memset(three + 2 * len, round, len);
		}
		memset(at, 0, sizeof(at));
		ret = fi_av_insert(av, three, 3, at, FI_SYNC_ERR, errors);
		FT_CHECK(ft, ret == 1, "round %d: %d of 3 inserted, not 1",
			 round, ret);
		FT_CHECK(ft, at[0] == FI_ADDR_NOTAVAIL &&
			 at[2] == FI_ADDR_NOTAVAIL &&
			 at[1] != FI_ADDR_NOTAVAIL,
			 "round %d: addresses %lld %lld %lld", round,
			 (long long)at[0], (long long)at[1],
			 (long long)at[2]);
		FT_CHECK(ft, errors[0] && errors[2] && !errors[1],
			 "round %d: errors %d %d %d", round, errors[0],
			 errors[1], errors[2]);
		FT_TRY(look(ft, av, at[1]));
		FT_CALL(ft, fi_av_remove(av, &at[1], 1, 0));
	}
	return FT_PASS;
}

static int services(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	fi_addr_t at[4];
	int ret;

	(void)c;
	ret = fi_av_insertsvc(av, "127.0.0.1", "45678", at, 0, NULL);
	FT_CHECK(ft, ret <= 1, "fi_av_insertsvc returned %d", ret);
	ret = fi_av_insertsvc(av, "no such host!", "45678", at, 0, NULL);
	FT_CHECK(ft, ret <= 0, "fi_av_insertsvc of a bad name returned %d",
		 ret);
	ret = fi_av_insertsym(av, "127.0.0.1", 1, "45678", 2, at, 0, NULL);
	FT_CHECK(ft, ret <= 2, "fi_av_insertsym returned %d", ret);
	return FT_PASS;
}

/* Many distinct entries: insert them, look them up, remove them in another order. */
static int many(struct ft *ft, struct fid_av *av, const struct ft_case *c)
{
	enum { N = 64 };
	fi_addr_t at[N];
	int i, ret;

	(void)c;
	for (i = 0; i < N; i++) {
		ret = fi_av_insert(av, ft->o.name, 1, &at[i], 0, NULL);
		FT_CHECK(ft, ret == 1, "insert %d returned %d", i, ret);
	}
	for (i = 0; i < N; i++)
		FT_TRY(look(ft, av, at[(i * 7) % N]));
	if (!ft_is_bare(ft, "lnx"))
		return FT_PASS;
	/* As many removals as inserts must succeed, whether or not equal names
	 * share an entry. */
	for (i = 0; i < N; i++)
		FT_CALL(ft, fi_av_remove(av, &at[(i * 13) % N], 1, 0));
	return FT_PASS;
}

#define WITH_AV(fn) \
static int fn##_case(struct ft *ft, const struct ft_case *c) \
{ \
	return with_av(ft, c, fn); \
}
WITH_AV(insert_one)
WITH_AV(insert_twice)
WITH_AV(insert_none)
WITH_AV(remove_one)
WITH_AV(bad_handles)
WITH_AV(lookup_short)
WITH_AV(straddr)
WITH_AV(garbage)
WITH_AV(services)
WITH_AV(many)

static int getname_short(struct ft *ft, const struct ft_case *c)
{
	unsigned char name[FT_NAME_MAX];
	size_t len;
	int ret;

	(void)c;
	for (len = 0; len < ft->o.name_len; len++) {
		size_t got = len;

		memset(name, 0x77, sizeof(name));
		ret = fi_getname(&ft->o.ep->fid, name, &got);
		FT_CHECK(ft, ret == -FI_ETOOSMALL, "room %zu: fi_getname "
			 "returned %d", len, ret);
		FT_CHECK(ft, got == ft->o.name_len, "room %zu: length %zu",
			 len, got);
		FT_CHECK(ft, pattern_is_filled(name + len, sizeof(name) - len,
					       0x77) < 0,
			 "room %zu: wrote after its end", len);
	}
	len = 0;
	ret = fi_getname(&ft->o.ep->fid, NULL, &len);
	FT_CHECK(ft, ret == -FI_ETOOSMALL && len == ft->o.name_len,
		 "asking for the length: %d, %zu", ret, len);
	FT_CHECK(ft, !ft_is_bare(ft, "lnx") || ft->o.name_len <= 64,
		 "%zu bytes do not fit where applications have 64",
		 ft->o.name_len);
	return FT_PASS;
}

/* A name that is set before fi_enable is used as it is, or refused. */
static int setname(struct ft *ft, const struct ft_case *c)
{
	unsigned char name[FT_NAME_MAX];
	size_t len = sizeof(name);
	struct fid_ep *ep;
	int ret;

	(void)c;
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, &ep, NULL));
	ret = fi_setname(&ep->fid, ft->o.name, 1);
	if (ft_is_bare(ft, "lnx") && ret >= 0) {
		fi_close(&ep->fid);
		return ft_fail(ft, "a name of 1 byte was accepted");
	}
	FT_CALL(ft, fi_close(&ep->fid));
	/* Too late for an endpoint that peers may know already. */
	ret = fi_setname(&ft->o.ep->fid, ft->o.name, ft->o.name_len);
	if (ft_is_bare(ft, "lnx"))
		FT_CHECK(ft, ret < 0, "an enabled endpoint accepted another name");
	FT_CALL(ft, fi_getname(&ft->o.ep->fid, name, &len));
	FT_CHECK(ft, len == ft->o.name_len && !memcmp(name, ft->o.name, len),
		 "the name changed");
	return FT_PASS;
}

static int one_message(struct ft *ft, fi_addr_t to, fi_addr_t *src)
{
	struct ft_op *op = ft_op_new(ft);
	struct ft_msg m = {
		.tagged = true, .addr = FI_ADDR_UNSPEC, .buf = buf, .len = 64,
		.tag = 1,
	};

	if (ft->rank) {
		m.addr = to;
		FT_CALL(ft, ft_send(ft, op, &m));
	} else {
		FT_CALL(ft, ft_recv(ft, op, &m));
	}
	FT_DONE(ft, op);
	*src = op->src;
	return FT_PASS;
}

/*
 * Rank 0 does not know rank 1 when its first message comes: the message is
 * delivered without a source.  After the insert the next message has it.
 */
static int unknown_sender_run(struct ft *ft)
{
	struct { uint64_t len; unsigned char name[FT_NAME_MAX]; } mine, all[2];
	fi_addr_t to = 0, src;

	mine.len = ft->o.name_len;
	memcpy(mine.name, ft->o.name, sizeof(mine.name));
	FT_CHECK(ft, !oob_allgather(&ft->oob, &mine, all, sizeof(mine)),
		 "lost the other rank");
	if (ft->rank)
		FT_CHECK(ft, fi_av_insert(ft->o.av, all[0].name, 1, &to, 0,
					  NULL) == 1, "fi_av_insert failed");
	FT_TRY(one_message(ft, to, &src));
	FT_CHECK(ft, ft->rank || src == FI_ADDR_NOTAVAIL, "source %lld of a "
		 "sender that was never inserted", (long long)src);
	if (!ft->rank)
		FT_CHECK(ft, fi_av_insert(ft->o.av, all[1].name, 1, &to, 0,
					  NULL) == 1, "fi_av_insert failed");
	FT_TRY(one_message(ft, to, &src));
	FT_CHECK(ft, ft->rank || src == to, "source %lld, not %lld, after the "
		 "sender was inserted", (long long)src, (long long)to);
	return FT_PASS;
}

static int unknown_sender(struct ft *ft, const struct ft_case *c)
{
	struct ft_cfg cfg = c->cfg;
	int ret;

	ft_known(ft, "shm", "a source is only found when the sender was "
		 "inserted before it connected");
	/* lnx passes shm's messages on with the source that shm reports. */
	if (ft_lnx_over_shm(ft))
		ft_known(ft, "lnx", "its shared memory rail finds a source "
			 "only when the sender was inserted before it connected");
	cfg.alone = false;
	/* Without the exchange of addresses that ft_open does. */
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft_ops_drop(ft);
	ft->cfg = cfg;
	ft->open = true;
	ft_barrier(ft);
	ret = unknown_sender_run(ft);
	ft_barrier(ft);
	if (ft_close(ft) && ret == FT_PASS)
		return FT_FAIL;
	ft->cfg = c->cfg;
	return ret;
}

#define BOTH(text, function) \
	{ .name = "table-" text, .fn = function, .ranks = 1, \
	  .cfg.av_type = FI_AV_TABLE }, \
	{ .name = "map-" text, .fn = function, .ranks = 1, \
	  .cfg.av_type = FI_AV_MAP }

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		BOTH("insert-one", insert_one_case),
		BOTH("insert-duplicates", insert_twice_case),
		BOTH("insert-none", insert_none_case),
		BOTH("insert-many", many_case),
		BOTH("remove-and-insert-again", remove_one_case),
		BOTH("bad-handles", bad_handles_case),
		BOTH("lookup-with-little-room", lookup_short_case),
		BOTH("straddr", straddr_case),
		BOTH("insert-garbage", garbage_case),
		BOTH("insertsvc-insertsym", services_case),
		{ .name = "getname-with-little-room", .fn = getname_short,
		  .ranks = 1 },
		{ .name = "setname", .fn = setname, .ranks = 1 },
		{ .name = "unknown-sender", .fn = unknown_sender,
		  .cfg.alone = true },
	};

	return ft_main(argc, argv, "address vectors and names", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
