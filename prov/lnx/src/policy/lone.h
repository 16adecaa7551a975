/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a large message goes to a peer with several paths while no other large one is under way
 * to it: a lone one.
 *
 * To be read over all paths at once is the fastest way for its bytes.  But it takes three
 * steps: the announcement, the requests of the reads, and the data.  Over a long network, or
 * where a process waits for its core before each of its steps, they cost more than the bytes
 * do.  In frames that follow the announcement at once it takes one step.
 *
 * Which of the two is sooner is measured, for messages of about the same size: from the
 * announcement to its FIN.  Where reading is as fast as a network of 100 MB/s, it is not
 * doubted.  Otherwise some messages take the other way now and then, more and more rarely
 * while that is not the better one.
 *
 * With others under way the steps of one overlap with the data of another: then it is read.
 * Pure; the time is passed in.
 */
#ifndef LNX_LONE_H
#define LNX_LONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From 32 KiB to less than 8 MiB; longer ones are read. */
#define LNX_LONE_MIN	32768u
#define LNX_LONE_SIZES	8u

/* A trial, in messages: ended sooner if one takes so many times as long as the other way does.  And
 * how many are before the first one, and between two, at least and at most. */
#define LNX_LONE_TRIAL	4u
#define LNX_LONE_WORSE	2u
#define LNX_LONE_WAIT_FIRST 4u
#define LNX_LONE_WAIT_MIN 16u
#define LNX_LONE_WAIT_MAX 1024u

/* Reading that takes no longer than LNX_LONE_FAST_NS, and a microsecond for so many bytes, is not
 * doubted. */
#define LNX_LONE_FAST_BYTES 100u

enum lnx_lone_way {
	LNX_LONE_READ,
	LNX_LONE_FRAMES,
	LNX_LONE_WAYS,
};

/* Messages of one size. */
struct lnx_lone_size {
	uint32_t us[LNX_LONE_WAYS];	/* that one takes, smoothed; 0: not known */
	uint16_t wait;			/* messages between two trials */
	uint16_t left;			/* messages until the next one; of it, if `trial` */
	uint8_t way;			/* the better one */
	bool trial;			/* the other one is tried */
};

/* Zero: nothing is known. */
struct lnx_lone {
	uint64_t op;			/* of the message that is measured; 0: none is */
	uint64_t since_ns;		/* its announcement */
	uint32_t len;
	uint8_t way;
	struct lnx_lone_size size[LNX_LONE_SIZES];
};

/* The way of the next lone message.  Counts it. */
enum lnx_lone_way lnx_lone_next(struct lnx_lone *l, size_t len);

/* Message op was announced, and goes that way; op 0: it is not to be measured.  What was
 * announced before and has not ended is not alone any more: it is not measured either. */
void lnx_lone_began(struct lnx_lone *l, uint64_t op, size_t len, enum lnx_lone_way way,
		    uint64_t now);

/* Message op has arrived. */
void lnx_lone_ended(struct lnx_lone *l, uint64_t op, uint64_t now);

#endif
