/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rel/ makes of what happens to links, rails and switches, told as stories
 * (timeline.h).  Together they visit each state of the tables at each event.
 */
#include <criterion/criterion.h>

#include "timeline.h"

/* ---- a path: rel/path.h ---- */

static void paths_that_connect(void)
{
	STORY(1, "a peer that is there",
	      "0ms    posted 1 on A",
	      "0ms    A takes a frame: UP",
	      "1ms    acked 1",
	      "5ms    A takes a frame: UP");
	STORY(1, "a peer that starts a little later",
	      "0ms    A refuses a frame: CONNECTING",
	      "1ms    A refuses a frame: CONNECTING",
	      "900ms  A connects: UP");
	STORY(1, "a job of which one node never starts",
	      "0ms    A refuses a frame: CONNECTING",
	      "1s     A refuses a frame: CONNECTING",
	      "60s    the deadline of A passes: DEAD",
	      "61s    the deadline of A passes: DEAD",
	      "62s    A refuses a frame: CONNECTING",
	      "63s    A connects: UP");
	STORY(1, "a node that comes up after it was given up",
	      "0ms    A refuses a frame: CONNECTING",
	      "60s    the deadline of A passes: DEAD",
	      "3min   A connects: UP");
	STORY(1, "a socket buffer that is full for a moment",
	      "0ms    A takes a frame: UP",
	      "1ms    A is busy: CONNECTING",
	      "2ms    A takes a frame: UP");
	STORY(1, "an acknowledgement that no core takes is not worth a wait",
	      "0ms    A refuses a frame: CONNECTING",
	      "1s     the ack for A is dropped: IDLE",
	      "2s     the ack for A is dropped: IDLE",
	      "3s     A takes a frame: UP",
	      "4s     the ack for A is dropped: IDLE",
	      "5s     A refuses a frame: CONNECTING");
}

static void paths_that_break(void)
{
	STORY(1, "the connection is reset in the middle of traffic",
	      "0ms    posted 1..3 on A",
	      "0ms    A takes a frame: UP",
	      "1ms    A resets the connection: CONNECTING, 1..3 again on A",
	      "2ms    A refuses a frame: CONNECTING",
	      "3ms    A connects: UP",
	      "4ms    acked 3");
	STORY(1, "each frame that the core had fails, one after the other",
	      "0ms    posted 1..3 on A",
	      "0ms    A takes a frame: UP",
	      "0ms    the core of A keeps 2",
	      "0ms    the core of A keeps 3",
	      "1ms    A resets the connection: CONNECTING, 1 again on A",
	      "1ms    the core of A releases 2",
	      "1ms    a late error of A: CONNECTING, 1..2 again on A",
	      "1ms    the core of A releases 3",
	      "1ms    a late error of A: CONNECTING, 1..3 again on A",
	      "2ms    A connects: UP",
	      "3ms    acked 3");
	STORY(2, "a flapping link",
	      "0ms    posted 1..2 on A",
	      "0ms    A takes a frame: UP",
	      "10ms   link of A goes down: DOWN, 1..2 again on B",
	      "10ms   B takes a frame: UP",
	      "500ms  the peer answers over A: UP",
	      "510ms  posted 3 on A",
	      "520ms  link of A goes down: DOWN, 3 again on B",
	      "530ms  link of A goes down: DOWN",
	      "900ms  the peer answers over A: UP",
	      "901ms  acked 3");
	STORY(2, "a cable that is out before anything was sent",
	      "0ms    link of A goes down: DOWN",
	      "1ms    posted 1 on B",
	      "1ms    B takes a frame: UP",
	      "5s     A takes a frame: DOWN",
	      "5s     the peer answers over A: UP");
	STORY(2, "a cable that is pulled while it connects",
	      "0ms    A refuses a frame: CONNECTING",
	      "20ms   link of A goes down: DOWN",
	      "20ms   A refuses a frame: DOWN",
	      "21ms   a late error of A: DOWN",
	      "3s     the peer answers over A: UP");
	STORY(2, "the link at the other end goes down",
	      "0ms    posted 1..4 on A",
	      "0ms    A takes a frame: UP",
	      "5ms    the peer's link to A goes down: DOWN, 1..4 again on B",
	      "6ms    B takes a frame: UP",
	      "7ms    acked 4",
	      "2s     the peer answers over A: UP");
	STORY(2, "a black hole: the core takes frames all the time",
	      "0ms    posted 1 on A",
	      "0ms    A takes a frame: UP",
	      "100ms  link of A goes down: DOWN, 1 again on B",
	      "200ms  A takes a frame: DOWN",
	      "9s     A takes a frame: DOWN",
	      "10s    A refuses a frame: DOWN",
	      "11s    the peer answers over A: UP");
	STORY(2, "a grey rail: it comes back, and fails the first frame",
	      "0ms    health of A is 0: DOWN",
	      "1s     the peer answers over A: UP",
	      "1s     posted 1 on A",
	      "2s     A resets the connection: CONNECTING, 1 again on A",
	      "2s     health of A is 0: DOWN, 1 again on B",
	      "3s     the peer answers over A: UP");
	STORY(2, "a switch reboots, and all links are down",
	      "0ms    posted 1..2 on A",
	      "0ms    posted 3 on B",
	      "1ms    link of A goes down: DOWN, 1..2 again on B",
	      "1ms    link of B goes down: DOWN, 1..3 again on B",
	      "90s    the peer answers over B: UP",
	      "90s    the peer answers over A: UP",
	      "91s    acked 3");
}

static void rails_that_are_drained(void)
{
	STORY(2, "a rail is drained for maintenance, and taken back",
	      "0ms    A takes a frame: UP",
	      "0ms    posted 1..2 on A",
	      "1s     A is drained: DOWN, 1..2 again on B",
	      "2s     the ack for A is dropped: DOWN",
	      "3s     A is drained: DOWN",
	      "1h     A is taken back: UP");
	STORY(2, "a rail is drained while its core is busy",
	      "0ms    A takes a frame: UP",
	      "1ms    A is busy: CONNECTING",
	      "2ms    A is drained: DOWN",
	      "3ms    A takes a frame: DOWN",
	      "4s     A is taken back: UP");
	STORY(1, "a rail is opened anew, and its other peers connect again",
	      "0ms    A takes a frame: UP",
	      "1s     the rail of A is opened anew: CONNECTING",
	      "1s     the rail of A is opened anew: CONNECTING",
	      "2s     A connects: UP");
	STORY(1, "a rail is opened anew before its first frame",
	      "0ms    the rail of A is opened anew: CONNECTING",
	      "1ms    A connects: UP");
	STORY(2, "a rail is opened anew in a black hole: that alone heals nothing",
	      "0ms    A takes a frame: UP",
	      "1s     A resets the connection: CONNECTING",
	      "1s     link of A goes down: DOWN",
	      "2s     the rail of A is opened anew: DOWN",
	      "2s     A takes a frame: DOWN",
	      "3s     the peer answers over A: UP");
	STORY(1, "a rail is opened anew after its peer was given up",
	      "0ms    the deadline of A passes: DEAD",
	      "1s     the rail of A is opened anew: CONNECTING",
	      "2s     A connects: UP");
}

static void paths_that_are_late(void)
{
	STORY(1, "answers over a path that was never missed",
	      "0ms    the peer answers over A: IDLE",
	      "1ms    A refuses a frame: CONNECTING",
	      "2ms    the peer answers over A: CONNECTING",
	      "3ms    A connects: UP",
	      "4ms    the peer answers over A: UP");
	STORY(2, "all paths are silent until the peer is given up, and then answer",
	      "0ms    A takes a frame: UP",
	      "0ms    B takes a frame: UP",
	      "1s     link of A goes down: DOWN",
	      "5s     the deadline of A passes: DEAD",
	      "5s     the deadline of B passes: DEAD",
	      "6s     the peer answers over A: DEAD",
	      "7s     a late error of A: DEAD");
	STORY(1, "errors of a path that is idle, or given up",
	      "0ms    a late error of A: IDLE",
	      "1ms    A takes a frame: UP",
	      "2ms    a late error of A: CONNECTING",
	      "3ms    a late error of A: CONNECTING",
	      "60s    the deadline of A passes: DEAD",
	      "61s    a late error of A: DEAD",
	      "62s    the ack for A is dropped: IDLE");
	STORY(2, "the link of a path that was given up goes down, and comes back",
	      "0ms    A refuses a frame: CONNECTING",
	      "60s    the deadline of A passes: DEAD",
	      "61s    link of A goes down: DOWN",
	      "99s    the peer answers over A: UP");
	STORY(2, "the deadline is the peer's: a path that nothing was sent on ends, too",
	      "0ms    A refuses a frame: CONNECTING",
	      "60s    the deadline of A passes: DEAD",
	      "60s    the deadline of B passes: DEAD",
	      "61s    B takes a frame: UP");
}

/* ---- silence of a path: rel/silence.h ---- */

static void paths_that_are_dead(void)
{
	STORY(2, "one of two rails delivers nothing any more",
	      "0ms    posted 1..3 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "104ms  pong about A",
	      "106ms  nothing came: A DOWN, 1..3 again on B",
	      "108ms  acked 3",
	      "110ms  nothing else came");
	STORY(3, "two of three rails share a switch that is dead",
	      "0ms    posted 1 on A",
	      "0ms    posted 2 on B",
	      "0ms    posted 3 on C",
	      "2ms    nothing came: A begins, B begins, C begins",
	      "10ms   more came over C",
	      "12ms   nothing else came: C works",
	      "52ms   nothing came: A ASK KERNEL, B ASK KERNEL",
	      "60ms   more came over C",
	      "102ms  nothing else came: ASK, A ASK PEER, B ASK PEER, C works",
	      "103ms  pong about A",
	      "103ms  pong about B",
	      "104ms  nothing else came: A DOWN, B DOWN, 1..2 again on C",
	      "105ms  acked 3");
	STORY(2, "a rail that dies again soon after it came back",
	      "0ms    link of A goes down: DOWN",
	      "1s     the peer answers over A: UP",
	      "1s     posted 1 on A",
	      "1002ms nothing came: A begins",
	      "1052ms nothing came: A ASK KERNEL",
	      "1102ms nothing came: ASK, A ASK PEER",
	      "1103ms pong about A",
	      "1104ms nothing else came: A DOWN, 1 again on B");
	STORY(2, "the peer was asked three times before an answer came through",
	      "0ms    posted 1 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "202ms  nothing came: A ASK PEER",
	      "301ms  nothing came",
	      "402ms  nothing came: ASK, A ASK PEER",
	      "404ms  pong about A",
	      "405ms  pong about A",
	      "406ms  nothing else came: A DOWN, 1 again on B");
}

static void paths_that_are_slow(void)
{
	STORY(2, "a congested rail: its kernel answers, and the frames come in the end",
	      "0ms    posted 1..3 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "104ms  pong about A",
	      "106ms  nothing else came: late AGAIN, 1..3 again on B",
	      "300ms  more came over A",
	      "302ms  nothing else came: ASK, B begins",
	      "303ms  acked 3");
	STORY(2, "TCP waits for its retransmission timer longer than four timeouts",
	      "0ms    posted 1..2 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "104ms  pong about A",
	      "106ms  nothing else came: late AGAIN, 1..2 again on B",
	      "200ms  acked 1",
	      "202ms  nothing else came: MOVED, B begins",
	      "252ms  nothing came: B ASK KERNEL",
	      "302ms  nothing came: ASK, B ASK PEER",
	      "304ms  pong about A",
	      "306ms  nothing else came: late AGAIN, 2 again on A",
	      "400ms  nothing came: A begins");
	STORY(2, "a slow rail that moves on",
	      "0ms    posted 1..9 on A",
	      "2ms    nothing came: A begins",
	      "90ms   more came over A",
	      "92ms   nothing else came: A works",
	      "142ms  nothing came: ASK, A ASK KERNEL, late ASK",
	      "180ms  more came over A",
	      "182ms  nothing else came: A works, late ASK",
	      "190ms  acked 9",
	      "192ms  nothing else came");
	STORY(2, "a peer that only answers with data: the oldest frame changes",
	      "0ms    posted 1..9 on A",
	      "2ms    nothing came: A begins",
	      "60ms   acked 2",
	      "62ms   nothing else came: MOVED, A works",
	      "120ms  acked 4",
	      "122ms  nothing else came: MOVED, A works",
	      "180ms  acked 9");
	STORY(2, "a lossy rail: one frame is late, and all others arrive",
	      "0ms    posted 1..5 on A",
	      "2ms    nothing came: A begins",
	      "50ms   more came over A",
	      "52ms   nothing else came: A works",
	      "100ms  more came over A",
	      "102ms  nothing else came: ASK, A works, late ASK",
	      "103ms  pong with news of A",
	      "104ms  nothing else came: A works, late AGAIN, 1..5 again on B",
	      "105ms  acked 5");
	STORY(2, "the frame is late on the other rail, too, and goes back to the first",
	      "0ms    posted 1..5 on A",
	      "2ms    nothing came: A begins",
	      "100ms  more came over A",
	      "102ms  nothing else came: ASK, A works, late ASK",
	      "103ms  pong with news of A",
	      "104ms  nothing else came: A works, late AGAIN, 1..5 again on B",
	      "106ms  nothing came: B begins",
	      "154ms  nothing came",
	      "204ms  more came over A",
	      "205ms  more came over B",
	      "206ms  nothing else came: B works, late ASK",
	      "207ms  pong with news of B",
	      "208ms  nothing else came: B works, late AGAIN, 1..5 again on A",
	      "210ms  nothing came: A begins",
	      "212ms  nothing came",
	      "220ms  acked 5");
}

static void answers_about_paths(void)
{
	STORY(2, "the peer's report of more is from before the silence",
	      "0ms    posted 1..3 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "103ms  pong with news of A",
	      "104ms  nothing else came: A works, late AGAIN, 1..3 again on B",
	      "105ms  nothing came: B begins",
	      "154ms  nothing came",
	      "155ms  pong about A",
	      "156ms  nothing else came: B ASK KERNEL");
	STORY(2, "an old pong with another nonce",
	      "0ms    posted 1 on A",
	      "1ms    old pong about A",
	      "2ms    nothing came: A begins",
	      "30ms   old pong about A",
	      "52ms   nothing came: A ASK KERNEL",
	      "60ms   old pong about A",
	      "102ms  nothing else came: ASK, A ASK PEER",
	      "104ms  old pong about A",
	      "106ms  nothing else came: late AGAIN, 1 again on B",
	      "108ms  acked 1");
	STORY(2, "a pong before anything was asked",
	      "0ms    posted 1 on A",
	      "1ms    pong about A",
	      "2ms    nothing came: A begins",
	      "3ms    pong about A",
	      "52ms   nothing came: A ASK KERNEL",
	      "53ms   pong about A",
	      "102ms  nothing else came: ASK, A ASK PEER",
	      "104ms  acked 1");
	STORY(2, "all was acknowledged while the peer was asked: a late pong",
	      "0ms    posted 1 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "103ms  acked 1",
	      "104ms  nothing else came",
	      "105ms  pong about A",
	      "106ms  pong with news of A",
	      "107ms  posted 2 on A",
	      "108ms  nothing came: A begins",
	      "158ms  nothing came: A ASK KERNEL");
	STORY(2, "frames come just after the peer said that none had",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER",
	      "103ms  pong about A",
	      "104ms  pong with news of A",
	      "106ms  nothing else came: A works, late AGAIN, 1..2 again on B",
	      "107ms  acked 2");
}

static void our_own_silence(void)
{
	STORY(2, "this process was stopped in a debugger for a minute",
	      "0ms    posted 1 on A",
	      "2ms    nothing came: A begins",
	      "60s    back from the debugger: ASK, A ASK KERNEL, late ASK, peer ASK KERNELS",
	      "60001ms more came over A",
	      "60002ms nothing else came: A works, late ASK",
	      "60003ms acked 1");
	STORY(2, "the machine was suspended over night, and all had arrived before",
	      "0ms    posted 1..3 on A",
	      "2ms    nothing came: A begins",
	      "8h     more came over A",
	      "8h     the machine wakes up: ASK, A works, late ASK",
	      "8h     acked 3");
	STORY(2, "a peer that computes is silent over all rails: none is charged",
	      "0ms    posted 1 on A",
	      "0ms    posted 2 on B",
	      "0ms    kernel of A answers",
	      "0ms    kernel of B answers",
	      "2ms    nothing came: A begins, B begins",
	      "52ms   nothing came: A ASK KERNEL, B ASK KERNEL",
	      "102ms  nothing came: ASK, A ASK PEER, B ASK PEER",
	      "152ms  nothing came",
	      "202ms  nothing came: A ASK PEER, B ASK PEER",
	      "402ms  nothing came: ASK, A ASK PEER, B ASK PEER",
	      "802ms  nothing came: ASK, A ASK PEER, B ASK PEER, peer ASK KERNELS",
	      "3s     more came over A",
	      "3s     more came over B",
	      "3s     acked 2",
	      "3002ms nothing else came");
	STORY(2, "a HELLO into a black hole tries the other rail",
	      "0ms    a new session",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "102ms  nothing came",
	      "202ms  nothing came: A ELSEWHERE, 1..2 again on B",
	      "204ms  nothing came: B begins",
	      "210ms  acked 2",
	      "212ms  nothing else came");
	STORY(2, "pongs and frames cross in all orders",
	      "0ms    posted 1..2 on A",
	      "2ms    nothing came: A begins",
	      "20ms   pong with news of A",
	      "22ms   nothing else came: A works",
	      "72ms   nothing came: A ASK KERNEL",
	      "80ms   pong with news of A",
	      "82ms   nothing else came: A works");
	STORY(2, "what was due is done, at each point of the wait",
	      "0ms    posted 1 on A",
	      "2ms    nothing came: A begins",
	      "4ms    acked 1",
	      "6ms    nothing else came",
	      "7ms    old pong about A",
	      "10ms   posted 2 on A",
	      "12ms   nothing came: A begins",
	      "62ms   nothing came: A ASK KERNEL",
	      "64ms   acked 2",
	      "66ms   nothing else came",
	      "70ms   posted 3..4 on A",
	      "72ms   nothing came: A begins",
	      "122ms  nothing came: A ASK KERNEL",
	      "172ms  nothing came: ASK, A ASK PEER",
	      "173ms  pong about A",
	      "174ms  old pong about A",
	      "175ms  acked 4",
	      "176ms  nothing else came");
	STORY(2, "the answer comes when a kernel answers, and then another one",
	      "0ms    posted 1..2 on A",
	      "0ms    kernel of A answers",
	      "2ms    nothing came: A begins",
	      "52ms   nothing came: A ASK KERNEL",
	      "60ms   more came over A",
	      "62ms   nothing else came: A works");
}

Test(timeline_path, states)
{
	paths_that_connect();
	paths_that_break();
	rails_that_are_drained();
	paths_that_are_late();
	story_covers(PATH_TABLE);
	story_count(26);
}

Test(timeline_path, silence)
{
	paths_that_are_dead();
	paths_that_are_slow();
	answers_about_paths();
	our_own_silence();
	story_covers(SILENCE_TABLE);
	story_count(22);
}
