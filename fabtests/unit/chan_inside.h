/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of one session share: see chan_world.h.
 */
#ifndef CHAN_INSIDE_H
#define CHAN_INSIDE_H

#include "chan_world.h"

#define PIECES_BYTES	1000u		/* of a frame with pieces outside of it */

static inline struct frame *frame_of(struct lnx_frame *f)
{
	return lnx_container_of(f, struct frame, f);
}

/* What a frame says to have received. */
static inline uint32_t wire_ack(const struct session *s)
{
	return s->rx_sid ? s->c.rx.next - first_number(s->rx_sid) : 0;
}

static inline uint64_t frame_bytes(const struct frame *f)
{
	return f->f.len + (f->f.niov ? PIECES_BYTES : 0);
}

/* By the model, the frame has to leave again. */
static inline bool *session_due(struct session *s, uint64_t id)
{
	return &s->due[id % LNX_SEQ_WINDOW];
}

/* ---- chan_send.c ---- */

struct frame *frame_get(struct session *s);
/* It is acknowledged: free it, unless the core still has it. */
void frame_settled(struct frame *f);
void path_happens(struct path *p, enum lnx_path_event event);
/* The core took something; or did not. */
void path_took(struct path *p);
void path_blocked(struct path *p);
/* May the core be asked to take something? */
bool path_may_try(const struct path *p);
/* One that works, for what is no frame. */
unsigned session_live_path(const struct session *s);
/* No path has taken anything for longer than that. */
bool session_none_for(const struct session *s, uint64_t limit_ns);
struct packet session_packet(struct session *s, enum kind kind, unsigned path);
/* Something left that acknowledges all. */
void session_acks_sent(struct session *s);
/* Post what has to leave.  False: something could not. */
bool session_pump(struct session *s);

/* ---- chan_model.c ---- */

/* The frame with that number, from 1; it is in the window. */
struct frame *session_frame(struct session *s, uint64_t id);
/* What left over these paths, up to frame end, has to leave again. */
void model_retransmit(struct session *s, unsigned paths, uint64_t end);
/* The channel says that this is next; and that there is nothing more. */
void model_out(struct session *s, const struct frame *f, enum lnx_chan_what what);
void model_drained(struct session *s);

#endif
