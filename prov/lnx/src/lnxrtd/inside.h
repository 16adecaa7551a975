/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the relay share.  Others see relay.h. */
#ifndef LNX_RTD_INSIDE_H
#define LNX_RTD_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/interval.h"
#include "base/keyed.h"
#include "base/list.h"
#include "base/timer.h"
#include "lnxrtd/relay.h"
#include "policy/route.h"

#define RTD_HASH		4096u	/* chains of each table */
#define RTD_GATEWAYS		64u	/* that own routes lead over; bits of rtd_pause */
#define RTD_WINDOW_BYTES	524288u	/* a destination may have in its core, or one frame */
#define RTD_SHARE_MIN		4u	/* buffers that any destination may fill */

/* So many per second, at most burst at once.  Zeroed: full. */
struct rtd_limit {
	uint64_t full_ns;		/* when all are back */
};

bool rtd_limit_take(struct rtd_limit *l, uint32_t per_second, uint32_t burst,
		    uint64_t now);

/* What a source may fill: frames of the large class, and others. */
enum { RTD_GRANT_SMALL, RTD_GRANT_LARGE, RTD_GRANTS };

static inline unsigned rtd_grant_of(unsigned class)
{
	return class == RTD_LARGE ? RTD_GRANT_LARGE : RTD_GRANT_SMALL;
}

/* Where a source can be reached: one of its rails, over one of ours. */
struct rtd_back {
	uint8_t rail;
	struct lnx_addr_rail to;
};

#define RTD_BACKS	8

/* What a hello says of where its sender is: its rails that we reach, in the order of its places. */
struct rtd_place {
	unsigned n;
	unsigned first;			/* infos and notes go there: the rail it was sent from */
	struct rtd_back back[RTD_BACKS];
};

#define RTD_HOST_SOURCES	1024u	/* of one host, at most */
#define RTD_HELLO_HOSTS		1024u	/* that are told apart by their hellos */
#define RTD_FRESH_SOURCES	1024u	/* that were not reached yet, at most */

/* Where sources are; only while there are some. */
struct rtd_host {
	struct rtd_host *chain;
	uint32_t at;			/* in which chain */
	unsigned sources, reached;	/* on it; of these those that count; */
	unsigned confirmed;		/* of these those that are there themselves */
	uint8_t len, addr[LNX_ADDR_RAW];
};

/*
 * A source is an id at one place: what says that id at another place is another source, and
 * takes nothing from this one.  At the same place a hello changes what is told, and to which of
 * the rails, only if it has the account: that is told to this place alone.
 */
struct rtd_source {
	struct lnx_node lru;		/* heard longest ago first; unannounced: in none */
	struct rtd_source *chain;	/* by id */
	uint16_t account;		/* 0: all that are unannounced, of one rail */
	bool gateway;
	bool knows_behind;		/* what infos say of frames behind this gateway */
	bool reached;			/* an info has arrived: something is where it says */
	bool confirmed;			/* and it has said a hello with its account since then:
					 * it is there itself */
	struct rtd_host *host;		/* NULL: unannounced */
	uint64_t id;
	uint64_t heard_ns;
	uint32_t used[RTD_GRANTS];
	uint32_t told[RTD_GRANTS];	/* the grant that it knows of */
	uint32_t told_epoch;		/* the rest of what it knows of */
	uint32_t nonce;			/* of its last hello with its account, or of the first one:
					 * news carry it as well; */
	uint32_t claimed;		/* of the last one since then without it, which may be of
					 * anyone: the same news leave with it, too; 0: none */
	int64_t min_credits;
	uint64_t frames, bytes, dropped;
	struct rtd_limit connects, notes, asks, hellos;
	struct {
		uint64_t at_ns;
		uint32_t count;		/* since then */
	} note[LNX_NOTE_MAX];
	struct rtd_place place;
};

/*
 * Turns by bytes: in each one may send RTD_TURN_BYTES, and what it did not, since its next frame is
 * longer, in the turns after that.
 */
struct rtd_turn {
	uint32_t left;			/* bytes that it may send still */
	bool now;			/* its turn has begun */
};

#define RTD_TURN_BYTES	(LNX_ROUTE_HEAD + LNX_FRAME_MAX)

/* May it send len bytes?  Else its turn is over. */
static inline bool rtd_turn_allows(struct rtd_turn *t, uint32_t len)
{
	if (!t->now)
		t->left += RTD_TURN_BYTES;
	t->now = len <= t->left;
	return t->now;
}

/* The frames of one source that wait for one destination; only while there are some. */
struct rtd_flow {
	struct rtd_turn turn;
	struct lnx_node link;		/* of dest->flows */
	struct lnx_node frames;
	struct rtd_flow *chain;
	struct rtd_source *source;	/* NULL: control */
	struct rtd_dest *dest;
};

/* Gateways that are passed over for a time. */
struct rtd_pause {
	uint64_t gateways;		/* bits, until */
	uint64_t until_ns, length_ns;
};

struct rtd_dest {
	struct lnx_node lru;		/* used longest ago first */
	struct lnx_node ready;		/* of its rail: frames wait, and it may send */
	struct rtd_turn turn;
	struct lnx_timer retry;
	struct rtd_relay *relay;
	struct rtd_dest *chain;
	uint8_t key[LNX_ROUTE_RAIL_BYTES];
	struct lnx_addr_rail addr;
	uint8_t rail;
	bool opened;			/* handle is valid */
	bool proven;			/* something has arrived since it failed last */
	struct rtd_dest *next;		/* NULL: it is reached directly */
	uint16_t from;			/* account of what sent to there last, if over next; not of
					 * a gateway soon after an endpoint did */
	uint64_t from_ns;		/* when an endpoint did */
	uint32_t pins;			/* destinations and gateways that it is the next of */
	uint32_t holds;			/* calls that go on with it: it makes no room for others */
	uint32_t routes;		/* of which changes of ways it knows */
	/* Gateways that are passed over for it: those that have said that they have no way there,
	 * and those that were asked in vain whether it answers. */
	struct rtd_pause no_way, late;
	uint16_t allowed;		/* from which rails: bits */
	uint64_t handle;
	uint8_t failed;			/* enum rtd_reason while now < failed_ns */
	uint8_t fails;			/* one after the other */
	uint64_t failed_ns;
	uint64_t trying_ns;		/* since when its core says EAGAIN; 0: it does not */
	uint32_t breaking;		/* frames in its core that a broken connection had */
	uint64_t backoff_ns;		/* not 0: the timer says when to try again */
	uint64_t used_ns;
	struct lnx_node flows;		/* in turn */
	uint32_t held[RTD_CLASSES];	/* buffers, queued and in the core */
	uint32_t queued, flying;
	uint64_t flying_bytes;
	int64_t min_credits;
	uint64_t frames, bytes, failures;
};

struct rtd_out {
	struct rtd_rail rail;
	struct lnx_node ready;		/* destinations, in turn */
	uint32_t flying;
	struct rtd_source unannounced;
	struct rtd_limit hellos;
	struct rtd_limit host_hellos[RTD_HELLO_HOSTS];
};

/* Another gateway that one of our routes leads over. */
struct rtd_gateway {
	struct lnx_nid nid;
	struct lnx_gateway g;
	struct rtd_dest *dest;		/* pinned */
	uint32_t nonce;			/* of the last hello, */
	uint32_t again_nonce;		/* of its second one, if it was sent again, */
	uint32_t answered_nonce;	/* and of the last one that was answered; 0: there was none */
	bool answered;			/* one of the first two was */
	uint32_t way;			/* the longest frame, with its envelope, that it and what
					 * is behind it take; 0: not known */
	uint8_t way_hops;		/* to the one that it is that of; it itself: 1 */
	uint64_t better_ns;		/* when it said last that it can do more than before */
	uint64_t look_ns;		/* when to look next whether it is busy */
	uint64_t frames;		/* of dest when that was looked at last */
	bool busy;			/* frames go to it, and another could take its place */
};

struct rtd_ask {
	uint32_t cookie;		/* 0: free */
	uint32_t nonce;
	uint64_t source;		/* id; 0: this gateway itself */
	uint16_t account;		/* of the source */
	struct lnx_addr_rail to;
	uint64_t gateway;		/* id of the one that was asked; 0: our kernel was */
	uint32_t passed;		/* nonce of the question to it */
	uint8_t hops_done;		/* of the question */
	bool first;			/* no other gateway was asked the same */
	uint64_t late_ns;		/* then another one is asked as well; 0: not any more */
	uint64_t lost_ns;		/* it may not answer: then this is free */
};

/* What has come of late; zeroed: nothing.  See stream.c. */
struct rtd_stream {
	struct rtd_stream_end {
		uint16_t account;	/* 0: free */
		uint64_t came_ns;
	} end[2];
	uint64_t others_ns;		/* when something of others came; 0: never */
	uint8_t rail;
	uint8_t row;			/* large frames that came over that rail, and none over
					 * others since; RTD_STREAM_ROW: or more */
	bool napped;			/* and no large one has come since */
};

#define RTD_STREAM_ROW		32u

struct rtd_relay {
	struct rtd_settings s;
	struct rtd_ops ops;
	const struct lnx_nets *nets;
	const struct lnx_routes *routes;
	struct lnx_route_plan plan;
	enum rtd_state state;
	uint64_t drain_began_ns, drain_until_ns;	/* until: whatever waits */
	uint64_t came_ns;		/* when the last frame that was kept came */
	struct rtd_stream stream;
	unsigned nout;
	struct rtd_out out[RTD_RAILS];
	struct rtd_pool pool;
	unsigned landings;		/* lent for receiving */
	unsigned held;			/* frames, without control */
	unsigned control;		/* notes and infos that are queued */

	struct rtd_source *by_account[65536];
	struct rtd_source *by_id[RTD_HASH];
	struct lnx_node sources;
	struct lnx_node fresh;		/* those that were not reached yet */
	unsigned nsource, nfresh;	/* all of them; of these those in fresh */
	uint64_t last_account;		/* counts those that were given */
	struct rtd_host *hosts[RTD_HASH];
	unsigned nhost;			/* that count */
	unsigned crowd[RTD_HOST_SOURCES + 1];	/* hosts with so many sources that count */
	unsigned crowd_max;
	uint32_t level[RTD_GRANTS], level_whole[RTD_GRANTS];	/* share of a host, of what */
	bool level_stale;
	uint32_t epoch;			/* of what infos say */
	uint64_t sweep_ns;		/* when sources are told next; 0: none waits */

	struct rtd_dest *dests[RTD_HASH];
	struct lnx_node dest_lru;
	unsigned ndest;
	struct rtd_flow *flows[RTD_HASH];
	struct lnx_timers timers;

	unsigned ngateway;
	uint32_t news;			/* gateways came back, which others stood in for, or said
					 * that they can do more than before, or will stop */
	struct rtd_gateway gateway[RTD_GATEWAYS];
	struct rtd_limit guesses;	/* notes that come from no gateway */
	uint64_t guess_ns;		/* until then they are too many */
	struct rtd_ask ask[RTD_ASKS];
	uint32_t last_cookie;
	uint64_t asks_ns;		/* when to look at them; 0: none waits */

	struct rtd_counts counts;
	struct rtd_example example[RTD_REASONS];
};

/* ---- relay.c ---- */

/* The frame at bytes is dropped: counts, keeps an example, and notes it to the source.
 * The caller frees its buffer.  bytes may be malformed with a reason that says so. */
void rtd_drop(struct rtd_relay *r, enum rtd_reason reason, const char *why,
	      struct rtd_source *source, unsigned arrival, const uint8_t *bytes, size_t len,
	      uint64_t now);
/* A buffer's frame is dropped, and the buffer freed. */
void rtd_drop_buf(struct rtd_relay *r, enum rtd_reason reason, const char *why,
		  struct rtd_buf *buf, uint64_t now);
/* The buffer is not needed any more. */
void rtd_free_buf(struct rtd_relay *r, struct rtd_buf *buf);

/* ---- rules.c ---- */

/*
 * The destination of a rail, made if it is not there: NULL with *reason and *why if no frame
 * may go there.  source (NULL: this gateway itself) is charged for one that is new.
 */
struct rtd_dest *rtd_target(struct rtd_relay *r, const struct lnx_addr_rail *to,
			    struct rtd_source *source, enum rtd_reason *reason,
			    const char **why, uint64_t now);
/* The rail of ours that is on the net of that one, or -1. */
int rtd_rail_to(const struct rtd_relay *r, const struct lnx_addr_rail *to);
/* Other rules count: find anew from where frames may go to each destination that is known. */
void rtd_rules_apply(struct rtd_relay *r);
/* The gateway that this destination is, or NULL. */
struct rtd_gateway *rtd_gateway_of(struct rtd_relay *r, const struct rtd_dest *dest);
/* Do frames over that gateway go over others behind it? */
bool rtd_gateway_leads_on(const struct rtd_relay *r, const struct rtd_gateway *gw);
/* Does another gateway, which works, lead to a net that this destination, a gateway, leads
 * to? */
bool rtd_gateway_replaced(struct rtd_relay *r, const struct rtd_dest *dest, uint64_t now);
/* The next gateway on the way to d says that it has no way there: another one is the next now.
 * False: there is none that has not said so a moment ago. */
bool rtd_dest_detour(struct rtd_relay *r, struct rtd_dest *d, uint64_t now);
/* It was asked in vain whether d answers: the same.  When all have been asked in vain, all but this
 * one count again.  False: there is no other one. */
bool rtd_dest_late(struct rtd_relay *r, struct rtd_dest *d, uint64_t now);
/* That gateway reaches d. */
void rtd_dest_in_time(struct rtd_relay *r, struct rtd_dest *d, const struct rtd_gateway *gw,
		      uint64_t now);

/* ---- source.c ---- */

/* The source to charge for a frame. */
struct rtd_source *rtd_source_of(struct rtd_relay *r, unsigned rail, uint16_t account,
				 uint64_t now);
/* The announced one with that id and account; without an account the one that has the id for
 * longest.  NULL: there is none. */
struct rtd_source *rtd_source_find(struct rtd_relay *r, uint64_t id, uint16_t account);
/* Where a hello says that it is from, and the source that is known there with its id, or NULL. */
struct rtd_source *rtd_source_at(struct rtd_relay *r, const struct lnx_gw_hello *h,
				 struct rtd_place *place);
/* A hello from that place: make or renew its source, which is s if it is known.  NULL: there are
 * too many, or no memory. */
struct rtd_source *rtd_source_hello(struct rtd_relay *r, struct rtd_source *s,
				    const struct lnx_gw_hello *h, const struct rtd_place *place,
				    uint64_t now);
/* May it fill one more buffer of the class?  If so, it has. */
bool rtd_source_charge(struct rtd_relay *r, struct rtd_source *s, unsigned class);
void rtd_source_release(struct rtd_source *s, unsigned class);
/* An info has arrived at the source with that account; 0: it was another record. */
void rtd_source_arrived(struct rtd_relay *r, uint16_t account);
/* Free those that were not heard for long. */
void rtd_sources_expire(struct rtd_relay *r, uint64_t now);
void rtd_sources_free(struct rtd_relay *r);

/* ---- host.c ---- */

/* The host of that rail, with one source more.  NULL: it has too many, or no memory. */
struct rtd_host *rtd_host_get(struct rtd_relay *r, const struct lnx_addr_rail *rail);
/* Is that rail on it? */
bool rtd_host_is(const struct rtd_host *h, const struct lnx_addr_rail *rail);
/* It has one source less, which is s. */
void rtd_host_put(struct rtd_relay *r, const struct rtd_source *s);
/* What limits the hellos of the host that this one says it is from; rail: came over it. */
struct rtd_limit *rtd_host_hellos(struct rtd_relay *r, unsigned rail,
				  const struct lnx_gw_hello *h);
/* Something has arrived at the address that the source has named: it counts. */
void rtd_source_reached(struct rtd_relay *r, struct rtd_source *s);
/* And it knows what that was. */
void rtd_source_confirmed(struct rtd_relay *r, struct rtd_source *s);
/* Before grants are asked for: divide the pools anew if something has changed. */
void rtd_grants_renew(struct rtd_relay *r);
/* What a source may fill now. */
uint32_t rtd_grant(const struct rtd_relay *r, const struct rtd_source *s, unsigned grant);

/* ---- stream.c ---- */

/* A frame of len bytes has come, of that source and over that rail. */
void rtd_stream_came(struct rtd_stream *s, unsigned rail, const struct rtd_source *source,
		     size_t len, uint64_t now);

/* ---- dest.c ---- */

/* The destination with that key, or NULL; it counts as used. */
struct rtd_dest *rtd_dest_find(struct rtd_relay *r,
			       const uint8_t key[LNX_ROUTE_RAIL_BYTES], uint64_t now);
/* A new one.  NULL: the table is full of destinations in use, or no memory. */
struct rtd_dest *rtd_dest_make(struct rtd_relay *r,
			       const uint8_t key[LNX_ROUTE_RAIL_BYTES],
			       const struct lnx_addr_rail *addr, uint64_t now);
/* It cannot be used until failed_ns: what waits for it is dropped. */
void rtd_dest_fail(struct rtd_relay *r, struct rtd_dest *d, enum rtd_reason reason,
		   uint64_t now);
/* How many buffers of the class it may fill. */
uint32_t rtd_dest_share(const struct rtd_relay *r, unsigned class);
/* The buffer waits for d, behind others of its source; control comes first.  false: no
 * memory. */
bool rtd_dest_queue(struct rtd_relay *r, struct rtd_dest *d, struct rtd_buf *buf);
/* Drop everything that waits for it. */
void rtd_dest_purge(struct rtd_relay *r, struct rtd_dest *d, enum rtd_reason reason,
		    const char *why, uint64_t now);
/* Drop everything that waits for a rail; with RTD_RAILS all frames that wait for any. */
void rtd_dests_purge(struct rtd_relay *r, unsigned rail, enum rtd_reason reason,
		     const char *why, uint64_t now);
/* Send what may be sent. */
void rtd_dests_run(struct rtd_relay *r, uint64_t now);
void rtd_dests_expire(struct rtd_relay *r, uint64_t now);
void rtd_dests_free(struct rtd_relay *r);

/* ---- control.c ---- */

void rtd_control_rx(struct rtd_relay *r, unsigned rail, const uint8_t *bytes, size_t len,
		    uint64_t now);
/* A note to a source: count frames like the one with that envelope were dropped. */
void rtd_note(struct rtd_relay *r, struct rtd_source *s, unsigned reason,
	      const uint8_t *bytes, uint32_t wait_ms, uint64_t now);
/* Tell all sources what has changed; few at a time. */
void rtd_sweep(struct rtd_relay *r, uint64_t now);
/* Ask other gateways. */
uint64_t rtd_gateways_run(struct rtd_relay *r, uint64_t now);
/* A buffer for a record of len bytes at most, or NULL. */
struct rtd_buf *rtd_control_buf(struct rtd_relay *r, size_t len);
/* Queue it to an address that a source has named.  Frees it if that fails. */
bool rtd_control_queue(struct rtd_relay *r, struct rtd_buf *buf, struct rtd_source *s,
		       const struct lnx_addr_rail *to, uint64_t now);
/* The rail of the source that it is told things at, or NULL: none of ours that leads there is up. */
const struct rtd_back *rtd_back_usual(const struct rtd_relay *r, const struct rtd_source *s);
/* A nonce that others cannot guess: another one for each `of`. */
uint32_t rtd_nonce(const struct rtd_relay *r, uint64_t of);

static inline bool rtd_key_fits(const struct rtd_relay *r, uint64_t key)
{
	return key == r->s.key;
}

/* ---- ask.c ---- */

/* A question, or an answer to one, has come. */
void rtd_ask_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now);
void rtd_tell_rx(struct rtd_relay *r, const uint8_t *bytes, size_t len, uint64_t now);
/* Ask whether the host of a destination answers; one that does not fails. */
void rtd_ask_dest(struct rtd_relay *r, const struct rtd_dest *d, uint64_t now);
/* Ask that gateway whether it does; rtd_dest_in_time if so. */
void rtd_ask_gateway(struct rtd_relay *r, struct rtd_gateway *gw, const struct rtd_dest *d,
		     uint64_t now);
/* Ask other gateways what one has not answered yet.  When to call it next. */
uint64_t rtd_asks_run(struct rtd_relay *r, uint64_t now);

/* A number that others cannot guess: another one for each `of`. */
static inline uint64_t rtd_secret(const struct rtd_relay *r, uint64_t of)
{
	return lnx_keyed64(r->s.secret ^ r->s.id, of);
}

static inline uint32_t rtd_hash(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ *p++) * 16777619u;
	return (h ^ h >> 15) % RTD_HASH;
}

static inline uint32_t rtd_hash64(uint64_t v)
{
	return (uint32_t)(lnx_mix64(v) >> 20) % RTD_HASH;
}

#endif
