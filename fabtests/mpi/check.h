/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the MPI programs share: a rank's view of the job, a seed that is printed
 * and accepted, and ways to fail.  Each program prints "PASS name" on rank 0 at
 * its end, and ends the whole job with a message at the first error.
 *
 * Arguments of all of them: [-S SEED] [COUNT].  MC_GUARD_S limits the time of a
 * program that hangs (600).  MC_UNTIL names a file: some programs run until it
 * exists.
 */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/pattern.h"

struct mc {
	const char *name;
	int rank, n;
	uint64_t seed;
	long count;
};

static inline void mc_fail(const struct mc *mc, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static inline void mc_fail(const struct mc *mc, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "FAIL %s: rank %d: ", mc->name, mc->rank);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (seed %llu)\n", (unsigned long long)mc->seed);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static char mc_hung_text[80] = "FAIL: hung in MPI_Init\n";

static inline void mc_hung(int sig)
{
	ssize_t n = write(STDERR_FILENO, mc_hung_text, strlen(mc_hung_text));

	(void)sig;
	(void)n;
	_exit(124);
}

static inline void mc_init(struct mc *mc, int *argc, char ***argv,
			   const char *name, long count)
{
	const char *guard = getenv("MC_GUARD_S");
	int i;

	signal(SIGALRM, mc_hung);
	alarm(guard ? (unsigned)atoi(guard) : 600);
	MPI_Init(argc, argv);
	mc->name = name;
	mc->count = count;
	mc->seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
	MPI_Comm_rank(MPI_COMM_WORLD, &mc->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mc->n);
	for (i = 1; i < *argc; i++) {
		if (!strcmp((*argv)[i], "-S") && i + 1 < *argc)
			mc->seed = strtoull((*argv)[++i], NULL, 0);
		else
			mc->count = atol((*argv)[i]);
	}
	if (mc->count < 1)
		mc_fail(mc, "usage: %s [-S SEED] [COUNT]", name);
	MPI_Bcast(&mc->seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	/* A signal handler must not format text. */
	snprintf(mc_hung_text, sizeof(mc_hung_text),
		 "FAIL: rank %d hung (seed %llu)\n", mc->rank,
		 (unsigned long long)mc->seed);
	if (!mc->rank)
		printf("%s: %d ranks, count %ld, seed %llu\n", name, mc->n,
		       mc->count, (unsigned long long)mc->seed);
	fflush(stdout);
}

/* One more round?  All ranks call this for each round; rank 0 decides. */
static inline bool mc_more(const struct mc *mc, long round)
{
	const char *until = getenv("MC_UNTIL");
	int more = round < mc->count;

	if (!until)
		return more;
	if (!mc->rank && !access(until, F_OK))
		more = 0;
	MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return more;
}

static inline int mc_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The smallest first. */
static inline void mc_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), mc_by_value);
}

static inline int mc_fini(const struct mc *mc)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!mc->rank)
		printf("PASS %s\n", mc->name);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}

static inline void *mc_alloc(const struct mc *mc, size_t len)
{
	void *p = malloc(len ? len : 1);

	if (!p)
		mc_fail(mc, "out of memory");
	return p;
}

static inline void mc_fill(const struct mc *mc, void *buf, size_t len,
			   int sender, uint64_t seq)
{
	pattern_fill(buf, len, mc->seed, (unsigned)sender, seq);
}

static inline void mc_check(const struct mc *mc, const void *buf, size_t len,
			    int sender, uint64_t seq, const char *what)
{
	long long at = pattern_check(buf, len, mc->seed, (unsigned)sender,
				     seq);

	if (at >= 0)
		mc_fail(mc, "%s: message %llu of rank %d (%zu bytes): wrong "
			"byte at %lld", what, (unsigned long long)seq, sender,
			len, at);
}

static inline int mc_count_of(const struct mc *mc, MPI_Status *st)
{
	int n;

	MPI_Get_count(st, MPI_BYTE, &n);
	if (n == MPI_UNDEFINED)
		mc_fail(mc, "a message of undefined length");
	return n;
}

/* A random length: mostly small, sometimes at a limit. */
static inline size_t mc_random_len(uint64_t *state, size_t max)
{
	static const size_t edges[] = { 0, 1, 8, 64, 65, 128, 129, 4095, 4096,
					4097, 16320, 16384, 16385, 65536,
					131072, 131073 };
	uint64_t r = pattern_random(state);
	size_t len;

	switch (r % 8) {
	case 0:
		len = edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
		break;
	case 1:
		len = (r >> 8) % 20000;
		break;
	case 2:
		len = (r >> 12) % 8 ? (r >> 8) % 300 : (r >> 16) % 300000;
		break;
	default:
		len = (r >> 8) % 300;
	}
	return len > max ? max : len;
}

#endif
