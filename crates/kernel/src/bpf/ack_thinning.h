/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ACK thinning: which events of a path its detector is shown. Of acknowledgements one in
 * NR_ACK_THINNING_US, with all that was delivered and lost since it was shown the last: more would
 * tell it little, as bins of 20 ms have ten, and what it keeps is seldom in the caches. And it is
 * shown the first of a burst, which waited least for the others. Independent of the kernel, so that
 * ../../tests/ack_thinning.rs can run it.
 */
#ifndef NR_ACK_THINNING_H
#define NR_ACK_THINNING_H

#include "detect/sample.h"

#define NR_ACK_THINNING_US 2000u

/* What a socket keeps for that. */
struct nr_ack_thinning {
	nr_u32 us;	  /* when the detector was last shown a delay, wraps */
	nr_u32 acked_us;  /* an acknowledgement, likewise */
	nr_u32 delivered; /* what it was shown, of tp->delivered; likewise the next */
	nr_u32 lost;
};

/* Is the detector shown event `ev`? Not an acknowledgement without anything new. */
NR_INLINE int nr_ack_passes(const struct nr_ack_thinning *t, const struct nr_event *ev)
{
	return ev->kind != NR_ACKED ||
	       ((ev->delivered || ev->lost) && (nr_u32)ev->now_us - t->us >= NR_ACK_THINNING_US);
}

/*
 * The detector is shown event `ev`, and by then so much has been delivered and lost on the path. A
 * packet that is alone after a silence stays alone, as that tells a delayed acknowledgement
 * (nr_sample()); the next one, which may tell that it was none, is shown however soon it comes. So
 * is the next after one without a delay.
 */
NR_INLINE void nr_ack_passed(struct nr_ack_thinning *t, struct nr_event *ev, nr_u32 delivered,
			     nr_u32 lost)
{
	nr_u32 now_us = (nr_u32)ev->now_us;

	if (ev->kind == NR_ACKED) {
		int alone = ev->delivered == 1 && now_us - t->acked_us >= NR_DELACK_US;

		if (!alone)
			ev->delivered = delivered - t->delivered;
		if (!alone && ev->rtt_us)
			t->us = now_us;
		t->acked_us = now_us;
	}
	ev->lost = lost - t->lost;
	t->delivered += ev->delivered;
	t->lost = lost;
}

#endif
