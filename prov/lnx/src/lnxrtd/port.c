/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rail of a gateway in libfabric: one endpoint of a core provider, which listens on a
 * fixed port.  Buffers are posted for receiving all the time; what the core has is in one
 * of two lists, so that what an error names is checked before use.
 *
 * A completion queue that one can wait for costs tcp two system calls for each completion,
 * which is written to a descriptor and read back.  The descriptor of a queue also tells of
 * the sockets of its domain.  So a second queue, which gets no completion, is waited for: what
 * a core completes without its sockets, it completes inside a call that starts something,
 * and after these the first queue is read again before one waits.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/interval.h"
#include "os/ping.h"
#include "fi.h"
#include "lnxrtd/lnxrtd.h"

#define API		FI_VERSION(2, 1)
#define BATCH		RTD_READ_BATCH
#define CQ_SIZE		4096u
#define PINGS		16

struct ping {
	struct lnx_ping p;
	uint32_t cookie;		/* 0: free */
	uint64_t until_ns;
};

struct rtd_port {
	struct rtd_relay *relay;
	unsigned index;			/* of the relay's rail */
	struct rtd_rail rail;
	char interface[64];
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cq *wait_cq;		/* without completions; NULL: cq is waited for */
	struct fid_ep *ep;
	int wait_fd;
	bool started;			/* something, since the queue was read */
	struct lnx_node posted, flying;	/* buffers that the core has */
	unsigned nposted;
	unsigned nping;			/* that are under way */
	struct ping ping[PINGS];
};

static int LNX_PRINTF(2, 3) fail(char why[RTD_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, RTD_WHY, fmt, ap);
	va_end(ap);
	return -1;
}

/* ---- opening ---- */

static bool fits(const struct fi_info *i, const struct rtd_port_conf *conf)
{
	const struct sockaddr *sa = i->src_addr;
	const struct in6_addr *in6;

	if (strcasecmp(i->fabric_attr->prov_name, conf->prov) ||
	    strcmp(i->domain_attr->name, conf->interface))
		return false;
	if (!sa || i->src_addrlen < sizeof(*sa) || sa->sa_family != AF_INET6)
		return true;
	in6 = &((const struct sockaddr_in6 *)i->src_addr)->sin6_addr;
	return !IN6_IS_ADDR_LINKLOCAL(in6);
}

static bool is_ipv4(const struct fi_info *i)
{
	const struct sockaddr *sa = i->src_addr;

	return sa && i->src_addrlen >= sizeof(*sa) && sa->sa_family == AF_INET;
}

/* The first address of the interface; IPv4 if it has one. */
static struct fi_info *find_info(const struct rtd_port_conf *conf)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL, *i, *best = NULL;

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(conf->prov);
	hints->caps = FI_MSG;
	/* Without it ofi_rxm of libfabric 2.1 does not note from which connection a message came
	 * that finds no buffer; then an address that is new makes it follow a null pointer. */
	if (strstr(conf->prov, "ofi_rxm"))
		hints->caps |= FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	if (fi_getinfo(API, NULL, NULL, LNX_GETINFO_HIDDEN, hints, &list))
		list = NULL;
	for (i = list; i; i = i->next)
		if (fits(i, conf) && (!best || (is_ipv4(i) && !is_ipv4(best))))
			best = i;
	best = best ? fi_dupinfo(best) : NULL;
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return best;
}

static void set_port(struct fi_info *info, uint16_t number)
{
	struct sockaddr_in6 *in6 = info->src_addr;
	struct sockaddr_in *in = info->src_addr;

	if (in && in->sin_family == AF_INET)
		in->sin_port = htons(number);
	else if (in && in->sin_family == AF_INET6)
		in6->sin6_port = htons(number);
}

/* The fabric of a provider over IP has the name of its subnet. */
static void find_subnet(struct rtd_port *p)
{
	const char *name = p->info->fabric_attr->name;
	struct lnx_refusal r = { .text = name };

	if (!lnx_net_ip(p->rail.addr.prov) || !name ||
	    lnx_cidr_parse((struct lnx_span){ name, strlen(name) }, &p->rail.subnet, &r) ||
	    !lnx_cidr_has(&p->rail.subnet, p->rail.nid.addr, p->rail.nid.len))
		p->rail.subnet.len = 0;
}

/* The rail's net and NID; a->raw and a->rawlen are known. */
static int name_rail(const struct fi_info *info, const char *interface,
		     const struct lnx_nets *nets, struct lnx_addr_rail *a, struct lnx_nid *nid,
		     char why[RTD_WHY])
{
	a->prov = lnx_addr_prov_id(info->fabric_attr->prov_name);
	a->group = lnx_addr_group(a->prov, info->fabric_attr->name);
	return !lnx_nid_of(nets, a, nid) ? 0 :
	       fail(why, "%s on %s: its address is none of a net",
		    info->fabric_attr->prov_name, interface);
}

/* The rail as peers and the relay see it. */
static int describe(struct rtd_port *p, const struct lnx_nets *nets, char why[RTD_WHY])
{
	struct lnx_addr_rail *a = &p->rail.addr;
	size_t len = sizeof(a->raw), room, size = sizeof(room);

	if (fi_getname(&p->ep->fid, a->raw, &len) || len > sizeof(a->raw))
		return fail(why, "%s on %s: its address is too long",
			    p->info->fabric_attr->prov_name, p->interface);
	a->rawlen = (uint8_t)len;
	if (name_rail(p->info, p->interface, nets, a, &p->rail.nid, why))
		return -1;
	find_subnet(p);
	p->rail.frame_max = a->prov == LNX_PROV_TCP ? LNX_FRAME_LARGE : LNX_FRAME_MAX;
	/* rxm has buffers of one size: what is longer is not sound on it. */
	if (a->prov == LNX_PROV_TCP_RXM &&
	    !fi_getopt(&p->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &room, &size))
		p->rail.frame_max = (uint32_t)LNX_MIN(room, (size_t)LNX_FRAME_LARGE);
	p->rail.frame_max = LNX_MIN(p->rail.frame_max,
				    (uint32_t)LNX_MIN(p->info->ep_attr->max_msg_size,
						      (size_t)LNX_FRAME_LARGE));
	p->rail.up = true;
	return 0;
}

/* A queue that can be waited for, if the core has such. */
static int open_wait_cq(struct rtd_port *p, struct fid_cq **out)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG, .size = CQ_SIZE,
				 .wait_obj = FI_WAIT_FD };
	int ret = fi_cq_open(p->domain, &cq, out, NULL);

	if (!ret && fi_control(&(*out)->fid, FI_GETWAIT, &p->wait_fd))
		p->wait_fd = -1;
	return ret;
}

static int open_cqs(struct rtd_port *p)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG, .size = CQ_SIZE,
				 .wait_obj = FI_WAIT_NONE };
	bool tcp = lnx_addr_prov_id(p->info->fabric_attr->prov_name) == LNX_PROV_TCP;
	int ret = open_wait_cq(p, tcp ? &p->wait_cq : &p->cq);

	return !tcp && !ret ? 0 : fi_cq_open(p->domain, &cq, &p->cq, NULL);
}

/* find_info(), or NULL with why. */
static struct fi_info *must_find(const struct rtd_port_conf *conf, char why[RTD_WHY])
{
	struct fi_info *info = find_info(conf);

	if (info)
		set_port(info, conf->number);
	else
		fail(why, "the provider %s has no interface %s with an address; fi_info -p "
		     "'%s' lists those that it has", conf->prov, conf->interface,
		     conf->prov);
	return info;
}

int rtd_port_look(const struct rtd_port_conf *conf, const struct lnx_nets *nets,
		  struct lnx_nid *nid, char why[RTD_WHY])
{
	struct fi_info *info = must_find(conf, why);
	struct lnx_addr_rail a = { 0 };
	int ret;

	if (!info)
		return -1;
	/* What has no address yet gets one when it is opened. */
	a.rawlen = (uint8_t)LNX_MIN(info->src_addrlen, sizeof(a.raw));
	if (info->src_addr)
		memcpy(a.raw, info->src_addr, a.rawlen);
	ret = name_rail(info, conf->interface, nets, &a, nid, why);
	fi_freeinfo(info);
	return ret;
}

static int open_objects(struct rtd_port *p)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret = fi_fabric(p->info->fabric_attr, &p->fabric, NULL);

	if (!ret)
		ret = fi_domain(p->fabric, p->info, &p->domain, NULL);
	if (!ret)
		ret = fi_av_open(p->domain, &av, &p->av, NULL);
	if (ret)
		return ret;
	ret = open_cqs(p);
	if (!ret)
		ret = fi_endpoint(p->domain, p->info, &p->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(p->ep);
}

int rtd_port_open(struct rtd_port **out, const struct rtd_port_conf *conf,
		  const struct lnx_nets *nets, char why[RTD_WHY])
{
	struct rtd_port *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return fail(why, "memory is short");
	p->wait_fd = -1;
	lnx_list_init(&p->posted);
	lnx_list_init(&p->flying);
	snprintf(p->interface, sizeof(p->interface), "%s", conf->interface);
	p->info = must_find(conf, why);
	if (!p->info) {
		rtd_port_close(p);
		return -1;
	}
	ret = open_objects(p);
	if (ret) {
		fail(why, "%s on %s, port %u: %s", conf->prov, conf->interface,
		     conf->number, fi_strerror(-ret));
		rtd_port_close(p);
		return -1;
	}
	if (describe(p, nets, why)) {
		rtd_port_close(p);
		return -1;
	}
	p->rail.tx_max = conf->tx_max ? conf->tx_max :
			 LNX_MAX((uint32_t)p->info->tx_attr->size / 2, 1u);
	*out = p;
	return 0;
}

static void close_fid(fid_t fid)
{
	if (fid)
		fi_close(fid);
}

void rtd_port_stop(struct rtd_port *p)
{
	uint64_t now = lnx_clock_ns();
	struct lnx_node *n;
	unsigned i;

	for (i = 0; i < PINGS; i++)
		lnx_ping_stop(&p->ping[i].p);
	close_fid(p->ep ? &p->ep->fid : NULL);
	p->ep = NULL;
	while ((n = lnx_list_pop(&p->posted)))
		rtd_relay_landing_back(p->relay, lnx_list_entry(n, struct rtd_buf, link));
	while ((n = lnx_list_pop(&p->flying)))
		rtd_relay_sent(p->relay, lnx_list_entry(n, struct rtd_buf, link),
			       -ECANCELED, now);
	p->nposted = 0;
}

void rtd_port_close(struct rtd_port *p)
{
	if (!p)
		return;
	rtd_port_stop(p);
	close_fid(p->cq ? &p->cq->fid : NULL);
	close_fid(p->wait_cq ? &p->wait_cq->fid : NULL);
	close_fid(p->av ? &p->av->fid : NULL);
	close_fid(p->domain ? &p->domain->fid : NULL);
	close_fid(p->fabric ? &p->fabric->fid : NULL);
	fi_freeinfo(p->info);
	free(p);
}

const struct rtd_rail *rtd_port_rail(const struct rtd_port *p)
{
	return &p->rail;
}

const char *rtd_port_interface(const struct rtd_port *p)
{
	return p->interface;
}

void rtd_port_bind(struct rtd_port *p, struct rtd_relay *relay, unsigned rail)
{
	p->relay = relay;
	p->index = rail;
}

/* ---- receiving ---- */

static bool post(struct rtd_port *p, struct rtd_buf *buf)
{
	if (fi_recv(p->ep, buf->bytes, RTD_LARGE_BYTES, NULL, FI_ADDR_UNSPEC, buf))
		return false;
	lnx_list_add_tail(&p->posted, &buf->link);
	p->nposted++;
	p->started = true;
	return true;
}

void rtd_port_fill(struct rtd_port *p)
{
	unsigned want = rtd_relay_landings(p->relay);

	while (p->nposted < want) {
		struct rtd_buf *buf = rtd_relay_landing(p->relay);

		if (!buf)
			return;
		if (!post(p, buf)) {
			rtd_relay_landing_back(p->relay, buf);
			return;
		}
	}
}

static void received(struct rtd_port *p, struct rtd_buf *buf, size_t len, uint64_t now)
{
	lnx_list_del(&buf->link);
	p->nposted--;
	if (rtd_relay_rx(p->relay, p->index, buf, len, now))
		buf = rtd_relay_landing(p->relay);
	if (buf && (p->nposted >= rtd_relay_landings(p->relay) || !post(p, buf)))
		rtd_relay_landing_back(p->relay, buf);
}

static bool in_list(const struct lnx_node *list, const void *buf)
{
	const struct lnx_node *n;

	for (n = list->next; n != list; n = n->next)
		if (lnx_list_entry(n, struct rtd_buf, link) == buf)
			return true;
	return false;
}

static void read_errors(struct rtd_port *p, uint64_t now)
{
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		struct fi_cq_err_entry err = { 0 };
		struct rtd_buf *buf;

		if (fi_cq_readerr(p->cq, &err, 0) != 1)
			return;
		buf = err.op_context;
		if (in_list(&p->flying, buf)) {
			lnx_list_del(&buf->link);
			rtd_relay_sent(p->relay, buf, err.err > 0 ? -err.err : -EIO, now);
		} else if (in_list(&p->posted, buf)) {
			/* Too long for any frame, or cut off. */
			received(p, buf, 0, now);
		}
	}
}

unsigned rtd_port_poll(struct rtd_port *p, unsigned *frames)
{
	struct fi_cq_msg_entry e[BATCH];
	uint64_t now = lnx_clock_ns();
	ssize_t n, i;

	/* tcp asks errno why a connection has ended without a byte.  With what an earlier call
	 * left there it may wait for more, for good, and wake us up all the time. */
	errno = 0;
	n = fi_cq_read(p->cq, e, BATCH);
	if (n == -FI_EAVAIL) {
		read_errors(p, now);
		p->started = true;
		return 1;
	}
	p->started = n == BATCH;
	for (i = 0; i < n; i++) {
		struct rtd_buf *buf = e[i].op_context;

		if (e[i].flags & FI_RECV) {
			(*frames)++;
			received(p, buf, e[i].len, now);
		} else {
			lnx_list_del(&buf->link);
			rtd_relay_sent(p->relay, buf, 0, now);
		}
	}
	return n > 0 ? (unsigned)n : 0;
}

int rtd_port_fd(const struct rtd_port *p)
{
	return p->wait_fd;
}

bool rtd_port_quiet(struct rtd_port *p)
{
	struct fid *fid = p->wait_cq ? &p->wait_cq->fid : &p->cq->fid;

	if (p->wait_cq && p->started)
		return false;
	errno = 0;
	return p->wait_fd < 0 || !fi_trywait(p->fabric, &fid, 1);
}

/* ---- what the relay calls ---- */

static struct rtd_port *port_of(void *arg, unsigned rail)
{
	struct rtd_ports *all = arg;

	return all->port[rail];
}

static int port_open(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		     uint64_t *handle)
{
	struct rtd_port *p = port_of(arg, rail);
	fi_addr_t addr;

	if (fi_av_insert(p->av, to->raw, 1, &addr, 0, NULL) != 1)
		return -EADDRNOTAVAIL;
	*handle = addr;
	return 0;
}

static void port_forget(void *arg, unsigned rail, uint64_t handle)
{
	fi_addr_t addr = handle;

	fi_av_remove(port_of(arg, rail)->av, &addr, 1, 0);
}

static int port_send(void *arg, unsigned rail, uint64_t handle, struct rtd_buf *buf)
{
	struct rtd_port *p = port_of(arg, rail);
	ssize_t ret = fi_send(p->ep, buf->bytes, buf->len, NULL, handle, buf);

	p->started = true;
	if (!ret) {
		lnx_list_add_tail(&p->flying, &buf->link);
		return 0;
	}
	return ret == -FI_EAGAIN ? -EAGAIN : (int)ret;
}

static int port_ask(void *arg, unsigned rail, const struct lnx_addr_rail *to,
		    uint32_t cookie)
{
	struct rtd_port *p = port_of(arg, rail);
	unsigned i;

	if (!lnx_net_ip(to->prov))
		return -EOPNOTSUPP;
	for (i = 0; i < PINGS; i++)
		if (!p->ping[i].cookie)
			break;
	if (i == PINGS)
		return -EAGAIN;
	lnx_ping_start(&p->ping[i].p, p->rail.addr.raw, p->rail.addr.rawlen, to->raw,
		       to->rawlen, NULL);
	p->ping[i].cookie = cookie;
	p->nping++;
	p->ping[i].until_ns = lnx_clock_ns() + RTD_PING_NS;
	return 0;
}

unsigned rtd_port_asking(struct rtd_port *p, uint64_t now)
{
	static const enum lnx_route_tell tells[] = {
		[LNX_PING_UNKNOWN] = LNX_TELL_UNKNOWN,
		[LNX_PING_WAITING] = LNX_TELL_SILENT,
		[LNX_PING_ALIVE] = LNX_TELL_ALIVE,
		[LNX_PING_REFUSED] = LNX_TELL_REFUSED,
		[LNX_PING_BROKEN] = LNX_TELL_UNREACHABLE,
	};
	unsigned i;

	for (i = 0; p->nping && i < PINGS; i++) {
		struct ping *ping = &p->ping[i];
		enum lnx_ping_result result;
		uint32_t cookie = ping->cookie;

		if (!cookie)
			continue;
		result = lnx_ping_check(&ping->p);
		if (result == LNX_PING_WAITING && now < ping->until_ns)
			continue;
		lnx_ping_stop(&ping->p);
		ping->cookie = 0;
		p->nping--;
		rtd_relay_told(p->relay, cookie, tells[result], now);
	}
	return p->nping;
}

static bool port_own(void *arg, const struct lnx_addr_rail *to)
{
	const struct rtd_ports *all = arg;

	return lnx_net_ip(to->prov) && rtd_own_has(&all->own, to->raw, to->rawlen);
}

const struct rtd_ops rtd_port_ops = {
	.open = port_open, .close = port_forget, .send = port_send, .ask = port_ask,
	.own = port_own,
};
