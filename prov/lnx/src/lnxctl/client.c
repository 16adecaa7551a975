/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to a process.  See client.h.
 *
 * Everything goes through pread and pwrite, as in reader.c.  What the process writes is
 * not trusted: lengths are checked, and the reply is made printable.
 */
#include "lnxctl/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/interval.h"

#define REPLY_MAX	(1u << 20)	/* of all parts */

struct box {
	struct lnx_proc *p;
	uint64_t at;			/* of the mailbox in the file */
};

struct blob {
	const void *bytes;
	size_t len;
};

#define MEMBER(m)	offsetof(struct lnx_state_mailbox, m)

static bool get(const struct box *b, size_t member, void *buf, size_t len)
{
	return pread(b->p->fd, buf, len, (off_t)(b->at + member)) == (ssize_t)len;
}

static bool put(const struct box *b, size_t member, const void *buf, size_t len)
{
	return pwrite(b->p->fd, buf, len, (off_t)(b->at + member)) == (ssize_t)len;
}

static uint32_t word(const struct box *b, size_t member)
{
	uint32_t v = 0;

	return get(b, member, &v, sizeof(v)) ? v : 0;
}

static void wait_a_little(void)
{
	struct timespec ts = { .tv_nsec = (long)LNXCTL_ANSWER_LOOK_NS };

	nanosleep(&ts, NULL);
}

static bool ended(const struct lnx_proc *p)
{
	return lnx_proc_life(p->file.pid, p->file.started) == LNX_PROC_ENDED;
}

/* ---- the mailbox for us alone ---- */

static int lock(const struct box *b, uint64_t end)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	while (fcntl(b->p->fd, F_OFD_SETLK, &l)) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return -errno;
		if (lnx_clock_ns() > end)
			return -EBUSY;
		wait_a_little();
	}
	return 0;
}

static void unlock(const struct box *b)
{
	struct flock l = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1 };

	fcntl(b->p->fd, F_OFD_SETLK, &l);
}

static int find_box(struct lnx_proc *p, struct box *b)
{
	struct lnx_state_header h;

	if (p->life == LNX_PROC_ENDED)
		return -ESRCH;
	if (!p->writable)
		return -EACCES;
	if (pread(p->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.magic, LNX_STATE_MAGIC, sizeof(h.magic)) ||
	    h.version != LNX_STATE_VERSION ||
	    h.mailbox_size < sizeof(struct lnx_state_mailbox) ||
	    h.mailbox > p->size || h.mailbox_size > p->size - h.mailbox)
		return -EPROTO;
	b->p = p;
	b->at = h.mailbox;
	return 0;
}

/* ---- one request ---- */

/* Write it.  Its number, or 0. */
static uint32_t post(const struct box *b, uint64_t eid, const struct blob *r,
		     uint32_t skip)
{
	uint32_t len = (uint32_t)r->len, number = word(b, MEMBER(request)) + 1;

	number += !number;
	if (!put(b, MEMBER(eid), &eid, sizeof(eid)) ||
	    !put(b, MEMBER(skip), &skip, sizeof(skip)) ||
	    !put(b, MEMBER(len), &len, sizeof(len)) ||
	    (len && !put(b, MEMBER(text), r->bytes, len)))
		return 0;
	lnx_fence();
	if (!put(b, MEMBER(request), &number, sizeof(number)))
		return 0;
	lnx_fence();
	return lnx_proc_wake(b->p) ? number : 0;
}

/* It is not wanted any more.  True: it will never be carried out. */
static bool withdraw(const struct box *b, uint32_t number)
{
	put(b, MEMBER(cancel), &number, sizeof(number));
	lnx_fence();
	return word(b, MEMBER(taken)) != number;
}

static int wait_for(const struct box *b, uint32_t number, size_t member, uint64_t end)
{
	unsigned polls = 0;

	while (word(b, member) != number) {
		if (lnx_clock_ns() > end)
			return -ETIMEDOUT;
		if (!(++polls & 63) && ended(b->p))
			return -ESRCH;
		wait_a_little();
	}
	return 0;
}

/* Carried out, or not at all: 0, or an error. */
static int carry_out(const struct box *b, uint64_t eid, const struct blob *r,
		     uint32_t skip, unsigned take_ms, unsigned answer_ms)
{
	uint32_t number = post(b, eid, r, skip);
	uint64_t now = lnx_clock_ns();
	int ret;

	if (!number)
		return -EPROTO;
	ret = wait_for(b, number, MEMBER(taken), now + take_ms * LNX_NS_PER_MS);
	if (ret == -ETIMEDOUT && withdraw(b, number))
		return ret;
	if (ret && ret != -ETIMEDOUT)
		return ret;
	now = lnx_clock_ns();
	ret = wait_for(b, number, MEMBER(done), now + answer_ms * LNX_NS_PER_MS);
	if (ret == -ETIMEDOUT) {
		withdraw(b, number);
		return -ETIME;
	}
	return ret;
}

/* Append the part that is in the mailbox to *text. */
static int take_part(const struct box *b, char **text, uint32_t *have, uint32_t *all)
{
	uint32_t part = word(b, MEMBER(part_len));
	char *more;

	*all = word(b, MEMBER(reply_len));
	if (part > LNX_STATE_REPLY || *all > REPLY_MAX || part > *all - LNX_MIN(*all, *have))
		return -EPROTO;
	more = realloc(*text, *have + part + 1ul);
	if (!more)
		return -ENOMEM;
	*text = more;
	if (part && !get(b, MEMBER(reply), more + *have, part))
		return -EPROTO;
	*have += part;
	more[*have] = '\0';
	/* A part without bytes would never end. */
	return !part && *have < *all ? -EPROTO : 0;
}

void lnx_client_printable(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
			text[i] = '?';
}

static int ask(const struct box *b, uint64_t eid, const struct blob *r,
	       unsigned take_ms, unsigned answer_ms, struct lnx_answer *a)
{
	static const struct blob more = { .bytes = "" };
	uint32_t have = 0, all = 0;
	int ret = carry_out(b, eid, r, 0, take_ms, answer_ms);

	if (ret)
		return ret;
	if (!get(b, MEMBER(result), &a->result, sizeof(a->result)))
		return -EPROTO;
	ret = take_part(b, &a->text, &have, &all);
	while (!ret && have < all) {
		ret = carry_out(b, eid, &more, have, take_ms, answer_ms);
		if (!ret)
			ret = take_part(b, &a->text, &have, &all);
	}
	a->len = have;
	return ret;
}

int lnx_client_send(struct lnx_proc *p, uint64_t eid, const void *request, size_t len,
		    unsigned take_ms, unsigned answer_ms, struct lnx_answer *a)
{
	const struct blob r = { request, len };
	struct box b;
	int ret;

	memset(a, 0, sizeof(*a));
	/* The process keeps the last byte for a NUL. */
	if (len > LNX_CLIENT_REQUEST)
		return -E2BIG;
	ret = lnx_proc_open(p);
	if (!ret)
		ret = find_box(p, &b);
	if (ret)
		return ret;
	ret = lock(&b, lnx_clock_ns() + (take_ms + answer_ms) * LNX_NS_PER_MS);
	if (ret)
		return ret;
	ret = ask(&b, eid, &r, take_ms, answer_ms, a);
	unlock(&b);
	if (ret)
		lnx_answer_free(a);
	return ret;
}

ssize_t lnx_client_call(struct lnx_proc *p, uint64_t eid, const void *request, size_t len,
			unsigned wait_ms, void *reply, size_t size, int *failed)
{
	struct lnx_answer a;
	ssize_t ret;

	*failed = lnx_client_send(p, eid, request, len, wait_ms, wait_ms, &a);
	if (*failed)
		return *failed;
	ret = a.result ? a.result : (ssize_t)a.len;
	if (ret > (ssize_t)size)
		ret = -EPROTO;
	else if (ret > 0)
		memcpy(reply, a.text, (size_t)ret);
	lnx_answer_free(&a);
	return ret;
}

int lnx_client_ask(struct lnx_proc *p, uint64_t eid, const char *text,
		   unsigned take_ms, unsigned answer_ms, struct lnx_answer *a)
{
	int ret = lnx_client_send(p, eid, text, strlen(text), take_ms, answer_ms, a);

	if (!ret)
		lnx_client_printable(a->text, a->len);
	return ret;
}

void lnx_answer_free(struct lnx_answer *a)
{
	free(a->text);
	a->text = NULL;
}

const char *lnx_client_error(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "it makes no progress: it has made no call that polls all that "
		       "time (see --wait); the request was withdrawn";
	case -ETIME:
		return "it took the request and did not answer in time";
	case -ESRCH:
		return "it has ended";
	case -EACCES:
		return "its segment may only be read";
	case -EBUSY:
		return "other readers keep its mailbox";
	case -E2BIG:
		return "the request is too long";
	case -EPROTO:
		return "its mailbox makes no sense";
	default:
		return strerror(-err);
	}
}
