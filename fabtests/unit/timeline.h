/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stories of a session, of its paths and of its peer, told with times: what happens, and
 * all that rel/ makes of it.  A story is lines like
 *
 *	"102ms  nothing came: ASK, A ASK PEER"
 *
 * which is a time, what happens then, and every verdict that this leads to; no colon:
 * none.  What the caller does upon a verdict (rel/control.c, rel/detect.c, rel/liveness.c)
 * is done.
 *
 * A session has acknowledged something before, unless the story says "a new session".
 * Frames are counted from 1.  A path may be silent for 100 ms; the first retransmission
 * timeout is 100 ms, too.  Peers are given up after 5 s, or 20 s if a kernel answers.
 *
 * What happens:
 *
 *	posted 1..3 on A	frames leave over path A
 *	acked 3			frames up to 3 are acknowledged
 *	nothing came		no packet; all timers are looked at.  "nothing else came",
 *				after what did
 *	more came over A	an acknowledgement reports bytes
 *	probe over A		a question about the delay of the path leaves
 *	pong 1 over A		the answer to such a question, or to ASK
 *	pong about A		the answer to ASK PEER: no more had come over A
 *	old pong about A	the answer to an earlier question
 *	pong with news of A	the answer to ASK PEER: more had come
 *	kernel of A answers, is silent, refuses, cannot be asked
 *				what is said when it is asked
 *	the core of A keeps 2, releases 2
 *	... and the phrases of paths and peers in timeline.c, which lead to a state
 *
 * Verdicts, in this order:
 *
 *	MOVED, ASK, INSIST	of rel/loss, about the oldest frame
 *	A begins, A works, A ASK KERNEL, A ASK PEER, A ELSEWHERE, A DOWN
 *				of rel/silence, about a path
 *	late ASK, late AGAIN	of rel/loss, about a frame while other paths work
 *	peer ASK KERNELS, peer REFUSED, peer TIMED OUT
 *				of rel/silence, about the peer
 *	LOST			of rel/loss, after a pong
 *	UP, DEAD, ...		the state of the path or the peer
 *	probe 1 on A		the oldest frame leaves again
 *	1..3 again on B		frames leave again, over that path
 */
#ifndef TIMELINE_H
#define TIMELINE_H

void story(unsigned npath, const char *title, const char *const *lines);

#define STORY(npath, title, ...) \
	story(npath, title, (const char *const[]){ __VA_ARGS__, NULL })

/* Each state has been in some story when each event happened. */
enum story_table { PATH_TABLE, LIFE_TABLE, LOSS_TABLE, SILENCE_TABLE, LIVENESS_TABLE };
void story_covers(enum story_table table);
/* At least so many stories were told in this test, and no two have the same title. */
void story_count(unsigned least);

#endif
