/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fallback: for a path that should be coupled but cannot be. It takes too little rather than a
 * second full share.
 *
 * Source: RFC 6356 and OLIA, each for one of n equal paths (growth is Reno's / n^2), with n = 8,
 * the most that a connection has.
 *
 *   each acknowledged packet:  w += 1 / (64 w)
 *   loss:                      as Reno
 *
 * It reads nothing of its siblings, so a host can run it for a socket without any other state, as
 * the kernel host does. If the mask contains only the path itself, it is Reno.
 *
 * Units: packets; the credit is in 2^-40 packet. Valid: w 1 .. 2^26.
 */
#ifndef NARROWS_LAW_FALLBACK_H
#define NARROWS_LAW_FALLBACK_H

#include "reno.h"

#define NR_FALLBACK_DIVISOR (NR_MAX_PATHS * NR_MAX_PATHS)

/* Acknowledged packets that grow a window of w packets by one. */
NR_INLINE nr_u32 nr_fallback_acks(nr_u32 cwnd)
{
	return cwnd <= ~0u / NR_FALLBACK_DIVISOR ? cwnd * NR_FALLBACK_DIVISOR : ~0u;
}

NR_INLINE nr_s64 nr_fallback_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	int coupled = nr_mask(c, i) != 1u << (i & 7);

	return (nr_s64)nr_reno_credit(coupled ? nr_fallback_acks(p->cwnd) : p->cwnd);
}

NR_LAW(fallback) = {
    .name = "fallback",
    .code = "fb",
    .about = "for paths that cannot be coupled: grows as one of eight equal paths",
    .source = "RFC 6356, n = 8",
    .kind = NR_WINDOW,
    .couples = 1,
    .alone = 1,
    .credit = nr_fallback_growth,
};

#endif
