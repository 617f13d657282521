/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR, version 3: the model of version 1, bounded by what losses and ECN marks have shown, and
 * fewer probes, so that CUBIC and Reno keep a share of short buffers.
 *
 *   bw        the largest delivery rate of two ProbeBW cycles, at most bw_short
 *   min_rtt   the smallest RTT of 10 s; every 5 s half a BDP for 200 ms
 *   pacing    gain * bw, less 1 %
 *   cwnd      gain * bw * min_rtt and room for late acknowledgements, at most inflight_long, which
 *             15 % of are left to others while not probing, and inflight_short
 *
 * Source: draft-ietf-ccwg-bbr of August 2026; what it leaves to implementations (the response to
 * ECN, losses apart in Startup, at most 100 ms of aggregation) by Google's tcp_bbr.c, version 3
 * (github.com/google/bbr, branch v3), as said where it is. Constants with their derivation are in
 * laws/bbr/: state3.h (gains), bounds3.h (losses and marks), probe3.h, phases3.h.
 *
 * Coupled: laws/bbr/share.h, with version 1. Of a group one path says when to probe, and losses of
 * one count for all.
 * Units: bandwidth in 16 bytes/s, windows in packets.
 * Valid: 80 bytes/s to 68 GB/s, RTTs to 30 minutes.
 * Departures from the draft: what was in flight when a packet was sent is what was delivered and
 * lost since (bounds3.h); losses are counted from the first of a round; those that come with
 * samples of ProbeRTT cut no bound; an undo forgets the short-term bounds; aggregation remembers 5
 * to 10 rounds also in Startup; the response to ECN, at any RTT.
 */
#ifndef NARROWS_LAW_BBR3_H
#define NARROWS_LAW_BBR3_H

#include "bbr/phases3.h"
#include "bbr/pace.h"

NR_INLINE void nr_bbr_acked(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 losses = b->losses, rate, part;

	b->losses = 0;
	b->delivered += ev->delivered;
	nr_bbr_lost(NR_ARGS, losses);
	rate = nr_bbr_sample(NR_ARGS);
	nr_bbr_publish(c, i, b, rate, nr_bbr_says(b));
	part = nr_bbr_share(NR_ARGS, rate > 0);
	if (rate)
		rate = nr_bbr_latest(NR_ARGS, part);
	nr_bbr_marked(NR_ARGS);
	nr_bbr_cut_short(p);
	nr_bbr_aggregation(NR_ARGS, NR_BBR_EXTRA_ROUNDS);
	nr_bbr_plateau(b, rate);
	nr_bbr_startup(NR_ARGS);
	nr_bbr_drain(NR_ARGS);
	nr_bbr_cycle(NR_ARGS, rate);
	nr_bbr_min_rtt(NR_ARGS);
	nr_bbr_loss_round(b, ev, rate);
	nr_bbr_publish(c, i, b, 0, nr_bbr_says(b));
	nr_bbr_set_pace(NR_ARGS, nr_bbr_pacing_gain(b));
	nr_bbr_set_cwnd(NR_ARGS);
}

/* Losses were none: the bounds, and the probe that they ended, come back. */
NR_INLINE void nr_bbr_undo_losses(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	b->losses = 0;
	b->round_lost = 0;
	b->loss_acks = 0;
	b->lossy = 0;
	nr_bbr_reset_full(b, 0);
	nr_bbr_reset_short(b);
	b->inflight_long = nr_bbr_max(b->inflight_long, b->undo_long);
	if (b->undo == NR_BBR_UNDO_STARTUP && b->mode != NR_BBR_STARTUP) {
		b->full = 0;
		if (b->mode != NR_BBR_PROBE_RTT)
			b->mode = NR_BBR_STARTUP;
	} else if (b->undo == NR_BBR_UNDO_UP && b->mode == NR_BBR_PROBE_BW &&
		   b->phase != NR_BBR_PHASE_UP) {
		nr_bbr_start_refill(b);
	}
	b->undo = NR_BBR_UNDO_NONE;
}

/* Recovery is over: the window of before, within the bounds. */
NR_INLINE void nr_bbr_recovered(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (b->recovery != NR_BBR_OPEN)
		nr_bbr_restore_cwnd(NR_ARGS);
	b->recovery = NR_BBR_OPEN;
	nr_set_cwnd(c, i, p, nr_bbr_bound(b, p->cwnd));
}

NR_INLINE void nr_bbr_event(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	b->losses = nr_bbr_sum16(b->losses, ev->lost);
	b->marked = nr_bbr_sum16(b->marked, ev->marked);
	if (ev->marked)
		b->ecn = 1;
	switch (ev->kind) {
	case NR_JOINED:
		b->min_rtt_us = ev->srtt8_us / 8 ? ev->srtt8_us / 8 : NR_BBR_NO_RTT;
		b->rest_us = b->min_rtt_us;
		b->min_rtt_ms = nr_now_ms(ev);
		b->rest_ms = b->min_rtt_ms;
		b->epoch_us = (nr_u32)ev->now_us;
		b->inflight_long = NR_BBR_ANY;
		nr_bbr_reset_short(b);
		nr_bbr_save_bounds(b);
		b->alpha = NR_BBR_ONE; /* so that the first marks count in full */
		b->part = NR_BBR_PART;
		b->cruise = NR_BBR_ONE;
		nr_bbr_first_pace(NR_ARGS);
		break;
	case NR_ACKED:
		nr_bbr_acked(NR_ARGS);
		break;
	case NR_RECOVERY:
		nr_bbr_save_cwnd(p);
		nr_bbr_save_bounds(b);
		b->recovery = NR_BBR_RECOVERY;
		break;
	case NR_RECOVERED:
		nr_bbr_recovered(NR_ARGS);
		break;
	case NR_UNDO:
		nr_bbr_undo_losses(NR_ARGS);
		nr_bbr_recovered(NR_ARGS);
		break;
	case NR_TIMEOUT: /* the losses are of what was in flight with the window of before */
		nr_bbr_lost(NR_ARGS, b->losses);
		b->losses = 0;
		nr_bbr_save_cwnd(p);
		b->recovery = NR_BBR_LOSS;
		nr_bbr_publish_silence(c, i);
		nr_set_cwnd(c, i, p, ev->inflight + 1);
		break;
	case NR_RESTART:
		nr_bbr_restart(NR_ARGS);
		break;
	default: /* NR_ECN: marks are counted above */
		break;
	}
}

NR_LAW(bbr3) = {
    .name = "bbr3",
    .code = "bbr3",
    .about = "BBR that losses and ECN marks bound, and that probes less often",
    .source = "draft-ietf-ccwg-bbr (August 2026)",
    NR_TAKES(bbr),
    .kind = NR_MODEL,
    .couples = 1,
    .state = sizeof(struct nr_bbr),
    .event = nr_bbr_event,
};

#endif
