/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes FI_LNX_STATS_FILE.  See stats_file.h.  Called by api/ep_close.c. */
#include "ctl/stats_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/metrics.h"
#include "base/proc.h"
#include "conf/stats_name.h"
#include "core/warn_once.h"
#include "ctl/publish.h"
#include "prov.h"

/* Endpoints of a process that are kept; a file with more would be of no use. */
#define CLOSED_MAX	1024u

/* A closed endpoint. */
struct closed {
	struct lnx_state_ep ep;
	struct lnx_state_rail rail[LNX_RAILS_MAX];
	unsigned nrail;
	uint64_t value[];
};

static struct {
	struct lnx_process_lock lock;
	pid_t pid;			/* whose endpoints these are */
	struct closed **ep;
	unsigned n;
} all = { .lock = LNX_PROCESS_LOCK_INIT };

/* ---- the name ---- */

static void bad(const char *why)
{
	char shown[200];

	lnx_warn_printable(lnx_global_config()->stats_file, sizeof(shown), shown, sizeof(shown));
	lnx_warn_once(true, "FI_LNX_STATS_FILE=\"%s\": %s", shown, why);
}

/* False, after a warning, if it is none. */
static bool expand(const char *name, char path[PATH_MAX])
{
	char host[256] = "";
	const char *why;

	gethostname(host, sizeof(host) - 1);
	if (!lnx_stats_name(name, getpid(), host, lnx_global_job_rank(), path, &why))
		return true;
	bad(why);
	return false;
}

/* ---- writing ---- */

static const char *counter(const void *names, unsigned i, const char **help)
{
	(void)names;
	*help = lnx_stat_rows[i].help;
	return lnx_stat_rows[i].name;
}

/* The text, to be freed; NULL: memory is short. */
static char *print(size_t *len)
{
	struct lnx_metrics_ep *ep = calloc(all.n, sizeof(*ep));
	struct lnx_out o = { 0 };
	char program[64];
	unsigned i;

	if (!ep)
		return NULL;
	lnx_proc_name(getpid(), program, sizeof(program));
	for (i = 0; i < all.n; i++)
		ep[i] = (struct lnx_metrics_ep){
			.pid = (int)getpid(), .program = program, .job = lnx_global_job_id(),
			.rank = lnx_global_job_rank(), .ep = &all.ep[i]->ep,
			.rail = all.ep[i]->rail, .nrail = all.ep[i]->nrail,
			.ncounter = lnx_nstats, .value = all.ep[i]->value,
			.name = counter,
		};
	if (lnx_metrics_print(&o, ep, all.n)) {
		o.size = o.n + 1;
		o.buf = malloc(o.size);
		o.n = 0;
	}
	if (o.buf && !lnx_metrics_print(&o, ep, all.n)) {
		free(o.buf);
		o.buf = NULL;
	}
	free(ep);
	*len = o.n;
	return o.buf;
}

/* Is there something at path that is no regular file?  It would be lost: a device, a pipe, or
 * a link such as /dev/stdout. */
static bool is_special(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && !S_ISREG(st.st_mode);
}

/* 0, or an errno. */
static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* A collector never sees half of it, and the temporary file is of this endpoint alone: other
 * processes may write to the same path. */
static int replace(const char *path, uint64_t eid, const char *text, size_t len)
{
	char temporary[PATH_MAX + 32];
	int fd, err;

	snprintf(temporary, sizeof(temporary), "%s.%016" PRIx64 ".new", path, eid);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	err = write_all(fd, text, len);
	if (close(fd) && !err)
		err = errno;
	if (!err && rename(temporary, path))
		err = errno;
	if (err)
		unlink(temporary);
	return err;
}

static void write_file(void)
{
	char path[PATH_MAX] = "", why[80];
	char *text;
	size_t len;
	int err;

	if (!expand(lnx_global_config()->stats_file, path))
		return;
	if (is_special(path)) {
		bad(LNX_STATS_NAME_SPECIAL);
		return;
	}
	text = print(&len);
	if (!text)
		return;
	err = replace(path, all.ep[all.n - 1]->ep.eid, text, len);
	free(text);
	if (err) {
		snprintf(why, sizeof(why), "cannot be written: %s", strerror(err));
		bad(why);
	}
}

/* ---- endpoints ---- */

static struct closed *copy(const struct lnx_ep *ep)
{
	struct closed *c = calloc(1, sizeof(*c) + lnx_nstats * sizeof(c->value[0]));
	unsigned i;

	if (!c)
		return NULL;
	lnx_publish_ep(ep, &c->ep);
	c->nrail = ep->nrail;
	for (i = 0; i < ep->nrail; i++)
		lnx_publish_rail(ep, i, &c->rail[i]);
	for (i = 0; i < lnx_nstats; i++)
		c->value[i] = *(const uint64_t *)((const char *)&ep->stats +
						  lnx_stat_rows[i].offset);
	return c;
}

void lnx_stats_file_add(struct lnx_ep *ep)
{
	struct closed **more, *c;

	if (!ep->conf->stats_file)
		return;
	c = copy(ep);
	if (!c)
		return;
	lnx_process_lock(&all.lock);
	/* After a fork only our own. */
	if (all.pid != getpid()) {
		all.pid = getpid();
		all.n = 0;
	}
	more = all.n < CLOSED_MAX ?
	       realloc(all.ep, (all.n + 1) * sizeof(*more)) : NULL;
	if (more) {
		all.ep = more;
		all.ep[all.n++] = c;
		write_file();
	} else {
		free(c);
	}
	lnx_process_unlock(&all.lock);
}

void lnx_stats_file_fini(void)
{
	unsigned i;

	lnx_process_lock(&all.lock);
	for (i = 0; i < all.n; i++)
		free(all.ep[i]);
	free(all.ep);
	all.ep = NULL;
	all.n = 0;
	lnx_process_unlock(&all.lock);
}
