/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection for an endpoint.  Called by rel/pump.c and msg/pull.c before they call
 * a core, by rel/recv.c before it handles a frame, and by progress; passes errors to
 * rail/lent.c and late frames to rel/recv.c.
 */
#include "rail/faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/warn_once.h"
#include "policy/fault.h"
#include "rail/post.h"
#include "rail/rail.h"
#include "wire/hdr.h"

struct lnx_faults {
	struct lnx_fault *table;
	struct lnx_node held;		/* lnx_rxbuf.link, by due_ns */
	unsigned nheld;
	struct lnx_node failing;	/* struct failing */
	bool releasing;			/* rules were applied to these frames before */
};

/* An operation that seems to its owner to be in a core. */
struct failing {
	struct lnx_node link;
	struct lnx_rail *rail;
	void *op;
	enum lnx_health_class class;
};

/* ---- the rules ---- */

int lnx_faults_check(const struct lnx_conf *conf)
{
	char why[400], shown[300];
	size_t at;
	int ret;

	if (!conf->fault)
		return 0;
	lnx_warn_printable(conf->fault, sizeof(shown), shown, sizeof(shown));
	if (lnx_conf_native(conf)) {
		lnx_warn_once(true,
			     "FI_LNX_FAULT=\"%s\": with FI_LNX_PROTOCOL=direct "
			     "or FI_LNX_USE_SRQ=0 there are no frames for faults; "
			     "unset these, or it", shown);
		return -FI_EINVAL;
	}
	ret = lnx_fault_create(conf->fault, 0, 0, NULL, &at, why, sizeof(why));
	if (ret == -EINVAL)
		lnx_warn_once(true, "FI_LNX_FAULT=\"%s\", character %zu: %s",
			     shown, at + 1, why);
	return ret;
}

/*
 * A warning, so that the faults are not mistaken for the network's; with the seeds, so that
 * they can be repeated.
 */
static void say(const struct lnx_ep *ep)
{
	char text[800];
	size_t n = 0;
	unsigned i;

	for (i = 0; i < lnx_fault_nrule(ep->fault->table); i++) {
		if (i && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "; ");
		if (n < sizeof(text))
			n += lnx_fault_print(ep->fault->table, i, text + n,
					     sizeof(text) - n);
	}
	LNX_WARN(FI_LOG_EP_CTRL, "endpoint %016llx: faults are injected: %s%s\n",
		 (unsigned long long)ep->eid, text,
		 n < sizeof(text) ? "" : "...");
}

static bool has_frames(const struct lnx_link_rails *lr)
{
	unsigned i;

	for (i = 0; i < lr->nrail; i++)
		if (!lnx_rail_kind_local(lr->rail[i].kind))
			return true;
	return false;
}

static struct lnx_faults *create(const struct lnx_ep *ep, const char *rules,
				 int *ret)
{
	struct lnx_faults *f = calloc(1, sizeof(*f));

	*ret = -FI_ENOMEM;
	if (!f)
		return NULL;
	*ret = lnx_fault_create(rules, ep->eid, lnx_clock_ns(), &f->table,
				NULL, NULL, 0);
	if (*ret) {
		free(f);
		return NULL;
	}
	lnx_list_init(&f->held);
	lnx_list_init(&f->failing);
	return f;
}

int lnx_faults_open(struct lnx_ep *ep)
{
	int ret;

	ep->fault = NULL;
	if (!ep->conf->fault)
		return 0;
	if (!has_frames(ep->domain->rails)) {
		lnx_warn_once(true,
			     "FI_LNX_FAULT has no effect on the link \"%s\": "
			     "no rail of it carries frames",
			     ep->domain->rails->name);
		return 0;
	}
	ep->fault = create(ep, ep->conf->fault, &ret);
	if (ep->fault)
		say(ep);
	return ret;
}

int lnx_faults_add(struct lnx_ep *ep, const char *rules)
{
	int ret;

	if (ep->native || !has_frames(ep->domain->rails))
		return -FI_EOPNOTSUPP;
	if (ep->fault)
		ret = lnx_fault_add(ep->fault->table, rules, ep->eid,
				    lnx_clock_ns(), NULL, NULL, 0);
	else
		ep->fault = create(ep, rules, &ret);
	if (!ret)
		say(ep);
	return ret;
}

bool lnx_faults_del(struct lnx_ep *ep, uint64_t number)
{
	return ep->fault && lnx_fault_del(ep->fault->table, number);
}

void lnx_faults_del_all(struct lnx_ep *ep)
{
	struct lnx_fault *t = ep->fault ? ep->fault->table : NULL;

	/* What the rules have begun goes on: late frames, errors to deliver. */
	while (t && lnx_fault_nrule(t))
		lnx_fault_del(t, lnx_fault_number(t, 0));
}

void lnx_faults_reset(struct lnx_ep *ep)
{
	if (ep->fault)
		lnx_fault_reset(ep->fault->table);
}

uint64_t lnx_faults_last(const struct lnx_ep *ep)
{
	unsigned n = ep->fault ? lnx_fault_nrule(ep->fault->table) : 0;

	return n ? lnx_fault_number(ep->fault->table, n - 1) : 0;
}

void lnx_faults_list(const struct lnx_ep *ep, uint64_t after,
		     struct lnx_out *o)
{
	const struct lnx_fault *t = ep->fault ? ep->fault->table : NULL;
	char text[LNX_FAULT_RULE_MAX];
	unsigned i;

	for (i = 0; t && i < lnx_fault_nrule(t); i++) {
		struct lnx_fault_count c = lnx_fault_count(t, i);
		unsigned long long n = lnx_fault_number(t, i);

		if (n <= after)
			continue;
		lnx_fault_print(t, i, text, sizeof(text));
		lnx_out(o, "fault %llu %s: matched %llu, hit %llu", n, text,
			(unsigned long long)c.matched,
			(unsigned long long)c.hit);
		if (c.missed)
			lnx_out(o, ", missed %llu",
				(unsigned long long)c.missed);
		lnx_out(o, "\n");
	}
}

void lnx_faults_log(const struct lnx_ep *ep)
{
	char text[400];
	unsigned i;

	for (i = 0; ep->fault && i < lnx_fault_nrule(ep->fault->table); i++) {
		struct lnx_fault_count c = lnx_fault_count(ep->fault->table, i);

		lnx_fault_print(ep->fault->table, i, text, sizeof(text));
		FI_LOG(&lnx_prov, FI_LOG_WARN, FI_LOG_EP_CTRL,
		       "endpoint %016llx: fault %s: matched %llu, hit %llu, missed %llu\n",
		       (unsigned long long)ep->eid, text,
		       (unsigned long long)c.matched, (unsigned long long)c.hit,
		       (unsigned long long)c.missed);
	}
}

static void forget(struct lnx_node *n)
{
	lnx_list_del(n);
	free(lnx_list_entry(n, struct failing, link));
}

void lnx_faults_close(struct lnx_ep *ep)
{
	struct lnx_faults *f = ep->fault;
	struct lnx_node *n, *tmp;

	if (!f)
		return;
	/* The buffers are freed with their pool. */
	lnx_list_foreach(&f->failing, n, tmp)
		forget(n);
	lnx_fault_destroy(f->table);
	free(f);
	ep->fault = NULL;
}

/* ---- sending ---- */

static bool fail(const struct lnx_peer *peer, struct lnx_path *path, void *op,
		 uint8_t kind)
{
	struct lnx_faults *f = peer->ep->fault;
	struct lnx_fault_frame frame = {
		.rail = path->rail->name, .remote_rail = path->remote_rail,
		.eid = peer->eid, .addr = peer->addr, .kind = kind,
	};
	struct lnx_fault_verdict v;
	struct failing *e;

	v = lnx_fault_judge(f->table, LNX_FAULT_AT_SEND, &frame,
			    lnx_clock_ns());
	if (v.action == LNX_FAULT_NONE)
		return false;
	e = malloc(sizeof(*e));
	if (!e) {
		lnx_fault_missed(f->table, v.rule);
		return false;
	}
	e->rail = path->rail;
	e->op = op;
	e->class = v.class;
	lnx_list_add_tail(&f->failing, &e->link);
	lnx_rail_op_began(path->rail);	/* as if its core had it */
	peer->ep->work |= LNX_WORK_FAULT;
	return true;
}

bool lnx_faults_tx(const struct lnx_peer *peer, struct lnx_path *path, void *frame,
		   uint8_t kind)
{
	return fail(peer, path, frame, kind);
}

bool lnx_faults_piece(const struct lnx_peer *peer, struct lnx_path *path,
		      void *chunk, bool push)
{
	return fail(peer, path, chunk, push ? LNX_FAULT_WRITE : LNX_FAULT_READ);
}

/*
 * Deliver only the present errors; what they lead to may fail again, in the next pass.
 */
static void deliver_errors(struct lnx_faults *f)
{
	const struct lnx_node *last = f->failing.prev;
	struct lnx_node *n;
	bool over = false;

	while (!over && (n = lnx_list_pop(&f->failing))) {
		struct failing *e = lnx_list_entry(n, struct failing, link);
		struct fi_cq_err_entry err = {
			.op_context = e->op,
			.err = lnx_fault_errno(e->class),
			.prov_errno = LNX_FAULT_ERRNO_BASE + (int)e->class,
		};

		over = n == last;
		lnx_rail_core_error(e->rail, &err);
		free(e);
	}
}

/* ---- receiving ---- */

static bool hold(struct lnx_faults *f, struct lnx_rail *over, struct lnx_rxbuf *buf,
		 size_t len, uint64_t due_ns)
{
	struct lnx_node *n;

	/* Kept like a frame that waits for an earlier one. */
	if (f->nheld >= LNX_FAULTS_HELD_MAX || !lnx_rxbuf_may_keep(buf))
		return false;
	for (n = f->held.prev; n != &f->held; n = n->prev)
		if (lnx_list_entry(n, struct lnx_rxbuf, link)->due_ns <= due_ns)
			break;
	lnx_rxbuf_keep(buf);
	buf->len = len;
	buf->due_ns = due_ns;
	buf->over = over;
	lnx_list_add_head(n, &buf->link);
	f->nheld++;
	buf->rail->ep->work |= LNX_WORK_FAULT;
	return true;
}

enum lnx_faults_rx lnx_faults_rx(struct lnx_rail *rail, struct lnx_rxbuf *buf,
				 const struct lnx_hdr *h, size_t len)
{
	struct lnx_ep *ep = rail->ep;
	struct lnx_faults *f = ep->fault;
	const struct lnx_peer *peer;
	struct lnx_fault_frame frame = {
		.rail = rail->name, .remote_rail = h->rail,
		.kind = h->kind,
	};
	struct lnx_fault_verdict v;
	uint64_t now;

	if (f->releasing)
		return LNX_FAULTS_GO;
	peer = lnx_peer_by_sid(ep, h->src);
	frame.addr = peer ? peer->addr : FI_ADDR_NOTAVAIL;
	frame.eid = peer ? peer->eid : 0;
	now = lnx_clock_ns();
	v = lnx_fault_judge(f->table, LNX_FAULT_AT_RECV, &frame, now);
	switch (v.action) {
	case LNX_FAULT_DROP:
		return LNX_FAULTS_DROPPED;
	case LNX_FAULT_DELAY:
		if (hold(f, rail, buf, len, now + v.delay_ns))
			return LNX_FAULTS_HELD;
		lnx_fault_missed(f->table, v.rule);
		return LNX_FAULTS_GO;
	default:
		return LNX_FAULTS_GO;
	}
}

static void release(struct lnx_faults *f, uint64_t now)
{
	f->releasing = true;
	while (!lnx_list_empty(&f->held)) {
		struct lnx_rxbuf *buf = lnx_list_entry(f->held.next,
						       struct lnx_rxbuf, link);

		if (buf->due_ns > now)
			break;
		lnx_list_del(&buf->link);
		f->nheld--;
		buf->kept = false;
		if (!buf->rail->ep->up->frame(buf->over, buf, buf->len))
			lnx_rxbuf_drop(buf);
	}
	f->releasing = false;
}

void lnx_faults_run(struct lnx_ep *ep)
{
	struct lnx_faults *f = ep->fault;

	/* First, because the rest may set it again. */
	ep->work &= ~LNX_WORK_FAULT;
	deliver_errors(f);
	if (!lnx_list_empty(&f->held))
		release(f, lnx_clock_ns());
	if (!lnx_list_empty(&f->held) || !lnx_list_empty(&f->failing))
		ep->work |= LNX_WORK_FAULT;
}

void lnx_faults_forget_rail(struct lnx_rail *rail)
{
	struct lnx_faults *f = rail->ep->fault;
	struct lnx_node *n, *tmp;

	if (!f)
		return;
	lnx_list_foreach(&f->failing, n, tmp)
		if (lnx_list_entry(n, struct failing, link)->rail == rail)
			forget(n);
	lnx_list_foreach(&f->held, n, tmp) {
		struct lnx_rxbuf *buf =
			lnx_list_entry(n, struct lnx_rxbuf, link);

		if (buf->rail != rail)
			continue;
		lnx_list_del(n);
		f->nheld--;
		lnx_rxbuf_drop(buf);
	}
}
