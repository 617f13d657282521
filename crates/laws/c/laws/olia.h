/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * OLIA, opportunistic linked increases: Pareto-optimal resource pooling; a term that moves window
 * from the paths with the largest window to those that could carry more prevents flapping.
 *
 * Source: draft-khalili-mptcp-congestion-control-05, section 2 and 3; Khalili et al., CoNEXT 2012.
 *
 *   l_k = max(packets delivered between the last two losses, packets delivered since the last)
 *   B = argmax_k l_k / rtt_k^2,  M = argmax_k w_k,  C = B \ M,  R = all
 *   alpha_i = 1 / (|R| |C|) in C,  -1 / (|R| |M|) in M if C is not empty,  else 0
 *   each packet acknowledged on path i:
 *     w_i += (w_i / rtt_i^2) / (sum_k w_k / rtt_k)^2 + alpha_i / w_i
 *   loss on path i: as Reno, at least `floor` packets, 1 (2 with a single path)
 *
 * Published: word[0] is l, packets.
 * Units: windows in packets, times in 1/8 us (they cancel), credit in 2^-40 packet.
 * Valid: w 1 .. 2^30, rtt 1/8 us .. 536 s; each term's relative error below 2^-27, or 2^-40 packet.
 * Departures: packets, not bytes; growth is computed for each packet of growth and once a round
 * trip, and kept between (per_round). B uses l / rtt^2, the square of the rate sqrt(2 l) / rtt from
 * which the paper derives it, as in the authors' Linux code.
 */
#ifndef NARROWS_LAW_OLIA_H
#define NARROWS_LAW_OLIA_H

#include "../flows.h"
#include "reno.h"

struct nr_olia {
	nr_u32 l1;	 /* packets delivered between the last two losses */
	nr_u32 l2;	 /* packets delivered since the last loss */
	nr_u32 prior_l1; /* l1 before the last loss, for undo */
};

NR_LAW_STATE(olia)

#define NR_OLIA_PARAMS(P)                                                                          \
	P(floor, floor, COUNT, 1, 1, 2, "minimum ssthresh with a sibling, packets",                \
	  "section 3; the authors' Linux code has 2")
NR_LAW_PARAMETERS(olia, NR_OLIA_PARAMS)

NR_INLINE void nr_olia_publish(const struct nr_olia *o, struct nr_path *line)
{
	NR_WRITE(line->word[0], o->l1 > o->l2 ? o->l1 : o->l2);
}

NR_INLINE void nr_olia_count(struct nr_olia *o, nr_u32 delivered)
{
	o->l2 = o->l2 + delivered < o->l2 ? ~0u : o->l2 + delivered;
}

/* Each acknowledgement, also in recovery. */
NR_INLINE void nr_olia_acked(NR_HOOK)
{
	nr_olia_count(nr_olia(p), ev->delivered);
	nr_olia_publish(nr_olia(p), &c->path[i & 7]);
}

/* Once per congestion event, for any number of lost packets. */
NR_INLINE void nr_olia_lost(NR_HOOK)
{
	struct nr_olia *o = nr_olia(p);

	o->prior_l1 = o->l1;
	o->l1 = o->l2;
	o->l2 = 0;
	nr_olia_publish(o, &c->path[i & 7]);
}

NR_INLINE void nr_olia_undo(NR_HOOK)
{
	struct nr_olia *o = nr_olia(p);
	nr_u32 since = o->l2;

	o->l2 = o->l1;
	o->l1 = o->prior_l1;
	nr_olia_count(o, since);
	nr_olia_publish(o, &c->path[i & 7]);
}

/* l * rtt^2, exact in 96 bits: ties must be ties. */
struct nr_olia_product {
	nr_u64 high; /* * 2^32 */
	nr_u32 low;
};

NR_INLINE struct nr_olia_product nr_olia_product(nr_u32 l, nr_u32 rtt)
{
	nr_u64 square = (nr_u64)rtt * rtt, low = (nr_u64)(nr_u32)square * l;

	return (struct nr_olia_product){(square >> 32) * l + (low >> 32), (nr_u32)low};
}

/* 1, 0, -1 as l_a / rtt_a^2 is more than, equal to or less than l_b / rtt_b^2. */
NR_INLINE nr_s32 nr_olia_compare(nr_u32 l_a, nr_u32 rtt_a, nr_u32 l_b, nr_u32 rtt_b)
{
	struct nr_olia_product a = nr_olia_product(l_a, rtt_b), b = nr_olia_product(l_b, rtt_a);

	if (a.high != b.high)
		return a.high > b.high ? 1 : -1;
	return a.low > b.low ? 1 : a.low < b.low ? -1 : 0;
}

/* B and M under construction, a bit for each path, and the current maxima. */
struct nr_olia_sets {
	nr_u32 best;
	nr_u32 best_l;
	nr_u32 best_rtt;
	nr_u32 largest;
	nr_u32 largest_w;
};

/* Adds a path. A function, else Linux 6.1's verifier explores all orders of eight paths. */
NR_NOINLINE int nr_olia_weigh(struct nr_olia_sets *s, nr_u32 bit, nr_u32 w, nr_u32 l, nr_u32 rtt)
{
	nr_s32 order;

	if (!s)
		return 0;
	if (w > s->largest_w) {
		s->largest_w = w;
		s->largest = 0;
	}
	if (w == s->largest_w)
		s->largest |= bit;
	order = nr_olia_compare(l, rtt, s->best_l, s->best_rtt);
	if (order > 0) {
		s->best_l = l;
		s->best_rtt = rtt;
		s->best = 0;
	}
	if (order >= 0)
		s->best |= bit;
	return 1;
}

/* B in the low byte, M in the next. */
NR_NOINLINE nr_u32 nr_olia_sets(const struct nr_conn *c, const struct nr_flows *f, nr_u32 set)
{
	struct nr_olia_sets s = {.best_rtt = 1};

	if (!c || !f)
		return 0;
	for (nr_u32 k = 0; k < NR_MAX_PATHS; k++)
		if (set >> k & 1)
			nr_olia_weigh(&s, 1u << k, f->cwnd[k], NR_READ(c->path[k].word[0]),
				      f->srtt8[k]);
	return s.best | s.largest << 8;
}

NR_NOINLINE nr_s64 nr_olia_credit(const struct nr_conn *c, nr_u32 i, nr_u32 set)
{
	nr_u32 sets, largest, collected;
	struct nr_fx own, total;
	struct nr_flows f;
	nr_u64 share;
	nr_s64 credit;

	if (!nr_read_flows(c, set, &f))
		return 0;
	sets = nr_olia_sets(c, &f, set);
	largest = sets >> 8;
	collected = sets & ~largest & 0xff;

	own = nr_fx_mul(f.rate[i & 7], nr_inverse(f.srtt8[i & 7]));
	total = nr_fx_sum(f.rate);
	credit = (nr_s64)nr_fx_fixed(nr_fx_div(own, nr_fx_mul(total, total)), NR_CREDIT_BITS);
	if (!collected)
		return credit;
	share = NR_ONE / NR_ONES64(set) / f.cwnd[i & 7];
	if (collected >> i & 1)
		credit += (nr_s64)(share / NR_ONES64(collected));
	else if (largest >> i & 1)
		credit -= (nr_s64)(share / NR_ONES64(largest));
	return credit;
}

NR_INLINE nr_s64 nr_olia_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return nr_olia_credit(c, i, set);
}

/* The loss halves as Reno's, but for the floor. */
NR_INLINE nr_u32 nr_olia_ssthresh(NR_HOOK)
{
	nr_u32 floor = nr_olia_params(c)->floor, half = p->cwnd / 2;

	if (!nr_has_sibling(c, i))
		return nr_reno_ssthresh(p->cwnd);
	return half < floor ? floor : half;
}

NR_LAW(olia) = {
    .name = "olia",
    .code = "olia",
    .about = "opportunistic linked increases: Pareto-optimal, moves traffic to the best paths",
    .source = "draft-khalili-mptcp-congestion-control-05",
    NR_TAKES(olia),
    .kind = NR_WINDOW,
    .couples = 1,
    .per_round = 1,
    .state = sizeof(struct nr_olia),
    .credit = nr_olia_growth,
    .ssthresh = nr_olia_ssthresh,
    .acked = nr_olia_acked,
    .lost = nr_olia_lost,
    .undo = nr_olia_undo,
};

#endif
