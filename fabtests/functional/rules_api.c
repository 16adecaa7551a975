/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of lnx_policy.h for a process that runs: rules_api PID [EID].  For lnxctl.py,
 * which knows that the process has no rules and a rail 127.0.0.1@tcp.  Uses nothing but
 * what is installed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lnx_policy.h"

#define WAIT_MS		30000u		/* the process is busy, or the machine is */
#define MANY		2000u		/* more rules than there can be */

static struct lnx_policy *p;
static unsigned errors;

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			printf("line %d: %s: %s\n", __LINE__, #cond,	\
			       lnx_policy_error(p));			\
			errors++;					\
		}							\
	} while (0)

static void refused(void)
{
	char long_name[5000];

	memset(long_name, 'a', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	CHECK(lnx_policy_add_net(p, LNX_POLICY_SRC, "", 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_net(p, LNX_POLICY_SRC, NULL, 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_net(p, LNX_POLICY_SRC, long_name, 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_net(p, (enum lnx_policy_end)9, "tcp", 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_net(p, LNX_POLICY_SRC, "10.0.0.1@tcp", 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_nid(p, LNX_POLICY_SRC, "tcp", 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_peer(p, "tcp", "tcp", 0, NULL) == -EINVAL);
	CHECK(lnx_policy_add_peer(p, "tcp", NULL, LNX_POLICY_UNSET, NULL) == -EINVAL);
	CHECK(lnx_policy_del_net(p, LNX_POLICY_SRC, "tcp", 0) == -ENOENT);
	CHECK(lnx_policy_del_net(p, LNX_POLICY_SRC, "tcp", 4711) == -ENOENT);
	CHECK(strlen(lnx_policy_error(p)) > 10);
}

/* One of each kind: added, shown, changed and deleted. */
static void each_kind(void)
{
	struct lnx_policy_rule *rule = NULL;
	uint32_t id = 0, again = 0, pair = 0;
	size_t n = 0;

	CHECK(!lnx_policy_add_net(p, LNX_POLICY_SRC, "tcp", 3, &id) && id);
	CHECK(lnx_policy_add_net(p, LNX_POLICY_SRC, "tcp", 3, &again) == -EALREADY);
	CHECK(!lnx_policy_add_net(p, LNX_POLICY_SRC, "tcp", 4, &again) && again == id);
	CHECK(!lnx_policy_add_nid(p, LNX_POLICY_DST, "10.0.[0-3].*@tcp", 1, NULL));
	CHECK(!lnx_policy_add_peer(p, "tcp", "127.0.0.1@tcp", LNX_POLICY_UNSET, &pair));
	CHECK(!lnx_policy_show_net(p, LNX_POLICY_SRC, NULL, &rule, &n) && n == 1);
	CHECK(n == 1 && rule->id == id && rule->priority == 4 && !rule->index &&
	      !strcmp(rule->src, "tcp") && rule->state == LNX_POLICY_IN_USE &&
	      rule->rails == 1);
	free(rule);
	CHECK(!lnx_policy_show_nid(p, LNX_POLICY_DST, "10.0.1.7@tcp", &rule, &n) && n == 1);
	free(rule);
	CHECK(!lnx_policy_show_peer(p, NULL, NULL, &rule, &n) && n == 1);
	CHECK(n == 1 && rule->id == pair && rule->priority == LNX_POLICY_UNSET);
	free(rule);
	CHECK(!lnx_policy_del_net(p, LNX_POLICY_SRC, "tcp", 0));
	CHECK(!lnx_policy_del_peer(p, NULL, NULL, pair));
	CHECK(!lnx_policy_del_nid(p, LNX_POLICY_DST, "10.0.[0-3].*@tcp", 0));
	CHECK(!lnx_policy_show(p, NULL, &rule, &n) && !n);
	free(rule);
}

/* As many as there can be: shown in several parts, in their order. */
static void many(void)
{
	struct lnx_policy_rule *rule = NULL;
	uint32_t deleted = 0;
	unsigned i, k;
	char nid[32];
	size_t n = 0;
	int ret = 0;

	for (i = 0; !ret && i < MANY; i += !ret) {
		snprintf(nid, sizeof(nid), "10.0.%u.%u@tcp", i / 250, 1 + i % 250);
		ret = lnx_policy_add_nid(p, LNX_POLICY_SRC, nid, i, NULL);
	}
	CHECK(ret == -ENOSPC && i > 32);
	CHECK(!lnx_policy_show(p, NULL, &rule, &n) && n == i);
	for (k = 0; k < n; k++)
		CHECK(rule[k].priority == k && rule[k].index == k);
	free(rule);
	CHECK(!lnx_policy_del(p, NULL, 0, &deleted) && deleted == i);
}

/* Several at a time: all of them, or none. */
static void together(void)
{
	struct lnx_policy_rule rule[40], *found = NULL;
	struct lnx_policy_id id[40];
	unsigned i;
	size_t n = 0;

	memset(rule, 0, sizeof(rule));
	for (i = 0; i < 40; i++) {
		rule[i].index = LNX_POLICY_UNSET;
		rule[i].priority = i;
		snprintf(rule[i].src, sizeof(rule[i].src), "10.0.0.%u@tcp", i + 1);
	}
	CHECK(lnx_policy_add(p, rule, 40, id) == -E2BIG);
	CHECK(strstr(lnx_policy_error(p), "fewer at a time"));
	CHECK(!lnx_policy_show(p, NULL, &found, &n) && !n);
	free(found);
	CHECK(!lnx_policy_add(p, rule, 10, id) && id[9].index == 9);
	rule[12].priority = LNX_POLICY_UNSET - 1;
	strcpy(rule[13].src, "nonsense");
	CHECK(lnx_policy_add(p, rule + 10, 4, id) == -EINVAL);
	CHECK(!lnx_policy_show(p, NULL, &found, &n) && n == 10);
	free(found);
	/* A net rule that is there is not taken for one of NIDs. */
	CHECK(!lnx_policy_add_net(p, LNX_POLICY_DST, "tcp", 3, NULL));
	CHECK(lnx_policy_add_nid(p, LNX_POLICY_DST, "tcp", 4, NULL) == -EINVAL);
	CHECK(!lnx_policy_show_net(p, LNX_POLICY_DST, NULL, &found, &n) && n == 1 &&
	      found->priority == 3);
	free(found);
	CHECK(!lnx_policy_del(p, NULL, 0, NULL));
}

int main(int argc, char **argv)
{
	uint64_t eid = argc > 2 ? strtoull(argv[2], NULL, 16) : 0;
	int err;

	if (argc < 2)
		return 2;
	err = lnx_policy_open_process((pid_t)strtol(argv[1], NULL, 10), eid, WAIT_MS, &p);
	if (err) {
		printf("%s\n", strerror(-err));
		lnx_policy_close(p);
		return 3;
	}
	refused();
	each_kind();
	many();
	together();
	lnx_policy_close(p);
	return errors != 0;
}
