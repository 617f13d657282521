/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RFC 8382: paths whose delays have alike summary statistics share a bottleneck. */
#ifndef NARROWS_DETECT_SSC_H
#define NARROWS_DETECT_SSC_H

#include "sample.h"
#include "decision.h"

/* What a path tells of an interval. */
struct nr_ssc_summary {
	nr_s32 skew; /* Q16, -1 to 1 */
	nr_u32 var;  /* us */
	nr_u32 freq; /* Q16 */
	nr_u32 loss; /* Q16 */
	nr_u32 congested;
	nr_u32 trusted;
};

/* A path's history. */
struct nr_ssc {
	nr_u64 number; /* of the open interval */
	nr_u32 closed; /* intervals in the history */
	nr_u32 open;   /* samples in the open interval */
	struct nr_ssc_summary summary;
};

NR_INLINE void nr_ssc_reset(struct nr_ssc *h)
{
	h->closed = 0;
	h->open = 0;
}

/*
 * Takes a sample in. Returns the stamp of the interval that it closed, which h->summary is of, or 0
 * if it closed none.
 */
NR_INLINE nr_u32 nr_ssc_sample(const struct nr_ssc_params *p, struct nr_ssc *h,
			       const struct nr_sample *s)
{
	nr_u64 number = s->now_us / p->t_us;
	nr_u32 stamp = 0;

	if (number != h->number && h->open) {
		stamp = (nr_u32)h->number + 1;
		h->closed++;
		h->open = 0;
	}
	h->number = number;
	h->open += s->heard;
	return stamp;
}

/* Groups the members of `present`; the others are undecided. */
NR_INLINE void nr_ssc_group(const struct nr_ssc_params *p, const struct nr_ssc_summary *of,
			    nr_u64 present, nr_u8 *place)
{
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		place[i] = present >> i & of[i].trusted & p->mask_noise ? NR_CLEAR : NR_UNDECIDED;
}

#endif
