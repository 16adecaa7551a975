/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packs and checks shm control messages.  See shm_ctrl.h. */
#include <errno.h>
#include <string.h>

#include "lnx_wire.h"
#include "wire/shm_ctrl.h"

void lnx_shm_ctrl_put(void *bytes, const struct lnx_wire_shm_ctrl *n)
{
	struct lnx_wire_shm_ctrl w = *n;

	w.magic = LNX_SHM_CTRL_MAGIC;
	memcpy(bytes, &w, LNX_SHM_CTRL_BYTES);
}

int lnx_shm_ctrl_get(struct lnx_wire_shm_ctrl *n, const void *bytes, uint64_t dst)
{
	uint64_t left;
	unsigned i;

	memcpy(n, bytes, LNX_SHM_CTRL_BYTES);
	if (n->magic != LNX_SHM_CTRL_MAGIC || n->dst != dst || !n->src)
		return -EBADMSG;
	if (n->kind == LNX_KIND_FIN)
		return n->npiece ? -EBADMSG : 0;
	if (n->kind == LNX_KIND_GET)
		return n->npiece || !n->data || !n->len ? -EBADMSG : 0;
	if ((n->kind != LNX_KIND_RTS_MSG && n->kind != LNX_KIND_RTS_TAG) ||
	    (n->flags & ~(LNX_WIRE_F_DATA | LNX_SHM_CTRL_F_COPY)) || n->pid <= 0 || !n->cookie || !n->npiece ||
	    n->npiece > LNX_SHM_CTRL_PIECES || n->len > INT64_MAX)
		return -EBADMSG;
	left = n->len;
	for (i = 0; i < n->npiece; i++) {
		if (!n->piece[i].len || n->piece[i].len > left)
			return -EBADMSG;
		left -= n->piece[i].len;
	}
	return left ? -EBADMSG : 0;
}

void *lnx_wire_copy_put(void *bytes, const struct lnx_wire_copy *c)
{
	char *data = (char *)bytes + LNX_COPY_HEAD;
	uint64_t magic = LNX_COPY_MAGIC;

	memcpy(bytes, c, LNX_COPY_HEAD);
	memcpy(bytes, &magic, sizeof(magic));
	memset(data + c->len, 0, LNX_COPY_BYTES - LNX_COPY_HEAD - c->len);
	return data;
}

int lnx_wire_copy_get(struct lnx_wire_copy *c, const void *bytes, uint64_t dst)
{
	memcpy(c, bytes, LNX_COPY_HEAD);
	return c->magic != LNX_COPY_MAGIC || c->dst != dst || !c->src ||
	       !c->len || c->len > LNX_COPY_DATA ||
	       c->off > UINT64_MAX - c->len ? -EBADMSG : 0;
}

size_t lnx_wire_push_put(void *head, const struct lnx_wire_push *w)
{
	size_t len = w->off ? offsetof(struct lnx_wire_push, tag) : sizeof(*w);
	uint64_t magic = LNX_PUSH_MAGIC;

	memcpy(head, w, len);
	memcpy(head, &magic, sizeof(magic));
	return len;
}

int lnx_wire_push_get(struct lnx_wire_push *w, const void *bytes, size_t size, uint64_t dst)
{
	if (size != LNX_PUSH_BYTES && size != LNX_PUSH_REST_BYTES)
		return -EBADMSG;
	memcpy(w, bytes, offsetof(struct lnx_wire_push, tag));
	if (w->magic != LNX_PUSH_MAGIC || w->dst != dst || !w->src ||
	    w->off >= LNX_PUSH_LEN_MAX)
		return -EBADMSG;
	if (w->off)
		return 0;
	memcpy(w, bytes, sizeof(*w));
	return size != LNX_PUSH_BYTES ||
	       (w->kind != LNX_KIND_PART_MSG && w->kind != LNX_KIND_PART_TAG) ||
	       (w->flags & ~LNX_WIRE_F_DATA) || w->len > LNX_PUSH_LEN_MAX ||
	       w->len <= lnx_wire_push_room(size, 0) ? -EBADMSG : 0;
}

void *lnx_wire_rma_copy_put(void *bytes, const struct lnx_wire_rma_copy *c)
{
	char *data = (char *)bytes + LNX_RMA_COPY_HEAD;
	uint64_t magic = LNX_RMA_COPY_MAGIC;

	memcpy(bytes, c, LNX_RMA_COPY_HEAD);
	memcpy(bytes, &magic, sizeof(magic));
	memset(data + c->len, 0, LNX_COPY_BYTES - LNX_RMA_COPY_HEAD - c->len);
	return data;
}

int lnx_wire_rma_copy_get(struct lnx_wire_rma_copy *c, const void *bytes,
			  uint64_t dst)
{
	memcpy(c, bytes, LNX_RMA_COPY_HEAD);
	if (c->magic != LNX_RMA_COPY_MAGIC || c->dst != dst || !c->src ||
	    !c->op || !c->len || c->len > LNX_RMA_COPY_DATA ||
	    c->addr > UINT64_MAX - c->len)
		return -EBADMSG;
	if (c->kind == LNX_KIND_RESP)
		return c->flags || c->key || c->total || c->data || c->rest ?
		       -EBADMSG : 0;
	if (c->rest < c->len || c->rest > c->total ||
	    c->addr > UINT64_MAX - c->rest)
		return -EBADMSG;
	return c->kind != LNX_KIND_PUT ||
	       (c->flags & ~LNX_RMA_COPY_F_ALL) ? -EBADMSG : 0;
}

void lnx_shm_ctrl_put_put(void *bytes, const struct lnx_wire_shm_put *n)
{
	struct lnx_wire_shm_put w = *n;

	w.magic = LNX_SHM_CTRL_MAGIC;
	memcpy(bytes, &w, sizeof(w));
	((char *)bytes)[sizeof(w)] = 0;
}

int lnx_shm_ctrl_put_get(struct lnx_wire_shm_put *n, const void *bytes,
		     uint64_t dst)
{
	memcpy(n, bytes, sizeof(*n));
	if (n->magic != LNX_SHM_CTRL_MAGIC || n->dst != dst || !n->src)
		return -EBADMSG;
	if (n->kind == LNX_KIND_HELLO)
		return n->flags || n->n_targets || n->op || n->err ? -EBADMSG : 0;
	if (n->kind == LNX_KIND_RESP)
		return n->flags || n->n_targets || !n->op ? -EBADMSG : 0;
	if (n->kind == LNX_KIND_GET && (!n->op || !n->n_targets ||
					n->flags != LNX_SHM_CTRL_F_TRY))
		return -EBADMSG;
	if ((n->kind != LNX_KIND_PUT && n->kind != LNX_KIND_GET) ||
	    (n->flags & ~LNX_SHM_CTRL_F_ALL) ||
	    n->n_targets > LNX_SHM_CTRL_PIECES || n->err)
		return -EBADMSG;
	return 0;
}

void *lnx_shm_amo_put(void *bytes, const struct lnx_wire_shm_amo *w)
{
	char *data = (char *)bytes + LNX_SHM_AMO_HEAD;
	uint64_t magic = LNX_SHM_AMO_MAGIC;

	memcpy(bytes, w, LNX_SHM_AMO_HEAD);
	memcpy(bytes, &magic, sizeof(magic));
	memset(data + w->len, 0, lnx_shm_amo_size(w->len) - LNX_SHM_AMO_HEAD - w->len);
	return data;
}

int lnx_shm_amo_get(struct lnx_wire_shm_amo *w, const void *bytes, size_t size, uint64_t dst)
{
	if (size != LNX_SHM_CTRL_BYTES && size != LNX_COPY_BYTES)
		return -EBADMSG;
	memcpy(w, bytes, LNX_SHM_AMO_HEAD);
	if (w->magic != LNX_SHM_AMO_MAGIC || w->dst != dst || !w->src || !w->op ||
	    w->len > LNX_SHM_AMO_ROOM || lnx_shm_amo_size(w->len) != size)
		return -EBADMSG;
	return w->kind != LNX_KIND_ATOMIC && w->kind != LNX_KIND_RESP ? -EBADMSG : 0;
}
