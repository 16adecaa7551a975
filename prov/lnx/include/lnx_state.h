/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte of the state segment: what a process publishes of its endpoints, for
 * lnxctl and other readers, and where it takes requests.
 *
 *	/dev/shm/lnx-UID/PID.STARTED[.N]
 *
 * The directory has mode 0700, the file mode 0600, both of the user that the process
 * runs as.  PID is decimal, STARTED the start time of the process in clock ticks since
 * boot; N is there only if the process has several libraries.  The file appears with
 * the first endpoint and goes with the last.  After a process was killed it stays, for
 * post-mortem reading, until a later process of the user removes it.
 *
 * Beside it is the health board (policy/board.h), if there is one.
 *
 * A file is a header, with the mailbox and the directory of tables in it, then tables,
 * anywhere.  A table is an array of records of one kind, of the process (owner 0) or
 * of one endpoint (owner: its number).  Integers are in the byte order of the machine,
 * times are in ns: CLOCK_MONOTONIC, or of day where the name has "wall".  Text ends
 * with NUL unless it fills its member; texts are printable ASCII.
 *
 * Versions.  A reader refuses a file of another `version`.  Everything else may grow
 * within a version: new kinds of tables, new members at the end of a record or header,
 * new bits.  So a reader takes sizes and positions from the file, takes what is missing
 * at the end of a record for 0, and skips kinds and bits that it does not know.
 *
 * Consistency.  Each record begins with a sequence counter, which is odd while the
 * record is being written and grows by 2 with each writing.  A reader that sees the
 * same even counter before and after has read one state.  A process that was killed may
 * leave an odd one.  Tables have such a counter for the members of the directory entry.
 *
 * Writers: the process writes everything but the words marked "reader".  Those
 * are one word that any reader adds to, and a block for requests that one reader at a
 * time uses, under a lock of the file.
 *
 * A reader must expect any content: every position, size, count and text in it.  So must
 * the process, as any process of the user can write into the file: it reads back nothing
 * but counters of consistency and what readers write, and a damaged file hurts readers only.
 *
 * One thing it cannot survive: a file that is made shorter ends each process that has it
 * mapped, and touches it then, with SIGBUS.  No permission helps, because a user may change
 * those of its own files, and seals exist only for files without a name (memfd_create),
 * which would be gone with the process.  So never write to the file but as above: to copy
 * or to remove it is harmless.
 */
#ifndef LNX_STATE_H
#define LNX_STATE_H

#include <assert.h>
#include <stdint.h>

#define LNX_STATE_DIR		"/dev/shm"	/* has lnx-UID */
#define LNX_STATE_MAGIC		"LNXSTATE"	/* 8 bytes, without NUL */
#define LNX_STATE_VERSION	1
#define LNX_STATE_ORDER		0x01020304u

#define LNX_STATE_NAME		128	/* of a rail, a process, a NID */
#define LNX_STATE_MODULE	512	/* of the path of a file */
#define LNX_STATE_TABLES	320	/* entries of the directory: for 39 endpoints */
/* Of a request, with NUL, and of one part of its reply. */
#define LNX_STATE_REQUEST	8448
#define LNX_STATE_REPLY		16384

/* ---- the directory ---- */

enum lnx_state_kind {
	LNX_STATE_FREE,			/* the entry is not used */
	LNX_STATE_SCHEMA,		/* lnx_state_counter: names of counters; owner 0 */
	LNX_STATE_EP,			/* lnx_state_ep: one record */
	LNX_STATE_COUNTERS,		/* lnx_state_counters: one record */
	LNX_STATE_BASE,			/* the same, as of the last reset */
	LNX_STATE_PARAM,		/* lnx_state_param */
	LNX_STATE_RAIL,			/* lnx_state_rail */
	LNX_STATE_PEER,			/* lnx_state_peer */
	LNX_STATE_PATH,			/* lnx_state_path */
	LNX_STATE_CLASS,		/* lnx_state_counter: classes of failures, in the
					 * order of failed[]; owner 0 */
	LNX_STATE_RULE,			/* lnx_state_rule: in their order */
};

struct lnx_state_table {
	uint32_t seq;
	uint16_t kind;			/* enum lnx_state_kind */
	uint16_t flags;			/* 0 */
	uint32_t owner;			/* number of an endpoint; 0: the process */
	uint32_t record_size;
	uint32_t capacity;		/* records that there is room for */
	uint32_t count;			/* that are valid */
	uint64_t offset;		/* of the first one in the file */
	uint64_t total;			/* objects that there are; if it is more than
					 * count, the rest is not in the table */
	/* Peers and paths are written in walks over all of them, which may take many
	 * passes.  The last complete one, and when it began; both 0: there was none.
	 * A record that has another `walk` is of an older one, or of the one under way.
	 * Rules: `walk` counts their changes, and all records of one list have it. */
	uint64_t walk;
	uint64_t walk_ns;
};
static_assert(sizeof(struct lnx_state_table) == 56, "no padding");

/* ---- mailbox ---- */

/*
 * `look` (reader): add 1 to have everything published soon, or a request looked at.
 * A process looks at it in its slow passes, if it makes progress.
 *
 * A request: take the exclusive lock (fcntl, F_OFD_SETLK) of the file's byte 0, write
 * eid, skip, len and text, then request, a number that is neither the last one nor 0,
 * then add to look.  The endpoint of that eid sets `taken` to the number, and when the
 * request has been carried out `result`, reply_len, part_len and reply, and then
 * `done`.  A reader that does not want to wait longer sets `cancel` to the number; if
 * taken is that number then, the request is being carried out, else it never will be.
 *
 * A reply may have several parts: reply_len is the length of all, part_len of what is
 * in reply.  The next part: a request without text (len 0) and with skip, the bytes of
 * the reply that were read already.
 */
struct lnx_state_mailbox {
	_Alignas(64) uint32_t look;	/* reader */
	_Alignas(64) uint32_t request;	/* reader: this line, the next one and text */
	uint32_t cancel;
	uint64_t eid;
	uint32_t skip;
	uint32_t len;			/* of text, without NUL */
	char text[LNX_STATE_REQUEST];
	_Alignas(64) uint32_t taken;
	uint32_t done;
	int32_t result;			/* 0 or more, or a negative errno */
	uint32_t reply_len;
	uint32_t part_len;
	char reply[LNX_STATE_REPLY];	/* as of lnx_control_ops.request */
};

/* ---- header ---- */

struct lnx_state_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order;		/* LNX_STATE_ORDER */
	uint32_t header_size;		/* up to the first table */
	uint32_t table_size;		/* of an entry of the directory */
	uint32_t ntable;		/* entries of it */
	uint32_t tables;		/* its offset */
	uint32_t mailbox;		/* offset */
	uint32_t mailbox_size;
	uint32_t pid;			/* in the pid name space of pid_ns */
	uint32_t uid;
	uint64_t started;		/* of the process, as in the name of the file */
	uint64_t pid_ns;		/* inode of its pid name space; 0: unknown */
	uint64_t opened_ns;
	uint64_t opened_wall_ns;
	uint64_t seen_ns;		/* the last pass of any endpoint that published
					 * something */
	uint32_t fi_version;		/* of libfabric: major << 16 | minor */
	uint32_t ncpu;			/* that it may run on */
	char lnx[32];			/* release of lnx */
	char host[LNX_STATE_NAME];	/* name */
	char program[LNX_STATE_NAME];	/* as /proc names it */
	char rank[16];			/* in its job; "": not known */
	char job[LNX_STATE_NAME];	/* id of the job; "": not known */
	char cpus[LNX_STATE_NAME];	/* list, as in "0-3,8" */
	char module[LNX_STATE_MODULE];	/* file that lnx was loaded from; "": not known, or
					 * the path is longer */
};

/* The beginning of a file of this version, as this release writes it. */
struct lnx_state_front {
	struct lnx_state_header header;
	struct lnx_state_mailbox mailbox;
	_Alignas(64) struct lnx_state_table table[LNX_STATE_TABLES];
};

/* ---- records ---- */

/* Start of each record. */
struct lnx_state_record {
	uint32_t seq;
	uint32_t walk;			/* low bits of the number of its walk, or 0 */
};

struct lnx_state_counter {
	struct lnx_state_record rec;
	char name[64];
	char help[LNX_STATE_NAME];
};

/* The values are in the order of the schema.  Counters are never set back: what a reset
 * does is to copy them to the table BASE. */
struct lnx_state_counters {
	struct lnx_state_record rec;
	uint64_t when_ns;		/* of the values; BASE: of the reset, 0: none */
	uint64_t value[];
};

enum lnx_state_origin {
	LNX_STATE_DEFAULT,
	LNX_STATE_ENVIRONMENT,
	LNX_STATE_CONFIG,		/* libfabric.conf */
	LNX_STATE_DERIVED,		/* changed to fit other parameters */
	LNX_STATE_SET,			/* by a request, while the endpoint is open */
	LNX_STATE_FILE,			/* FI_LNX_CONFIG or /etc/lnx.conf */
};

#define LNX_STATE_PARAM_LIVE	1u	/* may be set while the endpoint is open */
#define LNX_STATE_PARAM_SECRET	2u	/* the value is not told */
#define LNX_STATE_PARAM_CUT	4u	/* it is longer than its member */

struct lnx_state_param {
	struct lnx_state_record rec;
	uint8_t origin;			/* enum lnx_state_origin */
	uint8_t flags;			/* LNX_STATE_PARAM_* */
	uint8_t reserved[6];
	char name[48];			/* lower case, without FI_LNX_ */
	char value[192];		/* "": none */
	char unit[16];
};

#define LNX_STATE_EP_NATIVE	1u	/* operations are the core providers' own */
#define LNX_STATE_EP_THREAD	2u	/* a helper thread makes progress */

struct lnx_state_ep {
	struct lnx_state_record rec;
	uint32_t number;		/* the owner of its tables, from 1 */
	uint32_t flags;			/* LNX_STATE_EP_* */
	uint64_t eid;
	uint64_t enabled_ns;
	uint64_t enabled_wall_ns;
	uint64_t seen_ns;		/* the last pass that published something */
	uint64_t wanted_ns;		/* when a reader last added to `look`; 0: never */
	uint64_t look;			/* value of `look` then */
	uint64_t pass;			/* progress passes so far, modulo 2^32 */
	uint64_t npeer;			/* peers with a session, or one that begins */
	uint64_t naddr;			/* addresses in its AV */
	uint64_t rail_ns;		/* derived: longest wait for an answer to one try */
	uint32_t nrail;
	uint32_t nrecovery;		/* rails, remote rails and paths with a health
					 * below 1000, of those published */
	uint64_t msgs_alloc;		/* frames that it has memory for, in use */
	uint64_t msgs_max;		/* and the most there were, of each of the sizes that
					 * they come in */
	uint64_t rst_alloc;		/* operations that wait for an answer */
	char link[512];			/* canonical text */
	char address[384];		/* as fi_av_straddr prints it */
	char routes[512];		/* canonical text of those that are in use; if it
					 * is longer it is cut, with "..." at its end */
	char missing_route[320];	/* text of one that what has come needs to be
					 * answered; empty: none is known */
};

#define LNX_STATE_HEALTH_DOWN	1u
#define LNX_STATE_HEALTH_FATAL	2u	/* its link is down */
#define LNX_STATE_HEALTH_OUT	4u	/* no proof of life since it went down */
#define LNX_STATE_HEALTH_PINGING 8u
#define LNX_STATE_HEALTH_PINNED	16u	/* set by hand */
#define LNX_STATE_HEALTH_DRAIN	32u	/* the peer asks to avoid it */
#define LNX_STATE_HEALTH_RECOVERY 64u	/* it is pinged */
#define LNX_STATE_HEALTH_HEARSAY 128u	/* the value is another process's; nothing has come
					 * over the rail yet */

struct lnx_state_health {
	uint16_t value;			/* 0 to 1000 */
	uint16_t flags;			/* LNX_STATE_HEALTH_* */
	uint8_t npings;			/* without answer, so far */
	uint8_t flaps;
	uint16_t reserved;
	uint64_t ready_ns;		/* not used before; 0: now */
	uint64_t next_ns;		/* of the next ping; 0: none is due */
};

/* What a frame, or an operation of a core, is for LNet. */
enum lnx_state_op {
	LNX_STATE_PUT,			/* messages, and writes */
	LNX_STATE_GET,			/* reads that are asked for */
	LNX_STATE_REPLY_OP,		/* data that answers a GET */
	LNX_STATE_ACK,
	LNX_STATE_HELLO,		/* HELLO, PROBE, PONG: all that is no traffic */
	LNX_STATE_NOPS,
};

/*
 * Of a rail: operations of the application, and their payload.  send: messages, writes
 * and atomics; recv: the same of peers, and own reads; the bytes that reads and atomics
 * return are received.  PUT is these without the reads; other kinds are frames, and pieces
 * that a core reads.  Of shared memory only messages are counted.  drop_length: of whole
 * frames.
 *
 * Of a path: frames in the sequence, each time that they leave or come, also those that
 * are dropped then, and their bytes with headers.  What a core reads or writes is in
 * sent[GET], received[REPLY] and sent[PUT] only, frames outside the sequence in ACK and
 * HELLO only.  A path without LNX_STATE_HAVE_OPS is not counted by kind: that begins when
 * there are several paths to the peer, when something fails, or when a reader looks.
 */
struct lnx_state_traffic {
	uint64_t send_count, send_length;
	uint64_t recv_count, recv_length;
	uint64_t drop_count, drop_length;
	uint64_t sent[LNX_STATE_NOPS];
	uint64_t received[LNX_STATE_NOPS];
	uint64_t dropped[LNX_STATE_NOPS];
};

/* Failures by class: LNX_STATE_CLASS names them. */
#define LNX_STATE_CLASSES	11

#define LNX_STATE_RAIL_LOCAL	1u	/* shared memory */
#define LNX_STATE_RAIL_LINK_DOWN 2u
#define LNX_STATE_RAIL_CLOSED	4u	/* until a peer can be reached by it */
#define LNX_STATE_RAIL_GONE	8u	/* its device is gone */
#define LNX_STATE_RAIL_HEALTH	16u	/* it has a health */

/* In `have`: which members are counted at all. */
#define LNX_STATE_HAVE_COUNTS	1u	/* send and recv, count and length */
#define LNX_STATE_HAVE_DROPS	2u
#define LNX_STATE_HAVE_OPS	4u	/* sent, received, dropped */
#define LNX_STATE_HAVE_CLASSES	8u
#define LNX_STATE_HAVE_LATENCY	16u

struct lnx_state_rail {
	struct lnx_state_record rec;
	uint32_t index;			/* in the endpoint */
	uint32_t flags;			/* LNX_STATE_RAIL_* */
	uint32_t have;
	uint32_t wire_index;		/* by which peers know it; UINT32_MAX: none */
	char name[LNX_STATE_NAME];	/* "tcp:eth0" */
	char nid[LNX_STATE_NAME];	/* "10.77.0.1@tcp" */
	char net[64];			/* "tcp" */
	char interface[64];		/* "eth0" */
	struct lnx_state_health health;
	uint64_t link_bps;		/* nominal; 0: not known */
	uint32_t numa;			/* distance from the thread that enabled */
	int32_t numa_node;		/* of its device; -1: not known */
	uint32_t busy;			/* frames and reads that its core has */
	uint32_t nposted;		/* receive buffers that its core has */
	uint64_t reopened_ns;		/* 0: never */
	uint32_t port;			/* 0: none */
	uint32_t reserved;
	struct lnx_state_traffic traffic;
	struct lnx_state_traffic base;	/* the same, as of the last reset */
	uint64_t failed[LNX_STATE_CLASSES];
	uint64_t failed_base[LNX_STATE_CLASSES];
	/* What rules (lnx_udsp(5)) give it: 1 + priority; 0: none. */
	uint32_t net_priority, nid_priority;
	/* The health board: the last news of another process that was trusted, and what
	 * this process told last; times are 0 if there was none. */
	uint64_t heard_ns, told_ns;
	uint64_t heard_speed;		/* bytes per second; 0: not known */
	uint32_t heard_pid;
	uint16_t heard, told;		/* health, 0 to 1000 */
	/* Credits, in frames: limits, 0: none; those in use, and the most that were in use
	 * or waited for; frames that wait for them. */
	uint32_t credits_max, peer_credits_max;
	uint32_t credits_used, credits_most;
	uint32_t credits_queued;
	uint32_t reserved2;
};

enum lnx_state_life {			/* as enum lnx_life */
	LNX_STATE_LIFE_OPEN,
	LNX_STATE_LIFE_CLOSING,
	LNX_STATE_LIFE_CLOSED,
	LNX_STATE_LIFE_DEAD,
	LNX_STATE_LIFE_OTHER,
};

#define LNX_STATE_PEER_LOCAL	1u	/* reached over shared memory */
#define LNX_STATE_PEER_SELF	2u	/* the endpoint itself */
#define LNX_STATE_PEER_UNSOLICITED 4u	/* in no address vector */
#define LNX_STATE_PEER_KEY	8u	/* its job key is another one */
#define LNX_STATE_PEER_MET	16u	/* it has answered */

struct lnx_state_peer {
	struct lnx_state_record rec;
	uint64_t eid;
	uint64_t addr;			/* fi_addr_t; UINT64_MAX: none */
	uint32_t flags;			/* LNX_STATE_PEER_* */
	uint8_t life;			/* enum lnx_state_life */
	uint8_t npath;
	uint8_t current;		/* index of the path in use */
	uint8_t n_stripe;		/* paths that share large messages */
	uint8_t n_rr;			/* paths that messages alternate between */
	uint8_t reserved[3];
	uint32_t pid;			/* of a local peer; 0: not known */
	uint32_t first_path;		/* of its npath records in the table of paths */
	uint32_t window;		/* frames that may be unacknowledged */
	uint32_t in_flight;		/* that are */
	uint32_t queued;		/* that wait for the window or a path */
	uint32_t large;			/* large messages under way, both directions */
	uint32_t reserved2;
	uint64_t in_flight_bytes;
	uint64_t next;			/* number of the next frame to it, */
	uint64_t expected;		/* and of the next one from it */
	uint64_t began_wall_ns;		/* the session */
	uint64_t silent_ns;		/* since when it is silent while something is
					 * due; 0: it is not */
};

enum lnx_state_path_state {		/* as enum lnx_path_state */
	LNX_STATE_PATH_IDLE,
	LNX_STATE_PATH_CONNECTING,
	LNX_STATE_PATH_UP,
	LNX_STATE_PATH_DEAD,
	LNX_STATE_PATH_DOWN,
};

#define LNX_STATE_PATH_DRAINED	1u	/* DOWN because of an administrative weight */
#define LNX_STATE_PATH_LINK_DOWN 2u	/* at its local end */
#define LNX_STATE_PATH_REMOTE_DOWN 4u	/* at its far end */
#define LNX_STATE_PATH_CURRENT	8u	/* frames stay on it */
#define LNX_STATE_PATH_STRIPES	16u	/* shares large messages */
#define LNX_STATE_PATH_WITHDRAWN 32u	/* no route leads over it, or routes replace it */

/* What puts a path behind the first one: the criterion by which it is worse. */
enum lnx_state_why {			/* as enum lnx_why */
	LNX_STATE_WHY_BEST,		/* it is the first; or not known */
	LNX_STATE_WHY_ROUTED,		/* no net in common */
	LNX_STATE_WHY_PEER_NET_HEALTH,
	LNX_STATE_WHY_PEER_NET_RULE,
	LNX_STATE_WHY_NET_HEALTH,
	LNX_STATE_WHY_NET_RULE,
	LNX_STATE_WHY_PEER_NET_USED,
	LNX_STATE_WHY_NET_USED,
	LNX_STATE_WHY_LINK_DOWN,
	LNX_STATE_WHY_RAIL_HEALTH,
	LNX_STATE_WHY_RAIL_RULE,
	LNX_STATE_WHY_DEVICE,
	LNX_STATE_WHY_NUMA,
	LNX_STATE_WHY_RAIL_CREDITS,
	LNX_STATE_WHY_RAIL_USED,
	LNX_STATE_WHY_REMOTE_HEALTH,
	LNX_STATE_WHY_REMOTE_RULE,
	LNX_STATE_WHY_PAIR_RULE,
	LNX_STATE_WHY_REMOTE_CREDITS,
	LNX_STATE_WHY_REMOTE_USED,
	LNX_STATE_WHY_PATH_DOWN,	/* a part of it is down */
	LNX_STATE_WHY_HELD,		/* it is back, and must work for a while first */
	LNX_STATE_WHY_PATH_HEALTH,
	LNX_STATE_WHY_SPEED,
	LNX_STATE_WHY_SHARED,		/* its rails are in use by better paths */
	LNX_STATE_WHY_ORDER,		/* equal in all else */
	LNX_STATE_NWHY,
};

/* Log2 histogram of times: bucket i counts those below 2^i us, the last one all
 * others. */
#define LNX_STATE_BUCKETS	24

struct lnx_state_latency {
	uint64_t samples;
	uint64_t min_ns, max_ns, sum_ns;
	uint32_t bucket[LNX_STATE_BUCKETS];
};

struct lnx_state_path {
	struct lnx_state_record rec;
	uint64_t eid;			/* of its peer */
	uint32_t index;			/* in the peer */
	uint32_t rail;			/* index of the local rail */
	uint32_t remote_rail;		/* index of the peer's rail */
	uint32_t have;			/* LNX_STATE_HAVE_* */
	uint16_t flags;			/* LNX_STATE_PATH_* */
	uint8_t state;			/* enum lnx_state_path_state */
	uint8_t rank;			/* its class: 0 is the best */
	uint16_t share;			/* of what health leaves it, in thousandths */
	uint8_t why;			/* enum lnx_state_why, as of the last ranking */
	uint8_t reserved;
	char nid[LNX_STATE_NAME];	/* of the peer's rail */
	struct lnx_state_health health;
	struct lnx_state_health remote;	/* of the peer's rail: equal in all paths to it */
	uint64_t sent_bytes;		/* of frames */
	uint64_t delivered_bytes;	/* that the peer is known to have */
	uint64_t received_bytes;	/* that came over the peer's path of that index */
	uint64_t inflight_limit;
	uint64_t link_bps;		/* nominal; 0: not known */
	uint64_t send_rate, read_rate;	/* measured, bytes per second; 0: not known */
	uint64_t srtt_ns, rttvar_ns;	/* of acknowledgements; 0: not known */
	uint64_t answer_ns;		/* of PROBEs; 0: not known */
	uint64_t read_bytes;		/* being read over it */
	uint64_t down_ns;		/* since when it is DOWN; 0: it is not */
	uint64_t retry_ns;		/* not tried before */
	/* Since the last reset, which sets these to 0. */
	struct lnx_state_traffic traffic;
	uint64_t failed[LNX_STATE_CLASSES];
	struct lnx_state_latency ack;	/* from a PROBE about latency to its answer, and of some
					 * frames that left once to their acknowledgement */
	struct lnx_state_latency reply;	/* from a read that is posted to its end */
	/* What rules give the peer's rail: 1 + priority; 0: none. */
	uint32_t net_priority, nid_priority;
	uint32_t preferred;		/* rails that pair rules prefer for it: bits, by index */
	/* Credits, in frames, as those of a rail; credits_most has those that waited for
	 * other reasons, too. */
	uint32_t credits_max;		/* 0: the peer's window is the limit */
	uint32_t credits_used, credits_most;
};

/* The rules of an endpoint (lnx_udsp(5)); at most LNX_STATE_RULES. */
#define LNX_STATE_RULES		256
#define LNX_STATE_PATTERN	256	/* of a text of one, with NUL */

struct lnx_state_rule {
	struct lnx_state_record rec;	/* walk: low bits of that of the table */
	uint32_t id;
	uint32_t index;
	uint32_t priority;		/* UINT32_MAX: none */
	uint32_t type;			/* enum lnx_policy_type: NET, NID, PEER, GATEWAY */
	uint32_t state;			/* enum lnx_policy_state */
	uint32_t rails;			/* of ours that match src */
	uint64_t remote;		/* rails of peers that match dst */
	uint64_t matched, decides;	/* rails for which it could decide, and does */
	char src[LNX_STATE_PATTERN];	/* canonical text; empty: not given */
	char dst[LNX_STATE_PATTERN];
	char rte[LNX_STATE_PATTERN];
};

static_assert(sizeof(struct lnx_state_front) % 64 == 0, "tables follow it");
/* A record of 8-byte words has no padding that would be different elsewhere. */
static_assert(sizeof(struct lnx_state_ep) % 8 == 0 &&
	      sizeof(struct lnx_state_rail) % 8 == 0 &&
	      sizeof(struct lnx_state_peer) % 8 == 0 &&
	      sizeof(struct lnx_state_path) % 8 == 0 &&
	      sizeof(struct lnx_state_rule) % 8 == 0 &&
	      sizeof(struct lnx_state_param) % 8 == 0, "whole words");

#endif
