/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads rules from text (FI_LNX_UDSP).  See rule.h. */
#include <string.h>
#include <strings.h>

#include "policy/rule.h"

enum word {
	WORD_SRC, WORD_DST, WORD_RTE,	/* as the sides */
	WORD_PRIORITY, WORD_IDX,
	WORDS
};

static const char *const words[WORDS] = { "src", "dst", "rte", "priority", "idx" };

_Static_assert((int)WORD_SRC == (int)LNX_RULE_SRC &&
	       (int)WORD_DST == (int)LNX_RULE_DST &&
	       (int)WORD_RTE == (int)LNX_RULE_RTE, "words of patterns are sides");

/* Does a word and ':' begin at s?  *value is behind that.  WORDS: none does. */
static enum word word_at(const char *s, const char **value)
{
	unsigned k;

	s += lnx_blanks(s);
	for (k = 0; k < WORDS; k++) {
		size_t len = strlen(words[k]);

		if (strncasecmp(s, words[k], len))
			continue;
		*value = s + len + lnx_blanks(s + len);
		if (**value == ':') {
			++*value;
			break;
		}
	}
	return (enum word)k;
}

/*
 * Up to the end of the rule or of this word.  A comma is part of a pattern unless
 * another word follows it; a ';' is, in the name of a provider.
 */
static struct lnx_span take_value(const char *s)
{
	struct lnx_span w = { s, 0 };
	const char *value;

	for (; w.s[w.len]; w.len++) {
		if (w.s[w.len] == ',' && word_at(w.s + w.len + 1, &value) != WORDS)
			break;
		if (w.s[w.len] == ';' && !lnx_joins_layers(w.s + w.len))
			break;
	}
	return w;
}

static int no_word(const char *s, struct lnx_refusal *r)
{
	struct lnx_span w = { s, strcspn(s, ",;") };

	w = lnx_span_trim(w);
	return lnx_refuse(r, w.s, "\"%.*s\": a rule has src:, dst: or rte: and a "
			  "pattern, and priority: or idx: and a number, as in "
			  "src: tcp1, priority: 0; ';' begins another rule",
			  LNX_QUOTE(w));
}

static int take_side(struct lnx_rule_reader *rd, enum word k, struct lnx_span w,
		     struct lnx_refusal *r)
{
	if (w.len >= LNX_RULE_FIELD_MAX)
		return lnx_refuse(r, w.s, "%s: the pattern has %zu letters and may "
				  "have at most %d", words[k], w.len,
				  LNX_RULE_FIELD_MAX - 1);
	memcpy(rd->field[k], w.s, w.len);
	rd->field[k][w.len] = '\0';
	rd->spec.side[k] = rd->field[k];
	rd->side_at[k] = (size_t)(w.s - rd->text);
	return 0;
}

static int take_word(struct lnx_rule_reader *rd, enum word k, struct lnx_span w,
		     struct lnx_refusal *r)
{
	uint64_t v;

	w = lnx_span_trim(w);
	switch (k) {
	case WORD_PRIORITY:
		rd->spec.has_priority = true;
		return lnx_rule_priority(w, "priority", &rd->spec.priority, r);
	case WORD_IDX:
		rd->spec.has_index = true;
		if (!lnx_span_uint(w, &v) || v > UINT32_MAX)
			return lnx_refuse(r, w.s, "idx: \"%.*s\": must be the "
					  "index that the rule gets, a number "
					  "from 0", LNX_QUOTE(w));
		rd->spec.index = (uint32_t)v;
		return 0;
	default:
		return take_side(rd, k, w, r);
	}
}

int lnx_rule_read(struct lnx_rule_reader *rd, struct lnx_refusal *r)
{
	const char *s = rd->text, *value;
	unsigned seen = 0;
	struct lnx_span w;
	enum word k;
	int ret;

	r->text = rd->text;
	memset(&rd->spec, 0, sizeof(rd->spec));
	/* A rule may end with ';', as many lists do, and there may be nothing between two. */
	for (s += rd->pos; *s == ';' || lnx_blanks(s); s++)
		;
	if (!*s)
		return 0;
	rd->at = (size_t)(s - rd->text);
	for (;; s = w.s + w.len + 1) {
		k = word_at(s, &value);
		if (k == WORDS)
			return no_word(s + lnx_blanks(s), r);
		w = take_value(value);
		if (seen >> k & 1)
			return lnx_refuse(r, value, "%s: stands in this rule "
					  "already; once is enough", words[k]);
		seen |= 1u << k;
		ret = take_word(rd, k, w, r);
		if (ret)
			return ret;
		if (w.s[w.len] != ',')
			break;
	}
	rd->pos = (size_t)(w.s + w.len - rd->text);
	return 1;
}

void lnx_rule_locate(const struct lnx_rule_reader *rd, struct lnx_refusal *r)
{
	unsigned i;
	size_t base = rd->at;

	for (i = 0; i < LNX_RULE_SIDES; i++)
		if (r->text && r->text == rd->spec.side[i])
			base = rd->side_at[i];
	r->at += base;
	r->text = rd->text;
}
