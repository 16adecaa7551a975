/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of the tcp core that begin a message and do not end it: the kernel gets half of
 * what the core sends, and the core is told that it took all.  See sessions_forged.c.
 */
#include "sessions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HALVES_MAX	256		/* endpoints of a process */
#define LONG		4096		/* bytes of a message that is halved */
#define LONG_MIN_BYTES	1000		/* what is shorter leaves as it is */
#define PIECES		8

static bool halve;
static struct fid_ep *eps[HALVES_MAX];
static unsigned n_eps;

/* ---- what the core calls ---- */

static size_t length(const struct iovec *iov, size_t n)
{
	size_t i, len = 0;

	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

/* Half of it, however often the kernel has to be asked. */
static ssize_t send_half(int fd, const struct iovec *iov, size_t n, size_t len)
{
	unsigned char buf[LONG + 256];
	size_t i, at = 0, left, half = len / 2;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t ret;

	for (i = 0; i < n && at < half; i++) {
		left = half - at < iov[i].iov_len ? half - at : iov[i].iov_len;
		memcpy(buf + at, iov[i].iov_base, left);
		at += left;
	}
	for (at = 0; at < half; at += ret > 0 ? (size_t)ret : 0) {
		ret = syscall(SYS_sendto, fd, buf + at, half - at, MSG_NOSIGNAL, NULL, 0);
		if (ret < 0 && errno != EAGAIN)
			return ret;
		if (ret < 0)
			poll(&p, 1, 100);
	}
	return (ssize_t)len;
}

static bool is_halved(size_t len)
{
	return halve && len >= LONG_MIN_BYTES && len / 2 <= LONG;
}

/* Those of libc, for this program and all libraries in it. */
__attribute__((visibility("default")))
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t len = length(msg->msg_iov, msg->msg_iovlen);

	if (is_halved(len))
		return send_half(fd, msg->msg_iov, msg->msg_iovlen, len);
	return syscall(SYS_sendmsg, fd, msg, flags);
}

__attribute__((visibility("default")))
ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)buf, len };

	if (is_halved(len))
		return send_half(fd, &iov, 1, len);
	return syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

/* ---- the endpoints ---- */

static int open_core(struct ft *ft, const unsigned char *name)
{
	struct sockaddr_in to = sessions_address(name);
	struct ft_cfg cfg = { .caps = FI_MSG };

	ft->opts.prov = "tcp";
	ft->opts.domain = NULL;
	ft->opts.local = inet_ntoa(to.sin_addr);
	if (ft_objs_open(ft, &cfg, &ft->o))
		return FT_FAIL;
	ft->cfg = cfg;
	ft->open = true;
	FT_CHECK(ft, fi_av_insert(ft->o.av, &to, 1, &ft->addr[0], 0, NULL) == 1,
		 "fi_av_insert of the core failed");
	return FT_PASS;
}

/* Until the core has taken it and says that it has left. */
static int send_from(struct ft *ft, struct fid_ep *ep, size_t len)
{
	static unsigned char junk[LONG];
	double end = ft_now() + ft->run->timeout_s;
	struct ft_op *op = ft_op_new(ft);
	ssize_t ret;

	op->posted = true;
	while ((ret = fi_send(ep, junk, len, NULL, ft->addr[0], op)) == -FI_EAGAIN) {
		FT_CHECK(ft, ft_now() < end, "the core does not connect");
		ft_progress(ft);
	}
	FT_CALL(ft, ret);
	FT_CHECK(ft, !ft_wait(ft, op) && !op->err, "a message does not leave");
	return FT_PASS;
}

static int begin_one(struct ft *ft)
{
	struct fid_ep **ep = &eps[n_eps];

	FT_CHECK(ft, n_eps < HALVES_MAX, "too many endpoints");
	FT_CALL(ft, fi_endpoint(ft->o.domain, ft->o.info, ep, NULL));
	n_eps++;
	FT_CALL(ft, fi_ep_bind(*ep, &ft->o.av->fid, 0));
	FT_CALL(ft, fi_ep_bind(*ep, &ft->o.cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(ft, fi_enable(*ep));
	FT_TRY(send_from(ft, *ep, 8));
	halve = true;
	FT_TRY(send_from(ft, *ep, LONG));
	halve = false;
	return FT_PASS;
}

int sessions_begin_messages(struct ft *ft, const unsigned char *name, unsigned n)
{
	if (!ft->open)
		FT_TRY(open_core(ft, name));
	while (n--)
		FT_TRY(begin_one(ft));
	return FT_PASS;
}

void sessions_end_messages(void)
{
	while (n_eps)
		fi_close(&eps[--n_eps]->fid);
}
