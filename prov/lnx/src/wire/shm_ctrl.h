/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control messages of the shared memory rail, packed and unpacked: lnx_wire_shm.h. */
#ifndef LNX_SHM_CTRL_H
#define LNX_SHM_CTRL_H

#include <stdbool.h>
#include <stddef.h>

#include "lnx_wire_shm.h"

/* May a tagged message be a control message, copy or push?  Its bytes say whether it is. */
static inline bool lnx_shm_ctrl_may_be(uint64_t tag, size_t size)
{
	return tag == LNX_SHM_CTRL_TAG &&
	       (size == LNX_SHM_CTRL_BYTES || size == LNX_COPY_BYTES ||
		size == LNX_PUSH_BYTES || size == LNX_PUSH_REST_BYTES);
}

/*
 * Write all LNX_SHM_CTRL_BYTES of bytes; the magic is added, unused fields must be 0.
 */
void lnx_shm_ctrl_put(void *bytes, const struct lnx_wire_shm_ctrl *n);
/* Is it a control message for the endpoint dst, and well-formed?  0 or -EBADMSG. */
int lnx_shm_ctrl_get(struct lnx_wire_shm_ctrl *n, const void *bytes, uint64_t dst);
/* The same for a PUT, RESP, HELLO, or GET of memory, which lnx_shm_ctrl_get refuses. */
void lnx_shm_ctrl_put_put(void *bytes, const struct lnx_wire_shm_put *n);
int lnx_shm_ctrl_put_get(struct lnx_wire_shm_put *n, const void *bytes,
		     uint64_t dst);

/* The same for the LNX_COPY_BYTES of a copy, without the data: put returns where its
 * c->len bytes go, and get leaves them in place, behind LNX_COPY_HEAD. */
#define LNX_COPY_HEAD	offsetof(struct lnx_wire_copy, data)
void *lnx_wire_copy_put(void *bytes, const struct lnx_wire_copy *c);
int lnx_wire_copy_get(struct lnx_wire_copy *c, const void *bytes, uint64_t dst);
#define LNX_RMA_COPY_HEAD	offsetof(struct lnx_wire_rma_copy, bytes)
void *lnx_wire_rma_copy_put(void *bytes, const struct lnx_wire_rma_copy *c);
int lnx_wire_rma_copy_get(struct lnx_wire_rma_copy *c, const void *bytes,
			  uint64_t dst);

/* The same for an atomic with a result, or the result, in size bytes: lnx_shm_amo_size. */
#define LNX_SHM_AMO_HEAD	offsetof(struct lnx_wire_shm_amo, bytes)
void *lnx_shm_amo_put(void *bytes, const struct lnx_wire_shm_amo *w);
int lnx_shm_amo_get(struct lnx_wire_shm_amo *w, const void *bytes, size_t size, uint64_t dst);
/* The size of the message that carries so many bytes. */
static inline size_t lnx_shm_amo_size(size_t len)
{
	return len <= LNX_SHM_CTRL_BYTES - LNX_SHM_AMO_HEAD ? LNX_SHM_CTRL_BYTES :
							      LNX_COPY_BYTES;
}

/*
 * A push: a head in front of the bytes that it carries, which begin at w->off.  put writes
 * the head and returns its length; get says whether the size bytes are one for the endpoint
 * dst and well-formed, and leaves the rest of *w as it was if w->off is not 0: 0 or -EBADMSG.
 */
size_t lnx_wire_push_put(void *head, const struct lnx_wire_push *w);
int lnx_wire_push_get(struct lnx_wire_push *w, const void *bytes, size_t size, uint64_t dst);
/* Bytes of a message that one of that size holds which begins at off. */
static inline size_t lnx_wire_push_room(size_t size, uint64_t off)
{
	return size - (off ? offsetof(struct lnx_wire_push, tag) :
			     sizeof(struct lnx_wire_push));
}
/* The size of the one that carries what begins at off of len bytes. */
static inline size_t lnx_wire_push_size(uint64_t off, uint64_t len)
{
	return off && len - off <= lnx_wire_push_room(LNX_PUSH_REST_BYTES, off) ?
	       LNX_PUSH_REST_BYTES : LNX_PUSH_BYTES;
}

#endif
