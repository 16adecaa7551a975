/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The relay of a gateway: a frame comes in, is checked, queued and sent on, or dropped
 * with a reason.  Pure but for memory: the time is passed in, and whatever sends is behind
 * struct rtd_ops, so that tests replace it.
 *
 *	rtd_relay_rx	a frame has come into a landing buffer
 *	-> rules.c	may it go, and where?  (env -> destination)
 *	-> source.c	is its sender within its grant?
 *	-> dest.c	the destination: queue, window, failures
 *	-> rtd_relay_run, ops->send, rtd_relay_sent
 *
 * A gateway never stops reading: an unread message stalls the whole connection that it
 * is in, and so all destinations behind it.  What there is no room for is dropped, and
 * its sender is told by a note.
 *
 * What may be filled by what (all numbers are of buffers):
 * - a source: its grant (source.c);
 * - a destination: as many of a class as are free still, so that a slow one takes half of
 *   a pool at most, two of them a third each, and never all;
 * - the destinations of a rail take turns, and the sources of a destination, in which each
 *   may send as many bytes; the frames of one source to one destination keep their order.
 * No frame is dropped because it is old: how long it may take is known to its ends only.
 *
 * One thread: no locks.
 */
#ifndef LNX_RTD_RELAY_H
#define LNX_RTD_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/routes.h"
#include "lnxrtd/pool.h"
#include "wire/route.h"

#define RTD_RAILS		16
#define RTD_RULES		64
#define RTD_DESTS_MAX		65536u
#define RTD_SOURCES_MAX		16384u
#define RTD_ASKS		256
#define RTD_LANDINGS		16u	/* a rail has posted, at least */

/* Why a frame was dropped. */
enum rtd_reason {
	RTD_BAD_ENVELOPE,		/* malformed */
	RTD_VERSION,			/* of another version */
	RTD_NOT_ALLOWED,		/* the key, a rule, or an address that none may have */
	RTD_ROUTING_OFF,
	RTD_TTL,			/* no hops left */
	RTD_LOOP,			/* it would go back to where it came from */
	RTD_NO_ROUTE,			/* no rail and no route leads to its net */
	RTD_ARRIVAL_NET,		/* it came from the net that it is for */
	RTD_OWN_ID,			/* it is for this host */
	RTD_TOO_BIG,			/* for the rail that it would leave by */
	RTD_QUOTA,			/* its source has filled its grant */
	RTD_POOL_EMPTY,
	RTD_DEST_CAP,			/* its destination has filled its share, or there
					 * are too many destinations */
	RTD_REFUSED,			/* no process has the port */
	RTD_UNREACHABLE,		/* no answer, or no way there */
	RTD_BROKEN,			/* the connection broke while a core had it */
	RTD_CORE_ERROR,			/* the core refused it */
	RTD_REASONS
};

/* "bad_envelope": in the state file and in logs. */
const char *rtd_reason_name(enum rtd_reason reason);
/* What a note says of it; 0: its source gets none. */
unsigned rtd_reason_note(enum rtd_reason reason);

/* One rail of the gateway. */
struct rtd_rail {
	struct lnx_addr_rail addr;	/* as peers see it */
	struct lnx_nid nid;
	struct lnx_cidr subnet;		/* of all addresses in its net; len 0: not known */
	uint32_t frame_max;		/* the longest frame, with its envelope */
	uint32_t tx_max;		/* frames that its core may have at a time */
	bool up;
};

/* May frames from that net go to that one?  The first rule that fits decides. */
struct rtd_rule {
	bool deny;
	struct lnx_nid_part from, to;	/* of nets; prov 0: any */
};

/* What a user sets.  All of it may change while the relay works, but for id and key. */
struct rtd_settings {
	uint64_t id;			/* of this gateway, not 0 */
	uint64_t secret;		/* makes nonces that others cannot know */
	uint64_t host;
	uint64_t key;			/* the route key; 0: none */
	uint32_t count[RTD_CLASSES];	/* buffers while routing is on */
	uint32_t grant_large, grant_small;	/* of a source, while there is room */
	uint32_t dests, sources;	/* at most */
	uint32_t frame_max;		/* how long frames shall be, with their envelopes, that
					 * come: longer ones were made before that was said, and
					 * are forwarded */
	uint32_t connects;		/* new destinations of a source, per second */
	uint32_t notes;			/* to a source, per second */
	uint64_t idle_ns;		/* unused destinations and sources go after that */
	uint64_t refused_ns;		/* one that refused is tried again after that */
	uint64_t connect_ns;		/* no connection for so long: unreachable */
	uint64_t drain_ns;		/* what is queued still after that is dropped */
	bool loopback;			/* tests on one node: destinations on it are fine */
	unsigned nrule;
	struct rtd_rule rule[RTD_RULES];
};

/* As described in lnxrtd(8); id, host and key are 0. */
void rtd_settings_default(struct rtd_settings *s);

/* What sends.  Calls back only through the functions below, and not from inside. */
struct rtd_ops {
	void *arg;
	/* The address will be used over that rail.  0 with *handle, or a negative errno. */
	int (*open)(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		    uint64_t *handle);
	void (*close)(void *arg, unsigned rail, uint64_t handle);
	/*
	 * Send buf->len bytes; until rtd_relay_sent buf->link is the callee's.  0:
	 * rtd_relay_sent follows; -EAGAIN: not now, perhaps because a connection begins;
	 * else a negative errno: never.
	 */
	int (*send)(void *arg, unsigned rail, uint64_t handle, struct rtd_buf *buf);
	/* Does a kernel there take connections?  rtd_relay_told follows, with cookie.  0,
	 * or a negative errno: it cannot ask. */
	int (*ask)(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		   uint32_t cookie);
	/* Is it an address of this host, on whichever interface?  NULL: only rails are. */
	bool (*own)(void *arg, const struct lnx_addr_rail *to);
};

enum rtd_state { RTD_OFF, RTD_ON, RTD_DRAINING };

/* The last frame that was dropped for a reason. */
struct rtd_example {
	uint64_t at_ns;			/* 0: none */
	uint64_t via, source;		/* last gateway; id of the source, 0: not known */
	uint32_t len;
	uint8_t arrival;		/* rail */
	struct lnx_addr_rail to;	/* prov 0: not known */
	const char *why;		/* static text; NULL: the reason says it all */
};

struct rtd_counts {
	uint64_t frames_in, bytes_in;
	uint64_t frames_out, bytes_out;
	uint64_t dropped[RTD_REASONS], dropped_bytes;
	uint64_t notes_sent, notes_held;	/* held: over the limit, or no buffer */
	uint64_t notes_received;
	uint64_t hellos, infos, asks, bad_control;
	uint64_t connects, connect_limited;
	uint64_t copied, taken;			/* frames copied, and landings taken */
};

struct rtd_relay;

/* A relay without rails, switched off.  ops and routes stay valid as long as it.  NULL:
 * no memory. */
struct rtd_relay *rtd_relay_create(const struct rtd_settings *s, const struct rtd_ops *ops,
				   const struct lnx_nets *nets,
				   const struct lnx_routes *routes);
/* Nothing is under way in a core any more. */
void rtd_relay_destroy(struct rtd_relay *r);

/* Its index, or -ENOSPC. */
int rtd_relay_add_rail(struct rtd_relay *r, const struct rtd_rail *rail);
void rtd_relay_rail_up(struct rtd_relay *r, unsigned rail, bool up, uint64_t now);

/* 0, -EINVAL: another id or key, or -ENOMEM: as before. */
int rtd_relay_set(struct rtd_relay *r, const struct rtd_settings *s);

const struct rtd_settings *rtd_relay_settings(const struct rtd_relay *r);

/* Switch routing on: allocates the pools.  0, -ENOMEM, or -EBUSY while it drains. */
int rtd_relay_start(struct rtd_relay *r, uint64_t now);
/* Switch it off: forwards on until all queues are empty and nothing comes any more, for which it
 * waits a second at most, or drain_ns is over; sources are told to use another gateway. */
void rtd_relay_stop(struct rtd_relay *r, uint64_t now);
enum rtd_state rtd_relay_state(const struct rtd_relay *r);

/*
 * So many buffers each rail should have posted for receiving.  A connection holds one while a
 * frame comes, which takes long if its sender is slow; then others must find one still.  So
 * there is one more for each source, as long as half of the large buffers suffice.
 */
unsigned rtd_relay_landings(const struct rtd_relay *r);
/* A buffer to receive into, of the large class; NULL: there is none. */
struct rtd_buf *rtd_relay_landing(struct rtd_relay *r);
void rtd_relay_landing_back(struct rtd_relay *r, struct rtd_buf *buf);

/*
 * len bytes have come into buf over that rail.  True: the relay has kept the buffer, and
 * the caller takes another one, which there is; false: it is free to be used again.
 */
bool rtd_relay_rx(struct rtd_relay *r, unsigned rail, struct rtd_buf *buf, size_t len,
		  uint64_t now);

/* ops->send has ended: 0, or why it failed (-ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT ...). */
void rtd_relay_sent(struct rtd_relay *r, struct rtd_buf *buf, int err, uint64_t now);

/* ops->ask has ended. */
void rtd_relay_told(struct rtd_relay *r, uint32_t cookie, enum lnx_route_tell tell,
		    uint64_t now);

/* Send what can be sent, and do what is due.  Returns when it must be called again if
 * nothing happens before; UINT64_MAX: never. */
uint64_t rtd_relay_run(struct rtd_relay *r, uint64_t now);

/* Before one would wait for what comes: for so long one may sleep instead, whatever comes, and then
 * look; 0: no. */
uint64_t rtd_relay_nap(struct rtd_relay *r, uint64_t now);

/* Frames that are queued or in cores. */
unsigned rtd_relay_held(const struct rtd_relay *r);

const struct rtd_counts *rtd_relay_counts(const struct rtd_relay *r);
const struct rtd_example *rtd_relay_example(const struct rtd_relay *r,
					    enum rtd_reason reason);
const struct rtd_pool *rtd_relay_pool(const struct rtd_relay *r);
unsigned rtd_relay_rails(const struct rtd_relay *r, const struct rtd_rail **rail);

/* ---- for those that print ---- */

struct rtd_source_view {
	uint16_t account;
	uint64_t id;			/* 0: those without an account, of one rail */
	bool gateway;
	uint32_t large, small;		/* grant */
	uint32_t used_large, used_small;
	int64_t min_credits;		/* buffers left of the grant, at the worst; negative:
					 * so many were refused at once */
	uint64_t frames, bytes, dropped;
};

struct rtd_dest_view {
	struct lnx_addr_rail to;
	unsigned rail;
	const char *state;		/* "new", "open", "failed" */
	bool routed;			/* over another gateway */
	uint32_t queued, flying;	/* frames */
	int64_t credits, min_credits;	/* negative: frames that wait */
	uint64_t frames, bytes, failures;
};

/* Entry at, counted from 0; false: there are no more.  Slow. */
bool rtd_relay_source(const struct rtd_relay *r, unsigned at, struct rtd_source_view *v);
bool rtd_relay_dest(const struct rtd_relay *r, unsigned at, struct rtd_dest_view *v);
unsigned rtd_relay_nsources(const struct rtd_relay *r);
unsigned rtd_relay_ndests(const struct rtd_relay *r);

#endif
