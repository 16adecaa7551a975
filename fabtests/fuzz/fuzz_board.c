/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes are no health board, or one whose news are in range, and belief in them ends with
 * the first proof of life.
 *
 * Sources: policy/board.c policy/health.c
 */
#define LNX_FUZZ_NAME "board"
#define FUZZ_CHANGES 2000
#include "fuzz.h"

#include <string.h>

#include "policy/board.h"

#define NOW	5000000000ull

static const struct lnx_health_plan plan = { .step = { [LNX_CLASS_OK] = 100 } };

static void trusted(const struct lnx_board_news *n)
{
	struct lnx_board_own own = { .value = LNX_HEALTH_MAX };
	int value = lnx_board_takes(&own, n, NOW);
	struct lnx_health h;

	FUZZ_CHECK(value >= -1 && value < LNX_HEALTH_MAX);
	lnx_health_init(&h);
	if (value >= 0)
		lnx_health_hearsay(&h, (unsigned)value, NOW);
	FUZZ_CHECK(!h.down && !h.fatal && h.hearsay == (value >= 0));
	/* It is heard once, and then overruled. */
	own.heard_ns = n->when_ns;
	FUZZ_CHECK(lnx_board_takes(&own, n, NOW) == -1);
	lnx_health_good(&h, &plan, NOW);
	FUZZ_CHECK(h.value == LNX_HEALTH_MAX && !h.hearsay);
	own.hearsay = true;
	FUZZ_CHECK(!lnx_board_tells(&own, n, NOW));
	lnx_board_expires(&own, n, NOW);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lnx_board board;
	struct lnx_board_news n;
	unsigned i, k;

	memset(&board, 0, sizeof(board));
	memcpy(&board, data, size < sizeof(board) ? size : sizeof(board));
	if (!lnx_board_valid(&board, size))
		return 0;
	for (i = 0; i < LNX_BOARD_SLOTS; i++) {
		if (!lnx_board_get(&board, i, NOW, &n))
			continue;
		FUZZ_CHECK(n.value <= LNX_HEALTH_MAX && n.speed <= LNX_BOARD_SPEED_MAX);
		FUZZ_CHECK(n.when_ns <= NOW + LNX_BOARD_SLACK_NS);
		FUZZ_CHECK(strlen(board.slot[i].name) < LNX_BOARD_NAME);
		trusted(&n);
	}
	lnx_board_find(&board, "tcp:rail0", 7, NOW, &n);
	FUZZ_CHECK(lnx_board_place(&board, "tcp:rail0", 7, NOW) < LNX_BOARD_SLOTS);
	/* What is written into it is read again. */
	k = lnx_board_place(&board, "tcp:new", 7, NOW);
	n = (struct lnx_board_news){ .when_ns = NOW + 1, .value = 3 };
	FUZZ_CHECK(lnx_board_put(&board.slot[k], k, "tcp:new", 7, &n));
	FUZZ_CHECK(lnx_board_find(&board, "tcp:new", 7, NOW, &n) >= 0);
	return 0;
}
