/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Places of peers in the shm core.  See shm_place.h. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open.h"
#include "core/shm_place.h"
#include "obj/rail.h"
#include "os/cma.h"

#define REGION_VERSION	8u		/* of regions, of cores since 2.0 */
#define NAME_BYTES	256u
#define HEAD_WORDS	64u
#define MAP_WORDS	32u		/* the peers of the address vector begin here at last */

/* The core writes these one after another, each 8 bytes. */
enum word { MAP, TOTAL, CMD, RESP, INJECT, SAR, PEERS, NAME, WORDS };

/* A peer in the address vector. */
struct known {
	char name[NAME_BYTES];
	int64_t id;			/* its place; -1: none is there */
	uint64_t addr;
	void *region;
	int pid_fd;
};

/* A peer in the region. */
struct entry {
	char name[NAME_BYTES];
	int64_t id;			/* -1: not connected */
	uint32_t sar_status;
	uint16_t name_sent;
};

struct head {
	const char *map;		/* where the core says that its address vector is */
	size_t stride;			/* of the entries */
	uint64_t peers;
};

static const char *plain(const char *name)
{
	const char *p = strstr(name, "://");

	return p ? p + 3 : name;
}

/* Is w where these words begin, in a region of at most that size? */
static bool ordered(const uint64_t *w, uint64_t size)
{
	unsigned i;

	if (w[TOTAL] > size || w[TOTAL] & (w[TOTAL] - 1) || w[CMD] < WORDS * sizeof(*w))
		return false;
	for (i = CMD; i < NAME; i++)
		if (w[i] >= w[i + 1])
			return false;
	return w[NAME] < w[TOTAL] && w[TOTAL] - w[NAME] >= NAME_BYTES &&
	       !((w[NAME] - w[PEERS]) % LNX_SHM_PLACES) &&
	       (w[NAME] - w[PEERS]) / LNX_SHM_PLACES >= sizeof(struct entry);
}

static bool read_head(const struct lnx_ep *ep, int fd, struct head *h)
{
	char name[LNX_SHM_NAME_BYTES], there[LNX_SHM_NAME_BYTES];
	uint64_t word[HEAD_WORDS];
	struct stat st;
	unsigned i;

	if (fstat(fd, &st) || pread(fd, word, sizeof(word), 0) != (ssize_t)sizeof(word) ||
	    (word[0] & 0xff) != REGION_VERSION || (int)(word[0] >> 32) != ep->local.pid)
		return false;
	lnx_addr_shm_name(ep->eid, ep->local.turn, name);
	/* Before them are a lock, and where it is mapped. */
	for (i = 2; i + WORDS <= HEAD_WORDS; i++) {
		const uint64_t *w = &word[i];
		size_t len = strlen(plain(name)) + 1;

		if (!ordered(w, (uint64_t)st.st_size) ||
		    pread(fd, there, len, (off_t)w[NAME]) != (ssize_t)len ||
		    memcmp(there, plain(name), len))
			continue;
		h->map = (const char *)(uintptr_t)w[MAP];
		h->peers = w[PEERS];
		h->stride = (w[NAME] - w[PEERS]) / LNX_SHM_PLACES;
		return h->map != NULL;
	}
	return false;
}

static bool all_known(const struct known *k)
{
	int64_t i;

	for (i = 0; i < (int64_t)LNX_SHM_PLACES; i++)
		if (k[i].id != -1 && k[i].id != i)
			return false;
	return true;
}

/*
 * A copy of the peers in the address vector, to be freed.  That the pointer leads there is
 * not certain: it is not followed, and what is copied is checked.
 */
static struct known *copy_known(const char *map)
{
	size_t size = LNX_SHM_PLACES * sizeof(struct known);
	struct known *k = malloc(size);
	unsigned at;

	for (at = 1; k && at < MAP_WORDS; at++)
		if (lnx_cma_own(map + at * sizeof(uint64_t), k, size) && all_known(k))
			return k;
	free(k);
	return NULL;
}

/* Open our own region.  Its descriptor, or -1: it is not as we know regions. */
static int open_region(const struct lnx_ep *ep, struct head *h)
{
	char path[LNX_SHM_PATH_BYTES];
	int fd;

	/* A child of a fork has a copy of the vector. */
	if (ep->local.pid != getpid())
		return -1;
	lnx_host_region_path(ep->eid, ep->local.turn, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || read_head(ep, fd, h))
		return fd;
	close(fd);
	return -1;
}

bool lnx_shm_places_found(const struct lnx_ep *ep)
{
	struct known *k;
	struct head h;
	int fd = open_region(ep, &h);

	if (fd < 0)
		return false;
	close(fd);
	k = copy_known(h.map);
	free(k);
	return k != NULL;
}

/* The place of the peer of that name; LNX_SHM_PLACES: it has none. */
static unsigned place_of(const struct known *k, const char *name)
{
	unsigned i;

	for (i = 0; i < LNX_SHM_PLACES; i++)
		if (k[i].id >= 0 && !strncmp(k[i].name, name, NAME_BYTES))
			break;
	return i;
}

/* The core writes the name there when it maps the region of the peer. */
static bool is_entry_of(int fd, uint64_t at, const char *name)
{
	struct entry e;

	return pread(fd, &e, sizeof(e), (off_t)at) == (ssize_t)sizeof(e) &&
	       e.id >= -1 && e.id < (int64_t)LNX_SHM_PLACES &&
	       (!e.name[0] || !strncmp(e.name, name, NAME_BYTES));
}

struct lnx_shm_place lnx_shm_place_of(const struct lnx_ep *ep, fi_addr_t core)
{
	struct lnx_shm_place place = { .fd = -1 };
	char name[NAME_BYTES] = "";
	size_t len = sizeof(name) - 1;
	unsigned i = LNX_SHM_PLACES;
	struct known *k;
	struct head h;

	/* Cut off at len, it ends with the last byte of the buffer still. */
	if (fi_av_lookup(ep->shm->av, core, name, &len))
		return place;
	place.fd = open_region(ep, &h);
	if (place.fd < 0)
		return place;
	k = copy_known(h.map);
	if (k)
		i = place_of(k, plain(name));
	free(k);
	place.entry = h.peers + i * h.stride;
	if (i < LNX_SHM_PLACES && is_entry_of(place.fd, place.entry, plain(name)))
		return place;
	close(place.fd);
	place.fd = -1;
	return place;
}

void lnx_shm_place_vacate(struct lnx_shm_place place)
{
	struct entry e = { .id = -1 };
	size_t from = offsetof(struct entry, id);
	size_t len = offsetof(struct entry, name_sent) + sizeof(e.name_sent) - from;

	/* It is mapped shared: the core sees what is written to the file. */
	if (pwrite(place.fd, (const char *)&e + from, len, (off_t)(place.entry + from)) !=
	    (ssize_t)len)
		LNX_WARN(FI_LOG_AV, "cannot write to the region of shm\n");
	close(place.fd);
}
