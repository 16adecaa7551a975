/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first line is text of nets, the second a pattern for NIDs.  Each is refused with
 * an offset inside it and a reason, or has a canonical form that means the same.  A
 * pattern that names one rail is for that rail.
 *
 * Sources: conf/nets.c
 * Sources: conf/nid.c
 * Sources: conf/cidr.c
 * Sources: conf/expr.c
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "nid"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "conf/nid.h"

static void check_refusal(int ret, const struct lnx_refusal *r, size_t size)
{
	const char *p;

	FUZZ_CHECK(ret == -EINVAL);
	FUZZ_CHECK(r->at <= size);
	FUZZ_CHECK(memchr(r->why, '\0', sizeof(r->why)));
	FUZZ_CHECK(strlen(r->why) > 10);
	for (p = r->why; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
}

static size_t print_nets(const struct lnx_nets *nets, char *buf, size_t size)
{
	size_t n = 0;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < nets->n; i++) {
		if (i)
			buf[n++] = ';';
		n += lnx_net_print(&nets->net[i], buf + n, size - n);
		FUZZ_CHECK(n < size && strlen(buf) == n);
	}
	return n;
}

static void check_nets(const char *text, struct lnx_nets *nets)
{
	static char once[LNX_NETS_MAX * LNX_NET_TEXT_MAX], twice[sizeof(once)];
	static struct lnx_nets again;
	struct lnx_refusal why;
	int ret = lnx_nets_parse(text, nets, &why);

	if (ret) {
		check_refusal(ret, &why, strlen(text));
		nets->n = 0;
		return;
	}
	print_nets(nets, once, sizeof(once));
	FUZZ_CHECK(!lnx_nets_parse(once, &again, &why));
	print_nets(&again, twice, sizeof(twice));
	FUZZ_CHECK(!strcmp(once, twice));
}

static void check_one(const struct lnx_nets *nets, const struct lnx_pattern *p)
{
	char text[LNX_NID_TEXT_MAX];
	struct lnx_pattern again;
	struct lnx_refusal why;
	struct lnx_nid nid;

	if (!lnx_nid_pattern_one(p, &nid))
		return;
	FUZZ_CHECK(lnx_nid_part_has(&p->part[0], &nid));
	FUZZ_CHECK(lnx_nid_print(&nid, text, sizeof(text)) < sizeof(text));
	why.text = text;
	FUZZ_CHECK(!lnx_nid_pattern_parse(nets, (struct lnx_span){ text, strlen(text) },
					  &again, &why));
	FUZZ_CHECK(lnx_nid_part_has(&again.part[0], &nid));
}

static void check_pattern(const struct lnx_nets *nets, const char *text)
{
	static struct lnx_pattern p, q;
	char once[LNX_PATTERN_TEXT_MAX], twice[LNX_PATTERN_TEXT_MAX];
	struct lnx_refusal why = { .text = text };
	int ret = lnx_nid_pattern_parse(nets, (struct lnx_span){ text, strlen(text) },
					&p, &why);

	if (ret) {
		check_refusal(ret, &why, strlen(text));
		return;
	}
	FUZZ_CHECK(p.n && p.n <= LNX_PATTERN_PARTS);
	FUZZ_CHECK(lnx_nid_pattern_print(p.part, p.n, once, sizeof(once)) <
		   sizeof(once));
	why.text = once;
	FUZZ_CHECK(!lnx_nid_pattern_parse(nets, (struct lnx_span){ once, strlen(once) },
					  &q, &why));
	FUZZ_CHECK(!memcmp(&p, &q, sizeof(p)));
	lnx_nid_pattern_print(q.part, q.n, twice, sizeof(twice));
	FUZZ_CHECK(!strcmp(once, twice));
	check_one(nets, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lnx_nets nets;
	char *text = malloc(size + 1), *line;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	line = strchr(text, '\n');
	if (line)
		*line++ = '\0';
	check_nets(text, &nets);
	if (line)
		check_pattern(&nets, line);
	free(text);
	return 0;
}
