/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Full masks: all paths are taken to share one bottleneck, as RFC 6356, OLIA and Balia assume. */
#ifndef NARROWS_DETECT_SHARED_H
#define NARROWS_DETECT_SHARED_H

#include "../shared.h"

NR_INLINE void nr_shared_join(struct nr_conn *c, nr_u32 i)
{
	nr_masks_join(c, i, 0xff);
}

#endif
