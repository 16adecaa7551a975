/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each line is one string of the environment.  Whatever it contains, every
 * parameter stays in its range, and each warning is one short printable line.
 *
 * Sources: conf/conf.c policy/plan.c policy/class.c
 */
#define LNX_FUZZ_NAME "conf"
#include "fuzz.h"

#include <string.h>

#include "conf/conf.h"

#define LINES_MAX	256

static int warnings;

static void warn(void *arg, const char *sentence)
{
	const char *p;

	(void)arg;
	warnings++;
	FUZZ_CHECK(!strncmp(sentence, "FI_LNX_", 7));
	FUZZ_CHECK(strlen(sentence) < 511);
	for (p = sentence; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
}

static void check_bool(const struct lnx_param *p, bool v)
{
	(void)p;
	FUZZ_CHECK(v == 0 || v == 1);
}

static void check_uint(const struct lnx_param *p, uint64_t v)
{
	FUZZ_CHECK((v >= p->min && v <= p->max) ||
		   (v == LNX_CONF_AUTO && p->names));
}

static void check_str(const struct lnx_param *p, const char *v)
{
	(void)p;
	FUZZ_CHECK(!v || v[0]);
}

static void check_enum(const struct lnx_param *p, int v)
{
	int n = 0;

	while (p->names[n])
		n++;
	FUZZ_CHECK(v >= 0 && v < n);
}

#define CHECK_BOOL	check_bool
#define CHECK_UINT	check_uint
#define CHECK_STR	check_str
#define CHECK_ENUM	check_enum

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *env[LINES_MAX + 1], *line, *text = malloc(size + 1);
	const struct lnx_param *row = lnx_params;
	struct lnx_conf c;
	size_t n = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (line = strtok(text, "\n"); line && n < LINES_MAX;
	     line = strtok(NULL, "\n"))
		env[n++] = line;
	env[n] = NULL;
	warnings = 0;
	memset(&c, 0xff, sizeof(c));
	FUZZ_CHECK(lnx_conf_read(&c, env, warn, NULL) == warnings);
	FUZZ_CHECK((size_t)warnings <= n);
#define LNX_PARAM(name, type, def, min, max, unit, names, help) \
	CHECK_##type(row++, c.name);
#include "conf/params.def"
#undef LNX_PARAM
	free(text);
	return 0;
}
