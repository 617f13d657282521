/*
 * mine: each of N coupled paths grows as one of N equal paths does under LIA. It works, to start
 * from: say here what yours does.
 *
 * Source: RFC 6356, with N equal paths; name the paper or draft of yours.
 *
 *   N = paths in the coupling mask that carry data
 *   each packet acknowledged on path i:  w_i += 1 / (N^2 w_i)
 *   loss on path i:                      w_i -= cut * w_i
 *
 * Units: windows in packets; times in us, srtt8_us in 1/8 us; credit in 2^-40 packet, NR_ONE is 1.
 * Rules: integers only (nr_fx.h has fractions); loops with a constant bound; no static variables,
 * but the state below; siblings are read by NR_READ, and nothing of theirs is written.
 */
#ifndef NARROWS_LAW_MINE_H
#define NARROWS_LAW_MINE_H

#include "flows.h" /* who counts in a sum; nr_read_flows() reads all of them at once */
#include "law.h"   /* the hooks, with their arguments and when they are called */

/*
 * What users may set, --set mine.cut=0.3, a line each: field, name, unit, default, lowest and
 * highest value, what it is, where it is from. A RATIO is kept in 2^-16.
 */
#define NR_MINE_PARAMS(P)                                                                          \
	P(cut, cut, RATIO, 0.5, 0.1, 0.9, "part of the window that a loss takes", "RFC 5681")
NR_LAW_PARAMETERS(mine, NR_MINE_PARAMS)

/*
 * What a path remembers, if it must: at most NR_LAW_WORDS words of 64 bits, zero when it joins.
 *
 *   struct nr_mine {
 *       nr_u64 since_us;
 *   };
 *   NR_LAW_STATE(mine)
 *
 * and in a hook nr_mine(p)->since_us = ev->now_us; the table then has
 * .state = sizeof(struct nr_mine).
 */

NR_INLINE nr_u32 nr_mine_paths(nr_u32 set)
{
	nr_u32 n = 0;

	for (nr_u32 k = 0; k < NR_MAX_PATHS; k++)
		n += set >> k & 1;
	return n;
}

/*
 * Growth in congestion avoidance for one acknowledged packet, in 2^-40 packet. `set` has a bit for
 * each path that counts, path i among them. A path alone in its set is Reno and does not come here
 * (with .alone = 1 in the table it does).
 */
NR_INLINE nr_s64 nr_mine_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	nr_u64 paths = nr_mine_paths(set);

	return (nr_s64)(NR_ONE / (paths * paths * p->cwnd));
}

/* The window after a congestion event, packets. */
NR_INLINE nr_u32 nr_mine_ssthresh(NR_HOOK)
{
	nr_u32 cut = (nr_u32)((nr_u64)p->cwnd * nr_mine_params(c)->cut / NR_Q16);

	return p->cwnd > cut + 2 ? p->cwnd - cut : 2;
}

/* Hooks that are left out do nothing, or are Reno's; law.h has all of them. */
NR_LAW(mine) = {
    .name = "mine",
    .code = "mine", /* in names that the kernel knows: at most 5 characters */
    .about = "one of N equal paths, N counted in the coupling mask",
    .source = "RFC 6356, N equal paths",
    .kind = NR_WINDOW,
    .couples = 1, /* 1: reads the siblings in its mask */
    .credit = nr_mine_credit,
    .ssthresh = nr_mine_ssthresh,
    NR_TAKES(mine),
};

#endif
