/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints that talk over the reliable channel (rel/), with paths between them
 * that lose, repeat, swap and hold back what they carry, and a clock that only the test
 * moves.
 * They do what the rest of rel/ does around its pure files, without cores and bytes.
 *
 *	chan_net.c		the paths, and what is under way
 *	chan_send.c		one session of an end: how its frames leave,
 *	chan_receive.c		what comes back,
 *	chan_timers.c		and what time does
 *	chan_model.c		what has to be true of it
 *	chan_session.c		how sessions begin and end, and processes
 *	test_chan_random.c	what happens, and what has to be true then
 *
 * Beside what rel/ knows, each session has a model of it: counts of 64 bits that do not
 * wrap, and what each frame has been through.  The two are compared all the time.
 */
#ifndef CHAN_WORLD_H
#define CHAN_WORLD_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/interval.h"
#include "base/timer.h"
#include "policy/rtt.h"
#include "rel/chan.h"
#include "rel/life.h"
#include "rel/loss.h"
#include "rel/path.h"
#include "rel/silence.h"

#define PATHS		3u
#define MS		LNX_NS_PER_MS
#define ACK_EVERY	16u
#define SESSIONS_MAX	(1u << 17)

enum kind { DATA, ACK, PROBE, PONG, BYE, NO_SESSION };

struct packet {
	uint64_t due_ns;
	enum kind kind;
	unsigned to, path;
	uint64_t src;			/* session of the sender; NO_SESSION: endpoint */
	uint64_t dst;			/* endpoint; NO_SESSION: session it is about */
	uint32_t seq, ack;		/* from 0, as real ones: see first_number */
	uint64_t id;			/* DATA: number of the frame, from 1, no wrap */
	uint64_t nack;			/* ack, no wrap */
	bool hello;			/* DATA: begins a session; */
	uint64_t from;			/* then: endpoint that sent it, */
	uint64_t stamp, names;		/* its age, the session it names or 0 */
	bool has_address;		/* PROBE: a refusal can be sent back */
	bool latency;			/* PROBE, PONG: data is a number of rel/loss */
	unsigned about;			/* PROBE, PONG: path */
	uint64_t data;			/* PROBE, PONG, NO_SESSION */
	uint64_t bytes[PATHS];		/* ACK, PONG: came over each path */
	uint64_t why;			/* NO_SESSION: LNX_REFUSED_* */
};

struct session;

/* A message in its frame.  The channel or the core has it. */
struct frame {
	struct lnx_frame f;
	struct session *s;
	uint64_t id;
	bool hello;
	uint64_t stamp, names;
	struct lnx_node core_link;	/* s->in_core, while f.in_core */
};

struct path {
	uint8_t state;			/* enum lnx_path_state */
	uint64_t retry_ns, since_ns, asked_kernel_ns;
	uint64_t sent, delivered, last_report, progress;
	uint64_t nonce, probe_ns;	/* of the failure detector */
	bool pinged;
	uint32_t latency;		/* number of the last PROBE about latency */
	uint64_t latency_ns;
	struct lnx_silence silence;
	struct lnx_late late;
	struct lnx_rtt rtt;
	/* Answers that are due over it. */
	bool pong_due[PATHS];
	uint64_t pong_data[PATHS];
	bool other_due;
	unsigned other_about;
	uint64_t other_data;
};

struct session {
	struct session *next;		/* of its end */
	unsigned at;			/* its end */
	uint64_t sid, rx_sid;		/* its name, the peer's or 0 */
	uint64_t eid;			/* the peer's endpoint */
	uint64_t stamp, rx_stamp;
	uint64_t before_sid, named;	/* as in obj/peer.h; */
	bool unanswered, alive;		/* so are these, */
	uint8_t wrong_endpoint;
	uint64_t ended_ns, refused_ns;	/* and these */
	uint8_t life;
	struct lnx_chan c;
	struct lnx_loss loss;
	struct lnx_liveness liveness;
	struct path path[PATHS];
	unsigned cur, back, last_path;
	uint64_t rx_bytes[PATHS];
	bool multipath, hello_done, greet, refuse, on_ack_list, awaited;
	uint64_t pong_ns;
	uint64_t look_ns;		/* when to look at it next */
	struct lnx_node in_core;
	/* The model. */
	uint64_t numbered, posted, una;	/* frames that were; */
	uint64_t acks;			/* that came and were not acknowledged */
	uint64_t nframes;		/* that exist */
	bool ended, failed, detached;
	bool question;			/* there is one about a lost frame */
	unsigned retx_paths;		/* to be posted again: of these paths, */
	uint64_t retx_end;		/* up to that frame */
	bool probed;			/* the oldest was posted again; */
	unsigned probed_path;		/* it was on that path */
	bool due[LNX_SEQ_WINDOW];	/* frame id % LNX_SEQ_WINDOW has to go again */
	uint8_t lost[LNX_SEQ_WINDOW];	/* bits: paths that lost a copy of it */
};

/* What became of the frames of a session; for as long as the test runs. */
struct ledger {
	uint64_t sent, acked, failed, delivered;
	bool killed;			/* its process was */
	bool received;			/* the peer has begun it */
	struct session *s;		/* or NULL: freed */
};

#define REFUSALS_MAX	16u

struct end {
	uint64_t eid;
	uint64_t computes_ns;		/* does nothing until then */
	uint64_t clock_ns;		/* added to the time, for stamps; it is set at times */
	struct session *sessions;
	struct packet refusal[REFUSALS_MAX]; /* NO_SESSIONs that are to be sent */
	unsigned nrefusal;
};

/* How bad it is; test_chan_random.c sets it. */
struct world_mode {
	unsigned npath;
	bool in_order;			/* each path keeps the order */
	bool restless;			/* sessions end all the time */
	unsigned loss, repeat;		/* of 1000 */
	unsigned busy;			/* refused by cores, of 1000 */
	unsigned window;
	uint64_t delay_ns[PATHS];
};

struct tally {
	unsigned long events, arrived, delivered, lost, repeated, early, old, again,
		probes, questions, found_lost, insisted, late, forged, refused,
		sessions, restarts, given_up, timed_out, downs, restored, clones,
		grown, stale, dropped, wrapped, failed, acked, silences, closed,
		ended, misdirected, begun_again, uncertain, doubts, answers;
};

struct world {
	uint64_t seed, now;
	struct world_mode mode;
	bool quiet;			/* nothing goes wrong any more */
	struct end end[2];
	bool hole[PATHS];
	struct tally t;
};
extern struct world w;
extern struct ledger ledger[SESSIONS_MAX];

/* Counted only when it fails: there are a hundred million of them. */
#define CHECK(what) \
	do { \
		if (lnx_unlikely(!(what))) \
			cr_assert_fail("%s; LNX_SEED=%llu, event %lu", #what, \
				       (unsigned long long)w.seed, w.t.events); \
	} while (0)

void set_seed(void);
unsigned rnd(unsigned n);

/* ---- chan_net.c ---- */

void net_open(void);
void net_send(const struct packet *p);
/* The next packet for that end that has arrived by now.  False: there is none. */
bool net_take(unsigned to, struct packet *p);
/* Any packet on its way to that end, whether its time has come or not. */
bool net_take_any(unsigned to, struct packet *p);
/* It does not reach the channel. */
void net_lost(const struct packet *p);
/* All on that path is lost. */
void net_break(unsigned path);
/* Nothing passes; what is on its way waits.  It ends with the loss of that, or not. */
void net_hole(unsigned path);
void net_heal(unsigned path, bool loses);
bool net_empty(void);
/* Is something of that endpoint on its way to that end? */
bool net_has(unsigned to, uint64_t from);

/* ---- one session ---- */

/* The application sends one message.  False: refused, nothing has happened. */
bool session_send(struct session *s, bool may_queue);
/*
 * The number of a session's first frame inside the two channels: 0, or soon the numbers
 * wrap.  On the wire it is 0 in any case, as in lnx_wire.h: acknowledgements of one session
 * look like those of another.
 */
static inline uint32_t first_number(uint64_t sid)
{
	return sid & 1 ? 0u - 1u - (uint32_t)(sid * 37 % 300) : 0;
}
/* Our HELLO, before anything else. */
void session_hello(struct session *s);
/* If it has to go again, it names the peer's session: as lnx_session_answer. */
void session_answer(struct session *s);
void session_ack(struct session *s, const struct packet *p);
void session_arrive(struct session *s, const struct packet *p);
/* One pass of progress. */
void session_pass(struct session *s);
/* A look at it, if one is due: as rel/run.c. */
void session_look(struct session *s);
/* Something is due from it, or came from it: look soon, if the next look is far away. */
void session_watch(struct session *s);
/* The core has finished with a frame; or failed it. */
void session_core_done(struct session *s, bool ok);
/* Of the window, the first n frames. */
void session_retransmit(struct session *s, unsigned paths, uint64_t n);
void session_path_down(struct session *s, unsigned path);
void frame_put(struct frame *f);
/* Compare with the model. */
void session_check(struct session *s);

/* ---- chan_session.c ---- */

void end_open(unsigned at);
/* The session in which that end sends now; begun if need be.  NULL: not yet again. */
struct session *end_session(unsigned at);
/* The same, if there is one. */
struct session *end_current(unsigned at);
/* Something comes from the network. */
void end_arrive(unsigned at, const struct packet *p);
void end_pass(unsigned at);
/* A process dies, and another one takes its place; close: it says so before. */
void end_restart(unsigned at, bool close);
/* Free sessions that have ended, and those with endpoints that are no more. */
void end_reap(unsigned at, bool all);

void session_fail(struct session *s);
/* The peer has ended it.  What is outstanding fails in the next pass. */
void session_bye(struct session *s);

#endif
