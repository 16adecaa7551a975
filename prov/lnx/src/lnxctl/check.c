/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxctl check: would a program that is started in this environment use lnx, and the
 * rails that are asked for?  With a command: did it?
 *
 * Without a command the variables are checked, and fi_info (libfabric's own tool) says
 * what lnx offers.  With one, the command runs, and each endpoint that its processes on
 * this host close tells what it used (FI_LNX_STATS_FILE).
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/rank.h"
#include "conf/stats_name.h"
#include "lnxctl/check.h"
#include "lnxctl/openmpi.h"
#include "lnxctl/started.h"

void lnx_check_problem(struct lnx_check *k, const char *fmt, ...)
{
	char text[LNX_CHECK_LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	lnx_doc_text(k->problems, NULL, text);
	k->nproblem++;
}

const char *lnx_check_variable(const struct lnx_check *k, const char *name)
{
	size_t len = strlen(name);
	char **e;

	for (e = k->c->env; *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=' && (*e)[len + 1])
			return *e + len + 1;
	return NULL;
}

/* ---- variables ---- */

static void warn(void *arg, const char *sentence)
{
	lnx_check_problem(arg, "%s", sentence);
}

/* Why the loader would not take that file, as far as its beginning and its length tell. */
static const char *damage(const char *path, const struct stat *st)
{
	FILE *f = fopen(path, "re");
	Elf64_Ehdr h;
	size_t n = f ? fread(&h, 1, sizeof(h), f) : 0;

	if (f)
		fclose(f);
	if (n < sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_type != ET_DYN)
		return "it is no shared library";
	/* The table of sections is the last thing in it. */
	if (h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_shoff + (uint64_t)h.e_shnum *
	    h.e_shentsize > (uint64_t)st->st_size)
		return "its end is missing";
	return NULL;
}

/* lnx is to be in that file: can it be used? */
static void look_at_module(struct lnx_check *k, const char *path)
{
	const char *why;
	struct stat st;

	if (stat(path, &st) || access(path, R_OK))
		lnx_check_problem(k, "FI_PROVIDER_PATH names %s, which cannot be read: %s", path,
			strerror(errno));
	else if (!S_ISREG(st.st_mode))
		lnx_check_problem(k, "%s is no file: libfabric cannot load it", path);
	else if ((why = damage(path, &st)))
		lnx_check_problem(k, "%s cannot be loaded: %s; install it again", path, why);
	else if (!k->module[0])
		snprintf(k->module, sizeof(k->module), "%s", path);
}

static bool has_module(struct lnx_check *k, const char *dir)
{
	char path[LNX_CHECK_LINE];

	snprintf(path, sizeof(path), "%s/liblnx-fi.so", dir);
	if (access(path, R_OK))
		return false;
	look_at_module(k, path);
	return true;
}

/* One part of FI_PROVIDER_PATH: a directory, or "+FILE".  True: lnx is there. */
static bool look_at(struct lnx_check *k, const char *part)
{
	const char *name = strrchr(part, '/');

	if (part[0] != '+') {
		if (name && !strcmp(name, "/liblnx-fi.so"))
			lnx_check_problem(k, "FI_PROVIDER_PATH has a file, %s, without a + in front, and "
				"libfabric looks for a directory of that name: set it to +%s",
				part, part);
		return has_module(k, part);
	}
	part++;
	if (!name || strcmp(name, "/liblnx-fi.so"))
		return false;
	look_at_module(k, part);
	return true;
}

static void check_path(struct lnx_check *k, struct lnx_doc *map)
{
	const char *path = lnx_check_variable(k, "FI_PROVIDER_PATH");
	char *copy, *part, *save = NULL;
	bool found = false;

	lnx_doc_text(map, "FI_PROVIDER_PATH", path ? path : "");
	if (!path) {
		if (!has_module(k, PROVIDER_DIR))
			lnx_check_problem(k, "FI_PROVIDER_PATH is not set, and there is no "
				"liblnx-fi.so in " PROVIDER_DIR ": set it to "
				"+PREFIX/lib/libfabric/liblnx-fi.so");
		return;
	}
	/* With '@' what the directories have comes before what is built in. */
	copy = lnx_must(strdup(path + (*path == '@')));
	for (part = strtok_r(copy, ":", &save); part; part = strtok_r(NULL, ":", &save))
		found |= look_at(k, part);
	free(copy);
	if (!found)
		lnx_check_problem(k, "FI_PROVIDER_PATH has no liblnx-fi.so: libfabric does not find "
			"lnx, unless it has one of its own");
}

static void check_filter(struct lnx_check *k, struct lnx_doc *map)
{
	const char *filter = lnx_check_variable(k, "FI_PROVIDER");

	lnx_doc_text(map, "FI_PROVIDER", filter ? filter : "");
	if (filter && lnx_started_hides(filter))
		lnx_check_problem(k, "FI_PROVIDER=\"%s\" hides lnx: %s the list", filter,
				  *filter == '^' ? "take it out of" : "add it to");
}

static void check_interface(struct lnx_check *k, const struct lnx_link_part *p)
{
	unsigned i;

	if (strcasecmp(p->prov, "tcp") && strcasecmp(p->prov, "tcp;ofi_rxm"))
		return;
	for (i = 0; i < p->ndom; i++) {
		if (strchr(p->dom[i], '/'))
			continue;
		/* Not in /sys, which may be that of another name space. */
		if (!if_nametoindex(p->dom[i]))
			lnx_check_problem(k, "FI_LNX_PROV_LINKS names %s:%s, and this host has no "
				"interface %s", p->prov, p->dom[i], p->dom[i]);
	}
}

static void check_links(struct lnx_check *k, struct lnx_doc *map)
{
	const char *text = k->conf.prov_links;
	char why[400];
	unsigned i, j;
	size_t at;

	lnx_doc_text(map, "FI_LNX_PROV_LINKS", text ? text : "");
	if (!text)
		return;
	k->asked = lnx_must(calloc(1, sizeof(*k->asked)));
	if (lnx_links_parse(text, k->asked, &at, why, sizeof(why))) {
		lnx_check_problem(k, "FI_LNX_PROV_LINKS=\"%s\", character %zu: %s", text, at + 1,
			why);
		free(k->asked);
		k->asked = NULL;
		return;
	}
	for (i = 0; i < k->asked->nlink; i++)
		for (j = 0; j < k->asked->link[i].npart; j++)
			check_interface(k, &k->asked->link[i].part[j]);
}

/* What a process says only when it ends. */
static void check_stats_file(struct lnx_check *k)
{
	char path[PATH_MAX], host[256] = "", *slash;
	const char *name = k->conf.stats_file, *why = NULL, *rank = lnx_rank(k->c->env);
	struct stat st;

	if (!name)
		return;
	gethostname(host, sizeof(host) - 1);
	if (!lnx_stats_name(name, getpid(), host, rank ? rank : "", path, &why)) {
		if (!lstat(path, &st) && !S_ISREG(st.st_mode))
			why = LNX_STATS_NAME_SPECIAL;
		slash = strrchr(path, '/');
		if (slash)
			slash[slash == path] = '\0';
		if (!why && access(slash ? path : ".", W_OK | X_OK))
			why = strerror(errno);
	}
	if (why)
		lnx_check_problem(k, "FI_LNX_STATS_FILE=\"%s\": %s", name, why);
}

/* ---- a program ---- */

/* Start it with its output in *out, and its errors in the file err, if not NULL.  The process,
 * or -1. */
static pid_t start(char *const argv[], FILE **out, FILE *err)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fd[1], STDOUT_FILENO);
		if (err)
			dup2(fileno(err), STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fd[1]);
	*out = pid < 0 ? NULL : fdopen(fd[0], "r");
	if (!*out)
		close(fd[0]);
	return pid;
}

int lnx_check_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return lnx_check_status(status);
}

void lnx_check_offer(struct lnx_check *k, const char *link)
{
	unsigned i;

	for (i = 0; i < k->noffer; i++)
		if (!strcmp(k->offer[i], link))
			return;
	if (k->noffer < LNX_CHECK_OFFERS)
		snprintf(k->offer[k->noffer++], sizeof(k->offer[0]), "%s", link);
}

/* What the loader says of a file, "" if it takes it.  It is asked in a process of its own, since
 * the file may have anything in it. */
static void loader_says(const char *path, char *why, size_t size)
{
	FILE *out = tmpfile();
	pid_t pid = out ? fork() : -1;

	why[0] = '\0';
	if (!pid) {
		const char *err = dlopen(path, RTLD_NOW | RTLD_LOCAL) ? NULL : dlerror();

		if (err)
			fputs(err, out);
		_exit(fclose(out) != 0);
	}
	if (pid > 0 && !wait_for(pid)) {
		rewind(out);
		if (!fgets(why, (int)size, out))
			why[0] = '\0';
		why[strcspn(why, "\r\n")] = '\0';
		lnx_client_printable(why, strlen(why));
	}
	if (out)
		fclose(out);
}

/* A library that it needs may be missing. */
static void load(struct lnx_check *k)
{
	char why[LNX_CHECK_LINE / 2];

	if (!k->module[0])
		return;
	loader_says(k->module, why, sizeof(why));
	if (why[0])
		lnx_check_problem(k, "%s cannot be loaded: %.1000s", k->module, why);
}

/* ---- what lnx offers ---- */

/* "    domain: shm+tcp:eth0" */
static void take_domain(struct lnx_check *k, char *line)
{
	char *at = line + strspn(line, " \t");

	if (strncmp(at, "domain:", 7))
		return;
	at += 7;
	at += strspn(at, " \t");
	at[strcspn(at, "\r\n")] = '\0';
	if (*at)
		lnx_check_offer(k, at);
}

/* Is that sentence one of the problems? */
static bool is_known(const struct lnx_check *k, const char *text)
{
	const struct lnx_doc *d;
	char buf[32];

	for (d = k->problems->child; d; d = d->next)
		if (!strcmp(lnx_doc_value(d, buf, sizeof(buf)), text))
			return true;
	return false;
}

/* What lnx says of its settings is why it offers nothing, or something else. */
static void take_errors(struct lnx_check *k, FILE *err)
{
	char line[LNX_CHECK_LINE];

	rewind(err);
	while (fgets(line, sizeof(line), err)) {
		if (strncmp(line, "lnx: ", 5)) {
			fputs(line, stderr);
			continue;
		}
		line[strcspn(line, "\r\n")] = '\0';
		lnx_client_printable(line, strlen(line));
		if (!is_known(k, line + 5))
			lnx_check_problem(k, "%s", line + 5);
	}
	fclose(err);
}

static void ask(struct lnx_check *k)
{
	char *const argv[] = { "fi_info", "-p", "lnx", NULL };
	char line[LNX_CHECK_LINE];
	FILE *out = NULL, *err = tmpfile();
	pid_t pid;
	int status;

	/* The reason is wanted here, whatever the program will print. */
	setenv("FI_LNX_QUIET", "0", 1);
	pid = start(argv, &out, err);
	while (out && fgets(line, sizeof(line), out))
		take_domain(k, line);
	if (out)
		fclose(out);
	status = pid < 0 ? -1 : wait_for(pid);
	if (err)
		take_errors(k, err);
	if (status == 127 || status < 0)
		lnx_check_problem(k, "fi_info, which comes with libfabric, cannot be started: what "
			"lnx offers is not known");
	if (status == 127 || status < 0 || k->noffer)
		return;
	lnx_check_problem(k, "libfabric offers no lnx endpoint in this environment: a program would use "
		"another provider, or none");
	load(k);
}

/* A part without domains is every domain. */
static bool is_part(const struct lnx_link_part *asked, const struct lnx_link_part *p)
{
	unsigned i;

	if (strcasecmp(asked->prov, p->prov) || (asked->ndom && asked->ndom != p->ndom))
		return false;
	for (i = 0; i < asked->ndom; i++)
		if (strcmp(asked->dom[i], p->dom[i]))
			return false;
	return true;
}

bool lnx_check_is_link(const struct lnx_link *link, const char *text)
{
	struct lnx_links *l = lnx_must(calloc(1, sizeof(*l)));
	bool same = !lnx_links_parse(text, l, NULL, NULL, 0) && l->nlink == 1 &&
		    l->link[0].npart == link->npart;
	unsigned i;

	for (i = 0; same && i < link->npart; i++)
		same = is_part(&link->part[i], &l->link[0].part[i]);
	free(l);
	return same;
}

static bool has_offer(const struct lnx_check *k, const struct lnx_link *link)
{
	unsigned i;

	for (i = 0; i < k->noffer; i++)
		if (lnx_check_is_link(link, k->offer[i]))
			return true;
	return false;
}

static void compare(struct lnx_check *k)
{
	char text[LNX_LINK_TEXT_MAX];
	unsigned i;

	for (i = 0; k->asked && k->noffer && i < k->asked->nlink; i++) {
		if (has_offer(k, &k->asked->link[i]))
			return;		/* the first one that there is, is taken */
		if (lnx_link_print(&k->asked->link[i], text, sizeof(text)) < 0)
			continue;
		lnx_check_problem(k, "the link \"%s\" is not offered: \"%s\" is", text,
				  k->offer[0]);
	}
}

static void put_offers(struct lnx_check *k, struct lnx_doc *map, const char *key)
{
	struct lnx_doc *list = lnx_doc_list(map, key);
	unsigned i;

	for (i = 0; i < k->noffer; i++)
		lnx_doc_text(list, NULL, k->offer[i]);
}

static int run(struct lnxctl *c)
{
	struct lnx_check k = { .c = c };
	struct lnx_doc *map, *env;

	if (c->command && !c->command[0])
		return lnxctl_usage(c, "behind \"--\" there must be a command");
	if (c->pid || c->all || c->by_job || c->ep || c->file)
		return lnxctl_usage(c, "\"check\" looks at an environment, not at processes: it "
				    "has no -p, --all, --job, --ep and -f");
	c->doc = lnx_doc_new();
	map = lnx_doc_map(c->doc, "check");
	env = lnx_doc_map(map, "environment");
	k.problems = lnx_doc_list(NULL, "problems");
	lnxctl_environment(c, &k.conf, warn, &k);
	check_path(&k, env);
	check_filter(&k, env);
	check_links(&k, env);
	check_stats_file(&k);
	if (c->command) {
		/* What it has used anyway is no question any more. */
		if (!lnx_check_command(&k, map))
			lnxctl_openmpi(c->env, c->command, env, warn, &k);
		put_offers(&k, map, "links used");
	} else {
		lnxctl_openmpi(c->env, NULL, env, warn, &k);
		ask(&k);
		put_offers(&k, map, "links offered");
		compare(&k);
	}
	lnx_doc_attach(map, k.problems);
	lnx_doc_text(map, "verdict", k.nproblem ? "not as asked" : "as asked");
	free(k.asked);
	c->ndone = 1;
	lnxctl_finish(c);
	return k.nproblem ? LNXCTL_REFUSED : LNXCTL_OK;
}

const struct lnxctl_verb lnxctl_check = {
	.name = "check", .args = "[-- COMMAND...]",
	.help = "would this environment use lnx as asked; with a command: did it",
	.runs = true, .run = run,
};
