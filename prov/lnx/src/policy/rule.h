/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One rule of the user about which paths are preferred (LNet: a user-defined selection
 * policy, UDSP).  Does no I/O.
 *
 *	text ::= rule (';' rule)*
 *	rule ::= word (',' word)*
 *	word ::= ('src' | 'dst' | 'rte') ':' pattern
 *		| 'priority' ':' N
 *		| 'idx' ':' N
 *
 * src are rails of ours, dst rails of peers, rte gateways; patterns are those of
 * conf/nid.h.  What is given decides what the rule does:
 *
 *	src, nets		our rails in these nets have the priority
 *	dst, nets		rails of peers in these nets have it
 *	src, NIDs		these rails of ours have it
 *	dst, NIDs		these rails of peers have it
 *	src and dst		to these rails of peers, these of ours are preferred
 *	dst and rte		to these rails of peers, these gateways are preferred
 *
 * A priority is 0, the best, to LNX_RULE_PRIORITY_MAX; 0 if it is not given.  The last
 * two have none.  Other combinations are refused.
 */
#ifndef LNX_RULE_H
#define LNX_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refuse.h"
#include "conf/nid.h"
#include "policy/select.h"		/* LNX_RULE_NONE */

#define LNX_RULE_PRIORITY_MAX	(LNX_RULE_NONE - 1)
#define LNX_RULE_TEXT_MAX	640	/* canonical text, with NUL */
#define LNX_RULE_FIELD_MAX	512	/* a pattern as the user writes it, with NUL */

enum lnx_rule_kind {
	LNX_RULE_NET,
	LNX_RULE_RAIL,
	LNX_RULE_REMOTE,
	LNX_RULE_PAIR,
	LNX_RULE_GATEWAY,
	LNX_RULE_KINDS
};

/* "net", "rail", "remote rail", "pair", "gateway". */
const char *lnx_rule_kind_name(enum lnx_rule_kind kind);

enum lnx_rule_side { LNX_RULE_SRC, LNX_RULE_DST, LNX_RULE_RTE, LNX_RULE_SIDES };

/* "src", "dst", "rte". */
const char *lnx_rule_side_name(enum lnx_rule_side side);

/* A rule as a user gives it: on a command line, in a file, in a request. */
struct lnx_rule_spec {
	const char *side[LNX_RULE_SIDES];	/* text of a pattern; NULL: not given */
	bool has_priority, has_index;
	uint32_t priority;
	uint32_t index;			/* insert it before the rule with that index */
};

struct lnx_rule {
	uint32_t id;			/* 0: it is in no set */
	uint32_t priority;		/* LNX_RULE_NONE: PAIR and GATEWAY */
	uint8_t kind;			/* enum lnx_rule_kind */
	uint8_t n[LNX_RULE_SIDES];	/* parts of the patterns; 0: not given */
	struct lnx_nid_part part[];	/* of src, then of dst, then of rte */
};

/* The parts of one pattern of a rule. */
static inline const struct lnx_nid_part *
lnx_rule_parts(const struct lnx_rule *rule, enum lnx_rule_side side)
{
	const struct lnx_nid_part *p = rule->part;
	unsigned i;

	for (i = 0; i < (unsigned)side; i++)
		p += rule->n[i];
	return p;
}

/*
 * Make a rule of a spec, for free().  nets: as for lnx_nid_pattern_parse.  0; -ENOMEM; or
 * -EINVAL with a sentence in r that says what is wrong and what would be right.  If
 * that is about a pattern, r->text is its text and r->at an offset in it; else r->text
 * is NULL and r->at 0.
 */
int lnx_rule_make(const struct lnx_nets *nets, const struct lnx_rule_spec *spec,
		  struct lnx_rule **out, struct lnx_refusal *r);

/* Are kind and patterns the same, whatever the priority? */
bool lnx_rule_same(const struct lnx_rule *a, const struct lnx_rule *b);

/* Does a pattern of the rule have the rail?  *ops grows with each part compared. */
bool lnx_rule_has(const struct lnx_rule *rule, enum lnx_rule_side side,
		  const struct lnx_nid *nid, uint64_t *ops);

/* "src: tcp1, priority: 0": canonical text.  Length without NUL, as snprintf. */
size_t lnx_rule_print(const struct lnx_rule *rule, char *buf, size_t size);
/* The same without the priority. */
size_t lnx_rule_print_patterns(const struct lnx_rule *rule, char *buf, size_t size);
/* The text of one pattern.  Length without NUL, as snprintf; 0: it has none. */
size_t lnx_rule_print_side(const struct lnx_rule *rule, enum lnx_rule_side side,
			   char *buf, size_t size);

/*
 * Read a priority.  what is the word that errors name it by.  0, or -EINVAL with r
 * filled.
 */
int lnx_rule_priority(struct lnx_span w, const char *what, uint32_t *out,
		      struct lnx_refusal *r);

/* ---- several rules as text (policy/rule_text.c) ---- */

/* Reads them one by one; copies what spec points to. */
struct lnx_rule_reader {
	const char *text;
	size_t pos;			/* where the last rule ends */
	struct lnx_rule_spec spec;	/* the last rule read */
	size_t at;			/* offset of it in the text */
	size_t side_at[LNX_RULE_SIDES];	/* and of its patterns */
	char field[LNX_RULE_SIDES][LNX_RULE_FIELD_MAX];
};

/*
 * Read the next rule of reader->text into reader->spec; set up by { .text = text }.
 * 1; 0 at the end; or -EINVAL with r filled and r->text the whole text.  Only the
 * grammar of the words is checked, lnx_rule_make checks the rest.
 */
int lnx_rule_read(struct lnx_rule_reader *reader, struct lnx_refusal *r);

/* After lnx_rule_make refused reader->spec: make r->at an offset in the whole text. */
void lnx_rule_locate(const struct lnx_rule_reader *reader, struct lnx_refusal *r);

#endif
