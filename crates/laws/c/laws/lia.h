/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LIA, linked increases: a connection takes on all its paths together what one TCP would take on
 * the best of them.
 *
 * Source: RFC 6356 section 3 and 4; a path in fast recovery counts with ssthresh (section 3), which
 * it publishes as its window.
 *
 *   alpha = w_total * max_k (w_k / rtt_k^2) / (sum_k w_k / rtt_k)^2
 *   each packet acknowledged on path i:  w_i += min(alpha / w_total, 1 / w_i)
 *   loss on path i:                      as Reno
 *
 * w_total cancels: alpha / w_total = max_k (w_k / rtt_k^2) / (sum_k w_k / rtt_k)^2.
 *
 * Units: windows in packets, times in 1/8 us (they cancel), credit in 2^-40 packet.
 * Valid: w 1 .. 2^30, rtt 1/8 us .. 536 s; relative error below 2^-27, or 2^-40 packet.
 * Departures: packets, not bytes (also with unequal MSS, as in Linux); alpha is computed for each
 * packet of growth, and once a round trip, where the RFC allows once per window.
 */
#ifndef NARROWS_LAW_LIA_H
#define NARROWS_LAW_LIA_H

#include "../flows.h"
#include "reno.h"

NR_NOINLINE nr_u64 nr_lia_credit(const struct nr_conn *c, nr_u32 i, nr_u32 set)
{
	nr_u64 alone, linked;
	struct nr_fx total;
	struct nr_flows f;

	if (!nr_read_flows(c, set, &f))
		return 0;
	alone = nr_reno_credit(f.cwnd[i & 7]);
	total = nr_fx_sum(f.rate);
	linked = nr_fx_fixed(nr_fx_div(f.best, nr_fx_mul(total, total)), NR_CREDIT_BITS);
	return linked < alone ? linked : alone;
}

NR_INLINE nr_s64 nr_lia_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return (nr_s64)nr_lia_credit(c, i, set);
}

NR_LAW(lia) = {
    .name = "lia",
    .code = "lia",
    .about = "linked increases: together as much as one TCP on the best path",
    .source = "RFC 6356",
    .kind = NR_WINDOW,
    .couples = 1,
    .per_round = 1,
    .credit = nr_lia_growth,
};

#endif
