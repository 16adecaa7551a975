/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any text is refused with an offset inside it and a reason, or has a canonical form
 * that means the same: both tables decide the same for some frames.
 *
 * Sources: policy/fault.c
 * Sources: policy/fault_print.c
 * Sources: policy/fault_text.c
 * Sources: policy/class.c
 * Sources: wire/hdr.c
 */
#define LNX_FUZZ_NAME "fault"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "policy/fault.h"

#define TEXT_BYTES	(16 * LNX_FAULT_TEXT_MAX)
#define MS		1000000ULL

static void check_refusal(int ret, size_t at, size_t size, const char *why,
			  size_t why_size)
{
	FUZZ_CHECK(ret == -EINVAL);
	FUZZ_CHECK(at <= size);
	FUZZ_CHECK(memchr(why, '\0', why_size));
	FUZZ_CHECK(strlen(why) > 10);
	for (; *why; why++)
		FUZZ_CHECK(*why >= ' ' && *why <= '~');
}

static size_t print_all(const struct lnx_fault *t, char *buf)
{
	size_t n = 0;
	unsigned i;

	FUZZ_CHECK(lnx_fault_nrule(t) &&
		   lnx_fault_nrule(t) <= LNX_FAULT_RULES);
	for (i = 0; i < lnx_fault_nrule(t); i++) {
		if (i)
			buf[n++] = ';';
		n += lnx_fault_print(t, i, buf + n, TEXT_BYTES - n);
		FUZZ_CHECK(n < TEXT_BYTES && strlen(buf) == n);
	}
	return n;
}

static void judge_alike(struct lnx_fault *a, struct lnx_fault *b)
{
	static const char *const rails[] = { "tcp:eth0", "tcp;ofi_rxm:lo", "" };
	unsigned i;

	for (i = 0; i < 200; i++) {
		enum lnx_fault_at at = i % 2 ? LNX_FAULT_AT_RECV :
					       LNX_FAULT_AT_SEND;
		struct lnx_fault_frame f = {
			.rail = rails[i % 3], .remote_rail = i % 5,
			.eid = i % 7, .addr = i % 4, .kind = (uint8_t)(i % 64),
		};
		struct lnx_fault_verdict v = lnx_fault_judge(a, at, &f, i * MS);
		struct lnx_fault_verdict w = lnx_fault_judge(b, at, &f, i * MS);

		FUZZ_CHECK(v.action == w.action && v.rule == w.rule &&
			   v.delay_ns == w.delay_ns && v.class == w.class);
		if (v.action == LNX_FAULT_FAIL)
			FUZZ_CHECK(lnx_fault_class_of(LNX_FAULT_ERRNO_BASE +
						      (int)v.class));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[TEXT_BYTES], twice[TEXT_BYTES];
	char *text = malloc(size + 1), why[600];
	struct lnx_fault *t, *u;
	size_t at = SIZE_MAX, len;
	int ret;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(why, 'x', sizeof(why));
	ret = lnx_fault_create(text, 1, 0, &t, &at, why, sizeof(why));
	if (ret) {
		check_refusal(ret, at, strlen(text), why, sizeof(why));
		free(text);
		return 0;
	}
	len = print_all(t, once);
	/* With all names written in full it may have become too long. */
	if (len < LNX_FAULT_TEXT_MAX) {
		FUZZ_CHECK(!lnx_fault_create(once, 2, 0, &u, &at, why,
					     sizeof(why)));
		FUZZ_CHECK(print_all(u, twice) == len);
		FUZZ_CHECK(!memcmp(once, twice, len));
		judge_alike(t, u);
		lnx_fault_destroy(u);
	}
	lnx_fault_destroy(t);
	free(text);
	return 0;
}
