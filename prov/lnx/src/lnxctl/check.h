/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the parts of "lnxctl check" share: check.c, and check_command.c for a command. */
#ifndef LNXCTL_CHECK_H
#define LNXCTL_CHECK_H

#include <sys/types.h>

#include "conf/conf.h"
#include "conf/links.h"
#include "conf/routes.h"
#include "lnxctl/lnxctl.h"

#define LNX_CHECK_LINE		4096
#define LNX_CHECK_OFFERS	64u
#define LNX_CHECK_MISSING	16u

struct lnx_check {
	struct lnxctl *c;
	struct lnx_doc *problems;	/* a list of sentences */
	unsigned nproblem;
	struct lnx_conf conf;
	char module[LNX_CHECK_LINE];	/* the first one that looks well; "": none */
	struct lnx_links *asked;	/* FI_LNX_PROV_LINKS; NULL: not set, or wrong */
	/* What lnx offers, or has used. */
	char offer[LNX_CHECK_OFFERS][LNX_LINK_TEXT_MAX];
	unsigned noffer;
	char missing[LNX_CHECK_MISSING][LNX_ROUTE_TEXT_MAX];	/* routes */
	unsigned nmissing;
};

/* Something is not as asked. */
void lnx_check_problem(struct lnx_check *k, const char *fmt, ...) LNX_PRINTF(2, 3);
/* A variable of this environment that is not empty; NULL: there is none. */
const char *lnx_check_variable(const struct lnx_check *k, const char *name);
/* Add a link to k->offer, if it is not there. */
void lnx_check_offer(struct lnx_check *k, const char *link);
/* Is what lnx calls "text" this link? */
bool lnx_check_is_link(const struct lnx_link *link, const char *text);
/* The status of a process that this one started, when it has ended; as shells number it. */
int lnx_check_status(int status);

/*
 * Run the command of k->c, and judge what its processes used, and whether they used what
 * k->asked says: problems, and facts for map.  False: none of them has used lnx.
 */
bool lnx_check_command(struct lnx_check *k, struct lnx_doc *map);

#endif
