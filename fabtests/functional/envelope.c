/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end behind a gateway, without lnx: an endpoint of a core provider that sends and
 * receives frames in envelopes, for fabtests/functional/check-lnxrtd.  It reads commands
 * from standard input and answers each with a line:
 *
 *	address				-> PROVIDER:ADDRESS:PORT#GROUP
 *	peer NAME PROVIDER:ADDRESS:PORT#GROUP	an address for the commands below
 *	gateway NAME			what frames are sent to
 *	hello				announces itself -> "account N grant L S flags F"
 *	send NAME N LEN [HOPS] [KEY]	n frames, numbered, of LEN bytes -> "sent N"
 *	receive N MS			until N frames have come, MS milliseconds are over,
 *					or another command comes
 *					-> "got N order ok|BAD hops H via ID notes M"
 *	notes MS			-> the reasons of notes that have come, and counts
 *	note MS				waits for a note to what was sent last -> "ttl after N us"
 *	ask NAME			-> "tell alive"
 *	flood NAME LEN MS		for MS milliseconds, or until another command comes, as
 *					many as the gateway takes, with pauses; waits until the
 *					core has none of them -> "flooded N"
 *	attack NAME SEED MS		the same time, whatever a gateway should not suffer from:
 *					bytes at random, envelopes with mistakes, hellos of
 *					ends that there are not, other accounts than its own,
 *					ports at random of NAME's host -> "attacked N"
 *	names MS			the same time hellos of as many ends that there are not as
 *					the core takes, at its own address -> "named N"
 *	id				-> its id
 *	as ID				from now on all in the name of ID
 *	say NAME ACCOUNT NONCE		a hello as if it were where NAME is (self: itself)
 *	heard MS			-> the infos that came since this was asked last: "account A
 *					nonces N...", or "nothing"
 *	only ID				count frames of that source only
 *	news ID NONCE FLAGS		an info in the name of the gateway ID
 *	noted ID ACCOUNT NAME		a note in the name of the gateway ID: NAME refuses
 *	told ID NONCE NAME		an answer in the name of the gateway ID: NAME refuses
 *	lie NAME ID LEN			a frame that the gateway ID has forwarded last
 *	quit
 *
 * usage: envelope PROVIDER INTERFACE
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/route.h"

#define RECVS	64
#define PEERS	8
#define BYTES	LNX_FRAME_LARGE
#define FLOOD_PAUSE_MS	20
#define FLOOD_MOST	64	/* that the core has at a time: what is sent next must not wait for long */
#define FLOOD_END_MS	60000
#define NONCES	32

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static uint8_t *recv_buf[RECVS], send_buf[BYTES], flood_buf[BYTES];
static unsigned flooding;		/* frames of a flood that the core has */
static struct lnx_addr_rail own;
static uint64_t own_id, key, only;	/* only: of one source; 0: of all */
static uint16_t account;

static struct peer {
	char name[16];
	struct lnx_addr_rail addr;
	fi_addr_t fi;
	uint32_t seq;
} peers[PEERS];
static unsigned npeer;
static struct peer *gateway;

/* What has come. */
static unsigned got, notes[LNX_NOTE_MAX], note_frames, hops_seen;
static bool in_order = true, told, informed, noted;
static uint64_t sent_ns, noted_ns;	/* begun to send; the first note since then */
static unsigned first_reason;		/* of that */
static uint64_t via_seen;
static struct { uint64_t src; uint32_t next; } from[64];
static struct lnx_gw_info gw_info;
static uint32_t nonces[NONCES];		/* of infos, since heard was asked last */
static unsigned nnonce;
static struct lnx_gw_ask answer;
static bool sending;
static bool careless;			/* it attacks: what comes may be anything */
static int send_err;

static void __attribute__((noreturn)) die(const char *what, long err)
{
	printf("error %s: %s\n", what, fi_strerror((int)-err));
	exit(1);
}

static void must(const char *what, long ret)
{
	if (ret)
		die(what, ret);
}

/* ---- addresses ---- */

static void print_addr(const struct lnx_addr_rail *a)
{
	struct sockaddr_in in;
	char text[64];

	memcpy(&in, a->raw, sizeof(in));
	inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
	printf("%u:%s:%u#%u\n", a->prov, text, ntohs(in.sin_port), a->group);
}

static bool parse_addr(const char *text, struct lnx_addr_rail *a)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	unsigned prov, port, group;
	char ip[64];

	if (sscanf(text, "%u:%63[^:]:%u#%u", &prov, ip, &port, &group) != 4 ||
	    inet_pton(AF_INET, ip, &in.sin_addr) != 1)
		return false;
	in.sin_port = htons((uint16_t)port);
	*a = (struct lnx_addr_rail){ .prov = (uint8_t)prov, .group = (uint16_t)group,
				     .rawlen = sizeof(in) };
	memcpy(a->raw, &in, sizeof(in));
	return true;
}

static struct peer *find(const char *name)
{
	unsigned i;

	for (i = 0; i < npeer; i++)
		if (!strcmp(peers[i].name, name))
			return &peers[i];
	return NULL;
}

/* ---- the endpoint ---- */

static void post(unsigned i)
{
	must("fi_recv", fi_recv(ep, recv_buf[i], BYTES, NULL, FI_ADDR_UNSPEC,
				(void *)(uintptr_t)(i + 1)));
}

static void open_all(const char *prov, const char *interface)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo(), *list, *i;
	size_t len = sizeof(own.raw);
	unsigned k;

	hints->fabric_attr->prov_name = strdup(prov);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	must("fi_getinfo", fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints, &list));
	for (i = list; i; i = i->next)
		if (!strcasecmp(i->fabric_attr->prov_name, prov) &&
		    !strcmp(i->domain_attr->name, interface) &&
		    ((struct sockaddr *)i->src_addr)->sa_family == AF_INET)
			break;
	if (!i)
		die("no such interface", -FI_ENODATA);
	info = fi_dupinfo(i);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(ep));
	must("fi_getname", fi_getname(&ep->fid, own.raw, &len));
	own.rawlen = (uint8_t)len;
	own.prov = lnx_addr_prov_id(prov);
	own.group = lnx_addr_group(own.prov, info->fabric_attr->name);
	for (k = 0; k < RECVS; k++) {
		recv_buf[k] = malloc(BYTES);
		post(k);
	}
}

/* ---- what comes ---- */

static void take_frame(const uint8_t *bytes, size_t len)
{
	struct lnx_route_env e;
	struct lnx_wire_hdr h;
	const char *why;
	uint32_t seq, i;

	if (lnx_route_get(&e, bytes, len, &why)) {
		printf("error envelope: %s\n", why);
		exit(1);
	}
	memcpy(&h, bytes + 64, sizeof(h));
	if (only && le64toh(h.src) != only)
		return;
	seq = le32toh(h.seq);
	for (i = 0; i < 64 && from[i].src && from[i].src != h.src; i++)
		;
	if (i == 64)
		die("too many sources", -FI_ENOSPC);
	from[i].src = h.src;
	/* Some may be missing; none may come late or twice, and none changed. */
	in_order &= seq >= from[i].next && e.rail.rawlen == own.rawlen &&
		    !memcmp(e.rail.raw, own.raw, own.rawlen);
	for (size_t k = 128; k < len; k++)
		in_order &= bytes[k] == (uint8_t)(seq + k);
	from[i].next = seq + 1;
	hops_seen = e.hops_done;
	via_seen = e.via;
	got++;
}

static void take(const uint8_t *bytes, size_t len)
{
	struct lnx_route_note n;

	if (careless)
		return;
	switch (lnx_route_kind(bytes, len)) {
	case LNX_ROUTE_FRAME:
		take_frame(bytes, len);
		break;
	case LNX_ROUTE_NOTE:
		if (lnx_route_note_get(&n, bytes, len, NULL))
			die("note", -FI_EINVAL);
		if (!noted) {
			noted_ns = lnx_clock_ns();
			first_reason = n.reason;
		}
		noted = true;
		notes[n.reason]++;
		note_frames += n.count;
		break;
	case LNX_ROUTE_GW_INFO:
		if (lnx_wire_gw_info_get(&gw_info, bytes, len, NULL))
			die("info", -FI_EINVAL);
		account = gw_info.gw.account;
		informed = true;
		nonces[nnonce++ % NONCES] = gw_info.gw.nonce;
		break;
	case LNX_ROUTE_GW_TELL:
		if (lnx_wire_gw_ask_get(&answer, bytes, len, NULL))
			die("tell", -FI_EINVAL);
		told = true;
		break;
	default:
		die("what is this", -FI_EINVAL);
	}
}

/* Does a command wait, or come within so many ms? */
static bool commanded(int ms)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, ms) > 0;
}

/* False: nothing has come. */
static bool progress(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_msg_entry e[16];
	ssize_t n = fi_cq_read(cq, e, 16), i;

	if (n == -FI_EAVAIL) {
		if (fi_cq_readerr(cq, &err, 0) != 1)
			return true;
		if (err.op_context == flood_buf) {
			flooding--;
		} else if (!err.op_context) {
			sending = false;
			send_err = err.err;
		}
		return true;
	}
	for (i = 0; i < n; i++) {
		unsigned at = (unsigned)(uintptr_t)e[i].op_context;

		if (e[i].op_context == flood_buf) {
			flooding--;
			continue;
		}
		if (!at) {
			sending = false;
			continue;
		}
		take(recv_buf[at - 1], e[i].len);
		post(at - 1);
	}
	return n > 0;
}

static void wait_until(uint64_t deadline, const bool *flag)
{
	while (!*flag && lnx_clock_ns() < deadline)
		if (!progress())
			usleep(100);
}

/* 0, or what the core says. */
static int send_it(size_t len, unsigned ms)
{
	uint64_t deadline = lnx_clock_ns() + ms * LNX_NS_PER_MS;
	ssize_t ret;

	send_err = 0;
	sending = true;
	do {
		ret = fi_send(ep, send_buf, len, NULL, gateway->fi, NULL);
		if (ret)
			progress();
	} while (ret == -FI_EAGAIN && lnx_clock_ns() < deadline);
	if (ret)
		return (int)-ret;
	while (sending && lnx_clock_ns() < deadline)
		progress();
	return sending ? FI_ETIMEDOUT : send_err;
}

/* ---- commands ---- */

static void do_send(struct peer *to, unsigned n, unsigned len, unsigned hops,
		    uint64_t with_key)
{
	struct lnx_route_env e = { .hops_left = (uint8_t)hops, .len = len - 64,
				   .account = account, .key = with_key,
				   .rail = to->addr };
	unsigned i, failed = 0;
	size_t k;

	noted = false;
	sent_ns = lnx_clock_ns();
	for (i = 0; i < n; i++) {
		struct lnx_hdr h = { .kind = LNX_KIND_TAG, .src = own_id, .dst = 1,
				     .seq = to->seq, .len = len - 128 };
		struct lnx_wire_hdr w;

		if (lnx_route_put(send_buf, &e) < 0)
			die("lnx_route_put", -FI_EINVAL);
		lnx_hdr_put(&w, &h);
		memcpy(send_buf + 64, &w, sizeof(w));
		for (k = 128; k < len; k++)
			send_buf[k] = (uint8_t)(to->seq + k);
		to->seq++;
		failed += send_it(len, 5000) != 0;
	}
	printf("sent %u failed %u\n", n - failed, failed);
}

static void fill(const struct peer *to, unsigned len, uint32_t seq)
{
	struct lnx_route_env e = { .hops_left = 8, .len = len - 64, .account = account,
				   .key = key, .rail = to->addr };
	struct lnx_hdr h = { .kind = LNX_KIND_TAG, .src = own_id, .dst = 1, .seq = seq,
			     .len = len - 128 };
	struct lnx_wire_hdr w;

	if (lnx_route_put(send_buf, &e) < 0)
		die("lnx_route_put", -FI_EINVAL);
	lnx_hdr_put(&w, &h);
	memcpy(send_buf + 64, &w, sizeof(w));
}

/* All its frames have one number: whether they arrive does not matter. */
static void do_flood(struct peer *to, unsigned len, unsigned ms)
{
	uint64_t deadline = lnx_clock_ns() + ms * LNX_NS_PER_MS;
	unsigned n = 0, burst;

	fill(to, len, to->seq++);
	/* What is sent later has send_buf while the core still has these. */
	memcpy(flood_buf, send_buf, len);
	/* Many of these share few processors with what is measured. */
	while (lnx_clock_ns() < deadline && !commanded(FLOOD_PAUSE_MS)) {
		for (burst = 0; burst < 4 && flooding < FLOOD_MOST; burst++)
			if (!fi_send(ep, flood_buf, len, NULL, gateway->fi, flood_buf)) {
				flooding++;
				n++;
			}
		while (progress())
			;
	}
	deadline = lnx_clock_ns() + FLOOD_END_MS * LNX_NS_PER_MS;
	while (flooding && lnx_clock_ns() < deadline)
		if (!progress())
			usleep(1000);
	printf("flooded %u\n", n);
}

/* ---- what is hostile ---- */

static uint64_t rnd_state;

static uint32_t rnd(uint32_t n)
{
	rnd_state = lnx_mix64(rnd_state + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(rnd_state >> 32) % n;
}

/* ofi_rxm of libfabric 2.1 ends its process if a connection ends within what it sends in segments. */
static size_t any_bytes(void)
{
	size_t len = 1 + rnd(rnd(8) ? 512 : own.prov == LNX_PROV_TCP ? BYTES : 8192), i;

	for (i = 0; i < len; i++)
		send_buf[i] = (uint8_t)rnd(256);
	return len;
}

/* A frame with mistakes: bits, its length, or the length that it says. */
static size_t wrong_frame(const struct peer *to)
{
	size_t len = 128 + rnd(8192);

	fill(to, (unsigned)len, rnd(1000));
	if (rnd(2))
		send_buf[rnd(128)] ^= (uint8_t)(1u << rnd(8));
	return rnd(2) ? len : 1 + rnd((uint32_t)len + 100);
}

/* To a port of the host that may be anything, in the name of anyone. */
static size_t frame_to_any_port(const struct peer *to)
{
	struct peer other = *to;
	struct sockaddr_in in;

	memcpy(&in, other.addr.raw, sizeof(in));
	in.sin_port = htons((uint16_t)(1 + rnd(65535)));
	memcpy(other.addr.raw, &in, sizeof(in));
	account = (uint16_t)rnd(rnd(2) ? 16 : 65536);
	fill(&other, 128 + rnd(256), rnd(1000));
	return 128;
}

static size_t made_up_hello(void)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 1, .id = rnd_state | 1, .key = key,
				  .account = (uint16_t)rnd(65536), .nonce = rnd(1000) };
	struct sockaddr_in in;
	int len;

	h.rails.n = 1;
	h.rails.rail[0] = own;
	memcpy(&in, own.raw, sizeof(in));
	in.sin_port = htons((uint16_t)(1024 + rnd(60000)));
	if (rnd(2))
		memcpy(h.rails.rail[0].raw, &in, sizeof(in));
	len = lnx_wire_gw_hello_put(send_buf, sizeof(send_buf), &h);
	return len < 0 ? 1 : (size_t)len;
}

static size_t question(const struct peer *to)
{
	struct lnx_gw_ask a = { .id = rnd(4) ? own_id : rnd_state, .key = key,
				.nonce = rnd(1000), .account = account, .rail = to->addr };
	int len = lnx_wire_gw_ask_put(send_buf, &a);

	return len < 0 ? 1 : (size_t)len;
}

static size_t hostile(const struct peer *to)
{
	switch (rnd(5)) {
	case 0:
		return any_bytes();
	case 1:
		return wrong_frame(to);
	case 2:
		return frame_to_any_port(to);
	case 3:
		return made_up_hello();
	default:
		return question(to);
	}
}

static void do_attack(const struct peer *to, uint64_t seed, unsigned ms)
{
	uint64_t deadline = lnx_clock_ns() + ms * LNX_NS_PER_MS;
	unsigned n = 0, i;

	rnd_state = seed;
	careless = true;
	while (lnx_clock_ns() < deadline && !commanded(0)) {
		for (i = 0; i < 64; i++) {
			size_t len = hostile(to);

			/* What the core has not sent yet changes: so much the better. */
			n += !fi_send(ep, send_buf, len, NULL, gateway->fi, NULL);
		}
		progress();
	}
	printf("attacked %u\n", n);
}

static struct lnx_gw_hello hello_of(const struct lnx_addr_rail *where, uint16_t with, uint32_t nonce)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 1, .id = own_id, .key = key,
				  .account = with, .nonce = nonce };

	h.rails.n = 1;
	h.rails.rail[0] = *where;
	return h;
}

/* len bytes of send_buf, or what went wrong before. */
static void say_it(int len)
{
	if (len < 0 || send_it((size_t)len, 5000))
		printf("error nothing is sent: %d, %s\n", len, fi_strerror(send_err));
	else
		printf("ok\n");
}

static void do_say(const struct lnx_addr_rail *where, uint16_t with, uint32_t nonce)
{
	struct lnx_gw_hello h = hello_of(where, with, nonce);

	say_it(lnx_wire_gw_hello_put(send_buf, sizeof(send_buf), &h));
}

static void do_names(unsigned ms)
{
	uint64_t deadline = lnx_clock_ns() + ms * LNX_NS_PER_MS;
	unsigned n = 0, i;

	careless = true;
	rnd_state = lnx_clock_ns();
	while (lnx_clock_ns() < deadline && !commanded(0)) {
		for (i = 0; i < 64; i++) {
			struct lnx_gw_hello h = hello_of(&own, 0, 1 + rnd(1000));
			int len;

			h.id = rnd_state | 1;
			len = lnx_wire_gw_hello_put(send_buf, sizeof(send_buf), &h);
			n += len > 0 && !send_it((size_t)len, 1000);
		}
		progress();
	}
	printf("named %u\n", n);
}

static void do_heard(unsigned ms)
{
	bool never = false;
	unsigned i;

	if (!nnonce)
		informed = false;
	wait_until(lnx_clock_ns() + ms * LNX_NS_PER_MS, &informed);
	/* Those that come together. */
	wait_until(lnx_clock_ns() + ms * LNX_NS_PER_MS / 4, &never);
	if (nnonce)
		printf("account %u nonces", gw_info.gw.account);
	for (i = 0; i < LNX_MIN(nnonce, (unsigned)NONCES); i++)
		printf(" %u", nonces[i]);
	printf("%s\n", nnonce ? "" : "nothing");
	informed = false;
	nnonce = 0;
}

static void do_news(uint64_t id, uint32_t nonce, unsigned flags)
{
	struct lnx_gw_info i = { .large = 1, .small = 1, .frame_max = LNX_FRAME_LARGE, .hops = 1,
				 .state = { { true, 1000 } } };

	i.gw = hello_of(&own, 1, nonce);
	i.gw.id = id;
	i.gw.flags = (uint8_t)flags;
	say_it(lnx_wire_gw_info_put(send_buf, sizeof(send_buf), &i));
}

static void do_noted(uint64_t id, uint16_t with, const struct peer *of)
{
	struct lnx_route_note n = { .reason = LNX_NOTE_REFUSED, .account = with, .id = id,
				    .key = key, .count = 1, .rail = of->addr, .src = own_id,
				    .dst = 1, .hops_done = 1, .wait_ms = 1000 };

	say_it(lnx_route_note_put(send_buf, &n));
}

static void do_told(uint64_t id, uint32_t nonce, const struct peer *of)
{
	struct lnx_gw_ask t = { .tell = LNX_TELL_REFUSED, .id = id, .key = key, .nonce = nonce,
				.rail = of->addr };

	say_it(lnx_wire_gw_ask_put(send_buf, &t));
}

static void do_lie(const struct peer *to, uint64_t id, unsigned len)
{
	struct lnx_route_env e = { .hops_left = 7, .hops_done = 1, .via = id, .key = key,
				   .account = account, .len = len - 64, .rail = to->addr };

	fill(to, len, 1);
	say_it(lnx_route_put(send_buf, &e) < 0 ? -1 : (int)len);
}

static void do_hello(void)
{
	struct lnx_gw_hello h = { .oldest = 1, .newest = 1, .id = own_id, .key = key,
				  .account = account, .nonce = 12345 };
	int len;

	h.rails.n = 1;
	h.rails.rail[0] = own;
	len = lnx_wire_gw_hello_put(send_buf, sizeof(send_buf), &h);
	informed = false;
	if (len < 0 || send_it((size_t)len, 5000)) {
		printf("error hello\n");
		return;
	}
	wait_until(lnx_clock_ns() + 5 * LNX_NS_PER_S, &informed);
	if (informed)
		printf("account %u grant %u %u flags %u rails %u id %016llx\n", account,
		       gw_info.large, gw_info.small, gw_info.gw.flags,
		       gw_info.gw.rails.n, (unsigned long long)gw_info.gw.id);
	else
		printf("error no info\n");
}

static void do_receive(unsigned n, unsigned ms)
{
	uint64_t deadline = lnx_clock_ns() + ms * LNX_NS_PER_MS;
	unsigned sum = 0, i;

	while (got < n && lnx_clock_ns() < deadline)
		if (!progress() && commanded(1))
			break;
	for (i = 0; i < LNX_NOTE_MAX; i++)
		sum += notes[i];
	printf("got %u order %s hops %u via %016llx notes %u\n", got,
	       in_order ? "ok" : "BAD", hops_seen, (unsigned long long)via_seen, sum);
	got = 0;
}

static void do_notes(unsigned ms)
{
	bool never = false;
	unsigned i;

	wait_until(lnx_clock_ns() + ms * LNX_NS_PER_MS, &never);
	printf("frames %u", note_frames);
	for (i = 1; i < LNX_NOTE_MAX; i++)
		if (notes[i])
			printf(" %s", lnx_route_reason_name(i));
	printf("\n");
	memset(notes, 0, sizeof(notes));
	note_frames = 0;
}

static void do_note(unsigned ms)
{
	wait_until(lnx_clock_ns() + ms * LNX_NS_PER_MS, &noted);
	if (noted)
		printf("%s after %llu us\n", lnx_route_reason_name(first_reason),
		       (unsigned long long)lnx_ns_since(noted_ns, sent_ns) / 1000);
	else
		printf("nothing\n");
}

static void do_ask(const struct peer *to)
{
	struct lnx_gw_ask a = { .id = own_id, .key = key, .nonce = 77,
				.account = account, .rail = to->addr };
	int len = lnx_wire_gw_ask_put(send_buf, &a);

	told = false;
	if (len < 0 || send_it((size_t)len, 5000)) {
		printf("error ask\n");
		return;
	}
	wait_until(lnx_clock_ns() + 5 * LNX_NS_PER_S, &told);
	printf("tell %s\n", told ? lnx_route_tell_name(answer.tell) : "nothing");
}

static void add_peer(const char *name, const char *text)
{
	struct peer *p = find(name);
	struct lnx_addr_rail a;

	if (!p && npeer == PEERS)
		die("too many peers", -FI_ENOSPC);
	if (!parse_addr(text, &a))
		die("address", -FI_EINVAL);
	if (!p) {
		p = &peers[npeer++];
		snprintf(p->name, sizeof(p->name), "%s", name);
	}
	p->addr = a;
	if (fi_av_insert(av, a.raw, 1, &p->fi, 0, NULL) != 1)
		die("fi_av_insert", -FI_EINVAL);
	printf("ok\n");
}

static bool forgery(const char *line)
{
	char name[16] = "";
	unsigned n = 0, more = 0;
	unsigned long long id = 0;

	if (!strcmp(line, "id\n"))
		printf("%016llx\n", (unsigned long long)own_id);
	else if (sscanf(line, "as %llx", &id) == 1)
		printf("%016llx\n", (unsigned long long)(own_id = id));
	else if (sscanf(line, "only %llx", &id) == 1)
		printf("%016llx\n", (unsigned long long)(only = id));
	else if (sscanf(line, "names %u", &n) == 1)
		do_names(n);
	else if (sscanf(line, "heard %u", &n) == 1)
		do_heard(n);
	else if (sscanf(line, "say %15s %u %u", name, &n, &more) == 3 &&
		 (find(name) || !strcmp(name, "self")))
		do_say(find(name) ? &find(name)->addr : &own, (uint16_t)n, more);
	else if (sscanf(line, "news %llx %u %u", &id, &n, &more) == 3)
		do_news(id, n, more);
	else if (sscanf(line, "noted %llx %u %15s", &id, &n, name) == 3 && find(name))
		do_noted(id, (uint16_t)n, find(name));
	else if (sscanf(line, "told %llx %u %15s", &id, &n, name) == 3 && find(name))
		do_told(id, n, find(name));
	else if (sscanf(line, "lie %15s %llx %u", name, &id, &n) == 3 && find(name) && n >= 128 &&
		 n <= BYTES)
		do_lie(find(name), id, n);
	else
		return false;
	return true;
}

static bool command(char *line)
{
	char what[16] = "", name[16] = "", text[96] = "";
	unsigned n = 0, len = 0, hops = 8;
	unsigned long long with_key = key;

	sscanf(line, "%15s", what);
	if (!strcmp(what, "quit"))
		return false;
	if (!strcmp(what, "address"))
		print_addr(&own);
	else if (!strcmp(what, "peer") && sscanf(line, "%*s %15s %95s", name, text) == 2)
		add_peer(name, text);
	else if (!strcmp(what, "gateway") && sscanf(line, "%*s %15s", name) == 1)
		printf("%s\n", (gateway = find(name)) ? "ok" : "error no peer");
	else if (!strcmp(what, "key") && sscanf(line, "%*s %llx", &with_key) == 1)
		printf("ok %llx\n", (unsigned long long)(key = with_key));
	else if (!strcmp(what, "hello"))
		do_hello();
	else if (!strcmp(what, "send") &&
		 sscanf(line, "%*s %15s %u %u %u %llx", name, &n, &len, &hops,
			&with_key) >= 3 && find(name) && len >= 128 && len <= BYTES)
		do_send(find(name), n, len, hops, with_key);
	else if (!strcmp(what, "receive") && sscanf(line, "%*s %u %u", &n, &len) == 2)
		do_receive(n, len);
	else if (!strcmp(what, "notes") && sscanf(line, "%*s %u", &n) == 1)
		do_notes(n);
	else if (!strcmp(what, "note") && sscanf(line, "%*s %u", &n) == 1)
		do_note(n);
	else if (!strcmp(what, "ask") && sscanf(line, "%*s %15s", name) == 1 && find(name))
		do_ask(find(name));
	else if (!strcmp(what, "flood") &&
		 sscanf(line, "%*s %15s %u %u", name, &len, &n) == 3 && find(name) &&
		 len >= 128 && len <= BYTES)
		do_flood(find(name), len, n);
	else if (!strcmp(what, "attack") &&
		 sscanf(line, "%*s %15s %llu %u", name, &with_key, &n) == 3 && find(name))
		do_attack(find(name), with_key, n);
	else if (!forgery(line))
		printf("error command\n");
	return true;
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc != 3) {
		fprintf(stderr, "usage: envelope PROVIDER INTERFACE\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (getentropy(&own_id, sizeof(own_id)))
		return 1;
	open_all(argv[1], argv[2]);
	for (;;) {
		/* Connections need progress while nothing is asked for. */
		while (!commanded(1))
			progress();
		if (!fgets(line, sizeof(line), stdin) || !command(line))
			return 0;
	}
}
