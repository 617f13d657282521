// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The laws' headers under loom's port, for main.rs. */
#include "port.h"
#include "detectors.h"

/* Where a path's interval of joining stands. */
const nr_u32 *nr_since(const struct nr_detection *det, nr_u32 i)
{
	return &det->path[i & 7].since;
}
