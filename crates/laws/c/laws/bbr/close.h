/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Goal 1 of C-MPBBR: paths that together deliver less than the best of them could alone do not pay,
 * as slow ones hold up what the others deliver. Off by default (bbr.close = 0). A path asks, each
 * time that a cycle of ProbeBW takes and at most each second,
 *
 *   all that the connection delivered since, per second  <  close * the largest estimate
 *
 * and whether it shares no bottleneck (not asked where bbr.share is none) and its own estimate is
 * the smallest. Five such answers in a row and it advises to make it a backup; five others in a row
 * while it still carries data, and the advice is withdrawn. Then the next path, until one is left.
 *
 * A path that carries no data learns nothing: its siblings withdraw its advice when it is better
 * than all that is left, or a minute after its last event, and after 2, 4, 8, 16 minutes when it
 * was advised again. So a path that never pays is tried ever more seldom.
 *
 * Source: Mahmud et al., "Coupled Multipath BBR (C-MPBBR)", IEEE Access 8 (2020), section III-D,
 * Algorithm 2. The text has total < beta * best with beta = 40, close = 0.4; the pseudo code total
 * < best - best * beta / 100, close = 0.6.
 *
 * Departures: backup instead of closing, so that it can be undone. What was delivered in the time,
 * not the newest rates, which say nothing of the pauses between. The time of a cycle, not a cycle,
 * as a path that is held up ends neither Startup nor phase 0; at least a second, as 8 ms are no
 * time to judge by. Pauses as long as two
 * such times do not count.
 *
 * An application that always sends a little looks the same: then the best path is enough.
 *
 * Published: in word[0], above the number of cycles, how often the path was advised (3 bits) and
 * what it has delivered, kB (24 bits, wraps).
 */
#ifndef NARROWS_BBR_CLOSE_H
#define NARROWS_BBR_CLOSE_H

#include "share.h"

#define NR_BBR_ANSWERS 5u	/* in a row: C-MPBBR */
#define NR_BBR_ASK_MS 1000u	/* the least time for one */
#define NR_BBR_CLOSED_MS 60000u /* a silent path is a backup, the first time; */
#define NR_BBR_CLOSED_MOST 5u	/* doubled until it was so often */
#define NR_BBR_CLOSED_BITS 3
#define NR_BBR_VOLUME_SHIFT (NR_CYCLES_BITS + NR_BBR_CLOSED_BITS)

/* Publishes what the path has delivered, and how often it was advised. */
NR_INLINE void nr_bbr_count(struct nr_conn *c, nr_u32 i, const struct nr_bbr *b)
{
	struct nr_path *line = &c->path[i & 7];
	nr_u32 volume = (nr_u32)((nr_u64)b->delivered * nr_bbr_mss(c, i) >> 10);

	NR_WRITE(line->word[0], volume << NR_BBR_VOLUME_SHIFT | b->closings << NR_CYCLES_BITS |
				    (line->word[0] & NR_CYCLES));
}

/* What all paths have delivered, what they carried twice included, kB. A path that leaves, or
 * another MSS, spoils one answer. */
NR_INLINE nr_u32 nr_bbr_volume(const struct nr_conn *c)
{
	nr_u32 sum = 0;

	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		sum += NR_READ(c->path[j].word[0]) >> NR_BBR_VOLUME_SHIFT;
	return sum;
}

/* The time for an answer, ms. */
NR_INLINE nr_u32 nr_bbr_ask_ms(const struct nr_bbr *b)
{
	nr_u32 cycle = b->min_rtt_us / 1000 * NR_BBR_PHASES;

	return cycle > NR_BBR_ASK_MS ? cycle : NR_BBR_ASK_MS;
}

/* What is delivered from now on counts for the next answer. */
NR_INLINE void nr_bbr_ask_from(const struct nr_conn *c, struct nr_bbr *b, const struct nr_event *ev)
{
	if (!nr_bbr_params(c)->close)
		return;
	b->volume = nr_bbr_volume(c);
	b->asked_ms = nr_now_ms(ev);
}

/* Has a path carried data in the last `ms`? One that is held up may be silent for seconds. */
NR_INLINE int nr_bbr_in_use(const struct nr_path *line, nr_u32 now, nr_u32 ms)
{
	nr_u32 state = NR_READ(line->state);

	return (state == NR_ACTIVE || state == NR_IDLE) &&
	       now - NR_READ(line->seen_ms) + NR_AHEAD_MS <= ms + NR_AHEAD_MS;
}

/* Does path i not pay, by what was delivered in `ms`? */
NR_NOINLINE int nr_bbr_no_gain(const struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 ms)
{
	const struct nr_bbr_params *params;
	nr_u32 volume, own, mask, now, best = 0;
	nr_u64 total;

	if (!c || !p || !ms)
		return 0;
	params = nr_bbr_params(c);
	volume = (nr_bbr_volume(c) - nr_bbr(p)->volume) & (0xffffffffu >> NR_BBR_VOLUME_SHIFT);
	own = nr_max(&nr_bbr(p)->bw);
	mask = params->share == NR_SHARE_NONE ? 0 : nr_mask(c, i);
	now = NR_READ(c->path[i & 7].seen_ms);
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 bw = nr_bbr_unit(NR_READ(c->path[j].bw));

		if (j == i || !bw || !nr_bbr_in_use(&c->path[j], now, ms))
			continue;
		if (bw <= own || mask >> j & 1)
			return 0;
		best = bw > best ? bw : best;
	}
	if (!best)
		return 0;
	total = nr_bbr_unit((nr_u64)volume * 1024 * 1000 / ms);
	return total << 16 < (nr_u64)params->close * best;
}

/* Ends the advice of silent siblings whose time is over, or that are better than what is in use. */
NR_NOINLINE int nr_bbr_reopen(struct nr_conn *c, nr_u32 i, nr_u32 now, nr_u32 ms)
{
	nr_u64 best = 0;

	if (!c)
		return 0;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u64 bw = NR_READ(c->path[j].bw);

		if (bw > best && nr_bbr_in_use(&c->path[j], now, ms))
			best = bw;
	}
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		struct nr_path *line = &c->path[j];
		nr_u32 times =
		    NR_READ(line->word[0]) >> NR_CYCLES_BITS & ((1u << NR_BBR_CLOSED_BITS) - 1);

		if (j != i && NR_READ(line->advice) && times && !nr_recent(line, now) &&
		    (NR_READ(line->bw) > best ||
		     now - NR_READ(line->seen_ms) >= NR_BBR_CLOSED_MS << (times - 1)))

			NR_WRITE(line->advice, NR_ADVICE_NONE);
	}
	return 1;
}

/* After each acknowledgement. */
NR_NOINLINE int nr_bbr_close(NR_HOOK)
{
	struct nr_path *line;
	struct nr_bbr *b;
	nr_u32 now, ms;

	if (!c || !p || !ev || !nr_bbr_params(c)->close)
		return 0;
	b = nr_bbr(p);
	line = &c->path[i & 7];
	nr_bbr_count(c, i, b);
	now = nr_now_ms(ev);
	if (b->closed && !NR_READ(line->advice)) { /* a sibling has ended it */
		b->closed = 0;
		b->answers = 0;
		nr_bbr_ask_from(c, b, ev);
	}
	ms = now - b->asked_ms;
	if (ms < nr_bbr_ask_ms(b) || ev->state == NR_BACKUP)
		return 0;
	nr_bbr_reopen(c, i, now, ms);
	if (nr_bbr_no_gain(c, i, p, ms) == b->closed)
		b->answers = 0;
	else
		b->answers++;
	nr_bbr_ask_from(c, b, ev);
	if (b->answers < NR_BBR_ANSWERS)
		return 0;
	b->answers = 0;
	b->closed = !b->closed;
	if (b->closed && b->closings < NR_BBR_CLOSED_MOST)
		b->closings++;
	nr_bbr_count(c, i, b);
	NR_WRITE(line->advice, b->closed ? NR_ADVICE_BACKUP : NR_ADVICE_NONE);
	return 1;
}

#endif
