/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C-MPBBR's rule: paths whose bottlenecks have the same bandwidth over several cycles share one.
 *
 * Source: Mahmud et al., "Coupled Multipath BBR (C-MPBBR)", IEEE Access 8 (2020), section III,
 * Algorithm 1, as printed; the published code differs.
 *
 *   end of each full ProbeBW cycle of a path:  it records its bandwidth
 *   two paths agree in a cycle:                |a - b| <= alpha * min(a, b)
 *   they agree in `cycles` cycles in a row:    they belong together
 *   they disagree in `cycles` in a row:        they do not
 *   otherwise:                                 as before
 *   more than two paths:                       connected components of such pairs
 *
 * The newest cycles of two paths are compared with each other, then the ones before, and so on.
 * The paper takes the difference relative to "this" path's bandwidth, so that 100 agrees with 82
 * but 82 not with 100: here each must be within alpha of the other. A path silent for NR_IDLE_US
 * forgets its cycles, and keeps its group until it has new ones.
 *
 * Input: a model law publishes its bandwidth in nr_path.bw and its number of full ProbeBW cycles in
 * word[0] (NR_CYCLES; a cycle cut short by ProbeRTT or idle time does not count). Other laws
 * publish no bandwidth: nothing is observed, and the masks stay as they were at the joins.
 *
 * Units: bandwidth in 16 bytes/s.
 * Valid: 80 bytes/s to 68 GB/s; above, all bandwidths are one.
 * Departures: symmetric, see above. Two bottlenecks of equal bandwidth are taken for one (the
 * paper's scenario 5), and paths of unequal round trips, which BBR serves unequally, for two.
 */
#ifndef NARROWS_DETECT_BTLBW_H
#define NARROWS_DETECT_BTLBW_H

#include "../detector.h"

#define NR_BTLBW_CYCLES 6 /* the most that `cycles` may ask for */

#define NR_BTLBW_PARAMS(P)                                                                         \
	P(t_us, t_s, SECONDS, 1, 0.1, 100, "interval between comparisons of the newest cycles, s", \
	  "a few cycles of 8 round trips")                                                         \
	P(alpha, alpha, RATIO, 0.2, 0, 1,                                                          \
	  "maximum difference of matching bandwidths, relative to the smaller",                    \
	  "C-MPBBR, Algorithm 1")                                                                  \
	P(cycles, cycles, COUNT, 3, 1, 6,                                                          \
	  "consecutive ProbeBW cycles that join or separate a pair", "C-MPBBR, Algorithm 1")
NR_PARAMS(btlbw, NR_BTLBW_PARAMS);

/* What a path publishes of an interval. */
struct nr_btlbw_summary {
	nr_u32 cycles;		    /* number of recorded cycles, at most NR_BTLBW_CYCLES */
	nr_u32 bw[NR_BTLBW_CYCLES]; /* at their ends, 16 bytes/s, the newest first */
};

/* A path's history. */
struct nr_btlbw {
	nr_u64 number;	/* of the open interval */
	nr_u64 seen_us; /* the last event */
	nr_u32 cycle;	/* the law's count of cycles */
	nr_u32 follows; /* 1: `cycle` is known, so that its next change ends a full cycle */
	struct nr_btlbw_summary summary;
};

NR_INLINE void nr_btlbw_reset(void *state)
{
	struct nr_btlbw *h = state;

	h->follows = 0;
	h->summary.cycles = 0;
}

NR_INLINE void nr_btlbw_note(struct nr_btlbw_summary *of, nr_u64 bw)
{
	for (nr_u32 i = NR_BTLBW_CYCLES - 1; i > 0; i--)
		of->bw[i] = of->bw[i - 1];
	of->bw[0] = bw >> 4 < 0xffffffffu ? (nr_u32)(bw >> 4) : 0xffffffffu;
	if (of->cycles < NR_BTLBW_CYCLES)
		of->cycles++;
}

/*
 * Takes a sample. Returns the stamp of the interval that it closed, described by h->summary, or 0.
 * (After silence the summary is empty: old cycles are no evidence in any interval.)
 */
NR_INLINE nr_u32 nr_btlbw_sample(const void *own, void *state, const struct nr_sample *s)
{
	const struct nr_btlbw_params *p = own;
	struct nr_btlbw *h = state;
	nr_u64 number = nr_interval(h->number, p->t_us, s->now_us);
	nr_u32 stamp = 0;

	if (s->now_us > h->seen_us + NR_IDLE_US)
		nr_btlbw_reset(h);
	h->seen_us = s->now_us;
	if (number != h->number) {
		if (h->follows)
			stamp = (nr_u32)h->number + 1;
		h->number = number;
	}
	if (!s->bw)
		return stamp;
	if (h->follows && s->cycles != h->cycle)
		nr_btlbw_note(&h->summary, s->bw);
	h->follows = 1;
	h->cycle = s->cycles;
	return stamp;
}

/* Is each of two bandwidths within alpha of the other? */
NR_INLINE nr_u32 nr_btlbw_agree(const struct nr_btlbw_params *p, nr_u32 a, nr_u32 b)
{
	nr_u32 more = a > b ? a : b, less = a > b ? b : a;

	return (nr_u64)(more - less) << 16 <= (nr_u64)p->alpha * less;
}

/*
 * Do two paths belong together, that did `before`? Only all of the newest cycles can change that;
 * if not `both` are known, nothing does.
 */
NR_NOINLINE nr_u32 nr_btlbw_match(const struct nr_btlbw_params *p, const struct nr_btlbw_summary *a,
				  const struct nr_btlbw_summary *b, nr_u32 both, nr_u32 before)
{
	nr_u32 agreed = 0, differed = 0;

	if (!p || !a || !b)
		return 0;
	for (nr_u32 i = 0; i < NR_BTLBW_CYCLES; i++) {
		if (i >= p->cycles)
			break;
		if (nr_btlbw_agree(p, a->bw[i], b->bw[i]))
			agreed = 1;
		else
			differed = 1;
	}
	if (!both)
		return before;
	return !differed || (before && agreed);
}

/*
 * Bit 0: both members have their cycles, and are in d->of; bit 1: they had one group. A function,
 * else Linux 6.1's verifier explores which of eight members do and did.
 */
NR_NOINLINE nr_u32 nr_btlbw_know(const struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	if (!d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	return (d->of >> i & d->of >> j & 1) |
	       (nr_u32)(d->place[i] == d->place[j] && d->place[i] < NR_CLEAR) << 1;
}

/*
 * Groups the members of d->present, and those that had a group. On entry d->place has the groups of
 * the last observation: a pair keeps its state unless it agreed, or disagreed, in all cycles. A
 * member without a match is its own group once it has its cycles.
 */
NR_INLINE void nr_btlbw_group(const void *own, const void *summaries, void *pairs,
			      struct nr_scratch *d)
{
	const struct nr_btlbw_summary *of = summaries;
	const struct nr_btlbw_params *p = own;

	d->of = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		NR_FORGET();
		if (d->present >> i & 1 && of[i].cycles >= p->cycles)
			d->of |= 1ull << i;
	}
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->near[i] = 0;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++) {
			nr_u32 known = nr_btlbw_know(d, i, j), match;

			if (i == j)
				continue;
			match = nr_btlbw_match(p, &of[i], &of[j], known & 1, known >> 1 & 1);
			d->near[i] |= (nr_u64)(match & 1) << j;
		}
	}
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->of |= d->near[i];
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!(d->of >> i & 1))
			d->place[i] = NR_UNDECIDED;
}

/* One observation covers several cycles: each is a decision. */
NR_INLINE struct nr_pace nr_btlbw_pace(const void *own, const struct nr_decision_params *decision)
{
	const struct nr_btlbw_params *p = own;

	return (struct nr_pace){p->t_us, p->t_us, 1, 1, 1, 0};
}

NR_INLINE nr_u64 nr_btlbw_warm_up(const void *own)
{
	const struct nr_btlbw_params *p = own;

	return (nr_u64)p->cycles * p->t_us;
}

NR_DETECTOR(btlbw) = {
    .name = "btlbw",
    .code = "bw",
    .about = "groups paths whose bottleneck bandwidths agree over several cycles",
    .source = "C-MPBBR, IEEE Access 2020",
    NR_TAKES(btlbw),
    .measures = NR_BY_BANDWIDTH,
    NR_KEEPS(btlbw),
    .reset = nr_btlbw_reset,
    .sample = nr_btlbw_sample,
    .group = nr_btlbw_group,
    .pace = nr_btlbw_pace,
    .warm_up_us = nr_btlbw_warm_up,
};

#endif
