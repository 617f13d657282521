/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Masks of one path each: every coupled law runs as on a single path. */
#ifndef NARROWS_DETECT_DISJOINT_H
#define NARROWS_DETECT_DISJOINT_H

#include "../detector.h"

NR_INLINE nr_u32 nr_disjoint_row(nr_u32 i)
{
	return 1u << (i & 7);
}

NR_DETECTOR(disjoint) = {
    .name = "disjoint",
    .code = "dj",
    .about = "no two paths share a bottleneck (default of uncoupled laws)",
    .source = "RFC 5681",
    .masks = NR_MASKS_DISJOINT,
    .row = nr_disjoint_row,
};

#endif
