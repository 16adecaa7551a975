/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints the summary of an endpoint.  See summary.h.  Called by ep_close.c. */
#include "api/summary.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/out.h"
#include "base/say.h"
#include "prov.h"

#define LINE_BYTES	8192		/* enough for all rails with 20 digits each */

static void way(struct lnx_out *o, const char *name, uint64_t sends,
		uint64_t send_length, uint64_t recvs, uint64_t recv_length)
{
	lnx_out(o, "; %s sent %" PRIu64 " messages %" PRIu64 " bytes, received "
		"%" PRIu64 " messages %" PRIu64 " bytes", name, sends,
		send_length, recvs, recv_length);
}

static void traffic(const struct lnx_ep *ep, struct lnx_out *o)
{
	const struct lnx_stats *s = &ep->stats;
	uint64_t rma = s->writes + s->reads + s->atomics;
	uint32_t i;

	if (ep->shm)
		way(o, "shm", s->direct_sends, s->direct_send_length,
		    s->direct_recvs, s->direct_recv_length);
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		const struct lnx_rail_traffic *t = &ep->rail[i]->traffic;

		way(o, ep->rail[i]->name, t->sends, t->send_length, t->recvs,
		    t->recv_length);
	}
	if (s->direct_rma || rma)
		lnx_out(o, "; remote memory: %" PRIu64 " operations over shared "
			"memory, %" PRIu64 " between nodes", s->direct_rma, rma);
	lnx_out(o, "; resent %" PRIu64, s->resend_count);
}

void lnx_summary_say(const struct lnx_ep *ep)
{
	char line[LINE_BYTES], host[256];
	struct lnx_out o = { .buf = line, .size = sizeof(line) - 1 };

	if (gethostname(host, sizeof(host)))
		snprintf(host, sizeof(host), "?");
	host[sizeof(host) - 1] = '\0';
	lnx_out(&o, "lnx " PACKAGE_VERSION " summary: %s pid %d", host,
		(int)getpid());
	if (*lnx_global_job_rank())
		lnx_out(&o, " rank %s", lnx_global_job_rank());
	/* The core providers' own operations are not counted by us. */
	if (ep->native)
		lnx_out(&o, "; %s: messages are not counted with "
			"FI_LNX_PROTOCOL=direct or FI_LNX_USE_SRQ=0",
			ep->domain->rails->name);
	else
		traffic(ep, &o);
	o.n = LNX_MIN(o.n, o.size - 1);
	line[o.n++] = '\n';
	lnx_say(line, o.n);
}
