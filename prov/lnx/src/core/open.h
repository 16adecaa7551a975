/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing rails: the core objects behind an endpoint. */
#ifndef LNX_OPEN_H
#define LNX_OPEN_H

#include "obj/ep.h"
#include "wire/hdr.h"
#include "wire/rails.h"

/*
 * What a rail needs from the code that opens it.  Callbacks, because this layer may not
 * use the ones above.
 */
struct lnx_rail_owner {
	struct fi_ops_cq_owner *direct_cq_ops;
	struct fi_ops_cq_owner *framed_cq_ops;
	struct fi_ops_srx_owner *direct_srx_ops;
	struct fi_ops_srx_owner *framed_srx_ops;
	struct fi_ops_cntr_owner *direct_cntr_ops;
	struct fi_ops *fid_ops;
	bool wait;			/* CQs of network rails need a wait
					 * descriptor */
	const void *src_addr;		/* core address to use, or NULL */
	size_t src_addrlen;
};

/* Let a direct or native rail count for counters of ep that it does not count for yet.
 * 0, or the core's error, after a warning. */
int lnx_rail_lend(struct lnx_ep *ep, struct lnx_rail *rail,
		  const struct lnx_rail_owner *owner);

/*
 * Open everything of one rail up to an enabled core endpoint with a name.
 * 0 or a negative code after one warning that names rail and step.  Owner lock
 * held.  *rail is heap memory, to be given to lnx_rail_close.
 */
int lnx_rail_open(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
		  const struct lnx_rail_owner *owner, struct lnx_rail **rail);
/* Close what is open, in the order that cores need.  NULL is fine. */
void lnx_rail_close(struct lnx_rail *rail);
/* Close only the core endpoint, so that no more callbacks come. */
void lnx_rail_stop(struct lnx_rail *rail);

/*
 * A new core endpoint in place of the present one, with a new address: the only way to
 * get rid of a connection that delivers nothing and of all that is in it.  The domain,
 * and with it every registration, stays.  Between the two calls the caller must clean
 * up what the old one had of ours.
 *
 * Open: 0, or an error after a warning that names the step; the rail then has no core
 * endpoint, and the call may be repeated.  port: the one to use, or 0; cores without
 * ports ignore it.
 */
void lnx_rail_close_ep(struct lnx_rail *rail);
int lnx_rail_open_ep(struct lnx_rail *rail, unsigned port);
/* What rail->short_frame is while the rail has a core endpoint, in bytes.  Owner lock held. */
static inline uint32_t lnx_rail_short_frame(const struct lnx_rail *rail)
{
	return LNX_MIN(rail->inject_size, (uint32_t)sizeof(struct lnx_wire_hdr) +
		       rail->ep->limits.short_max);
}

/* The port that its core listens at; 0: it has none. */
unsigned lnx_rail_port(const struct lnx_rail *rail);

/* core/address.c: describe rail for the wire.  False: peers cannot use its address. */
bool lnx_rail_describe(const struct lnx_rail *rail, struct lnx_addr_rail *r);

/*
 * core/address.c: make ep->address, and give each rail without an index one.  Called again
 * whenever an address has changed or a rail has been added.  0, or -EINVAL.
 */
int lnx_ep_address(struct lnx_ep *ep);
/*
 * Content of a hello: ep->address.raw, and all rails if they do not fit in that.  Bytes
 * written.
 */
#define LNX_HELLO_BYTES	(LNX_ADDR_BYTES + LNX_WIRE_RAILS_BYTES)
size_t lnx_ep_hello(const struct lnx_ep *ep, uint8_t buf[LNX_HELLO_BYTES]);

/* Insert the address of a peer's rail; -FI_ENOSPC when the core has no room for it. */
int lnx_rail_meet(struct lnx_rail *rail, const struct lnx_addr_rail *to,
		  fi_addr_t *core_addr);
/* The same without provider and group: not for legs (-FI_EINVAL). */
int lnx_rail_insert(struct lnx_rail *rail, const void *addr,
		    fi_addr_t *core_addr);
void lnx_rail_remove(struct lnx_rail *rail, fi_addr_t core_addr);

/*
 * Identity of this host for shared memory: equal for processes that can meet in
 * /dev/shm, so never the host name.  Made from the boot id, the file system mounted at
 * /dev/shm, and the pid name space (cross-memory attach uses pids); or from
 * FI_LNX_HOST_ID.  0 when it cannot be found out.
 */
uint64_t lnx_host_identity(const struct lnx_conf *conf);
/*
 * May ep and the shm endpoint of that id use shared memory?  A core that cannot open
 * the region of a sender loses its messages, so each of the two must be able to open
 * the other's.  That we can is tested by opening it.  That the other can follows if
 * both regions have one owner, which may read and write them, because cores open theirs
 * only for the owner.  Root can open all regions, but few can open root's.
 */
enum lnx_host_meet {
	LNX_HOST_ABSENT,		/* it is not here */
	LNX_HOST_FOREIGN,		/* it is, but one of us cannot open the
					 * other's region */
	LNX_HOST_MEETS,
};
enum lnx_host_meet lnx_host_meet(const struct lnx_ep *ep, uint64_t eid);
/*
 * Find the owner of our own region, for the above: once, when the core endpoint is
 * enabled.
 */
void lnx_host_own_region(struct lnx_ep *ep);
/*
 * Does that process, which has a region of our user's, still belong to our user?  It
 * may have changed since it opened its endpoint.  Yes if it cannot be found out.
 */
bool lnx_host_same_user(const struct lnx_ep *ep, int pid);
/*
 * An endpoint whose name the application asked for has another region's name than the
 * last one that had its name: they take turns, 1 to LNX_SHM_TURNS.  The core of a peer
 * finds regions by their names only, so with one name for all it takes the region of the
 * next process for that of one that was killed: it writes what the dead one asked for
 * there, or loses the region and crashes (PEERS.md).
 *
 * Peers know only the name without a turn (turn 0).  It is a symbolic link to the region,
 * made when that is complete, so that no peer finds one that is being made.  A random name
 * is used once: it has no turns, and no link.
 */
#define LNX_SHM_TURNS		4u
#define LNX_SHM_PATH_BYTES	(LNX_SHM_NAME_BYTES + 16)
/* Where the files of regions are. */
#define LNX_SHM_DIR		"/dev/shm"
/* Path of that region's file; of turn 0 also that of the link. */
void lnx_host_region_path(uint64_t eid, unsigned turn, char path[LNX_SHM_PATH_BYTES]);
/* Where that link leads to; 0: there is none, or not to a region of this endpoint. */
unsigned lnx_host_shm_turn(uint64_t eid);
/* Path of the file of the region that it has now. */
void lnx_host_shm_path(uint64_t eid, char path[LNX_SHM_PATH_BYTES]);
/*
 * By the owner: choose the turn of a region to be opened, after what processes that have
 * ended left behind was removed; show it; and hide it before the core endpoint is
 * closed.  0, or -FI_EADDRINUSE: another endpoint has got the name meanwhile.
 */
LNX_COLD void lnx_host_take_turn(struct lnx_ep *ep);
LNX_COLD int lnx_host_show_region(const struct lnx_ep *ep);
LNX_COLD void lnx_host_hide_region(const struct lnx_ep *ep);
/*
 * Bytes that are free where regions are.  False: not known, or without a limit.
 */
bool lnx_host_shm_free(uint64_t *bytes);
/*
 * Why the shm provider may be missing: " (/dev/shm has 4 MiB free ...)", or "" if there
 * is room.  Returns buf.
 */
const char *lnx_host_shm_why(char *buf, size_t size);
/* Random endpoint id, never 0.  0 on failure. */
uint64_t lnx_host_random_id(void);
/* The same for len bytes, up to LNX_RANDOM_MAX.  0, or -FI_EIO after a warning. */
#define LNX_RANDOM_MAX	256
int lnx_host_random(void *buf, size_t len);

#endif
