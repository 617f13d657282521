/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The phases of version 3, and what moves a path from one to the next. */
#ifndef NARROWS_BBR_PHASES3_H
#define NARROWS_BBR_PHASES3_H

#include "probe3.h"
#include "share.h"

/* Probes for bandwidth come after the time of probe3.h, but in short paths as often as Reno would
 * lose: its window in rounds; in long ones not so rarely that 1 % of loss in each round could not
 * be made good for. */
#define NR_BBR_RENO_ROUNDS 63u
#define NR_BBR_ROUNDS_MAX 127u
#define NR_BBR_UP_ROUNDS_MAX 30u

/* What it tells its group: losses; a probe that met congestion. */
NR_INLINE nr_u32 nr_bbr_says(const struct nr_bbr *b)
{
	int met = b->too_high && nr_bbr_in(b, NR_BBR_PHASE_DOWN);

	return (b->lossy ? NR_BBR_CONSERVES : 0) | (met ? NR_BBR_TOO_HIGH : 0);
}

/* The room that hosts need, for what is in flight (the draft's QuantizationBudget). */
NR_INLINE nr_u32 nr_bbr_round_up(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				 nr_u32 packets)
{
	struct nr_bbr *b = nr_bbr(p);

	packets = nr_bbr_max(packets, nr_bbr_room(b, 3 * nr_bbr_burst(c, i)));
	packets = nr_bbr_max(packets, NR_BBR_MIN_CWND);
	return packets + (nr_bbr_in(b, NR_BBR_PHASE_UP) ? nr_bbr_room(b, 2) : 0);
}

/* The BDP, so rounded. */
NR_NOINLINE nr_u32 nr_bbr_inflight(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				   nr_u32 bw)
{
	if (!c || !p)
		return 0;
	return nr_bbr_round_up(c, i, p, nr_bbr_bdp(c, i, p, bw, NR_BBR_ONE));
}

/* Rounds, and what they delivered. Returns the delivery rate of the sample; 0: there is none. */
NR_NOINLINE nr_u32 nr_bbr_sample(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 prior, bw;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	b->round_start = 0;
	b->loss_round = 0;
	if (!ev->rate)
		return 0;
	prior = b->delivered - ev->sample_delivered;
	bw = nr_bbr_unit(ev->rate);
	if (b->loud && nr_after(prior, b->loud))
		b->loud = 0;
	b->limited = (ev->flags & NR_F_APP_LIMITED) || b->loud;
	if (!nr_after(b->loss_round_end, prior)) {
		b->loss_round_end = b->delivered;
		b->loss_round = 1;
	}
	b->round_start = !nr_after(b->round_end, prior);
	if (b->round_start && b->rounds < NR_BBR_ROUNDS_MAX)
		b->rounds++;
	if (bw > b->bw[0] && (!b->limited || bw >= nr_bbr_own(b)))
		b->bw[0] = bw;
	NR_WRITE(c->path[i & 7].bw, (nr_u64)nr_bbr_own(b) << NR_BBR_BW_SHIFT);
	return bw;
}

/*
 * Packets were marked lost. While probing: at which amount in flight did the loss rate pass 2 %?
 * With `before` in flight and `lost` of them before these: (lost + x) / (before + x) = 1/50.
 */
NR_NOINLINE int nr_bbr_lost(NR_HOOK, nr_u32 losses)
{
	struct nr_bbr *b;
	nr_u32 inflight, before, lost;

	if (!c || !p || !ev || !losses)
		return 0;
	b = nr_bbr(p);
	if (!b->lossy) {
		b->loss_round_end = b->delivered;
		nr_bbr_save_bounds(b);
	}
	b->lossy = 1;
	lost = b->round_lost * NR_BBR_LOSS_RATE;
	b->round_lost = nr_bbr_sum16(b->round_lost, losses);
	if (b->loss_acks < 7)
		b->loss_acks++;
	inflight = nr_bbr_sent_with(b, ev);
	if (!b->sample || !nr_bbr_loses(b, inflight))
		return 0;
	before = inflight > losses ? inflight - losses : 0;
	if (ev->kind == NR_TIMEOUT) /* all that was in flight, which nothing sampled */
		before = nr_bbr_max(before, b->latest);
	if (before > lost)
		before += (before - lost) / (NR_BBR_LOSS_RATE - 1);
	nr_bbr_too_high(NR_ARGS, before);
	return 1;
}

/* The end of a round with marks. */
NR_NOINLINE int nr_bbr_marked(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 share;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	if (!b->round_start)
		return 0;
	share = nr_bbr_marks(b);
	nr_bbr_start_round(b);
	if (!b->full && b->ecn_rounds >= NR_BBR_ECN_ROUNDS)
		nr_bbr_startup_too_high(NR_ARGS);
	else if (b->sample && share > NR_BBR_ECN_HALF)
		nr_bbr_too_high(NR_ARGS, nr_bbr_sent_with(b, ev));
	return 1;
}

/* Three rounds in which the delivery rate has not grown by a quarter. [CheckFullBWReached] */
NR_INLINE void nr_bbr_plateau(struct nr_bbr *b, nr_u32 rate)
{
	if (!b->round_start || b->full_now || b->limited)
		return;
	if (rate >= (nr_u64)b->full_bw * NR_BBR_UP / NR_BBR_ONE) {
		nr_bbr_reset_full(b, rate);
		return;
	}
	b->full_rounds++;
	b->full_now = b->full_rounds >= NR_BBR_FULL_ROUNDS;
	if (b->full_now)
		b->full = 1;
}

/* Startup also ends by losses: after a round of fast recovery with more than 2 % lost, not at once.
 */
NR_INLINE void nr_bbr_startup(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (!b->full && b->loss_round && b->recovery == NR_BBR_RECOVERY &&
	    b->loss_acks >= NR_BBR_LOSS_ACKS && nr_bbr_loses(b, nr_bbr_sent_with(b, ev))) {
		nr_bbr_startup_too_high(NR_ARGS);
		b->undo = NR_BBR_UNDO_STARTUP;
	}
	if (b->mode != NR_BBR_STARTUP || !b->full)
		return;
	b->mode = NR_BBR_DRAIN;
	b->drain_rounds = 0;
	nr_set_ssthresh(c, i, p, nr_bbr_inflight(c, i, p, nr_bbr_own(b)));
}

/* Drain ends when the BDP is in flight, or after three rounds. */
NR_INLINE void nr_bbr_drain(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (b->mode != NR_BBR_DRAIN)
		return;
	if (b->round_start)
		b->drain_rounds++;
	if (ev->inflight <= nr_bbr_inflight(c, i, p, nr_bbr_bw(p)) ||
	    b->drain_rounds > NR_BBR_DRAIN_ROUNDS)
		nr_bbr_start_down(NR_ARGS);
}

/*
 * While UP is limited by inflight_long, that grows by 1, 2, 4, 8 ... packets a round, spread over
 * it; of a group's paths together. [ProbeInflightLongtermUpward]
 */
NR_INLINE void nr_bbr_raise(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 each;

	if (!(ev->flags & NR_F_CWND_LIMITED) || p->cwnd < b->inflight_long)
		return;
	each = (nr_u32)((nr_u64)p->cwnd * NR_BBR_PART / b->part >> (b->up_rounds - 1));
	each = nr_bbr_max(each, 1);
	b->up_acked += ev->delivered;
	b->inflight_long += b->up_acked / each;
	b->up_acked %= each;
	if (b->round_start && b->up_rounds < NR_BBR_UP_ROUNDS_MAX)
		b->up_rounds++;
}

/* The estimates after a probe, and while it goes well. Returns 1 if the next probe begins.
 * [AdaptLongTermModel] */
NR_INLINE int nr_bbr_adapt(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 inflight = nr_bbr_sent_with(b, ev);

	if (b->stopping && b->round_start) {
		b->stopping = 0;
		b->sample = 0;
		if (b->mode == NR_BBR_PROBE_BW && !b->limited)
			nr_bbr_next_cycle(b);
		/* What the last probe reached did no harm: now further. */
		if (b->mode == NR_BBR_PROBE_BW && b->cautious && !b->too_high && !b->follows) {
			nr_bbr_start_refill(b);
			return 1;
		}
	}
	if (b->inflight_long == NR_BBR_ANY || nr_bbr_loses(b, inflight) || b->hold)
		return 0;
	if (b->flight) /* a rate of all has noise that was never in flight */
		inflight = nr_bbr_min(inflight, p->cwnd);
	b->inflight_long = nr_bbr_max(b->inflight_long, inflight);
	if (nr_bbr_in(b, NR_BBR_PHASE_UP))
		nr_bbr_raise(NR_ARGS);
	return 0;
}

NR_INLINE int nr_bbr_time_to_probe(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 window; /* of the flow, or of all the group */

	if (b->follows)
		return 0;
	window = (nr_u64)nr_bbr_target(c, i, p) * NR_BBR_PART / b->part;
	return nr_after(nr_now_ms(ev), b->cycle_ms + b->wait_ms) ||
	       b->rounds >= (window < NR_BBR_RENO_ROUNDS ? window : NR_BBR_RENO_ROUNDS);
}

/* Is UP over: the pipe is full, or as much is in flight as was too much in the probe before? */
NR_INLINE int nr_bbr_time_to_go_down(NR_HOOK, nr_u32 rate)
{
	struct nr_bbr *b = nr_bbr(p);

	if (b->too_high && ev->inflight + ev->delivered >= b->inflight_long) {
		b->cautious = 1;
		return 1;
	}
	if ((ev->flags & NR_F_CWND_LIMITED) && p->cwnd >= b->inflight_long) {
		nr_bbr_reset_full(b, rate); /* the bound is full, not the pipe */
		return 0;
	}
	return b->full_now;
}

/* ProbeBW: down, cruise, refill, up. [UpdateProbeBWCyclePhase] */
NR_NOINLINE int nr_bbr_cycle(NR_HOOK, nr_u32 rate)
{
	struct nr_bbr *b;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	if (!b->full || !rate || nr_bbr_adapt(NR_ARGS) || b->mode != NR_BBR_PROBE_BW)
		return 0;
	switch (b->phase) {
	case NR_BBR_PHASE_DOWN:
	case NR_BBR_PHASE_CRUISE:
		if (nr_bbr_time_to_probe(NR_ARGS))
			nr_bbr_start_refill(b);
		else if (ev->inflight <= nr_bbr_with_headroom(b) &&
			 ev->inflight <= nr_bbr_inflight(c, i, p, b->use))
			b->phase = NR_BBR_PHASE_CRUISE;
		break;
	case NR_BBR_PHASE_REFILL:
		if (b->round_start)
			nr_bbr_start_up(b, rate);
		break;
	default:
		if (nr_bbr_time_to_go_down(NR_ARGS, rate)) {
			b->too_high = 0;
			nr_bbr_start_down(NR_ARGS);
		}
		break;
	}
	return 1;
}

/* What is in flight in ProbeRTT: half a BDP drains the queue, and keeps half of the rate. */
NR_INLINE nr_u32 nr_bbr_probe_rtt_cwnd(const struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	nr_u32 half = nr_bbr_bdp(c, i, p, nr_bbr_bw(p), NR_BBR_CWND_GAIN_PROBE_RTT);

	return nr_bbr_max(half, NR_BBR_MIN_CWND);
}

/* The window is at most what the bounds allow: after a probe less headroom. [BoundCwndForModel] */
NR_INLINE nr_u32 nr_bbr_bound(const struct nr_bbr *b, nr_u32 cwnd)
{
	nr_u32 cap = NR_BBR_ANY;

	if (b->mode == NR_BBR_PROBE_RTT || nr_bbr_in(b, NR_BBR_PHASE_CRUISE))
		cap = nr_bbr_with_headroom(b);
	else if (b->mode == NR_BBR_PROBE_BW)
		cap = b->inflight_long;
	cap = nr_bbr_max(nr_bbr_min(cap, b->inflight_short), NR_BBR_MIN_CWND);
	return nr_bbr_min(cwnd, cap);
}

NR_INLINE void nr_bbr_probe_rtt_end(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (!b->probe_rtt_ms || !nr_after(nr_now_ms(ev), b->probe_rtt_ms))
		return;
	b->rest_ms = nr_now_ms(ev);
	nr_bbr_restore_cwnd(NR_ARGS);
	nr_bbr_reset_short(b); /* it fell by what ProbeRTT delivered */
	if (!b->full) {
		b->mode = NR_BBR_STARTUP;
		return;
	}
	nr_bbr_start_down(NR_ARGS);
	b->phase = NR_BBR_PHASE_CRUISE; /* there is no queue */
}

/* ProbeRTT, 200 ms and a round, until then nothing counts that is below the estimates. */
NR_INLINE void nr_bbr_in_probe_rtt(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 now = nr_now_ms(ev);

	b->loud = b->delivered + ev->inflight;
	b->loud = b->loud ? b->loud : 1;
	if (!b->probe_rtt_ms && ev->inflight <= nr_bbr_probe_rtt_cwnd(c, i, p)) {
		b->probe_rtt_ms = now + NR_BBR_PROBE_RTT_MS;
		b->probe_rtt_ms = b->probe_rtt_ms ? b->probe_rtt_ms : 1;
		b->rtt_round = 0;
		nr_bbr_start_round(b);
	} else if (b->probe_rtt_ms) {
		if (b->round_start)
			b->rtt_round = 1;
		if (b->rtt_round)
			nr_bbr_probe_rtt_end(NR_ARGS);
	}
}

/*
 * The smallest RTT of 10 s; ProbeRTT after 5 s without a smaller one. With another path of its
 * group, if half of that has passed. A path that was idle has had that already.
 */
NR_NOINLINE int nr_bbr_min_rtt(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 now;
	int old;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	now = nr_now_ms(ev);
	old = nr_after(now, b->rest_ms + NR_BBR_PROBE_RTT_EVERY_MS) ||
	      (b->joins && nr_after(now, b->rest_ms + NR_BBR_PROBE_RTT_EVERY_MS / 2));
	if (ev->rtt_us && (ev->rtt_us < b->rest_us || old)) {
		b->rest_us = ev->rtt_us;
		b->rest_ms = now;
	}
	if (b->rest_us < b->min_rtt_us || nr_after(now, b->min_rtt_ms + NR_BBR_MIN_RTT_MS)) {
		b->min_rtt_us = b->rest_us;
		b->min_rtt_ms = b->rest_ms;
	}
	if (old && !b->idle_restart && b->mode != NR_BBR_PROBE_RTT) {
		nr_bbr_save_cwnd(p);
		b->mode = NR_BBR_PROBE_RTT;
		b->probe_rtt_ms = 0;
		b->stopping = 1;
		nr_bbr_start_round(b);
	}
	if (b->mode == NR_BBR_PROBE_RTT)
		nr_bbr_in_probe_rtt(NR_ARGS);
	if (ev->delivered)
		b->idle_restart = 0;
	return 1;
}

/* The window after an acknowledgement: grows towards the model's by what is delivered. */
NR_NOINLINE int nr_bbr_set_cwnd(NR_HOOK)
{
	nr_u32 cwnd, target;
	struct nr_bbr *b;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	target = nr_bbr_bdp(c, i, p, nr_bbr_bw(p), nr_bbr_cwnd_gain(b));
	target = nr_bbr_round_up(c, i, p, target + nr_bbr_extra(NR_ARGS) / NR_BBR_ONE);
	cwnd = p->cwnd;
	if (b->full)
		cwnd = nr_bbr_min(cwnd + ev->delivered, target);
	else if (cwnd < target || b->delivered < NR_INIT_CWND)
		cwnd += ev->delivered;
	cwnd = nr_bbr_max(cwnd, NR_BBR_MIN_CWND);
	if (b->mode == NR_BBR_PROBE_RTT)
		cwnd = nr_bbr_min(cwnd, nr_bbr_probe_rtt_cwnd(c, i, p));
	cwnd = nr_bbr_bound(b, cwnd);
	if (cwnd != p->cwnd)
		nr_set_cwnd(c, i, p, cwnd);
	return 1;
}

#endif
