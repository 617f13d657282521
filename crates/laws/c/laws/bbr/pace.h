/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pacing rate of both versions, and what they do after idleness. */
#ifndef NARROWS_BBR_PACE_H
#define NARROWS_BBR_PACE_H

#ifndef NARROWS_BBR_STATE3_H /* version 3 has included its phases */
#include "phases.h"
#endif

/* Until there is a bandwidth: the window in a round trip, or in 1 ms if no RTT is known. */
NR_INLINE void nr_bbr_first_pace(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u32 rtt_us = ev->srtt8_us / 8;

	if (rtt_us)
		b->has_rtt = 1;
	else
		rtt_us = ev->srtt8_us ? 1 : 1000;
	nr_set_pacing_rate(c, i, nr_bbr_pace(nr_bbr_rate(c, i, p->cwnd, rtt_us), NR_BBR_HIGH_GAIN));
}

/* In Startup the rate only rises. */
NR_NOINLINE int nr_bbr_set_pace(NR_HOOK, nr_u32 gain)
{
	struct nr_bbr *b;
	nr_u64 rate;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	rate = nr_bbr_pace(nr_bbr_bw(p), gain);
	if (!b->has_rtt && ev->srtt8_us)
		nr_bbr_first_pace(NR_ARGS);
	if (b->full || rate > c->path[i & 7].pacing_rate)
		nr_set_pacing_rate(c, i, rate);
	return 1;
}

/* Data after idleness: at the estimated bandwidth from the first packet, without a queue to drain.
 */
NR_INLINE void nr_bbr_restart(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);

	if (!(ev->flags & NR_F_APP_LIMITED) && !b->loud)
		return;
	b->idle_restart = 1;
	b->epoch_us = (nr_u32)ev->now_us;
	b->epoch_acked = 0;
	if (b->mode == NR_BBR_PROBE_BW)
		nr_bbr_set_pace(NR_ARGS, NR_BBR_ONE);
	else if (b->mode == NR_BBR_PROBE_RTT)
		nr_bbr_probe_rtt_end(NR_ARGS);
}

#endif
