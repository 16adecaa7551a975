/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The plain model of atomic operations; see atomic_model.h. */
#include "atomic_model.h"

#include <complex.h>
#include <stdint.h>
#include <string.h>

typedef float _Complex cfloat;
typedef double _Complex cdouble;
typedef long double ldouble;
typedef long double _Complex cldouble;
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

/* What all types can do.  Elements are compared as values, because the padding
 * bytes of a long double have no defined value. */
#define COMMON(T)							\
static void put_##T(void *at, int v)					\
{									\
	T x = (T)v;							\
	memset(at, 0, sizeof(x));					\
	memcpy(at, &x, sizeof(x));					\
}									\
static bool same_##T(const void *a, const void *b)			\
{									\
	T x, y;								\
	memcpy(&x, a, sizeof(x));					\
	memcpy(&y, b, sizeof(y));					\
	return x == y;							\
}									\
static bool common_##T(enum fi_op op, T *t, T b, T c)			\
{									\
	switch (op) {							\
	case FI_SUM: *t = (T)(*t + b); break;				\
	case FI_DIFF: *t = (T)(*t - b); break;				\
	case FI_PROD: *t = (T)(*t * b); break;				\
	case FI_LOR: *t = (T)(*t != 0 || b != 0); break;		\
	case FI_LAND: *t = (T)(*t != 0 && b != 0); break;		\
	case FI_LXOR: *t = (T)((*t != 0) != (b != 0)); break;		\
	case FI_ATOMIC_READ: break;					\
	case FI_ATOMIC_WRITE: *t = b; break;				\
	case FI_CSWAP: *t = c == *t ? b : *t; break;			\
	case FI_CSWAP_NE: *t = c != *t ? b : *t; break;			\
	default: return false;						\
	}								\
	return true;							\
}

#define ORDERED(T)							\
static bool ordered_##T(enum fi_op op, T *t, T b, T c)			\
{									\
	switch (op) {							\
	case FI_MIN: *t = b < *t ? b : *t; break;			\
	case FI_MAX: *t = b > *t ? b : *t; break;			\
	case FI_CSWAP_LE: *t = c <= *t ? b : *t; break;			\
	case FI_CSWAP_LT: *t = c < *t ? b : *t; break;			\
	case FI_CSWAP_GE: *t = c >= *t ? b : *t; break;			\
	case FI_CSWAP_GT: *t = c > *t ? b : *t; break;			\
	default: return common_##T(op, t, b, c);			\
	}								\
	return true;							\
}

#define INTEGER(T)							\
static bool integer_##T(enum fi_op op, T *t, T b, T c)			\
{									\
	switch (op) {							\
	case FI_BOR: *t = (T)(*t | b); break;				\
	case FI_BAND: *t = (T)(*t & b); break;				\
	case FI_BXOR: *t = (T)(*t ^ b); break;				\
	case FI_MSWAP: *t = (T)((b & c) | (*t & ~c)); break;		\
	default: return ordered_##T(op, t, b, c);			\
	}								\
	return true;							\
}

#define APPLY(T, last)							\
static void apply_##T(enum fi_op op, void *t, const void *b,		\
		      const void *c)					\
{									\
	T x, y, z;							\
	memcpy(&x, t, sizeof(x));					\
	memcpy(&y, b, sizeof(y));					\
	memcpy(&z, c, sizeof(z));					\
	last##_##T(op, &x, y, z);					\
	memcpy(t, &x, sizeof(x));					\
}

#define INTEGERS(T)	COMMON(T) ORDERED(T) INTEGER(T) APPLY(T, integer)
#define REALS(T)	COMMON(T) ORDERED(T) APPLY(T, ordered)
#define COMPLEXES(T)	COMMON(T) APPLY(T, common)

INTEGERS(int8_t)
INTEGERS(uint8_t)
INTEGERS(int16_t)
INTEGERS(uint16_t)
INTEGERS(int32_t)
INTEGERS(uint32_t)
INTEGERS(int64_t)
INTEGERS(uint64_t)
INTEGERS(i128)
INTEGERS(u128)
REALS(float)
REALS(double)
REALS(ldouble)
COMPLEXES(cfloat)
COMPLEXES(cdouble)
COMPLEXES(cldouble)

#define TYPE(e, n, T, i, o) \
	{ e, n, sizeof(T), i, o, put_##T, same_##T, apply_##T }

const struct atomic_type atomic_types[] = {
	TYPE(FI_INT8, "int8", int8_t, true, true),
	TYPE(FI_UINT8, "uint8", uint8_t, true, true),
	TYPE(FI_INT16, "int16", int16_t, true, true),
	TYPE(FI_UINT16, "uint16", uint16_t, true, true),
	TYPE(FI_INT32, "int32", int32_t, true, true),
	TYPE(FI_UINT32, "uint32", uint32_t, true, true),
	TYPE(FI_INT64, "int64", int64_t, true, true),
	TYPE(FI_UINT64, "uint64", uint64_t, true, true),
	TYPE(FI_FLOAT, "float", float, false, true),
	TYPE(FI_DOUBLE, "double", double, false, true),
	TYPE(FI_FLOAT_COMPLEX, "float-complex", cfloat, false, false),
	TYPE(FI_DOUBLE_COMPLEX, "double-complex", cdouble, false, false),
	TYPE(FI_LONG_DOUBLE, "long-double", ldouble, false, true),
	TYPE(FI_LONG_DOUBLE_COMPLEX, "long-double-complex", cldouble, false,
	     false),
	TYPE(FI_INT128, "int128", i128, true, true),
	TYPE(FI_UINT128, "uint128", u128, true, true),
};
const int atomic_ntypes = sizeof(atomic_types) / sizeof(atomic_types[0]);

const char *const atomic_op_names[ATOMIC_NOPS] = {
	"min", "max", "sum", "prod", "lor", "land", "bor", "band", "lxor",
	"bxor", "read", "write", "cswap", "cswap-ne", "cswap-le", "cswap-lt",
	"cswap-ge", "cswap-gt", "mswap", "diff"
};

bool atomic_is_compare(enum fi_op op)
{
	return op >= FI_CSWAP && op <= FI_MSWAP;
}

bool atomic_defined(const struct atomic_type *t, enum fi_op op)
{
	switch (op) {
	case FI_BOR: case FI_BAND: case FI_BXOR: case FI_MSWAP:
		return t->integer;
	case FI_MIN: case FI_MAX: case FI_CSWAP_LE: case FI_CSWAP_LT:
	case FI_CSWAP_GE: case FI_CSWAP_GT:
		return t->ordered;
	default:
		return true;
	}
}
