// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hear.h"

int nr_test_hear(struct nr_hearing *h, struct nr_event *ev, nr_u32 delivered, nr_u32 lost);

/* 1: the detector heard `ev`. */
int nr_test_hear(struct nr_hearing *h, struct nr_event *ev, nr_u32 delivered, nr_u32 lost)
{
	if (!nr_hears(h, ev))
		return 0;
	nr_hear_event(h, ev, delivered, lost);
	return 1;
}
