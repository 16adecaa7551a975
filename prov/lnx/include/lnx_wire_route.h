/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte that endpoints and gateways (lnxrtd) exchange, beside the frames of
 * lnx_wire.h.  All integers are little-endian.  Structures have no padding; addresses in
 * them are bytes, in the form of lnx_wire_addr.h.
 *
 * A gateway relays frames between fabrics.  It keeps no state of messages: numbers,
 * acknowledgements, duplicates and retransmission are matters of the two ends.  In front
 * of each frame stands an envelope that says where it goes, so that a gateway that began
 * a moment ago can forward it.
 *
 * All records begin with magic, version and kind, which never move.  A receiver refuses
 * other versions; it drops kinds that it does not know.  Flags that a receiver of this
 * version does not know, and reserved bytes that are not 0, are refused.
 *
 * The route key is a number that all members of a routed network share (a file that only
 * its owner may read; 0: none).  It keeps networks apart and unprivileged strangers out.
 * It is sent in clear text: it is no protection from one that can read the wire.
 *
 * Sources.  Whatever sends to a gateway is a source there: an endpoint, or another
 * gateway.  It announces itself by GW_HELLO, over each of its rails that reaches the
 * gateway, and gets an account number in GW_INFO, which it writes into the envelopes it
 * sends.  The gateway charges what it stores to that account, up to a grant, and knows
 * from the hello where notes have to be sent.  A source that has no account yet writes
 * 0: all such frames of one rail of the gateway share one account, and get no notes.
 * Ids are known to others.  So a source is an id together with the addresses of its hello:
 * the same id with other addresses is another source, with another account.  The account, a
 * number at random, is told to these addresses only, and shows in hellos, questions and
 * notes that their sender has had an info, or is the gateway that has sent one.
 *
 * Hops.  A source sends with hops_left of 1 to LNX_ROUTE_HOPS_MAX: how many gateways may
 * forward the frame.  Each gateway takes one from it, adds one to hops_done and writes
 * its own id into via.  A gateway that gets 0 drops the frame.  The receiver gets the
 * envelope as well, and sees over how many gateways a frame came, and which was the
 * last.
 */
#ifndef LNX_WIRE_ROUTE_H
#define LNX_WIRE_ROUTE_H

#include <assert.h>
#include <stdint.h>

#include "lnx_wire.h"
#include "lnx_wire_addr.h"

#define LNX_ROUTE_MAGIC		0x52
#define LNX_ROUTE_VERSION	1
/* The newest that hellos and infos name, which is no other form of any record: those that name
 * it know that an info has `behind`. */
#define LNX_ROUTE_NEWEST	2

#define LNX_ROUTE_HOPS_MAX	15

/* A rail alone, as in an address: provider and form, group, address; then zeros. */
#define LNX_ROUTE_RAIL_BYTES	36

/* The bytes in front of a frame, and what is left for the frame. */
#define LNX_ROUTE_HEAD		64
#define LNX_ROUTE_INNER_MAX	(LNX_FRAME_LARGE - LNX_ROUTE_HEAD)

enum lnx_route_kind {
	LNX_ROUTE_FRAME = 1,		/* lnx_wire_route, then a frame */
	LNX_ROUTE_NOTE = 2,		/* lnx_wire_route_note */
	LNX_ROUTE_GW_HELLO = 3,		/* lnx_wire_gw, the sender's address blob, and
					 * if that has not all rails, the list of them */
	LNX_ROUTE_GW_INFO = 4,		/* lnx_wire_gw, the same, then lnx_wire_gw_info
					 * and what follows it */
	LNX_ROUTE_GW_ASK = 5,		/* lnx_wire_gw_ask */
	LNX_ROUTE_GW_TELL = 6,		/* the same, answered */
	LNX_ROUTE_KIND_MAX
};

/*
 * The envelope.  The rail is where the frame goes at last: the receiver's, one that is
 * in its address.
 */
struct lnx_wire_route {
	uint8_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;			/* 0 */
	uint8_t hops_left;		/* gateways that may still forward it */
	uint8_t hops_done;		/* gateways that have; the sum of both is at most
					 * LNX_ROUTE_HOPS_MAX */
	uint16_t account;		/* of its sender at the receiver; 0: none yet */
	uint64_t via;			/* id of the last gateway; 0 exactly if hops_done
					 * is 0 */
	uint64_t key;			/* the route key */
	uint32_t len;			/* bytes of the frame, which follows: at least a
					 * header, and it begins with LNX_WIRE_MAGIC */
	uint8_t rail[LNX_ROUTE_RAIL_BYTES];
};
static_assert(sizeof(struct lnx_wire_route) == LNX_ROUTE_HEAD,
	      "the envelope is one cache line");

/* Why a gateway did not forward a frame; also an example in its state. */
enum lnx_route_reason {
	LNX_NOTE_NO_ROUTE = 1,		/* it has no rail and no route to that net */
	LNX_NOTE_REFUSED = 2,		/* the destination refuses connections: no process
					 * has that port */
	LNX_NOTE_UNREACHABLE = 3,	/* it cannot be reached from there, or does not
					 * answer */
	LNX_NOTE_UNKNOWN_DST = 4,	/* the address is none that may be a destination:
					 * the gateway's own host, loopback, or on the net
					 * that the frame came from */
	LNX_NOTE_TTL = 5,		/* no hops left, or a loop */
	LNX_NOTE_FORBIDDEN = 6,		/* the gateway's rules, or its key, forbid it */
	LNX_NOTE_OVER_QUOTA = 7,	/* more than the grant, or no buffer: send less */
	LNX_NOTE_DRAINING = 8,		/* it will stop: use another gateway */
	LNX_NOTE_TOO_BIG = 9,		/* longer than a frame of the next rail */
	LNX_NOTE_NOT_ROUTER = 10,	/* routing is switched off there */
	LNX_NOTE_MAX
};

/*
 * A note to the sender of a frame, at most some per second.  It names the frame, so that
 * only one that has seen it can forge a note.
 */
struct lnx_wire_route_note {
	uint8_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;			/* 0 */
	uint8_t reason;			/* enum lnx_route_reason */
	uint8_t hops_done;		/* gateways that had forwarded it before */
	uint16_t account;		/* the receiver's, as in the envelope */
	uint64_t id;			/* the gateway's; never 0 */
	uint64_t key;
	uint32_t count;			/* frames dropped so since the last note; not 0 */
	uint8_t rail[LNX_ROUTE_RAIL_BYTES];	/* of the envelope */
	uint64_t src;			/* of the frame */
	uint64_t dst;
	uint32_t seq;
	uint32_t wait_ms;		/* frames to there are dropped for so long; 0: not
					 * known */
};
static_assert(sizeof(struct lnx_wire_route_note) == 88, "note");

#define LNX_GW_F_ROUTING	0x01	/* INFO: it forwards frames */
#define LNX_GW_F_DRAINING	0x02	/* INFO: it forwards, and will stop soon */
#define LNX_GW_F_GATEWAY	0x04	/* HELLO: from a gateway */
#define LNX_GW_F_ALL		0x07

/*
 * The start of GW_HELLO and GW_INFO.  A hello asks for an info, which is sent to the rail
 * of the hello's address that has the place `rail`.
 */
struct lnx_wire_gw {
	uint8_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;			/* LNX_GW_F_* */
	uint8_t oldest;			/* versions of this protocol that it speaks */
	uint8_t newest;
	uint16_t account;		/* HELLO: the account that the sender has, or 0: then
					 * it is answered, and changes nothing of a source
					 * that is known; INFO: that of its receiver, never
					 * 0 */
	uint64_t id;			/* endpoint id of the sender, that of the blob */
	uint64_t key;
	uint32_t nonce;			/* never 0.  HELLO: a random number; INFO: that of
					 * the last hello from its receiver, whether it
					 * answers that or says something new: the
					 * gateway's id is known to all of its peers, and
					 * shows nothing */
	uint16_t rail;			/* HELLO: place of the rail that it was sent from;
					 * INFO: 0 */
	uint16_t nrails;		/* bytes of the list of rails behind the blob */
};
static_assert(sizeof(struct lnx_wire_gw) == 32, "gateway head");

#define LNX_GW_HELLO_BYTES	(32 + LNX_WIRE_ADDR_BYTES)

/* What a GW_INFO says behind the rails.  Followed by nrail lnx_wire_gw_rail, one for each
 * of the gateway's rails, and nnet lnx_wire_gw_net. */
struct lnx_wire_gw_info {
	uint32_t large;			/* grant: buffers for frames above 4 KiB that the */
	uint32_t small;			/* source may fill at a time, and for others */
	uint32_t frame_max;		/* bytes of the longest envelope with its frame */
	uint8_t hops;			/* with `behind`: gateways from it to the one that takes no
					 * more, at least 1, below LNX_ROUTE_HOPS_MAX; that
					 * number: it does not count them */
	uint8_t nrail;			/* 1..LNX_WIRE_RAILS_MAX */
	uint8_t nnet;			/* 0..LNX_GW_NETS_MAX */
	uint8_t behind;			/* bytes of the longest envelope with its frame that
					 * all gateways behind it take: LNX_ROUTE_HEAD, and so
					 * many LNX_GW_BEHIND_UNIT; 0: not known.  0 to
					 * receivers whose hello does not name
					 * LNX_ROUTE_NEWEST */
};
static_assert(sizeof(struct lnx_wire_gw_info) == 16, "gateway info");

#define LNX_GW_BEHIND_UNIT	512
#define LNX_GW_BEHIND_MIN	(LNX_FRAME_MAX / LNX_GW_BEHIND_UNIT)
#define LNX_GW_BEHIND_MAX	((LNX_FRAME_LARGE - LNX_ROUTE_HEAD) / LNX_GW_BEHIND_UNIT)

#define LNX_GW_RAIL_DOWN	0
#define LNX_GW_RAIL_UP		1

struct lnx_wire_gw_rail {
	uint8_t place;			/* of the rail, ascending */
	uint8_t state;			/* LNX_GW_RAIL_* */
	uint16_t health;		/* 0..1000 */
};
static_assert(sizeof(struct lnx_wire_gw_rail) == 4, "gateway rail");

/* A net that it forwards to. */
struct lnx_wire_gw_net {
	uint8_t prov;			/* provider number */
	uint8_t hops;			/* 1: it has a rail there */
	uint16_t group;
};
static_assert(sizeof(struct lnx_wire_gw_net) == 4, "gateway net");

#define LNX_GW_NETS_MAX		64
#define LNX_GW_INFO_BYTES_MAX \
	(LNX_GW_HELLO_BYTES + LNX_WIRE_RAILS_BYTES + 16 + \
	 4 * LNX_WIRE_RAILS_MAX + 4 * LNX_GW_NETS_MAX)

/* Answers to GW_ASK. */
enum lnx_route_tell {
	LNX_TELL_ALIVE = 1,		/* a kernel there takes connections to the port */
	LNX_TELL_REFUSED = 2,		/* it refuses them: no process has the port */
	LNX_TELL_UNREACHABLE = 3,	/* the net says that there is no way */
	LNX_TELL_SILENT = 4,		/* no answer in time */
	LNX_TELL_RAIL_DOWN = 5,		/* the gateway has no rail up on that net */
	LNX_TELL_NO_ROUTE = 6,
	LNX_TELL_UNKNOWN = 7,		/* it cannot find out on such a net, or the next
					 * gateway is not known yet */
	LNX_TELL_MAX
};

/* Does the host of a destination answer?  A gateway that reaches it over another one passes the
 * question on, in its own name, and the answer back. */
struct lnx_wire_gw_ask {
	uint8_t magic;
	uint8_t version;
	uint8_t kind;
	uint8_t flags;			/* 0 */
	uint8_t tell;			/* ASK: 0; TELL: enum lnx_route_tell */
	uint8_t hops_done;		/* ASK: gateways that have passed it on, at most
					 * LNX_ROUTE_HOPS_MAX; TELL: 0 */
	uint16_t account;
	uint64_t id;			/* of the sender; never 0 */
	uint64_t key;
	uint32_t nonce;			/* never 0; TELL: that of the ASK */
	uint8_t rail[LNX_ROUTE_RAIL_BYTES];
};
static_assert(sizeof(struct lnx_wire_gw_ask) == 64, "ask");

/*
 * Frames between the two ends of a routed path (lnx_wire.h has the header), for large
 * messages and remote memory: no gateway can be read through.  Both are outside the
 * sequence and may be lost or repeated.  The end that wants the data asks for it with
 * PULL, again if it does not come; a PIECE is copied only into a range that was asked for
 * and is not there yet.  Receivers without routed paths refuse these kinds.
 *
 *	PULL	no payload.  data: number of the pull, never 0; key: op of the RTS; seq:
 *		segment, below LNX_RTS_SEGS; tag: offset in it; len: bytes wanted,
 *		1..LNX_PULL_MAX.  Of remote memory seq is LNX_PULL_MEMORY, key that of
 *		the registration, and tag the address.  ack: bytes of the longest PIECE
 *		that shall come, 0: LNX_PAYLOAD_MAX; and from bit LNX_PULL_WAY_SHIFT on the
 *		way that these shall come. 0: back over the gateway that the PULL came over; 1:
 *		over the next one that works, and so on, round and round. With several gateways
 *		behind each other an answer may go over others than the question: both ends may
 *		reach their gateways, and one of those in between be cut off
 *	PIECE	data: number of the pull; tag: offset in the segment; len: bytes of the
 *		payload, not 0; key: 0
 */
#define LNX_KIND_PULL		32
#define LNX_KIND_PIECE		33
#define LNX_PULL_MAX		(1u << 20)
#define LNX_PULL_WAY_SHIFT	24
#define LNX_PULL_MEMORY		LNX_RTS_SEGS

#endif
