/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An lnx endpoint on scripted cores, a rail each, in a world of peers: for tests of
 * paths that deliver nothing.  fail_world.c is the peers and the networks between,
 * fail_app.c the application.  Both end the test (Criterion's assertions) where
 * something comes twice, altered or out of order.
 *
 * There is one world in a program, so names are short.  Rails are numbered as they are
 * here, and lead to the same of each peer's.  Programs link with fail_ldflags: the
 * world is the kernels, too, which lnx asks (core/ping.h).
 */
#ifndef FAIL_WORLD_H
#define FAIL_WORLD_H

#include <criterion/criterion.h>

#include "fake_core.h"

#define MANY	4096u			/* numbers of frames, and more than any */
#define LARGE	(1ul << 20)		/* bytes of a message that is read */
#define SIDES	3u
#define NSLOT	256u			/* sends that are not complete */
#define OLD_PORT	4000		/* of a rail that is opened first */

/* A test for each kind of rail: programs define BOTH(name) by it. */
#define FAIL_BOTH(suite, name)						\
	static void name(enum lnx_rail_kind kind);			\
	Test(suite##_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(suite##_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

/* One of ours at the other end. */
struct side {
	struct fake_peer p;
	bool mute;			/* it computes: takes nothing */
	bool no_pongs, no_acks;
	unsigned max_take;		/* frames of a rail at a time */

	/* What it has of us. */
	unsigned seen[MANY];		/* times, by number */
	uint64_t sum[MANY];		/* what it was */
	uint64_t tag[MANY];
	uint8_t kind[MANY];
	unsigned nseen[FAKE_RAILS];	/* sequenced, by rail */
	uint64_t bytes[LNX_WIRE_PATHS];
	unsigned nprobe[FAKE_RAILS];
	struct lnx_hdr probe[FAKE_RAILS]; /* the last one */
	unsigned nrail;			/* notices of links, and the last one */
	struct lnx_hdr rail;
	unsigned last_rail;
	unsigned nhello;
	struct lnx_addr us;		/* by our last hello */
	bool owes;

	/* What it sends: kept until acknowledged. */
	uint32_t acked;
	struct { uint8_t kind; uint64_t tag; } out[MANY];
	uint64_t again_ns;
	uint64_t nsent;			/* tags that we have sent to it */
	uint64_t next_tag;		/* the last that it sent, */
	uint64_t nposted, nrecv;	/* and that was asked for, and came */
	fi_addr_t dest[FAKE_RAILS];	/* last one of ours, by rail */
};

/* A send or a receive; its context. */
struct op {
	unsigned ncomp, nerr;
	int err;
	int slot;			/* payload of a send */
	uint8_t *buf;			/* of a receive */
	size_t len;
	uint64_t tag;			/* that it is to get */
	struct side *from;
};

extern struct fake f;
extern struct side side[SIDES];
extern unsigned nside, nrail;
extern bool lost_to[FAKE_RAILS], lost_from[FAKE_RAILS]; /* on a rail: everything */
extern uint8_t mem[LARGE];		/* each large message of a peer's */

/* Kernels, that answer for peers which compute. */
extern bool kernel_alive[FAKE_RAILS];	/* whatever is lost */
extern bool kernel_refuses[FAKE_RAILS];	/* unless it is so */
extern bool kernel_unknown;		/* nobody can be asked */
extern unsigned kernel_takes_ms;

extern unsigned nops;			/* sends and receives so far, below MANY */
extern bool slot_used[NSLOT];
extern size_t inject_size;		/* of the cores that are opened next */

/* ---- fail_world.c ---- */

/* The peer as lnx sees it; NULL before it does. */
struct lnx_peer *inside(const struct side *s);
/* The path that begins on a rail of ours; it ends on the same of the peer's. */
struct lnx_path *path_of(const struct side *s, unsigned rail);
bool left(const struct side *s, unsigned rail);

/* Where a rail is: as s was told; */
unsigned port_told(const struct side *s, unsigned rail);
/* of s: as our core has it in its AV; */
unsigned port_used(const struct side *s, unsigned rail);
/* of s: from now on.  Nobody is told. */
void move(struct side *s, unsigned rail, unsigned port);

/* Nothing gets through, either way. */
void black_hole(unsigned rail);
void heal(unsigned rail);

/* A frame of a peer's arrives over a rail, unless that loses it. */
void from(struct side *s, unsigned rail, uint32_t seq, struct lnx_hdr h,
	  const void *payload, size_t len);
/* It says something new, over a rail: HELLO, TAG (8 bytes) or RTS_TAG (LARGE).  It
 * repeats that until it is acknowledged. */
void say(struct side *s, unsigned rail, uint8_t kind, uint64_t tag);
void ack_on(struct side *s, unsigned rail);
void pong(struct side *s, unsigned rail, uint64_t tag, uint64_t data);

/* A frame of ours reaches a peer, which notes it. */
void look_at(struct side *s, unsigned rail, const struct fake_sent *m);
/* All that left reaches the peers or is lost, and they answer. */
void world(void);

/* ---- fail_app.c ---- */

/* Open with so many rails of a kind, and peers to send to. */
void open_n(enum lnx_rail_kind kind, unsigned rails, unsigned sides);
/* The same, and each has a hello and a message of the other. */
void open_met(enum lnx_rail_kind kind, unsigned rails, unsigned sides);
/* Another peer, or the same one anew. */
void start_side(unsigned i);
/* All works again: everything arrives, once, and nothing is left behind. */
void close_clean(void);
/* Close as it is. */
void close_now(void);

/* A tagged send to s; flags added to FI_COMPLETION.  NULL: -FI_EAGAIN. */
struct op *send_flags(struct side *s, size_t len, uint64_t flags);
/* One that has to be taken. */
struct op *send1(struct side *s, size_t len);
/* A receive from s; it gets what is said next. */
struct op *receive(struct side *s, size_t len);
/* One that does get something, of LARGE bytes, announced over rail 1. */
struct op *large_from(struct side *s);

/* Progress, the world's too, while no time goes by; for so long, once each ms. */
void step(void);
void run_ms(unsigned ms);
/* Everything has arrived and is acknowledged, here and there; at peers that compute
 * it need not. */
bool all_there_of(const struct side *s);
bool all_there(void);

/* Path 0 of the first is left, for want of news: its rail loses everything. */
void leave0(void);
/* The rail's core endpoint hangs with a read, and is closed. */
struct op *force_reopen(struct side *s);
/* What this host says of a rail's link. */
void link_is(unsigned rail, bool up);

/* Let time go by until it is so; fail when that takes longer. */
#define RUN_UNTIL(cond, ms)						\
	do {								\
		unsigned left_ms = ms;					\
									\
		while (!(cond) && left_ms--)				\
			run_ms(1);					\
		cr_assert(cond);					\
	} while (0)

#endif
