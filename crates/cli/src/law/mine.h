/*
 * mine: each of N coupled paths grows as one of N equal paths under LIA. A working example;
 * describe your law here.
 *
 * Source: RFC 6356, with N equal paths; name your paper or draft.
 *
 *   N = paths in the coupling mask that carry data
 *   each packet acknowledged on path i:  w_i += 1 / (N^2 w_i)
 *   loss on path i:                      w_i -= cut * w_i
 *
 * Units: windows in packets; times in us, srtt8_us in 1/8 us; credit in 2^-40 packet, NR_ONE is 1.
 * Rules: integers only (nr_fx.h has fractions); loops with a constant bound; no static variables;
 * siblings are read by NR_READ and never written.
 *
 * What RFC 9743 asks in prose is answered here, for `narrows evaluate`: paragraphs that begin with
 * "BCP 133, 5.3.1:" and so on, without the quotes.
 */
#ifndef NARROWS_LAW_MINE_H
#define NARROWS_LAW_MINE_H

#include "flows.h" /* nr_read_flows() reads the windows, RTTs and rates of a set of paths */
#include "law.h"   /* the hooks: arguments, and when they are called */

/*
 * Parameters, set by --set mine.cut=0.3, one line each: field, name, unit, default, minimum,
 * maximum, description, source. A RATIO is stored in 2^-16.
 */
#define NR_MINE_PARAMS(P)                                                                          \
	P(cut, cut, RATIO, 0.5, 0.1, 0.9, "part of the window that a loss removes", "RFC 5681")
NR_LAW_PARAMETERS(mine, NR_MINE_PARAMS)

/*
 * State of a path, optional: at most NR_LAW_WORDS words of 64 bits, zero when the path joins.
 *
 *   struct nr_mine {
 *       nr_u64 since_us;
 *   };
 *   NR_LAW_STATE(mine)
 *
 * In a hook: nr_mine(p)->since_us = ev->now_us; in the table: .state = sizeof(struct nr_mine).
 */

/* A loop with fractions (nr_fx.h) must be NR_NOINLINE, as in laws/balia.h. */
NR_INLINE nr_u32 nr_mine_paths(nr_u32 set)
{
	nr_u32 n = 0;

	for (nr_u32 k = 0; k < NR_MAX_PATHS; k++)
		n += set >> k & 1;
	return n;
}

/*
 * Growth in congestion avoidance for one acknowledged packet, in 2^-40 packet. `set` has a bit for
 * each path that counts, path i included. It is not called for a path alone in its set, which is
 * Reno (unless the table has .alone = 1).
 */
NR_INLINE nr_s64 nr_mine_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	nr_u64 paths = nr_mine_paths(set);

	return (nr_s64)(NR_ONE / (paths * paths * p->cwnd));
}

/* Window after a congestion event, packets. */
NR_INLINE nr_u32 nr_mine_ssthresh(NR_HOOK)
{
	nr_u32 cut = (nr_u32)((nr_u64)p->cwnd * nr_mine_params(c)->cut / NR_Q16);

	return p->cwnd > cut + 2 ? p->cwnd - cut : 2;
}

/* Missing hooks do nothing, or are Reno's; law.h lists all hooks. */
NR_LAW(mine) = {
    .name = "mine",
    .code = "mine", /* its part of the name in the kernel, at most 5 characters */
    .about = "grows as one of N equal paths, N counted in the coupling mask",
    .source = "RFC 6356, N equal paths",
    .kind = NR_WINDOW,
    .couples = 1, /* 1: reads the siblings in its mask */
    .credit = nr_mine_credit,
    .ssthresh = nr_mine_ssthresh,
    NR_TAKES(mine),
};

#endif
