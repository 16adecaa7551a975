/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided MPI: every rank works on the windows of all ranks at once, in every
 * kind of window and of epoch.  Data is checked byte by byte, and what was
 * counted must have the exact sum.  COUNT rounds.
 *
 * Options that come first: -w KIND tests only this kind of window, "allocated",
 * "created" or "dynamic"; repeated, it adds a kind.  -x leaves compare_and_swap
 * out.
 */
#include "check.h"

#define MAX_BYTES	(1 << 20)
#define GUARD		64		/* bytes after a slot that must not change */
#define SLOT		(MAX_BYTES + GUARD)
#define CELLS		8		/* 64-bit counters after the slots */
#define UNTOUCHED	0x3c
#define TICKETS		40		/* increments by each rank */

enum epoch { FENCE, PSCW, LOCK, LOCK_ALL, EPOCHS };
enum kind { ALLOCATED, CREATED, DYNAMIC, KINDS };

static const char *const epoch_names[] = {
	"fence", "post/start", "lock", "lock_all"
};
static const char *const kind_names[] = { "allocated", "created", "dynamic" };
static const int sizes[] = {
	8, 72, 1000, 4096, 16384, 20000, 65536, 262144, MAX_BYTES
};

struct osc {
	struct mc mc;
	unsigned kinds;		/* kinds to test, one bit each */
	bool swaps;
	enum kind kind;
	enum epoch epoch;
	MPI_Win win;
	MPI_Group all_ranks;
	char *base;		/* our window: a slot per rank, then cells */
	MPI_Aint *at;		/* address of the window of each rank */
	char *out, *in;		/* a slot per rank */
	uint64_t seq;		/* of contents, equal on all ranks */
};

static size_t window_bytes(const struct osc *o)
{
	return (size_t)o->mc.n * SLOT + CELLS * sizeof(int64_t);
}

static MPI_Aint slot_at(const struct osc *o, int target, int slot)
{
	return o->at[target] + (MPI_Aint)slot * SLOT;
}

static MPI_Aint cell_at(const struct osc *o, int target, int cell)
{
	return slot_at(o, target, o->mc.n) +
	       cell * (MPI_Aint)sizeof(int64_t);
}

static char *slot(const struct osc *o, char *base, int i)
{
	(void)o;
	return base + (size_t)i * SLOT;
}

static int64_t *cells(const struct osc *o)
{
	return (int64_t *)(void *)slot(o, o->base, o->mc.n);
}

/* The i-th target: each rank begins with a different one. */
static int target(const struct osc *o, int i)
{
	return (o->mc.rank + 1 + i) % o->mc.n;
}

static const char *label(const struct osc *o, const char *what)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s, %s window, %s", what,
		 kind_names[o->kind], epoch_names[o->epoch]);
	return text;
}

static void window_open(struct osc *o)
{
	MPI_Aint mine = 0;
	void *base = NULL;

	if (o->kind == ALLOCATED) {
		MPI_Win_allocate((MPI_Aint)window_bytes(o), 1, MPI_INFO_NULL,
				 MPI_COMM_WORLD, &base, &o->win);
	} else {
		base = mc_alloc(&o->mc, window_bytes(o));
	}
	o->base = base;
	if (o->kind == CREATED)
		MPI_Win_create(base, (MPI_Aint)window_bytes(o), 1,
			       MPI_INFO_NULL, MPI_COMM_WORLD, &o->win);
	if (o->kind == DYNAMIC) {
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &o->win);
		MPI_Win_attach(o->win, base, (MPI_Aint)window_bytes(o));
		MPI_Get_address(base, &mine);
	}
	MPI_Allgather(&mine, 1, MPI_AINT, o->at, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void window_close(struct osc *o)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (o->kind == DYNAMIC)
		MPI_Win_detach(o->win, o->base);
	MPI_Win_free(&o->win);
	if (o->kind != ALLOCATED)
		free(o->base);
}

/* Starts an epoch in which all ranks may access all windows; see reach(). */
static void begin(struct osc *o)
{
	MPI_Barrier(MPI_COMM_WORLD);
	switch (o->epoch) {
	case FENCE:
		MPI_Win_fence(MPI_MODE_NOPRECEDE, o->win);
		break;
	case PSCW:
		MPI_Win_post(o->all_ranks, 0, o->win);
		MPI_Win_start(o->all_ranks, 0, o->win);
		break;
	case LOCK:
		break;
	default:
		MPI_Win_lock_all(0, o->win);
	}
}

/*
 * Called around all accesses to one target.  Locks are taken one after the
 * other: with three ranks that each hold several, osc/pt2pt of Open MPI 4.1
 * never grants them, over any network.
 */
static void reach(struct osc *o, int t)
{
	if (o->epoch == LOCK)
		MPI_Win_lock(MPI_LOCK_SHARED, t, 0, o->win);
}

static void leave(struct osc *o, int t)
{
	if (o->epoch == LOCK)
		MPI_Win_unlock(t, o->win);
}

/* All operations since begin() are complete, at all ranks. */
static void end(struct osc *o)
{
	switch (o->epoch) {
	case FENCE:
		MPI_Win_fence(MPI_MODE_NOSUCCEED, o->win);
		break;
	case PSCW:
		MPI_Win_complete(o->win);
		MPI_Win_wait(o->win);
		break;
	case LOCK:
		break;
	default:
		MPI_Win_unlock_all(o->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Around loads and stores of our own window, outside of epochs. */
static void own_begin(struct osc *o)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, o->mc.rank, 0, o->win);
}

static void own_end(struct osc *o)
{
	MPI_Win_unlock(o->mc.rank, o->win);
}

static void own_fill(struct osc *o, int byte)
{
	own_begin(o);
	memset(o->base, byte, window_bytes(o));
	own_end(o);
}

static bool passive(const struct osc *o)
{
	return o->epoch == LOCK || o->epoch == LOCK_ALL;
}

static void check_guard(struct osc *o, int from, size_t size)
{
	if (pattern_is_filled(slot(o, o->base, from) + size, GUARD,
			      UNTOUCHED) >= 0)
		mc_fail(&o->mc, "%s: rank %d wrote after its %zu bytes",
			label(o, "put"), from, size);
}

/* Every rank writes a slot of each other rank, then reads it back. */
static void put_and_get(struct osc *o, int size)
{
	uint64_t seq = o->seq++ * 4096;
	int i, t;

	own_fill(o, UNTOUCHED);
	for (t = 0; t < o->mc.n; t++)
		mc_fill(&o->mc, slot(o, o->out, t), (size_t)size, o->mc.rank,
			seq + (uint64_t)t);
	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		reach(o, t);
		MPI_Put(slot(o, o->out, t), size, MPI_BYTE, t,
			slot_at(o, t, o->mc.rank), size, MPI_BYTE, o->win);
		leave(o, t);
	}
	end(o);
	own_begin(o);
	for (i = 0; i < o->mc.n; i++) {
		mc_check(&o->mc, slot(o, o->base, i), (size_t)size, i,
			 seq + (uint64_t)o->mc.rank, label(o, "put"));
		check_guard(o, i, (size_t)size);
	}
	own_end(o);
	memset(o->in, 0, (size_t)o->mc.n * SLOT);
	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		reach(o, t);
		MPI_Get(slot(o, o->in, t), size, MPI_BYTE, t,
			slot_at(o, t, o->mc.rank), size, MPI_BYTE, o->win);
		leave(o, t);
	}
	end(o);
	for (t = 0; t < o->mc.n; t++)
		mc_check(&o->mc, slot(o, o->in, t), (size_t)size, o->mc.rank,
			 seq + (uint64_t)t, label(o, "get"));
}

/* Requests, and flushes within an epoch, for all targets at once. */
static void flushes(struct osc *o, int size)
{
	uint64_t seq = o->seq++ * 4096;
	MPI_Request *req = mc_alloc(&o->mc, (size_t)o->mc.n * sizeof(*req));
	int i, t;

	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		mc_fill(&o->mc, slot(o, o->out, t), (size_t)size, o->mc.rank,
			seq + (uint64_t)t);
		MPI_Rput(slot(o, o->out, t), size, MPI_BYTE, t,
			 slot_at(o, t, o->mc.rank), size, MPI_BYTE, o->win,
			 &req[i]);
	}
	MPI_Waitall(o->mc.n, req, MPI_STATUSES_IGNORE);
	/* The buffer is ours again, though the target may not have the data yet. */
	memset(o->out, 0, (size_t)o->mc.n * SLOT);
	MPI_Win_flush_all(o->win);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		memset(slot(o, o->in, t), 0, (size_t)size);
		MPI_Rget(slot(o, o->in, t), size, MPI_BYTE, t,
			 slot_at(o, t, o->mc.rank), size, MPI_BYTE, o->win,
			 &req[i]);
	}
	MPI_Waitall(o->mc.n, req, MPI_STATUSES_IGNORE);
	for (t = 0; t < o->mc.n; t++)
		mc_check(&o->mc, slot(o, o->in, t), (size_t)size, o->mc.rank,
			 seq + (uint64_t)t, label(o, "rput and rget"));
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		memset(slot(o, o->in, t), 0, (size_t)size);
		MPI_Get(slot(o, o->in, t), size, MPI_BYTE, t,
			slot_at(o, t, o->mc.rank), size, MPI_BYTE, o->win);
		MPI_Win_flush_local(t, o->win);
		mc_check(&o->mc, slot(o, o->in, t), (size_t)size, o->mc.rank,
			 seq + (uint64_t)t, label(o, "flushed get"));
	}
	end(o);
	free(req);
}

/* All ranks add to the same elements of all ranks. */
static void accumulate(struct osc *o, int size)
{
	int64_t *add = (void *)o->out, *sum = (void *)o->base, want;
	int i, j, t, n = size / (int)sizeof(*add);

	own_fill(o, 0);
	for (j = 0; j < n; j++)
		add[j] = (int64_t)(o->mc.rank + 1) * (j + 1);
	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		reach(o, t);
		MPI_Accumulate(add, n, MPI_INT64_T, t, slot_at(o, t, 0), n,
			       MPI_INT64_T, MPI_SUM, o->win);
		leave(o, t);
	}
	end(o);
	own_begin(o);
	for (j = 0; j < n; j++) {
		want = (int64_t)o->mc.n * (o->mc.n + 1) / 2 * (j + 1);
		if (sum[j] != want)
			mc_fail(&o->mc, "%s: element %d of %d is %lld, not "
				"%lld", label(o, "accumulate"), j, n,
				(long long)sum[j], (long long)want);
	}
	own_end(o);
}

/*
 * Each rank adds a bit of its own and gets the value before: over all ranks,
 * every element was seen with 0, 1, ... n - 1 bits set, each exactly once.
 */
static void get_accumulate(struct osc *o, int size)
{
	int64_t *add = (void *)o->out, *old = (void *)o->in;
	int64_t *seen = mc_alloc(&o->mc, (size_t)size), all;
	int i, j, t, n = size / (int)sizeof(*add);

	own_fill(o, 0);
	all = ((int64_t)1 << o->mc.n) - 1;
	for (j = 0; j < n; j++)
		add[j] = (int64_t)1 << o->mc.rank;
	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		memset(slot(o, o->in, t), 0xff, (size_t)size);
		reach(o, t);
		MPI_Get_accumulate(add, n, MPI_INT64_T, slot(o, o->in, t), n,
				   MPI_INT64_T, t, slot_at(o, t, 0), n,
				   MPI_INT64_T, MPI_SUM, o->win);
		leave(o, t);
	}
	end(o);
	for (t = 0; t < o->mc.n; t++) {
		old = (void *)slot(o, o->in, t);
		for (j = 0; j < n; j++) {
			if (old[j] & ~all || old[j] & add[j])
				mc_fail(&o->mc, "%s: element %d of rank %d was "
					"%llx", label(o, "get_accumulate"), j,
					t, (long long)old[j]);
			old[j] = (int64_t)1 << __builtin_popcountll(
					(unsigned long long)old[j]);
		}
		MPI_Allreduce(old, seen, n, MPI_INT64_T, MPI_SUM,
			      MPI_COMM_WORLD);
		for (j = 0; j < n; j++)
			if (seen[j] != all)
				mc_fail(&o->mc, "%s: element %d of rank %d was "
					"seen in states %llx by all",
					label(o, "get_accumulate"), j, t,
					(long long)seen[j]);
	}
	free(seen);
}

/* The results of fetch_and_op at all ranks together are 0, 1, 2 ..., each once. */
static void tickets(struct osc *o)
{
	int total = o->mc.n * TICKETS, i, t;
	int64_t one = 1, got[TICKETS], final = -1;
	int *had = mc_alloc(&o->mc, (size_t)total * sizeof(*had));

	for (t = 0; t < o->mc.n; t++) {
		own_fill(o, 0);
		memset(had, 0, (size_t)total * sizeof(*had));
		begin(o);
		reach(o, t);
		for (i = 0; i < TICKETS; i++) {
			MPI_Fetch_and_op(&one, &got[i], MPI_INT64_T, t,
					 cell_at(o, t, 0), MPI_SUM, o->win);
			/* One at a time, or all at once. */
			if (passive(o) && i % 2)
				MPI_Win_flush(t, o->win);
		}
		leave(o, t);
		end(o);
		for (i = 0; i < TICKETS; i++) {
			if (got[i] < 0 || got[i] >= total)
				mc_fail(&o->mc, "%s: ticket %lld of %d",
					label(o, "fetch_and_op"),
					(long long)got[i], total);
			had[got[i]]++;
		}
		MPI_Allreduce(MPI_IN_PLACE, had, total, MPI_INT, MPI_SUM,
			      MPI_COMM_WORLD);
		for (i = 0; i < total; i++)
			if (had[i] != 1)
				mc_fail(&o->mc, "%s: ticket %d of rank %d was "
					"given %d times",
					label(o, "fetch_and_op"), i, t, had[i]);
		begin(o);
		reach(o, t);
		MPI_Fetch_and_op(NULL, &final, MPI_INT64_T, t, cell_at(o, t, 0),
				 MPI_NO_OP, o->win);
		leave(o, t);
		end(o);
		if (final != total)
			mc_fail(&o->mc, "%s: the counter of rank %d is %lld, "
				"not %d", label(o, "fetch_and_op"), t,
				(long long)final, total);
	}
	free(had);
}

/* Only one rank finds the value that all ranks try to replace. */
static void elect(struct osc *o)
{
	int64_t me = o->mc.rank + 1, empty = 0, found;
	int t, won, all;

	own_fill(o, 0);
	for (t = 0; t < o->mc.n; t++) {
		found = -1;
		begin(o);
		reach(o, t);
		MPI_Compare_and_swap(&me, &empty, &found, MPI_INT64_T, t,
				     cell_at(o, t, 1), o->win);
		leave(o, t);
		end(o);
		won = found == 0;
		MPI_Allreduce(&won, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (all != 1 || found < 0 || found > o->mc.n || found == me)
			mc_fail(&o->mc, "%s: %d ranks won at rank %d, and we "
				"found %lld", label(o, "compare_and_swap"), all,
				t, (long long)found);
	}
}

/* Counts with compare_and_swap, repeated until no other rank has interfered. */
static void swap_count(struct osc *o)
{
	int64_t was, next, found;
	int i, j, t;

	own_fill(o, 0);
	begin(o);
	for (i = 0; i < o->mc.n; i++) {
		t = target(o, i);
		reach(o, t);
		for (was = 0, j = 0; j < TICKETS / 4; was = found) {
			next = was + 1;
			MPI_Compare_and_swap(&next, &was, &found, MPI_INT64_T,
					     t, cell_at(o, t, 2), o->win);
			MPI_Win_flush(t, o->win);
			j += found == was;
		}
		leave(o, t);
	}
	end(o);
	own_begin(o);
	if (cells(o)[2] != o->mc.n * (TICKETS / 4))
		mc_fail(&o->mc, "%s: counted %lld, not %d",
			label(o, "compare_and_swap"), (long long)cells(o)[2],
			o->mc.n * (TICKETS / 4));
	own_end(o);
}

/* With an exclusive lock, a get, an addition and a put make an exact sum. */
static void exclusive(struct osc *o)
{
	int64_t value;
	int i, j, t;

	own_fill(o, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (j = 0; j < TICKETS / 8; j++) {
		for (i = 0; i < o->mc.n; i++) {
			t = target(o, i);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, o->win);
			MPI_Get(&value, 1, MPI_INT64_T, t, cell_at(o, t, 3), 1,
				MPI_INT64_T, o->win);
			MPI_Win_flush(t, o->win);
			value++;
			MPI_Put(&value, 1, MPI_INT64_T, t, cell_at(o, t, 3), 1,
				MPI_INT64_T, o->win);
			MPI_Win_unlock(t, o->win);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	own_begin(o);
	if (cells(o)[3] != o->mc.n * (TICKETS / 8))
		mc_fail(&o->mc, "%s: counted %lld, not %d",
			label(o, "exclusive lock"), (long long)cells(o)[3],
			o->mc.n * (TICKETS / 8));
	own_end(o);
}

/*
 * Data, then a flag: a rank that sees the flag must see the data.  In a ring,
 * each rank writes to the next one and watches its own flag, which makes the
 * MPI library progress.
 */
static void announce(struct osc *o, int size)
{
	int next = (o->mc.rank + 1) % o->mc.n;
	int before = (o->mc.rank + o->mc.n - 1) % o->mc.n;
	uint64_t seq = o->seq++ * 4096;
	int64_t flag = (int64_t)seq + 1, seen = 0;

	own_fill(o, 0);
	mc_fill(&o->mc, o->out, (size_t)size, o->mc.rank, seq);
	begin(o);
	reach(o, next);
	MPI_Put(o->out, size, MPI_BYTE, next, slot_at(o, next, 0), size,
		MPI_BYTE, o->win);
	MPI_Win_flush(next, o->win);
	MPI_Accumulate(&flag, 1, MPI_INT64_T, next, cell_at(o, next, 4), 1,
		       MPI_INT64_T, MPI_REPLACE, o->win);
	MPI_Win_flush(next, o->win);
	leave(o, next);
	reach(o, o->mc.rank);
	while (!seen) {
		MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, o->mc.rank,
				 cell_at(o, o->mc.rank, 4), MPI_NO_OP, o->win);
		MPI_Win_flush(o->mc.rank, o->win);
		/* osc/rdma makes progress for other ranks only while it holds a
		 * lock for fetch_and_op, for which they wait; so also make
		 * progress here. */
		MPI_Win_sync(o->win);
	}
	if (seen != flag)
		mc_fail(&o->mc, "%s: the flag is %lld, not %lld",
			label(o, "announce"), (long long)seen, (long long)flag);
	MPI_Win_sync(o->win);
	mc_check(&o->mc, o->base, (size_t)size, before, seq,
		 label(o, "put before a flag"));
	leave(o, o->mc.rank);
	end(o);
}

static void one_window(struct osc *o, long round)
{
	size_t i;
	int e;

	window_open(o);
	for (e = FENCE; e < EPOCHS; e++) {
		o->epoch = (enum epoch)e;
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			put_and_get(o, sizes[i] - (int)(round & 1));
			/* Large sizes are slow: many gets, puts and locks. */
			if (sizes[i] <= 20000 || e == FENCE) {
				accumulate(o, sizes[i]);
				get_accumulate(o, sizes[i]);
			}
			if (o->epoch == LOCK_ALL)
				flushes(o, sizes[i]);
			if (passive(o))
				announce(o, sizes[i]);
		}
		tickets(o);
		if (o->swaps)
			elect(o);
		if (o->swaps && passive(o))
			swap_count(o);
		if (passive(o))
			exclusive(o);
	}
	window_close(o);
}

/* Removes our own options from the arguments.  False: they are invalid. */
static bool options(struct osc *o, int *argc, char **argv)
{
	int kind, used;

	o->swaps = true;
	for (; *argc > 1; *argc -= used) {
		used = 1;
		if (!strcmp(argv[1], "-x")) {
			o->swaps = false;
		} else if (*argc > 2 && !strcmp(argv[1], "-w")) {
			for (kind = 0; kind < KINDS; kind++)
				if (!strcmp(argv[2], kind_names[kind]))
					break;
			if (kind == KINDS)
				return false;
			o->kinds |= 1u << kind;
			used = 2;
		} else {
			break;
		}
		memmove(argv + 1, argv + 1 + used,
			(size_t)(*argc - used) * sizeof(*argv));
	}
	if (!o->kinds)
		o->kinds = (1u << KINDS) - 1;
	return true;
}

int main(int argc, char **argv)
{
	struct osc o = { .seq = 1 };
	bool good = options(&o, &argc, argv);
	long round;
	int kind;

	mc_init(&o.mc, &argc, &argv, "mpi_osc", 2);
	if (!good)
		mc_fail(&o.mc, "-w is one of allocated, created, dynamic");
	if (o.mc.n > 62)
		mc_fail(&o.mc, "at most 62 ranks: a bit of a number each");
	MPI_Comm_group(MPI_COMM_WORLD, &o.all_ranks);
	o.at = mc_alloc(&o.mc, (size_t)o.mc.n * sizeof(*o.at));
	o.out = mc_alloc(&o.mc, (size_t)o.mc.n * SLOT);
	o.in = mc_alloc(&o.mc, (size_t)o.mc.n * SLOT);
	for (round = 0; round < o.mc.count; round++) {
		for (kind = ALLOCATED; kind < KINDS; kind++) {
			o.kind = (enum kind)kind;
			if (o.kinds & 1u << kind)
				one_window(&o, round);
		}
	}
	free(o.at);
	free(o.out);
	free(o.in);
	MPI_Group_free(&o.all_ranks);
	return mc_fini(&o.mc);
}
