/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The health board: its slots, and what to trust of it.  See board.h. */
#include "policy/board.h"

#include <string.h>

#include "base/compiler.h"

/* ---- the file ---- */

void lnx_board_init(struct lnx_board *board)
{
	memset(board, 0, sizeof(*board));
	memcpy(board->header.magic, LNX_BOARD_MAGIC, sizeof(board->header.magic));
	board->header.version = LNX_BOARD_VERSION;
	board->header.byte_order = LNX_BOARD_ORDER;
	board->header.slots = LNX_BOARD_SLOTS;
	board->header.slot_size = sizeof(struct lnx_board_slot);
}

bool lnx_board_valid(const struct lnx_board *board, size_t len)
{
	struct lnx_board good;

	lnx_board_init(&good);
	return len >= sizeof(good.header) &&
	       !memcmp(&board->header, &good.header, sizeof(good.header));
}

/* FNV-1a, of 64 bits: it finds what was written in part, and need not be hard to forge. */
static uint64_t sum_of(const struct lnx_board_slot *slot, unsigned number)
{
	const uint8_t *p = (const uint8_t *)slot + sizeof(slot->sum);
	const uint8_t *end = (const uint8_t *)(slot + 1);
	uint64_t h = 0xcbf29ce484222325ull ^ number;

	for (; p < end; p++)
		h = (h ^ *p) * 0x100000001b3ull;
	return h;
}

/* A name, and NUL to the end. */
static bool is_name(const char name[LNX_BOARD_NAME])
{
	size_t i, n = strnlen(name, LNX_BOARD_NAME);

	if (!n || n == LNX_BOARD_NAME)
		return false;
	for (i = 0; i < LNX_BOARD_NAME; i++)
		if (i < n ? name[i] <= ' ' || name[i] > '~' : name[i])
			return false;
	return true;
}

static bool holds(const struct lnx_board_slot *s, unsigned number, uint64_t now)
{
	return s->sum == sum_of(s, number) && is_name(s->name) &&
	       s->value <= LNX_HEALTH_MAX && s->speed <= LNX_BOARD_SPEED_MAX &&
	       (s->when_ns <= now || s->when_ns - now <= LNX_BOARD_SLACK_NS);
}

bool lnx_board_get(const struct lnx_board *board, unsigned slot, uint64_t now,
		   struct lnx_board_news *news)
{
	const struct lnx_board_slot *s;

	if (slot >= LNX_BOARD_SLOTS)
		return false;
	s = &board->slot[slot];
	if (!holds(s, slot, now))
		return false;
	*news = (struct lnx_board_news){
		.when_ns = s->when_ns, .speed = s->speed, .pid = s->pid,
		.value = s->value, .fatal = s->flags & LNX_BOARD_FATAL,
	};
	return true;
}

static bool is_of(const struct lnx_board_slot *s, const char *name, uint64_t netns)
{
	return s->netns == netns && !strncmp(s->name, name, LNX_BOARD_NAME);
}

int lnx_board_find(const struct lnx_board *board, const char *name, uint64_t netns,
		   uint64_t now, struct lnx_board_news *news)
{
	struct lnx_board_news n;
	int found = -1;
	unsigned i;

	for (i = 0; i < LNX_BOARD_SLOTS; i++) {
		if (!is_of(&board->slot[i], name, netns) || !lnx_board_get(board, i, now, &n))
			continue;
		if (found >= 0 && n.when_ns <= news->when_ns)
			continue;
		*news = n;
		found = (int)i;
	}
	return found;
}

unsigned lnx_board_place(const struct lnx_board *board, const char *name, uint64_t netns,
			 uint64_t now)
{
	struct lnx_board_news n = { 0 };
	int own = lnx_board_find(board, name, netns, now, &n);
	uint64_t oldest_ns = UINT64_MAX;
	unsigned i, place = 0;

	if (own >= 0)
		return (unsigned)own;
	for (i = 0; i < LNX_BOARD_SLOTS; i++) {
		if (!lnx_board_get(board, i, now, &n))
			return i;
		if (n.when_ns < oldest_ns) {
			oldest_ns = n.when_ns;
			place = i;
		}
	}
	return place;
}

bool lnx_board_put(struct lnx_board_slot *slot, unsigned number, const char *name,
		   uint64_t netns, const struct lnx_board_news *news)
{
	memset(slot, 0, sizeof(*slot));
	if (strlen(name) >= LNX_BOARD_NAME)
		return false;
	strcpy(slot->name, name);
	slot->when_ns = news->when_ns;
	slot->netns = netns;
	slot->speed = LNX_MIN(news->speed, LNX_BOARD_SPEED_MAX);
	slot->pid = news->pid;
	slot->value = news->value;
	slot->flags = news->fatal ? LNX_BOARD_FATAL : 0;
	slot->sum = sum_of(slot, number);
	return true;
}

/* ---- what to trust ---- */

static bool is_bad(const struct lnx_board_news *n)
{
	return n->fatal || n->value < LNX_HEALTH_MAX;
}

static bool is_fresh(const struct lnx_board_news *n, uint64_t now)
{
	return now < n->when_ns || now - n->when_ns <= LNX_BOARD_TRUST_NS;
}

bool lnx_board_matters(const struct lnx_board *board, uint64_t now)
{
	struct lnx_board_news n;
	unsigned i;

	for (i = 0; i < LNX_BOARD_SLOTS; i++)
		if (lnx_board_get(board, i, now, &n) && is_bad(&n) && is_fresh(&n, now))
			return true;
	return false;
}

struct lnx_board_news lnx_board_said(const struct lnx_board_own *own, uint32_t pid,
				     uint64_t now)
{
	return (struct lnx_board_news){
		.when_ns = now, .speed = own->speed, .pid = pid,
		.value = own->fatal || own->dead ? 0 : own->value, .fatal = own->fatal,
	};
}

bool lnx_board_tells(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		     uint64_t now)
{
	struct lnx_board_news say = lnx_board_said(own, 0, now);

	if (own->pinned || own->hearsay)
		return false;
	if (is_bad(&say))
		return !own->told_ns || own->told != say.value ||
		       own->told_fatal != say.fatal ||
		       now - own->told_ns >= LNX_BOARD_REPEAT_NS;
	/* Has another process said otherwise, and do we know better? */
	return heard && is_bad(heard) && is_fresh(heard, now) &&
	       (own->proven || own->told_ns == heard->when_ns);
}

int lnx_board_takes(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		    uint64_t now)
{
	if (!heard || !is_bad(heard) || !is_fresh(heard, now) ||
	    heard->when_ns <= own->heard_ns || heard->when_ns == own->told_ns)
		return -1;
	if (lnx_board_bad(own) || own->pinned || own->proven)
		return -1;
	return heard->fatal ? 0 : heard->value;
}

bool lnx_board_expires(const struct lnx_board_own *own, const struct lnx_board_news *heard,
		       uint64_t now)
{
	return own->hearsay && (!heard || !is_bad(heard) || !is_fresh(heard, now));
}
