/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inside of a rule of the fault table: for policy/fault*.c only. */
#ifndef LNX_FAULT_RULE_H
#define LNX_FAULT_RULE_H

#include "policy/fault.h"

#define FAULT_MILLION	1000000u

enum fault_often {
	OFTEN_RATE,
	OFTEN_INTERVAL,
	OFTEN_RANDOM,
};

struct fault_peer {
	bool is_eid;
	uint64_t id;
};

struct lnx_fault_rule {
	/* From the text. */
	enum lnx_fault_action action;
	uint64_t delay_ns;
	uint32_t classes;		/* bit: enum lnx_health_class */
	uint64_t kinds;			/* bit: kind */
	unsigned nrail, nremote, npeer;	/* 0: any */
	char rail[LNX_FAULT_LIST][LNX_FAULT_NAME_MAX];
	unsigned remote[LNX_FAULT_LIST];
	struct fault_peer peer[LNX_FAULT_LIST];
	enum fault_often often;
	uint64_t rate;
	uint64_t interval_ns;
	uint32_t ppm;
	uint64_t after, after_ns, for_ns;
	uint64_t max;			/* hits; 0: unlimited */
	bool has_seed;
	uint64_t seed;

	/* Changed as it is applied. */
	uint32_t number;		/* in the table; from 1 */
	uint64_t start_ns;		/* when it was added to the table */
	struct lnx_fault_count count;
	struct lnx_fault_count base;	/* count at the last lnx_fault_reset */
	uint64_t state;			/* of the random numbers; never 0 */
	bool begun;
	uint64_t begin_ns;
	uint64_t place, victim;		/* matches left of the group, and the one to
					 * hit */
	bool paced;			/* the first interval has begun */
	uint64_t base_ns, moment_ns;	/* of the present interval: its begin, its
					 * hit */
};

struct lnx_fault {
	uint32_t last;			/* last number given to a rule */
	unsigned nrule;
	struct lnx_fault_rule rule[LNX_FAULT_RULES];
};

/* The classes that a send can fail with. */
#define FAULT_CLASSES	((1u << LNX_CLASS_COUNT) - 1 - (1u << LNX_CLASS_OK) - \
			 (1u << LNX_CLASS_RESPONSE_TIMEOUT))

/* fault_text.c.  The set of kinds that a rule with that action may name. */
uint64_t lnx_fault_kinds(enum lnx_fault_action action);
/* The names of the kinds in a set; length without NUL, as snprintf. */
size_t lnx_fault_kind_names(uint64_t set, const char *between, char *buf,
			    size_t size);
/* Parse the part of all rules that comes from the text; nothing is set before.  The
 * rest as lnx_fault_create. */
int lnx_fault_parse(const char *text, struct lnx_fault *out, size_t *at,
		    char *why, size_t why_size);

#endif
