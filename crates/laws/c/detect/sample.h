/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a detector is given of a path: an acknowledgement's delay and losses, or at a receiver those
 * of a data segment.
 *
 * The delay is relative: one-way where the host has it, else the round trip, less the time the
 * sample is known to have waited in a delayed acknowledgement. RFC 8382, section 2, takes either;
 * the round trip carries twice the noise.
 */
#ifndef NARROWS_DETECT_SAMPLE_H
#define NARROWS_DETECT_SAMPLE_H

#include "../narrows.h"

/* The shortest time a delayed acknowledgement waits (Linux: TCP_DELACK_MIN, 40 ms). */
#define NR_DELACK_US 40000u
/* After so many acknowledgements in a row that waited, a path is taken to have no others. */
#define NR_WAITS 8u

struct nr_sample {
	nr_u64 now_us;
	nr_u64 bw;	  /* the law's estimate of the bottleneck's bandwidth, bytes/s; 0: none */
	nr_s32 delay_us;  /* relative */
	nr_u32 sampled;	  /* 1: delay_us is valid */
	nr_u32 delivered; /* packets */
	nr_u32 lost;	  /* packets */
	nr_u32 limited;	  /* 1: the application, not the network, set the pace */
	nr_u32 cycles;	  /* full cycles that the law's probing for it has been through */
};

/* What a path remembers to distinguish delays from waits. */
struct nr_delack {
	nr_u64 acked_us; /* of the last acknowledgement */
	nr_u32 waits;	 /* acknowledgements since one that did not wait, at most NR_WAITS */
	nr_u32 reserved;
};

/*
 * The number of the interval that `now_us` is in. A clock that is a little behind, as another CPU's
 * may be, stays in the open one.
 */
NR_INLINE nr_u64 nr_interval(nr_u64 open, nr_u32 t_us, nr_u64 now_us)
{
	nr_u64 number;

	if (now_us - open * t_us < t_us)
		return open;
	number = now_us / t_us;
	return number + 1 == open ? open : number;
}

/*
 * The sample in an event. No delay is taken of a packet that was retransmitted; nor, where the wait
 * is not known, of one packet acknowledged NR_DELACK_US or more after the acknowledgement before
 * it: a delayed acknowledgement is sent at the second packet, and waits that long only when none
 * comes. But of a path with a window of one packet all wait, and nothing would ever be sampled of
 * it: coupled with all as long as nothing is known, it would stay at that window. Its delays are
 * taken less the shortest wait.
 */
NR_INLINE struct nr_sample nr_sample(struct nr_delack *h, const struct nr_event *ev)
{
	struct nr_sample s = {
	    .now_us = ev->now_us,
	    .delivered = ev->delivered,
	    .lost = ev->lost,
	    .limited = !!(ev->flags & NR_F_APP_LIMITED),
	};
	/* A clock that is a little behind makes no silence. */
	int silent = ev->now_us >= h->acked_us + NR_DELACK_US;

	if (ev->kind != NR_ACKED)
		return s;
	h->acked_us = ev->now_us;
	if (ev->flags & NR_F_RETRANS)
		return s;
	s.delay_us = ev->flags & NR_F_OWD ? ev->owd_us : (nr_s32)ev->rtt_us;
	s.sampled = ev->flags & NR_F_OWD || (nr_s32)ev->rtt_us > 0;
	if (ev->flags & NR_F_DWELL)
		s.delay_us = (nr_s32)((nr_u32)s.delay_us - ev->dwell_us);
	else if (ev->delivered != 1 || !silent)
		h->waits = 0;
	else if (h->waits < NR_WAITS) {
		h->waits++;
		s.sampled = 0;
	} else
		s.delay_us = (nr_s32)((nr_u32)s.delay_us - NR_DELACK_US);
	return s;
}

#endif
