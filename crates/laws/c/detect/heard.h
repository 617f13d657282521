/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decisions of the receiver's detector (MPTCP-SBD, section III). Each path hears its part, which is
 * what the option on its ACKs says: the number of the decision, its epoch, and the path's place.
 * The sender obeys a decision that says something when the paths that carry data have all heard
 * their parts of one epoch. When for NR_HEARD_MS there was none, its own detector, which observes
 * all the time, decides again (watch.h).
 *
 * ACKs of one path may be overtaken, and those of one path may be later, or rarer, than those of
 * another. So a part that is older than the path's newest is none; a path keeps two parts, as it
 * may have heard of the next decision when another one hears of the last; and no decision is obeyed
 * that is older than the newest complete one. Epochs count intervals of 350 ms and wrap after 6
 * hours, so what was heard more than NR_HEARD_MS ago is older than all.
 */
#ifndef NARROWS_DETECT_HEARD_H
#define NARROWS_DETECT_HEARD_H

#include "watch.h"
#include "../flows.h"

/* A part; 0: none. */
#define NR_PART(epoch, place) (1u << 24 | ((nr_u32)(epoch) & 0xffff) << 8 | ((place) & 0xff))
#define NR_PART_EPOCH(part) ((part) & ~0xffu)
#define NR_PART_MISSING 0x100u /* no place */

/* What the paths of a connection have heard. All zero at first. */
struct nr_heard {
	/* Each path's newest part, the one of another epoch before it, when it last heard the
	 * newest (ms, wraps): written by that path only. */
	nr_u32 part[NR_MAX_PATHS];
	nr_u32 before[NR_MAX_PATHS];
	nr_u32 part_ms[NR_MAX_PATHS];
	nr_u32 done;		    /* NR_PART_EPOCH of the newest decision that is done with */
	nr_u32 done_ms;		    /* since when it is */
	nr_u32 begun_ms;	    /* for the host: since when the sender listens, wraps */
	nr_u32 gone;		    /* for the host */
	nr_u64 owner[NR_MAX_PATHS]; /* for the host: whose parts they are */
	struct nr_scratch scratch;
};

/* The least time between two decisions that are obeyed; MPTCP-SBD's are 3.5 s apart. */
#define NR_HEARD_LEAST_MS 1000u

/* Can a path be there? Places come from outside. */
NR_INLINE int nr_is_place(nr_u32 place)
{
	return place < NR_MAX_PATHS || place == NR_CLEAR || place == NR_UNDECIDED;
}

/* Was it at most NR_HEARD_MS ago? On another CPU it may have been later than now. */
NR_INLINE int nr_heard_lately(nr_u32 then_ms, nr_u32 now_ms)
{
	return now_ms - then_ms + NR_AHEAD_MS < NR_HEARD_MS + NR_AHEAD_MS;
}

/* Is an epoch, as of NR_PART_EPOCH, later than another one? */
NR_INLINE int nr_is_later(nr_u32 epoch, nr_u32 other)
{
	return (nr_s32)((epoch - other) << 8) > 0;
}

/* Path i, another path than before, has heard nothing yet. */
NR_INLINE void nr_forget_parts(struct nr_heard *h, nr_u32 i)
{
	NR_WRITE(h->part[i & 7], 0);
	NR_WRITE(h->before[i & 7], 0);
}

/* Path i hears a part; returns 0 if it was overtaken, and then it says nothing. */
NR_INLINE int nr_hear_part(struct nr_heard *h, nr_u32 i, nr_u32 part, nr_u32 now_ms)
{
	nr_u32 last = h->part[i & 7];

	if (last && !nr_heard_lately(h->part_ms[i & 7], now_ms))
		last = 0;
	if (last && nr_is_later(NR_PART_EPOCH(last), NR_PART_EPOCH(part)))
		return 0;
	if (NR_PART_EPOCH(last) != NR_PART_EPOCH(part)) {
		NR_WRITE(h->before[i & 7], last);
		NR_WRITE_BARRIER();
	}
	NR_WRITE(h->part[i & 7], part);
	NR_WRITE(h->part_ms[i & 7], now_ms);
	return 1;
}

/* Path j's place in decision `epoch`, as of NR_PART_EPOCH; undecided if it carries no data. */
NR_NOINLINE nr_u32 nr_heard_place(const struct nr_conn *c, const struct nr_heard *h, nr_u32 epoch,
				  nr_u32 j, nr_u32 now_ms)
{
	nr_u32 part, before;

	if (!c || !h)
		return NR_PART_MISSING;
	j %= NR_MAX_PATHS;
	part = NR_READ(h->part[j]);
	NR_READ_BARRIER(); /* what the newest part replaced is in `before` */
	before = NR_READ(h->before[j]);
	if (nr_heard_lately(NR_READ(h->part_ms[j]), now_ms)) {
		if (NR_PART_EPOCH(part) == epoch)
			return part & 0xff;
		if (NR_PART_EPOCH(before) == epoch)
			return before & 0xff;
	}
	return nr_counts(&c->path[j], now_ms) ? NR_PART_MISSING : NR_UNDECIDED;
}

/*
 * Obeys decision `epoch` if it is complete, says something and does not come at once after another;
 * what comes too early may be obeyed later. No other path is at it.
 */
NR_INLINE int nr_obey(struct nr_conn *c, struct nr_watch *w, struct nr_heard *h, nr_u32 epoch,
		      nr_u64 now_us)
{
	nr_u32 now_ms = (nr_u32)(now_us / 1000), stamp = (nr_u32)NR_READ(c->tick), known = 0;
	nr_u64 cuts = NR_READ(c->cuts), masks = NR_READ(c->masks);
	struct nr_places now;

	NR_READ_BARRIER();
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 place = nr_heard_place(c, h, epoch, j, now_ms);

		if (place == NR_PART_MISSING)
			return 0;
		h->scratch.place[j] = (nr_u8)place;
		known |= place ^ NR_UNDECIDED;
	}
	if (known && w->heard_ms &&
	    now_ms - w->heard_ms + NR_AHEAD_MS < NR_HEARD_LEAST_MS + NR_AHEAD_MS)
		return 0;
	if (known && !nr_masks_store(c, masks, nr_decided_masks(&w->params.decision, &h->scratch)))
		return 0;
	h->done_ms = now_ms;
	NR_WRITE(h->done, epoch);
	if (!known)
		return 0;
	nr_cuts_store(c, cuts, nr_group_masks(&h->scratch));
	now = nr_places(stamp ? stamp : 1, h->scratch.place);
	NR_WRITE(w->heard_ms, now_ms ? now_ms : 1);
	nr_note_groups(w, w->decided, now, now_us);
	NR_WRITE(w->decided_us, now_us);
	NR_WRITE(w->decided.word, now.word);
	return 1;
}

/* May a decision be obeyed, by its number? */
NR_INLINE int nr_is_new(const struct nr_heard *h, nr_u32 epoch, nr_u32 now_ms)
{
	nr_u32 done = NR_READ(h->done);

	return epoch != done &&
	       (!done || nr_is_later(epoch, done) || !nr_heard_lately(NR_READ(h->done_ms), now_ms));
}

/*
 * Path i has heard its newest part (nr_hear_part): obeys the decision if it can, and returns 1.
 * While another path is at a decision it does nothing, and if a path joins meanwhile, the masks are
 * not stored: the next part of the same decision tries again.
 */
NR_NOINLINE int nr_hear(struct nr_conn *c, struct nr_watch *w, struct nr_heard *h, nr_u32 i,
			nr_u64 now_us)
{
	nr_u32 epoch, now_ms = (nr_u32)(now_us / 1000);
	int obeyed = 0;

	if (!c || !w || !h)
		return 0;
	epoch = NR_PART_EPOCH(NR_READ(h->part[i % NR_MAX_PATHS]));
	if (!nr_is_new(h, epoch, now_ms) || !nr_decision_enter(w))
		return 0;
	/* Another path may have been at it. */
	if (nr_is_new(h, epoch, now_ms))
		obeyed = nr_obey(c, w, h, epoch, now_us);
	nr_decision_leave(w);
	return obeyed;
}

#endif
