/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which windows a stack cannot have reached by itself, and so must be repaired. Independent of the
 * kernel, so that ../../tests/repair.rs can run it.
 */
#ifndef NR_REPAIR_H
#define NR_REPAIR_H

#include "narrows.h"

/*
 * The most that a window can be, packets, if it was `before` when a program last ran, and the law's
 * window and threshold are `law` and `ssthresh`. Between programs the stack only reduces it, ends
 * a reduction at the threshold, or sets it by what is in flight (PRR), of which `out` is what this
 * acknowledgement left. Twice the largest is never reached, and addresses, which are in a window's
 * place if a program was skipped, are far above.
 */
NR_INLINE nr_u32 nr_cwnd_most(nr_u32 before, nr_u32 law, nr_u32 ssthresh, nr_u32 out)
{
	nr_u32 most = NR_INIT_CWND;

	if (most < before)
		most = before;
	if (most < law)
		most = law;
	if (most < ssthresh && ssthresh <= NR_CWND_MAX) /* else there is none yet */
		most = ssthresh;
	if (most < out)
		most = out;
	return most < NR_CWND_MAX / 2 ? 2 * most : NR_CWND_MAX;
}

#endif
