/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gcubic: the paths of a group are one CUBIC flow.
 *
 * Source: docs/method/one-flow.md; group.h has the group, RFC 9438 the flow, laws/cubic.h its
 * curves.
 *
 * The flow has the RTT G, the window V and follows W_cubic(t). Path i gets the part s_i = dw_i / dV
 * of what it grows by, so it has a curve of its own, with the K of all:
 *
 *   w_i(t) = W_max_i + s_i C (t - K)^3
 *   W_est_i += a q_i each acknowledged packet
 *   s_i = q_i w_i G / r_i
 *   event of the group:   w_i = 0.7 w_i + 3/20 - 19 / (20 N), at least 2 or 1 (group.h)
 *                         W_max_i = 0.7 w_i + 0.3 e_i, or 0.7 w_i + 0.15 e_i if w_i < W_max_i
 *
 * e_i = s_i V is w_i once windows are as growth makes them, and until then W_max_i leads
 * there. It is computed each round trip from what the siblings publish. All that paths must agree
 * on is the event that ends their epochs; the next begins as the path grows again, after its own
 * recovery or, if it followed, a round trip of the flow.
 *
 * The last terms of the cut are what integers cost one flow; see laws/greno.h. Members send N / 2
 * less than their sum and one flow 1/2 less, so 3/10 (N - 1) / 2 more is kept; one flow loses its
 * credit, 7/10 of 1/2, and 9/20 packet in the mean as 0.7 w is rounded down.
 *
 * When paths that count come or go, a curve goes on from its height with the new s_i.
 * A timeout is the path's own, and so is the epoch after it.
 *
 * Alone in its mask a path is CUBIC, to the bit.
 *
 * Units: windows in packets, s_i and w_i q_i in 2^-32. Valid: as cubic.h and greno.h.
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
 * BCP 133, 5.3.1: none from RFC 2914: a congestion event leaves 0.7 of the windows of all paths of
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
 * path, and the paths that are taken to share with it, as CUBIC with these losses; who loads two
 * paths in step can make them look as if they shared, which leaves both one flow's share. Who is
 * not on a path has no more means than against CUBIC: the law reads nothing else from the wire.
 * BCP 133, 7.11: it is not meant for data centres; it coexists there as CUBIC does (RFC 9438).
 * BCP 133, 8: nothing is new on the wire. With a detector, a receiver that holds acknowledgements
 * or forges timestamps can make paths of one bottleneck look apart: a share for each path is then
 * the most that this gains. One that acknowledges what was lost hides it, as from Reno.
 */
#ifndef NARROWS_LAW_GCUBIC_H
#define NARROWS_LAW_GCUBIC_H

#include "../group.h"
#include "cubic.h"

#define NR_GCUBIC_WAIT 4 /* z of group.h, 1/8 */

struct nr_gcubic {
	struct nr_group group;
	struct nr_cubic cubic;
	/* Paths that counted when parts were computed, those of the group shifted by 8; 0: not yet.
	 */
	nr_u32 set;
	nr_u32 parts_us; /* when, wraps */
};
NR_LAW_STATE(gcubic)

NR_NOINLINE nr_u64 nr_gcubic_cut(nr_u64 window, nr_u32 n)
{
	if (n == 1)
		return (nr_u64)nr_cubic_cut((nr_u32)(window / NR_GROUP_ONE)) * NR_GROUP_ONE;
	return window / 10 * 7 + NR_GROUP_ONE * 3 / 20 - NR_GROUP_ONE * 19 / (20 * n);
}

/* The epoch ends, at a window of cwnd packets before the cut, with its fraction in 2^-16 packet. */
NR_NOINLINE int nr_gcubic_reduced(struct nr_private *p, nr_u32 set, nr_u32 cwnd, nr_u64 window)
{
	nr_u64 w = window << 16, kept = w / 10 * 7, even;
	struct nr_cubic_epoch *e;
	struct nr_gcubic *own;

	if (!p)
		return 0;
	own = nr_gcubic(p);
	e = &own->cubic.now;
	if (NR_ONES64(set) == 1) {
		nr_cubic_end(e, cwnd);
		return 1;
	}
	even = own->group.even ? (nr_u64)own->group.even << 24 : w;
	own->group.even = (nr_u32)(own->group.even * 7ull / 10);
	e->w_max = kept + (w < e->w_max ? even / 20 * 3 : even / 10 * 3);
	e->w_prior = nr_cubic_prior(kept + even / 10 * 3);
	e->start_us = 0;
	return 1;
}

NR_INLINE void nr_gcubic_before(NR_HOOK)
{
	nr_u32 cwnd = p->cwnd, before = p->prior_cwnd;
	nr_u64 window = nr_group_window(p);

	/* On its way back to ssthresh: that is the window that is cut. */
	if (!nr_first_slow_start(p) && cwnd < p->ssthresh) {
		cwnd = p->ssthresh;
		window = cwnd * (nr_u64)NR_GROUP_ONE;
	}
	if (!nr_group_follow(NR_ARGS, nr_gcubic_cut))
		return;
	nr_gcubic_reduced(p, nr_cut_together(c, i), cwnd, window);
	/* An undo of its own reduction leaves this one: a new epoch then, as after it alone. */
	if (before)
		nr_cubic_end(&nr_gcubic(p)->cubic.prior, before);
}

NR_INLINE nr_u32 nr_gcubic_ssthresh(NR_HOOK)
{
	struct nr_cubic *cubic = &nr_gcubic(p)->cubic;

	cubic->prior = cubic->now;
	if (!nr_group_followed(p, ev))
		nr_gcubic_reduced(p, nr_cut_together(c, i), p->cwnd, nr_group_window(p));
	return nr_group_ssthresh(NR_ARGS, nr_gcubic_cut);
}

/* The window with its fraction, which may be negative, 2^-32 packet. */
NR_INLINE nr_u64 nr_gcubic_window(const struct nr_private *p)
{
	return (p->cwnd - 1) * NR_CUBIC_ONE + ((nr_u64)(p->credit + (nr_s64)NR_ONE) >> 8);
}

/* A part in 2^-32, at least 1; 0: all. */
NR_INLINE nr_u32 nr_gcubic_part(struct nr_fx a)
{
	nr_u64 part = nr_fx_fixed(a, 32);

	return part >> 32 ? 0 : part ? (nr_u32)part : 1;
}

/* Returns s_i and records e_i and w_i q_i. */
NR_NOINLINE nr_u32 nr_gcubic_share(const struct nr_conn *c, nr_u32 i, nr_u32 set,
				   struct nr_gcubic *own)
{
	struct nr_fx flow, credit, share;
	nr_u64 round, even;

	if (!c || !own)
		return 0;
	round = nr_group_round(c, set, NR_GCUBIC_WAIT);
	flow = nr_fx_mul(nr_fx_of(nr_group_sum(c, set, NR_GROUP_RATE)), nr_fx_of(round));
	credit = nr_fx_of(nr_group_credit(c, i, set, round));
	share = nr_fx_of(nr_group_sum(c, 1u << (i & 7), NR_GROUP_RATE));
	share = nr_fx_mul(nr_fx_mul(share, nr_fx_of(round)), credit);
	even = nr_fx_fixed(nr_fx_mul(share, flow), 8);
	own->group.even = even < ~0u ? (nr_u32)even : ~0u;
	own->cubic.step = nr_gcubic_part(nr_fx_mul(credit, nr_fx(NR_READ(c->path[i & 7].cwnd))));
	return nr_gcubic_part(share);
}

/* The epoch begins or goes on, with the s_i that the path has among those in `set`, as kept. */
NR_NOINLINE int nr_gcubic_epoch(struct nr_private *p, nr_u32 set, nr_u32 share, nr_u64 now_us)
{
	struct nr_cubic_epoch *e;
	struct nr_gcubic *own;
	nr_u64 w;

	if (!p)
		return 0;
	own = nr_gcubic(p);
	e = &own->cubic.now;
	if (e->start_us && set != own->set) {
		/* At the same height of another curve, with the same plateau. */
		nr_u64 rise = nr_cubic_rise(e->k_us, now_us - e->start_us, own->cubic.share);

		nr_cubic_go_on(e, now_us, rise, share);
	}
	if (set != own->set) /* K is of the part before: undo begins a new epoch */
		own->cubic.prior.start_us = 0;
	if (!e->start_us || set != own->set)
		own->cubic.share = share;
	own->set = set;
	own->parts_us = (nr_u32)now_us;
	if (e->start_us)
		return 1;
	w = NR_ONES64(set >> 8) == 1 ? p->cwnd * NR_CUBIC_ONE : nr_gcubic_window(p);
	nr_cubic_start(&own->cubic, now_us, w);
	return 1;
}

/* `of` times a part, both in 2^-32, 0: all. */
NR_INLINE nr_u32 nr_gcubic_times(nr_u32 of, nr_u64 part)
{
	struct nr_fx all = of ? nr_fx_shift(nr_fx(of), -32) : nr_fx(1);

	return nr_gcubic_part(nr_fx_mul(all, nr_fx_of(part)));
}

/* Computes the parts of path i in its group, and of that among all in `set`; returns s_i. */
NR_INLINE nr_u32 nr_gcubic_parts(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				 nr_u32 group, nr_u32 set)
{
	struct nr_gcubic *own = nr_gcubic(p);
	nr_u32 share = 0;

	own->group.even = 0;
	own->cubic.step = 0;
	if (group != 1u << (i & 7))
		share = nr_gcubic_share(c, i, group, own);
	if (group != set) {
		share = nr_gcubic_times(share, nr_group_part(c, group, set, 2));
		own->cubic.step = nr_gcubic_times(own->cubic.step, nr_group_part(c, group, set, 0));
	}
	return share;
}

/*
 * Congestion avoidance begins or continues. The parts of the path are computed once a round trip
 * and as paths come and go.
 */
NR_INLINE void nr_gcubic_begin(NR_HOOK)
{
	struct nr_gcubic *own = nr_gcubic(p);
	nr_u32 set = nr_coupled(c, i), group = nr_cut_together(c, i) & set, all = set | group << 8;
	nr_u32 age_us = (nr_u32)ev->now_us - own->parts_us;

	nr_group_begin(NR_ARGS);
	if (all == own->set && own->cubic.now.start_us && age_us < c->path[i & 7].srtt8_us / 8)
		return;
	nr_gcubic_epoch(p, all, nr_gcubic_parts(c, i, p, group, set), ev->now_us);
}

/* As nr_cubic_credit(). A function of its own: BPF's stack is small. */
NR_NOINLINE nr_s64 nr_gcubic_credit(struct nr_private *p, nr_u64 now_us, nr_u32 rtt_us, nr_u32 *n)
{
	nr_u64 w, window, members, half;

	if (!p || !n)
		return 0;
	w = p->cwnd * NR_CUBIC_ONE;
	window = nr_gcubic_window(p);
	members = NR_ONES64(nr_gcubic(p)->set >> 8);
	half = NR_CUBIC_ONE / (2 * members);
	/* One flow's cubic does not see its fraction, 1/2 in the mean. */
	if (members > 1)
		w = window > half ? window - half : 0;
	return (nr_s64)nr_cubic_credit(&nr_gcubic(p)->cubic, p->cwnd, window, w, now_us, rtt_us, n);
}

NR_INLINE nr_s64 nr_gcubic_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return nr_gcubic_credit(p, ev->now_us, c->path[i & 7].srtt8_us / 8, n);
}

NR_INLINE void nr_gcubic_grown(NR_HOOK, nr_u32 cwnd, nr_u32 n)
{
	nr_cubic_count(&nr_gcubic(p)->cubic, cwnd, n);
}

NR_INLINE void nr_gcubic_acked(NR_HOOK)
{
	nr_group_acked(NR_ARGS);
	nr_cubic_clock(&nr_gcubic(p)->cubic, ev);
}

NR_INLINE void nr_gcubic_undo(NR_HOOK)
{
	nr_group_undo(NR_ARGS);
	nr_gcubic(p)->cubic.now = nr_gcubic(p)->cubic.prior;
}

/* The next epoch starts at its plateau, as in cubic.h. */
NR_INLINE void nr_gcubic_timeout(NR_HOOK)
{
	nr_group_timeout(NR_ARGS);
	nr_cubic_timed_out(&nr_gcubic(p)->cubic.now);
}

NR_INLINE void nr_gcubic_restart(NR_HOOK)
{
	nr_gcubic(p)->cubic.now.start_us = 0;
}

NR_INLINE void nr_gcubic_resized(NR_HOOK, nr_u32 before)
{
	struct nr_gcubic *own = nr_gcubic(p);

	nr_cubic_in_packets_of(&own->cubic, ev->now_us, before, ev->mss);
	if (own->group.even)
		own->group.even = (nr_u32)nr_resized(own->group.even, before, ev->mss);
}

NR_LAW(gcubic) = {
    .name = "gcubic",
    .code = "gcub",
    .about = "the paths of a group are one CUBIC flow: one curve, one cut for all",
    .source = "docs/method/one-flow.md; RFC 9438",
    .kind = NR_WINDOW,
    .couples = 1,
    .pairs = 1,
    .alone = 1,
    .by_time = 1,
    .start = NR_START_hystart,
    .state = sizeof(struct nr_gcubic),
    .credit = nr_gcubic_growth,
    .ssthresh = nr_gcubic_ssthresh,
    .before = nr_gcubic_before,
    .acked = nr_gcubic_acked,
    .begin = nr_gcubic_begin,
    .grown = nr_gcubic_grown,
    .undo = nr_gcubic_undo,
    .timeout = nr_gcubic_timeout,
    .restart = nr_gcubic_restart,
    .resized = nr_gcubic_resized,
};

#endif
