/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links that go down, as reported by the system or by the peer: of interfaces
 * and of RDMA devices, also while the application makes no call.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "comp/comp.h"
#include "comp/links.h"
#include "fake_watch.h"
#include "fail_world.h"

#define BOTH(name)	FAIL_BOTH(link_down, name)

/* ---- links ---- */

/* No probe is needed, and the peer is told with a RAIL frame. */
BOTH(link_goes_down)
{
	struct side *s = &side[0];
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 1);
	seq = view_next(inside(s));
	black_hole(0);
	for (i = 0; i < 5; i++)
		send1(s, 200);
	link_is(0, false);
	cr_expect(is_down(s, 0));
	step();
	cr_expect_eq(s->nprobe[1], 0u);
	for (i = 0; i < 5; i++)
		cr_expect_eq(s->seen[seq + i], 1u);
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, 0u);
	run_ms(3000);
	cr_expect_eq(s->nprobe[0], 0u);
	heal(0);
	link_is(0, true);
	run_ms(1);
	cr_expect_eq(s->nrail, 2u);
	cr_expect_eq(s->rail.data, 1u);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* The same if no core accepts that frame at once. */
BOTH(link_goes_down_and_cores_are_busy)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	black_hole(0);
	f.core[1]->inject_again = 3;
	link_is(0, false);
	link_is(0, true);
	link_is(0, false);
	cr_expect_eq(s->nrail, 0u);
	RUN_UNTIL(s->nrail, 100);
	cr_expect_eq(s->rail.tag, 0u);
	cr_expect_eq(s->rail.data, 0u);
	run_ms(100);
	cr_expect_eq(s->nrail, 1u);
	heal(0);
	link_is(0, true);
	RUN_UNTIL(s->nrail == 2, 100);
	cr_expect_eq(s->rail.data, 1u);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* Reads over that rail end all the same. */
BOTH(reads_of_a_link_that_goes_down)
{
	struct side *s = &side[0];
	struct op *o;

	open_met(kind, 2, 1);
	o = force_reopen(s);
	link_is(0, false);
	RUN_UNTIL(o->ncomp, 3000);
	cr_expect(!f.core[0]->enabled);
	cr_expect(is_down(s, 0));
	run_ms(5000);
	cr_expect(!f.core[0]->enabled);
	cr_expect(is_down(s, 0));
	heal(0);
	link_is(0, true);
	RUN_UNTIL(!is_down(s, 0), 5000);
	cr_expect_eq(f.core[0]->nopen, 2u);
	close_clean();
}

/* ---- before it happens ---- */

/* Calls of the core of rail 1 that make its buffers, while n messages of len bytes leave over
 * rail 0. */
static unsigned buffers_made(struct side *s, size_t len, unsigned n)
{
	unsigned before = f.core[1]->nsend;

	while (n--) {
		send1(s, len);
		run_ms(5);
	}
	cr_expect_eq(s->nseen[1], 0u);
	return f.core[1]->nsend - before;
}

/* A rail that stands by is given something to send, once, while there is time to make buffers;
 * where none of our frames need them, it is not. */
BOTH(the_other_rail_has_its_buffers)
{
	struct side *s = &side[0];

	inject_size = 256;
	open_met(kind, 2, 1);
	cr_expect_eq(buffers_made(s, 60, 1000), 0u);
	cr_expect_gt(f.core[1]->nlatency, 0u, "there is no frame that could do it");
	cr_expect_eq(buffers_made(s, 8000, 1000), 1u);
	cr_expect_eq(buffers_made(s, 8000, 1000), 0u);
	close_clean();
}

/* The same for a link of the peer. */
BOTH(link_of_the_peer)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_RAIL, .tag = 0 };
	unsigned i;
	uint32_t seq;

	open_met(kind, 2, 2);
	seq = view_next(inside(s));
	black_hole(0);
	for (i = 0; i < 5; i++)
		send1(s, 200);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(is_down(s, 0));
	cr_expect(!is_down(&side[1], 0));
	step();
	for (i = 0; i < 5; i++)
		cr_expect_eq(s->seen[seq + i], 1u);
	heal(0);
	h.data = 1;
	from(s, 1, 0, h, NULL, 0);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* The notice that it is up again was lost: the path is used again when it answers. */
BOTH(link_of_the_peer_is_up_unannounced)
{
	struct side *s = &side[0];
	struct lnx_hdr h = { .kind = LNX_KIND_RAIL, .tag = 0 };
	unsigned i;

	open_met(kind, 2, 1);
	black_hole(0);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(is_down(s, 0));
	/* While it does not answer it stays DOWN. */
	for (i = 0; i < 5; i++) {
		send1(s, 200);
		run_ms(1000);
		cr_expect(is_down(s, 0));
	}
	heal(0);
	RUN_UNTIL(!is_down(s, 0), 5000);
	/* A second notice is used as well. */
	black_hole(0);
	from(s, 1, 0, h, NULL, 0);
	fake_pass(&f);
	cr_expect(is_down(s, 0));
	heal(0);
	h.data = 1;
	from(s, 1, 0, h, NULL, 0);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* Notices of rails that do not exist; down twice; up without having been down. */
BOTH(hostile_notices)
{
	static const uint64_t odd[] = {
		2, 3, 8, 255, 65535, 65536, 65537, 1ull << 32, UINT64_MAX,
	};
	struct side *s = &side[0];
	unsigned i, k;

	open_met(kind, 2, 1);
	for (i = 0; i < LNX_ARRAY_SIZE(odd); i++) {
		for (k = 0; k < 2; k++) {
			from(s, k, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
			     .tag = odd[i], .data = k ? UINT64_MAX : 0,
			     .len = odd[i], .key = odd[i] }, NULL, 0);
			run_ms(1);
		}
	}
	from(s, 0, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL, .tag = 1,
	     .data = 1 }, NULL, 0);
	run_ms(1);
	cr_expect_eq(f.lnx->stats.paths_down, 0u);
	/* Notices for all existing rails: all are down for good, as reported. */
	for (k = 0; k < 4; k++)
		from(s, k & 1, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
		     .tag = k & 1 }, NULL, 0);
	run_ms(100);
	for (k = 0; k < 2; k++)
		from(s, 0, 7, (struct lnx_hdr) { .kind = LNX_KIND_RAIL,
		     .tag = k, .data = 1 }, NULL, 0);
	close_clean();
}

/* ---- no call is made: the application sleeps, or computes ---- */

static struct lnx_netwatch *watch_links(void)
{
	struct lnx_netwatch *w = fake_watch_open();
	struct lnx_net_event ev;
	unsigned i;

	for (i = 0; i < nrail; i++) {
		struct lnx_rail *rail = f.lnx->rail[i];

		rail->ifindex = 10 + i;
		fake_watch_link(w, 10 + i, i ? "b" : "a", true);
		fake_watch_addr(w, 10 + i, rail->addr, rail->addrlen, true);
	}
	while (lnx_netwatch_next(w, &ev) == 1)
		;
	/* Do not watch this host's own links. */
	lnx_links_close(f.lnx);
	force_netwatch(f.lnx, w);
	return w;
}

/* Nothing is due; the event is handled before a sleep. */
BOTH(link_goes_down_before_a_sleep)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	cr_expect_neq(lnx_ep_look(f.lnx, false), 0);
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	lnx_ep_look(f.lnx, false);
	cr_expect(is_down(s, 0));
	world();
	cr_expect_eq(s->nrail, 1u);
	cr_expect_eq(s->rail.data, 0u);
	/* Only calls work on the path, so there must be some. */
	cr_expect(lnx_ep_look(f.lnx, false));
	heal(0);
	fake_watch_link(w, 10, "a", true);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* ---- RDMA devices ---- */

static struct device {
	struct lnx_netwatch base;
	unsigned events;
	bool up, taken_away;
} device;

static int device_next(struct lnx_netwatch *w, struct lnx_net_event *ev)
{
	(void)w;
	memset(ev, 0, sizeof(*ev));
	ev->what = device.taken_away ? LNX_NET_GONE : LNX_NET_LINK;
	ev->up = device.up;
	if (device.events) {
		device.events--;
		return 1;
	}
	return device.taken_away ? -ENODEV : 0;
}

static int device_look(struct lnx_netwatch *w, uint32_t ifindex,
		       const char *name, const void *addr, size_t addrlen,
		       struct lnx_net_state *now)
{
	(void)w, (void)addr, (void)addrlen;
	cr_assert_eq(ifindex, 0);
	cr_assert_null(name);
	memset(now, 0, sizeof(*now));
	now->up = device.up;
	return device.taken_away ? -ENODEV : 0;
}

static void device_close(struct lnx_netwatch *w)
{
	(void)w;
}

static void add_device(unsigned rail)
{
	static const struct lnx_netwatch_ops ops = {
		.next = device_next, .look = device_look,
		.close = device_close,
	};

	device = (struct device){ .base = { .ops = &ops, .fd = -1 },
				  .up = true };
	f.lnx->rail[rail]->devwatch = &device.base;
}

/* Its interface still looks up. */
BOTH(port_of_a_device_goes_down)
{
	struct side *s = &side[0];

	open_met(kind, 2, 1);
	run_ms(200);
	watch_links();
	add_device(0);
	lnx_ep_look(f.lnx, false);
	cr_expect(!is_down(s, 0));
	black_hole(0);
	device.up = false;
	device.events = 1;
	lnx_ep_look(f.lnx, false);
	cr_expect(is_down(s, 0));
	cr_expect(!is_down(s, 1));
	world();
	cr_expect_eq(s->nrail, 1u, "the peer gets a notice");
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	device.up = true;
	device.events = 1;
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

BOTH(device_is_taken_away)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	add_device(0);
	black_hole(0);
	device.taken_away = true;
	device.events = 1;
	lnx_ep_look(f.lnx, false);
	cr_expect(is_down(s, 0));
	cr_expect(f.lnx->rail[0]->devgone, "it is not polled any more");
	heal(0);
	/* The interface may still exist, without the device below the rail. */
	fake_watch_link(w, 10, "a", true);
	lnx_ep_look(f.lnx, false);
	cr_expect(f.lnx->rail[0]->link_down);
	cr_expect(!f.lnx->rail[1]->link_down);
	close_clean();
}

/* A receiver has no ack pending, and is the only one that knows of the link. */
BOTH(link_goes_down_where_messages_come_in)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;
	struct op *o;

	open_met(kind, 2, 1);
	run_ms(3000);
	w = watch_links();
	o = receive(s, 8);
	say(s, 0, LNX_KIND_TAG, ++s->next_tag);
	RUN_UNTIL(o->ncomp && all_there(), 100);
	run_ms(20);
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	RUN_UNTIL(s->nrail, 10);
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	fake_watch_link(w, 10, "a", true);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_clean();
}

/* Also if it has never sent anything itself. */
BOTH(link_goes_down_of_a_receiver)
{
	struct side *s = &side[0];
	struct op *o;

	open_n(kind, 2, 1);
	o = receive(s, 8);
	say(s, 0, LNX_KIND_HELLO, 0);
	say(s, 0, LNX_KIND_TAG, ++s->next_tag);
	RUN_UNTIL(o->ncomp, 100);
	run_ms(20);
	black_hole(0);
	link_is(0, false);
	RUN_UNTIL(s->nrail, 10);
	cr_expect_eq(s->rail.data, 0u);
	heal(0);
	link_is(0, true);
	RUN_UNTIL(!is_down(s, 0), 5000);
	close_now();
}

/* A link that goes down, and work that is due later, both wake the helper thread. */
BOTH(link_goes_down_between_calls)
{
	struct side *s = &side[0];
	struct lnx_netwatch *w;
	bool is = false;
	unsigned i;

	open_met(kind, 2, 1);
	run_ms(200);
	w = watch_links();
	force_locks(f.lnx);
	f.domain.mr_lock.on = true;
	cr_assert_eq(lnx_thread_start(f.lnx), 0);
	black_hole(0);
	fake_watch_link(w, 10, "a", false);
	for (i = 0; i < 20000 && !is; i++) {
		usleep(1000);
		lnx_lock(&f.lnx->lock);
		is = is_down(s, 0);
		lnx_unlock(&f.lnx->lock);
	}
	cr_assert(is);
	/* So the application may sleep. */
	cr_expect_neq(lnx_ep_look(f.lnx, false), 0);
	/* The helper thread still works as time passes. */
	heal(0);
	fake_watch_link(w, 10, "a", true);
	for (i = 0; i < 20000 && is; i++) {
		usleep(1000);
		lnx_lock(&f.lnx->lock);
		fake_now_ns += LNX_NS_PER_MS;
		world();
		is = is_down(s, 0);
		lnx_unlock(&f.lnx->lock);
	}
	cr_assert(!is);
	lnx_thread_stop(f.lnx);
	close_clean();
}
