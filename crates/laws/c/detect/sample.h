/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The input of a detector: delay and losses of an acknowledgement, or at a receiver of a data
 * segment.
 *
 * The delay is relative: one-way if the host has it, else the round trip, less the known delay by a
 * delayed acknowledgement. RFC 8382, section 2, allows either; the round trip has twice the noise.
 * With NR_F_NO_DELAY the round trip does not stand in for a one-way delay that is missing.
 * With NR_F_SRTT it is the smoothed round trip as it is at every acknowledgement (arXiv:1812.05816,
 * section 5.2).
 */
#ifndef NARROWS_DETECT_SAMPLE_H
#define NARROWS_DETECT_SAMPLE_H

#include "../narrows.h"

/* The shortest time a delayed acknowledgement waits (Linux: TCP_DELACK_MIN, 40 ms). */
#define NR_DELACK_US 40000u
/* After so many delayed acknowledgements in a row, all of the path are taken to be delayed. */
#define NR_WAITS 8u

struct nr_sample {
	nr_u64 now_us;
	nr_u64 bw;	  /* the law's estimate of the bottleneck's bandwidth, bytes/s; 0: none */
	nr_s32 delay_us;  /* relative */
	nr_u32 delivered; /* packets */
	nr_u32 lost;	  /* packets */
	nr_u32 cycles;	  /* full ProbeBW cycles of the law */
	nr_u32 rtt_us;	  /* round trip, less a known delay by a delayed acknowledgement; 0: none */
	nr_u8 sampled;	  /* 1: delay_us is valid */
	nr_u8 supposed;	  /* 1: it is less a delay that is only supposed, NR_DELACK_US */
	nr_u8 limited;	  /* 1: limited by the application */
	nr_u8 resting;	  /* 1: the law drains the queue, in ProbeRTT */
};

/* A path's state to recognise delayed acknowledgements. */
struct nr_delack {
	nr_u64 acked_us; /* of the last acknowledgement */
	nr_u32 waits;	 /* consecutive delayed acknowledgements, at most NR_WAITS */
	nr_u32 reserved;
};

/*
 * The number of the interval that `now_us` is in; the open one if the clock is slightly behind, as
 * on another CPU.
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
 * The sample in an event. No delay is taken from a retransmitted packet, nor from an
 * acknowledgement without new data, as its timestamp is that of older data; nor, without a known
 * dwell, from a single packet acknowledged NR_DELACK_US or more after the last acknowledgement: a
 * delayed acknowledgement is sent at the second packet, and waits that long only if none arrives.
 * On a path with a window of one packet all acknowledgements are delayed, and it would never be
 * sampled: linked with all while undecided, it would keep that window. There the minimum wait is
 * subtracted.
 */
NR_INLINE struct nr_sample nr_sample(struct nr_delack *h, const struct nr_event *ev)
{
	struct nr_sample s = {
	    .now_us = ev->now_us,
	    .delivered = ev->delivered,
	    .lost = ev->lost,
	    .limited = !!(ev->flags & NR_F_APP_LIMITED),
	};
	/* A clock that is slightly behind is no silence. */
	int silent = ev->now_us >= h->acked_us + NR_DELACK_US;

	if (ev->kind != NR_ACKED || !ev->delivered)
		return s;
	h->acked_us = ev->now_us;
	if (ev->flags & NR_F_SRTT) {
		s.delay_us = (nr_s32)(ev->srtt8_us / 8);
		s.sampled = ev->srtt8_us > 0;
		return s;
	}
	if (ev->flags & NR_F_RETRANS)
		return s;
	s.rtt_us = ev->rtt_us;
	if (ev->flags & NR_F_DWELL)
		s.rtt_us = ev->rtt_us > ev->dwell_us ? ev->rtt_us - ev->dwell_us : 0;
	s.delay_us = ev->flags & NR_F_OWD ? ev->owd_us : (nr_s32)ev->rtt_us;
	s.sampled =
	    ev->flags & NR_F_OWD || ((nr_s32)ev->rtt_us > 0 && !(ev->flags & NR_F_NO_DELAY));
	if (ev->flags & NR_F_DWELL)
		s.delay_us = (nr_s32)((nr_u32)s.delay_us - ev->dwell_us);
	else if (ev->delivered != 1 || !silent)
		h->waits = 0;
	else if (h->waits < NR_WAITS) {
		h->waits++;
		s.sampled = 0;
	} else {
		s.delay_us = (nr_s32)((nr_u32)s.delay_us - NR_DELACK_US);
		s.supposed = 1;
	}
	return s;
}

#endif
