/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decisions of the receiver's detector (MPTCP-SBD, section III). Each path hears its part, which is
 * what the option on its ACKs says: the number of the decision, its epoch, and the path's place.
 * The sender obeys a decision that says something when the paths that carry data have all heard
 * their parts of one epoch. When for NR_HEARD_MS there was none, its own detector, which observes
 * all the time, decides again (watch.h).
 */
#ifndef NARROWS_DETECT_HEARD_H
#define NARROWS_DETECT_HEARD_H

#include "watch.h"
#include "../flows.h"

/* A path's newest part, which only that path writes; 0: none. */
#define NR_PART(epoch, place) (1u << 24 | ((nr_u32)(epoch) & 0xffff) << 8 | ((place) & 0xff))
#define NR_PART_EPOCH(part) ((part) & ~0xffu)
#define NR_PART_MISSING 0x100u /* no place */

/* What the paths of a connection have heard. All zero at first. */
struct nr_heard {
	nr_u32 part[NR_MAX_PATHS];
	nr_u32 obeyed;		    /* NR_PART_EPOCH of the newest decision that was complete */
	nr_u32 gone;		    /* for the host */
	nr_u64 owner[NR_MAX_PATHS]; /* for the host: whose part it is */
	struct nr_scratch scratch;
};

/* The least time between two decisions that are obeyed; MPTCP-SBD's are 3.5 s apart. */
#define NR_HEARD_LEAST_MS 1000u

/* Can a path be there? Places come from outside. */
NR_INLINE int nr_is_place(nr_u32 place)
{
	return place < NR_MAX_PATHS || place == NR_CLEAR || place == NR_UNDECIDED;
}

/* Path j's place in decision `epoch`, as of NR_PART_EPOCH; undecided if it carries no data. */
NR_NOINLINE nr_u32 nr_heard_place(const struct nr_conn *c, const struct nr_heard *h, nr_u32 epoch,
				  nr_u32 j, nr_u32 now_ms)
{
	nr_u32 part;

	if (!c || !h)
		return NR_PART_MISSING;
	j %= NR_MAX_PATHS;
	part = NR_READ(h->part[j]);
	if (NR_PART_EPOCH(part) == epoch)
		return part & 0xff;
	return nr_counts(&c->path[j], now_ms) ? NR_PART_MISSING : NR_UNDECIDED;
}

/*
 * Obeys decision `epoch` if it is complete, says something and does not come at once after another.
 * No other path is at it.
 */
NR_INLINE int nr_obey(struct nr_conn *c, struct nr_watch *w, struct nr_heard *h, nr_u32 epoch,
		      nr_u64 now_us)
{
	nr_u32 now_ms = (nr_u32)(now_us / 1000), stamp = (nr_u32)NR_READ(c->tick), known = 0;
	nr_u64 masks = NR_READ(c->masks);
	struct nr_places now;

	NR_READ_BARRIER();
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 place = nr_heard_place(c, h, epoch, j, now_ms);

		if (place == NR_PART_MISSING)
			return 0;
		h->scratch.place[j] = (nr_u8)place;
		known |= place ^ NR_UNDECIDED;
	}
	h->obeyed = epoch;
	if (!known || (w->heard_ms && now_ms - w->heard_ms < NR_HEARD_LEAST_MS))
		return 0;
	if (!nr_masks_store(c, masks, nr_decided_masks(&w->params.decision, &h->scratch)))
		return 0;
	now = nr_places(stamp ? stamp : 1, h->scratch.place);
	NR_WRITE(w->heard_ms, now_ms ? now_ms : 1);
	nr_note_groups(w, w->decided, now, now_us);
	NR_WRITE(w->decided_us, now_us);
	NR_WRITE(w->decided.word, now.word);
	return 1;
}

/*
 * Path i has written its newest part: obeys the decision if it can, and returns 1. While another
 * path is at a decision it does nothing, as its next part says the same. If a path joins meanwhile,
 * the masks are not stored and the next decision is the first to be obeyed.
 */
NR_NOINLINE int nr_hear(struct nr_conn *c, struct nr_watch *w, struct nr_heard *h, nr_u32 i,
			nr_u64 now_us)
{
	nr_u32 epoch;
	int obeyed;

	if (!c || !w || !h)
		return 0;
	epoch = NR_PART_EPOCH(NR_READ(h->part[i % NR_MAX_PATHS]));
	if (epoch == NR_READ(h->obeyed) || !nr_decision_enter(w))
		return 0;
	obeyed = nr_obey(c, w, h, epoch, now_us);
	nr_decision_leave(w);
	return obeyed;
}

#endif
