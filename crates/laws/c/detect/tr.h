/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TR, delay trend line regression: a queue that fills lengthens the round trip of every path
 * through it by the same amount per second, whatever the path's own round trip.
 *
 * Source: arXiv:1812.05816, section 4.3.
 *
 *   each acknowledgement:   s = alpha * delay + (1 - alpha) * s
 *   max filter:             samples that are not below the one before them, in runs
 *   merge of neighbours:    last(s of g) < mean(s of g + 1) and less than gap between them in time
 *   each period:            regression line of the merged group with the most samples
 *   two paths share:        |k1 - k2| <= eps * max(k1, k2), and the groups' times overlap or are
 *                           within tau
 *   more than two paths:    connected components of such pairs
 *
 * No samples are stored, only the sums of the regression for a run and for a merged group; sums of
 * neighbours are added, and depend on earlier samples alone.
 *
 * Units: times in us since the period began, in the sums in 64 us; delays above the period's first
 * one, smoothed in 2^-20 us, in the sums in 1/8 us; slopes in us per second.
 * Valid: periods to 16 s, 2^19 samples in one (later ones are left out), delays within 4 s of
 * the period's first.
 * Departures: the gap is a time (Algorithm 2 subtracts delays), and the last group counts
 * (Algorithm 2 stops before it). Times are centred once (equation 17 subtracts the first one in
 * addition to the mean, which flattens late groups). Slopes up to slope_min match nothing: equation
 * 18 does not define whether two flat lines match; the value is another program's, see below. Each
 * period is smoothed separately, so that an idle path starts without old values. The paper has two
 * paths; decision.h keeps a pair coupled after a match.
 *
 * The paper's equation 14 takes the slope as n / C, which is off by the round-trip time in seconds
 * (equation 12: n / (C r)). This code does not use it, but the slope falls as r grows, so lines
 * through different parts of one rise differ; and two queues with the same n / (C r) that fill at
 * the same time are taken for one.
 *
 * The author's ns-3 program, from which slope_min is, has another rule: one-way delays at the
 * receiver, their harmonic mean over 20 samples, the line of each 100 ms whole; a run of such
 * windows in which both delays rise, not counting those up to slope_min, is shared from three
 * windows on whose slopes differ by less than 15 %, or from ten on, whatever the slopes. The
 * nearest to it here is t_s = 0.1, settle_ms = 50, eps = 0.15, matches = 3: rises within 100 ms,
 * all that three periods have. Ten windows without a match are left out: they take any two queues
 * that fill at the same time for one.
 */
#ifndef NARROWS_DETECT_TR_H
#define NARROWS_DETECT_TR_H

#include "../detector.h"
#include "../nr_fx.h"

#define NR_TR_TIME_BITS 6		/* low bits of a us dropped in the sums */
#define NR_TR_BITS 20			/* of a us in a smoothed delay */
#define NR_TR_DELAY_MAX ((1 << 22) - 1) /* us from the period's first delay */
#define NR_TR_SAMPLES ((1u << 19) - 1)	/* of a period */
#define NR_TR_POINTS_MIN 3		/* any two points lie on a line */

#define NR_TR_PARAMS(P)                                                                            \
	P(t_us, t_s, SECONDS, 5, 0.1, 16, "length of a period, s",                                 \
	  "arXiv:1812.05816, section 4.3")                                                         \
	P(settle_us, settle_ms, MS, 500, 0, 1000, "wait after a period before its decision, ms",   \
	  "our choice: paths publish at their next sample")                                        \
	P(alpha, alpha, RATIO, 0.9, 0.01, 1, "weight of a new delay in the smoothed delay",        \
	  "arXiv:1812.05816, section 4.3")                                                         \
	P(gap_us, gap_ms, MS, 50, 0, 5000,                                                         \
	  "maximum gap between groups of rising delay to merge, delta, ms",                        \
	  "arXiv:1812.05816, section 4.3")                                                         \
	P(eps, eps, RATIO, 0.2, 0, 1,                                                              \
	  "maximum difference of matching slopes, relative to the larger",                         \
	  "arXiv:1812.05816, section 4.3")                                                         \
	P(tau_us, tau_s, SECONDS, 1, 0, 16,                                                        \
	  "maximum gap between the groups of two paths to compare, s",                             \
	  "arXiv:1812.05816, section 4.3")                                                         \
	P(slope_min, slope_min, MS_PER_S, 10, 0, 1000, "slope up to which nothing matches, ms/s",  \
	  "the author's ns-3 program")                                                             \
	P(matches, matches, COUNT, 1, 1, 32,                                                       \
	  "of so many periods all in which two paths have a delay must match",                     \
	  "arXiv:1812.05816, section 5.2")                                                         \
	P(hold_us, hold_s, SECONDS, 100, 1, 512,                                                   \
	  "time that paths stay coupled after the last match, s", "arXiv:1812.05816, section 5.2") \
	P(undecided, undecided, COUPLE, NR_COUPLE_NONE, 0, 2,                                      \
	  "paths that an undecided path is coupled with", "arXiv:1812.05816, section 5.2")
NR_PARAMS(tr, NR_TR_PARAMS);

/* What a path publishes for a period: the regression line of its longest group. */
struct nr_tr_summary {
	nr_u32 slope;	/* us of delay per second; 0: none, or it does not rise */
	nr_u32 from_us; /* of the group, since the period began */
	nr_u32 to_us;
	nr_u32 points;
};

/* Samples that rise, and their sums. x < 2^18 and y < 2^26, so none overflows. */
struct nr_tr_group {
	nr_u64 x, y, xx, xy;
	nr_u32 points;
	nr_u32 from_us;
	nr_u32 to_us;
	nr_u32 reserved;
};

/* A path's history. */
struct nr_tr {
	nr_u64 number;	   /* of the open period */
	nr_u32 open;	   /* samples in it */
	nr_s32 first_us;   /* its first delay, the origin of the others */
	nr_s64 smooth;	   /* s, 2^-20 us */
	nr_s64 run_smooth; /* sum of s over the run */
	nr_s64 last;	   /* s at the end of the merged group */
	struct nr_tr_group run;
	struct nr_tr_group merged;
	struct nr_tr_group longest;
	struct nr_tr_summary summary;
};

NR_INLINE void nr_tr_reset(void *state)
{
	struct nr_tr *h = state;

	h->open = 0;
}

/* sum(x y) - sum(x) sum(y) / n without a product of 128 bits; down to 0 where it is below. */
NR_INLINE nr_u64 nr_tr_centred(nr_u64 xy, nr_u64 x, nr_u64 y, nr_u32 n)
{
	nr_u64 mx = x / n, rx = x % n, my = y / n, ry = y % n;
	nr_u64 product = mx * y + rx * my + rx * ry / n;

	return xy > product ? xy - product : 0;
}

/* The slope of the regression line, us per second. */
NR_NOINLINE nr_u32 nr_tr_slope(const struct nr_tr_group *g)
{
	struct nr_fx slope;
	nr_u64 xx, us_s;

	if (!g || g->points < NR_TR_POINTS_MIN)
		return 0;
	xx = nr_tr_centred(g->xx, g->x, g->x, g->points);
	if (!xx)
		return 0;
	/* 1/8 us per 64 us is 1e6/512 us per second. */
	slope = nr_fx_div(nr_fx(nr_tr_centred(g->xy, g->x, g->y, g->points)), nr_fx(xx));
	us_s = nr_fx_fixed(nr_fx_mul(slope, nr_fx(1000000)), -9);
	return us_s < 0xffffffffu ? (nr_u32)us_s : 0xffffffffu;
}

NR_INLINE void nr_tr_add(struct nr_tr_group *g, nr_u32 at_us, nr_s64 smooth)
{
	nr_u64 x = at_us >> NR_TR_TIME_BITS;
	nr_u64 y = (nr_u64)((smooth >> (NR_TR_BITS - 3)) + 8 * (NR_TR_DELAY_MAX + 1ll));

	if (!g->points)
		g->from_us = at_us;
	g->to_us = at_us;
	g->points++;
	g->x += x;
	g->y += y;
	g->xx += x * x;
	g->xy += x * y;
}

/* The run is over: it extends the merged group, or starts the next one. */
NR_INLINE void nr_tr_merge(const struct nr_tr_params *p, struct nr_tr *h)
{
	struct nr_tr_group *run = &h->run, *merged = &h->merged;

	if (!run->points)
		return;
	if (merged->points && run->from_us - merged->to_us < p->gap_us &&
	    h->last * run->points < h->run_smooth) {
		merged->x += run->x;
		merged->y += run->y;
		merged->xx += run->xx;
		merged->xy += run->xy;
		merged->points += run->points;
		merged->to_us = run->to_us;
	} else {
		if (merged->points > h->longest.points)
			h->longest = *merged;
		*merged = *run;
	}
	h->last = h->smooth;
	h->run_smooth = 0;
	*run = (struct nr_tr_group){0};
}

/* The period is over: its summary. */
NR_NOINLINE nr_u32 nr_tr_close(const struct nr_tr_params *p, struct nr_tr *h)
{
	const struct nr_tr_group *longest;

	if (!p || !h)
		return 0;
	nr_tr_merge(p, h);
	longest = h->merged.points > h->longest.points ? &h->merged : &h->longest;
	h->summary = (struct nr_tr_summary){
	    .slope = nr_tr_slope(longest),
	    .from_us = longest->from_us,
	    .to_us = longest->to_us,
	    .points = longest->points,
	};
	return (nr_u32)h->number + 1;
}

/* The first sample of a period, which is in no run. */
NR_INLINE void nr_tr_begin(struct nr_tr *h, nr_s32 delay_us)
{
	h->first_us = delay_us;
	h->smooth = 0;
	h->run_smooth = 0;
	h->run = (struct nr_tr_group){0};
	h->merged = (struct nr_tr_group){0};
	h->longest = (struct nr_tr_group){0};
}

/* A delay, `at_us` into the period. */
NR_INLINE void nr_tr_delay(const struct nr_tr_params *p, struct nr_tr *h, nr_u32 at_us,
			   nr_s32 delay_us)
{
	nr_s64 above = (nr_s64)delay_us - h->first_us, before = h->smooth;

	if (above > NR_TR_DELAY_MAX)
		above = NR_TR_DELAY_MAX;
	if (above < -NR_TR_DELAY_MAX)
		above = -NR_TR_DELAY_MAX;
	above = above * (1 << NR_TR_BITS) - before;
	/* s rises or falls towards the delay, without reaching it. */
	if (above < 0) {
		nr_tr_merge(p, h);
		h->smooth = before - (nr_s64)((nr_u64)-above * p->alpha >> 16);
	} else {
		h->smooth = before + (nr_s64)((nr_u64)above * p->alpha >> 16);
		h->run_smooth += h->smooth;
		nr_tr_add(&h->run, at_us, h->smooth);
	}
}

/*
 * Takes a sample. Returns the stamp of the period that it closed, described by h->summary, or 0.
 */
NR_INLINE nr_u32 nr_tr_sample(const void *own, void *state, const struct nr_sample *s)
{
	const struct nr_tr_params *p = own;
	struct nr_tr *h = state;
	nr_u64 number = nr_interval(h->number, p->t_us, s->now_us), start = number * p->t_us;
	nr_u32 stamp = 0;

	if (number != h->number) {
		if (h->open)
			stamp = nr_tr_close(p, h);
		h->open = 0;
		h->number = number;
	}
	if (!s->sampled || h->open >= NR_TR_SAMPLES)
		return stamp;
	if (!h->open)
		nr_tr_begin(h, s->delay_us);
	else
		nr_tr_delay(p, h, s->now_us > start ? (nr_u32)(s->now_us - start) : 0, s->delay_us);
	h->open++;
	return stamp;
}

/* Do the lines of two paths match? Not if not `both` are known. */
NR_NOINLINE nr_u32 nr_tr_match(const struct nr_tr_params *p, const struct nr_tr_summary *a,
			       const struct nr_tr_summary *b, nr_u32 both)
{
	nr_u32 more, less, from, to;

	if (!p || !a || !b || !both)
		return 0;
	more = a->slope > b->slope ? a->slope : b->slope;
	less = a->slope > b->slope ? b->slope : a->slope;
	from = a->from_us > b->from_us ? a->from_us : b->from_us;
	to = a->to_us > b->to_us ? b->to_us : a->to_us;
	return less > p->slope_min && (nr_u64)(more - less) << 16 <= (nr_u64)p->eps * more &&
	       from <= (nr_u64)to + p->tau_us;
}

/*
 * Groups the members of d->present; the others are undecided. A member without a match is its own
 * group, as the paper has no test of congestion.
 */
NR_INLINE void nr_tr_place(const void *own, const void *summaries, void *pairs,
			   struct nr_scratch *d)
{
	const struct nr_tr_summary *of = summaries;
	const struct nr_tr_params *p = own;

	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->near[i] = 0;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++) {
			nr_u32 both;

			NR_FORGET(); /* else BPF's small stack gets 64 of them */
			both = d->present >> i & d->present >> j & 1;
			d->near[i] |= (nr_u64)(nr_tr_match(p, &of[i], &of[j], both) & 1) << j;
		}
	}
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!(d->present >> i & 1))
			d->place[i] = NR_UNDECIDED;
}

/* A match, or all that so many periods may have, couples for hold_us; none waits longer than a
 * period. */
NR_INLINE struct nr_pace nr_tr_pace(const void *own, const struct nr_decision_params *decision)
{
	const struct nr_tr_params *p = own;

	nr_u32 settle_us = p->settle_us < p->t_us ? p->settle_us : p->t_us;

	return (struct nr_pace){p->t_us, settle_us, p->matches, p->matches, 1, p->hold_us};
}

/* TR couples only matching paths. */
NR_INLINE struct nr_decision_params nr_tr_couples(const void *own,
						  const struct nr_decision_params *decision)
{
	const struct nr_tr_params *p = own;
	struct nr_decision_params couples = *decision;

	couples.undecided = p->undecided;
	couples.grouped = NR_COUPLE_NONE;
	return couples;
}

NR_INLINE nr_u64 nr_tr_warm_up(const void *own)
{
	const struct nr_tr_params *p = own;

	return (nr_u64)p->t_us + p->settle_us;
}

NR_DETECTOR(tr) = {
    .name = "tr",
    .code = "tr",
    .about = "groups paths whose delays rise at the same time with the same slope",
    .source = "arXiv:1812.05816",
    NR_TAKES(tr),
    .measures = NR_BY_DELAY,
    NR_KEEPS(tr),
    .reset = nr_tr_reset,
    .sample = nr_tr_sample,
    .group = nr_tr_place,
    .pace = nr_tr_pace,
    .couples = nr_tr_couples,
    .warm_up_us = nr_tr_warm_up,
};

#endif
