/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a configuration.  Here: YAML into structs by tables of keys, and errors.  What
 * the keys mean is in conf/config_keys.c.
 *
 * The text is read twice: first for the names of nets, which everything else may use,
 * and then as a whole.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/out.h"
#include "conf/config_reader.h"

/* ---- errors ---- */

static void make_printable(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

int lnx_config_fail(struct config_reader *rd, config_node *node,
		    const char *fmt, ...)
{
	struct lnx_config_error *e = rd->e;
	va_list ap;

	e->line = node->line;
	e->column = node->column;
	snprintf(e->key, sizeof(e->key), "%s", rd->path);
	va_start(ap, fmt);
	vsnprintf(e->why, sizeof(e->why), fmt, ap);
	va_end(ap);
	make_printable(e->key);
	make_printable(e->why);
	return -EINVAL;
}

int lnx_config_no_memory(struct config_reader *rd, config_node *node)
{
	lnx_config_fail(rd, node, "memory is short");
	return -ENOMEM;
}

int lnx_config_refuse(struct config_reader *rd, config_node *node)
{
	struct lnx_yaml_node at = *node;

	/* Text with escapes or over several lines is not where its letters are. */
	if (node->literal)
		at.column += (unsigned)rd->r.at + node->quoted;
	return lnx_config_fail(rd, &at, "%s", rd->r.why);
}

int lnx_config_next(struct config_reader *rd, struct lnx_yaml_node *node)
{
	int ret = lnx_yaml_next(rd->yaml, node, &rd->r);

	if (!ret)
		return 0;
	lnx_config_fail(rd, node, "%s", rd->r.why);
	return ret;
}

static const char *event_name(config_node *node)
{
	switch (node->event) {
	case LNX_YAML_SCALAR: return node->len ? "text" : "nothing";
	case LNX_YAML_MAP: return "a mapping (key: value)";
	case LNX_YAML_SEQ: return "a list (- item)";
	default: return "nothing";
	}
}

/* ---- the path ---- */

/* Both return what pop needs. */
static size_t push_key(struct config_reader *rd, const char *name)
{
	size_t len = strlen(rd->path);

	snprintf(rd->path + len, sizeof(rd->path) - len, "%s%.40s",
		 len ? "." : "", name);
	return len;
}

static size_t push_index(struct config_reader *rd, unsigned i)
{
	size_t len = strlen(rd->path);

	snprintf(rd->path + len, sizeof(rd->path) - len, "[%u]", i);
	return len;
}

static void pop(struct config_reader *rd, size_t len)
{
	rd->path[len] = '\0';
}

/* ---- mappings and sequences ---- */

static void list_keys(const struct config_key *key, unsigned n, char *buf,
		      size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };
	unsigned i;

	for (i = 0; i < n; i++)
		lnx_out(&o, "%s%s", i ? ", " : "", key[i].name);
}

static int no_key(struct config_reader *rd, config_node *node,
		  const struct config_key *key, unsigned n)
{
	struct lnx_span w = { node->text, node->len };
	char allowed[256], name[41];
	size_t len;
	int ret;

	list_keys(key, n, allowed, sizeof(allowed));
	if (node->event != LNX_YAML_SCALAR)
		return lnx_config_fail(rd, node, "found %s where a key must be; "
				       "allowed are %s", event_name(node), allowed);
	snprintf(name, sizeof(name), "%.*s", lnx_span_quoted(w, 40), w.s);
	len = push_key(rd, name);
	ret = lnx_config_fail(rd, node, "found \"%.*s\", and there is no such key; "
			      "allowed are %s", LNX_QUOTE(w), allowed);
	pop(rd, len);
	return ret;
}

static int read_key(struct config_reader *rd, config_node *node,
		    const struct config_key *key, unsigned n, unsigned *seen,
		    void *obj)
{
	struct lnx_span w = { node->text, node->len };
	struct lnx_yaml_node value;
	size_t len;
	unsigned i;
	int ret;

	for (i = 0; i < n && (node->event != LNX_YAML_SCALAR ||
			      !lnx_span_is(w, key[i].name)); i++)
		;
	if (i == n)
		return no_key(rd, node, key, n);
	len = push_key(rd, key[i].name);
	if (*seen >> i & 1)
		return lnx_config_fail(rd, node, "the key is there already; once is "
				       "enough");
	*seen |= 1u << i;
	ret = lnx_config_next(rd, &value);
	if (!ret)
		ret = key[i].read(rd, &value, obj);
	pop(rd, len);
	return ret;
}

int lnx_config_map(struct config_reader *rd, config_node *node,
		   const struct config_key *key, unsigned n, void *obj)
{
	struct lnx_yaml_node k;
	char allowed[256];
	unsigned seen = 0;
	int ret;

	if (node->event != LNX_YAML_MAP) {
		list_keys(key, n, allowed, sizeof(allowed));
		return lnx_config_fail(rd, node, "found %s, and it must be a mapping "
				       "with the keys %s", event_name(node), allowed);
	}
	while (!(ret = lnx_config_next(rd, &k)) && k.event != LNX_YAML_MAP_END) {
		ret = read_key(rd, &k, key, n, &seen, obj);
		if (ret)
			break;
	}
	return ret;
}

int lnx_config_pairs(struct config_reader *rd, config_node *node,
		     const char *keys,
		     int (*pair)(struct config_reader *rd,
				 config_node *key, const char *name,
				 config_node *value, void *obj),
		     void *obj)
{
	struct lnx_yaml_node k, value;
	const char *name;
	size_t len;
	int ret;

	if (node->event != LNX_YAML_MAP)
		return lnx_config_fail(rd, node, "found %s, and it must be a mapping "
				       "of %s", event_name(node), keys);
	while (!(ret = lnx_config_next(rd, &k)) && k.event != LNX_YAML_MAP_END) {
		ret = lnx_config_text(rd, &k, &name);
		if (ret)
			break;
		k.text = name;		/* the node's own is gone with the next */
		len = push_key(rd, name);
		ret = lnx_config_next(rd, &value);
		if (!ret)
			ret = pair(rd, &k, name, &value, obj);
		if (ret)
			break;
		pop(rd, len);
	}
	return ret;
}

int lnx_config_seq(struct config_reader *rd, config_node *node,
		   int (*item)(struct config_reader *rd,
			       config_node *node, void *obj), void *obj)
{
	struct lnx_yaml_node k;
	unsigned i;
	size_t len;
	int ret;

	if (node->event != LNX_YAML_SEQ)
		return lnx_config_fail(rd, node, "found %s, and it must be a list "
				       "(- item); [] is an empty one",
				       event_name(node));
	for (i = 0; !(ret = lnx_config_next(rd, &k)) && k.event != LNX_YAML_SEQ_END;
	     i++) {
		len = push_index(rd, i);
		ret = item(rd, &k, obj);
		if (ret)
			break;
		pop(rd, len);
	}
	return ret;
}

int lnx_config_skip(struct config_reader *rd, config_node *node)
{
	struct lnx_yaml_node k = *node;
	unsigned depth = 0;
	int ret = 0;

	for (;; ret = lnx_config_next(rd, &k)) {
		if (ret)
			return ret;
		if (k.event == LNX_YAML_MAP || k.event == LNX_YAML_SEQ)
			depth++;
		else if (k.event == LNX_YAML_MAP_END ||
			 k.event == LNX_YAML_SEQ_END)
			depth--;
		if (!depth)
			return 0;
	}
}

/* ---- scalars ---- */

int lnx_config_text(struct config_reader *rd, config_node *node,
		    const char **out)
{
	size_t i;

	if (node->event != LNX_YAML_SCALAR || !node->len)
		return lnx_config_fail(rd, node, "found %s where text must be",
				       event_name(node));
	for (i = 0; i < node->len && node->text[i] && !(node->text[i] & 0x80); i++)
		;
	if (i < node->len)
		return lnx_config_fail(rd, node, "found the byte 0x%02x in the text, and "
				       "all must be ASCII, without NUL",
				       (unsigned char)node->text[i]);
	*out = lnx_config_copy(rd->config, node->text, node->len);
	if (*out)
		return 0;
	return lnx_config_no_memory(rd, node);
}

int lnx_config_uint(struct config_reader *rd, config_node *node,
		    uint32_t min, uint32_t max, uint32_t *out)
{
	struct lnx_span w = { node->text, node->len };
	uint64_t v;

	if (node->event != LNX_YAML_SCALAR)
		return lnx_config_fail(rd, node, "found %s where a whole number from "
				       "%u to %u must be", event_name(node), min, max);
	if (!lnx_span_uint(w, &v) || v < min || v > max)
		return lnx_config_fail(rd, node, "found \"%.*s\" where a whole number "
				       "from %u to %u must be", LNX_QUOTE(w), min,
				       max);
	*out = (uint32_t)v;
	return 0;
}

int lnx_config_bool(struct config_reader *rd, config_node *node,
		    bool *out)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "false", "true", "off", "on",
	};
	struct lnx_span w = { node->text, node->len };
	size_t i;

	if (node->event != LNX_YAML_SCALAR)
		return lnx_config_fail(rd, node, "found %s where true or false must "
				       "be", event_name(node));
	for (i = 0; i < LNX_ARRAY_SIZE(words); i++) {
		if (lnx_span_is(w, words[i])) {
			*out = i % 2;
			return 0;
		}
	}
	return lnx_config_fail(rd, node, "found \"%.*s\" where true or false must be "
			       "(or yes, no, on, off, 1, 0)", LNX_QUOTE(w));
}

int lnx_config_read_more(struct config_reader *rd, config_node *node,
			 void *list, unsigned *n, size_t size)
{
	void **at = list, *more;

	if (*n == LNX_CONFIG_LIST)
		return lnx_config_fail(rd, node, "this is one too many, there can be "
				       "%d", LNX_CONFIG_LIST);
	more = lnx_config_more(rd->config, *at, n, size);
	if (more) {
		*at = more;
		return 0;
	}
	return lnx_config_no_memory(rd, node);
}

/* ---- a whole text ---- */

static int read_pass(struct config_reader *rd, const char *text, size_t len,
		     int (*pass)(struct config_reader *rd))
{
	int ret = lnx_yaml_open(text, len, &rd->yaml, &rd->r);

	if (ret) {
		lnx_config_fail(rd, &(struct lnx_yaml_node){ 0 }, "%s", rd->r.why);
		return ret;
	}
	rd->path[0] = '\0';
	ret = pass(rd);
	lnx_yaml_close(rd->yaml);
	return ret;
}

int lnx_config_read(const char *text, size_t len, const struct lnx_nets *nets,
		    struct lnx_config **out, struct lnx_config_error *e)
{
	struct config_reader *rd = calloc(1, sizeof(*rd));
	unsigned i;
	int ret = -ENOMEM;

	memset(e, 0, sizeof(*e));
	snprintf(e->why, sizeof(e->why), "memory is short");
	if (!rd)
		return ret;
	rd->e = e;
	if (nets)
		rd->nets = *nets;
	rd->config = lnx_config_create();
	if (rd->config)
		ret = read_pass(rd, text, len, lnx_config_read_nets);
	if (!ret)
		ret = read_pass(rd, text, len, lnx_config_read_all);
	for (i = 0; i < LNX_RULES_MAX; i++)
		free(rd->rule[i]);
	if (ret)
		lnx_config_destroy(rd->config);
	else
		*out = rd->config;
	free(rd);
	return ret;
}

size_t lnx_config_error_print(const struct lnx_config_error *e, const char *file,
			      char *buf, size_t size)
{
	struct lnx_out o = { .buf = buf, .size = size };

	lnx_out(&o, "%s", file);
	if (e->line)
		lnx_out(&o, ":%u:%u", e->line, e->column);
	if (e->key[0])
		lnx_out(&o, ": %s", e->key);
	lnx_out(&o, ": %s", e->why);
	return o.n;
}
