/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups: the components of shared pairs, and what to make of pairs without an answer.
 *
 *   known to share   one group
 *   may share        groups with no pair across them that is known to be separate; as not sure
 *                    means coupled, those that may all be the same are one
 *   undecided        a member without any answer; a group that may be the same as two that are
 *                    separate, while those two are not
 *   too early        no answer, nor time for one, 10 s: not linked
 */
#ifndef NARROWS_XCORR_GROUPS_H
#define NARROWS_XCORR_GROUPS_H

#include "state.h"

#define NR_XCORR_EARLY 42u /* intervals, 10 s, until paths that may share are linked */

#if NR_DETECT_MAX <= 8
/*
 * Bits of d->early: there is no answer for paths i and j, nor has there been time for one. To link
 * those that are apart until it is there costs more than to let those that share be two flows for
 * so long.
 */
NR_NOINLINE int nr_xcorr_set_early(const struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i,
				   nr_u32 j)
{
	const struct nr_xcorr_pair *q;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	if (d->near[i] >> j & 1 || q->known.answer || g->stamp - q->begin >= NR_XCORR_EARLY)
		return 0;
	d->early |= 1ull << (8 * i + j) | 1ull << (8 * j + i);
	return 1;
}

/*
 * Sets d->known and d->early; near[i] are the paths known to share with i, apart[i] those that are
 * separate by their own answer: others may link the two, but none is cut for the other.
 */
NR_INLINE void nr_xcorr_couple(const struct nr_xcorr_pairs *g, struct nr_scratch *d)
{
	d->known = d->early = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->known |= (d->near[i] & ~g->apart[i] & 0xff) << (8 * i);
	for (nr_u32 i = 1; i < NR_DETECT_MAX; i++)
		for (nr_u32 j = 0; j < i; j++)
			nr_xcorr_set_early(g, d, i, j);
}
#endif

/* Are the losses of one of members i and j random? What their delays have in common is no queue. */
NR_INLINE int nr_xcorr_lossy(const struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
#if NR_DETECT_MAX <= 8
	return (d->lossy >> i | d->lossy >> j) & 1;
#else
	return 0;
#endif
}

/* Notes what is known of members i and j: bits of near[], and of apart[]. */
NR_NOINLINE int nr_xcorr_note(struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	nr_u32 answer;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	if (i == j || !(g->known >> i & g->known >> j & 1))
		return 0;
	answer = g->pair[nr_xcorr_number(i, j)].known.answer;
	if (answer == NR_SHARED && !nr_xcorr_lossy(d, i, j))
		d->near[i] |= 1ull << j;
	if (answer == NR_SEPARATE)
		g->apart[i] |= 1ull << j;
	return 1;
}

/* Adds to apart[i] what the others of i's group, near[i], are known to be separate from. */
NR_NOINLINE int nr_xcorr_spread_apart(struct nr_xcorr_pairs *g, const struct nr_scratch *d,
				      nr_u32 i)
{
	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		g->apart[i] |= g->apart[k] & (0 - (d->near[i] >> k & 1));
	return 1;
}

/* among[i]: i's group, and the members with an answer, d->of, of groups that may be the same. */
NR_NOINLINE int nr_xcorr_set_among(struct nr_xcorr_pairs *g, const struct nr_scratch *d, nr_u32 i)
{
	nr_u64 among = d ? d->of : 0;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		if (g->apart[i] & d->near[k])
			among &= ~(1ull << k);
	g->among[i] = among | d->near[i] | 1ull << i;
	return 1;
}

/* May member i be of two groups that are known to be separate, or of any? Then it has no place. */
NR_NOINLINE int nr_xcorr_settle(const struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i)
{
	nr_u64 all, doubt = 0;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	all = g->among[i];
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		doubt |= all & ~g->among[k] & (0 - (all >> k & 1));
	if (doubt)
		d->of &= ~(1ull << i);
	return 1;
}

/*
 * Groups the members by what is known of their pairs.
 *
 * Members without any answer are undecided: they may share with all. Groups of shared pairs may be
 * the same while no pair across them is known to be separate: those that may all be the same are
 * one, as not sure means coupled. A group that may be the same as two that are separate is
 * undecided; those two are not.
 */
NR_INLINE void nr_xcorr_group(struct nr_xcorr_pairs *g, struct nr_scratch *d)
{
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->near[i] = 0;
		g->apart[i] = 0;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++)
			nr_xcorr_note(g, d, i, j);
	}
	d->of = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->of |= (nr_u64)((d->near[i] | g->apart[i]) != 0) << i;
		d->near[i] |= 1ull << i;
	}
	nr_components(d);
#if NR_DETECT_MAX <= 8
	nr_xcorr_couple(g, d);
#endif
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_spread_apart(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_set_among(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_settle(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->near[i] = g->among[i] & (d->of | 1ull << i);
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!(d->of >> i & 1))
			d->place[i] = NR_UNDECIDED;
}

#endif
