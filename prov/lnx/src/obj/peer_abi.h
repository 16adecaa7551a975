/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two layouts of struct fi_peer_rx_entry.
 *
 * Up to libfabric 2.2 the structure starts with two list pointers, from 2.3 on it does
 * not; everything after them is the same.  The library that loaded us decides which of
 * the two a core provider expects, not the headers that we were compiled with.  So our
 * code never uses the libfabric structure: an entry is a struct lnx_peer_entry, which
 * has room for the links in front.  A core gets a pointer to its start or to the part
 * behind the links.
 */
#ifndef LNX_PEER_ABI_H
#define LNX_PEER_ABI_H

#include <assert.h>
#include <stddef.h>

#include "base/compiler.h"
#include "fi.h"

/* Bytes of the two links. */
#define LNX_PEER_LINKS		(2 * sizeof(void *))

/* The newest and oldest libfabric whose layout is known. */
#define LNX_PEER_ABI_OLDEST	FI_VERSION(2, 1)
#define LNX_PEER_ABI_NO_LINKS	FI_VERSION(2, 3)
#define LNX_PEER_ABI_NEWEST	FI_VERSION(2, 7)

/* fi_peer_rx_entry behind the links; meaning of the members: fi_peer(3). */
struct lnx_peer_rx {
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
	uint64_t cq_data;
	uint64_t flags;
	void *context;
	size_t count;
	void **desc;
	void *peer_context;
	void *owner_context;
	struct iovec *iov;
};

struct lnx_peer_entry {
	void *lead[2];
	struct lnx_peer_rx t;
};
static_assert(offsetof(struct lnx_peer_entry, t) == LNX_PEER_LINKS,
	      "the tail follows the links directly");

/*
 * LNX_PEER_LINKS when the loaded library's entry starts with links, else 0.
 * Written by lnx_peer_abi_init() only, before any object exists.
 */
extern size_t lnx_peer_entry_lead;

/*
 * Our entry as a core provider sees it, and our entry for the one that a core returns.
 */
static inline struct fi_peer_rx_entry *
lnx_peer_entry_out(struct lnx_peer_entry *e)
{
	return (struct fi_peer_rx_entry *)((char *)&e->t - lnx_peer_entry_lead);
}

static inline struct lnx_peer_entry *
lnx_peer_entry_in(struct fi_peer_rx_entry *p)
{
	return lnx_container_of((char *)p + lnx_peer_entry_lead,
				struct lnx_peer_entry, t);
}

/*
 * Choose the layout for libfabric `version` (fi_version()).  Called while libfabric
 * loads us, so it calls nothing of libfabric.  0; or -FI_ENOSYS for a version older
 * than the oldest known.  For one newer than the newest known, the newest layout is
 * assumed and lnx_peer_abi_check() proves it later.
 */
int lnx_peer_abi_init(uint32_t version);

/*
 * Must have returned 0 before any peer object is opened.  Costs nothing for a known
 * version.  For an unknown one the first call runs the self-test; after a failure it
 * returns -FI_ENOSYS for ever, and lnx_peer_abi_why() says why.  Any thread; not from
 * inside fi_prov_ini (libfabric is not up yet).
 */
int lnx_peer_abi_check(void);
/* Why it failed, with both versions; "" when it did not. */
const char *lnx_peer_abi_why(void);

/*
 * Open an shm endpoint as a peer, send one tagged message with data to itself, and
 * check that the members of an entry are where layout `lead` (0 or LNX_PEER_LINKS) has
 * them.  0; -FI_ENOSYS: they are not; any other negative code: the test itself failed.
 * why gets one sentence on failure.  Uses no global, so that a wrong layout can be
 * tried as well.  Takes about a millisecond and leaves nothing behind.
 */
int lnx_peer_abi_selftest(size_t lead, char *why, size_t why_size);

#endif
