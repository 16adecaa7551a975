/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/seq.h"

#include <errno.h>
#include <stdlib.h>

int lnx_seq_keep(struct lnx_seq *s, uint32_t seq, void *frame)
{
	void **slot;

	if (!s->kept) {
		s->kept = calloc(1, LNX_SEQ_KEPT_BYTES);
		if (!s->kept)
			return -ENOMEM;
	}
	slot = &s->kept[seq % LNX_SEQ_WINDOW];
	if (*slot)
		return -EEXIST;
	*slot = frame;
	s->nkept++;
	return 0;
}

void *lnx_seq_pop_slow(struct lnx_seq *s)
{
	void **slot = &s->kept[s->next % LNX_SEQ_WINDOW];
	void *frame = *slot;

	if (frame) {
		*slot = NULL;
		s->nkept--;
	}
	return frame;
}

void *lnx_seq_drain(struct lnx_seq *s)
{
	unsigned i;

	for (i = 0; s->nkept && i < LNX_SEQ_WINDOW; i++) {
		void *frame = s->kept[i];

		if (frame) {
			s->kept[i] = NULL;
			s->nkept--;
			return frame;
		}
	}
	return NULL;
}

void lnx_seq_fini(struct lnx_seq *s)
{
	free(s->kept);
	s->kept = NULL;
	s->nkept = 0;
}
