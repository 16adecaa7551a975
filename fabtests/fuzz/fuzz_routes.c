/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Text of routes, of the variable as of "route add", "route put" and "route del": refused
 * with an offset inside it and a reason, and then nothing is changed; or there is a
 * canonical form that means the same, and deleting what was added leaves nothing.
 *
 * Sources: conf/routes.c
 * Sources: conf/routes_text.c
 * Sources: conf/nets.c
 * Sources: conf/nid.c
 * Sources: conf/cidr.c
 * Sources: conf/expr.c
 * Sources: policy/route.c policy/rtt.c
 * Sources: policy/rule.c
 * Sources: policy/rule_text.c
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "routes"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/out.h"
#include "conf/routes.h"

#define PRINTED	(1u << 20)	/* LNX_ROUTES_MAX do not fit, and then the text is not compared */

static const struct lnx_nid ours = { .net = "tcp", .len = 4, .addr = { 10, 77, 0, 1 } };
static const struct lnx_route_host host = { .rail = &ours, .n = 1 };

static void check_refusal(int ret, const struct lnx_refusal *r, const char *text)
{
	const char *p;

	FUZZ_CHECK(ret == -EINVAL || ret == -EEXIST || ret == -EHOSTUNREACH ||
		   ret == -ENOENT || ret == -ENOSPC);
	FUZZ_CHECK(r->at <= strlen(text));
	FUZZ_CHECK(memchr(r->why, '\0', sizeof(r->why)));
	FUZZ_CHECK(strlen(r->why) > 10);
	for (p = r->why; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
}

/* What is printed is the same table again. */
static void check_printed(const struct lnx_routes *t)
{
	static char once[PRINTED], twice[PRINTED];
	struct lnx_refusal why;
	struct lnx_routes again;
	size_t n = lnx_routes_print(t, once, sizeof(once));

	if (n >= sizeof(once))
		return;
	FUZZ_CHECK(strlen(once) == n);
	lnx_routes_init(&again, 2);
	FUZZ_CHECK(!lnx_routes_parse(&again, NULL, once, NULL, &why));
	FUZZ_CHECK(again.n == t->n);
	FUZZ_CHECK(lnx_routes_print(&again, twice, sizeof(twice)) == n);
	FUZZ_CHECK(!strcmp(once, twice));
	/* "put" of what is there changes nothing. */
	FUZZ_CHECK(!lnx_routes_put(&again, NULL, once, NULL, &(struct lnx_out){ 0 }, &why));
	FUZZ_CHECK(lnx_routes_print(&again, twice, sizeof(twice)) == n);
	FUZZ_CHECK(!strcmp(once, twice));
	lnx_routes_fini(&again);
}

/* Each route is deleted by its own text; the last one leaves nothing. */
static void check_deleting(struct lnx_routes *t)
{
	char text[LNX_ROUTE_TEXT_MAX];
	struct lnx_refusal why;
	unsigned n;

	if (t->n > 64)
		return;
	while ((n = t->n)) {
		FUZZ_CHECK(lnx_route_print(&t->route[n - 1].spec, text, sizeof(text)) <
			   sizeof(text));
		FUZZ_CHECK(!lnx_routes_del(t, NULL, text, &why));
		FUZZ_CHECK(t->n == n - 1);
		FUZZ_CHECK(lnx_routes_del(t, NULL, text, &why) == -ENOENT);
	}
}

static void check_table(const char *text, const struct lnx_route_host *of)
{
	char skipped[300];
	struct lnx_out o = { .buf = skipped, .size = sizeof(skipped) };
	struct lnx_refusal why;
	struct lnx_routes t;
	int ret;

	lnx_routes_init(&t, 1);
	ret = lnx_routes_parse(&t, NULL, text, of, &why);
	if (ret) {
		check_refusal(ret, &why, text);
		FUZZ_CHECK(!t.n);
		/* What does not fit this node is passed over. */
		ret = lnx_routes_put(&t, NULL, text, of, &o, &why);
		if (ret) {
			check_refusal(ret, &why, text);
			FUZZ_CHECK(!t.n);
		}
	}
	check_printed(&t);
	ret = lnx_routes_del(&t, NULL, text, &why);
	if (ret)
		check_refusal(ret, &why, text);
	check_deleting(&t);
	lnx_routes_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_table(text, NULL);
	check_table(text, &host);
	free(text);
	return 0;
}
