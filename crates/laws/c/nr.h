/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For hosts that compile in one law (NR_THIS, see law.h). An event goes to the detector, which may
 * change masks, and then to the law, which reads them. In most hosts detector and start are
 * constants, and only these two are compiled in.
 *
 * The result is in the path's published line: cwnd, ssthresh, pacing_rate, advice.
 */
#ifndef NARROWS_NR_H
#define NARROWS_NR_H

#include "detectors.h"
#include "window.h"

NR_INLINE void nr_on_event(nr_u32 detector, nr_u32 start, struct nr_conn *c,
			   struct nr_detection *det, nr_u32 i, struct nr_private *p,
			   const struct nr_event *ev)
{
	nr_detect(detector, c, det, i & 7, ev);
	nr_law_event(start, c, i & 7, p, ev);
}

#endif
