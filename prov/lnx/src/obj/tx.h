/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The descriptor of a send: the arguments of an fi_send-like call, in any of its forms. */
#ifndef LNX_OBJ_TX_H
#define LNX_OBJ_TX_H

#include "fi.h"

/* The fi_* call that the application used; direct rails use the same one below. */
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
 * The arguments of an fi_send-like call, in any of its forms.  An API function only
 * fills it.  With `call` a constant it compiles to straight code.
 */
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

#endif
