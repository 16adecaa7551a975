/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All fixed intervals of the library and its programs, in the unit of their name: how long
 * something is waited for, how often something is looked at.  What is waited for has a timer
 * (base/timer.h); progress does not look before that.  What a user may set is a parameter
 * (conf/params.def).  contrib/check-structure finds times that are elsewhere.
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
/* Ticks of the processor's counter (lnx_clock_ticks) that show that a program has not polled for a
 * while: some tenths of a millisecond, up to 20 ms on processors whose counter is slow. */
#define LNX_PASS_PAUSE_TICKS	(1ull << 19)
/* From one look at deadlines to the next, no more than this counts: a program that computes
 * has not seen a peer fail. */
#define LNX_LOOK_COUNTS_NS	LNX_NS_PER_S
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
/* No round trip counts as longer (policy/rtt.h): sums of so long ones do not overflow. */
#define LNX_RTT_SAMPLE_MAX_NS	(1ull << 56)
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
/* The same before a peer has ever answered. */
#define LNX_CONNECT_FIRST_NS	(5 * LNX_NS_PER_S)
/* A kernel whose own timeout has grown to this asks for the connection rarely by now; a new
 * one is asked for at once, and after a second (core/half_open.h). */
#define LNX_SYN_RARE_NS		(2 * LNX_NS_PER_S)
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

/* What a path moves is measured for so long: for some rounds in which no process waited for
 * its CPU (rel/rate.h). */
#define LNX_RATE_WINDOW_NS	(200 * LNX_NS_PER_MS)

/* ---- pieces of a large transfer over several paths (policy/stripe.h) ---- */

/* For one piece: long compared to a round trip, short compared to a message. */
#define LNX_STRIPE_PIECE_NS	(700 * LNX_NS_PER_US)
/* For all outstanding pieces of a path while there is much to do: the peer's process may be
 * without a CPU for so long before the path has nothing to do.  Not more: what the sockets do
 * not hold waits in the peer's core, and tcp sends answers to reads before all messages.  So its
 * acknowledgements would wait as long as the reads go on. */
#define LNX_STRIPE_DEEP_NS	(4 * LNX_NS_PER_MS)
/* A message that is alone and is read in that time, beside that of its bytes, needs no other way
 * (policy/lone.h). */
#define LNX_LONE_FAST_NS	LNX_NS_PER_MS
/* An answer takes much longer than another: more than twice the time, and so much. */
#define LNX_STRIPE_MUCH_NS	(5 * LNX_NS_PER_MS)
/* It takes about as long: a quarter more, or so much. */
#define LNX_STRIPE_LITTLE_NS	LNX_NS_PER_MS

/* ---- pushed messages on one node (policy/push.h) ---- */

/* To read a message from its sender's memory takes that long, without its bytes: a call of the
 * kernel at each end. */
#define LNX_PUSH_READ_NS	2000u
/* A piece that takes longer than that says nothing: the process did not run meanwhile. */
#define LNX_PUSH_MAX_NS		20000u

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
/* Notes of gateways do not count for so long after too many in their names. */
#define LNX_GATEWAY_GUESS_NS	LNX_NS_PER_S
/* A gateway may have died when paths over it go DOWN.  Many may do so together: it is asked
 * no sooner after its last hello. */
#define LNX_GATEWAY_DOUBT_NS	(500 * LNX_NS_PER_MS)
/* A gateway that was taken for dead, and answered later, has twice as long for an answer until it
 * has answered in time for so long.  It takes so many bytes per second, at least. */
#define LNX_GATEWAY_LATE_NS	(60 * LNX_NS_PER_S)
#define LNX_GATEWAY_RATE_MIN	(1ull << 20)
/* After a note a source keeps to its grant for so long; each further note renews it. */
#define LNX_GATEWAY_SLOW_NS	(100 * LNX_NS_PER_MS)
/* After a note that a gateway has no way to a net, its route there is down for so long, or
 * until the gateway says more of itself. */
#define LNX_ROUTE_NOTED_NS	(10 * LNX_NS_PER_S)
/* Gateways are asked about an end that seems to hear nothing, so often at most. */
#define LNX_GATEWAY_ASK_NS	(200 * LNX_NS_PER_MS)
/* A path whose frames a gateway drops pauses: first; and up to, if the gateway says that it
 * will go on dropping them. */
#define LNX_GATEWAY_NOTED_NS	LNX_NS_PER_MS
#define LNX_GATEWAY_NOTED_MAX_NS (200 * LNX_NS_PER_MS)
/* The id of a gateway that stays unknown is asked for again after a pause, which doubles:
 * from, to. */
#define LNX_GATEWAY_UNKNOWN_NS	LNX_NS_PER_S
#define LNX_GATEWAY_UNKNOWN_MAX_NS (60 * LNX_NS_PER_S)
/* A part of a read over a gateway that does not come is asked for again, first after so long, by the
 * time that answers take: from, to; later each time; and a frame for which a core was busy is tried
 * again. */
#define LNX_ROUTED_AGAIN_MIN_NS	(50 * LNX_NS_PER_MS)
#define LNX_ROUTED_AGAIN_NS	(200 * LNX_NS_PER_MS)
#define LNX_ROUTED_TRY_NS	(100 * LNX_NS_PER_US)
/* That time is looked at so often; of a longer one between two looks no more than twice as much
 * counts: what came while a program computed has not been received yet. */
#define LNX_ROUTED_LOOK_NS	(LNX_ROUTED_AGAIN_MIN_NS / 4)
/* A peer from which nothing comes for longer than this is silent: that time counts against no read
 * over a gateway.  If it makes progress it answers a PROBE sooner. */
#define LNX_ROUTED_SILENT_NS	LNX_NS_PER_S
/* Parts come another way for so long, twice as long each time that the usual one was tried again
 * in vain: from, to. */
#define LNX_ROUTED_WAY_NS	(200 * LNX_NS_PER_MS)
#define LNX_ROUTED_WAY_MAX_NS	(64 * LNX_ROUTED_WAY_NS)
/* Long parts that got lost, where short ones did not, are tried again. */
#define LNX_ROUTED_SHORT_NS	(60 * LNX_NS_PER_S)
/* A peer's wish for parts waits here for so long: then it was asked for again. */
#define LNX_ROUTED_PULL_NS	(16 * LNX_ROUTED_AGAIN_NS)
/* A message over gateways waits so long for credit before messages are announced instead. */
#define LNX_ROUTED_CREDIT_NS	(50 * LNX_NS_PER_MS)

/* ---- a thread that polls gives up its core (policy/yield.h) ---- */

/* It polls without a check of what else the core could do: from, to. */
#define LNX_YIELD_SPIN_MIN_NS	(2 * LNX_NS_PER_US)
#define LNX_YIELD_SPIN_MAX_NS	(200 * LNX_NS_PER_US)
/* A read takes less, even over several rails.  A thread that takes longer to come back has
 * other work, and keeps its core for that. */
#define LNX_YIELD_READ_NS	(20 * LNX_NS_PER_US)
/* About what the shortest sleep takes (timer slack is 50 us). */
#define LNX_YIELD_SLEEP_AFTER_NS (60 * LNX_NS_PER_US)
/* No sleep is longer: what comes meanwhile waits, and so do peers that read from here. */
#define LNX_YIELD_NAP_MAX_NS	(500 * LNX_NS_PER_US)
/* Losing the core twice within this time is not just a daemon that ran once. */
#define LNX_YIELD_LOST_NS	(20 * LNX_NS_PER_MS)
/* A thread that sleeps does not lose its core: so it sleeps for longer each time that this is
 * found to be still needed, from, to. */
#define LNX_YIELD_SLEEP_MIN_NS	(20 * LNX_NS_PER_MS)
#define LNX_YIELD_SLEEP_MAX_NS	(320 * LNX_NS_PER_MS)
/* Threads that poll too give the core back sooner; a time slice is longer, with all numbers of
 * cores and all tick rates of Linux. */
#define LNX_YIELD_LONG_NS	LNX_NS_PER_MS
/* When they have not, it is tried whether more gets done if the core is kept: for some time
 * slices, from, to. */
#define LNX_YIELD_KEEP_MIN_NS	(20 * LNX_NS_PER_MS)
#define LNX_YIELD_KEEP_MAX_NS	(80 * LNX_NS_PER_MS)
/* Between two such trials: from, to.  One that fails costs the others one or two time slices. */
#define LNX_YIELD_TRY_MIN_NS	(100 * LNX_NS_PER_MS)
#define LNX_YIELD_TRY_MAX_NS	(1600 * LNX_NS_PER_MS)
/* In less time there are too few completions to compare. */
#define LNX_YIELD_COMPARE_MIN_NS (50 * LNX_NS_PER_MS)

/* ---- the state segment (ctl/ctl.h) ---- */

/* Counters are published so often while the endpoint makes progress; everything, without
 * a reader; and for so long after one was there, as soon as it can be. */
#define LNX_STATE_LOOK_NS	(100 * LNX_NS_PER_MS)
#define LNX_STATE_WALK_NS	LNX_NS_PER_S
#define LNX_STATE_READER_NS	(5 * LNX_NS_PER_S)
/* One pass may take so long for it. */
#define LNX_STATE_PASS_NS	(50 * LNX_NS_PER_US)
/* A ping that a reader asks for may take so long: as long as with lnetctl. */
#define LNX_PING_WAIT_MS	1000u
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
/* And the region of its shared memory (core/shm_stale.h). */
#define LNX_SHM_KEEP_NS		(60 * LNX_NS_PER_S)

/* ---- closing ---- */

/* A peer that is stopped between an operation and its control message is not waited for
 * longer; and is looked at. */
#define LNX_SETTLE_NS		LNX_NS_PER_S
#define LNX_SETTLE_LOOK_NS	(10 * LNX_NS_PER_MS)
/* A lock that another thread held when the process was forked is tried for so long. */
#define LNX_LOCK_TRY_NS		(100 * LNX_NS_PER_MS)

/* ---- lnxctl ---- */

/* A process that makes progress takes a request within that; it answers some later. */
#define LNXCTL_REQUEST_WAIT_MS	1000u
/* Fresh data of processes that make progress is waited for so long; and by --wait at most. */
#define LNXCTL_STATE_WAIT_MS	300u
#define LNXCTL_WAIT_MAX_MS	600000u
/* At what is waited for: the answer to a request, fresh data. */
#define LNXCTL_ANSWER_LOOK_NS	(LNX_NS_PER_MS / 2)
#define LNXCTL_STATE_LOOK_NS	(2 * LNX_NS_PER_MS)
/* A process without progress for so long is shown as silent. */
#define LNXCTL_SILENT_NS	LNX_NS_PER_S
/* At the processes that a command has started, at least; the looks take 1 / PART of a processor
 * at most.  So long each look is at the memory of a new one, and then so often. */
#define LNXCTL_STARTED_LOOK_NS	(5 * LNX_NS_PER_MS)
#define LNXCTL_STARTED_PART	10u
#define LNXCTL_STARTED_YOUNG_NS	LNX_NS_PER_S
#define LNXCTL_STARTED_OLD_NS	(250 * LNX_NS_PER_MS)

/* ---- lnxrtd ---- */

/* Settings that lnx.conf does not have: how long what is idle is kept, a failed destination
 * is refused, a connection may take, and what is queued may take at the end. */
#define RTD_IDLE_NS		(60 * LNX_NS_PER_S)
#define RTD_REFUSED_NS		LNX_NS_PER_S
#define RTD_CONNECT_NS		(5 * LNX_NS_PER_S)
#define RTD_DRAIN_NS		(30 * LNX_NS_PER_S)
/* One that drains, and in which nothing waits, forwards on until nothing has come for so long;
 * up to. */
#define RTD_DRAIN_QUIET_NS	(50 * LNX_NS_PER_MS)
#define RTD_DRAIN_QUIET_MAX_NS	LNX_NS_PER_S
/* In a stream of large frames it sleeps for so long at a time, and for so much longer at most if no
 * others run, unless others have sent something for so long. */
#define RTD_STREAM_NAP_NS	(200 * LNX_NS_PER_US)
#define RTD_STREAM_SLACK_NS	(10 * LNX_NS_PER_US)
#define RTD_STREAM_OTHERS_NS	(10 * LNX_NS_PER_MS)
/* The same for other gateways: asked so often, while they work and while they do not; and
 * dead after so long without an answer. */
#define RTD_ALIVE_NS		(60 * LNX_NS_PER_S)
#define RTD_DEAD_NS		LNX_NS_PER_S
#define RTD_ROUTER_PING_NS	LNX_NS_PER_S
/* Between hellos to one in use, and to one to which frames go, where another could take its place.
 * That is dead after so long without an answer, or later (lnx_route_gateway_limit). */
#define RTD_USED_NS		LNX_NS_PER_S
#define RTD_BUSY_NS		(75 * LNX_NS_PER_MS)
#define RTD_BUSY_DEAD_NS	(200 * LNX_NS_PER_MS)
/* It takes no frames for so long: another one gets them. */
#define RTD_GATEWAY_NS		(200 * LNX_NS_PER_MS)
/* At what may be idle, at least; idle_ns / 4 if that is longer. */
#define RTD_IDLE_LOOK_NS	LNX_NS_PER_S
/* Nothing goes to a destination that did not take a frame: from, to. */
#define RTD_BACKOFF_MIN_NS	LNX_NS_PER_MS
#define RTD_BACKOFF_MAX_NS	(64 * LNX_NS_PER_MS)
/* Between two notes of one reason to one source. */
#define RTD_NOTE_GAP_NS		(2 * LNX_NS_PER_MS)
/* Sources are told of a change together, after so long; the rest of many, after so long. */
#define RTD_INFO_NS		LNX_NS_PER_S
#define RTD_INFO_REST_NS	LNX_NS_PER_MS
/* Notes of gateways do not count for so long after too many that were of none. */
#define RTD_GUESS_NS		LNX_NS_PER_S
/* A gateway that has not answered so soon about a host most likely does not reach it: another one
 * is asked as well. */
#define RTD_ANSWER_NS		(100 * LNX_NS_PER_MS)
/* What was passed on to another gateway is answered within that, or not at all. */
#define RTD_PASSED_NS		(3 * LNX_NS_PER_S)
/* An endpoint that has sent a frame on is told what a next gateway says of it; other gateways
 * only when none has for so long. */
#define RTD_FROM_NS		LNX_NS_PER_S
/* A next gateway that has said that it has no way to a destination is passed over; longer each
 * time if it says so again soon after: from, to. */
#define RTD_NO_WAY_NS		(10 * LNX_NS_PER_S)
#define RTD_NO_WAY_MAX_NS	(16 * RTD_NO_WAY_NS)
/* One that was asked in vain whether a host answers is asked again, later each time: from, to. */
#define RTD_LATE_NS		LNX_NS_PER_S
#define RTD_LATE_MAX_NS		(16 * RTD_LATE_NS)
/* A host that a source asks about has so long to answer. */
#define RTD_PING_NS		LNX_NS_PER_S
/* Of many connections that may be silent the rest is looked at after so long. */
#define RTD_SILENT_REST_NS	LNX_NS_PER_MS
/* The state file is written no more often. */
#define RTD_STATE_NS		LNX_NS_PER_S
/* It sleeps for no longer: with cores without a descriptor, and while hosts are asked; with
 * cores that make connections only when they are called; and at all. */
#define RTD_POLL_MS		1u
#define RTD_CONNECT_LOOK_MS	20u
#define RTD_WAIT_MAX_MS		60000u

#endif
