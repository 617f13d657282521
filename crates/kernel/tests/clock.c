// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock.h"

NR_STATIC_ASSERT(sizeof(struct nr_clock) == 28, "as in clock.rs");

void nr_test_clock_sample(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us,
			  nr_u32 signal);

void nr_test_clock_sample(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us,
			  nr_u32 signal)
{
	nr_clock_sample(c, tsval, now_us, rtt_us, signal);
}
