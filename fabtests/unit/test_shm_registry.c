/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peer registries of shm endpoints (core/shm_registry.c), on files of our own
 * in /dev/shm. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shm_registry.h"
#include "core/open.h"
#include "view.h"

/* Made from the test's process id, also in its children. */
#define EID		id_of(main_pid)
static pid_t main_pid;
static struct lnx_ep ep;

static void note_pid(void)
{
	main_pid = getpid();
}

TestSuite(shm_registry, .init = note_pid);

static uint64_t id_of(pid_t pid)
{
	return 0x600d000000000000ULL + (uint64_t)pid;
}

static void file(uint64_t eid, off_t size)
{
	char path[LNX_SHM_PATH_BYTES];
	int fd;

	lnx_host_shm_path(eid, path);
	unlink(path);
	if (size < 0)
		return;
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
}

/* Claim a slot in the registry of another endpoint. */
static int claim_slot(uint64_t eid, uint64_t registered, struct lnx_shm_registry **registry)
{
	int ret = lnx_shm_registry_find(eid, registry);

	return ret ? ret : lnx_shm_slot_claim(*registry, registered);
}

static off_t pages(int n)
{
	return n * (off_t)sysconf(_SC_PAGESIZE);
}

static struct lnx_shm_registry *made(uint64_t eid)
{
	ep.eid = eid;
	force_pid(&ep, getpid());
	file(eid, pages(4));
	return lnx_shm_registry_open(&ep);
}

static unsigned registered(const struct lnx_shm_registry *b)
{
	unsigned i, n = 0;

	for (i = 0; i < LNX_SHM_SLOTS; i++)
		n += lnx_shm_slot_peer(b, i) != 0;
	return n;
}

Test(shm_registry, holds_as_many_as_shm_does)
{
	struct lnx_shm_registry *b = made(EID);
	unsigned i;

	cr_assert_not_null(b);
	for (i = 1; i <= 256; i++) {
		cr_expect(lnx_shm_slot_available(b, i));
		cr_expect_eq(lnx_shm_slot_claim(b, i), 0, "registered %u", i);
		cr_expect_eq(lnx_shm_slot_claim(b, i), 0, "again");
	}
	cr_expect_eq(lnx_shm_slots_free(b), 0);
	cr_expect_not(lnx_shm_slot_available(b, 1000));
	cr_expect_eq(lnx_shm_slot_claim(b, 1000), -FI_ENOSPC);
	cr_expect(lnx_shm_slot_available(b, 77), "it has a slot");
	for (i = 0; lnx_shm_slot_peer(b, i) != 77; i++)
		;
	lnx_shm_slot_release(b, i);
	cr_expect_eq(lnx_shm_slot_claim(b, 1000), 0);
	cr_expect_not(lnx_shm_slot_available(b, 77));
	lnx_shm_registry_close(b);
	file(EID, -1);
}

Test(shm_registry, says_whose_memory_can_be_reached)
{
	struct lnx_shm_registry *b = made(EID);
	struct lnx_shm_registry *seen;
	uint8_t *here, *there;

	cr_assert_not_null(b);
	cr_assert_eq(claim_slot(EID, 9, &seen), 0);
	there = lnx_shm_slot_reach(seen, 9);
	here = lnx_shm_slot_reach(b, 9);
	cr_assert(there && here);
	cr_expect_eq(*there, 0, "not yet known");
	*here = 1;
	cr_expect_eq(*there, 1);
	cr_expect_null(lnx_shm_slot_reach(seen, 10), "it has no slot");
	lnx_shm_slot_release(b, 0);
	cr_expect_eq(*there, 0, "not for the next one");
	lnx_shm_registry_close(seen);
	lnx_shm_registry_close(b);
	file(EID, -1);
}

Test(shm_registry, lists_keys)
{
	struct lnx_shm_registry *b = made(EID), *seen;
	uint64_t other[LNX_SHM_KEYS_IN_ROW], key = 77;
	unsigned i, n = 0;

	cr_assert_not_null(b);
	cr_assert_eq(claim_slot(EID, 9, &seen), 0);
#define ALLOWS(key, addr, len, access)					\
	lnx_shm_key_allows(seen, key, addr, len, access)
	cr_expect(lnx_shm_key_allows(NULL, 77, 0, 1, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 1000, 1, FI_REMOTE_READ));
	lnx_shm_key_list(b, 77, 1000, 50, FI_REMOTE_READ | FI_SEND);
	cr_expect(ALLOWS(77, 1000, 50, FI_REMOTE_READ));
	cr_expect(ALLOWS(77, 1050, 0, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 1001, 50, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 1051, 0, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 999, 1, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 1001, UINT64_MAX, FI_REMOTE_READ));
	cr_expect_not(ALLOWS(77, 1000, 50, FI_REMOTE_WRITE));
	cr_expect_not(ALLOWS(78, 1000, 50, FI_REMOTE_READ));
	/* As many in its row as fit, and one more. */
	while (n < LNX_SHM_KEYS_IN_ROW)
		if (lnx_shm_key_row(++key) == lnx_shm_key_row(77))
			other[n++] = key;
	for (i = 0; i < n - 1; i++)
		lnx_shm_key_list(b, other[i], i, 1, FI_REMOTE_WRITE);
	cr_expect(ALLOWS(other[n - 2], n - 2, 1, FI_REMOTE_WRITE));
	cr_expect_not(ALLOWS(other[n - 1], 0, 1, FI_REMOTE_WRITE));
	lnx_shm_key_unlist(b, 77);
	cr_expect_not(ALLOWS(77, 1000, 50, FI_REMOTE_READ));
	lnx_shm_key_list(b, 77, 0, 1, FI_REMOTE_READ);
	lnx_shm_key_list(b, other[n - 1], 0, 1, FI_REMOTE_WRITE);
	cr_expect(ALLOWS(other[n - 1], 0, 1, FI_REMOTE_WRITE), "not known");
	cr_expect_not(ALLOWS(77, 1, 1, FI_REMOTE_READ), "known");
	lnx_shm_key_unlist(b, other[n - 1]);
	lnx_shm_registry_close(seen);
	lnx_shm_registry_close(b);
	file(EID, -1);
}

Test(shm_registry, is_found_by_others)
{
	struct lnx_shm_registry *b = made(EID);
	struct lnx_cma_owner owner = { 0 };
	struct lnx_shm_registry *seen;
	int status;
	pid_t pid;

	cr_assert_not_null(b);
	pid = fork();
	if (!pid) {
		if (claim_slot(EID, 9, &seen))
			_exit(1);
		lnx_shm_registry_owner(seen, &owner);
		_exit(owner.pid != getppid() || owner.eid != EID ||
		      owner.cookie != (uintptr_t)view_cookie(&ep) ||
		      !lnx_shm_registry_is_live(seen));
	}
	waitpid(pid, &status, 0);
	cr_expect_eq(status, 0);
	cr_assert_eq(claim_slot(EID, 9, &seen), 0);
	cr_expect_not(lnx_shm_registry_dead(EID));
	lnx_shm_registry_retire(b);
	cr_expect_not(lnx_shm_registry_is_live(seen));
	cr_expect(lnx_shm_registry_dead(EID));
	lnx_shm_registry_close(seen);
	cr_expect_eq(registered(b), 1);
	cr_expect_eq(lnx_shm_slot_peer(b, 0), 9);
	lnx_shm_registry_close(b);
	file(EID, -1);
}

Test(shm_registry, may_be_missing)
{
	struct lnx_shm_registry *seen;
	off_t sizes[] = { 0, 1, pages(1), pages(1) + 1, pages(2) };
	size_t i;

	file(EID, -1);
	ep.eid = EID;
	cr_expect_null(lnx_shm_registry_open(&ep));
	cr_expect_eq(claim_slot(EID, 9, &seen), -FI_ENOENT);
	cr_expect(lnx_shm_registry_dead(EID));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		file(EID, sizes[i]);
		cr_expect_eq(claim_slot(EID, 9, &seen), -FI_ENOENT,
			     "%lld bytes", (long long)sizes[i]);
		cr_expect_not(lnx_shm_registry_dead(EID), "%lld bytes",
			      (long long)sizes[i]);
	}
	file(EID, -1);
}

static bool there_is(uint64_t eid, unsigned turn)
{
	char path[LNX_SHM_PATH_BYTES];

	lnx_host_region_path(eid, turn, path);
	return !access(path, F_OK);
}

/* A region of that turn, as the core makes it. */
static unsigned take_turn(void)
{
	char path[LNX_SHM_PATH_BYTES];
	unsigned turn = view_shm_turn(&ep);
	int fd;

	lnx_host_take_turn(&ep);
	cr_assert_neq(view_shm_turn(&ep), turn, "the same as before");
	turn = view_shm_turn(&ep);
	cr_assert(turn && turn <= LNX_SHM_TURNS);
	lnx_host_region_path(EID, turn, path);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(ftruncate(fd, pages(4)), 0);
	close(fd);
	return turn;
}

/* Peers find a region with a turn when it is complete, and not before.  That of the last
 * process stays until another one comes. */
Test(shm_registry, is_found_when_it_is_shown)
{
	struct lnx_shm_registry *b, *seen;
	unsigned last = 0, now, i;

	ep.eid = EID;
	force_pid(&ep, getpid());
	file(EID, -1);
	for (i = 0; i < 2 * LNX_SHM_TURNS; i++, last = now) {
		now = take_turn();
		cr_expect_eq(lnx_host_shm_turn(EID), 0);
		cr_expect_eq(claim_slot(EID, 9, &seen), -FI_ENOENT, "not complete");
		b = lnx_shm_registry_open(&ep);
		cr_assert_not_null(b);
		cr_expect_eq(claim_slot(EID, 9, &seen), -FI_ENOENT, "not shown");
		cr_expect_eq(lnx_host_show_region(&ep), 0);
		cr_expect_eq(lnx_host_show_region(&ep), -FI_EADDRINUSE);
		cr_expect_eq(lnx_host_shm_turn(EID), now);
		cr_assert_eq(claim_slot(EID, 9, &seen), 0);
		cr_expect_eq(lnx_shm_slot_peer(b, 0), 9);
		cr_expect(!last || there_is(EID, last));
		lnx_shm_registry_close(seen);
		lnx_shm_registry_close(b);
	}
	lnx_host_hide_region(&ep);
	cr_expect_not(there_is(EID, 0));
	for (i = 1; i <= LNX_SHM_TURNS; i++)
		cr_expect_eq(there_is(EID, i), i == now, "%u", i);
	lnx_host_take_turn(&ep);
	cr_expect_not(there_is(EID, now), "nothing says whose it is");
}

/* A link that leads elsewhere, as any process can make it. */
Test(shm_registry, is_no_other_file)
{
	char path[LNX_SHM_PATH_BYTES];

	lnx_host_region_path(EID, 0, path);
	file(EID, -1);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_expect_eq(lnx_host_shm_turn(EID), 0);
	cr_expect_not(lnx_shm_registry_dead(EID), "unsure");
	unlink(path);
	cr_assert_eq(symlink("lnx-0000000000000001.1", path), 0);
	cr_expect_eq(lnx_host_shm_turn(EID), 0, "another endpoint's");
	file(EID, -1);
}

Test(shm_registry, ends_with_the_process)
{
	int fd[2], status;
	char c;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		if (!made(id_of(getpid())) || write(fd[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(fd[0], &c, 1), 1);
	cr_expect_not(lnx_shm_registry_dead(id_of(pid)));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_expect(lnx_shm_registry_dead(id_of(pid)));
	file(id_of(pid), -1);
}

/* A process that is killed between an operation and its control message leaves its mark: that
 * counts for nothing.  The mark of one that lives counts until it is given up. */
Test(shm_registry, marks_end_with_the_process)
{
	struct lnx_shm_registry *b = made(EID), *theirs;
	int fd[2], status;
	char c;
	pid_t pid;

	cr_assert_not_null(b);
	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		uint64_t own = id_of(getpid());

		if (!made(own) || claim_slot(EID, own, &theirs))
			_exit(1);
		*lnx_shm_slot_unsettled(theirs, own) = 1;
		if (write(fd[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	cr_assert_eq(read(fd[0], &c, 1), 1);
	lnx_shm_registry_settle(b, false);
	cr_expect(lnx_shm_registry_unsettled(b));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	cr_expect(lnx_shm_registry_unsettled(b));
	lnx_shm_registry_settle(b, false);
	cr_expect_not(lnx_shm_registry_unsettled(b));
	*lnx_shm_slot_unsettled(b, id_of(pid)) = 1;
	file(id_of(pid), pages(4));
	lnx_shm_registry_settle(b, true);
	cr_expect_not(lnx_shm_registry_unsettled(b));
	file(id_of(pid), -1);
}

/* Many processes at once: no peer gets two slots, and no slot has two peers. */
Test(shm_registry, places_are_claimed_once)
{
	struct lnx_shm_registry *b = made(EID);
	unsigned char seen[1 + 4 * 100] = { 0 };
	unsigned i, k;

	cr_assert_not_null(b);
	for (k = 0; k < 4; k++) {
		struct lnx_shm_registry *seen;

		if (fork())
			continue;
		/* Half of the ids are used by all processes. */
		for (i = 1; i <= 100; i++)
			claim_slot(EID, i % 2 ? i : k * 100 + i, &seen);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t id = lnx_shm_slot_peer(b, i);

		cr_assert_leq(id, 400);
		if (id)
			cr_expect_eq(seen[id]++, 0, "%u twice", (unsigned)id);
	}
	cr_expect_eq(registered(b), 50 + 4 * 50);
	lnx_shm_registry_close(b);
	file(EID, -1);
}
