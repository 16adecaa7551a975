/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The text of control requests (lnx_ext.h, ctl/).  Does no I/O: a line in, a struct or
 * a sentence out.
 *
 *	request ::= 'fault' 'add' RULE (';' RULE)*	(policy/fault.h)
 *		| 'fault' ('list' | 'show')
 *		| 'fault' 'del' (NUMBER | 'all')
 *		| 'fault' 'reset'
 *		| 'health' 'list'
 *		| 'health' 'set' target+ VALUE
 *		| 'health' 'once' target+ VALUE
 *		| 'health' 'auto' (target+ | 'all')
 *		| 'stats' ['reset']
 *		| 'set' NAME VALUE	(conf/params.def; VALUE: the rest)
 *		| 'tune' RAIL tunable+
 *		| 'ping' PEER [TIMEOUT]
 *		| 'discover' PEER ['force']
 *		| 'explain' PEER [SIZE]
 *		| 'export' ['all']
 *		| 'route' 'show'
 *		| 'route' ('add' | 'put') ROUTES	(conf/routes.h; the rest)
 *		| 'route' 'del' (NET ['via' NID (',' NID)*] | 'all')
 *	tunable ::= ('credits' | 'peer_credits') (NUMBER | 'default')
 *	target ::= RAIL			a rail of ours
 *		| RAIL '@' PEER		the paths over it to a peer
 *		| NUMBER '@' PEER	a rail of the peer's, by its index
 *
 * RAIL is a name as in logs, PROVIDER:DOMAIN, '*' and '?'  in it; PEER an endpoint id,
 * 16 hex digits, or less: an fi_addr_t, or '*' in a target.  VALUE of health is 0 to
 * LNX_HEALTH_MAX, TIMEOUT is in ms, SIZE in bytes.  Words are separated by blanks; their
 * case does not matter, but in names of rails.
 */
#ifndef LNX_REQUEST_H
#define LNX_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/fault.h"

#define LNX_REQUEST_MAX		(LNX_FAULT_TEXT_MAX + 64)	/* with NUL */
#define LNX_REQUEST_TARGETS	16
#define LNX_REQUEST_NAME_MAX	LNX_FAULT_NAME_MAX
#define LNX_REQUEST_TIMEOUT_MAX	600000u		/* ms */

enum lnx_request_kind {
	LNX_REQUEST_FAULT_ADD,
	LNX_REQUEST_FAULT_LIST,
	LNX_REQUEST_FAULT_DEL,
	LNX_REQUEST_FAULT_RESET,
	LNX_REQUEST_HEALTH_LIST,
	LNX_REQUEST_HEALTH_SET,
	LNX_REQUEST_HEALTH_ONCE,
	LNX_REQUEST_HEALTH_AUTO,
	LNX_REQUEST_STATS,
	LNX_REQUEST_STATS_RESET,
	LNX_REQUEST_SET,
	LNX_REQUEST_TUNE,
	LNX_REQUEST_PING,
	LNX_REQUEST_DISCOVER,
	LNX_REQUEST_EXPLAIN,
	LNX_REQUEST_EXPORT,
	LNX_REQUEST_ROUTE_SHOW,
	LNX_REQUEST_ROUTE_ADD,
	LNX_REQUEST_ROUTE_PUT,		/* add, or change hops and priority; pass over what
					 * does not fit this node */
	LNX_REQUEST_ROUTE_DEL,
};

/* Tunables of a rail. */
enum lnx_request_tunable {
	LNX_TUNE_CREDITS,
	LNX_TUNE_PEER_CREDITS,
	LNX_TUNABLES
};
#define LNX_TUNE_DEFAULT	UINT32_MAX	/* what the parameter says */
#define LNX_TUNE_MAX		65535u

/* What a health belongs to. */
enum lnx_target_kind {
	LNX_TARGET_RAIL,
	LNX_TARGET_PATH,
	LNX_TARGET_REMOTE,
	LNX_TARGET_PEER,		/* as a whole; not of health */
};

struct lnx_target {
	enum lnx_target_kind kind;
	char rail[LNX_REQUEST_NAME_MAX];	/* pattern; for RAIL and PATH */
	unsigned remote;			/* index; for REMOTE */
	bool any_peer, by_eid;			/* not for RAIL */
	uint64_t peer;				/* an endpoint id, or an fi_addr_t */
	unsigned at, len;			/* its position in the text */
};

struct lnx_request {
	enum lnx_request_kind kind;
	const char *rules;		/* FAULT_ADD, ROUTE_*: the rest of the text */
	bool all;			/* FAULT_DEL, HEALTH_AUTO, EXPORT, ROUTE_DEL;
					 * DISCOVER: force */
	bool sized;			/* EXPLAIN: there is a SIZE */
	uint64_t number;		/* FAULT_DEL; PING: TIMEOUT, 0: none; EXPLAIN: SIZE */
	unsigned value;			/* HEALTH_SET, HEALTH_ONCE */
	unsigned tuned;			/* TUNE: those that are named, as bits */
	uint32_t tune[LNX_TUNABLES];	/* and their values */
	/* SET: two parts of the text. */
	unsigned name_at, name_len, value_at, value_len;
	unsigned ntarget;		/* HEALTH_*: any; TUNE, PING, DISCOVER, EXPLAIN: 1 */
	struct lnx_target target[LNX_REQUEST_TARGETS];
};

/*
 * Read text, which must stay valid while out is used.  0; or -EINVAL and in why[] one
 * sentence: which word is wrong and what would be right, printable ASCII whatever text
 * contains, cut at why_size (not 0).  -ENOMEM.
 */
int lnx_request_parse(const char *text, struct lnx_request *out, char *why,
		      size_t why_size);

/* Does target name that rail, or that peer (addr: UINT64_MAX if it has none)? */
bool lnx_request_has_rail(const struct lnx_target *target, const char *rail);
bool lnx_request_has_peer(const struct lnx_target *target, uint64_t eid,
			  uint64_t addr);

#endif
