/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An lnx endpoint on scripted cores, one per rail, in a world of peers: for
 * tests of paths that deliver nothing.  fail_world.c has the peers and the
 * networks between, fail_app.c the application.  Both end the test (Criterion's
 * assertions) if something arrives twice, altered or out of order.
 *
 * A program has one world, so names are short.  Rails are numbered as they are
 * here; each reaches the peers' rail of the same number.  Programs link with
 * fail_ldflags, because the world also replaces the kernels that lnx asks
 * (os/ping.h).
 */
#ifndef FAIL_WORLD_H
#define FAIL_WORLD_H

#include <criterion/criterion.h>

#include "fake_core.h"

#define MANY	4096u			/* more frames than any test sends */
#define LARGE	(1ul << 20)		/* bytes of a message that is read */
#define SEGMENT	80000u			/* of a message in several frames, by a peer */
#define PARTS	200000u			/* bytes of such a message */
#define SEND_MAX	300000u		/* the longest send of ours */
#define SIDES	3u
#define NSLOT	256u			/* sends that are not complete, at most */
#define OLD_PORT	4000		/* of a rail that is opened first */

/* A test for each kind of rail; programs define BOTH(name) with it. */
#define FAIL_BOTH(suite, name)						\
	static void name(enum lnx_rail_kind kind);			\
	Test(suite##_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(suite##_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

/* A peer, at the other end. */
struct side {
	struct fake_peer p;
	bool mute;			/* it computes: reads no frames */
	bool no_pongs, no_acks;
	bool test_answers;		/* the test answers PROBEs about latency */
	unsigned nlatency[FAKE_RAILS];	/* those so far */
	unsigned max_take;		/* frames of a rail that it reads at a time */

	/* What it has received of us. */
	unsigned seen[MANY];		/* times, by number */
	uint64_t sum[MANY];		/* checksum of its content */
	uint64_t tag[MANY];
	uint8_t kind[MANY];
	uint64_t len[MANY];		/* of its message; MORE: of the frame */
	uint64_t part[MANY];		/* of that, bytes in frames */
	uint8_t byte[MANY];		/* MORE: what it consists of */
	uint64_t first[MANY];		/* and if it begins a message, its first 8 bytes */
	uint64_t came;			/* bytes that need credit */
	uint64_t spent, granted;	/* the other direction */
	unsigned nseen[FAKE_RAILS];	/* sequenced frames, by rail */
	uint64_t bytes[LNX_WIRE_PATHS];
	unsigned nprobe[FAKE_RAILS];
	struct lnx_hdr probe[FAKE_RAILS]; /* the last one */
	unsigned nrail;			/* RAIL frames, and the last one */
	struct lnx_hdr rail;
	unsigned last_rail;
	unsigned nhello;
	struct lnx_addr us;		/* our address in our last hello */
	bool acks_pending;

	/* Its own frames: kept until they are acknowledged. */
	uint32_t acked;
	struct { uint8_t kind; uint64_t tag; } out[MANY];
	uint64_t again_ns;
	uint64_t nsent;			/* tags that we have sent to it */
	uint64_t next_tag;		/* the last tag that it sent, */
	uint64_t nposted, nrecv;	/* receives posted for it, and completed */
	fi_addr_t dest[FAKE_RAILS];	/* the last destination of ours, by rail */
};

/* A send or a receive; its context. */
struct op {
	unsigned ncomp, nerr;
	int err;
	int slot;			/* index of the payload of a send */
	uint8_t *buf;			/* of a receive */
	size_t len;
	uint64_t tag;			/* the tag that it must get */
	struct side *from;
};

extern struct fake f;
extern struct side side[SIDES];
extern unsigned nside, nrail;
extern bool lost_to[FAKE_RAILS], lost_from[FAKE_RAILS]; /* everything on a rail is lost */
extern uint8_t mem[LARGE];		/* the content of each large message of a peer */

/* What peers let us send before it came, as credit; 0: they know of no credit. */
extern uint64_t credit;

/* Kernels, which answer for peers that compute. */
extern bool kernel_alive[FAKE_RAILS];	/* it answers although frames are lost */
extern bool kernel_refuses[FAKE_RAILS];	/* it answers that there is no such port */
extern bool kernel_unknown;		/* it cannot be asked */
extern bool kernel_lacks;		/* nor that, for want of descriptors */
extern unsigned kernel_takes_ms;
/* What the kernels of peers say that are no sides. */
extern enum lnx_ping_result kernel_says;

/* Connections, which are cut where reads hang.  While cuts_work what the core holds fails
 * then; else there is no connection to cut. */
extern bool cuts_work;
extern unsigned nunanswered;		/* times that connections that hang were looked for; */
extern uint64_t unanswered_ns;		/* the last time, those that had waited so long, */
extern bool unanswered_began;		/* also for a kernel's answer */
extern unsigned ncut[FAKE_RAILS];	/* so often for each rail */
extern unsigned npaths_cut[FAKE_RAILS];	/* paths that were cut with others, by rail */
/* Where a peer that was given up may be reading: so often, and what there was then of the
 * rail's registrations and of large sends to side 0; and how long a connection has been silent
 * that is cut. */
extern unsigned nread_cuts[FAKE_RAILS], mrs_at_cut[FAKE_RAILS], announced_at_cut;
extern uint64_t silent_at_cut_ns;

extern unsigned nops;			/* sends and receives so far, below MANY */
extern size_t inject_size;		/* of the cores that the next test opens */

/* ---- fail_world.c ---- */

/* The peer as lnx sees it; NULL before it does. */
struct lnx_peer *inside(const struct side *s);
/* The path that begins on a rail of ours; it ends on the peer's rail of the
 * same number. */
struct lnx_path *path_of(const struct side *s, unsigned rail);
bool is_down(const struct side *s, unsigned rail);

/* The port of our rail in the last hello that s received; */
unsigned port_known(const struct side *s, unsigned rail);
/* the port of s that our core has in its AV; */
unsigned port_used(const struct side *s, unsigned rail);
/* a new port for s.  We are not told. */
void move(struct side *s, unsigned rail, unsigned port);

/* Nothing passes, in either direction. */
void black_hole(unsigned rail);
void heal(unsigned rail);

/* A frame of a peer arrives over a rail, unless the rail loses it. */
void from(struct side *s, unsigned rail, uint32_t seq, struct lnx_hdr h,
	  const void *payload, size_t len);
/* It sends something new over a rail: HELLO, TAG (8 bytes), RTS_TAG (LARGE), PART_TAG
 * (PARTS, with the frames that follow), or FIN (tag: the op).  It repeats that until it is
 * acknowledged. */
void say(struct side *s, unsigned rail, uint8_t kind, uint64_t tag);
void ack_on(struct side *s, unsigned rail);
/* Has it credit for PARTS? */
bool may_part(const struct side *s);
void pong(struct side *s, unsigned rail, uint64_t tag, uint64_t data);

/* A frame of ours reaches a peer, which records it. */
void look_at(struct side *s, unsigned rail, const struct fake_sent *m);
/* All frames that left reach the peers or are lost, and the peers answer. */
void world(void);

/* ---- fail_app.c ---- */

/* Open with so many rails of a kind, and with peers to send to. */
void open_n(enum lnx_rail_kind kind, unsigned rails, unsigned sides);
/* The same, and each side has a hello and a message of the other. */
void open_met(enum lnx_rail_kind kind, unsigned rails, unsigned sides);
/* Start another peer, or the same one as a new process. */
void start_side(unsigned i);
/* Everything works again: all arrives, once, and nothing is left over.  Then close. */
void close_clean(void);
/* Close as it is. */
void close_now(void);

/* A tagged send to s, with flags besides FI_COMPLETION.  NULL: -FI_EAGAIN. */
struct op *send_flags(struct side *s, size_t len, uint64_t flags);
/* A send that must be accepted. */
struct op *send1(struct side *s, size_t len);
/* A receive from s, for the next message that it sends. */
struct op *receive(struct side *s, size_t len);
/* A receive for LARGE bytes that s announces over rail 1. */
struct op *large_from(struct side *s);

/* Progress of endpoint and world without time passing; the same once each ms,
 * for so long. */
void step(void);
void run_ms(unsigned ms);
/* Everything has arrived and is acknowledged on both sides; peers that compute
 * are left out. */
bool all_there_of(const struct side *s);
bool all_there(void);

/* Path 0 of the first peer goes DOWN because its rail loses everything. */
void path0_down(void);
/* The rail's core endpoint hangs with a read, and is closed and reopened. */
struct op *force_reopen(struct side *s);
/* This host reports the link of a rail up or down. */
void link_is(unsigned rail, bool up);

/* Let time pass until cond is true; fail when that takes longer. */
#define RUN_UNTIL(cond, ms)						\
	do {								\
		unsigned left_ms = ms;					\
									\
		while (!(cond) && left_ms--)				\
			run_ms(1);					\
		cr_assert(cond);					\
	} while (0)

#endif
