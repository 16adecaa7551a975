/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rel/ makes of what happens to frames, hosts and processes, told as stories
 * (timeline.h).  Together they visit each state of the tables at each event.
 */
#include <criterion/criterion.h>

#include "timeline.h"

/* ---- losses: rel/loss.h ---- */

static void frames_that_are_lost(void)
{
	STORY(1, "the connection breaks, and the last frame was in it",
	      "0ms    posted 1 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "103ms  pong 1 over A: LOST, 1 again on A",
	      "104ms  acked 1");
	STORY(1, "the connection breaks under traffic: only what left before the question",
	      "0ms    posted 1..5 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "103ms  posted 6..9 on A",
	      "104ms  pong 1 over A: LOST, 1..5 again on A",
	      "105ms  acked 9");
	STORY(2, "the connection of one of two rails breaks",
	      "0ms    posted 1 on B",
	      "0ms    posted 2..4 on A",
	      "0ms    posted 5 on B",
	      "1ms    probe over A",
	      "1ms    probe over B",
	      "2ms    pong 1 over A",
	      "3ms    pong 1 over B: LOST, 1 again on B, 5 again on B",
	      "4ms    acked 5");
	STORY(1, "a receiver without memory drops the frame again and again",
	      "0ms    posted 1 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "103ms  pong 1 over A: LOST, 1 again on A",
	      "104ms  pong 1 over A",
	      "303ms  nothing came",
	      "503ms  nothing came: ASK",
	      "504ms  pong 2 over A: LOST, 1 again on A",
	      "505ms  pong 2 over A",
	      "600ms  acked 1");
	STORY(2, "the same receiver, asked ten times a second because it has two rails",
	      "0ms    posted 1 on A",
	      "1ms    probe over A",
	      "2ms    pong 1 over A: LOST, 1 again on A",
	      "5ms    probe over A",
	      "6ms    pong 2 over A",
	      "29ms   probe over A",
	      "30ms   pong 3 over A: LOST, 1 again on A",
	      "31ms   acked 1");
	STORY(1, "the first of two questions is answered",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "303ms  pong 1 over A: LOST, 1..2 again on A",
	      "304ms  pong 2 over A",
	      "305ms  acked 2");
	STORY(2, "questions over both rails, and the frame is on one",
	      "0ms    posted 1 on A",
	      "1ms    probe over A",
	      "1ms    probe over B",
	      "2ms    pong 1 over B",
	      "2ms    pong 1 over A: LOST, 1 again on A",
	      "3ms    acked 1");
	STORY(1, "the HELLO is lost",
	      "0ms    a new session",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came",
	      "102ms  nothing came",
	      "502ms  nothing came: INSIST, peer ASK KERNELS, probe 1 on A",
	      "504ms  acked 1: 2 again on A",
	      "505ms  acked 2");
	STORY(1, "one direction is dead: no answers, no acknowledgements",
	      "0ms    posted 1..3 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "702ms  nothing came: ASK, peer ASK KERNELS",
	      "1502ms nothing came: INSIST, probe 1 on A",
	      "3102ms nothing came: INSIST, peer ASK KERNELS, probe 1 on A",
	      "3103ms acked 1: 2..3 again on A",
	      "3104ms acked 3");
	STORY(1, "an answer repeated by the network",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "103ms  pong 1 over A: LOST, 1..2 again on A",
	      "104ms  pong 1 over A",
	      "105ms  acked 2");
	STORY(1, "a suspended notebook whose connection has timed out",
	      "0ms    posted 1..3 on A",
	      "2ms    nothing came",
	      "8h     the machine wakes up: ASK, peer ASK KERNELS",
	      "8h     pong 1 over A: LOST, 1..3 again on A",
	      "8h     acked 3");
}

static void frames_that_are_not_lost(void)
{
	STORY(1, "a peer that computes for four seconds",
	      "0ms    posted 1..5 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "702ms  nothing came: ASK, peer ASK KERNELS",
	      "1502ms nothing came: INSIST, probe 1 on A",
	      "4s     acked 5",
	      "4s     pong 1 over A",
	      "4s     pong 2 over A");
	STORY(1, "this process was stopped, and its acknowledgements wait in a socket",
	      "0ms    posted 1..5 on A",
	      "2ms    nothing came",
	      "60s    back from the debugger: ASK, peer ASK KERNELS",
	      "60s    acked 5",
	      "60s    pong 1 over A");
	STORY(1, "a satellite link: the answer takes longer than the timeout",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "600ms  acked 2",
	      "702ms  pong 1 over A",
	      "902ms  pong 2 over A");
	STORY(1, "the core still has the frame: that is no matter of the network",
	      "0ms    posted 1..2 on A",
	      "0ms    the core of A keeps 1",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "310ms  the core of A releases 1",
	      "320ms  pong 1 over A",
	      "330ms  acked 2");
	STORY(1, "the frame of the question arrives, the next one does not",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "103ms  acked 1",
	      "104ms  pong 1 over A",
	      "106ms  nothing else came: MOVED",
	      "206ms  nothing came: ASK",
	      "207ms  pong 2 over A: LOST, 2 again on A");
	STORY(1, "an old pong with another number",
	      "0ms    posted 1 on A",
	      "2ms    nothing came",
	      "3ms    pong 7 over A",
	      "102ms  nothing came: ASK",
	      "103ms  nothing came",
	      "103ms  pong 7 over A",
	      "104ms  pong 1 over A: LOST, 1 again on A",
	      "105ms  pong 7 over A",
	      "106ms  acked 1",
	      "107ms  pong 7 over A");
	STORY(2, "the frame has left over the other rail when the answer comes",
	      "0ms    posted 1..2 on A",
	      "1ms    probe over A",
	      "2ms    link of A goes down: DOWN, 1..2 again on B",
	      "3ms    pong 1 over A",
	      "4ms    acked 2");
	STORY(2, "a pong that comes over another rail than its question",
	      "0ms    pong 0 over B",
	      "0ms    posted 1 on A",
	      "1ms    probe over A",
	      "2ms    pong 1 over B",
	      "3ms    pong 1 over A: LOST, 1 again on A",
	      "4ms    pong 1 over B",
	      "5ms    nothing else came: A begins",
	      "6ms    acked 1");
	STORY(2, "a peer that acknowledges nothing, and answers without a question",
	      "0ms    a new session",
	      "0ms    posted 1 on A",
	      "1ms    pong 0 over A",
	      "2ms    pong 0 over B",
	      "3ms    pong 9 over A",
	      "4ms    acked 1");
	STORY(1, "a large message that its receiver does not read yet",
	      "0ms    a large message waits for the peer's read",
	      "0ms    kernel of A answers",
	      "2ms    nothing came",
	      "102ms  nothing came: ASK",
	      "302ms  nothing came: ASK",
	      "502ms  nothing came: peer ASK KERNELS",
	      "503ms  pong 0 over A",
	      "504ms  acked 0",
	      "2s     the peer has read all",
	      "2s     nothing came");
	STORY(2, "the answer of the network comes again, long after",
	      "0ms    posted 1 on A",
	      "1ms    probe over A",
	      "2ms    pong 1 over A: LOST, 1 again on A",
	      "12ms   nothing came: A begins",
	      "32ms   nothing came: ASK",
	      "33ms   pong 1 over A",
	      "34ms   pong 1 over B",
	      "35ms   acked 1");
}

/* ---- peers: rel/life.h, rel/silence.h ---- */

static void peers_that_die(void)
{
	STORY(1, "a host that is switched off",
	      "0ms    posted 1..4 on A",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "1002ms nothing came: ASK",
	      "1502ms nothing came: ASK, peer ASK KERNELS",
	      "2502ms nothing came: INSIST, peer ASK KERNELS, probe 1 on A",
	      "3502ms nothing came: peer ASK KERNELS",
	      "4502ms nothing came: INSIST, peer ASK KERNELS, probe 1 on A",
	      "5002ms nothing came: peer TIMED OUT, DEAD");
	STORY(1, "a process that has died: its host refuses connections",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A refuses",
	      "2ms    nothing came",
	      "400ms  nothing came: ASK",
	      "502ms  nothing came: peer ASK KERNELS",
	      "1502ms nothing came: ASK, peer ASK KERNELS",
	      "4600ms nothing came: ASK, peer ASK KERNELS",
	      "5100ms nothing came: peer REFUSED, DEAD");
	STORY(2, "a process has died, and one of its cables is out",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A refuses",
	      "0ms    kernel of B is silent",
	      "2ms    nothing came: A begins",
	      "502ms  nothing came: ASK, A ASK KERNEL, late ASK, peer ASK KERNELS",
	      "5s     nothing came: ASK, A ASK PEER, peer ASK KERNELS",
	      "5500ms nothing came: ASK, A ASK PEER, peer TIMED OUT, DEAD");
	STORY(1, "a process has died whose host cannot be asked",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A cannot be asked",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "9s     nothing came: ASK, peer ASK KERNELS",
	      "19s    nothing came: ASK, peer ASK KERNELS",
	      "20002ms nothing came: INSIST, peer TIMED OUT, DEAD");
	STORY(1, "a local process is killed",
	      "0ms    its process is killed: DEAD",
	      "1ms    what is outstanding fails: DEAD",
	      "1s     a send begins the next session: GONE");
	STORY(1, "a peer that was never heard of is removed from the AV",
	      "0ms    it is removed from the AV: DETACHED",
	      "1ms    what is outstanding fails: GONE",
	      "2ms    what is outstanding fails: GONE");
}

static void peers_that_live(void)
{
	STORY(1, "a process stopped by a signal, and continued",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "600ms  nothing came",
	      "1100ms nothing came: ASK, peer ASK KERNELS",
	      "1200ms nothing came",
	      "2s     nothing came: ASK, peer ASK KERNELS",
	      "2100ms acked 1",
	      "2101ms a frame of the peer");
	STORY(1, "a process that was stopped for good",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "4s     nothing came: ASK",
	      "5s     nothing came: ASK, peer ASK KERNELS",
	      "6s     nothing came: INSIST, probe 1 on A",
	      "7s     nothing came: peer ASK KERNELS",
	      "8s     nothing came: INSIST, probe 1 on A",
	      "9s     nothing came: peer ASK KERNELS",
	      "10s    nothing came",
	      "11s    nothing came: peer ASK KERNELS",
	      "12s    nothing came: INSIST, probe 1 on A",
	      "13s    nothing came: peer ASK KERNELS",
	      "14s    nothing came",
	      "15s    nothing came: peer ASK KERNELS",
	      "16s    nothing came",
	      "17s    nothing came: peer ASK KERNELS",
	      "18s    nothing came",
	      "19s    nothing came: INSIST, peer ASK KERNELS, probe 1 on A",
	      "20s    nothing came",
	      "21s    nothing came: peer ASK KERNELS",
	      "22s    nothing came: peer TIMED OUT, DEAD");
	STORY(2, "only one of its two networks answers: that is enough",
	      "0ms    posted 1 on A",
	      "0ms    kernel of B answers",
	      "2ms    nothing came: A begins",
	      "502ms  nothing came: ASK, A ASK KERNEL, late ASK, peer ASK KERNELS",
	      "6s     nothing came: ASK, A ASK PEER",
	      "7s     nothing came: ASK, A ASK PEER, peer ASK KERNELS",
	      "8s     acked 1");
	STORY(1, "a network partition that heals after 4.9 seconds",
	      "0ms    a frame of the peer",
	      "0ms    posted 1 on A",
	      "1ms    nothing else came",
	      "1ms    a frame of the peer",
	      "2ms    nothing else came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "3502ms nothing came: ASK, peer ASK KERNELS",
	      "4900ms a frame of the peer",
	      "5002ms nothing else came: ASK",
	      "5502ms nothing came: peer ASK KERNELS",
	      "9s     acked 1");
	STORY(1, "kernels that cannot be asked end nothing for long",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A cannot be asked",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "9s     nothing came: ASK, peer ASK KERNELS",
	      "19s    nothing came: ASK, peer ASK KERNELS",
	      "19500ms acked 1");
	STORY(1, "this machine was suspended: the peer has time to answer",
	      "0ms    posted 1 on A",
	      "2ms    nothing came",
	      "8h     the machine wakes up: ASK, peer ASK KERNELS",
	      "28800400ms nothing came: ASK",
	      "28800450ms acked 1");
}

static void peers_that_end(void)
{
	STORY(1, "a peer that closes its endpoint",
	      "0ms    BYE of the peer: CLOSING",
	      "1ms    BYE of the peer: CLOSING",
	      "2ms    what is outstanding fails: CLOSED",
	      "3ms    BYE of the peer: CLOSED",
	      "5s     a send begins the next session: GONE");
	STORY(1, "a peer that was started anew refuses the old session",
	      "0ms    posted 1 on A",
	      "5ms    the peer refuses the session: CLOSING",
	      "6ms    what is outstanding fails: CLOSED",
	      "7ms    HELLO of its next session: GONE");
	STORY(1, "a peer that was started anew sends before we notice",
	      "0ms    HELLO of its next session: DETACHED",
	      "1ms    HELLO of its next session: DETACHED",
	      "2ms    the peer refuses the session: DETACHED",
	      "3ms    what is outstanding fails: GONE");
	STORY(1, "its BYE and its next HELLO come together",
	      "0ms    BYE of the peer: CLOSING",
	      "0ms    HELLO of its next session: DETACHED",
	      "1ms    what is outstanding fails: GONE");
	STORY(1, "both ends give up at once",
	      "0ms    what is outstanding fails: DEAD",
	      "1ms    the peer refuses the session: CLOSED",
	      "2ms    what is outstanding fails: CLOSED",
	      "1s     a send begins the next session: GONE");
	STORY(1, "another endpoint has the address of the peer",
	      "0ms    posted 1..2 on A",
	      "1ms    another endpoint is there: CLOSING",
	      "2ms    what is outstanding fails: CLOSED");
	STORY(1, "what comes late for a session that is over",
	      "0ms    what is outstanding fails: DEAD",
	      "1s     a send begins the next session: GONE",
	      "2s     BYE of the peer: GONE",
	      "3s     what is outstanding fails: GONE",
	      "4s     HELLO of its next session: GONE");
	STORY(1, "a half-open connection: the host has rebooted",
	      "0ms    posted 1 on A",
	      "0ms    kernel of A is silent",
	      "2ms    nothing came",
	      "502ms  nothing came: ASK, peer ASK KERNELS",
	      "4s     kernel of A refuses",
	      "4s     nothing came: ASK, peer ASK KERNELS",
	      "4100ms HELLO of its next session: DETACHED",
	      "4101ms what is outstanding fails: GONE");
}

Test(timeline_peer, losses)
{
	frames_that_are_lost();
	frames_that_are_not_lost();
	story_covers(LOSS_TABLE);
	story_count(22);
}

Test(timeline_peer, life)
{
	peers_that_die();
	peers_that_live();
	peers_that_end();
	story_covers(LIFE_TABLE);
	story_covers(LIVENESS_TABLE);
	story_count(20);
}
