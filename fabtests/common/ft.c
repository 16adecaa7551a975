/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects of a rank, results, and the hang guard. */
#include "ft.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char guard_text[200];

double ft_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void on_alarm(int sig)
{
	ssize_t n;

	(void)sig;
	n = write(STDERR_FILENO, guard_text, strlen(guard_text));
	(void)n;
	_exit(124);
}

void ft_guard_s(struct ft *ft, const char *what, unsigned seconds)
{
	snprintf(guard_text, sizeof(guard_text),
		 "# rank %d: %s did not end within %u s\n", ft->rank, what,
		 seconds);
	signal(SIGALRM, on_alarm);
	alarm(seconds);
}

void ft_guard(struct ft *ft, const char *what)
{
	ft_guard_s(ft, what, ft->run->guard_s);
}

int ft_fail(struct ft *ft, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ft->why, sizeof(ft->why), fmt, ap);
	va_end(ap);
	return FT_FAIL;
}

int ft_skip(struct ft *ft, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ft->why, sizeof(ft->why), fmt, ap);
	va_end(ap);
	return FT_SKIP;
}

void ft_die(struct ft *ft, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "# rank %d: ", ft->rank);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

bool ft_is_bare(const struct ft *ft, const char *prov)
{
	return !strcmp(ft->opts.prov, prov);
}

/* Defined with a sanitizer. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

bool ft_sanitized(void)
{
	return __sanitizer_get_current_allocated_bytes != NULL;
}

bool ft_judges_times(void)
{
	const char *say = getenv("LNX_TEST_TIMES");

	return say && strcmp(say, "0");
}

bool ft_lnx_over_shm(const struct ft *ft)
{
	const char *links = getenv("FI_LNX_PROV_LINKS");

	return ft_is_bare(ft, "lnx") && links && !strncmp(links, "shm", 3);
}

void ft_known(struct ft *ft, const char *prov, const char *reason)
{
	if (prov ? ft_is_bare(ft, prov) : !ft_is_bare(ft, "lnx"))
		snprintf(ft->todo, sizeof(ft->todo), "bare %s: %s",
			 ft->opts.prov, reason);
}

struct fi_info *ft_hints(struct ft *ft, const struct ft_cfg *cfg)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		ft_die(ft, "out of memory");
	h->caps = cfg->caps ? cfg->caps : FT_CAPS;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->tx_attr->op_flags = cfg->tx_op_flags;
	h->tx_attr->msg_order = cfg->order ? cfg->order : FI_ORDER_SAS;
	h->rx_attr->msg_order = h->tx_attr->msg_order;
	h->domain_attr->threading = cfg->threading ? cfg->threading :
				    FI_THREAD_DOMAIN;
	h->domain_attr->progress = FI_PROGRESS_MANUAL;
	if (cfg->automatic)
		h->domain_attr->progress = FI_PROGRESS_AUTO;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = cfg->av_type ? cfg->av_type : FI_AV_TABLE;
	h->domain_attr->mr_mode = ft->run->mr_basic ? FT_MR_BASIC :
						      cfg->mr_mode;
	h->fabric_attr->prov_name = strdup(ft->opts.prov);
	if (ft->opts.domain)
		h->domain_attr->name = strdup(ft->opts.domain);
	if (ft->opts.fabric)
		h->fabric_attr->name = strdup(ft->opts.fabric);
	/* One address family, so that all ranks use the same one. */
	if (!strncmp(ft->opts.prov, "tcp", 3))
		h->addr_format = FI_SOCKADDR_IN;
	return h;
}

int ft_getinfo(struct ft *ft, const struct ft_cfg *cfg, struct fi_info **info)
{
	struct fi_info *h = ft_hints(ft, cfg);
	int ret;

	ret = fi_getinfo(FT_API, ft->opts.local, NULL,
			 ft->opts.local ? FI_SOURCE : 0, h, info);
	fi_freeinfo(h);
	/*
	 * For a provider name, libfabric also offers the providers layered over
	 * it.  Those are not what is tested here.
	 */
	if (!ret && !ft_is_bare(ft, "lnx") &&
	    strcmp((*info)->fabric_attr->prov_name, ft->opts.prov)) {
		fi_freeinfo(*info);
		*info = NULL;
		ret = -FI_ENODATA;
	}
	/*
	 * libfabric has a built-in provider of this name, which reports
	 * libfabric's own version.  Its results would say nothing about ours.
	 */
	if (!ret && ft_is_bare(ft, "lnx") &&
	    FI_MAJOR((*info)->fabric_attr->prov_version) < 1000) {
		fprintf(stderr, "# libfabric's built-in lnx was found, not the "
			"module: set FI_PROVIDER_PATH=+/path/liblnx-fi.so\n");
		fi_freeinfo(*info);
		*info = NULL;
		ret = -FI_ENODATA;
	}
	return ret;
}

#define STEP(call) do {							\
	ret = (int)(call);						\
	if (ret) {							\
		ft_fail(ft, "%s: %s (%d)", #call, fi_strerror(-ret), ret); \
		goto close;						\
	}								\
} while (0)

int ft_objs_open(struct ft *ft, const struct ft_cfg *cfg, struct ft_objs *o)
{
	uint64_t cq_flags = FI_TRANSMIT | FI_RECV;
	struct fi_cq_attr cq = {
		.format = cfg->format ? cfg->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = cfg->wait,
	};
	struct fi_av_attr av = {
		.type = cfg->av_type ? cfg->av_type : FI_AV_TABLE,
	};
	int ret;

	memset(o, 0, sizeof(*o));
	if (cfg->selective)
		cq_flags |= FI_SELECTIVE_COMPLETION;
	STEP(ft_getinfo(ft, cfg, &o->info));
	STEP(fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	STEP(fi_domain(o->fabric, o->info, &o->domain, NULL));
	STEP(fi_av_open(o->domain, &av, &o->av, NULL));
	if (!cfg->no_cq)
		STEP(fi_cq_open(o->domain, &cq, &o->cq, NULL));
	STEP(fi_endpoint(o->domain, o->info, &o->ep, NULL));
	STEP(fi_ep_bind(o->ep, &o->av->fid, 0));
	if (!cfg->no_cq)
		STEP(fi_ep_bind(o->ep, &o->cq->fid, cq_flags));
	if (cfg->bind)
		STEP(cfg->bind(ft, o));
	STEP(fi_enable(o->ep));
	o->name_len = sizeof(o->name);
	STEP(fi_getname(&o->ep->fid, o->name, &o->name_len));
	return 0;
close:
	{
		char why[FT_WHY_MAX];

		memcpy(why, ft->why, sizeof(why));
		ft_objs_close(ft, o);
		memcpy(ft->why, why, sizeof(why));
	}
	return ret;
}

/* Closes every object even after an error, and returns the first error. */
int ft_objs_close(struct ft *ft, struct ft_objs *o)
{
	struct { struct fid *fid; const char *what; } list[] = {
		{ o->cq ? &o->cq->fid : NULL, "cq" },
		{ o->av ? &o->av->fid : NULL, "av" },
		{ o->domain ? &o->domain->fid : NULL, "domain" },
		{ o->eq ? &o->eq->fid : NULL, "eq" },
		{ o->fabric ? &o->fabric->fid : NULL, "fabric" },
	};
	int ret, first = 0, j;
	size_t i;

	if (o->ep) {
		ret = fi_close(&o->ep->fid);
		if (ret) {
			ft_fail(ft, "fi_close(endpoint): %s (%d)",
				fi_strerror(-ret), ret);
			first = ret;
		}
	}
	for (j = o->nextra - 1; j >= 0; j--) {
		ret = fi_close(o->extra[j]);
		if (ret && !first) {
			ft_fail(ft, "fi_close(extra object %d): %s (%d)", j,
				fi_strerror(-ret), ret);
			first = ret;
		}
	}
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (!list[i].fid)
			continue;
		ret = fi_close(list[i].fid);
		if (ret && !first) {
			ft_fail(ft, "fi_close(%s): %s (%d)", list[i].what,
				fi_strerror(-ret), ret);
			first = ret;
		}
	}
	fi_freeinfo(o->info);
	memset(o, 0, sizeof(*o));
	return first;
}

struct wire_name {
	uint64_t len;
	unsigned char name[FT_NAME_MAX];
};

int ft_exchange(struct ft *ft, struct ft_objs *o, fi_addr_t *addr)
{
	struct wire_name mine = { .len = o->name_len };
	struct wire_name all[OOB_MAX_RANKS];
	int i, ret;

	memcpy(mine.name, o->name, sizeof(mine.name));
	ret = oob_allgather(&ft->oob, &mine, all, sizeof(mine));
	if (ret) {
		ft_fail(ft, "address exchange: %s", strerror(-ret));
		return ret;
	}
	for (i = 0; i < ft->n; i++) {
		ret = fi_av_insert(o->av, all[i].name, 1, &addr[i], 0, NULL);
		if (ret != 1) {
			ft_fail(ft, "fi_av_insert(rank %d) returned %d", i,
				ret);
			return ret < 0 ? ret : -FI_EADDRNOTAVAIL;
		}
	}
	return 0;
}

int ft_open(struct ft *ft, const struct ft_cfg *cfg)
{
	int32_t mine, all[OOB_MAX_RANKS];
	int i, ret;

	ret = ft_objs_open(ft, cfg, &ft->o);
	/* A rank that failed must not leave the others waiting. */
	mine = ret;
	if (oob_allgather(&ft->oob, &mine, all, sizeof(mine)))
		return -FI_ECONNRESET;
	for (i = 0; i < ft->n; i++) {
		if (!all[i])
			continue;
		if (!ret) {
			ft_objs_close(ft, &ft->o);
			ft_fail(ft, "rank %d could not open", i);
			ret = all[i];
		}
		return ret;
	}
	ft->cfg = *cfg;
	ft_ops_drop(ft);
	ft->open = true;
	ret = ft_exchange(ft, &ft->o, ft->addr);
	if (ret) {
		ft_close(ft);
		return ret;
	}
	return ft_barrier(ft);
}

int ft_close(struct ft *ft)
{
	if (!ft->open)
		return 0;
	ft->open = false;
	return ft_objs_close(ft, &ft->o);
}

void ft_fini(struct ft *ft)
{
	ft_close(ft);
	oob_close(&ft->oob);
	if (ft->ops)
		munmap(ft->ops, sizeof(*ft->ops) * FT_MAX_OPS);
	ft->ops = NULL;
}
