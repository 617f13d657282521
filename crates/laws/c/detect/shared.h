/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Full masks: all paths share one bottleneck, as RFC 6356, OLIA and Balia assume. */
#ifndef NARROWS_DETECT_SHARED_H
#define NARROWS_DETECT_SHARED_H

#include "../detector.h"

NR_INLINE nr_u32 nr_shared_row(nr_u32 i)
{
	return i < NR_MAX_PATHS ? 0xff : 0;
}

NR_DETECTOR(shared) = {
    .name = "shared",
    .code = "sh",
    .about = "all paths share one bottleneck (default of coupled laws)",
    .source = "RFC 6356",
    .masks = NR_MASKS_SHARED,
    .row = nr_shared_row,
};

#endif
