/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The four words of a connection that several paths write: a line's debit, the tick, masks and
 * cuts. They change by compare-and-swap, without waiting: after NR_TRIES failures the function
 * gives up until the next event. ../tests/loom checks these functions in every interleaving.
 */
#ifndef NARROWS_SHARED_H
#define NARROWS_SHARED_H

#include "narrows.h"

#define NR_TRIES 8 /* each failure is a success of another path; there are 7 others */

/*
 * The debit word: packets taken in the low half, number of settlements in the high half. Without
 * this number a taker could read cwnd, be delayed past a settlement, then find the same amount,
 * written by another taker (ABA), and take the same packets twice.
 */
#define NR_DEBIT_PACKETS 0xffffu

/*
 * Take up to `want` packets from a donor's window and leave it at least `keep`. Returns what was
 * taken; the donor applies it at its next event.
 *
 * The debit is read before cwnd, and the donor writes cwnd before it settles: if a settlement falls
 * between the two reads and the swap, the swap fails.
 */
NR_INLINE nr_u32 nr_debit_take(struct nr_conn *c, nr_u32 donor, nr_u32 want, nr_u32 keep)
{
	struct nr_path *line = &c->path[donor & 7];

	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		nr_u32 seen = NR_READ(line->debit), taken = seen & NR_DEBIT_PACKETS;
		nr_u32 cwnd;

		NR_READ_BARRIER();
		cwnd = NR_READ(line->cwnd);
		if (cwnd <= taken + keep)
			return 0;
		if (want > cwnd - taken - keep)
			want = cwnd - taken - keep;
		if (want > NR_DEBIT_PACKETS - taken)
			want = NR_DEBIT_PACKETS - taken;
		if (!want)
			return 0;
		if (NR_CAS(&line->debit, seen, seen + want) == seen)
			return want;
	}
	return 0;
}

/*
 * The donor settles its debit; `cwnd` is its window, the result is the rest.
 *
 * The smaller window is published first: between the two steps a taker sees the packets missing
 * twice and takes less, never the same packets again. If the window fell after the taker read it (a
 * loss at that moment), it may not cover the debit: then one packet stays and the rest is dropped.
 */
NR_INLINE nr_u32 nr_debit_apply(struct nr_conn *c, nr_u32 i, nr_u32 cwnd)
{
	struct nr_path *line = &c->path[i & 7];
	nr_u32 seen = NR_READ(line->debit), taken = seen & NR_DEBIT_PACKETS, left;

	if (!taken)
		return cwnd;
	left = cwnd > taken ? cwnd - taken : 1;
	NR_WRITE(line->cwnd, left);
	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		/* Packets taken meanwhile stay in the word, for the next event. */
		nr_u32 now = NR_CAS(&line->debit, seen, (seen - taken) + NR_DEBIT_PACKETS + 1);

		if (now == seen)
			return left;
		seen = now;
	}
	NR_WRITE(line->cwnd, cwnd);
	return cwnd;
}

/*
 * A path joins: what siblings took from the slot's previous path is dropped, as those packets are
 * in another window. The published window is 0 since that path left: a taker that read it before
 * fails here, one that reads it later takes nothing.
 */
NR_INLINE void nr_debit_drop(struct nr_conn *c, nr_u32 i)
{
	struct nr_path *line = &c->path[i & 7];

	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		nr_u32 seen = NR_READ(line->debit);

		if (NR_CAS(&line->debit, seen, (seen & ~NR_DEBIT_PACKETS) + NR_DEBIT_PACKETS + 1) ==
		    seen)
			return;
	}
}

/*
 * Claim decision interval `number` for the connection. Returns 1 for one of the paths that try, 0
 * for the others, and for an older number.
 */
NR_INLINE int nr_tick_claim(struct nr_conn *c, nr_u64 number)
{
	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		nr_u64 last = NR_READ(c->tick);

		if (number <= last)
			return 0;
		if (NR_CAS(&c->tick, last, number) == last)
			return 1;
	}
	return 0;
}

/*
 * The clock was set back to before interval `number` + 1: later intervals can be claimed again. If
 * several paths detect it, only the first changes the tick.
 */
NR_INLINE void nr_tick_back(struct nr_conn *c, nr_u64 number)
{
	nr_u64 last = NR_READ(c->tick);

	if (last > number)
		NR_CAS(&c->tick, last, 0);
}

/*
 * Store all masks of a decision at once. `seen` are the masks before the decision: if a join has
 * changed them, the decision does not include that path and is dropped (0); the next interval
 * decides. (A join that did not change them goes unnoticed for one interval.)
 */
NR_INLINE int nr_masks_store(struct nr_conn *c, nr_u64 seen, nr_u64 masks)
{
	return NR_CAS(&c->masks, seen, masks) == seen;
}

/*
 * Stores who is cut together, after the masks of the same decision: `seen` is the word before it.
 * If a path has joined since, the old ones stay for the others until the next decision.
 */
NR_INLINE void nr_cuts_store(struct nr_conn *c, nr_u64 seen, nr_u64 cuts)
{
	NR_CAS(&c->cuts, seen, cuts);
}

/* Each path is in its own mask, and coupling is mutual, whatever was received. */
NR_INLINE nr_u64 nr_masks_mutual(nr_u64 masks)
{
	masks |= NR_MASKS_DISJOINT;
	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++)
		for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
			masks |= (masks >> (8 * i + j) & 1) << (8 * j + i);
	return masks;
}

/* Masks decided by a detector at the peer. */
NR_INLINE void nr_masks_set(struct nr_conn *c, nr_u64 masks, nr_u64 cuts)
{
	masks = nr_masks_mutual(masks);
	cuts = nr_masks_mutual(cuts);
	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		nr_u64 seen = NR_READ(c->cuts);

		if (!nr_masks_store(c, NR_READ(c->masks), masks))
			continue;
		nr_cuts_store(c, seen, cuts);
		return;
	}
}

/* One of the two words as path i joins: its row becomes `row`, and its column likewise. */
NR_INLINE void nr_word_join(nr_u64 *word, nr_u32 i, nr_u32 row)
{
	nr_u64 keep = ~(0xffull << (8 * (i & 7)) | NR_MASKS_COLUMN << (i & 7));
	nr_u64 set = (nr_u64)(row & 0xff) << (8 * (i & 7));

	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		set |= (nr_u64)(row >> j & 1) << (8 * j + (i & 7));
	for (nr_u32 try = 0; try < NR_TRIES; try++) {
		nr_u64 seen = NR_READ(*word);

		if (NR_CAS(word, seen, (seen & keep) | set) == seen)
			return;
	}
}

/*
 * A path joins in slot i, coupled with those in `row`, and known to share with those in `cuts`;
 * nothing is left of the slot's previous path.
 */
NR_INLINE void nr_masks_join(struct nr_conn *c, nr_u32 i, nr_u32 row, nr_u32 cuts)
{
	nr_word_join(&c->cuts, i, cuts);
	nr_word_join(&c->masks, i, row);
}

#endif
