/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Looks errors up in errors.def.  See errclass.h. */
#include "policy/errclass.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/compiler.h"
#include "policy/fault.h"
#include "wire/addr.h"			/* enum lnx_prov_id */

#define ANY_ERROR	0
#define ANY_NUMBER	0

const struct lnx_error_row lnx_error_rows[] = {
#define LNX_ERROR(provs, ops, err, number, class, why) \
	{ #provs, #ops, #err, why, LNX_FROM_##provs, LNX_WHILE_##ops, err, \
	  number, LNX_CLASS_##class },
#include "policy/errors.def"
#undef LNX_ERROR
};

const size_t lnx_nerrors = LNX_ARRAY_SIZE(lnx_error_rows);

static int positive(int v)
{
	return v == INT_MIN ? INT_MAX : v < 0 ? -v : v;
}

LNX_COLD enum lnx_health_class lnx_errclass(unsigned prov, enum lnx_while op,
					    int err, int number)
{
	const struct lnx_error_row *row;
	unsigned bit = prov < LNX_PROV_MAX ? 1u << prov : 1u << LNX_PROV_NONE;

	err = positive(err);
	number = positive(number);
	if (!err)
		return LNX_CLASS_OK;
	/* An error injected by FI_LNX_FAULT contains its class. */
	if (lnx_fault_class_of(number) != LNX_CLASS_OK)
		return lnx_fault_class_of(number);
	for (row = lnx_error_rows; row < lnx_error_rows + lnx_nerrors; row++)
		if ((row->provs & bit) && (row->ops & op) &&
		    (!row->err || row->err == err) &&
		    (!row->number || row->number == number))
			break;
	/* The last row matches everything except an invalid op. */
	return row < lnx_error_rows + lnx_nerrors ? row->class :
						    LNX_CLASS_REMOTE_ERROR;
}
