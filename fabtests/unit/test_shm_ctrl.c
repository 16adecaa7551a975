/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control messages of the shared memory rail, and reading the memory that they
 * announce. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/cma.h"
#include "lnx_wire.h"
#include "wire/shm_ctrl.h"

#define ME	0x1122334455667788ULL
#define YOU	0x99aabbccddeeff00ULL

static struct lnx_wire_shm_ctrl good(void)
{
	return (struct lnx_wire_shm_ctrl) {
		.src = YOU, .dst = ME, .kind = LNX_KIND_RTS_TAG, .npiece = 2,
		.flags = LNX_WIRE_F_DATA, .pid = 77, .cookie = 0x1000, .op = 5,
		.tag = 6, .data = 7, .len = 300,
		.piece = { { 0x2000, 100 }, { 0x3000, 200 } },
		.to_low = 7, .to_high = 9,
	};
}

static int parse(const struct lnx_wire_shm_ctrl *n)
{
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct lnx_wire_shm_ctrl back;

	lnx_shm_ctrl_put(bytes, n);
	return lnx_shm_ctrl_get(&back, bytes, ME);
}

/* Messages of an application may have any tag and any length, but not both of ours. */
Test(shm_ctrl, may_be)
{
	static const size_t ours[] = {
		LNX_SHM_CTRL_BYTES, LNX_COPY_BYTES, LNX_PUSH_BYTES, LNX_PUSH_REST_BYTES,
	};
	static const uint64_t others[] = {
		0, 1, (uint32_t)LNX_SHM_CTRL_TAG, LNX_SHM_CTRL_TAG + 1, LNX_SHM_CTRL_TAG ^ 1ULL << 63,
		UINT64_MAX,
	};
	unsigned i, k;

	for (i = 0; i < 4; i++) {
		cr_expect(lnx_shm_ctrl_may_be(LNX_SHM_CTRL_TAG, ours[i]));
		cr_expect_not(lnx_shm_ctrl_may_be(LNX_SHM_CTRL_TAG, ours[i] - 1));
		cr_expect_not(lnx_shm_ctrl_may_be(LNX_SHM_CTRL_TAG, ours[i] + 1));
		for (k = 0; k < sizeof(others) / sizeof(others[0]); k++)
			cr_expect_not(lnx_shm_ctrl_may_be(others[k], ours[i]));
	}
	cr_expect_not(lnx_shm_ctrl_may_be(LNX_SHM_CTRL_TAG, 0));
	cr_expect_eq((int64_t)LNX_SHM_CTRL_TAG, (int32_t)LNX_SHM_CTRL_TAG,
		     "a constant of four bytes, which code for every message compares");
}

Test(shm_ctrl, comes_back_as_it_was)
{
	struct lnx_wire_shm_ctrl n = good(), back;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];

	memset(bytes, 0xee, sizeof(bytes));
	lnx_shm_ctrl_put(bytes, &n);
	cr_assert_eq(lnx_shm_ctrl_get(&back, bytes, ME), 0);
	n.magic = LNX_SHM_CTRL_MAGIC;
	cr_expect_eq(memcmp(&n, &back, LNX_SHM_CTRL_BYTES), 0);
	cr_expect_eq(lnx_shm_ctrl_get(&back, bytes, YOU), -EBADMSG, "not ours");
	bytes[0] ^= 1;
	cr_expect_eq(lnx_shm_ctrl_get(&back, bytes, ME), -EBADMSG, "magic");
}

#define BAD(change) do { \
	struct lnx_wire_shm_ctrl n = good(); \
	change; \
	cr_expect_eq(parse(&n), -EBADMSG, #change); \
} while (0)

Test(shm_ctrl, processes)
{
	cr_expect_eq(lnx_shm_ctrl_process(0), 0, "not known");
	cr_expect_eq(lnx_shm_ctrl_process(-1), 0);
	for (int pid = 1; pid < UINT16_MAX; pid += 1000) {
		cr_expect_neq(lnx_shm_ctrl_process(pid), 0);
		cr_expect_neq(lnx_shm_ctrl_process(pid), lnx_shm_ctrl_process(pid + 1));
	}
	cr_expect_neq(lnx_shm_ctrl_process(UINT16_MAX), 0);
	cr_expect_neq(lnx_shm_ctrl_process(UINT16_MAX), lnx_shm_ctrl_process(UINT16_MAX - 1));
}

Test(shm_ctrl, what_does_not_fit_is_none)
{
	BAD(n.src = 0);
	BAD(n.kind = LNX_KIND_TAG);
	BAD(n.kind = 0);
	BAD(n.kind = LNX_KIND_FIN);
	BAD(n.flags = 0x40);
	BAD(n.kind = LNX_KIND_GET);
	BAD((n.kind = LNX_KIND_GET, n.npiece = 0, n.data = 0));
	BAD((n.kind = LNX_KIND_GET, n.npiece = 0, n.len = 0));
	BAD(n.pid = 0);
	BAD(n.pid = -1);
	BAD(n.cookie = 0);
	BAD(n.npiece = 0);
	BAD(n.npiece = 1);
	BAD(n.npiece = 3);
	BAD(n.npiece = LNX_SHM_CTRL_PIECES + 1);
	BAD(n.npiece = 255);
	BAD(n.len = 299);
	BAD(n.len = 0);
	BAD(n.len = UINT64_MAX);
	BAD(n.piece[0].len = 0);
	BAD(n.piece[1].len = UINT64_MAX - 99);
	BAD(n.piece[0].len = UINT64_MAX);
}

/* ---- pushed messages ---- */

static struct lnx_wire_push first(void)
{
	return (struct lnx_wire_push) {
		.src = YOU, .dst = ME, .op = 3, .tag = 0x1234, .data = 77, .len = 9000,
		.kind = LNX_KIND_PART_TAG, .flags = LNX_WIRE_F_DATA, .to_low = 1,
		.to_high = 2,
	};
}

static int push_parse(const struct lnx_wire_push *w, size_t size, uint64_t dst)
{
	uint8_t bytes[LNX_PUSH_BYTES + 1] = { 0 };
	struct lnx_wire_push back;

	lnx_wire_push_put(bytes, w);
	return lnx_wire_push_get(&back, bytes, size, dst);
}

#define BAD_PUSH(change) do { \
	struct lnx_wire_push w = first(); \
	change; \
	cr_expect_eq(push_parse(&w, LNX_PUSH_BYTES, ME), -EBADMSG, #change); \
} while (0)

Test(shm_ctrl, pushes_are_as_they_were)
{
	struct lnx_wire_push w = first(), back;
	uint8_t bytes[LNX_PUSH_BYTES];

	memset(bytes, 0xee, sizeof(bytes));
	cr_assert_eq(lnx_wire_push_put(bytes, &w), sizeof(w));
	cr_assert_eq(lnx_wire_push_get(&back, bytes, sizeof(bytes), ME), 0);
	w.magic = LNX_PUSH_MAGIC;
	cr_expect_eq(memcmp(&w, &back, sizeof(w)), 0);
	/* Of later ones only what says where they belong. */
	w.off = 4039;
	memset(bytes, 0xee, sizeof(bytes));
	cr_assert_eq(lnx_wire_push_put(bytes, &w), 32);
	cr_expect_eq(bytes[32], 0xee);
	cr_assert_eq(lnx_wire_push_get(&back, bytes, LNX_PUSH_REST_BYTES, ME), 0);
	cr_expect_eq(back.op, 3);
	cr_expect_eq(back.off, 4039);
	cr_expect_eq(push_parse(&w, LNX_PUSH_BYTES, ME), 0);
	cr_expect_eq(push_parse(&w, LNX_PUSH_BYTES, YOU), -EBADMSG, "not ours");
	cr_expect_eq(push_parse(&w, LNX_PUSH_BYTES - 1, ME), -EBADMSG);
	cr_expect_eq(push_parse(&w, LNX_PUSH_BYTES + 1, ME), -EBADMSG);
	bytes[0] ^= 1;
	cr_expect_eq(lnx_wire_push_get(&back, bytes, sizeof(bytes), ME), -EBADMSG, "magic");
}

Test(shm_ctrl, pushes_that_are_none)
{
	struct lnx_wire_push w = first();

	cr_expect_eq(push_parse(&w, LNX_PUSH_REST_BYTES, ME), -EBADMSG, "too short");
	BAD_PUSH(w.src = 0);
	BAD_PUSH(w.dst = YOU);
	BAD_PUSH(w.kind = LNX_KIND_TAG);
	BAD_PUSH(w.kind = LNX_KIND_RTS_TAG);
	BAD_PUSH(w.flags = 0x40);
	BAD_PUSH(w.len = 0);
	BAD_PUSH(w.len = LNX_PUSH_BYTES - sizeof(w));
	BAD_PUSH(w.len = LNX_PUSH_LEN_MAX + 1);
	BAD_PUSH(w.len = UINT32_MAX);
	BAD_PUSH(w.off = LNX_PUSH_LEN_MAX);
	BAD_PUSH(w.off = UINT32_MAX);
}

/* All bytes are in one of them, the rest in a short one if it fits there. */
Test(shm_ctrl, pushes_hold_all)
{
	uint64_t len, off;

	for (len = 4040; len <= LNX_PUSH_LEN_MAX; len++) {
		unsigned n = 0;

		for (off = 0; off < len; n++) {
			size_t size = lnx_wire_push_size(off, len);
			size_t room = lnx_wire_push_room(size, off);

			cr_assert(size == LNX_PUSH_BYTES ||
				  (off && len - off <= room), "%zu at %zu of %zu",
				  size, (size_t)off, (size_t)len);
			off += room;
		}
		cr_assert_leq(n, 2 + (len - 4039) / 4063);
	}
	cr_expect_eq(lnx_wire_push_size(4039 + 4063, 8192), LNX_PUSH_REST_BYTES);
	cr_expect_eq(lnx_wire_push_size(4039 + 3 * 4063, 16384), LNX_PUSH_REST_BYTES);
}

/* ---- copies ---- */

#define BAD_COPY(change) do { \
	struct lnx_wire_copy c = copy, back; \
	change; \
	memset(lnx_wire_copy_put(bytes, &c), 0xab, 10); \
	cr_expect_eq(lnx_wire_copy_get(&back, bytes, ME), -EBADMSG, #change); \
} while (0)

Test(shm_ctrl, copies)
{
	struct lnx_wire_copy back, copy = {
		.src = YOU, .dst = ME, .op = 9, .off = 8064, .len = 10,
	};
	uint8_t bytes[LNX_COPY_BYTES];
	size_t i;

	memset(bytes, 0xee, sizeof(bytes));
	memset(lnx_wire_copy_put(bytes, &copy), 0xab, 10);
	cr_assert_eq(lnx_wire_copy_get(&back, bytes, ME), 0);
	cr_expect_eq(back.src, YOU);
	cr_expect_eq(back.op, 9);
	cr_expect_eq(back.off, 8064);
	cr_expect_eq(back.len, 10);
	for (i = LNX_COPY_HEAD; i < sizeof(bytes); i++)
		cr_assert_eq(bytes[i], i < LNX_COPY_HEAD + 10 ? 0xab : 0,
			     "byte %zu", i);
	cr_expect_eq(lnx_wire_copy_get(&back, bytes, YOU), -EBADMSG, "not ours");
	bytes[0] ^= 1;
	cr_expect_eq(lnx_wire_copy_get(&back, bytes, ME), -EBADMSG, "magic");
	BAD_COPY(c.src = 0);
	BAD_COPY(c.off = UINT64_MAX);
	copy.len = LNX_COPY_DATA;
	lnx_wire_copy_put(bytes, &copy);
	cr_assert_eq(lnx_wire_copy_get(&back, bytes, ME), 0);
	back.len = 0;
	memcpy(bytes, &back, LNX_COPY_HEAD);
	cr_expect_eq(lnx_wire_copy_get(&back, bytes, ME), -EBADMSG, "no data");
	back.len = LNX_COPY_DATA + 1;
	memcpy(bytes, &back, LNX_COPY_HEAD);
	cr_expect_eq(lnx_wire_copy_get(&back, bytes, ME), -EBADMSG, "too much");
}

/* ---- a message after an operation of the core, and its answer ---- */

static struct lnx_wire_shm_put good_put(void)
{
	return (struct lnx_wire_shm_put) {
		.src = YOU, .dst = ME, .kind = LNX_KIND_PUT,
		.flags = LNX_SHM_CTRL_F_COUNT, .n_targets = 2, .op = 7,
		.place = { { 1, 2, 3 }, { UINT64_MAX, 0, UINT64_MAX } },
	};
}

static int parse_put(const struct lnx_wire_shm_put *n)
{
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct lnx_wire_shm_put back;

	lnx_shm_ctrl_put_put(bytes, n);
	return lnx_shm_ctrl_put_get(&back, bytes, ME);
}

Test(shm_ctrl, a_put_comes_back_as_it_was)
{
	struct lnx_wire_shm_put n = good_put(), back;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct lnx_wire_shm_ctrl other;

	lnx_shm_ctrl_put_put(bytes, &n);
	cr_assert_eq(lnx_shm_ctrl_put_get(&back, bytes, ME), 0);
	cr_expect_eq(back.op, 7);
	cr_expect_eq(back.n_targets, 2);
	cr_expect_eq(memcmp(back.place, n.place, sizeof(n.place)), 0);
	cr_expect_eq(lnx_shm_ctrl_put_get(&back, bytes, YOU), -EBADMSG, "not ours");
	cr_expect_eq(lnx_shm_ctrl_get(&other, bytes, ME), -EBADMSG,
		     "it is not an announcement");
	bytes[0] ^= 1;
	cr_expect_eq(lnx_shm_ctrl_put_get(&back, bytes, ME), -EBADMSG, "magic");
	n = (struct lnx_wire_shm_put) {
		.src = YOU, .dst = ME, .kind = LNX_KIND_RESP, .op = 1,
		.err = 13,
	};
	cr_expect_eq(parse_put(&n), 0, "an answer");
	n = (struct lnx_wire_shm_put) { .src = YOU, .dst = ME, .kind = LNX_KIND_HELLO };
	cr_expect_eq(parse_put(&n), 0, "a greeting");
}

#define BAD_PUT(change) do {						\
	struct lnx_wire_shm_put n = good_put();			\
									\
	change;								\
	cr_expect_eq(parse_put(&n), -EBADMSG, #change);			\
} while (0)

Test(shm_ctrl, what_is_no_put_is_none)
{
	BAD_PUT(n.src = 0);
	BAD_PUT(n.kind = LNX_KIND_FIN);
	BAD_PUT(n.kind = LNX_KIND_RTS_MSG);
	BAD_PUT(n.flags = 0x08);
	BAD_PUT(n.flags = 0x80);
	BAD_PUT(n.n_targets = LNX_SHM_CTRL_PIECES + 1);
	BAD_PUT(n.n_targets = 255);
	BAD_PUT(n.err = 1);
	/* An answer has no targets and no flags, and names an operation. */
	BAD_PUT(n.kind = LNX_KIND_RESP);
	BAD_PUT(n.kind = LNX_KIND_RESP; n.flags = 0);
	BAD_PUT(n.kind = LNX_KIND_RESP; n.n_targets = 0);
	BAD_PUT(n.kind = LNX_KIND_RESP; n.flags = 0; n.n_targets = 0; n.op = 0);
	/* A greeting says nothing else. */
	BAD_PUT(n.kind = LNX_KIND_HELLO; n.flags = 0; n.n_targets = 0);
	BAD_PUT(n.kind = LNX_KIND_HELLO; n.flags = 0; n.op = 0);
	BAD_PUT(n.kind = LNX_KIND_HELLO; n.n_targets = 0; n.op = 0);
	BAD_PUT(n.kind = LNX_KIND_HELLO; n.flags = 0; n.n_targets = 0; n.op = 0;
		n.err = 1);
	/* A read names memory and an operation, and is no request for copies. */
	BAD_PUT(n.kind = LNX_KIND_GET);
	BAD_PUT(n.kind = LNX_KIND_GET; n.flags = 0);
	BAD_PUT(n.kind = LNX_KIND_GET; n.flags = LNX_SHM_CTRL_F_TRY; n.op = 0);
	BAD_PUT(n.kind = LNX_KIND_GET; n.flags = LNX_SHM_CTRL_F_TRY;
		n.n_targets = 0);
}

Test(shm_ctrl, a_read_and_a_request_for_copies_differ)
{
	struct lnx_wire_shm_put read = good_put(), back;
	struct lnx_wire_shm_ctrl copies = {
		.src = YOU, .dst = ME, .kind = LNX_KIND_GET, .op = 3, .data = 4,
		.len = 5,
	}, other;
	uint8_t bytes[LNX_SHM_CTRL_BYTES];

	read.kind = LNX_KIND_GET;
	read.flags = LNX_SHM_CTRL_F_TRY;
	lnx_shm_ctrl_put_put(bytes, &read);
	cr_expect_eq(lnx_shm_ctrl_put_get(&back, bytes, ME), 0);
	cr_expect_eq(lnx_shm_ctrl_get(&other, bytes, ME), -EBADMSG);
	lnx_shm_ctrl_put(bytes, &copies);
	cr_expect_eq(lnx_shm_ctrl_get(&other, bytes, ME), 0);
	cr_expect_eq(lnx_shm_ctrl_put_get(&back, bytes, ME), -EBADMSG);
}

#define BAD_RMA(change) do {						\
	struct lnx_wire_rma_copy c = copy, back;			\
									\
	change;								\
	memcpy(bytes, &c, LNX_RMA_COPY_HEAD);				\
	cr_expect_eq(lnx_wire_rma_copy_get(&back, bytes, ME), -EBADMSG, #change); \
} while (0)

Test(shm_ctrl, copies_of_memory)
{
	struct lnx_wire_rma_copy back, copy = {
		.src = YOU, .dst = ME, .op = 9, .kind = LNX_KIND_PUT,
		.flags = LNX_RMA_COPY_F_ALL, .addr = 8000, .key = 5,
		.total = 9000, .rest = 4500, .data = 77, .len = 10,
	};
	struct lnx_wire_copy other;
	uint8_t bytes[LNX_COPY_BYTES];
	size_t i;

	memset(bytes, 0xee, sizeof(bytes));
	memset(lnx_wire_rma_copy_put(bytes, &copy), 0xab, 10);
	cr_assert_eq(lnx_wire_rma_copy_get(&back, bytes, ME), 0);
	copy.magic = LNX_RMA_COPY_MAGIC;
	cr_expect_eq(memcmp(&back, &copy, LNX_RMA_COPY_HEAD), 0);
	for (i = LNX_RMA_COPY_HEAD; i < sizeof(bytes); i++)
		cr_assert_eq(bytes[i], i < LNX_RMA_COPY_HEAD + 10 ? 0xab : 0,
			     "byte %zu", i);
	cr_expect_eq(lnx_wire_rma_copy_get(&back, bytes, YOU), -EBADMSG, "not ours");
	cr_expect_eq(lnx_wire_copy_get(&other, bytes, ME), -EBADMSG, "no message");
	BAD_RMA(c.magic ^= 1);
	BAD_RMA(c.src = 0);
	BAD_RMA(c.op = 0);
	BAD_RMA(c.len = 0);
	BAD_RMA(c.len = LNX_RMA_COPY_DATA + 1; c.total = 90000);
	BAD_RMA(c.addr = UINT64_MAX);
	BAD_RMA(c.kind = LNX_KIND_GET);
	BAD_RMA(c.flags = 0x08);
	BAD_RMA(c.total = 9);
	BAD_RMA(c.rest = 9);
	BAD_RMA(c.rest = 9001);
	BAD_RMA(c.addr = UINT64_MAX - 4499);
	BAD_RMA(c.kind = LNX_KIND_RESP);
	copy.kind = LNX_KIND_RESP;
	copy.flags = 0;
	BAD_RMA((void)0);
	copy.key = copy.total = copy.data = 0;
	BAD_RMA((void)0);
	copy.rest = 0;
	memcpy(bytes, &copy, LNX_RMA_COPY_HEAD);
	cr_expect_eq(lnx_wire_rma_copy_get(&back, bytes, ME), 0, "an answer");
}

/* ---- reading memory of a process ---- */

static uint64_t cookie = YOU;
static uint8_t data[3][5000];

static uint8_t its_byte(size_t at)
{
	return (uint8_t)(at % 251 + 1);
}

/* A process that has these at the same addresses, with other contents. */
static pid_t other(uint64_t its_cookie)
{
	int fd[2];
	pid_t pid;
	size_t d, i;
	char c;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		cookie = its_cookie;
		for (d = 0; d < 3; d++) {
			for (i = 0; i < sizeof(data[d]); i++)
				data[d][i] = its_byte(d * sizeof(data[d]) + i);
		}
		if (write(fd[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	/* The write end is the child's only, so that its death is noticed. */
	close(fd[1]);
	cr_assert_eq(read(fd[0], &c, 1), 1, "it died");
	close(fd[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct lnx_cma_owner owner_of(pid_t pid)
{
	return (struct lnx_cma_owner) {
		.pid = pid, .cookie = (uintptr_t)&cookie, .eid = YOU,
	};
}

static void need_cma(void)
{
	pid_t pid = other(YOU);
	struct lnx_cma_owner owner = owner_of(pid);
	bool can = lnx_cma_probe(&owner);

	end(pid);
	if (!can)
		cr_skip_test("processes may not read each other's memory");
}

Test(cma, reads_across_pieces)
{
	static uint8_t got[15000];
	struct lnx_wire_piece piece[3] = {
		{ (uintptr_t)data[0], 5000 }, { (uintptr_t)data[1] + 1, 1 },
		{ (uintptr_t)data[2], 4000 },
	};
	size_t cut[] = { 0, 1, 4999, 5000, 5001, 5002, 7000, 9000 }, i, k, at;
	struct lnx_cma_owner owner;
	unsigned with;

	need_cma();
	owner = owner_of(other(YOU));
	for (with = 0; with < 2; with++) {
		owner.cookie = with ? (uintptr_t)&cookie : 0;
		for (i = 0; i < 8; i++) {
			struct iovec iov[4] = {
				{ got, cut[i] }, { got + cut[i], 0 },
				{ got + cut[i], 9000 }, { NULL, 0 },
			};

			memset(got, 0, sizeof(got));
			cr_expect_eq(lnx_cma_read(&owner, piece, 3, iov, 4,
						  9000), 0);
			for (k = 0; k < 9000; k++) {
				at = k < 5000 ? k : k == 5000 ? 5001 :
				     k - 5001 + 10000;
				cr_assert_eq(got[k], at % 251 + 1, "byte %zu",
					     k);
			}
			cr_expect_eq(got[9000], 0);
		}
	}
	end(owner.pid);
}

Test(cma, knows_dead_peers)
{
	struct lnx_wire_piece piece = { (uintptr_t)data[0], 5000 };
	static uint8_t got[5000];
	struct iovec iov = { got, sizeof(got) };
	struct lnx_cma_owner owner;

	need_cma();
	/* The process lives, and its endpoint does not. */
	owner = owner_of(other(0));
	cr_expect_not(lnx_cma_probe(&owner));
	cr_expect_eq(lnx_cma_read(&owner, &piece, 1, &iov, 1, 5000), ESRCH);
	/* It is dead and not reaped yet, then reaped. */
	kill(owner.pid, SIGKILL);
	waitid(P_PID, (id_t)owner.pid, &(siginfo_t) { 0 }, WEXITED | WNOWAIT);
	cr_expect_not(lnx_cma_probe(&owner));
	cr_expect_neq(lnx_cma_read(&owner, &piece, 1, &iov, 1, 5000), 0);
	end(owner.pid);
	cr_expect_not(lnx_cma_probe(&owner));
	cr_expect_neq(lnx_cma_read(&owner, &piece, 1, &iov, 1, 5000), 0);
}

Test(cma, bad_places_are_errors)
{
	struct lnx_wire_piece piece[2] = { { 8, 16 },
					   { (uintptr_t)data[0], 5000 } };
	static uint8_t got[6000];
	struct iovec iov = { got, sizeof(got) };
	struct lnx_cma_owner owner;
	char *hole;

	need_cma();
	hole = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	cr_assert_neq(hole, MAP_FAILED);
	owner = owner_of(other(YOU));
	cr_expect_neq(lnx_cma_read(&owner, piece, 2, &iov, 1, 5016), 0);
	piece[0] = (struct lnx_wire_piece) { (uintptr_t)data[0], 16 };
	piece[1].addr = (uintptr_t)hole;
	cr_expect_neq(lnx_cma_read(&owner, piece, 2, &iov, 1, 5016), 0);
	owner.cookie = 0;
	cr_expect_neq(lnx_cma_read(&owner, piece, 2, &iov, 1, 5016), 0);
	owner.cookie = 8;
	cr_expect_not(lnx_cma_probe(&owner));
	end(owner.pid);
}

/* ---- atomics with a result ---- */

static struct lnx_wire_shm_amo good_amo(uint8_t kind, uint32_t len)
{
	struct lnx_wire_shm_amo w = { .src = YOU, .dst = ME, .op = 5, .kind = kind, .len = len };

	return w;
}

Test(shm_ctrl, atomics)
{
	static const uint32_t lens[] = { 0, 1, 96, 97, 98, LNX_SHM_AMO_ROOM };
	static uint8_t bytes[LNX_COPY_BYTES];
	unsigned i, k;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct lnx_wire_shm_amo w = good_amo(i % 2 ? LNX_KIND_RESP : LNX_KIND_ATOMIC,
						     lens[i]), back;
		size_t size = lnx_shm_amo_size(lens[i]);
		uint8_t *data;

		cr_expect_eq(size, lens[i] <= 97 ? LNX_SHM_CTRL_BYTES : LNX_COPY_BYTES);
		memset(bytes, 0xee, sizeof(bytes));
		data = lnx_shm_amo_put(bytes, &w);
		for (k = lens[i]; data + k < bytes + size; k++)
			cr_assert_eq(data[k], 0, "byte %u of %u", k, lens[i]);
		cr_assert_eq(lnx_shm_amo_get(&back, bytes, size, ME), 0);
		cr_expect_eq(back.op, 5);
		cr_expect_eq(back.len, lens[i]);
		cr_expect_eq(back.kind, w.kind);
		cr_expect_eq(back.src, YOU);
		cr_expect_eq(lnx_shm_amo_get(&back, bytes, size, YOU), -EBADMSG, "not ours");
		cr_expect_eq(lnx_shm_amo_get(&back, bytes, LNX_SHM_CTRL_BYTES +
					     LNX_COPY_BYTES - size, ME), -EBADMSG, "size");
		bytes[0] ^= 1;
		cr_expect_eq(lnx_shm_amo_get(&back, bytes, size, ME), -EBADMSG, "magic");
	}
}

#define BAD_AMO(change) do { \
	struct lnx_wire_shm_amo w = good_amo(LNX_KIND_ATOMIC, 50), back; \
	uint8_t bad[LNX_SHM_CTRL_BYTES]; \
	lnx_shm_amo_put(bad, &w); \
	change; \
	w.magic = LNX_SHM_AMO_MAGIC; \
	memcpy(bad, &w, LNX_SHM_AMO_HEAD); \
	cr_expect_eq(lnx_shm_amo_get(&back, bad, sizeof(bad), ME), -EBADMSG, #change); \
} while (0)

Test(shm_ctrl, what_is_no_atomic)
{
	BAD_AMO(w.src = 0);
	BAD_AMO(w.op = 0);
	BAD_AMO(w.kind = LNX_KIND_PUT);
	BAD_AMO(w.kind = 0);
	BAD_AMO(w.len = 98);
	BAD_AMO(w.len = UINT32_MAX);
}
