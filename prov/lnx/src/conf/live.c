/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which parameters can be set while an endpoint is open.  ctl/settings.c does it. */
#include <string.h>

#include "base/compiler.h"
#include "conf/conf.h"

/* Those that are read when they are used, or that apply() of ctl/settings.c copies. */
static const char *const live_names[] = {
	"ack_delay", "ack_every", "chunk", "connect_timeout", "credits", "defer", "discovery",
	"dump_stats", "flap_window", "health_sensitivity", "health_sensitivity_classes",
	"hold_down", "hold_down_max", "linger", "max_rails",
	"max_recovery_ping_interval", "numa_range", "peer_credits", "poll_credits",
	"poll_idle", "rail_timeout_min", "ramp_time", "recovery_limit",
	"recovery_ping_interval", "reorder_limit", "retry_count", "spare_ping_interval", "spill",
	"stall_timeout", "stripe_threshold", "transaction_timeout", "unsolicited_peers",
};

bool lnx_conf_live(size_t row)
{
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(live_names); i++)
		if (!strcmp(live_names[i], lnx_params[row].name))
			return true;
	return false;
}
