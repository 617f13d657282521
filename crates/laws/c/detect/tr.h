/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arXiv:1812.05816: paths whose delays rise with the same slope share a bottleneck. */
#ifndef NARROWS_DETECT_TR_H
#define NARROWS_DETECT_TR_H

#include "sample.h"
#include "decision.h"

/* What a path tells of an interval: its longest rise. */
struct nr_tr_summary {
	nr_s32 slope;	 /* us of delay per s */
	nr_u32 begin_ms; /* when, wraps */
	nr_u32 end_ms;
	nr_u32 points; /* 0: no rise */
};

/* A path's history. */
struct nr_tr {
	nr_u64 number; /* of the open interval */
	nr_u32 open;   /* samples in it */
	struct nr_tr_summary summary;
};

NR_INLINE void nr_tr_reset(struct nr_tr *h)
{
	h->open = 0;
}

/*
 * Takes a sample in. Returns the stamp of the interval that it closed, which h->summary is of, or 0
 * if it closed none.
 */
NR_INLINE nr_u32 nr_tr_sample(const struct nr_tr_params *p, struct nr_tr *h,
			      const struct nr_sample *s)
{
	nr_u64 number = s->now_us / p->t_us;
	nr_u32 stamp = number != h->number && h->open ? (nr_u32)h->number + 1 : 0;

	if (number != h->number)
		h->open = 0;
	h->number = number;
	h->open += s->heard;
	return stamp;
}

/* Groups the members of `present`; the others are undecided. */
NR_INLINE void nr_tr_group(const struct nr_tr_params *p, const struct nr_tr_summary *of,
			   nr_u64 present, nr_u8 *place)
{
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		place[i] = p->error && of && present >> i & 1 ? NR_CLEAR : NR_UNDECIDED;
}

#endif
