/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which windows a stack cannot have reached by itself, and so must be repaired. Independent of the
 * kernel, so that ../../tests/repair.rs can run it.
 */
#ifndef NR_REPAIR_H
#define NR_REPAIR_H

#include "narrows.h"

/*
 * The most that a window can be, packets, if a program last left it at `before`, or found it there
 * and it was right; 0: no program ran yet, and whatever set the window may have (a route, another
 * control), but for addresses. Since then the stack has only reduced it, ended a reduction at the
 * law's `ssthresh` (0: has none), or set it by what is in flight (PRR), of which `out` is what this
 * acknowledgement left. Twice the largest is never reached, and addresses, which are in a window's
 * place if a program was skipped, are far above.
 */
NR_INLINE nr_u32 nr_cwnd_most(nr_u32 before, nr_u32 ssthresh, nr_u32 out)
{
	nr_u32 most = before;

	if (!before)
		return NR_CWND_MAX;
	if (most < NR_INIT_CWND)
		most = NR_INIT_CWND;
	if (most < ssthresh && ssthresh <= NR_CWND_MAX) /* else there is none yet */
		most = ssthresh;
	if (most < out)
		most = out;
	return most < NR_CWND_MAX / 2 ? 2 * most : NR_CWND_MAX;
}

#endif
