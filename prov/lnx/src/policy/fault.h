/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fault table: which frames are lost, late, or failed, for tests.  Does no I/O:
 * text in, rules out; the properties of a frame and the time in, a decision out.  The
 * table has its own random numbers, so that a seed repeats a run.
 *
 *	table ::= rule (';' rule)*
 *	rule  ::= action word*
 *	action ::= 'drop' | 'delay=' TIME | 'fail=' class (',' class)*
 *	word  ::= key '=' value
 *
 * Words are separated by blanks, and each key may be used once in a rule.
 *
 *	drop		the frame is discarded where it arrives, before anything
 *			counts it
 *	delay=TIME	it is kept that long where it arrives; others overtake it
 *	fail=CLASS,...	it does not leave; its send completes with an error of that
 *			class (policy/classes.def, but for response_timeout, which is
 *			no error), or of one of several, or of any ('random')
 *
 * What a rule matches; without the key anything:
 *
 *	rail=P,...	our rail, as logs name it (tcp:eth0), '*' and '?' in it
 *	rrail=N,...	the peer's rail, its index in the peer's address, or *
 *	peer=P,...	16 hex digits: an endpoint id; less: an fi_addr_t; or *
 *	kind=K,...	kinds of frames, lower case (lnx_wire.h), rts for rts_msg and
 *			rts_tag; of fail also read and write, the pieces of large
 *			transfers.  With ^ in front: all kinds but these
 *
 * How often, one of the three; without one: always.
 *
 *	rate=N		one of each N that match, at a random place among them; of
 *			two it is the first, so that every other one is hit
 *	interval=TIME	one in each such time, at a random moment of it
 *	random=P%	each with this probability, at most four decimals
 *
 * When:
 *
 *	after=N, after=TIME	not the first N that match; not before that time
 *				since the rule is in the table
 *	for=TIME		no longer than that, from when it begins
 *	count=N			no more than N
 *	seed=N			of the random numbers; else it is the table's
 *
 * TIME is a number with ms or s; ms may be left out but in `after`.
 *
 * Rules are applied in their order.  The first that hits decides, and later rules do
 * not see the frame; after one that matches and does not hit, they do.
 */
#ifndef LNX_FAULT_H
#define LNX_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lnx_wire.h"
#include "policy/class.h"

#define LNX_FAULT_RULES		32	/* of one table */
#define LNX_FAULT_LIST		16	/* values of one key */
#define LNX_FAULT_NAME_MAX	128	/* of a rail's pattern, with NUL */
#define LNX_FAULT_TEXT_MAX	8192	/* of a table, with NUL */
#define LNX_FAULT_RULE_MAX	4096	/* of a rule as it is printed, with NUL */
#define LNX_FAULT_MS_MAX	3600000u

/* Kinds that no frame has: the pieces of large transfers. */
#define LNX_FAULT_READ		62
#define LNX_FAULT_WRITE		63
static_assert(LNX_KIND_MAX <= LNX_FAULT_READ, "a kind is a bit of a word");

/*
 * prov_errno of an injected error: this plus its class.  No provider uses such numbers,
 * so code that maps errors to classes need not guess.
 */
#define LNX_FAULT_ERRNO_BASE	0x4c460000

/* The class in such a prov_errno; LNX_CLASS_OK: it is a core's own. */
static inline enum lnx_health_class lnx_fault_class_of(int prov_errno)
{
	unsigned n = (unsigned)prov_errno - LNX_FAULT_ERRNO_BASE;

	return n < LNX_CLASS_COUNT ? (enum lnx_health_class)n : LNX_CLASS_OK;
}

/* The errno (positive) that a core would give for a class. */
int lnx_fault_errno(enum lnx_health_class class);

/* Where a frame is when the rules are applied to it. */
enum lnx_fault_at {
	LNX_FAULT_AT_SEND,		/* fail */
	LNX_FAULT_AT_RECV,		/* drop, delay */
};

/* Properties of a frame that rules can match. */
struct lnx_fault_frame {
	const char *rail;		/* of ours */
	unsigned remote_rail;
	uint64_t eid;			/* of the peer */
	uint64_t addr;			/* its fi_addr_t; UINT64_MAX: it has none */
	uint8_t kind;			/* enum lnx_wire_kind, LNX_FAULT_READ, _WRITE */
};

enum lnx_fault_action {
	LNX_FAULT_NONE,
	LNX_FAULT_DROP,
	LNX_FAULT_DELAY,
	LNX_FAULT_FAIL,
};

struct lnx_fault_verdict {
	enum lnx_fault_action action;
	unsigned rule;			/* index of the one that hit */
	uint64_t delay_ns;		/* DELAY */
	enum lnx_health_class class;	/* FAIL */
};

struct lnx_fault;

/*
 * Read text.  now: the time, in ns, from which `after` and `for` count; seed: for rules
 * without their own, each derives its own from it.  0 with *out, which the caller must
 * destroy; -ENOMEM; or -EINVAL with *at the offset of the error and why[] one sentence:
 * what is wrong and what would be right, printable ASCII whatever text contains, cut at
 * why_size.  at and why may be NULL, and out too: then text is only checked.
 */
int lnx_fault_create(const char *text, uint64_t seed, uint64_t now,
		     struct lnx_fault **out, size_t *at, char *why,
		     size_t why_size);
void lnx_fault_destroy(struct lnx_fault *table);

/*
 * Add rules behind the present ones; as lnx_fault_create.  Also -ENOSPC: they would be
 * too many, and none is added.
 */
int lnx_fault_add(struct lnx_fault *table, const char *text, uint64_t seed,
		  uint64_t now, size_t *at, char *why, size_t why_size);
/*
 * Rules are numbered from 1 in their order, and no number is used twice.  Remove one:
 * false if it does not exist.  The indexes of the rules behind it change.
 */
bool lnx_fault_del(struct lnx_fault *table, uint64_t number);
uint64_t lnx_fault_number(const struct lnx_fault *table, unsigned rule);

/* Set the counts of all rules to 0; `after` and `count` go on. */
void lnx_fault_reset(struct lnx_fault *table);

/* Apply the rules to a frame, and count it.  now as in create; never goes back. */
struct lnx_fault_verdict lnx_fault_judge(struct lnx_fault *table,
					 enum lnx_fault_at at,
					 const struct lnx_fault_frame *frame,
					 uint64_t now);
/* The decision of rule could not be carried out: count a miss instead of a hit. */
void lnx_fault_missed(struct lnx_fault *table, unsigned rule);

struct lnx_fault_count {
	uint64_t matched;		/* frames that it was applied to and matched */
	uint64_t hit;
	uint64_t missed;		/* hits that could not be carried out */
};

unsigned lnx_fault_nrule(const struct lnx_fault *table);
struct lnx_fault_count lnx_fault_count(const struct lnx_fault *table,
				       unsigned rule);

/*
 * One rule in canonical form, including its seed if it draws random numbers: so a table
 * made from it does the same again.  Length without NUL, as snprintf: buf is cut at
 * size.
 */
size_t lnx_fault_print(const struct lnx_fault *table, unsigned rule, char *buf,
		       size_t size);

#endif
