/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Standard slow start: a joining path begins with the initial window of RFC 6928, takes nothing
 * from its siblings, and doubles each round trip.
 */
#ifndef NARROWS_START_STANDARD_H
#define NARROWS_START_STANDARD_H

#include "../narrows.h"

NR_INLINE nr_u32 nr_standard_initial(void)
{
	return NR_INIT_CWND;
}

#endif
