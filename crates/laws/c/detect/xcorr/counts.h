/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a path counts.
 *
 * What a path's own sending does to its delay says nothing of a common queue, as the paths of a
 * connection start and pause together. So a path does not count
 *
 *   - until its first loss, at most 3 s;
 *   - while it is limited by the application;
 *   - while its law drains the queue in ProbeRTT;
 *   - after a silence much longer than its usual ones: a pause, a closed window, a timeout;
 *   - and after each of these until its queue has settled, 500 ms and two round trips; but after
 *     limits only if they lasted as a pause does.
 */
#ifndef NARROWS_XCORR_COUNTS_H
#define NARROWS_XCORR_COUNTS_H

#include "state.h"

/* The path does not count now, nor until its queue has settled. */
NR_INLINE void nr_xcorr_wait(const struct nr_xcorr_params *p, struct nr_xcorr *h, nr_u64 now_us)
{
	h->counts_us = now_us + p->settle_us + 2ull * h->rtt_us;
	h->count = 0;
	h->sum = 0;
}

/* Does the path count, or does its own sending explain its delay? */
NR_NOINLINE int nr_xcorr_counts(const struct nr_xcorr_params *p, struct nr_xcorr *h,
				const struct nr_sample *s)
{
	nr_u64 silence;

	if (!p || !h || !s)
		return 0;
	silence = s->now_us > h->delivered_us ? s->now_us - h->delivered_us : 0;
	/*
	 * What is lost before anything is delivered ends no slow start, as in a capture that begins
	 * within a loss.
	 */
	if (h->begun_us && s->lost)
		h->started = 1;
	if (!h->begun_us) {
		h->delivered_us = s->now_us;
		if (s->delivered || s->sampled)
			h->begun_us = s->now_us;
		silence = 0;
		nr_xcorr_wait(p, h, s->now_us);
	}
	if (s->resting || (!h->started && s->now_us < h->begun_us + p->start_us) ||
	    (silence >= p->pause_us && silence / 8 >= h->silence_us))
		nr_xcorr_wait(p, h, s->now_us);
	if (s->delivered || s->sampled)
		h->delivered = 1;
	/* What the application limits does not count, and is a pause if it lasts. */
	if (s->delivered && !s->limited) {
		if (silence > 1u << 24)
			silence = 1u << 24;
		h->silence_us += (nr_u32)silence / 16;
		h->silence_us -= h->silence_us / 16;
		h->delivered_us = s->now_us;
	}
	return s->now_us >= h->counts_us && !s->limited;
}

#endif
