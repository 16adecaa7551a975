/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The job key: where it comes from, and what HELLOs do with the right one, another one
 * or none.  The test is the peer, and other processes that send HELLOs in its name.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ep.h"
#include "comp/comp.h"
#include "core/job_key.h"
#include "fake_core.h"
#include "msg/tx.h"

#define KEY	"a key of this job"
#define OTHER	"a key of that job"

/* Without libsodium there is only the refusal. */
#ifdef HAVE_SODIUM
#define NEEDS_SODIUM
#else
#define NEEDS_SODIUM	cr_skip("built without libsodium")
#endif

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */
static uint8_t buf[1 << 12];

#define BOTH(name)							\
	static void name(enum lnx_rail_kind kind);			\
	Test(job_key_plain, name) { NEEDS_SODIUM; name(LNX_RAIL_PLAIN); } \
	Test(job_key_peer, name) { NEEDS_SODIUM; name(LNX_RAIL_PEER); }	\
	static void name(enum lnx_rail_kind kind)

/* ---- the text ---- */

static int load(const char *text, const char *path)
{
	struct lnx_conf c = fake_conf;
	struct lnx_job_key *key;
	int ret;

	c.job_key = text;
	c.job_key_file = path;
	ret = lnx_job_key_load(&c, &key);
	cr_expect_eq(lnx_job_key_check(&c), ret);
	cr_expect_eq(!key, ret || (!text && !path));
	lnx_job_key_free(key);
	return ret;
}

Test(job_key, lengths_of_the_text)
{
	char text[LNX_JOB_KEY_MAX + 2];
	size_t len;

	NEEDS_SODIUM;
	cr_expect_eq(load(NULL, NULL), 0);
	for (len = 0; len <= LNX_JOB_KEY_MAX + 1; len++) {
		memset(text, 'k', len);
		text[len] = '\0';
		cr_expect_eq(load(text, NULL), len >= LNX_JOB_KEY_MIN &&
			     len <= LNX_JOB_KEY_MAX ? 0 : -FI_EINVAL, "%zu",
			     len);
	}
}

static char path[] = "/tmp/lnx-job-key-XXXXXX";

static void file(const char *text, size_t len, mode_t mode)
{
	int fd = *path ? open(path, O_WRONLY | O_TRUNC) : -1;

	if (fd < 0)
		fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

Test(job_key, modes_of_the_file)
{
	mode_t mode;

	NEEDS_SODIUM;
	for (mode = 0400; mode <= 0777; mode++) {
		chmod(path, 0600);
		file(KEY "\n", sizeof(KEY), mode);
		cr_expect_eq(load(NULL, path), mode & 077 ? -FI_EACCES : 0,
			     "%o", (unsigned)mode);
	}
	unlink(path);
}

Test(job_key, what_is_no_key_file)
{
	char big[LNX_JOB_KEY_MAX + 3];

	NEEDS_SODIUM;
	memset(big, 'k', sizeof(big));
	cr_expect_eq(load(NULL, ""), -FI_EACCES);
	cr_expect_eq(load(NULL, "/tmp"), -FI_EACCES);
	cr_expect_eq(load(NULL, "/dev/zero"), -FI_EACCES);
	cr_expect_eq(load(NULL, "/proc/self/environ"), -FI_EINVAL);
	cr_expect_eq(load(NULL, "/nothing/there"), -FI_EACCES);
	file("\n", 1, 0600);
	cr_expect_eq(load(NULL, path), -FI_EINVAL);
	file(KEY "\n", LNX_JOB_KEY_MIN, 0600);
	cr_expect_eq(load(NULL, path), 0);
	file(KEY, LNX_JOB_KEY_MIN - 1, 0600);
	cr_expect_eq(load(NULL, path), -FI_EINVAL);
	file(big, LNX_JOB_KEY_MAX, 0600);
	cr_expect_eq(load(NULL, path), 0);
	file(big, LNX_JOB_KEY_MAX + 1, 0600);
	cr_expect_eq(load(NULL, path), -FI_EINVAL);
	big[LNX_JOB_KEY_MAX] = '\n';
	file(big, LNX_JOB_KEY_MAX + 1, 0600);
	cr_expect_eq(load(NULL, path), 0);
	file(big, LNX_JOB_KEY_MAX + 2, 0600);
	cr_expect_eq(load(NULL, path), -FI_EINVAL);
	if (!geteuid() && !chown(path, 65534, 65534)) {
		file(KEY, sizeof(KEY), 0600);
		cr_expect_eq(load(NULL, path), -FI_EACCES);
	}
	unlink(path);
	cr_expect_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(load(NULL, path), -FI_EACCES);
	unlink(path);
}

Test(job_key, contradictions)
{
	NEEDS_SODIUM;
	cr_expect_eq(load(KEY, "/nothing/there"), -FI_EINVAL);
	cr_expect_eq(load("", "/nothing/there"), -FI_EINVAL);
	fake_conf.use_srq = false;
	cr_expect_eq(load(KEY, NULL), -FI_EINVAL);
	fake_conf.use_srq = true;
	fake_conf.protocol = LNX_PROTOCOL_DIRECT;
	cr_expect_eq(load(KEY, NULL), -FI_EINVAL);
}

#ifndef HAVE_SODIUM
Test(job_key, needs_the_library)
{
	cr_expect_eq(load(KEY, NULL), -FI_ENOSYS);
	cr_expect_eq(load(NULL, "/nothing/there"), -FI_ENOSYS);
	cr_expect_eq(load("", NULL), -FI_ENOSYS);
}
#endif

/* The file and the variable are one thing. */
Test(job_key, file_and_text_are_one_key)
{
	static _Alignas(8) uint8_t frame[64 + 64 + 40];
	struct lnx_conf c = fake_conf;
	struct lnx_job_key *key[2];

	NEEDS_SODIUM;
	file(KEY "\n", sizeof(KEY), 0600);
	c.job_key = KEY;
	cr_assert_eq(lnx_job_key_load(&c, &key[0]), 0);
	c.job_key = NULL;
	c.job_key_file = path;
	cr_assert_eq(lnx_job_key_load(&c, &key[1]), 0);
	unlink(path);
	lnx_job_key_sign(key[0], frame, sizeof(frame));
	cr_expect(lnx_job_key_verify(key[1], frame, sizeof(frame)));
	cr_expect(!lnx_job_key_verify(key[1], frame, 103));
	cr_expect(!lnx_job_key_verify(key[1], frame, 1 << 20));
	lnx_job_key_free(key[0]);
	lnx_job_key_free(key[1]);
}

/* ---- HELLOs ---- */

static struct lnx_job_key *right, *wrong;
static _Alignas(64) uint8_t last[512];	/* the last one that arrived */
static size_t last_len;

static struct lnx_job_key *key_of(const char *text)
{
	struct lnx_conf c = fake_conf;
	struct lnx_job_key *key;

	c.job_key = text;
	cr_assert_eq(lnx_job_key_load(&c, &key), 0);
	return key;
}

/* ours: the endpoint's key, or NULL */
static void open_with(enum lnx_rail_kind kind, const char *ours)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_conf.job_key = ours;
	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	p.must_greet = true;
	fake_peer_insert(&f, &p);
	right = key_of(KEY);
	wrong = key_of(OTHER);
}

static void close_all(void)
{
	lnx_job_key_free(right);
	lnx_job_key_free(wrong);
	fake_close(&f);
}

static struct lnx_peer *inside(void)
{
	return lnx_peer_by_eid(f.lnx, p.eid);
}

/* Make a HELLO of p with number `seq`, in `last`; key NULL: without a hash. */
static void make(const struct lnx_job_key *key, uint64_t sid, uint32_t seq,
		 uint64_t stamp, uint64_t data, uint64_t nonce)
{
	struct lnx_hdr h = {
		.kind = LNX_KIND_HELLO, .flags = key ? LNX_WIRE_F_KEYED : 0,
		.src = sid, .dst = f.lnx->eid, .tag = stamp, .data = data,
		.seq = seq, .ack = sid == p.sid ? p.got : 0, .key = seq,
	};

	nonce = htole64(nonce);
	lnx_hdr_put((void *)last, &h);
	memcpy(last + 64, p.blob, sizeof(p.blob));
	last_len = 64 + sizeof(p.blob);
	if (!key)
		return;
	memcpy(last + last_len, &nonce, sizeof(nonce));
	last_len += sizeof(struct lnx_wire_proof);
	lnx_job_key_sign(key, last, last_len);
}

static void arrive(void)
{
	fake_arrive(core, last, last_len);
	fake_passes(&f, 4);
}

static void hello(const struct lnx_job_key *key, uint64_t sid, uint64_t stamp,
		  uint64_t data, uint64_t nonce)
{
	make(key, sid, 0, stamp, data, nonce);
	arrive();
}

/* Discard what left, also what others than p get. */
static void discard(void)
{
	struct fake_sent *s;

	fake_after_ms(&f, 3);
	while ((s = fake_take(core)))
		free(s);
}

/* What is refused, after other frames; returns its data. */
static uint64_t refused(uint64_t why, uint64_t to)
{
	struct fake_sent *s;
	uint64_t data;

	fake_after_ms(&f, 3);
	while ((s = fake_take(core)) && s->h.kind != LNX_KIND_NO_SESSION)
		free(s);
	cr_assert_not_null(s);
	cr_expect_eq(s->h.tag, why);
	cr_expect_eq(s->h.dst, to);
	cr_expect_eq(s->h.src, f.lnx->eid);
	data = s->h.data;
	free(s);
	return data;
}

/* The session of p with that id, or another one, begins.  Returns the nonce. */
static uint64_t begin(uint64_t sid, uint64_t stamp)
{
	uint64_t nonce;

	hello(right, sid, stamp, 0, 0);
	nonce = refused(LNX_REFUSED_NONCE, sid);
	cr_expect_neq(nonce, 0);
	hello(right, sid, stamp, 0, nonce);
	cr_assert_eq(view_rx_sid(inside()), sid);
	p.sid = sid;
	p.seq = 1;
	return nonce;
}

/* Our HELLO, with the right hash. */
static struct lnx_hdr our_hello(uint64_t nonce)
{
	struct fake_sent *s = fake_expect(&f, &p, LNX_KIND_HELLO);
	struct lnx_wire_proof proof;
	struct lnx_hdr h = s->h;

	cr_assert_eq(h.flags, LNX_WIRE_F_KEYED);
	cr_expect(lnx_job_key_verify(right, s->bytes, s->len));
	cr_expect(!lnx_job_key_verify(wrong, s->bytes, s->len));
	memcpy(&proof, s->bytes + s->len - sizeof(proof), sizeof(proof));
	cr_expect_eq(le64toh(proof.nonce), nonce);
	free(s);
	return h;
}

static ssize_t send1(void *context)
{
	return fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, context);
}

static void send_acked(void *context)
{
	struct iovec iov = { (void *)"x", 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = p.addr,
			    .context = context };

	cr_assert_eq(fi_sendmsg(f.ep, &m, FI_DELIVERY_COMPLETE), 0);
}

static void recv1(void *context)
{
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0,
			      context), 0);
}

/* Both know each other, and p is due to acknowledge a send. */
static void open_met(enum lnx_rail_kind kind)
{
	open_with(kind, KEY);
	begin(0x51, 100);
	recv1(&a);
	fake_tag(&f, &p, 1, "x", 1);
	fake_comp(&f, &a);
	fake_after_ms(&f, 5);
	cr_expect_eq(our_hello(0).data, 0x51u);
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	fake_passes(&f, 2);
	send_acked(&b);
	fake_expect_drop(&f, &p, LNX_KIND_MSG);
	fake_drop_all(&f, &p);
}

/* What was sent in open_met comes to its end in the session of then. */
static void goes_on(void)
{
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	cr_expect(lnx_peer_open(inside()));
	discard();
	p.got = view_next(inside());
	fake_ack(&f, &p);
	fake_comp(&f, &b);
}

BOTH(the_right_key_begins_a_session)
{
	open_met(kind);
	goes_on();
	cr_expect_eq(f.lnx->stats.key_drops, 0);
	cr_expect_eq(f.lnx->stats.bad_frames, 0);
	close_all();
}

BOTH(another_key_or_none_does_not)
{
	open_with(kind, KEY);
	hello(wrong, 0x51, 100, 0, 0);
	refused(LNX_REFUSED_KEY, 0x51);
	fake_after_ms(&f, 100);
	hello(NULL, 0x52, 100, 0, 0);
	refused(LNX_REFUSED_KEY, 0x52);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	cr_expect_eq(f.lnx->stats.key_drops, 2);
	cr_expect_eq(view_unsolicited(f.lnx), 0u);
	/* Nor with the nonce. */
	begin(0x53, 100);
	discard();
	hello(wrong, 0x54, 200, 0, view_hello_nonce(f.lnx));
	hello(NULL, 0x54, 200, 0, 0);
	cr_expect_eq(view_rx_sid(inside()), 0x53u);
	close_all();
}

BOTH(no_key_here)
{
	open_with(kind, NULL);
	hello(right, 0x51, 100, 0, 0);
	refused(LNX_REFUSED_KEY, 0x51);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	cr_expect_eq(f.lnx->stats.key_drops, 1);
	hello(NULL, 0x51, 100, 0, 0);
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	close_all();
}

/* Every byte counts, except those that change on the way. */
BOTH(a_changed_hello_does_nothing)
{
	static uint8_t whole[sizeof(last)];
	uint64_t nonce;
	size_t i, len;

	open_met(kind);
	nonce = view_hello_nonce(f.lnx);
	make(right, 0x52, 0, 200, 0, nonce);
	memcpy(whole, last, sizeof(last));
	len = last_len;
	for (i = 0; i < len; i++) {
		/* hops, path, rail, ack */
		if ((i >= 4 && i < 8) || (i >= 12 && i < 16))
			continue;
		memcpy(last, whole, sizeof(last));
		last[i] ^= 1u << i % 8;
		arrive();
		cr_expect_eq(view_rx_sid(inside()), 0x51u, "byte %zu", i);
	}
	for (last_len = 0; last_len < len; last_len++) {
		memcpy(last, whole, sizeof(last));
		arrive();
		cr_expect_eq(view_rx_sid(inside()), 0x51u, "length %zu", i);
	}
	goes_on();
	/* It was right before. */
	discard();
	memcpy(last, whole, sizeof(last));
	last_len = len;
	arrive();
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	close_all();
}

/* The HELLO that began a session, sent again by a process that recorded it: while the session
 * lasts, after another one, after it was forgotten, and to another endpoint. */
BOTH(an_old_hello_does_nothing)
{
	static uint8_t old[sizeof(last)];
	uint64_t data;
	size_t len;
	unsigned i;

	open_met(kind);
	memcpy(old, last, sizeof(last));
	len = last_len;
	arrive();
	goes_on();
	data = view_sid(inside());
	begin(0x52, 200);
	cr_expect_neq(view_sid(inside()), data);
	memcpy(last, old, last_len = len);
	arrive();
	cr_expect_eq(view_rx_sid(inside()), 0x52u);
	discard();
	/* We begin another one, in which the peer has not yet said anything. */
	begin(0x53, 300);
	memcpy(old, last, last_len);
	fake_frame(&f, &p, (struct lnx_hdr) { .kind = LNX_KIND_BYE, .seq = 1 },
		   NULL, 0);
	fake_passes(&f, 4);
	cr_expect(!lnx_peer_open(inside()));
	lnx_peer_detach(inside());
	cr_assert_eq(view_rx_sid(inside()), 0u);
	discard();
	memcpy(last, old, last_len);
	arrive();
	cr_expect_eq(view_rx_sid(inside()), 0u);
	/* Any number of times. */
	for (i = 0; i < 3; i++) {
		arrive();
		cr_expect_eq(view_rx_sid(inside()), 0u);
	}
	close_all();
}

/* One that answered ours, which it named. */
BOTH(an_old_answer_does_nothing)
{
	uint64_t sid;

	open_with(kind, KEY);
	cr_assert_eq(send1(&a), 0);
	fake_comp(&f, &a);
	our_hello(0);
	sid = view_sid(inside());
	hello(right, 0x51, 100, sid ^ 1, 0);
	refused(LNX_REFUSED_NONCE, 0x51);
	cr_expect_eq(view_rx_sid(inside()), 0u);
	hello(right, 0x51, 100, sid, 0);
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	hello(right, 0x52, 200, sid, 0);
	refused(LNX_REFUSED_NONCE, 0x52);
	cr_expect_eq(view_rx_sid(inside()), 0x51u);
	close_all();
}

/* One that knows both endpoints' ids, in the name of p.  Without a key that is a way to
 * end the session; with one it is not. */
BOTH(a_forged_hello)
{
	open_met(kind);
	hello(NULL, 0x666, 1ULL << 62, 0, 0);
	hello(wrong, 0x666, 1ULL << 62, 0, 0);
	hello(wrong, 0x666, 1ULL << 62, 0, view_hello_nonce(f.lnx));
	hello(wrong, 0x666, 1ULL << 62, view_sid(inside()), view_hello_nonce(f.lnx));
	goes_on();
	close_all();
	fake_conf.job_key = NULL;
	open_with(kind, NULL);
	hello(NULL, 0x51, 100, 0, 0);
	hello(NULL, 0x666, 1ULL << 62, 0, 0);
	cr_expect_eq(view_rx_sid(inside()), 0x666u);
	close_all();
}

/* A later HELLO of the session tells addresses: it needs the hash too. */
BOTH(a_later_hello)
{
	uint32_t next;

	open_met(kind);
	next = view_rx_next(inside());
	make(wrong, 0x51, next, 100, 0, 0);
	arrive();
	make(NULL, 0x51, next, 100, 0, 0);
	arrive();
	cr_expect_eq(view_rx_next(inside()), next);
	cr_expect_eq(view_address_epoch(inside()), 0);
	cr_expect_eq(f.lnx->stats.key_drops, 2);
	make(right, 0x51, next, 100, 0, 0);
	arrive();
	cr_expect_eq(view_rx_next(inside()), next + 1);
	cr_expect_eq(view_address_epoch(inside()), next);
	goes_on();
	close_all();
}

static void say_no(uint64_t why, uint64_t data)
{
	fake_frame(&f, &p, (struct lnx_hdr) {
		   .kind = LNX_KIND_NO_SESSION, .src = p.eid,
		   .dst = view_sid(inside()), .tag = why, .data = data }, NULL, 0);
	fake_passes(&f, 2);
}

/* What p asks for. */
BOTH(our_hello_gets_the_nonce)
{
	struct lnx_hdr h[3];

	open_with(kind, KEY);
	send_acked(&b);
	h[0] = our_hello(0);
	fake_expect_drop(&f, &p, LNX_KIND_MSG);
	say_no(LNX_REFUSED_NONCE, 77);
	h[1] = our_hello(77);
	cr_expect_eq(h[0].src, h[1].src);
	cr_expect_eq(h[0].tag, h[1].tag);
	/* Its clock is later: that needs another hash. */
	discard();
	say_no(LNX_REFUSED_OLD, h[1].tag + 1000);
	h[2] = our_hello(0);
	cr_expect_eq(h[2].tag, h[1].tag + 1001);
	discard();
	say_no(LNX_REFUSED_NONCE, 78);
	our_hello(78);
	/* Now p takes it, and the message again. */
	p.got = 1;
	discard();
	hello(right, 0x51, 100, view_sid(inside()), 0);
	p.sid = 0x51;
	fake_ack(&f, &p);
	fake_passes(&f, 4);
	fake_expect_drop(&f, &p, LNX_KIND_MSG);
	fake_ack(&f, &p);
	fake_comp(&f, &b);
	/* Too late. */
	say_no(LNX_REFUSED_NONCE, 79);
	fake_expect_none(&f);
	close_all();
}

/* p has another key: what is due fails, so does what follows. */
BOTH(our_key_is_refused)
{
	open_with(kind, KEY);
	send_acked(&b);
	our_hello(0);
	discard();
	say_no(LNX_REFUSED_KEY, 0);
	fake_err(&f, &b, FI_EACCES);
	cr_expect_eq(send1(&a), -FI_EACCES);
	cr_expect_eq(f.lnx->stats.failed, 1);
	/* It was restarted with the right one, and has nothing of us. */
	p.got = 0;
	begin(0x51, 100);
	cr_expect_eq(send1(&a), 0);
	fake_comp(&f, &a);
	close_all();
}

/* A process that knows the id of an established session cannot do that. */
BOTH(a_late_refusal_does_nothing)
{
	open_met(kind);
	say_no(LNX_REFUSED_KEY, 0);
	goes_on();
	close_all();
}

/* HELLOs without the right hash, of ever other senders, as fast as they come. */
BOTH(a_flood)
{
	unsigned i, told = 0;
	struct fake_sent *s;

	open_met(kind);
	for (i = 0; i < 2000; i++) {
		make(i % 2 ? wrong : NULL, 0x10000 + i, 0, 100, 0, 0);
		fake_arrive(core, last, last_len);
		fake_pass(&f);
		cr_expect_leq(view_misdirected(f.lnx), LNX_MISDIRECTED_MAX / 2);
	}
	while ((s = fake_take(core))) {
		told += s->h.kind == LNX_KIND_NO_SESSION;
		free(s);
	}
	cr_expect_leq(told, 10, "%u of %u were answered", told, i);
	cr_expect_eq(f.lnx->stats.key_drops, 2000);
	cr_expect_leq(view_peers(f.lnx), 1u);
	goes_on();
	close_all();
}
