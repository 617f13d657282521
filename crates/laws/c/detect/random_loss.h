/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does a path lose packets without a queue, as on a radio link? Then its losses are no congestion,
 * least of all its siblings', and it shares no bottleneck that has a queue.
 *
 * Source: this project; a standing queue is the least delay of a while, as in RFC 8289, section 3.
 *
 *   q       least delay of the last one to two round trips when a loss is found, above the least of
 *           the last 4 to 8 s; one loss a round trip counts
 *   J       how far the least delay of a round trip lies from the median of it and its neighbours',
 *           a mean with a gain of 1/64
 *   few     q < rtt / 32 + min(6 max(J - rtt / 128, 0), rtt / 32), rtt the smallest round trip
 *   losses  are random from seven of the last eight with few on, until fewer than six are
 *
 * A queue that overflows stands for more than a round trip before, while one of the path's own
 * bursts is gone within it. One that holds less than 1/32 of the bandwidth-delay product is not
 * worth the name; one that is managed stands at 5 ms where it drops (RFC 8289), so this may be
 * wrong of one from 160 ms on, with jitter from 80 ms. With a few packets in a round trip, jitter
 * hides how small the delay was, and so looks like a queue, but one that comes and goes from a
 * round trip to the next: that is J, while a queue that fills or drains lies between its neighbours
 * but where it turns. J below rtt / 128 is what queues of a few packets have without jitter.
 */
#ifndef NARROWS_DETECT_RANDOM_LOSS_H
#define NARROWS_DETECT_RANDOM_LOSS_H

#include "sample.h"

#define NR_RANDOM_WINDOW_US 4000000u
#define NR_RANDOM_BEHIND_US 1000000u /* a clock that is slightly behind, as on another CPU */
#define NR_RANDOM_LEAST 7u	     /* of the last eight */
#define NR_RANDOM_STILL 6u
#define NR_RANDOM_GAIN 64u
#define NR_RANDOM_CHANGE (1u << 20) /* us from a round to the next; more counts as that */

/* The least delay of the open window of time and of the one before it. */
struct nr_least {
	nr_u32 begun_us; /* wraps */
	nr_s32 now;
	nr_s32 before;
};

/* State of a path. Only `random` is read by others. */
struct nr_random_loss {
	struct nr_least round;
	struct nr_least base;
	nr_u32 rtt_us; /* smallest; 0: unknown */
	nr_u32 jitter; /* 64 J, us */
	nr_s32 change; /* of the round's least delay, the last */
	nr_u8 few;     /* the last eight losses, as bits: q was small */
	nr_u8 some;    /* 1: there is a delay */
	nr_u8 lost;    /* 1: a loss was found in the open round */
	nr_u8 random;  /* 1: losses are */
};

/* Delay a less delay b: both are relative, and wrap. */
NR_INLINE nr_s32 nr_delay_less(nr_s32 a, nr_s32 b)
{
	return (nr_s32)((nr_u32)a - (nr_u32)b);
}

/* A delay; returns 1 if it begins a window, of `length_us`. After a silence nothing is before. */
NR_INLINE int nr_least_take(struct nr_least *w, nr_u32 length_us, nr_s32 delay_us, nr_u32 now_us,
			    int some)
{
	nr_u32 age = now_us - w->begun_us;

	if (some && (age < length_us || age > 0u - NR_RANDOM_BEHIND_US)) {
		if (nr_delay_less(delay_us, w->now) < 0)
			w->now = delay_us;
		return 0;
	}
	w->before = some && age < 2 * length_us ? w->now : delay_us;
	w->now = delay_us;
	w->begun_us = now_us;
	return 1;
}

NR_INLINE nr_s32 nr_least(const struct nr_least *w)
{
	return nr_delay_less(w->before, w->now) < 0 ? w->before : w->now;
}

/* How much is it? At most NR_RANDOM_CHANGE. */
NR_INLINE nr_u32 nr_random_magnitude(nr_s32 change)
{
	nr_u32 of = change < 0 ? 0u - (nr_u32)change : (nr_u32)change;

	return of < NR_RANDOM_CHANGE ? of : NR_RANDOM_CHANGE;
}

/* A round is over; `before` is the least delay of the one before it, whose neighbours are known. */
NR_INLINE void nr_random_round(struct nr_random_loss *h, nr_s32 before)
{
	nr_s32 change = nr_delay_less(h->round.before, before);
	nr_u32 one = nr_random_magnitude(h->change), other = nr_random_magnitude(change),
	       beyond = 0;

	if ((h->change < 0) != (change < 0))
		beyond = one < other ? one : other;
	h->jitter += beyond - h->jitter / NR_RANDOM_GAIN;
	h->change = change;
}

/* A loss was found: how much stood in the queue? */
NR_INLINE void nr_random_lost(struct nr_random_loss *h)
{
	nr_s32 queue = nr_delay_less(nr_least(&h->round), nr_least(&h->base));
	nr_u32 most = h->rtt_us / 32, jitter = h->jitter / NR_RANDOM_GAIN;
	nr_u32 least = h->random ? NR_RANDOM_STILL : NR_RANDOM_LEAST;

	jitter = jitter > most / 4 ? 6 * (jitter - most / 4) : 0;
	most += jitter < most ? jitter : most;
	h->few = (nr_u8)(h->few << 1 | (queue < (nr_s32)most));
	NR_WRITE(h->random, (nr_u32)NR_ONES64(h->few) >= least);
}

/* A sample of the path. */
NR_INLINE void nr_random_sample(struct nr_random_loss *h, const struct nr_sample *s)
{
	nr_u32 now_us = (nr_u32)s->now_us;
	nr_s32 before = h->round.before;

	if (s->rtt_us && (!h->rtt_us || s->rtt_us < h->rtt_us))
		h->rtt_us = s->rtt_us;
	if (s->sampled && !s->supposed) {
		nr_least_take(&h->base, NR_RANDOM_WINDOW_US, s->delay_us, now_us, h->some);
		if (nr_least_take(&h->round, h->rtt_us, s->delay_us, now_us, h->some)) {
			if (h->some)
				nr_random_round(h, before);
			h->lost = 0;
		}
		h->some = 1;
	}
	if (!s->lost || h->lost || !h->some)
		return;
	h->lost = 1;
	nr_random_lost(h);
}

#endif
