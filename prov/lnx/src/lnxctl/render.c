/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes trees.  See render.h. */
#include "lnxctl/render.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

#define STEP	4			/* blanks of one level */
#define NUMBER	32

bool lnx_format_available(enum lnx_format format)
{
#ifdef HAVE_JANSSON
	(void)format;
	return true;
#else
	return format != LNX_FORMAT_JSON;
#endif
}

/* ---- YAML ---- */

/* Would YAML 1.1 or 1.2 read it as a number, a truth value, or nothing? */
static bool special(const char *text)
{
	static const char *const words[] = {
		"true", "false", "yes", "no", "on", "off", "y", "n", "null", "~",
		".inf", ".nan", NULL
	};
	char *end;
	unsigned i;

	for (i = 0; words[i]; i++)
		if (!strcasecmp(words[i], text))
			return true;
	strtod(text, &end);
	if (end != text && !*end)
		return true;
	/* 1:30 is a number of YAML 1.1, and so is 1_000; and there are dates. */
	return isdigit((unsigned char)text[0]) && strpbrk(text, ":_-") &&
	       !text[strspn(text, "0123456789:._- +TZ")];
}

static bool plain(const char *text)
{
	const char *c;

	if (!*text || special(text) || text[strlen(text) - 1] == ' ' ||
	    !(isalnum((unsigned char)*text) || *text == '/' || *text == '_' || *text == '.'))
		return false;
	for (c = text; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("_-./+@;=,() :'%<>", *c))
			return false;
		if (*c == ':' && (c[1] == ' ' || !c[1]))
			return false;
	}
	return true;
}

void lnx_yaml_scalar(FILE *out, const char *text)
{
	const char *c;

	if (plain(text)) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (c = text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c == '\n')
			fputs("\\n", out);
		else if (*c < ' ' || *c > '~')
			fprintf(out, "\\x%02x", (unsigned char)*c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

/* Numbers are names as good as others. */
static void yaml_key(FILE *out, const char *key)
{
	if (*key && !key[strspn(key, "0123456789")])
		fputs(key, out);
	else
		lnx_yaml_scalar(out, key);
}

static bool is_leaf(const struct lnx_doc *d)
{
	return d->type != LNX_DOC_MAP && d->type != LNX_DOC_LIST;
}

static void yaml_value(FILE *out, const struct lnx_doc *d)
{
	char buf[NUMBER];

	if (d->type == LNX_DOC_TEXT)
		lnx_yaml_scalar(out, d->text);
	else
		fputs(lnx_doc_value(d, buf, sizeof(buf)), out);
}

static void yaml_children(FILE *out, const struct lnx_doc *d, int indent,
			  bool inline_first);

static void yaml_list(FILE *out, const struct lnx_doc *d, int indent)
{
	const struct lnx_doc *c;

	for (c = d->child; c; c = c->next) {
		fprintf(out, "%*s- ", indent, "");
		if (is_leaf(c)) {
			yaml_value(out, c);
			fputc('\n', out);
		} else if (!c->child) {
			fputs(c->type == LNX_DOC_LIST ? "[]\n" : "{}\n", out);
		} else {
			yaml_children(out, c, indent + 2, true);
		}
	}
}

/* inline_first: the first line has its blanks already. */
static void yaml_children(FILE *out, const struct lnx_doc *d, int indent,
			  bool inline_first)
{
	const struct lnx_doc *c;

	if (d->type == LNX_DOC_LIST) {
		/* A list in a list. */
		fputc('\n', out);
		yaml_list(out, d, indent);
		return;
	}
	for (c = d->child; c; c = c->next) {
		fprintf(out, "%*s", inline_first ? 0 : indent, "");
		inline_first = false;
		yaml_key(out, c->key);
		fputc(':', out);
		if (is_leaf(c)) {
			fputc(' ', out);
			yaml_value(out, c);
			fputc('\n', out);
		} else if (!c->child) {
			fputs(c->type == LNX_DOC_LIST ? " []\n" : " {}\n", out);
		} else if (c->type == LNX_DOC_LIST) {
			fputc('\n', out);
			/* As lnetctl: deeper at the top, by half of a step below. */
			yaml_list(out, c, indent + (indent ? 2 : STEP));
		} else {
			fputc('\n', out);
			yaml_children(out, c, indent + STEP, false);
		}
	}
}

/* ---- JSON ---- */

#ifdef HAVE_JANSSON
static json_t *json_of(const struct lnx_doc *d)
{
	const struct lnx_doc *c;
	char buf[NUMBER];
	json_t *j;

	switch (d->type) {
	case LNX_DOC_MAP:
		j = lnx_must(json_object());
		for (c = d->child; c; c = c->next)
			json_object_set_new(j, c->key, json_of(c));
		return j;
	case LNX_DOC_LIST:
		j = lnx_must(json_array());
		for (c = d->child; c; c = c->next)
			json_array_append_new(j, json_of(c));
		return j;
	case LNX_DOC_TEXT:
		return lnx_must(json_string(d->text));
	case LNX_DOC_INT:
		return lnx_must(json_integer(d->i));
	case LNX_DOC_UINT:
		/* Numbers of JSON readers end at 2 to the 63rd. */
		if (d->u <= INT64_MAX)
			return lnx_must(json_integer((json_int_t)d->u));
		return lnx_must(json_real((double)d->u));
	case LNX_DOC_REAL:
		/* As many decimals as elsewhere. */
		return lnx_must(json_real(strtod(lnx_doc_value(d, buf, sizeof(buf)),
						 NULL)));
	default:
		return json_boolean(d->u);
	}
}

static bool json_write(const struct lnx_doc *d, FILE *out)
{
	json_t *j = json_of(d);
	bool ok = !json_dumpf(j, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER |
			      JSON_REAL_PRECISION(15));

	json_decref(j);
	fputc('\n', out);
	return ok;
}
#else
static bool json_write(const struct lnx_doc *d, FILE *out)
{
	(void)d, (void)out;
	return false;
}
#endif

/* ---- tables ---- */

#define COLUMNS_MAX	64
#define NAME_MAX_LEN	80

struct table {
	char name[COLUMNS_MAX][NAME_MAX_LEN];
	size_t width[COLUMNS_MAX];
	unsigned n;
};

static int find_column(const struct table *t, const char *name)
{
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (!strcmp(t->name[i], name))
			return (int)i;
	return -1;
}

static int column(struct table *t, const char *name)
{
	int i = find_column(t, name);

	if (i >= 0 || t->n == COLUMNS_MAX)
		return i;
	snprintf(t->name[t->n], NAME_MAX_LEN, "%s", name);
	t->width[t->n] = strlen(t->name[t->n]);
	return (int)t->n++;
}

/* Calls fn for each value of a row, maps in it included. */
static void each_value(const struct lnx_doc *row, const char *prefix,
		       void (*fn)(void *arg, const char *name, const struct lnx_doc *v),
		       void *arg)
{
	const struct lnx_doc *c;
	char name[NAME_MAX_LEN];

	for (c = row->child; c; c = c->next) {
		/* No document of lnx goes so deep that a name is cut. */
		if (snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "",
			     c->key ? c->key : "") >= (int)sizeof(name))
			continue;
		if (is_leaf(c))
			fn(arg, name, c);
		else if (c->type == LNX_DOC_MAP)
			each_value(c, name, fn, arg);
	}
}

static void measure(void *arg, const char *name, const struct lnx_doc *v)
{
	struct table *t = arg;
	char buf[NUMBER];
	int i = column(t, name);
	size_t len = strlen(lnx_doc_value(v, buf, sizeof(buf)));

	if (i >= 0)
		t->width[i] = LNX_MAX(t->width[i], len);
}

struct row {
	const struct table *t;
	const struct lnx_doc *value[COLUMNS_MAX];
};

static void fill(void *arg, const char *name, const struct lnx_doc *v)
{
	struct row *r = arg;
	int i = find_column(r->t, name);

	if (i >= 0)
		r->value[i] = v;
}

static void put_cell(FILE *out, const struct table *t, unsigned i, const char *text)
{
	if (i + 1 == t->n)
		fprintf(out, "%s\n", text);
	else
		fprintf(out, "%-*s  ", (int)t->width[i], text);
}

/* Columns that a table needs, with two blanks between. */
static size_t table_width(const struct table *t)
{
	size_t sum = 0;
	unsigned i;

	for (i = 0; i < t->n; i++)
		sum += t->width[i] + (i ? 2 : 0);
	return sum;
}

/* A row below each other, what it does not have left out. */
static void put_record(FILE *out, const struct table *t, const struct row *r, size_t names)
{
	const char *before = "-";
	char buf[NUMBER];
	unsigned i;

	for (i = 0; i < t->n; i++) {
		if (!r->value[i])
			continue;
		fprintf(out, "%s %-*s  %s\n", before, (int)names, t->name[i],
			lnx_doc_value(r->value[i], buf, sizeof(buf)));
		before = " ";
	}
}

/* The table is wider than width. */
static void put_records(FILE *out, const struct table *t, const struct lnx_doc *list)
{
	const struct lnx_doc *c;
	size_t names = 0;
	unsigned i;

	for (i = 0; i < t->n; i++)
		names = LNX_MAX(names, strlen(t->name[i]));
	for (c = list->child; c; c = c->next) {
		struct row r = { .t = t };

		each_value(c, "", fill, &r);
		put_record(out, t, &r, names);
	}
}

static void put_table(FILE *out, const struct lnx_doc *list, unsigned width)
{
	struct table *t = lnx_must(calloc(1, sizeof(*t)));
	const struct lnx_doc *c;
	char buf[NUMBER];
	unsigned i;

	for (c = list->child; c; c = c->next)
		each_value(c, "", measure, t);
	if (width && table_width(t) > width) {
		put_records(out, t, list);
		free(t);
		return;
	}
	for (i = 0; i < t->n; i++)
		put_cell(out, t, i, t->name[i]);
	for (c = list->child; c; c = c->next) {
		struct row r = { .t = t };

		each_value(c, "", fill, &r);
		for (i = 0; i < t->n; i++)
			put_cell(out, t, i, !r.value[i] ? "-" :
				 lnx_doc_value(r.value[i], buf, sizeof(buf)));
	}
	free(t);
}

static bool is_table(const struct lnx_doc *d)
{
	const struct lnx_doc *c;

	if (d->type != LNX_DOC_LIST || !d->child)
		return false;
	for (c = d->child; c; c = c->next)
		if (c->type != LNX_DOC_MAP)
			return false;
	return true;
}

static void list_line(FILE *out, const char *name, const struct lnx_doc *d)
{
	const struct lnx_doc *c;
	char buf[NUMBER];

	fprintf(out, "%s:", name);
	for (c = d->child; c; c = c->next)
		fprintf(out, " %s", lnx_doc_value(c, buf, sizeof(buf)));
	fputc('\n', out);
}

#define PATH_MAX_LEN	(4 * NAME_MAX_LEN)

static void put_list(FILE *out, const struct lnx_doc *list, const char *path, unsigned width);

/* What of a row cannot be a column: its lists, also those in maps of it. */
static void lists_of(FILE *out, const struct lnx_doc *map, const char *path, unsigned width)
{
	const struct lnx_doc *c;
	char name[PATH_MAX_LEN];

	for (c = map->child; c; c = c->next) {
		snprintf(name, sizeof(name), "%s.%s", path, c->key ? c->key : "");
		if (c->type == LNX_DOC_LIST)
			put_list(out, c, name, width);
		else if (c->type == LNX_DOC_MAP)
			lists_of(out, c, name, width);
	}
}

static void put_list(FILE *out, const struct lnx_doc *list, const char *path, unsigned width)
{
	const struct lnx_doc *row;
	char name[PATH_MAX_LEN];
	unsigned i = 0;

	if (!is_table(list)) {
		list_line(out, path, list);
		return;
	}
	fprintf(out, "%s:\n", path);
	put_table(out, list, width);
	for (row = list->child; row; row = row->next, i++) {
		/* No document of lnx goes so deep that it is cut. */
		if (snprintf(name, sizeof(name), "%s[%u]", path, i) < (int)sizeof(name))
			lists_of(out, row, name, width);
	}
}

static void tables_of(FILE *out, const struct lnx_doc *d, const char *path, unsigned width)
{
	const struct lnx_doc *c;
	char name[PATH_MAX_LEN], buf[NUMBER];

	for (c = d->child; c; c = c->next) {
		snprintf(name, sizeof(name), "%s%s%s", path, *path ? "." : "",
			 c->key ? c->key : "");
		if (is_leaf(c))
			fprintf(out, "%s: %s\n", name, lnx_doc_value(c, buf, sizeof(buf)));
		else if (c->type == LNX_DOC_LIST)
			put_list(out, c, name, width);
		else
			tables_of(out, c, name, width);
	}
}

bool lnx_render(const struct lnx_doc *d, enum lnx_format format, unsigned width, FILE *out)
{
	bool ok = true;

	if (format == LNX_FORMAT_JSON)
		ok = json_write(d, out);
	else if (format == LNX_FORMAT_TABLE)
		tables_of(out, d, "", width);
	else
		yaml_children(out, d, 0, false);
	return ok && !ferror(out);
}
