/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LISA, linked slow start: a joining path takes its first window from a sibling in slow start,
 * instead of adding a whole initial window to what the connection has in flight.
 *
 * Source: Barik, Welzl, Ferlin, Alay, "LISA: A Linked Slow-Start Algorithm for MPTCP" (ICC 2016),
 * section III and Algorithm 1.
 *
 *   donor    the path in slow start with the largest sending rate, w / rtt
 *   take     10 packets if w >= 20; floor(w / 2) if 6 <= w < 20; none if w < 6
 *   window   what was taken; 3 if nothing was; the host's initial window without a donor
 *
 * The donor's window falls by what was taken. If more than the rest is in flight then, it does not
 * grow for as many packets as are too many (window.h: `skip`). With the parameters most = 10 and
 * least = 3 the two conditions are one: take min(most, floor(w / 2)), if that is at least `least`.
 *
 * What the paper leaves open:
 *
 *   Joins in one round trip take one after the other: each sees what those before it took, which
 *   the donor may not have settled yet, and their windows.
 *   Donors are all paths of the connection, under any detector and also uncoupled: nothing is known
 *   of a path that joins, so none is known to be apart from it.
 *   A donor is joining or active, and has had an event within max(1 s, 2 srtt). An idle path, a
 *   backup or a failed path is none: it sends nothing that could be sent elsewhere.
 *   An application-limited donor has less in flight than its window. Its window counts up to twice
 *   what was in flight at its last acknowledgement, which is as much as a window in slow start
 *   grows to while it is in use. Before the first acknowledgement all of it counts.
 *   Without an RTT sample a path has the smallest rate.
 *   A path at its threshold is no donor, also where it is in slow start (slow_start_at_ssthresh):
 *   in recovery it has that window.
 *   A donor that leaves takes its debit along: the packets are in the other window.
 *   donor = nearest is the paper's future work (section VIII): the path in slow start with the
 *   smallest RTT, if that is at most NR_LISA_NEAR times the joining path's; else the join is as
 *   without a donor. The factor is ours: a donor has filled a queue that the joining path's
 *   handshake need not have seen. A path without an RTT sample is no such donor.
 *   A host with an initial window below `most` or `least` bounds them. A larger one begins a path
 *   without a donor.
 *   Backup paths, and paths that have sent before, as a control may be changed at any time, take
 *   nothing and keep the host's window.
 *   Pacing is the host's: its rate follows from the windows, as after any change of them.
 *
 * Units: packets. Valid: windows up to 2^30; at most 65535 packets are taken between two events of
 * a donor.
 * Departures: acknowledged packets are ignored, not ACKs, which may be delayed; without a donor the
 * window is the host's, which the paper has at 10.
 */
#ifndef NARROWS_START_LISA_H
#define NARROWS_START_LISA_H

#include "../flows.h"
#include "../start.h"

#define NR_LISA_PARAMS(P)                                                                          \
	P(most, most, COUNT, 10, 1, 1000, "packets that a joining path takes at most",             \
	  "LISA, section III: RFC 6928")                                                           \
	P(least, least, COUNT, 3, 1, 1000, "its first window if no path can lend that many",       \
	  "LISA, section III: RFC 3390")                                                           \
	P(donor, donor, DONOR, 0, 0, 1,                                                            \
	  "the path it takes from: that of the largest rate, or of the smallest RTT",              \
	  "LISA, section III; nearest: section VIII")
NR_JOIN_PARAMETERS(lisa, NR_LISA_PARAMS)

enum nr_lisa_donor { NR_LISA_FASTEST = 0, NR_LISA_NEAREST };

/* A nearest donor's RTT is at most so many times that of the joining path. */
#define NR_LISA_NEAR 2

/* The window of path `line` that a sibling may take from; 0 if it is no donor. */
NR_INLINE nr_u32 nr_lisa_window(const struct nr_path *line, nr_u32 now_ms)
{
	nr_u32 state = NR_READ(line->state), cwnd = NR_READ(line->cwnd);
	nr_u32 taken = NR_READ(line->debit) & NR_DEBIT_PACKETS, used = NR_READ(line->inflight);

	if ((state != NR_JOINING && state != NR_ACTIVE) || !nr_recent(line, now_ms) ||
	    cwnd >= NR_READ(line->ssthresh))
		return 0;
	cwnd = cwnd > taken ? cwnd - taken : 1;
	if (state == NR_ACTIVE && used < cwnd / 2)
		return 2 * used;
	return cwnd;
}

/*
 * The donor for path i, whose RTT is `own` (1/8 us, 0: unknown), in the low half, its window in the
 * high; 0 without a donor. A function of its own, so that the verifier does not follow each donor
 * further.
 */
NR_NOINLINE nr_u64 nr_lisa_donor(const struct nr_conn *c, nr_u32 i, nr_u32 now_ms, nr_u32 own)
{
	nr_u64 donor = 0, w = 0, rtt = 1;
	nr_u32 nearest;

	if (!c)
		return 0;
	nearest = nr_lisa_params(c)->donor == NR_LISA_NEAREST;
	if (nearest)
		rtt = own ? (nr_u64)NR_LISA_NEAR * own + 1 : 0xffffffffu;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		const struct nr_path *line = &c->path[j];
		nr_u64 window = nr_lisa_window(line, now_ms), srtt = NR_READ(line->srtt8_us);

		if (!srtt)
			srtt = 0xffffffffu;
		if (j == (i & 7) || !window || (nearest ? srtt >= rtt : window * rtt <= w * srtt))
			continue;
		donor = j;
		w = window;
		rtt = srtt;
	}
	return w << 32 | donor;
}

/* The first window of joining path i, whose host would begin with `host` packets. */
NR_NOINLINE nr_u32 nr_lisa_take(struct nr_conn *c, nr_u32 i, nr_u32 now_ms, nr_u32 host, nr_u32 own)
{
	nr_u32 most, least, take, w;
	nr_u64 donor;

	if (!c)
		return host;
	donor = nr_lisa_donor(c, i, now_ms, own);
	w = (nr_u32)(donor >> 32);
	if (!w)
		return host;
	most = nr_lisa_params(c)->most < host ? nr_lisa_params(c)->most : host;
	least = nr_lisa_params(c)->least < most ? nr_lisa_params(c)->least : most;
	take = w / 2 < most ? w / 2 : most;
	if (take < least)
		return least;
	/* As much stays as is taken; if its window fell meanwhile, less is taken. */
	take = nr_debit_take(c, (nr_u32)donor, take, take);
	return take > least ? take : least;
}

NR_INLINE nr_u32 nr_lisa_initial(NR_HOOK)
{
	nr_u32 host = nr_host_initial(ev);

	return ev->state == NR_JOINING
		   ? nr_lisa_take(c, i, (nr_u32)(ev->now_us / 1000), host, ev->srtt8_us)
		   : host;
}

NR_START(lisa) = {
    .name = "lisa",
    .code = "l",
    .about = "a joining path takes its first window from the fastest one in slow start",
    .source = "Barik et al., ICC 2016",
    NR_TAKES(lisa),
    .initial = nr_lisa_initial,
};

#endif
