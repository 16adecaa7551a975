/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The two layouts of the peer receive entry. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "obj/peer_abi.h"

Test(peer_abi, layout_follows_the_version)
{
	static const struct { unsigned major, minor; int ret; size_t lead; }
	row[] = {
		{ 1, 22, -FI_ENOSYS, 0 },
		{ 2, 0, -FI_ENOSYS, 0 },
		{ 2, 1, 0, LNX_PEER_LINKS },
		{ 2, 2, 0, LNX_PEER_LINKS },
		{ 2, 3, 0, 0 },
		{ 2, 7, 0, 0 },
		{ 2, 8, 0, 0 },
		{ 3, 0, 0, 0 },
	};

	for (size_t i = 0; i < LNX_ARRAY_SIZE(row); i++) {
		cr_expect_eq(lnx_peer_abi_init(FI_VERSION(row[i].major,
							  row[i].minor)),
			     row[i].ret, "%u.%u", row[i].major, row[i].minor);
		if (!row[i].ret)
			cr_expect_eq(lnx_peer_entry_lead, row[i].lead,
				     "%u.%u", row[i].major, row[i].minor);
	}
}

Test(peer_abi, out_and_in_are_inverse)
{
	struct lnx_peer_entry e;
	struct fi_peer_rx_entry *p;

	lnx_peer_abi_init(FI_VERSION(2, 1));
	p = lnx_peer_entry_out(&e);
	cr_expect_eq((void *)p, (void *)&e);
	cr_expect_eq(lnx_peer_entry_in(p), &e);

	lnx_peer_abi_init(FI_VERSION(2, 3));
	p = lnx_peer_entry_out(&e);
	cr_expect_eq((void *)p, (void *)&e.t);
	cr_expect_eq(lnx_peer_entry_in(p), &e);
}

/* The headers of this build have one of the two layouts. */
Test(peer_abi, tail_is_libfabric_s)
{
	size_t lead = offsetof(struct fi_peer_rx_entry, srx);

	cr_expect(lead == LNX_PEER_LINKS || lead == 0);
#define SAME(member) \
	cr_expect_eq(offsetof(struct fi_peer_rx_entry, member) - lead, \
		     offsetof(struct lnx_peer_rx, member), #member)
	SAME(srx);
	SAME(addr);
	SAME(msg_size);
	SAME(tag);
	SAME(cq_data);
	SAME(flags);
	SAME(context);
	SAME(count);
	SAME(desc);
	SAME(peer_context);
	SAME(owner_context);
	SAME(iov);
	cr_expect_eq(sizeof(struct fi_peer_rx_entry) - lead,
		     sizeof(struct lnx_peer_rx));
}

/* On the loaded library: the right layout passes, a wrong one is found and
 * harms nothing. */
Test(peer_abi, selftest_knows_right_from_wrong, .timeout = 60)
{
	size_t right = FI_VERSION_LT(fi_version(), LNX_PEER_ABI_NO_LINKS) ?
		       LNX_PEER_LINKS : 0;
	char why[160] = "";
	int ret;

	for (int round = 0; round < 3; round++) {
		ret = lnx_peer_abi_selftest(right, why, sizeof(why));
		if (ret && ret != -FI_ENOSYS) {
			cr_skip_test("not to be tested here: %s", why);
			return;
		}
		cr_expect_eq(ret, 0, "%s", why);
		ret = lnx_peer_abi_selftest(LNX_PEER_LINKS - right, why,
					    sizeof(why));
		cr_expect_eq(ret, -FI_ENOSYS);
		cr_expect(strstr(why, "in other places"), "%s", why);
	}
}

Test(peer_abi, unknown_version_is_tried)
{
	lnx_peer_abi_init(FI_VERSION(9, 0));
	cr_expect_eq(lnx_peer_abi_check(),
		     FI_VERSION_LT(fi_version(), LNX_PEER_ABI_NO_LINKS) ?
		     -FI_ENOSYS : 0);
}

Test(peer_abi, known_version_costs_nothing)
{
	lnx_peer_abi_init(FI_VERSION(2, 7));
	cr_expect_eq(lnx_peer_abi_check(), 0);
}
