/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs written for an older libfabric: structures that the library fills
 * are shorter there, and nothing may be written after their end.
 */
#include "../common/ft.h"

#include <stdio.h>
#include <string.h>

#define CANARY		0xa5
#define ROOM		256

/* Size without the members that later versions added. */
static size_t cq_err_size(uint32_t api)
{
	if (FI_VERSION_LT(api, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(api, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

static size_t eq_err_size(uint32_t api)
{
	return FI_VERSION_LT(api, FI_VERSION(1, 5)) ?
	       offsetof(struct fi_eq_err_entry, err_data_size) :
	       sizeof(struct fi_eq_err_entry);
}

/* Opens all objects as a program of that version does. */
static int open_old(struct ft *ft, uint32_t api, struct ft_objs *o)
{
	struct ft_cfg cfg = { 0 };
	struct fi_info *h = ft_hints(ft, &cfg);
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	int ret;

	memset(o, 0, sizeof(*o));
	if (FI_VERSION_LT(api, FI_VERSION(1, 5)))
		h->domain_attr->mr_mode = 0;
	ret = fi_getinfo(api, ft->opts.local, NULL,
			 ft->opts.local ? FI_SOURCE : 0, h, &o->info);
	fi_freeinfo(h);
	FT_CALL(ft, ret);
	FT_CHECK(ft, o->info->fabric_attr->api_version == api,
		 "fabric_attr->api_version is %#x, not %#x",
		 o->info->fabric_attr->api_version, api);
	FT_CALL(ft, fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	FT_CALL(ft, fi_eq_open(o->fabric, &eq, &o->eq, NULL));
	FT_CALL(ft, fi_domain(o->fabric, o->info, &o->domain, NULL));
	FT_CALL(ft, fi_cq_open(o->domain, &cq, &o->cq, NULL));
	FT_CALL(ft, fi_endpoint(o->domain, o->info, &o->ep, NULL));
	FT_CALL(ft, fi_av_open(o->domain, &av, &o->av, NULL));
	/* fi_av_bind is deprecated. */
	FT_CALL(ft, o->av->fid.ops->bind(&o->av->fid, &o->eq->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->av->fid, 0));
	FT_CALL(ft, fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_enable(o->ep));
	return FT_PASS;
}

/* At least the end of what was written: the first intact canary. */
static size_t written(const unsigned char *room)
{
	size_t n = ROOM;

	while (n && room[n - 1] == CANARY)
		n--;
	return n;
}

/* One error of the completion queue, with err_data set by the caller. */
static int cq_error(struct ft *ft, struct ft_objs *o, uint32_t api,
		    char *data, size_t data_size)
{
	_Alignas(16) unsigned char room[ROOM];
	struct fi_cq_err_entry *e = (void *)room;
	size_t size = cq_err_size(api);
	struct fi_cq_tagged_entry entry;
	bool old = FI_VERSION_LT(api, FI_VERSION(1, 5));
	struct fi_context2 ctx;
	unsigned char in[16];
	ssize_t ret;

	FT_CALL(ft, fi_trecv(o->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC,
			     0x77, 0, &ctx));
	FT_CALL(ft, fi_cancel(&o->ep->fid, &ctx));
	do
		ret = fi_cq_read(o->cq, &entry, 1);
	while (ret == -FI_EAGAIN);
	FT_CHECK(ft, ret == -FI_EAVAIL, "fi_cq_read returned %zd", ret);
	memset(room, CANARY, sizeof(room));
	e->err_data = data;
	if (!old)
		e->err_data_size = data_size;
	/* What fi_cq_readerr was before 1.20; now it writes a member by itself. */
	ret = o->cq->ops->readerr(o->cq, e, 0);
	FT_CHECK(ft, ret == 1, "fi_cq_readerr returned %zd", ret);
	FT_CHECK(ft, e->err == FI_ECANCELED && e->op_context == &ctx,
		 "error %d, context %p", e->err, e->op_context);
	FT_CHECK(ft, written(room) <= size,
		 "%zu bytes were written, the structure of %u.%u has %zu",
		 written(room), FI_MAJOR(api), FI_MINOR(api), size);
	if (size == sizeof(*e))
		FT_CHECK(ft, e->src_addr == FI_ADDR_NOTAVAIL,
			 "src_addr is %#llx", (unsigned long long)e->src_addr);
	/* lnx has no error data: err_data_size is 0, and the caller's buffer
	 * stays unused. */
	if (old || !data_size)
		FT_CHECK(ft, !e->err_data, "err_data is %p", e->err_data);
	else
		FT_CHECK(ft, e->err_data == data, "err_data has changed");
	if (!old)
		FT_CHECK(ft, !e->err_data_size, "err_data_size is %zu",
			 e->err_data_size);
	return FT_PASS;
}

/* The same for the event queue, with an invalid address. */
static int eq_error(struct ft *ft, struct ft_objs *o, uint32_t api,
		    char *data, size_t data_size)
{
	_Alignas(16) unsigned char room[ROOM];
	struct fi_eq_err_entry *e = (void *)room;
	bool old = FI_VERSION_LT(api, FI_VERSION(1, 5));
	size_t size = eq_err_size(api);
	unsigned char none[FT_NAME_MAX] = { 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	fi_addr_t addr;
	ssize_t ret;

	FT_CALL(ft, fi_av_insert(o->av, none, 1, &addr, 0, NULL));
	ret = fi_eq_read(o->eq, &event, &entry, sizeof(entry), 0);
	FT_CHECK(ft, ret == -FI_EAVAIL, "fi_eq_read returned %zd", ret);
	memset(room, CANARY, sizeof(room));
	e->err_data = data;
	if (!old)
		e->err_data_size = data_size;
	ret = fi_eq_readerr(o->eq, e, 0);
	FT_CHECK(ft, ret == (ssize_t)size, "fi_eq_readerr returned %zd, "
		 "not %zu", ret, size);
	FT_CHECK(ft, e->fid == &o->av->fid && e->err == FI_EINVAL,
		 "error %d", e->err);
	FT_CHECK(ft, written(room) <= size,
		 "%zu bytes were written, the structure of %u.%u has %zu",
		 written(room), FI_MAJOR(api), FI_MINOR(api), size);
	if (old || !data_size)
		FT_CHECK(ft, !e->err_data, "err_data is %p", e->err_data);
	else
		FT_CHECK(ft, e->err_data == data, "err_data has changed");
	ret = fi_eq_read(o->eq, &event, &entry, sizeof(entry), 0);
	FT_CHECK(ft, ret == sizeof(entry) && event == FI_AV_COMPLETE,
		 "fi_eq_read returned %zd", ret);
	return FT_PASS;
}

static int errors_of(struct ft *ft, const struct ft_case *c)
{
	uint32_t api = (uint32_t)c->a;
	struct ft_objs o;
	char why[FT_WHY_MAX], data[16];
	int result;

	if (!ft_is_bare(ft, "lnx"))
		return ft_skip(ft, "the layout of objects is that of lnx");
	result = open_old(ft, api, &o);
	if (result == FT_PASS)
		result = cq_error(ft, &o, api, data, sizeof(data));
	if (result == FT_PASS)
		result = cq_error(ft, &o, api, data, 0);
	if (result == FT_PASS)
		result = eq_error(ft, &o, api, data, sizeof(data));
	if (result == FT_PASS)
		result = eq_error(ft, &o, api, data, 0);
	memcpy(why, ft->why, sizeof(why));
	if (ft_objs_close(ft, &o) && result == FT_PASS)
		return FT_FAIL;
	memcpy(ft->why, why, sizeof(why));
	return result;
}

int main(int argc, char **argv)
{
	static const uint32_t api[] = {
		FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5),
		FI_VERSION(1, 9), FI_VERSION(1, 19), FI_VERSION(1, 20),
		FI_VERSION(2, 0), FI_VERSION(2, 1),
	};
	static struct ft_case cases[sizeof(api) / sizeof(api[0])];
	size_t i;

	for (i = 0; i < sizeof(api) / sizeof(api[0]); i++) {
		snprintf(cases[i].name, sizeof(cases[i].name),
			 "error-entries-%u.%u", FI_MAJOR(api[i]),
			 FI_MINOR(api[i]));
		cases[i].fn = errors_of;
		cases[i].a = api[i];
		cases[i].ranks = 1;
		cases[i].cfg.alone = true;
	}
	return ft_main(argc, argv, "programs of older API versions", cases,
		       (int)i);
}
