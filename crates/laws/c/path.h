/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A path's private state, and functions that write its windows and its published line. */
#ifndef NARROWS_PATH_H
#define NARROWS_PATH_H

#include "shared.h"

#define NR_START_WORDS 3 /* of 64 bits: state of a slow start */
#define NR_LAW_WORDS 17	 /* of 64 bits: state of a law */

/* All zero before the join. */
struct nr_private {
	nr_s64 credit;	       /* Q40 packets, in (-1, 1) between events; of pairs to 3/2 */
	nr_u32 cwnd;	       /* packets */
	nr_u32 ssthresh;       /* packets */
	nr_u32 prior_cwnd;     /* before the last reduction; 0: nothing to undo */
	nr_u32 prior_ssthresh; /* likewise */
	nr_u32 reduced;	       /* a reduction was made and its recovery is not over */
	nr_u32 skip;	       /* packets whose acknowledgements do not grow the window */
	nr_u64 start[NR_START_WORDS];
	nr_u64 law[NR_LAW_WORDS];
};

/*
 * The arguments of every hook: the connection, the path's number below NR_MAX_PATHS, its private
 * state, and the event.
 */
#define NR_HOOK struct nr_conn *c, nr_u32 i, struct nr_private *p, const struct nr_event *ev
#define NR_ARGS c, i, p, ev

/* Publish a new window, from which the law and its siblings compute their next credit. */
NR_INLINE void nr_set_cwnd(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 cwnd)
{
	if (cwnd < 1)
		cwnd = 1;
	if (cwnd > NR_CWND_MAX)
		cwnd = NR_CWND_MAX;
	p->cwnd = cwnd;
	NR_WRITE(c->path[i & 7].cwnd, cwnd);
}

NR_INLINE void nr_set_ssthresh(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 ssthresh)
{
	if (ssthresh < 1)
		ssthresh = 1;
	if (ssthresh > NR_SSTHRESH_MAX)
		ssthresh = NR_SSTHRESH_MAX;
	p->ssthresh = ssthresh;
	NR_WRITE(c->path[i & 7].ssthresh, ssthresh);
}

/* bytes/s; 0: the host's rule */
NR_INLINE void nr_set_pacing_rate(struct nr_conn *c, nr_u32 i, nr_u64 rate)
{
	NR_WRITE(c->path[i & 7].pacing_rate, rate);
}

/* Turn whole packets of credit into window. */
NR_INLINE void nr_settle(struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	nr_s64 one = (nr_s64)NR_ONE;

	if (p->credit >= one) {
		nr_set_cwnd(c, i, p, p->cwnd + (nr_u32)(p->credit >> NR_CREDIT_BITS));
		p->credit &= one - 1;
	} else if (p->credit <= -one) {
		nr_u32 fall = (nr_u32)(-p->credit >> NR_CREDIT_BITS);

		nr_set_cwnd(c, i, p, p->cwnd > fall ? p->cwnd - fall : 1);
		p->credit = -(-p->credit & (one - 1));
	}
}

/* Windows from NR_PAIRS_FROM to below NR_PAIRS_TO that grow in pairs are even. */
#define NR_PAIRS_FROM 6u
#define NR_PAIRS_TO 13u

/* Does a window of cwnd grow to the next even one? */
NR_INLINE int nr_pairs(nr_u32 cwnd)
{
	return cwnd >= NR_PAIRS_FROM - 1 && cwnd < NR_PAIRS_TO - 1;
}

/*
 * Credit that makes a window in pairs grow, by a packet and with the next acknowledged one by
 * another. The even number is that next to half a packet less, so that in the mean as much is sent
 * as with whole packets. Credit is then from -1/2 to 3/2.
 */
NR_NOINLINE nr_s64 nr_pair_need(nr_u32 cwnd)
{
	nr_s64 one = (nr_s64)NR_ONE;

	if (!nr_pairs(cwnd))
		return one;
	return cwnd & 1 ? one / 2 : one + one / 2;
}

/*
 * nr_settle() of a window in pairs, after at least one acknowledged packet; with credit for more
 * than a pair it grows as any.
 */
NR_NOINLINE int nr_settle_pairs(struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	if (!c || !p)
		return 0;
	if (!nr_pairs(p->cwnd) || p->credit >= 2 * (nr_s64)NR_ONE) {
		nr_settle(c, i, p);
	} else if (p->credit >= nr_pair_need(p->cwnd)) {
		nr_set_cwnd(c, i, p, p->cwnd + 1);
		p->credit -= (nr_s64)NR_ONE;
	}
	return 1;
}

/* Is this the first slow start, without an ssthresh? */
NR_INLINE int nr_first_slow_start(const struct nr_private *p)
{
	return p->ssthresh == NR_SSTHRESH_MAX;
}

/* At join and leave: removes the path from all sums and from the detector's samples. */
NR_INLINE void nr_clear(struct nr_conn *c, nr_u32 i)
{
	struct nr_path *line = &c->path[i & 7];

	NR_WRITE(line->state, NR_FREE);
	NR_WRITE(line->srtt8_us, 0);
	NR_WRITE(line->inflight, 0);
	NR_WRITE(line->pacing_rate, 0);
	NR_WRITE(line->bw, 0);
	NR_WRITE(line->advice, NR_ADVICE_NONE);
	NR_WRITE(line->word[0], 0);
	NR_WRITE(line->word[1], 0);
	NR_WRITE(c->record[i & 7][0].stamp, 0);
	NR_WRITE(c->record[i & 7][1].stamp, 0);
	NR_WRITE(line->cwnd, 0);
}

/* Publish what the event reports. */
NR_INLINE void nr_publish(struct nr_path *line, const struct nr_event *ev)
{
	if (ev->srtt8_us)
		NR_WRITE(line->srtt8_us, ev->srtt8_us);
	if (ev->mss)
		NR_WRITE(line->mss, ev->mss);
	NR_WRITE(line->inflight, ev->inflight + ev->delivered);
	NR_WRITE(line->seen_ms, (nr_u32)(ev->now_us / 1000));
	NR_WRITE(line->state, ev->state);
}

/* A window of packets that had `before` bytes, in packets of `mss`; at least 1. */
NR_INLINE nr_u64 nr_resized(nr_u64 window, nr_u32 before, nr_u32 mss)
{
	window = window / mss * before + window % mss * before / mss;
	return window ? window : 1;
}

#endif
