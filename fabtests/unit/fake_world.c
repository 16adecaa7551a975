/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The world half of fake_core.h: an lnx endpoint on scripted cores, the peers
 * that it talks to, and the clock.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <time.h>
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_LSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_LSAN 1
#endif
#endif
#ifdef HAVE_LSAN
#include <sanitizer/lsan_interface.h>
#endif

#include "fake_inside.h"

#include "api/api.h"
#include "comp/comp.h"
#include "core/job_key.h"
#include "obj/mr.h"
#include "prov.h"

#define FAKE_GROUP	7

struct fi_provider lnx_prov = { .name = "lnx" };
struct lnx_conf fake_conf;
uint64_t fake_now_ns = 1000 * LNX_NS_PER_S;
const char *fake_file = "?";
int fake_line;

static bool conf_read;

static __attribute__((constructor)) void read_conf(void)
{
	lnx_conf_read(&fake_conf, NULL, NULL, NULL);
	/* Every pass polls every rail, and closing does not wait. */
	fake_conf.poll_idle = 1;
	fake_conf.linger = 10;
	/* Nothing listens at the addresses of its peers. */
	fake_conf.transaction_timeout = 3600000;
	fake_conf.rx_buffers = 16;
	/* Nothing outside of the test is changed. */
	fake_conf.state = false;
	fake_conf.health_board = false;
	conf_read = true;
}

const struct lnx_conf *lnx_global_config(void)
{
	return &fake_conf;
}

const struct lnx_config *fake_config;

const struct lnx_config *lnx_global_config_file(void)
{
	return fake_config;
}

const char *fake_config_error;

const char *lnx_global_config_error(void)
{
	return fake_config_error;
}

const char *lnx_global_job_rank(void)
{
	return "";
}

const char *lnx_global_job_id(void)
{
	return "";
}

const char *lnx_global_provider_filter(void)
{
	return NULL;
}

bool lnx_global_named_in_filter(void)
{
	return false;
}

/* With -Wl,--wrap=lnx_clock_ticks. */
uint64_t fake_ticks;
uint64_t __wrap_lnx_clock_ticks(void);
uint64_t __wrap_lnx_clock_ticks(void)
{
	return fake_ticks;
}

uint64_t fake_cost_ns = 1000;

/* With -Wl,--wrap=clock_gettime.  Time advances a little, so that no wait is
 * endless. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	static _Thread_local uint64_t cpu_ns;
	bool cpu = id == CLOCK_THREAD_CPUTIME_ID;
	uint64_t *ns = cpu ? &cpu_ns : &fake_now_ns;

	*ns += cpu ? fake_cost_ns : 1000;
	ts->tv_sec = (time_t)(*ns / LNX_NS_PER_S);
	ts->tv_nsec = (long)(*ns % LNX_NS_PER_S);
	return 0;
}

bool fake_separate, fake_one_group;

/* The network of the i-th rail. */
static unsigned network(unsigned i)
{
	return fake_separate ? i : 0;
}

static uint16_t group(unsigned i)
{
	return (uint16_t)(FAKE_GROUP + (fake_one_group ? 0 : network(i)));
}

static struct sockaddr_in name_of(unsigned port, unsigned net)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (net << 8)),
	};
}

int fake_own_name(const struct fake_core *core, void *addr, size_t *len)
{
	struct sockaddr_in in = name_of(core->port, core->network);

	FAKE_CHECK(*len >= sizeof(in));
	memcpy(addr, &in, sizeof(in));
	*len = sizeof(in);
	return 0;
}

/* ---- opening and closing ---- */

static const char *const kind_name[] = {
	[LNX_RAIL_DIRECT] = "direct", [LNX_RAIL_PEER] = "peer",
	[LNX_RAIL_PLAIN] = "plain",
};

static uint8_t kind_prov(enum lnx_rail_kind kind)
{
	return kind == LNX_RAIL_DIRECT ? LNX_PROV_SHM :
	       kind == LNX_RAIL_PEER ? LNX_PROV_TCP_RXM : LNX_PROV_TCP;
}

static struct fi_info *core_info(enum lnx_rail_kind kind, size_t inject_size, unsigned net)
{
	struct sockaddr_in in = name_of(0, net);
	struct fi_info *info = fi_allocinfo();

	FAKE_CHECK(info);
	info->fabric_attr->name = strdup(kind_name[kind]);
	info->domain_attr->name = strdup("fake");
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	info->tx_attr->iov_limit = LNX_IOV_MAX;
	info->tx_attr->inject_size =
		kind == LNX_RAIL_DIRECT ? 4096 : inject_size;
	if (kind != LNX_RAIL_DIRECT) {
		info->addr_format = FI_SOCKADDR_IN;
		info->src_addrlen = sizeof(in);
		info->src_addr = malloc(sizeof(in));
		FAKE_CHECK(info->src_addr);
		memcpy(info->src_addr, &in, sizeof(in));
	}
	return info;
}

static void add_rail(struct fake *f, enum lnx_rail_kind kind,
		     size_t inject_size)
{
	struct lnx_rail_spec *spec = &f->rails.rail[f->rails.nrail++];

	spec->kind = kind;
	strcpy(spec->prov, kind_name[kind]);
	strcpy(spec->dom, "fake");
	spec->prov_id = kind_prov(kind);
	spec->group = group(f->rails.nrail - 1);
	spec->info = core_info(kind, inject_size, network(f->rails.nrail - 1));
}

static void set_info(struct fake *f, const struct fake_opt *opt)
{
	struct fi_info *info = fi_allocinfo();

	FAKE_CHECK(info);
	info->caps = FI_MSG | FI_TAGGED | opt->caps;
	info->ep_attr->type = FI_EP_RDM;
	info->domain_attr->name = strdup("fake");
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->tx_attr->op_flags = opt->tx_op_flags;
	info->tx_attr->size = opt->tx_size;
	f->info = info;
}

void fake_open(struct fake *f, const struct fake_opt *opt)
{
	static const struct fake_opt plain = {
		.nrail = 1, .kind = { LNX_RAIL_PLAIN },
	};
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE,
	};
	unsigned i;

	FAKE_CHECK(conf_read);
	memset(f, 0, sizeof(*f));
	if (!opt || !opt->nrail) {
		static struct fake_opt copy;

		copy = opt ? *opt : plain;
		copy.nrail = 1;
		copy.kind[0] = LNX_RAIL_PLAIN;
		opt = &copy;
	}
	/* The core is compiled with these headers, whichever library is loaded. */
	FAKE_CHECK(!lnx_peer_abi_init(FI_VERSION(FI_MAJOR_VERSION,
						 FI_MINOR_VERSION)));
	strcpy(f->rails.name, "fake");
	for (i = 0; i < opt->nrail; i++)
		add_rail(f, opt->kind[i], opt->inject_size);
	set_info(f, opt);
	f->domain.fid.fid.fclass = FI_CLASS_DOMAIN;
	f->domain.fid.mr = &lnx_mr_ops;
	f->fabric.fid.api_version = FI_VERSION(FI_MAJOR_VERSION,
					       FI_MINOR_VERSION);
	f->domain.fabric = &f->fabric;
	f->domain.rails = &f->rails;
	f->domain.info = f->info;
	f->domain.threads = true;
	f->domain.host = 99;
	f->domain.mr_basic = opt->mr_basic;
	FAKE_CHECK(!lnx_mrs_init(&f->domain));
	FAKE_CHECK(!lnx_job_key_load(&fake_conf, &f->domain.job_key));

	FAKE_CHECK(!lnx_av_open(&f->domain.fid, &av_attr, &f->av, NULL));
	FAKE_CHECK(!lnx_cq_open(&f->domain.fid, &cq_attr, &f->cq, NULL));
	FAKE_CHECK(!lnx_ep_open(&f->domain.fid, f->info, &f->ep, NULL));
	FAKE_CHECK(!fi_ep_bind(f->ep, &f->av->fid, 0));
	FAKE_CHECK(!fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | opt->tx_bind));
	FAKE_CHECK(!fi_ep_bind(f->ep, &f->cq->fid, FI_RECV | opt->rx_bind));
	FAKE_CHECK(!fi_enable(f->ep));
	f->lnx = lnx_container_of(f->ep, struct lnx_ep, fid);
	FAKE_CHECK(f->lnx->nrail == opt->nrail);
	for (i = 0; i < opt->nrail; i++)
		f->core[i] = lnx_container_of(f->lnx->rail[i]->fabric,
					      struct fake_core, fabric);
}

void fake_close_quick(struct fake *f)
{
	unsigned i;

	if (f->ep)
		FAKE_CHECK(!fi_close(&f->ep->fid));
	FAKE_CHECK(!fi_close(&f->cq->fid));
	FAKE_CHECK(!fi_close(&f->av->fid));
	FAKE_CHECK(!f->domain.refs);
	lnx_mrs_fini(&f->domain);
	lnx_job_key_free(f->domain.job_key);
	free(f->domain.amo);
	for (i = 0; i < f->rails.nrail; i++)
		fi_freeinfo(f->rails.rail[i].info);
	fi_freeinfo(f->info);
	memset(f, 0, sizeof(*f));
}

void fake_close(struct fake *f)
{
	fake_close_quick(f);
#ifdef HAVE_LSAN
	FAKE_CHECK(!__lsan_do_recoverable_leak_check());
#endif
}

/* ---- progress and time ---- */

void fake_pass(struct fake *f)
{
	lnx_lock(&f->lnx->lock);
	lnx_ep_progress_all(f->lnx);
	lnx_unlock(&f->lnx->lock);
}

void fake_passes(struct fake *f, unsigned n)
{
	while (n--)
		fake_pass(f);
}

void fake_after_ms(struct fake *f, uint64_t ms)
{
	fake_now_ns += ms * LNX_NS_PER_MS;
	fake_passes(f, 4);
}

/* ---- peers ---- */

void fake_peer_init(struct fake *f, struct fake_peer *p, uint64_t eid)
{
	unsigned i;

	memset(p, 0, sizeof(*p));
	p->eid = eid;
	p->sid = eid;
	p->addr = FI_ADDR_NOTAVAIL;
	p->where.eid = eid;
	p->where.host = 1;
	for (i = 0; i < f->rails.nrail; i++) {
		struct lnx_addr_rail *r = &p->where.rail[p->where.nrail];
		struct sockaddr_in in = name_of(5000 + (unsigned)eid % 50000,
						network(i));

		if (f->rails.rail[i].kind == LNX_RAIL_DIRECT)
			continue;
		r->prov = f->rails.rail[i].prov_id;
		r->group = group(i);
		r->rawlen = sizeof(in);
		memcpy(r->raw, &in, sizeof(in));
		p->where.nrail++;
	}
	FAKE_CHECK(!lnx_addr_pack(&p->where, p->blob));
}

void fake_peer_insert(struct fake *f, struct fake_peer *p)
{
	FAKE_CHECK(fi_av_insert(f->av, p->blob, 1, &p->addr, 0, NULL) == 1);
}

/* The first rail that carries frames. */
static struct fake_core *net(const struct fake *f)
{
	unsigned i = 0;

	while (f->rails.rail[i].kind == LNX_RAIL_DIRECT)
		i++;
	return f->core[i];
}

/* A peer of the address vector need not say hello, for short. */
static void begin_session(struct fake *f, const struct fake_peer *p,
			  const struct lnx_hdr *h)
{
	struct lnx_peer *peer;

	if (h->kind == LNX_KIND_HELLO || h->kind == LNX_KIND_NO_SESSION ||
	    p->must_greet)
		return;
	peer = lnx_peer_by_eid(f->lnx, p->eid);
	if (peer && !view_rx_sid(peer))
		lnx_peer_pair(peer, p->sid, 1);
}

uint64_t fake_via;

/* A frame of len bytes arrives. */
static void arrive(struct fake_core *core, const void *frame, size_t len)
{
	static _Alignas(64) uint8_t with[LNX_ROUTE_HEAD + (1 << 17)];
	struct lnx_route_env env = {
		.hops_left = 7, .hops_done = 1, .via = fake_via, .len = (uint32_t)len,
		.rail = { .prov = LNX_PROV_TCP, .group = 1,
			  .rawlen = sizeof(struct sockaddr_in) },
	};
	struct sockaddr_in in = name_of(FAKE_PORT, 0);

	if (!fake_via) {
		fake_arrive(core, frame, len);
		return;
	}
	memcpy(env.rail.raw, &in, sizeof(in));
	FAKE_CHECK(lnx_route_put(with, &env) > 0);
	memcpy(with + LNX_ROUTE_HEAD, frame, len);
	fake_arrive(core, with, LNX_ROUTE_HEAD + len);
}

static void frame_on(struct fake *f, struct fake_peer *p,
		     struct fake_core *core, struct lnx_hdr h,
		     const void *payload, size_t len)
{
	static _Alignas(64) uint8_t frame[1 << 17];

	FAKE_CHECK(len <= sizeof(frame) - sizeof(struct lnx_wire_hdr));
	if (!h.src)
		h.src = p->sid;
	if (!h.dst)
		h.dst = f->lnx->eid;
	begin_session(f, p, &h);
	/* There it is the longest piece. */
	if (h.kind != LNX_KIND_PULL)
		h.ack = p->got;
	lnx_hdr_put((struct lnx_wire_hdr *)frame, &h);
	if (len)
		memcpy(frame + sizeof(struct lnx_wire_hdr), payload, len);
	arrive(core, frame, sizeof(struct lnx_wire_hdr) + len);
}

void fake_frame_on(struct fake *f, struct fake_peer *p, unsigned rail,
		   struct lnx_hdr h, const void *payload, size_t len)
{
	frame_on(f, p, f->core[rail], h, payload, len);
}

void fake_frame(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
		const void *payload, size_t len)
{
	frame_on(f, p, net(f), h, payload, len);
}

void fake_next(struct fake *f, struct fake_peer *p, struct lnx_hdr h,
	       const void *payload, size_t len)
{
	h.seq = p->seq++;
	fake_frame(f, p, h, payload, len);
}

void fake_hello(struct fake *f, struct fake_peer *p)
{
	fake_next(f, p, (struct lnx_hdr) { .kind = LNX_KIND_HELLO, .tag = 1 },
		  p->blob, sizeof(p->blob));
}

void fake_meet(struct fake *f, struct fake_peer *p)
{
	fake_hello(f, p);
	fake_pass(f);
	fake_after_ms(f, 1);
	fake_expect_drop(f, p, LNX_KIND_HELLO);
	fake_ack(f, p);
	fake_passes(f, 3);
	fake_expect_none(f);
}

void fake_tag(struct fake *f, struct fake_peer *p, uint64_t tag,
	      const void *buf, size_t len)
{
	fake_next(f, p, (struct lnx_hdr) { .kind = LNX_KIND_TAG, .tag = tag,
					   .len = len }, buf, len);
}

void fake_msg(struct fake *f, struct fake_peer *p, const void *buf, size_t len)
{
	fake_next(f, p, (struct lnx_hdr) { .kind = LNX_KIND_MSG, .len = len },
		  buf, len);
}

void fake_ack(struct fake *f, struct fake_peer *p)
{
	fake_frame(f, p, (struct lnx_hdr) { .kind = LNX_KIND_ACK }, NULL, 0);
}

void fake_answer(struct fake *f, struct fake_peer *p)
{
	const struct lnx_hdr *asked = &net(f)->latency;

	FAKE_CHECK(net(f)->nlatency);
	fake_frame(f, p, (struct lnx_hdr) { .kind = LNX_KIND_PONG, .tag = asked->tag,
		   .data = asked->data }, NULL, 0);
}

void fake_rts(struct fake *f, struct fake_peer *p, bool tagged, uint64_t tag,
	      uint64_t op, const uint8_t *mem, const uint64_t *seg,
	      unsigned nseg)
{
	uint8_t payload[512];
	struct lnx_rts rts = { .op = op, .nseg = nseg, .nkey = 1 };
	struct lnx_hdr h = { .tag = tag };
	unsigned i;

	h.kind = tagged ? LNX_KIND_RTS_TAG : LNX_KIND_RTS_MSG;
	for (i = 0; i < nseg; i++) {
		rts.seg_len[i] = seg[i];
		rts.key[i][0].key = 100 + i;
		/* Any address that is not used otherwise. */
		rts.key[i][0].addr = 0x1000000ULL * (i + 1);
		if (net(f)->nregion < LNX_ARRAY_SIZE(net(f)->region))
			fake_region(net(f), 100 + i, rts.key[i][0].addr,
				    mem + h.len, seg[i]);
		h.len += seg[i];
	}
	FAKE_CHECK(lnx_wire_rts_size(&rts) <= sizeof(payload));
	lnx_wire_rts_put(payload, &rts);
	fake_next(f, p, h, payload, lnx_wire_rts_size(&rts));
}

/* ---- what left ---- */

struct fake_sent *fake_take(struct fake_core *core)
{
	struct fake_sent *s = core->sent;

	if (!s)
		return NULL;
	core->sent = s->next;
	if (!core->sent)
		core->sent_end = &core->sent;
	return s;
}

static void note_received(const struct fake *f, struct fake_peer *p,
			  const struct fake_sent *s)
{
	if (s->h.kind == LNX_KIND_NO_SESSION) {
		FAKE_CHECK(s->h.src == f->lnx->eid && s->h.dst == p->sid);
		return;
	}
	FAKE_CHECK(s->h.src != f->lnx->eid && s->h.dst == p->eid);
	/* A session begins: another one, if there was one. */
	if (s->h.kind == LNX_KIND_HELLO && !s->h.seq && s->h.src != p->theirs) {
		p->theirs = s->h.src;
		p->got = 0;
	}
	FAKE_CHECK(!p->theirs || s->h.src == p->theirs);
	if (lnx_wire_kind_sequenced(s->h.kind) && s->h.seq == p->got)
		p->got++;
}

struct fake_sent *fake_receive(struct fake *f, struct fake_peer *p)
{
	struct fake_sent *s = fake_take(net(f));

	if (s)
		note_received(f, p, s);
	return s;
}

struct fake_sent *fake_expect(struct fake *f, struct fake_peer *p, uint8_t kind)
{
	struct fake_sent *s = fake_receive(f, p);

	if (!s || s->h.kind != kind)
		fprintf(stderr, "%s left, %s was expected\n",
			s ? lnx_wire_kind_name(s->h.kind) : "nothing",
			lnx_wire_kind_name(kind));
	FAKE_CHECK(s && s->h.kind == kind);
	return s;
}

void fake_expect_drop(struct fake *f, struct fake_peer *p, uint8_t kind)
{
	free(fake_expect(f, p, kind));
}

void fake_expect_none(struct fake *f)
{
	struct fake_sent *s = fake_take(net(f));

	if (s)
		fprintf(stderr, "%s left, nothing was expected\n",
			lnx_wire_kind_name(s->h.kind));
	FAKE_CHECK(!s);
}

unsigned fake_drop_all(struct fake *f, struct fake_peer *p)
{
	struct fake_sent *s;
	unsigned n;

	for (n = 0; (s = fake_receive(f, p)); n++)
		free(s);
	return n;
}

/* ---- the application's completions ---- */

struct fi_cq_tagged_entry fake_comp(struct fake *f, void *context)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	fake_pass(f);
	ret = fi_cq_read(f->cq, &e, 1);
	if (ret != 1)
		fprintf(stderr, "fi_cq_read: %zd\n", ret);
	FAKE_CHECK(ret == 1 && e.op_context == context);
	return e;
}

struct fi_cq_err_entry fake_err(struct fake *f, void *context, int err)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry ee = { 0 };
	ssize_t ret;

	fake_pass(f);
	ret = fi_cq_read(f->cq, &e, 1);
	if (ret != -FI_EAVAIL)
		fprintf(stderr, "fi_cq_read: %zd\n", ret);
	FAKE_CHECK(ret == -FI_EAVAIL);
	FAKE_CHECK(fi_cq_readerr(f->cq, &ee, 0) == 1);
	if (ee.err != err)
		fprintf(stderr, "error %d, %d was expected\n", ee.err, err);
	FAKE_CHECK(ee.op_context == context && ee.err == err);
	return ee;
}

void fake_quiet(struct fake *f)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	fake_pass(f);
	ret = fi_cq_read(f->cq, &e, 1);
	if (ret != -FI_EAGAIN)
		fprintf(stderr, "fi_cq_read: %zd\n", ret);
	FAKE_CHECK(ret == -FI_EAGAIN);
}
