/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any text is refused as YAML of a configuration, with a position in it and a reason,
 * or has a canonical form that is the same configuration.
 *
 * Sources: conf/config.c
 * Sources: conf/config_diff.c
 * Sources: conf/config_gateway.c
 * Sources: conf/config_keys.c
 * Sources: conf/config_net.c
 * Sources: conf/config_peer.c
 * Sources: conf/config_print.c
 * Sources: conf/config_read.c
 * Sources: conf/config_route.c
 * Sources: conf/routes.c
 * Sources: conf/routes_text.c
 * Sources: conf/yaml.c
 * Sources: conf/conf.c
 * Sources: policy/plan.c
 * Sources: policy/class.c
 * Sources: policy/rule.c
 * Sources: policy/rule_text.c
 * Sources: policy/rules.c
 * Sources: policy/rules_apply.c
 * Sources: policy/rules_replace.c
 * Sources: policy/rules_show.c
 * Sources: conf/nets.c
 * Sources: conf/nid.c
 * Sources: conf/cidr.c
 * Sources: conf/expr.c
 * Sources: wire/addr.c
 */
#define LNX_FUZZ_NAME "config"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "conf/config.h"

#define TEXT_BYTES	(1u << 21)

static void check_refusal(int ret, const struct lnx_config_error *e,
			  const uint8_t *data, size_t size)
{
	unsigned lines = 2;	/* an error at the end may be a line behind it */
	const char *p;
	size_t i;

	FUZZ_CHECK(ret == -EINVAL || ret == -ENOSYS);
	FUZZ_CHECK(strlen(e->why) > 10 && strlen(e->key) < sizeof(e->key));
	for (p = e->why; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
	for (p = e->key; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
	for (i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80;
	FUZZ_CHECK(e->line <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[TEXT_BYTES], twice[TEXT_BYTES];
	struct lnx_config *config, *again;
	struct lnx_config_error e;
	size_t len;
	int ret = lnx_config_read((const char *)data, size, NULL, &config, &e);

	if (ret) {
		check_refusal(ret, &e, data, size);
		return 0;
	}
	FUZZ_CHECK(lnx_config_print(config, once, TEXT_BYTES) < TEXT_BYTES);
	FUZZ_CHECK(!lnx_config_read(once, strlen(once), NULL, &again, &e));
	lnx_config_print(again, twice, TEXT_BYTES);
	FUZZ_CHECK(!strcmp(once, twice));
	FUZZ_CHECK(!lnx_config_diff(config, again, twice, TEXT_BYTES, &len) && !len);
	lnx_config_destroy(config);
	lnx_config_destroy(again);
	return 0;
}
