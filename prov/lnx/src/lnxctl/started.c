/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watches what a command starts.  See started.h. */
#include "lnxctl/started.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "conf/rank.h"
#include "lnxctl/lnxctl.h"

#define RANK_BYTES	12
#define SAID_MAX	8u		/* sentences */
#define VARIABLES	4096u		/* of a process that are looked at */

/* A process. */
struct one {
	pid_t pid, inner;		/* inner: in its own pid name space */
	unsigned group;			/* index of the first process of its group */
	uint64_t image;			/* what it executes; forks have the same */
	char name[32], rank[RANK_BYTES];
	uint64_t first_ns, next_ns;	/* seen; to be looked at */
	bool lives;
	bool fabric, lnx;		/* has it mapped libfabric, lnx? */
	bool hides, elsewhere, untold;	/* its FI_PROVIDER, FI_PROVIDER_PATH,
					 * FI_LNX_STATS_FILE keep it from lnx or from us */
	bool ompi;			/* mpirun of Open MPI has started it */
	bool used;
};

/* One of all processes of the host. */
struct known {
	pid_t pid;
	int one;			/* index; -1: none of ours */
};

struct lnx_started {
	struct one *all;
	unsigned n, room;
	struct known *known, *next;	/* by pid */
	unsigned nknown, nnext, known_room, next_room;
	const char *path, *stats, *rank;	/* of the environment of the command */
};

static void *enough(void *array, unsigned *room, unsigned n, size_t size)
{
	if (n < *room)
		return array;
	*room = *room ? 2 * *room : 256;
	return lnx_must(realloc(array, *room * size));
}

/* ---- environments ---- */

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

bool lnx_started_hides(const char *filter)
{
	return *filter && (*filter == '^' ? lists_lnx(filter + 1) : !lists_lnx(filter));
}

static const char *variable(char *const env[], const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return "";
}

/* ---- /proc ---- */

/* A whole file, with NUL behind it, to be freed; NULL: it cannot be read. */
static char *slurp(pid_t pid, const char *name, size_t *len)
{
	size_t room = 0, n = 0;
	char path[48], *text = NULL;
	ssize_t r = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	do {
		n += (size_t)r;
		if (room - n < 2) {
			room = room ? 2 * room : 4096;
			text = lnx_must(realloc(text, room));
		}
		r = read(fd, text + n, room - n - 1);
	} while (r > 0);
	close(fd);
	text[n] = '\0';
	*len = n;
	return text;
}

/* False: it is not there, or has ended.  image: where its program and its arguments are, which
 * is chosen at random for each that is executed; 0: not known. */
static bool read_stat(pid_t pid, pid_t *parent, uint64_t *image)
{
	unsigned long long code = 0, stack = 0;
	size_t len;
	char *text = slurp(pid, "stat", &len), *p = text ? strrchr(text, ')') : NULL;
	bool ok = false;
	char state;
	int ppid;

	if (p && sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
			"%*d %*d %*d %*d %*u %*u %*d %*u %llu %*u %llu", &state, &ppid,
			&code, &stack) >= 2 && state != 'Z' && state != 'X') {
		*parent = ppid;
		*image = stack ? lnx_mix64(code) ^ stack : 0;
		ok = true;
	}
	free(text);
	return ok;
}

static void look_at_environment(const struct lnx_started *s, struct one *o)
{
	size_t len, at;
	char *text = slurp(o->pid, "environ", &len), *env[VARIABLES + 1];
	const char *rank;
	unsigned n = 0;

	for (at = 0; text && at < len && n < VARIABLES; at += strlen(text + at) + 1)
		env[n++] = text + at;
	env[n] = NULL;
	if (n) {
		rank = lnx_rank(env);
		snprintf(o->rank, sizeof(o->rank), "%s", rank ? rank : "");
		/* lnxctl itself may be that rank, of the batch system. */
		if (!strcmp(o->rank, s->rank))
			o->rank[0] = '\0';
		o->hides = lnx_started_hides(variable(env, "FI_PROVIDER"));
		o->elsewhere = strcmp(variable(env, "FI_PROVIDER_PATH"), s->path) != 0;
		o->untold = strcmp(variable(env, "FI_LNX_STATS_FILE"), s->stats) != 0;
		o->ompi = *variable(env, "OMPI_COMM_WORLD_SIZE") != '\0';
	}
	free(text);
}

static void look_at_memory(struct one *o)
{
	size_t len;
	char *text = slurp(o->pid, "maps", &len);

	o->fabric |= text && strstr(text, "/libfabric.so");
	o->lnx |= text && strstr(text, "/liblnx-fi.so");
	free(text);
}

static void look_at_number(struct one *o)
{
	size_t len;
	char *text = slurp(o->pid, "status", &len);
	char *at = text ? strstr(text, "\nNSpid:") : NULL, *last;

	o->inner = o->pid;
	if (at) {
		at[1 + strcspn(at + 1, "\n")] = '\0';
		last = strrchr(at, '\t');
		if (last)
			o->inner = (pid_t)strtol(last, NULL, 10);
	}
	free(text);
}

/* ---- processes ---- */

static void look_deep(struct lnx_started *s, struct one *o, uint64_t now)
{
	uint64_t age = now - o->first_ns;

	lnx_proc_name(o->pid, o->name, sizeof(o->name));
	look_at_environment(s, o);
	look_at_memory(o);
	if (o->lnx)
		o->next_ns = UINT64_MAX;
	else
		o->next_ns = now + (age < LNXCTL_STARTED_YOUNG_NS ? 0 : LNXCTL_STARTED_OLD_NS);
}

/* False: it has ended, and its parent has not noticed. */
static bool look_at(struct lnx_started *s, unsigned i, uint64_t now)
{
	struct one *o = &s->all[i];
	uint64_t image = o->image;
	pid_t parent;

	if (!read_stat(o->pid, &parent, &image))
		return false;
	/* While it ends it has none any more. */
	if (image && image != o->image) {
		/* It is another program now, alone unless it is of a rank. */
		if (!o->rank[0] || strcmp(s->all[o->group].rank, o->rank))
			o->group = i;
		o->fabric = o->lnx = false;
		o->image = image;
		o->first_ns = o->next_ns = now;
	}
	if (o->next_ns <= now)
		look_deep(s, o, now);
	return true;
}

static int find_known(const struct known *list, unsigned n, pid_t pid)
{
	unsigned lo = 0, hi = n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (list[mid].pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && list[lo].pid == pid ? (int)lo : -1;
}

/* Of the process pid, known in this look or in the last one: 0, with *one; else -1. */
static int whose(const struct lnx_started *s, pid_t pid, int *one)
{
	int at = find_known(s->next, s->nnext, pid);

	if (at >= 0) {
		*one = s->next[at].one;
		return 0;
	}
	at = find_known(s->known, s->nknown, pid);
	*one = at >= 0 ? s->known[at].one : -1;
	return at >= 0 ? 0 : -1;
}

/* The index of a new process of ours. */
static int add(struct lnx_started *s, pid_t pid, int parent, uint64_t image, uint64_t now)
{
	struct one *o;

	s->all = enough(s->all, &s->room, s->n, sizeof(*s->all));
	o = &s->all[s->n];
	*o = (struct one){ .pid = pid, .group = s->n, .image = image, .first_ns = now };
	look_at_number(o);
	look_deep(s, o, now);
	if (parent >= 0 && (s->all[parent].image == image ||
			    (o->rank[0] && !strcmp(s->all[parent].rank, o->rank))))
		o->group = s->all[parent].group;
	return (int)s->n++;
}

/* A process that was not there in the last look.  False: look again whose it is. */
static bool is_new(struct lnx_started *s, pid_t pid, uint64_t now, int *one)
{
	pid_t up;
	uint64_t image;
	int parent = -1;

	*one = -1;
	if (!read_stat(pid, &up, &image))
		return true;
	if (up == getpid()) {
		*one = add(s, pid, -1, image, now);
		return true;
	}
	/* Numbers begin anew at the end: its parent may be further on. */
	if (up > 1 && whose(s, up, &parent))
		return false;
	if (parent >= 0)
		*one = add(s, pid, parent, image, now);
	return true;
}

static void swap_known(struct lnx_started *s)
{
	struct known *list = s->known;
	unsigned room = s->known_room;

	s->known = s->next;
	s->nknown = s->nnext;
	s->known_room = s->next_room;
	s->next = list;
	s->next_room = room;
	s->nnext = 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* What this process has used of processors. */
static uint64_t used_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * LNX_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t lnx_started_look(struct lnx_started *s)
{
	uint64_t now = lnx_clock_ns(), before = used_ns(), took;
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned i;
	int at, one;

	for (i = 0; i < s->n; i++)
		s->all[i].lives = false;
	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		at = find_known(s->known, s->nknown, pid);
		if (at >= 0)
			one = s->known[at].one;
		else if (!is_new(s, pid, now, &one))
			continue;
		if (one >= 0)
			s->all[one].lives = at < 0 || look_at(s, (unsigned)one, now);
		s->next = enough(s->next, &s->next_room, s->nnext, sizeof(*s->next));
		s->next[s->nnext++] = (struct known){ pid, one };
	}
	if (d)
		closedir(d);
	qsort(s->next, s->nnext, sizeof(*s->next), by_pid);
	swap_known(s);
	took = used_ns() - before;
	return LNX_MAX(LNXCTL_STARTED_LOOK_NS, took * LNXCTL_STARTED_PART);
}

void lnx_started_used(struct lnx_started *s, pid_t pid, const char *rank)
{
	bool found = false;
	unsigned i;

	for (i = 0; i < s->n; i++)
		found |= s->all[i].inner == pid;
	for (i = 0; i < s->n; i++) {
		struct one *o = &s->all[i];

		if (o->inner == pid ||
		    (rank[0] && !strcmp(o->rank, rank) && (!found || !o->fabric)))
			o->used = s->all[o->group].used = true;
	}
}

/* ---- the verdict ---- */

static const char only_lnx[] = "; with \"--mca pml cm --mca mtl ofi "
	"--mca mtl_ofi_provider_include lnx\" mpirun takes nothing else";

/* What there is to say of a process of whose group none used lnx, and what would cure that;
 * false: nothing. */
static bool sentence(const struct one *o, char *buf, size_t size)
{
	int n = snprintf(buf, size, "process %d (%s)", (int)o->pid, o->name);
	const char *pass = o->ompi ? ", as mpirun -x does" : "";

	if (o->rank[0])
		n += snprintf(buf + n, size - (size_t)n, ", rank %s,", o->rank);
	buf += n;
	size -= (size_t)n;
	if (o->fabric && o->hides)
		snprintf(buf, size, " was started with a FI_PROVIDER that hides lnx: set it to "
			 "lnx there, too%s", pass);
	else if (o->fabric && o->elsewhere && !o->lnx)
		snprintf(buf, size, " was started with another FI_PROVIDER_PATH, or without: "
			 "it did not find this lnx; pass that variable on to it%s", pass);
	else if (o->fabric && o->untold)
		snprintf(buf, size, " was started without the FI_LNX_STATS_FILE of \"check\": "
			 "what it used is not known; pass that variable on to it%s", pass);
	else if (o->lnx && o->lives)
		snprintf(buf, size, " goes on: what it uses is not known yet");
	else if (o->lnx)
		snprintf(buf, size, " had lnx loaded and closed no endpoint of it: it used "
			 "another provider, or none, or was killed%s", o->ompi ? only_lnx : "");
	else if (o->rank[0])
		snprintf(buf, size, " did not load lnx: it used something else%s",
			 o->ompi ? only_lnx : "");
	else
		return false;
	return true;
}

/* The process of a group that most is known of; NULL: none of it should have used lnx. */
static const struct one *worst(const struct lnx_started *s, unsigned group)
{
	const struct one *found = NULL;
	char buf[400];
	unsigned i;

	for (i = group; i < s->n; i++)
		if (s->all[i].group == group && sentence(&s->all[i], buf, sizeof(buf)) &&
		    (!found || (!found->fabric && s->all[i].fabric)))
			found = &s->all[i];
	return found;
}

void lnx_started_judge(const struct lnx_started *s,
		       void (*say)(void *arg, const char *sentence), void *arg)
{
	const struct one *o;
	unsigned i, n = 0;
	char buf[400];

	for (i = 0; i < s->n; i++) {
		if (s->all[i].group != i || s->all[i].used || !(o = worst(s, i)))
			continue;
		if (n++ >= SAID_MAX)
			continue;
		sentence(o, buf, sizeof(buf));
		say(arg, buf);
	}
	if (n <= SAID_MAX)
		return;
	snprintf(buf, sizeof(buf), "the same, or the like, of %u more", n - SAID_MAX);
	say(arg, buf);
}

/* ---- begin and end ---- */

struct lnx_started *lnx_started_open(char **env)
{
	struct lnx_started *s = lnx_must(calloc(1, sizeof(*s)));
	const char *rank = lnx_rank(env);

	s->path = variable(env, "FI_PROVIDER_PATH");
	s->stats = variable(env, "FI_LNX_STATS_FILE");
	s->rank = rank ? rank : "";
	/* All that there is now is none of ours. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	lnx_started_look(s);
	return s;
}

void lnx_started_close(struct lnx_started *s)
{
	free(s->all);
	free(s->known);
	free(s->next);
	free(s);
}
