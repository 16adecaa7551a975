/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any text is refused with an offset inside it and a reason, or has a canonical
 * form that means the same.
 *
 * Sources: conf/links.c
 */
#define LNX_FUZZ_NAME "links"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "conf/links.h"

static size_t print_all(const struct lnx_links *l, char *buf, size_t size)
{
	size_t n = 0;
	unsigned i;
	int r;

	for (i = 0; i < l->nlink; i++) {
		if (i)
			buf[n++] = '|';
		r = lnx_link_print(&l->link[i], buf + n, size - n);
		FUZZ_CHECK(r > 0 && r < LNX_LINK_TEXT_MAX);
		FUZZ_CHECK(strlen(buf + n) == (size_t)r);
		n += (size_t)r;
	}
	return n;
}

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[LNX_LINKS_MAX * LNX_LINK_TEXT_MAX];
	static char twice[LNX_LINKS_MAX * LNX_LINK_TEXT_MAX];
	static struct lnx_links links, again;
	char *text = malloc(size + 1), why[200];
	size_t at = SIZE_MAX, len;
	unsigned i, j;
	int ret;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(why, 'x', sizeof(why));
	ret = lnx_links_parse(text, &links, &at, why, sizeof(why));
	if (ret) {
		check_refusal(ret, at, strlen(text), why, sizeof(why));
		goto out;
	}
	FUZZ_CHECK(links.nlink && links.nlink <= LNX_LINKS_MAX);
	for (i = 0; i < links.nlink; i++) {
		struct lnx_link *l = &links.link[i];

		FUZZ_CHECK(l->npart && l->npart <= LNX_LINK_PARTS);
		FUZZ_CHECK(l->at < strlen(text));
		for (j = 0; j < l->npart; j++) {
			FUZZ_CHECK(l->part[j].at < strlen(text));
			FUZZ_CHECK(l->part[j].ndom <= LNX_PART_DOMS);
		}
	}
	len = print_all(&links, once, sizeof(once));
	ret = lnx_links_parse(once, &again, &at, why, sizeof(why));
	FUZZ_CHECK(!ret);
	FUZZ_CHECK(print_all(&again, twice, sizeof(twice)) == len);
	FUZZ_CHECK(!memcmp(once, twice, len));
out:
	free(text);
	return 0;
}
