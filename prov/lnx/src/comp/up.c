/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The calls from each layer to those above it (obj/up.h). */
#include "comp/comp.h"
#include "msg/confirm.h"
#include "msg/parts.h"
#include "msg/rx.h"
#include "msg/tx.h"
#include "rail/leg.h"
#include "rail/rail.h"
#include "rail/routed_read.h"
#include "rel/rel.h"
#include "rma/rma.h"

/* All data of a receive has come, and its FIN has left, or never will. */
static void sent(struct lnx_txe *txe, enum lnx_sent how)
{
	if (lnx_unlikely(how == LNX_SENT_CLOSED))
		lnx_rxe_put(txe->rxe);
	else
		lnx_rx_done(txe->rxe);
}

static LNX_COLD void peer_failed(struct lnx_peer *peer, int err)
{
	lnx_parts_fail_peer(peer, err);
	lnx_rndv_fail_peer(peer, err);
	lnx_pull_fail_peer(peer, err);
	lnx_rma_fail_peer(peer, err);
}

static LNX_COLD void path_cut(struct lnx_path *path)
{
	lnx_pull_cut(path);
	lnx_read_cut(path);
}

const struct lnx_up lnx_up = {
	.frame = lnx_rel_rx_frame,
	.op = {
		[LNX_OP_TXE] = { lnx_rel_core_done, lnx_rel_core_failed },
		[LNX_OP_CHUNK] = { lnx_pull_chunk_done, lnx_pull_core_error },
		[LNX_OP_READ] = { lnx_read_done, lnx_read_core_error },
		[LNX_OP_LEG] = { lnx_leg_done, lnx_leg_failed },
		[LNX_OP_PRIME] = { lnx_rail_prime_done, lnx_rail_prime_failed },
	},
	.deliver = lnx_rx_deliver_frame,
	.sent = sent,
	.group_over = lnx_tx_group_over,
	.peer_failed = peer_failed,
	.path_down = lnx_pull_fail_over,
	.path_cut = path_cut,
	.routed_read = lnx_routed_read,
	.routed_what = lnx_pull_what,
	.routed_source = lnx_rndv_source,
	.source_changed = lnx_rx_source_changed,
	.greet_local = lnx_confirm_greet,
	.poll_direct = lnx_rx_poll_direct,
	.progress = lnx_ep_progress,
	.progress_all = lnx_ep_progress_all,
};
