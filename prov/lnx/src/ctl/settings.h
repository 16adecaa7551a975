/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters that a request may set while an endpoint is open.  The first one gives the
 * endpoint parameters of its own (ep->conf); other endpoints keep theirs.  Owner lock
 * held, but for live.
 */
#ifndef LNX_SETTINGS_H
#define LNX_SETTINGS_H

#include "base/out.h"
#include "obj/ep.h"
#include "policy/request.h"

/*
 * Set one, with the checks that the environment's value has; nothing is adjusted, so
 * that a value which does not fit another parameter is refused with both.  0; or
 * -FI_EINVAL, -FI_EBUSY (at start only), -FI_ENOMEM, and a sentence in o, and nothing
 * has changed.
 */
int lnx_settings_set(struct lnx_ep *ep, const char *name, size_t name_len,
		     const char *value, struct lnx_out *o);

/* "tune": set tunables of the rails that the request r, of text, names, which count more than
 * parameters and the configuration file.  0; -FI_EINVAL, with a sentence in o: there is no
 * such rail. */
int lnx_settings_tune(struct lnx_ep *ep, const char *text, const struct lnx_request *r,
		      struct lnx_out *o);

/* The endpoint is being closed, and uses ep->conf no more. */
void lnx_settings_free(struct lnx_ep *ep);

#endif
