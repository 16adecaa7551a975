/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What all fuzz targets share.  A target defines LNX_FUZZ_NAME before it
 * includes this, and LLVMFuzzerTestOneInput.  With libFuzzer nothing else is
 * needed.  With LNX_FUZZ_REPLAY there is a plain main, for any compiler: it
 * runs the files given as arguments, or the corpus in $top_srcdir, and random
 * changes of each.  It prints the seed of these; LNX_SEED sets it.
 */
#ifndef LNX_FUZZ_H
#define LNX_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			abort();					\
		}							\
	} while (0)

#ifdef LNX_FUZZ_REPLAY

#include <dirent.h>
#include <string.h>
#include <time.h>

#ifndef FUZZ_CHANGES
#define FUZZ_CHANGES	300	/* random changes of each file */
#endif
#define FUZZ_MAX	65536

static unsigned long fuzz_seed;

/* An exact copy, so that sanitizers and valgrind find a read beyond its end. */
static void fuzz_once(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t fuzz_change(uint8_t *d, size_t n)
{
	size_t at = n ? (size_t)lrand48() % n : 0, len;
	int times = 1 + (int)(lrand48() % 4);

	while (times--) {
		at = n ? (size_t)lrand48() % n : 0;
		len = 1 + (size_t)lrand48() % 8;
		switch (lrand48() % 5) {
		case 0:
			if (n)
				d[at] ^= (uint8_t)(1u << lrand48() % 8);
			break;
		case 1:
			if (n)
				d[at] = (uint8_t)lrand48();
			break;
		case 2:			/* cut some bytes out */
			if (at + len <= n) {
				memmove(d + at, d + at + len, n - at - len);
				n -= len;
			}
			break;
		case 3:			/* duplicate some bytes */
			if (at + len <= n && n + len <= FUZZ_MAX) {
				memmove(d + at + len, d + at, n - at);
				n += len;
			}
			break;
		default:		/* truncate */
			if (!(lrand48() % 4))
				n = at;
		}
	}
	return n;
}

static int fuzz_file(const char *path)
{
	static uint8_t data[FUZZ_MAX], copy[FUZZ_MAX];
	FILE *f = fopen(path, "rb");
	size_t n, m;
	int i;

	if (!f) {
		perror(path);
		return -1;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	fuzz_once(data, n);
	for (i = 0; i < FUZZ_CHANGES; i++) {
		memcpy(copy, data, n);
		m = fuzz_change(copy, n);
		fuzz_once(copy, m);
	}
	return 0;
}

/* In the order of names: a seed must mean the same on every machine. */
static int fuzz_dir(const char *path)
{
	struct dirent **list;
	int i, n = scandir(path, &list, NULL, alphasort), count = 0, ret = 0;
	char *file;

	if (n < 0) {
		perror(path);
		return -1;
	}
	for (i = 0; i < n; i++) {
		if (!ret && list[i]->d_name[0] != '.') {
			if (asprintf(&file, "%s/%s", path, list[i]->d_name) < 0)
				abort();
			ret = fuzz_file(file);
			free(file);
			count++;
		}
		free(list[i]);
	}
	free(list);
	printf("fuzz_%s: %d files, each with %d changes, seed %lu\n",
	       LNX_FUZZ_NAME, count, FUZZ_CHANGES, fuzz_seed);
	if (!count)
		fprintf(stderr, "%s: there is nothing\n", path);
	return count ? ret : -1;
}

int main(int argc, char **argv)
{
	const char *seed = getenv("LNX_SEED");
	const char *top = getenv("top_srcdir");
	char *path;
	int i, ret;

	fuzz_seed = seed ? strtoul(seed, NULL, 0) : (unsigned long)time(NULL);
	/* Printed before anything can fail, so that it is never missing. */
	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", fuzz_seed,
		fuzz_seed);
	srand48((long)fuzz_seed);
	for (i = 1; i < argc; i++)
		if (fuzz_file(argv[i]))
			return 1;
	if (argc > 1)
		return 0;
	if (asprintf(&path, "%s/fabtests/fuzz/corpus/%s", top ? top : ".",
		     LNX_FUZZ_NAME) < 0)
		abort();
	ret = fuzz_dir(path);
	free(path);
	return ret ? 1 : 0;
}

#endif
#endif
