/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Half-open connections: accepted by a rail's core endpoint, and not yet identified.
 * tcp cores of libfabric 2.1 forget them when the endpoint is closed, and crash when
 * they are identified later (PEERS.md).  Also connections that hang, and descriptors
 * that other programs must not inherit.
 */
#ifndef LNX_HALF_OPEN_H
#define LNX_HALF_OPEN_H

#include <sys/socket.h>

#include "obj/rail.h"

/*
 * Shut them down.  Returns how many there were.  Then the core is to be polled, to
 * notice, and this to be called again, until there are none; after that the core must
 * not be polled before it is closed.  Also 0 where nothing can be found out.
 */
unsigned lnx_half_open_end(const struct lnx_rail *rail);

/*
 * Connections of the rail, from either side, are to be reset when its core closes them:
 * the other end notices at once.  An orderly shutdown would wait behind all that the
 * network has not taken.  Returns how many there are.
 */
unsigned lnx_half_open_reset(const struct lnx_rail *rail);

/*
 * Cut the connections between the rail and the host of that address: what is under way
 * in them fails at once, and the other end notices.  They may be several, of peers in
 * several processes; all take the same way through the network.  Returns how many there
 * were.
 */
unsigned lnx_half_open_cut(const struct lnx_rail *rail, fi_addr_t to);

/*
 * A path whose connections are cut with those of other paths over its rail: one look through
 * the descriptors is enough for all that are to be cut at a time, however many peers these
 * are of.
 */
struct lnx_cut {
	struct lnx_path *path;
	/* The peer's core may be reading memory of ours, and only that is to end.  Of connections
	 * that its host has made only those are cut in which something waits to be sent, or
	 * for its acknowledgement, and over which nothing came for silent_ns: others are of
	 * other peers. */
	bool reads;
	uint64_t silent_ns;
	unsigned ncut;			/* result: so many were cut */
	struct lnx_cut *first;		/* of those that lead to the same host */
	/* Of the first one, for msg/hedge.c: */
	bool writes;			/* something is written to the host */
	bool was_cut;			/* connections to the host were cut */
	struct sockaddr_storage to;	/* where it leads; no family: not known */
};

/* Find out where n > 0 of them lead, all over one rail, and put them in order: before any of
 * the next two. */
LNX_COLD void lnx_half_open_sort(struct lnx_cut *cut, unsigned n);
/* The first of those that lead to the host to which path does, over the same rail; NULL: none
 * does. */
LNX_COLD struct lnx_cut *lnx_half_open_beside(struct lnx_cut *cut, unsigned n,
					      const struct lnx_path *path);
/* Cut them, as lnx_half_open_cut does. */
LNX_COLD void lnx_half_open_cut_all(const struct lnx_rail *rail, struct lnx_cut *cut, unsigned n);

/*
 * End connections that the rail has begun to other endpoints, and that hang.  Either their
 * kernels took them, and their cores have answered nothing for so long: that answer may be
 * lost, and the other end of the connection too.  Cores wait for it for ever, and refuse what
 * such a peer begins.  A peer that only computes finds the next one.  Or no kernel has
 * answered, and ours asks more and more rarely, up to once in a minute: a network that works
 * again would not be used for so long; only if `began`.  Returns how many there were.
 */
LNX_COLD unsigned lnx_half_open_unanswered(const struct lnx_rail *rail, uint64_t so_long_ns,
					   bool began);

/* May anything in the network connect to the rail, as far as is known here? */
LNX_INLINE bool lnx_half_open_listens(const struct lnx_rail *rail)
{
	return rail->prov == LNX_PROV_TCP || rail->prov == LNX_PROV_TCP_RXM;
}

/*
 * Looking through all descriptors of the process takes the longer the more there are.  How long
 * (ns) an endpoint is to wait after it has done so, if that took cost_ns of CPU time: one
 * endpoint has a thousandth of the time, and all those of the process have a hundredth together,
 * for each purpose.  Any thread.
 */
uint64_t lnx_half_open_pause(uint64_t cost_ns);
/* The same where something may be new, or hang: a fiftieth, and a tenth together. */
uint64_t lnx_half_open_pause_short(uint64_t cost_ns);

/* An endpoint that looks through them begins or ends.  Any thread. */
void lnx_half_open_joins(void);
void lnx_half_open_leaves(void);

/* Do these addresses belong to one host, so that their connections are cut together? */
bool lnx_half_open_same_host(const struct lnx_rail *rail, fi_addr_t a, fi_addr_t b);

/*
 * The rail's listener and connections, from either side, are to be closed in programs
 * that this process starts.  Returns how many were not.  For descriptors that were, the
 * cost is one system call each.  Accepted ones are remembered for lnx_half_open_ended.
 */
unsigned lnx_half_open_cloexec(struct lnx_rail *rail);

/*
 * Of the connections that the rail had accepted: how many have ended before a byte came?  tcp
 * of libfabric 2.1 looks at them once, and asks errno why they ended: if that is EAGAIN, from
 * whatever call before, the core takes it for one that has only said nothing yet, and forgets it
 * (PEERS.md).  So between two calls the core must be polled.
 */
unsigned lnx_half_open_ended(struct lnx_rail *rail);

/*
 * Close those of them that two calls have found and that no epoll instance of the process has: the
 * core has forgotten them.  Returns how many there were.
 */
unsigned lnx_half_open_close_ended(struct lnx_rail *rail);

/*
 * Are there bytes in connections of the rail, from either side, that its core has not read?
 * Then how many connections it has, with its listener; else 0, also where nothing can be found
 * out.
 */
LNX_COLD unsigned lnx_half_open_unread(const struct lnx_rail *rail);

#endif
