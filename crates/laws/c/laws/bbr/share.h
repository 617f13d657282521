/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a path may use of its bandwidth, given the paths of its mask: the one place where a BBR law
 * is coupled. Policies, by the parameter bbr.share
 * (version 3: bbr3.share), with the phases of version 1:
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
 * drains only its own part of the queue. While one conserves packets no window grows. Room in
 * windows that does not depend on the bandwidth is for the group and divided: three bursts, two
 * packets to probe, and what every path sees acknowledged at once, 3 1/4 packets more than all
 * together would. As shares go by windows, and the largest of sums exceeds its share by less than
 * the largest of one flow's rates, the group's window is 3 % larger. Both numbers are measured:
 * they make 2 to 5 paths one flow with single packets and with bursts of two.
 *
 * This is not greno's group (c/group.h), where an event on one path cuts the window of each: here
 * there is no window to cut, the estimate is what the paths share.
 *
 * Equal round trips are assumed: a phase is as long as the leader's.
 *
 * Version 3 has the same policies in its CRUISE, which is nearly all of a cycle: Han's gain is beta
 * there. In its group the window of B's maximum is two cycles; the leader says when to probe; a
 * probe that meets congestion on one path has met it on all; and losses on one cut the short-term
 * bounds of all, for which the bit is published that says in version 1 that packets are conserved.
 * Each path has its own bounds, which grow in a probe by what one flow's would.
 *
 * Published: word[0] counts whole ProbeBW cycles (NR_CYCLES, for btlbw; above it: close.h); word[1]
 * is the newest delivery rate in 128 bytes/s (25 bits, up to 4.3 GB/s), and in the low bits whether
 * a probe met congestion (version 3), whether packets are conserved, whether the sample is limited,
 * and the phase of ProbeBW, 8 outside it, 9 in ProbeRTT.
 */
#ifndef NARROWS_BBR_SHARE_H
#define NARROWS_BBR_SHARE_H

#ifndef NARROWS_BBR_STATE3_H /* version 3 has included its state, and nr_bbr_follow */
#include "state.h"
#endif

/* In word[1], beside NR_PHASE. */
#define NR_BBR_LIMITED 16u
#define NR_BBR_CONSERVES 32u
#define NR_BBR_TOO_HIGH 64u
#define NR_BBR_RATE_BITS 7		       /* the rate is above these, */
#define NR_BBR_RATE_SHIFT 3		       /* in 8 of the law's units */
#define NR_BBR_LATE_MS 40u		       /* acknowledgements are delayed by so much */
#define NR_BBR_WINDOW (103 * NR_BBR_ONE / 100) /* a group's window over that of one flow, Q8 */

/* Publishes the path's phase, the newest rate if it is not 0, and `flags`: NR_BBR_CONSERVES,
 * NR_BBR_TOO_HIGH. */
NR_INLINE void nr_bbr_publish(struct nr_conn *c, nr_u32 i, const struct nr_bbr *b, nr_u32 rate,
			      nr_u32 flags)
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
		code = NR_IN_PROBE_RTT;
	NR_WRITE(line->word[1],
		 rate << NR_BBR_RATE_BITS | flags | (b->limited ? NR_BBR_LIMITED : 0) | code);
}

/* After a timeout: it says nothing to a group until it is acknowledged. */
NR_INLINE void nr_bbr_publish_silence(struct nr_conn *c, nr_u32 i)
{
	nr_u32 word = c->path[i & 7].word[1];

	word &= ~((1u << NR_BBR_RATE_BITS) - 1);
	NR_WRITE(c->path[i & 7].word[1], word | NR_BBR_NO_PHASE);
}

/* What the paths of a mask say; bandwidths in 16 bytes/s. */
struct nr_bbr_group {
	nr_u32 paths;	      /* with a bandwidth */
	nr_u16 leader;	      /* the first in ProbeBW that is live; NR_MAX_PATHS: none */
	nr_u16 lead;	      /* and its phase */
	nr_u32 probing;	      /* paths in ProbeBW */
	nr_u32 flags;	      /* NR_BBR_LIMITED, NR_BBR_CONSERVES of any other that is live */
	nr_u32 others;	      /* the phases of the others that are live, as bits; NR_BBR_MET */
	nr_u32 resting;	      /* another is in ProbeRTT */
	nr_u64 sum;	      /* of the estimates */
	nr_u64 rates;	      /* of the newest delivery rates */
	nr_u32 best;	      /* the largest estimate */
	struct nr_fx squares; /* the sum of their squares */
};

/* Has a path had an event within two round trips? One that stalls must not hold the others. */
NR_INLINE int nr_bbr_is_live(const struct nr_path *line, nr_u32 now)
{
	nr_u32 most = NR_READ(line->srtt8_us) / 4000 + NR_BBR_LATE_MS;

	return now - NR_READ(line->seen_ms) + NR_AHEAD_MS <= most + NR_AHEAD_MS;
}

NR_NOINLINE int nr_bbr_read(const struct nr_conn *c, nr_u32 i, nr_u32 set, struct nr_bbr_group *g)
{
	nr_u32 now, live;

	if (!c || !g)
		return 0;
	now = NR_READ(c->path[i & 7].seen_ms);
	*g = (struct nr_bbr_group){.leader = NR_MAX_PATHS, .squares = nr_fx(0)};
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 bw = set >> j & 1 ? nr_bbr_unit(NR_READ(c->path[j].bw)) : 0;
		nr_u32 word = NR_READ(c->path[j].word[1]), code = word & NR_PHASE;

		if (!bw)
			continue;
		g->paths++;
		g->sum += bw;
		g->rates += (nr_u64)(word >> NR_BBR_RATE_BITS) << NR_BBR_RATE_SHIFT;
		g->best = bw > g->best ? bw : g->best;
		g->squares = nr_fx_add(g->squares, nr_fx((nr_u64)bw * bw));
		live = nr_bbr_is_live(&c->path[j], now);
		if (code < NR_BBR_NO_PHASE) {
			g->probing++;
			if (live && g->leader == NR_MAX_PATHS) {
				g->leader = (nr_u16)j;
				g->lead = (nr_u16)code;
			}
		}
		if (j == i)
			continue;
		if (live) {
			g->flags |= word;
			g->others |= 1u << code | (word & NR_BBR_TOO_HIGH ? NR_BBR_MET : 0);
		}
		if (code == NR_IN_PROBE_RTT)
			g->resting++;
	}
	return 1;
}

/* Han: the gain of cruising, Q8. */
NR_INLINE nr_u32 nr_bbr_han(nr_u32 own, const struct nr_bbr_group *g)
{
	struct nr_fx beta = nr_fx_div(nr_fx((nr_u64)own * g->best), g->squares);
	nr_u32 gain = nr_bbr_cruise_gain((nr_u32)nr_fx_fixed(beta, 8));

	/* All paths must have an estimate. */
	if (g->probing + g->resting < g->paths || !gain)
		return NR_BBR_ONE;
	return gain < NR_BBR_ONE ? gain : NR_BBR_ONE;
}

/* The group as one flow. `fresh`: the path has a new sample of its rate. Returns the path's part of
 * the sum of the newest rates. */
NR_INLINE nr_u32 nr_bbr_one_flow(NR_HOOK, const struct nr_bbr_group *g, int fresh)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 own = nr_bbr_own(b);
	nr_u32 rates = g->rates < 0xffffffffu ? (nr_u32)g->rates : 0xffffffffu;
	nr_u32 lead = NR_BBR_NO_PHASE;
	int limited = b->limited || (g->flags & NR_BBR_LIMITED);

	if (fresh && (!limited || rates >= nr_bbr_group_bw(b)))
		nr_bbr_group_sample(b, rates);
	b->hold = !!(g->flags & NR_BBR_CONSERVES);
	b->joins = !!g->resting;
	if (g->leader < NR_MAX_PATHS && g->leader != i)
		lead = g->lead;
	nr_bbr_follow(NR_ARGS, lead, g->others);
	if (b->mode != NR_BBR_STARTUP) {
		b->part = (nr_u32)(own * NR_BBR_PART / g->sum);
		b->part = b->part ? b->part : 1; /* windows are divided by it */
		b->use = (nr_u32)((nr_u64)nr_bbr_group_bw(b) * own / g->sum);
		if (limited && b->use > own) /* sums grow old where samples do not count */
			b->use = (nr_u32)own;
	}
	return (nr_u32)((nr_u64)rates * own / g->sum);
}

/* What the path may use now, after its sample. Returns nr_bbr_one_flow, 0 if there is no group. */
NR_NOINLINE nr_u32 nr_bbr_share(NR_HOOK, int fresh)
{
	struct nr_bbr_group g;
	struct nr_bbr *b;
	nr_u32 share, own, set;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	share = nr_bbr_params(c)->share;
	own = nr_bbr_own(b);
	b->use = own;
	b->part = NR_BBR_PART;
	b->cruise = NR_BBR_ONE;
	b->follows = 0;
	b->joins = 0;
	b->hold = 0;
	if (share == NR_SHARE_NONE || !own)
		return 0;
	set = nr_coupled(c, i);
	if (!(set & (set - 1)) || !nr_bbr_read(c, i, set, &g) || g.paths < 2) {
		nr_bbr_group_none(b);
		return 0;
	}
	if (share == NR_SHARE_HAN)
		b->cruise = nr_bbr_han(own, &g);
	else if (share == NR_SHARE_GROUP)
		return nr_bbr_one_flow(NR_ARGS, &g, fresh);
	else if (nr_bbr_cruises(b))
		b->use = own / g.paths;
	return 0;
}

/* Room that one flow needs, of which a path of a group has its part; rounded up. */
NR_INLINE nr_u32 nr_bbr_room(const struct nr_bbr *b, nr_u32 packets)
{
	return (nr_u32)(((nr_u64)packets * b->part + NR_BBR_PART - 1) / NR_BBR_PART);
}

#endif
