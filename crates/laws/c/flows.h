/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which paths of a mask a law reads. */
#ifndef NARROWS_FLOWS_H
#define NARROWS_FLOWS_H

#include "narrows.h"

/* Clocks of two CPUs, or an event that ran while this one read: a sibling may be "ahead". */
#define NR_AHEAD_MS 1000u

/*
 * Does sibling `line` count in a law's sums? It must be active, measured, and have been heard of
 * within max(NR_IDLE_US, 2 srtt): the window of a path that sends nothing is no rate, and must not
 * throttle the others (nor lend them its share).
 */
NR_INLINE int nr_counts(const struct nr_path *line, nr_u32 now_ms)
{
	nr_u32 srtt8 = NR_READ(line->srtt8_us), limit = NR_IDLE_US / 1000;

	if (NR_READ(line->state) != NR_ACTIVE || !srtt8 || !NR_READ(line->cwnd))
		return 0;
	if (srtt8 / 4000 > limit)
		limit = srtt8 / 4000;
	return now_ms - NR_READ(line->seen_ms) + NR_AHEAD_MS <= limit + NR_AHEAD_MS;
}

/*
 * The paths in the mask of path i that count, as bits. The path at hand always does; before its
 * first RTT sample it is alone, as no law can weigh it.
 */
NR_INLINE nr_u32 nr_coupled(const struct nr_conn *c, nr_u32 i, nr_u32 now_ms)
{
	nr_u32 mask = nr_mask(c, i), set = 1u << (i & 7);

	if (!NR_READ(c->path[i & 7].srtt8_us))
		return set;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		if ((mask >> j & 1) && j != i && nr_counts(&c->path[j], now_ms))
			set |= 1u << j;
	return set;
}

/* Is there another established path in the mask of path i, carrying data or not? */
NR_INLINE int nr_has_sibling(const struct nr_conn *c, nr_u32 i)
{
	nr_u32 mask = nr_mask(c, i);

	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 state = NR_READ(c->path[j].state);

		if ((mask >> j & 1) && j != i &&
		    (state == NR_ACTIVE || state == NR_IDLE || state == NR_BACKUP))
			return 1;
	}
	return 0;
}

#endif
