/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The class (policy/class.h) of a core provider's error.  errors.def is the only table.
 * Does no I/O: numbers in, a number out.
 *
 * Callers that know better do not ask: LNX_CLASS_LOCAL_ABORTED for what fails because
 * we close or reset a rail, LNX_CLASS_RESPONSE_TIMEOUT for what was sent and not
 * answered.
 */
#ifndef LNX_ERRCLASS_H
#define LNX_ERRCLASS_H

#include <stddef.h>

#include "policy/class.h"

/* The operation that failed. */
enum lnx_while {
	LNX_WHILE_CONNECT = 1,		/* refused while there is no connection */
	LNX_WHILE_POST = 2,		/* refused on a path that was up */
	LNX_WHILE_SEND = 4,		/* a frame's completion */
	LNX_WHILE_READ = 8,		/* completion of a piece of a large transfer */
	LNX_WHILE_WRITE = 16,
	LNX_WHILE_ANY = 31,
};

/* Sets of core providers, as bits 1 << enum lnx_prov_id. */
#define LNX_FROM_ANY	0xffffffffu
#define LNX_FROM_TCP	(1u << LNX_PROV_TCP | 1u << LNX_PROV_TCP_RXM)
#define LNX_FROM_VERBS	(1u << LNX_PROV_VERBS_RXM)
#define LNX_FROM_SHM	(1u << LNX_PROV_SHM)

/* libfabric's numbers beyond errno; these files do not include libfabric. */
#define LNX_ETRUNC	265
#define LNX_ENOKEY	266

struct lnx_error_row {
	const char *from, *during;	/* "tcp", "send", "any" */
	const char *err_name;		/* "ECONNRESET", "any" */
	const char *why;		/* "" where the name is enough */
	unsigned provs, ops;		/* bits */
	int err;			/* 0: any */
	int number;			/* 0: any */
	enum lnx_health_class class;
};

extern const struct lnx_error_row lnx_error_rows[];
extern const size_t lnx_nerrors;

/*
 * The class of an error.  prov: enum lnx_prov_id of the rail; op: one of enum
 * lnx_while; err: of the completion (fi_cq_err_entry.err), or returned by the core's
 * call, of either sign; number: its prov_errno, of either sign, 0 for a call.  EAGAIN
 * is an error when the deadline has passed.  LNX_CLASS_OK: the message itself is the
 * cause, or err is 0.
 */
enum lnx_health_class lnx_errclass(unsigned prov, enum lnx_while op, int err,
				   int number);

#endif
