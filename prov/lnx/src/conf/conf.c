/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the parameters.  The environment is not trusted: a value is never copied
 * without a bound, and is made printable before it is quoted.
 */
#include "conf/conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/span.h"
#include "policy/plan.h"

#define PREFIX		"FI_LNX_"
#define PREFIX_LEN	(sizeof(PREFIX) - 1)
#define NAME_MAX_LEN	40	/* a longer name resembles no known one */
#define QUOTE_BYTES	72	/* of a name or value quoted in a sentence */
#define SENTENCE_BYTES	512

static const char *const lnx_conf_protocol_names[] = {
	[LNX_PROTOCOL_FRAMED] = "framed",
	[LNX_PROTOCOL_DIRECT] = "direct",
	NULL
};

static const char *const lnx_conf_selection_names[] = {
	[LNX_SELECTION_SPREAD] = "SPREAD",
	[LNX_SELECTION_PER_PEER] = "PER_PEER",
	[LNX_SELECTION_PER_MSG] = "PER_MSG",
	[LNX_SELECTION_LNET] = "LNET",
	NULL
};

static const char *const lnx_conf_auto_names[] = { "auto", NULL };

static const char *const lnx_conf_unlimited_names[] = { "unlimited", NULL };

const struct lnx_param lnx_params[] = {
#define LNX_PARAM(name, type, def, min, max, unit, names, help) \
	{ #name, LNX_PARAM_##type, def, min, max, unit, names, help },
#include "conf/params.def"
#undef LNX_PARAM
};

const size_t lnx_nparams = LNX_ARRAY_SIZE(lnx_params);

/* Rows by name. */
enum {
#define LNX_PARAM(name, type, def, min, max, unit, names, help) ROW_##name,
#include "conf/params.def"
#undef LNX_PARAM
};

static const size_t offsets[] = {
#define LNX_PARAM(name, type, def, min, max, unit, names, help) \
	offsetof(struct lnx_conf, name),
#include "conf/params.def"
#undef LNX_PARAM
};

static const size_t sizes[] = {
#define LNX_PARAM(name, type, def, min, max, unit, names, help) \
	sizeof(((struct lnx_conf *)0)->name),
#include "conf/params.def"
#undef LNX_PARAM
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* At most QUOTE_BYTES of s with everything unprintable replaced. */
static const char *quote(char *buf, const char *s, size_t len)
{
	size_t i, n = LNX_MIN(len, (size_t)QUOTE_BYTES - 4);

	for (i = 0; i < n; i++)
		buf[i] = s[i] >= ' ' && s[i] <= '~' ? s[i] : '?';
	memcpy(buf + n, len > n ? "..." : "", len > n ? 4 : 1);
	return buf;
}

static const char *env_name(char *buf, size_t size, const char *name)
{
	size_t i, n = (size_t)snprintf(buf, size, PREFIX "%s", name);

	for (i = 0; i < n && i < size; i++)
		buf[i] = upper(buf[i]);
	return buf;
}

static bool parse_bool(const char *s, size_t len, bool *out)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {
		{ "0", false }, { "1", true }, { "no", false }, { "yes", true },
		{ "false", false }, { "true", true }, { "off", false },
		{ "on", true },
	};
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(words); i++) {
		if (strlen(words[i].text) == len &&
		    !strncasecmp(words[i].text, s, len)) {
			*out = words[i].value;
			return true;
		}
	}
	return false;
}

static bool parse_uint(const char *s, size_t len, uint64_t *out)
{
	unsigned shift = 0;
	uint64_t v;

	if (len > 1) {
		switch (lower(s[len - 1])) {
		case 'k': shift = 10; len--; break;
		case 'm': shift = 20; len--; break;
		case 'g': shift = 30; len--; break;
		}
	}
	if (!lnx_span_uint((struct lnx_span){ s, len }, &v) ||
	    v > UINT64_MAX >> shift)
		return false;
	*out = v << shift;
	return true;
}

static bool parse_enum(const char *s, size_t len, const char *const *names,
		       int *out)
{
	int i;

	for (i = 0; names[i]; i++) {
		if (strlen(names[i]) == len && !strncasecmp(names[i], s, len)) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Text without blanks around it, and its length. */
static const char *trimmed(const char *text, size_t *len)
{
	*len = strlen(text);
	while (*len && is_blank(text[0]))
		text++, (*len)--;
	while (*len && is_blank(text[*len - 1]))
		(*len)--;
	return text;
}

/*
 * Store the value text of row i in its member; false, without a change, if it is not
 * allowed.
 */
static bool set(struct lnx_conf *c, size_t i, const char *text)
{
	const struct lnx_param *p = &lnx_params[i];
	void *member = (char *)c + offsets[i];
	uint64_t v;
	size_t len;
	int word;

	if (p->type == LNX_PARAM_STR) {
		*(const char **)member = *text ? text : NULL;
		return true;
	}
	text = trimmed(text, &len);
	switch (p->type) {
	case LNX_PARAM_BOOL:
		return parse_bool(text, len, member);
	case LNX_PARAM_ENUM:
		return parse_enum(text, len, p->names, member);
	default:
		if (p->names && parse_enum(text, len, p->names, &word)) {
			*(uint64_t *)member = LNX_CONF_AUTO;
			return true;
		}
		if (!parse_uint(text, len, &v) || v < p->min || v > p->max)
			return false;
		*(uint64_t *)member = v;
		return true;
	}
}

bool lnx_conf_accepts(const struct lnx_param *param, const char *text)
{
	struct lnx_conf scratch;

	return set(&scratch, (size_t)(param - lnx_params), text);
}

const char *lnx_conf_allowed(const struct lnx_param *p, char *buf, size_t size)
{
	size_t n = 0, i;
	int r;

	if (!size)
		return buf;
	buf[0] = '\0';
	switch (p->type) {
	case LNX_PARAM_BOOL:
		snprintf(buf, size,
			 "0 or 1 (or no, yes, false, true, off, on)");
		break;
	case LNX_PARAM_UINT:
		snprintf(buf, size, "%s%sa whole number from %" PRIu64 " to "
			 "%" PRIu64 "%s%s%s", p->names ? p->names[0] : "",
			 p->names ? " or " : "", p->min, p->max,
			 p->unit[0] ? " (" : "", p->unit,
			 p->unit[0] ? ")" : "");
		break;
	case LNX_PARAM_ENUM:
		for (i = 0; p->names[i] && n < size; i++) {
			r = snprintf(buf + n, size - n, "%s%s", !i ? "" :
				     p->names[i + 1] ? ", " : " or ",
				     p->names[i]);
			n += r > 0 ? (size_t)r : 0;
		}
		break;
	case LNX_PARAM_STR:
		snprintf(buf, size, "text");
		break;
	}
	return buf;
}

/*
 * Edits (insert, delete, replace, swap of neighbours) between two names, case
 * ignored.  Three rows of the usual table are enough.
 */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][NAME_MAX_LEN + 1], *prev2 = rows[0], *prev = rows[1];
	size_t *cur = rows[2], *spare, i, j, d;

	for (j = 0; j <= nb; j++)
		prev[j] = prev2[j] = j;
	for (i = 1; i <= na; i++) {
		cur[0] = i;
		for (j = 1; j <= nb; j++) {
			char x = lower(a[i - 1]), y = lower(b[j - 1]);

			d = prev[j - 1] + (x != y);
			d = LNX_MIN(d, prev[j] + 1);
			d = LNX_MIN(d, cur[j - 1] + 1);
			if (i > 1 && j > 1 && x == lower(b[j - 2]) &&
			    y == lower(a[i - 2]))
				d = LNX_MIN(d, prev2[j - 2] + 1);
			cur[j] = d;
		}
		spare = prev2;
		prev2 = prev;
		prev = cur;
		cur = spare;
	}
	return prev[nb];
}

const char *lnx_conf_nearest(const char *name, size_t len)
{
	size_t i, n, d, best = SIZE_MAX;
	const char *found = NULL;

	if (len > NAME_MAX_LEN)
		return NULL;
	for (i = 0; i < lnx_nparams; i++) {
		n = strlen(lnx_params[i].name);
		if (n > NAME_MAX_LEN)
			continue;
		d = distance(name, len, lnx_params[i].name, n);
		/* Up to a third of the letters wrong counts as a typing error. */
		if (d < best && d <= LNX_MAX(LNX_MAX(n, len) / 3, (size_t)1)) {
			best = d;
			found = lnx_params[i].name;
		}
	}
	return found;
}

static bool same_name(const char *env, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len && name[i]; i++)
		if (env[i] != upper(name[i]))
			return false;
	return i == len && !name[i];
}

struct reader {
	struct lnx_conf *conf;
	void (*warn)(void *arg, const char *sentence);
	void *arg;
	bool seen[LNX_CONF_ROWS];	/* in env */
	uint64_t alias_ms, own_ms;	/* RECOVERY_INTERVAL and what it is another name
					 * for, the first of each; 0: none */
	int warnings;
};

static void warn_once(struct reader *r, const char *sentence)
{
	r->warnings++;
	if (r->warn)
		r->warn(r->arg, sentence);
}

static bool both(const struct reader *r, int one, int other)
{
	return r->conf->origin[one] & r->conf->origin[other] & LNX_CONF_GIVEN;
}

/* May a value be that of a key?  It must not be shown. */
static bool secret(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i + 3 <= len; i++)
		if (!strncasecmp(name + i, "key", 3))
			return true;
	return false;
}

/* Of most variables an empty value means unset.  A key that is empty by mistake must not
 * switch off what it is for. */
static bool empty_counts(size_t i)
{
	return i == ROW_job_key || i == ROW_job_key_file;
}

static void unknown(struct reader *r, const char *name, size_t len,
		    const char *value)
{
	char what[SENTENCE_BYTES], n[QUOTE_BYTES], v[QUOTE_BYTES];
	char guess[NAME_MAX_LEN + PREFIX_LEN + 1];
	const char *known = lnx_conf_nearest(name, len);

	quote(n, name, len);
	if (secret(name, len) || (known && secret(known, strlen(known))))
		value = "...";
	quote(v, value, strlen(value));
	if (known)
		snprintf(what, sizeof(what), PREFIX "%s=\"%s\": there is no "
			 "such variable; the nearest one is %s", n, v,
			 env_name(guess, sizeof(guess), known));
	else
		snprintf(what, sizeof(what), PREFIX "%s=\"%s\": there is no "
			 "such variable; fi_lnx(7) lists those there are",
			 n, v);
	warn_once(r, what);
}

static void read_one(struct reader *r, const char *name, size_t len,
		     const char *value)
{
	char what[SENTENCE_BYTES], v[QUOTE_BYTES];
	char allowed[LNX_PARAM_ALLOWED_BYTES];
	char full[NAME_MAX_LEN + PREFIX_LEN + 1];
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		if (same_name(name, len, lnx_params[i].name))
			break;
	if (i == lnx_nparams) {
		if (value[0])
			unknown(r, name, len, value);
		return;
	}
	if (r->seen[i])
		return;
	r->seen[i] = true;
	if (!value[0]) {
		if (empty_counts(i))
			*(const char **)((char *)r->conf + offsets[i]) = value;
		return;
	}
	if (set(r->conf, i, value)) {
		r->conf->origin[i] |= LNX_CONF_GIVEN;
		return;
	}
	snprintf(what, sizeof(what), "%s=\"%s\": must be %s; using the "
		 "default, %s",
		 env_name(full, sizeof(full), lnx_params[i].name),
		 quote(v, value, strlen(value)),
		 lnx_conf_allowed(&lnx_params[i], allowed, sizeof(allowed)),
		 lnx_params[i].def);
	warn_once(r, what);
}

/* lnetctl's name of recovery_ping_interval, in seconds. */
static bool is_alias(const char *name, size_t len)
{
	return same_name(name, len, "recovery_interval");
}

static void read_alias(struct reader *r, const char *value)
{
	static const char name[] = "RECOVERY_PING_INTERVAL";
	const char *text;
	char ms[24];
	size_t len;
	uint64_t v;

	/* What is no number is refused as it is, and so is what is far too large. */
	text = trimmed(value, &len);
	if (parse_uint(text, len, &v) && v <= UINT32_MAX) {
		snprintf(ms, sizeof(ms), "%" PRIu64, v * 1000);
		value = ms;
		r->alias_ms = r->alias_ms ? r->alias_ms : v * 1000;
	}
	read_one(r, name, sizeof(name) - 1, value);
}

/* The value of what that is another name for. */
static void note_own(struct reader *r, const char *name, size_t name_len, const char *value)
{
	const char *text;
	size_t len;
	uint64_t v;

	text = trimmed(value, &len);
	if (!r->own_ms && same_name(name, name_len, "recovery_ping_interval") &&
	    parse_uint(text, len, &v))
		r->own_ms = v;
}

/*
 * Two values that were both set and contradict each other.  Which of them is used is
 * fixed; but the user cannot have meant both, so warn.
 */
static void contradictions(struct reader *r)
{
	const struct lnx_conf *c = r->conf;
	char what[SENTENCE_BYTES];

	if (r->alias_ms && r->own_ms && r->alias_ms != r->own_ms) {
		snprintf(what, sizeof(what), "FI_LNX_RECOVERY_INTERVAL=%" PRIu64 " s and "
			 "FI_LNX_RECOVERY_PING_INTERVAL=%" PRIu64 " ms are one setting; using "
			 "%" PRIu64 " ms: unset one of them", r->alias_ms / 1000, r->own_ms,
			 c->recovery_ping_interval);
		warn_once(r, what);
	}
	if (both(r, ROW_use_srq, ROW_protocol) &&
	    c->use_srq == (c->protocol == LNX_PROTOCOL_DIRECT)) {
		snprintf(what, sizeof(what), "FI_LNX_PROTOCOL=%s contradicts "
			 "FI_LNX_USE_SRQ=%d; using FI_LNX_PROTOCOL=direct with "
			 "FI_LNX_USE_SRQ=0: unset one of them",
			 lnx_conf_protocol_names[c->protocol], c->use_srq);
		warn_once(r, what);
	}
	if (both(r, ROW_recovery_ping_interval, ROW_max_recovery_ping_interval) &&
	    c->recovery_ping_interval > c->max_recovery_ping_interval * 1000) {
		snprintf(what, sizeof(what), "FI_LNX_RECOVERY_PING_INTERVAL=%"
			 PRIu64 " ms is more than "
			 "FI_LNX_MAX_RECOVERY_PING_INTERVAL=%" PRIu64 " s; "
			 "using the first for both",
			 c->recovery_ping_interval,
			 c->max_recovery_ping_interval);
		warn_once(r, what);
	}
	if (both(r, ROW_hold_down, ROW_hold_down_max) &&
	    c->hold_down > c->hold_down_max) {
		snprintf(what, sizeof(what), "FI_LNX_HOLD_DOWN=%" PRIu64 " ms "
			 "is more than FI_LNX_HOLD_DOWN_MAX=%" PRIu64 " ms; "
			 "using the first for both", c->hold_down,
			 c->hold_down_max);
		warn_once(r, what);
	}
}

void lnx_conf_mend(struct lnx_conf *c)
{
	c->hold_down_max = LNX_MAX(c->hold_down_max, c->hold_down);
	c->max_recovery_ping_interval = LNX_MAX(c->max_recovery_ping_interval,
						(c->recovery_ping_interval + 999) / 1000);
	if (lnx_conf_native(c)) {
		c->use_srq = false;
		c->protocol = LNX_PROTOCOL_DIRECT;
	}
}

/* Rows whose values differ from what they were are derived. */
static void derived(struct lnx_conf *c, const struct lnx_conf *before)
{
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		if (memcmp((const char *)c + offsets[i],
			   (const char *)before + offsets[i], sizes[i]))
			c->origin[i] |= LNX_CONF_DERIVED;
}

int lnx_conf_read(struct lnx_conf *c, char *const env[],
		  void (*warn)(void *arg, const char *sentence), void *arg)
{
	struct reader r = { .conf = c, .warn = warn, .arg = arg };
	struct lnx_conf before;
	const char *name, *eq;
	size_t i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < lnx_nparams; i++)
		set(c, i, lnx_params[i].def);
	for (i = 0; env && env[i]; i++) {
		if (strncmp(env[i], PREFIX, PREFIX_LEN))
			continue;
		name = env[i] + PREFIX_LEN;
		eq = strchr(name, '=');
		if (eq && is_alias(name, (size_t)(eq - name))) {
			read_alias(&r, eq + 1);
		} else if (eq) {
			note_own(&r, name, (size_t)(eq - name), eq + 1);
			read_one(&r, name, (size_t)(eq - name), eq + 1);
		}
	}
	contradictions(&r);
	before = *c;
	lnx_conf_mend(c);
	r.warnings += lnx_plan_mend(c, c->origin[ROW_retry_count] & LNX_CONF_GIVEN, warn,
				    arg);
	derived(c, &before);
	return r.warnings;
}

/* ---- single rows ---- */

int lnx_conf_find(const char *name, size_t len)
{
	size_t i;

	if (len > PREFIX_LEN && !strncasecmp(name, PREFIX, PREFIX_LEN)) {
		name += PREFIX_LEN;
		len -= PREFIX_LEN;
	}
	for (i = 0; i < lnx_nparams; i++)
		if (strlen(lnx_params[i].name) == len &&
		    !strncasecmp(lnx_params[i].name, name, len))
			return (int)i;
	return -1;
}

int lnx_conf_param_of(const char *entry)
{
	size_t len = strcspn(entry, "=");

	if (strncmp(entry, PREFIX, PREFIX_LEN))
		return -1;
	return is_alias(entry + PREFIX_LEN, len - PREFIX_LEN) ? ROW_recovery_ping_interval :
								lnx_conf_find(entry, len);
}

const char *lnx_conf_variable(size_t i, char buf[LNX_PARAM_VARIABLE_BYTES])
{
	return env_name(buf, LNX_PARAM_VARIABLE_BYTES, lnx_params[i].name);
}

bool lnx_conf_secret(size_t i)
{
	return i == ROW_job_key;
}

size_t lnx_conf_print(const struct lnx_conf *c, size_t i, char *buf, size_t size)
{
	const struct lnx_param *p = &lnx_params[i];
	const void *member = (const char *)c + offsets[i];
	const char *text;
	uint64_t v;
	int n;

	switch (p->type) {
	case LNX_PARAM_BOOL:
		n = snprintf(buf, size, "%d", *(const bool *)member);
		break;
	case LNX_PARAM_ENUM:
		n = snprintf(buf, size, "%s", p->names[*(const int *)member]);
		break;
	case LNX_PARAM_STR:
		text = *(const char *const *)member;
		n = snprintf(buf, size, "%s", text ? text : "");
		break;
	default:
		v = *(const uint64_t *)member;
		if (p->names && v == LNX_CONF_AUTO)
			n = snprintf(buf, size, "%s", p->names[0]);
		else
			n = snprintf(buf, size, "%" PRIu64, v);
	}
	return n > 0 ? (size_t)n : 0;
}

int lnx_conf_set(struct lnx_conf *c, size_t i, const char *text, char *why,
		 size_t why_size)
{
	char v[QUOTE_BYTES], allowed[LNX_PARAM_ALLOWED_BYTES];

	if (set(c, i, text))
		return 0;
	snprintf(why, why_size, "%s=\"%s\": must be %s", lnx_params[i].name,
		 quote(v, text, strlen(text)),
		 lnx_conf_allowed(&lnx_params[i], allowed, sizeof(allowed)));
	return -EINVAL;
}
