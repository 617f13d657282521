/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delays of two paths at the same moment: packets that pass one FIFO queue close together wait
 * about equally long there; two queues, however alike, are full at different moments.
 *
 * Source: this project; docs/method/xcorr.md has all that it takes to write another, and what was
 * measured.
 *
 *             path i                  path j
 *               |   delays, time        |
 *               v                       v
 *   counts.h    only those that its own sending does not explain
 *   bins.h      means over 20 ms, gaps are filled
 *   noise.h     N, what delays change in 4 ms: what bins miss
 *               |                       |
 *               +----------+------------+   published each 240 ms
 *                          v
 *   pairs.h     (a, b), means over 60 ms at one moment, at lags from -100 to 100 ms; sums that
 *               forget: 3/4 is left an interval later in the fast ones, 63/64 in the slow ones
 *                          v
 *   answer.h    L, how alike they are, of n_eff independent pairs: shared, separate or nothing, by
 *               the fast sums, or else by the slow ones
 *   clocks.h    but L less what clocks that differ may have added
 *   steps.h     and not separate where noise explains how they differ, not shared where it does not
 *                          v
 *   groups.h    components of shared pairs; what is not known may be shared
 *
 * The answer that is in force, of a pair:
 *
 *             L >= max(0.4, theta)               L < 0.5, twice in a row
 *   unsure ------------------------> shared -----------------------------> separate
 *      | <---- refuted by noise ----        <-----------------------------    ^
 *      |                                         L >= max(0.4, theta)         |
 *      +------------------------------- L < 0.5 ------------------------------+
 *
 * It is forgotten when a path leaves, or is silent for 15 s.
 *
 * The tests compare the answers with the same in floating point (tests/suite/reference/xcorr.rs).
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

	return g->pair[nr_xcorr_number(i, j)].known;
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
