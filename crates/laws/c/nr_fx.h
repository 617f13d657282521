/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers for laws: a 32-bit mantissa times a power of two, never negative (laws handle signs
 * separately). BPF has neither floats nor 128-bit products, and w / rtt^2 spans 100 bits; these
 * numbers hold any product or quotient of windows and times with a relative error below 2^-30 a
 * step.
 *
 * All operations truncate, so results do not depend on the host. A sum does not depend on the order
 * of its terms, so laws do not depend on slot numbers.
 */
#ifndef NARROWS_FX_H
#define NARROWS_FX_H

#include "nr_port.h"

/* m * 2^e. The top bit of m is set; zero is m = 0, e = NR_FX_ZERO. */
struct nr_fx {
	nr_u32 m;
	nr_s32 e;
};

#define NR_FX_ZERO (-(1 << 20)) /* below every exponent reached from 64-bit integers */
#define NR_FX_TERMS 8		/* terms of a sum */

NR_INLINE struct nr_fx nr_fx(nr_u64 x)
{
	nr_u32 zeros;

	if (!x)
		return (struct nr_fx){0, NR_FX_ZERO};
	zeros = (nr_u32)NR_CLZ64(x);
	return (struct nr_fx){(nr_u32)(x << zeros >> 32), 32 - (nr_s32)zeros};
}

NR_INLINE struct nr_fx nr_fx_mul(struct nr_fx a, struct nr_fx b)
{
	nr_u64 m = (nr_u64)a.m * b.m;
	nr_u32 shift = 31 + (nr_u32)(m >> 63);

	if (!m)
		return nr_fx(0);
	return (struct nr_fx){(nr_u32)(m >> shift), a.e + b.e + (nr_s32)shift};
}

/* a / b; b is not zero. */
NR_INLINE struct nr_fx nr_fx_div(struct nr_fx a, struct nr_fx b)
{
	nr_u64 m;
	nr_u32 shift;

	if (!a.m || !b.m)
		return nr_fx(0);
	m = ((nr_u64)a.m << 32) / b.m;
	shift = (nr_u32)(m >> 32);
	return (struct nr_fx){(nr_u32)(m >> shift), a.e - b.e - 32 + (nr_s32)shift};
}

/* As a scalar, which is what an NR_NOINLINE function can return. */
NR_INLINE nr_u64 nr_fx_word(struct nr_fx a)
{
	return (nr_u64)a.e << 32 | a.m;
}

NR_INLINE struct nr_fx nr_fx_of(nr_u64 word)
{
	return (struct nr_fx){(nr_u32)word, (nr_s32)(word >> 32)};
}

/* a * 2^n */
NR_INLINE struct nr_fx nr_fx_shift(struct nr_fx a, nr_s32 n)
{
	return (struct nr_fx){a.m, a.m ? a.e + n : NR_FX_ZERO};
}

NR_INLINE int nr_fx_less(struct nr_fx a, struct nr_fx b)
{
	return a.e * (1ll << 32) + a.m < b.e * (1ll << 32) + b.m;
}

/* A term's mantissa on the scale of exponent e, with 24 more bits; 8 of them fit in 59 bits. */
NR_INLINE nr_u64 nr_fx_align(struct nr_fx a, nr_s32 e)
{
	nr_s32 down = e - a.e;

	return down < 56 ? (nr_u64)a.m << 24 >> down : 0;
}

NR_INLINE struct nr_fx nr_fx_add(struct nr_fx a, struct nr_fx b)
{
	nr_s32 e = a.e > b.e ? a.e : b.e;

	return nr_fx_shift(nr_fx(nr_fx_align(a, e) + nr_fx_align(b, e)), e - 24);
}

/* Sum of NR_FX_TERMS terms, in any order: each is aligned to the largest, the rest cut off. */
NR_INLINE struct nr_fx nr_fx_sum(const struct nr_fx *term)
{
	nr_s32 e = NR_FX_ZERO;
	nr_u64 sum = 0;

	for (nr_u32 i = 0; i < NR_FX_TERMS; i++)
		if (term[i].e > e)
			e = term[i].e;
	for (nr_u32 i = 0; i < NR_FX_TERMS; i++)
		sum += nr_fx_align(term[i], e);
	return nr_fx_shift(nr_fx(sum), e - 24);
}

/* floor(a * 2^bits), at most 2^62. */
NR_INLINE nr_u64 nr_fx_fixed(struct nr_fx a, nr_s32 bits)
{
	nr_s32 e = a.e + bits;

	if (e > 30)
		return 1ull << 62;
	if (e >= 0)
		return (nr_u64)a.m << e;
	return e > -32 ? a.m >> -e : 0;
}

/*
 * Cube root, by Newton's method from the exponent alone: a = f * 2^(3q) with f in [1/2, 4), first
 * guess 5/4 * 2^q, at most 58 % off; six steps bring that below 2^-30. q = floor((e + 32) / 3),
 * as the mantissa is below 2^32; unsigned, as BPF has no signed division. The literals are
 * 5/4 = 5 * 2^29 * 2^-31 and 1/3 = 0xaaaaaaaa.aa.. * 2^-33, rounded down.
 */
NR_INLINE struct nr_fx nr_fx_cbrt(struct nr_fx a)
{
	nr_s32 q = (nr_s32)((nr_u32)(a.e + 32 + 3 * 1024) / 3) - 1024;
	struct nr_fx x = {5u << 29, q - 31};
	struct nr_fx third = {0xaaaaaaaau, -33};

	if (!a.m)
		return a;
	for (nr_u32 i = 0; i < 6; i++) {
		struct nr_fx step = nr_fx_div(a, nr_fx_mul(x, x));

		x = nr_fx_mul(nr_fx_add(nr_fx_shift(x, 1), step), third);
	}
	return x;
}

#endif
