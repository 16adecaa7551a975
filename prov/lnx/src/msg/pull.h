/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A large transfer and its pieces: what msg/pull.c, which moves them, msg/pull_run.c and
 * msg/pull_line.c, which say whose turn it is, msg/pull_piece.c, where they end, and msg/hedge.c, which has those that
 * are late moved a second time, share.  Owner lock held.
 */
#ifndef LNX_PULL_H
#define LNX_PULL_H

#include "msg/rx.h"

struct lnx_cut;

/*
 * Allocated together with the announcement, when that arrives, so that starting a pull
 * needs no memory.  It is freed with rxe, whose rts points to it.
 */
struct lnx_pull {
	struct lnx_rts rts;			/* first */
	uint64_t came_ns;			/* when it was announced */
	struct lnx_pull_links links;
	bool in_line;				/* at peer->pull.line or behind it */
	struct lnx_rxe *rxe;
	struct lnx_peer *peer;
	bool push;				/* write instead of reading */
	size_t want;				/* bytes to read: what fits the
						 * receive */
	size_t posted;				/* bytes for which reads were made */
	size_t done;
	unsigned inflight;
	int err;				/* first error that is final */
	bool again;				/* only time resumes it */
	uint64_t failing_ns;			/* since when reads fail; 0: they do
						 * not */
	/* While reads fail: */
	uint64_t tried_ns;			/* when the last one failed */
	unsigned tries;				/* failed tries; those at the same
						 * time count once */
	int why;				/* error of the last one */
	bool asked;				/* keys were requested, and answered */
	bool asking;				/* keys are requested: the answer
						 * resumes it */
	uint64_t retry_ns;
	struct lnx_node redo;			/* lnx_chunk.link */
	uint64_t waits_ns;			/* it has all, and waits for reads to end
						 * since; 0: it does not */
	bool confirms;				/* it has all, and the sender was asked with the
						 * frame of this number: */
	uint32_t asked_seq;
	/* Position of `posted` in the sender's pieces and in our iov. */
	unsigned seg;
	size_t seg_off;
	unsigned iov;
	size_t iov_off;
	uint64_t moved[LNX_PATHS_MAX];		/* of `done`, per path */
};

struct lnx_chunk {
	struct lnx_op op;			/* first: context of fi_read */
	bool stale;				/* transferred again over another
						 * path: its end means nothing */
	bool resent;				/* it was posted before, or elsewhere */
	uint8_t not_on;				/* a hedge: 1 + index of the path where
						 * the piece is late */
	struct lnx_chunk *clone;			/* the same piece a second time, waiting
						 * or under way: the first to come
						 * counts; or NULL */
	struct lnx_node link;			/* pull->redo */
	struct lnx_node out;			/* path->reads */
	struct lnx_pull *pull;
	struct lnx_path *path;
	void *local;
	size_t len;
	unsigned seg;
	size_t seg_off;
	uint64_t posted_ns;
	uint64_t expect_ns;			/* so long it should take, when its turn
						 * has come; 0: not known */
};

/* p has something to do: let progress run it.  What ends or begins may also change which path
 * takes pieces of others of the peer. */
static inline void lnx_pull_due(struct lnx_pull *p)
{
	struct lnx_ep *ep = p->rxe->ep;

	if (!lnx_list_linked(&p->links.due))
		lnx_list_add_tail(&ep->pulls.due, &p->links.due);
	if (p->peer->pull.waits)
		p->peer->pull.room = true;
	ep->work |= LNX_WORK_PULL;
}

/*
 * The segment of the application's own read or write of remote memory; NULL: there is
 * none.
 */
static inline struct lnx_rma_segment *lnx_pull_part_of(const struct lnx_pull *p)
{
	return p->rxe->payload_at == LNX_PAYLOAD_RMA ? p->rxe->segment : NULL;
}

/* ---- msg/pull.c ---- */

/* The next step of p: requests pieces, or ends it.  True: it has ended, and is freed.  False:
 * p->again says whether only time resumes it.  Calls cores. */
bool lnx_pull_one(struct lnx_pull *p, uint64_t now);
/*
 * A piece failed, or could not be tried.  hopeless: it would fail again with these
 * keys.  Calls no core.
 */
LNX_COLD void lnx_pull_failed(struct lnx_pull *p, unsigned seg, int err, bool hopeless,
			      uint64_t now);

/* ---- msg/pull_line.c ---- */

/* p is new: it joins the line for paths, as the last one; or those that need none. */
void lnx_pull_join(struct lnx_pull *p);
/* It ends.  It is on no list any more. */
void lnx_pull_leave(struct lnx_pull *p);
/* If all is requested now, what it waits for is no path.  Or some has to be requested again:
 * before what others have not requested yet. */
void lnx_pull_change_place(struct lnx_pull *p);

/* ---- of keys ---- */

/* Index of the key of a piece for the peer's end of a path; -1: there is none. */
static inline int lnx_pull_key(const struct lnx_rts *rts, unsigned seg,
			       const struct lnx_path *path)
{
	unsigned k;

	for (k = 0; k < rts->nkey; k++)
		if (rts->key[seg][k].rail == path->remote_rail)
			return (int)k;
	return -1;
}

/* Does the sender want the piece to be read over that path? */
static inline bool lnx_pull_wanted(const struct lnx_rts *rts, unsigned seg,
				   const struct lnx_path *path)
{
	int k = lnx_pull_key(rts, seg, path);

	return k >= 0 && path->rail->wire_index < LNX_WIRE_RAILS_MAX &&
	       (rts->key[seg][k].from >> path->rail->wire_index & 1);
}

/* When the turn of c, which is under way, came, if it is the oldest on its path: pieces are
 * delivered one by one, in order. */
static inline uint64_t lnx_pull_chunk_since(const struct lnx_chunk *c)
{
	return LNX_MAX(c->posted_ns, c->path->read_done_ns);
}

/* ---- msg/hedge.c ---- */

/* A look, if it is due, at what is being read from a peer whose paths are watched
 * (lnx_peer_detects): pieces that are late are put on the redo lists of their pulls, for other
 * paths.  Arms peer->look for the next one.  Calls cores. */
void lnx_hedge_run(struct lnx_peer *peer, uint64_t now);
/* c is about to be posted, of a peer with several paths: it may be late sooner than the
 * next look is due. */
void lnx_hedge_posted(struct lnx_peer *peer, const struct lnx_chunk *c);
/* c was delivered: its clone is of no use any more. */
LNX_COLD void lnx_hedge_won(struct lnx_chunk *c);
/* c has failed, or nothing is expected of it any more: its clone is left. */
LNX_COLD void lnx_hedge_lost(struct lnx_chunk *c);
/* Was its connection cut, by us, after it was posted? */
static inline bool lnx_pull_was_cut(const struct lnx_chunk *c)
{
	return c->path->speed && c->path->speed->cut_ns >= c->posted_ns;
}
/* c was delivered, and its turn on the path had come at since_ns: learn from that. */
void lnx_hedge_learn(const struct lnx_chunk *c, uint64_t since_ns, uint64_t now);
/* p lacks nothing but the end of reads that were overtaken. */
LNX_COLD void lnx_hedge_wait(struct lnx_pull *p, uint64_t now);
/* Over which of the connections that these n > 0 lead to are writes under way?  See struct
 * lnx_cut, as for the next one. */
LNX_COLD void lnx_hedge_find_writes(struct lnx_ep *ep, struct lnx_cut *cut, unsigned n);
/* They were cut: what fails by that is not held against their paths, and those of others to the
 * same hosts. */
LNX_COLD void lnx_hedge_were_cut(struct lnx_ep *ep, struct lnx_cut *cut, unsigned n, uint64_t now);

#endif
