/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR, version 1, as Linux runs it: a model of the path, its bandwidth and its smallest RTT, and
 * nothing else, decides how fast to send and how much may be in flight. Losses do not.
 *
 *   bw        the largest delivery rate of 10 rounds
 *   min_rtt   the smallest RTT of 10 s
 *   pacing    gain * bw, less 1 %
 *   cwnd      gain * bw * min_rtt, and room for bursts and late acknowledgements
 *
 * Source: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
 * draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.18, tcp_bbr.c, for what they leave open.
 *
 * Coupled: laws/bbr/share.h. Advice to close a path: laws/bbr/close.h.
 * Units: bandwidth in 16 bytes/s, windows in packets.
 * Valid: 80 bytes/s to 68 GB/s, RTTs to 30 minutes.
 * Departures from Linux: bandwidth in bytes and not in packets; what was in flight before an
 * acknowledgement is what is after it, and what it delivered and found lost; packets sent in
 * ProbeRTT are marked here and not by the host (`quiet`, `loud`).
 */
#ifndef NARROWS_LAW_BBR_H
#define NARROWS_LAW_BBR_H

#include "bbr/phases.h"
#include "bbr/policer.h"
#include "bbr/close.h"
#include "bbr/pace.h"

NR_INLINE void nr_bbr_acked(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 losses = b->losses, rate;

	b->losses = 0;
	b->delivered += ev->delivered;
	rate = nr_bbr_bandwidth(NR_ARGS, losses);
	nr_bbr_publish(c, i, b, rate, b->conserve ? NR_BBR_CONSERVES : 0);
	nr_bbr_share(NR_ARGS, rate > 0);
	nr_bbr_aggregation(NR_ARGS, NR_BBR_EXTRA_ROUNDS);
	nr_bbr_cycle(NR_ARGS, losses);
	nr_bbr_startup(b);
	nr_bbr_drain(NR_ARGS);
	nr_bbr_min_rtt(NR_ARGS);
	nr_bbr_publish(c, i, b, rate, b->conserve ? NR_BBR_CONSERVES : 0);
	nr_bbr_set_pace(NR_ARGS, nr_bbr_pacing_gain(b));
	nr_bbr_set_cwnd(NR_ARGS, losses);
	nr_bbr_close(NR_ARGS);
}

/* The host's recovery is over, or was for nothing. */
NR_INLINE void nr_bbr_recovered(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (b->recovery != NR_BBR_OPEN)
		nr_bbr_restore_cwnd(NR_ARGS);
	b->recovery = NR_BBR_OPEN;
	b->conserve = 0;
}

/* All that was in flight is lost, and perhaps the path is another: Startup looks anew, unless it is
 * over. */
NR_INLINE void nr_bbr_timeout(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	nr_bbr_save_cwnd(p);
	b->recovery = NR_BBR_LOSS;
	b->losses = 0; /* told to the policer here */
	b->full_bw = 0;
	b->round_start = 1;
	b->limited = 0;
	nr_bbr_policer(NR_ARGS, 1);
	nr_bbr_publish_silence(c, i);
	nr_set_cwnd(c, i, p, ev->inflight + 1);
}

NR_INLINE void nr_bbr_event(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	b->lt_lost += ev->lost;
	b->losses += ev->lost;
	switch (ev->kind) {
	case NR_JOINED:
		b->min_rtt_us = ev->srtt8_us / 8 ? ev->srtt8_us / 8 : NR_BBR_NO_RTT;
		b->min_rtt_ms = nr_now_ms(ev);
		b->epoch_us = (nr_u32)ev->now_us;
		nr_bbr_lt_reset(b, ev);
		b->part = NR_BBR_PART;
		b->cruise = NR_BBR_ONE;
		nr_bbr_ask_from(c, b, ev);
		nr_bbr_first_pace(NR_ARGS);
		break;
	case NR_ACKED:
		nr_bbr_acked(NR_ARGS);
		break;
	case NR_RECOVERY:
		nr_bbr_save_cwnd(p);
		b->recovery = NR_BBR_ENTER;
		break;
	case NR_ECN:
		nr_bbr_save_cwnd(p);
		break;
	case NR_RECOVERED:
		nr_bbr_recovered(NR_ARGS);
		break;
	case NR_UNDO: /* losses were none: the pipe may not be full, the policer no policer */
		b->full_bw = 0;
		b->full_rounds = 0;
		nr_bbr_lt_reset(b, ev);
		nr_bbr_recovered(NR_ARGS);
		break;
	case NR_TIMEOUT:
		nr_bbr_timeout(NR_ARGS);
		break;
	case NR_RESTART:
		if (nr_now_ms(ev) - b->asked_ms > 2 * nr_bbr_ask_ms(b))
			nr_bbr_ask_from(c, b, ev);
		nr_bbr_restart(NR_ARGS);
		break;
	default:
		break;
	}
}

NR_LAW(bbr) = {
    .name = "bbr",
    .code = "bbr",
    .about = "a model of bandwidth and smallest RTT sets pacing and window, not losses",
    .source = "ACM Queue 14(5), 2016; Linux 6.18 tcp_bbr.c",
    NR_TAKES(bbr),
    .kind = NR_MODEL,
    .couples = 1,
    .state = sizeof(struct nr_bbr),
    .event = nr_bbr_event,
};

#endif
