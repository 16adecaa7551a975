/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes are refused with a reason, or unpack to something that packs to the
 * same bytes.  The first byte says how the rest is used: as it is, or with the
 * head of a valid address in front, so that the rails are reached quickly.
 *
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "addr"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/addr.h"

static void blob(const uint8_t *data, size_t size)
{
	uint8_t out[LNX_ADDR_BYTES];
	char why[200], text[1024];
	struct lnx_addr a;
	size_t i;
	int ret;

	memset(why, 'x', sizeof(why));
	ret = lnx_addr_unpack(&a, data, size, why, sizeof(why));
	if (ret) {
		FUZZ_CHECK(ret == -EINVAL || ret == -EPROTONOSUPPORT);
		FUZZ_CHECK(memchr(why, '\0', sizeof(why)));
		FUZZ_CHECK(strlen(why) > 15);
		for (i = 0; why[i]; i++)
			FUZZ_CHECK(why[i] >= ' ' && why[i] <= '~');
		return;
	}
	FUZZ_CHECK(size == LNX_ADDR_BYTES);
	FUZZ_CHECK(a.eid);
	FUZZ_CHECK(a.nrail <= LNX_ADDR_RAILS);
	FUZZ_CHECK(!lnx_addr_pack(&a, out));
	FUZZ_CHECK(!memcmp(out, data, sizeof(out)));
	FUZZ_CHECK(lnx_addr_print(&a, text, sizeof(text)) == strlen(text));
	FUZZ_CHECK(lnx_addr_print(&a, text, 20) > 20);
}

/* Packing gets structs from our own code, and must survive invalid ones too. */
static void any_struct(const uint8_t *data, size_t size)
{
	uint8_t out[LNX_ADDR_BYTES];
	char text[1024];
	struct lnx_addr a;

	memset(&a, 0, sizeof(a));
	/* bool members contain 0 or 1: leave them to the compiler */
	if (size < sizeof(a.rail) + 12)
		return;
	memcpy(a.rail, data, sizeof(a.rail));
	data += sizeof(a.rail);
	memcpy(&a.eid, data, sizeof(a.eid));
	memcpy(&a.nrail, data + 8, sizeof(a.nrail));
	lnx_addr_print(&a, text, sizeof(text));
	if (!lnx_addr_pack(&a, out))
		blob(out, sizeof(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t head[24] = { 'L', 'N', 'X', 'A', 1, 1, 3, 0, 1 };
	uint8_t buf[LNX_ADDR_BYTES] = { 0 };

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		blob(data + 1, size - 1);
		break;
	case 1:
		memcpy(buf, head, sizeof(head));
		buf[6] = data[0] / 3 % 9;
		if (size - 1 > sizeof(buf) - sizeof(head))
			size = 1 + sizeof(buf) - sizeof(head);
		memcpy(buf + sizeof(head), data + 1, size - 1);
		blob(buf, sizeof(buf));
		break;
	default:
		any_struct(data + 1, size - 1);
	}
	return 0;
}
