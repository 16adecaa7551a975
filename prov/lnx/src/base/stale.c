/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which segments of dead processes are kept.  See stale.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/interval.h"
#include "base/proc.h"
#include "base/stale.h"
#include "base/statefile.h"
#include "lnx_state.h"

#define FILES_MAX	4096u	/* of a user that are looked at */

struct dead {
	char name[LNX_STATEFILE_NAME];
	uint64_t age;			/* ns since it was written last */
	uint64_t bytes;
};

struct cleaner {
	int dir;
	uid_t uid;
	uint64_t now, wall, pid_ns;
	pid_t self;
	struct dead *dead;		/* those that may stay */
	unsigned n, room;
};

/* The front of a file without the rest; false: it has none. */
static bool read_header(int fd, struct lnx_state_header *h)
{
	return pread(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) &&
	       !memcmp(h->magic, LNX_STATE_MAGIC, sizeof(h->magic)) &&
	       h->byte_order == LNX_STATE_ORDER && h->version == LNX_STATE_VERSION;
}

/* CLOCK_MONOTONIC may be another one in a container. */
static uint64_t age_elsewhere(const struct cleaner *c, const struct lnx_state_header *h)
{
	return lnx_ns_since(c->wall, h->opened_wall_ns + lnx_ns_since(h->seen_ns,
								      h->opened_ns));
}

static void may_stay(struct cleaner *c, const char *name, uint64_t age, uint64_t bytes)
{
	struct dead *d;

	if (age > LNX_STATE_KEEP_NS) {
		unlinkat(c->dir, name, 0);
		return;
	}
	if (c->n == c->room) {
		d = realloc(c->dead, (2 * c->room + 16) * sizeof(*d));
		if (!d)
			return;		/* the next process may have more memory */
		c->dead = d;
		c->room = 2 * c->room + 16;
	}
	d = &c->dead[c->n++];
	strncpy(d->name, name, sizeof(d->name) - 1);
	d->name[sizeof(d->name) - 1] = '\0';
	d->age = age;
	d->bytes = bytes;
}

static void look_at(void *arg, const char *name, const struct lnx_statefile *f,
		    bool temporary)
{
	bool ended = lnx_proc_life(f->pid, f->started) == LNX_PROC_ENDED;
	struct cleaner *c = arg;
	struct lnx_state_header h;
	struct stat st;
	bool valid;
	int fd;

	if (f->pid == c->self && !ended)
		return;
	fd = lnx_statefile_open(c->dir, name, c->uid, O_RDONLY);
	if (fd < 0)
		return;
	valid = read_header(fd, &h) && !temporary;
	if (fstat(fd, &st))
		memset(&st, 0, sizeof(st));
	close(fd);
	if (!valid) {
		/* Its process is making it, or was killed then. */
		if (ended && lnx_ns_since(c->wall, (uint64_t)st.st_mtime * LNX_NS_PER_S) >
			     LNX_STATE_KEEP_NS)
			unlinkat(c->dir, name, 0);
	} else if (h.pid_ns != c->pid_ns) {
		if (age_elsewhere(c, &h) > LNX_STATE_KEEP_NS)
			unlinkat(c->dir, name, 0);
	} else if (ended) {
		may_stay(c, name, lnx_ns_since(c->now, h.seen_ns),
			 (uint64_t)st.st_blocks * 512);
	}
}

static int newest_first(const void *a, const void *b)
{
	const struct dead *x = a, *y = b;

	if (x->age != y->age)
		return x->age < y->age ? -1 : 1;
	return strcmp(x->name, y->name);
}

void lnx_stale_clean(int dir, uid_t uid, uint64_t now, uint64_t wall)
{
	struct cleaner c = {
		.dir = dir, .uid = uid, .now = now, .wall = wall,
		.pid_ns = lnx_proc_pid_ns(), .self = getpid(),
	};
	uint64_t bytes = 0;
	unsigned i;

	lnx_statefile_each(dir, FILES_MAX, look_at, &c);
	if (c.n)
		qsort(c.dead, c.n, sizeof(*c.dead), newest_first);
	for (i = 0; i < c.n; i++) {
		bytes += c.dead[i].bytes;
		if (i && (i >= LNX_STALE_MAX || bytes > LNX_STALE_BYTES))
			unlinkat(dir, c.dead[i].name, 0);
	}
	free(c.dead);
}
