/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The long-term model of a policer, which drops what exceeds its rate without a queue. Two
 * intervals in a row, each of at least 4 rounds between losses and with more than a fifth lost,
 * that deliver at the same rate: that is the policer's, and the path sends at it for 48 rounds,
 * then probes again.
 */
#ifndef NARROWS_BBR_POLICER_H
#define NARROWS_BBR_POLICER_H

#include "state.h"

#define NR_BBR_LT_ROUNDS 4u	   /* an interval lasts so many rounds at least, */
#define NR_BBR_LT_MOST 16u	   /* and so many at most */
#define NR_BBR_LT_LOSS 50u	   /* of 256 delivered: so many lost are a policer's work */
#define NR_BBR_LT_RATIO 8u	   /* rates agree within this part of the first, */
#define NR_BBR_LT_DIFF (4000u / 8) /* or within so many bytes/s (4 kbit/s) */
#define NR_BBR_LT_HOLD 48u	   /* rounds at the policer's rate */

/* An interval begins. */
NR_INLINE void nr_bbr_lt_interval(struct nr_bbr *b, const struct nr_event *ev)
{
	b->lt_ms = nr_now_ms(ev);
	b->lt_delivered = b->delivered;
	b->lt_lost = 0;
	b->lt_rounds = 0;
}

/* Nothing is known. */
NR_INLINE void nr_bbr_lt_reset(struct nr_bbr *b, const struct nr_event *ev)
{
	b->lt_bw = 0;
	b->lt_use = 0;
	b->lt_sampling = 0;
	nr_bbr_lt_interval(b, ev);
}

/* An interval with heavy loss delivered at `bw`. */
NR_INLINE void nr_bbr_lt_done(struct nr_bbr *b, const struct nr_event *ev, nr_u32 bw)
{
	nr_u32 diff = bw > b->lt_bw ? bw - b->lt_bw : b->lt_bw - bw;

	if (b->lt_bw && ((nr_u64)diff * NR_BBR_LT_RATIO <= b->lt_bw ||
			 nr_bbr_pace(diff, NR_BBR_ONE) <= NR_BBR_LT_DIFF)) {
		b->lt_bw = (nr_u32)(((nr_u64)bw + b->lt_bw) / 2);
		b->lt_use = 1;
		b->lt_rounds = 0;
		return;
	}
	b->lt_bw = bw;
	nr_bbr_lt_interval(b, ev);
}

/* After each sample, with the packets marked lost since the one before. */
NR_NOINLINE int nr_bbr_lt_sample(NR_HOOK, nr_u32 losses)
{
	nr_u32 lost, delivered, ms;
	struct nr_bbr *b;

	if (!c || !p || !ev)
		return 0;
	b = nr_bbr(p);
	if (!b->lt_sampling) {
		if (!losses)
			return 0;
		nr_bbr_lt_interval(b, ev); /* it begins with a loss: the bucket is empty */
		b->lt_sampling = 1;
	}
	if (b->limited) {
		nr_bbr_lt_reset(b, ev);
		return 0;
	}
	if (b->round_start)
		b->lt_rounds++;
	if (b->lt_rounds < NR_BBR_LT_ROUNDS)
		return 0;
	if (b->lt_rounds > NR_BBR_LT_MOST) {
		nr_bbr_lt_reset(b, ev);
		return 0;
	}
	if (!losses) /* it ends with one, too */
		return 0;
	lost = b->lt_lost;
	delivered = b->delivered - b->lt_delivered;
	if (!delivered || (nr_u64)lost * 256 < (nr_u64)delivered * NR_BBR_LT_LOSS)
		return 0;
	ms = nr_now_ms(ev) - b->lt_ms;
	if (!ms)
		return 0;
	if (ms >= 0xffffffffu / 1000) {
		nr_bbr_lt_reset(b, ev);
		return 0;
	}
	nr_bbr_lt_done(b, ev, nr_bbr_rate(c, i, delivered, ms * 1000));
	return 1;
}

/* Is a round of those at the policer's rate the last? */
NR_INLINE int nr_bbr_lt_over(struct nr_bbr *b)
{
	return b->mode == NR_BBR_PROBE_BW && b->round_start && ++b->lt_rounds >= NR_BBR_LT_HOLD;
}

#endif
