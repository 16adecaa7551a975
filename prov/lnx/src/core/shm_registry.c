/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pages behind a shm region that list which peers may use it.  See shm_registry.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "core/shm_registry.h"
#include "core/open.h"
#include "os/pidwatch.h"

/* Of all that lnx says over shared memory, too: to a peer of another version only the core
 * speaks. */
#define MAGIC		0x38306b6f6f62786eULL	/* "nxbook08" */

struct lnx_shm_registry {
	struct lnx_shm_keys keys;
	uint64_t magic;
	uint64_t eid;
	int32_t pid;
	uint32_t nslot;
	uint64_t cookie;				/* 0: the owner has closed */
	uint64_t started;			/* of its process; 0: not known */
	uint64_t slot[LNX_SHM_SLOTS];	/* 0: free */
	uint32_t counts;			/* control messages must follow writes */
	uint8_t unsettled[LNX_SHM_SLOTS];	/* one is to follow, of that slot */
	uint8_t reach[LNX_SHM_SLOTS];		/* the owner may read its memory */
	uint64_t pid_ns;			/* in which pid is; 0: not known */
};
static_assert(!(LNX_SHM_KEY_USED & (FI_REMOTE_READ | FI_REMOTE_WRITE)), "a bit of ours");
static_assert(!offsetof(struct lnx_shm_registry, keys), "shm_registry.h");
static_assert(sizeof(struct lnx_shm_registry) <= 5 * 4096, "small");

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Of a registry, in whole pages. */
static size_t registry_size(void)
{
	size_t page = page_size();

	return (sizeof(struct lnx_shm_registry) + page - 1) / page * page;
}

static int open_region(uint64_t eid, unsigned turn, off_t *size)
{
	char path[LNX_SHM_PATH_BYTES];
	struct stat st;
	int fd;

	lnx_host_region_path(eid, turn, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size % (off_t)page_size()) {
		close(fd);
		return -EINVAL;
	}
	*size = st.st_size;
	return fd;
}

/* Map the one at that offset; closes fd. */
static struct lnx_shm_registry *map_at(int fd, off_t at)
{
	void *p = mmap(NULL, registry_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		       fd, at);

	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

struct lnx_shm_registry *lnx_shm_registry_open(const struct lnx_ep *ep)
{
	struct lnx_shm_registry *b;
	off_t size;
	int fd = open_region(ep->eid, ep->local.turn, &size);

	if (fd < 0)
		return NULL;
	/* Not ftruncate: a page that cannot be provided later is a SIGBUS. */
	if (posix_fallocate(fd, size, (off_t)registry_size())) {
		close(fd);
		return NULL;
	}
	b = map_at(fd, size);
	if (!b)
		return NULL;
	b->eid = ep->eid;
	b->pid = ep->local.pid;
	b->nslot = LNX_SHM_SLOTS;
	b->cookie = (uint64_t)(uintptr_t)&ep->local.cookie;
	b->started = lnx_pidwatch_started(ep->local.pid);
	b->pid_ns = lnx_proc_pid_ns();
	__atomic_store_n(&b->magic, MAGIC, __ATOMIC_RELEASE);
	return b;
}

void lnx_shm_registry_close(struct lnx_shm_registry *registry)
{
	if (registry)
		munmap(registry, registry_size());
}

/* Map the registry of another endpoint, to be closed.  NULL with -ENOENT: there is no
 * such endpoint; -EINVAL: it has no registry. */
static struct lnx_shm_registry *map_registry(uint64_t eid, int *err)
{
	struct lnx_shm_registry *b;
	off_t size;
	int fd = open_region(eid, lnx_host_shm_turn(eid), &size);

	*err = fd < 0 ? fd : -EINVAL;
	if (fd < 0)
		return NULL;
	if (size <= (off_t)registry_size()) {
		close(fd);
		return NULL;
	}
	b = map_at(fd, size - (off_t)registry_size());
	if (!b)
		return NULL;
	if (__atomic_load_n(&b->magic, __ATOMIC_ACQUIRE) != MAGIC ||
	    b->eid != eid || b->nslot != LNX_SHM_SLOTS) {
		lnx_shm_registry_close(b);
		return NULL;
	}
	return b;
}

LNX_COLD bool lnx_shm_registry_opener(int fd, off_t size, struct lnx_shm_opener *opener)
{
	struct lnx_shm_registry *b;
	bool valid;

	if (size <= (off_t)registry_size() || size % (off_t)page_size())
		return false;
	/* Not mapped: it may be cut short meanwhile. */
	b = malloc(sizeof(*b));
	valid = b && pread(fd, b, sizeof(*b), size - (off_t)registry_size()) ==
			     (ssize_t)sizeof(*b) &&
		b->magic == MAGIC && b->nslot == LNX_SHM_SLOTS;
	if (valid)
		*opener = (struct lnx_shm_opener){ b->pid, b->started, b->pid_ns };
	free(b);
	return valid;
}

static inline uint64_t get(const struct lnx_shm_registry *b, unsigned i)
{
	return __atomic_load_n(&b->slot[i], __ATOMIC_ACQUIRE);
}

int lnx_shm_slot_claim(struct lnx_shm_registry *b, uint64_t eid)
{
	unsigned i;

	for (i = 0; i < LNX_SHM_SLOTS; i++)
		if (get(b, i) == eid)
			return 0;
	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t found = get(b, i);

		/* It may also have been claimed for eid since the first look. */
		if ((!found && __atomic_compare_exchange_n(&b->slot[i], &found, eid, false,
							   __ATOMIC_ACQ_REL,
							   __ATOMIC_ACQUIRE)) ||
		    found == eid)
			return 0;
	}
	return -FI_ENOSPC;
}

bool lnx_shm_slot_available(const struct lnx_shm_registry *b, uint64_t eid)
{
	unsigned i;

	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t slot = get(b, i);

		if (!slot || slot == eid)
			return true;
	}
	return false;
}

unsigned lnx_shm_slots_free(const struct lnx_shm_registry *b)
{
	unsigned i, n = 0;

	for (i = 0; i < LNX_SHM_SLOTS; i++)
		n += !get(b, i);
	return n;
}

uint64_t lnx_shm_slot_peer(const struct lnx_shm_registry *b, unsigned i)
{
	return get(b, i);
}

void lnx_shm_slot_release(struct lnx_shm_registry *b, unsigned i)
{
	/* In this order: from then on the bytes belong to the next one that claims it. */
	__atomic_store_n(&b->reach[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&b->unsettled[i], 0, __ATOMIC_RELEASE);
	__atomic_store_n(&b->slot[i], 0, __ATOMIC_RELEASE);
}

int lnx_shm_registry_find(uint64_t eid, struct lnx_shm_registry **registry)
{
	int err;

	*registry = map_registry(eid, &err);
	return *registry ? 0 : -FI_ENOENT;
}

void lnx_shm_registry_owner(const struct lnx_shm_registry *b, struct lnx_cma_owner *owner)
{
	owner->pid = b->pid;
	owner->eid = b->eid;
	owner->cookie = __atomic_load_n(&b->cookie, __ATOMIC_RELAXED);
	owner->started = b->started;
}

static int slot_of(const struct lnx_shm_registry *b, uint64_t eid)
{
	int i;

	for (i = 0; i < LNX_SHM_SLOTS; i++)
		if (get(b, (unsigned)i) == eid)
			return i;
	return -1;
}

uint8_t *lnx_shm_slot_unsettled(struct lnx_shm_registry *b, uint64_t eid)
{
	int i = slot_of(b, eid);

	return i < 0 ? NULL : &b->unsettled[i];
}

uint8_t *lnx_shm_slot_reach(struct lnx_shm_registry *b, uint64_t eid)
{
	int i = slot_of(b, eid);

	return i < 0 ? NULL : &b->reach[i];
}

bool lnx_shm_registry_unsettled(const struct lnx_shm_registry *b)
{
	unsigned i;

	for (i = 0; i < LNX_SHM_SLOTS; i++)
		if (__atomic_load_n(&b->unsettled[i], __ATOMIC_ACQUIRE) &&
		    get(b, i))
			return true;
	return false;
}

LNX_COLD void lnx_shm_registry_settle(struct lnx_shm_registry *b, bool all)
{
	unsigned i;

	for (i = 0; i < LNX_SHM_SLOTS; i++) {
		uint64_t eid = get(b, i);

		if (eid && __atomic_load_n(&b->unsettled[i], __ATOMIC_ACQUIRE) &&
		    (all || lnx_shm_registry_dead(eid)))
			__atomic_store_n(&b->unsettled[i], 0, __ATOMIC_RELEASE);
	}
}

const uint32_t lnx_shm_registry_no_counts;

const uint32_t *lnx_shm_registry_counts(const struct lnx_shm_registry *b)
{
	return &b->counts;
}

void lnx_shm_registry_count(struct lnx_shm_registry *b)
{
	__atomic_store_n(&b->counts, 1, __ATOMIC_RELEASE);
}

/* ---- keys ---- */

bool lnx_shm_key_found(const struct lnx_shm_keys *keys, uint64_t key, uint64_t addr,
		       uint64_t len, uint64_t access)
{
	unsigned row = lnx_shm_key_row(key), i;

	for (i = 0; i < LNX_SHM_KEYS_IN_ROW; i++) {
		const struct lnx_shm_key *k = &keys->at[row][i];

		if (__atomic_load_n(&k->access, __ATOMIC_ACQUIRE) &&
		    k->key == key)
			return lnx_shm_key_is(k, key, addr, len, access);
	}
	return __atomic_load_n(&keys->full[row], __ATOMIC_RELAXED);
}

void lnx_shm_key_list(struct lnx_shm_registry *b, uint64_t key, uint64_t addr,
		      uint64_t len, uint64_t access)
{
	unsigned row = lnx_shm_key_row(key), i;

	for (i = 0; i < LNX_SHM_KEYS_IN_ROW; i++) {
		struct lnx_shm_key *k = &b->keys.at[row][i];

		if (k->access)
			continue;
		k->key = key;
		k->addr = addr;
		k->len = len;
		access &= FI_REMOTE_READ | FI_REMOTE_WRITE;
		__atomic_store_n(&k->access, access | LNX_SHM_KEY_USED,
				 __ATOMIC_RELEASE);
		return;
	}
	/* For good: it is not known how many are missing. */
	__atomic_store_n(&b->keys.full[row], 1, __ATOMIC_RELEASE);
}

void lnx_shm_key_unlist(struct lnx_shm_registry *b, uint64_t key)
{
	unsigned row = lnx_shm_key_row(key), i;

	for (i = 0; i < LNX_SHM_KEYS_IN_ROW; i++) {
		struct lnx_shm_key *k = &b->keys.at[row][i];

		if (k->access && k->key == key) {
			__atomic_store_n(&k->access, 0, __ATOMIC_RELEASE);
			return;
		}
	}
}

void lnx_shm_registry_retire(struct lnx_shm_registry *b)
{
	__atomic_store_n(&b->cookie, 0, __ATOMIC_SEQ_CST);
}

/* The core writes its process id near the beginning of the region. */
#define PID_WORDS	16

int32_t *lnx_shm_region_pid(const struct lnx_ep *ep)
{
	int32_t *word, *pid = NULL;
	unsigned i, n = 0;
	off_t size;
	int fd = open_region(ep->eid, ep->local.turn, &size);

	if (fd < 0)
		return NULL;
	word = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (word == MAP_FAILED)
		return NULL;
	for (i = 0; i < PID_WORDS; i++) {
		if (word[i] != ep->local.pid)
			continue;
		pid = &word[i];
		n++;
	}
	if (n == 1)
		return pid;
	munmap(word, page_size());
	return NULL;
}

static void unmap_word(int32_t *word)
{
	munmap((void *)((uintptr_t)word & ~(uintptr_t)(page_size() - 1)), page_size());
}

/* Regions of this process that are closed, and whose names come again. */
#define LEFT_MAX	64u

static struct left {
	uint64_t eid;
	unsigned turn;
	int32_t *pid;			/* NULL: none here */
} left[LEFT_MAX];
static unsigned n_left;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

void lnx_shm_region_leave(const struct lnx_ep *ep, int32_t *pid)
{
	struct left *l;

	if (!pid)
		return;
	/* A random name is used once. */
	if (!ep->local.turn) {
		unmap_word(pid);
		return;
	}
	pthread_mutex_lock(&left_lock);
	l = &left[n_left++ % LEFT_MAX];
	if (l->pid)
		unmap_word(l->pid);
	*l = (struct left){ .eid = ep->eid, .turn = ep->local.turn, .pid = pid };
	pthread_mutex_unlock(&left_lock);
}

void lnx_shm_region_disown(const struct lnx_ep *ep)
{
	unsigned i;

	if (!ep->local.turn)
		return;
	pthread_mutex_lock(&left_lock);
	for (i = 0; i < LEFT_MAX; i++) {
		struct left *l = &left[i];

		if (!l->pid || l->eid != ep->eid || l->turn != ep->local.turn)
			continue;
		__atomic_store_n(l->pid, 0, __ATOMIC_RELEASE);
		unmap_word(l->pid);
		l->pid = NULL;
	}
	pthread_mutex_unlock(&left_lock);
}

bool lnx_shm_registry_is_live(const struct lnx_shm_registry *b)
{
	/* Not before the reads that it confirms. */
	lnx_fence();
	return __atomic_load_n(&b->cookie, __ATOMIC_RELAXED) != 0;
}

bool lnx_shm_registry_dead(uint64_t eid)
{
	struct lnx_shm_registry *b;
	bool gone;
	int err;

	b = map_registry(eid, &err);
	if (!b)
		return err == -ENOENT;
	gone = !lnx_shm_registry_is_live(b) ||
	       (b->pid > 0 && kill(b->pid, 0) && errno == ESRCH);
	lnx_shm_registry_close(b);
	return gone;
}

bool lnx_shm_registry_in_use(uint64_t eid, int *pid)
{
	struct lnx_shm_registry *b;
	uint64_t started;
	int err;

	*pid = 0;
	b = map_registry(eid, &err);
	if (!b)
		return err != -ENOENT;
	*pid = b->pid;
	started = b->started;
	lnx_shm_registry_close(b);
	if (*pid <= 0)
		return true;
	/* A process of another start time has got the number since. */
	return !(kill(*pid, 0) && errno == ESRCH) &&
	       (!started || lnx_pidwatch_started(*pid) == started);
}
