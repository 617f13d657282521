/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Masks of one: each path is on its own, so every coupled law runs as its single-path parent. */
#ifndef NARROWS_DETECT_DISJOINT_H
#define NARROWS_DETECT_DISJOINT_H

#include "../shared.h"

NR_INLINE void nr_disjoint_join(struct nr_conn *c, nr_u32 i)
{
	nr_masks_join(c, i, 1u << (i & 7));
}

#endif
