/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a state segment.  See reader.h.
 *
 * Everything is read with pread, never mapped: a file that is cut while it is read would
 * end us with SIGBUS.  A table is read three times: what lies between two equal even
 * counters was not written meanwhile.
 */
#include "lnxctl/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define TRIES		200u		/* for a record that is being written */
#define TABLE_TRIES	8u		/* for a table that moves */
#define DIRECTORY_MAX	(1u << 20)	/* bytes that are read at once */
#define RECORD_MAX	65536u
#define RECORDS_MAX	(1u << 17)	/* of one table */
#define REREADS_MAX	50000u		/* of a whole segment */
#define EPS_MAX		1024u

struct reader {
	const struct lnx_source *src;
	struct lnx_snap *snap;
	struct lnx_state_table *table;
	unsigned ntable;
	unsigned nreread;
	char *why;
	size_t why_size;
};

static int fail(struct reader *r, int err, const char *text)
{
	snprintf(r->why, r->why_size, "%s", text);
	return err;
}

/* All of it, or false. */
static bool get(const struct reader *r, void *buf, uint64_t len, uint64_t at)
{
	uint64_t done = 0;

	if (at > r->src->size || len > r->src->size - at)
		return false;
	while (done < len) {
		ssize_t n = r->src->read(r->src->arg, (char *)buf + done,
					 (size_t)(len - done), at + done);

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

static void pause_a_little(const struct reader *r)
{
	if (r->src->live)
		sched_yield();
}

/* ---- texts ---- */

static void fix(char *text, size_t size)
{
	size_t i;

	text[size - 1] = '\0';
	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

#define FIX(member)	fix((member), sizeof(member))

static void fix_header(struct lnx_state_header *h)
{
	FIX(h->lnx);
	FIX(h->host);
	FIX(h->program);
	FIX(h->rank);
	FIX(h->job);
	FIX(h->cpus);
	FIX(h->module);
}

/* What is behind the header of an older release is no member of it. */
static void cut_header(struct lnx_state_header *h)
{
	uint32_t end = h->mailbox ? LNX_MIN(h->mailbox, h->tables) : h->tables;

	if (end < offsetof(struct lnx_state_header, module) + sizeof(h->module))
		memset(h->module, 0, sizeof(h->module));
}

static void fix_record(uint16_t kind, void *rec)
{
	struct lnx_state_counter *c = rec;
	struct lnx_state_ep *e = rec;
	struct lnx_state_param *p = rec;
	struct lnx_state_rail *rail = rec;
	struct lnx_state_path *path = rec;
	struct lnx_state_rule *rule = rec;

	switch (kind) {
	case LNX_STATE_SCHEMA:
	case LNX_STATE_CLASS:
		FIX(c->name);
		FIX(c->help);
		break;
	case LNX_STATE_EP:
		FIX(e->link);
		FIX(e->address);
		FIX(e->routes);
		FIX(e->missing_route);
		break;
	case LNX_STATE_PARAM:
		FIX(p->name);
		FIX(p->value);
		FIX(p->unit);
		break;
	case LNX_STATE_RAIL:
		FIX(rail->name);
		FIX(rail->nid);
		FIX(rail->net);
		FIX(rail->interface);
		break;
	case LNX_STATE_PATH:
		FIX(path->nid);
		break;
	case LNX_STATE_RULE:
		FIX(rule->src);
		FIX(rule->dst);
		FIX(rule->rte);
		break;
	default:
		break;
	}
}

/* ---- header and directory ---- */

static int read_header(struct reader *r)
{
	struct lnx_state_header *h = &r->snap->h;

	if (!get(r, h, sizeof(*h), 0))
		return fail(r, -EINVAL, "it is too short for a state segment of lnx");
	if (memcmp(h->magic, LNX_STATE_MAGIC, sizeof(h->magic)))
		return fail(r, -EINVAL, "it is no state segment of lnx");
	if (h->byte_order != LNX_STATE_ORDER)
		return fail(r, -EINVAL, "it is of a machine with another byte order");
	if (h->version != LNX_STATE_VERSION) {
		snprintf(r->why, r->why_size, "it has version %" PRIu32 " of the state "
			 "segment, and this lnxctl reads version %d: use the lnxctl "
			 "of that release", h->version, LNX_STATE_VERSION);
		return -EPROTONOSUPPORT;
	}
	cut_header(h);
	fix_header(h);
	return 0;
}

static bool read_entry(struct reader *r, unsigned i, struct lnx_state_table *t)
{
	uint64_t at = r->snap->h.tables + (uint64_t)i * r->snap->h.table_size;
	uint32_t before, after;
	unsigned tries;

	for (tries = 0; tries < TRIES; tries++) {
		memset(t, 0, sizeof(*t));
		if (!get(r, &before, sizeof(before), at) ||
		    !get(r, t, LNX_MIN(sizeof(*t), r->snap->h.table_size), at) ||
		    !get(r, &after, sizeof(after), at))
			return false;
		if (before == after && t->seq == before && !(before & 1))
			return true;
		pause_a_little(r);
	}
	return false;
}

static uint32_t seq_at(const void *records, size_t i, size_t size)
{
	uint32_t seq;

	memcpy(&seq, (const char *)records + i * size, sizeof(seq));
	return seq;
}

/* All entries at once, three times as records are: most processes use few of many.  Those that
 * were being written are read one by one; so are all, if this fails. */
static void read_entries(struct reader *r)
{
	const struct lnx_state_header *h = &r->snap->h;
	size_t size = h->table_size, len = r->ntable * size;
	char *three = len <= DIRECTORY_MAX ? malloc(3 * len + 1) : NULL;
	bool ok = three && get(r, three, len, h->tables) && get(r, three + len, len, h->tables) &&
		  get(r, three + 2 * len, len, h->tables);
	unsigned i;

	for (i = 0; i < r->ntable; i++) {
		struct lnx_state_table *t = &r->table[i];
		uint32_t seq = ok ? seq_at(three + len, i, size) : 1;

		if (!(seq & 1) && seq_at(three, i, size) == seq &&
		    seq_at(three + 2 * len, i, size) == seq)
			memcpy(t, three + len + i * size, LNX_MIN(sizeof(*t), size));
		else if (!read_entry(r, i, t))
			memset(t, 0, sizeof(*t));
	}
	free(three);
}

static int read_directory(struct reader *r)
{
	const struct lnx_state_header *h = &r->snap->h;

	if (h->table_size < sizeof(uint32_t) || h->table_size > RECORD_MAX ||
	    h->ntable > LNX_STATE_TABLES * 16u)
		return fail(r, -EINVAL, "its directory cannot be right");
	r->table = calloc(h->ntable ? h->ntable : 1, sizeof(*r->table));
	if (!r->table)
		return fail(r, -ENOMEM, "out of memory");
	r->ntable = h->ntable;
	read_entries(r);
	return 0;
}

/* ---- records ---- */

/* Can the table be right, and is all of it in the file? */
static bool plausible(const struct reader *r, const struct lnx_state_table *t)
{
	return t->record_size >= sizeof(struct lnx_state_record) &&
	       t->record_size <= RECORD_MAX && t->count <= t->capacity &&
	       t->count <= RECORDS_MAX && t->offset <= r->src->size &&
	       (uint64_t)t->count * t->record_size <= r->src->size - t->offset;
}

static void put(uint16_t kind, void *own, size_t own_size, const void *rec, size_t size)
{
	memset(own, 0, own_size);
	memcpy(own, rec, LNX_MIN(own_size, size));
	fix_record(kind, own);
}

/* One record again, until it is whole.  False: it never is. */
static bool reread(struct reader *r, const struct lnx_state_table *t, size_t i,
		   void *buf)
{
	uint64_t at = t->offset + (uint64_t)i * t->record_size;
	unsigned tries, max = r->src->live ? TRIES : 1;
	uint32_t before, after;

	for (tries = 0; tries < max && r->nreread < REREADS_MAX; tries++, r->nreread++) {
		if (!get(r, &before, sizeof(before), at) ||
		    !get(r, buf, t->record_size, at) ||
		    !get(r, &after, sizeof(after), at))
			return false;
		if (before == after && seq_at(buf, 0, t->record_size) == before &&
		    !(before & 1))
			return true;
		pause_a_little(r);
	}
	return false;
}

/* What is torn is used all the same: nothing better will come. */
static void take(struct reader *r, const struct lnx_state_table *t, char *out,
		 size_t own_size, const char *a, char *b, const char *c)
{
	size_t i, size = t->record_size;

	for (i = 0; i < t->count; i++) {
		uint32_t seq = seq_at(b, i, size);

		if ((seq & 1) || seq_at(a, i, size) != seq || seq_at(c, i, size) != seq)
			r->snap->torn += !reread(r, t, i, b + i * size);
		put(t->kind, out + i * own_size, own_size, b + i * size, size);
	}
}

/* False: it cannot be read. */
static bool read_records(struct reader *r, const struct lnx_state_table *t, char *out,
			 size_t own_size)
{
	size_t len = (size_t)t->count * t->record_size;
	char *three = malloc(3 * len + 1);
	bool ok;

	if (!three)
		return false;
	ok = get(r, three, len, t->offset) && get(r, three + len, len, t->offset) &&
	     get(r, three + 2 * len, len, t->offset);
	if (ok)
		take(r, t, out, own_size, three, three + len, three + 2 * len);
	free(three);
	return ok;
}

/*
 * All records of entry i of the directory, as an array of own_size each.  NULL with
 * *n 0: there are none.
 */
static void *read_table(struct reader *r, unsigned i, size_t own_size, unsigned *n)
{
	struct lnx_state_table *t = &r->table[i], again;
	unsigned tries;
	char *out;

	*n = 0;
	for (tries = 0; tries < TABLE_TRIES; tries++) {
		if (!plausible(r, t) || !t->count)
			return NULL;
		out = calloc(t->count, own_size);
		if (!out)
			return NULL;
		/* A table that has grown is somewhere else. */
		if (read_records(r, t, out, own_size) && read_entry(r, i, &again) &&
		    again.offset == t->offset && again.kind == t->kind &&
		    again.owner == t->owner) {
			*n = t->count;
			return out;
		}
		free(out);
		if (!r->src->live || !read_entry(r, i, &again) ||
		    again.kind != t->kind || again.owner != t->owner)
			return NULL;
		*t = again;
	}
	return NULL;
}

static int find_table(const struct reader *r, enum lnx_state_kind kind, uint32_t owner)
{
	unsigned i;

	for (i = 0; i < r->ntable; i++)
		if (r->table[i].kind == kind && r->table[i].owner == owner)
			return (int)i;
	return -1;
}

static void *read_of(struct reader *r, enum lnx_state_kind kind, uint32_t owner,
		     size_t own_size, unsigned *n)
{
	int i = find_table(r, kind, owner);

	*n = 0;
	return i < 0 ? NULL : read_table(r, (unsigned)i, own_size, n);
}

/* ---- endpoints ---- */

static int read_counters(struct reader *r, enum lnx_state_kind kind, uint32_t owner,
			 struct lnx_snap_counters *c)
{
	unsigned n = r->snap->ncounter, got;
	size_t size = sizeof(struct lnx_state_counters) + n * sizeof(uint64_t);
	struct lnx_state_counters *rec = read_of(r, kind, owner, size, &got);

	c->value = calloc(n ? n : 1, sizeof(*c->value));
	if (c->value && rec) {
		memcpy(c->value, rec->value, n * sizeof(*c->value));
		c->when_ns = rec->when_ns;
	}
	free(rec);
	return c->value ? 0 : -ENOMEM;
}

/* By eid, by index, and the newest first. */
static int by_path(const void *a, const void *b)
{
	const struct lnx_state_path *x = a, *y = b;

	if (x->eid != y->eid)
		return x->eid < y->eid ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return (int32_t)(y->rec.walk - x->rec.walk) > 0 ? 1 :
	       y->rec.walk == x->rec.walk ? 0 : -1;
}

static int by_eid(const void *a, const void *b)
{
	const struct lnx_snap_peer *x = a, *y = b;

	if (x->p.eid != y->p.eid)
		return x->p.eid < y->p.eid ? -1 : 1;
	return (int32_t)(y->p.rec.walk - x->p.rec.walk) > 0 ? 1 :
	       y->p.rec.walk == x->p.rec.walk ? 0 : -1;
}

static int by_addr(const void *a, const void *b)
{
	const struct lnx_snap_peer *x = a, *y = b;

	if (x->p.addr != y->p.addr)
		return x->p.addr < y->p.addr ? -1 : 1;
	return x->p.eid < y->p.eid ? -1 : x->p.eid > y->p.eid;
}

/* A walk that is under way may have written an object that is still in its old place,
 * too: the newest counts. */
static void unique_paths(struct lnx_snap_ep *e)
{
	unsigned i, n = 0;

	if (e->npath)
		qsort(e->path, e->npath, sizeof(*e->path), by_path);
	for (i = 0; i < e->npath; i++)
		if (!n || e->path[n - 1].eid != e->path[i].eid ||
		    e->path[n - 1].index != e->path[i].index)
			e->path[n++] = e->path[i];
	e->npath = n;
}

static void unique_peers(struct lnx_snap_ep *e)
{
	unsigned i, n = 0;

	if (e->npeer)
		qsort(e->peer, e->npeer, sizeof(*e->peer), by_eid);
	for (i = 0; i < e->npeer; i++)
		if (!n || e->peer[n - 1].p.eid != e->peer[i].p.eid)
			e->peer[n++] = e->peer[i];
	e->npeer = n;
}

/* Both are sorted by eid. */
static int join_paths(struct lnx_snap_ep *e, struct lnx_state_path ***slots)
{
	struct lnx_state_path **slot = calloc(e->npath ? e->npath : 1, sizeof(*slot));
	unsigned i, k = 0, n = 0;

	if (!slot)
		return -ENOMEM;
	*slots = slot;
	for (i = 0; i < e->npeer; i++) {
		struct lnx_snap_peer *p = &e->peer[i];

		while (k < e->npath && e->path[k].eid < p->p.eid)
			k++;
		p->path = slot + n;
		for (; k < e->npath && e->path[k].eid == p->p.eid; k++)
			if (e->path[k].index < p->p.npath) {
				slot[n++] = &e->path[k];
				p->npath++;
			}
	}
	return 0;
}

static int read_peers(struct reader *r, struct lnx_snap_ep *e)
{
	int table = find_table(r, LNX_STATE_PEER, e->ep.number);
	struct lnx_state_peer *peer;
	struct lnx_state_path **slots = NULL;
	unsigned i, n;
	int ret;

	if (table >= 0) {
		e->npeer_total = r->table[table].total;
		e->walk_ns = r->table[table].walk_ns;
	}
	peer = read_of(r, LNX_STATE_PEER, e->ep.number, sizeof(*peer), &n);
	e->path = read_of(r, LNX_STATE_PATH, e->ep.number, sizeof(*e->path), &e->npath);
	e->peer = calloc(n ? n : 1, sizeof(*e->peer));
	if (!e->peer) {
		free(peer);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		e->peer[i].p = peer[i];
	free(peer);
	e->npeer = n;
	unique_peers(e);
	unique_paths(e);
	ret = join_paths(e, &slots);
	if (ret)
		return ret;
	/* The first peer has the first slots, and owns all. */
	if (!e->npeer)
		free(slots);
	else
		qsort(e->peer, e->npeer, sizeof(*e->peer), by_addr);
	return 0;
}

static struct lnx_state_path **slots_of(const struct lnx_snap_ep *e)
{
	struct lnx_state_path **first = NULL;
	unsigned i;

	for (i = 0; i < e->npeer; i++)
		if (!first || e->peer[i].path < first)
			first = e->peer[i].path;
	return first;
}

/* Those of one list: it may be changed while it is read. */
static void read_rules(struct reader *r, struct lnx_snap_ep *e)
{
	int table = find_table(r, LNX_STATE_RULE, e->ep.number);
	unsigned tries, i, n, other = 0;
	struct lnx_state_table again;

	if (table < 0)
		return;
	e->rules = true;
	for (tries = 0; tries < TABLE_TRIES; tries++) {
		free(e->rule);
		e->rule = read_table(r, (unsigned)table, sizeof(*e->rule), &n);
		for (i = e->nrule = 0; i < n; i++)
			if (e->rule[i].rec.walk == (uint32_t)r->table[table].walk)
				e->rule[e->nrule++] = e->rule[i];
		other = n - e->nrule;
		if (!other || !r->src->live)
			break;
		if (!read_entry(r, (unsigned)table, &again) ||
		    again.kind != LNX_STATE_RULE || again.owner != e->ep.number)
			break;
		r->table[table] = again;
	}
	r->snap->torn += other;
}

static int read_ep(struct reader *r, unsigned i, struct lnx_snap_ep *e)
{
	struct lnx_state_ep *ep;
	uint32_t owner = r->table[i].owner;
	unsigned n;
	int ret;

	ep = read_table(r, i, sizeof(*ep), &n);
	if (!ep)
		return -ENOENT;
	e->ep = *ep;
	free(ep);
	e->ep.number = owner;
	ret = read_counters(r, LNX_STATE_COUNTERS, owner, &e->now);
	if (!ret)
		ret = read_counters(r, LNX_STATE_BASE, owner, &e->base);
	if (ret)
		return ret;
	e->param = read_of(r, LNX_STATE_PARAM, owner, sizeof(*e->param), &e->nparam);
	e->rail = read_of(r, LNX_STATE_RAIL, owner, sizeof(*e->rail), &e->nrail);
	read_rules(r, e);
	return read_peers(r, e);
}

static void free_ep(struct lnx_snap_ep *e)
{
	free(slots_of(e));
	free(e->now.value);
	free(e->base.value);
	free(e->param);
	free(e->rail);
	free(e->rule);
	free(e->peer);
	free(e->path);
}

static int read_eps(struct reader *r)
{
	struct lnx_snap *s = r->snap;
	unsigned i, n = 0;
	int ret;

	for (i = 0; i < r->ntable; i++)
		n += r->table[i].kind == LNX_STATE_EP;
	n = LNX_MIN(n, EPS_MAX);
	s->ep = calloc(n ? n : 1, sizeof(*s->ep));
	if (!s->ep)
		return fail(r, -ENOMEM, "out of memory");
	for (i = 0; i < r->ntable && s->nep < n; i++) {
		struct lnx_snap_ep *e = &s->ep[s->nep];

		if (r->table[i].kind != LNX_STATE_EP)
			continue;
		ret = read_ep(r, i, e);
		if (ret) {
			free_ep(e);
			memset(e, 0, sizeof(*e));
		} else {
			s->nep++;
		}
		if (ret == -ENOMEM)
			return fail(r, -ENOMEM, "out of memory");
	}
	return 0;
}

int lnx_snap_read(const struct lnx_source *src, struct lnx_snap **out, char *why,
		  size_t why_size)
{
	struct reader r = { .src = src, .why = why, .why_size = why_size };
	int ret;

	r.snap = calloc(1, sizeof(*r.snap));
	if (!r.snap)
		return fail(&r, -ENOMEM, "out of memory");
	ret = read_header(&r);
	if (!ret)
		ret = read_directory(&r);
	if (!ret) {
		r.snap->counter = read_of(&r, LNX_STATE_SCHEMA, 0,
					  sizeof(*r.snap->counter),
					  &r.snap->ncounter);
		r.snap->class = read_of(&r, LNX_STATE_CLASS, 0,
					sizeof(*r.snap->class), &r.snap->nclass);
		ret = read_eps(&r);
	}
	free(r.table);
	if (ret) {
		lnx_snap_free(r.snap);
		return ret;
	}
	*out = r.snap;
	return 0;
}

void lnx_snap_free(struct lnx_snap *s)
{
	unsigned i;

	if (!s)
		return;
	for (i = 0; i < s->nep; i++)
		free_ep(&s->ep[i]);
	free(s->ep);
	free(s->counter);
	free(s->class);
	free(s);
}

int lnx_snap_counter(const struct lnx_snap *s, const char *name)
{
	unsigned i;

	for (i = 0; i < s->ncounter; i++)
		if (!strcmp(s->counter[i].name, name))
			return (int)i;
	return -1;
}

int lnx_snap_class(const struct lnx_snap *s, const char *name)
{
	unsigned i;

	for (i = 0; i < s->nclass && i < LNX_STATE_CLASSES; i++)
		if (!strcmp(s->class[i].name, name))
			return (int)i;
	return -1;
}

uint64_t lnx_snap_value(const struct lnx_snap *s, const struct lnx_snap_ep *e,
			const char *name)
{
	int i = lnx_snap_counter(s, name);

	return i < 0 ? 0 : e->now.value[i] - e->base.value[i];
}

const struct lnx_state_param *lnx_snap_param(const struct lnx_snap_ep *e,
					     const char *name)
{
	unsigned i;

	for (i = 0; i < e->nparam; i++)
		if (!strcmp(e->param[i].name, name))
			return &e->param[i];
	return NULL;
}
