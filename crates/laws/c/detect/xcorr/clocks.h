/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clocks that differ make both delays rise or fall along one straight line, which is no queue.
 *
 *   k      age of a value, intervals; x = a + b, at lag 0, in the slow sums
 *   drift  what a line through x explains, C^2 / (2 V) with C = cov(k, x) and V = var k; of one
 *          steeper than 200 ppm, c |C| - c^2 V / 2 with c that slope: a queue may be as slow
 *
 * It is taken off var a + var b before that is compared with 0.04 ms^2, and off the L that is
 * compared with theta.
 */
#ifndef NARROWS_XCORR_CLOCKS_H
#define NARROWS_XCORR_CLOCKS_H

#include "sums.h"

/* Makes the values of the slow sums as old as they are in interval `stamp`, and fades the line's.
 */
NR_INLINE void nr_xcorr_age(struct nr_xcorr_line *w, const struct nr_xcorr_sums *slow, nr_u32 stamp)
{
	nr_u32 more = w->stamp ? stamp - w->stamp : 0;

	if (more > NR_XCORR_NEW)
		more = NR_XCORR_NEW;
	w->stamp = stamp;
	w->kx += more * ((nr_s64)slow->a + slow->b);
	w->kk += 2ull * more * w->k + (nr_u64)more * more * slow->n;
	w->k += more * slow->n;
	w->kx -= (w->kx + (1 << (NR_XCORR_SLOW - 1))) >> NR_XCORR_SLOW;
	w->kk = nr_xcorr_fade(w->kk, NR_XCORR_SLOW);
	w->k = (nr_u32)nr_xcorr_fade(w->k, NR_XCORR_SLOW);
}

/*
 * What clocks that differ by up to 200 ppm may have added to the squares of the slow sums, times
 * their number: what the line through x explains, halved as x is of two, or one of 200 ppm, which
 * is 9/8 an interval in x, if it is steeper.
 */
NR_INLINE nr_u64 nr_xcorr_drift(const struct nr_xcorr_line *w, const struct nr_xcorr_sums *slow)
{
	nr_s64 with = w->kx * slow->n - w->k * ((nr_s64)slow->a + slow->b);
	nr_u64 kk = nr_xcorr_spread(w->kk, (nr_s32)w->k, slow->n);
	nr_u64 kx = with < 0 ? 0 - (nr_u64)with : (nr_u64)with;

	if (kx / 9 >= kk / 8)
		return kx / 8 * 9 - kk / 128 * 81;
	return nr_fx_fixed(nr_fx_div(nr_fx_mul(nr_fx(kx), nr_fx(kx)), nr_fx(kk)), -1);
}

#endif
