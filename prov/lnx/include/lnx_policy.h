/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selection policies: rules about which nets and rails are preferred, for programs that
 * show and change those of a running process.  The calls are in liblnxctl; what rules
 * say, and how nets and NIDs are written, is in lnx_udsp(5).
 *
 *	struct lnx_policy *p;
 *	uint32_t id;
 *	int err = lnx_policy_open_process(pid, 0, 0, &p);
 *
 *	if (err)
 *		fprintf(stderr, "%s\n", strerror(-err));
 *	else if (lnx_policy_add_net(p, LNX_POLICY_SRC, "tcp1", 0, &id))
 *		fprintf(stderr, "%s\n", lnx_policy_error(p));
 *	lnx_policy_close(p);
 *
 * The process is asked with blocks of records, whose layout is below.  They go through its
 * state segment, or are carried by a function of the caller's.  Both ends are on one host:
 * numbers are in its byte order.
 */
#ifndef LNX_POLICY_H
#define LNX_POLICY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LNX_POLICY_API		__attribute__((visibility("default")))

/* ---- blocks ---- */

#define LNX_POLICY_MAGIC	0x50584e4cu	/* "LNXP" in memory */
#define LNX_POLICY_TEXT		256		/* bytes of a pattern, with NUL */
#define LNX_POLICY_UNSET	0xffffffffu	/* a priority or index: none */

enum lnx_policy_op {
	LNX_POLICY_ADD = 1,
	LNX_POLICY_DEL = 2,
	LNX_POLICY_SHOW = 3,
};

/* What rules in a block are about; of a reply also what its records are. */
enum lnx_policy_type {
	LNX_POLICY_ANY = 0,		/* rules of all types */
	LNX_POLICY_NET = 1,		/* src or dst: nets */
	LNX_POLICY_NID = 2,		/* src or dst: NIDs */
	LNX_POLICY_PEER = 3,		/* src and dst */
	LNX_POLICY_GATEWAY = 4,		/* dst and rte */
	LNX_POLICY_IDS = 16,		/* reply to ADD: struct lnx_policy_id */
	LNX_POLICY_SENTENCE = 17,	/* reply to a refusal: one text with NUL */
};

/*
 * A block: this, then `count` records of `size` bytes each.  Later versions may make
 * the head and the records longer.  A reader takes what it knows of them, and skips the
 * rest; it refuses shorter ones.  A writer sets to 0 what it does not use.
 */
struct lnx_policy_block {
	uint32_t magic;			/* LNX_POLICY_MAGIC */
	uint16_t head;			/* bytes of this struct */
	uint16_t op;			/* enum lnx_policy_op */
	uint32_t type;			/* enum lnx_policy_type */
	uint32_t size;			/* bytes of one record */
	uint32_t count;			/* records */
	/* SHOW: this many of the selected rules are left out.  Reply to a refusal:
	 * index of the record that it is about. */
	uint32_t skip;
	/* Reply to SHOW: selected rules, with those that are left out; to DEL: deleted
	 * ones. */
	uint32_t total;
	uint32_t generation;		/* reply: changes with the rules */
	int32_t status;			/* reply: 0 or a negative errno */
	uint32_t room;			/* bytes that the reply may have; 0: as many as
					 * the process has room for */
};

/*
 * One rule.
 *
 * ADD: patterns, priority and index as a user gives them; all of a block are added, or
 * none.
 *
 * DEL: the rule with that id, unless 0; or with that index; or with these patterns, and
 * that priority.  No record: all rules of the type.  All of a block or none.
 *
 * SHOW: a filter, or no record; an id or index that no rule has is refused.  Reply: as
 * many as have room; if some had not, the status is -ENOSPC, and the next request skips
 * those that came.
 */
struct lnx_policy_rule {
	uint32_t id;
	uint32_t index;			/* or LNX_POLICY_UNSET */
	uint32_t priority;		/* 0 is the best; or LNX_POLICY_UNSET */
	uint32_t type;			/* reply: NET, NID, PEER, GATEWAY */
	uint32_t state;			/* reply: enum lnx_policy_state */
	uint32_t rails;			/* reply: its rails that match src */
	uint64_t remote;		/* reply: rails of its peers that match dst */
	uint64_t matched;		/* reply: rails for which it could decide */
	uint64_t decides;		/* reply: rails that it decides for */
	/* With NUL; empty: not given. */
	char src[LNX_POLICY_TEXT];
	char dst[LNX_POLICY_TEXT];
	char rte[LNX_POLICY_TEXT];
};

enum lnx_policy_state {
	LNX_POLICY_IN_USE = 0,
	LNX_POLICY_SHADOWED = 1,	/* rules before it decide for all it matches */
	LNX_POLICY_WAITING = 2,		/* it matches nothing yet */
	LNX_POLICY_NO_ROUTING = 3,	/* it waits until routing is used */
	LNX_POLICY_APART = 4,		/* a pair without effect: no two of its rails are of one
					 * net */
};

struct lnx_policy_id {
	uint32_t id;
	uint32_t index;
};

/* ---- calls ---- */

/*
 * Send a request of len bytes to the process, and write its reply, at most size bytes.
 * Returns the length of the reply, or a negative errno.
 */
typedef ssize_t (*lnx_policy_call)(void *arg, const void *request, size_t len,
				   void *reply, size_t size);

struct lnx_policy;

/*
 * For a process on this host, found as lnxctl(8) finds it: requests go through its state
 * segment.  eid: the id of its endpoint, which "lnxctl info" shows; 0: the only one that it
 * has.  wait_ms: how long it may take until the process takes a request, and then until it
 * answers; 0: 1000.  It does so while it makes progress.  One thread at a time uses the
 * object.
 *
 *	-EINVAL		pid is none
 *	-ESRCH		it has ended, has no lnx endpoint, or is of another user
 *	-ENOENT		it has no such endpoint
 *	-ENOTUNIQ	it has several, and eid is 0
 *	-EPERM		its segment is not as it should be
 *	-ENOMEM
 *
 * Later calls then also return
 *
 *	-ETIMEDOUT	the process makes no progress: nothing was changed
 *	-ETIME		it took the request, and did not answer in time
 *	-ESRCH		it has ended
 *	-EACCES		this process may not write to its segment
 *	-EBUSY		others keep asking it
 */
LNX_POLICY_API int lnx_policy_open_process(pid_t pid, uint64_t eid, unsigned wait_ms,
					   struct lnx_policy **policy);
/* For requests that go another way.  NULL: no memory.  One thread at a time uses it. */
LNX_POLICY_API struct lnx_policy *lnx_policy_open(lnx_policy_call call, void *arg);
/* policy may be NULL. */
LNX_POLICY_API void lnx_policy_close(struct lnx_policy *policy);

/* A sentence about the last call that failed; valid until the next call.  policy may be
 * NULL, as after an open that failed. */
LNX_POLICY_API const char *lnx_policy_error(const struct lnx_policy *policy);

/* Whose net or rail a rule is about. */
enum lnx_policy_end {
	LNX_POLICY_SRC,			/* of the process itself */
	LNX_POLICY_DST,			/* of its peers */
};

/*
 * Add a rule behind the others, and give its id (id may be NULL).  If there is one for
 * the same net, NID or pair, its priority is changed and it keeps its id.  Nets and
 * NIDs are patterns.  All calls return 0 or a negative errno:
 *
 *	-EINVAL		something is wrong with net, nid, src, dst or priority
 *	-EALREADY	there is the same rule already
 *	-ENOENT		there is no such rule
 *	-ENOSPC		there are as many rules as there can be
 *	-E2BIG		more at a time than a request has room for; 10 always have room
 *	-EPROTO		the reply is malformed
 *
 * and what `call` returned.
 */
LNX_POLICY_API int lnx_policy_add_net(struct lnx_policy *policy,
				      enum lnx_policy_end end, const char *net,
				      uint32_t priority, uint32_t *id);
LNX_POLICY_API int lnx_policy_add_nid(struct lnx_policy *policy,
				      enum lnx_policy_end end, const char *nid,
				      uint32_t priority, uint32_t *id);
/* A pair has no priority: it must be LNX_POLICY_UNSET. */
LNX_POLICY_API int lnx_policy_add_peer(struct lnx_policy *policy, const char *src,
				       const char *dst, uint32_t priority,
				       uint32_t *id);

/* Delete the rule with that id, which must be of the kind; or if id is 0, the rule for
 * just that net, NID or pair. */
LNX_POLICY_API int lnx_policy_del_net(struct lnx_policy *policy,
				      enum lnx_policy_end end, const char *net,
				      uint32_t id);
LNX_POLICY_API int lnx_policy_del_nid(struct lnx_policy *policy,
				      enum lnx_policy_end end, const char *nid,
				      uint32_t id);
LNX_POLICY_API int lnx_policy_del_peer(struct lnx_policy *policy, const char *src,
				       const char *dst, uint32_t id);

/*
 * The rules of one kind, in their order: *rules is an array for free(), of *n.  A
 * pattern that is not NULL selects rules with an equal one; a single NID also those
 * whose pattern has it.  Without it, end does not count.
 */
LNX_POLICY_API int lnx_policy_show_net(struct lnx_policy *policy,
				       enum lnx_policy_end end, const char *net,
				       struct lnx_policy_rule **rules, size_t *n);
LNX_POLICY_API int lnx_policy_show_nid(struct lnx_policy *policy,
				       enum lnx_policy_end end, const char *nid,
				       struct lnx_policy_rule **rules, size_t *n);
LNX_POLICY_API int lnx_policy_show_peer(struct lnx_policy *policy, const char *src,
					const char *dst,
					struct lnx_policy_rule **rules, size_t *n);

/*
 * The same for rules of any kind, as the command-line tool makes them: of rule, an
 * element that is not used is 0, the empty text or LNX_POLICY_UNSET.
 */
LNX_POLICY_API int lnx_policy_add(struct lnx_policy *policy,
				  const struct lnx_policy_rule *rule, size_t n,
				  struct lnx_policy_id *id);
/* n 0: all rules.  *deleted may be NULL. */
LNX_POLICY_API int lnx_policy_del(struct lnx_policy *policy,
				  const struct lnx_policy_rule *rule, size_t n,
				  uint32_t *deleted);
/* filter may be NULL. */
LNX_POLICY_API int lnx_policy_show(struct lnx_policy *policy,
				   const struct lnx_policy_rule *filter,
				   struct lnx_policy_rule **rules, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
