// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ack_thinning.h"

int nr_test_ack_thinning(struct nr_ack_thinning *t, struct nr_event *ev, nr_u32 delivered,
			 nr_u32 lost);

/* 1: the detector is shown `ev`. */
int nr_test_ack_thinning(struct nr_ack_thinning *t, struct nr_event *ev, nr_u32 delivered,
			 nr_u32 lost)
{
	if (!nr_ack_passes(t, ev))
		return 0;
	nr_ack_passed(t, ev, delivered, lost);
	return 1;
}
