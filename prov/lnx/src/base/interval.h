/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All fixed intervals of the library, in ns: how long something is waited for, how often
 * something is looked at.  What is waited for has a timer (base/timer.h); progress does
 * not look before that.  What a user may set is a parameter (conf/params.def).  Lengths
 * that are measured, not chosen, are where they are used: rel/rate.c, policy/yield.c and
 * policy/stripe.c.
 *
 * They depend on each other.  A question must be answered before its timeout ends, and a
 * look must come several times in the shortest wait that it checks.
 */
#ifndef LNX_INTERVAL_H
#define LNX_INTERVAL_H

#include "base/clock.h"

/* ---- passes: how often progress looks ---- */

/* The clock is read in every 16th pass, and not only in every 256th, if a timer is due
 * within so long; or if passes take longer than that. */
#define LNX_PASS_SOON_NS	LNX_NS_PER_MS
#define LNX_PASS_SLOW_NS	(20 * LNX_NS_PER_US)
/* At a peer, from one look to the next, at least. */
#define LNX_LOOK_MIN_NS		(2 * LNX_NS_PER_MS)
/* At a peer while frames to it are acknowledged, so that it is known since when they are
 * not: with one path; with several, of which one may fail.  It is looked at that soon, too,
 * when frames are sent after a time without any. */
#define LNX_LOOK_ONE_NS		(50 * LNX_NS_PER_MS)
#define LNX_LOOK_SEVERAL_NS	(10 * LNX_NS_PER_MS)
/* At links, while a peer is looked at: with one path each; if one has several. */
#define LNX_LINKS_ONE_NS	(50 * LNX_NS_PER_MS)
#define LNX_LINKS_SEVERAL_NS	(2 * LNX_NS_PER_MS)
/* At a rail without traffic. */
#define LNX_IDLE_RAIL_NS	(50 * LNX_NS_PER_US)
/* At receive buffers that were posted, until all are posted that may be. */
#define LNX_POSTED_LOOK_NS	(50 * LNX_NS_PER_MS)
/* Then: is there anything that the core does not read, because it has none left? */
#define LNX_POSTED_REST_NS	LNX_NS_PER_S
/* At links, for so long after an ACK left: more frames may be about to come. */
#define LNX_LINKS_AFTER_ACK_NS	LNX_NS_PER_S
/* At interfaces, which may come and go all the time: cores are queried no more often. */
#define LNX_HOTPLUG_LOOK_NS	(100 * LNX_NS_PER_MS)
/* At sockets that cores have opened (core/half_open.h): first, and at last. */
#define LNX_SWEEP_FIRST_NS	(5 * LNX_NS_PER_MS)
#define LNX_SWEEP_LAST_NS	LNX_NS_PER_S
/* At objects of ended peers, which may be freed. */
#define LNX_REAP_LOOK_NS	(500 * LNX_NS_PER_MS)
/* At idle peers that are in no address vector; and if there is no room for more. */
#define LNX_KEEPALIVE_NS	(60 * LNX_NS_PER_S)
#define LNX_KEEPALIVE_FULL_NS	LNX_NS_PER_S
/* At peers that are throttled: while something changes, and at most. */
#define LNX_BACKLOG_LOOK_NS	(50 * LNX_NS_PER_US)
#define LNX_BACKLOG_LOOK_MAX_NS	(10 * LNX_NS_PER_MS)
/* At processes of this node, all behind one descriptor; and at each by itself. */
#define LNX_EXIT_LOOK_NS	(10 * LNX_NS_PER_MS)
#define LNX_EXIT_PROBE_NS	(100 * LNX_NS_PER_MS)
/* The helper thread, while there is traffic, and at most. */
#define LNX_THREAD_MIN_NS	(100 * LNX_NS_PER_US)
#define LNX_THREAD_MAX_NS	(2 * LNX_NS_PER_MS)
/* It sleeps for no longer: until another thread has something that is due sooner. */
#define LNX_THREAD_SLEEP_NS	(50 * LNX_NS_PER_MS)
/* A waiting call polls for so long before it sleeps.  It sleeps for no longer than that
 * while something may come that does not wake it; and at most, as above. */
#define LNX_WAIT_SPIN_NS	(20 * LNX_NS_PER_US)
#define LNX_WAIT_LOOK_NS	LNX_NS_PER_MS
#define LNX_WAIT_MAX_NS		(100 * LNX_NS_PER_MS)

/* ---- frames (rel/loss.h) ---- */

/* The retransmission timeout of RFC 6298: at least; while no answer was timed; at most,
 * after it was doubled.  An expiry asks, it does not retransmit: so not the RFC's second. */
#define LNX_RTO_MIN_NS		(50 * LNX_NS_PER_MS)
#define LNX_RTO_FIRST_NS	(100 * LNX_NS_PER_MS)
#define LNX_RTO_MAX_NS		(8 * LNX_NS_PER_S)
/* A timeout that has grown to this retransmits too: answers may not come back. */
#define LNX_RTO_INSIST_NS	LNX_NS_PER_S
/* From one retransmission of lost frames to the next, at least; doubled each time. */
#define LNX_RETX_PAUSE_NS	(10 * LNX_NS_PER_MS)
/* The first timeout of what is no frame: a HELLO, whose peer may not run yet, and an
 * answer that only the peer's program can give. */
#define LNX_ALIVE_NS		(500 * LNX_NS_PER_MS)
/* An ACK that no path takes for so long is given up: the peer sends again. */
#define LNX_ACK_GIVE_UP_NS	LNX_NS_PER_S

/* ---- a path that takes nothing, or fails ---- */

/* Refused (EAGAIN): pauses from, to; and to, for a peer that is not there, one of so many
 * parts of the time that it has not been there. */
#define LNX_BACKOFF_MIN_NS	(50 * LNX_NS_PER_US)
#define LNX_BACKOFF_MAX_NS	(10 * LNX_NS_PER_MS)
#define LNX_REFUSED_MAX_NS	LNX_NS_PER_S
#define LNX_REFUSED_SHARE	8u
/* Peers that are not there must not keep others waiting: no more tries to connect to them in
 * one pass; all tries take one of so many parts of the time; and from one to the next, at
 * most. */
#define LNX_CONNECTS_PER_PASS	4u
#define LNX_CONNECT_SHARE	16u
#define LNX_CONNECT_GAP_MAX_NS	LNX_NS_PER_MS
/* Something was refused for so long: a connection may hang in its beginning. */
#define LNX_CONNECT_HANGS_NS	(500 * LNX_NS_PER_MS)
/* A pause so long is unusual: a connection may have failed. */
#define LNX_UNUSUAL_NS		(2 * LNX_NS_PER_MS)
/* Failed by the core after it was taken: the same. */
#define LNX_FAIL_BACKOFF_MIN_NS	(5 * LNX_NS_PER_MS)
#define LNX_FAIL_BACKOFF_MAX_NS	LNX_NS_PER_S
/* A read: refused; and failed, up to eight times that. */
#define LNX_READ_BUSY_NS	(LNX_NS_PER_MS / 2)
#define LNX_READ_REDO_NS	(20 * LNX_NS_PER_MS)
/* A large message was announced so long ago: its sender may have given us up meanwhile, and
 * its buffer may have been used again, so that it has to confirm (msg/pull.c).  Less than the
 * smallest FI_LNX_CONNECT_TIMEOUT, 100 ms, by more than the announcement was on its way. */
#define LNX_READ_CONFIRM_NS	(50 * LNX_NS_PER_MS)

/* ---- which path (rel/sched.h, rel/latency.h) ---- */

/* Between two PROBEs about latency over a path with traffic. */
#define LNX_LATENCY_ASK_NS	(100 * LNX_NS_PER_MS)
/* The same while none is answered: half the time that it has taken so far, up to that. */
#define LNX_LATENCY_MUTE_NS	LNX_NS_PER_S
/* Nothing was looked at for so long: an answer may have been there all the time. */
#define LNX_LATENCY_AWAY_NS	(20 * LNX_NS_PER_MS)
/* A difference of delays that is none of the usual ones of a network. */
#define LNX_FAR_NS		(10 * LNX_NS_PER_MS)
/* A path that is not used because it is slow is tried again after that. */
#define LNX_RELEARN_NS		LNX_NS_PER_S

/* ---- what is late on one path, while others deliver (rel/hedge.h) ---- */

/* The least time by which it must be late: two looks. */
#define LNX_LATE_MIN_NS		(2 * LNX_LOOK_MIN_NS)
/* A path with late pieces pauses from, to: it is to be used again within two seconds. */
#define LNX_LATE_PAUSE_MIN_NS	(8 * LNX_NS_PER_MS)
#define LNX_LATE_PAUSE_MAX_NS	(500 * LNX_NS_PER_MS)
/* A path that frames have left because they were late there: they stay away from, to. */
#define LNX_AWAY_MIN_NS		(500 * LNX_NS_PER_MS)
#define LNX_AWAY_MAX_NS		(8 * LNX_NS_PER_S)
/* A message lacks nothing but the end of reads that others have overtaken: their
 * connection is cut after that, but not so soon after the last time. */
#define LNX_CUT_NS		(10 * LNX_NS_PER_MS)
#define LNX_CUT_AGAIN_NS	(50 * LNX_NS_PER_MS)

/* ---- silence (rel/silence.h) ---- */

/* Between two questions about a silent path, at most. */
#define LNX_SILENCE_ASK_MAX_NS	(500 * LNX_NS_PER_MS)
/* A path whose kernel answers may be silent for so many times as long: it is congested, or
 * lost a packet that TCP sends again after 200 ms. */
#define LNX_SILENCE_KERNEL_TIMES 4u
/* A peer's kernels are asked when it has been silent for so long, again after so long. */
#define LNX_LIVENESS_SILENT_NS	(500 * LNX_NS_PER_MS)
#define LNX_LIVENESS_ASK_NS	LNX_NS_PER_S
/* Their answers are looked for after that, first. */
#define LNX_LIVENESS_LOOK_NS	(50 * LNX_NS_PER_MS)
/* From one look at a stalled peer to the next, no more than this counts. */
#define LNX_LIVENESS_STALL_STEP_NS (2 * LNX_NS_PER_S)
/* An idle peer is given up when its kernels were mute so many times in turn. */
#define LNX_KEEPALIVE_TRIES	10u
/* Paths of a silent peer whose kernel has not answered for so long go DOWN. */
#define LNX_KERNEL_MUTE_NS	(200 * LNX_NS_PER_MS)

/* ---- a path that is DOWN (rel/recovery.h); policy/plan.c has the pings ---- */

/* Between two looks at such a path: while an answer of its kernel may come; at most. */
#define LNX_RECOVERY_ANSWER_NS	(50 * LNX_NS_PER_MS)
#define LNX_RECOVERY_LOOK_NS	LNX_NS_PER_S
/* A PROBE waits for a connection. */
#define LNX_PROBE_CONNECT_NS	(5 * LNX_NS_PER_MS)
/* A ping without answer for so long is lost. */
#define LNX_PING_LOST_NS	(300 * LNX_NS_PER_MS)
/* Between pings of a kernel that refuses, at least. */
#define LNX_PING_REFUSED_NS	(50 * LNX_NS_PER_MS)
/* A peer's report that its link is down is trusted for so long. */
#define LNX_LINK_TRUST_NS	LNX_NS_PER_S
/* Its rail's endpoint is opened anew: its link is down or something hangs in it; the
 * peer's kernel answers but the peer does not; no kernel can be asked. */
#define LNX_REOPEN_DOWN_NS	(5 * LNX_NS_PER_MS)
#define LNX_REOPEN_MUTE_NS	(50 * LNX_NS_PER_MS)
#define LNX_REOPEN_UNANNOUNCED_NS (300 * LNX_NS_PER_MS)
/* For reads that have hung in it; and not again before. */
#define LNX_REOPEN_READ_NS	(20 * LNX_NS_PER_MS)
#define LNX_REOPEN_BACKOFF_NS	LNX_NS_PER_S
/* Frames to a dead peer that its core still has are cut after so long. */
#define LNX_HANGS_NS		LNX_NS_PER_S
/* If two peers have no other path, one waits so much longer than the other. */
#define LNX_REOPEN_YIELD_NS	(250 * LNX_NS_PER_MS)
/* What hangs for so long in a path that was drained counts as lost. */
#define LNX_DRAINED_NS		LNX_NS_PER_S
/* A peer that is not at its address is looked for so long if nothing is due. */
#define LNX_LOOK_FOR_NS		(60 * LNX_NS_PER_S)
/* A path that has delivered nothing for so long is no better than the one that a HELLO
 * replaces. */
#define LNX_ADDRESS_STALLED_NS	(200 * LNX_NS_PER_MS)

/* ---- what is told of rails set by hand (rel/admin.h) ---- */

/* It is valid for so long, and repeated several times in that time. */
#define LNX_DRAIN_TRUST_NS	(2 * LNX_NS_PER_S)
#define LNX_DRAIN_REPEAT_NS	(300 * LNX_NS_PER_MS)
/* A path that has been connecting for longer does not work. */
#define LNX_CONNECTING_NS	LNX_NS_PER_S

/* ---- sessions ---- */

/* Between two tries to tell a sender that its session has ended: a core may have to
 * connect. */
#define LNX_SESSION_TRY_NS	(10 * LNX_NS_PER_MS)
/* Between two refusals to a peer; and to what has not proved a job key. */
#define LNX_SESSION_REFUSE_NS	(10 * LNX_NS_PER_MS)
#define LNX_SESSION_UNPROVEN_NS	(20 * LNX_NS_PER_MS)
/* An ended session: so long the peer, which may not know yet, is told; and is not tried
 * again. */
#define LNX_SESSION_TELL_NS	(10 * LNX_NS_PER_S)
#define LNX_SESSION_BEGIN_NS	LNX_NS_PER_S

/* ---- gateways (rel/gateway.h) ---- */

/* A hello that the core did not take is tried again: it may be connecting. */
#define LNX_GATEWAY_TRY_NS	(10 * LNX_NS_PER_MS)
/* A part of a read over a gateway that does not come is asked for again, later each time; and
 * a frame for which a core was busy is tried again. */
#define LNX_ROUTED_AGAIN_NS	(200 * LNX_NS_PER_MS)
#define LNX_ROUTED_TRY_NS	(100 * LNX_NS_PER_US)

/* ---- the state segment (ctl/ctl.h) ---- */

/* Counters are published so often while the endpoint makes progress; everything, without
 * a reader; and for so long after one was there, as soon as it can be. */
#define LNX_STATE_LOOK_NS	(100 * LNX_NS_PER_MS)
#define LNX_STATE_WALK_NS	LNX_NS_PER_S
#define LNX_STATE_READER_NS	(5 * LNX_NS_PER_S)
/* One pass may take so long for it. */
#define LNX_STATE_PASS_NS	(50 * LNX_NS_PER_US)
/* At the health board (core/health_board.h), while a rail is bad; else; and at least. */
#define LNX_BOARD_SOON_NS	LNX_NS_PER_S
#define LNX_BOARD_LOOK_NS	(10 * LNX_NS_PER_S)
#define LNX_BOARD_GAP_NS	(100 * LNX_NS_PER_MS)
/* Bad news is trusted for so long, and repeated after so long. */
#define LNX_BOARD_TRUST_NS	(30 * LNX_NS_PER_S)
#define LNX_BOARD_REPEAT_NS	(10 * LNX_NS_PER_S)
/* What was written so much later than now is no news: clocks of CPUs differ less. */
#define LNX_BOARD_SLACK_NS	LNX_NS_PER_S
/* The segment of a process that was killed is kept for so long (base/stale.h). */
#define LNX_STATE_KEEP_NS	(86400 * LNX_NS_PER_S)

/* ---- closing ---- */

/* A peer that is stopped between an operation and its control message is not waited for
 * longer; and is looked at. */
#define LNX_SETTLE_NS		LNX_NS_PER_S
#define LNX_SETTLE_LOOK_NS	(10 * LNX_NS_PER_MS)
/* A lock that another thread held when the process was forked is tried for so long. */
#define LNX_LOCK_TRY_NS		(100 * LNX_NS_PER_MS)

#endif
