/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The answer of a pair: shared, separate or none, and the one in force.
 *
 *   L(l)  = 1 - var(a - b) / (var a + var b), at one lag 2 cov(a, b) / (var a + var b): Lin's
 *           concordance (Biometrics 45, 1989) without the difference of the means; L = max L(l).
 *           Unlike a correlation it asks for the same amplitude
 *   phi   = 1 - sum of squared differences of successive values / (2 var), for a and for b
 *   f     = max(phi_a, 0) max(phi_b, 0)
 *   n_eff = n (1 - f) / (1 + f): so many of n values are independent (Bartlett, 1935)
 *   theta = tanh(5 / sqrt(n_eff + 1)), five standard deviations of L
 *
 * None if n < 6 or var a + var b < 0.04 ms^2. Else shared if L >= max(0.4, theta), else separate if
 * L < 0.5; steps.h forbids either, clocks.h lowers L. The fast sums answer if they can, else the
 * slow ones. It takes two intervals in a row to change shared to separate. Without an answer the
 * last one holds, until a path leaves or is silent for 15 s.
 */
#ifndef NARROWS_XCORR_ANSWER_H
#define NARROWS_XCORR_ANSWER_H

#include "theta.h"
#include "steps.h"

#define NR_XCORR_PART 2u      /* intervals in a row that change an answer to separate */
#define NR_XCORR_FLAT 11u     /* twice the least variance of both paths, squared units: 0.04 ms^2 */
#define NR_XCORR_LEAST 39322u /* and shared at least 0.4: 1 - L, Q16 */

/* a - b, 0 if that is negative. */
NR_INLINE struct nr_fx nr_xcorr_less(struct nr_fx a, struct nr_fx b)
{
	if (!nr_fx_less(b, a))
		return nr_fx(0);
	return nr_fx_shift(nr_fx(nr_fx_align(a, a.e) - nr_fx_align(b, a.e)), a.e - 24);
}

/* Is var(a - b) at a lag the smallest so far? */
NR_NOINLINE int nr_xcorr_better(struct nr_xcorr_pairs *g, const struct nr_xcorr_lag *lag,
				nr_u32 least, nr_u32 l)
{
	struct nr_fx here, best;
	nr_u64 spread;

	if (!g || !lag || lag->n < least)
		return 0;
	spread = nr_xcorr_spread(lag->dd, lag->d, lag->n);
	if (lag->n == g->best_n) {
		if (spread >= g->best)
			return 0;
	} else if (g->best_n) {
		here = nr_fx_mul(nr_fx(spread), nr_fx((nr_u64)g->best_n * g->best_n));
		best = nr_fx_mul(nr_fx(g->best), nr_fx((nr_u64)lag->n * lag->n));
		if (!nr_fx_less(here, best))
			return 0;
	}
	g->best = spread;
	g->best_n = lag->n;
	g->best_lag = l;
	return 1;
}

/*
 * Finds the lag at which members i and j are most alike by their fast or slow sums: best_n = 0 if
 * they have too few values. A lag counts if it has half as many as lag 0.
 */
NR_NOINLINE int nr_xcorr_find_lag(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g,
				  nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	struct nr_xcorr_pair *q;
	nr_u32 least;

	if (!p || !g)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	w = slow ? &q->slow : &q->fast;
	least = p->samples << NR_XCORR_FRACTION;
	g->best_n = 0;
	if (w->n < least)
		return 0;
	if (least < w->n / 2)
		least = w->n / 2;
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++)
		nr_xcorr_better(g, &w->lag[l], least, l);
	return 1;
}

/*
 * Compares members i and j by their fast or slow sums, if there is no answer yet: 1 - L = left /
 * right for nr_xcorr_judge(); right = 0: they say nothing.
 */
NR_NOINLINE int nr_xcorr_compare(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	struct nr_xcorr_pair *q;
	nr_u64 both, drift = 0;
	struct nr_fx nn;

	if (!g || g->found)
		return 0;
	g->right = nr_fx(0);
	q = &g->pair[nr_xcorr_number(i, j)];
	w = slow ? &q->slow : &q->fast;
	q->known.why = NR_FEW;
	if (!g->best_n)
		return 0;
	both = nr_xcorr_spread(w->aa, w->a, w->n) + nr_xcorr_spread(w->bb, w->b, w->n);
	if (slow)
		drift = nr_xcorr_drift(&q->line, w);
	if (drift > both)
		drift = both;
	q->known.why = NR_FLAT;
	if ((both - drift) * 2 < (nr_u64)w->n * w->n * NR_XCORR_FLAT)
		return 0;
	q->known.why = NR_BETWEEN;
	nn = nr_fx((nr_u64)g->best_n * g->best_n);
	g->left = nr_fx_mul(nr_fx(g->best), nr_fx((nr_u64)w->n * w->n));
	g->right = nr_fx_mul(nn, nr_fx(both));
	g->level = nr_fx_mul(nn, nr_fx(both - drift));
	return 1;
}

/* n_eff, rounded down. */
NR_NOINLINE nr_u64 nr_xcorr_effective(const struct nr_xcorr_sums *w, nr_u64 aa, nr_u64 bb)
{
	struct nr_fx n, m, nn, a, b, of, part;

	if (!w)
		return 0;
	n = nr_fx(w->n);
	nn = nr_fx_mul(n, n);
	m = nr_fx_shift(nr_fx(w->m), 1);
	a = nr_fx_mul(m, nr_fx(aa));
	b = nr_fx_mul(m, nr_fx(bb));
	of = nr_fx_mul(a, b);
	/* f = part / of */
	part = nr_fx_mul(nr_xcorr_less(a, nr_fx_mul(nn, nr_fx(w->raa))),
			 nr_xcorr_less(b, nr_fx_mul(nn, nr_fx(w->rbb))));
	part = nr_fx_div(nr_xcorr_less(of, part), nr_fx_add(of, part));
	return nr_fx_fixed(nr_fx_mul(part, n), -NR_XCORR_FRACTION);
}

/* How many of the values of members i and j are independent, in the fast or the slow sums. */
NR_NOINLINE nr_u32 nr_xcorr_count(const struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	const struct nr_xcorr_pair *q;
	nr_u64 n_eff;

	if (!g)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	w = slow ? &q->slow : &q->fast;
	n_eff = nr_xcorr_effective(w, nr_xcorr_spread(w->aa, w->a, w->n),
				   nr_xcorr_spread(w->bb, w->b, w->n));
	return n_eff < 0xffff ? (nr_u32)n_eff : 0xffff;
}

NR_NOINLINE int nr_xcorr_set_count(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	if (!g || g->found || !g->right.m)
		return 0;
	g->n_eff = slow ? g->n_slow : nr_xcorr_count(g, i, j, 0);
	return 1;
}

/* How smooth are their queues? The slow sums tell, as of few values nobody can. */
NR_NOINLINE int nr_xcorr_set_queues(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	nr_u32 n;

	if (!g)
		return 0;
	n = g->pair[nr_xcorr_number(i, j)].slow.n;
	g->n_slow = nr_xcorr_count(g, i, j, 1);
	g->queues = 10ull * g->n_slow * NR_XCORR_ONE < 3ull * n ? NR_XCORR_LINES : NR_XCORR_ROUGH;
	return 1;
}

/*
 * Then: the answer, if any. Queues that differ by more than noise are not shared, nor any more;
 * those that differ by noise alone are not separate.
 */
NR_NOINLINE int nr_xcorr_judge(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g, nr_u32 i,
			       nr_u32 j, nr_u32 slow)
{
	struct nr_xcorr_pair *q;
	nr_u32 answer, row;
	nr_u64 away, level, less, apart;

	if (!p || !g || g->found || !g->right.m)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	/* 1 - L, Q16 */
	away = nr_fx_fixed(nr_fx_div(g->left, g->right), 16);
	/* The same, less what clocks may have added. */
	level = nr_fx_fixed(nr_fx_div(g->left, g->level), 16);
	row = g->n_eff < NR_XCORR_THETAS ? g->n_eff : NR_XCORR_THETAS - 1;
	less = nr_xcorr_theta[row % NR_XCORR_THETAS];
	answer = NR_UNSURE;
	/* Where noise explains it, only if even then L would not be 0.5: five deviations less. */
	apart = g->noise & NR_XCORR_EXPLAINS ? 2 * NR_Q16 - less : NR_Q16;
	if (away + p->apart > apart && (slow || !(g->noise & NR_XCORR_EXPLAINS)))
		answer = NR_SEPARATE;
	if (level <= less && level <= NR_XCORR_LEAST)
		answer = NR_SHARED;
	if (answer == NR_SHARED && g->noise & NR_XCORR_TOO_LITTLE) {
		answer = NR_UNSURE;
		if (q->known.answer == NR_SHARED && g->noise & NR_XCORR_REFUTES)
			q->known = (struct nr_pair){.why = NR_BETWEEN};
	}
	if (answer == NR_UNSURE || (answer == NR_SHARED && g->queues == NR_XCORR_LINES))
		return 0;
	g->found = answer;
	if (answer == NR_SHARED)
		away = level;
	g->alike = away < NR_Q16 ? (nr_u32)(NR_Q16 - away) >> 1 : 0;
	return 1;
}

/* The answer of members i and j in this interval, if any, becomes the one in force. */
NR_NOINLINE int nr_xcorr_conclude(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	struct nr_xcorr_pair *q;

	if (!g)
		return 0;
	q = &g->pair[nr_xcorr_number(i, j)];
	if (!g->found || !q->known.answer || g->found == q->known.answer)
		q->against = 0;
	else if (g->found == NR_SEPARATE && ++q->against < NR_XCORR_PART)
		return 0;
	if (!g->found)
		return 0;
	q->against = 0;
	q->known.answer = g->found;
	q->known.why = NR_SURE;
	q->known.stamp = g->stamp;
	q->known.alike = (nr_u16)g->alike;
	q->known.count = (nr_u16)g->n_eff;
	return 1;
}

/* The last interval of members i and j; 0: they have no new values. */
NR_NOINLINE int nr_xcorr_update_pair(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g,
				     nr_u32 i, nr_u32 j)
{
	if (!p || !g || !nr_xcorr_begin_pair(g, i, j))
		return 0;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE)
		nr_xcorr_add(g, i, j, n);
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++)
		nr_xcorr_add_lag(g, i, j, l);
	nr_xcorr_move(g, i, j);
	nr_xcorr_set_queues(g, i, j);
	for (nr_u32 slow = 0; slow < 2; slow++) {
		nr_xcorr_find_lag(p, g, i, j, slow);
		nr_xcorr_add_steps(g, i, j, slow);
		nr_xcorr_compare(g, i, j, slow);
		nr_xcorr_set_count(g, i, j, slow);
		nr_xcorr_set_noise(g, i, j, slow);
		nr_xcorr_judge(p, g, i, j, slow);
	}
	nr_xcorr_conclude(g, i, j);
	return 1;
}

#endif
