/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A scripted core provider, and an lnx endpoint on it: the data path without a
 * network.  lnx opens its rails through fi_fabric as always; here fi_fabric is ours.
 * The test does the rest: it scripts the core's answers, checks the frames that left,
 * makes frames arrive, and moves the clock.
 *
 * Programs link with -Wl,--wrap=clock_gettime for the clock.
 */
#ifndef LNX_FAKE_CORE_H
#define LNX_FAKE_CORE_H

#include "obj/ep.h"
#include "view.h"
#include "wire/hdr.h"
#include "wire/route.h"

#define FAKE_RAILS	6
#define FAKE_ALWAYS	UINT32_MAX	/* as a count: for ever */

#define FAKE_GATEWAYS	4u

/* A frame or message that left on a rail, in the order of sending. */
struct fake_sent {
	struct fake_sent *next;
	struct lnx_hdr h;		/* of a framed rail */
	fi_addr_t dest;
	bool inject;
	const char *call;		/* the fi_* call that sent it */
	uint64_t tag, data, flags;	/* of a direct rail */
	void *context;
	size_t len;
	_Alignas(64) uint8_t bytes[];
};

struct fake_op;
struct fake_arrival;

struct fake_core {
	struct fid_fabric fabric;
	struct fid_domain domain;
	struct fid_av av;
	struct fid_cq cq;
	struct fid_ep ep;
	struct fid_ep srx;
	enum lnx_rail_kind kind;
	unsigned network;		/* third byte of its IP address */

	/* The script: so many of the next calls return -FI_EAGAIN (read_again
	 * is for writes of remote memory, too) ... */
	uint32_t send_again, inject_again, recv_again, read_again, latency_again;
	uint32_t ask_again;		/* of questions to gateways */
	unsigned deaf;			/* and to these places in the AV, as bits, always */
	int refuse_err;			/* with that instead, if not 0; */
	uint64_t refuse_ns;		/* sends and injects: after so long */
	uint32_t mr_fails;		/* ... or -FI_ENOMEM, */
	uint32_t mr_taken;		/* ... or that such a key exists, */
	uint32_t send_fails, read_fails; /* are accepted and fail later. */
	uint32_t keep_fails;		/* direct: lost for want of memory */
	uint32_t ep_fails, enable_fails, av_fails; /* opening, inserting */
	bool flush;			/* closing reports the operations that it ends */
	bool hold_sends, hold_reads;	/* until fake_finish() */
	/* peer, direct: polls inside sends and registrations, as some cores do */
	bool poll_in_send, poll_in_mr;
	bool may_truncate;		/* peer: what arrives, if its buffer is too short */
	unsigned late;			/* plain: so many polls do not see what arrived */
	unsigned stall;			/* plain: so many messages begin, which do not end: each
					 * keeps the buffer that was posted first */
	void (*in_send)(void);		/* sends: called before the script above */
	void (*in_inject)(void);	/* framed, all but PROBE and PONG: called before
					 * the script above */

	/* What was counted. */
	unsigned nsend, ninject, nrecv, nread, nwrite, npolls, nstart;
	unsigned nrefused;		/* sends and injects */
	unsigned nrefused_reads;
	unsigned nrefused_latency;	/* questions about latency */
	size_t buffer_max;		/* peer: the longest buffer that it was given */
	unsigned nlatency;		/* PROBEs about latency, which arrive nowhere; */
	struct lnx_hdr latency;		/* the last one, */
#define FAKE_LATENCIES	8u
	struct lnx_hdr latencies[FAKE_LATENCIES]; /* and the last ones, by number */
	/* To gateways: frames in envelopes, which count as sent frames without those; the
	 * last envelope; and what is for the gateway itself. */
	unsigned nrouted, nhellos, nasks;
	struct lnx_route_env env;
	struct lnx_gw_hello hello;
	uint32_t nonce[FAKE_GATEWAYS];	/* of the last hello to each, by its place in the AV */
	struct lnx_gw_ask ask;
	unsigned nmr, nmr_open, nposted, nstalled, nav;
	uint64_t mr_key;		/* the key that was requested last */
	unsigned nopen;			/* endpoints; each has another port, */
	unsigned port;			/* unless one is requested */
	unsigned nav_in;		/* addresses in the AV */
#define FAKE_PORT	4000
#define FAKE_AV_NAMES	1024u		/* as many addresses can be looked up */
#define FAKE_NAME_BYTES	16u
	uint8_t av_name[FAKE_AV_NAMES][FAKE_NAME_BYTES];
	bool av_gone[FAKE_AV_NAMES];
	bool enabled;

	/* Internal. */
	bool srx_bound;
	struct fid_peer_cq *peer_cq;
	struct fid_peer_srx *peer_srx;
	struct fake_sent *sent, **sent_end;
	struct fake_op *out, **out_end; /* sends and reads that are not complete */
	struct fake_op *done, **done_end; /* completions that are not read */
	struct fake_op *posted, **posted_end;
	struct fake_op *stalled, **stalled_end;
	struct fake_arrival *in, **in_end;
	struct fake_arrival *kept;	/* unexpected, direct */
	struct { uint64_t key, base; uint8_t *mem; size_t len; bool rw; }
		region[16];
	unsigned nregion;
};

struct fake_opt {
	unsigned nrail;			/* 0 means one, plain */
	enum lnx_rail_kind kind[FAKE_RAILS];
	uint64_t caps;			/* added to FI_MSG | FI_TAGGED */
	uint64_t tx_op_flags;
	uint64_t tx_bind, rx_bind;	/* FI_SELECTIVE_COMPLETION */
	size_t tx_size;
	size_t inject_size;		/* of framed rails; 0: none */
	bool mr_basic;			/* FI_MR_BASIC */
};

/* An lnx endpoint with all objects that it needs. */
struct fake {
	struct lnx_fabric fabric;
	struct lnx_domain domain;
	struct lnx_link_rails rails;
	struct fi_info *info;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct lnx_ep *lnx;		/* ep, seen from inside */
	struct fake_core *core[FAKE_RAILS];
};

/* A peer, which the test plays. */
struct fake_peer {
	uint64_t eid;
	uint64_t sid;			/* of its session; eid, unless it is set */
	bool must_greet;		/* its session begins with its hello only */
	struct lnx_addr where;
	uint8_t blob[LNX_ADDR_BYTES];
	fi_addr_t addr;			/* in the AV */
	uint64_t theirs;		/* id of our session, from our hello; 0: none came */
	uint32_t seq;			/* of the next frame it sends */
	uint32_t got;			/* the next number that it expects: its ack */
};

/* lnx_global_config() of the program: the defaults, which tests change before fake_open. */
extern struct lnx_conf fake_conf;
/* Each rail is in a network of its own, with addresses 127.0.RAIL.1 and a group.  Set it
 * before fake_open. */
extern bool fake_separate;
extern bool fake_one_group;	/* but only one group */
/* lnx_global_config_file() and lnx_global_config_error(); NULL. */
extern const struct lnx_config *fake_config;
extern const char *fake_config_error;
extern uint64_t fake_now_ns;
/* CPU time from one look at that clock to the next. */
extern uint64_t fake_cost_ns;
/* Frames of peers come over the gateway with that id; 0: over none. */
extern uint64_t fake_via;
/* lnx_clock_ticks(), which else stands still: no pass comes after a pause. */
extern uint64_t fake_ticks;
/* Bytes of the buffers of a peer rail's core, before fake_open; 0: LNX_FRAME_MAX. */
extern size_t fake_rxm_buffer;
/* Kind of the frame that left last; valid also after a close. */
extern uint8_t fake_last_kind;
/* The core allocates memory: fake_memory.c must not refuse it. */
extern volatile bool fake_allocating;

/* Open and enable; opt may be NULL.  Ends the test if that fails. */
void fake_open(struct fake *f, const struct fake_opt *opt);
/* Close everything.  With the address sanitizer it also checks for leaks.  A
 * test that has closed ep sets it to NULL. */
void fake_close(struct fake *f);
/* Close without the check for leaks, which is slow. */
void fake_close_quick(struct fake *f);

/* One pass of progress over everything; n passes; n passes after moving the clock. */
void fake_pass(struct fake *f);
void fake_passes(struct fake *f, unsigned n);
void fake_after_ms(struct fake *f, uint64_t ms);

/* A peer with eid, which also gives its port, in the AV or not. */
void fake_peer_init(struct fake *f, struct fake_peer *p, uint64_t eid);
void fake_peer_insert(struct fake *f, struct fake_peer *p);

/* Bytes arrive on a rail; the next pass reads them. */
void fake_arrive(struct fake_core *core, const void *bytes, size_t len);
/* The message that stalled first ends with these bytes. */
void fake_stall_end(struct fake_core *core, const void *bytes, size_t len);
/* A frame from p: src, dst and ack are filled in, seq is h's. */
void fake_frame(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
		const void *payload, size_t len);
/* The same, arriving on that rail over p's path. */
void fake_frame_on(struct fake *f, struct fake_peer *p, unsigned rail,
		   struct lnx_hdr h, const void *payload, size_t len);
/* fake_frame with p's next number. */
void fake_next(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
	       const void *payload, size_t len);
void fake_hello(struct fake *f, struct fake_peer *p);
/* p says hello, gets ours, which acknowledges its own, and acknowledges that. */
void fake_meet(struct fake *f, struct fake_peer *p);
void fake_tag(struct fake *f, struct fake_peer *p, uint64_t tag,
	      const void *buf, size_t len);
void fake_msg(struct fake *f, struct fake_peer *p, const void *buf, size_t len);
void fake_ack(struct fake *f, struct fake_peer *p);
/* Answers the last PROBE about latency, which also acknowledges; there was one. */
void fake_answer(struct fake *f, struct fake_peer *p);
/* A large message of nseg pieces, together all of mem in order, key 100 + piece. */
void fake_rts(struct fake *f, struct fake_peer *p, bool tagged, uint64_t tag,
	      uint64_t op, const uint8_t *mem, const uint64_t *seg,
	      unsigned nseg);
/* A message on a direct rail; src is the sender's core address. */
void fake_direct(struct fake_core *core, bool tagged, fi_addr_t src,
		 uint64_t tag, const uint64_t *data, const void *buf,
		 size_t len);

/* What left first and was not taken yet, or NULL.  The caller frees it. */
struct fake_sent *fake_take(struct fake_core *core);
/* The next frame that left, which the peer gets, to be freed; NULL: there is none. */
struct fake_sent *fake_receive(struct fake *f, struct fake_peer *p);
/* The same at peer p, which records it.  Ends the test when nothing left, or a
 * frame of another kind. */
struct fake_sent *fake_expect(struct fake *f, struct fake_peer *p,
			      uint8_t kind);
/* fake_expect, for p to record the frame only. */
void fake_expect_drop(struct fake *f, struct fake_peer *p, uint8_t kind);
void fake_expect_none(struct fake *f);
/* Take and discard everything that left; p received it in order. */
unsigned fake_drop_all(struct fake *f, struct fake_peer *p);

/* Operations that are held: their number; and completing the i-th (0 is the
 * oldest), with an error if err is not 0. */
unsigned fake_held(const struct fake_core *core);
void fake_finish(struct fake_core *core, unsigned i, int err);
void fake_finish_all(struct fake_core *core);
/* Memory that fi_read, and with _rw also fi_write, finds under key at base. */
void fake_region(struct fake_core *core, uint64_t key, uint64_t base,
		 const void *mem, size_t len);
void fake_region_rw(struct fake_core *core, uint64_t key, uint64_t base,
		    void *mem, size_t len);

/* The application's CQ, after a pass.  One success with that context: */
struct fi_cq_tagged_entry fake_comp(struct fake *f, void *context);
/* ... one error, ... */
struct fi_cq_err_entry fake_err(struct fake *f, void *context, int err);
/* ... nothing at all. */
void fake_quiet(struct fake *f);

/* The position in the test, for the messages of functions that end it. */
extern const char *fake_file;
extern int fake_line;
#ifndef LNX_FAKE_INSIDE_H
#define FAKE_HERE	fake_file = __FILE__, fake_line = __LINE__
#define fake_close(f)		(FAKE_HERE, fake_close(f))
#define fake_expect(f, p, k)	(FAKE_HERE, fake_expect(f, p, k))
#define fake_expect_drop(f, p, k) (FAKE_HERE, fake_expect_drop(f, p, k))
#define fake_expect_none(f)	(FAKE_HERE, fake_expect_none(f))
#define fake_finish(c, i, err)	(FAKE_HERE, fake_finish(c, i, err))
#define fake_comp(f, context)	(FAKE_HERE, fake_comp(f, context))
#define fake_err(f, context, err) (FAKE_HERE, fake_err(f, context, err))
#define fake_quiet(f)		(FAKE_HERE, fake_quiet(f))
#endif

#endif
