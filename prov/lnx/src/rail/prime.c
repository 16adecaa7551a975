/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The buffers of a core, before they are needed (rail/rail.h). */
#include "rail/post.h"
#include "rail/rail.h"

/* Are the frames of that rail, or its reads, mostly too long to be injected? */
static bool carries_long(const struct lnx_rail *rail)
{
	const struct lnx_rail_traffic *t = &rail->traffic;

	return t->send_length > t->sends * rail->inject_size ||
	       t->recv_length > (t->recvs + t->reads) * rail->inject_size;
}

bool lnx_rail_prime_due(const struct lnx_rail *rail)
{
	const struct lnx_ep *ep = rail->ep;
	unsigned i;

	if (rail->prime.state != LNX_PRIME_NOT || lnx_rail_is_leg(rail) || carries_long(rail))
		return false;
	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++)
		if (ep->rail[i] != rail && carries_long(ep->rail[i]))
			return true;
	return false;
}

ssize_t lnx_rail_prime_send(struct lnx_rail *rail, const void *frame, size_t len,
			    fi_addr_t dest)
{
	struct lnx_rail_prime *p = &rail->prime;
	struct iovec iov = { .iov_base = p->frame, .iov_len = len };
	ssize_t ret;

	memcpy(p->frame, frame, len);
	p->op.type = LNX_OP_PRIME;
	p->state = LNX_PRIME_IN_CORE;
	ret = lnx_rail_send(rail, &iov, 1, dest, &p->op);
	if (ret)
		p->state = LNX_PRIME_NOT;
	return ret;
}

void lnx_rail_prime_done(struct lnx_op *op)
{
	struct lnx_rail_prime *p = lnx_container_of(op, struct lnx_rail_prime, op);

	p->state = LNX_PRIME_DONE;
}

bool lnx_rail_prime_failed(struct lnx_rail *rail, const struct fi_cq_err_entry *err)
{
	if (err->op_context != &rail->prime || rail->prime.state != LNX_PRIME_IN_CORE)
		return false;
	/* The buffers are there. */
	lnx_rail_op_ended(rail);
	rail->prime.state = LNX_PRIME_DONE;
	return true;
}

void lnx_rail_prime_forget(struct lnx_rail *rail)
{
	rail->prime.state = LNX_PRIME_NOT;
}
