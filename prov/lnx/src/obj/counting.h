/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts of obj/counts.h, by path and by its rail.  Owner lock held; calls no core. */
#ifndef LNX_COUNT_H
#define LNX_COUNT_H

#include <stdlib.h>

#include "obj/ep.h"

/* The counts of path, made if needed; NULL: memory is short. */
static inline struct lnx_path_counts *lnx_path_counts_get(struct lnx_path *path)
{
	if (!path->counts)
		path->counts = calloc(1, sizeof(*path->counts));
	return path->counts;
}

/* The path by which the last frame of peer in the sequence came, or NULL. */
static inline struct lnx_path *lnx_count_path(const struct lnx_peer *peer)
{
	return peer->npath ? peer->path[peer->rx.path_back] : NULL;
}

/* A frame that is no message has left. */
static inline void lnx_count_sent(struct lnx_path *path, uint8_t kind)
{
	path->rail->counts.sent[kind]++;
	if (path->counts)
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

static inline void lnx_count_drop(struct lnx_rail *rail, struct lnx_path *path,
				  unsigned kind, size_t len)
{
	lnx_counts_drop(&rail->counts, kind, len);
	if (path && lnx_path_counts_get(path))
		lnx_counts_drop(&path->counts->c, kind, len);
}

static inline void lnx_count_failed(struct lnx_path *path, unsigned class)
{
	path->rail->counts.failed[class]++;
	if (lnx_path_counts_get(path))
		path->counts->c.failed[class]++;
}

/* A read or write of the core was posted; a read has ended well after that time. */
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

static inline void lnx_count_read_done(struct lnx_path *path, uint64_t ns)
{
	path->rail->counts.reads_done++;
	if (path->counts) {
		path->counts->c.reads_done++;
		lnx_latency_count(&path->counts->reply, ns);
	}
}

/* A PROBE over path was answered over it. */
static inline void lnx_count_answer(struct lnx_path *path, uint64_t ns)
{
	if (lnx_path_counts_get(path))
		lnx_latency_count(&path->counts->ack, ns);
}

/* One more frame of a peer whose frames come over several paths. */
static inline void lnx_count_frame(struct lnx_peer *peer, size_t len)
{
	struct lnx_path *path = lnx_count_path(peer);

	if (path && path->counts) {
		path->counts->received++;
		path->counts->received_bytes += len;
	}
}

/* Until now all of them came over one. */
static inline void lnx_count_first_frames(struct lnx_peer *peer)
{
	struct lnx_path *path = lnx_count_path(peer);

	if (path && path->counts) {
		path->counts->received = peer->chan.rx.next;
		path->counts->received_bytes = peer->rx.bytes[peer->rx.last_path];
	}
}

#endif
