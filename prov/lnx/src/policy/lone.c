/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How a lone large message goes.  See lone.h. */
#include "policy/lone.h"

#include "base/compiler.h"
#include "base/interval.h"

/* Weight of a new time in the smoothed one, as 1 of so many; and by which part the other way
 * has to be better. */
#define SMOOTH		4
#define BETTER		8

/* NULL: messages of that size are always read. */
static struct lnx_lone_size *size_of(struct lnx_lone *l, size_t len)
{
	unsigned i = 0;

	while (i < LNX_LONE_SIZES && len >= (size_t)2 * LNX_LONE_MIN << i)
		i++;
	return i < LNX_LONE_SIZES ? &l->size[i] : NULL;
}

static bool doubted(const struct lnx_lone_size *s, size_t len)
{
	return s->way != LNX_LONE_READ ||
	       s->us[LNX_LONE_READ] > LNX_LONE_FAST_NS / LNX_NS_PER_US +
					  len / LNX_LONE_FAST_BYTES;
}

/* A trial has ended.  One of whose messages none was measured has shown nothing. */
static void judge(struct lnx_lone_size *s)
{
	uint32_t us = s->us[s->way], other = s->us[!s->way];

	if (other && other < us - us / BETTER) {
		s->way = !s->way;
		s->wait = LNX_LONE_WAIT_MIN;
	} else {
		s->wait = (uint16_t)LNX_MIN(4u * s->wait, LNX_LONE_WAIT_MAX);
	}
	s->trial = false;
	s->left = s->wait;
}

enum lnx_lone_way lnx_lone_next(struct lnx_lone *l, size_t len)
{
	struct lnx_lone_size *s = size_of(l, len);

	if (!s)
		return LNX_LONE_READ;
	if (s->trial && !s->left)
		judge(s);
	if (!s->trial && !doubted(s, len))
		return LNX_LONE_READ;
	if (!s->wait)
		s->wait = s->left = LNX_LONE_WAIT_FIRST;
	if (!s->trial && !s->left) {
		s->trial = true;
		s->left = LNX_LONE_TRIAL;
		s->us[!s->way] = 0;
	}
	s->left--;
	return s->trial ? !s->way : s->way;
}

void lnx_lone_began(struct lnx_lone *l, uint64_t op, size_t len, enum lnx_lone_way way,
		    uint64_t now)
{
	l->op = len < UINT32_MAX ? op : 0;
	l->since_ns = now;
	l->len = (uint32_t)len;
	l->way = (uint8_t)way;
}

void lnx_lone_ended(struct lnx_lone *l, uint64_t op, uint64_t now)
{
	struct lnx_lone_size *s = size_of(l, l->len);
	uint64_t took = lnx_ns_since(now, l->since_ns) / LNX_NS_PER_US;
	uint32_t us = (uint32_t)LNX_MIN(LNX_MAX(took, 1ull), UINT32_MAX / 2), *was;

	if (!op || op != l->op)
		return;
	l->op = 0;
	if (!s)
		return;
	was = &s->us[l->way];
	*was = *was ? *was - *was / SMOOTH + LNX_MAX(us / SMOOTH, 1u) : us;
	if (s->trial && l->way != s->way && us / LNX_LONE_WORSE > s->us[s->way])
		s->left = 0;
}
