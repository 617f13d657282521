/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a path may use of its bandwidth, given the paths of its mask: the one place where a BBR law
 * is coupled.
 */
#ifndef NARROWS_BBR_SHARE_H
#define NARROWS_BBR_SHARE_H

#include "state.h"

/* The bandwidth to send at, 16 bytes/s. */
NR_INLINE nr_u32 nr_bbr_bw(struct nr_private *p)
{
	struct nr_bbr *b = nr_bbr(p);

	return b->lt_use ? b->lt_bw : nr_max(&b->bw);
}

/* The pacing gain of ProbeBW's phase. */
NR_INLINE nr_u32 nr_bbr_phase_gain(nr_u32 phase)
{
	return phase == 0 ? NR_BBR_UP : phase == 1 ? NR_BBR_DOWN : NR_BBR_ONE;
}

NR_INLINE nr_u32 nr_bbr_pacing_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_DRAIN:
		return NR_BBR_DRAIN_GAIN;
	case NR_BBR_PROBE_BW:
		return b->lt_use ? NR_BBR_ONE : nr_bbr_phase_gain(b->phase);
	default:
		return NR_BBR_ONE;
	}
}

NR_INLINE nr_u32 nr_bbr_cwnd_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
	case NR_BBR_DRAIN: /* the window must not stop what pacing lets out */
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_PROBE_BW:
		return NR_BBR_CWND_GAIN;
	default:
		return NR_BBR_ONE;
	}
}

#endif
