/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* YAML events from libyaml.  See yaml.h. */
#include "conf/yaml.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#ifdef HAVE_LIBYAML
#include <dlfcn.h>
#include <pthread.h>
#include <yaml.h>

/* Loaded and not linked: most processes read no YAML, and it may not be installed. */
#define YAML_FILE	"libyaml-0.so.2"

#define YAML_CALLS(call) \
	call(parser_initialize) \
	call(parser_delete) \
	call(parser_set_input_string) \
	call(parser_set_encoding) \
	call(parser_parse) \
	call(event_delete)

static struct {
	bool loaded;
#define CALL(name) __typeof__(&yaml_##name) name;
	YAML_CALLS(CALL)
#undef CALL
} lib;

/* It stays loaded: it has no threads, and keeps nothing between calls. */
static void load(void)
{
	void *file = dlopen(YAML_FILE, RTLD_NOW | RTLD_LOCAL);

	if (!file)
		return;
#define CALL(name) \
	lib.name = (__typeof__(&yaml_##name))dlsym(file, "yaml_" #name); \
	if (!lib.name) \
		return;
	YAML_CALLS(CALL)
#undef CALL
	lib.loaded = true;
}

static bool loaded(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return lib.loaded;
}

struct lnx_yaml {
	yaml_parser_t parser;
	yaml_event_t event;
	const char *text;
	size_t len;
	bool has_event;
	unsigned depth;
	bool ended;			/* of the document */
};

int lnx_yaml_open(const char *text, size_t len, struct lnx_yaml **out,
		  struct lnx_refusal *r)
{
	static const char bom[] = "\xef\xbb\xbf";	/* as editors of Windows begin */
	struct lnx_yaml *y;

	if (!loaded()) {
		lnx_refuse(r, NULL, "YAML needs libyaml, and " YAML_FILE
			   " is not here (Debian: libyaml-0-2)");
		return -ENOSYS;
	}
	if (len > LNX_YAML_BYTES_MAX)
		return lnx_refuse(r, NULL, "the text has %zu bytes and may have at "
				  "most %u", len, LNX_YAML_BYTES_MAX);
	y = calloc(1, sizeof(*y));
	if (!y || !lib.parser_initialize(&y->parser)) {
		free(y);
		lnx_refuse(r, NULL, "memory is short");
		return -ENOMEM;
	}
	if (len >= strlen(bom) && !memcmp(text, bom, strlen(bom))) {
		text += strlen(bom);
		len -= strlen(bom);
	}
	y->text = text;
	y->len = len;
	lib.parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
	lib.parser_set_input_string(&y->parser, (const unsigned char *)text, len);
	*out = y;
	return 0;
}

void lnx_yaml_close(struct lnx_yaml *y)
{
	if (!y)
		return;
	if (y->has_event)
		lib.event_delete(&y->event);
	lib.parser_delete(&y->parser);
	free(y);
}

static void put_mark(struct lnx_yaml_node *node, const yaml_mark_t *mark)
{
	node->line = (unsigned)mark->line + 1;
	node->column = (unsigned)mark->column + 1;
}

/* Where byte `at` of the text is. */
static void put_offset(struct lnx_yaml_node *node, const struct lnx_yaml *y, size_t at)
{
	size_t i;

	node->line = node->column = 1;
	for (i = 0; i < LNX_MIN(at, y->len); i++) {
		node->column++;
		if (y->text[i] == '\n') {
			node->line++;
			node->column = 1;
		}
	}
}

static int parser_failed(struct lnx_yaml *y, struct lnx_yaml_node *node,
			 struct lnx_refusal *r)
{
	const yaml_parser_t *p = &y->parser;

	if (p->error == YAML_MEMORY_ERROR) {
		lnx_refuse(r, NULL, "memory is short");
		return -ENOMEM;
	}
	/* It reads ahead: its mark is far before that byte. */
	if (p->error == YAML_READER_ERROR)
		put_offset(node, y, p->problem_offset);
	else
		put_mark(node, &p->problem_mark);
	return lnx_refuse(r, NULL, "this is no YAML: %s%s%s",
			  p->problem ? p->problem : "it cannot be read",
			  p->context ? ", " : "", p->context ? p->context : "");
}

/* Something of YAML that is not taken here; NULL: nothing. */
static const char *not_taken(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_ALIAS_EVENT:
		return "an alias (*name)";
	case YAML_SCALAR_EVENT:
		return e->data.scalar.anchor ? "an anchor (&name)" :
		       e->data.scalar.tag ? "a tag (!name)" : NULL;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor ? "an anchor (&name)" :
		       e->data.sequence_start.tag ? "a tag (!name)" : NULL;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor ? "an anchor (&name)" :
		       e->data.mapping_start.tag ? "a tag (!name)" : NULL;
	default:
		return NULL;
	}
}

static int check(struct lnx_yaml *y, struct lnx_refusal *r)
{
	const yaml_event_t *e = &y->event;

	if (not_taken(e))
		return lnx_refuse(r, NULL, "%s is YAML, but not taken here; write "
				  "what it stands for%s", not_taken(e),
				  e->type == YAML_ALIAS_EVENT ?
				  ", or put text that begins with * in quotes" :
				  "");
	if (e->type == YAML_DOCUMENT_START_EVENT && y->ended)
		return lnx_refuse(r, NULL, "a second document begins here; one is "
				  "all that is taken");
	if (y->depth > LNX_YAML_DEPTH_MAX)
		return lnx_refuse(r, NULL, "this is nested more than %d levels "
				  "deep, which no key needs",
				  LNX_YAML_DEPTH_MAX);
	return 0;
}

static void count_depth(struct lnx_yaml *y)
{
	switch (y->event.type) {
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		y->depth++;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		y->depth--;
		break;
	case YAML_DOCUMENT_END_EVENT:
		y->ended = true;
		break;
	default:
		break;
	}
}

/* False: an event that users of this interface do not see. */
static bool fill(struct lnx_yaml *y, struct lnx_yaml_node *node)
{
	const yaml_event_t *e = &y->event;
	yaml_scalar_style_t style;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		style = e->data.scalar.style;
		node->event = LNX_YAML_SCALAR;
		node->text = (const char *)e->data.scalar.value;
		node->len = e->data.scalar.length;
		node->quoted = style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
			       style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
		node->literal = e->start_mark.line == e->end_mark.line &&
				e->end_mark.column - e->start_mark.column ==
				node->len + (node->quoted ? 2 : 0);
		return true;
	case YAML_SEQUENCE_START_EVENT:
		node->event = LNX_YAML_SEQ;
		return true;
	case YAML_SEQUENCE_END_EVENT:
		node->event = LNX_YAML_SEQ_END;
		return true;
	case YAML_MAPPING_START_EVENT:
		node->event = LNX_YAML_MAP;
		return true;
	case YAML_MAPPING_END_EVENT:
		node->event = LNX_YAML_MAP_END;
		return true;
	case YAML_STREAM_END_EVENT:
		node->event = LNX_YAML_END;
		return true;
	default:
		return false;
	}
}

int lnx_yaml_next(struct lnx_yaml *y, struct lnx_yaml_node *node,
		  struct lnx_refusal *r)
{
	int ret;

	do {
		if (y->has_event)
			lib.event_delete(&y->event);
		y->has_event = false;
		memset(node, 0, sizeof(*node));
		if (!lib.parser_parse(&y->parser, &y->event))
			return parser_failed(y, node, r);
		y->has_event = true;
		put_mark(node, &y->event.start_mark);
		count_depth(y);
		ret = check(y, r);
		if (ret)
			return ret;
	} while (!fill(y, node));
	return 0;
}

#else	/* without libyaml */

int lnx_yaml_open(const char *text, size_t len, struct lnx_yaml **out,
		  struct lnx_refusal *r)
{
	(void)text;
	(void)len;
	(void)out;
	lnx_refuse(r, NULL, "lnx was built without libyaml, which YAML needs "
		   "(Debian: libyaml-dev)");
	return -ENOSYS;
}

int lnx_yaml_next(struct lnx_yaml *y, struct lnx_yaml_node *node,
		  struct lnx_refusal *r)
{
	(void)y;
	(void)node;
	return lnx_refuse(r, NULL, "lnx was built without libyaml");
}

void lnx_yaml_close(struct lnx_yaml *y)
{
	(void)y;
}
#endif
