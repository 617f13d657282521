/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wVegas, weighted Vegas: a connection keeps about total_alpha packets queued, each path in
 * proportion to its rate, so that traffic moves to the paths with the shortest queueing delay.
 *
 * Source: Cao, Xu, Fu, "Delay-based Congestion Control for Multipath TCP", ICNP 2012;
 * draft-xu-mptcp-congestion-control-05.
 *
 *   once per round trip, with rtt the mean of its samples and base the smallest of all:
 *     diff = w (rtt - base) / rtt                                     packets queued
 *     two samples or fewer:           a round of Reno
 *     slow start, diff > gamma:       w = min(w, w base / rtt + 1), and slow start is over
 *     else, if diff >= alpha_i:       alpha_i = max(2, total_alpha x_i / sum_k x_k),  x = w / rtt
 *           diff above alpha_i:       w -= 1
 *           diff below alpha_i:       w += 1
 *     q = rtt - base, if at least twice the smallest since the last drain:
 *                                     w *= base / (2 rtt)
 *   loss: as Reno, a new round, alpha_i and the smallest q reset; restart after idle: a new base;
 *   w is at least 2
 *
 * A single path is Vegas with alpha = total_alpha, beta = alpha + 1.
 *
 * Units: windows in packets, times in us, diff and alpha in 2^-16 packet, q in 2^-8 us.
 * Valid: w 1 .. 2^30, RTT 1 us .. 2^32 us; diff within w 2^-29 + 2^-16 packet.
 * Departures:
 * - The packet of a round is applied in w parts, one per acknowledged packet, as in Reno.
 * - The source compares whole packets. Here diff and alpha have fractions, and w is constant for
 *   alpha <= diff < alpha + 1.
 * - A path drains only if it queues at least twice its equilibrium, 2 (alpha + 1). In the authors'
 *   Linux code jitter that grows from 1 to 2 us halves the window of an empty path, and no path
 * gets from 1 packet queued to 10: two of them, alone on 20 Mbit/s and 20 ms each, simulated, fill
 * 80 to 86 % of their links.
 * - The drain lasts until the packets in flight fit the smaller window; then slow start leads to
 * 3/4 of the old window (the Linux code: to its ssthresh, which is at least that).
 * - Rates are published windows over smoothed RTTs, of all paths in the mask that count, also in
 * slow start and recovery.
 * - A step down needs acknowledgements while the window is the limit, as a step up does.
 * - A restart that does not reduce the window keeps the base.
 */
#ifndef NARROWS_LAW_WVEGAS_H
#define NARROWS_LAW_WVEGAS_H

#include "../flows.h"
#include "reno.h"

#define NR_WVEGAS_ONE (1u << 16)     /* a packet, of diff and alpha */
#define NR_WVEGAS_SAMPLES (1u << 20) /* of a round that count: their sum * 2^8 fits in 60 bits */

enum nr_wvegas_step {
	NR_WVEGAS_UP = 0, /* as Reno */
	NR_WVEGAS_STAY,
	NR_WVEGAS_DOWN,
};

struct nr_wvegas {
	nr_u64 sum_us;	/* of the round's RTT samples */
	nr_u64 queue;	/* smallest q since the last drain, 2^-8 us; 0: none */
	nr_u32 samples; /* of the round */
	nr_u32 base_us; /* smallest RTT; 0: none yet */
	nr_u32 alpha;	/* 2^-16 packet; 0: initial_alpha */
	nr_u32 step;	/* enum nr_wvegas_step: set by the last round for this one */
	nr_u32 least;	/* window at which a step down ends, packets */
};
NR_LAW_STATE(wvegas)

#define NR_WVEGAS_PARAMS(P)                                                                        \
	P(total_alpha, total_alpha, COUNT, 10, 1, 10000,                                           \
	  "target of queued packets, all paths together", "ICNP 2012, section V")                  \
	P(initial_alpha, initial_alpha, COUNT, 2, 1, 10000,                                        \
	  "initial and minimum target of a path, packets", "the authors' Linux code")              \
	P(gamma, gamma, COUNT, 1, 1, 10000, "queued packets at which slow start ends",             \
	  "the authors' Linux code")
NR_LAW_PARAMETERS(wvegas, NR_WVEGAS_PARAMS)

/* cwnd * part / whole, 2^-16 packet; whole is not 0. */
NR_NOINLINE nr_u64 nr_wvegas_part(nr_u32 cwnd, nr_u64 part, nr_u64 whole)
{
	return nr_fx_fixed(nr_fx_div(nr_fx_mul(nr_fx(cwnd), nr_fx(part)), nr_fx(whole)), 16);
}

/* Path i's part of `total` packets by its rate, 2^-16 packet. */
NR_NOINLINE nr_u64 nr_wvegas_share(const struct nr_conn *c, nr_u32 i, nr_u32 set, nr_u32 total)
{
	struct nr_fx share = nr_fx(total);
	struct nr_flows f;

	if (!nr_read_flows(c, set, &f))
		return 0;
	if (set != 1u << (i & 7))
		share = nr_fx_mul(share, nr_fx_div(f.rate[i & 7], nr_fx_sum(f.rate)));
	return nr_fx_fixed(share, 16);
}

/* A round begins, with no samples. */
NR_INLINE void nr_wvegas_begin(struct nr_wvegas *v, nr_u32 step)
{
	v->sum_us = 0;
	v->samples = 0;
	v->step = step;
}

/*
 * Congestion avoidance from now on, at any window. One packet of room is left, or two with
 * slow_start_at_ssthresh, and no round takes more.
 */
NR_INLINE void nr_wvegas_avoid(struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	nr_u32 below = p->cwnd > 3 ? p->cwnd - 2 : 1;

	if (below < p->ssthresh)
		nr_set_ssthresh(c, i, p, below);
}

NR_INLINE void nr_wvegas_set(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 cwnd)
{
	p->credit = 0;
	nr_set_cwnd(c, i, p, cwnd < 2 ? 2 : cwnd);
}

/* alpha_i, recomputed if the path queues that much. */
NR_INLINE nr_u64 nr_wvegas_alpha(const struct nr_conn *c, nr_u32 i, struct nr_wvegas *v,
				 nr_u64 diff)
{
	const struct nr_wvegas_params *of = nr_wvegas_params(c);
	nr_u64 least = (nr_u64)of->initial_alpha * NR_WVEGAS_ONE;
	nr_u64 alpha = v->alpha ? v->alpha : least;

	if (diff < alpha)
		return alpha;
	alpha = nr_wvegas_share(c, i, nr_coupled(c, i), of->total_alpha);
	if (alpha < least)
		alpha = least;
	v->alpha = (nr_u32)alpha;
	return alpha;
}

/* The queue has doubled: others fill it, or the base is not yet known. Let it drain. */
NR_INLINE void nr_wvegas_drain(NR_HOOK, nr_u64 diff)
{
	nr_u32 inflight = ev->inflight + ev->delivered;

	nr_set_ssthresh(c, i, p, p->cwnd - p->cwnd / 4);
	nr_wvegas_set(c, i, p,
		      (nr_u32)(((nr_u64)p->cwnd * NR_WVEGAS_ONE - diff) / 2 / NR_WVEGAS_ONE));
	if (inflight > p->cwnd)
		p->skip = inflight - p->cwnd;
	nr_wvegas(p)->queue = 0;
}

/* The end of a round: the step of the next one. */
NR_INLINE nr_u32 nr_wvegas_round(NR_HOOK)
{
	struct nr_wvegas *v = nr_wvegas(p);
	nr_u64 excess, diff, alpha, queue;

	if (v->samples <= 2)
		return NR_WVEGAS_UP;
	excess = v->sum_us - (nr_u64)v->base_us * v->samples;
	diff = nr_wvegas_part(p->cwnd, excess, v->sum_us);
	if (p->cwnd < p->ssthresh) {
		nr_u32 fits = p->cwnd - (nr_u32)((diff + NR_WVEGAS_ONE - 1) / NR_WVEGAS_ONE) + 1;

		if (diff <= (nr_u64)nr_wvegas_params(c)->gamma * NR_WVEGAS_ONE)
			return NR_WVEGAS_UP;
		nr_wvegas_set(c, i, p, fits < p->cwnd ? fits : p->cwnd);
		nr_wvegas_avoid(c, i, p);
		return NR_WVEGAS_STAY;
	}
	alpha = nr_wvegas_alpha(c, i, v, diff);
	queue = (excess << 8) / v->samples + 1; /* 0 is none */
	if (!v->queue || queue < v->queue)
		v->queue = queue;
	if (queue >= 2 * v->queue && diff >= 2 * (alpha + NR_WVEGAS_ONE)) {
		nr_wvegas_drain(NR_ARGS, diff);
		return NR_WVEGAS_STAY;
	}
	if (diff < alpha)
		return NR_WVEGAS_UP;
	if (diff < alpha + NR_WVEGAS_ONE)
		return NR_WVEGAS_STAY;
	nr_wvegas_avoid(c, i, p);
	v->least = p->cwnd > 3 ? p->cwnd - 1 : 2;
	return NR_WVEGAS_DOWN;
}

/* Each acknowledgement. In recovery only the base is measured; a round begins after it. */
NR_INLINE void nr_wvegas_acked(NR_HOOK)
{
	struct nr_wvegas *v = nr_wvegas(p);

	if (ev->rtt_us && (!v->base_us || ev->rtt_us < v->base_us))
		v->base_us = ev->rtt_us;
	if (ev->flags & NR_F_IN_RECOVERY)
		return nr_wvegas_begin(v, NR_WVEGAS_UP);
	if (ev->flags & NR_F_ROUND_START)
		nr_wvegas_begin(v, nr_wvegas_round(NR_ARGS));
	if (ev->rtt_us && v->samples < NR_WVEGAS_SAMPLES) {
		v->sum_us += ev->rtt_us;
		v->samples++;
	}
}

NR_INLINE void nr_wvegas_lost(NR_HOOK)
{
	nr_wvegas_begin(nr_wvegas(p), NR_WVEGAS_UP);
	nr_wvegas(p)->alpha = 0;
	nr_wvegas(p)->queue = 0;
}

NR_INLINE void nr_wvegas_restart(NR_HOOK)
{
	*nr_wvegas(p) = (struct nr_wvegas){0};
}

/* The step, in parts of a packet. */
NR_INLINE nr_s64 nr_wvegas_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	nr_s64 part = (nr_s64)nr_reno_credit(p->cwnd);

	switch (nr_wvegas(p)->step) {
	case NR_WVEGAS_UP:
		return part;
	case NR_WVEGAS_DOWN: /* once, however long the round is */
		return p->cwnd > nr_wvegas(p)->least ? -part : 0;
	default:
		return 0;
	}
}

NR_LAW(wvegas) = {
    .name = "wvegas",
    .code = "vegas",
    .about = "weighted Vegas: moves traffic to the paths with the shortest queues (delay-based)",
    .source = "Cao et al., ICNP 2012; draft-xu-mptcp-congestion-control-05",
    NR_TAKES(wvegas),
    .kind = NR_WINDOW,
    .couples = 1,
    .alone = 1,
    .by_time = 1,
    .state = sizeof(struct nr_wvegas),
    .credit = nr_wvegas_growth,
    .acked = nr_wvegas_acked,
    .lost = nr_wvegas_lost,
    .timeout = nr_wvegas_lost,
    .restart = nr_wvegas_restart,
};

#endif
