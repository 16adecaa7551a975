/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors: the arguments of a call of the application, in any of its forms.  A
 * function of the API only fills one; with `call` a constant it compiles to straight
 * code.  A direct or native rail makes the same call below (rail/direct.h).
 */
#ifndef LNX_CALL_H
#define LNX_CALL_H

#include "fi.h"

/* ---- messages ---- */

/* The fi_* call that the application used. */
enum lnx_call {
	LNX_SEND, LNX_SENDV, LNX_SENDMSG, LNX_INJECT, LNX_SENDDATA,
	LNX_INJECTDATA,
	LNX_SHM_CTRL,			/* ours: msg/large.c; data: its op */
	LNX_RMA_COPY,			/* ours: rma/copy.c; context: what it copies */
	LNX_TSEND, LNX_TSENDV, LNX_TSENDMSG, LNX_TINJECT, LNX_TSENDDATA,
	LNX_TINJECTDATA,
};

#define lnx_call_tagged(call)	((call) >= LNX_TSEND)
#define lnx_call_inject(call) \
	((call) == LNX_INJECT || (call) == LNX_INJECTDATA || \
	 (call) == LNX_SHM_CTRL || \
	 (call) == LNX_TINJECT || (call) == LNX_TINJECTDATA)
#define lnx_call_data(call) \
	((call) == LNX_SENDDATA || (call) == LNX_INJECTDATA || \
	 (call) == LNX_TSENDDATA || (call) == LNX_TINJECTDATA)

/*
 * Calls with one buffer and the endpoint's own flags.  The descriptors of other calls
 * have more than lnx_rel_short takes (rel/rel.h).
 */
#define lnx_call_single(call) \
	(lnx_call_inject(call) || (call) == LNX_SEND || \
	 (call) == LNX_SENDDATA || (call) == LNX_TSEND || \
	 (call) == LNX_TSENDDATA)

/* The arguments of an fi_send-like call. */
struct lnx_tx {
	enum lnx_call call;
	const struct iovec *iov;
	size_t niov;
	void **desc;
	fi_addr_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;			/* as the core call wants them */
	uint64_t op_flags;		/* with the endpoint's defaults added */
	void *context;
};

/* The arguments of an fi_recv-like call. */
struct lnx_recv {
	const struct iovec *iov;
	void **desc;
	size_t niov;
	fi_addr_t src;
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint64_t flags;
	bool tagged;
};

/* ---- remote memory ---- */

enum lnx_rma_call {
	LNX_READ, LNX_READV, LNX_READMSG,
	LNX_WRITE, LNX_WRITEV, LNX_WRITEMSG, LNX_INJECT_WRITE,
	LNX_WRITEDATA, LNX_INJECT_WRITEDATA,
};

#define lnx_rma_read(call)	((call) <= LNX_READMSG)
#define lnx_rma_inject(call) \
	((call) == LNX_INJECT_WRITE || (call) == LNX_INJECT_WRITEDATA)
#define lnx_rma_data(call) \
	((call) == LNX_WRITEDATA || (call) == LNX_INJECT_WRITEDATA)

/* The arguments of an fi_read- or fi_write-like call. */
struct lnx_rma {
	enum lnx_rma_call call;
	const struct iovec *iov;
	size_t niov;
	const struct fi_rma_iov *rma;
	size_t nrma;
	fi_addr_t dest;
	uint64_t data;
	uint64_t flags;			/* as the core call wants them */
	uint64_t op_flags;		/* with the endpoint's defaults added */
	void *context;
};

/* ---- atomics ---- */

enum lnx_amo_call {
	LNX_ATOMIC, LNX_ATOMICV, LNX_ATOMICMSG, LNX_INJECT_ATOMIC,
	LNX_FETCH, LNX_FETCHV, LNX_FETCHMSG,
	LNX_COMPARE, LNX_COMPAREV, LNX_COMPAREMSG,
};

#define lnx_amo_inject(call)	((call) == LNX_INJECT_ATOMIC)

/* The arguments of an fi_atomic-like call. */
struct lnx_amo_tx {
	enum lnx_amo_call call;
	enum fi_op op;
	enum fi_datatype type;
	const struct fi_ioc *iov;
	size_t niov;
	const struct fi_ioc *cmp;	/* compare class */
	size_t ncmp;
	struct fi_ioc *res;		/* compare and fetch class */
	size_t nres;
	const struct fi_rma_ioc *rma;
	size_t nrma;
	fi_addr_t dest;
	uint64_t data;
	uint64_t flags;			/* as the core call wants them */
	uint64_t op_flags;		/* with the endpoint's defaults added */
	void *context;
};

#endif
