/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What lnxctl says when something is refused: a sentence, or, when a format is asked for, a
 * document like lnetctl's, which programs can read.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnxctl/lnxctl.h"

/* One document for all: a program could not read several, one behind the other. */
static struct lnx_doc *failures, *all;

/* "udsp add": add: - udsp: errno, descr. */
static void add_failure(const struct lnxctl *c, int err, const char *text)
{
	const char *name = c->verb ? c->verb->name : "lnxctl", *second = strchr(name, ' ');
	struct lnx_doc *m;
	char item[32];

	if (!failures) {
		failures = lnx_doc_new();
		all = lnx_doc_list(failures, second ? second + 1 : name);
	}
	snprintf(item, sizeof(item), "%.*s", (int)strcspn(name, " "), name);
	m = lnx_doc_map(lnx_doc_map(all, NULL), item);
	lnx_doc_int(m, "errno", err);
	lnx_doc_text(m, "descr", text);
}

void lnxctl_put_failures(const struct lnxctl *c)
{
	if (failures)
		lnx_render(failures, c->format, 0, stderr);
	lnx_doc_free(failures);
	failures = all = NULL;
}

static void put(const struct lnxctl *c, const struct lnx_proc *p, int err, const char *fmt,
		va_list ap)
{
	char *what = NULL, *text = NULL, ep[40] = "";
	int ret = vasprintf(&what, fmt, ap);

	lnx_must(ret < 0 ? NULL : what);
	if (c->at_ep)
		snprintf(ep, sizeof(ep), ", endpoint %016llx",
			 (unsigned long long)c->at_ep->ep.eid);
	ret = p ? asprintf(&text, "process %d%s: %s", (int)p->file.pid, ep, what) :
		  asprintf(&text, "%s", what);
	lnx_must(ret < 0 ? NULL : text);
	if (c->format_set && c->format != LNX_FORMAT_TABLE)
		add_failure(c, err, text);
	else
		fprintf(stderr, "lnxctl: %s\n", text);
	free(text);
	free(what);
}

int lnxctl_refuse(const struct lnxctl *c, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(c, NULL, err, fmt, ap);
	va_end(ap);
	return LNXCTL_REFUSED;
}

int lnxctl_write_failed(const struct lnxctl *c)
{
	int err = errno ? errno : EIO;

	return lnxctl_refuse(c, -err, "writing the output failed: %s", strerror(err));
}

void lnxctl_note(const struct lnxctl *c, const struct lnx_proc *p, int err,
		 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(c, p, err, fmt, ap);
	va_end(ap);
}

void lnxctl_fail(struct lnxctl *c, const struct lnx_proc *p, enum lnxctl_exit status,
		 int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(c, p, err, fmt, ap);
	va_end(ap);
	va_start(ap, fmt);
	vsnprintf(c->failed_why, sizeof(c->failed_why), fmt, ap);
	va_end(ap);
	c->failed_err = err;
	c->nfailed++;
	c->failure = status;
}
