/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lnxctl check: would a program that is started in this environment use lnx, and the
 * rails that are asked for?  With a command: did it?
 *
 * Without a command the variables are checked, and fi_info (libfabric's own tool) says
 * what lnx offers.  With one, the command runs, and each endpoint that its processes on
 * this host close tells what it used (FI_LNX_STATS_FILE).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/links.h"
#include "conf/routes.h"
#include "lnxctl/lnxctl.h"
#include "lnxctl/openmpi.h"

#define LINE	4096
#define OFFERS	64u
#define MISSING	16u

struct check {
	struct lnxctl *c;
	struct lnx_doc *problems;	/* a list of sentences */
	unsigned nproblem;
	struct lnx_conf conf;
	char module[LINE];		/* the first one that looks well; "": none */
	struct lnx_links *asked;	/* FI_LNX_PROV_LINKS; NULL: not set, or wrong */
	char offer[OFFERS][LNX_LINK_TEXT_MAX];	/* what lnx offers, or has used */
	unsigned noffer;
	char missing[MISSING][LNX_ROUTE_TEXT_MAX];	/* routes */
	unsigned nmissing;
};

static void LNX_PRINTF(2, 3) problem(struct check *k, const char *fmt, ...)
{
	char text[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	lnx_doc_text(k->problems, NULL, text);
	k->nproblem++;
}

static const char *variable(const struct check *k, const char *name)
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
	problem(arg, "%s", sentence);
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
static void look_at_module(struct check *k, const char *path)
{
	const char *why;
	struct stat st;

	if (stat(path, &st) || access(path, R_OK))
		problem(k, "FI_PROVIDER_PATH names %s, which cannot be read: %s", path,
			strerror(errno));
	else if (!S_ISREG(st.st_mode))
		problem(k, "%s is no file: libfabric cannot load it", path);
	else if ((why = damage(path, &st)))
		problem(k, "%s cannot be loaded: %s; install it again", path, why);
	else if (!k->module[0])
		snprintf(k->module, sizeof(k->module), "%s", path);
}

static bool has_module(struct check *k, const char *dir)
{
	char path[LINE];

	snprintf(path, sizeof(path), "%s/liblnx-fi.so", dir);
	if (access(path, R_OK))
		return false;
	look_at_module(k, path);
	return true;
}

/* One part of FI_PROVIDER_PATH: a directory, or "+FILE".  True: lnx is there. */
static bool look_at(struct check *k, const char *part)
{
	const char *name = strrchr(part, '/');

	if (part[0] != '+') {
		if (name && !strcmp(name, "/liblnx-fi.so"))
			problem(k, "FI_PROVIDER_PATH has a file, %s, without a + in front, and "
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

static void check_path(struct check *k, struct lnx_doc *map)
{
	const char *path = variable(k, "FI_PROVIDER_PATH");
	char *copy, *part, *save = NULL;
	bool found = false;

	lnx_doc_text(map, "FI_PROVIDER_PATH", path ? path : "");
	if (!path) {
		if (!has_module(k, PROVIDER_DIR))
			problem(k, "FI_PROVIDER_PATH is not set, and there is no "
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
		problem(k, "FI_PROVIDER_PATH has no liblnx-fi.so: libfabric does not find "
			"lnx, unless it has one of its own");
}

/* Is lnx one of the names in a list? */
static bool lists_lnx(const char *list)
{
	for (;; list++) {
		size_t len = strcspn(list, ",");

		if (len == 3 && !strncasecmp(list, "lnx", 3))
			return true;
		list += len;
		if (!*list)
			return false;
	}
}

static void check_filter(struct check *k, struct lnx_doc *map)
{
	const char *filter = variable(k, "FI_PROVIDER");

	lnx_doc_text(map, "FI_PROVIDER", filter ? filter : "");
	if (!filter)
		return;
	if (filter[0] == '^' && lists_lnx(filter + 1))
		problem(k, "FI_PROVIDER=\"%s\" hides lnx: take it out of the list", filter);
	if (filter[0] != '^' && !lists_lnx(filter))
		problem(k, "FI_PROVIDER=\"%s\" hides lnx: add it to the list", filter);
}

static void check_interface(struct check *k, const struct lnx_link_part *p)
{
	unsigned i;

	if (strcasecmp(p->prov, "tcp") && strcasecmp(p->prov, "tcp;ofi_rxm"))
		return;
	for (i = 0; i < p->ndom; i++) {
		if (strchr(p->dom[i], '/'))
			continue;
		/* Not in /sys, which may be that of another name space. */
		if (!if_nametoindex(p->dom[i]))
			problem(k, "FI_LNX_PROV_LINKS names %s:%s, and this host has no "
				"interface %s", p->prov, p->dom[i], p->dom[i]);
	}
}

static void check_links(struct check *k, struct lnx_doc *map)
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
		problem(k, "FI_LNX_PROV_LINKS=\"%s\", character %zu: %s", text, at + 1,
			why);
		free(k->asked);
		k->asked = NULL;
		return;
	}
	for (i = 0; i < k->asked->nlink; i++)
		for (j = 0; j < k->asked->link[i].npart; j++)
			check_interface(k, &k->asked->link[i].part[j]);
}

/* ---- a program ---- */

/* Start it with its output in *out, if not NULL, and its errors in the file err then.  The
 * process, or -1. */
static pid_t start(char *const argv[], FILE **out, FILE *err)
{
	int fd[2];
	pid_t pid;

	if (out && pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		if (out) {
			dup2(fd[1], STDOUT_FILENO);
			if (err)
				dup2(fileno(err), STDERR_FILENO);
			close(fd[0]);
			close(fd[1]);
		}
		execvp(argv[0], argv);
		if (!out)
			fprintf(stderr, "lnxctl: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (!out)
		return pid;
	close(fd[1]);
	*out = pid < 0 ? NULL : fdopen(fd[0], "r");
	if (!*out)
		close(fd[0]);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void offer(struct check *k, const char *link)
{
	unsigned i;

	for (i = 0; i < k->noffer; i++)
		if (!strcmp(k->offer[i], link))
			return;
	if (k->noffer < OFFERS)
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
static void load(struct check *k)
{
	char why[LINE / 2];

	if (!k->module[0])
		return;
	loader_says(k->module, why, sizeof(why));
	if (why[0])
		problem(k, "%s cannot be loaded: %.1000s", k->module, why);
}

/* ---- what lnx offers ---- */

/* "    domain: shm+tcp:eth0" */
static void take_domain(struct check *k, char *line)
{
	char *at = line + strspn(line, " \t");

	if (strncmp(at, "domain:", 7))
		return;
	at += 7;
	at += strspn(at, " \t");
	at[strcspn(at, "\r\n")] = '\0';
	if (*at)
		offer(k, at);
}

/* Is that sentence one of the problems? */
static bool is_known(const struct check *k, const char *text)
{
	const struct lnx_doc *d;
	char buf[32];

	for (d = k->problems->child; d; d = d->next)
		if (!strcmp(lnx_doc_value(d, buf, sizeof(buf)), text))
			return true;
	return false;
}

/* What lnx says of its settings is why it offers nothing, or something else. */
static void take_errors(struct check *k, FILE *err)
{
	char line[LINE];

	rewind(err);
	while (fgets(line, sizeof(line), err)) {
		if (strncmp(line, "lnx: ", 5)) {
			fputs(line, stderr);
			continue;
		}
		line[strcspn(line, "\r\n")] = '\0';
		lnx_client_printable(line, strlen(line));
		if (!is_known(k, line + 5))
			problem(k, "%s", line + 5);
	}
	fclose(err);
}

static void ask(struct check *k)
{
	char *const argv[] = { "fi_info", "-p", "lnx", NULL };
	char line[LINE];
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
		problem(k, "fi_info, which comes with libfabric, cannot be started: what "
			"lnx offers is not known");
	if (status == 127 || status < 0 || k->noffer)
		return;
	problem(k, "libfabric offers no lnx endpoint in this environment: a program would use "
		"another provider, or none");
	load(k);
}

/* Is the link one of those, when written canonically? */
static bool has_offer(const struct check *k, const struct lnx_link *link)
{
	char text[LNX_LINK_TEXT_MAX];
	unsigned i;

	if (lnx_link_print(link, text, sizeof(text)) < 0)
		return false;
	for (i = 0; i < k->noffer; i++) {
		size_t len = strlen(text);

		/* A part without domains is every domain: their names follow. */
		if (!strcmp(k->offer[i], text) ||
		    (!strncmp(k->offer[i], text, len) && strchr(":+", k->offer[i][len])))
			return true;
	}
	return false;
}

static void compare(struct check *k, const char *verb)
{
	char text[LNX_LINK_TEXT_MAX];
	unsigned i;

	for (i = 0; k->asked && k->noffer && i < k->asked->nlink; i++) {
		if (has_offer(k, &k->asked->link[i]))
			return;		/* the first one that there is, is taken */
		if (lnx_link_print(&k->asked->link[i], text, sizeof(text)) < 0)
			continue;
		problem(k, "the link \"%s\" is not %s: \"%s\" is", text, verb,
			k->offer[0]);
	}
}

static void put_offers(struct check *k, struct lnx_doc *map, const char *key)
{
	struct lnx_doc *list = lnx_doc_list(map, key);
	unsigned i;

	for (i = 0; i < k->noffer; i++)
		lnx_doc_text(list, NULL, k->offer[i]);
}

/* ---- what a command used ---- */

struct used {
	char pid[32], link[LNX_LINK_TEXT_MAX], rail[LNX_STATE_NAME];
	unsigned long long messages;
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

static void put_endpoint(struct check *k, const char *line, struct lnx_doc *list)
{
	struct used u;
	struct lnx_doc *m;

	if (!label(line, "pid", u.pid, sizeof(u.pid)) ||
	    !label(line, "link", u.link, sizeof(u.link)))
		return;
	m = lnx_doc_map(list, NULL);
	lnx_doc_int(m, "pid", strtol(u.pid, NULL, 10));
	lnx_doc_text(m, "link", u.link);
	offer(k, u.link);
}

static void put_rail(const char *line, struct lnx_doc *list)
{
	const char *value = strrchr(line, ' ');
	struct used u;
	struct lnx_doc *m;

	if (!value || !label(line, "pid", u.pid, sizeof(u.pid)) ||
	    !label(line, "rail", u.rail, sizeof(u.rail)))
		return;
	m = lnx_doc_map(list, NULL);
	lnx_doc_int(m, "pid", strtol(u.pid, NULL, 10));
	lnx_doc_text(m, "rail", u.rail);
	lnx_doc_uint(m, "messages sent", strtoull(value, NULL, 10));
}

/* Each once, of whatever process. */
static void put_missing_route(struct check *k, const char *line)
{
	char route[LNX_ROUTE_TEXT_MAX];
	unsigned i;

	if (!label(line, "route", route, sizeof(route)))
		return;
	for (i = 0; i < k->nmissing; i++)
		if (!strcmp(k->missing[i], route))
			return;
	if (k->nmissing == MISSING)
		return;
	snprintf(k->missing[k->nmissing++], sizeof(k->missing[0]), "%s", route);
	problem(k, "the route \"%s\" is missing: frames came over that gateway, and no route "
		"over it leads back to where they come from", route);
}

static void read_one(struct check *k, const char *path, struct lnx_doc *eps,
		     struct lnx_doc *rails)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) >= 0) {
		if (!strncmp(line, "lnx_endpoint{", 13))
			put_endpoint(k, line, eps);
		else if (!strncmp(line, "lnx_rail_sent_messages_total{", 29))
			put_rail(line, rails);
		else if (!strncmp(line, "lnx_missing_route{", 18))
			put_missing_route(k, line);
	}
	free(line);
	if (f)
		fclose(f);
}

/* Read what the processes have written, and remove it. */
static unsigned read_all(struct check *k, const char *dir, struct lnx_doc *map)
{
	struct lnx_doc *eps = lnx_doc_list(map, "endpoints");
	struct lnx_doc *rails = lnx_doc_list(map, "rails");
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;
	char path[LINE];

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		read_one(k, path, eps, rails);
		unlink(path);
		n++;
	}
	if (d)
		closedir(d);
	rmdir(dir);
	return n;
}

/* False: it has not used lnx. */
static bool run_command(struct check *k, struct lnx_doc *map)
{
	char dir[] = "/tmp/lnxctl-check-XXXXXX", file[64];
	int status;
	pid_t pid;

	if (!mkdtemp(dir)) {
		problem(k, "%s: %s", dir, strerror(errno));
		return true;
	}
	if (variable(k, "FI_LNX_STATS_FILE"))
		problem(k, "FI_LNX_STATS_FILE is set, and \"check\" uses it itself: the "
			"command was run with another value");
	snprintf(file, sizeof(file), "%s/%%h.%%p", dir);
	setenv("FI_LNX_STATS_FILE", file, 1);
	pid = start(k->c->command, NULL, NULL);
	status = pid < 0 ? -1 : wait_for(pid);
	lnx_doc_int(map, "status of the command", status);
	if (status)
		problem(k, "the command ended with status %d", status);
	if (!read_all(k, dir, map)) {
		problem(k, "no process of the command on this host opened an lnx endpoint "
			"and closed it: it used another provider, or none");
		return false;
	}
	compare(k, "used");
	return true;
}

static int run(struct lnxctl *c)
{
	struct check k = { .c = c };
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
	if (c->command) {
		/* What it has used anyway is no question any more. */
		if (!run_command(&k, map))
			lnxctl_openmpi(c->env, c->command, env, warn, &k);
		put_offers(&k, map, "links used");
	} else {
		lnxctl_openmpi(c->env, NULL, env, warn, &k);
		ask(&k);
		put_offers(&k, map, "links offered");
		compare(&k, "offered");
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
	.run = run,
};
