/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A coupled law's view of the paths in a mask: which count, and a snapshot of their windows. */
#ifndef NARROWS_FLOWS_H
#define NARROWS_FLOWS_H

#include "narrows.h"
#include "nr_fx.h"

/* A sibling's time may be ahead: clocks of two CPUs, or an event during the reads. */
#define NR_AHEAD_MS 1000u

/* Has `line` had an event within max(NR_IDLE_US, 2 srtt)? */
NR_INLINE int nr_recent(const struct nr_path *line, nr_u32 now_ms)
{
	nr_u32 srtt8 = NR_READ(line->srtt8_us), limit = NR_IDLE_US / 1000;

	if (srtt8 / 4000 > limit)
		limit = srtt8 / 4000;
	return now_ms - NR_READ(line->seen_ms) + NR_AHEAD_MS <= limit + NR_AHEAD_MS;
}

/*
 * Does sibling `line` count in a law's sums? It must be active, have an RTT sample, and a recent
 * event: the window of an idle path is no rate, and must not
 * throttle the others (nor lend them its share).
 */
NR_INLINE int nr_counts(const struct nr_path *line, nr_u32 now_ms)
{
	return NR_READ(line->state) == NR_ACTIVE && NR_READ(line->srtt8_us) &&
	       nr_recent(line, now_ms);
}

/*
 * The paths in `mask` that count, as bits. Path i always counts, and counts alone before its first
 * RTT sample, as no law can weigh it.
 */
__attribute__((pure)) NR_NOINLINE nr_u32 nr_counted(const struct nr_conn *c, nr_u32 i, nr_u32 mask)
{
	nr_u32 set = 1u << (i & 7), now_ms;

	if (!c)
		return set;
	now_ms = NR_READ(c->path[i & 7].seen_ms);
	if (!NR_READ(c->path[i & 7].srtt8_us))
		return set;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		if ((mask >> j & 1) && j != i && nr_counts(&c->path[j], now_ms))
			set |= 1u << j;
	return set;
}

/* The paths in the coupling mask of path i that count: it grows with them. */
NR_INLINE nr_u32 nr_coupled(const struct nr_conn *c, nr_u32 i)
{
	return nr_counted(c, i, nr_mask(c, i));
}

/* Those of them that are known to share its bottleneck: they are cut together. */
NR_INLINE nr_u32 nr_cut_together(const struct nr_conn *c, nr_u32 i)
{
	return nr_counted(c, i, nr_cut_mask(c, i));
}

/* Is there another established path in the mask of path i, carrying data or not? */
NR_NOINLINE int nr_has_sibling(const struct nr_conn *c, nr_u32 i)
{
	nr_u32 mask;

	if (!c)
		return 0;
	mask = nr_mask(c, i);
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 state = NR_READ(c->path[j].state);

		if ((mask >> j & 1) && j != i &&
		    (state == NR_ACTIVE || state == NR_IDLE || state == NR_BACKUP))
			return 1;
	}
	return 0;
}

/*
 * A snapshot of the paths in `set`: every word is read once, so that a law works on one state while
 * siblings change. Slots outside the set are zero, which affects no sum or maximum.
 */
struct nr_flows {
	nr_u32 cwnd[NR_MAX_PATHS];	 /* packets, w */
	nr_u32 srtt8[NR_MAX_PATHS];	 /* 1/8 us, rtt */
	struct nr_fx rate[NR_MAX_PATHS]; /* packets per 1/8 us, x = w / rtt */
	struct nr_fx best;		 /* the largest w / rtt^2 */
};

NR_INLINE struct nr_fx nr_inverse(nr_u32 rtt)
{
	return nr_fx_div(nr_fx(1), nr_fx(rtt));
}

NR_NOINLINE int nr_read_flows(const struct nr_conn *c, nr_u32 set, struct nr_flows *f)
{
	if (!c || !f)
		return 0;
	f->best = nr_fx(0);
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		const struct nr_path *line = &c->path[j];
		struct nr_fx inverse, x;

		f->cwnd[j] = set >> j & 1 ? NR_READ(line->cwnd) : 0;
		f->srtt8[j] = set >> j & 1 ? NR_READ(line->srtt8_us) : 0;
		inverse = nr_inverse(f->srtt8[j]); /* the only division a path costs */
		f->rate[j] = nr_fx_mul(nr_fx(f->cwnd[j]), inverse);
		x = nr_fx_mul(f->rate[j], inverse);
		if (nr_fx_less(f->best, x))
			f->best = x;
	}
	return 1;
}

#endif
