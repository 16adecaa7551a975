/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the stories share: see timeline.h. */
#ifndef TIMELINE_INSIDE_H
#define TIMELINE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/interval.h"
#include "rel/chan.h"
#include "rel/life.h"
#include "rel/loss.h"
#include "rel/path.h"
#include "rel/silence.h"
#include "timeline.h"

#define PATHS		3u
#define FRAMES		64u
#define WINDOW		64u
#define MS		LNX_NS_PER_MS
#define BEGIN		(1000 * LNX_NS_PER_S)
#define TIMEOUT_NS	(100 * MS)

enum kernel { MUTE, ALIVE, REFUSES, UNKNOWN };

struct path {
	uint8_t state;
	struct lnx_silence silence;
	struct lnx_late late;
	uint64_t progress;
	enum kernel kernel;
	uint32_t probes;
};

struct timeline {
	const char *title, *line;
	unsigned npath;
	uint64_t now, pong_ns;
	struct lnx_chan c;
	struct lnx_loss loss;
	struct lnx_liveness liveness;
	struct lnx_frame frame[FRAMES + 1];	/* by number, from 1 */
	struct path path[PATHS];
	uint8_t life;
	bool waits;				/* for an answer that is no ack */
	char got[256];				/* verdicts of this line */
};
extern struct timeline t;

/* ---- timeline_told.c: states and events of the tables that are not rel/'s own ---- */

/* What rel/loss waits for; */
enum { L_IDLE, L_NEW, L_WAITS, L_ASKED, L_PAUSED, L_STATES };
enum { L_EARLY, L_TIMEOUT, L_ACK, L_PONG, L_OTHER_PONG, L_OTHER_PATH, L_EVENTS };
/* what rel/silence knows of a path; */
enum { S_NOTHING, S_DUE, S_KERNEL_ASKED, S_ASKED, S_ANSWERED, S_STATES };
enum { S_LOOK, S_PROGRESS, S_DONE, S_PONG, S_OLD_PONG, S_NEWS, S_EVENTS };
/* and of a peer. */
enum { V_SEEN, V_SILENT, V_KERNELS_ASKED, V_STATES };
enum { V_FRAME, V_ALIVE, V_REFUSED, V_MUTE, V_UNKNOWN, V_EVENTS };

extern const char *const path_states[LNX_PATH_NSTATE];
extern const char *const life_states[LNX_LIFE_NSTATE];

unsigned loss_state(void);
unsigned silence_state(const struct path *p);
unsigned liveness_state(void);

/* A story has a title; and has shown this event in this state. */
void tell_title(const char *title);
void tell(enum story_table which, unsigned state, unsigned event);

#endif
