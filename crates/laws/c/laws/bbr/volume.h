/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both versions do alike with the amount in flight: the bandwidth-delay product, late
 * acknowledgements, the window to go back to.
 */
#ifndef NARROWS_BBR_VOLUME_H
#define NARROWS_BBR_VOLUME_H

#ifndef NARROWS_BBR_STATE3_H /* version 3 has included its state */
#include "state.h"
#endif

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
 * Acknowledgements that come together (Wi-Fi, cable, offloads) stop a sender between them if its
 * window is just enough. So the window is larger by the most that was acknowledged beyond the
 * estimated bandwidth since an epoch began; an epoch ends when nothing was. A window of the filter
 * has `rounds`.
 */
NR_NOINLINE int nr_bbr_aggregation(NR_HOOK, nr_u32 rounds)
{
	struct nr_bbr *b;
	nr_u32 extra;
	nr_u64 expected;

	if (!c || !p || !ev || !ev->delivered || !ev->rate)
		return 0;
	b = nr_bbr(p);
	if (b->round_start && ++b->extra_rounds >= rounds) {
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

/* The room for that, 1/256 packet. */
NR_INLINE nr_u32 nr_bbr_extra(NR_HOOK)
{
	struct nr_bbr *b = nr_bbr(p);
	nr_u64 most = nr_bbr_bytes(nr_bbr_bw(p), NR_BBR_EXTRA_US) / nr_bbr_mss(c, i);
	nr_u32 extra = b->extra[0] > b->extra[1] ? b->extra[0] : b->extra[1], others;

	extra = (extra < most ? extra : (nr_u32)most) * NR_BBR_ONE;
	others = (nr_u32)((nr_u64)NR_BBR_TOGETHER * (NR_BBR_PART - b->part) / NR_BBR_PART);
	return extra > others ? extra - others : 0; /* others of the group have it */
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

#endif
