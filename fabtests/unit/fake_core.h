/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A scripted core provider, and an lnx endpoint on it: tx/, rx/ and comp/
 * without a network.  lnx opens its rails through fi_fabric as always; here
 * that is ours.  The test is the rest of the world: it says what the core
 * answers, looks at the frames that left, makes those that arrive, and moves
 * the clock.
 *
 * Programs link with -Wl,--wrap=clock_gettime for the clock.
 */
#ifndef LNX_FAKE_CORE_H
#define LNX_FAKE_CORE_H

#include "obj/ep.h"
#include "wire/hdr.h"

#define FAKE_RAILS	6
#define FAKE_ALWAYS	UINT32_MAX	/* a count that does not end */

/* What left on a rail, in the order it was taken. */
struct fake_sent {
	struct fake_sent *next;
	struct lnx_hdr h;		/* of a framed rail */
	fi_addr_t dest;
	bool inject;
	const char *call;		/* which fi_* it was */
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

	/* The script: the next so many calls say -FI_EAGAIN (reads are also
	 * writes of remote memory) ... */
	uint32_t send_again, inject_again, recv_again, read_again;
	uint32_t mr_fails;		/* ... or -FI_ENOMEM, */
	uint32_t mr_taken;		/* ... or that there is such a key, */
	uint32_t send_fails, read_fails; /* are taken and fail later. */
	uint32_t keep_fails;		/* direct: lost for want of memory */
	uint32_t ep_fails, enable_fails, av_fails; /* opening, inserting */
	bool flush;			/* closing reports what it ends */
	bool hold_sends, hold_reads;	/* until fake_finish() */
	/* peer, direct: sends, registering; look at what came, as some do */
	bool poll_in_send, poll_in_mr;
	unsigned late;			/* plain: polls that do not see what arrived */
	void (*in_inject)(void);	/* framed, but for PROBE and PONG: called first,
					 * then as above */

	/* What was seen. */
	unsigned nsend, ninject, nrecv, nread, nwrite, npolls, nstart;
	unsigned nrefused;		/* sends and injects */
	unsigned nmr, nmr_open, nposted, nav;
	uint64_t mr_key;		/* that was asked for last */
	unsigned nopen;			/* endpoints: each has another port, */
	unsigned port;			/* unless one is asked for */
	unsigned nav_in;		/* addresses that are in the AV */
#define FAKE_PORT	4000
#define FAKE_AV_NAMES	1024u		/* those that can be looked up */
#define FAKE_NAME_BYTES	16u
	uint8_t av_name[FAKE_AV_NAMES][FAKE_NAME_BYTES];
	bool av_gone[FAKE_AV_NAMES];
	bool enabled;

	/* Inside. */
	struct fid_peer_cq *peer_cq;
	struct fid_peer_srx *peer_srx;
	struct fake_sent *sent, **sent_end;
	struct fake_op *out, **out_end; /* sends and reads not complete */
	struct fake_op *done, **done_end; /* completions not read */
	struct fake_op *posted, **posted_end;
	struct fake_arrival *in, **in_end;
	struct fake_arrival *kept;	/* unexpected, direct */
	struct { uint64_t key, base; uint8_t *mem; size_t len; bool rw; }
		region[16];
	unsigned nregion;
};

struct fake_opt {
	unsigned nrail;			/* 0: one, plain */
	enum lnx_rail_kind kind[FAKE_RAILS];
	uint64_t caps;			/* added to FI_MSG | FI_TAGGED */
	uint64_t tx_op_flags;
	uint64_t tx_bind, rx_bind;	/* FI_SELECTIVE_COMPLETION */
	size_t tx_size;
	size_t inject_size;		/* of framed rails; 0: none */
	bool mr_basic;			/* FI_MR_BASIC */
};

/* An lnx endpoint with everything that belongs to it. */
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

/* The other side of a conversation; the test speaks for it. */
struct fake_peer {
	uint64_t eid;
	struct lnx_addr where;
	uint8_t blob[LNX_ADDR_BYTES];
	fi_addr_t addr;			/* in the AV */
	uint32_t seq;			/* of the next frame it sends */
	uint32_t got;			/* number it expects: its ack */
};

/* lnx_config() of the program: the defaults, to be changed before fake_open. */
extern struct lnx_conf fake_conf;
extern uint64_t fake_now_ns;
/* Kind of the frame that left last; also after a close. */
extern uint8_t fake_last_kind;
/* The core takes memory: not to be refused by tests that let it run short. */
extern volatile bool fake_allocating;

/* Open and enable; opt may be NULL.  Ends the test when that fails. */
void fake_open(struct fake *f, const struct fake_opt *opt);
/* Close all; with the address sanitizer: and nothing may have leaked.  The test
 * may have closed ep itself, and then sets it to NULL. */
void fake_close(struct fake *f);
/* Close without the search for leaks, which takes its time. */
void fake_close_quick(struct fake *f);

/* One pass of progress over everything; n of them; n after the clock moved. */
void fake_pass(struct fake *f);
void fake_passes(struct fake *f, unsigned n);
void fake_after_ms(struct fake *f, uint64_t ms);

/* A peer with eid (its port too), in the AV or not. */
void fake_peer_init(struct fake *f, struct fake_peer *p, uint64_t eid);
void fake_peer_insert(struct fake *f, struct fake_peer *p);

/* Bytes arrive on a rail, to be seen by the next pass. */
void fake_arrive(struct fake_core *core, const void *bytes, size_t len);
/* A frame from p: src, dst and ack are filled in, seq is h's. */
void fake_frame(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
		const void *payload, size_t len);
/* The same, arriving on rail over p's path. */
void fake_frame_on(struct fake *f, struct fake_peer *p, unsigned rail,
		   struct lnx_hdr h, const void *payload, size_t len);
/* fake_frame, numbered as p's next. */
void fake_next(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
	       const void *payload, size_t len);
void fake_hello(struct fake *f, struct fake_peer *p);
void fake_tag(struct fake *f, struct fake_peer *p, uint64_t tag,
	      const void *buf, size_t len);
void fake_msg(struct fake *f, struct fake_peer *p, const void *buf, size_t len);
void fake_ack(struct fake *f, struct fake_peer *p);
/* A large message of nseg pieces, all of mem in order, key 100 + piece. */
void fake_rts(struct fake *f, struct fake_peer *p, bool tagged, uint64_t tag,
	      uint64_t op, const uint8_t *mem, const uint64_t *seg,
	      unsigned nseg);
/* A message on a direct rail; core address src of the sender. */
void fake_direct(struct fake_core *core, bool tagged, fi_addr_t src,
		 uint64_t tag, const uint64_t *data, const void *buf,
		 size_t len);

/* What left first and was not taken yet, or NULL.  The caller frees it. */
struct fake_sent *fake_take(struct fake_core *core);
/* The same at peer p, which notes what it received; ends the test when nothing
 * left, or something of another kind. */
struct fake_sent *fake_expect(struct fake *f, struct fake_peer *p,
			      uint8_t kind);
/* fake_expect, but only to note it. */
void fake_expect_drop(struct fake *f, struct fake_peer *p, uint8_t kind);
void fake_expect_none(struct fake *f);
/* Take and throw away everything that left; p received it in order. */
unsigned fake_drop_all(struct fake *f, struct fake_peer *p);

/* Operations that are held: how many, and completing the i-th of them (0 is the
 * oldest), with an error when err is not 0. */
unsigned fake_held(const struct fake_core *core);
void fake_finish(struct fake_core *core, unsigned i, int err);
void fake_finish_all(struct fake_core *core);
/* Memory that fi_read finds under key at base; and fi_write, too. */
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

/* Where the test is, for what these have to say when they end it. */
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
