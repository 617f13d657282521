/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pairs: two paths' delays at the same moment, and the sums over them.
 *
 *   (a, b)  means over those of three bins, 60 ms, in which both paths have one, b being l bins
 *           earlier, l = -5..5, as the paths may be unequally long behind the queue
 *   sums    of a, b and their squares at lag 0; of what they change from a value to the next; of
 *           a - b at each lag
 *
 * All sums are kept twice, multiplied by 3/4 (fast) and by 63/64 (slow) in each interval of 240 ms
 * that brings the pair values; others change nothing.
 *
 * Interpolating at every packet, bins of 50 ms and one decision a second would do as well; these
 * forms need no history of packets, no search, and no division by a count of packets in a pair.
 */
#ifndef NARROWS_XCORR_PAIRS_H
#define NARROWS_XCORR_PAIRS_H

#include "clocks.h"
#include "noise.h"

#define NR_XCORR_THREE 3u      /* bins in a pair, 60 ms */
#define NR_XCORR_FAR (1 << 14) /* added to differences, so that 0 is none */

/* A value: the sum of so many of three bins, by 6 / 8 of their number. */
NR_INLINE nr_s32 nr_xcorr_value(nr_u32 sum, nr_u32 count)
{
	/* 6 / count, 0 for none: a nibble each. */
	nr_u32 times = 0x2360u >> (4 * count) & 0xf;

	return (nr_s32)(sum * times >> 3);
}

/* Sets three[n]. */
NR_INLINE void nr_xcorr_set_three(struct nr_xcorr_member *m, nr_u32 n)
{
	nr_u32 x = m->bin[n % NR_XCORR_KEPT], y = m->bin[(n + 1) % NR_XCORR_KEPT];
	nr_u32 z = m->bin[(n + 2) % NR_XCORR_KEPT];
	nr_u32 none = (x == NR_XCORR_NONE) | (y == NR_XCORR_NONE) | (z == NR_XCORR_NONE);

	m->three[n % NR_XCORR_KEPT] = (nr_u16)((nr_u32)nr_xcorr_value(x + y + z, NR_XCORR_THREE) |
					       ((0 - none) & NR_XCORR_NONE));
}

/* Sets newer and near. */
NR_NOINLINE int nr_xcorr_set_near(struct nr_xcorr_member *m)
{
	nr_u32 bits = 0;

	if (!m)
		return 0;
	for (nr_u32 n = 0; n < 2 * NR_XCORR_BINS; n++)
		bits |= (nr_u32)(m->bin[n] != NR_XCORR_NONE) << n;
	m->newer = bits >> NR_XCORR_BINS << NR_XCORR_BINS;
	m->near = bits;
	for (nr_u32 n = 1; n <= NR_XCORR_LAG_MAX; n++)
		m->near |= bits << n;
	return 1;
}

/*
 * Takes the new bins of member i. One that is another path than before, or was silent for long, is
 * forgotten until it has bins again.
 */
NR_NOINLINE int nr_xcorr_take(struct nr_xcorr_pairs *g, const struct nr_xcorr_summary *one,
			      const struct nr_scratch *d, nr_u32 i)
{
	struct nr_xcorr_member *m;
	nr_u32 follows;
	nr_s32 base;
	nr_u64 bit;

	if (!g || !one || !d)
		return 0;
	i %= NR_DETECT_MAX;
	m = &g->member[i];
	bit = 1ull << i;
	g->fresh &= ~bit;
	if (m->since != d->since[i] || (m->stamp && d->stamp - m->stamp > NR_XCORR_NEW)) {
		m->since = d->since[i];
		m->stamp = 0;
		g->known &= ~bit;
		g->anew |= bit;
	}
	if (!(d->present >> i & 1) || (nr_s32)(d->stamp - m->since) <= 0)
		return 0;
	base = one->base & ~NR_XCORR_NOISE;
	if (m->base != base)
		g->moved |= bit;
	follows = m->stamp && m->stamp + 1 == d->stamp && m->base == base;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n++) {
		m->bin[n] = (nr_u16)(m->bin[NR_XCORR_BINS + n] | (follows - 1));
		m->bin[NR_XCORR_BINS + n] = one->bin[n];
	}
	for (nr_u32 n = 0; n < NR_XCORR_KEPT; n++)
		nr_xcorr_set_three(m, n);
	nr_xcorr_set_near(m);
	m->base = base;
	m->noise = nr_xcorr_unpack((nr_u32)(one->base & NR_XCORR_NOISE));
	m->stamp = d->stamp;
	g->fresh |= bit;
	g->known |= bit;
	return 1;
}

/* The three bins `from` to `from` + 2 of both paths; count 0: no bin that both have. */
struct nr_xcorr_values {
	nr_s32 a, b;
	nr_u32 count;
};

NR_INLINE struct nr_xcorr_values nr_xcorr_values(const struct nr_xcorr_member *a, nr_u32 from_a,
						 const struct nr_xcorr_member *b, nr_u32 from_b)
{
	nr_u32 all_a = a->three[from_a % NR_XCORR_KEPT], all_b = b->three[from_b % NR_XCORR_KEPT];
	nr_u32 sum_a = 0, sum_b = 0, count = 0;

	if (all_a != NR_XCORR_NONE && all_b != NR_XCORR_NONE)
		return (struct nr_xcorr_values){(nr_s32)all_a, (nr_s32)all_b, NR_XCORR_THREE};
	for (nr_u32 k = 0; k < NR_XCORR_THREE; k++) {
		nr_u32 x = a->bin[(from_a + k) % NR_XCORR_KEPT];
		nr_u32 y = b->bin[(from_b + k) % NR_XCORR_KEPT];
		nr_u32 both = (x != NR_XCORR_NONE) & (y != NR_XCORR_NONE);

		sum_a += x * both;
		sum_b += y * both;
		count += both;
	}
	return (struct nr_xcorr_values){nr_xcorr_value(sum_a, count), nr_xcorr_value(sum_b, count),
					count};
}

/*
 * What fades of a count is rounded down: with the count rounded to the nearest it would stay 2/1024
 * below 16, and a variance below its own by 1e-4 of the squared distance from the reference, which
 * is far where a delay has stepped.
 */
NR_INLINE nr_u32 nr_xcorr_fade_count(nr_u32 n, nr_u32 shift)
{
	return n - (n >> shift);
}

NR_INLINE void nr_xcorr_fade_sums(struct nr_xcorr_sums *w, nr_u32 shift)
{
	w->aa = nr_xcorr_fade(w->aa, shift);
	w->bb = nr_xcorr_fade(w->bb, shift);
	w->raa = nr_xcorr_fade(w->raa, shift);
	w->rbb = nr_xcorr_fade(w->rbb, shift);
	w->a = nr_xcorr_fade_signed(w->a, shift);
	w->b = nr_xcorr_fade_signed(w->b, shift);
	w->n = nr_xcorr_fade_count(w->n, shift);
	w->m = (nr_u32)nr_xcorr_fade(w->m, shift);
}

NR_INLINE void nr_xcorr_fade_steps(struct nr_xcorr_steps *w, nr_u32 shift)
{
	w->squares = (nr_u32)nr_xcorr_fade(w->squares, shift);
	w->all_squares = (nr_u32)nr_xcorr_fade(w->all_squares, shift);
	w->count = (nr_u32)nr_xcorr_fade(w->count, shift);
	w->all = (nr_u32)nr_xcorr_fade(w->all, shift);
}

NR_INLINE void nr_xcorr_fade_lag(struct nr_xcorr_lag *w, nr_u32 shift)
{
	w->dd = nr_xcorr_fade(w->dd, shift);
	w->d = nr_xcorr_fade_signed(w->d, shift);
	w->n = nr_xcorr_fade_count(w->n, shift);
}

NR_NOINLINE int nr_xcorr_fade_pair(struct nr_xcorr_pair *q, nr_u32 stamp)
{
	if (!q)
		return 0;
	nr_xcorr_age(&q->line, &q->slow, stamp);
	nr_xcorr_fade_sums(&q->fast, NR_XCORR_FAST);
	nr_xcorr_fade_sums(&q->slow, NR_XCORR_SLOW);
	nr_xcorr_fade_steps(&q->fast.steps, NR_XCORR_FAST_STEPS);
	nr_xcorr_fade_steps(&q->slow.steps, NR_XCORR_SLOW);
	q->bounded = (nr_u32)nr_xcorr_fade(q->bounded, NR_XCORR_SLOW);
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++) {
		nr_xcorr_fade_lag(&q->fast.lag[l], NR_XCORR_FAST);
		nr_xcorr_fade_lag(&q->slow.lag[l], NR_XCORR_SLOW);
	}
	return 1;
}

NR_INLINE void nr_xcorr_add_both(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->n += NR_XCORR_ONE;
	w->a += nr_xcorr_one(a);
	w->b += nr_xcorr_one(b);
	w->aa += nr_xcorr_square(a);
	w->bb += nr_xcorr_square(b);
}

NR_INLINE void nr_xcorr_add_changes(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->m += NR_XCORR_ONE;
	w->raa += nr_xcorr_square(a);
	w->rbb += nr_xcorr_square(b);
}

/* Adds bins n to n + 2 of an interval, at lag 0, to the sums of members i and j. */
NR_NOINLINE int nr_xcorr_add(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 n)
{
	struct nr_xcorr_values v;
	struct nr_xcorr_pair *q;
	nr_s32 a, b;

	if (!g)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	v = nr_xcorr_values(&g->member[i], NR_XCORR_BINS + n, &g->member[j], NR_XCORR_BINS + n);
	if (!v.count)
		return 0;
	if (!q->begun) {
		q->a = v.a;
		q->b = v.b;
	} else {
		a = nr_xcorr_within(v.a - q->last_a);
		b = nr_xcorr_within(v.b - q->last_b);
		nr_xcorr_add_changes(&q->fast, a, b);
		nr_xcorr_add_changes(&q->slow, a, b);
	}
	q->begun = 1;
	q->last_a = (nr_u16)v.a;
	q->last_b = (nr_u16)v.b;
	a = nr_xcorr_within(v.a - q->a);
	b = nr_xcorr_within(v.b - q->b);
	nr_xcorr_add_both(&q->fast, a, b);
	nr_xcorr_add_both(&q->slow, a, b);
	return 1;
}

/*
 * a - b of bins n to n + 2 at lag l, above NR_XCORR_FAR; 0: none. j is earlier by l - 5 bins, or i
 * by 5 - l.
 */
NR_NOINLINE nr_u32 nr_xcorr_difference(const struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 n,
				       nr_u32 l)
{
	const struct nr_xcorr_pair *q;
	struct nr_xcorr_values v;
	nr_u32 back_i, back_j;

	if (!g || l >= NR_XCORR_LAGS)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	back_i = l < NR_XCORR_LAG_MAX ? NR_XCORR_LAG_MAX - l : 0;
	back_j = l > NR_XCORR_LAG_MAX ? l - NR_XCORR_LAG_MAX : 0;
	v = nr_xcorr_values(&g->member[i], NR_XCORR_BINS + n - back_i, &g->member[j],
			    NR_XCORR_BINS + n - back_j);
	if (!v.count)
		return 0;
	return (nr_u32)(nr_xcorr_within((v.a - q->a) - (v.b - q->b)) + NR_XCORR_FAR);
}

NR_INLINE void nr_xcorr_add_more(struct nr_xcorr_lag *w, const struct nr_xcorr_lag *more)
{
	w->n += more->n;
	w->d += more->d;
	w->dd += more->dd;
}

/* Adds the last interval of members i and j at lag l. */
NR_NOINLINE int nr_xcorr_add_lag(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 l)
{
	struct nr_xcorr_lag more = {0};
	struct nr_xcorr_pair *q;
	nr_u32 above;
	nr_s32 d;

	if (!g || l >= NR_XCORR_LAGS)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	if (!q->begun)
		return 0;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE) {
		above = nr_xcorr_difference(g, i, j, n, l);
		if (!above)
			continue;
		d = (nr_s32)above - NR_XCORR_FAR;
		more.n += NR_XCORR_ONE;
		more.d += nr_xcorr_one(d);
		more.dd += nr_xcorr_square(d);
	}
	nr_xcorr_add_more(&q->fast.lag[l], &more);
	nr_xcorr_add_more(&q->slow.lag[l], &more);
	return 1;
}

NR_INLINE void nr_xcorr_move_sums(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->aa = nr_xcorr_moved(w->aa, w->a, w->n, a);
	w->bb = nr_xcorr_moved(w->bb, w->b, w->n, b);
	w->a -= a * (nr_s32)w->n;
	w->b -= b * (nr_s32)w->n;
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++) {
		struct nr_xcorr_lag *lag = &w->lag[l];

		lag->dd = nr_xcorr_moved(lag->dd, lag->d, lag->n, a - b);
		lag->d -= (a - b) * (nr_s32)lag->n;
	}
}

/*
 * References follow the means, as what rounding does to a sum of squares grows with the distance
 * from them. The sums are those about the new references, exactly.
 */
NR_NOINLINE int nr_xcorr_move(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	struct nr_xcorr_pair *q;
	nr_s32 a, b;

	if (!g)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	a = nr_xcorr_step(q->slow.a, q->slow.n);
	b = nr_xcorr_step(q->slow.b, q->slow.n);
	if (!a && !b)
		return 0;
	nr_xcorr_move_sums(&q->fast, a, b);
	nr_xcorr_move_sums(&q->slow, a, b);
	q->a += a;
	q->b += b;
	q->line.kx -= (nr_s64)(a + b) * q->line.k;
	return 1;
}

/*
 * Of members i and j, forgets what is of another path or of other delays. If there are values of
 * them in this interval, their sums fade and it returns 1; else they stay, and the pair its answer.
 */
NR_NOINLINE int nr_xcorr_begin_pair(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	const struct nr_xcorr_member *one, *other;
	struct nr_xcorr_pair *q;
	nr_u32 common; /* bins, as bits, that one has anew and the other has at some lag */

	if (!g)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	if ((g->anew | g->moved) >> i & 1 || (g->anew | g->moved) >> j & 1) {
		q->fast = (struct nr_xcorr_sums){0};
		q->slow = (struct nr_xcorr_sums){0};
		q->line = (struct nr_xcorr_line){0};
		q->bounded = 0;
		q->begun = 0;
	}
	if (g->anew >> i & 1 || g->anew >> j & 1) {
		q->known = (struct nr_pair){0};
		q->begin = g->stamp;
		q->against = 0;
	}
	one = &g->member[i];
	other = &g->member[j];
	common = (one->newer & other->near) | (one->near & other->newer);
	g->found = NR_UNSURE;
	g->noise = 0;
	if (!common || !(g->fresh >> i & g->fresh >> j & 1)) {
		q->known.why = NR_FEW;
		return 0;
	}
	nr_xcorr_fade_pair(q, g->stamp);
	return 1;
}

#endif
