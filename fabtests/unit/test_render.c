/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lnxctl/render, base/openmetrics: YAML, JSON, tables and metrics as text. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "lnxctl/render.h"

static char *text;

static const char *render_in(const struct lnx_doc *d, enum lnx_format format, unsigned width)
{
	size_t size;
	FILE *f;

	free(text);
	f = open_memstream(&text, &size);
	cr_assert(f);
	cr_assert(lnx_render(d, format, width, f));
	fclose(f);
	return text;
}

static const char *render(const struct lnx_doc *d, enum lnx_format format)
{
	return render_in(d, format, 0);
}

static const char *scalar(const char *s)
{
	static char buf[256];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	lnx_yaml_scalar(f, s);
	fclose(f);
	return buf;
}

Test(render, scalars)
{
	static const char *const same[] = {
		"tcp", "10.0.0.1@tcp", "10.0.0.1:4711@tcp", "shm+tcp:eth0,eth1", "0.1.0",
		"/dev/shm/lnx-0/17.4", "drop kind=ack rate=2", "a b", "1.2.3.4", "0-3,8",
		"tcp;ofi_rxm:eth0", "up",
	}, *const quoted[] = {
		"", "5", "-3", "1e9", "0x1f", "1:30", "1_000", "true", "No", "null", "~",
		"12e4567890123456", "- a", "[0]", "a: b", "a:", " a", "a ", "#x", "a #b", "*",
		"&a", "!b", "@x", "?", "{}", ".5", "on", "2026-11-24", "2026-11-24 06:31:09", "0-3",
	};
	unsigned i;

	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		cr_expect_str_eq(scalar(same[i]), same[i]);
	for (i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i++) {
		char want[64];

		snprintf(want, sizeof(want), "\"%s\"", quoted[i]);
		cr_expect_str_eq(scalar(quoted[i]), want);
	}
	cr_expect_str_eq(scalar("a\"b\\c"), "\"a\\\"b\\\\c\"");
	cr_expect_str_eq(scalar("a\nb\x01"), "\"a\\nb\\x01\"");
}

static struct lnx_doc *sample(void)
{
	struct lnx_doc *d = lnx_doc_new(), *list, *m, *inner;

	list = lnx_doc_list(d, "net");
	m = lnx_doc_map(list, NULL);
	lnx_doc_text(m, "net type", "tcp");
	inner = lnx_doc_list(m, "local NI(s)");
	m = lnx_doc_map(inner, NULL);
	lnx_doc_text(m, "nid", "10.0.0.1@tcp");
	lnx_doc_text(lnx_doc_map(m, "interfaces"), "0", "eth0");
	lnx_doc_bool(m, "up", true);
	lnx_doc_int(m, "dev cpt", -1);
	lnx_doc_uint(m, "big", UINT64_MAX);
	lnx_doc_real(m, "x", 1.25);
	lnx_doc_list(d, "none");
	return d;
}

/* As lnetctl writes it. */
Test(render, yaml)
{
	struct lnx_doc *d = sample();

	cr_expect_str_eq(render(d, LNX_FORMAT_YAML),
			 "net:\n"
			 "    - net type: tcp\n"
			 "      local NI(s):\n"
			 "        - nid: 10.0.0.1@tcp\n"
			 "          interfaces:\n"
			 "              0: eth0\n"
			 "          up: True\n"
			 "          dev cpt: -1\n"
			 "          big: 18446744073709551615\n"
			 "          x: 1.2\n"
			 "none: []\n");
	lnx_doc_free(d);
}

Test(render, table)
{
	struct lnx_doc *d = lnx_doc_new(), *list = lnx_doc_list(d, "path"), *m;

	m = lnx_doc_map(list, NULL);
	lnx_doc_text(m, "rail", "tcp:eth0");
	lnx_doc_uint(lnx_doc_map(m, "sent"), "bytes", 7);
	m = lnx_doc_map(list, NULL);
	lnx_doc_text(m, "rail", "a");
	lnx_doc_text(m, "note", "x");
	lnx_doc_text(d, "since", "now");
	cr_expect_str_eq(render(d, LNX_FORMAT_TABLE),
			 "path:\n"
			 "rail      sent.bytes  note\n"
			 "tcp:eth0  7           -\n"
			 "a         -           x\n"
			 "since: now\n");
	lnx_doc_free(d);
}

/* Nothing is left out, however deep it is. */
Test(render, lists_in_tables)
{
	struct lnx_doc *d = lnx_doc_new(), *m, *inner, *names;

	m = lnx_doc_map(lnx_doc_list(d, "net"), NULL);
	lnx_doc_text(m, "net type", "tcp");
	inner = lnx_doc_map(lnx_doc_list(m, "NIs"), NULL);
	lnx_doc_text(inner, "nid", "10.0.0.1@tcp");
	names = lnx_doc_list(lnx_doc_map(inner, "info"), "preferred");
	lnx_doc_text(names, NULL, "10.0.0.2@tcp");
	lnx_doc_text(names, NULL, "10.0.0.3@tcp");
	m = lnx_doc_map(lnx_doc_list(lnx_doc_map(inner, "info"), "pings"), NULL);
	lnx_doc_uint(m, "n", 3);
	cr_expect_str_eq(render(d, LNX_FORMAT_TABLE),
			 "net:\n"
			 "net type\n"
			 "tcp\n"
			 "net[0].NIs:\n"
			 "nid\n"
			 "10.0.0.1@tcp\n"
			 "net[0].NIs[0].info.preferred: 10.0.0.2@tcp 10.0.0.3@tcp\n"
			 "net[0].NIs[0].info.pings:\n"
			 "n\n"
			 "3\n");
	lnx_doc_free(d);
}

/* One that does not fit has a line for each value. */
Test(render, narrow_table)
{
	struct lnx_doc *d = lnx_doc_new(), *list = lnx_doc_list(d, "path"), *m;

	m = lnx_doc_map(list, NULL);
	lnx_doc_text(m, "rail", "tcp:eth0");
	lnx_doc_uint(lnx_doc_map(m, "sent"), "bytes", 7);
	m = lnx_doc_map(list, NULL);
	lnx_doc_uint(lnx_doc_map(m, "sent"), "bytes", 8);
	m = lnx_doc_map(lnx_doc_list(d, "short"), NULL);
	lnx_doc_uint(m, "n", 1);
	cr_expect_str_eq(render_in(d, LNX_FORMAT_TABLE, 19),
			 "path:\n"
			 "- rail        tcp:eth0\n"
			 "  sent.bytes  7\n"
			 "- sent.bytes  8\n"
			 "short:\n"
			 "n\n"
			 "1\n");
	cr_expect_str_eq(render_in(d, LNX_FORMAT_TABLE, 20),
			 "path:\n"
			 "rail      sent.bytes\n"
			 "tcp:eth0  7\n"
			 "-         8\n"
			 "short:\n"
			 "n\n"
			 "1\n");
	lnx_doc_free(d);
}

Test(render, json)
{
	struct lnx_doc *d;

	if (!lnx_format_available(LNX_FORMAT_JSON)) {
		cr_log_warn("skipped: built without jansson");
		return;
	}
	d = lnx_doc_new();
	lnx_doc_text(d, "a", "x\"y");
	lnx_doc_uint(d, "n", 5);
	lnx_doc_bool(d, "b", false);
	lnx_doc_text(lnx_doc_list(d, "l"), NULL, "z");
	cr_expect_str_eq(render(d, LNX_FORMAT_JSON),
			 "{\n"
			 "  \"a\": \"x\\\"y\",\n"
			 "  \"n\": 5,\n"
			 "  \"b\": false,\n"
			 "  \"l\": [\n"
			 "    \"z\"\n"
			 "  ]\n"
			 "}\n");
	lnx_doc_free(d);
}

Test(render, metrics)
{
	static const char *const labels[] = {
		"a", "x\"\\\n\x01", "empty", "", "b", "y", NULL,
	}, *const none[] = { "empty", "", NULL };
	char buf[500];
	struct lnx_out o = { .buf = buf, .size = sizeof(buf) };

	lnx_openmetrics_family(&o, "lnx_x", LNX_METRIC_COUNTER, "some \"help\"");
	lnx_openmetrics_sample(&o, "lnx_x", LNX_METRIC_COUNTER, labels, 7);
	lnx_openmetrics_family(&o, "lnx_y", LNX_METRIC_GAUGE, "help");
	lnx_openmetrics_sample(&o, "lnx_y", LNX_METRIC_GAUGE, none, UINT64_MAX);
	lnx_openmetrics_end(&o);
	cr_expect_str_eq(buf,
			 "# TYPE lnx_x counter\n"
			 "# HELP lnx_x some \\\"help\\\"\n"
			 "lnx_x_total{a=\"x\\\"\\\\\\n?\",b=\"y\"} 7\n"
			 "# TYPE lnx_y gauge\n"
			 "# HELP lnx_y help\n"
			 "lnx_y 18446744073709551615\n"
			 "# EOF\n");
}

/* ---- many endpoints ---- */

#define EPS		200u
#define COUNTERS	100u

static unsigned asked;
static char counter_names[COUNTERS][8];

static const char *counter(const void *names, unsigned i, const char **help)
{
	asked++;
	*help = "help";
	return ((const char (*)[8])names)[i];
}

static struct lnx_metrics_ep *endpoints(unsigned n)
{
	static uint64_t value[COUNTERS];
	static struct lnx_state_ep ep;
	struct lnx_metrics_ep *e = calloc(n, sizeof(*e));
	unsigned i;

	for (i = 0; i < COUNTERS; i++)
		snprintf(counter_names[i], sizeof(counter_names[i]), "c%u", i);
	for (i = 0; i < n; i++)
		e[i] = (struct lnx_metrics_ep){
			.pid = (int)i, .program = "p", .job = "", .rank = "", .ep = &ep,
			.ncounter = COUNTERS, .value = value, .name = counter,
			.names = counter_names,
		};
	return e;
}

/* Each name of each endpoint is looked at once: thousands of processes are no matter. */
Test(render, many_endpoints)
{
	struct lnx_metrics_ep *e = endpoints(EPS);
	struct lnx_out o = { 0 };

	asked = 0;
	cr_assert(lnx_metrics_print(&o, e, EPS));
	cr_expect_leq(asked, EPS * COUNTERS, "%u", asked);
	free(e);
}

/* What another release, or a hostile user, calls them changes nothing for the others. */
Test(render, odd_counters)
{
	static const char odd[COUNTERS][8] = {
		"c1", "c1", "new", "x\n# EOF", "peers", "new", "c0",
	};
	struct lnx_metrics_ep *e = endpoints(2);
	uint64_t value[COUNTERS];
	struct lnx_out o = { .buf = malloc(100000), .size = 100000 };
	unsigned i;

	for (i = 0; i < COUNTERS; i++)
		value[i] = 1000 + i;
	e[1].names = odd;
	e[1].ncounter = 7;
	e[1].value = value;
	cr_assert(lnx_metrics_print(&o, e, 2));
	cr_assert_lt(o.n, o.size);
	cr_expect_not_null(strstr(o.buf, "lnx_c1_total{pid=\"1\",program=\"p\",endpoint="
					 "\"0000000000000000\"} 1000\n"));
	cr_expect_null(strstr(o.buf, "} 1001\n"));
	cr_expect_not_null(strstr(o.buf, "} 1002\n"));
	cr_expect_null(strstr(o.buf, "} 1003\n"));
	cr_expect_null(strstr(o.buf, "} 1004\n"));
	cr_expect_null(strstr(o.buf, "} 1005\n"));
	cr_expect_not_null(strstr(o.buf, "} 1006\n"));
	free(o.buf);
	free(e);
}
