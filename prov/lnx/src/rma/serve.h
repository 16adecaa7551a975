/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of peers for our memory (rma/serve.c).  Owner lock held. */
#ifndef LNX_SERVE_H
#define LNX_SERVE_H

#include "obj/ep.h"
#include "wire/hdr.h"

struct lnx_txe;

/*
 * One frame that is next in order: PUT, PUT_RTS, GET, KEYS.  0, or -FI_ENOMEM: not
 * handled, and must count as not received.  Calls no core.
 */
int lnx_serve(struct lnx_ep *ep, struct lnx_peer *peer,
	      const struct lnx_hdr *h, const uint8_t *payload, size_t size);

/* An answer with room for len bytes at *data.  lnx_serve_answer sends it and takes it
 * over: 0, or -FI_ENOMEM. */
struct lnx_txe *lnx_serve_answer_get(struct lnx_ep *ep, size_t len,
				     void **data);
int lnx_serve_answer(struct lnx_ep *ep, struct lnx_peer *peer,
		     struct lnx_txe *txe, uint64_t op, int err, size_t len);
/* An answer without data.  op 0: no answer is expected. */
int lnx_serve_status(struct lnx_ep *ep, struct lnx_peer *peer, uint64_t op,
		     int err);
/* Log and count a request that is not allowed. */
LNX_COLD void lnx_serve_refuse(struct lnx_ep *ep, const struct lnx_peer *peer,
			       const struct lnx_hdr *h, int err);
/* A peer wrote len bytes of ours: count it, and report it if there is data. */
void lnx_serve_written(struct lnx_ep *ep, const struct lnx_peer *peer,
		       const struct lnx_hdr *h, size_t len);

/* Requests that need a core; called from progress. */
void lnx_serve_run(struct lnx_ep *ep);
void lnx_serve_fini(struct lnx_ep *ep);

/* A piece of an incoming write changes the memory of key, which is counted when the write
 * ends.  0, or FI_ENOMEM. */
LNX_COLD int lnx_serve_note_key(struct lnx_peer *peer, uint64_t key);
/* The write has ended. */
void lnx_serve_keys_done(struct lnx_peer *peer, bool ok);

#endif
