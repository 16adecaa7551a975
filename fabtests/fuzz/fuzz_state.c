/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes are refused as a state segment with a reason, or give a snapshot with which
 * everything can be done that lnxctl does.
 *
 * Sources: lnxctl/reader.c
 */
#define LNX_FUZZ_NAME "state"
#define FUZZ_CHANGES 3000
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "lnxctl/reader.h"

struct bytes {
	const uint8_t *data;
	size_t size;
};

static ssize_t read_bytes(void *arg, void *buf, size_t len, uint64_t at)
{
	const struct bytes *b = arg;

	if (at >= b->size)
		return 0;
	/* Short reads happen. */
	len = len < b->size - at ? len : (size_t)(b->size - at);
	len = len > 4000 ? len - len / 3 : len;
	memcpy(buf, b->data + at, len);
	return (ssize_t)len;
}

static void text(const char *s, size_t size)
{
	FUZZ_CHECK(memchr(s, '\0', size));
	for (; *s; s++)
		FUZZ_CHECK(*s >= ' ' && *s <= '~');
}

#define TEXT(member)	text(member, sizeof(member))

static void check_peer(const struct lnx_snap_ep *e, const struct lnx_snap_peer *p)
{
	unsigned i;

	FUZZ_CHECK(p->npath <= p->p.npath);
	for (i = 0; i < p->npath; i++) {
		FUZZ_CHECK(p->path[i] >= e->path && p->path[i] < e->path + e->npath);
		FUZZ_CHECK(p->path[i]->eid == p->p.eid);
		FUZZ_CHECK(!i || p->path[i]->index > p->path[i - 1]->index);
		TEXT(p->path[i]->nid);
	}
}

static void check_ep(const struct lnx_snap *s, const struct lnx_snap_ep *e)
{
	uint64_t sum = 0;
	unsigned i;

	TEXT(e->ep.link);
	TEXT(e->ep.address);
	for (i = 0; i < s->ncounter; i++)
		sum += e->now.value[i] + e->base.value[i];
	for (i = 0; i < e->nparam; i++) {
		TEXT(e->param[i].name);
		TEXT(e->param[i].value);
		TEXT(e->param[i].unit);
	}
	for (i = 0; i < e->nrail; i++) {
		TEXT(e->rail[i].name);
		TEXT(e->rail[i].nid);
		TEXT(e->rail[i].net);
		TEXT(e->rail[i].interface);
	}
	FUZZ_CHECK(e->rules || !e->nrule);
	for (i = 0; i < e->nrule; i++) {
		TEXT(e->rule[i].src);
		TEXT(e->rule[i].dst);
		TEXT(e->rule[i].rte);
	}
	for (i = 0; i < e->npeer; i++)
		check_peer(e, &e->peer[i]);
	sum += lnx_snap_value(s, e, "send_count");
	FUZZ_CHECK(sum || !sum);
	lnx_snap_param(e, "window");
}

static void check(const struct bytes *b, bool live)
{
	struct lnx_source src = {
		.read = read_bytes, .arg = (void *)b, .size = b->size, .live = live,
	};
	struct lnx_snap *s = NULL;
	char why[200];
	unsigned i;
	int ret;

	memset(why, 'x', sizeof(why));
	ret = lnx_snap_read(&src, &s, why, sizeof(why));
	if (ret) {
		FUZZ_CHECK(ret == -EINVAL || ret == -EPROTONOSUPPORT || ret == -ENOMEM);
		text(why, sizeof(why));
		FUZZ_CHECK(strlen(why) > 10);
		return;
	}
	TEXT(s->h.program);
	TEXT(s->h.cpus);
	TEXT(s->h.module);
	for (i = 0; i < s->ncounter; i++)
		TEXT(s->counter[i].name);
	for (i = 0; i < s->nep; i++)
		check_ep(s, &s->ep[i]);
	lnx_snap_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };

	check(&b, false);
	/* What is never whole is waited for, but not for ever. */
	if (size % 16 == 0)
		check(&b, true);
	return 0;
}
