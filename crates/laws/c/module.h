/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A law as a separately compiled module, in the program or loaded at run time. */
#ifndef NARROWS_MODULE_H
#define NARROWS_MODULE_H

#include "law.h"

struct nr_module {
	nr_u32 version; /* NR_VERSION it was compiled with */
	nr_u32 reserved;
	const struct nr_law *law;
	void (*event)(nr_u32 start, NR_HOOK); /* nr_law_event */
};

#endif
