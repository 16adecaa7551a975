/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the verbs share: choosing processes, requests, names.  See lnxctl.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/glob.h"
#include "base/metrics.h"
#include "base/span.h"
#include "conf/rank.h"
#include "lnxctl/lnxctl.h"

/* ---- arguments ---- */

bool lnxctl_number(const char *text, uint64_t max, uint64_t *v)
{
	struct lnx_span w = { text, strlen(text) };

	return lnx_span_uint(w, v) && *v <= max;
}

const char *lnxctl_value(const struct lnxctl *c, const char *name)
{
	unsigned i;

	for (i = 0; i < LNXCTL_OPTIONS && c->verb->option[i].name; i++)
		if (!strcmp(c->verb->option[i].name, name))
			return c->value[i];
	return NULL;
}

uint64_t lnxctl_now(void)
{
	return lnx_clock_ns();
}

/* ---- which processes ---- */

static void done_with(struct lnx_proc *p)
{
	if (p->fd >= 0)
		close(p->fd);
	lnx_snap_free(p->snap);
}

static void drop(struct lnx_procs *procs, unsigned i)
{
	struct lnx_proc *p = &procs->proc[i];

	done_with(p);
	procs->n--;
	memmove(p, p + 1, (procs->n - i) * sizeof(*p));
}

static void keep_job(struct lnxctl *c, const char *job)
{
	unsigned i = 0;

	while (i < c->procs.n) {
		struct lnx_proc *p = &c->procs.proc[i];

		if (!lnx_proc_open(p))
			lnx_proc_read(p);
		if (p->snap && !strcmp(p->snap->h.job, job))
			i++;
		else
			drop(&c->procs, i);
	}
}

/* Of several processes those that live count, if nothing else was said. */
static int choose_one(struct lnxctl *c)
{
	unsigned i, live = 0, which = 0;

	for (i = 0; i < c->procs.n; i++) {
		struct lnx_proc *p = &c->procs.proc[i];

		if (lnx_proc_life(p->file.pid, p->file.started) != LNX_PROC_ENDED) {
			live++;
			which = i;
		}
	}
	if (live != 1 && c->procs.n != 1)
		return lnxctl_usage(c, "there are %u processes, %u of them live: choose "
				    "one with -p PID, or --all; \"lnxctl list\" lists "
				    "them", c->procs.n, live);
	for (i = c->procs.n; c->procs.n > 1 && i-- > 0;)
		if (i != which)
			drop(&c->procs, i);
	return LNXCTL_OK;
}

/* Numbers of processes are used again: those with this one that live count, else the
 * last of the dead.  A process has several segments if it has several copies of lnx. */
static void choose_newest(struct lnxctl *c)
{
	uint64_t newest = 0;
	bool live = false;
	unsigned i;

	for (i = 0; i < c->procs.n; i++) {
		const struct lnx_statefile *f = &c->procs.proc[i].file;
		bool lives = lnx_proc_life(f->pid, f->started) != LNX_PROC_ENDED;

		if (lives != live ? lives : f->started > newest)
			newest = f->started;
		live |= lives;
	}
	for (i = c->procs.n; i-- > 0;)
		if (c->procs.proc[i].file.started != newest)
			drop(&c->procs, i);
}

static int none(const struct lnxctl *c)
{
	if (c->pid)
		return lnxctl_refuse(c, -ESRCH, "process %d: it has no lnx endpoint that "
				     "this user may see%s", (int)c->pid, c->procs.denied ?
				     ", perhaps because it is another user's" : "");
	if (c->by_job)
		return lnxctl_refuse(c, -ESRCH, "there is no process of that job on this host");
	return lnxctl_refuse(c, -ESRCH, "no process of this user has an lnx endpoint with "
			     "a state segment in %s", c->root);
}

/* Processes that have closed their segment since it was found. */
static void forget_gone(struct lnxctl *c)
{
	unsigned i, n = 0;

	for (i = 0; i < c->procs.n; i++) {
		struct lnx_proc *p = &c->procs.proc[i];

		if (p->snap || p->err != -ENOENT)
			c->procs.proc[n++] = *p;
	}
	c->procs.n = n;
}

static bool any_lives(const struct lnxctl *c)
{
	unsigned i;

	for (i = 0; i < c->procs.n; i++)
		if (lnx_proc_life(c->procs.proc[i].file.pid, c->procs.proc[i].file.started) !=
		    LNX_PROC_ENDED)
			return true;
	return false;
}

/* Before they are read: there may be thousands. */
static void forget_dead(struct lnxctl *c)
{
	unsigned i, n = 0;

	for (i = 0; i < c->procs.n; i++) {
		struct lnx_proc *p = &c->procs.proc[i];

		if (lnx_proc_life(p->file.pid, p->file.started) != LNX_PROC_ENDED)
			c->procs.proc[n++] = *p;
		else
			done_with(p);
	}
	c->procs.n = n;
}

/* Each process that lives costs a descriptor. */
static void allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int lnxctl_select(struct lnxctl *c, bool peers, bool any)
{
	bool all_users = !geteuid() && (c->all || c->pid || c->by_job || any);
	const char *job = c->job;
	char why[300];
	int ret;

	if (c->file) {
		ret = lnx_procs_file(c->file, &c->procs, why, sizeof(why));
		return ret ? lnxctl_refuse(c, ret, "%s", why) : LNXCTL_OK;
	}
	allow_files();
	if (c->by_job && !job)
		job = lnx_conf_job(c->env);
	if (c->by_job && !job)
		return lnxctl_usage(c, "--job: lnxctl runs in no job; give its id, "
				    "--job=ID");
	/* Without a directory of the user there is no process; but without this one nothing
	 * can be said. */
	if (access(c->root, X_OK))
		return lnxctl_refuse(c, -errno, "%s: %s", c->root, strerror(errno));
	ret = lnx_procs_find(c->root, all_users, c->pid, &c->procs, why, sizeof(why));
	if (ret)
		return lnxctl_refuse(c, ret, "%s", why);
	if (c->live_only)
		forget_dead(c);
	if (c->by_job)
		keep_job(c, job);
	/* What crashed on this node before is no reason why all others did not do it. */
	if (c->verb->asks && (c->all || c->by_job) && any_lives(c))
		forget_dead(c);
	if (c->pid)
		choose_newest(c);
	if (!c->procs.n)
		return any && !c->pid && !c->by_job ? LNXCTL_OK : none(c);
	if (!c->all && !c->by_job && !c->pid && !any) {
		ret = choose_one(c);
		if (ret)
			return ret;
	}
	lnx_procs_read(&c->procs, c->wait_ms ? c->wait_ms : LNXCTL_STATE_WAIT_MS, peers);
	/* Those were not named. */
	if (!c->pid)
		forget_gone(c);
	return c->procs.n || any ? LNXCTL_OK : none(c);
}

bool lnxctl_wants_ep(const struct lnxctl *c, const struct lnx_snap_ep *e)
{
	struct lnx_span w;
	uint64_t v;

	if (!c->ep)
		return true;
	w = (struct lnx_span){ c->ep, strlen(c->ep) };
	if (lnx_span_hex64(w, &v))
		return v == e->ep.eid;
	return lnx_span_uint(w, &v) && v == e->ep.number;
}

unsigned lnxctl_wanted(const struct lnxctl *c, const struct lnx_snap *s)
{
	unsigned i, n = 0;

	for (i = 0; i < s->nep; i++)
		n += lnxctl_wants_ep(c, &s->ep[i]);
	return n;
}

int lnxctl_no_ep(const struct lnxctl *c)
{
	return lnxctl_refuse(c, -ENOENT, "--ep \"%s\": no process has such an endpoint", c->ep);
}

/* How many were done. */
static unsigned each_ep(struct lnxctl *c, struct lnx_proc *p, struct lnx_doc *map,
			void (*fn)(struct lnxctl *c, struct lnx_proc *p,
				   const struct lnx_snap_ep *e, struct lnx_doc *map))
{
	unsigned i, done = 0, failed, n = lnxctl_wanted(c, p->snap);
	struct lnx_doc *list = n > 1 && !c->verb->writes ? lnx_doc_list(map, "endpoint") : NULL;

	for (i = 0; i < p->snap->nep; i++) {
		const struct lnx_snap_ep *e = &p->snap->ep[i];
		struct lnx_doc *m = map;

		if (!lnxctl_wants_ep(c, e))
			continue;
		if (list) {
			m = lnx_doc_map(list, NULL);
			lnx_doc_printf(m, "id", "%016llx",
				       (unsigned long long)e->ep.eid);
		}
		failed = c->nfailed;
		c->at_ep = p->snap->nep > 1 ? e : NULL;
		if (c->verb->dates)
			lnxctl_put_silent(c, p, e, m);
		fn(c, p, e, m);
		c->at_ep = NULL;
		done += c->nfailed == failed;
	}
	return done;
}

static struct lnx_doc *process_map(struct lnx_doc *list, const struct lnx_proc *p)
{
	struct lnx_doc *m = lnx_doc_map(list, NULL);

	lnx_doc_int(m, "pid", p->file.pid);
	if (p->snap->h.rank[0])
		lnx_doc_text(m, "rank", p->snap->h.rank);
	lnx_doc_text(m, "program", p->snap->h.program);
	return m;
}

int lnxctl_each(struct lnxctl *c, bool peers,
		void (*fn)(struct lnxctl *c, struct lnx_proc *p,
			   const struct lnx_snap_ep *e, struct lnx_doc *map))
{
	int ret = lnxctl_select(c, peers, false);
	struct lnx_doc *list = NULL, *map;
	unsigned i;

	if (ret)
		return ret;
	c->doc = lnx_doc_new();
	if (c->all || c->by_job || c->procs.n > 1)
		list = lnx_doc_list(c->doc, "process");
	for (i = 0; i < c->procs.n; i++) {
		struct lnx_proc *p = &c->procs.proc[i];

		if (!p->snap) {
			lnxctl_fail(c, p, LNXCTL_REFUSED, p->err, "%s", p->why);
			continue;
		}
		if (!lnxctl_wanted(c, p->snap)) {
			lnxctl_fail(c, p, LNXCTL_REFUSED, -ENOENT, c->ep ?
				    "it has no such endpoint" : "it has no endpoint now");
			continue;
		}
		map = list ? process_map(list, p) : c->doc;
		if (c->process)
			c->process(c, p, map);
		c->ndone += each_ep(c, p, map, fn);
	}
	return lnxctl_finish(c);
}

unsigned lnxctl_width(const struct lnxctl *c)
{
	struct winsize w;
	uint64_t v;
	char **e;

	for (e = c->env; *e; e++)
		if (!strncmp(*e, "COLUMNS=", 8) && lnxctl_number(*e + 8, 10000, &v) && v)
			return (unsigned)v;
	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? w.ws_col : 0;
}

bool lnxctl_chosen(const struct lnxctl *c)
{
	return c->pid || c->by_job || c->file;
}

int lnxctl_finish(struct lnxctl *c)
{
	errno = 0;
	if (c->doc && c->doc->child && !lnx_render(c->doc, c->format, lnxctl_width(c), stdout))
		return lnxctl_write_failed(c);
	if (!c->nfailed)
		return LNXCTL_OK;
	return c->ndone ? LNXCTL_PARTLY : c->failure;
}

bool lnxctl_put_silent(const struct lnxctl *c, const struct lnx_proc *p,
		       const struct lnx_snap_ep *e, struct lnx_doc *m)
{
	uint64_t now = lnxctl_now();
	const char *why;
	char age[32];

	if (c->file)
		why = "it is a copy";
	else if (p->life == LNX_PROC_ENDED)
		why = "the process has ended";
	else if (!p->writable)
		why = "its segment may not be written";
	else if (!lnx_proc_ep_fresh(p, e, false))
		why = "the process makes no progress";
	else
		return false;
	lnxctl_age(age, sizeof(age), now - LNX_MIN(now, e->ep.seen_ns));
	lnx_doc_printf(m, "last seen", "%s ago: %s, and this is its state of then", age, why);
	return true;
}

/* ---- requests ---- */

bool lnxctl_request(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    unsigned answer_ms, char **reply, const char *fmt, ...)
{
	unsigned wait_ms = c->wait_ms ? c->wait_ms : LNXCTL_REQUEST_WAIT_MS;
	struct lnx_answer a;
	char *text = NULL;
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = vasprintf(&text, fmt, ap);
	va_end(ap);
	lnx_must(ret < 0 ? NULL : text);
	if (c->file) {
		lnxctl_fail(c, NULL, LNXCTL_REFUSED, -EROFS, "%s: it is a copy, which "
			    "answers nothing", c->file);
		free(text);
		return false;
	}
	ret = lnx_client_ask(p, e->ep.eid, text, wait_ms, wait_ms + answer_ms, &a);
	free(text);
	if (ret) {
		lnxctl_fail(c, p, ret == -EACCES || ret == -E2BIG ? LNXCTL_REFUSED :
			    LNXCTL_NO_ANSWER, ret, "%s", lnx_client_error(ret));
		return false;
	}
	*reply = a.text;
	if (!a.result)
		return true;
	lnxctl_fail(c, p, a.result == -ETIMEDOUT ? LNXCTL_NO_ANSWER : LNXCTL_REFUSED,
		    a.result, "%s", a.text[0] ? a.text : strerror(-a.result));
	lnx_answer_free(&a);
	*reply = NULL;
	return false;
}

/* ---- names ---- */

bool lnxctl_nid_is(const char *pattern, const char *nid)
{
	const char *at = strrchr(nid, '@'), *colon;
	char bare[LNX_STATE_NAME];

	if (lnx_glob(pattern, nid))
		return true;
	/* 10.0.0.1:4711@tcp, [fe80::1]:4711@tcp */
	for (colon = at; colon && colon > nid && *colon != ':' && *colon != ']'; colon--)
		;
	if (!colon || *colon != ':' || strlen(nid) >= sizeof(bare))
		return false;
	snprintf(bare, sizeof(bare), "%.*s%s", (int)(colon - nid), nid, at);
	return lnx_glob(pattern, bare);
}

bool lnxctl_rail_is(const char *pattern, const struct lnx_state_rail *rail)
{
	return lnxctl_nid_is(pattern, rail->nid) || lnx_glob(pattern, rail->name);
}

bool lnxctl_peer_is(const char *pattern, const struct lnx_snap_peer *peer)
{
	struct lnx_span w = { pattern, strlen(pattern) };
	char nid[LNX_STATE_NAME];
	uint64_t v;
	unsigned i;

	if (lnx_span_hex64(w, &v))
		return v == peer->p.eid;
	if (lnx_span_uint(w, &v))
		return v == peer->p.addr;
	lnxctl_peer_nid(peer, nid, sizeof(nid));
	if (lnx_glob(pattern, nid))
		return true;
	for (i = 0; i < peer->npath; i++)
		if (lnxctl_nid_is(pattern, peer->path[i]->nid))
			return true;
	return false;
}

void lnxctl_peer_nid(const struct lnx_snap_peer *peer, char *buf, size_t size)
{
	if (peer->npath && !(peer->p.flags & LNX_STATE_PEER_LOCAL))
		snprintf(buf, size, "%s", peer->path[0]->nid);
	else
		snprintf(buf, size, "%016llx@%s", (unsigned long long)peer->p.eid,
			 peer->p.flags & LNX_STATE_PEER_LOCAL ? "shm" : "none");
}

const char *lnxctl_path_state(const struct lnx_state_path *p)
{
	switch (p->state) {
	case LNX_STATE_PATH_IDLE:
		return "idle";
	case LNX_STATE_PATH_CONNECTING:
		return "connecting";
	case LNX_STATE_PATH_UP:
		return "up";
	case LNX_STATE_PATH_DOWN:
		return p->flags & LNX_STATE_PATH_DRAINED ? "drained" : "down";
	case LNX_STATE_PATH_DEAD:
		return "dead";
	default:
		return "unknown";
	}
}

bool lnxctl_rail_up(const struct lnx_state_rail *rail)
{
	return lnx_metrics_rail_up(rail);
}

void lnxctl_age(char *buf, size_t size, uint64_t ns)
{
	if (ns / LNX_NS_PER_S < 10)
		snprintf(buf, size, "%.1f s", (double)ns / 1e9);
	else
		snprintf(buf, size, "%llu s", (unsigned long long)(ns / LNX_NS_PER_S));
}
