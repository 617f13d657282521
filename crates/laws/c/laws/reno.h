/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reno: the behaviour of every coupled law on a single path.
 *
 * Source: RFC 5681 section 3.1 (equation 3 and 4), appropriate byte counting of RFC 3465 in
 * packets. The host enters recovery once per window of data (RFC 6582).
 *
 *   each acknowledged packet:  w += 1/w
 *   loss:                      ssthresh = max(w/2, 2)
 *
 * Units: packets; the credit is in 2^-40 packet.
 * Valid: w = 1 .. 2^20 exactly as Linux's integer counter (w grows by one after w acknowledged
 * packets); above, within 2^-40 packet per packet.
 * Departures: half of the window, not of FlightSize, as in Linux; as it grows only if the sender
 * was cwnd-limited (see RFC 7661), the two are close.
 */
#ifndef NARROWS_LAW_RENO_H
#define NARROWS_LAW_RENO_H

#include "../law.h"

/*
 * 1/w, rounded up: w credits make a packet and w - 1 do not as long as w (w - 1) < 2^40. The rest
 * is rounding, less than w, and nr_grow drops it.
 */
NR_INLINE nr_u64 nr_reno_credit(nr_u32 cwnd)
{
	return (NR_ONE + cwnd - 1) / cwnd;
}

NR_INLINE nr_u32 nr_reno_ssthresh(nr_u32 cwnd)
{
	return cwnd < 4 ? 2 : cwnd / 2;
}

NR_LAW(reno) = {
    .name = "reno",
    .code = "reno",
    .about = "a packet per window; halves on loss (uncoupled)",
    .source = "RFC 5681, RFC 6582",
    .kind = NR_WINDOW,
};

#endif
