/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parameters from the environment: the table, their values, and the warnings;
 * lnx_say. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/say.h"
#include "conf/conf.h"
#include "conf/rank.h"

static char last[1024];
static int warned;

static void warn(void *arg, const char *sentence)
{
	cr_assert_eq(arg, last);
	cr_assert_lt(strlen(sentence), sizeof(last));
	strcpy(last, sentence);
	warned++;
}

static int read_env(struct lnx_conf *c, char *const env[])
{
	int n;

	warned = 0;
	last[0] = '\0';
	n = lnx_conf_read(c, env, warn, last);
	cr_assert_eq(n, warned);
	return n;
}

static int read_1(struct lnx_conf *c, const char *entry)
{
	char *env[] = { (char *)entry, NULL };

	return read_env(c, env);
}

static int read_2(struct lnx_conf *c, const char *one, const char *other)
{
	char *env[] = { (char *)one, (char *)other, NULL };

	return read_env(c, env);
}

static const struct lnx_param *param(const char *name)
{
	size_t i;

	for (i = 0; i < lnx_nparams; i++)
		if (!strcmp(lnx_params[i].name, name))
			return &lnx_params[i];
	cr_assert_fail("no parameter %s", name);
	return NULL;
}

static void check_defaults(const struct lnx_conf *c)
{
	cr_assert_null(c->prov_links);
	cr_assert_null(c->host_id);
	cr_assert(!c->disable_shm);
	cr_assert(c->use_srq);
	cr_assert(c->thread);
	cr_assert(!c->dump_stats);
	cr_assert_eq(c->protocol, LNX_PROTOCOL_FRAMED);
	cr_assert_eq(c->multi_rail_selection, LNX_SELECTION_SPREAD);
	cr_assert_eq(c->eager_limit, 384 << 10);
	cr_assert_eq(c->eager_peer, 4 << 20);
	cr_assert_eq(c->eager_total, 256 << 20);
	cr_assert_eq(c->send_buffer, 512 << 10);
	cr_assert_eq(c->copy_limit, 16320);
	cr_assert_eq(c->window, 512);
	cr_assert_eq(c->ack_delay, 200);
	cr_assert_eq(c->ack_every, 64);
	cr_assert_eq(c->chunk, 768 << 10);
	cr_assert_eq(c->poll_idle, 64);
	cr_assert_eq(c->poll_credits, 512);
	cr_assert_eq(c->connect_timeout, 30000);
	cr_assert_eq(c->health_sensitivity, 100);
	cr_assert_null(c->health_sensitivity_classes);
	cr_assert_eq(c->retry_count, 2);
	cr_assert_eq(c->transaction_timeout, 5000);
	cr_assert_eq(c->rail_timeout_min, 50);
	cr_assert_eq(c->recovery_ping_interval, 100);
	cr_assert_eq(c->max_recovery_ping_interval, 900);
	cr_assert_eq(c->spare_ping_interval, 500);
	cr_assert_eq(c->hold_down, 200);
	cr_assert_eq(c->hold_down_max, 1000);
	cr_assert_eq(c->flap_window, 10000);
	cr_assert_eq(c->ramp_time, 500);
	cr_assert_eq(c->linger, 1000);
	cr_assert_eq(c->defer, 1000);
	cr_assert_eq(c->rx_buffers, 256);
}

Test(conf, empty_environment_gives_the_defaults)
{
	struct lnx_conf c;
	char *none[] = { NULL };

	memset(&c, 0xa5, sizeof(c));
	cr_assert_eq(read_env(&c, none), 0);
	check_defaults(&c);
	memset(&c, 0xa5, sizeof(c));
	cr_assert_eq(lnx_conf_read(&c, NULL, NULL, NULL), 0);
	check_defaults(&c);
}

Test(conf, others_variables_are_not_ours)
{
	char *env[] = { "PATH=/bin", "FI_LNX", "FI_LNXWINDOW=1", "FI_LN=1",
			"fi_lnx_window=9", "XFI_LNX_WINDOW=9", "", "=", "=x",
			"FI_LNX_", "FI_LNX_WINDOW", "FI_TCP_IFACE=lo", NULL };
	struct lnx_conf c;

	cr_assert_eq(read_env(&c, env), 0, "%s", last);
	check_defaults(&c);
}

/* Each row of the table is valid, and its default passes its own check. */
Test(conf, table_is_sound)
{
	char entry[256], allowed[LNX_PARAM_ALLOWED_BYTES];
	const struct lnx_param *p;
	struct lnx_conf c;
	size_t i, j, n;

	for (i = 0; i < lnx_nparams; i++) {
		p = &lnx_params[i];
		for (j = 0; p->name[j]; j++)
			cr_expect(islower((unsigned char)p->name[j]) ||
				  p->name[j] == '_', "%s", p->name);
		for (j = 0; j < i; j++)
			cr_expect_str_neq(p->name, lnx_params[j].name);
		n = strlen(p->help);
		cr_expect(n > 20 && p->help[n - 1] == '.', "%s", p->name);
		for (j = 0; j < n; j++)
			cr_expect(isprint((unsigned char)p->help[j]));
		/* A number may have one word as an alternative. */
		cr_expect(p->type == LNX_PARAM_UINT ?
			  !p->names || (p->names[0] && !p->names[1]) :
			  (p->type == LNX_PARAM_ENUM) == (p->names != NULL),
			  "%s", p->name);
		cr_expect_eq(p->type == LNX_PARAM_STR, !p->def[0]);
		cr_expect(p->type == LNX_PARAM_UINT ? p->min < p->max :
			  !p->min && !p->max && !p->unit[0], "%s", p->name);
		lnx_conf_allowed(p, allowed, sizeof(allowed));
		cr_expect_lt(strlen(allowed) + 1, sizeof(allowed));
		cr_expect(allowed[0]);
		n = (size_t)sprintf(entry, "FI_LNX_%s=%s", p->name, p->def);
		for (j = 0; entry[j] != '='; j++)
			entry[j] = (char)toupper((unsigned char)entry[j]);
		cr_expect_eq(read_1(&c, entry), 0, "%s: %s", entry, last);
		check_defaults(&c);
	}
}

Test(conf, bool_spellings)
{
	static const struct { const char *text; int want; } cases[] = {
		{ "0", 0 }, { "1", 1 }, { "no", 0 }, { "yes", 1 },
		{ "false", 0 }, { "true", 1 }, { "off", 0 }, { "on", 1 },
		{ "YES", 1 }, { "Off", 0 }, { " 1 ", 1 }, { "\ttrue", 1 },
		{ "2", -1 }, { "y", -1 }, { "00", -1 }, { "1x", -1 },
		{ "ye", -1 }, { "yess", -1 }, { "-1", -1 }, { " ", -1 },
	};
	char entry[64];
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		sprintf(entry, "FI_LNX_DISABLE_SHM=%s", cases[i].text);
		cr_expect_eq(read_1(&c, entry), cases[i].want < 0, "%s", entry);
		cr_expect_eq(c.disable_shm, cases[i].want == 1, "%s", entry);
		sprintf(entry, "FI_LNX_USE_SRQ=%s", cases[i].text);
		cr_expect_eq(read_1(&c, entry), cases[i].want < 0, "%s", entry);
		cr_expect_eq(c.use_srq, cases[i].want != 0, "%s", entry);
	}
}

Test(conf, uint_spellings)
{
	static const struct { const char *text; uint64_t want; } good[] = {
		{ "4096", 4096 }, { "4k", 4096 }, { "4K", 4096 },
		{ "1m", 1 << 20 }, { "1M", 1 << 20 }, { "1g", 1 << 30 },
		{ " 8k\t", 8192 }, { "0004096", 4096 },
		{ "1073741824", 1073741824 }, { "1048576k", 1 << 30 },
	};
	static const char *const bad[] = {
		"4095", "0", "1073741825", "2g", "1025m", "k", "-4096", "+4096",
		"0x1000", "4 k", "4kk", "4kb", "4096.0", "1e6", " ", "4t",
		"18446744073709551615", "18446744073709551616",
		"18446744073709555712",	/* 4096 modulo 2^64 */
		"99999999999999999999999999", "17179869185g", "4096;", "4k\n",
		"18014398509481988k",	/* 4096 modulo 2^64 */
	};
	char entry[128];
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(good); i++) {
		sprintf(entry, "FI_LNX_CHUNK=%s", good[i].text);
		cr_expect_eq(read_1(&c, entry), 0, "%s: %s", entry, last);
		cr_expect_eq(c.chunk, good[i].want, "%s", entry);
	}
	for (i = 0; i < LNX_ARRAY_SIZE(bad); i++) {
		sprintf(entry, "FI_LNX_CHUNK=%s", bad[i]);
		cr_expect_eq(read_1(&c, entry), 1, "%s", entry);
		cr_expect_eq(c.chunk, 768 << 10, "%s", entry);
	}
}

Test(conf, word_beside_a_number)
{
	static const char *const good[] = { "auto", "AUTO", " Auto\t" };
	static const char *const bad[] = {
		"aut", "autoo", "au to", "-1", "1000001", "none",
		"18446744073709551615",	/* the value that the word stands for */
	};
	char entry[64], allowed[LNX_PARAM_ALLOWED_BYTES];
	const struct lnx_param *p = lnx_params;
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(good); i++) {
		sprintf(entry, "FI_LNX_YIELD=%s", good[i]);
		c.yield = 1;
		cr_expect_eq(read_1(&c, entry), 0, "%s: %s", entry, last);
		cr_expect_eq(c.yield, LNX_CONF_AUTO, "%s", entry);
	}
	cr_expect_eq(read_1(&c, "FI_LNX_YIELD=0"), 0);
	cr_expect_eq(c.yield, 0);
	cr_expect_eq(read_1(&c, "FI_LNX_YIELD=1000000"), 0);
	cr_expect_eq(c.yield, 1000000);
	for (i = 0; i < LNX_ARRAY_SIZE(bad); i++) {
		sprintf(entry, "FI_LNX_YIELD=%s", bad[i]);
		cr_expect_eq(read_1(&c, entry), 1, "%s", entry);
		cr_expect_eq(c.yield, LNX_CONF_AUTO, "%s", entry);
	}
	while (strcmp(p->name, "yield"))
		p++;
	cr_expect_str_eq(lnx_conf_allowed(p, allowed, sizeof(allowed)),
			 "auto or a whole number from 0 to 1000000 (reads)");
	/* Other parameters have no such word. */
	cr_expect_eq(read_1(&c, "FI_LNX_WINDOW=auto"), 1);
}

Test(conf, both_ends_of_each_range)
{
	const struct lnx_param *p;
	char entry[128], *name;
	struct lnx_conf c;
	size_t i, j;
	int step;

	for (i = 0; i < lnx_nparams; i++) {
		p = &lnx_params[i];
		if (p->type != LNX_PARAM_UINT)
			continue;
		for (step = 0; step < 4; step++) {
			uint64_t v = step == 0 ? p->min - 1 : step == 1 ?
				p->min : step == 2 ? p->max : p->max + 1;

			sprintf(entry, "FI_LNX_%s=%llu", p->name,
				(unsigned long long)v);
			name = entry;
			for (j = 0; name[j] != '='; j++)
				name[j] = (char)toupper((unsigned char)name[j]);
			cr_expect_eq(read_1(&c, entry), step == 0 || step == 3,
				     "%s: %s", entry, last);
		}
	}
}

Test(conf, enum_spellings)
{
	static const struct { const char *text; int want; } cases[] = {
		{ "SPREAD", LNX_SELECTION_SPREAD },
		{ "spread", LNX_SELECTION_SPREAD },
		{ "PER_PEER", LNX_SELECTION_PER_PEER },
		{ "Per_Peer", LNX_SELECTION_PER_PEER },
		{ "per_msg", LNX_SELECTION_PER_MSG },
		{ "LNET", LNX_SELECTION_LNET },
		{ " lnet ", LNX_SELECTION_LNET },
		{ "PER", -1 }, { "PER_PEERS", -1 }, { "0", -1 }, { "none", -1 },
	};
	char entry[64];
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		sprintf(entry, "FI_LNX_MULTI_RAIL_SELECTION=%s", cases[i].text);
		cr_expect_eq(read_1(&c, entry), cases[i].want < 0, "%s", entry);
		cr_expect_eq(c.multi_rail_selection,
			     cases[i].want < 0 ? 0 : cases[i].want, "%s",
			     entry);
	}
	cr_expect_eq(read_1(&c, "FI_LNX_PROTOCOL=Direct"), 0);
	cr_expect_eq(c.protocol, LNX_PROTOCOL_DIRECT);
}

Test(conf, text_is_taken_as_it_is)
{
	struct lnx_conf c;

	cr_assert_eq(read_1(&c, "FI_LNX_PROV_LINKS= shm + tcp:a=b "), 0);
	cr_assert_str_eq(c.prov_links, " shm + tcp:a=b ");
	cr_assert_eq(read_1(&c, "FI_LNX_HOST_ID=0"), 0);
	cr_assert_str_eq(c.host_id, "0");
}

Test(conf, empty_value_means_unset)
{
	char *env[] = { "FI_LNX_PROV_LINKS=", "FI_LNX_WINDOW=",
			"FI_LNX_USE_SRQ=", "FI_LNX_PROTOCOL=",
			"FI_LNX_NOT_THERE=", NULL };
	struct lnx_conf c;

	cr_assert_eq(read_env(&c, env), 0, "%s", last);
	check_defaults(&c);
}

/* A key that is empty by mistake must not count as none. */
Test(conf, empty_key_is_a_key)
{
	struct lnx_conf c;

	cr_assert_eq(read_1(&c, "FI_LNX_JOB_KEY="), 0);
	cr_assert_str_eq(c.job_key, "");
	cr_assert_null(c.job_key_file);
	cr_assert_eq(read_1(&c, "FI_LNX_JOB_KEY_FILE="), 0);
	cr_assert_null(c.job_key);
	cr_assert_str_eq(c.job_key_file, "");
}

/* Not in a warning either, when its name is misspelt. */
Test(conf, keys_are_not_shown)
{
	static const char *const name[] = {
		"JOB_KEYS", "JOBKEY", "JOB_KEU", "KEY", "MY_SECRET_KEY_IS",
	};
	char env[80];
	struct lnx_conf c;

	for (size_t i = 0; i < LNX_ARRAY_SIZE(name); i++) {
		snprintf(env, sizeof(env), "FI_LNX_%s=hush hush", name[i]);
		cr_assert_eq(read_1(&c, env), 1, "%s", env);
		cr_expect_null(strstr(last, "hush"), "%s", last);
		cr_expect(strstr(last, name[i]), "%s", last);
	}
}

Test(conf, first_of_two_counts)
{
	char *env[] = { "FI_LNX_WINDOW=7", "FI_LNX_WINDOW=zero",
			"FI_LNX_WINDOW=9", NULL };
	char *bad[] = { "FI_LNX_WINDOW=zero", "FI_LNX_WINDOW=one",
			"FI_LNX_WINDOW=9", NULL };
	struct lnx_conf c;

	cr_assert_eq(read_env(&c, env), 0);
	cr_assert_eq(c.window, 7);
	cr_assert_eq(read_env(&c, bad), 1);
	cr_assert_eq(c.window, 512);
}

/* The warning names the variable, the value and what is allowed. */
Test(conf, warning_says_what_is_allowed)
{
	struct lnx_conf c;

	read_1(&c, "FI_LNX_WINDOW=9999");
	cr_expect_str_eq(last, "FI_LNX_WINDOW=\"9999\": must be a whole number "
			 "from 2 to 4096 (frames); using the default, 512");
	read_1(&c, "FI_LNX_USE_SRQ=perhaps");
	cr_expect_str_eq(last, "FI_LNX_USE_SRQ=\"perhaps\": must be 0 or 1 (or "
			 "no, yes, false, true, off, on); using the default, "
			 "1");
	read_1(&c, "FI_LNX_MULTI_RAIL_SELECTION=RANDOM");
	cr_expect_str_eq(last, "FI_LNX_MULTI_RAIL_SELECTION=\"RANDOM\": must "
			 "be SPREAD, PER_PEER, PER_MSG or LNET; using the "
			 "default, SPREAD");
}

Test(conf, unknown_variable_is_named_with_its_neighbour)
{
	static const struct { const char *name, *near; } cases[] = {
		{ "WINDWO", "WINDOW" }, { "WINDOWS", "WINDOW" },
		{ "window", "WINDOW" }, { "Window", "WINDOW" },
		{ "PROV_LINK", "PROV_LINKS" }, { "PROVLINKS", "PROV_LINKS" },
		{ "DISABLESHM", "DISABLE_SHM" },
		{ "EAGER_LIMT", "EAGER_LIMIT" },
		{ "ACK_DELAI", "ACK_DELAY" }, { "HOSTID", "HOST_ID" },
		{ "MULTIRAIL_SELECTION", "MULTI_RAIL_SELECTION" },
		{ "DUMP_STAT", "DUMP_STATS" }, { "USE_SRX", "USE_SRQ" },
		{ "COLOUR_OF_THE_CABLE", NULL }, { "", NULL }, { "X", NULL },
		{ "ZZZZZZ", NULL }, { "LINKS", NULL },
	};
	char entry[128], tail[128];
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(cases); i++) {
		sprintf(entry, "FI_LNX_%s=abc", cases[i].name);
		cr_expect_eq(read_1(&c, entry), 1, "%s", entry);
		check_defaults(&c);
		sprintf(entry, "FI_LNX_%s=\"abc\":", cases[i].name);
		cr_expect_eq(strncmp(last, entry, strlen(entry)), 0, "%s",
			     last);
		if (cases[i].near)
			sprintf(tail, "nearest one is FI_LNX_%s",
				cases[i].near);
		else
			strcpy(tail, "fi_lnx(7) lists those there are");
		cr_expect_not_null(strstr(last, tail), "%s", last);
	}
}

Test(conf, hostile_text_is_quoted_short_and_printable)
{
	static const char *const shape[] = {
		"FI_LNX_WINDOW=", "FI_LNX_", "FI_LNX_PROTOCOL=", "FI_LNX_X="
	};
	size_t i, j, n = 1 << 20;
	struct lnx_conf c;
	char *entry = malloc(n + 1);
	int fill;

	for (i = 0; i < LNX_ARRAY_SIZE(shape); i++) {
		for (fill = 1; fill < 256; fill += 63) {	/* 127 too */
			memset(entry, fill, n);
			memcpy(entry, shape[i], strlen(shape[i]));
			if (!strchr(shape[i], '='))
				entry[n - 5] = '=';
			entry[n] = '\0';
			cr_expect_eq(read_1(&c, entry), 1);
			cr_expect_lt(strlen(last), 400, "%zu", strlen(last));
			for (j = 0; last[j]; j++)
				cr_expect(isprint((unsigned char)last[j]));
			check_defaults(&c);
		}
	}
	free(entry);
}

Test(conf, unknown_names_of_each_length)
{
	char entry[200];
	struct lnx_conf c;
	int n;

	for (n = 1; n < 150; n++) {
		sprintf(entry, "FI_LNX_%0*d=1", n, 0);
		cr_expect_eq(read_1(&c, entry), 1, "%s", entry);
		cr_expect_not_null(strstr(last, "fi_lnx(7)"), "%s", last);
	}
}

Test(conf, many_variables_at_once)
{
	enum { N = 5000 };
	static char text[N][40];
	static char *env[N + 1];
	struct lnx_conf c;
	int i;

	for (i = 0; i < N; i++) {
		sprintf(text[i], "FI_LNX_QQQ%dXYZ=%d", i, i);
		env[i] = text[i];
	}
	cr_assert_eq(read_env(&c, env), N);
	check_defaults(&c);
}

Test(conf, warn_may_be_missing)
{
	char *env[] = { "FI_LNX_WINDOW=x", "FI_LNX_Y=1", NULL };
	struct lnx_conf c;

	cr_assert_eq(lnx_conf_read(&c, env, NULL, NULL), 2);
}

Test(conf, allowed_text_is_cut_and_not_overrun)
{
	char buf[LNX_PARAM_ALLOWED_BYTES];
	size_t i, n;

	for (i = 0; i < lnx_nparams; i++) {
		for (n = 1; n <= 40; n++) {
			memset(buf, 'x', sizeof(buf));
			lnx_conf_allowed(&lnx_params[i], buf, n);
			cr_expect_lt(strlen(buf), n);
			cr_expect_eq(buf[n], 'x');
		}
	}
	lnx_conf_allowed(param("protocol"), buf, sizeof(buf));
	cr_expect_str_eq(buf, "framed or direct");
}

Test(conf, opposite_values_are_named)
{
	static const struct {
		char *env[3];
		const char *says[2];
	} rows[] = {
		{ { "FI_LNX_PROTOCOL=direct", "FI_LNX_USE_SRQ=1" },
		  { "FI_LNX_PROTOCOL=direct", "FI_LNX_USE_SRQ=1" } },
		{ { "FI_LNX_USE_SRQ=0", "FI_LNX_PROTOCOL=framed" },
		  { "FI_LNX_PROTOCOL=framed", "FI_LNX_USE_SRQ=0" } },
		{ { "FI_LNX_RECOVERY_PING_INTERVAL=2000",
		    "FI_LNX_MAX_RECOVERY_PING_INTERVAL=1" },
		  { "FI_LNX_RECOVERY_PING_INTERVAL=2000 ms",
		    "FI_LNX_MAX_RECOVERY_PING_INTERVAL=1 s" } },
		{ { "FI_LNX_HOLD_DOWN=20", "FI_LNX_HOLD_DOWN_MAX=10" },
		  { "FI_LNX_HOLD_DOWN=20 ms", "FI_LNX_HOLD_DOWN_MAX=10 ms" } },
	};
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++) {
		cr_expect_eq(read_env(&c, rows[i].env), 1, "row %zu", i);
		cr_expect(strstr(last, rows[i].says[0]) &&
			  strstr(last, rows[i].says[1]), "%s", last);
		/* One alone is used as any other value is. */
		cr_expect_eq(read_1(&c, rows[i].env[0]), 0, "%s", last);
		cr_expect_eq(read_1(&c, rows[i].env[1]), 0, "%s", last);
	}
}

/* LNet's name, in seconds. */
Test(conf, recovery_interval)
{
	struct lnx_conf c;

	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL=2"), 0, "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 2000u);
	/* As every number. */
	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL= 2 "), 0, "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 2000u);
	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL=2k"), 0, "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 2048000u);
	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL=5g"), 1);
	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL="), 0, "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 100u);
	cr_expect_eq(read_1(&c, "FI_LNX_RECOVERY_INTERVAL=3601"), 1);
	cr_expect(strstr(last, "FI_LNX_RECOVERY_PING_INTERVAL"), "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 100u);
	/* Both: which counts is said, unless they are the same. */
	cr_expect_eq(read_2(&c, "FI_LNX_RECOVERY_INTERVAL=2", "FI_LNX_RECOVERY_PING_INTERVAL=7"), 1);
	cr_expect(strstr(last, "using 2000 ms"), "%s", last);
	cr_expect_eq(c.recovery_ping_interval, 2000u);
	cr_expect_eq(read_2(&c, "FI_LNX_RECOVERY_PING_INTERVAL=7", "FI_LNX_RECOVERY_INTERVAL=2"), 1);
	cr_expect(strstr(last, "using 7 ms"), "%s", last);
	cr_expect_eq(read_2(&c, "FI_LNX_RECOVERY_PING_INTERVAL=2000", "FI_LNX_RECOVERY_INTERVAL=2"),
		     0, "%s", last);
	cr_expect_eq(lnx_conf_param_of("FI_LNX_RECOVERY_INTERVAL=2"),
		     lnx_conf_param_of("FI_LNX_RECOVERY_PING_INTERVAL=2"));
	cr_expect_eq(lnx_conf_param_of("FI_SHM_RECOVERY_INTERVAL=2"), -1);
	cr_expect_eq(lnx_conf_param_of("FI_LNX_RECOVERY_INTERVALS=2"), -1);
}

Test(conf, values_that_agree_are_no_contradiction)
{
	static char *const rows[][3] = {
		{ "FI_LNX_PROTOCOL=direct", "FI_LNX_USE_SRQ=0" },
		{ "FI_LNX_PROTOCOL=framed", "FI_LNX_USE_SRQ=1" },
		{ "FI_LNX_RECOVERY_PING_INTERVAL=1000",
		  "FI_LNX_MAX_RECOVERY_PING_INTERVAL=1" },
		{ "FI_LNX_HOLD_DOWN=10", "FI_LNX_HOLD_DOWN_MAX=10" },
		{ "FI_LNX_PROTOCOL=nonsense", NULL },
	};
	struct lnx_conf c;
	size_t i;

	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++)
		cr_expect_eq(read_env(&c, rows[i]), i == 4, "%s", last);
}

Test(rank, comes_from_the_launcher_proper)
{
	char *none[] = { "HOME=/", "PMI_RANKS=3", NULL };
	char *mpirun_in_slurm[] = { "SLURM_PROCID=0", "PMIX_RANK=7",
				    "OMPI_COMM_WORLD_RANK=12", NULL };
	char *odd[] = { "PMIX_RANK=", "PMI_RANK=x1", "SLURM_PROCID=5", NULL };
	char *huge[] = { "PMIX_RANK=123456789012345678901", NULL };
	char *local[] = { "MPI_LOCALRANKID=1", NULL };

	cr_expect_null(lnx_rank(NULL));
	cr_expect_null(lnx_rank(none));
	cr_expect_str_eq(lnx_rank(mpirun_in_slurm), "12");
	cr_expect_str_eq(lnx_rank(odd), "5");
	cr_expect_null(lnx_rank(huge));
	cr_expect_null(lnx_rank(local));
}

Test(rank, one_process_of_a_job_speaks)
{
	static const struct {
		char *env[4];
		bool speaks;
	} rows[] = {
		{ { NULL }, true },
		{ { "PMI_RANK=0" }, true },
		{ { "PMI_RANK=00" }, true },
		{ { "PMI_RANK=1" }, false },
		{ { "PMI_RANK=10" }, false },
		{ { "SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=1" }, false },
		{ { "SLURM_PROCID=3", "OMPI_COMM_WORLD_RANK=0" }, true },
		/* The first rank of another node is not the first of the job. */
		{ { "PMI_RANK=4", "MPI_LOCALRANKID=0" }, false },
		{ { "MPI_LOCALRANKID=0" }, true },
		{ { "MPI_LOCALRANKID=1" }, false },
		{ { "PMIX_RANK=tool" }, true },
	};
	size_t i;

	cr_expect(lnx_rank_speaks(NULL));
	for (i = 0; i < LNX_ARRAY_SIZE(rows); i++)
		cr_expect_eq(lnx_rank_speaks((char *const *)rows[i].env),
			     rows[i].speaks, "row %zu", i);
}

static char *said(int fd)
{
	static char buf[256];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	cr_assert_geq(n, 0);
	buf[n] = '\0';
	return buf;
}

Test(say, is_one_write_to_standard_error)
{
	int fd[2];

	cr_assert_eq(pipe(fd), 0);
	cr_assert_geq(dup2(fd[1], STDERR_FILENO), 0);
	errno = ENOENT;
	lnx_say("one\n", 4);
	cr_expect_eq(errno, ENOENT);
	cr_expect_str_eq(said(fd[0]), "one\n");
}

/* SIGPIPE would kill this process. */
Test(say, survives_a_reader_that_has_gone)
{
	sigset_t set;
	int fd[2];

	cr_assert_eq(pipe(fd), 0);
	cr_assert_geq(dup2(fd[1], STDERR_FILENO), 0);
	close(fd[1]);
	close(fd[0]);
	lnx_say("one\n", 4);
	lnx_say("two\n", 4);
	/* It is also not left pending or blocked. */
	cr_expect_eq(sigpending(&set), 0);
	cr_expect(!sigismember(&set, SIGPIPE));
	cr_expect_eq(sigprocmask(SIG_BLOCK, NULL, &set), 0);
	cr_expect(!sigismember(&set, SIGPIPE));
}

Test(say, leaves_a_signal_that_was_pending)
{
	sigset_t set;
	int fd[2];

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	cr_assert_eq(raise(SIGPIPE), 0);
	cr_assert_eq(pipe(fd), 0);
	cr_assert_geq(dup2(fd[1], STDERR_FILENO), 0);
	close(fd[1]);
	close(fd[0]);
	lnx_say("one\n", 4);
	cr_assert_eq(sigpending(&set), 0);
	cr_expect(sigismember(&set, SIGPIPE));
}

/* ---- single rows ---- */

Test(conf, find)
{
	int i = lnx_conf_find("window", 6);
	char variable[LNX_PARAM_VARIABLE_BYTES];

	cr_assert(i >= 0);
	cr_expect_str_eq(lnx_params[i].name, "window");
	cr_expect_eq(lnx_conf_find("FI_LNX_WINDOW", 13), i);
	cr_expect_eq(lnx_conf_find("fi_lnx_Window=5", 13), i);
	cr_expect_eq(lnx_conf_find("windo", 5), -1);
	cr_expect_eq(lnx_conf_find("", 0), -1);
	cr_expect_eq(lnx_conf_find("FI_LNX_", 7), -1);
	cr_expect_str_eq(lnx_conf_variable((size_t)i, variable), "FI_LNX_WINDOW");
	cr_expect_str_eq(lnx_conf_nearest("widnow", 6), "window");
}

/* What is printed of each row is read again as the same. */
Test(conf, print_and_set)
{
	struct lnx_conf c, again;
	char text[256], twice[256], why[300];
	size_t i;

	lnx_conf_read(&c, NULL, NULL, NULL);
	memset(&again, 0, sizeof(again));
	for (i = 0; i < lnx_nparams; i++) {
		size_t n = lnx_conf_print(&c, i, text, sizeof(text));

		cr_assert_eq(n, strlen(text), "%s", lnx_params[i].name);
		cr_assert_eq(lnx_conf_set(&again, i, text, why, sizeof(why)), 0, "%s",
			     why);
		lnx_conf_print(&again, i, twice, sizeof(twice));
		cr_assert_str_eq(twice, text, "%s", lnx_params[i].name);
	}
	i = (size_t)lnx_conf_find("window", 6);
	cr_expect_eq(lnx_conf_print(&c, i, text, 2), 3u);
	cr_expect_str_eq(text, "5");
	cr_expect_eq(lnx_conf_set(&c, i, "1", why, sizeof(why)), -EINVAL);
	cr_expect(strstr(why, "window=\"1\": must be a whole number from 2"), "%s", why);
	cr_expect_eq(c.window, 512u);
	i = (size_t)lnx_conf_find("yield", 5);
	cr_expect_eq(lnx_conf_set(&c, i, "AUTO", why, sizeof(why)), 0);
	lnx_conf_print(&c, i, text, sizeof(text));
	cr_expect_str_eq(text, "auto");
}

Test(conf, origins)
{
	char *env[] = {
		"FI_LNX_SPILL=7", "FI_LNX_WINDOW=x", "FI_LNX_HEALTH_SENSITIVITY=0", NULL
	};
	struct lnx_conf c;
	size_t spill = (size_t)lnx_conf_find("spill", 5);
	size_t sensitivity = (size_t)lnx_conf_find("health_sensitivity", 18);
	size_t retry = (size_t)lnx_conf_find("retry_count", 11), i;

	lnx_conf_read(&c, env, NULL, NULL);
	/* With health off retry_count is 0.  The wrong value counts as none. */
	for (i = 0; i < lnx_nparams; i++)
		cr_expect_eq(c.origin[i], i == spill || i == sensitivity ? LNX_CONF_GIVEN :
					  i == retry ? LNX_CONF_DERIVED : 0,
			     "%s", lnx_params[i].name);
}

Test(conf, secrets)
{
	cr_expect(lnx_conf_secret((size_t)lnx_conf_find("job_key", 7)));
	cr_expect(!lnx_conf_secret((size_t)lnx_conf_find("job_key_file", 12)));
}
