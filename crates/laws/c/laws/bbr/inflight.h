/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much may be in flight: the window from the model, and in recovery. */
#ifndef NARROWS_BBR_INFLIGHT_H
#define NARROWS_BBR_INFLIGHT_H

#include "state.h"
#include "volume.h"

/*
 * Room for what hosts do in units: three bursts (one in the qdisc, one being cut into segments, one
 * being received as one), and pairs of packets, of which delayed acknowledgements hold one back. A
 * small window could otherwise not exceed itself in phase 0.
 */
NR_INLINE nr_u32 nr_bbr_round_up(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				 nr_u32 packets)
{
	struct nr_bbr *b = nr_bbr(p);

	nr_u32 room = 3 * nr_bbr_burst(c, i);

	if (b->mode == NR_BBR_PROBE_BW && b->phase == 0)
		room += 2;
	packets += nr_bbr_room(b, room);
	return b->part == NR_BBR_PART ? (packets + 1) & ~1u : packets;
}

NR_NOINLINE nr_u32 nr_bbr_inflight(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				   nr_u32 bw, nr_u32 gain)
{
	if (!c || !p)
		return 0;
	return nr_bbr_round_up(c, i, p, nr_bbr_bdp(c, i, p, bw, gain));
}

/* What will be in the network when the next packet leaves, of `inflight` packets. */
NR_NOINLINE nr_u32 nr_bbr_in_net(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				 nr_u32 wait_us, nr_u32 inflight)
{
	nr_u64 delivered;

	if (!c || !p)
		return 0;
	delivered = nr_bbr_bytes(nr_bbr_bw(p), wait_us) / nr_bbr_mss(c, i);
	if (nr_bbr_pacing_gain(nr_bbr(p)) > NR_BBR_ONE)
		inflight += nr_bbr_burst(c, i);
	return delivered < inflight ? inflight - (nr_u32)delivered : 0;
}

/*
 * The window after an acknowledgement. It grows towards the model's by what is delivered. In the
 * first round of recovery what is in flight stays (packet conservation); after it the model holds.
 */
NR_NOINLINE int nr_bbr_set_cwnd(NR_HOOK, nr_u32 losses)
{
	nr_u32 acked, cwnd, target;
	struct nr_bbr *b;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	acked = ev->delivered;
	cwnd = p->cwnd;
	if (acked) {
		cwnd = cwnd > losses ? cwnd - losses : 1;
		if (b->recovery == NR_BBR_ENTER) {
			b->recovery = NR_BBR_RECOVERY;
			b->conserve = 1;
			b->round_end = b->delivered;
			cwnd = ev->inflight + acked;
		}
		if (b->hold && !b->held && b->full && cwnd > ev->inflight + acked)
			cwnd = ev->inflight + acked;
		b->held = b->hold;
		if (b->conserve || (b->hold && b->full)) {
			if (cwnd < ev->inflight + acked)
				cwnd = ev->inflight + acked;
		} else {
			target = nr_bbr_bdp(c, i, p, nr_bbr_bw(p), nr_bbr_cwnd_gain(b));
			target = nr_bbr_round_up(c, i, p,
						 target + (b->full ? nr_bbr_extra(NR_ARGS) : 0));
			if (b->full)
				cwnd = cwnd + acked < target ? cwnd + acked : target;
			else if (cwnd < target || b->delivered < NR_INIT_CWND)
				cwnd += acked;
			if (cwnd < NR_BBR_MIN_CWND)
				cwnd = NR_BBR_MIN_CWND;
		}
	}
	if (b->mode == NR_BBR_PROBE_RTT && cwnd > NR_BBR_MIN_CWND)
		cwnd = NR_BBR_MIN_CWND;
	if (cwnd != p->cwnd)
		nr_set_cwnd(c, i, p, cwnd);
	return 1;
}

#endif
