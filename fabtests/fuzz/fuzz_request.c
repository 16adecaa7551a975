/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any text is refused with a reason, or all that it names is within bounds.
 *
 * Sources: policy/request.c
 * Sources: policy/fault.c
 * Sources: policy/fault_print.c
 * Sources: policy/fault_text.c
 * Sources: policy/class.c
 * Sources: wire/hdr.c
 */
#define LNX_FUZZ_NAME "request"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "policy/health.h"
#include "policy/request.h"

static void check_target(const struct lnx_target *t, const char *text)
{
	FUZZ_CHECK(t->len && t->at + t->len <= strlen(text));
	FUZZ_CHECK(memchr(t->rail, '\0', sizeof(t->rail)));
	if (t->kind == LNX_TARGET_REMOTE)
		FUZZ_CHECK(t->remote < UINT16_MAX);
	else if (t->kind != LNX_TARGET_PEER)
		FUZZ_CHECK(t->rail[0]);
	if (t->kind == LNX_TARGET_RAIL || t->kind == LNX_TARGET_PATH)
		lnx_request_has_rail(t, "tcp;ofi_rxm:eth0");
	if (t->kind != LNX_TARGET_RAIL && !t->any_peer)
		FUZZ_CHECK(lnx_request_has_peer(t, t->peer, t->peer));
}

static void check_refusal(const char *why, size_t size)
{
	FUZZ_CHECK(memchr(why, '\0', size));
	FUZZ_CHECK(strlen(why) > 10);
	for (; *why; why++)
		FUZZ_CHECK(*why >= ' ' && *why <= '~');
}

/* What is read later begins inside the text, with a word unless all is meant. */
static void check_rest(const struct lnx_request *r, const char *text)
{
	FUZZ_CHECK(r->rules > text && r->rules < text + strlen(text));
	FUZZ_CHECK(*r->rules != ' ' && *r->rules != '\t');
	FUZZ_CHECK(!r->all || r->kind == LNX_REQUEST_ROUTE_DEL);
	FUZZ_CHECK(!r->ntarget);
}

static void check_tunables(const struct lnx_request *r)
{
	unsigned i;

	FUZZ_CHECK(r->ntarget == 1 && r->target[0].kind == LNX_TARGET_RAIL);
	FUZZ_CHECK(r->tuned && !(r->tuned >> LNX_TUNABLES));
	for (i = 0; i < LNX_TUNABLES; i++)
		FUZZ_CHECK(r->tune[i] <= LNX_TUNE_MAX || r->tune[i] == LNX_TUNE_DEFAULT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[600];
	struct lnx_request r;
	unsigned i;
	int ret;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(why, 'x', sizeof(why));
	ret = lnx_request_parse(text, &r, why, sizeof(why));
	if (ret) {
		FUZZ_CHECK(ret == -EINVAL);
		check_refusal(why, sizeof(why));
		free(text);
		return 0;
	}
	FUZZ_CHECK(r.ntarget <= LNX_REQUEST_TARGETS);
	for (i = 0; i < r.ntarget; i++)
		check_target(&r.target[i], text);
	switch (r.kind) {
	case LNX_REQUEST_HEALTH_SET:
	case LNX_REQUEST_HEALTH_ONCE:
		FUZZ_CHECK(r.value <= LNX_HEALTH_MAX && r.ntarget);
		break;
	case LNX_REQUEST_HEALTH_AUTO:
		FUZZ_CHECK(r.all == !r.ntarget);
		break;
	case LNX_REQUEST_FAULT_ADD:
		FUZZ_CHECK(r.rules >= text && r.rules <= text + strlen(text));
		break;
	case LNX_REQUEST_SET:
		FUZZ_CHECK(r.name_len && r.value_len);
		FUZZ_CHECK(r.name_at + r.name_len < r.value_at);
		FUZZ_CHECK(r.value_at + r.value_len <= strlen(text));
		break;
	case LNX_REQUEST_ROUTE_ADD:
	case LNX_REQUEST_ROUTE_PUT:
	case LNX_REQUEST_ROUTE_DEL:
		check_rest(&r, text);
		break;
	case LNX_REQUEST_TUNE:
		check_tunables(&r);
		break;
	case LNX_REQUEST_PING:
	case LNX_REQUEST_DISCOVER:
	case LNX_REQUEST_EXPLAIN:
		FUZZ_CHECK(r.ntarget == 1);
		break;
	default:
		FUZZ_CHECK(!r.ntarget);
	}
	free(text);
	return 0;
}
