/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxctl check -- COMMAND: what did its processes use?  Each endpoint that they close on this
 * host tells it (FI_LNX_STATS_FILE); /proc shows those that closed none (started.h).
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lnxctl/check.h"
#include "lnxctl/started.h"

/* ---- what a command used ---- */

/* An endpoint. */
struct used {
	long pid;
	char rank[16];			/* "": none */
	char link[LNX_LINK_TEXT_MAX];
};

struct files {
	struct lnx_check *k;
	struct lnx_doc *eps, *rails;
	struct used *used;
	unsigned n;
};

/* The value of a label in a line of OpenMetrics. */
static bool label(const char *line, const char *name, char *buf, size_t size)
{
	char want[48];
	const char *at;

	snprintf(want, sizeof(want), "%s=\"", name);
	for (at = strstr(line, want); at && at[-1] != '{' && at[-1] != ',';
	     at = strstr(at + 1, want))
		;
	if (!at)
		return false;
	at += strlen(want);
	snprintf(buf, size, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}

static void put_endpoint(struct files *f, const char *line)
{
	char pid[32], link[LNX_LINK_TEXT_MAX];
	struct used *u;
	struct lnx_doc *m;

	if (!label(line, "pid", pid, sizeof(pid)) || !label(line, "link", link, sizeof(link)))
		return;
	f->used = lnx_must(realloc(f->used, (f->n + 1) * sizeof(*f->used)));
	u = &f->used[f->n++];
	u->pid = strtol(pid, NULL, 10);
	memcpy(u->link, link, sizeof(link));
	if (!label(line, "rank", u->rank, sizeof(u->rank)))
		u->rank[0] = '\0';
	m = lnx_doc_map(f->eps, NULL);
	lnx_doc_int(m, "pid", u->pid);
	lnx_doc_text(m, "link", link);
	lnx_check_offer(f->k, link);
}

static void put_rail(const char *line, struct lnx_doc *list)
{
	const char *value = strrchr(line, ' ');
	char pid[32], rail[LNX_STATE_NAME];
	struct lnx_doc *m;

	if (!value || !label(line, "pid", pid, sizeof(pid)) ||
	    !label(line, "rail", rail, sizeof(rail)))
		return;
	m = lnx_doc_map(list, NULL);
	lnx_doc_int(m, "pid", strtol(pid, NULL, 10));
	lnx_doc_text(m, "rail", rail);
	lnx_doc_uint(m, "messages sent", strtoull(value, NULL, 10));
}

/* Each once, of whatever process. */
static void put_missing_route(struct lnx_check *k, const char *line)
{
	char route[LNX_ROUTE_TEXT_MAX];
	unsigned i;

	if (!label(line, "route", route, sizeof(route)))
		return;
	for (i = 0; i < k->nmissing; i++)
		if (!strcmp(k->missing[i], route))
			return;
	if (k->nmissing == LNX_CHECK_MISSING)
		return;
	snprintf(k->missing[k->nmissing++], sizeof(k->missing[0]), "%s", route);
	lnx_check_problem(k, "the route \"%s\" is missing: frames came over that gateway, and no route "
		"over it leads back to where they come from", route);
}

static void read_one(struct files *all, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) >= 0) {
		if (!strncmp(line, "lnx_endpoint{", 13))
			put_endpoint(all, line);
		else if (!strncmp(line, "lnx_rail_sent_messages_total{", 29))
			put_rail(line, all->rails);
		else if (!strncmp(line, "lnx_missing_route{", 18))
			put_missing_route(all->k, line);
	}
	free(line);
	if (f)
		fclose(f);
}

/* Read what the processes have written, and remove it. */
static void read_all(struct files *f, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[LNX_CHECK_LINE];

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		read_one(f, path);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

/* ---- is it what was asked for? ---- */

/* Which of the links that are asked for; -1: none. */
static int asked(const struct lnx_check *k, const char *link)
{
	unsigned i;

	for (i = 0; i < k->asked->nlink; i++)
		if (lnx_check_is_link(&k->asked->link[i], link))
			return (int)i;
	return -1;
}

/* Does a process use the first of them, in this endpoint or another one? */
static bool has_first(const struct files *f, long pid)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (f->used[i].pid == pid && !asked(f->k, f->used[i].link))
			return true;
	return false;
}

/* It is no link that is asked for, or its process has not the first one, which a program
 * takes if it is there. */
static bool is_wrong(const struct files *f, const struct used *u)
{
	int which = asked(f->k, u->link);

	return which < 0 || (which > 0 && !has_first(f, u->pid));
}

static void compare(const struct files *f)
{
	char first[LNX_LINK_TEXT_MAX];
	unsigned i, j, n;

	if (!f->k->asked || lnx_link_print(&f->k->asked->link[0], first, sizeof(first)) < 0)
		return;
	/* Of each wrong link one sentence. */
	for (i = 0; i < f->n; i++) {
		for (j = 0; j < i && strcmp(f->used[j].link, f->used[i].link); j++)
			;
		if (j < i)
			continue;
		for (n = 0; j < f->n; j++)
			n += !strcmp(f->used[j].link, f->used[i].link) &&
			     is_wrong(f, &f->used[j]);
		for (j = i; n && (strcmp(f->used[j].link, f->used[i].link) ||
				  !is_wrong(f, &f->used[j])); j++)
			;
		if (n)
			lnx_check_problem(f->k, "process %ld%s used the link \"%s\", and not "
					  "\"%s\"", f->used[j].pid,
					  n > 1 ? ", and not it alone," : "", f->used[j].link,
					  first);
	}
}

static void say(void *arg, const char *sentence)
{
	lnx_check_problem(arg, "%s", sentence);
}

/* ---- running it ---- */

static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
static volatile sig_atomic_t command_pid;

/* The terminal tells the command itself. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_USER && command_pid > 0)
		kill(command_pid, sig);
}

/* What ends lnxctl is for the command: what it has left is removed, and judged, when that
 * has ended.  *held is what was blocked before: all of these are until it is set again. */
static void catch_signals(sigset_t *held)
{
	struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO }, old;
	sigset_t set;
	unsigned i;

	sigemptyset(&set);
	for (i = 0; i < LNX_ARRAY_SIZE(ending); i++) {
		sigaddset(&set, ending[i]);
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, held);
}

/* Its status; orphans of it are waited for, too, as they end. */
static int wait_for(pid_t command, struct lnx_started *started)
{
	int status = -1;
	pid_t pid;

	for (;;) {
		uint64_t ns = lnx_started_look(started);
		struct timespec pause = { (time_t)(ns / LNX_NS_PER_S), (long)(ns % LNX_NS_PER_S) };

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == command) {
				/* What is still there? */
				lnx_started_look(started);
				return lnx_check_status(status);
			}
		if (pid < 0 && errno != EINTR)
			return -1;
		nanosleep(&pause, NULL);
	}
}

/* With the variables of this process. */
static int run(struct lnx_check *k, struct lnx_started *started, const sigset_t *held)
{
	pid_t pid = fork();

	command_pid = pid;
	sigprocmask(SIG_SETMASK, held, NULL);
	if (!pid) {
		execvp(k->c->command[0], k->c->command);
		fprintf(stderr, "lnxctl: %s: %s\n", k->c->command[0], strerror(errno));
		_exit(127);
	}
	return pid < 0 ? -1 : wait_for(pid, started);
}

bool lnx_check_command(struct lnx_check *k, struct lnx_doc *map)
{
	char dir[] = "/tmp/lnxctl-check-XXXXXX", file[64];
	struct lnx_started *started;
	struct files f = { .k = k };
	sigset_t held;
	unsigned i;
	int status;

	catch_signals(&held);
	if (!mkdtemp(dir)) {
		lnx_check_problem(k, "%s: %s", dir, strerror(errno));
		sigprocmask(SIG_SETMASK, &held, NULL);
		return true;
	}
	if (lnx_check_variable(k, "FI_LNX_STATS_FILE"))
		lnx_check_problem(k, "FI_LNX_STATS_FILE is set, and \"check\" uses it itself: "
				  "the command was run with another value");
	snprintf(file, sizeof(file), "%s/%%h.%%p", dir);
	setenv("FI_LNX_STATS_FILE", file, 1);
	started = lnx_started_open(environ);
	status = run(k, started, &held);
	lnx_doc_int(map, "status of the command", status);
	if (status)
		lnx_check_problem(k, "the command ended with status %d", status);
	f.eps = lnx_doc_list(map, "endpoints");
	f.rails = lnx_doc_list(map, "rails");
	read_all(&f, dir);
	for (i = 0; i < f.n; i++)
		lnx_started_used(started, (pid_t)f.used[i].pid, f.used[i].rank);
	if (!f.n)
		lnx_check_problem(k, "no process of the command on this host opened an lnx "
				  "endpoint and closed it: it used another provider, or none");
	lnx_started_judge(started, say, k);
	compare(&f);
	lnx_started_close(started);
	free(f.used);
	return f.n != 0;
}
