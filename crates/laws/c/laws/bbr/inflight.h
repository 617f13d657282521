/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much may be in flight: the window from the model, in recovery, and with late
 * acknowledgements.
 */
#ifndef NARROWS_BBR_INFLIGHT_H
#define NARROWS_BBR_INFLIGHT_H

#include "share.h"

#define NR_BBR_EXTRA_ROUNDS 5u	    /* aggregation: the most of 5 to 10 rounds, */
#define NR_BBR_EXTRA_US 100000u	    /* at most 100 ms' worth */
#define NR_BBR_EXTRA_MAX 0xffffu    /* packets, that a word of the state holds */
#define NR_BBR_EPOCH_MAX (1u << 20) /* packets of an epoch */

/* Gain times the bandwidth-delay product, packets. */
NR_INLINE nr_u32 nr_bbr_bdp(const struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 bw,
			    nr_u32 gain)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 packets, mss = nr_bbr_mss(c, i);

	if (b->min_rtt_us == NR_BBR_NO_RTT)
		return NR_INIT_CWND;
	packets = (nr_bbr_bytes(bw, b->min_rtt_us) * gain / NR_BBR_ONE + mss - 1) / mss;
	return packets < NR_CWND_MAX / 2 ? (nr_u32)packets : NR_CWND_MAX / 2;
}

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
 * Acknowledgements that come together (Wi-Fi, cable, offloads) stop a sender between them if its
 * window is just enough. So the window is larger by the most that was acknowledged beyond the
 * estimated bandwidth since an epoch began; an epoch ends when nothing was.
 */
NR_NOINLINE int nr_bbr_aggregation(NR_HOOK)
{
	struct nr_bbr *b;
	nr_u32 extra;
	nr_u64 expected;

	if (!c || !p || !ev || !ev->delivered || !ev->rate)
		return 0;
	b = nr_bbr(p);
	if (b->round_start && ++b->extra_rounds >= NR_BBR_EXTRA_ROUNDS) {
		b->extra_rounds = 0;
		b->extra_now ^= 1;
		b->extra[b->extra_now] = 0;
	}
	expected = nr_bbr_bytes(nr_bbr_bw(p), (nr_u32)ev->now_us - b->epoch_us);
	expected /= nr_bbr_mss(c, i);
	if (b->epoch_acked <= expected || b->epoch_acked + ev->delivered >= NR_BBR_EPOCH_MAX) {
		b->epoch_acked = 0;
		b->epoch_us = (nr_u32)ev->now_us;
		expected = 0;
	}
	b->epoch_acked += ev->delivered < NR_BBR_EPOCH_MAX ? ev->delivered : NR_BBR_EPOCH_MAX;
	extra = b->epoch_acked > expected ? b->epoch_acked - (nr_u32)expected : 0;
	extra = extra < p->cwnd ? extra : p->cwnd;
	extra = extra < NR_BBR_EXTRA_MAX ? extra : NR_BBR_EXTRA_MAX;
	if (extra > b->extra[b->extra_now])
		b->extra[b->extra_now] = (nr_u16)extra;
	return 1;
}

NR_INLINE nr_u32 nr_bbr_extra(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 most = nr_bbr_bytes(nr_bbr_bw(p), NR_BBR_EXTRA_US) / nr_bbr_mss(c, i);
	nr_u32 extra = b->extra[0] > b->extra[1] ? b->extra[0] : b->extra[1], pair;

	if (!b->full)
		return 0;
	extra = extra < most ? extra : (nr_u32)most;
	pair = NR_BBR_PAIR * NR_BBR_PART - NR_BBR_PAIR * b->part; /* others of the group have it */
	pair = (pair + NR_BBR_PART - 1) / NR_BBR_PART;
	return extra > pair ? extra - pair : 0;
}

/* Recovery or ProbeRTT begins: the window to go back to. */
NR_INLINE void nr_bbr_save_cwnd(struct nr_private *p)
{
	struct nr_bbr *b = nr_bbr(p);

	if (b->recovery != NR_BBR_OPEN || b->mode == NR_BBR_PROBE_RTT)
		p->prior_cwnd = p->prior_cwnd > p->cwnd ? p->prior_cwnd : p->cwnd;
	else
		p->prior_cwnd = p->cwnd;
}

NR_INLINE void nr_bbr_restore_cwnd(NR_HOOK)
{
	if (p->cwnd < p->prior_cwnd)
		nr_set_cwnd(c, i, p, p->prior_cwnd);
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
			target = nr_bbr_round_up(c, i, p, target + nr_bbr_extra(NR_ARGS));
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
