/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What losses and ECN marks say: bounds of what may be in flight, and of the bandwidth.
 *
 *   inflight_long   the most in flight without congestion while probing; met in a probe, it falls
 *                   to what was in flight then, at most by 0.7 as CUBIC's window
 *   inflight_short  since the last probe: what was delivered in the last round, at most by 0.7 less
 *   bw_short        a round; by ECN 1 - alpha/3 of it
 *
 * Congestion while probing is more than 2 % lost of what was in flight when the sample's packet was
 * sent, or more than half marked in a round. The draft leaves the response to marks open; alpha,
 * the shares 1/3 and 1/2, and the two rounds in Startup are those of Google's tcp_bbr.c, version 3,
 * which has them only at RTTs below 5 ms, where all marks are from shallow thresholds. Here at
 * any RTT: a sender that says it understands ECN must slow down for marks (section 3.7 of the
 * draft). An echo as by RFC 3168 marks a round trip of acknowledgements for each mark: alpha is
 * then the share of rounds with a mark.
 *
 * The kernel cannot say what was in flight when a packet was sent. In order it is what was
 * delivered or lost since, so that is taken.
 */
#ifndef NARROWS_BBR_BOUNDS3_H
#define NARROWS_BBR_BOUNDS3_H

#include "state3.h"
#include "volume.h"

#define NR_BBR_LOSS_RATE 50u /* a loss of so many is 2 %: what short buffers and policers cause */
#define NR_BBR_BETA_PERCENT 70u
#define NR_BBR_LOSS_ACKS 6u	    /* Startup: so many losses apart are not a burst's */
#define NR_BBR_HEADROOM_PERCENT 15u /* of inflight_long, left to others */
#define NR_BBR_ALPHA_ROUNDS 16u	    /* alpha: weight of the rounds before */
#define NR_BBR_ECN_CUT 3u
#define NR_BBR_ECN_HALF (NR_BBR_ONE / 2)
#define NR_BBR_ECN_ROUNDS 2u

NR_INLINE nr_u32 nr_bbr_max(nr_u32 a, nr_u32 b)
{
	return a > b ? a : b;
}

NR_INLINE nr_u32 nr_bbr_min(nr_u32 a, nr_u32 b)
{
	return a < b ? a : b;
}

/* A count of 16 bits, which stays at its largest value. */
NR_INLINE nr_u16 nr_bbr_sum16(nr_u32 count, nr_u32 more)
{
	return (nr_u16)nr_bbr_min(count + nr_bbr_min(more, 0xffff), 0xffff);
}

NR_INLINE nr_u32 nr_bbr_percent(nr_u32 of, nr_u32 percent)
{
	return (nr_u32)((nr_u64)of * percent / 100);
}

/* What is wanted in flight: the BDP, unless congestion has cut the window. */
NR_INLINE nr_u32 nr_bbr_target(const struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	return nr_bbr_min(nr_bbr_bdp(c, i, p, nr_bbr_bw(p), NR_BBR_ONE), p->cwnd);
}

/* What was in flight when the sample's packet was sent. */
NR_INLINE nr_u32 nr_bbr_sent_with(const struct nr_bbr *b, const struct nr_event *ev)
{
	if (!ev->sample_delivered) /* no sample: after a timeout */
		return ev->inflight + ev->delivered + b->round_lost;
	return (b->flight ? b->flight : ev->sample_delivered) + b->round_lost;
}

NR_INLINE int nr_bbr_loses(const struct nr_bbr *b, nr_u32 inflight)
{
	return b->round_lost * NR_BBR_LOSS_RATE > inflight;
}

/*
 * The delivery rate of the newest sample, and what was in flight, for the largest of the loss
 * round. In a group they are the path's part of the sum of all, as the largest of few packets are
 * too large: `part` is that rate, 0 without a group. Returns the rate.
 */
NR_NOINLINE nr_u32 nr_bbr_latest(NR_HOOK, nr_u32 part)
{
	struct nr_bbr *b;
	nr_u64 flight;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	flight = part ? nr_bbr_bytes(part, ev->rtt_us) / nr_bbr_mss(c, i) : 0;
	b->flight = flight < NR_CWND_MAX ? (nr_u32)flight : NR_CWND_MAX;
	part = part ? part : nr_bbr_unit(ev->rate);
	b->bw_latest = nr_bbr_max(b->bw_latest, part);
	b->latest = nr_bbr_max(b->latest, b->flight ? b->flight : ev->sample_delivered);
	return part;
}

/* inflight_long less headroom. */
NR_INLINE nr_u32 nr_bbr_with_headroom(const struct nr_bbr *b)
{
	nr_u32 room = nr_bbr_max(nr_bbr_percent(b->inflight_long, NR_BBR_HEADROOM_PERCENT), 1);

	if (b->inflight_long == NR_BBR_ANY)
		return NR_BBR_ANY;
	return nr_bbr_max(b->inflight_long - room, NR_BBR_MIN_CWND);
}

/* What an undo brings back. */
NR_INLINE void nr_bbr_save_bounds(struct nr_bbr *b)
{
	b->undo = NR_BBR_UNDO_NONE;
	b->undo_long = b->inflight_long;
}

/* The estimate of the path's share of a full pipe, by losses or marks in Startup. */
NR_INLINE void nr_bbr_startup_too_high(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 bdp = nr_bbr_bdp(c, i, p, nr_bbr_own(b), NR_BBR_ONE);

	b->full = 1;
	b->inflight_long = nr_bbr_max(bdp, b->latest);
}

/*
 * The end of a round of losses while not probing: down to what is delivered; but not to what
 * ProbeRTT let through, for which the draft resets these bounds at its end. A path of a group does
 * so, too, where another has losses, as one flow would with all it has in flight.
 */
NR_NOINLINE int nr_bbr_cut_short(struct nr_private *p)
{
	struct nr_bbr *b;
	nr_u32 by_ecn = NR_BBR_ANY;

	if (!p)
		return 0;
	b = nr_bbr(p);
	if (!b->loss_round || b->loud || nr_bbr_probes(b) || !(b->ecn || b->lossy || b->hold))
		return 0;
	if (b->inflight_short == NR_BBR_ANY)
		b->inflight_short = p->cwnd;
	if (b->ecn) {
		nr_u32 keep = NR_BBR_ECN_CUT * NR_BBR_ONE - b->alpha;

		by_ecn = (nr_u32)((nr_u64)b->inflight_short * keep / (NR_BBR_ECN_CUT * NR_BBR_ONE));
	}
	if (b->lossy || b->hold) {
		if (b->bw_short == NR_BBR_ANY)
			b->bw_short = b->use;
		b->bw_short =
		    nr_bbr_max(b->bw_latest, nr_bbr_percent(b->bw_short, NR_BBR_BETA_PERCENT));
		b->inflight_short =
		    nr_bbr_max(b->latest, nr_bbr_percent(b->inflight_short, NR_BBR_BETA_PERCENT));
	}
	b->inflight_short = nr_bbr_min(b->inflight_short, by_ecn);
	return 1;
}

/* The share of marked packets of the round that ends. Returns it, Q8. */
NR_INLINE nr_u32 nr_bbr_marks(struct nr_bbr *b)
{
	nr_u32 delivered = b->delivered - b->round_end, share;

	share = delivered ? nr_bbr_min(b->marked * NR_BBR_ONE / delivered, NR_BBR_ONE) : 0;
	b->alpha = (b->alpha * (NR_BBR_ALPHA_ROUNDS - 1) + share) / NR_BBR_ALPHA_ROUNDS;
	b->ecn_rounds = share < NR_BBR_ECN_HALF ? 0 : b->ecn_rounds + (b->ecn_rounds < 3);
	return share;
}

/* After an acknowledgement that begins a loss round: what is delivered in it. */
NR_INLINE void nr_bbr_loss_round(struct nr_bbr *b, const struct nr_event *ev, nr_u32 rate)
{
	if (!b->loss_round)
		return;
	b->bw_latest = rate;
	b->latest = b->flight ? b->flight : ev->sample_delivered;
	b->round_lost = 0;
	b->loss_acks = 0;
	b->lossy = 0;
	b->ecn = 0;
}

#endif
