/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl metrics: all processes as OpenMetrics text (base/metrics.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "lnxctl/lnxctl.h"

static const char *name_of(const void *names, unsigned i, const char **help)
{
	const struct lnx_snap *s = names;

	*help = s->counter[i].help;
	return s->counter[i].name;
}

/* A copy tells nothing of it. */
static enum lnx_metrics_life life(const struct lnxctl *c, const struct lnx_proc *p)
{
	return c->file ? LNX_METRICS_UNKNOWN : p->life == LNX_PROC_ENDED ? LNX_METRICS_ENDED :
	       LNX_METRICS_LIVES;
}

static unsigned collect(struct lnxctl *c, struct lnx_metrics_ep *out)
{
	unsigned i, k, n = 0;

	for (i = 0; i < c->procs.n; i++) {
		const struct lnx_proc *p = &c->procs.proc[i];

		for (k = 0; p->snap && k < p->snap->nep; k++) {
			const struct lnx_snap_ep *e = &p->snap->ep[k];

			if (!lnxctl_wants_ep(c, e))
				continue;
			if (out)
				out[n] = (struct lnx_metrics_ep){
					.pid = (int)p->file.pid, .life = life(c, p),
					.program = p->snap->h.program,
					.job = p->snap->h.job, .rank = p->snap->h.rank,
					.ep = &e->ep, .rail = e->rail, .nrail = e->nrail,
					.ncounter = p->snap->ncounter,
					.value = e->now.value, .name = name_of,
					.names = p->snap,
				};
			n++;
		}
	}
	return n;
}

static void print(struct lnx_out *o, const struct lnx_metrics_ep *ep, unsigned n)
{
	o->n = 0;
	lnx_must(lnx_metrics_print(o, ep, n) ? o : NULL);
}

/* Most often it fits at once: all endpoints have about as much to say.  False: errno. */
static bool write_text(const struct lnx_metrics_ep *ep, unsigned n)
{
	struct lnx_out o = { 0 };
	bool written;

	print(&o, ep, LNX_MIN(n, 1u));
	o.size = o.n * (n + 1u) + 1;
	o.buf = lnx_must(malloc(o.size));
	print(&o, ep, n);
	if (o.n >= o.size) {
		free(o.buf);
		o.size = o.n + 1;
		o.buf = lnx_must(malloc(o.size));
		print(&o, ep, n);
	}
	errno = 0;
	written = fwrite(o.buf, 1, o.n, stdout) == o.n && !fflush(stdout);
	free(o.buf);
	return written;
}

static int run(struct lnxctl *c)
{
	struct lnx_metrics_ep *ep;
	bool written;
	unsigned i, n;
	int ret;

	if (c->format_set)
		return lnxctl_usage(c, "\"metrics\" writes OpenMetrics text, and no other "
				    "format");
	/* What has ended would be there for ever, as if it went on. */
	c->live_only = !c->pid && !lnxctl_value(c, "dead");
	ret = lnxctl_select(c, false, true);
	if (ret)
		return ret;
	for (i = 0; i < c->procs.n; i++) {
		const struct lnx_proc *p = &c->procs.proc[i];

		if (!p->snap && lnxctl_chosen(c)) {
			lnxctl_fail(c, p, LNXCTL_REFUSED, p->err, "%s", p->why);
			continue;
		}
		/* One odd file must not stop a collector. */
		if (!p->snap && p->err != -ENOENT)
			lnxctl_note(c, p, p->err, "%s", p->why);
		c->ndone++;
	}
	n = collect(c, NULL);
	if (c->ep && !n)
		return lnxctl_no_ep(c);
	ep = lnx_must(calloc(n ? n : 1, sizeof(*ep)));
	collect(c, ep);
	written = write_text(ep, n);
	free(ep);
	return written ? lnxctl_finish(c) : lnxctl_write_failed(c);
}

const struct lnxctl_verb lnxctl_metrics = {
	.name = "metrics", .args = "[--dead]",
	.help = "all processes as OpenMetrics text, for a collector",
	.option = {
		{ "dead", NULL, "also those that have ended and left their state" },
	},
	.run = run,
};
