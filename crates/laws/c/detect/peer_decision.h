/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peer's decision: that of the receiver's detector (MPTCP-SBD, section III), which the sender
 * obeys. Each path receives its part, which is in the option on its ACKs: the number of the
 * decision, its epoch, and the path's place. The sender obeys a decision that is not wholly
 * undecided when the paths that carry data have all received their parts of one epoch. When for
 * NR_PEER_MS there was none, its own detector, which observes all the time, decides again
 * (detection.h).
 *
 * ACKs of one path may be overtaken, and those of one path may be later, or rarer, than those of
 * another. So a part that is older than the path's newest is none; a path keeps two parts, as it
 * may have received that of the next decision when another one receives that of the last; and no
 * decision is obeyed that is older than the newest complete one. Epochs count intervals of the
 * receiver's detector, 240 ms or more, and wrap after 4 hours, so what was received more than
 * NR_PEER_MS ago is older than all.
 *
 * Paths of one place may share a bottleneck: whether that is known the option does not say. So they
 * grow together, and none is cut for another. A path whose losses are random, which its sender
 * knows, is coupled with none (random_loss.h).
 */
#ifndef NARROWS_DETECT_PEER_DECISION_H
#define NARROWS_DETECT_PEER_DECISION_H

#include "detection.h"
#include "../flows.h"

/* A part; 0: none. */
#define NR_PART(epoch, place) (1u << 24 | ((nr_u32)(epoch) & 0xffff) << 8 | ((place) & 0xff))
#define NR_PART_EPOCH(part) ((part) & ~0xffu)
#define NR_PART_MISSING 0x100u /* no place */

/* The parts that the paths of a connection have received. All zero at first. */
struct nr_peer_decision {
	/* Each path's newest part, the one of another epoch before it, when it last received the
	 * newest (ms, wraps): written by that path only. */
	nr_u32 part[NR_MAX_PATHS];
	nr_u32 before[NR_MAX_PATHS];
	nr_u32 part_ms[NR_MAX_PATHS];
	nr_u32 done;		    /* NR_PART_EPOCH of the newest decision that is done with */
	nr_u32 done_ms;		    /* since when it is */
	nr_u32 begun_ms;	    /* for the host: since when the sender looks for them, wraps */
	nr_u32 gone;		    /* for the host */
	nr_u64 owner[NR_MAX_PATHS]; /* for the host: whose parts they are */
	struct nr_scratch scratch;
};

/* The least time between two decisions that are obeyed: a receiver that lies changes groups no
 * oftener. */
#define NR_PEER_LEAST_MS 1000u

/* Can a path be there? Places come from outside. */
NR_INLINE int nr_is_place(nr_u32 place)
{
	return place < NR_MAX_PATHS || place == NR_CLEAR || place == NR_UNDECIDED;
}

/* Was it at most NR_PEER_MS ago? On another CPU it may have been later than now. */
NR_INLINE int nr_peer_lately(nr_u32 then_ms, nr_u32 now_ms)
{
	return now_ms - then_ms + NR_AHEAD_MS < NR_PEER_MS + NR_AHEAD_MS;
}

/* Is an epoch, as of NR_PART_EPOCH, later than another one? */
NR_INLINE int nr_is_later(nr_u32 epoch, nr_u32 other)
{
	return (nr_s32)((epoch - other) << 8) > 0;
}

/* Path i, another path than before, has received nothing yet. */
NR_INLINE void nr_forget_parts(struct nr_peer_decision *p, nr_u32 i)
{
	NR_WRITE(p->part[i & 7], 0);
	NR_WRITE(p->before[i & 7], 0);
}

/* Path i receives a part; returns 0 if it was overtaken, and then it counts for nothing. */
NR_INLINE int nr_peer_part(struct nr_peer_decision *p, nr_u32 i, nr_u32 part, nr_u32 now_ms)
{
	nr_u32 last = p->part[i & 7];

	if (last && !nr_peer_lately(p->part_ms[i & 7], now_ms))
		last = 0;
	if (last && nr_is_later(NR_PART_EPOCH(last), NR_PART_EPOCH(part)))
		return 0;
	if (NR_PART_EPOCH(last) != NR_PART_EPOCH(part)) {
		NR_WRITE(p->before[i & 7], last);
		NR_WRITE_BARRIER();
	}
	NR_WRITE(p->part[i & 7], part);
	NR_WRITE(p->part_ms[i & 7], now_ms);
	return 1;
}

/* Path j's place in decision `epoch`, as of NR_PART_EPOCH; undecided if it carries no data. */
NR_NOINLINE nr_u32 nr_peer_place(const struct nr_conn *c, const struct nr_peer_decision *p,
				 nr_u32 epoch, nr_u32 j, nr_u32 now_ms)
{
	nr_u32 part, before;

	if (!c || !p)
		return NR_PART_MISSING;
	j %= NR_MAX_PATHS;
	part = NR_READ(p->part[j]);
	NR_READ_BARRIER(); /* what the newest part replaced is in `before` */
	before = NR_READ(p->before[j]);
	if (nr_peer_lately(NR_READ(p->part_ms[j]), now_ms)) {
		if (NR_PART_EPOCH(part) == epoch)
			return part & 0xff;
		if (NR_PART_EPOCH(before) == epoch)
			return before & 0xff;
	}
	return nr_counts(&c->path[j], now_ms) ? NR_PART_MISSING : NR_UNDECIDED;
}

/*
 * Obeys decision `epoch` if it is complete, not wholly undecided, and does not come at once after
 * another; what comes too early may be obeyed later. No other path is at it.
 */
NR_INLINE int nr_obey(struct nr_conn *c, struct nr_detection *det, struct nr_peer_decision *p,
		      nr_u32 epoch, nr_u64 now_us)
{
	nr_u32 now_ms = (nr_u32)(now_us / 1000), stamp = (nr_u32)NR_READ(c->tick), known = 0;
	nr_u64 cuts = NR_READ(c->cuts), masks = NR_READ(c->masks), random = 0;
	struct nr_places now;

	NR_READ_BARRIER();
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 place = nr_peer_place(c, p, epoch, j, now_ms);

		if (place == NR_PART_MISSING)
			return 0;
		p->scratch.place[j] = (nr_u8)place;
		known |= place ^ NR_UNDECIDED;
		random |= (nr_u64)(NR_READ(det->path[j].loss.random) & 1) << j;
	}
	if (known && det->peer_ms &&
	    now_ms - det->peer_ms + NR_AHEAD_MS < NR_PEER_LEAST_MS + NR_AHEAD_MS)
		return 0;
	if (known && !nr_masks_store(c, masks,
				     nr_decided_masks(&det->params.decision, &p->scratch) &
					 ~nr_masks_of(random)))
		return 0;
	p->done_ms = now_ms;
	NR_WRITE(p->done, epoch);
	if (!known)
		return 0;
	nr_cuts_store(c, cuts, NR_MASKS_DISJOINT);
	now = nr_places(stamp ? stamp : 1, p->scratch.place);
	NR_WRITE(det->peer_ms, now_ms ? now_ms : 1);
	nr_note_groups(det, det->decided, now, now_us);
	NR_WRITE(det->decided_us, now_us);
	NR_WRITE(det->decided.word, now.word);
	return 1;
}

/* May a decision be obeyed, by its number? */
NR_INLINE int nr_is_new(const struct nr_peer_decision *p, nr_u32 epoch, nr_u32 now_ms)
{
	nr_u32 done = NR_READ(p->done);

	return epoch != done &&
	       (!done || nr_is_later(epoch, done) || !nr_peer_lately(NR_READ(p->done_ms), now_ms));
}

/*
 * Path i has received its newest part (nr_peer_part): obeys the decision if it can, and returns 1.
 * While another path is at a decision it does nothing, and if a path joins meanwhile, the masks are
 * not stored: the next part of the same decision tries again.
 */
NR_NOINLINE int nr_peer_decide(struct nr_conn *c, struct nr_detection *det,
			       struct nr_peer_decision *p, nr_u32 i, nr_u64 now_us)
{
	nr_u32 epoch, now_ms = (nr_u32)(now_us / 1000);
	int obeyed = 0;

	if (!c || !det || !p)
		return 0;
	epoch = NR_PART_EPOCH(NR_READ(p->part[i % NR_MAX_PATHS]));
	if (!nr_is_new(p, epoch, now_ms) || !nr_decision_enter(det))
		return 0;
	/* Another path may have been at it. */
	if (nr_is_new(p, epoch, now_ms))
		obeyed = nr_obey(c, det, p, epoch, now_us);
	nr_decision_leave(det);
	return obeyed;
}

#endif
