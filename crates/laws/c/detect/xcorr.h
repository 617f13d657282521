/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delays of two paths at the same moment: packets that pass one FIFO queue close together wait
 * about equally long there; two queues, however alike, are full at different moments.
 *
 * Source: this project; docs/xcorr.md has all that it takes to write another, and what was
 * measured.
 *
 *     a path                                        another path
 *        | delays                                      |
 *   counts.h   not those that its own sending explains |
 *        |                                             |
 *   bins.h     means over 20 ms; gaps are filled       |        an interval of 240 ms
 *   noise.h    what delays change in 4 ms, N           |
 *        |                                             |
 *        +--------------------> <----------------------+
 *   pairs.h    (a, b), means over 60 ms at one moment, and at lags from -100 to 100 ms;
 *        |     sums that forget: the fast ones a quarter, the slow ones 1/64 an interval
 *   answer.h   how alike, L; how many values are independent, n_eff; by the fast sums, or else
 *        |     by the slow ones: shared, separate, or nothing
 *   clocks.h   less what clocks that differ may have added to L
 *   steps.h    unless noise explains how they differ, or too little of it
 *        |
 *   groups.h   components of shared pairs; what is not known may be shared
 *
 *   The answer of a pair that is in force:
 *
 *                    L >= max(0.4, theta(n_eff))
 *       +-- unsure ------------------------------> shared --+
 *       |      ^                                   |  ^ |   |
 *       |      +-------- refuted by noise ---------+  | |   |
 *       |                                             | |   | L < 0.5,
 *       | L < 0.5                L >= max(0.4, theta) | |   | two intervals in a row
 *       |                                             | v   |
 *       +-----------------------------------------> separate
 *
 *   and all of it is forgotten when a path leaves, or is silent for 15 s.
 *
 * The tests compare the answers with the same in floating point (tests/reference/xcorr.rs).
 */
#ifndef NARROWS_DETECT_XCORR_H
#define NARROWS_DETECT_XCORR_H

#include "xcorr/bins.h"
#include "xcorr/answer.h"
#include "xcorr/groups.h"

/* The new bins of member i. */
NR_INLINE nr_u32 nr_xcorr_take_one(const void *summaries, void *pairs, const struct nr_scratch *d,
				   nr_u32 i)
{
	const struct nr_xcorr_summary *of = summaries;
	struct nr_xcorr_pairs *g = pairs;

	if (!i) {
		g->stamp = d->stamp;
		g->anew = g->moved = 0;
	}
	return (nr_u32)nr_xcorr_take(g, &of[i % NR_DETECT_MAX], d, i);
}

NR_INLINE nr_u32 nr_xcorr_compare_pair(const void *own, void *pairs, nr_u32 i, nr_u32 j)
{
	return (nr_u32)nr_xcorr_update_pair(own, pairs, i, j);
}

/* The places of all members. */
NR_INLINE void nr_xcorr_place(const void *own, const void *summaries, void *pairs,
			      struct nr_scratch *d)
{
	nr_xcorr_group(pairs, d);
}

/* The newest observation is the decision: the pairs remember. */
NR_INLINE struct nr_pace nr_xcorr_pace(const void *own, const struct nr_decision_params *decision)
{
	return (struct nr_pace){NR_XCORR_T_US, NR_XCORR_T_US, 1, 1, 1, 0};
}

NR_INLINE struct nr_pair nr_xcorr_pair_of(const void *pairs, nr_u32 i, nr_u32 j)
{
	const struct nr_xcorr_pairs *g = pairs;

	return g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)].known;
}

/* Bins are published an interval later, and decided on another one later. */
NR_INLINE nr_u64 nr_xcorr_warm_up(const void *own)
{
	const struct nr_xcorr_params *p = own;

	return (nr_u64)p->start_us + p->settle_us + 4 * NR_XCORR_T_US;
}

NR_DETECTOR(xcorr) = {
    .name = "xcorr",
    .code = "xc",
    .about = "groups paths whose delays rise and fall at the same moments by the same amount",
    .source = "this project",
    NR_TAKES(xcorr),
    .measures = NR_BY_DELAY,
    NR_KEEPS(xcorr),
    .pairs = sizeof(struct nr_xcorr_pairs),
    .reset = nr_xcorr_reset,
    .sample = nr_xcorr_sample,
    .take = nr_xcorr_take_one,
    .compare = nr_xcorr_compare_pair,
    .group = nr_xcorr_place,
    .pace = nr_xcorr_pace,
    .pair = nr_xcorr_pair_of,
    .warm_up_us = nr_xcorr_warm_up,
};

#endif
