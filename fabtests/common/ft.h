/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What all test and benchmark programs here share: options, a job of ranks (one
 * server and clients that name it, or --fork for all of them on this machine),
 * the libfabric objects of a rank, and operations whose completions are
 * accounted for one by one.
 *
 * Nothing here depends on a provider's name, except that loopback is used when
 * no network is given.  The same program runs over lnx and over the providers
 * that lnx links, so that their behaviour can be compared.
 */
#ifndef FT_H
#define FT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "oob.h"
#include "pattern.h"

#define FT_API		FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#define FT_MR_BASIC	(1 << 0)	/* libfabric's own name warns */
#define FT_NAME_MAX	256		/* bytes of an endpoint's address */
#define FT_WHY_MAX	240
#define FT_MAX_EXTRA	16
#define FT_GUARD_S	180		/* of one case, unless FT_GUARD_S is set */
#define FT_CAPS		(FI_MSG | FI_TAGGED | FI_SOURCE | \
			 FI_DIRECTED_RECV | FI_MULTI_RECV)

enum ft_result { FT_PASS, FT_SKIP, FT_FAIL };

struct ft_opts {
	const char *prov, *domain, *fabric, *local;
	const char *server;		/* NULL: this is the server */
	int port;
	bool fork, list;
	/* From here on the server's values are used by all ranks. */
	struct ft_run {
		int nranks;
		bool verify, quick, huge, one_core;
		bool directed;		/* no receives from any source */
		bool mr_basic;		/* FI_MR_BASIC, whatever cases can do */
		uint64_t size;		/* UINT64_MAX: all */
		uint64_t iters;		/* 0: the program's own choice */
		uint64_t warmup;
		uint64_t repeats;
		uint64_t arg;		/* -N, a number for the program */
		uint64_t seed;
		int first;		/* first case to run */
		char only[64];		/* glob over case names */
		char mode[32];		/* -m, a word for the program */
		double seconds;		/* how long to run; 0: by rounds */
		double timeout_s;	/* of one wait */
		unsigned guard_s;	/* of one case */
	} run;
};

struct ft;
struct ft_objs;

/* How a case wants its objects; zero means the default. */
struct ft_cfg {
	uint64_t caps;			/* FT_CAPS */
	uint64_t tx_op_flags;
	enum fi_cq_format format;	/* FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;		/* FI_WAIT_NONE */
	enum fi_threading threading;	/* FI_THREAD_DOMAIN */
	enum fi_av_type av_type;	/* FI_AV_TABLE */
	bool selective;			/* bind with FI_SELECTIVE_COMPLETION */
	bool no_cq;			/* bind none: counters alone */
	bool alone;			/* opens what it needs by itself */
	bool automatic;			/* FI_PROGRESS_AUTO of data */
	uint64_t order;			/* msg_order; FI_ORDER_SAS */
	int mr_mode;			/* what the case can live with; 0 */
	/* Called before the endpoint is enabled.  What it opens goes into
	 * o->extra.  0 or -FI_E*. */
	int (*bind)(struct ft *ft, struct ft_objs *o);
};

struct ft_objs {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid *extra[FT_MAX_EXTRA];	/* closed after the endpoint */
	int nextra;
	size_t name_len;
	unsigned char name[FT_NAME_MAX];
};

/*
 * One operation.  Its address is the context given to libfabric.  A completion
 * is matched to it only if its context is an element of the table: a wrong
 * context from a provider is reported, not dereferenced.
 */
struct ft_op {
	struct fi_context2 ctx;		/* first: the provider may write it */
	bool posted;
	unsigned done;			/* completions seen */
	unsigned want;			/* at most this many; 0: any number */
	int err;			/* positive FI_E* of an error entry */
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	struct fi_cq_err_entry ee;	/* valid when err */
	void (*hook)(struct ft *ft, struct ft_op *op);
	void *arg;			/* for the hook */
};

#define FT_MAX_OPS	(1 << 18)

/* A completion of a peer's operation on our memory. */
struct ft_event {
	uint64_t flags, data;
	size_t len;
	fi_addr_t src;
};

#define FT_MAX_EVENTS	4096

struct ft {
	struct ft_opts opts;
	struct ft_run *run;		/* &opts.run */
	struct oob oob;
	int rank, n;
	struct ft_cfg cfg;		/* what o was opened with */
	struct ft_objs o;
	bool open;
	bool abandoned;			/* another rank left the case */
	fi_addr_t addr[OOB_MAX_RANKS];	/* of every rank, ours too */

	struct ft_op *ops;
	size_t nops;
	unsigned tx_seen, rx_seen;	/* completions in all */
	struct ft_op *kept;		/* in no array: ft_ops_drop leaves it alone */
	char unexpected[FT_WHY_MAX];	/* first unexpected completion */
	unsigned nevents;		/* in all; the last ones are kept */
	struct ft_event events[FT_MAX_EVENTS];	/* [n % FT_MAX_EVENTS] */
	bool spoiled;			/* close the objects after this case */
	int stale_errno;		/* errno before each look at a queue; 0: as it is */
	/* Called at intervals while an operation waits; may be NULL. */
	void (*stuck)(struct ft *ft);
	/* An error entry without a context, of an inject: true if it is expected.  NULL:
	 * never.  It must not make progress. */
	bool (*inject_failed)(struct ft *ft, const struct fi_cq_err_entry *ee);

	char why[FT_WHY_MAX];		/* of a skip or a failure */
	char todo[FT_WHY_MAX];		/* known deviation of a bare provider */
};

/* ---- start and end ---- */

/* Parse options, fork or join the job.  Exits with the usage text on bad
 * options.  title is one line of that text; nranks is the number of ranks that
 * --fork starts by default. */
void ft_init(struct ft *ft, int argc, char **argv, const char *title,
	     int nranks);
void ft_fini(struct ft *ft);
/* Print why and leave with status 1. */
void ft_die(struct ft *ft, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Used by ft_init when --fork is given; see case.c for its supervisor. */
void ft_parse(struct ft *ft, int argc, char **argv, const char *title,
	      int nranks);
void ft_join(struct ft *ft, int lfd, int rank_hint);

/* ---- objects ---- */

/* Hints for cfg; the caller frees them with fi_freeinfo. */
struct fi_info *ft_hints(struct ft *ft, const struct ft_cfg *cfg);
/* fi_getinfo with the job's options; 0 or -FI_E*. */
int ft_getinfo(struct ft *ft, const struct ft_cfg *cfg, struct fi_info **info);
/* Everything from fi_getinfo to an enabled endpoint and its name. On error what
 * was opened is closed again and ft->why says which call failed. */
int ft_objs_open(struct ft *ft, const struct ft_cfg *cfg, struct ft_objs *o);
int ft_objs_close(struct ft *ft, struct ft_objs *o);
/* Same for ft->o, plus exchange and insertion of all ranks' addresses. */
int ft_open(struct ft *ft, const struct ft_cfg *cfg);
int ft_close(struct ft *ft);
/* Exchange the name in o between all ranks and insert all of them into o->av. */
int ft_exchange(struct ft *ft, struct ft_objs *o, fi_addr_t *addr);

/*
 * The address of the n-th peer that does not exist, made from our own: sockets
 * get another port and loopback address, lnx gets other identities (local: the
 * peer claims to be on this host).  0, or -FI_ENOSYS where this is not
 * possible.
 */
int ft_fake_name(struct ft *ft, uint64_t n, bool local, unsigned char *at);

/* For programs that do what lines on standard input say: answer "ok" and our own address in
 * hex; insert that of another one, and answer with its number. */
void ft_say_name(const struct ft_objs *o);
void ft_know(const struct ft_objs *o, const char *hex);

/* Does this job run over the provider itself, not through lnx? */
bool ft_is_bare(const struct ft *ft, const char *prov);
/* Does it run over lnx with shared memory in its link? */
bool ft_lnx_over_shm(const struct ft *ft);
/* With a sanitizer, whose allocator keeps what is freed, and adds to what is not? */
bool ft_sanitized(void);
/* Are times to be judged?  LNX_TEST_TIMES=1 says so, where nothing else runs; beside other
 * tests they are only printed. */
bool ft_judges_times(void);

/* ---- operations ---- */

enum ft_send_call { FT_SEND, FT_SENDV, FT_SENDMSG, FT_INJECT, FT_SENDDATA,
		    FT_INJECTDATA, FT_SEND_CALLS };
enum ft_recv_call { FT_RECV, FT_RECVV, FT_RECVMSG, FT_RECV_CALLS };
extern const char *const ft_send_names[], *const ft_recv_names[];

struct ft_msg {				/* arguments of any call */
	bool tagged;
	int call;			/* enum ft_send_call or ft_recv_call */
	fi_addr_t addr;
	void *buf;
	size_t len;
	uint64_t tag, ignore, data;
	uint64_t flags;			/* of sendmsg and recvmsg */
};

/* Any source, where only rank sends; with --directed, rank itself. */
fi_addr_t ft_any(const struct ft *ft, int rank);

struct ft_op *ft_op_new(struct ft *ft);
void ft_op_reset(struct ft_op *op);	/* to use it again */
void ft_ops_drop(struct ft *ft);	/* forget all of them */

/*
 * Start an operation.  While the provider answers -FI_EAGAIN, make progress and
 * try again, up to the time limit.  0 or -FI_E*.  Injects use no context: op
 * may be NULL.
 */
int ft_send(struct ft *ft, struct ft_op *op, const struct ft_msg *m);
int ft_recv(struct ft *ft, struct ft_op *op, const struct ft_msg *m);
/* One attempt. */
ssize_t ft_try_send(struct fid_ep *ep, void *ctx, const struct ft_msg *m);
ssize_t ft_try_recv(struct fid_ep *ep, void *ctx, const struct ft_msg *m);

/* The loop of both: attempt(arg) until it returns other than -FI_EAGAIN. */
int ft_start(struct ft *ft, struct ft_op *op,
	     ssize_t (*attempt)(struct fid_ep *ep, void *ctx, const void *arg),
	     const void *arg);

/* Read completions once.  Number of entries, or -FI_E* if the queue fails. */
int ft_progress(struct ft *ft);
/* Until op->done (or an error entry for it): 0, or -FI_ETIMEDOUT. */
int ft_wait(struct ft *ft, struct ft_op *op);
int ft_wait_for(struct ft *ft, struct ft_op *op, double seconds);
/* Until n remote events have been seen in total. */
int ft_wait_events(struct ft *ft, unsigned n);
/* Make progress for about this long. */
void ft_linger(struct ft *ft, double seconds);
/* 0, or -ECANCELED when a rank does not come because it left the case. */
int ft_barrier(struct ft *ft);

double ft_now(void);			/* seconds, monotonic */
void ft_guard(struct ft *ft, const char *what);	/* re-arm the hang guard */
void ft_guard_s(struct ft *ft, const char *what, unsigned seconds);

/* ---- results ---- */

int ft_fail(struct ft *ft, const char *fmt, ...)	/* FT_FAIL */
	__attribute__((format(printf, 2, 3)));
int ft_skip(struct ft *ft, const char *fmt, ...)	/* FT_SKIP */
	__attribute__((format(printf, 2, 3)));
/* A bare provider is known to fail this case: then a failure does not count.
 * prov NULL means every bare provider. */
void ft_known(struct ft *ft, const char *prov, const char *reason);

#define FT_STR2(x)	#x
#define FT_STR(x)	FT_STR2(x)
#define FT_AT		__FILE_NAME__ ":" FT_STR(__LINE__) ": "
#ifndef __FILE_NAME__
#define __FILE_NAME__	__FILE__
#endif

/* Leave the case with FT_FAIL unless cond holds. */
#define FT_CHECK(ft, cond, ...) do {					\
	if (!(cond))							\
		return ft_fail(ft, FT_AT __VA_ARGS__);			\
} while (0)

/* Leave the case with FT_FAIL if a libfabric call gives an error. */
#define FT_CALL(ft, call) do {						\
	ssize_t ft_ret_ = (call);					\
	if (ft_ret_ < 0)						\
		return ft_fail(ft, FT_AT "%s: %s (%zd)", #call,		\
			       fi_strerror((int)-ft_ret_), ft_ret_);	\
} while (0)

/* Leave the case with the result of a step, unless that is FT_PASS. */
#define FT_TRY(step) do {						\
	int ft_step_ = (step);						\
	if (ft_step_ != FT_PASS)					\
		return ft_step_;					\
} while (0)

/* Wait for an operation that must succeed. */
#define FT_DONE(ft, op) FT_TRY(ft_must_complete(ft, op, FT_AT))
int ft_must_complete(struct ft *ft, struct ft_op *op, const char *at);

/* ---- cases ---- */

struct ft_case {
	char name[64];
	int (*fn)(struct ft *ft, const struct ft_case *c);
	int (*body)(struct ft *ft, const struct ft_case *c);	/* for fn */
	struct ft_cfg cfg;
	int ranks;			/* needed; 0: two */
	uint64_t a, b, c;		/* the case's own parameters */
	bool slow;			/* left out by --quick */
	bool huge;			/* only with --huge */
	unsigned guard_s;		/* instead of the run's */
};

/* main() of a program of cases: TAP on stdout of rank 0, a summary line at the
 * end.  0: all passed, 1: failures, 77: the provider is not there. */
int ft_main(int argc, char **argv, const char *title,
	    const struct ft_case *cases, int ncases);

#endif
