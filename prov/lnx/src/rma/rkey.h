/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keys of peers' registrations, and transfers that need them.  Owner lock held. */
#ifndef LNX_RKEY_H
#define LNX_RKEY_H

#include "obj/ep.h"
#include "wire/hdr.h"

struct lnx_rma_segment;
struct lnx_path;
struct lnx_rkey;

/* Start a LNX_RMA_SEGMENT_READ or WRITE, now or when the keys have come.  Sends: never
 * call it from a core's callback. */
void lnx_rkey_start(struct lnx_ep *ep, struct lnx_rma_segment *segment);
/*
 * Address and key for a read of rma over path.  True: *addr and *key are the core's.
 * False: not known, not allowed, or the peer counts reads.  Keys that are needed often
 * are requested meanwhile.
 */
bool lnx_rkey_use(struct lnx_peer *peer, const struct fi_rma_iov *rma,
		  const struct lnx_path *path, uint64_t *addr, uint64_t *key);
/* A transfer failed: the registration may be closed. */
LNX_COLD void lnx_rkey_forget(struct lnx_peer *peer, uint64_t key);
/* The keys came, or the peer refused.  Calls no core. */
void lnx_rkey_answer(struct lnx_ep *ep, struct lnx_rkey *k,
		     const struct lnx_peer *peer, const struct lnx_hdr *h,
		     const uint8_t *payload);
/* The keys that segment uses may be out of date: request new ones, which ends with
 * lnx_pull_renewed.  Calls no core. */
LNX_COLD void lnx_rkey_renew(struct lnx_rma_segment *segment);
/* The peer may have more rails than when it told its keys: they are requested again. */
void lnx_rkeys_outdate(struct lnx_peer *peer);
/* A peer was given up; the endpoint closes. */
void lnx_rkeys_forget(struct lnx_peer *peer);
void lnx_rkeys_free(struct lnx_ep *ep);

#endif
