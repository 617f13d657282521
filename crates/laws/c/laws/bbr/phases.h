/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The phases of a BBR path, and what moves it from one to the next. */
#ifndef NARROWS_BBR_PHASES_H
#define NARROWS_BBR_PHASES_H

#include "inflight.h"
#include "policer.h"

/* A path goes into ProbeRTT with another if its smallest RTT is at least half as old as it may be.
 */
#define NR_BBR_JOIN_MS (NR_BBR_MIN_RTT_MS / 2)

/* The number of phases before the next phase 0: 0 to 6, not 7, which is phase 1; so that flows that
 * begin together do not probe together. */
NR_INLINE nr_u32 nr_bbr_draw(nr_u32 i, const struct nr_event *ev)
{
	return nr_bbr_random(i, ev) % (NR_BBR_PHASES - 1);
}

NR_INLINE void nr_bbr_probe_bw(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	b->mode = NR_BBR_PROBE_BW;
	b->whole = 0;
	nr_bbr_enter(NR_ARGS, (NR_BBR_PHASES - nr_bbr_draw(i, ev)) % NR_BBR_PHASES);
}

/* The policer's model, after each sample and each timeout. */
NR_INLINE void nr_bbr_policer(NR_HOOK, nr_u32 losses)
{
	struct nr_bbr *b = nr_bbr(p);

	if (!b->lt_use) {
		nr_bbr_lt_sample(NR_ARGS, losses);
	} else if (nr_bbr_lt_over(b)) {
		nr_bbr_lt_reset(b, ev);
		nr_bbr_probe_bw(NR_ARGS);
	}
}

/*
 * A phase of ProbeBW lasts the smallest RTT. But phase 0 lasts until what it adds is in flight, or
 * losses show that the buffer is too small for it; and phase 1 ends at once when that has drained.
 */
NR_NOINLINE int nr_bbr_cycle(NR_HOOK, nr_u32 losses)
{
	struct nr_bbr *b;
	nr_u32 gain, bw, in_net;
	int over;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	if (b->mode != NR_BBR_PROBE_BW || b->follows)
		return 0;
	gain = nr_bbr_pacing_gain(b);
	bw = b->use;
	over = (nr_u32)ev->now_us - b->cycle_us > b->min_rtt_us;
	if (gain != NR_BBR_ONE) {
		/* before this acknowledgement */
		in_net = nr_bbr_in_net(c, i, p, ev->wait_us, ev->inflight + ev->delivered + losses);
		if (gain > NR_BBR_ONE)
			over = over && (losses || in_net >= nr_bbr_inflight(c, i, p, bw, gain));
		else
			over = over || in_net <= nr_bbr_inflight(c, i, p, bw, NR_BBR_ONE);
	}
	if (over)
		nr_bbr_enter(NR_ARGS, (b->phase + 1) % NR_BBR_PHASES);
	return 1;
}

/*
 * The delivery rate of each sample, by rounds. One that the application limited counts only if it
 * is more than the estimate. So does one of ProbeRTT, of packets sent after `quiet` to `loud`
 * deliveries, as Linux's app_limited. Returns the sample; 0: there is none.
 */
NR_NOINLINE nr_u32 nr_bbr_bandwidth(NR_HOOK, nr_u32 losses)
{
	struct nr_bbr *b;
	nr_u32 prior, bw;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	b->round_start = 0;
	if (!ev->rate)
		return 0;
	prior = b->delivered - ev->sample_delivered;
	bw = nr_bbr_unit(ev->rate);
	b->limited = (ev->flags & NR_F_APP_LIMITED) ||
		     (b->loud && !nr_after(b->quiet, prior) && !nr_after(prior, b->loud));
	if (b->loud && nr_after(prior, b->loud))
		b->loud = 0;
	if (!nr_after(b->round_end, prior)) {
		b->round_end = b->delivered;
		b->round++;
		b->round_start = 1;
		b->conserve = 0;
	}
	nr_bbr_policer(NR_ARGS, losses);
	if (!b->limited || bw >= nr_max(&b->bw))
		nr_max_sample(&b->bw, NR_BBR_BW_ROUNDS, b->round, bw);
	NR_WRITE(c->path[i & 7].bw, (nr_u64)nr_max(&b->bw) << NR_BBR_BW_SHIFT);
	return bw;
}

/* Startup ends after three rounds in which the bandwidth has not grown by a quarter. */
NR_INLINE void nr_bbr_startup(struct nr_bbr *b)
{
	nr_u32 bw = nr_max(&b->bw);

	if (b->full || !b->round_start || b->limited)
		return;
	if (bw >= (nr_u64)b->full_bw * NR_BBR_UP / NR_BBR_ONE) {
		b->full_bw = bw;
		b->full_rounds = 0;
		return;
	}
	b->full_rounds++;
	b->full = b->full_rounds >= NR_BBR_FULL_ROUNDS;
}

/* Drain ends when what is in flight is the bandwidth-delay product. */
NR_NOINLINE int nr_bbr_drain(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 bdp;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	if (b->mode != NR_BBR_DRAIN && (b->mode != NR_BBR_STARTUP || !b->full))
		return 0;
	bdp = nr_bbr_inflight(c, i, p, nr_max(&b->bw), NR_BBR_ONE);
	if (b->mode == NR_BBR_STARTUP) {
		b->mode = NR_BBR_DRAIN;
		nr_set_ssthresh(c, i, p, bdp);
	}
	if (nr_bbr_in_net(c, i, p, ev->wait_us, ev->inflight) <= bdp)
		nr_bbr_probe_bw(NR_ARGS);
	return 1;
}

NR_INLINE void nr_bbr_probe_rtt_end(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (!b->probe_rtt_ms || !nr_after(nr_now_ms(ev), b->probe_rtt_ms))
		return;
	b->min_rtt_ms = nr_now_ms(ev); /* so late, though no smaller one came */
	nr_bbr_restore_cwnd(NR_ARGS);
	if (b->full)
		nr_bbr_probe_bw(NR_ARGS);
	else
		b->mode = NR_BBR_STARTUP;
}

/*
 * The smallest RTT of 10 s. After 10 s without a smaller one, ProbeRTT: 4 packets in flight for 200
 * ms and a round, so that the queues of all flows that do so at the same time drain. A path that
 * was idle has had that already.
 */
NR_NOINLINE int nr_bbr_min_rtt(NR_HOOK)
{
	struct nr_bbr *b;
	int old, rest, lone;
	nr_u32 now;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	now = nr_now_ms(ev);
	old = nr_after(now, b->min_rtt_ms + NR_BBR_MIN_RTT_MS);
	rest = old || (b->joins && nr_after(now, b->min_rtt_ms + NR_BBR_JOIN_MS));
	/* A lone packet's acknowledgement may have waited. */
	lone = ev->delivered == 1 && ev->sample_delivered == 1;
	if (ev->rtt_us && (ev->rtt_us < b->min_rtt_us || (old && !lone))) {
		b->min_rtt_us = ev->rtt_us;
		b->min_rtt_ms = now;
	}
	if (rest && !b->idle_restart && b->mode != NR_BBR_PROBE_RTT) {
		nr_bbr_save_cwnd(p);
		b->mode = NR_BBR_PROBE_RTT;
		b->probe_rtt_ms = 0;
		b->quiet = b->delivered;
	}
	if (b->mode == NR_BBR_PROBE_RTT) {
		b->loud = b->delivered + ev->inflight;
		b->loud = b->loud ? b->loud : 1;
		if (!b->probe_rtt_ms && ev->inflight <= NR_BBR_MIN_CWND) {
			b->probe_rtt_ms = now + NR_BBR_PROBE_RTT_MS;
			b->probe_rtt_ms = b->probe_rtt_ms ? b->probe_rtt_ms : 1;
			b->rtt_round = 0;
			b->round_end = b->delivered;
		} else if (b->probe_rtt_ms) {
			if (b->round_start)
				b->rtt_round = 1;
			if (b->rtt_round)
				nr_bbr_probe_rtt_end(NR_ARGS);
		}
	}
	if (ev->delivered)
		b->idle_restart = 0;
	return 1;
}

#endif
