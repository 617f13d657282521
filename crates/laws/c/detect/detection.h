/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection under a dynamic detector: who writes what, and when decisions are made.
 *
 * Time is divided into intervals of T, the same for all paths: k = now / T. A path closes its
 * interval at its first sample of a later one and publishes record k & 1. The first path with an
 * acknowledgement `settle` or more after the end of interval k claims the decision on it: it reads
 * the records of k. With settle = T that is the first one of k + 2, when all paths that carried
 * data in k + 1 have closed k; the record stays until its path closes k + 2.
 *
 * Then the detector takes what each path published, compares the pairs of paths, if it compares
 * pairs, and groups the paths; at last one observation is made and, when a decision is due, all
 * masks are stored at once. All that is part of the one that claimed. Or, where the host sets
 * `at_once`, these are parts of several acknowledgements, of whichever paths have them: all that is
 * needed is in struct nr_detection, so a path that falls silent holds up nothing. One path at a
 * time is at it (`busy`); another one that comes meanwhile goes on without it, and tries again at
 * its next one. Where there are too few in T for all parts, the intervals that passed meanwhile are
 * not decided on.
 */
#ifndef NARROWS_DETECT_DETECTION_H
#define NARROWS_DETECT_DETECTION_H

#include "../flows.h"
#include "deciding.h"
#include "random_loss.h"

/*
 * BPF's verifier looks at a global function as if any detector were passed. So a host with one
 * detector names it, NR_ONE_DETECTOR.
 */
#ifdef NR_ONE_DETECTOR
#define NR_DETECTOR_OF(detector) NR_INSTEAD(detector, NR_ONE_DETECTOR)
#else
#define NR_DETECTOR_OF(detector) (detector)
#endif

/* Is there a path in a slot? */
enum nr_here {
	NR_HERE_UNKNOWN = 0, /* none has joined since there is this memory */
	NR_HERE,
	NR_HERE_NO_MORE, /* it left */
};

/* State of a path. Only `since` and `loss.random` are read by others. */
struct nr_path_detection {
	nr_u64 due_us; /* from when on it tries to claim a decision */
	struct nr_delack delack;
	struct nr_random_loss loss;
	nr_u32 here;  /* enum nr_here */
	nr_u32 since; /* stamp of the interval before it joined, or left; read by siblings */
	nr_u64 history[NR_HISTORY_WORDS]; /* the detector's state of the path */
};

/*
 * State of a connection under a dynamic detector. Before a path joins all is zero except params and
 * at_once. `.pairs` bytes of a native detector follow.
 */
struct nr_detection {
	struct nr_params params;
	nr_u64 observed_us; /* time of the newest observation */
	nr_u64 decided_us;  /* time of the newest decision */
	struct nr_places observed;
	struct nr_places decided;
	/* Since when a path's group is as it is: its join, or the decision that changed it, us. */
	nr_u64 since_us[NR_MAX_PATHS];
	struct nr_ring ring;
	struct nr_path_detection path[NR_MAX_PATHS];
	nr_u32 at_once; /* set by the host: pairs that an event compares; 0: one decides */
	nr_u32 busy;	/* 1: a path is at a decision, and at what follows here */
	nr_u32 stamp;	/* of the interval that is being decided on; 0: none */
	nr_u32 taken;	/* the next path that is taken */
	nr_u32 i, j;	/* the next pair */
	nr_u32 grouped; /* 1: the paths are grouped */
	/* When a decision of the receiver was obeyed (peer_decision.h), wraps; 0: none. */
	nr_u32 peer_ms;
	union nr_summaries summaries;
	struct nr_scratch scratch;
	/* What the detector keeps of pairs; of a native one it follows this struct. */
	nr_u64 pairs[NR_PAIRS_WORDS];
};

/* What the detector keeps of pairs. */
NR_INLINE void *nr_detection_pairs(const struct nr_detector *d, struct nr_detection *det)
{
	return d->native ? (void *)(det + 1) : det->pairs;
}

/* Which paths to couple besides groups, by their places. */
NR_INLINE struct nr_decision_params nr_couples(const struct nr_detector *d, const void *own,
					       const struct nr_params *p)
{
	return d->couples ? d->couples(own, &p->decision) : p->decision;
}

NR_INLINE void nr_record_write(struct nr_record *r, nr_u32 stamp, const nr_u32 *word, nr_u32 words)
{
	NR_WRITE(r->stamp, 0);
	NR_WRITE_BARRIER();
	for (nr_u32 n = 0; n < words; n++)
		NR_WRITE(r->word[n], word[n]);
	NR_WRITE_BARRIER();
	NR_WRITE(r->stamp, stamp);
}

/* Reads record `stamp`; 0 if it is absent or changing. */
NR_INLINE int nr_record_read(const struct nr_record *r, nr_u32 stamp, nr_u32 *word)
{
	if (NR_READ(r->stamp) != stamp)
		return 0;
	NR_READ_BARRIER();
	for (nr_u32 n = 0; n < 7; n++)
		word[n] = NR_READ(r->word[n]);
	NR_READ_BARRIER();
	return NR_READ(r->stamp) == stamp;
}

/*
 * Reads the `words` words that path j published for interval det->stamp - 1 into the summaries,
 * from word `at` on. A separate function for BPF's verifier, one step of a loop.
 */
NR_NOINLINE int nr_read_summary(const struct nr_conn *c, struct nr_detection *det, nr_u32 j,
				nr_u32 at, nr_u32 words)
{
	nr_u32 word[7];

	if (!c || !det || at > 7 * (NR_MAX_PATHS - 1))
		return 0;
	j %= NR_MAX_PATHS;
	if (!nr_record_read(&c->record[j][(det->stamp - 1) & 1], det->stamp, word))
		return 0;
	det->scratch.present |= 1ull << j;
	for (nr_u32 n = 0; n < 7; n++)
		if (n < words)
			det->summaries.word[at + n] = word[n];
	return 1;
}

/* May a path be at a decision? Not while another one is. */
NR_INLINE int nr_decision_enter(struct nr_detection *det)
{
	return !NR_CAS(&det->busy, 0, 1);
}

NR_INLINE void nr_decision_leave(struct nr_detection *det)
{
	NR_WRITE_BARRIER();
	NR_WRITE(det->busy, 0);
}

/* Reads what the paths published for interval det->stamp - 1, and their last places. */
NR_INLINE int nr_read_paths(const struct nr_detector *d, const struct nr_conn *c,
			    struct nr_detection *det)
{
	struct nr_scratch *s = &det->scratch;

	s->stamp = det->stamp;
	s->present = s->lossy = 0;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		s->since[j] = NR_READ(det->path[j].since);
		s->lossy |= (nr_u64)(NR_READ(det->path[j].loss.random) & 1) << j;
		s->place[j] = NR_UNDECIDED;
		if ((nr_s32)(nr_stamp(&det->observed) - s->since[j]) > 0)
			s->place[j] = (nr_u8)nr_place(&det->observed, j);
	}
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		nr_read_summary(c, det, j, j * (d->summary / 4), d->summary / 4);
	return 1;
}

/* Two paths are about as much work as a pair. Takes the next ones; 1: all were taken before. */
NR_INLINE int nr_take_paths(const struct nr_detector *d, struct nr_detection *det)
{
	nr_u32 taken = 0;

	if (!d->take)
		return 1;
	for (nr_u32 n = 0; n < NR_MAX_PATHS; n++) {
		if (det->taken >= NR_MAX_PATHS || (det->at_once && taken >= 2 * det->at_once))
			break;
		taken += 1 & d->take(&det->summaries, nr_detection_pairs(d, det), &det->scratch,
				     det->taken);
		det->taken++;
	}
	return det->taken >= NR_MAX_PATHS && !(det->at_once && taken);
}

/* Compares the next pairs, at_once with new values; 1: all were compared before. */
NR_INLINE int nr_compare_pairs(const struct nr_detector *d, const void *own,
			       struct nr_detection *det)
{
	nr_u32 compared = 0;

	if (!d->compare)
		return 1;
	for (nr_u32 n = 0; n < NR_MAX_PATHS * (NR_MAX_PATHS - 1) / 2; n++) {
		if (det->i >= NR_MAX_PATHS || (det->at_once && compared >= det->at_once))
			break;
		compared += d->compare(own, nr_detection_pairs(d, det), det->i, det->j) & 1;
		if (++det->j >= det->i) {
			det->i++;
			det->j = 0;
		}
	}
	return det->i >= NR_MAX_PATHS && !(det->at_once && compared);
}

/* Groups the paths. */
NR_INLINE int nr_group_paths(const struct nr_detector *d, const void *own, struct nr_detection *det)
{
	d->group(own, &det->summaries, nr_detection_pairs(d, det), &det->scratch);
	return 1;
}

#define NR_BEGIN(n, name)                                                                          \
	case n:                                                                                    \
		return nr_read_paths(&nr_detector_##name, c, det);

NR_NOINLINE int nr_begin(nr_u32 detector, const struct nr_conn *c, struct nr_detection *det)
{
	if (!c || !det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_BEGIN)
	}
	return 0;
}

#define NR_TAKE(n, name)                                                                           \
	case n:                                                                                    \
		return nr_take_paths(&nr_detector_##name, det);

NR_NOINLINE int nr_take(nr_u32 detector, struct nr_detection *det)
{
	if (!det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_TAKE)
	}
	return 0;
}

#define NR_COMPARE(n, name)                                                                        \
	case n:                                                                                    \
		return nr_compare_pairs(&nr_detector_##name, &det->params.name, det);

NR_NOINLINE int nr_compare(nr_u32 detector, struct nr_detection *det)
{
	if (!det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_COMPARE)
	}
	return 0;
}

#define NR_OBSERVE(n, name)                                                                        \
	case n:                                                                                    \
		return nr_group_paths(&nr_detector_##name, &det->params.name, det);

NR_NOINLINE int nr_observe(nr_u32 detector, struct nr_detection *det)
{
	if (!det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_OBSERVE)
	}
	return 0;
}

/* Bits of masks that couple the paths in `set` with others. */
NR_INLINE nr_u64 nr_masks_of(nr_u64 set)
{
	nr_u64 bits = 0;

	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		bits |= (0 - (set >> j & 1)) & (0xffull << (8 * j) | NR_MASKS_COLUMN << j);
	return bits & ~NR_MASKS_DISJOINT;
}

/*
 * Bits of masks of paths that share with no other by what a detector knows of pairs: their losses
 * are random, or they joined after it was asked.
 */
NR_INLINE nr_u64 nr_unshared(const struct nr_scratch *s)
{
	nr_u64 set = s->lossy;

	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		set |= (nr_u64)((nr_s32)(s->stamp - s->since[j]) <= 0) << j;
	return (s->early & ~NR_MASKS_DISJOINT) | nr_masks_of(set);
}

/*
 * Decides from the observations up to the one that was just made. If a path joins meanwhile, the
 * masks are not stored and the next interval decides.
 */
NR_INLINE int nr_decide_by(const struct nr_detector *d, const void *own, struct nr_conn *c,
			   struct nr_detection *det)
{
	struct nr_decision_params couples = nr_couples(d, own, &det->params);
	struct nr_pace pace = d->pace(own, &det->params.decision);
	struct nr_scratch *s = &det->scratch;
	nr_u64 cuts = NR_READ(c->cuts), masks = NR_READ(c->masks), alone;

	NR_READ_BARRIER(); /* a join visible in the masks is visible in `since` */
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		s->since[j] = NR_READ(det->path[j].since);
	nr_filter(&pace, &couples, &det->ring, s);
	alone = d->pair ? nr_unshared(s) : 0;
	if (!nr_masks_store(c, masks, nr_decided_masks(&couples, s) & ~alone))
		return 0;
	nr_cuts_store(c, cuts, (d->pair ? s->known : nr_group_masks(s)) & ~alone);
	return 1;
}

#define NR_DECIDE(n, name)                                                                         \
	case n:                                                                                    \
		return nr_decide_by(&nr_detector_##name, &det->params.name, c, det);

NR_NOINLINE int nr_decide(nr_u32 detector, struct nr_conn *c, struct nr_detection *det)
{
	if (!c || !det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_DECIDE)
	}
	return 0;
}

/*
 * Are paths i and j in one place by `last` or by `now`, but not by both? A function, else Linux
 * 6.1's verifier explores which of eight paths are.
 */
NR_NOINLINE nr_u32 nr_parted(const struct nr_places *last, const struct nr_places *now, nr_u32 i,
			     nr_u32 j)
{
	if (!last || !now)
		return 0;
	return (nr_place(last, i) == nr_place(last, j)) != (nr_place(now, i) == nr_place(now, j));
}

/* Is path i by `now` in another place than by `last`, or in a group of other paths? */
NR_NOINLINE nr_u32 nr_moved(const struct nr_places *last, const struct nr_places *now, nr_u32 i)
{
	nr_u32 from, to, moved = 0;

	if (!last || !now)
		return 0;
	from = nr_place(last, i);
	to = nr_place(now, i);
	if (from >= NR_MAX_PATHS || to >= NR_MAX_PATHS)
		return from != to;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		moved |= nr_parted(last, now, i, j);
	return moved;
}

/* A decision was made: notes whose groups it changed, and returns if it did. */
NR_INLINE enum nr_decided nr_note_groups(struct nr_detection *det, struct nr_places last,
					 struct nr_places now, nr_u64 now_us)
{
	enum nr_decided decided = NR_DECIDED;

	if (!last.word) /* the first */
		last.word = ~0u;
	if ((nr_u32)last.word == (nr_u32)now.word)
		return decided;
	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++) {
		if (!nr_moved(&last, &now, i))
			continue;
		NR_WRITE(det->since_us[i], now_us);
		decided = NR_REGROUPED;
	}
	return decided;
}

/* A decision of the receiver holds for so long: three times the 3.5 s between two of MPTCP-SBD, the
 * slowest. */
#define NR_PEER_MS 10500u

/* Does the receiver decide? Forgets when it did last once that is too long ago. */
NR_INLINE int nr_receiver_decides(struct nr_detection *det, nr_u64 now_us)
{
	nr_u32 peer_ms = NR_READ(det->peer_ms);

	if (!peer_ms)
		return 0;
	/* On another CPU it may have been later than now. */
	if ((nr_u32)(now_us / 1000) - peer_ms + NR_AHEAD_MS < NR_PEER_MS + NR_AHEAD_MS)
		return 1;
	NR_WRITE(det->peer_ms, 0);
	return 0;
}

/* The last part: makes an observation, and a decision if due. */
NR_INLINE enum nr_decided nr_finish(nr_u32 detector, nr_u32 every, struct nr_conn *c,
				    struct nr_detection *det, nr_u64 now_us)
{
	struct nr_places last = det->decided, observed, now;
	enum nr_decided decided;
	nr_u32 stamp = det->stamp;

	det->stamp = 0;
	observed = nr_places(stamp, det->scratch.place);
	NR_WRITE(det->ring.of[stamp % NR_OBSERVATIONS].word, observed.word);
	NR_WRITE(det->observed_us, now_us);
	NR_WRITE(det->observed.word, observed.word);
	if (nr_receiver_decides(det, now_us))
		return NR_NOT_DECIDED;
	if (last.word && stamp - nr_stamp(&last) < every)
		return NR_NOT_DECIDED;
	if (!nr_decide(detector, c, det))
		return NR_NOT_DECIDED;
	now = nr_places(stamp, det->scratch.place);
	/* Before the groups, so that nobody reads new ones as if they were old. */
	decided = nr_note_groups(det, last, now, now_us);
	NR_WRITE_BARRIER();
	NR_WRITE(det->decided_us, now_us);
	NR_WRITE(det->decided.word, now.word);
	return decided;
}

/*
 * The next part of a decision, or all of it. If none is at hand claims that on the newest of the
 * `ended` intervals.
 */
NR_INLINE enum nr_decided nr_go_on(nr_u32 detector, nr_u32 every, nr_u64 ended, struct nr_conn *c,
				   struct nr_detection *det, nr_u64 now_us)
{
	if (!det->stamp) {
		if (!ended || !nr_tick_claim(c, ended))
			return NR_NOT_DECIDED;
		det->stamp = (nr_u32)ended;
		det->taken = det->grouped = 0;
		det->i = 1;
		det->j = 0;
		nr_begin(detector, c, det);
		if (det->at_once)
			return NR_NOT_DECIDED;
	}
	if (!nr_take(detector, det) || !nr_compare(detector, det))
		return NR_NOT_DECIDED;
	if (!det->grouped) {
		det->grouped = 1;
		nr_observe(detector, det);
		if (det->at_once)
			return NR_NOT_DECIDED;
	}
	return nr_finish(detector, every, c, det, now_us);
}

/* An acknowledgement of path i, to which a decision is due, or is at hand. */
NR_INLINE enum nr_decided nr_tick(nr_u32 detector, struct nr_pace pace, struct nr_conn *c,
				  struct nr_detection *det, nr_u32 i, nr_u64 now_us)
{
	enum nr_decided decided;
	nr_u64 ended;

	if (now_us < pace.settle_us || !nr_decision_enter(det))
		return NR_NOT_DECIDED;
	ended = (now_us - pace.settle_us) / pace.t_us; /* intervals that are over and settled */
	decided = nr_go_on(detector, pace.every, ended, c, det, now_us);
	/* Until it is made, and not of an older interval, the path's next one goes on. */
	if (!det->stamp && NR_READ(c->tick) >= ended)
		det->path[i & 7].due_us = (ended + 1) * pace.t_us + pace.settle_us;
	nr_decision_leave(det);
	return decided;
}

/*
 * The paths that joining path i may share with, as bits. A detector that knows pairs says so once
 * it could know.
 */
NR_INLINE nr_u32 nr_first_row(const struct nr_detector *d, const void *own,
			      const struct nr_params *p, nr_u32 i)
{
	return d->pair || nr_couples(d, own, p).undecided == NR_COUPLE_NONE ? 1u << (i & 7) : 0xff;
}

/* A path joins, or its clock was set back: its history is empty. */
NR_INLINE void nr_detection_begin(const struct nr_detector *d, nr_u32 t_us,
				  struct nr_path_detection *path, nr_u64 now_us)
{
	path->here = NR_HERE;
	path->due_us = 0;
	path->delack = (struct nr_delack){.acked_us = now_us};
	path->loss = (struct nr_random_loss){0};
	NR_WRITE(path->since, (nr_u32)(now_us / t_us));
	d->reset(path->history);
}

/* Samples an event of path i under detector `d`; 1: a decision may be due, or at hand. */
NR_INLINE int nr_detection_path(const struct nr_detector *d, const void *own, struct nr_conn *c,
				struct nr_detection *det, nr_u32 i, const struct nr_event *ev)
{
	struct nr_pace pace = d->pace(own, &det->params.decision);
	struct nr_path_detection *path = &det->path[i & 7];
	/* The host may have had no memory for this at the join. */
	int late = path->here == NR_HERE_UNKNOWN && ev->kind != NR_LEFT;
	int begins = ev->kind == NR_JOINED || late;
	struct nr_sample s;
	nr_u32 stamp;

	if (begins || ev->kind == NR_LEFT) {
		NR_WRITE(det->since_us[i & 7], ev->now_us);
		NR_WRITE(c->record[i & 7][0].stamp, 0);
		NR_WRITE(c->record[i & 7][1].stamp, 0);
	}
	if (begins) {
		nr_detection_begin(d, pace.t_us, path, ev->now_us);
		nr_masks_join(c, i, nr_first_row(d, own, &det->params, i), 1u << (i & 7));
	}
	if (ev->kind == NR_LEFT) {
		path->here = NR_HERE_NO_MORE;
		NR_WRITE(path->since, (nr_u32)(ev->now_us / pace.t_us));
	}
	if (path->here != NR_HERE)
		return 0;
	/* Was the clock set back? */
	if (NR_UNLIKELY(ev->now_us + 2ull * pace.t_us + pace.settle_us < path->due_us)) {
		nr_detection_begin(d, pace.t_us, path, ev->now_us);
		nr_tick_back(c, ev->now_us / pace.t_us);
	}
	s = nr_sample(&path->delack, ev);
	s.bw = NR_READ(c->path[i & 7].bw);
	s.cycles = NR_READ(c->path[i & 7].word[0]) & NR_CYCLES;
	s.resting = s.bw && (NR_READ(c->path[i & 7].word[1]) & NR_PHASE) == NR_IN_PROBE_RTT;
	if (d->pair)
		nr_random_sample(&path->loss, &s);
	stamp = d->sample(own, path->history, &s);
	if (stamp)
		nr_record_write(&c->record[i & 7][(stamp - 1) & 1], stamp,
				(const nr_u32 *)((const char *)path->history + d->summary_at),
				d->summary / 4);
	return s.now_us >= path->due_us;
}

#define NR_DETECTION_PATH(n, name)                                                                 \
	case n:                                                                                    \
		return nr_detection_path(&nr_detector_##name, &det->params.name, c, det, i, ev);

/*
 * An event of path i: if this returns 1, and the event is an acknowledgement, nr_detection_tick
 * follows. Two functions, as BPF's stack is small.
 */
NR_NOINLINE int nr_detection_event(nr_u32 detector, struct nr_conn *c, struct nr_detection *det,
				   nr_u32 i, const struct nr_event *ev)
{
	if (!c || !det || !ev)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_DETECTION_PATH)
	}
	return 0;
}

#define NR_DETECTION_TICK(n, name)                                                                 \
	case n:                                                                                    \
		return nr_tick(n,                                                                  \
			       nr_detector_##name.pace(&det->params.name, &det->params.decision),  \
			       c, det, i, now_us);

/* Path i claims a decision or goes on with one; returns enum nr_decided. */
NR_NOINLINE int nr_detection_tick(nr_u32 detector, struct nr_conn *c, struct nr_detection *det,
				  nr_u32 i, nr_u64 now_us)
{
	if (!c || !det)
		return 0;
	switch (NR_DETECTOR_OF(detector)) {
		NR_DECIDING(NR_DETECTION_TICK)
	}
	return 0;
}

#endif
