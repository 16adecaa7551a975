/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending on a scripted core while memory is short. */
#include <criterion/criterion.h>
#include <string.h>

#include "fake_core.h"
#include "fake_memory.h"

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a;				/* context */
static uint8_t text[16320];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(tx_memory_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(tx_memory_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

static void open_met(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind[0] = kind };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
	fake_meet(&f, &p);
	memset(text, 7, sizeof(text));
}

/* A frame that leaves from the application's buffer, and nothing to note copies in: the send
 * completes when the peer has it. */
BOTH(no_memory_for_copies)
{
	fake_conf.copy_limit = 1000;
	open_met(kind);
	no_memory = true;
	cr_assert_eq(fi_tsend(f.ep, text, 8000, NULL, p.addr, 5, &a), 0);
	no_memory = false;
	fake_passes(&f, 200);
	fake_quiet(&f);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_ack(&f, &p);
	fake_comp(&f, &a);
	/* The next one finds memory. */
	cr_assert_eq(fi_tsend(f.ep, text, 8000, NULL, p.addr, 5, &a), 0);
	fake_passes(&f, 200);
	fake_comp(&f, &a);
	cr_expect_eq(f.lnx->stats.send_copies, 1u);
	fake_close(&f);
}
