/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What must be refused: calls in the wrong state or order, options and
 * arguments out of range.  Each must give the documented error and have no
 * effect.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char buf[64];

/* Fabric and domain of ft->o, and an endpoint that is not enabled. */
static int idle_ep(struct ft *ft, struct fid_ep **ep)
{
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, ep, NULL));
	return FT_PASS;
}

static int send_before_enable(struct ft *ft, const struct ft_case *c)
{
	struct fi_context2 ctx;
	struct fid_ep *ep;
	ssize_t tx, rx;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	FT_TRY(idle_ep(ft, &ep));
	tx = fi_tsend(ep, buf, 8, NULL, ft->addr[0], 1, &ctx);
	rx = fi_trecv(ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx);
	FT_CALL(ft, fi_close(&ep->fid));
	FT_CHECK(ft, tx == -FI_EOPBADSTATE, "fi_tsend returned %zd", tx);
	FT_CHECK(ft, rx == -FI_EOPBADSTATE, "fi_trecv returned %zd", rx);
	return FT_PASS;
}

static int enable_without_av(struct ft *ft, const struct ft_case *c)
{
	struct fid_ep *ep;
	int ret;

	(void)c;
	FT_TRY(idle_ep(ft, &ep));
	ret = fi_ep_bind(ep, &ft->o.cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(ep);
	fi_close(&ep->fid);
	ft_known(ft, NULL, "another error");
	FT_CHECK(ft, ret == -FI_ENOAV, "fi_enable returned %d (%s), not "
		 "-FI_ENOAV", ret, fi_strerror(-ret));
	return FT_PASS;
}

static int enable_without_cq(struct ft *ft, const struct ft_case *c)
{
	struct fid_ep *ep;
	int ret;

	(void)c;
	FT_TRY(idle_ep(ft, &ep));
	ret = fi_ep_bind(ep, &ft->o.av->fid, 0);
	if (!ret)
		ret = fi_enable(ep);
	fi_close(&ep->fid);
	ft_known(ft, NULL, "another error");
	FT_CHECK(ft, ret == -FI_ENOCQ, "fi_enable returned %d (%s), not "
		 "-FI_ENOCQ", ret, fi_strerror(-ret));
	return FT_PASS;
}

static int bad_bind(struct ft *ft, const struct ft_case *c)
{
	struct fid_ep *ep;
	int wrong, flags;

	(void)c;
	FT_TRY(idle_ep(ft, &ep));
	wrong = fi_ep_bind(ep, &ft->o.domain->fid, 0);
	flags = fi_ep_bind(ep, &ft->o.cq->fid, 1ULL << 45);
	fi_close(&ep->fid);
	ft_known(ft, NULL, "flags are not checked");
	FT_CHECK(ft, wrong < 0, "a domain was bound to an endpoint");
	FT_CHECK(ft, flags < 0, "unknown bind flags were accepted");
	return FT_PASS;
}

/* fi_close of an object in use must give -FI_EBUSY, and the object stays usable. */
static int close_busy(struct ft *ft, const struct ft_case *c)
{
	struct { struct fid *fid; const char *what; } list[] = {
		{ &ft->o.fabric->fid, "fabric" },
		{ &ft->o.domain->fid, "domain" },
		{ &ft->o.av->fid, "av" },
		{ &ft->o.cq->fid, "cq" },
	};
	struct ft_op *rx, *tx;
	struct ft_msg m = {
		.tagged = true, .addr = ft->addr[!ft->rank], .buf = buf,
		.len = 8, .tag = 1,
	};
	size_t i;
	int ret;

	(void)c;
	if (ft_is_bare(ft, "tcp;ofi_rxm"))
		return ft_skip(ft, "bare tcp;ofi_rxm frees what is in use");
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		ret = fi_close(list[i].fid);
		FT_CHECK(ft, ret == -FI_EBUSY, "fi_close(%s) while in use "
			 "returned %d", list[i].what, ret);
	}
	rx = ft_op_new(ft);
	tx = ft_op_new(ft);
	FT_CALL(ft, ft_recv(ft, rx, &m));
	FT_CALL(ft, ft_send(ft, tx, &m));
	FT_DONE(ft, rx);
	FT_DONE(ft, tx);
	return FT_PASS;
}

static int options(struct ft *ft, const struct ft_case *c)
{
	struct fid *ep = &ft->o.ep->fid;
	size_t v = 0, len = sizeof(v);
	char small;
	int ret;

	(void)c;
	FT_CALL(ft, fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v,
			      &len));
	v = 128;
	FT_CALL(ft, fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v,
			      sizeof(v)));
	ft_known(ft, NULL, "the option is ignored or not checked");
	v = 0;
	len = sizeof(v);
	FT_CALL(ft, fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v,
			      &len));
	FT_CHECK(ft, v == 128 && len == sizeof(v), "got %zu, length %zu", v,
		 len);
	len = 1;
	ret = fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small,
			&len);
	FT_CHECK(ft, ret == -FI_ETOOSMALL, "fi_getopt with 1 byte returned %d",
		 ret);
	ret = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &v, 1);
	FT_CHECK(ft, ret == -FI_EINVAL, "fi_setopt with 1 byte returned %d",
		 ret);
	len = sizeof(v);
	ret = fi_getopt(ep, FI_OPT_ENDPOINT, 0x7ffff, &v, &len);
	FT_CHECK(ft, ret == -FI_ENOPROTOOPT, "an unknown option gave %d", ret);
	ret = fi_getopt(ep, 77, FI_OPT_MIN_MULTI_RECV, &v, &len);
	FT_CHECK(ft, ret == -FI_ENOPROTOOPT, "an unknown level gave %d", ret);
	/* Connection data only exists for connected endpoints. */
	len = sizeof(v);
	ret = fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &v, &len);
	FT_CHECK(ft, ret == 0 || ret == -FI_ENOPROTOOPT,
		 "FI_OPT_CM_DATA_SIZE gave %d", ret);
	return FT_PASS;
}

/* Destinations that do not exist give an error now or in the queue, and no crash. */
static int bad_destination(struct ft *ft, const struct ft_case *c)
{
	fi_addr_t bad[] = { 12345, 1ULL << 40, FI_ADDR_NOTAVAIL };
	size_t i;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers dereference any handle");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ft_op *op = ft_op_new(ft);
		struct ft_msg m = {
			.tagged = true, .addr = bad[i], .buf = buf, .len = 8,
			.tag = 1,
		};
		int ret = ft_send(ft, op, &m);

		FT_CHECK(ft, ret < 0 && ret != -FI_ETIMEDOUT, "a send to "
			 "%llx returned %d", (unsigned long long)bad[i], ret);
	}
	return FT_PASS;
}

static int too_many_iovs(struct ft *ft, const struct ft_case *c)
{
	size_t i, n = ft->o.info->tx_attr->iov_limit + 1;
	struct iovec iov[64];
	struct ft_op *op = ft_op_new(ft);
	ssize_t ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "bare providers do not check");
	FT_CHECK(ft, n <= 64, "iov_limit %zu", n - 1);
	for (i = 0; i < n; i++) {
		iov[i].iov_base = buf;
		iov[i].iov_len = 1;
	}
	ret = fi_tsendv(ft->o.ep, iov, NULL, n, ft->addr[0], 1, op);
	FT_CHECK(ft, ret == -FI_EINVAL, "fi_tsendv of %zu gave %zd", n, ret);
	ret = fi_trecvv(ft->o.ep, iov, NULL, n, FI_ADDR_UNSPEC, 1, 0, op);
	FT_CHECK(ft, ret == -FI_EINVAL, "fi_trecvv of %zu gave %zd", n, ret);
	ret = fi_sendv(ft->o.ep, iov, NULL, n, ft->addr[0], op);
	FT_CHECK(ft, ret == -FI_EINVAL, "fi_sendv of %zu gave %zd", n, ret);
	return FT_PASS;
}

/* Vectors with every number of pieces up to the limit, some of them empty. */
static int all_iovs(struct ft *ft, const struct ft_case *c)
{
	static unsigned char in[4000], out[4000];
	size_t tx = ft->o.info->tx_attr->iov_limit, i;
	size_t rx = ft->o.info->rx_attr->iov_limit;
	struct ft_op *sent = ft_op_new(ft), *got = ft_op_new(ft);
	struct iovec s[8], r[8];

	(void)c;
	tx = tx > 8 ? 8 : tx;
	rx = rx > 8 ? 8 : rx;
	pattern_fill(out, sizeof(out), ft->run->seed, (unsigned)ft->rank, 1);
	memset(s, 0, sizeof(s));
	memset(r, 0, sizeof(r));
	for (i = 0; i < tx; i++) {	/* unequal pieces, one empty */
		s[i].iov_base = out + i * 300;
		s[i].iov_len = i == 1 && tx > 2 ? 0 : 300;
	}
	if (tx > 2) {
		s[2].iov_base = out + 300;
		s[2].iov_len = 600;
	}
	s[tx - 1].iov_base = out + (tx - 1) * 300;
	s[tx - 1].iov_len = sizeof(out) - (tx - 1) * 300;
	for (i = 0; i < rx; i++) {
		r[i].iov_base = in + i * 777;
		r[i].iov_len = 777;
	}
	r[rx - 1].iov_len = sizeof(in) - (rx - 1) * 777;
	got->posted = sent->posted = true;
	FT_CALL(ft, fi_trecvv(ft->o.ep, r, NULL, rx, FI_ADDR_UNSPEC, 5, 0,
			      got));
	ft_barrier(ft);
	{
		double end = ft_now() + ft->run->timeout_s;
		ssize_t ret;

		do {
			ret = fi_tsendv(ft->o.ep, s, NULL, tx,
					ft->addr[!ft->rank], 5, sent);
			if (ret == -FI_EAGAIN)
				ft_progress(ft);
		} while (ret == -FI_EAGAIN && ft_now() < end);
		FT_CALL(ft, ret);
	}
	FT_DONE(ft, sent);
	FT_DONE(ft, got);
	FT_CHECK(ft, got->len == sizeof(out), "length %zu", got->len);
	FT_CHECK(ft, pattern_check(in, sizeof(in), ft->run->seed, !ft->rank,
				   1) < 0, "wrong data");
	return FT_PASS;
}

/* The results of fi_getinfo must be usable as hints for the same result. */
static int getinfo_again(struct ft *ft, const struct ft_case *c)
{
	struct fi_info *hints = fi_dupinfo(ft->o.info), *again = NULL;
	int ret;

	(void)c;
	FT_CHECK(ft, hints, "fi_dupinfo failed");
	ret = fi_getinfo(FT_API, NULL, NULL, 0, hints, &again);
	fi_freeinfo(hints);
	FT_CALL(ft, ret);
	ret = strcmp(again->domain_attr->name, ft->o.info->domain_attr->name);
	fi_freeinfo(again);
	FT_CHECK(ft, !ret, "another domain was returned");
	return FT_PASS;
}

/* Opens an endpoint from hints with that source address; its name is stored in o. */
static int open_from(struct ft *ft, const void *src, size_t len,
		     struct ft_objs *o)
{
	struct ft_cfg cfg = { 0 };
	struct fi_info *h = ft_hints(ft, &cfg);
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret;

	memset(o, 0, sizeof(*o));
	h->src_addr = malloc(len);
	FT_CHECK(ft, h->src_addr, "malloc");
	memcpy(h->src_addr, src, len);
	h->src_addrlen = len;
	ret = fi_getinfo(FT_API, NULL, NULL, 0, h, &o->info);
	fi_freeinfo(h);
	FT_CALL(ft, ret);
	FT_CHECK(ft, o->info->src_addr && o->info->src_addrlen == len &&
		 !memcmp(o->info->src_addr, src, len), "another src_addr");
	FT_CALL(ft, fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	FT_CALL(ft, fi_domain(o->fabric, o->info, &o->domain, NULL));
	FT_CALL(ft, fi_av_open(o->domain, &av, &o->av, NULL));
	FT_CALL(ft, fi_cq_open(o->domain, &cq, &o->cq, NULL));
	FT_CALL(ft, fi_endpoint(o->domain, o->info, &o->ep, NULL));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_enable(o->ep));
	o->name_len = sizeof(o->name);
	FT_CALL(ft, fi_getname(&o->ep->fid, o->name, &o->name_len));
	return FT_PASS;
}

/*
 * src_addr can be copied and used again.  The one of fi_getinfo gives each
 * endpoint a name of its own, and is the name of none.  The name of a closed
 * endpoint can be used again.
 */
static int source_address(struct ft *ft, const struct ft_case *c)
{
	struct fi_info *i = ft->o.info;
	unsigned char name[FT_NAME_MAX];
	struct ft_objs o[2];
	fi_addr_t addr;
	size_t len;
	int ret;

	(void)c;
	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "the rules are those of lnx");
	FT_CHECK(ft, i->src_addr && i->src_addrlen <= sizeof(name),
		 "src_addr %p of %zu bytes", i->src_addr, i->src_addrlen);
	memcpy(name, i->src_addr, i->src_addrlen);
	ret = fi_av_insert(ft->o.av, name, 1, &addr, 0, NULL);
	FT_CHECK(ft, ret == 0 && addr == FI_ADDR_NOTAVAIL, "fi_av_insert of "
		 "an address of no endpoint returned %d", ret);
	FT_TRY(open_from(ft, name, i->src_addrlen, &o[0]));
	FT_TRY(open_from(ft, name, i->src_addrlen, &o[1]));
	FT_CHECK(ft, memcmp(o[0].name, o[1].name, o[0].name_len), "two "
		 "endpoints have one name");
	memcpy(name, o[0].name, sizeof(name));
	len = o[0].name_len;
	FT_CHECK(ft, !ft_objs_close(ft, &o[0]) && !ft_objs_close(ft, &o[1]),
		 "not closed: %s", ft->why);
	FT_TRY(open_from(ft, name, len, &o[0]));
	FT_CHECK(ft, o[0].name_len == len && !memcmp(o[0].name, name, len),
		 "it has another name than the requested one");
	return ft_objs_close(ft, &o[0]) ? FT_FAIL : FT_PASS;
}

/* Hints that no provider can meet give -FI_ENODATA and no other error. */
static int impossible_hints(struct ft *ft, const struct ft_case *c)
{
	struct fi_info *info, *h;
	int i, ret;

	(void)c;
	for (i = 0; i < 6; i++) {
		struct ft_cfg cfg = { 0 };

		h = ft_hints(ft, &cfg);
		switch (i) {
		case 0: h->ep_attr->type = FI_EP_MSG; break;
		case 1: h->tx_attr->inject_size = 1UL << 40; break;
		case 2: h->domain_attr->cq_data_size = 64; break;
		case 3: h->tx_attr->iov_limit = 10000; break;
		case 4: h->caps |= FI_MULTICAST; break;
		case 5:
			free(h->domain_attr->name);
			h->domain_attr->name = strdup("no-such-domain");
			break;
		}
		if (!i && !strcmp(ft->opts.prov, "tcp")) {
			fi_freeinfo(h);	/* bare tcp has such endpoints */
			continue;
		}
		ret = fi_getinfo(FT_API, NULL, NULL, 0, h, &info);
		fi_freeinfo(h);
		if (!ret)
			fi_freeinfo(info);
		FT_CHECK(ft, ret == -FI_ENODATA, "hint %d: fi_getinfo "
			 "returned %d", i, ret);
	}
	return FT_PASS;
}

/* A provider that reports no shared receive contexts opens none and binds none. */
static int shared_context(struct ft *ft, const struct ft_case *c)
{
	struct fi_info *h = fi_dupinfo(ft->o.info), *info;
	struct fi_rx_attr attr = *ft->o.info->rx_attr;
	struct fid_ep *srx = NULL;
	int ret;

	(void)c;
	FT_CHECK(ft, h, "fi_dupinfo failed");
	if (!ft_is_bare(ft, "lnx") ||
	    ft->o.info->domain_attr->max_ep_srx_ctx) {
		fi_freeinfo(h);
		return ft_skip(ft, ft_is_bare(ft, "lnx") ? "it has them" :
			       "the rule is that of lnx");
	}
	h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	ret = fi_getinfo(FT_API, NULL, NULL, 0, h, &info);
	fi_freeinfo(h);
	if (!ret)
		fi_freeinfo(info);
	FT_CHECK(ft, ret == -FI_ENODATA, "fi_getinfo for a shared context "
		 "returned %d", ret);
	ret = fi_srx_context(ft->o.domain, &attr, &srx, NULL);
	FT_CHECK(ft, ret == -FI_ENOSYS && !srx, "fi_srx_context returned %d",
		 ret);
	return FT_PASS;
}

int main(int argc, char **argv)
{
	static const struct ft_case cases[] = {
		{ .name = "send-before-enable", .fn = send_before_enable,
		  .ranks = 1 },
		{ .name = "enable-without-av", .fn = enable_without_av,
		  .ranks = 1 },
		{ .name = "enable-without-cq", .fn = enable_without_cq,
		  .ranks = 1 },
		{ .name = "shared-receive-context", .fn = shared_context,
		  .ranks = 1 },
		{ .name = "bad-bind", .fn = bad_bind, .ranks = 1 },
		{ .name = "close-while-in-use", .fn = close_busy },
		{ .name = "options", .fn = options, .ranks = 1 },
		{ .name = "bad-destination", .fn = bad_destination },
		{ .name = "too-many-iovs", .fn = too_many_iovs, .ranks = 1 },
		{ .name = "all-iovs", .fn = all_iovs },
		{ .name = "getinfo-again", .fn = getinfo_again, .ranks = 1 },
		{ .name = "source-address", .fn = source_address, .ranks = 1 },
		{ .name = "impossible-hints", .fn = impossible_hints,
		  .ranks = 1 },
	};

	return ft_main(argc, argv, "states, orders, options, limits", cases,
		       sizeof(cases) / sizeof(cases[0]));
}
