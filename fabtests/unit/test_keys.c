/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys of registrations: those that rails give to their cores, and those that
 * lnx gives to the application.  They are random, and no two are equal.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

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
/* The first numbers of the next many. */
static const uint64_t *scripted;
static unsigned n_scripted;

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
	if (scripted && len == LNX_RANDOM_MAX) {
		uint64_t *last = (uint64_t *)buf + len / sizeof(*last);

		__real_getrandom(buf, len, flags);
		/* They are given from the end. */
		while (n_scripted--)
			*--last = *scripted++;
		scripted = NULL;
		return (ssize_t)len;
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

#define MANY	1000

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void no_two_equal(uint64_t *v, unsigned n, const char *what)
{
	unsigned i;

	qsort(v, n, sizeof(*v), by_value);
	for (i = 1; i < n; i++)
		cr_assert_neq(v[i], v[i - 1], "%s %#llx twice", what,
			      (unsigned long long)v[i]);
}

/* Keys that were given do not tell the next one: no two are equal, or near each other,
 * no difference of two that follow each other comes twice, nor a change of it, and each
 * bit is as often set as not. */
static void unpredictable(uint64_t *key, uint64_t bits)
{
	static uint64_t step[MANY], change[MANY];
	unsigned i, b, n;

	for (b = 0; b < 64; b++) {
		if (!(bits >> b & 1))
			continue;
		for (i = n = 0; i < MANY; i++)
			n += key[i] >> b & 1;
		/* 8 standard deviations */
		cr_expect(n > MANY / 2 - 127 && n < MANY / 2 + 127,
			  "bit %u is set %u of %u times", b, n, MANY);
	}
	for (i = 0; i + 1 < MANY; i++)
		step[i] = key[i + 1] - key[i];
	for (i = 0; i + 2 < MANY; i++)
		change[i] = step[i + 1] - step[i];
	if (bits >> 40) {
		no_two_equal(step, MANY - 1, "difference");
		no_two_equal(change, MANY - 2, "change of a difference");
	}
	qsort(key, MANY, sizeof(*key), by_value);
	for (i = 1; i < MANY; i++)
		/* Of so many random ones two are within FAR in one of 1000 runs, within that in
		 * one of four million. */
		cr_expect_gt(key[i] - key[i - 1], bits >> 40 ? FAR >> 12 : 0);
}

Test(keys, of_rails_cannot_be_guessed)
{
	static uint64_t key[MANY];
	unsigned i;

	open_one(false);
	for (i = 0; i < MANY; i++)
		key[i] = rail_key();
	unpredictable(key, TOP - 1);
	fake_close(&f);
}

/* A core with shorter keys. */
Test(keys, short_ones_cannot_be_guessed)
{
	struct lnx_rail *rail;
	uint64_t key[MANY];
	unsigned i;

	open_one(false);
	rail = f.lnx->rail[0];
	rail->info->domain_attr->mr_key_size = 4;
	cr_assert_eq(lnx_rail_keys_init(rail), 0);
	for (i = 0; i < MANY; i++) {
		key[i] = rail_key();
		cr_expect_eq(key[i] >> 30, 1);
		/* Those of 30 bits may repeat, as the core says. */
		while (i && key[i] == key[i - 1])
			key[i] = rail_key();
	}
	unpredictable(key, (1u << 30) - 1);
	fake_close(&f);
}

/* A child has others than its parent, in whatever state the numbers are. */
Test(keys, a_child_has_its_own)
{
	uint64_t child, parent;
	unsigned i;
	int fd[2];

	open_one(false);
	for (i = 0; i < 70; i++) {
		pid_t pid;

		cr_assert_eq(pipe(fd), 0);
		pid = fork();
		if (!pid) {
			child = rail_key();
			_exit(write(fd[1], &child, sizeof(child)) !=
			      sizeof(child));
		}
		cr_assert_eq(read(fd[0], &child, sizeof(child)),
			     (ssize_t)sizeof(child));
		waitpid(pid, NULL, 0);
		close(fd[0]);
		close(fd[1]);
		parent = rail_key();
		cr_expect_gt(apart(parent, child), FAR);
	}
	fake_close(&f);
}

/* One call of the kernel gives many. */
Test(keys, few_calls_of_the_kernel)
{
	unsigned i, before;

	open_one(false);
	before = nasked;
	for (i = 0; i < MANY; i++)
		rail_key();
	cr_expect_leq(nasked - before, MANY / 30 + 1);
	fake_close(&f);
}

Test(keys, taken_ones_are_left_out)
{
	open_one(false);
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

Test(keys, of_basic_cannot_be_guessed)
{
	static struct fid_mr *mr[MANY];
	static uint64_t key[MANY];
	unsigned i;

	open_one(true);
	for (i = 0; i < MANY; i++) {
		cr_assert_eq(fi_mr_reg(&f.domain.fid, mem, sizeof(mem),
				       FI_REMOTE_READ, 0, 0, 0, &mr[i], NULL),
			     0);
		key[i] = fi_mr_key(mr[i]);
	}
	unpredictable(key, UINT64_MAX);
	for (i = 0; i < MANY; i++)
		cr_assert_eq(fi_close(&mr[i]->fid), 0);
	fake_close(&f);
}

/* In use, and not a valid key: the kernel gives that number, then another one. */
Test(keys, of_basic_are_not_given_twice)
{
	static const uint64_t given[] = { 5, 5, 5, FI_KEY_NOTAVAIL, 5, 6 };
	struct fid_mr *mr[3];
	unsigned i;

	open_one(true);
	scripted = given;
	n_scripted = LNX_ARRAY_SIZE(given);
	for (i = 0; i < 3; i++)
		cr_assert_eq(fi_mr_reg(&f.domain.fid, mem, sizeof(mem),
				       FI_REMOTE_READ, 0, 0, 0, &mr[i], NULL),
			     0);
	cr_expect_eq(fi_mr_key(mr[0]), 5);
	cr_expect_eq(fi_mr_key(mr[1]), 6);
	for (i = 0; i < 2; i++)
		cr_expect_neq(fi_mr_key(mr[2]), fi_mr_key(mr[i]));
	for (i = 0; i < 3; i++)
		cr_assert_eq(fi_close(&mr[i]->fid), 0);
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
	cr_expect_eq(lnx_host_random_id(), 0);
	fi_freeinfo(rail.info);
}

/* Later than that registrations fail. */
Test(keys, no_more_random_numbers)
{
	struct fid_mr *mr;
	unsigned i;
	int ret = 0;

	open_one(true);
	kernel = NONE;
	for (i = 0; i < 100 && !ret; i++) {
		ret = fi_mr_reg(&f.domain.fid, mem, sizeof(mem), FI_REMOTE_READ,
				0, 0, 0, &mr, NULL);
		if (!ret)
			fi_close(&mr->fid);
	}
	cr_expect_eq(ret, -FI_EIO);
	lnx_lock(&f.lnx->lock);
	cr_expect_eq(lnx_rail_register(f.lnx->rail[0], mem, sizeof(mem),
				       FI_REMOTE_READ, &mr), -FI_EIO);
	lnx_unlock(&f.lnx->lock);
	kernel = RANDOM;
	cr_expect(rail_key() & TOP);
	fake_close(&f);
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
