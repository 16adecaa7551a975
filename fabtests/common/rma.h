/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory and one-sided operations for test programs: memory that all
 * ranks know of, whatever the provider's rules for keys and addresses are; and
 * one argument block for every form of RMA and atomic call.
 */
#ifndef FT_RMA_H
#define FT_RMA_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "ft.h"

#define FT_RMA_CAPS	(FT_CAPS | FI_RMA)
#define FT_ATOMIC_CAPS	(FT_CAPS | FI_RMA | FI_ATOMIC)
#define FT_MR_ALL	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | \
			 FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
			 FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT)
#define FT_MR_ACCESS	(FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | \
			 FI_WRITE | FI_SEND | FI_RECV)
#define FT_MAX_IOV	8

/* Memory of one rank as the others address it. */
struct ft_target {
	uint64_t base, key, len;
};

struct ft_mr {
	void *buf;
	size_t len;
	struct fid_mr *mr;
	bool bound;			/* to an endpoint, and enabled */
	struct ft_target at[OOB_MAX_RANKS];	/* after ft_mr_share */
};

/* The rules of o for keys and addresses: its mr_mode, with FI_MR_BASIC replaced
 * by the bits it stands for. */
int ft_mr_mode(const struct ft_objs *o);

/* A key that is not in use; no two ranks get the same. */
uint64_t ft_mr_new_key(struct ft *ft);

/*
 * Register with the domain in o and, if its mr_mode asks for that, bind to its
 * endpoint and enable.  0 or -FI_E*; ft->why says what failed.
 */
int ft_mr_open(struct ft *ft, struct ft_objs *o, struct ft_mr *m, void *buf,
	       size_t len, uint64_t access);
int ft_mr_reg(struct ft *ft, struct ft_mr *m, void *buf, size_t len,
	      uint64_t access);		/* in ft->o */
int ft_mr_close(struct ft *ft, struct ft_mr *m);
/* Bind and enable where mr_mode requires it; part of ft_mr_open. */
int ft_mr_ready(struct ft *ft, struct ft_objs *o, struct ft_mr *m);

/* Collective: fill m->at with the registration of every rank. */
int ft_mr_share(struct ft *ft, struct ft_mr *m);

/*
 * Memory of a case: a buffer to work with and one that the other ranks reach,
 * of len bytes each (which must not grow), both registered.  Runs c->body with
 * it and frees it.
 */
struct ft_mem {
	unsigned char *local, *target;
	size_t len;
	struct ft_mr lmr, tmr;
};
extern struct ft_mem ft_mem;
int ft_with_mem(struct ft *ft, const struct ft_case *c, size_t len);

/* The desc argument of a call: NULL where none is needed. */
void *ft_mr_desc(struct ft *ft, const struct ft_mr *m);

/* ---- RMA ---- */

enum ft_rma_call { FT_WRITE, FT_WRITEV, FT_WRITEMSG, FT_INJECT_WRITE,
		   FT_WRITEDATA, FT_INJECT_WRITEDATA, FT_READ, FT_READV,
		   FT_READMSG, FT_RMA_CALLS };
extern const char *const ft_rma_names[];

struct ft_rma {
	int call;
	fi_addr_t addr;
	struct iovec iov[FT_MAX_IOV];
	struct fi_rma_iov rma[FT_MAX_IOV];
	void *desc[FT_MAX_IOV];
	size_t niov, nrma;
	uint64_t data, flags;
};

/*
 * Between buf, a part of local (NULL: not registered), and the memory of rank
 * in remote at offset off.  The vector forms get two pieces where the provider
 * takes two.
 */
void ft_rma_set(struct ft *ft, struct ft_rma *r, int call, void *buf,
		size_t len, const struct ft_mr *local,
		const struct ft_mr *remote, int rank, uint64_t off);
bool ft_rma_is_read(int call);
bool ft_rma_is_inject(int call);
bool ft_rma_has_data(int call);

ssize_t ft_try_rma(struct fid_ep *ep, void *ctx, const struct ft_rma *r);
/* Like ft_send. */
int ft_rma(struct ft *ft, struct ft_op *op, const struct ft_rma *r);
/* Start one that completes, and wait for it.  FT_PASS, or the reason for a failure. */
int ft_rma_now(struct ft *ft, const struct ft_rma *r, const char *at);

/* ---- atomics ---- */

enum ft_atomic_call { FT_ATOMIC, FT_ATOMICV, FT_ATOMICMSG, FT_INJECT_ATOMIC,
		      FT_FETCH, FT_FETCHV, FT_FETCHMSG, FT_COMPARE,
		      FT_COMPAREV, FT_COMPAREMSG, FT_ATOMIC_CALLS };
extern const char *const ft_atomic_names[];

struct ft_atomic {
	int call;
	enum fi_datatype type;
	enum fi_op op;
	fi_addr_t addr;
	struct fi_ioc iov[FT_MAX_IOV], cmp[FT_MAX_IOV], res[FT_MAX_IOV];
	struct fi_rma_ioc rma[FT_MAX_IOV];
	void *desc[FT_MAX_IOV], *cmp_desc[FT_MAX_IOV], *res_desc[FT_MAX_IOV];
	size_t niov, nrma;		/* niov is also that of cmp and res */
	uint64_t flags;
};

/* Three buffers of count elements of size bytes each, all parts of local.  cmp
 * and res may be NULL where the call does not use them. */
void ft_atomic_set(struct ft *ft, struct ft_atomic *a, int call,
		   enum fi_datatype type, enum fi_op op, size_t size,
		   void *buf, void *cmp, void *res, size_t count,
		   const struct ft_mr *local, const struct ft_mr *remote,
		   int rank, uint64_t off);
bool ft_atomic_fetches(int call);
bool ft_atomic_compares(int call);

ssize_t ft_try_atomic(struct fid_ep *ep, void *ctx, const struct ft_atomic *a);
int ft_atomic(struct ft *ft, struct ft_op *op, const struct ft_atomic *a);
int ft_atomic_now(struct ft *ft, const struct ft_atomic *a, const char *at);

/* Make progress until buf has this content, as another rank wrote it. */
int ft_await_pattern(struct ft *ft, const void *buf, size_t len,
		     unsigned sender, uint64_t seq, const char *at);

#endif
