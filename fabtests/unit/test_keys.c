/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys of registrations: those that rails give to their cores, and those that
 * lnx gives to the application.  They start at a random number, and no two are
 * equal.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/random.h>

#include "api/api.h"
#include "core/open.h"
#include "fake_core.h"
#include "obj/mr.h"

#define TOP		(1ULL << 62)	/* of keys with eight bytes */
#define ROUNDS		50
#define FAR		(1ULL << 32)	/* more than anything would try */

static struct fake f;
static struct fake_core *core;
static uint8_t mem[4096];

/* ---- the kernel, with -Wl,--wrap ---- */

static enum { RANDOM, INTERRUPTED, SHORT, NONE } kernel;
static unsigned nasked;

ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	nasked++;
	switch (kernel) {
	case RANDOM:
		break;
	case INTERRUPTED:
		if (nasked % 3) {
			errno = EINTR;
			return -1;
		}
		break;
	case SHORT:
		return (ssize_t)len - 1;
	case NONE:
		errno = ENOSYS;
		return -1;
	}
	return __real_getrandom(buf, len, flags);
}

/* ---- what rails give to their cores ---- */

static uint64_t rail_key(void)
{
	struct lnx_rail *rail = f.lnx->rail[0];
	struct fid_mr *mr;
	uint64_t key;

	lnx_lock(&f.lnx->lock);
	cr_assert_eq(lnx_rail_register(rail, mem, sizeof(mem), FI_REMOTE_READ,
				       &mr), 0);
	lnx_unlock(&f.lnx->lock);
	key = fi_mr_key(mr);
	fi_close(&mr->fid);
	return key;
}

static void open_one(bool basic)
{
	struct fake_opt opt = {
		.nrail = 1, .kind = { LNX_RAIL_PLAIN }, .mr_basic = basic,
	};

	fake_open(&f, &opt);
	core = f.core[0];
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

Test(keys, rails_begin_at_random)
{
	uint64_t seen[ROUNDS];
	unsigned i, j;

	for (i = 0; i < ROUNDS; i++) {
		open_one(false);
		seen[i] = rail_key();
		cr_expect(seen[i] & TOP, "%#llx could be a key of the core",
			  (unsigned long long)seen[i]);
		cr_expect_lt(seen[i], 2 * TOP);
		for (j = 0; j < i; j++)
			cr_expect_gt(apart(seen[i], seen[j]), FAR,
				     "%#llx comes after %#llx",
				     (unsigned long long)seen[i],
				     (unsigned long long)seen[j]);
		cr_expect_neq(rail_key(), seen[i]);
		fake_close(&f);
	}
}

/* The keys of two rails of one endpoint differ, too. */
Test(keys, rails_differ)
{
	struct fake_opt opt = {
		.nrail = 2, .kind = { LNX_RAIL_PLAIN, LNX_RAIL_PLAIN },
	};

	fake_open(&f, &opt);
	cr_expect_gt(apart(f.lnx->rail[0]->next_key, f.lnx->rail[1]->next_key),
		     FAR);
	fake_close(&f);
}

Test(keys, numbers_begin_again)
{
	struct lnx_rail *rail;
	uint64_t key[4];
	unsigned i;

	open_one(false);
	rail = f.lnx->rail[0];
	rail->next_key = UINT64_MAX - 1;
	for (i = 0; i < 4; i++)
		key[i] = rail_key();
	cr_expect_eq(key[0], 2 * TOP - 2);
	cr_expect_eq(key[1], 2 * TOP - 1);
	cr_expect_eq(key[2], TOP);
	cr_expect_eq(key[3], TOP + 1);
	/* A core with shorter keys. */
	rail->info->domain_attr->mr_key_size = 4;
	cr_assert_eq(lnx_rail_keys_init(rail), 0);
	for (i = 0; i < 4; i++) {
		key[i] = rail_key();
		cr_expect_eq(key[i] >> 30, 1);
	}
	fake_close(&f);
}

/* After the last number come the first ones again, which may still be in use. */
Test(keys, taken_ones_are_left_out)
{
	uint64_t before;

	open_one(false);
	core->mr_taken = 1;
	before = f.lnx->rail[0]->next_key;
	cr_expect_neq(rail_key(), before);
	core->mr_taken = 20;
	cr_expect_eq(rail_key(), core->mr_key);
	cr_expect_eq(core->mr_taken, 0);
	cr_expect(core->mr_key & TOP);
	fake_close(&f);
}

Test(keys, a_core_that_takes_none_ends_it)
{
	struct fid_mr *mr;

	open_one(false);
	core->mr_taken = FAKE_ALWAYS;
	lnx_lock(&f.lnx->lock);
	cr_expect_eq(lnx_rail_register(f.lnx->rail[0], mem, sizeof(mem),
				       FI_REMOTE_READ, &mr), -FI_ENOKEY);
	lnx_unlock(&f.lnx->lock);
	core->mr_taken = 0;
	fake_close(&f);
}

/* ---- what lnx gives to the application ---- */

Test(keys, of_basic_begin_at_random)
{
	uint64_t seen[ROUNDS][2];
	struct fid_mr *mr[2];
	unsigned i, j;

	for (i = 0; i < ROUNDS; i++) {
		open_one(true);
		for (j = 0; j < 2; j++) {
			cr_assert_eq(fi_mr_reg(&f.domain.fid, mem, sizeof(mem),
					       FI_REMOTE_READ, 0, 0, 0, &mr[j],
					       NULL), 0);
			seen[i][j] = fi_mr_key(mr[j]);
		}
		cr_expect_neq(seen[i][0], seen[i][1]);
		for (j = 0; j < i; j++)
			cr_expect_gt(apart(seen[i][0], seen[j][0]), FAR);
		for (j = 0; j < 2; j++)
			cr_assert_eq(fi_close(&mr[j]->fid), 0);
		fake_close(&f);
	}
}

/* In use, not a valid key, and after the last one. */
Test(keys, of_basic_are_not_given_twice)
{
	static const uint64_t from[] = { UINT64_MAX - 3, UINT64_MAX - 1 };
	struct fid_mr *mr[8];
	unsigned i, j, k;

	open_one(true);
	f.domain.next_mr_key = from[0];
	for (i = 0; i < 8; i++) {
		if (i == 5)		/* the following ones are in use */
			f.domain.next_mr_key = from[1];
		cr_assert_eq(fi_mr_reg(&f.domain.fid, mem, sizeof(mem),
				       FI_REMOTE_READ, 0, 0, 0, &mr[i], NULL),
			     0);
		cr_expect_neq(fi_mr_key(mr[i]), FI_KEY_NOTAVAIL);
		for (j = 0; j < i; j++)
			cr_expect_neq(fi_mr_key(mr[i]), fi_mr_key(mr[j]));
	}
	for (k = 0; k < 8; k++)
		cr_assert_eq(fi_close(&mr[k]->fid), 0);
	fake_close(&f);
}

/* ---- a kernel without random numbers ---- */

Test(keys, a_signal_is_no_failure)
{
	kernel = INTERRUPTED;
	open_one(true);
	cr_expect_gt(nasked, 3);
	cr_expect(rail_key() & TOP);
	fake_close(&f);
}

static void nothing_opens(void)
{
	struct lnx_domain d = { .mr_basic = true };
	struct lnx_rail rail = { .info = fi_allocinfo() };

	cr_expect_eq(lnx_mrs_init(&d), -FI_EIO);
	cr_expect_eq(lnx_rail_keys_init(&rail), -FI_EIO);
	cr_expect_eq(lnx_random_id(), 0);
	fi_freeinfo(rail.info);
}

Test(keys, none_is_an_error)
{
	kernel = NONE;
	nothing_opens();
}

Test(keys, too_few_are_an_error)
{
	kernel = SHORT;
	nothing_opens();
}

/* Each step of opening that needs random numbers returns the error, and leaks
 * nothing. */
Test(keys, opening_fails_cleanly)
{
	struct fid_ep *ep = NULL;

	open_one(false);
	kernel = NONE;
	cr_expect_eq(lnx_ep_open(&f.domain.fid, f.info, &ep, NULL), -FI_EIO);
	cr_expect_null(ep);
	kernel = RANDOM;
	cr_assert_eq(lnx_ep_open(&f.domain.fid, f.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &f.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &f.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	kernel = NONE;
	cr_expect_eq(fi_enable(ep), -FI_EIO);
	kernel = RANDOM;
	cr_expect_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_close(&ep->fid), 0);
	fake_close(&f);
}
