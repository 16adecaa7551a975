/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lnx_wire.h"
#include "wire/note.h"

void lnx_note_put(void *bytes, const struct lnx_wire_note *n)
{
	struct lnx_wire_note w = *n;

	w.magic = LNX_NOTE_MAGIC;
	memcpy(bytes, &w, sizeof(w));
	((char *)bytes)[sizeof(w)] = 0;
}

int lnx_note_get(struct lnx_wire_note *n, const void *bytes, uint64_t dst)
{
	uint64_t left;
	unsigned i;

	memcpy(n, bytes, sizeof(*n));
	if (n->magic != LNX_NOTE_MAGIC || n->dst != dst || !n->src)
		return -EBADMSG;
	if (n->kind == LNX_KIND_FIN)
		return n->npiece ? -EBADMSG : 0;
	if ((n->kind != LNX_KIND_RTS_MSG && n->kind != LNX_KIND_RTS_TAG) ||
	    (n->flags & ~LNX_WIRE_F_DATA) || n->pid <= 0 || !n->mark || !n->npiece ||
	    n->npiece > LNX_NOTE_PIECES || n->len > INT64_MAX)
		return -EBADMSG;
	left = n->len;
	for (i = 0; i < n->npiece; i++) {
		if (!n->piece[i].len || n->piece[i].len > left)
			return -EBADMSG;
		left -= n->piece[i].len;
	}
	return left ? -EBADMSG : 0;
}
