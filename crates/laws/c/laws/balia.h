/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Balia, balanced linked adaptation: between LIA's friendliness and OLIA's responsiveness.
 *
 * Source: draft-walid-mptcp-congestion-control-04, section 2 and, for the form without alpha,
 * section 4.
 *
 *   x_k = w_k / rtt_k,  alpha_i = max_k x_k / x_i
 *   each packet acknowledged on path i:
 *     w_i += x_i / (rtt_i (sum_k x_k)^2) * (1 + alpha_i) / 2 * (4 + alpha_i) / 5
 *          = (x_i + x_max) (4 x_i + x_max) / (10 w_i (sum_k x_k)^2)
 *   loss on path i:
 *     w_i -= w_i / 2 * min(alpha_i, 1.5), at least 1 packet (2 with a single path)
 *
 * Units: windows in packets, times in 1/8 us (they cancel), credit in 2^-40 packet.
 * Valid: w 1 .. 2^30, rtt 1/8 us .. 536 s; relative error below 2^-27, or 2^-40 packet.
 * Departures: packets, not bytes; growth is kept as OLIA's (per_round).
 */
#ifndef NARROWS_LAW_BALIA_H
#define NARROWS_LAW_BALIA_H

#include "../flows.h"
#include "reno.h"

NR_INLINE struct nr_fx nr_balia_max(const struct nr_flows *f)
{
	struct nr_fx max = nr_fx(0);

	for (nr_u32 k = 0; k < NR_MAX_PATHS; k++)
		if (nr_fx_less(max, f->rate[k]))
			max = f->rate[k];
	return max;
}

NR_NOINLINE nr_u64 nr_balia_credit(const struct nr_conn *c, nr_u32 i, nr_u32 set)
{
	struct nr_fx x, max, total, up, down;
	struct nr_flows f;

	if (!nr_read_flows(c, set, &f))
		return 0;
	x = f.rate[i & 7];
	max = nr_balia_max(&f);
	total = nr_fx_sum(f.rate);
	up = nr_fx_mul(nr_fx_add(x, max), nr_fx_add(nr_fx_shift(x, 2), max));
	down = nr_fx_mul(nr_fx(10ull * f.cwnd[i & 7]), nr_fx_mul(total, total));
	return nr_fx_fixed(nr_fx_div(up, down), NR_CREDIT_BITS);
}

/* The decrease uses the rates at the congestion event. */
NR_NOINLINE nr_u32 nr_balia_ssthresh(const struct nr_conn *c, nr_u32 i, nr_u32 set)
{
	nr_u32 floor = nr_has_sibling(c, i) ? 1 : 2, cwnd, cut;
	struct nr_fx alpha, most = {3u << 30, -31}; /* 1.5 = 3 * 2^30 * 2^-31 */
	struct nr_flows f;

	if (!nr_read_flows(c, set, &f))
		return 0;
	cwnd = f.cwnd[i & 7];
	alpha = nr_fx_div(nr_balia_max(&f), f.rate[i & 7]);
	if (!alpha.m) /* no RTT sample, so no rate: as a single path */
		alpha = nr_fx(1);
	if (nr_fx_less(most, alpha))
		alpha = most;
	/* w alpha / 2 in 2^-10 packet (9 bits are its half); rounded up, as Reno's for odd w. */
	cut = (nr_u32)((nr_fx_fixed(nr_fx_mul(nr_fx(cwnd), alpha), 9) + 1023) >> 10);
	return cwnd > cut + floor ? cwnd - cut : floor;
}

NR_INLINE nr_s64 nr_balia_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return (nr_s64)nr_balia_credit(c, i, set);
}

NR_INLINE nr_u32 nr_balia_reduced(NR_HOOK)
{
	return nr_balia_ssthresh(c, i, nr_coupled(c, i));
}

NR_LAW(balia) = {
    .name = "balia",
    .code = "balia",
    .about = "balanced linked adaptation: between LIA's friendliness and OLIA's responsiveness",
    .source = "draft-walid-mptcp-congestion-control-04",
    .kind = NR_WINDOW,
    .couples = 1,
    .per_round = 1,
    .credit = nr_balia_growth,
    .ssthresh = nr_balia_reduced,
};

#endif
