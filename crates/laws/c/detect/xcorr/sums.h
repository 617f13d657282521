/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sums that forget: of values above a reference, of their squares, and their number. A variance is
 * (sum(x^2) n - sum(x)^2) / n^2.
 *
 * The reference follows the mean, as what rounding does to a sum of squares grows with the distance
 * from it.
 */
#ifndef NARROWS_XCORR_SUMS_H
#define NARROWS_XCORR_SUMS_H

#include "state.h"

#define NR_XCORR_FRACTION 10 /* bits */
#define NR_XCORR_ONE (1u << NR_XCORR_FRACTION)
#define NR_XCORR_SPAN (1 << 12) /* values lie within this of their reference */
/* How far a reference moves towards the mean, and from what distance on. */
#define NR_XCORR_STEP_FAR 1024
#define NR_XCORR_STEP 64
/* Memories: an interval's part of the sums, 2^-n. Steps need more than the fast one has. */
#define NR_XCORR_FAST 2u
#define NR_XCORR_FAST_STEPS 4u
#define NR_XCORR_SLOW 6u

NR_INLINE nr_s32 nr_xcorr_within(nr_s32 x)
{
	if (x > NR_XCORR_SPAN)
		return NR_XCORR_SPAN;
	return x < -NR_XCORR_SPAN ? -NR_XCORR_SPAN : x;
}

/* What x within the span adds to a sum of values, and to one of squares. */
NR_INLINE nr_s32 nr_xcorr_one(nr_s32 x)
{
	return x * (nr_s32)NR_XCORR_ONE;
}

NR_INLINE nr_u64 nr_xcorr_square(nr_s32 x)
{
	return (nr_u64)(nr_u32)(x * x) << NR_XCORR_FRACTION;
}

/* sum(x^2) n - sum(x)^2; 0 if rounding made it negative. */
NR_INLINE nr_u64 nr_xcorr_spread(nr_u64 xx, nr_s32 x, nr_u32 n)
{
	nr_u64 all = xx * n, mean = (nr_u64)((nr_s64)x * x);

	return all > mean ? all - mean : 0;
}

/* Multiplied by 1 - 2^-shift, rounded to the nearest, so that rounding does not add up. */
NR_INLINE nr_u64 nr_xcorr_fade(nr_u64 x, nr_u32 shift)
{
	return x - ((x + (1u << (shift - 1))) >> shift);
}

NR_INLINE nr_s32 nr_xcorr_fade_signed(nr_s32 x, nr_u32 shift)
{
	return x - ((x + (1 << (shift - 1))) >> shift);
}

/* How far a reference with the sum x above it is to move; rounding leaves no more of old sums. */
NR_INLINE nr_s32 nr_xcorr_step(nr_s32 x, nr_u32 n)
{
	nr_u64 away = (nr_u64)(x < 0 ? -(nr_s64)x : x);
	nr_s32 step = 0;

	if (n < NR_XCORR_ONE)
		return 0;
	if (away > (nr_u64)n * NR_XCORR_STEP)
		step = NR_XCORR_STEP;
	if (away > (nr_u64)n * NR_XCORR_STEP_FAR)
		step = NR_XCORR_STEP_FAR;
	return x < 0 ? -step : step;
}

/* sum((x - step)^2), from sums of x; 0 if rounding made it negative. */
NR_INLINE nr_u64 nr_xcorr_moved(nr_u64 xx, nr_s32 x, nr_u32 n, nr_s32 step)
{
	nr_s64 moved = (nr_s64)xx + (nr_s64)step * step * n - 2 * (nr_s64)step * x;

	return moved > 0 ? (nr_u64)moved : 0;
}

#endif
