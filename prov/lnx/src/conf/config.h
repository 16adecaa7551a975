/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The configuration as YAML (lnx.conf(5)): text to struct and back, and the difference
 * of two.  Does no I/O.
 *
 *	net:		which rails, by net and interface
 *	nets:		names of nets
 *	route:		gateways to other nets
 *	peer:		NIDs of peers
 *	routing:	enable; of a gateway port, key and state as well
 *	buffers:	tiny, small, large
 *	numa:		range
 *	global:		any parameter of conf/params.def, without FI_LNX_
 *	udsp:		rules (policy/rule.h)
 *	limits:		of a gateway, numbers (lnxrtd(8))
 *	allow:		between which nets a gateway forwards
 *
 * The keys are lnetctl's, so far as lnx has such things.  A text is read as a whole:
 * with the first thing that is wrong it is refused, and there is no configuration.
 */
#ifndef LNX_CONFIG_H
#define LNX_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "conf/nets.h"
#include "conf/routes.h"
#include "policy/rules.h"

#define LNX_CONFIG_LIST		1024	/* entries of a list; of peers and routes */
#define LNX_CONFIG_NIDS		32	/* NIDs of a peer, interfaces of a net */
#define LNX_CONFIG_KEY_MAX	96	/* "net[3].local NI(s)[0].CPT", with NUL */

/* A number that is not given. */
#define LNX_CONFIG_UNSET	UINT32_MAX

enum lnx_config_section {
	LNX_CONFIG_NET, LNX_CONFIG_NETS, LNX_CONFIG_ROUTE, LNX_CONFIG_PEER,
	LNX_CONFIG_ROUTING, LNX_CONFIG_BUFFERS, LNX_CONFIG_NUMA, LNX_CONFIG_GLOBAL,
	LNX_CONFIG_UDSP, LNX_CONFIG_LIMITS_KEY, LNX_CONFIG_ALLOW,
	LNX_CONFIG_SECTIONS
};

/* Position in the text it was read from, both from 1; 0: it was not read. */
struct lnx_config_at {
	unsigned line, column;
};

/* Some interfaces of a net that have the same settings. */
struct lnx_config_ni {
	unsigned n;
	const char *interface[LNX_CONFIG_NIDS];
	/* Each may be LNX_CONFIG_UNSET. */
	uint32_t peer_timeout;		/* s */
	uint32_t peer_credits, peer_buffer_credits, credits;
	const char *cpt;		/* "[0,1]", canonical; NULL: not given */
};

struct lnx_config_net {
	struct lnx_config_at at;
	const char *net;		/* canonical name of one net */
	unsigned n;
	struct lnx_config_ni *ni;
};

struct lnx_config_route {
	struct lnx_config_at at;
	const char *net;		/* canonical name of one net */
	const char *gateway;		/* canonical pattern for NIDs */
	uint32_t hop;			/* 1 to 255, or LNX_CONFIG_UNSET */
	uint32_t priority;		/* 0 is the best */
};

struct lnx_config_peer {
	struct lnx_config_at at;
	const char *primary;		/* canonical NID */
	bool multi_rail;
	unsigned n;
	const char *nid[LNX_CONFIG_NIDS];	/* canonical */
};

struct lnx_config_rule {
	struct lnx_config_at at;
	struct lnx_rule_spec spec;	/* without index; canonical patterns */
};

/* Numbers of a gateway. */
enum lnx_config_limit_id {
	LNX_CONFIG_GRANT_LARGE, LNX_CONFIG_GRANT_SMALL, LNX_CONFIG_FRAME_MAX,
	LNX_CONFIG_DESTINATIONS, LNX_CONFIG_SOURCES, LNX_CONFIG_CONNECTS, LNX_CONFIG_NOTES,
	LNX_CONFIG_IDLE, LNX_CONFIG_CONNECT_TIMEOUT, LNX_CONFIG_DRAIN,	/* s */
	LNX_CONFIG_LIMITS
};

struct lnx_config_limit {
	const char *name;
	uint32_t min, max;
};

extern const struct lnx_config_limit lnx_config_limits[LNX_CONFIG_LIMITS];

#define LNX_CONFIG_ALLOW_MAX	64

/* The first entry that fits decides; if none does, frames are forwarded. */
struct lnx_config_allow {
	struct lnx_config_at at;
	const char *from, *to;		/* canonical names of nets; NULL: any */
	bool deny;
};

/* All pointers are into the configuration, and const; lists are made by the functions
 * below. */
struct lnx_config {
	bool has[LNX_CONFIG_SECTIONS];	/* the text has that key */
	struct lnx_nets nets;
	unsigned n_net, n_route, n_peer, n_rule, n_allow;
	struct lnx_config_net *net;
	struct lnx_config_route *route;
	struct lnx_config_peer *peer;
	struct lnx_config_rule *rule;
	struct lnx_config_allow *allow;
	uint32_t routing;		/* 0, 1, or LNX_CONFIG_UNSET */
	uint32_t port;			/* of a gateway's rails, or LNX_CONFIG_UNSET */
	const char *key_file, *state_file, *control_file;	/* NULL: not given */
	uint32_t limit[LNX_CONFIG_LIMITS];	/* or LNX_CONFIG_UNSET */
	/* Numbers of buffers, or LNX_CONFIG_UNSET. */
	uint32_t tiny, small, large;
	const char **global;		/* by row of lnx_params: value, or NULL */
	struct lnx_config_memory *memory;	/* conf/config.c */
};

/* What is wrong, and where. */
struct lnx_config_error {
	unsigned line, column;		/* from 1; 0: not in the text */
	char key[LNX_CONFIG_KEY_MAX];	/* "udsp[2].src"; empty: none */
	char why[LNX_REFUSAL_BYTES];	/* what was found, and what is allowed */
};

/* Nothing is given.  NULL: no memory. */
struct lnx_config *lnx_config_create(void);
/* NULL is fine. */
void lnx_config_destroy(struct lnx_config *config);

/*
 * Read YAML text of len bytes.  Everything in it is checked, alone and together: this
 * is also a dry run.  nets: names that are known beside those of the text, which
 * replace them; may be NULL.  0; -EINVAL with e filled; -ENOMEM; -ENOSYS: there is no
 * libyaml; both with e->why.
 */
int lnx_config_read(const char *text, size_t len, const struct lnx_nets *nets,
		    struct lnx_config **out, struct lnx_config_error *e);

/*
 * Read the configuration that FI_LNX_CONFIG names (path), or, if that is NULL,
 * /etc/lnx.conf, which need not exist.  0 with *out the configuration, or NULL if there
 * is none; or a negative errno with a sentence in why that names the file.
 */
int lnx_config_load(const char *path, struct lnx_config **out, char *why, size_t size);

/*
 * What the text says and no endpoint uses: a gateway does, or lnx has no such thing.  Keys
 * with ", " between: "peer, net.CPT"; empty: nothing.  Length without NUL, as snprintf.
 */
size_t lnx_config_unused(const struct lnx_config *config, char *buf, size_t size);

/* "FILE:3:7: udsp[0].src: ...".  Length without NUL, as snprintf. */
size_t lnx_config_error_print(const struct lnx_config_error *e, const char *file,
			      char *buf, size_t size);

/*
 * The configuration as YAML in its canonical form, which reads to the same.  Length
 * without NUL, as snprintf.
 */
size_t lnx_config_print(const struct lnx_config *config, char *buf, size_t size);

/*
 * What would change from old to new, a line each: "- KEY: VALUE" for what goes, "+ ..."
 * for what comes, and for rules those of lnx_rules_diff behind "udsp: ".  Sections that
 * new does not have do not change.  0 with *len the length without NUL, as snprintf;
 * -ENOMEM.
 */
int lnx_config_diff(const struct lnx_config *old, const struct lnx_config *new,
		    char *buf, size_t size, size_t *len);

/* ---- what is made of it ---- */

/*
 * The parameters of `global` and `numa` as strings "FI_LNX_NAME=value" for
 * lnx_conf_read: append them to the environment, so that variables there count more.
 * Writes at most max and returns their number, or -ENOMEM.  They are valid as long as
 * config.
 */
int lnx_config_env(struct lnx_config *config, char **env, unsigned max);

/* Make the rules those of `udsp`, if that is given.  As lnx_rules_replace. */
int lnx_config_rules(const struct lnx_config *config, struct lnx_rules *rules,
		     struct lnx_refusal *r);

/*
 * Make the table's routes those of `route`, if that is given, or none of them after an
 * error.  nets: as for lnx_config_read, replaced by those of the configuration; host and
 * errors: as of lnx_routes_add; skipped, which may be NULL: as of struct lnx_routes_adding.
 * r->why names the entry.
 */
int lnx_config_routes(const struct lnx_config *config, const struct lnx_nets *nets,
		      struct lnx_routes *t, const struct lnx_route_host *host,
		      struct lnx_out *skipped, struct lnx_refusal *r);
/* The routes of one entry, one for each gateway.  As lnx_routes_expand. */
int lnx_config_route_each(const struct lnx_config_route *route,
			  const struct lnx_nets *nets, lnx_route_each *each, void *arg,
			  struct lnx_refusal *r);

/* ---- to make one that is printed (export); 0, -ENOMEM, or -EINVAL ---- */

/* A parameter by its name without FI_LNX_.  -EINVAL: it is unknown, or the value is
 * wrong, empty, or not ASCII. */
int lnx_config_set_global(struct lnx_config *config, const char *name,
			  const char *value);
int lnx_config_set_nets(struct lnx_config *config, const struct lnx_nets *nets);
/* One interface of a net, and its credits; LNX_CONFIG_UNSET: not given. */
int lnx_config_set_ni(struct lnx_config *config, const char *net, const char *interface,
		      uint32_t credits, uint32_t peer_credits);
/* All routes of a table but those that were learned, in the order of their texts. */
int lnx_config_set_routes(struct lnx_config *config, const struct lnx_routes *t);
/* All rules of a set, in their order. */
int lnx_config_set_rules(struct lnx_config *config, const struct lnx_rules *rules);

/* ---- for conf/config*.c ---- */

extern const char *const lnx_config_names[LNX_CONFIG_SECTIONS];

/* Zeroed memory that is freed with the configuration; NULL: there is none. */
void *lnx_config_get(struct lnx_config *config, size_t size);
char *lnx_config_copy(struct lnx_config *config, const char *text, size_t len);

/* One more entry of a list, which may move; NULL: no memory. */
void *lnx_config_more(struct lnx_config *config, void *list, unsigned *n, size_t size);

/* The row of a parameter that `global` may have, or -1.  *why (may be NULL): half a
 * sentence, if it is one that may not be there. */
int lnx_config_param(const char *name, const char **why);

#endif
