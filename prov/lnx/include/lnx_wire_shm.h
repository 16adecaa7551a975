/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte of an shm control message: what two lnx endpoints send each other over the
 * shared memory rail, where the application's messages have no header of ours.
 *
 * A control message is a message of the tag LNX_SHM_CTRL_TAG and of exactly
 * LNX_SHM_CTRL_BYTES.  Applications may use any tag: magic and ids tell it apart from a
 * message of theirs that has the same tag and size.  Both ends are on one host: integers are
 * in its byte order.
 *
 * RTS announces a large message, in order with all others.  The message stays in the
 * sender's memory until the receiver has read it and sends a FIN.  A receiver that may
 * not read it asks for copies with a GET.  These are messages of that tag, too, and of
 * exactly LNX_COPY_BYTES, in the order of the data; the FIN follows the last.
 *
 * A message that is not much longer than what a core copies is pushed: its sender copies it
 * unasked into messages of that tag and of LNX_PUSH_BYTES, the lnx_wire_push, and a short
 * rest into one of LNX_PUSH_REST_BYTES.  They are in the order of the data, the first one is
 * in order with all other messages, and no two messages of one sender come at the same time.
 *
 * PUT follows an operation that the core executes.  The core handles its queue in
 * order, so when the PUT is received, that operation has been executed.  The receiver
 * counts it, or answers it with a RESP, or both.
 *
 * Reads and large writes of a process whose memory its peer may not read or write are
 * not given to the core.  Their bytes are copied into messages of LNX_COPY_BYTES, the
 * lnx_wire_rma_copy: a write is its bytes, and a PUT to be answered; a read is a GET,
 * answered with its bytes and a RESP.
 *
 * An atomic with a result is executed by the lnx of its target: ATOMIC, a lnx_wire_shm_amo of
 * LNX_SHM_CTRL_BYTES or LNX_COPY_BYTES, is answered by another one, with the result, or by
 * a RESP with an error.
 *
 * HELLO is the first message of an endpoint whose name may have been another's, which has
 * ended: what it sends from then on belongs to the next session.
 */
#ifndef LNX_WIRE_NOTE_H
#define LNX_WIRE_NOTE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lnx_wire.h"

/* "lnx"; its upper half is the sign of the lower: a constant of four bytes is compared faster. */
#define LNX_SHM_CTRL_TAG		0xffffffffec786e6cULL
#define LNX_SHM_CTRL_MAGIC		0x3165746f6e786e6cULL	/* "lnxnote1" */
#define LNX_SHM_CTRL_BYTES		137
#define LNX_SHM_CTRL_PIECES		4
/* In flags: the receiver must ask for copies, and not try to read. */
#define LNX_SHM_CTRL_F_COPY		0x80

struct lnx_wire_shm_ctrl {
	uint64_t magic;
	uint64_t src;		/* endpoint ids; never 0 */
	uint64_t dst;
	uint8_t kind;		/* LNX_KIND_RTS_MSG, _RTS_TAG, _GET or _FIN */
	uint8_t flags;		/* RTS: LNX_WIRE_F_DATA, LNX_SHM_CTRL_F_COPY */
	uint8_t npiece;		/* RTS: 1..LNX_SHM_CTRL_PIECES; others: 0 */
	uint8_t to_low;		/* low byte of lnx_shm_ctrl_process of the one that it is
				 * for */
	int32_t pid;		/* RTS: process that has the message, */
	uint64_t cookie;		/* address of src there while the endpoint is
					 * open */
	uint64_t op;		/* sender's number of it; others repeat it */
	uint64_t tag;
	uint64_t data;		/* GET: the receiver's number of it */
	uint64_t len;		/* GET: bytes wanted, not 0; FIN: error or 0 */
	struct lnx_wire_piece {
		uint64_t addr;
		uint64_t len;	/* not 0; their sum is len */
	} piece[LNX_SHM_CTRL_PIECES];
	uint8_t to_high;	/* the other byte; the last of the message */
};
static_assert(offsetof(struct lnx_wire_shm_ctrl, to_high) == LNX_SHM_CTRL_BYTES - 1,
	      "a control message");

/*
 * What tells a process from another one that had the same name; 0: it is not known.  A core
 * looks for a name when it first sends there: that may be the next process, while we know the
 * one that has ended.  It must not read for that one's message, whose send fails; nor end
 * its own operation, which may have the same number.
 */
static inline uint16_t lnx_shm_ctrl_process(int pid)
{
	return pid > 0 ? (uint16_t)(1 + pid % UINT16_MAX) : 0;
}

#define LNX_COPY_MAGIC		0x3179706f63786e6cULL	/* "lnxcopy1" */
#define LNX_COPY_BYTES		4081	/* a core takes no more by copying */
#define LNX_COPY_DATA		4032

struct lnx_wire_copy {
	uint64_t magic;
	uint64_t src;		/* endpoint ids; never 0 */
	uint64_t dst;
	uint64_t op;		/* data of the GET */
	uint64_t off;		/* of the data, in the message */
	uint64_t len;		/* 1..LNX_COPY_DATA; not off + len < off */
	uint8_t data[LNX_COPY_DATA];
};
static_assert(sizeof(struct lnx_wire_copy) == LNX_COPY_BYTES - 1, "copy");

#define LNX_PUSH_MAGIC		0x3168737570786e6cULL	/* "lnxpush1" */
#define LNX_PUSH_BYTES		4095	/* a core takes no more by copying */
#define LNX_PUSH_REST_BYTES	191	/* and no more without a buffer of its own */

/* The head of each; the bytes of the message follow it.  What comes after those is 0. */
struct lnx_wire_push {
	uint64_t magic;
	uint64_t src;		/* endpoint ids; never 0 */
	uint64_t dst;
	uint32_t op;		/* the sender's number of the message */
	uint32_t off;		/* of the bytes, in the message */
	/* Only where off is 0: */
	uint64_t tag;
	uint64_t data;
	uint32_t len;		/* of the message: more than this one holds,
				 * LNX_PUSH_LEN_MAX at most */
	uint8_t kind;		/* LNX_KIND_PART_MSG or _PART_TAG */
	uint8_t flags;		/* LNX_WIRE_F_DATA */
	uint8_t to_low;		/* as of a control message */
	uint8_t to_high;
};
static_assert(sizeof(struct lnx_wire_push) == 56, "the first one's head");
#define LNX_PUSH_LEN_MAX	65536u

#define LNX_RMA_COPY_MAGIC		0x3170636d72786e6cULL	/* "lnxrmcp1" */
#define LNX_RMA_COPY_DATA		4000

/* A part of a write (PUT) or of the answer to a read (RESP), of LNX_COPY_BYTES too. */
struct lnx_wire_rma_copy {
	uint64_t magic;
	uint64_t src;		/* endpoint ids; never 0 */
	uint64_t dst;
	uint64_t op;		/* the sender's number of the write; or of the GET */
	uint64_t addr;		/* PUT: address in the registration; RESP: offset in
				 * the read */
	uint64_t key;		/* PUT: of the registration */
	uint64_t total;		/* PUT: bytes of the whole write */
	uint64_t data;		/* PUT: for the target's CQ, with F_DATA */
	uint32_t len;		/* 1..LNX_RMA_COPY_DATA; not addr + len < addr */
	uint8_t kind;		/* LNX_KIND_PUT or _RESP */
	uint8_t flags;		/* PUT: LNX_RMA_COPY_F_* */
	uint8_t reserved[2];
	uint64_t rest;		/* PUT: bytes of the registration that the write
				 * changes, from addr on; len are among them; not
				 * addr + rest < addr */
	uint8_t bytes[LNX_RMA_COPY_DATA];
};
static_assert(sizeof(struct lnx_wire_rma_copy) == LNX_COPY_BYTES - 1, "RMA copy");

/* Of a read up to this size the target keeps a copy, made in the order of its queue; a
 * longer one is sent as it is later: until it ends, nothing may follow it. */
#define LNX_RMA_COPY_KEPT	65536u

#define LNX_RMA_COPY_F_FIRST	0x01	/* the first part of its write */
#define LNX_RMA_COPY_F_LAST	0x02
#define LNX_RMA_COPY_F_DATA	0x04	/* in all parts of the write */
#define LNX_RMA_COPY_F_ALL	0x07

#define LNX_SHM_AMO_MAGIC		0x316f6d6173786e6cULL	/* "lnxsamo1" */
#define LNX_SHM_AMO_ROOM		(LNX_COPY_BYTES - 1 - 40)

/* An atomic with a result, or the result: as long as the shorter of the two sizes that has
 * room for it. */
struct lnx_wire_shm_amo {
	uint64_t magic;
	uint64_t src;		/* endpoint ids; never 0 */
	uint64_t dst;
	uint64_t op;		/* as of a lnx_wire_shm_put; never 0 */
	uint32_t len;		/* 0..LNX_SHM_AMO_ROOM: bytes that follow */
	uint8_t kind;		/* LNX_KIND_ATOMIC: bytes are a lnx_wire_atomic and what
				 * belongs to it; _RESP: they are the result */
	uint8_t reserved[3];
	uint8_t bytes[LNX_SHM_AMO_ROOM];
};
static_assert(sizeof(struct lnx_wire_shm_amo) == LNX_COPY_BYTES - 1, "atomic");

/* Bytes of all operands, and of the result: whole elements of any size, also in halves. */
#define LNX_SHM_AMO_BYTES \
	((LNX_SHM_AMO_ROOM - sizeof(struct lnx_wire_atomic) - \
	  LNX_ATOMIC_SEGS * sizeof(struct lnx_wire_atomic_seg)) / \
	 (2 * LNX_ATOMIC_ELEM_MAX) * (2 * LNX_ATOMIC_ELEM_MAX))

/* The same bytes as of a lnx_wire_shm_ctrl, as a PUT, GET, RESP or HELLO. */
struct lnx_wire_shm_put {
	uint64_t magic;
	uint64_t src;
	uint64_t dst;
	uint8_t kind;		/* LNX_KIND_PUT, _GET, _RESP or _HELLO: of that all that
				 * follows is 0 */
	uint8_t flags;		/* PUT: LNX_SHM_CTRL_F_*; GET: _TRY, which tells it
				 * from a lnx_wire_shm_ctrl; RESP: 0 */
	uint8_t n_targets;		/* PUT: 0..LNX_SHM_CTRL_PIECES; GET: 1.. too;
				 * RESP: 0 */
	uint8_t reserved;
	uint32_t err;		/* RESP: error or 0 */
	uint64_t op;		/* PUT: number of the operation, one more each time;
				 * 0: no RESP wanted.  RESP: of the last operation
				 * that it answers; it answers all before that too */
	/* What was written or changed; none: it was a message.  GET: what to read. */
	struct lnx_wire_target place[LNX_SHM_CTRL_PIECES];
};
static_assert(sizeof(struct lnx_wire_shm_put) == LNX_SHM_CTRL_BYTES - 1,
	      "a control message");

#define LNX_SHM_CTRL_F_COUNT	0x01	/* counters of this memory must count it */
#define LNX_SHM_CTRL_F_TRY		0x04	/* find out whether you may read my
						 * memory (core/shm_registry.h) */
#define LNX_SHM_CTRL_F_ALL		0x05

#endif
