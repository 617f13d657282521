/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* C-MPBBR: paths whose bottlenecks have the same bandwidth, cycle after cycle, share one. */
#ifndef NARROWS_DETECT_BTLBW_H
#define NARROWS_DETECT_BTLBW_H

#include "sample.h"
#include "decision.h"

/* What a path tells of an interval. */
struct nr_btlbw_summary {
	nr_u32 bw; /* kB/s */
};

/* A path's history. */
struct nr_btlbw {
	nr_u64 number; /* of the open interval */
	nr_u32 open;   /* samples in it */
	struct nr_btlbw_summary summary;
};

NR_INLINE void nr_btlbw_reset(struct nr_btlbw *h)
{
	h->open = 0;
}

/*
 * Takes a sample in. Returns the stamp of the interval that it closed, which h->summary is of, or 0
 * if it closed none.
 */
NR_INLINE nr_u32 nr_btlbw_sample(const struct nr_btlbw_params *p, struct nr_btlbw *h,
				 const struct nr_sample *s)
{
	nr_u64 number = s->now_us / p->t_us;
	nr_u32 stamp = number != h->number && h->open ? (nr_u32)h->number + 1 : 0;

	if (number != h->number)
		h->open = 0;
	h->number = number;
	h->open += !!s->bw;
	h->summary.bw = (nr_u32)(s->bw / 1000);
	return stamp;
}

/* Groups the members of `present`; the others are undecided. */
NR_INLINE void nr_btlbw_group(const struct nr_btlbw_params *p, const struct nr_btlbw_summary *of,
			      nr_u64 present, nr_u8 *place)
{
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		place[i] = p->error && of && present >> i & 1 ? NR_CLEAR : NR_UNDECIDED;
}

#endif
