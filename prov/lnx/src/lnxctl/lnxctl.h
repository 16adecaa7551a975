/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the verbs of lnxctl share.  A verb is a struct lnxctl_verb in a file of its own,
 * and a line in main.c's table.
 *
 * Exit status: 0: done; 1: refused, or there is nothing like it; 2: wrong usage; 3: done
 * for some of several processes; 4: no answer.
 */
#ifndef LNXCTL_H
#define LNXCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/interval.h"
#include "lnxctl/client.h"
#include "lnxctl/doc.h"
#include "lnxctl/find.h"
#include "lnxctl/reader.h"
#include "lnxctl/render.h"
#include "lnx_policy.h"

enum lnxctl_exit {
	LNXCTL_OK = 0,
	LNXCTL_REFUSED = 1,
	LNXCTL_USAGE = 2,
	LNXCTL_PARTLY = 3,
	LNXCTL_NO_ANSWER = 4,
};

#define LNXCTL_OPTIONS	12		/* of one verb, at most */

struct lnxctl_option {
	/* Without "--"; one letter: "-x".  Behind the verb, one of the verb's own counts
	 * before one of all verbs that has the same name. */
	const char *name;
	const char *arg;		/* name of its argument, or NULL */
	const char *help;
};

struct lnxctl;

struct lnxctl_verb {
	const char *name;		/* "net show": one or two words */
	const char *args;		/* for the usage, "" if it has none */
	const char *help;		/* half a sentence */
	struct lnxctl_option option[LNXCTL_OPTIONS];
	unsigned min_args, max_args;	/* words after it */
	bool writes;			/* it prints by itself, and fills no document */
	bool runs;			/* behind "--" it takes a command, not arguments */
	bool asks;			/* it is of no use for a process that has ended */
	bool dates;			/* it says how old the state is that it prints */
	int (*run)(struct lnxctl *c);
};

struct lnxctl {
	const struct lnxctl_verb *verb;
	/* Options of all verbs. */
	uint32_t seen;			/* those that were given, by their places in the table */
	bool help;
	enum lnx_format format;
	bool format_set;
	const char *root;		/* LNX_STATE_DIR, or another */
	pid_t pid;			/* 0: not given */
	bool all, by_job;
	bool live_only;			/* of the verb: leave out processes that have ended */
	const char *job;		/* by_job: its id, or NULL: that of this process */
	const char *file;		/* of a dump, or NULL */
	const char *ep;			/* id or number of an endpoint, or NULL */
	int verbose;
	unsigned wait_ms;		/* for a process; 0: as usual */
	/* Of the verb, in the order of verb->option; NULL: not given, "": without an
	 * argument. */
	const char *value[LNXCTL_OPTIONS];
	char **arg;			/* words after the verb */
	unsigned narg;
	char **command;			/* words behind "--", NULL-ended, or NULL */
	char **env;			/* of this process */

	void (*process)(struct lnxctl *c, struct lnx_proc *p, struct lnx_doc *map);
	struct lnx_procs procs;
	/* The one that lnxctl_each is at, if its process has several; or NULL. */
	const struct lnx_snap_ep *at_ep;
	struct lnx_doc *doc;
	unsigned ndone, nfailed;	/* endpoints; processes that are not looked into */
	/* Of the last one that failed: */
	enum lnxctl_exit failure;
	int failed_err;			/* a negative errno */
	char failed_why[600];
};

/* The value of an option of the verb, or NULL. */
const char *lnxctl_value(const struct lnxctl *c, const char *name);

/* A sentence on standard error; the status. */
int lnxctl_usage(const struct lnxctl *c, const char *fmt, ...) LNX_PRINTF(2, 3);
/* The same; or, if --json or --yaml is given, a part with err, a negative errno, of the document
 * that lnxctl_put_failures writes. */
int lnxctl_refuse(const struct lnxctl *c, int err, const char *fmt, ...)
	LNX_PRINTF(3, 4);
void lnxctl_put_failures(const struct lnxctl *c);
/* Refuse it for the reason in errno. */
int lnxctl_write_failed(const struct lnxctl *c);
/* The same of one process of several. */
void lnxctl_fail(struct lnxctl *c, const struct lnx_proc *p, enum lnxctl_exit status,
		 int err, const char *fmt, ...) LNX_PRINTF(5, 6);

/* The same of what does not count: it goes on, and the status is as without. */
void lnxctl_note(const struct lnxctl *c, const struct lnx_proc *p, int err,
		 const char *fmt, ...) LNX_PRINTF(4, 5);

/* A whole number of at most max; false: it is none. */
bool lnxctl_number(const char *text, uint64_t max, uint64_t *v);

/* ---- which processes ---- */

/*
 * Find the processes that the options name into c->procs, and read them; peers: wait for
 * their peers too.  LNXCTL_OK; or a status after a sentence: there is none, or there are
 * several and none was chosen.  any: several are fine without --all.
 */
int lnxctl_select(struct lnxctl *c, bool peers, bool any);

/*
 * For each process that was selected, and each of its endpoints that --ep names: call fn
 * with a map to fill; before that, if it is set, c->process once for the process.  A
 * process that cannot be read fails.  Then the document is written, unless it is empty.
 * Returns the status.
 */
int lnxctl_each(struct lnxctl *c, bool peers,
		void (*fn)(struct lnxctl *c, struct lnx_proc *p,
			   const struct lnx_snap_ep *e, struct lnx_doc *map));
/* Does an option say which processes are meant? */
bool lnxctl_chosen(const struct lnxctl *c);
/* Columns of the terminal that standard output is, or of the variable COLUMNS; 0: neither. */
unsigned lnxctl_width(const struct lnxctl *c);
/* Write c->doc, and the status of all. */
int lnxctl_finish(struct lnxctl *c);
/* Does --ep name it, or is it not given? */
bool lnxctl_wants_ep(const struct lnxctl *c, const struct lnx_snap_ep *e);
/* How many of a process does it name? */
unsigned lnxctl_wanted(const struct lnxctl *c, const struct lnx_snap *s);
/* Refuse it: it names none of any process. */
int lnxctl_no_ep(const struct lnxctl *c);

/* Is it of no use to ask p: it has ended, is a copy, or has published nothing since lnxctl_each
 * looked?  Then m gets a sentence that what is shown is its state of a while ago. */
bool lnxctl_put_silent(const struct lnxctl *c, const struct lnx_proc *p,
		       const struct lnx_snap_ep *e, struct lnx_doc *m);

/* ---- requests ---- */

/*
 * Have an endpoint carry out a request.  answer_ms: how long the answer may take beyond
 * the usual.  True, with the reply, to be freed; false after lnxctl_fail.
 */
bool lnxctl_request(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
		    unsigned answer_ms, char **reply, const char *fmt, ...)
	LNX_PRINTF(6, 7);

/* ---- rules: rules.c ---- */

/* The calls of lnx_policy.h for one endpoint. */
struct lnxctl_rules {
	struct lnx_policy *policy;
	struct lnxctl *c;
	struct lnx_proc *p;
	const struct lnx_snap_ep *e;
	int failed;			/* of lnx_client_send in the last call, or 0 */
};

/* False after lnxctl_fail.  Otherwise *r stays where it is until it is closed. */
bool lnxctl_rules_open(struct lnxctl_rules *r, struct lnxctl *c, struct lnx_proc *p,
		       const struct lnx_snap_ep *e);
void lnxctl_rules_close(struct lnxctl_rules *r);
/*
 * The rules of e that the filter selects, as lnx_policy_show has them, from the state segment:
 * *rules is an array for free(), of *n.  filter: NULL, or as that of lnx_policy_show; its
 * patterns are compared as lnx_policy_show does only if FI_LNX_NETS names all nets that they
 * use, else by their text.  0; or a negative errno after lnxctl_fail.
 */
int lnxctl_rules_published(struct lnxctl *c, struct lnx_proc *p, const struct lnx_snap_ep *e,
			   const struct lnx_policy_rule *filter,
			   struct lnx_policy_rule **rules, size_t *n);
/* lnxctl_fail with the reason why the last call failed, which returned err. */
void lnxctl_rules_fail(const struct lnxctl_rules *r, int err);

/* ---- names ---- */

/* Does a pattern of a user name it?  '*' and '?'; a port may be left out. */
bool lnxctl_nid_is(const char *pattern, const char *nid);
/* A rail by its NID or its name (tcp:eth0). */
bool lnxctl_rail_is(const char *pattern, const struct lnx_state_rail *rail);
/* A peer by its id, its number in the address vector, or the NID of one of its rails. */
bool lnxctl_peer_is(const char *pattern, const struct lnx_snap_peer *peer);
/* The NID that it is known by: of its first path, or of shared memory. */
void lnxctl_peer_nid(const struct lnx_snap_peer *peer, char *buf, size_t size);
/* Our name of a parameter, of a name in either case, with or without FI_LNX_, or LNet's.  A
 * number by LNet's name counts *divide of our units. */
const char *lnxctl_param_name(const char *name, unsigned *divide);
/* Of a parameter, enum lnx_state_origin: "environment". */
const char *lnxctl_origin(unsigned origin);
const char *lnxctl_path_state(const struct lnx_state_path *p);
bool lnxctl_rail_up(const struct lnx_state_rail *rail);
/* "2 s", "350 ms" */
void lnxctl_age(char *buf, size_t size, uint64_t ns);
uint64_t lnxctl_now(void);

/* ---- blocks that several verbs print ---- */

void lnxctl_put_traffic(struct lnx_doc *map, const struct lnx_state_traffic *now,
			const struct lnx_state_traffic *base, uint32_t have);
void lnxctl_put_ops(struct lnx_doc *map, const struct lnx_state_traffic *now,
		    const struct lnx_state_traffic *base);
/* "udsp info" with the priorities that rules give, as they are in the state segment. */
struct lnx_doc *lnxctl_put_udsp(struct lnx_doc *map, uint32_t net_priority,
				uint32_t nid_priority);
/* Pings go over paths: those of a rail are those of all its paths. */
struct lnxctl_pings {
	unsigned count;			/* the most without an answer */
	uint64_t next_ns;		/* the earliest; 0: none is due */
};
void lnxctl_add_pings(struct lnxctl_pings *sum, const struct lnx_state_path *path);
void lnxctl_put_pings(struct lnx_doc *map, const struct lnxctl_pings *pings);
struct lnxctl_pings lnxctl_rail_pings(const struct lnx_snap_ep *e,
				      const struct lnx_state_rail *r);
void lnxctl_put_latency(struct lnx_doc *map, const char *key,
			const struct lnx_state_latency *l);
void lnxctl_add_traffic(struct lnx_state_traffic *sum, const struct lnx_state_traffic *t);

/* Paths to one rail of a peer, as LNet's peer NI; the sum of their counters. */
struct lnxctl_remote {
	uint32_t index;
	const struct lnx_state_path *first;
	struct lnx_state_traffic traffic;
	uint64_t failed[LNX_STATE_CLASSES];
	uint32_t have;
	bool up;			/* a path to it can be used */
};
/* The rails of a peer that paths lead to; at most max.  Returns how many. */
unsigned lnxctl_remotes(const struct lnx_snap_peer *peer, struct lnxctl_remote *out,
			unsigned max);
#define LNXCTL_REMOTES	64u
struct lnxctl_pings lnxctl_remote_pings(const struct lnx_snap_peer *peer,
					const struct lnxctl_remote *r);

/* Failures of a class, of an object's failed[] and failed_base[] (or NULL). */
uint64_t lnxctl_failures(const struct lnx_snap *snap, const char *class,
			 const uint64_t *now, const uint64_t *base);

/* ---- "net set", "peer set": healthset.c ---- */

/* Are the options right?  LNXCTL_OK, or a status after a sentence. */
int lnxctl_health_options(const struct lnxctl *c);
/* Of the request: "set", "once" or "auto"; and its last word, with a blank before it. */
const char *lnxctl_health_verb(const struct lnxctl *c);
const char *lnxctl_health_value(const struct lnxctl *c, char *buf, size_t size);

/* ---- of this environment: environment.c ---- */

struct lnx_conf;

/*
 * Read the parameters that a process has which is started in this environment: of its
 * variables and the configuration file.  Each thing that is wrong is a sentence for warn;
 * returns how many.  *conf is valid until lnxctl ends.  Call it once.
 */
int lnxctl_environment(struct lnxctl *c, struct lnx_conf *conf,
		       void (*warn)(void *arg, const char *sentence), void *arg);

/* ---- the verbs ---- */

extern const struct lnxctl_verb lnxctl_check, lnxctl_debug_recovery, lnxctl_discover,
	lnxctl_dump, lnxctl_explain, lnxctl_export, lnxctl_fault_add, lnxctl_fault_del,
	lnxctl_fault_reset, lnxctl_fault_show, lnxctl_gateway_set, lnxctl_gateway_show,
	lnxctl_global_show, lnxctl_import,
	lnxctl_info, lnxctl_list, lnxctl_metrics, lnxctl_net_set, lnxctl_net_show, lnxctl_params,
	lnxctl_path_show, lnxctl_peer_set, lnxctl_peer_show, lnxctl_ping,
	lnxctl_route_add, lnxctl_route_del, lnxctl_route_show, lnxctl_set,
	lnxctl_stats_reset, lnxctl_stats_show, lnxctl_top, lnxctl_udsp_add,
	lnxctl_udsp_del, lnxctl_udsp_show;

#endif
