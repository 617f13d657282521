/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * greno: the paths of a group are one Reno flow. Their windows become equal, together they grow by
 * a packet per round trip of the best path, and a congestion event of one halves all.
 *
 * Source: docs/method/one-flow.md; group.h has the group, RFC 5681 the flow.
 *
 *   each acknowledged packet:   w_i += min(q_i, 1 / w_i)         (group.h)
 *   event of the group:         w_i = w_i / 2 + 1/4 - 3 / (4 N), at least 2 or 1 (nr_group_floor)
 *
 * The last terms are what integers cost one flow. A window of real numbers W sends only floor(W),
 * W - 1/2 in the mean: N members send N / 2 less than their sum, one flow 1/2 less. To send as much
 * as one flow, the group must have a sum that is (N - 1) / 2 higher, so (N - 1) / 4 higher after it
 * is halved. And one flow loses its credit, of which half would have remained, and half a packet if
 * its window is odd: 1/2 in the mean. Together (N - 1) / 4 - 1/2, which is 1/4 - 3 / (4 N) for each
 * of N.
 *
 * Alone in its mask a path is Reno, to the bit.
 *
 * Units: windows in packets, times in 1/8 us (they cancel), credit in 2^-40 packet; the fraction of
 * a cut window in 2^-16 packet. Valid: w 1 .. 2^30, rtt 1/8 us .. 16 s; relative error of growth
 * below 2^-27, or 2^-40 packet.
 *
 * BCP 133, 3.1: no experience in the Internet, and no implementation or evaluation by others. The
 * one text of the law runs in three hosts, a simulator, Linux and QUIC; tests compare it with a
 * form of it in floating point.
 * BCP 133, 3.2: experimental. It was simulated and run in the Linux kernel, and never measured at
 * the scale of the Internet. Not recommended where paths share what delays nothing, as a policer,
 * which no detector sees, or a router that queues by flow (RFC 8290): they take a share each; so
 * they do in the first ten seconds in a bottleneck, if nothing is found until then; nor where a
 * link's queue has a few packets: each path has one or two at least.
 * BCP 133, 4: it relies on no function of the network but on losses, or on CE marks if ECN is used.
 * BCP 133, 5.3.1: none from RFC 2914: a congestion event leaves half of the windows of all paths of
 * a group, and a timeout one packet of its path's. It counts packets, so that the loss of a small
 * one weighs as that of a large one (RFC 7141).
 * BCP 133, 5.3.2: only the sender changes, under MPTCP (RFC 8684) or multipath QUIC as they are.
 * Nothing is new on the wire, so routers, home routers and firewalls that pass these see no other
 * packets; beyond a proxy that ends a connection its own control runs. None of this equipment was
 * tried.
 * BCP 133, 6.2: the one explicit signal is CE, which tunnels pass on by RFC 6040.
 * BCP 133, 7.4: it sends no packet. An event reads the words of at most seven other paths, in
 * integers. A path keeps 24 words of 64 bits, and 8 that its siblings read; a detector has its own.
 * Power was not measured.
 * BCP 133, 7.6: what receivers gain is said in 8. A sender that says of no paths that they share
 * has a share for each, as uncoupled flows. A router that drops, marks or delays packets slows a
 * path, and the paths that are taken to share with it, as Reno with these losses; who loads two
 * paths in step can make them look as if they shared, which leaves both one flow's share. Who is
 * not on a path has no more means than against Reno: the law reads nothing else from the wire.
 * BCP 133, 7.11: it is not meant for data centres; it coexists there as Reno does (RFC 5681).
 * BCP 133, 8: nothing is new on the wire. With a detector, a receiver that holds acknowledgements
 * or forges timestamps can make paths of one bottleneck look apart: a share for each path is then
 * the most that this gains. One that acknowledges what was lost hides it, as from Reno.
 */
#ifndef NARROWS_LAW_GRENO_H
#define NARROWS_LAW_GRENO_H

#include "../group.h"

#define NR_GRENO_WAIT 2 /* z of group.h, 1/8 */

NR_NOINLINE nr_u64 nr_greno_cut(nr_u64 window, nr_u32 n)
{
	if (n == 1)
		return (nr_u64)nr_reno_ssthresh((nr_u32)(window / NR_GROUP_ONE)) * NR_GROUP_ONE;
	return window / 2 + NR_GROUP_ONE / 4 - NR_GROUP_ONE * 3 / (4 * n);
}

NR_INLINE void nr_greno_before(NR_HOOK)
{
	nr_group_follow(NR_ARGS, nr_greno_cut);
}

NR_INLINE nr_u32 nr_greno_ssthresh(NR_HOOK)
{
	return nr_group_ssthresh(NR_ARGS, nr_greno_cut);
}

/* Growth of path i with those in `set`; a function, as BPF's verifier takes each way through it. */
NR_NOINLINE nr_u64 nr_greno_credit(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				   nr_u32 set)
{
	nr_u32 group;
	nr_u64 credit, one;

	if (!c || !p)
		return 0;
	group = nr_cut_together(c, i) & set;
	credit = nr_reno_credit(p->cwnd);
	if (group != 1u << (i & 7)) {
		one = nr_group_credit(c, i, group, nr_group_round(c, group, NR_GRENO_WAIT));
		one = nr_fx_fixed(nr_fx_of(one), NR_CREDIT_BITS);
		if (one < credit)
			credit = one;
	}
	if (group != set) {
		one = nr_group_part(c, group, set, 0);
		credit = nr_fx_fixed(nr_fx_mul(nr_fx_of(one), nr_fx(credit)), 0);
	}
	return credit;
}

NR_INLINE nr_s64 nr_greno_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return (nr_s64)nr_greno_credit(c, i, p, set);
}

/*
 * The flow grows again a round trip after its event. So does a path whose own recovery takes
 * longer: by credit, as its window is the host's until then, and in the path's own round trip after
 * the event less by as much as acknowledgements come faster than at the rate after it.
 */
NR_INLINE void nr_greno_acked(NR_HOOK)
{
	const struct nr_path *line = &c->path[i & 7];
	nr_u32 set, since, n = ev->delivered;
	nr_s64 most = (nr_s64)NR_ONE - 1;
	nr_u64 more;

	nr_group_acked(NR_ARGS);
	if (!(ev->flags & NR_F_IN_RECOVERY) || !n || p->cwnd < p->ssthresh)
		return;
	set = nr_cut_together(c, i);
	since = (nr_u32)(ev->now_us - nr_group(p)->cut_us);
	if (set == 1u << (i & 7) || since < nr_group_rtt(c, set) / 8)
		return;
	more = (nr_u64)nr_greno_growth(NR_ARGS, nr_coupled(c, i), &n) * (n < p->cwnd ? n : p->cwnd);
	if (p->prior_cwnd > p->cwnd && since < nr_group_r(line, line->srtt8_us) / 8)
		more = more / p->prior_cwnd * p->cwnd;
	p->credit += (nr_s64)more;
	if (p->credit > most)
		p->credit = most;
}

NR_LAW(greno) = {
    .name = "greno",
    .code = "greno",
    .about = "the paths of a group are one Reno flow: one growth, one cut for all",
    .source = "docs/method/one-flow.md; RFC 5681",
    .kind = NR_WINDOW,
    .couples = 1,
    .pairs = 1,
    .per_round = 1,
    .state = sizeof(struct nr_group),
    .credit = nr_greno_growth,
    .ssthresh = nr_greno_ssthresh,
    .before = nr_greno_before,
    .acked = nr_greno_acked,
    .begin = nr_group_begin,
    .undo = nr_group_undo,
    .timeout = nr_group_timeout,
};

#endif
