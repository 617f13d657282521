/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a path may use of its bandwidth, given the paths of its mask: the one place where a BBR law
 * is coupled. Policies, by the parameter bbr.share:
 *
 *   none       all of it on each path: N paths take N shares (Nguyen et al., U-MPBBR)
 *   han        a gain of (8 beta - 2) / 6 in the phases 2 to 7, beta_i = b_i max(b) / sum b^2:
 *              over a cycle the paths together send at the largest b. Where beta <= 1/4 the gain
 *              would not be positive and is 1: four equal paths and more are not coupled
 *              (Han et al., 2019; the formula by a public implementation)
 *   published  b_i / N in the phases 2 to 7: together (N + 3) / 4 of one flow over a cycle
 *              (Mahmud et al., C-MPBBR)
 *   group      the paths are one flow, as follows
 *
 * The group as one flow. What makes a BBR flow strong among others is how far its estimate exceeds
 * its share: as sum b > C, the bottleneck's queue is limited by the windows, and shares go by b.
 * The estimate exceeds the share s of the capacity by the probe, 5/4 / (1 + s/4), and by noise, of
 * which the filter keeps the largest. Both are larger for a small flow: N paths with estimates of
 * their own are N flows. So the paths of a group have one estimate, one cycle and one window:
 *
 *   B     the largest sum of the paths' newest delivery rates, of 10 rounds
 *   b_i   each path's own estimate as without a group: full, as nothing of it is divided
 *   w_i   b_i / sum b, its part
 *   rate  B w_i: if the paths are not behind one bottleneck after all, B is sum b, and this is b_i
 *
 * They probe together, as the sum would not see a quarter more if they took turns: the first path
 * in ProbeBW leads, the others take over its phase. They go into ProbeRTT together, as one alone
 * drains only its own part of the queue. Packets are conserved by all when they are by one, as one
 * flow would with all it has in flight. Room in windows that does not depend on the bandwidth is
 * for the group and divided: three bursts, two packets to probe, and the pair of packets which
 * every path sees acknowledged at once.
 *
 * This is not greno's group (c/group.h), where an event on one path cuts the window of each: here
 * there is no window to cut, the estimate is what the paths share.
 *
 * Equal round trips are assumed: a phase is as long as the leader's.
 *
 * Published: word[0] counts whole ProbeBW cycles (NR_CYCLES, for btlbw; above it: close.h); word[1]
 * is the newest delivery rate in 64 bytes/s (26 bits, up to 4.3 GB/s), and in the low bits whether
 * packets are conserved, whether the sample is limited, and the phase of ProbeBW, 8 outside it, 9
 * in ProbeRTT.
 */
#ifndef NARROWS_BBR_SHARE_H
#define NARROWS_BBR_SHARE_H

#include "state.h"

enum nr_share {
	NR_SHARE_NONE = 0,
	NR_SHARE_HAN,
	NR_SHARE_PUBLISHED,
	NR_SHARE_GROUP,
};

#define NR_BBR_PARAMS(P)                                                                           \
	P(share, share, SHARE, 3, 0, 3, "what coupled paths may use of their bandwidth",           \
	  "laws/bbr/share.h; C-MPBBR, section III; Han et al., 2019")                              \
	P(close, close, RATIO, 0, 0, 1,                                                            \
	  "advise the slowest path as backup while all deliver less than this part of the best",   \
	  "laws/bbr/close.h; C-MPBBR, section III-D: 0.4 or 0.6")
NR_LAW_PARAMETERS(bbr, NR_BBR_PARAMS);

#define NR_BBR_PART 65536u /* all of a group's */
/* In word[1]. */
#define NR_BBR_NO_PHASE 8u
#define NR_BBR_IN_PROBE_RTT 9u
#define NR_BBR_CODE 15u
#define NR_BBR_LIMITED 16u
#define NR_BBR_CONSERVES 32u
#define NR_BBR_RATE_BITS 6  /* the rate is above these, */
#define NR_BBR_RATE_SHIFT 2 /* in 4 of the law's units */
/* A path goes into ProbeRTT with another if its smallest RTT is at least half as old as it may be.
 */
#define NR_BBR_JOIN_MS (NR_BBR_MIN_RTT_MS / 2)
#define NR_BBR_LATE_MS 40u /* acknowledgements are delayed by so much */
#define NR_BBR_PAIR 2u	   /* packets that a receiver acknowledges at once */

/* Publishes the path's phase, and the newest rate if it is not 0. */
NR_INLINE void nr_bbr_publish(struct nr_conn *c, nr_u32 i, const struct nr_bbr *b, nr_u32 rate)
{
	struct nr_path *line = &c->path[i & 7];
	nr_u32 most = 0xffffffffu >> NR_BBR_RATE_BITS, code = NR_BBR_NO_PHASE;

	rate >>= NR_BBR_RATE_SHIFT;
	rate = rate < most ? rate : most;
	if (!rate)
		rate = line->word[1] >> NR_BBR_RATE_BITS;
	if (b->mode == NR_BBR_PROBE_BW)
		code = b->phase;
	else if (b->mode == NR_BBR_PROBE_RTT)
		code = NR_BBR_IN_PROBE_RTT;
	NR_WRITE(line->word[1], rate << NR_BBR_RATE_BITS | (b->conserve ? NR_BBR_CONSERVES : 0) |
				    (b->limited ? NR_BBR_LIMITED : 0) | code);
}

/* A phase of ProbeBW begins. word[0] counts whole cycles. */
NR_INLINE void nr_bbr_enter(NR_HOOK, nr_u32 phase)
{
	struct nr_bbr *b = nr_bbr(p);
	struct nr_path *line = &c->path[i & 7];

	if (phase == 0) {
		if (b->whole && b->phase == NR_BBR_PHASES - 1)
			NR_WRITE(line->word[0],
				 (line->word[0] & ~NR_CYCLES) | ((line->word[0] + 1) & NR_CYCLES));
		b->whole = 1;
	} else if (phase < b->phase) {
		b->whole = 0; /* it jumped back, into a cycle that another began */
	}
	b->phase = phase;
	b->cycle_us = (nr_u32)ev->now_us;
}

/* What the paths of a mask say; bandwidths in 16 bytes/s. */
struct nr_bbr_group {
	nr_u32 paths;	      /* with a bandwidth */
	nr_u32 leader;	      /* the first in ProbeBW that is heard; NR_MAX_PATHS: none */
	nr_u32 probing;	      /* paths in ProbeBW */
	nr_u32 said;	      /* NR_BBR_LIMITED, NR_BBR_CONSERVES of any other that is heard */
	nr_u32 resting;	      /* another is in ProbeRTT */
	nr_u64 sum;	      /* of the estimates */
	nr_u64 rates;	      /* of the newest delivery rates */
	nr_u32 best;	      /* the largest estimate */
	struct nr_fx squares; /* the sum of their squares */
};

/* Has a path had an event within two round trips? One that stalls must not hold the others. */
NR_INLINE int nr_bbr_heard(const struct nr_path *line, nr_u32 now)
{
	nr_u32 most = NR_READ(line->srtt8_us) / 4000 + NR_BBR_LATE_MS;

	return now - NR_READ(line->seen_ms) + NR_AHEAD_MS <= most + NR_AHEAD_MS;
}

NR_NOINLINE int nr_bbr_read(const struct nr_conn *c, nr_u32 i, nr_u32 set, struct nr_bbr_group *g)
{
	nr_u32 now, heard;

	if (!c || !g)
		return 0;
	now = NR_READ(c->path[i & 7].seen_ms);
	*g = (struct nr_bbr_group){.leader = NR_MAX_PATHS, .squares = nr_fx(0)};
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 bw = set >> j & 1 ? nr_bbr_unit(NR_READ(c->path[j].bw)) : 0;
		nr_u32 word = NR_READ(c->path[j].word[1]), code = word & NR_BBR_CODE;

		if (!bw)
			continue;
		g->paths++;
		g->sum += bw;
		g->rates += (nr_u64)(word >> NR_BBR_RATE_BITS) << NR_BBR_RATE_SHIFT;
		g->best = bw > g->best ? bw : g->best;
		g->squares = nr_fx_add(g->squares, nr_fx((nr_u64)bw * bw));
		heard = nr_bbr_heard(&c->path[j], now);
		if (code < NR_BBR_NO_PHASE) {
			g->probing++;
			g->leader = heard && j < g->leader ? j : g->leader;
		}
		if (j == i)
			continue;
		g->said |= heard ? word : 0;
		if (code == NR_BBR_IN_PROBE_RTT)
			g->resting++;
	}
	return 1;
}

/* Han: the gain of cruising, Q8. */
NR_INLINE nr_u32 nr_bbr_han(nr_u32 own, const struct nr_bbr_group *g)
{
	struct nr_fx beta = nr_fx_div(nr_fx((nr_u64)own * g->best), g->squares);
	nr_u32 beta8 = (nr_u32)nr_fx_fixed(beta, 8);

	/* All paths must have an estimate, and beta be above 1/4. */
	if (g->probing + g->resting < g->paths || 8 * beta8 <= 2 * NR_BBR_ONE)
		return NR_BBR_ONE;
	beta8 = (8 * beta8 - 2 * NR_BBR_ONE) / (NR_BBR_PHASES - 2);
	return beta8 < NR_BBR_ONE ? beta8 : NR_BBR_ONE;
}

/* The group as one flow. `fresh`: the path has a new sample of its rate. */
NR_INLINE void nr_bbr_one_flow(NR_HOOK, const struct nr_bbr_group *g, int fresh)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 own = nr_max(&b->bw);
	nr_u32 rates = g->rates < 0xffffffffu ? (nr_u32)g->rates : 0xffffffffu, phase;
	int limited = b->limited || (g->said & NR_BBR_LIMITED);

	if (fresh && (!limited || rates >= nr_max(&b->group)))
		nr_max_sample(&b->group, NR_BBR_BW_ROUNDS, b->round, rates);
	b->hold = !!(g->said & NR_BBR_CONSERVES);
	b->joins = !!g->resting;
	if (g->leader < NR_MAX_PATHS && g->leader != i && b->mode == NR_BBR_PROBE_BW) {
		b->follows = 1;
		phase = NR_READ(c->path[g->leader & 7].word[1]) & NR_BBR_CODE;
		if (phase < NR_BBR_PHASES && phase != b->phase)
			nr_bbr_enter(NR_ARGS, phase);
	}
	if (b->mode != NR_BBR_STARTUP) {
		b->part = (nr_u32)(own * NR_BBR_PART / g->sum);
		b->use = (nr_u32)(nr_max(&b->group) * own / g->sum);
		if (limited && b->use > own) /* sums grow old where samples do not count */
			b->use = (nr_u32)own;
	}
}

/* What the path may use now, after its sample. */
NR_NOINLINE int nr_bbr_share(NR_HOOK, int fresh)
{
	struct nr_bbr_group g;
	struct nr_bbr *b;
	nr_u32 share, own;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	share = nr_bbr_params(c)->share;
	own = nr_max(&b->bw);
	b->use = own;
	b->part = NR_BBR_PART;
	b->cruise = NR_BBR_ONE;
	b->follows = 0;
	b->joins = 0;
	b->hold = 0;
	if (share == NR_SHARE_NONE || !own)
		return 0;
	if (!nr_bbr_read(c, i, nr_coupled(c, i), &g) || g.paths < 2) {
		b->group = b->bw; /* for when there is a group */
		return 0;
	}
	if (share == NR_SHARE_HAN)
		b->cruise = nr_bbr_han(own, &g);
	else if (share == NR_SHARE_GROUP)
		nr_bbr_one_flow(NR_ARGS, &g, fresh);
	else if (b->mode == NR_BBR_PROBE_BW && b->phase >= 2)
		b->use = own / g.paths;
	return 1;
}

/* Room that one flow needs, of which a path of a group has its part; rounded up. */
NR_INLINE nr_u32 nr_bbr_room(const struct nr_bbr *b, nr_u32 packets)
{
	return (nr_u32)(((nr_u64)packets * b->part + NR_BBR_PART - 1) / NR_BBR_PART);
}

/* The bandwidth to send at, 16 bytes/s. */
NR_INLINE nr_u32 nr_bbr_bw(struct nr_private *p)
{
	struct nr_bbr *b = nr_bbr(p);

	return b->lt_use ? b->lt_bw : b->use;
}

/* The pacing gain of ProbeBW's phase. */
NR_INLINE nr_u32 nr_bbr_phase_gain(const struct nr_bbr *b)
{
	return b->phase == 0 ? NR_BBR_UP : b->phase == 1 ? NR_BBR_DOWN : b->cruise;
}

NR_INLINE nr_u32 nr_bbr_pacing_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_DRAIN:
		return NR_BBR_DRAIN_GAIN;
	case NR_BBR_PROBE_BW:
		return b->lt_use ? NR_BBR_ONE : nr_bbr_phase_gain(b);
	default:
		return NR_BBR_ONE;
	}
}

NR_INLINE nr_u32 nr_bbr_cwnd_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
	case NR_BBR_DRAIN: /* the window must not stop what pacing lets out */
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_PROBE_BW:
		return NR_BBR_CWND_GAIN;
	default:
		return NR_BBR_ONE;
	}
}

#endif
