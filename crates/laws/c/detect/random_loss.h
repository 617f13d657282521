/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does a path lose packets without a queue, as on a radio link? Then its losses are no congestion,
 * least of all its siblings', and it shares no bottleneck that has a queue.
 *
 * Source: this project.
 *
 *   q       delay when a loss is found, above the least of the last 4 to 8 s, smoothed by 1/8: what
 *           is acknowledged then left right behind the lost packet, and met the queue that was full
 *   losses  are random if q < rtt / 32 over eight or more, rtt the smallest round trip
 *
 * A queue that overflows holds 1/32 of the bandwidth-delay product or more, else it is not worth
 * the name; one that is managed holds 5 ms or more where it drops (RFC 8289), so this is wrong of
 * one above 160 ms.
 */
#ifndef NARROWS_DETECT_RANDOM_LOSS_H
#define NARROWS_DETECT_RANDOM_LOSS_H

#include "sample.h"

#define NR_RANDOM_WINDOW_US 4000000u
#define NR_RANDOM_LOSSES 8u
#define NR_RANDOM_MAX_US (1u << 24)

/* State of a path. Only `random` is read by others. */
struct nr_random_loss {
	nr_u32 begun_us; /* of the newer window; wraps, as the next */
	nr_u32 loss_us;	 /* the last one: one a round trip counts */
	nr_s32 least;	 /* delay in the newer window */
	nr_s32 before;	 /* and in the older one */
	nr_s32 newest;	 /* delay */
	nr_u32 rtt_us;	 /* smallest; 0: unknown */
	nr_u32 queue8;	 /* q, 1/8 us */
	nr_u8 some;	 /* 1: there is a delay */
	nr_u8 lost;	 /* 1: a loss was found, and no delay since */
	nr_u8 losses;	 /* that counted, at most NR_RANDOM_LOSSES */
	nr_u8 random;	 /* 1: they are */
};

/* Delay a less delay b, at least 0: both are relative, and wrap. */
NR_INLINE nr_u32 nr_random_above(nr_s32 a, nr_s32 b)
{
	nr_s32 above = (nr_s32)((nr_u32)a - (nr_u32)b);

	if (above < 0)
		return 0;
	return above < (nr_s32)NR_RANDOM_MAX_US ? (nr_u32)above : NR_RANDOM_MAX_US;
}

/* A delay. */
NR_INLINE void nr_random_delay(struct nr_random_loss *h, nr_s32 delay_us, nr_u32 now_us)
{
	if (!h->some || now_us - h->begun_us >= NR_RANDOM_WINDOW_US) {
		/* After a silence the older window is too old. */
		int follows = h->some && now_us - h->begun_us < 2 * NR_RANDOM_WINDOW_US;

		h->before = follows ? h->least : delay_us;
		h->least = delay_us;
		h->begun_us = now_us;
		h->some = 1;
	}
	if ((nr_s32)((nr_u32)delay_us - (nr_u32)h->least) < 0)
		h->least = delay_us;
	h->newest = delay_us;
}

/* A loss was found, at the newest delay. */
NR_INLINE void nr_random_lost(struct nr_random_loss *h, nr_u32 now_us)
{
	nr_u32 queue = nr_random_above(h->newest, h->least), older;

	older = nr_random_above(h->newest, h->before);
	if (older > queue)
		queue = older;
	h->loss_us = now_us;
	h->queue8 = h->losses ? h->queue8 - h->queue8 / 8 + queue : 8 * queue;
	if (h->losses < NR_RANDOM_LOSSES)
		h->losses++;
	NR_WRITE(h->random, h->losses >= NR_RANDOM_LOSSES && h->queue8 / 8 < h->rtt_us / 32);
}

/* A sample of the path. */
NR_INLINE void nr_random_sample(struct nr_random_loss *h, const struct nr_sample *s)
{
	nr_u32 now_us = (nr_u32)s->now_us;

	if (s->rtt_us && (!h->rtt_us || s->rtt_us < h->rtt_us))
		h->rtt_us = s->rtt_us;
	if (s->lost && now_us - h->loss_us >= h->rtt_us)
		h->lost = 1;
	if (!s->sampled || s->supposed)
		return;
	nr_random_delay(h, s->delay_us, now_us);
	if (!h->lost)
		return;
	h->lost = 0;
	nr_random_lost(h, now_us);
}

#endif
