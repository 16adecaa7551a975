/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gateways of an endpoint, and the routes over them (conf/routes.h, policy/route.h).  An
 * endpoint that has no routes has none of this.  Owner lock held.
 *
 * A leg is the way from one of our rails to a rail of a gateway.  For the paths that begin
 * with it, it is a rail (obj/rail.h): its core endpoint is made of the functions in
 * rail/leg.c, which put the envelope in front of a frame and send both over the rail below,
 * and its AV has the ends that frames go to.  So neither frames nor the reliable channel
 * know of routes.  Its health is that of the gateway's rail, as all peers find it.
 *
 * It is no rail of the endpoint, which neither polls it nor has it in its address; its
 * `below` is the rail that is.
 */
#ifndef LNX_GATEWAY_H
#define LNX_GATEWAY_H

#include "base/optab.h"
#include "conf/routes.h"
#include "obj/rail.h"
#include "os/ping.h"
#include "policy/route.h"
#include "wire/route.h"

/* One end that frames go to over a leg: an entry of its AV. */
struct lnx_leg_end {
	bool used;
	bool closed;			/* no route leads there any more: it takes nothing */
	uint64_t short_ns;		/* when longer pieces got lost, and short ones did not; 0:
					 * not of late */
	uint64_t way_ns;		/* since when PIECEs shall come that way (PULL): */
	uint64_t way_pause_ns;		/* not the usual way again before so long; 0: never left */
	uint8_t way;			/* 0: the usual one, which is that of PONGs */
	uint32_t nonce;			/* of a question about it without an answer; 0: there is
					 * none */
	uint64_t host_ask_ns;		/* when it was asked about as the end seemed to hear nothing */
	uint64_t noted_ns;		/* the last note about it, and */
	uint64_t noted_pause_ns;	/* the pause after that; 0: none has come */
	struct lnx_addr_rail to;
};

struct lnx_leg {
	struct lnx_rail rail;		/* first: what paths see of it */
	struct lnx_gw *gw;
	fi_addr_t gateway;		/* its rail, in the AV of rail.below */
	bool hello_due;
	uint32_t nonce;			/* of the last hello; 0: none has left */
	uint32_t answered_nonce;	/* of the last one that has an answer; 0: none has */
	uint64_t hello_ns;		/* when the first hello left that has no answer; 0: all
					 * have one */
	uint64_t answered_ns;		/* the last answer to what was asked over it; 0: none */
	uint64_t sent_frames, sent_bytes; /* to peers, without envelopes */
	uint64_t recv_frames, recv_bytes;
	uint64_t asym_frames;		/* of these, those that no route leads back for */
	uint32_t n_asked;		/* units of reads over it that are asked for */
	uint32_t asked_max;		/* pieces of these that may be: lnx_leg_granted() */
	uint32_t n_pieces;		/* pieces for peers that its core has */
	uint64_t busy_ns;		/* its core took no piece then */
	unsigned nend;
	struct lnx_leg_end *end;	/* owned */
	struct fid_ep core_ep;		/* rail.core_ep */
	struct fid_av av;		/* rail.av */
};

/* What is known of a gateway, which may have several NIDs. */
struct lnx_gw_process {
	struct lnx_gateway state;
	struct lnx_rails rails;		/* as its last info says, in the order of state.rail */
	uint32_t frame_max;		/* bytes that it forwards; 0: not known yet */
	uint32_t behind;		/* the same of all gateways behind it; 0: not known */
	bool says_behind;		/* or will: else it takes turns by frames, and those to
					 * it stay short */
};

/*
 * A gateway, as a route names it: one NID.  Those that turn out to be of one process, since
 * they answer with the same id, share what is known of it (lnx_gateways_identify).
 */
struct lnx_gw {
	struct lnx_gateways *all;
	struct lnx_nid nid;
	struct lnx_gw_process *process;	/* its own, or that of another NID */
	struct lnx_gw_process own;
	uint64_t heard_ns;		/* when an answer or news came over one of its legs; 0:
					 * never */
	bool wanted;			/* a frame for it has left, or wants to */
	unsigned nleg;
	struct lnx_leg *leg[LNX_RAILS_MAX];	/* owned; each on another rail of ours */
};

/* Something that a leg sends, until the core below lets go of it: rail/leg.c. */
struct lnx_leg_op;

/*
 * A read of a peer's memory over a leg (rail/routed_read.c), in units of which each comes in
 * one frame: what fi_read is to other rails.
 */
struct lnx_routed_read {
	struct lnx_node link;		/* gateways->reads */
	struct lnx_op *op;		/* of its owner, which hears of its end */
	struct lnx_peer *peer;
	struct lnx_path *path;
	uint64_t id;			/* on the wire */
	uint64_t key, offset;		/* lnx_wire_route.h, PULL */
	uint32_t segment;
	uint8_t *buf;
	size_t len;
	uint64_t came_ns;		/* the last PIECE, or the beginning; later by pauses of
					 * the program */
	uint64_t silent_ns;		/* when nothing at all came from the peer; 0: it always
					 * did */
	uint64_t waited_ns;		/* since the last PIECE or PULL, without pauses, */
	uint64_t looked_ns;		/* up to here */
	uint32_t tries;			/* PULLs in vain */
	uint32_t n, left, asked;	/* units; that have not come; of these, asked for */
	uint8_t unit[];			/* enum lnx_routed_unit */
};

enum lnx_routed_unit { LNX_UNIT_WANTED, LNX_UNIT_ASKED, LNX_UNIT_CAME };

/* What is known of the kernel at the far end of a path.  Where gateways are asked instead of it,
 * their answers are looked for among those that wait for one: peers are many more. */
struct lnx_host_ask {
	struct lnx_ping ping;		/* first: lnx_path_detect.ping */
	struct lnx_node link;		/* gateways->asked, until there is an answer; else stopped */
	struct lnx_peer *peer;
	struct lnx_path *path;
};

/* A PULL of a peer, whose pieces are to be sent. */
struct lnx_routed_pull {
	struct lnx_node link;		/* gateways->pulls */
	uint64_t sid;			/* of the peer */
	uint8_t path;			/* back to it */
	uint64_t id, key, offset, len;	/* what is left of it */
	uint64_t moved_ns;		/* it came, or a piece left */
	uint32_t segment;
	uint32_t most;			/* bytes of a piece: whole units */
};

/* ep->policy.gateways. */
struct lnx_gateways {
	struct lnx_ep *ep;
	struct lnx_routes table;
	struct lnx_route_plan plan;
	uint8_t hops;			/* gateways that a frame may go over */
	uint64_t key;			/* the route key; 0: none */
	uint64_t secret;		/* makes nonces that others cannot know, */
	uint64_t n_asked;		/* of so many questions */
	struct lnx_gw *asym;		/* the last frame that no route leads back for came over
					 * it; NULL: there was none, */
	struct lnx_addr_rail asym_from;	/* left by that rail, */
	uint8_t asym_hops;		/* and went over so many gateways */
	bool learn;			/* FI_LNX_LEARN_ROUTES: take a route from it */
	uint64_t unknown;		/* the last id of a gateway that was not known, for */
	uint64_t unknown_ns;		/* which the others were asked then, and are not again */
	uint64_t unknown_pause_ns;	/* for so long */
	uint64_t guess_ns;		/* since when these are counted: */
	uint32_t n_guesses;		/* notes in the name of a gateway with another account */
	unsigned n;
	struct lnx_gw **gw;		/* owned */
	struct lnx_pool op_pool;	/* lnx_leg_op */
	struct lnx_node ops;		/* those that cores have */
	struct lnx_pool piece_pool;	/* the same with room for a whole frame */
	struct lnx_node reads;		/* lnx_routed_read */
	struct lnx_optab read_ids;
	bool asks;			/* reads ask: none of them may end now, */
	bool whole;			/* but one is whole */
	struct lnx_node asked;		/* lnx_host_ask */
	struct lnx_node pulls;		/* lnx_routed_pull */
	uint32_t n_pulls;
};

#endif
