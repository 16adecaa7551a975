/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state segment of this process.  See state.h.
 *
 * The file is mapped in pieces: its front, and each area.  A piece that was reserved
 * with posix_fallocate cannot lack memory when it is written.  No descriptor is kept:
 * applications close descriptors that they do not know, and then the number may be that
 * of another file; the file is opened again by its name when it has to grow.
 */
#include "ctl/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/interval.h"
#include "base/lock.h"
#include "base/proc.h"
#include "base/stale.h"
#include "base/stats.h"
#include "base/statefile.h"
#include "core/health_board.h"
#include "core/warn_once.h"
#include "fi.h"
#include "policy/class.h"
#include "prov.h"

#define COPIES_MAX	8u	/* libraries of one process */
#define TRIES		4u

const char *lnx_state_root = LNX_STATE_DIR;

static struct segment {
	struct lnx_process_lock lock;	/* of all members, but see `front` */
	pid_t pid;			/* process that it belongs to; 0: there is none */
	uid_t uid;
	unsigned users;			/* endpoints */
	uint32_t next;			/* number of the next one */
	bool failed;			/* it cannot be had; the reason was logged */
	char name[LNX_STATEFILE_NAME];
	dev_t dev;
	ino_t ino;
	uint64_t end;			/* of the file */
	size_t page;
	/* Constant while there are users. */
	struct lnx_state_front *front;
	size_t front_len;		/* that is mapped */
	struct lnx_state_area schema;
	/* Of the directory: 1 + owner, or 0: the entry is free. */
	uint64_t owner[LNX_STATE_TABLES];
} segment = { .lock = LNX_PROCESS_LOCK_INIT };

/* ---- records ---- */

/* Whatever the counter is, odd until end(), as that of a process which was killed. */
static void begin(uint32_t *seq)
{
	__atomic_store_n(seq, __atomic_load_n(seq, __ATOMIC_RELAXED) | 1, __ATOMIC_RELAXED);
	lnx_fence();
}

static void end(uint32_t *seq)
{
	uint32_t n = __atomic_load_n(seq, __ATOMIC_RELAXED) | 1;

	__atomic_store_n(seq, n + 1, __ATOMIC_RELEASE);
}

void lnx_state_put(void *record, void *value, size_t len)
{
	struct lnx_state_record *to = record, *from = value;

	begin(&to->seq);
	/* All but the counter. */
	memcpy(&to->walk, &from->walk, len - offsetof(struct lnx_state_record, walk));
	end(&to->seq);
}

/* ---- the directory ---- */

static void write_entry(struct lnx_state_table *to, const struct lnx_state_table *from)
{
	begin(&to->seq);
	memcpy(&to->kind, &from->kind, sizeof(*to) - offsetof(struct lnx_state_table, kind));
	end(&to->seq);
}

bool lnx_state_table_add(struct lnx_state_own *table)
{
	unsigned i = 0;

	lnx_process_lock(&segment.lock);
	while (i < LNX_STATE_TABLES && segment.owner[i])
		i++;
	table->entry = NULL;
	if (segment.front && i < LNX_STATE_TABLES) {
		segment.owner[i] = 1 + (uint64_t)table->t.owner;
		table->entry = &segment.front->table[i];
		write_entry(table->entry, &table->t);
	}
	lnx_process_unlock(&segment.lock);
	return table->entry;
}

void lnx_state_table_put(const struct lnx_state_own *table)
{
	write_entry(table->entry, &table->t);
}

/* ---- the file ---- */

/* The lock is held.  A child of a fork begins with nothing. */
static void forget_parent(void)
{
	if (!segment.pid || segment.pid == getpid())
		return;
	/* It stays mapped: endpoints of the parent, which the child has copies of, refer
	 * to it. */
	segment.front = NULL;
	segment.pid = 0;
	segment.users = 0;
	segment.failed = false;
}

static void lock_segment(void)
{
	lnx_process_lock(&segment.lock);
	forget_parent();
}

static int reserve(int fd, uint64_t at, size_t len)
{
	int ret;

	do
		ret = posix_fallocate(fd, (off_t)at, (off_t)len);
	while (ret == EINTR);
	return -ret;
}

/* Append len bytes to the file, and map them. */
static int append(int fd, size_t len, struct lnx_state_area *area)
{
	void *mem;
	int ret;

	len = (len + segment.page - 1) & ~(segment.page - 1);
	ret = reserve(fd, segment.end, len);
	if (ret)
		return ret;
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)segment.end);
	if (mem == MAP_FAILED)
		return -errno;
	*area = (struct lnx_state_area){ .mem = mem, .offset = segment.end,
					 .len = len };
	segment.end += len;
	return 0;
}

static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == segment.dev &&
	       st.st_ino == segment.ino;
}

/* The file again; -ENOENT: it was removed, or another one has its name. */
static int reopen(int *dir)
{
	int fd;

	*dir = lnx_statefile_dir(lnx_state_root, segment.uid, false);
	if (*dir < 0)
		return *dir;
	fd = lnx_statefile_open(*dir, segment.name, segment.uid, O_RDWR);
	if (fd >= 0 && !is_ours(fd)) {
		close(fd);
		fd = -ENOENT;
	}
	if (fd < 0)
		close(*dir);
	return fd;
}

/* ---- making it ---- */

static void cpu_list(char *buf, size_t size, uint32_t *count)
{
	cpu_set_t set;
	size_t n = 0;
	int i, end;

	buf[0] = '\0';
	*count = 0;
	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	*count = (uint32_t)CPU_COUNT(&set);
	for (i = 0; i < CPU_SETSIZE && n + 16 < size; i = end + 1) {
		for (end = i; end < CPU_SETSIZE && CPU_ISSET(end, &set); end++)
			;
		if (end == i)
			continue;
		n += (size_t)snprintf(buf + n, size - n, end > i + 1 ?
				      "%s%d-%d" : "%s%d", n ? "," : "", i,
				      end - 1);
	}
}

/* The file that this code was loaded from. */
static void put_module(char module[LNX_STATE_MODULE])
{
	char *path;
	Dl_info d;

	if (!dladdr(&segment, &d))
		return;
	path = d.dli_fname ? realpath(d.dli_fname, NULL) : NULL;
	if (path && strlen(path) < LNX_STATE_MODULE)
		lnx_warn_printable(path, LNX_STATE_MODULE, module, LNX_STATE_MODULE);
	free(path);
}

static void fill_header(struct lnx_state_header *h, uint64_t started)
{
	char host[LNX_STATE_NAME + 1];

	*h = (struct lnx_state_header){
		.version = LNX_STATE_VERSION, .byte_order = LNX_STATE_ORDER,
		.header_size = sizeof(struct lnx_state_front),
		.table_size = sizeof(struct lnx_state_table),
		.ntable = LNX_STATE_TABLES,
		.tables = offsetof(struct lnx_state_front, table),
		.mailbox = offsetof(struct lnx_state_front, mailbox),
		.mailbox_size = sizeof(struct lnx_state_mailbox),
		.pid = (uint32_t)getpid(), .uid = (uint32_t)segment.uid,
		.started = started, .pid_ns = lnx_proc_pid_ns(),
		.opened_ns = lnx_clock_ns(), .opened_wall_ns = lnx_clock_wall_ns(),
		.fi_version = fi_version(),
	};
	memcpy(h->magic, LNX_STATE_MAGIC, sizeof(h->magic));
	snprintf(h->lnx, sizeof(h->lnx), "%s", PACKAGE_VERSION);
	if (!gethostname(host, sizeof(host))) {
		host[sizeof(host) - 1] = '\0';
		lnx_warn_printable(host, sizeof(host), h->host, sizeof(h->host));
	}
	lnx_proc_name(getpid(), h->program, sizeof(h->program));
	snprintf(h->rank, sizeof(h->rank), "%s", lnx_global_job_rank());
	lnx_warn_printable(lnx_global_job_id(), sizeof(h->job), h->job, sizeof(h->job));
	cpu_list(h->cpus, sizeof(h->cpus), &h->ncpu);
	put_module(h->module);
}

static void name(struct lnx_state_counter *c, const char *text, const char *help)
{
	snprintf(c->name, sizeof(c->name), "%s", text);
	snprintf(c->help, sizeof(c->help), "%s", help);
}

static struct lnx_state_table names_at(enum lnx_state_kind kind, unsigned first,
				       unsigned n)
{
	const uint32_t size = sizeof(struct lnx_state_counter);

	return (struct lnx_state_table){
		.kind = (uint16_t)kind, .record_size = size, .capacity = n,
		.count = n, .total = n,
		.offset = segment.schema.offset + (uint64_t)first * size,
	};
}

/* The names of counters and classes. */
static int add_schema(int fd)
{
	unsigned nclass = LNX_CLASS_COUNT - 1, i;
	struct lnx_state_counter *c;
	int ret;

	ret = append(fd, (lnx_nstats + nclass) * sizeof(*c), &segment.schema);
	if (ret)
		return ret;
	c = segment.schema.mem;
	for (i = 0; i < lnx_nstats; i++)
		name(&c[i], lnx_stat_rows[i].name, lnx_stat_rows[i].help);
	for (i = 0; i < nclass; i++)
		name(&c[lnx_nstats + i], lnx_class_rows[1 + i].name,
		     lnx_class_rows[1 + i].help);
	memset(segment.owner, 0, sizeof(segment.owner));
	segment.front->table[0] = names_at(LNX_STATE_SCHEMA, 0, lnx_nstats);
	segment.front->table[1] = names_at(LNX_STATE_CLASS, lnx_nstats, nclass);
	segment.owner[0] = segment.owner[1] = 1;
	return 0;
}

/* Is a file of that name mapped here?  If not, it is of a program that this process was
 * before it executed another one. */
static bool is_mapped(const char *name)
{
	char line[PATH_MAX + 128], want[LNX_STATEFILE_PATH];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return true;
	snprintf(want, sizeof(want), "/lnx-%u/%s\n", (unsigned)segment.uid, name);
	while (!found && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, want);

		found = at && !at[strlen(want)];
	}
	fclose(f);
	return found;
}

/* Give the new file a name of its own. */
static int publish(int dir, const char *temporary, struct lnx_statefile *f)
{
	for (f->copy = 0; f->copy < COPIES_MAX; f->copy++) {
		lnx_statefile_print(f, segment.name);
		if (!linkat(dir, temporary, dir, segment.name, 0))
			return 0;
		if (errno != EEXIST)
			return -errno;
		if (is_mapped(segment.name))
			continue;
		if (unlinkat(dir, segment.name, 0) ||
		    linkat(dir, temporary, dir, segment.name, 0))
			return -errno;
		return 0;
	}
	return -EEXIST;
}

static void unmap(void)
{
	munmap(segment.front, segment.front_len);
	if (segment.schema.mem)
		munmap(segment.schema.mem, segment.schema.len);
	segment.front = NULL;
	segment.schema.mem = NULL;
}

static int fill(int fd)
{
	struct lnx_state_area front;
	struct stat st;
	uint64_t started;
	int ret;

	if (lnx_proc_start_time(getpid(), &started) <= 0)
		started = 0;
	if (fchmod(fd, 0600) || fstat(fd, &st))
		return -errno;
	segment.dev = st.st_dev;
	segment.ino = st.st_ino;
	segment.end = 0;
	ret = append(fd, sizeof(*segment.front), &front);
	if (ret)
		return ret;
	segment.front = front.mem;
	segment.front_len = front.len;
	segment.schema.mem = NULL;
	ret = add_schema(fd);
	if (ret) {
		unmap();
		return ret;
	}
	fill_header(&segment.front->header, started);
	return 0;
}

static int make_in(int dir)
{
	struct lnx_statefile f = { .pid = getpid() };
	char temporary[LNX_STATEFILE_NAME + sizeof(LNX_STATEFILE_NEW)];
	int fd, ret;

	if (lnx_proc_start_time(f.pid, &f.started) <= 0)
		f.started = 0;
	lnx_statefile_print(&f, segment.name);
	snprintf(temporary, sizeof(temporary), LNX_STATEFILE_NEW "%s", segment.name);
	unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = fill(fd);
	close(fd);
	if (!ret) {
		ret = publish(dir, temporary, &f);
		if (ret)
			unmap();
	}
	unlinkat(dir, temporary, 0);
	return ret;
}

static const char *reason(int err)
{
	switch (err) {
	case -EPERM:
		return "it is no directory of this user that others cannot use; remove it";
	case -ENOSPC:
		return "there is no room; lnxctl will not see this process";
	default:
		return strerror(-err);
	}
}

static int try_make(void)
{
	int dir = lnx_statefile_dir(lnx_state_root, segment.uid, true), ret;

	if (dir < 0)
		return dir;
	lnx_stale_clean(dir, segment.uid, lnx_clock_ns(), lnx_clock_wall_ns());
	lnx_health_board_clean(dir, segment.uid, lnx_clock_ns());
	ret = make_in(dir);
	close(dir);
	return ret;
}

static bool make(void)
{
	unsigned tries = TRIES;
	int ret;

	segment.uid = geteuid();
	segment.page = (size_t)sysconf(_SC_PAGESIZE);
	/* Another process may remove the directory, which is empty, at the same time. */
	do
		ret = try_make();
	while (ret == -ENOENT && --tries);
	if (ret) {
		lnx_warn_once(false, "no state segment in %s/lnx-%u: %s "
			      "(FI_LNX_STATE=0 does without)", lnx_state_root,
			      (unsigned)segment.uid, reason(ret));
		segment.failed = true;
		return false;
	}
	segment.pid = getpid();
	segment.next = 1;
	return true;
}

/* ---- endpoints ---- */

uint32_t lnx_state_attach(void)
{
	uint32_t number = 0;

	lock_segment();
	if (segment.front || (!segment.failed && make())) {
		segment.users++;
		number = segment.next++;
	}
	lnx_process_unlock(&segment.lock);
	return number;
}

static void remove_file(void)
{
	int dir, fd = reopen(&dir);

	if (fd >= 0) {
		unlinkat(dir, segment.name, 0);
		lnx_health_board_clean(dir, segment.uid, lnx_clock_ns());
		close(fd);
		close(dir);
	}
	/* An empty directory can go too; another process may be about to use it, and
	 * makes it again then. */
	dir = open(lnx_state_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		char name[32];

		snprintf(name, sizeof(name), "lnx-%u", (unsigned)segment.uid);
		unlinkat(dir, name, AT_REMOVEDIR);
		close(dir);
	}
}

void lnx_state_detach(uint32_t number)
{
	const struct lnx_state_table none = { .kind = LNX_STATE_FREE };
	unsigned i;

	lock_segment();
	for (i = 0; segment.front && i < LNX_STATE_TABLES; i++) {
		if (segment.owner[i] != 1 + (uint64_t)number)
			continue;
		segment.owner[i] = 0;
		write_entry(&segment.front->table[i], &none);
	}
	if (segment.front && !--segment.users) {
		remove_file();
		unmap();
		segment.pid = 0;
	}
	lnx_process_unlock(&segment.lock);
}

struct lnx_state_front *lnx_state_front_of(void)
{
	return segment.front;
}

bool lnx_state_area_get(struct lnx_state_area *area, size_t len)
{
	int dir, fd, ret;

	area->mem = NULL;
	lnx_process_lock(&segment.lock);
	ret = fd = reopen(&dir);
	if (fd >= 0) {
		ret = append(fd, len, area);
		close(fd);
		close(dir);
	}
	lnx_process_unlock(&segment.lock);
	if (ret < 0)
		lnx_warn_once(false, "the state segment of this process cannot "
			      "grow: %s; lnxctl sees a part of it",
			      strerror(-ret));
	return ret >= 0;
}

void lnx_state_area_put(struct lnx_state_area *area, bool ours)
{
	if (!area->mem)
		return;
	/* The memory of the file goes too. */
	if (ours)
		madvise(area->mem, area->len, MADV_REMOVE);
	munmap(area->mem, area->len);
	area->mem = NULL;
}

void lnx_state_fini(void)
{
	lock_segment();
	if (segment.front) {
		remove_file();
		/* Endpoints that are still open may write into it until the end. */
		segment.front = NULL;
	}
	segment.pid = 0;
	segment.users = 0;
	segment.failed = false;
	lnx_process_unlock(&segment.lock);
}
