/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sets parameters of an open endpoint.  See settings.h.  Called by ctl/request.c. */
#include "ctl/settings.h"

#include <stdlib.h>
#include <string.h>

#include "conf/config.h"
#include "core/credits.h"
#include "policy/plan.h"

#define WHY_BYTES	600

static_assert(LNX_TUNE_DEFAULT == LNX_CONFIG_UNSET, "a tunable that is not set");

struct lnx_settings {
	struct lnx_conf conf;
	char *classes;			/* text of a parameter, owned */
};

static uint32_t pow2_up(uint64_t v)
{
	uint32_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

/* What ep_open.c made of them. */
static void apply(struct lnx_ep *ep)
{
	const struct lnx_conf *c = ep->conf;

	lnx_plan_make(&ep->plan, c);
	ep->poll.idle_mask = pow2_up(c->poll_idle) - 1;
	ep->poll_credits = (uint32_t)c->poll_credits;
	ep->ack_every = (uint32_t)c->ack_every;
	lnx_credits_changed(ep);
	/* Peers may have listed rails that were not to be used. */
	if (c->discovery)
		lnx_peers_extend(ep);
}

static int unknown(const char *name, size_t len, struct lnx_out *o)
{
	const char *known = lnx_conf_nearest(name, len);

	lnx_out(o, "\"%.*s\": there is no such parameter%s%s; \"params\" lists "
		"them", (int)LNX_MIN(len, 40u), name,
		known ? "; the nearest one is " : "", known ? known : "");
	return -FI_EINVAL;
}

/* Take the value of `row` into *c, and check that all fit. */
static int check(struct lnx_conf *c, size_t row, const char *value, char *why)
{
	if (lnx_conf_set(c, row, value, why, WHY_BYTES))
		return -FI_EINVAL;
	lnx_conf_mend(c);
	return lnx_plan_check(c, why, WHY_BYTES) ? -FI_EINVAL : 0;
}

int lnx_settings_set(struct lnx_ep *ep, const char *name, size_t name_len,
		     const char *value, struct lnx_out *o)
{
	struct lnx_settings *s = ep->ctl.settings;
	int row = lnx_conf_find(name, name_len), ret;
	struct lnx_conf c = *ep->conf;
	char why[WHY_BYTES], variable[LNX_PARAM_VARIABLE_BYTES];
	char *text;

	if (row < 0)
		return unknown(name, name_len, o);
	if (!lnx_conf_live((size_t)row)) {
		lnx_out(o, "\"%s\" can be set at start only, by the variable %s",
			lnx_params[row].name,
			lnx_conf_variable((size_t)row, variable));
		return -FI_EBUSY;
	}
	ret = check(&c, (size_t)row, value, why);
	if (ret) {
		lnx_out(o, "%s", why);
		return ret;
	}
	text = strdup(value);
	if (text && !s)
		s = calloc(1, sizeof(*s));
	if (!text || !s) {
		free(text);
		return -FI_ENOMEM;
	}
	/* The only parameter of text among them. */
	if (c.health_sensitivity_classes == value) {
		free(s->classes);
		s->classes = text;
		c.health_sensitivity_classes = text;
	} else {
		free(text);
	}
	c.origin[row] |= LNX_CONF_LIVE;
	c.origin[row] &= (uint8_t)~LNX_CONF_DERIVED;
	s->conf = c;
	ep->ctl.settings = s;
	ep->conf = &s->conf;
	ep->ctl.nset++;
	apply(ep);
	return 0;
}

int lnx_settings_tune(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		      struct lnx_out *o)
{
	const struct lnx_target *t = &r->target[0];
	unsigned i, n = 0;

	for (i = ep->nrail - ep->nnet; i < ep->nrail; i++) {
		struct lnx_rail_credits own = lnx_credits_own(ep->rail[i]);

		if (!lnx_request_has_rail(t, ep->rail[i]->name))
			continue;
		if (r->tuned >> LNX_TUNE_CREDITS & 1)
			own.credits = r->tune[LNX_TUNE_CREDITS];
		if (r->tuned >> LNX_TUNE_PEER_CREDITS & 1)
			own.peer_credits = r->tune[LNX_TUNE_PEER_CREDITS];
		lnx_credits_tune(ep->rail[i], own);
		n++;
	}
	if (!n || ep->native) {
		lnx_out(o, "\"%.*s\": no rail of that name sends frames", (int)t->len, text + t->at);
		return -FI_EINVAL;
	}
	lnx_credits_changed(ep);
	return 0;
}

void lnx_settings_free(struct lnx_ep *ep)
{
	if (!ep->ctl.settings)
		return;
	free(ep->ctl.settings->classes);
	free(ep->ctl.settings);
	ep->ctl.settings = NULL;
}
