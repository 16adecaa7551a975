/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The atomic engine against a plain model that shares no code with it: integers
 * are numbers modulo 2^bits in 128 bits, everything else is a complex long
 * double.
 */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rma/amo_exec.h"

#define TYPES	(FI_FLOAT8_E5M2 + 2)	/* plus one that does not exist */
#define OPS	(FI_DIFF + 2)
#define ROUNDS	300
#define COUNT	5			/* elements of one call */

typedef unsigned __int128 u128;
typedef long double complex number;

static uint64_t rng;

static unsigned long seed(void)
{
	const char *given = getenv("LNX_SEED");
	unsigned long s = given ? strtoul(given, NULL, 0) :
		(unsigned long)time(NULL) ^ ((unsigned long)getpid() << 16);

	fprintf(stderr, "seed %lu (repeat with LNX_SEED=%lu)\n", s, s);
	rng = s * 2654435769u + 1;
	return s;
}

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng * 0x2545f4914f6cdd1dULL;
}

/* ---- the model ---- */

/* Of each type: bits of an integer, negative for signed ones, or 0. */
static int int_bits(int type)
{
	static const int bits[] = {
		-8, 8, -16, 16, -32, 32, -64, 64, 0, 0, 0, 0, 0, 0, -128, 128,
	};

	return type < 16 ? bits[type] : 0;
}

static bool is_complex(int type)
{
	return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX ||
	       type == FI_LONG_DOUBLE_COMPLEX;
}

static size_t want_size(int type)
{
	switch (type) {
	case FI_FLOAT: return sizeof(float);
	case FI_DOUBLE: return sizeof(double);
	case FI_FLOAT_COMPLEX: return sizeof(float complex);
	case FI_DOUBLE_COMPLEX: return sizeof(double complex);
	case FI_LONG_DOUBLE: return sizeof(long double);
	case FI_LONG_DOUBLE_COMPLEX: return sizeof(long double complex);
	default: return (size_t)abs(int_bits(type)) / 8;
	}
}

static bool is_compare(int op)
{
	return op >= FI_CSWAP && op <= FI_MSWAP;
}

/* What the manual defines, written as conditions instead of masks. */
static bool want_valid(int op, int type, int cls)
{
	bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR ||
		    op == FI_MSWAP;
	bool order = op == FI_MIN || op == FI_MAX ||
		     (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);

	if (!want_size(type) || op > FI_DIFF || cls >= LNX_AMO_CLASSES)
		return false;
	if (is_compare(op) != (cls == LNX_AMO_COMPARE))
		return false;
	if (op == FI_ATOMIC_READ && cls != LNX_AMO_FETCH)
		return false;
	return !(bits && !int_bits(type)) && !(order && is_complex(type));
}

static u128 get_int(int bits, const void *p)
{
	u128 v = 0;

	memcpy(&v, p, (size_t)bits / 8);	/* hosts are little-endian */
	return v;
}

/* a < b for integers of so many bits, signed if bits is negative. */
static bool int_less(int bits, u128 a, u128 b)
{
	u128 half = bits < 0 ? (u128)1 << (-bits - 1) : 0;
	u128 mask = abs(bits) == 128 ? ~(u128)0 : ((u128)1 << abs(bits)) - 1;

	return ((a + half) & mask) < ((b + half) & mask);
}

static u128 model_int(int op, int bits, u128 a, u128 s, u128 c)
{
	switch (op) {
	case FI_MIN: return int_less(bits, s, a) ? s : a;
	case FI_MAX: return int_less(bits, a, s) ? s : a;
	case FI_SUM: return a + s;
	case FI_DIFF: return a - s;
	case FI_PROD: return a * s;
	case FI_LOR: return (a != 0) + (s != 0) > 0;
	case FI_LAND: return (a != 0) + (s != 0) == 2;
	case FI_LXOR: return (a != 0) + (s != 0) == 1;
	case FI_BOR: return a | s;
	case FI_BAND: return a & s;
	case FI_BXOR: return a ^ s;
	case FI_ATOMIC_READ: return a;
	case FI_ATOMIC_WRITE: return s;
	case FI_CSWAP: return c == a ? s : a;
	case FI_CSWAP_NE: return c == a ? a : s;
	case FI_CSWAP_LE: return int_less(bits, a, c) ? a : s;
	case FI_CSWAP_LT: return int_less(bits, c, a) ? s : a;
	case FI_CSWAP_GE: return int_less(bits, c, a) ? a : s;
	case FI_CSWAP_GT: return int_less(bits, a, c) ? s : a;
	case FI_MSWAP: return a ^ ((a ^ s) & c);
	}
	abort();
}

static number model_num(int op, number a, number s, number c)
{
	long double ra = creall(a), rs = creall(s), rc = creall(c);

	switch (op) {
	case FI_MIN: return rs < ra ? s : a;
	case FI_MAX: return rs > ra ? s : a;
	case FI_SUM: return a + s;
	case FI_DIFF: return a - s;
	case FI_PROD: return a * s;
	case FI_LOR: return (a != 0) + (s != 0) > 0;
	case FI_LAND: return (a != 0) + (s != 0) == 2;
	case FI_LXOR: return (a != 0) + (s != 0) == 1;
	case FI_ATOMIC_READ: return a;
	case FI_ATOMIC_WRITE: return s;
	case FI_CSWAP: return c == a ? s : a;
	case FI_CSWAP_NE: return c == a ? a : s;
	case FI_CSWAP_LE: return rc <= ra ? s : a;
	case FI_CSWAP_LT: return rc < ra ? s : a;
	case FI_CSWAP_GE: return rc >= ra ? s : a;
	case FI_CSWAP_GT: return rc > ra ? s : a;
	}
	abort();
}

/* Real and imaginary parts that all operations compute exactly in every type. */
static void put_num(int type, void *p, number v)
{
#define PUT(t) do { t x = (t)v; memcpy(p, &x, sizeof(x)); } while (0)
	switch (type) {
	case FI_FLOAT: PUT(float); break;
	case FI_DOUBLE: PUT(double); break;
	case FI_LONG_DOUBLE: PUT(long double); break;
	case FI_FLOAT_COMPLEX: PUT(float complex); break;
	case FI_DOUBLE_COMPLEX: PUT(double complex); break;
	case FI_LONG_DOUBLE_COMPLEX: PUT(long double complex); break;
	}
}

static number get_num(int type, const void *p)
{
#define GET(t) do { t x; memcpy(&x, p, sizeof(x)); return x; } while (0)
	switch (type) {
	case FI_FLOAT: GET(float);
	case FI_DOUBLE: GET(double);
	case FI_LONG_DOUBLE: GET(long double);
	case FI_FLOAT_COMPLEX: GET(float complex);
	case FI_DOUBLE_COMPLEX: GET(double complex);
	default: GET(long double complex);
	}
}

/* Often small, so that equal values meet; often extreme. */
static void random_value(int type, void *p)
{
	int bits = int_bits(type);

	if (bits) {
		u128 v = (u128)rnd() << 64 | rnd();

		switch (rnd() % 4) {
		case 0: v = rnd() % 3; break;
		case 1: v = -(u128)(rnd() % 3); break;
		case 2: v = (u128)1 << (abs(bits) - 1); v -= rnd() % 2; break;
		}
		memcpy(p, &v, want_size(type));
	} else {
		long double re = (long double)(rnd() % 65) / 4 - 8;
		long double im = (long double)(rnd() % 65) / 4 - 8;

		if (rnd() % 2)
			re = (int)re % 2;
		if (rnd() % 2)
			im = 0;
		put_num(type, p, is_complex(type) ? re + im * I : re);
	}
}

static void expect_element(int op, int type, const void *was, const void *src,
			   const void *cmp, const void *got, unsigned long s)
{
	int bits = int_bits(type);
	bool ok;

	if (bits) {
		u128 want = model_int(op, bits, get_int(abs(bits), was),
				      get_int(abs(bits), src),
				      get_int(abs(bits), cmp));

		ok = !memcmp(&want, got, want_size(type));
	} else {
		ok = get_num(type, got) ==
		     model_num(op, get_num(type, was), get_num(type, src),
			       get_num(type, cmp));
	}
	cr_assert(ok, "seed %lu: op %d of type %d", s, op, type);
}

/* ---- tests ---- */

Test(amo, sizes)
{
	int t;

	for (t = 0; t < TYPES; t++)
		cr_expect_eq(lnx_amo_size((enum fi_datatype)t), want_size(t),
			     "type %d", t);
	cr_expect_eq(lnx_amo_size(FI_VOID), 0);
	cr_expect_eq(lnx_amo_size((enum fi_datatype)-1), 0);
}

Test(amo, valid)
{
	int op, t, c;

	for (op = 0; op < OPS; op++)
		for (t = 0; t < TYPES; t++)
			for (c = 0; c <= LNX_AMO_CLASSES; c++)
				cr_expect_eq(lnx_amo_valid((enum fi_op)op,
						(enum fi_datatype)t,
						(enum lnx_amo_class)c),
					     want_valid(op, t, c),
					     "op %d type %d class %d", op, t,
					     c);
	cr_expect_not(lnx_amo_valid((enum fi_op)-1, FI_INT8, LNX_AMO_BASE));
	cr_expect_not(lnx_amo_valid(FI_NOOP, FI_INT8, LNX_AMO_BASE));
	cr_expect_not(lnx_amo_valid(FI_SUM, FI_INT8, (enum lnx_amo_class)-1));
}

/* One call with this misalignment; the bytes around stay unchanged. */
static void one_call(int op, int type, int cls, size_t off, unsigned long s)
{
	size_t size = want_size(type), len = size * COUNT, i;
	_Alignas(64) uint8_t dst[LNX_AMO_ELEM_MAX * (COUNT + 2)];
	uint8_t was[sizeof(dst)], src[sizeof(dst)], cmp[sizeof(dst)];
	uint8_t res[sizeof(dst)];
	uint8_t *d = dst + size + off, *w = was + size + off;
	uint8_t *sp = src + off % 3, *cp = cmp + off % 5, *rp = res + off % 7;

	memset(dst, 0xa5, sizeof(dst));
	memset(res, 0x5a, sizeof(res));
	for (i = 0; i < COUNT; i++) {
		random_value(type, d + i * size);
		random_value(type, sp + i * size);
		random_value(type, cp + i * size);
		if (rnd() % 2)
			memcpy(cp + i * size, d + i * size, size);
	}
	memcpy(was, dst, sizeof(dst));
	if (cls == LNX_AMO_BASE)
		lnx_amo_base((enum fi_op)op, (enum fi_datatype)type, d, sp,
			     COUNT);
	else if (cls == LNX_AMO_FETCH)
		lnx_amo_fetch((enum fi_op)op, (enum fi_datatype)type, d,
			      op == FI_ATOMIC_READ ? NULL : sp, rp, COUNT);
	else
		lnx_amo_compare((enum fi_op)op, (enum fi_datatype)type, d, sp,
				cp, rp, COUNT);
	for (i = 0; i < COUNT; i++)
		expect_element(op, type, w + i * size, sp + i * size,
			       cp + i * size, d + i * size, s);
	cr_assert(!memcmp(dst, was, size + off) &&
		  !memcmp(d + len, w + len, sizeof(dst) - size - off - len),
		  "op %d of type %d wrote outside its target", op, type);
	if (cls != LNX_AMO_BASE) {
		cr_assert_arr_eq(rp, w, len, "op %d of type %d fetched", op,
				 type);
		cr_assert_eq(rp[len], 0x5a, "wrote after the result");
	}
}

static void all_calls(bool unaligned)
{
	unsigned long s = seed();
	int op, t, c, n;

	for (op = 0; op < OPS; op++)
		for (t = 0; t < TYPES; t++)
			for (c = 0; c < LNX_AMO_CLASSES; c++)
				for (n = 0; n < ROUNDS && want_valid(op, t, c);
				     n++)
					one_call(op, t, c, unaligned ?
						 1 + rnd() % want_size(t) : 0,
						 s);
}

Test(amo, every_operation)
{
	all_calls(false);
}

Test(amo, unaligned)
{
	all_calls(true);
}

Test(amo, no_elements)
{
	lnx_amo_fetch(FI_SUM, FI_INT32, NULL, NULL, NULL, 0);
}

Test(amo, not_a_number)
{
	double a = NAN, s = 1, c = NAN, res;

	lnx_amo_base(FI_MIN, FI_DOUBLE, &a, &s, 1);
	cr_expect(isnan(a), "nothing is less than NaN");
	lnx_amo_compare(FI_CSWAP, FI_DOUBLE, &a, &s, &c, &res, 1);
	cr_expect(isnan(a) && isnan(res), "NaN equals nothing");
	lnx_amo_compare(FI_CSWAP_NE, FI_DOUBLE, &a, &s, &c, &res, 1);
	cr_expect_eq(a, 1);
	a = -0.0;
	c = 0.0;
	lnx_amo_compare(FI_CSWAP, FI_DOUBLE, &a, &s, &c, &res, 1);
	cr_expect(a == 1 && signbit(res), "zeros are equal");
}

/* A write copies signalling NaNs and padding like any other bytes. */
Test(amo, write_keeps_bytes)
{
	_Alignas(16) uint8_t dst[16], src[16], res[16];
	int t;

	for (t = FI_FLOAT; t <= FI_LONG_DOUBLE; t++) {
		size_t size = want_size(t);

		memset(dst, 0, sizeof(dst));
		memset(src, 0x7f, sizeof(src));
		src[size - 2] = 0x81;		/* a signalling NaN, if a float */
		lnx_amo_base(FI_ATOMIC_WRITE, (enum fi_datatype)t, dst, src, 1);
		cr_expect_arr_eq(dst, src, size, "type %d", t);
		lnx_amo_fetch(FI_ATOMIC_READ, (enum fi_datatype)t, dst, NULL,
			      res, 1);
		cr_expect_arr_eq(res, src, size, "type %d", t);
	}
}

/* A read must not need write permission; nor a comparison that fails. */
Test(amo, read_only_memory)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, (size_t)page, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t src[32] = { 1 }, cmp[32] = { 0 }, res[32];
	int t;

	cr_assert_neq(p, MAP_FAILED);
	put_num(FI_DOUBLE, cmp, 1);
	for (t = 0; t < TYPES; t++) {
		if (!want_size(t))
			continue;
		lnx_amo_fetch(FI_ATOMIC_READ, (enum fi_datatype)t, p, NULL,
			      res, 1);
		memset(cmp, 0x3f, sizeof(cmp));
		lnx_amo_compare(FI_CSWAP, (enum fi_datatype)t, p, src, cmp,
				res, 1);
		lnx_amo_fetch(FI_ATOMIC_READ, (enum fi_datatype)t, p + 1, NULL,
			      res, 1);
	}
	munmap(p, (size_t)page);
}

/* ---- concurrent operations ---- */

#define ADDS	100000

struct adder {
	void *at;
	int type;
	bool plain;			/* use the compiler's atomics, 8 bytes */
	pthread_barrier_t *start;	/* or NULL */
};

static void *add_ones(void *arg)
{
	struct adder *a = arg;
	uint8_t one[LNX_AMO_ELEM_MAX] = { 1 }, res[LNX_AMO_ELEM_MAX];
	int i;

	if (!int_bits(a->type))
		put_num(a->type, one, 1);
	if (a->start)
		pthread_barrier_wait(a->start);
	for (i = 0; i < ADDS; i++) {
		if (a->plain)
			__atomic_fetch_add((uint64_t *)a->at, 1,
					   __ATOMIC_RELAXED);
		else if (i & 1)
			lnx_amo_base(FI_SUM, (enum fi_datatype)a->type, a->at,
				     one, 1);
		else
			lnx_amo_fetch(FI_SUM, (enum fi_datatype)a->type, a->at,
				      one, res, 1);
	}
	return NULL;
}

static void expect_sum(int type, const void *at, unsigned sum)
{
	if (int_bits(type)) {
		u128 want = sum;

		cr_expect_arr_eq(at, &want, want_size(type), "type %d", type);
	} else {
		cr_expect(get_num(type, at) == sum, "type %d", type);
	}
}

static void two_threads(int type, size_t off, bool plain)
{
	_Alignas(64) uint8_t mem[128] = { 0 };
	pthread_barrier_t start;
	struct adder a = { mem + off, type, false, &start };
	struct adder b = { mem + off, type, plain, &start };
	pthread_t other;

	if (!int_bits(type))
		put_num(type, mem + off, 0);
	pthread_barrier_init(&start, NULL, 2);
	cr_assert_not(pthread_create(&other, NULL, add_ones, &b));
	add_ones(&a);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&start);
	expect_sum(type, mem + off, 2 * ADDS);
}

Test(amo, two_threads)
{
	int t;

	for (t = 0; t < TYPES; t++) {
		if (!want_size(t))
			continue;
		two_threads(t, 0, false);
		two_threads(t, 1, false);
	}
}

Test(amo, beside_plain_atomics)
{
	two_threads(FI_UINT64, 0, true);
	two_threads(FI_INT64, 8, true);
}

Test(amo, two_processes)
{
	int t, status;
	pid_t pid;

	for (t = 0; t < TYPES; t++) {
		size_t size = want_size(t);
		struct adder a = { .type = t };

		if (!size || size > 8)
			continue;
		a.at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		cr_assert_neq(a.at, MAP_FAILED);
		pid = fork();
		cr_assert_geq(pid, 0);
		if (!pid) {
			add_ones(&a);
			_exit(0);
		}
		add_ones(&a);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0);
		expect_sum(t, a.at, 2 * ADDS);
		munmap(a.at, 4096);
	}
}
