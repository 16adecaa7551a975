/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs that want more of lnx than libfabric's own calls give: what a tool
 * would ask, asked from inside.  fi_lnx(7) describes the requests.
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
 * fi_open_ops says -FI_ENOSYS where there is no such table: for another provider, an
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
 * The table is lnx's own, for all endpoints and as long as the library is loaded.
 * size is that of the table in the library: calls that came later stand behind those
 * below, and are there if size says so.
 */
struct lnx_control_ops {
	size_t size;			/* bytes */
	/*
	 * Do what text asks of ep, an endpoint that is enabled.  text is one request,
	 * ended by NUL; it is only read, and not kept.  reply, of size bytes, takes
	 * the answer: lines, each ended by '\n', or nothing; ended by NUL and cut if
	 * need be.  It may be NULL if size is 0.
	 *
	 * Returns the length that the whole answer has, without NUL, as snprintf
	 * does: if it is not less than size, the answer was cut; what was asked is
	 * done all the same.  Or, with one sentence in reply that says what is wrong
	 * and what would be right:
	 *
	 *	-FI_EINVAL	the request cannot be read, or names what is not there
	 *	-FI_EOPBADSTATE	the endpoint is not enabled
	 *	-FI_EOPNOTSUPP	there is nothing in it that this could be asked of
	 *	-FI_ENOSPC	there are as many fault rules as there can be
	 *	-FI_ENOMEM	nothing was done
	 *
	 * A request counts as a call that uses ep, under the threading model of its
	 * domain; it takes the endpoint's lock where others do, and makes no progress.
	 * It waits for nobody else.
	 */
	ssize_t (*request)(struct fid *ep, const char *text, char *reply,
			   size_t size);
};

#ifdef __cplusplus
}
#endif
#endif
