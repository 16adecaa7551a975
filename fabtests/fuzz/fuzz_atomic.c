/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any bytes as the payload of an ATOMIC.  An accepted payload has the lengths that
 * it gives, and is the same when written again, except for reserved fields.
 *
 * Sources: wire/atomic.c
 */
#define LNX_FUZZ_NAME "atomic"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "wire/atomic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[sizeof(struct lnx_wire_atomic) + LNX_ATOMIC_SEGS *
		    sizeof(struct lnx_wire_atomic_seg) + 1];
	struct lnx_atomic a;
	uint8_t *copy;
	unsigned i, sum = 0;
	int ret;

	if (size > LNX_PAYLOAD_MAX)
		return 0;
	copy = malloc(size ? size : 1);
	FUZZ_CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	ret = lnx_atomic_get(&a, copy, size);
	if (ret) {
		FUZZ_CHECK(ret == -EBADMSG);
		free(copy);
		return 0;
	}
	FUZZ_CHECK(a.nseg >= 1 && a.nseg <= LNX_ATOMIC_SEGS);
	FUZZ_CHECK(a.noperand <= 2);
	FUZZ_CHECK(a.size >= 1 && a.size <= LNX_ATOMIC_ELEM_MAX);
	FUZZ_CHECK(lnx_atomic_bytes(&a) <= LNX_ATOMIC_BYTES_MAX);
	FUZZ_CHECK(lnx_atomic_size(&a) == size);
	for (i = 0; i < a.nseg; i++) {
		FUZZ_CHECK(a.seg[i].count <= a.count);
		sum += a.seg[i].count;
		memset(copy + sizeof(struct lnx_wire_atomic) +
		       i * sizeof(struct lnx_wire_atomic_seg) +
		       offsetof(struct lnx_wire_atomic_seg, reserved0), 0, 6);
	}
	FUZZ_CHECK(sum == a.count);
	memset(out, 0xee, sizeof(out));
	lnx_atomic_put(out, &a);
	FUZZ_CHECK(!memcmp(out, copy, lnx_atomic_head(&a)));
	FUZZ_CHECK(out[lnx_atomic_head(&a)] == 0xee);
	free(copy);
	return 0;
}
