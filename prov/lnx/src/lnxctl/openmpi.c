/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings of Open MPI.  See openmpi.h.  Called by lnxctl/check.c. */
#include "lnxctl/openmpi.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/compiler.h"

#define LINE	1024
#define PREFIX	"OMPI_MCA_"
#define MCA	"--mca "

enum { PML, MTL, BTL, INCLUDE, EXCLUDE, SETTINGS };

/* Names of one setting; the later ones are synonyms. */
static const char *const names[SETTINGS][4] = {
	[PML] = { "pml" },
	[MTL] = { "mtl" },
	[BTL] = { "btl" },
	[INCLUDE] = { "mtl_ofi_provider_include", "btl_ofi_provider_include",
		      "opal_common_ofi_provider_include" },
	[EXCLUDE] = { "mtl_ofi_provider_exclude", "btl_ofi_provider_exclude",
		      "opal_common_ofi_provider_exclude" },
};

struct setting {
	char value[LINE];		/* "": not set */
	char where[LINE];		/* what it is called there */
	char cure[96];			/* what to set instead, up to the value */
};

struct look {
	char *const *env;
	struct setting set[SETTINGS];
	bool meant;			/* Open MPI is used */
	void (*problem)(void *arg, const char *sentence);
	void *arg;
};

static void LNX_PRINTF(2, 3) problem(struct look *l, const char *fmt, ...)
{
	char text[3 * LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l->problem(l->arg, text);
}

static const char *variable(const struct look *l, const char *name)
{
	size_t len = strlen(name);
	char *const *e;

	for (e = l->env; *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=' && (*e)[len + 1])
			return *e + len + 1;
	return NULL;
}

/* ---- where settings are ---- */

static int find(const char *name, size_t len)
{
	unsigned i, k;

	for (i = 0; i < SETTINGS; i++)
		for (k = 0; names[i][k]; k++)
			if (strlen(names[i][k]) == len && !strncmp(names[i][k], name, len))
				return (int)i;
	return -1;
}

/* What is found first counts.  False: it is none of these settings, or is set already. */
static bool take(struct look *l, const char *name, size_t len, const char *value,
		 const char *before, const char *file)
{
	int i = find(name, len);

	if (i < 0 || l->set[i].value[0] || !value[0])
		return false;
	snprintf(l->set[i].value, LINE, "%s", value);
	snprintf(l->set[i].where, LINE, "%s%s%s%.*s", file, file[0] ? ": " : "", before,
		 (int)len, name);
	/* A variable comes before files. */
	snprintf(l->set[i].cure, sizeof(l->set[i].cure), before[0] == '-' ?
		 MCA "%.*s " : PREFIX "%.*s=", (int)len, name);
	return true;
}

static bool is_mpirun(const char *program)
{
	static const char *const known[] = { "mpirun", "mpiexec", "orterun", "prterun", "oshrun" };
	const char *base = strrchr(program, '/');
	unsigned i;

	base = base ? base + 1 : program;
	for (i = 0; i < LNX_ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i]);

		/* "mpirun.openmpi" is what Debian has beside that of others. */
		if (!strncmp(base, known[i], n) && (!base[n] || !strcmp(base + n, ".openmpi")))
			return true;
	}
	return false;
}

/* mpirun --mca NAME VALUE; behind what starts it, as timeout or env. */
static void look_at_command(struct look *l, char *const command[])
{
	while (command && command[0] && !is_mpirun(command[0]))
		command++;
	if (!command || !command[0])
		return;
	l->meant = true;
	for (; command[0]; command++)
		if ((!strcmp(command[0], "--mca") || !strcmp(command[0], "-mca") ||
		     !strcmp(command[0], "--gmca") || !strcmp(command[0], "-gmca")) &&
		    command[1] && command[2])
			take(l, command[1], strlen(command[1]), command[2], MCA, "");
}

static void look_at_variables(struct look *l)
{
	char *const *e;

	for (e = l->env; *e; e++) {
		const char *name = *e + strlen(PREFIX), *eq;

		if (strncmp(*e, PREFIX, strlen(PREFIX)))
			continue;
		eq = strchr(name, '=');
		if (eq && take(l, name, (size_t)(eq - name), eq + 1, PREFIX, ""))
			l->meant = true;
	}
	if (variable(l, "OMPI_COMM_WORLD_SIZE"))
		l->meant = true;
}

/* "name = value", and comments behind "#". */
static void look_at_line(struct look *l, char *line, const char *file)
{
	char *eq, *value;
	size_t len;

	line[strcspn(line, "#\r\n")] = '\0';
	line += strspn(line, " \t");
	eq = strchr(line, '=');
	if (!eq)
		return;
	len = strcspn(line, " \t=");
	value = eq + 1 + strspn(eq + 1, " \t");
	while (value[0] && strchr(" \t", value[strlen(value) - 1]))
		value[strlen(value) - 1] = '\0';
	take(l, line, len, value, "", file);
}

static void look_at_file(struct look *l, const char *file)
{
	FILE *f = fopen(file, "re");
	char line[LINE];

	while (f && fgets(line, sizeof(line), f))
		look_at_line(l, line, file);
	if (f)
		fclose(f);
}

/* The directory of the first mpirun in PATH; false: there is none. */
static bool find_mpirun(const struct look *l, char *dir, size_t size)
{
	const char *path = variable(l, "PATH");
	char program[LINE];

	while (path && *path) {
		size_t len = strcspn(path, ":");

		if (snprintf(program, sizeof(program), "%.*s/mpirun", (int)len, path) <
		    (int)sizeof(program) && !access(program, X_OK)) {
			snprintf(dir, size, "%.*s", (int)len, path);
			return true;
		}
		path += len + (path[len] == ':');
	}
	return false;
}

/* The user's own file comes before that of the installation. */
static void look_at_files(struct look *l)
{
	const char *files = variable(l, PREFIX "mca_base_param_files"), *at;
	char name[LINE], dir[LINE / 2];

	if (!files)
		files = variable(l, PREFIX "mca_param_files");
	if (files) {
		for (at = files; *at; at += strcspn(at, ":,"), at += *at != '\0') {
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ":,"), at);
			look_at_file(l, name);
		}
		return;
	}
	at = variable(l, "HOME");
	if (at) {
		snprintf(name, sizeof(name), "%s/.openmpi/mca-params.conf", at);
		look_at_file(l, name);
	}
	at = variable(l, "OPAL_PREFIX");
	if (at) {
		snprintf(name, sizeof(name), "%s/etc/openmpi-mca-params.conf", at);
		look_at_file(l, name);
	} else if (find_mpirun(l, dir, sizeof(dir))) {
		snprintf(name, sizeof(name), "%s/../etc/openmpi-mca-params.conf", dir);
		look_at_file(l, name);
		look_at_file(l, "/etc/openmpi/openmpi-mca-params.conf");
	}
}

/* ---- what they do ---- */

/* Does a list of components, or "^" and those that are not wanted, leave that one? */
static bool allows(const char *list, const char *component)
{
	size_t len, want = strlen(component);
	bool without = list[0] == '^', in = false;

	for (list += without; !in && *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		in = len == want && !strncmp(list, component, len);
	}
	return in != without;
}

/* A list of providers: Open MPI compares as much of a name as its entry has. */
static bool has_lnx(const char *list)
{
	size_t len;

	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len && len <= 3 && !strncasecmp("lnx", list, len))
			return true;
	}
	return false;
}

static void check_layers(struct look *l)
{
	const struct setting *pml = &l->set[PML], *mtl = &l->set[MTL], *btl = &l->set[BTL];

	/* One that says so gets libfabric by its btl. */
	if (btl->value[0] && btl->value[0] != '^' && allows(btl->value, "ofi") &&
	    pml->value[0] && allows(pml->value, "ob1"))
		return;
	if (pml->value[0] && !allows(pml->value, "cm"))
		problem(l, "%s=\"%s\" leaves out cm, the only one that sends messages by "
			"libfabric: set %scm", pml->where, pml->value, pml->cure);
	if (mtl->value[0] && !allows(mtl->value, "ofi"))
		problem(l, "%s=\"%s\" leaves out ofi, the one that uses libfabric: set "
			"%sofi", mtl->where, mtl->value, mtl->cure);
}

static void check_providers(struct look *l)
{
	const struct setting *in = &l->set[INCLUDE], *out = &l->set[EXCLUDE];
	const char *end = strrchr(in->value, ':');
	bool named = end && !strcasecmp(end, ":lnx");

	if (in->value[0] && !has_lnx(in->value))
		problem(l, "%s=\"%s\" %s, and Open MPI uses another transport without a word: "
			"set %slnx%s%.*s", in->where, in->value,
			named ? "fits no provider: its name is lnx, and its link another "
			"setting" : "leaves out lnx", in->cure,
			named ? " and FI_LNX_PROV_LINKS=" : "",
			named ? (int)(end - in->value) : 0, in->value);
	else if (!in->value[0] && has_lnx(out->value))
		problem(l, "%s=\"%s\" leaves out lnx: take it out of the list", out->where,
			out->value);
}

void lnxctl_openmpi(char *const env[], char *const command[], struct lnx_doc *map,
		    void (*fn)(void *arg, const char *sentence), void *arg)
{
	struct look l = { .env = env, .problem = fn, .arg = arg };
	unsigned i;

	look_at_command(&l, command);
	look_at_variables(&l);
	if (!l.meant)
		return;
	look_at_files(&l);
	for (i = 0; i < SETTINGS; i++)
		if (l.set[i].value[0])
			lnx_doc_text(map, l.set[i].where, l.set[i].value);
	check_layers(&l);
	check_providers(&l);
}
