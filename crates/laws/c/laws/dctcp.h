/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP: the window yields to the share of packets that were marked, not to one mark. A rival for
 * networks with scalable senders (L4S).
 *
 * Source: RFC 8257, sections 3.3 to 3.5.
 *
 *   each round trip:           alpha = (1 - g) alpha + g F, F the share of marked packets, g = 1/16
 *   marks, once a round trip:  ssthresh = max(w (1 - alpha / 2), 2)
 *   loss, growth:              as Reno
 *
 * Units: windows in packets, alpha in 2^-16, 1 when a path joins.
 * Valid: w 1 .. 2^20; alpha within 16 / 2^16.
 * Departures: packets are counted, not bytes; a round trip is a smoothed RTT, not a window of data;
 * the host grows no window in the round trip of a reduction (as Linux, not as section 3.4).
 * The receiver must echo each mark, and no other (section 3.2): the simulator's does with
 * tcp.ecn = "scalable". RFC 3168's repeats a mark until it is told of the reduction: F is too large
 * then, and the law reduces as Reno at most.
 */
#ifndef NARROWS_LAW_DCTCP_H
#define NARROWS_LAW_DCTCP_H

#include "../law.h"
#include "reno.h"

#define NR_DCTCP_ONE (1u << 16)
#define NR_DCTCP_G 4 /* g = 2^-4 */
/* Packets in a round trip are counted up to this. */
#define NR_DCTCP_MOST (1u << 24)

struct nr_dctcp {
	nr_u32 alpha;
	nr_u32 acked; /* packets in this round trip */
	nr_u32 marked;
	nr_u32 start_us; /* when it began, wraps */
};
NR_LAW_STATE(dctcp)

NR_INLINE void nr_dctcp_joined(NR_HOOK)
{
	nr_dctcp(p)->alpha = NR_DCTCP_ONE;
	nr_dctcp(p)->start_us = (nr_u32)ev->now_us;
}

/* Counts, and ends the round trip once it has lasted for one. */
NR_INLINE void nr_dctcp_before(NR_HOOK)
{
	struct nr_dctcp *own = nr_dctcp(p);

	if (ev->delivered < NR_DCTCP_MOST - own->acked)
		own->acked += ev->delivered;
	if (ev->marked < NR_DCTCP_MOST - own->marked)
		own->marked += ev->marked;
	if (!own->acked || (nr_u32)ev->now_us - own->start_us < c->path[i & 7].srtt8_us / 8)
		return;
	/* An acknowledgement's marks may be counted before its packets. */
	if (own->marked > own->acked)
		own->marked = own->acked;
	own->alpha -= own->alpha >> NR_DCTCP_G;
	own->alpha += (nr_u32)(((nr_u64)own->marked << 16) / own->acked) >> NR_DCTCP_G;
	own->acked = 0;
	own->marked = 0;
	own->start_us = (nr_u32)ev->now_us;
}

NR_INLINE nr_u32 nr_dctcp_ssthresh(NR_HOOK)
{
	nr_u32 cut = (nr_u32)(((nr_u64)p->cwnd * nr_dctcp(p)->alpha) >> 17);

	if (ev->kind != NR_ECN)
		return nr_reno_ssthresh(p->cwnd);
	return p->cwnd < cut + 2 ? 2 : p->cwnd - cut;
}

NR_LAW(dctcp) = {
    .name = "dctcp",
    .code = "dctcp",
    .about = "yields to the share of marked packets: needs ECN of scalable senders (uncoupled)",
    .source = "RFC 8257",
    .kind = NR_WINDOW,
    .scales = 1,
    .state = sizeof(struct nr_dctcp),
    .ssthresh = nr_dctcp_ssthresh,
    .joined = nr_dctcp_joined,
    .before = nr_dctcp_before,
};

#endif
