/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A state segment in memory, as small as one can be, with something in each table: for
 * tests of readers.  image_build() writes it; everything may be changed afterwards.
 */
#ifndef STATE_IMAGE_H
#define STATE_IMAGE_H

#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "lnx_state.h"

#define IMAGE_MAX	20480u
#define IMAGE_EID	0x0123456789abcdefull
#define IMAGE_COUNTERS	3u
#define IMAGE_TABLES	12u

enum image_table {
	IMAGE_SCHEMA, IMAGE_CLASS, IMAGE_EP, IMAGE_NOW, IMAGE_BASE, IMAGE_PARAM,
	IMAGE_RAIL, IMAGE_PEER, IMAGE_PATH, IMAGE_RULE,
};

struct image {
	_Alignas(64) uint8_t b[IMAGE_MAX];
	size_t n;
};

static struct lnx_state_header *image_header(struct image *im)
{
	return (struct lnx_state_header *)im->b;
}

static struct lnx_state_table *image_table(struct image *im, enum image_table i)
{
	return (struct lnx_state_table *)(im->b + image_header(im)->tables) + i;
}

static void *image_record(struct image *im, enum image_table t, unsigned i)
{
	const struct lnx_state_table *table = image_table(im, t);

	return im->b + table->offset + (size_t)i * table->record_size;
}

static void image_add(struct image *im, enum image_table t, enum lnx_state_kind kind,
		      uint32_t owner, size_t size, uint32_t n)
{
	*image_table(im, t) = (struct lnx_state_table){
		.seq = 2, .kind = (uint16_t)kind, .owner = owner,
		.record_size = (uint32_t)size, .capacity = n, .count = n, .total = n,
		.offset = im->n,
	};
	im->n += size * n;
}

static void image_records(struct image *im)
{
	const size_t counters = sizeof(struct lnx_state_counters) +
				IMAGE_COUNTERS * sizeof(uint64_t);
	static const char *const names[] = { "send_count", "recv_count", "failed" };
	unsigned i;

	image_add(im, IMAGE_SCHEMA, LNX_STATE_SCHEMA, 0, sizeof(struct lnx_state_counter),
		  IMAGE_COUNTERS);
	image_add(im, IMAGE_CLASS, LNX_STATE_CLASS, 0, sizeof(struct lnx_state_counter), 2);
	image_add(im, IMAGE_EP, LNX_STATE_EP, 7, sizeof(struct lnx_state_ep), 1);
	image_add(im, IMAGE_NOW, LNX_STATE_COUNTERS, 7, counters, 1);
	image_add(im, IMAGE_BASE, LNX_STATE_BASE, 7, counters, 1);
	image_add(im, IMAGE_PARAM, LNX_STATE_PARAM, 7, sizeof(struct lnx_state_param), 2);
	image_add(im, IMAGE_RAIL, LNX_STATE_RAIL, 7, sizeof(struct lnx_state_rail), 2);
	image_add(im, IMAGE_PEER, LNX_STATE_PEER, 7, sizeof(struct lnx_state_peer), 2);
	image_add(im, IMAGE_PATH, LNX_STATE_PATH, 7, sizeof(struct lnx_state_path), 3);
	image_add(im, IMAGE_RULE, LNX_STATE_RULE, 7, sizeof(struct lnx_state_rule), 2);
	for (i = 0; i < IMAGE_COUNTERS; i++)
		strcpy(((struct lnx_state_counter *)image_record(im, IMAGE_SCHEMA, i))->name,
		       names[i]);
	strcpy(((struct lnx_state_counter *)image_record(im, IMAGE_CLASS, 0))->name,
	       "local_error");
	strcpy(((struct lnx_state_counter *)image_record(im, IMAGE_CLASS, 1))->name,
	       "remote_error");
}

static void image_fill(struct image *im)
{
	struct lnx_state_ep *e = image_record(im, IMAGE_EP, 0);
	struct lnx_state_counters *now = image_record(im, IMAGE_NOW, 0);
	struct lnx_state_counters *base = image_record(im, IMAGE_BASE, 0);
	struct lnx_state_param *p = image_record(im, IMAGE_PARAM, 0);
	struct lnx_state_rail *r = image_record(im, IMAGE_RAIL, 0);
	struct lnx_state_peer *peer = image_record(im, IMAGE_PEER, 0);
	struct lnx_state_path *path = image_record(im, IMAGE_PATH, 0);
	struct lnx_state_rule *rule = image_record(im, IMAGE_RULE, 0);
	unsigned i;

	e->number = 7;
	e->eid = IMAGE_EID;
	e->npeer = 2;
	strcpy(e->link, "shm+tcp:eth0,eth1");
	now->when_ns = 5;
	base->when_ns = 3;
	for (i = 0; i < IMAGE_COUNTERS; i++) {
		now->value[i] = 100 * (i + 1);
		base->value[i] = 10 * (i + 1);
	}
	strcpy(p[0].name, "window");
	strcpy(p[0].value, "512");
	strcpy(p[1].name, "spill");
	for (i = 0; i < 2; i++) {
		r[i].index = i;
		snprintf(r[i].name, sizeof(r[i].name), "tcp:eth%u", i);
		snprintf(r[i].nid, sizeof(r[i].nid), "10.0.%u.1@tcp", i);
		peer[i].eid = 20 - i;
		peer[i].addr = i;
		peer[i].npath = (uint8_t)(2 - i);
		peer[i].rec.walk = 1;
	}
	for (i = 0; i < 3; i++) {
		path[i].eid = i < 2 ? 20 : 19;
		path[i].index = i % 2;
		path[i].rec.walk = 1;
		snprintf(path[i].nid, sizeof(path[i].nid), "10.0.%u.2:4711@tcp", i);
	}
	for (i = 0; i < 2; i++) {
		rule[i].rec.walk = 3;
		rule[i].id = 10 + i;
		rule[i].index = i;
		snprintf(rule[i].src, sizeof(rule[i].src), "tcp%u", i);
	}
	image_table(im, IMAGE_RULE)->walk = 3;
	image_table(im, IMAGE_PEER)->walk = image_table(im, IMAGE_PATH)->walk = 1;
}

static void image_build(struct image *im)
{
	struct lnx_state_header *h = image_header(im);

	memset(im, 0, sizeof(*im));
	memcpy(h->magic, LNX_STATE_MAGIC, sizeof(h->magic));
	h->version = LNX_STATE_VERSION;
	h->byte_order = LNX_STATE_ORDER;
	h->tables = (sizeof(*h) + 7) & ~7u;
	h->table_size = sizeof(struct lnx_state_table);
	h->ntable = IMAGE_TABLES;
	h->header_size = h->tables + IMAGE_TABLES * h->table_size;
	h->pid = 4711;
	strcpy(h->program, "a program");
	im->n = (h->header_size + 63) & ~(size_t)63;
	image_records(im);
	image_fill(im);
}

#endif
