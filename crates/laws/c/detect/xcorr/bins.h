/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bins: means of a path's delays over 20 ms.
 *
 *   d     delay of the path, relative; its time is when it was measured, less half the path's
 *         smallest round trip where that is known
 *   bins  means of d; a gap of up to G is filled by a straight line,
 *         G = clamp(0.8 V g / R, 40 ms, 240 ms), V the variance of the means, R the sum of the
 *         squared differences of neighbours and g the sum of their distances in time: the slower
 *         the queue, the longer a gap
 *
 * An acknowledgement that may have waited alone has no delay here. A path publishes for an interval
 * the bins of the one before, so that the next samples can close a gap.
 */
#ifndef NARROWS_XCORR_BINS_H
#define NARROWS_XCORR_BINS_H

#include "counts.h"
#include "noise.h"

#define NR_XCORR_RANGE (1u << 20)   /* us around the first delay */
#define NR_XCORR_UNIT_BITS 6	    /* of a us, dropped in a bin */
#define NR_XCORR_SAMPLES (1u << 16) /* of a bin; later ones are left out */
#define NR_XCORR_GAP_MIN 2u	    /* bins */
#define NR_XCORR_GAP_MAX 12u

NR_INLINE void nr_xcorr_reset(void *state)
{
	struct nr_xcorr *h = state;

	h->number = h->bin = h->done = h->sum = 0;
	h->delivered_us = h->begun_us = h->counts_us = 0;
	h->aa = h->raa = 0;
	h->a = h->from = 0;
	h->n = h->distance = h->count = h->some = h->based = 0;
	h->gap = NR_XCORR_GAP_MIN;
	h->rtt_us = h->silence_us = h->started = h->delivered = h->base = 0;
	h->newest_us = h->newest = h->noise = h->steps = 0;
}

/* The open bin becomes the newest closed one: bins between are filled, or empty. */
NR_NOINLINE int nr_xcorr_close_bin(struct nr_xcorr *h)
{
	nr_u32 value, away, slope = 0, empty = NR_XCORR_NONE;
	nr_s32 x, r;

	if (!h || !h->count)
		return 0;
	value = (nr_u32)(h->sum / h->count) >> NR_XCORR_UNIT_BITS;
	away = h->some && h->bin - h->done < NR_XCORR_RING ? (nr_u32)(h->bin - h->done)
							   : NR_XCORR_RING;
	if (h->some && away <= h->gap) {
		slope = value > h->last ? ((value - h->last) << 15) / away
					: 0 - ((h->last - value) << 15) / away;
		empty = 0;
	}
	for (nr_u32 n = 1; n < NR_XCORR_RING; n++) {
		NR_FORGET();
		if (n >= away)
			break;
		h->ring[(h->bin - away + n) % NR_XCORR_RING] =
		    (nr_u16)((((h->last << 15) + n * slope) >> 15) | empty);
	}
	h->ring[h->bin % NR_XCORR_RING] = (nr_u16)value;
	if (!h->n)
		h->from = (nr_s32)value;
	if (h->some && away <= NR_XCORR_GAP_MAX) {
		x = nr_xcorr_within((nr_s32)value - h->from);
		r = nr_xcorr_within((nr_s32)value - (nr_s32)h->last);
		h->n += NR_XCORR_ONE;
		h->a += nr_xcorr_one(x);
		h->aa += nr_xcorr_square(x);
		h->raa += nr_xcorr_square(r);
		h->distance += away << NR_XCORR_FRACTION;
	}
	h->last = value;
	h->done = h->bin;
	h->some = 1;
	h->count = 0;
	h->sum = 0;
	return 1;
}

/* G: the longest gap to fill. */
NR_INLINE void nr_xcorr_set_gap(struct nr_xcorr *h)
{
	nr_u64 spread = nr_xcorr_spread(h->aa, h->a, h->n), gap;
	struct nr_fx most, n = nr_fx(h->n);
	nr_s32 step = nr_xcorr_step(h->a, h->n);

	if (h->n > 3 * NR_XCORR_ONE && h->raa) {
		/* 0.8 = 4/5 */
		most = nr_fx_mul(nr_fx_shift(nr_fx(spread), 2), nr_fx(h->distance));
		most =
		    nr_fx_div(most, nr_fx_mul(nr_fx_mul(n, n), nr_fx_mul(nr_fx(h->raa), nr_fx(5))));
		gap = nr_fx_fixed(most, 0);
		h->gap = gap > NR_XCORR_GAP_MAX	  ? NR_XCORR_GAP_MAX
			 : gap < NR_XCORR_GAP_MIN ? NR_XCORR_GAP_MIN
						  : (nr_u32)gap;
	}
	h->aa = nr_xcorr_moved(h->aa, h->a, h->n, step);
	h->a -= step * (nr_s32)h->n;
	h->from += step;
	/* 7/8 each second is 31/32 each interval. */
	h->n = (nr_u32)nr_xcorr_fade(h->n, 5);
	h->a = nr_xcorr_fade_signed(h->a, 5);
	h->aa = nr_xcorr_fade(h->aa, 5);
	h->raa = nr_xcorr_fade(h->raa, 5);
	h->distance = (nr_u32)nr_xcorr_fade(h->distance, 5);
	h->noise = nr_xcorr_fade(h->noise, 5);
	h->steps = (nr_u32)nr_xcorr_fade(h->steps, 5);
}

/*
 * The interval is over: publishes the bins of the one before. They may be empty: a path with
 * packets that does not count keeps its group. Returns 0 if the path was silent.
 */
NR_NOINLINE int nr_xcorr_close(struct nr_xcorr *h)
{
	nr_u64 first;

	if (!h || !h->delivered || !h->number)
		return 0;
	h->delivered = 0;
	first = (h->number - 1) * NR_XCORR_BINS;
	h->summary.base = h->base | (nr_s32)nr_xcorr_pack(h->steps ? h->noise / h->steps : 0);
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n++) {
		nr_u64 before = h->done - (first + n); /* huge if later */
		nr_u32 empty = 0 - (nr_u32)(!h->some | (before >= NR_XCORR_RING));

		h->summary.bin[n] =
		    (nr_u16)(h->ring[(first + n) % NR_XCORR_RING] | (empty & NR_XCORR_NONE));
	}
	nr_xcorr_set_gap(h);
	return 1;
}

/* A delay of a path that counts. */
NR_NOINLINE int nr_xcorr_delay(struct nr_xcorr *h, nr_u64 at_us, nr_s32 delay_us)
{
	nr_u64 bin = at_us / NR_XCORR_BIN_US;
	nr_u32 above;

	if (!h)
		return 0;
	nr_xcorr_add_noise(h, at_us, delay_us);
	above = (nr_u32)delay_us - (nr_u32)h->base + NR_XCORR_RANGE;
	if (!h->based || above >= 2 * NR_XCORR_RANGE) {
		h->based = 1;
		h->base = delay_us & ~NR_XCORR_NOISE;
		h->count = h->n = h->some = h->distance = 0;
		h->a = 0;
		h->sum = h->aa = h->raa = 0;
		above = (nr_u32)delay_us - (nr_u32)h->base + NR_XCORR_RANGE;
	}
	if (h->count && bin > h->bin)
		nr_xcorr_close_bin(h);
	if (!h->count) {
		/* A clock slightly behind: a closed bin stays. */
		if (h->some && bin <= h->done)
			return 0;
		h->bin = bin;
	}
	if (h->count < NR_XCORR_SAMPLES) {
		h->sum += above;
		h->count++;
	}
	return 1;
}

/*
 * Takes a sample. Returns the stamp of the interval that it closed, described by h->summary, or 0.
 */
NR_INLINE nr_u32 nr_xcorr_sample(const void *own, void *state, const struct nr_sample *s)
{
	const struct nr_xcorr_params *p = own;
	struct nr_xcorr *h = state;
	nr_u64 number = nr_interval(h->number, NR_XCORR_T_US, s->now_us);
	nr_u64 back;
	nr_u32 stamp = 0;

	if (number != h->number) {
		if (nr_xcorr_close(h))
			stamp = (nr_u32)h->number + 1;
		h->number = number;
	}
	if (!s->delivered && !s->lost && !s->sampled)
		return stamp;
	if (s->rtt_us && (!h->rtt_us || s->rtt_us < h->rtt_us))
		h->rtt_us = s->rtt_us;
	if (!nr_xcorr_counts(p, h, s) || !s->sampled || s->supposed)
		return stamp;
	/* At most an interval back, as its bins are published after the next one. */
	back = h->rtt_us / 2;
	if (back > NR_XCORR_T_US)
		back = NR_XCORR_T_US;
	nr_xcorr_delay(h, s->now_us > back ? s->now_us - back : 0, s->delay_us);
	return stamp;
}

#endif
