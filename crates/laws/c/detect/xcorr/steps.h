/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does noise explain how two paths differ? Queues may be in step without being one: two sawteeth of
 * one period that began together. And one queue may be so short, or so slow, that what bins miss of
 * it is most of what they see. N is what bins can miss of one queue, and two queues differ by more.
 *
 *   r  = (D / 2) / ((N(a) + N(b)) / 3), D the mean square of what a - b changes from a value to the
 *        next, at the best lag
 *
 *   r < 1     noise explains it: the fast sums do not say separate, and the slow ones only if L is
 *             even five deviations less than 0.5
 *   r >= 3/4  it explains too little: not shared
 *   r >= 1    the pair is refuted: not shared any more
 *
 * Smooth queues, n_eff < 0.3 n in the slow sums, are lines for seconds, so that the fast sums know
 * nothing of noise; and many packets pass in the time in which they change, so that bins miss less:
 * explained if r < 1/2, refuted if r >= 3/4, and shared only once it is known that noise explains.
 *
 * A radio link's noise may last for longer than N knows. What is left of smooth queues, a - b, is
 * noise, too, if D >= var(a - b): noise that is independent from value to value has twice that, and
 * what two smooth queues differ by goes on for longer. But where one of them drops a little before
 * the other, all of it is in a few steps: each counts as at most 8 times what N explains.
 */
#ifndef NARROWS_XCORR_STEPS_H
#define NARROWS_XCORR_STEPS_H

#include "pairs.h"

/*
 * Steps from which on they say whether noise explains them, in the slow sums and in the fast; and
 * from which on they say that it does.
 */
#define NR_XCORR_MANY 64u
#define NR_XCORR_MANY_FAST 16u
#define NR_XCORR_SOME 6u
#define NR_XCORR_STEPS_MAX 1024u /* more of an interval, in what noise explains, counts as that */
#define NR_XCORR_BOUND 8u	 /* and of each step, where all of a - b may be noise */

/* Adds what a - b at the best lag of the fast or slow sums changed in the last interval. */
NR_NOINLINE int nr_xcorr_add_steps(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	nr_u32 lag = NR_XCORR_LAG_MAX, last, above, count = 0;
	struct nr_xcorr_steps *w;
	struct nr_xcorr_pair *q;
	nr_u64 squares = 0, bounded = 0, noise, one;

	if (!g)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	w = slow ? &q->slow.steps : &q->fast.steps;
	if (g->best_n)
		lag = g->best_lag;
	if (lag + 1 < q->lag[slow & 1] || lag > q->lag[slow & 1] + 1u)
		w->squares = w->count = 0;
	q->lag[slow & 1] = (nr_u8)lag;
	/* 2 / 3 (3 / 256)^2 is 6 / 2^16, as a value of a pair is 256 / 3 us. */
	noise = (g->member[i].noise + g->member[j].noise) * 6 >> (16 - NR_XCORR_FRACTION);
	last = nr_xcorr_difference(g, i, j, 0u - NR_XCORR_THREE, lag);
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE) {
		above = nr_xcorr_difference(g, i, j, n, lag);
		if (!above)
			continue;
		if (last) {
			one = nr_xcorr_square(nr_xcorr_within((nr_s32)(above - last)));
			squares += one;
			bounded +=
			    one / NR_XCORR_BOUND > noise ? NR_XCORR_BOUND * (noise + 1) : one;
			count += NR_XCORR_ONE;
		}
		last = above;
	}
	if (slow)
		q->bounded += (nr_u32)(bounded >> NR_XCORR_FRACTION);
	squares = (squares << NR_XCORR_FRACTION) / (noise + 1);
	if (squares > NR_XCORR_STEPS_MAX * NR_XCORR_ONE)
		squares = NR_XCORR_STEPS_MAX * NR_XCORR_ONE;
	w->squares += (nr_u32)squares;
	w->all_squares += (nr_u32)squares;
	w->count += count;
	w->all += count;
	return 1;
}

/* Are the slow steps of a - b, bounded, as large as its variance? Those of noise are twice that. */
NR_INLINE int nr_xcorr_is_noise(const struct nr_xcorr_pairs *g, const struct nr_xcorr_pair *q)
{
	struct nr_fx steps = nr_fx_shift(nr_fx(q->bounded), NR_XCORR_FRACTION);

	steps = nr_fx_mul(steps, nr_fx((nr_u64)g->best_n * g->best_n));
	return !nr_fx_less(steps, nr_fx_mul(nr_fx(g->best), nr_fx(q->slow.steps.all)));
}

/*
 * Then: does noise explain how they differ? Bins miss of one queue what it changes within them, so
 * that half of what a - b changes from one value to the next, squared, is less than a third of what
 * delays of either path change in 4 ms or somewhat more, squared, both together. Two queues differ
 * by more, also sawteeth of one period that began together. The steps at the lag that is the best
 * tell, if there are many of them; else those at all lags, as where noise is large the best one is
 * now this, now that. Few tell only that it explains.
 *
 * What the fast sums found holds when the slow ones are asked, which may still be at what was
 * before, and may find the other besides: then they are neither shared nor, lightly, separate.
 * Smooth queues are lines for seconds, of which the fast sums know nothing; and as many packets
 * pass in the time in which they change, their bins miss less.
 */
NR_NOINLINE int nr_xcorr_set_noise(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_steps *of;
	const struct nr_xcorr_pair *q;
	nr_u32 squares, count, least, smooth;

	if (!g || g->found || !g->right.m)
		return 0;
	smooth = g->queues != NR_XCORR_ROUGH;
	if (smooth && !slow)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	of = slow ? &q->slow.steps : &q->fast.steps;
	least = (slow ? NR_XCORR_MANY : NR_XCORR_MANY_FAST) * NR_XCORR_ONE;
	squares = of->squares;
	count = of->count;
	if (count < least) {
		squares = of->all_squares;
		count = of->all;
	}
	if (count < NR_XCORR_SOME * NR_XCORR_ONE)
		return 0;
	if (smooth && of->all >= least && nr_xcorr_is_noise(g, q)) {
		g->noise |= NR_XCORR_EXPLAINS;
		g->queues = NR_XCORR_SMOOTH;
		return 1;
	}
	if (squares * (smooth ? 2 : 1) < count)
		g->noise |= NR_XCORR_EXPLAINS;
	if (count >= least && squares * 4 >= count * 3)
		g->noise |= NR_XCORR_TOO_LITTLE;
	if (count >= least && squares * 4 >= count * (smooth ? 3 : 4))
		g->noise |= NR_XCORR_REFUTES;
	if (smooth && count >= least && g->noise & NR_XCORR_EXPLAINS)
		g->queues = NR_XCORR_SMOOTH;
	return 1;
}

#endif
