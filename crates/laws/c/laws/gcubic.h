/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gcubic: the paths of a group are one CUBIC flow.
 *
 * Source: docs/one-flow.md; group.h has the group, RFC 9438 the flow, laws/cubic.h its curves.
 *
 * The flow has RTT g + 1 / (4 X) and window V + 1/4 (struct nr_group_part), and follows
 * W_cubic(t). Path i gets the part s_i = dw_i / dV of what it grows by, so it has a curve of its
 * own, with the K of all:
 *
 *   w_i(t) = W_max_i + s_i C (t - K)^3
 *   W_est_i += a q_i each acknowledged packet
 *   event of the group:   w_i = 0.7 w_i + 3/20 - 19 / (20 N), at least 2, or 1 if thin
 *                         W_max_i = 0.7 w_i + 0.3 e_i, or 0.7 w_i + 0.15 e_i if w_i < W_max_i
 *
 * e_i = s_i (V + 1/4) is w_i once windows are as growth makes them, and until then W_max_i leads
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
 */
#ifndef NARROWS_LAW_GCUBIC_H
#define NARROWS_LAW_GCUBIC_H

#include "../group.h"
#include "cubic.h"

struct nr_gcubic {
	struct nr_group group;
	struct nr_cubic cubic;
	nr_u32 set;	 /* paths that counted when parts were computed; 0: not yet */
	nr_u32 parts_us; /* when, wraps */
};
NR_LAW_STATE(gcubic)

NR_INLINE nr_u64 nr_gcubic_cut(nr_u64 window, nr_u32 n)
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
	struct nr_cubic *cubic;
	struct nr_group *g;

	if (!p)
		return 0;
	cubic = &nr_gcubic(p)->cubic;
	e = &cubic->now;
	g = nr_group(p);
	if (NR_ONES64(set) == 1) {
		nr_cubic_reduced(cubic, cwnd);
		return 1;
	}
	even = g->even ? (nr_u64)g->even << 24 : w;
	g->even = (nr_u32)(g->even * 7ull / 10);
	cubic->prior = *e;
	e->w_max = kept + (w < e->w_max ? even / 20 * 3 : even / 10 * 3);
	e->w_prior = nr_cubic_prior(kept + even / 10 * 3);
	e->start_us = 0;
	return 1;
}

NR_INLINE void nr_gcubic_before(NR_HOOK)
{
	nr_u64 window = nr_group_window(p);
	nr_u32 cwnd = p->cwnd;

	if (!nr_group_follow(NR_ARGS, nr_gcubic_cut))
		return;
	nr_gcubic_reduced(p, nr_coupled(c, i), cwnd, window);
	/* An undo of its own reduction leaves this one. */
	nr_gcubic(p)->cubic.prior = nr_gcubic(p)->cubic.now;
}

NR_INLINE nr_u32 nr_gcubic_ssthresh(NR_HOOK)
{
	struct nr_cubic *cubic = &nr_gcubic(p)->cubic;

	if (nr_group_followed(NR_ARGS))
		cubic->prior = cubic->now;
	else
		nr_gcubic_reduced(p, nr_coupled(c, i), p->cwnd, nr_group_window(p));
	return nr_group_ssthresh(NR_ARGS, nr_gcubic_cut);
}

/* The parts of the path, once a round trip and as paths come and go. */
NR_NOINLINE int nr_gcubic_parts(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				nr_u64 now_us, nr_u32 set)
{
	struct nr_group_part part = {0, 0};
	struct nr_cubic_epoch *e;
	struct nr_gcubic *own;

	if (!c || !p)
		return 0;
	own = nr_gcubic(p);
	e = &own->cubic.now;
	own->group.even = 0;
	if (set != 1u << (i & 7))
		nr_group_credit(c, i, set, &own->group, &part);
	own->cubic.step = part.step;
	if (e->start_us && set != own->set) {
		/* At the same height of another curve, with the same plateau. */
		nr_u64 t = now_us - e->start_us;
		nr_u64 rise = nr_cubic_rise(e->k_us, t, own->cubic.share);
		nr_u64 d = nr_cubic_k(rise, part.share);

		e->start_us = now_us;
		if (t >= e->k_us)
			e->start_us -= d < now_us ? d : now_us - 1;
		e->k_us = t < e->k_us ? (nr_u32)d : 0;
	}
	if (set != own->set) /* K is of the part before: undo begins a new epoch */
		own->cubic.prior.start_us = 0;
	if (!e->start_us || set != own->set)
		own->cubic.share = part.share;
	own->set = set;
	own->parts_us = (nr_u32)now_us;
	return 1;
}

/* The window with its fraction, which may be negative, 2^-32 packet. */
NR_INLINE nr_u64 nr_gcubic_window(const struct nr_private *p)
{
	return (p->cwnd - 1) * NR_CUBIC_ONE + ((nr_u64)(p->credit + (nr_s64)NR_ONE) >> 8);
}

/* Congestion avoidance begins or continues. */
NR_INLINE void nr_gcubic_begin(NR_HOOK)
{
	struct nr_gcubic *own = nr_gcubic(p);
	nr_u32 set = nr_coupled(c, i), age_us = (nr_u32)ev->now_us - own->parts_us;
	nr_u64 w;

	nr_group_begin(NR_ARGS);
	if (set != own->set || !own->cubic.now.start_us || age_us >= c->path[i & 7].srtt8_us / 8)
		nr_gcubic_parts(c, i, p, ev->now_us, set);
	if (own->cubic.now.start_us)
		return;
	w = set == 1u << (i & 7) ? p->cwnd * NR_CUBIC_ONE : nr_gcubic_window(p);
	nr_cubic_start(&own->cubic, ev->now_us, w);
}

NR_INLINE nr_s64 nr_gcubic_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return (nr_s64)nr_cubic_credit(&nr_gcubic(p)->cubic, p->cwnd, nr_gcubic_window(p),
				       ev->now_us, c->path[i & 7].srtt8_us / 8, n);
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
	nr_gcubic(p)->cubic.now.w_max = 0;
}

NR_INLINE void nr_gcubic_restart(NR_HOOK)
{
	nr_gcubic(p)->cubic.now.start_us = 0;
}

NR_LAW(gcubic) = {
    .name = "gcubic",
    .code = "gcub",
    .about = "the paths of a group are one CUBIC flow: one curve, one cut for all",
    .source = "docs/one-flow.md; RFC 9438",
    .kind = NR_WINDOW,
    .couples = 1,
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
};

#endif
