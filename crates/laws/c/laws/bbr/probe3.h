/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probe for bandwidth of version 3: its phases, and how a path of a group follows another's. */
#ifndef NARROWS_BBR_PROBE3_H
#define NARROWS_BBR_PROBE3_H

#include "bounds3.h"

/* Time between probes: long enough for a Reno flow of 25 Mbit/s and 30 ms to grow from one BDP to
 * two, short enough to find free bandwidth in the time of a click; drawn, so that flows mix. */
#define NR_BBR_WAIT_MS 2000u
#define NR_BBR_WAIT_DRAWN_MS 1000u

/* [StartProbeBW_DOWN] */
NR_INLINE void nr_bbr_start_down(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 drawn = nr_bbr_random(i, ev);

	if (nr_bbr_in(b, NR_BBR_PHASE_UP))
		NR_WRITE(c->path[i & 7].word[0], (c->path[i & 7].word[0] + 1) & NR_CYCLES);
	b->mode = NR_BBR_PROBE_BW;
	b->phase = NR_BBR_PHASE_DOWN;
	b->lossy = 0;
	b->ecn = 0;
	b->bw_latest = 0;
	b->latest = 0;
	b->rounds = drawn & 1;
	b->wait_ms = (nr_u16)(NR_BBR_WAIT_MS + (drawn >> 1) % NR_BBR_WAIT_DRAWN_MS);
	b->cycle_ms = nr_now_ms(ev);
	b->stopping = 1;
	nr_bbr_start_round(b);
}

/* [StartProbeBW_REFILL] */
NR_INLINE void nr_bbr_start_refill(struct nr_bbr *b)
{
	nr_bbr_reset_short(b);
	b->phase = NR_BBR_PHASE_REFILL;
	b->up_rounds = 0;
	b->up_acked = 0;
	b->cautious = 0;
	b->stopping = 0;
	nr_bbr_start_round(b);
}

/* [StartProbeBW_UP] */
NR_INLINE void nr_bbr_start_up(struct nr_bbr *b, nr_u32 rate)
{
	b->phase = NR_BBR_PHASE_UP;
	b->sample = 1;
	b->up_rounds = 1;
	nr_bbr_reset_full(b, rate);
	nr_bbr_start_round(b);
}

/* A probe has met congestion with so much in flight. [HandleInflightTooHigh] */
NR_INLINE void nr_bbr_too_high(NR_HOOK, nr_u32 inflight)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 least = nr_bbr_percent(nr_bbr_target(c, i, p), NR_BBR_BETA_PERCENT);

	b->too_high = 1;
	b->sample = 0; /* once a probe */
	if (!b->limited)
		b->inflight_long = nr_bbr_max(nr_bbr_max(inflight, least), NR_BBR_MIN_CWND);
	if (nr_bbr_in(b, NR_BBR_PHASE_UP)) {
		b->undo = NR_BBR_UNDO_UP;
		nr_bbr_start_down(NR_ARGS);
	}
}

/*
 * In a group the leader (`lead` is its phase, NR_BBR_NO_PHASE if it is this path) says when to
 * probe. A probe that ends for one is over for all; if by congestion, all have met it.
 */
NR_INLINE void nr_bbr_follow(NR_HOOK, nr_u32 lead, nr_u32 others)
{
	struct nr_bbr *b = nr_bbr(p);
	int down = lead == NR_BBR_PHASE_DOWN || lead == NR_BBR_PHASE_CRUISE;

	b->follows = lead < NR_BBR_PHASES;
	if (b->mode != NR_BBR_PROBE_BW)
		return;
	if (!b->follows)
		down = b->phase == NR_BBR_PHASE_UP && (others >> NR_BBR_PHASE_DOWN & 1);
	if (b->phase == NR_BBR_PHASE_REFILL || b->phase == NR_BBR_PHASE_UP) {
		if (down && (others & NR_BBR_MET) && b->sample) {
			nr_bbr_too_high(NR_ARGS, nr_bbr_sent_with(b, ev));
		} else if (down) {
			b->too_high = 0;
			nr_bbr_start_down(NR_ARGS);
		}
	} else if (lead == NR_BBR_PHASE_REFILL) {
		nr_bbr_start_refill(b);
	}
}

#endif
