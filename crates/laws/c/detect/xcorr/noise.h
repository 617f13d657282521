/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Noise of a path: what its delay changes within a bin, of which the bins know nothing.
 *
 *   N  mean squared difference of a delay from the one before, 4 ms or somewhat more earlier,
 *      us^2; published with one bit behind the leading one, at least 16
 */
#ifndef NARROWS_XCORR_NOISE_H
#define NARROWS_XCORR_NOISE_H

#include "sums.h"

#define NR_XCORR_APART_US 4000u	      /* between delays that tell noise */
#define NR_XCORR_NOISE_MAX (1u << 16) /* us between successive delays; more counts as that */

/*
 * Noise: the squared distance of a delay from the one before, 4 ms or more earlier and not long
 * ago. Packets of one burst pass a fast link in less, and tell each other nothing.
 */
NR_INLINE void nr_xcorr_add_noise(struct nr_xcorr *h, nr_u64 at_us, nr_s32 delay_us)
{
	nr_u64 away = delay_us > h->newest ? (nr_u32)delay_us - (nr_u32)h->newest
					   : (nr_u32)h->newest - (nr_u32)delay_us;

	if (h->based && at_us < h->newest_us + NR_XCORR_APART_US)
		return;
	if (away > NR_XCORR_NOISE_MAX)
		away = NR_XCORR_NOISE_MAX;
	if (h->based && at_us - h->newest_us <= NR_XCORR_T_US) {
		h->noise += away * away << NR_XCORR_FRACTION;
		h->steps += NR_XCORR_ONE;
	}
	h->newest_us = at_us;
	h->newest = delay_us;
}

/* A noise, us^2, in six bits: its power of two, and the next bit. */
NR_INLINE nr_u32 nr_xcorr_pack(nr_u64 noise)
{
	nr_u32 e;

	if (noise < 16)
		return 0;
	e = 63 - (nr_u32)NR_CLZ64(noise);
	return ((e - 4) << 1 | (noise >> (e - 1) & 1)) & NR_XCORR_NOISE;
}

NR_INLINE nr_u64 nr_xcorr_unpack(nr_u32 packed)
{
	return (nr_u64)(2 | (packed & 1)) << ((packed >> 1 & 31) + 3);
}

#endif
