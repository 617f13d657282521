/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HyStart++: a rising RTT slows slow start down before it ends it, for any window law.
 *
 * Source: RFC 9406, sections 4.2 and 4.3.
 *
 *   slow start   w += min(n, L) for n acknowledged packets; L = 8, no limit where the host paces
 *                the round's smallest RTT, of at least 8 samples, is above the last round's by
 *                clamp(that / 8, 4 ms, 16 ms):  on to conservative slow start (CSS)
 *   CSS          w += min(n, L) / 4
 *                the round's smallest RTT, of at least 8 samples, is below the one that began CSS:
 *                back to slow start (it was jitter)
 *                5 rounds are over (one begun in part counts):  ssthresh = w
 *
 * A loss or a mark ends both; the law handles it. Only the first slow start is of this kind, as in
 * the RFC; after a timeout there is an ssthresh.
 *
 * Units: packets and us; quarters of packets are kept as credit.
 * Departures: none known. A round is the host's (NR_F_ROUND_START).
 */
#ifndef NARROWS_START_HYSTARTPP_H
#define NARROWS_START_HYSTARTPP_H

#include "hystart.h"

#define NR_HYSTARTPP_SAMPLES 8u	   /* N_RTT_SAMPLE */
#define NR_HYSTARTPP_DIVISOR 4	   /* CSS_GROWTH_DIVISOR */
#define NR_HYSTARTPP_CSS_ROUNDS 5u /* CSS_ROUNDS */
#define NR_HYSTARTPP_L 8u	   /* L */

struct nr_hystartpp {
	nr_u32 last_rtt_us;	/* lastRoundMinRTT; 0: infinity */
	nr_u32 rtt_us;		/* currentRoundMinRTT, likewise */
	nr_u32 baseline_rtt_us; /* cssBaselineMinRtt */
	nr_u32 samples;		/* rttSampleCount */
	nr_u32 css;		/* rounds of CSS left; 0: slow start */
};
NR_START_STATE(hystartpp)

/* At an acknowledgement: does slow start end? */
NR_INLINE int nr_hystartpp_acked(NR_HOOK)
{
	struct nr_hystartpp *h = nr_hystartpp(p);
	nr_u32 rtt = ev->rtt_us;

	if (!nr_first_slow_start(p))
		return 0;
	if (ev->flags & NR_F_ROUND_START) {
		if (h->css && !--h->css)
			return 1;
		h->last_rtt_us = h->rtt_us;
		h->rtt_us = h->samples = 0;
	}
	if (!rtt)
		return 0;
	if (!h->rtt_us || rtt < h->rtt_us)
		h->rtt_us = rtt;
	h->samples++;
	if (h->samples < NR_HYSTARTPP_SAMPLES)
		return 0;
	if (h->css) {
		if (h->rtt_us < h->baseline_rtt_us)
			h->css = 0;
	} else if (h->last_rtt_us &&
		   h->rtt_us >= h->last_rtt_us + nr_hystart_delay(h->last_rtt_us)) {
		h->baseline_rtt_us = h->rtt_us;
		h->css = NR_HYSTARTPP_CSS_ROUNDS;
	}
	return 0;
}

/* Growth for `acked` packets, Q40 packets. */
NR_INLINE nr_s64 nr_hystartpp_credit(NR_HOOK, nr_u32 acked)
{
	struct nr_hystartpp *h = nr_hystartpp(p);

	if (acked > NR_HYSTARTPP_L && !(ev->flags & NR_F_PACED))
		acked = NR_HYSTARTPP_L;
	return (nr_s64)acked * (nr_s64)(h->css ? NR_ONE / NR_HYSTARTPP_DIVISOR : NR_ONE);
}

NR_START(hystartpp) = {
    .name = "hystart++",
    .code = "h",
    .about = "a rising RTT slows slow start down and ends it after five round trips",
    .source = "RFC 9406",
    .state = sizeof(struct nr_hystartpp),
    .acked = nr_hystartpp_acked,
    .credit = nr_hystartpp_credit,
};

#endif
