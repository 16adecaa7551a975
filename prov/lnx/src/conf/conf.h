/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters.  conf/params.def is the only table: name, type, default, range, unit,
 * help.  The struct below, the defaults, the range checks, the definitions passed to
 * libfabric (so that `fi_info -e` lists them) and the section of the man page are made
 * from it.  No other code of the library calls getenv.
 *
 * Types in the table: BOOL (0/1/yes/no/true/false/on/off), UINT (decimal, or with a
 * binary suffix k, m, g), STR, ENUM (a list of names).  Case does not matter in values,
 * except of STR.
 */
#ifndef LNX_CONF_H
#define LNX_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lnx_conf_selection {		/* FI_LNX_MULTI_RAIL_SELECTION */
	LNX_SELECTION_SPREAD,
	LNX_SELECTION_PER_PEER,
	LNX_SELECTION_PER_MSG,
	LNX_SELECTION_LNET,
};

enum lnx_conf_protocol {		/* FI_LNX_PROTOCOL */
	LNX_PROTOCOL_FRAMED,
	LNX_PROTOCOL_DIRECT,
};

#define LNX_CONF_AUTO	UINT64_MAX	/* of a UINT: a word instead of a number */

/* Rows of params.def. */
enum {
	LNX_CONF_ROWS = 0
#define LNX_PARAM(name, type, def, min, max, unit, names, help) + 1
#include "conf/params.def"
#undef LNX_PARAM
};

/* Where the value of a row comes from: bits.  None: it is the default. */
enum lnx_conf_origin {
	LNX_CONF_GIVEN = 1,		/* set in the environment block that was read */
	LNX_CONF_DERIVED = 2,		/* changed to fit other parameters */
	LNX_CONF_IN_CONFIG = 4,		/* given, by libfabric.conf; prov.c sets this */
	LNX_CONF_LIVE = 8,		/* set since, by a request */
	LNX_CONF_IN_FILE = 16,		/* given, by the configuration file; the same */
};

/*
 * One member per row of params.def, in its order: bool, uint64_t, const char *
 * (NULL when unset; owned by the environment, never modified) or int (enum).
 */
#define LNX_CONF_BOOL	bool
#define LNX_CONF_UINT	uint64_t
#define LNX_CONF_STR	const char *
#define LNX_CONF_ENUM	int
struct lnx_conf {
#define LNX_PARAM(name, type, def, min, max, unit, names, help) \
	LNX_CONF_##type name;
#include "conf/params.def"
#undef LNX_PARAM
	uint8_t origin[LNX_CONF_ROWS];	/* of each row: enum lnx_conf_origin */
};
#undef LNX_CONF_BOOL
#undef LNX_CONF_UINT
#undef LNX_CONF_STR
#undef LNX_CONF_ENUM

/*
 * Are operations and receives the core providers' own (msg/rx_native.c)?  Either variable
 * can set this.
 */
static inline bool lnx_conf_native(const struct lnx_conf *c)
{
	return c->protocol == LNX_PROTOCOL_DIRECT || !c->use_srq;
}

/* Where two values do not fit, *c becomes what is used, so that it can be shown, and read
 * again: a maximum is no less than what it limits, and either of two names of native
 * endpoints sets both. */
void lnx_conf_mend(struct lnx_conf *c);

/*
 * Fill *c from the environment block env ("NAME=value" strings, NULL-ended).  Every
 * FI_LNX_* variable that is unknown, or whose value is not allowed, is reported once
 * through warn(arg, sentence).  The sentence tells the variable, the value and what is
 * allowed (for an unknown variable, the nearest known name if there is one); the
 * default is kept.  An empty value means unset.  If a variable is there twice the first
 * one counts, as with getenv.  The sentence is printable, short whatever the
 * environment contains, and valid during the call.  env may be NULL (all defaults), and
 * warn too.  STR members point into env.  Returns the number of warnings.
 */
int lnx_conf_read(struct lnx_conf *c, char *const env[],
		  void (*warn)(void *arg, const char *sentence), void *arg);

/*
 * The values that a parameter accepts, as text that fits after "must be": "a whole
 * number from 2 to 4096 (frames)".  Returns buf.  128 bytes are enough for every row.
 */
struct lnx_param;
#define LNX_PARAM_ALLOWED_BYTES	128
const char *lnx_conf_allowed(const struct lnx_param *param, char *buf,
			     size_t size);

/* Would lnx_conf_read take that value for the parameter, which is a row of lnx_params? */
bool lnx_conf_accepts(const struct lnx_param *param, const char *text);

/* The table, for libfabric's definitions, the man page and lnxctl. */
struct lnx_param {
	const char *name;		/* lower case, without FI_LNX_ */
	enum lnx_param_type { LNX_PARAM_BOOL, LNX_PARAM_UINT, LNX_PARAM_STR,
			      LNX_PARAM_ENUM } type;
	const char *def;		/* default as text, "" when none */
	uint64_t min, max;		/* UINT only */
	const char *unit;		/* "", "bytes", "us", "ms", ... */
	const char *const *names;	/* ENUM: allowed names, NULL-ended; UINT: a
					 * word for LNX_CONF_AUTO, or NULL */
	const char *help;		/* one or two sentences */
};
extern const struct lnx_param lnx_params[];
extern const size_t lnx_nparams;

/* ---- single rows, by their index in lnx_params ---- */

/* The row of that name, with or without FI_LNX_, in any case; -1: there is none. */
int lnx_conf_find(const char *name, size_t len);
/* The row that a variable "FI_LNX_NAME=value" of the environment sets, also by LNet's name
 * RECOVERY_INTERVAL; -1: none. */
int lnx_conf_param_of(const char *entry);
/* The name that was probably meant, lower case, or NULL. */
const char *lnx_conf_nearest(const char *name, size_t len);
/* The name of its variable, FI_LNX_...; returns buf. */
#define LNX_PARAM_VARIABLE_BYTES	64
const char *lnx_conf_variable(size_t i, char buf[LNX_PARAM_VARIABLE_BYTES]);
/* Is its value not to be shown? */
bool lnx_conf_secret(size_t i);
/*
 * Its value as text that lnx_conf_set reads again; "" for text that is unset.  Length
 * without NUL, as snprintf: buf is cut at size.
 */
size_t lnx_conf_print(const struct lnx_conf *c, size_t i, char *buf, size_t size);
/*
 * Take a value as lnx_conf_read does, but refuse instead of using the default: 0, or
 * -EINVAL with *c unchanged and in why[] what is allowed.  Does not check that
 * parameters fit together (lnx_plan_check).  A text is not copied.
 */
int lnx_conf_set(struct lnx_conf *c, size_t i, const char *text, char *why,
		 size_t why_size);

/* May the parameter of that row be set while an endpoint is open? */
bool lnx_conf_live(size_t row);

#endif
