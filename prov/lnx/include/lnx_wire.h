/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte of a framed message on the wire.  (The address blob is in
 * lnx_wire_addr.h.)  All integers are little-endian and unaligned access is never
 * needed: the header is 64 bytes, payload follows it directly.
 *
 * Versions: a receiver drops frames whose version it does not know and logs both
 * versions, now and then if they keep coming.  Fields and kinds marked reserved are
 * sent as 0, or not sent, and receivers of this version ignore them.  So later versions
 * may use them for things that old receivers can ignore.
 *
 * Credit bounds what a receiver has to store of messages that no receive matches yet.
 * It is the number of payload bytes in PARTs, MOREs, and MSGs and TAGs longer than
 * LNX_PAYLOAD_MAX that it takes since the session began: the number only grows, and of
 * two the larger one counts.  A sender without credit announces its messages; the FIN of
 * such a message is the first frame that may grant some.
 *
 * A session is what two endpoints have with each other.  Each end names it by a random
 * number of its own, the session id, which is `src` of every frame that it sends.  The
 * HELLO with number 0 begins the session and says which endpoint the id belongs to.  A
 * frame with an id that the receiver does not know belongs to no session and is
 * refused, whatever port or address it came from: by NO_SESSION, if the sender can be
 * told.  An endpoint that gives a peer up, or begins again, takes another id.
 *
 * Frames of sequenced kinds are numbered per session and direction, starting at 0 with
 * the HELLO.  A receiver handles them in that order whatever path they took, drops what
 * it has already handled, and acknowledges cumulatively: `ack`, in every frame it sends,
 * is the next number it expects.  The other kinds are outside the sequence and may be
 * lost or repeated.  A later HELLO tells the addresses of rails that were opened anew,
 * which replace those of the rails with the same index, and of new rails.  So does a
 * PROBE with an address and a key, which is sent over the path it is about.  Of two, the
 * one with the larger key counts.
 */
#ifndef LNX_WIRE_H
#define LNX_WIRE_H

#include <assert.h>
#include <stdint.h>

#define LNX_WIRE_MAGIC		0x4c
#define LNX_WIRE_VERSION	1

/* In data of a PROBE: it asks how soon the peer answers over the path that it takes. */
#define LNX_WIRE_PROBE_LATENCY	(UINT64_C(1) << 63)
/* With the former: a user asks (lnxctl ping).  Its PONG is no sample. */
#define LNX_WIRE_PROBE_PING	(UINT64_C(1) << 62)

/* Every receiver takes frames up to this size, header included. */
#define LNX_FRAME_MAX		16384
/* One that has granted credit takes frames of MSG, TAG, PART and MORE up to this size over
 * rails that carry messages as long; both ends know from the provider which ones do. */
#define LNX_FRAME_LARGE		(98304 + 64)

enum lnx_wire_kind {
	LNX_KIND_HELLO = 1,	/* sequenced; payload: sender's address blob, and if
				 * needed all its rails (lnx_wire_addr.h); key: 1 +
				 * number of changes of these, or 0; data: the
				 * receiver's session id, 0: not known, or not yet
				 * when the HELLO was sent first: the sender's session
				 * is with that one, or is free for it; tag: when the
				 * session began, of two the later one counts.  With F_KEYED
				 * lnx_wire_proof ends the payload */
	LNX_KIND_MSG = 2,	/* sequenced; untagged message, whole payload; key:
				 * credit */
	LNX_KIND_TAG = 3,	/* sequenced; tagged message, the same */
	LNX_KIND_RTS_MSG = 4,	/* sequenced; untagged, payload: lnx_wire_rts; key:
				 * bytes of the message that follow in MOREs, any
				 * others are read */
	LNX_KIND_RTS_TAG = 5,	/* sequenced; tagged, the same */
	LNX_KIND_FIN = 6,	/* sequenced; data: the RTS's op, len: error; key:
				 * credit; payload: lnx_wire_moved, if the RTS asked.
				 * data 0: of none, for its acknowledgement */
	LNX_KIND_ACK = 7,	/* carries ack, and what came over a path: tag: 1 +
				 * path or 0, data: bytes of frames; len, key: the
				 * same for another path.  Payload: none, or
				 * lnx_wire_credit, or that and lnx_wire_allowance */
	LNX_KIND_PROBE = 8,	/* asks for an ACK now: does the peer live?  With
				 * tag, 1 + a path of the sender's: asks for a PONG.
				 * data: a number, with LNX_WIRE_PROBE_LATENCY or
				 * without, which comes back.
				 * Payload: none, or the sender's address blob; key:
				 * as of HELLO, 0 without a payload */
	LNX_KIND_BYE = 9,	/* the endpoint is closing; seq: no frame with that
				 * number or a later one will follow */
	LNX_KIND_NO_SESSION = 10, /* refuses a frame: src: its dst, dst: its src,
				 * which only a receiver of it can know; tag:
				 * LNX_REFUSED_*, data: with ENDED, 1 if the session
				 * was known, or the frame acknowledges anything;
				 * with OLD, when the session there began; with
				 * NONCE, the nonce; with ENDPOINT, the port where
				 * the frame came, 0: not known; key: with ENDPOINT,
				 * 1 + the frame's path, 0: not known */
	LNX_KIND_PONG = 11,	/* answers a PROBE over the same path: its tag and
				 * data; key: bytes of frames over that path */
	LNX_KIND_RAIL = 12,	/* a rail of the sender's, tag: its index in the
				 * address; data: LNX_WIRE_RAIL_* */
	/* Remote memory, all sequenced.  key is that of a registration of the receiver;
	 * tag is the address where the access begins: an offset in it, or a virtual
	 * address of the receiver's, as the receiver has chosen. */
	LNX_KIND_PUT = 13,	/* payload: lnx_wire_put if F_PUT, then data */
	LNX_KIND_PUT_RTS = 14,	/* tag: number of lnx_wire_target in the payload,
				 * then lnx_wire_rts; the receiver reads */
	LNX_KIND_GET = 15,	/* data: op; len: bytes wanted in the RESP */
	LNX_KIND_KEYS = 16,	/* data: op; wants lnx_wire_keys in the RESP */
	LNX_KIND_ATOMIC = 17,	/* data: op; payload: lnx_wire_atomic */
	LNX_KIND_RESP = 18,	/* data: op; tag: error or 0; payload: len bytes */
	/* A message in several frames: the first one, and the others.  No other message
	 * or RTS comes between them.  To receivers that gave credit only. */
	LNX_KIND_PART_MSG = 19,	/* sequenced; untagged; len: of the message, key:
				 * credit; payload: its first bytes, not all */
	LNX_KIND_PART_TAG = 20,	/* sequenced; tagged, the same */
	LNX_KIND_MORE = 21,	/* sequenced; tag: offset in the message, where the
				 * frame before ended; len: bytes, the payload */
	LNX_KIND_MAX
};

/*
 * State of a rail: its link is down, or up; or it is up and must not be used while
 * another can be; or it is up and has a weight, WEIGHT + 1 to 999: so many thousandths of
 * its share of what goes over several.  The last two are repeated, and are valid for two
 * seconds each time; a receiver that does not know them takes them, like any other number,
 * for up.
 */
#define LNX_WIRE_RAIL_DOWN	0
#define LNX_WIRE_RAIL_UP	1
#define LNX_WIRE_RAIL_DRAIN	2
#define LNX_WIRE_RAIL_WEIGHT	1024

/* Why a frame was refused. */
#define LNX_REFUSED_ENDPOINT	1	/* another endpoint has that address */
#define LNX_REFUSED_ENDED	2	/* the session has ended there, or never was */
#define LNX_REFUSED_OLD		3	/* a later session has begun */
#define LNX_REFUSED_NONCE	4	/* a HELLO without this nonce: send it again */
#define LNX_REFUSED_KEY		5	/* a HELLO of another job key, or of none */
#define LNX_REFUSED_FULL	6	/* a HELLO for which there is no room now: send it
					 * again */

#define LNX_WIRE_F_DATA		0x01	/* data holds the application's CQ data */
#define LNX_WIRE_F_ROUTED	0x02	/* reserved: came through a gateway */
#define LNX_WIRE_F_ACK_NOW	0x04	/* sender waits for the acknowledgement */
#define LNX_WIRE_F_PUT		0x08	/* a PUT with lnx_wire_put */
#define LNX_WIRE_F_LAST		0x10	/* PUT, GET: the last of its write or read */
#define LNX_WIRE_F_KEYED	0x20	/* a HELLO with lnx_wire_proof */
#define LNX_WIRE_F_MSG		0x07	/* those that any kind may have */
#define LNX_WIRE_F_ALL		0x3f

struct lnx_wire_hdr {
	uint8_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;
	uint8_t hops;		/* reserved: hop limit of a routed frame */
	uint8_t path;		/* sender's number of the path it took */
	uint16_t rail;		/* index of the sender's rail that it left on */
	uint32_t seq;
	uint32_t ack;
	uint64_t src;		/* the sender's session id; never 0 */
	uint64_t dst;		/* the receiver's endpoint id; never 0 */
	uint64_t tag;
	uint64_t data;
	uint64_t len;		/* of the application's message */
	uint64_t key;		/* of remote memory; else 0 */
};
static_assert(sizeof(struct lnx_wire_hdr) == 64, "header is one cache line");

#define LNX_PAYLOAD_MAX		(LNX_FRAME_MAX - 64)
#define LNX_PAYLOAD_LARGE	(LNX_FRAME_LARGE - 64)

/* Paths that a sender may have to one receiver: 0..LNX_WIRE_PATHS - 1. */
#define LNX_WIRE_PATHS		8

/*
 * The end of a HELLO's payload, if the sender has a job key.  The hash is BLAKE2b, whose
 * key is made from the job key (core/job_key.c), of all that comes before it: the header,
 * with hops, path, rail and ack as 0, the address, which has the sender's endpoint id,
 * and the nonce.  The receiver chooses the nonce and tells it in a NO_SESSION, so that a
 * HELLO from before then has no effect.  A HELLO with the receiver's session id, which is
 * not older either, needs none.
 */
#define LNX_WIRE_HASH_BYTES	32
struct lnx_wire_proof {
	uint64_t nonce;		/* 0: not known */
	uint8_t hash[LNX_WIRE_HASH_BYTES];
};
static_assert(sizeof(struct lnx_wire_proof) == 40, "proof");

/* Payload of an ACK, if any: this, */
struct lnx_wire_credit {
	uint64_t limit;
};
static_assert(sizeof(struct lnx_wire_credit) == 8, "credit");

/*
 * and then perhaps this: how many messages the receiver of the ACK may begin, while too many
 * wait for receives.  The number of the change grows with each, by less than half of its
 * range between two that come; of two the later one counts.
 */
struct lnx_wire_allowance {
	uint32_t change;	/* odd: throttled */
	uint32_t n;		/* then: of the frames with the number `ack` and later ones
				 * so many may be MSG, TAG, RTS or PART */
};
static_assert(sizeof(struct lnx_wire_allowance) == 8, "allowance");

/*
 * Payload of an RTS: where the receiver may read the message.  The source is nseg
 * pieces, each registered with nkey rails.  Followed by nseg uint64_t lengths (their
 * sum is the header's len), then nseg * nkey lnx_wire_key, all keys of the first piece
 * first.
 *
 * The receiver chooses the paths.  If the sender has rules about them, it says so in the
 * keys: while a path of those works for which `from` has a bit, no other one is used.
 */
struct lnx_wire_rts {
	uint64_t op;		/* sender's number of the operation; FIN repeats it */
	uint16_t nseg;		/* 1..LNX_RTS_SEGS */
	uint16_t nkey;		/* 1..LNX_RTS_KEYS */
	uint32_t flags;		/* LNX_RTS_F_*; others are ignored */
};
static_assert(sizeof(struct lnx_wire_rts) == 16, "rts");

#define LNX_RTS_F_MOVED	0x1u	/* the FIN must tell which rails carried it */

#define LNX_RTS_SEGS	4
#define LNX_RTS_KEYS	16

struct lnx_wire_key {
	uint16_t rail;		/* sender's rail, index in its address */
	uint16_t from;		/* of an RTS: rails of the receiver that the sender wants
				 * it to be read from, bits by their indexes; 0 in all
				 * keys: any.  Else 0 */
	uint32_t reserved;
	uint64_t key;
	uint64_t addr;		/* remote address of the piece's first byte */
};
static_assert(sizeof(struct lnx_wire_key) == 24, "key");

/* Payload of a FIN, if requested: up to LNX_WIRE_PATHS of these. */
struct lnx_wire_moved {
	uint16_t rail;		/* of the RTS's sender, index in its address */
	uint16_t reserved0;
	uint32_t reserved1;
	uint64_t bytes;		/* bytes that the receiver read over it */
};
static_assert(sizeof(struct lnx_wire_moved) == 16, "moved");

/* A piece of the receiver's memory that a PUT_RTS is to write. */
struct lnx_wire_target {
	uint64_t addr;
	uint64_t key;
	uint64_t len;		/* their sum is the header's len */
};
static_assert(sizeof(struct lnx_wire_target) == 24, "place");

#define LNX_RMA_TARGETS_MAX		4

/* Start of the payload of a PUT with F_PUT. */
struct lnx_wire_put {
	uint64_t op;		/* data of the requested RESP; 0: none */
	uint64_t total;		/* bytes of the write that ends with this */
};
static_assert(sizeof(struct lnx_wire_put) == 16, "put");

#define LNX_WIRE_KEYS_READ	0x1	/* the registration may be read */
#define LNX_WIRE_KEYS_WRITE	0x2	/* it may be written */
#define LNX_WIRE_KEYS_TELL	0x4	/* its owner counts writes: send an empty PUT
					 * with F_LAST after each, */
#define LNX_WIRE_KEYS_TELL_READ	0x8	/* and reads: send a GET of 0 bytes */

/*
 * Payload of a RESP to KEYS: the keys of the registration on each rail, with which the
 * peer can read and write it.  Followed by nkey lnx_wire_key, whose addr is that of
 * byte 0.
 */
struct lnx_wire_keys {
	uint64_t len;		/* bytes of the registration */
	uint16_t nkey;		/* 1..LNX_RTS_KEYS */
	uint16_t access;	/* LNX_WIRE_KEYS_* */
	uint32_t reserved;
	uint64_t origin;	/* address of its byte 0, as used in a PUT */
};
static_assert(sizeof(struct lnx_wire_keys) == 24, "keys");

static_assert(sizeof(struct lnx_wire_rts) + LNX_RTS_SEGS * 8 +
	      LNX_RTS_SEGS * LNX_RTS_KEYS * sizeof(struct lnx_wire_key) <=
	      LNX_PAYLOAD_MAX, "the largest RTS fits a frame");

/*
 * Payload of an ATOMIC: the operation, then nseg lnx_wire_atomic_seg: the targets, then
 * noperand arrays of count elements: the operand, the comparison.  op and type have the
 * numbers of libfabric's enums; elements are little-endian.  A RESP answers it, with
 * the count elements found there if cls says so.
 */
struct lnx_wire_atomic {
	uint8_t op;		/* enum fi_op */
	uint8_t type;		/* enum fi_datatype */
	uint8_t cls;		/* 0: base, 1: fetch, 2: compare */
	uint8_t noperand;	/* 0..2 */
	uint8_t nseg;		/* 1..LNX_ATOMIC_SEGS */
	uint8_t size;		/* bytes of an element, 1..LNX_ATOMIC_ELEM_MAX */
	uint16_t count;		/* elements in all */
};
static_assert(sizeof(struct lnx_wire_atomic) == 8, "atomic");

struct lnx_wire_atomic_seg {
	uint64_t addr;		/* as the tag of a PUT */
	uint64_t key;		/* of a registration of the receiver */
	uint16_t count;		/* elements there */
	uint16_t reserved0;
	uint32_t reserved1;
};
static_assert(sizeof(struct lnx_wire_atomic_seg) == 24, "atomic piece");

#define LNX_ATOMIC_SEGS		4
#define LNX_ATOMIC_ELEM_MAX	32

/* Bytes of all operands, and of the answer: whole elements of any size. */
#define LNX_ATOMIC_BYTES_MAX \
	((LNX_PAYLOAD_MAX - sizeof(struct lnx_wire_atomic) - \
	  LNX_ATOMIC_SEGS * sizeof(struct lnx_wire_atomic_seg)) / \
	 LNX_ATOMIC_ELEM_MAX * LNX_ATOMIC_ELEM_MAX)

#endif
