// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A law as native code: compiled with NR_LAW_HEADER, NR_THIS and NR_NUMBER, once for each line of
 * laws.def, and for a user's header when it is loaded.
 */
#include NR_LAW_HEADER
#include "module.h"
#include "window.h"

static void event(nr_u32 start, NR_HOOK)
{
	nr_law_event(start, c, i & 7, p, ev);
}

extern const struct nr_module NR_PASTE(narrows_law_, NR_THIS);
const struct nr_module NR_PASTE(narrows_law_, NR_THIS) = {NR_VERSION, 0, &nr_this, event};
