/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Executes atomic operations.  Two independent parts: `step` functions compute the
 * result of an operation on a value of their type, in private memory; `element`
 * functions load and store the value in one atomic step, whatever its type.
 */
#include "rma/amo_exec.h"

#include <complex.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* ---- values ---- */

/*
 * Turn the value at val into the new one: s is the operand, c the comparison.  False:
 * the value stays, and nothing is to be stored.
 */
typedef bool step_fn(enum fi_op op, void *val, const void *src,
		     const void *cmp);

/*
 * As bytes, so that those which are not part of the value (padding), and NaNs, are
 * kept.
 */
static inline bool swap(bool yes, void *val, const void *src, size_t size)
{
	if (yes)
		memcpy(val, src, size);
	return yes;
}

#define SWAP_IF(cond)	return swap(cond, val, src, sizeof(a))

#define ORDERED								\
	case FI_MIN:		SWAP_IF(s < a);				\
	case FI_MAX:		SWAP_IF(s > a);				\
	case FI_CSWAP_LE:	SWAP_IF(c <= a);			\
	case FI_CSWAP_LT:	SWAP_IF(c < a);				\
	case FI_CSWAP_GE:	SWAP_IF(c >= a);			\
	case FI_CSWAP_GT:	SWAP_IF(c > a);

#define BITWISE								\
	case FI_BOR:		a |= s; break;				\
	case FI_BAND:		a &= s; break;				\
	case FI_BXOR:		a ^= s; break;				\
	case FI_MSWAP:		a = (s & c) | (a & ~c); break;

/*
 * wide is the type to calculate in: for integers an unsigned one that is not promoted
 * to int, so that overflow wraps and is defined.
 */
#define STEP(name, type, wide, ...)					\
static bool name(enum fi_op op, void *val, const void *src,		\
		 const void *cmp)					\
{									\
	type a, s, c;							\
									\
	if (op == FI_ATOMIC_READ)					\
		return false;						\
	memcpy(&a, val, sizeof(a));					\
	memcpy(&s, src, sizeof(s));					\
	memcpy(&c, cmp ? cmp : src, sizeof(c));				\
	switch (op) {							\
	case FI_ATOMIC_WRITE:	SWAP_IF(true);				\
	case FI_CSWAP:		SWAP_IF(c == a);			\
	case FI_CSWAP_NE:	SWAP_IF(c != a);			\
	case FI_SUM:		a = (type)((wide)a + (wide)s); break;	\
	case FI_DIFF:		a = (type)((wide)a - (wide)s); break;	\
	case FI_PROD:		a = (type)((wide)a * (wide)s); break;	\
	case FI_LOR:		a = a || s; break;			\
	case FI_LAND:		a = a && s; break;			\
	case FI_LXOR:		a = !a != !s; break;			\
	__VA_ARGS__							\
	default:		return false;				\
	}								\
	memcpy(val, &a, sizeof(a));					\
	return true;							\
}

STEP(step_i8, int8_t, uint64_t, ORDERED BITWISE)
STEP(step_u8, uint8_t, uint64_t, ORDERED BITWISE)
STEP(step_i16, int16_t, uint64_t, ORDERED BITWISE)
STEP(step_u16, uint16_t, uint64_t, ORDERED BITWISE)
STEP(step_i32, int32_t, uint64_t, ORDERED BITWISE)
STEP(step_u32, uint32_t, uint64_t, ORDERED BITWISE)
STEP(step_i64, int64_t, uint64_t, ORDERED BITWISE)
STEP(step_u64, uint64_t, uint64_t, ORDERED BITWISE)
STEP(step_f, float, float, ORDERED)
STEP(step_d, double, double, ORDERED)
STEP(step_fc, float complex, float complex)
STEP(step_dc, double complex, double complex)
STEP(step_ld, long double, long double, ORDERED)
STEP(step_ldc, long double complex, long double complex)
#ifdef __SIZEOF_INT128__
STEP(step_i128, __int128, unsigned __int128, ORDERED BITWISE)
STEP(step_u128, unsigned __int128, unsigned __int128, ORDERED BITWISE)
#endif

/* ---- types and their operations ---- */

#define BIT(op)		(1u << (op))

#define OPS_ORDER	(BIT(FI_MIN) | BIT(FI_MAX) | BIT(FI_CSWAP_LE) | \
			 BIT(FI_CSWAP_LT) | BIT(FI_CSWAP_GE) | \
			 BIT(FI_CSWAP_GT))
#define OPS_BITS	(BIT(FI_BOR) | BIT(FI_BAND) | BIT(FI_BXOR) | \
			 BIT(FI_MSWAP))
#define OPS_ALL		(BIT(FI_DIFF + 1) - 1)

#define OPS_INT		OPS_ALL
#define OPS_REAL	(OPS_ALL & ~OPS_BITS)
#define OPS_COMPLEX	(OPS_REAL & ~OPS_ORDER)

#define OPS_COMPARE	(BIT(FI_CSWAP) | BIT(FI_CSWAP_NE) | \
			 BIT(FI_CSWAP_LE) | BIT(FI_CSWAP_LT) | \
			 BIT(FI_CSWAP_GE) | BIT(FI_CSWAP_GT) | BIT(FI_MSWAP))
#define OPS_FETCH	(OPS_ALL & ~OPS_COMPARE)

static const uint32_t class_ops[LNX_AMO_CLASSES] = {
	[LNX_AMO_BASE] = OPS_FETCH & ~BIT(FI_ATOMIC_READ),
	[LNX_AMO_FETCH] = OPS_FETCH,
	[LNX_AMO_COMPARE] = OPS_COMPARE,
};

static const struct type {
	size_t size;
	step_fn *step;
	uint32_t ops;
} types[] = {
	[FI_INT8] = { sizeof(int8_t), step_i8, OPS_INT },
	[FI_UINT8] = { sizeof(uint8_t), step_u8, OPS_INT },
	[FI_INT16] = { sizeof(int16_t), step_i16, OPS_INT },
	[FI_UINT16] = { sizeof(uint16_t), step_u16, OPS_INT },
	[FI_INT32] = { sizeof(int32_t), step_i32, OPS_INT },
	[FI_UINT32] = { sizeof(uint32_t), step_u32, OPS_INT },
	[FI_INT64] = { sizeof(int64_t), step_i64, OPS_INT },
	[FI_UINT64] = { sizeof(uint64_t), step_u64, OPS_INT },
	[FI_FLOAT] = { sizeof(float), step_f, OPS_REAL },
	[FI_DOUBLE] = { sizeof(double), step_d, OPS_REAL },
	[FI_FLOAT_COMPLEX] = { sizeof(float complex), step_fc, OPS_COMPLEX },
	[FI_DOUBLE_COMPLEX] = { sizeof(double complex), step_dc, OPS_COMPLEX },
	[FI_LONG_DOUBLE] = { sizeof(long double), step_ld, OPS_REAL },
	[FI_LONG_DOUBLE_COMPLEX] = { sizeof(long double complex), step_ldc,
				     OPS_COMPLEX },
#ifdef __SIZEOF_INT128__
	[FI_INT128] = { sizeof(__int128), step_i128, OPS_INT },
	[FI_UINT128] = { sizeof(unsigned __int128), step_u128, OPS_INT },
#endif
};

size_t lnx_amo_size(enum fi_datatype type)
{
	return (size_t)type < LNX_ARRAY_SIZE(types) ? types[type].size : 0;
}

bool lnx_amo_valid(enum fi_op op, enum fi_datatype type,
		   enum lnx_amo_class cls)
{
	return lnx_amo_size(type) && (unsigned)op <= FI_DIFF &&
	       (unsigned)cls < LNX_AMO_CLASSES &&
	       (types[type].ops & class_ops[cls] & BIT(op));
}

/* ---- elements in memory ---- */

/* Do op on one element; *res, if not NULL, gets the old value. */
typedef void element_fn(const struct type *t, enum fi_op op, void *dst,
			const void *src, const void *cmp, void *res);

#define ELEMENT(name, word)						\
static void name(const struct type *t, enum fi_op op, void *dst,	\
		 const void *src, const void *cmp, void *res)		\
{									\
	word *p = dst, old = __atomic_load_n(p, __ATOMIC_SEQ_CST), val;	\
									\
	do {								\
		val = old;						\
	} while (t->step(op, &val, src, cmp) &&				\
		 !__atomic_compare_exchange_n(p, &old, val, true,	\
					      __ATOMIC_SEQ_CST,		\
					      __ATOMIC_SEQ_CST));	\
	if (res)							\
		memcpy(res, &old, sizeof(old));				\
}

ELEMENT(element_1, uint8_t)
ELEMENT(element_2, uint16_t)
ELEMENT(element_4, uint32_t)
ELEMENT(element_8, uint64_t)

/*
 * Innermost lock: taken with or without an owner lock held; no calls while it is held.
 */
static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER;

static void element_locked(const struct type *t, enum fi_op op, void *dst,
			   const void *src, const void *cmp, void *res)
{
	uint8_t old[LNX_AMO_ELEM_MAX], val[LNX_AMO_ELEM_MAX];

	pthread_mutex_lock(&locked);
	memcpy(old, dst, t->size);
	memcpy(val, old, t->size);
	if (t->step(op, val, src, cmp))
		memcpy(dst, val, t->size);
	pthread_mutex_unlock(&locked);
	if (res)
		memcpy(res, old, t->size);
}

#ifdef __x86_64__
/*
 * 16 bytes at once.  Compilers leave this to a library that we would need for nothing
 * else.  A CPU with AVX reads 16 aligned bytes in one step, and has cmpxchg16b; without
 * AVX, a read would have to be a write.
 */
struct pair {
	uint64_t low, high;
} __attribute__((aligned(16)));

static inline struct pair load_16(const struct pair *p)
{
	struct pair val;

	__asm__ volatile("movdqa %1, %%xmm0\n\tmovdqa %%xmm0, %0"
			 : "=m"(val) : "m"(*p) : "xmm0", "memory");
	return val;
}

static inline bool exchange_16(struct pair *p, struct pair *old,
			       const struct pair *val)
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(old->low),
			   "+d"(old->high)
			 : "b"(val->low), "c"(val->high) : "memory");
	return done;
}

static void element_16(const struct type *t, enum fi_op op, void *dst,
		       const void *src, const void *cmp, void *res)
{
	struct pair old = load_16(dst), val;

	do {
		val = old;
	} while (t->step(op, &val, src, cmp) && !exchange_16(dst, &old, &val));
	if (res)
		memcpy(res, &old, sizeof(old));
}

static inline element_fn *element_wide(void)
{
	return __builtin_cpu_supports("avx") ? element_16 : element_locked;
}
#else
static inline element_fn *element_wide(void)
{
	return element_locked;
}
#endif

static element_fn *element_for(size_t size, const void *dst)
{
	if ((uintptr_t)dst & (size - 1))
		return element_locked;
	switch (size) {
	case 1:
		return element_1;
	case 2:
		return element_2;
	case 4:
		return element_4;
	case 8:
		return element_8;
	case 16:
		return element_wide();
	default:
		return element_locked;
	}
}

/* src, cmp and res may be NULL. */
static void run(enum fi_op op, enum fi_datatype type, void *dst,
		const void *src, const void *cmp, void *res, size_t count)
{
	const struct type *t = &types[type];
	element_fn *element = element_for(t->size, dst);
	size_t i, size = t->size;

	for (i = 0; i < count; i++)
		element(t, op, (char *)dst + i * size,
			src ? (const char *)src + i * size : NULL,
			cmp ? (const char *)cmp + i * size : NULL,
			res ? (char *)res + i * size : NULL);
}

void lnx_amo_base(enum fi_op op, enum fi_datatype type, void *dst,
		  const void *src, size_t count)
{
	run(op, type, dst, src, NULL, NULL, count);
}

void lnx_amo_fetch(enum fi_op op, enum fi_datatype type, void *dst,
		   const void *src, void *result, size_t count)
{
	run(op, type, dst, src, NULL, result, count);
}

void lnx_amo_compare(enum fi_op op, enum fi_datatype type, void *dst,
		     const void *src, const void *compare, void *result,
		     size_t count)
{
	run(op, type, dst, src, compare, result, count);
}
