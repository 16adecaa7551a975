/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic between two nodes during faults; see traffic.h.  Runs for --seconds N
 * or until SIGUSR1 reaches the source, then waits for the operations under way
 * and compares.  Each side prints one line of JSON: what it saw, and when.
 * Times are those of CLOCK_MONOTONIC, so that they can be compared with the
 * times of the faults.
 *
 * -m MODE	stream, unexpected, write, read, atomics; MODE+acked asks for
 *		completions that mean delivery; MODE+ghost first talks to
 *		peers that never existed
 * -s SIZE	of a message, -N operations under way
 *
 * FT_TIMEOUT_S is the silence timeout: after so long without any event, what is
 * missing counts as lost or as hanging.  Exit status 0 means that the lines are
 * complete, not that nothing was wrong.
 */
#include "traffic.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SLOTS		(1 << 19)	/* of the timeline */
#define MAX_GAPS	16384
#define GAP_NS		3000000ULL	/* shorter gaps are not printed */
#define LOOK_NS		2000000ULL	/* between checks of the other side */
#define GRACE_NS	200000000ULL	/* for what may arrive twice */
#define FAILED_NS	3000000000ULL	/* for reads that have to end first */
#define GHOST_OPS	8

struct tally tally;
volatile bool stopping;
const struct traffic *traffic;
size_t msg_bytes;
unsigned window;
bool acked;
struct ft_op **slot_op;
struct ft_mr local_mr, target_mr;
unsigned char *local_mem, *target_mem;

static unsigned *free_slot, nfree;	/* ring of free slots */
static unsigned free_head;
static bool *slot_busy;
static uint64_t last_done_ns;		/* source: the last completion */
static uint64_t ghosts_failed, ghosts_ok, ghosts_open, ghosts_refused;
static bool peer_gone, hung;
static double close_s;

/* ---- time ---- */

static struct {
	uint64_t t0_ns, slot_ns, last_ns;
	uint64_t *slot;
	size_t used;
	struct { uint64_t at_ns, ns; } gap[MAX_GAPS];
	unsigned ngaps, more_gaps;
} line;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* A long run has longer slots: when the array is full, two become one. */
static void fold(void)
{
	size_t i;

	for (i = 0; i < SLOTS / 2; i++)
		line.slot[i] = line.slot[2 * i] + line.slot[2 * i + 1];
	memset(line.slot + SLOTS / 2, 0, SLOTS / 2 * sizeof(*line.slot));
	line.slot_ns *= 2;
}

void delivered(size_t bytes)
{
	uint64_t now = now_ns();
	size_t i;

	if (!line.t0_ns) {
		line.t0_ns = line.last_ns = now;
		line.slot_ns = 1000000;
	}
	if (now - line.last_ns >= GAP_NS) {
		if (line.ngaps < MAX_GAPS) {
			line.gap[line.ngaps].at_ns = line.last_ns;
			line.gap[line.ngaps++].ns = now - line.last_ns;
		} else {
			line.more_gaps++;
		}
	}
	line.last_ns = now;
	while ((i = (now - line.t0_ns) / line.slot_ns) >= SLOTS)
		fold();
	line.slot[i] += bytes;
	if (i >= line.used)
		line.used = i + 1;
	tally.bytes += bytes;
	tally.received++;
}

/* ---- errors found ---- */

void wrong(const char *fmt, ...)
{
	va_list ap;

	if (tally.why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(tally.why, sizeof(tally.why), fmt, ap);
	va_end(ap);
}

void note_error(int err)
{
	int i;

	tally.last_error_ns = now_ns();
	if (!tally.first_error_ns)
		tally.first_error_ns = tally.last_error_ns;
	for (i = 0; i < MAX_ERRORS - 1; i++)
		if (!tally.error[i].count || tally.error[i].err == err)
			break;
	tally.error[i].err = err;
	tally.error[i].count++;
}

int seen_add(struct seen *s, uint64_t n)
{
	uint64_t limit = s->limit ? s->limit : 1 << 16, *bits, bit;

	if (n >> 34)
		return -1;
	while (n >= limit)
		limit *= 2;
	if (limit > s->limit) {
		bits = realloc(s->bits, limit / 8);
		if (!bits)
			return -1;
		memset(bits + s->limit / 64, 0, (limit - s->limit) / 8);
		s->bits = bits;
		s->limit = limit;
	}
	bit = 1ULL << n % 64;
	if (s->bits[n / 64] & bit)
		return 0;
	s->bits[n / 64] |= bit;
	s->count++;
	return 1;
}

/* ---- the two sides ---- */

/* A message over the out-of-band channel, which no fault affects. */
struct oob_message {
	uint64_t what;
	struct tally tally;
};

enum { DONE = 0x646f6e65, CHECKED = 0x63686b64, BYE = 0x62796521 };

static int tell(struct ft *ft, int rank, uint64_t what)
{
	struct oob_message n = { .what = what, .tally = tally };

	if (peer_gone)
		return -ECONNRESET;
	if (!oob_send(&ft->oob, rank, &n, sizeof(n)))
		return 0;
	peer_gone = true;
	return -ECONNRESET;
}

/* Makes progress while it waits. */
static int expect(struct ft *ft, int rank, uint64_t what, struct tally *theirs)
{
	struct oob_message n;

	if (peer_gone)
		return -ECONNRESET;
	if (oob_recv(&ft->oob, rank, &n, sizeof(n)) || n.what != what) {
		peer_gone = true;
		return -ECONNRESET;
	}
	*theirs = n.tally;
	return 0;
}

/* Has the other side sent a message, or has it ended? */
static bool readable(struct ft *ft, int rank)
{
	struct pollfd p = { .fd = ft->oob.fd[rank], .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Polls, and yields when there is nothing to do: there may be few CPUs. */
static int turn(struct ft *ft)
{
	static unsigned idle;
	int n = ft_progress(ft);

	if (n > 0)
		idle = 0;
	else if (!(++idle % 256))
		sched_yield();
	return n;
}

static void on_stop(int sig)
{
	(void)sig;
	stopping = true;
}

static void slot_done(struct ft *ft, struct ft_op *op)
{
	unsigned slot = (unsigned)(uintptr_t)op->arg;

	(void)ft;
	last_done_ns = now_ns();
	slot_busy[slot] = false;
	if (op->err) {
		tally.failed++;
		note_error(op->err);
		wrong("%s", fi_strerror(op->err));
		/* Everything after the first error is a consequence. */
		stopping = true;
	} else {
		tally.ok++;
		traffic->done(ft, slot);
	}
	free_slot[(free_head + nfree++) % window] = slot;
}

static int start_some(struct ft *ft, double timeout_s)
{
	struct ft_op *op;
	unsigned slot, n;
	int ret;

	for (n = 0; n < 32 && nfree && !stopping; n++) {
		slot = free_slot[free_head];
		op = slot_op[slot];
		ft_op_reset(op);
		op->hook = slot_done;
		op->arg = (void *)(uintptr_t)slot;
		op->posted = true;
		slot_busy[slot] = true;
		/* Removed first: it may complete inside the call. */
		free_head = (free_head + 1) % window;
		nfree--;
		ret = traffic->start(ft, slot, ft->addr[TARGET]);
		if (!ret) {
			tally.sent++;
			continue;
		}
		op->posted = slot_busy[slot] = false;
		free_head = (free_head + window - 1) % window;
		free_slot[free_head] = slot;
		nfree++;
		if (ret != -FI_EAGAIN) {
			tally.refused = -ret;
			note_error(-ret);
			wrong("a call gave: %s", fi_strerror(-ret));
			stopping = true;
		} else if (nfree == window && last_done_ns &&
			   now_ns() - last_done_ns >
			   (uint64_t)(timeout_s * 1e9)) {
			wrong("-FI_EAGAIN for ever with nothing under way");
			hung = stopping = true;
		}
		break;
	}
	return 0;
}

static unsigned char names[2][FT_NAME_MAX];	/* names of both, for ghosts */

/*
 * Operations with peers that do not exist: each ends with one error, at the
 * latest after the silence timeout, and nothing is left over.  One has the
 * target's address and another identity, as if a process had ended and another
 * one had its address; one is on a host that does not exist.
 */
static int ghosts(struct ft *ft)
{
	unsigned char name[FT_NAME_MAX];
	struct ft_op *op;
	fi_addr_t to[2];
	double end;
	size_t at;
	int i, ret;

	memcpy(ft->o.name, names[TARGET], sizeof(ft->o.name));
	for (i = 0; i < 2; i++) {
		ret = ft_fake_name(ft, (uint64_t)i, false, name);
		if (ret) {
			ft_fail(ft, "cannot make an address");
			return ret;
		}
		for (at = 0; i && at + 4 <= ft->o.name_len; at++)
			if (name[at] == 10 && name[at + 1] == 77)
				name[at + 3] = 250;
		if (fi_av_insert(ft->o.av, name, 1, &to[i], 0, NULL) != 1) {
			ft_fail(ft, "fi_av_insert of a peer that does not exist");
			return -FI_EINVAL;
		}
	}
	memcpy(ft->o.name, names[SOURCE], sizeof(ft->o.name));
	acked = true;
	end = ft_now() + ft->run->timeout_s;
	for (i = 0; i < GHOST_OPS && (unsigned)i < window; i++) {
		op = slot_op[i];
		ft_op_reset(op);
		op->posted = true;
		do {
			ret = traffic->start(ft, (unsigned)i, to[i & 1]);
			if (ret == -FI_EAGAIN)
				turn(ft);
		} while (ret == -FI_EAGAIN && ft_now() < end);
		if (ret) {
			op->posted = false;
			ghosts_refused++;
			note_error(-ret);
		}
	}
	do {
		turn(ft);
		ghosts_open = ghosts_failed = ghosts_ok = 0;
		for (i = 0; i < GHOST_OPS && (unsigned)i < window; i++) {
			op = slot_op[i];
			if (!op->posted)
				continue;
			ghosts_open += !op->done;
			ghosts_failed += op->done && op->err;
			ghosts_ok += op->done && !op->err;
		}
	} while (ghosts_open && ft_now() < end);
	for (i = 0; i < GHOST_OPS && (unsigned)i < window; i++)
		if (slot_op[i]->posted && slot_op[i]->err)
			note_error(slot_op[i]->err);
	acked = strstr(ft->run->mode, "+acked");
	if (ghosts_open) {
		wrong("%llu operations with peers that never existed hang",
		      (unsigned long long)ghosts_open);
		hung = true;
	}
	return 0;
}

static int run_source(struct ft *ft)
{
	double timeout_s = ft->run->timeout_s;
	uint64_t end, look;
	struct tally theirs;
	unsigned i;

	signal(SIGUSR1, on_stop);
	free_slot = calloc(window, sizeof(*free_slot));
	slot_busy = calloc(window, sizeof(*slot_busy));
	slot_op = calloc(window, sizeof(*slot_op));
	if (!free_slot || !slot_busy || !slot_op)
		ft_die(ft, "out of memory");
	for (i = 0; i < window; i++)
		slot_op[i] = ft_op_new(ft);
	if (strstr(ft->run->mode, "+ghost") && ghosts(ft))
		return -1;
	for (i = 0; i < window; i++)
		free_slot[i] = i;
	nfree = hung ? 0 : window;
	tally.start_ns = last_done_ns = look = now_ns();
	end = tally.start_ns + (uint64_t)(ft->run->seconds * 1e9);
	while (!stopping && !hung) {
		start_some(ft, timeout_s);
		turn(ft);
		if (ft->unexpected[0])
			stopping = true;
		if (now_ns() - look < LOOK_NS)
			continue;
		look = now_ns();
		if (look > end)
			stopping = true;
		if (nfree < window &&
		    look - last_done_ns > (uint64_t)(timeout_s * 1e9)) {
			wrong("no completion for %.0f s", timeout_s);
			hung = stopping = true;
		}
	}
	tally.stop_ns = now_ns();
	if (last_done_ns < tally.stop_ns && !hung)
		last_done_ns = tally.stop_ns;
	while (nfree < window && !hung) {
		turn(ft);
		if (now_ns() - last_done_ns > (uint64_t)(timeout_s * 1e9)) {
			wrong("%u operations hang", window - nfree);
			hung = true;
		}
	}
	tally.end_ns = now_ns();
	tell(ft, TARGET, DONE);
	if (!expect(ft, TARGET, CHECKED, &theirs) && traffic->finish)
		traffic->finish(ft, &theirs);
	tell(ft, TARGET, BYE);
	return 0;
}

static int run_target(struct ft *ft)
{
	double timeout_s = ft->run->timeout_s;
	struct tally theirs = { 0 };
	uint64_t look = 0, now, since, seen = 0, grace;
	bool failed;

	tally.start_ns = now_ns();
	for (;;) {
		turn(ft);
		if (traffic->serve && traffic->serve(ft))
			return -1;
		now = now_ns();
		if (now - look < LOOK_NS)
			continue;
		look = now;
		if (readable(ft, SOURCE))
			break;
	}
	tally.stop_ns = since = now_ns();
	if (expect(ft, SOURCE, DONE, &theirs))
		return 0;
	/* What is missing may still come, as long as anything arrives. */
	stopping = true;
	do {
		turn(ft);
		if (traffic->serve && traffic->serve(ft))
			return -1;
		now = now_ns();
		if (tally.received != seen) {
			seen = tally.received;
			since = now;
		}
		failed = theirs.failed || theirs.refused;
		grace = failed && traffic->complete ? FAILED_NS :
			failed || !traffic->complete ||
			traffic->complete(theirs.sent) ? GRACE_NS :
			(uint64_t)(timeout_s * 1e9);
	} while (now - since < grace);
	tally.end_ns = now_ns();
	if (traffic->finish)
		traffic->finish(ft, &theirs);
	tell(ft, SOURCE, CHECKED);
	expect(ft, SOURCE, BYE, &theirs);
	return 0;
}

/* ---- the report ---- */

static void print_text(const char *name, const char *text)
{
	printf(",\"%s\":\"", name);
	for (; *text; text++)
		putchar(*text == '"' || *text == '\\' || *text < ' ' ? '_' :
			*text);
	putchar('"');
}

static void print_report(struct ft *ft)
{
	const struct { const char *name; uint64_t value; } n[] = {
		{ "size", msg_bytes }, { "window", window },
		{ "seed", ft->run->seed },
		{ "sent", tally.sent }, { "ok", tally.ok },
		{ "failed", tally.failed },
		{ "open", ft->rank == SOURCE ? window - nfree : 0 },
		{ "received", tally.received },
		{ "unique", tally.unique }, { "bytes", tally.bytes },
		{ "doubled", tally.doubled }, { "reordered", tally.reordered },
		{ "corrupt", tally.corrupt }, { "late", tally.late },
		{ "refused", (uint64_t)tally.refused },
		{ "ghosts_failed", ghosts_failed }, { "ghosts_ok", ghosts_ok },
		{ "ghosts_open", ghosts_open },
		{ "ghosts_refused", ghosts_refused },
		{ "start_ns", tally.start_ns }, { "stop_ns", tally.stop_ns },
		{ "end_ns", tally.end_ns },
		{ "first_error_ns", tally.first_error_ns },
		{ "last_error_ns", tally.last_error_ns },
		{ "hung", hung }, { "peer_gone", peer_gone },
		{ "t0_ns", line.t0_ns }, { "slot_ns", line.slot_ns },
		{ "more_gaps", line.more_gaps },
	};
	bool first = true;
	size_t i;

	printf("{\"rank\":%d", ft->rank);
	print_text("mode", ft->run->mode);
	print_text("why", tally.why);
	print_text("unexpected", ft->unexpected);
	printf(",\"close_s\":%.3f", close_s);
	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		printf(",\"%s\":%llu", n[i].name,
		       (unsigned long long)n[i].value);
	printf(",\"errors\":{");
	for (i = 0; i < MAX_ERRORS && tally.error[i].count; i++)
		printf("%s\"%d %s\":%llu", i ? "," : "", tally.error[i].err,
		       fi_strerror(tally.error[i].err),
		       (unsigned long long)tally.error[i].count);
	/* Number and bytes of each slot that is not empty. */
	printf("},\"slots\":[");
	for (i = 0; i < line.used; i++) {
		if (!line.slot[i])
			continue;
		printf("%s[%zu,%llu]", first ? "" : ",", i,
		       (unsigned long long)line.slot[i]);
		first = false;
	}
	printf("],\"gaps\":[");
	for (i = 0; i < line.ngaps; i++)
		printf("%s[%llu,%llu]", i ? "," : "",
		       (unsigned long long)line.gap[i].at_ns,
		       (unsigned long long)line.gap[i].ns);
	printf("]}\n");
	fflush(stdout);
}

/* ---- start ---- */

static const struct traffic *const kinds[] = {
	&stream_traffic, &unexpected_traffic, &write_traffic, &read_traffic,
	&atomics_traffic,
};

static void choose(struct ft *ft)
{
	char word[32];
	size_t i;

	snprintf(word, sizeof(word), "%s", ft->run->mode);
	*strchrnul(word, '+') = '\0';
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(word, kinds[i]->name))
			traffic = kinds[i];
	if (!traffic)
		ft_die(ft, "-m '%s': stream, unexpected, write, read or "
		       "atomics, with +acked, +ghost or both", ft->run->mode);
	msg_bytes = ft->run->size == UINT64_MAX ? traffic->size :
						  ft->run->size;
	window = ft->run->arg ? (unsigned)ft->run->arg : traffic->window;
	if (!window)
		window = msg_bytes < 1024 ? 256 : msg_bytes > 512 << 10 ? 8 :
			 (unsigned)((4 << 20) / msg_bytes);
	if (msg_bytes < 8 || msg_bytes > 64 << 20 || window > 4096)
		ft_die(ft, "-s %zu -N %u: 8 bytes to 64 MiB, 1 to 4096 at a "
		       "time", msg_bytes, window);
	acked = strstr(ft->run->mode, "+acked");
	if (!(ft->run->seconds > 0))
		ft->run->seconds = 10;
}

static unsigned char *pages(struct ft *ft, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ft_die(ft, "out of memory");
	return p;
}

static int get_memory(struct ft *ft)
{
	size_t len = traffic->mem_bytes;

	if (!len)
		return 0;
	local_mem = pages(ft, len);
	target_mem = pages(ft, len);
	if (ft_mr_reg(ft, &local_mr, local_mem, len, FT_MR_ACCESS) ||
	    ft_mr_reg(ft, &target_mr, target_mem, len, FT_MR_ACCESS) ||
	    ft_mr_share(ft, &target_mr))
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct ft ft;
	struct ft_cfg cfg = { 0 };
	int ret;

	signal(SIGUSR1, SIG_IGN);
	ft_init(&ft, argc, argv, "verified traffic during faults",
		2);
	choose(&ft);
	ft_guard_s(&ft, "traffic", (unsigned)(ft.run->seconds +
					      6 * ft.run->timeout_s + 60));
	line.slot = calloc(SLOTS, sizeof(*line.slot));
	if (!line.slot)
		ft_die(&ft, "out of memory");
	cfg.caps = traffic->caps;
	ret = ft_open(&ft, &cfg);
	if (ret)
		ft_die(&ft, "%s", ft.why);
	if (oob_allgather(&ft.oob, ft.o.name, names, sizeof(ft.o.name)))
		ft_die(&ft, "the other rank has ended");
	if (get_memory(&ft) || (traffic->prepare && traffic->prepare(&ft)) ||
	    ft_barrier(&ft))
		ft_die(&ft, "%s", ft.why);
	ret = ft.rank == SOURCE ? run_source(&ft) : run_target(&ft);
	if (ret)
		ft_die(&ft, "%s", ft.why);
	ft_guard_s(&ft, "closing", (unsigned)(2 * ft.run->timeout_s));
	close_s = ft_now();
	if (ft_mr_close(&ft, &local_mr) | ft_mr_close(&ft, &target_mr) |
	    ft_close(&ft))
		wrong("%s", ft.why);
	close_s = ft_now() - close_s;
	print_report(&ft);
	return 0;
}
