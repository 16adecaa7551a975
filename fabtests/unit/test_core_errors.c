/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors from cores whose context is not an operation of ours: NULL, the core's
 * own memory, a position inside an operation, an operation that has ended.
 * They must be told from real ones, and must change nothing.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comp/comp.h"
#include "core/warn_once.h"
#include "core/open.h"
#include "fake_core.h"
#include "fake_inside.h"
#include "policy/errclass.h"
#include "msg/rx.h"
#include "msg/tx.h"

/* policy/ contains libfabric's numbers as constants. */
_Static_assert(LNX_ETRUNC == FI_ETRUNC && LNX_ENOKEY == FI_ENOKEY &&
	       FI_ECANCELED == ECANCELED && FI_EAGAIN == EAGAIN, "errors.def");

static struct fake f;
static struct fake_core *core;
static struct fake_peer p;
static char a, b;			/* contexts */

static void open_kind(enum lnx_rail_kind kind)
{
	struct fake_opt opt = { .nrail = 1, .kind = { kind } };

	fake_open(&f, &opt);
	core = f.core[0];
	fake_peer_init(&f, &p, 0x1111);
	fake_peer_insert(&f, &p);
}

/* An error as the core would report it. */
static void error(void *context, uint64_t flags)
{
	struct fi_cq_err_entry err = {
		.op_context = context, .flags = flags, .err = FI_ECONNRESET,
		.prov_errno = FI_ECONNRESET,
	};

	lnx_lock(&f.lnx->lock);
	if (core->kind == LNX_RAIL_PLAIN)
		lnx_rail_core_error(f.lnx->rail[0], &err);
	else
		core->peer_cq->owner_ops->writeerr(core->peer_cq, &err);
	lnx_unlock(&f.lnx->lock);
}

/* Every context that a core has been seen to return, and some more. */
static void nonsense(void *inside)
{
	static const uint64_t flags[] = {
		0, FI_SEND | FI_MSG, FI_RECV | FI_MSG, FI_READ | FI_RMA,
	};
	uint64_t memory[64] = { 0 };
	void *heap = calloc(1, 4096);
	size_t i;

	cr_assert_not_null(heap);
	for (i = 0; i < LNX_ARRAY_SIZE(flags); i++) {
		error(NULL, flags[i]);
		error(memory, flags[i]);
		error(heap, flags[i]);
		error((void *)(uintptr_t)1, flags[i]);
		error((void *)UINTPTR_MAX, flags[i]);
		if (inside)
			error((char *)inside + 8, flags[i]);
	}
	for (i = 0; i < LNX_ARRAY_SIZE(memory); i++)
		cr_assert_eq(memory[i], 0, "the core's memory was written");
	for (i = 0; i < 4096; i++)
		cr_assert_eq(((char *)heap)[i], 0, "the core's memory was written");
	free(heap);
}

/* A send that the core holds, invalid errors meanwhile, and then its real end. */
static void framed(enum lnx_rail_kind kind)
{
	struct lnx_txe *txe;
	struct lnx_peer *peer;
	uint8_t big[1000] = { 7 };

	open_kind(kind);
	cr_assert_eq(fi_tsend(f.ep, "x", 1, NULL, p.addr, 1, &a), 0);
	fake_expect_drop(&f, &p, LNX_KIND_HELLO);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &a);
	fake_ack(&f, &p);
	fake_pass(&f);

	core->hold_sends = true;
	cr_assert_eq(fi_tsend(f.ep, big, sizeof(big), NULL, p.addr, 2, &b), 0);
	fake_expect_drop(&f, &p, LNX_KIND_TAG);
	fake_comp(&f, &b);
	peer = lnx_peer_get(f.lnx, p.addr);
	txe = view_oldest(peer);
	cr_assert_not_null(txe);
	nonsense(txe);
	cr_expect(txe->f.in_core, "still the core's");
	cr_expect_eq(f.lnx->rail[0]->busy, 1);
	fake_finish_all(core);
	fake_ack(&f, &p);
	fake_quiet(&f);
	cr_expect_eq(view_acked(peer), view_posted(peer));

	/* Its end once more: the entry is not in use any more. */
	error(txe, FI_SEND | FI_MSG);
	cr_expect_eq(f.lnx->rail[0]->busy, 0);
	fake_after_ms(&f, 10);
	fake_quiet(&f);
	fake_expect_none(&f);
	fake_close(&f);
}

Test(core_errors, plain) { framed(LNX_RAIL_PLAIN); }
Test(core_errors, peer) { framed(LNX_RAIL_PEER); }

/* A piece whose read failed waits to be read again: a second error for it is
 * ignored. */
static void pulled(enum lnx_rail_kind kind)
{
	static uint8_t mem[4096], to[4096];
	static const uint64_t seg[1] = { sizeof(mem) };
	void *chunk;

	open_kind(kind);
	memset(mem, 7, sizeof(mem));
	fake_hello(&f, &p);
	cr_assert_eq(fi_trecv(f.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, 5, 0,
			      &a), 0);
	core->hold_reads = true;
	fake_rts(&f, &p, true, 5, 99, mem, seg, 1);
	fake_passes(&f, 3);
	cr_assert_eq(fake_held(core), 1);
	chunk = core->out->context;
	fake_finish(core, 0, FI_ECONNRESET);
	fake_pass(&f);
	cr_expect_eq(f.lnx->rail[0]->busy, 0);
	error(chunk, FI_READ | FI_RMA);
	cr_expect_eq(f.lnx->rail[0]->busy, 0, "counted twice");
	fake_quiet(&f);
	core->hold_reads = false;
	fake_after_ms(&f, 100);
	/* It took long: the sender has to confirm. */
	fake_drop_all(&f, &p);
	fake_ack(&f, &p);
	cr_expect_eq(fake_comp(&f, &a).len, sizeof(to));
	cr_expect_arr_eq(to, mem, sizeof(to));
	fake_drop_all(&f, &p);
	fake_quiet(&f);
	/* Again after it has ended. */
	error(chunk, FI_READ | FI_RMA);
	cr_expect_eq(f.lnx->rail[0]->busy, 0);
	fake_ack(&f, &p);
	fake_quiet(&f);
	fake_close(&f);
}

Test(core_errors, pulled_plain) { pulled(LNX_RAIL_PLAIN); }
Test(core_errors, pulled_peer) { pulled(LNX_RAIL_PEER); }

/*
 * On the direct rail the context of a send is the application's and is passed
 * up unchanged; anything else is invalid unless it is a receive entry.
 */
Test(core_errors, direct)
{
	uint8_t buf[100];
	void *heap = calloc(1, 4096);

	open_kind(LNX_RAIL_DIRECT);
	cr_assert_eq(fi_trecv(f.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 5,
			      0, &a), 0);
	error(NULL, 0);
	error(heap, 0);
	error(heap, FI_RECV | FI_TAGGED);
	fake_quiet(&f);
	error(&b, FI_SEND | FI_TAGGED);
	fake_err(&f, &b, FI_ECONNRESET);
	/* The receive still works. */
	fake_direct(core, true, 0, 5, NULL, "hello", 5);
	cr_expect_eq(fake_comp(&f, &a).len, 5);
	cr_expect_arr_eq(buf, "hello", 5);
	free(heap);
	fake_close(&f);
}

/* ---- rails that do not open ---- */

/* New text on standard error since the last call. */
static const char *said(int fd)
{
	static char buf[512];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

/* A link that the user set and that does not open gives a warning.  A rail that
 * is reopened later, on a network that comes and goes, gives none. */
Test(core_errors, only_the_first_opening_warns)
{
	struct lnx_rail *rail;
	int fd[2];

	cr_assert_eq(pipe2(fd, O_NONBLOCK), 0);
	cr_assert_geq(dup2(fd[1], STDERR_FILENO), 0);
	open_kind(LNX_RAIL_PLAIN);
	rail = f.lnx->rail[0];
	fake_conf.prov_links = "tcp:eth0";
	for (int quiet = 1; quiet >= 0; quiet--) {
		lnx_warn_once_fini();
		lnx_warn_aloud(!quiet);
		for (int first = 0; first < 2; first++) {
			lnx_rail_close_ep(rail);
			core->ep_fails = 1;
			force_enabled(f.lnx, !first);
			cr_assert_neq(lnx_rail_open_ep(rail, 0), 0);
			force_enabled(f.lnx, true);
			if (quiet || !first) {
				cr_expect_str_eq(said(fd[0]), "");
				continue;
			}
			cr_expect_not_null(strstr(said(fd[0]),
				"lnx: FI_LNX_PROV_LINKS=\"tcp:eth0\": rail "));
		}
	}
	cr_assert_eq(lnx_rail_open_ep(rail, 0), 0);
	lnx_warn_once_fini();
	fake_conf.prov_links = NULL;
	fake_close(&f);
}

/*
 * Until a core's fi_enable succeeds, it takes a receive context that was lent
 * to it for its own when it is closed (fake_core.c checks that).
 */
Test(core_errors, not_enabled_and_closed)
{
	struct lnx_rail *rail;
	unsigned i;

	open_kind(LNX_RAIL_PEER);
	rail = f.lnx->rail[0];
	for (i = 0; i < 3; i++) {
		lnx_rail_close_ep(rail);
		core->enable_fails = 1;
		cr_assert_eq(lnx_rail_open_ep(rail, 0), -FI_EADDRINUSE);
		cr_assert_null(rail->core_ep);
		cr_assert_eq(lnx_rail_open_ep(rail, 0), 0);
	}
	fake_close(&f);
}
