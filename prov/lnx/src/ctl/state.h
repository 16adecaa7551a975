/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state segment of this process: its file, and memory in it (lnx_state.h).  What is
 * written there is publish.h's.  Any thread.
 *
 * Without a segment (FI_LNX_STATE=0, no /dev/shm, no room, no permission) endpoints work
 * as usual; the reason is logged once.  After a fork the segment is the parent's: the
 * child writes nothing into it, and gets one of its own with the next endpoint that it
 * opens.
 *
 * Other processes of the user can write into the file.  Nothing of it is read back for an
 * offset, a size, a number of records or an owner: what this process needs of these it has
 * in memory of its own.  Counters of consistency are read, and may have any value.
 */
#ifndef LNX_STATE_SEGMENT_H
#define LNX_STATE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "lnx_state.h"

/* Where the directories of users are: LNX_STATE_DIR; tests change it. */
extern const char *lnx_state_root;

/* Memory in the segment; mem NULL: none. */
struct lnx_state_area {
	void *mem;
	uint64_t offset;		/* in the file */
	size_t len;
};

/*
 * Another endpoint uses the segment, which is made for the first one.  Returns a number
 * for the endpoint, from 1, or 0: there is no segment.  While it is used,
 * lnx_state_front_of is valid in this process.
 */
uint32_t lnx_state_attach(void);
/* The endpoint does not use it any more.  Its tables are gone; the last one removes the
 * file. */
void lnx_state_detach(uint32_t number);

struct lnx_state_front *lnx_state_front_of(void);

/* Zeroed memory for tables.  False: there is no room for it. */
bool lnx_state_area_get(struct lnx_state_area *area, size_t len);
/* No table is in it any more: give it back to the system.  ours: false in the child of a
 * fork, where the parent still uses it. */
void lnx_state_area_put(struct lnx_state_area *area, bool ours);

/* A table: its entry of the directory, which is only written, and what is in it. */
struct lnx_state_own {
	struct lnx_state_table *entry;	/* NULL: none */
	struct lnx_state_table t;	/* seq is not used */
};

/*
 * Make a table of what t says; its records are still empty.  False: the directory is full.
 * It goes when the endpoint detaches, which does not touch the area.
 */
bool lnx_state_table_add(struct lnx_state_own *table);
/* t was changed: tell readers. */
void lnx_state_table_put(const struct lnx_state_own *table);

/* Write a whole record of len bytes.  Its rec is overwritten: seq by the next number. */
void lnx_state_put(void *record, void *value, size_t len);

/* The library is unloaded: the file goes, even if endpoints are open. */
void lnx_state_fini(void);

#endif
