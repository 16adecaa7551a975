/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts of obj/counts.h, by path and by its rail.  Owner lock held; calls no core. */
#ifndef LNX_COUNT_H
#define LNX_COUNT_H

#include "obj/ep.h"
#include "wire/atomic.h"
#include "wire/hdr.h"

/* The counts of path, made if needed; NULL: memory is short. */
static inline struct lnx_path_counts *lnx_path_counts_get(const struct lnx_peer *peer,
							  struct lnx_path *path)
{
	if (!path->counts)
		path->counts = lnx_path_counts_new(peer, path);
	return path->counts;
}

/* The path by which the last frame of peer in the sequence came, or NULL. */
static inline struct lnx_path *lnx_count_path(const struct lnx_peer *peer)
{
	return peer->npath ? peer->path[peer->rx.path_back] : NULL;
}

/* The path by which a frame of peer came over rail: it may have waited since. */
static inline struct lnx_path *lnx_count_came(const struct lnx_peer *peer,
					      const struct lnx_rail *rail,
					      const struct lnx_hdr *h)
{
	unsigned i;

	for (i = 0; peer->npath > 1 && i < peer->npath; i++)
		if (peer->path[i]->rail == rail && peer->path[i]->remote_rail == h->rail)
			return peer->path[i];
	return lnx_count_path(peer);
}

/* A frame that is no message has left. */
static inline void lnx_count_sent(struct lnx_path *path, uint8_t kind)
{
	path->rail->counts.sent[kind]++;
	if (path->counts)
		path->counts->c.sent[kind]++;
}

/* A frame has left once more.  Rails count each frame once. */
static inline void lnx_count_resent(struct lnx_path *path, uint8_t kind)
{
	if (path->counts && !lnx_wire_kind_message(kind))
		path->counts->c.sent[kind]++;
}

/* And has come.  path: NULL, not known. */
static inline void lnx_count_received(struct lnx_rail *rail, struct lnx_path *path,
				      uint8_t kind)
{
	rail->counts.received[kind]++;
	if (path && path->counts)
		path->counts->c.received[kind]++;
}

/* A frame of len bytes with its header was dropped.  peer: NULL, not known. */
static inline void lnx_count_drop(struct lnx_rail *rail, const struct lnx_peer *peer,
				  const struct lnx_hdr *h, size_t len)
{
	struct lnx_path *path = peer ? lnx_count_came(peer, rail, h) : NULL;
	unsigned kind = h->kind;

	lnx_counts_drop(&rail->counts, kind, len);
	if (path && lnx_path_counts_get(peer, path))
		lnx_counts_drop(&path->counts->c, kind, len);
}

static inline void lnx_count_failed(const struct lnx_peer *peer, struct lnx_path *path,
				    unsigned class)
{
	path->rail->counts.failed[class]++;
	if (lnx_path_counts_get(peer, path))
		path->counts->c.failed[class]++;
}

/* A read or write of the core was posted; a read has ended well after that time, which counts
 * only if the piece was read once. */
static inline void lnx_count_posted(struct lnx_path *path, bool write)
{
	struct lnx_counts *c = &path->rail->counts;

	c->reads += !write;
	c->writes += write;
	if (path->counts) {
		path->counts->c.reads += !write;
		path->counts->c.writes += write;
	}
}

static inline void lnx_count_read_done(struct lnx_path *path, uint64_t ns, bool once)
{
	path->rail->counts.reads_done++;
	if (path->counts) {
		path->counts->c.reads_done++;
		if (lnx_likely(once))
			lnx_counts_latency(&path->counts->reply, ns);
	}
}

/* A PROBE over path was answered over it. */
static inline void lnx_count_answer(const struct lnx_peer *peer, struct lnx_path *path,
				    uint64_t ns)
{
	if (lnx_path_counts_get(peer, path))
		lnx_counts_latency(&path->counts->ack, ns);
}

/* A frame about memory: writes and atomics, of which it is the last one, and their bytes.
 * What tells of a write by a core has none. */
static inline void lnx_count_memory(const struct lnx_wire_hdr *w, uint64_t *n,
				    uint64_t *bytes)
{
	switch (w->kind) {
	case LNX_KIND_PUT:
		*n += (w->flags & LNX_WIRE_F_LAST) != 0;
		*bytes += le64toh(w->len);
		break;
	case LNX_KIND_PUT_RTS:
		(*n)++;
		break;
	case LNX_KIND_ATOMIC:
		(*n)++;
		*bytes += lnx_atomic_operands(w + 1, le64toh(w->len));
		break;
	default:
		break;
	}
}

/* Frames in the sequence that were dropped. */
static inline uint64_t lnx_count_dropped(const struct lnx_path_counts *c)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 1; c && i < LNX_KIND_MAX; i++)
		n += lnx_wire_kind_sequenced((uint8_t)i) ? c->c.dropped[i] : 0;
	return n;
}

/* Frames in the sequence, and their bytes, that have come over the path by which the last one
 * came, since that is so.  Those before it are in the counts of their paths. */
static inline uint64_t lnx_count_lately(const struct lnx_peer *peer, uint64_t *bytes)
{
	uint64_t n = lnx_peer_handled(peer) + peer->chan.rx.n_ooo;
	unsigned i;

	*bytes = 0;
	for (i = 0; i < LNX_PATHS_MAX; i++)
		*bytes += peer->rx.bytes[i];
	for (i = 0; i < peer->npath; i++) {
		const struct lnx_path_counts *c = peer->path[i]->counts;

		n += lnx_count_dropped(c);
		n -= c ? c->received : 0;
		*bytes -= c ? c->received_bytes : 0;
	}
	return n;
}

/* From now on frames come over another path.  The first one, of len bytes, is in rx.bytes
 * already, and has not been handled. */
static inline void lnx_count_switch(struct lnx_peer *peer, size_t len)
{
	struct lnx_path *path = lnx_count_path(peer);
	uint64_t bytes, n = lnx_count_lately(peer, &bytes);

	if (path && path->counts) {
		path->counts->received += n;
		path->counts->received_bytes += bytes - len;
	}
}

#endif
