/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counts and answers what the cores of local peers did here.  See confirm.h. */
#include "msg/confirm_answer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interval.h"
#include "core/shm_registry.h"
#include "msg/confirm.h"
#include "msg/rx.h"
#include "obj/mr.h"
#include "rail/rail.h"
#include "rma/copy_target.h"
#include "rma/serve.h"
#include "wire/shm_ctrl.h"

/* Of one peer: as many operations as an endpoint may have, whose program does not read
 * what is finished. */
#define ANSWERS_MAX	65536u

/* ---- control messages from peers ---- */

static bool has_room(const struct lnx_peer *peer)
{
	return lnx_likely(peer->confirm.n_answers < ANSWERS_MAX);
}

/* a is the answer to op; NULL: there is no memory for it. */
static void add(struct lnx_peer *peer, struct lnx_answer *a, uint64_t op)
{
	struct lnx_ep *ep = peer->ep;

	if (lnx_unlikely(!a)) {
		/*
		 * This error is reported for the other operations too: there is no
		 * better answer.
		 */
		if (peer->confirm.answer) {
			peer->confirm.answer->op = op;
			peer->confirm.answer->err = FI_ENOMEM;
		} else {
			ep->stats.lost++;
		}
		return;
	}
	peer->confirm.n_answers++;
	a->peer = peer;
	a->op = op;
	lnx_list_add_tail(&ep->local.answers, &a->link);
	peer->confirm.answer = a;
	ep->work |= LNX_WORK_CONFIRM;
}

void lnx_confirm_answer(struct lnx_peer *peer, uint64_t op, int err)
{
	struct lnx_answer *a = peer->confirm.answer;

	if (a && a->kind == LNX_ANSWER_STATUS && (a->err == err || op <= a->op)) {
		a->op = LNX_MAX(a->op, op);
		return;
	}
	a = has_room(peer) ? calloc(1, sizeof(*a)) : NULL;
	if (lnx_likely(a != NULL))
		a->err = err;
	add(peer, a, op);
}

uint8_t *lnx_confirm_result(struct lnx_peer *peer, uint64_t op, size_t len)
{
	struct lnx_answer *a = has_room(peer) ? malloc(sizeof(*a) + len) : NULL;
	uint8_t *result = NULL;

	if (lnx_likely(a != NULL)) {
		result = (uint8_t *)(a + 1);
		a->kind = LNX_ANSWER_RESULT;
		a->err = 0;
		a->kept = result;
		a->len = len;
	}
	add(peer, a, op);
	return result;
}

/* Check it as the core did, which reported no result. */
static int check(struct lnx_ep *ep, const struct lnx_peer *peer,
		 const struct lnx_wire_shm_put *n)
{
	uint64_t access = n->kind == LNX_KIND_GET ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	unsigned i;

	for (i = 0; i < n->n_targets; i++) {
		const struct lnx_wire_target *p = &n->place[i];
		struct lnx_hdr bad = {
			.kind = n->kind, .key = p->key, .tag = p->addr,
			.len = p->len,
		};
		uint8_t *ptr;
		int err = -lnx_mr_check(ep->domain, p->key, p->addr, p->len,
					access, &ptr, NULL);

		if (lnx_unlikely(err)) {
			lnx_serve_refuse(ep, peer, &bad, err);
			return err;
		}
	}
	return 0;
}

void lnx_confirm_ctrl(struct lnx_ep *ep, const struct lnx_wire_shm_put *n)
{
	struct lnx_peer *peer = lnx_fetch_ctrl_sender(ep, n->src);
	uint64_t key[LNX_SHM_CTRL_PIECES];
	unsigned i, nkey = 0;
	int err;

	if (lnx_unlikely(!peer)) {
		ep->stats.lost++;
		return;
	}
	ep->stats.confirms++;
	err = check(ep, peer, n);
	if (n->kind != LNX_KIND_GET && (n->flags & LNX_SHM_CTRL_F_TRY)) {
		/* Of a copied write.  The registration may have been away for some of
		 * its parts only. */
		if (!err)
			err = peer->rma.put_refused;
		peer->rma.put_refused = 0;
	}
	if (!err && (n->flags & LNX_SHM_CTRL_F_COUNT)) {
		for (i = 0; i < n->n_targets; i++)
			nkey = lnx_mr_key_add(key, nkey, n->place[i].key);
		lnx_mr_count(ep->domain, key, nkey);
	}
	if (n->flags & LNX_SHM_CTRL_F_TRY)
		peer->shm.try_reach = true;
	if (!err && n->kind == LNX_KIND_GET)
		lnx_cntr_ok(ep, LNX_CNTR_REMOTE_READ);
	if (!n->op)
		return;
	if (!err && n->kind == LNX_KIND_GET)
		add(peer, has_room(peer) ? lnx_rma_copy_answer(ep, n) : NULL, n->op);
	else
		lnx_confirm_answer(peer, n->op, err);
}

LNX_COLD void lnx_confirm_settle(struct lnx_ep *ep)
{
	uint64_t start, look = LNX_SETTLE_LOOK_NS;
	unsigned i;

	if (!ep->local.registry || !ep->shm || !ep->shm->core_cq ||
	    ep->local.pid != getpid())
		return;
	start = lnx_clock_ns();
	while (lnx_shm_registry_unsettled(ep->local.registry)) {
		uint64_t waited = lnx_ns_since(lnx_clock_ns(), start);

		if (waited >= look) {
			lnx_shm_registry_settle(ep->local.registry, waited >= LNX_SETTLE_NS);
			look = waited + LNX_SETTLE_LOOK_NS;
		}
		lnx_rx_poll_direct(ep);
		/* Copies that the peer has queued may wait for answers. */
		if (ep->work & LNX_WORK_CONFIRM)
			lnx_confirm_run(ep);
		sched_yield();
	}
	/* They are in the queue: the core hands them over. */
	for (i = 0; i < 2; i++)
		lnx_rx_poll_direct(ep);
}

/* ---- answers to peers ---- */

/* The result of an atomic, which answers it. */
static ssize_t send_result(struct lnx_answer *a)
{
	struct lnx_peer *peer = a->peer;
	struct lnx_ep *ep = peer->ep;
	struct lnx_wire_shm_amo w;
	uint8_t bytes[LNX_COPY_BYTES];
	struct iovec iov = { bytes, lnx_shm_amo_size(a->len) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };

	memset(&w, 0, LNX_SHM_AMO_HEAD);
	w.src = ep->eid;
	w.dst = peer->eid;
	w.op = a->op;
	w.len = (uint32_t)a->len;
	w.kind = LNX_KIND_RESP;
	memcpy(lnx_shm_amo_put(bytes, &w), a->kept, a->len);
	return lnx_large_ctrl_post(ep, peer->shm.core, &ctrl);
}

static ssize_t send_answer(struct lnx_answer *a)
{
	struct lnx_peer *peer = a->peer;
	struct lnx_ep *ep = peer->ep;
	struct lnx_wire_shm_put n = {
		.src = ep->eid, .dst = peer->eid, .kind = LNX_KIND_RESP,
		.op = a->op,
	};
	uint8_t bytes[LNX_SHM_CTRL_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct lnx_tx ctrl = { .call = LNX_SHM_CTRL, .iov = &iov, .niov = 1 };

	if (lnx_peer_dead(peer) || !lnx_peer_meet(peer))
		return -FI_EHOSTUNREACH;
	/* Before the answer, so that the next operation knows. */
	if (lnx_unlikely(peer->shm.try_reach))
		lnx_rma_copy_try(peer);
	if (a->kind == LNX_ANSWER_RESULT && lnx_likely(!a->err))
		return send_result(a);
	if (a->kind == LNX_ANSWER_READ) {
		ssize_t ret = lnx_rma_copy_send(a);

		if (ret)
			return ret;
	}
	n.err = (uint32_t)a->err;
	lnx_shm_ctrl_put_put(bytes, &n);
	return lnx_large_ctrl_post(ep, peer->shm.core, &ctrl);
}

static void done(struct lnx_answer *a)
{
	if (a->peer->confirm.answer == a)
		a->peer->confirm.answer = NULL;
	a->peer->confirm.n_answers--;
	free(a);
}

/* Does an answer to the same peer wait in this list? */
static bool waits(const struct lnx_node *list, const struct lnx_peer *peer)
{
	const struct lnx_node *n;

	for (n = list->next; n != list; n = n->next)
		if (lnx_container_of(n, struct lnx_answer, link)->peer == peer)
			return true;
	return false;
}

static bool let_leave(struct lnx_ep *ep)
{
	struct lnx_node stuck, *n;
	bool all;

	lnx_list_init(&stuck);
	while ((n = lnx_list_pop(&ep->local.answers))) {
		struct lnx_answer *a = lnx_list_entry(n, struct lnx_answer,
						      link);

		/* In order: an answer ends all operations up to its number. */
		if (waits(&stuck, a->peer) || send_answer(a) == -FI_EAGAIN)
			lnx_list_add_tail(&stuck, &a->link);
		else
			done(a);
	}
	all = lnx_list_empty(&stuck);
	while ((n = lnx_list_pop(&stuck)))
		lnx_list_add_tail(&ep->local.answers, n);
	return all;
}

void lnx_confirm_run(struct lnx_ep *ep)
{
	ep->work &= ~LNX_WORK_CONFIRM;
	lnx_confirm_tell(ep);
	if (!let_leave(ep))
		ep->work |= LNX_WORK_CONFIRM;
}

void lnx_confirm_answers_drop(struct lnx_ep *ep)
{
	struct lnx_node *n;

	while ((n = lnx_list_pop(&ep->local.answers)))
		done(lnx_list_entry(n, struct lnx_answer, link));
}
