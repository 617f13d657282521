/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * EWTCP, equally weighted TCP: each of n paths takes 1/n of a TCP's rate on that path, whatever the
 * others carry. Over one bottleneck they are one TCP together; over several, traffic does not move
 * to the better path.
 *
 * Source: Honda, Nishida, Eggert, Sarolahti, Tokuda, "Multipath Congestion Control for Shared
 * Bottleneck", PFLDNeT 2009; Wischik, Raiciu, Greenhalgh, Handley, NSDI 2011, section 2.1.
 *
 *   each packet acknowledged on path i:  w_i += a / w_i,  a = 1 / n^2
 *   loss on path i:                      as Reno
 *
 * The weight: in equilibrium, with loss probability p, growth and loss balance where
 * a / w = p w / 2, so w = sqrt(2 a / p), and that is 1/n of a TCP's sqrt(2 / p) where a = 1 / n^2.
 * (NSDI 2011 prints a = 1 / sqrt(n), for a window proportional to a^2, which does not follow from
 * its rule.)
 *
 * n is the number of paths in the mask that count.
 * Units: windows in packets, credit in 2^-40 packet, rounded up.
 * Valid: w 1 .. 2^30; within 2^-40 packet.
 */
#ifndef NARROWS_LAW_EWTCP_H
#define NARROWS_LAW_EWTCP_H

#include "../flows.h"
#include "reno.h"

NR_INLINE nr_s64 nr_ewtcp_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	nr_u64 paths = NR_ONES64(set), packets = paths * paths * p->cwnd;

	return (nr_s64)((NR_ONE + packets - 1) / packets);
}

NR_LAW(ewtcp) = {
    .name = "ewtcp",
    .code = "ewtcp",
    .about = "equally weighted: each of n paths is 1/n of a TCP",
    .source = "Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011, section 2.1",
    .kind = NR_WINDOW,
    .couples = 1,
    .per_round = 1,
    .credit = nr_ewtcp_growth,
};

#endif
