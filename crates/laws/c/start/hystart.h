/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HyStart: CUBIC's slow start in Linux, which ends when the pipe seems full and not only when it
 * overflows.
 *
 * Source: Ha and Rhee, "Taming the elephants: new TCP slow start" (Computer Networks 55, 2011), as
 * Linux's tcp_cubic.c has it since 5.6: hystart_update(), hystart_ack_delay(), bictcp_acked().
 *
 * From a window of 16 packets on, ssthresh = cwnd as soon as one of these holds in a round:
 *
 *   ACK train    acknowledgements at most 2 ms apart for longer than (min_rtt + d) / 2 since the
 *                round began (min_rtt + d if the host paces, as pacing spreads a window over half
 *                of the RTT); d is the time of four bursts of 64 kB at the pacing rate, twice a
 *                window per RTT, and at most 1 ms
 *   delay        the smallest RTT of the round, once it has more than 8 samples, is above
 *                min_rtt + clamp(min_rtt / 8, 4 ms, 16 ms)
 *
 * Units: packets and us. Valid: RTT below 2^31 us.
 * Departures: a round is the host's (NR_F_ROUND_START); the pacing rate is the one of slow start,
 * from cwnd and srtt; RTT samples also count in the second after a recovery, when Linux discards
 * them, as they can only lower min_rtt then.
 */
#ifndef NARROWS_START_HYSTART_H
#define NARROWS_START_HYSTART_H

#include "../start.h"

#define NR_HYSTART_LOW_WINDOW 16u /* packets: hystart_low_window */
#define NR_HYSTART_ACK_DELTA 2000 /* us: hystart_ack_delta_us */
#define NR_HYSTART_SAMPLES 8u	  /* HYSTART_MIN_SAMPLES */
#define NR_HYSTART_DELAY_MIN 4000u
#define NR_HYSTART_DELAY_MAX 16000u

struct nr_hystart {
	nr_u32 round_start_us; /* wraps */
	nr_u32 last_ack_us;    /* of the train, wraps */
	nr_u32 rtt_us;	       /* smallest of the round; 0: none yet */
	nr_u32 min_rtt_us;     /* smallest of all; 0: none yet */
	nr_u32 samples;	       /* of the round, up to NR_HYSTART_SAMPLES */
	nr_u32 found;	       /* done, until a timeout */
};
NR_START_STATE(hystart)

/* An eighth of the RTT, in [4 ms, 16 ms]: HYSTART_DELAY_THRESH, and RFC 9406's RttThresh. */
NR_INLINE nr_u32 nr_hystart_delay(nr_u32 rtt_us)
{
	nr_u32 delay = rtt_us / 8;

	if (delay < NR_HYSTART_DELAY_MIN)
		return NR_HYSTART_DELAY_MIN;
	return delay < NR_HYSTART_DELAY_MAX ? delay : NR_HYSTART_DELAY_MAX;
}

/* The longest ACK train that does not indicate a full path, us. */
NR_INLINE nr_u32 nr_hystart_train(nr_u32 min_rtt_us, nr_u32 cwnd, const struct nr_event *ev)
{
	nr_u64 window = (nr_u64)cwnd * ev->mss, bursts;

	/* 4 * 65536 bytes at 2 * window / srtt, and srtt is in 1/8 us. */
	bursts = window ? 16384ull * ev->srtt8_us / window : 0;
	if (bursts > 1000)
		bursts = 1000;
	min_rtt_us += (nr_u32)bursts;
	return ev->flags & NR_F_PACED ? min_rtt_us : min_rtt_us / 2;
}

/* At an acknowledgement: does slow start end? */
NR_INLINE int nr_hystart_acked(NR_HOOK)
{
	struct nr_hystart *h = nr_hystart(p);
	nr_u32 now = (nr_u32)ev->now_us, rtt = ev->rtt_us;

	if (!rtt)
		return 0;
	if (!h->min_rtt_us || rtt < h->min_rtt_us)
		h->min_rtt_us = rtt;
	if (h->found || p->cwnd >= p->ssthresh)
		return 0;
	if (ev->flags & NR_F_ROUND_START) {
		h->round_start_us = h->last_ack_us = now;
		h->rtt_us = h->samples = 0;
	}
	if (p->cwnd < NR_HYSTART_LOW_WINDOW)
		return 0;
	if ((nr_s32)(now - h->last_ack_us) <= NR_HYSTART_ACK_DELTA) {
		nr_u32 most = nr_hystart_train(h->min_rtt_us, p->cwnd, ev);

		h->last_ack_us = now;
		if ((nr_s32)(now - h->round_start_us) > (nr_s32)most)
			h->found = 1;
	}
	if (!h->rtt_us || rtt < h->rtt_us)
		h->rtt_us = rtt;
	if (h->samples < NR_HYSTART_SAMPLES)
		h->samples++;
	else if (h->rtt_us > h->min_rtt_us + nr_hystart_delay(h->min_rtt_us))
		h->found = 1;
	return !!h->found;
}

/* The network path may have changed. */
NR_INLINE void nr_hystart_timeout(NR_HOOK)
{
	*nr_hystart(p) = (struct nr_hystart){0};
}

NR_START(hystart) = {
    .name = "hystart",
    .code = "y",
    .about = "slow start ends at an ACK train of half the RTT, or at a rising RTT",
    .source = "Ha and Rhee 2011, as Linux's tcp_cubic.c",
    .state = sizeof(struct nr_hystart),
    .acked = nr_hystart_acked,
    .timeout = nr_hystart_timeout,
};

#endif
