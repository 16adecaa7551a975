/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The configuration as YAML: what is read, where errors are, text, differences. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "conf/config.h"
#include "conf/yaml.h"
#include "rules_view.h"

static struct lnx_config *config;
static struct lnx_config_error why;

/* Reading needs libyaml; without it there is one answer only. */
static bool no_yaml(void)
{
#ifdef HAVE_LIBYAML
	return false;
#else
	cr_skip_test("lnx was built without libyaml");
	return true;
#endif
}

static int read_with(const char *text, size_t len, const struct lnx_nets *nets)
{
	int ret;

	memset(&why, 'x', sizeof(why));
	lnx_config_destroy(config);
	config = NULL;
	ret = lnx_config_read(text, len, nets, &config, &why);
	cr_assert_eq(ret == 0, config != NULL);
	return ret;
}

static int read_text(const char *text)
{
	return read_with(text, strlen(text), NULL);
}

static const char *print(const struct lnx_config *c)
{
	static char buf[1 << 20];

	cr_assert_lt(lnx_config_print(c, buf, sizeof(buf)), sizeof(buf));
	return buf;
}

static const char *diff(const struct lnx_config *a, const struct lnx_config *b)
{
	static char buf[1 << 16];
	size_t len;

	cr_assert_eq(lnx_config_diff(a, b, buf, sizeof(buf), &len), 0);
	cr_assert_eq(len, strlen(buf));
	return buf;
}

static void teardown(void)
{
	lnx_config_destroy(config);
	config = NULL;
}

TestSuite(config, .fini = teardown);

/* ---- what is read ---- */

/* The keys that lnetctl exports, with all that lnx has of them. */
static const char everything[] =
	"net:\n"
	"    - net type: tcp1\n"
	"      local NI(s):\n"
	"        - interfaces:\n"
	"              0: eth1\n"
	"              1: eth2\n"
	"          tunables:\n"
	"              peer_timeout: 180\n"
	"              peer_credits: 8\n"
	"              peer_buffer_credits: 0\n"
	"              credits: 256\n"
	"          CPT: \"[0-1]\"\n"
	"        - interfaces:\n"
	"              0: eth3\n"
	"nets:\n"
	"    tcp1: tcp/10.78.0.0/16\n"
	"    o2ib: verbs;ofi_rxm/IB-0xfe80000000000000\n"
	"route:\n"
	"    - net: o2ib\n"
	"      gateway: \"10.78.0.[8-9]@tcp1\"\n"
	"      hop: 1\n"
	"      priority: 0\n"
	"    - net: tcp9\n"
	"      gateway: 10.78.0.9@tcp1\n"
	"      priority: 3\n"
	"peer:\n"
	"    - primary nid: 10.78.0.7@tcp1\n"
	"      Multi-Rail: True\n"
	"      peer ni:\n"
	"        - nid: 10.78.0.7@tcp1\n"
	"        - nid: 10.78.0.8@tcp1\n"
	"routing:\n"
	"    enable: 1\n"
	"buffers:\n"
	"    tiny: 2048\n"
	"    small: 16384\n"
	"    large: 1024\n"
	"numa:\n"
	"    range: 20\n"
	"global:\n"
	"    health_sensitivity: 100\n"
	"    retry_count: 3\n"
	"    transaction_timeout: 6000\n"
	"udsp:\n"
	"    - idx: 0\n"
	"      src: tcp1\n"
	"      action:\n"
	"          priority: 0\n"
	"    - idx: 1\n"
	"      src: \"10.78.0.[1-2]@tcp1\"\n"
	"      dst: 10.78.0.7@tcp1\n"
	"    - idx: 2\n"
	"      dst: o2ib\n"
	"      rte: 10.78.0.9@tcp1\n";

Test(config, everything_and_again)
{
	if (no_yaml())
		return;
	cr_assert_eq(read_text(everything), 0, "%u:%u: %s: %s", why.line, why.column,
		     why.key, why.why);
	cr_assert_str_eq(print(config), everything);
	cr_assert_str_eq(diff(config, config), "");
	cr_assert(config->n_net == 1 && config->net[0].n == 2 &&
		  config->net[0].ni[0].n == 2 &&
		  config->net[0].ni[0].peer_credits == 8 &&
		  config->net[0].ni[0].peer_buffer_credits == 0 &&
		  config->net[0].ni[1].credits == LNX_CONFIG_UNSET);
	cr_assert_str_eq(config->net[0].ni[0].interface[1], "eth2");
	cr_assert_eq(config->nets.n, 2);
	cr_assert(config->n_route == 2 && config->route[0].hop == 1 &&
		  config->route[1].hop == LNX_CONFIG_UNSET &&
		  config->route[1].priority == 3);
	cr_assert_eq(config->route[1].at.line, 23);
	cr_assert(config->n_peer == 1 && config->peer[0].multi_rail &&
		  config->peer[0].n == 2);
	cr_assert(config->routing == 1 && config->tiny == 2048 &&
		  config->small == 16384 && config->large == 1024);
	cr_assert_eq(config->n_rule, 3);
	cr_assert(config->rule[0].spec.has_priority &&
		  config->rule[0].spec.priority == 0 &&
		  !config->rule[1].spec.has_priority);
	cr_assert_str_eq(config->rule[1].spec.side[LNX_RULE_SRC],
			 "10.78.0.[1-2]@tcp1");
}

Test(config, other_spellings)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "", "" },
		{ "\n# nothing\n", "" },
		{ "---\n", "" },
		{ "--- # nothing\n...\n", "" },
		{ "--- ''\n", NULL },
		{ "...\n", NULL },		/* libyaml takes it for no YAML */
		{ "---\n---\n", NULL },
		{ "{}", "" },
		{ "udsp: []", "udsp: []\n" },
		{ "{udsp: [{src: tcp1}, {dst: 'tcp[2,1]', priority: 7}]}",
		  "udsp:\n    - idx: 0\n      src: tcp1\n      action:\n"
		  "          priority: 0\n    - idx: 1\n"
		  "      dst: \"tcp[1-2]\"\n      action:\n"
		  "          priority: 7\n" },
		{ "UDSP:\n- Src: tcp0\n  idx: 5\n- src: tcp\n  dst: tcp\n"
		  "  priority: -1\n  idx: 9\n",
		  "udsp:\n    - idx: 0\n      src: tcp\n      action:\n"
		  "          priority: 0\n    - idx: 1\n      src: tcp\n"
		  "      dst: tcp\n" },
		{ "global: {max_intf: 4, recovery_interval: 2}",
		  "global:\n    max_rails: 4\n    recovery_ping_interval: 2000\n" },
		{ "global: {recovery_ping_interval: 2}",
		  "global:\n    recovery_ping_interval: 2\n" },
		{ "global: {numa_range: 12}", "numa:\n    range: 12\nglobal: {}\n" },
		{ "global: {prov_links: 'shm+tcp:eth0', eager_limit: 8k}",
		  "global:\n    prov_links: \"shm+tcp:eth0\"\n"
		  "    eager_limit: 8k\n" },
		{ "global: {use_srq: No, host_id: 'yes'}",
		  "global:\n    use_srq: \"No\"\n    host_id: \"yes\"\n" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: [eth0]}]}]",
		  "net:\n    - net type: tcp\n      local NI(s):\n"
		  "        - interfaces:\n              0: eth0\n" },
		{ "peer: [{primary nid: '10.0.0.1@tcp'}]",
		  "peer:\n    - primary nid: 10.0.0.1@tcp\n"
		  "      Multi-Rail: True\n      peer ni:\n"
		  "        - nid: 10.0.0.1@tcp\n" },
		{ "route: [{net: cxi, gateway: '10.0.0.1@tcp', hop: -1}]",
		  "route:\n    - net: cxi\n      gateway: 10.0.0.1@tcp\n"
		  "      priority: 0\n" },
		{ "routing: {enable: off}", "routing:\n    enable: 0\n" },
		/* names of nets may stand below what uses them */
		{ "udsp: [{src: left}]\nnets: {left: cxi/l}",
		  "nets:\n    left: cxi/l\nudsp:\n    - idx: 0\n      src: left\n"
		  "      action:\n          priority: 0\n" },
	};
	struct lnx_config *first;
	char once[8192];
	size_t i;

	if (no_yaml())
		return;
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		int ret = read_text(cases[i].text);

		cr_assert_eq(ret, cases[i].want ? 0 : -EINVAL, "%s: %u:%u: %s: %s",
			     cases[i].text, why.line, why.column, why.key, why.why);
		if (ret)
			continue;
		cr_assert_str_eq(print(config), cases[i].want);
		strcpy(once, print(config));
		first = config;
		config = NULL;
		cr_assert_eq(read_text(once), 0, "%s: %s: %s", once, why.key,
			     why.why);
		cr_assert_str_eq(print(config), once);
		cr_assert_str_eq(diff(first, config), "");
		cr_assert_str_eq(diff(config, first), "");
		lnx_config_destroy(first);
	}
}

/* ---- errors ---- */

Test(config, errors_say_where_and_what)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *key, *says;
	} cases[] = {
		/* keys */
		{ "colour: 3", 1, 1, "colour",
		  "\"colour\", and there is no such key; allowed are net, nets, "
		  "route, peer, routing, buffers, numa, global, udsp, limits, "
		  "allow" },
		{ "udsp:\n- src: tcp1\n  prio: 3\n", 3, 3, "udsp[0].prio",
		  "allowed are idx, src, dst, rte, priority, action" },
		{ "udsp:\n- src: tcp1\n  action:\n    weight: 3\n", 4, 5,
		  "udsp[0].action.weight", "allowed are priority" },
		{ "routing: {enable: 1, enabled: 1}", 1, 22, "routing.enabled",
		  "allowed are enable, port, key, state, control" },
		{ "buffers: {tiny: 1, tiny: 2}", 1, 20, "buffers.tiny",
		  "there already" },
		{ "udsp: []\nudsp: []\n", 2, 1, "udsp", "there already" },
		{ "{[a]: 3}", 1, 2, "", "found a list (- item) where a key" },
		{ "global: {retry_cuont: 2}", 1, 10, "global.retry_cuont",
		  "no such parameter" },
		{ "global: {job_key: abcdefghijklmnopqr}", 1, 10, "global.job_key",
		  "is a secret" },
		/* kinds of values */
		{ "[]", 1, 1, "", "must be a mapping with the keys net, nets" },
		{ "udsp:\n", 1, 6, "udsp", "found nothing, and it must be a list" },
		{ "udsp: {src: tcp}", 1, 7, "udsp", "must be a list" },
		{ "udsp: [tcp1]", 1, 8, "udsp[0]", "must be a mapping" },
		{ "udsp: [{src: [tcp1]}]", 1, 14, "udsp[0].src",
		  "found a list (- item) where text must be" },
		{ "udsp: [{src: }]", 1, 14, "udsp[0].src", "found nothing" },
		{ "numa: 3", 1, 7, "numa", "mapping with the keys range" },
		/* values */
		{ "udsp:\n  - src: foo\n", 2, 10, "udsp[0].src", "no known net" },
		{ "udsp:\n  - src: tcp1\n  - dst: '10.0.0.1-5@tcp'\n", 3, 18,
		  "udsp[1].dst", "\"1-5\"" },
		{ "udsp:\n  - dst: 10.0.0.0/24\n", 2, 10, "udsp[0].dst", "'@'" },
		{ "udsp: [{src: shm}]", 1, 14, "udsp[0].src",
		  "chosen before rails" },
		{ "udsp: [{rte: tcp1}]", 1, 8, "udsp[0]", "rte alone" },
		{ "udsp: [{src: tcp, dst: tcp, priority: 0}]", 1, 8, "udsp[0]",
		  "no priority" },
		{ "udsp: [{src: tcp, rte: tcp}]", 1, 8, "udsp[0]",
		  "src and rte cannot" },
		{ "udsp: [{priority: 3}]", 1, 8, "udsp[0]",
		  "does not say what it is for" },
		{ "udsp: [{src: tcp, priority: x}]", 1, 29, "udsp[0].priority",
		  "found \"x\" where a whole number from 0 to 4294967294" },
		{ "udsp: [{src: tcp, priority: 4294967295}]", 1, 29,
		  "udsp[0].priority", "4294967294" },
		{ "udsp: [{src: tcp, priority: 1, action: {priority: 1}}]", 1, 51,
		  "udsp[0].action.priority", "there already" },
		{ "udsp: [{src: tcp}, {src: tcp0, priority: 3}]", 1, 20, "udsp[1]",
		  "same patterns as in udsp[0]" },
		{ "udsp:\n- src: tcp\n- src: tcp1\n  priority: -1", 4, 13, "udsp[1]",
		  "priority -1, which is none" },
		{ "udsp: [{dst: '10.0.0.1@tcp', action: {priority: '-1'}}]", 1, 49, "udsp[0]",
		  "or leave it out for 0" },
		{ "udsp: [{src: tcp, dst: tcp, priority: -1, action: {priority: -1}}]", 1, 62,
		  "udsp[0].action.priority", "there already" },
		{ "udsp: [{src: tcp, priority: -1, action: {priority: 5}}]", 1, 52,
		  "udsp[0].action.priority", "there already" },
		{ "udsp: [{src: tcp, idx: 3}, {src: tcp1, idx: 3}]", 1, 28,
		  "udsp[1]", "let idx grow" },
		{ "nets:\n  tcp1: 10.78.0.7/16\n", 2, 9, "nets.tcp1",
		  "write 10.78.0.0/16" },
		{ "nets:\n  shm1: tcp\n", 2, 3, "nets.shm1", "chosen before" },
		{ "nets: {tcp1: 10.1.0.0/16, tcp2: 10.0.0.0/8}", 1, 27,
		  "nets.tcp2", "two names" },
		{ "nets: {tcp1: 10.1.0.0/16, tcp1: 10.2.0.0/16}", 1, 27,
		  "nets.tcp1", "there already" },
		{ "nets: {tcp1: [10.1.0.0/16]}", 1, 14, "nets.tcp1", "a list" },
		{ "nets: [tcp1]", 1, 7, "nets", "names and nets" },
		{ "net: [{net type: 'tcp[1-2]', local NI(s): []}]", 1, 18,
		  "net[0].net type", "name of one net" },
		{ "net: [{net type: tcp1}]", 1, 7, "net[0]", "\"local NI(s)\"" },
		{ "net: [{local NI(s): [{interfaces: [a]}]}]", 1, 7, "net[0]",
		  "\"net type\"" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: {1: a}}]}]", 1,
		  51, "net[0].local NI(s)[0].interfaces.1", "numbered from 0" },
		{ "net: [{net type: tcp, local NI(s): [{interfaces: ['a b']}]}]",
		  1, 51, "net[0].local NI(s)[0].interfaces[0]",
		  "name of an interface" },
		{ "net: [{net type: tcp, local NI(s): [{CPT: '[0]'}]}]", 1, 37,
		  "net[0].local NI(s)[0]", "no interfaces" },
		{ "net: [{net type: tcp, local NI(s): [{CPT: '[1-'}]}]", 1, 44,
		  "net[0].local NI(s)[0].CPT", "']' is missing" },
		{ "net: [&a {net type: tcp}]", 1, 7, "net", "an anchor" },
		{ "route: [{net: cxi}]", 1, 9, "route[0]", "\"gateway\"" },
		{ "route: [{net: tcp, gateway: '10.0.0.1@tcp'}]", 1, 9, "route[0]",
		  "another net" },
		{ "route: [{net: cxi, gateway: tcp}]", 1, 29, "route[0].gateway",
		  "NID" },
		{ "route: [{net: cxi, gateway: '10.0.0.1@tcp', hop: 256}]", 1, 50,
		  "route[0].hop", "from 1 to 255" },
		{ "route: [{net: cxi, gateway: '10.0.0.1@tcp'},"
		  "{net: cxi, gateway: '10.0.0.[1]@tcp'}]", 1, 45, "route[1]",
		  "route[0]" },
		{ "peer: [{primary nid: '10.0.0.*@tcp'}]", 1, 22,
		  "peer[0].primary nid", "one NID" },
		{ "peer: [{peer ni: [{nid: '10.0.0.1@tcp'}]}]", 1, 8, "peer[0]",
		  "\"primary nid\"" },
		{ "peer: [{primary nid: '10.0.0.1@tcp',"
		  " peer ni: [{nid: '10.0.0.2@tcp'}]}]", 1, 8, "peer[0]",
		  "not in \"peer ni\"" },
		{ "peer: [{primary nid: '10.0.0.1@tcp', Multi-Rail: maybe}]", 1, 50,
		  "peer[0].Multi-Rail", "true or false" },
		{ "peer: [{primary nid: '10.0.0.1@tcp'},"
		  "{primary nid: '10.0.0.1@tcp'}]", 1, 38, "peer[1]", "peer[0]" },
		{ "buffers: {tiny: 0}", 1, 17, "buffers.tiny", "from 1" },
		{ "routing: {enable: 2}", 1, 19, "routing.enable",
		  "true or false" },
		{ "numa: {range: far}", 1, 15, "numa.range", "whole number" },
		{ "global: {transaction_timeout: 150}", 1, 31,
		  "global.transaction_timeout", "from 1000 to 3600000 (ms)" },
		{ "global: {retry_count: 1, RETRY_COUNT: 2}", 1, 39,
		  "global.RETRY_COUNT", "set above already" },
		{ "numa: {range: 3}\nglobal: {numa_range: 3}", 2, 22,
		  "global.numa_range", "set above already" },
		{ "global: {health_sensitivity: 0, retry_count: 3}", 1, 1, "global",
		  "RETRY_COUNT" },
		/* YAML itself: where an unfinished text ends, versions of libyaml see
		 * differently */
		{ "udsp: [", 0, 0, "", "no YAML" },
		{ "udsp: \"x", 0, 0, "", "no YAML" },
		{ "a: b: c", 1, 5, "", "no YAML" },
		{ "\tudsp: []", 1, 1, "", "no YAML" },
		{ "numa: {range: 3}\nudsp: []\n# \033", 3, 3, "", "no YAML: control" },
		{ "numa: {range: 3}\nudsp: []\n# x\351", 3, 4, "", "no YAML" },
		{ "udsp: [{src: *x}]", 1, 14, "udsp[0].src", "an alias" },
		{ "udsp: [{src: &x tcp}]", 1, 14, "udsp[0].src", "an anchor" },
		{ "udsp: [{src: !!str tcp}]", 1, 14, "udsp[0].src", "a tag" },
		{ "udsp: []\n---\nudsp: []\n", 2, 1, "", "second document" },
		{ "udsp: [{src: \"tcp\\01\"}]", 1, 14, "udsp[0].src", "0x00" },
		{ "udsp: [{src: \"tcp\\u00e9\"}]", 1, 14, "udsp[0].src", "0xc3" },
	};
	const char *p;
	size_t i;

	if (no_yaml())
		return;
	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		cr_assert_eq(read_text(cases[i].text), -EINVAL, "%s",
			     cases[i].text);
		cr_expect(!cases[i].line || (why.line == cases[i].line &&
					     why.column == cases[i].column),
			  "%s: at %u:%u: %s", cases[i].text, why.line, why.column,
			  why.why);
		cr_expect_geq(why.line, 1);
		cr_expect_not_null(strstr(why.why, cases[i].says), "%s: %s",
				   cases[i].text, why.why);
		/* The parser of libyaml says where, not in which key. */
		if (!strstr(why.why, "no YAML") && !strstr(why.why, "an a") &&
		    !strstr(why.why, "a tag"))
			cr_expect_str_eq(why.key, cases[i].key, "%s: %s: %s",
					 cases[i].text, why.key, why.why);
		for (p = why.why; *p; p++)
			cr_assert(isprint((unsigned char)*p), "%s", cases[i].text);
		for (p = why.key; *p; p++)
			cr_assert(isprint((unsigned char)*p), "%s", cases[i].text);
	}
}

Test(config, a_byte_order_mark)
{
	if (no_yaml())
		return;
	cr_assert_eq(read_text("\357\273\277numa: {range: 3}\nudsp: []\n"), 0, "%s", why.why);
	cr_assert_eq(read_text("\357\273\277\nnuma: {range: far}\n"), -EINVAL);
	cr_expect(why.line == 2 && why.column == 15, "%u:%u", why.line, why.column);
}

Test(config, an_error_as_text)
{
	char text[1024];

	if (no_yaml())
		return;
	cr_assert_eq(read_text("udsp:\n- src: foo\n"), -EINVAL);
	lnx_config_error_print(&why, "lnx.conf", text, sizeof(text));
	cr_assert_eq(strstr(text, "lnx.conf:2:8: udsp[0].src: \"foo\" is no known "
			    "net; those are tcp, "), text, "%s", text);
	why.line = 0;
	why.key[0] = '\0';
	strcpy(why.why, "memory is short");
	lnx_config_error_print(&why, "x", text, sizeof(text));
	cr_assert_str_eq(text, "x: memory is short");
}

Test(config, texts_that_are_hostile)
{
	size_t len = LNX_YAML_BYTES_MAX, i;
	char *text = malloc(len + 2);

	if (no_yaml())
		return;
	/* too long, too deep, too many */
	memset(text, ' ', len + 1);
	cr_assert_eq(read_with(text, len, NULL), 0);
	cr_assert_eq(read_with(text, len + 1, NULL), -EINVAL);
	cr_assert_not_null(strstr(why.why, "at most"));
	memcpy(text, "udsp: ", 6);
	memset(text + 6, '[', 2000);
	cr_assert_eq(read_with(text, 2006, NULL), -EINVAL);
	cr_assert_not_null(strstr(why.why, "levels deep"), "%s", why.why);
	strcpy(text, "udsp:\n");
	for (i = 0; i <= LNX_RULES_MAX; i++)
		sprintf(text + strlen(text), "- src: tcp%zu\n", i);
	cr_assert_eq(read_text(text), -EINVAL);
	cr_assert_not_null(strstr(why.why, "one too many"));
	cr_assert_eq(why.line, 2 + LNX_RULES_MAX);
	strcpy(text, "route:\n");
	for (i = 0; i <= LNX_CONFIG_LIST; i++)
		sprintf(text + strlen(text), "- {net: cxi%zu, gateway: "
			"10.0.0.1@tcp}\n", i);
	cr_assert_eq(read_text(text), -EINVAL);
	cr_assert_not_null(strstr(why.why, "one too many"));
	/* bytes that are no UTF-8, or another encoding */
	cr_assert_eq(read_with("\xff\xfe u\0d\0s\0p\0", 11, NULL), -EINVAL);
	cr_assert_eq(read_with("udsp: \xc3(", 8, NULL), -EINVAL);
	cr_assert_eq(read_with("udsp:\0 []", 9, NULL), -EINVAL);
	/* keys of any length */
	memset(text, 'k', 5000);
	strcpy(text + 5000, ": 3");
	cr_assert_eq(read_text(text), -EINVAL);
	cr_assert_lt(strlen(why.key), sizeof(why.key));
	free(text);
}

/* ---- nets of the process ---- */

Test(config, nets_that_are_known_already)
{
	struct lnx_nets nets;
	struct lnx_refusal r;
	const char *text = "udsp: [{src: left}]";

	if (no_yaml())
		return;
	cr_assert_eq(lnx_nets_parse("left=cxi/l", &nets, &r), 0);
	cr_assert_eq(read_text(text), -EINVAL);
	cr_assert_eq(read_with(text, strlen(text), &nets), 0, "%s", why.why);
	/* those of the text replace them */
	text = "nets: {right: cxi/r}\nudsp: [{src: left}]";
	cr_assert_eq(read_with(text, strlen(text), &nets), -EINVAL);
	cr_assert_eq(why.line, 2);
}

/* ---- what is made of it ---- */

Test(config, parameters_come_after_the_environment)
{
	char *env[64] = { "HOME=/", "FI_LNX_RETRY_COUNT=1", NULL };
	struct lnx_conf conf;
	int n;

	if (no_yaml())
		return;
	cr_assert_eq(read_text("numa: {range: 17}\nglobal: {retry_count: 4, "
			       "multi_rail_selection: lnet}"), 0);
	n = lnx_config_env(config, env + 2, 61);
	cr_assert_eq(n, 3);
	env[2 + n] = NULL;
	cr_assert_eq(lnx_conf_read(&conf, env, NULL, NULL), 0);
	cr_assert(conf.retry_count == 1 && conf.numa_range == 17 &&
		  conf.multi_rail_selection == LNX_SELECTION_LNET);
	cr_assert_eq(lnx_config_env(config, env, 2), 2);
}

Test(config, rules_become_those_of_the_file)
{
	struct lnx_rule_info info;
	struct lnx_rules *rules;
	struct lnx_refusal r;
	uint32_t id, generation;

	if (no_yaml())
		return;
	cr_assert_eq(read_text("udsp: [{dst: tcp2}, {src: tcp1, priority: 4}]"), 0);
	rules = lnx_rules_create(&config->nets);
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp1; src: tcp9", &r), 0);
	lnx_rules_info(rules, 0, &info);
	id = info.rule->id;
	cr_assert_eq(lnx_config_rules(config, rules, &r), 0);
	cr_assert_eq(rules_count(rules), 2);
	lnx_rules_info(rules, 1, &info);
	cr_assert(info.rule->id == id && info.rule->priority == 4);
	/* again: nothing changes */
	generation = lnx_rules_generation(rules);
	cr_assert_eq(lnx_config_rules(config, rules, &r), 0);
	cr_assert_eq(lnx_rules_generation(rules), generation);
	/* a file without the key leaves them */
	cr_assert_eq(read_text("routing: {enable: 1}"), 0);
	cr_assert_eq(lnx_config_rules(config, rules, &r), 0);
	cr_assert_eq(rules_count(rules), 2);
	/* an empty list deletes them */
	cr_assert_eq(read_text("udsp: []"), 0);
	cr_assert_eq(lnx_config_rules(config, rules, &r), 0);
	cr_assert_eq(rules_count(rules), 0);
	lnx_rules_destroy(rules);
}

Test(config, what_is_different)
{
	struct lnx_config *old;

	if (no_yaml())
		return;
	cr_assert_eq(read_text(everything), 0);
	old = config;
	config = NULL;
	cr_assert_eq(read_text("global: {retry_count: 2, transaction_timeout: 6000,"
			       " health_sensitivity: 100}\n"
			       "numa: {range: 20}\n"
			       "buffers: {tiny: 2048, small: 9}\n"
			       "nets: {tcp1: 10.78.0.0/16, o2ib: verbs/IB-1}\n"
			       "route: [{net: o2ib, gateway: '10.78.0.[9,8]@tcp1'}]\n"
			       "udsp: [{src: tcp1, dst: tcp}, {src: tcp1, "
			       "priority: 3}]\n"), 0, "%s: %s", why.key, why.why);
	cr_assert_str_eq(diff(old, config),
		"- nets.o2ib0: verbs;ofi_rxm/IB-0xfe80000000000000\n"
		"- route.o2ib by 10.78.0.[8-9]@tcp1.hop: 1\n"
		"- route.tcp9 by 10.78.0.9@tcp1.priority: 3\n"
		"- buffers.small: 16384\n"
		"- buffers.large: 1024\n"
		"- global.retry_count: 3\n"
		"+ nets.o2ib0: verbs;ofi_rxm/IB-1\n"
		"+ buffers.small: 9\n"
		"+ global.retry_count: 2\n"
		"- udsp: src: 10.78.0.[1-2]@tcp1, dst: 10.78.0.7@tcp1\n"
		"- udsp: dst: o2ib, rte: 10.78.0.9@tcp1\n"
		"+ udsp: src: tcp1, dst: tcp\n"
		"~ udsp: src: tcp1: priority 0 -> 3\n");
	lnx_config_destroy(old);
}

/* What a reader of the file may take for honoured. */
Test(config, what_no_endpoint_uses)
{
	char text[200];

	if (no_yaml())
		return;
	cr_assert_eq(read_text("net: [{net type: tcp, local NI(s): [{interfaces: [eth0], "
			       "tunables: {credits: 256, peer_credits: 8}}]}]\n"
			       "nets: {tcp1: 10.78.0.0/16}\nroute: []\nnuma: {range: 1}\n"
			       "global: {retry_count: 3}\nudsp: []\n"), 0);
	cr_assert_eq(lnx_config_unused(config, text, sizeof(text)), 0u);
	cr_expect_str_eq(text, "");
	lnx_config_destroy(config);
	config = NULL;
	cr_assert_eq(read_text("net: [{net type: tcp, local NI(s): [{interfaces: [eth0], "
			       "tunables: {peer_timeout: 180}}, {interfaces: [eth1], CPT: 3, "
			       "tunables: {peer_timeout: 9, peer_buffer_credits: 0}}]}]\n"
			       "routing: {enable: 0}\nbuffers: {tiny: 3}\nlimits: {idle: 3}\n"
			       "allow: []\npeer: []\n"), 0, "%s: %s", why.key, why.why);
	cr_assert_eq(lnx_config_unused(config, text, sizeof(text)), strlen(text));
	cr_expect_str_eq(text, "peer, routing, buffers, limits, allow, net.peer_timeout, "
			 "net.peer_buffer_credits, net.CPT");
	cr_expect_eq(lnx_config_unused(config, text, 5), 89u);
	cr_expect_str_eq(text, "peer");
}

Test(config, rules_whose_net_is_gone)
{
	struct lnx_config *old;

	if (no_yaml())
		return;
	cr_assert_eq(read_text("nets: {left: cxi/l}\nudsp: [{src: left, priority: 2},"
			       " {src: tcp}, {src: tcp, dst: left}]"), 0);
	old = config;
	config = NULL;
	cr_assert_eq(read_text("nets: {}\nudsp: [{src: tcp}]"), 0);
	cr_assert_str_eq(diff(old, config), "- nets.left0: cxi/l\n"
			 "- udsp: src: left, priority: 2\n"
			 "- udsp: src: tcp, dst: left\n");
	lnx_config_destroy(old);
}

Test(config, what_is_exported)
{
	struct lnx_config *c = lnx_config_create();
	struct lnx_rules *rules;
	struct lnx_nets nets;
	struct lnx_refusal r;
	char text[4096];

	cr_assert_eq(lnx_nets_parse("tcp1=10.1.0.0/16", &nets, &r), 0);
	rules = lnx_rules_create(&nets);
	cr_assert_eq(lnx_rules_add_text(rules, "src: tcp1; src: 10.1.0.[1,4-6,9]@tcp1,"
		"dst: 10.1.0.0/24@tcp1; dst: tcp, rte: 10.1.0.9@tcp1", &r), 0);
	cr_assert_eq(lnx_config_set_nets(c, &nets), 0);
	cr_assert_eq(lnx_config_set_rules(c, rules), 0);
	cr_assert_eq(lnx_config_set_global(c, "retry_count", "7"), 0);
	cr_assert_eq(lnx_config_set_global(c, "numa_range", "3"), 0);
	cr_assert_eq(lnx_config_set_global(c, "retry_count", "x"), -EINVAL);
	cr_assert_eq(lnx_config_set_global(c, "colour", "7"), -EINVAL);
	cr_assert_eq(lnx_config_set_global(c, "host_id", ""), -EINVAL);
	cr_assert_eq(lnx_config_set_global(c, "host_id", "\xc3\xa9"), -EINVAL);
	cr_assert_eq(lnx_config_set_global(c, "host_id", "a \"b\"\\\n"), 0);
	strcpy(text, print(c));
	cr_assert_str_eq(text,
		"nets:\n    tcp1: tcp/10.1.0.0/16\nnuma:\n    range: 3\n"
		"global:\n    host_id: \"a \\\"b\\\"\\\\\\n\"\n    retry_count: 7\n"
		"udsp:\n    - idx: 0\n      src: tcp1\n      action:\n"
		"          priority: 0\n    - idx: 1\n"
		"      src: \"10.1.0.[1,4-6,9]@tcp1\"\n"
		"      dst: \"10.1.0.*@tcp1\"\n"
		"    - idx: 2\n      dst: tcp\n      rte: 10.1.0.9@tcp1\n");
	lnx_rules_destroy(rules);
	if (no_yaml())
		return;
	cr_assert_eq(read_text(text), 0, "%s: %s", why.key, why.why);
	cr_assert_str_eq(print(config), text);
	cr_assert_str_eq(diff(c, config), "");
	lnx_config_destroy(c);
}

/* ---- the manual ---- */

/* The lines between .nf and .fi behind a line of a manual page, without its escapes. */
static char *manual(const char *page, const char *behind)
{
	const char *top = getenv("top_srcdir");
	char path[4096], line[256], *text = calloc(1, 1 << 16), *p, *q;
	bool found = false, inside = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/man/%s", top ? top : ".", page);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s: set top_srcdir", path);
	while (fgets(line, sizeof(line), f)) {
		found = found || !strncmp(line, behind, strlen(behind));
		if (found && !strncmp(line, ".SH", 3) &&
		    strncmp(line, behind, strlen(behind)))
			break;
		if (line[0] == '.') {
			inside = found && (inside || !strcmp(line, ".nf\n")) &&
				 strcmp(line, ".fi\n");
			continue;
		}
		for (p = q = line; *p; p++)
			if (*p != '\\')
				*q++ = *p;
		*q = '\0';
		if (inside)
			strcat(text, line);
	}
	fclose(f);
	return text;
}

Test(config, interfaces_that_are_exported)
{
	static const char want[] =
		"net:\n"
		"    - net type: tcp1\n"
		"      local NI(s):\n"
		"        - interfaces:\n"
		"              0: eth0\n"
		"          tunables:\n"
		"              credits: 40\n"
		"        - interfaces:\n"
		"              0: eth1\n"
		"          tunables:\n"
		"              peer_credits: 5\n"
		"    - net type: o2ib\n"
		"      local NI(s):\n"
		"        - interfaces:\n"
		"              0: ib0\n"
		"          tunables:\n"
		"              peer_credits: 0\n"
		"              credits: 7\n";
	char text[1000];

	config = lnx_config_create();
	cr_assert_eq(lnx_config_set_ni(config, "tcp1", "eth0", 40, LNX_CONFIG_UNSET), 0);
	cr_assert_eq(lnx_config_set_ni(config, "o2ib", "ib0", 7, 0), 0);
	cr_assert_eq(lnx_config_set_ni(config, "tcp1", "eth1", LNX_CONFIG_UNSET, 5), 0);
	lnx_config_print(config, text, sizeof(text));
	cr_assert_str_eq(text, want, "%s", text);
}

Test(config, examples_of_the_manual)
{
	char *text = manual("lnx.conf.5", ".SH EXAMPLE");
	struct lnx_nets nets;
	struct lnx_refusal r;
	unsigned n = 0;
	char *line;

	if (no_yaml())
		return;
	cr_assert_eq(read_text(text), 0, "%s:%u:%u: %s: %s", text, why.line,
		     why.column, why.key, why.why);
	cr_assert(config->n_rule == 3 && config->nets.n == 2);
	free(text);
	cr_assert_eq(lnx_nets_parse("tcp1=10.78.0.0/16; ib0=verbs/10.80.0.0/16",
				    &nets, &r), 0);
	text = manual("lnx_udsp.5", ".SH EXAMPLES");
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		struct lnx_rules *rules = lnx_rules_create(&nets);

		cr_assert_eq(lnx_rules_add_text(rules, line, &r), 0, "%s: %s", line,
			     r.why);
		n += rules_count(rules);
		lnx_rules_destroy(rules);
	}
	cr_assert_eq(n, 6);
	free(text);
}

/* ---- export and import again, with random configurations ---- */

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
			  (unsigned long)time(NULL);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	srand48((long)s);
	return s;
}

static unsigned roll(unsigned n)
{
	return (unsigned)(lrand48() % n);
}

/* None is in two of them, nor has port 0: as gateways of a route they would be refused. */
static char *random_nids(char *p)
{
	unsigned n = 1 + roll(3);

	while (n--) {
		p += sprintf(p, "10.%u.[%u-%u].%u", roll(80) * 3 + n, roll(5), 5 + roll(9),
			     roll(256));
		if (!roll(3))
			p += sprintf(p, ":%u", 1 + roll(65535));
		p += sprintf(p, "@tcp%u%s", 1 + roll(3), n ? "," : "");
	}
	return p;
}

static const char *random_text(void)
{
	static char buf[24];
	unsigned i, n = 1 + roll(20);

	for (i = 0; i < n; i++)
		buf[i] = (char)(1 + roll(126));
	buf[n] = '\0';
	return buf;
}

/* Write a random configuration as a user would, in flow style. */
static void random_config(char *p)
{
	unsigned i, n;

	p += sprintf(p, "{");
	if (roll(2))
		p += sprintf(p, "routing: {enable: %u}, ", roll(2));
	if (roll(2))
		p += sprintf(p, "buffers: {tiny: %u, large: %u}, ", 1 + roll(999),
			     1 + roll(9));
	if (roll(2))
		p += sprintf(p, "numa: {range: %u}, ", roll(1000));
	if (roll(2))
		p += sprintf(p, "global: {retry_count: %u, ack_every: %u}, ",
			     roll(9), 1 + roll(99));
	if (roll(2)) {
		p += sprintf(p, "nets: {");
		for (i = 1; i < 4; i++)
			p += sprintf(p, "tcp%u: 10.%u.0.0/16, ", i, i);
		p += sprintf(p, "}, ");
	}
	if (roll(2)) {
		p += sprintf(p, "route: [");
		for (i = 0, n = roll(5); i < n; i++) {
			p += sprintf(p, "{net: cxi%u, gateway: '", i);
			p = random_nids(p);
			p += sprintf(p, "', priority: %u, ", roll(9));
			if (roll(2))
				p += sprintf(p, "hop: %u", 1 + roll(255));
			p += sprintf(p, "}, ");
		}
		p += sprintf(p, "], ");
	}
	if (roll(2)) {
		p += sprintf(p, "peer: [");
		for (i = 0, n = roll(5); i < n; i++)
			p += sprintf(p, "{primary nid: 10.0.%u.1@tcp, peer ni: ["
				     "{nid: 10.0.%u.1@tcp}, "
				     "{nid: '[fd00::%u]@tcp1'}]}, ", i, i, i);
		p += sprintf(p, "], ");
	}
	p += sprintf(p, "udsp: [");
	for (i = 0, n = roll(9); i < n; i++) {
		bool src = roll(2), dst = !src || roll(2);

		/* so that no two are the same */
		p += sprintf(p, "{idx: %u, ", 2 * i + roll(2));
		if (src) {
			p += sprintf(p, "src: '10.250.%u.0@tcp,", i);
			p = random_nids(p);
			p += sprintf(p, "', ");
		}
		if (dst) {
			p += sprintf(p, "dst: '10.251.%u.0@tcp,", i);
			p = random_nids(p);
			p += sprintf(p, "', ");
		}
		if (src != dst)
			p += sprintf(p, "priority: %u", roll(99));
		p += sprintf(p, "}, ");
	}
	sprintf(p, "]}");
}

Test(config, random_export_and_import_is_an_identity)
{
	static char text[65536], once[65536];
	unsigned long s = seed();
	struct lnx_config *first;
	unsigned round, i;

	if (no_yaml())
		return;
	for (round = 0; round < 600; round++) {
		random_config(text);
		cr_assert_eq(read_text(text), 0, "seed %lu: %s: %u:%u: %s: %s", s,
			     text, why.line, why.column, why.key, why.why);
		/* any text as a value */
		if (roll(2))
			cr_assert_eq(lnx_config_set_global(config, "host_id",
							   random_text()), 0);
		first = config;
		config = NULL;
		strcpy(once, print(first));
		cr_assert_eq(read_text(once), 0, "seed %lu: %s: %u:%u: %s: %s", s,
			     once, why.line, why.column, why.key, why.why);
		cr_assert_str_eq(print(config), once, "seed %lu", s);
		cr_assert_str_eq(diff(first, config), "", "seed %lu", s);
		cr_assert_eq(memcmp(first->has, config->has, sizeof(first->has)), 0);
		cr_assert_eq(first->n_rule, config->n_rule);
		for (i = 0; i < lnx_nparams; i++)
			if (first->global[i])
				cr_assert_str_eq(first->global[i],
						 config->global[i]);
		lnx_config_destroy(first);
	}
}
