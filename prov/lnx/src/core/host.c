/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes share this host's memory with us, and random ids.  Declared in
 * core/open.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/open.h"

#define BOOT_ID		"/proc/sys/kernel/random/boot_id"
#define PID_NS		"/proc/self/ns/pid"

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3ULL;
	return h;
}

uint64_t lnx_host_identity(const struct lnx_conf *conf)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	struct stat st;
	char boot[64];
	ssize_t n;
	int fd;

	if (conf->host_id) {
		h = hash_bytes(h, conf->host_id, strlen(conf->host_id));
		return h ? h : 1;
	}
	fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, boot, sizeof(boot));
	close(fd);
	if (n <= 0 || stat(LNX_SHM_DIR, &st))
		return 0;
	h = hash_bytes(h, boot, (size_t)n);
	h = hash_bytes(h, &st.st_dev, sizeof(st.st_dev));
	h = hash_bytes(h, &st.st_ino, sizeof(st.st_ino));
	if (stat(PID_NS, &st))
		return 0;
	h = hash_bytes(h, &st.st_ino, sizeof(st.st_ino));
	return h ? h : 1;
}

void lnx_host_region_path(uint64_t eid, unsigned turn, char path[LNX_SHM_PATH_BYTES])
{
	char name[LNX_SHM_NAME_BYTES];
	const char *file;

	lnx_addr_shm_name(eid, turn, name);
	file = strstr(name, "://");
	snprintf(path, LNX_SHM_PATH_BYTES, "%s/%s", LNX_SHM_DIR,
		 file ? file + 3 : name);
}

/* What the link of a region contains: its file, in the same directory. */
static const char *link_text(const char path[LNX_SHM_PATH_BYTES])
{
	return path + sizeof(LNX_SHM_DIR);
}

unsigned lnx_host_shm_turn(uint64_t eid)
{
	char path[LNX_SHM_PATH_BYTES], found[LNX_SHM_PATH_BYTES] = "";
	unsigned turn;

	lnx_host_region_path(eid, 0, path);
	if (readlink(path, found, sizeof(found) - 1) < 0)
		return 0;
	/* No other file: any process may have made it. */
	for (turn = LNX_SHM_TURNS; turn; turn--) {
		lnx_host_region_path(eid, turn, path);
		if (!strcmp(found, link_text(path)))
			break;
	}
	return turn;
}

void lnx_host_shm_path(uint64_t eid, char path[LNX_SHM_PATH_BYTES])
{
	lnx_host_region_path(eid, lnx_host_shm_turn(eid), path);
}

LNX_COLD void lnx_host_take_turn(struct lnx_ep *ep)
{
	static unsigned opened;
	unsigned last = lnx_host_shm_turn(ep->eid), turn;
	char path[LNX_SHM_PATH_BYTES];

	/* Not the last one: cores of peers may still be told of it, lose what they have
	 * mapped, and map it again. */
	for (turn = 0; turn <= LNX_SHM_TURNS; turn++) {
		lnx_host_region_path(ep->eid, turn, path);
		if (!last || turn != last)
			unlink(path);
	}
	if (ep->native)
		return;
	/* Its link was removed: most likely it had another one. */
	if (!last)
		last = (unsigned)getpid() +
		       __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
	ep->local.turn = (uint8_t)(last % LNX_SHM_TURNS + 1);
}

LNX_COLD int lnx_host_show_region(const struct lnx_ep *ep)
{
	char path[LNX_SHM_PATH_BYTES], name[LNX_SHM_PATH_BYTES];

	if (!ep->local.turn)
		return 0;
	lnx_host_region_path(ep->eid, ep->local.turn, path);
	lnx_host_region_path(ep->eid, 0, name);
	if (!symlink(link_text(path), name))
		return 0;
	if (errno == EEXIST)
		return -FI_EADDRINUSE;
	LNX_WARN(FI_LOG_EP_CTRL, "%s: %s: no local peer finds this endpoint\n", name,
		 strerror(errno));
	return 0;
}

LNX_COLD void lnx_host_hide_region(const struct lnx_ep *ep)
{
	char path[LNX_SHM_PATH_BYTES];
	unsigned turn;

	if (!ep->local.turn || lnx_host_shm_turn(ep->eid) != ep->local.turn)
		return;
	/* The core removes its file. */
	for (turn = 0; turn <= LNX_SHM_TURNS; turn++) {
		lnx_host_region_path(ep->eid, turn, path);
		if (turn != ep->local.turn)
			unlink(path);
	}
}

bool lnx_host_shm_free(uint64_t *bytes)
{
	struct statvfs st;

	if (statvfs(LNX_SHM_DIR, &st) || !st.f_blocks)
		return false;
	*bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return true;
}

/* The provider wants room for a file of this size for each processor. */
#define SHM_FILE_BYTES	(16ull << 20)

const char *lnx_host_shm_why(char *buf, size_t size)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t room, wants = SHM_FILE_BYTES * (cpus > 0 ? (uint64_t)cpus : 1);

	*buf = '\0';
	if (access(LNX_SHM_DIR, F_OK))
		snprintf(buf, size, " (there is no " LNX_SHM_DIR ")");
	else if (lnx_host_shm_free(&room) && room < wants)
		snprintf(buf, size, " (" LNX_SHM_DIR " has %llu MiB free; shm wants %llu MiB)",
			 (unsigned long long)room >> 20,
			 (unsigned long long)wants >> 20);
	return buf;
}

/* Opened as the core opens it: trying is the test for permission. */
static int region_owner(uint64_t eid, unsigned turn, struct stat *st)
{
	char path[LNX_SHM_PATH_BYTES];
	int fd, err = 0;

	lnx_host_region_path(eid, turn, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno;
	if (fstat(fd, st))
		err = errno;
	close(fd);
	return err;
}

void lnx_host_own_region(struct lnx_ep *ep)
{
	struct stat st;

	ep->local.user = region_owner(ep->eid, ep->local.turn, &st) ? geteuid() : st.st_uid;
}

enum lnx_host_meet lnx_host_meet(const struct lnx_ep *ep, uint64_t eid)
{
	struct stat st;
	int err = region_owner(eid, lnx_host_shm_turn(eid), &st);

	if (err)
		return err == EACCES || err == EPERM ? LNX_HOST_FOREIGN :
						       LNX_HOST_ABSENT;
	/*
	 * The owner of one opens the other.  A name space shows all users that it does
	 * not have as one, but then the open above has failed.
	 */
	return st.st_uid == ep->local.user && (st.st_mode & 0600) == 0600 ?
	       LNX_HOST_MEETS : LNX_HOST_FOREIGN;
}

bool lnx_host_same_user(const struct lnx_ep *ep, int pid)
{
	unsigned fsuid = ep->local.user;
	char path[40], line[256];
	FILE *f;

	/* Then it may be a number of another name space. */
	if (ep->conf->host_id || pid == ep->local.pid)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return true;		/* hidden: the owner of its file must be
					 * enough */
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %*u %*u %*u %u", &fsuid) == 1)
			break;
	fclose(f);
	return fsuid == ep->local.user;
}

int lnx_host_random(void *buf, size_t len)
{
	ssize_t n;

	/* Interrupted by a signal before the kernel has random numbers. */
	do
		n = getrandom(buf, len, 0);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 0;
	LNX_WARN(FI_LOG_EP_CTRL,
		 "the kernel gives no random numbers (getrandom: %s): identities and keys could be guessed, so nothing is opened\n",
		 n < 0 ? strerror(errno) : "too few");
	return -FI_EIO;
}

uint64_t lnx_host_random_id(void)
{
	uint64_t id = 0;

	while (!id)
		if (lnx_host_random(&id, sizeof(id)))
			return 0;
	return id;
}
