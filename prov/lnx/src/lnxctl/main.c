/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl: the table of verbs, and the command line. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/span.h"
#include "lnxctl/lnxctl.h"

static const struct lnxctl_verb *const verbs[] = {
	&lnxctl_list,
	&lnxctl_info,
	&lnxctl_net_show,
	&lnxctl_net_set,
	&lnxctl_peer_show,
	&lnxctl_peer_set,
	&lnxctl_path_show,
	&lnxctl_stats_show,
	&lnxctl_stats_reset,
	&lnxctl_global_show,
	&lnxctl_set,
	&lnxctl_params,
	&lnxctl_udsp_add,
	&lnxctl_udsp_del,
	&lnxctl_udsp_show,
	&lnxctl_export,
	&lnxctl_import,
	&lnxctl_route_add,
	&lnxctl_route_del,
	&lnxctl_route_show,
	&lnxctl_gateway_show,
	&lnxctl_gateway_set,
	&lnxctl_fault_add,
	&lnxctl_fault_del,
	&lnxctl_fault_show,
	&lnxctl_fault_reset,
	&lnxctl_ping,
	&lnxctl_discover,
	&lnxctl_debug_recovery,
	&lnxctl_explain,
	&lnxctl_check,
	&lnxctl_top,
	&lnxctl_metrics,
	&lnxctl_dump,
};

/* Options of all verbs.  What they do is in take_common. */
static const struct lnxctl_option common[] = {
	{ "p", "PID", "this process" },
	{ "all", NULL, "all processes of the user; for root, of all users" },
	{ "job", "ID", "the processes of this job; without ID, of the job that lnxctl "
	  "runs in" },
	{ "ep", "EP", "of the endpoints of a process only this one: its id or number" },
	{ "f", "FILE", "a copy that \"lnxctl dump\" made, instead of processes" },
	{ "dir", "DIR", "a directory instead of /dev/shm, as of a container: "
	  "/proc/PID/root/dev/shm" },
	{ "wait", "MS", "how long a process may take to answer; else 1000" },
	{ "v", "N", "more: 1 without N, up to 4" },
	{ "json", NULL, "JSON" },
	{ "table", NULL, "tables" },
	{ "yaml", NULL, "YAML, the default" },
	{ "help", NULL, "print this" },
};
#define NCOMMON	LNX_ARRAY_SIZE(common)

/* ---- help ---- */

static const struct lnxctl_option *find(const struct lnxctl_option *o, size_t n,
					const char *name, size_t len, size_t *index)
{
	size_t i;

	for (i = 0; i < n && o[i].name; i++)
		if (strlen(o[i].name) == len && !memcmp(o[i].name, name, len)) {
			*index = i;
			return &o[i];
		}
	return NULL;
}

static void put_option(const struct lnxctl_option *o)
{
	const char *dash = o->name[1] ? "--" : "-";
	bool optional = !strcmp(o->name, "job") || !strcmp(o->name, "v");
	char text[64];

	snprintf(text, sizeof(text), "%s%s%s%s%s", dash, o->name,
		 !o->arg ? "" : !optional ? " " : o->name[1] ? "[=" : " [",
		 o->arg ? o->arg : "", o->arg && optional ? "]" : "");
	printf("  %-20s %s\n", text, o->help);
}

#define HELP_COLUMN	37

/* Of one word, or two. */
static bool begins(const struct lnxctl_verb *v, const char *noun)
{
	size_t len = strlen(noun);

	return !strncmp(v->name, noun, len) && (!v->name[len] || v->name[len] == ' ');
}

/* The commands that begin with that word; NULL: all.  How many. */
static unsigned put_verbs(const char *noun)
{
	unsigned i, found = 0;

	for (i = 0; i < LNX_ARRAY_SIZE(verbs); i++) {
		int n;

		if (noun && !begins(verbs[i], noun))
			continue;
		n = printf("  %s %s", verbs[i]->name, verbs[i]->args);
		/* What is long has a line of its own. */
		printf("%s%*s%s\n", n > HELP_COLUMN - 1 ? "\n" : "",
		       n > HELP_COLUMN - 1 ? HELP_COLUMN : HELP_COLUMN - n, "",
		       verbs[i]->help);
		found++;
	}
	return found;
}

static int help(void)
{
	unsigned i;

	printf("usage: lnxctl [OPTION...] COMMAND [OPTION...] [ARGUMENT...]\n\n"
	       "Shows and controls the lnx endpoints of processes; see lnxctl(8).\n\n");
	put_verbs(NULL);
	printf("\nOptions of all commands:\n");
	for (i = 0; i < NCOMMON; i++)
		put_option(&common[i]);
	printf("  %-20s %s\n", "--version", "print the release");
	printf("  %-20s %s\n", "--list-commands", "print the names of all commands");
	return LNXCTL_OK;
}

static int help_verb(const struct lnxctl_verb *v)
{
	unsigned i;
	size_t at;

	printf("usage: lnxctl %s %s\n\n%c%s.\n", v->name, v->args,
	       toupper((unsigned char)v->help[0]), v->help + 1);
	for (i = 0; i < LNXCTL_OPTIONS && v->option[i].name; i++) {
		if (!i)
			printf("\n");
		put_option(&v->option[i]);
	}
	printf("\nOptions of all commands:\n");
	for (i = 0; i < NCOMMON; i++)
		if (!find(v->option, LNXCTL_OPTIONS, common[i].name,
			  strlen(common[i].name), &at))
			put_option(&common[i]);
	return LNXCTL_OK;
}

int lnxctl_usage(const struct lnxctl *c, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "lnxctl: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (c->verb)
		fprintf(stderr, "\nusage: lnxctl %s %s\n", c->verb->name, c->verb->args);
	else
		fprintf(stderr, "\n\"lnxctl --help\" lists the commands\n");
	return LNXCTL_USAGE;
}

/* ---- options ---- */

static int take_pid(struct lnxctl *c, const char *value)
{
	uint64_t v;

	if (!lnxctl_number(value, INT32_MAX, &v) || !v)
		return lnxctl_usage(c, "-p \"%s\": must be the number of a process",
				    value);
	c->pid = (pid_t)v;
	return 0;
}

static int take_format(struct lnxctl *c, enum lnx_format format)
{
	if (c->format_set && c->format != format)
		return lnxctl_usage(c, "only one of --json, --table and --yaml");
	if (!lnx_format_available(format))
		return lnxctl_usage(c, "--json: this lnxctl was built without jansson");
	c->format = format;
	c->format_set = true;
	return 0;
}

/* Of two values one would be left out without a word. */
static bool is_second(struct lnxctl *c, size_t option)
{
	bool second = common[option].arg && c->seen >> option & 1;

	c->seen |= 1u << option;
	return second;
}

static int take_common(struct lnxctl *c, const char *name, const char *value)
{
	uint64_t v = 1;

	if (!strcmp(name, "p"))
		return take_pid(c, value);
	if (!strcmp(name, "all")) {
		c->all = true;
	} else if (!strcmp(name, "job")) {
		c->by_job = true;
		c->job = *value ? value : NULL;
	} else if (!strcmp(name, "ep")) {
		c->ep = value;
	} else if (!strcmp(name, "f")) {
		c->file = value;
	} else if (!strcmp(name, "dir")) {
		c->root = value;
	} else if (!strcmp(name, "wait")) {
		if (!lnxctl_number(value, LNXCTL_WAIT_MAX_MS, &v) || !v)
			return lnxctl_usage(c, "--wait \"%s\": must be a number of ms, "
					    "at most %u", value, LNXCTL_WAIT_MAX_MS);
		c->wait_ms = (unsigned)v;
	} else if (!strcmp(name, "v")) {
		if (*value && !lnxctl_number(value, 4, &v))
			return lnxctl_usage(c, "-v \"%s\": must be a number from 0 to 4",
					    value);
		c->verbose = (int)v;
	} else if (!strcmp(name, "json")) {
		return take_format(c, LNX_FORMAT_JSON);
	} else if (!strcmp(name, "table")) {
		return take_format(c, LNX_FORMAT_TABLE);
	} else if (!strcmp(name, "yaml")) {
		return take_format(c, LNX_FORMAT_YAML);
	} else {
		c->help = true;
	}
	return 0;
}

static int unknown(struct lnxctl *c, const char *word)
{
	char list[300] = "";
	size_t n = 0, i;

	for (i = 0; c->verb && i < LNXCTL_OPTIONS && c->verb->option[i].name; i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s--%s",
				      i ? ", " : "", c->verb->option[i].name);
	if (n)
		return lnxctl_usage(c, "%s: there is no such option; \"%s\" has %s, and "
				    "those of all commands", word, c->verb->name, list);
	return lnxctl_usage(c, "%s: there is no such option; \"lnxctl --help\" lists "
			    "them", word);
}

struct words {
	char **v;
	int n, at;
};

/* The argument of an option: "=VALUE", or the next word.  NULL: it is missing. */
static const char *argument(struct words *w, const struct lnxctl_option *o,
			    const char *inside)
{
	const char *next = w->at < w->n ? w->v[w->at] : NULL;

	if (inside)
		return inside;
	/* Only -v takes a number or none, and only --job=ID has its own word. */
	if (!strcmp(o->name, "job"))
		return "";
	if (!strcmp(o->name, "v"))
		return next && *next && !next[strspn(next, "0123456789")] ?
		       w->v[w->at++] : "";
	if (!next)
		return NULL;
	w->at++;
	return next;
}

/* word begins with '-'. */
static int take_option(struct lnxctl *c, struct words *w, const char *word)
{
	bool is_long = word[1] == '-';
	const char *name = word + 1 + is_long, *inside = NULL, *value = "";
	const char *eq = is_long ? strchr(name, '=') : NULL;
	size_t len = eq ? (size_t)(eq - name) : is_long ? strlen(name) : 1, i = 0;
	const struct lnxctl_option *o = NULL, *own;

	if (eq)
		inside = eq + 1;
	else if (!is_long && name[1])
		inside = name + 1;
	/* One letter with "--", or several with "-", is none. */
	own = c->verb && *name && (len > 1) == is_long ?
	      find(c->verb->option, LNXCTL_OPTIONS, name, len, &i) : NULL;
	if (own)
		o = own;
	else if (*name && (len > 1) == is_long)
		o = find(common, NCOMMON, !strcmp(word, "-h") ? "help" : name,
			 !strcmp(word, "-h") ? 4 : len, &i);
	if (!o)
		return unknown(c, word);
	if (o->arg) {
		value = argument(w, o, inside);
		if (!value)
			return lnxctl_usage(c, "%s: needs an argument, %s", word, o->arg);
	} else if (inside) {
		return lnxctl_usage(c, "%s: has no argument", word);
	}
	if (own) {
		if (c->value[i])
			return lnxctl_usage(c, "%s: is there twice", word);
		c->value[i] = value;
		return 0;
	}
	if (is_second(c, i))
		return lnxctl_usage(c, "%s: is there twice", word);
	return take_common(c, o->name, value);
}

/* Behind "--" there are no options. */
static void take_rest(struct lnxctl *c, struct words *w)
{
	while (w->at < w->n)
		c->arg[c->narg++] = w->v[w->at++];
}

static int take_all(struct lnxctl *c, struct words *w, bool stop)
{
	while (w->at < w->n) {
		char *word = w->v[w->at];
		int ret;

		if (word[0] != '-' || !word[1]) {
			if (stop)
				return 0;
			c->arg[c->narg++] = word;
			w->at++;
			continue;
		}
		w->at++;
		if (!strcmp(word, "--")) {
			if (stop || c->verb->runs)
				c->command = w->v + w->at;
			else
				take_rest(c, w);
			return 0;
		}
		ret = take_option(c, w, word);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- verbs ---- */

static bool is_verb(const char *word)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(verbs) && strcmp(verbs[i]->name, word); i++)
		;
	return i < LNX_ARRAY_SIZE(verbs);
}

/* "net --help": its commands. */
static bool help_noun(const char *noun, const char *next)
{
	return next && (!strcmp(next, "--help") || !strcmp(next, "-h")) && put_verbs(noun);
}

static int no_verb(struct lnxctl *c, const char *noun, const char *word)
{
	char list[200] = "";
	size_t n = 0;
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(verbs); i++)
		if (begins(verbs[i], noun) && verbs[i]->name[strlen(noun)])
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
					      n ? ", " : "",
					      verbs[i]->name + strlen(noun) + 1);
	if (!n)
		return lnxctl_usage(c, "\"%s\": there is no such command", noun);
	return lnxctl_usage(c, "\"%s\" is followed by %s%s%s%s", noun, list,
			    word ? ", not by \"" : "", word ? word : "",
			    word ? "\"" : "");
}

/* One word, or two. */
static int find_verb(struct lnxctl *c, struct words *w)
{
	const char *noun = w->v[w->at++], *next = w->at < w->n ? w->v[w->at] : NULL;
	char both[64];
	unsigned i;

	snprintf(both, sizeof(both), "%s %s", noun, next ? next : "");
	for (i = 0; i < LNX_ARRAY_SIZE(verbs); i++) {
		if (!strcmp(verbs[i]->name, noun)) {
			c->verb = verbs[i];
			return 0;
		}
		if (next && !strcmp(verbs[i]->name, both)) {
			c->verb = verbs[i];
			w->at++;
			return 0;
		}
	}
	return no_verb(c, noun, next && next[0] != '-' ? next : NULL);
}

static int list_commands(void)
{
	unsigned i;

	for (i = 0; i < LNX_ARRAY_SIZE(verbs); i++)
		printf("%s\n", verbs[i]->name);
	return LNXCTL_OK;
}

/* Options that are commands.  True: *status is the result. */
static bool special(int argc, char **argv, int *status)
{
	*status = LNXCTL_OK;
	if (argc == 3 && !is_verb(argv[1]) && help_noun(argv[1], argv[2]))
		return true;
	if (argc != 2)
		return false;
	if (!strcmp(argv[1], "--list-commands"))
		*status = list_commands();
	else if (!strcmp(argv[1], "--version"))
		*status = printf("lnxctl (lnx) %s\n", PACKAGE_VERSION) < 0;
	else if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		 !strcmp(argv[1], "help"))
		*status = help();
	else
		return false;
	return true;
}

static int check_args(struct lnxctl *c)
{
	if (c->narg < c->verb->min_args)
		return lnxctl_usage(c, "\"%s\" needs more arguments", c->verb->name);
	if (c->narg > c->verb->max_args)
		return lnxctl_usage(c, "\"%s\": nothing of that kind follows \"%s\"",
				    c->arg[c->verb->max_args], c->verb->name);
	if ((c->pid != 0) + c->all + c->by_job + (c->file != NULL) > 1)
		return lnxctl_usage(c, "only one of -p, --all, --job and -f");
	return 0;
}

/* ---- standard input and output ---- */

/* A segment that is opened must not get the number of one of these that is closed: what is
 * printed would go there.  To use them fails all the same. */
static void reserve_standard(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Has all output arrived?  The disk may be full.  What has failed otherwise has said so. */
static int finish(const struct lnxctl *c, int status)
{
	errno = EIO;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	return status ? status : lnxctl_write_failed(c);
}

static int run(struct lnxctl *c)
{
	int ret = check_args(c);

	return ret ? ret : c->verb->run(c);
}

int main(int argc, char **argv)
{
	struct lnxctl c = { .root = LNX_STATE_DIR, .env = environ };
	struct words w = { .v = argv, .n = argc, .at = 1 };
	bool alone;
	int status;

	reserve_standard();
	if (special(argc, argv, &status))
		return finish(&c, status);
	c.arg = lnx_must(calloc((size_t)argc + 1, sizeof(*c.arg)));
	status = take_all(&c, &w, true);
	alone = w.at >= w.n && c.help;
	if (!status && !alone && (w.at >= w.n || c.command))
		status = lnxctl_usage(&c, "there is no command");
	if (!status && !alone)
		status = find_verb(&c, &w);
	if (!status && !alone)
		status = take_all(&c, &w, false);
	/* What is not known is a mistake also beside --help. */
	if (!status)
		status = alone ? help() : c.help ? help_verb(c.verb) : run(&c);
	status = finish(&c, status);
	lnxctl_put_failures(&c);
	lnx_procs_free(&c.procs);
	lnx_doc_free(c.doc);
	free(c.arg);
	return status;
}
