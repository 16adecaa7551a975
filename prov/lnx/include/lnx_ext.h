/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs that need more of lnx than libfabric's own calls offer: the requests of
 * the command-line tool, made from inside the process.  fi_lnx(7) describes them.
 *
 *	struct lnx_control_ops *control;
 *	char reply[4096];
 *	ssize_t n;
 *
 *	if (!fi_open_ops(&ep->fid, LNX_CONTROL_OPS, 0, (void **)&control, NULL)) {
 *		n = control->request(&ep->fid, "health set tcp:eth1 0", reply,
 *				     sizeof(reply));
 *		if (n < 0)
 *			fprintf(stderr, "%s\n", reply);
 *	}
 *
 * fi_open_ops returns -FI_ENOSYS if there is no such table: for another provider, an
 * older lnx, or a shared receive context; -FI_EBADFLAGS for flags other than 0.
 */
#ifndef LNX_EXT_H
#define LNX_EXT_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid;

/* Name of the table, for fi_open_ops on an endpoint. */
#define LNX_CONTROL_OPS		"lnx_control"

/*
 * One table of lnx for all endpoints, valid as long as the library is loaded.  size is
 * that of the library's table: calls that are added later follow those below, and exist
 * if size covers them.
 */
struct lnx_control_ops {
	size_t size;			/* bytes */
	/*
	 * Carry out the request in text on ep, an endpoint that is enabled.  text is
	 * one request, ended by NUL; it is only read, and not kept.  reply, of size
	 * bytes, gets the answer: lines, each ended by '\n', or nothing; ended by NUL,
	 * and cut if it is too long.  reply may be NULL if size is 0.
	 *
	 * Returns the length of the whole answer, without NUL, as snprintf does: if it
	 * is not less than size, the answer was cut, but the request was carried out.
	 * Or, with one sentence in reply that says what is wrong and what would be
	 * right:
	 *
	 *	-FI_EINVAL	the request is malformed, or names something that does not exist
	 *	-FI_EOPBADSTATE	the endpoint is not enabled
	 *	-FI_EOPNOTSUPP	the endpoint has nothing that this applies to
	 *	-FI_ENOSPC	there are too many fault rules already
	 *	-FI_EBUSY	the parameter can be set only when an endpoint is opened
	 *	-FI_ENOMEM	nothing was done
	 *
	 * A request counts as a call that uses ep, under the threading model of its
	 * domain; it takes the endpoint's lock as other calls do, makes no progress,
	 * and waits for nothing else.  "ping" and "discover", which have to wait for a
	 * peer, are for lnxctl only: -FI_EOPNOTSUPP.
	 */
	ssize_t (*request)(struct fid *ep, const char *text, char *reply,
			   size_t size);
};

#ifdef __cplusplus
}
#endif
#endif
