/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which atomics a link offers: those that we can do in frames, and of these only the
 * ones that its direct rail has too.  So it does not matter where a peer is.
 */
#include <stdlib.h>

#include "lnx_wire_shm.h"
#include "obj/domain.h"
#include "rma/amo.h"

static const uint64_t class_flag[LNX_AMO_CLASSES] = {
	[LNX_AMO_FETCH] = FI_FETCH_ATOMIC,
	[LNX_AMO_COMPARE] = FI_COMPARE_ATOMIC,
};

static void framed(struct lnx_amo_limits *l)
{
	unsigned cls, type, op;

	l->bytes[LNX_AMO_BASE] = LNX_ATOMIC_BYTES_MAX;
	l->bytes[LNX_AMO_FETCH] = LNX_ATOMIC_BYTES_MAX;
	l->bytes[LNX_AMO_COMPARE] = LNX_ATOMIC_BYTES_MAX / 2;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (cls = 0; cls < LNX_AMO_CLASSES; cls++)
		for (type = 0; type < LNX_AMO_TYPES; type++)
			for (op = 0; op <= FI_DIFF; op++)
				if (lnx_amo_valid((enum fi_op)op,
						  (enum fi_datatype)type,
						  (enum lnx_amo_class)cls))
					l->ops[cls][type] |= 1u << op;
#else
	/* Frames would have them in the wrong byte order: not supported yet. */
	(void)cls, (void)type, (void)op;
#endif
}

/* Reduce to what the core domain can do. */
static void narrow(struct lnx_amo_limits *l, struct fid_domain *core)
{
	unsigned cls, type, op;

	for (cls = 0; cls < LNX_AMO_CLASSES; cls++) {
		for (type = 0; type < LNX_AMO_TYPES; type++) {
			/* shm, the only such core, has none of them, and logs a warning
			 * for each query. */
			if (type == FI_INT128 || type == FI_UINT128)
				l->ops[cls][type] = 0;
			for (op = 0; op <= FI_DIFF; op++) {
				struct fi_atomic_attr attr = { 0 };

				if (!(l->ops[cls][type] & 1u << op))
					continue;
				if (core && !fi_query_atomic(core,
						(enum fi_datatype)type,
						(enum fi_op)op, &attr,
						class_flag[cls]))
					l->bytes[cls] = LNX_MIN(l->bytes[cls],
						attr.count * attr.size);
				else
					l->ops[cls][type] &= ~(1u << op);
			}
		}
	}
}

/* Only the domain of a core can be queried.  This may be before any endpoint has opened
 * it. */
static void ask_rail(struct lnx_amo_limits *l, const struct lnx_rail_spec *spec)
{
	struct fid_fabric *fabric = NULL;
	struct fid_domain *domain = NULL;
	int ret = fi_fabric(spec->info->fabric_attr, &fabric, NULL);

	if (!ret)
		ret = fi_domain(fabric, spec->info, &domain, NULL);
	if (ret)
		LNX_WARN(FI_LOG_DOMAIN,
			 "%s cannot be queried for its atomics, so none are offered: %s\n",
			 spec->prov, fi_strerror(-ret));
	narrow(l, domain);
	/* Those with a result are messages: rma/amo.c. */
	l->bytes[LNX_AMO_FETCH] = LNX_MIN(l->bytes[LNX_AMO_FETCH],
					  (size_t)LNX_SHM_AMO_BYTES);
	l->bytes[LNX_AMO_COMPARE] = LNX_MIN(l->bytes[LNX_AMO_COMPARE],
					    (size_t)LNX_SHM_AMO_BYTES / 2);
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
}

static LNX_COLD const struct lnx_amo_limits *make(struct lnx_domain *d)
{
	struct lnx_amo_limits *l = calloc(1, sizeof(*l)), *other = NULL;
	unsigned i;

	if (!l)
		return NULL;
	framed(l);
	for (i = 0; i < d->rails->nrail; i++)
		if (d->rails->rail[i].kind == LNX_RAIL_DIRECT)
			ask_rail(l, &d->rails->rail[i]);
	for (i = 0; i < LNX_AMO_CLASSES * LNX_AMO_TYPES; i++) {
		unsigned cls = i / LNX_AMO_TYPES, type = i % LNX_AMO_TYPES;

		l->count[cls][type] = l->bytes[cls] /
				      lnx_amo_size((enum fi_datatype)type);
	}
	/* Another thread may have made it meanwhile. */
	if (__atomic_compare_exchange_n(&d->amo, &other, l, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return l;
	free(l);
	return other;
}

const struct lnx_amo_limits *lnx_amo_limits(struct lnx_domain *d)
{
	const struct lnx_amo_limits *l =
		__atomic_load_n(&d->amo, __ATOMIC_ACQUIRE);

	return lnx_likely(l != NULL) ? l : make(d);
}

size_t lnx_amo_count(struct lnx_domain *d, enum fi_op op,
		     enum fi_datatype type, enum lnx_amo_class cls)
{
	const struct lnx_amo_limits *l = lnx_amo_limits(d);

	/* Native rails: there are none (core/caps.c). */
	if (lnx_unlikely(lnx_rail_kind_native(d->rails->rail[0].kind)))
		return 0;
	if (lnx_unlikely(!l || (unsigned)type >= LNX_AMO_TYPES ||
			 (unsigned)op > FI_DIFF) ||
	    !(l->ops[cls][type] & 1u << op))
		return 0;
	return l->count[cls][type];
}
