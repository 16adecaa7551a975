/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints tables of the sources:
 *	gen-params man		parameters, a section for a manual page, in roff
 *	gen-params classes	classes of failures, in roff
 *	gen-params errors	classes of core providers' errors, in roff
 * Definition lists in roff, not tbl tables: they need no preprocessor and keep
 * their shape on any width.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "policy/errclass.h"

static void put_variable(FILE *out, const struct lnx_param *p)
{
	const char *c;

	fputs("FI_LNX_", out);
	for (c = p->name; *c; c++)
		fputc(toupper((unsigned char)*c), out);
}

/* Text in roff: a dash that can be copied, and no line read as a request. */
static void put_roff(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		switch (*text) {
		case '\\': fputs("\\e", out); break;
		case '-': fputs("\\-", out); break;
		case '\'': fputs("\\(aq", out); break;
		case '"': fputs("\\(dq", out); break;
		default: fputc(*text, out);
		}
	}
}

/* 16384 as 16k where that is the same. */
static void put_number(FILE *out, uint64_t v, bool bytes)
{
	const char *suffix = "\0kmg";

	if (bytes)
		while (v && !(v % 1024) && suffix[1]) {
			v /= 1024;
			suffix++;
		}
	fprintf(out, "%" PRIu64, v);
	if (*suffix)
		fputc(*suffix, out);
}

static void put_allowed(FILE *out, const struct lnx_param *p)
{
	bool bytes = !strcmp(p->unit, "bytes");
	char buf[LNX_PARAM_ALLOWED_BYTES];

	switch (p->type) {
	case LNX_PARAM_BOOL:
		fputs("0 or 1", out);
		break;
	case LNX_PARAM_UINT:
		if (p->names)
			fprintf(out, "%s, or ", p->names[0]);
		put_number(out, p->min, bytes);
		fputs(" to ", out);
		put_number(out, p->max, bytes);
		if (p->unit[0])
			fprintf(out, " %s", p->unit);
		break;
	default:
		fputs(lnx_conf_allowed(p, buf, sizeof(buf)), out);
	}
}

static int lnx_conf_man(FILE *out)
{
	const struct lnx_param *p;

	fputs(".\\\" Made by contrib/gen-params from conf/params.def.\n", out);
	for (p = lnx_params; p < lnx_params + lnx_nparams; p++) {
		fputs(".TP\n.B ", out);
		put_variable(out, p);
		fputs("\n(", out);
		put_allowed(out, p);
		if (p->def[0]) {
			fputs("; default ", out);
			put_roff(out, p->def);
		}
		fputs(")\n.br\n", out);
		put_roff(out, p->help);
		fputc('\n', out);
	}
	return ferror(out) ? -1 : 0;
}

static int classes_man(FILE *out)
{
	static const char *const targets[] = {
		[LNX_CHARGE_NONE] = "none",
		[LNX_CHARGE_LOCAL] = "the local rail",
		[LNX_CHARGE_REMOTE] = "the peer's rail",
		[LNX_CHARGE_BOTH] = "both rails",
	};
	const struct lnx_class_row *c;

	fputs(".\\\" Made by contrib/gen-params from policy/classes.def.\n", out);
	for (c = lnx_class_rows + 1; c < lnx_class_rows + LNX_CLASS_COUNT; c++) {
		fprintf(out, ".TP\n.B %s\n", c->name);
		put_roff(out, c->help);
		fputs(".\n.br\nCharged: ", out);
		put_roff(out, targets[c->pays]);
		fputs(".\n", out);
		if (!c->sure)
			fputs("It may have arrived.\n", out);
	}
	return ferror(out) ? -1 : 0;
}

/* LNX_FROM_TCP is "TCP" there; "any" is nothing here. */
static void put_lower(FILE *out, const char *text, int width)
{
	if (!strncmp(text, "ANY", 3))
		text = "";
	for (; *text; text++, width--)
		fputc(tolower((unsigned char)*text), out);
	fprintf(out, "%*s", width > 0 ? width : 0, "");
}

static int errors_man(FILE *out)
{
	const struct lnx_error_row *e;
	const char *name;

	fputs(".\\\" Made by contrib/gen-params from policy/errors.def.\n.nf\n",
	      out);
	for (e = lnx_error_rows; e < lnx_error_rows + lnx_nerrors; e++) {
		name = e->err_name;
		if (!strncmp(name, "LNX_", 4))
			name += 4;
		fputs("    ", out);
		put_lower(out, e->from, 6);
		put_lower(out, e->during, 8);
		fprintf(out, "%-14s", e->err ? name : "");
		if (e->number)
			fprintf(out, "%-5d", e->number);
		else
			fprintf(out, "%-5s", "");
		fputs(e->class == LNX_CLASS_OK ? "none: the message is at fault" :
		      lnx_class_name(e->class), out);
		fputc('\n', out);
	}
	fputs(".fi\n", out);
	return ferror(out) ? -1 : 0;
}

int main(int argc, char **argv)
{
	int ret = -1;

	if (argc == 2 && !strcmp(argv[1], "man"))
		ret = lnx_conf_man(stdout);
	else if (argc == 2 && !strcmp(argv[1], "classes"))
		ret = classes_man(stdout);
	else if (argc == 2 && !strcmp(argv[1], "errors"))
		ret = errors_man(stdout);
	else
		fputs("usage: gen-params man|classes|errors\n", stderr);
	return ret || fflush(stdout) ? 1 : 0;
}
