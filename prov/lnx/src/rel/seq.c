/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The out-of-order queue.  See seq.h. */
#include "rel/seq.h"

#include <errno.h>
#include <stdlib.h>

int lnx_seq_ooo_add(struct lnx_seq *s, uint32_t seq, void *frame)
{
	void **slot;

	if (!s->ooo) {
		s->ooo = calloc(1, LNX_SEQ_OOO_BYTES);
		if (!s->ooo)
			return -ENOMEM;
	}
	slot = &s->ooo[seq % LNX_SEQ_WINDOW];
	if (*slot)
		return -EEXIST;
	*slot = frame;
	s->n_ooo++;
	return 0;
}

void *lnx_seq_pop_slow(struct lnx_seq *s)
{
	void **slot = &s->ooo[s->next % LNX_SEQ_WINDOW];
	void *frame = *slot;

	if (frame) {
		*slot = NULL;
		s->n_ooo--;
	}
	return frame;
}

void *lnx_seq_drain(struct lnx_seq *s)
{
	unsigned i;

	for (i = 0; s->n_ooo && i < LNX_SEQ_WINDOW; i++) {
		void *frame = s->ooo[i];

		if (frame) {
			s->ooo[i] = NULL;
			s->n_ooo--;
			return frame;
		}
	}
	return NULL;
}

void lnx_seq_fini(struct lnx_seq *s)
{
	free(s->ooo);
	s->ooo = NULL;
	s->n_ooo = 0;
}
