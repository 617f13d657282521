/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reno, which wants the second path parked for the first two seconds. For tests of the advice. */
#ifndef ADVISER_H
#define ADVISER_H

#include "law.h"

NR_INLINE void nr_adviser_acked(NR_HOOK)
{
	int park = ev->now_us < 3000000; /* the first path came at 1 s */

	/* A parked path has no events: its sibling calls it back. */
	NR_WRITE(c->path[1].advice, park ? NR_ADVICE_BACKUP : NR_ADVICE_NONE);
}

NR_LAW(adviser) = {
    .name = "adviser",
    .code = "ad",
    .about = "Reno that wants the second path parked for two seconds",
    .source = "none",
    .kind = NR_WINDOW,
    .acked = nr_adviser_acked,
};

#endif
