/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much may be in flight: the window from the model, and in recovery. */
#ifndef NARROWS_BBR_INFLIGHT_H
#define NARROWS_BBR_INFLIGHT_H

#include "state.h"
#include "share.h"
#include "volume.h"

/*
 * Room for what hosts do in units: three bursts (one in the qdisc, one being cut into segments, one
 * being received as one), and pairs of packets, of which delayed acknowledgements hold one back. A
 * small window could otherwise not exceed itself in phase 0.
 */
NR_INLINE nr_u32 nr_bbr_burst_room(const struct nr_conn *c, nr_u32 i, const struct nr_bbr *b)
{
	int probes = b->mode == NR_BBR_PROBE_BW && b->phase == 0;

	return 3 * nr_bbr_burst(c, i) + (probes ? 2 : 0);
}

NR_INLINE nr_u32 nr_bbr_round_up(const struct nr_conn *c, nr_u32 i, struct nr_private *p,
				 nr_u32 packets)
{
	struct nr_bbr *b = nr_bbr(p);

	packets += nr_bbr_room(b, nr_bbr_burst_room(c, i, b));
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
 * The window that the model wants. Of a group's paths each has its part of the room to a fraction
 * of a packet: were it rounded up, N paths had up to N packets more than one flow.
 */
NR_NOINLINE nr_u32 nr_bbr_wanted(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 gain, extra, room;
	nr_u64 bytes, packets;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	gain = nr_bbr_cwnd_gain(b);
	extra = b->full ? nr_bbr_extra(NR_ARGS) : 0;
	if (b->part == NR_BBR_PART || b->min_rtt_us == NR_BBR_NO_RTT)
		return nr_bbr_round_up(
		    c, i, p, nr_bbr_bdp(c, i, p, nr_bbr_bw(p), gain) + extra / NR_BBR_ONE);
	room = nr_bbr_burst_room(c, i, b) * NR_BBR_ONE;
	bytes = nr_bbr_bytes(nr_bbr_bw(p), b->min_rtt_us) * gain / NR_BBR_ONE * NR_BBR_WINDOW;
	packets = bytes / nr_bbr_mss(c, i) + nr_bbr_room(b, room) + extra + NR_BBR_ONE / 2;
	packets /= NR_BBR_ONE;
	return packets < NR_CWND_MAX / 2 ? (nr_u32)packets : NR_CWND_MAX / 2;
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
		if (b->conserve || (b->hold && b->full)) {
			if (cwnd < ev->inflight + acked)
				cwnd = ev->inflight + acked;
		} else {
			target = nr_bbr_wanted(NR_ARGS);
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
