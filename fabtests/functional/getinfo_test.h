/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by getinfo_test.c (runs the cases) and getinfo_cases.c (defines them). */
#ifndef GETINFO_TEST_H
#define GETINFO_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

#define GI_ENV_MAX	4
#define GI_SAYS_MAX	6

#define GI_NETNS	1u	/* with the interfaces of gi_make_net */
#define GI_LOG_ONLY	2u	/* nothing that the user set is wrong: no line on
				 * standard error */

struct gi_case {
	const char *name;
	const char *env[GI_ENV_MAX];	/* "NAME=value" */
	void (*run)(void);		/* in its own process; or NULL */
	int warnings;			/* lines that lnx logs at level warn; -1: any */
	const char *says[GI_SAYS_MAX];	/* texts that the output must contain */
	unsigned how;			/* GI_* */
};

/* Ends with a row without a name. */
extern const struct gi_case gi_cases[];

/*
 * Move to a network namespace with lo and these interfaces, all up:
 *	r0	10.77.1.1/24, 10.77.9.1/24, fd77:1::1/64
 *	r1	10.77.2.1/24
 *	r2	fd77:3::1/64
 *	r3	only its link-local address
 * NULL, or why it cannot be done.
 */
const char *gi_make_net(void);

extern int gi_failed;
void gi_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(cond)							\
	do {								\
		if (!(cond))						\
			gi_fail(__FILE__, __LINE__, "not so: %s", #cond); \
	} while (0)
#define CHECK_INT(is, should)						\
	do {								\
		long long is_ = (long long)(is);			\
		long long should_ = (long long)(should);		\
		if (is_ != should_)					\
			gi_fail(__FILE__, __LINE__, "%s is %lld, not %lld", \
				#is, is_, should_);			\
	} while (0)

#endif
