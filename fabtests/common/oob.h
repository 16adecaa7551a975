/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The out-of-band channel of test programs: one TCP connection from every rank
 * to rank 0.  It carries addresses, barriers and small results, so that setting
 * up a test does not need the provider under test.
 */
#ifndef OOB_H
#define OOB_H

#include <stddef.h>

#define OOB_MAX_RANKS	64

struct oob {
	int rank;
	int n;				/* ranks in the job */
	int fd[OOB_MAX_RANKS];		/* rank 0: all others; others: [0] */
	/* Called repeatedly while waiting; manual progress needs it. */
	void (*idle)(void *arg);
	void *idle_arg;
};

/* Listening socket on host (NULL: any address).  If *port is 0, a free port is
 * used and stored there.  File descriptor or negative errno. */
int oob_listen(const char *host, int *port);

/* Rank 0: accept n - 1 connections from lfd and number them.  0 or -errno. */
int oob_serve(struct oob *o, int lfd, int n);

/* Other ranks: connect, retrying for timeout_s seconds, and learn rank and n. */
int oob_join(struct oob *o, const char *host, int port, double timeout_s);

void oob_close(struct oob *o);

/* Whole messages between rank 0 and another rank.  0 or -errno; -ECONNRESET
 * when the other side has gone. */
int oob_send(struct oob *o, int rank, const void *buf, size_t len);
int oob_recv(struct oob *o, int rank, void *buf, size_t len);

/*
 * Collective over all ranks: all[] gets n blocks of len bytes.  When ranks are
 * in different calls, because one of them gave up, all of them get -ECANCELED:
 * kind and len must be equal in all ranks.  oob_allgather is kind 0.
 */
int oob_gather_kind(struct oob *o, unsigned kind, const void *mine, void *all,
		    size_t len);
int oob_allgather(struct oob *o, const void *mine, void *all, size_t len);
int oob_bcast(struct oob *o, void *buf, size_t len);	/* from rank 0 */
int oob_barrier(struct oob *o);

#endif
