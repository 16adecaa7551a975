/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds and opens state segments.  See find.h. */
#include "lnxctl/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/interval.h"
#include "base/span.h"

#define FILES_MAX	65536u

/* ---- finding ---- */

struct finder {
	const char *root;
	uid_t uid;
	pid_t pid;
	struct lnx_procs *out;
	bool failed;
};

static void found(void *arg, const char *name, const struct lnx_statefile *f,
		  bool temporary)
{
	struct finder *w = arg;
	struct lnx_procs *out = w->out;
	struct lnx_proc *more, *p;

	if (temporary || w->failed || (w->pid && f->pid != w->pid))
		return;
	more = realloc(out->proc, (out->n + 1) * sizeof(*more));
	if (!more) {
		w->failed = true;
		return;
	}
	out->proc = more;
	p = &more[out->n++];
	memset(p, 0, sizeof(*p));
	p->file = *f;
	p->uid = w->uid;
	p->fd = -1;
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->path, sizeof(p->path), "%s/lnx-%u/%s", w->root, (unsigned)w->uid,
		 name);
}

static int find_of(struct finder *w, uid_t uid)
{
	int dir = lnx_statefile_dir(w->root, uid, false), ret;

	if (dir < 0)
		return dir;
	w->uid = uid;
	ret = lnx_statefile_each(dir, FILES_MAX, found, w);
	close(dir);
	return w->failed ? -ENOMEM : ret;
}

/* "lnx-1000" */
static bool uid_of(const char *name, uid_t *uid)
{
	uint64_t v;
	struct lnx_span digits = { name + 4, strlen(name) - LNX_MIN(strlen(name), 4ul) };

	/* Regions of shared memory have 16 hex digits there. */
	if (strncmp(name, "lnx-", 4) || digits.len > 10 ||
	    !lnx_span_uint(digits, &v) || v > UINT32_MAX)
		return false;
	*uid = (uid_t)v;
	return true;
}

static int find_all(struct finder *w)
{
	DIR *d = opendir(w->root);
	struct dirent *e;
	uid_t uid;
	int ret = 0;

	if (!d)
		return -errno;
	while (ret != -ENOMEM && (e = readdir(d))) {
		if (!uid_of(e->d_name, &uid))
			continue;
		ret = find_of(w, uid);
		w->out->denied += ret == -EACCES || ret == -EPERM;
	}
	closedir(d);
	return ret == -ENOMEM ? ret : 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct lnx_proc *x = a, *y = b;

	if (x->file.pid != y->file.pid)
		return x->file.pid < y->file.pid ? -1 : 1;
	if (x->file.started != y->file.started)
		return x->file.started < y->file.started ? -1 : 1;
	return (int)x->file.copy - (int)y->file.copy;
}

int lnx_procs_find(const char *root, bool all_users, pid_t pid, struct lnx_procs *out,
		   char *why, size_t why_size)
{
	struct finder w = { .root = root, .pid = pid, .out = out };
	int ret;

	memset(out, 0, sizeof(*out));
	ret = all_users ? find_all(&w) : find_of(&w, geteuid());
	if (ret == -ENOENT)
		ret = 0;		/* no process of the user */
	if (ret == -EPERM)
		snprintf(why, why_size, "%s/lnx-%u is not a directory that belongs to "
			 "this user and that others cannot use: remove it", root,
			 (unsigned)geteuid());
	else if (ret)
		snprintf(why, why_size, "%s: %s", root, strerror(-ret));
	if (ret) {
		lnx_procs_free(out);
		return ret;
	}
	if (out->n)
		qsort(out->proc, out->n, sizeof(*out->proc), by_pid);
	return 0;
}

int lnx_procs_file(const char *path, struct lnx_procs *out, char *why, size_t why_size)
{
	struct lnx_proc *p = calloc(1, sizeof(*p));
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (!p) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	out->proc = p;
	out->n = 1;
	snprintf(p->path, sizeof(p->path), "%s", path);
	p->life = LNX_PROC_ENDED;
	p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0 || fstat(p->fd, &st) || !S_ISREG(st.st_mode)) {
		int err = p->fd < 0 ? errno : EINVAL;

		snprintf(why, why_size, "%s: %s", path, p->fd < 0 ? strerror(err) :
			 "it is not a file");
		lnx_procs_free(out);
		return -err;
	}
	p->size = (uint64_t)st.st_size;
	if (lnx_proc_read(p)) {
		int err = p->err;

		snprintf(why, why_size, "%s: %s", path, p->why);
		lnx_procs_free(out);
		return err;
	}
	p->file.pid = (pid_t)LNX_MIN(p->snap->h.pid, (uint32_t)INT_MAX);
	p->file.started = p->snap->h.started;
	p->uid = (uid_t)p->snap->h.uid;
	return 0;
}

void lnx_procs_free(struct lnx_procs *procs)
{
	unsigned i;

	for (i = 0; i < procs->n; i++) {
		if (procs->proc[i].fd >= 0)
			close(procs->proc[i].fd);
		lnx_snap_free(procs->proc[i].snap);
	}
	free(procs->proc);
	memset(procs, 0, sizeof(*procs));
}

/* ---- one process ---- */

static int cannot(struct lnx_proc *p, int err)
{
	p->err = err;
	snprintf(p->why, sizeof(p->why), "%s: %s", p->path, err == -EPERM ?
		 "it is not a file of that user that others cannot read" :
		 strerror(-err));
	return err;
}

int lnx_proc_open(struct lnx_proc *p)
{
	char root[LNX_STATEFILE_PATH];
	struct stat st;
	char *slash;
	int dir;

	if (p->fd >= 0)
		return 0;
	/* The directory of the user is checked again with each file in it. */
	snprintf(root, sizeof(root), "%s", p->path);
	slash = strrchr(root, '/');
	*slash = '\0';
	slash = strrchr(root, '/');
	*slash = '\0';
	dir = lnx_statefile_dir(root, p->uid, false);
	if (dir < 0)
		return cannot(p, dir);
	p->fd = lnx_statefile_open(dir, p->name, p->uid, O_RDWR);
	p->writable = p->fd >= 0;
	if (p->fd == -EACCES || p->fd == -EROFS)
		p->fd = lnx_statefile_open(dir, p->name, p->uid, O_RDONLY);
	close(dir);
	if (p->fd < 0) {
		int err = p->fd;

		p->fd = -1;
		return cannot(p, err);
	}
	p->life = lnx_proc_life(p->file.pid, p->file.started);
	if (!fstat(p->fd, &st))
		p->size = (uint64_t)st.st_size;
	return 0;
}

static ssize_t read_fd(void *arg, void *buf, size_t len, uint64_t at)
{
	const struct lnx_proc *p = arg;
	ssize_t n;

	do
		n = pread(p->fd, buf, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n;
}

int lnx_proc_read(struct lnx_proc *p)
{
	struct lnx_source src = {
		.read = read_fd, .arg = p, .live = p->life != LNX_PROC_ENDED,
	};
	struct lnx_snap *snap = NULL;
	struct stat st;
	char why[160];
	int ret;

	if (!fstat(p->fd, &st))
		p->size = (uint64_t)st.st_size;
	src.size = p->size;
	ret = lnx_snap_read(&src, &snap, why, sizeof(why));
	if (ret) {
		p->err = ret;
		snprintf(p->why, sizeof(p->why), "%s", why);
		return ret;
	}
	/* Where it was made the number may be another process's. */
	if (snap->h.pid_ns && lnx_proc_pid_ns() && snap->h.pid_ns != lnx_proc_pid_ns() &&
	    p->name[0])
		p->life = LNX_PROC_UNKNOWN;
	lnx_snap_free(p->snap);
	p->snap = snap;
	p->err = 0;
	return 0;
}

bool lnx_proc_wake(struct lnx_proc *p)
{
	struct lnx_state_header h;
	uint64_t at;
	uint32_t look;

	if (!p->writable || p->life == LNX_PROC_ENDED ||
	    pread(p->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.magic, LNX_STATE_MAGIC, sizeof(h.magic)) ||
	    h.version != LNX_STATE_VERSION)
		return false;
	at = h.mailbox + offsetof(struct lnx_state_mailbox, look);
	if (h.mailbox_size < sizeof(look) || at + sizeof(look) > p->size)
		return false;
	p->woken_ns = lnx_clock_ns();
	if (pread(p->fd, &look, sizeof(look), (off_t)at) != (ssize_t)sizeof(look))
		return false;
	p->look = ++look;
	return pwrite(p->fd, &look, sizeof(look), (off_t)at) == (ssize_t)sizeof(look);
}

bool lnx_proc_ep_fresh(const struct lnx_proc *p, const struct lnx_snap_ep *e, bool peers)
{
	return e->ep.seen_ns >= p->woken_ns &&
	       (int32_t)((uint32_t)e->ep.look - p->look) >= 0 &&
	       (!peers || e->walk_ns >= p->woken_ns);
}

bool lnx_proc_fresh(const struct lnx_proc *p, bool peers)
{
	unsigned i;

	if (!p->snap)
		return false;
	for (i = 0; i < p->snap->nep; i++)
		if (!lnx_proc_ep_fresh(p, &p->snap->ep[i], peers))
			return false;
	return true;
}

/* lives: also look whether those that say nothing live on. */
static bool all_fresh(struct lnx_procs *procs, const bool *woken, bool peers, bool lives)
{
	bool all = true;
	unsigned i;

	for (i = 0; i < procs->n; i++) {
		struct lnx_proc *p = &procs->proc[i];

		if (!woken[i] || p->life == LNX_PROC_ENDED || lnx_proc_fresh(p, peers))
			continue;
		if (lives && lnx_proc_life(p->file.pid, p->file.started) == LNX_PROC_ENDED) {
			p->life = LNX_PROC_ENDED;
			lnx_proc_read(p);
			continue;
		}
		if (lnx_proc_read(p) || !lnx_proc_fresh(p, peers))
			all = false;
	}
	return all;
}

/* There may be more dead processes than descriptors; a copy that -f names stays open. */
static void read_dead(struct lnx_proc *p)
{
	lnx_proc_read(p);
	if (!p->name[0] || p->life != LNX_PROC_ENDED)
		return;
	close(p->fd);
	p->fd = -1;
}

void lnx_procs_read(struct lnx_procs *procs, unsigned wait_ms, bool peers)
{
	uint64_t end = lnx_clock_ns() + wait_ms * LNX_NS_PER_MS;
	struct timespec ts = { .tv_nsec = (long)LNXCTL_STATE_LOOK_NS };
	bool *woken = calloc(procs->n ? procs->n : 1, sizeof(*woken)), any = false;
	unsigned i, looks = 0;

	for (i = 0; i < procs->n; i++) {
		struct lnx_proc *p = &procs->proc[i];

		if (lnx_proc_open(p))
			continue;
		if (p->life == LNX_PROC_ENDED)
			read_dead(p);
		else if (wait_ms && woken)
			any |= woken[i] = lnx_proc_wake(p);
	}
	/* None has anything new at once, and thousands take their time to read. */
	while (any) {
		nanosleep(&ts, NULL);
		any = !all_fresh(procs, woken, peers, !(++looks & 63)) && lnx_clock_ns() < end;
	}
	/* The others have been read: those that stayed silent have nothing new. */
	for (i = 0; i < procs->n; i++) {
		struct lnx_proc *p = &procs->proc[i];

		if (p->fd >= 0 && p->life != LNX_PROC_ENDED && !(woken && woken[i]))
			lnx_proc_read(p);
	}
	free(woken);
}
