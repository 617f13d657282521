/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Standard slow start: a joining path begins with the initial window of RFC 6928, independent of
 * its siblings, and doubles each round trip.
 */
#ifndef NARROWS_START_STANDARD_H
#define NARROWS_START_STANDARD_H

#include "../start.h"

NR_START(standard) = {
    .name = "standard",
    .code = "s",
    .about = "initial window of 10 packets, doubled each round trip until a loss",
    .source = "RFC 5681, RFC 6928",
};

#endif
