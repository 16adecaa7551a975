/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rails that no address blob lists, on scripted cores: more rails than the blob
 * has room for, and rails that appear while the endpoint is open.  The test
 * plays the peer, the providers and the kernel.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "comp/comp.h"
#include "comp/links.h"
#include "comp/rails.h"
#include "core/hotplug.h"
#include "core/open.h"
#include "fake_core.h"
#include "rel/order.h"
#include "fake_watch.h"
#include "msg/tx.h"
#include "view.h"

#define HDR	sizeof(struct lnx_wire_hdr)

static struct fake f;
static struct fake_peer p;

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(discover_plain, name) { name(LNX_RAIL_PLAIN); }		\
	Test(discover_peer, name) { name(LNX_RAIL_PEER); }		\
	static void name(enum lnx_rail_kind kind)

/* ---- the system's answers ---- */

static unsigned nopen, ngrow;		/* number of rails, and of queries for it */
static bool elsewhere;			/* new ones have the address 127.0.2.1 */
static struct lnx_netwatch *watch;

unsigned __wrap_lnx_hotplug_find(const struct lnx_ep *ep, struct lnx_hotplug_rail *out,
			      unsigned max);
unsigned __wrap_lnx_hotplug_find(const struct lnx_ep *ep, struct lnx_hotplug_rail *out,
			      unsigned max)
{
	unsigned i, n = 0;

	ngrow++;
	for (i = ep->nrail; i < nopen && n < max; i++, n++) {
		out[n].spec = f.rails.rail[0];
		out[n].spec.info = fi_dupinfo(f.rails.rail[0].info);
		if (elsewhere)
			((struct sockaddr_in *)out[n].spec.info->src_addr)->sin_addr.s_addr =
				htonl(0x7f000201);
		out[n].was = NULL;
	}
	return n;
}

int __wrap_lnx_netwatch_open(struct lnx_netwatch **w);
int __wrap_lnx_netwatch_open(struct lnx_netwatch **w)
{
	watch = *w = fake_watch_open();
	return 0;
}

static char asked_for[64];
static uint8_t asked_port;

int __wrap_lnx_ibwatch_open(const char *device, uint8_t port,
			    struct lnx_netwatch **w);
int __wrap_lnx_ibwatch_open(const char *device, uint8_t port,
			    struct lnx_netwatch **w)
{
	snprintf(asked_for, sizeof(asked_for), "%s", device);
	asked_port = port;
	*w = fake_watch_open();
	return 0;
}

static bool refused;
static int come_fd = -1;		/* the descriptor of rails opened from now on */

int __real_lnx_rail_open(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
			 const struct lnx_rail_owner *owner,
			 struct lnx_rail **rail);
int __wrap_lnx_rail_open(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
			 const struct lnx_rail_owner *owner,
			 struct lnx_rail **rail);
int __wrap_lnx_rail_open(struct lnx_ep *ep, const struct lnx_rail_spec *spec,
			 const struct lnx_rail_owner *owner,
			 struct lnx_rail **rail)
{
	int ret = refused ? -FI_EADDRNOTAVAIL :
			    __real_lnx_rail_open(ep, spec, owner, rail);

	if (!ret && come_fd >= 0)
		(*rail)->wait_fd = come_fd;
	return ret;
}

/* The helper thread: the descriptors that wake it. */
static int woken_by[8];
static unsigned nwoken;

int __wrap_lnx_thread_watch(struct lnx_thread *t, int fd);
int __wrap_lnx_thread_watch(struct lnx_thread *t, int fd)
{
	(void)t;
	woken_by[nwoken++ % 8] = fd;
	return 0;
}

void __wrap_lnx_thread_unwatch(struct lnx_thread *t, int fd);
void __wrap_lnx_thread_unwatch(struct lnx_thread *t, int fd)
{
	(void)t;
	if (nwoken && woken_by[nwoken - 1] == fd)
		nwoken--;
}

static void appears(uint32_t ifindex)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001),
	};

	fake_watch_link(watch, ifindex, "new", true);
	fake_watch_addr(watch, ifindex, &in, sizeof(in), true);
}

/* ---- the peer ---- */

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

static unsigned shared(struct lnx_peer *peer);

static bool shared_over(struct lnx_peer *peer, const struct lnx_rail *rail)
{
	unsigned i, n = 0;

	for (i = 0; i < view_npath(peer); i++)
		n += view_rail(view_path(peer, i)) == rail && (shared(peer) >> i & 1);
	return n;
}

/* The paths that share large messages, as bits. */
static unsigned shared(struct lnx_peer *peer)
{
	lnx_lock(&f.lnx->lock);
	lnx_order_fresh(peer, fake_now_ns);
	lnx_unlock(&f.lnx->lock);
	return view_stripe(peer);
}

/* The peer has n rails; its address lists as many as fit. */
static void open_peer(enum lnx_rail_kind kind, unsigned ours, unsigned listed)
{
	struct fake_opt opt = { .nrail = ours };
	unsigned i;

	for (i = 0; i < ours; i++)
		opt.kind[i] = kind;
	fake_open(&f, &opt);
	nopen = ours;
	fake_peer_init(&f, &p, 0x1111);
	while (p.where.nrail < listed) {
		p.where.rail[p.where.nrail] = p.where.rail[0];
		p.where.nrail++;
	}
	p.where.nrail = listed;
	cr_assert_eq(lnx_addr_pack(&p.where, p.blob), 0);
	fake_peer_insert(&f, &p);
}

static struct lnx_rails rails_of(unsigned n, unsigned port)
{
	struct lnx_rails r = { .n = n };
	unsigned i;

	for (i = 0; i < n; i++) {
		struct sockaddr_in in;

		r.place[i] = (uint8_t)i;
		r.rail[i] = p.where.rail[0];
		memcpy(&in, r.rail[i].raw, sizeof(in));
		in.sin_port = htons((uint16_t)(port + i));
		memcpy(r.rail[i].raw, &in, sizeof(in));
	}
	return r;
}

static void hello(const struct lnx_rails *r)
{
	uint8_t payload[LNX_HELLO_BYTES];
	int n;

	memcpy(payload, p.blob, LNX_ADDR_BYTES);
	n = lnx_rails_pack(r, payload + LNX_ADDR_BYTES);
	cr_assert(n > 0);
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, payload,
		  LNX_ADDR_BYTES + (size_t)n);
	fake_passes(&f, 4);
}

/* Our last hello on any rail: its list, with n 0 if there was none.  Counts the
 * hellos. */
static struct lnx_rails our_hello(unsigned *count)
{
	struct lnx_rails r = { .n = 0 };
	struct fake_sent *s;
	unsigned i;

	*count = 0;
	for (i = 0; i < f.lnx->nrail; i++) {
		struct fake_core *core =
			lnx_container_of(f.lnx->rail[i]->fabric,
					 struct fake_core, fabric);

		while ((s = fake_take(core))) {
			if (lnx_wire_kind_sequenced(s->h.kind) &&
			    s->h.seq == p.got)
				p.got++;
			if (s->h.kind == LNX_KIND_HELLO) {
				++*count;
				r.n = 0;
				if (s->len > HDR + LNX_ADDR_BYTES)
					cr_assert_eq(lnx_rails_unpack(&r,
						s->bytes + HDR + LNX_ADDR_BYTES,
						s->len - HDR - LNX_ADDR_BYTES),
						0);
			}
			free(s);
		}
	}
	return r;
}

static void send_one(void)
{
	static char byte;
	struct fi_cq_tagged_entry e;

	cr_assert_eq(fi_tsend(f.ep, &byte, 1, NULL, p.addr, 5, NULL), 0);
	fake_passes(&f, 4);
	while (fi_cq_read(f.cq, &e, 1) == 1)
		;
}

/* ---- more than an address has room for ---- */

BOTH(all_rails_of_the_peer_get_a_path)
{
	struct lnx_rails r;
	struct lnx_peer *peer;
	unsigned i;

	open_peer(kind, 4, 1);
	send_one();
	peer = inside();
	cr_assert_eq(view_stripe(peer), 0xfu, "all of ours lead to its only one");
	fake_close(&f);

	open_peer(kind, 4, 2);
	r = rails_of(4, 6000);
	hello(&r);
	peer = inside();
	cr_assert(view_npath(peer) >= 4);
	for (i = 0; i < 4; i++) {
		unsigned k, n = 0;

		for (k = 0; k < view_npath(peer); k++)
			n += view_remote(view_path(peer, k)) == i &&
			     (shared(peer) >> k & 1);
		cr_expect(n, "remote rail %u is not used", i);
	}
	for (i = 0; i < view_npath(peer); i++)
		cr_expect_eq(view_index(view_path(peer, i)), i);
	fake_close(&f);
}

/* Without discovery only what the address lists; at the ports where the hello says. */
BOTH(rails_of_the_address_only)
{
	struct fake_core *core;
	struct lnx_peer *peer;
	struct sockaddr_in in;
	struct lnx_rails r;
	unsigned i;

	fake_conf.discovery = false;
	fake_conf.poll_idle = 1;
	open_peer(kind, 3, 1);
	r = rails_of(4, 6000);
	hello(&r);
	send_one();
	our_hello(&i);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	peer = inside();
	cr_assert_eq(view_npath(peer), 3u);
	nopen = 4;
	appears(7);
	for (i = 0; i < 2; i++) {
		fake_after_ms(&f, 200);
		send_one();
	}
	fake_after_ms(&f, 200);
	cr_expect_eq(view_npath(peer), 4u, "to the same rail, from the new one");
	for (i = 0; i < view_npath(peer); i++) {
		const struct lnx_path *path = view_path(peer, i);

		cr_expect_eq(view_remote(path), 0u);
		core = lnx_container_of(view_rail(path)->fabric,
					struct fake_core, fabric);
		memcpy(&in, core->av_name[view_core_addr(path)], sizeof(in));
		cr_expect_eq(ntohs(in.sin_port), 6000u);
	}
	/* Switched on, all is used that the peer has said. */
	((struct lnx_conf *)f.lnx->conf)->discovery = true;
	lnx_lock(&f.lnx->lock);
	lnx_peers_extend(f.lnx);
	lnx_unlock(&f.lnx->lock);
	for (i = 0; i < 4; i++) {
		unsigned k;

		for (k = 0; k < view_npath(peer); k++)
			if (view_remote(view_path(peer, k)) == i)
				break;
		cr_expect_lt(k, view_npath(peer), "rail %u", i);
	}
	fake_close(&f);
}

/* A sender that is in no address vector has no other list. */
BOTH(all_rails_of_an_unsolicited_peer)
{
	struct lnx_rails r;

	fake_conf.discovery = false;
	open_peer(kind, 2, 1);
	cr_assert_eq(fi_av_remove(f.av, &p.addr, 1, 0), 0);
	r = rails_of(2, 6000);
	hello(&r);
	cr_expect_gt(view_npath(inside()), 1u);
	fake_close(&f);
}

/* Paths that are known and used do not change. */
BOTH(paths_keep_their_numbers)
{
	struct lnx_rails r;
	const struct lnx_rail *rail;
	struct lnx_peer *peer;
	struct lnx_path *first;
	fi_addr_t addr;
	unsigned remote;

	open_peer(kind, 2, 1);
	r = rails_of(1, 6000);
	hello(&r);
	send_one();
	peer = inside();
	first = view_path(peer, 0);
	rail = view_rail(first);
	addr = view_core_addr(first);
	remote = view_remote(first);
	r = rails_of(2, 6000);
	hello(&r);
	first = view_path(peer, 0);
	cr_expect_eq(view_rail(first), rail);
	cr_expect_eq(view_core_addr(first), addr);
	cr_expect_eq(view_remote(first), remote);
	cr_expect(view_npath(peer) > 1);
	/* The same list again changes nothing. */
	{
		unsigned n = view_npath(peer), in = f.core[0]->nav_in +
					       f.core[1]->nav_in;

		hello(&r);
		hello(&r);
		cr_expect_eq(view_npath(peer), n);
		cr_expect_eq(f.core[0]->nav_in + f.core[1]->nav_in, in);
	}
	fake_close(&f);
}

/* Rails reopened on another port, also those that no address lists. */
BOTH(new_addresses_of_unlisted_rails)
{
	struct lnx_rails r;
	struct lnx_peer *peer;
	fi_addr_t old[LNX_PATHS_MAX];
	unsigned i, n;

	open_peer(kind, 2, 1);
	r = rails_of(2, 6000);
	hello(&r);
	peer = inside();
	n = view_npath(peer);
	for (i = 0; i < n; i++)
		old[i] = view_core_addr(view_path(peer, i));
	r = rails_of(2, 6100);
	r.rail[0] = rails_of(2, 6000).rail[0];
	hello(&r);
	cr_expect_eq(view_npath(peer), n);
	for (i = 0; i < n; i++)
		cr_expect_eq(view_core_addr(view_path(peer, i)) != old[i],
			     view_remote(view_path(peer, i)) == 1);
	cr_expect_eq(f.core[0]->nav_in + f.core[1]->nav_in, n,
		     "the old ones are forgotten");
	fake_close(&f);
}

BOTH(no_more_paths_than_there_is_room_for)
{
	struct lnx_rails r;
	unsigned i;

	open_peer(kind, 6, 1);
	r = rails_of(LNX_WIRE_RAILS_MAX, 6000);
	for (i = 0; i < 20; i++)
		hello(&r);
	cr_expect_eq(view_npath(inside()), LNX_PATHS_MAX);
	cr_expect(shared(inside()) != 0);
	fake_close(&f);

	fake_conf.max_rails = 3;
	open_peer(kind, 6, 1);
	hello(&r);
	cr_expect_eq(view_npath(inside()), 3, "FI_LNX_MAX_RAILS");
	fake_close(&f);
}

BOTH(hostile_lists)
{
	uint8_t payload[LNX_HELLO_BYTES + 8] = { 0 };
	struct lnx_rails r;
	uint64_t bad;
	unsigned npath;
	int n;

	open_peer(kind, 2, 1);
	send_one();
	npath = view_npath(inside());
	r = rails_of(2, 6000);
	memcpy(payload, p.blob, LNX_ADDR_BYTES);
	n = lnx_rails_pack(&r, payload + LNX_ADDR_BYTES);
	bad = f.lnx->stats.bad_frames;
	/* Truncated, and with an index twice. */
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, payload,
		  LNX_ADDR_BYTES + (size_t)n - 1);
	payload[LNX_ADDR_BYTES + 4 + 10] = 0;
	fake_next(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO }, payload,
		  LNX_ADDR_BYTES + (size_t)n);
	fake_passes(&f, 4);
	cr_expect_eq(f.lnx->stats.bad_frames, bad + 2);
	cr_expect_eq(view_npath(inside()), npath);
	/* Rails of a kind that we do not have, and of another network. */
	r.rail[0].prov = r.rail[1].prov = LNX_PROV_SOCKETS;
	hello(&r);
	cr_expect_eq(view_npath(inside()), npath);
	r = rails_of(2, 6000);
	r.rail[1].group++;
	hello(&r);
	cr_expect_eq(view_npath(inside()), npath, "only used without another one");
	fake_close(&f);
}

/* What a path delivered while it was the only one is also counted afterwards. */
BOTH(second_path_in_the_middle)
{
	struct lnx_path *first;
	struct lnx_peer *peer;
	struct lnx_rails r;
	unsigned i, count;

	open_peer(kind, 1, 1);
	for (i = 0; i < 5; i++)
		send_one();
	peer = inside();
	cr_assert_eq(view_npath(peer), 1u);
	our_hello(&count);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	cr_assert_eq(view_acked(peer), view_posted(peer));
	for (i = 0; i < 3; i++)
		send_one();
	fake_passes(&f, 4);
	cr_assert_neq(view_unacked_bytes(peer), 0u);
	r = rails_of(2, 6000);
	hello(&r);
	cr_assert_eq(view_npath(peer), 2u);
	first = view_path(peer, 0);
	cr_expect_eq(view_sent(first) - view_delivered(first),
		     view_unacked_bytes(peer));
	cr_expect_eq(view_reported(first), view_delivered(first));
	fake_close(&f);
}

/* The peer only sends: it learns of our rails from nothing else. */
BOTH(more_rails_are_announced)
{
	struct lnx_rails all;
	unsigned count, i;

	open_peer(kind, 6, 4);
	cr_assert(view_address_is_short(f.lnx));
	fake_hello(&f, &p);
	fake_passes(&f, 8);
	all = our_hello(&count);
	cr_expect_eq(count, 1);
	cr_expect_eq(all.n, 6);
	for (i = 0; i < all.n; i++)
		cr_expect_eq(all.place[i], i);
	for (i = 0; i < 6; i++)
		cr_expect_eq(f.lnx->rail[i]->wire_index, i);
	fake_close(&f);

	open_peer(kind, 4, 4);
	cr_assert(!view_address_is_short(f.lnx));
	fake_hello(&f, &p);
	fake_passes(&f, 8);
	all = our_hello(&count);
	cr_expect_eq(count, 1);
	cr_expect_eq(all.n, 0);
	fake_close(&f);
}

/* ---- more while it is open ---- */

BOTH(an_interface_that_appears_is_used)
{
	uint8_t address[LNX_ADDR_BYTES];
	struct lnx_peer *peer;
	struct lnx_rails r;
	unsigned count;

	fake_conf.poll_idle = 1;
	/* Two rails at first, so that links are watched. */
	open_peer(kind, 2, 2);
	cr_assert_not_null(watch);
	memcpy(address, view_address(f.lnx), sizeof(address));
	r = rails_of(3, 6000);
	hello(&r);
	send_one();
	our_hello(&count);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	peer = inside();
	cr_expect_eq(f.lnx->nrail, 2);

	nopen = 3;
	fake_after_ms(&f, 200);
	send_one();
	cr_expect_eq(f.lnx->nrail, 2, "there was no event");
	appears(9);
	fake_after_ms(&f, 200);
	send_one();
	fake_after_ms(&f, 200);
	cr_assert_eq(f.lnx->nrail, 3);
	cr_expect_eq(f.lnx->nnet, 3);
	cr_expect_eq(f.lnx->stats.rails_added, 1);
	cr_expect_eq(f.lnx->rail[2]->wire_index, 2);
	cr_expect_neq(memcmp(address, view_address(f.lnx), sizeof(address)), 0,
		      "there is room for it in the address");
	cr_expect_eq(view_rail(view_path(peer, view_npath(peer) - 1)), f.lnx->rail[2]);
	cr_expect(shared_over(peer, f.lnx->rail[2]), "it is used");
	our_hello(&count);
	cr_expect_eq(count, 1, "the peer is told");
	fake_close(&f);
}

/* With two rails; the third one appears later. */
static void open_and_grow(enum lnx_rail_kind kind)
{
	struct lnx_rails r;
	unsigned count;

	fake_conf.poll_idle = 1;
	open_peer(kind, 2, 2);
	r = rails_of(3, 6000);
	hello(&r);
	send_one();
	our_hello(&count);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	cr_expect_gt(lnx_bits(shared(inside())), 1u);
	nopen = 3;
	appears(9);
	fake_after_ms(&f, 200);
	send_one();
	fake_after_ms(&f, 200);
	cr_assert_eq(f.lnx->nrail, 3);
}

/* A rule that waits for a rail counts when that appears. */
BOTH(rules_before_the_rail)
{
	struct lnx_peer *peer;
	unsigned i;

	elsewhere = true;
	fake_conf.udsp = kind == LNX_RAIL_PLAIN ? "src: 127.0.2.1@tcp" :
						  "src: 127.0.2.1@tcp;ofi_rxm";
	open_and_grow(kind);
	peer = inside();
	cr_expect(shared_over(peer, f.lnx->rail[2]));
	for (i = 0; i < view_npath(peer); i++)
		cr_expect(view_rail(view_path(peer, i)) == f.lnx->rail[2] ||
			  !(shared(peer) >> i & 1), "path %u over another rail", i);
	fake_close(&f);
}

static bool wakes(struct lnx_wait *wait)
{
	struct pollfd pfd = { .events = POLLIN };

	cr_assert_eq(lnx_wait_control(wait, FI_GETWAIT, &pfd.fd), 0);
	return poll(&pfd, 1, 0) == 1;
}

/* A process that slept before the rail came is woken by it, too. */
BOTH(a_rail_that_comes_wakes_sleepers)
{
	struct lnx_wait *wait;
	uint64_t n = 1;

	fake_conf.poll_idle = 1;
	open_peer(kind, 2, 2);
	send_one();
	cr_assert_eq(lnx_wait_open(FI_WAIT_FD, &wait), 0);
	force_sleeper(f.lnx, wait);
	nwoken = 0;
	come_fd = eventfd(0, EFD_NONBLOCK);
	cr_assert_geq(come_fd, 0);
	nopen = 3;
	appears(9);
	fake_after_ms(&f, 200);
	send_one();
	fake_after_ms(&f, 200);
	cr_assert_eq(f.lnx->nrail, 3);
	cr_expect_eq(nwoken, 1);
	cr_expect_eq(woken_by[0], come_fd);
	cr_expect_not(wakes(wait));
	cr_assert_eq(write(come_fd, &n, sizeof(n)), sizeof(n));
	cr_expect(wakes(wait));

	lnx_rails_wait_del(f.lnx, come_fd);
	cr_expect_eq(nwoken, 0);
	cr_expect_not(wakes(wait), "it is not watched any more");
	force_sleeper(f.lnx, NULL);
	f.lnx->rail[2]->wait_fd = -1;
	lnx_wait_close(wait);
	close(come_fd);
	come_fd = -1;
	fake_close(&f);
}

BOTH(devices_of_rails_are_watched)
{
	struct fi_device_attr attr = { .name = (char *)"mlx5_7" };
	struct fid_nic nic = { .device_attr = &attr };
	unsigned nrail, n, before;
	int fd[LNX_FDS_MAX];

	open_peer(kind, 2, 2);
	cr_expect_eq(asked_for[0], '\0', "cores without a device are not watched");
	before = lnx_rails_fds(f.lnx, fd, &nrail);
	lnx_links_close(f.lnx);
	f.lnx->rail[1]->info->nic = &nic;
	lnx_links_open(f.lnx);
	cr_expect_str_eq(asked_for, "mlx5_7");
	cr_expect_eq(asked_port, 0, "the port is not known");
	cr_assert_not_null(f.lnx->rail[1]->devwatch);
	cr_expect_null(f.lnx->rail[0]->devwatch);
	n = lnx_rails_fds(f.lnx, fd, &nrail);
	cr_expect_eq(n, before + 1, "it wakes a sleeping process");
	cr_expect_eq(fd[n - 1], lnx_netwatch_fd(f.lnx->rail[1]->devwatch));
	f.lnx->rail[1]->info->nic = NULL;
	lnx_links_close(f.lnx);
	cr_expect_null(f.lnx->rail[1]->devwatch);
	fake_close(&f);
}

/* Cores are not queried at each event when interfaces come and go quickly. */
BOTH(a_flood_of_interfaces)
{
	unsigned i, before;

	open_peer(kind, 2, 2);
	send_one();
	before = ngrow;
	for (i = 0; i < 200; i++) {
		fake_watch_link(watch, 7 + i % 5, "new", i & 1);
		fake_after_ms(&f, 1);
	}
	send_one();
	fake_after_ms(&f, 10);
	cr_expect(ngrow > before);
	cr_expect(ngrow - before <= 5, "%u times in 0.2 s", ngrow - before);
	fake_close(&f);
}

BOTH(no_more_rails_than_there_is_room_for)
{
	unsigned i;

	open_peer(kind, 2, 2);
	send_one();
	nopen = 1000;
	for (i = 0; i < 3; i++) {
		appears(9);
		send_one();
		fake_after_ms(&f, 200);
	}
	cr_expect_eq(f.lnx->nrail, LNX_RAILS_MAX);
	cr_expect(view_npath(inside()) <= LNX_PATHS_MAX);
	fake_close(&f);
}

/* A rail that cannot be opened is left out, and nothing else is affected. */
BOTH(a_rail_that_cannot_be_opened)
{
	unsigned count;

	open_peer(kind, 2, 2);
	send_one();
	our_hello(&count);
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	nopen = 3;
	refused = true;
	appears(9);
	send_one();
	fake_after_ms(&f, 200);
	send_one();
	cr_expect_eq(f.lnx->nrail, 2);
	cr_expect_eq(f.lnx->stats.rails_added, 0);
	our_hello(&count);
	cr_expect_eq(count, 0);
	fake_close(&f);
}
