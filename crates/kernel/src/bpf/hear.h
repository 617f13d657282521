/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which events of a path its detector hears. Of acknowledgements one in NR_HEAR_US, with all that
 * was delivered and lost since it heard the last: more would tell it little, as bins of 20 ms have
 * ten, and what it keeps is seldom in the caches. And it hears the first of a burst, which waited
 * least for the others. Independent of the kernel, so that ../../tests/hear.rs can run it.
 */
#ifndef NR_HEAR_H
#define NR_HEAR_H

#include "detect/sample.h"

#define NR_HEAR_US 2000u

/* What a socket keeps for that. */
struct nr_hearing {
	nr_u32 us;	  /* when the detector last heard a delay, wraps */
	nr_u32 acked_us;  /* an acknowledgement, likewise */
	nr_u32 delivered; /* what it has heard of, of tp->delivered; likewise the next */
	nr_u32 lost;
};

/* Those without anything new are not heard. */
NR_INLINE int nr_hears(const struct nr_hearing *h, const struct nr_event *ev)
{
	return ev->kind != NR_ACKED ||
	       ((ev->delivered || ev->lost) && (nr_u32)ev->now_us - h->us >= NR_HEAR_US);
}

/*
 * The detector hears event `ev`, and by then so much has been delivered and lost on the path. A
 * packet that is alone after a silence stays alone, as that tells a delayed acknowledgement
 * (nr_sample()); the next one, which may tell that it was none, is heard however soon it comes. So
 * is the next after one without a delay.
 */
NR_INLINE void nr_hear_event(struct nr_hearing *h, struct nr_event *ev, nr_u32 delivered,
			     nr_u32 lost)
{
	nr_u32 now_us = (nr_u32)ev->now_us;

	if (ev->kind == NR_ACKED) {
		int alone = ev->delivered == 1 && now_us - h->acked_us >= NR_DELACK_US;

		if (!alone)
			ev->delivered = delivered - h->delivered;
		if (!alone && ev->rtt_us)
			h->us = now_us;
		h->acked_us = now_us;
	}
	ev->lost = lost - h->lost;
	h->delivered += ev->delivered;
	h->lost = lost;
}

#endif
